"""Copies and comparisons of inputs, outputs and feature vectors of any kind."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin.structures.adapter import real_number
from maxmargin.structures.equality import equal_outputs
from maxmargin.structures.vectors import BadFeatures, Features, sparse_vector

__all__ = ["copied", "kind_of", "same_features", "shape_of", "unchanged"]


def copied(value: Any) -> Any:
    """Return a deep copy, or the object itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except MemoryError:
        raise
    except Exception:
        return value


def unchanged(before: Any, after: Any) -> bool:
    """Tell whether an argument still has the content it had before a call.

    Objects without a comparison of their own are compared by their public attributes; private
    ones may be caches.
    """
    try:
        if equal_outputs(before, after):
            return True
    except MemoryError:
        raise
    except Exception:
        return True  # cannot be told
    if (
        type(before) is not type(after)
        or getattr(type(before), "__eq__", None) is not object.__eq__
    ):
        return not _comparable(before)
    attributes = {k: v for k, v in getattr(before, "__dict__", {}).items() if k[:1] != "_"}
    return all(
        hasattr(after, k) and (unchanged(v, getattr(after, k)) or not _comparable(v))
        for k, v in attributes.items()
    )


def _comparable(value: Any) -> bool:
    """Tell whether a copy of the object equals it, so that a comparison means something."""
    try:
        return equal_outputs(value, copy.deepcopy(value))
    except MemoryError:
        raise
    except Exception:
        return False


def same_features(first: Features, second: Features) -> bool:
    """Tell whether two vectors are the same; bad ones pass for it, they are reported elsewhere."""
    try:
        a, b = sparse_vector(first), sparse_vector(second)
    except BadFeatures:
        return True  # reported where it is parsed
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.values, b.values)


def kind_of(y: Any) -> str:
    """Say in words of what kind an output is, as coarsely as outputs may vary."""
    if isinstance(y, np.ndarray) and y.ndim == 0:
        y = y[()]
    if isinstance(y, list | tuple | np.ndarray):
        first = next(iter(y), None)
        return "a sequence" if first is None else f"a sequence of {kind_of(first)[2:]}s"
    if isinstance(y, str):
        return "a string"
    if real_number(y) is not None:
        return "a number"
    if isinstance(y, Mapping):
        return "a mapping"
    if isinstance(y, set | frozenset):
        return "a set"
    return f"an object of type {type(y).__name__}"


def shape_of(y: Any) -> tuple[Any, ...]:
    """Return the kind and size of an output: what must agree to swap the outputs of examples."""
    if isinstance(y, np.ndarray):
        return ("a sequence", y.shape)
    if isinstance(y, list | tuple):
        return ("a sequence", (len(y),))
    return (kind_of(y),)
