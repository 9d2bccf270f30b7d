"""Runs of several solvers on one problem.

Every run is one call of the driver (`maxmargin.solvers.solve`), which counts time inside passes
only. A `PassObserver` looks at the machine after each pass, so that objectives and test errors cost
no training time.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from maxmargin.comparing.arguments import (
    checked_targets,
    common_formulation,
    labelled,
    refusal_of,
)
from maxmargin.comparing.comparison import Comparison
from maxmargin.comparing.records import Point, Reference, Run, measure_of
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer, make_regularizer
from maxmargin.solvers import SDM, Certificate, PassRecord, Solver, solve
from maxmargin.solvers.machine import Machine

if TYPE_CHECKING:
    from maxmargin._native import Problem

__all__ = ["compare_problem"]

#: A reference run goes this much closer to the optimum than the runs that are compared with it.
TIGHTER = 0.1

#: What ends one run and not the comparison: what does not go together, diverges or does not fit.
FAILURES = (NotCompatibleError, ArithmeticError, MemoryError)


def compare_problem(
    problem: Problem,
    solvers: Iterable[str | Solver] | Mapping[str, str | Solver],
    *,
    C: float,
    regularizer: Regularizer | str | None = None,
    reference: float | str | Certificate | None = None,
    score: Callable[[Any], float] | None = None,
    gap: float = 1e-3,
    time_limit: float | None = 60.0,
    max_passes: int | None = None,
    seed: int | None = 0,
    dtype: str = "float32",
    n_jobs: int = 1,
    primal: bool = True,
    until: Mapping[str, float] | None = None,
) -> Comparison:
    """Run solvers on one native problem; see `maxmargin.compare`.

    A run that fails because its solver does not go with the problem or the regulariser, because it
    diverges or for want of memory is reported as failed; the others go on. Ctrl-C ends the run
    under way and leaves out the rest.

    Parameters
    ----------
    problem : Problem
        A native problem: a structure joined with its data.
    solvers : iterable, or dict of label -> solver
        Names from `maxmargin.solvers.SOLVERS`, or descriptions.
    C : float
        Weight of the loss.
    regularizer : Regularizer, "l2" or None
        Ω; None means L2.
    reference : float, "sdm", Certificate or None
        What is taken for the optimum: a value; a run of SDM, not counted, to a tenth of `gap`; the
        primal and dual of a certificate; or None, the best dual and the best primal that any of
        the runs ends with.
    score : callable or None
        Gives the score of weights (in the native layout) on test data; 1 is perfect. It must not
        keep or change the weights. The test error is one minus the score.
    gap : float
        A run stops when its relative duality gap is at most this.
    time_limit : float or None
        Seconds of training for each run.
    max_passes : int or None
        Passes of each run; None: about half a minute of counted work, as for
        `maxmargin.solvers.solve`.
    seed : int or None
        Of every run.
    dtype : {"float32", "float64"}
        Size of the weights during training.
    n_jobs : int
        Threads, as for `maxmargin.solvers.solve`.
    primal : bool
        Record primals, which takes an oracle pass each (with the clock stopped).
    until : dict of measure -> float, or None
        A run stops as soon as all these figures were as small at some pass (not necessarily the
        same one); ``{"dual": 1e-3}`` is a dual within 0.1 % of the reference. "dual" and "primal"
        need a reference that is known beforehand.

    Returns
    -------
    Comparison
        Figures pass by pass, tables, a plot.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, there is no such solver, or solvers are given that do not
        solve the same problem.
    """
    chosen = labelled(solvers)
    formulation = common_formulation(chosen)
    regularizer = make_regularizer(regularizer)
    wanted = checked_targets(until, reference, score, primal)

    def run(solver: Solver, gap: float, callbacks: list[Any], limited: bool = True) -> Any:
        return solve(
            problem,
            solver,
            C=C,
            dtype=dtype,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes if limited else sys.maxsize,
            time_limit=time_limit if limited else None,
            n_jobs=n_jobs,
            random_state=seed,
            callbacks=callbacks,
            warn=False,
        )

    optimum = None
    if isinstance(reference, str):
        found = run(SDM(**formulation), TIGHTER * gap, [], limited=False)
        if found.interrupted:
            raise KeyboardInterrupt  # the reference did not get as close as it has to
        reached = f"SDM to a gap of {found.certificate.gap:.2g}"
        optimum = Reference(found.certificate.dual, found.certificate.primal, reached)
    elif isinstance(reference, Certificate):
        optimum = Reference(reference.dual, reference.primal)
    elif reference is not None:
        optimum = Reference(float(reference), float(reference))

    runs: list[Run] = []
    for label, solver in chosen.items():
        recorder = _Recorder(optimum, score, primal, n_jobs, wanted)
        description = f"{solver.name}: {solver}"
        refusal = refusal_of(solver, regularizer)
        if refusal is not None:
            runs.append(Run(label, description, error=refusal))
            continue
        try:
            result = run(solver, gap, [recorder])
        except FAILURES as error:
            why = str(error) or type(error).__name__
            runs.append(Run(label, description, tuple(recorder.points), error=why))
            continue
        runs.append(
            Run(
                label,
                description,
                tuple(recorder.points),
                primal=_finite(result.certificate.primal),
                dual=result.certificate.dual,
                converged=result.converged,
                stop_reason=result.stop_reason,
            )
        )
        if result.interrupted:
            break
        del result  # frees the memory of its machine before the next run needs its own
    return Comparison(
        C=float(C),
        regularizer=str(regularizer),
        n_examples=problem.n_examples,
        reference=_narrowest(runs) if optimum is None else optimum,
        runs=tuple(runs),
    )


class _Recorder:
    """Records where a run is after each pass; the driver's clock does not run meanwhile."""

    def __init__(
        self,
        reference: Reference | None,
        score: Callable[[Any], float] | None,
        primal: bool,
        n_jobs: int,
        wanted: dict[str, float],
    ) -> None:
        self.points: list[Point] = []
        self._reference, self._score, self._primal = reference, score, primal
        self._n_jobs, self._wanted = n_jobs, dict(wanted)
        self._stops = bool(wanted)

    def begin_pass(self, machine: Machine) -> None:
        """Do nothing."""

    def end_pass(self, record: PassRecord, machine: Machine) -> bool:
        """Record the figures; true, which ends the run, when all that is wanted was reached."""
        point = Point(
            n_pass=record.n_pass,
            kind=record.kind,
            seconds=record.seconds,
            oracle_calls=record.oracle_calls,
            dual=machine.dual(),
            # At the present weights: most passes moved them after their oracle calls.
            primal=_finite(machine.objective(self._n_jobs)) if self._primal else None,
            test_error=None if self._score is None else _error(self._score(machine.weights)),
        )
        self.points.append(point)
        for measure, value in list(self._wanted.items()):
            found = measure_of(point, measure, self._reference)
            if found is not None and found <= value:
                del self._wanted[measure]
        return self._stops and not self._wanted


def _narrowest(runs: list[Run]) -> Reference | None:
    """Return the narrowest bracket of the optimum that the runs give."""
    duals = [run.dual for run in runs if run.dual is not None]
    primals = [run.primal for run in runs if run.primal is not None]
    if not duals or not primals:
        return None
    return Reference(max(duals), min(primals), "best of all runs")


def _finite(value: float) -> float | None:
    """Return a number, or None for one that JSON cannot hold."""
    return float(value) if math.isfinite(value) else None


def _error(score: Any) -> float:
    """Turn a score into an error."""
    value = float(score) if isinstance(score, numbers.Real) else math.nan
    if not -math.inf < value <= 1:
        raise ValueError(f"score gave {score!r}; expected a number of at most 1, which is perfect")
    return 1.0 - value
