"""`BinarySVM` and `SVR`: linear functions of rows, in the place of LinearSVC and LinearSVR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from maxmargin.checks import check_finite_targets
from maxmargin.estimators.accuracy import AUTO, Accuracy, automatic
from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.native import NativeEstimator
from maxmargin.estimators.online_matrix import OnlineClassifierMixin, OnlineMatrixMixin
from maxmargin.features.example_matrix import bias_value
from maxmargin.structures.adapter import real_number
from maxmargin.structures.class_labels import class_array
from maxmargin.structures.rows import Binary, LinearRows, Regression
from maxmargin.types import ClassWeight, Matrix

__all__ = ["SVR", "BinarySVM"]

_TYPES = (np.float64, np.float32)


class LinearEstimator(NativeEstimator[Matrix, ArrayLike]):
    """What estimators of one linear function share: the matrix X, and the weights by name."""

    structure_: LinearRows
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    fit_intercept: bool
    intercept_scaling: float

    @property
    def _bias(self) -> float:
        return bias_value(self.fit_intercept, self.intercept_scaling)

    def _accuracy(self, X: Any, Y: Any) -> Accuracy:
        return automatic(self, X, 1, 0.001, "float64")

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "weights_")
        return validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=list(_TYPES), order="C"
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        checked = self._checked(X)
        return self.structure_.scores(checked, self.weights_)

    def _weight_of(self, sample_weight: Any, X: Any) -> Any:
        """Return weights as an array; what is wrong with their values is native code's to say."""
        return None if sample_weight is None else _check_sample_weight(sample_weight, X)

    def _after_load(self) -> None:
        self.n_features_in_ = self.structure_.n_columns_

    def _coefficients(self) -> NDArray[Any]:
        check_is_fitted(self, "weights_")
        weights: NDArray[Any] = self.weights_[: self.structure_.n_columns_]
        return weights

    def _constant(self) -> float:
        check_is_fitted(self, "weights_")
        bias = self.structure_.bias
        return float(self.weights_[-1]) * bias if bias != 0 else 0.0

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [str(j) for j in range(self.structure_.n_columns_)]

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the largest and of the smallest weights to list.

        Returns
        -------
        dict
            Sizes, the bias and the strongest weights.
        """
        found = super().describe(top)
        names, w = self._names(), self._coefficients()
        order = np.argsort(-w, kind="stable")
        few = min(max(top, 0), len(w))
        return {
            **found,
            "n_features": self.structure_.n_columns_,
            "features": "columns",
            "intercept": self._constant(),
            "largest": [[names[j], float(w[j])] for j in order[:few]],
            "smallest": [[names[j], float(w[j])] for j in order[::-1][:few]],
        }

    def text_lines(self) -> Iterator[str]:
        """Give a line ``feature TAB weight`` for every weight that is not zero.

        Returns
        -------
        iterator of str
            Features by their names or numbers; the bias, as it is added to a score, first.
        """
        names, w = self._names(), self._coefficients()
        yield "# feature\tweight"
        if self.structure_.bias != 0:
            yield f"(bias)\t{self._constant()!r}"
        for j in np.flatnonzero(w):
            yield f"{names[j]}\t{float(w[j])!r}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = False
        tags.input_tags.two_d_array = True
        tags.input_tags.sparse = True
        return tags


class BinarySVM(OnlineClassifierMixin, ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Two classes by a large margin.

    Minimises ½‖w‖² + C Σ_i c_i max(0, m_i - s_i w·(x_i, v)), where s_i is +1 for the second of the
    two classes and -1 for the first, c_i the weight of an example (its own times that of its
    class), m_i its margin, and v the value of a feature that stands for the bias. Without weights
    and margins that is the objective of ``LinearSVC(loss="hinge", intercept_scaling=v)`` with the
    same C.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors; positive.
    C_scale : {"sum", "mean"}
        As in `StructuralSVM`.
    fit_intercept : bool, default=True
        Whether there is a bias.
    intercept_scaling : float, default=1.0
        v: the bias is the weight of one more feature, which has this value for all examples. So
        it is regularised with the other weights; the larger the value, the less.
    class_weight : dict, "balanced" or None
        Factors of C by class, as in scikit-learn.
    gap : float or "auto"
        The relative duality gap that ends training. "auto": 0.001; on small problems (at most
        131,072 numbers in X), where that takes milliseconds, as near to the optimum as 8-byte
        numbers allow.
    solver, regularizer, max_passes, time_limit, dtype, n_jobs, warm_start, verbose, \
random_state, callbacks, checkpoint, resume
        As in `StructuralSVM`; the solver is `DualCoordinate`, and weights are 8-byte.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The classes, sorted; scores above 0 mean the second.
    coef_ : array of shape (1, n_features)
        Weights of the features.
    intercept_ : array of shape (1,)
        What is added to scores.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X, if it was a data frame with such names.
    structure_, weights_, certificate_, history_, converged_, stop_reason_, n_iter_, n_examples_
        As in `StructuralSVM`.

    Examples
    --------
    >>> from maxmargin import BinarySVM
    >>> X = [[0.0, 1.0], [1.0, 0.0], [0.1, 0.8], [2.0, 0.3]]
    >>> model = BinarySVM(C=10.0, random_state=0).fit(X, ["up", "right", "up", "right"])
    >>> model.predict([[0.2, 2.0]]).tolist()
    ['up']
    >>> bool(model.certificate_.gap <= 0.001)
    True
    """

    kind: ClassVar[str] = "binary"
    structure_type: ClassVar[Any] = Binary

    structure_: Binary
    classes_: NDArray[Any]

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_scale: str = "sum",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        solver: SolverLike = "dualcoordinate",
        regularizer: RegularizerLike = None,
        gap: float | str = AUTO,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            solver=solver,
            C=C,
            C_scale=C_scale,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight

    def _new_structure(self) -> Any:
        return Binary(bias=self._bias)

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ExampleWeights = None,
        *,
        margins: ArrayLike | None = None,
        eval_set: EvalSet[Matrix, ArrayLike] = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : 2-d array, sparse matrix or data frame of shape (n_examples, n_features)
            The inputs.
        y : array of shape (n_examples,)
            Their classes, of which there are two.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative: what its errors cost.
        margins : array of shape (n_examples,), optional
            By how much the score of each example shall be on its side of 0; 1 where not given.
        eval_set : tuple (X, y), optional
            Other data: the model of the pass with the best ``score`` on them is kept.

        Returns
        -------
        BinarySVM
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter is not as it must be; the message names the example.
        MemoryError
            If the weights need more memory than there is.
        """
        if y is None:
            raise ValueError("BinarySVM requires y to be passed, but the target y is None")
        X = validate_data(self, X, accept_sparse="csr", dtype=list(_TYPES), order="C")
        labels = column_or_1d(y, warn=True)
        _require_two_classes(labels)
        weights = self._weight_of(sample_weight, X)
        if self.class_weight is not None:
            classes, codes = np.unique(labels, return_inverse=True)
            factors = compute_class_weight(
                self.class_weight, classes=classes, y=labels, sample_weight=weights
            )
            weights = factors[codes] if weights is None else weights * factors[codes]
        return self._fit_checked(
            X, labels, sample_weight=weights, margins=margins, eval_set=eval_set
        )

    def _labels_of(self, y: Any) -> Any:
        labels = column_or_1d(y, warn=True)
        check_finite_targets(labels)
        check_classification_targets(labels)
        return labels

    def _after_load(self) -> None:
        super()._after_load()
        self.classes_ = class_array(self.structure_.classes_)

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Return the scores, of which those above 0 mean the second class.

        Parameters
        ----------
        X : matrix of shape (n_examples, n_features)
            The inputs.

        Returns
        -------
        array of shape (n_examples,)
            The scores.
        """
        return self._scores(X)

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Return the class of every input.

        Parameters
        ----------
        X : matrix of shape (n_examples, n_features)
            The inputs.

        Returns
        -------
        array of shape (n_examples,)
            A class for each.
        """
        scores = self._scores(X)
        found: NDArray[Any] = self.classes_[(scores > 0).astype(np.intp)]
        return found

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features, (1, n_features)."""
        return self._coefficients()[None, :]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """What is added to scores, (1,); 0 without ``fit_intercept``."""
        return np.array([self._constant()])

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the largest and of the smallest weights to list.

        Returns
        -------
        dict
            The classes, sizes, the bias and the strongest weights.
        """
        return {"classes": [str(label) for label in self.classes_], **super().describe(top)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _require_two_classes(labels: NDArray[Any]) -> None:
    """Refuse labels that scikit-learn does not call binary, with its words."""
    if labels.dtype.kind in "biuUS" and len(labels) and (labels != labels[0]).any():
        other = labels[np.argmax(labels != labels[0])]
        if ((labels == labels[0]) | (labels == other)).all():
            return  # the rule, without sorting
    check_finite_targets(labels)
    kind = type_of_target(labels, input_name="y", raise_unknown=True)
    if kind != "binary":
        check_classification_targets(labels)  # which tells of numbers that are no labels
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )


class SVR(OnlineMatrixMixin, RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Real numbers by ε-insensitive regression.

    Minimises ½‖w‖² + C Σ_i c_i max(0, abs(w·(x_i, v) - y_i) - ε): the objective of
    ``LinearSVR(loss="epsilon_insensitive", intercept_scaling=v)`` with the same C. (The kernels of
    scikit-learn's ``SVR`` are not here: the function is linear.)

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors; positive.
    C_scale : {"sum", "mean"}
        As in `StructuralSVM`.
    epsilon : float, default=0.1
        ε: errors up to this cost nothing.
    fit_intercept, intercept_scaling
        As in `BinarySVM`.
    gap : float or "auto"
        The relative duality gap that ends training. "auto": 0.001; on small problems (at most
        131,072 numbers in X), where that takes milliseconds, as near to the optimum as 8-byte
        numbers allow.
    solver, regularizer, max_passes, time_limit, dtype, n_jobs, warm_start, verbose, \
random_state, callbacks, checkpoint, resume
        As in `StructuralSVM`; the solver is `DualCoordinate`, and weights are 8-byte.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the features.
    intercept_ : float
        What is added to predictions.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X, if it was a data frame with such names.
    structure_, weights_, certificate_, history_, converged_, stop_reason_, n_iter_, n_examples_
        As in `StructuralSVM`.

    Examples
    --------
    >>> from maxmargin import SVR
    >>> model = SVR(C=100.0, epsilon=0.0, random_state=0)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(model.predict([[4.0]])[0]), 1)
    9.0
    """

    kind: ClassVar[str] = "regression"
    structure_type: ClassVar[Any] = Regression

    structure_: Regression

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_scale: str = "sum",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: SolverLike = "dualcoordinate",
        regularizer: RegularizerLike = None,
        gap: float | str = AUTO,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            solver=solver,
            C=C,
            C_scale=C_scale,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling

    def _new_structure(self) -> Any:
        epsilon = real_number(self.epsilon)
        if epsilon is None or not 0 <= epsilon <= 1e11:
            raise ValueError(f"epsilon is {self.epsilon!r}; expected a number from 0 to 1e11")
        return Regression(epsilon, bias=self._bias)

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[Matrix, ArrayLike] = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : 2-d array, sparse matrix or data frame of shape (n_examples, n_features)
            The inputs.
        y : array of shape (n_examples,)
            Their numbers.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        eval_set : tuple (X, y), optional
            Other data: the model of the pass with the best ``score`` on them is kept.

        Returns
        -------
        SVR
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter is not as it must be; the message names the example.
        MemoryError
            If the weights need more memory than there is.
        """
        if y is None:
            raise ValueError("SVR requires y to be passed, but the target y is None")
        check_finite_targets(y)
        X, targets = validate_data(
            self, X, y, accept_sparse="csr", dtype=list(_TYPES), order="C", y_numeric=True
        )
        weights = self._weight_of(sample_weight, X)
        return self._fit_checked(X, targets, sample_weight=weights, eval_set=eval_set)

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """Return the number of every input.

        Parameters
        ----------
        X : matrix of shape (n_examples, n_features)
            The inputs.

        Returns
        -------
        array of shape (n_examples,)
            A number for each.
        """
        return self._scores(X)

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features, (n_features,)."""
        return self._coefficients()

    @property
    def intercept_(self) -> float:
        """What is added to predictions; 0 without ``fit_intercept``."""
        return self._constant()
