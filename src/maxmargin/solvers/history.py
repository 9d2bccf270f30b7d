"""What passes record, and the records of all passes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, overload

import numpy as np

__all__ = ["History", "PassRecord", "continued"]


@dataclass(frozen=True)
class PassRecord:
    """What one pass did.

    Attributes
    ----------
    n_pass : int
        Number of the pass, from 1.
    kind : str
        "exact" (oracle and step), "collect" (oracle at one w: a true gap), "cached" (steps on the
        kept planes) or "interior" (all of these at once).
    seconds : float
        Training time so far.
    oracle_calls : int
        Oracle calls so far.
    primal, gap : float
        Objective and relative gap at the w of this pass; NaN where the pass cannot tell.
    dual : float
        Dual objective after the pass.
    gap_estimate : float
        Relative gap summed over blocks at the moving w of the pass; NaN for cached and interior
        passes.
    planes : int
        Planes kept.
    nonzeros : int
        Weights that are not zero; -1 where it was not counted.
    weight_bytes : int
        Bytes of each weight in this pass: 4 or 8; -1 where it was not recorded. Training that
        stalls on the rounding of 4-byte weights goes on with 8-byte ones.
    """

    n_pass: int
    kind: str
    seconds: float
    oracle_calls: int
    primal: float
    dual: float
    gap: float
    gap_estimate: float
    planes: int
    nonzeros: int = -1
    weight_bytes: int = -1


def continued(last: PassRecord, record: PassRecord) -> PassRecord:
    """Return the record of a run that goes on where another one ended, with the numbers of both.

    Parameters
    ----------
    last : PassRecord
        The last one of the earlier run.
    record : PassRecord
        One of the later run, which counts from its own beginning.

    Returns
    -------
    PassRecord
        The same pass, counted from the beginning of the earlier run.
    """
    return replace(
        record,
        n_pass=last.n_pass + record.n_pass,
        seconds=last.seconds + record.seconds,
        oracle_calls=last.oracle_calls + record.oracle_calls,
    )


class History(Sequence[PassRecord]):
    """The records of all passes; a sequence that can also be read by column.

    Parameters
    ----------
    records : iterable of PassRecord
        The records so far.
    """

    def __init__(self, records: Sequence[PassRecord] = ()) -> None:
        self._records = list(records)

    def append(self, record: PassRecord) -> None:
        """Add the record of a pass."""
        self._records.append(record)

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """One attribute of all records, as an array.

        Parameters
        ----------
        name : str
            An attribute of `PassRecord`.

        Returns
        -------
        ndarray
            Its value at each pass.
        """
        known = [f.name for f in fields(PassRecord)]
        if name not in known:
            raise ValueError(f"a history has the columns {', '.join(known)}; got {name!r}")
        return np.array([getattr(r, name) for r in self._records])

    @property
    def widened(self) -> int | None:
        """The pass after which 8-byte weights took the place of 4-byte ones; None: none."""
        for before, after in itertools.pairwise(self._records):
            if (before.weight_bytes, after.weight_bytes) == (4, 8):
                return before.n_pass
        return None

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain dictionaries, one per pass."""
        return [asdict(r) for r in self._records]

    @classmethod
    def from_dicts(cls, rows: Sequence[dict[str, Any]]) -> History:
        """Undo `to_dicts`; a ValueError or TypeError where that is not what the rows are."""
        records = [PassRecord(**row) for row in rows]
        for k, record in enumerate(records, 1):
            numbers = [v for name, v in asdict(record).items() if name != "kind"]
            whole = (record.planes, record.nonzeros, record.weight_bytes)
            good = (
                record.n_pass == k
                and isinstance(record.kind, str)
                and all(isinstance(v, int | float) and not isinstance(v, bool) for v in numbers)
                and all(isinstance(v, int) for v in whole)
                and all(abs(v) < 2**63 for v in numbers if math.isfinite(v))
            )
            if not good:
                raise ValueError(f"the record of pass {k} is damaged")
        return cls(records)

    @overload
    def __getitem__(self, index: int) -> PassRecord: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> PassRecord | History:
        if isinstance(index, slice):
            return History(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[PassRecord]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and repr(self._records) == repr(other._records)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        widened = self.widened
        wide = "" if widened is None else f", in 8-byte arithmetic after pass {widened}"
        return f"History({len(self._records)} passes{wide})"
