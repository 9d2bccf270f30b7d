"""Links: how the weights follow from the dual, as data.

Every dual method here keeps u = u₀ + C Σ α Δf. A regulariser that is a sum over the weights,

    Ω(w) = Σ_k (w_k - m_k)² / (2 s_k) + max(t⁻_k (w_k - m_k), t⁺_k (w_k - m_k)),
    least_k <= w_k <= most_k,

owns the link w = link(u), the gradient of its conjugate Ω*:

    w_k = clip(m_k + s_k soft(u_k), least_k, most_k),

where soft(u) is u - t⁺ above t⁺, u - t⁻ below t⁻ and zero between them. ``native/link.hpp`` has
the derivation and the same functions for native code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native

__all__ = ["Link"]

Field = float | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Link:
    """The link of a regulariser; each field is one number, or one for each weight.

    Arrays are in the native layout of the weights (for a structure of one's own: one entry per
    feature). The defaults are those of L2: w = u.

    Parameters
    ----------
    lower, upper : float or array
        Thresholds t⁻ <= 0 <= t⁺: a weight stays at its offset while u is between them.
    scale : float or array
        s >= 0; a weight of scale 0 is held at its offset.
    offset : float or array
        m, where a weight is when nothing pulls at it. Other than 0 only as an array.
    least, most : float or array
        Bounds of the weights. Those that leave out 0 only as arrays.

    Examples
    --------
    >>> Link(least=0.0).weights(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    lower: Field = 0.0
    upper: Field = 0.0
    scale: Field = 1.0
    offset: Field = 0.0
    least: Field = -math.inf
    most: Field = math.inf

    def native(self) -> _native.Link:
        """Return it as the dual engine takes it."""
        return _native.Link(
            lower=_field("lower", self.lower),
            upper=_field("upper", self.upper),
            scale=_field("scale", self.scale),
            offset=_field("offset", self.offset),
            least=_field("least", self.least),
            most=_field("most", self.most),
        )

    def at(self, places: NDArray[np.intp]) -> Link:
        """Return the link of some weights.

        Parameters
        ----------
        places : int array
            Which.
        """
        fields = vars(self).items()
        return Link(**{name: x if np.ndim(x) == 0 else np.asarray(x)[places] for name, x in fields})

    @property
    def uniform(self) -> bool:
        """Whether each field is one number for all weights."""
        return all(np.ndim(value) == 0 for value in vars(self).values())

    @property
    def identity(self) -> bool:
        """Whether w = u, as for L2: of millions of weights nothing is to be done then."""
        pairs = zip(vars(self).values(), vars(Link()).values(), strict=True)
        return all(np.ndim(value) == 0 and value == plain for value, plain in pairs)

    def weights(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """Return link(u)."""
        u = u.astype(np.float64, copy=False)
        if self.identity:
            return u
        soft = np.maximum(u - self.upper, 0) + np.minimum(u - self.lower, 0)
        return np.clip(self.offset + self.scale * soft, self.least, self.most)

    def sums(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return a u with link(u) = w, as far as there is one.

        Where a weight is at its offset, any u between the thresholds would do, and 0 is given; a
        weight of scale 0 has no u but that either, and one beyond its bounds counts as at them.
        """
        w = weights.astype(np.float64, copy=False)
        if self.identity:
            return w
        w = np.clip(w, self.least, self.most)
        d = w - self.offset
        scale = np.broadcast_to(np.asarray(self.scale, dtype=np.float64), d.shape)
        u = np.divide(d, scale, out=np.zeros_like(d), where=scale != 0)
        return u + np.where(u > 0, self.upper, 0.0) + np.where(u < 0, self.lower, 0.0)

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return Ω(w), summed in 8-byte arithmetic; infinity where Ω does not allow w."""
        w = weights.astype(np.float64, copy=False)
        if self.identity:
            with np.errstate(over="ignore"):
                return 0.5 * float(w @ w)
        d = w - self.offset
        scale = np.broadcast_to(np.asarray(self.scale, dtype=np.float64), d.shape)
        held = scale == 0
        if np.any(d[held]) or np.any(w < self.least) or np.any(w > self.most):
            return math.inf
        with np.errstate(over="ignore"):  # infinite then, which the driver refuses
            square = np.divide(d * d, 2 * scale, out=np.zeros_like(d), where=~held)
        kink = np.where(d > 0, np.multiply(self.upper, d), 0.0)
        kink += np.where(d < 0, np.multiply(self.lower, d), 0.0)
        return float(square.sum() + kink.sum())

    def conjugate(self, u: NDArray[Any]) -> float:
        """Return Ω*(u) = max over w of w.u - Ω(w)."""
        w = self.weights(u)
        return float(w @ u.astype(np.float64, copy=False)) - self.penalty(w)


def _field(name: str, value: Any) -> Any:
    """Return a field as native code takes it: a float, or an array of one dimension."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} of a link must be a number or an array of numbers, got {value!r:.80}"
        ) from error
    if array.ndim > 1:
        raise ValueError(f"{name} of a link has {array.ndim} dimensions; expected a number or one")
    return float(array) if array.ndim == 0 else np.ascontiguousarray(array)
