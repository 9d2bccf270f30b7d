"""Options of the commands that train: features, solver and limits, and what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.options import at_least, number

if TYPE_CHECKING:
    from maxmargin.regularizers import Regularizer
    from maxmargin.selection import FitOptions
    from maxmargin.solvers import Solver

__all__ = [
    "add_features",
    "add_prior",
    "add_regularizer",
    "add_saving",
    "add_solving",
    "add_talking",
    "fit_options_of",
    "regularizer_of",
    "solver_of",
]


def add_features(parser: argparse.ArgumentParser, *, allowed: bool = True) -> None:
    """Add the options for the features of tokens and, if `allowed`, for sequences of labels."""
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
    if not allowed:
        return
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
        help="algorithm: sdm (default), sap, nslack, dualcoordinate, oneslack, bcfw, "
        "subgradient, lp, extragradient, interiorpoint",
    )
    group.add_argument(
        "--deterministic",
        action="store_true",
        help="with several threads: one of them makes all steps, so that the model does not depend "
        "on their number (default: each makes those on a share of the examples where that pays; "
        "the same number of threads gives the same model)",
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


def add_regularizer(sparse: Any) -> None:
    """Add the options for the regulariser to a group of which one may be given."""
    sparse.add_argument(
        "--l1-ratio",
        type=number(0, 1),
        default=0.0,
        metavar="R",
        help="elastic net R‖w‖₁ + (1-R)/2‖w‖² in place of ½‖w‖²: with 0.9, a model of a few "
        "thousand weights; 1 is for --solver lp alone (default: 0)",
    )
    sparse.add_argument(
        "--l1-ball",
        type=number(0, open_low=True),
        default=None,
        metavar="R",
        help="‖w‖₁ <= R in place of ½‖w‖², for --solver subgradient",
    )


def add_prior(group: Any) -> None:
    """Add the options for the model that a training starts from."""
    group.add_argument(
        "--prior",
        metavar="OLD",
        help="adapt this model: its weights take the place of zero in ½‖w‖², and its features and "
        "labels are kept; the template is its own unless one is given, and must be the same",
    )
    group.add_argument(
        "--prior-precision",
        type=number(0, open_low=True),
        default=None,
        metavar="P",
        help="how strongly weights are held at those of --prior, where 1 is how strongly all "
        "others are held at zero (default: 1)",
    )


def add_saving(group: Any) -> None:
    """Add the options for the state of training on disk."""
    group.add_argument(
        "--checkpoint", metavar="FILE", help="save the state of training here now and then"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint if it is there"
    )


def add_talking(parser: argparse.ArgumentParser) -> None:
    """Add the options for how much a training tells."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    group.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="a line for each pass on standard error, with the dual and the number of planes "
        "(default: a line for each round, on a terminal one that is kept up to date)",
    )


def solver_of(options: argparse.Namespace) -> Solver:
    """Return the solver that ``--solver``, ``--slack``, ``--rescale`` ... describe."""
    from maxmargin.solvers import make_solver
    from maxmargin.solvers.registry import repeatable

    solver = make_solver(options.solver, slack=options.slack, rescale=options.rescale)
    return repeatable(solver) if options.deterministic else solver


def regularizer_of(options: argparse.Namespace) -> Regularizer | None:
    """Return the regulariser of ``--l1-ratio``, ``--l1-ball`` and ``--prior``; None is L2.

    A command that does not have these options trains with L2.
    """
    from maxmargin.regularizers import L1, ElasticNet, GaussianPrior, L1Ball

    if getattr(options, "prior", None) is not None:
        return GaussianPrior()  # its mean is known when the features are
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
