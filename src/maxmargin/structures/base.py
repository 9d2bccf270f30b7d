"""The structure protocol: how a user describes an output space.

A *structure* is an output space: joint features f(x, y), a loss, and an argmax. Three methods are
enough (`Structure` explains them); every solver and every regulariser then works with it. Deriving
from `Structure` is the documented way, but any object with the same methods will do: `as_structure`
wraps it and fills in the optional ones.

The helpers below the class are what the rest of the package uses to look at a user's outputs and
feature vectors: `sparse_vector` (any accepted kind of feature vector -> indices and values),
`equal_outputs` and `output_key` (comparing and hashing any outputs).
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.lazy import is_sparse

__all__ = [
    "BadFeatures",
    "Features",
    "SparseVector",
    "Structure",
    "accepts_truth",
    "as_structure",
    "declared_n_features",
    "equal_outputs",
    "offers",
    "output_key",
    "sparse_vector",
]

#: What ``joint_feature`` may return: a 1-d numpy array, a scipy.sparse row of shape (1, d), a dict
#: {index: value}, or a tuple (indices, values).
Features: TypeAlias = Any

MAX_FEATURES = 2**32 - 1  # planes store 4-byte indices


class Structure(ABC):
    """Base class of a user's own output space.

    A subclass writes three methods:

    - ``joint_feature(x, y)``: the joint feature vector f(x, y);
    - ``loss(y, y_hat)``: how bad ``y_hat`` is when ``y`` is the truth, at least 0, and 0 for the
      truth itself;
    - ``argmax(x, w, truth=None)``: the output with the highest score w.f(x, y); with a truth, the
      output with the highest ``loss(truth, y) + w.f(x, y)``: the oracle (margin-rescaled).

    If the outputs of x can be listed, ``outputs(x)`` may be written instead of ``argmax``, which
    then tries them all.

    Everything else is optional: ``n_features``, ``prepare``, ``score``, ``equal``, ``encode``,
    ``decode`` and ``best_by_loss``. No method may change its arguments, and each must give the
    same answer to the same question. ``maxmargin.structures.check.check_structure`` tries a
    structure out and says in words what is wrong with it.

    Attributes
    ----------
    n_features : int or None
        Size of the joint feature vector: a class attribute, an attribute set in ``__init__`` or
        in ``prepare``, or a property. With None (the default) it is taken from the first feature
        vector that tells its size: a numpy array or a scipy.sparse row does, a dict or a tuple
        (indices, values) does not.

    Examples
    --------
    Several yes/no labels for each x, where neighbouring labels like to agree. An output is a tuple
    of 0s and 1s. The weights are one row per label and one weight for each agreement:

    >>> import itertools
    >>> import numpy as np
    >>> from maxmargin.structures.base import Structure
    >>> class Tags(Structure):
    ...     def __init__(self, n_labels):
    ...         self.n_labels = n_labels
    ...
    ...     def joint_feature(self, x, y):
    ...         agreements = sum(a == b for a, b in itertools.pairwise(y))
    ...         return np.append(np.outer(y, x).ravel(), agreements)
    ...
    ...     def loss(self, y, y_hat):
    ...         return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))
    ...
    ...     def argmax(self, x, w, truth=None):
    ...         yes = w[:-1].reshape(self.n_labels, len(x)) @ x  # scores of "yes"; "no" scores 0
    ...         best = {0: (0.0, ()), 1: (0.0, ())}  # last label -> best value, its output
    ...         for j in range(self.n_labels):
    ...             step = {}
    ...             for label in (0, 1):
    ...                 own = yes[j] * label + (truth is not None and truth[j] != label)
    ...                 value, y = max(
    ...                     (v + own + w[-1] * (j > 0 and y[-1] == label), y)
    ...                     for v, y in best.values()
    ...                 )
    ...                 step[label] = (value, (*y, label))
    ...             best = step
    ...         return max(best.values())[1]

    >>> tags = Tags(n_labels=3)
    >>> x = np.array([1.0, -2.0])
    >>> w = np.array([1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.25])
    >>> tags.argmax(x, w)
    (1, 0, 0)
    >>> tags.score(x, (1, 0, 0), w)
    1.25
    >>> tags.argmax(x, w, truth=(1, 0, 0))
    (1, 1, 0)

    Let the library look for mistakes:

    >>> from maxmargin.structures.check import check_structure
    >>> X = [np.array([1.0, -2.0]), np.array([0.5, 1.0])]
    >>> Y = [(1, 0, 0), (0, 1, 1)]
    >>> check_structure(tags, X, Y).ok
    True

    The outputs can be listed here, so ``argmax`` could have been left out:

    >>> class SmallTags(Tags):
    ...     argmax = Structure.argmax  # by brute force
    ...
    ...     def outputs(self, x):
    ...         return itertools.product((0, 1), repeat=self.n_labels)
    >>> SmallTags(n_labels=3).argmax(x, w)
    (1, 0, 0)
    """

    n_features: int | None = None

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Features:
        """Return the joint feature vector f(x, y).

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        y : object
            An output. If it is no possible output for this x, raise a ValueError.

        Returns
        -------
        1-d array, scipy.sparse row of shape (1, d), dict, or tuple
            A dict maps indices to values; a tuple is (indices, values), where an index that occurs
            twice counts with the sum of its values. The size is the same for all x and y.
        """

    @abstractmethod
    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of answering ``y_hat`` when ``y`` is the truth.

        Parameters
        ----------
        y : object
            The truth, as it stands in Y.
        y_hat : object
            Any output, as ``argmax`` returns it.

        Returns
        -------
        float
            Finite, at least 0, and 0 if ``y_hat`` equals ``y``.
        """

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best output for x: with a truth, the oracle's answer.

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        w : ndarray of shape (n_features,)
            The weights, 8-byte. The array is read-only during training.
        truth : object or None
            None: maximise ``w.f(x, y)``. Else: maximise ``loss(truth, y) + w.f(x, y)``.

        Returns
        -------
        object
            An output; not None. It should be a new object, or one that later calls leave alone.

        Notes
        -----
        The default tries all of ``outputs(x)``; the first of several best ones wins.
        """
        best: Any = None
        best_value = -np.inf
        empty = True
        for y in self.outputs(x):
            value = float(self.score(x, y, w))
            if truth is not None:
                value += float(self.loss(truth, y))
            if empty or value > best_value:
                best, best_value, empty = y, value, False
        if empty:
            raise ValueError("outputs(x) is empty: there must be at least one output")
        return best

    def outputs(self, x: Any) -> Iterable[Any]:
        """Return all outputs that are possible for x (optional).

        Parameters
        ----------
        x : object
            An input, as it stands in X.

        Returns
        -------
        iterable
            All outputs, the truth among them.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement argmax(x, w, truth=None), or outputs(x) so that "
            "argmax can try all outputs"
        )

    def best_by_loss(self, x: Any, w: NDArray[np.float64], truth: Any) -> Iterable[Any]:
        """Return for every loss that an output can have the output with the best score (optional).

        With it (or with `outputs`) training with slack rescaling or quadratic slacks is exact; with
        `argmax` alone these formulations can only be approximated.

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        w : ndarray of float64, shape (n_features,)
            The weights; read-only.
        truth : object
            The true output.

        Returns
        -------
        iterable
            Outputs other than the truth, one for each value of ``loss(truth, y)``: the one whose
            score is highest among those with that loss. More outputs do no harm.
        """
        raise NotImplementedError(f"{type(self).__name__} does not have best_by_loss")

    def score(self, x: Any, y: Any, w: NDArray[np.float64]) -> float:
        """Return the score w.f(x, y) of an output (optional: only if it can be had faster).

        Parameters
        ----------
        x, y : object
            An input and an output.
        w : ndarray of shape (n_features,)
            The weights.

        Returns
        -------
        float
            The score.
        """
        features = self.joint_feature(x, y)
        if isinstance(features, np.ndarray) and features.shape == w.shape:
            return float(features @ w)
        return sparse_vector(features, len(w)).dot(w)

    def prepare(self, X: Any, Y: Any) -> None:  # noqa: B027 (optional, not forgotten)
        """Look at the training data before training (optional): count labels, set n_features, ...

        An estimator calls it once per ``fit``, on a deep copy of the structure: the user's object
        is never changed.

        Parameters
        ----------
        X, Y : sequence
            The inputs and their true outputs.
        """

    def equal(self, y: Any, y_hat: Any) -> bool:
        """Tell whether two outputs are the same (optional).

        The default compares by content: lists, tuples and numpy arrays entry by entry (a list
        may equal an array), dicts, scipy.sparse matrices and dataclasses too, and anything else
        with ``==``.

        Parameters
        ----------
        y, y_hat : object
            Two outputs.

        Returns
        -------
        bool
            True if they are the same output.
        """
        return equal_outputs(y, y_hat)

    def encode(self, y: Any) -> Hashable:
        """Return a hashable key of an output, the same for equal outputs (optional).

        Parameters
        ----------
        y : object
            An output.

        Returns
        -------
        hashable
            By default the content of y as nested tuples.
        """
        return output_key(y)

    def decode(self, code: Hashable) -> Any:
        """Return the output that ``encode`` made a key of (optional).

        Parameters
        ----------
        code : hashable
            A key from ``encode``.

        Returns
        -------
        object
            The output.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement decode to turn a key back into an output"
        )


# --- duck typing ---------------------------------------------------------------------------------


class _Duck(Structure):
    """An object with the methods of a structure that does not derive from `Structure`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def n_features(self) -> Any:  # type: ignore[override]
        return getattr(self.inner, "n_features", None)

    def joint_feature(self, x: Any, y: Any) -> Features:
        return self.inner.joint_feature(x, y)

    def loss(self, y: Any, y_hat: Any) -> float:
        return self.inner.loss(y, y_hat)  # type: ignore[no-any-return]

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        if not offers(self, "argmax"):
            return super().argmax(x, w, truth)
        if truth is None:
            return self.inner.argmax(x, w)
        return self.inner.argmax(x, w, truth=truth)

    def outputs(self, x: Any) -> Iterable[Any]:
        own = offers(self, "outputs")
        return self.inner.outputs(x) if own else super().outputs(x)

    def best_by_loss(self, x: Any, w: NDArray[np.float64], truth: Any) -> Iterable[Any]:
        own = offers(self, "best_by_loss")
        return self.inner.best_by_loss(x, w, truth) if own else super().best_by_loss(x, w, truth)

    def score(self, x: Any, y: Any, w: NDArray[np.float64]) -> float:
        own = offers(self, "score")
        return self.inner.score(x, y, w) if own else super().score(x, y, w)

    def prepare(self, X: Any, Y: Any) -> None:
        if offers(self, "prepare"):
            self.inner.prepare(X, Y)

    def equal(self, y: Any, y_hat: Any) -> bool:
        own = offers(self, "equal")
        return self.inner.equal(y, y_hat) if own else super().equal(y, y_hat)

    def encode(self, y: Any) -> Hashable:
        own = offers(self, "encode")
        return self.inner.encode(y) if own else super().encode(y)

    def decode(self, code: Hashable) -> Any:
        return self.inner.decode(code) if offers(self, "decode") else super().decode(code)


def _users_object(structure: Structure) -> Any:
    return structure.inner if isinstance(structure, _Duck) else structure


def structure_name(structure: Any) -> str:
    """Return the name of the user's class, for messages."""
    return type(structure.inner if isinstance(structure, _Duck) else structure).__name__


def offers(structure: Structure, method: str) -> bool:
    """Tell whether the user wrote this method, rather than inheriting the default.

    Parameters
    ----------
    structure : Structure
        From `as_structure`.
    method : str
        Name of a method of `Structure`.

    Returns
    -------
    bool
        True if the user wrote it.
    """
    user = _users_object(structure)
    if isinstance(structure, _Duck):
        return callable(getattr(user, method, None))
    return method in vars(user) or getattr(type(user), method) is not getattr(Structure, method)


def as_structure(structure: Any) -> Structure:
    """Return a structure for an object with a structure's methods.

    Parameters
    ----------
    structure : Structure or object
        An instance of a subclass of `Structure` is returned as it is; any other object with the
        required methods is wrapped.

    Returns
    -------
    Structure
        With the optional methods filled in.

    Raises
    ------
    NotCompatibleError
        If a required method is missing, or a class was given instead of an instance.
    """
    if inspect.isclass(structure):
        raise NotCompatibleError(
            f"a structure must be an object, but the class {structure.__name__} was given: write "
            f"{structure.__name__}(...)"
        )
    result = structure if isinstance(structure, Structure) else _Duck(structure)
    missing = [name for name in ("joint_feature", "loss") if not offers(result, name)]
    if not offers(result, "argmax") and not offers(result, "outputs"):
        missing.append("argmax (or outputs, for a brute-force argmax)")
    if missing:
        raise NotCompatibleError(
            f"{structure_name(result)} is not a structure. It must implement joint_feature(x, y), "
            f"loss(y, y_hat) and argmax(x, w, truth=None). Missing: {', '.join(missing)}."
        )
    return result


def accepts_truth(structure: Structure) -> bool:
    """Tell whether ``argmax`` can be called as ``argmax(x, w)`` and ``argmax(x, w, truth=y)``.

    Parameters
    ----------
    structure : Structure
        From `as_structure`.

    Returns
    -------
    bool
        False if the signature does not allow it.
    """
    user = _users_object(structure)
    method = user.argmax if offers(structure, "argmax") else structure.argmax
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # compiled functions may not tell
        return True
    try:
        signature.bind(None, None)
        signature.bind(None, None, truth=None)
    except TypeError:
        return False
    return True


def declared_n_features(structure: Structure) -> int | None:
    """Return the structure's ``n_features``, validated.

    Parameters
    ----------
    structure : Structure
        From `as_structure`, after ``prepare``.

    Returns
    -------
    int or None
        None if the structure does not say.

    Raises
    ------
    StructureError
        If it is not a positive integer that fits 4 bytes.
    """
    name = structure_name(structure)
    try:
        value: Any = structure.n_features
    except MemoryError:
        raise
    except Exception as error:
        raise StructureError(
            f"n_features of {name} failed: {_describe_exception(error)}", method="n_features"
        ) from error
    if value is None:
        return None
    return checked_n_features(value, f"n_features of {name}")


def checked_n_features(value: Any, what: str) -> int:
    """Return ``value`` as an int if it can be the size of a feature vector, else raise."""
    if callable(value):
        raise StructureError(
            f"{what} is a method; it must be an attribute or a property (write @property above it)",
            method="n_features",
        )
    try:
        size = operator.index(value)
    except TypeError:
        size = -1
    if isinstance(value, bool) or not 1 <= size <= MAX_FEATURES:
        raise StructureError(
            f"{what} is {value!r}; it must be an integer from 1 to {MAX_FEATURES}",
            method="n_features",
        )
    return size


def _describe_exception(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- feature vectors -----------------------------------------------------------------------------


class BadFeatures(ValueError):  # noqa: N818 (a finding about a value)
    """What a user's ``joint_feature`` returned is no feature vector.

    Parameters
    ----------
    kind : {"type", "shape", "size", "index", "finite"}
        What is wrong with it.
    message : str
        A phrase that completes "joint_feature returned ...".
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class SparseVector(NamedTuple):
    """A feature vector in the one form the package computes with.

    Attributes
    ----------
    indices : ndarray of uint32
        Ascending, each at most once.
    values : ndarray of float64
        Finite and not zero.
    size : int or None
        The number of features, where the user's vector told it.
    """

    indices: NDArray[np.uint32]
    values: NDArray[np.float64]
    size: int | None

    def dot(self, w: NDArray[np.float64]) -> float:
        """Return the inner product with dense weights."""
        return float(self.values @ w[self.indices])

    def absolute_dot(self, w: NDArray[np.float64]) -> float:
        """Return the inner product of the absolute values: the scale of rounding errors."""
        return float(np.abs(self.values) @ np.abs(w[self.indices]))


def sparse_vector(features: Features, n_features: int | None = None) -> SparseVector:
    """Bring any accepted kind of feature vector into one form.

    Parameters
    ----------
    features : 1-d array, scipy.sparse row, dict, or tuple (indices, values)
        What a user's ``joint_feature`` returned.
    n_features : int or None
        The size it must have. With None only what can be known without it is checked.

    Returns
    -------
    SparseVector
        Indices ascending and unique (values of equal indices are summed), zeros dropped.

    Raises
    ------
    BadFeatures
        If it is of the wrong type, shape or size, or holds NaN, an infinity, or an index that is
        no integer or out of range.

    Examples
    --------
    >>> sparse_vector({4: 2.0, 1: 1.0}, 5).indices.tolist()
    [1, 4]
    >>> sparse_vector(([3, 0, 3], [1.0, 5.0, 1.0])).values.tolist()
    [5.0, 2.0]
    """
    size: int | None = None
    if isinstance(features, np.ndarray):
        if features.ndim != 1:
            raise BadFeatures(
                "shape", f"an array of shape {features.shape}; expected one dimension"
            )
        size = len(features)
        values = _real_values(features, copy=False)
        indices = np.flatnonzero(values)
        values = values[indices]
    elif is_sparse(features):
        indices, values, size = _from_scipy(features)
        indices, values = _sorted_unique(indices, values)
    elif isinstance(features, Mapping):
        indices, values = _from_pairs(list(features.keys()), list(features.values()), "a dict")
        indices, values = _sorted_unique(indices, values)
    elif isinstance(features, tuple):
        if len(features) != 2:
            raise BadFeatures(
                "type", f"a tuple of {len(features)} entries; expected (indices, values)"
            )
        indices, values = _from_pairs(features[0], features[1], "a tuple")
        indices, values = _sorted_unique(indices, values)
    else:
        raise BadFeatures(
            "type",
            f"an object of type {type(features).__name__}; expected a 1-d numpy array, a "
            "scipy.sparse row, a dict {index: value}, or a tuple (indices, values)",
        )
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadFeatures("finite", f"{values[k]} at index {indices[k]}; expected finite numbers")
    _require_size(size, n_features)
    _require_range(indices, MAX_FEATURES if n_features is None else n_features)
    return SparseVector(indices.astype(np.uint32), values, size)


def require_size(vector: SparseVector, n_features: int) -> None:
    """Raise `BadFeatures` unless the vector fits this number of features."""
    _require_size(vector.size, n_features)
    _require_range(vector.indices, n_features)


def _require_size(size: int | None, n_features: int | None) -> None:
    if size is not None and n_features is not None and size != n_features:
        raise BadFeatures("size", f"a vector of {size} entries; expected {n_features}")


def _require_range(indices: NDArray[Any], n_features: int) -> None:
    if len(indices) == 0:
        return
    for index in (int(indices[0]), int(indices[-1])):
        if not 0 <= index < n_features:
            raise BadFeatures(
                "index", f"the index {index}; expected indices from 0 to {n_features - 1}"
            )


def _real_values(values: Any, *, copy: bool = True) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise BadFeatures("type", f"values of type {array.dtype}; expected real numbers")
    return array.astype(np.float64, copy=copy)


def _from_scipy(row: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    if row.ndim == 2 and row.shape[0] != 1:
        raise BadFeatures(
            "shape", f"a sparse matrix of shape {row.shape}; expected one row, (1, n_features)"
        )
    coo = row.tocoo()
    indices = coo.coords[0] if row.ndim == 1 else coo.col
    return indices.astype(np.int64), _real_values(coo.data), int(row.shape[-1])


def _from_pairs(
    indices: Any, values: Any, what: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        index_array, value_array = np.asarray(indices), np.asarray(values)
    except (TypeError, ValueError) as error:  # ragged lists
        raise BadFeatures(
            "type", f"{what} whose indices or values are no flat list of numbers"
        ) from error
    if index_array.ndim != 1 or value_array.ndim != 1 or len(index_array) != len(value_array):
        raise BadFeatures(
            "shape",
            f"{what} with indices of shape {index_array.shape} and values of shape "
            f"{value_array.shape}; expected two flat lists of the same length",
        )
    if len(index_array) == 0:
        return np.empty(0, np.int64), np.empty(0)
    if index_array.dtype.kind not in "iu":
        raise BadFeatures(
            "index",
            f"{what} with indices of type {index_array.dtype} (the first is {indices[0]!r}); "
            "expected integers",
        )
    return index_array.astype(np.int64), _real_values(value_array)


def _sorted_unique(
    indices: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if len(indices) > 1 and not (indices[1:] > indices[:-1]).all():
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        first = np.flatnonzero(np.append(True, indices[1:] != indices[:-1]))
        indices, values = indices[first], np.add.reduceat(values, first)
    keep = values != 0.0
    return (indices, values) if keep.all() else (indices[keep], values[keep])


# --- outputs -------------------------------------------------------------------------------------


def equal_outputs(a: Any, b: Any) -> bool:
    """Tell whether two outputs have the same content, whatever they are made of.

    Lists, tuples and numpy arrays are compared entry by entry (a list may equal an array or a
    tuple), dicts key by key, scipy.sparse matrices by their entries, dataclasses field by field if
    ``==`` cannot decide; anything else with ``==``. NaN equals NaN.

    Parameters
    ----------
    a, b : object
        Two outputs.

    Returns
    -------
    bool
        True if they are equal.

    Examples
    --------
    >>> equal_outputs([1, 2], np.array([1, 2]))
    True
    >>> equal_outputs({"tags": np.array([1, 2])}, {"tags": np.array([1, 3])})
    False
    """
    if a is b:
        return True
    if is_sparse(a) or is_sparse(b):
        if not (is_sparse(a) and is_sparse(b)) or a.shape != b.shape:
            return False
        return bool((a != b).nnz == 0)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _equal_arrays(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal_outputs, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(k in b and equal_outputs(v, b[k]) for k, v in a.items())
    return _equal_objects(a, b)


def _equal_arrays(a: Any, b: Any) -> bool:
    sequences = (np.ndarray, list, tuple)
    both = isinstance(a, sequences) and isinstance(b, sequences)
    if not both and (np.ndim(a) > 0 or np.ndim(b) > 0):  # a sequence and something else
        return False
    try:
        left, right = np.asarray(a), np.asarray(b)
    except ValueError:  # a ragged list
        return len(a) == len(b) and all(map(equal_outputs, a, b))
    if left.shape != right.shape:
        return False
    if "O" in (left.dtype.kind, right.dtype.kind):
        return all(map(equal_outputs, left.ravel().tolist(), right.ravel().tolist()))
    nan = left.dtype.kind in "fc" and right.dtype.kind in "fc"
    return bool(np.array_equal(left, right, equal_nan=nan))


def _equal_objects(a: Any, b: Any) -> bool:
    try:
        same = a == b
        if isinstance(same, bool | np.bool_):
            if not same and isinstance(a, float | np.floating):
                return isinstance(b, float | np.floating) and bool(np.isnan(a) and np.isnan(b))
            return bool(same)
        if same is not NotImplemented and np.size(same) > 0:
            return bool(np.all(np.asarray(same)))
        return bool(same)
    except MemoryError:
        raise
    except Exception:  # for instance "the truth value of an array is ambiguous"
        if type(a) is not type(b) or not dataclasses.is_dataclass(a):
            raise
        return all(
            equal_outputs(getattr(a, field.name), getattr(b, field.name))
            for field in dataclasses.fields(a)
            if field.compare
        )


def output_key(y: Any) -> Hashable:
    """Return a hashable key of an output: equal for outputs that `equal_outputs` calls equal.

    Parameters
    ----------
    y : object
        An output made of numbers, strings, lists, tuples, sets, dicts, numpy arrays,
        scipy.sparse matrices, dataclasses, or any other hashable object.

    Returns
    -------
    hashable
        Its content as nested tuples.

    Raises
    ------
    TypeError
        If it holds an object that cannot be hashed.

    Examples
    --------
    >>> output_key([1, 2]) == output_key(np.array([1, 2]))
    True
    """
    if isinstance(y, np.ndarray):
        return output_key(y.tolist())
    if isinstance(y, np.generic):
        return output_key(y.item())
    if isinstance(y, list | tuple):
        return tuple(map(output_key, y))
    if isinstance(y, Mapping):
        return frozenset((key, output_key(value)) for key, value in y.items())
    if isinstance(y, set | frozenset):
        return frozenset(y)
    if is_sparse(y):
        rows = y.tocsr() if y.ndim == 2 else y.reshape(1, -1).tocsr()
        rows.sum_duplicates()
        coo = rows.tocoo()
        entries = zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True)
        return (y.shape, frozenset(entry for entry in entries if entry[2] != 0))
    if isinstance(y, float) and math.isnan(y):
        return "not a number"
    try:
        hash(y)
    except TypeError:
        if dataclasses.is_dataclass(y) and not isinstance(y, type):
            fields = [field.name for field in dataclasses.fields(y) if field.compare]
            return (type(y), *(output_key(getattr(y, name)) for name in fields))
        raise TypeError(
            f"an output of type {type(y).__name__} cannot be hashed; give the structure a method "
            "encode(y) that returns a hashable key"
        ) from None
    result: Hashable = y
    return result
