"""``maxmargin suggest``: which unlabelled sequences to label next."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin.cli.console import say
from maxmargin.cli.model import add_model, load_model
from maxmargin.cli.options import add_reading, add_threads, at_least, read_data
from maxmargin.cli.tasks.registry import CHAIN

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin suggest -m model.mm unlabelled.tsv -n 20

A line for each suggestion, the most useful first: the number of the sequence in the file (from 1),
the mean margin of its tokens, how many rules the model's prediction violates, and its first words.
Sequences rank by tokens with small margins and by violations; those like others above count less.
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
    parser.add_argument("file", metavar="FILE", help="sequences without labels; - is a pipe")
    parser.add_argument(
        "-n", type=at_least(1), default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument(
        "--similar", action="store_true", help="do not mind sequences that are like each other"
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
        The suggestions.
    """
    from maxmargin.models.kinds import kind_of

    kind: Any = kind_of(options.model)
    if kind.task != CHAIN:
        raise ValueError(f"{options.model}: suggestions are about labels of sequences")
    _, model, inputs = load_model(options)
    data: Any = read_data(options.file, options, inputs.vocabulary)
    from maxmargin.constraints import Sample
    from maxmargin.estimators.suggesting import suggest

    found = suggest(
        model.chain,
        model.weights,
        data,
        options.n,
        diverse=not options.similar,
        n_jobs=options.threads,
    )
    rows = []
    sample = Sample(data) if hasattr(data, "n_columns") else None
    for one in found:
        words = "" if sample is None else " ".join(sample.words_of(one.index)[:10])
        rows.append({**one._asdict(), "index": one.index + 1, "words": words})
        if not options.json:
            row = f"{one.index + 1}\t{one.margin:.3f}\t{one.violations}\t{words}"
            say(row, needed=True, tabs=True)
    return 0, {"suggestions": rows}
