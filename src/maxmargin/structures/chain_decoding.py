"""What a trained chain says about sequences: best labellings, scores and max-marginals.

All of it is computed in native code (``native/chain_decode.hpp``), many sequences at a time. X is
what users have, a *batch* is what the encoder made of it.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.constraints.bound import Inference
from maxmargin.errors import NotCompatibleError
from maxmargin.features import EncodedBatch, LabelCodes, check_lengths, encode_labels
from maxmargin.features.labels import label_list
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.chain_known import conflict, known_codes
from maxmargin.structures.chain_layout import Floats
from maxmargin.structures.chain_learning import EdgeMask
from maxmargin.structures.kernels import KernelWeights

__all__ = ["ChainDecoding", "Labelling", "Weights"]

Weights: TypeAlias = Floats | _native.SparseWeights | KernelWeights
Labelling: TypeAlias = list[Any]


class ChainDecoding(Structure):
    """The predictions of a chain; `Chain` adds how it is prepared and trained.

    Attributes
    ----------
    labels_ : list
        The labels in the order of the weights.
    """

    labels_: list[Any]
    _codes: dict[Any, int]  # the places of labels in labels_
    _mask: EdgeMask | None
    _cost: NDArray[np.float64] | None  # None: 1 for each wrong token
    constraints: ChainConstraints | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.labels_)

    @abstractmethod
    def encoded(self, X: Any) -> EncodedBatch:
        """Return X in numbers, by what is known."""

    @abstractmethod
    def _decodable(self, batch: EncodedBatch, weights: Weights) -> tuple[_native.ChainProblem, Any]:
        """Return encoded sequences as a problem, and the native weights to decode it with."""

    def _require_prepared(self) -> None:
        if not self.labels_:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Chain knows no labels yet; call prepare(X, Y) first")

    def predict(
        self, X: Any, weights: Weights, n_jobs: int = 1, known: Any = None
    ) -> list[Labelling]:
        """Return the best labelling of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.
        known : list of sequences, optional
            Labels that are known, None where one is not: the best of the labellings that have them.

        Returns
        -------
        list of lists of labels
            One list a sequence.
        """
        batch = self.encoded(X)
        given = self.codes_known(known, batch)
        codes = self.predict_encoded(batch, weights, n_jobs, given, inputs=X)
        return _split(self._decoded(codes), batch.offsets)

    def predict_encoded(
        self,
        batch: EncodedBatch,
        weights: Weights,
        n_jobs: int = 1,
        known: NDArray[np.int32] | None = None,
        *,
        inputs: Any = None,
    ) -> NDArray[np.int32]:
        """Return the codes of the best labelling of every encoded sequence, within ``allowed``.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.
        known : int32 array of shape (n_tokens,), optional
            Labels that are known, as places in ``labels_``; -1 where one is not. Not with
            constraints.
        inputs : list of sequences, ColumnTable or Items, optional
            The same sequences with their words; needed if there are constraints.

        Returns
        -------
        int32 array of shape (n_tokens,)
            Places in ``labels_``.

        Raises
        ------
        KnownLabelError
            If no labelling that is allowed has the known labels.
        """
        self._require_prepared()
        if self.constraints is not None and self.constraints.active:
            if known is not None:
                raise NotCompatibleError(
                    "known labels are for decoding without constraints, and this model has some; "
                    'give decode="off", or say what is known by a constraint'
                )
            return self.infer(batch, weights, n_jobs, inputs=inputs).codes
        problem, native = self._decodable(batch, weights)
        with self._naming_conflicts(known, batch):
            codes, _ = problem.predict(native, n_jobs, *self._masks(), known=known)
        return codes

    def infer(
        self, batch: EncodedBatch, weights: Weights, n_jobs: int = 1, *, inputs: Any
    ) -> Inference:
        """Return the best labelling under the constraints, with its score and an upper bound.

        Parameters
        ----------
        batch, weights, n_jobs, inputs
            As for `predict_encoded`.

        Returns
        -------
        Inference
            Labels as places in ``labels_``.
        """
        self._require_prepared()
        if self.constraints is None:
            raise NotCompatibleError("this Chain has no constraints")
        if inputs is None:
            raise NotCompatibleError(
                "constraints look at the words of the sequences, and these were given as numbers "
                "only; predict from the words"
            )
        problem, native = self._decodable(batch, weights)
        bound = self.constraints.bind(inputs, self.labels_)
        return self.constraints.infer(problem, bound, native, self._masks(), n_jobs)

    def kbest(
        self, X: Any, weights: Weights, k: int, n_jobs: int = 1, known: Any = None
    ) -> list[list[tuple[Labelling, float]]]:
        """Return the k best labellings of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        k : int
            How many; at least 1.
        n_jobs : int
            Number of threads.
        known : list of sequences, optional
            Labels that are known, None where one is not.

        Returns
        -------
        list of lists of (labels, score)
            For every sequence its labellings, best first; fewer where fewer exist.
        """
        batch = self.encoded(X)
        found = self.kbest_batch(batch, weights, k, n_jobs, self.codes_known(known, batch))
        return [[(self._decoded(codes), float(score)) for score, codes in paths] for paths in found]

    def kbest_batch(
        self,
        batch: EncodedBatch,
        weights: Weights,
        k: int,
        n_jobs: int = 1,
        known: NDArray[np.int32] | None = None,
    ) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Return the k best labellings of every encoded sequence, within ``allowed``.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        weights : array or SparseWeights
            The native weights.
        k : int
            How many; at least 1.
        n_jobs : int
            Number of threads.
        known : int32 array of shape (n_tokens,), optional
            Labels that are known, as places in ``labels_``; -1 where one is not.

        Returns
        -------
        list of lists of (score, codes)
            For every sequence its labellings as places in ``labels_``, best first; fewer where
            fewer exist.
        """
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError(f"k is {k!r}; expected an integer") from None
        if k < 1:
            raise ValueError(f"k is {k}; expected at least 1")
        self._require_prepared()
        self._refuse_constraints("the k best labellings")
        problem, native = self._decodable(batch, weights)
        with self._naming_conflicts(known, batch):
            return problem.kbest(native, k, n_jobs, *self._masks(), known=known)

    def score_labellings(
        self, X: Any, Y: Any, weights: Weights, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given labellings.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        Y : list of label sequences
            Their labels, all of them known.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_sequences,)
            The scores.
        """
        self._require_prepared()
        check_lengths(X, Y)
        codes, _ = encode_labels(Y, self._codes)
        problem, native = self._decodable(self.encoded(X), weights)
        scores = problem.score(native, codes, n_jobs)
        if self.constraints is not None and self.constraints.features:
            scores += self.constraints.worth(self.constraints.bind(X, self.labels_), codes)
        return scores

    def score_outputs(
        self, X: Any, Y: Any, weights: Weights, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Return `score_labellings`, under the name that all native structures have for it.

        Parameters
        ----------
        X, Y, weights, n_jobs
            As for `score_labellings`.

        Returns
        -------
        array of shape (n_sequences,)
            The scores.
        """
        return self.score_labellings(X, Y, weights, n_jobs)

    def max_marginals(self, X: Any, weights: Weights, n_jobs: int = 1) -> list[NDArray[np.float64]]:
        """Return, for each token and label, the score of the best labelling with that label there.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of arrays of shape (T, L)
            Over all labellings, whatever ``allowed`` says; columns in the order of ``labels_``.
        """
        batch = self.encoded(X)
        return np.split(self.max_marginals_batch(batch, weights, n_jobs), batch.offsets[1:-1])

    def max_marginals_batch(
        self,
        batch: EncodedBatch,
        weights: Weights,
        n_jobs: int = 1,
        known: NDArray[np.int32] | None = None,
    ) -> NDArray[np.float64]:
        """Return the max-marginals of the tokens of all encoded sequences.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.
        known : int32 array of shape (n_tokens,), optional
            Labels that are known, as places in ``labels_``; -1 where one is not.

        Returns
        -------
        array of shape (n_tokens, L)
            For each token and label the score of the best labelling with that label there, over
            all labellings, whatever ``allowed`` says; columns in the order of ``labels_``.
        """
        self._require_prepared()
        self._refuse_constraints("max-marginals")
        problem, native = self._decodable(batch, weights)
        found = problem.max_marginals(native, n_jobs, known=known)
        return found.reshape(-1, self.n_labels)

    def marginals_batch(
        self,
        batch: EncodedBatch,
        weights: Weights,
        temperature: float = 1.0,
        n_jobs: int = 1,
        *,
        known: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities of the labels of all tokens, p(y) ~ exp(score / temperature).

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        weights : array or SparseWeights
            The native weights.
        temperature : float
            What scores are divided by; positive.
        n_jobs : int
            Number of threads.
        known : int32 array of shape (n_tokens,), optional
            Labels that are known, as places in ``labels_``; -1 where one is not. The sums are then
            over the labellings that have them: probabilities are conditional on what is known.

        Returns
        -------
        log_z : array of shape (n_sequences,)
            The logarithm of the sum of exp(score / temperature) over all labellings.
        marginals : array of shape (n_tokens, L)
            Columns in the order of ``labels_``. The sums are over the labellings within
            ``allowed``, as predictions are.
        """
        self._require_prepared()
        self._refuse_constraints("probabilities")
        problem, native = self._decodable(batch, weights)
        with self._naming_conflicts(known, batch):
            log_z, marginals = problem.marginals(
                native, temperature, True, n_jobs, *self._masks(), known=known
            )
        return log_z, marginals.reshape(-1, self.n_labels)

    def log_partition_batch(
        self, batch: EncodedBatch, weights: Weights, temperature: float = 1.0, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Return the first answer of `marginals_batch`, for half of the work.

        Parameters
        ----------
        batch, weights, temperature, n_jobs
            As for `marginals_batch`.

        Returns
        -------
        array of shape (n_sequences,)
            The logarithms.
        """
        self._require_prepared()
        self._refuse_constraints("probabilities")
        problem, native = self._decodable(batch, weights)
        found: tuple[NDArray[np.float64], Any]
        found = problem.marginals(native, temperature, False, n_jobs, *self._masks())
        return found[0]

    def scores_batch(
        self,
        batch: EncodedBatch,
        codes: NDArray[np.int32],
        weights: Weights,
        n_jobs: int = 1,
    ) -> NDArray[np.float64]:
        """Return the scores of given labellings of encoded sequences.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        codes : int32 array of shape (n_tokens,)
            Their labels, as places in ``labels_``.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_sequences,)
            The scores; minus infinity where a labelling is not within ``allowed``.
        """
        self._require_prepared()
        self._refuse_constraints("probabilities")
        problem, native = self._decodable(batch, weights)
        scores = problem.score(native, codes, n_jobs)
        scores[~self.allowed_batch(batch.offsets, codes)] = -np.inf
        return scores

    def allowed_batch(
        self, offsets: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Tell which labellings are within ``allowed``.

        Parameters
        ----------
        offsets : int64 array of shape (n_sequences + 1,)
            Where sequences begin.
        codes : int32 array of shape (n_tokens,)
            Their labels, as places in ``labels_``.

        Returns
        -------
        bool array of shape (n_sequences,)
            True where a prediction could be this labelling.
        """
        good = np.ones(len(codes), dtype=bool)
        if self._mask is not None:
            transition, start, end = self._mask
            first, last = offsets[:-1], offsets[1:] - 1
            good[1:] = transition.reshape(self.n_labels, -1)[codes[:-1], codes[1:]] != 0
            good[first] = start[codes[first]] != 0
            good[last] &= end[codes[last]] != 0
        whole: NDArray[np.bool_] = np.logical_and.reduceat(good, offsets[:-1])
        return whole

    def token_costs(
        self, truth: NDArray[np.integer[Any]], labels: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Return what labels cost where others are the truth, token by token.

        Parameters
        ----------
        truth : int array of shape (n_tokens,)
            The true labels, as places in ``labels_``; others stand for labels that are not known,
            which cost as much as the most expensive error.
        labels : int array of shape (n_tokens,)
            The labels that are given, as places in ``labels_``.

        Returns
        -------
        array of shape (n_tokens,)
            The costs, without weights of tokens.
        """
        if self._cost is None:
            wrong: NDArray[np.bool_] = truth != labels
            return wrong.astype(np.float64)
        known = (truth >= 0) & (truth < self.n_labels)
        costs: NDArray[np.float64] = self._cost[np.where(known, truth, 0), labels]
        costs[~known] = self._cost.max()
        return costs

    def known_codes(self, Y: Any) -> NDArray[np.int32]:
        """Return the codes of labels (places in ``labels_``), -1 for a label that is not known.

        Parameters
        ----------
        Y : list of label sequences, or LabelCodes
            Any labels.

        Returns
        -------
        int32 array of shape (n_tokens,)
            The labels of all sequences, one after the other.
        """
        self._require_prepared()
        get = self._codes.get
        if isinstance(Y, LabelCodes):
            return np.array([get(name, -1) for name in Y.names], dtype=np.int32)[Y.codes]
        labels = itertools.chain.from_iterable(map(label_list, Y))
        return np.fromiter((get(label, -1) for label in labels), dtype=np.int32)

    def _refuse_constraints(self, what: str) -> None:
        if self.constraints is not None and self.constraints.active:
            raise NotCompatibleError(
                f"{what} are those of the chain alone, and this model decodes with constraints; "
                'use predict, or decode="off" without constraint features'
            )

    def codes_known(self, known: Any, batch: EncodedBatch) -> NDArray[np.int32] | None:
        """Return labels that are known before decoding as codes.

        Parameters
        ----------
        known : list of sequences or None
            Labels, None where one is not known; None: nothing is.
        batch : EncodedBatch
            The sequences.

        Returns
        -------
        int32 array of shape (n_tokens,) or None
            Places in ``labels_``, and -1 where nothing is known.
        """
        return None if known is None else known_codes(known, self._codes, batch.offsets)

    @contextlib.contextmanager
    def _naming_conflicts(self, known: Any, batch: EncodedBatch) -> Iterator[None]:
        """Say which of the known labels cannot be, where native code finds no labelling."""
        try:
            yield
        except ValueError:
            found = None
            if known is not None:
                found = conflict(known, batch.offsets, self._mask, self.labels_)
            if found is None:
                raise
            raise found from None

    def _masks(self) -> tuple[Any, Any, Any]:
        return (None, None, None) if self._mask is None else self._mask

    def _decoded(self, codes: NDArray[np.int32]) -> Labelling:
        return list(map(self.labels_.__getitem__, codes.tolist()))


def _split(labels: Labelling, offsets: NDArray[np.int64]) -> list[Labelling]:
    return [labels[a:b] for a, b in itertools.pairwise(offsets.tolist())]
