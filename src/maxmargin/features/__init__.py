"""Raw data to numbers: vocabularies, encoders and encoded batches."""

from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable, LabelCodes
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.items import Items
from maxmargin.features.labels import encode_labels
from maxmargin.features.lengths import check_lengths, sequence_lengths

__all__ = [
    "ColumnTable",
    "EncodedBatch",
    "FeatureEncoder",
    "Items",
    "LabelCodes",
    "Vocabulary",
    "check_lengths",
    "encode_labels",
    "sequence_lengths",
]
