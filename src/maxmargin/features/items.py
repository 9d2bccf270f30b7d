"""Sequences whose features are already expanded, as item files hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import LabelCodes

__all__ = ["Items"]


@dataclass(frozen=True, eq=False)
class Items:
    """Sequences of tokens with features and labels, as read from a file.

    Parameters
    ----------
    batch : EncodedBatch
        The tokens and their features.
    codes : int32 array of shape (n_tokens,)
        The label of each token, as a position in ``label_names``.
    label_names : list of str
        The labels, in order of appearance.
    vocabulary : Vocabulary
        The names of the features.
    sequence_weight : float32 array of shape (n_sequences,), optional
        The weight of each sequence. None if the file gives none.
    """

    batch: EncodedBatch
    codes: NDArray[np.int32]
    label_names: list[str]
    vocabulary: Vocabulary
    sequence_weight: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return self.batch.n_sequences

    @property
    def label_codes(self) -> LabelCodes:
        """The labels as numbers, as training takes them."""
        return LabelCodes(self.codes, self.label_names, self.batch.offsets)

    def labels(self) -> list[list[str]]:
        """Give the labels of every sequence."""
        return self.label_codes.sequences()

    def features(self, i: int) -> list[list[tuple[str, float]]]:
        """Give the (name, value) pairs of each token of sequence ``i``."""
        batch = self.batch
        assert batch.indptr is not None
        assert batch.indices is not None
        n = batch.n_sequences
        if not -n <= i < n:
            raise IndexError(f"sequence {i} of {n}")
        i %= n
        tokens = []
        for t in range(int(batch.offsets[i]), int(batch.offsets[i + 1])):
            a, b = int(batch.indptr[t]), int(batch.indptr[t + 1])
            values = [1.0] * (b - a) if batch.values is None else batch.values[a:b].tolist()
            names = [self.vocabulary.name(k) for k in batch.indices[a:b].tolist()]
            tokens.append(list(zip(names, values, strict=True)))
        return tokens
