"""OneSlack: cutting planes for the 1-slack formulation of structural SVMs.

Problem (OP4 of the paper, with sums in the place of means: C here is its C/n)::

    min_w  ½‖w‖² + C ξ      s.t.  Σ_i w·Δf_i(ŷ_i) >= Σ_i l_i(ŷ_i) - ξ      for all (ŷ_1, ..., ŷ_n)

Paper: Joachims, Finley and Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning 77,
2009, Algorithm 3, margin rescaling (line numbers below are its own), with a cache of constraints
and the removal of inactive planes as in that paper.

Beyond the paper, each measured (``docs/architecture.md``):

*Stability.* The minimiser of few planes is far from the optimum, and planes found there say little
about it. ``stabilize`` chooses where the oracle is asked:

``"search"`` (default)
    As in OCAS (Franc and Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk
    Minimization", JMLR 2009): the best w so far, the centre, moves to the lowest primal met on the
    way to the minimiser, and the plane is found a little beyond it.
``"proximal"``
    A proximal bundle method (see Do and Artières, "Regularized Bundle Methods for Convex and
    Non-Convex Risks", JMLR 2012): the program has the additional term μ/2 ‖w - centre‖². A lower
    primal is a descent step: the centre moves and μ falls. Else it is a null step, and μ rises.
``"none"``
    Algorithm 3 as printed.

*Several cuts a sweep.* With ``cuts = k`` the examples form k groups, each with a slack and a plane
of its own (k = 1: the paper; k = n would be the n-slack problem). The relaxed problem is tighter,
and its program has k blocks.

The certificate's lower bound is the program's dual; the model is the w with the lowest primal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin.checks import check_choice, check_not_negative, check_whole_attributes
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L2, Regularizer
from maxmargin.solvers.bundle import BundleMachine
from maxmargin.solvers.formulations import check_formulation
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.primal import PrimalMachine, PrimalSolver
from maxmargin.solvers.steps import Context, PassTotals, Step

__all__ = ["OneSlack"]

STABILIZE = ("search", "proximal", "none")


@dataclass(frozen=True)
class OneSlack(PrimalSolver):
    """Cutting planes with one slack for all examples, or for each of a few groups.

    Parameters
    ----------
    cuts : int
        Groups of examples, with a plane each a sweep.
    stabilize : {"search", "proximal", "none"}
        Where the oracle is asked; see the module's text.
    beyond : float
        How far beyond the centre the plane is found, as a share of the way to the minimiser
        (search).
    mu : float
        μ at the beginning (proximal).
    cache : int
        Outputs kept for each example, to make planes without the oracle; 0 switches this off.
    prune_after : int
        Drop a plane whose multiplier was zero in so many programs in a row.
    epsilon : float
        ε of the paper: stop when the primal is at most n C ε above the bound. 0: stop by the
        relative gap alone.
    rescale : {"margin", "slack", "none"}
        What the loss of an output scales.
    """

    name: ClassVar[str] = "oneslack"
    machine: ClassVar[type[PrimalMachine]] = BundleMachine
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (L2,)

    cuts: int = 4
    stabilize: str = "search"
    beyond: float = 0.1
    mu: float = 10.0
    cache: int = 0
    prune_after: int = 20
    epsilon: float = 0.0
    rescale: str = "margin"

    def __post_init__(self) -> None:
        check_whole_attributes(self, cuts=1, cache=0, prune_after=1)
        check_choice("stabilize", self.stabilize, STABILIZE)
        check_formulation("linear", self.rescale)
        check_not_negative(self, "epsilon", "mu")
        if not 0 < self.beyond <= 1:
            raise ValueError(f"beyond must lie above 0 and be at most 1, got {self.beyond!r}")

    #: The program is solved to this share of the gap, and to that of the bound.
    DEPTH: ClassVar[tuple[float, float]] = (0.1, 1e-3)
    #: A plane from the cache is taken if it is violated by this share of the oracle's last one,
    PAYS: ClassVar[float] = 0.5
    #: and at most so many times in a row.
    CACHED: ClassVar[int] = 10
    #: Points of the search that do not improve, at most.
    TRIES: ClassVar[int] = 4

    def start(
        self, problem: Any, C: float, regularizer: Regularizer, single: bool
    ) -> PrimalMachine:
        """Return weights of zero, under the formulation asked for."""
        return BundleMachine(problem, C, regularizer, single, rescale=self.rescale)

    def continue_from(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
        """Keep weights and planes; planes of other groups are forgotten."""
        if isinstance(machine, BundleMachine) and machine.rescale != self.rescale:
            raise NotCompatibleError(
                f"the planes to go on from are those of rescale={machine.rescale!r}, not of "
                f"{self.rescale!r}"
            )
        if isinstance(machine, BundleMachine) and machine.groups != self._groups(machine):
            machine.drop_all()
        super().continue_from(machine, C, regularizer)

    def _groups(self, machine: BundleMachine) -> int:
        return min(self.cuts, len(machine.primal.example_weights))

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"share": 0.3, "mu": self.mu, "found": 0.0, "left": 0}

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that no run can have had."""
        super().check_state(state, machine, context)
        if not 0 < state["share"] <= 1 or not 0 <= state["mu"] <= max(self.mu, 1e3):
            raise ValueError(f"share is {state['share']} and mu {state['mu']}, out of range")
        if machine.groups not in (0, self._groups(machine)):
            raise ValueError(
                f"the planes are of {machine.groups} groups; expected {self._groups(machine)}"
            )

    def step(self, machine: BundleMachine, state: dict[str, Any], context: Context) -> Step:
        """Make one iteration of the loop of Algorithm 3 (lines 3-7)."""
        begin, left = time.perf_counter(), context.seconds_left
        machine.threads = context.threads

        def seconds() -> float | None:
            return None if left is None else max(left - (time.perf_counter() - begin), 0.0)

        calls, cached = 0, False
        if self.cache and state["left"] > 0:
            self._move(machine)
            result = machine.primal.recall(context.threads, seconds())
            if result.interrupted:
                return Step("cached", PassTotals(math.nan, 0.0, 0, interrupted=True))
            violation = result.hinge - machine.relaxed_hinge()
            cached = violation > self.PAYS * state["found"]
            state["left"] -= 1
        if not cached:
            if machine.shown is not None and self.stabilize == "search":
                share, calls, stopped = self._search(machine, state["share"], context, seconds)
                if stopped:
                    return Step("collect", PassTotals(math.nan, 0.0, calls, interrupted=True))
                state["share"] = share
            # Line 5: the most violated outputs
            result, primal = machine.look(context.threads, seconds(), self._move(machine))
            calls += result.oracle_calls
            if result.interrupted:
                return Step("collect", PassTotals(math.nan, 0.0, calls, interrupted=True))
            descent = primal < machine.best
            state["mu"] = max(state["mu"] / 2, 1e-3) if descent else min(1.2 * state["mu"], 1e3)
            machine.keep(primal)
            if self.cache:
                machine.primal.remember(self.cache)
                known = machine.relaxed_hinge() if machine.n_planes else 0.0
                state["found"], state["left"] = result.hinge - known, self.CACHED
        # Line 6: they become a plane
        machine.cut(self._groups(machine))
        # Line 4: the program over all planes
        gain = machine.maximize(self._tolerance(machine))
        machine.prune(self.prune_after)
        if self.stabilize == "proximal":
            machine.aim_near(state["mu"], self._tolerance(machine))
        else:
            machine.aim()
        machine.revise()
        gap = machine.best - machine.bound
        if gap <= context.gap * machine.best:
            state["left"] = 0  # the end is the oracle's to find
        # Line 7, where the slack of all examples is at most n ε too large
        n = context.n_examples
        done = not cached and self.epsilon > 0 and gap <= n * machine.C * self.epsilon
        totals = PassTotals(gap, gain, calls)
        return Step(
            "cached" if cached else "collect", totals, done, f"gap below n C {self.epsilon:g}"
        )

    def _move(self, machine: BundleMachine) -> float:
        """Go where a plane is wanted; return ‖w‖²."""
        if machine.shown is None:  # the first pass, from zero or from where another run ended
            return 2 * machine.regularizer.penalty(machine.primal.weights)
        return machine.go(self.beyond if self.stabilize == "search" else 1.0)

    def _tolerance(self, machine: BundleMachine) -> float:
        of_gap, of_bound = self.DEPTH
        least = 1e-13 * machine.best
        gap = machine.best - machine.bound
        return max(min(of_gap * gap, of_bound * machine.bound or of_gap * gap), least)

    def _search(
        self,
        machine: BundleMachine,
        share: float,
        context: Context,
        seconds: Callable[[], float | None],
    ) -> tuple[float, int, bool]:
        """Find a low primal on the way from the centre to the minimiser; it becomes the centre.

        From the share of the way that was good last time, doubled while that helps, or halved
        until it helps. Returns the share, oracle calls, and whether time was up.
        """
        calls, lowest, best = 0, machine.best, None
        tried = share
        for _ in range(self.TRIES):
            result, primal = machine.look(context.threads, seconds(), machine.go(tried))
            calls += result.oracle_calls
            if result.interrupted:
                return share, calls, True
            if primal < lowest:
                shorter = tried < share
                lowest, best = primal, tried
                if shorter or tried == 1.0:
                    break
                tried = min(2 * tried, 1.0)
            elif best is not None:
                break
            else:
                tried /= 2
        if best is not None:
            machine.settle(best, lowest)
        return max(tried if best is None else best, 1e-3), calls, False
