"""z of all shares, as the coordinator keeps it in rounds of consensus.

With Y = Σ_k ρ_k v_k and R = Σ_k ρ_k, both over the shares that take part in a weight,

    z = argmin Ω(z) + Σ_k ½ ‖z - v_k‖²_ρk = argmin Ω(z) + ½ R z² - Y z

weight by weight. For a link with scale s, offset m, thresholds t and bounds that is

    z = clip(m + s / (1 + s R) soft(Y - R m)),

which has a closed form for every link (`maxmargin.links`). The coordinator has arrays of those
chunks of shared rows only in which some share takes part; own rows of shares (`consensus`) are none
of its business before the model is put together. The state v_k is taken to be what was sent of it,
and the z of the shares what was sent of z. Σ u_k need not be sent as well: shares tell
λ ρ_k (w_k - z) = λ (u_k + ρ_k z - ρ_k v_k), and what the coordinator adds up tells the sum of the
u_k. The sweeps are native (``native/meeting.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.distributed.consensus import Agreed, ExactSums, Moved, Places, Reads, Shown
from maxmargin.distributed.messages import Codes
from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link

__all__ = ["Meeting"]


class Meeting:
    """z, and what the shares pull at it with.

    Parameters
    ----------
    link : Link
        Of the regulariser, in the layout of all weights.
    n_weights : int
        How many there are.
    reads : sequence of Reads
        Which rows each share needs.
    dtype : str
        Of the weights.
    """

    def __init__(self, link: Link, n_weights: int, reads: Sequence[Reads], dtype: str) -> None:
        sizes = {one.row_size for one in reads}
        if len(sizes) > 1:
            raise NotCompatibleError(f"shares of the data have rows of different sizes ({sizes})")
        rows = [one.rows for one in reads]
        (row_size,) = sizes
        self._link, self.dtype, self.n_weights = link, dtype, n_weights
        self.native = _native.Meeting(link.native(), n_weights, row_size, rows, dtype == "float32")
        self.n_shares = len(reads)
        self.residual = math.nan

    def common(self) -> list[NDArray[np.uint8]]:
        """Return for each share which of the rows that it reads others read, too."""
        return [self.native.common(k) for k in range(self.n_shares)]

    def forget(self) -> None:
        """Begin with shares that know of nothing."""
        for k in range(self.n_shares):
            self.native.forget(k)

    def tell(self) -> list[Agreed]:
        """Return what each share has to know of the last change of z; once for each change."""
        told = [self.native.tell(k) for k in range(self.n_shares)]
        return [Agreed(Places(*one[:2]), Codes(*one[2:])) for one in told]

    def add(self, moves: Sequence[Moved], relaxation: float, anew: bool) -> None:
        """Take what the shares did at the present z, and choose the next one.

        Parameters
        ----------
        moves : sequence of Moved
            Of all shares.
        relaxation : float
            λ of the round.
        anew : bool
            Whether they began anew; else some may have another metric.
        """
        native = self.native
        if anew:
            native.begin()
        elif moves[0].opening is not None:
            native.measure()
        for k, move in enumerate(moves):
            if move.opening is not None:
                metric, joined, sums = move.opening
                native.open(k, metric, *joined, sums)
        for k, move in enumerate(moves):
            native.add(k, *move.joined, move.change.values, move.change.base)
        native.meet(relaxation)
        self.residual = math.sqrt(math.fsum(move.residual for move in moves))

    @property
    def penalty(self) -> float:
        """Ω(z) of the z that is told, but for own rows of shares."""
        return float(self.native.penalty)

    @property
    def conjugate(self) -> float:
        """Ω*(Σ u_k) after the last round, but for own rows of shares."""
        return float(self.native.conjugate)

    # ---- certificates ----

    def add_exact(self, exact: Sequence[ExactSums]) -> float:
        """Take u_k of all shares; return Ω*(Σ u_k), with own rows of shares."""
        self.native.begin_exact()
        for k, one in enumerate(exact):
            self.native.add_exact(k, *one.places, one.sums)
        own = math.fsum(one.conjugate for one in exact)
        return float(self.native.exact_conjugate()) + own

    def place_held(self) -> None:
        """Let z be what it is without the rounding of messages.

        What a link holds at a bound or at zero is there then.
        """
        self.native.place_held()

    def place_sums(self) -> None:
        """Let z be link(Σ u_k)."""
        self.native.place_sums()

    def shown(self) -> list[Shown]:
        """Return what each share has to know of such a z."""
        placed = [self.native.placed(k) for k in range(self.n_shares)]
        return [Shown(Places(*one[:2]), one[2]) for one in placed]

    # ---- the model ----

    def model(self, own: Sequence[tuple[NDArray[np.uint32], NDArray[Any]]]) -> NDArray[Any]:
        """Return all weights.

        Parameters
        ----------
        own : sequence of pairs
            Chunks of each share's own rows and what is in them, where that is not zero.
        """
        size, link = self.n_weights, self._link
        weights: NDArray[Any] = np.zeros(size, dtype=self.dtype)
        if not link.uniform:
            weights[:] = link.weights(np.zeros(size))
        for k, (chunks, values) in enumerate(own):
            self.native.write_own(k, chunks, values, weights)
        self.native.write(weights)
        return weights
