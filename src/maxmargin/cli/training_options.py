"""Options of the commands that train: features, solver and limits, and what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.options import at_least, number

if TYPE_CHECKING:
    from maxmargin.regularizers import Regularizer
    from maxmargin.selection import FitOptions
    from maxmargin.solvers import Solver

__all__ = ["add_features", "add_solving", "fit_options_of", "regularizer_of", "solver_of"]


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the options for the features of tokens and for the allowed sequences of labels."""
    parser.add_argument(
        "--template",
        metavar="NAME",
        help="which features tokens get: words (default), pos, chunking, ner, a file, or a "
        "Python function",
    )
    parser.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="leave out features that occur in fewer tokens (default: 1)",
    )
    parser.add_argument(
        "--hash-bits",
        type=at_least(1),
        default=None,
        metavar="B",
        help="no list of features: each is one of 2^B by its hash, so that memory is fixed",
    )
    parser.add_argument(
        "--allowed",
        choices=("iob2", "iobes"),
        default=None,
        help="tag only with sequences of labels that this scheme allows",
    )


def add_solving(group: Any, gap: float = 0.01) -> None:
    """Add the options of every training to a group; `gap` is the default of ``--gap``."""
    group.add_argument(
        "--gap",
        type=number(0),
        default=gap,
        metavar="G",
        help=f"relative duality gap that ends training (default: {gap:g})",
    )
    group.add_argument(
        "--solver",
        default="sdm",
        metavar="NAME",
        help="algorithm: sdm (default), sap, nslack, oneslack, bcfw, subgradient, lp, "
        "extragradient, interiorpoint",
    )
    group.add_argument(
        "--slack",
        choices=("linear", "quadratic", "hard"),
        default=None,
        help="what slacks cost: C Σ ξ (default), C/2 Σ ξ², or none are allowed",
    )
    group.add_argument(
        "--rescale",
        choices=("margin", "slack", "none"),
        default=None,
        help="what the loss of an output scales: the margin that it must keep (default), the slack "
        "that it may use, or nothing",
    )
    group.add_argument(
        "--max-passes",
        type=at_least(1),
        default=None,
        metavar="N",
        help="most passes (default: as many as about half a minute of counted work is, and at "
        "least 1000)",
    )
    group.add_argument(
        "--time-limit",
        type=number(0, open_low=True),
        default=None,
        metavar="S",
        help="most seconds of training; the final certificate comes on top",
    )
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="type of the weights (default: float32, and float64 from where rounding keeps the gap "
        "above the one asked for)",
    )
    group.add_argument(
        "--seed", type=at_least(0, None), default=0, metavar="N", help="of the order of visits (0)"
    )


def solver_of(options: argparse.Namespace) -> Solver:
    """Return the solver that ``--solver``, ``--slack`` and ``--rescale`` describe."""
    from maxmargin.solvers import make_solver

    return make_solver(options.solver, slack=options.slack, rescale=options.rescale)


def regularizer_of(options: argparse.Namespace) -> Regularizer | None:
    """Return the regulariser of ``--l1-ratio`` and ``--l1-ball``; None is L2.

    A command that does not have these options trains with L2.
    """
    from maxmargin.regularizers import L1, ElasticNet, L1Ball

    ratio, radius = getattr(options, "l1_ratio", 0.0), getattr(options, "l1_ball", None)
    if radius is not None:
        return L1Ball(radius)
    if ratio == 1:
        return L1()
    return ElasticNet(l1_ratio=ratio) if ratio else None


def fit_options_of(options: argparse.Namespace) -> FitOptions:
    """Return the options of the command as those of a training.

    Parameters
    ----------
    options : argparse.Namespace
        With those of `add_solving`. Where a command has no ``l1_ratio`` and ``checkpoint``, the
        regulariser is L2 and nothing is saved.

    Returns
    -------
    FitOptions
        For `maxmargin.selection`.
    """
    from maxmargin.selection import FitOptions

    return FitOptions(
        solver=solver_of(options),
        regularizer=regularizer_of(options),
        gap=options.gap,
        max_passes=options.max_passes,
        time_limit=options.time_limit,
        dtype=options.dtype,
        threads=options.threads,
        seed=options.seed,
        checkpoint=getattr(options, "checkpoint", None),
        resume=getattr(options, "resume", False),
    )
