"""``maxmargin tag``: adds a column of labels to a file, or to a stream."""

from __future__ import annotations

import argparse
import itertools
import time
from typing import TYPE_CHECKING, Any

from maxmargin.cli.cells import check_labels
from maxmargin.cli.console import naming
from maxmargin.cli.marginals import require_calibrated
from maxmargin.cli.model import add_model, load_model
from maxmargin.cli.options import add_threads, at_least
from maxmargin.cli.reading import add_reading, read_data
from maxmargin.cli.tagging.known import add_known
from maxmargin.cli.tagging.predictor import Predictor
from maxmargin.cli.tagging.streams import encoder_of, opened, pieces
from maxmargin.cli.tasks.registry import CHAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin tag -m pos.mm new.tsv > tagged.tsv
  tokenize < book.txt | maxmargin tag -m pos.mm | cut -f 1,2
  maxmargin tag -m pos.mm half_done.tsv --known 1      what column 1 has, but for _, is kept

The columns of the input are kept and one is added, so that there are as many lines as before. A
column with labels may be in the input or not. Sequences are tagged as they come in: a pipe gets its
answer when a blank line ends a sequence. Of crfsuite and svmhmm files the labels alone are written.
CoNLL-U stays CoNLL-U: the labels take their place in its column, all else is as it was. Format,
columns, separator and encoding are those of training unless they are given.
"""

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
    add_known(parser)
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
    predictor = Predictor(load_model(options), options)
    check_labels(predictor.labels, options.model)
    if options.marginals:
        require_calibrated(predictor.kind, predictor.model, options.model)
    encode = encoder_of(options.encoding, predictor.names, options.model)
    loaded = time.perf_counter()
    n_sequences = n_tokens = 0
    with naming(options.output), open_for_writing(options.output) as out:
        for text, sequences, tokens in _tagged(predictor, options):
            out.write(encode(text))
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


def _tagged(
    predictor: Predictor, options: argparse.Namespace
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the output piece by piece, with the numbers of sequences and tokens in it."""
    if options.format in ("conll", "conllu"):
        parts = _tagged_tables if options.format == "conll" else _tagged_conllu
        with opened(options.file, options) as stream:
            yield from parts(predictor, stream, options)
        return
    from maxmargin.errors import EmptyFileError

    try:
        data: Any = read_data(options.file, options, predictor.inputs.vocabulary)
    except EmptyFileError:  # nothing in, nothing out
        return
    yield _labels_only(predictor, data), data.batch.n_sequences, data.batch.n_tokens


def _tagged_tables(
    predictor: Predictor, stream: Any, options: argparse.Namespace
) -> Iterator[tuple[bytes, int, int]]:
    """Tag a stream of columns, in tables of whole sequences as large as what has come in."""
    from maxmargin.errors import EmptyFileError
    from maxmargin.io.columns import parse_columns
    from maxmargin.io.text import name_of

    source = name_of(options.file)
    separator, n_columns = options.separator, 0
    for piece, line in pieces(stream):
        try:
            table = parse_columns(
                piece,
                source,
                separator=separator,
                comment=options.comments or None,
                n_columns=n_columns,
                first_line=line,
            )
        except EmptyFileError:  # blank lines and comments only
            yield piece, 0, 0
            continue
        separator, n_columns = table.native.separator, table.n_columns
        if separator == "space":
            check_labels(predictor.labels, options.model, spaces=False)
        yield _columns(predictor, table), table.n_sequences, table.n_tokens


def _tagged_conllu(
    predictor: Predictor, stream: Any, options: argparse.Namespace
) -> Iterator[tuple[bytes, int, int]]:
    """Tag a stream of CoNLL-U, of which all but the labels stays as it is."""
    from maxmargin.errors import EmptyFileError
    from maxmargin.io.columns import parse_columns
    from maxmargin.io.conllu import conllu_to_columns
    from maxmargin.io.conllu_labels import with_labels
    from maxmargin.io.text import name_of

    source, columns = name_of(options.file), options.columns.split(",")
    label = predictor.inputs.label_column
    if label is None or label >= len(columns):
        raise ValueError(
            f"{options.model}: does not say which of the columns {options.columns} has the labels; "
            "expected a model of labelled CoNLL-U files, or --columns with as many names as the "
            "columns of training"
        )
    for piece, line in pieces(stream):
        try:
            taken = conllu_to_columns(piece, columns, source, line)
        except EmptyFileError:
            yield piece, 0, 0
            continue
        table = parse_columns(taken, source, separator="tab")
        known = predictor.known.of_conllu(piece, line)
        if options.nbest is not None:
            text = _conllu_kbest(predictor, table, piece, columns[label], known)
        else:
            places, cells = predictor.cells(table, "\t", known)
            labels = [cells[k] for k in places.tolist()]
            notes = None
            if options.scores or options.marginals:
                name = "Margin" if options.scores else "Probability"
                notes = [f"{name}={cell.partition(chr(9))[2]}" for cell in labels]
                labels = [cell.partition("\t")[0] for cell in labels]
            text = with_labels(piece, columns[label], labels, notes)
        yield text, table.n_sequences, table.n_tokens


def _conllu_kbest(
    predictor: Predictor, table: ColumnTable, piece: bytes, column: str, known: Any
) -> bytes:
    """Return each sentence as often as it has labellings, with a comment that tells their rank."""
    from maxmargin.io.conllu_labels import conllu_sentences, with_labels

    out = []
    found = predictor.kbest(table, known)
    for sentence, outputs in zip(conllu_sentences(piece), found, strict=True):
        tail = sentence[len(sentence.rstrip(b"\r\n")) :]
        end = b"\n" * max(0, 2 - tail.count(b"\n"))
        for head, codes in outputs:
            labels = [predictor.names[c] for c in codes]
            figures = zip(("nbest", "score", "probability"), head.split(" ")[1:], strict=False)
            out.append("".join(f"# {name} = {figure}\n" for name, figure in figures).encode())
            out.append(with_labels(sentence, column, labels) + end)
    return b"".join(out)


def _columns(predictor: Predictor, table: ColumnTable) -> bytes:
    """Return the table with the labels behind its columns."""
    sep = " " if table.native.separator == "space" else "\t"
    table, known = predictor.known.of_table(table)
    if predictor.options.nbest is None:
        places, cells = predictor.cells(table, sep, known)
        return table.native.with_column(places, cells, predictor.options.comments or "")
    which, names = list(range(table.n_columns)), predictor.names
    lines = []
    for i, outputs in enumerate(predictor.kbest(table, known)):
        rows = [sep.join(row) for row in table.native.rows(i, which)]
        for head, codes in outputs:
            lines.append(head)
            lines += [f"{row}{sep}{names[c]}" for row, c in zip(rows, codes, strict=True)]
            lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()


def _labels_only(predictor: Predictor, items: Items) -> bytes:
    """Return a label a line, a blank line between sequences."""
    known = predictor.known.of_items(items)
    if predictor.options.nbest is not None:
        lines = []
        for outputs in predictor.kbest(items, known):
            for head, codes in outputs:
                lines += [head, *(predictor.names[c] for c in codes), ""]
        return "".join(f"{line}\n" for line in lines).encode()
    places, cells = predictor.cells(items, "\t", known)
    tags = [cells[k] for k in places.tolist()]
    ends = items.batch.offsets.tolist()
    blocks = ("\n".join(tags[a:b]) for a, b in itertools.pairwise(ends))
    return ("\n\n".join(blocks) + "\n").encode()
