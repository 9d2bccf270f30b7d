"""Files of numbered features."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io import svmlight
from maxmargin.io.svmlight import read_svmlight, write_svmlight

SAMPLE = """\
# a comment
+1 1:0.5 3:-2e-1 # the first
dog qid:7 4:.25\t2:1.
-1

1,2   2:+3
"""
VALUES = [[0.5, 0, -0.2, 0], [0, 1, 0, 0.25], [0, 0, 0, 0], [0, 3, 0, 0]]
LABELS = ["+1", "dog", "-1", "1,2"]


def read(text, *args, **kwargs):
    return read_svmlight(io.BytesIO(text.encode()), *args, **kwargs)


@pytest.mark.parametrize(
    "text", [SAMPLE, "\ufeff" + SAMPLE, SAMPLE.replace("\n", " \r\n"), SAMPLE.rstrip("\n")]
)
def test_values_and_labels(text):
    X, labels = read(text)
    assert labels == LABELS
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X.toarray(), VALUES)
    assert csr_matrix((X.data, X.indices, X.indptr)).has_sorted_indices


def test_number_of_features():
    assert read(SAMPLE, 9)[0].shape == (4, 9)
    assert read("a\nb\n")[0].shape == (2, 0)
    assert read("a 0:1 2:1", zero_based=True)[0].toarray().tolist() == [[1, 0, 1]]
    X, _ = read(SAMPLE, 2, drop_beyond=True)
    np.testing.assert_array_equal(X.toarray(), np.array(VALUES)[:, :2])


def test_many_lines_are_converted_piece_by_piece(monkeypatch):
    monkeypatch.setattr(svmlight, "_AT_ONCE", 10)
    np.testing.assert_array_equal(read(SAMPLE)[0].toarray(), VALUES)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1:1 2:3", "found '1:1' where the label should be"),
        ("a 1", "found '1'; expected number:value"),
        ("a 1:", "found '1:'; expected number:value"),
        ("a 1:2:3 4", "found '1:2:3'"),
        ("a :2", "found ':2'"),
        ("a 1:nan", "found '1:nan'"),
        ("a 1:1e999", "found feature 1 with a value that is not finite"),
        ("a 1:1_0", "found '1:1_0'"),
        ("a 1.5:1", "found '1.5:1'"),
        ("a -1:1", "found '-1:1'"),
        ("a 1:0x1", "found '1:0x1'"),
        ("a \u0661:1", "found '\u0661:1'"),
        ("a 1:2 qid:3", "found 'qid:3'"),
        ("a 0:1", "found feature 0; expected numbers from 1 on"),
        ("a 3:1 2:2 3:1", "found feature 3 more than once"),
        ("a 2:1 2:2", "found feature 2 more than once"),
        ("a 6:2", "found feature 6; expected 5 features, numbered from 1 on"),
        ("a 9999999999:2", "found feature 9999999999; expected at most"),
        ("a 1:1\u00a02:1", "found '1:1\\xa02:1'"),
    ],
)
def test_bad_input(tmp_path, line, message):
    path = tmp_path / "x.txt"
    path.write_text(f"ok 1:1\n# comment\n{line}\nok 2:1\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: line 3: {message}")):
        read_svmlight(path, 5)


@pytest.mark.parametrize(
    "line",
    ["1:" + "1" * 1_000_000 + "x", "1" * 1_000_000, "1:1 " * 250_000 + "x", " " * 1_000_000 + "x"],
)
def test_a_long_bad_line_is_refused_in_linear_time(line):
    with pytest.raises(FileFormatError, match="line 1: found "):
        read(f"a {line}\n")


def test_nothing():
    with pytest.raises(EmptyFileError, match="no examples"):
        read("# only a comment\n\n")
    with pytest.raises(ValueError, match="n_features is -1"):
        read("a 1:1", -1)


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, allow_infinity=False) | st.just(0.0),
    ),
    st.booleans(),
)
def test_round_trip(values, zero_based):
    labels = [f"l{i}" for i in range(len(values))]
    out = io.BytesIO()
    write_svmlight(out, values, labels, zero_based=zero_based)
    X, found = read_svmlight(io.BytesIO(out.getvalue()), values.shape[1], zero_based=zero_based)
    assert found == labels
    np.testing.assert_array_equal(X.toarray(), values)


def test_what_is_written():
    out = io.BytesIO()
    write_svmlight(out, csr_matrix([[0, 2.0, 0.5], [0, 0, 0]]), [1, "b"])
    assert out.getvalue() == b"1 2:2 3:0.5\nb\n"


@pytest.mark.parametrize("label", ["", "a b", "a:", "#a", "a\t", "\ufeff1"])
def test_labels_that_cannot_be_written(label):
    with pytest.raises(ValueError, match="example 1: found the label"):
        write_svmlight(io.BytesIO(), np.eye(2), ["a", label])


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match="found 1 labels; expected 2"):
        write_svmlight(io.BytesIO(), np.eye(2), ["a"])
    with pytest.raises(ValueError, match="not finite"):
        write_svmlight(io.BytesIO(), np.array([[np.inf]]), ["a"])
