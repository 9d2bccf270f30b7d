"""Tokens with named features and labels, as the fields of the lines of an item file."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch
    from maxmargin.features.columns import LabelCodes

__all__ = ["NamedFeatures", "short_numbers", "token_fields"]


class NamedFeatures(NamedTuple):
    """What an item file holds.

    Attributes
    ----------
    batch : EncodedBatch
        Tokens with sparse features only.
    names : list of str
        The names of the features.
    labels : LabelCodes
        The labels of the tokens, which are texts.
    order : int array or None
        The places of the batch's entries in the order in which they are written; those of a token
        stay together. None: as they are.
    weights : float32 array of shape (n_sequences,) or None
        The weights of the sequences.
    """

    batch: EncodedBatch
    names: list[str]
    labels: LabelCodes
    order: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None


def short_numbers(values: NDArray[Any]) -> list[str]:
    """Return 4-byte numbers as short texts that are read as the same numbers.

    Parameters
    ----------
    values : float32 array
        The numbers.

    Returns
    -------
    list of str
        As many texts; whole numbers are written without a point.
    """
    distinct, which = np.unique(values, return_inverse=True)
    texts = [str(value).removesuffix(".0") for value in distinct]
    return [texts[k] for k in which.tolist()]


def token_fields(
    features: NamedFeatures, fields: list[str], *, valued: bool
) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield for each sequence the label and the fields of each token.

    Parameters
    ----------
    features : NamedFeatures
        What is written.
    fields : list of str
        What is written for a feature, without its value.
    valued : bool
        Whether the value one is written, too.

    Yields
    ------
    list of (int, list of str)
        For each token the code of its label and its fields.
    """
    batch, order = features.batch, features.order
    assert batch.indptr is not None
    assert batch.indices is not None
    if valued and batch.values is None:
        fields = [f"{field}:1" for field in fields]
    for begin, end in itertools.pairwise(batch.offsets.tolist()):
        ends = batch.indptr[begin : end + 1].tolist()
        first, last = ends[0], ends[-1]
        entries = slice(first, last) if order is None else order[first:last]
        row = [fields[k] for k in batch.indices[entries].tolist()]
        if batch.values is not None:
            numbers = short_numbers(batch.values[entries])
            row = [
                field if number == "1" and not valued else f"{field}:{number}"
                for field, number in zip(row, numbers, strict=True)
            ]
        codes = features.labels.codes[begin:end].tolist()
        spans = zip(codes, ends[:-1], ends[1:], strict=True)
        yield [(code, row[a - first : b - first]) for code, a, b in spans]
