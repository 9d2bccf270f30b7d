"""Single values in the header of a model file: what one can hold, and checks of what one holds."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

__all__ = [
    "MAX_INT",
    "MAX_TEXT",
    "plain_value",
    "require_choice",
    "require_dict",
    "require_integer",
    "require_number",
    "require_plain",
    "require_text",
    "short_value",
]

#: Sizes beyond which a number or a text in a header is not taken for what it should be.
MAX_INT = 2**63 - 1
MAX_TEXT = 10_000
MAX_DEPTH = 8


def plain_value(value: Any) -> Any:
    """Return a value as a file can hold it, or NotImplemented if it cannot.

    Parameters
    ----------
    value : object
        Numbers of NumPy and of other libraries become Python's.

    Returns
    -------
    None, bool, int, float, str or list
        Or NotImplemented.
    """
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str.__str__(value) if len(value) <= MAX_TEXT else NotImplemented
    if isinstance(value, numbers.Integral):
        return int(value) if abs(int(value)) <= MAX_INT else NotImplemented
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            return NotImplemented
        return number if math.isfinite(number) else NotImplemented
    if isinstance(value, list):
        entries = [plain_value(entry) for entry in value]
        return NotImplemented if any(e is NotImplemented for e in entries) else entries
    return NotImplemented


def short_value(value: Any) -> str:
    """Return a value in a few characters on one line: a file may hold megabytes of anything.

    Parameters
    ----------
    value : object
        What a header holds.

    Returns
    -------
    str
        For a message.
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INT:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = repr(value[:61] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def require_dict(value: Any, what: str) -> dict[str, Any]:
    """Return a value that must be a dict.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.

    Returns
    -------
    dict
        The value.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {short_value(value)}; expected a dict")
    return value


def require_number(value: Any, what: str) -> float:
    """Return a value that must be a finite number.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        If it is something else.
    """
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not abs(value) <= (MAX_INT if isinstance(value, int) else math.inf):
        raise ValueError(f"{what} is {short_value(value)}; expected a finite number")
    return float(value)


def require_integer(value: Any, what: str, least: int) -> int:
    """Return a value that must be an integer of at most 8 bytes.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.
    least : int
        The least that it may be.

    Returns
    -------
    int
        The value.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if type(value) is not int or not least <= value <= MAX_INT:
        raise ValueError(
            f"{what} is {short_value(value)}; expected an integer from {least} to 2^63 - 1"
        )
    return value


def require_text(value: Any, what: str) -> str:
    """Return a value that must be a text of a sensible length.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.

    Returns
    -------
    str
        The value.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if type(value) is not str or len(value) > MAX_TEXT:
        raise ValueError(f"{what} is {short_value(value)}; expected a text of at most {MAX_TEXT}")
    return value


def require_choice(value: Any, what: str, among: tuple[Any, ...]) -> None:
    """Check a value that must be one of a few.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.
    among : tuple
        The values that it may have, of their very types.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if not any(type(value) is type(one) and value == one for one in among):
        expected = " or ".join(map(repr, among))
        raise ValueError(f"{what} is {short_value(value)}; expected {expected}")


def require_plain(value: Any, what: str, depth: int) -> None:
    """Check what is kept as it is: numbers and texts of a sensible size, in lists and dicts.

    Parameters
    ----------
    value : object
        What a header holds.
    what : str
        What messages call it.
    depth : int
        How many lists and dicts it is in.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"{what} is nested too deep")
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in inner:
            require_plain(entry, what if depth else f"{short_value(key)} of {what}", depth + 1)
    elif isinstance(value, str):
        require_text(value, what)
    elif value is not None and not isinstance(value, bool):
        require_number(value, what)
