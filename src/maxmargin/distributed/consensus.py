"""What a share keeps for rounds of consensus: its centre v_k, its metric and its own u_k.

The primal Ω(w) + C Σ_k R_k(w), with R_k the hinges of share k, has w in common. Douglas and
Rachford's method (ADMM, in one of its forms) gives every share a state v_k and a metric ρ_k > 0,
one number for each weight; the coordinator has z, the shares the multipliers with
u_k = C Σ α Δf. In a round

    z   = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk                     (`maxmargin.distributed.meeting`)
    w_k ≈ argmin C R_k(w) + ½ ‖w - (2z - v_k)‖²_ρk
    v_k ← v_k + λ (z + u_k / ρ_k - v_k),

where λ is an over-relaxation. The dual of the share's problem has w_k = 2z - v_k + u_k / ρ_k: it is
that of an engine whose link has the scale 1 / ρ_k and whose u stands at ρ_k (2z - v_k) + u_k. So
the passes of the engine, from the multipliers that are there, are the local solver as they are, and
multipliers stay feasible whatever v_k is: C Σ α l - Ω*(Σ u_k) is a lower bound in every round, and
Ω(z) + C Σ R_k(z) an upper one. At a fixed point all w_k = z and z = link(Σ u_k).

*Members.* A share that never touched a weight takes no part in it: ρ_k = 0 there, and its w_k is z.
It joins when a round moves u_k there for the first time, with ρ_k = 1 and v_k = z before the
round. With one metric for all shares, those that have nothing to say would hold the weight back.

*The metric.* Let the hinges of a share have the curvature h along a weight, and K shares have it. A
difference between the shares shrinks by h / (h + ρ) in a round, what they do together by
(ρ² + h/K) / ((ρ + 1/K) (ρ + h)): large ρ for the first, ρ near √(h / K) for the second. With one ρ
for all weights the frequent ones or the rare ones are slow. Here ρ = max(1, c √h), with
h = C Σ α Δf², which the planes that are kept tell for any structure.

*Messages.* A share sends by how much ρ_k v_k changed, in 4 bytes. v_k is then taken to be what the
coordinator knows of it; what rounding took away is in the next message.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.distributed.messages import SparseVector
from maxmargin.distributed.mixing import Memory

__all__ = ["Centre", "Moved", "metric_of"]

Floats = NDArray[np.float64]

#: ρ of weights that are touched later, and the least of all others.
LEAST = 1.0
#: c of the metric.
STEEPNESS = 8.0
#: Differences of which the memory has at most so many.
DEPTH = 8


def metric_of(planes: tuple[Any, ...], C: float, size: int) -> Floats:
    """Return ρ of each weight, by what `Engine.planes` has.

    Parameters
    ----------
    planes : tuple of arrays
        Examples, losses, multipliers and sparse rows of Δf.
    C : float
        Weight of the loss.
    size : int
        Number of weights.
    """
    _, _, alpha, indptr, indices, values = planes
    mass = np.repeat(np.asarray(alpha), np.diff(indptr)) * np.square(values)
    h = C * np.bincount(indices, weights=mass, minlength=size)
    # Both sides have it in 4 bytes.
    rho = np.maximum(LEAST, STEEPNESS * np.sqrt(h)).astype(np.float32)
    found: Floats = rho.astype(np.float64)
    return found


class Moved(NamedTuple):
    """What a share tells of a round.

    Attributes
    ----------
    change : SparseVector
        Of ρ_k v_k; all of it where it joined.
    joined : uint32 array
        Weights that it takes part in from now on.
    products : array
        Of its piece of the residuals (`maxmargin.distributed.mixing`).
    """

    change: SparseVector
    joined: NDArray[np.uint32]
    products: Floats


class Centre:
    """The state of one share, over the weights that it takes part in.

    Parameters
    ----------
    z : array
        What all shares have.
    own : array
        u_k.
    rho : array
        The metric of each weight.
    """

    def __init__(self, z: NDArray[Any], own: NDArray[Any], rho: Floats) -> None:
        self.z = z
        self._held = own != 0
        self.members = np.flatnonzero(self._held)
        self.rho = rho[self.members]
        # A plane may have touched a weight whose own u is zero all the same: it is no member.
        self.rho_of_all = np.full(len(z), LEAST)
        self.rho_of_all[self.members] = self.rho
        self.own = own[self.members].astype(np.float64)
        wanted = self.rho * z[self.members] + self.own
        self.pull = wanted.astype(np.float32).astype(np.float64)
        self.v = self.pull / self.rho
        self.memory = Memory(DEPTH)
        self._level: NDArray[Any] = (z * self.rho_of_all).astype(z.dtype)

    def follow(self, change: SparseVector) -> None:
        """Take the change of z."""
        change.add_to(self.z)
        at = change.indices
        self._level[at] = self.z[at] * self.rho_of_all[at]

    def opening(self) -> tuple[SparseVector, NDArray[np.float32]]:
        """Return ρ_k v_k, and ρ_k at the same weights."""
        indices = self.members.astype(np.uint32)
        return SparseVector(indices, self.pull.astype(np.float32)), self.rho.astype(np.float32)

    def mix(self, gamma: tuple[float, ...] | None) -> None:
        """Go to the state that the coordinator chose; None: to v', and forget what was before."""
        self.v = self.pull / self.rho
        if gamma is None:
            self.memory.forget()
        elif gamma:
            self.v = self.memory.mixed(self.v, gamma)

    def level(self) -> NDArray[Any]:
        """Return the u of the engine at which its w is z."""
        return self._level

    def base(self) -> NDArray[Any]:
        """Return the u of the engine at which the round begins."""
        base = self._level.copy()
        held = self.z[self.members].astype(np.float64)
        base[self.members] = self.rho * (2 * held - self.v) + self.own
        return base

    def take(self, own: NDArray[Any], relaxation: float) -> Moved:
        """Take u_k after a round.

        Parameters
        ----------
        own : array
            u_k, made of the multipliers.
        relaxation : float
            λ.
        """
        fresh = self._join(own)
        self.own = own[self.members].astype(np.float64)
        held = self.z[self.members].astype(np.float64)
        if fresh is not None:
            self.v[fresh] = held[fresh]
        wanted = self.v + relaxation * (held + self.own / self.rho - self.v)
        told = (self.rho * wanted - self.pull).astype(np.float32)
        self.pull += told
        self.memory.add(told / self.rho, self.pull / self.rho - self.v, fresh)
        sent = told != 0 if fresh is None else (told != 0) | fresh
        joined = self.members[:0] if fresh is None else self.members[fresh]
        message = SparseVector(self.members[sent].astype(np.uint32), told[sent])
        return Moved(message, joined.astype(np.uint32), self.memory.products(self.rho))

    def _join(self, own: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Take part in weights that were never touched; return which these are."""
        new = (own != 0) & ~self._held
        if not new.any():
            return None
        self._held |= new
        members = np.flatnonzero(self._held)
        places = np.searchsorted(members, self.members)
        fresh = np.ones(len(members), dtype=bool)
        fresh[places] = False

        def wide(array: Floats) -> Floats:
            new = np.zeros(len(members))
            new[places] = array
            return new

        self.pull, self.v = wide(self.pull), wide(self.v)
        self.memory.spread(places, len(members))
        self.members, self.rho = members, self.rho_of_all[members]
        return fresh
