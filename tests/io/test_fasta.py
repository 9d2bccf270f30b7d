"""FASTA files."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.fasta import read_fasta, write_fasta

SAMPLE = """\
; a comment
>first protein of somebody
MKV LA

acX*-
> second
;another
G
"""


def read(text, **options):
    return read_fasta(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize(
    "text", [SAMPLE, "\ufeff" + SAMPLE, SAMPLE.replace("\n", "\r\n"), SAMPLE.rstrip()]
)
def test_sequences(text):
    assert read(text) == [("first", "MKVLAacX*-"), ("second", "G")]
    assert read(text, whole_titles=True)[0][0] == "first protein of somebody"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nMKV\n>a\nA", "line 2: found 'MKV' before the first title; expected >name"),
        (">a\nA\n>\nB", "line 3: found a title without a name"),
        (">a\n\n>b\nB", "line 1: found no sequence after the title 'a'"),
        (">b\nB\n>c x\n;\n", "line 3: found no sequence after the title 'c'"),
        (">b\nB>c\n", "line 2: found '>' within a sequence"),
    ],
)
def test_bad_input(tmp_path, text, message):
    path = tmp_path / "x.fa"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: {message}")):
        read_fasta(path)


def test_nothing():
    with pytest.raises(EmptyFileError, match="no sequences"):
        read("; nothing\n\n")


@given(
    st.lists(
        st.tuples(
            st.text("ab|1 ", min_size=1).map(str.strip).filter(bool),
            st.text("ACGTX*-", min_size=1),
        ),
        min_size=1,
    ),
    st.integers(1, 5),
)
def test_round_trip(records, width):
    out = io.BytesIO()
    write_fasta(out, records, width=width)
    assert read_fasta(io.BytesIO(out.getvalue()), whole_titles=True) == records
    assert max(len(x) for x in out.getvalue().splitlines() if not x.startswith(b">")) <= width


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (("", "A"), "sequence 1: found the name ''"),
        (("a\nb", "A"), "sequence 1: found the name"),
        (("a", ""), "sequence 1: found the sequence ''"),
        (("a", "A C"), "sequence 1: found the sequence 'A C'"),
        (("a", ">A"), "sequence 1: found the sequence '>A'"),
    ],
)
def test_what_cannot_be_written(tmp_path, record, message):
    with pytest.raises(ValueError, match=message):
        write_fasta(tmp_path / "x", [("a", "A"), record])
    with pytest.raises(ValueError, match="width is 0"):
        write_fasta(tmp_path / "x", [("a", "A")], width=0)
    assert not (tmp_path / "x").exists()
