"""What a share keeps for rounds of consensus: its centre v_k, its metric and its own u_k.

The primal Ω(w) + C Σ_k R_k(w), with R_k the hinges of share k, has w in common. Douglas and
Rachford's method (ADMM, in one of its forms) gives every share a state v_k and a metric ρ_k > 0,
one number for each weight; the coordinator has z, the shares the multipliers with
u_k = C Σ α Δf. In a round

    z   = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk                     (`maxmargin.distributed.meeting`)
    w_k ≈ argmin C R_k(w) + ½ ‖w - (2z - v_k)‖²_ρk
    v_k ← v_k + λ (z + u_k / ρ_k - v_k),

where λ is an over-relaxation. The dual of the share's problem has w_k = 2z - v_k + u_k / ρ_k: it is
that of an engine whose link is this line for each weight. So the passes of the engine, from the
multipliers that are there, are the local solver as they are, and multipliers stay feasible whatever
v_k is: C Σ α l - Ω*(Σ u_k) is a lower bound in every round, and Ω(z) + C Σ R_k(z) an upper one. At
a fixed point all w_k = z and z = link(Σ u_k).

*Members.* A share that never touched a weight takes no part in it: ρ_k = 0 there, and its w_k is z.
It joins when a round moves u_k there for the first time, with ρ_k = 1 and v_k = z before the
round. With one metric for all shares, those that have nothing to say would hold the weight back.

*The metric.* Let the hinges of a share have the curvature h along a weight, and K shares have it. A
difference between the shares shrinks by h / (h + ρ) in a round, what they do together by
(ρ² + h/K) / ((ρ + 1/K) (ρ + h)): large ρ for the first, ρ near √(h / K) for the second. With one ρ
for all weights the frequent ones or the rare ones are slow. Here ρ = max(1, c √h), with
h = C Σ α Δf², which the planes that are kept tell for any structure.

*Work.* A round of a share has three sweeps over its members and those weights that its examples
read (``native/centre.hpp``), and none over all weights.

*Messages.* A share sends by how much ρ_k v_k changed, in 2 bytes and without places: both sides
have its members in the same order. v_k is then taken to be what the coordinator knows of it; what
rounding took away is in the next message. z comes to it in the same way, at the weights that its
examples read and some share takes part in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import Engine
from maxmargin.distributed.messages import Codes

__all__ = ["STEEPNESS", "Agreed", "Centre", "Moved", "Opening"]

#: c of the metric.
STEEPNESS = 14.0


class Opening(NamedTuple):
    """With what a share begins.

    Attributes
    ----------
    members : uint32 array
        Weights that it takes part in.
    pull, rho : float32 arrays
        ρ_k v_k and ρ_k there.
    rows : uint8 array
        A bit for each row of weights: whether its examples read it.
    row_size : int
        Weights in a row.
    """

    members: NDArray[np.uint32]
    pull: NDArray[np.float32]
    rho: NDArray[np.float32]
    rows: NDArray[np.uint8]
    row_size: int

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        arrays = (self.members, self.pull, self.rho, self.rows)
        return sum(int(array.nbytes) for array in arrays)


class Agreed(NamedTuple):
    """What a share is told of z.

    Attributes
    ----------
    joined : uint32 array
        Weights that its examples read and in which some share takes part from now on.
    change : Codes
        Of z at all such weights, the new ones last.
    exact : array or None
        z itself there, without the rounding of messages, where it is to be certified.
    """

    joined: NDArray[np.uint32]
    change: Codes
    exact: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        exact = 0 if self.exact is None else int(self.exact.nbytes)
        return int(self.joined.nbytes) + self.change.nbytes + exact


class Moved(NamedTuple):
    """What a share tells of a round.

    Attributes
    ----------
    change : Codes
        Of ρ_k v_k at all of its members, the new ones last.
    joined : uint32 array
        Weights that it takes part in from now on; ρ_k v_k was z there.
    residual : float
        Σ ρ_k (v'_k - v_k)², without over-relaxation.
    """

    change: Codes
    joined: NDArray[np.uint32]
    residual: float

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.joined.nbytes) + self.change.nbytes


class Centre:
    """The state of one share.

    Parameters
    ----------
    engine : Engine
        Of the share. From `open` on its link is that of the centre, until it gets another one.
    """

    def __init__(self, engine: Engine) -> None:
        self._sweeps = _native.Centre(engine)
        rows, self._row_size = engine.rows_read()
        self._rows = np.packbits(rows)

    def open(self, placed: bool, C: float) -> Opening:
        """Begin with the multipliers that there are.

        Parameters
        ----------
        placed : bool
            Whether z is the engine's w; else it stays where it is.
        C : float
            Of the engine.
        """
        sweeps = self._sweeps
        sweeps.open(placed, C, STEEPNESS)
        pull = sweeps.pull.astype(np.float32)
        return Opening(sweeps.members, pull, sweeps.rho, self._rows, self._row_size)

    def follow(self, agreed: Agreed) -> None:
        """Take the change of z; the engine's w is z then, unless its link is another one."""
        self._sweeps.follow(agreed.joined, agreed.change.values, agreed.change.base)
        if agreed.exact is not None:
            self._sweeps.take_z(agreed.exact)

    def aim(self) -> None:
        """Give the engine the w at which the share's problem begins."""
        self._sweeps.aim()

    def take(self, relaxation: float) -> Moved:
        """Take u_k after a round.

        Parameters
        ----------
        relaxation : float
            λ.
        """
        codes, base, joined, residual = self._sweeps.take(relaxation)
        return Moved(Codes(codes, base), joined, residual)

    @property
    def z(self) -> NDArray[Any]:
        """A copy of z, which is old where no example of the share reads it."""
        return self._sweeps.z
