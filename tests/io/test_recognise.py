"""Formats are told by the ending and by the content, and a contradiction is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_files import conllu, crfsuite, sentences, svmhmm, text
from maxmargin.errors import FileFormatError
from maxmargin.io.recognise import format_of_content, format_of_name, recognise
from maxmargin.io.text import read_bytes
from real_data import data_file

DATA = sentences()
CONTENT = {
    "conll": text(DATA).encode(),
    "crfsuite": crfsuite(DATA).encode(),
    "svmhmm": svmhmm(DATA).encode(),
    "conllu": conllu(DATA).encode(),
}


@pytest.mark.parametrize("kind", CONTENT)
def test_by_content(kind):
    for ends in (b"\n", b"\r\n"):
        data = CONTENT[kind].replace(b"\n", ends)
        assert format_of_content(data) == (kind if kind != "conll" else format_of_content(data))
        assert recognise("-", data) == kind
        assert recognise("x.txt", b"\xef\xbb\xbf" + data) == kind


def test_columns_are_told_from_items():
    words = "".join(f"w{i} NN B-NP\n" for i in range(30)).encode()
    assert format_of_content(words) == "conll"
    assert format_of_content(words.replace(b" ", b"\t")) == "conll"
    assert format_of_content(words[:40]) is None  # too little to be sure
    # A label may look like an attribute where it is the only such column.
    morphology = "".join(f"w{i}\tCase=Nom|Number=Sing\n" for i in range(30)).encode()
    assert format_of_content(morphology) in (None, "conll")
    assert recognise("x", morphology) == "conll"
    varying = b"B\tw[0]=a\tw[1]=b\t__BOS__\nI\tw[0]=b\tw[1]=c\nI\tw[0]=c\t__EOS__\n"
    assert format_of_content(varying) == "crfsuite"
    assert format_of_content(b"@weight:2\n" + varying) == "crfsuite"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.crfsuite", "crfsuite"),
        ("a.items.gz", "crfsuite"),
        ("a.CONLLU.xz", "conllu"),
        ("a.tsv.zst", "conll"),
        ("a.svmhmm.bz2", "svmhmm"),
        ("a.txt", None),
        ("a.dat", None),
        ("a", None),
        ("-", None),
        (".tsv", None),
    ],
)
def test_by_name(name, kind):
    assert format_of_name(name) == kind


@pytest.mark.parametrize("kind", ["crfsuite", "svmhmm", "conllu"])
def test_contradictions(kind):
    with pytest.raises(FileFormatError) as caught:
        recognise("data/x.tsv.gz", CONTENT[kind], "--from")
    message = str(caught.value)
    assert message.startswith("data/x.tsv.gz: the ending .tsv says conll, and the content looks ")
    assert f" looks like {kind} (" in message
    assert f"say which it is with --from conll or --from {kind}" in message


def test_columns_that_are_called_items():
    data = "".join(f"w{i}\tNN\tB-NP\n" for i in range(30)).encode()
    with pytest.raises(FileFormatError, match="says crfsuite, and the content looks like conll"):
        recognise("x.crfsuite", data)
    assert recognise("x.crfsuite", data[:40]) == "crfsuite"


@given(st.binary(max_size=300))
def test_anything_is_some_format(data):
    assert recognise("x", data) in CONTENT


@pytest.mark.data
def test_real_files():
    for name in ("conll2000/train.tsv.gz", "conll2002_esp/dev.tsv.gz", "ads/train.tsv.gz"):
        assert recognise(name, read_bytes(data_file(name))) == "conll"
    assert recognise("x", read_bytes(data_file("ud_english_ewt/dev.conllu.gz"))) == "conllu"
