"""Lines of UTF-8 text: what the readers that are written in Python share."""

from __future__ import annotations

from maxmargin.errors import FileFormatError
from maxmargin.io.text import PathOrFile, name_of, read_bytes

__all__ = ["BOM", "decoded", "read_lines"]

BOM = "\ufeff"


def decoded(data: bytes, source: str, first_line: int = 1) -> str:
    """Decode the content of a text file, whose every byte is kept.

    Parameters
    ----------
    data : bytes
        The file.
    source : str
        Name of the file, for messages.
    first_line : int
        The number of the first line, for messages.

    Returns
    -------
    str
        The text, with a byte order mark and the carriage returns of the file.

    Raises
    ------
    FileFormatError
        If the file is not UTF-8; the message names the line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        raise FileFormatError(
            f"{source}: line {line}: found bytes that are not UTF-8; expected text in UTF-8"
        ) from None


def read_lines(path: PathOrFile, *, max_inflated: int | None = None) -> tuple[list[str], str]:
    """Read the lines of a text file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    lines : list of str
        Without their ends (LF or CR LF) and without a byte order mark.
    source : str
        Name of the file, for messages.

    Raises
    ------
    FileFormatError
        If the file is not UTF-8; the message names the line.
    """
    source = name_of(path)
    text = decoded(read_bytes(path, max_inflated=max_inflated), source).removeprefix(BOM)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # Not splitlines, which would also split at characters that belong to a line's text.
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return lines, source
