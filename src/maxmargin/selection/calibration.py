"""A temperature that makes probabilities of a chain's scores.

A large-margin model orders labellings by their scores; how sure it is of them it does not say. With

    p(y | x) = exp(score(x, y) / T) / Z(x),

one number, the temperature T, decides how sure the model sounds, and changes no prediction. It is
chosen by the likelihood of labelled data that the model was not trained on: of whole labellings,

    L(β) = Σ_i [β score(x_i, y_i) - log Σ_y exp(β score(x_i, y))],    β = 1/T,

or of single labels, M(β) = Σ_i Σ_t log p(y_it | x_i). L is concave in β (minus a log-sum-exp of
functions that are linear in β), so it has one maximum, which is found by a search in one dimension;
a value of L costs one forward pass. M need not be concave; it is searched for its maximum next to
that of L. A temperature cannot serve both: a chain that misses dependencies between its labels is
surer of labellings than of labels. Probabilities of labels are what most people look at.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch
    from maxmargin.structures.chain import Chain

__all__ = ["Calibration", "confidences", "find_temperature"]

#: The search begins with these many-fold steps of the temperature, and ends at this precision.
STEP, PRECISION = 4.0, 1e-3
#: Temperatures beyond this factor of 1 are not tried.
RANGE = 1e9
#: Where a colder model gains less than this a token, it is as sure as it need be.
ENOUGH = 1e-6
#: Probabilities that are made at a time.
TOGETHER = 1 << 24
#: What can be made likely.
CRITERIA = ("tokens", "sequences")


class Calibration(NamedTuple):
    """A temperature and how it was found.

    Attributes
    ----------
    temperature : float
        T.
    log_loss : float
        Minus the log-likelihood by token, at this temperature, by the criterion asked for.
    log_loss_before : float
        The same at the temperature 1.
    n_sequences : int
        How many sequences it was chosen on.
    n_left_out : int
        How many were left out: their labels are not known to the model, or ``allowed`` forbids
        them, so that they are improbable at every temperature.
    """

    temperature: float
    log_loss: float
    log_loss_before: float
    n_sequences: int
    n_left_out: int


def find_temperature(
    chain: Chain,
    batch: EncodedBatch,
    codes: NDArray[np.int32],
    weights: Any,
    threads: int = 1,
    *,
    criterion: str = "tokens",
) -> Calibration:
    """Find the temperature under which held-out labels are most likely.

    Parameters
    ----------
    chain : Chain
        The structure.
    batch : EncodedBatch
        Sequences that the model was not trained on.
    codes : int32 array of shape (n_tokens,)
        Their labels, as places in ``chain.labels_``; others stand for labels that are not known.
    weights : array, SparseWeights or KernelWeights
        The model.
    threads : int
        Number of threads.
    criterion : {"tokens", "sequences"}
        Whose likelihood is maximised: that of single labels, or of whole labellings.

    Returns
    -------
    Calibration
        The temperature. Where the model is right everywhere by a margin, the likelihood rises
        for ever as the temperature falls; then the search stops where that gains next to nothing.

    Raises
    ------
    ValueError
        If no sequence is left to choose it on.
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(CRITERIA)}")
    known = (codes >= 0) & (codes < chain.n_labels)
    usable = np.logical_and.reduceat(known, batch.offsets[:-1])
    usable &= chain.allowed_batch(batch.offsets, np.where(known, codes, 0).astype(np.int32))
    if not usable.any():
        raise ValueError(
            "no sequence can be used for the calibration: each has a label that was not in "
            "training, or labels that allowed forbids"
        )
    n_left_out = int(np.count_nonzero(~usable))
    if n_left_out:
        kept = np.flatnonzero(usable)
        codes = codes[np.repeat(usable, batch.lengths)]
        batch = batch.take(kept)
    scores = float(chain.scores_batch(batch, codes, weights, threads).sum())
    n = len(codes)

    # Losses a token at the temperature STEP ** exponent.
    @functools.cache
    def of_sequences(exponent: float) -> float:
        temperature = STEP**exponent
        log_z = chain.log_partition_batch(batch, weights, temperature, threads)
        return float((log_z.sum() - scores / temperature) / n)

    @functools.cache
    def of_tokens(exponent: float) -> float:
        _, table = chain.marginals_batch(batch, weights, STEP**exponent, threads)
        found = np.maximum(table[np.arange(n), codes], np.finfo(np.float64).tiny)
        return -float(np.log(found).mean())

    best, loss = _smallest(of_sequences, 0.0), of_sequences
    if criterion == "tokens":
        best, loss = _smallest(of_tokens, best), of_tokens
    return Calibration(STEP**best, loss(best), loss(0.0), batch.n_sequences, n_left_out)


def confidences(
    chain: Chain,
    batch: EncodedBatch,
    codes: NDArray[np.int32],
    weights: Any,
    *,
    temperature: float,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Return how probable some labels are, as a model says.

    Parameters
    ----------
    chain : Chain
        The structure.
    batch : EncodedBatch
        Sequences.
    codes : int32 array of shape (n_tokens,)
        Their labels, as places in ``chain.labels_``; the predictions, say.
    weights : array, SparseWeights or KernelWeights
        The model.
    temperature : float
        What scores are divided by.
    threads : int
        Number of threads.

    Returns
    -------
    array of shape (n_tokens,)
        Probabilities from 0 to 1. Those of other labels are not kept in memory.
    """
    found = np.empty(len(codes))
    offsets, step = batch.offsets, max(1, TOGETHER // chain.n_labels)
    begin = 0
    while begin < batch.n_sequences:
        last = int(np.searchsorted(offsets, offsets[begin] + step, side="right")) - 1
        end = min(max(last, begin + 1), batch.n_sequences)
        tokens = slice(int(offsets[begin]), int(offsets[end]))
        some = batch if end - begin == batch.n_sequences else batch.take(np.arange(begin, end))
        _, table = chain.marginals_batch(some, weights, temperature, threads)
        found[tokens] = table[np.arange(len(table)), codes[tokens]]
        begin = end
    return np.clip(found, 0.0, 1.0)


def _smallest(f: Callable[[float], float], start: float) -> float:
    """Return where a function is smallest: a bracket around a start, then golden sections."""
    most = math.log(RANGE, STEP)
    low, middle, high = start - 1, start, start + 1
    while f(low) < f(middle) and low > -most and f(middle) - f(low) >= ENOUGH:
        low, middle, high = low - 1, low, middle
    while f(high) < f(middle) and high < most:
        low, middle, high = middle, high, high + 1
    golden = (3 - math.sqrt(5)) / 2
    while high - low > PRECISION:
        left = middle - low > high - middle
        new = middle - golden * (middle - low) if left else middle + golden * (high - middle)
        if f(new) < f(middle):
            low, middle, high = (low, new, middle) if left else (middle, new, high)
        elif left:
            low = new
        else:
            high = new
    return middle
