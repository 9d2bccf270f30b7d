"""Linear functions of one row of numbers: binary classes and real targets, the face of native code.

    score(x) = w·(x, v)        (v: the bias, a feature with the same value for all examples)

`Binary` is 1.1 of the dual-coordinate paper and `Regression` 1.6. Both are the same native problem
(``native/signed_rows.hpp``): bounds that scores are to keep, from above or from below.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features.example_matrix import ExampleMatrix, example_matrix
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import (
    class_array,
    classes_from_meta,
    classes_to_meta,
    encode_classes,
    example_weights,
    known_classes,
)
from maxmargin.structures.native import PreparedProblem

__all__ = ["Binary", "LinearRows", "Regression"]


class LinearRows:
    """What linear functions of rows have in common.

    Parameters
    ----------
    bias : float
        Value of one more feature that all examples have; 0 for none. Its weight is regularised
        like all others, the less the larger the value is.
    """

    def __init__(self, *, bias: float = 0.0) -> None:
        self.bias = bias
        self.n_columns_ = 0
        self.n_features: int | None = None

    @abstractmethod
    def _bounds(
        self, Y: Any, margins: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, Any]]:
        """Return what scores and their negatives shall be at least, and what was learned of Y."""

    def _take(self, learned: dict[str, Any]) -> None:
        """Keep what was learned of Y."""

    # --- learning what there is ---

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn the number of features of X, and what Y has.

        Parameters
        ----------
        X : matrix
            The training inputs.
        Y : list or array
            Their outputs.
        """
        self._learn(X, Y, None)

    def _learn(
        self, X: Any, Y: Any, margins: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
        if not (isinstance(self.bias, int | float) and 0 <= self.bias <= _native.MAX_VALUE):
            raise ValueError(f"bias is {self.bias!r}; expected a number from 0 to 1e12")
        above, below, learned = self._bounds(Y, margins)
        matrix = example_matrix(X)
        if matrix.shape[0] != len(above):
            raise ValueError(
                f"X has {matrix.shape[0]} examples and y has {len(above)} outputs; expected as many"
            )
        # From here on nothing fails: a structure is prepared as a whole or left as it was.
        self._set(int(matrix.shape[1]))
        self._take(learned)
        return matrix, above, below

    def bounds_of(self, Y: Any, margins: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what more examples want of their scores, by what is known.

        Parameters
        ----------
        Y : list or array
            Their outputs; a class must be known.
        margins : array or None
            As for `prepare_problem`.

        Returns
        -------
        above, below : array
            l of w·x >= l and of -w·x >= l; minus infinity where there is no such wish.
        """
        return self._bounds(Y, margins)[:2]

    def _set(self, n_columns: int) -> None:
        self.n_columns_ = n_columns
        self.n_features = self.n_rows

    def prepare_problem(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        margins: Any = None,
        *,
        dtype: Any = "float64",
    ) -> PreparedProblem:
        """Learn what there is and make the training problem.

        Parameters
        ----------
        X, Y
            As for `prepare`.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        margins : array of shape (n_examples,), optional
            The margin of each example (`Binary`).
        dtype : "float32" or "float64"
            As which values of sparse features are kept.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        matrix, above, below = self._learn(X, Y, margins)
        rows = ExampleMatrix(matrix, self.bias, weight_dtype(dtype).name)
        parts: dict[str, Any] = {
            "above": above,
            "below": below,
            **rows.arrays,
            "example_weight": example_weights(sample_weight, len(above)),
        }
        return PreparedProblem(_native.RowProblem(**parts), parts)

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return name and size in bytes of the largest arrays of training.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        name : str
            What is counted.
        n_bytes : int
            The weights of the engine, a copy, and the 8-byte weights of the certificate.
        """
        kind = weight_dtype(dtype)
        name = (
            f"the weights ({self.n_rows} features, {kind.name}, with a copy and the 8-byte "
            "certificate)"
        )
        return name, self.n_rows * (2 * kind.itemsize + 8)

    # --- weights and scores ---

    @property
    def n_rows(self) -> int:
        """Number of weights: the features, and the bias if there is one."""
        return self.n_columns_ + (self.bias != 0)

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights, checked.

        Parameters
        ----------
        weights : array
            One for each feature, the bias last.

        Returns
        -------
        array
            The same.
        """
        self._require_prepared()
        array = np.asarray(weights)
        if array.dtype not in (np.float32, np.float64) or array.shape != (self.n_rows,):
            raise ValueError(
                f"the weights are {array.dtype} of the shape {array.shape}; expected "
                f"{self.n_rows}, one for each feature"
            )
        return array

    def scores(self, X: Any, weights: Any) -> NDArray[np.float64]:
        """Return w·(x, v) of every example.

        Parameters
        ----------
        X : matrix
            The inputs.
        weights : array
            The weights.

        Returns
        -------
        array of shape (n_examples,)
            The scores.
        """
        w = self.native_weights(weights).astype(np.float64, copy=False)
        found = example_matrix(X, self.n_columns_) @ w[: self.n_columns_]
        scores: NDArray[np.float64] = np.asarray(found, dtype=np.float64)
        return scores + self.bias * w[-1] if self.bias != 0 else scores

    def _require_prepared(self) -> None:
        if self.n_columns_ == 0:
            raise NotCompatibleError(
                f"{type(self).__name__} knows no features yet: call prepare(X, Y) first, or fit an "
                "estimator"
            )

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        self._require_prepared()
        return {"n_columns": self.n_columns_, "bias": float(self.bias)}, {}

    def _restore(self, meta: dict[str, Any]) -> None:
        """Take a number of features out of a file, where anything may be."""
        n_columns, bias = meta["n_columns"], meta["bias"]
        if type(n_columns) is not int or not 1 <= n_columns < 2**32:
            raise ValueError("the number of features is not between 1 and 2^32 - 1")
        if type(bias) not in (int, float) or not 0 <= bias <= _native.MAX_VALUE:
            raise ValueError("the bias is not a number from 0 to 1e12")
        self.bias = bias
        self._set(n_columns)


class Binary(LinearRows, Structure):
    """One of two classes for each example, by the sign of a score.

    ``s·w·x >= m - ξ`` with s = +1 for the second class and -1 for the first, and the margin m (1,
    or that of the example). As a structure, f(x, y) = ½ s(y) x and the loss of the other class is
    1.

    Parameters
    ----------
    bias : float
        As in `LinearRows`.
    labels : list or None
        The two classes. None: those of Y.

    Attributes
    ----------
    classes_ : list
        The two classes; scores above 0 mean the second.

    Examples
    --------
    >>> from maxmargin import StructuralSVM
    >>> from maxmargin.structures.rows import Binary
    >>> model = StructuralSVM(Binary(bias=1.0), C=10.0).fit([[0.0], [1.0], [2.0]], "aab")
    >>> model.predict([[0.5], [3.0]])
    ['a', 'b']
    """

    def __init__(self, *, bias: float = 0.0, labels: Any = None) -> None:
        super().__init__(bias=bias)
        self.labels = labels
        self.classes_: list[Any] = []

    def __repr__(self) -> str:
        return f"Binary(bias={self.bias!r})"

    def _bounds(
        self, Y: Any, margins: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, Any]]:
        codes, classes = self._coded(Y)
        return *self._wanted(codes, margins), {"classes": classes}

    @staticmethod
    def _wanted(
        codes: NDArray[Any], margins: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        wanted = np.ones(len(codes)) if margins is None else _margins(margins, len(codes))
        above = np.where(codes == 1, wanted, -np.inf)
        return above, np.where(codes == 0, wanted, -np.inf)

    def _coded(self, Y: Any) -> tuple[NDArray[Any], list[Any]]:
        """Return 0 or 1 for each label, and the two classes: those of Y, or those given."""
        if self.labels is None:
            return _two_classes(Y)
        if len(self.labels) != 2:
            raise ValueError(f"there are {len(self.labels)} classes; expected two")
        codes = known_classes(Y, {label: k for k, label in enumerate(self.labels)})
        return codes.astype(np.intp), list(self.labels)

    def bounds_of(self, Y: Any, margins: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what more examples want of their scores; see `LinearRows.bounds_of`."""
        codes = known_classes(Y, {label: k for k, label in enumerate(self.classes_)})
        return self._wanted(codes.astype(np.intp), margins)

    def _take(self, learned: dict[str, Any]) -> None:
        self.classes_ = learned["classes"]

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[Any]:
        """Return the class of every example.

        Parameters
        ----------
        X : matrix
            The inputs.
        weights : array
            The weights.
        n_jobs : int
            Not used: scores are one product of a matrix and a vector.

        Returns
        -------
        list
            A label for each.
        """
        return [self.classes_[int(score > 0)] for score in self.scores(X, weights)]

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return ½ s(y) w·x of given classes.

        Parameters
        ----------
        X, Y
            Inputs, and a known label for each.
        weights : array
            The weights.
        n_jobs : int
            Not used.

        Returns
        -------
        array of shape (n_examples,)
            The scores.
        """
        scores = self.scores(X, weights)
        codes = known_classes(Y, {label: k for k, label in enumerate(self.classes_)})
        if len(codes) != len(scores):
            raise ValueError(
                f"X has {len(scores)} examples and y has {len(codes)} labels; expected as many"
            )
        return np.where(codes == 1, 0.5, -0.5) * scores

    # --- the protocol: one example, in Python ---

    def _sign(self, y: Any) -> float:
        if y not in self.classes_:
            raise ValueError(f"{y!r} is none of the classes {self.classes_!r}")
        return 1.0 if y == self.classes_[1] else -1.0

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the joint features of one example."""
        self._require_prepared()
        matrix = example_matrix([x], self.n_columns_)
        row = np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), float)
        features = np.append(row, self.bias) if self.bias != 0 else row.ravel()
        return 0.5 * self._sign(y) * features

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return 1 where the classes differ, else 0."""
        return float(y != y_hat)

    def outputs(self, x: Any) -> list[Any]:
        """Return both classes."""
        self._require_prepared()
        return self.classes_

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        meta, arrays = super().state()
        return {**meta, "classes": classes_to_meta(self.classes_)}, arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Binary:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Binary
            Ready to predict.
        """
        structure = cls()
        structure._restore(meta)
        structure.classes_ = classes_from_meta(meta["classes"])
        if len(structure.classes_) != 2:
            raise ValueError("there are not two classes")
        return structure


class Regression(LinearRows):
    """A number for each example: ``|w·x - t| <= ε + ξ``.

    Parameters
    ----------
    epsilon : float
        ε: errors up to this cost nothing.
    bias : float
        As in `LinearRows`.
    """

    def __init__(self, epsilon: float = 0.1, *, bias: float = 0.0) -> None:
        super().__init__(bias=bias)
        self.epsilon = epsilon

    def __repr__(self) -> str:
        return f"Regression(epsilon={self.epsilon!r}, bias={self.bias!r})"

    def _bounds(
        self, Y: Any, margins: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, Any]]:
        if margins is not None:
            raise NotCompatibleError("regression has targets and no margins")
        targets = _numbers("y", Y)
        return targets - self.epsilon, -targets - self.epsilon, {}

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[float]:
        """Return the number of every example.

        Parameters
        ----------
        X : matrix
            The inputs.
        weights : array
            The weights.
        n_jobs : int
            Not used: scores are one product of a matrix and a vector.

        Returns
        -------
        list of float
            A number for each.
        """
        return [float(score) for score in self.scores(X, weights)]

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return minus the distance of given numbers to the predicted ones.

        Parameters
        ----------
        X, Y
            Inputs, and a number for each.
        weights : array
            The weights.
        n_jobs : int
            Not used.

        Returns
        -------
        array of shape (n_examples,)
            The highest is 0, of what is predicted.
        """
        scores, targets = self.scores(X, weights), _numbers("y", Y)
        if len(targets) != len(scores):
            raise ValueError(
                f"X has {len(scores)} examples and y has {len(targets)} numbers; expected as many"
            )
        return -np.abs(scores - targets)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        meta, arrays = super().state()
        return {**meta, "epsilon": float(self.epsilon)}, arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Regression:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Regression
            Ready to predict.
        """
        epsilon = meta["epsilon"]
        if type(epsilon) not in (int, float) or not 0 <= epsilon <= _native.MAX_VALUE:
            raise ValueError("epsilon is not a number from 0 to 1e12")
        structure = cls(epsilon)
        structure._restore(meta)
        return structure


def _two_classes(y: Any) -> tuple[NDArray[Any], list[Any]]:
    """Return 0 or 1 for each label, and the two labels."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuUS":
        found, codes = np.unique(y, return_inverse=True)  # far faster than one by one
        classes = list(found.tolist())
    else:
        encoded, classes = encode_classes(y)
        codes = encoded.astype(np.intp)
    if len(classes) != 2:
        some = ", ".join(repr(label) for label in class_array(classes)[:3].tolist())
        raise ValueError(
            f"y has {len(classes)} class{'es' if len(classes) != 1 else ''} ({some}); expected "
            "labels of two classes"
        )
    return codes, classes


def _margins(margins: Any, n: int) -> NDArray[np.float64]:
    found = _numbers("margins", margins)
    if len(found) != n:
        raise ValueError(f"margins has {len(found)} numbers; expected {n}, one for each example")
    return found


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return one finite number for each example."""
    try:
        found = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, one for each example") from None
    if found.ndim != 1:
        raise ValueError(
            f"{name} has the shape {found.shape}; expected one number for each example"
        )
    good = np.abs(found) <= 0.5 * _native.MAX_VALUE  # NaN is not
    if not good.all():
        i = int(np.argmin(good))
        raise ValueError(
            f"{name}: that of example {i} is {found[i]}; expected a finite number of at most 5e11 "
            "(no NaN, no infinity)"
        )
    return found
