"""What every regulariser is, and how arrays of a user get into the layout of the engine's weights.

Native code pads the weights of some structures, 4- and 8-byte ones differently. A regulariser with
an entry for each weight (a mean, bounds, a choice of weights by name) is given in the layout of the
structure; `Regularizer.bound`, which estimators call once the structure is prepared, makes one of
it whose link is in the native layout.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link

__all__ = ["ArrayRegularizer", "BoundRegularizer", "Regularizer", "WeightLayout"]


class WeightLayout(Protocol):
    """Where the weights of a prepared structure are in the engine's arrays."""

    @property
    def size(self) -> int:
        """Number of weights as the methods of the structure have them."""

    @property
    def single(self) -> bool:
        """Whether training begins with 4-byte weights."""

    def plain(self, values: NDArray[Any], what: str) -> NDArray[np.float64]:
        """Return an array with an entry for each weight, native or not, without padding.

        Raises
        ------
        ValueError
            If it has another number of entries; the message calls it `what`.
        """

    def native(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return an array of `size` entries in the native layout, padded with zeros."""

    def chosen(self, where: Any) -> NDArray[np.bool_]:
        """Return which of the `size` weights a description by names means.

        Raises
        ------
        ValueError, TypeError, NotCompatibleError
            If it names nothing, or the structure has no names.
        """


@dataclass(frozen=True)
class Regularizer:
    """Base of all regularisers."""

    @property
    def linked(self) -> bool:
        """Whether the weights follow from the dual through a `link`."""
        return type(self).link is not Regularizer.link

    @property
    def link(self) -> Link:
        """How the weights follow from u = C Σ α Δf."""
        raise NotCompatibleError(f"{type(self).__name__} has no native link")

    def bound(self, layout: WeightLayout) -> Regularizer:
        """Return this regulariser for the weights of one structure.

        Parameters
        ----------
        layout : WeightLayout
            Of the structure, which is prepared.

        Returns
        -------
        Regularizer
            Itself, unless it has arrays or names that are about single weights.

        Raises
        ------
        ValueError, TypeError, NotCompatibleError
            If its arrays or names do not fit the structure.
        """
        return self

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return Ω(w), summed in 8-byte arithmetic.

        Parameters
        ----------
        weights : array
            The weights; padding is zero.

        Returns
        -------
        float
            What the regulariser charges for them.
        """
        return self.link.penalty(weights)

    def dual_bound(self, u: NDArray[Any], loss: float) -> float:
        """Return a lower bound of the primal from any multipliers.

        With multipliers α, u = C Σ α Δf and loss = C Σ α l, no primal is below loss - Ω*(u). The
        same holds of s α, the rest of each example's mass going to its truth; the best s between
        0 and 1 is taken.

        Parameters
        ----------
        u : array
            C Σ α Δf.
        loss : float
            C Σ α l.

        Returns
        -------
        float
            The bound.
        """
        link = self.link
        u = u.astype(np.float64, copy=False)

        def slope(s: float) -> float:
            return loss - float(link.weights(s * u) @ u)

        # s loss - Ω*(s u) is concave in s, and its slope is loss - link(s u).u: bisect.
        low, high = 0.0, 1.0
        if slope(1.0) < 0:
            for _ in range(60):
                middle = 0.5 * (low + high)
                if slope(middle) > 0:
                    low = middle
                else:
                    high = middle
        return max(-link.conjugate(0 * u), high * loss - link.conjugate(high * u))


class ArrayRegularizer(Regularizer):
    """A regulariser whose fields may be arrays: compared by content, shown by size and checksum."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        shown = (f"{field.name}={_shown(getattr(self, field.name))}" for field in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False)
class BoundRegularizer(Regularizer):
    """A regulariser whose arrays are in the native layout of one structure.

    Parameters
    ----------
    origin : Regularizer
        As the user gave it.
    given : Link
        Its link.
    """

    origin: Regularizer
    given: Link

    @property
    def link(self) -> Link:
        """The link, for this structure."""
        return self.given

    def __repr__(self) -> str:
        return repr(self.origin)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def _shown(value: Any) -> str:
    """Show a value; an array by its size and a checksum, by which checkpoints know it."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    size = " x ".join(map(str, value.shape))
    return f"<{size} numbers, {zlib.crc32(np.ascontiguousarray(value).tobytes()):08x}>"
