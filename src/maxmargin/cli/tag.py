"""``maxmargin tag``: adds a column of labels to a file, or to a stream."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import TYPE_CHECKING, Any, BinaryIO

from maxmargin.cli.cells import check_labels
from maxmargin.cli.console import NO_INPUT, naming
from maxmargin.cli.marginals import labelling_shares, probability_cells, require_calibrated
from maxmargin.cli.model import LoadedModel, add_model, load_model, naming_model
from maxmargin.cli.options import add_reading, add_threads, at_least, read_data
from maxmargin.cli.tasks.registry import CHAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin tag -m pos.mm new.tsv > tagged.tsv
  tokenize < book.txt | maxmargin tag -m pos.mm | cut -f 1,2

The columns of the input are kept and one is added, so that there are as many lines as before. A
column with labels may be in the input or not. Sequences are tagged as they come in: a pipe gets its
answer when a blank line ends a sequence. Of crfsuite and svmhmm files the labels alone are written.
"""

#: Bytes that are read at a time; a pipe may give less.
CHUNK = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="what to tag; - is a pipe (default)"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write (standard output)"
    )
    parser.add_argument(
        "--nbest",
        type=at_least(1),
        default=None,
        metavar="K",
        help="the K best labellings of each sequence, each after a line '# rank score'",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="one more column: by how much the label beats the next best one there",
    )
    parser.add_argument(
        "--marginals",
        action="store_true",
        help="one more column: the probability of the label (of a labelling, with --nbest, in its "
        "line '# rank score probability'); see maxmargin calibrate",
    )
    add_reading(parser, labels=False)
    add_threads(parser)


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        As `configure` describes them.

    Returns
    -------
    int
        Exit code, 0.
    dict
        How much was tagged and how fast.
    """
    from maxmargin.io.text import open_for_writing

    for other in ("nbest", "marginals"):
        if getattr(options, other) and options.scores:
            raise ValueError(f"--{other} and --scores do not go together")
    if options.json and options.output == "-":
        raise ValueError("--json needs -o FILE: standard output cannot hold both")
    from maxmargin.models.kinds import kind_of

    kind: Any = kind_of(options.model)
    if kind.task != CHAIN:
        from maxmargin.cli.tasks.use import predict_file

        return predict_file(kind, options)
    begin = time.perf_counter()
    predictor = _Predictor(load_model(options), options)
    check_labels(predictor.labels, options.model)
    if options.marginals:
        require_calibrated(predictor.kind, predictor.model, options.model)
    loaded = time.perf_counter()
    n_sequences = n_tokens = 0
    with naming(options.output), open_for_writing(options.output) as out:
        for text, sequences, tokens in _tagged(predictor, options):
            out.write(text)
            if options.output == "-":
                out.flush()
            n_sequences += sequences
            n_tokens += tokens
    seconds = time.perf_counter() - loaded
    return 0, {
        "n_sequences": n_sequences,
        "n_tokens": n_tokens,
        "seconds_load": loaded - begin,
        "seconds_tag": seconds,
        "tokens_per_second": n_tokens / seconds if seconds > 0 else None,
    }


class _Predictor:
    """A model with the options that say what is written of its predictions."""

    def __init__(self, loaded: LoadedModel, options: argparse.Namespace) -> None:
        self.kind, self.model, self.inputs = loaded
        self.options = options
        self.labels = self.kind.labels(self.model)
        self.names = [str(label) for label in self.labels]

    def cells(self, data: ColumnTable | Items, separator: str) -> tuple[Any, list[str]]:
        """Return what is written for the tokens, as places in a list of texts."""
        threads = self.options.threads
        if self.options.marginals:
            codes, probabilities, _ = self.kind.marginals(self.model, data, threads)
            return probability_cells(codes, probabilities, self.names, separator)
        if not self.options.scores:
            return self.kind.predict(self.model, data, threads), self.names
        import numpy as np

        with naming_model(self.options.model):
            codes, margins = self.kind.margins(self.model, data, threads)
        cells = [
            f"{self.names[c]}{separator}{m:.4f}"
            for c, m in zip(codes.tolist(), margins, strict=True)
        ]
        return np.arange(len(cells), dtype=np.int32), cells

    def kbest(self, data: ColumnTable | Items) -> Iterator[list[tuple[str, list[int]]]]:
        """Yield for each sequence the head line and the labels' codes of each of its best ones."""
        with naming_model(self.options.model):
            found = self.kind.kbest(self.model, data, self.options.nbest, self.options.threads)
        shares: list[Any] = [None] * len(found)
        if self.options.marginals:
            shares = labelling_shares(self.kind, self.model, data, self.options.threads)
        for outputs, share in zip(found, shares, strict=True):
            yield [
                (f"# {rank} {score:.6f}{share(score) if share else ''}", codes.tolist())
                for rank, (score, codes) in enumerate(outputs)
            ]


def _tagged(
    predictor: _Predictor, options: argparse.Namespace
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the output piece by piece, with the numbers of sequences and tokens in it."""
    if options.format == "conll":
        with _opened(options.file, options.max_inflated) as stream:
            for table in _tables(stream, options, predictor.labels):
                if isinstance(table, bytes):  # blank lines and comments only
                    yield table, 0, 0
                else:
                    yield _columns(predictor, table), table.n_sequences, table.n_tokens
        return
    from maxmargin.errors import EmptyFileError

    try:
        data: Any = read_data(options.file, options, predictor.inputs.vocabulary)
    except EmptyFileError:  # nothing in, nothing out
        return
    if options.format == "conllu":
        yield _columns(predictor, data), data.n_sequences, data.n_tokens
        return
    yield _labels_only(predictor, data), data.batch.n_sequences, data.batch.n_tokens


def _opened(path: str, max_inflated: int | None) -> Any:
    """Open a file for reading bytes as they come; gzip is recognised."""
    import contextlib
    from pathlib import Path

    if path == "-":
        if sys.stdin is None:
            raise OSError(NO_INPUT)
        pipe: Any = sys.stdin.buffer
        # peek waits until something is there, and takes nothing away
        if not hasattr(pipe, "peek") or pipe.peek(2)[:2] != b"\x1f\x8b":
            return contextlib.nullcontext(pipe)
    else:
        with Path(path).open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        if not compressed and not path.endswith(".gz"):
            return Path(path).open("rb")
    import io

    from maxmargin.io.text import read_bytes

    return io.BytesIO(read_bytes(path, max_inflated=max_inflated))


def _tables(
    stream: BinaryIO, options: argparse.Namespace, labels: Sequence[Any]
) -> Iterator[ColumnTable | bytes]:
    """Cut a stream into tables of whole sequences, as large as what has come in."""
    from maxmargin.errors import EmptyFileError
    from maxmargin.io.columns import parse_columns
    from maxmargin.io.stream import SequenceCutter
    from maxmargin.io.text import name_of

    source = name_of(options.file)
    separator, n_columns, line = options.separator, 0, 1
    cutter = SequenceCutter()
    while True:
        # A pipe gives what it has, without waiting for more.
        chunk = stream.read1(CHUNK) if hasattr(stream, "read1") else stream.read(CHUNK)
        piece = cutter.add(chunk) if chunk else cutter.rest()
        if piece:
            try:
                table = parse_columns(
                    piece,
                    source,
                    separator=separator,
                    comment=options.comments,
                    n_columns=n_columns,
                    first_line=line,
                )
            except EmptyFileError:  # blank lines and comments only
                yield piece
            else:
                separator, n_columns = table.native.separator, table.n_columns
                if separator == "space":
                    check_labels(labels, options.model, spaces=False)
                yield table
            line += piece.count(b"\n")
        if not chunk:
            return


def _columns(predictor: _Predictor, table: ColumnTable) -> bytes:
    """Return the table with the labels behind its columns."""
    sep = " " if table.native.separator == "space" else "\t"
    if predictor.options.nbest is None:
        places, cells = predictor.cells(table, sep)
        return table.native.with_column(places, cells, predictor.options.comments or "")
    which, names = list(range(table.n_columns)), predictor.names
    lines = []
    for i, outputs in enumerate(predictor.kbest(table)):
        rows = [sep.join(row) for row in table.native.rows(i, which)]
        for head, codes in outputs:
            lines.append(head)
            lines += [f"{row}{sep}{names[c]}" for row, c in zip(rows, codes, strict=True)]
            lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()


def _labels_only(predictor: _Predictor, items: Items) -> bytes:
    """Return a label a line, a blank line between sequences."""
    if predictor.options.nbest is not None:
        lines = []
        for outputs in predictor.kbest(items):
            for head, codes in outputs:
                lines += [head, *(predictor.names[c] for c in codes), ""]
        return "".join(f"{line}\n" for line in lines).encode()
    places, cells = predictor.cells(items, "\t")
    tags = [cells[k] for k in places.tolist()]
    ends = items.batch.offsets.tolist()
    blocks = ("\n".join(tags[a:b]) for a, b in itertools.pairwise(ends))
    return ("\n\n".join(blocks) + "\n").encode()
