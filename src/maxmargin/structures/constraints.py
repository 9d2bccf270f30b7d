"""`Constraints`: the general problem (1) of the dual-coordinate paper, constraint by constraint.

    min_w  ½‖w‖² + C Σ_i max(0, max_j l_ij - w·x_ij)

An example is a set of rows x_ij, each with the score l_ij that it shall have at least; what the
worst of them is short of is the slack ξ_i, which they share. l_ij may be negative. Binary and
multi-class problems, regression, ranking and structural problems whose outputs can be listed are of
this form (section 1 of the paper; ``docs/binary.md`` has examples).

Paper: Ramanan, "Dual coordinate solvers for large-scale structural SVMs", 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features.example_matrix import example_matrix
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import example_weights
from maxmargin.structures.native import PreparedProblem

__all__ = ["Constraints", "stacked_rows"]


class Constraints(Structure):
    """Examples that are sets of constraints ``w·x_ij >= l_ij - ξ_i``.

    Given to `StructuralSVM`, whose ``fit(X, L)`` takes for every example a matrix with a row x_ij
    for each constraint (an array, a sparse matrix or a list of rows; one row may be flat) and the
    numbers l_ij, as many. The weights of the trained model, ``weights_``, are w.

    ``predict(X)`` gives for every example the number of the row with the lowest score: the one
    that is closest to being violated where all l_ij are the same.

    Attributes
    ----------
    n_features : int or None
        Number of weights; None before anything was learned.

    Examples
    --------
    Two pages for each query, of which the first row minus the second shall have a score of at least
    one, is ranking:

    >>> from maxmargin import Constraints, StructuralSVM
    >>> X = [[[1.0, 0.0]], [[1.0, -1.0], [0.5, 1.0]]]
    >>> L = [[1.0], [1.0, 0.5]]
    >>> model = StructuralSVM(Constraints(), C=10.0, gap=1e-6, dtype="float64").fit(X, L)
    >>> model.weights_.round(3).tolist()
    [1.0, 0.0]
    """

    def __init__(self) -> None:
        self.n_features: int | None = None

    def __repr__(self) -> str:
        return "Constraints()"

    # --- learning what there is ---

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn the number of features.

        Parameters
        ----------
        X : list of matrices
            The rows x_ij of every example.
        Y : list of arrays
            Their l_ij.
        """
        self._set(stacked_rows(X, Y, None)[0].shape[1])

    def _set(self, n_features: int) -> None:
        self.n_features = int(n_features)

    def prepare_problem(
        self, X: Any, Y: Any, sample_weight: Any = None, *, dtype: Any = "float64"
    ) -> PreparedProblem:
        """Learn the number of features and make the training problem.

        Parameters
        ----------
        X, Y
            As for `prepare`.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        parts = self._truths(X, Y, sample_weight, None)
        problem = _native.ListedProblem(**parts)
        self._set(parts["n_features"])
        return PreparedProblem(problem, parts)

    def make_problem(self, X: Any, Y: Any, sample_weight: Any = None) -> _native.Problem:
        """Make a native problem of more examples with the same features.

        Parameters
        ----------
        X, Y, sample_weight
            As for `prepare_problem`.
        """
        return _native.ListedProblem(**self._truths(X, Y, sample_weight, self.n_features))

    @staticmethod
    def _truths(X: Any, Y: Any, sample_weight: Any, n_features: int | None) -> dict[str, Any]:
        import scipy.sparse

        matrix, losses, counts = stacked_rows(X, Y, n_features)
        n = len(counts)
        # The first output of an example stands for no violation: no features, no loss. The others
        # have the features -x_ij, so that their difference to it is x_ij.
        first = np.cumsum(counts + 1) - counts - 1  # rows of these references
        n_rows = int(counts.sum()) + n
        own = np.ones(n_rows, dtype=bool)
        own[first] = False
        lengths = np.zeros(n_rows, dtype=np.int64)
        rows = scipy.sparse.csr_array(matrix)
        rows.sort_indices()
        lengths[own] = np.diff(rows.indptr)
        loss = np.zeros(n_rows)
        loss[own] = losses
        return {
            "n_features": int(matrix.shape[1]),
            "offsets": np.concatenate([first, [n_rows]]).astype(np.int64),
            "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "indices": rows.indices.astype(np.uint32),
            "values": -np.asarray(rows.data, dtype=np.float64),
            "loss": loss,
            "example_weight": example_weights(sample_weight, n),
        }

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
        kind, n = weight_dtype(dtype), self._prepared()
        name = f"the weights ({n} features, {kind.name}, with a copy and the 8-byte certificate)"
        return name, n * (2 * kind.itemsize + 8)

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights, checked.

        Parameters
        ----------
        weights : array
            One for each feature.

        Returns
        -------
        array
            The same.
        """
        array, n = np.asarray(weights), self._prepared()
        if array.dtype not in (np.float32, np.float64) or array.shape != (n,):
            raise ValueError(
                f"the weights are {array.dtype} of the shape {array.shape}; expected {n}"
            )
        return array

    # --- scores ---

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[int]:
        """Return the number of the row with the lowest score.

        Parameters
        ----------
        X : list of matrices
            The rows of every example.
        weights : array
            The weights.
        n_jobs : int
            Not used.

        Returns
        -------
        list of int
            One number for each example, the first of several; -1 where it has no rows.
        """
        scores = self.scores(X, weights)
        return [int(np.argmin(own)) if len(own) else -1 for own in scores]

    def scores(self, X: Any, weights: Any) -> list[NDArray[np.float64]]:
        """Return w·x_ij of all rows.

        Parameters
        ----------
        X : list of matrices
            The rows of every example.
        weights : array
            The weights.

        Returns
        -------
        list of arrays
            As many numbers for each example as it has rows.
        """
        w = self.native_weights(weights).astype(np.float64, copy=False)
        matrix, _, counts = stacked_rows(X, None, len(w))
        return np.split(np.asarray(matrix @ w, dtype=np.float64), np.cumsum(counts)[:-1])

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return minus the score of one row of each example.

        Parameters
        ----------
        X, Y
            The rows of every example, and the number of one of them (-1: none, which has 0).
        weights : array
            The weights.
        n_jobs : int
            Not used.

        Returns
        -------
        array of shape (n_examples,)
            -w·x_ij: the higher, the closer to being violated.
        """
        scores = self.scores(X, weights)
        if len(Y) != len(scores):
            raise ValueError(f"X has {len(scores)} examples and Y has {len(Y)}; expected as many")
        found = np.zeros(len(scores))
        for i, (own, j) in enumerate(zip(scores, Y, strict=True)):
            if not (isinstance(j, int | np.integer) and -1 <= j < len(own)):
                raise ValueError(
                    f"Y: example {i} has {j!r}; expected a row from 0 to {len(own) - 1}, or -1"
                )
            found[i] = -own[j] if j >= 0 else 0.0
        return found

    def slacks(self, X: Any, Y: Any, weights: Any) -> NDArray[np.float64]:
        """Return ξ_i = max(0, max_j l_ij - w·x_ij).

        Parameters
        ----------
        X, Y
            As for `prepare`.
        weights : array
            The weights.

        Returns
        -------
        array of shape (n_examples,)
            The slacks.
        """
        w = self.native_weights(weights).astype(np.float64, copy=False)
        matrix, losses, counts = stacked_rows(X, Y, len(w))
        short = losses - np.asarray(matrix @ w, dtype=np.float64)
        found = np.zeros(len(counts))
        np.maximum.at(found, np.repeat(np.arange(len(counts)), counts), short)
        return found

    def _prepared(self) -> int:
        if self.n_features is None:
            raise NotCompatibleError(
                "Constraints knows no features yet: call prepare(X, Y) first, or fit an estimator"
            )
        return self.n_features

    # --- the protocol: one example, in Python; its truth are its l_ij, an output is a row ---

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return -x_j of row y; zeros for -1 and for the truth."""
        if not isinstance(y, int | np.integer) or y < 0:
            return np.zeros(self._prepared())
        matrix = _rows(x, 0, self._prepared())
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return -np.asarray(dense[int(y)], dtype=np.float64)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return l_j of row y_hat; 0 for -1 and for the truth."""
        if not isinstance(y_hat, int | np.integer) or y_hat < 0:
            return 0.0
        return float(_losses(y, 0)[int(y_hat)])

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> int:
        """Return the row with the lowest score; with the l_ij, the most violated one, or -1."""
        scores = np.asarray(_rows(x, 0, self._prepared()) @ np.asarray(w))
        if truth is None:
            return int(np.argmin(scores)) if len(scores) else -1
        short = _losses(truth, 0) - scores
        return int(np.argmax(short)) if len(short) and short.max() > 0 else -1

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that is to be known besides the weights."""
        return {"n_features": self._prepared()}, {}

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Constraints:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Constraints
            As it was.
        """
        n = meta["n_features"]
        if type(n) is not int or not 1 <= n < 2**32:
            raise ValueError("the number of features is not between 1 and 2^32 - 1")
        structure = cls()
        structure._set(n)
        return structure


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is a {type(values).__name__}; expected an entry for each example")
    return list(values)


def _rows(x: Any, i: int, n_features: int | None) -> Any:
    """Return the rows of one example as a matrix."""
    if not hasattr(x, "tocsr"):
        flat = isinstance(x, list | tuple | np.ndarray) and len(x) > 0 and np.ndim(x[0]) == 0
        x = [x] if flat else x
        if isinstance(x, list | tuple | np.ndarray) and len(x) == 0:
            return np.zeros((0, n_features or 0))
    try:
        return example_matrix(x, n_features)
    except (TypeError, ValueError) as error:
        raise type(error)(f"example {i}: {error}") from None


def _losses(losses: Any, i: int) -> NDArray[np.float64]:
    try:
        found = np.atleast_1d(np.asarray(losses, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"Y: example {i} has no numbers; expected one for each row") from None
    if found.ndim != 1:
        raise ValueError(f"Y: example {i} has the shape {found.shape}; expected a flat list")
    good = np.abs(found) <= _native.MAX_VALUE  # NaN is not
    if not good.all():
        j = int(np.argmin(good))
        raise ValueError(
            f"Y: example {i}, row {j} has {found[j]}; expected a finite number of at most 1e12"
        )
    return found


def stacked_rows(
    X: Any, Y: Any, n_features: int | None
) -> tuple[Any, NDArray[np.float64], NDArray[np.int64]]:
    """Return the rows of all examples as one matrix, their numbers, and how many each has.

    Parameters
    ----------
    X : iterable of matrices
        The rows of every example; one row may be flat.
    Y : iterable of arrays, or None
        A number for each row; None: no numbers.
    n_features : int or None
        Columns that there must be; None: those of the first example that has rows.

    Returns
    -------
    matrix : array or sparse array of shape (rows of all examples, n_features)
        The rows.
    numbers : array
        One for each row; empty without Y.
    counts : array of int
        How many rows each example has.
    """
    examples = _listed("X", X)
    if not examples:
        raise ValueError("X is empty; expected at least one example")
    blocks: list[Any] = []
    for i, x in enumerate(examples):
        block = _rows(x, i, n_features)
        if block.shape[0] > 0 and n_features is None:
            n_features = int(block.shape[1])
        blocks.append(block)
    if n_features is None:
        raise ValueError("no example of X has a row; expected at least one constraint")
    counts = np.array([block.shape[0] for block in blocks], dtype=np.int64)
    filled = [block for block in blocks if block.shape[0] > 0]
    if any(not isinstance(block, np.ndarray) for block in filled):
        import scipy.sparse

        matrix = scipy.sparse.csr_array(scipy.sparse.vstack(filled, format="csr"))
    else:
        matrix = np.vstack(filled) if filled else np.zeros((0, n_features))
    if Y is None:
        return matrix, np.zeros(0), counts
    targets = _listed("Y", Y)
    if len(targets) != len(examples):
        raise ValueError(
            f"X has {len(examples)} examples and Y has {len(targets)}; expected as many"
        )
    losses = [_losses(own, i) for i, own in enumerate(targets)]
    for i, (own, n) in enumerate(zip(losses, counts, strict=True)):
        if len(own) != n:
            raise ValueError(
                f"example {i} has {n} rows in X and {len(own)} numbers in Y; expected as many"
            )
    return matrix, np.concatenate(losses), counts
