"""Transductive training: convex steps of the dual engine inside the concave-convex procedure.

The problem is (13) of the transductive paper; ``maxmargin/structures/transduction.py`` has it, with
the derivation of the blocks and of the link. Line numbers are those of Algorithm 1 of its appendix:

    2   start: w of the supervised model, v_j at its target                       `train_transductive`
    5   impute: constraint-guided inference (12), u₀ of (21)                      `TransductivePart`
    6-11  convex step: the engine's passes over all blocks, to a gap              `cccp`
    12  until the objective (13) does not fall any more                           `cccp`

The blocks of the engine are those of single sequences and terms (n slacks), where Algorithm 1 has
three slacks for all: `maxmargin.solvers.three_slack` is the latter, the same optimum.

μ may be annealed, which the paper names as future work: stages with smaller μ come first, each
begins where the one before it ended, and only the last one counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.regularizers import L2
from maxmargin.regularizers.base import BoundRegularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.cccp import CCCPResult, cccp
from maxmargin.solvers.outer import Imputation, OuterHistory, OuterRecord
from maxmargin.structures.transduction import Transduction

__all__ = ["GammaRecord", "TransductivePart", "TransductiveResult", "train_transductive"]


@dataclass(frozen=True)
class GammaRecord:
    """What an outer iteration says about the constraints.

    Attributes
    ----------
    n_outer : int
        Number of the iteration.
    objective : float
        Objective (13).
    gamma_v : float
        Γ(v), the B of Lemma 2.
    gamma : float
        The actual Γ of the predictions on the unlabelled sequences.
    bound : float
        Lemma 2's bound of ``gamma``.
    """

    n_outer: int
    objective: float
    gamma_v: float
    gamma: float
    bound: float


@dataclass
class TransductiveResult:
    """A trained transductive model.

    Attributes
    ----------
    result : CCCPResult
        Of the last stage, with the records of all.
    transduction : Transduction
        The objective of the last stage.
    objective : float
        (13) at the weights.
    gammas : list of GammaRecord
        One for each outer iteration.
    """

    result: CCCPResult
    transduction: Transduction
    objective: float
    gammas: list[GammaRecord]


class TransductivePart:
    """The concave part of (13), for `cccp`.

    Parameters
    ----------
    transduction : Transduction
        The objective.
    single : bool
        Whether the machine is made with 4-byte weights.
    """

    def __init__(self, transduction: Transduction, single: bool) -> None:
        self.transduction, self.single = transduction, single
        self.codes: NDArray[np.int32] | None = None
        self.weights: NDArray[Any] | None = None

    def impute(self, weights: NDArray[Any], threads: int) -> Imputation:
        """Line 5: ȳ_j, and with them q and p_j of (21)."""
        found = self.transduction.impute(weights, threads, self.single)
        offsets = self.transduction.data.unlabelled.offsets
        if self.codes is None:
            changed = len(offsets) - 1
        else:
            differ = np.add.reduceat(found.codes != self.codes, offsets[:-1]) > 0
            changed = int(np.count_nonzero(differ))
        self.codes, self.weights = found.codes, weights
        return Imputation(found.linear_term, found.constant, changed)


def train_transductive(
    make: Any,
    solver: Solver,
    start: NDArray[Any],
    *,
    mus: list[float],
    dtype: str = "float32",
    n_jobs: int = 1,
    gammas: bool = True,
    verbose: int = 0,
    on_outer: Any = None,
    **options: Any,
) -> TransductiveResult:
    ...
