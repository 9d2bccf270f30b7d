"""`TemplateEncoder`: columns -> features by a template, in native code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import check_counting
from maxmargin.features.template import Template

__all__ = ["TemplateEncoder", "as_table", "column_layout"]


def as_table(X: Any) -> ColumnTable:
    """Return ``X`` as a table: it is one, or rows of str."""
    return X if isinstance(X, ColumnTable) else ColumnTable.from_rows(X)


def column_layout(table: ColumnTable, n_columns: int, label_column: int | None) -> list[int]:
    """Where the columns of training are in a table.

    Parameters
    ----------
    table : ColumnTable
        It has the columns of training, or all of them but the label's.
    n_columns : int
        Number of columns in training, the label's included.
    label_column : int or None
        Which of them was the label; None if none was.

    Returns
    -------
    list of int
        For each column of training a column of the table. The entry of a label column that is
        missing is 0; nobody looks there.
    """
    found = table.n_columns
    if found == n_columns:
        return list(range(n_columns))
    if label_column is not None and found == n_columns - 1:
        return [k - (k > label_column) if k != label_column else 0 for k in range(n_columns)]
    expected = f"{n_columns}, as in training"
    if label_column is not None:
        expected += f" (the label in column {label_column}), or {n_columns - 1} without the label"
    columns = "1 column" if found == 1 else f"{found} columns"
    raise ValueError(f"{table.source}: found {columns}; expected {expected}")


class TemplateEncoder:
    """Turns columns into an `EncodedBatch` by a template; a twin of `FeatureEncoder`.

    Parameters
    ----------
    template : Template
        Which features a token gets.
    min_count : int
        Features that occur less often in training are left out.
    hash_bits : int or None
        With a number, there is no list of features: a feature is one of 2^hash_bits by its hash.
    label_column : int or None
        The column of the training table that holds the labels; no feature may use it. A table that
        knows its label column says so itself.
    threads : int
        For expansion; the result does not depend on it.

    Attributes
    ----------
    n_sparse : int
        Number of features.
    fingerprints : uint64 array or None
        What native code knows the features by; None with hashing.
    n_columns : int
        Number of columns of the training table, the label's included.
    """

    kind = "columns"
    vocabulary = None
    n_dense = 0

    def __init__(
        self,
        template: Template,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        label_column: int | None = None,
        threads: int = 1,
    ) -> None:
        check_counting(min_count, hash_bits)
        self.template = template
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.label_column = label_column
        self.threads = threads
        self.n_sparse = 0
        self.n_columns = 0
        self.fingerprints: NDArray[np.uint64] | None = None
        self._program = _native.TemplateProgram(template.program())
        self._index: _native.FeatureIndex | None = None
        # Names are made when somebody asks: of where each feature was seen first, or from a file.
        self._names: list[str] | Callable[[], list[str]] | None = None
        self._seen: tuple[ColumnTable, NDArray[np.uint32], NDArray[np.uint32]] | None = None

    def fresh(self) -> TemplateEncoder:
        """Return an encoder with the same parameters that knows nothing."""
        return TemplateEncoder(
            self.template,
            min_count=self.min_count,
            hash_bits=self.hash_bits,
            label_column=self.label_column,
            threads=self.threads,
        )

    @classmethod
    def restore(
        cls,
        template: Template,
        *,
        n_columns: int,
        label_column: int | None,
        hash_bits: int | None,
        fingerprints: NDArray[np.uint64] | None,
        names: Callable[[], list[str]] | None = None,
        min_count: int = 1,
    ) -> TemplateEncoder:
        """Make an encoder that knows features, as a model file has them.

        Parameters
        ----------
        template, n_columns, label_column, hash_bits, fingerprints, min_count
            As the attributes of the encoder that was saved.
        names : callable
            Gives the names of the features when somebody asks.

        Returns
        -------
        TemplateEncoder
            Ready for `transform`.
        """
        encoder = cls(template, label_column=label_column, hash_bits=hash_bits)
        encoder.min_count = min_count
        encoder.n_columns = n_columns
        encoder.fingerprints = fingerprints
        encoder.n_sparse = 2**hash_bits if hash_bits is not None else len(fingerprints)  # type: ignore[arg-type]
        encoder._names = names
        return encoder

    def fit_transform(self, X: Any) -> EncodedBatch:
        """Learn the features of a table and encode it.

        Parameters
        ----------
        X : ColumnTable or list of sequences
            The training table, or rows of str.

        Returns
        -------
        EncodedBatch
            The features of its tokens.
        """
        table = as_table(X)
        if table.label_column is not None:
            self.label_column = table.label_column
        self._check_columns(table)
        which = list(range(table.n_columns))
        if self.hash_bits is not None:
            indptr, indices = self._program.hashed(
                table.native, which, self.hash_bits, self.threads
            )
            self.n_sparse = 2**self.hash_bits
        else:
            indptr, indices, fingerprints, token, line = self._program.learn(
                table.native, which, self.min_count, self.threads
            )
            self.fingerprints = fingerprints
            self.n_sparse = len(fingerprints)
            self._seen = (table, token, line)
        if self.n_sparse == 0:
            raise ValueError(
                f"{table.source}: no feature occurs {self.min_count} times; lower the minimum count"
            )
        self.n_columns = table.n_columns
        self._index = None
        self._names = None
        return EncodedBatch(table.offsets, self.n_sparse, indptr, indices)

    def transform(self, X: Any) -> EncodedBatch:
        """Encode a table with the features that are known; unknown ones are ignored.

        Parameters
        ----------
        X : ColumnTable or list of sequences
            With the columns of training, or without the label's.

        Returns
        -------
        EncodedBatch
            The features of its tokens.
        """
        table = as_table(X)
        which = column_layout(table, self.n_columns, self.label_column)
        if self.hash_bits is not None:
            indptr, indices = self._program.hashed(
                table.native, which, self.hash_bits, self.threads
            )
        else:
            if self._index is None:
                self._index = _native.FeatureIndex(self.fingerprints)
            indptr, indices = self._program.known(
                table.native, which, self._index, self.threads
            )
        return EncodedBatch(table.offsets, self.n_sparse, indptr, indices)

    def identity(self) -> Any:
        """Return what tells the features of one encoder from those of another."""
        return self.template.text, self.hash_bits, self.fingerprints

    def feature_names(self) -> list[str]:
        """Names of the features: the lines of the template with values in them."""
        if self.hash_bits is not None:
            return [f"hash:{j}" for j in range(self.n_sparse)]
        if self._seen is not None:
            return self.names_of(np.arange(self.n_sparse))
        if callable(self._names):
            self._names = self._names()
        return self._names or [f"feature:{j}" for j in range(self.n_sparse)]

    def names_of(self, features: NDArray[Any]) -> list[str]:
        """Names of some features.

        Parameters
        ----------
        features : int array
            Numbers of features.

        Returns
        -------
        list of str
            Their names.
        """
        if self.hash_bits is not None or self._seen is None:
            names = self.feature_names()
            return [names[j] for j in features.tolist()]
        table, token, line = self._seen
        which = list(range(table.n_columns))
        text, ends = self._program.names(table.native, which, token[features], line[features])
        places = ends.tolist()
        return [text[a:b].decode("utf-8") for a, b in itertools.pairwise(places)]

    def lines_of(self, features: NDArray[Any]) -> NDArray[Any]:
        """Lines of the template that gave some features; zeros where nobody knows any more.

        Parameters
        ----------
        features : int array
            Numbers of features.

        Returns
        -------
        int array
            A line for each.
        """
        return np.zeros_like(features) if self._seen is None else self._seen[2][features]

    def _check_columns(self, table: ColumnTable) -> None:
        """Make sure that the template finds its columns, and not the labels among them."""
        for line in self.template.lines:
            for command in line.commands:
                indirect = [command.offset] if command.mode == "indirect" else []
                for column in [command.column, *indirect]:
                    where = f"{self.template.source}, line {line.line}: {line.text}"
                    if column >= table.n_columns:
                        raise ValueError(
                            f"{where}: names column {column}, but {table.source} has "
                            f"{_columns(table.n_columns)}"
                        )
                    if column == self.label_column:
                        raise ValueError(
                            f"{where}: names column {column}, which holds the labels of "
                            f"{table.source}; expected another column"
                        )

    def __getstate__(self) -> dict[str, Any]:
        # Native objects are made again; names are written out, because the table stays behind.
        state = self.__dict__.copy()
        state["_names"] = None if self.hash_bits is not None else self.feature_names()
        for name in ("_program", "_index", "_seen"):
            state[name] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._program = _native.TemplateProgram(self.template.program())


def _columns(n: int) -> str:
    return "column 0 only" if n == 1 else f"columns 0 to {n - 1}"
