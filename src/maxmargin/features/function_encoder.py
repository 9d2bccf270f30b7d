"""`FunctionEncoder`: columns -> features by a Python function."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder

__all__ = ["FunctionEncoder", "user_line"]


class FunctionEncoder(FeatureEncoder):
    """An encoder that asks a function for the features of each sequence.

    Parameters
    ----------
    function : callable
        Takes a sequence, a list of tokens, each a list of str (the columns without the label's),
        and returns a token's features for each: lists of str or dicts, as `FeatureEncoder` reads
        them. What it is given as ``X`` of another kind than a `ColumnTable` it gets as it is.
    label_column : int or None
        The column of tables that holds the labels in training.
    min_count, hash_bits, threads
        As in `FeatureEncoder`.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        label_column: int | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(min_count=min_count, hash_bits=hash_bits, threads=threads)
        self.function = function
        self.label_column = label_column
        self._label_given = label_column
        self.n_columns = 0  # of the training table; 0 if there was none

    def fresh(self) -> FunctionEncoder:
        """Return an encoder with the same parameters that knows nothing."""
        return FunctionEncoder(
            self.function,
            label_column=self._label_given,
            min_count=self.min_count,
            hash_bits=self.hash_bits,
            threads=self.threads,
        )

    def fit_transform(self, X: Any) -> EncodedBatch:
        """Learn the features that the function gives and encode X; see `FeatureEncoder`."""
        n_columns, label_column = self._columns_of(X)
        batch = super().fit_transform(self._call(X, n_columns, label_column))
        self.n_columns, self.label_column = n_columns, label_column
        return batch

    def features_of(self, X: Any) -> list[Any]:
        """Return what the function makes of a piece of the training data."""
        self.n_columns, self.label_column = self._columns_of(X)
        return self._call(X, self.n_columns, self.label_column)

    def _columns_of(self, X: Any) -> tuple[int, int | None]:
        """Return the number of columns of a training table (0: it is none), and the label's."""
        if not isinstance(X, ColumnTable):
            return 0, self._label_given
        return X.n_columns, self._label_given if X.label_column is None else X.label_column

    def transform(self, X: Any) -> EncodedBatch:
        """Encode X with the features that are known; see `FeatureEncoder`."""
        return super().transform(self._call(X, self.n_columns, self.label_column))

    def _call(self, X: Any, n_columns: int, label_column: int | None) -> list[Any]:
        sequences, table = X, None
        if isinstance(X, ColumnTable):
            from maxmargin.features.template_encoder import column_layout

            table = X
            layout = column_layout(X, n_columns or X.n_columns, label_column)
            sequences = X.rows([c for k, c in enumerate(layout) if k != label_column])
        features = []
        for i, sequence in enumerate(sequences):
            tokens = self._features_of(sequence, i, table)
            if len(tokens) != len(sequence):
                raise ValueError(
                    f"the feature function returned features of {len(tokens)} tokens for sequence "
                    f"{i}; expected {len(sequence)}, one for each token"
                )
            features.append(tokens)
        return features

    def _features_of(self, sequence: Any, i: int, table: ColumnTable | None) -> list[Any]:
        """Call the function for sequence `i`; what it raises is passed on, with a note on where."""
        tokens: list[Any] = []
        answer = None
        try:
            answer = self.function(sequence)
            if isinstance(answer, Iterable):
                tokens.extend(answer)  # which may be the user's code as well, if it is a generator
        except Exception as error:
            place = f"sequence {i}"
            if isinstance(answer, Iterator):
                place += f", token {len(tokens)}"
            if table is not None and table.native.n_lines:
                line = table.native.line_of(int(table.offsets[i]))
                place += f" (the sequence begins at {table.source}, line {line})"
            error.add_note(f"{user_line(error, self.function)}in the feature function at {place}")
            raise
        if not isinstance(answer, Iterable):
            raise TypeError(
                f"the feature function returned {type(answer).__name__} for sequence {i}; expected "
                "a list of features for each token"
            )
        return tokens


def user_line(error: BaseException, function: Callable[[Any], Any] | None = None) -> str:
    """Say at which line of a user's file an exception came up.

    Parameters
    ----------
    error : BaseException
        The exception, with its traceback; if another one is its cause, that one counts.
    function : callable or None
        The user's function: its file is where the user looks first, not a library that it calls.

    Returns
    -------
    str
        Such as ``"features.py, line 12, "``; empty if there is no such line.
    """
    import inspect

    cause = error if error.__cause__ is None else error.__cause__
    code = getattr(inspect.unwrap(function) if function is not None else None, "__code__", None)
    file = getattr(code, "co_filename", None)
    frames = list(traceback.walk_tb(cause.__traceback__))
    of_user = [(frame, line) for frame, line in frames if frame.f_code.co_filename == file]
    if not of_user:
        return ""
    frame, line = of_user[-1]
    return f"{frame.f_code.co_filename}, line {line}, "
