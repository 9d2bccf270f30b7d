"""Cutting planes as the rows of a sparse matrix: what the linear programs work on.

`CutMachine` collects, from the outputs that the oracle finds, one row Δf per plane with its example
and its loss, over the columns (weights) that any plane touches. `CutSolver` is the loop around it:
improve over the planes found so far, then ask the oracle for more.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Problem, SweepResult
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.primal import MISSED, PrimalMachine, PrimalSolver, read_array
from maxmargin.solvers.steps import Context, PassTotals, Step

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["CutMachine", "CutSolver"]


class CutMachine(PrimalMachine):
    """Weights, and the planes found so far.

    Attributes
    ----------
    example : int array of shape (n_planes,)
        Whose planes they are.
    loss : array of shape (n_planes,)
        Their losses.
    columns : int array of shape (n_columns,)
        The weights that any plane touches, ascending.
    rows : csr_matrix of shape (n_planes, n_columns)
        Their Δf.
    alpha : array of shape (n_planes,)
        The multipliers, scaled by C.
    """

    def __init__(self, problem: Problem, C: float, regularizer: Regularizer, single: bool) -> None:
        super().__init__(problem, C, regularizer, single=False)  # whatever was asked for
        self.n_examples = problem.n_examples
        self.share = np.asarray(self.primal.example_weights)  # factors of C
        self._set(
            np.zeros(0, np.int64),
            np.zeros(0),
            np.zeros(1, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0),
        )
        self.alpha = np.zeros(0)
        self.solved = True  # whether the last program over the planes was brought to its end

    def _set(
        self,
        example: NDArray[np.int64],
        loss: NDArray[np.float64],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        from scipy.sparse import csr_matrix

        self.example, self.loss = example, loss
        self.columns, places = np.unique(indices, return_inverse=True)
        shape = (len(example), len(self.columns))
        self.rows: csr_matrix = csr_matrix((values, places, indptr), shape=shape)
        self.n_planes = len(example)

    def collect(
        self, least: NDArray[np.float64], threads: int, seconds: float | None
    ) -> tuple[SweepResult, int]:
        """Call the oracle on all examples; keep the planes whose F is above the example's bound.

        Returns
        -------
        tuple of SweepResult and int
            What the oracle found, and how many planes are new.
        """
        example, loss, _, indptr, indices, values, result = self.primal.cuts(
            least, threads, seconds
        )
        if len(example):
            old = self.rows
            self._set(
                np.concatenate([self.example, example]),
                np.concatenate([self.loss, loss]),
                np.concatenate([old.indptr.astype(np.int64), old.nnz + indptr[1:]]),
                np.concatenate([self.columns[old.indices], indices]),
                np.concatenate([old.data, values]),
            )
            self.alpha = np.concatenate([self.alpha, np.zeros(len(example))])
        return result, len(example)

    def slacks(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each example's slack ξ_i under the planes kept; w is over the columns."""
        xi = np.zeros(self.n_examples)
        np.maximum.at(xi, self.example, self.loss - self.rows @ w)
        return xi

    def known_hinge(self) -> float:
        """Return Σ weight_i ξ_i under the planes kept, at the last iterate."""
        return float(self.share @ self.slacks(self.primal.weights[self.columns]))

    def missed_slacks(self, slacks: NDArray[np.float64]) -> tuple[float, int | None]:
        """Tell what the oracle missed at the last iterate; see `PrimalMachine`."""
        w = self.primal.weights[self.columns]
        scale = np.zeros(self.n_examples)
        np.maximum.at(scale, self.example, self.loss + abs(self.rows) @ np.abs(w))
        more = self.share * (self.slacks(w) - slacks)
        more[more <= self.share * MISSED * scale] = 0
        example = int(np.argmax(more))
        return float(more.sum()), example if more[example] > 0 else None

    def take(self, w: NDArray[np.float64], alpha: NDArray[np.float64]) -> float:
        """Take weights (over the columns) and multipliers; return by how much the bound rose."""
        full = np.zeros_like(self.primal.weights)
        full[self.columns] = w
        self.write(full)
        # Feasible whatever rounding did: not negative, and at most C per example.
        alpha = np.maximum(alpha, 0)
        mass = np.bincount(self.example, alpha, self.n_examples)
        alpha *= np.minimum(1, self.C * self.share / np.maximum(mass, 1e-300))[self.example]
        self.alpha = alpha
        return self.offer(self.rows.T @ alpha, float(alpha @ self.loss))

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""
        return {
            **super().state(),
            "example": self.example,
            "loss": self.loss,
            "alpha": self.alpha,
            "indptr": self.rows.indptr.astype(np.int64),
            "indices": self.columns[self.rows.indices],
            "values": self.rows.data,
        }

    def _read(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        example, indptr, indices = (
            read_array(state, name, kinds="iu").astype(np.int64)
            for name in ("example", "indptr", "indices")
        )
        n = len(example)
        loss, alpha = read_array(state, "loss", n), read_array(state, "alpha", n)
        values = read_array(state, "values", len(indices))
        fits = (
            len(indptr) == n + 1
            and indptr[0] == 0
            and indptr[-1] == len(indices)
            and (np.diff(indptr) >= 0).all()
            and ((example >= 0) & (example < self.n_examples)).all()
            and ((indices >= 0) & (indices < len(self.primal.weights))).all()
            and (loss >= 0).all()
            and (alpha >= 0).all()
        )
        if not fits:
            raise ValueError("the checkpoint does not fit this problem: its planes are damaged")
        super()._read(state)
        self._set(example, loss, indptr, indices, values)
        self.alpha = alpha


class CutSolver(PrimalSolver):
    """Cutting planes: improve over those found so far, then ask the oracle for more."""

    machine: ClassVar[type[PrimalMachine]] = CutMachine

    #: A plane is kept if it violates its constraint by more than this.
    epsilon: float

    @abstractmethod
    def improve(
        self, machine: CutMachine, seconds: float | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights (over the columns) and multipliers for the planes found so far."""

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        return {}

    def step(self, machine: CutMachine, state: dict[str, Any], context: Context) -> Step:
        """Improve, then ask the oracle at the new weights."""
        begin = time.perf_counter()
        gain, xi, left = 0.0, np.zeros(context.n_examples), context.seconds_left
        if machine.n_planes:
            w, alpha = self.improve(machine, left)
            gain = machine.take(w, alpha)
            xi = machine.slacks(w)
        if left is not None:
            left = max(left - (time.perf_counter() - begin), 0.0)
        result, added = machine.collect(xi + self.epsilon, context.threads, left)
        if result.interrupted:
            totals = PassTotals(math.nan, gain, result.oracle_calls, interrupted=True)
            return Step("collect", totals)
        hinge = machine.at_least(result.hinge)
        primal = machine.regularizer.penalty(machine.weights) + machine.C * hinge
        totals = PassTotals(primal - machine.bound, gain, result.oracle_calls)
        reason = f"no plane is violated by {self.epsilon:g}"
        return Step("collect", totals, machine.solved and self.done(added), reason)

    def done(self, added: int) -> bool:
        """Whether a pass that found so many new planes was the last."""
        return False
