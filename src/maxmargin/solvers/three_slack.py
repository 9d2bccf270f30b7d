"""Algorithm 1 of the transductive paper's appendix: cutting planes with three slacks.

    min  ½‖w‖² + C₂μ/(2m) Σ_j ‖v_j‖² + C₁ ξ₁ + C₂ ξ₂ + C₂ ξ₃ - C₂ w·q - C₂μ/(2m) Σ_j v_j·p_j    (22)

with ξ₁ >= the mean hinge of the labelled sequences (18), ξ₂ >= the mean of (14) over the unlabelled
ones (19), ξ₃ >= Γ(v) (20). Line numbers below are those of Algorithm 1, with the corrections of the
errata: the sign of Σ γ f in (25), the 1/m of d in (27), the CCCP constant in D, and the guard of
the inner loop (a cut is violated).

The weights are (w, z), z = (v - a)/√s, as in ``maxmargin/structures/transduction.py``, so that the
dual (23) is the program of a bundle method with three groups, C₁, C₂ and C₂ being inside the cuts.
ξ₂ is relative to the reference labelling, whose cut is zero; ξ₁ and ξ₃ are not negative.

v_j is not kept: by (25) it is a linear combination of the cuts, made when the next cut is made. For
the same reason entries of v that are known have no place in a cut. Cuts whose multipliers are zero
for a while are dropped.

Any Γ that is not negative, with a value and a subgradient, will do (`OwnGamma`, `SumGamma`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.constraints.gamma import Gamma, IntervalGamma
from maxmargin.errors import ConstraintError
from maxmargin.solvers.cccp import CCCPResult
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import History
from maxmargin.solvers.outer import OuterHistory, OuterRecord
from maxmargin.solvers.transductive_records import GammaRecord, TransductiveResult
from maxmargin.structures.transduction import Transduction, TransductiveData, repadded

__all__ = ["ThreeSlack", "train_three_slack"]

#: A cut whose multiplier was zero in so many programs in a row is dropped.
IDLE = 20
LABELLED, UNLABELLED, GAMMA = 0, 1, 2


class ThreeSlack:
    """The convex step (22) by cutting planes, which are kept from one step to the next.

    Parameters
    ----------
    objective : Transduction
        (13): its problems and its inference.
    gamma : Gamma
        The Γ.
    threads : int
        Threads of the oracles.
    """

    def __init__(self, objective: Transduction, gamma: Gamma, threads: int = 1) -> None:
        self.objective, self.gamma, self.threads = objective, gamma, threads
        data = objective.data
        labelled = data.labelled_problem(objective.C1 / max(data.n_labelled, 1), objective.width)
        self.oracles = {UNLABELLED: _native.Primal(objective.unlabelled, single=False)}
        if labelled is not None:
            self.oracles[LABELLED] = _native.Primal(labelled, single=False)
        self.n_weights = objective.n_weights(False)
        self.places = (
            objective.unlabelled.auxiliary_places(False) if objective.n_free else np.empty(0, int)
        )
        self.store = _native.PlaneStore(self.n_weights, False)
        self.alpha, self.loss = np.zeros(0), np.zeros(0)
        self.group, self.idle = np.zeros(0, np.uint32), np.zeros(0, np.int64)
        self.weights: NDArray[np.float64] = _native.aligned_array(self.n_weights, False)
        self.n_cuts = 0

    def _add(self, group: int, loss: float, indices: NDArray[Any], values: Any) -> None:
        indptr = np.array([0, len(indices)], np.int64)
        self.store.add(indptr, indices.astype(np.uint32), np.ascontiguousarray(values, np.float64))
        self.loss = np.append(self.loss, loss)
        self.group = np.append(self.group, np.uint32(group))
        self.alpha = np.append(self.alpha, 0.0)
        self.idle = np.append(self.idle, 0)
        self.n_cuts += 1

    def _cut(self, group: int) -> float:
        """Line 7: add the cut of a slack at the present weights; return its right-hand side."""
        if group == GAMMA:
            if not self.objective.n_free:
                return self.objective.C2 * self.gamma.value(self.objective.target)
            _, _, v = self.objective.split(self.weights)
            value, slope = self.gamma.value(v), self.gamma.subgradient(v)  # (28)
            C2, unit = self.objective.C2, self.objective.unit
            free = ~self.objective.known
            f = slope[free]
            # F = loss - z·Δf = C₂ (Γ(v_t) + f·(a + √s z - v_t))
            loss = C2 * (value + float(slope @ (self.objective.target - v)))
            used = np.flatnonzero(f)
            order = np.argsort(self.places[used])
            self._add(GAMMA, loss, self.places[used][order], (-C2 * unit * f[used])[order])
            return C2 * value
        oracle = self.oracles[group]
        oracle.weights[:] = self.weights[: oracle.weights.size]
        oracle.written()
        result = oracle.find(self.threads)  # (26), (27)
        losses, _, indices, values = oracle.shares(1)
        self._add(group, float(losses[0]), indices, values)
        return float(result.hinge)

    def solve(self, u0: NDArray[np.float64], gap: float, limit: int) -> tuple[float, float, bool]:
        """Solve the convex step with the linear term u₀ (lines 6 to 11).

        Parameters
        ----------
        u0 : array
            C₂ q and the p_j, as `Transduction.impute` gives them.
        gap : float
            Relative gap.
        limit : int
            Most rounds of cuts.

        Returns
        -------
        primal, dual : float
            Of the weights, which are the best that were met.
        done : bool
            Whether the gap was reached.
        """
        fixed: NDArray[np.float64] = _native.aligned_array(self.n_weights, False)
        fixed[:] = u0
        best, best_primal, dual = None, np.inf, -np.inf
        groups = sorted({*self.oracles, GAMMA})
        for _ in range(limit):
            tolerance = 0.1 * gap * max(abs(dual), 1e-6) if np.isfinite(dual) else 1e-3
            if len(self.loss):
                # Line 8: (23), max Σ α l - ½‖u₀ + Σ α p‖².
                b = self.loss - self.store.multiply(fixed)
                self.store.solve(self.group, b, 1.0, self.alpha, tolerance, 1.0, 2000)
                self.store.combine(self.alpha, self.weights)  # line 10: (24) and (25)
                self.weights += fixed
                dual = float(self.alpha @ self.loss) - 0.5 * float(self.weights @ self.weights)
                self._prune()
            else:
                self.weights[:] = fixed
                dual = -0.5 * float(self.weights @ self.weights)
            plain = 0.5 * float(self.weights @ self.weights) - float(self.weights @ fixed)
            at = self.weights.copy()
            primal = plain + sum(self._cut(group) for group in groups)
            if primal < best_primal:
                best, best_primal = at, primal
            # Line 6: the three slacks together are short by primal - dual.
            if best_primal - dual <= gap * max(abs(best_primal), 1e-9):
                break
        assert best is not None
        self.weights[:] = best
        return best_primal, dual, best_primal - dual <= gap * max(abs(best_primal), 1e-9)

    def _prune(self) -> None:
        self.idle += 1
        self.idle[self.alpha > 0] = 0
        kept = self.idle <= IDLE
        if len(kept) - np.count_nonzero(kept) <= len(kept) / 8:
            return
        self.store.keep(kept)
        self.alpha, self.loss = self.alpha[kept], self.loss[kept]
        self.group, self.idle = self.group[kept], self.idle[kept]


def train_three_slack(
    svm: Any,
    data: TransductiveData,
    chain_weights: NDArray[Any],
    group_weights: NDArray[np.float64] | None,
    gamma: Gamma | None,
) -> TransductiveResult:
    """Run Algorithm 1 for a `TransductiveSVM`; the parameters are those of its ``train``.

    ``max_passes`` is the most rounds of cuts of a convex step (500 by default). There are no
    stages, checkpoints or 4-byte weights here.
    """
    own = data.bound.gamma(svm.scale) if gamma is None else gamma
    if own.dimension != data.bound.dimension:
        raise ConstraintError(
            f"Γ is a function of {own.dimension} numbers; expected {data.bound.dimension}, one for "
            "each coordinate of φ"
        )
    interval = own if isinstance(own, IntervalGamma) else _nothing(data.bound.dimension)
    wide = repadded(data.chain, chain_weights, "float64")
    first = svm.objective(data, None, interval)
    start = first.start(wide, group_weights)
    data = replace(data, reference=first.infer(start, 1.0, svm.n_jobs).codes)
    objective = svm.objective(data, None, interval)
    step = ThreeSlack(objective, own, svm.n_jobs)
    limit = 500 if svm.max_passes is None else svm.max_passes
    began, last = time.perf_counter(), np.inf
    weights, records, gammas = start, OuterHistory(), []
    imputed = objective.impute(weights, svm.n_jobs, False)  # line 5
    reason, converged, certificate = f"max_outer = {svm.max_outer}", False, None
    for n in range(1, svm.max_outer + 1):
        before = step.n_cuts
        primal, dual, done = step.solve(imputed.linear_term, svm.gap, limit)
        new = objective.impute(step.weights, svm.n_jobs, False, imputed.codes)
        # Objective (13) at the new weights: what the step charges for ȳ, less what a new ȳ gains.
        gained = float(step.weights @ (new.linear_term - imputed.linear_term))
        gained += new.constant - imputed.constant
        value = primal - imputed.constant - gained
        if value > last:
            reason, converged = "no convex step within the gap lowers the objective", done
            break
        decrease = (last - value) / max(abs(value), 1e-300)
        last, weights = value, step.weights.copy()
        certificate = Certificate(primal, dual, 1.0, objective.problem.n_examples)
        differ = np.add.reduceat(new.codes != imputed.codes, data.unlabelled.offsets[:-1]) > 0
        changed = int(np.count_nonzero(differ))
        seconds = time.perf_counter() - began
        records.append(
            OuterRecord(
                n,
                value,
                primal - imputed.constant,
                changed,
                certificate.gap,
                svm.gap,
                step.n_cuts - before,
                seconds,
            )
        )
        if svm.gammas:
            found = objective.bound_of_gamma(weights, svm.n_jobs)
            gammas.append(GammaRecord(n, value, *found))
        imputed = new
        if changed == 0 or decrease <= svm.tol:  # line 12
            reason = "nothing is imputed anew" if changed == 0 else "the objective has settled"
            converged = done
            break
        if svm.time_limit is not None and seconds > svm.time_limit:
            reason = f"time_limit = {svm.time_limit:g} s"
            break
    assert certificate is not None
    result = CCCPResult(
        weights=weights,
        certificate=certificate,
        history=History(),
        converged=converged,
        stop_reason=reason,
        n_passes=step.n_cuts,
        engine=None,  # type: ignore[arg-type]
        objective=float(last),
        outer=records,
    )
    chain, groups, v = objective.split(weights)
    chain = repadded(data.chain, chain, str(chain_weights.dtype))
    return TransductiveResult(result, objective, float(last), gammas, chain, groups, v)


def _nothing(dimension: int) -> IntervalGamma:
    """Return a Γ without terms: nothing of v is known, and all of it is in the cuts."""
    return IntervalGamma.coordinates(dimension, [], low=0.0, high=0.0)
