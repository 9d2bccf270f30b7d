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
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._native import ListedPlanes, sparse_plane
from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.lazy import is_sparse
from maxmargin.structures.duck import (
    accepts_truth,
    as_structure,
    checked_n_features,
    declared_n_features,
    describe_exception,
    offers,
    structure_name,
)
from maxmargin.structures.oracle_pool import OraclePool
from maxmargin.structures.vectors import (
    BadFeatures,
    SparseVector,
    plain_features,
    require_size,
    sparse_vector,
)

__all__ = ["PythonProblem", "example_list", "paired_examples", "real_number", "value_tolerance"]

#: A loss this close to 0 is 0.
LOSS_TOLERANCE = 1e-9

#: How much two values may differ in relation to the numbers that were added up for them. Generous
#: enough for a user's argmax that computes with 4-byte numbers.
VALUE_TOLERANCE = 1e-6

#: Memory for the planes of listed outputs of all examples of a problem.
KEEP_BYTES = 64 * 2**20

#: Outputs whose planes are not kept are read in pieces of about this size.
CHUNK_BYTES = 2**20

#: So many outputs are tried rather than asking a user's argmax several times.
FEW_OUTPUTS = 256

_FLOAT64 = np.dtype(np.float64)

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
    keep_bytes : int
        How much memory the planes of listed outputs may take. Where ``outputs(x)`` are tried one by
        one, their features and losses are read once and kept, example by example, until so many
        bytes are used; the outputs of the other examples are read again at every call.
    example_weight : ndarray of float64, shape (n_examples,), or None
        A factor of C for each example, not negative; None: ones. It may be changed between two
        trainings; the engine must be told (``rescale``).

    Attributes
    ----------
    n_examples : int
        Number of examples.
    n_weights : int
        Number of weights, which is the number of features.
    n_worse : int
        How often the oracle returned an output worse than the truth.
    kept_bytes : int
        Memory of the planes of listed outputs that are kept.

    Raises
    ------
    NotCompatibleError
        If the object lacks a method or its ``argmax`` takes no ``truth``.
    StructureError
        If a method raises or returns nonsense for a truth.
    ValueError
        If X and Y differ in length or are empty.
    """

    def __init__(
        self,
        structure: Any,
        X: Any,
        Y: Any,
        n_features: int | None = None,
        keep_bytes: int = KEEP_BYTES,
        *,
        example_weight: NDArray[np.float64] | None = None,
    ) -> None:
        self.example_weight = example_weight
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
        self._true = self._Y  # the outputs that stand for the truths
        if offers(self.structure, "true_output"):
            self._true = [self._true_output(i) for i in range(len(self._Y))]
        self._truths = [
            self._features(i, y, n_features, "its truth") for i, y in enumerate(self._true)
        ]
        self.n_examples = len(self._Y)
        self.n_weights = self._fix_size() if n_features is None else n_features
        self._shape = (self.n_weights,)
        self.n_worse = 0
        self._noted: list[float] | None = None  # where another process counts
        # Outputs are tried one by one: by the inherited argmax, whose scores are w.f.
        self._enumerates = not any(offers(self.structure, m) for m in ("argmax", "score"))
        self._tells_best_by_loss = offers(self.structure, "best_by_loss")
        self._kept: dict[int, ListedPlanes] = {}
        self._keep_bytes = keep_bytes
        self._few: dict[int, bool] = {}
        self.kept_bytes = 0
        for i, y in enumerate(self._true):
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
        if self._enumerates:
            plane = self._best_listed(i, weights)
            if plane is not None:
                return plane
        truth = self._Y[i]
        y_hat = self._call("argmax", i, self._X[i], weights, truth=truth)
        if y_hat is None:
            raise self._error("argmax", i, "returned None; expected an output (a missing return?)")
        loss = self._loss(i, y_hat)
        if self._call("equal", i, self._true[i], y_hat):
            self._require_no_loss(i, loss)
            return _truth_plane()

        features = self._call("joint_feature", i, self._X[i], y_hat)
        f = self._truths[i]
        plain, _ = plain_features(features, self.n_weights)
        found = sparse_plane(f.indices, f.values, plain, weights)
        if found is None:  # an unusual kind, or something is wrong with it
            entries = self._vector(i, features, self.n_weights, "the output of argmax")[:2]
            found = sparse_plane(f.indices, f.values, entries, weights)
            assert found is not None
        indices, values, score, scale = found
        return self._unless_worse(i, (indices, values, loss, False), loss + score, scale)

    def _unless_worse(self, i: int, plane: Plane, value: float, scale: float) -> Plane:
        """Return the plane of the output found, or that of the truth if it is the same or better.

        ``value`` is l - w.Δf, and ``scale`` the sum of the absolute values added up for w.Δf.
        """
        indices, _, loss, _ = plane
        if value < -_tolerance(loss + scale):
            if self._noted is None:
                self.count_worse(i, value)
            else:
                self._noted.append(value)
            return _truth_plane()
        if len(indices) == 0 and loss <= LOSS_TOLERANCE:
            return _truth_plane()
        return plane

    @property
    def offers_grades(self) -> bool:
        """Whether the structure can tell its best outputs by their loss, or all its outputs."""
        return self._tells_best_by_loss or offers(self.structure, "outputs")

    @property
    def offers_argmax_too(self) -> bool:
        """Whether the user wrote an argmax, and `grades` would have to try all outputs."""
        own = offers(self.structure, "argmax") and offers(self.structure, "outputs")
        return own and not self._tells_best_by_loss

    def prefers_argmax(self, i: int) -> bool:
        """Tell whether several calls of argmax are expected to be faster than `grades`.

        Parameters
        ----------
        i : int
            Index of the example.

        Returns
        -------
        bool
            False if the outputs of the example are known to be few: then their planes are read
            once, and kept. The answer depends on the example alone, so that a resumed run does
            what the first one would have done.
        """
        few = self._few.get(i)
        if few is None:
            try:
                few = len(self.structure.outputs(self._X[i])) <= FEW_OUTPUTS  # type: ignore[arg-type]
            except MemoryError:
                raise
            except Exception:  # a generator, or a mistake that `grades` will name
                few = False
            self._few[i] = few
        return not few

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
        if self._tells_best_by_loss:
            truth = self._Y[i]
            found = self._call("best_by_loss", i, self._X[i], weights, truth)
            listings = self._read_outputs(i, "best_by_loss", found, CHUNK_BYTES)
        else:
            listings = self._listings(i)
        best: dict[float, tuple[float, Plane]] = {}
        for rows in listings:
            for k, margin in rows.best_by_loss(weights, any_loss):
                plane = rows.plane(k)
                key = 0.0 if any_loss else plane[2]
                if key not in best or margin < best[key][0]:
                    best[key] = margin, plane
        return [plane for _, plane in best.values()]

    # --- other processes ---

    def helpers(self, n_jobs: int) -> OraclePool:
        """Return processes that answer for the oracle while a training lasts.

        Parameters
        ----------
        n_jobs : int
            How many.
        """
        return OraclePool(self, n_jobs)

    def note_worse(self, noted: list[float]) -> None:
        """Note answers worse than the truth in a list: the process that asked will count them.

        Parameters
        ----------
        noted : list of float
            Gets what `count_worse` is told.
        """
        self._noted = noted

    def __getstate__(self) -> dict[str, Any]:
        # Listings are native memory; another process reads the outputs again.
        return self.__dict__ | {"_kept": {}, "kept_bytes": 0}

    # --- outputs that are tried one by one ---

    def kept_listing(self, i: int) -> ListedPlanes | None:
        """Return the planes of all outputs, if they are kept: native code finds grades in them.

        Parameters
        ----------
        i : int
            Index of the example.

        Returns
        -------
        ListedPlanes or None
            None if `grades` has to be asked.
        """
        return None if self._tells_best_by_loss else self._kept.get(i)

    def _best_listed(self, i: int, weights: NDArray[np.float64]) -> Plane | None:
        """Return the plane that `oracle` returns, or None where the listing fails.

        A failure is left to the structure's own ``argmax``, which names it as it always did.
        """
        best: tuple[float, float, Plane] | None = None
        try:
            for rows in self._listings(i):
                k, value, scale = rows.best(weights)
                if best is None or value > best[0]:
                    best = value, scale, rows.plane(k)
        except MemoryError:
            raise
        except Exception:
            return None
        if best is None:
            return None
        value, scale, plane = best
        return _truth_plane() if plane[3] else self._unless_worse(i, plane, value, scale)

    def _listings(self, i: int) -> Iterator[ListedPlanes]:
        """Yield the planes of all outputs of an example, in one listing where it can be kept."""
        kept = self._kept.get(i)
        if kept is not None:
            yield kept
            return
        room = self._keep_bytes - self.kept_bytes
        found = self._call("outputs", i, self._X[i])
        whole: ListedPlanes | None = None
        for n, rows in enumerate(self._read_outputs(i, "outputs", found, max(room, CHUNK_BYTES))):
            whole = rows if n == 0 else None
            yield rows
        if whole is not None and i not in self._kept:
            whole.shrink()
            if self.kept_bytes + whole.nbytes <= self._keep_bytes:
                self._kept[i] = whole
                self.kept_bytes += whole.nbytes

    def _read_outputs(
        self, i: int, method: str, found: Any, chunk_bytes: int
    ) -> Iterator[ListedPlanes]:
        """Yield the planes of a user's outputs in listings of at most about so many bytes."""
        f, truth = self._truths[i], self._true[i]
        rows = ListedPlanes(f.indices, f.values, self.n_weights)
        for y in self._each(method, i, found):
            if y is None:
                raise self._error(method, i, "has None among the outputs; expected an output")
            loss = self._loss(i, y)
            if self._call("equal", i, truth, y):
                self._require_no_loss(i, loss)
                rows.add_truth()
            else:
                features = self._call("joint_feature", i, self._X[i], y)
                plain, _ = plain_features(features, self.n_weights)
                if not rows.add(plain, loss):
                    what = f"an output of {method}"
                    rows.add(self._vector(i, features, self.n_weights, what)[:2], loss)
            if rows.nbytes > chunk_bytes:
                yield rows
                rows = ListedPlanes(f.indices, f.values, self.n_weights)
        if len(rows) > 0:
            yield rows

    def _each(self, method: str, i: int, found: Any) -> Iterator[Any]:
        try:
            yield from found
        except TypeError as error:
            what = f"returned a {type(found).__name__}; expected an iterable of outputs"
            raise self._error(method, i, what) from error

    # --- what the user's methods are given and return ---

    def _true_output(self, i: int) -> Any:
        y = self._call("true_output", i, self._X[i], self._Y[i])
        if y is None:
            raise self._error("true_output", i, "returned None; expected an output")
        return y

    def _read_only(self, w: ArrayLike) -> NDArray[np.float64]:
        if (
            type(w) is np.ndarray
            and w.dtype is _FLOAT64
            and w.shape == self._shape
            and not w.flags.writeable
            and w.flags.c_contiguous
        ):
            return w
        weights = np.asarray(w, dtype=np.float64, order="C")
        if weights.shape != (self.n_weights,):
            raise ValueError(f"w has shape {weights.shape}; expected ({self.n_weights},)")
        weights = weights.view()
        weights.flags.writeable = False
        return weights

    def count_worse(self, i: int, value: float) -> None:
        """Count an answer that was worse than the truth, and warn of the first one.

        Parameters
        ----------
        i : int
            Index of the example.
        value : float
            l - w.Δf of the answer, below zero.
        """
        self.n_worse += 1
        if self.n_worse == 1:
            warnings.warn(
                f"the oracle returned an output worse than the truth for example {i}: loss + score "
                f"is {-value:.6g} below the score of the truth. The truth is used instead, and "
                f"training goes on, but argmax of {self._name} does not find the maximum; run "
                "check_structure to see what is wrong (further cases are only counted)",
                UserWarning,
                stacklevel=4,
            )

    def _call(self, method: str, i: int, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self.structure, method)(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:
            raise self._error(method, i, f"failed: {describe_exception(error)}") from error

    def _features(self, i: int, y: Any, n_features: int | None, what: str) -> SparseVector:
        features = self._call("joint_feature", i, self._X[i], y)
        return self._vector(i, features, n_features, what)

    def _vector(self, i: int, features: Any, n_features: int | None, what: str) -> SparseVector:
        try:
            return sparse_vector(features, n_features)
        except BadFeatures as error:
            raise self._error("joint_feature", i, f"returned {error} ({what})") from error

    def _loss(self, i: int, y_hat: Any) -> float:
        returned = self._call("loss", i, self._Y[i], y_hat)
        loss = returned if type(returned) is float else real_number(returned)
        if loss is None:
            raise self._error(
                "loss", i, f"returned an object of type {type(returned).__name__}; expected a float"
            )
        if not math.isfinite(loss):
            raise self._error("loss", i, f"returned {loss}; expected a finite number")
        if loss < -LOSS_TOLERANCE:
            raise self._error("loss", i, f"returned {loss}; expected at least 0")
        return max(loss, 0.0)

    def _require_no_loss(self, i: int, loss: float) -> None:
        if loss > LOSS_TOLERANCE:
            raise self._error(
                "loss", i, f"is {loss} for an output that equals the truth; expected 0"
            )

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
    return _tolerance(loss + first.absolute_dot(w) + second.absolute_dot(w))


def _tolerance(scale: float) -> float:
    return VALUE_TOLERANCE * scale + 1e-12


def _truth_plane() -> Plane:
    return np.empty(0, np.uint32), np.empty(0), 0.0, True
