"""The largest and the smallest weights of a tagger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.models.weight_rows import names_of, tail_rows, weight_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.io.tagger_file import TaggerModel

__all__ = ["strongest_features", "strongest_transitions"]


def _largest(weights: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the places of the k largest weights above zero; of equal ones, the first."""
    places = np.flatnonzero(weights > 0)
    if len(places) <= k:
        return places
    found = weights[places]
    bound = np.partition(found, len(found) - k)[len(found) - k]
    above = places[found > bound]
    return np.concatenate([above, places[found == bound][: k - len(above)]])


def _strongest(
    blocks: Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], k: int
) -> list[tuple[float, int, int]]:
    """Return the k largest positive weights and then the k smallest negative ones.

    Parameters
    ----------
    blocks : iterator of (weights, rows, columns)
        Where to look.
    k : int
        How many of each sign at most.

    Returns
    -------
    list of (float, int, int)
        Weight, row and column; positive ones from the largest down, then negative ones from the
        smallest up.
    """
    best: dict[int, list[tuple[float, int, int]]] = {1: [], -1: []}
    if k == 0:
        return []
    for weights, rows, columns in blocks:
        for sign, kept in best.items():
            places = _largest(sign * weights, k)
            found = (weights[places].tolist(), rows[places].tolist(), columns[places].tolist())
            kept.extend(zip(*found, strict=True))
            kept.sort(key=lambda entry, sign=sign: (-sign * entry[0], entry[1:]))  # type: ignore[misc]
            del kept[k:]
    return best[1] + best[-1]


def strongest_features(model: TaggerModel, k: int, label: int | None) -> list[dict[str, Any]]:
    """Return the strongest weights of features, by name.

    Parameters
    ----------
    model : TaggerModel
        The model.
    k : int
        How many of each sign at most.
    label : int or None
        Of this label only.

    Returns
    -------
    list of dict
        ``feature``, ``label`` and ``weight``.
    """
    found = _strongest(weight_blocks(model, label), k)
    names = names_of(model, np.array([feature for _, feature, _ in found], dtype=np.intp))
    labels = model.chain.labels_
    return [
        {"feature": name, "label": labels[column], "weight": weight}
        for name, (weight, _, column) in zip(names, found, strict=True)
    ]


def strongest_transitions(
    model: TaggerModel, k: int, label: int | None
) -> list[dict[str, Any]]:
    """Return the strongest transitions, start and end among them.

    Parameters
    ----------
    model : TaggerModel
        The model.
    k : int
        How many of each sign at most.
    label : int or None
        Of this label only.

    Returns
    -------
    list of dict
        ``from`` (None at the start), ``to`` (None at the end) and ``weight``.
    """
    L = model.chain.n_labels
    tail = model.chain.layout.without_sparse.split(tail_rows(model))
    # With start as one more label before, and end as one more behind.
    square = np.zeros((L + 1, L + 1), dtype=tail.transitions.dtype)
    square[:L, :L] = tail.transitions
    square[L, :L], square[:L, L] = tail.start, tail.end
    if label is not None:
        takes_part = np.zeros(square.shape, dtype=bool)
        takes_part[label], takes_part[:, label] = True, True
        square[~takes_part] = 0
    rows, columns = np.divmod(np.arange(square.size), L + 1)
    names = [*model.chain.labels_, None]
    return [
        {"from": names[row], "to": names[column], "weight": weight}
        for weight, row, column in _strongest(iter([(square.ravel(), rows, columns)]), k)
    ]
