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
    The same dual on the schedule of ``maxmargin.solvers.auto``: factored blocks, rounds of exact
    and cached passes, over-relaxed steps.
``"paper"``
    Algorithm 3 with the paper's parameters. It stops when no ψ_i exceeds ``tau``.
``"basic"``
    Algorithm 1: each example is solved to τ-optimality with repeated oracle calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin._native import Engine, PassOptions
from maxmargin.checks import check_choice, check_not_negative, check_whole_attributes
from maxmargin.solvers.auto import AutoSchedule
from maxmargin.solvers.steps import Context, Step

__all__ = ["SDM"]

SCHEDULES = ("auto", "paper", "basic")


@dataclass(frozen=True)
class SDM(AutoSchedule):
    """Sequential dual method.

    Parameters
    ----------
    schedule : {"auto", "paper", "basic"}
        How passes follow each other; see the module's text.
    tau : float
        τ: an example whose violation ψ_i is not above it counts as solved (paper, basic).
    tau_inner : float
        τ̃: SMO stops at this violation (paper, basic). It must be below τ, or blocks would be left
        that count as not solved; where it is not, 0.6 τ (the paper's proportion) takes its place.
    kappa1 : int
        κ₁: passes of type I before the first of type II (paper).
    kappa2 : int
        κ₂: at most this many passes of type II in a row (paper).
    min_change : float
        Stop a type-I loop when a pass raises the dual by less than this share, even though
        ψ_max > τ; 0 switches this off (paper, basic).
    slack, rescale : str
        The formulation of the margin; as in `AutoSchedule`.
    permute, prune : bool
        As in `AutoSchedule`.
    warm_passes, cached_passes, full_every : int
        As in `AutoSchedule` (auto).
    relaxation : float
        As in `AutoSchedule` (auto).
    """

    name: ClassVar[str] = "sdm"
    windows: ClassVar[bool] = True

    schedule: str = "auto"
    tau: float = 0.25
    tau_inner: float = 0.15
    kappa1: int = 10
    kappa2: int = 5
    min_change: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schedule", self.schedule, SCHEDULES)
        check_not_negative(self, "tau", "tau_inner", "min_change")
        check_whole_attributes(self, kappa1=0, kappa2=1)

    @property
    def factored(self) -> bool:
        """Only the auto schedule keeps blocks in parts."""
        return self.schedule == "auto" and self.plain

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        if self.schedule == "auto":
            return self.auto_init()
        # Algorithm 3, line 4
        return {"iter": 0, "get_max_y": True, "tau_v": 0.0}

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass."""
        if self.schedule == "auto":
            return self.auto_step(machine, state, context)
        return self._paper(machine, state, context)

    @property
    def smo_tolerance(self) -> float:
        """The τ̃ that is used: ``tau_inner``, if it is below τ."""
        return self.tau_inner if self.tau_inner < self.tau else 0.6 * self.tau

    # ---- Algorithms 1 and 3 ------------------------------------------------------------------

    def _paper(self, engine: Engine, state: dict[str, Any], context: Context) -> Step:
        """One iteration of the outer loop of Algorithm 3 (lines 5-42), or of Algorithm 1.

        ψ̂_max of lines 25-26 is taken from the values met at the visits; computing it again for
        all examples after the loop would only cost one more pass.
        """
        basic = self.schedule == "basic"
        options = PassOptions(
            tau=self.tau if state["get_max_y"] else 0.0,
            tau_inner=self.smo_tolerance,
            rounds=1000 if basic else 1,  # Algorithm 1 solves (4.1) completely
            prune=self.prune,  # line 23
        )
        order = context.order(self.permute)
        finished, stuck, reason = False, False, ""
        if state["get_max_y"]:  # type I, lines 8-17
            kind = "exact"
            result = engine.exact_pass(order, options, context.seconds_left)
            stuck = result.solved == 0
            if result.psi_max <= self.tau:
                # Lines 11 and 28-29: no ψ_i was above τ, so that nothing changed in the outer loop
                # and all of them were met at one w. That SMO made no step would not be enough.
                finished, reason = True, f"no violation above tau = {self.tau:g}"
            elif self.min_change > 0 and result.gain <= self.min_change * abs(context.dual):
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
        done = not result.interrupted
        return Step(kind, result, finished and done, reason, stuck and done)
