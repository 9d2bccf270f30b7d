"""Checks of the numbers and choices that users give, with messages that name what was found.

Functions named ``is_...`` answer, functions named ``check_...`` raise. Arguments of functions are
refused with a `TypeError` where they are no numbers at all, attributes of solvers with a
`ValueError` in any case.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "check_choice",
    "check_finite_targets",
    "check_not_negative",
    "check_number",
    "check_whole",
    "check_whole_attributes",
    "is_number",
    "is_real",
    "is_whole",
]


def is_real(value: Any) -> bool:
    """Whether a value is a number, finite or not; true and false are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_number(value: Any, *, above: float = -math.inf) -> bool:
    """Whether a value is a finite number above a bound; true and false are none."""
    return is_real(value) and above < float(value) < math.inf


def is_whole(value: Any, least: int | None = None) -> bool:
    """Whether a value is a whole number, and at least so much; true and false are none."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and (least is None or int(value) >= least)


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None
) -> float:
    """Return an argument as a float; refuse what is no finite number within its bound.

    Parameters
    ----------
    name : str
        Its name, for the message.
    value : object
        What was given.
    above, least : float or None
        A bound that it must exceed, or that it must reach.

    Returns
    -------
    float
        The number.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is out of bounds.
    """
    if not is_real(value):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if above is not None and not above < number < math.inf:
        raise ValueError(f"{name} must be finite and above {above:g}, got {value!r}")
    if least is not None and not least <= number < math.inf:
        raise ValueError(f"{name} must be finite and at least {least:g}, got {value!r}")
    return number


def check_whole(name: str, value: Any, least: int) -> int:
    """Return an argument as an int; refuse what is no whole number of at least so much.

    Parameters
    ----------
    name : str
        Its name, for the message.
    value : object
        What was given.
    least : int
        The smallest that is allowed.

    Returns
    -------
    int
        The number.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is too small.
    """
    if not is_whole(value):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_not_negative(owner: object, *names: str) -> None:
    """Refuse attributes that are negative or not finite."""
    for name in names:
        value = getattr(owner, name)
        if not (value >= 0 and value < math.inf):
            raise ValueError(f"{name} must be non-negative and finite, got {value!r}")


def check_whole_attributes(owner: object, **least: int) -> None:
    """Refuse attributes that are not whole numbers of at least so much."""
    for name, lowest in least.items():
        value = getattr(owner, name)
        if not is_whole(value, lowest):
            raise ValueError(f"{name} must be a whole number of at least {lowest}, got {value!r}")


def check_finite_targets(y: Any) -> None:
    """Refuse numbers as targets of which one is not finite.

    Parameters
    ----------
    y : array-like of shape (n_examples,) or (n_examples, 1)
        What was given; what is no array of numbers is for others to refuse.

    Raises
    ------
    ValueError
        Names the first example.
    """
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):  # rows of several lengths
        return
    if values.dtype.kind != "f" or values.ndim == 0:
        return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"y: that of example {bad[0, 0]} is {values[tuple(bad[0])]}; expected a finite number "
            "(no NaN, no infinity)"
        )
