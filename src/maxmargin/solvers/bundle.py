"""What the 1-slack solver moves: planes that are sums over examples, and the program over them.

The examples are dealt out in contiguous groups (one group: the 1-slack problem of the paper). A
plane of group G stands for one output ŷ_i of each of its examples::

    a = Σ_{i in G} weight_i Δf_i(ŷ_i),    l = Σ_{i in G} weight_i l_i(ŷ_i)

so C (l - w·a) is a lower bound of the group's loss at any w. The relaxed problem and its dual are

    min_w  ½‖w‖² + C Σ_G max(0, max_{p in G} l_p - w·a_p)
    max_α  Σ α_p l_p - ½‖Σ α_p a_p‖²       s.t.  α >= 0,  Σ_{p in G} α_p <= C

Any feasible α is a lower bound of the true primal. Planes do not depend on C: a warm start at
another C keeps them and scales α.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import PlaneStore, Problem, SweepResult, aligned_array, blend
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.primal import READ, PrimalMachine, read_array

__all__ = ["BundleMachine"]


class BundleMachine(PrimalMachine):
    """Weights, planes with their multipliers, and the best weights seen.

    Attributes
    ----------
    shown : array or None
        The weights with the lowest primal so far, the stability centre.
    best : float
        Their primal.
    target : array
        Σ α a: the minimiser of the relaxed problem.
    alpha, loss : array of shape (n_planes,)
        Multipliers and losses.
    group : int array of shape (n_planes,)
        Whose planes they are.
    idle : int array of shape (n_planes,)
        For how many programs a plane's multiplier has been zero.
    """

    def __init__(
        self,
        problem: Problem,
        C: float,
        regularizer: Regularizer,
        single: bool,
        *,
        rescale: str = "margin",
    ) -> None:
        super().__init__(problem, C, regularizer, single, rescale=rescale)
        n = self.primal.weights.size
        self.single = self.primal.weights.dtype == np.float32
        self.target: NDArray[Any] = aligned_array(n, self.single)
        self.groups = 0
        self.best = math.inf
        self.drop_all()

    def drop_all(self) -> None:
        """Forget all planes."""
        self.store = PlaneStore(self.primal.weights.size, self.single)
        self.alpha, self.loss = np.zeros(0), np.zeros(0)
        self.group, self.idle = np.zeros(0, np.uint32), np.zeros(0, np.int64)
        self.n_planes = 0

    def begin(self) -> None:
        """Go on from the best weights; with the planes kept, as they are valid for any C."""
        if self.shown is not None:
            self.write(self.shown)
            self.shown = None
        self.best = math.inf
        total = np.bincount(self.group, self.alpha, self.groups).max(initial=0)
        if total > 0:
            self.alpha *= self.C / total
        self.idle[:] = 0
        self.aim()
        self.raise_bound(self.dual_value(self.alpha))

    # ---- the oracle's side ----

    def look(self, threads: int, seconds: float | None, square: float) -> tuple[SweepResult, float]:
        """Ask the oracle at the present iterate, whose ‖w‖² is given; return its primal too."""
        result = self.primal.find(threads, seconds)
        if result.interrupted:
            return result, math.nan
        return result, 0.5 * square + self.C * self.at_least(result.hinge)

    def keep(self, primal: float) -> None:
        """Make the present iterate the centre if its primal is the lowest."""
        if primal < self.best:
            if self.shown is None:
                self.shown = aligned_array(self.target.size, self.single)
            self.shown[:] = self.primal.weights
            self.best = primal

    def go(self, share: float) -> float:
        """Move the iterate to centre + share (target - centre); return ‖w‖²."""
        square: float = blend(
            self.weights, self.target, share, self.primal.weights, self.threads
        )
        self.primal.written()
        return square

    def settle(self, share: float, primal: float) -> None:
        """Move the centre that far, where the primal is known."""
        assert self.shown is not None
        blend(self.shown, self.target, share, self.shown, self.threads)
        self.best = primal

    def cut(self, groups: int) -> None:
        """Take the planes of the outputs last found, one a group."""
        self.groups = groups
        loss, indptr, indices, values = self.primal.shares(groups, self.threads)
        self.store.add(indptr, indices, values, self.threads)
        self.loss = np.concatenate([self.loss, loss])
        self.group = np.concatenate([self.group, np.arange(groups, dtype=np.uint32)])
        self.alpha = np.concatenate([self.alpha, np.zeros(groups)])
        self.idle = np.concatenate([self.idle, np.zeros(groups, np.int64)])
        self.n_planes = len(self.store)

    def relaxed_hinge(self, w: NDArray[Any] | None = None) -> float:
        """Return Σ_G max(0, max_p l_p - w·a_p) at the present iterate, or at another w."""
        slack = np.zeros(self.groups)
        w = self.primal.weights if w is None else w
        np.maximum.at(slack, self.group, self.loss - self.store.multiply(w, self.threads))
        return float(slack.sum())

    def revise(self) -> None:
        """Raise the primal of the centre to what the planes know by now, if argmax missed it."""
        if not self.exact_oracle and self.shown is not None and self.n_planes:
            least = self.regularizer.penalty(self.shown) + self.C * self.relaxed_hinge(self.shown)
            self.best = max(self.best, least)

    def known_hinge(self) -> float:
        """Return what the planes kept say of Σ weight_i max F_i at the last iterate."""
        return self.relaxed_hinge() if self.n_planes else 0.0

    # ---- the program's side ----

    def dual_value(self, alpha: NDArray[np.float64]) -> float:
        """Return the dual at feasible multipliers."""
        return float(alpha @ self.loss) - 0.5 * self.store.square(alpha)

    def maximize(self, tolerance: float) -> float:
        """Solve the relaxed problem to a gap; return by how much the bound rose."""
        self._solve(self.loss, self.alpha, tolerance)
        return self.raise_bound(self.dual_value(self.alpha))

    def _solve(
        self,
        linear: NDArray[np.float64],
        alpha: NDArray[np.float64],
        tolerance: float,
        kappa: float = 1.0,
    ) -> None:
        # Any α is a bound: a program that converges badly must not keep Ctrl-C waiting.
        rounds = 1000 if self.groups > 1 else 10
        self.store.solve(self.group, linear, self.C, alpha, tolerance, kappa, rounds)

    def aim(self) -> None:
        """Point the target at the minimiser of the relaxed problem."""
        self.store.combine(self.alpha, self.target, self.threads)

    def aim_near(self, mu: float, tolerance: float) -> None:
        """Point the target at the minimiser of the relaxed problem plus μ/2 ‖w - centre‖².

        With u = Σ α a that is w = (u + μ centre) / (1 + μ), and the dual in α has the curvature
        1/(1 + μ) and the linear term l - μ/(1 + μ) a·centre.
        """
        rest = mu / (1 + mu)
        linear = self.loss - rest * self.store.multiply(self.weights, self.threads)
        alpha = self.alpha.copy()
        self._solve(linear, alpha, tolerance, 1 - rest)
        self.idle[alpha > 0] = -1  # needed, whatever the program without the term says
        self.store.combine(alpha, self.target, self.threads)
        blend(self.weights, self.target, 1 - rest, self.target, self.threads)

    def prune(self, after: int) -> None:
        """Drop planes whose multiplier was zero in so many programs in a row."""
        self.idle += 1
        self.idle[self.alpha > 0] = 0
        kept = self.idle <= after
        # The Gram matrix is rewritten: not for a few planes.
        if self.n_planes - np.count_nonzero(kept) <= self.n_planes / 8:
            return
        self.store.keep(kept)
        self.alpha, self.loss = self.alpha[kept], self.loss[kept]
        self.group, self.idle = self.group[kept], self.idle[kept]
        self.n_planes = len(self.store)

    # ---- what the driver asks ----

    def size(self) -> dict[str, int]:
        """Return how much is kept."""
        held = self.store.nbytes + self.target.nbytes
        held += 0 if self.shown is None else self.shown.nbytes
        return {"parts": 0, "planes": self.n_planes, "bytes": self.primal.nbytes + held}

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""
        indptr, indices, values = self.store.planes()
        example, size, codes = self.primal.cache()
        more = {} if self.shown is None else {"shown": np.array(self.shown)}
        return {
            **super().state(),
            **more,
            "best": np.array([self.best if self.shown is not None else 0.0]),
            "target": np.array(self.target),
            "groups": np.array([self.groups]),
            "alpha": self.alpha,
            "loss": self.loss,
            "group": self.group,
            "idle": self.idle,
            "indptr": indptr,
            "indices": indices,
            "values": values,
            "cache_example": example,
            "cache_size": size,
            "cache_codes": codes,
        }

    def _read(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        dtype, n = self.target.dtype, self.target.size
        group, idle = (
            read_array(state, name, kinds="iu").astype(np.int64) for name in ("group", "idle")
        )
        planes = len(group)
        alpha, loss = (read_array(state, name, planes) for name in ("alpha", "loss"))
        indptr, indices = (
            read_array(state, name, kinds="iu").astype(np.int64) for name in ("indptr", "indices")
        )
        values = read_array(state, "values", len(indices)).astype(dtype)
        groups = int(read_array(state, "groups", 1, kinds="iu")[0])
        target = read_array(state, "target", n)
        shown = read_array(state, "shown", n) if "shown" in state else None
        best = float(read_array(state, "best", 1)[0])
        cache = [
            read_array(state, f"cache_{name}", kinds="iu").astype(np.uint32)
            for name in ("example", "size", "codes")
        ]
        fits = (
            len(indptr) == planes + 1
            and len(idle) == planes
            and 0 <= groups < 2**20
            and (groups > 0 or planes == 0)
            and (loss >= 0).all()
            and ((group >= 0) & (group < max(groups, 1))).all()
            and (alpha >= 0).all()
            and (np.bincount(group, alpha, 1) <= self.C * (1 + 1e-9)).all()
            and ((indices >= 0) & (indices < n)).all()
        )
        if not fits:
            raise ValueError("the checkpoint does not fit this problem: its planes are damaged")
        store = PlaneStore(n, self.single)
        store.add(indptr, indices.astype(np.uint32), values)
        self.primal.restore_cache(*cache)
        super()._read(state)
        self.store, self.n_planes, self.groups = store, planes, groups
        self.alpha, self.loss, self.group, self.idle = alpha, loss, group.astype(np.uint32), idle
        self.target[:] = target
        self.shown, self.best = None, math.inf
        if shown is not None:
            self.shown, self.best = aligned_array(n, self.single), best
            self.shown[:] = shown

    def _check_read(self) -> None:
        """Refuse, too, a primal of the centre that is not its own, or a bound that planes deny."""
        super()._check_read()
        if self.shown is not None and self.exact_oracle:
            with self._shown():
                primal = self.regularizer.penalty(self.shown) + self.C * self.primal.hinge(1).hinge
            if not abs(self.best - primal) <= 10 * READ * primal:
                raise ValueError(
                    f"the checkpoint's lowest primal is {self.best:g}; its weights have {primal:g}"
                )
