"""DualCoordinate: the generalised dual coordinate solver, on a batch of examples.

Problem (1) of the paper and its dual (20), (21)::

    min_w  ½‖w‖² + C Σ_i max(0, max_j l_ij - w·x_ij)
    max_α  C Σ α_ij l_ij - ½‖C Σ α_ij x_ij‖²      s.t.  Σ_j α_ij <= 1,  α >= 0

(x_ij is Δf_i(j) of the other solvers. The paper has C in its x_ij and l_ij.) The block constraint
is that of the engine: Σ = 1 with the truth as a member, whose plane is zero.

Paper: Ramanan, "Dual coordinate solvers for large-scale structural SVMs", 2013, Algorithm 1, with
the corrections listed in ``docs/errata.md``. A pass visits the examples in a new random order
("Speed" in section 3.2). A visit takes the multipliers of the example in random order (line 3) and
moves one (lines 9 to 11), or two where the sum is at its bound (lines 5 to 8)
(``native/coordinate_step.hpp``). Where outputs are too many to be listed, a visit of a pass with
the oracle adds the output with the largest gradient, as section 4 suggests, and passes over the
outputs already met follow while they gain more for their work. (With several threads a dear oracle
is asked for some dozens of examples at one w: ``native/oracle_ahead.hpp``.)

Examples with one row of features each, which is what binary classification and regression are, have
a pass of their own: one number an example and rounds over those that can still move
(``native/row_ascent.hpp``).

Bounds
------
The lower bound LB = D(α) (34) is tracked by the steps. Every pass has the approximate upper bound
UB' of (36), of hinges that were met while w moved (of rows with a sign: when each was visited last,
and rounds end when that is within the gap asked for). When UB' - LB is within the tolerance, the
true upper bound (35) is computed at one w, and training goes on if that is not. Multipliers of an
earlier run are gone on from (hot start): ``warm_start``, or ``engine`` of
`maxmargin.solvers.solve`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from maxmargin._native import CoordinateOptions, Engine, PassOptions, PassResult
from maxmargin.checks import check_number, check_whole_attributes
from maxmargin.solvers.base import Solver
from maxmargin.solvers.steps import Context, Step

__all__ = ["DualCoordinate"]


@dataclass(frozen=True)
class DualCoordinate(Solver):
    """Dual coordinate ascent with single and paired steps.

    Parameters
    ----------
    tol : float or None
        Stop when UB - LB is at most this (an absolute number), besides the relative gap that is
        asked for. None: the relative gap alone.
    cached_passes : int
        Passes over the outputs already met after each pass with the oracle, at most; for rows with
        a sign: rounds within a pass after its first one.
    permute : bool
        Visit the examples in a new random order in each pass, or in that of the data.
    """

    name: ClassVar[str] = "dualcoordinate"
    windows: ClassVar[bool] = True
    later: ClassVar[Mapping[str, Any]] = MappingProxyType({"share": 1.0})

    tol: float | None = None
    cached_passes: int = 20
    permute: bool = True

    def __post_init__(self) -> None:
        if self.tol is not None:
            check_number("tol", self.tol, least=0.0)
        check_whole_attributes(self, cached_passes=0)

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"left": 0, "work": 0.0, "gain": 0.0, "psi": None, "share": 1.0}

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that no run can have had."""
        super().check_state(state, machine, context)
        if not 0 <= state["share"] <= 1:
            raise ValueError(f"share is {state['share']}; expected a number from 0 to 1")

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass: lines 3 to 12 for every example."""
        seed = int(context.rng.integers(2**63))
        order = context.order(self.permute)
        if machine.offers_coordinates:
            options = CoordinateOptions(
                rounds=1 + self.cached_passes,
                enough=self.ENOUGH,
                goal=state["share"] * context.gap,
                shrink=math.inf if state["psi"] is None else state["psi"],
                seed=seed,
            )
            result = machine.coordinate_pass(order, options, context.seconds_left)
            state["psi"] = result.psi_max
            if result.gap <= state["share"] * context.gap * abs(context.dual + result.gain):
                # If that is not the end, the gap at one w was larger: the next goal is lower.
                state["share"] *= self.LOWER
            return self._bounded(machine, result, context)
        passing = PassOptions(coordinate=True, seed=seed)
        if state["left"] > 0:
            result = machine.cached_pass(order, passing, context.seconds_left)
            state["left"] -= 1
            if result.gain * state["work"] <= state["gain"] * result.work:
                state["left"] = 0
            return Step("cached", result)
        result = machine.exact_pass(
            order, passing, context.seconds_left, context.batch, context.threads
        )
        state["left"] = self.cached_passes
        state["work"], state["gain"] = result.work, result.gain
        return self._bounded(machine, result, context)

    #: Rounds over rows with a sign end when what is left of the gap is this share, ...
    ENOUGH: ClassVar[float] = 0.1
    #: ... or within the gap asked for, times this for each time that it was not small enough.
    LOWER: ClassVar[float] = 0.5

    def _bounded(self, machine: Engine, result: PassResult, context: Context) -> Step:
        """Return a pass with the oracle, after which `tol` may be met."""
        if self.tol is None or result.interrupted or result.gap > self.tol:  # UB' of (36)
            return Step("exact", result)
        lower = context.dual + result.gain  # (34)
        upper = machine.objective(context.threads)  # (35)
        finished = upper - lower <= self.tol
        return Step("exact", result, finished, f"UB - LB is at most tol = {self.tol:g}")
