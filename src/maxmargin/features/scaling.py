"""Columns whose values are of quite another size than those of the rest, found and named.

One regulariser pulls at all weights alike, so that a column of values around 1,000 beside columns
around 1 is nearly free of it and decides alone, and one around 0.001 hardly counts. The dual has
the same trouble from the other side: the Gram matrix of the planes is dominated by the large
column, blocks that differ in the others interact through it, and block-coordinate ascent needs
many more passes. Such data can be trained; the user should know why it takes long and what to do.

The size of a column is the root mean square of its values other than zero, so that a column that
is seldom set (a rare pixel, a word) is not taken for a small one. Features without values (the
strings of texts) are all ones, and nothing is looked at.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.errors import ScalingWarning
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch

__all__ = ["BadlyScaled", "badly_scaled", "warn_if_badly_scaled"]

#: A column is named if its size is so many times that of the others, or one by so many.
FACTOR = 100.0
#: Columns that a message names.
NAMED = 5
#: Rows of dense features that are looked at together.
_ROWS = 4096
#: Up to so many columns, each is compared with the median of the others without itself.
_FEW = 64


class BadlyScaled(NamedTuple):
    """What was found.

    Attributes
    ----------
    columns : int array
        The columns, numbered as the features of a batch are (sparse ones first), the worst first.
    sizes : array
        Their sizes.
    usual : float
        The median of the sizes of all columns.
    n_columns : int
        Columns that have a value other than zero.
    """

    columns: NDArray[np.intp]
    sizes: NDArray[np.float64]
    usual: float
    n_columns: int


def badly_scaled(batch: EncodedBatch) -> BadlyScaled | None:
    """Look for columns whose size is far from that of the rest.

    Parameters
    ----------
    batch : EncodedBatch
        The training data.

    Returns
    -------
    BadlyScaled or None
        None if there are none.
    """
    if batch.values is None and batch.dense is None:
        return None
    places, sizes = _sizes(batch)
    used = sizes > 0
    places, sizes = places[used], sizes[used]
    n = len(sizes)
    if n < 2:
        return None
    usual = float(np.median(sizes))
    others = np.full(n, usual)
    if n <= _FEW:
        others = np.array([np.median(np.delete(sizes, k)) for k in range(n)])
    with np.errstate(all="ignore"):  # of sizes without end nothing can be said
        factor = np.maximum(sizes / others, others / sizes)
    worst = np.argsort(-factor, kind="stable")
    worst = worst[factor[worst] > FACTOR]
    worst = worst[places[worst] >= 0]
    if len(worst) == 0:
        return None
    return BadlyScaled(places[worst], sizes[worst], usual, n)


def _sizes(batch: EncodedBatch) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the columns and their sizes; zero for a column without values."""
    places, sizes = [], []
    if batch.indices is not None and batch.values is not None:
        squares = np.square(batch.values, dtype=np.float64)
        total = np.bincount(batch.indices, squares, batch.n_sparse)
        filled = np.bincount(batch.indices, batch.values != 0, batch.n_sparse)
        places.append(np.arange(batch.n_sparse))
        sizes.append(_root_mean(total, filled))
    elif batch.dense is not None:
        # Ones, beside which the dense columns stand: enough of them to be the median if they are
        # more. They are never named.
        ones = min(batch.n_sparse, batch.dense.shape[1] + 1)
        places.append(np.full(ones, -1))
        sizes.append(np.ones(ones))
    if batch.dense is not None:
        n_dense = batch.dense.shape[1]
        sums, count = np.zeros(n_dense), np.zeros(n_dense)
        for at in range(0, len(batch.dense), _ROWS):
            rows = batch.dense[at : at + _ROWS]
            with np.errstate(over="ignore"):
                sums += np.square(rows, dtype=np.float64).sum(axis=0)
            count += np.count_nonzero(rows, axis=0)
        places.append(batch.n_sparse + np.arange(n_dense))
        sizes.append(_root_mean(sums, count))
    return np.concatenate(places), np.concatenate(sizes)


def _root_mean(total: NDArray[Any], count: NDArray[Any]) -> NDArray[np.float64]:
    mean = np.divide(total, count, out=np.zeros(len(total)), where=count > 0)
    root: NDArray[np.float64] = np.sqrt(mean)
    return root


def warn_if_badly_scaled(batch: EncodedBatch, names: Callable[[], Sequence[Any]]) -> None:
    """Issue a `ScalingWarning` that names the columns whose size is far from that of the rest.

    Parameters
    ----------
    batch : EncodedBatch
        The training data.
    names : callable
        Gives the names of all features; called only if there is something to name.

    Warns
    -----
    ScalingWarning
        If there are such columns.
    """
    found = badly_scaled(batch)
    if found is None:
        return
    known = names()
    listed = ", ".join(
        f"{quoted(str(known[column]), 40)} ({size:.3g})"
        for column, size in zip(found.columns[:NAMED], found.sizes[:NAMED], strict=False)
    )
    n_found = len(found.columns)
    also = f" and {n_found - NAMED} more" if n_found > NAMED else ""
    warnings.warn(
        f"{n_found} of {found.n_columns} columns {'has' if n_found == 1 else 'have'} values of "
        f"quite another size than the rest (root mean square {found.usual:.3g}): {listed}{also}. "
        "Training takes longer for that, and the largest columns decide nearly alone: scale the "
        "columns, with sklearn.preprocessing.StandardScaler for example, or divide each by its "
        "figure here",
        ScalingWarning,
        stacklevel=2,
    )
