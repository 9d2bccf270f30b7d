"""The most costly errors of a model, in context.

What an error costs is what training would have to pay for it: the loss of the prediction, and how
much its score is above that of the truth. So many wrong labels cost much, and so does one of which
the model is sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.report.html.content import Costly, Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch
    from maxmargin.features.token_texts import TokenTexts
    from maxmargin.selection.encoded import Encoded
    from maxmargin.structures.chain import Chain

__all__ = ["costly_errors", "window"]

#: Tokens that are shown before and behind a wrong one, and of a sequence at most.
AROUND, MOST = 4, 60


def costly_errors(
    chain: Chain,
    weights: Any,
    data: Encoded,
    predicted: NDArray[np.int32],
    texts: TokenTexts,
    *,
    most: int,
    threads: int = 1,
) -> tuple[list[Costly], str]:
    """Return the sequences whose predictions cost most.

    Parameters
    ----------
    chain : Chain
        The structure.
    weights : array, SparseWeights or KernelWeights
        The model.
    data : Encoded
        The sequences with their true labels.
    predicted : int32 array of shape (n_tokens,)
        The predictions.
    texts : TokenTexts
        The words.
    most : int
        How many to return.
    threads : int
        Number of threads.

    Returns
    -------
    list of Costly
        The most costly first.
    str
        Why scores do not count; empty if they do.
    """
    batch, truth, names = data
    offsets = batch.offsets
    losses = np.add.reduceat(chain.token_costs(truth, predicted), offsets[:-1])
    n_wrong = np.add.reduceat((truth != predicted).astype(np.int64), offsets[:-1])
    wrong = np.flatnonzero(n_wrong)
    if len(wrong) == 0:
        return [], ""
    costs, reason = losses[wrong].astype(np.float64), ""
    try:
        costs += _above_truth(
            chain, batch, weights, truth, predicted, wrong=wrong, threads=threads
        )
    except NotCompatibleError:
        reason = "this model decodes with constraints, whose errors are counted by their loss alone"
    order = np.lexsort((wrong, -costs))[:most]
    found = []
    for k in order.tolist():
        i = int(wrong[k])
        tokens = range(int(offsets[i]), int(offsets[i + 1]))
        whole = slice(tokens.start, tokens.stop)
        shown: list[Shown | None] = []
        for place in window(truth[whole] != predicted[whole]):
            if place is None:
                shown.append(None)
                continue
            t = tokens[place]
            shown.append(Shown(texts[t], str(names[truth[t]]), str(names[predicted[t]])))
        found.append(
            Costly(i, float(costs[k]), float(losses[i]), int(n_wrong[i]), len(tokens), shown)
        )
    return found, reason


def _above_truth(
    chain: Chain,
    batch: EncodedBatch,
    weights: Any,
    truth: NDArray[np.int32],
    predicted: NDArray[np.int32],
    *,
    wrong: NDArray[np.intp],
    threads: int,
) -> NDArray[np.float64]:
    """Return how much the scores of predictions are above those of the truth; 0 if it has none."""
    some = batch.take(wrong)
    there = np.repeat(np.isin(np.arange(batch.n_sequences), wrong), batch.lengths)
    codes, known = truth[there], truth[there] < chain.n_labels
    usable = np.logical_and.reduceat(known, some.offsets[:-1])
    score_truth = chain.scores_batch(
        some, np.where(known, codes, 0).astype(np.int32), weights, threads
    )
    score_given = chain.scores_batch(some, predicted[there], weights, threads)
    with np.errstate(invalid="ignore"):
        above = score_given - score_truth
    return np.where(usable & np.isfinite(above), np.maximum(above, 0.0), 0.0)


def window(
    wrong: Sequence[bool] | NDArray[np.bool_], around: int = AROUND, most: int = MOST
) -> list[int | None]:
    """Return the places of the wrong tokens and of those around them.

    Parameters
    ----------
    wrong : sequence of bool
        Which tokens are wrong.
    around : int
        How many before and behind each.
    most : int
        How many at most.

    Returns
    -------
    list of int or None
        Places; None where tokens are left out.

    Examples
    --------
    >>> window([False, False, False, True, False, False], around=1)
    [None, 2, 3, 4, None]
    """
    n = len(wrong)
    near: list[int] = []
    for k in np.flatnonzero(np.asarray(wrong, dtype=bool)).tolist():
        begin = max(0, k - around, near[-1] + 1 if near else 0)
        near.extend(range(begin, min(n, k + around + 1)))
        if len(near) >= most:  # the rest of a giant sequence is not looked at
            del near[most:]
            break
    found: list[int | None] = []
    last = -1
    for k in near:
        if k != last + 1:
            found.append(None)
        found.append(k)
        last = k
    if last != n - 1:
        found.append(None)
    return found
