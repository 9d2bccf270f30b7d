"""Tokens of encoded sequences, one by one: which are alike, and what they look like as a matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features import EncodedBatch

__all__ = ["distinct_tokens", "token_matrix", "token_variance"]


def distinct_tokens(batch: EncodedBatch) -> tuple[NDArray[np.uint32], EncodedBatch]:
    """Give each token a number, the same one to tokens with the same features.

    Parameters
    ----------
    batch : EncodedBatch
        Any sequences.

    Returns
    -------
    kinds : uint32 array of shape (n_tokens,)
        The number of each token, in the order of appearance.
    tokens : EncodedBatch
        One token of each number, as a sequence of its own.
    """
    rows = [[row.tobytes() for row in part] for part in _row_parts(batch)]
    found: dict[tuple[bytes, ...], int] = {}
    keys = zip(*rows, strict=True)
    kinds = np.fromiter(
        (found.setdefault(key, len(found)) for key in keys), np.uint32, count=batch.n_tokens
    )
    first = np.unique(kinds, return_index=True)[1]
    alone = replace(batch, offsets=np.arange(batch.n_tokens + 1, dtype=np.int64))
    return kinds, alone.take(first)


def _row_parts(batch: EncodedBatch) -> list[list[NDArray[Any]]]:
    """Return, for each kind of feature, the arrays of all tokens."""
    parts: list[list[NDArray[Any]]] = []
    if batch.indptr is not None and batch.indices is not None:
        parts.append(np.split(batch.indices, batch.indptr[1:-1]))
        if batch.values is not None:
            parts.append(np.split(batch.values, batch.indptr[1:-1]))
    if batch.dense is not None:
        parts.append(list(batch.dense))
    return parts


def token_matrix(batch: EncodedBatch) -> Any:
    """Return the tokens as the rows of a matrix.

    Parameters
    ----------
    batch : EncodedBatch
        Any tokens.

    Returns
    -------
    array or scipy.sparse.csr_array of shape (n_tokens, n_sparse + n_dense)
        An array if there are dense features only.
    """
    if batch.indptr is None or batch.indices is None:
        assert batch.dense is not None  # a batch has one or the other
        return batch.dense.astype(np.float64, copy=False)
    from scipy import sparse

    ones = np.ones(len(batch.indices))
    values = ones if batch.values is None else batch.values.astype(np.float64)
    shape = (batch.n_tokens, batch.n_sparse)
    matrix = sparse.csr_array((values, batch.indices.astype(np.int64), batch.indptr), shape=shape)
    if batch.dense is None:
        return matrix
    return sparse.csr_array(sparse.hstack([matrix, sparse.csr_array(batch.dense)], format="csr"))


def token_variance(batch: EncodedBatch) -> float:
    """Return the variance of all entries of the tokens' matrix, zeros included.

    Parameters
    ----------
    batch : EncodedBatch
        Any tokens.

    Returns
    -------
    float
        The variance.
    """
    n = batch.n_tokens * (batch.n_sparse + batch.n_dense)
    total = square = 0.0
    if batch.indices is not None:
        values = np.ones(1) if batch.values is None else batch.values.astype(np.float64)
        times = len(batch.indices) if batch.values is None else 1
        total += times * float(values.sum())
        square += times * float(values @ values)
    if batch.dense is not None:
        dense = batch.dense.astype(np.float64, copy=False).ravel()
        total += float(dense.sum())
        square += float(dense @ dense)
    return max(0.0, square / n - (total / n) ** 2)
