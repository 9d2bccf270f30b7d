"""Data that do not fit in memory, for the command: options, sources, encoded files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note
from maxmargin.cli.options import guarded, is_function, load_function, size
from maxmargin.cli.prior import read_prior, template_like

if TYPE_CHECKING:
    from maxmargin.cli.training_data import Learned
    from maxmargin.streams import EncodedCorpus, EncodedSummary
    from maxmargin.streams.sources import Source

__all__ = [
    "add_errors",
    "add_spill",
    "add_streaming",
    "check_streaming",
    "describe_encoded",
    "encoder_options",
    "is_streamed",
    "learn_streamed",
    "note_skipped",
    "recognised_format",
    "source_of",
]


def add_errors(parser: Any) -> None:
    """Add ``--on-error``."""
    parser.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        default="raise",
        help="what is done with a bad sequence: it ends the command (default), or is left out and "
        "counted",
    )


def add_spill(parser: Any) -> None:
    """Add ``--spill``."""
    parser.add_argument(
        "--spill",
        metavar="DIR",
        default=None,
        help="where temporary files are made (default: the system's directory for them)",
    )


def add_streaming(parser: argparse.ArgumentParser) -> None:
    """Add the options for data that do not fit in memory."""
    group = parser.add_argument_group("data that do not fit in memory (docs/streaming.md)")
    group.add_argument(
        "--stream",
        action="store_true",
        help="read TRAIN in pieces (or an encoded file) and train within --memory",
    )
    group.add_argument(
        "--memory",
        type=size,
        default=None,
        metavar="SIZE",
        help="budget such as 500M for everything but the weights; implies --stream (default: 1G)",
    )
    add_spill(group)
    add_errors(group)


def is_streamed(options: argparse.Namespace) -> bool:
    """Whether training data come from an encoded file, or are to be encoded to one."""
    if options.stream or options.memory is not None or options.on_error == "skip":
        return True
    from maxmargin.streams.tables import looks_like_table

    return options.format is None and (
        _is_encoded(options.train) or looks_like_table(options.train)
    )


def _is_encoded(path: str) -> bool:
    from maxmargin.streams import is_encoded

    return is_encoded(path)


def check_streaming(options: argparse.Namespace) -> None:
    """Refuse what does not go with data that do not fit in memory."""
    within = options.stream or options.memory is not None
    for name in ("cv", "nonzeros", "debias"):
        if within and getattr(options, name) is not None:
            raise ValueError(
                f"--{name} needs all data in memory; it does not go with --stream and --memory"
            )
    if not is_streamed(options):
        return
    if options.start is not None:
        raise ValueError("--start needs all data in memory; it does not go with --stream")
    if options.embeddings is not None:
        raise ValueError("--embeddings needs all data in memory; it does not go with --stream")
    if options.kernel != "linear":
        raise ValueError(
            f"--kernel {options.kernel} compares all tokens; it does not go with --stream"
        )


def note_skipped(summary: EncodedSummary) -> None:
    """Say how many sequences were left out."""
    if summary.n_skipped:
        note(f"maxmargin: left out {summary.n_skipped} sequences; the first: {summary.first_error}")


def source_of(options: argparse.Namespace, paths: list[str]) -> Source:
    """Return what the options say of where sequences come from; a format is recognised."""
    from maxmargin.streams import open_source

    columns = getattr(options, "columns", None)
    by = getattr(options, "sequence", None)
    recognised_format(options, paths)
    return open_source(
        paths,
        file_format=options.format,
        label_column=options.label_column,
        columns=None if columns is None else columns.split(","),
        sequence=None if by is None else by.split(","),
        separator=options.separator,
        comment=options.comments,
        max_inflated=options.max_inflated,
        encoding=options.encoding,
        memory=getattr(options, "memory", None),
    )


def recognised_format(options: argparse.Namespace, paths: list[str]) -> None:
    """Enter the format of files into the options, if none was given."""
    from maxmargin.cli.reading import settle
    from maxmargin.streams.tables import looks_like_table

    settle(options)
    if options.format is None and not all(map(looks_like_table, paths)):
        options.format = _recognised(paths[0], options)


def _recognised(path: str, options: argparse.Namespace) -> str | None:
    """Return the format of a file by its name and beginning; None of a pipe."""
    from pathlib import Path

    from maxmargin.io.pieces import text_chunks
    from maxmargin.io.recognise import LOOKED_AT, recognise

    if path == "-" or not Path(path).is_file():
        return None
    begin = b""
    for chunk in text_chunks(path, max_inflated=options.max_inflated, encoding=options.encoding):
        begin += chunk
        if len(begin) >= LOOKED_AT:
            break
    return recognise(path, begin, options.format_flag)


def encoder_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of `maxmargin.streams.encode` that say which features there are."""
    template: Any = options.template
    if template is not None and options.format in ("crfsuite", "svmhmm"):
        raise ValueError(
            "--template is for columns; the features of crfsuite and svmhmm files are expanded"
        )
    if template is not None and is_function(template):
        template = guarded(load_function(template), f"template {template}")
    return {
        "template": template,
        "min_count": options.min_count,
        "hash_bits": options.hash_bits,
        "dtype": options.dtype,
        "threads": options.threads,
    }


def learn_streamed(options: argparse.Namespace) -> tuple[Learned, dict[str, Any]]:
    """Encode the training data, unless they are encoded, and plan the training.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of ``maxmargin train``. What the encoded file says of its format and features
        is entered into them, for the model file.

    Returns
    -------
    Learned
        All that training takes.
    dict
        Figures for the summary.
    """
    from maxmargin.cli.cells import check_trained
    from maxmargin.cli.reading import settle
    from maxmargin.cli.training_data import Learned, read_valid
    from maxmargin.features.columns import LabelCodes
    from maxmargin.features.encode import FeatureEncoder
    from maxmargin.selection import Encoded
    from maxmargin.streams import plan_windows, temporary_corpus
    from maxmargin.structures.chain import Chain

    budget = 10**9 if options.memory is None else options.memory
    prior = read_prior(options)
    within = options.stream or options.memory is not None
    given: Any = options.train
    made: dict[str, Any] = {}
    if not _is_encoded(options.train):
        given = source_of(options, [options.train])
        made = encoder_options(options) | {"on_error": options.on_error}
        expanded = given.file_format in ("crfsuite", "svmhmm")
        if prior is not None and options.template is None and not expanded:
            made["template"] = template_like(prior.chain.encoder, options.prior)
        made["memory"] = budget // 2 if within else None
    settle(options)
    corpus, summary = temporary_corpus(given, spill=options.spill, **made)
    if summary is not None and not options.quiet:
        note_skipped(summary)
    check_trained(LabelCodes(corpus.codes[:0], corpus.classes, corpus.batch.offsets[:1]), given)
    _take_over(options, corpus)
    plan = plan_windows(corpus.batch, budget, options.spill) if within else None
    corpus = corpus.in_windows(plan)
    chain = Chain(allowed=options.allowed, encoder=FeatureEncoder(), prior=prior)
    batch, codes = chain.learn(corpus, None, options.dtype)
    valid, valid_data = read_valid(chain, options)
    figures = {
        "encoded_bytes": corpus.n_bytes,
        "n_windows": 1 if plan is None else len(plan.ends),
        "memory": budget if within else None,
        "n_skipped": corpus.meta["n_skipped"],
    }
    train = Encoded(batch, codes, list(chain.labels_))
    return Learned(chain, train, valid, corpus.sequence_weight, valid_data), figures


def _take_over(options: argparse.Namespace, corpus: EncodedCorpus) -> None:
    """Enter what an encoded file says into the options; refuse others than were given."""
    from maxmargin.errors import NotCompatibleError
    from maxmargin.features.encode import FeatureEncoder
    from maxmargin.features.select import encoder_of

    if options.template is not None and not is_function(options.template):
        asked: Any = encoder_of(
            options.template, min_count=options.min_count, hash_bits=options.hash_bits
        )
    else:
        asked = FeatureEncoder(min_count=options.min_count, hash_bits=options.hash_bits)
    encoder = corpus.encoder_for(asked, options.dtype)
    written = corpus.meta["format"]
    if options.format not in (None, written, "parquet"):
        raise NotCompatibleError(
            f"{corpus.path}: was encoded from a {written} file, and --format says {options.format}"
        )
    options.format = written
    options.min_count, options.hash_bits = encoder.min_count, encoder.hash_bits


def describe_encoded(path: str) -> dict[str, Any]:
    """Return what there is to say of an encoded file, which is verified.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    dict
        For ``maxmargin info``.
    """
    from maxmargin.streams import EncodedCorpus

    corpus = EncodedCorpus.open(path)
    encoder = corpus.meta["encoder"]
    return {
        "file": path,
        "kind": "encoded",
        "n_bytes": corpus.n_bytes,
        "encoded_version": corpus.meta["version"],
        "source": corpus.meta["source"],
        "format": corpus.meta["format"],
        "n_sequences": corpus.n_sequences,
        "n_tokens": corpus.n_tokens,
        "n_labels": corpus.n_labels,
        "labels": corpus.classes,
        "n_features": encoder["n_sparse"] + encoder["n_dense"] + encoder["n_pair"],
        "min_count": encoder["min_count"],
        "hash_bits": encoder["hash_bits"],
        "template": encoder.get("template", {}).get("source"),
        "n_skipped": corpus.meta["n_skipped"],
    }
