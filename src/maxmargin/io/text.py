"""Whole files as bytes: plain or gzip, standard input and output; atomic writing."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, overload

from maxmargin.errors import FileFormatError
from maxmargin.io.atomic import replacing
from maxmargin.io.inflate import GZIP, inflated, inflated_limit

__all__ = ["PathOrFile", "name_of", "open_for_writing", "read_bytes", "refuse_foreign"]

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


def _read(path: PathOrFile) -> bytes:
    if isinstance(path, str | bytes | os.PathLike):
        name = os.fsdecode(path)
        if name != "-":
            return Path(name).read_bytes()
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
    data = file.read()
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(
            f"{name_of(path)}: read() returned {type(data).__name__}; expected bytes"
        )
    return bytes(data)


def _decompress(data: bytes, name: str, max_inflated: int | None) -> bytes:
    """Decompress a gzip file of one or more members."""
    limit = inflated_limit(len(data), max_inflated)
    return b"".join(inflated([data], name, lambda _: limit))


def read_bytes(path: PathOrFile, *, max_inflated: int | None = None) -> bytes:
    """Read a whole file and decompress it if need be.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input. What begins as gzip does, or is called ``.gz``, is decompressed.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB,
        which no real text meets.

    Returns
    -------
    bytes
        Text in UTF-8 as far as the first bytes show; the rest is not looked at.

    Raises
    ------
    OSError
        If the file is not there or cannot be read.
    FileFormatError
        If a gzip stream is damaged, cut short or becomes too large, or if the text is UTF-16 or
        UTF-32.
    """
    name = name_of(path)
    data = _read(path)
    if data.startswith(GZIP):
        data = _decompress(data, name, max_inflated)
    elif name.endswith(".gz"):
        raise FileFormatError(
            f"{name}: ends with .gz but does not begin as a gzip file does; "
            "expected gzip, or another name"
        )
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
    for mark, encoding in _FOREIGN:
        if data.startswith(mark):
            raise FileFormatError(f"{name}: looks like {encoding}; expected text in UTF-8")


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
        "-" is standard output. A name that ends with ``.gz`` is compressed, without a time stamp:
        the same content gives the same file.
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
        with _writer(path, compress=False, text=text) as file:
            yield file
        return
    name = os.fsdecode(path)
    if name == "-":
        if sys.stdout is None:
            raise OSError("standard output is closed; expected a file")
        with _writer(sys.stdout.buffer, compress=False, text=text) as file:
            yield file
        return
    compress = name.endswith(".gz")
    try:
        special = not stat.S_ISREG(Path(name).stat().st_mode)
    except FileNotFoundError:
        special = False
    with (
        Path(name).open("wb") if special else replacing(name) as raw,
        _writer(raw, compress, text) as file,
    ):
        yield file


@contextlib.contextmanager
def _writer(raw: IO[bytes], compress: bool, text: bool) -> Iterator[IO[Any]]:
    """Layers above an open file, which is flushed and left open."""
    with contextlib.ExitStack() as stack:
        file: Any = raw
        if compress:
            file = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
            stack.enter_context(file)
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
