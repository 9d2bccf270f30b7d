"""``-C``: the weight of the errors, a number or ``auto``, which goes with the data's features."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.options import number

if TYPE_CHECKING:
    from maxmargin.cli.training_data import Learned

__all__ = ["AUTO", "add_loss_weight", "with_number"]

#: The word for a C that goes with the features (of ``-C``), or that is searched (of ``--grid``).
AUTO = "auto"


def add_loss_weight(group: Any) -> None:
    """Add ``-C`` to a group."""
    group.add_argument(
        "-C",
        type=_number_or_auto,
        default=0.1,
        metavar="C",
        help="weight of the errors against the size of the weights (default: 0.1); auto: 3 divided "
        "by the mean squared norm of the tokens' features, from 0.1 to 1, so that it grows where "
        "tokens have few features",
    )


def _number_or_auto(text: str) -> float | str:
    if text == AUTO:
        return AUTO
    try:
        return number(0, open_low=True)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, and not {AUTO}") from None


def with_number(options: argparse.Namespace, learned: Learned) -> argparse.Namespace:
    """Return the options with the number that ``-C auto`` comes to, which is said.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    learned : Learned
        The data in numbers.

    Returns
    -------
    argparse.Namespace
        The same, or a copy where ``-C`` is ``auto``.
    """
    if options.C != AUTO:
        return options
    from maxmargin.structures.auto_weight import automatic_C

    kernel = getattr(options, "kernel", "linear") != "linear"
    C = automatic_C(learned.train.batch, kernel=kernel)
    if not options.quiet and not options.json:
        say(f"-C auto: C={C:.4g}")
    return argparse.Namespace(**{**vars(options), "C": C})
