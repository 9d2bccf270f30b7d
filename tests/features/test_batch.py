"""Encoded batches: some of their sequences; renumbered features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin.features import EncodedBatch
from maxmargin.features.batch import ragged_ranges

DROP = 2**32 - 1


@st.composite
def batches(draw):
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    n = sum(lengths)
    n_sparse = draw(st.integers(1, 6))
    rows = draw(
        st.lists(st.sets(st.integers(0, n_sparse - 1)).map(sorted), min_size=n, max_size=n)
    )
    entries = sum(map(len, rows))
    kind = draw(st.sampled_from(["plain", "values", "dense", "both"]))
    sparse = {}
    if kind != "dense":
        sparse = {
            "indptr": np.cumsum([0, *map(len, rows)], dtype=np.int64),
            "indices": np.array([j for row in rows for j in row], np.uint32),
        }
    if kind in ("values", "both"):
        sparse["values"] = np.arange(entries, dtype=np.float32) / 2 - 1
    if kind in ("dense", "both"):
        dtype = draw(st.sampled_from([np.float32, np.float64]))
        sparse["dense"] = np.arange(2 * n, dtype=dtype).reshape(n, 2)
    return EncodedBatch(np.cumsum([0, *lengths], dtype=np.int64), n_sparse, **sparse)


def listed(batch):
    """A batch as Python lists: sequences of tokens (ids, values, dense row)."""
    tokens = []
    for t in range(batch.n_tokens):
        ids = values = dense = None
        if batch.indptr is not None:
            a, b = batch.indptr[t], batch.indptr[t + 1]
            ids = batch.indices[a:b].tolist()
            values = None if batch.values is None else batch.values[a:b].tolist()
        if batch.dense is not None:
            dense = batch.dense[t].tolist()
        tokens.append((ids, values, dense))
    ends = batch.offsets.tolist()
    return [tokens[a:b] for a, b in itertools.pairwise(ends)]


@given(batches(), st.data())
def test_take(batch, data):
    n = batch.n_sequences
    which = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6))
    part = batch.take(np.array(which))
    every = listed(batch)
    assert listed(part) == [every[i] for i in which]
    assert part.n_sparse == batch.n_sparse
    for name in ("offsets", "indptr", "indices", "values", "dense"):
        old, new = getattr(batch, name), getattr(part, name)
        assert (old is None) == (new is None)
        assert old is None or (old.dtype == new.dtype and new.flags.c_contiguous)
    assert listed(batch.take(np.arange(n))) == every


def small():
    return EncodedBatch(
        np.array([0, 1, 2, 3]), 3, np.array([0, 1, 2, 3]), np.array([0, 1, 2], np.uint32)
    )


def test_take_of_what_is_not_there():
    with pytest.raises(IndexError):
        small().take(np.array([3]))
    with pytest.raises(ValueError, match=r"a batch has no sequences"):
        small().take(np.array([], int))


def test_take_with_negative_numbers():
    for wrong in ([-2], [0, -1], [2**40]):
        with pytest.raises(IndexError, match="sequences must be from 0 to"):
            small().take(np.array(wrong))


PAIRS = {"pair_indptr": np.array([0, 1, 1, 3]), "pair_indices": np.array([1, 0, 3], np.uint32)}


def with_pairs(**changes):
    nothing = {"indptr": np.zeros(4, np.int64), "indices": np.zeros(0, np.uint32)}
    return EncodedBatch(np.array([0, 1, 3]), 0, **{**nothing, **PAIRS, "n_pair": 4, **changes})


def test_pair_features_are_taken_along():
    batch = with_pairs()
    part = batch.take(np.array([1, 0, 1]))
    assert part.n_pair == 4
    assert part.pair_indptr.tolist() == [0, 0, 2, 3, 3, 5]
    assert part.pair_indices.tolist() == [0, 3, 1, 0, 3]
    without = with_pairs(n_pair=0, pair_indptr=None, pair_indices=None)
    assert batch.nbytes == without.nbytes + sum(a.nbytes for a in PAIRS.values())
    assert without.take(np.array([1])).pair_indptr is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pair_indptr": None}, "pair_indptr and pair_indices must be given together"),
        ({"pair_indices": None}, "pair_indptr and pair_indices must be given together"),
        ({"pair_indptr": np.array([0, 1, 3])}, "pair_indptr has 3 entries; expected 4"),
        ({"pair_indptr": np.array([0, 1, 1, 2])}, "pair_indptr must begin with 0 and end with"),
        ({"pair_indptr": np.array([0, 2, 1, 3])}, "pair_indptr must not descend"),
        ({"pair_indices": np.array([1, 0, 3])}, "pair_indices is 1-d int64"),
        ({"n_pair": -1}, "n_pair is -1; expected 0 to"),
        ({"n_pair": 2**32}, "n_pair is 4294967296; expected 0 to"),
    ],
)
def test_wrong_pair_features(changes, message):
    with pytest.raises(ValueError, match=message):
        with_pairs(**changes)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_ragged_ranges(lengths, data):
    ends = np.cumsum([0, *lengths], dtype=np.int64)
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6))
    expected = [k for r in rows for k in range(ends[r], ends[r + 1])]
    found = ragged_ranges(ends, np.array(rows, np.int64))
    assert found.tolist() == expected
    assert found.dtype == np.int64


# --- other numbers for features -------------------------------------------------------------------


def renumbered(indptr, indices, values, number):
    """What renumber should give, row by row."""
    rows = []
    for a, b in itertools.pairwise(indptr.tolist()):
        row = {}
        for e in range(a, b):
            new = int(number[indices[e]])
            if new != DROP:
                value = 1.0 if values is None else float(values[e])
                row[new] = max(row.get(new, value), value, key=abs)
        rows.append({j: row[j] for j in sorted(row)})
    return rows


@given(batches(), st.data())
def test_renumber(batch, data):
    if batch.indptr is None:
        return
    new = st.integers(0, 3) | st.just(DROP) | st.just(DROP - 1)
    n = batch.n_sparse
    number = np.array(data.draw(st.lists(new, min_size=n, max_size=n)), np.uint32)
    indptr, indices, values = _native.renumber(batch.indptr, batch.indices, batch.values, number)
    assert (indptr.dtype, indices.dtype) == (np.int64, np.uint32)
    assert (values is None) == (batch.values is None)
    assert values is None or values.dtype == np.float32
    expected = renumbered(batch.indptr, batch.indices, batch.values, number)
    assert indptr.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert indices.tolist() == [j for row in expected for j in row]
    if values is not None:
        np.testing.assert_allclose(values, [v for row in expected for v in row.values()])


def test_renumber_nothing():
    nothing = np.zeros(0, np.uint32)
    indptr, indices, values = _native.renumber(np.array([0]), nothing, None, nothing)
    assert (indptr.tolist(), indices.tolist(), values) == ([0], [], None)
    indptr, indices, values = _native.renumber(
        np.array([0, 0]), nothing, np.zeros(0, np.float32), nothing
    )
    assert (indptr.tolist(), indices.tolist(), values.tolist()) == ([0, 0], [], [])


@pytest.mark.parametrize(
    ("indptr", "indices", "values", "number"),
    [
        ([], [], None, []),
        ([1, 1], [0], None, [0]),
        ([0, 2], [0], None, [0]),
        ([0, 0], [0], None, [0]),
        ([0, 2, 1], [0], None, [0]),
        ([0, 5, 1], [0], None, [0]),
        ([0, -1, 1], [0], None, [0]),
        ([0, 1], [0], [], [0]),
        ([0, 1], [0], [1, 2], [0]),
        ([0, 1], [1], None, [0]),
        ([0, 1], [DROP], None, [0]),
        ([0, 1], [0], None, []),
    ],
)
def test_rows_that_do_not_fit(indptr, indices, values, number):
    with pytest.raises(ValueError, match=r"the rows do not fit their|a feature has no number"):
        _native.renumber(
            np.array(indptr, np.int64),
            np.array(indices, np.uint32),
            None if values is None else np.array(values, np.float32),
            np.array(number, np.uint32),
        )
