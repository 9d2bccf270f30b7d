"""Solvers beside each other: one problem, one optimum, the clock stopped while they are looked at.

Every run is one call of the driver (`maxmargin.solvers.solve`), which counts time inside passes
only. A `PassObserver` looks at the machine after each pass, so that objectives and test errors cost
no training time.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from maxmargin.checks import is_real
from maxmargin.comparison import MEASURES, Comparison, Point, Reference, Run, check_measure
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer, make_regularizer
from maxmargin.solvers import SDM, Solver, make_solver, solve
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.refusals import check_regularizer

if TYPE_CHECKING:
    from maxmargin._native import Problem

__all__ = ["Comparison", "Point", "Reference", "Run", "compare"]

#: A reference run goes this much closer to the optimum than the runs that are compared with it.
TIGHTER = 0.1

#: What ends one run and not the comparison: what does not go together, diverges or does not fit.
FAILURES = (NotCompatibleError, ArithmeticError, MemoryError)

#: Fields of solvers that change the problem and not only the way to its optimum, and what solvers
#: without them do.
FORMULATION = {"slack": "linear", "rescale": "margin"}


def compare(
    problem: Problem,
    solvers: Iterable[str | Solver] | Mapping[str, str | Solver],
    *,
    C: float,
    regularizer: Regularizer | str | None = None,
    reference: float | str | Certificate | None = None,
    score: Callable[[Any], float] | None = None,
    gap: float = 1e-3,
    time_limit: float | None = 60.0,
    max_passes: int = 1000,
    seed: int | None = 0,
    dtype: str = "float32",
    n_jobs: int = 1,
    primal: bool = True,
    until: Mapping[str, float] | None = None,
) -> Comparison:
    """Run solvers on one problem and record where each is after each pass.

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
    max_passes : int
        Passes of each run.
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

    Examples
    --------
    >>> from maxmargin import Chain, compare
    >>> X = [[["a"], ["b"]], [["b"], ["a"]]]
    >>> problem = Chain().prepare_problem(X, [["A", "B"], ["B", "A"]]).problem
    >>> found = compare(problem, ["sdm", "subgradient"], C=1.0, max_passes=20)
    >>> found.labels
    ['sdm', 'subgradient']
    """
    chosen = _labelled(solvers)
    formulation = _common_formulation(chosen)
    regularizer = make_regularizer(regularizer)
    wanted = _checked_targets(until, reference, score, primal)

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
            raise KeyboardInterrupt  # half a reference is none
        reached = f"SDM to a gap of {found.certificate.gap:.2g}"
        optimum = Reference(found.certificate.dual, found.certificate.primal, reached)
    elif isinstance(reference, Certificate):
        optimum = Reference(reference.dual, reference.primal)
    elif reference is not None:
        optimum = Reference(float(reference), float(reference))

    runs: list[Run] = []
    for label, solver in chosen.items():
        watch = _Watch(Comparison(C, "", 0, optimum, ()), score, primal, n_jobs, wanted)
        description = f"{solver.name}: {solver}"
        refusal = _refusal(solver, regularizer)
        if refusal is not None:
            runs.append(Run(label, description, error=refusal))
            continue
        try:
            result = run(solver, gap, [watch])
        except FAILURES as error:
            why = str(error) or type(error).__name__
            runs.append(Run(label, description, tuple(watch.points), error=why))
            continue
        runs.append(
            Run(
                label,
                description,
                tuple(watch.points),
                primal=_finite(result.certificate.primal),
                dual=result.certificate.dual,
                converged=result.converged,
                stop_reason=result.stop_reason,
            )
        )
        if result.interrupted:
            break
        del result  # with its engine, before the next run makes its own
    return Comparison(
        C=float(C),
        regularizer=str(regularizer),
        n_examples=problem.n_examples,
        reference=_best(runs) if optimum is None else optimum,
        runs=tuple(runs),
    )


class _Watch:
    """Records where a run is after each pass; the driver's clock does not run meanwhile."""

    def __init__(
        self,
        figures: Comparison,
        score: Callable[[Any], float] | None,
        primal: bool,
        n_jobs: int,
        wanted: dict[str, float],
    ) -> None:
        self.points: list[Point] = []
        self._figures, self._score, self._primal = figures, score, primal
        self._n_jobs, self._wanted = n_jobs, dict(wanted)
        self._stops = bool(wanted)

    def begin_pass(self, engine: Machine) -> None:
        """Do nothing."""

    def end_pass(self, record: PassRecord, engine: Machine) -> bool:
        """Take down the figures; true when all that is wanted was reached."""
        point = Point(
            n_pass=record.n_pass,
            kind=record.kind,
            seconds=record.seconds,
            oracle_calls=record.oracle_calls,
            dual=engine.dual(),
            # At the present weights: most passes moved them after their oracle calls.
            primal=_finite(engine.objective(self._n_jobs)) if self._primal else None,
            test_error=None if self._score is None else _error(self._score(engine.weights)),
        )
        self.points.append(point)
        for measure, value in list(self._wanted.items()):
            found = self._figures.value(point, measure)
            if found is not None and found <= value:
                del self._wanted[measure]
        return self._stops and not self._wanted


def _labelled(solvers: Any) -> dict[str, Solver]:
    """Give every solver a label of its own."""
    if isinstance(solvers, str | Solver):
        solvers = [solvers]
    if isinstance(solvers, Mapping):
        chosen = {str(label): make_solver(solver) for label, solver in solvers.items()}
    else:
        chosen = {}
        for solver in map(make_solver, solvers):
            label = _label(solver)
            if label in chosen:
                raise ValueError(f"solver {label} is there twice; give a dict of label -> solver")
            chosen[label] = solver
    if not chosen:
        raise ValueError("there are no solvers to compare; expected at least one")
    return chosen


def _label(solver: Solver) -> str:
    """Return the name, and what is not as it is by default."""
    try:
        names = [field.name for field in dataclasses.fields(solver)]  # type: ignore[arg-type]
        plain = type(solver)()
    except TypeError:  # somebody's own solver: no dataclass, or without defaults
        return solver.name
    changed = [
        f"{name}={getattr(solver, name)!r}"
        for name in names
        if getattr(solver, name) != getattr(plain, name)
    ]
    return f"{solver.name}({', '.join(changed)})" if changed else solver.name


def _common_formulation(chosen: Mapping[str, Solver]) -> dict[str, Any]:
    """Return the formulation that all solvers share, without what is the default."""
    found: dict[str, Any] = {}
    for label, solver in chosen.items():
        mine = {name: getattr(solver, name, plain) for name, plain in FORMULATION.items()}
        found = found or {"label": label, "mine": mine}
        if mine != found["mine"]:
            raise ValueError(
                f"{found['label']} and {label} do not solve the same problem, and have no common "
                f"optimum: {found['mine']} and {mine}"
            )
    return {name: value for name, value in found["mine"].items() if value != FORMULATION[name]}


def _checked_targets(
    until: Any, reference: Any, score: Any, primal: bool
) -> dict[str, float]:
    """Check what a comparison is to aim at."""
    if isinstance(reference, str):
        if reference != "sdm":
            raise ValueError(
                f'reference is {reference!r}; expected a number, "sdm", a Certificate or None'
            )
    elif reference is not None and not isinstance(reference, Certificate):
        _check_number("reference", reference)
        if not reference > 0:
            raise ValueError(f"reference is {reference!r}; expected a number above 0")
    targets = dict(until or {})
    if until is not None and not targets:
        raise ValueError("until is empty; expected a dict of measure -> value, or None")
    needs = {
        "dual": ("a reference that is known beforehand", reference is not None),
        "primal": ("primal=True and a reference", reference is not None and primal),
        "gap": ("primal=True", primal),
        "test_error": ("a score", score is not None),
    }
    for measure, value in targets.items():
        check_measure(measure, MEASURES)
        _check_number(f"until[{measure!r}]", value)
        what, there = needs[measure]
        if not there:
            raise ValueError(f"until[{measure!r}] needs {what}")
    return targets


def _check_number(name: str, value: Any) -> None:
    if not is_real(value):
        raise TypeError(f"{name} is {value!r}; expected a number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; expected a finite number")


def _refusal(solver: Solver, regularizer: Regularizer) -> str | None:
    """Return why a solver cannot do a regulariser; None if it can."""
    try:
        check_regularizer(solver, regularizer)
    except ValueError as error:
        return str(error)
    return None


def _best(runs: list[Run]) -> Reference | None:
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


class _CallableModule(types.ModuleType):
    """`maxmargin.compare` is the function, also after somebody has imported the module first."""

    def __call__(self, *args: Any, **kwargs: Any) -> Comparison:
        return compare(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
