from __future__ import annotations

import _thread
import collections
import contextlib
import decimal
import io
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from kit import BoomError, NoRepr
from maxmargin._native import Vocabulary, checksum, encode_tokens
from maxmargin.features import (
    EncodedBatch,
    FeatureEncoder,
    check_lengths,
    encode_labels,
    sequence_lengths,
)
from maxmargin.features.counting import drop_rare, hashed_numbers
from maxmargin.io.crfsuite import read_crfsuite
from maxmargin.structures import Chain

# --- a slow reference -------------------------------------------------------------------------


def as_text(x):
    # Not str(x): of a numpy string that would drop NUL characters at the end.
    return x.decode() if isinstance(x, bytes) else x.encode().decode()


def attributes(token, prefix=""):
    """The (name, weight) pairs of a token, as python-crfsuite has them."""
    if not isinstance(token, dict):
        return [(prefix + as_text(s), 1.0) for s in token]
    out = []
    for key, value in token.items():
        name = prefix + as_text(key)
        if isinstance(value, str | bytes):
            out.append((f"{name}:{as_text(value)}", 1.0))
        elif isinstance(value, dict | list | tuple | set | frozenset):
            out += attributes(value, name + ":")
        else:
            out.append((name, float(value)))
    return out


def reference(X, known=None):
    """Rows of {name: value} and the names in order of appearance."""
    names = {} if known is None else known
    rows = []
    for sequence in X:
        for token in sequence:
            row = collections.defaultdict(float)
            for name, weight in attributes(token):
                if weight == 0 or (known is not None and name not in known):
                    continue
                names.setdefault(name, len(names))
                row[name] += weight
            rows.append({k: np.float32(v) for k, v in row.items() if np.float32(v) != 0})
    return rows, list(names)


def decode(batch, names):
    rows = []
    for t in range(batch.n_tokens):
        a, b = batch.indptr[t], batch.indptr[t + 1]
        ids = batch.indices[a:b]
        assert (np.diff(ids.astype(np.int64)) > 0).all()
        values = np.ones(b - a, np.float32) if batch.values is None else batch.values[a:b]
        rows.append({names[i]: v for i, v in zip(ids, values, strict=True)})
    return rows


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from("abc:")
NUMBERS = st.one_of(
    st.sampled_from([0, 1, 1.0, -1, 2, 0.0, True, False]),
    st.integers(-(2**30), 2**30),
    st.floats(-1e10, 1e10),
    st.floats(-1e3, 1e3, width=32).map(np.float32),
    st.integers(-100, 100).map(np.int16),
    st.booleans().map(np.bool_),
)
STRINGS = st.one_of(TEXT, TEXT.map(np.str_), TEXT.map(str.encode))
VALUES = st.recursive(
    st.one_of(
        STRINGS,
        NUMBERS,
        st.lists(STRINGS, max_size=4),
        st.lists(TEXT, max_size=4).map(tuple),
        st.sets(TEXT, max_size=4),
        st.frozensets(TEXT, max_size=4),
    ),
    lambda inner: st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
DICTS = st.dictionaries(STRINGS, VALUES, max_size=5)
TOKENS = st.one_of(DICTS, st.lists(STRINGS, max_size=5), st.lists(TEXT, max_size=5).map(tuple))
CORPUS = st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=4)


@given(CORPUS)
def test_strings_against_reference(X):
    encoder = FeatureEncoder()
    batch = encoder.fit_transform(X)
    rows, names = reference(X)
    assert encoder.kind == "strings"
    assert encoder.feature_names() == names
    assert batch.n_sparse == encoder.n_sparse == len(names)
    assert decode(batch, names) == rows
    assert batch.lengths.tolist() == [len(s) for s in X]
    if batch.values is not None:
        assert (batch.values != 1).any()
        assert (batch.values != 0).all()


@given(CORPUS, CORPUS)
def test_transform_ignores_what_it_does_not_know(X, Z):
    encoder = FeatureEncoder()
    encoder.fit_transform(X)
    names = encoder.feature_names()
    rows, _ = reference(Z, {s: i for i, s in enumerate(names)})
    assert decode(encoder.transform(Z), names) == rows
    assert encoder.feature_names() == names


@given(CORPUS)
def test_pickled_encoder_does_the_same(X):
    encoder = FeatureEncoder()
    batch = encoder.fit_transform(X)
    again = pickle.loads(pickle.dumps(encoder)).transform(X)
    assert_same(batch, again)
    assert_same(batch, encoder.transform(X))


def assert_same(a: EncodedBatch, b: EncodedBatch):
    assert a.n_sparse == b.n_sparse
    for name in ("offsets", "indptr", "indices", "values", "dense"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)


# --- strings ----------------------------------------------------------------------------------


def fit(X):
    encoder = FeatureEncoder()
    return encoder, encoder.fit_transform(X)


def row_of(token):
    encoder, batch = fit([[token]])
    return {k: float(v) for k, v in decode(batch, encoder.feature_names())[0].items()}


def test_each_kind_of_value():
    assert row_of({"w": "dog"}) == {"w:dog": 1}
    assert row_of({"cap": True, "low": False}) == {"cap": 1}
    assert row_of({"len": 3, "x": 0.5, "zero": 0}) == {"len": 3, "x": 0.5}
    assert row_of({"next": {"w": "a", "deep": {"n": 2}}}) == {"next:w:a": 1, "next:deep:n": 2}
    assert row_of({"s": ["a", "b"]}) == {"s:a": 1, "s:b": 1}
    assert row_of({"s": ("a",), "t": {"b"}, "u": frozenset("c")}) == {"s:a": 1, "t:b": 1, "u:c": 1}
    assert row_of({"e": [], "d": {}}) == {}
    assert row_of(
        {"a": np.float32(2), "b": np.int8(3), "c": np.bool_(True), "d": np.str_("x")}
    ) == {
        "a": 2,
        "b": 3,
        "c": 1,
        "d:x": 1,
    }
    assert row_of({"a": decimal.Decimal("0.5"), "b": np.array(4)}) == {"a": 0.5, "b": 4}
    assert row_of({b"k": b"v"}) == {"k:v": 1}


def test_repeated_features_are_summed():
    assert row_of(["a", "b", "a"]) == {"a": 2, "b": 1}
    assert row_of({"a": {"b": 2}, "a:b": 3}) == {"a:b": 5}
    assert row_of({"a": {"b": 1}, "a:b": -1, "c": 1}) == {"c": 1}
    assert row_of({"a": ["b", "b"]}) == {"a:b": 2}


def test_all_ones_have_no_values():
    _, batch = fit([[["a", "b"], {"c": 1.0, "d": "x", "e": True}], [[], {}]])
    assert batch.values is None
    assert batch.indptr.tolist() == [0, 2, 5, 5, 5]
    assert batch.offsets.tolist() == [0, 2, 4]
    _, batch = fit([[["a", "b"], {"c": 0.5}, ["a"]]])
    assert batch.values.tolist() == [1, 1, 0.5, 1]
    # Halves that make a whole are ones too.
    _, batch = fit([[{"a": {"b": 0.5}, "a:b": 0.5}]])
    assert batch.values is None


def test_zero_features_get_no_number():
    encoder, batch = fit([[{"a": 0, "b": 1, "c": False, "tiny": 1e-60}]])
    assert "a" not in encoder.vocabulary
    assert "c" not in encoder.vocabulary
    assert decode(batch, encoder.feature_names()) == [{"b": 1}]


def test_dtypes():
    _, batch = fit([[["b", "a"], {"a": 2}]])
    assert batch.offsets.dtype == batch.indptr.dtype == np.int64
    assert batch.indices.dtype == np.uint32
    assert batch.values.dtype == np.float32
    assert batch.dense is None
    assert batch.n_dense == 0


@pytest.mark.parametrize(
    "wrap",
    [
        tuple,
        collections.deque,
        lambda X: np.array([*X, None], dtype=object)[:-1],
        collections.UserList,
    ],
)
def test_containers_of_sequences(wrap):
    X = [[["a", "b"], ["c"]], [["a"]]]
    _, batch = fit(X)
    assert_same(batch, fit(wrap(X))[1])
    assert_same(batch, fit([wrap(s) for s in X])[1])
    assert sequence_lengths(wrap(X)).tolist() == [2, 1]


def test_arrays_of_objects_of_equal_length():
    X = [[{"a": 1}, {"b": 1}], [{"c": 1}, {"d": 1}]]
    assert_same(fit(X)[1], fit(np.array(X, dtype=object))[1])
    X = [[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]]
    assert_same(fit(X)[1], fit(np.array(X, dtype=object))[1])
    assert_same(fit(X)[1], fit(np.array(X))[1])


def test_kinds_of_tokens():
    expected = fit([[["a", "b"]]])[1]
    for token in (
        ("a", "b"),
        iter(["a", "b"]),
        (s for s in "ab"),
        dict.fromkeys("ab", 1),
        dict.fromkeys("ab", 1).keys(),
        collections.UserDict(a=1, b=True),
        types.MappingProxyType({"a": 1, "b": True}),
        collections.Counter("ab"),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        [b"a", np.str_("b")],
    ):
        assert_same(expected, fit([[token]])[1])
    assert fit([[{"b", "a"}]])[0].n_sparse == 2
    assert row_of({"o": types.MappingProxyType({"a": 2})}) == {"o:a": 2}


def test_large_tokens():
    names = [f"f{i}" for i in range(5000)]
    encoder, _ = fit([[names]])
    batch = encoder.transform([[names[::-1], dict.fromkeys(names[::-1], 2), iter(names * 20)]])
    assert batch.indices.tolist() == list(range(5000)) * 3
    assert batch.values.tolist() == [1] * 5000 + [2] * 5000 + [20] * 5000


# --- arrays and sparse matrices ---------------------------------------------------------------


def test_dense():
    X = [np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((1, 2), np.float32)]
    encoder, batch = fit(X)
    assert encoder.kind == "dense"
    assert encoder.vocabulary is None
    assert (encoder.n_sparse, encoder.n_dense) == (0, 2)
    assert encoder.feature_names() == ["dense:0", "dense:1"]
    assert batch.indptr is batch.indices is batch.values is None
    assert batch.offsets.tolist() == [0, 3, 4]
    assert batch.dense.dtype == np.float32
    assert batch.dense.flags.c_contiguous
    np.testing.assert_array_equal(batch.dense, np.concatenate(X))
    assert batch.nbytes == 3 * 8 + 8 * 4
    assert_same(batch, pickle.loads(pickle.dumps(encoder)).transform(X))


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["f4"], "f4"),
        (["f8"], "f8"),
        (["f4", "f8"], "f8"),
        (["f2"], "f4"),
        (["i8"], "f4"),
        (["?"], "f4"),
        (["u1", "f4"], "f4"),
        (["i4", "f8"], "f8"),
        ([">f8"], "f8"),
        (["g"], "f8"),
    ],
)
def test_dense_dtypes(dtypes, expected):
    X = [np.ones((2, 3), dtype=d) for d in dtypes]
    dense = fit(X)[1].dense
    assert dense.dtype == np.dtype(expected)
    assert (dense == 1).all()


def test_dense_layouts_and_3d_array():
    a = np.arange(24.0).reshape(2, 4, 3)
    _, batch = fit(a)
    assert batch.offsets.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(batch.dense, a.reshape(8, 3))
    _, batch = fit([np.asfortranarray(a[0]), a[1][::-1]])
    np.testing.assert_array_equal(batch.dense, np.concatenate([a[0], a[1][::-1]]))


SPARSE_FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("array", [True, False])
@pytest.mark.parametrize("fmt", SPARSE_FORMATS)
def test_sparse_formats(fmt, array):
    rng = np.random.default_rng(0)
    D = [rng.integers(0, 3, (t, 5)).astype(float) for t in (3, 1, 4)]
    cls = sp.csr_array if array else sp.csr_matrix
    X = [cls(d).asformat(fmt) for d in D]
    encoder, batch = fit(X)
    assert encoder.kind == "sparse"
    assert encoder.n_sparse == batch.n_sparse == 5
    assert encoder.feature_names() == [f"sparse:{j}" for j in range(5)]
    assert batch.indices.dtype == np.uint32
    assert batch.indptr.dtype == np.int64
    found = decode(batch, range(5))
    expected = [{j: v for j, v in enumerate(row) if v != 0} for row in np.concatenate(D)]
    assert found == expected
    assert_same(batch, encoder.transform(X))
    assert sequence_lengths(X).tolist() == [3, 1, 4]


def test_sparse_duplicates_zeros_and_ones():
    dup = sp.coo_array(([1.0, 2, 0, 4, -4], ([0, 0, 0, 1, 1], [2, 2, 1, 0, 0])), shape=(2, 3))
    messy = sp.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    messy.data = np.array([1.0, 1, 1, 9])
    messy.indices = before = np.array([2, 0, 2, 9], dtype=np.int32)
    _, batch = fit([dup, messy])
    assert decode(batch, range(3)) == [{2: 3}, {}, {0: 1, 2: 2}]
    assert decode(fit([messy, dup])[1], range(3)) == [{0: 1, 2: 2}, {2: 3}, {}]
    assert before.tolist() == [2, 0, 2, 9]
    assert messy.data.tolist() == [1, 1, 1, 9]
    bools = sp.coo_array((np.ones(2, bool), ([0, 0], [1, 1])), shape=(1, 2))
    assert decode(fit([bools])[1], range(2)) == [{1: 2}]
    small = sp.coo_array((np.full(2, 100, np.int8), ([0, 0], [1, 1])), shape=(1, 2))
    assert decode(fit([small])[1], range(2)) == [{1: 200}]
    assert fit([sp.eye_array(3)])[1].values is None


def test_malformed_sparse_matrix_is_refused():
    bad = sp.csr_array(np.eye(2))
    bad.indices[0] = 7
    with pytest.raises(ValueError):
        fit([bad])
    bad.indices[0] = -1
    with pytest.raises(ValueError):
        fit([bad])


def test_strings_and_dense_together():
    tokens = [[["a"], {"b": 2}], [["a", "c"]]]
    dense = [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]
    encoder, batch = fit(list(zip(tokens, dense, strict=True)))
    assert encoder.kind == "strings+dense"
    assert (batch.n_sparse, batch.n_dense) == (3, 3)
    assert encoder.feature_names() == ["a", "b", "c", "dense:0", "dense:1", "dense:2"]
    assert batch.offsets.tolist() == [0, 2, 3]
    assert decode(batch, encoder.feature_names()) == [{"a": 1}, {"b": 2}, {"a": 1, "c": 1}]
    np.testing.assert_array_equal(batch.dense, np.concatenate(dense))
    known = encoder.transform([([["new", "c"]], np.ones((1, 3)))])
    assert known.indices.tolist() == [2]
    assert sequence_lengths([(tokens[0], dense[0])]).tolist() == [2]
    assert_same(batch, pickle.loads(pickle.dumps(encoder)).transform(zip_(tokens, dense)))


def zip_(a, b):
    return list(zip(a, b, strict=True))


def test_sparse_and_dense_together():
    X = [(sp.eye_array(2, 4), np.ones((2, 3))), (sp.eye_array(1, 4), np.ones((1, 3)))]
    encoder, batch = fit(X)
    assert encoder.kind == "sparse+dense"
    assert (encoder.n_sparse, encoder.n_dense) == (4, 3)
    assert batch.values is None
    assert batch.indices.tolist() == [0, 1, 0]
    assert_same(batch, encoder.transform(X))
    assert sequence_lengths(X).tolist() == [2, 1]


def test_tuple_of_two_tokens_is_no_pair():
    encoder, batch = fit([(["a"], ["b"]), ({"a": 1}, np.array(["c"]))])
    assert encoder.kind == "strings"
    assert batch.lengths.tolist() == [2, 2]


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [[], (), np.array([], dtype=object), np.zeros((0, 2, 3))])
def test_empty_x(empty):
    with pytest.raises(ValueError, match=r"X is empty; expected at least one sequence"):
        fit(empty)


@pytest.mark.parametrize(
    "bad",
    [
        "a bare string",
        b"bytes",
        None,
        3,
        {"a": 1},
        {"a"},
        sp.eye_array(3),
        (x for x in [[["a"]]]),
        ["flat", "list"],
        np.array(["flat", "array"]),
        [{"a": 1}, {"b": 2}],
        [None],
        [3],
        [{("a",)}],
        [iter([["a"]])],
        [np.array("x")],
    ],
    ids=lambda value: type(value).__name__,  # a repr may hold an address, which xdist refuses
)
def test_not_a_sequence_of_sequences(bad):
    with pytest.raises(
        TypeError, match=r"expected a list of sequences, where a sequence is a list"
    ):
        fit(bad)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((3, 2)), np.array(1.0), np.array(None)])
def test_arrays_with_too_few_dimensions(bad):
    with pytest.raises(ValueError, match=r"X is a \d-d array of .*; expected a list of sequences"):
        fit(bad)
    with pytest.raises(ValueError, match=r"sequence 0 is a .-d dense array; expected a 2-d one"):
        fit([np.zeros(3)])
    with pytest.raises(ValueError, match=r"sequence 1 is a 3-d dense array; expected a 2-d one"):
        fit([np.zeros((1, 1)), np.zeros((1, 1, 1))])


def test_token_that_is_a_string():
    with pytest.raises(TypeError, match=r"sequence 0, token 1 is a str, 'dog'.*one level"):
        fit([[["a"], "dog"]])


@pytest.mark.parametrize("token", [None, 3, 2.5, np.array(3.0), object()])
def test_token_that_is_no_collection(token):
    with pytest.raises(TypeError, match=r"sequence 1, token 1 is .*; expected a dict of features"):
        fit([[["a"]], [["a"], token]])


@pytest.mark.parametrize("item", [1.5, 3, None, ["a"], np.float32(1)])
def test_feature_that_is_no_string(item):
    for token in (["a", item], ("a", item), iter(["a", item])):
        with pytest.raises(
            TypeError, match=r"sequence 0, token 0: a feature is .*; expected a str"
        ):
            fit([[token]])


def test_numbers_as_features_are_explained():
    with pytest.raises(TypeError, match=r"numpy array a sequence"):
        fit([[[0.5, 0.5]]])


@pytest.mark.parametrize(
    "empty", [[], (), np.zeros((0, 2)), sp.csr_array((0, 2)), ([], np.zeros((0, 2)))]
)
def test_empty_sequence(empty):
    with pytest.raises(ValueError, match=r"sequence 0 is empty; expected at least one token"):
        fit([empty])


def test_empty_sequence_is_named():
    with pytest.raises(ValueError, match=r"sequence 2 is empty"):
        fit([[["a"]], [["b"]], []])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (1e39, r"1e\+39"),
        (1.1e12, "1100000000000"),
        (-1e30, r"-1e\+30"),
        (10**400, "an integer too large"),
        (10**60, "an integer too large"),
        (np.float32("nan"), "nan"),
        (np.float64("inf"), "inf"),
    ],
)
def test_feature_that_is_not_finite(value, shown):
    with pytest.raises(ValueError, match=rf"sequence 1, token 1, feature 'k': found .*{shown}"):
        fit([[["a"]], [["a"], {"k": value}]])
    with pytest.raises(ValueError, match=r"sequence 0, token 0, feature 'a:b:k': found"):
        fit([[{"a": {"b": {"k": value}}}]])


def test_sum_that_is_too_large():
    with pytest.raises(ValueError, match=r"sequence 0, token 0, feature 'a:b': its values sum"):
        fit([[{"a": {"b": 6e11}, "a:b": 6e11}]])


def test_the_largest_values():
    assert fit([[{"a": 1e12, "b": -1e12}]])[1].values.tolist() == np.float32([1e12, -1e12]).tolist()
    assert fit([np.array([[1e12, -1e12]])])[1].dense.tolist() == [[1e12, -1e12]]


@pytest.mark.parametrize("value", [1e300, 1e30, -2.0**40])
def test_dense_that_is_too_large(value):
    X = [np.ones((2, 3)), np.ones((4, 3))]
    X[1][2, 1] = value
    with pytest.raises(ValueError, match=r"sequence 1, token 2, column 1: found .* and 1e12$"):
        fit(X)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_that_is_not_finite(value, dtype):
    X = [np.ones((2, 3), dtype), np.ones((4, 3), dtype)]
    X[1][2, 1] = value
    with pytest.raises(ValueError, match=f"sequence 1, token 2, column 1: found {value}"):
        fit(X)
    with pytest.raises(ValueError, match=f"sequence 1, token 2, column 1: found {value}"):
        fit([sp.csr_array(a) for a in X])


def test_late_nan_in_a_large_array():
    a = np.zeros((2_000, 1_500), np.float32)
    a[1_999, 1_499] = np.nan
    with pytest.raises(ValueError, match=r"sequence 0, token 1999, column 1499: found nan"):
        fit([a])


def test_sparse_overflow():
    with pytest.raises(ValueError, match=r"sequence 0, token 0, column 0: found 1e\+39"):
        fit([sp.csr_array([[1e39, 0.0]])])
    with pytest.raises(ValueError, match=r"sequence 0, token 0, column 1: found -2000000000000"):
        fit([sp.csr_array([[1e12, -2e12]])])


@pytest.mark.parametrize(
    "value",
    [
        None,
        1j,
        object(),
        np.zeros(2),
        np.zeros(1),
        np.array(["a"]),
        np.array("a"),
        iter("ab"),
        range(2),
        len,
        [1],
        ["a", None],
        {1},
        [["a"]],
        [{"a": 1}],
    ],
    ids=lambda value: type(value).__name__,  # a repr may hold an address, which xdist refuses
)
def test_value_of_unsupported_type(value):
    with pytest.raises(TypeError, match=r"sequence 1, token 1, key 'k': found .*; expected a"):
        fit([[["a"]], [["a"], {"k": value}]])
    with pytest.raises(TypeError, match=r"sequence 0, token 0, key 'a:k': found"):
        fit([[{"a": {"k": value}}]])


def test_type_is_named():
    with pytest.raises(TypeError, match=r"key 'k': found None, None; expected a number"):
        fit([[{"k": None}]])
    with pytest.raises(TypeError, match=r"key 'k': found a ndarray, array"):
        fit([[{"k": np.zeros(2)}]])


@pytest.mark.parametrize("key", [1, None, ("a",), 2.5])
def test_key_that_is_no_string(key):
    with pytest.raises(TypeError, match=r"sequence 0, token 0: the key .* is .*; expected a str"):
        fit([[{"a": 1, key: 1}]])


DENSE = np.ones((1, 2))
KINDS = {
    "strings": [["a"]],
    "dense": DENSE,
    "sparse": sp.csr_array(DENSE),
    "strings+dense": ([["a"]], DENSE),
    "sparse+dense": (sp.csr_array(DENSE), DENSE),
}


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(KINDS, 2)))
def test_mixed_kinds(a, b):
    with pytest.raises(
        ValueError, match=r"sequence 2 .* is of kind .*, sequence 0 .* of kind"
    ) as e:
        fit([KINDS[a], KINDS[a], KINDS[b]])
    assert f"is of kind {b}," in str(e.value)
    encoder, _ = fit([KINDS[a]])
    with pytest.raises(ValueError, match=r"X is of kind .*; expected kind .* was fitted") as e:
        encoder.transform([KINDS[b]])
    assert f"expected kind {a}," in str(e.value)


def test_pair_of_dense_arrays():
    with pytest.raises(
        ValueError, match=r"sequence 0 is a tuple whose first part is of kind dense"
    ):
        fit([(DENSE, DENSE)])


def test_parts_of_different_length():
    for first in ([["a"], ["b"]], sp.eye_array(2)):
        with pytest.raises(
            ValueError, match=r"sequence 1 has 2 tokens in its first part and 3 rows"
        ):
            fit([(first, np.ones((2, 1))), (first, np.ones((3, 1)))])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_different_number_of_columns(make):
    X = [make(np.ones((2, 3))), make(np.ones((2, 4)))]
    with pytest.raises(ValueError, match=r"sequence 1 has 4 columns in its .*; expected 3"):
        fit(X)
    encoder, _ = fit(X[:1])
    with pytest.raises(ValueError, match=r"sequence 0 has 4 columns in its .*; expected 3"):
        encoder.transform(X[1:])
    with pytest.raises(
        ValueError, match=r"sequence 0 has 0 columns in its .*; expected at least one"
    ):
        fit([make(np.ones((2, 0)))])


@pytest.mark.parametrize(
    "bad",
    [
        np.ones((1, 2), complex),
        np.zeros((1, 2), "M8[s]"),
        np.ma.masked_array(np.ones((1, 2)), mask=[[True, False]]),
        sp.csr_array(np.ones((1, 2), complex)),
    ],
    ids=["complex", "dates", "masked", "sparse"],
)
def test_numbers_that_are_not_real(bad):
    with pytest.raises(TypeError, match=r"sequence 0 is a .*; expected real numbers"):
        fit([bad])


@pytest.mark.parametrize(
    "token",
    [
        ["\ud800"],
        {"\ud800"},
        {"\ud800": 1},
        {"k": "\ud800"},
        {"k": ["\ud800"]},
        {"k": {"\ud800": 1}},
    ],
)
@pytest.mark.parametrize("grow", [True, False])
def test_lone_surrogates(token, grow):
    with pytest.raises(
        ValueError, match=r"sequence 0, token 1: the string '\\ud800' holds a lone s"
    ):
        encode_tokens([[["a"], token]], Vocabulary(), grow)


@pytest.mark.parametrize("token", [[b"\xff"], {b"\xff": 1}, {"k": b"\xff"}])
def test_bytes_that_are_not_utf8(token):
    with pytest.raises(ValueError, match=r"sequence 0, token 0: b'\\xff' is not UTF-8"):
        fit([[token]])


def test_nesting_without_end():
    endless: dict = {}
    endless["a"] = endless
    with pytest.raises(
        ValueError, match=r"sequence 0, token 0: dicts are nested more than 64 deep"
    ):
        fit([[endless]])


def test_failed_fit_leaves_the_encoder_as_it_was():
    encoder, _ = fit([[["a"]]])
    with pytest.raises(TypeError):
        encoder.fit_transform([[["b"], [None]]])
    assert encoder.feature_names() == ["a"]
    with pytest.raises(ValueError):
        encoder.fit_transform([np.full((1, 1), np.nan)])
    assert encoder.kind == "strings"


def test_not_fitted():
    with pytest.raises(NotFittedError, match=r"not fitted"):
        FeatureEncoder().transform([[["a"]]])
    assert FeatureEncoder().feature_names() == []


def test_full_vocabulary():
    with pytest.raises(ValueError, match=r"at most 2 strings"):
        encode_tokens([[["a", "b", "c"]]], Vocabulary(max_size=2), True)
    assert encode_tokens([[["a", "b", "c"]]], Vocabulary(), False)[2].tolist() == []


# --- objects that misbehave -------------------------------------------------------------------


class Raises:
    def __init__(self, error, n=0):
        self.error, self.n = error, n

    def __len__(self):
        return 1

    def __iter__(self):
        yield from ["a"] * self.n
        raise self.error


@pytest.mark.parametrize("n", [0, 3])
def test_iteration_that_raises(n):
    for X in ([Raises(BoomError(), n)], [[["a"], Raises(BoomError(), n)]], Raises(BoomError(), n)):
        with pytest.raises(BoomError):
            fit(X)
        with pytest.raises(BoomError):
            encode_tokens(X, Vocabulary(), True)


class IterRaises:
    def __iter__(self):
        raise TypeError("mine")


class LenRaises:
    def __len__(self):
        raise BoomError

    def __iter__(self):
        return iter("ab")


class NoFloat:
    def __float__(self):
        raise BoomError


def test_other_methods_that_raise():
    with pytest.raises(TypeError, match=r"sequence 0, token 0 is an IterRaises") as e:
        fit([[IterRaises()]])
    assert str(e.value.__cause__) == "mine"
    with pytest.raises(BoomError):
        encode_tokens([LenRaises()], Vocabulary(), True)
    with pytest.raises(TypeError, match=r"X is None; expected a list of sequences"):
        encode_tokens(None, Vocabulary(), True)
    with pytest.raises(BoomError):
        fit([[{"a": NoFloat()}]])
    with pytest.raises(TypeError, match=r"key 'a': found a NoRepr, <NoRepr>"):
        fit([[{"a": NoRepr(BoomError())}]])
    with pytest.raises(KeyboardInterrupt):
        fit([[{"a": NoRepr(KeyboardInterrupt())}]])


class Mutates:
    """A number that does something to a container when it is read."""

    def __init__(self, action):
        self.action = action

    def __float__(self):
        self.action()
        return 2.0


def test_containers_that_change_while_they_are_read():
    token: dict = {}
    token.update({"a": 1, "b": Mutates(token.clear), "c": 1})
    with pytest.raises(ValueError, match=r"sequence 0, token 0: the dict changed"):
        fit([[token]])

    token = {"b": Mutates(lambda: token.update({str(i): 1 for i in range(1000)}))}
    with pytest.raises(ValueError, match=r"the dict changed"):
        fit([[token]])

    sequence: list = []
    sequence += [{"a": Mutates(sequence.clear)}, ["b"]]
    _, batch = fit([sequence])
    assert batch.n_tokens == 1

    X: list = []
    X += [[{"a": Mutates(X.clear)}], [["b"]]]
    _, batch = fit(X)
    assert batch.n_sequences == 1

    vocabulary = Vocabulary()
    add_many = Mutates(lambda: [vocabulary.add(f"n{i}") for i in range(1000)])
    _, _, indices, values = encode_tokens([[{"a": 1, "b": add_many, "c": 3}]], vocabulary, True)
    assert [vocabulary.name(int(i)) for i in indices] == ["a", "b", "c"]
    assert values.tolist() == [1, 2, 3]


def test_token_that_drops_itself():
    class Drops:
        def __init__(self, where):
            self.where = where

        def __iter__(self):
            self.where[0] = None
            yield "a" * 50
            yield "b" * 50

    sequence: list = [None]
    sequence[0] = Drops(sequence)
    assert fit([sequence])[1].n_sparse == 2


def encode_with_alarm(X):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    encode_tokens(X, Vocabulary(), True)


def encode_with_another_thread(X):
    threading.Timer(0.01, _thread.interrupt_main).start()
    encode_tokens(X, Vocabulary(), True)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize(
    "X",
    [
        [[itertools.repeat("a")]],
        [[["a"]] * 1000] * 1_000_000,
        [[{"a": "b"}] * 1000] * 1_000_000,
    ],
    ids=["endless token", "lists", "dicts"],
)
def test_ctrl_c(X):
    # The alarm goes the way of Ctrl-C: a flag that is looked at now and then.
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            encode_with_alarm(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_can_run():
    # Iterating over this is not Python code: unless the GIL is let go, the thread never runs.
    with pytest.raises(KeyboardInterrupt):
        encode_with_another_thread([[itertools.repeat("a")]])


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.text(max_size=2), inner, max_size=3),
            st.tuples(inner, st.just(np.ones((1, 1)))),
        ),
        max_leaves=12,
    )
)
def test_anything_is_encoded_or_refused(X):
    for call in (fit, encode_labels, sequence_lengths):
        with contextlib.suppress(ValueError, TypeError):
            call(X)


# --- labels -----------------------------------------------------------------------------------


def test_labels_are_sorted():
    codes, classes = encode_labels([["b", "a"], ["c", "a"]])
    assert classes == ["a", "b", "c"]
    assert codes.tolist() == [1, 0, 2, 0]
    assert codes.dtype == np.int32


def test_labels_that_cannot_be_sorted_keep_their_order():
    codes, classes = encode_labels([["b", 1], [None, "b"]])
    assert classes == ["b", 1, None]
    assert codes.tolist() == [0, 1, 2, 0]


@given(
    st.one_of(
        st.lists(st.lists(st.text(max_size=2), min_size=1), min_size=1),
        st.lists(st.lists(st.integers(), min_size=1), min_size=1),
        st.lists(st.lists(st.booleans(), min_size=1), min_size=1),
        st.lists(st.lists(st.tuples(st.integers(0, 3)), min_size=1), min_size=1),
    )
)
def test_labels_round_trip(y):
    codes, classes = encode_labels(y)
    flat = [label for sequence in y for label in sequence]
    assert classes == sorted(set(flat))
    assert [classes[c] for c in codes] == flat
    again, same = encode_labels(y, {label: i for i, label in enumerate(classes)})
    assert same == classes
    np.testing.assert_array_equal(again, codes)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, "U2", object])
def test_labels_as_arrays(dtype):
    y = [[1, 0, 1], [0, 0]]
    expected = np.array([1, 0], dtype=dtype).tolist()
    codes, classes = encode_labels([np.array(s, dtype=dtype) for s in y])
    assert codes.tolist() == [1, 0, 1, 0, 0]
    assert sorted(classes) == sorted(expected)
    assert all(type(c) is type(e) for c, e in zip(classes, expected, strict=True))
    codes, _ = encode_labels(np.array([[1, 0], [0, 0]], dtype=dtype))
    assert codes.tolist() == [1, 0, 0, 0]


def test_labels_as_numpy_scalars():
    codes, classes = encode_labels([[np.int64(3), 1], (np.str_("3"),)][:1])
    assert classes == [1, 3]
    assert all(type(c) is int for c in classes)
    assert codes.tolist() == [1, 0]
    codes, classes = encode_labels([[np.str_("x"), "x"]])
    assert classes == ["x"]
    assert codes.tolist() == [0, 0]


def test_given_labels():
    codes, classes = encode_labels([["b", "a"]], {"b": 0, "a": 1, "z": 2})
    assert codes.tolist() == [0, 1]
    assert classes == ["b", "a", "z"]


def test_unknown_label():
    with pytest.raises(
        ValueError, match=r"y: sequence 1, token 1: unknown label 'x'.*\('a', 'b'\)"
    ):
        encode_labels([["a"], ["b", "x"]], {"a": 0, "b": 1})
    many = {f"l{i}": i for i in range(30)}
    with pytest.raises(ValueError, match=r"one of the 30 known labels \('l0', .*'l9', \.\.\.\)"):
        encode_labels([["x"]], many)


@pytest.mark.parametrize("bad", [-1, 2**31, 2**100, -(2**100), "1", None, 0.5])
def test_bad_codes(bad):
    with pytest.raises(ValueError, match=r"the code of label 'a' is"):
        encode_labels([["a"]], {"a": bad})


@pytest.mark.parametrize("bad", [None, 3, "ab", {"a": 1}, ["ab", "c"], [1, 2], [None], [{"a"}]])
def test_labels_that_are_no_sequences(bad):
    with pytest.raises(TypeError, match=r"y.* is .*; expected a list of sequences"):
        encode_labels(bad)


def test_more_bad_labels():
    with pytest.raises(ValueError, match=r"y is empty"):
        encode_labels([])
    with pytest.raises(ValueError, match=r"y: sequence 1 is empty"):
        encode_labels([["a"], []])
    with pytest.raises(ValueError, match=r"y is a 1-d array"):
        encode_labels(np.zeros(3))
    with pytest.raises(TypeError, match=r"y: sequence 0, token 1: a label is a list, .*hashable"):
        encode_labels([["a", ["b"]]])
    for nan in (math.nan, np.float32("nan"), np.float64("nan")):
        with pytest.raises(
            ValueError, match=r"y: sequence 0, token 0: the label .* not equal to its"
        ):
            encode_labels([[nan]])


class BadHash:
    def __hash__(self):
        raise BoomError


class BadEq:
    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise BoomError


def test_labels_that_misbehave():
    with pytest.raises(BoomError):
        encode_labels([[BadHash()]])
    with pytest.raises(BoomError):
        encode_labels([["a", BadEq()]])
    with pytest.raises(BoomError):
        encode_labels([Raises(BoomError())])

    class Clears:
        def __hash__(self):
            sequence.clear()
            return 1

    sequence: list = [Clears(), "b"]
    codes, _ = encode_labels([sequence])
    assert codes.tolist() == [0]


def test_labels_made_on_the_fly():
    # New objects at old addresses must not be taken for old labels.
    class Fresh:
        def __init__(self, i):
            self.i = i

        def __len__(self):
            return 50

        def __iter__(self):
            return (f"label {self.i + k}" for k in range(50))

    codes, classes = encode_labels([Fresh(i) for i in range(20)])
    flat = [f"label {i + k}" for i in range(20) for k in range(50)]
    assert [classes[c] for c in codes] == flat


# --- lengths ----------------------------------------------------------------------------------


def test_check_lengths():
    X = [[["a"], ["b"]], [["c"]]]
    check_lengths(X, [["x", "y"], ["z"]])
    check_lengths(X, [np.array([1, 2]), (3,)])
    _, batch = fit(X)
    check_lengths(batch, [["x", "y"], ["z"]])
    for first in (X, batch):
        with pytest.raises(ValueError, match=r"X has 2 sequences and y has 1"):
            check_lengths(first, [["x", "y"]])
        with pytest.raises(ValueError, match=r"sequence 1 has 1 tokens in X and 2 labels in y"):
            check_lengths(first, [["x", "y"], ["z", "z"]])
        with pytest.raises(TypeError, match=r"y: sequence 1 is a str"):
            check_lengths(first, [["x", "y"], "z"])
        with pytest.raises(TypeError, match=r"y: sequence 1 is None"):
            check_lengths(first, [["x", "y"], None])
        with pytest.raises(TypeError, match=r"y is None"):
            check_lengths(first, None)


# --- the batch itself -------------------------------------------------------------------------


def good_batch():
    return {
        "offsets": np.array([0, 1, 3]),
        "n_sparse": 4,
        "indptr": np.array([0, 1, 1, 2]),
        "indices": np.array([3, 0], np.uint32),
        "values": np.array([0.5, 2], np.float32),
        "dense": np.ones((3, 2)),
    }


def test_batch_properties():
    batch = EncodedBatch(**good_batch())
    assert (batch.n_sequences, batch.n_tokens, batch.n_dense) == (2, 3, 2)
    assert batch.lengths.tolist() == [1, 2]
    assert batch.nbytes == 24 + 32 + 8 + 8 + 48
    with pytest.raises(AttributeError):
        batch.n_sparse = 3
    assert_same(batch, pickle.loads(pickle.dumps(batch)))


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.array([0])},
        {"offsets": np.array([1, 3])},
        {"offsets": np.array([0, 1, 1, 3])},
        {"offsets": np.array([0, 3], np.int32)},
        {"offsets": np.array([0.0, 3])},
        {"n_sparse": -1},
        {"n_sparse": 2**32},
        {"indptr": None},
        {"indices": None},
        {"indptr": None, "indices": None},
        {"indptr": None, "indices": None, "values": None, "dense": None},
        {"indptr": np.array([0, 2])},
        {"indptr": np.array([0, 2, 1, 2])},
        {"indptr": np.array([0, 0, 0, 1])},
        {"indptr": np.array([1, 1, 1, 2])},
        {"indices": np.array([3, 0])},
        {"values": np.ones(3, np.float32)},
        {"values": np.ones(2, np.float16)},
        {"values": np.ones(4, np.float32)[::2]},
        {"dense": np.ones((2, 2))},
        {"dense": np.ones((2, 3)).T},
        {"dense": np.ones(3)},
        {"dense": np.ones((3, 2), int)},
    ],
)
def test_bad_batches(change):
    with pytest.raises(ValueError):
        EncodedBatch(**{**good_batch(), **change})


def test_batch_of_lists():
    with pytest.raises(TypeError, match=r"offsets is a list; expected a numpy array"):
        EncodedBatch(**{**good_batch(), "offsets": [0, 3]})


# --- fewer features ---------------------------------------------------------------------------


@given(CORPUS, st.integers(2, 4))
def test_min_count_against_reference(X, least):
    rows, names = reference(X)
    counts = collections.Counter(name for row in rows for name in row)
    kept = [name for name in names if counts[name] >= least]
    encoder = FeatureEncoder(min_count=least)
    if not kept:
        with pytest.raises(ValueError, match=rf"^no feature occurs {least} times; lower the min"):
            encoder.fit_transform(X)
        assert encoder.kind is None
        return
    batch = encoder.fit_transform(X)
    assert encoder.feature_names() == kept
    assert batch.n_sparse == encoder.n_sparse == len(kept)
    known = set(kept)
    assert decode(batch, kept) == [{k: v for k, v in row.items() if k in known} for row in rows]
    again = encoder.transform(X)
    assert decode(again, kept) == decode(batch, kept)
    assert pickle.loads(pickle.dumps(encoder)).feature_names() == kept


def test_a_feature_counts_once_a_token():
    encoder = FeatureEncoder(min_count=2)
    encoder.fit_transform([[["a", "a", "b"]], [["b"]]])
    assert encoder.feature_names() == ["b"]


def test_drop_rare():
    vocabulary = Vocabulary()
    parts = encode_tokens([[["a", "b"], ["c", "b"]], [["a"]]], vocabulary, True)
    batch = EncodedBatch(parts[0], 3, *parts[1:])
    left, names = drop_rare(batch, vocabulary, 2)
    assert names.names() == ["a", "b"]
    assert decode(left, names.names()) == [{"a": 1, "b": 1}, {"b": 1}, {"a": 1}]
    assert vocabulary.names() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"no feature occurs 3 times"):
        drop_rare(batch, vocabulary, 3)


def hash_of(name, bits):
    return checksum(name.encode()) >> (64 - bits)


@given(CORPUS)
def test_hashed_against_reference(X):
    # Hashes so long that no two strings have the same.
    encoder = FeatureEncoder(hash_bits=31)
    batch = encoder.fit_transform(X)
    rows, _ = reference(X)
    expected = [{hash_of(name, 31): value for name, value in row.items()} for row in rows]
    assert decode(batch, range(2**31)) == expected
    assert batch.n_sparse == encoder.n_sparse == 2**31
    assert encoder.vocabulary is None
    assert decode(encoder.transform(X[::-1]), range(2**31)) == [
        row for sequence in reversed(split(expected, X)) for row in sequence
    ]


def split(rows, X):
    rows = iter(rows)
    return [[next(rows) for _ in sequence] for sequence in X]


@given(
    st.lists(
        st.lists(st.lists(TEXT, max_size=5, unique=True), min_size=1, max_size=3),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 6),
)
def test_strings_with_the_same_hash(X, bits):
    batch = FeatureEncoder(hash_bits=bits).fit_transform(X)
    rows = [{hash_of(s, bits) for s in token} for sequence in X for token in sequence]
    assert [set(row) for row in decode(batch, range(2**bits))] == rows
    together = FeatureEncoder(hash_bits=bits).fit_transform([[["z", ""]], *X])
    assert_same(together.take(np.arange(1, len(X) + 1)), batch)


def test_hashing_in_pieces():
    X = [[[f"w{i % 7}", f"v{i}"]] for i in range(2500)]
    X[2100] = [[], {"x": 2.5}]  # values in the last piece only
    batch = FeatureEncoder(hash_bits=30).fit_transform(X)
    rows, _ = reference(X)
    expected = [{hash_of(s, 30): v for s, v in row.items()} for row in rows]
    assert decode(batch, range(2**30)) == expected
    assert batch.lengths[2100] == 2


def test_hashed_names_and_numbers():
    encoder = FeatureEncoder(hash_bits=2)
    encoder.fit_transform([[["a"]]])
    assert encoder.feature_names() == ["hash:0", "hash:1", "hash:2", "hash:3"]
    vocabulary = Vocabulary.from_names(["a", "", "日本"])
    numbers = hashed_numbers(vocabulary, 9)
    assert numbers.dtype == np.uint32
    assert numbers.tolist() == [hash_of(s, 9) for s in vocabulary.names()]


def test_hashed_beside_dense():
    encoder = FeatureEncoder(hash_bits=3)
    batch = encoder.fit_transform([([["a"], ["b"]], np.ones((2, 2)))])
    assert (batch.n_sparse, batch.n_dense) == (8, 2)
    assert encoder.feature_names()[-2:] == ["dense:0", "dense:1"]
    assert batch.indices.tolist() == [hash_of("a", 3), hash_of("b", 3)]
    counted = FeatureEncoder(min_count=2)
    X = [([["a"], ["b", "a"]], np.arange(4.0).reshape(2, 2))]
    batch = counted.fit_transform(X)
    assert counted.feature_names() == ["a", "dense:0", "dense:1"]
    assert_same(batch, counted.transform(X))


def test_hashed_features_do_not_depend_on_the_company():
    encoder = FeatureEncoder(hash_bits=1)
    X = [[["a", "b", "c"]]]  # two of them are the same
    encoder.fit_transform(X)
    alone = decode(encoder.transform(X), range(2))
    assert decode(encoder.transform([*X, [{"a": 2.0}]]), range(2))[:1] == alone


def test_hashed_values_stay_finite():
    # of two features that become one, the value farther from zero stands for both
    batch = FeatureEncoder(hash_bits=1).fit_transform([[{"a": 9e11, "b": 9e11, "c": 9e11}]])
    assert (batch.values == np.float32(9e11)).all()
    batch = FeatureEncoder(hash_bits=1).fit_transform([[{"a": -2.0, "b": -2.0, "c": 1.0}]])
    assert -2.0 in batch.values
    assert set(batch.values.tolist()) <= {-2.0, 1.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count is 0; expected at least 1"),
        ({"min_count": -3}, "min_count is -3; expected at least 1"),
        ({"hash_bits": 0}, "hash_bits is 0; expected 1 to 31"),
        ({"hash_bits": 32}, "hash_bits is 32; expected 1 to 31"),
        ({"min_count": 2, "hash_bits": 3}, "min_count needs a list of the features"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        FeatureEncoder(**options)


@pytest.mark.parametrize("options", [{"min_count": 2}, {"hash_bits": 4}])
def test_counting_is_for_strings(options):
    encoder = FeatureEncoder(**options)
    for X, kind in (([np.ones((1, 2))], "dense"), ([sp.csr_array(np.ones((1, 2)))], "sparse")):
        with pytest.raises(ValueError, match=rf"are for strings, but X is of kind {kind}"):
            encoder.fit_transform(X)
    assert encoder.kind is None
    fresh = encoder.fresh()
    assert (fresh.min_count, fresh.hash_bits) == (encoder.min_count, encoder.hash_bits)


# --- items of a file --------------------------------------------------------------------------

ITEMS = b"A\tx\ty:0.5\nB\tx\tz\n\nA\ty:2\tx\n"
SAME = [[{"x": 1, "y": 0.5}, {"x": 1, "z": 1}], [{"y": 2, "x": 1}]]
OTHER = b"B\tq\tz:3\nB\tx\n"


def items_of(data, vocabulary=None):
    return read_crfsuite(io.BytesIO(data), vocabulary)


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"hash_bits": 20}])
def test_items_are_strings(options):
    items = items_of(ITEMS)
    encoder, twin = FeatureEncoder(**options), FeatureEncoder(**options)
    batch = encoder.fit_transform(items)
    assert_same(batch, twin.fit_transform(SAME))
    assert encoder.kind == "strings"
    assert encoder.n_sparse == twin.n_sparse
    assert encoder.n_dense == 0
    if "hash_bits" not in options:
        assert encoder.feature_names() == twin.feature_names()
    assert items.vocabulary.names() == ["x", "y", "z"]
    assert_same(encoder.transform(items), batch)
    # Known by another vocabulary, or by the encoder's own.
    other = [[{"q": 1, "z": 3}, {"x": 1}]]
    expected = twin.transform(other)
    found = [encoder.transform(items_of(OTHER)), encoder.transform(other)]
    if encoder.vocabulary is not None:
        found.append(encoder.transform(items_of(OTHER, encoder.vocabulary)))
    for batch in found:
        assert batch.n_sparse == encoder.n_sparse
        assert decode(batch, range(batch.n_sparse)) == decode(expected, range(batch.n_sparse))


def test_items_of_another_kind():
    dense = FeatureEncoder()
    dense.fit_transform([np.ones((1, 2))])
    with pytest.raises(ValueError, match=r"X is of kind strings; expected kind dense"):
        dense.transform(items_of(ITEMS))
    with pytest.raises(NotFittedError):
        FeatureEncoder().transform(items_of(ITEMS))
    encoder, _ = fit([[["a"]]])
    with pytest.raises(ValueError, match=r"no feature occurs"):
        FeatureEncoder(min_count=9).fit_transform(items_of(ITEMS))
    assert encoder.transform(items_of(ITEMS)).indices.tolist() == []


def test_labels_of_items():
    items = items_of(ITEMS)
    assert sequence_lengths(items).tolist() == [2, 1]
    assert items.labels() == items.label_codes.sequences() == [["A", "B"], ["A"]]
    check_lengths(items, items.label_codes)
    check_lengths(items, [["x", "y"], ["z"]])
    with pytest.raises(ValueError, match=r"sequence 1 has 1 tokens in X and 2 labels in y"):
        check_lengths(items, [["x", "y"], ["z", "z"]])
    assert items.features(0) == [[("x", 1.0), ("y", 0.5)], [("x", 1.0), ("z", 1.0)]]
    assert items.features(-1) == [[("x", 1.0), ("y", 2.0)]]
    for i in (2, -3):
        with pytest.raises(IndexError, match=rf"sequence {i} of 2"):
            items.features(i)


def test_a_chain_of_items():
    items = items_of(ITEMS)
    chain, twin = Chain(), Chain()
    batch, codes = chain.learn(items, items.label_codes)
    same, same_codes = twin.learn(SAME, items.labels())
    assert_same(batch, same)
    np.testing.assert_array_equal(codes, same_codes)
    assert chain.labels_ == twin.labels_ == ["A", "B"]
    w = np.random.default_rng(0).normal(size=chain.n_features)
    weights = chain.pad(w)
    assert chain.predict(items, weights) == twin.predict(SAME, weights)
    problem = chain.make_problem(items, items.label_codes)
    assert problem.hinge(weights) == twin.make_problem(SAME, items.labels()).hinge(weights)
    scores = chain.score_labellings(items, items.label_codes, weights)
    np.testing.assert_array_equal(scores, twin.score_labellings(SAME, items.labels(), weights))


def test_a_string_that_drops_itself_while_it_is_shown():
    program = r"""
        from maxmargin._native import Vocabulary, encode_tokens

        class Evil(str):
            def __repr__(self):
                token.clear()
                raise RuntimeError

        token = ["a"]
        token.append(Evil("\ud800"))
        try:
            encode_tokens([[token]], Vocabulary(), True)
        except ValueError as error:
            assert "sequence 0, token 0" in str(error)
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONMALLOC": "debug"},  # freed memory is written over
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
