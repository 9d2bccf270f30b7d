"""Sentences that are to be parsed, in all forms of files."""

from __future__ import annotations

import io

import pytest

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.tagged_sentences import read_sentences

DOGS = [[("The", "DT"), ("1\\/2", "CD"), ("dogs", "NNS")], [("Bark", "VB"), (".", ".")]]


def read(text, tags=True):
    return read_sentences(io.BytesIO(text.encode()), tags=tags)


@pytest.mark.parametrize(
    "text",
    [
        "(NP (DT The) (CD 1\\/2) (NNS dogs))\n( (S (VB Bark) (. .)))",
        "\n(NP (DT The)\n (CD 1\\/2) (NNS dogs))(S (VB Bark)(. .))",
        "The/DT 1\\/2/CD dogs/NNS\n\nBark/VB ./.\n",
        "The_DT 1\\/2_CD dogs_NNS\r\nBark_VB ._.",
        "\n\nThe\tDT\tx\n1\\/2\tCD\ndogs\tNNS\n\n\nBark\tVB\n.\t.\n\n",
    ],
)
def test_forms(text):
    assert read(text) == DOGS


def test_words_alone():
    assert read("The dogs\nBark_VB .\n", tags=False) == [
        [("The", None), ("dogs", None)],
        [("Bark_VB", None), (".", None)],
    ]
    assert read("The\tx\ndogs\n", tags=False) == [[("The", None), ("dogs", None)]]
    assert read("(NN dog)", tags=False) == [[("dog", "NN")]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no sentences"),
        (" \n\n", "holds no sentences"),
        ("\nThe dogs_NNS", "line 2: found 'The'; expected trees in brackets"),
        ("The_DT\ndogs/NNS", "line 2: found 'dogs/NNS'; expected word_TAG"),
        ("The_DT\ndogs_", "line 2: found 'dogs_'; expected word_TAG"),
        ("The\tDT\ndogs", "line 2: found one column"),
        ("The\tDT\nbig dogs\tNNS", "line 2: found the word 'big dogs'"),
        ("The\tDT\ndogs\t", "line 2: found the label ''"),
        ("a_X (_X", "line 1: found the word '\\('"),
        ("(NP (DT the)", "line 1, column 1"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(FileFormatError, match=message):
        read(text)
    if not text.strip():
        with pytest.raises(EmptyFileError):
            read(text, tags=False)


def test_text_that_is_not_utf8():
    with pytest.raises(FileFormatError, match="line 2: found bytes that are not UTF-8"):
        read_sentences(io.BytesIO(b"a_X\n\xff_X"), tags=True)
