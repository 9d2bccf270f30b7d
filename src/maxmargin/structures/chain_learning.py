"""What a chain learns from its training data before any weight: its labels and its features."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.features import EncodedBatch, FeatureEncoder, encode_labels
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.structures.chain_options import allowed_mask, cost_matrix, explicit_labels
from maxmargin.structures.kernels import Kernel, token_numbers

__all__ = [
    "EdgeMask",
    "Encoder",
    "LearnedFeatures",
    "LearnedLabels",
    "learn_features",
    "learn_labels",
    "order_labels",
]

Encoder: TypeAlias = FeatureEncoder | TemplateEncoder

MAX_LABELS = 2**24 - 1  # of the native index type


class EdgeMask(NamedTuple):
    """Which edges decoding may use; uint8, in the order of ``labels_``, as native code takes it."""

    transition: NDArray[np.uint8]  # [L * L]
    start: NDArray[np.uint8]  # [L]
    end: NDArray[np.uint8]  # [L]


class LearnedLabels(NamedTuple):
    """The labels of the training data, and what the user's options say about them.

    Attributes
    ----------
    classes : list
        The labels in the order of the user's list, or sorted.
    columns : array of int
        The place of each class among the columns of the weights: the most frequent one first.
    codes : int32 array of shape (n_tokens,)
        The labels of all tokens, as columns.
    cost : array of shape (L, L) or None
        The cost of errors, in the order of the columns; None for Hamming.
    mask : EdgeMask or None
        What may follow, begin and end; None for everything.
    """

    classes: list[Any]
    columns: NDArray[np.intp]
    codes: NDArray[np.int32]
    cost: NDArray[np.float64] | None
    mask: EdgeMask | None


class LearnedFeatures(NamedTuple):
    """The features of the training data.

    Attributes
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        It knows the features.
    batch : EncodedBatch
        The training data in numbers.
    kernel : Kernel or None
        With its parameters as numbers.
    """

    encoder: Encoder
    batch: EncodedBatch
    kernel: Kernel | None


def learn_labels(Y: Any, labels: Any, loss: Any, allowed: Any) -> LearnedLabels:
    """Learn the labels of the training data and put them in order.

    Parameters
    ----------
    Y : list of label sequences or LabelCodes
        The training labels.
    labels, loss, allowed
        Parameters of `Chain`.

    Returns
    -------
    LearnedLabels
        What there is to know.

    Raises
    ------
    ValueError, TypeError
        If an option does not fit the labels, or there are too many of them.
    """
    known = None if labels is None else explicit_labels(labels)
    codes, classes = encode_labels(Y, known)
    counts = np.bincount(codes, minlength=len(classes))
    columns, cost, mask = order_labels(classes, counts, loss, allowed)
    return LearnedLabels(classes, columns, columns.astype(np.int32)[codes], cost, mask)


class OrderedLabels(NamedTuple):
    """What `LearnedLabels` has besides the codes of tokens."""

    columns: NDArray[np.intp]
    cost: NDArray[np.float64] | None
    mask: EdgeMask | None


def order_labels(
    classes: list[Any], counts: NDArray[Any], loss: Any, allowed: Any
) -> OrderedLabels:
    """Put labels in the order of the weights.

    Parameters
    ----------
    classes : list
        The labels.
    counts : int array
        How many tokens have each of them.
    loss, allowed
        Parameters of `Chain`.

    Returns
    -------
    OrderedLabels
        The place of each class, and what the options say in that order.
    """
    n_labels = len(classes)
    if n_labels > MAX_LABELS:
        raise ValueError(f"there are {n_labels} labels; at most {MAX_LABELS} fit the index type")
    # Native code goes through the labels of a row of weights from the first to the last. With the
    # most frequent labels in front, the weights that matter share few cache lines. A stable sort
    # keeps ties in the order of the classes.
    order = np.argsort(-np.asarray(counts, dtype=np.int64), kind="stable")
    columns = np.empty(n_labels, dtype=np.intp)
    columns[order] = np.arange(n_labels)
    cost = cost_matrix(loss, classes)
    if cost is not None:
        cost = np.ascontiguousarray(cost[np.ix_(order, order)])
    mask = None
    parts = allowed_mask(allowed, classes)
    if parts is not None:
        transition, start, end = parts
        mask = EdgeMask(
            transition[np.ix_(order, order)].astype(np.uint8).ravel(),
            start[order].astype(np.uint8),
            end[order].astype(np.uint8),
        )
    return OrderedLabels(columns, cost, mask)


def learn_features(X: Any, encoder: Encoder, kernel: Kernel | None, dtype: Any) -> LearnedFeatures:
    """Learn the features of the training data with a fresh copy of an encoder.

    Parameters
    ----------
    X : list of sequences or ColumnTable
        The training inputs.
    encoder : FeatureEncoder or TemplateEncoder
        It is not changed.
    kernel : Kernel or None
        The kernel between tokens.
    dtype : "float32" or "float64"
        As which values of sparse features are kept.

    Returns
    -------
    LearnedFeatures
        The fitted copy, the data in numbers, and the kernel with its parameters as numbers.
    """
    fitted = encoder.fresh()
    fitted.double = str(dtype) == "float64"
    batch = fitted.fit_transform(X if kernel is None else token_numbers(X, kernel))
    if kernel is not None:
        if batch.n_pair:
            raise NotCompatibleError(
                f"there are {batch.n_pair} pair features (lines of the template that begin "
                "with B), which have weights; with a kernel, only the features of single "
                'tokens do without. Leave these lines out, or use kernel="linear"'
            )
        kernel = kernel.resolved(batch)
    return LearnedFeatures(fitted, batch, kernel)
