"""Which weights are not zero (``native/nonzeros.hpp``), against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _native

DTYPES = [np.float32, np.float64]
#: Zeros of both signs, the smallest number, and what is no number.
VALUES = [0.0, -0.0, 1.0, -2.5, 1e-45, np.inf, np.nan]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2, 5])
@given(data=st.data())
def test_counts_of_short_arrays(dtype: Any, threads: int, data: Any) -> None:
    x = np.array(data.draw(st.lists(st.sampled_from(VALUES), max_size=70)), dtype)
    assert _native.count_nonzero(x, threads) == np.count_nonzero(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.0, 0.01, 1.0])
def test_counts_of_long_arrays(dtype: Any, density: float) -> None:
    """Longer than a chunk of the sum, so that several threads have some."""
    rng = np.random.default_rng(0)
    x = (rng.random(1_000_003) < density).astype(dtype)
    for threads in (1, 2, 3):
        assert _native.count_nonzero(x, threads) == np.count_nonzero(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("width", "n_columns", "kind"),
    [(8, 5, np.uint8), (256, 256, np.uint8), (264, 257, np.uint16), (65544, 65537, np.uint32)],
)
def test_rows(dtype: Any, width: int, n_columns: int, kind: Any) -> None:
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random((6, width)) < 0.3, rng.normal(size=(6, width)), 0).astype(dtype)
    matrix[2] = 0
    matrix[3, :n_columns] = 0  # what stands in the padding does not count
    counts = _native.row_counts(matrix, n_columns)
    np.testing.assert_array_equal(counts, np.count_nonzero(matrix[:, :n_columns], axis=1))
    rows = np.array([5, 0, 2, 3], np.uint64)
    each, columns, values = _native.row_entries(matrix, rows, n_columns)
    np.testing.assert_array_equal(each, counts[rows.astype(int)])
    assert columns.dtype == kind
    assert values.dtype == dtype
    expected = [np.flatnonzero(matrix[r, :n_columns]) for r in rows.astype(int)]
    np.testing.assert_array_equal(columns, np.concatenate(expected))
    picked = [matrix[int(r), c] for r, c in zip(rows, expected, strict=True)]
    np.testing.assert_array_equal(values, np.concatenate(picked))


def test_no_rows() -> None:
    matrix = np.zeros((0, 8), np.float32)
    assert len(_native.row_counts(matrix, 3)) == 0
    counts, columns, values = _native.row_entries(matrix, np.empty(0, np.uint64), 3)
    assert len(counts) == len(columns) == len(values) == 0


def test_bad_input() -> None:
    matrix = np.ones((2, 8), np.float32)
    with pytest.raises(ValueError, match="there are fewer columns"):
        _native.row_counts(matrix, 9)
    with pytest.raises(ValueError, match="there are fewer columns"):
        _native.row_entries(matrix, np.zeros(1, np.uint64), 9)
    with pytest.raises(ValueError, match="row"):
        _native.row_entries(matrix, np.full(1, 2, np.uint64), 8)
