"""Raw data to numbers: vocabularies, encoders and encoded batches."""

from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.encode import (
    FeatureEncoder,
    check_lengths,
    encode_labels,
    sequence_lengths,
)

__all__ = [
    "EncodedBatch",
    "FeatureEncoder",
    "Vocabulary",
    "check_lengths",
    "encode_labels",
    "sequence_lengths",
]
