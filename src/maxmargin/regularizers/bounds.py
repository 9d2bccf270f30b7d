"""Signs and bounds of weights: ½‖w‖² over the weights that are within them.

Section 6 of the paper on dual coordinate solvers, whose step clips w in place; that forgets the
negative part of v = Σ α x (see ``docs/errata.md``). Here the sum u stays as it is, and the link
w = clip(u, least, most) is applied to it, so that the dual is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import is_real
from maxmargin.links import Link
from maxmargin.regularizers.base import (
    ArrayRegularizer,
    BoundRegularizer,
    Regularizer,
    WeightLayout,
)

__all__ = ["Bounded", "Nonnegative"]


@dataclass(frozen=True, eq=False, repr=False)
class Bounded(ArrayRegularizer):
    """½‖w‖² over weights from ``least`` to ``most``; every weight of a model is within them.

    Parameters
    ----------
    least, most : float, array of shape (n_features,) or None
        The bounds, one for all weights or one for each, in the layout of the structure (that of
        ``joint_feature``; for a `Chain` also that of ``weights_``). None, or an infinity: no bound.
    where : None, array of bool or int, str, list of str, or dict
        Which weights are bounded; None: all. A mask or indices in the layout of the structure. For
        a `Chain`: names of features (``*`` and ``?`` stand for any characters), or a dict with
        some of ``"features"`` (names), ``"labels"`` (labels) and ``"parts"`` (of "coef",
        "transitions", "start", "end" and "pairs"): a weight must be meant by all that are given.
        ``"features"`` alone means weights of "coef".

    Examples
    --------
    >>> Bounded(-0.5, 1.0).link.weights(np.array([-2.0, 0.3, 2.0]))
    array([-0.5,  0.3,  1. ])
    """

    least: Any = None
    most: Any = None
    where: Any = None

    def __post_init__(self) -> None:
        low, high = (_checked(name, getattr(self, name)) for name in ("least", "most"))
        if low.ndim and high.ndim and low.shape != high.shape:
            raise ValueError(f"least has {low.size} entries and most has {high.size}")
        if np.any(low > high):
            raise ValueError("least is above most")
        for name, bounds, end in (("least", low, math.inf), ("most", high, -math.inf)):
            if np.any(bounds == end):
                raise ValueError(f"{name} is {end:g}; no number is within that bound")
            object.__setattr__(self, name, _kept(getattr(self, name), bounds))
        object.__setattr__(self, "where", _kept_where(self.where))

    @property
    def link(self) -> Link:
        """The identity, clipped. Arrays are taken as they are, in the native layout."""
        if self.where is not None:
            raise ValueError(f"{self} is about some weights, which only an estimator can find")
        low, high = (_checked(name, getattr(self, name)) for name in ("least", "most"))
        return Link(least=_field(low), most=_field(high))

    def bound(self, layout: WeightLayout) -> Regularizer:
        """Return it with arrays in the native layout; see `Regularizer.bound`."""
        return _bound(self, self.least, self.most, self.where, layout)


@dataclass(frozen=True, eq=False, repr=False)
class Nonnegative(ArrayRegularizer):
    """½‖w‖² over weights that are not negative: all of them, or some.

    Parameters
    ----------
    where : None, array of bool or int, str, list of str, or dict
        Which weights; as in `Bounded`.

    Examples
    --------
    >>> Nonnegative().link.weights(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    where: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", _kept_where(self.where))

    @property
    def link(self) -> Link:
        """The identity without the negative part."""
        if self.where is not None:
            raise ValueError(f"{self} is about some weights, which only an estimator can find")
        return Link(least=0.0)

    def bound(self, layout: WeightLayout) -> Regularizer:
        """Return it with arrays in the native layout; see `Regularizer.bound`."""
        return _bound(self, 0.0, None, self.where, layout)


def _bound(
    origin: Regularizer, least: Any, most: Any, where: Any, layout: WeightLayout
) -> Regularizer:
    low, high = _checked("least", least), _checked("most", most)
    simple = where is None and low.ndim == 0 and high.ndim == 0 and low <= 0 <= high
    if simple and (not layout.single or _single_is_exact(low, high)):
        return origin
    chosen = np.ones(layout.size, bool) if where is None else _chosen(where, layout)
    ends = []
    for name, bounds, none in (("least", low, -math.inf), ("most", high, math.inf)):
        each = layout.plain(bounds, name) if bounds.ndim else np.full(layout.size, float(bounds))
        each = np.where(chosen, each, none)
        ends.append(_inward(each, -none) if layout.single else each)
    if np.any(ends[0] > ends[1]):
        raise ValueError("there is no 4-byte number between least and most; use dtype='float64'")
    native = [layout.native(each) for each in ends]
    return BoundRegularizer(origin, Link(least=native[0], most=native[1]))


def _checked(name: str, value: Any) -> NDArray[np.float64]:
    """Return bounds as an array of floats without NaN; None is no bound."""
    if value is None:
        return np.array(-math.inf if name == "least" else math.inf)
    if not is_real(value):
        kind = np.asarray(value)
        if kind.dtype.kind not in "iuf" or kind.ndim != 1:
            raise TypeError(
                f"{name} must be a number, None or an array of one dimension, got {value!r:.80}"
            )
    bounds = np.array(value, dtype=np.float64)
    if np.any(np.isnan(bounds)):
        raise ValueError(f"{name} has a bound that is not a number")
    return bounds


def _kept(given: Any, bounds: NDArray[np.float64]) -> Any:
    """Return bounds as they are kept: None for none, a float, or an array of one's own."""
    if bounds.ndim:
        return bounds
    return None if given is None or math.isinf(bounds) else float(bounds)


def _kept_where(where: Any) -> Any:
    """Return a choice of weights as it is kept: arrays of numbers are copied."""
    if where is None or isinstance(where, str | dict):
        return where
    if isinstance(where, list | tuple) and all(isinstance(name, str) for name in where):
        return list(where)
    array = np.array(where)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise TypeError(
            "where must be None, a mask, indices, names of features or a dict, got "
            f"{where!r:.80}"
        )
    return array


def _field(bounds: NDArray[np.float64]) -> Any:
    return bounds if bounds.ndim else float(bounds)


def _chosen(where: Any, layout: WeightLayout) -> NDArray[np.bool_]:
    """Return the mask of the chosen weights."""
    if not isinstance(where, np.ndarray):
        return layout.chosen(where)
    if where.dtype == np.bool_:
        if where.size != layout.size:
            raise ValueError(
                f"where has {where.size} entries; expected {layout.size}, one for each weight"
            )
        return where
    outside = where[(where < -layout.size) | (where >= layout.size)]
    if outside.size:
        raise ValueError(f"where has the index {outside[0]}, and there are {layout.size} weights")
    mask = np.zeros(layout.size, bool)
    mask[where] = True
    return mask


def _single_is_exact(*bounds: NDArray[np.float64]) -> bool:
    return all(float(np.float32(b)) == float(b) for b in bounds)


def _inward(bounds: NDArray[np.float64], inside: float) -> NDArray[np.float64]:
    """Round bounds to 4-byte numbers that are within them, so that 4-byte weights are too."""
    with np.errstate(over="ignore"):
        single = bounds.astype(np.float32)
    beyond = single < bounds if inside > 0 else single > bounds
    single[beyond] = np.nextafter(single[beyond], np.float32(inside))
    return single.astype(np.float64)
