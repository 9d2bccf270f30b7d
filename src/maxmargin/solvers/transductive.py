"""Transductive training: convex steps of the dual engine inside the concave-convex procedure.

The problem is (13) of the transductive paper; ``maxmargin/structures/transduction.py`` has it, with
the derivation of the blocks and of the link. Line numbers are those of Algorithm 1 of its appendix:

    2   start: w of the supervised model, v_j at its target                       `TransductiveSVM`
    5   impute: constraint-guided inference (12), u₀ of (21)                      `TransductivePart`
    6-11  convex step: the engine's passes over all blocks, to a gap              `cccp`
    12  until the objective (13) does not fall any more                           `cccp`

The blocks of the engine are those of single sequences and terms (n slacks), where Algorithm 1 has
three slacks for all: `maxmargin.solvers.three_slack` is the latter, the same optimum.

μ may be annealed, which the paper names as future work: stages with smaller μ come first, each
begins where the one before it ended, and only the last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, check_number, check_whole
from maxmargin.constraints.bound import WIDTH
from maxmargin.regularizers import L2
from maxmargin.regularizers.base import BoundRegularizer
from maxmargin.solvers.cccp import CCCPResult, cccp
from maxmargin.solvers.outer import Imputation, OuterRecord
from maxmargin.solvers.registry import make_solver
from maxmargin.solvers.three_slack import train_three_slack
from maxmargin.solvers.transductive_records import GammaRecord, TransductiveResult
from maxmargin.structures.transduction import Transduction, TransductiveData, repadded

__all__ = ["GammaRecord", "TransductivePart", "TransductiveResult", "TransductiveSVM"]


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
        found = self.transduction.impute(weights, threads, self.single, self.codes)
        offsets = self.transduction.data.unlabelled.offsets
        if self.codes is None:
            changed = len(offsets) - 1
        else:
            differ = np.add.reduceat(found.codes != self.codes, offsets[:-1]) > 0
            changed = int(np.count_nonzero(differ))
        self.codes, self.weights = found.codes, weights
        return Imputation(found.linear_term, found.constant, changed)


@dataclass(frozen=True)
class TransductiveSVM:
    """How a transductive structural SVM is trained: the parameters of (13), and the schedule.

    Parameters
    ----------
    C1 : float
        Weight of the mean loss of the labelled sequences.
    C2 : float
        Weight of everything about the unlabelled ones.
    mu : float
        The paper's μ: how closely v follows the outputs, and how much a violation weighs.
    scale : {"sum", "mean"}
        Whether Γ sums over the unlabelled sequences (section 5.1 as printed) or averages.
    schedule : {"engine", "paper"}
        "engine": a slack for every sequence and term, in the dual engine. "paper": Algorithm 1 of
        the appendix, cutting planes with three slacks; the same optimum.
    anneal : int
        Stages with smaller μ before the last, each with half of the μ of the next one.
    solver : str or Solver
        What makes the convex steps of "engine".
    gap : float
        Relative gap of the convex steps.
    tol : float
        The procedure ends when an outer iteration lowers the objective by no more than this share.
    max_outer : int
        Most outer iterations of a stage.
    max_passes : int or None
        Most passes of a convex step.
    time_limit : float or None
        Most seconds.
    dtype : {"float32", "float64"}
        Type of the weights.
    n_jobs : int
        Number of threads.
    width : int
        States a token that inference keeps where constraints need states beside the labels.
    margins : {"all", "labels"}
        "all": objective (13). "labels": constraints that need states beside the labels (one
        segment, order, counts) guide the imputation (15) and are left out of (14), which is then a
        Viterbi search; see ``maxmargin/structures/transduction.py``.
    label_margin : float
        Beside the margins of violations, unlabelled sequences ask for this share of the loss as
        margin against labels other than those that the procedure begins with. 0: objective (13).
    gammas : bool
        Whether Γ and Lemma 2's bound are computed at each outer iteration.
    verbose, random_state, checkpoint, resume
        As for ``maxmargin.solvers.cccp.cccp``.
    """

    C1: float = 10.0
    C2: float = 10.0
    mu: float = 4.0
    scale: str = "sum"
    schedule: str = "engine"
    anneal: int = 0
    solver: Any = "sdm"
    gap: float = 0.05
    tol: float = 5e-3
    max_outer: int = 20
    max_passes: int | None = None
    time_limit: float | None = None
    dtype: str = "float32"
    n_jobs: int = 1
    width: int = WIDTH
    margins: str = "all"
    label_margin: float = 0.0
    gammas: bool = True
    verbose: int = 0
    random_state: Any = None
    checkpoint: Any = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("C1", "C2", "mu"):
            check_number(name, getattr(self, name), above=0.0)
        check_number("label_margin", self.label_margin, least=0.0)
        check_choice("scale", self.scale, ("sum", "mean"))
        check_choice("schedule", self.schedule, ("engine", "paper"))
        check_choice("margins", self.margins, ("all", "labels"))
        for name, least in (("anneal", 0), ("max_outer", 1), ("width", 1)):
            check_whole(name, getattr(self, name), least)

    def objective(
        self, data: TransductiveData, mu: float | None = None, gamma: Any = None
    ) -> Transduction:
        """Return (13) on some data, maybe with another μ or Γ."""
        return Transduction(
            data,
            C1=self.C1,
            C2=self.C2,
            mu=self.mu if mu is None else mu,
            gamma=data.bound.gamma(self.scale) if gamma is None else gamma,
            width=self.width,
            margins=self.margins,
            label_margin=self.label_margin,
        )

    def train(
        self,
        data: TransductiveData,
        chain_weights: NDArray[Any],
        group_weights: NDArray[np.float64] | None = None,
        gamma: Any = None,
    ) -> TransductiveResult:
        """Train from a supervised model (lines 2 to 13 of Algorithm 1).

        Parameters
        ----------
        data : TransductiveData
            The sequences.
        chain_weights : array
            Native weights of the chain, of the type ``dtype``.
        group_weights : array or None
            Those of the constraint features.
        gamma : Gamma or None
            Another Γ than that of the constraints; one that is no ``IntervalGamma`` needs
            ``schedule="paper"``.

        Returns
        -------
        TransductiveResult
            The weights with the lowest objective that was met.
        """
        if self.schedule == "paper":

            return train_three_slack(self, data, chain_weights, group_weights, gamma)
        single = self.dtype == "float32"
        gammas: list[GammaRecord] = []
        chain, groups, v = chain_weights, group_weights, None
        results: list[CCCPResult] = []
        stages = [self.mu / 2.0**k for k in range(self.anneal, -1, -1)]
        # Planes are relative to a fixed labelling. With the first ȳ the objective of the engine is
        # (13) less what ȳ violates, so that relative gaps are about (13).
        first = self.objective(data, stages[0], gamma)
        found = first.infer(first.start(chain, groups), 1.0, self.n_jobs)
        data = replace(data, reference=found.codes)
        for k, mu in enumerate(stages):
            objective = self.objective(data, mu, gamma)
            part = TransductivePart(objective, single)
            start = objective.start(chain, groups, v)
            last = k == len(stages) - 1
            results.append(
                cccp(
                    objective.problem,
                    make_solver(self.solver),
                    part,
                    C=1.0,
                    start=part.impute(start, self.n_jobs),
                    dtype=self.dtype,
                    regularizer=_regularizer(objective, single),
                    gap=self.gap,
                    tol=self.tol,
                    max_outer=self.max_outer if last else min(self.max_outer, 3),
                    max_passes=self.max_passes,
                    time_limit=self.time_limit,
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                    random_state=self.random_state,
                    on_outer=_recorder(self, objective, part, gammas),
                    checkpoint=self.checkpoint if last else None,
                    resume=self.resume and last,
                    stage="" if last else f"mu={mu:.3g}",
                    warn=False,
                )
            )
            chain, groups, v = objective.split(results[-1].weights)
            if not last:
                chain = repadded(data.chain, chain, self.dtype)
        result = results[-1]
        assert groups is not None
        assert v is not None
        return TransductiveResult(result, objective, result.objective, gammas, chain, groups, v)


def _regularizer(objective: Transduction, single: bool) -> BoundRegularizer | None:
    """Return ½‖w‖² with the terms of v, or None where no v has weights."""
    return BoundRegularizer(L2(), objective.link(single)) if objective.n_free else None


def _recorder(
    svm: TransductiveSVM, objective: Transduction, part: TransductivePart, out: list[GammaRecord]
) -> Any:
    def record(outer: OuterRecord) -> None:
        if not svm.gammas or part.weights is None:
            return
        found = objective.bound_of_gamma(part.weights, svm.n_jobs)
        out.append(GammaRecord(outer.n_outer, outer.objective, *found, outer.stage))

    return record
