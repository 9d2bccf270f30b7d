"""A share in rounds of consensus: which weights it has in common with others, and what it tells.

The primal Ω(w) + C Σ_k R_k(w), with R_k the hinges of share k, has w in common.

*Own rows.* Many rows of weights are read by the examples of one share only (rare features; about
three of four rows in the corpora of the benchmarks). There the share's own dual has w = link(u), as
in one process, and nobody is told of it before the model is put together.

*Shared rows.* For those that several shares read, Douglas and Rachford's method (ADMM, in one of
its forms) gives every share a state v_k and a metric ρ_k > 0, one number for each row; the
coordinator has z, the shares the multipliers with u_k = C Σ α Δf. In a round

    z   = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk                     (`maxmargin.distributed.meeting`)
    w_k ≈ argmin C R_k(w) + ½ ‖w - (2z - v_k)‖²_ρk
    v_k ← v_k + λ (w_k - z),

where λ is an over-relaxation. The dual of the share's problem has w_k = 2z - v_k + u_k / ρ_k: there
w moves by 1/ρ times what u moves by. So the passes of the engine, from the multipliers that are
there, are the local solver as they are, and multipliers stay feasible whatever v_k is:
C Σ α l - Ω*(Σ u_k) is a lower bound in every round, and Ω(z) + C Σ R_k(z) an upper one. At a fixed
point all w_k = z and z = link(Σ u_k). It is what threads of one process do
(``native/consensus.hpp``, which has more on it); what differs is that z is at the coordinator.

*Members.* A share that never moved a weight takes no part in it: ρ_k = 0 there, and its w_k is z.
It joins when a round moves the weight for the first time, with v_k = z before the round. With a
part for all shares, those that have nothing to say would hold the weight back.

*The metric.* ρ = max(1, c √(h/2)), where h is C Σ α Δf² over all weights of a row, of the planes
that a share keeps in the round which measures it, with a steepness c that grows
(`maxmargin.solvers.joint_rounds`); before that, ρ = 1.

*Messages.* What nobody moved is not told. A share sends by how much ρ_k v_k changed, in 2 bytes and
without places: both sides have the weights in which it takes part in the same order. Who joins is
told by chunks of rows (of 16 weights of 4 bytes) and bits for the weights of a chunk. v_k is then
taken to be what the coordinator knows of it; what rounding took away is in the next message. z
comes to it in the same way, at weights that its examples read and in which some share takes part.
The sweeps are native (``native/member.hpp``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import Engine
from maxmargin.distributed.messages import Codes

__all__ = ["Agreed", "ExactSums", "Member", "Moved", "Opening", "Places", "Reads", "Shown"]


class Places(NamedTuple):
    """Some weights of shared rows.

    Attributes
    ----------
    chunks : uint32 array
        Chunks of the rows that a share has in common with others, counted row by row.
    lanes : uint64 array
        Which weights of each: bits, from the lowest one on.
    """

    chunks: NDArray[np.uint32]
    lanes: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.chunks.nbytes + self.lanes.nbytes)


class Reads(NamedTuple):
    """Which rows of weights a share needs.

    Attributes
    ----------
    rows : uint32 array
        Rows that its examples read, in the numbers of all shares, ascending.
    row_size : int
        Weights in a row.
    """

    rows: NDArray[np.uint32]
    row_size: int

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.rows.nbytes)


class Opening(NamedTuple):
    """With what a share begins, or goes on under another metric.

    Attributes
    ----------
    metric : uint8 array
        A code of ρ_k for each row that it shares; empty where ρ = 1.
    joined : Places
        Where it takes part from now on.
    sums : float32 array
        u_k wherever it takes part.
    """

    metric: NDArray[np.uint8]
    joined: Places
    sums: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.metric.nbytes + self.joined.nbytes + self.sums.nbytes)


class Agreed(NamedTuple):
    """What a share is told of z.

    Attributes
    ----------
    joined : Places
        Weights that its examples read and in which some share takes part from now on.
    change : Codes
        Of z at all such weights; empty if it did not change.
    """

    joined: Places
    change: Codes

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.joined.nbytes) + self.change.nbytes


class Shown(NamedTuple):
    """The w of shared rows that is certified.

    Attributes
    ----------
    joined : Places
        As in `Agreed`.
    values : array
        w at all weights that the share was told of.
    """

    joined: Places
    values: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.joined.nbytes + self.values.nbytes)


class Moved(NamedTuple):
    """What a share tells of a round.

    Attributes
    ----------
    change : Codes
        Of ρ_k v_k wherever it takes part.
    joined : Places
        Where it takes part from now on, and did not before.
    residual : float
        Σ ρ_k (v'_k - v_k)², without over-relaxation.
    opening : Opening or None
        With what the round began, if it was not where the last one ended.
    conjugate : float
        Ω*(u) in its own rows after the round.
    penalty : float
        Ω(w) in its own rows when the round began, if it looked then, or NaN.
    """

    change: Codes
    joined: Places
    residual: float
    opening: Opening | None
    conjugate: float
    penalty: float

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        opening = 0 if self.opening is None else self.opening.nbytes
        return int(self.joined.nbytes) + self.change.nbytes + opening


class ExactSums(NamedTuple):
    """What the multipliers of a share say of u, from scratch.

    Attributes
    ----------
    places : Places
        Weights of shared rows at which u_k is not zero.
    sums : float64 array
        u_k there.
    conjugate : float
        Ω*(u) in its own rows.
    worth : float
        As in `maxmargin.distributed.messages.Report`.
    """

    places: Places
    sums: NDArray[np.float64]
    conjugate: float
    worth: float

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.places.nbytes + self.sums.nbytes)


def _opening(metric: Any, chunks: Any, lanes: Any, sums: Any) -> Opening:
    return Opening(metric, Places(chunks, lanes), sums)


class Member:
    """The part of one share.

    Parameters
    ----------
    engine : Engine
        Of the share.
    rows : uint32 array or None
        The number that each of the engine's rows has among those of all shares, ascending; None:
        the same.
    """

    def __init__(self, engine: Engine, rows: NDArray[np.uint32] | None = None) -> None:
        self.native = _native.Member(engine)
        self._rows = rows

    def reads(self) -> Reads:
        """Return which rows its examples read."""
        rows, row_size = self.native.reads()
        return Reads(rows if self._rows is None else self._rows[rows], row_size)

    def follow(self, agreed: Agreed, show: bool) -> None:
        """Take the change of z; the engine's w is z then (`show`), or where its problem begins."""
        change = agreed.change
        self.native.follow(*agreed.joined, change.values, change.base, show)

    def open(self, C: float, steepness: float) -> Opening:
        """Begin with the multipliers that there are, at the engine's w.

        Parameters
        ----------
        C : float
            Of the engine.
        steepness : float
            c of the metric of the planes that there are; 0: ρ = 1.
        """
        return _opening(*self.native.open(C, steepness))

    def measure(self, steepness: float) -> Opening:
        """Go on with the metric of the planes that there are, which is so steep."""
        return _opening(*self.native.measure(steepness))

    def take(self, relaxation: float, opening: Opening | None, penalty: float) -> Moved:
        """Return what a round changed.

        Parameters
        ----------
        relaxation : float
            λ.
        opening : Opening or None
            With what it began.
        penalty : float
            What is known of Ω(w).
        """
        chunks, lanes, codes, base, residual = self.native.take(relaxation)
        conjugate, joined = self.native.own()[1], Places(chunks, lanes)
        return Moved(Codes(codes, base), joined, residual, opening, conjugate, penalty)
