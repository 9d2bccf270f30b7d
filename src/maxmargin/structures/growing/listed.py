"""Examples that are kept as they came, and encoded again whenever chunks are merged.

For structures whose inputs are not flat arrays: trees, alignments, constraints, and a user's own.
What the structure learned from the first examples (the rules of a grammar, the alphabet, the
relations, the number of features) is fixed; an example that needs more is refused, with its place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.structures.adapter import PythonProblem, paired_examples
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.constraints import Constraints
from maxmargin.structures.dependency import DependencyTree
from maxmargin.structures.grammar import Grammar
from maxmargin.structures.growing.base import Change, Growing
from maxmargin.structures.treebank import Treebank

__all__ = ["KINDS", "GrowingListed", "GrowingPython", "Listed"]


class Listed(NamedTuple):
    """Examples as they came.

    Attributes
    ----------
    X, Y : list
        Inputs and outputs.
    weights : float64 array or None
        Factors of C.
    """

    X: list[Any]
    Y: list[Any]
    weights: NDArray[np.float64] | None


#: Structures that make a problem of examples by what they know (``make_problem``).
KINDS: tuple[type, ...] = (Grammar, Treebank, DependencyTree, Alignment, Constraints)


class GrowingListed(Growing):
    """Examples of a native structure that are kept as they came; see `Growing`."""

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Listed:
        """Let the structure learn from the first examples."""
        self.structure.prepare_problem(X, Y, **fit_params, dtype=self.dtype)
        return self.listed(X, Y, fit_params)

    def adopt(self, parts: Any) -> tuple[Listed, None]:
        """Go on from what ``fit`` was given."""
        return self.listed(*parts), None

    def more(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> tuple[Listed, Change | None]:
        """Take examples in."""
        data = self.listed(X, Y, fit_params)
        self.problem(data)  # which says what is wrong with them
        return data, None

    def listed(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Listed:
        """Return examples as lists of their own, which nobody else changes.

        Parameters
        ----------
        X, Y, fit_params
            As in `first`.
        """
        if Y is None:
            raise ValueError("y is None; expected an output for each input")
        # Trees without sentences: the words are their leaves.
        inputs = self.structure.trees(Y) if X is None else list(X)
        truths = list(Y)
        if len(inputs) != len(truths):
            raise ValueError(
                f"X has {len(inputs)} examples and y has {len(truths)}; expected as many"
            )
        if not inputs:
            raise ValueError("X is empty; expected at least one example")
        weights = fit_params.get("sample_weight")
        if weights is not None:
            weights = np.array(weights, dtype=np.float64)
            if weights.shape != (len(inputs),):
                raise ValueError(
                    f"sample_weight has the shape {weights.shape}; expected ({len(inputs)},), one "
                    "number for each example"
                )
        return Listed(copy.deepcopy(inputs), copy.deepcopy(truths), weights)

    def problem(self, data: Listed) -> _native.Problem:
        """Return examples as a native problem."""
        return self.structure.make_problem(data.X, data.Y, data.weights)  # type: ignore[no-any-return]

    def join(self, several: list[Listed]) -> Listed:
        """Return examples one behind the other."""
        weights = None
        if any(data.weights is not None for data in several):
            weights = np.concatenate(
                [np.ones(len(d.X)) if d.weights is None else d.weights for d in several]
            )
        return Listed(
            [x for data in several for x in data.X],
            [y for data in several for y in data.Y],
            weights,
        )

    def take(self, data: Listed, examples: NDArray[Any]) -> Listed:
        """Return some of the examples."""
        chosen = examples.tolist()
        return Listed(
            [data.X[k] for k in chosen],
            [data.Y[k] for k in chosen],
            None if data.weights is None else data.weights[examples],
        )

    def count(self, data: Listed) -> int:
        """Return the number of examples."""
        return len(data.X)


class GrowingPython(GrowingListed):
    """Examples of a user's structure; see `Growing`."""

    _n_weights: int | None = None

    @property
    def n_weights(self) -> int:
        """Number of features, as the first feature vector told it."""
        return self._n_weights or 0

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Listed:
        """Prepare the structure with the first examples."""
        data = self.listed(*paired_examples(X, Y), fit_params)
        self.structure.prepare(data.X, data.Y)
        self.problem(data)
        return data

    def problem(self, data: Listed) -> _native.Problem:
        """Return examples as a problem whose oracle is in Python."""
        adapter = PythonProblem(
            self.structure,
            *paired_examples(data.X, data.Y),
            self._n_weights,
            example_weight=data.weights,
        )
        self._n_weights = adapter.n_weights
        return _native.PythonProblem(adapter)
