"""``maxmargin path``: models from sparse to dense, and the sparsest that is good enough."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import flush, say
from maxmargin.cli.loss_weight import add_loss_weight, with_number
from maxmargin.cli.options import add_reading, add_threads, number
from maxmargin.cli.peak_memory import peak_rss_mb
from maxmargin.cli.progress import Progress
from maxmargin.cli.saving import save_model
from maxmargin.cli.targets import check_targets
from maxmargin.cli.training_data import learn_features, read_training
from maxmargin.cli.training_options import (
    add_features,
    add_solving,
    fit_options_of,
    solver_of,
)
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.selection import Path, PathPoint

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin path train.tsv --valid dev.tsv --template ner
  maxmargin path train.tsv --valid dev.tsv -m small.mm --max-loss 0.005 --plot path.svg
  maxmargin path train.tsv --valid dev.tsv --ratios 0,0.3,0.6,0.9 --Cs 0.03,0.1

Each model minimises R‖w‖₁ + (1-R)/2‖w‖² + C Σ_i ξ_i for an l1_ratio R; the larger it is, the more
weights are exactly zero. Each training begins where the last one ended, in the order of --ratios
and for each C in turn. Chosen is the model with the fewest weights among those whose score on
--valid (F1 of chunks, or accuracy) is within --max-loss of the best.
Ctrl-C ends the path after the pass under way; what is there is chosen from.
"""

#: Title, width and key of each column of the table.
COLUMNS = (
    ("l1_ratio", 8, "l1_ratio"),
    ("C", 8, "C"),
    ("non-zeros", 10, "n_nonzero"),
    ("gap %", 7, "gap"),
    ("accuracy", 9, "token_accuracy"),
    ("F1", 7, "f1"),
    ("seconds", 8, "seconds"),
)


def _several(name: str, convert: Callable[[str], float], expected: str) -> Callable[[str], Any]:
    """Make a type for argparse: numbers between commas."""

    def numbers(text: str) -> list[float]:
        try:
            return [convert(part) for part in text.split(",")]
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(
                f"found {quoted(text)}; expected {name} {expected} between commas"
            ) from None

    return numbers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    parser.add_argument("train", metavar="TRAIN", help="the file to learn from; - is a pipe")
    parser.add_argument(
        "--valid", metavar="FILE", required=True, help="the file on which models are scored"
    )
    parser.add_argument("-m", "--model", metavar="MODEL", help="where to write the chosen model")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw scores over sizes to this file, which ends with .svg"
    )
    add_features(parser)
    add_reading(parser)
    group = parser.add_argument_group("training")
    group.add_argument(
        "--ratios",
        type=_several("l1_ratios", number(0, 0.9999), "from 0 to 0.9999"),
        default=None,
        metavar="R,...",
        help="the l1_ratios, in the order of training (default: "
        "0.99,0.97,0.95,0.9,0.8,0.7,0.5,0.3,0.1,0)",
    )
    weight = group.add_mutually_exclusive_group()
    positive = number(0, open_low=True)
    add_loss_weight(weight)
    weight.add_argument(
        "--Cs",
        type=_several("values of C", positive, "above 0"),
        default=None,
        metavar="C,...",
        help="several such weights: a path for each, from the smallest on",
    )
    add_solving(group, gap=0.02)
    add_threads(parser)
    parser.add_argument(
        "--max-loss",
        type=number(0, 1),
        default=0.01,
        metavar="S",
        help="share of the best score that a sparser model may lose (default: 0.01)",
    )
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
        Exit code: 0, or 130 after Ctrl-C (what was asked for is written).
    dict
        The table, the chosen model and sizes.
    """
    begin = time.perf_counter()
    _check(options)

    from maxmargin.errors import NothingLearnedError
    from maxmargin.selection import RATIOS, path_points, regularization_path
    from maxmargin.solvers.ending import nothing_learned
    from maxmargin.solvers.interrupts import HeldInterrupt

    learned = learn_features(*read_training(options), options)
    chain, train, valid, weights, _ = learned
    options = options if options.Cs else with_number(options, learned)
    table = _Table(options)
    path = regularization_path(
        chain,
        train,
        path_points(options.ratios or RATIOS, options.Cs or [options.C]),
        fit_options_of(options),
        valid=valid,
        sample_weight=weights,
        callbacks=table.callbacks,
        on_point=table.add,
    )
    chosen = path.choose(options.max_loss)
    point = path.points[chosen]
    if point.n_nonzero == 0 and not point.converged:
        if path.interrupted:
            raise KeyboardInterrupt
        raise NothingLearnedError(nothing_learned(point.certificate, point.stop_reason))
    summary: dict[str, Any] = {
        "n_sequences": train.batch.n_sequences,
        "n_tokens": train.batch.n_tokens,
        "n_labels": chain.n_labels,
        "n_features": chain.layout.n_token_features,
        "n_weights": chain.n_features,
        "solver": options.solver,
        **point.to_dict(),
        "debiased": False,
        "chosen": chosen,
        "max_loss": options.max_loss,
        "path": path.table(),
    }
    with HeldInterrupt():  # Ctrl-C waits until the trained model is written
        if options.model is not None:
            save_model(chain, path.weights(chosen), point.certificate, summary, options)
        if options.plot is not None:
            from maxmargin.report.path_plot import plot_path

            plot_path(path, options.plot, chosen=chosen)
            summary["plot"] = options.plot
    summary["seconds_total"] = time.perf_counter() - begin
    summary["peak_rss_mb"] = peak_rss_mb()
    if table.printed:
        _print_choice(path, chosen, options)
    return (130 if path.interrupted else 0), summary


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, before any file is read."""
    import os

    from maxmargin.report.endings import picture_format

    targets = [(options.model, "model"), (options.plot, "plot")]
    check_targets(targets, [options.train, options.valid])
    if options.model is not None and options.plot is not None:
        model, plot = map(os.path.realpath, (options.model, options.plot))
        if model == plot:
            raise ValueError(f"{options.plot}: is the model; expected another file for the plot")
    if options.plot is not None:
        picture_format(options.plot)
    solver_of(options)


class _Table:
    """Prints the table of the path line by line, and shows the passes under way on a terminal."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.printed = not options.quiet and not options.json
        self._options = options
        self._line: Progress | None = None
        self._begun = False

    def callbacks(self, ratio: float, C: float) -> list[Any]:
        """Return the callbacks of a training."""
        if self._options.quiet:
            return []
        self._line = Progress(self._options.gap, f"l1_ratio={ratio:g} C={C:g}: ", lines=False)
        return [self._line]

    def add(self, point: PathPoint) -> None:
        """Print a point."""
        if self._line is not None:
            self._line.close()
        if not self.printed:
            return
        if not self._begun:
            say("  ".join(title.rjust(width) for title, width, _ in COLUMNS))
            self._begun = True
        figures = point.to_dict()
        cells = (_cell(key, figures[key]).rjust(width) for _, width, key in COLUMNS)
        say("  ".join(cells))
        flush()


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if key in ("token_accuracy", "f1", "gap"):
        return f"{100 * value:.2f}"
    if key == "seconds":
        return f"{value:.2f}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_choice(path: Path, chosen: int, options: argparse.Namespace) -> None:
    point = path.points[chosen]
    say(
        f"chosen: l1_ratio {point.l1_ratio:g}, C = {point.C:g}: {point.n_nonzero} non-zero "
        f"weights, at most {100 * options.max_loss:g} % below the best score"
    )
    for name in (options.model, options.plot):
        if name is not None:
            say(f"{name}: written")
