"""Feature vectors as native code reads them, against the Python code that reads every kind."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin import _native
from maxmargin.structures import vectors
from maxmargin.structures.vectors import BadFeatures, SparseVector, sparse_vector

SIZE = 12
INDICES = st.one_of(st.integers(0, SIZE - 1), st.sampled_from([-1, SIZE, 2**32 - 1, 2**40, 2**70]))
VALUES = st.one_of(
    st.integers(-3, 3),
    st.floats(-2, 2),
    st.sampled_from([0.0, -0.0, 1e-300, 1e308, -1e308, np.inf, np.nan, 2**63, 10**400]),
    st.sampled_from([True, np.float32(0.1), np.float64(0.2), np.int32(3), "1", None, 1j]),
)
GOOD_INDICES = st.integers(0, SIZE - 1)
GOOD_VALUES = st.one_of(st.integers(-3, 3), st.floats(-2, 2))


class Subclass(np.ndarray):
    """Left to Python: it may mean something else."""


def outcome(read, features, n_features):
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers
            return read(features, n_features)
    except BadFeatures as error:
        return error.kind, str(error)
    except OverflowError as error:
        return str(error)


def same(features, n_features, rounding=0.0):
    """Both ways agree; return whether native code read it.

    Entries of one index may be added up in another order. What cancels leaves the rounding of its
    parts, at most `rounding`.
    """
    expected = outcome(vectors._sparse_vector, features, n_features)
    found = outcome(sparse_vector, features, n_features)
    if not isinstance(expected, SparseVector):
        assert found == expected
        return False
    assert isinstance(found, SparseVector)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-15, atol=rounding)
    assert (found.indices.dtype, found.values.dtype) == (np.uint32, np.float64)
    assert found.size == expected.size
    plain, _ = vectors.plain_features(features, n_features)
    return _native.sparse_entries(plain, n_features) is not None


@settings(max_examples=300, deadline=None)
@example([(0, -0.625), (0, 0.2), (0, 0.2), (0, 0.2)], SIZE)
@given(
    st.lists(st.tuples(st.one_of(GOOD_INDICES, INDICES), st.one_of(GOOD_VALUES, VALUES))),
    st.sampled_from([SIZE, None]),
)
def test_dicts_and_pairs_of_lists(entries, n_features):
    same(dict(entries), n_features)
    sizes = [abs(x) for _, x in entries if isinstance(x, float | int) and abs(x) <= 1e308]
    rounding = sum(1e-15 * float(size) for size in sizes)
    same(([k for k, _ in entries], [x for _, x in entries]), n_features, rounding)


INDEX_TYPES = ["int64", "int32", "uint32", "uint64", "int8", "bool", "float64", ">i8"]
VALUE_TYPES = ["float64", "float32", "float16", "int64", "uint8", "bool", "complex128", ">f8"]
READ_NATIVELY = {"int64", "int32", "uint32", "float64", "float32"}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, SIZE), st.integers(-2, 2)), max_size=20),
    st.sampled_from(INDEX_TYPES),
    st.sampled_from(VALUE_TYPES),
    st.sampled_from([1, 2, -1]),
    st.sampled_from([SIZE, None]),
)
def test_pairs_of_arrays(entries, index_type, value_type, step, n_features):
    table = np.array(entries, dtype=int).reshape(-1, 2)
    indices, values = table[:, 0].astype(index_type)[::step], table[:, 1].astype(value_type)[::step]
    native = same((indices, values), n_features)
    if native and len(entries) > 0:
        assert index_type in READ_NATIVELY - {"float64", "float32"}
        assert value_type in READ_NATIVELY
    same((indices.tolist(), values), n_features)
    same((indices, values[:-1]), n_features)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([SIZE, 300]), st.sampled_from(VALUE_TYPES), st.data()
)
def test_arrays(seed, size, kind, data):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(size) < rng.random() ** 2, rng.integers(-2, 3, size), 0)
    dense = dense.astype(kind)
    if kind == "float64" and data.draw(st.booleans()):
        dense[data.draw(st.integers(0, size - 1))] = data.draw(st.sampled_from([np.nan, -np.inf]))
    same(dense, SIZE)
    same(dense, None)
    same(dense[::2], None)
    same(dense.reshape(1, -1), None)
    same(dense.view(Subclass), None)


@pytest.mark.parametrize(
    "make", ["csr_matrix", "csr_array", "csc_matrix", "coo_array", "lil_array"]
)
def test_scipy_rows(make):
    dense = np.zeros((3, SIZE))
    dense[1, [2, 7, 11]] = 1.0, -2.0, 0.5
    matrix = getattr(sparse, make)(dense)
    native = same(getattr(sparse, make)(dense[[1]]), SIZE)
    assert native == ("csr" in make)
    for bad in (matrix, getattr(sparse, make)(dense[[1], :-1])):
        same(bad, SIZE)
    assert same(sparse.csr_array(dense[1]), SIZE)
    doubled = sparse.csr_matrix((np.ones(3), np.array([4, 2, 4]), np.array([0, 3])), (1, SIZE))
    assert same(doubled, SIZE)
    longer = sparse.csr_matrix((np.ones(3), np.array([4, 2, 4]), np.array([0, 2])), (1, SIZE))
    assert same(longer, SIZE)


def test_kinds_of_dicts_that_native_code_reads():
    pairs = {np.int64(3): np.float64(1.5), 1: 2, 5: 0.0}
    for kind in (dict, collections.Counter, lambda d: collections.defaultdict(float, d)):
        assert same(kind(pairs), SIZE)
    assert not same(collections.ChainMap(pairs), SIZE)  # read, but by Python


def test_what_the_user_keeps_is_not_shared():
    values = np.ones(SIZE)
    vector = sparse_vector(values)
    pairs = sparse_vector((np.arange(SIZE), values))
    values[:] = 5.0
    assert (vector.values == 1.0).all()
    assert (pairs.values == 1.0).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_planes(seed):
    rng = np.random.default_rng(seed)
    truth, other = np.where(rng.random((2, 40)) < 0.4, rng.integers(-2, 3, (2, 40)), 0.0)
    w = rng.normal(size=40)
    f = sparse_vector(truth)
    indices, values, score, scale = _native.sparse_plane(f.indices, f.values, other, w)
    expected = sparse_vector(truth - other)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(values, expected.values)
    assert score == pytest.approx(w @ other - w @ truth, abs=1e-12)
    assert scale == pytest.approx(np.abs(w) @ (np.abs(other) + np.abs(truth)), abs=1e-12)


def test_native_code_reads_nothing_outside_of_w():
    w, ones = np.zeros(3), np.ones(1)
    for indices in (np.array([3], np.uint32), np.array([0], np.int64), np.zeros(2, np.uint32)):
        with pytest.raises(ValueError, match="indices"):
            _native.sparse_plane(indices, ones, np.zeros(3), w)
        with pytest.raises(ValueError, match="indices"):
            _native.ListedPlanes(indices, ones, 3)
    none = np.empty(0, np.uint32), np.empty(0)
    assert _native.sparse_plane(*none, np.zeros(4), w) is None
    assert _native.sparse_plane(*none, {3: 1.0}, w) is None
    for bad in (np.zeros(3, np.float32), np.zeros(6)[::2], np.zeros((3, 1)), None):
        with pytest.raises((ValueError, TypeError)):
            _native.sparse_plane(*none, {0: 1.0}, bad)
    rows = _native.ListedPlanes(*none, 3)
    assert not rows.add({3: 1.0}, 0.5)
    assert len(rows) == 0
    with pytest.raises(ValueError, match="no output"):
        rows.best(w)
    assert rows.best_by_loss(w, True) == []
    assert rows.best_by_loss(w, False) == []
    assert rows.add({2: 1.0}, 0.5)
    with pytest.raises(ValueError, match="does not fit"):
        rows.best(np.zeros(2))
    with pytest.raises(ValueError, match="no such output"):
        rows.plane(1)
