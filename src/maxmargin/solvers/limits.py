"""How long training goes on when nobody says how many passes: a limit on work, not on passes.

A thousand passes over a hundred examples take a tenth of a second, over a million they take hours:
a number of passes is no measure of how long somebody is ready to wait. So unless ``max_passes`` is
given, training ends after a budget of *work*, and never before `LEAST_PASSES`. Work is what the
engine counts (``PassResult.work``, about the processor cycles of a pass), not what a clock says, so
that a run can be repeated and a resumed run ends where an uninterrupted one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LEAST_PASSES", "MOST_WORK", "PassLimit", "work_of"]

#: However much work they are, so many passes are made.
LEAST_PASSES = 1000
#: About half a minute of a processor of 3 GHz.
MOST_WORK = 1e11
#: What a pass counts at least: around each pass stand Python calls, and a record of the history is
#: kept of it. With this a history has 100,000 records at most.
PASS_WORK = MOST_WORK / 100_000
#: What a pass counts whose work nobody knows (solvers with a w of their own, a user's oracle):
#: these end after `LEAST_PASSES`.
UNCOUNTED = MOST_WORK / LEAST_PASSES


def work_of(result: Any, slow_oracle: bool) -> float:
    """Return the work that a pass counts.

    Parameters
    ----------
    result : Totals
        Of the pass.
    slow_oracle : bool
        Whether the oracle is a user's code, whose work the engine does not know.

    Returns
    -------
    float
        In processor cycles, about.
    """
    work = None if slow_oracle else getattr(result, "work", None)
    return UNCOUNTED if work is None else max(float(work), PASS_WORK)


@dataclass(frozen=True)
class PassLimit:
    """What ends the passes of a training that does not converge.

    Parameters
    ----------
    max_passes : int or None
        Most passes; None: the limit on work.
    """

    max_passes: int | None

    def reached(self, n_passes: int, work: float) -> str:
        """Return the limit in words if it was reached, else an empty text."""
        if self.max_passes is not None:
            return f"max_passes = {self.max_passes}" if n_passes >= self.max_passes else ""
        # (The work of the passes is a sum of rounded numbers.)
        if n_passes >= LEAST_PASSES and work >= MOST_WORK * (1 - 1e-9):
            return f"work limit of {MOST_WORK:.0e} processor cycles, {n_passes} passes"
        return ""
