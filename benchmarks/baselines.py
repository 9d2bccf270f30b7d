"""Two classical taggers to stand beside structural SVMs: an HMM and the averaged perceptron.

Both are a few lines of NumPy on encoded data, for small corpora. Codes and offsets are those of
`maxmargin.selection.Encoded`: the sequences lie one after the other.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.batch import EncodedBatch

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


def viterbi(unary: Floats, transition: Floats, start: Floats) -> Codes:
    """Return the labelling of one sequence with the largest sum of scores."""
    score, back = start + unary[0], np.zeros(unary.shape, dtype=np.int32)
    for t in range(1, len(unary)):
        through = score[:, None] + transition
        back[t] = through.argmax(axis=0)
        score = through.max(axis=0) + unary[t]
    path = [int(score.argmax())]
    for t in range(len(unary) - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return np.array(path[::-1], dtype=np.int32)


def sequences(offsets: NDArray[np.int64]) -> list[slice]:
    """Return where each sequence is."""
    return [slice(a, b) for a, b in itertools.pairwise(offsets.tolist())]


class HMM:
    """A first-order hidden Markov model: smoothed relative frequencies, decoded by Viterbi.

    A symbol that was never seen is taken for one of those that were seen once: else it would be
    most probable under the rarest label.

    Parameters
    ----------
    n_labels, n_symbols : int
        How many labels and observable symbols there are; symbol -1 is any other.
    smoothing : float
        Added to every count.
    """

    def __init__(self, n_labels: int, n_symbols: int, smoothing: float = 0.1) -> None:
        if not smoothing > 0:
            raise ValueError(f"smoothing is {smoothing}; expected a number above 0")
        self.n_labels, self.n_symbols, self.smoothing = n_labels, n_symbols, smoothing

    def fit(self, symbols: NDArray[Any], codes: Codes, offsets: NDArray[np.int64]) -> HMM:
        """Count."""
        L, V = self.n_labels, self.n_symbols
        first = np.zeros(len(codes), dtype=bool)
        first[offsets[:-1]] = True
        follows = np.flatnonzero(~first)
        pairs = codes[follows - 1].astype(np.int64) * L + codes[follows]
        self.start = self._log(np.bincount(codes[first], minlength=L).astype(float))
        self.transition = self._log(np.bincount(pairs, minlength=L * L).reshape(L, L).astype(float))
        counts = np.zeros((L, V + 1))
        np.add.at(counts, (codes, symbols), 1.0)
        once = np.bincount(symbols, minlength=V)[symbols] == 1
        np.add.at(counts, (codes[once], -1), 1.0)
        self.emission = self._log(counts)
        return self

    def _log(self, counts: Floats) -> Floats:
        smooth = counts + self.smoothing
        return np.log(smooth / smooth.sum(axis=-1, keepdims=True))

    def predict(self, symbols: NDArray[Any], offsets: NDArray[np.int64]) -> Codes:
        """Return the most probable labellings."""
        unary = self.emission[:, symbols].T
        found = [viterbi(unary[part], self.transition, self.start) for part in sequences(offsets)]
        return np.concatenate(found)


class AveragedPerceptron:
    """Collins' structured perceptron; the mean of the weights after every sequence is kept.

    Parameters
    ----------
    n_labels : int
        How many labels there are.
    epochs : int
        Passes over the training data.
    seed : int
        Of the order of visits.
    """

    def __init__(self, n_labels: int, epochs: int = 10, seed: int = 0) -> None:
        self.n_labels, self.epochs, self.seed = n_labels, epochs, seed

    def fit(self, batch: EncodedBatch, codes: Codes) -> AveragedPerceptron:
        """Learn from mistakes, one sequence after the other; batch has features of value one."""
        L, F = self.n_labels, batch.n_sparse
        # Rows: features, transitions by first label, start.
        w, sums = np.zeros((F + L + 1, L)), np.zeros((F + L + 1, L))
        parts, draw, now = sequences(batch.offsets), np.random.default_rng(self.seed), 0
        for _ in range(self.epochs):
            for k in draw.permutation(len(parts)):
                now += 1
                part = parts[k]
                guess = viterbi(self._unary(batch, part, w), w[F : F + L], w[F + L])
                if (guess == codes[part]).all():
                    continue
                for labels, sign in ((codes[part], 1.0), (guess, -1.0)):
                    rows, columns = self._active(batch, part, labels)
                    np.add.at(w, (rows, columns), sign)
                    # What changes now is missing from the means of all visits before.
                    np.add.at(sums, (rows, columns), sign * (now - 1))
        self.weights = w - sums / max(now, 1)
        return self

    def predict(self, batch: EncodedBatch) -> Codes:
        """Return the best labellings."""
        w, F, L = self.weights, batch.n_sparse, self.n_labels
        found = [
            viterbi(self._unary(batch, part, w), w[F : F + L], w[F + L])
            for part in sequences(batch.offsets)
        ]
        return np.concatenate(found)

    @staticmethod
    def _unary(batch: EncodedBatch, part: slice, w: Floats) -> Floats:
        assert batch.indptr is not None
        assert batch.indices is not None
        bounds = batch.indptr[part.start : part.stop + 1]
        rows = w[batch.indices[bounds[0] : bounds[-1]]]
        before = np.concatenate([np.zeros((1, w.shape[1])), rows.cumsum(axis=0)])
        return before[bounds[1:] - bounds[0]] - before[bounds[:-1] - bounds[0]]

    def _active(
        self, batch: EncodedBatch, part: slice, labels: Codes
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return row and column of every weight that the score of a labelling sums."""
        assert batch.indptr is not None
        assert batch.indices is not None
        bounds = batch.indptr[part.start : part.stop + 1]
        features = batch.indices[bounds[0] : bounds[-1]].astype(np.int64)
        F, L = batch.n_sparse, self.n_labels
        rows = np.concatenate([features, F + labels[:-1], [F + L]])
        columns = np.concatenate([np.repeat(labels, np.diff(bounds)), labels[1:], labels[:1]])
        return rows, columns
