"""All solvers by name, and how a user's words become one of them."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from maxmargin.errors import NotCompatibleError
from maxmargin.solvers.base import Solver
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.dual_coordinate import DualCoordinate
from maxmargin.solvers.extragradient import ExtraGradient
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.lp import LP
from maxmargin.solvers.nslack import NSlack
from maxmargin.solvers.one_slack import OneSlack
from maxmargin.solvers.online import Online
from maxmargin.solvers.sap import SAP
from maxmargin.solvers.sdm import SDM
from maxmargin.solvers.subgradient import Subgradient

__all__ = ["SOLVERS", "make_solver"]

#: Solvers by the name that ``solver="..."`` takes.
SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        SDM,
        SAP,
        NSlack,
        DualCoordinate,
        OneSlack,
        BCFW,
        Subgradient,
        LP,
        ExtraGradient,
        InteriorPoint,
        Online,
    )
}


def make_solver(solver: str | Solver, **options: Any) -> Solver:
    """Turn what a user wrote into a solver.

    Parameters
    ----------
    solver : str or Solver
        A name from `SOLVERS`, or a description.
    **options
        Parameters of the solver, in the place of its own; None leaves one alone.

    Returns
    -------
    Solver
        The description; a name gives the defaults.

    Raises
    ------
    ValueError
        If there is no such solver, or it has no such parameter.
    """
    if isinstance(solver, str) and solver.lower() in SOLVERS:
        solver = SOLVERS[solver.lower()]()
    if not isinstance(solver, Solver):
        names = ", ".join(repr(name) for name in SOLVERS)
        raise ValueError(f"solver must be one of {names} or a Solver, got {solver!r}")
    wanted = {name: value for name, value in options.items() if value is not None}
    if not wanted:
        return solver
    for name in wanted:
        if name not in _parameters(type(solver)):
            able = [other for other, kind in SOLVERS.items() if name in _parameters(kind)]
            raise NotCompatibleError(
                f"solver {solver.name!r} has no parameter {name!r}; it has "
                f"{', '.join(_parameters(type(solver))) or 'none'}"
                + (f". {name!r} goes with solver {' or '.join(map(repr, able))}" if able else "")
            )
    return dataclasses.replace(cast(Any, solver), **wanted)  # type: ignore[no-any-return]


def repeatable(solver: Solver) -> Solver:
    """Return the solver, such that a run with several threads can be repeated.

    Parameters
    ----------
    solver : Solver
        One without a parameter ``deterministic`` always can.
    """
    if "deterministic" not in _parameters(type(solver)):
        return solver
    return make_solver(solver, deterministic=True)


def _parameters(kind: type[Solver]) -> list[str]:
    return [field.name for field in dataclasses.fields(cast(Any, kind)) if field.init]
