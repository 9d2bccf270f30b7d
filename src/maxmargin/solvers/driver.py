"""The one driver of all solvers.

A solver makes passes; the driver decides whether there is another one. It owns the clock, the gap
tolerance, the history, callbacks, progress on standard error, checkpoints, Ctrl-C and the final
certificate.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from maxmargin._native import Problem, aligned_array
from maxmargin.checks import check_number, check_whole
from maxmargin.errors import (
    CheckpointWarning,
    ModelFormatError,
    NotCompatibleError,
    NothingLearnedError,
)
from maxmargin.io.atomic import check_target
from maxmargin.regularizers import Regularizer, make_regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.certificate import Certificate, gap_scale, relative_gap
from maxmargin.solvers.checkpoint import load_checkpoint, save_checkpoint
from maxmargin.solvers.ending import (
    INTERRUPTED,
    ending,
    not_reached,
    nothing_learned,
    rounding_reason,
    was_interrupted,
)
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.ownership import one_at_a_time
from maxmargin.solvers.refusals import check_compatible
from maxmargin.solvers.state import RunState, check_stored
from maxmargin.solvers.steps import Context, Step

__all__ = [
    "Callback",
    "PassObserver",
    "SolveResult",
    "copy_weights",
    "make_certificate",
    "model_weights",
    "require_learned",
    "solve",
]

#: Called after each pass with its record; a true answer ends the training.
Callback = Callable[[PassRecord], object]


@runtime_checkable
class PassObserver(Protocol):
    """A callback that is also told when a pass begins, and that may look at the machine.

    It must not change the machine. What it needs of the weights it copies (`copy_weights`): the
    next pass goes on in the same memory.
    """

    def begin_pass(self, machine: Machine) -> None:
        """Take note that a pass begins."""

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Take note of a finished pass; a true answer ends the training.

        A pass that Ctrl-C cut short has no record and does not come here.
        """


#: Counting non-zeros of more weights than this would cost a noticeable share of a pass.
COUNTED_WEIGHTS = 1_000_000

#: A certificate may exceed the tolerance by rounding of the weights. Training goes on while the
#: certificates become better. It ends after so many in a row, and this share of all passes, that
#: brought none that is.
#: (With a cost-to-move of β the gap is met at a w that lags behind; then as often as needed.)
MAX_CONFIRMATIONS = 3
NO_BETTER = 0.1
#: A certificate is better if its gap is below this share of the best one.
BETTER = 0.9
#: Training ends after so many passes in a row that a solver calls stuck.
MAX_STUCK = 5


@dataclass
class SolveResult:
    """What training gives back.

    Attributes
    ----------
    weights : ndarray, or KernelWeights of a problem with a kernel
        The weights in the engine's layout, rebuilt from the multipliers.
    certificate : Certificate
        Primal, dual and gap of these weights.
    history : History
        One record per pass.
    converged : bool
        Whether the certificate is within the gap asked for, or the solver's own criterion holds.
    stop_reason : str
        Why training ended, in words: the limit that ended it, the solver's criterion if it holds,
        and the certificate's gap if it is within the one asked for.
    n_passes : int
        Passes made, those before a resume included.
    engine : Machine
        What the solver moved (the dual engine, for most), to go on from.
    """

    weights: Any
    certificate: Certificate
    history: History
    converged: bool
    stop_reason: str
    n_passes: int
    engine: Machine

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return was_interrupted(self.stop_reason)


@one_at_a_time
def solve(
    problem: Problem,
    solver: Solver,
    *,
    C: float,
    dtype: str = "float32",
    regularizer: Regularizer | str | None = None,
    gap: float = 0.01,
    max_passes: int = 1000,
    time_limit: float | None = None,
    n_jobs: int = 1,
    verbose: int = 0,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    callbacks: Iterable[Callback | PassObserver] | None = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    engine: Machine | None = None,
    warn: bool = True,
) -> SolveResult:
    """Train.

    Parameters
    ----------
    problem : Problem
        A native problem: a structure joined with its data.
    solver : Solver
        The algorithm.
    C : float
        The C of Ω(w) + C Σ ξ_i.
    dtype : {"float32", "float64"}
        Size of the weights during training; multipliers and certificates are 8-byte.
    regularizer : Regularizer, "l2" or None
        Ω: `L2` (None too), `ElasticNet`, or what else the solver can do.
    gap : float
        Stop when the relative duality gap is at most this.
    max_passes : int
        Stop after so many passes.
    time_limit : float or None
        Stop after so many seconds of training, whatever they were spent on (the search for a step
        size and the linear programs of hard margins included); the pass under way is cut short.
        Callbacks and the final certificate are not counted.
    n_jobs : int
        Threads for passes at a fixed w. The result does not depend on it.
    verbose : int
        1: a line for each pass that knows the gap; 2: a line for each pass.
    random_state : int, RandomState, Generator or None
        Seed of the visiting order.
    callbacks : iterable of callable or PassObserver
        Each is called with the `PassRecord` of every pass; a true answer ends the training. A
        `PassObserver` has its methods called instead.
    checkpoint : path-like or None
        Where to save the run, every `checkpoint_seconds` and at the end. If that fails (a full
        disk), training goes on, and the last checkpoint that could be written stays.
    checkpoint_seconds : float
        Least time between two checkpoints.
    resume : bool
        Go on from the checkpoint if it exists.
    engine : Machine or None
        Go on from the multipliers of this engine (a warm start).
    warn : bool
        Whether to issue a `ConvergenceWarning` if training stopped before it was done.

    Returns
    -------
    SolveResult
        Weights, certificate, history.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range.
    NotCompatibleError
        If problem, solver and regulariser do not go together.
    InUseError
        If another training goes on with `engine`.
    FloatingPointError
        If the objective stops being finite.

    Warns
    -----
    ConvergenceWarning
        If training ended before the gap was reached.
    CheckpointWarning
        Once, if a checkpoint could not be written.
    """
    C = check_number("C", C, above=0.0)
    gap = check_number("gap", gap, least=0.0)
    max_passes = check_whole("max_passes", max_passes, 1)
    n_jobs = check_whole("n_jobs", n_jobs, 1)
    if time_limit is not None:
        time_limit = check_number("time_limit", time_limit, above=0.0)
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')
    if resume and checkpoint is None:
        raise ValueError("resume=True needs a checkpoint to resume from")
    regularizer = make_regularizer(regularizer)
    check_compatible(solver, problem, regularizer)

    begin = time.perf_counter()
    if engine is None:
        single = dtype == "float32" and problem.offers_single
        machine = solver.start(problem, C, regularizer, single)
    else:
        machine = engine
        if not machine.solves(problem):
            raise NotCompatibleError("the engine to go on from was made for another problem")
        solver.continue_from(machine, C, regularizer)
    context = Context(
        n_examples=problem.n_examples,
        rng=np.random.default_rng(_seed(random_state)),
        threads=n_jobs,
        # What passes find below the rounding of the weights does not mean much: then it is the
        # certificate's turn, which also makes the weights anew.
        gap=max(gap, 0.5 * float(np.finfo(machine.weights.dtype).eps)),
        slow_oracle=problem.slow_oracle,
        warm=engine is not None,
        dual=machine.dual(),
    )
    run = _Run(
        machine,
        solver,
        context,
        callbacks=list(callbacks or ()),
        verbose=verbose,
        time_limit=time_limit,
    )
    run.seconds = time.perf_counter() - begin
    identity = {
        "n_examples": problem.n_examples,
        "n_weights": int(machine.weights.size),
        "C": C,
        "dtype": str(machine.weights.dtype),
        "solver": f"{solver.name}: {solver}",
        "regularizer": str(regularizer),
        "linear_term": _array_hash(problem.linear_term),
    }
    if checkpoint is not None:
        identity["data"] = f"{problem.data_hash():016x}"
    if resume and checkpoint is not None and Path(checkpoint).exists():
        saved = load_checkpoint(checkpoint, machine, identity)
        try:
            run.restore(saved)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelFormatError(
                f"{os.fspath(checkpoint)}: the state of the run is damaged: {error}"
            ) from error

    if checkpoint is not None:
        check_target(checkpoint)  # a wrong name is better told now than after the first pass
    warned = False

    def save() -> None:
        nonlocal warned
        if checkpoint is None:
            return
        try:
            save_checkpoint(checkpoint, machine, run.state(), identity)
        except OSError as error:  # a full disk must not cost the model
            if not warned:
                warned = True
                warnings.warn(
                    f"{os.fspath(checkpoint)}: the checkpoint could not be written "
                    f"({error.strerror or error}); training goes on without it",
                    CheckpointWarning,
                    stacklevel=2,
                )

    smallest, idle, reached = math.inf, 0, 0
    while True:
        run.loop(max_passes, save, checkpoint_seconds)
        # Before the certificate, which replaces the weights by rebuilt ones: a resumed run must
        # find exactly what an uninterrupted one would have had.
        with HeldInterrupt() as held:  # a model without its certificate is none
            save()
            primal, dual = machine.certify(n_jobs)
        if held.came and not run.interrupted:
            run.interrupt()
        certificate = make_certificate(machine, primal, dual, problem.n_examples)
        given_up = run.own or run.interrupted or certificate.missed is not None
        if certificate.gap <= gap or not run.by_gap or given_up:
            break
        # The last pass found the gap small enough; the certificate says that it is not.
        if len(run.history) >= max_passes:
            run.cause = f"max_passes = {max_passes}"
            break
        n_passes, idle = len(run.history), idle + 1
        if certificate.gap < BETTER * smallest:
            idle, reached = 0, n_passes
        smallest = min(smallest, certificate.gap)
        exhausted = idle >= MAX_CONFIRMATIONS and n_passes - reached >= NO_BETTER * n_passes
        if exhausted and solver.nu == 0:
            run.cause = rounding_reason(str(machine.weights.dtype), gap)
            break
        run.continue_from(dual)
    converged, reason = ending(certificate, gap, cause=run.cause, own=run.own)
    if warn and not converged and (certificate.missed is not None or not run.interrupted):
        from maxmargin.errors import ConvergenceWarning

        warnings.warn(
            not_reached(certificate, reason, gap),
            ConvergenceWarning,
            stacklevel=3,  # one_at_a_time stands between
        )
    run.mark_final(primal, dual)
    return SolveResult(
        model_weights(problem, machine),
        certificate,
        run.history,
        converged,
        reason,
        len(run.history),
        machine,
    )


def make_certificate(
    machine: Machine, primal: float, dual: float, n_examples: int
) -> Certificate:
    """Return a certificate of what a machine has just computed from scratch.

    Parameters
    ----------
    machine : Machine
        What was trained, which knows how far its oracle may have been from the best outputs.
    primal, dual : float
        From `Machine.certify`, or the primal from `Machine.primal_of`.
    n_examples : int
        Number of examples.

    Returns
    -------
    Certificate
        Approximate where the oracle may have missed more than rounding.
    """
    average = abs(primal) / (machine.C * n_examples)
    approximate = machine.oracle_error_bound > 1e-6 * max(average, 1e-12)
    missed = _missed(machine, primal, dual)
    return Certificate(
        primal, dual, machine.C, n_examples, approximate or missed is not None, missed
    )


def require_learned(result: SolveResult) -> None:
    """Refuse a model that learned nothing: weights of zero that nothing shows to be the optimum.

    Parameters
    ----------
    result : SolveResult
        What `solve` gave.

    Raises
    ------
    NothingLearnedError
        If all weights are zero and training did not converge.
    KeyboardInterrupt
        If that is because of Ctrl-C.
    """
    if result.converged or np.any(result.engine.weights):
        return
    if result.interrupted:
        raise KeyboardInterrupt
    raise NothingLearnedError(nothing_learned(result.certificate, result.stop_reason))


def _missed(machine: Machine, primal: float, dual: float) -> int | None:
    """Return an example whose argmax is known to have missed a better output, or None.

    No model has a primal below the dual: where that seems to be so, an argmax missed something.
    """
    if machine.missed is None and dual > primal + 1e-6 * abs(primal) + 1e-12:
        return Certificate.UNKNOWN
    return machine.missed


def copy_weights(machine: Machine) -> np.ndarray[Any, Any]:
    """Return a copy of a machine's present weights, aligned as native code needs them.

    Parameters
    ----------
    machine : Machine
        What is trained.

    Returns
    -------
    ndarray
        The weights in the machine's layout and type.
    """
    present = machine.weights
    weights: np.ndarray[Any, Any] = aligned_array(present.size, present.dtype == np.float32)
    weights[:] = present
    return weights


def model_weights(problem: Problem, machine: Machine) -> Any:
    """Return what to predict with, as the machine has it now.

    Parameters
    ----------
    problem : Problem
        What is trained.
    machine : Machine
        What the solver moves.

    Returns
    -------
    ndarray, or KernelWeights of a problem with a kernel
        A copy.
    """
    own = getattr(problem, "model_weights", None)
    return copy_weights(machine) if own is None else own(machine)


class _Run:
    """One training run between its first and last pass."""

    def __init__(
        self,
        machine: Machine,
        solver: Solver,
        context: Context,
        *,
        callbacks: list[Callback | PassObserver],
        verbose: int,
        time_limit: float | None,
    ) -> None:
        self.machine, self.solver, self.context = machine, solver, context
        self.callbacks, self.verbose, self.time_limit = callbacks, verbose, time_limit
        self.solver_state = solver.init(context)
        self.history = History()
        self.seconds = 0.0
        self.oracle_calls = 0
        self.by_gap = False  # stopped because a pass at one w found the gap small enough
        self.own = ""  # the solver's own criterion, once it holds
        self.cause = ""  # what ended the passes otherwise
        self.stuck = 0  # passes in a row that could not move

    def state(self) -> RunState:
        return RunState(
            solver=dict(self.solver_state),
            rng=dict(self.context.rng.bit_generator.state),
            dual=self.context.dual,
            seconds=self.seconds,
            oracle_calls=self.oracle_calls,
            history=self.history.to_dicts(),
        )

    def restore(self, state: RunState) -> None:
        self.solver.check_state(state.solver, self.machine, self.context)
        check_stored("seconds", state.seconds, 0.0)
        check_stored("oracle_calls", state.oracle_calls, 0)
        dual, counted = float(state.dual), self.machine.dual()
        # (With a cost-to-move of β the one counted from passes lags behind.)
        wrong = not abs(dual - counted) <= 0.01 * max(abs(counted), 1e-6)
        if not math.isfinite(dual) or (wrong and self.solver.nu == 0):
            raise ValueError(f"the dual is {dual:g} there, and {counted:g} by what else is there")
        self.solver_state = state.solver
        self.context.rng.bit_generator.state = state.rng
        self.context.dual = dual
        self.seconds = float(state.seconds)
        self.oracle_calls = state.oracle_calls
        self.history = History.from_dicts(state.history)

    def continue_from(self, dual: float) -> None:
        """Continue, with the dual of a certificate that was not good enough after all."""
        self.by_gap = False
        self.context.dual = dual

    def loop(self, max_passes: int, save: Callable[[], None], save_seconds: float) -> None:
        saved = time.perf_counter()
        while not (self.by_gap or self.own or self.cause):
            if len(self.history) >= max_passes:
                self.cause = f"max_passes = {max_passes}"
                return
            if self.time_limit is not None:
                left = self.time_limit - self.seconds
                # The first pass always begins, however long it took to set things up: a history is
                # never empty.
                self.context.seconds_left = max(left, 1e-9)
                if left <= 0 and len(self.history):
                    self.cause = f"time_limit = {self.time_limit:g} s"
                    return
            for callback in self.callbacks:
                if isinstance(callback, PassObserver):
                    callback.begin_pass(self.machine)
            try:
                record = self._pass()
                if time.perf_counter() - saved > save_seconds:
                    save()
                    saved = time.perf_counter()
                if self._ask_callbacks(record):
                    return
            except KeyboardInterrupt:
                # The machine ended the pass in a consistent state; what it has is a good model. The
                # gain may not have been counted: a run resumed from here must know the true dual.
                self.context.dual = self.machine.dual()
                self.interrupt()
                return

    @property
    def interrupted(self) -> bool:
        """Whether somebody pressed Ctrl-C."""
        return self.cause == INTERRUPTED

    def interrupt(self) -> None:
        """Take note that somebody pressed Ctrl-C."""
        self.cause = INTERRUPTED
        print("maxmargin: interrupted; finishing with the model so far", file=sys.stderr)

    def _pass(self) -> PassRecord:
        begin = time.perf_counter()
        step = self.solver.step(self.machine, self.solver_state, self.context)
        exact = self._exact_gap(step)
        self.seconds += time.perf_counter() - begin
        return self._digest(step, exact)

    def _exact_gap(self, step: Step) -> float:
        """P - D at the present w, if the pass knows it or comes close to the tolerance."""
        result = step.result
        if result.interrupted:
            return math.nan
        dual = self.context.dual + result.gain
        allowed = self.context.gap * gap_scale(dual + result.gap, dual)
        if step.kind == "exact" and result.gap <= allowed:
            # The blocks' gaps were summed while w moved: confirm them at one w.
            primal = self.machine.objective(self.context.threads)
            self.oracle_calls += self.context.n_examples
            return primal - dual
        return step.exact_gap

    def _digest(self, step: Step, exact: float) -> PassRecord:
        """Record a pass and see whether it was the last."""
        result, context = step.result, self.context
        context.dual += result.gain
        self.oracle_calls += result.oracle_calls
        hard = self.solver.slack == "hard"  # whose primal is infinite for a while
        known = math.isfinite(result.gap) or result.interrupted or (hard and result.gap == math.inf)
        if not (math.isfinite(context.dual) and known):
            raise FloatingPointError(
                f"the objective is not finite after pass {len(self.history) + 1} "
                f"(dual {context.dual}, gap {result.gap}). Features of very large size? "
                'Scale them, or use dtype="float64"'
            )
        primal = context.dual + exact
        record = PassRecord(
            n_pass=len(self.history) + 1,
            kind=step.kind,
            seconds=self.seconds,
            oracle_calls=self.oracle_calls,
            primal=primal,
            dual=context.dual,
            gap=relative_gap(primal, context.dual),
            gap_estimate=relative_gap(context.dual + result.gap, context.dual)
            if step.kind not in ("cached", "interior")
            else math.nan,
            planes=self.machine.size()["planes"],
            nonzeros=self._nonzeros(),
        )
        self.history.append(record)
        self._report(record)
        begin = time.perf_counter()
        left = None if self.time_limit is None else self.time_limit - self.seconds
        self.machine.after_pass(record, left)
        self.seconds += time.perf_counter() - begin
        self.by_gap = record.gap <= context.gap
        if step.finished:
            self.own = step.reason
        self.stuck = self.stuck + 1 if step.stuck else 0
        if self.stuck >= MAX_STUCK and not (self.by_gap or self.own):
            self.cause = f"no step raises the dual any more: rounding of {self._dtype} weights"
        return record

    @property
    def _dtype(self) -> str:
        return str(self.machine.weights.dtype)

    def _ask_callbacks(self, record: PassRecord) -> bool:
        """Tell the callbacks of a pass; true if one of them wants to stop."""
        # Every callback sees every pass, whatever the others answer.
        answers = [
            callback.end_pass(record, self.machine)
            if isinstance(callback, PassObserver)
            else callback(record)
            for callback in self.callbacks
        ]
        if any(answers) and not (self.by_gap or self.own or self.cause):
            self.cause = "stopped by a callback"
        return bool(any(answers))

    def mark_final(self, primal: float, dual: float) -> None:
        """Put the certified numbers into the last record."""
        if len(self.history) == 0:
            return
        last = asdict(self.history[-1])
        last.update(primal=primal, dual=dual, gap=relative_gap(primal, dual))
        last["nonzeros"] = int(np.count_nonzero(self.machine.weights))
        self.history = History([*self.history[:-1], PassRecord(**last)])

    def _nonzeros(self) -> int:
        weights = self.machine.weights
        return int(np.count_nonzero(weights)) if weights.size <= COUNTED_WEIGHTS else -1

    def _report(self, record: PassRecord) -> None:
        if self.verbose >= 2 or (self.verbose == 1 and record.kind == "collect"):
            known = f"{100 * record.gap:8.3f} %" if math.isfinite(record.gap) else " " * 10
            print(
                f"pass {record.n_pass:4d} {record.kind:8s} {record.seconds:8.2f} s  "
                f"dual {record.dual:14.6g}  gap {known}  planes {record.planes}",
                file=sys.stderr,
            )


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state


def _array_hash(term: Any) -> str | None:
    """Return a hash of a problem's linear term, so that a checkpoint knows its own."""
    if term is None:
        return None
    return f"{zlib.crc32(np.ascontiguousarray(term, dtype=np.float64).tobytes()):08x}"
