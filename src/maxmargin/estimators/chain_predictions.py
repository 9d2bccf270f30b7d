"""What a trained chain says of sequences: labels, scores, what to label next.

Predictions follow the constraints as the parameters have them at the time of the call; training
does not need to be repeated for another way of decoding.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.constraints import ConstraintSet, Inference
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import ExampleWeights, KnownLabels
from maxmargin.estimators.empty import labelled_without_empty, predicted, without_empty
from maxmargin.estimators.structural import StructuralEstimator
from maxmargin.estimators.suggesting import Suggestion, suggest
from maxmargin.features import check_lengths
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.types import LabelSequences, Sequences

__all__ = ["ChainPredictions"]


class ChainPredictions(StructuralEstimator[Sequences, LabelSequences]):
    """The methods of a tagger that predict; a subclass has the parameters of the constraints."""

    structure_: Chain
    constraints: Any
    decode: str
    penalty: float
    infeasible: str
    beam: int

    def _rules(
        self, features: bool, weights: Any = None, *, reread: bool = False
    ) -> ChainConstraints | None:
        """Return the constraints as the parameters have them; a file is read once a fit."""
        if self.constraints is None:
            if self.decode != "off" or features:
                raise ValueError(
                    f"decode={self.decode!r} with constraint_features={features} needs "
                    "constraints; expected a ConstraintSet"
                )
            return None
        rules, source = self.constraints, None
        if isinstance(rules, str | os.PathLike):
            source = os.fspath(rules)
            known = getattr(getattr(self, "structure_", None), "constraints", None)
            if known is not None and known.source == source and not reread:
                rules = known.rules
            else:
                rules = ConstraintSet.from_toml(rules)
        return ChainConstraints(
            rules, self.decode, self.penalty, features, self.infeasible, self.beam, weights, source
        )

    def _decoder(self) -> Chain:
        """Return the chain, decoding as the parameters say now."""
        check_is_fitted(self, "weights_")
        chain = self.structure_
        trained = chain.constraints
        features = trained is not None and trained.features
        rules = self._rules(features, None if trained is None else trained.weights)
        if features and (rules is None or trained is None or rules.rules != trained.rules):
            raise NotCompatibleError(
                "the model has weights of the constraints that it was trained with; others, or "
                "none, need another fit"
            )
        if rules is not None:
            rules.rules.check_labels(chain.labels_)
        chain.constraints = rules
        return chain

    def predict(self, X: Sequences, known: KnownLabels = None) -> NDArray[np.object_]:
        """Return the best labels of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored. None is fine, and so are empty sequences.
        known : list of sequences, optional
            Labels that are known already, None where one is not (or None for a whole sequence):
            the answer is exactly the best of the labellings that have them.

        Returns
        -------
        array of objects, of shape (n_sequences,)
            A list of labels for each, as they were in y (numpy scalars as Python ones).
        """
        threads = self._threads()
        return predicted(self._decoder(), X, self.weights_, threads, known)

    def infer(self, X: Sequences) -> Inference:
        """Return the best labels under the constraints, with their scores and upper bounds.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.

        Returns
        -------
        Inference
            ``codes`` are places in ``structure_.labels_``; ``exact`` tells where the labelling is
            known to be the best. See ``docs/constraints.md``.
        """
        threads = self._threads()
        chain = self._decoder()
        return chain.infer(chain.encoder.transform(X), self.weights_, threads, inputs=X)

    def suggest(self, X: Sequences, n: int = 20, *, diverse: bool = True) -> list[Suggestion]:
        """Return which sequences to label next: where the model is unsure or violates constraints.

        Parameters
        ----------
        X : list of sequences
            Unlabelled ones.
        n : int
            How many.
        diverse : bool
            Whether those like others that were chosen count less.

        Returns
        -------
        list of Suggestion
            The most useful first; ``maxmargin.estimators.suggesting`` has the rule.
        """
        threads = self._threads()
        return suggest(
            self._decoder(), self.weights_, X, n, diverse=diverse, n_jobs=threads
        )

    def predict_kbest(
        self, X: Sequences, k: int, known: KnownLabels = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        k : int
            How many; at least 1.
        known : list of sequences, optional
            As for `predict`.

        Returns
        -------
        list of lists of (labels, score)
            For every sequence its labellings, best first; fewer where fewer exist.
        """
        threads, filled, chain = self._threads(), without_empty(X), self._decoder()
        found = []
        if not filled.nothing:
            found = chain.kbest(filled.X, self.weights_, k, threads, filled.chosen(known))
        return filled.spread(found, lambda: [([], 0.0)])

    def decision_function(self, X: Sequences) -> list[NDArray[np.float64]]:
        """Return, for each token and label, the score of the best labelling with that label there.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.

        Returns
        -------
        list of arrays of shape (T, L)
            Max-marginals over all labellings, whatever ``allowed`` says; columns in the order of
            ``classes_``. The difference of two columns tells how much the model prefers a label.
        """
        threads, filled, chain = self._threads(), without_empty(X), self._decoder()
        found = [] if filled.nothing else chain.max_marginals(filled.X, self.weights_, threads)
        ordered = [scores[:, chain.class_columns_] for scores in found]
        return filled.spread(ordered, lambda: np.empty((0, chain.n_labels)))

    def score_labellings(self, X: Sequences, y: LabelSequences) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given labellings.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        y : list of label sequences
            One label for each token, all of them in ``classes_``.

        Returns
        -------
        array of shape (n_sequences,)
            The scores; only scores of the same sequence can be compared.
        """
        threads = self._threads()
        return self._decoder().score_labellings(X, y, self.weights_, threads)

    def score(self, X: Sequences, y: LabelSequences, sample_weight: ExampleWeights = None) -> float:
        """Return the share of tokens that are labelled right.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        y : list of label sequences
            The true labels; one that was not in training counts as an error.
        sample_weight : array of shape (n_sequences,), optional
            How much the tokens of each sequence count.

        Returns
        -------
        float
            Token accuracy, from 0 to 1. Other scores are in ``maxmargin.scorers``.
        """
        check_is_fitted(self, "weights_")
        if sample_weight is not None:
            weights: Any = sequence_weights(sample_weight, len(y))
            sample_weight = np.repeat(weights, [len(labels) for labels in y])
        X, y, _ = labelled_without_empty(X, y)
        check_lengths(X, y)
        truth = self.structure_.known_codes(y)
        right = truth == self.structure_.known_codes(self.predict(X))
        return float(np.average(right, weights=sample_weight))
