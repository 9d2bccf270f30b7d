"""What every solver has in common.

A solver is an immutable description of an algorithm. It does not loop: the driver
(`maxmargin.solvers.driver`) calls ``step`` until something says stop, and owns the clock, the
history, checkpoints, callbacks and interruptions, so that these are written once.

What a solver moves is a machine (`maxmargin.solvers.machine`); what it cannot do is told by the
members below, and refused, with the solvers that can, by `maxmargin.solvers.refusals`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from maxmargin._native import Problem
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L2, ElasticNet, Regularizer, Selected
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.state import check_stored
from maxmargin.solvers.steps import Context, Step

__all__ = ["Solver"]


class Solver(ABC):
    """An algorithm: how passes follow each other."""

    #: Name used in ``solver="..."``.
    name: ClassVar[str]

    #: The regularisers that it can do; None: all that have a link.
    regularizers: ClassVar[tuple[type[Regularizer], ...] | None] = None

    #: Whether it moves multipliers, from which scores can be made through a kernel.
    kernels: ClassVar[bool] = True

    #: Whether its objective may have the fixed linear term of a problem.
    linear_terms: ClassVar[bool] = True
    #: Whether passes may go from window to window, where not all planes are in memory.
    windows: ClassVar[bool] = False

    #: What its state has (under some schedule, if it has several) and checkpoints of earlier
    #: versions do not, with the value to go on with.
    later: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @property
    def factored(self) -> bool:
        """Whether blocks may be kept as products of independent parts."""
        return False

    @property
    def nu(self) -> float:
        """Cost-to-move of β; only SAP has one."""
        return 0.0

    @property
    def slack(self) -> str:
        """What slacks cost: "linear", "quadratic", or "hard" where there are none."""
        return "linear"

    @property
    def rescale(self) -> str:
        """What the loss scales: "margin", "slack", or "none"."""
        return "margin"

    def start(self, problem: Problem, C: float, regularizer: Regularizer, single: bool) -> Machine:
        """Return what the solver moves, before the first pass: the dual engine.

        Parameters
        ----------
        problem : Problem
            The training problem.
        C : float
            Weight of the loss.
        regularizer : Regularizer
            One of ``regularizers``.
        single : bool
            Whether weights are 4-byte.
        """
        return DualMachine(
            problem,
            C,
            single=single,
            factored=self.factored,
            link=regularizer.link.native(),
            nu=self.nu,
            slack=self.slack,
            rescale=self.rescale,
        )

    def continue_from(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
        """Make a machine that an earlier run left ready for this solver (a warm start).

        Parameters
        ----------
        machine : Machine
            What the earlier run moved, for the same problem.
        C : float
            The new C.
        regularizer : Regularizer
            The new regulariser.
        """
        if (
            not isinstance(machine, DualMachine)
            or machine.factored != self.factored
            or machine.nu != self.nu
            or machine.formulation != (self.slack, self.rescale)
        ):
            raise NotCompatibleError(
                f"the engine to go on from was made for another schedule than {self}"
            )
        link = regularizer.link.native()
        if machine.link != link:
            machine.relink(link)
        if machine.C != C:
            machine.rescale(C)
        machine.take_linear_term()

    @classmethod
    def supports(cls, regularizer: Regularizer) -> bool:
        """Whether it can train with a regulariser."""
        if cls.regularizers is None:
            return regularizer.linked
        return isinstance(regularizer, cls.regularizers)

    @classmethod
    def supported_regularizers(cls) -> str:
        """Return the regularisers that it supports, in words."""
        kinds = (L2, ElasticNet) if cls.regularizers is None else cls.regularizers
        names = ", ".join(kind.__name__ for kind in kinds if kind is not Selected)
        return names if cls.regularizers is not None else f"{names} and others with a link"

    def check_options(self, regularizer: Regularizer) -> None:  # noqa: B027
        """Refuse a regulariser that the solver supports, but not with its present options.

        Raises
        ------
        ValueError
            If an option does not go with the regulariser.
        """

    @abstractmethod
    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass; plain values that JSON can hold."""

    @abstractmethod
    def step(self, machine: Any, state: dict[str, Any], context: Context) -> Step:
        """Make one pass with what `start` gave and move the state on."""

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that a checkpoint may hold but that no run can have had.

        Parameters
        ----------
        state : dict
            As `init` and `step` leave it, in a file that may be damaged.
        machine : Machine
            What the solver moves, as the checkpoint has it.
        context : Context
            The run.

        Raises
        ------
        ValueError
            If a value is missing, of the wrong type or out of range.
        """
        first = self.init(context)
        if not isinstance(state, dict) or state.keys() != first.keys():
            raise ValueError(f"{self.name} does not know this state: {state}")
        for name, value in state.items():
            check_stored(name, value, first[name])
