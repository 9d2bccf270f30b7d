"""What a concave-convex procedure records of its outer iterations, and what it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.state import check_stored

__all__ = [
    "Accepted",
    "ConcavePart",
    "Imputation",
    "OuterHistory",
    "OuterRecord",
    "linear_value",
    "rounding_of",
]


class Imputation(NamedTuple):
    """A linear function that lies below the concave part's G: G(w') ≥ u₀·w' + constant.

    At the weights for which it was made it touches G: G(w) = u₀·w + constant.

    Attributes
    ----------
    linear_term : ndarray of float64 or None
        u₀, in the layout of the weights with which the machine was made (`Machine.made_as`). None:
        zero.
    constant : float
        What stands beside it.
    changed : int
        How many imputed outputs are others than in the imputation before.
    """

    linear_term: NDArray[np.float64] | None
    constant: float = 0.0
    changed: int = 0


class ConcavePart(Protocol):
    """The -G(w) of an objective Ω(w) + C Σ_i max_y F_i(y) - G(w), where G is convex."""

    def impute(self, weights: NDArray[Any], threads: int) -> Imputation:
        """Return the linear function that touches G at these weights.

        Parameters
        ----------
        weights : ndarray
            A copy of the machine's weights, in the layout that they have at present (which is
            another one than `Machine.made_as` once training went on with 8-byte weights).
        threads : int
            Threads to use.

        Returns
        -------
        Imputation
            The same one for the same weights: a resumed run asks again.
        """


@dataclass(frozen=True)
class OuterRecord:
    """What one outer iteration did: a convex step, and a new imputation at its weights.

    Attributes
    ----------
    n_outer : int
        Number of the iteration, from 1.
    objective : float
        The true objective Ω(w) + C Σ max F - G(w) at the weights that the convex step found.
    bound : float
        The objective of the convex step at these weights, constant included: never below
        ``objective``.
    changed : int
        Imputed outputs that changed at these weights.
    gap : float
        Relative gap of the convex step, from its certificate.
    asked : float
        The gap that the step was asked for.
    passes : int
        Passes of this iteration.
    seconds : float
        Training time so far, imputing included.
    stage : str
        Of which objective: empty for the one that is asked for; else the stage that came before it.
    """

    n_outer: int
    objective: float
    bound: float
    changed: int
    gap: float
    asked: float
    passes: int
    seconds: float
    stage: str = ""


class OuterHistory(Sequence[OuterRecord]):
    """The records of all outer iterations; a sequence that can also be read by column.

    Parameters
    ----------
    records : sequence of OuterRecord
        The records so far.
    """

    def __init__(self, records: Sequence[OuterRecord] = ()) -> None:
        self._records = list(records)

    def append(self, record: OuterRecord) -> None:
        """Add the record of an iteration."""
        self._records.append(record)

    def column(self, name: str) -> NDArray[Any]:
        """One attribute of all records, as an array.

        Parameters
        ----------
        name : str
            An attribute of `OuterRecord`.

        Returns
        -------
        ndarray
            Its value at each iteration.
        """
        known = [f.name for f in fields(OuterRecord)]
        if name not in known:
            raise ValueError(f"an outer history has the columns {', '.join(known)}; got {name!r}")
        return np.array([getattr(r, name) for r in self._records])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain dictionaries, one per iteration."""
        return [asdict(r) for r in self._records]

    @classmethod
    def from_dicts(cls, rows: Sequence[dict[str, Any]]) -> OuterHistory:
        """Undo `to_dicts`; a ValueError or TypeError where that is not what the rows are."""
        records = [OuterRecord(**row) for row in rows]
        for record in records:
            if not isinstance(record.stage, str):
                raise ValueError("a stage is no text")
            for name in ("n_outer", "changed", "passes"):
                check_stored(name, getattr(record, name), 0)
            for name in ("objective", "bound", "gap", "asked", "seconds"):
                check_stored(name, getattr(record, name), 0.0)
        return cls(records)

    @overload
    def __getitem__(self, index: int) -> OuterRecord: ...
    @overload
    def __getitem__(self, index: slice) -> OuterHistory: ...
    def __getitem__(self, index: int | slice) -> OuterRecord | OuterHistory:
        if isinstance(index, slice):
            return OuterHistory(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[OuterRecord]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"OuterHistory({len(self._records)} outer iterations)"


@dataclass
class Accepted:
    """The best that a concave-convex procedure has so far."""

    weights: Any
    certificate: Certificate
    objective: float


def linear_value(weights: NDArray[Any], term: NDArray[Any] | None) -> float:
    """Return w·u₀.

    Parameters
    ----------
    weights : array
        The w.
    term : array or None
        The u₀, as the machine has it; None: zero.
    """
    if term is None:
        return 0.0
    return float(np.dot(weights.astype(np.float64), term.astype(np.float64)))


def rounding_of(
    certificate: Certificate, weights: NDArray[Any], term: NDArray[Any] | None, product: float
) -> float:
    """Return by how much objectives may differ by the rounding of weights and sums alone.

    Parameters
    ----------
    certificate : Certificate
        Of the convex step.
    weights : array
        Its w.
    term : array or None
        Its u₀.
    product : float
        Their `linear_value`.
    """
    eps = float(np.finfo(weights.dtype).eps)
    size = abs(certificate.primal) + abs(product)
    if term is not None:
        size += float(np.dot(np.abs(weights).astype(np.float64), np.abs(term)))
    return max(16 * eps, 1e-9) * size + 1e-12
