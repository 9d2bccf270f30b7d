"""u of all shares, as the coordinator keeps it.

Shares send changes of u in 4 bytes. The coordinator adds them up in 8, and tells all shares by how
much the u that they have is to move, in 4 bytes again: what rounding takes away of one message is
in the next one, because a message is the difference between the exact sum and the u that the shares
have. (What rounding takes away of a share's own message is made good by the certificate, for which
the coordinator has every share rebuild its sums from its multipliers.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.distributed.messages import EMPTY, SparseVector
from maxmargin.links import Link

__all__ = ["JointSums"]


class JointSums:
    """The joint u, and Ω*(u).

    Parameters
    ----------
    size : int
        Number of weights.
    dtype : str
        In which shares have u.
    link : Link
        Of the regulariser, in the same layout.
    """

    def __init__(self, size: int, dtype: str, link: Link) -> None:
        self.exact = np.zeros(size)
        self.theirs: NDArray[Any] = np.zeros(size, dtype=dtype)
        self.link = link
        # A link with one number in each field: Ω* of some entries does not depend on the others.
        self._uniform = link.uniform
        self._count()
        self.change = EMPTY
        self._sum = np.zeros(size)

    def place(self, theirs: NDArray[Any]) -> None:
        """Begin anew at a u that all shares have."""
        self.theirs = theirs.copy()  # a share in this process has the other one
        self.exact = theirs.astype(np.float64)
        self._count()
        self.change = EMPTY

    def add(self, changes: Sequence[SparseVector]) -> float:
        """Add the changes of a round.

        Returns
        -------
        float
            ρ = ‖Σ Δu_k‖² / Σ ‖Δu_k‖²: how much the shares pull together. K if all of them do the
            same, 1 if they have nothing in common, 0 if they cancel each other.
        """
        squares = 0.0
        for change in changes:
            change.add_to(self._sum)
            values = change.values.astype(np.float64)
            squares += float(values @ values)
        touched = np.flatnonzero(self._sum)
        moved = self._sum[touched]
        self._sum[touched] = 0.0
        before = self.exact[touched]
        after = before + moved
        self.exact[touched] = after
        if self._uniform:
            (new, product), (old, earlier) = self._of(after), self._of(before)
            self.conjugate += new - old
            self.product += product - earlier
        else:
            self._count()
        told = (after - self.theirs[touched]).astype(np.float32)
        self.theirs[touched] += told
        self.change = SparseVector(touched.astype(np.uint32), told)
        return float(moved @ moved) / squares if squares > 0 else 0.0

    def _of(self, u: NDArray[Any]) -> tuple[float, float]:
        """Return Ω*(u) and u·w of some entries."""
        w = self.link.weights(u)
        product = float(w @ u)
        return product - self.link.penalty(w), product

    def _count(self) -> None:
        self.conjugate, self.product = self._of(self.exact)

    @property
    def penalty(self) -> float:
        """Ω(w) of w = link(u): what u·w leaves of Ω*(u)."""
        return self.product - self.conjugate
