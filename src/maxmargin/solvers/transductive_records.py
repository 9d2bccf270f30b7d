"""What transductive training gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers.cccp import CCCPResult
from maxmargin.structures.transduction import Transduction

__all__ = ["GammaRecord", "TransductiveResult"]


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
    stage : str
        Empty, or the μ of a stage of annealing.
    """

    n_outer: int
    objective: float
    gamma_v: float
    gamma: float
    bound: float
    stage: str = ""


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
    chain_weights : array
        Native weights of the chain.
    group_weights : float64 array
        Weights of the constraint features; empty without them.
    v : float64 array
        The auxiliary vectors.
    """

    result: CCCPResult
    transduction: Transduction
    objective: float
    gammas: list[GammaRecord]
    chain_weights: NDArray[Any]
    group_weights: NDArray[np.float64]
    v: NDArray[np.float64]
