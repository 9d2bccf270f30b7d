"""What primal and cutting-plane solvers move: a w of its own, and the best dual bound so far.

The dual engine makes w from multipliers. The solvers here keep w itself; from the outputs that
their oracles find they add up multipliers (any weighted mean of an example's outputs is a set
of multipliers), and `Regularizer.dual_bound` turns those into a lower bound of the primal. So they
have a certificate as well, and the same driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Primal, Problem
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.machine import Machine

__all__ = ["PrimalMachine", "PrimalSolver", "read_array"]

#: An output is missed if it is better than what was found by more than this share: less may be the
#: rounding of a user's argmax that computes with 4-byte numbers.
MISSED = 1e-6

#: By how much sums of a checkpoint, of 4-byte numbers, may contradict the oracle.
READ = 1e-4


class PrimalMachine:
    """A w, the oracle under it, and the best lower bound of the primal that was found.

    Parameters
    ----------
    problem : Problem
        The training problem.
    C : float
        Weight of the loss.
    regularizer : Regularizer
        Ω.
    single : bool
        Whether weights are 4-byte.
    rescale : str
        What the loss scales: "margin", "slack" or "none".
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
        self.primal = Primal(problem, single, rescale)
        self.rescale = rescale
        # Of the last certificate: by how much an oracle may have missed its best output, and an
        # example where it did miss a better one.
        self.oracle_error_bound = 0.0
        self.missed: int | None = None
        self.exact_oracle = problem.exact_oracle
        self.made_as = (str(self.primal.weights.dtype), int(self.primal.weights.size))
        self.C = C
        self.regularizer = regularizer
        self.bound = 0.0  # all multipliers on the truths
        self.n_planes = 0
        self.threads = 1  # that share sums over weights; no result depends on it
        self.shown: NDArray[Any] | None = None  # the model, where it is not the last iterate

    @property
    def weights(self) -> Any:
        """The weights of the model, in the native layout."""
        return self.primal.weights if self.shown is None else self.shown

    @property
    def n_weights(self) -> int:
        """How many these are."""
        return self.made_as[1]

    @property
    def weight_bytes(self) -> int:
        """Bytes of each."""
        return int(self.primal.weights.itemsize)

    @contextmanager
    def _shown(self, weights: NDArray[Any] | None = None) -> Iterator[None]:
        """Put the model, or other weights, in the place of the last iterate for a moment."""
        weights = self.shown if weights is None else weights
        if weights is None:
            yield
            return
        last = self.primal.weights.copy()
        self.primal.weights[:] = weights
        try:
            yield
        finally:
            self.primal.weights[:] = last

    def write(self, weights: NDArray[Any]) -> None:
        """Replace the weights."""
        self.primal.weights[:] = weights
        self.primal.written()

    # What is learned is w itself, in the bytes that it has: no multipliers to make it anew from.
    widened: ClassVar[bool] = False
    widens: ClassVar[bool] = False

    def rounding(self, threads: int = 1) -> float:
        """Return 0: nothing is known of it."""
        return 0.0

    def widen(self) -> None:
        """Refuse; see `widens`."""
        raise NotCompatibleError("a w without multipliers keeps the type that it has")

    def begin(self) -> None:
        """Get ready for a new run from the present weights."""

    def offer(self, u: NDArray[Any], loss: float) -> float:
        """Take multipliers, as u = C Σ α Δf and C Σ α l; return by how much the bound rose."""
        return self.raise_bound(self.regularizer.dual_bound(u, loss))

    def raise_bound(self, value: float) -> float:
        """Take a lower bound of the primal; return by how much the best one rose."""
        gain = max(0.0, value - self.bound)
        self.bound += gain
        return gain

    def known_hinge(self) -> float:
        """Return a lower bound of Σ weight_i max F_i at the last iterate, from what is kept.

        An exact oracle never finds less; a user's may.
        """
        return 0.0

    def at_least(self, hinge: float) -> float:
        """Return the Σ weight_i max F_i that a user's oracle found, or more if more is known."""
        return hinge if self.exact_oracle else max(hinge, self.known_hinge())

    def missed_slacks(self, slacks: NDArray[np.float64]) -> tuple[float, int | None]:
        """Tell what the oracle missed at the last iterate.

        Parameters
        ----------
        slacks : array of shape (n_examples,)
            What it found.

        Returns
        -------
        tuple of float and int or None
            By how much more the sum of the slacks is, and an example where that is so.
        """
        found = float(self.primal.example_weights @ slacks)
        more = self.known_hinge() - found
        if more > MISSED * (abs(found) + abs(self.known_hinge())):
            return more, Certificate.UNKNOWN
        return 0.0, None

    def objective(self, threads: int = 1) -> float:
        """Return the primal at `weights`."""
        with self._shown():
            hinge = self.at_least(self.primal.hinge(threads).hinge)
        primal = self.regularizer.penalty(self.weights) + self.C * hinge
        return primal if self.exact_oracle else max(primal, self.bound)

    def dual(self) -> float:
        """Return the best lower bound so far."""
        return self.bound

    def certify(self, threads: int = 1) -> tuple[float, float]:
        """Return the primal of `weights`, in 8-byte arithmetic, and the best bound."""
        return self.primal_of(self.weights, threads), self.bound

    def primal_of(self, weights: NDArray[Any], threads: int = 1) -> float:
        """Return the primal of any weights, in 8-byte arithmetic."""
        with self._shown(weights):
            hinge = self.primal.exact_hinge(threads)
            self.oracle_error_bound, self.missed = self.primal.oracle_error_bound, None
            if not self.exact_oracle:
                more, self.missed = self.missed_slacks(self.primal.slacks())
                hinge += more
        primal = self.regularizer.penalty(weights) + self.C * hinge
        if not self.exact_oracle and self.bound > primal * (1 + MISSED):
            # No primal is below the bound, which outputs that are not kept have proven.
            primal, self.missed = self.bound, Certificate.UNKNOWN
        return primal

    def size(self) -> dict[str, int]:
        """Return how much is kept."""
        return {"parts": 0, "planes": self.n_planes, "bytes": self.primal.nbytes}

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""
        return {**self.primal.state(), "bound": np.array([self.bound])}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`; a ValueError where it cannot be true."""
        self._read(state)
        self._check_read()

    def _read(self, state: dict[str, Any]) -> None:
        """Take arrays of a checkpoint, each checked by itself."""
        self.bound = float(read_array(state, "bound", 1)[0])
        self.primal.restore(state)

    def _check_read(self) -> None:
        """Refuse bounds and sums that contradict what the oracle finds at the weights.

        They cannot be computed anew, as the outputs they come from are not kept. But no bound is
        above a primal, and no mean of planes above what the oracle finds.
        """
        if not self.exact_oracle:
            return  # whose own answers may contradict it
        with self._shown():
            hinge = self.primal.exact_hinge(1)
            missed, _ = self.missed_slacks(self.primal.slacks())
        primal = self.regularizer.penalty(self.weights) + self.C * hinge
        if not 0 <= self.bound <= primal * (1 + READ):
            raise ValueError(
                f"the checkpoint's bound is {self.bound:g}; expected at most {primal:g}, the "
                "primal of its weights"
            )
        if self.C * missed > READ * primal:
            raise ValueError(
                "the checkpoint's planes are damaged: their loss is above what the oracle finds"
            )

    def solves(self, problem: Problem) -> bool:
        """Whether it was made for this problem."""
        return self.primal.solves(problem)

    def after_pass(self, record: PassRecord, seconds: float | None) -> None:
        """Nothing that a pass leaves behind keeps training from going on."""


class PrimalSolver(Solver):
    """A solver that keeps w instead of multipliers."""

    #: What it moves.
    machine: ClassVar[type[PrimalMachine]] = PrimalMachine

    kernels: ClassVar[bool] = False
    linear_terms: ClassVar[bool] = False

    def start(
        self, problem: Problem, C: float, regularizer: Regularizer, single: bool
    ) -> PrimalMachine:
        """Return weights of zero."""
        return self.machine(problem, C, regularizer, single)

    def continue_from(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
        """Keep the weights; a bound for another objective is forgotten."""
        if type(machine) is not self.machine:
            raise NotCompatibleError(
                f"solver {self.name!r} cannot go on from what another kind of solver left"
            )
        if machine.C != C or machine.regularizer != regularizer:
            machine.bound = 0.0
        machine.C, machine.regularizer = C, regularizer
        machine.begin()


def read_array(
    state: dict[str, Any], name: str, size: int | None = None, *, kinds: str = "fiu"
) -> NDArray[Any]:
    """Read an array of finite 8-byte numbers, or of integers (kinds "iu"), from a checkpoint."""
    found = state.get(name)
    if (
        not isinstance(found, np.ndarray)
        or found.ndim != 1
        or found.dtype.kind not in kinds
        or (size is not None and len(found) != size)
        or not np.isfinite(found).all()
    ):
        raise ValueError(f"the checkpoint's array {name!r} is missing or damaged")
    return found.astype(np.float64) if "f" in kinds else found
