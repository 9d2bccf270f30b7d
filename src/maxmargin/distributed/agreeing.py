"""Rounds in which the shares agree on weights (``aggregation="fast"``).

The mathematics is in `maxmargin.distributed.consensus`; which round comes next is decided as for
several threads (`maxmargin.solvers.joint_rounds`): `WARM` rounds with the oracle at the newest w of
each share, under the metric ρ = 1; then the planes that were found tell the metric, twice
(`STEEPER`). After that come passes over what is kept, which leave out what was hardly violated when
a look came before (`BUSY`), and the oracle looks
at z every `SEE_EVERY` rounds, or before that where the gap may have been reached. If looks do not
find the gap smaller any more, the metric is measured anew, and shares make more passes in a round.
The dual of a round is that of multipliers that exist, the primal that of z.

*Certificate.* The dual from scratch, and the primal of z without the rounding of messages; where
that is not enough also of link(Σ u_k), and the model is the better one of the two. In rows that
one share alone reads both are link(u).

*Faults.* After a share was made anew, rounds begin anew at link(Σ u_k), with the multipliers that
there are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.distributed.consensus import ExactSums, Reads
from maxmargin.distributed.leading import Lead
from maxmargin.distributed.meeting import Meeting
from maxmargin.distributed.messages import Placed, Report, Task
from maxmargin.distributed.records import RoundRecord
from maxmargin.solvers.certificate import relative_gap
from maxmargin.solvers.joint_rounds import (
    BETTER,
    BUSY,
    PATIENCE,
    RELAXATION,
    SEE_EVERY,
    STEEPER,
    SWEEPS,
    WARM,
    is_due,
)

__all__ = ["Agreeing"]

Certified = tuple[float, float, float, "int | None"]


class Agreeing:
    """One way in which shares come together.

    Parameters
    ----------
    lead : Lead
        Whose rounds these are.
    """

    #: λ, the over-relaxation of the states of shares.
    OVER = 1.8
    #: Whether the w that is certified is another one than a round looked at last.
    moves_on = True

    def __init__(self, lead: Lead) -> None:
        self.lead, self.group = lead, lead.group
        self.meeting: Meeting | None = None
        self.reads: list[Reads] | None = None
        self.begins = "anew"  # how the next round does
        self.known = False  # whether shares know which rows they have in common
        self.n_round = 0  # since the beginning, or since multipliers came from elsewhere
        self.seen: list[Any] = []  # the last two rounds that know the gap
        self.sweeps = SWEEPS
        self.smallest, self.waiting = math.inf, 0  # the smallest gap, and looks since it
        # Ω*(0), which is not 0 where bounds leave out link(0).
        link = lead.regularizer.link
        lead.dual = 0.0 if link.uniform else -link.conjugate(np.zeros(lead.n_weights))

    # ---- rounds ----

    def _met(self) -> Meeting:
        """Return the meeting of shares that know what they have in common."""
        lead = self.lead
        if self.meeting is None:
            self.reads = self.group.call("reads")
            lead.bytes_sent += sum(one.nbytes for one in self.reads)
            link = lead.regularizer.link
            self.meeting = Meeting(link, lead.n_weights, self.reads, lead.dtype)
        if not self.known:
            common = self.meeting.common()
            self.group.call("know", each=common)
            lead.bytes_sent += sum(one.nbytes for one in common)
            self.meeting.forget()
            self.known = True
        return self.meeting

    def _call(self, method: str, *common: Any, each: list[Any]) -> list[Any]:
        """Tell all shares something; who knows what is not known if that is cut short."""
        self.known = False
        answers = self.group.call(method, *common, each=each)
        self.known = True
        return answers

    def round(self, left: float | None, begin: float) -> RoundRecord:
        """Make a round.

        Parameters
        ----------
        left : float or None
            Seconds that are left.
        begin : float
            When it began.
        """
        lead, meeting = self.lead, self._met()
        n_round, anew = self.n_round + 1, self.begins == "anew"
        if not anew and any(n_round == at for at, _ in STEEPER):
            self.begins = "measure"
        exact = n_round <= WARM
        near = lead.near(lead.solver.CONFIRM)
        due = not exact and is_due(self.seen, n_round, SEE_EVERY, lead.aim, near)
        look = "exact" if exact else "collect" if due else ""
        task = Task(
            n_round=len(lead.history) + 1,
            sigma=1.0,
            look=look,
            passes=0 if n_round == 1 else self.sweeps,
            begins="anew" if anew else self.begins,
            steepness=max([c for at, c in STEEPER if at <= n_round], default=0.0),
            centre_relaxation=self.OVER,
            relaxation=1.0 if exact else min(lead.solver.relaxation, RELAXATION),
            busy=0.0 if due or n_round <= STEEPER[0][0] else BUSY,
            seconds=left,
        )
        agreed: list[Any] = [None] * self.group.size
        if not anew:
            agreed = list(meeting.tell())
        penalty = meeting.penalty
        down = sum(one.nbytes for one in agreed if one is not None)
        reports: list[Report] = self._call("meet", task, each=agreed)
        moves = [report.moved for report in reports]
        meeting.add(moves, task.centre_relaxation, anew)
        self.begins, self.n_round = "", n_round
        record = lead.noted(
            task,
            reports,
            # Ω of the z that was looked at; P is that of z, which has no multipliers of its own:
            # any dual is a bound for it.
            penalty=penalty + math.fsum(move.penalty for move in moves),
            before=None,
            conjugate=meeting.conjugate + math.fsum(move.conjugate for move in moves),
            down=down,
            begin=begin,
            residual=meeting.residual,
        )
        if math.isfinite(record.gap):
            self.seen = [*self.seen[-1:], [n_round, record.gap]]
            self._judge(record.gap)
        return record

    def _judge(self, gap: float) -> None:
        """Let shares solve their problems better, under another metric, if no look sees a gain."""
        if gap < BETTER * self.smallest:
            self.smallest, self.waiting = gap, 0
            return
        self.waiting += 1
        if self.waiting >= PATIENCE:
            self.smallest, self.waiting = math.inf, 0
            self.begins, self.sweeps = "measure", self.sweeps + 1

    # ---- certificates ----

    def certify(self) -> Certified:
        """Certify z or link(u), the better one of them.

        z is looked at first, since it is better as a rule.

        Returns
        -------
        primal, dual : float
            From scratch.
        unsure : float
            By how much an oracle may have missed its best output.
        missed : int or None
            An example whose oracle did.
        """
        begun = self.begins != "anew"
        meeting, dual = self._met(), self._exact()
        if not begun:
            return self._look_at_sums(dual)
        meeting.place_held()
        if meeting.native.zero:  # that is no model, whatever its primal
            return self._look_at_sums(dual)
        found = self._shown(dual)
        if relative_gap(found[0], dual) > self.lead.gap:
            held = meeting.native.values()
            meeting.place_sums()
            other = self._shown(dual)
            if not found[0] < other[0]:
                return other
            # The model is z, at which rounds go on.
            meeting.native.set_values(held)
            self._call("put", each=self._values())
            self.lead.open = found[0] - dual
        return found

    def _exact(self) -> float:
        """Return the dual of all multipliers from scratch.

        Shares have w = link(u) of their own rows then, and begin anew whatever comes.
        """
        lead, meeting = self.lead, self._met()
        exact: list[ExactSums] = self.group.call("exact_sums")
        lead.bytes_sent += sum(one.nbytes for one in exact)
        conjugate = meeting.add_exact(exact)
        self.begins, self.seen = "anew", []
        return lead.C * math.fsum(one.worth for one in exact) - conjugate

    def _look_at_sums(self, dual: float) -> Certified:
        self._met().place_sums()
        return self._shown(dual)

    def _values(self) -> list[Any]:
        meeting = self._met()
        shown = meeting.shown()
        self.lead.bytes_sent += sum(one.nbytes for one in shown)
        return shown

    def _shown(self, dual: float) -> Certified:
        """Look at the w that was placed."""
        lead, meeting = self.lead, self._met()
        placed: list[Placed] = self._call("show", each=self._values())
        penalty = meeting.penalty + math.fsum(one.penalty for one in placed)
        found = lead.judged(placed, penalty, dual)
        lead.dual, lead.open = dual, found[0] - dual
        return found

    def sync(self) -> None:
        """Go on from the multipliers that all shares have now, some of which may be new."""
        self.known = False
        self._look_at_sums(self._exact())
        if self.n_round > 0:
            # A share that lost its planes must find them anew before they can tell a metric.
            self.n_round = 1
        else:
            self.n_round = len(self.lead.history)

    # ---- the model ----

    def weights(self) -> NDArray[Any]:
        """Return the w that was certified last."""
        return self._met().model(self.group.call("own_weights"))
