"""`Multiclass`: one of K classes for each example (Crammer and Singer), the face of native code.

    f(x, y) = x ⊗ e(y),      w·f(x, y) = x·W[:, y],      l(y, ŷ) = cost[y][ŷ]   (0/1: [y != ŷ])

The weights are a matrix W with a row for each feature of x and a column for each class. The native
array pads the columns to the vector width. All classes are looked at by the oracle, so that every
formulation (margin and slack rescaling, linear and quadratic slacks) is exact for any cost matrix.

Reference: Crammer and Singer, "On the algorithmic implementation of multiclass kernel-based vector
machines", JMLR 2 (2001); section 4.1 of Tsochantaridis et al., JMLR 6 (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.features.example_matrix import ExampleMatrix, example_matrix
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import (
    class_costs,
    classes_from_meta,
    classes_to_meta,
    encode_classes,
    example_weights,
    known_classes,
)
from maxmargin.structures.native import PreparedProblem
from maxmargin.types import LabelLoss, Labels

__all__ = ["Multiclass"]

#: Classes that the native index type holds.
MAX_CLASSES = 2**24 - 1


class Multiclass(Structure):
    """One of some classes for each example.

    X is a matrix with a row for each example (a NumPy array, a sparse matrix, a data frame, a list
    of rows), or a list of texts if ``words`` is given. Y is a list of labels.

    Parameters
    ----------
    loss : "0/1", array of shape (K, K), or dict
        What an error costs. "0/1": 1. An array: ``loss[a][b]`` for answering b where a is the
        truth, in the order of ``classes_``. A dict ``{(truth, class): cost}``: pairs that are not
        in it cost 1. Costs are finite, not negative, and 0 for the truth itself.
    labels : list or None
        All classes, and their order. None: the labels of Y, sorted where they can be sorted, else
        in order of appearance.
    bias : float
        Value of one more feature that all examples have; 0 for none. Its weights are regularised
        like all others, the less the larger the value is.
    words : BagOfWords or None
        How texts become numbers; a fresh copy of it learns the words of X.

    Attributes
    ----------
    classes_ : list
        The classes, in the order of the columns of the weights.
    n_columns_ : int
        Number of features, without the bias.
    n_features : int or None
        Number of weights of the protocol's methods, without padding; None before ``prepare``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuralSVM
    >>> X = np.array([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
    >>> model = StructuralSVM(Multiclass(), C=10.0).fit(X, ["a", "b", "c"])
    >>> model.predict([[3.0, 0.0]])
    ['a']
    """

    def __init__(
        self,
        loss: LabelLoss = "0/1",
        labels: Labels = None,
        *,
        bias: float = 0.0,
        words: BagOfWords | None = None,
    ) -> None:
        self.loss_spec = loss
        self.labels = labels
        self.bias = bias
        self.words = words
        self.classes_: list[Any] = []
        self.n_columns_ = 0
        self._codes: dict[Any, int] = {}
        self._cost: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"Multiclass(loss={self.loss_spec!r}, bias={self.bias!r}, words={self.words!r})"

    # --- learning what there is ---

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn the classes of Y and the number of features, or words, of X.

        Parameters
        ----------
        X : matrix or list of texts
            The training inputs.
        Y : list
            Their labels.
        """
        self._learn(X, Y)

    def _learn(self, X: Any, Y: Any) -> tuple[Any, NDArray[np.int32]]:
        if not (isinstance(self.bias, int | float) and 0 <= self.bias <= _native.MAX_VALUE):
            raise ValueError(f"bias is {self.bias!r}; expected a number from 0 to 1e12")
        codes, classes = encode_classes(Y, self.labels)
        words = None
        if self.words is not None:
            words = self.words.fresh()
            matrix = words.fit_transform(X)
        else:
            matrix = example_matrix(X)
        if matrix.shape[0] != len(codes):
            raise ValueError(
                f"X has {matrix.shape[0]} examples and y has {len(codes)} labels; expected as many"
            )
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes[0]!r}); expected labels of at least two classes"
            )
        if len(classes) > MAX_CLASSES:
            raise ValueError(f"y has {len(classes)} classes; expected at most {MAX_CLASSES}")
        cost = class_costs(self.loss_spec, classes)
        # From here on nothing fails: a structure is prepared as a whole or left as it was.
        if words is not None:
            self.words = words
        self._set(classes, int(matrix.shape[1]), cost)
        return matrix, codes

    def _set(self, classes: list[Any], n_columns: int, cost: Any) -> None:
        self.classes_ = classes
        self.n_columns_ = n_columns
        self._codes = {label: code for code, label in enumerate(classes)}
        self._cost = cost
        self.n_features = self.n_rows * len(classes)

    def prepare_problem(
        self, X: Any, Y: Any, sample_weight: Any = None, *, dtype: Any = "float32"
    ) -> PreparedProblem:
        """Learn classes and features and make the training problem.

        Parameters
        ----------
        X, Y
            As for `prepare`.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        dtype : "float32" or "float64"
            As which values of sparse features are kept.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        matrix, codes = self._learn(X, Y)
        return self._training_problem(matrix, codes, sample_weight, dtype)

    def make_problem(
        self, X: Any, Y: Any, sample_weight: Any = None, *, dtype: Any = "float32"
    ) -> _native.Problem:
        """Make a native training problem with the classes and features that are known.

        Parameters
        ----------
        X, Y, sample_weight, dtype
            As for `prepare_problem`; all labels must be known.

        Returns
        -------
        _native.Problem
            Of these examples alone; its weights are those of all of them.
        """
        matrix, codes = self._inputs(X), known_classes(Y, self._codes)
        if matrix.shape[0] != len(codes):
            raise ValueError(
                f"X has {matrix.shape[0]} examples and y has {len(codes)} labels; expected as many"
            )
        return self._training_problem(matrix, codes, sample_weight, dtype).problem

    def _training_problem(
        self, matrix: Any, codes: NDArray[np.int32], sample_weight: Any, dtype: Any
    ) -> PreparedProblem:
        rows = ExampleMatrix(matrix, self.bias, weight_dtype(dtype).name)
        parts: dict[str, Any] = {
            "n_classes": len(self.classes_),
            "labels": codes,
            **rows.arrays,
            "example_weight": example_weights(sample_weight, len(codes)),
            "cost": self._cost,
        }
        problem = _native.MulticlassProblem(**parts)
        return PreparedProblem(problem, {**parts, "classes": self.classes_})

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
            f"the weights ({self.n_rows} features x {len(self.classes_)} classes, {kind.name}, "
            "with a copy and the 8-byte certificate)"
        )
        own = self.n_rows * self._width(kind) * kind.itemsize
        return name, 2 * own + self.n_rows * self._width(np.dtype(np.float64)) * 8

    # --- weights ---

    @property
    def n_rows(self) -> int:
        """Number of rows of the weights: the features, and the bias if there is one."""
        return self.n_columns_ + (self.bias != 0)

    def _width(self, kind: np.dtype[Any]) -> int:
        return int(_native.padded_labels(len(self.classes_), kind.itemsize == 4))

    def unpack(self, weights: Any) -> NDArray[Any]:
        """Return the weights as a matrix.

        Parameters
        ----------
        weights : array
            The native weights.

        Returns
        -------
        array of shape (n_rows, K)
            A view: a row for each feature, the bias last, and a column for each class.
        """
        self._require_prepared()
        rows = np.asarray(weights).reshape(self.n_rows, -1)
        return rows[:, : len(self.classes_)]

    def plain_vector(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return an array with an entry for each weight, without padding.

        Parameters
        ----------
        values : array
            Of ``n_features`` entries, or in the native layout of 4- or 8-byte weights.

        Returns
        -------
        array of shape (n_features,) or None
            None if it has another number of entries.
        """
        widths = {self._width(np.dtype(kind)) for kind in (np.float32, np.float64)}
        sizes = {self.n_features, *(self.n_rows * width for width in widths)}
        if values.ndim != 1 or values.size not in sizes:
            return None
        return np.ascontiguousarray(self.unpack(values)).reshape(-1)

    def native_vector(self, values: NDArray[Any], dtype: Any) -> NDArray[np.float64]:
        """Return an array with an entry for each weight in the native layout.

        Parameters
        ----------
        values : array of shape (n_features,)
            Without padding.
        dtype : "float32" or "float64"
            Of the weights whose layout it gets; the result is of float64.

        Returns
        -------
        array
            Padded with zeros.
        """
        native = np.zeros(self.n_rows * self._width(weight_dtype(dtype)))
        self.unpack(native)[:] = values.reshape(self.n_rows, -1)
        return native

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights as native code takes them: a copy only if they are not aligned.

        Parameters
        ----------
        weights : array
            Native weights that may have been moved.

        Returns
        -------
        array
            The same numbers, aligned.
        """
        self._require_prepared()
        array = np.asarray(weights)
        expected = self.n_rows * self._width(array.dtype)
        if array.dtype not in (np.float32, np.float64) or array.shape != (expected,):
            raise ValueError(
                f"the weights are {array.dtype} of the shape {array.shape}; expected {expected} "
                f"for {self.n_rows} features and {len(self.classes_)} classes"
            )
        if array.ctypes.data % 32 == 0 and array.flags.c_contiguous:
            return array
        aligned: NDArray[Any] = _native.aligned_array(len(array), array.dtype == np.float32)
        aligned[:] = array
        return aligned

    # --- predictions ---

    def _inputs(self, X: Any) -> Any:
        """Return inputs as a matrix with the features that are known."""
        self._require_prepared()
        if self.words is not None:
            return self.words.transform(X)
        return example_matrix(X, self.n_columns_)

    def _problem(
        self, X: Any, weights: NDArray[Any], codes: NDArray[np.int32] | None = None
    ) -> Any:
        """Return inputs, with labels or without, as a native problem."""
        rows = ExampleMatrix(self._inputs(X), self.bias, weights.dtype.name)
        if codes is None:
            codes = np.zeros(rows.n, np.int32)
        elif len(codes) != rows.n:
            raise ValueError(
                f"X has {rows.n} examples and y has {len(codes)} labels; expected as many"
            )
        return self._native_problem(rows, codes)

    def _native_problem(self, rows: ExampleMatrix, codes: NDArray[np.int32]) -> Any:
        return _native.MulticlassProblem(
            n_classes=len(self.classes_), labels=codes, **rows.arrays
        )

    def predict_codes(self, X: Any, weights: Any, n_jobs: int) -> NDArray[np.int32]:
        """Return the best class of every example, as its place in ``classes_``.

        Parameters
        ----------
        X : matrix or list of texts
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        int32 array of shape (n_examples,)
            Of several best ones the first.
        """
        native = self.native_weights(weights)
        return np.asarray(self._problem(X, native).predict(native, n_jobs))

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[Any]:
        """Return the best class of every example.

        Parameters
        ----------
        X : matrix or list of texts
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list
            A label for each.
        """
        return [self.classes_[code] for code in self.predict_codes(X, weights, n_jobs).tolist()]

    def scores(self, X: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the scores of all classes.

        Parameters
        ----------
        X : matrix or list of texts
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_examples, K)
            x·W[:, c] for every class c, the bias included.
        """
        native = self.native_weights(weights)
        found: NDArray[np.float64] = np.asarray(self._problem(X, native).scores(native, n_jobs))
        return found.reshape(-1, len(self.classes_))

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the scores of given classes.

        Parameters
        ----------
        X, Y
            Inputs, and a known label for each.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_examples,)
            The scores.
        """
        native = self.native_weights(weights)
        problem = self._problem(X, native, known_classes(Y, self._codes))
        return np.asarray(problem.own_scores(native, n_jobs))

    # --- the protocol: one example, in Python ---

    def _row(self, x: Any) -> NDArray[np.float64]:
        matrix = self._inputs([x])
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        row = np.asarray(dense, dtype=np.float64).ravel()
        return np.append(row, self.bias) if self.bias != 0 else row

    def joint_feature(self, x: Any, y: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the joint features of one example."""
        row = self._row(x)
        if y not in self._codes:
            raise ValueError(f"{y!r} is none of the {len(self._codes)} classes")
        places = np.flatnonzero(row)
        return places * len(self.classes_) + self._codes[y], row[places]

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return what it costs to answer ``y_hat`` where ``y`` is the truth."""
        if self._cost is None:
            return float(y != y_hat)
        return float(self._cost[self._codes[y], self._codes[y_hat]])

    def outputs(self, x: Any) -> list[Any]:
        """Return all classes."""
        self._require_prepared()
        return self.classes_

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best class; with a truth, the oracle's answer."""
        scores = self._row(x) @ np.asarray(w).reshape(self.n_rows, len(self.classes_))
        if truth is not None:
            scores = scores + [self.loss(truth, label) for label in self.classes_]
        return self.classes_[int(np.argmax(scores))]

    def _require_prepared(self) -> None:
        if not self.classes_:
            raise NotCompatibleError(
                f"{type(self).__name__} knows no classes yet: call prepare(X, Y) first, or fit an "
                "estimator"
            )

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        self._require_prepared()
        meta: dict[str, Any] = {
            "classes": classes_to_meta(self.classes_),
            "n_columns": self.n_columns_,
            "bias": float(self.bias),
        }
        arrays: dict[str, NDArray[Any]] = {}
        if self.words is not None:
            meta["words"], word_arrays = self.words.state()
            arrays |= {f"words_{name}": array for name, array in word_arrays.items()}
        if self._cost is not None:
            arrays["cost"] = self._cost
        return meta, arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Multiclass:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Multiclass
            Ready to predict.
        """
        classes = classes_from_meta(meta["classes"])
        n_columns, bias = meta["n_columns"], meta["bias"]
        if type(n_columns) is not int or not 1 <= n_columns < 2**32:
            raise ValueError("the number of features is not between 1 and 2^32 - 1")
        if type(bias) not in (int, float) or not 0 <= bias <= _native.MAX_VALUE:
            raise ValueError("the bias is not a number from 0 to 1e12")
        if not 2 <= len(classes) <= MAX_CLASSES:
            raise ValueError("the number of classes is out of range")
        words = None
        if "words" in meta:
            own = {
                name.removeprefix("words_"): array
                for name, array in arrays.items()
                if name.startswith("words_")
            }
            words = BagOfWords.restore(meta["words"], own)
            if words.n_words != n_columns:
                raise ValueError("there are not as many words as features")
        loss: Any = "0/1"
        if "cost" in arrays:
            loss = np.array(arrays["cost"], dtype=np.float64)
        structure = cls(loss=loss, bias=bias, words=words)
        structure._set(classes, n_columns, class_costs(loss, classes))
        return structure
