"""Whole files as bytes: plain or compressed, standard input and output; atomic writing.

Text is UTF-8. What is in another encoding is turned into UTF-8 when it is read.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, overload

from maxmargin.errors import FileFormatError
from maxmargin.io.atomic import replacing
from maxmargin.io.compression import Compression, compression_named, inflate
from maxmargin.printable import quoted

__all__ = [
    "PathOrFile",
    "Utf8Decoder",
    "bytes_of",
    "check_encoding",
    "name_of",
    "open_for_writing",
    "opened_for_reading",
    "read_bytes",
    "refuse_foreign",
    "to_utf8",
]

PathOrFile: TypeAlias = str | bytes | os.PathLike[str] | IO[bytes]

_FOREIGN = (  # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def name_of(path: PathOrFile) -> str:
    """Give the name of a file for messages.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input.
    """
    if isinstance(path, str | bytes | os.PathLike):
        name = os.fsdecode(path)
        return "standard input" if name == "-" else name
    given = getattr(path, "name", None)
    return given if isinstance(given, str) else "the given file"


@contextlib.contextmanager
def opened_for_reading(path: PathOrFile) -> Iterator[Any]:
    """Open a file to be read as bytes; one that the caller opened stays open.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input.

    Yields
    ------
    file
        What it reads is for `bytes_of`.
    """
    if isinstance(path, str | bytes | os.PathLike):
        name = os.fsdecode(path)
        if name != "-":
            with Path(name).open("rb") as own:
                yield own
            return
        if sys.stdin is None:
            raise OSError("standard input is closed; expected a file")
        file: Any = getattr(sys.stdin, "buffer", sys.stdin)
    else:
        file = path
    if not hasattr(file, "read"):
        raise TypeError(
            f"found {type(path).__name__}; expected a path, '-' for standard input, "
            "or a file that is open for reading"
        )
    yield file


def bytes_of(data: Any, path: PathOrFile) -> bytes:
    """Return what ``read()`` of a file returned as bytes; text is encoded.

    Parameters
    ----------
    data : bytes, str or object
        What it returned.
    path : path or binary file
        The file, for messages.
    """
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(
            f"{name_of(path)}: read() returned {type(data).__name__}; expected bytes"
        )
    return bytes(data)


def _read(path: PathOrFile) -> bytes:
    with opened_for_reading(path) as file:
        return bytes_of(file.read(), path)


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding as Python has it.

    Parameters
    ----------
    encoding : str
        Any of its names, such as latin-1, cp1252, utf-16 or koi8-r.

    Returns
    -------
    str
        The name by which the same encodings are the same.

    Raises
    ------
    ValueError
        If there is none of this name, or if it is no encoding of text.
    """
    try:
        info = codecs.lookup(encoding)
    except (LookupError, ValueError, TypeError):
        info = None
    if info is None or not getattr(info, "_is_text_encoding", True):
        raise ValueError(
            f"found the encoding {quoted(encoding)}; expected one that Python knows, such as "
            "utf-8, latin-1, cp1252, utf-16, koi8-r, gb18030 or shift_jis"
        )
    return info.name


def to_utf8(data: bytes, name: str, encoding: str) -> bytes:
    """Turn text of any encoding into UTF-8.

    Parameters
    ----------
    data : bytes
        The text.
    name : str
        What messages call it.
    encoding : str
        As `check_encoding` takes it.

    Returns
    -------
    bytes
        The text in UTF-8.

    Raises
    ------
    FileFormatError
        If the text is not in this encoding; the message names the line.
    """
    encoding = check_encoding(encoding)
    if encoding == "utf-8":
        return data
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        found = data[error.start : max(error.end, error.start + 1)][:4].hex(" ")
        raise FileFormatError(
            f"{name}: line {before.count(chr(10)) + 1}: found the bytes {found}; expected text in "
            f"{encoding}"
        ) from None
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # halves of surrogate pairs, which some encodings let by
        line = text.count("\n", 0, error.start) + 1
        raise FileFormatError(
            f"{name}: line {line}: found {quoted(text[error.start])}; expected text that UTF-8 can "
            "hold"
        ) from None


def read_bytes(
    path: PathOrFile, *, max_inflated: int | None = None, encoding: str | None = None
) -> bytes:
    """Read a whole file and decompress it if need be.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input. What begins as gzip, bzip2, xz or Zstandard does, or is called
        ``.gz``, ``.bz2``, ``.xz`` or ``.zst``, is decompressed.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times its own size, and at least
        256 MB, which no real text meets.
    encoding : str or None
        Of the text. None: UTF-8.

    Returns
    -------
    bytes
        Text in UTF-8 as far as the first bytes show; the rest is not looked at unless there is an
        encoding.

    Raises
    ------
    OSError
        If the file is not there or cannot be read.
    FileFormatError
        If a compressed stream is damaged, cut short or becomes too large, or if the text is in
        another encoding.
    """
    if encoding is not None:
        encoding = check_encoding(encoding)
    name = name_of(path)
    data = inflate(_read(path), name, max_inflated)
    if encoding not in (None, "utf-8"):
        assert encoding is not None
        return to_utf8(data, name, encoding)
    refuse_foreign(data, name)
    return data


def refuse_foreign(data: bytes, name: str) -> None:
    """Refuse text that begins as UTF-16 or UTF-32 does.

    Parameters
    ----------
    data : bytes
        The beginning of a text.
    name : str
        What messages call it.
    """
    for mark, foreign in _FOREIGN:
        if data.startswith(mark):
            raise FileFormatError(
                f"{name}: looks like {foreign}; expected text in UTF-8, or --encoding "
                f"{foreign.lower()} (in Python, encoding={foreign.lower()!r})"
            )


class Utf8Decoder:
    """Turns a text of another encoding into UTF-8, piece by piece.

    Parameters
    ----------
    encoding : str
        As `check_encoding` takes it.
    name : str
        What messages call the text.
    """

    def __init__(self, encoding: str, name: str) -> None:
        self._encoding, self._name = check_encoding(encoding), name
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._line = 1

    def add(self, chunk: bytes) -> bytes:
        """Return more of the text in UTF-8.

        Parameters
        ----------
        chunk : bytes
            What comes next; nothing at the end.
        """
        try:
            text = self._decoder.decode(chunk, final=not chunk)
            data = text.encode()
        except UnicodeError:
            raise FileFormatError(
                f"{self._name}: line {self._line} or soon after it: found bytes that are not "
                f"{self._encoding}; expected text in {self._encoding}"
            ) from None
        self._line += text.count("\n")
        return data


@overload
def open_for_writing(
    path: PathOrFile, *, text: Literal[False] = False
) -> contextlib.AbstractContextManager[IO[bytes]]: ...
@overload
def open_for_writing(
    path: PathOrFile, *, text: Literal[True]
) -> contextlib.AbstractContextManager[IO[str]]: ...
def open_for_writing(
    path: PathOrFile, *, text: bool = False
) -> contextlib.AbstractContextManager[IO[Any]]:
    """Open a file for writing, which appears under its name when all of it is written.

    The bytes go to a temporary file in the same directory, which takes the place of ``path`` at the
    end, or is removed after an exception. Devices and pipes are written to directly.

    Parameters
    ----------
    path : path or binary file
        "-" is standard output. What is called ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed,
        without a time stamp: the same content gives the same file.
    text : bool, default=False
        Whether to write str, which becomes UTF-8 with plain newlines, and not bytes.

    Returns
    -------
    context manager
        It gives the open file.
    """
    return _open_for_writing(path, text)


@contextlib.contextmanager
def _open_for_writing(path: PathOrFile, text: bool) -> Iterator[IO[Any]]:
    if not isinstance(path, str | bytes | os.PathLike):
        with _writer(path, None, text) as file:
            yield file
        return
    name = os.fsdecode(path)
    if name == "-":
        if sys.stdout is None:
            raise OSError("standard output is closed; expected a file")
        with _writer(sys.stdout.buffer, None, text) as file:
            yield file
        return
    compression = compression_named(name)
    try:
        special = not stat.S_ISREG(Path(name).stat().st_mode)
    except FileNotFoundError:
        special = False
    with (
        Path(name).open("wb") if special else replacing(name) as raw,
        _writer(raw, compression, text) as file,
    ):
        yield file


@contextlib.contextmanager
def _writer(
    raw: IO[bytes], compression: Compression | None, text: bool
) -> Iterator[IO[Any]]:
    """Layers above an open file, which is flushed and left open."""
    with contextlib.ExitStack() as stack:
        file: Any = raw
        if compression is not None:
            file = stack.enter_context(compression.writer(raw))
        if text:
            wrapper = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            try:
                yield wrapper
                wrapper.flush()
            finally:
                # Or it would close the file below it when it is collected.
                with contextlib.suppress(ValueError, OSError):
                    wrapper.detach()
        else:
            yield file
    raw.flush()
