"""Files of pairs of sequences, aligned or not: a pair a line, columns between tabs.

The columns of a file are, in this order:

- two names (optional),
- two numbers such as TM-scores (optional, after names only),
- the two sequences, with ``-`` in the gaps (then they are aligned) or without,
- an alignment string of the letters M, 1 and 2 (optional, for sequences without gaps).

What a file holds is recognised by the number of its columns, which is the same in all lines: 2, 4
or 6 columns have no alignment string, 3, 5 or 7 have one. If a file without alignment strings has a
``-`` in any sequence, every line of it is a pair of rows of one length. Blank lines and lines that
begin with ``#`` are skipped. A file of one column is FASTA or something else, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.alignment_forms import GAP, pairs_to_string, rows_to_pairs, string_to_pairs
from maxmargin.io.lines import BOM, read_lines
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = ["AlignedPair", "read_aligned_pairs", "write_aligned_pairs"]

_MOST_COLUMNS = 7


@dataclass(eq=False)
class AlignedPair:
    """Two sequences, and perhaps how they are aligned.

    Parameters
    ----------
    name1, name2 : str
        Their names; "" if the file has none.
    sequence1, sequence2 : str
        Without gaps.
    alignment : int32 array of shape (k, 2) or None
        The matched positions, counted from 0 and ascending; None if it is not known.
    scores : (float, float) or None
        The numbers of the file: in TM-align's results, the TM-scores normalised by the length of
        sequence 1 and of sequence 2.
    line : int
        The number of the line in the file; 0 if there is none.
    """

    name1: str
    name2: str
    sequence1: str
    sequence2: str
    alignment: NDArray[np.int32] | None = None
    scores: tuple[float, float] | None = None
    line: int = 0


def read_aligned_pairs(
    path: PathOrFile, *, alignments: bool = False, max_inflated: int | None = None
) -> list[AlignedPair]:
    """Read pairs of sequences.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. Lines may end with CR LF.
    alignments : bool, default=False
        Whether pairs that are not aligned are an error. Two sequences of the same length without a
        gap and without an alignment string then are an alignment of all their positions.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    list of AlignedPair

    Raises
    ------
    FileFormatError
        If the columns are not as described above, or if an alignment does not belong to its
        sequences. The message names file and line.
    OSError
        If the file cannot be read.
    """
    lines, source = read_lines(path, max_inflated=max_inflated)
    rows = [
        (number, line.split("\t"))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]
    if not rows:
        raise EmptyFileError(f"{source}: holds no pairs; expected one a line")
    n_columns = len(rows[0][1])
    if not 2 <= n_columns <= _MOST_COLUMNS:
        raise FileFormatError(
            f"{source}: line {rows[0][0]}: found {n_columns} columns; expected 2 to "
            f"{_MOST_COLUMNS} with tabs between them: sequences, or names and sequences, and "
            "perhaps an alignment"
        )
    at = (n_columns - 2) // 2 * 2  # where the sequences are
    has_string = n_columns % 2 == 1
    gapped = alignments and not has_string
    for number, cells in rows:
        if len(cells) != n_columns:
            raise FileFormatError(
                f"{source}: line {number}: found {len(cells)} columns; expected {n_columns}, as in "
                f"line {rows[0][0]}"
            )
        if any(GAP in cell for cell in cells[at : at + 2]):
            if has_string:
                raise FileFormatError(
                    f"{source}: line {number}: found a gap in a sequence beside an alignment "
                    "string; expected sequences without gaps"
                )
            gapped = True
    return [
        _pair(cells, at, has_string=has_string, gapped=gapped, line=number, source=source)
        for number, cells in rows
    ]


def _pair(
    cells: list[str], at: int, *, has_string: bool, gapped: bool, line: int, source: str
) -> AlignedPair:
    sequence1, sequence2 = cells[at : at + 2]
    try:
        for k, sequence in enumerate((sequence1, sequence2), 1):
            _check_sequence(sequence, k)
        alignment = None
        if has_string:
            alignment = string_to_pairs(cells[at + 2].strip(), len(sequence1), len(sequence2))
        elif gapped:
            sequence1, sequence2, alignment = rows_to_pairs(sequence1, sequence2)
            if not sequence1 or not sequence2:
                raise ValueError("found a sequence of gaps only; expected letters")
        scores = None
        if at == 4:
            scores = _number(cells[2], 3), _number(cells[3], 4)
    except ValueError as error:
        raise FileFormatError(f"{source}: line {line}: {error}") from None
    name1, name2 = cells[:2] if at else ("", "")
    return AlignedPair(name1, name2, sequence1, sequence2, alignment, scores, line)


def _check_sequence(sequence: str, which: int) -> None:
    if not sequence:
        raise ValueError(f"found nothing as sequence {which}; expected letters")
    if sequence.split() != [sequence]:
        at = next(k for k, c in enumerate(sequence, 1) if c.isspace())
        raise ValueError(
            f"found a blank at position {at} of sequence {which}; expected letters only"
        )


def _number(cell: str, column: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"found {quoted(cell)} in column {column}; expected a number")
    return value


def write_aligned_pairs(out: PathOrFile, pairs: Iterable[AlignedPair]) -> None:
    """Write pairs with alignment strings, so that `read_aligned_pairs` gives them back.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    pairs : iterable of AlignedPair
        Names, scores and alignments are written if all pairs have them; some pairs with and some
        without are an error, since lines must have the same columns.

    Raises
    ------
    ValueError
        If a pair lacks what others have, or if a cell cannot be written.
    """
    pairs = list(pairs)

    def all_or_none(has: list[bool], what: str) -> bool:
        if any(has) and not all(has):
            raise ValueError(
                f"pair {has.index(False)}: found no {what}; expected them, as other pairs have them"
            )
        return any(has)

    all_or_none([pair.alignment is not None for pair in pairs], "alignment")
    named = all_or_none([bool(pair.name1 and pair.name2) for pair in pairs], "names")
    scored = all_or_none([pair.scores is not None for pair in pairs], "scores")
    if scored and not named:
        raise ValueError("found scores of pairs without names; expected names, too")
    rows = []
    for i, pair in enumerate(pairs):
        cells = [pair.name1, pair.name2] if named else []
        if named and (
            any(c in name for name in cells for c in "\t\r\n")
            or pair.name1.startswith(("#", BOM))
        ):
            raise ValueError(
                f"pair {i}: found the names {quoted(pair.name1)} and {quoted(pair.name2)}; "
                "expected names without tabs, ends of lines and a '#' at the beginning"
            )
        if pair.scores is not None:
            cells += [repr(float(score)) for score in pair.scores]
        try:
            for k, sequence in enumerate((pair.sequence1, pair.sequence2), 1):
                _check_sequence(sequence, k)
                if GAP in sequence or sequence.startswith(("#", BOM)):
                    raise ValueError(
                        f"found sequence {k} {quoted(sequence)}; expected one without gaps"
                    )
            cells += [pair.sequence1, pair.sequence2]
            if pair.alignment is not None:
                cells.append(
                    pairs_to_string(pair.alignment, len(pair.sequence1), len(pair.sequence2))
                )
        except ValueError as error:
            raise ValueError(f"pair {i}: {error}") from None
        rows.append("\t".join(cells) + "\n")
    with open_for_writing(out) as file:
        file.write("".join(rows).encode("utf-8"))
