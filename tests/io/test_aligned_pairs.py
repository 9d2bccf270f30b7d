"""The forms of alignments, and files of aligned pairs."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.aligned_pairs import AlignedPair, read_aligned_pairs, write_aligned_pairs
from maxmargin.io.alignment_forms import (
    checked_pairs,
    pairs_to_rows,
    pairs_to_string,
    rows_to_pairs,
    rows_to_string,
    string_to_pairs,
    string_to_rows,
)
from real_data import data_file


def read(text, **options):
    return read_aligned_pairs(io.BytesIO(text.encode()), **options)


# --- forms ----------------------------------------------------------------------------------------


def test_one_alignment_in_all_forms():
    pairs = string_to_pairs("1M2M1", 4, 3)
    assert pairs.dtype == np.int32
    assert pairs.tolist() == [[1, 0], [2, 2]]
    assert string_to_rows("1M2M1", "ABCD", "XYZ") == ("AB-CD", "-XYZ-")
    assert rows_to_string("AB-CD", "-XYZ-") == "1M2M1"
    assert pairs_to_string(pairs, 4, 3) == "1M2M1"
    assert pairs_to_rows(pairs, "ABCD", "XYZ") == ("AB-CD", "-XYZ-")
    first, second, again = rows_to_pairs("AB-CD", "-XYZ-")
    assert (first, second, again.tolist()) == ("ABCD", "XYZ", pairs.tolist())


def test_gaps_that_meet():
    assert pairs_to_string(string_to_pairs("2M2121M", 4, 5), 4, 5) == "2M1122M"
    assert pairs_to_string([], 2, 1) == "112"
    assert string_to_pairs("", 0, 0).shape == (0, 2)
    assert rows_to_string("A--", "--B") == "12"


strings = st.text("M12", max_size=30)


@given(strings)
def test_all_ways_around(string):
    one, two = string.count("M") + string.count("1"), string.count("M") + string.count("2")
    first = "".join(chr(65 + k % 26) for k in range(one))
    second = "".join(chr(97 + k % 26) for k in range(two))
    pairs = string_to_pairs(string, one, two)
    assert pairs.shape == (string.count("M"), 2)
    rows = string_to_rows(string, first, second)
    assert [(a, b) for a, b in zip(*rows, strict=True) if "-" not in (a, b)] == [
        (first[i], second[j]) for i, j in pairs
    ]
    assert rows_to_string(*rows) == string
    found = rows_to_pairs(*rows)
    assert found[:2] == (first, second)
    np.testing.assert_array_equal(found[2], pairs)
    np.testing.assert_array_equal(
        string_to_pairs(pairs_to_string(pairs, one, two), one, two), pairs
    )
    np.testing.assert_array_equal(rows_to_pairs(*pairs_to_rows(pairs, first, second))[2], pairs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: string_to_pairs("MxM", 3, 3), "found 'x' at position 2 of the alignment"),
        (lambda: string_to_pairs("M\u0661", 1, 1), "found '\u0661' at position 2"),
        (lambda: string_to_pairs("M1", 1, 1), "found 2 positions of sequence 1"),
        (lambda: string_to_pairs("M1", 2, 2), "found 1 positions of sequence 2"),
        (lambda: rows_to_string("AB", "A"), "found rows of 2 and 1 letters"),
        (lambda: checked_pairs([1, 2], 3, 3), "found pairs of shape (2,)"),
        (lambda: checked_pairs([[0.0, 1.0]], 3, 3), "type float64"),
        (lambda: checked_pairs([[0, 0], [1, 3]], 3, 3), "pair 1: found position 3 of sequence 2"),
        (lambda: checked_pairs([[-1, 0]], 3, 3), "pair 0: found position -1 of sequence 1"),
        (lambda: checked_pairs([[1, 0], [1, 1]], 3, 3), "pair 1: found position 1 of sequence 1 a"),
        (lambda: checked_pairs([[0, 2], [1, 1]], 3, 3), "pair 1: found position 1 of sequence 2 a"),
    ],
)
def test_bad_forms(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# --- files ----------------------------------------------------------------------------------------


def fields(pair):
    alignment = None if pair.alignment is None else pair.alignment.tolist()
    return (pair.name1, pair.name2, pair.sequence1, pair.sequence2, alignment, pair.scores)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AB\tCDE\n", ("", "", "AB", "CDE", None, None)),
        ("AB\tCDE\t1M22\n", ("", "", "AB", "CDE", [[1, 0]], None)),
        ("A-B\tCDE\n", ("", "", "AB", "CDE", [[0, 0], [1, 2]], None)),
        ("x\ty\tAB\tCD\n", ("x", "y", "AB", "CD", None, None)),
        ("x\ty-\tAB\tCD\tMM\n", ("x", "y-", "AB", "CD", [[0, 0], [1, 1]], None)),
        ("x\ty\tA-\t-C\n", ("x", "y", "A", "C", [], None)),
        ("x\ty\t0.5\t1e-1\tA\tC\n", ("x", "y", "A", "C", None, (0.5, 0.1))),
        ("# x\n\nx\ty\t0.5\t.1\tA\tC\tM\r\n", ("x", "y", "A", "C", [[0, 0]], (0.5, 0.1))),
    ],
)
def test_columns(text, expected):
    (pair,) = read(text)
    assert fields(pair) == expected
    assert pair.line == text[: text.rindex("A")].count("\n") + 1


def test_one_gap_makes_a_file_of_rows():
    pairs = read("AB\tCD\nA-\tBC\n")
    assert [pair.alignment.tolist() for pair in pairs] == [[[0, 0], [1, 1]], [[0, 0]]]
    assert read("AB\tCD\n", alignments=True)[0].alignment.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AB\n", "line 1: found 1 columns; expected 2 to 7"),
        ("\t".join("ABCDEFGH"), "line 1: found 8 columns; expected 2 to 7"),
        ("A\tB\n\nA\tB\tM\n", "line 3: found 3 columns; expected 2, as in line 1"),
        ("A\tB\tM\nA-\tBB\tMM\n", "line 2: found a gap in a sequence beside an alignment string"),
        ("A\tB\tM\nA\tB\tX\n", "line 2: found 'X' at position 1 of the alignment"),
        ("A\tB\tM\nAA\tB\tM\n", "line 2: found 1 positions of sequence 1 in the alignment"),
        ("A-\tBB\nA\tBB\n", "line 2: found rows of 1 and 2 letters"),
        ("A-\tBB\n--\tBB\n", "line 2: found a sequence of gaps only"),
        ("A\t\n", "line 1: found nothing as sequence 2"),
        ("A C\tB\n", "line 1: found a blank at position 2 of sequence 1"),
        ("a\tb\tx\t1\tA\tB\tM\n", "line 1: found 'x' in column 3; expected a number"),
        ("a\tb\t1\tnan\tA\tB\tM\n", "line 1: found 'nan' in column 4; expected a number"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: {message}")):
        read_aligned_pairs(path)


def test_alignments_are_asked_for():
    with pytest.raises(FileFormatError, match="line 2: found rows of 1 and 2 letters"):
        read("A\tB\nA\tBB\n", alignments=True)


def test_nothing():
    with pytest.raises(EmptyFileError, match="no pairs"):
        read("# nothing\n\n")


@given(
    st.lists(st.tuples(strings.filter(lambda s: "M" in s), st.floats(0, 1)), min_size=1),
    st.sampled_from(["", "names", "scores"]),
    st.booleans(),
)
def test_round_trip(items, level, aligned):
    pairs = []
    for string, score in items:
        one, two = string.count("M") + string.count("1"), string.count("M") + string.count("2")
        names = ("a b", "c") if level else ("", "")
        scores = (score, 1.5) if level == "scores" else None
        alignment = string_to_pairs(string, one, two) if aligned else None
        pairs.append(AlignedPair(*names, "A" * one, "B" * two, alignment, scores))
    out = io.BytesIO()
    write_aligned_pairs(out, pairs)
    again = read_aligned_pairs(io.BytesIO(out.getvalue()))
    assert list(map(fields, again)) == list(map(fields, pairs))


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (AlignedPair("a", "b", "A", "B"), "pair 1: found no alignment"),
        (AlignedPair("", "", "A", "B", np.array([[0, 0]])), "pair 1: found no names"),
        (AlignedPair("a\t", "b", "A", "B", np.array([[0, 0]])), "pair 1: found the names"),
        (AlignedPair("#a", "b", "A", "B", np.array([[0, 0]])), "pair 1: found the names"),
        (AlignedPair("a", "b", "A-", "B", np.array([[0, 0]])), "pair 1: found sequence 1 'A-'"),
        (AlignedPair("a", "b", "A", "", np.array([[0, 0]])), "pair 1: found nothing as sequence 2"),
        (AlignedPair("a", "b", "A", "B", np.array([[0, 1]])), "pair 1: pair 0: found position 1"),
    ],
)
def test_what_cannot_be_written(tmp_path, pair, message):
    good = AlignedPair("a", "b", "A", "B", np.array([[0, 0]]))
    with pytest.raises(ValueError, match=re.escape(message)):
        write_aligned_pairs(tmp_path / "x", [good, pair])
    assert not (tmp_path / "x").exists()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_pairs", "n_residues"),
    [
        ("train_aligned", 84, 29337),
        ("train_decoy", 186, 73389),
        ("test_aligned", 88, 28688),
        ("test_decoy", 188, 71694),
    ],
)
def test_tmalign(name, n_pairs, n_residues):
    pairs = read_aligned_pairs(data_file(f"protein_tmalign/{name}.tsv.gz"))
    assert len(pairs) == n_pairs
    assert sum(len(p.sequence1) + len(p.sequence2) for p in pairs) == n_residues
    assert all((min(p.scores) > 0.5) == ("aligned" in name) for p in pairs)
    out = io.BytesIO()
    write_aligned_pairs(out, pairs)
    again = read_aligned_pairs(io.BytesIO(out.getvalue()))
    assert list(map(fields, again)) == list(map(fields, pairs))
