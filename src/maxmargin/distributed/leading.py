"""What the ways in which shares come together see of the coordinator."""

from __future__ import annotations

import math
from typing import Any, Protocol

from maxmargin.distributed.group import ShareGroup
from maxmargin.distributed.messages import Placed, Report, Task
from maxmargin.distributed.records import RoundRecord
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.sdm import SDM

__all__ = ["Lead"]


class Lead(Protocol):
    """The coordinator of a training (`maxmargin.distributed.coordinator`).

    Attributes
    ----------
    group : ShareGroup
        The shares.
    solver : SDM
        The same as the shares have.
    C : float
        Weight of the loss.
    regularizer : Regularizer
        Ω, in the layout of the engine's weights.
    gap, aim : float
        The relative gap asked for, and the one at which a certificate is worth its cost.
    dtype : str
        Of the weights.
    n_weights, n_examples : int
        Of all shares.
    dual : float
        After the last round.
    open : float or None
        P - D, as far as it is known.
    parts : int
        That all shares keep.
    bytes_sent : int
        So far.
    history : list of RoundRecord
        A record for each round.
    """

    group: ShareGroup
    solver: SDM
    C: float
    regularizer: Regularizer
    gap: float
    aim: float
    dtype: str
    n_weights: int
    n_examples: int
    dual: float
    open: float | None
    parts: int
    bytes_sent: int
    history: list[RoundRecord]

    def near(self, factor: float) -> bool:
        """Whether the gap, as far as it is known, is within so many times the one asked for."""

    def noted(
        self,
        task: Task,
        reports: list[Report],
        *,
        penalty: float,
        before: float | None,
        conjugate: float,
        down: int,
        begin: float,
        residual: float = math.nan,
    ) -> RoundRecord:
        """Take what a round tells, and record it."""

    def judged(
        self, placed: list[Placed], penalty: float, dual: float
    ) -> tuple[float, float, float, Any]:
        """Return primal, dual, and how far the oracle can be trusted, at a w that was placed."""
