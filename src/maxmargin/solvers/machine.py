"""What every solver moves, as the driver sees it.

A *machine* is the native dual engine (`maxmargin.solvers.dual`), or for solvers that keep no
multipliers a w of its own (`maxmargin.solvers.primal`).
"""

from __future__ import annotations

from typing import Any, Protocol

from maxmargin._native import Problem
from maxmargin.solvers.history import PassRecord

__all__ = ["Machine"]


class Machine(Protocol):
    """What a solver moves, as the driver sees it: weights with a primal and a dual bound."""

    @property
    def C(self) -> float:  # noqa: N802
        """Weight of the loss."""

    @property
    def weights(self) -> Any:
        """The present weights, in the native layout."""

    @property
    def n_weights(self) -> int:
        """How many these are, without a look at them."""

    @property
    def weight_bytes(self) -> int:
        """Bytes of each."""

    @property
    def oracle_error_bound(self) -> float:
        """By how much an oracle may have missed its best output, in the last certificate."""

    @property
    def missed(self) -> int | None:
        """An example whose oracle missed a better output, in the last certificate; or None."""

    def objective(self, threads: int = 1) -> float:
        """Return the primal at the present weights."""

    def dual(self) -> float:
        """Return the dual bound at the present state."""

    def certify(self, threads: int = 1) -> tuple[float, float]:
        """Return primal and dual of the model, from scratch."""

    def primal_of(self, weights: Any, threads: int = 1) -> float:
        """Return the primal of any weights under the objective that is trained, from scratch.

        Slacks, rescaling, regulariser and the weights of examples are those of training.
        """

    def size(self) -> dict[str, int]:
        """Return counts, "planes" among them."""

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""

    def solves(self, problem: Problem) -> bool:
        """Whether it was made for this problem."""

    @property
    def made_as(self) -> tuple[str, int]:
        """Type and number of the weights with which it was made, whatever they are by now."""

    @property
    def widened(self) -> bool:
        """Whether 8-byte weights have taken the place of 4-byte ones."""

    @property
    def widens(self) -> bool:
        """Whether weights are 4-byte ones, in whose place `widen` can put 8-byte ones."""

    def rounding(self, threads: int = 1) -> float:
        """Return how much of the primal is rounding of the weights; the state stays as it is."""

    def widen(self) -> None:
        """Go on with 8-byte weights from the same multipliers."""

    def after_pass(self, record: PassRecord, seconds: float | None) -> None:
        """Look at the state after a pass that was recorded; raise if training cannot succeed.

        Parameters
        ----------
        record : PassRecord
            Of the pass just made.
        seconds : float or None
            Time that is left, if it is limited.
        """
