"""What ``maxmargin tag`` reads and writes: streams of any compression and encoding, as UTF-8."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxmargin.cli.console import NO_INPUT
from maxmargin.printable import quoted

__all__ = ["CHUNK", "encoder_of", "opened", "pieces"]

#: Bytes that are read at a time; a pipe may give less.
CHUNK = 1 << 20


def opened(path: str, options: argparse.Namespace) -> Any:
    """Open a file for reading text in UTF-8 as it comes in.

    A file that is compressed is read as a whole.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    options : argparse.Namespace
        With ``encoding`` and ``max_inflated``.

    Returns
    -------
    context manager
        It gives a binary file.
    """
    from pathlib import Path

    from maxmargin.io.compression import compression_named, compression_of
    from maxmargin.io.text import name_of, read_bytes

    foreign = options.encoding not in (None, "utf-8")
    if path == "-":
        if sys.stdin is None:
            raise OSError(NO_INPUT)
        pipe: Any = sys.stdin.buffer
        # peek waits until something is there, and takes nothing away
        begin = pipe.peek(16) if hasattr(pipe, "peek") else b""
        if compression_of(begin[:16]) is None:
            stream: Any = contextlib.nullcontext(pipe)
            return _Utf8(pipe, options.encoding, name_of(path)) if foreign else stream
    elif compression_named(path) is None:
        with Path(path).open("rb") as file:
            begin = file.read(16)
        if compression_of(begin) is None and not foreign:
            return Path(path).open("rb")
    return io.BytesIO(
        read_bytes(path, max_inflated=options.max_inflated, encoding=options.encoding)
    )


class _Utf8:
    """A stream of another encoding, as one of UTF-8; a pipe gives what it has."""

    def __init__(self, raw: Any, encoding: str, source: str) -> None:
        from maxmargin.io.text import Utf8Decoder

        self._raw, self._decoder = raw, Utf8Decoder(encoding, source)

    def __enter__(self) -> _Utf8:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, n: int) -> bytes:
        """Return some bytes; none at the end."""
        while True:
            chunk = self._raw.read1(n) if hasattr(self._raw, "read1") else self._raw.read(n)
            data = self._decoder.add(chunk)
            if data or not chunk:
                return data


def pieces(stream: Any) -> Iterator[tuple[bytes, int]]:
    """Cut a stream into pieces of whole sequences, as large as what has come in.

    Parameters
    ----------
    stream : binary file
        The text.

    Yields
    ------
    piece : bytes
        Some sequences.
    line : int
        The number of its first line.
    """
    from maxmargin.io.stream import SequenceCutter

    cutter, line = SequenceCutter(), 1
    while True:
        # A pipe gives what it has, without waiting for more.
        chunk = stream.read1(CHUNK) if hasattr(stream, "read1") else stream.read(CHUNK)
        piece = cutter.add(chunk) if chunk else cutter.rest()
        if piece:
            yield piece, line
            line += piece.count(b"\n")
        if not chunk:
            return


def encoder_of(
    encoding: str | None, labels: Sequence[str], model: str
) -> Callable[[bytes], bytes]:
    """Return what turns pieces of UTF-8 into the encoding of the input.

    Parameters
    ----------
    encoding : str or None
        None: UTF-8.
    labels : sequence of str
        All that may be written besides what was read.
    model : str
        Where they come from, for messages.

    Returns
    -------
    callable
        To be called with the pieces in their order.

    Raises
    ------
    ValueError
        If a label cannot be written in this encoding.
    """
    if encoding in (None, "utf-8"):
        return lambda data: data
    assert encoding is not None
    for label in labels:
        try:
            label.encode(encoding)
        except UnicodeEncodeError:
            raise ValueError(
                f"{model}: the label {quoted(label)} cannot be written in {encoding}; expected "
                "--encoding utf-8, and a file in that"
            ) from None
    encoder = codecs.getincrementalencoder(encoding)()
    return lambda data: encoder.encode(data.decode())
