"""Which format a file of sequences has: by what its name ends with, and by what is in it.

The ending of a name decides where it says something, and the content where it does not. Where the
two contradict each other, nobody guesses: the user is asked. The content is looked at through its
first lines, with rules that are meant to be silent rather than wrong.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from maxmargin.errors import FileFormatError
from maxmargin.io.compression import plain_name

__all__ = ["ENDINGS", "FORMATS", "format_of_content", "format_of_name", "recognise"]

FORMATS = ("conll", "crfsuite", "svmhmm", "conllu")

#: What a name ends with, without .gz and the like -> format.
ENDINGS = {
    ".crfsuite": "crfsuite",
    ".items": "crfsuite",
    ".svmhmm": "svmhmm",
    ".svm": "svmhmm",
    ".dat": "svmhmm",
    ".tsv": "conll",
    ".conll": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
    ".txt": "conll",
    ".conllu": "conllu",
}
#: Endings that files of any format may have: they tell what to write, not what is in a file.
VAGUE = (".txt", ".dat")

#: Bytes and lines that are looked at.
LOOKED_AT = 1 << 16
LINES = 400
#: Rules about shares of lines need so many of them.
ENOUGH = 20

_QID = re.compile(rb"\S+\s+qid:[0-9]+(?:\s|\Z)")
_ID = re.compile(rb"[0-9]+(?:[-.][0-9]+)?\Z")
_HEAD = re.compile(rb"(?:[0-9]+|_)\Z")
# w[0]=the, U00\:the, length:3.5, __BOS__: what attributes in files of CRFsuite look like
_ATTRIBUTE = re.compile(rb"[^\s=]+=.*|.*\\:.*|[^:]+:-?[0-9.]+(?:[eE][-+]?[0-9]+)?|__[BE]OS__", re.S)


class Recognised(NamedTuple):
    """The format of a file, and why."""

    format: str
    because: str


def format_of_name(name: str) -> str | None:
    """Return the format that the ending of a name stands for.

    Parameters
    ----------
    name : str
        The file; an ending such as ``.gz`` behind the other is left out.

    Returns
    -------
    str or None
        None if it does not say: no ending, or one that any file may have.
    """
    ending = os.path.splitext(plain_name(name))[1].lower()  # noqa: PTH122
    return None if ending in VAGUE else ENDINGS.get(ending)


def format_of_content(data: bytes) -> str | None:
    """Return the format that the first lines of a file show.

    Parameters
    ----------
    data : bytes
        The file, or its beginning.

    Returns
    -------
    str or None
        None if they may be of several formats, or of none.
    """
    found = _looks(data)
    return None if found is None else found.format


def recognise(name: str, data: bytes, flag: str = "--format") -> str:
    """Return the format of a file.

    Parameters
    ----------
    name : str
        Its name, by which messages call it.
    data : bytes
        Its content.
    flag : str
        The option with which the user can say it, for the message.

    Returns
    -------
    str
        One of `FORMATS`; columns where nothing says otherwise.

    Raises
    ------
    FileFormatError
        If the name and the content contradict each other.
    """
    named, looks = format_of_name(name), _looks(data)
    if named is None:
        return "conll" if looks is None else looks.format
    if looks is not None and looks.format != named:
        ending = os.path.splitext(plain_name(name))[1]  # noqa: PTH122
        raise FileFormatError(
            f"{name}: the ending {ending} says {named}, and the content looks like {looks.format} "
            f"({looks.because}); say which it is with {flag} {named} or {flag} {looks.format}"
        )
    return named


def _looks(data: bytes) -> Recognised | None:
    lines = _first_lines(data)
    if not lines:
        return None
    for rule in (_svmhmm, _conllu, _crfsuite, _columns):
        because = rule(lines)
        if because:
            return Recognised(rule.__name__.removeprefix("_").replace("columns", "conll"), because)
    return None


def _first_lines(data: bytes) -> list[bytes]:
    """Return the first lines that are not blank; the last one only if it is whole."""
    begin = data[:LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    lines = begin.split(b"\n")
    if len(data) > LOOKED_AT and len(lines) > 1:
        lines.pop()
    return [line.rstrip(b"\r") for line in lines if line.strip()][:LINES]


def _svmhmm(lines: list[bytes]) -> str:
    return "lines such as TAG qid:1 1:1" if all(map(_QID.match, lines)) else ""


def _conllu(lines: list[bytes]) -> str:
    tokens = [line.split(b"\t") for line in lines if not line.startswith(b"#")]
    right = all(
        len(cells) == 10 and _ID.match(cells[0]) and (_HEAD.match(cells[6])) for cells in tokens
    )
    # The first sentence of a file begins with the token 1, with 1-2, or with an empty node 0.1.
    if not tokens or not right or tokens[0][0][:1] not in (b"0", b"1"):
        return ""
    return "ten columns, the first of them numbers"


def _crfsuite(lines: list[bytes]) -> str:
    lines = [line for line in lines if not line.startswith(b"@weight:")]
    rows = [line.split(b"\t") for line in lines]
    fields = [field for row in rows for field in row[1:]]
    if len(rows) < 2 or len(fields) < 2 * len(rows) * 0.9:  # a column file may have one such column
        return ""
    named = sum(map(_is_attribute, fields)) / len(fields)
    last = sum(_is_attribute(row[-1]) for row in rows) / len(rows)
    varies = len({len(row) for row in rows}) > 1
    if (named >= 0.9 and last >= 0.9) or (varies and named >= 0.5):
        return "attributes such as " + fields[0].decode("utf-8", "replace")[:40]
    return ""


def _is_attribute(field: bytes) -> bool:
    return _ATTRIBUTE.fullmatch(field) is not None


def _columns(lines: list[bytes]) -> str:
    if len(lines) < ENOUGH:
        return ""
    tabs = [line.count(b"\t") for line in lines]
    if not any(tabs):
        widths = {len(line.split()) for line in lines}
        several = len(widths) == 1 and widths != {1}
        return f"{widths.pop()} columns between spaces" if several else ""
    rows = [line.split(b"\t") for line in lines]
    if len(set(tabs)) > 1 or any(_is_attribute(field) for row in rows[:50] for field in row[1:]):
        return ""
    # In a column file words come first and labels last; in one of CRFsuite it is the other way.
    first, last = len({row[0] for row in rows}), len({row[-1] for row in rows})
    return f"{tabs[0] + 1} columns, the last of them with few values" if first > 3 * last else ""
