"""The forms of a pairwise alignment, and the ways between them.

- *pairs*: an array of shape (k, 2) of matched positions (i, j), counted from 0, which ascend
  strictly in both columns. This is what the library computes with.
- *string*: a letter for each column of the alignment: M (a position of each sequence), 1 (a
  position of sequence 1 only), 2 (of sequence 2 only). TM-align's results are given so.
- *rows*: the two sequences, with ``-`` in the gaps, of the same length.

Strings and rows also say in which order two gaps that meet stand; pairs do not. Out of pairs come
strings and rows in which sequence 1 goes first. Ends that a local alignment leaves out are gaps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.printable import quoted

__all__ = [
    "GAP",
    "checked_pairs",
    "pairs_to_rows",
    "pairs_to_string",
    "rows_to_pairs",
    "rows_to_string",
    "string_to_pairs",
    "string_to_rows",
]

GAP = "-"

_MATCH, _FIRST, _SECOND = (ord(c) for c in "M12")


def _codes(string: str) -> NDArray[np.uint8]:
    codes = np.frombuffer(string.encode("ascii", "replace"), dtype=np.uint8)
    wrong = (codes != _MATCH) & (codes != _FIRST) & (codes != _SECOND)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"found {quoted(string[at])} at position {at + 1} of the alignment; expected M, 1 or 2"
        )
    return codes


def string_to_pairs(string: str, length1: int, length2: int) -> NDArray[np.int32]:
    """Return the matched positions of an alignment string.

    Parameters
    ----------
    string : str
        Of the letters M, 1 and 2.
    length1, length2 : int
        The lengths of the sequences.

    Returns
    -------
    int32 array of shape (k, 2)

    Raises
    ------
    ValueError
        If there is another letter, or if the string is not of sequences of these lengths.
    """
    codes = _codes(string)
    in1, in2 = codes != _SECOND, codes != _FIRST
    for which, here, length in ((1, in1, length1), (2, in2, length2)):
        covered = int(here.sum())
        if covered != length:
            raise ValueError(
                f"found {covered} positions of sequence {which} in the alignment (M or {which}); "
                f"expected {length}, the length of the sequence"
            )
    matched = codes == _MATCH
    places: NDArray[np.int64] = np.stack([np.cumsum(in1), np.cumsum(in2)], axis=1)[matched] - 1
    return places.astype(np.int32)


def checked_pairs(pairs: ArrayLike, length1: int, length2: int) -> NDArray[np.int32]:
    """Return matched positions as an int32 array of shape (k, 2), or raise an error.

    Parameters
    ----------
    pairs : array-like of int of shape (k, 2)
        Positions that ascend strictly in both columns.
    length1, length2 : int
        The lengths of the sequences.

    Returns
    -------
    int32 array of shape (k, 2)

    Raises
    ------
    ValueError
        If the shape or the type is another, if a position is out of range or if they do not ascend.
    """
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"found pairs of shape {array.shape} and type {array.dtype}; expected integers of "
            "shape (k, 2)"
        )
    for k, length in enumerate((length1, length2)):
        wrong = (array[:, k] < 0) | (array[:, k] >= length)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"pair {at}: found position {array[at, k]} of sequence {k + 1}; expected one from "
                f"0 to {length - 1}"
            )
        back = array[1:, k] <= array[:-1, k]
        if back.any():
            at = int(np.argmax(back)) + 1
            raise ValueError(
                f"pair {at}: found position {array[at, k]} of sequence {k + 1} after "
                f"{array[at - 1, k]}; expected positions that ascend"
            )
    return array.astype(np.int32)


def pairs_to_string(pairs: ArrayLike, length1: int, length2: int) -> str:
    """Return the alignment string of matched positions.

    Parameters
    ----------
    pairs : array-like of int of shape (k, 2)
        The matched positions.
    length1, length2 : int
        The lengths of the sequences.

    Returns
    -------
    str
        Of the letters M, 1 and 2; where gaps meet, sequence 1 goes first.
    """
    parts = []
    before1 = before2 = -1
    for i, j in [*checked_pairs(pairs, length1, length2).tolist(), (length1, length2)]:
        parts.append("1" * (i - before1 - 1) + "2" * (j - before2 - 1))
        before1, before2 = i, j
    return "M".join(parts)


def string_to_rows(string: str, sequence1: str, sequence2: str) -> tuple[str, str]:
    """Return the two sequences with gaps, as an alignment string has them.

    Parameters
    ----------
    string : str
        Of the letters M, 1 and 2.
    sequence1, sequence2 : str
        Without gaps.

    Returns
    -------
    row1, row2 : str
        Of the same length.
    """
    string_to_pairs(string, len(sequence1), len(sequence2))
    letters1, letters2 = iter(sequence1), iter(sequence2)
    return (
        "".join(GAP if c == "2" else next(letters1) for c in string),
        "".join(GAP if c == "1" else next(letters2) for c in string),
    )


def rows_to_string(row1: str, row2: str) -> str:
    """Return the alignment string of two sequences with gaps.

    Parameters
    ----------
    row1, row2 : str
        Of the same length. Columns of two gaps, which rows of an alignment of more sequences may
        have, are left out.

    Returns
    -------
    str
        Of the letters M, 1 and 2.
    """
    if len(row1) != len(row2):
        raise ValueError(
            f"found rows of {len(row1)} and {len(row2)} letters; expected two of the same length"
        )
    return "".join(
        ("2" if a == GAP else "1" if b == GAP else "M")
        for a, b in zip(row1, row2, strict=True)
        if a != GAP or b != GAP
    )


def pairs_to_rows(pairs: ArrayLike, sequence1: str, sequence2: str) -> tuple[str, str]:
    """Return the two sequences with gaps, of matched positions.

    Parameters
    ----------
    pairs : array-like of int of shape (k, 2)
        The matched positions.
    sequence1, sequence2 : str
        Without gaps.

    Returns
    -------
    row1, row2 : str
        Of the same length.
    """
    string = pairs_to_string(pairs, len(sequence1), len(sequence2))
    return string_to_rows(string, sequence1, sequence2)


def rows_to_pairs(row1: str, row2: str) -> tuple[str, str, NDArray[np.int32]]:
    """Return sequences and matched positions of two rows with gaps.

    Parameters
    ----------
    row1, row2 : str
        Of the same length.

    Returns
    -------
    sequence1, sequence2 : str
        Without gaps.
    pairs : int32 array of shape (k, 2)
        The matched positions.
    """
    string = rows_to_string(row1, row2)
    sequence1, sequence2 = row1.replace(GAP, ""), row2.replace(GAP, "")
    return sequence1, sequence2, string_to_pairs(string, len(sequence1), len(sequence2))
