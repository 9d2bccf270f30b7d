"""The encoded batch: sequences of tokens as arrays of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncodedBatch", "ragged_ranges"]


def _ends(lengths: NDArray[Any]) -> NDArray[np.int64]:
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def ragged_ranges(ends: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places ``ends[r] ... ends[r + 1] - 1`` of some rows, one after the other.

    Parameters
    ----------
    ends : int64 array of shape (n_rows + 1,)
        Where the rows begin; the last entry is the end.
    rows : int array
        Which rows.

    Returns
    -------
    int64 array
        The places.
    """
    lengths = np.diff(ends)[rows]
    begins = _ends(lengths)
    places: NDArray[np.int64] = np.arange(begins[-1]) + np.repeat(ends[rows] - begins[:-1], lengths)
    return places


def _check_array(name: str, array: NDArray[Any], dtypes: tuple[type, ...], ndim: int) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is a {type(array).__name__}; expected a numpy array")
    if array.dtype not in dtypes or array.ndim != ndim or not array.flags.c_contiguous:
        wanted = " or ".join(np.dtype(d).name for d in dtypes)
        layout = "" if array.flags.c_contiguous else ", not C-contiguous"
        raise ValueError(
            f"{name} is {array.ndim}-d {array.dtype}{layout}; "
            f"expected a C-contiguous {ndim}-d array of {wanted}"
        )


@dataclass(frozen=True, eq=False)
class EncodedBatch:
    """Sequences of tokens, each token with sparse features, dense features or both.

    The tokens of all sequences lie one after the other. The sparse features are compressed rows,
    one a token; ids ascend within a token and no two of them are alike.

    Parameters
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence; the last entry is the number of tokens.
    n_sparse : int
        Number of sparse features that exist; every id in ``indices`` is below it.
    indptr : int64 array of shape (n_tokens + 1,), optional
        Where the row of each token begins in ``indices``. None without sparse features.
    indices : uint32 array, optional
        Feature ids. None without sparse features.
    values : float32 array as long as ``indices``, optional
        Feature values. None when every value is exactly one.
    dense : float32 or float64 array of shape (n_tokens, n_dense), optional
        Dense features. None without dense features.
    """

    offsets: NDArray[np.int64]
    n_sparse: int
    indptr: NDArray[np.int64] | None = None
    indices: NDArray[np.uint32] | None = None
    values: NDArray[np.float32] | None = None
    dense: NDArray[np.float32] | NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        # Native code reads these arrays, so their shapes are made sure of here. What costs a pass
        # over the data (ids below n_sparse, ascending) is left to whoever makes the batch.
        _check_array("offsets", self.offsets, (np.int64,), 1)
        if len(self.offsets) < 2:
            raise ValueError("a batch has no sequences; expected at least one")
        if self.offsets[0] != 0 or (np.diff(self.offsets) <= 0).any():
            raise ValueError("offsets must begin with 0 and ascend: no sequence may be empty")
        n_tokens = int(self.offsets[-1])
        if not 0 <= self.n_sparse < 2**32:
            raise ValueError(f"n_sparse is {self.n_sparse}; expected 0 to 2^32 - 1")
        if (self.indptr is None) != (self.indices is None):
            raise ValueError("indptr and indices must be given together")
        if self.indptr is None and self.dense is None:
            raise ValueError("a batch needs sparse features, dense features or both")
        if self.indptr is not None and self.indices is not None:
            _check_array("indptr", self.indptr, (np.int64,), 1)
            _check_array("indices", self.indices, (np.uint32,), 1)
            if len(self.indptr) != n_tokens + 1:
                raise ValueError(
                    f"indptr has {len(self.indptr)} entries; expected {n_tokens + 1}, "
                    "one more than there are tokens"
                )
            if self.indptr[0] != 0 or self.indptr[-1] != len(self.indices):
                raise ValueError("indptr must begin with 0 and end with the length of indices")
            if (np.diff(self.indptr) < 0).any():
                raise ValueError("indptr must not descend")
        if self.values is not None:
            _check_array("values", self.values, (np.float32,), 1)
            if self.indices is None or len(self.values) != len(self.indices):
                raise ValueError("values must be as long as indices")
        if self.dense is not None:
            _check_array("dense", self.dense, (np.float32, np.float64), 2)
            if len(self.dense) != n_tokens:
                raise ValueError(
                    f"dense has {len(self.dense)} rows; expected {n_tokens}, one a token"
                )

    def take(self, sequences: NDArray[Any]) -> EncodedBatch:
        """Return some of the sequences, in the order given.

        Parameters
        ----------
        sequences : int array
            Numbers of sequences.

        Returns
        -------
        EncodedBatch
            Their tokens; features keep their numbers.
        """
        tokens = ragged_ranges(self.offsets, sequences)
        offsets = _ends(self.lengths[sequences])
        indptr = indices = values = None
        if self.indptr is not None and self.indices is not None:
            entries = ragged_ranges(self.indptr, tokens)
            indptr = _ends(np.diff(self.indptr)[tokens])
            indices = self.indices[entries]
            values = None if self.values is None else self.values[entries]
        dense = None if self.dense is None else self.dense[tokens]
        return EncodedBatch(offsets, self.n_sparse, indptr, indices, values, dense)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return int(self.offsets[-1])

    @property
    def n_dense(self) -> int:
        """Number of dense features of a token."""
        return 0 if self.dense is None else int(self.dense.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        arrays = (self.offsets, self.indptr, self.indices, self.values, self.dense)
        return sum(a.nbytes for a in arrays if a is not None)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)
