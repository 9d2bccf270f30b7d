"""The one driver of all solvers.

A solver makes passes; the driver decides whether there is another one. It owns the clock, the gap
tolerance, the history, callbacks, progress on standard error, checkpoints, Ctrl-C, the size of the
weights and the final certificate. The passes between two certificates are `maxmargin.solvers.run`.
"""

from __future__ import annotations

import os
import time
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.checkpoint import Beside, load_checkpoint, save_checkpoint
from maxmargin.solvers.ending import (
    ending,
    not_reached,
    nothing_learned,
    rounding_reason,
    was_interrupted,
)
from maxmargin.solvers.helpers import batch_size, with_helpers
from maxmargin.solvers.history import History
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.limits import PassLimit
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.observers import Callback, PassObserver
from maxmargin.solvers.ownership import one_at_a_time
from maxmargin.solvers.planting import begin_from
from maxmargin.solvers.refusals import check_compatible
from maxmargin.solvers.registry import SOLVERS
from maxmargin.solvers.run import Run
from maxmargin.solvers.steps import Context
from maxmargin.solvers.windows import windows_identity

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

@dataclass
class SolveResult:
    """What training gives back.

    Attributes
    ----------
    weights : ndarray, or KernelWeights of a problem with a kernel
        The weights in the engine's layout, rebuilt from the multipliers. They are of the type asked
        for, or of float64 where that was not enough (`Certificate.widened`).
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
@with_helpers
def solve(
    problem: Problem,
    solver: Solver,
    *,
    C: float,
    dtype: str = "float32",
    regularizer: Regularizer | str | None = None,
    gap: float = 0.01,
    max_passes: int | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    verbose: int = 0,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    callbacks: Iterable[Callback | PassObserver] | None = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    beside: Beside | None = None,
    engine: Machine | None = None,
    start: Any = None,
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
        Size of the weights during training; multipliers and certificates are 8-byte. Where rounding
        of float32 weights keeps the gap above the one asked for, training goes on with float64 ones
        by itself, and float64 weights are returned: the certificate is of them.
    regularizer : Regularizer, "l2" or None
        Ω: `L2` (None too), `ElasticNet`, or what else the solver can do.
    gap : float
        Stop when the relative duality gap is at most this.
    max_passes : int or None
        Stop after so many passes. None: after about half a minute of counted work, and after no
        fewer than 1000 passes (``maxmargin.solvers.limits``).
    time_limit : float or None
        Stop after so many seconds of training, whatever they were spent on (the search for a step
        size and the linear programs of hard margins included); the pass under way is cut short.
        Callbacks and the final certificate are not counted.
    n_jobs : int
        Threads. With more than one, each makes the steps on a share of the examples where that
        pays: runs with another number of threads agree in what they certify, not to the bit, unless
        the solver is ``deterministic``. Elsewhere they
        share passes at a fixed w, and the result does not depend on them; of a structure in Python
        it depends on whether there is more than one, which lets other processes answer for the
        oracle.
    verbose : int
        1: a line for each pass that knows the gap; 2: a line for each pass.
    random_state : int, RandomState, Generator or None
        Seed of the visiting order.
    callbacks : iterable of callable or PassObserver
        Each is called with the `PassRecord` of every pass; a true answer ends the training. A
        `PassObserver` has its methods called instead.
    checkpoint : path-like or None
        Where to save the run, every ``checkpoint_seconds`` and at the end. If that fails (a full
        disk), training goes on, and the last checkpoint that could be written stays.
    checkpoint_seconds : float
        Least time between two checkpoints.
    resume : bool
        Go on from the checkpoint if it exists.
    beside : Beside or None
        What a loop around this training (``maxmargin.solvers.cccp``) keeps in its checkpoints.
    engine : Machine or None
        Go on from the multipliers of this engine (a warm start).
    start : array, path-like or None
        Begin with the planes that the oracle finds under these weights, which are of the native
        layout; or from the multipliers of a checkpoint of the same run but for its C
        (``maxmargin.solvers.planting``). Not with ``engine``.
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
        If another training goes on with ``engine``.
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
    limit = PassLimit(None if max_passes is None else check_whole("max_passes", max_passes, 1))
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
    planted = 0  # calls of the oracle before the first pass
    rng = np.random.default_rng(_seed(random_state))
    single = dtype == "float32" and problem.offers_single
    if engine is None:
        machine = solver.start(problem, C, regularizer, single)
        if start is not None:
            hashed = not hasattr(start, "shape")  # a checkpoint, which must be of the same data
            identity = _identity(problem, machine, C, solver, regularizer, hashed=hashed)
            machine, planted = begin_from(
                start, machine, solver, regularizer, identity=identity, rng=rng, threads=n_jobs
            )
    else:
        if start is not None:
            raise ValueError("start and engine are both where to begin; expected one of them")
        machine = engine
        if not machine.solves(problem):
            raise NotCompatibleError("the engine to go on from was made for another problem")
        solver.continue_from(machine, C, regularizer)
    context = Context(
        n_examples=problem.n_examples,
        rng=rng,
        threads=n_jobs,
        slow_oracle=problem.slow_oracle,
        batch=batch_size(problem, n_jobs),
        warm=engine is not None or start is not None,
        dual=machine.dual(),
        windows=None if problem.windows is None else problem.windows.ends,
    )
    run = Run(
        machine,
        solver,
        context,
        callbacks=list(callbacks or ()),
        verbose=verbose,
        asked=gap,
        limit=limit,
        time_limit=time_limit,
    )
    run.seconds = time.perf_counter() - begin
    run.oracle_calls = planted
    hashed = checkpoint is not None
    identity = _identity(problem, machine, C, solver, regularizer, hashed=hashed)
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
            save_checkpoint(checkpoint, machine, run.state(), identity, beside)
        except OSError as error:  # a full disk must not cost the model
            if not warned:
                warned = True
                warnings.warn(
                    f"{os.fspath(checkpoint)}: the checkpoint could not be written "
                    f"({error.strerror or error}); training goes on without it",
                    CheckpointWarning,
                    stacklevel=2,
                )

    while True:
        run.loop(save, checkpoint_seconds)
        # Before the certificate, which replaces the weights by rebuilt ones: a resumed run must
        # find exactly what an uninterrupted one would have had.
        with HeldInterrupt() as held:  # a model without its certificate is none
            save()
            primal, dual = machine.certify(n_jobs)
        if held.came and not run.interrupted:
            run.interrupt()
        certificate = make_certificate(
            machine, primal, dual, problem.n_examples, widened=run.widened
        )
        given_up = run.own or run.interrupted or certificate.missed is not None
        if certificate.gap <= gap or not run.by_gap or given_up:
            break
        # The last pass found the gap small enough; the certificate says that it is not.
        if not run.refuse(certificate.gap, dual):
            if not run.cause:
                run.cause = rounding_reason(str(machine.weights.dtype), gap, run.no_room)
            break
    converged, reason = ending(
        certificate, gap, cause=run.cause, own=run.own, widened=run.widened
    )
    if warn and not converged and (certificate.missed is not None or not run.interrupted):
        from maxmargin.errors import ConvergenceWarning

        warnings.warn(
            not_reached(certificate, reason, gap, SOLVERS),
            ConvergenceWarning,
            stacklevel=4,  # one_at_a_time and with_helpers stand between
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
    machine: Machine,
    primal: float,
    dual: float,
    n_examples: int,
    *,
    widened: int | None = None,
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
    widened : int or None
        The pass after which 8-byte weights took the place of 4-byte ones.

    Returns
    -------
    Certificate
        Approximate where the oracle may have missed more than rounding.
    """
    average = abs(primal) / (machine.C * n_examples)
    approximate = machine.oracle_error_bound > 1e-6 * max(average, 1e-12)
    missed = _missed(machine, primal, dual)
    return Certificate(
        primal, dual, machine.C, n_examples, approximate or missed is not None, missed, widened
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


def _identity(
    problem: Problem,
    machine: Machine,
    C: float,
    solver: Solver,
    regularizer: Regularizer,
    *,
    hashed: bool,
) -> dict[str, Any]:
    """Return what a run solves; with a hash of the data if it is for a checkpoint."""
    made_as, n_weights = machine.made_as
    identity = {
        "n_examples": problem.n_examples,
        "n_weights": n_weights,
        "C": C,
        "dtype": made_as,
        "solver": f"{solver.name}: {solver}",
        "regularizer": str(regularizer),
        "linear_term": _array_hash(problem.linear_term),
    }
    if problem.windows is not None:
        identity["windows"] = windows_identity(problem.windows)
    if hashed:
        identity["data"] = f"{problem.data_hash():016x}"
    return identity


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state


def _array_hash(term: Any) -> str | None:
    """Return a hash of a problem's linear term, so that a checkpoint knows its own."""
    if term is None:
        return None
    return f"{zlib.crc32(np.ascontiguousarray(term, dtype=np.float64).tobytes()):08x}"
