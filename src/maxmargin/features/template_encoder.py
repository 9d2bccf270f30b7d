"""`TemplateEncoder`: columns -> features by a template, in native code."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable
from maxmargin.features.counting import check_counting
from maxmargin.features.embeddings import Embeddings
from maxmargin.features.template import Template, TemplateLine, shorten

__all__ = ["LineFeatures", "TemplateEncoder", "as_table", "column_layout"]

#: Compressed rows of features: where each token's begin, and their numbers.
Rows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint32]]


def as_table(X: Any) -> ColumnTable:
    """Return ``X`` as a table: it is one, or rows of str."""
    return X if isinstance(X, ColumnTable) else ColumnTable.from_rows(X)


def column_layout(table: ColumnTable, n_columns: int, label_column: int | None) -> list[int]:
    """Where the columns of training are in a table.

    Parameters
    ----------
    table : ColumnTable
        It has the columns of training, or all of them but the label's, and perhaps an extra one.
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
    extra = table.extra
    present = [k for k in range(table.n_columns) if k != extra]
    found = len(present)
    if found == n_columns:
        return present
    if label_column is not None and found == n_columns - 1:
        present.insert(label_column, 0)
        return present
    expected = f"{n_columns}, as in training"
    if label_column is not None:
        expected += f" (the label in column {label_column}), or {n_columns - 1} without the label"
    columns = "1 column" if found == 1 else f"{found} columns"
    beside = "" if extra is None else f" beside column {extra}"
    raise ValueError(f"{table.source}: found {columns}{beside}; expected {expected}")


class LineFeatures:
    """The features that some lines of a template give: what is known of them.

    Parameters
    ----------
    program : list
        The lines, as `Template.program` gives them.

    Attributes
    ----------
    fingerprints : uint64 array
        What native code knows the features by.
    """

    def __init__(self, program: list[Any]) -> None:
        self.program = program
        self.fingerprints: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._native = _native.TemplateProgram(program)
        self._index: _native.FeatureIndex | None = None
        # Names are made when somebody asks: of where each feature was seen first, or from a file.
        self.names: list[str] | Callable[[], list[str]] | None = None
        # Of a file that is mapped: names of some features, and the lines that gave them.
        self.lookup: Callable[[NDArray[Any]], list[str]] | None = None
        self.lines: NDArray[Any] | None = None
        self._seen: tuple[ColumnTable, NDArray[np.uint32], NDArray[np.uint32]] | None = None
        # Features that were not learned, but taken over behind them: from whom, and which.
        self._joined: tuple[LineFeatures, NDArray[np.intp]] | None = None

    def __len__(self) -> int:
        return len(self.fingerprints)

    def learn(self, table: ColumnTable, min_count: int, threads: int) -> Rows:
        """Learn the features of a table; return its rows."""
        which = list(range(table.n_columns))
        indptr, indices, self.fingerprints, token, line = self._native.learn(
            table.native, which, min_count, threads
        )
        self._seen = (table, token, line)
        return indptr, indices

    def learner(self) -> _native.FeatureLearner:
        """Return what learns the features of a table that comes in pieces."""
        return self._native.learner()

    def native_names(
        self, table: ColumnTable, token: NDArray[np.uint32], line: NDArray[np.uint32]
    ) -> tuple[bytes, NDArray[np.int64]]:
        """Return the names that lines give tokens: end to end, and where each ends."""
        which = list(range(table.n_columns))
        return self._native.names(table.native, which, token, line)

    def join(self, earlier: LineFeatures) -> NDArray[np.int64]:
        """Know the features of an earlier training, too, behind those that were learned.

        Parameters
        ----------
        earlier : LineFeatures
            Of the same lines.

        Returns
        -------
        int64 array
            The number of each feature of the earlier training.
        """
        n = len(self)
        order = np.argsort(self.fingerprints)
        places = np.searchsorted(self.fingerprints, earlier.fingerprints, sorter=order)
        numbers = order[np.minimum(places, n - 1)] if n else np.zeros(len(earlier), np.int64)
        known = np.zeros(len(earlier), bool)
        if n:
            known = self.fingerprints[numbers] == earlier.fingerprints
        missing = np.flatnonzero(~known)
        numbers = numbers.astype(np.int64)
        numbers[missing] = n + np.arange(len(missing))
        self.fingerprints = np.concatenate([self.fingerprints, earlier.fingerprints[missing]])
        self._index, self._joined = None, (earlier, missing)
        return numbers

    def index(self) -> _native.FeatureIndex:
        """Return what finds the features; no two of them may have one fingerprint."""
        if self._index is None:
            self._index = _native.FeatureIndex(self.fingerprints)
        return self._index

    def known(self, table: ColumnTable, which: list[int], threads: int) -> Rows:
        """Return the rows of a table with the features that are known."""
        return self._native.known(table.native, which, self.index(), threads)

    def hashed(self, table: ColumnTable, which: list[int], bits: int, threads: int) -> Rows:
        """Return the rows of a table, each feature by its hash."""
        return self._native.hashed(table.native, which, bits, threads)

    def lines_of(self, features: NDArray[Any]) -> NDArray[Any]:
        """Lines that gave some features; zeros where nobody knows any more."""
        lines = np.zeros_like(features)
        if self._seen is not None:
            learned = features < len(self._seen[2])
            lines[learned] = self._seen[2][features[learned]]
        elif self.lines is not None:
            learned = features < len(self.lines)
            lines[learned] = self.lines[features[learned]]
        return lines

    def all_names(self) -> list[str]:
        """Names of all features."""
        return self.names_of(np.arange(len(self)))

    def names_of(self, features: NDArray[Any]) -> list[str]:
        """Names of some features: the lines with values in them."""
        if len(features) == 0:
            return []
        if self._joined is not None:
            earlier, which_of_them = self._joined
            n = len(self) - len(which_of_them)
            own = features < n
            names = np.empty(len(features), dtype=object)
            names[own] = self._own_names(features[own])
            names[~own] = earlier.names_of(which_of_them[features[~own] - n])
            return names.tolist()
        return self._own_names(features)

    def name_table(self, features: NDArray[Any]) -> tuple[bytes, NDArray[np.int64]]:
        """Names of some features in UTF-8, end to end, and the places between which they are."""
        if self._seen is not None and self._joined is None:
            table, token, line = self._seen
            return self.native_names(table, token[features], line[features])
        encoded = [name.encode("utf-8") for name in self.names_of(features)]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return b"".join(encoded), ends

    def _own_names(self, features: NDArray[Any]) -> list[str]:
        """Names of features that were learned, or that a file has."""
        if len(features) == 0:
            return []
        if self._seen is not None:
            table, token, line = self._seen
            text, ends = self.native_names(table, token[features], line[features])
            return [text[a:b].decode("utf-8") for a, b in itertools.pairwise(ends.tolist())]
        if self.lookup is not None:
            return self.lookup(features)
        if callable(self.names):
            self.names = self.names()
        if self.names is None:
            return [f"feature:{j}" for j in features.tolist()]
        return [self.names[j] for j in features.tolist()]

    def __getstate__(self) -> dict[str, Any]:
        # Native objects are made again; names are written out, because the table stays behind.
        native = dict.fromkeys(("_native", "_index", "_seen", "_joined"))
        if not self.fingerprints.flags.owndata:
            native["fingerprints"] = np.array(self.fingerprints)
        mapped = {"lookup": None, "lines": None if self.lines is None else np.array(self.lines)}
        return {**self.__dict__, "names": self.all_names(), **native, **mapped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._native = _native.TemplateProgram(self.program)


class TemplateEncoder:
    """Turns columns into an `EncodedBatch` by a template; a twin of `FeatureEncoder`.

    Parameters
    ----------
    template : Template
        Which features a token gets.
    min_count : int
        Features that occur in fewer tokens of the training table are left out.
    hash_bits : int or None
        With a number, there is no list of features: a feature is one of 2^hash_bits by its hash.
    label_column : int or None
        The column of the training table that holds the labels; no feature may use it. A table that
        knows its label column says so itself.
    threads : int
        For expansion; the result does not depend on it.
    embeddings : Embeddings or None
        Vectors of words, which tokens have as dense features.

    Attributes
    ----------
    n_sparse, n_pair : int
        Number of features of a label, and of features of two neighbouring labels (B lines).
    n_dense : int
        Number of dense features, which are those of the embeddings.
    fingerprints : uint64 array or None
        What native code knows the features by; None with hashing.
    n_columns : int
        Number of columns of the training table, the label's included; 0 before fitting.
    label_column : int or None
        The label column of the training table.
    """

    kind = "columns"
    vocabulary = None

    double = False  # its features have no values; as in `FeatureEncoder`

    def __init__(
        self,
        template: Template,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        label_column: int | None = None,
        threads: int = 1,
        embeddings: Embeddings | None = None,
    ) -> None:
        check_counting(min_count, hash_bits)
        self.template = template
        self.embeddings = embeddings
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.label_column = label_column
        self.threads = threads
        self.n_columns = 0
        self.unigrams = LineFeatures(template.program())
        self.bigrams = LineFeatures(template.program(bigrams=True))
        self._label_given = label_column
        if hash_bits is not None and self.bigrams.program:
            raise ValueError(
                f"{template.source}: B lines with commands need a list of the features, which "
                "hash_bits does without (each would have 2^hash_bits times all pairs of labels)"
            )

    def fresh(self) -> TemplateEncoder:
        """Return an encoder with the same parameters that knows nothing."""
        return TemplateEncoder(
            self.template,
            min_count=self.min_count,
            hash_bits=self.hash_bits,
            label_column=self._label_given,
            threads=self.threads,
            embeddings=self.embeddings,
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
        pair_fingerprints: NDArray[np.uint64] | None = None,
        pair_names: Callable[[], list[str]] | None = None,
        min_count: int = 1,
        embeddings: Embeddings | None = None,
    ) -> TemplateEncoder:
        """Make an encoder that knows features, as a model file has them.

        Parameters
        ----------
        template, n_columns, label_column, hash_bits, fingerprints, min_count, embeddings
            As the attributes of the encoder that was saved.
        names : callable
            Gives the names of the features when somebody asks.
        pair_fingerprints, pair_names
            The same of the features of two labels.

        Returns
        -------
        TemplateEncoder
            Ready for `transform`.
        """
        encoder = cls(
            template, label_column=label_column, hash_bits=hash_bits, embeddings=embeddings
        )
        encoder.min_count = min_count
        encoder.n_columns = n_columns
        parts = (
            (encoder.unigrams, fingerprints, names),
            (encoder.bigrams, pair_fingerprints, pair_names),
        )
        for features, known, named in parts:
            if known is not None:
                features.fingerprints = known
            features.names = named
        return encoder

    @property
    def n_sparse(self) -> int:
        """Number of features of a label."""
        if self.hash_bits is not None:
            return 2**self.hash_bits if self.n_columns else 0
        return len(self.unigrams)

    @property
    def n_dense(self) -> int:
        """Number of dense features."""
        return 0 if self.embeddings is None else self.embeddings.n_features

    @property
    def n_pair(self) -> int:
        """Number of features of two neighbouring labels."""
        return len(self.bigrams)

    @property
    def fingerprints(self) -> NDArray[np.uint64] | None:
        """What native code knows the features by; None with hashing."""
        return None if self.hash_bits is not None else self.unigrams.fingerprints

    def fit_transform(self, X: Any) -> EncodedBatch:
        """Learn the features of a table and encode it.

        After an error the encoder is as it was before.

        Parameters
        ----------
        X : ColumnTable or list of sequences
            The training table, or rows of str.

        Returns
        -------
        EncodedBatch
            The features of its tokens.
        """
        table, label_column = self._checked(X)
        unigrams, bigrams = LineFeatures(self.unigrams.program), LineFeatures(self.bigrams.program)
        pairs: Rows | tuple[None, None] = (None, None)
        if self.hash_bits is not None:
            which = list(range(table.n_columns))
            rows = unigrams.hashed(table, which, self.hash_bits, self.threads)
        else:
            rows = unigrams.learn(table, self.min_count, self.threads)
            if bigrams.program:
                pairs = bigrams.learn(table, self.min_count, self.threads)
            if len(unigrams) == 0:
                raise ValueError(
                    f"{table.source}: no feature occurs {self.min_count} times; lower the minimum "
                    "count"
                )
        self.unigrams, self.bigrams = unigrams, bigrams
        self.n_columns, self.label_column = table.n_columns, label_column
        return self._batch(table, list(range(table.n_columns)), rows, pairs)

    def begin(self, X: Any) -> ColumnTable:
        """Take note of the columns of the first piece of a table; later ones must have them too.

        Parameters
        ----------
        X : ColumnTable or list of sequences
            The piece.

        Returns
        -------
        ColumnTable
            The same.
        """
        table, label_column = self._checked(X)
        if self.n_columns == 0:
            self.n_columns, self.label_column = table.n_columns, label_column
        elif table.n_columns != self.n_columns:
            raise ValueError(
                f"{table.source}: found {table.n_columns} columns; expected {self.n_columns}, as "
                "in the sequences before"
            )
        return table

    def _checked(self, X: Any) -> tuple[ColumnTable, int | None]:
        table = as_table(X)
        label_column = self._label_given if table.label_column is None else table.label_column
        self._check_columns(table, label_column)
        return table, label_column

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
        if self.n_columns == 0:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this TemplateEncoder is not fitted; call fit_transform first")
        table = as_table(X)
        which = column_layout(table, self.n_columns, self.label_column)
        pairs: Rows | tuple[None, None] = (None, None)
        if self.hash_bits is not None:
            rows = self.unigrams.hashed(table, which, self.hash_bits, self.threads)
        else:
            rows = self.unigrams.known(table, which, self.threads)
            if self.bigrams.program:
                pairs = self.bigrams.known(table, which, self.threads)
        return self._batch(table, which, rows, pairs)

    def _batch(
        self, table: ColumnTable, which: list[int], rows: Rows, pairs: Rows | tuple[None, None]
    ) -> EncodedBatch:
        dense = None
        if self.embeddings is not None:
            dense = self.embeddings.rows(table, which[self.embeddings.column])
        return EncodedBatch(
            table.offsets,
            self.n_sparse,
            *rows,
            dense=dense,
            n_pair=self.n_pair,
            pair_indptr=pairs[0],
            pair_indices=pairs[1],
        )

    def identity(self) -> Any:
        """Return what differs between encoders with different features."""
        features = (self.unigrams.fingerprints, self.bigrams.fingerprints)
        vectors = () if self.embeddings is None else (self.embeddings.identity(),)
        return self.template.text, self.hash_bits, features, *vectors

    def feature_names(self) -> list[str]:
        """Names of the features: the lines of the template with values in them.

        Those of embeddings come behind them.
        """
        return self.names_of(np.arange(self.n_sparse + self.n_dense))

    def names_of(self, features: NDArray[Any]) -> list[str]:
        """Names of some features.

        Parameters
        ----------
        features : int array
            Numbers of features; dense ones come behind the others.

        Returns
        -------
        list of str
            Their names.
        """
        if self.embeddings is not None and (features >= self.n_sparse).any():
            names, dense = np.empty(len(features), dtype=object), features >= self.n_sparse
            names[~dense] = self._sparse_names(features[~dense])
            every = self.embeddings.names()
            names[dense] = [every[j - self.n_sparse] for j in features[dense].tolist()]
            return names.tolist()
        return self._sparse_names(features)

    def _sparse_names(self, features: NDArray[Any]) -> list[str]:
        if self.hash_bits is not None:
            return [f"hash:{j}" for j in features.tolist()]
        return self.unigrams.names_of(features)

    def pair_names(self) -> list[str]:
        """Names of the features of two neighbouring labels."""
        return self.bigrams.all_names()

    def _check_columns(self, table: ColumnTable, label_column: int | None) -> None:
        """Make sure that the template finds its columns, and not the labels among them."""
        if self.embeddings is not None:
            column, source = self.embeddings.column, self.embeddings.source
            if column >= table.n_columns or column == label_column:
                what = "holds the labels" if column == label_column else "is not there"
                raise ValueError(
                    f"{source}: the words are said to be in column {column}, which {what}: "
                    f"{table.source} has {_columns(table.n_columns)}; expected another column"
                )
        for line in self.template.lines:
            for command in line.commands:
                indirect = [command.offset] if command.mode == "indirect" else []
                for column in [command.column, *indirect]:
                    if column >= table.n_columns:
                        raise ValueError(
                            f"{self._where(line)}: names column {column}, but {table.source} has "
                            f"{_columns(table.n_columns)}"
                        )
                    if column == label_column:
                        raise ValueError(
                            f"{self._where(line)}: names column {column}, which holds the labels "
                            f"of {table.source}; expected another column"
                        )

    def _where(self, line: TemplateLine) -> str:
        """Put the place of a line into words."""
        return f"{self.template.source}, line {line.line}: {shorten(line.text)}"


def _columns(n: int) -> str:
    return "column 0 only" if n == 1 else f"columns 0 to {n - 1}"
