r"""CRFsuite's item files.

A line is a token: its label and its attributes, with tabs between them. A blank line ends a
sequence. An attribute may have a value, ``name:2.5``; a colon within a name is written ``\:``, a
backslash ``\\``. A sequence may have a weight: a line ``@weight:2.5`` at its beginning. Values are
numbers between -1e12 and 1e12, weights from 0 to 1e12.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin._native import MAX_VALUE, Vocabulary
from maxmargin.io.items import Items, read_items
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = ["read_crfsuite", "write_crfsuite"]


def read_crfsuite(
    path: PathOrFile, vocabulary: Vocabulary | None = None, *, max_inflated: int | None = None
) -> Items:
    """Read a CRFsuite item file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised.
    vocabulary : Vocabulary, optional
        The features that exist; others are left out. Without it, all features of the file exist,
        numbered as they appear.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    Items

    Raises
    ------
    FileFormatError
        The message names file and line.
    """
    return read_items(path, "crfsuite", vocabulary, max_inflated=max_inflated)


def _attributes(token: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) pairs of a token, by the rules of FeatureEncoder."""
    if isinstance(token, Mapping):
        for key, value in token.items():
            if not isinstance(key, str):
                raise TypeError(
                    f"the key {quoted(key)} is of type {type(key).__name__}; expected a str"
                )
            name = prefix + key
            if isinstance(value, str):
                yield f"{name}:{value}", 1.0
            elif isinstance(value, Mapping | list | tuple | set | frozenset):
                yield from _attributes(value, name + ":")
            else:
                yield name, value
        return
    if isinstance(token, str | bytes) or not isinstance(token, Iterable):
        raise TypeError(
            f"found {quoted(token)} of type {type(token).__name__}; expected a list of names or "
            "(name, value) pairs, or a dict"
        )
    for item in token:
        if isinstance(item, str):
            yield prefix + item, 1.0
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            yield prefix + item[0], item[1]
        else:
            raise TypeError(
                f"found {quoted(item)} of type {type(item).__name__}; expected a str or a pair of "
                "a str and a number"
            )


def _number(value: Any, name: str) -> str:
    """Write a number so that it is read as the same one."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= MAX_VALUE:
        raise ValueError(f"{name}: found {quoted(value)}; expected a number between -1e12 and 1e12")
    return str(value) if isinstance(value, np.float32) else repr(number)


def _field(text: str, what: str) -> str:
    if any(c in text for c in "\t\n\r"):
        raise ValueError(
            f"found the {what} {quoted(text)}; expected one without tabs and ends of lines, which "
            "the format cannot express"
        )
    return text.replace("\\", "\\\\").replace(":", "\\:")


def attribute_text(name: str, value: Any) -> str:
    """One field of a line; empty if the value is zero."""
    if not name:
        raise ValueError("found an attribute whose name is empty; expected a name")
    if value is True or (type(value) is float and value == 1.0):
        return _field(name, "attribute")
    number = _number(value, f"attribute {quoted(name)}")
    return "" if float(number) == 0.0 else f"{_field(name, 'attribute')}:{number}"


def label_text(label: Any) -> str:
    if not isinstance(label, str | int | np.integer):
        raise TypeError(
            f"the label {quoted(label)} is of type {type(label).__name__}; expected a str"
        )
    text = str(label)
    if not text.strip(" ") or text.startswith("@"):
        raise ValueError(
            f"found the label {quoted(text)}; expected one that is not blank and does not begin "
            "with @, as the format demands"
        )
    return _field(text, "label")


def write_crfsuite(
    path: PathOrFile,
    sequences: Sequence[Sequence[Any]],
    labels: Sequence[Sequence[Any]],
    weights: Sequence[float] | None = None,
) -> None:
    """Write a CRFsuite item file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard output; a name that ends with ``.gz`` is compressed.
    sequences : list of sequences of tokens
        A token is a list of names or (name, value) pairs, or a dict as in
        :class:`~maxmargin.features.FeatureEncoder`. Features with the value zero are left out.
    labels : list of sequences of labels
        One str or int for each token.
    weights : list of numbers, optional
        A weight for each sequence.

    Raises
    ------
    ValueError, TypeError
        If sizes differ, or if a name or label cannot be written in this format; the message names
        sequence and token, and nothing is written.
    """
    if len(sequences) != len(labels):
        raise ValueError(
            f"there are {len(sequences)} sequences and {len(labels)} sequences of labels; "
            "expected as many"
        )
    if weights is not None and len(weights) != len(sequences):
        raise ValueError(
            f"there are {len(sequences)} sequences and {len(weights)} weights; expected as many"
        )
    with open_for_writing(path, text=True) as file:
        for i, (tokens, its_labels) in enumerate(zip(sequences, labels, strict=True)):
            if len(tokens) != len(its_labels) or len(tokens) == 0:
                raise ValueError(
                    f"sequence {i} has {len(tokens)} tokens and {len(its_labels)} labels; "
                    "expected as many, and at least one"
                )
            lines = []
            if weights is not None:
                weight = _number(weights[i], f"sequence {i}: its weight")
                if float(weight) < 0:
                    raise ValueError(f"sequence {i}: found the weight {weight}; expected 0 or more")
                lines.append(f"@weight:{weight}\n")
            for t, (token, label) in enumerate(zip(tokens, its_labels, strict=True)):
                try:
                    fields = [label_text(label)]
                    fields += filter(None, (attribute_text(*pair) for pair in _attributes(token)))
                    lines.append("\t".join(fields) + "\n")
                except (TypeError, ValueError) as error:
                    raise type(error)(f"sequence {i}, token {t}: {error}") from None
            lines.append("\n")
            file.writelines(lines)
