"""`Sample`: the tokens of some sequences, as constraints look at them.

X may be whatever a tagger takes whose tokens have words: a `ColumnTable`, lists of words, of rows
of columns, of feature dicts or of feature strings ("w=dogs"), data frames. A constraint asks for
the texts of a column; how a column is found depends on X:

======================  ======================================================================
tokens of X             ``column``
======================  ======================================================================
rows (ColumnTable, ...)  a number counted from 0, or a name of ``columns``; default 0
words (str)             none: the word itself
dicts                   a key; default: the first of "word", "token", "form", "w" that is there
feature strings         a name: the text behind "name="; default: the first of the same four
======================  ======================================================================
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import ConstraintError
from maxmargin.features.columns import ColumnTable
from maxmargin.features.frames import frame_columns, frame_kind
from maxmargin.features.sequences import offsets_of
from maxmargin.printable import quoted

__all__ = ["Column", "Sample", "suggestion"]

Column: TypeAlias = int | str | None

#: Names under which the word of a token is looked for.
WORD_NAMES = ("word", "token", "form", "w")


def suggestion(name: Any, known: Iterable[Any]) -> str:
    """Return what a misspelt name may have meant, in words.

    Parameters
    ----------
    name : object
        What was written.
    known : iterable
        What there is.

    Returns
    -------
    str
        "; did you mean 'x'?", or the names that there are.
    """
    texts = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), texts, n=1)
    if close:
        return f"; did you mean {quoted(close[0])}?"
    shown = ", ".join(quoted(t) for t in texts[:20]) + (", ..." if len(texts) > 20 else "")
    return f"; expected one of {shown}" if texts else "; there are none"


class Sample:
    """The tokens of some sequences.

    Parameters
    ----------
    X : list of sequences or ColumnTable
        The inputs.
    columns : sequence of str
        Names of the columns of rows, in order.

    Attributes
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence.
    """

    def __init__(self, X: Any, columns: Sequence[str] = ()) -> None:
        self.names = tuple(columns)
        self._texts: dict[Column, list[str]] = {}
        self._matched: dict[Any, NDArray[np.bool_]] = {}
        self._table = X if isinstance(X, ColumnTable) else None
        self._X: list[Any] = []
        if self._table is not None:
            self.offsets: NDArray[np.int64] = self._table.offsets
            return
        if isinstance(X, str | bytes | Mapping) or not hasattr(X, "__iter__"):
            raise TypeError(
                f"X is a {type(X).__name__}; expected a list of sequences or a ColumnTable"
            )
        self._X = [
            dict(frame_columns(x)) if frame_kind(x) is not None else _tokens(x, i)
            for i, x in enumerate(X)
        ]
        if not self._X:
            raise ValueError("X is empty; expected at least one sequence")
        lengths = [len(next(iter(x.values()))) if isinstance(x, dict) else len(x) for x in self._X]
        if 0 in lengths:
            raise ValueError(f"sequence {lengths.index(0)} is empty; expected at least one token")
        self.offsets = offsets_of(lengths)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all sequences."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)

    def sequence_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequences of tokens that are counted over all sequences."""
        found: NDArray[np.int64] = np.searchsorted(self.offsets, tokens, side="right") - 1
        return found

    def only(self, i: int) -> Sample:
        """Return a sample of sequence ``i`` alone."""
        one = Sample.__new__(Sample)
        one.names, one._texts, one._matched, one._table = self.names, {}, {}, None
        one._X = [self.sequence(i)]
        one.offsets = np.array([0, self.lengths[i]], np.int64)
        return one

    def sequence(self, i: int) -> Any:
        """Return sequence ``i`` as functions of one's own get it: as it was given, or as rows."""
        if self._table is not None:
            return self._table.native.rows(i, list(range(self._table.n_columns)))
        return self._X[i]

    def texts(self, column: Column = None) -> list[str]:
        """Return the texts of a column, of all tokens one after the other.

        Parameters
        ----------
        column : int, str or None
            Which column; None: that of the words.

        Returns
        -------
        list of str
            One a token.

        Raises
        ------
        ConstraintError
            If there is no such column.
        """
        if column not in self._texts:
            self._texts[column] = self._read(column)
        return self._texts[column]

    def matched(self, match: Any) -> NDArray[np.bool_]:
        """Return which tokens something with a ``mask(sample)`` means, kept for the next time."""
        if match not in self._matched:
            self._matched[match] = match.mask(self)
        return self._matched[match]

    def words_of(self, i: int) -> list[str]:
        """Return the words of sequence ``i``, for people to read."""
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        try:
            return self.texts(None)[a:b]
        except ConstraintError:
            return [str(token) for token in self.sequence(i)]

    def _number(self, column: Column) -> int:
        """Return the number of a column of rows."""
        if column is None:
            return 0
        if isinstance(column, str):
            if column not in self.names:
                where = suggestion(column, self.names)
                if not self.names:
                    where = "; the columns have no names: give a number, or name them with columns"
                raise ConstraintError(f"there is no column {quoted(column)}{where}")
            return self.names.index(column)
        return column

    def _read(self, column: Column) -> list[str]:
        if self._table is not None:
            k, n = self._number(column), self._table.n_columns
            if not 0 <= k < n:
                raise ConstraintError(
                    f"there is no column {column}; {self._table.source} has {n}, numbered from 0"
                )
            codes, names = self._table.native.codes(k)
            return [names[c] for c in codes.tolist()]
        return list(
            itertools.chain.from_iterable(self._of(x, column, i) for i, x in enumerate(self._X))
        )

    def _of(self, x: Any, column: Column, i: int) -> list[str]:
        if isinstance(x, dict):  # a data frame, column by column
            keys = list(x)
            if isinstance(column, int):
                if not 0 <= column < len(keys):
                    raise ConstraintError(
                        f"sequence {i}: there is no column {column}; it has {len(keys)}, numbered "
                        "from 0"
                    )
                return [str(v) for v in x[keys[column]]]
            return [str(v) for v in x[_key(keys, column, f"sequence {i}", keys[0])]]
        return [self._cell(token, column, i, t) for t, token in enumerate(x)]

    def _cell(self, token: Any, column: Column, i: int, t: int) -> str:
        where = f"sequence {i}, token {t}"
        if isinstance(token, str):
            if column is None or column == 0 or (self.names and self._number(column) == 0):
                return token
            raise ConstraintError(
                f"{where}: there is no column {quoted(column)}; the tokens are words, without "
                "columns"
            )
        if isinstance(token, Mapping):
            return str(token[_key(list(token), column, where)])
        if isinstance(token, list | tuple) and all(isinstance(cell, str) for cell in token):
            if not isinstance(column, int) and column not in self.names:
                prefixes = WORD_NAMES if column is None else (column,)
                for prefix in prefixes:
                    for cell in token:
                        if cell.startswith(f"{prefix}="):
                            return str(cell[len(prefix) + 1 :])
                if column is not None:
                    found = [*self.names, *(c.partition("=")[0] for c in token if "=" in c)]
                    raise ConstraintError(
                        f"{where}: there is no column or feature {quoted(column)}"
                        f"{suggestion(column, found)}"
                    )
            k = self._number(column)
            if 0 <= k < len(token):
                return str(token[k])
            raise ConstraintError(
                f"{where}: there is no column {k}; it has {len(token)}, numbered from 0"
            )
        raise ConstraintError(
            f"{where}: is a {type(token).__name__}; constraints on words need tokens that are "
            "words, rows of columns, feature dicts or lists of feature strings"
        )


def _tokens(x: Any, i: int) -> Any:
    """Return a sequence as something with a length whose items are tokens."""
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], np.ndarray) and x[1].ndim == 2:
        x = x[0]  # a list of tokens, and an array of more features
    if isinstance(x, str | bytes | Mapping) or not hasattr(x, "__len__"):
        raise TypeError(f"sequence {i} is a {type(x).__name__}; expected a list of tokens")
    return x if hasattr(x, "__getitem__") else list(x)


def _key(keys: list[Any], column: Column, where: str, default: Any = None) -> Any:
    if column is None:
        for name in WORD_NAMES:
            if name in keys:
                return name
        if default is not None:
            return default
        raise ConstraintError(
            f"{where}: has no feature called {', '.join(WORD_NAMES)}; say with column which of "
            f"{', '.join(quoted(k) for k in keys[:20])} is the word"
        )
    if column not in keys:
        raise ConstraintError(
            f"{where}: there is no column {quoted(column)}{suggestion(column, keys)}"
        )
    return column
