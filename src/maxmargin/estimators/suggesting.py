"""Which sequences to label next.

A sequence is worth labelling if the model is unsure of it or violates what a person knows, and if
it is not like those chosen already. With the ranks over the pool, from 0 (least) to 1,

    worth(x) = ½ rank(uncertainty) + ½ rank(violations)

where the uncertainty is Σ_t max(0, 1 - margin of token t) (the margin: the best labelling less the
best one with another label at the token; training asks for 1, the loss of a wrong label), and
violations are those of the unconstrained prediction. Both are sums over the tokens: a sequence is
worth what all its unsure tokens are. Means over the tokens choose short sequences, which teach
little; long sequences by themselves are no better than random ones.

Then, greedily, the next one has the greatest worth(x) · (1 - the greatest similarity to those
chosen), where the similarity is the Jaccard index of the sets of features.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_whole

__all__ = ["Suggestion", "suggest"]


class Suggestion(NamedTuple):
    """A sequence to label.

    Attributes
    ----------
    index : int
        Its place in X.
    margin : float
        Mean margin of its tokens.
    violations : int
        Constraints that the unconstrained prediction violates.
    worth : float
        By which it was chosen, before similar ones are discounted.
    """

    index: int  # type: ignore[assignment]
    margin: float
    violations: int
    worth: float


def suggest(
    chain: Any, weights: Any, X: Any, n: int = 20, *, diverse: bool = True, n_jobs: int = 1
) -> list[Suggestion]:
    """Return which sequences to label next, the most useful first.

    Parameters
    ----------
    chain : Chain
        Prepared; its constraints count if it has some.
    weights : array or SparseWeights
        Its native weights.
    X : list of sequences or ColumnTable
        The unlabelled ones.
    n : int
        How many.
    diverse : bool
        Whether those like others that were chosen count less.
    n_jobs : int
        Number of threads.

    Returns
    -------
    list of Suggestion
        At most n.
    """
    check_whole("n", n, 1)
    rules, chain.constraints = chain.constraints, None
    try:
        batch = chain.encoder.transform(X)
        marginals = chain.max_marginals_batch(batch, weights, n_jobs)
        codes = chain.predict_encoded(batch, weights, n_jobs)
    finally:
        chain.constraints = rules
    top = np.partition(marginals, -2, axis=1)[:, -2:] if marginals.shape[1] > 1 else None
    token_margin = np.zeros(len(marginals)) if top is None else top[:, 1] - top[:, 0]
    starts = batch.offsets[:-1]
    margin = np.add.reduceat(token_margin, starts) / batch.lengths
    unsure = np.add.reduceat(np.maximum(1.0 - token_margin, 0.0), starts)
    violations = np.zeros(batch.n_sequences)
    if rules is not None:
        bound = rules.bind(X, chain.labels_)
        missing = np.append((bound.phi(codes) < bound.target).astype(np.float64), 0.0)
        sums = np.add.reduceat(missing, bound.offsets[:-1])
        violations = np.where(np.diff(bound.offsets) > 0, sums, 0.0)
    worth = _rank(unsure)
    if violations.any():
        worth = 0.5 * worth + 0.5 * _rank(violations)
    chosen = _greedy(worth, batch, n) if diverse else np.argsort(-worth, kind="stable")[:n]
    return [
        Suggestion(int(i), float(margin[i]), int(violations[i]), float(worth[i])) for i in chosen
    ]


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 0 to 1; equal values have equal ranks."""
    distinct, where = np.unique(values, return_inverse=True)
    ranks: NDArray[np.float64] = where / max(len(distinct) - 1, 1)
    return ranks


def _greedy(worth: NDArray[np.float64], batch: Any, n: int) -> list[int]:
    if batch.indptr is None:  # arrays have no sets of features
        return [int(i) for i in np.argsort(-worth, kind="stable")[:n]]
    ends = batch.indptr[batch.offsets]
    sets = [frozenset(batch.indices[a:b].tolist()) for a, b in itertools.pairwise(ends)]
    closest = np.zeros(len(sets))
    left = np.ones(len(sets), bool)
    chosen: list[int] = []
    while len(chosen) < min(n, len(sets)):
        value = np.where(left, (1e-9 + worth) * (1 - closest), -1.0)
        best = int(np.argmax(value))
        chosen.append(best)
        left[best] = False
        for i in np.flatnonzero(left).tolist():
            union = len(sets[best] | sets[i])
            if union:
                closest[i] = max(closest[i], len(sets[best] & sets[i]) / union)
    return chosen
