"""What `maxmargin.compare` is given: labels of solvers, their formulation, and what ends runs."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from maxmargin.comparing.records import MEASURES, check_measure
from maxmargin.regularizers import Regularizer
from maxmargin.solvers import Certificate, Solver, make_solver
from maxmargin.solvers.refusals import check_regularizer

__all__ = ["checked_targets", "common_formulation", "labelled", "refusal_of"]

#: Fields of solvers that change the problem and not only the way to its optimum, and what solvers
#: without them do.
FORMULATION = {"slack": "linear", "rescale": "margin"}

#: Solvers that are compared: one, several, or by labels of their own.
Solvers: TypeAlias = str | Solver | Iterable[str | Solver] | Mapping[str, str | Solver]


def labelled(solvers: Solvers) -> dict[str, Solver]:
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


def common_formulation(chosen: Mapping[str, Solver]) -> dict[str, Any]:
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


def checked_targets(
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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}; expected a number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; expected a finite number")


def refusal_of(solver: Solver, regularizer: Regularizer) -> str | None:
    """Return why a solver cannot do a regulariser; None if it can."""
    try:
        check_regularizer(solver, regularizer)
    except ValueError as error:
        return str(error)
    return None
