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
but agree on one w (`maxmargin.distributed.consensus`). The engine is the same; only its link is
that of the share's centre instead of the regulariser's, and it is changed where a certificate
needs the other one.
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
from maxmargin.distributed.consensus import Agreed, Centre, Opening
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
    """

    #: A round of consensus has solved its problem when a pass gains this share of all its passes.
    SOLVED = 0.1
    #: Its passes but the first visit parts whose violation is at least this share of the mean one.
    BUSY = 0.3

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
        self.link = regularizer.link
        self.centre: Centre | None = None
        self._metric = False  # whether the engine's link is the metric of the centre

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

    def open(self, placed: bool, agreed: Agreed | None) -> Opening:
        """Begin rounds of consensus with the multipliers that there are.

        Parameters
        ----------
        placed : bool
            Whether z is the w that was placed last; else it stays where it is.
        agreed : Agreed or None
            By how much z has moved since the last round, if there was one.
        """
        self.sigma = 1.0
        if self.centre is None:
            self.centre = Centre(self.engine)
        if agreed is not None:
            self.centre.follow(agreed)
        self._metric = True
        return self.centre.open(placed, self.C)

    def meet(self, task: Task, agreed: Agreed) -> Report:
        """Make a round of consensus.

        Parameters
        ----------
        task : Task
            What to do.
        agreed : Agreed
            By how much z has moved since the last round.
        """
        begin, centre = time.perf_counter(), self.centre
        assert centre is not None
        centre.follow(agreed)
        tally = _Tally()
        if task.look == "collect":
            self._first(task, begin, tally)
        centre.aim()
        if task.look == "exact":
            self._first(task, begin, tally)
        self._solve(task, begin, tally)
        moved = centre.take(task.centre_relaxation)
        return self._report(tally, task, begin, EMPTY, moved)

    def _solve(self, task: Task, begin: float, tally: _Tally) -> None:
        """Make cached passes until one gains little of what they did.

        The first visits all parts; each of the others those whose violation is not far below the
        mean that the pass before met, as in `maxmargin.solvers.auto`.
        """
        gained, least = 0.0, 0.0
        for _ in range(task.passes):
            if tally.interrupted:
                break
            result = self._improve(task, begin, 0, smooth=False, least=least)
            tally.count(result)
            gained += result.gain
            if result.gain <= self.SOLVED * gained:
                break
            least = self.BUSY * result.cached_gap / self.C / max(result.visits, 1)

    def place_agreed(self, agreed: Agreed) -> Placed:
        """Take z as the w that is certified, and look at it with the oracle.

        Parameters
        ----------
        agreed : Agreed
            With z itself. (Ω(z) is not that of the answer: the share knows z where its examples
            read it, and the coordinator everywhere.)
        """
        assert self.centre is not None
        self.centre.follow(agreed)
        z = self.centre.z
        self._relink()  # which gives back the memory of the lines, before there are wide arrays
        sums = self.link.sums(z)
        del z
        if self.joint.dtype == np.float32:
            sums = self.engine.widened_array(np.ascontiguousarray(sums, dtype=np.float64))
        return self._place(np.ascontiguousarray(sums, dtype=np.float64))

    def _relink(self) -> None:
        """Give the engine the link of the regulariser."""
        if self._metric:
            self.engine.relink(self.link.native())
        self._metric = False

    @staticmethod
    def _left(task: Task, begin: float) -> float | None:
        if task.seconds is None:
            return None
        return max(task.seconds - (time.perf_counter() - begin), 1e-3)

    def _look(self, task: Task, begin: float) -> PassResult:
        left, solver = self._left(task, begin), self.solver
        if task.look == "collect":
            # In rounds of consensus the coordinator has what the gap needs besides the slacks.
            return self.engine.collect_pass(self.threads, left, measured=not self._metric)
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

    def conjugate_of(self, sums: SparseVector) -> float:
        """Return Ω*(u) of an exact joint u.

        Parameters
        ----------
        sums : SparseVector
            As in `place`.
        """
        return self.engine.conjugate_of(sums.dense(self.n_sums, np.float64))

    def place(self, sums: SparseVector) -> Placed:
        """Take an exact joint u, and look at its w with the oracle.

        Parameters
        ----------
        sums : SparseVector
            u, in 8 bytes and the layout of 8-byte weights.
        """
        return self._place(sums.dense(self.n_sums, np.float64))

    def _place(self, total: NDArray[np.float64]) -> Placed:
        self._relink()
        penalty, conjugate, risk = self.engine.place(total, self.threads)
        self.joint = self.engine.sums()
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
