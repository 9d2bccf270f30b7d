"""``maxmargin encode``: training data of any size -> one encoded file, for many trainings."""

from __future__ import annotations

import argparse
import time
from typing import Any

from maxmargin.cli.console import say
from maxmargin.cli.options import add_reading, add_threads
from maxmargin.cli.streaming import (
    add_errors,
    add_spill,
    encoder_options,
    note_skipped,
    source_of,
)
from maxmargin.cli.targets import check_targets
from maxmargin.cli.training_options import add_features

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin encode train.tsv.gz -o train.mme --template pos
  maxmargin encode part1.tsv part2.tsv -o train.mme --template ner --min-count 2
  maxmargin encode train.parquet -o train.mme --columns word,pos,tag --sequence sentence_id
  maxmargin train train.mme -m model.mm --memory 500M

The data are read once, in pieces, and may be larger than the memory or come from a pipe. Training
from the file gives the model that training from the data would give.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    parser.add_argument("train", nargs="+", metavar="TRAIN", help="the files; - is a pipe")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the encoded file")
    add_features(parser, allowed=False)
    add_reading(parser, tables=True)
    add_errors(parser)
    add_spill(parser)
    parser.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="type of the weights that will be trained, as which values of features are kept",
    )
    add_threads(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


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
        What was encoded.
    """
    from maxmargin.cli.peak_memory import peak_rss_mb
    from maxmargin.streams import encode

    check_targets([(options.output, "encoded data")], options.train)
    begin = time.perf_counter()
    summary = encode(
        source_of(options, options.train),
        options.output,
        on_error=options.on_error,
        spill=options.spill,
        **encoder_options(options),
    )
    seconds = time.perf_counter() - begin
    figures = summary._asdict() | {"file": options.output, "seconds": seconds}
    figures["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet:
        note_skipped(summary)
        if not options.json:
            say(
                f"{options.output}: {summary.n_sequences} sequences, {summary.n_tokens} tokens, "
                f"{summary.n_labels} labels, {summary.n_features} features, "
                f"{summary.n_bytes / 1e6:.1f} MB in {seconds:.1f} s"
            )
    return 0, figures
