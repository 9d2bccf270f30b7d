"""The weights of a tagger, looked at without a copy of all of them, whether sparse or in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _native
from maxmargin._native import SparseWeights
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.io.tagger_file import TaggerModel

__all__ = [
    "FeatureRows",
    "count_nonzero",
    "full_matrix",
    "memory_bytes",
    "names_of",
    "tail_rows",
    "weight_blocks",
]

_TOGETHER = 1 << 22  # weights of a full matrix that are looked at at a time


def full_matrix(model: TaggerModel) -> NDArray[Any]:
    """Return the weights of a model that is stored in full, [rows][labels], as a view.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    array of shape (rows, labels)
        Without the padding.
    """
    matrix: NDArray[Any] = model.chain.layout.rows(model.weights)
    return matrix


def tail_rows(model: TaggerModel) -> NDArray[Any]:
    """Return the rows behind the sparse features: dense ones, transitions, start, end, pairs.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    array of shape (rows, labels)
        Of the layout ``model.chain.layout.without_sparse``.
    """
    if isinstance(model.weights, KernelWeights):
        layout = model.chain.layout.without_sparse
        rows = np.zeros((layout.n_rows, layout.n_labels))
        rows[layout.edges] = model.weights.edges
        return rows
    if isinstance(model.weights, SparseWeights):
        return model.weights.arrays()[3].reshape(-1, model.chain.n_labels)
    return full_matrix(model)[model.chain.layout.tail]


def count_nonzero(model: TaggerModel) -> int:
    """Return how many weights are not zero.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    int
        Of features, transitions and all others.
    """
    if isinstance(model.weights, KernelWeights):
        learned = (model.weights.dual_coef, model.weights.edges)
        return sum(int(np.count_nonzero(part)) for part in learned)
    if isinstance(model.weights, SparseWeights):
        _, _, weights, tail = model.weights.arrays()
        return int(np.count_nonzero(weights)) + int(np.count_nonzero(tail))
    return int(_native.count_nonzero(full_matrix(model).reshape(-1)))


def memory_bytes(model: TaggerModel) -> int:
    """Return how much memory the weights take.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    int
        Bytes.
    """
    if isinstance(model.weights, KernelWeights):
        learned = model.weights
        return int(learned.dual_coef.nbytes + learned.edges.nbytes + learned.support.nbytes)
    if isinstance(model.weights, SparseWeights):
        return model.weights.memory_bytes
    return int(model.weights.nbytes)


def weight_blocks(
    model: TaggerModel, label: int | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield the weights of the features, some at a time, with their features and labels.

    Sparse weights are never made a full matrix, and a full matrix is not copied as a whole.

    Parameters
    ----------
    model : TaggerModel
        The model.
    label : int or None
        Weights of this label only.

    Yields
    ------
    weights, features, labels : arrays of the same length
        Zeros may be among the weights; features ascend.
    """
    layout, L = model.chain.layout, model.chain.n_labels
    first = 0
    if isinstance(model.weights, KernelWeights):  # features have none
        return
    if isinstance(model.weights, SparseWeights):
        counts, labels, weights, tail = model.weights.arrays()
        ends = np.cumsum(counts, dtype=np.int64)
        for begin in range(0, len(weights), _TOGETHER):
            entries = np.arange(begin, min(begin + _TOGETHER, len(weights)))
            if label is not None:
                entries = entries[labels[entries] == label]
            features = np.searchsorted(ends, entries, side="right")
            yield weights[entries], features, labels[entries]
        rows, first = tail.reshape(-1, L)[layout.without_sparse.coef], layout.dense.start
    else:
        rows = full_matrix(model)[layout.coef]
    columns = np.arange(L) if label is None else np.array([label])
    step = max(1, _TOGETHER // len(columns))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step] if label is None else rows[begin : begin + step, columns]
        features = np.repeat(np.arange(begin, begin + len(part)) + first, len(columns))
        yield part.ravel(), features, np.tile(columns, len(part))


class FeatureRows:
    """The weights of features, some at a time, whether they are stored sparsely or in full.

    Parameters
    ----------
    model : TaggerModel
        The model.
    """

    def __init__(self, model: TaggerModel) -> None:
        layout = model.chain.layout
        self._n_sparse, self._n = layout.n_sparse, layout.n_token_features
        self._n_labels = model.chain.n_labels
        self._sparse = isinstance(model.weights, SparseWeights)
        if self._sparse:
            self._counts, self._labels, self._weights, _ = model.weights.arrays()
            self._ends = np.cumsum(self._counts, dtype=np.int64)
            self._dense = tail_rows(model)[layout.without_sparse.coef]
        else:
            self._matrix = full_matrix(model)

    def used(self) -> NDArray[Any]:
        """Return the features that have weights, ascending.

        Returns
        -------
        int array
            Their numbers.
        """
        if self._sparse:
            there = (self._counts > 0, self._dense.any(axis=1))
            return np.flatnonzero(np.concatenate(there))
        step = max(1, _TOGETHER // self._n_labels)
        parts = [np.empty(0, dtype=np.intp)]
        for begin in range(0, self._n, step):
            part = self._matrix[begin : min(begin + step, self._n)]
            parts.append(np.flatnonzero(part.any(axis=1)) + begin)
        return np.concatenate(parts)

    def take(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of some features in full.

        Parameters
        ----------
        features : int array
            Their numbers.

        Returns
        -------
        array of shape (features, labels)
            Their weights.
        """
        if not self._sparse:
            rows: NDArray[Any] = self._matrix[features]
            return rows
        rows = np.zeros((len(features), self._n_labels), dtype=np.float32)
        is_sparse = features < self._n_sparse
        rows[~is_sparse] = self._dense[features[~is_sparse] - self._n_sparse]
        places = np.flatnonzero(is_sparse)
        counts = self._counts[features[places]].astype(np.int64)
        # Entry k of all these, counted on, is so far behind the first entry of its row.
        behind = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = np.repeat(self._ends[features[places]] - counts, counts) + behind
        rows[np.repeat(places, counts), self._labels[entries]] = self._weights[entries]
        return rows


def names_of(model: TaggerModel, features: NDArray[Any]) -> list[str]:
    """Return the names of features, as ``maxmargin info`` writes them.

    Parameters
    ----------
    model : TaggerModel
        The model.
    features : int array
        Numbers of features, dense ones behind the others.

    Returns
    -------
    list of str
        Their names.
    """
    encoder = model.chain.encoder
    if isinstance(encoder, TemplateEncoder):
        return encoder.names_of(features)
    n = encoder.n_sparse
    numbers = features.tolist()
    if encoder.hash_bits is None and encoder.vocabulary is not None:
        name = encoder.vocabulary.name
        return [name(j) if j < n else f"dense:{j - n}" for j in numbers]
    kind = "sparse" if encoder.hash_bits is None else "hash"
    return [f"{kind}:{j}" if j < n else f"dense:{j - n}" for j in numbers]
