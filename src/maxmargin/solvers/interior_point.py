"""InteriorPoint: cutting planes with an interior point over the kept ones, for few weights.

Problem (any slack, rescaling and regulariser with a link)::

    min_w  Ω(w) + C Σ_i ξ_i    or    Ω(w) + C/2 Σ_i ξ_i²    or    Ω(w)
    s.t.   ξ_i >= H_i(y) for all y,  with the H of ``native/formulation.hpp``

Some passes of block ascent come first: for next to nothing they find most of the planes that will
be needed, and drop others. (Digits as they come, C = 1: 1,131 planes in the place of 7,173, and
0.4 s in the place of 4.7.) Then a round is two passes. *Collect* calls the oracle on all examples
at one w, which gives the true gap and new planes. *Interior* solves the problem over all kept
planes at once by a primal-dual predictor-corrector method (Mehrotra 1992) whose linear systems are
reduced to the weights that some plane touches, or to the planes if they are fewer (Ferris and
Munson 2003): ``native/interior_point.hpp``. It is solved no closer than a share of the gap that the
oracle last saw: what is left stays in the middle of the feasible region, where the next planes cut
off more.

Scale of the features and size of C hardly matter: iris, wine and breast-cancer as they come, at C
from 0.1 to 1e6, reach a certified gap of 1e-6 in 2 to 6 rounds. An interior pass costs the third
power of the smaller of weights and planes, so that some thousand of them are the limit. Block
ascent (`SDM`) is for many weights; its automatic schedule goes over to interior passes by itself
where they are cheaper (``maxmargin.solvers.handover``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin._native import Engine, PassOptions, Problem
from maxmargin.checks import check_number, check_whole_attributes
from maxmargin.errors import NotCompatibleError
from maxmargin.memory import require_memory
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.formulations import check_formulation
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.steps import Context, Step

__all__ = ["InteriorPoint"]


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """An interior point over the planes that the oracle found; for up to some thousand weights.

    Weights are always 8-byte numbers, whatever ``dtype`` says.

    Parameters
    ----------
    warm_passes : int
        Passes of block ascent before the first round; one in five calls the oracle.
    accuracy : float
        Solve over the kept planes to this share of the gap that the oracle last saw; in (0, 1).
    max_iterations : int
        Iterations of one interior pass, at most.
    keep_rounds : int
        Drop planes without a multiplier every so many rounds; 0: never.
    slack : {"linear", "quadratic", "hard"}
        What slacks cost: C Σ ξ_i, C/2 Σ ξ_i², or none are allowed.
    rescale : {"margin", "slack", "none"}
        What the loss of an output scales: the margin that it must keep, the slack that it may use,
        or nothing (all wrong outputs are equally wrong).
    """

    name: ClassVar[str] = "interiorpoint"
    kernels: ClassVar[bool] = False

    warm_passes: int = 10
    accuracy: float = 0.1
    max_iterations: int = 100
    keep_rounds: int = 8
    slack: str = "linear"
    rescale: str = "margin"

    def __post_init__(self) -> None:
        check_formulation(self.slack, self.rescale)
        check_number("accuracy", self.accuracy, above=0.0)
        if self.accuracy >= 1:
            raise ValueError(f"accuracy must be below 1, got {self.accuracy!r}")
        check_whole_attributes(self, warm_passes=0, max_iterations=1, keep_rounds=0)

    @property
    def factored(self) -> bool:
        """Places of an output that do not interact are parts, each with a slack of its own."""
        return self.slack == "linear" and self.rescale == "margin"

    def start(self, problem: Problem, C: float, regularizer: Regularizer, single: bool) -> Machine:
        """Return the dual engine, with 8-byte weights.

        Where 4-byte ones were asked for, what the regulariser has for each weight is in their
        layout: the engine is made for it and widened.
        """
        machine = super().start(problem, C, regularizer, single)
        if machine.widens:
            machine.widen()
        return machine

    def continue_from(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
        """Make an engine that an earlier run left ready; it gets 8-byte weights."""
        super().continue_from(machine, C, regularizer)
        if machine.widens:
            machine.widen()

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"warmed": 0, "gap": None, "collected": False, "rounds": 0, "idle": 0}

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass: of block ascent, the oracle at one w, or all kept planes at once."""
        if state["warmed"] < self.warm_passes:
            return self._warm(machine, state, context)
        if not state["collected"]:
            return self._collect(machine, state, context)
        state["collected"] = False
        if state["idle"]:
            return self._ascend(machine, state, context)
        return self._solve(machine, state, context)

    def _warm(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        exact = state["warmed"] % self.ORACLE_EVERY == 0
        state["warmed"] += 1
        if exact:
            options = PassOptions(tau_relative=0.1)
            result = engine.exact_pass(context.order(), options, context.seconds_left)
            return Step("exact", result)
        options = PassOptions(tau_relative=0.1, relaxation=1.3, recombine=True)
        result = engine.cached_pass(context.order(), options, context.seconds_left)
        return Step("cached", result)

    #: Of the passes of block ascent, one in so many calls the oracle.
    ORACLE_EVERY: ClassVar[int] = 5

    def _collect(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        result = engine.collect_pass(context.threads, context.seconds_left)
        if not result.interrupted:
            if state["rounds"] and result.added == 0 and result.gap == state["gap"]:
                state["idle"] = 1  # the round before this one came back to where it began
            # A hard margin has no finite gap while some example is not separated.
            state["gap"] = result.gap if math.isfinite(result.gap) else None
            state["collected"] = True
        return Step("collect", result)

    def _solve(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        size = engine.interior_size()
        if size["planes"] == 0:  # nothing is violated
            state["idle"] = 1
            return self._ascend(engine, state, context)
        if not math.isfinite(size["work"]):
            raise NotCompatibleError(
                f"an interior point over {size['planes']:.0f} planes and about "
                f"{size['columns']:.0f} weights is too large: of one of them there may be some "
                "thousand; use solver 'sdm' or 'sap'"
            )
        require_memory(
            "the matrix of the interior point", int(size["bytes"]), advice="use solver 'sdm'"
        )
        state["rounds"] += 1
        prune = self.keep_rounds > 0 and state["rounds"] % self.keep_rounds == 0
        wanted = 0.0 if state["gap"] is None else max(0.0, self.accuracy * state["gap"])
        result = engine.interior_pass(
            wanted, self.max_iterations, prune=prune, seconds=context.seconds_left
        )
        # Where rounding lets the interior point do no more, steps on the blocks may.
        state["idle"] = int(result.solved == 0 and not result.interrupted)
        return Step("interior", result)

    def _ascend(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make steps on the blocks where the interior point could not raise the dual."""
        result = engine.exact_pass(
            context.order(), PassOptions(tau_relative=0.1, prune=False), context.seconds_left
        )
        state["idle"] = 0
        stuck = not result.interrupted and result.gain <= 0 and result.added == 0
        return Step("exact", result, stuck=stuck)
