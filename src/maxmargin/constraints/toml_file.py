"""Constraints in TOML: what ``maxmargin constraints`` and ``--constraints`` read.

    columns = ["word", "field"]          # optional: names of columns
    labels = ["author", "pages"]         # optional: all labels

    [[constraint]]
    kind = "words"
    words = ["pp", "pages"]
    labels = "pages"

The keys of a constraint are the parameters of its class; ``kind`` names the class. `tomllib` does
not tell where a value stood, so lines are found again in the text: by the number of the
``[[constraint]]`` header and the key, or the quoted value, behind it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from maxmargin.constraints.base import Constraint
from maxmargin.constraints.expectations import NGrams, Proportion
from maxmargin.constraints.local import Changes, First, Last, Words
from maxmargin.constraints.sample import suggestion
from maxmargin.constraints.sequence_rules import (
    AtLeast,
    AtMost,
    Exactly,
    MinimumLength,
    OneSegment,
    Order,
)
from maxmargin.constraints.toml_lines import Lines
from maxmargin.errors import ConstraintError, FileFormatError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["KINDS", "RuleFile", "format_constraints", "parse_constraints", "read_text"]

#: Kinds that a file can hold.
KINDS: dict[str, type[Constraint]] = {
    cls.kind: cls
    for cls in (
        Words,
        Changes,
        First,
        Last,
        AtLeast,
        AtMost,
        Exactly,
        OneSegment,
        Order,
        MinimumLength,
        Proportion,
        NGrams,
    )
}
_TOP = ("columns", "labels", "constraint")
#: The most that is read: a file of rules is short.
MAX_BYTES = 10_000_000


class RuleFile(NamedTuple):
    """What a file of constraints holds.

    Attributes
    ----------
    constraints : list of Constraint
        In their order.
    columns : list of str
        Names of columns.
    labels : list
        All labels; empty: not said.
    lines : Lines
        Where they stand.
    """

    constraints: list[Constraint]
    columns: list[str]
    labels: list[Any]
    lines: Lines


def read_text(path: Any) -> tuple[str, str]:
    """Read the text of a file of constraints.

    Parameters
    ----------
    path : str, path or binary file
        The file.

    Returns
    -------
    text, source : str
        The text, and what messages call it.

    Raises
    ------
    FileFormatError
        If it is no text, or far too long.
    OSError
        If it cannot be read.
    """
    if hasattr(path, "read"):
        data, source = path.read(MAX_BYTES + 1), str(getattr(path, "name", "the constraints"))
    else:
        source = os.fsdecode(path)
        with Path(source).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FileFormatError(f"{source}: has more than {MAX_BYTES} bytes; expected rules in TOML")
    try:
        return (data.decode("utf-8-sig") if isinstance(data, bytes) else data), source
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileFormatError(f"{source}, line {line}: is not UTF-8") from None


def parse_constraints(text: str, source: str) -> RuleFile:
    """Read constraints from the text of a TOML file.

    Parameters
    ----------
    text : str
        The text.
    source : str
        What messages call it.

    Returns
    -------
    RuleFile
        What it holds.

    Raises
    ------
    FileFormatError
        If it is not as it must be; the message names line and key.
    """
    lines = Lines(text, source)
    try:
        tables = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{source}: {_toml_message(error)}") from None
    except RecursionError:
        raise FileFormatError(f"{source}: is nested too deeply") from None

    def wrong(number: int | None, key: str | None, message: str) -> NoReturn:
        raise FileFormatError(f"{source}, line {lines.of(number, key)}: {message}")

    for key in tables:
        if key not in _TOP:
            wrong(None, key, f"unknown key {quoted(key)}{suggestion(key, _TOP)}")
    columns, labels = tables.get("columns", []), tables.get("labels", [])
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        wrong(None, "columns", f"columns is {quoted(columns)}; expected a list of names")
    if not isinstance(labels, list) or any(isinstance(k, list | dict) for k in labels):
        wrong(None, "labels", f"labels is {quoted(labels)}; expected a list of labels")
    if len(set(labels)) != len(labels):
        wrong(None, "labels", "labels has a label twice")
    entries = tables.get("constraint", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        wrong(None, "constraint", "constraints must be tables that begin with [[constraint]]")
    if not entries:
        raise FileFormatError(f"{source}: has no [[constraint]]")
    found = [_constraint(number, dict(entry), wrong) for number, entry in enumerate(entries)]
    lines.titles = titles = [c.title for c in found]
    twice = next((k for k, t in enumerate(titles) if t in titles[:k]), None)
    if twice is not None:
        wrong(twice, "name", f"two constraints are called {quoted(titles[twice])}; give them names")
    return RuleFile(found, columns, labels, lines)


def _toml_message(error: tomllib.TOMLDecodeError) -> str:
    """Return what is wrong, with the line first."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
    if found is None:
        return str(error)
    return f"line {found[2]}, column {found[3]}: {found[1]}"


def _constraint(
    number: int, entry: dict[str, Any], wrong: Callable[[int | None, str | None, str], NoReturn]
) -> Constraint:
    kind = entry.pop("kind", None)
    if kind is None:
        wrong(number, None, f"the constraint has no kind{suggestion('', KINDS)}")
    if not isinstance(kind, str) or kind not in KINDS:
        wrong(number, "kind", f"unknown kind {quoted(kind)}{suggestion(kind, KINDS)}")
    cls = KINDS[kind]
    fields = [f.name for f in dataclasses.fields(cls) if f.name != "predicate"]
    keys = {name.removesuffix("_"): name for name in fields}
    arguments = {}
    for key, value in entry.items():
        if key not in keys:
            wrong(number, key, f"unknown key {quoted(key)} of kind {kind}{suggestion(key, keys)}")
        arguments[keys[key]] = _frozen(value)
    for key in ("match_case",):
        if key in arguments and not isinstance(arguments[key], bool):
            wrong(number, key, f"{key} is {quoted(arguments[key])}; expected true or false")
    column = arguments.get("column")
    if column is not None and (isinstance(column, bool) or not isinstance(column, int | str)):
        wrong(number, "column", f"column is {quoted(column)}; expected a number or a name")
    try:
        return cls(**arguments)
    except (ConstraintError, ValueError, TypeError) as error:
        named = next((k for k in entry if re.search(rf"\b{re.escape(k)}\b", str(error))), None)
        wrong(number, named, f"kind {kind}: {error}")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- writing -------------------------------------------------------------------------------------


def format_constraints(
    constraints: Iterable[Constraint], columns: Sequence[str], labels: Sequence[Any]
) -> str:
    """Return constraints as the text of a TOML file.

    Parameters
    ----------
    constraints : iterable of Constraint
        The constraints.
    columns, labels : sequence
        Names of columns, and all labels; empty: not said.

    Returns
    -------
    str
        The text; reading it gives the same.
    """
    parts = []
    if columns:
        parts.append(f"columns = {_value(list(columns))}\n")
    if labels:
        parts.append(f"labels = {_value(list(labels))}\n")
    for constraint in constraints:
        lines = ["[[constraint]]"]
        for key, value in constraint.to_dict().items():
            lines.append(f"{key} = {_value(value)}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        text = repr(value)
        return text if any(c in text for c in ".en") else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        entries = (f"{_text(str(k))} = {_value(v)}" for k, v in value.items())
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, str):
        return _text(value)
    raise ConstraintError(f"{quoted(value)} is a {type(value).__name__}, which TOML cannot hold")


def _text(text: str) -> str:
    """Return a basic string of TOML: as in JSON, with DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
