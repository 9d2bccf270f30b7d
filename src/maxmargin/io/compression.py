"""Compressed files: gzip, bzip2 and xz, and Zstandard with the package ``zstandard``.

What a file is compressed with is told by its first bytes, and its name must not say otherwise. All
are inflated by one loop, in pieces, so that a small file cannot fill the memory: there is a limit
to what it may become, and xz and Zstandard may not ask for a window of any size either.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple, Protocol

from maxmargin.errors import FileFormatError, NotCompatibleError
from maxmargin.memory import format_bytes

__all__ = [
    "COMPRESSIONS",
    "Compression",
    "checked_compression",
    "compression_named",
    "compression_of",
    "inflate",
    "inflated",
    "inflated_limit",
    "plain_name",
]

#: What a compressed file may become without anybody's leave: so many bytes, or so many times its
#: size. Text becomes 3 to 30 times as long; a gzip bomb, up to 1032 times, others a million times.
LEAST_INFLATED = 256_000_000
MOST_EXPANSION = 100
#: Bytes that xz and Zstandard may use for their windows: ``xz -9`` takes 65 MB, and
#: ``zstd --ultra -22`` 128 MB.
MOST_WINDOW = 512 << 20

# What follows the end of a gzip member is handed back as a copy: pieces keep the copies small.
_PIECE = 1 << 20
# A block of Zstandard of 4 bytes may become 128 kB, and all of a piece is inflated at once.
_ZSTD_PIECE = 1 << 10
_MOST_AT_ONCE = 16 << 20  # bytes that are inflated at a time


class _Member(Protocol):
    """One compressed stream of a file, as `bz2` and `lzma` have it."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was met."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing is left of what was given."""

    @property
    def unused_data(self) -> bytes:
        """What stands behind the end."""

    def decompress(self, data: Any, max_length: int) -> bytes:
        """Return at most so many bytes."""


class _GzipMember:
    """A member of a gzip file; zlib hands back what it has not used."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: Any, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail or data, max_length)


class _ZstdMember:
    """A frame of Zstandard. All of what is given is inflated: it must be little at a time."""

    needs_input = True

    def __init__(self) -> None:
        decompressor = _zstandard().ZstdDecompressor(max_window_size=MOST_WINDOW)
        self._inner: Any = decompressor.decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)

    def decompress(self, data: Any, _: int) -> bytes:
        return bytes(self._inner.decompress(data))


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise NotCompatibleError(
            "files of Zstandard need the package zstandard: pip install 'maxmargin[zst]'"
        ) from None
    return zstandard


def _is_bzip2(begin: bytes) -> bool:
    # "BZh9" alone may be the first word of a text; behind it comes a block, or the end.
    blocks = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
    return begin[:3] == b"BZh" and begin[3:4] in b"123456789" and begin[4:10] in blocks


class Compression(NamedTuple):
    """A way to compress files.

    Attributes
    ----------
    name : str
        What messages call it.
    ending : str
        What names of such files end with.
    begins : callable
        Whether a file that begins with these bytes is one.
    member : callable
        Makes what inflates one stream.
    errors : callable
        The exceptions of damaged streams.
    writer : callable
        Puts a layer that compresses above an open file; the same content gives the same file.
    piece : int
        Bytes that are given to it at a time.
    """

    name: str
    ending: str
    begins: Callable[[bytes], bool]
    member: Callable[[], _Member]
    errors: Callable[[], tuple[type[Exception], ...]]
    writer: Callable[[IO[bytes]], Any]
    piece: int = _PIECE


COMPRESSIONS = (
    Compression(
        "gzip",
        ".gz",
        lambda begin: begin[:2] == b"\x1f\x8b",
        _GzipMember,
        lambda: (zlib.error,),
        lambda raw: gzip.GzipFile(
            filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0
        ),
    ),
    Compression(
        "bzip2",
        ".bz2",
        _is_bzip2,
        bz2.BZ2Decompressor,
        lambda: (OSError, ValueError),
        lambda raw: bz2.BZ2File(raw, "wb"),
    ),
    Compression(
        "xz",
        ".xz",
        lambda begin: begin[:6] == b"\xfd7zXZ\x00",
        lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MOST_WINDOW),
        lambda: (lzma.LZMAError,),
        lambda raw: lzma.LZMAFile(raw, "wb"),  # noqa: SIM115
    ),
    Compression(
        "zstd",
        ".zst",
        lambda begin: begin[:4] == b"\x28\xb5\x2f\xfd",
        _ZstdMember,
        lambda: (_zstandard().ZstdError,),
        lambda raw: _zstandard().ZstdCompressor().stream_writer(raw, closefd=False),
        _ZSTD_PIECE,
    ),
)


def compression_of(begin: bytes) -> Compression | None:
    """Return how a file is compressed.

    Parameters
    ----------
    begin : bytes
        Its first ten bytes, or more.

    Returns
    -------
    Compression or None
        None if it is not compressed.
    """
    return next((kind for kind in COMPRESSIONS if kind.begins(begin)), None)


def compression_named(name: str) -> Compression | None:
    """Return how a file is compressed by what its name ends with; None if it does not say.

    Parameters
    ----------
    name : str
        The file.
    """
    return next((kind for kind in COMPRESSIONS if name.endswith(kind.ending)), None)


def plain_name(name: str) -> str:
    """Return the name of a file without the ending that says how it is compressed.

    Parameters
    ----------
    name : str
        The file.
    """
    kind = compression_named(name)
    return name if kind is None else name.removesuffix(kind.ending)


def inflated_limit(n_compressed: int, max_inflated: int | None) -> int:
    """Return how many bytes a compressed file may become.

    Parameters
    ----------
    n_compressed : int
        Its size.
    max_inflated : int or None
        What the user allows.
    """
    if max_inflated is None:
        return max(LEAST_INFLATED, MOST_EXPANSION * n_compressed)
    if isinstance(max_inflated, bool) or not isinstance(max_inflated, int) or max_inflated < 0:
        raise ValueError(
            f"max_inflated is {max_inflated!r}; expected None or a number of bytes, at least 0"
        )
    return max_inflated


def inflate(data: bytes, name: str, max_inflated: int | None = None) -> bytes:
    """Decompress the content of a file, if it is compressed.

    Parameters
    ----------
    data : bytes
        The file; one stream, or several end to end.
    name : str
        Its name, which must not say something else.
    max_inflated : int or None
        How many bytes it may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    bytes
        What is in it.

    Raises
    ------
    FileFormatError
        If it is damaged, cut short, becomes too large, or is not what its name says.
    NotCompatibleError
        If the package that could read it is not installed.
    """
    kind = checked_compression(data[:16], name)
    if kind is None:
        return data
    limit = inflated_limit(len(data), max_inflated)
    return b"".join(inflated([data], name, kind, lambda _: limit))


def checked_compression(begin: bytes, name: str) -> Compression | None:
    """Return how a file is compressed, and refuse one whose name says something else.

    Parameters
    ----------
    begin : bytes
        Its first ten bytes, or more.
    name : str
        Its name.

    Returns
    -------
    Compression or None
        None if it is not compressed.
    """
    kind, called = compression_of(begin), compression_named(name)
    if kind is None and called is not None:
        article = "an" if called.name == "xz" else "a"
        raise FileFormatError(
            f"{name}: ends with {called.ending} but does not begin as {article} {called.name} "
            f"file does; expected {called.name}, or another name"
        )
    return kind


def inflated(
    chunks: Iterable[bytes],
    name: str,
    kind: Compression,
    limit: Callable[[int], int],
    most: int = _MOST_AT_ONCE,
) -> Iterator[bytes]:
    """Inflate a stream piece by piece.

    Parameters
    ----------
    chunks : iterable of bytes
        The file; one compressed stream, or several end to end.
    name : str
        What messages call it.
    kind : Compression
        How it is compressed.
    limit : callable
        Of the number of bytes that came in so far: how many may have come out.
    most : int
        Bytes that are given at a time, at most (Zstandard: about so many).

    Yields
    ------
    bytes
        What comes out.

    Raises
    ------
    FileFormatError
        If the stream is damaged, cut short or becomes too large.
    NotCompatibleError
        If the package that could read it is not installed.
    """
    try:
        errors = kind.errors()
    except NotCompatibleError as error:
        raise NotCompatibleError(f"{name}: {error}") from None
    member: _Member | None = None
    came = at = size = 0  # bytes that came in, that were given to members, that came out
    ended = padding = False  # a member has ended; zeros follow

    def damaged(near: int, why: object) -> FileFormatError:
        return FileFormatError(
            f"{name}: the {kind.name} stream is damaged near byte {near} ({why}); "
            "expected a whole one"
        )

    def inflate_piece(member: _Member, piece: Any) -> bytes:
        nonlocal size
        allowed = limit(came)
        try:
            # A piece may become a thousand times as long: no more of it than may be kept.
            part = member.decompress(piece, min(most, max(allowed - size, 0) + 1))
        except errors as error:
            raise damaged(at - len(piece), error) from None
        size += len(part)
        if size > allowed:
            raise FileFormatError(
                f"{name}: the {kind.name} stream of {format_bytes(came)} inflates to more "
                f"than {format_bytes(allowed)}; if that is meant, raise the limit with "
                "--max-inflated SIZE (in Python, max_inflated=BYTES)"
            )
        return part

    for chunk in chunks:
        begin = came  # of this chunk
        came += len(chunk)
        view = memoryview(chunk)
        while at < came or (member is not None and not member.needs_input):
            if member is None:
                rest = view[at - begin :]
                if ended and (padding or rest[0] == 0):
                    # Files from tapes are padded with zeros, which gzip and xz ignore, too.
                    if any(rest):
                        raise damaged(at, "bytes after zeros")
                    padding, at = True, came
                    break
                member = kind.member()
            piece: Any = b""
            if member.needs_input:
                piece = view[at - begin : at - begin + kind.piece]
                at += len(piece)
            part = inflate_piece(member, piece)
            if part:
                yield part
            if member.eof:
                at -= len(member.unused_data)
                member, ended = None, True
    while member is not None:  # what it still holds back
        part = inflate_piece(member, b"")
        if part:
            yield part
        if member.eof:
            member = None
        elif not part:
            raise FileFormatError(
                f"{name}: the {kind.name} stream is cut short after {came} bytes; "
                "expected a whole one"
            )
