"""``maxmargin convert``: turn files of one format into another, or a model into a text."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from maxmargin.cli.cells import check_trained
from maxmargin.cli.console import naming, say
from maxmargin.cli.options import is_function, make_encoder, note
from maxmargin.cli.reading import add_reading, read_data
from maxmargin.io.compression import plain_name
from maxmargin.io.recognise import ENDINGS, FORMATS, format_of_name
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch
    from maxmargin.features.columns import ColumnTable, LabelCodes
    from maxmargin.features.items import Items
    from maxmargin.io.named_features import NamedFeatures

__all__ = ["configure", "run"]

def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.add_argument(
        "input",
        metavar="IN",
        help="the file to read; - is standard input; a model is written as a text, in the form "
        "that its kind has",
    )
    parser.add_argument(
        "output",
        metavar="OUT",
        help="the file to write, gzipped if its name ends with .gz; - is standard output; it may "
        "be IN",
    )
    parser.add_argument(
        "--to",
        choices=FORMATS,
        default=None,
        help="format of OUT (default: by its ending: .crfsuite .items, .svmhmm .svm .dat, or "
        ".tsv .conll .txt, perhaps with .gz)",
    )
    parser.add_argument(
        "--template",
        metavar="TEMPLATE",
        default=None,
        help="from columns to crfsuite or svmhmm: which features tokens get; the name of a "
        "built-in template, a file, or module:function (default: words)",
    )
    numbered = parser.add_argument_group("to svmhmm, whose features and labels are numbers")
    numbered.add_argument(
        "--features",
        metavar="FILE",
        default=None,
        help="write the names of the features there: number TAB name",
    )
    numbered.add_argument(
        "--numeric-labels",
        action="store_true",
        help="number the labels from 1, as SVM^hmm itself wants it; the list goes to --labels, or "
        "to --features as lines '# label NUMBER TAB LABEL' (default: labels stay as they are)",
    )
    numbered.add_argument(
        "--labels",
        metavar="FILE",
        default=None,
        help="write the numbers of the labels there: number TAB label",
    )
    add_reading(parser, flag="--from")


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
        ``input``, ``output``, ``from``, ``to``, ``n_sequences``, ``n_tokens``, ``n_features``
        (None for columns) and ``bytes``, the size of what was written.

    Raises
    ------
    ValueError
        If one format cannot be turned into the other, or if the input is not what it should be.
    OSError
        If a file cannot be read or written; nothing is left behind then.
    """
    if _is_model(options.input):
        return 0, _write_model(options)
    target = _target(options)
    _check(options.format or format_of_name(options.input) or "conll", target, options)
    data = read_data(options.input, options)
    source = options.format
    _check(source, target, options)
    if target == "conll":
        size = _write_columns(data, options)
        n_features = None
        n_sequences, n_tokens = data.n_sequences, data.n_tokens  # type: ignore[union-attr]
    else:
        features = _features(data, options)
        batch = features.batch
        n_sequences, n_tokens = batch.n_sequences, batch.n_tokens
        if target == "crfsuite":
            n_features = batch.n_sparse
            size = _write_crfsuite(features, options)
        else:
            n_features, size = _write_svmhmm(features, source, options)
    summary = {
        "input": options.input,
        "output": options.output,
        "from": source,
        "to": target,
        "n_sequences": n_sequences,
        "n_tokens": n_tokens,
        "n_features": n_features,
        "bytes": size,
    }
    if not options.json and options.output != "-":
        from maxmargin.memory import format_bytes

        known = "" if n_features is None else f", {n_features} features"
        say(
            f"{options.output}: {source} -> {target}: {n_sequences} sequences, {n_tokens} tokens"
            f"{known}, {format_bytes(size)}"
        )
    return 0, summary


# --- what is asked for ----------------------------------------------------------------------------


def _is_model(path: str) -> bool:
    """Whether a file begins as model files do; what cannot be read is found out later."""
    from pathlib import Path

    from maxmargin.io.container import MAGIC

    if path == "-" or not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _write_model(options: argparse.Namespace) -> dict[str, Any]:
    """Write the weights of a model as a text."""
    from pathlib import Path

    from maxmargin.cli.model import naming_model
    from maxmargin.models.kinds import kind_of

    source, target = options.input, options.output
    if target != "-" and Path(target).exists() and Path(target).samefile(source):
        raise ValueError(f"{target}: is the model itself; expected another file")
    kind = kind_of(source)
    model = kind.load_to_describe(source)
    with naming_model(source), naming(target):
        n_weights = kind.write_text(target, model)
    formats = {"from": kind.name, "to": "text"}
    return {"input": source, "output": target, **formats, "weights": n_weights}


def _target(options: argparse.Namespace) -> str:
    """Return the format of the output: as asked for, or by the ending of its name."""
    if options.to is not None:
        return str(options.to)
    ending = os.path.splitext(plain_name(options.output))[1]  # noqa: PTH122
    if ending.lower() not in ENDINGS:
        raise ValueError(
            f"{options.output}: the name does not tell the format; add --to "
            f"{', --to '.join(name for name in FORMATS if name != 'conllu')}"
        )
    return ENDINGS[ending.lower()]


def _check(source: str, target: str, options: argparse.Namespace) -> None:
    """Refuse what cannot be done, before anything is read."""
    refused = f"{options.input}: {source} cannot be turned into {target}:"
    if target == "conllu":
        raise ValueError(f"{refused} nothing here knows the ten columns of CoNLL-U; expected conll")
    if target == "conll":
        if source in ("crfsuite", "svmhmm"):
            raise ValueError(
                f"{refused} its features are expanded, and columns cannot be had back from them"
            )
        if options.template is not None:
            raise ValueError("--template makes features, and files of columns hold none")
    if target != "svmhmm":
        for flag in ("features", "labels", "numeric_labels"):
            if getattr(options, flag):
                raise ValueError(
                    f"--{flag.replace('_', '-')} is for svmhmm, whose features and labels are "
                    f"numbers; {target} has names"
                )
    if options.numeric_labels and not (options.labels or options.features):
        raise ValueError(
            "--numeric-labels needs a file for the list of the labels: --labels FILE, or "
            "--features FILE"
        )
    if options.labels and not options.numeric_labels:
        raise ValueError("--labels lists the numbers of the labels; add --numeric-labels")
    written = [p for p in (options.output, options.features, options.labels) if p is not None]
    if len({p if p == "-" else os.path.realpath(p) for p in written}) < len(written):
        raise ValueError(
            f"{options.output}: is to be written twice; expected different files for OUT, "
            "--features and --labels"
        )


# --- features -------------------------------------------------------------------------------------


def _features(data: ColumnTable | Items, options: argparse.Namespace) -> NamedFeatures:
    """Return the features of a file: as they are in it, or by a template."""
    import numpy as np

    from maxmargin.features.columns import ColumnTable
    from maxmargin.io.named_features import NamedFeatures

    if not isinstance(data, ColumnTable):
        if options.template is not None:
            make_encoder(options.template, data)  # which refuses it in its words
        names = data.vocabulary.names()
        return NamedFeatures(data.batch, names, data.label_codes, None, data.sequence_weight)
    data, labels = data.labelled(options.label_column)
    if options.template is not None and is_function(options.template):
        return _by_function(data, labels, options)
    encoder: Any = make_encoder(options.template, data)
    batch = encoder.fit_transform(data)
    # Native code sorts the features of a token by number; people expect the order of the template.
    lines = encoder.unigrams.lines_of(np.arange(encoder.n_sparse))
    if encoder.n_pair:
        note(
            f"{encoder.template.source}: features of two labels (B and * lines with commands) are "
            "left out; the other formats have none"
        )
    return NamedFeatures(batch, encoder.feature_names(), labels, _by_line(batch, lines))


def _by_function(
    table: ColumnTable, labels: LabelCodes, options: argparse.Namespace
) -> NamedFeatures:
    """Return what a function of the user makes of a table; its failures are input, not faults."""
    from maxmargin.io.named_features import NamedFeatures

    try:
        encoder = make_encoder(options.template, table)
        batch = encoder.fit_transform(table)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if str(error).startswith((f"template {options.template}", options.template)):
            raise
        kind = "" if type(error) in (ValueError, TypeError) else f"{type(error).__name__}: "
        raise ValueError(
            f"template {options.template}, at {table.source}: {kind}{error}"
        ) from error
    if batch.indices is None or batch.dense is not None:
        raise ValueError(
            f"template {options.template}: gives features that are arrays; expected lists of str, "
            "or dicts"
        )
    return NamedFeatures(batch, encoder.feature_names(), labels)


def _by_line(batch: EncodedBatch, lines: NDArray[Any]) -> NDArray[Any]:
    """Return the places of a batch's entries, those of a token by the lines of the template."""
    import numpy as np

    assert batch.indptr is not None
    assert batch.indices is not None
    token = np.repeat(np.arange(batch.n_tokens, dtype=np.int64), np.diff(batch.indptr))
    token *= int(lines.max(initial=0)) + 1
    return np.argsort(token + lines[batch.indices], kind="stable")


# --- writing --------------------------------------------------------------------------------------


def _source(options: argparse.Namespace) -> str:
    from maxmargin.io.text import name_of

    return name_of(options.input)


def _write(path: str, pieces: Iterator[str], others: dict[str, str] | None = None) -> int:
    """Write a file and others beside it, all of them or none.

    Parameters
    ----------
    path : str
        The file; "-" is standard output.
    pieces : iterator of str
        Its text.
    others : dict of str to str
        Texts of other files by their names.

    Returns
    -------
    int
        The size of the file, or the number of bytes that were written if it is no plain file.
    """
    from pathlib import Path

    from maxmargin.io.text import open_for_writing

    size = 0
    with naming(path), contextlib.ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open_for_writing(path))
        for name, text in (others or {}).items():
            with naming(name):
                stack.enter_context(open_for_writing(name)).write(text.encode())
        for piece in pieces:
            size += file.write(piece.encode())
    if path != "-" and Path(path).is_file():
        return Path(path).stat().st_size
    return size


def _write_columns(data: ColumnTable | Items, options: argparse.Namespace) -> int:
    from maxmargin.features.columns import ColumnTable
    from maxmargin.io.columns import column_texts

    assert isinstance(data, ColumnTable)
    return _write(options.output, column_texts(data))


@contextlib.contextmanager
def _naming_source(source: str) -> Iterator[None]:
    """Name the file in the errors about what a format cannot hold."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _write_crfsuite(features: NamedFeatures, options: argparse.Namespace) -> int:
    from maxmargin.io.crfsuite import crfsuite_texts

    source = _source(options)
    with _naming_source(source):
        texts = crfsuite_texts(features)
    check_trained(features.labels, source)
    return _write(options.output, texts)


def _write_svmhmm(
    features: NamedFeatures, source_format: str, options: argparse.Namespace
) -> tuple[int, int]:
    """Write an SVM^hmm file, and the lists of features and labels.

    Returns
    -------
    n_features : int
        How many features there are.
    size : int
        As `_write` returns it.
    """
    from maxmargin.io.svmhmm import number_features, svmhmm_texts, tag_text

    source, names = _source(options), features.names
    if features.weights is not None:
        note(
            f"maxmargin convert: {source}: svmhmm files have no weights of sequences; "
            "they are left out"
        )
    features, numbers = number_features(features, named_by_number=source_format == "svmhmm")
    if options.numeric_labels:
        tags = [str(k) for k in range(1, len(features.labels.names) + 1)]
    else:
        with _naming_source(source):
            tags = [tag_text(label) for label in features.labels.names]
        check_trained(features.labels, source)
    others: dict[str, str] = {}
    numbered = _listed(tags, features.labels.names, source)
    if options.labels:
        others[options.labels] = "".join(numbered)
    if options.features:
        in_front = [f"# label {line}" for line in numbered]
        front = "".join(in_front) if options.numeric_labels and not options.labels else ""
        others[options.features] = front + "".join(_listed(numbers, names, source))
    return len(names), _write(options.output, svmhmm_texts(features, numbers, tags), others)


def _listed(numbers: list[str], names: list[str], source: str) -> list[str]:
    for name in names:
        if "\n" in name or "\r" in name:
            raise ValueError(
                f"{source}: found the name {quoted(name)}; expected one without ends of lines, "
                "which a list cannot hold"
            )
    return [f"{number}\t{name}\n" for number, name in zip(numbers, names, strict=True)]
