"""A share of the examples: an engine that makes rounds of passes and tells what they changed.

Problem: the dual C Σ α l - Ω*(u), u = C Σ α Δf, whose examples are in K shares. Paper: Ma, Smith,
Jaggi, Jordan, Richtárik and Takáč, "Adding vs. Averaging in Distributed Primal-Dual Optimization"
(CoCoA+), ICML 2015. In a round share k maximises, over a change of its own multipliers,

    C Σ δ l - (1/σ) [Ω*(u + σ Δu_k) - Ω*(u)],      Δu_k = C Σ δ Δf,

and all changes are added. With σ = K the dual gains at least the sum of what the shares gained:
u + Σ Δu_k is the mean of the K points u + K Δu_k, and Ω* is convex. That holds for every
regulariser. σ times this problem is the dual of an engine whose C is σC and whose u stands at the
joint u when the round begins; so the passes of the engine are the local solver as they are.

*Consensus.* `meet` makes the rounds of the other aggregation, in which shares do not add to one u
but agree on one w (`maxmargin.distributed.consensus`). The engine is the same; in rows that others
read, too, its weights follow u by the slopes of the metric. A share of such a training may have
only the rows that its examples read (``rows``); one that adds to u has all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Engine, PassOptions, PassResult, Problem
from maxmargin.distributed.consensus import Agreed, ExactSums, Member, Places, Reads, Shown
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


@dataclass
class _Tally:
    """What the passes of a round have done so far."""

    work: float = 0.0
    gain: float = 0.0
    gap: float = math.nan
    risk: float = math.nan
    oracle_calls: int = 0
    passes: int = 0
    interrupted: bool = False

    def count(self, result: PassResult) -> None:
        """Count a pass."""
        self.work += result.work
        self.gain += result.gain
        self.passes += 1
        self.interrupted = result.interrupted


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
    rows : uint32 array or None
        The number that each row of the problem's weights has in those of all shares, ascending;
        None: the same. Such a share makes rounds of consensus only.
    n_weights : int or None
        Weights of all shares; None: as many as the problem has.
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
        rows: NDArray[np.uint32] | None = None,
        n_weights: int | None = None,
    ) -> None:
        self.problem, self.C = problem, C
        self.solver = check_sharable(problem, solver, regularizer)
        single = single and problem.offers_single
        self.engine = cast("Engine", self.solver.start(problem, C, regularizer, single))
        self.context = Context(
            n_examples=problem.n_examples, rng=np.random.default_rng(seed), threads=threads
        )
        self.threads = threads
        self.sigma = 1.0
        self.mean = 0.0  # violation of a part, as a full pass met it
        self.about = dict(about or {})
        self.rows, self.n_weights = rows, n_weights
        self._joint: NDArray[Any] | None = None
        self._n_wide: int | None = None
        self._member: Member | None = None

    def found(self) -> Found:
        """Return what the coordinator has to know of it."""
        engine = self.engine
        size = int(engine.n_weights) if self.n_weights is None else self.n_weights
        dtype = "float32" if engine.weight_bytes == 4 else "float64"
        return Found(self.problem.n_examples, size, dtype, self.about)

    @property
    def joint(self) -> NDArray[Any]:
        """The u of all shares, where these add to it."""
        if self._joint is None:
            self._joint = self.engine.sums()
        return self._joint

    def n_wide(self) -> int:
        """Return the number of weights in the layout of 8-byte weights."""
        if self._n_wide is None:
            self._n_wide = int(self.engine.own_sums().size)
        return self._n_wide

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
        self.engine.settle(self.joint, task.sigma * self.C)
        tally = _Tally()
        if task.look:
            self._first(task, begin, tally)
        self._more(task, begin, tally)
        changed = SparseVector(*self.engine.changes(self.joint, 1 / task.sigma))
        return self._report(tally, task, begin, changed)

    def _first(self, task: Task, begin: float, tally: _Tally) -> None:
        """Make the pass with the oracle, and note what it tells of the gap."""
        result = self._look(task, begin)
        tally.count(result)
        tally.oracle_calls = result.oracle_calls
        if task.look != "collect":
            tally.gap = result.gap / task.sigma
        elif not result.interrupted:
            tally.risk = self.engine.risk_and_worth()[0]

    def _more(self, task: Task, begin: float, tally: _Tally) -> None:
        """Make cached passes as long as they pay."""
        made = 0
        while made < task.passes and not tally.interrupted:
            result = self._improve(task, begin, made, smooth=False)
            made += 1
            tally.count(result)
            if not result.gain * tally.work > SDM.PAYS * tally.gain * result.work:
                break
        if task.smooth and not tally.interrupted:
            tally.count(self._improve(task, begin, made, smooth=True))

    def _report(
        self, tally: _Tally, task: Task, begin: float, change: SparseVector, moved: Any = None
    ) -> Report:
        size = self.engine.size()
        return Report(
            change,
            self.engine.risk_and_worth()[1],
            tally.gain / task.sigma,
            tally.gap,
            tally.risk,
            size["parts"],
            size["planes"],
            tally.oracle_calls,
            tally.passes,
            tally.work,
            time.perf_counter() - begin,
            tally.interrupted,
            moved,
        )

    # ---- rounds of consensus ----

    @property
    def member(self) -> Member:
        """Its part in rounds of consensus."""
        if self._member is None:
            self._member = Member(self.engine, self.rows)
        return self._member

    def reads(self) -> Reads:
        """Return which rows of weights its examples read."""
        return self.member.reads()

    def know(self, common: NDArray[np.uint8]) -> None:
        """Take which of these rows others read, too; nothing is known of them then."""
        self.member.native.share(common)

    def meet(self, task: Task, agreed: Agreed | None) -> Report:
        """Make a round of consensus.

        Parameters
        ----------
        task : Task
            What to do.
        agreed : Agreed or None
            By how much z has moved since the last round; None where shares begin anew.
        """
        begin, member = time.perf_counter(), self.member
        self.sigma = 1.0
        looks, opening, penalty = task.look == "collect", None, math.nan
        anew, tally = agreed is None, _Tally()
        if agreed is None:
            opening = member.open(self.C, task.steepness)
        else:
            member.follow(agreed, looks)
        if looks:
            penalty = member.native.own()[0]
            self._first(task, begin, tally)
            if not anew:
                member.native.aim()
        if task.begins == "measure":
            opening = member.measure(task.steepness)
        member.native.begin_steps()
        try:
            if task.look == "exact":
                self._first(task, begin, tally)
            for n_pass in range(task.passes):
                if tally.interrupted:
                    break
                result = self._improve(task, begin, 0, smooth=False, least=task.busy * self.mean)
                tally.count(result)
                if task.busy == 0 and n_pass == 0:
                    parts = max(self.engine.size()["parts"], 1)
                    self.mean = max(0.0, result.cached_gap / self.engine.C / parts)
        finally:
            member.native.end_steps()
        moved = member.take(task.centre_relaxation, opening, penalty)
        return self._report(tally, task, begin, EMPTY, moved)

    def exact_sums(self) -> ExactSums:
        """Return u_k in shared rows, rebuilt from the multipliers; own rows get their w."""
        chunks, lanes, sums, conjugate = self.member.native.exact(self.threads)
        worth = self.engine.risk_and_worth()[1]
        return ExactSums(Places(chunks, lanes), sums, conjugate, worth)

    def put(self, shown: Shown) -> None:
        """Take the w of shared rows at which rounds begin anew."""
        self.member.native.place(*shown.joined, shown.values)

    def show(self, shown: Shown) -> Placed:
        """Take the w of shared rows that is certified, and look at it with the oracle."""
        self.put(shown)
        penalty, risk = self.member.native.look(self.threads)
        unsure, missed = self.engine.oracle_error_bound, self.engine.missed
        return Placed(penalty, math.nan, risk, unsure, missed)

    def own_weights(self) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Return the weights of rows that no other share reads, where they are not link(0)."""
        chunks, values = self.member.native.weights()
        return chunks, values

    # ---- passes ----

    @staticmethod
    def _left(task: Task, begin: float) -> float | None:
        if task.seconds is None:
            return None
        return max(task.seconds - (time.perf_counter() - begin), 1e-3)

    def _look(self, task: Task, begin: float) -> PassResult:
        left, solver = self._left(task, begin), self.solver
        if task.look == "collect":
            # In rounds of consensus the coordinator has what the gap needs besides the slacks.
            measured = self._member is None
            return self.engine.collect_pass(self.threads, left, measured=measured)
        idle = solver.IDLE * task.average if solver.slack == "linear" else 0.0
        options = PassOptions(tau=idle, tau_relative=solver.SMO_DEPTH, prune=solver.prune)
        parts, n = self.engine.size()["parts"], self.context.n_examples
        several = parts >= solver.PARTS * n >= solver.PARTS * solver.MANY
        order = self.context.order(solver.permute, solver.TOGETHER if several else 1)
        return self.engine.exact_pass(order, options, left)

    def _improve(
        self, task: Task, begin: float, made: int, *, smooth: bool, least: float = 0.0
    ) -> PassResult:
        solver = self.solver
        full = made % solver.full_every == 0 or self.problem.slow_oracle or smooth
        options = PassOptions(
            tau_relative=solver.SMO_DEPTH,
            relaxation=min(solver.relaxation, solver.SMOOTH) if smooth else task.relaxation,
            recombine=True,
            min_violation=least if full else solver.BUSY * task.average,
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
        total = sums.dense(self.n_wide(), np.float64)
        penalty, conjugate, risk = self.engine.place(total, self.threads)
        self._joint = self.engine.sums()
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
        # What parts learned of the curvature may be that of a metric.
        state = {**state, "stiffness": np.ones_like(state["stiffness"])}
        self.engine.restore({**state, "weights": sums, "running": None})
        if self.rows is None:
            self.engine.settle(sums, self.sigma * self.C)
