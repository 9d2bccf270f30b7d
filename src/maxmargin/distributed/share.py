"""A share of the examples: an engine that makes rounds of passes and tells what they changed.

Problem: the dual C Σ α l - Ω*(u), u = C Σ α Δf, whose examples are in K shares. Paper: Ma, Smith,
Jaggi, Jordan, Richtárik and Takáč, "Adding vs. Averaging in Distributed Primal-Dual Optimization"
(CoCoA+), ICML 2015. In a round share k maximises, over a change of its own multipliers,

    C Σ δ l - (1/σ) [Ω*(u + σ Δu_k) - Ω*(u)],      Δu_k = C Σ δ Δf,

and all changes are added. With σ = K the dual gains at least the sum of what the shares gained:
u + Σ Δu_k is the mean of the K points u + K Δu_k, and Ω* is convex. That holds for every
regulariser. σ times this problem is the dual of an engine whose C is σC and whose u stands at the
joint u when the round begins; so the passes of the engine are the local solver as they are.

*Momentum.* Near the optimum the shares pull in opposite directions: what one adds to the weights of
frequent features, another one takes away. The joint u then hardly moves, while each share has a
long way to go, in steps as small as what it sees of the others. With e_k = Δu_k - Σ_l Δu_l / K of
the round before (Σ e_k = 0), share k begins at u - β σ e_k: it makes β e_k again and answers what u
asks for on top of it. The sum of all changes does not have the term, so that what the shares do
together stays as it is, and only the tug-of-war becomes faster, by up to 1 / (1 - β).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Engine, PassOptions, PassResult, Problem
from maxmargin.distributed.messages import (
    EMPTY,
    Exact,
    Found,
    Placed,
    Report,
    SparseVector,
    Task,
)
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.refusals import check_compatible
from maxmargin.solvers.sdm import SDM
from maxmargin.solvers.steps import Context

__all__ = ["Share", "check_sharable"]

#: What others keep of a share: all of its engine's state but u, which they have.
KEPT = (
    *("example", "lo", "hi", "violation", "stiffness", "n_planes", "alpha", "loss", "gram"),
    *("code_size", "codes", "gaps"),
)


def check_sharable(problem: Problem, solver: Any, regularizer: Regularizer) -> SDM:
    """Return the solver, if shares of the examples can be trained with it.

    Raises
    ------
    NotCompatibleError
        If problem, solver and regulariser do not go together, or not in shares.
    """
    if not isinstance(solver, SDM) or solver.schedule != "auto":
        raise NotCompatibleError(
            f"many machines train with SDM() and its automatic schedule; got {solver}"
        )
    if solver.slack == "hard":
        raise NotCompatibleError(
            'hard margins have no sum over shares of the examples; use slack="linear"'
        )
    if problem.has_kernel:
        raise NotCompatibleError(
            "a kernel compares tokens of different shares; many machines train with linear weights"
        )
    if problem.linear_term is not None:
        raise NotCompatibleError(
            "a problem with a fixed linear term (latent, transductive) is not trained in shares"
        )
    check_compatible(solver, problem, regularizer)
    return solver


class Share:
    """An engine over some of the examples.

    Parameters
    ----------
    problem : Problem
        The examples of this share.
    solver : SDM
        The formulation and the parameters of the passes.
    C : float
        The C of the whole training.
    regularizer : Regularizer
        Ω.
    single : bool
        Whether weights are 4-byte.
    seed : object
        Of the visiting orders.
    threads : int
        For passes at one w.
    about : mapping
        More that the coordinator wants to know of the data.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Any,
        C: float,
        regularizer: Regularizer,
        *,
        single: bool = True,
        seed: Any = 0,
        threads: int = 1,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.problem, self.C = problem, C
        self.solver = check_sharable(problem, solver, regularizer)
        single = single and problem.offers_single
        self.engine = cast("Engine", self.solver.start(problem, C, regularizer, single))
        self.joint: NDArray[Any] = self.engine.sums()
        self.context = Context(
            n_examples=problem.n_examples, rng=np.random.default_rng(seed), threads=threads
        )
        self.threads = threads
        self.sigma = 1.0
        self.n_sums = int(self.engine.own_sums().size)
        self.about = dict(about or {})
        self._last = EMPTY

    def found(self) -> Found:
        """Return what the coordinator has to know of it."""
        size, dtype = int(self.joint.size), str(self.joint.dtype)
        return Found(self.problem.n_examples, size, self.n_sums, dtype, self.about)

    # ---- rounds ----

    def round(self, change: SparseVector, task: Task) -> Report:
        """Make a round of passes.

        Parameters
        ----------
        change : SparseVector
            By how much the joint u has moved since the last round.
        task : Task
            What to do.
        """
        begin = time.perf_counter()
        change.add_to(self.joint)
        self.sigma = task.sigma
        C = task.sigma * self.C
        base = self._base(change, task)
        work = gain = 0.0
        gap = risk = math.nan
        oracle_calls = n_passes = 0
        interrupted = False
        self.engine.settle(self.joint if task.look == "collect" else base, C)
        if task.look:
            result = self._look(task, begin)
            work, oracle_calls, n_passes = result.work, result.oracle_calls, 1
            interrupted = result.interrupted
            if task.look == "collect":
                risk = math.nan if interrupted else self.engine.risk_and_worth()[0]
                if base is not self.joint:
                    self.engine.settle(base, C)
            else:
                gap, gain = result.gap / task.sigma, result.gain
        made = 0
        while made < task.passes and not interrupted:
            result = self._improve(task, begin, made, smooth=False)
            made += 1
            spent = result.work
            work, gain = work + spent, gain + result.gain
            pays = result.gain * work > SDM.PAYS * gain * spent
            interrupted = result.interrupted
            if not pays:
                break
        if task.smooth and not interrupted:
            result = self._improve(task, begin, made, smooth=True)
            made, work, gain = made + 1, work + result.work, gain + result.gain
            interrupted = result.interrupted
        self._last = SparseVector(*self.engine.changes(base, 1 / task.sigma))
        size = self.engine.size()
        return Report(
            self._last,
            self.engine.risk_and_worth()[1],
            gain / task.sigma,
            gap,
            risk,
            size["parts"],
            size["planes"],
            oracle_calls,
            n_passes + made,
            work,
            time.perf_counter() - begin,
            interrupted,
        )

    def _base(self, change: SparseVector, task: Task) -> NDArray[Any]:
        """Return where u begins: at the joint u, or moved by the momentum."""
        if task.momentum == 0.0 or len(self._last.indices) == 0:
            return self.joint
        scale = task.momentum * task.sigma
        base = self.joint.copy()
        base[change.indices] += change.values * base.dtype.type(scale / task.n_shares)
        base[self._last.indices] -= self._last.values * base.dtype.type(scale)
        return base

    @staticmethod
    def _left(task: Task, begin: float) -> float | None:
        if task.seconds is None:
            return None
        return max(task.seconds - (time.perf_counter() - begin), 1e-3)

    def _look(self, task: Task, begin: float) -> PassResult:
        left, solver = self._left(task, begin), self.solver
        if task.look == "collect":
            return self.engine.collect_pass(self.threads, left)
        idle = solver.IDLE * task.average if solver.slack == "linear" else 0.0
        options = PassOptions(tau=idle, tau_relative=solver.SMO_DEPTH, prune=solver.prune)
        parts, n = self.engine.size()["parts"], self.context.n_examples
        several = parts >= solver.PARTS * n >= solver.PARTS * solver.MANY
        order = self.context.order(solver.permute, solver.TOGETHER if several else 1)
        return self.engine.exact_pass(order, options, left)

    def _improve(self, task: Task, begin: float, made: int, *, smooth: bool) -> PassResult:
        solver = self.solver
        full = made % solver.full_every == 0 or self.problem.slow_oracle or smooth
        options = PassOptions(
            tau_relative=solver.SMO_DEPTH,
            relaxation=min(solver.relaxation, solver.SMOOTH) if smooth else task.relaxation,
            recombine=True,
            min_violation=0.0 if full else solver.BUSY * task.average,
            prune=solver.prune,
        )
        order = self.context.order(solver.permute)
        return self.engine.cached_pass(order, options, self._left(task, begin))

    # ---- certificates ----

    def exact(self) -> Exact:
        """Return what it adds to u, rebuilt from its multipliers."""
        sums = self.engine.own_sums()
        sums /= self.sigma
        return Exact(SparseVector.of(sums), self.engine.risk_and_worth()[1])

    def place(self, sums: SparseVector) -> Placed:
        """Take an exact joint u, and look at its w with the oracle.

        Parameters
        ----------
        sums : SparseVector
            u, in 8 bytes and the layout of 8-byte weights.
        """
        total = sums.dense(self.n_sums, np.float64)
        penalty, conjugate, risk = self.engine.place(total, self.threads)
        self.joint = self.engine.sums()
        self._last = EMPTY
        unsure, missed = self.engine.oracle_error_bound, self.engine.missed
        return Placed(penalty, conjugate, risk, unsure, missed)

    def sums(self) -> NDArray[Any]:
        """Return the joint u, as all shares have it."""
        return self.joint

    def weights(self) -> NDArray[Any]:
        """Return w, as it was placed."""
        return np.array(self.engine.weights)

    # ---- faults and checkpoints ----

    def state(self) -> dict[str, NDArray[Any]]:
        """Return its planes and multipliers."""
        state = self.engine.state()
        return {name: state[name] for name in KEPT}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Undo `state`; u has to be placed anew.

        Parameters
        ----------
        state : mapping
            Of a share with the same examples.
        """
        sums = self.engine.sums()
        self.engine.restore({**state, "weights": sums, "running": None})
        self.engine.settle(sums, self.sigma * self.C)
        self._last = EMPTY
