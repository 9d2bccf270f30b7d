"""Alignments as text."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.io.aligned_pairs import AlignedPair, read_aligned_pairs
from maxmargin.io.alignment_forms import pairs_to_rows, rows_to_pairs
from maxmargin.io.alignment_text import (
    alignment_text,
    write_alignment_texts,
    write_gapped_fasta,
)
from maxmargin.io.fasta import read_fasta
from maxmargin.io.substitution import blosum62
from real_data import data_file


def pair_of(row1, row2, name1="one", name2="two"):
    return AlignedPair(name1, name2, *rows_to_pairs(row1, row2))


SAMPLE = pair_of("MKVLiG-W", "-RVAIGCW", "a_long_name_of_a_protein", "")

WHOLE = """\
#=======================================
#
# Aligned_sequences: 2
# 1: a_long_name_of_a_protein
# 2: sequence2
#
# Length: 8
# Identity:           4/8 (50.0%)
# Similarity:         5/8 (62.5%)
# Gaps:               2/8 (25.0%)
# Score: 12.5
#
#=======================================

a_long_name_o      1 MKVLi      5
                      :|.|
sequence2          1 -RVAI      4

a_long_name_o      6 G-W      7
                     | |
sequence2          5 GCW      7

"""


def test_whole():
    assert alignment_text(SAMPLE, substitution=blosum62(), score=12.5, width=5) == WHOLE


def test_local_part():
    text = alignment_text(pair_of("ABCD-", "--CDE"), local=True)
    assert "# Length: 2\n" in text
    assert "one                3 CD      4\n" in text
    assert "two                1 CD      2\n" in text
    assert "Score" not in text


@pytest.mark.parametrize("local", [False, True])
def test_nothing_matched(local):
    text = alignment_text(pair_of("A-", "-C"), local=local)
    assert "# Identity:           0/" in text
    assert ("one                1 A-      1" in text) == (not local)


@given(st.text("M12", min_size=1, max_size=40), st.integers(1, 9), st.booleans())
def test_rows_can_be_put_together_again(string, width, local):
    row1 = "".join("-" if c == "2" else "ACDEF"[k % 5] for k, c in enumerate(string))
    row2 = "".join("-" if c == "1" else "CADE"[k % 4] for k, c in enumerate(string))
    pair = pair_of(row1, row2)
    text = alignment_text(pair, substitution=blosum62(), width=width, local=local)
    lines = [line.split() for line in text.splitlines() if line.startswith(("one", "two"))]
    rows = ["".join(line[2] for line in lines if line[0] == name) for name in ("one", "two")]
    expected = pairs_to_rows(pair.alignment, pair.sequence1, pair.sequence2)
    if local:
        matched = [k for k, (a, b) in enumerate(zip(*expected, strict=True)) if "-" not in (a, b)]
        part = slice(matched[0], matched[-1] + 1) if matched else slice(0)
        expected = expected[0][part], expected[1][part]
    assert tuple(rows) == expected
    for name, sequence in (("one", pair.sequence1), ("two", pair.sequence2)):
        for which, begin, row, end in lines:
            letters = row.replace("-", "")
            if which == name and letters:
                assert sequence[int(begin) - 1 : int(end)] == letters


def test_files():
    out = io.BytesIO()
    write_alignment_texts(out, [SAMPLE, pair_of("AA", "AA")], scores=[1, 2])
    assert out.getvalue().decode().count("# Score: ") == 2
    out = io.BytesIO()
    write_gapped_fasta(out, [SAMPLE, pair_of("AC-", "-CD")], local=False)
    records = read_fasta(io.BytesIO(out.getvalue()))
    assert records == [
        ("a_long_name_of_a_protein", "MKVLiG-W"),
        ("pair1_2", "-RVAIGCW"),
        ("one", "AC-"),
        ("two", "-CD"),
    ]
    out = io.BytesIO()
    write_gapped_fasta(out, [pair_of("AC-", "-CD")], local=True)
    assert [row for _, row in read_fasta(io.BytesIO(out.getvalue()))] == ["C", "C"]


def test_bad_input():
    with pytest.raises(ValueError, match="the pair 'x', 'y' is not aligned"):
        alignment_text(AlignedPair("x", "y", "A", "A"))
    with pytest.raises(ValueError, match="width is 0"):
        alignment_text(SAMPLE, width=0)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) for an alphabet of 3 letters"):
        alignment_text(SAMPLE, substitution=("ABC", np.eye(2)))
    with pytest.raises(ValueError, match="zip"):
        write_alignment_texts(io.BytesIO(), [SAMPLE], scores=[])


@pytest.mark.data
def test_proteins():
    pairs = read_aligned_pairs(data_file("protein_tmalign/test_aligned.tsv.gz"))
    out = io.BytesIO()
    write_alignment_texts(out, pairs, substitution=blosum62())
    assert out.getvalue().count(b"# Aligned_sequences: 2") == len(pairs)
    out = io.BytesIO()
    write_gapped_fasta(out, pairs)
    records = read_fasta(io.BytesIO(out.getvalue()))
    for pair, (_, row1), (_, row2) in zip(pairs, records[::2], records[1::2], strict=True):
        np.testing.assert_array_equal(rows_to_pairs(row1, row2)[2], pair.alignment)
