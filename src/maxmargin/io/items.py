"""Item files: sequences whose features are already expanded."""

from __future__ import annotations

from maxmargin import _native
from maxmargin._native import Vocabulary
from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.items import Items
from maxmargin.io.text import PathOrFile, name_of, read_bytes

__all__ = ["Items", "parse_items", "read_items"]


def read_items(
    path: PathOrFile,
    file_format: str,
    vocabulary: Vocabulary | None,
    *,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> Items:
    """Read an item file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; compressed files are recognised.
    file_format : {"crfsuite", "svmhmm"}
    vocabulary : Vocabulary or None
        The features that exist; others are left out. With None, all features of the file exist.
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
    data = read_bytes(path, max_inflated=max_inflated, encoding=encoding)
    return parse_items(data, name_of(path), file_format, vocabulary)


def parse_items(
    data: bytes, source: str, file_format: str, vocabulary: Vocabulary | None = None
) -> Items:
    """Read an item file from memory.

    Parameters
    ----------
    data : bytes
        The text.
    source : str
        What messages call it.
    file_format, vocabulary
        As for `read_items`.

    Returns
    -------
    Items
    """
    grow = vocabulary is None
    names = Vocabulary() if vocabulary is None else vocabulary
    try:
        offsets, indptr, indices, values, codes, label_names, weight = _native.parse_items(
            data, file_format, names, grow, True
        )
    except ValueError as error:
        raise FileFormatError(f"{source}: {error}") from None
    if len(offsets) < 2:
        raise EmptyFileError(f"{source}: holds no sequences")
    assert codes is not None
    batch = EncodedBatch(offsets, len(names), indptr, indices, values)
    return Items(batch, codes, label_names, names, weight)
