"""Anderson acceleration of a fixed-point map whose state lies in shares.

A map v → v' has the residual r = v' - v. With the last m differences ΔV_j of its values and ΔR_j of
its residuals, the next state is

    v = v' - Σ_j γ_j ΔV_j,      γ = argmin ‖r - Σ_j γ_j ΔR_j‖².

(D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 1965; the form is
that of Walker and Ni, SIAM J. Numer. Anal. 2011.) v, ΔV and ΔR are in pieces, one in each share.
The least squares need inner products alone, which are sums over the shares: each share sends the
(m + 1) x (m + 1) products of its pieces of ΔR and r, and gets γ back. So nothing but some numbers
is sent for it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory", "Mixing"]

Floats = NDArray[np.float64]


class Memory:
    """The piece of the differences that one share has.

    Parameters
    ----------
    depth : int
        m, at most.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.values: list[Floats] = []
        self.residuals: list[Floats] = []
        self._last: Floats | None = None

    def spread(self, places: NDArray[np.intp], size: int) -> None:
        """Make room for new entries, which have no differences yet.

        Parameters
        ----------
        places : int array
            Where the old entries go.
        size : int
            Number of entries now.
        """

        def wide(array: Floats) -> Floats:
            new = np.zeros(size)
            new[places] = array
            return new

        self.values = [wide(array) for array in self.values]
        self.residuals = [wide(array) for array in self.residuals]
        if self._last is not None:
            self._last = wide(self._last)

    def add(self, moved: Floats, residual: Floats, fresh: NDArray[np.bool_] | None) -> None:
        """Take what the last round did.

        Parameters
        ----------
        moved : array
            By how much v' differs from that of the round before.
        residual : array
            r.
        fresh : bool array or None
            Entries that are new: they have no difference.
        """
        if self._last is not None:
            change = residual - self._last
            if fresh is not None:
                moved = np.where(fresh, 0.0, moved)
                change[fresh] = 0.0
            self.values = [*self.values, moved][-self.depth :]
            self.residuals = [*self.residuals, change][-self.depth :]
        self._last = residual

    def products(self, metric: Floats) -> Floats:
        """Return the products of all ΔR and of r, in this order, weighted by a metric."""
        assert self._last is not None
        rows = [*self.residuals, self._last]
        found = np.empty((len(rows), len(rows)))
        for i, a in enumerate(rows):
            weighted = a * metric
            for j in range(i, len(rows)):
                found[i, j] = found[j, i] = weighted @ rows[j]
        return found

    def mixed(self, value: Floats, gamma: tuple[float, ...]) -> Floats:
        """Return v' - Σ γ ΔV."""
        mixed = value.copy()
        for weight, moved in zip(gamma, self.values, strict=True):
            mixed -= weight * moved
        return mixed


class Mixing:
    """What the coordinator decides: γ, and when the memory is to be forgotten."""

    #: Share of the mean diagonal that is added to it.
    DAMPING = 1e-8
    #: A residual so many times the least one of this memory is a reason to forget it.
    GROWN = 3.0

    def __init__(self) -> None:
        self.least = math.inf

    def decide(self, products: Floats) -> tuple[float, ...] | None:
        """Return γ; None: forget.

        Parameters
        ----------
        products : array
            The sum of `Memory.products` over all shares.
        """
        size = len(products) - 1
        residual = math.sqrt(max(products[-1, -1], 0.0))
        if size and residual > self.GROWN * self.least:
            self.least = math.inf
            return None
        self.least = min(self.least, residual)
        if size == 0:
            return ()
        gram = products[:-1, :-1]
        damping = self.DAMPING * max(float(np.trace(gram)) / size, 1e-300)
        gamma = np.linalg.solve(gram + damping * np.eye(size), products[:-1, -1])
        return tuple(map(float, gamma)) if np.isfinite(gamma).all() else None
