"""Cross-validation: each C is scored on sequences that were left out of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.metrics import TagReport
from maxmargin.selection.auto_c import search_C
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.validation import report_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = ["cross_validate", "fold_summary", "folds"]


def folds(n_sequences: int, k: int, seed: int | None) -> list[NDArray[np.intp]]:
    """Deal sequences out into k folds of about the same size, at random.

    Parameters
    ----------
    n_sequences, k : int
        How many; at least two folds, at most as many as sequences.
    seed : int or None
        Of the draw.

    Returns
    -------
    list of arrays
        The sequences of each fold, ascending.
    """
    if not 2 <= k <= n_sequences:
        raise ValueError(f"{k} folds of {n_sequences} sequences; expected 2 to {n_sequences}")
    order = np.random.default_rng(seed).permutation(n_sequences)
    return [np.sort(part) for part in np.array_split(order, k)]


def cross_validate(
    chain: Chain,
    data: Encoded,
    Cs: Sequence[float],
    k: int,
    options: FitOptions,
    *,
    auto: bool = False,
    sample_weight: NDArray[Any] | None = None,
    on_outcome: Callable[[int, Outcome], object] | None = None,
) -> list[dict[str, Any]]:
    """Score each C by training on all folds but one and tagging that one, for every fold.

    The features are those of all the data: one that occurs only in the fold that is left out has
    weight zero, as if it were unknown.

    Parameters
    ----------
    chain, data, Cs, options
        As for `fit_grid`.
    k : int
        Number of folds.
    auto : bool
        Whether to search the best C, beginning with the first of ``Cs``. The engines of all folds
        are then in memory at the same time.
    sample_weight : array of shape (n_sequences,), optional
        A factor of C for each sequence, in training; scores do not have weights.
    on_outcome : callable or None
        Called with the number of the fold and the model, for each of them.

    Returns
    -------
    list of dict
        For each C in ascending order: the mean and the standard deviation over the folds of the
        token accuracy and, with chunks, of F1.
    """
    parts = folds(data.batch.n_sequences, k, options.seed)
    inside = [
        np.sort(np.concatenate([part for i, part in enumerate(parts) if i != number]))
        for number in range(k)
    ]
    trainings = [_Fold(chain, data, rest, sample_weight) for rest in inside] if auto else []
    rows: dict[float, list[TagReport]] = {}

    def note(number: int, outcome: Outcome) -> None:
        outside = data.take(parts[number])
        outcome.report = report_of(chain, outside, outcome.weights, options.threads)
        rows.setdefault(outcome.C, []).append(outcome.report)
        if on_outcome is not None:
            on_outcome(number, outcome)
        if outcome.result.interrupted:
            raise KeyboardInterrupt

    def score(C: float) -> float:
        for number, training in enumerate(trainings):
            note(number, training.train(C, options))
        return float(fold_summary(rows[C])["score"])

    if auto:
        search_C(score, Cs[0])
    else:  # one engine at a time is enough
        for number, rest in enumerate(inside):
            training = _Fold(chain, data, rest, sample_weight)
            for C in sorted(Cs):
                note(number, training.train(C, options))
    return [{"C": C, **fold_summary(rows[C])} for C in sorted(rows)]


class _Fold:
    """The trainings on all folds but one, each from where the last one ended."""

    def __init__(
        self, chain: Chain, data: Encoded, inside: NDArray[Any], sample_weight: Any
    ) -> None:
        part = data.take(inside)
        weight = None if sample_weight is None else sample_weight[inside]
        self._chain = chain
        self._problem = chain.encoded_problem(part.batch, part.codes, sample_weight=weight)
        self._machine: Any = None

    def train(self, C: float, options: FitOptions) -> Outcome:
        """Train with a C."""
        outcome = fit(self._chain, self._problem, C, options, machine=self._machine)
        self._machine = outcome.result.engine
        return outcome


def fold_summary(reports: list[TagReport]) -> dict[str, Any]:
    """Return the mean and the standard deviation of the scores of folds, and the main score.

    Parameters
    ----------
    reports : list of TagReport
        One for each fold.
    """

    def mean_and_spread(values: list[float]) -> tuple[float, float]:
        return float(np.mean(values)), float(np.std(values))

    accuracy, accuracy_spread = mean_and_spread([r.token_accuracy for r in reports])
    row: dict[str, Any] = {"token_accuracy": accuracy, "token_accuracy_std": accuracy_spread}
    f1s = [r.f1 for r in reports if r.has_chunks]
    if f1s:
        row["f1"], row["f1_std"] = mean_and_spread(f1s)
    row["score"] = row.get("f1", accuracy)
    return row
