"""CCCP: objectives with a concave part, by convex steps of the one driver.

The problem is

    minimise over w   Ω(w) + C Σ_i max_y F_i(y) - G(w),      G convex,

where -G is the concave part: of a latent structural SVM G(w) = C Σ_i max_h w·f(x_i, y_i, h) (Yu and
Joachims, "Learning structural SVMs with latent variables", ICML 2009; (13) of the dual-coordinate
paper is its convex step), of transductive learning the loss of the best labelling of unlabelled
examples ((12) of the transductive paper). The concave-convex procedure (Yuille and Rangarajan,
2003):

    1  impute: a linear function that touches G at the present w,  G(w') ≥ u₀·w' + constant
    2  convex step: minimise Ω(w) - w·u₀ + C Σ max F over w
    3  repeat until the objective does not fall any more

Step 2 is a training like any other: `solve` with the fixed linear term u₀ of the problem. Planes
are relative to reference outputs that never change, so all planes and multipliers stay from one
step to the next, and each begins where the one before it ended.

**The objective never rises.** With P_k the convex objective under the k-th imputation, constant
included, J(w) ≤ P_k(w) everywhere and J(w_{k-1}) = P_k(w_{k-1}). A step whose certificate has the
gap g_k ends with P_k(w_k) ≤ min P_k + g_k ≤ J(w_{k-1}) + g_k, so that J(w_k) can exceed J(w_{k-1})
by no more than g_k. A step that ends above J(w_{k-1}) goes on with a smaller gap until it does not;
where the gap asked for is reached and it is still above, w_{k-1} is kept and the procedure ends. So
the objectives in the history never rise. Where P_k(w_k) > J(w_{k-1}) + g_k, or where an imputation
lies below the one before it, a maximum was missed: an `ObjectiveRoseError` says so.

**Coarse first.** Early imputations are soon replaced, so the first convex step is solved to a gap
of `COARSE` only, and later ones to a share `FOLLOWS` of the relative decrease of the last
iteration; the gap asked for is required of the last. All steps together cost a few times one
training (``docs/latent.md`` has figures): another u₀ moves w away from what was found, and each
step has to come back.

Nothing here knows what is imputed: see `maxmargin.solvers.outer.ConcavePart`.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._native import Problem
from maxmargin.checks import check_number, check_whole
from maxmargin.errors import ModelFormatError, ObjectiveRoseError
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.checkpoint import Beside, load_beside
from maxmargin.solvers.driver import SolveResult, solve
from maxmargin.solvers.ending import INTERRUPTED
from maxmargin.solvers.history import History, PassRecord, continued
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.observers import Callback, PassObserver
from maxmargin.solvers.outer import (
    Accepted,
    ConcavePart,
    Imputation,
    OuterHistory,
    OuterRecord,
    linear_value,
    rounding_of,
)
from maxmargin.solvers.refusals import check_linear_term
from maxmargin.solvers.seeds import seed_of
from maxmargin.solvers.state import check_stored

__all__ = ["CCCPResult", "OuterCallback", "cccp"]

#: The relative gap of the first convex step, unless a larger one is asked for.
COARSE = 0.1
#: The gap of a step, as a share of the relative decrease of the objective in the last iteration.
FOLLOWS = 0.25
#: A step that ends above the last objective goes on with its gap divided by this.
FINER = 8.0

#: Called after each outer iteration with its record; a true answer ends the procedure.
OuterCallback = Callable[[OuterRecord], object]


@dataclass
class CCCPResult(SolveResult):
    """What the procedure gives back.

    The certificate is that of the convex step which the weights come from: with the outputs that
    were imputed for it. ``history`` has the passes of all steps.

    Attributes
    ----------
    objective : float
        The true objective of the weights, concave part included.
    outer : OuterHistory
        One record per outer iteration.
    """

    objective: float
    outer: OuterHistory


class _Passes(PassObserver):
    """Stands between the convex steps and the callbacks, which see one run of passes."""

    def __init__(self, callbacks: list[Callback | PassObserver], records: list[PassRecord]) -> None:
        self.callbacks = callbacks
        self.records = list(records)
        self.before = len(self.records)  # passes of earlier steps
        self.stopped = False

    def begin_step(self) -> None:
        self.before = len(self.records)

    def begin_pass(self, machine: Machine) -> None:
        for callback in self.callbacks:
            if isinstance(callback, PassObserver):
                callback.begin_pass(machine)

    def end_pass(self, record: PassRecord, machine: Machine) -> bool:
        counted = self.counted(record)
        answers = [
            callback.end_pass(counted, machine)
            if isinstance(callback, PassObserver)
            else callback(counted)
            for callback in self.callbacks
        ]
        self.stopped = self.stopped or any(map(bool, answers))
        return self.stopped

    def end_step(self, history: History) -> None:
        """Take the records of a step over; those of a resumed one include earlier passes."""
        self.records = [*self.records[: self.before], *map(self.counted, history)]

    def counted(self, record: PassRecord) -> PassRecord:
        """Return a record of the present step with the numbers of the whole run."""
        if self.before == 0:
            return record
        return continued(self.records[self.before - 1], record)


@dataclass
class _Loop:
    """Where the procedure is between two convex steps."""

    seed: int
    calls: int = 0  # of the driver
    asked: float = COARSE  # gap of the next step
    seconds: float = 0.0
    objective: float = math.inf  # of the best weights
    last_passes: int = 0  # at the end of the last outer iteration


def cccp(
    problem: Problem,
    solver: Solver,
    concave: ConcavePart,
    *,
    C: float,
    start: Imputation | None = None,
    dtype: str = "float32",
    regularizer: Regularizer | str | None = None,
    gap: float = 0.01,
    tol: float = 1e-3,
    coarse: float = COARSE,
    max_outer: int = 100,
    max_passes: int | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    verbose: int = 0,
    random_state: Any = None,
    callbacks: Iterable[Callback | PassObserver] | None = (),
    on_outer: OuterCallback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    engine: Machine | None = None,
    stage: str = "",
    warn: bool = True,
) -> CCCPResult:
    """Minimise Ω(w) + C Σ_i max_y F_i(y) - G(w) by the concave-convex procedure.

    Parameters
    ----------
    problem : Problem
        The convex part. Its ``linear_term`` is set before each convex step, and left as it was
        before the call at the end.
    solver : Solver
        A dual one with linear slacks: what makes the convex steps.
    concave : ConcavePart
        The -G.
    C, dtype, regularizer, n_jobs, random_state, checkpoint_seconds
        As for `maxmargin.solvers.driver.solve`.
    start : Imputation or None
        For the first convex step. None: u₀ = 0, the reference outputs themselves.
    gap : float
        Relative gap of the convex step that the result comes from.
    tol : float
        The procedure ends when the objective falls by no more than this share of it in an outer
        iteration whose convex step has the gap asked for, or when nothing is imputed anew.
    coarse : float
        Gap of the first convex step, if it is more than ``gap``; 0: all steps are solved to
        ``gap``.
    max_outer : int
        Most outer iterations.
    max_passes : int or None
        Most passes of one convex step; None: as `solve` has it.
    time_limit : float or None
        Most seconds of training, imputing included.
    verbose : int
        1: a line for each outer iteration. 2 and 3: what `solve` prints with 1 and 2 too.
    callbacks : iterable of callable or PassObserver
        Called after each pass, whose numbers go on from one convex step to the next; a true answer
        ends the procedure.
    on_outer : callable or None
        Called with the `OuterRecord` of each outer iteration; a true answer ends the procedure.
    checkpoint : path-like or None
        Where to save the run. One file holds the convex step under way and all around it.
    resume : bool
        Go on from the checkpoint if it exists, bit for bit.
    engine : Machine or None
        Go on from the multipliers of this engine.
    stage : str
        What `OuterRecord.stage` says.
    warn : bool
        Whether to issue a `ConvergenceWarning` if it stopped before it was done.

    Returns
    -------
    CCCPResult
        The weights with the lowest objective that was met.

    Raises
    ------
    ObjectiveRoseError
        If the objective rises by more than the gaps explain.
    NotCompatibleError
        If the solver does not minimise a linear term.

    Notes
    -----
    The result is a local optimum at best: no linear function that touches G at its weights leads to
    a lower objective. Which one depends on ``start``.
    """
    gap = check_number("gap", gap, least=0.0)
    tol = check_number("tol", tol, least=0.0)
    coarse = check_number("coarse", coarse, least=0.0)
    max_outer = check_whole("max_outer", max_outer, 1)
    if time_limit is not None:
        time_limit = check_number("time_limit", time_limit, above=0.0)
    check_linear_term(solver, problem)
    before = problem.linear_term
    loop = _Loop(seed=seed_of(random_state), asked=max(gap, coarse))
    outer, passes = OuterHistory(), _Passes(list(callbacks or ()), [])
    best: Accepted | None = None
    imputed = Imputation(None) if start is None else start
    going_on = resume and checkpoint is not None and Path(checkpoint).exists()
    if going_on:
        assert checkpoint is not None
        loop, outer, passes.records, best, imputed = _restored(checkpoint, loop)
        if best is not None:  # what imputes must know what was imputed last
            imputed = concave.impute(best.weights, n_jobs)
    machine, reason, result = engine, "", None
    converged = False
    try:
        while True:
            # Step 2 of the procedure: the convex step.
            problem.linear_term = imputed.linear_term
            passes.begin_step()
            left = None if time_limit is None else time_limit - loop.seconds
            began = time.perf_counter()
            if left is not None and left <= 0 and best is not None:
                reason = f"time_limit = {time_limit:g} s"
                break
            result = solve(
                problem,
                solver,
                C=C,
                dtype=dtype,
                regularizer=regularizer,
                gap=loop.asked,
                max_passes=max_passes,
                time_limit=None if left is None else max(left, 1e-9),
                n_jobs=n_jobs,
                verbose=max(verbose - 1, 0),
                random_state=np.random.default_rng([loop.seed, loop.calls]),
                callbacks=[passes],
                checkpoint=checkpoint,
                checkpoint_seconds=checkpoint_seconds,
                resume=going_on,
                beside=_beside(loop, outer, passes.records, best, imputed) if checkpoint else None,
                engine=machine,
                warn=False,
            )
            going_on = False
            machine = result.engine
            passes.end_step(result.history)
            loop.calls += 1
            primal, dual = result.certificate.primal, result.certificate.dual
            bound = primal - imputed.constant
            fixed = machine.fixed  # type: ignore[attr-defined]
            old = linear_value(result.weights, fixed)
            rounding = rounding_of(result.certificate, result.weights, fixed, old)
            ended = _ended(result, passes, loop, time_limit, time.perf_counter() - began)
            # A step that stopped at a limit of its own has a certificate all the same: as long as
            # the objective falls, the procedure goes on.
            limit = "" if result.converged else f"in a convex step: {result.stop_reason}"
            if bound > loop.objective:
                _check_rise(bound - loop.objective, primal - dual, rounding, result.certificate)
                loop.seconds += time.perf_counter() - began
                if ended or limit or loop.asked <= gap:
                    reason = ended or limit or "no convex step within the gap lowers the objective"
                    converged = not (ended or limit)
                    break
                loop.asked = max(gap, loop.asked / FINER)
                continue
            # Step 1: impute at the weights that were found.
            try:
                new = concave.impute(result.weights, n_jobs)
            except KeyboardInterrupt:
                ended, new = INTERRUPTED, imputed
            problem.linear_term = new.linear_term
            machine.take_linear_term()  # type: ignore[attr-defined]
            touched = linear_value(result.weights, machine.fixed)  # type: ignore[attr-defined]
            gained = touched + new.constant - old - imputed.constant
            if gained < -rounding:
                raise ObjectiveRoseError(
                    f"what was imputed after outer iteration {len(outer) + 1} is worse by "
                    f"{-gained:.6g} than what was imputed before it, under the same weights: the "
                    "argmax that imputes (argmax with given=...) does not find the best output"
                )
            objective = bound - max(gained, 0.0)
            decrease = loop.objective - objective
            share = decrease / max(abs(objective), 1e-300)
            loop.seconds += time.perf_counter() - began
            record = OuterRecord(
                n_outer=len(outer) + 1,
                objective=objective,
                bound=bound,
                changed=new.changed,
                gap=result.certificate.gap,
                asked=loop.asked,
                passes=len(passes.records) - loop.last_passes,
                seconds=loop.seconds,
                stage=stage,
            )
            outer.append(record)
            loop.last_passes, loop.objective = len(passes.records), objective
            best = Accepted(result.weights, result.certificate, objective)
            if verbose:
                _report(record)
            wanted_stop = on_outer is not None and bool(on_outer(record))
            settled = new.changed == 0 or share <= tol
            if ended or wanted_stop or len(outer) >= max_outer:
                reason = ended or ("stopped by a callback" if wanted_stop else "")
                reason = reason or f"max_outer = {max_outer}"
                converged = settled and result.certificate.gap <= gap
                break
            if settled and (limit or result.certificate.gap <= gap):
                converged = result.certificate.gap <= gap
                reason = (
                    "nothing is imputed anew"
                    if new.changed == 0
                    else f"the objective fell by {100 * share:.2g} % only"
                )
                reason += "" if converged else f"; {limit}"
                break
            follows = gap if settled else min(loop.asked, coarse, FOLLOWS * share)
            loop.asked = max(gap, follows)
            imputed = new
    finally:
        problem.linear_term = before
    assert result is not None
    # The machine goes back to the linear term of its last step: w is then what that step found.
    problem.linear_term = imputed.linear_term
    machine.take_linear_term()  # type: ignore[union-attr]
    problem.linear_term = before
    if best is None:  # ended within the first convex step, before anything was imputed
        best = Accepted(result.weights, result.certificate, math.nan)
    if warn and not converged and reason != INTERRUPTED:
        _warn(reason, best, gap)
    return CCCPResult(
        weights=best.weights,
        certificate=best.certificate,
        history=History(passes.records),
        converged=converged,
        stop_reason=reason,
        n_passes=len(passes.records),
        engine=result.engine,
        objective=best.objective,
        outer=outer,
    )


def _check_rise(rise: float, gap: float, rounding: float, certificate: Certificate) -> None:
    """Refuse a convex step that ended further above the last objective than its gap allows."""
    if rise <= gap + rounding:
        return
    raise ObjectiveRoseError(
        f"the objective rose by {rise:.6g} in a convex step whose gap is {gap:.6g}: a maximum was "
        f"missed, by the oracle or by what was imputed ({certificate})"
    )


def _ended(
    result: SolveResult, passes: _Passes, loop: _Loop, time_limit: float | None, seconds: float
) -> str:
    """Return why the procedure must end after this step, in words; empty if it need not."""
    if result.interrupted:
        return INTERRUPTED
    if passes.stopped:
        return "stopped by a callback"
    if time_limit is not None and loop.seconds + seconds >= time_limit:
        return f"time_limit = {time_limit:g} s"
    return ""


def _report(record: OuterRecord) -> None:
    print(
        f"outer {record.n_outer:3d} {record.stage:12s} {record.seconds:8.2f} s  objective "
        f"{record.objective:14.6g}  gap {100 * record.gap:8.3f} %  changed {record.changed}  "
        f"passes {record.passes}",
        file=sys.stderr,
    )


def _warn(reason: str, best: Accepted, gap: float) -> None:
    from maxmargin.errors import ConvergenceWarning

    warnings.warn(
        f"the concave-convex procedure stopped before it was done ({reason}): objective "
        f"{best.objective:.6g}, gap of its convex step {100 * best.certificate.gap:.3g} %, asked "
        f"for was {100 * gap:g} %. Raise max_outer, max_passes or time_limit, or ask for less",
        ConvergenceWarning,
        stacklevel=3,
    )


# --- checkpoints ---


def _beside(
    loop: _Loop,
    outer: OuterHistory,
    records: list[PassRecord],
    best: Accepted | None,
    imputed: Imputation,
) -> Beside:
    """Return what a checkpoint must hold around the convex step that is about to begin."""
    values = {
        "loop": asdict(loop),
        "outer": outer.to_dicts(),
        "history": History(records).to_dicts(),
        "certificate": None if best is None else asdict(best.certificate),
        "constant": imputed.constant,
    }
    arrays = {} if best is None else {"weights": best.weights}
    if best is None and imputed.linear_term is not None:
        arrays["start"] = imputed.linear_term
    return Beside(values, arrays)


def _restored(
    path: str | os.PathLike[str], first: _Loop
) -> tuple[_Loop, OuterHistory, list[PassRecord], Accepted | None, Imputation]:
    """Undo `_beside`."""
    name = os.fspath(path)
    beside = load_beside(path)
    if beside is None:
        raise ModelFormatError(f"{name} is a checkpoint of a training without a concave part")
    try:
        values = beside.values["loop"]
        for key, like in asdict(first).items():
            if key != "objective" or values[key] != math.inf:
                check_stored(key, values[key], like if key != "objective" else 0.0)
        loop = _Loop(**values)
        outer = OuterHistory.from_dicts(beside.values["outer"])
        records = list(History.from_dicts(beside.values["history"]))
        best = None
        if beside.values["certificate"] is not None:
            weights = beside.arrays["weights"]
            if weights.dtype not in (np.float32, np.float64) or not np.isfinite(weights).all():
                raise ValueError("the weights are not finite numbers")
            certificate = Certificate(**beside.values["certificate"])
            best = Accepted(weights, certificate, float(loop.objective))
        if (best is None) != (len(outer) == 0):
            raise ValueError("its outer iterations and its weights do not go together")
        constant, term = beside.values["constant"], beside.arrays.get("start")
        check_stored("constant", constant, 0.0)
        if term is not None and (term.dtype != np.float64 or term.ndim != 1):
            raise ValueError("the linear term is no array of numbers")
        imputed = Imputation(term, float(constant))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFormatError(
            f"{name}: the state of the outer loop is damaged: {error}"
        ) from error
    return loop, outer, records, best, imputed
