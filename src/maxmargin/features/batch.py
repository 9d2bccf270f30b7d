"""The encoded batch: sequences of tokens as arrays of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EncodedBatch", "MappedFile", "WindowPlan", "ragged_ranges"]


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


def _check_rows(
    prefix: str,
    indptr: NDArray[np.int64] | None,
    indices: NDArray[np.uint32] | None,
    n_tokens: int,
    mapped: bool,
) -> None:
    """Check the shapes of compressed rows, one a token."""
    name = f"{prefix}indptr"
    if (indptr is None) != (indices is None):
        raise ValueError(f"{name} and {prefix}indices must be given together")
    if indptr is None or indices is None:
        return
    _check_array(name, indptr, (np.int64,), 1)
    _check_array(f"{prefix}indices", indices, (np.uint32,), 1)
    if len(indptr) != n_tokens + 1:
        raise ValueError(
            f"{name} has {len(indptr)} entries; expected {n_tokens + 1}, "
            "one more than there are tokens"
        )
    if indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError(f"{name} must begin with 0 and end with the length of {prefix}indices")
    if not mapped and (np.diff(indptr) < 0).any():  # else native code looks, page by page
        raise ValueError(f"{name} must not descend")


@dataclass(frozen=True)
class WindowPlan:
    """How a training works through sequences that may not fit in memory.

    Attributes
    ----------
    ends : tuple of int
        Windows of the sequences: where each ends. Passes go from window to window, in random order.
    limit : int
        Bytes that the planes in memory may take when a window is left; those of the window go to a
        temporary file beyond that.
    directory : str
        Where the temporary file is made.
    """

    ends: tuple[int, ...]
    limit: int
    directory: str


@dataclass(frozen=True, eq=False)
class MappedFile:
    """The file that the arrays of a batch are mapped from.

    Attributes
    ----------
    pages : uint8 array
        All bytes of the mapping.
    hash : int
        Of features and labels.
    windows : WindowPlan or None
        None: all sequences are visited in any order, as if they were in memory.
    """

    pages: NDArray[np.uint8]
    hash: int
    windows: WindowPlan | None = None


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
    values : float32 or float64 array as long as ``indices``, optional
        Feature values. None when every value is exactly one.
    dense : float32 or float64 array of shape (n_tokens, n_dense), optional
        Dense features. None without dense features.
    n_pair : int
        Number of features of a token and two labels, its own and the one before.
    pair_indptr, pair_indices
        As ``indptr`` and ``indices``, of these features. None without them.
    mapped : MappedFile or None
        The file that the arrays are mapped from; None: they are in memory.
    """

    offsets: NDArray[np.int64]
    n_sparse: int
    indptr: NDArray[np.int64] | None = None
    indices: NDArray[np.uint32] | None = None
    values: NDArray[np.float32] | NDArray[np.float64] | None = None
    dense: NDArray[np.float32] | NDArray[np.float64] | None = None
    n_pair: int = 0
    pair_indptr: NDArray[np.int64] | None = None
    pair_indices: NDArray[np.uint32] | None = None
    mapped: MappedFile | None = None

    def __post_init__(self) -> None:
        # Native code reads these arrays, so their shapes are made sure of here. What costs a pass
        # over the data (ids below n_sparse, ascending) is left to whoever makes the batch.
        _check_array("offsets", self.offsets, (np.int64,), 1)
        if len(self.offsets) < 2:
            raise ValueError("a batch has no sequences; expected at least one")
        if self.offsets[0] != 0 or (np.diff(self.offsets) <= 0).any():
            raise ValueError("offsets must begin with 0 and ascend: no sequence may be empty")
        n_tokens = int(self.offsets[-1])
        for name, n in (("n_sparse", self.n_sparse), ("n_pair", self.n_pair)):
            if not 0 <= n < 2**32:
                raise ValueError(f"{name} is {n}; expected 0 to 2^32 - 1")
        _check_rows("", self.indptr, self.indices, n_tokens, self.mapped is not None)
        _check_rows("pair_", self.pair_indptr, self.pair_indices, n_tokens, self.mapped is not None)
        if self.indptr is None and self.dense is None:
            raise ValueError("a batch needs sparse features, dense features or both")
        if self.values is not None:
            _check_array("values", self.values, (np.float32, np.float64), 1)
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
            Numbers of sequences, from 0 on.

        Returns
        -------
        EncodedBatch
            Their tokens; features keep their numbers.
        """
        sequences = np.asarray(sequences)
        if len(sequences) and not 0 <= sequences.min() <= sequences.max() < self.n_sequences:
            raise IndexError(f"sequences must be from 0 to {self.n_sequences - 1}")
        tokens = ragged_ranges(self.offsets, sequences)
        offsets = _ends(self.lengths[sequences])
        indptr = indices = values = None
        if self.indptr is not None and self.indices is not None:
            entries = ragged_ranges(self.indptr, tokens)
            indptr = _ends(np.diff(self.indptr)[tokens])
            indices = self.indices[entries]
            values = None if self.values is None else self.values[entries]
        dense = None if self.dense is None else self.dense[tokens]
        pair_indptr = pair_indices = None
        if self.pair_indptr is not None and self.pair_indices is not None:
            pair_indptr = _ends(np.diff(self.pair_indptr)[tokens])
            pair_indices = self.pair_indices[ragged_ranges(self.pair_indptr, tokens)]
        return EncodedBatch(
            offsets,
            self.n_sparse,
            indptr,
            indices,
            values,
            dense,
            self.n_pair,
            pair_indptr,
            pair_indices,
        )

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
        arrays = [self.offsets, self.indptr, self.indices, self.values, self.dense]
        arrays += [self.pair_indptr, self.pair_indices]
        return sum(a.nbytes for a in arrays if a is not None)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)
