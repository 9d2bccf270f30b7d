"""How sure a tagger is: calibration, probabilities of labels and of whole labellings.

The temperature is found by `maxmargin.selection.calibration`, the probabilities by forward-backward
in native code (``native/chain_marginals.hpp``).
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import CalibrationWarning
from maxmargin.estimators.argument_types import KnownLabels
from maxmargin.estimators.chain_predictions import ChainPredictions
from maxmargin.estimators.empty import labelled_without_empty, object_array, without_empty
from maxmargin.estimators.eval_set import encoded_labelled
from maxmargin.estimators.threads import threads_of
from maxmargin.features import check_lengths, encode_labels
from maxmargin.selection.calibration import Calibration, find_temperature
from maxmargin.types import LabelSequences, SequenceLike, Sequences

__all__ = ["Confidences"]


class Confidences(ChainPredictions):
    """The methods of a tagger that give probabilities.

    Attributes
    ----------
    temperature_ : float
        What scores are divided by; set by `calibrate`.
    calibration_ : Calibration
        How it was found; not there in a model that was loaded from a file.
    """

    temperature_: float
    calibration_: Calibration

    def calibrate(self, X: Sequences, y: LabelSequences, *, criterion: str = "tokens") -> Self:
        """Choose the temperature under which the labels of held-out sequences are most likely.

        It changes how sure the model says to be, and no prediction.

        Parameters
        ----------
        X : list of sequences
            Sequences that the model was not trained on: on those of its training a model is more
            often right than elsewhere, and would be too sure.
        y : list of label sequences
            Their labels. Sequences with a label that was not in training, or with labels that
            ``allowed`` forbids, are left out.
        criterion : {"tokens", "sequences"}
            Whose likelihood is maximised: that of single labels, which makes `predict_marginals`
            honest, or that of whole labellings, for `sequence_proba`.

        Returns
        -------
        SequenceTagger
            Itself, with ``temperature_`` and ``calibration_``.
        """
        check_is_fitted(self, "weights_")
        chain = self._decoder()
        data = encoded_labelled(chain, X, y)
        found = find_temperature(
            chain,
            data.batch,
            data.codes,
            self.weights_,
            threads_of(self.n_jobs),
            criterion=criterion,
        )
        self.temperature_, self.calibration_ = found.temperature, found
        return self

    def predict_proba(self, X: Sequences, known: KnownLabels = None) -> NDArray[np.object_]:
        """Return the probability of each label at each token, as arrays.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        known : list of sequences, optional
            Labels that are known already, as for `predict`; probabilities are conditional on them.

        Returns
        -------
        array of objects, of shape (n_sequences,)
            For each sequence an array of shape (T, L), columns in the order of ``classes_``; rows
            add up to 1. Sums are over all labellings within ``allowed``.

        Warns
        -----
        CalibrationWarning
            If `calibrate` was not called: the temperature is then 1.
        """
        temperature = self._temperature()
        chain, filled = self._decoder(), without_empty(X)
        found: list[Any] = []
        if not filled.nothing:
            batch = chain.encoded(filled.X)
            threads = threads_of(self.n_jobs)
            codes = chain.codes_known(filled.chosen(known), batch)
            _, marginals = chain.marginals_batch(
                batch, self.weights_, temperature, threads, known=codes
            )
            ordered = np.ascontiguousarray(marginals[:, chain.class_columns_])
            found = np.split(ordered, batch.offsets[1:-1])
        return object_array(filled.spread(found, lambda: np.empty((0, chain.n_labels))))

    def predict_marginals(self, X: Sequences, known: KnownLabels = None) -> NDArray[np.object_]:
        """Return the probability of each label at each token, as dicts.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        known : list of sequences, optional
            As for `predict_proba`.

        Returns
        -------
        array of objects, of shape (n_sequences,)
            For each sequence a list with, for each token, a dict from label to probability, as
            sklearn-crfsuite returns them. `predict_proba` has the same numbers as arrays, and is
            faster.
        """
        tables = self.predict_proba(X, known)
        labels = self.structure_.classes_
        return object_array(
            [dict(zip(labels, row, strict=True)) for row in table.tolist()] for table in tables
        )

    def predict_marginals_single(self, xseq: SequenceLike) -> list[dict[Any, float]]:
        """Return `predict_marginals` of one sequence.

        Parameters
        ----------
        xseq : sequence
            The tokens of one sequence.

        Returns
        -------
        list of dicts
            From label to probability, one for each token.
        """
        found: list[dict[Any, float]] = self.predict_marginals([xseq])[0]
        return found

    def sequence_log_proba(self, X: Sequences, y: LabelSequences) -> NDArray[np.float64]:
        """Return the logarithm of the probability of whole labellings.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        y : list of label sequences
            One label for each token, all of them in ``classes_``: the predictions, or any others.

        Returns
        -------
        array of shape (n_sequences,)
            log p(y | x); minus infinity where ``allowed`` forbids y.
        """
        temperature = self._temperature()
        filled = without_empty(X)
        log_p = np.zeros(filled.n)
        if filled.nothing:
            return log_p
        X, y, filled = labelled_without_empty(X, y)
        check_lengths(X, y)
        chain, threads = self._decoder(), threads_of(self.n_jobs)
        batch = chain.encoded(X)
        codes, _ = encode_labels(y, {label: k for k, label in enumerate(chain.labels_)})
        log_z = chain.log_partition_batch(batch, self.weights_, temperature, threads)
        found = chain.scores_batch(batch, codes, self.weights_, threads) / temperature - log_z
        if filled.places is None:
            return found
        log_p[filled.places] = found
        return log_p

    def sequence_proba(self, X: Sequences, y: LabelSequences) -> NDArray[np.float64]:
        """Return the probability of whole labellings.

        Parameters
        ----------
        X, y
            As for `sequence_log_proba`.

        Returns
        -------
        array of shape (n_sequences,)
            p(y | x).
        """
        return np.exp(self.sequence_log_proba(X, y))

    def _temperature(self) -> float:
        check_is_fitted(self, "weights_")
        found = getattr(self, "temperature_", None)
        if found is None:
            warnings.warn(
                "the scores of this model are not calibrated, and its probabilities are those of "
                "the temperature 1, which may be far from honest; call calibrate(X, y) with "
                "sequences that it was not trained on",
                CalibrationWarning,
                stacklevel=3,
            )
            return 1.0
        return float(found)
