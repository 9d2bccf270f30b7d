"""Γ: what violated constraints cost, as a function of the auxiliary vectors v (or of φ itself).

The penalties of the paper's Eqs. (4) and (5), of section 5.1 and of section 4 are all distances of
linear functions of v from intervals,

    Γ(v) = Σ_i weight_i · dist(A_i·v, [low_i, high_i]),

where v are the vectors of all sequences one after the other:

=============================================  ====================================================
L1 distance to a target, Σ_k |v_k - a_k|       A_i = one coordinate, low = high = a
hinge of v_k >= a (Eq. (4)), of v_k <= a       A_i = one coordinate, high or low infinite
L1 distance of an average (Eq. (5))            A_i = 1/m at a coordinate of each sequence
bounds of an average                           the same with low < high
=============================================  ====================================================

Γ is convex and piecewise linear; with the zero plane, each term is the maximum of (at most) three,
0, A_i·v - high_i and low_i - A_i·v, which is what the dual engine takes as a block (`blocks`).
`OwnGamma` is any other convex Lipschitz function, by its value and a subgradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_number
from maxmargin.errors import ConstraintError

__all__ = ["Gamma", "GammaBlocks", "IntervalGamma", "OwnGamma", "SumGamma", "join"]

Vector = NDArray[np.float64]


class Gamma(Protocol):
    """A convex function of v with a finite Lipschitz constant."""

    @property
    def dimension(self) -> int:
        """Length of v."""

    @property
    def lipschitz(self) -> float:
        """A bound of the change of Γ by the Euclidean length of a change of v."""

    def value(self, v: Vector) -> float:
        """Return Γ(v)."""

    def subgradient(self, v: Vector) -> Vector:
        """Return a subgradient of Γ at v."""


class GammaBlocks(NamedTuple):
    """A piecewise linear Γ as blocks of the dual engine: examples with listed outputs.

    Attributes
    ----------
    offsets : int64 array of shape (n_blocks + 1,)
        The first output of each block, which is the zero plane.
    indptr, indices, values
        The outputs as compressed rows over v: the slope of each plane.
    loss : float64 array
        The constant of each plane.
    weight : float64 array of shape (n_blocks,)
        What the block is multiplied by.
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: Vector
    loss: Vector
    weight: Vector


@dataclass(frozen=True, eq=False)
class IntervalGamma:
    """A sum of distances of linear functions of v from intervals.

    Parameters
    ----------
    dimension : int
        Length of v.
    indptr, indices, values : arrays
        The linear functions A as compressed rows, one a term.
    low, high : float64 array of shape (n_terms,)
        The intervals; either end may be infinite.
    weight : float64 array of shape (n_terms,)
        Factors, not negative.

    Examples
    --------
    >>> gamma = IntervalGamma.coordinates(2, [0, 1], low=[1, 1], high=[1, 1])
    >>> gamma.value(np.array([0.5, 1.0])), gamma.subgradient(np.array([0.5, 1.0])).tolist()
    (0.5, [-1.0, 0.0])
    """

    dimension: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: Vector
    low: Vector
    high: Vector
    weight: Vector

    def __post_init__(self) -> None:
        for name in ("low", "high", "weight"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, array)
            if array.shape != (self.n_terms,):
                raise ConstraintError(
                    f"Γ: {name} has the shape {array.shape}; expected ({self.n_terms},), a number "
                    "for each term"
                )
            if np.isnan(array).any():
                raise ConstraintError(f"Γ: {name} has an entry that is no number")
        if (self.low > self.high).any():
            k = int(np.argmax(self.low > self.high))
            raise ConstraintError(
                f"Γ: term {k} has the lower bound {self.low[k]} above its upper bound "
                f"{self.high[k]}"
            )
        if (self.weight < 0).any() or not np.isfinite(self.weight).all():
            raise ConstraintError("Γ: weights must be finite and not negative")
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < self.dimension:
            raise ConstraintError(f"Γ: a coordinate is out of range; there are {self.dimension}")

    @classmethod
    def coordinates(
        cls, dimension: int, which: Any, *, low: Any, high: Any, weight: Any = 1.0
    ) -> IntervalGamma:
        """Return Γ with one term for each of some coordinates.

        Parameters
        ----------
        dimension : int
            Length of v.
        which : int array of shape (n,)
            The coordinates.
        low, high, weight : float or array of shape (n,)
            Intervals and factors. A target is an interval without length.

        Returns
        -------
        IntervalGamma
            Σ_k weight_k · dist(v_k, [low_k, high_k]).
        """
        which = np.asarray(which, dtype=np.int64)
        n = len(which)
        ends = []
        for name, end in (("low", low), ("high", high), ("weight", weight)):
            array = np.asarray(end, dtype=np.float64)
            if array.ndim > 1 or (array.ndim == 1 and len(array) != n):
                raise ConstraintError(
                    f"Γ: {name} has the shape {array.shape}; expected one number, or ({n},)"
                )
            ends.append(np.broadcast_to(array, (n,)).copy())
        return cls(dimension, np.arange(n + 1), which, np.ones(n), *ends)

    @classmethod
    def average(
        cls,
        dimension: int,
        rows: Sequence[tuple[Any, Any]],
        *,
        low: Any,
        high: Any,
        weight: Any = 1.0,
    ) -> IntervalGamma:
        """Return Γ with one term for each of some linear functions of v.

        Parameters
        ----------
        dimension : int
            Length of v.
        rows : list of (coordinates, factors)
            The functions; factors are an array or one number, such as 1/m.
        low, high, weight : float or array of shape (n,)
            Intervals and factors.

        Returns
        -------
        IntervalGamma
            Σ_i weight_i · dist(A_i·v, [low_i, high_i]).
        """
        which = [np.asarray(k, dtype=np.int64) for k, _ in rows]
        factors = [
            np.broadcast_to(np.asarray(x, dtype=np.float64), k.shape)
            for k, (_, x) in zip(which, rows, strict=True)
        ]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(k) for k in which], out=indptr[1:])
        n = len(rows)
        ends = [
            np.broadcast_to(np.asarray(end, np.float64), (n,)).copy() for end in (low, high, weight)
        ]
        return cls(
            dimension,
            indptr,
            np.concatenate([*which, np.empty(0, np.int64)]),
            np.concatenate([*factors, np.empty(0)]),
            *ends,
        )

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.indptr) - 1

    def functions(self, v: Vector) -> Vector:
        """Return A v."""
        if v.shape != (self.dimension,):
            raise ConstraintError(f"v has the shape {v.shape}; expected ({self.dimension},)")
        terms = np.repeat(np.arange(self.n_terms), np.diff(self.indptr))
        products = self.values * v[self.indices]
        sums: Vector = np.bincount(terms, weights=products, minlength=self.n_terms).astype(float)
        return sums

    def value(self, v: Vector) -> float:
        """Return Γ(v).

        Parameters
        ----------
        v : array of shape (dimension,)
            The auxiliary vectors, or φ.

        Returns
        -------
        float
            Not negative.
        """
        z = self.functions(v)
        outside = np.maximum(np.maximum(z - self.high, self.low - z), 0.0)
        return float(self.weight @ outside)

    def subgradient(self, v: Vector) -> Vector:
        """Return a subgradient at v; where v is at the end of an interval, that of the inside.

        Parameters
        ----------
        v : array of shape (dimension,)
            The auxiliary vectors.

        Returns
        -------
        array of shape (dimension,)
            A subgradient.
        """
        z = self.functions(v)
        slope = self.weight * ((z > self.high).astype(np.float64) - (z < self.low))
        by_entry = np.repeat(slope, np.diff(self.indptr)) * self.values
        sums = np.bincount(self.indices, weights=by_entry, minlength=self.dimension)
        slopes: Vector = sums.astype(np.float64)
        return slopes

    @property
    def lipschitz(self) -> float:
        """‖Σ_i weight_i |A_i|‖: exact where the terms share no coordinates, an upper bound else."""
        # A subgradient is Σ_i s_i weight_i A_i with s_i from -1 to 1.
        by_entry = np.repeat(self.weight, np.diff(self.indptr)) * np.abs(self.values)
        return float(
            np.linalg.norm(np.bincount(self.indices, weights=by_entry, minlength=self.dimension))
        )

    def scaled(self, factor: float) -> IntervalGamma:
        """Return a multiple, such as the mean in the place of the sum."""
        return IntervalGamma(
            self.dimension,
            self.indptr,
            self.indices,
            self.values,
            self.low,
            self.high,
            self.weight * factor,
        )

    def problem(
        self, constrained: _native.ConstrainedProblem, factor: float = 1.0
    ) -> _native.IntervalProblem:
        """Return the terms as a native problem over the v of a constrained chain, a block each.

        Parameters
        ----------
        constrained : ConstrainedProblem
            With auxiliary weights.
        factor : float
            What the weights of the terms are multiplied by, such as C₂.

        Returns
        -------
        IntervalProblem
            To be joined with others in a `_native.JointProblem`.
        """
        return _native.IntervalProblem(
            constrained,
            self.indptr,
            self.indices,
            self.values,
            self.low,
            self.high,
            self.weight * factor,
        )

    def blocks(self) -> GammaBlocks:
        """Return the terms as blocks of the dual engine.

        Returns
        -------
        GammaBlocks
            A block has the zero plane and those of the ends of its interval that are finite.
            Terms of weight zero are left out.
        """
        offsets, indptr, loss = [0], [0], []
        indices: list[NDArray[np.int64]] = []
        values: list[Vector] = []
        kept = np.flatnonzero(self.weight > 0)
        for i in kept.tolist():
            a, b = int(self.indptr[i]), int(self.indptr[i + 1])
            planes = [(0.0, 0.0)]
            if math.isfinite(self.high[i]):
                planes.append((1.0, -float(self.high[i])))
            if math.isfinite(self.low[i]):
                planes.append((-1.0, float(self.low[i])))
            for sign, constant in planes:
                if sign:
                    indices.append(self.indices[a:b])
                    values.append(sign * self.values[a:b])
                indptr.append(indptr[-1] + (b - a if sign else 0))
                loss.append(constant)
            offsets.append(len(loss))
        return GammaBlocks(
            np.array(offsets, np.int64),
            np.array(indptr, np.int64),
            np.concatenate([*indices, np.empty(0, np.int64)]).astype(np.uint32),
            np.concatenate([*values, np.empty(0)]),
            np.array(loss, np.float64),
            self.weight[kept],
        )


@dataclass(frozen=True, eq=False)
class OwnGamma:
    """A user's convex Lipschitz function of v.

    Parameters
    ----------
    function : callable
        ``function(v)`` returns the value and a subgradient.
    dimension : int
        Length of v.
    lipschitz : float
        A Lipschitz constant: no subgradient is longer.
    """

    function: Callable[[Vector], tuple[float, Vector]]
    dimension: int
    lipschitz: float

    def __post_init__(self) -> None:
        check_number("lipschitz", self.lipschitz, least=0)

    def _both(self, v: Vector) -> tuple[float, Vector]:
        value, slope = self.function(v)
        slope = np.asarray(slope, dtype=np.float64)
        if slope.shape != (self.dimension,):
            raise ConstraintError(
                f"Γ: the subgradient has the shape {slope.shape}; expected ({self.dimension},)"
            )
        if not math.isfinite(value) or not np.isfinite(slope).all():
            raise ConstraintError("Γ: the value or the subgradient is not finite")
        if float(np.linalg.norm(slope)) > self.lipschitz * (1 + 1e-9):
            raise ConstraintError(
                f"Γ: a subgradient has the length {np.linalg.norm(slope):.6g}, above the Lipschitz "
                f"constant {self.lipschitz:g} that was given"
            )
        return float(value), slope

    def value(self, v: Vector) -> float:
        """Return Γ(v)."""
        return self._both(v)[0]

    def subgradient(self, v: Vector) -> Vector:
        """Return the user's subgradient at v."""
        return self._both(v)[1]


@dataclass(frozen=True, eq=False)
class SumGamma:
    """A sum of several Γ over the same v."""

    parts: tuple[Gamma, ...]

    @property
    def dimension(self) -> int:
        """Length of v."""
        return self.parts[0].dimension

    @property
    def lipschitz(self) -> float:
        """The sum of those of the parts."""
        return float(sum(part.lipschitz for part in self.parts))

    def value(self, v: Vector) -> float:
        """Return Γ(v)."""
        return float(sum(part.value(v) for part in self.parts))

    def subgradient(self, v: Vector) -> Vector:
        """Return a subgradient at v."""
        total = np.zeros(self.dimension)
        for part in self.parts:
            total += part.subgradient(v)
        return total


def join(parts: Sequence[IntervalGamma], dimension: int) -> IntervalGamma:
    """Return the sum of some Γ over the same v as one.

    Parameters
    ----------
    parts : list of IntervalGamma
        The terms.
    dimension : int
        Length of v.

    Returns
    -------
    IntervalGamma
        All terms.
    """
    indptr, entries = [np.zeros(1, np.int64)], 0
    for part in parts:
        indptr.append(part.indptr[1:] + entries)
        entries += len(part.indices)

    def every(name: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([*(getattr(p, name) for p in parts), np.empty(0, kind)])

    return IntervalGamma(
        dimension,
        np.concatenate(indptr),
        every("indices", np.int64),
        every("values", np.float64),
        every("low", np.float64),
        every("high", np.float64),
        every("weight", np.float64),
    )
