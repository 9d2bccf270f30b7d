"""The coordinator of a distributed training: which round comes next, and when it is enough.

The shares and their problem are in `maxmargin.distributed.share`. A round is at most one pass with
the oracle and some cached passes in every share; then what they changed is put together and told to
all.

- *Aggregation.* How shares come together, and so what a round is: ``"safe"`` adds up what they
  change (`maxmargin.distributed.adding`), ``"fast"`` has them agree
  (`maxmargin.distributed.agreeing`).
- *Certificate.* Every share rebuilds what it adds to u from its multipliers, in 8 bytes; u is their
  sum, w = link(u) as it is returned (or what shares agree on), and every share looks at its
  examples with the oracle. Primal and dual are sums over the shares of that, and nothing that
  rounds added up enters.
- *Faults.* A share that is lost is made anew from its data, gets the multipliers that it last
  reported (or none: the truths), and u is rebuilt from what all shares have. The dual is then that
  of multipliers that exist.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from maxmargin.checks import check_choice, check_number, check_whole
from maxmargin.distributed.adding import Adding
from maxmargin.distributed.agreeing import Agreeing
from maxmargin.distributed.group import ShareGroup, SharesLostError
from maxmargin.distributed.messages import Found, Placed, Report, Task
from maxmargin.distributed.records import Outcome, RoundRecord
from maxmargin.distributed.saving import Saved, load_run, save_run
from maxmargin.errors import (
    CheckpointWarning,
    ClusterError,
    ConvergenceWarning,
    NotCompatibleError,
)
from maxmargin.io.atomic import check_target
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.certificate import Certificate, relative_gap
from maxmargin.solvers.ending import INTERRUPTED, ending, rounding_reason
from maxmargin.solvers.history import History
from maxmargin.solvers.sdm import SDM

__all__ = ["AGGREGATIONS", "Coordinator", "agrees"]

AGGREGATIONS = ("fast", "safe")


def agrees(aggregation: str, n_shares: int) -> bool:
    """Whether shares of a training agree on weights; else they add to one u."""
    return aggregation == "fast" and n_shares > 1


class Coordinator:
    """Trains shares of the examples together.

    Parameters
    ----------
    group : ShareGroup
        The shares.
    solver : SDM
        The same as the shares have.
    C : float
        Weight of the loss.
    regularizer : Regularizer
        Ω, in the layout of the engine's weights.
    gap : float
        The relative gap asked for.
    max_rounds : int or None
        Stop after so many rounds; None: after 10,000.
    time_limit : float or None
        Stop after so many seconds.
    aggregation : {"fast", "safe"}
        See the module's text.
    verbose : int
        1: a line for each round that knows the gap; 2: for each round.
    callbacks : iterable of callable
        Each is called with every `RoundRecord`; a true answer ends the training.
    checkpoint : path-like or None
        Where multipliers of all shares are saved, every ``checkpoint_seconds``.
    checkpoint_seconds : float
        Least time between two reports of all multipliers.
    resume : bool
        Go on from the checkpoint if it exists.
    warn : bool
        Whether to warn if the gap was not reached.
    """

    #: A certificate that is refused makes the next one wait for this share of the gap.
    CLOSER = 0.7
    #: Shares that are lost are made anew so many times in a row, at most.
    MAX_FAULTS = 20
    #: Certificates in a row that are no better than the best one before training gives up.
    MAX_REFUSED = 3

    def __init__(
        self,
        group: ShareGroup,
        solver: SDM,
        *,
        C: float,
        regularizer: Regularizer,
        gap: float = 0.01,
        max_rounds: int | None = None,
        time_limit: float | None = None,
        aggregation: str = "fast",
        verbose: int = 0,
        callbacks: Iterable[Callable[[RoundRecord], Any]] | None = (),
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        resume: bool = False,
        warn: bool = True,
    ) -> None:
        self.group, self.solver, self.regularizer = group, solver, regularizer
        self.C = check_number("C", C, above=0.0)
        self.gap = check_number("gap", gap, least=0.0)
        self.max_rounds = 10_000 if max_rounds is None else check_whole("max_rounds", max_rounds, 1)
        self.time_limit = time_limit
        if time_limit is not None:
            self.time_limit = check_number("time_limit", time_limit, above=0.0)
        check_choice("aggregation", aggregation, AGGREGATIONS)
        fast = agrees(aggregation, group.size)
        self.verbose, self.callbacks = verbose, list(callbacks or ())
        self.checkpoint, self.checkpoint_seconds = checkpoint, checkpoint_seconds
        self.warn = warn
        if resume and checkpoint is None:
            raise ValueError("resume=True needs a checkpoint to resume from")
        if checkpoint is not None:
            check_target(checkpoint)

        found = self._first_found()
        self._check_alike(found)
        self.n_each = [one.n_examples for one in found]
        self.n_examples = sum(self.n_each)
        self.n_weights, self.dtype = found[0].n_weights, found[0].dtype
        self.history: list[RoundRecord] = []
        self.dual = 0.0
        self.open: float | None = None  # P - D, as far as it is known
        self.parts = 1
        self.aim = self.gap  # at which gap of a round a certificate is worth its cost
        self.seconds = 0.0
        self.oracle_calls = 0
        self.bytes_sent = 0
        self.faults = self.faults_in_a_row = self.recovered = 0
        self.reported: list[dict[str, Any] | None] = [None] * group.size
        self.report_seconds = 0.0
        self.report_at = time.perf_counter()
        self._warned = False
        self.way: Adding | Agreeing = (Agreeing if fast else Adding)(self)
        if resume and checkpoint is not None:
            self._resume()

    def _first_found(self) -> list[Found]:
        """Return what the shares tell of themselves; no multipliers can be lost yet."""
        lost: set[int] = set()
        for _ in range(self.MAX_FAULTS):
            try:
                if lost:
                    self.group.recover(sorted(lost))
                    lost = set()
                return self.group.call("found")
            except SharesLostError as error:
                lost |= set(error.shares)
        raise ClusterError(f"shares of the data were lost {self.MAX_FAULTS} times in a row")

    def _check_alike(self, found: list[Found]) -> None:
        sizes = {(one.n_weights, one.dtype) for one in found}
        if len(sizes) > 1:
            numbers = sorted({one.n_weights for one in found})
            raise NotCompatibleError(
                f"shares of the data have different weights ({numbers}): what the structure learns "
                "from data must be the same everywhere"
            )

    # ---- the loop ----

    def run(self) -> Outcome:
        """Train until the gap is reached or something ends it, and certify the model."""
        cause, best, refused = "", math.inf, 0
        while True:
            try:
                cause = self._rounds()
            except KeyboardInterrupt:
                cause = INTERRUPTED
                print("maxmargin: interrupted; finishing with the model so far", file=sys.stderr)
            certificate = self._certificate()
            if cause or certificate.gap <= self.gap or certificate.missed is not None:
                certificate, weights = self._fetched(certificate, again=bool(cause))
                if weights is not None:
                    break
                continue
            refused = 0 if certificate.gap < 0.9 * best else refused + 1
            best = min(best, certificate.gap)
            # The z that is certified is one move after the one that the round looked at, and may be
            # a little worse.
            if self.way.moves_on:
                self.aim *= self.CLOSER
            if refused >= self.MAX_REFUSED:
                cause = rounding_reason(self.dtype, self.gap)
                certificate, weights = self._fetched(certificate, again=True)
                break
        if self.checkpoint is not None:
            self.with_faults(self._report)
        converged, reason = ending(certificate, self.gap, cause=cause)
        if self.warn and not converged and cause != INTERRUPTED:
            warnings.warn(
                f"training stopped ({reason}) with a gap of {certificate.gap:.2g}; expected at "
                f"most {self.gap:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.history:
            self.history[-1] = replace(
                self.history[-1],
                primal=certificate.primal,
                dual=certificate.dual,
                gap=certificate.gap,
                nonzeros=int(np.count_nonzero(weights)),
            )
        rounds = History(self.history)
        return Outcome(
            weights, certificate, rounds, converged, reason, len(rounds), self.bytes_sent
        )

    def _rounds(self) -> str:
        """Make rounds until the gap seems to be reached (""), or something else ends them."""
        while True:
            if len(self.history) >= self.max_rounds:
                return f"max_rounds = {self.max_rounds}"
            left = None
            if self.time_limit is not None:
                left = self.time_limit - self.seconds
                if left <= 0 and self.history:
                    return f"time_limit = {self.time_limit:g} s"
            begin, before = time.perf_counter(), self.seconds
            record = self.with_faults(partial(self.way.round, left, begin))
            self.faults_in_a_row = 0
            if record.gap <= self.aim:
                return ""
            due = time.perf_counter() - self.report_at
            if due > max(self.checkpoint_seconds, 10 * self.report_seconds):
                self.with_faults(self._report)
            self.seconds += time.perf_counter() - begin - (self.seconds - before)
            if any(callback(record) for callback in self.callbacks):
                return "stopped by a callback"

    # ---- one round ----

    def near(self, factor: float) -> bool:
        """Whether the gap, as far as it is known, is within so many times the one asked for."""
        return self.open is not None and self.open <= factor * self.gap * abs(self.dual)

    def noted(
        self,
        task: Task,
        reports: list[Report],
        *,
        penalty: float,
        before: float | None,
        conjugate: float,
        down: int,
        begin: float,
        residual: float = math.nan,
    ) -> RoundRecord:
        """Take what a round tells, and record it.

        Parameters
        ----------
        task : Task
            What was to be done.
        reports : list of Report
            Of all shares.
        penalty : float
            Ω of the w at which the round looked.
        before : float or None
            The dual that goes with this w; None: the one after the round.
        conjugate : float
            Ω*(u) after the round.
        down : int
            Bytes that were sent to the shares.
        begin : float
            When the round began.
        residual : float
            As in `RoundRecord`.
        """
        up = sum(report.nbytes for report in reports)
        self.parts = max(1, sum(report.parts for report in reports))
        self.oracle_calls += sum(report.oracle_calls for report in reports)
        primal, gap, estimate = math.nan, math.nan, math.nan
        dual = self.C * sum(report.worth for report in reports) - conjugate
        if not math.isfinite(dual):
            raise FloatingPointError(
                f"the objective is not finite after round {task.n_round} (dual {dual}). Features "
                'of very large size? Scale them, or use dtype="float64"'
            )
        at = dual if before is None else before
        if task.look == "collect":
            primal = penalty + self.C * sum(report.risk for report in reports)
            if math.isfinite(primal):
                self.open = primal - at
                gap = relative_gap(primal, at)
        elif task.look == "exact":
            self.open = sum(report.gap for report in reports)
            estimate = relative_gap(at + self.open, at)
        self.dual = dual
        self.bytes_sent += up + down
        self.seconds += time.perf_counter() - begin
        record = RoundRecord(
            n_pass=task.n_round,
            kind=task.look or "cached",
            seconds=self.seconds,
            oracle_calls=self.oracle_calls,
            primal=primal,
            dual=dual,
            gap=gap,
            gap_estimate=estimate,
            planes=sum(report.planes for report in reports),
            weight_bytes=np.dtype(self.dtype).itemsize,
            passes=max(report.passes for report in reports),
            sigma=task.sigma,
            residual=residual,
            bytes_up=up,
            bytes_down=down,
            shares=self.group.size,
            recovered=self.recovered,
            share_seconds=max(report.seconds for report in reports),
        )
        self.recovered = 0
        self.history.append(record)
        self._say(record)
        return record

    def _say(self, record: RoundRecord) -> None:
        if self.verbose >= 2 or (self.verbose == 1 and record.kind == "collect"):
            known = f"{100 * record.gap:8.3f} %" if math.isfinite(record.gap) else " " * 10
            sent = (record.bytes_up + record.bytes_down) / 1e6
            print(
                f"round {record.n_pass:4d} {record.kind:8s} {record.seconds:8.2f} s  dual "
                f"{record.dual:14.6g}  gap {known}  passes {record.passes:2d}  sent {sent:.1f} MB "
                f"({self.bytes_sent / 1e6:.0f} MB)",
                file=sys.stderr,
            )

    # ---- certificates ----

    def _certificate(self) -> Certificate:
        begin = time.perf_counter()
        primal, dual, unsure, missed = self.with_faults(self.way.certify)
        average = abs(primal) / (self.C * self.n_examples)
        self.seconds += time.perf_counter() - begin
        approximate = unsure > 1e-6 * max(average, 1e-12) or missed is not None
        return Certificate(primal, dual, self.C, self.n_examples, approximate, missed)

    def _fetched(self, certificate: Certificate, *, again: bool) -> tuple[Certificate, Any]:
        """Return a certificate, and the weights that it is of.

        A share that was lost since has other multipliers now, and rows that it alone reads have
        other weights than those that were certified. Then what there is now is certified (`again`),
        or there are no weights, and training goes on.
        """
        while True:
            faults = self.faults
            weights = self.with_faults(self.way.weights)
            if self.faults == faults:
                return certificate, weights
            if not again:
                return certificate, None
            certificate = self._certificate()

    def judged(
        self, placed: list[Placed], penalty: float, dual: float
    ) -> tuple[float, float, float, int | None]:
        """Return primal, dual, and how far the oracle can be trusted, at a w that was placed."""
        primal = penalty + self.C * math.fsum(one.risk for one in placed)
        self.oracle_calls += self.n_examples
        missed = None
        first = 0
        for n, one in zip(self.n_each, placed, strict=True):
            if one.missed is not None and missed is None:
                missed = first + one.missed
            first += n
        if missed is None and dual > primal + 1e-6 * abs(primal) + 1e-12:
            missed = Certificate.UNKNOWN
        return primal, dual, max(one.unsure for one in placed), missed

    # ---- faults and checkpoints ----

    def with_faults(self, call: Callable[[], Any]) -> Any:
        """Call something, and again after lost shares were made anew."""
        lost: set[int] = set()
        while True:
            try:
                if lost:
                    self.group.recover(sorted(lost))
                    for k in sorted(lost):
                        state = self.reported[k]
                        if state is not None:
                            self.group.call_one(k, "restore", state)
                    self.way.sync()
                    lost = set()
                return call()
            except SharesLostError as error:
                lost |= set(error.shares)
                self.faults += len(error.shares)
                self.recovered += len(error.shares)
                self.faults_in_a_row += 1
                if self.faults_in_a_row > self.MAX_FAULTS:
                    raise ClusterError(
                        f"shares of the data were lost {self.MAX_FAULTS} times in a row"
                    ) from error
                if self.verbose:
                    print(f"maxmargin: lost shares {sorted(lost)}; going on", file=sys.stderr)

    def _report(self) -> None:
        """Have all shares report their multipliers, and save them."""
        begin = time.perf_counter()
        self.reported = list(self.group.call("state"))
        self.report_at = time.perf_counter()
        if self.checkpoint is not None:
            try:
                save_run(self.checkpoint, self.identity(), self.n_each, self._saved())
            except OSError as error:
                if not self._warned:
                    self._warned = True
                    warnings.warn(
                        f"{self.checkpoint}: the checkpoint could not be written "
                        f"({error.strerror or error}); training goes on without it",
                        CheckpointWarning,
                        stacklevel=2,
                    )
        self.report_seconds = time.perf_counter() - begin

    def last_saved(self) -> str:
        """Say what is left of a run that cannot go on."""
        if self.checkpoint is None:
            return "nothing was saved: give checkpoint=... to keep what was learned"
        if any(state is None for state in self.reported):
            return f"{self.checkpoint}: no checkpoint was written yet"
        return f"the checkpoint {self.checkpoint} has the last report; go on with resume=True"

    def _saved(self) -> Saved:
        states = [state for state in self.reported if state is not None]
        records = History(self.history).to_dicts()
        return Saved(states, self.seconds, self.oracle_calls, self.bytes_sent, records)

    def identity(self) -> dict[str, Any]:
        """Return what the run solves; a resumed one must have the same."""
        return {
            "n_examples": self.n_examples,
            "n_weights": self.n_weights,
            "C": self.C,
            "dtype": self.dtype,
            "solver": f"{self.solver.name}: {self.solver}",
            "regularizer": str(self.regularizer),
        }

    def _resume(self) -> None:
        saved = load_run(self.checkpoint, self.identity(), self.n_each)
        if saved is None:
            return
        self.reported = list(saved.states)
        self.with_faults(partial(self.group.call, "restore", each=saved.states))
        self.seconds, self.oracle_calls = saved.seconds, saved.oracle_calls
        self.bytes_sent = saved.bytes_sent
        self.history = [RoundRecord(**record) for record in saved.history]
        self.with_faults(self.way.sync)
