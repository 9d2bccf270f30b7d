"""CoNLL-U files, turned into plain column text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.lines import decoded
from maxmargin.printable import quoted

__all__ = ["COLUMNS", "check_column", "conllu_to_columns"]

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_FEATS = COLUMNS.index("feats")
# Of a multiword token (3-4) or of an empty node (3.1).
_NO_TOKEN = re.compile(rb"[0-9]+(?:-[0-9]+|\.[0-9]+)\Z")
_BOM = b"\xef\xbb\xbf"


class _BadCellError(Exception):
    """A cell that cannot be used."""


def _single_feature(name: bytes) -> Callable[[bytes], bytes]:
    """Give the function that finds the value of a feature in a FEATS cell."""
    known: dict[bytes, bytes] = {b"_": b"_"}  # The same few hundred cells come again and again.
    prefix = name + b"="

    def find(cell: bytes) -> bytes:
        value = known.get(cell)
        if value is None:
            value = b"_"
            for pair in cell.split(b"|"):
                if b"=" not in pair:
                    raise _BadCellError(
                        f"found {quoted(cell.decode())} in column feats; expected Name=Value pairs "
                        "with | between them, or _"
                    )
                if pair.startswith(prefix):
                    value = pair[len(prefix) :] or b"_"
            known[cell] = value
        return value

    return find


def _choice(column: str) -> tuple[int, Callable[[bytes], bytes] | None]:
    """Where a column is found, and what is done to its cells."""
    if column.startswith("feats.") and len(column) > len("feats."):
        return _FEATS, _single_feature(column.removeprefix("feats.").encode())
    if column not in COLUMNS:
        raise ValueError(
            f"found the column {quoted(column)}; expected one of {', '.join(COLUMNS)} or a single "
            "feature such as feats.Case"
        )
    return COLUMNS.index(column), None


def check_column(column: str) -> None:
    """Refuse what is no column of CoNLL-U.

    Parameters
    ----------
    column : str
        A name, as `conllu_to_columns` takes it.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    _choice(column)


def conllu_to_columns(
    data: bytes, columns: Sequence[str], source: str, first_line: int = 1
) -> bytes:
    """Take some columns of a CoNLL-U file.

    Comments, multiword tokens (ids such as 3-4) and empty nodes (3.1) are left out.

    Parameters
    ----------
    data : bytes
        The file, in UTF-8.
    columns : list of str
        Any of id, form, lemma, upos, xpos, feats, head, deprel, deps, misc, or a single
        morphological feature such as ``feats.Case``, which is ``_`` where a token has none. By
        convention the label comes last.
    source : str
        Name of the file, for messages.
    first_line : int
        The number of the first line, where the data are a piece of the file; for messages.

    Returns
    -------
    bytes
        A line for each token, with tabs between the columns, in the order asked for, and a blank
        line after each sentence. Cells keep their spaces.

    Raises
    ------
    ValueError
        If a column does not exist.
    FileFormatError
        If the file is not CoNLL-U; the message names the line.
    """
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns is {columns!r}; expected a list of at least one name")
    choices = [_choice(column) for column in columns]
    data = data.removeprefix(_BOM)
    decoded(data, source, first_line)  # or an error that names the line
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    out: list[bytes] = []
    between = True  # whether the next token begins a sentence
    for number, text in enumerate(data.split(b"\n"), first_line):
        if text.startswith(b"#"):
            continue
        cells = text.split(b"\t")
        if len(cells) != len(COLUMNS):
            if text.strip():
                raise FileFormatError(
                    f"{source}: line {number}: found {len(cells)} columns; expected "
                    f"{len(COLUMNS)}, with tabs between them"
                )
            if not between:
                out.append(b"")
            between = True
            continue
        if not cells[0].isdigit():
            if _NO_TOKEN.match(cells[0]):
                continue
            raise FileFormatError(
                f"{source}: line {number}: found the id {quoted(cells[0].decode())}; expected a "
                "number, a range such as 3-4 or an empty node such as 3.1"
            )
        if b"" in cells:
            raise FileFormatError(
                f"{source}: line {number}: found nothing in column "
                f"{COLUMNS[cells.index(b'')]}; expected a value, or _"
            )
        try:
            chosen = [cells[k] if change is None else change(cells[k]) for k, change in choices]
        except _BadCellError as error:
            raise FileFormatError(f"{source}: line {number}: {error}") from None
        out.append(b"\t".join(chosen))
        between = False
    if not out:
        raise EmptyFileError(f"{source}: holds no sequences")
    out.append(b"" if between else b"\n")
    return b"\n".join(out)
