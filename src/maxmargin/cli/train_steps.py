"""The trainings that ``maxmargin train`` makes, with a line of progress for each.

One training or a grid, the search for a number of weights, the re-fit of a sparse model, and
cross-validation: each is one call of `maxmargin.selection`.
"""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note, say
from maxmargin.cli.progress import Progress
from maxmargin.cli.train_summary import score_in_words

if TYPE_CHECKING:
    from maxmargin.cli.grid import Grid
    from maxmargin.cli.training_data import Learned
    from maxmargin.selection import FitOptions, Outcome

__all__ = ["cross_validate_grid", "refit_selected", "search_size", "train_grid"]


def train_grid(
    learned: Learned,
    grid: Grid,
    fit_options: FitOptions,
    options: argparse.Namespace,
    label: str = "",
) -> list[Outcome]:
    """Train with each C, or search one.

    Parameters
    ----------
    learned : Learned
        The chain and its data.
    grid : Grid
        One C, those of ``--grid``, or where to begin.
    fit_options : FitOptions
        How to train.
    options : argparse.Namespace
        The arguments of the command.
    label : str
        What lines begin with: the other settings.

    Returns
    -------
    list of Outcome
        The models, in the order of ascending C.
    """
    from maxmargin.selection import fit_grid

    several = len(grid.Cs) > 1 or grid.auto or label

    lines: list[Progress] = []

    def callbacks(C: float) -> list[Any]:
        if options.quiet:
            return []
        begin = f"{label}C={C:.4g}: " if several else ""
        lines.append(Progress(options.gap, begin, verbose=options.verbose))
        return [lines[-1]]

    def show_score(score: dict[str, Any]) -> None:
        if lines:
            lines[-1].show_score(score)

    def end_line(outcome: Outcome) -> None:
        if lines:
            lines[-1].close()
        if several and not options.quiet:
            gap = f"gap {100 * outcome.certificate.gap:.2g} %"
            note(f"{label}C={outcome.C:.4g}: {gap}, {score_in_words(outcome)}")

    def show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
        if lines:
            lines[-1].close()
        note(f"maxmargin train: warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        return fit_grid(
            learned.chain,
            learned.train,
            grid.Cs,
            fit_options,
            auto=grid.auto,
            valid=learned.valid,
            sample_weight=learned.weights,
            callbacks=callbacks,
            on_score=show_score,
            on_outcome=end_line,
        )


def search_size(
    learned: Learned, fit_options: FitOptions, options: argparse.Namespace
) -> Outcome:
    """Find the model of ``--nonzeros``; the parameters are those of `train_grid`."""
    from maxmargin.selection import search_nonzeros

    lines: list[Progress] = []

    def callbacks(ratio: float) -> list[Any]:
        if not options.quiet:
            label = f"l1_ratio={ratio:.4g}: "
            lines.append(Progress(options.gap, label, verbose=options.verbose))
        return lines[-1:]

    def show_size(ratio: float, count: int) -> None:
        if lines:
            lines[-1].close()
            note(f"l1_ratio={ratio:.4g}: {count} non-zero weights")

    return search_nonzeros(
        learned.chain,
        learned.train,
        options.C,
        options.nonzeros,
        fit_options,
        valid=learned.valid,
        sample_weight=learned.weights,
        callbacks=callbacks,
        on_training=show_size,
    )


def refit_selected(
    learned: Learned, sparse: Outcome, fit_options: FitOptions, options: argparse.Namespace
) -> Outcome:
    """Train once more on what a sparse model selected, as ``--debias`` says."""
    from maxmargin.selection import debias

    lines = [Progress(options.gap, "debias: ", verbose=options.verbose)]
    if options.quiet:
        lines = []
    outcome = debias(
        learned.chain,
        learned.train,
        sparse,
        fit_options,
        keep=options.debias,
        valid=learned.valid,
        sample_weight=learned.weights,
        callbacks=lines,
    )
    for line in lines:
        line.close()
    return outcome


def cross_validate_grid(
    learned: Learned,
    grid: Grid,
    fit_options: FitOptions,
    options: argparse.Namespace,
    label: str = "",
) -> list[dict[str, Any]]:
    """Score each C by ``--cv`` folds, print the scores and return them.

    Parameters
    ----------
    learned, grid, fit_options, options, label
        As for `train_grid`.

    Returns
    -------
    list of dict
        As `maxmargin.selection.cross_validate` returns them.
    """
    from maxmargin.selection import cross_validate

    def show_fold(fold: int, outcome: Outcome) -> None:
        if not options.quiet:
            which = f"fold {fold + 1} of {options.cv}, {label}C={outcome.C:.4g}"
            note(f"{which}: {score_in_words(outcome)}")

    table = cross_validate(
        learned.chain,
        learned.train,
        grid.Cs,
        options.cv,
        fit_options,
        auto=grid.auto,
        sample_weight=learned.weights,
        on_outcome=show_fold,
    )
    if not options.quiet and not options.json:
        for row in table:
            accuracy = f"{100 * row['token_accuracy']:.2f} ± {100 * row['token_accuracy_std']:.2f}"
            f1 = f", F1 {100 * row['f1']:.2f} ± {100 * row['f1_std']:.2f}" if "f1" in row else ""
            say(f"{label}C={row['C']:.4g}: accuracy {accuracy} %{f1}")
    return table
