"""Scores on validation data, and the pass of a training whose weights score best."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.metrics import TagReport, evaluate_codes
from maxmargin.selection.encoded import Encoded
from maxmargin.solvers import Certificate, PassRecord, SolveResult
from maxmargin.solvers.driver import copy_weights, make_certificate, model_weights
from maxmargin.solvers.machine import Machine

if TYPE_CHECKING:
    from maxmargin._native import Problem
    from maxmargin.structures.chain import Chain

__all__ = [
    "BestPass",
    "KernelValidation",
    "PassScore",
    "PassScores",
    "Validation",
    "best_pass",
    "main_score",
    "report_of",
    "validation_for",
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
    weights : array or KernelWeights
        A copy of its weights, as native code takes them.
    certificate : Certificate
        Of these weights.
    report : object
        What the scorer said of them.
    """

    n_pass: int
    weights: Any
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
        #: Score, pass, what `kept` gave, and report of the best pass.
        self.best: tuple[float, int, Any, Any] | None = None

    @abstractmethod
    def score(self, weights: Any) -> PassScore:
        """Return how good native weights are; they must not be kept."""

    def present(self, machine: Machine) -> Any:
        """Return what is scored: the weights of a machine as they are now."""
        return machine.weights

    def kept(self, machine: Machine) -> Any:
        """Return what is kept of a machine to have its present model again."""
        return copy_weights(machine)

    def model_of(self, kept: Any, result: SolveResult, threads: int) -> tuple[Any, float]:
        """Return the weights of what `kept` gave, and their primal, computed from scratch."""
        return kept, result.engine.primal_of(kept, threads)

    def begin_pass(self, machine: Machine) -> None:  # noqa: B027 (an observer has it)
        """Do nothing."""

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Score the weights after a pass."""
        if record.kind in ("cached", "interior"):
            return False
        found = self.score(self.present(machine))
        score = {"pass": record.n_pass, **found.figures}
        self.scores.append(score)
        if self._on_score is not None:
            self._on_score(score)
        better = self.best is None or found.value > self.best[0]
        if better and np.any(machine.weights):  # training that learned nothing has no best pass
            self.best = (found.value, record.n_pass, self.kept(machine), found.report)
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

    def score(self, weights: Any) -> PassScore:
        """Tag the data."""
        report = report_of(self._chain, self._data, weights, self._threads)
        figures = {
            "token_accuracy": report.token_accuracy,
            "f1": report.f1 if report.has_chunks else None,
        }
        return PassScore(main_score(report), figures, report)


class KernelValidation(Validation):
    """Scores of a chain with a kernel.

    The model is made of multipliers, so the state of the machine is kept, and is put back for the
    certificate of the best pass. A state of 4-byte weights cannot be put into a machine that went
    on with 8-byte ones: passes before that are scored, and not kept.

    Parameters
    ----------
    chain : Chain
        The structure.
    data : Encoded
        Validation data.
    problem : Problem
        The training problem.
    threads : int
        Number of threads.
    on_score : callable or None
        Called with each score, a dict.
    """

    def __init__(
        self,
        chain: Chain,
        data: Encoded,
        problem: Problem,
        threads: int = 1,
        on_score: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__(chain, data, threads, on_score)
        self._problem = problem
        self._widened = False

    def present(self, machine: Machine) -> Any:
        """Return the support tokens and their coefficients."""
        return model_weights(self._problem, machine)

    def kept(self, machine: Machine) -> Any:
        """Return the multipliers."""
        return machine.state()

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Score the weights after a pass."""
        if machine.widened != self._widened:
            self._widened, self.best = machine.widened, None
        return super().end_pass(record, machine)

    def model_of(self, kept: Any, result: SolveResult, threads: int) -> tuple[Any, float]:
        """Return the model of multipliers, and its primal; the machine is left as it was."""
        machine = result.engine
        end = machine.state()
        try:
            machine.restore(kept)
            primal, _ = machine.certify(threads)
            return model_weights(self._problem, machine), primal
        finally:
            machine.restore(end)


def validation_for(
    chain: Chain,
    data: Encoded,
    problem: Problem,
    threads: int = 1,
    on_score: Callable[[dict[str, Any]], object] | None = None,
) -> Validation:
    """Return the observer that scores the passes of a training of a chain.

    Parameters
    ----------
    chain, data, problem, threads, on_score
        As for `KernelValidation`.

    Returns
    -------
    Validation
        For problems with a kernel or without.
    """
    if problem.has_kernel:
        return KernelValidation(chain, data, problem, threads, on_score)
    return Validation(chain, data, threads, on_score)


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
    _, n_pass, kept, report = scores.best
    # The dual of the end is a lower bound of every primal, also of these earlier weights.
    weights, primal = scores.model_of(kept, result, threads)
    widened = result.certificate.widened
    if getattr(weights, "dtype", None) != getattr(result.weights, "dtype", None):
        widened = None  # the best pass came before that
    certificate = make_certificate(
        result.engine,
        primal,
        result.certificate.dual,
        result.certificate.n_examples,
        widened=widened,
    )
    return BestPass(n_pass, weights, certificate, report)
