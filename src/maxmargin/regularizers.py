"""Regularisers: what is paid for the weights, and how the weights follow from the dual.

Every dual method here keeps u = C Σ α Δf; a regulariser owns the link w = link(u) and the value
Ω(w) in the primal Ω(w) + C Σ ξ_i. New ones need a link in ``native/weights.hpp`` and a class here.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.errors import NotCompatibleError

__all__ = ["L2", "Regularizer", "make_regularizer"]


@dataclass(frozen=True)
class Regularizer:
    """Base of all regularisers."""

    @property
    def link(self) -> str:
        """Name of the native link."""
        raise NotCompatibleError(f"{type(self).__name__} has no native link")


@dataclass(frozen=True)
class L2(Regularizer):
    """½‖w‖²: the link is the identity, w = u."""

    @property
    def link(self) -> str:
        """Name of the native link."""
        return "identity"


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
