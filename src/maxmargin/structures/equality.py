"""Outputs of any kind: whether two of them are the same, and a hashable key of one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from maxmargin.lazy import is_sparse

__all__ = ["equal_outputs", "output_key"]

#: Types whose own ``==`` is the answer.
_SIMPLE = frozenset([bool, bytes, int, str])


def equal_outputs(a: Any, b: Any) -> bool:
    """Tell whether two outputs have the same content, whatever they are made of.

    Lists, tuples and numpy arrays are compared entry by entry (a list may equal an array or a
    tuple), dicts key by key, scipy.sparse matrices by their entries, dataclasses field by field if
    ``==`` cannot decide; anything else with ``==``. NaN equals NaN.

    Parameters
    ----------
    a, b : object
        Two outputs.

    Returns
    -------
    bool
        True if they are equal.

    Examples
    --------
    >>> equal_outputs([1, 2], np.array([1, 2]))
    True
    >>> equal_outputs({"tags": np.array([1, 2])}, {"tags": np.array([1, 3])})
    False
    """
    if a is b:
        return True
    kind = type(a)
    if kind is type(b):
        if kind in _SIMPLE:
            return bool(a == b)
        if kind is np.ndarray and a.dtype.kind in "biuSU" and b.dtype.kind == a.dtype.kind:
            return a.shape == b.shape and bool((a == b).all())
    if is_sparse(a) or is_sparse(b):
        if not (is_sparse(a) and is_sparse(b)) or a.shape != b.shape:
            return False
        return bool((a != b).nnz == 0)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _equal_arrays(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal_outputs, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(k in b and equal_outputs(v, b[k]) for k, v in a.items())
    return _equal_objects(a, b)


def _equal_arrays(a: Any, b: Any) -> bool:
    sequences = (np.ndarray, list, tuple)
    both = isinstance(a, sequences) and isinstance(b, sequences)
    if not both and (np.ndim(a) > 0 or np.ndim(b) > 0):  # a sequence and something else
        return False
    try:
        left, right = np.asarray(a), np.asarray(b)
    except ValueError:  # a ragged list
        return len(a) == len(b) and all(map(equal_outputs, a, b))
    if left.shape != right.shape:
        return False
    if "O" in (left.dtype.kind, right.dtype.kind):
        return all(map(equal_outputs, left.ravel().tolist(), right.ravel().tolist()))
    nan = left.dtype.kind in "fc" and right.dtype.kind in "fc"
    return bool(np.array_equal(left, right, equal_nan=nan))


def _equal_objects(a: Any, b: Any) -> bool:
    try:
        same = a == b
        if isinstance(same, bool | np.bool_):
            if not same and isinstance(a, float | np.floating):
                return isinstance(b, float | np.floating) and bool(np.isnan(a) and np.isnan(b))
            return bool(same)
        if same is not NotImplemented and np.size(same) > 0:
            return bool(np.all(np.asarray(same)))
        return bool(same)
    except MemoryError:
        raise
    except Exception:  # for instance "the truth value of an array is ambiguous"
        if type(a) is not type(b) or not dataclasses.is_dataclass(a):
            raise
        return all(
            equal_outputs(getattr(a, field.name), getattr(b, field.name))
            for field in dataclasses.fields(a)
            if field.compare
        )


def output_key(y: Any) -> Hashable:
    """Return a hashable key of an output: equal for outputs that `equal_outputs` calls equal.

    Parameters
    ----------
    y : object
        An output made of numbers, strings, lists, tuples, sets, dicts, numpy arrays,
        scipy.sparse matrices, dataclasses, or any other hashable object.

    Returns
    -------
    hashable
        Its content as nested tuples.

    Raises
    ------
    TypeError
        If it holds an object that cannot be hashed.

    Examples
    --------
    >>> output_key([1, 2]) == output_key(np.array([1, 2]))
    True
    """
    if isinstance(y, np.ndarray):
        return output_key(y.tolist())
    if isinstance(y, np.generic):
        return output_key(y.item())
    if isinstance(y, list | tuple):
        return tuple(map(output_key, y))
    if isinstance(y, Mapping):
        return frozenset((key, output_key(value)) for key, value in y.items())
    if isinstance(y, set | frozenset):
        return frozenset(y)
    if is_sparse(y):
        rows = y.tocsr() if y.ndim == 2 else y.reshape(1, -1).tocsr()
        rows.sum_duplicates()
        coo = rows.tocoo()
        entries = zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True)
        return (y.shape, frozenset(entry for entry in entries if entry[2] != 0))
    if isinstance(y, float) and math.isnan(y):
        return "not a number"
    try:
        hash(y)
    except TypeError:
        if dataclasses.is_dataclass(y) and not isinstance(y, type):
            fields = [field.name for field in dataclasses.fields(y) if field.compare]
            return (type(y), *(output_key(getattr(y, name)) for name in fields))
        raise TypeError(
            f"an output of type {type(y).__name__} cannot be hashed; give the structure a method "
            "encode(y) that returns a hashable key"
        ) from None
    result: Hashable = y
    return result
