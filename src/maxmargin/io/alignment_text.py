"""Pairwise alignments as text for people, and as FASTA with gaps for programs.

The text form is that of EMBOSS's programs (``pair``): a head with the counts, then blocks of sixty
columns, each of three lines. Between the rows stands ``|`` where the letters are the same, ``:``
where the matrix gives their pair a positive score, ``.`` at any other pair, and nothing at a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.io.aligned_pairs import AlignedPair
from maxmargin.io.alignment_forms import GAP, pairs_to_rows
from maxmargin.io.fasta import write_fasta
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import printable, quoted

__all__ = ["alignment_text", "write_alignment_texts", "write_gapped_fasta"]

WIDTH = 60  # columns of a block
_NAME = 13  # characters of a name before a row
_RULE = "#=======================================\n"


def _rows(pair: AlignedPair, local: bool) -> tuple[str, str, int, int]:
    """Return the two rows, and the positions before their first letters."""
    if pair.alignment is None:
        raise ValueError(
            f"the pair {quoted(pair.name1)}, {quoted(pair.name2)} is not aligned; expected an "
            "alignment"
        )
    if not local:
        return *pairs_to_rows(pair.alignment, pair.sequence1, pair.sequence2), 0, 0
    if len(pair.alignment) == 0:
        return "", "", 0, 0
    (first1, first2), (last1, last2) = pair.alignment[0].tolist(), pair.alignment[-1].tolist()
    rows = pairs_to_rows(
        pair.alignment - pair.alignment[0],
        pair.sequence1[first1 : last1 + 1],
        pair.sequence2[first2 : last2 + 1],
    )
    return *rows, first1, first2


def _positive_pairs(substitution: tuple[str, ArrayLike] | None) -> set[tuple[str, str]]:
    if substitution is None:
        return set()
    alphabet, matrix = [c.upper() for c in substitution[0]], np.asarray(substitution[1])
    if matrix.shape != (len(alphabet), len(alphabet)):
        raise ValueError(
            f"found a matrix of shape {matrix.shape} for an alphabet of {len(alphabet)} letters; "
            "expected a row and a column for each letter"
        )
    return {(alphabet[i], alphabet[j]) for i, j in np.argwhere(matrix > 0)}


def alignment_text(
    pair: AlignedPair,
    *,
    substitution: tuple[str, ArrayLike] | None = None,
    score: float | None = None,
    local: bool = False,
    width: int = WIDTH,
) -> str:
    """Return an alignment as text.

    Parameters
    ----------
    pair : AlignedPair
        Two sequences with their alignment.
    substitution : (alphabet, matrix), optional
        Which pairs of letters are similar: those with a positive entry. Without it, none but the
        identical ones are.
    score : float, optional
        The alignment's score, for the head.
    local : bool, default=False
        Whether to leave out what stands before the first match and after the last one.
    width : int, default=60
        Columns a block.

    Returns
    -------
    str
        A head and blocks, which end with a blank line. Upper and lower case count as the same
        letter.
    """
    if width < 1:
        raise ValueError(f"width is {width}; expected at least 1")
    similar = _positive_pairs(substitution)
    row1, row2, at1, at2 = _rows(pair, local)
    marks = "".join(_mark(a.upper(), b.upper(), similar) for a, b in zip(row1, row2, strict=True))
    names = [printable(pair.name1) or "sequence1", printable(pair.name2) or "sequence2"]
    parts = [_RULE, "#\n# Aligned_sequences: 2\n"]
    parts += [f"# {k}: {name}\n" for k, name in enumerate(names, 1)]
    parts.append(f"#\n# Length: {len(marks)}\n")
    n_same = marks.count("|")
    for what, count in (
        ("Identity:", n_same),
        ("Similarity:", n_same + marks.count(":")),
        ("Gaps:", marks.count(" ")),
    ):
        share = 100 * count / len(marks) if marks else 0.0
        parts.append(f"# {what:<14}{f'{count}/{len(marks)}':>9} ({share:4.1f}%)\n")
    if score is not None:
        parts.append(f"# Score: {score:g}\n")
    parts.append(f"#\n{_RULE}\n")
    for begin in range(0, len(marks), width):
        block1, block2 = row1[begin : begin + width], row2[begin : begin + width]
        end1, end2 = at1 + len(block1) - block1.count(GAP), at2 + len(block2) - block2.count(GAP)
        parts.append(_row(names[0], at1, end1, block1))
        parts.append(f"{'':{_NAME + 8}}{marks[begin : begin + width]}".rstrip() + "\n")
        parts.append(_row(names[1], at2, end2, block2) + "\n")
        at1, at2 = end1, end2
    return "".join(parts)


def _mark(a: str, b: str, similar: set[tuple[str, str]]) -> str:
    if GAP in (a, b):
        return " "
    return "|" if a == b else ":" if (a, b) in similar else "."


def _row(name: str, before: int, end: int, block: str) -> str:
    """Return a line: name, number of the first letter, letters, number of the last letter."""
    return f"{name[:_NAME]:<{_NAME}} {min(before + 1, end):>6} {block} {end:>6}\n"


def write_alignment_texts(
    out: PathOrFile,
    pairs: Sequence[AlignedPair],
    *,
    substitution: tuple[str, ArrayLike] | None = None,
    scores: Sequence[float] | None = None,
    local: bool = False,
) -> None:
    """Write alignments as text, one after the other.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    pairs : list of AlignedPair
        With alignments.
    substitution, local
        As for `alignment_text`.
    scores : list of float, optional
        The score of each alignment.
    """
    given: Sequence[float | None] = [None] * len(pairs) if scores is None else scores
    texts = [
        alignment_text(pair, substitution=substitution, score=score, local=local)
        for pair, score in zip(pairs, given, strict=True)
    ]
    with open_for_writing(out) as file:
        file.write("\n".join(texts).encode("utf-8"))


def write_gapped_fasta(
    out: PathOrFile, pairs: Iterable[AlignedPair], *, local: bool = False
) -> None:
    """Write alignments as FASTA with gaps: two sequences of one length for each.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    pairs : iterable of AlignedPair
        With alignments; nameless sequences are called ``pair1_1``, ``pair1_2``, ``pair2_1``, ...
    local : bool, default=False
        Whether to leave out what stands before the first match and after the last one.
    """
    records = []
    for i, pair in enumerate(pairs, 1):
        row1, row2, _, _ = _rows(pair, local)
        records += [(pair.name1 or f"pair{i}_1", row1), (pair.name2 or f"pair{i}_2", row2)]
    write_fasta(out, records, width=WIDTH)
