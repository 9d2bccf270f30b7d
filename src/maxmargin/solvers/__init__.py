"""How structures are learned: one file per algorithm, one driver for all."""

from __future__ import annotations

from maxmargin.solvers.base import Certificate, History, PassRecord, Solver
from maxmargin.solvers.driver import SolveResult, solve
from maxmargin.solvers.extragradient import ExtraGradient
from maxmargin.solvers.lp import LP
from maxmargin.solvers.one_slack import OneSlack
from maxmargin.solvers.sap import SAP
from maxmargin.solvers.sdm import SDM
from maxmargin.solvers.subgradient import Subgradient

__all__ = [
    "LP",
    "SAP",
    "SDM",
    "SOLVERS",
    "Certificate",
    "ExtraGradient",
    "History",
    "OneSlack",
    "PassRecord",
    "SolveResult",
    "Solver",
    "Subgradient",
    "make_solver",
    "solve",
]

#: Solvers by the name that ``solver="..."`` takes.
SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (SDM, SAP, Subgradient, LP, ExtraGradient, OneSlack)
}


def make_solver(solver: str | Solver) -> Solver:
    """Turn what a user wrote into a solver.

    Parameters
    ----------
    solver : str or Solver
        A name from `SOLVERS`, or a description.

    Returns
    -------
    Solver
        The description; a name gives the defaults.

    Raises
    ------
    ValueError
        If there is no such solver.
    """
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver.lower() in SOLVERS:
        return SOLVERS[solver.lower()]()
    names = ", ".join(repr(name) for name in SOLVERS)
    raise ValueError(f"solver must be one of {names} or a Solver, got {solver!r}")
