"""One row of numbers for each example, dense or sparse, as native structures over examples take it.

A matrix is checked once (finite, not above 1e12, as many columns as the model has) and handed over
without a copy where its type allows. Sparse values that are all one are left out: native code then
adds rows of weights without multiplying. A bias is a column of its own, with the same value for all
examples: beside sparse columns it is a dense one, so that the sparse arrays stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._native import MAX_VALUE
from maxmargin.checks import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ExampleMatrix", "bias_value", "example_matrix"]

#: Entries that are looked at together.
_BLOCK = 1 << 20


class ExampleMatrix:
    """The rows of all examples in numbers.

    Parameters
    ----------
    matrix : CSR matrix or 2-d array
        As `example_matrix` made it.
    bias : float
        The value of one more column, the last one; 0 for none.
    dtype : "float32" or "float64"
        As which sparse values are kept.
    """

    def __init__(self, matrix: Any, bias: float = 0.0, dtype: Any = "float32") -> None:
        self.n, self.n_columns = (int(size) for size in matrix.shape)
        self.n_rows = self.n_columns + (bias != 0.0)
        self.arrays: dict[str, Any] = {"n_sparse": 0}
        constant = np.full((self.n, 1), bias, dtype=np.float32 if dtype == "float32" else float)
        if isinstance(matrix, np.ndarray):
            dense = matrix if bias == 0.0 else np.hstack([matrix, constant.astype(matrix.dtype)])
            self._add_dense(np.ascontiguousarray(dense))
            return
        self.arrays |= {
            "n_sparse": self.n_columns,
            "indptr": np.ascontiguousarray(matrix.indptr, dtype=np.int64),
            "indices": _unsigned(matrix.indices),
        }
        if not _all_ones(matrix.data):
            # No more digits than there are.
            narrow = dtype == "float32" or matrix.dtype == np.float32
            name, kind = ("values", np.float32) if narrow else ("values64", np.float64)
            self.arrays[name] = np.ascontiguousarray(matrix.data, dtype=kind)
        if bias != 0.0:
            self._add_dense(constant)

    def _add_dense(self, dense: NDArray[Any]) -> None:
        self.arrays["dense32" if dense.dtype == np.float32 else "dense64"] = dense


def _unsigned(indices: NDArray[Any]) -> NDArray[np.uint32]:
    """Return indices, none of which is below zero, as native code takes them."""
    contiguous = np.ascontiguousarray(indices)
    if contiguous.dtype == np.int32:
        return contiguous.view(np.uint32)
    return contiguous.astype(np.uint32, copy=False)


def _all_ones(values: NDArray[Any]) -> bool:
    if len(values) and values[0] != 1:  # the rule; all of them are looked at for nothing
        return False
    return all(bool((values[at : at + _BLOCK] == 1).all()) for at in range(0, len(values), _BLOCK))


def bias_value(fit_intercept: bool, intercept_scaling: Any) -> float:
    """Return the value of the bias column, as the parameters of scikit-learn's linear models say.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is one.
    intercept_scaling : float
        Its value; above 0.

    Returns
    -------
    float
        0 for none.
    """
    if not fit_intercept:
        return 0.0
    if not is_number(intercept_scaling, above=0.0):
        raise ValueError(
            f"intercept_scaling is {intercept_scaling!r}; expected a number above 0"
        )
    return float(intercept_scaling)


def example_matrix(X: Any, n_columns: int | None = None) -> Any:
    """Return the inputs as a matrix, checked.

    Parameters
    ----------
    X : 2-d array, sparse matrix or array of any format, data frame, or list of rows
        A row for each example. Rows of a list are all dense or all sparse.
    n_columns : int, optional
        How many columns there must be.

    Returns
    -------
    csr_array or ndarray
        float32 if X is, else float64; sparse rows have sorted columns, each once.

    Raises
    ------
    TypeError, ValueError
        If it is no such thing; the message names the example.
    """
    if _is_sparse(X) or (isinstance(X, list | tuple) and len(X) > 0 and _is_sparse(X[0])):
        matrix, values = _sparse_matrix(X)
    else:
        matrix = values = _dense_matrix(X)
    n, d = matrix.shape
    if n == 0:
        raise ValueError("X has no rows; expected at least one example")
    if d == 0:
        raise ValueError("X has 0 feature(s) (shape=(" + str(n) + ", 0)); expected at least one")
    if n_columns is not None and d != n_columns:
        raise ValueError(f"X has {d} features (columns), but {n_columns} were learned from")
    if d >= 2**32 - 1:
        raise ValueError(f"X has {d} columns; expected fewer than 2^32 - 1")
    flat = values.reshape(-1)
    for at in range(0, len(flat), _BLOCK):
        block = flat[at : at + _BLOCK]
        # (Of NaN neither is true. No array is made for what is almost always in order.)
        if not (block.min() >= -MAX_VALUE and block.max() <= MAX_VALUE):
            entry = at + int(np.argmin(np.abs(block) <= MAX_VALUE))
            raise ValueError(_misfit(matrix, entry, flat[entry]))
    return matrix


def _misfit(matrix: Any, entry: int, value: Any) -> str:
    if isinstance(matrix, np.ndarray):
        row, column = divmod(entry, matrix.shape[1])
    else:
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        column = int(matrix.indices[entry])
    what = "NaN" if np.isnan(value) else f"{value}"
    return (
        f"X: example {row}, column {column} is {what}; expected a finite number of at most 1e12 "
        "(no NaN, no infinity)"
    )


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def _float(matrix: Any) -> Any:
    """Return numbers as float32 or float64."""
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"X has entries of the type {matrix.dtype}; expected real numbers")
    return matrix.astype(np.float64)


def _sparse_matrix(X: Any) -> tuple[Any, NDArray[Any]]:
    if isinstance(X, list | tuple):
        import scipy.sparse

        X = scipy.sparse.vstack([row.reshape(1, -1) for row in X])
    if X.ndim != 2:
        raise ValueError(f"X is a sparse array with {X.ndim} dimension(s); expected two")
    matrix = _float(X.tocsr())
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix, matrix.data


def _dense_matrix(X: Any) -> NDArray[Any]:
    try:
        matrix = np.asarray(X)
        if matrix.dtype == object:
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"X is a {type(X).__name__} that is no matrix of numbers; expected a 2-d array, a "
            "sparse matrix or a list of rows of the same length"
        ) from None
    if matrix.ndim != 2:
        raise ValueError(
            f"X has {matrix.ndim} dimension(s); expected two, a row for each example"
        )
    return np.ascontiguousarray(_float(matrix))
