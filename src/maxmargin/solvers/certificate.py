"""Certificates: how far a model can be from the optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Certificate", "gap_scale", "relative_gap", "widened_reason"]


@dataclass(frozen=True)
class Certificate:
    """How far a returned model can be from the optimum, computed from scratch.

    The weights were rebuilt from the multipliers, and primal and dual computed from them and the
    data in 8-byte arithmetic; nothing that training accumulated enters. The primal is that of the
    weights as they are returned, which float32 rounds. (Solvers that keep w and no
    multipliers have the primal from scratch too, and as dual the best bound that they met.)

    Attributes
    ----------
    primal : float
        Ω(w) + C Σ_i max_y [l_i(y) - w·Δf_i(y)], with Ω(w) = ½‖w‖² or the elastic net; other
        formulations of the margin have their own loss (``native/formulation.hpp``).
    dual : float
        C Σ_i Σ_y α_i(y) l_i(y) - Ω*(u): no model has a smaller primal than this. For L2,
        Ω*(u) = ½‖w‖².
    C : float
        The C of the objective (of the sum over examples).
    n_examples : int
        Number of examples.
    approximate : bool
        An oracle may have missed its best output. The primal is then a bound from above, by what
        the oracle could prove, so that the gap holds all the same; unless it is known that one was
        missed.
    missed : int or None
        An example whose argmax returned an output that is worse than one already known (`UNKNOWN`
        where nobody can tell which example it was); None if there is none. Outputs that are known
        count in the primal, but there may be others that argmax misses: the primal is then a bound
        from below, and the gap says nothing. Such a training has not converged.
    widened : int or None
        The pass after which training with float32 weights went on with float64 ones, because
        rounding kept the gap above the one asked for; 0: on the engine of an earlier training that
        did. The weights of this certificate are then of float64. None: nothing of the kind.
    """

    primal: float
    dual: float
    C: float
    n_examples: int
    approximate: bool = False
    missed: int | None = None
    widened: int | None = None

    #: ``missed`` where the example is not known.
    UNKNOWN: ClassVar[int] = -1

    @property
    def gap(self) -> float:
        """Relative duality gap (primal - dual) / primal."""
        return relative_gap(self.primal, self.dual)

    @property
    def advice(self) -> str:
        """What is wrong with argmax and what to do about it; empty if nothing is known."""
        if self.missed is None:
            return ""
        where = f"example {self.missed}"
        if self.missed == self.UNKNOWN:
            where = "an example (or the run was resumed from a checkpoint with a wrong bound)"
        return (
            f"argmax missed a better output of {where}, so that nobody can tell how far this is "
            "from the optimum; run check_structure to see whether argmax finds the maximum of "
            "loss + score"
        )

    def __str__(self) -> str:
        if self.missed is not None:
            return (
                f"primal at least {self.primal:.6g}, dual {self.dual:.6g} (C = {self.C:g}), with "
                f"an approximate oracle: {self.advice}"
            )
        return (
            f"primal {self.primal:.6g}, dual {self.dual:.6g}: "
            f"within {100 * self.gap:.3g} % of the optimum (C = {self.C:g})"
            + (", with an approximate oracle" if self.approximate else "")
            + (f"; {went_on}" if (went_on := widened_reason(self.widened)) else "")
        )


def widened_reason(widened: int | None) -> str:
    """Say when 8-byte weights took the place of 4-byte ones; empty if they did not.

    >>> widened_reason(57), widened_reason(0), widened_reason(None)
    ('went on in 8-byte arithmetic after pass 57', 'in 8-byte arithmetic from the start', '')
    """
    if widened is None:
        return ""
    if widened == 0:  # on the engine of an earlier training
        return "in 8-byte arithmetic from the start"
    return f"went on in 8-byte arithmetic after pass {widened}"


def gap_scale(primal: float, dual: float) -> float:
    """Return the size of the objective to which a gap between primal and dual is compared.

    That is the primal where it is positive. With a fixed linear term, Ω(w) - w·u₀ may be
    negative, and the primal with it; then it is the larger of the two sizes, which is that of the
    dual, as no dual is above the primal.
    """
    return primal if primal > 0 else max(abs(primal), abs(dual))


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / `gap_scale`; 0 where both are 0, NaN where the primal is not known.

    A primal that is infinite (a hard margin that w does not have) is all gap.
    """
    if primal == math.inf:
        return 1.0
    if primal == 0 and dual >= 0:
        return 0.0
    return (primal - dual) / gap_scale(primal, dual)
