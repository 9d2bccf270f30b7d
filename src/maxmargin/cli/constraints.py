"""``maxmargin constraints``: how often rules hold in labelled data and in a model's predictions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.model import add_model, load_model
from maxmargin.cli.options import add_reading, add_threads, at_least, read_data
from maxmargin.cli.tasks.registry import CHAIN

if TYPE_CHECKING:
    from maxmargin.constraints import ConstraintSet

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin constraints rules.toml train.tsv            in the labels of the file
  maxmargin constraints rules.toml test.tsv -m model.mm    and in the predictions of a model
  maxmargin constraints rules.toml new.tsv -m model.mm --unlabelled
  maxmargin constraints check rules.toml                is the file of rules right?

For each rule: at how many of the places that it is about (words, changes of label, segments,
sequences) it holds, with examples of violations in context. docs/constraints.md has the rules.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="the rules in TOML, then a file of sequences; the word check may stand before them. "
        "Without rules: those that the model decodes with",
    )
    add_model(parser, required=False)
    parser.add_argument(
        "--unlabelled",
        action="store_true",
        help="the file has no labels: only the predictions of the model are looked at",
    )
    parser.add_argument(
        "--examples",
        type=at_least(0),
        default=3,
        metavar="N",
        help="violations to show of each rule (default: 3)",
    )
    add_reading(parser)
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
        The figures.
    """
    from maxmargin.constraints import ConstraintSet

    files = list(options.files)
    if files[0].lower() == "check" and not Path(files[0]).exists():
        files = files[1:]
    if not 1 <= len(files) <= 2:
        raise ValueError(
            f"found {len(files)} files; expected the rules in TOML and a file of sequences"
        )
    if len(files) == 1 and (options.model is None or files[0].endswith(".toml")):
        return 0, _checked(ConstraintSet.from_toml(files[0]), files[0], options)
    options.file = files[-1]
    rules = ConstraintSet.from_toml(files[0]) if len(files) == 2 else None
    if options.model is None:
        return 0, _report(rules, read_data(options.file, options), None, options)
    from maxmargin.models.kinds import kind_of

    kind: Any = kind_of(options.model)
    if kind.task != CHAIN:
        raise ValueError(f"{options.model}: constraints are about labels of sequences")
    kind, model, inputs = load_model(options)
    if rules is None:
        if model.chain.constraints is None:
            raise ValueError(f"{options.model}: has no constraints; give a file of rules")
        rules = model.chain.constraints.rules
    data: Any = read_data(options.file, options, inputs.vocabulary)
    codes = kind.predict(model, data, options.threads)
    from maxmargin.features.columns import LabelCodes

    offsets = data.offsets if hasattr(data, "offsets") else data.batch.offsets
    predicted = LabelCodes(codes, list(kind.labels(model)), offsets)
    if inputs.label_column is not None:
        options.label_column = inputs.label_column
    return 0, _report(rules, data, predicted, options)


def _checked(rules: ConstraintSet, path: str, options: argparse.Namespace) -> dict[str, Any]:
    """Say what a file of rules holds."""
    listed = [{"title": c.title, "kind": c.kind, "exact_by": c.exact_by} for c in rules]
    if not options.json:
        say(f"{path}: {len(rules)} constraints", needed=True)
        for constraint in rules:
            say(f"  {constraint.title}: {constraint.describe()}", needed=True)
    return {"constraints": listed}


def _report(
    rules: ConstraintSet | None, data: Any, predicted: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Print how often the rules hold."""
    from maxmargin.constraints import Sample

    assert rules is not None
    if options.unlabelled and predicted is None:
        raise ValueError("--unlabelled needs -m MODEL: there is nothing else to look at")
    labels = None
    X: Any = data
    if hasattr(data, "n_columns"):
        if not options.unlabelled:
            labels = data.labels(options.label_column)
    else:
        labels = None if options.unlabelled else data.label_codes
        X = [[[name for name, _ in token] for token in data.features(i)] for i in range(len(data))]
    sources = (labels, predicted)
    names = [name for one in sources if one is not None for name in one.names]
    known = list(dict.fromkeys([*rules.labels, *names]))
    rules.check_labels(known)
    rules.bind(Sample(X, rules.columns), known)  # columns that are not there, and the like
    report = rules.report(X, labels, predicted, examples=options.examples)
    if not options.json:
        say(report.text(), needed=True)
    return report.to_dict()
