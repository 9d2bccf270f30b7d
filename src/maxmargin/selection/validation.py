"""Scores on validation data, and the pass of a training whose weights score best."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.metrics import TagReport, evaluate_codes
from maxmargin.selection.encoded import Encoded
from maxmargin.solvers import Certificate, PassRecord, SolveResult
from maxmargin.solvers.driver import copy_weights, make_certificate
from maxmargin.solvers.machine import Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = [
    "BestPass",
    "PassScore",
    "PassScores",
    "Validation",
    "best_pass",
    "main_score",
    "report_of",
]


def report_of(chain: Chain, data: Encoded, weights: Any, threads: int = 1) -> TagReport:
    """Return how well weights tag some data.

    Parameters
    ----------
    chain : Chain
        The structure.
    data : Encoded
        What to tag.
    weights : array or SparseWeights
        Native weights.
    threads : int
        Number of threads.

    Returns
    -------
    TagReport
        Accuracies, chunk scores, confusions.
    """
    predicted = chain.predict_encoded(data.batch, weights, threads)
    return evaluate_codes(data.codes, predicted, data.batch.offsets, data.names)


def main_score(report: TagReport) -> float:
    """Return the figure by which models are chosen: F1 of chunks, or accuracy without chunks."""
    return report.f1 if report.has_chunks else report.token_accuracy


class PassScore(NamedTuple):
    """How good weights are on validation data.

    Attributes
    ----------
    value : float
        By which passes are compared; the higher the better.
    figures : dict
        What is noted of the pass.
    report : object
        More about it, for whoever keeps the pass.
    """

    value: float
    figures: dict[str, Any]
    report: Any = None


class BestPass(NamedTuple):
    """The model of a pass before the end that was the best on the validation data.

    Attributes
    ----------
    n_pass : int
        The pass.
    weights : array
        A copy of its weights, as native code takes them.
    certificate : Certificate
        Of these weights.
    report : object
        What the scorer said of them.
    """

    n_pass: int
    weights: NDArray[Any]
    certificate: Certificate
    report: Any


class PassScores(ABC):
    """An observer of training that scores the weights after passes and keeps the best ones.

    Cached passes are not scored: there may be dozens of them between two passes of the oracle.

    Parameters
    ----------
    on_score : callable or None
        Called with each score, a dict.
    """

    def __init__(self, on_score: Callable[[dict[str, Any]], object] | None = None) -> None:
        self._on_score = on_score
        self.scores: list[dict[str, Any]] = []
        self.best: tuple[float, int, NDArray[Any], Any] | None = None

    @abstractmethod
    def score(self, weights: NDArray[Any]) -> PassScore:
        """Return how good native weights are; they must not be kept."""

    def begin_pass(self, machine: Machine) -> None:  # noqa: B027 (an observer has it)
        """Do nothing."""

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Score the weights after a pass."""
        if record.kind in ("cached", "interior"):
            return False
        found = self.score(machine.weights)
        score = {"pass": record.n_pass, **found.figures}
        self.scores.append(score)
        if self._on_score is not None:
            self._on_score(score)
        better = self.best is None or found.value > self.best[0]
        if better and np.any(machine.weights):  # training that learned nothing has no best pass
            self.best = (found.value, record.n_pass, copy_weights(machine), found.report)
        return False


class Validation(PassScores):
    """Scores of a chain on encoded data.

    Parameters
    ----------
    chain : Chain
        The structure.
    data : Encoded
        Validation data.
    threads : int
        Number of threads.
    on_score : callable or None
        Called with each score, a dict.
    """

    def __init__(
        self,
        chain: Chain,
        data: Encoded,
        threads: int = 1,
        on_score: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__(on_score)
        self._chain = chain
        self._data = data
        self._threads = threads

    def score(self, weights: NDArray[Any]) -> PassScore:
        """Tag the data."""
        report = report_of(self._chain, self._data, weights, self._threads)
        figures = {
            "token_accuracy": report.token_accuracy,
            "f1": report.f1 if report.has_chunks else None,
        }
        return PassScore(main_score(report), figures, report)


def best_pass(
    scores: PassScores, result: SolveResult, at_end: float, threads: int
) -> BestPass | None:
    """Return the best pass of a training, if it was better than the end.

    Parameters
    ----------
    scores : PassScores
        What observed the training.
    result : SolveResult
        The end of it.
    at_end : float
        The score of the weights at the end.
    threads : int
        Number of threads.

    Returns
    -------
    BestPass or None
        None: the end was as good.
    """
    if scores.best is None or not scores.best[0] > at_end:
        return None
    _, n_pass, weights, report = scores.best
    # The dual of the end is a lower bound of every primal, also of these earlier weights.
    primal = result.engine.primal_of(weights, threads)
    widened = result.certificate.widened
    if weights.dtype != result.weights.dtype:  # the best pass came before that
        widened = None
    certificate = make_certificate(
        result.engine,
        primal,
        result.certificate.dual,
        result.certificate.n_examples,
        widened=widened,
    )
    return BestPass(n_pass, weights, certificate, report)
