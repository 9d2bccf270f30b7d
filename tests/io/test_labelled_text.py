"""Lines of a label and a text."""

from __future__ import annotations

import gzip
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.labelled_text import read_labelled_text, write_labelled_text
from real_data import data_file

SAMPLE = "a/b\tSome  text\twith a tab\n\nc d\t\n \t \n e \t x \n"


def read(text, *args, **kwargs):
    return read_labelled_text(io.BytesIO(text.encode()), *args, **kwargs)


def test_texts_and_labels():
    assert read(SAMPLE) == (["Some  text\twith a tab", "", " x "], ["a/b", "c d", "e"])
    assert read("1 ;x;y", separator=";") == (["x;y"], ["1"])


def test_characters_that_look_like_ends_of_lines_belong_to_the_text():
    assert read("a\tx\u2028y\x85z\x0b!\n") == (["x\u2028y\x85z\x0b!"], ["a"])


@pytest.mark.parametrize(
    "text", ["\ufeff" + SAMPLE, SAMPLE.replace("\n", "\r\n"), SAMPLE.rstrip("\n")]
)
def test_the_same_file_otherwise_written(text):
    assert read(text) == read(SAMPLE)


def test_without_labels():
    text = "only text here\nx\tbehind a tab\ta\n\n\tnothing before it\n"
    assert read(text, truths=False) == (
        ["only text here", "behind a tab\ta", "nothing before it"],
        None,
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\tx\n\nb x\n", "line 3: found no separator '\\t' in 'b x'; expected a label"),
        (b"a\tx\n \tb x\n", "line 2: found no label before the separator '\\t'"),
        (b"a\tx\n\xff\tb\n", "line 2: found bytes that are not UTF-8"),
    ],
)
def test_bad_input(tmp_path, data, message):
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: {message}")):
        read_labelled_text(path)


@pytest.mark.parametrize("data", [b"", b"\n \n\t\n"])
@pytest.mark.parametrize("truths", [True, False])
def test_nothing(data, truths):
    with pytest.raises(EmptyFileError, match="no documents"):
        read_labelled_text(io.BytesIO(data), truths)


@pytest.mark.parametrize("separator", ["", "\n", None])
def test_bad_separators(separator):
    with pytest.raises(ValueError, match="separator is"):
        read("a\tb", separator=separator)


characters = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"))


@given(
    st.lists(
        st.tuples(
            characters.map(lambda s: s.replace("\t", "").strip().lstrip("\ufeff").strip()).filter(
                lambda s: s and not s.startswith("\ufeff")
            ),
            characters,
        ),
        min_size=1,
    )
)
def test_round_trip(documents):
    labels, texts = (list(part) for part in zip(*documents, strict=True))
    out = io.BytesIO()
    write_labelled_text(out, labels, texts)
    assert read_labelled_text(io.BytesIO(out.getvalue())) == (texts, labels)


@pytest.mark.parametrize(
    ("label", "text", "message"),
    [
        ("", "x", "document 1: found the label ''"),
        (" a", "x", "document 1: found the label"),
        ("a\tb", "x", "document 1: found the label"),
        ("a\nb", "x", "document 1: found the label"),
        ("a", "x\ny", "document 1: found an end of line"),
        ("a", "x\r", "document 1: found an end of line"),
    ],
)
def test_what_cannot_be_written(tmp_path, label, text, message):
    path = tmp_path / "x.txt"
    with pytest.raises(ValueError, match=message):
        write_labelled_text(path, ["a", label], ["x", text])
    assert not path.exists()


def test_a_separator_whose_beginning_ends_a_label_is_refused():
    with pytest.raises(ValueError, match="found the label 'a:'"):
        write_labelled_text(io.BytesIO(), ["a:"], ["x"], "::")


def test_as_many_labels_as_texts(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        write_labelled_text(tmp_path / "x", ["a"], ["x", "y"])


@pytest.mark.data
def test_the_newsgroups(tmp_path):
    path = data_file("newsgroups_taxonomy/train.txt.gz")
    texts, labels = read_labelled_text(path)
    assert len(texts) == 4800
    assert len(set(labels)) == 20
    write_labelled_text(tmp_path / "again.txt.gz", labels, texts)
    with gzip.open(path) as old, gzip.open(tmp_path / "again.txt.gz") as new:
        assert old.read() == new.read()
