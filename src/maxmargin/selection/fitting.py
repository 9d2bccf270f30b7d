"""One training of a chain on encoded data; the model of its end, or of its best pass.

Grids, folds, paths and searches (the other files of this folder) are series of such trainings. The
loop over passes is the driver's (`maxmargin.solvers.driver`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maxmargin.memory import require_memory
from maxmargin.metrics import TagReport
from maxmargin.regularizers import make_regularizer
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.validation import best_pass, main_score, report_of, validation_for
from maxmargin.solvers import Certificate, SolveResult, make_solver, solve
from maxmargin.solvers.driver import require_learned
from maxmargin.solvers.ending import best_pass_reason
from maxmargin.solvers.machine import Machine
from maxmargin.structures.weight_layout import StructureLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin._native import Problem
    from maxmargin.structures.chain import Chain

__all__ = ["FitOptions", "Outcome", "fit"]


@dataclass(frozen=True)
class FitOptions:
    """How to train; the parameters of `maxmargin.solvers.solve`."""

    solver: Any = "sdm"
    regularizer: Any = None
    gap: float = 0.01
    max_passes: int | None = None
    time_limit: float | None = None
    dtype: str = "float32"
    threads: int = 1
    seed: int | None = 0
    checkpoint: Any = None
    resume: bool = False
    start: Any = None


@dataclass
class Outcome:
    """A trained model.

    Attributes
    ----------
    C : float
        The C of training.
    result : SolveResult
        Weights, certificate and history of the end of training.
    weights : array
        The weights to keep: of the end, or of the pass that was best on the validation data.
    certificate : Certificate
        Of these weights.
    report : TagReport or None
        What these weights reach on the validation data.
    best_pass : int or None
        The pass after which these weights were there; None: the end.
    scores : list of dict
        Accuracy and F1 on the validation data, pass by pass.
    gap_asked : float
        The relative gap that training was to reach.
    """

    C: float
    result: SolveResult
    weights: NDArray[Any]
    certificate: Certificate
    report: TagReport | None = None
    best_pass: int | None = None
    scores: list[dict[str, Any]] = field(default_factory=list)
    gap_asked: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the certificate is within the gap asked for, or the solver's own rule holds.

        The solver's rule is about the end of training, so it does not count for the weights of an
        earlier pass.
        """
        if self.best_pass is None:
            return self.result.converged
        return self.certificate.gap <= self.gap_asked

    @property
    def stop_reason(self) -> str:
        """Why training ended, and after which pass these weights were there."""
        reason = self.result.stop_reason
        if self.best_pass is None:
            return reason
        return best_pass_reason(self.best_pass, self.result.n_passes, reason)


def fit(
    chain: Chain,
    problem: Problem,
    C: float,
    options: FitOptions,
    *,
    valid: Encoded | None = None,
    callbacks: Iterable[Any] = (),
    on_score: Callable[[dict[str, Any]], object] | None = None,
    machine: Machine | None = None,
    may_be_empty: bool = False,
) -> Outcome:
    """Train once.

    Parameters
    ----------
    chain : Chain
        The structure, prepared.
    problem : Problem
        The training data.
    C : float
        Weight of the loss.
    options : FitOptions
        How to train.
    valid : Encoded or None
        Data on which the best pass is chosen; None: the end of training is kept.
    callbacks : iterable
        As for `maxmargin.solvers.solve`.
    on_score : callable or None
        Called with each score on the validation data.
    machine : Machine or None
        The machine of an earlier training on the same problem, from whose end this one starts.
    may_be_empty : bool
        Whether weights that are all zero are returned although training did not prove that they
        are the optimum. The models of a series may be like that: the caller checks the chosen one.

    Returns
    -------
    Outcome
        The model.

    Raises
    ------
    NothingLearnedError
        If training stopped (at a limit, for example) before it learned anything.
    KeyboardInterrupt
        If Ctrl-C came before it learned anything.
    """
    validation = None
    if valid is not None:
        validation = validation_for(chain, valid, problem, options.threads, on_score)
    require_memory(*chain.memory_needed(options.dtype))
    layout = StructureLayout(chain, chain.layout.size, options.dtype)
    result = solve(
        problem,
        make_solver(options.solver),
        C=C,
        dtype=options.dtype,
        regularizer=make_regularizer(options.regularizer).bound(layout),
        gap=options.gap,
        max_passes=options.max_passes,
        time_limit=options.time_limit,
        n_jobs=options.threads,
        random_state=options.seed,
        # The score of a pass is known before the line about it is written.
        callbacks=[*([] if validation is None else [validation]), *callbacks],
        checkpoint=options.checkpoint,
        resume=options.resume,
        engine=machine,
        start=options.start if machine is None else None,
        warn=False,
    )
    if not may_be_empty:
        require_learned(result)
    outcome = Outcome(C, result, result.weights, result.certificate, gap_asked=options.gap)
    if valid is None or validation is None:
        return outcome
    outcome.report = report_of(chain, valid, result.weights, options.threads)
    outcome.scores = validation.scores
    best = best_pass(validation, result, main_score(outcome.report), options.threads)
    if best is not None:
        outcome.best_pass, outcome.weights, outcome.certificate, outcome.report = best
    return outcome
