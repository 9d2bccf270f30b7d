"""The model that ``maxmargin train`` keeps: one training, or the best of a grid or of folds."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.data_notes import tell_data
from maxmargin.cli.grid import Grid, in_words, settings_of
from maxmargin.cli.loss_weight import with_number
from maxmargin.cli.prior import with_prior
from maxmargin.cli.start import with_start
from maxmargin.cli.train_steps import cross_validate_grid, search_size, train_grid
from maxmargin.cli.train_summary import score_of
from maxmargin.cli.training_options import fit_options_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from maxmargin.cli.training_data import Learned
    from maxmargin.selection import FitOptions, Outcome

__all__ = ["Found", "find_model"]


class Found(NamedTuple):
    """What a search found.

    Attributes
    ----------
    options : argparse.Namespace
        The arguments of the command, with the settings of the chosen model.
    learned : Learned
        Its chain and data.
    fit_options : FitOptions
        How it was trained.
    best : Outcome or None
        The model; None if folds alone were asked for.
    C : float
        Its C.
    grid : list of dict
        C, gap, score and settings of all models, if there are several.
    folds : list of dict
        The scores of folds, if there are any.
    seconds_features : float
        Time to make features.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    options: argparse.Namespace
    learned: Learned
    fit_options: FitOptions
    best: Outcome | None
    C: float
    grid: list[dict[str, Any]]
    folds: list[dict[str, Any]]
    seconds_features: float
    interrupted: bool = False


class _Features:
    """Makes the features of settings; those of the last one are kept."""

    def __init__(self, learn: Callable[[argparse.Namespace], Learned]) -> None:
        self._learn = learn
        self._last: tuple[Any, Learned] | None = None
        self.seconds = 0.0

    def __call__(
        self, options: argparse.Namespace
    ) -> tuple[Learned, FitOptions, argparse.Namespace]:
        key = (options.template, options.min_count)
        if self._last is None or self._last[0] != key:
            begin = time.perf_counter()
            self._last = None  # before there are two of them
            learned = self._learn(options)
            self._last = (key, learned)
            tell_data(learned, options)
            self.seconds += time.perf_counter() - begin
        learned = self._last[1]
        fit_options = with_prior(fit_options_of(options), learned.chain)
        fit_options = with_start(fit_options, learned.chain, options)
        return learned, fit_options, with_number(options, learned)


def find_model(
    learn: Callable[[argparse.Namespace], Learned], grid: Grid, options: argparse.Namespace
) -> Found:
    """Train all models that are asked for, and choose one.

    Parameters
    ----------
    learn : callable
        Makes the features of the data, as the options that it is given say.
    grid : Grid
        What is tried.
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    Found
        The best on ``--valid`` or by ``--cv``; of equal ones the first.
    """
    features = _Features(learn)
    folds: list[dict[str, Any]] = []
    if options.cv is not None:
        chosen = None
        for setting, given in settings_of(options, grid):
            learned, fit_options, own = features(given)
            Cs = grid.of(own)
            for row in cross_validate_grid(learned, Cs, fit_options, own, in_words(setting)):
                folds.append({**row, **setting})
                if chosen is None or row["score"] > chosen[0]:
                    chosen = (row["score"], row["C"], own)
        assert chosen is not None
        _, C, options = chosen
        if options.model is None:
            return Found(
                options, learned, fit_options, None, C, [], folds, features.seconds
            )
        grid = Grid([C], False, {})
    best: tuple[Outcome, argparse.Namespace, Learned, FitOptions] | None = None
    rows: list[dict[str, Any]] = []
    interrupted = False
    for setting, given in settings_of(options, grid):
        learned, fit_options, own = features(given)
        if own.nonzeros is not None:
            outcomes = [search_size(learned, fit_options, own)]
        else:
            outcomes = train_grid(learned, grid.of(own), fit_options, own, in_words(setting))
        for outcome in outcomes:
            score = score_of(outcome)
            rows.append({"C": outcome.C, "gap": outcome.certificate.gap, "score": score, **setting})
            if best is None or score > score_of(best[0]):
                best = (outcome, own, learned, fit_options)
        interrupted = any(outcome.result.interrupted for outcome in outcomes)
        if interrupted:
            break
    assert best is not None
    outcome, options, learned, fit_options = best
    table = rows if len(rows) > 1 else []
    return Found(
        options,
        learned,
        fit_options,
        outcome,
        outcome.C,
        table,
        folds,
        features.seconds,
        interrupted,
    )
