"""Rows of which the best counts: the latent SVM of section 1.4 of the dual-coordinate paper.

An example is a set of rows φ(x, z), one for each value z of its latent variable (places of a
window, sentences of a review, conformations of a molecule), and its score is that of the best row,
max_z w·φ(x, z). With y = ±1 the objective is

    ½‖w‖² + C Σ_{y_i = +1} max(0, 1 - max_z w·φ(x_i, z))
          + C Σ_{y_i = -1} max(0, 1 + max_z w·φ(x_i, z)).

It is the latent structural SVM whose outputs are (+1, z), with the features φ(x, z), and -1, with
none, at a loss of 1 for the wrong sign: the first hinge is max(1, max_z w·φ) - max_z w·φ. So the
outputs of a negative example are -1, its reference, and all rows at a loss of **+1** ((12) as
(-φ)·w ≥ 1 - ξ; the l = -1 that the paper prints is a slip); those of a positive one are its rows at
no loss, one of which is the reference, and -1 at a loss of 1. All are listed
(``native/listed.hpp``).

The paper's convex step keeps of a positive example the imputed row alone, with the slack
max(0, 1 - w·φ(x_i, z_i)); here it is max(1, max_z w·φ) - w·φ(x_i, z_i), as in Yu and Joachims. Both
touch the objective where z_i is the best row, so that they have the same objective and the same
guarantee; with the latter, planes and multipliers do not depend on z_i and stay when it changes.

Paper: Ramanan, "Dual coordinate solvers for large-scale structural SVMs", 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.errors import NotCompatibleError
from maxmargin.memory import require_memory
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import (
    classes_from_meta,
    classes_to_meta,
    encode_classes,
    example_weights,
)
from maxmargin.structures.constraints import stacked_rows
from maxmargin.structures.latent import LatentTraining
from maxmargin.structures.native import PreparedProblem
from maxmargin.structures.ragged import EXAMPLE, Schema

__all__ = ["BAGS", "LatentRows"]

#: Sets of rows as flat arrays.
BAGS = Schema(
    {"offsets": (EXAMPLE, "row"), "indptr": ("row", "entry")},
    {
        "indices": "entry",
        "values": "entry",
        "positive": EXAMPLE,
        "chosen": EXAMPLE,
        "example_weight": EXAMPLE,
    },
    counted_by="offsets",
)


class LatentRows:
    """Sets of rows with a binary label.

    Parameters
    ----------
    bias : float
        Value of one more feature that all rows have; 0 for none.

    Attributes
    ----------
    classes_ : list
        The negative and the positive class.
    n_columns_ : int
        Number of features, without the bias.
    """

    def __init__(self, bias: float = 1.0) -> None:
        self.bias = bias
        self.classes_: list[Any] = []
        self.n_columns_ = 0

    def __repr__(self) -> str:
        return f"LatentRows(bias={self.bias!r})"

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return self.n_columns_ + (self.bias != 0)

    def prepare_training(
        self,
        X: Any,
        y: Any,
        *,
        start: str,
        rng: np.random.Generator,
        dtype: str,
        sample_weight: Any = None,
    ) -> LatentTraining:
        """Choose a reference row of each positive example and make the training problem.

        Parameters
        ----------
        X : list of matrices, or array of shape (n, rows, features)
            The rows of every example; at least one each.
        y : sequence
            Labels of two classes, of which the second in sorted order is the positive one.
        start : {"first", "random"}
            The row that the first convex step takes for the best of a positive example.
        rng : numpy.random.Generator
            For "random".
        dtype : "float32" or "float64"
            Type of the weights.
        sample_weight : array or None
            A factor of C for each example.

        Returns
        -------
        LatentTraining
            The problem, and what imputes.
        """
        parts = self.first_bags(X, y, sample_weight, start=start, rng=rng)
        problem = self.bags_problem(parts)
        kind = weight_dtype(dtype)
        require_memory(
            f"the weights ({self.n_features} features, with a copy and the certificate)",
            self.n_features * (2 * kind.itemsize + 8),
        )
        prepared = PreparedProblem(problem, {**parts, "n_weights": self.n_features})
        factors, groups = parts["example_weight"], parts["positive"].astype(np.intp)
        return LatentTraining(prepared, _native.Imputer(problem), kind.name, factors, groups)

    def first_bags(
        self, X: Any, y: Any, sample_weight: Any, *, start: str, rng: np.random.Generator | None
    ) -> dict[str, Any]:
        """Learn classes and features, and choose a reference row of each positive example.

        Parameters
        ----------
        X, y, sample_weight, start, rng
            As for `prepare_training`. Classes that are known already (`classes_`) stay.

        Returns
        -------
        dict
            The arrays of `BAGS`.
        """
        check_choice("start", start, ("first", "random"))
        rows, counts = self._rows(X, None)
        codes, classes = encode_classes(y, self.classes_ or None)
        if len(classes) != 2:
            shown = ", ".join(map(repr, classes[:5]))
            raise ValueError(
                f"y has {len(classes)} classes ({shown}); expected two: a latent SVM tells one "
                "class from another"
            )
        bags = _bags(rows, counts, codes, sample_weight)
        if start == "random":
            bags["chosen"] = np.random.default_rng(rng).integers(counts)
        self.classes_ = classes
        self.n_columns_ = int(rows.shape[1]) - (self.bias != 0)
        return bags

    def bags(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """Return more examples, by what is known.

        Parameters
        ----------
        X, y, sample_weight
            As for `prepare_training`.
        """
        rows, counts = self._rows(X, self.n_columns_)
        return _bags(rows, counts, encode_classes(y, self.classes_)[0], sample_weight)

    def bags_problem(self, bags: dict[str, Any]) -> _native.Problem:
        """Return the training problem; weights of examples are those of the arrays, no copy.

        Parameters
        ----------
        bags : dict
            The arrays of `BAGS`.
        """
        rows, counts = self._matrix(bags), np.diff(bags["offsets"])
        parts = _listing(rows, counts, bags["positive"], bags["chosen"])
        return _native.ListedProblem(**parts, example_weight=bags["example_weight"])

    def best_rows(self, bags: dict[str, Any], weights: NDArray[Any]) -> dict[str, Any]:
        """Return the same examples with the best rows of the positive ones as references.

        Parameters
        ----------
        bags : dict
            The arrays of `BAGS`.
        weights : array
            The weights.
        """
        scores = np.asarray(self._matrix(bags) @ weights.astype(np.float64))
        own = np.split(scores, bags["offsets"][1:-1])
        best = np.array([int(np.argmax(each)) for each in own], dtype=np.int64)
        return {**bags, "chosen": np.where(bags["positive"], best, 0)}

    def _matrix(self, bags: dict[str, Any]) -> Any:
        import scipy.sparse

        shape = (len(bags["indptr"]) - 1, self.n_features)
        parts = (bags["values"], bags["indices"], bags["indptr"])
        return scipy.sparse.csr_array(parts, shape=shape)

    def _rows(self, X: Any, n_columns: int | None) -> tuple[Any, NDArray[np.int64]]:
        """Return the rows of all examples as one sparse matrix with the bias, and how many."""
        import scipy.sparse

        matrix, _, counts = stacked_rows(X, None, n_columns)
        if (counts == 0).any():
            i = int(np.argmin(counts))
            raise ValueError(
                f"X: example {i} has no rows: its latent space is empty; expected at least one"
            )
        rows = scipy.sparse.csr_array(matrix)
        if self.bias != 0:
            ones = scipy.sparse.csr_array(np.full((rows.shape[0], 1), float(self.bias)))
            rows = scipy.sparse.csr_array(scipy.sparse.hstack([rows, ones], format="csr"))
        rows.sort_indices()
        return rows, counts

    # --- predictions ---

    def scores(self, X: Any, weights: Any) -> list[NDArray[np.float64]]:
        """Return w·φ(x, z) of all rows of every example."""
        if not self.classes_:
            raise NotCompatibleError("LatentRows knows no data yet: fit an estimator first")
        rows, counts = self._rows(X, self.n_columns_)
        found = np.asarray(rows @ self.native_weights(weights).astype(np.float64))
        return np.split(found, np.cumsum(counts)[:-1])

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights, checked."""
        array = np.asarray(weights)
        if array.dtype not in (np.float32, np.float64) or array.shape != (self.n_features,):
            raise ValueError(
                f"the weights are {array.dtype} of the shape {array.shape}; expected "
                f"{self.n_features}"
            )
        return array

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        meta = {
            "classes": classes_to_meta(self.classes_),
            "n_columns": self.n_columns_,
            "bias": float(self.bias),
        }
        return meta, {}

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LatentRows:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        LatentRows
            Ready to predict.
        """
        n, bias = meta["n_columns"], meta["bias"]
        if type(n) is not int or not 0 <= n < 2**32 - 1:
            raise ValueError("the number of features is not between 0 and 2^32 - 2")
        if type(bias) is not float or not 0 <= bias <= _native.MAX_VALUE:
            raise ValueError("the bias is not a number from 0 to 1e12")
        structure = cls(bias)
        structure.classes_ = classes_from_meta(meta["classes"])
        structure.n_columns_ = n
        if len(structure.classes_) != 2 or structure.n_features == 0:
            raise ValueError("there are not two classes, or there is no feature")
        return structure


def _bags(
    rows: Any, counts: NDArray[np.int64], codes: NDArray[Any], sample_weight: Any
) -> dict[str, Any]:
    """Return examples as the arrays of `BAGS`, the first rows as references."""
    if len(counts) != len(codes):
        raise ValueError(
            f"X has {len(counts)} examples and y has {len(codes)} labels; expected as many"
        )
    factors = example_weights(sample_weight, len(codes))
    return {
        "offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "indptr": rows.indptr.astype(np.int64),
        "indices": rows.indices.astype(np.uint32),
        "values": np.asarray(rows.data, dtype=np.float64),
        "positive": codes == 1,
        "chosen": np.zeros(len(codes), np.int64),
        # A copy, which may be changed: those of the self-paced order are.
        "example_weight": np.ones(len(codes)) if factors is None else factors.copy(),
    }


def _listing(
    rows: Any, counts: NDArray[np.int64], positive: NDArray[np.bool_], chosen: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the outputs of all examples, references first, as ``_native.ListedProblem`` has them.

    Of a negative example that is -1, with no features, and its rows; of a positive one the chosen
    row, the other rows, and -1.
    """
    n = len(counts)
    total = int(counts.sum()) + n
    offsets = np.concatenate([[0], np.cumsum(counts + 1)]).astype(np.int64)
    before = np.cumsum(counts) - counts  # rows of earlier examples
    source = np.full(total, -1, dtype=np.int64)  # the row of each output; -1: none
    example = np.repeat(np.arange(n), counts)
    within = np.arange(len(example)) - before[example]
    # A positive example's rows stand from place 0 on, with the chosen one and the first exchanged.
    place = np.where(positive[example], within, within + 1)
    source[offsets[example] + place] = before[example] + within
    swapped = np.flatnonzero(positive & (chosen > 0))
    source[offsets[swapped]] = before[swapped] + chosen[swapped]
    source[offsets[swapped] + chosen[swapped]] = before[swapped]
    loss = np.zeros(total)
    owner = np.repeat(np.arange(n), counts + 1)
    loss[positive[owner] == (source < 0)] = 1.0
    # (A positive example has a loss where there is no row, a negative one where there is.)
    lengths = np.zeros(total, dtype=np.int64)
    has = source >= 0
    taken = rows[source[has]]
    lengths[has] = np.diff(taken.indptr)
    return {
        "n_features": int(rows.shape[1]),
        "offsets": offsets,
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "indices": taken.indices.astype(np.uint32),
        "values": np.asarray(taken.data, dtype=np.float64),
        "loss": loss,
    }
