"""Files of parse trees in brackets, as the Penn Treebank writes them.

    (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))

A tree may go over several lines, and a line may have several trees. The outer bracket without a
label that the Penn Treebank has around each tree is left away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.text import name_of, open_for_writing, read_bytes
from maxmargin.trees import MAX_DEPTH, Tree, parse_trees

if TYPE_CHECKING:
    from maxmargin.io.text import PathOrFile

__all__ = ["decoded", "read_trees", "write_trees"]

_BOM = b"\xef\xbb\xbf"


def decoded(data: bytes, source: str) -> str:
    """Return bytes as text.

    Parameters
    ----------
    data : bytes
        Text in UTF-8, with a byte-order mark or without.
    source : str
        Name of the file, for messages.

    Raises
    ------
    FileFormatError
        If that is not UTF-8; the message names the line.
    """
    data = data.removeprefix(_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError(
            f"{source}: line {line}: found bytes that are not UTF-8; expected text in UTF-8"
        ) from None


def read_trees(
    path: PathOrFile, *, max_depth: int = MAX_DEPTH, max_inflated: int | None = None
) -> list[Tree]:
    """Read a file of trees.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. The text is UTF-8.
    max_depth : int
        Most brackets that may be open at once.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    list of Tree
        At least one.

    Raises
    ------
    FileFormatError
        If that is not a file of trees; the message names file, line and column.
    OSError
        If the file cannot be read.
    """
    name = name_of(path)
    text = decoded(read_bytes(path, max_inflated=max_inflated), name)
    trees = list(parse_trees(text, name, max_depth=max_depth))
    if not trees:
        raise EmptyFileError(f"{name}: holds no trees; expected some, as (S (NP (NNS Dogs)) ...)")
    return trees


def write_trees(path: PathOrFile, trees: Iterable[Tree]) -> None:
    """Write a file of trees, one on each line.

    Parameters
    ----------
    path : path or binary file
        "-" is standard output. A name that ends with ``.gz`` is compressed.
    trees : iterable of Tree
        What is written.
    """
    with open_for_writing(path, text=True) as file:
        for tree in trees:
            file.write(f"{tree}\n")
