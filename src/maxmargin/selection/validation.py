"""Scores on validation data, and the pass of a training whose weights score best."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.metrics import TagReport, evaluate_codes
from maxmargin.selection.encoded import Encoded
from maxmargin.solvers import PassRecord
from maxmargin.solvers.driver import copy_weights
from maxmargin.solvers.machine import Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = ["Validation", "main_score", "report_of"]


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


class Validation:
    """An observer of training that scores the weights after passes and keeps the best ones.

    Cached passes are not scored: there may be dozens of them between two passes of the oracle.

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
        self._chain = chain
        self._data = data
        self._threads = threads
        self._on_score = on_score
        self.scores: list[dict[str, Any]] = []
        self.best: tuple[float, int, NDArray[Any], TagReport] | None = None

    def begin_pass(self, machine: Machine) -> None:
        """Do nothing."""

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Score the weights after a pass."""
        if record.kind in ("cached", "interior"):
            return False
        report = report_of(self._chain, self._data, machine.weights, self._threads)
        score = {
            "pass": record.n_pass,
            "token_accuracy": report.token_accuracy,
            "f1": report.f1 if report.has_chunks else None,
        }
        self.scores.append(score)
        if self._on_score is not None:
            self._on_score(score)
        better = self.best is None or main_score(report) > self.best[0]
        if better and np.any(machine.weights):  # training that learned nothing has no best pass
            self.best = (main_score(report), record.n_pass, copy_weights(machine), report)
        return False
