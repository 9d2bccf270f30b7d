"""SAP: the sequential alternating proximal method for sparse structural SVMs.

Problem (OP5 and its dual OP7 of the paper)::

    min_w  ρ₁‖w‖₁ + (ρ₂/2)‖w‖² + C Σ_i ξ_i      s.t.  w·Δf_i(y) >= l_i(y) - ξ_i     for all i, y
    min_αβ (C/2ρ₂) ‖Σ α_i(y) Δf_i(y) - β/C‖² - Σ α_i(y) l_i(y)
           s.t.  Σ_y α_i(y) = 1,  α >= 0,  |β_j| <= ρ₁
    w = (C Σ α_i(y) Δf_i(y) - β) / ρ₂                                                     (III.6)

Paper: Balamurugan, Shevade and Ravindra Babu, "Sequential Alternating Proximal Method for Scalable
Sparse Structural SVMs", ICDM 2012; with the corrections listed in ``docs/errata.md``. The α-problem
of an example (IV.13) is SMO with a diagonal μρ₂/C (``native/smo.hpp``); the β-problem (IV.14) is in
``native/weights.hpp``. There each step costs the non-zeros of its example only: a coordinate whose
u = C Σ α Δf rests moves geometrically towards its fixed point, in closed form, when next read.

Schedules
---------
``"auto"`` (default)
    The schedule that SDM has (``maxmargin.solvers.auto``), with β at its fixed point unless ``nu``
    says otherwise. ν → 0 turns w into soft-threshold(u, ρ₁)/ρ₂ at once. This is what the paper's
    hours become seconds by.
``"paper"``
    Algorithm 2: example after example in turn the oracle, the α-problem over V_i, a step of β, w.
``"batch"``
    Algorithm 1: β rests while the α-problem is solved by passes over all examples, then takes one
    step.

"paper" and "batch" stop on the gap, as all solvers do, or when ζ_i < ``theta`` for all examples
(IV.17) and, which the paper leaves out, β has settled: else weights would be called zero that are
not yet. The ζ_i that a pass meets are those of a moving w; when they are all small enough, one more
round of oracle calls at a w that rests confirms them. Whatever the schedule, the model that is
returned has β at its fixed point for the final α.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from maxmargin._native import Engine, PassOptions
from maxmargin.checks import check_choice, check_not_negative, check_whole_attributes
from maxmargin.regularizers import L2, ElasticNet, Regularizer
from maxmargin.solvers.auto import AutoSchedule
from maxmargin.solvers.steps import Context, PassTotals, Step

__all__ = ["SAP"]

SCHEDULES = ("auto", "paper", "batch")


class ScheduleDefault(float):
    """A number that nobody asked for: what the schedule has where ``mu`` or ``nu`` is None.

    ``dataclasses.replace`` hands the attributes of the old solver to the new one. By its type the
    new one knows that this one belongs to the old schedule.
    """


@dataclass(frozen=True)
class SAP(AutoSchedule):
    """Sequential alternating proximal method.

    Parameters
    ----------
    schedule : {"auto", "paper", "batch"}
        How passes follow each other; see the module's text.
    mu : float or None
        μ: cost-to-move of α. None: 0 for "auto", 1e-3 for the others ("small positive values").
    nu : float or None
        ν: cost-to-move of β. None: 0 for "auto", 1e-3 for the others.
    theta : float
        ϑ: an example with ζ_i below it counts as solved (paper, batch).
    theta_inner : float
        SMO stops at this violation (paper, batch). It must be below ϑ, or ζ_i would stay above it;
        where it is not, 0.1 ϑ takes its place.
    settled : float
        β has settled when no weight is further than this from where its fixed point has it.
    alpha_passes : int
        Passes over the examples that solve one α-problem (batch).
    slack, rescale : str
        The formulation of the margin; as in `AutoSchedule`.
    permute, prune : bool
        As in `AutoSchedule`.
    warm_passes, cached_passes, full_every : int
        As in `AutoSchedule` (auto).
    relaxation : float
        As in `AutoSchedule` (auto).
    """

    name: ClassVar[str] = "sap"
    windows: ClassVar[bool] = True
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (ElasticNet, L2)

    schedule: str = "auto"
    mu: float = None  # type: ignore[assignment]  # replaced below
    nu: float = None  # type: ignore[assignment]
    theta: float = 0.1
    theta_inner: float = 0.01
    settled: float = 1e-4
    alpha_passes: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schedule", self.schedule, SCHEDULES)
        for name in ("mu", "nu"):
            if getattr(self, name) is None or isinstance(getattr(self, name), ScheduleDefault):
                default = ScheduleDefault(0.0 if self.schedule == "auto" else 1e-3)
                object.__setattr__(self, name, default)
        check_not_negative(self, "mu", "nu", "theta", "theta_inner", "settled")
        check_whole_attributes(self, alpha_passes=1)

    @property
    def factored(self) -> bool:
        """Only the auto schedule keeps blocks in parts."""
        return self.schedule == "auto" and self.plain

    @property
    def smo_tolerance(self) -> float:
        """The violation at which SMO stops: ``theta_inner``, if it is below ϑ."""
        return self.theta_inner if self.theta_inner < self.theta else 0.1 * self.theta

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return self.auto_init() if self.schedule == "auto" else {"alpha_passes": 0}

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass: of Algorithm 2 (steps 6-15), of Algorithm 1 (steps 6-8), or auto."""
        if self.schedule == "auto":
            return self.auto_step(machine, state, context)
        batch = self.schedule == "batch"
        options = PassOptions(
            tau=0.0,
            tau_inner=self.smo_tolerance,
            prune=self.prune,  # V_i = {y : α_i(y) > 0}
            mu=self.mu,
            beta_steps=not batch,  # Algorithm 2, step 13
        )
        order = context.order(self.permute)
        end = time.perf_counter() + (context.seconds_left or 0.0)
        # Algorithm 2, steps 7-12 and 14, for each example in turn
        result = machine.exact_pass(order, options, context.seconds_left)
        solved = result.psi_max < self.theta  # (IV.17)
        if batch:
            state["alpha_passes"] += 1
            if solved or state["alpha_passes"] >= self.alpha_passes:
                state["alpha_passes"] = 0
                machine.beta_step()  # Algorithm 1, step 7
        if not solved or result.interrupted or machine.unsettled() > self.settled:
            return Step("exact", result)
        # Visits of which none has a ζ above ϑ leave w alone: then all were met at the same one.
        look = PassOptions(
            tau=self.theta,
            tau_inner=self.smo_tolerance,
            prune=self.prune,
            mu=self.mu,
            beta_steps=False,
        )
        left = None if context.seconds_left is None else max(end - time.perf_counter(), 0.0)
        seen = machine.exact_pass(order, look, left)
        totals = PassTotals(
            seen.gap,
            result.gain + seen.gain,
            result.oracle_calls + seen.oracle_calls,
            seen.interrupted,
        )
        finished = seen.psi_max < self.theta and not seen.interrupted
        reason = f"no zeta above theta = {self.theta:g}, and beta has settled"
        return Step("exact", totals, finished, reason)
