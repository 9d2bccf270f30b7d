"""How far training is, on standard error: one line that is kept up to date, or a line a round.

On a terminal one line is overwritten. Into a file or a pipe, and with ``--verbose``, lines follow
each other: one for each round (a pass with the oracle, and the cached passes that follow it), or
one for each pass.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from maxmargin.solvers.history import PassRecord

__all__ = ["Progress", "time_left"]

#: Off a terminal, so many rounds have a line each; later ones if the last line is a second old.
ALL_ROUNDS = 20
SECONDS = 1.0


class Progress:
    """A callback of training that tells how far it is.

    Parameters
    ----------
    gap : float
        The relative gap that ends training.
    label : str
        What the line begins with.
    stream : file
        Where it is written.
    verbose : int
        1: a line for each pass, also on a terminal.
    lines : bool
        Whether there are lines off a terminal.
    """

    def __init__(
        self,
        gap: float,
        label: str = "",
        stream: TextIO | None = None,
        *,
        verbose: int = 0,
        lines: bool = True,
    ) -> None:
        self._gap = gap
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty() and verbose == 0
        self._verbose = verbose
        self._lines = lines and not self._live
        self._records: list[PassRecord] = []
        self._extra = ""
        self._width = 0
        self._rounds = 0
        self._printed = 0.0  # when

    def __call__(self, record: PassRecord) -> None:
        """Show a pass."""
        self._records.append(record)
        if self._live:
            self._write(self.line())
        elif self._lines and self._due(record):
            self._print(self.line() + (self._details(record) if self._verbose else ""))

    def _due(self, record: PassRecord) -> bool:
        """Whether a pass has a line off a terminal."""
        if self._verbose:
            return True
        if record.kind in ("cached", "interior"):
            return False
        self._rounds += 1
        now = time.monotonic()
        if self._rounds > ALL_ROUNDS and now - self._printed < SECONDS:
            return False
        self._printed = now
        return True

    @staticmethod
    def _details(record: PassRecord) -> str:
        nonzeros = "" if record.nonzeros < 0 else f", {record.nonzeros} non-zeros"
        return f"  [{record.kind}, dual {record.dual:.6g}, {record.planes} planes{nonzeros}]"

    def _print(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # full, or closed meanwhile
            print(line, file=self._stream, flush=True)

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
