"""SDM: the sequential dual method for structural SVMs.

Problem (OP1 and its dual OP2 of the paper)::

    min_w  ½‖w‖² + C Σ_i ξ_i      s.t.  w·Δf_i(y) >= l_i(y) - ξ_i      for all i, y
    max_α  C Σ α_i(y) l_i(y) - ½‖C Σ α_i(y) Δf_i(y)‖²    s.t.  Σ_y α_i(y) = 1,  α >= 0

Paper: Balamurugan, Shevade, Sundararajan and Keerthi, "A Sequential Dual Method for Structural
SVMs", SDM 2011; with the corrections listed in ``docs/errata.md``. Algorithm 2 (SMO on one block)
is native code, ``native/smo.hpp``; Algorithms 1 and 3 are the schedules below.

Schedules
---------
``"auto"`` (default)
    The same dual, three ideas beyond the paper, each of which was measured:

    1. *Factored blocks.* Places of an output that do not interact keep multipliers of their own
       (``native/part.hpp``), so few planes describe many outputs.
    2. *Rounds.* A round is one pass with the oracle, which steps on each example under the newest
       w, and then cached passes for as long as they gain more per unit of work than the round so
       far. Most cached passes visit only the parts whose last violation was not far below the
       average, and look for new planes among pieces of the kept ones. Work is counted, not timed,
       so that a run can be repeated.
    3. *Over-relaxation.* Cached steps overshoot by ``relaxation``. Below 2 a completely solved
       step still raises the dual; one that SMO left early is taken back to its best point if it
       would not. So the dual never falls.

    Once the block gaps add up to about the gap asked for, the oracle is called at one w
    ("collect"): then their sum is the duality gap, and it stops if that is small enough.
``"paper"``
    Algorithm 3 with the paper's parameters. It stops when no ψ_i exceeds ``tau``.
``"basic"``
    Algorithm 1: each example is solved to τ-optimality with repeated oracle calls.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin._native import Engine, PassOptions
from maxmargin.solvers.base import Context, Solver, Step

__all__ = ["SDM"]

SCHEDULES = ("auto", "paper", "basic")


@dataclass(frozen=True)
class SDM(Solver):
    """Sequential dual method.

    Parameters
    ----------
    schedule : {"auto", "paper", "basic"}
        How passes follow each other; see the module's text.
    tau : float
        τ: an example whose violation ψ_i is not above it counts as solved (paper, basic).
    tau_inner : float
        τ̃: SMO stops at this violation (paper, basic).
    kappa1 : int
        κ₁: passes of type I before the first of type II (paper).
    kappa2 : int
        κ₂: at most this many passes of type II in a row (paper).
    permute : bool
        Visit the examples in a new random order in each pass.
    prune : bool
        Drop planes whose multiplier has become zero.
    min_change : float
        Stop a type-I loop when a pass raises the dual by less than this share, even though
        ψ_max > τ; 0 switches this off (paper, basic).
    warm_passes : int
        Passes with the oracle before the first cached pass (auto).
    cached_passes : int
        Cached passes in one round, at most (auto).
    full_every : int
        Of these, one in so many visits all parts (auto).
    relaxation : float
        Over-relaxation of cached steps, in (0, 2) (auto).
    """

    name: ClassVar[str] = "sdm"

    schedule: str = "auto"
    tau: float = 0.25
    tau_inner: float = 0.15
    kappa1: int = 10
    kappa2: int = 5
    permute: bool = True
    prune: bool = True
    min_change: float = 0.0
    warm_passes: int = 2
    cached_passes: int = 20
    full_every: int = 10
    relaxation: float = 1.3

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"schedule must be one of {', '.join(map(repr, SCHEDULES))}; got {self.schedule!r}"
            )
        for name in ("tau", "tau_inner", "min_change"):
            value = getattr(self, name)
            if not (value >= 0 and value < float("inf")):
                raise ValueError(f"{name} must be non-negative and finite, got {value!r}")
        for name, least in (
            ("kappa1", 0),
            ("kappa2", 1),
            ("warm_passes", 1),
            ("cached_passes", 1),
            ("full_every", 1),
        ):
            value = getattr(self, name)
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not whole or value < least:
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, got {value!r}"
                )
        if not 0 < self.relaxation < 2:
            raise ValueError(f"relaxation must lie between 0 and 2, got {self.relaxation!r}")

    @property
    def factored(self) -> bool:
        """Only the auto schedule keeps blocks in parts."""
        return self.schedule == "auto"

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        if self.schedule == "auto":
            state: dict[str, Any] = {"looks": 0, "left": 0, "made": 0, "gap": None, "parts": 0}
            return state | {"work": 0.0, "gain": 0.0}
        # Algorithm 3, line 4
        return {"iter": 0, "get_max_y": True, "tau_v": 0.0}

    def step(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass."""
        if self.schedule == "auto":
            return self._auto(engine, state, context)
        return self._paper(engine, state, context)

    # ---- Algorithms 1 and 3 ------------------------------------------------------------------

    def _paper(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """One iteration of the outer loop of Algorithm 3 (lines 5-42), or of Algorithm 1.

        ψ̂_max of lines 25-26 is taken from the values met at the visits; computing it again for
        all examples after the loop would only cost one more pass.
        """
        basic = self.schedule == "basic"
        options = PassOptions(
            tau=self.tau if state["get_max_y"] else 0.0,
            tau_inner=self.tau_inner,
            rounds=1000 if basic else 1,  # Algorithm 1 solves (4.1) completely
            prune=self.prune,  # line 23
        )
        order = context.order(self.permute)
        finished, reason = False, ""
        if state["get_max_y"]:  # type I, lines 8-17
            kind = "exact"
            result = engine.exact_pass(order, options, context.seconds_left)
            if result.solved == 0:  # lines 28-29: nothing changed in the outer loop
                finished, reason = True, f"no violation above tau = {self.tau:g}"
            elif result.gain <= self.min_change * abs(context.dual):
                finished, reason = True, f"relative change of the dual below {self.min_change:g}"
            elif (
                not basic and state["iter"] >= self.kappa1 and result.psi_cached_max > self.tau
            ):  # lines 31-34
                state["tau_v"] = result.psi_cached_max / 2
                state["get_max_y"] = False
        else:  # type II, line 19
            kind = "cached"
            result = engine.cached_pass(order, options, context.seconds_left)
            if (
                result.psi_cached_max < state["tau_v"]
                or (state["iter"] - self.kappa1) % self.kappa2 == 0
            ):  # lines 37-39
                state["get_max_y"] = True
        state["iter"] += 1  # line 41
        return Step(kind, result, finished and not result.interrupted, reason)

    # ---- the auto schedule -------------------------------------------------------------------

    #: SMO stops at this share of the violation it met: deeper solves are undone by the next block.
    SMO_DEPTH: ClassVar[float] = 0.1
    #: A cached visit that finds less than this share of the average violation leaves w alone.
    IDLE: ClassVar[float] = 0.5
    #: Passes that are not full visit parts whose last violation was above this share of it.
    BUSY: ClassVar[float] = 0.5
    #: Enough cached passes when what is left among the kept planes is this share of the gap.
    ENOUGH: ClassVar[float] = 0.05
    #: A cached pass pays with this multiple of the gain per work of its round.
    PAYS: ClassVar[float] = 1.0
    #: Below this relative gap, and with so many parts an example, look at one w.
    SETTLED: ClassVar[float] = 0.1
    PARTS: ClassVar[float] = 1.3
    #: Look at one w once the last gap seen was within this factor of the one asked for.
    CONFIRM: ClassVar[float] = 1.5

    def _auto(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        if state["left"] == 0:
            return self._look(engine, state, context)
        return self._improve(engine, state, context)

    def _look(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Call the oracle on all examples: a step on each or, when the end is near, the true gap.

        Steps while the oracle goes round make more of its answers, because each is found under
        the newest w. At one w the sum of the block gaps is the duality gap, which alone may stop.
        """
        if self._near(state, context, self.CONFIRM) or self._settled(state, context):
            result = engine.collect_pass(context.threads, context.seconds_left)
            kind = "collect"
        else:
            tau = 0.0 if state["gap"] is None else self.IDLE * self._average(engine, state)
            options = PassOptions(tau=tau, tau_relative=self.SMO_DEPTH, prune=self.prune)
            result = engine.exact_pass(context.order(self.permute), options, context.seconds_left)
            kind = "exact"
        state["gap"] = result.gap
        state["parts"] = max(engine.size()["parts"], 1)
        # The first cached pass visits all parts, unless this pass did so already.
        state["made"] = 0 if kind == "collect" else 1
        state["work"], state["gain"] = result.work, result.gain
        state["looks"] += 1
        if state["looks"] >= self.warm_passes:
            state["left"] = self.cached_passes
        return Step(kind, result)

    def _improve(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Optimise over the kept planes, mostly where the violation is large."""
        average = self._average(engine, state)
        full = state["made"] % self.full_every == 0 or context.slow_oracle
        state["made"] += 1
        options = PassOptions(
            tau=self.IDLE * average,
            tau_relative=self.SMO_DEPTH,
            relaxation=self.relaxation,
            recombine=True,
            min_violation=0.0 if full else self.BUSY * average,
            prune=self.prune,
        )
        result = engine.cached_pass(context.order(self.permute), options, context.seconds_left)
        state["left"] -= 1
        state["work"] += result.work
        state["gain"] += result.gain
        # A cached pass pays while it gains more for its work than this round did so far, the
        # oracle's pass included (the rule of Shah, Kolmogorov and Lampert's MP-BCFW).
        pays = result.gain * state["work"] > self.PAYS * state["gain"] * result.work
        if not pays or result.cached_gap < self.ENOUGH * state["gap"]:
            state["left"] = 0
        return Step("cached", result)

    @staticmethod
    def _average(engine: Engine, state: dict[str, Any]) -> float:
        """Violation of an average part when the oracle last went round."""
        return float(state["gap"] / engine.C / state["parts"])

    def _settled(self, state: dict[str, Any], context: Context) -> bool:
        """Whether w changes so little that planes found under the same w are as good.

        That is so late in the training, and where blocks fall into several parts: then many small
        steps have to be made, and the cached passes make them for less.
        """
        return (
            state["gap"] is not None
            and state["gap"] <= self.SETTLED * context.dual
            and state["parts"] >= self.PARTS * context.n_examples
        )

    @staticmethod
    def _near(state: dict[str, Any], context: Context, factor: float) -> bool:
        """Whether the gap last seen comes near the one asked for."""
        return state["gap"] is not None and state["gap"] <= factor * context.gap * context.dual
