"""Algorithm 1 of the transductive paper's appendix: cutting planes with three slacks.

    min  ½‖w‖² + C₂μ/(2m) Σ_j ‖v_j‖² + C₁ ξ₁ + C₂ ξ₂ + C₂ ξ₃ - C₂ w·q - C₂μ/(2m) Σ_j v_j·p_j    (22)

with ξ₁ >= the mean hinge of the labelled sequences (18), ξ₂ >= the mean of (14) over the unlabelled
ones (19), ξ₃ >= Γ(v) (20). Line numbers below are those of Algorithm 1, with the corrections of the
errata: the sign of Σ γ f in (25), the 1/m of d in (27), the CCCP constant in D, and the guard of the
inner loop (a cut is violated).

v_j is not kept: it is (25), a linear combination of the cuts, computed when a cut is made. Cuts of
ξ₂ are kept as φ of their labellings; cuts of ξ₃ as slopes of the terms of Γ where Γ is a sum of
intervals (one number for an average over the sample, which all sequences share), as a subgradient
otherwise. Cuts whose multipliers are zero for a while are dropped.

Any Γ with a value and a subgradient will do.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.constraints.gamma import Gamma, IntervalGamma
from maxmargin.solvers.cccp import CCCPResult
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import History
from maxmargin.solvers.outer import OuterHistory, OuterRecord
from maxmargin.structures.transduction import Transduction, TransductiveData

if TYPE_CHECKING:
    from maxmargin.solvers.transductive import TransductiveResult, TransductiveSVM

__all__ = ["ThreeSlack", "train_three_slack"]

Vector = NDArray[np.float64]
#: A cut whose multiplier was zero in so many programs in a row is dropped.
IDLE = 15
LABELLED, UNLABELLED, GAMMA = 0, 1, 2


@dataclass(eq=False)
class _Cut:
    """One cutting plane: slack >= constant + w·slope - ..., by its two halves.

    The dual has w = Σ α g + ..., v' = Σ α h + ...; `w` and `v` are these g and h.
    """

    kind: int
    constant: float
    w: Vector | None  # g of (26) or h of (27): minus the slope in w
    v: NDArray[Any] | None  # minus the slope in v, or slopes of the terms of Γ (`terms`)
    terms: bool = False
    alpha: float = 0.0
    idle: int = 0
    gram: list[float] = field(default_factory=list)


class ThreeSlack:
    """The convex step (22) by cutting planes, with its cuts kept from step to step.

    Parameters
    ----------
    objective : Transduction
        (13), for its inference and features.
    gamma : Gamma
        The Γ; any.
    epsilon : float
        ε₁ = ε₂ = ε₃, as a share of the slacks.
    threads : int
        Threads of inference.
    """

    def __init__(self, objective: Transduction, gamma: Gamma, epsilon: float, threads: int) -> None:
        self.o, self.gamma, self.epsilon, self.threads = objective, gamma, epsilon, threads
        data = objective.data
        self.m, self.n = data.n_unlabelled, max(data.n_labelled, 1)
        self.scale = objective.scale  # m / (C₂ μ)
        self.cuts: list[_Cut] = []
        self.labelled = data.labelled_problem(1.0 / self.n, objective.width)
        self.machine = None if self.labelled is None else _native.Primal(self.labelled, single=False)
        self.n_w = data.chain.n_weights("float64") if not data.features else objective.n_weights(False)
        self.fixed_w, self.fixed_v = np.zeros(self.n_w), np.zeros(data.bound.dimension)
        self.rounds = 0
