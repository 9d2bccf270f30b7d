"""What users write about a chain, checked: labels, costs, masks, token weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import MAX_VALUE
from maxmargin.printable import quoted
from maxmargin.structures.adapter import real_number

__all__ = ["allowed_mask", "cost_matrix", "explicit_labels", "sequence_weights", "token_weights"]


def explicit_labels(labels: Any) -> dict[Any, int]:
    """Return the labels of a user's list by place."""
    if isinstance(labels, str | bytes | Mapping) or not hasattr(labels, "__iter__"):
        raise TypeError(f"labels is a {type(labels).__name__}; expected a list of labels")
    listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if not listed:
        raise ValueError("labels is empty; expected at least one label")
    result: dict[Any, int] = {}
    for given in listed:
        label = given.item() if isinstance(given, np.generic) else given
        if not isinstance(label, Hashable):
            raise TypeError(f"labels has the entry {quoted(label)}, which cannot be hashed")
        if label in result:
            raise ValueError(
                f"labels has the entry {quoted(label)} twice; expected each label once"
            )
        result[label] = len(result)
    return result


def cost_matrix(loss: Any, classes: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return the costs [truth][label] in the order of the classes; None for Hamming."""
    L = len(classes)
    if isinstance(loss, str):
        if loss != "hamming":
            raise ValueError(
                f'loss is {loss!r}; expected "hamming", an (L, L) array, or a dict '
                "{(truth, label): cost}"
            )
        return None
    if isinstance(loss, Mapping):
        cost = 1.0 - np.eye(L)
        place = {label: k for k, label in enumerate(classes)}
        for pair, value in loss.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(f"loss has the key {quoted(pair)}; expected pairs (truth, label)")
            for label in pair:
                if label not in place:
                    raise ValueError(
                        f"loss has a cost of {quoted(pair)}, but there is no label {quoted(label)}"
                    )
            number = real_number(value)
            if number is None:
                raise TypeError(f"loss of {pair!r} is {value!r}; expected a number")
            cost[place[pair[0]], place[pair[1]]] = number
    else:
        try:
            cost = np.array(loss, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f'loss is a {type(loss).__name__}; expected "hamming", an (L, L) array of numbers, '
                "or a dict {(truth, label): cost}"
            ) from None
        if cost.shape != (L, L):
            raise ValueError(
                f"loss has the shape {cost.shape}; expected ({L}, {L}) for the labels "
                f"{_shown(classes)}"
            )
    wrong = ~((cost >= 0) & (cost <= MAX_VALUE))
    np.fill_diagonal(wrong, np.diag(cost) != 0)
    if wrong.any():
        a, b = (int(k) for k in np.argwhere(wrong)[0])
        expected = "0 for the truth itself" if a == b else "a number from 0 to 1e12"
        raise ValueError(
            f"the loss of label {quoted(classes[b])} where {quoted(classes[a])} is the truth is "
            f"{cost[a, b]}; "
            f"expected {expected}"
        )
    return cost


def allowed_mask(
    allowed: Any, classes: Sequence[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Return what may follow, begin and end, in the order of the classes; None: everything."""
    L = len(classes)
    if allowed is None:
        return None
    if isinstance(allowed, str):
        if allowed not in _SCHEMES:
            raise ValueError(
                f'allowed is {allowed!r}; expected None, "iob2", "iobes", a callable or an (L, L) '
                "array of bools"
            )
        prefixes, rule = _SCHEMES[allowed]
        for label in classes:
            _require_scheme(label, allowed, prefixes)
        if allowed == "iobes" and not any(label[0] in "ES" for label in classes if label != "O"):
            raise ValueError(
                'allowed is "iobes", but no label begins with E- or S-; expected "iob2" for these '
                "labels"
            )
        allowed = rule
    if callable(allowed):
        start = np.array([bool(allowed(None, b)) for b in classes])
        end = np.array([bool(allowed(a, None)) for a in classes])
        pairs = (bool(allowed(a, b)) for a in classes for b in classes)
        return np.fromiter(pairs, np.bool_, L * L).reshape(L, L), start, end
    array = np.asarray(allowed)
    if array.shape != (L, L):
        raise ValueError(
            f"allowed has the shape {array.shape}; expected ({L}, {L}) for the labels "
            f"{_shown(classes)}"
        )
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise ValueError("allowed must hold bools: True where a label may follow another")
    return array.astype(np.bool_), np.ones(L, np.bool_), np.ones(L, np.bool_)


def _require_scheme(label: Any, scheme: str, prefixes: str) -> None:
    good = isinstance(label, str) and (
        label == "O" or (len(label) > 2 and label[0] in prefixes and label[1] == "-")
    )
    if not good:
        forms = ", ".join(f"{p}-..." for p in prefixes)
        raise ValueError(
            f'the label {quoted(label)} does not follow allowed="{scheme}"; expected O, {forms}'
        )


def _iob2(previous: str | None, following: str | None) -> bool:
    if following is None or following[0] != "I":
        return True
    return previous is not None and previous[0] in "BI" and previous[1:] == following[1:]


def _iobes(previous: str | None, following: str | None) -> bool:
    inside = previous is not None and previous[0] in "BI"
    if following is None or following[0] in "OBS":
        return not inside
    return inside and previous is not None and previous[1:] == following[1:]


#: scheme -> (what labels begin with, which may follow each other)
_SCHEMES: dict[str, tuple[str, Callable[[str | None, str | None], bool]]] = {
    "iob2": ("BI", _iob2),
    "iobes": ("BIES", _iobes),
}


def token_weights(token_weight: Any, lengths: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Return the weights of all tokens one after the other, checked: each fits a 4-byte float."""
    if token_weight is None:
        return None
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in token_weight]
    except (TypeError, ValueError):
        raise TypeError("token_weight must be a list of lists of numbers, one a token") from None
    if len(rows) != len(lengths):
        raise ValueError(
            f"token_weight has {len(rows)} sequences and X has {len(lengths)}; expected as many"
        )
    for i, (row, length) in enumerate(zip(rows, lengths.tolist(), strict=True)):
        if row.shape != (length,):
            raise ValueError(
                f"token_weight of sequence {i} has the shape {row.shape}; expected ({length},), "
                "one number for each token"
            )
    flat = np.concatenate(rows)
    wrong = ~((flat >= 0) & (flat <= MAX_VALUE))
    if wrong.any():
        k = int(np.argmax(wrong))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        i = int(np.searchsorted(offsets, k, side="right")) - 1
        raise ValueError(
            f"token_weight of sequence {i}, token {k - int(offsets[i])} is {flat[k]}; expected a "
            "number from 0 to 1e12"
        )
    return flat


def sequence_weights(
    sample_weight: Any, n_sequences: int, what: str = "sequence"
) -> NDArray[np.float64] | None:
    """Return a weight for each sequence, checked; `what` an example is called in messages."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"sample_weight must be numbers, one for each {what}") from None
    if weights.shape != (n_sequences,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}; expected ({n_sequences},), one number "
            f"for each {what}"
        )
    wrong = ~((weights >= 0) & (weights <= MAX_VALUE))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight of {what} {i} is {weights[i]}; expected a number from 0 to 1e12"
        )
    if not weights.any():
        raise ValueError(f"sample_weight is zero for all {what}s; expected one above zero")
    return np.ascontiguousarray(weights)


def _shown(classes: Sequence[Any], most: int = 10) -> str:
    shown = ", ".join(map(repr, classes[:most]))
    return f"[{shown}{', ...' if len(classes) > most else ''}]"
