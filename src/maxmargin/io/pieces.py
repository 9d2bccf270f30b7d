"""Files of sequences that are read in pieces of whole sequences, however large they are.

A piece is a text that `maxmargin.io.columns.parse_columns` or the parser of item files takes as a
file of its own; its first line is known, so that messages name the line of the file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from maxmargin.io.compression import checked_compression, inflated, inflated_limit
from maxmargin.io.stream import SequenceCutter
from maxmargin.io.text import (
    PathOrFile,
    Utf8Decoder,
    bytes_of,
    name_of,
    opened_for_reading,
    refuse_foreign,
)

__all__ = [
    "QidCutter",
    "TextPiece",
    "single_sequences",
    "text_chunks",
    "text_pieces",
    "text_share",
]

#: Bytes of a file that are read at a time.
CHUNK = 1 << 18


class TextPiece(NamedTuple):
    """Some sequences of a file.

    Attributes
    ----------
    text : bytes
        Their lines.
    first_line : int
        The number of the first of them in the file.
    """

    text: bytes
    first_line: int


class Cutter(Protocol):
    """What cuts a stream behind whole sequences; `SequenceCutter` does so at blank lines."""

    def add(self, chunk: bytes) -> bytes:
        """Take more of the stream, give back whole sequences."""

    def rest(self) -> bytes:
        """Give back all that is held."""


class QidCutter:
    r"""Cuts SVM^hmm files, in which another qid begins a sequence.

    Examples
    --------
    >>> cutter = QidCutter()
    >>> cutter.add(b"N qid:1 1:1\nV qid:1 2:1\nN qid:2 1:1\nV q")
    b'N qid:1 1:1\nV qid:1 2:1\n'
    >>> cutter.rest()
    b'N qid:2 1:1\nV q'
    """

    _QID = re.compile(rb"^[ \t]*[^ \t\n#][^ \t\n]*[ \t]+(qid:[^ \t\r\n]*)[^\n]*\n", re.MULTILINE)

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, chunk: bytes) -> bytes:
        """Take more of the stream; return what is held before its last qid."""
        self._held += chunk
        end = self._held.rfind(b"\n") + 1
        cut, last = 0, None
        for match in self._QID.finditer(bytes(self._held[:end])):
            if last is not None and match[1] != last:
                cut = match.start()
            last = match[1]
        return self._take(cut)

    def rest(self) -> bytes:
        """Return all that is held, because the stream has ended."""
        return self._take(len(self._held))

    def _take(self, n: int) -> bytes:
        piece = bytes(self._held[:n])
        del self._held[:n]
        return piece


def _raw_chunks(path: PathOrFile) -> Iterator[bytes]:
    """Read a file as it is, some bytes at a time."""
    with opened_for_reading(path) as file:
        while data := file.read(CHUNK):
            yield bytes_of(data, path)


def text_chunks(
    path: PathOrFile, *, max_inflated: int | None = None, encoding: str | None = None
) -> Iterator[bytes]:
    """Read a text, some bytes at a time; compressed files are recognised.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times what was read of it, and at
        least 256 MB.
    encoding : str or None
        Of the text; None: UTF-8.

    Yields
    ------
    bytes
        Text in UTF-8, as far as the first bytes show if no encoding was given.

    Raises
    ------
    OSError
        If the file is not there or cannot be read.
    FileFormatError
        If a compressed stream is damaged, or the text is in another encoding.
    """
    name = name_of(path)
    first, texts = _begun(_raw_chunks(path))
    kind = checked_compression(first, name)
    if kind is not None:
        raw = itertools.chain([first], texts)
        first, texts = _begun(
            inflated(raw, name, kind, lambda n: inflated_limit(n, max_inflated), CHUNK)
        )
    if encoding in (None, "utf-8"):
        refuse_foreign(first, name)
        yield first
        yield from texts
        return
    assert encoding is not None
    decoder = Utf8Decoder(encoding, name)
    for text in itertools.chain([first], texts):
        if text:  # nothing is the end
            yield decoder.add(text)
    yield decoder.add(b"")


def _begun(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return enough bytes to tell what a file is, and what follows them."""
    first = b""
    for chunk in chunks:  # a pipe may give one byte at a time
        first += chunk
        if len(first) >= 16:
            break
    return first, chunks


def text_pieces(
    path: PathOrFile,
    n_bytes: int,
    *,
    cutter: Cutter | None = None,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> Iterator[TextPiece]:
    """Read a file of sequences in pieces.

    Parameters
    ----------
    path, max_inflated, encoding
        As for `text_chunks`.
    n_bytes : int
        About so many bytes make a piece; more where a sequence is longer.
    cutter : object or None
        What knows where sequences end; None: blank lines do that.

    Yields
    ------
    TextPiece
        Whole sequences.
    """
    cutter = SequenceCutter() if cutter is None else cutter
    held: list[bytes] = []
    size, line = 0, 1
    for chunk in text_chunks(path, max_inflated=max_inflated, encoding=encoding):
        part = cutter.add(chunk)
        held.append(part)
        size += len(part)
        if size >= n_bytes:
            text = b"".join(held)
            yield TextPiece(text, line)
            held, size, line = [], 0, line + text.count(b"\n")
    text = b"".join([*held, cutter.rest()])
    if text:
        yield TextPiece(text, line)


def single_sequences(piece: TextPiece, *, qids: bool = False) -> Iterator[TextPiece]:
    """Cut a piece into its sequences.

    Parameters
    ----------
    piece : TextPiece
        Some sequences.
    qids : bool
        Whether it is of an SVM^hmm file; else blank lines end sequences.

    Yields
    ------
    TextPiece
        One sequence, as far as the ends of sequences can be told.
    """
    line = piece.first_line
    cutter: Cutter = QidCutter() if qids else SequenceCutter()
    for text in piece.text.splitlines(keepends=True):
        whole = cutter.add(text)
        if whole:
            yield TextPiece(whole, line)
            line += whole.count(b"\n")
    whole = cutter.rest()
    if whole:
        yield TextPiece(whole, line)


def text_share(
    path: PathOrFile,
    n_bytes: int,
    part: tuple[int, int],
    *,
    qids: bool = False,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> Iterator[TextPiece]:
    """Read a share of a file: the sequences that begin in the k-th of K equal parts of its text.

    The file is read twice, because it may be compressed: once for its length.

    Parameters
    ----------
    path, n_bytes, max_inflated, encoding
        As for `text_pieces`.
    part : (int, int)
        k and K, with 0 <= k < K. The shares of all k, one after the other, are the file.
    qids : bool
        Whether it is an SVM^hmm file; else blank lines end sequences.

    Yields
    ------
    TextPiece
        Whole sequences.
    """
    k, K = part
    total = sum(map(len, text_chunks(path, max_inflated=max_inflated, encoding=encoding)))
    first, last = total * k // K, total * (k + 1) // K
    at = 0
    cutter = QidCutter() if qids else None
    for piece in text_pieces(
        path, n_bytes, cutter=cutter, max_inflated=max_inflated, encoding=encoding
    ):
        end = at + len(piece.text)
        if first <= at and end <= last:
            yield piece
        elif end > first and at < last:
            for one in single_sequences(piece, qids=qids):
                if first <= at < last:
                    yield one
                at += len(one.text)
        at = end
        if at >= last:
            return
