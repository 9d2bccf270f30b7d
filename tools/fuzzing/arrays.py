"""Mutations of arrays: their values, their size, their shape and their type."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.values import INTEGERS, REALS

__all__ = ["mutate_array"]

_DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")


def mutate_array(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Return a changed copy of an array of numbers.

    Parameters
    ----------
    rng : random.Random
        Decides everything.
    array : ndarray
        Integers or floats.

    Returns
    -------
    ndarray
        Perhaps of another size, shape or type; never much larger.
    """
    array = np.array(array)
    what = rng.random()
    if what < 0.6 and array.size:
        return _values(rng, array)
    if what < 0.8:
        return _size(rng, array)
    if what < 0.9:
        return _shape(rng, array)
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(_DTYPES))


def _values(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    flat = array.reshape(-1)
    for _ in range(rng.choice((1, 1, 1, 2, 10))):
        k = rng.randrange(flat.size)
        what = rng.randrange(6)
        with np.errstate(all="ignore"):
            if what == 0:
                flat[k] += flat.dtype.type(1)
            elif what == 1:
                flat[k] -= flat.dtype.type(1)
            elif what == 2:
                flat[k] = flat[rng.randrange(flat.size)]
            elif what == 3:
                end = rng.randint(k, min(flat.size, k + 64))
                flat[k:end] = flat[k:end][::-1].copy()
            else:
                flat[k] = _extreme(rng, flat.dtype)
    return array


def _extreme(rng: random.Random, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return dtype.type(rng.choice(REALS))
    if dtype.kind not in "iu":
        return dtype.type(rng.choice((0, 1)))
    about = np.iinfo(dtype)
    fitting = [n for n in (*INTEGERS, about.max - 1) if about.min <= n <= about.max]
    return dtype.type(rng.choice((about.min, about.max, *fitting)))


def _size(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Return fewer or more entries along the first axis."""
    if array.ndim == 0:
        return np.zeros(0, array.dtype)
    n = len(array)
    keep = rng.choice((0, n // 2, n - 1, n + 1, n + 2, 2 * n))
    if keep <= n:
        return array[: max(0, keep)]
    return np.resize(array, (keep, *array.shape[1:])) if array.size else array


def _shape(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    shape = rng.choice(((-1,), (1, -1), (-1, 1), (array.size, 1, 1), (1, 1, 1, -1)))
    if array.size == 0:
        shape = rng.choice(((0, 5), (5, 0), (0,), (1, 0, 1)))
    return array.reshape(shape)
