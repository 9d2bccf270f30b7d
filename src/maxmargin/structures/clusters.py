"""k-means, as the start of latent states: tokens of one label that look alike share a state.

Lloyd's iterations from the seeds of k-means++ (Arthur and Vassilvitskii, SODA 2007), on dense or
sparse rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["k_means"]

#: Lloyd's iterations. Starts need no more: the latent training moves the states anyway.
ROUNDS = 15
#: Rows that are looked at; the others go to the nearest centre that these have.
MOST_ROWS = 5000


def k_means(rows: Any, k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Put rows into k groups of rows that are near each other.

    Parameters
    ----------
    rows : array or scipy.sparse matrix of shape (n, d)
        The rows.
    k : int
        Number of groups.
    rng : numpy.random.Generator
        Where the seeds come from.

    Returns
    -------
    array of int, shape (n,)
        The group of each row, from 0 to k - 1. Groups may be empty where rows are equal or few.
    """
    n = int(rows.shape[0])
    if k <= 1 or n == 0:
        return np.zeros(n, dtype=np.intp)
    norms = _norms(rows)
    chosen = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    sample, own = rows[chosen], norms[chosen]
    centres = _seeds(sample, own, k, rng)
    groups = np.full(len(chosen), -1)
    for _ in range(ROUNDS):
        found = _nearest(sample, own, centres)
        if np.array_equal(found, groups):
            break
        groups = found
        for c in range(len(centres)):
            members = groups == c
            if members.any():
                centres[c] = np.asarray(sample[members].mean(axis=0)).ravel()
    return _nearest(rows, norms, centres)


def _norms(rows: Any) -> NDArray[np.float64]:
    squares = rows.multiply(rows) if hasattr(rows, "multiply") else np.square(rows)
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def _distances(
    rows: Any, norms: NDArray[np.float64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    inner = np.asarray(rows @ centres.T, dtype=np.float64)
    found: NDArray[np.float64] = norms[:, None] - 2.0 * inner + np.square(centres).sum(axis=1)
    return found


def _nearest(
    rows: Any, norms: NDArray[np.float64], centres: NDArray[np.float64]
) -> NDArray[np.intp]:
    return np.asarray(np.argmin(_distances(rows, norms, centres), axis=1), dtype=np.intp)


def _dense(row: Any) -> NDArray[np.float64]:
    dense = row.toarray() if hasattr(row, "toarray") else row
    return np.asarray(dense, dtype=np.float64).ravel()


def _seeds(
    rows: Any, norms: NDArray[np.float64], k: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw seeds one after the other, each with a chance that grows with its squared distance."""
    seeds = [_dense(rows[[int(rng.integers(rows.shape[0]))]])]
    while len(seeds) < k:
        far = np.maximum(_distances(rows, norms, np.array(seeds)).min(axis=1), 0.0)
        total = far.sum()
        if not total > 0:  # no more different rows
            break
        seeds.append(_dense(rows[[int(rng.choice(len(far), p=far / total))]]))
    return np.array(seeds)
