"""Tables of tokens: dicts of columns, pandas, pyarrow, and whatever behaves like them.

No library is imported that is not there already: a table brings its own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from maxmargin.features.frames import cell_texts, is_list, is_missing
from maxmargin.printable import quoted

__all__ = ["from_table", "to_table"]

_KINDS = (
    "expected a dict of columns, a pandas or polars DataFrame, a pyarrow Table or something that "
    "can be turned into one"
)


def _open(table: Any) -> tuple[list[str], Any]:
    """Names of the columns, and something that gives a column by its name."""
    if isinstance(table, Mapping):
        return list(table), table.__getitem__
    if hasattr(table, "column_names") and callable(getattr(table, "column", None)):  # pyarrow
        return list(table.column_names), table.column
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas, polars
        return list(table.columns), table.__getitem__
    # Other tables have the protocols of Arrow or of data frames, which need a library to be read.
    pyarrow = sys.modules.get("pyarrow")
    if hasattr(table, "__arrow_c_stream__") and pyarrow is not None:
        return _open(pyarrow.table(table))
    if hasattr(table, "__dataframe__"):
        if pyarrow is not None:
            interchange = importlib.import_module("pyarrow.interchange")
            return _open(interchange.from_dataframe(table))
        pandas = sys.modules.get("pandas")
        if pandas is not None:
            return _open(pandas.api.interchange.from_dataframe(table))
    raise TypeError(f"the table is of type {type(table).__name__}; {_KINDS}")


def _as_list(column: Any, name: str) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            values = getattr(column, method)()
            break
    else:
        if isinstance(column, str | bytes | Mapping) or not hasattr(column, "__iter__"):
            raise TypeError(
                f"column {quoted(name)} is of type {type(column).__name__}; expected a list of "
                "values"
            )
        values = list(column)
    if not isinstance(values, list):
        raise TypeError(f"column {quoted(name)} holds one value; expected a list of values")
    return values


def _columns(table: Any, wanted: Sequence[str]) -> list[list[Any]]:
    names, get = _open(table)
    out = []
    for name in wanted:
        if names.count(name) != 1:
            known = ", ".join(quoted(n) for n in names[:20]) + (", ..." if len(names) > 20 else "")
            found = "no column" if name not in names else f"{names.count(name)} columns"
            raise ValueError(f"found {found} {quoted(name)}; expected one among {known or 'none'}")
        out.append(_as_list(get(name), name))
        if len(out[-1]) != len(out[0]):
            raise ValueError(
                f"column {quoted(name)} has {len(out[-1])} rows and column {quoted(wanted[0])} "
                f"{len(out[0])}; expected as many"
            )
    return out


def _starts(keys: list[tuple[str, ...]], names: list[str]) -> list[int]:
    """Rows at which the keys change, and the number of rows."""
    starts = []
    seen: set[tuple[str, ...]] = set()
    last: tuple[str, ...] | None = None
    for row, key in enumerate(keys):
        if key == last:
            continue
        if key in seen:
            shown = ", ".join(f"{n} = {quoted(k)}" for n, k in zip(names, key, strict=True))
            raise ValueError(
                f"row {row}: the sequence {shown} comes back after another one; expected the rows "
                "of a sequence one after the other (sort the table first)"
            )
        seen.add(key)
        last = key
        starts.append(row)
    return [*starts, len(keys)]


def _from_nested(
    wanted: list[str], cells: list[list[Any]], n_columns: int
) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    rows, labels = [], []
    for r, row in enumerate(zip(*cells, strict=True)):
        lists = []
        for name, cell in zip(wanted, row, strict=True):
            if not is_list(cell):
                found = (
                    "a missing value" if is_missing(cell) else f"a value of type {_type(cell)}"
                )
                raise ValueError(
                    f"row {r}, column {quoted(name)}: found {found}; expected a list, as the row "
                    "is a whole sequence (or name the column that tells sequences apart)"
                )
            values = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
            lists.append(cell_texts(values, name, f"row {r}, token {{}}"))
            if len(lists[-1]) != len(lists[0]):
                raise ValueError(
                    f"row {r}: column {quoted(name)} has {len(lists[-1])} tokens and column "
                    f"{quoted(wanted[0])} {len(lists[0])}; expected as many"
                )
        if not lists[0]:
            raise ValueError(f"row {r} is an empty sequence; expected at least one token")
        rows.append(list(zip(*lists[:n_columns], strict=True)))
        labels.append(lists[-1])
    return rows, labels


def _type(value: object) -> str:
    return type(value).__name__


def from_table(
    table: Any,
    columns: Sequence[str],
    label: str | None = None,
    sequence: str | Sequence[str] | None = None,
) -> tuple[list[list[tuple[str, ...]]], list[list[str]] | None]:
    """Take sequences of tokens out of a table.

    Parameters
    ----------
    table : dict of columns, pandas or polars DataFrame, pyarrow Table or the like
    columns : list of str
        The columns to take, in this order.
    label : str, optional
        The column of the labels.
    sequence : str or list of str, optional
        The column or columns whose change begins a new sequence; a row is then a token. Without it
        a row is a sequence, and its cells are lists.

    Returns
    -------
    rows : list of sequences of tuples of str
        The cells of each token. Numbers are turned into text.
    labels : list of sequences of str, or None
        None without ``label``.

    Raises
    ------
    ValueError, TypeError
        If a column is not there, a value is missing, or a sequence comes back after another one;
        the message names row (the first is 0) and column.

    Examples
    --------
    >>> table = {"s": [1, 1, 2], "word": ["dogs", "bark", "no"], "tag": ["N", "V", "D"]}
    >>> from_table(table, ["word"], "tag", "s")
    ([[('dogs',), ('bark',)], [('no',)]], [['N', 'V'], ['D']])
    """
    if isinstance(columns, str) or len(columns) == 0:
        raise ValueError(f"columns is {columns!r}; expected a list of at least one name")
    wanted = [*columns, *([] if label is None else [label])]
    by = [] if sequence is None else [sequence] if isinstance(sequence, str) else list(sequence)
    if sequence is not None and not by:
        raise ValueError("sequence is empty; expected a column, or None")
    cells = _columns(table, [*wanted, *by])
    if not cells[0]:
        raise ValueError("the table has no rows; expected at least one sequence")
    if sequence is None:
        rows, labels = _from_nested(wanted, cells, len(columns))
        return rows, None if label is None else labels
    texts = [cell_texts(values, name) for name, values in zip([*wanted, *by], cells, strict=True)]
    starts = _starts(list(zip(*texts[len(wanted) :], strict=True)), by)
    tokens = list(zip(*texts[: len(columns)], strict=True))
    spans = list(pairwise(starts))
    return (
        [tokens[a:b] for a, b in spans],
        None if label is None else [texts[len(columns)][a:b] for a, b in spans],
    )


def to_table(
    rows: Sequence[Sequence[Sequence[str]]],
    labels: Sequence[Sequence[Any]] | None = None,
    columns: Sequence[str] | None = None,
    *,
    label: str = "label",
    sequence: str = "sequence",
) -> dict[str, list[Any]]:
    """Put sequences of tokens into a table: the reverse of :func:`from_table`.

    Parameters
    ----------
    rows : list of sequences of tuples of cells
    labels : list of sequences of labels, optional
    columns : list of str, optional
        Names of the columns; without them "column0", "column1", ...
    label, sequence : str
        Names of the column of the labels and of the column with the number of the sequence.

    Returns
    -------
    dict
        Lists by the name of the column, a row for each token. ``pandas.DataFrame`` and
        ``pyarrow.table`` take it as it is.
    """
    width = next((len(token) for tokens in rows for token in tokens), len(columns or ()))
    names = [f"column{k}" for k in range(width)] if columns is None else list(columns)
    everything = [sequence, *names, *([] if labels is None else [label])]
    if len(set(everything)) != len(everything):
        raise ValueError(f"found the columns {everything}; expected different names")
    if labels is not None and len(labels) != len(rows):
        raise ValueError(
            f"there are {len(rows)} sequences and {len(labels)} sequences of labels; "
            "expected as many"
        )
    table: dict[str, list[Any]] = {name: [] for name in everything}
    for i, tokens in enumerate(rows):
        if labels is not None:
            if len(labels[i]) != len(tokens):
                raise ValueError(
                    f"sequence {i} has {len(tokens)} tokens and {len(labels[i])} labels; "
                    "expected as many"
                )
            table[label].extend(labels[i])
        table[sequence].extend([i] * len(tokens))
        for t, token in enumerate(tokens):
            if len(token) != len(names):
                raise ValueError(
                    f"sequence {i}, token {t} has {len(token)} cells; expected {len(names)}"
                )
            for name, cell in zip(names, token, strict=True):
                table[name].append(cell)
    return table
