"""Rounds in which the shares add to one u (``aggregation="safe"``, and where there is one share).

CoCoA+ with σ = K: the dual never falls (`maxmargin.distributed.share` has the mathematics). The
passes of a round are chosen as in `maxmargin.solvers.auto`: exact passes at first, then the oracle
at the w that all shares have, which tells the true gap; cached passes as long as they pay, which
each share decides for itself; a smoothing pass at the end of rounds that begin near the gap asked
for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.distributed.joint import JointSums
from maxmargin.distributed.leading import Lead
from maxmargin.distributed.messages import Exact, Placed, Report, SparseVector, Task
from maxmargin.distributed.records import RoundRecord

__all__ = ["Adding"]


class Adding:
    """One way in which shares come together.

    Parameters
    ----------
    lead : Lead
        Whose rounds these are.
    """

    #: One round in so many, at least, looks at the joint w.
    LOOK_EVERY = 5
    #: Whether the w that is certified is another one than a round looked at last.
    moves_on = False

    def __init__(self, lead: Lead) -> None:
        self.lead, self.group = lead, lead.group
        self.joint = JointSums(lead.n_weights, lead.dtype, lead.regularizer.link)
        lead.dual = -self.joint.conjugate
        self.looks = self.collected = 0

    def _task(self, left: float | None) -> Task:
        lead, solver = self.lead, self.lead.solver
        settled = (
            lead.open is not None
            and lead.open <= solver.SETTLED * abs(lead.dual)
            and lead.parts >= solver.PARTS * lead.n_examples
        )
        near = lead.near(solver.NEAR)
        overdue = self.looks - self.collected >= self.LOOK_EVERY
        look = "collect" if lead.near(solver.CONFIRM) or settled or overdue else "exact"
        average = 0.0 if lead.open is None else max(0.0, lead.open / lead.C / lead.parts)
        warm = self.looks + 1 >= solver.warm_passes
        relaxation = min(solver.relaxation, 1.0) if near else solver.relaxation
        return Task(
            n_round=len(lead.history) + 1,
            sigma=float(self.group.size),
            look=look,
            passes=solver.cached_passes if warm else 0,
            average=average,
            relaxation=relaxation,
            smooth=near and warm,
            seconds=left,
        )

    def round(self, left: float | None, begin: float) -> RoundRecord:
        """Make a round whose changes are added up.

        Parameters
        ----------
        left : float or None
            Seconds that are left.
        begin : float
            When it began.
        """
        task, joint = self._task(left), self.joint
        down = self.group.size * joint.change.nbytes
        # Primal and dual of the w at which the round begins, once its slacks are known.
        penalty = joint.penalty if task.look == "collect" else math.nan
        reports: list[Report] = self.group.call("round", joint.change, task)
        before = self.lead.dual
        joint.add([report.change for report in reports])
        self.looks += 1
        if task.look == "collect":
            self.collected = self.looks
        return self.lead.noted(
            task,
            reports,
            penalty=penalty,
            before=before,
            conjugate=joint.conjugate,
            down=down,
            begin=begin,
        )

    def certify(self) -> tuple[float, float, float, int | None]:
        """Rebuild u from all multipliers, give it to all shares, and look at its w.

        Returns
        -------
        primal, dual : float
            From scratch.
        unsure : float
            By how much an oracle may have missed its best output.
        missed : int or None
            An example whose oracle did.
        """
        lead = self.lead
        exact: list[Exact] = self.group.call("exact")
        total: NDArray[np.float64] = np.zeros(self.group.call_one(0, "n_wide"))
        for one in exact:
            one.sums.add_to(total)
        worth = math.fsum(one.worth for one in exact)
        sums = SparseVector.of(total)
        lead.bytes_sent += sum(one.sums.nbytes for one in exact) + self.group.size * sums.nbytes
        placed: list[Placed] = self.group.call("place", sums)
        self.joint.place(self.group.call_one(0, "sums"))
        dual = lead.C * worth - placed[0].conjugate
        found = lead.judged(placed, placed[0].penalty, dual)
        lead.dual, lead.open = dual, found[0] - dual
        return found

    def sync(self) -> None:
        """Go on from the multipliers that all shares have now."""
        self.looks = len(self.lead.history)
        self.certify()

    def weights(self) -> Any:
        """Return the w that was certified last."""
        return self.group.call_one(0, "weights")
