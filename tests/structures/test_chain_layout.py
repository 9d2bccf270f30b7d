"""`ChainLayout`: every row of the weights belongs to one thing, and native code agrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin.features import FeatureEncoder
from maxmargin.structures import Chain
from maxmargin.structures.chain_layout import ChainLayout, weight_dtype

counts = st.integers(0, 4)
layouts = st.builds(ChainLayout, counts, counts, st.integers(1, 6), counts)


@given(layouts)
def test_the_rows_are_a_partition_in_order(layout):
    rows = np.arange(layout.n_rows)
    parts = [rows[: layout.n_sparse], rows[layout.dense], rows[layout.transitions]]
    parts += [rows[[layout.start, layout.end]], rows[layout.pairs]]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    sizes = [layout.n_sparse, layout.n_dense, layout.n_labels, 2, layout.n_pair * layout.n_labels]
    assert [len(part) for part in parts] == sizes
    np.testing.assert_array_equal(np.concatenate(parts[:2]), rows[layout.coef])
    np.testing.assert_array_equal(np.concatenate(parts[2:4]), rows[layout.edges])
    np.testing.assert_array_equal(np.concatenate(parts[1:]), rows[layout.tail])
    assert layout.size == layout.n_rows * layout.n_labels
    np.testing.assert_array_equal(layout.pair_rows(np.arange(layout.n_pair)).ravel(), parts[4])


@given(layouts)
def test_parts_of_a_layout(layout):
    rows = np.arange(layout.size, dtype=np.float64).reshape(layout.n_rows, layout.n_labels)
    whole, L = layout.split(rows), layout.n_labels
    tail = layout.without_sparse.split(rows[layout.tail])
    head = layout.without_pairs.split(rows[: layout.pairs.start])
    np.testing.assert_array_equal(tail.coef, rows[layout.dense])
    np.testing.assert_array_equal(head.coef, whole.coef)
    for name in ("transitions", "start", "end"):
        for part in (tail, head):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    np.testing.assert_array_equal(tail.pairs, whole.pairs)
    assert head.pairs.shape == (0, L, L)
    for g in range(layout.n_pair):
        for before in range(L):
            np.testing.assert_array_equal(whole.pairs[g, before], rows[layout.pair_row(g, before)])


@given(layouts, st.sampled_from(["float32", "float64"]))
def test_padding(layout, dtype):
    rows = 1 + np.arange(layout.size).reshape(layout.n_rows, layout.n_labels)
    weights = layout.pad(rows, dtype)
    assert weights.dtype == dtype
    assert weights.shape == (layout.n_weights(dtype),)
    assert weights.nbytes == layout.n_bytes(dtype)
    assert weights.ctypes.data % 32 == 0
    assert layout.width(dtype) * weights.itemsize % 32 == 0
    np.testing.assert_array_equal(layout.rows(weights), rows)
    assert not layout.matrix(weights)[:, layout.n_labels :].any()
    assert layout.matrix(weights).shape == (layout.n_rows, layout.width(dtype))
    assert np.shares_memory(layout.rows(weights), weights)
    assert not layout.zeros(dtype).any()


@pytest.mark.parametrize("n_labels", [1, 3, 9])
@pytest.mark.parametrize("single", [True, False])
def test_native_code_has_as_many_weights(n_labels, single):
    rng = np.random.default_rng(n_labels)
    X = [([["a", "b"], ["c"], ["a"]] * n_labels, rng.normal(size=(3 * n_labels, 2)))]
    Y = [[k % n_labels for k in range(3 * n_labels)]]
    chain = Chain(encoder=FeatureEncoder())
    batch, codes = chain.learn(X, Y)
    layout = chain.layout
    assert layout == ChainLayout.of(batch, n_labels) == ChainLayout(3, 2, n_labels)
    problem = chain.encoded_problem(batch, codes)
    weights = _native.Engine(problem, 1.0, single=single).weights
    assert len(weights) == layout.n_weights(weights.dtype)


def test_types_of_weights():
    assert weight_dtype("float32") == weight_dtype(np.float32) == np.float32
    assert weight_dtype(np.dtype(np.float64)) == np.float64
    with pytest.raises(ValueError, match="float16"):
        weight_dtype("float16")
