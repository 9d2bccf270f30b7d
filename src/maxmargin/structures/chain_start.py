"""The weights of one chain in the layout of another: what both know, matched by name.

Unlike a prior (`maxmargin.structures.chain_prior`) this leaves the new chain as it is: features and
labels that it does not have are left out, and what the earlier chain does not have is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.features.joining import matched_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CarriedOver", "carry_over"]


class CarriedOver(NamedTuple):
    """Weights of an earlier chain, in the layout of a new one.

    Attributes
    ----------
    weights : array
        Native weights of the new chain.
    n_features, n_labels : int
        How many the two share.
    """

    weights: NDArray[Any]
    n_features: int
    n_labels: int


def carry_over(chain: Any, earlier: Any, weights: NDArray[Any], dtype: Any) -> CarriedOver:
    """Return the weights of an earlier chain for the features and labels of a new one.

    Parameters
    ----------
    chain : Chain
        The new chain, prepared.
    earlier : Chain
        The chain of the earlier model; its features are made in the same way.
    weights : array
        The native weights of the earlier chain.
    dtype : "float32" or "float64"
        Type of the result.

    Returns
    -------
    CarriedOver
        Zeros where the earlier model has nothing.

    Raises
    ------
    NotCompatibleError
        If the features are made in another way.
    """
    matched = matched_features(chain.encoder, earlier.encoder, "the model to start from")
    old, new = earlier.layout, chain.layout
    place = {label: k for k, label in enumerate(chain.labels_)}
    shared = [(k, place[label]) for k, label in enumerate(earlier.labels_) if label in place]
    before = np.array([a for a, _ in shared], dtype=np.intp)
    now = np.array([b for _, b in shared], dtype=np.intp)
    # Rows that belong to the same feature, transition, start or end, in the same order.
    old_rows = [matched.sparse[0], np.arange(old.dense.start, old.dense.stop)]
    new_rows = [matched.sparse[1], np.arange(new.dense.start, new.dense.stop)]
    old_rows += [old.transitions.start + before, np.array([old.start, old.end])]
    new_rows += [new.transitions.start + now, np.array([new.start, new.end])]
    if len(matched.pair[0]) and shared:
        old_rows.append(old.pair_row(matched.pair[0][:, None], before).reshape(-1))
        new_rows.append(new.pair_row(matched.pair[1][:, None], now).reshape(-1))
    rows = np.zeros((new.n_rows, new.n_labels))
    found = old.rows(weights)[np.ix_(np.concatenate(old_rows).astype(np.intp), before)]
    rows[np.ix_(np.concatenate(new_rows).astype(np.intp), now)] = found
    n_features = len(matched.sparse[0]) + len(matched.pair[0]) + (old.dense.stop - old.dense.start)
    return CarriedOver(new.pad(rows, dtype), n_features, len(shared))
