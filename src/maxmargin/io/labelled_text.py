"""Documents with a label: a line for each, ``label TAB text``.

This is the form in which text classification data is commonly given away. Rules:

- The label is what stands before the first separator, without blanks around it; it is not empty.
  It may hold blanks inside, and slashes: ``rec/sport/hockey``.
- The text is all that follows the first separator, further separators included. It may be empty.
- Blank lines (nothing but white space) are skipped.
- Without labels (``truths=False``) a line with a separator still has a column of labels in front,
  which is ignored, so that the same file can be predicted and scored; a line without a separator
  is all text.
"""

from __future__ import annotations

from collections.abc import Iterable

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.lines import BOM, read_lines
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = ["read_labelled_text", "write_labelled_text"]


def _check_separator(separator: str) -> str:
    if not isinstance(separator, str) or not separator or "\n" in separator or "\r" in separator:
        raise ValueError(
            f"separator is {quoted(separator)}; expected at least one character, "
            "and no end of line"
        )
    return separator


def read_labelled_text(
    path: PathOrFile,
    truths: bool = True,
    separator: str = "\t",
    *,
    max_inflated: int | None = None,
) -> tuple[list[str], list[str] | None]:
    r"""Read documents and their labels.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. The text is UTF-8; lines may end with CR LF.
    truths : bool, default=True
        Whether every line must have a label. Otherwise labels are ignored where there are any: the
        text is what follows the first separator, or the whole line if there is none.
    separator : str, default="\t"
        What stands between label and text.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    texts : list of str
        The documents.
    labels : list of str or None
        Their labels; None without ``truths``.

    Raises
    ------
    FileFormatError
        If a line has no separator or an empty label, if the text is not UTF-8, or if there is
        nothing in the file. The message names file and line.
    OSError
        If the file cannot be read.
    """
    _check_separator(separator)
    lines, source = read_lines(path, max_inflated=max_inflated)
    texts: list[str] = []
    labels: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        label, found, text = line.partition(separator)
        if not truths:
            texts.append(text if found else line)
            continue
        label = label.strip()
        if not found:
            raise FileFormatError(
                f"{source}: line {number}: found no separator {quoted(separator)} in "
                f"{quoted(line)}; expected a label, the separator and a text"
            )
        if not label:
            raise FileFormatError(
                f"{source}: line {number}: found no label before the separator "
                f"{quoted(separator)}; expected one"
            )
        labels.append(label)
        texts.append(text)
    if not texts:
        raise EmptyFileError(f"{source}: holds no documents; expected one a line")
    return texts, labels if truths else None


def write_labelled_text(
    out: PathOrFile, labels: Iterable[str], texts: Iterable[str], separator: str = "\t"
) -> None:
    r"""Write documents with their labels, so that `read_labelled_text` gives them back.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    labels : iterable of str
        A label for each document.
    texts : iterable of str
        The documents.
    separator : str, default="\t"
        What stands between label and text.

    Raises
    ------
    ValueError
        If a label or a text cannot be written as a part of one line, or if there are not as many
        labels as texts.
    """
    _check_separator(separator)
    lines = []
    for i, (label, text) in enumerate(zip(labels, texts, strict=True)):
        if (
            not label
            or label.strip() != label
            or label.startswith(BOM)
            or (label + separator).find(separator) != len(label)
            or "\n" in label
        ):
            raise ValueError(
                f"document {i}: found the label {quoted(label)}; expected one that is not empty, "
                f"without blanks around it, without {quoted(separator)} and without an end of line"
            )
        if "\n" in text or text.endswith("\r"):
            raise ValueError(
                f"document {i}: found an end of line in the text; expected a text on one line"
            )
        lines.append(f"{label}{separator}{text}\n")
    with open_for_writing(out) as file:
        file.write("".join(lines).encode("utf-8"))
