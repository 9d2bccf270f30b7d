"""A user's Python structure as the native engine sees it.

`PythonProblem` joins a structure with its training data. The engine asks it one thing only: the
plane that the oracle finds for example i under the weights w. Everything that a user's methods
return is checked here, so that nonsense becomes a `StructureError` that names the example and the
method, and never reaches native code.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.lazy import is_sparse
from maxmargin.structures.base import (
    BadFeatures,
    SparseVector,
    _describe_exception,
    accepts_truth,
    as_structure,
    checked_n_features,
    declared_n_features,
    offers,
    require_size,
    sparse_vector,
    structure_name,
)

__all__ = ["PythonProblem", "example_list", "paired_examples", "real_number", "value_tolerance"]

#: A loss this close to 0 is 0.
LOSS_TOLERANCE = 1e-9

#: How much two values may differ in relation to the numbers that were added up for them. Generous
#: enough for a user's argmax that computes with 4-byte numbers.
VALUE_TOLERANCE = 1e-6

Plane = tuple[NDArray[np.uint32], NDArray[np.float64], float, bool]


class PythonProblem:
    """The training problem of a user's structure, for the native engine.

    Parameters
    ----------
    structure : Structure or object with its methods
        The structure, already prepared (``prepare`` is the estimator's business).
    X, Y : sequence
        The inputs and their true outputs, of the same length.
    n_features : int or None
        Size of the joint feature vector. With None: the structure's own ``n_features``, else the
        size of the first feature vector of a truth that tells it.

    Attributes
    ----------
    n_examples : int
        Number of examples.
    n_weights : int
        Number of weights, which is the number of features.
    n_worse : int
        How often the oracle returned an output worse than the truth.

    Raises
    ------
    NotCompatibleError
        If the object lacks a method or its ``argmax`` takes no ``truth``.
    StructureError
        If a method raises or returns nonsense for a truth.
    ValueError
        If X and Y differ in length or are empty.
    """

    def __init__(self, structure: Any, X: Any, Y: Any, n_features: int | None = None) -> None:
        self.structure = as_structure(structure)
        self._name = structure_name(self.structure)
        if not accepts_truth(self.structure):
            raise NotCompatibleError(
                f"argmax of {self._name} must accept argmax(x, w) and argmax(x, w, truth=y): "
                "give it a parameter truth=None"
            )
        self._X, self._Y = paired_examples(X, Y)
        if n_features is None:
            n_features = declared_n_features(self.structure)
        else:
            n_features = checked_n_features(n_features, "n_features")
        self._truths = [
            self._features(i, self._Y[i], n_features, "its truth") for i in range(len(self._Y))
        ]
        self.n_examples = len(self._Y)
        self.n_weights = self._fix_size() if n_features is None else n_features
        self.n_worse = 0
        for i, y in enumerate(self._Y):
            loss = self._loss(i, y)
            if loss > LOSS_TOLERANCE:
                raise self._error("loss", i, f"is {loss} for the truth itself; expected 0")

    def _fix_size(self) -> int:
        sizes = ((i, f.size) for i, f in enumerate(self._truths) if f.size is not None)
        first, size = next(sizes, (0, None))
        if size is None:
            raise StructureError(
                f"the number of features of {self._name} is not known: joint_feature returns dicts "
                "or tuples (indices, values), which do not tell it. Set n_features on the "
                "structure (an attribute or a property; prepare(X, Y) may set it)",
                method="n_features",
            )
        if size == 0:
            raise self._error("joint_feature", first, "returned a vector of 0 entries")
        for i, features in enumerate(self._truths):
            try:
                require_size(features, size)
            except BadFeatures as error:
                raise self._error(
                    "joint_feature",
                    i,
                    f"returned {error}, the size of the vector of example {first}",
                ) from error
        return size

    def truth_features(self, i: int) -> SparseVector:
        """Return the joint features f(x_i, y_i) of a truth.

        Parameters
        ----------
        i : int
            Index of the example.

        Returns
        -------
        SparseVector
            Computed once, when the problem was made.
        """
        return self._truths[i]

    def oracle(self, i: int, w: ArrayLike) -> Plane:
        """Ask the oracle for the most violated output of example i under w.

        Parameters
        ----------
        i : int
            Index of the example.
        w : ndarray of float64, shape (n_weights,)
            The weights. The user's method sees them read-only.

        Returns
        -------
        indices : ndarray of uint32
            Where Δf = f(x_i, y_i) - f(x_i, ŷ) is not zero; ascending, unique.
        values : ndarray of float64
            The entries of Δf there.
        loss : float
            loss(y_i, ŷ), at least 0.
        is_truth : bool
            True if the oracle returned the truth, or an output with the truth's features and no
            loss (the same plane), or one worse than the truth. The plane is then empty and the
            loss 0.

        Raises
        ------
        StructureError
            If a method of the structure raises or returns nonsense. KeyboardInterrupt and
            MemoryError pass through as they are.

        Warns
        -----
        UserWarning
            The first time that the oracle returns an output worse than the truth.
        """
        weights = self._read_only(w)
        truth = self._Y[i]
        y_hat = self._call("argmax", i, self._X[i], weights, truth=truth)
        if y_hat is None:
            raise self._error("argmax", i, "returned None; expected an output (a missing return?)")
        loss = self._loss(i, y_hat)
        if self._call("equal", i, truth, y_hat):
            if loss > LOSS_TOLERANCE:
                raise self._error(
                    "loss", i, f"is {loss} for an output that equals the truth; expected 0"
                )
            return _truth_plane()

        found = self._features(i, y_hat, self.n_weights, "the output of argmax")
        f = self._truths[i]
        value = loss + found.dot(weights) - f.dot(weights)
        if value < -value_tolerance(weights, loss, f, found):
            self._count_worse(i, value)
            return _truth_plane()
        indices, values = _difference(f, found, self.n_weights)
        if len(indices) == 0 and loss <= LOSS_TOLERANCE:
            return _truth_plane()
        return indices, values, loss, False

    @property
    def offers_grades(self) -> bool:
        """Whether the structure can tell its best outputs by their loss, or all its outputs."""
        return offers(self.structure, "best_by_loss") or offers(self.structure, "outputs")

    def grades(self, i: int, w: ArrayLike, any_loss: bool) -> list[Plane]:
        """Return the planes with the smallest w.Δf at each loss, or over all losses.

        Parameters
        ----------
        i : int
            Index of the example.
        w : ndarray of float64, shape (n_weights,)
            The weights.
        any_loss : bool
            One plane only: the smallest w.Δf of all outputs but the truth.

        Returns
        -------
        list of planes
            As `oracle` returns them; none of the truth.
        """
        weights = self._read_only(w)
        x, truth = self._X[i], self._Y[i]
        if offers(self.structure, "best_by_loss"):
            method, found = "best_by_loss", self._call("best_by_loss", i, x, weights, truth)
        else:
            method, found = "outputs", self._call("outputs", i, x)
        best: dict[float, tuple[float, Plane]] = {}
        f = self._truths[i]
        for y in self._listed(method, i, found):
            if self._call("equal", i, truth, y):
                continue
            loss = self._loss(i, y)
            features = self._features(i, y, self.n_weights, f"an output of {method}")
            margin = f.dot(weights) - features.dot(weights)
            key = 0.0 if any_loss else loss
            if key not in best or margin < best[key][0]:
                indices, values = _difference(f, features, self.n_weights)
                best[key] = margin, (indices, values, loss, False)
        return [plane for _, plane in best.values()]

    def _listed(self, method: str, i: int, found: Any) -> list[Any]:
        try:
            return list(found)
        except TypeError as error:
            what = f"returned a {type(found).__name__}; expected an iterable of outputs"
            raise self._error(method, i, what) from error

    def _read_only(self, w: ArrayLike) -> NDArray[np.float64]:
        weights = np.asarray(w, dtype=np.float64)
        if weights.shape != (self.n_weights,):
            raise ValueError(f"w has shape {weights.shape}; expected ({self.n_weights},)")
        weights = weights.view()
        weights.flags.writeable = False
        return weights

    def _count_worse(self, i: int, value: float) -> None:
        self.n_worse += 1
        if self.n_worse == 1:
            warnings.warn(
                f"the oracle returned an output worse than the truth for example {i}: loss + score "
                f"is {-value:.6g} below the score of the truth. The truth is used instead, and "
                f"training goes on, but argmax of {self._name} does not find the maximum; run "
                "check_structure to see what is wrong (further cases are only counted)",
                UserWarning,
                stacklevel=3,
            )

    def _call(self, method: str, i: int, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self.structure, method)(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:
            raise self._error(method, i, f"failed: {_describe_exception(error)}") from error

    def _features(self, i: int, y: Any, n_features: int | None, what: str) -> SparseVector:
        features = self._call("joint_feature", i, self._X[i], y)
        try:
            return sparse_vector(features, n_features)
        except BadFeatures as error:
            raise self._error("joint_feature", i, f"returned {error} ({what})") from error

    def _loss(self, i: int, y_hat: Any) -> float:
        returned = self._call("loss", i, self._Y[i], y_hat)
        loss = real_number(returned)
        if loss is None:
            raise self._error(
                "loss", i, f"returned an object of type {type(returned).__name__}; expected a float"
            )
        if not math.isfinite(loss):
            raise self._error("loss", i, f"returned {loss}; expected a finite number")
        if loss < -LOSS_TOLERANCE:
            raise self._error("loss", i, f"returned {loss}; expected at least 0")
        return max(loss, 0.0)

    def _error(self, method: str, i: int, what: str) -> StructureError:
        return StructureError(
            f"{method} of {self._name} {what}, for example {i}", method=method, example=i
        )


def example_list(X: Any, name: str) -> list[Any]:
    """Return the examples of X (or Y) as a list.

    Parameters
    ----------
    X : sequence, array, scipy.sparse matrix, or pandas object
        The rows of an array, a matrix or a data frame are the examples.
    name : str
        "X" or "Y", for messages.

    Returns
    -------
    list
        One entry per example.
    """
    if isinstance(X, list):
        return X
    if is_sparse(X):
        rows = X.tocsr()
        return [rows[[i]] for i in range(rows.shape[0])]
    if hasattr(X, "iloc"):
        return [X.iloc[i] for i in range(len(X))]
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__iter__"):
        raise ValueError(f"{name} must be a sequence of examples, not a {type(X).__name__}")
    return list(X)


def paired_examples(X: Any, Y: Any) -> tuple[list[Any], list[Any]]:
    """Return X and Y as lists of the same length, not empty, or raise a ValueError.

    Parameters
    ----------
    X, Y : sequence
        The inputs and their true outputs.

    Returns
    -------
    tuple of two lists
        The examples.
    """
    inputs, truths = example_list(X, "X"), example_list(Y, "Y")
    if len(inputs) != len(truths):
        raise ValueError(f"X has {len(inputs)} examples and Y has {len(truths)}")
    if not inputs:
        raise ValueError("X and Y are empty; at least one example is needed")
    for i, y in enumerate(truths):
        if y is None:
            raise ValueError(f"Y[{i}] is None; every example needs a true output")
    return inputs, truths


def real_number(value: Any) -> float | None:
    """Return a real number (Python, numpy, or a 0-d array) as a float, anything else as None.

    Parameters
    ----------
    value : object
        What a user's method returned.

    Returns
    -------
    float or None
        None if it is no real number.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, numbers.Real | np.bool_):
        return float(value)
    return None


def value_tolerance(
    w: NDArray[np.float64], loss: float, first: SparseVector, second: SparseVector
) -> float:
    """Return by how much loss + w.f may differ between two outputs by rounding alone.

    Parameters
    ----------
    w : ndarray
        The weights.
    loss : float
        The larger loss of the two.
    first, second : SparseVector
        Their joint features.

    Returns
    -------
    float
        The tolerance.
    """
    scale = loss + first.absolute_dot(w) + second.absolute_dot(w)
    return VALUE_TOLERANCE * scale + 1e-12


def _truth_plane() -> Plane:
    return np.empty(0, np.uint32), np.empty(0), 0.0, True


def _difference(
    a: SparseVector, b: SparseVector, size: int
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Return a - b as ascending indices and the values there, without zeros."""
    if 4 * (len(a.indices) + len(b.indices)) >= size:
        dense = np.zeros(size)
        dense[a.indices] = a.values
        dense[b.indices] -= b.values
        indices = np.flatnonzero(dense).astype(np.uint32)
        return indices, dense[indices]
    if len(a.indices) + len(b.indices) == 0:
        return a.indices, a.values
    merged = np.concatenate([a.indices, b.indices])
    order = np.argsort(merged, kind="stable")
    merged, values = merged[order], np.concatenate([a.values, -b.values])[order]
    first = np.flatnonzero(np.append(True, merged[1:] != merged[:-1]))
    indices, values = merged[first], np.add.reduceat(values, first)
    keep = values != 0.0
    return indices[keep], values[keep]
