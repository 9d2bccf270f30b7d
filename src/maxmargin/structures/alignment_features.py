"""The weights of an alignment and its joint features, one pair at a time.

What native code computes for whole batches (``native/alignment.hpp``, whose header
``native/alignment_data.hpp`` defines the score), here for one output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["END_NAMES", "MODES", "POSITIONS", "AlignmentLayout", "loss_count", "match_table"]

MODES = ("global", "local", "semiglobal")
#: How features of two residues become features of their match.
POSITIONS = ("product", "difference", "bilinear")
#: Ends that may be free in semiglobal alignments, in the order of their bits in native code.
END_NAMES = ("start1", "start2", "end1", "end2")


def match_table(substitution: Any, n_letters: int) -> NDArray[np.uint32]:
    """Return which weight scores a match of two letters.

    Parameters
    ----------
    substitution : {"symmetric", "free", "identity"} or int array
        A weight for each pair of letters in either order, for each ordered pair, two weights (the
        same letter, another one), or the number of the weight for each ordered pair.
    n_letters : int
        Size of the alphabet.

    Returns
    -------
    ndarray of uint32, shape (n_letters, n_letters)
        Numbers of weights, from 0 without gaps.
    """
    K = n_letters
    if isinstance(substitution, str):
        if substitution == "free":
            return np.arange(K * K, dtype=np.uint32).reshape(K, K)
        if substitution == "identity":
            return (1 - np.eye(K, dtype=np.uint32)).astype(np.uint32)
        if substitution == "symmetric":
            table = np.zeros((K, K), dtype=np.uint32)
            rows, columns = np.triu_indices(K)
            table[rows, columns] = table[columns, rows] = np.arange(len(rows))
            return table
        raise ValueError(
            f"substitution is {substitution!r}; expected 'symmetric', 'free', 'identity' or an "
            "int array of shape (letters, letters)"
        )
    given = np.asarray(substitution)
    if given.shape != (K, K) or given.dtype.kind not in "iu":
        raise ValueError(
            f"substitution has the shape {given.shape} and type {given.dtype}; expected ints of "
            f"the shape {(K, K)}, the number of a weight for each pair of letters"
        )
    used = np.unique(given)
    if used[0] != 0 or used[-1] != len(used) - 1:
        raise ValueError(
            "substitution must number its weights 0, 1, 2, ... without leaving out any"
        )
    return np.ascontiguousarray(given, dtype=np.uint32)


@dataclass(frozen=True)
class AlignmentLayout:
    """Which weight is what: matches, then gaps, then positions.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    free_ends : tuple of str
        Of `END_NAMES`.
    affine : bool
        Whether a gap has a weight for its first residue and another for the further ones.
    table : ndarray
        From `match_table`.
    position : str or None
        One of `POSITIONS`.
    n_position : int
        Number of features of a residue.
    """

    mode: str
    free_ends: tuple[str, ...]
    affine: bool
    table: NDArray[np.uint32]
    position: str | None
    n_position: int

    @property
    def n_matches(self) -> int:
        """Number of weights of matches."""
        return int(self.table.max()) + 1

    @property
    def open(self) -> int:
        """Weight of the first residue of a gap."""
        return self.n_matches

    @property
    def extend(self) -> int:
        """Weight of a further residue of a gap."""
        return self.n_matches + self.affine

    @property
    def position_from(self) -> int:
        """First weight of positions."""
        return self.extend + 1

    @property
    def n_weights(self) -> int:
        """Number of all weights."""
        d = self.n_position
        return self.position_from + (d * d if self.position == "bilinear" else d)

    @property
    def free_bits(self) -> int:
        """The free ends as native code takes them."""
        return sum(1 << k for k, name in enumerate(END_NAMES) if name in self.free_ends)

    def gaps(self, matches: Any, n: int, m: int) -> Iterator[int]:
        """Yield the length of every gap that is paid for.

        Parameters
        ----------
        matches : array of shape (k, 2)
            The alignment.
        n, m : int
            Lengths of the sequences.
        """
        free = {name: self.mode == "semiglobal" and name in self.free_ends for name in END_NAMES}
        pairs = np.asarray(matches, dtype=int).reshape(-1, 2).tolist()
        lengths: list[int] = []
        if not pairs:
            crossed = (free["start1"] and free["end2"]) or (free["start2"] and free["end1"])
            if not crossed:
                lengths += self._outside(
                    free["start1"] or free["end1"], free["start2"] or free["end2"], n, m
                )
        else:
            lengths += self._outside(free["start1"], free["start2"], *pairs[0])
            for (i, j), (p, q) in pairwise(pairs):
                lengths += [p - i - 1, q - j - 1]
            i, j = pairs[-1]
            lengths += self._outside(free["end1"], free["end2"], n - i - 1, m - j - 1)
        yield from (length for length in lengths if length > 0)

    def _outside(self, free1: bool, free2: bool, a: int, b: int) -> list[int]:
        if self.mode == "local":
            return []
        if free1 and free2:
            return [min(a, b)]
        return [length for length, free in ((a, free1), (b, free2)) if not free]

    def features(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        matches: Any,
        position1: Any = None,
        position2: Any = None,
    ) -> NDArray[np.float64]:
        """Return the joint feature vector.

        Parameters
        ----------
        first, second : ndarray of int
            The sequences as numbers of letters.
        matches : array of shape (k, 2)
            The alignment.
        position1, position2 : ndarray of shape (length, n_position), optional
            Features of the residues.

        Returns
        -------
        ndarray of float64
            One entry for each weight.
        """
        f = np.zeros(self.n_weights)
        pairs = np.asarray(matches, dtype=int).reshape(-1, 2)
        np.add.at(f, self.table[first[pairs[:, 0]], second[pairs[:, 1]]], 1.0)
        for length in self.gaps(pairs, len(first), len(second)):
            f[self.open] += 1
            f[self.extend] += length - 1
        if self.position is not None:
            p, q = position1[pairs[:, 0]], position2[pairs[:, 1]]
            if self.position == "product":
                own = (p * q).sum(axis=0)
            elif self.position == "difference":
                own = np.abs(p - q).sum(axis=0)
            else:
                own = (p.T @ q).ravel()
            f[self.position_from :] = own
        return f


def loss_count(kind: str, truth: Any, matches: Any) -> tuple[int, int]:
    """Count what an alignment has wrong, and what there is.

    Parameters
    ----------
    kind : {"matches", "residues"}
        Missed matches of all true ones, or residues with a wrong partner (or with one where the
        truth has none, or without) of all that have a partner in truth.
    truth, matches : array of shape (k, 2)
        Two alignments.

    Returns
    -------
    wrong, size : int
        The loss is wrong / max(size, 1).
    """
    true = {tuple(pair) for pair in np.asarray(truth, dtype=int).reshape(-1, 2).tolist()}
    found = {tuple(pair) for pair in np.asarray(matches, dtype=int).reshape(-1, 2).tolist()}
    if kind == "matches":
        return len(true - found), len(true)
    wrong: set[tuple[int, int]] = set()
    for pair in true ^ found:
        wrong.update(enumerate(pair))
    return len(wrong), 2 * len(true)
