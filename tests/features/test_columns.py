"""ColumnTable and LabelCodes: cells, labels, column numbers, messages."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.features import (
    ColumnTable,
    LabelCodes,
    check_lengths,
    encode_labels,
    sequence_lengths,
)
from maxmargin.io.columns import parse_columns, read_columns

TEXT = b"# one\nthe\tDT\tO\ndog\tNN\tB\n\n\n# two\nit\tPRP\tO\n"


def table():
    return parse_columns(TEXT, "dogs.txt", comment="#")


def test_sizes_and_cells():
    t = table()
    assert (t.n_tokens, t.n_sequences, t.n_columns, len(t)) == (3, 2, 3, 2)
    assert t.offsets.tolist() == [0, 2, 3]
    assert t.source == "dogs.txt"
    assert repr(t) == "<ColumnTable dogs.txt: 2 sequences, 3 tokens, 3 columns>"
    assert t.rows() == [[["the", "DT", "O"], ["dog", "NN", "B"]], [["it", "PRP", "O"]]]
    assert t.rows([2, 0]) == [[["O", "the"], ["B", "dog"]], [["O", "it"]]]
    assert t.rows([]) == [[[], []], [[]]]
    assert sequence_lengths(t).tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"there is no column 3"):
        t.rows([3])


def test_from_rows():
    rows = [[["a", "b"], ("c", "d")], [["e", "f"]]]
    t = ColumnTable.from_rows(rows, "mine")
    assert (t.n_columns, t.source) == (2, "mine")
    assert t.rows() == [[["a", "b"], ["c", "d"]], [["e", "f"]]]
    assert ColumnTable.from_rows([["a"]]).source == "X"
    with pytest.raises(ValueError, match=r"sequence 0, token 1: found 1 columns; expected 2"):
        ColumnTable.from_rows([[["a", "b"], ["c"]]])


@given(st.data())
def test_rows_round_trip(data):
    n = data.draw(st.integers(1, 3))
    cell = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
    row = st.lists(cell, min_size=n, max_size=n)
    X = data.draw(st.lists(st.lists(row, min_size=1, max_size=3), min_size=1, max_size=3))
    assert ColumnTable.from_rows(X).rows() == X


@pytest.mark.parametrize(("column", "index"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_column_index(column, index):
    assert table().column_index(column) == index


@pytest.mark.parametrize("column", [3, -4, 10**30])
def test_columns_out_of_range(column):
    for call, what in (
        (table().column_index, "column"),
        (lambda c: table().column_index(c, "word column"), "word column"),
        (table().labels, "label column"),
        (table().labelled, "label column"),
    ):
        with pytest.raises(ValueError) as caught:
            call(column)
        assert str(caught.value) == (
            f"dogs.txt: {what} {column} is out of range; expected 0 to 2 (or -1 for the last), "
            "as there are 3 columns"
        )


def test_labels():
    for column, names in ((2, ["O", "B"]), (-1, ["O", "B"]), (1, ["DT", "NN", "PRP"])):
        labels = table().labels(column)
        assert isinstance(labels, LabelCodes)
        assert labels.names == names
        assert labels.codes.dtype == np.int32
        assert labels.offsets.tolist() == [0, 2, 3]
    assert table().labels().sequences() == [["O", "B"], ["O"]]
    assert table().labels(1).sequences() == [["DT", "NN"], ["PRP"]]


def test_labelled():
    t = table()
    assert t.label_column is None
    twin, labels = t.labelled(-2)
    assert twin.label_column == 1
    assert (twin.source, twin.rows()) == (t.source, t.rows())
    assert labels.sequences() == [["DT", "NN"], ["PRP"]]
    assert t.label_column is None


@pytest.mark.parametrize(
    ("text", "column", "line"),
    [
        (b"a\tB\n\n# c\nb\t\n", -1, 4),
        (b"\n\n\tB\n", 0, 3),
        (b"\xef\xbb\xbfa\t\n", 1, 1),
        (b"a\tB\r\nb\t\r\nc\t\r\n", 1, 2),
    ],
)
def test_empty_labels(text, column, line):
    t = parse_columns(text, "x.txt", comment="#")
    with pytest.raises(ValueError) as caught:
        t.labels(column)
    number = t.column_index(column)
    message = f"x.txt: line {line}, column {number}: found nothing; expected a label"
    assert str(caught.value) == message


def test_empty_labels_in_a_part_of_a_file():
    t = parse_columns(b"a\tB\nb\t\n", "x.txt", first_line=1001)
    with pytest.raises(ValueError, match=r"^x\.txt: line 1002, column 1: found nothing"):
        t.labels()


def test_empty_labels_of_rows():
    t = ColumnTable.from_rows([[["a", "x"]], [["b", "y"], ["c", ""]]])
    with pytest.raises(ValueError, match=r"sequence 1, token 1, column 1: found nothing"):
        t.labels()


@given(st.lists(st.lists(st.sampled_from(["b", "a", "é", "c"]), min_size=1), min_size=1))
def test_label_codes_are_labels(y):
    labels = ColumnTable.from_rows(y).labels(0)
    assert labels.sequences() == y
    codes, classes = encode_labels(labels)
    same, same_classes = encode_labels(y)
    assert classes == same_classes == sorted(set().union(*y))
    np.testing.assert_array_equal(codes, same)
    assert codes.dtype == same.dtype
    known = {"c": 0, "é": 1, "a": 2, "b": 3}
    codes, classes = encode_labels(labels, known)
    same, same_classes = encode_labels(y, known)
    assert classes == same_classes == ["c", "é", "a", "b"]
    np.testing.assert_array_equal(codes, same)
    check_lengths(y, labels)
    check_lengths(labels.sequences(), y)


def test_labels_that_cannot_be_sorted():
    labels = LabelCodes(np.array([1, 0, 1], np.int32), ["b", 1], np.array([0, 3]))
    codes, classes = encode_labels(labels)
    assert classes == ["b", 1]
    assert codes.tolist() == [1, 0, 1]


def test_unknown_labels():
    labels = ColumnTable.from_rows([["a"], ["b", "x"]]).labels()
    for y in (labels, labels.sequences()):
        with pytest.raises(
            ValueError, match=r"^y: sequence 1, token 1: unknown label 'x'; .*\('a', 'b'\)"
        ):
            encode_labels(y, {"a": 0, "b": 1})
    many = {f"l{i}": i for i in range(30)}
    with pytest.raises(ValueError, match=r"one of the 30 known labels \('l0', .*'l9', \.\.\.\)"):
        encode_labels(labels, many)


def test_lengths():
    t = table()
    check_lengths(t, t.labels())
    check_lengths(t, [["x", "y"], ["z"]])
    with pytest.raises(ValueError, match=r"X has 2 sequences and y has 1; expected as many"):
        check_lengths(t, ColumnTable.from_rows([["a", "b"]]).labels())
    with pytest.raises(ValueError, match=r"sequence 0 has 2 tokens in X and 1 labels in y"):
        check_lengths(t, ColumnTable.from_rows([["a"], ["b"]]).labels())


def test_tables_are_not_pickled():
    # Encoders leave them behind; see TemplateEncoder.
    with pytest.raises(TypeError):
        pickle.dumps(table())
    labels = pickle.loads(pickle.dumps(table().labels()))
    assert labels.sequences() == [["O", "B"], ["O"]]


def test_the_file_may_go(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(TEXT)
    t = read_columns(path, comment="#")
    path.unlink()
    assert t.rows() == read_columns(io.BytesIO(TEXT), comment="#").rows()
