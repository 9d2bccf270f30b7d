"""Data frames where sequences are expected: they are known by their type, not their shape.

A data frame that is asked for its items gives its columns (or their names), so that one with as
many rows as columns looks like a list of tokens. No library is imported that is not there already:
whoever has a data frame has imported it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin.printable import quoted

__all__ = [
    "cell_texts",
    "frame_columns",
    "frame_kind",
    "frame_tokens",
    "is_arrow_array",
    "is_list",
    "is_missing",
]

#: Library, class, and how messages call it.
_FRAMES = (
    ("pandas", "DataFrame", "a pandas DataFrame"),
    ("polars", "DataFrame", "a polars DataFrame"),
    ("polars", "LazyFrame", "a polars LazyFrame"),
    ("pyarrow", "Table", "a pyarrow Table"),
    ("pyarrow", "RecordBatch", "a pyarrow RecordBatch"),
)


def frame_kind(thing: object) -> str | None:
    """Return what kind of data frame something is, for messages; None if it is none.

    Parameters
    ----------
    thing : object
        Anything.

    Returns
    -------
    str or None
        For example "a pandas DataFrame".
    """
    if type(thing) in (list, tuple, str, dict):
        return None
    for library, name, words in _FRAMES:
        module = sys.modules.get(library)
        kind = getattr(module, name, None)
        if isinstance(kind, type) and isinstance(thing, kind):
            return words
    # All others have one of two protocols. Single columns have that of Arrow, too.
    stream = hasattr(thing, "__arrow_c_stream__") and hasattr(thing, "columns")
    if stream or hasattr(thing, "__dataframe__"):
        return f"a data frame of type {type(thing).__name__}"
    return None


def is_arrow_array(thing: object) -> bool:
    """Whether it is an array of pyarrow, whose items are scalars of pyarrow and not of Python."""
    pyarrow = sys.modules.get("pyarrow")
    kinds = (getattr(pyarrow, "Array", None), getattr(pyarrow, "ChunkedArray", None))
    return isinstance(thing, tuple(kind for kind in kinds if isinstance(kind, type)))


def frame_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    """Return the columns of a data frame in their order: names and values.

    Parameters
    ----------
    frame : data frame
        Of any kind that `frame_kind` knows.

    Returns
    -------
    list of (str, list)
        Names need not be different.
    """
    kind = frame_kind(frame)
    if kind == "a pandas DataFrame":
        return [(str(name), frame.iloc[:, k].tolist()) for k, name in enumerate(frame.columns)]
    if kind == "a polars LazyFrame":
        frame = frame.collect()
    if kind is not None and kind.startswith("a polars"):
        return [(column.name, column.to_list()) for column in frame.get_columns()]
    if kind is not None and kind.startswith("a pyarrow"):
        names = frame.schema.names
        return [(name, c.to_pylist()) for name, c in zip(names, frame.columns, strict=True)]
    # A library that reads the protocol must have been imported.
    pyarrow, pandas = sys.modules.get("pyarrow"), sys.modules.get("pandas")
    if pyarrow is not None and hasattr(frame, "__arrow_c_stream__"):
        return frame_columns(pyarrow.table(frame))
    if pyarrow is not None and hasattr(frame, "__dataframe__"):
        interchange = importlib.import_module("pyarrow.interchange")
        return frame_columns(interchange.from_dataframe(frame))
    if pandas is not None and hasattr(frame, "__dataframe__"):
        return frame_columns(pandas.api.interchange.from_dataframe(frame))
    raise TypeError(
        f"found {kind}, which only pyarrow understands; import pyarrow first, or give a data frame "
        "of pandas or polars"
    )


def frame_tokens(frame: Any, where: str) -> list[tuple[str, ...]]:
    """Return the rows of a data frame as the cells of tokens, all columns in their order.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars or pyarrow, or one that speaks the interchange protocol.
    where : str
        Which one it is, for messages: "sequence 3".

    Returns
    -------
    list of tuples of str
        Numbers are turned into text.

    Raises
    ------
    ValueError, TypeError
        If a value is missing, or is no text and no number; the message names row and column.
    """
    columns = frame_columns(frame)
    cells = [cell_texts(values, name, f"{where}, row {{}}") for name, values in columns]
    return list(zip(*cells, strict=True))


# --- cells ---------------------------------------------------------------------------------------


def is_missing(value: Any) -> bool:
    """Whether a cell has nothing in it, in the way of any library."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)  # noqa: PLR0124


def is_list(value: Any) -> bool:
    """Whether a cell holds several values."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _text(value: Any, name: str, place: str) -> str:
    """Give a cell as text."""
    if type(value) is str:
        return value
    if is_missing(value):
        raise ValueError(f"{place}, column {quoted(name)}: found a missing value; expected text")
    if is_list(value) or isinstance(value, bytes | Mapping | set | np.ndarray):
        raise TypeError(
            f"{place}, column {quoted(name)}: found a value of type {type(value).__name__}; "
            "expected text or a number"
        )
    return str(value)


def cell_texts(values: list[Any], name: str, place: str = "row {}") -> list[str]:
    """Return the cells of a column as texts.

    Parameters
    ----------
    values : list
        Texts and numbers.
    name, place : str
        The column, and where a row is, for messages.

    Returns
    -------
    list of str
        As many.
    """
    return [
        v if type(v) is str else _text(v, name, place.format(r)) for r, v in enumerate(values)
    ]
