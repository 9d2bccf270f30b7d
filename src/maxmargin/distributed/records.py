"""What a distributed training records of its rounds, and what it gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import History, PassRecord

__all__ = ["Outcome", "RoundRecord"]


@dataclass(frozen=True)
class RoundRecord(PassRecord):
    """What one round did; ``n_pass`` is its number.

    Attributes
    ----------
    passes : int
        Passes of the share that made the most.
    sigma : float
        σ of the round; 1 in rounds of consensus.
    residual : float
        By how much a round of consensus moves the centres of the shares; NaN in others.
    bytes_up, bytes_down : int
        Bytes that came from the shares, and that went to them.
    shares : int
        Number of shares.
    recovered : int
        Shares that had to be made anew in this round.
    share_seconds : float
        Time of the share that took longest.
    """

    passes: int = 0
    sigma: float = 0.0
    residual: float = math.nan
    bytes_up: int = 0
    bytes_down: int = 0
    shares: int = 0
    recovered: int = 0
    share_seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a distributed training gives back; as ``SolveResult``, without an engine.

    Attributes
    ----------
    weights : ndarray
        In the engine's layout.
    certificate : Certificate
        Of these weights, over all shares.
    history : History
        A `RoundRecord` for each round.
    converged : bool
        Whether the certificate is within the gap asked for.
    stop_reason : str
        Why training ended.
    n_passes : int
        Number of rounds.
    bytes_sent : int
        Of all rounds and certificates, both ways.
    """

    weights: Any
    certificate: Certificate
    history: History
    converged: bool
    stop_reason: str
    n_passes: int
    bytes_sent: int
