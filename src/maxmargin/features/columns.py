"""Tables of columns: one token a row, sequences one after the other, as column files hold them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin._native import Columns
from maxmargin.features.frames import frame_kind, frame_tokens, is_arrow_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ColumnTable", "LabelCodes"]


class LabelCodes(NamedTuple):
    """The labels of all tokens, as numbers.

    Attributes
    ----------
    codes : int32 array of shape (n_tokens,)
        The label of each token, as a place in ``names``.
    names : list
        The labels.
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence.
    """

    codes: NDArray[np.int32]
    names: list[Any]
    offsets: NDArray[np.int64]

    def sequences(self) -> list[list[Any]]:
        """Return the labels as lists, one a sequence."""
        labels = [self.names[k] for k in self.codes.tolist()]
        ends = self.offsets.tolist()
        return [labels[a:b] for a, b in itertools.pairwise(ends)]


def _without_frames(X: Any) -> Any:
    """Return X with lists in the place of data frames, which would give their columns as items."""
    kind = frame_kind(X)
    if kind is not None:
        raise TypeError(
            f"X is {kind}; expected a list of sequences, each a data frame or a list of tokens "
            "(maxmargin.io.tables.from_table takes one table apart)"
        )
    if not isinstance(X, list | tuple) or all(type(sequence) is list for sequence in X):
        return X
    sequences = list(X)
    for i, sequence in enumerate(sequences):
        if frame_kind(sequence) is not None:
            sequences[i] = frame_tokens(sequence, f"X: sequence {i}")
        elif is_arrow_array(sequence):
            sequences[i] = sequence.to_pylist()
    return sequences


class ColumnTable:
    """A column file in memory; what `SequenceTagger` with a template takes as ``X``.

    Parameters
    ----------
    native : Columns
        The parsed text.
    source : str
        What messages call it, for example the name of its file.
    label_column : int or None
        The column that holds labels, counted from 0: no feature may use it.
    extra : int or None
        A column that was not there in training, which features pass over.

    Attributes
    ----------
    n_tokens, n_sequences, n_columns : int
        How many there are.
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence.

    Examples
    --------
    >>> table = ColumnTable.from_rows([[("dogs", "N"), ("bark", "V")]])
    >>> table.n_columns
    2
    >>> table.labels(1).names
    ['N', 'V']
    """

    __slots__ = ("extra", "label_column", "native", "offsets", "source")

    def __init__(
        self,
        native: Columns,
        source: str = "X",
        label_column: int | None = None,
        extra: int | None = None,
    ) -> None:
        self.native = native
        self.source = source
        self.label_column = label_column
        self.extra = extra
        self.offsets: NDArray[np.int64] = native.offsets

    @classmethod
    def from_rows(cls, X: Any, source: str = "X") -> ColumnTable:
        """Make a table of Python lists.

        Parameters
        ----------
        X : list of sequences
            A sequence is a list of tokens; a token is a list of str, one for each column, or one
            str. A sequence may also be a data frame (pandas, polars, pyarrow), a row for each
            token; its columns count by their place, and numbers become text.
        source : str
            What messages call it.

        Returns
        -------
        ColumnTable
            The table.
        """
        return cls(Columns.from_rows(_without_frames(X)), source)

    def __len__(self) -> int:
        return self.native.n_sequences

    def __repr__(self) -> str:
        return (
            f"<ColumnTable {self.source}: {self.n_sequences} sequences, {self.n_tokens} tokens, "
            f"{self.n_columns} columns>"
        )

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.native.n_tokens

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.native.n_sequences

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.native.n_columns

    def column_index(self, column: int, what: str = "column") -> int:
        """Return the number of a column counted from 0; negative ones count from the end.

        Parameters
        ----------
        column : int
            Which column.
        what : str
            What it is for, for messages.

        Returns
        -------
        int
            From 0 to ``n_columns - 1``.
        """
        n = self.n_columns
        if not -n <= column < n:
            raise ValueError(
                f"{self.source}: {what} {column} is out of range; expected 0 to {n - 1} "
                f"(or -1 for the last), as there are {n} columns"
            )
        return column % n

    def labels(self, column: int = -1) -> LabelCodes:
        """Return the values of a column as labels.

        Parameters
        ----------
        column : int
            Which column; negative ones count from the end.

        Returns
        -------
        LabelCodes
            One code for each token.
        """
        column = self.column_index(column, "label column")
        codes, names = self.native.codes(column)
        if "" in names:
            token = int(np.argmax(codes == names.index("")))
            raise ValueError(
                f"{self.source}: {self.place(token)}, column {column}: found nothing; expected a "
                "label"
            )
        return LabelCodes(codes, names, self.offsets)

    def place(self, token: int) -> str:
        """Return where a token is, in words: its line, or its sequence if there are no lines.

        Parameters
        ----------
        token : int
            Counted over all sequences.
        """
        if self.native.n_lines:
            return f"line {self.native.line_of(token)}"
        sequence = int(np.searchsorted(self.offsets, token, side="right")) - 1
        return f"sequence {sequence}, token {token - int(self.offsets[sequence])}"

    def labelled(self, column: int = -1) -> tuple[ColumnTable, LabelCodes]:
        """Return the table as training takes it: what features are made of, and the labels.

        Parameters
        ----------
        column : int
            The column of the labels; negative ones count from the end.

        Returns
        -------
        table : ColumnTable
            The same table, which now knows its label column.
        labels : LabelCodes
            The labels.
        """
        labels = self.labels(column)
        return ColumnTable(self.native, self.source, self.column_index(column)), labels

    def rows(self, columns: list[int] | None = None) -> list[list[list[str]]]:
        """Return the cells as Python lists.

        Parameters
        ----------
        columns : list of int or None
            Which columns; None: all.

        Returns
        -------
        list of lists of lists of str
            One list a sequence, one a token, one str a column.
        """
        which = list(range(self.n_columns)) if columns is None else columns
        return [self.native.rows(i, which) for i in range(self.n_sequences)]
