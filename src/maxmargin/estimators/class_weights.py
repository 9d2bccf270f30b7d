"""``class_weight``: factors of C, or of the cost of tokens, by class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators.argument_types import ExampleWeights
from maxmargin.features.labels import encode_labels
from maxmargin.features.lengths import check_lengths, sequence_lengths
from maxmargin.printable import quoted
from maxmargin.structures.adapter import real_number
from maxmargin.structures.chain_options import sequence_weights, token_weights

__all__ = ["class_factors", "weights_of_tokens"]


def class_factors(
    given: Any, codes: NDArray[np.int32], classes: list[Any], weights: Any = None
) -> NDArray[np.float64]:
    """Return a factor for each class.

    Parameters
    ----------
    given : mapping or "balanced"
        Factors by class; classes that it does not have count 1. "balanced": n / (K n_c) for a class
        with n_c of the n examples.
    codes : int array of shape (n,)
        The classes of the examples, as places in `classes`.
    classes : list
        The classes.
    weights : array of shape (n,) or None
        The weights by which examples are counted.

    Returns
    -------
    array of shape (n_classes,)
        The factors.

    Raises
    ------
    ValueError
        If a class is not known, or a factor is no number from 0 to 1e12.
    """
    factors = np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(codes, weights, len(classes))
        present = counts > 0
        factors[present] = counts.sum() / (np.count_nonzero(present) * counts[present])
        return factors
    if not isinstance(given, Mapping):
        raise ValueError(f'class_weight is {quoted(given)}; expected a dict, "balanced" or None')
    place = {label: k for k, label in enumerate(classes)}
    for label, value in given.items():
        number = real_number(value)
        if label not in place:
            raise ValueError(
                f"class_weight has a weight of {quoted(label)}, which is no class of y"
            )
        if number is None or not 0 <= number <= 1e12:
            raise ValueError(
                f"class_weight of {quoted(label)} is {value!r}; expected a number from 0 to 1e12"
            )
        factors[place[label]] = number
    return factors


def weights_of_tokens(
    given: Any,
    X: Any,
    y: Any,
    *,
    labels: Any = None,
    token_weight: Any = None,
    sample_weight: ExampleWeights = None,
) -> list[NDArray[np.float64]]:
    """Return the weights of tokens with the factors of their true labels.

    Parameters
    ----------
    given : mapping or "balanced"
        As for `class_factors`.
    X, y : list of sequences
        Inputs and labels.
    labels : list or None
        Labels that may have a factor although y does not have them.
    token_weight : list of arrays or None
        Weights of tokens that were given.
    sample_weight : array of shape (n_sequences,) or None
        By which "balanced" counts the tokens of a sequence.

    Returns
    -------
    list of arrays
        One for each sequence.
    """
    check_lengths(X, y)
    lengths = sequence_lengths(X)
    codes, classes = encode_labels(y)
    classes += [label for label in labels or () if label not in set(classes)]
    own = token_weights(token_weight, lengths)
    counted = own
    if sample_weight is not None:
        weights_given = sequence_weights(sample_weight, len(lengths))
        assert weights_given is not None
        repeated = np.repeat(weights_given, lengths)
        counted = repeated if own is None else own * repeated
    factors = class_factors(given, codes, classes, counted)[codes]
    weights = factors if own is None else own * factors
    return np.split(weights, np.cumsum(lengths)[:-1])
