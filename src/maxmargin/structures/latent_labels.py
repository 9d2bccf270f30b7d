"""Labels with latent states: a chain, or classes, over pairs (label, state); truths have labels.

The pair takes the place of the label in a native structure: every pair has weights of its own, and
going from one pair to another with the same label costs nothing. So the outputs without a loss are
those that have the true labels, with any states, and native code finds the best of them
(``native/impute.hpp``). A state is a style of a letter, a sub-class, a position within a segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice, is_whole
from maxmargin.errors import NotCompatibleError
from maxmargin.features import check_lengths
from maxmargin.features.example_matrix import example_matrix
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_learning import EdgeMask, learn_features, learn_labels
from maxmargin.structures.class_labels import class_costs, encode_classes
from maxmargin.structures.clusters import k_means
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.native import PreparedProblem

__all__ = ["STARTS", "LabelStates"]

#: How the first states are chosen.
STARTS = ("cluster", "random", "first")
#: Pairs of a label and a state, at most: a typing error is better told than tried.
MOST_PAIRS = 100_000


class _Labels(NamedTuple):
    """The labels that the truths have, before they are joined with states."""

    classes: list[Any]
    codes: NDArray[np.intp]  # of all tokens or examples, places in `classes`
    lengths: NDArray[np.int64] | None  # tokens of each sequence; None: one label for each example
    cost: NDArray[np.float64]  # in the order of `classes`
    mask: EdgeMask | None  # likewise


class LabelStates:
    """A native structure over pairs (label, state).

    Parameters
    ----------
    structure : Chain or Multiclass
        What the truths are outputs of. It is not changed.
    states : int, or dict of label to int
        How many states each label has; labels that are not in the dict have one.
    """

    def __init__(self, structure: Chain | Multiclass, states: Any) -> None:
        if isinstance(structure, Chain) and structure.kernel != "linear":
            raise NotCompatibleError(
                "a chain with a kernel has no weights of features, which states of labels need; "
                'use kernel="linear"'
            )
        if getattr(structure, "prior", None) is not None:
            raise NotCompatibleError("a chain with states of its labels takes no prior")
        _check_states(states)
        self.base, self.states = structure, states
        self.classes_: list[Any] = []
        self.first_: NDArray[np.intp] = np.empty(0, np.intp)  # first pair of each class
        self.pairs_: list[tuple[Any, int]] = []
        self.groups_: NDArray[np.intp] | None = None  # classes of the training examples
        self.cost_: NDArray[np.float64] = np.empty((0, 0))  # of labels, in the order of classes_
        self.inner: Any = None

    # --- training ---

    def prepare(
        self,
        X: Any,
        Y: Any,
        *,
        start: str,
        rng: np.random.Generator,
        dtype: str,
        sample_weight: Any = None,
    ) -> PreparedProblem:
        """Learn labels and features, choose the first states, make the training problem.

        Parameters
        ----------
        X, Y : object
            Inputs, and outputs of the structure, without states.
        start : {"cluster", "random", "first"}
            How the states of the reference outputs are chosen.
        rng : numpy.random.Generator
            For "cluster" and "random".
        dtype : "float32" or "float64"
            Type of the weights.
        sample_weight : array or None
            A factor of C for each example.

        Returns
        -------
        PreparedProblem
            Of pairs; its reference outputs have the true labels and the chosen states.
        """
        pairs = self.first_pairs(X, Y, start=start, rng=rng, dtype=dtype)
        prepared: PreparedProblem = self.inner.prepare_problem(
            X, pairs, sample_weight=sample_weight, dtype=dtype
        )
        return prepared

    def first_pairs(
        self, X: Any, Y: Any, *, start: str, rng: np.random.Generator, dtype: str
    ) -> list[Any]:
        """Learn labels, make the structure over pairs, and choose the first states.

        Parameters
        ----------
        X, Y, start, rng, dtype
            As for `prepare`.

        Returns
        -------
        list
            The outputs of ``inner``, which is not prepared yet: numbers of pairs.
        """
        check_choice("start", start, STARTS)
        labels = self._labels(X, Y)
        counts = _counts(self.states, labels.classes)
        first = np.cumsum(counts) - counts
        chosen = self._first_states(X, labels, counts, start=start, rng=rng, dtype=dtype)
        group = np.repeat(np.arange(len(counts)), counts)
        self.classes_, self.first_, self.cost_ = labels.classes, first, labels.cost
        self.pairs_ = [
            (c, k) for c, n in zip(labels.classes, counts, strict=True) for k in range(n)
        ]
        self.inner = self._expanded(labels, group)
        self.groups_ = labels.codes if labels.lengths is None else None
        return _divided(first[labels.codes] + chosen, labels.lengths)

    def pairs_of(self, Y: Any) -> list[Any]:
        """Return truths as outputs of ``inner``, with the first state of each label.

        Parameters
        ----------
        Y : sequence
            Labels, or sequences of labels, that are known.

        Returns
        -------
        list
            Numbers of pairs.

        Raises
        ------
        ValueError
            If a label is not known; the message says where it is.
        """
        if isinstance(self.inner, Multiclass):
            codes, _ = encode_classes(Y, self.classes_)
            return [int(self.first_[c]) for c in codes]
        places = {label: c for c, label in enumerate(self.classes_)}
        references = []
        for i, y in enumerate(Y):
            for t, label in enumerate(y):
                if label not in places:
                    raise ValueError(
                        f"Y: sequence {i}, token {t} has the label {label!r}, which is not known"
                    )
            references.append([int(self.first_[places[label]]) for label in y])
        return references

    def _labels(self, X: Any, Y: Any) -> _Labels:
        base = self.base
        if isinstance(base, Multiclass):
            codes, classes = encode_classes(Y, base.labels)
            if len(classes) < 2:
                raise ValueError(
                    f"y has one class only ({classes[0]!r}); expected labels of at least two"
                )
            cost = class_costs(base.loss_spec, classes)
            return _Labels(classes, codes.astype(np.intp), None, _costs(cost, len(classes)), None)
        if Y is None:
            raise ValueError("Y is None; expected a list of label sequences, one for each of X")
        check_lengths(X, Y)
        found = learn_labels(Y, base.labels, base.loss_spec, base.allowed)
        columns, n = found.columns, len(found.classes)
        back = np.argsort(columns)  # column -> class
        cost = None if found.cost is None else found.cost[np.ix_(columns, columns)]
        mask = found.mask
        if mask is not None:
            square = mask.transition.reshape(n, n)[np.ix_(columns, columns)]
            mask = EdgeMask(square, mask.start[columns], mask.end[columns])
        lengths = np.array([len(y) for y in Y], dtype=np.int64)
        return _Labels(found.classes, back[found.codes], lengths, _costs(cost, n), mask)

    def _first_states(
        self,
        X: Any,
        labels: _Labels,
        counts: NDArray[np.intp],
        *,
        start: str,
        rng: np.random.Generator,
        dtype: str,
    ) -> NDArray[np.intp]:
        most = counts[labels.codes]
        if start == "first":
            return np.zeros(len(most), dtype=np.intp)
        if start == "random" or counts.max() == 1:
            return np.asarray(rng.integers(most), dtype=np.intp)
        rows = self._rows(X, dtype)
        chosen = np.zeros(len(most), dtype=np.intp)
        for c, n in enumerate(counts):
            members = np.flatnonzero(labels.codes == c)
            chosen[members] = k_means(rows[members], int(n), rng)
        return chosen

    def _rows(self, X: Any, dtype: str) -> Any:
        """Return the features of all tokens, or of all examples, as a matrix."""
        base = self.base
        if isinstance(base, Multiclass):
            return example_matrix(X) if base.words is None else base.words.fresh().fit_transform(X)
        batch = learn_features(X, base.encoder, None, dtype).batch
        if batch.indptr is None or batch.indices is None:
            return batch.dense
        import scipy.sparse

        values = np.ones(len(batch.indices)) if batch.values is None else batch.values
        shape = (len(batch.indptr) - 1, batch.n_sparse)
        sparse = scipy.sparse.csr_array(
            (values, batch.indices.astype(np.int64), batch.indptr), shape=shape
        )
        if batch.dense is None or batch.dense.shape[1] == 0:
            return sparse
        return scipy.sparse.csr_array(scipy.sparse.hstack([sparse, batch.dense], format="csr"))

    def _expanded(self, labels: _Labels, group: NDArray[np.intp]) -> Chain | Multiclass:
        """Return a fresh structure over the pairs, which are numbered."""
        cost = labels.cost[np.ix_(group, group)]
        names = list(range(len(group)))
        base = self.base
        if isinstance(base, Multiclass):
            return Multiclass(loss=cost, labels=names, bias=base.bias, words=base.words)
        mask = labels.mask

        def allowed(before: int | None, after: int | None) -> bool:
            assert mask is not None
            if before is None:
                return bool(mask.start[group[after]])
            if after is None:
                return bool(mask.end[group[before]])
            return bool(mask.transition[group[before], group[after]])

        rule = None if mask is None else allowed
        chain = Chain(loss=cost, labels=names, allowed=rule, encoder=base.encoder)
        return chain

    # --- predictions ---

    def complete(self, X: Any, weights: Any, n_jobs: int, given: Any = None) -> list[Any]:
        """Return the best pairs of every input.

        Parameters
        ----------
        X : object
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.
        given : object or None
            Labels that the pairs shall have.

        Returns
        -------
        list
            A pair (label, state) for each example, or a list of them, one a token.
        """
        if given is None:
            return [self._named(z) for z in self.inner.predict(X, weights, n_jobs)]
        if isinstance(self.inner, Multiclass):
            return self._classes_given(X, weights, n_jobs, given)
        check_lengths(X, given)
        references = self.pairs_of(given)
        problem = self.inner.make_problem(X, references)
        imputer = _native.Imputer(problem)
        imputer.impute(self.inner.native_weights(weights), n_jobs)
        starts, codes = imputer.codes()
        bits = int(len(self.pairs_) - 1).bit_length()  # of a label within a code
        tokens, labels = codes >> bits, codes & ((1 << bits) - 1)
        found = []
        for i, reference in enumerate(references):
            for at in range(int(starts[i]), int(starts[i + 1])):
                reference[int(tokens[at])] = self.inner.labels_[int(labels[at])]
            found.append(self._named(reference))
        return found

    def _classes_given(self, X: Any, weights: Any, n_jobs: int, given: Any) -> list[Any]:
        scores = self.inner.scores(X, weights, n_jobs)
        codes, _ = encode_classes(given, self.classes_)
        if len(codes) != len(scores):
            raise ValueError(f"X has {len(scores)} examples and Y has {len(codes)}")
        ends = np.append(self.first_[1:], len(self.pairs_))
        return [
            self.pairs_[int(self.first_[c] + np.argmax(own[self.first_[c] : ends[c]]))]
            for c, own in zip(codes, scores, strict=True)
        ]

    def _named(self, z: Any) -> Any:
        if isinstance(self.inner, Multiclass):
            return self.pairs_[int(z)]
        return [self.pairs_[int(code)] for code in z]

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of labels where y is the truth, both without states.

        Parameters
        ----------
        y, y_hat : object
            A label, or a sequence of labels; those of ``y`` may be unknown, which costs as much as
            the most expensive error.

        Returns
        -------
        float
            The cost, summed over tokens.
        """
        single = isinstance(self.inner, Multiclass)
        truth, found = ([y], [y_hat]) if single else (list(y), list(y_hat))
        if len(truth) != len(found):
            raise ValueError(f"y has {len(truth)} labels and y_hat {len(found)}; expected as many")
        places = {label: c for c, label in enumerate(self.classes_)}
        most = float(self.cost_.max())
        return sum(
            float(self.cost_[places[a], places[b]]) if a in places else most
            for a, b in zip(truth, found, strict=True)
        )

    def visible(self, z: Any) -> Any:
        """Return the labels of what `complete` gave for one example."""
        if isinstance(self.inner, Multiclass):
            return z[0]
        return [label for label, _ in z]


def _check_states(states: Any) -> None:
    counts = list(states.values()) if isinstance(states, Mapping) else [states]
    for n in counts:
        if not is_whole(n, 1):
            raise ValueError(
                f"states is {states!r}; expected a whole number from 1 on, or one for each label"
            )


def _counts(states: Any, classes: list[Any]) -> NDArray[np.intp]:
    if isinstance(states, Mapping):
        unknown = [label for label in states if label not in classes]
        if unknown:
            raise ValueError(f"states has the label {unknown[0]!r}, which no truth has")
        counts = np.array([int(states.get(label, 1)) for label in classes], dtype=np.intp)
    else:
        counts = np.full(len(classes), int(states), dtype=np.intp)
    if counts.sum() > MOST_PAIRS:
        raise ValueError(f"there would be {counts.sum()} pairs of a label and a state")
    return counts


def _costs(cost: Any, n: int) -> NDArray[np.float64]:
    return 1.0 - np.eye(n) if cost is None else np.asarray(cost, dtype=np.float64)


def _divided(pairs: NDArray[np.intp], lengths: NDArray[np.int64] | None) -> list[Any]:
    if lengths is None:
        return [int(z) for z in pairs]
    parts = np.split(pairs, np.cumsum(lengths)[:-1])
    return [part.tolist() for part in parts]
