"""Files of sentences that are to be parsed: trees, tagged words on lines, or columns.

Four forms are recognised by the first line that is not blank:

- it begins with a bracket: trees, of which the leaves are taken;
- it has a tab: columns, a token a line, the word first and its tag second, blank lines between
  sentences;
- else a sentence a line. If tags are needed, each token is ``word_TAG`` or ``word/TAG``, cut at the
  last of these characters, the one that every token of the first line has. If not, each is a word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.brackets import decoded
from maxmargin.io.text import name_of, read_bytes
from maxmargin.printable import quoted
from maxmargin.trees import Tree, parse_trees

if TYPE_CHECKING:
    from maxmargin.io.text import PathOrFile

__all__ = ["read_sentences"]

_A_TREE = re.compile(r"\s*\(\s*(?:\(|[^\s()]+\s*\(|[^\s()]+\s+[^\s()]+\s*\))")
_SEPARATORS = "_/"

Words = list[tuple[str, str | None]]


def read_sentences(
    path: PathOrFile, *, tags: bool, max_inflated: int | None = None
) -> list[Words]:
    """Read a file of sentences.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. The text is UTF-8.
    tags : bool
        Whether every word must have a tag.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    list of list of (word, tag)
        At least one sentence; tags are None where there are none.

    Raises
    ------
    FileFormatError
        If the file is not of one of the forms; the message names the line.
    """
    name = name_of(path)
    text = decoded(read_bytes(path, max_inflated=max_inflated), name)
    if _A_TREE.match(text):
        return [list(tree.pairs()) for tree in parse_trees(text, name)]
    lines = [line.rstrip("\r") for line in text.split("\n")]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise EmptyFileError(f"{name}: holds no sentences; expected at least one")
    if "\t" in first:
        return _columns(lines, name, tags)
    return _lines(lines, first, name, tags)


def _columns(lines: list[str], name: str, tags: bool) -> list[Words]:
    found: list[Words] = [[]]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            if found[-1]:
                found.append([])
            continue
        cells = line.split("\t")
        if len(cells) < 2 and tags:
            raise FileFormatError(
                f"{name}: line {number}: found one column; expected a word, a tab and its tag"
            )
        found[-1].append(_token(name, number, cells[0], cells[1] if tags else None))
    return found if found[-1] else found[:-1]


def _lines(lines: list[str], first: str, name: str, tags: bool) -> list[Words]:
    separator = None
    if tags:
        fitting = [c for c in _SEPARATORS if all(_cut(token, c) for token in first.split())]
        if not fitting:
            bad = next(token for token in first.split() if not _cut(token, "_"))
            number = lines.index(first) + 1
            raise FileFormatError(
                f"{name}: line {number}: found {quoted(bad)}; expected trees in brackets, "
                "word_TAG or word/TAG with blanks between, or columns with tabs: word and tag"
            )
        separator = fitting[0]
    found = []
    for number, line in enumerate(lines, 1):
        words: Words = []
        for token in line.split():
            if separator is None:
                words.append(_token(name, number, token, None))
                continue
            pair = _cut(token, separator)
            if pair is None:
                raise FileFormatError(
                    f"{name}: line {number}: found {quoted(token)}; expected word{separator}TAG"
                )
            words.append(_token(name, number, *pair))
        if words:
            found.append(words)
    return found


def _cut(token: str, separator: str) -> tuple[str, str] | None:
    word, _, tag = token.rpartition(separator)
    return (word, tag) if word and tag else None


def _token(name: str, number: int, word: str, tag: str | None) -> tuple[str, str | None]:
    try:
        Tree("X" if tag is None else tag, word)
    except ValueError as error:
        raise FileFormatError(f"{name}: line {number}: {error}") from None
    return word, tag
