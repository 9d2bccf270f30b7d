"""Column files: a token a line, columns between tabs or spaces, blank lines between sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin._native import Columns
from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.features.columns import ColumnTable
from maxmargin.io.text import name_of, read_bytes
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.io.text import PathOrFile

__all__ = ["column_texts", "parse_columns", "read_columns"]


def read_columns(
    path: PathOrFile,
    *,
    separator: str = "auto",
    comment: str | None = None,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> ColumnTable:
    """Read a column file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; compressed files are recognised. Lines may end with CR LF.
    separator : {"auto", "tab", "space"}
        What stands between columns. "auto": tabs if there is one in the first token's line, else
        runs of blanks.
    comment : str or None
        Lines that begin with this are skipped. None: every line that is not blank is a token.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times its own size, and at least
        256 MB.
    encoding : str or None
        Of the text; None: UTF-8.

    Returns
    -------
    ColumnTable
        The columns of all tokens.

    Raises
    ------
    FileFormatError
        If a line has another number of columns than the first, if the text is not UTF-8, or if
        there is nothing in the file. The message names file and line.
    OSError
        If the file cannot be read.
    """
    data = read_bytes(path, max_inflated=max_inflated, encoding=encoding)
    return parse_columns(data, name_of(path), separator=separator, comment=comment)


def parse_columns(
    data: bytes,
    source: str,
    *,
    separator: str = "auto",
    comment: str | None = None,
    n_columns: int = 0,
    first_line: int = 1,
) -> ColumnTable:
    """Read a column file, or a part of one, from memory.

    Parameters
    ----------
    data : bytes
        The text.
    source : str
        What messages call it.
    separator, comment
        As for `read_columns`.
    n_columns : int
        How many columns there must be; 0: as many as in the first line.
    first_line : int
        The number of the first line, for messages.

    Returns
    -------
    ColumnTable
        The columns of all tokens.
    """
    if separator not in ("auto", "tab", "space"):
        raise ValueError(f'separator is {quoted(separator)}; expected "auto", "tab" or "space"')
    try:
        (comment or "").encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"comment is {quoted(comment)}; expected text that UTF-8 can hold"
        ) from None
    if b"\n" not in data and b"\r" in data.rstrip(b"\r"):
        raise FileFormatError(
            f"{source}: its lines end with carriage returns alone (\\r), as those of old Macs do; "
            "expected \\n or \\r\\n"
        )
    try:
        native = Columns.parse(data, separator, comment or "", n_columns, first_line)
    except ValueError as error:
        raise FileFormatError(f"{source}: {error}") from None
    if native.n_sequences == 0:
        raise EmptyFileError(f"{source}: holds no tokens; expected one a line")
    return ColumnTable(native, source)


def column_texts(table: ColumnTable) -> Iterator[str]:
    """Give the text of a column file, sequence by sequence.

    Parameters
    ----------
    table : ColumnTable
        What is written.

    Yields
    ------
    str
        The lines of a sequence, with tabs between columns, and the blank line behind them.
    """
    which = list(range(table.n_columns))
    for i in range(table.n_sequences):
        rows = ["\t".join(row) for row in table.native.rows(i, which)]
        yield "\n".join([*rows, "", ""])
