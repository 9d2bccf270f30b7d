"""The weights of a tagger in a model file: the entries that are not zero, or the full matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _native
from maxmargin.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.io.tagger_file.sizes import Sizes
    from maxmargin.structures.chain_layout import ChainLayout

__all__ = ["entry_arrays", "read_weights", "require_finite", "weight_arrays"]

#: Weights that fit this many bytes are loaded as a full matrix, larger ones stay sparse.
FULL_BYTES = 128 << 20
_FLOATS = (np.float32, np.float64)
_LABEL_DTYPES = (np.uint8, np.uint16, np.uint32)


def weight_arrays(
    matrix: NDArray[Any], n_sparse: int, n_labels: int, kept: NDArray[np.intp], *, named: bool
) -> dict[str, NDArray[Any]]:
    """Return the weights in the smaller of the two forms.

    Rows are those of the features that are kept, in that order. Features without names keep their
    numbers; of them, ``rows`` lists the ones that have weights.

    Parameters
    ----------
    matrix : array of shape (rows, padded labels)
        All weights but those of pair features.
    n_sparse, n_labels : int
        The rows of sparse features, which come first, and the columns that are labels.
    kept : array
        The sparse features that the file has.
    named : bool
        Whether sparse features have names.

    Returns
    -------
    dict
        The arrays for the file.
    """
    used = kept if named else np.flatnonzero(_native.row_counts(matrix[:n_sparse], n_labels))
    sparse = entry_arrays("", matrix, used, n_labels)
    sparse["tail"] = np.ascontiguousarray(matrix[n_sparse:, :n_labels])
    if not named:
        sparse["rows"] = used.astype(np.uint32)
    n_rows = len(kept) + len(matrix) - n_sparse
    if sum(a.nbytes for a in sparse.values()) < n_rows * matrix.shape[1] * matrix.itemsize:
        return sparse
    return {"weights": np.concatenate([matrix[kept], matrix[n_sparse:]])}


def entry_arrays(
    prefix: str, matrix: NDArray[Any], used: NDArray[np.intp], n_labels: int
) -> dict[str, NDArray[Any]]:
    """Return rows of weights as entries that are not zero.

    Parameters
    ----------
    prefix : str
        "" or "pair_".
    matrix : array of shape (rows, at least n_labels)
        The weights.
    used : array of int
        The rows to take.
    n_labels : int
        The columns to take.

    Returns
    -------
    dict
        The arrays for the file.
    """
    counts, labels, weights = _native.row_entries(matrix, used.astype(np.uint64), n_labels)
    return {
        f"{prefix}counts": counts.astype(np.uint8 if n_labels < 256 else np.uint32),
        f"{prefix}entry_labels": labels,
        f"{prefix}entry_weights": weights,
    }


def read_weights(arrays: Mapping[str, NDArray[Any]], sizes: Sizes) -> Any:
    """Return the weights as native code takes them: sparse ones if they are large.

    Parameters
    ----------
    arrays : mapping
        Of the file.
    sizes : Sizes
        What they must fit.

    Returns
    -------
    array or SparseWeights
        The weights.

    Raises
    ------
    ValueError, KeyError
        If they do not fit, are not finite, or are not there.
    MemoryError
        If they need more memory than there is.
    """
    head = sizes.layout.without_pairs
    if "weights" in arrays:
        matrix = arrays["weights"]
        width = head.width(matrix.dtype) if matrix.dtype in _FLOATS else None
        if matrix.shape != (head.n_rows, width):
            raise ValueError("the weights do not fit the features and labels")
        require_finite(matrix)
        if not sizes.n_pair:
            return matrix.reshape(-1)
        full: Any = matrix
    else:
        sparse = _sparse(arrays, sizes)
        if not sizes.n_pair and isinstance(sparse, _native.SparseWeights):
            # Whole vectors of a full matrix are added faster than entries one by one.
            return sparse.dense() if head.n_bytes("float32") <= FULL_BYTES else sparse
        full = sparse.dense() if isinstance(sparse, _native.SparseWeights) else sparse
        if not sizes.n_pair:
            return full
        full = head.matrix(full)
    return _with_pairs(arrays, sizes, full)


def _entries(
    arrays: Mapping[str, NDArray[Any]], prefix: str, n_labels: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    names = ("counts", "entry_labels", "entry_weights")
    counts, labels, values = (arrays[f"{prefix}{name}"] for name in names)
    if counts.ndim != 1 or counts.dtype not in (np.uint8, np.uint32):
        raise ValueError("the rows of the weights have no counts")
    if values.ndim != 1 or values.shape != labels.shape or labels.dtype not in _LABEL_DTYPES:
        raise ValueError("the entries of the weights do not fit each other")
    if values.dtype not in _FLOATS:
        raise ValueError("the weights are not numbers")
    if int(counts.sum(dtype=np.uint64)) != len(labels) or len(labels) >= 2**32:
        raise ValueError("the rows of the weights do not fit their entries")
    if len(labels) and int(labels.max()) >= n_labels:
        raise ValueError("a weight is of a label that does not exist")
    require_finite(values)
    return counts, labels, values


def _sparse(arrays: Mapping[str, NDArray[Any]], sizes: Sizes) -> Any:
    head = sizes.layout.without_pairs
    counts, labels, values = _entries(arrays, "", sizes.n_labels)
    tail = arrays["tail"]
    if tail.shape != (head.without_sparse.n_rows, sizes.n_labels) or tail.dtype != values.dtype:
        raise ValueError("the weights do not fit the features and labels")
    require_finite(tail)
    if "rows" in arrays:
        rows, given = arrays["rows"], counts
        if rows.shape != counts.shape or rows.dtype != np.uint32:
            raise ValueError("the rows of the weights do not fit their counts")
        if len(rows) and (
            rows[-1] >= sizes.n_sparse or (np.diff(rows.astype(np.int64)) <= 0).any()
        ):
            raise ValueError("the rows of the weights are not in order")
        require_memory(f"the rows of {sizes.n_sparse} features", 16 * sizes.n_sparse)
        counts = np.zeros(sizes.n_sparse, dtype=given.dtype)
        counts[rows] = given
    if len(counts) != sizes.n_sparse:
        raise ValueError("the weights do not fit the features")
    starts = _starts(counts)
    with np.errstate(over="ignore"):  # of 8-byte weights this is only a check of the rest
        sparse = _native.SparseWeights(
            sizes.n_labels,
            starts,
            labels,
            values.astype(np.float32, copy=False),
            tail.astype(np.float32, copy=False).reshape(-1),
        )
    return sparse if values.dtype == np.float32 else _full(head, counts, labels, values, tail)


def _full(
    head: ChainLayout, counts: Any, labels: Any, values: Any, tail: Any
) -> NDArray[Any]:
    """Return a full matrix of the same type as the values."""
    require_memory("the weights", head.n_bytes(values.dtype))
    weights: NDArray[Any] = head.zeros(values.dtype)
    matrix = head.matrix(weights)
    matrix[np.repeat(np.arange(len(counts)), counts), labels] = values
    matrix[head.tail, : head.n_labels] = tail
    return weights


def _with_pairs(
    arrays: Mapping[str, NDArray[Any]], sizes: Sizes, matrix: NDArray[Any]
) -> NDArray[Any]:
    """Return the matrix with the weights of the pair features behind it."""
    L, layout = sizes.n_labels, sizes.layout
    counts, labels, values = _entries(arrays, "pair_", L)
    if values.dtype != matrix.dtype or len(counts) != sizes.n_pair * L:
        raise ValueError("the weights of the pair features do not fit the others")
    row = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    if (np.diff(row * L + labels) <= 0).any():
        raise ValueError("the labels of a row are not in order")
    require_memory("the weights", layout.n_bytes(matrix.dtype))
    weights: NDArray[Any] = _native.aligned_array(
        layout.n_weights(matrix.dtype), matrix.itemsize == 4
    )
    full = layout.matrix(weights)
    full[: len(matrix)] = matrix
    full[layout.pairs] = 0
    full[layout.pairs.start + row, labels] = values
    return weights


def _starts(counts: NDArray[Any]) -> NDArray[np.uint32]:
    starts = np.zeros(len(counts) + 1, dtype=np.uint64)
    np.cumsum(counts, out=starts[1:], dtype=np.uint64)
    return starts.astype(np.uint32)


def require_finite(array: NDArray[Any]) -> None:
    """Refuse weights that are not finite numbers.

    Parameters
    ----------
    array : array
        Some weights.

    Raises
    ------
    ValueError
        If one is not finite.
    """
    if not np.isfinite(array).all():
        raise ValueError("a weight is not a finite number")
