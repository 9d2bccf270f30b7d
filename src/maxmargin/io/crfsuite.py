r"""CRFsuite's item files.

A line is a token: its label and its attributes, with tabs between them. A blank line ends a
sequence. An attribute may have a value, ``name:2.5``; a colon within a name is written ``\:``, a
backslash ``\\``. A sequence may have a weight: a line ``@weight:2.5`` at its beginning. Values are
numbers between -1e12 and 1e12, weights from 0 to 1e12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin._native import Vocabulary
from maxmargin.io.items import Items, read_items
from maxmargin.io.named_features import NamedFeatures, short_numbers, token_fields
from maxmargin.io.text import PathOrFile
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["crfsuite_texts", "read_crfsuite"]


def read_crfsuite(
    path: PathOrFile,
    vocabulary: Vocabulary | None = None,
    *,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> Items:
    """Read a CRFsuite item file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; compressed files are recognised.
    vocabulary : Vocabulary, optional
        The features that exist; others are left out. Without it, all features of the file exist,
        numbered as they appear.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times its own size, and at least
        256 MB.
    encoding : str or None
        Of the text; None: UTF-8.

    Returns
    -------
    Items

    Raises
    ------
    FileFormatError
        The message names file and line.
    """
    return read_items(path, "crfsuite", vocabulary, max_inflated=max_inflated, encoding=encoding)


def crfsuite_texts(features: NamedFeatures) -> Iterator[str]:
    """Give the text of a CRFsuite item file, sequence by sequence.

    Parameters
    ----------
    features : NamedFeatures
        What is written.

    Returns
    -------
    iterator of str
        The lines of each sequence and the blank line behind them.

    Raises
    ------
    ValueError
        If a label or a name cannot be written in this format; before anything is given.
    """
    labels = [_label_text(label) for label in features.labels.names]
    return _sequence_texts(features, labels, _attribute_texts(features.names))


def _sequence_texts(
    features: NamedFeatures, labels: list[str], fields: list[str]
) -> Iterator[str]:
    weights = None if features.weights is None else short_numbers(features.weights)
    for i, tokens in enumerate(token_fields(features, fields, valued=False)):
        lines = [] if weights is None else [f"@weight:{weights[i]}"]
        lines += ["\t".join([labels[code], *row]) for code, row in tokens]
        yield "\n".join([*lines, "", ""])


def _attribute_texts(names: list[str]) -> list[str]:
    """Return names as fields of a line."""
    text = "\n".join(names)
    simple = "\t" not in text and "\r" not in text and text.count("\n") == len(names) - 1
    if simple and all(names):  # all of them at once
        return text.replace("\\", "\\\\").replace(":", "\\:").split("\n")
    if not all(names):
        raise ValueError("found an attribute whose name is empty; expected a name")
    return [_field(name, "attribute") for name in names]


def _field(text: str, what: str) -> str:
    if any(c in text for c in "\t\n\r"):
        raise ValueError(
            f"found the {what} {quoted(text)}; expected one without tabs and ends of lines, which "
            "the format cannot express"
        )
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _label_text(label: str) -> str:
    if not label.strip(" ") or label.startswith("@"):
        raise ValueError(
            f"found the label {quoted(label)}; expected one that is not blank and does not begin "
            "with @, as the format demands"
        )
    return _field(label, "label")
