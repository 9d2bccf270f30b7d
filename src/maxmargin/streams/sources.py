"""Where sequences come from, some at a time: files of any size, tables, iterators.

A source gives chunks: what an encoder takes as X, with the labels. What is wrong with the text of a
file is found here; ``on_error="skip"`` leaves out the sequence and counts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._native import Vocabulary
from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.items import Items
from maxmargin.io.columns import parse_columns
from maxmargin.io.conllu import conllu_to_columns
from maxmargin.io.pieces import (
    QidCutter,
    TextPiece,
    single_sequences,
    text_pieces,
    text_share,
)
from maxmargin.io.text import PathOrFile, name_of

__all__ = ["Chunk", "ColumnFile", "ExampleStream", "ItemFile", "Skipped", "Source", "path_list"]


class Chunk(NamedTuple):
    """Some sequences.

    Attributes
    ----------
    data : ColumnTable, Items or list
        What an encoder takes.
    labels : LabelCodes or list
        Their labels.
    where : str
        What messages call the source.
    """

    data: Any
    labels: Any
    where: str


class Skipped:
    """What is done with bad examples, and how many there were.

    Parameters
    ----------
    on_error : {"raise", "skip"}
        Whether the first one ends everything.
    """

    def __init__(self, on_error: str = "raise") -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f'on_error is {on_error!r}; expected "raise" or "skip"')
        self.raises = on_error == "raise"
        self.n = 0
        self.first = ""

    def note(self, error: BaseException) -> None:
        """Count a bad example, or raise what is wrong with it."""
        if self.raises:
            raise error
        self.n += 1
        self.first = self.first or str(error)


class Source:
    """Where sequences come from."""

    name = "the stream"
    #: What a model file says of the format.
    file_format = "conll"

    def chunks(self, skipped: Skipped, vocabulary: Callable[[], Vocabulary]) -> Iterator[Chunk]:
        """Give the sequences, once.

        Parameters
        ----------
        skipped : Skipped
            Asked about each bad sequence.
        vocabulary : callable
            Gives the vocabulary that features of item files are put into.
        """
        raise NotImplementedError


class ColumnFile(Source):
    """Column files, one after the other.

    Parameters
    ----------
    paths : list of paths
        "-" is standard input; compressed files are recognised.
    label_column : int
        The column of the labels; -1 is the last.
    separator, comment, max_inflated, encoding
        As for `maxmargin.io.columns.read_columns`.
    conllu : list of str or None
        Columns to take of CoNLL-U files; None: the files are plain columns.
    piece_bytes : int
        About so much of a file is in memory at a time.
    part : (int, int) or None
        k and K: of every file only the k-th of K parts; None: all of it.
    """

    def __init__(
        self,
        paths: list[PathOrFile],
        *,
        label_column: int = -1,
        separator: str = "auto",
        comment: str | None = None,
        max_inflated: int | None = None,
        encoding: str | None = None,
        conllu: list[str] | None = None,
        piece_bytes: int = 1 << 20,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.paths, self.part = paths, part
        self.name = ", ".join(name_of(path) for path in paths)
        self.label_column = label_column
        self.separator, self.comment = separator, comment
        self.max_inflated, self.encoding = max_inflated, encoding
        self.conllu = conllu
        self.piece_bytes = piece_bytes
        self.file_format = "conll" if conllu is None else "conllu"

    def chunks(self, skipped: Skipped, vocabulary: Callable[[], Vocabulary]) -> Iterator[Chunk]:
        """Give the sequences of the files; parameters are those of `Source.chunks`."""
        n_columns, separator = 0, self.separator
        for path in self.paths:
            name = name_of(path)
            for piece in _pieces(self, path):
                for chunk in self._parsed(piece, name, separator, n_columns, skipped):
                    n_columns, separator = chunk.data.n_columns, chunk.data.native.separator
                    yield chunk

    def _parsed(
        self, piece: TextPiece, name: str, separator: str, n_columns: int, skipped: Skipped
    ) -> Iterator[Chunk]:
        try:
            yield self._chunk(piece, name, separator, n_columns)
        except EmptyFileError:  # blank lines and comments only
            return
        except ValueError:
            if skipped.raises:
                raise
            good = []
            for one in single_sequences(piece):
                try:
                    chunk = self._chunk(one, name, separator, n_columns)
                except EmptyFileError:
                    continue
                except ValueError as error:
                    skipped.note(error)
                    continue
                n_columns, separator = chunk.data.n_columns, chunk.data.native.separator
                good.append(one.text if one.text.endswith(b"\n\n") else one.text + b"\n\n")
            if good:
                yield self._chunk(TextPiece(b"".join(good), 1), name, separator, n_columns)

    def _chunk(self, piece: TextPiece, name: str, separator: str, n_columns: int) -> Chunk:
        text, comment = piece.text, self.comment
        if self.conllu is not None:
            text = conllu_to_columns(text, self.conllu, name, piece.first_line)
            separator, comment = "tab", None
        table = parse_columns(
            text,
            name,
            separator=separator,
            comment=comment,
            n_columns=n_columns,
            first_line=piece.first_line,
        )
        if table.n_columns < 2:
            raise FileFormatError(
                f"{name}: found 1 column; expected at least 2, a feature and a label (a file "
                "without labels cannot be learned from)"
            )
        data, labels = table.labelled(self.label_column)
        return Chunk(data, labels, name)


def _pieces(
    source: ColumnFile | ItemFile, path: PathOrFile, *, qids: bool = False
) -> Iterator[TextPiece]:
    """Give a file of a source in pieces, or the part of it that was asked for."""
    most, encoding = source.max_inflated, source.encoding
    if source.part is not None:
        return text_share(
            path, source.piece_bytes, source.part, qids=qids, max_inflated=most, encoding=encoding
        )
    cutter = QidCutter() if qids else None
    return text_pieces(
        path, source.piece_bytes, cutter=cutter, max_inflated=most, encoding=encoding
    )


class ItemFile(Source):
    """Item files of CRFsuite or SVM^hmm, one after the other.

    Parameters
    ----------
    paths, max_inflated, encoding, piece_bytes, part
        As for `ColumnFile`.
    file_format : {"crfsuite", "svmhmm"}
        Which of the two.
    """

    def __init__(
        self,
        paths: list[PathOrFile],
        file_format: str,
        *,
        max_inflated: int | None = None,
        encoding: str | None = None,
        piece_bytes: int = 1 << 20,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.paths, self.part = paths, part
        self.name = ", ".join(name_of(path) for path in paths)
        self.file_format = file_format
        self.max_inflated, self.encoding = max_inflated, encoding
        self.piece_bytes = piece_bytes

    def chunks(self, skipped: Skipped, vocabulary: Callable[[], Vocabulary]) -> Iterator[Chunk]:
        """Give the sequences of the files; parameters are those of `Source.chunks`."""
        qids = self.file_format == "svmhmm"
        for path in self.paths:
            name = name_of(path)
            for piece in _pieces(self, path, qids=qids):
                try:
                    chunk = self._chunk(piece, name, vocabulary())
                except ValueError:
                    if skipped.raises:
                        raise
                    good = []
                    for one in single_sequences(piece, qids=qids):
                        try:
                            self._chunk(one, name, Vocabulary())
                        except ValueError as error:
                            skipped.note(error)
                        else:
                            good.append(one.text)
                    chunk = self._chunk(TextPiece(b"\n".join(good), 1), name, vocabulary())
                if chunk is not None:
                    yield chunk

    def _chunk(self, piece: TextPiece, name: str, vocabulary: Vocabulary) -> Chunk | None:
        try:
            offsets, indptr, indices, values, codes, label_names, weight = _native.parse_items(
                piece.text, self.file_format, vocabulary, True, True, piece.first_line
            )
        except ValueError as error:
            raise FileFormatError(f"{name}: {error}") from None
        if len(offsets) < 2:
            return None
        assert codes is not None
        batch = EncodedBatch(offsets, len(vocabulary), indptr, indices, values)
        items = Items(batch, codes, label_names, vocabulary, weight)
        return Chunk(items, items.label_codes, name)


class ExampleStream(Source):
    """Pairs (x, y) from an iterator, or from a function that gives one.

    Parameters
    ----------
    examples : iterable, or callable that returns one
        A sequence and its labels each.
    n_tokens : int
        About so many tokens are taken together.
    """

    name = "the stream"

    def __init__(self, examples: Any, n_tokens: int = 1 << 16) -> None:
        self.examples = examples
        self.n_tokens = n_tokens

    def chunks(self, skipped: Skipped, vocabulary: Callable[[], Vocabulary]) -> Iterator[Chunk]:
        """Give the examples; parameters are those of `Source.chunks`."""
        examples = self.examples() if callable(self.examples) else self.examples
        if not isinstance(examples, Iterable):
            raise TypeError(
                f"the stream is a {type(examples).__name__}; expected an iterable of pairs (x, y), "
                "or a function that returns one"
            )
        X: list[Any] = []
        y: list[Any] = []
        n = 0
        for number, example in enumerate(examples):
            try:
                one, labels = _pair(example, number)
            except (TypeError, ValueError) as error:
                skipped.note(error)
                continue
            X.append(one)
            y.append(labels)
            n += len(labels)
            if n >= self.n_tokens:
                yield Chunk(X, y, self.name)
                X, y, n = [], [], 0
        if X:
            yield Chunk(X, y, self.name)


def _pair(example: Any, number: int) -> tuple[Any, Any]:
    """Return a sequence and its labels."""
    if not isinstance(example, tuple | list) or len(example) != 2:
        raise TypeError(
            f"example {number} of the stream is a {type(example).__name__}; expected a pair "
            "(x, y) of a sequence and its labels"
        )
    x, y = example
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise TypeError(
            f"example {number} of the stream has a {type(y).__name__} for its labels; expected a "
            "list of labels"
        )
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"example {number} of the stream has labels that are not finite")
    return x, y


def path_list(source: Any) -> list[Any] | None:
    """Return the paths that a source names; None if it is something else."""
    if isinstance(source, str | bytes | os.PathLike):
        return [source]
    listed = isinstance(source, list | tuple) and len(source) > 0
    if listed and all(isinstance(path, str | bytes | os.PathLike) for path in source):
        return list(source)
    return None
