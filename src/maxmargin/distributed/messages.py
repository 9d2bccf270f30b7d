"""What the coordinator of a distributed training and its shares tell each other.

All of it is plain numbers and NumPy arrays, so that any transport can carry it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EMPTY", "Codes", "Exact", "Found", "Placed", "Report", "SparseVector", "Task"]


@dataclass(frozen=True)
class SparseVector:
    """The entries of a vector that are not zero.

    Attributes
    ----------
    indices : uint32 array
        Where, ascending.
    values : array of the same size
        float32 for changes of u, float64 for exact sums.
    """

    indices: NDArray[np.uint32]
    values: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.indices.nbytes + self.values.nbytes)

    def add_to(self, vector: NDArray[Any]) -> None:
        """Add it to a dense vector; indices occur once."""
        vector[self.indices] += self.values

    def dense(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return all entries."""
        vector: NDArray[Any] = np.zeros(size, dtype=dtype)
        vector[self.indices] = self.values
        return vector

    @classmethod
    def of(cls, vector: NDArray[Any], dtype: Any = None) -> SparseVector:
        """Return the entries of a dense vector that are not zero."""
        places = np.flatnonzero(vector)
        values = vector[places]
        return cls(places.astype(np.uint32), values if dtype is None else values.astype(dtype))


@dataclass(frozen=True)
class Codes:
    """Changes in two bytes each, at weights that both sides know.

    Attributes
    ----------
    values : uint16 array
        As ``native/short_floats.hpp`` has them.
    base : int
        Where their exponents begin.
    """

    values: NDArray[np.uint16]
    base: int

    @property
    def nbytes(self) -> int:
        """Bytes that have to be sent."""
        return int(self.values.nbytes)


EMPTY = SparseVector(np.empty(0, np.uint32), np.empty(0, np.float32))


@dataclass(frozen=True)
class Task:
    """What a share is to do in a round.

    Attributes
    ----------
    n_round : int
        Number of the round, from 1.
    sigma : float
        σ: passes of the share see u + σ Δu_k. 1 in rounds of consensus.
    centre_relaxation : float
        λ of a round of consensus (`maxmargin.distributed.consensus`).
    look : {"exact", "collect", ""}
        The pass with the oracle that the round begins with, if any. "collect" looks at the w that
        all shares have.
    passes : int
        Cached passes, at most.
    begins : {"", "anew", "measure"}
        Of a round of consensus: whether it goes on where the last one ended, begins with the
        multipliers that there are, or goes on under another metric.
    steepness : float
        Of the metric where it begins anew or is another one; 0: ρ = 1.
    average : float
        v̄, the mean violation of a part (`maxmargin.solvers.auto`); 0 if it is not known.
    relaxation : float
        Over-relaxation of cached steps.
    smooth : bool
        Whether the last cached pass makes half steps.
    busy : float
        Cached passes of a round of consensus leave out parts whose last violation was below this
        share of the mean one, which the last round with 0 met.
    seconds : float or None
        Time that is left.
    """

    n_round: int
    sigma: float
    look: str
    passes: int
    begins: str = ""
    steepness: float = 0.0
    centre_relaxation: float = 1.0
    average: float = 0.0
    relaxation: float = 1.3
    smooth: bool = False
    busy: float = 0.0
    seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """What a share says of a round.

    Attributes
    ----------
    change : SparseVector
        Δu_k.
    worth : float
        Σ α l over its examples, less what mass costs with quadratic slacks.
    gain : float
        By how much the round raised the share's own problem, divided by σ: with σ = K the sum over
        the shares is a lower bound of what the dual gained.
    gap : float
        Σ of its block gaps while w moved (after an exact pass), or NaN.
    risk : float
        Σ of what its slacks cost at the joint w (after a collect pass), or NaN.
    parts, planes : int
        What it keeps.
    oracle_calls, passes : int
        Of this round.
    work : float
        Counted work of this round.
    seconds : float
        Time that its passes took.
    interrupted : bool
        Whether they were cut short.
    moved : Moved or None
        What a round of consensus tells instead of Δu_k.
    """

    change: SparseVector
    worth: float
    gain: float
    gap: float
    risk: float
    parts: int
    planes: int
    oracle_calls: int
    passes: int
    work: float
    seconds: float
    interrupted: bool = False
    moved: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of its vectors."""
        return self.change.nbytes if self.moved is None else int(self.moved.nbytes)


@dataclass(frozen=True)
class Exact:
    """What a share adds to u, from its multipliers alone.

    Attributes
    ----------
    sums : SparseVector
        C Σ α Δf over its examples, in 8 bytes.
    worth : float
        As in `Report`.
    """

    sums: SparseVector
    worth: float


@dataclass(frozen=True)
class Placed:
    """What a share says of the w that all shares have now.

    Attributes
    ----------
    penalty, conjugate : float
        Ω(w) and Ω*(u), the same for all shares; Ω(w) in rows of this share alone, and NaN, where
        shares agree on w.
    risk : float
        Σ of what the slacks of its examples cost, in 8-byte arithmetic.
    unsure : float
        By how much an oracle may have missed its best output.
    missed : int or None
        One of its examples whose oracle did.
    """

    penalty: float
    conjugate: float
    risk: float
    unsure: float
    missed: int | None


@dataclass(frozen=True)
class Found:
    """What is known of a share once it has read its data.

    Attributes
    ----------
    n_examples : int
        Its examples.
    n_weights : int
        Weights of all shares, in the engine's layout.
    dtype : str
        Of the engine's weights.
    about : dict
        More of the data, for the user.
    """

    n_examples: int
    n_weights: int
    dtype: str
    about: dict[str, Any] = field(default_factory=dict)
