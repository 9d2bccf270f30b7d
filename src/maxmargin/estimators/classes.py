"""`MulticlassSVM`: one of K classes for each example, in the place of scikit-learn's LinearSVC."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

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
from maxmargin.estimators.class_weights import class_factors
from maxmargin.estimators.native import NativeEstimator
from maxmargin.estimators.online_matrix import OnlineClassifierMixin
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.features.example_matrix import bias_value
from maxmargin.structures.class_labels import class_array, encode_classes, example_weights
from maxmargin.structures.multiclass import Multiclass
from maxmargin.types import ClassWeight, LabelLoss, Labels, Matrix, TextFeatures

__all__ = ["MulticlassSVM"]

#: What all labels are, as scikit-learn has them; others, and mixed ones, are kept as objects.
_PLAIN = (str, bytes, numbers.Number, np.bool_)


class MulticlassSVM(OnlineClassifierMixin, ClassifierMixin, NativeEstimator[Matrix, ArrayLike]):  # type: ignore[misc]
    """Classes by large margins, all classes in one problem (Crammer and Singer).

    Minimises ½‖W‖² + C Σ_i s_i max_c [loss(y_i, c) + x_i·W_c - x_i·W_{y_i}], where s_i is the
    weight of an example. With ``loss="0/1"``, ``fit_intercept=False`` and no weights that is the
    objective of ``LinearSVC(multi_class="crammer_singer", fit_intercept=False)`` with the same C.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors; positive.
    C_scale : {"sum", "mean"}
        As in `StructuralSVM`.
    loss : "0/1", array of shape (K, K), or dict
        What an error costs. An array: ``loss[a][b]`` for answering b where a is the truth, in the
        order of ``classes_``. A dict ``{(truth, class): cost}``: pairs that are not in it cost 1.
        With a solver that rescales slacks, ``SDM(rescale="slack")``, it scales the slacks.
    fit_intercept : bool, default=True
        Whether there is a bias for each class.
    intercept_scaling : float, default=1.0
        The bias is the weight of one more feature, which has this value for all examples, as in
        ``LinearSVC``. So it is regularised with the other weights; the larger the value, the less.
    class_weight : dict, "balanced" or None
        Factors of C by class; classes that a dict does not have count 1. "balanced": n / (K n_c)
        for a class with n_c of the n examples (by their weights, if they have some).
    labels : list or None
        All classes and their order. None: the labels of y, sorted where they can be sorted.
    features : None, "words" or dict
        None: X is a matrix. "words": X is a list of texts, of which a `BagOfWords` makes rows; a
        dict has its options: ``{"ngrams": 2, "min_count": 2, "weighting": "tfidf"}``.
    gap : float or "auto"
        The relative duality gap that ends training. "auto": 0.01; on small problems (examples ×
        columns × classes at most 131,072), where that takes milliseconds, as near to the optimum as
        8-byte numbers allow.
    dtype : {"auto", "float32", "float64"}
        Type of the weights. "auto": float64 on small problems, else float32.
    solver, regularizer, max_passes, time_limit, n_jobs, warm_start, verbose, random_state, \
callbacks, checkpoint, resume
        As in `StructuralSVM`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, in the order of all arrays over classes.
    n_features_in_ : int
        Number of columns of X; not there with ``features``.
    feature_names_in_ : array of str
        Names of the columns of X, if it was a data frame with such names.
    structure_, weights_, certificate_, history_, converged_, stop_reason_, n_iter_, n_examples_
        As in `StructuralSVM`.

    Notes
    -----
    Two classes follow scikit-learn: ``decision_function`` has the shape (n,), ``coef_`` (1, d) and
    ``intercept_`` (1,). They are the differences of the second class and the first.

    Examples
    --------
    >>> from maxmargin import MulticlassSVM
    >>> X = [[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0], [0.1, 0.9]]
    >>> model = MulticlassSVM(C=10.0, random_state=0).fit(X, ["up", "right", "down", "up"])
    >>> model.predict([[0.2, 2.0]]).tolist()
    ['up']
    >>> texts = ["good film", "bad film", "very good", "very bad"]
    >>> critic = MulticlassSVM(features="words").fit(texts, ["+", "-", "+", "-"])
    >>> critic.predict(["a good one"]).tolist()
    ['+']
    """

    kind: ClassVar[str] = "classes"
    structure_type: ClassVar[Any] = Multiclass

    structure_: Multiclass
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_scale: str = "sum",
        loss: LabelLoss = "0/1",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        labels: Labels = None,
        features: TextFeatures = None,
        solver: SolverLike = "sdm",
        regularizer: RegularizerLike = None,
        gap: float | str = AUTO,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = AUTO,
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
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.labels = labels
        self.features = features

    def _new_structure(self) -> Multiclass:
        words = None if self.features is None else BagOfWords.of(self.features)
        return Multiclass(self.loss, self.labels, bias=self._bias(), words=words)

    def _bias(self) -> float:
        return bias_value(self.fit_intercept, self.intercept_scaling)

    # --- training ---

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
        X : 2-d array, sparse matrix or data frame of shape (n_examples, n_features), or texts
            The inputs.
        y : array or list of shape (n_examples,)
            Their classes: any hashable labels, of at least two classes.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        eval_set : tuple (X, y), optional
            Other data: the model of the pass with the best ``score`` on them is kept.

        Returns
        -------
        MulticlassSVM
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter is not as it must be; the message names the example.
        MemoryError
            If the weights need more memory than there is.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if self.features is None:
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
            )
        labels = _checked_labels(y)
        weights = self._weights(labels, sample_weight, len(labels))
        return self._fit_checked(X, labels, sample_weight=weights, eval_set=eval_set)

    def _labels_of(self, y: Any) -> Any:
        return _checked_labels(y)

    def _weights(self, y: Any, sample_weight: Any, n: int) -> NDArray[np.float64] | None:
        """Return the weights of the examples with those of their classes."""
        if isinstance(sample_weight, numbers.Real):  # as scikit-learn takes it
            sample_weight = np.full(n, sample_weight, dtype=np.float64)
        weights = example_weights(sample_weight, n)
        if self.class_weight is None:
            return weights
        codes, classes = encode_classes(y, self.labels)
        factors = class_factors(self.class_weight, codes, classes, weights)
        return factors[codes] if weights is None else weights * factors[codes]

    def _accuracy(self, X: Any, Y: Any) -> Accuracy:
        try:
            n_classes = len(set(Y))
        except TypeError:  # which the structure tells better
            n_classes = 1
        return automatic(self, X, n_classes, 0.01, "float32")

    def _after_load(self) -> None:
        self.classes_ = class_array(self.structure_.classes_)
        if self.structure_.words is None:
            self.n_features_in_ = self.structure_.n_columns_

    # --- predictions ---

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "weights_")
        if self.structure_.words is not None:
            return X
        return validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Return the best class of every input.

        Parameters
        ----------
        X : matrix or texts, as `fit` took them
            The inputs.

        Returns
        -------
        array of shape (n_examples,)
            A class for each.
        """
        X = self._checked(X)
        codes = self.structure_.predict_codes(X, self.weights_, self._threads())
        found: NDArray[Any] = self.classes_[codes]
        return found

    def score(self, X: Matrix, y: ArrayLike, sample_weight: ExampleWeights = None) -> float:
        """Return the share of examples whose class is predicted right.

        Parameters
        ----------
        X : matrix or texts, as `fit` took them
            The inputs.
        y : array or list of shape (n_examples,)
            Their true classes.
        sample_weight : array of shape (n_examples,), optional
            How much each of them counts.

        Returns
        -------
        float
            Between 0 and 1.
        """
        truths, found = _checked_labels(y), self.predict(X)
        if len(truths) != len(found):
            raise ValueError(
                f"X has {len(found)} examples and y has {len(truths)} labels; expected as many"
            )
        right = np.array([bool(a == b) for a, b in zip(found, truths, strict=True)])
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(right, weights=weights))

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Return the scores of the classes.

        Parameters
        ----------
        X : matrix or texts, as `fit` took them
            The inputs.

        Returns
        -------
        array of shape (n_examples, K), or (n_examples,) if there are two classes
            Of two classes the score of the second less that of the first.
        """
        X = self._checked(X)
        scores = self.structure_.scores(X, self.weights_, self._threads())
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    # --- the model ---

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features, [K][d]; with two classes [1][d], the second less the first."""
        return self._by_class()[:, : self.structure_.n_columns_]

    @property
    def intercept_(self) -> NDArray[Any]:
        """The biases, [K] or with two classes [1]; zeros without ``fit_intercept``."""
        rows = self._by_class()
        if self.structure_.bias == 0:
            return np.zeros(len(rows), rows.dtype)
        biases: NDArray[Any] = rows[:, -1] * rows.dtype.type(self.structure_.bias)
        return biases

    def _by_class(self) -> NDArray[Any]:
        check_is_fitted(self, "weights_")
        columns = self.structure_.unpack(self.weights_).T
        return columns[1:] - columns[:1] if len(columns) == 2 else columns

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the largest weights of each class to list, for at most 20 classes.

        Returns
        -------
        dict
            Sizes, the classes, and with texts the strongest words of each class.
        """
        found = super().describe(top)
        structure = self.structure_
        found["n_classes"] = len(structure.classes_)
        found["n_features"] = structure.n_columns_
        found["features"] = "columns" if structure.words is None else repr(structure.words)
        found["bias"] = structure.bias
        found["classes"] = [str(label) for label in structure.classes_[:100]]
        if structure.words is not None and top > 0:
            names = structure.words.names()
            W = structure.unpack(self.weights_)[: structure.n_columns_]
            few = min(top, len(names))
            found["strongest"] = {
                str(label): [
                    [names[j], float(W[j, k])] for j in np.argsort(-W[:, k], kind="stable")[:few]
                ]
                for k, label in enumerate(structure.classes_[:20])
            }
        return found

    def text_lines(self) -> Iterator[str]:
        """Give a line ``class TAB feature TAB weight`` for every weight that is not zero.

        Returns
        -------
        iterator of str
            The classes one after the other; features by their words, names or numbers, and the
            bias, as it is added to a score, as ``(bias)``.
        """
        check_is_fitted(self, "weights_")
        structure = self.structure_
        if structure.words is not None:
            names = structure.words.names()
        elif hasattr(self, "feature_names_in_"):
            names = [str(name) for name in self.feature_names_in_]
        else:
            # Files of numbered features count from 1, and columns from 0.
            numbered = getattr(self, "file_meta_", {}).get("format") == "svmlight"
            names = [str(j + numbered) for j in range(structure.n_columns_)]
        yield "# class\tfeature\tweight"
        W = structure.unpack(self.weights_)
        for k, label in enumerate(structure.classes_):
            shown = str(label).replace("\t", " ").replace("\n", " ")
            column = W[:, k]
            if structure.bias != 0 and column[-1] != 0:
                yield f"{shown}\t(bias)\t{float(column[-1]) * structure.bias!r}"
            for j in np.flatnonzero(column[: structure.n_columns_]):
                yield f"{shown}\t{names[j]}\t{float(column[j])!r}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = False
        texts = self.features is not None
        tags.input_tags.two_d_array = not texts
        tags.input_tags.string = texts
        tags.input_tags.sparse = not texts
        return tags


def _checked_labels(y: Any) -> Any:
    """Return labels as scikit-learn has them, an array, or any hashable ones as a list."""
    if isinstance(y, list | tuple):
        kinds = {next((k for k in _PLAIN if isinstance(label, k)), None) for label in y}
        if len(kinds) > 1 or None in kinds:
            return list(y)  # tuples, None, ...: encoding says what is wrong with others
    if len(getattr(y, "shape", ())) == 1 and str(getattr(y, "dtype", "")) == "object":
        labels = list(y)
        if any(not isinstance(label, str) for label in labels):
            return labels
    array = column_or_1d(y, warn=True)
    check_finite_targets(array)
    assert_all_finite(array, input_name="y")
    check_classification_targets(array)
    return array
