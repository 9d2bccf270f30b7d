"""z of all shares, as the coordinator keeps it in rounds of consensus.

With Y = Σ_k ρ_k v_k and R = Σ_k ρ_k, both over the shares that take part in a weight,

    z = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk = argmin Ω(z) + ½ R z² - Y z

weight by weight. For a link with scale s, offset m, thresholds t and bounds that is

    z = clip(m + s / (1 + s R) soft(Y - R m)),

which has a closed form for every link (`maxmargin.links`). Shares send changes of ρ_k v_k in 4
bytes, and get the change of z in 4 bytes; the state v_k is taken to be what was sent. So Σ u_k need
not be sent as well: ρ_k v'_k = (1 - λ) ρ_k v_k + λ (ρ_k z + u_k), and what the coordinator adds up
tells the sum of the u_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.distributed.consensus import DEPTH, LEAST, Moved
from maxmargin.distributed.messages import SparseVector
from maxmargin.distributed.mixing import Mixing
from maxmargin.links import Link

__all__ = ["Meeting", "held_weights"]

Floats = NDArray[np.float64]


def held_weights(link: Link, pull: Floats, stiffness: Floats) -> Floats:
    """Return argmin Ω(z) + ½ R z² - Y z.

    Parameters
    ----------
    link : Link
        Of Ω.
    pull, stiffness : array
        Y and R.
    """
    inner = pull - stiffness * link.offset
    soft = np.maximum(inner - link.upper, 0) + np.minimum(inner - link.lower, 0)
    step = link.scale / (1 + link.scale * stiffness) * soft
    z: Floats = np.clip(link.offset + step, link.least, link.most)
    return z


class Meeting:
    """z, and what the shares pull at it with.

    Parameters
    ----------
    z : array
        That all shares have.
    link : Link
        Of the regulariser, in the same layout.
    openings : sequence
        Of each share, as ``Centre.opening`` gives them.
    """

    def __init__(
        self,
        z: NDArray[Any],
        link: Link,
        openings: Sequence[tuple[SparseVector, NDArray[np.float32]]],
    ) -> None:
        self.z, self.link = z.copy(), link
        taken = np.zeros(len(z), dtype=bool)
        for pulled, _ in openings:
            taken[pulled.indices] = True
        self.active = np.flatnonzero(taken)
        self._link = link.at(self.active)
        self._place = np.full(len(z), -1, dtype=np.int64)
        self._place[self.active] = np.arange(len(self.active))
        self.pull = np.zeros(len(self.active))
        self.stiffness = np.zeros(len(self.active))
        for pulled, rho in openings:
            at = self._place[pulled.indices]
            self.pull[at] += pulled.values
            self.stiffness[at] += rho
        self.mixed = self.pull
        self.sums = np.zeros(len(self.active))
        self.mixing = Mixing()
        self.gamma: tuple[float, ...] | None = None
        self._differences: list[Floats] = []
        self.residual = np.nan
        self._started = False
        # Where no share takes part, z is link(0), from the first round on.
        idle = np.flatnonzero(~taken)
        self._idle = self._least_penalty(idle)
        told = (link.at(idle).weights(np.zeros(len(idle))) - self.z[idle]).astype(np.float32)
        self.z[idle] += told
        left = SparseVector(idle[told != 0].astype(np.uint32), told[told != 0])
        self.change = left
        self._move()
        if len(left.indices):
            both = np.concatenate([left.indices, self.change.indices])
            order = np.argsort(both)
            values = np.concatenate([left.values, self.change.values])
            self.change = SparseVector(both[order], values[order])

    def _least_penalty(self, places: NDArray[np.intp]) -> float:
        """Ω of link(0) at some weights, which is the least that they can have."""
        link = self.link.at(places)
        return link.penalty(link.weights(np.zeros(len(places))))

    def _activate(self, moves: Sequence[Moved]) -> None:
        """Make room for weights that a share takes part in for the first time."""
        joined = np.unique(np.concatenate([move.joined for move in moves])).astype(np.intp)
        new = joined[self._place[joined] < 0]
        if len(new) == 0:
            return
        self._idle -= self._least_penalty(new)
        active = np.sort(np.concatenate([self.active, new]))
        places = np.searchsorted(active, self.active)

        def wide(array: Floats) -> Floats:
            room = np.zeros(len(active))
            room[places] = array
            return room

        self.pull, self.stiffness = wide(self.pull), wide(self.stiffness)
        self.mixed = wide(self.mixed)
        self._differences = [wide(array) for array in self._differences]
        self.active, self._link = active, self.link.at(active)
        self._place[active] = np.arange(len(active))

    def _move(self) -> None:
        """Find the next z, and what shares have to be told of it."""
        z = held_weights(self._link, self.mixed, self.stiffness)
        held = self.z[self.active]
        told = (z - held).astype(np.float32)
        self.z[self.active] = held + told.astype(self.z.dtype)
        moved = told != 0
        self.change = SparseVector(self.active[moved].astype(np.uint32), told[moved])

    @property
    def penalty(self) -> float:
        """Ω(z) of the z that was sent."""
        # Rounding to 4 bytes may leave the bounds of a weight.
        held = self.z[self.active].astype(np.float64)
        z = np.clip(held, self._link.least, self._link.most)
        return self._link.penalty(z) + self._idle

    @property
    def conjugate(self) -> float:
        """Ω*(Σ u_k) after the last round; where no share takes part, u is 0."""
        return self._link.conjugate(self.sums) - self._idle

    def add(self, moves: Sequence[Moved], relaxation: float) -> None:
        """Take what the shares did at the present z, and choose the next one.

        Parameters
        ----------
        moves : sequence of Moved
            Of all shares.
        relaxation : float
            λ of the round.
        """
        self._activate(moves)
        total, fresh = np.zeros(len(self.active)), np.zeros(len(self.active))
        before = self.mixed.copy()
        z = self.z[self.active].astype(np.float64)
        for move in moves:
            total[self._place[move.change.indices]] += move.change.values
            if len(move.joined):
                told = np.searchsorted(move.change.indices, move.joined)
                at = self._place[move.joined]
                fresh[at] += move.change.values[told]
                before[at] += LEAST * z[at]
                self.stiffness[at] += LEAST
        self.pull = self.pull + total
        together = (self.pull - (1 - relaxation) * before) / relaxation
        self.sums = together - self.stiffness * z
        products = np.sum([move.products for move in moves], axis=0)
        self.residual = float(np.sqrt(max(products[-1, -1], 0.0)))
        if self._started:
            self._differences = [*self._differences, total - fresh][-DEPTH:]
        self._started = True
        self.gamma = self.mixing.decide(products)
        self.mixed = self.pull
        if self.gamma is None:
            self._differences, self._started = [], False
        else:
            for weight, difference in zip(self.gamma, self._differences, strict=True):
                self.mixed = self.mixed - weight * difference
        self._move()
