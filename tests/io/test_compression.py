"""Compressed files of every kind: round trips, damage, bombs, names that say something else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import FileFormatError, NotCompatibleError
from maxmargin.io import compression
from maxmargin.io.compression import COMPRESSIONS, compression_of, inflate, plain_name
from maxmargin.io.text import open_for_writing, read_bytes

zstandard = pytest.importorskip("zstandard")

TEXT = "Größe\n日本\n".encode() * 1000
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
ENDINGS = list(COMPRESS)


def test_every_kind_is_tried():
    assert [kind.ending for kind in COMPRESSIONS] == [".gz", ".bz2", ".xz", ".zst"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_recognised_by_content(ending, tmp_path):
    for name in (f"x{ending}", "x", "x.txt"):
        path = tmp_path / name
        path.write_bytes(COMPRESS[ending](TEXT))
        assert read_bytes(path) == TEXT


@pytest.mark.parametrize("ending", ENDINGS)
@given(parts=st.lists(st.binary(max_size=50), min_size=1, max_size=4))
def test_streams_end_to_end(ending, parts):
    data = b"".join(map(COMPRESS[ending], parts))
    assert inflate(data, "x") == b"".join(parts)


@pytest.mark.parametrize("ending", ENDINGS)
def test_written_files_are_read(ending, tmp_path):
    path = tmp_path / f"x.tsv{ending}"
    for text in (True, False):
        with open_for_writing(path, text=text) as file:
            file.write(TEXT.decode() if text else TEXT)
        assert compression_of(path.read_bytes()[:16]).ending == ending
        assert read_bytes(path) == TEXT
    first = path.read_bytes()
    with open_for_writing(path) as file:
        file.write(TEXT)
    assert path.read_bytes() == first  # without a time stamp


@pytest.mark.parametrize("ending", ENDINGS)
def test_large_streams(ending):
    part = os.urandom(5 << 18)  # longer than a piece
    data = COMPRESS[ending](b"a" + part) + COMPRESS[ending](part)
    assert inflate(data, "x") == b"a" + part + part


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_cut_is_noticed(ending):
    good = COMPRESS[ending](os.urandom(300))
    for n in range(16, len(good)):
        with pytest.raises(FileFormatError, match=r"x: the \w+ stream is (cut short|damaged)"):
            inflate(good[:n], "x")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("junk", [b"junk", b"\0junk", b"\x1f\x8b"])
def test_junk_behind_the_end_is_noticed(ending, junk):
    with pytest.raises(FileFormatError, match=r"damaged|cut short"):
        inflate(COMPRESS[ending](b"x") + junk, "x")


@pytest.mark.parametrize("ending", ENDINGS)
def test_names_that_say_something_else(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    for data in (b"plain", b""):
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match=re.escape(f"ends with {ending} but does not")):
            read_bytes(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_bombs(ending, monkeypatch):
    data = COMPRESS[ending](b"\0" * (50 << 20))
    assert len(data) < 1 << 20
    monkeypatch.setattr(compression, "LEAST_INFLATED", 1 << 20)
    monkeypatch.setattr(compression, "MOST_EXPANSION", 2)
    with pytest.raises(FileFormatError, match=r"inflates to more than .*--max-inflated"):
        inflate(data, "x")
    assert len(inflate(data, "x", 50 << 20)) == 50 << 20
    with pytest.raises(FileFormatError, match="inflates to more than"):
        inflate(data, "x", (50 << 20) - 1)


def test_a_bomb_of_zstandard_does_not_fill_the_memory():
    data = COMPRESS[".zst"](b"\0" * (300 << 20))
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="inflates to more"):
        inflate(data, "x", 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def test_windows_of_any_size_are_refused(monkeypatch):
    big = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}])
    with pytest.raises(FileFormatError, match="xz stream is damaged"):
        inflate(big, "x")
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    large = compressor.compress(b"x") + compressor.flush()
    assert inflate(large, "x") == b"x"
    monkeypatch.setattr(compression, "MOST_WINDOW", 1 << 20)
    with pytest.raises(FileFormatError, match="zstd stream is damaged"):
        inflate(large, "x")


def test_a_text_that_begins_like_bzip2(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"BZh9 is a word\n")
    assert read_bytes(path) == b"BZh9 is a word\n"


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "x.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00\x78")
    with pytest.raises(NotCompatibleError, match=re.escape("x.zst: files of Zstandard need")):
        read_bytes(path)
    with pytest.raises(NotCompatibleError, match="zstandard"), open_for_writing(path) as file:
        file.write(b"x")
    assert path.read_bytes().startswith(b"\x28\xb5\x2f\xfd")  # as it was


def test_plain_names():
    assert [plain_name(f"a.tsv{end}") for end in ENDINGS] == ["a.tsv"] * 4
    assert plain_name("a.tsv") == "a.tsv"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "koi8-r"])
def test_encodings(encoding):
    words = "слово\tA\n" if encoding == "koi8-r" else "Größe\tA\n"
    data = words.encode(encoding)
    assert read_bytes(io.BytesIO(data), encoding=encoding) == words.encode()


def test_bad_encodings():
    with pytest.raises(ValueError, match="found the encoding 'klingon'; expected one that Python"):
        read_bytes(io.BytesIO(b""), encoding="klingon")
    with pytest.raises(ValueError, match="expected one that Python knows"):
        read_bytes(io.BytesIO(b""), encoding="base64")
    with pytest.raises(FileFormatError, match="line 2: found the bytes 81; expected text in"):
        read_bytes(io.BytesIO(b"a\n\x81"), encoding="cp1252")
    with pytest.raises(FileFormatError, match=r"looks like UTF-16.*--encoding utf-16"):
        read_bytes(io.BytesIO("x".encode("utf-16")))
