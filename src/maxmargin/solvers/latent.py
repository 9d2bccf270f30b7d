"""Latent training: the concave part, annealing, a self-paced order, several starts.

`LatentPart` is the -G(w) = -C Σ_i max_h w·f(x_i, y_i, h) of `maxmargin.solvers.cccp`, for whatever
imputes. The rest changes how the procedure begins, never what it ends with: the last stage is the
plain procedure on the whole objective, with its guarantee (the objective never rises) and its end
(a local optimum). Stages before it lead it to another start.

- *Annealing*: G is replaced by G_σ(w) = the mean of G(w + σ ε_m) over some fixed random directions
  ±ε_m: randomised smoothing, which needs no more of a structure than its argmax. G_σ is convex and
  touched by the mean of the imputations at w + σ ε_m, so that each stage is a concave-convex
  procedure of its own, on an objective that blurs the choice of latent parts; σ is halved from
  stage to stage, and zero in the last.
- *Self-paced order* (Kumar, Packer and Koller, "Self-paced learning for latent variable models",
  NIPS 2010): examples enter by their ease. A stage trains on the share of examples with the
  smallest slacks under the present weights; the share grows, and the last stage has all. (The paper
  chooses by a threshold 1/K on the slack, which it raises; a share is the same choice by rank.)
  Where examples have classes, the share is taken of each: else the class that is easy at first
  would be the only one, and stay so.
- *Several starts*: the procedure from several references; the result with the lowest objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import aligned_array
from maxmargin.solvers.base import Solver
from maxmargin.solvers.cccp import COARSE, CCCPResult, cccp
from maxmargin.solvers.driver import copy_weights
from maxmargin.solvers.ending import INTERRUPTED
from maxmargin.solvers.history import History, continued
from maxmargin.solvers.outer import ConcavePart, Imputation, OuterHistory
from maxmargin.solvers.seeds import seed_of
from maxmargin.structures.latent import Imputer, LatentTraining

__all__ = ["LatentPart", "Smoothed", "train_latent"]

#: Pairs of directions ±ε of a stage of annealing.
PAIRS = 2
#: Stages of annealing, each with half the noise of the one before.
ANNEALED = 3
#: Shares of the examples that the stages of a self-paced order have.
SHARES = (0.4, 0.6, 0.8)
#: Outer iterations of a stage before the last, at most.
STAGE_OUTER = 3


class LatentPart:
    """The concave part of a latent structural SVM.

    Parameters
    ----------
    imputer : Imputer
        Finds the best completions of the truths.
    C : float
        The C of the sum over examples.
    single : bool
        Whether the machine is made with 4-byte weights.
    """

    def __init__(self, imputer: Imputer, C: float, single: bool) -> None:
        self.imputer, self.C, self.single = imputer, C, single
        self.values: NDArray[np.float64] = np.empty(0)

    def impute(self, weights: NDArray[Any], threads: int) -> Imputation:
        """Impute; the constant is zero, as G is a maximum of linear functions."""
        self.values, changed = self.imputer.impute(weights, threads)
        return Imputation(self.imputer.linear_term(self.C, self.single), 0.0, changed)


class Smoothed:
    """G_σ(w): the mean of a concave part's G at w ± σ ε_m.

    Parameters
    ----------
    concave : ConcavePart
        The G.
    sigma : float
        Size of the noise, in units of the root mean square of the weights that are not zero, at
        the first call.
    seed : int
        Of the directions.
    widen : callable
        Brings an array over the weights to the layout of 8-byte weights, once the machine has
        these.
    """

    def __init__(
        self,
        concave: LatentPart,
        sigma: float,
        seed: Any,
        widen: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> None:
        self.concave, self.sigma, self.widen = concave, sigma, widen
        self.rng = np.random.default_rng(seed)
        self.noise: list[NDArray[np.float64]] = []
        self._last: NDArray[np.float64] | None = None

    def impute(self, weights: NDArray[Any], threads: int) -> Imputation:
        """Return the mean of the imputations at the perturbed weights.

        One that touches G at w + ε is u·(w + ε) + c there, which is u·w + (u·ε + c) as a function
        of w. What is imputed differs from direction to direction: `changed` is 1 if the mean is
        another one than before, else 0.
        """
        if not self.noise:
            used = weights[weights != 0].astype(np.float64)
            size = self.sigma * math.sqrt(float(np.mean(np.square(used)))) if used.size else 0.0
            half = [size * self.rng.normal(size=weights.shape) for _ in range(PAIRS)]
            self.noise = [sign * e for e in half for sign in (1.0, -1.0)]
        if self.noise[0].shape != weights.shape:
            self.noise = [self.widen(e) for e in self.noise]
        mean: NDArray[np.float64] | None = None
        constant = 0.0
        for noise in self.noise:
            found = self.concave.impute(_moved(weights, noise), threads)
            term = found.linear_term
            assert term is not None
            own = term if term.shape == noise.shape else self.widen(term)
            constant += (float(own @ noise) + found.constant) / len(self.noise)
            share = term / len(self.noise)
            mean = share if mean is None else mean + share
        assert mean is not None
        changed = 0 if self._last is not None and np.array_equal(self._last, mean) else 1
        self._last = mean
        return Imputation(mean, constant, changed)


def _moved(weights: NDArray[Any], noise: NDArray[np.float64]) -> NDArray[Any]:
    moved: NDArray[Any] = aligned_array(weights.size, weights.dtype == np.float32)
    moved[:] = weights + noise
    return moved


def train_latent(
    training: LatentTraining,
    solver: Solver,
    *,
    C: float,
    anneal: float = 0.0,
    self_paced: bool = False,
    random_state: Any = None,
    checkpoint: Any = None,
    resume: bool = False,
    time_limit: float | None = None,
    n_jobs: int = 1,
    **options: Any,
) -> CCCPResult:
    """Train a latent model from one start.

    Parameters
    ----------
    training : LatentTraining
        The problem, and what imputes.
    solver : Solver
        What makes the convex steps.
    C : float
        Weight of the loss.
    anneal : float
        Size of the noise of the first stage of annealing, in units of the root mean square of the
        weights; 0 for none.
    self_paced : bool
        Whether examples enter by their ease.
    random_state, checkpoint, resume, time_limit, n_jobs, **options
        As for `cccp`. Checkpoints are written in the last stage only: a run that is resumed goes on
        in it, and one that was ended before it begins anew.

    Returns
    -------
    CCCPResult
        The result of the last stage, with the records of all.
    """
    seed = seed_of(random_state)
    single = training.dtype == "float32" and training.prepared.problem.offers_single
    part = LatentPart(training.imputer, C, single)
    common: dict[str, Any] = {**options, "C": C, "n_jobs": n_jobs, "dtype": training.dtype}
    run = _Stages(training, solver, part, common, seed=seed, time_limit=time_limit)
    saved = resume and checkpoint is not None and Path(checkpoint).exists()
    if (anneal > 0 or self_paced) and not saved:
        run.stage("first", part, max_outer=1)
        if anneal > 0:
            for k in range(ANNEALED):
                sigma = anneal / 2**k
                smoothed = Smoothed(part, sigma, [seed, k], run.widened)
                run.stage(f"noise {sigma:.2g}", smoothed, max_outer=STAGE_OUTER)
        if self_paced:
            for share in SHARES:
                run.choose(share)
                run.stage(f"easiest {100 * share:.0f} %", part, max_outer=STAGE_OUTER)
            run.choose(1.0)
    return run.last(checkpoint, resume)


class _Stages:
    """A run of several stages that share one engine."""

    def __init__(
        self,
        training: LatentTraining,
        solver: Solver,
        part: LatentPart,
        options: dict[str, Any],
        *,
        seed: int,
        time_limit: float | None,
    ) -> None:
        self.training, self.solver, self.part = training, solver, part
        self.options, self.seed, self.time_limit = options, seed, time_limit
        self.base = training.factors.copy()
        self.results: list[CCCPResult] = []

    @property
    def engine(self) -> Any:
        return self.results[-1].engine if self.results else None

    def widened(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an array over 4-byte weights in the layout of 8-byte ones."""
        wide: NDArray[np.float64] = self.engine.widened_array(array)
        return wide

    def choose(self, share: float) -> None:
        """Give weight to the easiest examples only: those with the smallest slacks."""
        factors, engine = self.training.factors, self.engine
        slacks = engine.slacks(self.options["n_jobs"])
        self.part.impute(copy_weights(engine), self.options["n_jobs"])
        # The latent slack: what is short of the best completion, not of the reference.
        slacks = slacks - self.part.values
        groups = self.training.groups
        groups = np.zeros(len(slacks), np.intp) if groups is None else groups
        factors[:] = 0.0
        for group in np.unique(groups):
            members = np.flatnonzero((groups == group) & (self.base > 0))
            order = members[np.argsort(slacks[members], kind="stable")]
            easiest = order[: math.ceil(share * len(members))]
            factors[easiest] = self.base[easiest]
        engine.rescale(engine.C)  # u is linear in the weights of the examples

    def stage(self, name: str, concave: ConcavePart, max_outer: int) -> None:
        """Make a stage before the last: coarse, and short."""
        if self.results and self.results[-1].stop_reason == INTERRUPTED:
            return
        self._run(
            concave,
            max_outer=max_outer,
            gap=max(self.options["gap"], COARSE),
            stage=name,
            warn=False,
        )

    def last(self, checkpoint: Any, resume: bool) -> CCCPResult:
        """Make the last stage, and give it the records of those before."""
        if not (self.results and self.results[-1].stop_reason == INTERRUPTED):
            self._run(self.part, checkpoint=checkpoint, resume=resume)
        result = self.results[-1]
        return replace(
            result,
            history=_joined([r.history for r in self.results]),
            outer=_joined_outer([r.outer for r in self.results]),
            n_passes=sum(r.n_passes for r in self.results),
        )

    def _run(self, concave: ConcavePart, **options: Any) -> None:
        engine = self.engine
        spent = sum(r.outer[-1].seconds for r in self.results if len(r.outer))
        left = None if self.time_limit is None else max(self.time_limit - spent, 1e-3)
        start = None
        if self.results:
            # At the weights that were found, not at those of the engine: other examples may have
            # come in since, with multipliers of an earlier time.
            start = concave.impute(self.results[-1].weights, self.options["n_jobs"])
        all_options = {**self.options, **options}
        self.results.append(
            cccp(
                self.training.prepared.problem,
                self.solver,
                concave,
                start=start,
                engine=engine,
                time_limit=left,
                random_state=[self.seed, len(self.results)],
                **all_options,
            )
        )


def _joined(histories: list[History]) -> History:
    """Return the passes of several runs as those of one."""
    records: list[Any] = []
    for history in histories:
        last = records[-1] if records else None
        records += history if last is None else [continued(last, record) for record in history]
    return History(records)


def _joined_outer(histories: list[OuterHistory]) -> OuterHistory:
    """Return the outer iterations of several runs as those of one."""
    joined: list[Any] = []
    for history in histories:
        n, seconds = len(joined), joined[-1].seconds if joined else 0.0
        joined += [replace(r, n_outer=n + r.n_outer, seconds=seconds + r.seconds) for r in history]
    return OuterHistory(joined)
