"""FunctionEncoder: features by a Python function, of tables and of anything else."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin.features import ColumnTable, FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.io.columns import parse_columns

ROWS = [[["the", "O", "DT"], ["dog", "B", "NN"]], [["dog", "O", "NN"]]]


def words(sequence):
    """The columns of each token, and whether it is the last."""
    last = len(sequence) - 1
    return [
        {"c": list(row), "last": True} if t == last else {"c": list(row)}
        for t, row in enumerate(sequence)
    ]


def assert_same(a, b):
    assert a.n_sparse == b.n_sparse
    for name in ("offsets", "indptr", "indices", "values"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def without(column):
    return [[[c for k, c in enumerate(r) if k != column] for r in s] for s in ROWS]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_function_does_not_see_the_labels(label):
    seen = []

    def function(sequence):
        seen.append(sequence)
        return words(sequence)

    encoder = FunctionEncoder(function, label_column=label)
    batch = encoder.fit_transform(ColumnTable.from_rows(ROWS))
    assert seen == without(label)
    assert encoder.n_columns == 3
    reference = FeatureEncoder()
    assert_same(batch, reference.fit_transform([words(s) for s in without(label)]))
    assert encoder.feature_names() == reference.feature_names()
    seen.clear()
    assert_same(encoder.transform(ColumnTable.from_rows(ROWS)), batch)
    assert_same(encoder.transform(ColumnTable.from_rows(without(label))), batch)
    assert seen == without(label) * 2
    with pytest.raises(ValueError, match=r"^X: found 1 column; expected 3, as in training"):
        encoder.transform(ColumnTable.from_rows([["a"]]))


def test_a_table_that_knows_its_labels():
    encoder = FunctionEncoder(words)
    table, _ = ColumnTable.from_rows(ROWS).labelled(1)
    batch = encoder.fit_transform(table)
    assert encoder.label_column == 1
    assert_same(encoder.transform(ColumnTable.from_rows(without(1))), batch)
    assert not {"c:O", "c:B"} & set(encoder.feature_names())


def test_without_a_label_column():
    encoder = FunctionEncoder(words)
    batch = encoder.fit_transform(ColumnTable.from_rows(ROWS))
    assert "c:O" in encoder.feature_names()
    assert_same(encoder.transform(ColumnTable.from_rows(ROWS)), batch)


def test_other_kinds_of_x_are_passed_on():
    encoder = FunctionEncoder(lambda s: [[c, c.upper()] for c in s], label_column=7)
    batch = encoder.fit_transform(["ab", "a"])
    assert encoder.feature_names() == ["a", "A", "b", "B"]
    assert batch.lengths.tolist() == [2, 1]
    assert encoder.n_columns == 0
    assert encoder.transform(["bz"]).indices.tolist() == [2, 3]


def test_generators_will_do():
    encoder = FunctionEncoder(lambda s: ([c] for c in s))
    assert encoder.fit_transform(["aba"]).indices.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("n", "found"), [(1, 1), (3, 3), (0, 0)])
def test_one_token_each(n, found):
    encoder = FunctionEncoder(lambda s: [["a"]] * (len(s) if len(s) == 1 else n))
    message = (
        rf"^the feature function returned features of {found} tokens for sequence 1; "
        "expected 2, one for each token$"
    )
    with pytest.raises(ValueError, match=message):
        encoder.fit_transform(["x", "xy"])


def test_what_the_function_raises_is_passed_on():
    class BoomError(Exception):
        pass

    def boom(sequence):
        raise BoomError

    with pytest.raises(BoomError):
        FunctionEncoder(boom).fit_transform(["a"])


def test_what_the_function_must_not_return():
    with pytest.raises(TypeError, match=r"sequence 0, token 0"):
        FunctionEncoder(lambda s: [3]).fit_transform(["a"])
    with pytest.raises(ValueError, match=r"X is empty"):
        FunctionEncoder(words).fit_transform([])
    with pytest.raises(NotFittedError):
        FunctionEncoder(words).transform(["a"])


def test_min_count_and_hashing():
    def letters(sequence):
        return [[c] for c in sequence]

    encoder = FunctionEncoder(letters, min_count=2)
    assert encoder.fit_transform(["abca"]).indices.tolist() == [0, 0]
    assert encoder.feature_names() == ["a"]
    hashed = FunctionEncoder(letters, hash_bits=4)
    batch = hashed.fit_transform(["abca"])
    assert_same(batch, FeatureEncoder(hash_bits=4).fit_transform([[[c] for c in "abca"]]))
    assert hashed.n_sparse == 16
    with pytest.raises(ValueError, match=r"min_count is 0"):
        FunctionEncoder(letters, min_count=0)


def test_fresh_and_copies():
    encoder = FunctionEncoder(words, label_column=1, min_count=2)
    batch = encoder.fit_transform(ColumnTable.from_rows(ROWS))
    fresh = encoder.fresh()
    assert type(fresh) is FunctionEncoder
    assert (fresh.function, fresh.label_column, fresh.min_count) == (words, 1, 2)
    assert (fresh.kind, fresh.n_columns) == (None, 0)
    for twin in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        assert_same(twin.transform(ColumnTable.from_rows(without(1))), batch)
        assert twin.feature_names() == encoder.feature_names()


def test_failed_fit_leaves_the_encoder_as_it_was():
    encoder = FunctionEncoder(lambda s: [] if s[0][0] == "bad" else words(s), label_column=1)
    batch = encoder.fit_transform(ColumnTable.from_rows(ROWS))
    with pytest.raises(ValueError, match=r"the feature function returned"):
        encoder.fit_transform(ColumnTable.from_rows([[["bad", "O"]]]))
    assert encoder.n_columns == 3
    assert_same(encoder.transform(ColumnTable.from_rows(without(1))), batch)


def fails_at_a_token(sequence):
    """Fail at the word "bad"; as a function, and as a generator."""
    return [word_of(row) for row in sequence]


def generates(sequence):
    for row in sequence:
        yield word_of(row)


def word_of(row):
    if row[0] == "bad":
        raise KeyError(row[0])  # THE LINE
    return [row[0]]


THE_LINE = next(
    number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if line.endswith("# THE LINE")
)


@pytest.mark.parametrize(("function", "token"), [(fails_at_a_token, ""), (generates, ", token 2")])
def test_errors_tell_where(function, token):
    rows = [[["a"]], [["b"], ["c"], ["bad"]]]
    with pytest.raises(KeyError) as caught:
        FunctionEncoder(function).fit_transform(rows)
    assert caught.value.__notes__ == [
        f"{__file__}, line {THE_LINE}, in the feature function at sequence 1{token}"
    ]
    assert caught.traceback[-1].name == "word_of"  # the user's frames are there
    table = parse_columns(b"a\n\nb\nc\nbad\n", "file.tsv")
    with pytest.raises(KeyError) as caught:
        FunctionEncoder(function).fit_transform(table)
    assert caught.value.__notes__[0].endswith(
        f" at sequence 1{token} (the sequence begins at file.tsv, line 3)"
    )


def test_the_function_must_return_something_to_go_through():
    with pytest.raises(TypeError, match=r"^the feature function returned int for sequence 0; exp"):
        FunctionEncoder(lambda s: 1).fit_transform(["a"])
