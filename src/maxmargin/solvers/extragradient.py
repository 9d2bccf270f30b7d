"""ExtraGradient: the saddle point of the L1-regularised structural SVM with weights >= 0.

Problem (OP4 of the SAP paper)::

    min_{w>=0}  max_α  ρ₁ 1'w + Σ_i Σ_y α_i(y) [l_i(y) - w·Δf_i(y)]    s.t. α >= 0, Σ_y α_i(y) <= C

(the slacks ξ_i >= 0 are the multipliers of Σ_y α_i(y) <= C). Algorithm: Wang and Shawe-Taylor,
"Large-Margin Structured Prediction via Linear Programming", AISTATS 2009. Column generation: each
pass asks the oracle for each example's most violated output, and then improves (w, α) over the
outputs found so far by ``inner`` extra-gradient steps

    predict   w̄ = [w - η (ρ₁ - Σ α Δf)]₊         ᾱ = Π[α + η (l - w·Δf)]
    correct   w  = [w - η (ρ₁ - Σ ᾱ Δf)]₊         α  = Π[α + η (l - w̄·Δf)]

with Π the projection of each example's block. η is below 1/‖Δf‖₂, found by power iteration. The
paper took the 0/1 loss; here l is the structure's own.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_not_negative, check_whole_attributes
from maxmargin.regularizers import L1, Regularizer
from maxmargin.solvers.cuts import CutMachine, CutSolver

__all__ = ["ExtraGradient", "project_blocks"]


@dataclass(frozen=True)
class ExtraGradient(CutSolver):
    """Extra-gradient steps with column generation, for ``L1(nonnegative=True)``.

    Parameters
    ----------
    inner : int
        Extra-gradient steps in one pass.
    epsilon : float
        An output is kept if it violates its constraint by more than this.
    shorten : float
        η as a share of 1/‖Δf‖₂; below 1.
    """

    name: ClassVar[str] = "extragradient"
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (L1,)

    inner: int = 200
    epsilon: float = 1e-6
    shorten: float = 0.9

    def __post_init__(self) -> None:
        check_whole_attributes(self, inner=1)
        check_not_negative(self, "epsilon")
        if not 0 < self.shorten < 1:
            raise ValueError(f"shorten must lie between 0 and 1, got {self.shorten!r}")

    @classmethod
    def supports(cls, regularizer: Regularizer) -> bool:
        """Only L1 with weights that are not negative (OP4)."""
        return isinstance(regularizer, L1) and regularizer.nonnegative

    @classmethod
    def supported_regularizers(cls) -> str:
        """Return the one that it can do."""
        return "L1(nonnegative=True)"

    def improve(
        self, machine: CutMachine, seconds: float | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Make ``inner`` extra-gradient steps, or fewer if time is up."""
        end = math.inf if seconds is None else time.perf_counter() + seconds
        regularizer = machine.regularizer
        assert isinstance(regularizer, L1)
        rows, columns = machine.rows, machine.rows.T.tocsr()
        eta = self.shorten / max(_norm(rows, columns), 1e-300)
        caps = machine.C * machine.share
        # Planes of one example side by side, which is how blocks are projected.
        order = np.argsort(machine.example, kind="stable")
        owner = machine.example[order]

        def ascend(alpha: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
            moved: NDArray[Any] = alpha + eta * (machine.loss - rows @ w)
            moved[order] = project_blocks(moved[order], owner, caps)
            return moved

        def descend(w: NDArray[Any], alpha: NDArray[Any]) -> NDArray[Any]:
            return np.maximum(w - eta * (regularizer.rho1 - columns @ alpha), 0)  # type: ignore[no-any-return]

        w, alpha = np.asarray(machine.weights[machine.columns]), machine.alpha
        for _ in range(self.inner):
            if time.perf_counter() > end:
                break
            w_ahead, alpha_ahead = descend(w, alpha), ascend(alpha, w)
            w, alpha = descend(w, alpha_ahead), ascend(alpha, w_ahead)
        return w, alpha


def project_blocks(
    values: NDArray[np.float64], owner: NDArray[np.int64], caps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the nearest point with entries >= 0 whose blocks sum to at most their caps.

    Parameters
    ----------
    values : array of shape (m,)
        The point.
    owner : int array of shape (m,)
        The block of each entry, ascending.
    caps : array
        The largest sum of each block.

    Returns
    -------
    array of shape (m,)
        The projection.
    """
    clipped: NDArray[np.float64] = np.maximum(values, 0)
    if len(values) == 0:
        return clipped
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    size = np.diff(np.r_[first, len(values)])
    block = np.repeat(np.arange(len(first)), size)
    cap = caps[owner[first]]
    over = np.add.reduceat(clipped, first) > cap
    if not over.any():
        return clipped
    # As for one simplex: sort descending, θ = (the sum of the k largest - cap) / k for the last k
    # whose entry stays above it; here for all blocks at once.
    order = np.lexsort((-values, block))
    ordered = values[order]
    total = np.cumsum(ordered)
    total -= np.repeat(total[first] - ordered[first], size)
    rank = np.arange(len(values)) - np.repeat(first, size) + 1
    theta = (total - np.repeat(cap, size)) / rank
    stays = ordered > theta
    last = first + np.maximum(np.add.reduceat(stays, first) - 1, 0)
    threshold = np.where(over, theta[last], 0.0)
    clipped = np.maximum(values - np.repeat(threshold, size), 0)
    return clipped


def _norm(rows: Any, columns: Any, steps: int = 30) -> float:
    """Return the largest singular value of a matrix, a little too large."""
    v = np.random.default_rng(0).random(rows.shape[1]) + 0.1
    size = 0.0
    for _ in range(steps):
        v /= np.linalg.norm(v)
        v = columns @ (rows @ v)
        size = float(np.linalg.norm(v))
        if size == 0:
            return 0.0
    return 1.05 * math.sqrt(size)
