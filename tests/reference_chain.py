"""Label sequences, slowly and clearly, to test native code against.

    f(x, y) = Σ_t x_t ⊗ e(y_t) + Σ_t e(y_{t-1}) ⊗ e(y_t) + start(y_1) + end(y_T)

The weights are laid out as

    [0, d*L)         emissions, [d][L]: row = feature, the labels of a feature are contiguous
    [d*L, d*L+L*L)   transitions, [L][L]: row = first label, column = second label
    then L           start weights, [L]
    then L           end weights, [L]

The loss is Σ_t weight_t * cost[truth_t][label_t].

A sequence x is a (T, d) array or scipy.sparse matrix, or a tuple, or a dict of such blocks, which
are put side by side in their order. A labelling is a 1-d array of T integers. A truth whose tokens
do not weigh the same is a `Weighted` labelling: loss(y, ŷ) sees no x, so the weights are with y.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse

from maxmargin.structures.base import Structure


class Weighted(NamedTuple):
    """A true labelling with the weight of each token in the loss."""

    labels: np.ndarray  # [T] integers
    weights: np.ndarray  # [T] at least 0


def labels_of(y):
    """Return the labels of a labelling, weighted or not, as an array."""
    return np.asarray(y.labels if isinstance(y, Weighted) else y, dtype=np.int64)


def token_weights_of(y):
    """Return the token weights of a labelling: ones if it has none."""
    if isinstance(y, Weighted):
        return np.asarray(y.weights, dtype=float)
    return np.ones(len(y))


def dense_tokens(x):
    """Return a sequence as one dense (T, d) array of 8-byte numbers."""
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, tuple):
        return np.hstack([dense_tokens(block) for block in x])
    return np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=float)


class ReferenceChain(Structure):
    """Emissions, first-order transitions, start and end weights.

    `n_labels` is L, `n_token_features` is d, and `cost` is an (L, L) array, cost[truth][label]
    (default: Hamming).
    """

    def __init__(self, n_labels, n_token_features, cost=None):
        self.n_labels = n_labels
        self.n_token_features = n_token_features
        self.cost = 1.0 - np.eye(n_labels) if cost is None else np.asarray(cost, dtype=float)
        self.n_features = n_token_features * n_labels + n_labels * n_labels + 2 * n_labels

    def split(self, w):
        """Return views of w as emissions [d][L], transitions [L][L], start [L], end [L]."""
        d, L = self.n_token_features, self.n_labels
        emission, transition, start, end = np.split(w, np.cumsum([d * L, L * L, L]))
        return emission.reshape(d, L), transition.reshape(L, L), start, end

    # --- the three methods of a structure ---

    def joint_feature(self, x, y):
        tokens, labels = dense_tokens(x), labels_of(y)
        if len(tokens) != len(labels):
            raise ValueError(f"{len(tokens)} tokens and {len(labels)} labels")
        f = np.zeros(self.n_features)
        emission, transition, start, end = self.split(f)
        for token, label in zip(tokens, labels, strict=True):
            emission[:, label] += token
        for first, second in itertools.pairwise(labels):
            transition[first, second] += 1.0
        start[labels[0]] += 1.0
        end[labels[-1]] += 1.0
        return f

    def loss(self, y, y_hat):
        truth, labels, weights = labels_of(y), labels_of(y_hat), token_weights_of(y)
        return float(
            sum(v * self.cost[a, b] for v, a, b in zip(weights, truth, labels, strict=True))
        )

    def argmax(self, x, w, truth=None):
        """Viterbi, as in any textbook; the lowest label wins a tie."""
        unary, transition = self.unary(x, w, truth), self.split(w)[1]
        T, L = unary.shape
        best = np.zeros(
            (T, L)
        )  # best[t][b]: value of the best labelling of tokens 0..t ending in b
        back = np.zeros((T, L), dtype=np.int64)  # back[t][b]: the label before b in it
        best[0] = unary[0]
        for t in range(1, T):
            for b in range(L):
                values = best[t - 1] + transition[:, b]
                back[t, b] = np.argmax(values)
                best[t, b] = values[back[t, b]] + unary[t, b]
        labels = np.zeros(T, dtype=np.int64)
        labels[-1] = np.argmax(best[-1])
        for t in range(T - 1, 0, -1):
            labels[t - 1] = back[t, labels[t]]
        return labels

    # --- the optional ones ---

    def outputs(self, x):
        return iter(self.all_outputs(len(dense_tokens(x))))

    def equal(self, y, y_hat):
        return np.array_equal(labels_of(y), labels_of(y_hat))

    # --- brute force ---

    def unary(self, x, w, truth=None):
        """Return [T][L]: emission, start and end scores, plus the loss if there is a truth."""
        emission, _, start, end = self.split(w)
        unary = dense_tokens(x) @ emission
        unary[0] += start
        unary[-1] += end
        if truth is not None:
            unary += token_weights_of(truth)[:, None] * self.cost[labels_of(truth)]
        return unary

    def all_outputs(self, T):
        """Return all L**T labellings of T tokens, [L**T][T], in lexicographic order."""
        every = list(itertools.product(range(self.n_labels), repeat=T))
        return np.array(every, dtype=np.int64).reshape(len(every), T)

    def all_values(self, x, w, truth=None):
        """Return the score (plus loss, with a truth) of every labelling, [L**T].

        From w.f and loss themselves, so that nothing is shared with `argmax`.
        """
        return np.array(
            [
                w @ self.joint_feature(x, y) + (0.0 if truth is None else self.loss(truth, y))
                for y in self.outputs(x)
            ]
        )

    def brute_argmax(self, x, w, truth=None):
        """Return the best labelling (with a truth: loss-augmented) by trying them all."""
        return self.all_outputs(len(dense_tokens(x)))[np.argmax(self.all_values(x, w, truth))]

    def kbest(self, x, w, k):
        """Return the k best [(score, labels)], best first, ties in lexicographic order."""
        values = self.all_values(x, w)
        order = np.argsort(-values, kind="stable")[:k]
        every = self.all_outputs(len(dense_tokens(x)))
        return [(float(values[j]), every[j]) for j in order]
