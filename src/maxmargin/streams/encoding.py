"""Data of any size -> one encoded file: read once, in chunks, never all of it in memory.

Each chunk is parsed, its features get their numbers, and the numbers are put behind those of the
chunks before, in temporary files. At the end it is known which features are too rare, which labels
there are and which of them is the most frequent: features and labels are renumbered on the way from
the temporary files into the encoded one. So there is one pass over the data, which may come from a
pipe, whether features are counted, listed or hashed.

The numbers are those that encoding everything at once would give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import EmptyFileError
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import LabelCodes
from maxmargin.features.labels import encode_labels
from maxmargin.features.lengths import check_lengths
from maxmargin.io.container import write_container
from maxmargin.io.tagger_file.encoders import describe_encoder
from maxmargin.io.tagger_file.model import LABEL_TYPES
from maxmargin.memory import format_bytes
from maxmargin.printable import quoted
from maxmargin.streams.parts import GrowingArray, check_directory
from maxmargin.streams.piece_encoders import PieceEncoder, piece_encoder
from maxmargin.streams.sources import Chunk, Skipped, Source
from maxmargin.structures.chain_learning import order_labels
from maxmargin.structures.chain_options import explicit_labels

__all__ = ["KIND", "VERSION", "EncodedSummary", "encode_source"]

#: What the header of an encoded file calls it, and the version of what is in it.
KIND = "encoded"
VERSION = 1
DROPPED = np.uint32(2**32 - 1)


class EncodedSummary(NamedTuple):
    """What was encoded.

    Attributes
    ----------
    n_sequences, n_tokens, n_labels, n_features : int
        How much there is.
    n_skipped : int
        Sequences that were left out because something was wrong with them.
    first_error : str
        What was wrong with the first of them.
    n_bytes : int
        Size of the file.
    """

    n_sequences: int
    n_tokens: int
    n_labels: int
    n_features: int
    n_skipped: int
    first_error: str
    n_bytes: int


def encode_source(
    source: Source,
    path: Any,
    encoder: Any,
    *,
    labels: Any = None,
    on_error: str = "raise",
    memory: int | None = None,
    spill: Any = None,
    threads: int = 1,
    check: Callable[[list[Any]], None] | None = None,
) -> EncodedSummary:
    """Encode data to a file.

    Parameters
    ----------
    source : Source
        Where the sequences come from.
    path : path
        The file; replaced if it exists, when all of it is written.
    encoder : FeatureEncoder or TemplateEncoder
        How they become numbers; it is not changed. ``double``: values are kept in 8 bytes.
    labels : list or None
        All labels, and their order. None: those that are found, sorted where they can be sorted.
    on_error : {"raise", "skip"}
        Whether a bad sequence ends everything, or is left out and counted.
    memory : int or None
        Bytes that the list of features may take; None: as many as there are.
    spill : path or None
        Directory of the temporary files. None: the system's own.
    threads : int
        For expansion, and for reading ahead if it is more than one.
    check : callable or None
        Called with the labels before anything is written; may refuse them.

    Returns
    -------
    EncodedSummary
        What was encoded.

    Raises
    ------
    FileFormatError, ValueError, TypeError
        If something is wrong with a sequence, which the message names; nothing is written.
    MemoryError
        If the list of features takes more than ``memory``.
    OSError
        If a disk is full; nothing stays behind.
    """
    directory = check_directory(spill)
    work = _Encoding(
        source, encoder, labels, on_error=on_error, directory=directory, threads=threads
    )
    work.run(memory)
    return work.write(path, check)


class _Encoding:
    """The temporary files of one encoding."""

    def __init__(
        self,
        source: Source,
        encoder: Any,
        labels: Any,
        *,
        on_error: str,
        directory: str,
        threads: int,
    ) -> None:
        self.source, self.directory, self.threads = source, directory, threads
        self.skipped = Skipped(on_error)
        self.pieces: PieceEncoder = piece_encoder(encoder, directory, threads)
        self.known = None if labels is None else explicit_labels(labels)
        self.found: dict[Any, int] = dict(self.known or {})
        self.double = bool(encoder.double)
        self.parts: dict[str, GrowingArray] = {}
        for name, dtype in (("offsets", np.int64), ("labels", np.int32)):
            self.parts[name] = GrowingArray(dtype, directory)
        self.parts["offsets"].append(np.zeros(1, np.int64))
        self.n_tokens = self.n_sequences = 0

    # --- reading ---------------------------------------------------------------------------------

    def run(self, memory: int | None) -> None:
        """Encode all chunks."""
        for chunk in _ahead(self._chunks(), self.threads > 1):
            self._take(chunk)
            used = self.pieces.memory_bytes
            if memory is not None and used > memory:
                raise MemoryError(
                    f"{self.source.name}: the list of features takes {format_bytes(used)} after "
                    f"{self.n_sequences} sequences, and the budget leaves it "
                    f"{format_bytes(memory)}; raise the budget, or hash the features (hash_bits, "
                    "--hash-bits), which needs no list"
                )
        if self.n_sequences == 0:
            left = f" ({self.skipped.n} were left out)" if self.skipped.n else ""
            raise EmptyFileError(f"{self.source.name}: holds no sequences{left}")

    def _chunks(self) -> Iterator[Chunk]:
        return self.source.chunks(self.skipped, self.pieces.vocabulary)

    def _take(self, chunk: Chunk) -> None:
        try:
            batch, codes, weight = self._encoded(chunk)
        except (ValueError, TypeError):
            if not isinstance(chunk.data, list):
                raise
            # One by one, to tell which is bad; features of bad ones are dropped at the end.
            for x, y in zip(chunk.data, chunk.labels, strict=False):
                one = Chunk([x], [y], chunk.where)
                try:
                    good = self._encoded(one)
                except (ValueError, TypeError) as found:
                    number = self.n_sequences + self.skipped.n
                    self.skipped.note(_placed(found, chunk.where, number))
                else:
                    self._append(*good)
            return
        self._append(batch, codes, weight)

    def _encoded(self, chunk: Chunk) -> tuple[EncodedBatch, NDArray[np.int32], Any]:
        check_lengths(chunk.data, chunk.labels)
        found = self.found if self.known is None else self.known
        before = len(found)
        if isinstance(chunk.labels, LabelCodes):
            for name in chunk.labels.names if self.known is None else ():
                found.setdefault(name, len(found))
            codes, _ = encode_labels(chunk.labels, found)
        else:
            if self.known is None:
                _, classes = encode_labels(chunk.labels)
                _check_types(classes, chunk.labels)
                for label in classes:
                    found.setdefault(label, len(found))
            codes, _ = encode_labels(chunk.labels, found)
        try:
            batch = self.pieces.encode(chunk.data)
        except (ValueError, TypeError):
            for label in list(found)[before:]:  # of a sequence that is not there
                del found[label]
            raise
        return batch, codes, getattr(chunk.data, "sequence_weight", None)

    def _append(self, batch: EncodedBatch, codes: NDArray[np.int32], weight: Any) -> None:
        self.parts["offsets"].append(batch.offsets[1:] + self.n_tokens)
        self.parts["labels"].append(codes)
        self._rows("", batch.indptr, batch.indices, batch.values)
        self._rows("pair_", batch.pair_indptr, batch.pair_indices, None)
        if batch.dense is not None:
            part = self.parts.get("dense")
            if part is None:
                part = GrowingArray(batch.dense.dtype, self.directory, batch.n_dense)
            elif batch.dense.dtype == np.float64 and part.dtype == np.float32:
                part = part.changed(lambda rows, _: rows, np.float64)
            self.parts["dense"] = part
            part.append(batch.dense)
        if weight is not None or "sequence_weight" in self.parts:
            part = self._part("sequence_weight", np.float64, self.n_sequences)
            part.append(np.ones(batch.n_sequences) if weight is None else weight)
        self.n_tokens += batch.n_tokens
        self.n_sequences += batch.n_sequences

    def _part(self, name: str, dtype: Any, ones: int) -> GrowingArray:
        """Return a part, which begins with ones for what came before it."""
        if name not in self.parts:
            part = self.parts[name] = GrowingArray(dtype, self.directory)
            for at in range(0, ones, 1 << 20):
                part.append(np.ones(min(1 << 20, ones - at)))
        return self.parts[name]

    def _rows(self, prefix: str, indptr: Any, indices: Any, values: Any) -> None:
        if indptr is None:
            return
        if f"{prefix}indptr" not in self.parts:
            self.parts[f"{prefix}indptr"] = GrowingArray(np.int64, self.directory)
            self.parts[f"{prefix}indices"] = GrowingArray(np.uint32, self.directory)
            self.parts[f"{prefix}indptr"].append(np.zeros(1, np.int64))
        n = len(self.parts[f"{prefix}indices"])
        if values is not None or (prefix == "" and "values" in self.parts):
            part = self._part("values", np.float64 if self.double else np.float32, n)
            part.append(np.ones(len(indices)) if values is None else values)
        self.parts[f"{prefix}indptr"].append(indptr[1:] + n)
        self.parts[f"{prefix}indices"].append(indices)

    # --- writing ---------------------------------------------------------------------------------

    def write(self, path: Any, check: Callable[[list[Any]], None] | None) -> EncodedSummary:
        """Write the file."""
        classes, columns, counts = self._labels()
        if check is not None:
            check(classes)
        _check_types(classes, ())  # those of ``labels``, which no sequence need have
        kept = self._drop_rare()
        sizes = [
            n if some is None else len(some)
            for n, some in zip(self.pieces.sizes(), [*kept, None], strict=False)
        ]
        encoder = self.pieces.encoder
        meta = {
            "version": VERSION,
            "encoder": {**describe_encoder(encoder), "n_sparse": sizes[0], "n_pair": sizes[1]},
            "classes": classes,
            "label_counts": counts.tolist(),
            "n_sequences": self.n_sequences,
            "n_tokens": self.n_tokens,
            "n_skipped": self.skipped.n,
            "double": self.double,
            "format": self.source.file_format,
            "source": self.source.name[:1000],
        }
        number = columns.astype(np.int32)
        self.parts["labels"] = self.parts["labels"].changed(lambda codes, _: number[codes])
        arrays = {name: part.array() for name, part in self.parts.items()}
        arrays |= self.pieces.arrays(kept)
        n_bytes = write_container(path, KIND, meta, arrays)
        for part in self.parts.values():
            part.close()
        return EncodedSummary(
            self.n_sequences,
            self.n_tokens,
            len(classes),
            sizes[0] + encoder.n_dense,
            self.skipped.n,
            self.skipped.first,
            n_bytes,
        )

    def _labels(self) -> tuple[list[Any], NDArray[Any], NDArray[Any]]:
        """Return the labels, the place of each code among the weights, and the labels' counts."""
        codes = self.parts["labels"].array()
        by_code = np.zeros(len(self.found), np.int64)
        for at in range(0, len(codes), 1 << 20):
            by_code += np.bincount(codes[at : at + (1 << 20)], minlength=len(self.found))
        names = list(self.found)
        if self.known is not None:
            order = np.arange(len(names), dtype=np.int32)
        else:
            every = LabelCodes(np.arange(len(names), dtype=np.int32), names, np.array([0, 1]))
            order, names = encode_labels(every)
        counts = np.zeros(len(names), np.int64)
        counts[order] = by_code
        columns, _, _ = order_labels(names, counts, "hamming", None)
        return names, columns[order], counts

    def _drop_rare(self) -> list[NDArray[Any] | None]:
        """Leave out the features that are too rare; return those that are kept (None: all)."""
        least = max(self.pieces.encoder.min_count, 1)
        kept: list[NDArray[Any] | None] = []
        if least == 1 and self.skipped.n == 0:
            return [None for _ in self.pieces.counts()]
        for prefix, counts in zip(("", "pair_"), self.pieces.counts(), strict=False):
            some = None if counts is None else np.flatnonzero(counts >= least)
            if counts is None or some is None or len(some) == len(counts):
                kept.append(None)
                continue
            if prefix == "" and len(some) == 0:
                raise ValueError(
                    f"{self.source.name}: no feature occurs {least} times; lower the minimum count"
                )
            number = np.full(len(counts), DROPPED, np.uint32)
            number[some] = np.arange(len(some), dtype=np.uint32)
            self._renumber(prefix, number)
            kept.append(some)
        return kept

    def _renumber(self, prefix: str, number: NDArray[np.uint32]) -> None:
        indices, indptr = self.parts[f"{prefix}indices"], self.parts[f"{prefix}indptr"]
        old, ends = indices.array(), indptr.array()
        # Kept features keep their order, so rows stay sorted. In steps of whole rows.
        fresh = GrowingArray(np.uint32, self.directory)
        new_ends = GrowingArray(np.int64, self.directory)
        new_ends.append(np.zeros(1, np.int64))
        values = self.parts.get("values") if prefix == "" else None
        new_values = None if values is None else GrowingArray(values.dtype, self.directory)
        all_ones = True
        of_old = None if values is None else values.array()
        for at in range(0, len(ends) - 1, 1 << 16):
            rows = np.array(ends[at : at + (1 << 16) + 1])
            a, b = int(rows[0]), int(rows[-1])
            numbers = number[old[a:b]]
            there = numbers != DROPPED
            before = np.concatenate([[0], np.cumsum(there)])
            new_ends.append(len(fresh) + before[rows[1:] - a])
            fresh.append(numbers[there])
            if new_values is not None and of_old is not None:
                some = of_old[a:b][there]
                all_ones = all_ones and bool((some == 1).all())
                new_values.append(some)
        self.parts[f"{prefix}indices"], self.parts[f"{prefix}indptr"] = fresh, new_ends
        if new_values is not None:
            if all_ones:  # the features that had values were rare
                del self.parts["values"]
            else:
                self.parts["values"] = new_values


def _ahead(chunks: Iterator[Chunk], threaded: bool) -> Iterator[Chunk]:
    """Give chunks; with a thread, the next one is read meanwhile."""
    if not threaded:
        yield from chunks
        return
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk


def _check_types(classes: list[Any], labels: Any) -> None:
    """Refuse labels that no file can hold, with the first token that has one."""
    for bad in classes:
        if type(bad) in LABEL_TYPES:
            continue
        places = (
            f"y: sequence {i}, token {k}: "
            for i, sequence in enumerate(labels)
            for k, label in enumerate(sequence)
            if label == bad
        )
        raise TypeError(
            f"{next(places, '')}the label {quoted(bad)} is a {type(bad).__name__}; an encoded file "
            "holds labels that are str, int, float or bool"
        )


def _placed(error: Exception, where: str, number: int) -> Exception:
    """Return an error about the only sequence of a chunk as one about a sequence of the stream."""
    text = re.sub(r"\bsequence 0\b", f"sequence {number}", str(error), count=1)
    if f"sequence {number}" not in text:
        text = f"sequence {number}: {text}"
    placed = type(error)(f"{where}: {text}")
    placed.__cause__ = error.__cause__
    return placed
