"""One sequence of a chain in Python: its joint features, and its best labelling.

For checks and for reading. Training and prediction do the same in native code
(``native/chain.hpp``, ``native/chain_decode.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from maxmargin.features import EncodedBatch
from maxmargin.structures.chain_layout import ChainLayout, Floats
from maxmargin.structures.chain_learning import EdgeMask

__all__ = ["best_labelling", "joint_features"]


def joint_features(
    batch: EncodedBatch, codes: NDArray[np.int32], layout: ChainLayout
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return f(x, y) of one sequence, without padding.

    Parameters
    ----------
    batch : EncodedBatch
        One sequence.
    codes : int32 array of shape (T,)
        Its labels.
    layout : ChainLayout
        The rows of the weights.

    Returns
    -------
    tuple of two arrays
        Indices (some may occur twice) and values.
    """
    L = layout.n_labels
    labels = codes.astype(np.int64)
    indices, values = [], []
    if batch.indptr is not None and batch.indices is not None:
        ids = batch.indices.astype(np.int64)
        indices.append(ids * L + np.repeat(labels, np.diff(batch.indptr)))
        ones = np.ones(len(batch.indices))
        values.append(ones if batch.values is None else batch.values.astype(np.float64))
    if batch.dense is not None:
        rows = layout.dense.start + np.arange(batch.n_dense)
        indices.append((rows * L + labels[:, None]).ravel())
        values.append(batch.dense.astype(np.float64).ravel())
    edges = [(layout.transitions.start + labels[:-1]) * L + labels[1:]]
    edges += [layout.start * L + labels[:1], layout.end * L + labels[-1:]]
    for t, features in _pairs_of(batch):
        edges.append(layout.pair_row(features, labels[t - 1]) * L + labels[t])
    indices += edges
    values.append(np.ones(sum(map(len, edges))))
    return np.concatenate(indices), np.concatenate(values)


def best_labelling(
    batch: EncodedBatch,
    rows: Floats,
    layout: ChainLayout,
    costs: NDArray[np.float64] | None = None,
    mask: EdgeMask | None = None,
) -> NDArray[np.int32]:
    """Return the codes of the best labelling of one sequence.

    Parameters
    ----------
    batch : EncodedBatch
        One sequence.
    rows : array of shape (n_rows, L)
        The weights.
    layout : ChainLayout
        The rows of the weights.
    costs : array of shape (T, L), optional
        What is added to the score of each token and label.
    mask : EdgeMask, optional
        Which edges may be used.

    Returns
    -------
    int32 array of shape (T,)
        Of several best labellings, the one with the lower codes at the end.
    """
    coef, transition, start, end, pairs = layout.split(rows)
    unary = _unary(batch, coef, layout)
    if costs is not None:
        unary += costs
    if mask is not None:
        transition, start, end = (
            np.where(allowed.reshape(weight.shape) != 0, weight, -np.inf)
            for weight, allowed in zip((transition, start, end), mask, strict=True)
        )
    steps: NDArray[np.float64] = np.repeat(transition[None], batch.n_tokens, axis=0)
    for t, features in _pairs_of(batch):
        steps[t] += pairs[features].sum(axis=0)
    return _viterbi(unary, steps, start, end)


def _unary(batch: EncodedBatch, coef: Floats, layout: ChainLayout) -> NDArray[np.float64]:
    """Return [T][L]: the scores of the labels of one sequence without transitions."""
    unary = np.zeros((batch.n_tokens, layout.n_labels))
    if batch.indptr is not None and batch.indices is not None:
        token = np.repeat(np.arange(batch.n_tokens), np.diff(batch.indptr))
        values = 1.0 if batch.values is None else batch.values[:, None].astype(np.float64)
        np.add.at(unary, token, values * coef[batch.indices])
    if batch.dense is not None:
        unary += batch.dense.astype(np.float64) @ coef[layout.dense]
    return unary


def _pairs_of(batch: EncodedBatch) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the tokens of one sequence that have pair features, but for the first, with them."""
    if batch.pair_indptr is None or batch.pair_indices is None:
        return
    for t in range(1, batch.n_tokens):
        features = batch.pair_indices[batch.pair_indptr[t] : batch.pair_indptr[t + 1]]
        if len(features):
            yield t, features.astype(np.int64)


def _viterbi(
    unary: NDArray[np.float64], steps: Floats, start: Floats, end: Floats
) -> NDArray[np.int32]:
    """Return the codes of the best path; -inf forbids an edge. ``steps[t]`` leads to token t."""
    T = len(unary)
    back = np.zeros(unary.shape, dtype=np.int32)
    best = unary[0] + start
    for t in range(1, T):
        reach = best[:, None] + steps[t]
        back[t] = reach.argmax(axis=0)
        best = reach.max(axis=0) + unary[t]
    best = best + end
    if np.isneginf(best.max()):
        raise ValueError("no labelling of the sequence uses only allowed transitions")
    path = np.empty(T, dtype=np.int32)
    path[-1] = best.argmax()
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path
