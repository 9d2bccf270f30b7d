"""Classes as people write them: any hashable labels, their codes, their costs, their form in files.

Classes are in sorted order where they can be sorted, else in the order of their first appearance.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.printable import quoted
from maxmargin.structures.chain_options import cost_matrix, explicit_labels

__all__ = [
    "class_array",
    "class_costs",
    "classes_from_meta",
    "classes_to_meta",
    "encode_classes",
    "example_weights",
    "known_classes",
]

#: Types of labels that JSON gives back as they were.
_PLAIN = (str, bool, int, float, type(None))
_MAX_DEPTH = 4


def _label_list(y: Any) -> list[Any]:
    if y is None:
        raise ValueError("y is None; expected a label for each example")
    if isinstance(y, str | bytes | Mapping) or not isinstance(y, Iterable):
        raise TypeError(f"y is a {type(y).__name__}; expected a list or an array of labels")
    if hasattr(y, "to_numpy"):  # pandas, polars
        y = y.to_numpy()
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise ValueError(f"y has the shape {y.shape}; expected one label for each example")
        return list(y.tolist())
    return [label.item() if isinstance(label, np.generic) else label for label in y]


def encode_classes(y: Any, labels: Any = None) -> tuple[NDArray[np.int32], list[Any]]:
    """Turn labels into codes.

    Parameters
    ----------
    y : sequence or array of labels
        Anything hashable: str, int, bool, tuples, None.
    labels : list, optional
        All classes, in their order. None: those of ``y``.

    Returns
    -------
    codes : int32 array
        Places in ``classes``.
    classes : list
        The label of each code.

    Raises
    ------
    TypeError, ValueError
        If a label cannot be hashed, or is not among ``labels``; the message names the example.
    """
    listed = _label_list(y)
    try:
        found = list(dict.fromkeys(listed))  # in the order of appearance
    except TypeError:
        i = next(i for i, label in enumerate(listed) if not _is_hashable(label))
        raise TypeError(
            f"y: example {i} has the label {quoted(listed[i])}, which cannot be hashed; expected "
            "a str, a number, a tuple, ..."
        ) from None
    for label in found:
        if label != label:  # noqa: PLR0124
            i = next(i for i, other in enumerate(listed) if other is label)
            raise ValueError(f"y: example {i} has the label NaN; expected a label")
    classes = found if labels is None else list(explicit_labels(labels))
    if labels is None:
        with contextlib.suppress(TypeError):
            classes = sorted(found)
    place = {label: k for k, label in enumerate(classes)}
    for label in found:
        if label not in place:
            i = listed.index(label)
            raise ValueError(
                f"y: example {i} has the label {quoted(label)}, which is not among the "
                f"{len(classes)} labels given"
            )
    codes = np.fromiter(map(place.__getitem__, listed), dtype=np.int32, count=len(listed))
    return codes, classes


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def known_classes(y: Any, codes: Mapping[Any, int]) -> NDArray[np.int32]:
    """Return the codes of labels of a trained model.

    Parameters
    ----------
    y : sequence or array of labels
        All of them known.
    codes : mapping
        Label to code.

    Returns
    -------
    int32 array
        The codes.
    """
    listed = _label_list(y)
    found = np.empty(len(listed), dtype=np.int32)
    for i, label in enumerate(listed):
        code = codes.get(label, -1) if _is_hashable(label) else -1
        if code < 0:
            raise ValueError(f"y: example {i} has the label {quoted(label)}, which is not known")
        found[i] = code
    return found


def class_costs(loss: Any, classes: list[Any]) -> NDArray[np.float64] | None:
    """Return the costs [truth][class] that a user's ``loss`` means; None for 0/1.

    Parameters
    ----------
    loss : "0/1", array of shape (K, K), or dict {(truth, class): cost}
        As the user wrote it.
    classes : list
        The classes, in the order of an array.

    Returns
    -------
    array of shape (K, K) or None
        Checked.
    """
    if isinstance(loss, str):
        if loss != "0/1":
            raise ValueError(
                f'loss is {loss!r}; expected "0/1", a (K, K) array of costs, or a dict '
                "{(truth, class): cost}"
            )
        return None
    return cost_matrix(loss, classes)


def example_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Return a weight for each example, checked.

    Parameters
    ----------
    sample_weight : array of shape (n,) or None
        Finite, not negative, not all zero.
    n : int
        Number of examples.

    Returns
    -------
    array or None
        As native code takes it.
    """
    from maxmargin._native import MAX_VALUE

    if sample_weight is None:
        return None
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one for each example") from None
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}; expected ({n},), one number for each "
            "example"
        )
    good = (weights >= 0) & (weights <= MAX_VALUE)
    if not good.all():
        i = int(np.argmin(good))
        raise ValueError(
            f"sample_weight of example {i} is {weights[i]}; expected a number from 0 to 1e12"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all examples; expected one above zero")
    return weights


def class_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array that gives them back unchanged: of objects if need be.

    Parameters
    ----------
    labels : list
        Of any hashable objects.

    Returns
    -------
    array
        With one dimension.
    """
    array = np.array(labels) if len({type(label) for label in labels}) == 1 else None
    if array is None or array.ndim != 1 or array.tolist() != labels:
        array = np.empty(len(labels), dtype=object)
        for k, label in enumerate(labels):  # not at once: NumPy would take tuples apart
            array[k] = label
    return array


# --- files ---


def classes_to_meta(classes: list[Any]) -> list[Any]:
    """Return classes as values that JSON can hold.

    Parameters
    ----------
    classes : list
        Of texts, numbers, None, and tuples of them.

    Returns
    -------
    list
        Tuples are ``{"tuple": [...]}``.

    Raises
    ------
    ValueError
        If a label is of another type, which a file cannot hold.
    """
    return [_to_meta(label, 0) for label in classes]


def _to_meta(label: Any, depth: int) -> Any:
    if type(label) in _PLAIN and label == label:  # noqa: PLR0124
        return label
    if isinstance(label, tuple) and depth < _MAX_DEPTH:
        return {"tuple": [_to_meta(part, depth + 1) for part in label]}
    raise ValueError(
        f"the label {quoted(label)} is a {type(label).__name__}; a model file holds labels that "
        "are texts, numbers, None or tuples of these"
    )


def classes_from_meta(meta: Any) -> list[Any]:
    """Return the classes that `classes_to_meta` wrote.

    Parameters
    ----------
    meta : list
        Out of a file: nothing of it is trusted.

    Returns
    -------
    list
        The classes, no two of which are alike.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if not isinstance(meta, list) or not meta:
        raise ValueError("there are no classes")
    classes = [_from_meta(label, 0) for label in meta]
    if len(set(classes)) != len(classes):
        raise ValueError("a class is there twice")
    return classes


def _from_meta(label: Any, depth: int) -> Any:
    if type(label) in _PLAIN and label == label:  # noqa: PLR0124
        return label
    if isinstance(label, dict) and isinstance(label.get("tuple"), list) and depth < _MAX_DEPTH:
        return tuple(_from_meta(part, depth + 1) for part in label["tuple"])
    raise ValueError("a class is neither a text nor a number")
