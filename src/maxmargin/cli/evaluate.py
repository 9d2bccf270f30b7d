"""``maxmargin eval``: how well a model tags a file whose labels are known."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.model import add_model, load_model, true_labels
from maxmargin.cli.options import add_reading, add_threads, read_data
from maxmargin.cli.tasks.registry import CHAIN

if TYPE_CHECKING:
    from maxmargin.metrics import TagReport

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin eval -m ner.mm test.tsv
  maxmargin eval tagged.tsv              the last two columns: truth and prediction

Prints what conlleval prints: accuracy, and precision, recall and F1 of chunks (labels such as B-NP,
I-NP, O), overall and by type; --confusion adds which labels are taken for which.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    add_model(parser, required=False)
    parser.add_argument("file", metavar="TEST", help="a file with labels; - is a pipe")
    parser.add_argument(
        "--confusion", action="store_true", help="which labels are taken for which, how often"
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
        The scores.
    """
    if options.model is not None:
        from maxmargin.models.kinds import kind_of

        kind: Any = kind_of(options.model)
        if kind.task != CHAIN:
            from maxmargin.cli.tasks.use import evaluate_file

            return evaluate_file(kind, options)
    if options.model is None:
        report = _of_columns(options)
        extra: dict[str, Any] = {}
    else:
        report, extra = _of_model(options)
    if not options.json:
        from maxmargin.metrics import confusion_text

        say(report.text(), needed=True)
        if options.confusion:
            say(f"\n{confusion_text(report)}", needed=True)
    summary = {**report.to_dict(), **extra}
    if options.confusion:
        summary["confusion"] = {"labels": list(report.labels), "counts": report.confusion.tolist()}
    return 0, summary


def _of_columns(options: argparse.Namespace) -> TagReport:
    """Compare the last two columns of a file."""
    import numpy as np

    from maxmargin.metrics import evaluate_codes

    data: Any = read_data(options.file, options)
    if getattr(data, "n_columns", 0) < 2:
        raise ValueError(
            f"{options.file}: without -m MODEL, the last two columns are compared; expected a "
            "column file with at least two"
        )
    truth, predicted = data.labels(-2), data.labels(-1)
    names = list(dict.fromkeys([*truth.names, *predicted.names]))
    place = {name: k for k, name in enumerate(names)}

    def codes(part: Any) -> Any:
        return np.array([place[name] for name in part.names], np.int32)[part.codes]

    return evaluate_codes(codes(truth), codes(predicted), data.offsets, names)


def _of_model(options: argparse.Namespace) -> tuple[TagReport, dict[str, Any]]:
    """Tag the file and compare with its labels."""
    import numpy as np

    from maxmargin.metrics import evaluate_codes

    begin = time.perf_counter()
    kind, model, inputs = load_model(options)
    loaded = time.perf_counter()
    data: Any = read_data(options.file, options, inputs.vocabulary)
    labels = true_labels(data, inputs, options.model)
    known = time.perf_counter()
    predicted = kind.predict(model, data, options.threads)
    tagged = time.perf_counter()
    # Labels that the model does not know get numbers behind those it knows.
    names = [str(label) for label in kind.labels(model)]
    place = {name: k for k, name in enumerate(names)}
    for name in labels.names:
        if place.setdefault(name, len(names)) == len(names):
            names.append(name)
    truth = np.array([place[name] for name in labels.names], dtype=np.int32)[labels.codes]
    report = evaluate_codes(truth, predicted, labels.offsets, names)
    return report, {
        "seconds_load": loaded - begin,
        "seconds_read": known - loaded,
        "seconds_tag": tagged - known,
        # from the strings of the columns (or items) to labels: features and decoding
        "tokens_per_second": len(truth) / (tagged - known),
    }
