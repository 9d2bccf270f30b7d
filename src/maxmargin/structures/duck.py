"""What a user's structure offers, and objects that have its methods without deriving from it.

`as_structure` wraps any object with the methods of `Structure` and fills in the optional ones. The
other functions look at a structure before it is used: which methods the user wrote, what its
``argmax`` accepts, how many features it declares.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.structures.base import Structure
from maxmargin.structures.vectors import MAX_FEATURES, Features

__all__ = [
    "accepts_truth",
    "as_structure",
    "checked_n_features",
    "declared_n_features",
    "describe_exception",
    "nonnegative_weights",
    "offers",
    "structure_name",
    "users_object",
]


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

    @property
    def nonnegative(self) -> Any:
        return getattr(self.inner, "nonnegative", None)

    def true_output(self, x: Any, truth: Any) -> Any:
        own = offers(self, "true_output")
        return self.inner.true_output(x, truth) if own else truth

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


def users_object(structure: Any) -> Any:
    """Return the object that the user wrote, without what `as_structure` put around it."""
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
    user = users_object(structure)
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
    user = users_object(structure)
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
            f"n_features of {name} failed: {describe_exception(error)}", method="n_features"
        ) from error
    if value is None:
        return None
    return checked_n_features(value, f"n_features of {name}")


def nonnegative_weights(structure: Any, n_features: int) -> NDArray[np.bool_] | None:
    """Return which weights must not be negative, as the structure says.

    Parameters
    ----------
    structure : Structure
        After ``prepare``.
    n_features : int
        Number of weights.

    Returns
    -------
    bool array of shape (n_features,) or None
        None: all may be.

    Raises
    ------
    StructureError
        If what it says is no mask and are no indices.
    """
    said: Any = getattr(users_object(structure), "nonnegative", None)
    if said is None or said is False:
        return None
    mask = np.zeros(n_features, dtype=bool)
    if said is True:
        mask[:] = True
        return mask
    where = np.asarray(said)
    fits = where.shape == mask.shape if where.dtype == np.bool_ else where.ndim == 1
    if where.dtype.kind not in "biu" or not fits:
        raise StructureError(
            f"nonnegative of {structure_name(structure)} is an array of {where.dtype} of the shape "
            f"{where.shape}; expected True, indices, or a mask of {n_features} entries",
            method="nonnegative",
        )
    if where.dtype != np.bool_ and where.size and not 0 <= where.min() <= where.max() < n_features:
        raise StructureError(
            f"nonnegative of {structure_name(structure)} has an index outside of 0 to "
            f"{n_features - 1}",
            method="nonnegative",
        )
    mask[where] = True
    return mask


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


def describe_exception(error: BaseException) -> str:
    """Return the type and the text of an exception, for messages."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
