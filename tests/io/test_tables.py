"""Tables: dicts of columns, pandas, pyarrow, others that behave alike."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.io.tables import from_table, to_table

TABLE = {
    "doc": ["a", "a", "a", "b"],
    "sentence": [1, 1, 2, 1],
    "word": ["the", "dog", "barks", "no"],
    "length": [3, 3, 5, 2],
    "tag": ["D", "N", "V", "D"],
}
ROWS = [[("the", "3"), ("dog", "3")], [("barks", "5")], [("no", "2")]]
LABELS = [["D", "N"], ["V"], ["D"]]
NESTED = {
    "word": [["the", "dog"], ["barks"], ["no"]],
    "length": [[3, 3], [5], [2]],
    "tag": [["D", "N"], ["V"], ["D"]],
}


def as_dict(table):
    return table


def as_arrays(table):
    arrays = {}
    for name, column in table.items():
        if isinstance(column[0], list):
            arrays[name] = np.empty(len(column), object)
            arrays[name][:] = [np.array(cell) for cell in column]
        else:
            arrays[name] = np.array(column)
    return arrays


def as_pandas(table):
    return pytest.importorskip("pandas").DataFrame(table)


def as_arrow(table):
    return pytest.importorskip("pyarrow").table(table)


def as_batch(table):
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(table)


def as_polars(table):
    return pytest.importorskip("polars").DataFrame(table)


class Frame:
    """Something of which only the columns and their values are known."""

    def __init__(self, table):
        self.table = table
        self.columns = tuple(table)

    def __getitem__(self, name):
        return iter(self.table[name])


KINDS = [as_dict, as_arrays, as_pandas, as_arrow, as_batch, as_polars, Frame]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_a_token(kind):
    table = kind(TABLE)
    assert from_table(table, ["word", "length"], "tag", ["doc", "sentence"]) == (ROWS, LABELS)
    rows, labels = from_table(table, ["word"], None, "doc")
    assert rows == [[("the",), ("dog",), ("barks",)], [("no",)]]
    assert labels is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_a_sequence(kind):
    table = kind(NESTED)
    assert from_table(table, ["word", "length"], "tag") == (ROWS, LABELS)
    assert from_table(table, ["length"], None, None)[1] is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_that_comes_back(kind):
    with pytest.raises(
        ValueError, match="row 3: the sequence sentence = '1' comes back after another one"
    ):
        from_table(kind(TABLE), ["word"], "tag", "sentence")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", ["word", "tag", "doc"])
def test_missing_values(kind, column):
    table = kind(dict(TABLE, **{column: ["x", "x", None, "z"]}))
    with pytest.raises(ValueError, match=f"row 2, column '{column}': found a missing value"):
        from_table(table, ["word"], "tag", "doc")


@pytest.mark.parametrize("value", [math.nan, np.float32("nan"), None])
def test_not_a_number(value):
    table = dict(TABLE, length=[3, value, 5, 2])
    with pytest.raises(ValueError, match="row 1, column 'length': found a missing value"):
        from_table(table, ["length"], None, "doc")


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    for value in [pandas.NA, pandas.NaT, math.nan]:
        frame = pandas.DataFrame(dict(TABLE, word=["a", "b", "c", value]))
        with pytest.raises(ValueError, match="row 3, column 'word': found a missing value"):
            from_table(frame, ["word"], None, "doc")


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, index=[7, 7, 3, 1]).astype({"tag": "category"})
    assert from_table(frame, ["word", "length"], "tag", ["doc", "sentence"]) == (ROWS, LABELS)
    twice = frame[["word", "word", "doc"]]
    with pytest.raises(ValueError, match="found 2 columns 'word'"):
        from_table(twice, ["word"], None, "doc")


def test_interchange():
    pyarrow = pytest.importorskip("pyarrow")

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.table(TABLE).__arrow_c_stream__(requested_schema)

    class Protocol:
        def __dataframe__(self, nan_as_null=False, allow_copy=True):
            return pyarrow.table(TABLE).__dataframe__(nan_as_null, allow_copy)

    for table in [Stream(), Protocol()]:
        assert from_table(table, ["word", "length"], "tag", ["doc", "sentence"]) == (ROWS, LABELS)


def test_cells_that_are_no_lists():
    with pytest.raises(ValueError, match="row 0, column 'word': found a value of type str; expect"):
        from_table(TABLE, ["word"], "tag")
    table = dict(NESTED, tag=[["D", "N"], None, ["D"]])
    with pytest.raises(ValueError, match="row 1, column 'tag': found a missing value; expected a"):
        from_table(table, ["word"], "tag")


BAD = [
    (dict(NESTED, tag=[["D"], ["V"], ["D"]]), "row 0: column 'tag' has 1 tokens and column 'word'"),
    (dict(NESTED, tag=[["D", None], ["V"], ["D"]]), "row 0, token 1, column 'tag': found a m"),
    (dict(NESTED, tag=[["D", ["N"]], ["V"], ["D"]]), "row 0, token 1, column 'tag': found a v"),
    ({"word": [["a"], []], "tag": [["A"], []]}, "row 1 is an empty sequence"),
    ({"word": [], "tag": []}, "the table has no rows"),
    ({"word": [["a"]], "tag": []}, "column 'tag' has 0 rows and column 'word' 1"),
    ({"word": [["a"]]}, "found no column 'tag'; expected one among 'word'"),
    ({}, "found no column 'word'; expected one among none"),
    ({"word": "abc", "tag": ["a"]}, "column 'word' is of type str; expected a list"),
    ({"word": 3, "tag": ["a"]}, "column 'word' is of type int; expected a list"),
    ({"word": np.array(3), "tag": ["a"]}, "column 'word' holds one value"),
    (3, "the table is of type int; expected a dict of columns"),
    ([["a"]], "the table is of type list; expected a dict of columns"),
]


@pytest.mark.parametrize(("table", "message"), BAD)
def test_bad_tables(table, message):
    with pytest.raises((ValueError, TypeError), match=message):
        from_table(table, ["word"], "tag")


def test_bad_arguments():
    for columns in ["word", []]:
        with pytest.raises(ValueError, match="expected a list of at least one name"):
            from_table(TABLE, columns, "tag", "doc")
    with pytest.raises(ValueError, match="sequence is empty"):
        from_table(TABLE, ["word"], "tag", [])
    with pytest.raises(TypeError, match="row 0, column 'word': found a value of type list"):
        from_table(dict(TABLE, word=[["a"], "b", "c", "d"]), ["word"], "tag", "doc")
    with pytest.raises(TypeError, match="row 1, column 'word': found a value of type bytes"):
        from_table(dict(TABLE, word=["a", b"b", "c", "d"]), ["word"], "tag", "doc")


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(
                st.tuples(st.text(max_size=3), st.tuples(*[st.text(max_size=3)] * width)),
                min_size=1,
                max_size=4,
            ),
            min_size=1,
            max_size=4,
        )
    )
)
def test_round_trip(sequences):
    rows = [[token for _, token in sequence] for sequence in sequences]
    labels = [[label for label, _ in sequence] for sequence in sequences]
    table = to_table(rows, labels)
    names = [name for name in table if name.startswith("column")]
    assert from_table(table, names, "label", "sequence") == (rows, labels)
    assert from_table(to_table(rows), names, None, "sequence") == (rows, None)


def test_to_table():
    assert to_table([[("a", "b")], [("c", "d")]], [["A"], ["B"]], ["w", "p"], label="y") == {
        "sequence": [0, 1],
        "w": ["a", "c"],
        "p": ["b", "d"],
        "y": ["A", "B"],
    }
    for arguments, message in [
        (([[("a",)]], []), "1 sequences and 0 sequences of labels"),
        (([[("a",)]], [["A", "B"]]), "sequence 0 has 1 tokens and 2 labels"),
        (([[("a",), ("b", "c")]],), "sequence 0, token 1 has 2 cells; expected 1"),
        (([[("a",)]], [["A"]], ["label"]), "expected different names"),
    ]:
        with pytest.raises(ValueError, match=message):
            to_table(*arguments)


def test_nothing_is_imported():
    code = "import sys, maxmargin.io.tables; print({'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("set()", "")
