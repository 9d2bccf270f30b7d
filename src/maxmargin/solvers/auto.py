"""The automatic schedule of the dual engine, which SDM and SAP share.

Blocks of planes, oracle, steps and certificates are the engine's (``native/engine.hpp``); what is
here decides which pass comes next. Five ideas beyond the papers, each of which was measured:

1. *Factored blocks.* Places of an output that do not interact keep multipliers of their own
   (``native/part.hpp``), so few planes describe many outputs.
2. *Rounds.* A round is one pass with the oracle, which steps on each example under the newest w,
   and then cached passes for as long as they gain more per unit of work than the round so far. Most
   cached passes visit only the parts whose last violation was not far below the average, and look
   for new planes among pieces of the kept ones. Work is counted, not timed, so that a run can be
   repeated.
3. *Over-relaxation.* Cached steps overshoot by ``relaxation``. Below 2 a completely solved step
   still raises the dual; one that SMO left early is taken back to its best point if it would not.
   So the dual never falls.
4. *Newton's method on all blocks together*, for links that are not linear (elastic nets, priors,
   bounds): blocks that interact strongly undo each other's steps. After `NEWTON_AFTER` rounds, a
   pass of it (``native/newton_step.hpp``) is tried at the end of a round. While it gains more for
   its work than the round did there is one in each round; else it rests until `REST` times its work
   has been done by others, and is tried again with twice as many conjugate gradients.
5. *A smoothing pass.* Near the gap asked for, a round ends with a pass over all parts that makes
   about half of each step. It costs a little of the dual and lowers the gap by a third or more,
   once. The last rounds are not over-relaxed, for the same reason.

Problems with few weights go over to interior passes where these are cheaper
(`maxmargin.solvers.handover`).

Once the block gaps add up to about the gap asked for, the oracle is called at one w ("collect"):
then their sum is the duality gap, and it stops if that is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from maxmargin._native import Engine, NewtonOptions, PassOptions
from maxmargin.checks import check_whole_attributes
from maxmargin.solvers.base import Solver
from maxmargin.solvers.formulations import check_formulation
from maxmargin.solvers.handover import FIRST_STATE, count, interior_step
from maxmargin.solvers.joint_rounds import FIRST_ROUND, check_rounds, joint_step
from maxmargin.solvers.steps import Context, Step

__all__ = ["AutoSchedule"]


@dataclass(frozen=True, kw_only=True)
class AutoSchedule(Solver):
    """A solver that has the automatic schedule among its own.

    Parameters
    ----------
    slack : {"linear", "quadratic", "hard"}
        What slacks cost: C Σ ξ_i, C/2 Σ ξ_i², or none are allowed.
    rescale : {"margin", "slack", "none"}
        What the loss of an output scales: the margin that it must keep, the slack that it may use,
        or nothing (all wrong outputs are equally wrong).
    permute : bool
        Visit the examples in a new random order in each pass.
    prune : bool
        Drop planes whose multiplier has become zero.
    warm_passes : int
        Passes with the oracle before the first cached pass.
    cached_passes : int
        Cached passes in one round, at most.
    full_every : int
        Of these, one in so many visits all parts.
    relaxation : float
        Over-relaxation of cached steps, in (0, 2). In the last rounds it is 1 at most.
    deterministic : bool
        Whether one thread makes all steps, whatever the number of threads. Else each of them makes
        those on a share of the examples, where it pays (chains, from 1,000 examples on; not
        for hard margins): another number of threads then gives another model, with a certificate as
        good. Either way a run can be repeated with the same number of threads.
    """

    later: ClassVar[Mapping[str, Any]] = MappingProxyType(FIRST_ROUND)

    slack: str = "linear"
    rescale: str = "margin"
    permute: bool = True
    prune: bool = True
    warm_passes: int = 2
    cached_passes: int = 20
    full_every: int = 10
    relaxation: float = 1.3
    deterministic: bool = False

    def __post_init__(self) -> None:
        check_formulation(self.slack, self.rescale)
        check_whole_attributes(self, warm_passes=1, cached_passes=1, full_every=1)
        if not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation must lie between 0 and 2, got {self.relaxation!r}")

    @property
    def plain(self) -> bool:
        """Whether blocks may fall into parts: with linear slacks and margin rescaling."""
        return self.slack == "linear" and self.rescale == "margin"

    @property
    def mu(self) -> float:
        """Cost-to-move of the multipliers; only SAP has one."""
        return 0.0

    @property
    def nu(self) -> float:
        """Cost-to-move of β; only SAP has one."""
        return 0.0

    def auto_init(self) -> dict[str, Any]:
        """Return the state before the first pass."""
        state: dict[str, Any] = {"looks": 0, "left": 0, "made": 0, "gap": None, "parts": 0}
        state |= {"work": 0.0, "gain": 0.0, "smooth": False}
        state |= {"products": self.PRODUCTS[0], "rest": 0.0, "tried": 0}
        return state | FIRST_STATE | FIRST_ROUND

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that no run can have had."""
        super().check_state(state, machine, context)
        if "parts" in state:  # of this schedule
            looked = state["gap"] is not None
            if (looked and state["parts"] < 1) or (state["left"] > 0 and not looked):
                raise ValueError(
                    f"gap is {state['gap']}, parts {state['parts']} and left {state['left']}; "
                    "after a look there are a gap and at least one part"
                )
            if state["smooth"] and state["left"] != 1:
                raise ValueError(
                    f"smooth is set and left is {state['left']}; a smoothing pass is the last one"
                )
            check_rounds(state)

    # Where work is worth while: the bookkeeping of violations.
    #
    # A part k of an example with weight c has the margins F of its planes and multipliers α >= 0
    # that sum to 1. Two numbers say how far it is from its optimum with all others fixed:
    #
    #     v_k = c (max F - Σ α F)               its share of the duality gap, divided by C
    #     ψ_k = c (max F - min_{α > 0} F)       the violation of the papers (2.4), which SMO lowers
    #
    # Σ α F is a mean of values of which none is below min_{α > 0} F, so that 0 <= v_k <= ψ_k. At
    # one w the parts' gaps add up (docs/architecture.md, "The dual engine"): P - D = C Σ_k v_k.
    # Hence the mean of v over the n parts is
    #
    #     v̄ = (P - D) / (C n),
    #
    # which `_average` takes from the last pass with the oracle. (If that was an exact pass, w moved
    # while the gaps were summed, and v̄ is an estimate.) Two thresholds are shares of it:
    #
    # - A visit of an exact pass that finds ψ_k <= IDLE v̄ makes no step. For such a part
    #   v_k <= ψ_k <= IDLE v̄, and there are at most n of them: together they hold at most
    #   C n IDLE v̄ = IDLE (P - D). So with IDLE = ½ at least half of the gap is in the parts that
    #   are moved. (Cached visits, which have chosen their parts, always make the step.)
    # - A cached pass that is not full visits the parts with v_k >= BUSY v̄, where v_k is what the
    #   engine noted at the last visit of the part (``Part::violation``; a new part counts as not
    #   solved). By the same sum, those that are left out held less than BUSY (P - D) then. w has
    #   moved since, so that one pass in ``full_every`` visits all parts and measures v_k anew.
    #
    # Both lose their meaning as the gap falls below what the oracle last saw: v̄ is then too large
    # and fewer parts are moved. The sum over the visited parts of C v_k, now over kept planes only
    # (``PassResult.cached_gap``), tells: below ENOUGH times the last gap the round is over, and the
    # next pass with the oracle gives a new v̄.
    #
    # The smoothing pass. A step with relaxation ω goes ω times the way to the block's own optimum,
    # at which the margins of its planes are level. The steps of all later blocks move w and put the
    # margins apart again, by an amount that grows with ω, and v_k, a maximum less a mean, sees all
    # of it as gap. The dual sees it in second order only. So large steps suit the dual, which the
    # rounds raise, and small ones the gap, which the look measures: half steps leave what is slow
    # to converge where it is and take away what the last steps put in, as a smoother does in a
    # multigrid method. That lowers the gap by a third or more, but only once, however many such
    # passes there were before. So they are made in the last rounds alone, those that begin within
    # NEAR of the gap asked for, where one of them takes the place of several rounds. Their other
    # passes are not over-relaxed, for the same reason.

    #: SMO stops at this share of the violation it met: deeper solves are undone by the next block.
    SMO_DEPTH: ClassVar[float] = 0.1
    #: A visit of an exact pass that finds a ψ of at most this share of v̄ leaves w alone.
    IDLE: ClassVar[float] = 0.5
    #: Passes that are not full visit parts whose last v was at least this share of v̄.
    BUSY: ClassVar[float] = 0.1
    #: Enough cached passes when what is left among the kept planes is this share of the gap.
    ENOUGH: ClassVar[float] = 0.05
    #: A cached pass pays with this multiple of the gain per work of its round.
    PAYS: ClassVar[float] = 0.8
    #: Below this relative gap, and with so many parts an example, look at one w.
    SETTLED: ClassVar[float] = 1.0
    PARTS: ClassVar[float] = 1.3
    #: Look at one w once the last gap seen was within this factor of the one asked for.
    CONFIRM: ClassVar[float] = 3.0
    #: Share of the work of a slow oracle that counts as spent without reaching the gap.
    SLOW: ClassVar[float] = 0.05
    #: So many neighbours of the data are visited together in exact passes over at least so many
    #: examples.
    TOGETHER: ClassVar[int] = 8
    MANY: ClassVar[int] = 1000
    #: Rounds before Newton's method is tried.
    NEWTON_AFTER: ClassVar[int] = 15
    #: Its conjugate gradients: at first and at most.
    PRODUCTS: ClassVar[tuple[int, int]] = (8, 64)
    #: After a trial that did not pay, so many times its work is done without it.
    REST: ClassVar[float] = 20.0
    #: Rounds that begin within this factor of the gap asked for have no over-relaxation and end
    #: with a smoothing pass (not above CONFIRM: steps of the look that follows would undo it).
    NEAR: ClassVar[float] = 3.0
    #: They have as many passes, but at least so many, as reach this share of the gap asked for.
    GOAL: ClassVar[float] = 0.8
    LEAST: ClassVar[int] = 3
    #: The smoothing pass has this relaxation.
    SMOOTH: ClassVar[float] = 0.5

    def auto_step(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass."""
        if (step := interior_step(engine, state, context)) is not None:
            return step
        if (step := joint_step(self, engine, state, context)) is not None:
            return step
        if state["left"] > 0:
            return self._improve(engine, state, context)
        if self._may_try(engine, state):
            return self._newton(engine, state, context)
        return self._look(engine, state, context)

    def _may_try(self, engine: Engine, state: dict[str, Any]) -> bool:
        """Whether Newton's method has its turn, once between two looks."""
        turn = state["looks"] >= self.NEWTON_AFTER and state["tried"] < state["looks"]
        if not turn or state["interior"] or self.nu != 0:
            return False
        return state["rest"] <= 0 and not engine.quadratic and not engine.windowed

    def _newton(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Move all multipliers that are above zero together."""
        worth = self.PAYS * max(state["gain"], 0.0) / max(state["work"], 1.0)
        options = NewtonOptions(products=state["products"], worth=worth)
        result = engine.newton_pass(options, context.seconds_left)
        count(state, result.work)
        state["tried"] = state["looks"]
        fewest, most = self.PRODUCTS
        if not result.gain > worth * result.work:
            state["products"] = 2 * state["products"] if state["products"] < most else fewest
            state["rest"] = self.REST * result.work
        return Step("cached", result)

    def _look(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Call the oracle on all examples: a step on each or, when the end is near, the true gap.

        Steps while the oracle goes round make more of its answers, because each is found under
        the newest w. At one w the sum of the block gaps is the duality gap, which alone may stop.
        """
        near = self._near(state, context, self.CONFIRM) or self._settled(state, context)
        if (near or state["interior"]) and not state["idle"]:
            result = engine.collect_pass(context.threads, context.seconds_left)
            kind = "collect"
        else:
            tau = 0.0 if state["gap"] is None else self._idle(engine, state)
            options = PassOptions(
                tau=tau,
                tau_relative=self.SMO_DEPTH,
                prune=self.prune,
                mu=self.mu,
            )
            order = context.order(self.permute, self._together(state, context))
            result = engine.exact_pass(
                order, options, context.seconds_left, context.batch, context.threads
            )
            kind = "exact"
        before, made = state["gap"], state["made"]
        if math.isfinite(result.gap):  # a hard margin may not be there yet
            state["gap"] = result.gap
        state["parts"] = max(engine.size()["parts"], 1)
        # The first cached pass visits all parts, unless this pass did so already.
        state["made"] = 0 if kind == "collect" else 1
        state["work"], state["gain"] = result.work, result.gain
        # Calls of a slow oracle count for less: steps between them make the most of its answers.
        count(state, result.work * (self.SLOW if context.slow_oracle else 1.0))
        state["rest"] = max(state["rest"] - result.work, 0.0)
        state["looks"] += 1
        if state["looks"] >= self.warm_passes:
            state["left"] = self.cached_passes
            if kind == "collect" and self._near(state, context, self.NEAR):
                state["left"] = self._needed(before, state["gap"], made, context)
        return Step(kind, result)

    def _needed(self, before: float, now: float, made: int, context: Context) -> int:
        """Return the cached passes of a round near the end: about as many as the gap still needs.

        A round that goes on as long as its passes pay may fall far below the gap asked for. If the
        passes of the last round, ``made`` of them, took the gap from ``before`` to ``now``, and go
        on like that, log(now / goal) / log(before / now) times as many reach the goal.
        """
        goal = self.GOAL * context.gap * abs(context.dual)
        if not (0 < goal < now < before) or made == 0:
            return self.cached_passes
        needed = made * math.log(now / goal) / math.log(before / now)
        return min(max(math.ceil(needed), self.LEAST), self.cached_passes)

    def _together(self, state: dict[str, Any], context: Context) -> int:
        """Return how many neighbours an exact pass visits one after the other.

        Sentences that stand together in a text share words and so rows of weights, which the
        second one finds in the cache: on CoNLL-2000 an exact pass takes 13 to 23 % less time than
        in an order without neighbours. Blocks of several parts are many small steps anyway. Where
        blocks have one part, as in classification, neighbours may be of one class, and steps on
        them one after the other are worth less: there the order is random. (So is that of cached
        passes everywhere; they would lose more by it than the cache saves.)
        """
        several = state["parts"] >= self.PARTS * context.n_examples >= self.PARTS * self.MANY
        return self.TOGETHER if several else 1

    def _improve(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Optimise over the kept planes, mostly where the violation is large."""
        smooth, near = state["smooth"], self._near(state, context, self.NEAR)
        full = state["made"] % self.full_every == 0 or context.slow_oracle
        share = 0.0 if full else self.BUSY
        state["made"] += 1
        relaxation = min(self.relaxation, 1.0) if near else self.relaxation
        options = PassOptions(
            tau_relative=self.SMO_DEPTH,
            relaxation=min(self.relaxation, self.SMOOTH) if smooth else relaxation,
            recombine=True,
            min_violation=share * self._average(engine, state),
            prune=self.prune,
            mu=self.mu,
        )
        order = context.order(self.permute)
        result = engine.cached_pass(order, options, context.seconds_left, context.threads)
        state["left"] -= 1
        state["work"] += result.work
        count(state, result.work)
        state["gain"] += result.gain
        state["rest"] = max(state["rest"] - result.work, 0.0)
        # A cached pass pays while it gains more for its work than this round did so far, the
        # oracle's pass included (the rule of Shah, Kolmogorov and Lampert's MP-BCFW).
        pays = result.gain * state["work"] > self.PAYS * state["gain"] * result.work
        if not pays or result.cached_gap < self.ENOUGH * state["gap"]:
            state["left"] = min(state["left"], 1 if near and not smooth else 0)
        state["smooth"] = near and state["left"] == 1
        return Step("cached", result)

    def _idle(self, engine: Engine, state: dict[str, Any]) -> float:
        """Return the ψ up to which a part is left alone: IDLE v̄, or 0 where that says nothing.

        With quadratic slacks and hard margins the multipliers of a block do not sum to 1. Then
        Σ α F is no mean, v may be above ψ, and a small ψ does not bound what is left.
        """
        return self.IDLE * self._average(engine, state) if self.slack == "linear" else 0.0

    @staticmethod
    def _average(engine: Engine, state: dict[str, Any]) -> float:
        """Return v̄ = (P - D) / (C n) of the last pass with the oracle and the n parts after it.

        Rounding may make the gap of a solved problem negative; v̄ is 0 then.
        """
        return max(0.0, float(state["gap"] / engine.C / state["parts"]))

    def _settled(self, state: dict[str, Any], context: Context) -> bool:
        """Whether w changes so little that planes found under the same w are as good.

        That is so late in the training, and where blocks fall into several parts: then many small
        steps have to be made, and the cached passes make them for less.
        """
        return (
            state["gap"] is not None
            and state["gap"] <= self.SETTLED * abs(context.dual)
            and state["parts"] >= self.PARTS * context.n_examples
        )

    @staticmethod
    def _near(state: dict[str, Any], context: Context, factor: float) -> bool:
        """Whether the gap last seen comes near the one asked for."""
        return state["gap"] is not None and state["gap"] <= factor * context.gap * abs(context.dual)
