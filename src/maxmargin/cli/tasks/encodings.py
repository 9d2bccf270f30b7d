"""Files of tasks whose text is not UTF-8: read into memory as UTF-8, and written back."""

from __future__ import annotations

from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["in_utf8", "remembered_encoding", "written_as"]


class _Text(BytesIO):
    """The content of a file in UTF-8; messages have the name of the file."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name: str = name

    def __str__(self) -> str:
        return self.name


def in_utf8(path: str, encoding: str | None) -> Any:
    """Return what a task reads in the place of a file.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    encoding : str or None
        Of its text. None: UTF-8.

    Returns
    -------
    str or binary file
        The path, or its content in UTF-8.
    """
    if encoding in (None, "utf-8"):
        return path
    from maxmargin.io.compression import plain_name
    from maxmargin.io.text import name_of, read_bytes

    # It is not compressed any more, whatever its name says.
    return _Text(read_bytes(path, encoding=encoding), plain_name(name_of(path)))


def remembered_encoding(reading: dict[str, Any]) -> str | None:
    """Return the encoding that a model remembers of its training file.

    Parameters
    ----------
    reading : dict
        Out of a model file, so that nothing of it is trusted.

    Returns
    -------
    str or None
        None: UTF-8.

    Raises
    ------
    ModelFormatError
        If there is no such encoding.
    """
    from maxmargin.errors import ModelFormatError
    from maxmargin.io.text import check_encoding
    from maxmargin.printable import quoted

    found = reading.get("encoding")
    if found is None:
        return None
    try:
        return check_encoding(found)
    except (ValueError, TypeError):
        raise ModelFormatError(f"names the encoding {quoted(found)}, which is none") from None


def written_as(
    encoding: str | None, out: IO[bytes], write: Callable[[IO[bytes]], None], model: str
) -> None:
    """Let a task write its predictions, in the encoding of what it read.

    Parameters
    ----------
    encoding : str or None
        None: UTF-8, as tasks write.
    out : binary file
        Where to.
    write : callable
        Writes to a binary file that it is given.
    model : str
        Where labels come from, for messages.

    Raises
    ------
    ValueError
        If something cannot be written in this encoding.
    """
    if encoding in (None, "utf-8"):
        write(out)
        return
    assert encoding is not None
    text = BytesIO()
    write(text)
    try:
        out.write(text.getvalue().decode().encode(encoding))
    except UnicodeEncodeError as error:
        from maxmargin.printable import quoted

        found = quoted(error.object[error.start : error.end])
        raise ValueError(
            f"{model}: predicts {found}, which cannot be written in {encoding}; expected "
            "--encoding utf-8, and a file in that"
        ) from None
