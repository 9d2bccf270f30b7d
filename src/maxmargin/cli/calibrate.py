"""``maxmargin calibrate``: gives a model the temperature that makes probabilities of its scores."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin.cli.console import naming, say
from maxmargin.cli.model import add_model, load_model, naming_model, true_labels
from maxmargin.cli.options import add_reading, add_threads, read_data
from maxmargin.cli.tasks.registry import CHAIN

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin calibrate -m ner.mm dev.tsv
  maxmargin tag -m ner.mm --marginals new.tsv

The file must not be one that the model was trained on. No prediction changes; the model file is
replaced, or written to -o. (maxmargin train --valid FILE calibrates by that file.)
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
    parser.add_argument("file", metavar="DEV", help="a file with labels; - is a pipe")
    parser.add_argument(
        "-o", "--output", default=None, metavar="FILE", help="where to write (the model itself)"
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
        ``temperature``, ``log_loss`` and ``log_loss_before`` a token, and the calibration error of
        the labels of this file before and after.
    """
    from maxmargin.errors import NotCompatibleError
    from maxmargin.models.kinds import kind_of

    kind: Any = kind_of(options.model)
    if kind.task != CHAIN:
        raise NotCompatibleError(
            f"{options.model}: is of the task {kind.task}; only models of label sequences are "
            "calibrated"
        )
    _, model, inputs = load_model(options)
    data: Any = read_data(options.file, options, inputs.vocabulary)
    with naming_model(options.model):
        figures, temperature = _calibrated(model, data, inputs, options)
    path = options.output or options.model
    with naming(path):
        n_bytes = kind.save(path, model._replace(meta={**model.meta, "temperature": temperature}))
    summary = {"model": path, **figures, "model_bytes": n_bytes}
    if not options.json:
        say(
            f"{path}: temperature {temperature:.4g}; calibration error on {options.file} "
            f"{figures['calibration_error_before']:.4f} before, "
            f"{figures['calibration_error']:.4f} now"
        )
    return 0, summary


def _calibrated(
    model: Any, data: Any, inputs: Any, options: argparse.Namespace
) -> tuple[dict[str, Any], float]:
    """Find the temperature, and how honest the model was before and is with it."""
    from maxmargin.scores.calibration import calibration_error
    from maxmargin.selection.calibration import confidences, find_temperature
    from maxmargin.selection.encoded import encode_labelled

    chain, weights, threads = model.chain, model.weights, options.threads
    labelled = encode_labelled(chain, data, true_labels(data, inputs, options.model))
    found = find_temperature(chain, labelled.batch, labelled.codes, weights, threads)
    codes = chain.predict_encoded(labelled.batch, weights, threads)
    figures = {
        "temperature": found.temperature,
        "log_loss": found.log_loss,
        "log_loss_before": found.log_loss_before,
        "n_sequences": found.n_sequences,
        "n_left_out": found.n_left_out,
    }
    for name, at in (("calibration_error_before", 1.0), ("calibration_error", found.temperature)):
        confidence = confidences(
            chain, labelled.batch, codes, weights, temperature=at, threads=threads
        )
        figures[name] = calibration_error(confidence, codes == labelled.codes)
    return figures, found.temperature
