"""Feature vectors: every kind that a user's ``joint_feature`` may return, in one form.

`sparse_vector` checks what was returned and turns it into ascending indices and their values. The
common kinds are read by native code, which passes on whatever is unusual; the Python code below
then says what is wrong with it, or reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.lazy import is_sparse

__all__ = [
    "MAX_FEATURES",
    "BadFeatures",
    "Features",
    "SparseVector",
    "plain_features",
    "require_size",
    "sparse_vector",
]

#: What ``joint_feature`` may return: a 1-d numpy array, a scipy.sparse row of shape (1, d), a dict
#: {index: value}, or a tuple (indices, values).
Features: TypeAlias = Any

MAX_FEATURES = 2**32 - 1  # planes store 4-byte indices


class BadFeatures(ValueError):  # noqa: N818 (a finding about a value)
    """What a user's ``joint_feature`` returned is no feature vector.

    Parameters
    ----------
    kind : {"type", "shape", "size", "index", "finite"}
        What is wrong with it.
    message : str
        A phrase that completes "joint_feature returned ...".
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class SparseVector(NamedTuple):
    """A feature vector in the one form the package computes with.

    Attributes
    ----------
    indices : ndarray of uint32
        Ascending, each at most once.
    values : ndarray of float64
        Finite and not zero.
    size : int or None
        The number of features, where the user's vector told it.
    """

    indices: NDArray[np.uint32]
    values: NDArray[np.float64]
    size: int | None

    def dot(self, w: NDArray[np.float64]) -> float:
        """Return the inner product with dense weights."""
        return float(self.values @ w[self.indices])

    def absolute_dot(self, w: NDArray[np.float64]) -> float:
        """Return the inner product of the absolute values: the scale of rounding errors."""
        return float(np.abs(self.values) @ np.abs(w[self.indices]))


def sparse_vector(features: Features, n_features: int | None = None) -> SparseVector:
    """Bring any accepted kind of feature vector into one form.

    Parameters
    ----------
    features : 1-d array, scipy.sparse row, dict, or tuple (indices, values)
        What a user's ``joint_feature`` returned.
    n_features : int or None
        The size it must have. With None only what can be known without it is checked.

    Returns
    -------
    SparseVector
        Indices ascending and unique (values of equal indices are summed), zeros dropped.

    Raises
    ------
    BadFeatures
        If it is of the wrong type, shape or size, or holds NaN, an infinity, or an index that is
        no integer or out of range.

    Examples
    --------
    >>> sparse_vector({4: 2.0, 1: 1.0}, 5).indices.tolist()
    [1, 4]
    >>> sparse_vector(([3, 0, 3], [1.0, 5.0, 1.0])).values.tolist()
    [5.0, 2.0]
    """
    plain, size = plain_features(features, n_features)
    entries = _native.sparse_entries(plain, n_features)
    if entries is not None:
        return SparseVector(*entries, size)
    return _sparse_vector(features, n_features)


def plain_features(features: Features, n_features: int | None) -> tuple[Any, int | None]:
    """Return a feature vector as native code can read it, and its size where it tells it.

    Parameters
    ----------
    features : object
        What a user's ``joint_feature`` returned.
    n_features : int or None
        The size it must have.

    Returns
    -------
    features : object
        The same object, or the entries of a scipy.sparse row as a tuple (indices, values). None
        where native code must not read it: `sparse_vector` then tells why.
    size : int or None
        The size of an array or a scipy.sparse row.
    """
    kind = type(features)
    if kind is np.ndarray:
        return features, features.size
    if kind is dict or kind is tuple or not is_sparse(features):
        return features, None
    size = features.shape[-1]
    if features.format != "csr" or (n_features is not None and size != n_features):
        return None, size
    if features.ndim == 2 and features.shape[0] != 1:
        return None, size
    begin, end = features.indptr
    if begin == 0 and end == len(features.data):
        return (features.indices, features.data), size
    return (features.indices[begin:end], features.data[begin:end]), size


def _sparse_vector(features: Features, n_features: int | None) -> SparseVector:
    size: int | None = None
    if isinstance(features, np.ndarray):
        if features.ndim != 1:
            raise BadFeatures(
                "shape", f"an array of shape {features.shape}; expected one dimension"
            )
        size = len(features)
        values = _real_values(features, copy=False)
        indices = np.flatnonzero(values)
        values = values[indices]
    elif is_sparse(features):
        indices, values, size = _from_scipy(features)
        indices, values = _sorted_unique(indices, values)
    elif isinstance(features, Mapping):
        indices, values = _from_pairs(list(features.keys()), list(features.values()), "a dict")
        indices, values = _sorted_unique(indices, values)
    elif isinstance(features, tuple):
        if len(features) != 2:
            raise BadFeatures(
                "type", f"a tuple of {len(features)} entries; expected (indices, values)"
            )
        indices, values = _from_pairs(features[0], features[1], "a tuple")
        indices, values = _sorted_unique(indices, values)
    else:
        raise BadFeatures(
            "type",
            f"an object of type {type(features).__name__}; expected a 1-d numpy array, a "
            "scipy.sparse row, a dict {index: value}, or a tuple (indices, values)",
        )
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadFeatures("finite", f"{values[k]} at index {indices[k]}; expected finite numbers")
    _require_size(size, n_features)
    _require_range(indices, MAX_FEATURES if n_features is None else n_features)
    return SparseVector(indices.astype(np.uint32), values, size)


def require_size(vector: SparseVector, n_features: int) -> None:
    """Raise `BadFeatures` unless the vector fits this number of features."""
    _require_size(vector.size, n_features)
    _require_range(vector.indices, n_features)


def _require_size(size: int | None, n_features: int | None) -> None:
    if size is not None and n_features is not None and size != n_features:
        raise BadFeatures("size", f"a vector of {size} entries; expected {n_features}")


def _require_range(indices: NDArray[Any], n_features: int) -> None:
    if len(indices) == 0:
        return
    for index in (int(indices[0]), int(indices[-1])):
        if not 0 <= index < n_features:
            raise BadFeatures(
                "index", f"the index {index}; expected indices from 0 to {n_features - 1}"
            )


def _real_values(values: Any, *, copy: bool = True) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise BadFeatures("type", f"values of type {array.dtype}; expected real numbers")
    return array.astype(np.float64, copy=copy)


def _from_scipy(row: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    if row.ndim == 2 and row.shape[0] != 1:
        raise BadFeatures(
            "shape", f"a sparse matrix of shape {row.shape}; expected one row, (1, n_features)"
        )
    coo = row.tocoo()
    indices = coo.coords[0] if row.ndim == 1 else coo.col
    return indices.astype(np.int64), _real_values(coo.data), int(row.shape[-1])


def _from_pairs(
    indices: Any, values: Any, what: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        index_array, value_array = np.asarray(indices), np.asarray(values)
    except (TypeError, ValueError) as error:  # ragged lists
        raise BadFeatures(
            "type", f"{what} whose indices or values are no flat list of numbers"
        ) from error
    if index_array.ndim != 1 or value_array.ndim != 1 or len(index_array) != len(value_array):
        raise BadFeatures(
            "shape",
            f"{what} with indices of shape {index_array.shape} and values of shape "
            f"{value_array.shape}; expected two flat lists of the same length",
        )
    if len(index_array) == 0:
        return np.empty(0, np.int64), np.empty(0)
    if index_array.dtype.kind not in "iu":
        raise BadFeatures(
            "index",
            f"{what} with indices of type {index_array.dtype} (the first is {indices[0]!r}); "
            "expected integers",
        )
    return index_array.astype(np.int64), _real_values(value_array)


def _sorted_unique(
    indices: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if len(indices) > 1 and not (indices[1:] > indices[:-1]).all():
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        first = np.flatnonzero(np.append(True, indices[1:] != indices[:-1]))
        indices, values = indices[first], np.add.reduceat(values, first)
    keep = values != 0.0
    return (indices, values) if keep.all() else (indices[keep], values[keep])
