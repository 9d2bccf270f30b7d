"""Gzip streams, inflated piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

from maxmargin.errors import FileFormatError
from maxmargin.memory import format_bytes

__all__ = ["GZIP", "inflated", "inflated_limit"]

#: What a gzip stream begins with.
GZIP = b"\x1f\x8b"
#: What a gzip file may become without anybody's leave: so many bytes, or so many times its size.
#: Text becomes 3 to 30 times as long; a gzip bomb, up to 1032 times.
LEAST_INFLATED = 256_000_000
MOST_EXPANSION = 100

# What follows the end of a gzip member is handed back as a copy: pieces keep the copies small.
_PIECE = 1 << 20
_MOST_AT_ONCE = 16 << 20  # bytes that are inflated at a time


def inflated_limit(n_compressed: int, max_inflated: int | None) -> int:
    """Return how many bytes a gzip file of so many bytes may become.

    Parameters
    ----------
    n_compressed : int
        Its size.
    max_inflated : int or None
        What the user allows; None: 100 times the size, and at least 256 MB.

    Returns
    -------
    int
        Bytes.
    """
    if max_inflated is None:
        return max(LEAST_INFLATED, MOST_EXPANSION * n_compressed)
    if isinstance(max_inflated, bool) or not isinstance(max_inflated, int) or max_inflated < 0:
        raise ValueError(
            f"max_inflated is {max_inflated!r}; expected None or a number of bytes, at least 0"
        )
    return max_inflated


def inflated(
    chunks: Iterable[bytes], name: str, limit: Callable[[int], int], most: int = _MOST_AT_ONCE
) -> Iterator[bytes]:
    """Inflate a gzip stream of one or more members.

    Parameters
    ----------
    chunks : iterable of bytes
        The stream.
    name : str
        What messages call it.
    limit : callable
        Of the number of bytes that came in so far: how many may have come out.
    most : int
        Bytes that are given at a time, at most.

    Yields
    ------
    bytes
        What comes out.

    Raises
    ------
    FileFormatError
        If the stream is damaged, cut short or becomes too large.
    """
    member = zlib.decompressobj(wbits=31)
    at = came = size = 0
    open_member = padding = False  # a member has begun; only zeros follow
    for chunk in chunks:
        came += len(chunk)
        view = memoryview(chunk)
        while view:
            if padding or (not open_member and at > 0 and view[0] == 0):
                # Files from tapes are padded with zeros, which gzip ignores, too.
                if any(view):
                    raise _damaged(name, at, "Error -3 while decompressing data: bytes after zeros")
                padding = True
                break
            piece = view[:_PIECE]
            try:
                # A piece may become a thousand times as long: no more of it than may be kept.
                part = member.decompress(piece, min(most, max(limit(came) - size, 0) + 1))
            except zlib.error as error:
                raise _damaged(name, at, str(error)) from None
            open_member = True
            used = len(piece) - len(member.unconsumed_tail) - len(member.unused_data)
            at += used
            view = view[used:]
            size += len(part)
            if size > limit(came):
                raise FileFormatError(
                    f"{name}: the gzip stream of {format_bytes(came)} inflates to more than "
                    f"{format_bytes(limit(came))}; if that is meant, raise the limit with "
                    "--max-inflated SIZE (in Python, max_inflated=BYTES)"
                )
            if part:
                yield part
            if member.eof:
                member, open_member = zlib.decompressobj(wbits=31), False
    if open_member:
        raise FileFormatError(
            f"{name}: the gzip stream is cut short after {came} bytes; expected a whole one"
        )


def _damaged(name: str, at: int, why: str) -> FileFormatError:
    return FileFormatError(
        f"{name}: the gzip stream is damaged near byte {at} ({why}); expected a whole one"
    )
