"""Column files: where they come from, what they look like, what messages say."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys

import pytest

from kit import Standard
from maxmargin.errors import FileFormatError
from maxmargin.io.columns import parse_columns, read_columns

TEXT = "the\tDT\nGröße\tNN\n\n日本\tNNP\n".encode()
ROWS = [[["the", "DT"], ["Größe", "NN"]], [["日本", "NNP"]]]


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT)], ids=["plain", "gzip"])
def test_where_files_come_from(data, tmp_path, monkeypatch):
    path = tmp_path / ("x.txt" if data == TEXT else "x.txt.gz")
    path.write_bytes(data)
    for given in (path, str(path), os.fsencode(path)):
        table = read_columns(given)
        assert table.rows() == ROWS
        assert table.source == str(path)
    with path.open("rb") as file:
        assert read_columns(file).source == str(path)
    table = read_columns(io.BytesIO(data))
    assert (table.rows(), table.source) == (ROWS, "the given file")
    monkeypatch.setattr(sys, "stdin", Standard(data))
    table = read_columns("-")
    assert (table.rows(), table.source) == (ROWS, "standard input")


def test_standard_input_of_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT.decode()))
    assert read_columns("-").rows() == ROWS
    monkeypatch.setattr(sys, "stdin", Standard(b"a b\nc\n"))
    with pytest.raises(FileFormatError, match=r"^standard input: line 2: found 1 column"):
        read_columns("-")
    monkeypatch.setattr(sys, "stdin", Standard())
    with pytest.raises(FileFormatError, match=r"^standard input: holds no tokens"):
        read_columns("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match=r"standard input is closed"):
        read_columns("-")


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.txt"):
        read_columns(tmp_path / "nothing.txt")
    with pytest.raises(IsADirectoryError):
        read_columns(tmp_path)
    with pytest.raises(TypeError, match=r"found int; expected a path"):
        read_columns(3)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"\r\n \t\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"# only\n# comments\n"],
)
def test_files_without_tokens(data, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as caught:
        read_columns(path, comment="#")
    assert str(caught.value) == f"{path}: holds no tokens; expected one a line"


def test_an_empty_file_inside_gzip(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(FileFormatError, match=r"holds no tokens"):
        read_columns(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"a b\n\nc\n",
            "line 3: found 1 column (separated by spaces); expected 2, as in line 1",
        ),
        (
            b"# x\na\tb\n# y\nc\td\te\n",
            "line 4: found 3 columns (separated by tabs); expected 2, as in line 2",
        ),
        (
            b"a b\nc \xe4\n",
            "line 2: byte 3 is 0xe4, which is not UTF-8 there; expected UTF-8 text, or the name of "
            "its encoding, such as latin-1 (--encoding; in Python, encoding=)",
        ),
        (
            b"a\tb\r\nc d\r\n",
            "line 2: found 1 column (separated by tabs); expected 2, as in line 1",
        ),
    ],
)
@pytest.mark.parametrize("compress", [False, True])
def test_messages_name_file_and_line(data, message, compress, tmp_path):
    path = tmp_path / "my.txt"
    path.write_bytes(gzip.compress(data) if compress else data)
    with pytest.raises(FileFormatError) as caught:
        read_columns(path, comment="#")
    assert str(caught.value) == f"{path}: {message}"
    assert caught.value.__cause__ is None
    assert isinstance(caught.value, ValueError)


def test_other_encodings(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffa b\n".encode("utf-16-le"))
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: looks like UTF-16")):
        read_columns(path)


def test_a_mark_and_carriage_returns():
    data = "\ufeffa b\r\n\r\nc d".encode()
    assert read_columns(io.BytesIO(data)).rows() == [[["a", "b"]], [["c", "d"]]]


@pytest.mark.parametrize(
    ("separator", "rows"),
    [
        ("auto", [[["a b", "c"], ["d", "e"]]]),
        ("tab", [[["a b", "c"], ["d", "e"]]]),
        ("space", "line 2: found 2 columns (separated by spaces); expected 3, as in line 1"),
    ],
)
def test_separators(separator, rows):
    data = b"a b\tc\nd\te\n"
    if isinstance(rows, list):
        assert read_columns(io.BytesIO(data), separator=separator).rows() == rows
    else:
        with pytest.raises(FileFormatError, match=re.escape(f"the given file: {rows}")):
            read_columns(io.BytesIO(data), separator=separator)


def test_unknown_separator():
    message = "separator is 'comma'; expected \"auto\", \"tab\" or \"space\""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as caught:
        read_columns(io.BytesIO(b"a,b\n"), separator="comma")
    assert not isinstance(caught.value, FileFormatError)  # the file is not to blame


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        (None, ["#", "##x", "-x", "a"]),
        ("", ["#", "##x", "-x", "a"]),
        ("#", ["-x", "a"]),
        ("##", ["#", "-x", "a"]),
        ("-", ["#", "##x", "a"]),
    ],
)
def test_comments(comment, words):
    table = read_columns(io.BytesIO(b"#\n##x\n-x\na\n"), comment=comment)
    assert table.rows() == [[[w] for w in words]]  # comments do not end a sequence


def test_parts_of_a_file():
    table = parse_columns(b"a b\n", "x.txt", n_columns=2, first_line=50)
    assert table.native.line_of(0) == 50
    with pytest.raises(FileFormatError, match=r"^x\.txt: line 50: found 2 .*; expected 3$"):
        parse_columns(b"a b\n", "x.txt", n_columns=3, first_line=50)


def test_carriage_returns_alone_are_no_line_ends(tmp_path):
    path = tmp_path / "mac.tsv"
    path.write_bytes(b"dogs\tN\rbark\tV\r\rcats\tN\r")
    with pytest.raises(FileFormatError, match=r"mac\.tsv: its lines end with carriage returns"):
        read_columns(path)
    path.write_bytes(b"dogs\tN\r")  # one line, the end of which was cut
    assert len(read_columns(path)) == 1
