"""Substitution matrices: the text form of the NCBI, BLOSUM62, and alphabets.

The text form is what BLAST, EMBOSS, parasail and others read: lines that begin with ``#`` are
comments; the first other line has the letters of the columns; every further line, a letter and the
numbers of its row.

BLOSUM62 is the table of Henikoff and Henikoff (Amino acid substitution matrices from protein
blocks, PNAS 89, 1992) as the NCBI distributes it, in half bits, with the ambiguity codes B (N or
D), Z (Q or E) and X (any), and ``*`` for the end of a chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import FileFormatError
from maxmargin.io.lines import read_lines
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = [
    "DNA",
    "PROTEIN",
    "PROTEIN_AMBIGUOUS",
    "RNA",
    "blosum62",
    "integer_scores",
    "read_substitution",
    "write_substitution",
]

#: The twenty amino acids, in the order of the NCBI's matrices (alphabetic by their full names).
PROTEIN = "ARNDCQEGHILKMFPSTWYV"
#: With the codes for ambiguous residues and the end of a chain.
PROTEIN_AMBIGUOUS = PROTEIN + "BZX*"
DNA = "ACGT"
RNA = "ACGU"

# The lower triangle, a row for each letter of PROTEIN_AMBIGUOUS.
_BLOSUM62 = """
4
-1 5
-2 0 6
-2 -2 1 6
0 -3 -3 -3 9
-1 1 0 0 -3 5
-1 0 0 2 -4 2 5
0 -2 0 -1 -3 -2 -2 6
-2 0 1 -1 -3 0 0 -2 8
-1 -3 -3 -3 -1 -3 -3 -4 -3 4
-1 -2 -3 -4 -1 -2 -3 -4 -3 2 4
-1 2 0 -1 -3 1 1 -2 -1 -3 -2 5
-1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 5
-2 -3 -3 -3 -2 -3 -3 -3 -1 0 0 -3 0 6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4 7
1 -1 1 0 -1 0 0 0 -1 -2 -2 0 -1 -2 -1 4
0 -1 0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1 1 5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1 1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7
0 -3 -3 -3 -1 -2 -2 -3 -3 3 1 -2 1 -1 -2 -2 0 -3 -1 4
-2 -1 3 4 -3 0 1 -1 0 -3 -4 0 -3 -3 -2 0 -1 -4 -3 -3 4
-1 0 0 1 -3 3 4 -2 0 -3 -3 1 -1 -3 -1 0 -1 -3 -2 -2 1 4
0 -1 -1 -1 -2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -2 0 0 -2 -1 -1 -1 -1 -1
-4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 1
"""


def blosum62(alphabet: str = PROTEIN_AMBIGUOUS) -> tuple[str, NDArray[np.int64]]:
    """Return the matrix BLOSUM62.

    Parameters
    ----------
    alphabet : str
        The letters, in the wanted order; all of them from `PROTEIN_AMBIGUOUS`, which is the
        default.

    Returns
    -------
    alphabet : str
        The letters.
    matrix : int64 array of shape (n_letters, n_letters)
        Symmetric.
    """
    rows = [line.split() for line in _BLOSUM62.split("\n") if line]
    matrix = np.zeros((len(rows), len(rows)), dtype=np.int64)
    for i, row in enumerate(rows):
        matrix[i, : i + 1] = matrix[: i + 1, i] = [int(word) for word in row]
    for letter in alphabet:
        if letter not in PROTEIN_AMBIGUOUS:
            raise ValueError(
                f"alphabet has the letter {quoted(letter)}; expected letters of {PROTEIN_AMBIGUOUS}"
            )
    order = [PROTEIN_AMBIGUOUS.index(letter) for letter in alphabet]
    return alphabet, matrix[np.ix_(order, order)]


def read_substitution(
    path: PathOrFile, *, max_inflated: int | None = None
) -> tuple[str, NDArray[np.float64]]:
    """Read a substitution matrix.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    alphabet : str
        The letters in the order of the columns.
    matrix : float64 array of shape (n_letters, n_letters)
        ``matrix[i, j]`` is the number in row i and column j. Rows of the file may stand in another
        order than columns.

    Raises
    ------
    FileFormatError
        If rows and columns have not the same letters, or if what should be a number is none. The
        message names file and line.
    OSError
        If the file cannot be read.
    """
    lines, source = read_lines(path, max_inflated=max_inflated)
    letters: list[str] = []
    rows: dict[str, list[float]] = {}
    last = 0
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        last = number
        place = f"{source}: line {number}"
        if not letters:
            for k, word in enumerate(words):
                if len(word) != 1 or word in words[:k]:
                    raise FileFormatError(
                        f"{place}: found {quoted(word)} among the letters of the columns; expected "
                        "single letters, each once"
                    )
            letters = words
            continue
        letter, cells = words[0], words[1:]
        if letter not in letters or letter in rows:
            raise FileFormatError(
                f"{place}: found {'a second' if letter in rows else 'a'} row of {quoted(letter)}; "
                "expected a row for each letter of the columns"
            )
        if len(cells) != len(letters):
            raise FileFormatError(
                f"{place}: found {len(cells)} numbers in the row of {quoted(letter)}; expected "
                f"{len(letters)}"
            )
        rows[letter] = [_number(cell, k, place) for k, cell in enumerate(cells, 1)]
    if not letters:
        raise FileFormatError(f"{source}: holds no matrix; expected a line of letters and rows")
    missing = [letter for letter in letters if letter not in rows]
    if missing:
        raise FileFormatError(
            f"{source}: line {last}: found the end of the matrix without a row of "
            f"{quoted(missing[0])}; expected a row for each letter of the columns"
        )
    return "".join(letters), np.array([rows[letter] for letter in letters])


def _number(cell: str, column: int, place: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FileFormatError(
            f"{place}: found {quoted(cell)} as number {column} of the row; expected a finite number"
        )
    return value


def integer_scores(matrix: ArrayLike, largest: int = 20) -> tuple[NDArray[np.int64], float]:
    """Scale a matrix of real numbers to integers, as BLAST-like tools want them.

    Parameters
    ----------
    matrix : array-like of float
        For example a learned matrix.
    largest : int, default=20
        The largest absolute value afterwards.

    Returns
    -------
    scores : int64 array
        The rounded multiples.
    factor : float
        By what the matrix was multiplied; gap penalties that belong to it are multiplied, too. 1
        for a matrix of zeros.
    """
    if largest < 1:
        raise ValueError(f"largest is {largest}; expected at least 1")
    values = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("matrix holds numbers that are not finite; expected finite ones")
    most = float(np.abs(values).max(initial=0.0))
    factor = largest / most if most > 0 else 1.0
    return np.rint(values / most * largest if most > 0 else values).astype(np.int64), factor


def write_substitution(
    out: PathOrFile,
    alphabet: str,
    matrix: ArrayLike,
    *,
    comments: Iterable[str] = (),
    decimals: int = 4,
) -> None:
    """Write a substitution matrix as text.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    alphabet : str
        The letters of rows and columns.
    matrix : array-like of shape (n_letters, n_letters)
        Integers are written as they are. BLAST itself reads nothing else; see `integer_scores`.
    comments : iterable of str
        Lines to write above the matrix, after ``#``.
    decimals : int, default=4
        How many decimals numbers get that are not integers.

    Raises
    ------
    ValueError
        If shape and alphabet do not belong together, or if a letter cannot be written.
    """
    values = np.asarray(matrix)
    n = len(alphabet)
    if values.shape != (n, n) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise ValueError(
            f"found a matrix of shape {values.shape} and type {values.dtype}; expected {n} x {n} "
            "finite numbers, as the alphabet has letters"
        )
    if n == 0 or len(set(alphabet)) != n or any(c.isspace() or c in "#\ufeff" for c in alphabet):
        raise ValueError(
            f"alphabet is {quoted(alphabet)}; expected different letters, without blanks and '#'"
        )
    form = "d" if values.dtype.kind in "iu" else f".{decimals}f"
    cells = [[format(value, form) for value in row] for row in values.tolist()]
    width = max(len(cell) for row in cells for cell in row) + 1
    lines = [f"# {part}" for comment in comments for part in comment.splitlines()]
    lines.append(" " + "".join(letter.rjust(width) for letter in alphabet))
    lines += [
        letter + "".join(cell.rjust(width) for cell in row)
        for letter, row in zip(alphabet, cells, strict=True)
    ]
    with open_for_writing(out) as file:
        file.write(("\n".join(lines) + "\n").encode("utf-8"))
