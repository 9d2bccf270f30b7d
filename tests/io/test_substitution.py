"""Substitution matrices."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin.errors import FileFormatError
from maxmargin.io.substitution import (
    DNA,
    PROTEIN,
    PROTEIN_AMBIGUOUS,
    RNA,
    blosum62,
    integer_scores,
    read_substitution,
    write_substitution,
)

SAMPLE = """\
# comment
   A  C  *
A  4 -1.5 0
*  0  0  1

C -1  9  0
"""


def read(text):
    return read_substitution(io.BytesIO(text.encode()))


def test_alphabets():
    assert sorted(PROTEIN) == sorted(set("ABCDEFGHIJKLMNOPQRSTUVWXYZ") - set("BJOUXZ"))
    assert len(set(PROTEIN_AMBIGUOUS)) == 24
    assert (DNA, RNA) == ("ACGT", "ACGU")


def test_blosum62():
    """Entries that textbooks show, and properties of the whole table."""
    alphabet, matrix = blosum62()
    assert alphabet == PROTEIN_AMBIGUOUS
    np.testing.assert_array_equal(matrix, matrix.T)
    entry = {a + b: matrix[i, j] for i, a in enumerate(alphabet) for j, b in enumerate(alphabet)}
    diagonal = [4, 5, 6, 6, 9, 5, 5, 6, 8, 4, 4, 5, 5, 6, 7, 4, 5, 11, 7, 4]
    assert matrix.diagonal()[:20].tolist() == diagonal
    for pair, value in {
        "IV": 3, "IL": 2, "LM": 2, "FY": 3, "WY": 2, "FW": 1, "KR": 2, "DE": 2, "EQ": 2, "DN": 1,
        "HY": 2, "HN": 1, "ST": 1, "AS": 1, "NS": 1, "CW": -2, "DL": -4, "GI": -4, "GL": -4,
        "NW": -4, "DW": -4, "PW": -4, "FP": -4, "CE": -4, "AW": -3, "EK": 1, "BD": 4, "BN": 3,
        "EZ": 4, "QZ": 3, "XX": -1, "**": 1, "*A": -4, "AX": 0, "CX": -2,
    }.items():  # fmt: skip
        assert entry[pair] == value, pair
    # The sums of the rows of the published table: a wrong entry changes two of them.
    assert matrix[:20, :20].sum(axis=1).tolist() == [
        -16, -21, -18, -26, -31, -12, -17, -34, -17, -27,
        -25, -17, -13, -25, -32, -11, -14, -32, -16, -22,
    ]  # fmt: skip
    assert (matrix[:20, :20] > 0).sum() == 20 + 2 * 21
    assert matrix.min() == -4
    assert matrix.max() == 11


def test_blosum62_of_an_alphabet():
    alphabet, matrix = blosum62("WA")
    assert (alphabet, matrix.tolist()) == ("WA", [[11, -3], [-3, 4]])
    with pytest.raises(ValueError, match="alphabet has the letter 'J'"):
        blosum62("AJ")


def test_a_file_whose_rows_stand_in_another_order():
    alphabet, matrix = read(SAMPLE)
    assert alphabet == "AC*"
    assert matrix.tolist() == [[4, -1.5, 0], [-1, 9, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no matrix"),
        ("A CC\n", "line 1: found 'CC' among the letters of the columns"),
        ("A C A\n", "line 1: found 'A' among the letters of the columns"),
        ("A C\n\nB 1 2\n", "line 3: found a row of 'B'; expected a row for each letter"),
        ("A C\nA 1 2\nA 1 2\n", "line 3: found a second row of 'A'"),
        ("A C\nA 1\n", "line 2: found 1 numbers in the row of 'A'; expected 2"),
        ("A C\nA 1 x\n", "line 2: found 'x' as number 2 of the row"),
        ("A C\nA 1 inf\n", "line 2: found 'inf' as number 2 of the row"),
        ("A C\nA 1 2\n# end\n", "line 2: found the end of the matrix without a row of 'C'"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "matrix.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: {message}")):
        read_substitution(path)


def test_what_is_written():
    out = io.BytesIO()
    write_substitution(out, "AW", blosum62("AW")[1], comments=["BLOSUM62", "two\nlines"])
    assert out.getvalue().decode() == "# BLOSUM62\n# two\n# lines\n   A  W\nA  4 -3\nW -3 11\n"
    out = io.BytesIO()
    write_substitution(out, "AC", [[1.0, -0.5], [0.25, 0]], decimals=2)
    assert out.getvalue().decode() == "      A     C\nA  1.00 -0.50\nC  0.25  0.00\n"


@given(hnp.arrays(np.int64, (4, 4), elements=st.integers(-1000, 1000)))
def test_round_trip(matrix):
    out = io.BytesIO()
    write_substitution(out, DNA, matrix)
    alphabet, again = read_substitution(io.BytesIO(out.getvalue()))
    assert alphabet == DNA
    np.testing.assert_array_equal(again, matrix)


@pytest.mark.parametrize(
    ("alphabet", "matrix", "message"),
    [
        ("AC", np.eye(3), "found a matrix of shape (3, 3)"),
        ("AC", [[np.nan, 0], [0, 0]], "expected 2 x 2 finite numbers"),
        ("AA", np.eye(2), "alphabet is 'AA'"),
        ("A ", np.eye(2), "alphabet is 'A '"),
        ("#A", np.eye(2), "alphabet is '#A'"),
        ("", np.zeros((0, 0)), "alphabet is ''"),
    ],
)
def test_what_cannot_be_written(alphabet, matrix, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_substitution(io.BytesIO(), alphabet, matrix)


def test_integer_scores():
    scores, factor = integer_scores([[0.1, -0.05], [0.026, 0]], largest=10)
    assert scores.tolist() == [[10, -5], [3, 0]]
    assert factor == pytest.approx(100)
    assert integer_scores(np.zeros((2, 2)))[1] == 1
    assert integer_scores([[5e-324]])[0].tolist() == [[20]]
    with pytest.raises(ValueError, match="largest is 0"):
        integer_scores([[1.0]], largest=0)
    with pytest.raises(ValueError, match="not finite"):
        integer_scores([[np.inf]])
