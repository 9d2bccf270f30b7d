"""Lengths of sequences, and the check that every token has a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable, LabelCodes
from maxmargin.features.items import Items
from maxmargin.features.labels import LABEL_SHAPE, label_sequences
from maxmargin.features.sequences import SHAPE, as_list, lengths_of

__all__ = ["check_lengths", "sequence_lengths"]


def sequence_lengths(X: Any) -> NDArray[np.int64]:
    """Give the number of tokens of each sequence, of whatever kind ``X`` is.

    Parameters
    ----------
    X : list of sequences, EncodedBatch or ColumnTable

    Returns
    -------
    int64 array of shape (n_sequences,)
    """
    if isinstance(X, EncodedBatch):
        return X.lengths
    if isinstance(X, ColumnTable):
        return np.diff(X.offsets)
    if isinstance(X, Items):
        return X.batch.lengths
    return lengths_of("X", as_list("X", X, SHAPE, 3), SHAPE)


def check_lengths(X: Any, y: Any) -> None:
    """Make sure that there is a label for every token.

    Parameters
    ----------
    X : list of sequences, EncodedBatch or ColumnTable
    y : list of sequences of labels, or LabelCodes

    Raises
    ------
    ValueError
        If there are not as many sequences, or if a sequence has not as many labels as tokens; the
        message names the first one.
    """
    of_x = sequence_lengths(X)
    if isinstance(y, LabelCodes):
        of_y = np.diff(y.offsets)
    else:
        of_y = lengths_of("y", label_sequences(y), LABEL_SHAPE)
    if len(of_x) != len(of_y):
        raise ValueError(f"X has {len(of_x)} sequences and y has {len(of_y)}; expected as many")
    if not np.array_equal(of_x, of_y):
        i = int(np.argmax(of_x != of_y))
        raise ValueError(
            f"sequence {i} has {of_x[i]} tokens in X and {of_y[i]} labels in y; "
            "expected one label for each token"
        )
