"""``partial_fit`` of estimators of matrices, by the conventions of scikit-learn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from maxmargin.checks import check_finite_targets
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import ExampleWeights
from maxmargin.estimators.online import OnlineMixin
from maxmargin.lazy import is_sparse
from maxmargin.printable import quoted
from maxmargin.structures.adapter import real_number
from maxmargin.structures.class_labels import class_array, encode_classes, example_weights
from maxmargin.types import Labels, Matrix

__all__ = ["OnlineClassifierMixin", "OnlineMatrixMixin"]


class OnlineMatrixMixin(OnlineMixin[Matrix, ArrayLike]):
    """Inputs are rows of a matrix, and weights of examples may be one number."""

    def partial_fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ExampleWeights = None,
        *,
        ids: Iterable[Hashable] | None = None,
    ) -> Self:
        """Learn from more examples, without forgetting those that were seen before.

        Parameters
        ----------
        X : matrix of shape (n_examples, n_features)
            As many features as in the first call.
        y : array of shape (n_examples,)
            Their outputs.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example.
        ids : iterable, optional
            A name for each example, by which `forget` knows it.

        Returns
        -------
        estimator
            Itself.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but it is None")
        check_finite_targets(y)
        X, targets = validate_data(
            self,
            X,
            y,
            reset=self._is_new,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            y_numeric=True,
        )
        weights = _weights(sample_weight, len(targets))
        return self._learn_more(X, targets, ids, {"sample_weight": weights})

    @property
    def _is_new(self) -> bool:
        return self._online is None and self._trained_state is None

    def _one(self, x: Any) -> Any:
        if is_sparse(x):
            return x.reshape(1, -1)
        return x if isinstance(x, str) else np.asarray(x).reshape(1, -1)

    def _after_partial(self) -> None:
        if self._online is not None:
            self._after_load()


class OnlineClassifierMixin(OnlineMatrixMixin):
    """Outputs are classes, which the first call may name."""

    _classes_given: list[Any] | None = None
    class_weight: Any
    features: Any = None

    def partial_fit(  # type: ignore[override]
        self,
        X: Matrix,
        y: ArrayLike,
        classes: Labels = None,
        sample_weight: ExampleWeights = None,
        *,
        ids: Iterable[Hashable] | None = None,
        **fit_params: Any,
    ) -> Self:
        """Learn from more examples, without forgetting those that were seen before.

        Parameters
        ----------
        X : matrix of shape (n_examples, n_features), or texts where ``fit`` takes them
            As many features as in the first call.
        y : array of shape (n_examples,)
            Their classes.
        classes : array, optional
            All classes there will be, in the first call: then no others may come. Without it they
            are those of the examples, of which the first call needs two; `MulticlassSVM` takes
            later ones in.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example.
        ids : iterable, optional
            A name for each example, by which `forget` knows it.
        **fit_params
            ``margins`` of `BinarySVM`.

        Returns
        -------
        estimator
            Itself.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but it is None")
        if self.features is None:
            X = validate_data(
                self,
                X,
                reset=self._is_new,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
            )
        labels = self._labels_of(y)
        given = None if classes is None else encode_classes(classes)[1]
        if given is not None and not self._is_new and given != self._classes_given:
            raise ValueError(
                f"classes={quoted(classes)} is not the same as in the first call of partial_fit, "
                f"{quoted(self._classes_given)}"
            )
        weights = self._weighted(labels, _weights(sample_weight, len(labels)))
        before = self._classes_given
        self._classes_given = given if self._is_new else before
        try:
            params = {"sample_weight": weights, **fit_params}
            return self._learn_more(X, labels, ids, params)
        except BaseException:
            self._classes_given = before
            raise

    def _labels_of(self, y: Any) -> Any:
        """Return the labels of a batch, checked."""
        return column_or_1d(y, warn=True)

    def _weighted(self, labels: Any, weights: Any) -> Any:
        """Return weights of examples with those of their classes."""
        given = self.class_weight
        if given is None:
            return weights
        if not isinstance(given, Mapping):
            raise NotCompatibleError(
                f"class_weight={given!r} counts the classes of all data; partial_fit takes a dict "
                "or None"
            )
        factors = []
        for label in class_array(list(labels)).tolist():
            factor = real_number(given.get(label, 1.0))
            if factor is None or not 0 <= factor <= 1e12:
                raise ValueError(
                    f"class_weight of {quoted(label)} is {given[label]!r}; expected a number from "
                    "0 to 1e12"
                )
            factors.append(factor)
        return np.array(factors) if weights is None else weights * np.array(factors)

    def _online_structure(self) -> Any:
        structure = self._new_structure()
        if self._classes_given is not None:
            self._fix_classes(structure, self._classes_given)
        return structure

    def _fix_classes(self, structure: Any, classes: list[Any]) -> None:
        structure.labels = classes


def _weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    number = real_number(sample_weight)
    return example_weights(sample_weight if number is None else np.full(n, number), n)
