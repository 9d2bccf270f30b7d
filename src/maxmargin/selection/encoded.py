"""Sequences in numbers, with their true labels: what models are trained and scored on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.features.batch import EncodedBatch, ragged_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features.columns import LabelCodes
    from maxmargin.structures.chain import Chain

__all__ = ["Encoded", "encode_labelled"]


class Encoded(NamedTuple):
    """Sequences in numbers, with their true labels.

    Attributes
    ----------
    batch : EncodedBatch
        The features.
    codes : int32 array of shape (n_tokens,)
        The labels: places in ``names``.
    names : list
        The labels of the chain in its own order, and behind them any that it does not know.
    """

    batch: EncodedBatch
    codes: NDArray[np.int32]
    names: list[Any]

    def take(self, sequences: NDArray[Any]) -> Encoded:
        """Return some of the sequences."""
        codes = self.codes[ragged_ranges(self.batch.offsets, sequences)]
        return Encoded(self.batch.take(sequences), codes, self.names)


def encode_labelled(chain: Chain, data: Any, labels: LabelCodes) -> Encoded:
    """Encode data with the features and labels that a chain knows.

    Parameters
    ----------
    chain : Chain
        Prepared.
    data : ColumnTable or Items
        What is encoded.
    labels : LabelCodes
        Its labels.

    Returns
    -------
    Encoded
        Labels that the chain does not know get numbers behind those it knows.
    """
    names = [str(label) for label in chain.labels_]
    places = {name: k for k, name in enumerate(names)}
    for name in labels.names:
        if name not in places:
            places[name] = len(names)
            names.append(name)
    numbers = np.array([places[name] for name in labels.names], dtype=np.int32)
    return Encoded(chain.encoder.transform(data), numbers[labels.codes], names)
