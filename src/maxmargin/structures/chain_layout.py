"""`ChainLayout`: which row of the weights of a chain belongs to what, and how wide a row is.

The weights of a chain are one matrix with the labels along the rows. Its rows are, in this order,

    the sparse features, the dense features,
    the transitions by first label, start, end,
    the pair features: for each of them a row for every label before.

Native code (``native/chain.hpp``) pads each row with zeros to its vector width and stores the rows
one after the other in one aligned array.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native

__all__ = ["ALIGNMENT", "ChainLayout", "ChainWeights", "Floats", "weight_dtype"]

Floats: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

ALIGNMENT = 32  # bytes; native code loads whole vectors of weights


class FeatureCounts(Protocol):
    """Numbers of features, as an encoder and an `EncodedBatch` have them."""

    @property
    def n_sparse(self) -> int:
        """Number of sparse features."""

    @property
    def n_dense(self) -> int:
        """Number of dense features."""

    @property
    def n_pair(self) -> int:
        """Number of pair features."""


class ChainWeights(NamedTuple):
    """The weights of a chain by what they belong to; L labels, in the order of ``labels_``.

    Attributes
    ----------
    coef : array of shape (n_features, L)
        Emissions: the sparse features, then the dense ones.
    transitions : array of shape (L, L)
        ``transitions[p, l]``: label p followed by label l.
    start, end : array of shape (L,)
        First and last label of a sequence.
    pairs : array of shape (n_pair, L, L)
        Features of a token and two labels: ``pairs[g, p, l]`` for label p followed by label l at a
        token that has feature g.
    """

    coef: Floats
    transitions: Floats
    start: Floats
    end: Floats
    pairs: Floats


@dataclass(frozen=True)
class ChainLayout:
    """The rows of the weights of a chain.

    Parameters
    ----------
    n_sparse, n_dense : int
        Number of sparse and of dense features.
    n_labels : int
        Number of labels.
    n_pair : int
        Number of pair features.

    Examples
    --------
    >>> layout = ChainLayout(n_sparse=4, n_dense=2, n_labels=3)
    >>> layout.dense, layout.transitions, layout.start, layout.end
    (slice(4, 6, None), slice(6, 9, None), 9, 10)
    >>> layout.n_rows, layout.size
    (11, 33)
    """

    n_sparse: int
    n_dense: int
    n_labels: int
    n_pair: int = 0

    @classmethod
    def of(cls, features: FeatureCounts, n_labels: int) -> ChainLayout:
        """Return the layout for the features of an encoder or of a batch.

        Parameters
        ----------
        features : encoder or EncodedBatch
            It has ``n_sparse``, ``n_dense`` and ``n_pair``.
        n_labels : int
            Number of labels.

        Returns
        -------
        ChainLayout
            The layout.
        """
        return cls(features.n_sparse, features.n_dense, n_labels, features.n_pair)

    # --- rows ------------------------------------------------------------------------------------

    @property
    def n_token_features(self) -> int:
        """Number of features of single tokens: the rows of the emissions."""
        return self.n_sparse + self.n_dense

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._first_pair_row + self.n_pair * self.n_labels

    @property
    def size(self) -> int:
        """Number of weights without padding."""
        return self.n_rows * self.n_labels

    @property
    def coef(self) -> slice:
        """Rows of the features of single tokens."""
        return slice(0, self.n_token_features)

    @property
    def dense(self) -> slice:
        """Rows of the dense features."""
        return slice(self.n_sparse, self.n_token_features)

    @property
    def transitions(self) -> slice:
        """Rows of the transitions, by first label."""
        return slice(self.n_token_features, self.start)

    @property
    def start(self) -> int:
        """Row of the first labels."""
        return self.n_token_features + self.n_labels

    @property
    def end(self) -> int:
        """Row of the last labels."""
        return self.start + 1

    @property
    def edges(self) -> slice:
        """Rows of the transitions, of start and of end."""
        return slice(self.n_token_features, self._first_pair_row)

    @property
    def pairs(self) -> slice:
        """Rows of the pair features."""
        return slice(self._first_pair_row, self.n_rows)

    @property
    def _first_pair_row(self) -> int:
        return self.end + 1

    @property
    def tail(self) -> slice:
        """Rows behind the sparse features: what `without_sparse` is the layout of."""
        return slice(self.n_sparse, self.n_rows)

    def pair_row(self, feature: Any, before: Any) -> Any:
        """Return the rows of pair features with a label before.

        Parameters
        ----------
        feature, before : int or int array
            Numbers of pair features, and of labels; shapes that NumPy can join.

        Returns
        -------
        int or int array
            Numbers of rows.
        """
        return self._first_pair_row + feature * self.n_labels + before

    def pair_rows(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return all rows of some pair features.

        Parameters
        ----------
        features : int array of shape (n,)
            Numbers of pair features.

        Returns
        -------
        int array of shape (n, L)
            A row for every label before.
        """
        rows: NDArray[Any] = self.pair_row(features[:, None], np.arange(self.n_labels))
        return rows

    @property
    def without_sparse(self) -> ChainLayout:
        """The layout of the rows behind the sparse features, by themselves."""
        return replace(self, n_sparse=0)

    @property
    def without_pairs(self) -> ChainLayout:
        """The layout of the rows before the pair features, by themselves."""
        return replace(self, n_pair=0)

    def split(self, rows: Floats) -> ChainWeights:
        """Return views of the rows by what they belong to.

        Parameters
        ----------
        rows : array of shape (n_rows, L)
            Weights without padding.

        Returns
        -------
        ChainWeights
            Its parts.
        """
        L = self.n_labels
        pairs: Floats = rows[self.pairs].reshape(self.n_pair, L, L)
        edges = rows[self.transitions], rows[self.start], rows[self.end]
        return ChainWeights(rows[self.coef], *edges, pairs)

    # --- padded arrays ---------------------------------------------------------------------------

    def width(self, dtype: Any) -> int:
        """Return the number of weights of a row of the native array, padding included.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        int
            At least ``n_labels``.
        """
        return _native.padded_labels(self.n_labels, weight_dtype(dtype).itemsize == 4)

    def n_weights(self, dtype: Any) -> int:
        """Return the number of weights of the native array, padding included.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        int
            The length of the array.
        """
        return self.n_rows * self.width(dtype)

    def n_bytes(self, dtype: Any) -> int:
        """Return the size of the native array in bytes.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        int
            Padding included.
        """
        return self.n_weights(dtype) * weight_dtype(dtype).itemsize

    def matrix(self, weights: Any) -> Any:
        """Return a view of a native array by rows, padding included.

        Parameters
        ----------
        weights : array of shape (n_weights(dtype),)
            The native weights.

        Returns
        -------
        array of shape (n_rows, width(dtype))
            The same memory.
        """
        return weights.reshape(self.n_rows, -1)

    def rows(self, weights: Any) -> Any:
        """Return a view of a native array by rows, without the padding.

        Parameters
        ----------
        weights : array of shape (n_weights(dtype),)
            The native weights.

        Returns
        -------
        array of shape (n_rows, L)
            The same memory.
        """
        return self.matrix(weights)[:, : self.n_labels]

    def zeros(self, dtype: Any) -> Floats:
        """Return native weights that are all zero.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        array of shape (n_weights(dtype),)
            Aligned.
        """
        array: Floats = _native.aligned_array(
            self.n_weights(dtype), weight_dtype(dtype).itemsize == 4
        )
        array[:] = 0
        return array

    def pad(self, rows: Any, dtype: Any) -> Floats:
        """Return rows without padding as a native array.

        Parameters
        ----------
        rows : array of shape (n_rows, L)
            Weights without padding.
        dtype : "float32" or "float64"
            Type of the result.

        Returns
        -------
        array of shape (n_weights(dtype),)
            Padded with zeros and aligned.
        """
        result = self.zeros(dtype)
        self.rows(result)[:] = rows
        return result

    def plain_vector(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return an array with an entry for each weight, without padding.

        Parameters
        ----------
        values : array
            Of `size` entries, or in the native layout of 4- or 8-byte weights.

        Returns
        -------
        array of shape (size,) or None
            None if it has another number of entries.
        """
        sizes = (self.size, self.n_weights("float32"), self.n_weights("float64"))
        if values.ndim != 1 or values.size not in sizes:
            return None
        # Layouts of the same size have rows of the same width, and are the same.
        return np.ascontiguousarray(self.rows(values)).reshape(-1)

    def native_vector(self, values: NDArray[Any], dtype: Any) -> NDArray[np.float64]:
        """Return an array of `size` entries in the native layout.

        Parameters
        ----------
        values : array of shape (size,)
            Without padding.
        dtype : "float32" or "float64"
            Of the weights whose layout it gets; the result is of float64.

        Returns
        -------
        array of shape (n_weights(dtype),)
            Padded with zeros.
        """
        native = np.zeros(self.n_weights(dtype))
        self.rows(native)[:] = values.reshape(self.n_rows, self.n_labels)
        return native


def weight_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the type of weights that a name or a type stands for.

    Parameters
    ----------
    dtype : "float32", "float64" or the type
        What a user wrote.

    Returns
    -------
    dtype
        One of the two.
    """
    for kind in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype in (kind, kind.name):
            return kind
    raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')
