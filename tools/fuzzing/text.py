"""Mutations of text files, as bytes: any byte, lines, cells and numbers within lines."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence

from fuzzing.values import BYTES, INTEGERS, REALS, TEXTS, count

__all__ = ["mutate_text"]

#: Mutations stop growing a file here, so that inputs stay quick.
MAX_BYTES = 1 << 17
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_CELL = re.compile(rb"[^\t\n :,\[\]|=]+")


def mutate_text(
    rng: random.Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]
) -> bytes:
    """Return a changed copy of a text file.

    Parameters
    ----------
    rng : random.Random
        Decides everything.
    data : bytes
        The file.
    others : sequence of bytes
        Files whose lines may be taken over.
    words : sequence of bytes
        Pieces of the file's language, to be put anywhere.

    Returns
    -------
    bytes
        Perhaps compressed with gzip, which all readers of texts recognise.
    """
    for _ in range(count(rng)):
        kind = rng.random()
        if kind < 0.3:
            data = rng.choice(_LINE)(rng, data)
        elif kind < 0.6:
            data = _replaced(rng, data, words)
        elif kind < 0.9:
            data = rng.choice(_BYTE)(rng, data)
        else:
            data = _spliced(rng, data, rng.choice(others))
        data = data[:MAX_BYTES]
    return _packed(rng, data)


def _span(rng: random.Random, size: int) -> tuple[int, int]:
    """Return a short stretch of a file; now and then a long one."""
    a = rng.randint(0, size)
    most = size if rng.random() < 0.1 else 12
    return a, min(size, a + rng.randint(0, most))


# Bytes


def _flip(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return b"\x00"
    k = rng.randrange(len(data))
    return data[:k] + bytes([data[k] ^ (1 << rng.randrange(8))]) + data[k + 1 :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    k = rng.randint(0, len(data))
    times = 1 if rng.random() < 0.9 else rng.choice((2, 50, 5000))
    return data[:k] + rng.choice(BYTES) * times + data[k:]


def _overwrite(rng: random.Random, data: bytes) -> bytes:
    a, b = _span(rng, len(data))
    return data[:a] + rng.choice(BYTES) + data[b:]


def _delete(rng: random.Random, data: bytes) -> bytes:
    a, b = _span(rng, len(data))
    return data[:a] + data[b:]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    a, b = _span(rng, len(data))
    return data[:a] + data[a:b] * rng.choice((2, 3, 20, 1000)) + data[b:]


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


_BYTE: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_flip, _flip, _insert, _insert, _overwrite, _delete, _repeat, _truncate),
)


# Lines


def _lines(change: Callable[[random.Random, list[bytes], int], None]) -> Callable[..., bytes]:
    """Make a mutation of bytes from one of lines, which gets the number of a line."""

    def mutation(rng: random.Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        change(rng, lines, rng.randrange(len(lines)))
        return b"\n".join(lines)

    return mutation


@_lines
def _drop_line(rng: random.Random, lines: list[bytes], k: int) -> None:
    del lines[k : k + rng.choice((1, 1, 1, 5))]


@_lines
def _double_line(rng: random.Random, lines: list[bytes], k: int) -> None:
    lines[k:k] = [lines[k]] * rng.choice((1, 1, 2, 300))


@_lines
def _swap_lines(rng: random.Random, lines: list[bytes], k: int) -> None:
    other = rng.randrange(len(lines))
    lines[k], lines[other] = lines[other], lines[k]


@_lines
def _blank_line(rng: random.Random, lines: list[bytes], k: int) -> None:
    lines.insert(k, rng.choice((b"", b"", b" ", b"\t", b"\t\t", b"\r", b"#")))


@_lines
def _cells(rng: random.Random, lines: list[bytes], k: int) -> None:
    separator = b"\t" if b"\t" in lines[k] else b" "
    cells = lines[k].split(separator)
    c = rng.randrange(len(cells))
    what = rng.randrange(5)
    if what == 0:
        del cells[c]
    elif what == 1:
        cells.insert(c, cells[c])
    elif what == 2:
        cells[c] = b""
    elif what == 3:
        rng.shuffle(cells)
    else:
        cells[c] = cells[c] * rng.choice((2, 40, 4000))
    lines[k] = separator.join(cells)


@_lines
def _line_ends(rng: random.Random, lines: list[bytes], k: int) -> None:
    end = rng.choice((b"\r", b" ", b"\t", b"\x00"))
    lines[:] = [line + end for line in lines]


@_lines
def _one_sequence(rng: random.Random, lines: list[bytes], k: int) -> None:
    lines[:] = [line for line in lines if line]


_LINE = (
    *(_drop_line, _double_line, _swap_lines, _blank_line, _cells, _cells, _line_ends),
    _one_sequence,
)


# Words and numbers


def _replaced(rng: random.Random, data: bytes, words: Sequence[bytes]) -> bytes:
    """Put a number in the place of a number, or a word in the place of a cell."""
    number = rng.random() < 0.4
    places = list((_NUMBER if number else _CELL).finditer(data))
    if not places:
        return data + rng.choice(words)
    a, b = rng.choice(places).span()
    if number:
        new = str(rng.choice((*INTEGERS[:-1], *REALS))).encode()
    elif rng.random() < 0.6:
        new = rng.choice(words)
    else:
        new = rng.choice(TEXTS).encode()
    if rng.random() < 0.2:  # in front of it instead
        b = a
    return data[:a] + new + data[b:]


def _spliced(rng: random.Random, data: bytes, other: bytes) -> bytes:
    a, b = _span(rng, len(data))
    c, d = _span(rng, len(other))
    return data[:a] + other[c:d] + data[b:]


def _packed(rng: random.Random, data: bytes) -> bytes:
    if rng.random() > 0.02:
        return data
    packed = gzip.compress(data, 1, mtime=0)
    if rng.random() < 0.5:
        packed = rng.choice(_BYTE)(rng, packed)
    return packed
