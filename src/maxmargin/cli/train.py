"""``maxmargin train``: from a file of tagged sequences to a model file.

This file has the order of the steps; what each does is in the files beside it: the arguments
(`train_arguments`, `training_options`), the data (`training_data`), the trainings (`train_steps`),
the summary (`train_summary`) and the model file (`saving`).
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

from maxmargin.cli.data_notes import tell_data
from maxmargin.cli.peak_memory import peak_rss_mb
from maxmargin.cli.prior import prior_figures, with_prior
from maxmargin.cli.saving import save_model
from maxmargin.cli.train_arguments import check_options, configure
from maxmargin.cli.train_steps import (
    cross_validate_grid,
    refit_selected,
    search_size,
    train_grid,
)
from maxmargin.cli.train_summary import (
    model_figures,
    print_summary,
    score_of,
    sparse_figures,
    validation_figures,
)
from maxmargin.cli.training_data import learn_features, read_training
from maxmargin.cli.training_options import fit_options_of, grid_of

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
    clock = [time.perf_counter()]

    from maxmargin.solvers.ending import INTERRUPTED, was_interrupted
    from maxmargin.solvers.interrupts import HeldInterrupt

    Cs = grid_of(options)
    read = read_training(options)
    clock.append(time.perf_counter())
    learned = learn_features(*read, options)
    chain, train = learned.chain, learned.train
    tell_data(learned, options)
    clock.append(time.perf_counter())

    fit_options = with_prior(fit_options_of(options), chain)
    table: list[dict[str, Any]] = []
    if options.cv is not None:
        table = cross_validate_grid(learned, Cs, fit_options, options)
        Cs = [max(table, key=lambda row: row["score"])["C"]]
        if options.model is None:
            return 0, {"cv": table, "C": Cs[0], "n_sequences": train.batch.n_sequences}
    if options.nonzeros is not None:
        outcomes = [search_size(learned, fit_options, options)]
    else:
        outcomes = train_grid(learned, Cs, fit_options, options)
    best = outcomes[0]
    if learned.valid is not None:
        best = max(outcomes, key=score_of)
    sparse = sparse_figures(best, options)
    if options.debias is not None and not sparse["interrupted"]:
        sparse["selected"] = {"n_nonzero": sparse["n_nonzero"], "gap": best.certificate.gap}
        best = refit_selected(learned, best, fit_options, options)
        sparse["debiased"] = True
    clock.append(time.perf_counter())

    summary = {**sparse, **model_figures(chain, train, best, options), **prior_figures(chain)}
    interrupted = summary.pop("interrupted")
    if interrupted and not was_interrupted(summary["stop_reason"]):  # the search was, or the grid
        summary["stop_reason"] = f"{INTERRUPTED}; {summary['stop_reason']}"
    summary["seconds_read"], summary["seconds_features"], summary["seconds_train"] = (
        b - a for a, b in itertools.pairwise(clock)
    )
    if table:
        summary["cv"] = table
    if learned.valid is not None:
        summary.update(validation_figures(best))
    if len(outcomes) > 1:
        summary["grid"] = [
            {"C": o.C, "gap": o.certificate.gap, "score": score_of(o)} for o in outcomes
        ]
    with HeldInterrupt():  # Ctrl-C waits until the trained model is written
        save_model(chain, best.weights, best.certificate, summary, options)
    summary["seconds_write"] = time.perf_counter() - clock[-1]
    summary["seconds_total"] = time.perf_counter() - clock[0]
    summary["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet and not options.json:
        print_summary(summary, best, options)
    return (130 if interrupted else 0), summary
