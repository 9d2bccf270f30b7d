"""``fit(..., eval_set=(X, y))``: the model of the pass that is best on other data.

As ``maxmargin train --valid`` does it, by the same observer (`maxmargin.selection.validation`).
Taggers are chosen by F1 of chunks, or token accuracy where there are no chunks; other estimators,
and taggers that decode with constraints, by their ``score``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.empty import labelled_without_empty
from maxmargin.estimators.training import Training, fitted_copy
from maxmargin.features import check_lengths
from maxmargin.features.columns import LabelCodes
from maxmargin.features.labels import encode_labels
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.validation import BestPass, PassScore, PassScores, validation_for
from maxmargin.solvers.ending import best_pass_reason
from maxmargin.structures.chain import Chain

if TYPE_CHECKING:
    pass

__all__ = ["checked_eval_set", "encoded_labelled", "keep_best_pass", "validation_of"]


def checked_eval_set(given: Any, name: str = "eval_set") -> tuple[Any, Any]:
    """Return the two parts of an ``eval_set``.

    Parameters
    ----------
    given : object
        What ``fit`` got: a pair, or a list with one pair, as in other libraries.
    name : str
        What the argument is called.

    Returns
    -------
    tuple
        X and y.
    """
    pair = given[0] if isinstance(given, list) and len(given) == 1 else given
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(
            f"{name} is a {type(given).__name__}; expected a pair (X, y) of inputs and outputs"
        )
    return pair[0], pair[1]


def encoded_labelled(chain: Chain, X: Any, y: Any) -> Encoded:
    """Encode sequences and their labels, with numbers of their own for labels that are not known.

    Parameters
    ----------
    chain : Chain
        Prepared.
    X, y : list of sequences
        Inputs and labels; empty sequences are left out.

    Returns
    -------
    Encoded
        What can be scored.
    """
    X, y, _ = labelled_without_empty(X, y)
    check_lengths(X, y)
    codes, classes = encode_labels(y if isinstance(y, LabelCodes) else list(y))
    labels = list(chain.labels_)
    place = {label: k for k, label in enumerate(labels)}
    for label in classes:
        if label not in place:
            place[label] = len(labels)
            labels.append(label)
    numbers = np.array([place[label] for label in classes], dtype=np.int32)
    return Encoded(chain.encoded(X), numbers[codes], [str(label) for label in labels])


class _Scores(PassScores):
    """The ``score`` of an estimator after each pass."""

    def __init__(self, estimator: Any, training: Training, X: Any, y: Any) -> None:
        super().__init__()
        self._estimator, self._training, self._data = estimator, training, (X, y)

    def score(self, weights: Any) -> PassScore:
        own = self._training.bound.own_weights(weights)
        # A copy: scoring a tagger sets how its chain decodes.
        structure = copy.copy(self._training.structure)
        fitted = fitted_copy(self._estimator, structure, own)
        value = float(fitted.score(*self._data))
        return PassScore(value, {"score": value}, value)


def validation_of(estimator: Any, training: Training, X: Any, y: Any) -> PassScores:
    """Return the observer that scores the passes of a training.

    Parameters
    ----------
    estimator : StructuralEstimator
        What is trained.
    training : Training
        Its training.
    X, y : object
        The other data.

    Returns
    -------
    PassScores
        For the driver.
    """
    structure = training.structure
    rules = structure.constraints if isinstance(structure, Chain) else None
    if isinstance(structure, Chain) and (rules is None or not rules.active):
        data = encoded_labelled(structure, X, y)
        return validation_for(structure, data, training.problem, training.threads)
    if training.problem.has_kernel:
        raise NotCompatibleError(
            "eval_set keeps weights of features pass by pass, and with a kernel and constraints "
            'there are none; use kernel="linear", or no eval_set'
        )
    return _Scores(estimator, training, X, y)


def keep_best_pass(
    estimator: Any,
    scores: PassScores | None,
    best: BestPass | None,
    own_weights: Callable[[Any], Any],
    gap: float,
) -> None:
    """Give an estimator the model of its best pass, and say of each pass how good it was.

    Parameters
    ----------
    estimator : StructuralEstimator
        With the model of the end.
    scores : PassScores or None
        What was scored; None: there was no ``eval_set``.
    best : BestPass or None
        None: the end is kept.
    own_weights : callable
        Makes the weights of the structure.
    gap : float
        The gap that was asked for.
    """
    for name in ("best_pass_", "eval_scores_"):
        estimator.__dict__.pop(name, None)
    if scores is None:
        return
    estimator.eval_scores_ = scores.scores
    estimator.best_pass_ = estimator.n_iter_ if best is None else best.n_pass
    if best is None:
        return
    estimator.weights_ = own_weights(best.weights)
    estimator.certificate_ = best.certificate
    estimator.converged_ = best.certificate.gap <= gap
    estimator.stop_reason_ = best_pass_reason(
        best.n_pass, estimator.n_iter_, estimator.stop_reason_
    )
