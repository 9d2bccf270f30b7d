"""What people who come from sklearn-crfsuite look for in a tagger, by the names it has there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from maxmargin.types import SequenceLike
from maxmargin.structures.chain import Chain

__all__ = ["CrfsuiteNames"]


class CrfsuiteNames:
    """Attributes and methods of ``sklearn_crfsuite.CRF`` that a tagger has too."""

    structure_: Chain

    def predict_single(self, xseq: SequenceLike) -> list[Any]:
        """Return the best labels of one sequence.

        Parameters
        ----------
        xseq : sequence
            The tokens of one sequence.

        Returns
        -------
        list of labels
            One for each token.
        """
        tagger: Any = self
        found: list[Any] = tagger.predict([xseq])[0]
        return found

    @property
    def attributes_(self) -> list[str]:
        """Names of the features, as `get_feature_names_out` has them."""
        tagger: Any = self
        return list(tagger.get_feature_names_out())

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of features and labels that are not zero: ``{(feature, label): weight}``."""
        check_is_fitted(self, "weights_")
        tagger: Any = self
        coef = tagger.coef_
        rows, columns = np.nonzero(coef)
        names, labels = tagger.get_feature_names_out(), self.structure_.classes_
        return {
            (names[j], labels[k]): weight
            for j, k, weight in zip(
                rows.tolist(), columns.tolist(), coef[rows, columns].tolist(), strict=True
            )
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of neighbouring labels that are not zero: ``{(label, next): weight}``."""
        check_is_fitted(self, "weights_")
        tagger: Any = self
        weights, labels = tagger.transitions_, self.structure_.classes_
        return {
            (labels[a], labels[b]): float(weights[a, b]) for a, b in np.argwhere(weights).tolist()
        }
