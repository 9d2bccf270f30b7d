"""Writing pictures to files."""

from __future__ import annotations

import os

__all__ = ["save_picture"]


def save_picture(path: str | os.PathLike[str], content: bytes, what: str = "picture") -> None:
    """Write a picture, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists.
    content : bytes
        What is in it.
    what : str
        What it is, for the message of an error.

    Raises
    ------
    OSError
        If the file cannot be written; its message and ``filename`` name it.
    """
    from maxmargin.io.text import open_for_writing

    try:
        with open_for_writing(path) as file:
            file.write(content)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot write the {what} ({error.strerror})", os.fspath(path)
        ) from error
