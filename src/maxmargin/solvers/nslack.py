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

It stops when no S_i has changed (line 13), or at the gap asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin._native import Engine, PassOptions, PassResult
from maxmargin.solvers.auto import check_choice, check_formulation, check_not_negative, check_whole
from maxmargin.solvers.base import Context, PassTotals, Solver, Step

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
        check_whole(self, most_passes=1)

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"optimal": True}

    def step(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass over the examples: lines 4 to 12 of Algorithm 1."""
        order = context.order(permute=False)
        if self.schedule == "frequent":
            total = _Total(engine.exact_pass(order, self._visit, context.seconds_left))
            if (total.added or not state["optimal"]) and not total.interrupted:
                state["optimal"] = self._optimise(engine, context, total)
        else:
            total = _Total()
            for i in order:
                result = engine.exact_pass(np.array([i], np.uint32), self._visit)
                total.add(result)
                if (result.added or not state["optimal"]) and not total.interrupted:
                    state["optimal"] = self._optimise(engine, context, total)  # line 10
        finished = total.added == 0 and state["optimal"] and not total.interrupted  # line 13
        totals = PassTotals(total.gap, total.gain, total.oracle_calls, total.interrupted)
        return Step("exact", totals, finished, f"no constraint is violated by {self.epsilon:g}")

    @property
    def _visit(self) -> PassOptions:
        """Lines 5 to 10 for one example, over its own S_i."""
        return PassOptions(
            tau_inner=self.tau * self.epsilon, epsilon=self.epsilon, prune=False, max_smo=10_000
        )

    def _optimise(self, engine: Engine, context: Context, total: _Total) -> bool:
        """Optimise the dual over all of S, from where it is; true if it was brought to its end.

        While constraints are still violated by far more than ε, so far need it not go.
        """
        end = self.tau * self.epsilon
        target = max(end, self.ROUGH * total.gap / (engine.C * context.n_examples))
        full = True  # most passes visit only blocks that were not solved when last seen
        for _ in range(self.most_passes):
            options = PassOptions(
                tau=target,
                tau_inner=0.5 * target,
                relaxation=self.RELAXATION,
                min_violation=0.0 if full else target,
                prune=False,
                max_smo=10_000,
            )
            result = engine.cached_pass(context.order(), options, context.seconds_left)
            total.gain += result.gain
            total.interrupted |= result.interrupted
            if result.interrupted:
                return False
            if full and result.solved == 0:
                return target <= end
            full = result.solved * self.FEW < context.n_examples
        return False

    #: Share of an average block's gap that an optimisation may leave.
    ROUGH: ClassVar[float] = 0.1
    #: Cached steps overshoot by this, as in the automatic schedule.
    RELAXATION: ClassVar[float] = 1.3
    #: After a pass that solved fewer than one block in so many, all of them are visited again.
    FEW: ClassVar[int] = 20


class _Total:
    """The sum of several native passes."""

    def __init__(self, first: PassResult | None = None) -> None:
        self.gap = self.gain = 0.0
        self.oracle_calls = self.added = 0
        self.interrupted = False
        if first is not None:
            self.add(first)

    def add(self, result: PassResult) -> None:
        self.gap += result.gap
        self.gain += result.gain
        self.oracle_calls += result.oracle_calls
        self.added += result.added
        self.interrupted |= result.interrupted
