"""Encoders that learn their features from pieces of the data, one after the other.

Features get the numbers that they would have if all data were encoded at once: by first token.
Those that are too rare are found out at the end (`PieceEncoder.counts`), when all pieces were seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.items import Items
from maxmargin.features.sequences import SHAPE, as_list, kind_of_all
from maxmargin.features.template_encoder import LineFeatures, TemplateEncoder
from maxmargin.streams.parts import GrowingArray

__all__ = ["ObjectPieces", "PieceEncoder", "TemplatePieces", "piece_encoder"]


class PieceEncoder(ABC):
    """Turns pieces of the data into batches, and keeps what the file needs of the features."""

    encoder: Any

    @abstractmethod
    def encode(self, data: Any) -> EncodedBatch:
        """Learn the features of a piece and encode it."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """Bytes that the list of features takes."""

    def vocabulary(self) -> Vocabulary:
        """Return what the features of the next piece of an item file are put into."""
        return Vocabulary()

    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Return the number of features of a label and of two labels."""

    @abstractmethod
    def counts(self) -> list[NDArray[Any] | None]:
        """Return in how many tokens each feature occurs, of both kinds; None: without names."""

    @abstractmethod
    def arrays(self, kept: list[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """Return what the file holds of the features that are kept; None: of all of them."""


def piece_encoder(encoder: Any, directory: str, threads: int) -> PieceEncoder:
    """Return what encodes pieces as an encoder encodes everything.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        It knows nothing yet, and is not changed.
    directory : str
        For temporary files.
    threads : int
        For expansion.

    Returns
    -------
    PieceEncoder
        It begins with nothing.
    """
    fresh = encoder.fresh()
    fresh.double = encoder.double
    if isinstance(fresh, TemplateEncoder):
        return TemplatePieces(fresh, directory, threads)
    return ObjectPieces(fresh)


class _LineNames:
    """What is known of the features of some lines of a template."""

    def __init__(self, features: LineFeatures, directory: str) -> None:
        self.features = features
        self.learner = features.learner()
        self.fingerprints = GrowingArray(np.uint64, directory)
        self.lines = GrowingArray(np.uint32, directory)
        self.text = GrowingArray(np.uint8, directory)
        self.ends = GrowingArray(np.int64, directory)
        self.ends.append(np.zeros(1, np.int64))

    def add(self, table: ColumnTable, threads: int) -> tuple[Any, Any]:
        which = list(range(table.n_columns))
        indptr, indices, fingerprints, token, line = self.learner.add(table.native, which, threads)
        text, ends = self.features.native_names(table, token, line)
        self.fingerprints.append(fingerprints)
        self.lines.append(line)
        self.ends.append(ends[1:] + self.text.n_bytes)
        self.text.append(np.frombuffer(text, np.uint8))
        return indptr, indices

    def arrays(self, prefix: str, kept: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
        fingerprints, lines = self.fingerprints.array(), self.lines.array()
        text, ends = self.text.array(), self.ends.array()
        if kept is not None:
            lengths = np.diff(ends)[kept]
            fresh = GrowingArray(np.uint8, self.text.directory)
            for part in np.array_split(kept, max(1, len(kept) >> 16)):
                names = [text[ends[k] : ends[k + 1]] for k in part]
                fresh.append(np.concatenate(names) if names else np.empty(0, np.uint8))
            fingerprints, lines, text = fingerprints[kept], lines[kept], fresh.array()
            ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return {
            f"{prefix}fingerprints": fingerprints,
            f"{prefix}lines": lines,
            f"{prefix}name_text": text,
            f"{prefix}name_ends": ends,
        }


class TemplatePieces(PieceEncoder):
    """Pieces of column files, expanded by a template.

    Parameters
    ----------
    encoder : TemplateEncoder
        It knows nothing yet.
    directory, threads
        As for `piece_encoder`.
    """

    def __init__(self, encoder: TemplateEncoder, directory: str, threads: int) -> None:
        self.encoder = encoder
        self.threads = threads
        self.parts: list[_LineNames] = []
        if encoder.hash_bits is None:
            self.parts.append(_LineNames(encoder.unigrams, directory))
            if encoder.bigrams.program:
                self.parts.append(_LineNames(encoder.bigrams, directory))

    def encode(self, data: Any) -> EncodedBatch:
        """Learn the features of a piece and encode it."""
        encoder = self.encoder
        table = encoder.begin(data)
        if encoder.hash_bits is not None:
            hashed: EncodedBatch = encoder.transform(table)
            return hashed
        rows = [part.add(table, self.threads) for part in self.parts]
        pairs = rows[1] if len(rows) > 1 else (None, None)
        n_sparse, n_pair = self.sizes()
        return EncodedBatch(
            table.offsets,
            n_sparse,
            *rows[0],
            n_pair=n_pair,
            pair_indptr=pairs[0],
            pair_indices=pairs[1],
        )

    @property
    def memory_bytes(self) -> int:
        """Bytes that the list of features takes."""
        return sum(part.learner.memory_bytes for part in self.parts)

    def sizes(self) -> tuple[int, int]:
        """Return the number of features of a label and of two labels."""
        if self.encoder.hash_bits is not None:
            return self.encoder.n_sparse, 0
        n = [len(part.learner) for part in self.parts]
        return n[0], sum(n[1:])

    def counts(self) -> list[NDArray[Any] | None]:
        """Return in how many tokens each feature occurs, of both kinds."""
        return [part.learner.counts() for part in self.parts] or [None]

    def arrays(self, kept: list[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """Return what the file holds of the features that are kept."""
        arrays: dict[str, NDArray[Any]] = {}
        for prefix, part, some in zip(("", "pair_"), self.parts, kept, strict=False):
            arrays |= part.arrays(prefix, some)
        return arrays


class ObjectPieces(PieceEncoder):
    """Pieces of Python objects, of item files, or of what a function makes of columns.

    Parameters
    ----------
    encoder : FeatureEncoder
        It knows nothing yet.
    """

    def __init__(self, encoder: FeatureEncoder) -> None:
        self.encoder = encoder
        self._names = Vocabulary()
        self._counts = np.zeros(0, np.int64)

    def vocabulary(self) -> Vocabulary:
        """Return what the features of the next piece of an item file are put into."""
        return self._names if self.encoder.hash_bits is None else Vocabulary()

    def encode(self, data: Any) -> EncodedBatch:
        """Learn the features of a piece and encode it."""
        encoder = self.encoder
        if isinstance(data, Items):
            batch = data.batch if encoder.hash_bits is None else encoder.hash_items(data)
            encoder.kind = "strings"
        else:
            batch = self._objects(data)
        if encoder.kind is not None and encoder.kind.startswith("strings"):
            self._count(batch)
        encoder.n_sparse, encoder.n_dense = batch.n_sparse, batch.n_dense
        return batch

    def _objects(self, data: Any) -> EncodedBatch:
        encoder = self.encoder
        if isinstance(encoder, FunctionEncoder):
            data = encoder.features_of(data)
        sequences = as_list("X", data, SHAPE, 3)
        kind = kind_of_all(sequences)
        first = encoder.kind is None
        if first:
            strings = kind.startswith("strings")
            if not strings and (encoder.min_count > 1 or encoder.hash_bits is not None):
                raise ValueError(
                    f"min_count and hash_bits are for strings, but X is of kind {kind}"
                )
        elif kind != encoder.kind:
            raise ValueError(
                f"X is of kind {kind}; expected kind {encoder.kind}, as the sequences before it"
            )
        named = kind.startswith("strings") and encoder.hash_bits is None
        grow = first or kind.startswith("strings")
        batch: EncodedBatch = encoder.encode_piece(
            sequences, kind, self._names if named else None, grow=grow
        )
        if not first and batch.n_dense != encoder.n_dense:
            raise ValueError(
                f"sequence 0 has {batch.n_dense} dense columns; expected {encoder.n_dense}, as the "
                "sequences before it"
            )
        encoder.kind = kind
        return batch

    def _count(self, batch: EncodedBatch) -> None:
        if self.encoder.hash_bits is not None or batch.indices is None:
            return
        counts = np.bincount(batch.indices, minlength=batch.n_sparse)
        counts[: len(self._counts)] += self._counts
        self._counts = counts

    @property
    def memory_bytes(self) -> int:
        """Bytes that the list of features takes."""
        return int(self._names.memory_bytes) + self._counts.nbytes

    def sizes(self) -> tuple[int, int]:
        """Return the number of features of a label and of two labels."""
        return self.encoder.n_sparse, 0

    def counts(self) -> list[NDArray[Any] | None]:
        """Return in how many tokens each feature occurs, if features have names."""
        kind = self.encoder.kind or ""
        if self.encoder.hash_bits is not None or not kind.startswith("strings"):
            return [None]
        missing = len(self._names) - len(self._counts)
        return [np.concatenate([self._counts, np.zeros(missing, np.int64)])]

    def arrays(self, kept: list[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """Return what the file holds of the features that are kept."""
        if self.counts()[0] is None:
            return {}
        names = self._names.names()
        if kept[0] is not None:
            names = [names[k] for k in kept[0].tolist()]
        encoded = [name.encode() for name in names]
        lengths = np.array([len(name) for name in encoded], np.int64)
        return {
            "name_text": np.frombuffer(b"".join(encoded), np.uint8),
            "name_ends": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        }
