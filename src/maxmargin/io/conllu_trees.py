"""Dependency trees in CoNLL-U files: read with all that stands around them, and written back.

A sentence keeps its lines as they are in the file: comments, multiword tokens (``3-4``), empty
nodes (``3.1``), all columns and the blank lines behind it. `write_dependencies` replaces the cells
HEAD and DEPREL of the words and nothing else, so that what a program does not understand survives
it byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.conllu import COLUMNS
from maxmargin.io.lines import BOM, decoded
from maxmargin.io.text import PathOrFile, name_of, open_for_writing, read_bytes
from maxmargin.printable import quoted

__all__ = ["DependencySentence", "parse_dependencies", "read_dependencies", "write_dependencies"]

_HEAD = COLUMNS.index("head")
_DEPREL = COLUMNS.index("deprel")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SHOWN = 8  # words of a cycle that a message names


@dataclass
class DependencySentence:
    """A sentence of a CoNLL-U file.

    Parameters
    ----------
    forms, lemmas, upos, xpos, feats : list of str
        The cells of these columns, a cell for each word.
    heads : int32 array of shape (n_words,) or None
        The number of each word's head, counted from 1; 0: the word is a root. None if the file was
        read without them.
    deprels : list of str or None
        The relation of each word to its head.
    lines : list of str
        The lines of the file from the end of the sentence before to the end of this one, each with
        its end of line.
    words : list of int
        Where the words' lines are in ``lines``.
    first_line : int
        The number in the file of the first of ``lines``.
    """

    forms: list[str]
    lemmas: list[str] = field(repr=False)
    upos: list[str]
    xpos: list[str] = field(repr=False)
    feats: list[str] = field(repr=False)
    heads: NDArray[np.int32] | None
    deprels: list[str] | None
    lines: list[str] = field(repr=False)
    words: list[int] = field(repr=False)
    first_line: int

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.forms)

    def line_of(self, word: int) -> int:
        """Return the number in the file of the line of a word, which is counted from 0."""
        return self.first_line + self.words[word]


def read_dependencies(
    path: PathOrFile,
    *,
    heads: bool = True,
    one_root: bool = False,
    max_inflated: int | None = None,
) -> list[DependencySentence]:
    """Read the sentences of a CoNLL-U file.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. The text is UTF-8; lines may end with CR LF.
    heads : bool, default=True
        Whether to read heads and relations, which then have to be trees. Otherwise these two
        columns may hold anything.
    one_root : bool, default=False
        Whether a sentence may have only one word whose head is 0. It always needs one.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    list of DependencySentence

    Raises
    ------
    FileFormatError
        If the file is not CoNLL-U or the heads are no trees; the message names file and line.
    OSError
        If the file cannot be read.
    """
    data = read_bytes(path, max_inflated=max_inflated)
    return parse_dependencies(data, name_of(path), heads=heads, one_root=one_root)


def parse_dependencies(
    data: bytes, source: str, *, heads: bool = True, one_root: bool = False
) -> list[DependencySentence]:
    """Read the sentences of a CoNLL-U file from memory.

    Parameters
    ----------
    data : bytes
        The file.
    source : str
        Name of the file, for messages.
    heads, one_root
        As for `read_dependencies`.

    Returns
    -------
    list of DependencySentence
    """
    text = decoded(data, source)
    lines = text.split("\n")
    raw = [f"{line}\n" for line in lines]
    if lines[-1]:
        raw[-1] = lines[-1]
    else:  # what follows the last end of line is no line
        del lines[-1], raw[-1]
    if lines and lines[0].startswith(BOM):
        lines[0] = lines[0].removeprefix(BOM)
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    found: list[DependencySentence] = []
    make = partial(_sentence, with_heads=heads, source=source)
    begin = 0  # of the sentence that is being read
    rows: list[list[str]] = []
    words: list[int] = []
    last_of_range = 0  # the last word that a multiword token announced
    for k, line in enumerate(lines):
        cells = line.split("\t")
        if len(cells) == len(COLUMNS) and not line.startswith("#"):
            if cells[0] == str(len(rows) + 1) and "" not in cells:
                rows.append(cells)
                words.append(k - begin)
            else:
                last_of_range = max(
                    last_of_range, _other_line(cells, len(rows), f"{source}: line {k + 1}")
                )
        elif line.startswith("#"):
            continue
        elif line.strip():
            raise FileFormatError(
                f"{source}: line {k + 1}: found {len(cells)} columns; expected {len(COLUMNS)}, "
                "with tabs between them"
            )
        elif last_of_range > len(rows):
            raise _cut_short(source, k, last_of_range, len(rows))
        elif rows:
            found.append(make(rows, raw[begin : k + 1], words, begin + 1))
            begin, rows, words, last_of_range = k + 1, [], [], 0
    if last_of_range > len(rows):
        raise _cut_short(source, len(lines) - 1, last_of_range, len(rows))
    if rows:
        found.append(make(rows, raw[begin:], words, begin + 1))
    elif found:  # comments or blank lines at the end
        found[-1].lines += raw[begin:]
    if not found:
        raise EmptyFileError(f"{source}: holds no sentences")
    if heads:
        _check_trees(found, source, one_root)
    return found


def _other_line(cells: list[str], n_words: int, place: str) -> int:
    """Check a line that is not the next word; return the last word of a multiword token, or 0."""
    name = cells[0]
    if several := _RANGE.fullmatch(name):
        first, last = int(several[1]), int(several[2])
        if first == n_words + 1 and last >= first:
            return last
        raise FileFormatError(
            f"{place}: found the multiword token {name} after {n_words} words; expected one that "
            f"begins with word {n_words + 1} and does not end before it"
        )
    if node := _EMPTY_NODE.fullmatch(name):
        if int(node[1]) == n_words:
            return 0
        raise FileFormatError(
            f"{place}: found the empty node {name} after {n_words} words; expected {n_words}.1 "
            "or the like"
        )
    if not _NUMBER.fullmatch(name):
        raise FileFormatError(
            f"{place}: found the id {quoted(name)}; expected a number, a range such as 3-4 or an "
            "empty node such as 3.1"
        )
    if name != str(n_words + 1):
        raise FileFormatError(
            f"{place}: found the id {name} after {n_words} words of the sentence; expected "
            f"{n_words + 1}"
        )
    raise FileFormatError(
        f"{place}: found nothing in column {COLUMNS[cells.index('')]}; expected a value, or _"
    )


def _cut_short(source: str, at: int, last: int, n_words: int) -> FileFormatError:
    return FileFormatError(
        f"{source}: line {at + 1}: found the end of a sentence after {n_words} words; expected "
        f"word {last}, which a multiword token announced"
    )


def _sentence(
    rows: list[list[str]],
    lines: list[str],
    words: list[int],
    first_line: int,
    *,
    with_heads: bool,
    source: str,
) -> DependencySentence:
    _, forms, lemmas, upos, xpos, feats, head, deprel, _, _ = map(list, zip(*rows, strict=True))
    heads = None
    if with_heads:
        for k, cell in enumerate(head):
            if not _NUMBER.fullmatch(cell):
                raise FileFormatError(
                    f"{source}: line {first_line + words[k]}: found the head {quoted(cell)}; "
                    f"expected a number from 0 to {len(rows)}"
                )
        heads = np.array([int(cell) for cell in head], dtype=np.int32)
    return DependencySentence(
        forms,
        lemmas,
        upos,
        xpos,
        feats,
        heads,
        deprel if with_heads else None,
        lines,
        words,
        first_line,
    )


def _check_trees(sentences: list[DependencySentence], source: str, one_root: bool) -> None:
    """Check that the heads of all sentences are trees, all at once.

    The words of the file are nodes 1, 2, ...; node 0 stands for all roots. After k rounds of
    ``up = up[up]`` a node points to its ancestor 2**k steps above, or to 0 if it has none.
    """
    lengths = np.array([len(sentence) for sentence in sentences])
    begins = np.concatenate([[0], np.cumsum(lengths)])
    heads = np.concatenate([sentence.heads for sentence in sentences])
    sentence_of = np.repeat(np.arange(len(sentences)), lengths)

    def place(at: int) -> str:
        sentence = sentences[sentence_of[at]]
        return f"{source}: line {sentence.line_of(at - int(begins[sentence_of[at]]))}"

    far = np.flatnonzero(heads > lengths[sentence_of])
    if far.size:
        at = int(far[0])
        raise FileFormatError(
            f"{place(at)}: found the head {heads[at]}; expected a number from 0 to "
            f"{lengths[sentence_of[at]]}, the number of words of the sentence"
        )
    roots = np.flatnonzero(heads == 0)
    n_roots = np.bincount(sentence_of[roots], minlength=len(sentences))
    without = np.flatnonzero(n_roots == 0)
    if without.size:
        at = int(begins[without[0]])
        raise FileFormatError(
            f"{place(at)}: found no root in the sentence of {lengths[without[0]]} words that "
            "begins here; expected a word whose head is 0"
        )
    several = np.flatnonzero(n_roots > 1)
    if one_root and several.size:
        first, second = roots[sentence_of[roots] == several[0]][:2]
        begin = begins[several[0]]
        raise FileFormatError(
            f"{place(int(second))}: found a second root, word {second - begin + 1}, beside word "
            f"{first - begin + 1}; expected one word whose head is 0"
        )
    up = np.zeros(len(heads) + 1, dtype=np.int64)
    up[1:] = np.where(heads == 0, 0, heads + begins[sentence_of])
    parent = up
    for _ in range(int(lengths.max()).bit_length()):
        up = up[up]
    endless = np.flatnonzero(up[1:])
    if endless.size:
        at = int(endless[0])
        begin = int(begins[sentence_of[at]])
        node = int(up[at + 1])  # so far above that it is on the cycle itself
        cycle = [node]
        while parent[cycle[-1]] != node:
            cycle.append(int(parent[cycle[-1]]))
        lowest = cycle.index(min(cycle))
        cycle = cycle[lowest:] + cycle[:lowest]
        sentence = sentences[sentence_of[at]]
        names = [
            f"{node - begin} {quoted(sentence.forms[node - begin - 1], 20)}"
            for node in [*cycle[:_SHOWN], cycle[0]]
        ]
        if len(cycle) > _SHOWN:
            names.insert(-1, "...")
        raise FileFormatError(
            f"{place(cycle[0] - 1)}: found a cycle in the heads: {' -> '.join(names)}; "
            "expected a tree"
        )


def write_dependencies(
    out: PathOrFile,
    sentences: Sequence[DependencySentence],
    heads: Sequence[ArrayLike],
    deprels: Sequence[Sequence[str]] | None = None,
) -> None:
    """Write sentences with other heads and relations.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    sentences : list of DependencySentence
        From `read_dependencies`. All their lines and cells but these two are written as they were
        read.
    heads : list of arrays of int
        The heads of each sentence: numbers counted from 1, or 0 for a root.
    deprels : list of lists of str, optional
        The relations of each sentence. Without them ``_`` is written: relations of the input do not
        belong to other heads.

    Raises
    ------
    ValueError
        If there is not a head (a relation) for each word, if a head is out of range, or if a
        relation cannot be a cell.
    """
    if len(heads) != len(sentences) or (deprels is not None and len(deprels) != len(sentences)):
        raise ValueError(
            f"found heads of {len(heads)} sentences"
            + (f" and relations of {len(deprels)}" if deprels is not None else "")
            + f"; expected {len(sentences)}"
        )
    parts: list[str] = []
    for i, sentence in enumerate(sentences):
        n = len(sentence)
        given = np.asarray(heads[i])
        if given.shape != (n,) or given.dtype.kind not in "iu":
            raise ValueError(
                f"sentence {i}: found heads of shape {given.shape} and type {given.dtype}; "
                f"expected {n} integers"
            )
        if n and (given.min() < 0 or given.max() > n):
            wrong = int(np.flatnonzero((given < 0) | (given > n))[0])
            raise ValueError(
                f"sentence {i}: found the head {given[wrong]} of word {wrong + 1}; expected a "
                f"number from 0 to {n}"
            )
        relations = ["_"] * n if deprels is None else list(deprels[i])
        if len(relations) != n:
            raise ValueError(f"sentence {i}: found {len(relations)} relations; expected {n}")
        for relation in relations:
            if not relation or any(c in relation for c in "\t\n\r"):
                raise ValueError(
                    f"sentence {i}: found the relation {quoted(relation)}; expected text without "
                    "tabs and ends of lines"
                )
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n\n")  # the last sentence of a file that is not the last one here
        lines = list(sentence.lines)
        for at, head, relation in zip(sentence.words, given.tolist(), relations, strict=True):
            cells = lines[at].split("\t")
            cells[_HEAD], cells[_DEPREL] = str(head), relation
            lines[at] = "\t".join(cells)
        parts += lines
    with open_for_writing(out) as file:
        file.write("".join(parts).encode("utf-8"))
