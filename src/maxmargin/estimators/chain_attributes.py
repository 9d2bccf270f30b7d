"""The weights of a trained chain as attributes: arrays by feature and label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.structural import StructuralEstimator
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_layout import ChainWeights
from maxmargin.structures.class_labels import class_array
from maxmargin.structures.kernels import KernelWeights
from maxmargin.types import LabelSequences, Sequences

__all__ = ["ChainAttributes"]


class ChainAttributes(StructuralEstimator[Sequences, LabelSequences]):
    """The attributes of a tagger that show its weights and the names of its features."""

    structure_: Chain

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of all arrays over labels."""
        check_is_fitted(self, "weights_")
        return class_array(self.structure_.classes_)

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features, [n_features][L]."""
        check_is_fitted(self, "weights_")
        if isinstance(self.weights_, KernelWeights):
            raise AttributeError(
                "coef_ has the weights of the features, and with a kernel there are none; see "
                "weights_.dual_coef for the coefficients of the support tokens"
            )
        return self._unpacked().coef[:, self.structure_.class_columns_]

    @property
    def transitions_(self) -> NDArray[Any]:
        """Weights of label a followed by label b, [L][L]."""
        columns = self.structure_.class_columns_
        return self._unpacked().transitions[np.ix_(columns, columns)]

    @property
    def start_(self) -> NDArray[Any]:
        """Weights of the first label, [L]."""
        return self._unpacked().start[self.structure_.class_columns_]

    @property
    def end_(self) -> NDArray[Any]:
        """Weights of the last label, [L]."""
        return self._unpacked().end[self.structure_.class_columns_]

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, if it has columns."""
        check_is_fitted(self, "weights_")
        encoder = self.structure_.encoder
        if encoder.kind not in ("dense", "sparse"):
            raise AttributeError(
                f"n_features_in_ is the number of columns of X, but X was of kind {encoder.kind}"
            )
        return self.structure_.layout.n_token_features

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the features: of the rows of ``coef_``.

        Parameters
        ----------
        input_features : None
            Not used; here because scikit-learn passes it.

        Returns
        -------
        array of str
            The sparse features first; columns of arrays are called "dense:0", "dense:1", ...
        """
        check_is_fitted(self, "weights_")
        return np.array(self.structure_.encoder.feature_names(), dtype=object)

    def _unpacked(self) -> ChainWeights:
        check_is_fitted(self, "weights_")
        return self.structure_.unpack(self.weights_)
