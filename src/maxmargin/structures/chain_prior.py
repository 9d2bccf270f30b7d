"""The weights of an earlier chain as the prior of a new one: adaptation to a new domain.

The new chain minimises

    ½ Σ_k p_k (w_k - m_k)² + C Σ_i ξ_i,

where m_k is the earlier model's weight and p_k = ``precision`` for every weight that the earlier
model has, and m_k = 0, p_k = 1 for all others. Features and labels are matched by name. Those of
the earlier model that are not in the new data are in the new model too: nothing pulls at their
weights, so they stay what they were. (Section 7 of the paper on dual coordinate solvers, with a
diagonal precision.)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import is_real
from maxmargin.errors import NotCompatibleError
from maxmargin.features import encode_labels
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.joining import Joined, join_features
from maxmargin.printable import quoted
from maxmargin.regularizers import GaussianPrior
from maxmargin.structures.chain_learning import Encoder
from maxmargin.structures.chain_options import explicit_labels

__all__ = ["ChainPrior", "PriorMatch"]


class PriorMatch(NamedTuple):
    """What of a prior and of new data is the same.

    Attributes
    ----------
    features, labels : int
        Of the prior.
    new_features, new_labels : int
        Of the new data.
    shared_features, shared_labels : int
        Of both.
    """

    features: int
    new_features: int
    shared_features: int
    labels: int
    new_labels: int
    shared_labels: int

    def __str__(self) -> str:
        return (
            f"{self.shared_features} of the {self.new_features} features of the data are among the "
            f"{self.features} of the prior, and {self.shared_labels} of the {self.new_labels} "
            f"labels among its {self.labels}"
        )


class ChainPrior:
    """A trained chain whose weights are the prior of another one.

    Parameters
    ----------
    chain : Chain
        The structure of the earlier model.
    weights : array
        Its native weights.
    precision : float
        How strongly a weight is held at the earlier model's; above 0. A weight that the earlier
        model does not have is held at 0 by a precision of 1. Infinity: they do not move.
    """

    def __init__(self, chain: Any, weights: Any, precision: float = 1.0) -> None:
        if not isinstance(weights, np.ndarray):
            raise NotCompatibleError(
                "the prior has no weights of features, but a kernel; expected a model with "
                'kernel="linear"'
            )
        if not is_real(precision):
            raise TypeError(f"prior_precision must be a number, got {precision!r}")
        if not precision > 0:
            raise ValueError(f"prior_precision must be above 0, got {precision!r}")
        if not np.isfinite(weights).all():
            raise ValueError("the prior has a weight that is not finite")
        self.chain = chain
        self.rows: NDArray[Any] = chain.layout.rows(weights)
        self.precision = float(precision)
        self._joined: Joined | None = None
        self._data_labels: list[Any] = []

    def labels(self, Y: Any, given: Any) -> list[Any]:
        """Return the labels of the new chain: those of the data and those of the prior.

        Parameters
        ----------
        Y : list of label sequences or LabelCodes
            The labels of the new data.
        given : list or None
            All labels, if the user lists them.

        Returns
        -------
        list
            In the user's order, or sorted where they can be sorted.

        Raises
        ------
        ValueError
            If the user's list leaves out a label of the prior.
        """
        if given is not None:
            listed = explicit_labels(given)
            self._require_labels(listed)
            codes, classes = encode_labels(Y, listed)
            self._data_labels = [classes[k] for k in np.unique(codes)]
            return list(listed)
        found = encode_labels(Y)[1]
        self._data_labels = found
        return self._union(found)

    def encoded_labels(
        self, classes: list[Any], counts: NDArray[np.int64], given: Any
    ) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the labels of a chain whose data were encoded before, and their counts.

        Parameters
        ----------
        classes : list
            The labels of the encoded data.
        counts : int array
            How many tokens have each.
        given : list or None
            All labels, if the user lists them; ``classes`` are these then.

        Returns
        -------
        classes : list
            Those of the prior among them.
        counts : int array
            Below zero for labels of the prior alone: they stand behind the others in the order of
            the weights, so that the numbers of the encoded labels stay what they are.
        """
        self._data_labels = [c for c, n in zip(classes, counts, strict=True) if n > 0]
        if given is not None:
            self._require_labels(classes)
            return classes, counts
        found = dict(zip(classes, counts.tolist(), strict=True))
        union = self._union(classes)
        return union, np.array([found.get(label, -1) for label in union], dtype=np.int64)

    def _require_labels(self, listed: Collection[Any]) -> None:
        old = self.chain.classes_
        missing = [label for label in old if label not in listed]
        if missing:
            raise ValueError(
                f"labels does not have {quoted(missing[0])}, which the prior has; expected "
                f"all of its {len(old)} labels, or labels=None"
            )

    def _union(self, found: list[Any]) -> list[Any]:
        union = [*found, *(label for label in self.chain.classes_ if label not in set(found))]
        try:
            return sorted(union)
        except TypeError:
            return union

    def extend(self, encoder: Encoder, X: Any, batch: EncodedBatch) -> EncodedBatch:
        """Make an encoder know the features of the prior, too.

        Parameters
        ----------
        encoder : FeatureEncoder or TemplateEncoder
            Fitted to X.
        X : object or None
            The new data; None of data that were encoded before.
        batch : EncodedBatch
            X in numbers.

        Returns
        -------
        EncodedBatch
            X in numbers, by all features.

        Raises
        ------
        NotCompatibleError
            If the features cannot be the same.
        """
        self._joined = join_features(encoder, self.chain.encoder, X, batch)
        match = self.match
        if not match.shared_features or not match.shared_labels:
            raise ValueError(f"the prior is of another vocabulary: {match}")
        return self._joined.batch

    @property
    def match(self) -> PriorMatch:
        """What of the prior and of the new data is the same."""
        assert self._joined is not None
        encoder = self.chain.encoder
        dense = encoder.n_dense
        known = set(self.chain.classes_)
        return PriorMatch(
            encoder.n_sparse + encoder.n_pair + dense,
            self._joined.n_new + dense,
            self._joined.n_shared + dense,
            len(known),
            len(self._data_labels),
            sum(label in known for label in self._data_labels),
        )

    def regularizer(self, chain: Any) -> GaussianPrior:
        """Return the prior of a chain that has learned its features and labels with this one.

        Parameters
        ----------
        chain : Chain
            The new chain.

        Returns
        -------
        GaussianPrior
            In the layout of ``chain``.
        """
        assert self._joined is not None
        old, new = self.chain.layout, chain.layout
        place = {label: k for k, label in enumerate(chain.labels_)}
        columns = np.array([place[label] for label in self.chain.labels_], dtype=np.intp)
        row = np.empty(old.n_rows, dtype=np.intp)  # of the new chain, for each of the old one
        row[: old.n_sparse] = self._joined.sparse
        row[old.dense] = np.arange(new.dense.start, new.dense.stop)
        row[old.transitions] = new.transitions.start + columns
        row[old.start], row[old.end] = new.start, new.end
        if old.n_pair:
            row[old.pairs] = new.pair_row(self._joined.pair[:, None], columns).reshape(-1)
        mean = np.zeros((new.n_rows, new.n_labels))
        mean[np.ix_(row, columns)] = self.rows
        precision: Any = self.precision
        if precision != 1:
            precision = np.ones((new.n_rows, new.n_labels))
            precision[np.ix_(row, columns)] = self.precision
            precision = precision.reshape(-1)
        return GaussianPrior(mean.reshape(-1), precision)
