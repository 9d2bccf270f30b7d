"""A line on standard error that shows how far training is; only written to a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from maxmargin.solvers.history import PassRecord

__all__ = ["Progress", "time_left"]


class Progress:
    """A callback of training that keeps one line up to date.

    Parameters
    ----------
    gap : float
        The relative gap that ends training.
    label : str
        What the line begins with.
    stream : file
        Where it is written, if that is a terminal.
    """

    def __init__(self, gap: float, label: str = "", stream: TextIO | None = None) -> None:
        self._gap = gap
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._records: list[PassRecord] = []
        self._extra = ""
        self._width = 0

    def __call__(self, record: PassRecord) -> None:
        """Show a pass."""
        self._records.append(record)
        if self._live:
            self._write(self.line())

    def show_score(self, score: dict[str, float | None]) -> None:
        """Add what was reached on the validation data to the line."""
        f1 = "" if score["f1"] is None else f" F1 {100 * score['f1']:.2f}"
        self._extra = f"  valid {100 * (score['token_accuracy'] or 0):.2f} %{f1}"

    def line(self) -> str:
        """Return the line: pass, gap, time so far, time left."""
        last = self._records[-1]
        gaps = [r.gap for r in self._records if math.isfinite(r.gap)]
        estimates = [r.gap_estimate for r in self._records if math.isfinite(r.gap_estimate)]
        gap = f"gap {100 * gaps[-1]:.3g} %" if gaps else "gap ?"
        if not gaps and estimates:
            gap = f"gap about {100 * estimates[-1]:.2g} %"
        left = time_left(self._records, self._gap)
        rest = f", about {left:.1f} s left" if math.isfinite(left) else ""
        return f"{self._label}pass {last.n_pass} {gap}{self._extra}  {last.seconds:.1f} s{rest}"

    def close(self) -> None:
        """Remove the line."""
        if self._live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)


def time_left(records: Sequence[PassRecord], gap: float) -> float:
    """Estimate the seconds until a gap is reached, taking its logarithm for linear in time.

    Parameters
    ----------
    records : sequence of PassRecord
        The passes so far.
    gap : float
        The relative gap asked for.

    Returns
    -------
    float
        NaN if it cannot be estimated.
    """
    known = [(r.seconds, r.gap) for r in records if math.isfinite(r.gap) and r.gap > 0]
    if len(known) < 2 or gap <= 0:
        return math.nan
    (t0, g0), (t1, g1) = known[-min(len(known), 6)], known[-1]
    if g1 <= gap:
        return 0.0
    if g1 >= g0 or t1 <= t0:
        return math.nan
    return (t1 - t0) * math.log(g1 / gap) / math.log(g0 / g1)
