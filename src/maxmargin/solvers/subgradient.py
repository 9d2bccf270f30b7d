"""Subgradient: stochastic subgradient descent, in an L1 ball or with decaying weights.

Problem, over an L1 ball (II.7 of the SAP paper)::

    min_w  C Σ_i max_y [l_i(y) - w·Δf_i(y)]      s.t.  ‖w‖₁ <= radius

solved as in Zhu, Xing and Zhang, "Primal Sparse Max-Margin Markov Networks", KDD 2009: a step along
the subgradient of one example, w + η_t Δf_i(ŷ_i) with η_t = η₀/√(1 + t/n), and the projection onto
the ball, after every example as there or after every pass as the SAP paper has it. The projection
takes expected linear time in the non-zeros (Duchi et al., ICML 2008; ``native/l1_ball.hpp``).

Problem, with `L2`::

    min_w  ½‖w‖² + C Σ_i max_y [l_i(y) - w·Δf_i(y)]

as λ/2 ‖w‖² plus the mean loss, λ = 1/(nC): w ← (1 - η_t λ) w + η_t Δf_i(ŷ_i) with η_t = η₀/(1 +
η₀λt), as in Bottou's SGD code, or η_t = 1/(λ(t + 1)) (Pegasos). The average of all iterates, the
t-th with weight t, is what is returned unless ``average=False``.

η₀ is calibrated as in Bottou's code: on a sample of the examples, the one of a geometric grid after
whose pass the objective is lowest. (On all of them, where the projection comes at the end of a
pass: how far w runs away until then depends on how many there are.)

Lower bound: each pass finds one output per example. These are multipliers; their mean over the
passes, the k-th with weight k, is offered as a dual solution.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin._native import Problem, SubgradientOptions, aligned_array, blend
from maxmargin.checks import check_choice, check_whole_attributes
from maxmargin.regularizers import L2, L1Ball, Regularizer
from maxmargin.solvers.primal import READ, PrimalMachine, PrimalSolver, read_array
from maxmargin.solvers.steps import Context, PassTotals, Step

__all__ = ["Subgradient"]


class SubgradientMachine(PrimalMachine):
    """Weights, and the running mean of the planes met; shown is the average of the iterates."""

    def __init__(self, problem: Problem, C: float, regularizer: Regularizer, single: bool) -> None:
        super().__init__(problem, C, regularizer, single)
        self.mean = np.zeros_like(self.primal.weights)  # Σ_i Δf_i of the mean outputs
        self.mean_loss = 0.0

    def begin(self) -> None:
        """Start averages anew; the mean of the planes are multipliers for any objective."""
        self.shown = None
        self.primal.forget_average()
        self.offer(self.C * self.mean, self.C * self.mean_loss)

    def take_plane(self, loss: float, share: float) -> float:
        """Move the mean towards the last pass's plane; return by how much the bound rose."""
        blend(self.mean, self.primal.plane, share, self.mean, self.threads)
        self.mean_loss += share * (loss - self.mean_loss)
        return self.offer(self.C * self.mean, self.C * self.mean_loss)

    def known_hinge(self) -> float:
        """Return what the mean plane says of Σ weight_i max F_i at the last iterate."""
        return self.mean_loss - float(self.mean @ self.primal.weights)

    def take_average(self) -> None:
        """Take note of the present average."""
        if self.shown is None:
            single = self.mean.dtype == np.float32
            self.shown = aligned_array(self.mean.size, single)
        self.primal.average_into(self.shown, self.threads)

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""
        more = {"mean": self.mean, "mean_loss": np.array([self.mean_loss])}
        if self.shown is not None:
            more["averaged"] = np.array(self.shown)
        return {**super().state(), **more}

    def _read(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        n = len(self.mean)
        mean, loss = read_array(state, "mean", n), read_array(state, "mean_loss", 1)
        averaged = read_array(state, "averaged", n) if "averaged" in state else None
        super()._read(state)
        self.mean[:], self.mean_loss = mean, float(loss[0])
        self.shown = None
        if averaged is not None:
            self.take_average()
            self.weights[:] = averaged

    def _check_read(self) -> None:
        """Refuse a mean plane, too, whose bound is above the primal or above the stored one."""
        stored = self.bound
        self.offer(self.C * self.mean, self.C * self.mean_loss)
        super()._check_read()
        if stored < self.bound * (1 - READ):
            raise ValueError(
                f"the checkpoint's bound is {stored:g}; its planes have {self.bound:g}"
            )
        self.bound = stored


@dataclass(frozen=True)
class Subgradient(PrimalSolver):
    """Stochastic subgradient descent.

    Parameters
    ----------
    step_size : float, "calibrate" or "pegasos"
        η₀; "calibrate" finds it on a sample; "pegasos" is 1/λ (L2 only).
    project : {"pass", "example"}
        When to project onto the L1 ball (L1Ball only).
    average : bool
        Return the average of the iterates (L2 only).
    sample : int
        Examples used to calibrate the step.
    permute : bool
        Visit the examples in a new random order in each pass.
    """

    name: ClassVar[str] = "subgradient"
    machine: ClassVar[type[PrimalMachine]] = SubgradientMachine
    regularizers: ClassVar[tuple[type[Regularizer], ...]] = (L2, L1Ball)

    step_size: float | str = "calibrate"
    project: str = "pass"
    average: bool = True
    sample: int = 1000
    permute: bool = True

    def __post_init__(self) -> None:
        check_choice("project", self.project, ("pass", "example"))
        check_whole_attributes(self, sample=1)
        if isinstance(self.step_size, str):
            check_choice("step_size", self.step_size, ("calibrate", "pegasos"))
        elif isinstance(self.step_size, bool) or not 0 < self.step_size < math.inf:
            raise ValueError(
                f'step_size must be positive, "calibrate" or "pegasos"; got {self.step_size!r}'
            )

    def check_options(self, regularizer: Regularizer) -> None:
        """Refuse a step size that needs another regulariser."""
        if self.step_size == "pegasos" and not isinstance(regularizer, L2):
            raise ValueError(
                'step_size="pegasos" needs the decay of L2; give a number, or "calibrate"'
            )

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {"eta": None, "done": 0, "passes": 0}

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that no run can have had."""
        super().check_state(state, machine, context)
        if state["eta"] is not None:
            self._options(machine, state["eta"], context.n_examples)  # refuses what is out of range

    def step(self, machine: SubgradientMachine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass over the examples."""
        n = context.n_examples
        machine.threads = context.threads
        calls, begin, left = 0, time.perf_counter(), context.seconds_left
        if state["eta"] is None:
            state["eta"], calls = self._first_step(machine, context)
        if left is not None:
            left = max(left - (time.perf_counter() - begin), 0.0)
        options = self._options(machine, state["eta"], n)
        result = machine.primal.subgradient_pass(
            context.order(self.permute), options, float(state["done"]), left
        )
        state["done"] += result.oracle_calls
        calls += result.oracle_calls
        averages = self.average and isinstance(machine.regularizer, L2)
        if averages:
            machine.take_average()
        if result.interrupted:
            return Step("exact", PassTotals(math.nan, 0.0, calls, interrupted=True))
        state["passes"] += 1
        gain = machine.take_plane(result.loss, 2 / (state["passes"] + 1))
        # The hinges were met while w moved: an estimate, which the driver confirms if it is small.
        primal = machine.regularizer.penalty(machine.weights) + machine.C * result.hinge
        return Step("exact", PassTotals(primal - machine.bound, gain, calls))

    def _options(
        self, machine: SubgradientMachine, eta: float, n: int, average: bool = True
    ) -> SubgradientOptions:
        if isinstance(machine.regularizer, L1Ball):
            each = self.project == "example"
            return SubgradientOptions(eta=eta, radius=machine.regularizer.radius, each=each)
        lambda_ = 1 / (n * machine.C)
        return SubgradientOptions(lambda_=lambda_, eta=eta, average=average and self.average)

    #: Steps that are tried: η₀ times these, the best of them then times two and by two.
    TRIED: ClassVar[tuple[float, ...]] = tuple(4.0**k for k in range(-8, 1))
    #: Where time is limited, the search may take this share of what is left.
    SHARE: ClassVar[float] = 0.25

    def _first_step(self, machine: SubgradientMachine, context: Context) -> tuple[float, int]:
        """Return η₀, and the oracle calls that finding it took.

        With a time limit it is the best of those that there was time for, from the middle of the
        grid outwards; if there was none for a single one, a step that is safe without a look.
        """
        n = context.n_examples
        # 1/λ is the largest that makes sense with decay.
        ball = isinstance(machine.regularizer, L1Ball)
        most = 16.0 if ball else n * machine.C
        if self.step_size == "pegasos":
            return most, 0
        if not isinstance(self.step_size, str):
            return (self.step_size if ball else min(self.step_size, most)), 0
        whole = ball and self.project == "pass"
        sample = context.rng.permutation(n)[: n if whole else self.sample].astype(np.uint32)
        before = machine.primal.weights.copy()
        calls = 0
        left = math.inf if context.seconds_left is None else self.SHARE * context.seconds_left
        end = time.perf_counter() + left
        costs: dict[float, float] = {}

        def cost(eta: float) -> float:
            nonlocal calls
            begin = time.perf_counter()
            if eta in costs or eta > most or begin > end:
                return costs.get(eta, math.inf)
            machine.write(before)
            options = self._options(machine, eta, n, average=False)
            limit = None if math.isinf(end) else max(end - begin, 0.0)
            calls += machine.primal.subgradient_pass(sample, options, 0.0, limit).oracle_calls
            now = time.perf_counter()
            if now + (now - begin) > end:  # a look takes as long as the steps took
                return math.inf
            calls += len(sample)
            loss = machine.primal.hinge_of(sample, context.threads).hinge * n / len(sample)
            costs[eta] = machine.regularizer.penalty(machine.primal.weights) + machine.C * loss
            return costs[eta]

        try:
            grid = [most * share for share in self.TRIED]
            middle = len(grid) // 2
            for k in sorted(range(len(grid)), key=lambda k: abs(k - middle)):
                cost(grid[k])
            eta = min(grid, key=cost)
            eta = min((eta, 2 * eta, eta / 2), key=cost)
        finally:
            machine.write(before)
        # C is how far one example can move w in the dual, where its multipliers sum to 1.
        safe = grid[middle] if ball else min(machine.C, most)
        return (eta if costs else safe), calls
