"""The format of a picture, given by the ending of the name of its file."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["SVG", "picture_format"]

#: What is drawn without matplotlib.
SVG = ("svg",)


def picture_format(path: str | os.PathLike[str], formats: tuple[str, ...] = SVG) -> str:
    """Return the format of a picture by the ending of its name.

    Parameters
    ----------
    path : path-like
        The file.
    formats : tuple of str
        Those that can be written.

    Returns
    -------
    str
        One of them. For a name that exists and is no regular file (a device, a directory) it is
        the first one, and writing decides whether it can be written.

    Raises
    ------
    ValueError
        If the name has another ending, or none; the message names those that will do.
    """
    name = os.fsdecode(path)
    ending = Path(name).suffix.lower().removeprefix(".")
    if ending in formats:
        return ending
    if name and Path(name).exists() and not Path(name).is_file():
        return formats[0]
    expected = ", ".join(f".{known}" for known in formats)
    which = f"{expected}, the one format that is drawn"
    if len(formats) > 1:
        which = f"one of {expected}"
    raise ValueError(f"{name} does not end with {which}")
