"""``maxmargin eval``: how well a model tags a file whose labels are known."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.label_output import label_figures, print_labels
from maxmargin.cli.model import add_model, load_model, true_labels
from maxmargin.cli.options import add_reading, add_threads, at_least, read_data
from maxmargin.cli.report import add_report, check_report, report_evaluation
from maxmargin.cli.targets import check_targets
from maxmargin.cli.tasks.registry import CHAIN

if TYPE_CHECKING:
    from maxmargin.metrics import TagReport

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin eval -m ner.mm test.tsv
  maxmargin eval tagged.tsv              the last two columns: truth and prediction

Prints what conlleval prints: accuracy, and precision, recall and F1 of chunks (labels such as B-NP,
I-NP, O), overall and by type; then precision, recall and F1 of each label, whatever the labels are,
the most frequent errors, and the words that are wrong most often. --brief leaves out all but the
first, --confusion adds a table of which labels are taken for which. --json has all of it.
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
    parser.add_argument(
        "--brief", action="store_true", help="print what conlleval prints, and no more"
    )
    parser.add_argument(
        "--errors",
        type=at_least(0),
        default=10,
        metavar="N",
        help="how many of the most frequent errors to list (default: 10)",
    )
    add_report(parser, "certificate, scores, errors in context, strongest features")
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
    check_report(options)
    check_targets([(options.report, "report")], [options.file, options.model])
    if options.model is not None:
        from maxmargin.models.kinds import kind_of

        kind: Any = kind_of(options.model)
        if kind.task != CHAIN:
            from maxmargin.cli.tasks.use import evaluate_file

            if options.report is not None:
                raise ValueError(
                    f"{options.model}: is of the task {kind.task}; eval --report is for models of "
                    "label sequences (train --report has a page for all tasks)"
                )
            return evaluate_file(kind, options)
    if options.model is None:
        report, tokens = _of_columns(options)
        extra: dict[str, Any] = {}
    else:
        report, tokens, extra = _of_model(options)
    if not options.json:
        say(report.text(), needed=True)
        print_labels(report, tokens, options)
    return 0, {**report.to_dict(), **label_figures(report, tokens, options), **extra}


def _of_columns(options: argparse.Namespace) -> tuple[TagReport, list[dict[str, Any]]]:
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

    true, given = codes(truth), codes(predicted)
    tokens = _error_tokens(data, true, given, names, options)
    return evaluate_codes(true, given, data.offsets, names), tokens


def _error_tokens(
    data: Any, truth: Any, predicted: Any, names: list[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return the words of the first column that are wrong most often; none without columns."""
    if not hasattr(data, "native") or not options.errors or data.n_columns < 2:
        return []
    from maxmargin.features.token_texts import TokenTexts
    from maxmargin.label_report import error_tokens

    words: Any = TokenTexts(data, data.offsets)
    return error_tokens(words, truth, predicted, names, options.errors)


def _of_model(
    options: argparse.Namespace,
) -> tuple[TagReport, list[dict[str, Any]], dict[str, Any]]:
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
    tokens = _error_tokens(data, truth, predicted, names, options)
    extra = {
        "seconds_load": loaded - begin,
        "seconds_read": known - loaded,
        "seconds_tag": tagged - known,
        # from the strings of the columns (or items) to labels: features and decoding
        "tokens_per_second": len(truth) / (tagged - known),
    }
    if options.report is not None:
        temperature = kind.temperature(model)
        extra |= report_evaluation(model, data, labels, temperature, options)
    return report, tokens, extra
