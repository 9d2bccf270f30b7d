"""How structures are learned: one file per algorithm, one driver for all."""

from __future__ import annotations

from maxmargin.solvers.base import Solver
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import SolveResult, solve
from maxmargin.solvers.dual_coordinate import DualCoordinate
from maxmargin.solvers.extragradient import ExtraGradient
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.lp import LP
from maxmargin.solvers.nslack import NSlack
from maxmargin.solvers.one_slack import OneSlack
from maxmargin.solvers.online import Online
from maxmargin.solvers.registry import SOLVERS, make_solver
from maxmargin.solvers.sap import SAP
from maxmargin.solvers.sdm import SDM
from maxmargin.solvers.subgradient import Subgradient

__all__ = [
    "BCFW",
    "LP",
    "SAP",
    "SDM",
    "SOLVERS",
    "Certificate",
    "DualCoordinate",
    "ExtraGradient",
    "History",
    "InteriorPoint",
    "NSlack",
    "OneSlack",
    "Online",
    "PassRecord",
    "SolveResult",
    "Solver",
    "Subgradient",
    "make_solver",
    "solve",
]
