"""What users and the command call: a source by its path or as Python objects, encoded to a file."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxmargin.features.select import encoder_of
from maxmargin.streams.corpus import EncodedCorpus, is_encoded
from maxmargin.streams.encoding import EncodedSummary, encode_source
from maxmargin.streams.parts import check_directory
from maxmargin.streams.sources import ColumnFile, ExampleStream, ItemFile, Source, path_list
from maxmargin.streams.tables import TableFiles, looks_like_table

__all__ = ["encode", "open_source", "temporary_corpus"]


def open_source(
    source: Any,
    *,
    file_format: str | None = None,
    label_column: int = -1,
    columns: Sequence[str] | None = None,
    sequence: str | Sequence[str] | None = None,
    separator: str = "auto",
    comment: str | None = None,
    max_inflated: int | None = None,
    encoding: str | None = None,
    memory: int | None = None,
    part: tuple[int, int] | None = None,
) -> Source:
    """Return where sequences come from.

    Parameters
    ----------
    source : path, list of paths, pyarrow Dataset, iterable, or callable
        Column or item files ("-" is standard input), Parquet or Arrow files or
        a directory of them, or pairs (x, y), from an iterable or a function that returns one.
    file_format : {"conll", "crfsuite", "svmhmm", "conllu", "parquet"} or None
        Of files; None: columns, or Parquet and Arrow by their ending.
    label_column, separator, comment, max_inflated, encoding
        Of column files, as for `maxmargin.SequenceTagger.from_columns`.
    columns : list of str or None
        Of Parquet and Arrow: the columns, the label's last (None: all but ``sequence``); of CoNLL-U
        the columns to take (None: form and upos).
    sequence : str, list of str or None
        Of Parquet and Arrow: the columns whose change begins another sequence; None: a row is a
        sequence, its cells are lists.
    memory : int or None
        The budget in bytes, which governs how much is read at a time.
    part : (int, int) or None
        k and K: only the k-th of K parts of each column or item file; None: all of it.

    Returns
    -------
    Source
        It is read when it is encoded.
    """
    piece = 1 << 20 if memory is None else min(max(memory // 400, 1 << 16), 1 << 20)
    paths = path_list(source)
    is_table = not callable(source) and hasattr(source, "scanner")
    if (
        is_table
        or file_format == "parquet"
        or (file_format is None and paths is not None and all(map(looks_like_table, paths)))
    ):
        given = source if paths is None else paths
        return TableFiles(given, columns, sequence, rows=max(piece // 64, 1024))
    if paths is None and not hasattr(source, "read"):
        return ExampleStream(source, n_tokens=max(piece // 16, 1024))
    files = [source] if paths is None else paths
    if file_format in ("crfsuite", "svmhmm"):
        return ItemFile(
            files,
            file_format,
            max_inflated=max_inflated,
            encoding=encoding,
            piece_bytes=piece,
            part=part,
        )
    conllu = list(columns or ("form", "upos")) if file_format == "conllu" else None
    if file_format not in (None, "conll", "conllu"):
        raise ValueError(
            f"file_format is {file_format!r}; expected conll, crfsuite, svmhmm, conllu or parquet"
        )
    return ColumnFile(
        files,
        label_column=label_column,
        separator=separator,
        comment=comment,
        max_inflated=max_inflated,
        encoding=encoding,
        conllu=conllu,
        piece_bytes=piece,
        part=part,
    )


def encode(
    source: Any,
    path: Any,
    *,
    template: Any = None,
    min_count: int = 1,
    hash_bits: int | None = None,
    labels: Any = None,
    dtype: str = "float32",
    on_error: str = "raise",
    memory: int | None = None,
    spill: Any = None,
    threads: int = 1,
    **reading: Any,
) -> EncodedSummary:
    """Encode training data to a file, from which `SequenceTagger.fit` trains.

    Parameters
    ----------
    source : path, list of paths, pyarrow Dataset, iterable, or callable
        As for `open_source`. The data may be larger than the memory; they are read once.
    path : path
        The file; replaced when all of it is written.
    template, min_count, hash_bits, labels
        As for `SequenceTagger`. None as template of column files is "words".
    dtype : {"float32", "float64"}
        As which values of features are kept: the type of the weights that are trained later.
    on_error : {"raise", "skip"}
        Whether a bad sequence ends everything, or is left out and counted.
    memory : int or None
        Bytes that the list of features may take; None: as many as there are.
    spill : path or None
        Directory for temporary files; None: that of ``path``.
    threads : int
        Threads to use; the file does not depend on it.
    **reading
        Further parameters of `open_source`.

    Returns
    -------
    EncodedSummary
        What was encoded.
    """
    opened = source if isinstance(source, Source) else open_source(source, memory=memory, **reading)
    if template is None and isinstance(opened, ColumnFile | TableFiles):
        template = "words"
    encoder = encoder_of(template, min_count=min_count, hash_bits=hash_bits, threads=threads)
    encoder.double = str(dtype) == "float64"
    directory = Path(path).resolve().parent if spill is None else spill
    return encode_source(
        opened,
        path,
        encoder,
        labels=labels,
        on_error=on_error,
        memory=memory,
        spill=directory,
        threads=threads,
    )


def temporary_corpus(
    source: Any, *, spill: Any = None, **options: Any
) -> tuple[EncodedCorpus, EncodedSummary | None]:
    """Return data as an encoded corpus: as it is, or encoded to a file that nobody sees.

    Parameters
    ----------
    source : EncodedCorpus, path, or what `encode` takes
        The data.
    spill : path or None
        Directory for temporary files; None: the system's own.
    **options
        Of `encode`.

    Returns
    -------
    corpus : EncodedCorpus
        Its file, if it is a temporary one, is deleted already: the space is given back with the
        last use of the corpus, or when the process ends in whatever way.
    summary : EncodedSummary or None
        What was encoded; None if nothing was.
    """
    if isinstance(source, EncodedCorpus):
        return source, None
    if is_encoded(source):
        return EncodedCorpus.open(source), None
    with tempfile.TemporaryDirectory(dir=check_directory(spill), prefix="maxmargin-") as folder:
        path = Path(folder) / "data.mme"
        summary = encode(source, path, spill=folder, **options)
        template = options.get("template")
        corpus = EncodedCorpus.open(path, template if callable(template) else None)
    return corpus, summary
