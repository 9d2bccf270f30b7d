"""A structure in other coordinates of the weights: ŵ = w R, for priors with a full precision.

The scores are the same, w·f(x, y) = ŵ·(R⁻¹ f(x, y)), so outputs, losses and the answers of argmax
are those of the structure itself. Joint features become dense, and every call solves a triangular
system: this is for small structures. (Section 7 of the paper on dual coordinate solvers; R is the
lower triangular root of the precision P = R Rᵀ.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.structures.base import Structure
from maxmargin.structures.duck import offers
from maxmargin.structures.vectors import sparse_vector

__all__ = ["Transformed"]


class Transformed(Structure):
    """A prepared structure whose weights are ŵ = w R.

    Parameters
    ----------
    structure : Structure
        Prepared.
    root : array of shape (d, d)
        R, lower triangular with a positive diagonal.
    """

    def __init__(self, structure: Structure, root: NDArray[np.float64]) -> None:
        self.inner = structure
        self.root = root
        self.n_features = len(root)
        self.equal = structure.equal  # type: ignore[method-assign]
        self.encode = structure.encode  # type: ignore[method-assign]
        self.true_output = structure.true_output  # type: ignore[method-assign]
        if offers(structure, "outputs"):  # training asks which of these a structure has
            self.outputs = structure.outputs  # type: ignore[method-assign]
        if offers(structure, "argmax"):
            self.argmax = self._argmax  # type: ignore[method-assign]
        if offers(structure, "best_by_loss"):
            self.best_by_loss = self._best_by_loss  # type: ignore[method-assign]

    def original(self, w: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weights w = ŵ R⁻¹ of the structure itself.

        Parameters
        ----------
        w : array of shape (d,)
            ŵ.

        Returns
        -------
        array of shape (d,)
            The weights.
        """
        from scipy.linalg import solve_triangular

        found: NDArray[np.float64] = solve_triangular(
            self.root, np.asarray(w, dtype=np.float64), lower=True, trans="T", check_finite=False
        )
        return found

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return R⁻¹ f(x, y)."""
        from scipy.linalg import solve_triangular

        vector = sparse_vector(self.inner.joint_feature(x, y), len(self.root))
        dense = np.zeros(len(self.root))
        dense[vector.indices] = vector.values
        found: NDArray[np.float64] = solve_triangular(self.root, dense, lower=True)
        return found

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of the structure."""
        return self.inner.loss(y, y_hat)

    def _argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        if truth is None:
            return self.inner.argmax(x, self.original(w))
        return self.inner.argmax(x, self.original(w), truth=truth)

    def _best_by_loss(self, x: Any, w: NDArray[np.float64], truth: Any) -> Any:
        return self.inner.best_by_loss(x, self.original(w), truth)
