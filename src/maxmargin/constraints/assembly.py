"""`Assembly`: the coordinates of φ of a set of constraints on a sample, collected and numbered.

Coordinates are numbered sequence by sequence, within a sequence constraint by constraint, within a
constraint by token. ``native/constraint_data.hpp`` says what native code makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.constraints.sample import Sample, suggestion
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

__all__ = ["Assembly", "Piece"]


@dataclass(eq=False)
class Piece:
    """Coordinates of one kind that a constraint has.

    Attributes
    ----------
    owner : int
        The constraint, by its place in the set.
    sequences : int64 array of shape (n,)
        The sequence of each coordinate, ascending.
    sort : str
        "token", "edge", "automaton" or "function".
    tokens : int64 array or None
        Of coordinates at tokens and edges: where, counted over all sequences.
    table : float64 array or None
        Of those: φ by label, or by two labels.
    automaton : dict
        Of automata: arguments of `_native.Automaton`.
    coordinates : int64 array of shape (n,)
        Their numbers, when all pieces are there.
    """

    owner: int
    sequences: NDArray[np.int64]
    sort: str
    tokens: NDArray[np.int64] | None = None
    table: NDArray[np.float64] | None = None
    automaton: dict[str, Any] = field(default_factory=dict)
    coordinates: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


class Assembly:
    """Collects coordinates; a constraint gives its own in `Constraint.assemble`.

    Parameters
    ----------
    sample : Sample
        The sequences.
    labels : list
        All labels, in the order of the weights.
    """

    def __init__(self, sample: Sample, labels: list[Any]) -> None:
        self.sample = sample
        self.labels = labels
        self.pieces: list[Piece] = []
        self._codes = {label: code for code, label in enumerate(labels)}
        self._owner, self._title = 0, ""

    def begin(self, owner: int, title: str) -> None:
        """Take the coordinates that follow as those of a constraint."""
        self._owner, self._title = owner, title

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def code(self, label: Any) -> int:
        """Return the place of a label; an unknown one is an error that names it."""
        if label not in self._codes:
            raise ConstraintError(
                f"constraint {quoted(self._title)}: there is no label {quoted(label)}"
                f"{suggestion(label, self.labels)}"
            )
        return self._codes[label]

    def indicator(self, labels: Any) -> NDArray[np.float64]:
        """Return 1 for some labels and 0 for the others."""
        table = np.zeros(self.n_labels)
        table[[self.code(label) for label in labels]] = 1.0
        return table

    # --- coordinates -----------------------------------------------------------------------------

    def at_tokens(self, tokens: NDArray[np.int64], table: NDArray[np.float64]) -> None:
        """Add a coordinate at each of some tokens: φ = table[label]."""
        where = self.sample.sequence_of(tokens)
        self.pieces.append(Piece(self._owner, where, "token", tokens, table))

    def at_edges(self, tokens: NDArray[np.int64], table: NDArray[np.float64]) -> None:
        """Add a coordinate at the edge into each of some tokens: φ = table[before, label]."""
        tokens = tokens[~np.isin(tokens, self.sample.offsets)]  # first tokens have no edge
        where = self.sample.sequence_of(tokens)
        self.pieces.append(Piece(self._owner, where, "edge", tokens, table))

    def automaton(self, kind: str, counts: NDArray[np.int64] | int, **options: Any) -> None:
        """Add an automaton, with so many coordinates in each sequence."""
        n = np.broadcast_to(np.asarray(counts, np.int64), (self.sample.n_sequences,))
        where = np.repeat(np.arange(self.sample.n_sequences), n)
        self.pieces.append(
            Piece(self._owner, where, "automaton", automaton={"kind": kind, **options})
        )

    def function(self, size: int) -> None:
        """Add coordinates that only a function of the whole labelling knows."""
        where = np.repeat(np.arange(self.sample.n_sequences), size)
        self.pieces.append(Piece(self._owner, where, "function"))

    # --- numbering -------------------------------------------------------------------------------

    def number(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Give all coordinates their numbers.

        Returns
        -------
        offsets : int64 array of shape (n_sequences + 1,)
            The first coordinate of each sequence.
        owners : int32 array
            The constraint of each coordinate.
        """
        empty = np.empty(0, np.int64)
        sequences = np.concatenate([*(p.sequences for p in self.pieces), empty])
        piece = np.repeat(np.arange(len(self.pieces)), [len(p.sequences) for p in self.pieces])
        order = np.lexsort((piece, sequences))  # stable: within a piece as given
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        begin = 0
        for p in self.pieces:
            p.coordinates = numbers[begin : begin + len(p.sequences)]
            begin += len(p.sequences)
        offsets = np.zeros(self.sample.n_sequences + 1, np.int64)
        np.cumsum(np.bincount(sequences, minlength=self.sample.n_sequences), out=offsets[1:])
        owners = np.empty(len(order), np.int32)
        for p in self.pieces:
            owners[p.coordinates] = p.owner
        return offsets, owners

    def arguments(self, offsets: NDArray[np.int64]) -> dict[str, Any]:
        """Return the arguments of `_native.ConstrainedProblem` that describe φ."""
        out: dict[str, Any] = {"offsets": offsets, "automata": []}
        for sort, size in (("token", self.n_labels), ("edge", self.n_labels**2)):
            out |= self._sites(sort, size)
        for piece in self.pieces:
            if piece.sort != "automaton":
                continue
            # A piece's coordinates of one sequence stand together.
            at = np.searchsorted(piece.sequences, np.arange(self.sample.n_sequences))
            at = np.minimum(at, max(len(piece.coordinates) - 1, 0))
            first = piece.coordinates[at] if len(piece.coordinates) else offsets[:-1].copy()
            present = np.isin(np.arange(self.sample.n_sequences), piece.sequences)
            first = np.where(present, first, offsets[:-1])
            out["automata"].append(_native.Automaton(first=first, **piece.automaton))
        return out

    def _sites(self, sort: str, size: int) -> dict[str, Any]:
        pieces = [p for p in self.pieces if p.sort == sort and len(p.coordinates)]
        values = np.empty((len(pieces), size))
        for k, p in enumerate(pieces):
            assert p.table is not None
            values[k] = p.table.ravel()
        found: dict[str, Any] = {f"{sort}_values": values}
        names = (f"{sort}_indptr", f"{sort}_coordinates", f"{sort}_tables")
        if not pieces:
            return found | dict.fromkeys(names)
        tokens = np.concatenate([p.tokens for p in pieces if p.tokens is not None])
        tables = np.repeat(np.arange(len(pieces)), [len(p.coordinates) for p in pieces])
        order = np.lexsort((tables, tokens))
        indptr = np.zeros(self.sample.n_tokens + 1, np.int64)
        np.cumsum(np.bincount(tokens, minlength=self.sample.n_tokens), out=indptr[1:])
        coordinates = np.concatenate([p.coordinates for p in pieces])[order]
        return found | dict(
            zip(names, (indptr, coordinates, tables[order].astype(np.uint32)), strict=True)
        )
