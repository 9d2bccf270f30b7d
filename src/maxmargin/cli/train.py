"""``maxmargin train``: from a file of tagged sequences to a model file.

This file has the order of the steps; what each does is in the files beside it: the arguments
(`train_arguments`, `training_options`), the data (`training_data`), the search among models
(`model_search`, `grid`), the trainings (`train_steps`), the summary (`train_summary`) and the model
file (`saving`).
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

from maxmargin.cli.cluster import is_distributed, train_on_cluster
from maxmargin.cli.grid import grid_of
from maxmargin.cli.marginals import temperature_of
from maxmargin.cli.model_search import find_model
from maxmargin.cli.peak_memory import peak_rss_mb
from maxmargin.cli.prior import prior_figures
from maxmargin.cli.report import report_training
from maxmargin.cli.saving import save_model
from maxmargin.cli.streaming import is_streamed, learn_streamed
from maxmargin.cli.train_arguments import check_options, configure
from maxmargin.cli.train_steps import refit_selected
from maxmargin.cli.train_summary import (
    model_figures,
    print_summary,
    sparse_figures,
    validation_figures,
)
from maxmargin.cli.training_data import Learned, learn_features, read_training

__all__ = ["configure", "run"]


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        As `configure` describes them.

    Returns
    -------
    int
        Exit code: 0, or 130 after Ctrl-C (the model is written).
    dict
        Sizes, times, certificate and scores.
    """
    check_options(options)
    if options.constraints is not None:
        from maxmargin.cli.transduction import train_with_constraints

        return train_with_constraints(options)
    if is_distributed(options):
        return train_on_cluster(options)
    clock = [time.perf_counter()]

    from maxmargin.solvers.ending import INTERRUPTED, was_interrupted
    from maxmargin.solvers.interrupts import HeldInterrupt

    grid = grid_of(options)
    streamed: dict[str, Any] = {}
    inputs: Any = None
    if is_streamed(options):

        def learn(own: argparse.Namespace) -> Learned:
            learned, figures = learn_streamed(own)
            streamed.update(figures)
            return learned

    else:
        read = read_training(options)
        inputs = read[0]

        def learn(own: argparse.Namespace) -> Learned:
            return learn_features(*read, own)

    clock.append(time.perf_counter())
    found = find_model(learn, grid, options)
    options, learned, best = found.options, found.learned, found.best
    chain, train = learned.chain, learned.train
    if best is None:
        chosen = {"cv": found.folds, "C": found.C, "n_sequences": train.batch.n_sequences}
        return 0, chosen | {name: getattr(options, name) for name in grid.others}
    sparse = sparse_figures(best, options)
    sparse["interrupted"] = sparse["interrupted"] or found.interrupted
    if options.debias is not None and not sparse["interrupted"]:
        sparse["selected"] = {"n_nonzero": sparse["n_nonzero"], "gap": best.certificate.gap}
        best = refit_selected(learned, best, found.fit_options, options)
        sparse["debiased"] = True
    clock.append(time.perf_counter())

    summary = {**sparse, **model_figures(chain, train, best, options), **prior_figures(chain)}
    summary |= streamed
    interrupted = summary.pop("interrupted")
    if interrupted and not was_interrupted(summary["stop_reason"]):  # the search was, or the grid
        summary["stop_reason"] = f"{INTERRUPTED}; {summary['stop_reason']}"
    summary["seconds_read"], rest = (b - a for a, b in itertools.pairwise(clock))
    summary["seconds_features"] = found.seconds_features
    summary["seconds_train"] = rest - found.seconds_features
    summary |= {name: getattr(options, name) for name in grid.others}
    if found.folds:
        summary["cv"] = found.folds
    if learned.valid is not None:
        summary.update(validation_figures(best))
        summary["temperature"] = temperature_of(learned, best.weights, options.threads)
    if found.grid:
        summary["grid"] = found.grid
    with HeldInterrupt():  # Ctrl-C waits until the trained model is written
        save_model(chain, best.weights, best.certificate, summary, options)
    summary["seconds_write"] = time.perf_counter() - clock[-1]
    if options.report is not None:
        summary |= report_training(learned, best, inputs, summary, options)
    summary["seconds_total"] = time.perf_counter() - clock[0]
    summary["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet and not options.json:
        print_summary(summary, best, options)
    return (130 if interrupted else 0), summary
