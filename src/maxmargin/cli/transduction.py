"""``maxmargin train --constraints RULES [--unlabelled FILE]``: learning with prior knowledge.

With unlabelled sequences the training is transductive (``docs/transductive.md``); without, the
model is trained on the labels alone and decodes with the rules, or has weights for them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note, say
from maxmargin.cli.loss_weight import AUTO
from maxmargin.cli.options import number, read_data

if TYPE_CHECKING:
    from maxmargin.estimators.tagger import SequenceTagger

__all__ = ["add_transduction", "check_transduction", "train_with_constraints"]

#: Options of a training with constraints, with what they are if not given.
DEFAULTS: dict[str, Any] = {
    "C2": 300.0,
    "mu": 4.0,
    "gamma_scale": "sum",
    "schedule": "engine",
    "begin": "driven",
    "margins": "labels",
    "label_margin": 0.1,
    "anneal": 0,
}


def add_transduction(parser: argparse.ArgumentParser) -> None:
    """Add the options of a training with constraints."""
    group = parser.add_argument_group("prior knowledge (docs/transductive.md)")
    group.add_argument("--constraints", metavar="FILE", help="rules about labellings, in TOML")
    group.add_argument(
        "--unlabelled",
        metavar="FILE",
        help="sequences without labels (or whose labels are not looked at), to learn from with "
        "--constraints",
    )
    group.add_argument(
        "--C2",
        type=number(0, open_low=True),
        default=None,
        metavar="C",
        help="weight of the unlabelled sequences together (default: 300)",
    )
    group.add_argument(
        "--mu",
        type=number(0, open_low=True),
        default=None,
        metavar="M",
        help="a violation of weight 1 costs M/4 (default: 4)",
    )
    group.add_argument(
        "--gamma-scale",
        choices=("sum", "mean"),
        default=None,
        help="whether the penalty sums over the unlabelled sequences (default) or averages",
    )
    group.add_argument(
        "--schedule",
        choices=("engine", "paper"),
        default=None,
        help="how convex steps are solved: by the dual engine (default), or by the cutting planes "
        "of the paper",
    )
    group.add_argument(
        "--begin",
        choices=("driven", "supervised"),
        default=None,
        help="where the procedure begins: at the supervised model, as in the paper, or after "
        "constraint-driven self-training from there (default)",
    )
    group.add_argument(
        "--margins",
        choices=("labels", "all"),
        default=None,
        help="whether all rules are in the margins, as in the paper, or only those whose inference "
        "needs no states beside the labels (default)",
    )
    group.add_argument(
        "--label-margin",
        type=number(0),
        default=None,
        metavar="S",
        help="margin against labels other than those of the start, as a share of the loss; 0: "
        "margins of violations only, as in the paper (default: 0.1)",
    )
    group.add_argument(
        "--anneal",
        type=int,
        default=None,
        metavar="N",
        help="stages with half the mu of the next, before the last (default: 0)",
    )
    group.add_argument(
        "--decode",
        choices=("off", "soft", "hard"),
        default=None,
        help="whether predictions of the model ignore violations (default), pay for them, or have "
        "none",
    )
    group.add_argument(
        "--constraint-features",
        action="store_true",
        help="give the model a weight for each rule, used in every prediction",
    )


def check_transduction(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    given = [name for name in DEFAULTS if getattr(options, name) is not None]
    if options.constraints is None:
        if options.unlabelled is not None:
            raise ValueError(
                "--unlabelled needs --constraints FILE: rules are what unlabelled sequences are "
                "learned from"
            )
        needing = [*given, *(["decode"] if options.decode is not None else [])]
        needing += ["constraint_features"] if options.constraint_features else []
        if needing:
            raise ValueError(f"--{needing[0].replace('_', '-')} needs --constraints FILE")
        return
    if options.unlabelled is not None and options.C == AUTO:
        raise ValueError(
            "-C auto is for labelled data alone; --unlabelled needs a number, such as -C 1"
        )
    if options.unlabelled is None and given:
        raise ValueError(f"--{given[0].replace('_', '-')} needs --unlabelled FILE")
    if options.anneal is not None and options.anneal < 0:
        raise ValueError(f"--anneal: found {options.anneal}; expected 0 or more")
    others = ("grid", "cv", "nonzeros", "debias", "prior", "l1_ratio", "l1_ball", "embeddings")
    for name in others:
        if getattr(options, name):
            raise ValueError(
                f"--constraints does not go with --{name.replace('_', '-')} in this command"
            )


def train_with_constraints(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Train, score on ``--valid``, and write the model.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    int
        Exit code, 0.
    dict
        Sizes, times, certificate and scores.
    """
    from maxmargin.cli.peak_memory import peak_rss_mb
    from maxmargin.cli.training_data import read_training
    from maxmargin.constraints import ConstraintSet
    from maxmargin.features.columns import ColumnTable
    from maxmargin.solvers.interrupts import HeldInterrupt

    clock = [time.perf_counter()]
    rules = ConstraintSet.from_toml(options.constraints)
    data, labels = read_training(options)
    if not isinstance(data, ColumnTable):
        raise ValueError(f"{options.train}: --constraints is for column files")
    unlabelled = None if options.unlabelled is None else read_data(options.unlabelled, options)
    clock.append(time.perf_counter())
    tagger = _tagger(options, rules)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_w, **_k: note(
            f"maxmargin train: warning: {message}"
        )
        if unlabelled is None:
            tagger.fit(data, labels)
        else:
            transductive: Any = tagger
            transductive.fit(data, labels, unlabelled)
    clock.append(time.perf_counter())
    summary = _figures(tagger, options, data, unlabelled)
    summary["seconds_read"] = clock[1] - clock[0]
    summary["seconds_train"] = clock[2] - clock[1]
    if options.valid is not None:
        table: Any = read_data(options.valid, options)
        X, y = table.labelled(options.label_column)
        summary["valid_token_accuracy"] = tagger.score(X, y)
    with HeldInterrupt():
        summary["model_bytes"] = tagger.save(options.model)
    summary["model"] = options.model
    if options.report is not None:
        scored = () if options.valid is None else (X, y)
        summary |= tagger.report(
            options.report, *scored, train=(data, labels), title=f"Report of {options.model}"
        )
    summary["seconds_total"] = time.perf_counter() - clock[0]
    summary["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet and not options.json:
        _print(summary)
    return 0, summary


def _tagger(options: argparse.Namespace, rules: Any) -> SequenceTagger:
    """Return the untrained tagger that the options describe."""
    from maxmargin.cli.options import is_function, load_function
    from maxmargin.cli.training_options import solver_of
    from maxmargin.estimators.tagger import SequenceTagger
    from maxmargin.estimators.transductive import TransductiveTagger

    template = options.template or "words"
    common: dict[str, Any] = {
        "C": options.C,
        "template": load_function(template) if is_function(template) else template,
        "min_count": options.min_count,
        "hash_bits": options.hash_bits,
        "allowed": options.allowed,
        "constraints": rules,
        "decode": options.decode or "off",
        "constraint_features": options.constraint_features,
        "infeasible": "relax",
        "solver": solver_of(options) if options.slack or options.rescale else options.solver,
        "max_passes": options.max_passes,
        "time_limit": options.time_limit,
        "dtype": options.dtype,
        "n_jobs": options.threads,
        "random_state": options.seed,
        "checkpoint": options.checkpoint,
        "resume": options.resume,
    }
    if options.unlabelled is None:
        return SequenceTagger(**common, gap=options.gap)
    given = {
        k: d if getattr(options, k) is None else getattr(options, k) for k, d in DEFAULTS.items()
    }
    return TransductiveTagger(
        **common, **given, gap=max(options.gap, 0.01), verbose=0 if options.quiet else 1
    )


def _figures(
    tagger: Any, options: argparse.Namespace, data: Any, unlabelled: Any
) -> dict[str, Any]:
    import numpy as np

    certificate = tagger.certificate_
    figures = {
        "n_sequences": len(data),
        "n_tokens": data.n_tokens,
        "n_unlabelled": 0 if unlabelled is None else len(unlabelled),
        "n_labels": len(tagger.classes_),
        "n_features": tagger.structure_.layout.n_token_features,
        "n_weights": tagger.structure_.layout.size,
        "n_nonzero": int(np.count_nonzero(tagger.weights_)),
        "n_constraints": len(tagger.constraints),
        "solver": options.solver,
        "C": options.C if unlabelled is not None else tagger.C_,
        "passes": tagger.n_iter_,
        "oracle_calls": tagger.history_[-1].oracle_calls if len(tagger.history_) else 0,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "converged": tagger.converged_,
        "stop_reason": tagger.stop_reason_,
    }
    if unlabelled is not None:
        last = tagger.gammas_[-1]
        figures |= {
            "C2": tagger.C2,
            "mu": tagger.mu,
            "gamma_scale": tagger.gamma_scale,
            "schedule": tagger.schedule,
            "objective": tagger.objective_,
            "outer_iterations": len(tagger.outer_history_),
            "gamma": last.gamma,
            "gamma_bound": last.bound,
        }
    return figures


def _print(summary: dict[str, Any]) -> None:
    say(
        f"{summary['n_sequences']} labelled and {summary['n_unlabelled']} unlabelled sequences, "
        f"{summary['n_constraints']} rules, {summary['n_labels']} labels"
    )
    if "objective" in summary:
        say(
            f"objective {summary['objective']:.6g} after {summary['outer_iterations']} outer "
            f"iterations ({summary['stop_reason']}); penalty of the predictions "
            f"{summary['gamma']:.6g} (as a {summary['gamma_scale']}), bound "
            f"{summary['gamma_bound']:.6g}"
        )
    if "valid_token_accuracy" in summary:
        say(f"accuracy on the validation file {100 * summary['valid_token_accuracy']:.2f} %")
    say(
        f"wrote {summary['model']} ({summary['model_bytes']} bytes) in "
        f"{summary['seconds_total']:.1f} s"
    )
