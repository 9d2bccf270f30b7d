"""Gaussian priors: ½ (w - m)ᵀ P (w - m), section 7 of the paper on dual coordinate solvers.

With a diagonal P the link is w = m + u / p, weight by weight. With a full matrix P = R Rᵀ the
paper's change of variables ŵ = w R makes of it a prior of mean m R and precision 1, on features
R⁻¹ f; the weights are w = ŵ R⁻¹ (``docs/errata.md`` on (46)). The offset m stays with the link, so
that losses need not change. Estimators make that change (``structures/transformed.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import is_real
from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers.base import (
    ArrayRegularizer,
    BoundRegularizer,
    Regularizer,
    WeightLayout,
)
from maxmargin.regularizers.penalties import L2

__all__ = ["MAX_FULL", "GaussianPrior"]

#: The most weights for which a full precision matrix is taken.
MAX_FULL = 2000


@dataclass(frozen=True, eq=False, repr=False)
class GaussianPrior(ArrayRegularizer):
    """½ Σ_k p_k (w_k - m_k)²: weights are held near a mean, each as strongly as its precision says.

    Parameters
    ----------
    mean : float or array of shape (n_features,)
        m, one for all weights or one for each, in the layout of the structure (that of
        ``joint_feature``; for a `Chain` also that of ``weights_``).
    precision : float, array of shape (n_features,), or matrix of shape (n_features, n_features)
        p, above 0; infinity holds a weight at its mean. A symmetric positive definite matrix P
        stands for ½ (w - m)ᵀ P (w - m); that is for structures of at most 2000 weights, whose
        methods are then called from Python.

    Examples
    --------
    >>> prior = GaussianPrior(np.array([1.0, 0.0]), precision=4.0)
    >>> prior.link.weights(np.array([2.0, 2.0]))
    array([1.5, 0.5])
    """

    mean: Any = 0.0
    precision: Any = 1.0

    def __post_init__(self) -> None:
        mean, precision = _array("mean", self.mean, 1), _array("precision", self.precision, 2)
        good = np.isfinite(mean)
        if not good.all():
            raise ValueError(f"mean has an entry that is not finite: {_first(mean, ~good)}")
        if precision.ndim == 2:
            _check_matrix(precision)
        elif not (good := precision > 0).all():  # NaN is not either
            raise ValueError(f"precision must be above 0, got {_first(precision, ~good)}")
        if mean.ndim and precision.ndim and len(mean) != len(precision):
            raise ValueError(f"mean has {len(mean)} entries and precision has {len(precision)}")
        for name, value in (("mean", mean), ("precision", precision)):
            object.__setattr__(self, name, value if value.ndim else float(value))

    @property
    def full(self) -> bool:
        """Whether the precision is a matrix."""
        return np.ndim(self.precision) == 2

    @property
    def link(self) -> Link:
        """The offset m and the scale 1 / p; arrays are taken as they are, in the native layout."""
        if self.full:
            raise NotCompatibleError(
                f"{self} has a matrix as its precision, which needs a change of variables that "
                "only StructuralSVM and the other estimators make; give them this regulariser"
            )
        return Link(offset=self.mean, scale=_inverse(self.precision))

    def penalty(self, weights: NDArray[Any]) -> float:
        """Return ½ (w - m)ᵀ P (w - m)."""
        if not self.full:
            return self.link.penalty(weights)
        d = weights.astype(np.float64, copy=False) - self.mean
        return 0.5 * float(d @ self.precision @ d)

    def bound(self, layout: WeightLayout) -> Regularizer:
        """Return it with arrays in the native layout; see `Regularizer.bound`."""
        plain = np.ndim(self.mean) == 0 and np.ndim(self.precision) == 0
        if self.full or (plain and not self.mean):
            return self
        fields = {}
        for name, value in (("mean", self.mean), ("precision", self.precision)):
            array = np.asarray(value)
            each = layout.plain(array, name) if array.ndim else np.full(layout.size, float(array))
            fields[name] = each
        offset, scale = layout.native(fields["mean"]), layout.native(_inverse(fields["precision"]))
        return BoundRegularizer(self, Link(offset=offset, scale=scale))

    def root(self) -> NDArray[np.float64]:
        """Return R, lower triangular, of the precision matrix P = R Rᵀ.

        Raises
        ------
        ValueError
            If the matrix is not positive definite.
        """
        try:
            root: NDArray[np.float64] = np.linalg.cholesky(self.precision)
        except np.linalg.LinAlgError as error:
            raise ValueError("precision is a matrix that is not positive definite") from error
        return root

    def transformed(self, root: NDArray[np.float64]) -> Regularizer:
        """Return the regulariser of ŵ = w R: of mean m R and precision 1.

        Parameters
        ----------
        root : array
            R, of `root`.

        Returns
        -------
        Regularizer
            For the transformed problem.
        """
        mean = np.broadcast_to(np.asarray(self.mean, np.float64), len(root)) @ root
        if not mean.any():
            return L2()
        return BoundRegularizer(self, Link(offset=mean))


def _first(values: NDArray[np.float64], bad: NDArray[np.bool_]) -> str:
    """Return the first bad entry for a message, with its place if there are several."""
    if values.ndim == 0:
        return f"{float(values)}"
    k = int(np.argmax(bad))
    return f"{values[k]} (entry {k})"


def _array(name: str, value: Any, most_dimensions: int) -> NDArray[np.float64]:
    if not is_real(value):
        kind = np.asarray(value)
        if kind.dtype.kind not in "iuf" or not 1 <= kind.ndim <= most_dimensions:
            wanted = "a number or an array of one dimension"
            if most_dimensions == 2:
                wanted = "a number, an array of one dimension or a matrix"
            raise TypeError(f"{name} must be {wanted}, got {value!r:.80}")
    return np.array(value, dtype=np.float64)


def _check_matrix(matrix: NDArray[np.float64]) -> None:
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"precision is a matrix of {rows} x {columns}; expected a square one")
    if rows > MAX_FULL:
        raise NotCompatibleError(
            f"precision is a matrix for {rows} weights; full matrices are for at most {MAX_FULL} "
            "weights. Give its diagonal, an array"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("precision is a matrix with an entry that is not finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise ValueError("precision is a matrix that is not symmetric")


def _inverse(precision: Any) -> Any:
    """Return 1 / p; 0 of infinity."""
    if np.ndim(precision) == 0:
        return 0.0 if math.isinf(precision) else 1.0 / precision
    return 1.0 / precision
