"""Regularisers: what is paid for the weights, and how the weights follow from the dual.

Every dual method here keeps u = C Σ α Δf; a regulariser Ω owns the link w = link(u), which is the
gradient of its conjugate Ω*, and the value Ω(w) in the primal Ω(w) + C Σ ξ_i. The links are in
``native/weights.hpp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError

__all__ = ["L2", "ElasticNet", "Regularizer", "make_regularizer"]


@dataclass(frozen=True)
class Regularizer:
    """Base of all regularisers."""

    @property
    def link(self) -> tuple[float, float]:
        """The ρ₁ and ρ₂ of the native link w = soft(u, ρ₁) / ρ₂."""
        raise NotCompatibleError(f"{type(self).__name__} has no native link")

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return Ω(w), summed in 8-byte arithmetic.

        Parameters
        ----------
        weights : array
            The weights; padding is zero.

        Returns
        -------
        float
            ρ₁‖w‖₁ + (ρ₂/2)‖w‖².
        """
        rho1, rho2 = self.link
        w = weights.astype(np.float64, copy=False)
        return rho1 * float(np.abs(w).sum()) + 0.5 * rho2 * float(w @ w)


@dataclass(frozen=True)
class L2(Regularizer):
    """½‖w‖²: the link is the identity, w = u."""

    @property
    def link(self) -> tuple[float, float]:
        """The identity: ρ₁ = 0, ρ₂ = 1."""
        return 0.0, 1.0


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
        if not (math.isfinite(rho1) and rho1 >= 0):
            raise ValueError(f"rho1 is {rho1}; expected a finite number that is not negative")
        if rho2 == 0:
            raise ValueError(
                "rho2 is 0 (l1_ratio 1): that is a linear program, which the dual engine does not "
                "solve; take a small rho2, for example l1_ratio=0.99"
            )
        if not (math.isfinite(rho2) and rho2 > 0):
            raise ValueError(f"rho2 is {rho2}; expected a finite number above 0")
        object.__setattr__(self, "rho1", float(rho1))
        object.__setattr__(self, "rho2", float(rho2))

    @property
    def link(self) -> tuple[float, float]:
        """The ρ₁ and ρ₂ of the native link."""
        return self.rho1, self.rho2


def make_regularizer(regularizer: Regularizer | str | None) -> Regularizer:
    """Turn what a user wrote into a regulariser.

    Parameters
    ----------
    regularizer : Regularizer, "l2" or None
        None means L2.

    Returns
    -------
    Regularizer
        The description.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if regularizer is None or (isinstance(regularizer, str) and regularizer.lower() == "l2"):
        return L2()
    if isinstance(regularizer, Regularizer):
        return regularizer
    raise ValueError(f'regularizer must be None, "l2" or a Regularizer, got {regularizer!r}')
