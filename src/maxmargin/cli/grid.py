"""``--grid NAME=A,B,...``: the settings that are tried, of which one is kept.

The option may be given several times; all combinations are tried. Settings that change the features
(min-count, template) come outside, then the l1-ratio, and C inside, where each training begins with
what the last one left.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from maxmargin.cli.loss_weight import AUTO
from maxmargin.cli.options import at_least, number
from maxmargin.printable import quoted

__all__ = ["Grid", "add_grid", "grid_of", "in_words", "settings_of"]

#: Name of a setting -> what its values are.
VALUES: dict[str, Callable[[str], Any]] = {
    "C": number(0, open_low=True),
    "l1_ratio": number(0, 1),
    "min_count": at_least(1),
    "template": str,
}


class Grid(NamedTuple):
    """What is tried.

    Attributes
    ----------
    Cs : list of float
        In ascending order; the first one alone where C is searched. Empty: what ``-C auto`` comes
        to with the features of a setting.
    auto : bool
        Whether C is searched.
    others : dict of str to list
        Values of other settings, by the names of their options.
    """

    Cs: list[float]
    auto: bool
    others: dict[str, list[Any]]

    @property
    def several(self) -> bool:
        """Whether there is more than one setting beside C."""
        return any(len(values) > 1 for values in self.others.values())

    def of(self, options: argparse.Namespace) -> Grid:
        """Return it with the C of a setting, where that depends on the features."""
        return self if self.Cs else self._replace(Cs=[options.C])


def add_grid(group: Any, names: str = "C, l1-ratio, min-count or template") -> None:
    """Add ``--grid``; `names` are the settings that the command knows."""
    group.add_argument(
        "--grid",
        metavar="NAME=A,B,...",
        action="append",
        help=f"train for each of these values of {names}, and for all combinations if it is given "
        "several times; keep the model that is best on --valid or by --cv. --grid auto searches C "
        "by itself, from -C on; each training begins where the last one ended",
    )


def grid_of(options: argparse.Namespace) -> Grid:
    """Return what ``--grid`` asks for; without it, the one setting there is.

    Parameters
    ----------
    options : argparse.Namespace
        With ``grid`` (a list of texts, or None), ``C`` and the other settings.

    Returns
    -------
    Grid
        What is tried.

    Raises
    ------
    ValueError
        If a setting or a value of it is not known, or a setting is there twice.
    """
    found: dict[str, list[Any]] = {}
    for text in options.grid or []:
        name, values = _parsed(text, options)
        if name in found:
            raise ValueError(f"--grid: {_flag(name)} is given twice; expected all values together")
        found[name] = values
    given = found.pop("C", [])
    searched = given == [AUTO]
    if searched or not given:
        given = [] if options.C == AUTO else [options.C]
    return Grid(sorted(set(given)), searched, found)


def _parsed(text: str, options: argparse.Namespace) -> tuple[str, list[Any]]:
    if text == AUTO:
        return "C", [AUTO]
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    known = [setting for setting in VALUES if hasattr(options, setting)]
    try:
        if not equals or name not in known:
            raise ValueError
        if name == "C" and values.strip() == AUTO:
            return "C", [AUTO]
        parts = [part.strip() for part in values.split(",")]
        if not all(parts):
            raise ValueError
        return name, list(dict.fromkeys(VALUES[name](part) for part in parts))
    except (ValueError, argparse.ArgumentTypeError) as error:
        why = f" ({error})" if str(error) else ""
        names = ", ".join(map(_flag, known))
        raise ValueError(
            f"--grid: found {quoted(text)}{why}; expected C= and numbers above 0 between commas, "
            f"such as C=0.01,0.1,1, the same of another of {names}, or auto"
        ) from None


def _flag(name: str) -> str:
    return name.replace("_", "-")


def settings_of(
    options: argparse.Namespace, grid: Grid
) -> Iterator[tuple[dict[str, Any], argparse.Namespace]]:
    """Give all combinations of the settings beside C.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    grid : Grid
        What is tried.

    Yields
    ------
    setting : dict
        Values by the names of the options.
    options : argparse.Namespace
        A copy with these values.
    """
    order = [name for name in ("template", "min_count", "l1_ratio") if name in grid.others]
    for values in itertools.product(*(grid.others[name] for name in order)):
        setting = dict(zip(order, values, strict=True))
        yield setting, argparse.Namespace(**{**vars(options), **setting})


def in_words(setting: dict[str, Any]) -> str:
    """Return a setting as it would be written, with a space behind it; nothing for none."""
    return "".join(f"{_flag(name)}={value} " for name, value in setting.items())
