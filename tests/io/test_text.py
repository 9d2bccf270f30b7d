"""Whole files: plain, gzip, standard input and output, atomic writing."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import Standard
from maxmargin.errors import FileFormatError
from maxmargin.io import compression as inflate_module
from maxmargin.io.columns import read_columns
from maxmargin.io.crfsuite import read_crfsuite
from maxmargin.io.svmhmm import read_svmhmm
from maxmargin.io.text import name_of, open_for_writing, read_bytes

TEXT = "Größe\n日本\n".encode() * 1000


def test_plain(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(TEXT)
    assert read_bytes(path) == read_bytes(str(path)) == read_bytes(os.fsencode(path)) == TEXT
    with path.open("rb") as file:
        assert read_bytes(file) == TEXT
    with path.open(encoding="utf-8") as file:
        assert read_bytes(file) == TEXT
    assert read_bytes(io.BytesIO(b"")) == b""


def test_the_mark_of_utf8_stays(tmp_path):
    assert read_bytes(io.BytesIO(b"\xef\xbb\xbfx")) == b"\xef\xbb\xbfx"


@pytest.mark.parametrize("name", ["x.gz", "x", "x.txt"])
def test_gzip_by_content(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT))
    assert read_bytes(path) == TEXT
    assert read_bytes(io.BytesIO(path.read_bytes())) == TEXT


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.integers(0, 20))
def test_gzip_of_several_members(parts, zeros):
    data = b"".join(gzip.compress(part) for part in parts) + b"\0" * zeros
    whole = b"".join(parts)
    if not whole.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        assert read_bytes(io.BytesIO(data)) == whole


def test_large_members():
    part = os.urandom(3 << 20)  # longer than a piece
    data = gzip.compress(b"a" + part, 0) + gzip.compress(part, 0) + gzip.compress(b"z")
    assert read_bytes(io.BytesIO(data)) == b"a" + part + part + b"z"


def test_broken_gzip(tmp_path):
    good = gzip.compress(os.urandom(1000))
    path = tmp_path / "x.gz"
    for data, message in [
        (good[:-1], "the gzip stream is cut short after"),
        (good[:20], "cut short"),
        (good[:2], "cut short"),
        (good + good[:-1], "cut short"),
        (good + b"junk", "damaged"),
        (good[:-8] + b"\0\0\0\0" + good[-4:], "damaged"),
        (good[:300] + b"\0" * 40 + good[340:], "damaged"),
        (b"\x1f\x8b\x00junk", "damaged"),
        (b"plain", "ends with .gz but does not begin as a gzip file does"),
        (b"", "ends with .gz but does not begin as a gzip file does"),
    ]:
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match=re.escape(f"{path}: ") + ".*" + message):
            read_bytes(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_encodings(encoding, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffA\tx\n".encode(encoding))
    name = encoding[:6].upper()
    with pytest.raises(
        FileFormatError, match=re.escape(f"{path}: looks like {name}; expected text in UTF-8")
    ):
        read_crfsuite(path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.txt"):
        read_bytes(tmp_path / "nothing.txt")
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)
    with pytest.raises(TypeError, match="found int; expected a path"):
        read_bytes(3)

    class Odd:
        def read(self):
            return 3

    with pytest.raises(TypeError, match=r"read\(\) returned int; expected bytes"):
        read_bytes(Odd())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(PermissionError):
        read_bytes(path)


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT)], ids=["plain", "gzip"])
def test_standard_input(data, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Standard(data))
    assert read_bytes("-") == TEXT


def test_odd_standard_inputs(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Größe"))
    assert read_bytes("-") == "Größe".encode()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="standard input is closed"):
        read_bytes("-")


def test_items_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Standard(b"A\tx\n"))
    assert read_crfsuite("-").labels() == [["A"]]
    monkeypatch.setattr(sys, "stdin", Standard(b"A\tx:y\n"))
    with pytest.raises(FileFormatError, match="standard input: line 1: found"):
        read_crfsuite("-")


def test_names(tmp_path):
    assert name_of("-") == "standard input"
    assert name_of("a/b") == name_of(b"a/b") == name_of(Path("a/b")) == "a/b"
    assert name_of(io.BytesIO()) == "the given file"
    with (tmp_path / "x").open("wb") as file:
        assert name_of(file) == str(tmp_path / "x")


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
@pytest.mark.parametrize("text", [False, True])
def test_writing(name, text, tmp_path):
    path = tmp_path / name
    for _ in range(2):
        with open_for_writing(path, text=text) as file:
            file.write(TEXT.decode() if text else TEXT)
            assert len(list(tmp_path.iterdir())) <= 2
        assert [p.name for p in tmp_path.iterdir()] == [name]
        assert read_bytes(path) == TEXT
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_the_same_gzip_every_time(tmp_path, monkeypatch):
    contents = []
    for k, name in enumerate(["a.gz", "b.gz"]):
        monkeypatch.setattr("time.time", lambda k=k: 1e9 + k)
        with open_for_writing(tmp_path / name) as file:
            file.write(TEXT)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert zlib.decompress(contents[0], 31) == TEXT


def write_and_fail(path, text, error):
    with open_for_writing(path, text=text) as file:
        file.write("new" if text else b"new")
        raise error


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("text", [False, True])
def test_a_failure_leaves_the_old_file(name, error, text, tmp_path):
    path = tmp_path / name
    for old in [None, b"old"]:
        if old is not None:
            path.write_bytes(old)
        with pytest.raises(error):
            write_and_fail(path, text, error)
        assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


def test_modes_and_links(tmp_path):
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with open_for_writing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with open_for_writing(tmp_path / "fresh") as file:
        file.write(b"x")
    (tmp_path / "usual").write_bytes(b"x")
    assert (tmp_path / "fresh").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_where_nothing_can_be_written(tmp_path):
    missing = tmp_path / "no" / "x.txt"
    with pytest.raises(FileNotFoundError) as caught, open_for_writing(missing):
        pass
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError), open_for_writing(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_devices():
    with open_for_writing(os.devnull) as file:
        file.write(b"x")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("text", [False, True])
def test_standard_output(text, monkeypatch):
    out = Standard()
    monkeypatch.setattr(sys, "stdout", out)
    with open_for_writing("-", text=text) as file:
        file.write("é\n" if text else "é\n".encode())
    assert out.buffer.getvalue() == "é\n".encode()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="standard output is closed"), open_for_writing("-"):
        pass


def test_an_open_file_stays_open():
    file = io.BytesIO()
    with open_for_writing(file, text=True) as layer:
        layer.write("x")
    file.write(b"y")
    assert file.getvalue() == b"xy"


# --- gzip bombs ---------------------------------------------------------------------------------


def bomb(size, members=1):
    return gzip.compress(b"a\tN\n" * (size // 4 // members), mtime=0) * members


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(inflate_module, "LEAST_INFLATED", 50_000)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("members", [1, 2, 100])
def test_a_gzip_bomb_is_refused(tmp_path, members):
    path = tmp_path / "bomb.gz"
    path.write_bytes(bomb(40_000_000, members))
    kept = inflate_module.MOST_EXPANSION * path.stat().st_size
    message = rf"^{re.escape(str(path))}: the gzip stream of .* inflates to more than .*inflated"
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=message):
            read_bytes(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < kept + 5_000_000


@pytest.mark.usefixtures("small_limit")
def test_a_limit_is_what_may_just_be_reached():
    data = bomb(4_000_000)
    for limit in (4_000_000, 10**12):
        assert len(read_bytes(io.BytesIO(data), max_inflated=limit)) == 4_000_000
    for limit in (3_999_999, 1, 0, None):
        with pytest.raises(FileFormatError, match=r"if that is meant, raise the limit"):
            read_bytes(io.BytesIO(data), max_inflated=limit)
    assert read_bytes(io.BytesIO(gzip.compress(b"")), max_inflated=0) == b""


@pytest.mark.parametrize("wrong", [-1, 2.5, "4G", True])
def test_a_limit_that_is_none(wrong):
    with pytest.raises(ValueError, match=r"^max_inflated is .*; expected None or a number"):
        read_bytes(io.BytesIO(bomb(4)), max_inflated=wrong)


@pytest.mark.usefixtures("small_limit")
def test_readers_take_a_limit():
    crfsuite = gzip.compress(b"A\tx\n" * 100_000)
    svmhmm = gzip.compress(b"A qid:1 1:1\n" * 100_000)
    readers = [
        (read_columns, bomb(400_000)),
        (read_crfsuite, crfsuite),
        (read_svmhmm, svmhmm),
    ]
    for read, data in readers:
        with pytest.raises(FileFormatError, match="max_inflated=BYTES"):
            read(io.BytesIO(data))
        assert len(read(io.BytesIO(data), max_inflated=2_000_000)) == 1


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, 1 << 25])
def test_sizes_around_a_step(size):
    # Output may be left within zlib when all of the input is taken.
    data = gzip.compress(bytes(size), compresslevel=1, mtime=0)
    assert read_bytes(io.BytesIO(data)) == bytes(size)
    with pytest.raises(FileFormatError, match="cut short"):
        read_bytes(io.BytesIO(data[:-1]))
