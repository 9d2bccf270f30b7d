"""`FunctionEncoder`: columns -> features by a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder

__all__ = ["FunctionEncoder"]


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
    min_count, hash_bits
        As in `FeatureEncoder`.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        label_column: int | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
    ) -> None:
        super().__init__(min_count=min_count, hash_bits=hash_bits)
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
        )

    def fit_transform(self, X: Any) -> EncodedBatch:
        """Learn the features that the function gives and encode X; see `FeatureEncoder`."""
        n_columns, label_column = 0, self._label_given
        if isinstance(X, ColumnTable):
            n_columns = X.n_columns
            label_column = label_column if X.label_column is None else X.label_column
        batch = super().fit_transform(self._call(X, n_columns, label_column))
        self.n_columns, self.label_column = n_columns, label_column
        return batch

    def transform(self, X: Any) -> EncodedBatch:
        """Encode X with the features that are known; see `FeatureEncoder`."""
        return super().transform(self._call(X, self.n_columns, self.label_column))

    def _call(self, X: Any, n_columns: int, label_column: int | None) -> list[Any]:
        sequences = X
        if isinstance(X, ColumnTable):
            from maxmargin.features.template_encoder import column_layout

            layout = column_layout(X, n_columns or X.n_columns, label_column)
            sequences = X.rows([c for k, c in enumerate(layout) if k != label_column])
        features = []
        for i, sequence in enumerate(sequences):
            tokens = list(self.function(sequence))
            if len(tokens) != len(sequence):
                raise ValueError(
                    f"the feature function returned features of {len(tokens)} tokens for sequence "
                    f"{i}; expected {len(sequence)}, one for each token"
                )
            features.append(tokens)
        return features
