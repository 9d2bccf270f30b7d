"""Data frames as sequences: known by their type, whatever their shape."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import ColumnTable, SequenceTagger, Template
from maxmargin.features.frames import frame_columns, frame_kind, frame_tokens, is_arrow_array

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol")

#: As many rows as columns, more, and fewer.
TABLES = [
    {"word": ["dogs", "bark"], "pos": ["N", "V"]},
    {"word": ["no", "cats", "bark"], "pos": ["D", "N", "V"]},
    {"word": ["dogs"], "pos": ["N"]},
    {"word": ["bark", "cats"], "pos": ["V", "N"]},
]
LABELS = [["n", "v"], ["d", "n", "v"], ["n"], ["v", "n"]]
ROWS = [[list(row) for row in zip(*t.values(), strict=True)] for t in TABLES]
TEMPLATE = Template.parse("U:w=%x[0,0]\nU:p=%x[0,1]\nU:p-1=%x[-1,1]\n")


class Interchange:
    """Something that speaks the protocol of data frames, and nothing else."""

    def __init__(self, table):
        self._frame = pd.DataFrame(table)

    def __dataframe__(self, *args, **kwargs):
        return self._frame.__dataframe__(*args, **kwargs)

    def __len__(self):
        return len(self._frame)


class Stream:
    """Something that speaks the protocol of Arrow, and nothing else."""

    def __init__(self, table):
        self._table = pa.table(table)
        self.columns = list(table)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self):
        return self._table.num_rows


FRAMES = {
    "pandas": (pd.DataFrame, "a pandas DataFrame"),
    "pandas, arrow strings": (
        lambda table: pa.table(table).to_pandas(types_mapper=pd.ArrowDtype),
        "a pandas DataFrame",
    ),
    "polars": (pl.DataFrame, "a polars DataFrame"),
    "pyarrow": (pa.table, "a pyarrow Table"),
    "record batch": (pa.record_batch, "a pyarrow RecordBatch"),
    "stream": (Stream, "a data frame of type Stream"),
    "interchange": (Interchange, "a data frame of type Interchange"),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


def names(tagger):
    return sorted(tagger.get_feature_names_out())


def test_with_a_template(frame):
    make, _ = frame
    expected = SequenceTagger(template=TEMPLATE, random_state=0).fit(ROWS, LABELS)
    X = [make(table) for table in TABLES]
    for given in (X, tuple(X), [X[0], *ROWS[1:]]):
        tagger = SequenceTagger(template=TEMPLATE, random_state=0).fit(given, LABELS)
        assert names(tagger) == names(expected)
        np.testing.assert_array_equal(tagger.coef_, expected.coef_)
        assert tagger.predict(given).tolist() == expected.predict(ROWS).tolist() == LABELS
        assert tagger.score(given, LABELS) == 1.0


def test_square_frames_do_not_give_the_names_of_their_columns(frame):
    make, _ = frame
    square = [make(TABLES[0]), make(TABLES[3])]
    tagger = SequenceTagger(template=TEMPLATE).fit(square, [LABELS[0], LABELS[3]])
    found = set(tagger.get_feature_names_out())
    assert {"U:w=dogs", "U:w=bark", "U:p=N", "U:p=V"} <= found
    assert not {"U:w=word", "U:w=pos"} & found


def test_one_frame_is_no_list_of_sequences(frame):
    make, words = frame
    for template in (TEMPLATE, None):
        with pytest.raises(TypeError, match=f"X is {words}; expected a list of sequences"):
            SequenceTagger(template=template).fit(make(TABLES[0]), [["n", "v"]] * 2)
    with pytest.raises(TypeError, match=f"X is {words}; .*from_table"):
        ColumnTable.from_rows(make(TABLES[0]))


def test_without_a_template(frame):
    make, words = frame
    X = [make(table) for table in TABLES]
    message = f"sequence 0 is {words}, whose columns are only read with a template"
    with pytest.raises(TypeError, match=message):
        SequenceTagger().fit(X, LABELS)
    tagger = SequenceTagger().fit([[["a"], ["b"]]], [["n", "v"]])
    with pytest.raises(TypeError, match=message):
        tagger.predict(X)


def test_frames_are_no_labels(frame):
    make, words = frame
    with pytest.raises(TypeError, match=f"y: sequence 0 is {words}; .*one column"):
        SequenceTagger(template=TEMPLATE).fit(ROWS, [make(table) for table in TABLES])
    with pytest.raises(TypeError, match=f"y is {words}"):
        SequenceTagger(template=TEMPLATE).fit(ROWS, make(TABLES[0]))


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, np.array, tuple])
def test_columns_as_labels_and_as_tokens(make):
    y = [make(labels) for labels in LABELS]
    tagger = SequenceTagger(template=TEMPLATE).fit(ROWS, y)
    assert tagger.classes_.tolist() == ["d", "n", "v"]
    assert tagger.score(ROWS, y) == tagger.score(ROWS, LABELS) == 1.0
    words = [table["word"] for table in TABLES]
    one = Template.parse("U:w=%x[0,0]\n")
    expected = SequenceTagger(template=one).fit(words, LABELS)
    found = SequenceTagger(template=one).fit([make(x) for x in words], LABELS)
    assert names(found) == names(expected) == ["U:w=bark", "U:w=cats", "U:w=dogs", "U:w=no"]


def test_a_function_gets_the_frame(frame):
    make, _ = frame
    seen = []

    def function(x):
        seen.append(x)
        return [["f"]] * len(x)

    X = [make(table) for table in TABLES]
    SequenceTagger(template=function).fit(X, LABELS)
    assert all(a is b for a, b in zip(seen, X, strict=True))


def test_lazy_frames_are_collected():
    table = ColumnTable.from_rows([pl.LazyFrame(TABLES[1])])
    assert table.rows() == [ROWS[1]]


def test_columns_of_the_same_name():
    twice = pd.DataFrame([["dogs", "N"], ["bark", "V"]], columns=["a", "a"])
    assert ColumnTable.from_rows([twice]).rows() == [ROWS[0]]
    table = pa.Table.from_arrays([pa.array(c) for c in TABLES[0].values()], names=["a", "a"])
    assert ColumnTable.from_rows([table]).rows() == [ROWS[0]]


def test_numbers_become_text():
    frame = pd.DataFrame({"word": ["a"], "n": [3], "x": [0.5], 7: [True]})
    assert frame_tokens(frame, "x") == [("a", "3", "0.5", "True")]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_bad_cells(make):
    with pytest.raises(ValueError, match="X: sequence 1, row 1, column 'pos': found a missing"):
        ColumnTable.from_rows([ROWS[0], make({"word": ["a", "b"], "pos": ["N", None]})])
    with pytest.raises(TypeError, match="X: sequence 0, row 0, column 'pos': found a value of"):
        ColumnTable.from_rows([make({"word": ["a"], "pos": [["N"]]})])
    with pytest.raises(ValueError, match="sequence 0 is empty"):
        ColumnTable.from_rows([make({"word": [], "pos": []})])


def test_what_is_no_frame():
    others = [[], (), {}, "x", None, np.zeros((2, 2)), pd.Series([1]), pl.Series([1]), ROWS]
    assert [frame_kind(thing) for thing in others] == [None] * len(others)
    assert [is_arrow_array(thing) for thing in others] == [False] * len(others)
    assert is_arrow_array(pa.array([1]))
    assert is_arrow_array(pa.chunked_array([[1], [2]]))
    assert frame_columns(pl.DataFrame(TABLES[0])) == list(TABLES[0].items())
