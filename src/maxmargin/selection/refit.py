"""Re-fits of sparse models with plain L2, which does not shrink the weights that were selected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _native
from maxmargin.features.batch import EncodedBatch
from maxmargin.regularizers import Selected
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.validation import report_of
from maxmargin.structures.chain_layout import ChainLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = ["debias"]

_DROPPED = 2**32 - 1  # the number that native code takes for "this feature is left out"


def debias(
    chain: Chain,
    data: Encoded,
    outcome: Outcome,
    options: FitOptions,
    *,
    C: float | None = None,
    keep: str = "features",
    valid: Encoded | None = None,
    sample_weight: Any = None,
    callbacks: Iterable[Any] = (),
) -> Outcome:
    """Train again with plain L2, on what a sparse model selected.

    The L1 part of the elastic net selects, but it also pulls the weights that are left towards
    zero. Here it only selects, and what it selected gets weights as ½‖w‖² + C Σ ξ_i has them.

    With ``keep="features"``, features all of whose weights are zero stay out. A feature comes back
    as a whole, with a weight for each label, so the number of non-zero weights may be larger than
    before; the number of features is not. Transitions, start and end are always in. With
    ``keep="weights"``, every single weight that is zero stays zero.

    Parameters
    ----------
    chain, data, sample_weight
        As for `regularization_path`.
    outcome : Outcome
        The sparse model.
    options : FitOptions
        How to train; regulariser and checkpoint are left aside.
    C : float or None
        Weight of the loss; None: that of the sparse model.
    keep : {"features", "weights"}
        What was selected.
    valid : Encoded or None
        Data on which the new model is scored in the end.
    callbacks : iterable
        As for `maxmargin.solvers.solve`.

    Returns
    -------
    Outcome
        The new model, with weights for all features. Its certificate, its history and its engine
        are those of the smaller problem: they bound how much better a model with *these* features
        can be, not one with all of them (with ``keep="weights"``: with these weights).
    """
    if keep not in ("features", "weights"):
        raise ValueError(f'keep is {keep!r}; expected "features" or "weights"')
    if keep == "weights":
        own = dataclasses.replace(
            options,
            regularizer=Selected(outcome.weights),
            dtype=str(outcome.weights.dtype),  # whose layout it has
            checkpoint=None,
            resume=False,
        )
        problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
        C = outcome.C if C is None else C
        found = fit(chain, problem, C, own, callbacks=callbacks)
        if valid is not None:
            found.report = report_of(chain, valid, found.weights, options.threads)
        return found
    layout = chain.layout
    old = chain.unpack(outcome.weights)
    selected = np.asarray(old.coef.any(axis=1))
    sparse = np.flatnonzero(selected[: layout.n_sparse])
    dense = np.flatnonzero(selected[layout.dense])
    pairs = np.flatnonzero(old.pairs.any(axis=(1, 2)))
    batch = _with_features(data.batch, sparse, dense, pairs)
    problem = chain.encoded_problem(batch, data.codes, sample_weight=sample_weight)
    own = dataclasses.replace(options, regularizer=None, checkpoint=None, resume=False)
    C = outcome.C if C is None else C
    found = fit(chain, problem, C, own, callbacks=callbacks)

    # From the rows of the small problem to those of the chain; the padding of both is the same.
    own_layout = ChainLayout.of(batch, chain.n_labels)
    small = own_layout.matrix(found.weights)
    weights = layout.zeros(small.dtype)
    full = layout.matrix(weights)
    full[sparse] = small[: len(sparse)]
    full[layout.dense][dense] = small[own_layout.dense]
    full[layout.edges] = small[own_layout.edges]
    full[layout.pair_rows(pairs).ravel()] = small[own_layout.pairs]
    result = dataclasses.replace(found.result, weights=weights)
    report = None if valid is None else report_of(chain, valid, weights, options.threads)
    return Outcome(C, result, weights, found.certificate, report, gap_asked=options.gap)


def _with_features(
    batch: EncodedBatch, sparse: NDArray[Any], dense: NDArray[Any], pairs: NDArray[Any]
) -> EncodedBatch:
    """Return a batch with some of its features only, numbered in the same order."""
    indptr = indices = values = None
    n_sparse = len(sparse)
    if batch.indptr is not None and batch.indices is not None:
        number = _numbers(batch.n_sparse, sparse)
        indptr, indices, values = _native.renumber(
            batch.indptr, batch.indices, batch.values, number
        )
    if n_sparse == 0 and len(dense) == 0:
        # A batch has features, so there is one that no token has.
        n_sparse = 1
        indptr, indices, values = np.zeros(batch.n_tokens + 1, np.int64), np.empty(0, "u4"), None
    pair_indptr = pair_indices = None
    if len(pairs) and batch.pair_indptr is not None and batch.pair_indices is not None:
        number = _numbers(batch.n_pair, pairs)
        pair_indptr, pair_indices, _ = _native.renumber(
            batch.pair_indptr, batch.pair_indices, None, number
        )
    kept = None if batch.dense is None or len(dense) == 0 else batch.dense[:, dense].copy()
    return EncodedBatch(
        batch.offsets,
        n_sparse,
        indptr,
        indices,
        values,
        kept,
        len(pairs),
        pair_indptr,
        pair_indices,
    )


def _numbers(n: int, kept: NDArray[Any]) -> NDArray[np.uint32]:
    number = np.full(n, _DROPPED, dtype=np.uint32)
    number[kept] = np.arange(len(kept), dtype=np.uint32)
    return number
