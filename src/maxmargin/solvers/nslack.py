"""NSlack: the cutting-plane algorithm with one slack per example, in all its formulations.

Problem (SVM₀, SVM₁, SVM₂ of the paper, each with margin or slack rescaling)::

    min_w  ½‖w‖² + C Σ_i ξ_i    or    ½‖w‖² + C/2 Σ_i ξ_i²    or    ½‖w‖²
    s.t.   ξ_i >= H_i(y) for all y,  with the H of Algorithm 1, line 5  (``native/formulation.hpp``)

(C here is the paper's C/n.) Paper: Tsochantaridis, Hofmann, Joachims and Altun, "Support Vector
Machine Learning for Interdependent and Structured Output Spaces", ICML 2004, Algorithm 1. Working
sets S_i only grow: an output enters if it violates its constraint by more than ε beyond the present
slack ξ_i; nothing is dropped. Theorem 1 bounds how many enter, whatever the number of outputs.

Schedules
---------
``"frequent"`` (default)
    The cheaper variant at the end of the paper's section 4.2: line 10 optimises over S_i only, and
    over all of S after every pass over the examples.
``"paper"``
    Line 10 as printed: all of S is optimised again after each constraint that enters.

Where there are few weights, all of S is optimised by an interior point once that is the cheaper way
by counted work (`maxmargin.solvers.handover`).

It stops when no S_i has changed (line 13), or at the gap asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin._native import Engine, PassOptions, PassResult
from maxmargin.checks import check_choice, check_not_negative, check_whole_attributes
from maxmargin.solvers.base import Solver
from maxmargin.solvers.formulations import check_formulation
from maxmargin.solvers.handover import affordable
from maxmargin.solvers.steps import Context, PassTotals, Step

__all__ = ["NSlack"]

SCHEDULES = ("frequent", "paper")


@dataclass(frozen=True)
class NSlack(Solver):
    """Cutting planes with one slack per example.

    Parameters
    ----------
    schedule : {"frequent", "paper"}
        When all of S is optimised; see the module's text.
    epsilon : float
        ε: constraints may be violated by so much.
    tau : float
        "Optimise" means that no violation within S is above this share of ε.
    most_passes : int
        Passes over S in one optimisation, at most.
    slack : {"linear", "quadratic", "hard"}
        What slacks cost.
    rescale : {"margin", "slack", "none"}
        What the loss scales.
    """

    name: ClassVar[str] = "nslack"
    windows: ClassVar[bool] = True

    schedule: str = "frequent"
    epsilon: float = 0.01
    tau: float = 0.1
    most_passes: int = 200
    slack: str = "linear"
    rescale: str = "margin"

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, SCHEDULES)
        check_formulation(self.slack, self.rescale)
        check_not_negative(self, "epsilon", "tau")
        check_whole_attributes(self, most_passes=1)

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass: w is optimal over an S that is empty."""
        return {"optimal": not context.warm}

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass over the examples: lines 4 to 12 of Algorithm 1."""
        order = context.order(permute=False)
        # Only a w that is optimal over S and that this pass did not move may be the last.
        settled, total = state["optimal"], _Total()
        clock = Deadline(context.seconds_left)
        for group in [order] if self.schedule == "frequent" else np.split(order, len(order)):
            state["optimal"] = False  # until all of S was optimised, whatever comes between
            result = machine.exact_pass(group, self._visit, clock.left)
            total.add(result)
            if result.added or not settled:
                if total.interrupted:
                    break
                state["optimal"] = self._optimise(machine, context, total, clock)  # line 10
            else:
                state["optimal"] = not result.interrupted
            if total.interrupted or clock.over:
                total.interrupted = True
                break
        finished = settled and total.added == 0 and not total.interrupted  # line 13
        totals = PassTotals(total.gap, total.gain, total.oracle_calls, total.interrupted)
        return Step("exact", totals, finished, f"no constraint is violated by {self.epsilon:g}")

    @property
    def _visit(self) -> PassOptions:
        """Lines 5 to 10 for one example, over its own S_i."""
        return PassOptions(
            tau_inner=self.tau * self.epsilon, epsilon=self.epsilon, prune=False, max_smo=10_000
        )

    def _optimise(
        self, engine: Engine, context: Context, total: _Total, clock: Deadline
    ) -> bool:
        """Optimise the dual over all of S, from where it is; true if it was brought to its end.

        While constraints are still violated by far more than ε, so far need it not go. (Once none
        enters any more it must, whatever the gap: else no w would ever be the last.)
        """
        end = self.tau * self.epsilon
        target = end
        if total.added:
            target = max(end, self.ROUGH * total.gap / (engine.C * context.n_examples))
        full = True  # most passes visit only blocks that were not solved when last seen
        spent, left = 0.0, self.SOLVES
        for _ in range(self.most_passes):
            if left and affordable(engine, spent):
                result = self._solve(engine, context, target, clock)
                total.gain += result.gain
                total.interrupted |= result.interrupted
                if result.interrupted:
                    return False
                if result.solved and result.cached_gap <= target * engine.C * context.n_examples:
                    return target <= end  # no step may spoil what w has in digits now
                full, spent, left = True, 0.0, left - 1 if result.solved else 0
            options = PassOptions(
                tau=target,
                tau_inner=0.5 * target,
                relaxation=self.RELAXATION,
                min_violation=0.0 if full else target,
                prune=False,
                max_smo=10_000,
            )
            result = engine.cached_pass(context.order(), options, clock.left)
            spent += result.work
            total.gain += result.gain
            total.interrupted |= result.interrupted
            if result.interrupted:
                return False
            if full and result.solved == 0:
                return target <= end
            full = result.solved * self.FEW < context.n_examples
        return False

    @staticmethod
    def _solve(engine: Engine, context: Context, target: float, clock: Deadline) -> PassResult:
        """Solve over all of S with an interior point, where there are few weights.

        The engine's gap over S is C Σ_i v_i with v_i at most the violation of a block, so that it
        is solved far enough with v_i below `target` on average.
        """
        return engine.interior_pass(
            target * engine.C * context.n_examples, prune=False, seconds=clock.left
        )

    #: Interior solves in one optimisation, at most.
    SOLVES: ClassVar[int] = 3
    #: Share of an average block's gap that an optimisation may leave.
    ROUGH: ClassVar[float] = 0.1
    #: Cached steps overshoot by this, as in the automatic schedule.
    RELAXATION: ClassVar[float] = 1.3
    #: After a pass that solved fewer than one block in so many, all of them are visited again.
    FEW: ClassVar[int] = 20


class Deadline:
    """The time that is left for a pass, or None."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.perf_counter() + seconds

    @property
    def left(self) -> float | None:
        """Seconds left."""
        return None if self._end is None else max(self._end - time.perf_counter(), 0.0)

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return self._end is not None and time.perf_counter() > self._end


class _Total:
    """The sum of several native passes."""

    def __init__(self) -> None:
        self.gap = self.gain = 0.0
        self.oracle_calls = self.added = 0
        self.interrupted = False

    def add(self, result: PassResult) -> None:
        self.gap += result.gap
        self.gain += result.gain
        self.oracle_calls += result.oracle_calls
        self.added += result.added
        self.interrupted |= result.interrupted
