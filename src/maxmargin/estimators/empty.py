"""Predictions as arrays of objects, and sequences without tokens.

scikit-learn joins the predictions of folds with ``numpy.concatenate`` and takes rows of them by
index; an array of objects allows both, whatever an output is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators.argument_types import KnownLabels
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable, LabelCodes
from maxmargin.features.items import Items
from maxmargin.structures.chain import Chain

__all__ = ["Filled", "labelled_without_empty", "object_array", "predicted", "without_empty"]


def object_array(outputs: Iterable[Any]) -> NDArray[np.object_]:
    """Return outputs as a one-dimensional array of objects, whatever they are.

    Parameters
    ----------
    outputs : iterable
        Lists, arrays, trees, ...

    Returns
    -------
    array of objects, of shape (n,)
        The same objects.

    Examples
    --------
    >>> object_array([["N", "V"], ["N", "V"]]).shape
    (2,)
    """
    listed = list(outputs)
    array = np.empty(len(listed), dtype=object)
    for k, output in enumerate(listed):  # not at once: NumPy would take lists apart
        array[k] = output
    return array


def predicted(
    structure: Any, X: Any, weights: Any, threads: int, known: KnownLabels = None
) -> NDArray[np.object_]:
    """Return the predictions of a native structure, for nothing and for empty sequences too.

    Parameters
    ----------
    structure : Chain or NativeStructure
        Prepared.
    X : object
        The inputs.
    weights : object
        The native weights.
    threads : int
        Number of threads.
    known : list of sequences or None
        Of a chain: labels that are known already.

    Returns
    -------
    array of objects, of shape (n_examples,)
        An output for each; of an empty sequence the empty list.
    """
    if isinstance(structure, Chain):
        filled = without_empty(X)
        found: list[Any] = []
        if not filled.nothing:
            found = structure.predict(filled.X, weights, threads, filled.chosen(known))
        return object_array(filled.spread(found, list))
    if isinstance(X, list | tuple | np.ndarray) and len(X) == 0:
        return object_array([])
    return object_array(structure.predict(X, weights, threads))


class Filled(NamedTuple):
    """Which sequences have tokens.

    Attributes
    ----------
    X : object
        The sequences that have some.
    places : array of int or None
        Their places among all; None if all have some.
    n : int
        Number of all.
    """

    X: Any
    places: NDArray[np.intp] | None
    n: int

    @property
    def nothing(self) -> bool:
        """Whether no sequence has tokens."""
        return self.places is not None and len(self.places) == 0

    def chosen(self, rows: Any) -> Any:
        """Return what belongs to the sequences that have tokens, of something that all have.

        Parameters
        ----------
        rows : list or None
            One item for each sequence. What is no list of that length is given back as it is, for
            those to refuse who know what it should be.
        """
        if self.places is None or not hasattr(rows, "__len__") or len(rows) != self.n:
            return rows
        listed = list(rows)
        return [listed[k] for k in self.places.tolist()]

    def spread(self, answers: Sequence[Any], empty: Any) -> list[Any]:
        """Return the answers for all sequences, with an answer for those without tokens.

        Parameters
        ----------
        answers : sequence
            For the sequences that have tokens.
        empty : callable
            Makes the answer for one that has none.

        Returns
        -------
        list
            One for each sequence.
        """
        if self.places is None:
            return list(answers)
        spread = [None] * self.n
        for place, answer in zip(self.places.tolist(), answers, strict=True):
            spread[place] = answer
        filled = set(self.places.tolist())
        return [spread[k] if k in filled else empty() for k in range(self.n)]


def without_empty(X: Any) -> Filled:
    """Find the sequences that have tokens.

    Parameters
    ----------
    X : list of sequences, or a table
        Of a table, all have some.

    Returns
    -------
    Filled
        The sequences to be predicted.
    """
    if isinstance(X, ColumnTable | Items | EncodedBatch) or not hasattr(X, "__len__"):
        return Filled(X, None, 0)
    if isinstance(X, str | bytes | dict) or hasattr(X, "columns"):
        return Filled(X, None, 0)  # no list of sequences, which the encoder tells
    sizes = [_size(sequence) for sequence in X]
    if sizes and all(sizes):
        return Filled(X, None, len(sizes))
    places = np.flatnonzero(sizes)
    listed = list(X)
    return Filled([listed[k] for k in places], places, len(sizes))


def labelled_without_empty(X: Any, y: Any) -> tuple[Any, Any, Filled]:
    """Leave out the sequences without tokens, where the labels have none either.

    Parameters
    ----------
    X : list of sequences
        The inputs.
    y : list of label sequences
        Their labels.

    Returns
    -------
    X, y : list
        Those with tokens, or with labels: what does not go together is told elsewhere.
    filled : Filled
        Of X.
    """
    filled = without_empty(X)
    if filled.places is None or isinstance(y, LabelCodes) or not hasattr(y, "__len__"):
        return X, y, filled
    inputs, labels = list(X), list(y)
    if len(inputs) != len(labels):
        return X, y, filled
    kept = [k for k in range(len(inputs)) if _size(inputs[k]) or _size(labels[k])]
    if not kept:
        raise ValueError("no sequence has tokens; expected at least one")
    return [inputs[k] for k in kept], [labels[k] for k in kept], filled


def _size(sequence: Any) -> int:
    """Return the number of tokens; 1 for what is no sequence, which the encoder tells."""
    if isinstance(sequence, tuple) and len(sequence) == 2 and hasattr(sequence[1], "shape"):
        sequence = sequence[0]
    shape = getattr(sequence, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    return len(sequence) if hasattr(sequence, "__len__") else 1
