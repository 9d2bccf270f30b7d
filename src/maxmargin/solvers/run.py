"""One training run between its first and last pass: the loop of the driver, and what it knows.

`maxmargin.solvers.driver` makes a run and certifies what it leaves; here passes follow each other
until the gap, the solver, a limit, a callback or Ctrl-C ends them. All that the next pass depends
on is in `Run.state`, so that a run that was saved goes on bit for bit.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin.solvers.base import Solver
from maxmargin.solvers.certificate import gap_scale, relative_gap
from maxmargin.solvers.ending import INTERRUPTED, stuck_reason
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.limits import PassLimit, work_of
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.observers import Callback, PassObserver
from maxmargin.solvers.precision import StallWatch, no_room, rounds_too_much
from maxmargin.solvers.state import RunState, check_stored
from maxmargin.solvers.steps import Context, Step

__all__ = ["Run"]

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

#: Of the certificates that missed the gap: the smallest gap, those since it, and the pass of it.
NONE_REFUSED: dict[str, Any] = {"smallest": None, "idle": 0, "reached": 0}


class Run:
    """One training run between its first and last pass."""

    def __init__(
        self,
        machine: Machine,
        solver: Solver,
        context: Context,
        *,
        callbacks: list[Callback | PassObserver],
        verbose: int,
        asked: float,
        limit: PassLimit,
        time_limit: float | None,
    ) -> None:
        self.machine, self.solver, self.context = machine, solver, context
        self.callbacks, self.verbose = callbacks, verbose
        self.asked, self.limit, self.time_limit = asked, limit, time_limit
        self.solver_state = solver.init(context)
        self.history = History()
        self.seconds = 0.0
        self.oracle_calls = 0
        self.work = 0.0
        self.by_gap = False  # stopped because a pass at one w found the gap small enough
        self.own = ""  # the solver's own criterion, once it holds
        self.cause = ""  # what ended the passes otherwise
        self.stuck = 0  # passes in a row that could not move
        self.watch = StallWatch()
        self.refused: dict[str, Any] = dict(NONE_REFUSED)  # certificates that missed the gap
        # The pass after which 8-byte weights took the place of 4-byte ones; 0: an earlier run's.
        self.widened: int | None = 0 if machine.widened else None
        self.no_room = ""  # why they could not
        self._take_gap()

    def _take_gap(self) -> None:
        # What passes find below the rounding of the weights does not mean much: then it is the
        # certificate's turn, which also makes the weights anew.
        eps = float(np.finfo(self.machine.weights.dtype).eps)
        self.context.gap = max(self.asked, 0.5 * eps)

    def state(self) -> RunState:
        """Return all that the next pass depends on, but for the machine."""
        return RunState(
            solver=dict(self.solver_state),
            rng=dict(self.context.rng.bit_generator.state),
            dual=self.context.dual,
            seconds=self.seconds,
            oracle_calls=self.oracle_calls,
            history=self.history.to_dicts(),
            work=self.work,
            stuck=self.stuck,
            watch=self.watch.state(),
            refused=dict(self.refused),
            widened=self.widened,
        )

    def restore(self, state: RunState) -> None:
        """Undo `state`; a ValueError, TypeError or KeyError where no run can have had it."""
        if isinstance(state.solver, dict):
            first = self.solver.init(self.context)
            later = {key: value for key, value in self.solver.later.items() if key in first}
            state.solver = {**later, **state.solver}
        self.solver.check_state(state.solver, self.machine, self.context)
        check_stored("seconds", state.seconds, 0.0)
        check_stored("oracle_calls", state.oracle_calls, 0)
        check_stored("work", state.work, 0.0)
        check_stored("stuck", state.stuck, 0)
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
        self.work, self.stuck = float(state.work), state.stuck
        if state.watch:  # which files of earlier versions do not have
            self.watch.restore(state.watch)
        if state.refused:
            for name, like in NONE_REFUSED.items():
                check_stored(name, state.refused[name], like)
            self.refused = {name: state.refused[name] for name in NONE_REFUSED}
        self.widened = state.widened
        self._take_gap()
        # A run that was saved where its gap was reached goes on with the certificate.
        self.by_gap = len(self.history) > 0 and self.history[-1].gap <= self.context.gap

    def refuse(self, gap: float, dual: float) -> bool:
        """Go on after a certificate that misses the gap; false if there is no use in that.

        Parameters
        ----------
        gap, dual : float
            Of the certificate.
        """
        self.by_gap = False
        self.context.dual = dual
        n_passes, refused = len(self.history), self.refused
        self.cause = self.limit.reached(n_passes, self.work)
        if self.cause:
            return False
        refused["idle"] += 1
        if refused["smallest"] is None or gap < BETTER * refused["smallest"]:
            refused["idle"], refused["reached"] = 0, n_passes
        refused["smallest"] = gap if refused["smallest"] is None else min(refused["smallest"], gap)
        # Passes at one w and the certificate disagree. With w made anew from the multipliers, what
        # is left of that is the rounding of a margin and of w itself.
        if self.widen_if_rounding():
            return True
        idle = n_passes - refused["reached"]
        exhausted = refused["idle"] >= MAX_CONFIRMATIONS and idle >= NO_BETTER * n_passes
        if not exhausted or self.solver.nu > 0:
            return True
        return self._widen()

    # ---- from 4-byte to 8-byte weights ----

    @property
    def may_widen(self) -> bool:
        """Whether weights are 4-byte and 8-byte ones could take their place."""
        return self.machine.widens and not self.no_room

    def widen_if_rounding(self) -> bool:
        """Go on with 8-byte weights if rounding is what keeps the gap from the one asked for."""
        if not self.may_widen:
            return False
        begin = time.perf_counter()
        with HeldInterrupt() as held:
            asked, present = self.asked * abs(self.context.dual), self.watch.least or 0.0
            too_much = rounds_too_much(self.machine, asked, present, self.context.threads)
        self.oracle_calls += 2 * self.context.n_examples
        self.seconds += time.perf_counter() - begin
        self.watch.rest()
        if held.came:
            self.interrupt()
            return False
        return too_much and self._widen()

    def _widen(self, why: str = "") -> bool:
        """Go on with 8-byte weights; false if that cannot be.

        Parameters
        ----------
        why : str
            What is said of it; by default that rounding keeps the gap above the one asked for.
        """
        if not self.may_widen:
            return False
        self.no_room = no_room(self.machine)
        if self.no_room:
            return False
        begin = time.perf_counter()
        with HeldInterrupt() as held:  # machine and run must agree
            self.machine.widen()
            self.widened = len(self.history)
            self.watch, self.stuck = StallWatch(), 0
            self.refused = dict(NONE_REFUSED)
            self.context.dual = self.machine.dual()
            self._take_gap()
        self.seconds += time.perf_counter() - begin
        if self.verbose:
            why = why or f"rounding of float32 weights keeps the gap above {self.asked:g}"
            print(
                f"pass {self.widened:4d} {why}: going on in 8-byte arithmetic", file=sys.stderr
            )
        if held.came:
            self.interrupt()
        return True

    # ---- passes ----

    def loop(self, save: Callable[[], None], save_seconds: float) -> None:
        """Make passes until something ends them."""
        try:
            self._passes(save, save_seconds)
        except KeyboardInterrupt:
            # The machine ended the pass in a consistent state; what it has is a good model. The
            # gain may not have been counted: a run resumed from here must know the true dual.
            self.context.dual = self.machine.dual()
            self.interrupt()

    def _passes(self, save: Callable[[], None], save_seconds: float) -> None:
        saved = time.perf_counter()
        while not (self.by_gap or self.own or self.cause):
            if self.stuck >= MAX_STUCK and not self._widen():
                self.cause = stuck_reason(self._dtype)
            if self.cause:
                return
            self.cause = self.limit.reached(len(self.history), self.work)
            if self.cause:
                return
            if self.time_limit is not None:
                left = self.time_limit - self.seconds
                # The first pass always begins, however long it took to set things up: a history is
                # never empty.
                self.context.seconds_left = max(left, 1e-9)
                if left <= 0 and len(self.history):
                    self.cause = f"time_limit = {self.time_limit:g} s"
                    return
            if self.watch.stalled:
                self.widen_if_rounding()
                if self.interrupted:
                    return
            for callback in self.callbacks:
                if isinstance(callback, PassObserver):
                    callback.begin_pass(self.machine)
            record = self._pass()
            if time.perf_counter() - saved > save_seconds:
                save()
                saved = time.perf_counter()
            if self._ask_callbacks(record):
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
        record = self._digest(step, exact)
        if step.widen and not self.by_gap and not step.result.interrupted:
            self._widen("interior passes need 8-byte weights")
        return record

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
        self.work += work_of(result, context.slow_oracle)
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
            weight_bytes=self.machine.weight_bytes,
        )
        self.history.append(record)
        self.watch.note(step)
        self._report(record)
        begin = time.perf_counter()
        left = None if self.time_limit is None else self.time_limit - self.seconds
        self.machine.after_pass(record, left)
        self.seconds += time.perf_counter() - begin
        self.by_gap = record.gap <= context.gap
        if step.finished:
            self.own = step.reason
        self.stuck = self.stuck + 1 if step.stuck else 0
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
        last["nonzeros"] = self._count_nonzeros()
        self.history = History([*self.history[:-1], PassRecord(**last)])

    def _nonzeros(self) -> int:
        if self.machine.n_weights > COUNTED_WEIGHTS:
            return -1
        return self._count_nonzeros()

    def _count_nonzeros(self) -> int:
        return int(_native.count_nonzero(self.machine.weights, self.context.threads))

    def _report(self, record: PassRecord) -> None:
        if self.verbose >= 2 or (self.verbose == 1 and record.kind == "collect"):
            known = f"{100 * record.gap:8.3f} %" if math.isfinite(record.gap) else " " * 10
            print(
                f"pass {record.n_pass:4d} {record.kind:8s} {record.seconds:8.2f} s  "
                f"dual {record.dual:14.6g}  gap {known}  planes {record.planes}",
                file=sys.stderr,
            )
