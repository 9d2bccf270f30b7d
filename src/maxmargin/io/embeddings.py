"""Files of word vectors: the text formats of word2vec and GloVe.

A line has a word and its numbers, with blanks or tabs between them. word2vec writes a first line
with the number of words and of numbers; GloVe does not. A word may itself have blanks in it, as
some of GloVe's do: the last numbers of the line are its vector, and what stands before is the word.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_whole
from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.features.embeddings import Embeddings, first_bad_row
from maxmargin.io.lines import BOM, decoded
from maxmargin.io.pieces import text_chunks
from maxmargin.io.text import PathOrFile, check_encoding, name_of
from maxmargin.printable import quoted

__all__ = ["embeddings_of", "read_embeddings"]

_MAX_SIZE = 100_000  # numbers of a vector: real ones have some hundreds
_GROWTH = 1.5


def embeddings_of(given: Any) -> Embeddings | None:
    """Return embeddings as people give them.

    Parameters
    ----------
    given : None, Embeddings, mapping of str to vectors, or path
        Embeddings are returned as they are, a file is read with the defaults.

    Returns
    -------
    Embeddings or None
        None: there are none.
    """
    if given is None or isinstance(given, Embeddings):
        return given
    if isinstance(given, Mapping):
        return Embeddings(given)
    if isinstance(given, str | os.PathLike):
        return read_embeddings(given)
    raise TypeError(
        f"embeddings is {quoted(given, 80)}; expected the path of a file, a mapping of words to "
        "vectors, Embeddings, or None"
    )


def read_embeddings(
    path: PathOrFile,
    *,
    column: int = 0,
    window: int = 0,
    scale: float = 1.0,
    store: str = "vectors",
    limit: int | None = None,
    encoding: str = "utf-8",
    max_inflated: int | None = None,
) -> Embeddings:
    """Read word vectors from a text file of word2vec or GloVe.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; compressed files are recognised.
    column, window, scale, store
        As for `Embeddings`.
    limit : int or None
        Read the first so many words only; such files begin with the most frequent ones.
    encoding : str
        Of the text.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times its own size, and at least
        256 MB.

    Returns
    -------
    Embeddings
        The vectors. Of a word that occurs twice the first one counts, and a warning says so.

    Raises
    ------
    FileFormatError
        If a line has another number of numbers than the first, or something that is no finite
        number, if there are fewer words than the first line says, or if the text is in another
        encoding. The message names file and line.
    OSError
        If the file cannot be read.
    """
    source = name_of(path)
    if limit is not None:
        check_whole("limit", limit, 1)
    encoding = check_encoding(encoding)
    reader = _Reader(source, limit)
    chunks = text_chunks(path, max_inflated=max_inflated, encoding=encoding)
    for number, line in _numbered(chunks, source):
        if not reader.take(number, line):
            break
    words, vectors = reader.finished()
    named = os.fspath(path) if isinstance(path, str | os.PathLike) else "-"
    return Embeddings.of_matrix(
        words,
        vectors,
        column=column,
        window=window,
        scale=scale,
        store=store,
        source=source,
        path=None if named == "-" else named,
        encoding=encoding,
    )


def _numbered(chunks: Iterator[bytes], source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1 on."""
    held, number = b"", 1
    for chunk in chunks:
        whole, newline, rest = (held + chunk).rpartition(b"\n")
        if not newline:
            held = rest
            if len(held) > 100_000_000:
                raise FileFormatError(
                    f"{source}: line {number}: found no end of the line within 100 MB; expected "
                    "text, a word and its vector in a line"
                )
            continue
        held = rest
        for line in _decoded(whole, source, number).split("\n"):
            yield number, line
            number += 1
    if held:
        yield number, _decoded(held, source, number)


def _decoded(data: bytes, source: str, number: int) -> str:
    try:
        text = decoded(data, source, number)
    except FileFormatError as error:
        raise FileFormatError(
            f"{error} (word2vec's binary format is not read; text in another encoding is, with "
            "encoding=...)"
        ) from None
    return text.removeprefix(BOM) if number == 1 else text


class _Reader:
    """Takes the lines of a file one after the other."""

    def __init__(self, source: str, limit: int | None) -> None:
        self.source, self.limit = source, limit
        self.words: dict[str, int] = {}  # the line of each
        self.vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.size: int | None = None
        self.claimed: int | None = None  # words, as the first line says
        self.first = 1  # the line that said how long vectors are
        self.n_repeated = 0
        self.repeated: tuple[str, int, int] | None = None

    def take(self, number: int, line: str) -> bool:
        """Take a line; return whether more are wanted."""
        # Not split(), which also splits at blanks that belong to a word, such as U+00A0.
        fields = [field for field in line.replace("\t", " ").rstrip("\r").split(" ") if field]
        if not fields:
            return True
        place = f"{self.source}: line {number}"
        if self.size is None:
            if len(fields) == 2 and all(f.isascii() and f.isdigit() for f in fields):
                self.claimed, self.size, self.first = int(fields[0]), int(fields[1]), number
                self._check_size(place, "the first line says vectors of")
                return True
            self.size, self.first = self._first_size(place, fields), number
            self._check_size(place, "found a vector of")
        size = self.size
        word = fields[0] if len(fields) == size + 1 else self._spaced_word(place, fields)
        if word in self.words:
            self.n_repeated += 1
            if self.repeated is None:
                self.repeated = word, number, self.words[word]
            return True
        k = len(self.words)
        if k == len(self.vectors):
            self._grow(k)
        try:
            self.vectors[k] = [float(field) for field in fields[-size:]]
        except ValueError:
            raise FileFormatError(self._no_number(place, fields[-size:], word)) from None
        self.words[word] = number
        return self.limit is None or k + 1 < self.limit

    def _check_size(self, place: str, what: str) -> None:
        assert self.size is not None
        if not 1 <= self.size <= _MAX_SIZE:
            raise FileFormatError(
                f"{place}: {what} {self.size} numbers; expected 1 to {_MAX_SIZE}"
            )

    def _first_size(self, place: str, fields: list[str]) -> int:
        """Return how many numbers stand at the end of the first line; something stands before."""
        numbers = 0
        while numbers + 1 < len(fields) and _is_number(fields[-1 - numbers]):
            numbers += 1
        if numbers == 0:
            raise FileFormatError(
                f"{place}: found {quoted(fields[-1])}; expected a word and the numbers of its "
                "vector, as word2vec and GloVe write them as text"
            )
        return numbers

    def _spaced_word(self, place: str, fields: list[str]) -> str:
        """Return the word of a line that has not as many fields as a word and a vector have."""
        assert self.size is not None
        extra = fields[: -self.size]
        # A number in front of the vector is one too many, and not a part of the word.
        if len(fields) <= self.size or _is_number(extra[-1]):
            raise FileFormatError(
                f"{place}: found {len(fields) - 1} numbers behind {quoted(fields[0])}; expected "
                f"{self.size}, as line {self.first} says"
            )
        return " ".join(extra)

    def _no_number(self, place: str, fields: list[str], word: str) -> str:
        found = next(field for field in fields if not _is_number(field))
        return f"{place}: found {quoted(found)} in the vector of {quoted(word)}; expected a number"

    def _grow(self, n: int) -> None:
        assert self.size is not None
        room = max(1024, int(n * _GROWTH))
        vectors = np.empty((room, self.size), np.float32)
        vectors[:n] = self.vectors[:n] if n else 0.0
        self.vectors = vectors

    def finished(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return words and vectors, after the last line."""
        n = len(self.words)
        if n == 0:
            raise EmptyFileError(f"{self.source}: holds no vectors; expected at least one word")
        cut = self.limit is not None and n >= self.limit
        if self.claimed is not None and n + self.n_repeated != self.claimed and not cut:
            raise FileFormatError(
                f"{self.source}: found {n + self.n_repeated} words; expected {self.claimed}, as "
                "the first line says (was the file cut short?)"
            )
        vectors = self.vectors[:n].copy() if n < len(self.vectors) else self.vectors
        bad = first_bad_row(vectors)
        words = list(self.words)
        if bad is not None:
            word = words[bad]
            raise FileFormatError(
                f"{self.source}: line {self.words[word]}: found a number that is not between -1e12 "
                f"and 1e12 in the vector of {quoted(word)}; expected finite numbers"
            )
        if self.repeated is not None:
            word, second, first = self.repeated
            times = "a word" if self.n_repeated == 1 else f"{self.n_repeated} words"
            warnings.warn(
                f"{self.source}: line {second}: found {times} a second time, {quoted(word)} of "
                f"line {first}; the first vector counts",
                UserWarning,
                stacklevel=3,
            )
        return words, vectors


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
