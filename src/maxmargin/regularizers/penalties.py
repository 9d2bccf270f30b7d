"""L2, the elastic net, L1 and the ball of L1: what is paid for the size of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import square
from maxmargin.checks import check_number
from maxmargin.links import Link
from maxmargin.regularizers.base import Regularizer

__all__ = ["L1", "L2", "ElasticNet", "L1Ball", "Selected"]


@dataclass(frozen=True)
class L2(Regularizer):
    """½‖w‖²: the link is the identity, w = u."""

    @property
    def link(self) -> Link:
        """The identity."""
        return Link()

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return ½‖w‖², without an array in between: solvers ask every pass.

        A sum that overflows is infinite, which the driver refuses.
        """
        return 0.5 * square(weights)

    def dual_bound(self, u: NDArray[Any], loss: float) -> float:
        """Return s·loss - ½s²‖u‖² for the best s, here in closed form: solvers ask every pass."""
        norm = 2 * self.penalty(u)
        s = min(1.0, loss / norm) if norm > 0 else 1.0
        return max(0.0, s * loss - 0.5 * s * s * norm)


@dataclass(frozen=True, init=False)
class ElasticNet(Regularizer):
    """ρ₁‖w‖₁ + (ρ₂/2)‖w‖²: most weights are exactly zero (OP5 of the SAP paper).

    The link is w = soft(u, ρ₁) / ρ₂, where soft moves u towards zero by ρ₁. Give either ``rho1``
    and ``rho2``, or ``l1_ratio``, which stands for ρ₁ = l1_ratio and ρ₂ = 1 - l1_ratio.

    Parameters
    ----------
    rho1 : float
        Weight of ‖w‖₁; not negative. The larger, the fewer weights; 0 is a plain L2 model.
    rho2 : float
        Weight of ½‖w‖²; positive.
    l1_ratio : float
        From 0 to just below 1.

    Examples
    --------
    >>> ElasticNet(l1_ratio=0.75)
    ElasticNet(rho1=0.75, rho2=0.25)
    """

    rho1: float
    rho2: float

    def __init__(
        self,
        rho1: float | None = None,
        rho2: float | None = None,
        *,
        l1_ratio: float | None = None,
    ) -> None:
        if l1_ratio is not None:
            if rho1 is not None or rho2 is not None:
                raise ValueError("give rho1 and rho2, or l1_ratio, but not both")
            if not 0 <= l1_ratio <= 1:
                raise ValueError(f"l1_ratio is {l1_ratio}; expected 0 to 1")
            rho1, rho2 = float(l1_ratio), 1.0 - float(l1_ratio)
        if rho1 is None or rho2 is None:
            raise ValueError("expected rho1 and rho2, or l1_ratio")
        rho1 = check_number("rho1", rho1, least=0.0)
        if rho2 == 0:
            raise ValueError(
                "rho2 is 0 (l1_ratio 1): that is a linear program, which the dual engine does not "
                'solve. Take regularizer=L1() with solver="lp" (small problems only), or a small '
                "rho2, for example l1_ratio=0.99"
            )
        rho2 = check_number("rho2", rho2, above=0.0)
        object.__setattr__(self, "rho1", rho1)
        object.__setattr__(self, "rho2", rho2)

    @property
    def link(self) -> Link:
        """Thresholds ±ρ₁, scale 1/ρ₂."""
        return Link(lower=-self.rho1, upper=self.rho1, scale=1.0 / self.rho2)


@dataclass(frozen=True, eq=False, repr=False)
class Selected(Regularizer):
    """½‖w‖² over the weights that another model selected; all others are exactly zero.

    Parameters
    ----------
    weights : array
        The weights of that model, in the native layout: those that are not zero may be other than
        zero again.
    """

    weights: NDArray[Any]

    @property
    def link(self) -> Link:
        """That of L2 where the model had a weight; scale 0 elsewhere."""
        return Link(scale=(self.weights != 0).astype(np.float64))

    def __repr__(self) -> str:
        return f"Selected({np.count_nonzero(self.weights)} of {self.weights.size} weights)"


@dataclass(frozen=True)
class L1(Regularizer):
    """ρ₁‖w‖₁ alone, a linear program (OP3 of the SAP paper): for "lp" and "extragradient".

    Parameters
    ----------
    rho1 : float
        Weight of ‖w‖₁; positive.
    nonnegative : bool
        Allow no negative weights (OP4).
    """

    rho1: float = 1.0
    nonnegative: bool = False

    def __post_init__(self) -> None:
        check_number("rho1", self.rho1, above=0.0)

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return ρ₁‖w‖₁; infinity for a negative weight where none is allowed."""
        if self.nonnegative and weights.size and weights.min() < 0:
            return math.inf
        return self.rho1 * float(np.abs(weights.astype(np.float64, copy=False)).sum())

    def dual_bound(self, u: NDArray[Any], loss: float) -> float:
        """Return s·loss, with the largest s up to 1 for which no ``|s·u_j|`` exceeds ρ₁."""
        most = float(u.max(initial=0) if self.nonnegative else np.abs(u).max(initial=0))
        return max(0.0, loss * min(1.0, self.rho1 / most) if most > 0 else loss)


@dataclass(frozen=True)
class L1Ball(Regularizer):
    """‖w‖₁ <= radius as a constraint (II.7 of the SAP paper), for the solver "subgradient".

    Parameters
    ----------
    radius : float
        Largest sum of the sizes of all weights. The smaller, the fewer weights.
    """

    radius: float

    def __post_init__(self) -> None:
        check_number("radius", self.radius, above=0.0)

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return 0 in the ball, which rounding may miss by a hair, and infinity outside."""
        norm = float(np.abs(weights.astype(np.float64, copy=False)).sum())
        return 0.0 if norm <= self.radius * (1 + 1e-5) else math.inf

    def dual_bound(self, u: NDArray[Any], loss: float) -> float:
        """Return loss - radius·max|u_j|, or 0 if that is more."""
        return max(0.0, loss - self.radius * float(np.abs(u).max(initial=0)))
