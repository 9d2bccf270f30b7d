"""Sequences and alignments as people write them, as numbers.

An alignment is an int array of shape (k, 2): the matches (i, j) of residue i of the first sequence
with residue j of the second, counted from 0, both ascending. It may also be written as a text of
M, 1 and 2 (a match, a residue of the first or of the second sequence alone), or as a pair of rows
with gaps (``("AC-T", "ACGT")``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.io.alignment_forms import GAP, checked_pairs, rows_to_pairs, string_to_pairs

__all__ = [
    "ALPHABETS",
    "EncodedPairs",
    "Matches",
    "Ranked",
    "check_rows",
    "encode_pairs",
    "given_matches",
    "learn_alphabet",
    "listed",
    "paired",
    "parse_alignment",
]

#: Alphabets by name: amino acids with the ambiguous ones and X, and nucleotides with N.
ALPHABETS = {
    "protein": "ARNDCQEGHILKMFPSTWYVBZX",
    "dna": "ACGTN",
    "rna": "ACGUN",
}

Matches = NDArray[np.int32]


class Ranked(NamedTuple):
    """A second sequence out of several, and the alignment with it.

    Attributes
    ----------
    which : int
        0 is the homolog, 1 the first decoy, and so on.
    matches : ndarray of shape (k, 2)
        The alignment.
    """

    which: int
    matches: Matches


class _Sequence(NamedTuple):
    text: str
    position: NDArray[np.float64] | None


class EncodedPairs(NamedTuple):
    """Examples as numbers: the arguments of the native problem that are data.

    Attributes
    ----------
    letters : ndarray of uint8
        The residues of all sequences.
    sequences : ndarray of int64
        Ends of the sequences in ``letters``.
    position : ndarray of shape (n_letters, d) or None
        Features of the residues.
    native, candidates_from, candidates : ndarray of int64
        The first sequence of each example, and its second ones.
    lengths : list of tuple of int
        Lengths of the first sequence and the first of the second ones.
    """

    letters: NDArray[np.uint8]
    sequences: NDArray[np.int64]
    position: NDArray[np.float64] | None
    native: NDArray[np.int64]
    candidates_from: NDArray[np.int64]
    candidates: NDArray[np.int64]
    lengths: list[tuple[int, int]]

    def has_decoys(self, i: int) -> bool:
        """Tell whether an example has several second sequences."""
        return bool(self.candidates_from[i + 1] - self.candidates_from[i] > 1)

    @property
    def largest(self) -> int:
        """Cells of the largest table of a pair."""
        length = np.diff(self.sequences)
        first = np.repeat(length[self.native], np.diff(self.candidates_from))
        return int((first * length[self.candidates]).max())


def listed(values: Any, name: str, what: str) -> list[Any]:
    """Return a list of pairs or alignments, or raise an error that says what was found."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} is {_short(values)}; expected a list of {what}")
    return list(values)


def paired(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Return pairs and their alignments as lists of the same length."""
    X, y = listed(X, "X", "pairs"), listed(y, "y", "alignments")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} pairs and y {len(y)} alignments; expected as many")
    return X, y


def split_example(x: Any, i: int) -> tuple[_Sequence, list[_Sequence]]:
    """Return the first sequence of an example, and its second ones.

    Parameters
    ----------
    x : tuple
        (first, second) or (first, second, list of decoys); a sequence is a text, or a text and an
        array with a row of features for each of its characters.
    i : int
        Number of the example, for messages.

    Returns
    -------
    tuple
        The sequences.
    """
    if isinstance(x, str) or not isinstance(x, Sequence) or len(x) not in (2, 3):
        raise ValueError(
            f"pair {i} is {_short(x)}; expected (first sequence, second sequence), or with a list "
            "of decoys as the third"
        )
    decoys: Any = x[2] if len(x) == 3 else ()
    if isinstance(decoys, str) or not isinstance(decoys, Iterable):
        raise ValueError(f"the decoys of pair {i} are {_short(decoys)}; expected a list")
    names = ["sequence 1", "sequence 2"]
    first, second = (_sequence(s, f"{name} of pair {i}") for name, s in zip(names, x, strict=False))
    others = [_sequence(s, f"decoy {k} of pair {i}") for k, s in enumerate(decoys)]
    return first, [second, *others]


def _sequence(value: Any, what: str) -> _Sequence:
    position = None
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        value, features = value
        try:
            position = np.ascontiguousarray(features, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the features of {what} are no array of numbers") from error
        if position.ndim == 1:
            position = position[:, None]
        if position.ndim != 2 or position.shape[0] != len(value) or position.shape[1] < 1:
            raise ValueError(
                f"the features of {what} have the shape {np.shape(features)}; expected a row for "
                f"each of its {len(value)} characters"
            )
        if not np.isfinite(position).all() or np.abs(position).max(initial=0) > 1e12:
            raise ValueError(f"the features of {what} must be finite and at most 1e12 in size")
    if not isinstance(value, str):
        raise TypeError(
            f"{what} is {_short(value)}; expected a text, or (text, array with a row of features "
            "for each character)"
        )
    if not value:
        raise ValueError(f"{what} is empty")
    return _Sequence(value, position)


def learn_alphabet(X: Any) -> str:
    """Return the characters of the sequences, sorted.

    Parameters
    ----------
    X : sequence of examples
        See `split_example`.

    Returns
    -------
    str
        The alphabet.
    """
    letters: set[str] = set()
    for i, x in enumerate(X):
        first, others = split_example(x, i)
        letters.update(first.text, *(other.text for other in others))
    if len(letters) > 255:
        raise ValueError(f"the sequences have {len(letters)} different characters; at most 255")
    return "".join(sorted(letters))


def encode_pairs(
    X: Any, alphabet: str, unknown: str | None, n_position: int | None
) -> EncodedPairs:
    """Encode examples.

    Parameters
    ----------
    X : sequence of examples
        See `split_example`.
    alphabet : str
        The characters that there are.
    unknown : str or None
        The character of the alphabet that stands for all others; None refuses them.
    n_position : int or None
        The number of features that every residue must have; None: as the first sequence has.

    Returns
    -------
    EncodedPairs
        The numbers.

    Raises
    ------
    ValueError, TypeError
        If a character is not in the alphabet, or an example is not as it must be.
    """
    codes = {letter: code for code, letter in enumerate(alphabet)}
    other = None if unknown is None else codes[unknown]
    texts: list[NDArray[np.uint8]] = []
    positions: list[NDArray[np.float64]] = []
    native: list[int] = []
    candidates: list[int] = []
    ends = [0]
    lengths: list[tuple[int, int]] = []

    def put(sequence: _Sequence, what: str) -> int:
        nonlocal n_position
        found = 0 if sequence.position is None else sequence.position.shape[1]
        n_position = found if n_position is None else n_position
        if found != n_position:
            raise ValueError(
                f"{what} has {found} features for each character; expected {n_position}"
            )
        try:
            numbers = [codes[letter] for letter in sequence.text]
        except KeyError:
            if other is None:
                at, letter = next((k, c) for k, c in enumerate(sequence.text) if c not in codes)
                raise ValueError(
                    f"{what} has {letter!r} at position {at + 1}, which is not in the alphabet "
                    f'{alphabet!r}; give unknown="X" (a letter of the alphabet) to read it as that'
                ) from None
            numbers = [codes.get(letter, other) for letter in sequence.text]
        texts.append(np.array(numbers, dtype=np.uint8))
        if sequence.position is not None:
            positions.append(sequence.position)
        return len(texts) - 1

    for i, x in enumerate(X):
        first, others = split_example(x, i)
        native.append(put(first, f"sequence 1 of pair {i}"))
        for k, one in enumerate(others):
            name = f"sequence 2 of pair {i}" if k == 0 else f"decoy {k - 1} of pair {i}"
            candidates.append(put(one, name))
        ends.append(len(candidates))
        lengths.append((len(first.text), len(others[0].text)))
    if not native:
        raise ValueError("there are no pairs; expected at least one")
    return EncodedPairs(
        letters=np.concatenate(texts),
        sequences=np.cumsum([0, *(len(text) for text in texts)]).astype(np.int64),
        position=np.concatenate(positions) if positions else None,
        native=np.array(native, dtype=np.int64),
        candidates_from=np.array(ends, dtype=np.int64),
        candidates=np.array(candidates, dtype=np.int64),
        lengths=lengths,
    )


def parse_alignment(y: Any, n: int, m: int, what: str = "the alignment") -> Matches:
    """Return the matches of an alignment.

    Parameters
    ----------
    y : array of shape (k, 2), str or pair of str
        See the top of this module.
    n, m : int
        Lengths of the two sequences.
    what : str
        Whose alignment it is, for messages.

    Returns
    -------
    ndarray of int32, shape (k, 2)
        The matches.

    Raises
    ------
    ValueError, TypeError
        If it is no alignment of such sequences.
    """
    try:
        if isinstance(y, str):
            return string_to_pairs(y, n, m)
        if isinstance(y, tuple | list) and len(y) == 2 and all(isinstance(row, str) for row in y):
            first, second, matches = rows_to_pairs(*(row.replace(".", GAP) for row in y))
            if (len(first), len(second)) != (n, m):
                raise ValueError(
                    f"found rows with {len(first)} and {len(second)} characters that are no gaps; "
                    f"expected {n} and {m}, the lengths of the sequences"
                )
            return matches
        return np.ascontiguousarray(checked_pairs(y, n, m))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what}: {error}") from error


def check_rows(x: Any, y: Any, i: int) -> None:
    """Raise an error if an alignment is given as rows with letters other than the sequences'.

    Parameters
    ----------
    x : tuple
        An example; see `split_example`.
    y : alignment
        Rows are compared, upper and lower case being the same; other forms have no letters.
    i : int
        Number of the example, for messages.
    """
    if not (isinstance(y, tuple | list) and len(y) == 2 and all(isinstance(r, str) for r in y)):
        return
    first, others = split_example(x, i)
    for k, (row, sequence) in enumerate(zip(y, (first, others[0]), strict=True)):
        letters = row.replace(".", GAP).replace(GAP, "")
        if len(letters) != len(sequence.text):
            continue  # which `parse_alignment` reports
        for at, (found, expected) in enumerate(zip(letters, sequence.text, strict=True)):
            if found.casefold() != expected.casefold():
                raise ValueError(
                    f"the alignment of pair {i}: row {k + 1} has {found!r} where sequence {k + 1} "
                    f"has {expected!r}, at position {at + 1}; expected the same letters"
                )


def given_matches(y: Any) -> Any:
    """Return the matches of an alignment whose sequences are not at hand.

    Parameters
    ----------
    y : array of shape (k, 2), str or pair of str
        See the top of this module.

    Returns
    -------
    array of shape (k, 2)
        The matches; those of an array are not checked.
    """
    if isinstance(y, str):
        return string_to_pairs(y, len(y) - y.count("2"), len(y) - y.count("1"))
    if isinstance(y, tuple | list) and len(y) == 2 and all(isinstance(row, str) for row in y):
        return rows_to_pairs(*(row.replace(".", GAP) for row in y))[2]
    return y


def _short(value: Any) -> str:
    return f"{value!r:.60}"
