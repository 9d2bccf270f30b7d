"""Labels of sequences as people give them, turned into codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.features.columns import LabelCodes
from maxmargin.features.frames import frame_kind, is_arrow_array
from maxmargin.features.sequences import as_list, place_of
from maxmargin.printable import quoted

__all__ = ["LABEL_SHAPE", "encode_labels", "label_list", "label_sequences"]

LABEL_SHAPE = (
    "expected a list of sequences, where a sequence is a list of labels, one for each token"
)


def label_sequences(y: Any) -> list[Any]:
    """Return the sequences of labels as a list; none of them is a data frame.

    Parameters
    ----------
    y : sequence of sequences of labels
        What somebody gave.

    Returns
    -------
    list
        At least one sequence.

    Raises
    ------
    TypeError, ValueError
        If it is something else.
    """
    sequences = as_list("y", y, LABEL_SHAPE, 2)
    for i, sequence in enumerate(sequences):
        frame = None if type(sequence) is list else frame_kind(sequence)
        if frame is not None:
            raise TypeError(f"y: sequence {i} is {frame}; {LABEL_SHAPE}: give one column of it")
    return sequences


def label_list(sequence: Any) -> Any:
    """Return a sequence of labels with Python objects for those of arrays.

    Parameters
    ----------
    sequence : sequence of labels
        Of any kind.

    Returns
    -------
    sequence of labels
        A list, if it was an array of NumPy or pyarrow; else as it was.
    """
    if isinstance(sequence, np.ndarray):
        return sequence.tolist()
    return sequence.to_pylist() if is_arrow_array(sequence) else sequence


def encode_labels(
    y: Any, labels: dict[Any, int] | None = None
) -> tuple[NDArray[np.int32], list[Any]]:
    """Turn labels into codes.

    Parameters
    ----------
    y : list of sequences of labels, or LabelCodes
        Labels are anything hashable: str, int, bool, numpy scalars.
    labels : dict from label to code, optional
        The labels that exist. Without it, all labels of ``y`` do, and their codes are given in
        sorted order, or in the order of appearance if they cannot be sorted.

    Returns
    -------
    codes : int32 array of shape (n_tokens,)
        The codes of the labels of all sequences, one after the other.
    classes : list
        The label of each code.

    Raises
    ------
    ValueError
        If a label is not in ``labels``; the message names sequence, token and label.
    """
    if isinstance(y, LabelCodes):
        return _encode_codes(y, labels)
    # Arrays go over to Python objects at once; lists are left to native code.
    sequences = [s if type(s) is list else label_list(s) for s in label_sequences(y)]
    if labels is not None:
        _, codes = _native.encode_labels(sequences, labels, False)
        return codes, sorted(labels, key=labels.__getitem__)
    found: dict[Any, int] = {}
    _, codes = _native.encode_labels(sequences, found, True)
    classes = [label.item() if isinstance(label, np.generic) else label for label in found]
    return _sorted_codes(codes, classes)


def _sorted_codes(
    codes: NDArray[np.int32], classes: list[Any]
) -> tuple[NDArray[np.int32], list[Any]]:
    """Give the classes numbers in sorted order, where they can be sorted."""
    try:
        order = sorted(range(len(classes)), key=lambda k: classes[k])
    except TypeError:
        return codes, classes
    new_codes = np.empty(len(order), dtype=np.int32)
    new_codes[order] = np.arange(len(order), dtype=np.int32)
    return new_codes[codes], [classes[k] for k in order]


def _encode_codes(
    y: LabelCodes, labels: dict[Any, int] | None
) -> tuple[NDArray[np.int32], list[Any]]:
    """Encode labels that are codes already, by other codes."""
    if labels is None:
        return _sorted_codes(y.codes, list(y.names))
    new = np.array([labels.get(name, -1) for name in y.names], dtype=np.int32)
    codes = new[y.codes]
    if (codes < 0).any():
        token = int(np.argmax(codes < 0))
        known = ", ".join(quoted(name, 40) for name in list(labels)[:10])
        raise ValueError(
            f"y: {place_of(y.offsets, token)}: unknown label {quoted(y.names[y.codes[token]])}; "
            f"expected one of the {len(labels)} known labels "
            f"({known}{', ...' if len(labels) > 10 else ''})"
        )
    return codes, sorted(labels, key=labels.__getitem__)
