"""Sequences that were encoded before: what a chain takes in the place of X and y."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.batch import EncodedBatch

__all__ = ["EncodedSequences"]


class EncodedSequences:
    """Sequences in numbers with their labels, and the encoder that made the numbers.

    Attributes
    ----------
    batch : EncodedBatch
        The sequences.
    codes : int32 array of shape (n_tokens,)
        The labels: places in the order of the weights, the most frequent label first.
    classes : list
        The labels, sorted or in the order that somebody asked for.
    label_counts : int64 array of shape (n_labels,)
        How many tokens have each class.
    sequence_weight : array or None
        A factor of C for each sequence; None: 1 for all.
    """

    batch: EncodedBatch
    codes: NDArray[np.int32]
    classes: list[Any]
    label_counts: NDArray[np.int64]
    sequence_weight: NDArray[np.float64] | None

    def __len__(self) -> int:
        return self.batch.n_sequences

    @abstractmethod
    def encoder_for(self, asked: Any, dtype: Any) -> Any:
        """Return the encoder that made the numbers.

        Parameters
        ----------
        asked : encoder
            The one of the chain that is to be trained. One that asks for other features than were
            made is refused.
        dtype : "float32" or "float64"
            Type of the weights.
        """
