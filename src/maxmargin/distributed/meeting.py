"""z of all shares, as the coordinator keeps it in rounds of consensus.

With Y = Σ_k ρ_k v_k and R = Σ_k ρ_k, both over the shares that take part in a weight,

    z = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk = argmin Ω(z) + ½ R z² - Y z

weight by weight. For a link with scale s, offset m, thresholds t and bounds that is

    z = clip(m + s / (1 + s R) soft(Y - R m)),

which has a closed form for every link (`maxmargin.links`). The state v_k is taken to be what was
sent of it, and the z of the shares what was sent of z. Σ u_k need not be sent as well:
ρ_k v'_k = (1 - λ) ρ_k v_k + λ (ρ_k z + u_k), and what the coordinator adds up tells the sum of the
u_k. The sweeps are native (``native/meeting.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.distributed.consensus import Agreed, Moved, Opening
from maxmargin.distributed.messages import Codes
from maxmargin.links import Link

__all__ = ["Meeting"]

Places = NDArray[np.uint32]
Floats = NDArray[np.float64]


def _widened(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with room for more than so many entries; the new ones are zero."""
    room = np.zeros(size + size // 4, array.dtype)
    room[: len(array)] = array
    return room


class _Seat:
    """What the coordinator knows of one share.

    Attributes
    ----------
    members : uint32 array
        Places among the active weights where it takes part, in the share's order.
    near : int64 array
        Places of those that its examples read.
    told : int
        Active weights that it was told of, whether it reads them or not.
    """

    def __init__(self, opening: Opening) -> None:
        self._reads = np.unpackbits(opening.rows).astype(bool)
        self._row_size = opening.row_size
        self.members: Places = np.empty(0, np.uint32)
        self.near = np.empty(0, np.int64)
        self.told = 0

    def tell(self, active: Places, change: Codes) -> Agreed:
        """Return what the share has to know of a change of z."""
        new = active[self.told :]
        read = np.flatnonzero(self._reads[new // self._row_size])
        self.near = np.concatenate([self.near, read + self.told])
        self.told = len(active)
        return Agreed(new[read], Codes(change.values[self.near], change.base))


class Meeting:
    """z, and what the shares pull at it with.

    Parameters
    ----------
    z : array
        That all shares have; it belongs to the meeting from now on.
    link : Link
        Of the regulariser, in the same layout.
    openings : sequence of Opening
        Of each share.
    """

    def __init__(self, z: NDArray[Any], link: Link, openings: Sequence[Opening]) -> None:
        self._whole, self._link = z, link
        self.seats = [_Seat(opening) for opening in openings]
        # Where no share takes part, z is link(0), which some shares may still have to be told.
        rest = link.weights(np.zeros(len(z))).astype(z.dtype) if self._has_arrays else 0
        taken = z != rest
        for opening in openings:
            taken[opening.members] = True
        # One more than the place among the active weights. Most weights have none, and memory of
        # zeros that nobody touches need not be cleared.
        self._place = np.zeros(len(z), dtype=np.int32)
        self._n = 0
        self._active: Places = np.empty(0, np.uint32)
        self._pull, self._stiffness, self._total = np.empty(0), np.empty(0), np.empty(0)
        self._held = np.empty(0, z.dtype)
        self._rest = self._least_penalty(np.flatnonzero(~taken)) if self._has_arrays else 0.0
        self._add_active([np.flatnonzero(taken).astype(np.uint32)])
        for seat, opening in zip(self.seats, openings, strict=True):
            seat.members = (self._place[opening.members] - 1).astype(np.uint32)
            self.pull[seat.members] += opening.pull
            self.stiffness[seat.members] += opening.rho
        self.residual = self.conjugate = math.nan
        self._move(1.0)

    @property
    def _has_arrays(self) -> bool:
        """Whether weights differ in their link; else link(0) is 0 and costs nothing."""
        return any(np.ndim(value) > 0 for value in vars(self._link).values())

    def _least_penalty(self, places: NDArray[Any]) -> float:
        """Ω of link(0) at some weights, which is the least that they can have."""
        link = self._link.at(places.astype(np.intp))
        return link.penalty(link.weights(np.zeros(len(places))))

    def _add_active(self, pieces: Sequence[Places]) -> None:
        """Make room for weights that a share takes part in for the first time."""
        first = self._n
        for piece in pieces:
            self._place[piece] = np.arange(self._n + 1, self._n + len(piece) + 1)
            self._n += len(piece)
        if self._n > len(self._active):
            # More than is needed now: some weights join in nearly every round.
            self._active = _widened(self._active, self._n)
            self._pull, self._total = _widened(self._pull, self._n), _widened(self._total, self._n)
            self._stiffness = _widened(self._stiffness, self._n)
            self._held = _widened(self._held, self._n)
        new = np.concatenate(pieces)
        self._active[first : self._n] = new
        self._held[first : self._n] = self._whole[new]
        places = self.active.astype(np.intp)
        self._active_link = self._link.at(places) if self._has_arrays else self._link
        self._native_link = self._active_link.native()

    def _join(self, moves: Sequence[Moved]) -> None:
        """Let shares take part in weights that they touched for the first time."""
        pieces = []
        for move in moves:
            new = move.joined[self._place[move.joined] == 0]
            self._place[new] = 1  # so that it is new for one share only
            pieces.append(new)
        if any(len(new) > 0 for new in pieces):
            if self._has_arrays:
                self._rest -= sum(self._least_penalty(new) for new in pieces)
            self._add_active(pieces)
        for seat, move in zip(self.seats, moves, strict=True):
            if len(move.joined) == 0:
                continue
            at = (self._place[move.joined] - 1).astype(np.uint32)
            seat.members = np.concatenate([seat.members, at])
            self.pull[at] += self._held[at]
            self.stiffness[at] += 1.0  # the ρ of who joins

    def _move(self, relaxation: float) -> None:
        """Find the next z, and what shares have to be told of it."""
        codes, base, penalty, conjugate = _native.hold(
            self._native_link,
            self.pull,
            self._total[: self._n],
            self.stiffness,
            relaxation,
            self.held,
        )
        self.change = Codes(codes, base)
        #: Ω(z) of the z that is told.
        self.penalty = penalty + self._rest
        #: Ω*(Σ u_k) after the last round; where no share takes part, u is 0.
        self.conjugate = conjugate - self._rest

    def tell(self) -> list[Agreed]:
        """Return what each share has to know of the last change of z; once for each change."""
        return [seat.tell(self.active, self.change) for seat in self.seats]

    def add(self, moves: Sequence[Moved], relaxation: float) -> None:
        """Take what the shares did at the present z, and choose the next one.

        Parameters
        ----------
        moves : sequence of Moved
            Of all shares.
        relaxation : float
            λ of the round.
        """
        self._join(moves)
        for seat, move in zip(self.seats, moves, strict=True):
            total, change = self._total[: self._n], move.change
            _native.add_told(total, seat.members, change.values, change.base)
        self.residual = math.sqrt(math.fsum(move.residual for move in moves))
        self._move(relaxation)

    def tell_exact(self) -> list[Agreed]:
        """Give z without the rounding of messages, and return what each share has to know of it.

        What a link holds at a bound or at zero is there then.
        """
        link, R = self._active_link, self.stiffness
        soft = self.pull - R * link.offset
        soft = np.maximum(soft - link.upper, 0) + np.minimum(soft - link.lower, 0)
        z = link.offset + link.scale / (1 + link.scale * R) * soft
        told = self.tell()
        self.held[:] = np.clip(z, link.least, link.most)
        # In 4 bytes the weight that is nearest to a bound may lie beyond it.
        held = np.clip(self.held.astype(np.float64), link.least, link.most)
        self.penalty = link.penalty(held) + self._rest
        return [
            one._replace(exact=self.held[seat.near])
            for one, seat in zip(told, self.seats, strict=True)
        ]

    @property
    def active(self) -> Places:
        """Weights that some share takes part in, or that some still have to be told of."""
        return self._active[: self._n]

    @property
    def pull(self) -> Floats:
        """Y at the active weights."""
        return self._pull[: self._n]

    @property
    def stiffness(self) -> Floats:
        """R at the active weights."""
        return self._stiffness[: self._n]

    @property
    def held(self) -> NDArray[Any]:
        """The z that shares have once they were told, at the active weights."""
        return self._held[: self._n]

    @property
    def z(self) -> NDArray[Any]:
        """The same at all weights."""
        z = self._whole.copy()
        z[self.active] = self.held
        return z

    def give_z(self) -> NDArray[Any]:
        """Return the same without a copy; the meeting is over then."""
        self._whole[self.active] = self.held
        return self._whole
