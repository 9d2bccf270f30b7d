"""BCFW: the block-coordinate Frank-Wolfe method.

Problem (as SDM)::

    min_w  ½‖w‖² + C Σ_i max_y [l_i(y) - w·Δf_i(y)]          (λ of the paper is 1/(nC))

Paper: Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs", ICML 2013, Algorithm 4: for one example the oracle's output, then a step of the
block's multipliers towards it, with the best step length (``native/smo.hpp``, `frank_wolfe`). It is
a schedule over the dual engine, which keeps the outputs met and their multipliers where the paper
keeps their sum w_i; so that these come with it:

- *weighted averaging* (section 4 there): the w of the t-th step with weight t; what is returned, if
  ``average``;
- *gap sampling* (Osokin et al., ICML 2016): examples are drawn in proportion to what their blocks
  were short of when last visited, after one pass over all of them;
- *plane cache* (Shah, Kolmogorov and Lampert, CVPR 2015): steps towards the best output already
  met, without the oracle, while a pass of them gains more per work than the last with the oracle.

With several threads a dear oracle is asked for some dozens of examples at one w, by all of them,
and one makes the steps (``native/oracle_ahead.hpp``): directions are a few steps old, and the step
length is the best one under the present w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Engine, PassOptions, Primal, Problem, aligned_array
from maxmargin.checks import check_choice, check_whole_attributes
from maxmargin.regularizers import L2, Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.primal import MISSED, read_array
from maxmargin.solvers.steps import Context, Step

__all__ = ["BCFW"]


class AveragedEngine(DualMachine):
    """The dual engine, with the average of w over the steps in the place of the last w."""

    _averaged: NDArray[Any] | None = None
    _missed: int | None = None

    def __init__(self, problem: Problem, C: float, single: bool) -> None:
        super().__init__(problem, C, single=single, factored=False)

    @property
    def weights(self) -> Any:
        """The average of w, once there is one."""
        return super().weights if self._averaged is None else self._averaged

    def take_average(self) -> None:
        """Take note of the present average."""
        last = super().weights
        if self._averaged is None:
            self._averaged = aligned_array(last.size, last.dtype == np.float32)
        self._averaged[:] = self.average()

    def widen(self) -> None:
        """Go on with 8-byte weights, also of the average."""
        super().widen()
        if self._averaged is not None:
            self._averaged = None
            self.take_average()

    def start_average(self) -> None:
        """Begin to average anew."""
        self._averaged = None
        self.forget_average()

    def _hinge(self, threads: int, exact: bool) -> float:
        """Σ max F under the average."""
        look = Primal(self.problem, self.weights.dtype == np.float32)
        look.weights[:] = self.weights
        if not self.problem.exact_oracle:  # whose argmax may miss what is kept
            return self._hinge_with_kept(look, threads)
        return look.exact_hinge(threads) if exact else look.hinge(threads).hinge

    def _hinge_with_kept(self, look: Primal, threads: int) -> float:
        """Σ max F over the oracle's answers and the planes kept."""
        look.exact_hinge(threads)
        slacks = look.slacks()
        example, loss, _, indptr, indices, values = self.planes()
        score = np.append(values * self.weights[indices], 0.0)
        size = np.add.reduceat(np.abs(score), indptr[:-1]) if len(loss) else np.zeros(0)
        margin = np.add.reduceat(score, indptr[:-1]) if len(loss) else np.zeros(0)
        empty = np.diff(indptr) == 0
        margin[empty], size[empty] = 0.0, 0.0
        known, scale = np.zeros(len(slacks)), np.zeros(len(slacks))
        np.maximum.at(known, example, loss - margin)
        np.maximum.at(scale, example, loss + size)
        more = look.example_weights * (known - slacks)
        self._missed = None
        if (more > MISSED * look.example_weights * scale).any():
            self._missed = int(np.argmax(more))
        return float(look.example_weights @ np.maximum(slacks, known))

    def _penalty(self) -> float:
        """½‖w‖² - w·u₀ of the average."""
        penalty, fixed = L2().penalty(self.weights), self.fixed
        if fixed is None:
            return penalty
        return penalty - float(self.weights.astype(np.float64) @ fixed.astype(np.float64))

    def objective(self, threads: int = 1) -> float:
        """Return the primal at `weights`."""
        if self._averaged is None:
            return super().objective(threads)
        return self._penalty() + self.C * self._hinge(threads, exact=False)

    def certify(self, threads: int = 1) -> tuple[float, float]:
        """Return the primal of `weights` and the dual of the multipliers, from scratch."""
        primal, dual = super().certify(threads)
        self._missed = super().missed
        if self._averaged is None:
            return primal, dual
        return self._penalty() + self.C * self._hinge(threads, exact=True), dual

    @property
    def missed(self) -> int | None:
        """Where argmax missed a better output in the last certificate."""
        return self._missed

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint: those of the engine, its average among them."""
        more = {} if self._averaged is None else {"averaged": np.array(self._averaged)}
        return {**super().state(), **more}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        averaged = None
        if "averaged" in state or "visits" in state:
            averaged = read_array(state, "averaged", super().weights.size)
            read_array(state, "visits", 1)
        super().restore(state)
        self._averaged = None
        if averaged is not None:
            self.take_average()
            self.weights[:] = averaged


@dataclass(frozen=True)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe.

    Parameters
    ----------
    sampling : {"permute", "uniform", "gap"}
        Which examples a pass visits: all in random order, as many drawn at random with
        replacement (as in the paper), or drawn in proportion to their blocks' gaps.
    average : bool
        Return the weighted average of w over the steps.
    cached_passes : int
        Passes over the outputs already met after each pass with the oracle, at most; 0: none.
    """

    name: ClassVar[str] = "bcfw"
    kernels: ClassVar[bool] = False  # averages are those of weights
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (L2,)

    sampling: str = "permute"
    average: bool = True
    cached_passes: int = 0

    def __post_init__(self) -> None:
        check_choice("sampling", self.sampling, ("permute", "uniform", "gap"))
        check_whole_attributes(self, cached_passes=0)

    def start(self, problem: Problem, C: float, regularizer: Regularizer, single: bool) -> Machine:
        """Return the dual engine."""
        return AveragedEngine(problem, C, single)

    def continue_from(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
        """Keep the multipliers; the average starts anew."""
        super().continue_from(machine, C, regularizer)
        if isinstance(machine, AveragedEngine):
            machine.start_average()

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"exact": 0, "left": 0, "work": 0.0, "gain": 0.0}

    def step(self, machine: AveragedEngine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass: n steps of Algorithm 4, or one over the cache."""
        options = PassOptions(frank_wolfe=True, average=self.average)
        if state["left"] > 0:
            kind = "cached"
            result = machine.cached_pass(context.order(), options, context.seconds_left)
            state["left"] -= 1
            # The rule of the paper on the plane cache: as long as it gains more for its work.
            if result.gain * state["work"] <= state["gain"] * result.work:
                state["left"] = 0
        else:
            kind = "exact"
            order = self._order(machine, state, context)
            result = machine.exact_pass(
                order, options, context.seconds_left, context.batch, context.threads
            )
            state["exact"] += 1
            state["left"] = self.cached_passes
            state["work"], state["gain"] = result.work, result.gain
        if self.average:
            machine.take_average()
        return Step(kind, result)

    def _order(
        self, engine: Engine, state: dict[str, Any], context: Context
    ) -> NDArray[np.uint32]:
        n = context.n_examples
        if self.sampling == "permute" or (self.sampling == "gap" and state["exact"] % 10 == 0):
            return context.order()  # gaps that are old are measured again now and then
        share = None
        if self.sampling == "gap":
            gaps = np.maximum(engine.block_gaps(), 0)
            if gaps.sum() > 0:
                share = gaps / gaps.sum()
        return context.rng.choice(n, size=n, p=share).astype(np.uint32)
