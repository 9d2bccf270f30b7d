"""Sequences that are arrays or sparse matrices, turned into the arrays of a batch."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import MAX_VALUE
from maxmargin.features.sequences import offsets_of, place_of

__all__ = ["Values", "encode_dense", "encode_sparse"]

Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

_MAX_SPARSE = 2**32 - 1
_WITHIN = "expected a number between -1e12 and 1e12"  # MAX_VALUE in words
# Rows are checked for NaN in pieces of about this many numbers, to keep the mask small.
_CHECK_NUMBERS = 1 << 20


def _n_columns(sequence: Any, index: int, what: str) -> int:
    if sequence.ndim != 2:
        raise ValueError(
            f"sequence {index} is a {sequence.ndim}-d {what}; "
            "expected a 2-d one, (tokens, features)"
        )
    return int(sequence.shape[1])


def _check_numbers(sequence: Any, index: int, what: str, expected: int) -> None:
    """Check the shape and type of one array or sparse matrix."""
    found = _n_columns(sequence, index, what)
    if sequence.shape[0] == 0:
        raise ValueError(f"sequence {index} is empty; expected at least one token")
    if found == 0 or found != expected:
        wanted = expected if expected > 0 else "at least one"
        raise ValueError(f"sequence {index} has {found} columns in its {what}; expected {wanted}")
    masked = "masked " if isinstance(sequence, np.ma.MaskedArray) else ""
    if masked or sequence.dtype.kind not in "biuf":
        raise TypeError(
            f"sequence {index} is a {masked}{what} of {sequence.dtype}; expected real numbers"
        )


def encode_dense(
    sequences: list[NDArray[Any]], n_columns: int | None
) -> tuple[NDArray[np.int64], Values]:
    """Put arrays one below the other.

    Parameters
    ----------
    sequences : list of arrays
        One row a token.
    n_columns : int or None
        How many columns there must be; None: as many as the first has.

    Returns
    -------
    offsets : int64 array
        The first token of each sequence.
    dense : array of shape (tokens, columns)
        Of 8-byte numbers if one of the arrays is.
    """
    what = "dense array"
    if n_columns is None:
        n_columns = _n_columns(sequences[0], 0, what)
    dtypes: set[np.dtype[Any]] = set()
    for i, sequence in enumerate(sequences):
        _check_numbers(sequence, i, what, n_columns)
        dtypes.add(sequence.dtype)
    double = any(d.kind == "f" and d.itemsize > 4 for d in dtypes)
    offsets = offsets_of([len(sequence) for sequence in sequences])
    shape = (int(offsets[-1]), n_columns)
    dense: Values = np.empty(shape, np.float64) if double else np.empty(shape, np.float32)
    with np.errstate(over="ignore"):  # What is too large is found and named below.
        np.concatenate(sequences, axis=0, out=dense, casting="same_kind")
    step = max(1, _CHECK_NUMBERS // n_columns)
    for begin in range(0, len(dense), step):
        within = np.abs(dense[begin : begin + step]) <= MAX_VALUE  # not so of nan
        if not within.all():
            row, column = (int(k) for k in np.argwhere(~within)[0])
            raise ValueError(
                f"{place_of(offsets, begin + row)}, column {column}: "
                f"found {dense[begin + row, column]}; {_WITHIN}"
            )
    return offsets, dense


def encode_sparse(
    matrices: list[Any], n_columns: int | None, double: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], Values | None, int]:
    """Put sparse matrices one below the other.

    Parameters
    ----------
    matrices : list of SciPy sparse matrices
        One row a token.
    n_columns : int or None
        How many columns there must be; None: as many as the first has.
    double : bool
        Whether values are kept as 8-byte numbers.

    Returns
    -------
    offsets : int64 array
        The first token of each sequence.
    indptr, indices, values : arrays
        A CSR matrix; values are None if all are one.
    n_columns : int
        How many columns there are.
    """
    import scipy.sparse

    what = "sparse matrix"
    if n_columns is None:
        n_columns = _n_columns(matrices[0], 0, what)
    if n_columns > _MAX_SPARSE:
        raise ValueError(f"sequence 0 has {n_columns} columns; expected at most {_MAX_SPARSE}")
    rows = []
    for i, matrix in enumerate(matrices):
        _check_numbers(matrix, i, what, n_columns)
        # To floats first: duplicates of bools or small ints would be added within their type.
        rows.append(matrix.astype(np.float64, copy=False).tocsr())
    offsets = offsets_of([matrix.shape[0] for matrix in rows])
    # SciPy's own vstack is wrong for matrices whose arrays are longer than they need to be.
    indptr = np.zeros(int(offsets[-1]) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.diff(m.indptr) for m in rows]), out=indptr[1:])
    together = scipy.sparse.csr_array(
        (
            np.concatenate([m.data[: m.indptr[-1]] for m in rows]),
            np.concatenate([m.indices[: m.indptr[-1]] for m in rows]),
            indptr,
        ),
        shape=(int(offsets[-1]), n_columns),
    )
    together.check_format(full_check=True)
    together.sum_duplicates()
    within = np.abs(together.data) <= MAX_VALUE  # not so of nan
    if not within.all():
        k = int(np.argmin(within))
        token = int(np.searchsorted(together.indptr, k, side="right")) - 1
        raise ValueError(
            f"{place_of(offsets, token)}, column {int(together.indices[k])}: found "
            f"{together.data[k]}; {_WITHIN}"
        )
    if not double:
        together.data = together.data.astype(np.float32)
    together.eliminate_zeros()
    values = together.data
    return (
        offsets,
        together.indptr.astype(np.int64),
        together.indices.astype(np.uint32),
        None if (values == 1).all() else values,
        n_columns,
    )
