"""LP: cutting planes for the L1-regularised structural SVM, by linear programs.

Problem (OP3 of the SAP paper; with ``L1(nonnegative=True)`` the linear program behind OP4)::

    min_w  ρ₁‖w‖₁ + C Σ_i ξ_i      s.t.  ξ_i >= 0,  w·Δf_i(y) >= l_i(y) - ξ_i      for all i, y

Algorithm: the cutting-plane method of Zhu, Xing and Zhang, "Primal Sparse Max-Margin Markov
Networks", KDD 2009, section 4.1. Each pass

1. solves the linear program over the planes found so far, with w = p - q, p, q >= 0, by HiGHS;
2. asks the oracle for each example's most violated output under that w, and keeps it if it violates
   its constraint by more than ``epsilon``.

The relaxed program bounds the true one from below, and its multipliers give the bound of the
certificate. SciPy's HiGHS starts every program anew, so this is for small problems and for checking
other solvers, as the papers found too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, check_not_negative
from maxmargin.regularizers import L1, Regularizer
from maxmargin.solvers.cuts import CutMachine, CutSolver

__all__ = ["LP"]

METHODS = ("highs", "highs-ds", "highs-ipm")


@dataclass(frozen=True)
class LP(CutSolver):
    """Cutting planes and linear programs.

    Parameters
    ----------
    epsilon : float
        A plane is kept if it violates its constraint by more than this.
    method : {"highs", "highs-ds", "highs-ipm"}
        Which of HiGHS's methods: its choice, the dual simplex, or the interior-point method.
    """

    name: ClassVar[str] = "lp"
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (L1,)

    epsilon: float = 1e-6
    method: str = "highs"

    def __post_init__(self) -> None:
        check_not_negative(self, "epsilon")
        check_choice("method", self.method, METHODS)

    def done(self, added: int) -> bool:
        """Without new planes the program would be the same."""
        return added == 0

    def improve(
        self, machine: CutMachine, seconds: float | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Solve over the planes kept; return the weights of the columns and the multipliers."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix, hstack

        regularizer = machine.regularizer
        assert isinstance(regularizer, L1)
        owners, place = np.unique(machine.example, return_inverse=True)
        n, d = machine.rows.shape
        slack = csr_matrix((np.ones(n), (np.arange(n), place)), shape=(n, len(owners)))
        signs = [machine.rows] if regularizer.nonnegative else [machine.rows, -machine.rows]
        matrix = -hstack([*signs, slack], format="csr")
        weight = np.full(len(signs) * d, regularizer.rho1)
        cost = np.concatenate([weight, machine.C * machine.share[owners]])
        limit = {} if seconds is None else {"time_limit": max(seconds, 0.01)}
        found = linprog(
            cost, A_ub=matrix, b_ub=-machine.loss, method=self.method, options=limit
        )
        machine.solved = found.status != 1
        if not machine.solved:  # out of time: what there was
            return np.asarray(machine.weights[machine.columns]), machine.alpha
        if found.status != 0:
            raise FloatingPointError(
                f"HiGHS did not solve the linear program: {found.message}. Features of very large "
                "size? Scale them"
            )
        w = found.x[:d].copy()
        if not regularizer.nonnegative:
            w -= found.x[d : 2 * d]
        return w, -found.ineqlin.marginals
