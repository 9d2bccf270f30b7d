"""What every solver has in common: its description, its state, what a pass records.

A solver is an immutable description of an algorithm. It does not loop: the driver
(`maxmargin.solvers.driver`) calls ``step`` until something says stop, and owns the clock, the
history, checkpoints, callbacks and interruptions, so that these are written once.

What a solver moves is a *machine*: the native dual engine, or for solvers that keep no multipliers
a w of its own (`maxmargin.solvers.primal`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Protocol, overload

import numpy as np

from maxmargin._native import Engine, Problem
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L2, ElasticNet, Regularizer, Selected

__all__ = [
    "Certificate",
    "Context",
    "History",
    "Machine",
    "PassRecord",
    "PassTotals",
    "Solver",
    "Step",
    "Totals",
]


@dataclass(frozen=True)
class Certificate:
    """How far a returned model can be from the optimum, computed from scratch.

    The weights were rebuilt from the multipliers, and primal and dual computed from them and the
    data in 8-byte arithmetic; nothing that training accumulated enters. The primal is that of the
    weights as they are returned, which float32 rounds. (Solvers that keep w and no
    multipliers have the primal from scratch too, and as dual the best bound that they met.)

    Attributes
    ----------
    primal : float
        Ω(w) + C Σ_i max_y [l_i(y) - w·Δf_i(y)], with Ω(w) = ½‖w‖² or the elastic net; other
        formulations of the margin have their own loss (``native/formulation.hpp``).
    dual : float
        C Σ_i Σ_y α_i(y) l_i(y) - Ω*(u): no model has a smaller primal than this. For L2,
        Ω*(u) = ½‖w‖².
    C : float
        The C of the objective (of the sum over examples).
    n_examples : int
        Number of examples.
    approximate : bool
        An oracle may have missed its best output. The primal is then a bound from above, by what
        the oracle could prove, so that the gap holds all the same; unless it is known that one was
        missed.
    missed : int or None
        An example whose argmax returned an output that is worse than one already known (`UNKNOWN`
        where nobody can tell which example it was); None if there is none. Outputs that are known
        count in the primal, but there may be others that argmax misses: the primal is then a bound
        from below, and the gap says nothing. Such a training has not converged.
    """

    primal: float
    dual: float
    C: float
    n_examples: int
    approximate: bool = False
    missed: int | None = None

    #: `missed` where the example is not known.
    UNKNOWN: ClassVar[int] = -1

    @property
    def gap(self) -> float:
        """Relative duality gap (primal - dual) / primal."""
        return relative_gap(self.primal, self.dual)

    @property
    def advice(self) -> str:
        """What is wrong with argmax and what to do about it; empty if nothing is known."""
        if self.missed is None:
            return ""
        where = f"example {self.missed}"
        if self.missed == self.UNKNOWN:
            where = "an example (or the run was resumed from a checkpoint with a wrong bound)"
        return (
            f"argmax missed a better output of {where}, so that nobody can tell how far this is "
            "from the optimum; run check_structure to see whether argmax finds the maximum of "
            "loss + score"
        )

    def __str__(self) -> str:
        if self.missed is not None:
            return (
                f"primal at least {self.primal:.6g}, dual {self.dual:.6g} (C = {self.C:g}), with "
                f"an approximate oracle: {self.advice}"
            )
        return (
            f"primal {self.primal:.6g}, dual {self.dual:.6g}: "
            f"within {100 * self.gap:.3g} % of the optimum (C = {self.C:g})"
            + (", with an approximate oracle" if self.approximate else "")
        )


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / primal; 0 where both are 0, NaN where the primal is not known.

    A primal that is infinite (a hard margin that w does not have) is all gap.
    """
    if primal == math.inf:
        return 1.0
    return (primal - dual) / primal if primal != 0 else 0.0


@dataclass(frozen=True)
class PassRecord:
    """What one pass did.

    Attributes
    ----------
    n_pass : int
        Number of the pass, from 1.
    kind : str
        "exact" (oracle and step), "collect" (oracle at one w: a true gap) or "cached".
    seconds : float
        Training time so far.
    oracle_calls : int
        Oracle calls so far.
    primal, gap : float
        Objective and relative gap at the w of this pass; NaN where the pass cannot tell.
    dual : float
        Dual objective after the pass.
    gap_estimate : float
        Relative gap summed over blocks at the moving w of the pass; NaN for cached passes.
    planes : int
        Planes kept.
    nonzeros : int
        Weights that are not zero; -1 where it was not counted.
    """

    n_pass: int
    kind: str
    seconds: float
    oracle_calls: int
    primal: float
    dual: float
    gap: float
    gap_estimate: float
    planes: int
    nonzeros: int = -1


class History(Sequence[PassRecord]):
    """The records of all passes; a sequence that can also be read by column.

    Parameters
    ----------
    records : iterable of PassRecord
        The records so far.
    """

    def __init__(self, records: Sequence[PassRecord] = ()) -> None:
        self._records = list(records)

    def append(self, record: PassRecord) -> None:
        """Add the record of a pass."""
        self._records.append(record)

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """One attribute of all records, as an array.

        Parameters
        ----------
        name : str
            An attribute of `PassRecord`.

        Returns
        -------
        ndarray
            Its value at each pass.
        """
        known = [f.name for f in fields(PassRecord)]
        if name not in known:
            raise ValueError(f"a history has the columns {', '.join(known)}; got {name!r}")
        return np.array([getattr(r, name) for r in self._records])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain dictionaries, one per pass."""
        return [asdict(r) for r in self._records]

    @classmethod
    def from_dicts(cls, rows: Sequence[dict[str, Any]]) -> History:
        """Undo `to_dicts`; a ValueError or TypeError where that is not what the rows are."""
        records = [PassRecord(**row) for row in rows]
        for k, record in enumerate(records, 1):
            numbers = [v for name, v in asdict(record).items() if name != "kind"]
            good = (
                record.n_pass == k
                and isinstance(record.kind, str)
                and all(isinstance(v, int | float) and not isinstance(v, bool) for v in numbers)
                and all(isinstance(v, int) for v in (record.planes, record.nonzeros))
                and all(abs(v) < 2**63 for v in numbers if math.isfinite(v))
            )
            if not good:
                raise ValueError(f"the record of pass {k} is damaged")
        return cls(records)

    @overload
    def __getitem__(self, index: int) -> PassRecord: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> PassRecord | History:
        if isinstance(index, slice):
            return History(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[PassRecord]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and repr(self._records) == repr(other._records)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"History({len(self._records)} passes)"


@dataclass
class Context:
    """What a solver may know of the run while it steps.

    Attributes
    ----------
    n_examples : int
        Number of examples.
    rng : numpy.random.Generator
        The run's only source of randomness.
    threads : int
        Threads for passes at a fixed w.
    gap : float
        The relative gap asked for, or the rounding of the weights if that is more.
    slow_oracle : bool
        The oracle is a user's Python code: cached passes are nearly free in comparison.
    seconds_left : float or None
        Time budget of the pass that is about to begin.
    dual : float
        Dual objective, from the gains of all passes.
    """

    n_examples: int
    rng: np.random.Generator
    threads: int = 1
    gap: float = 0.01
    slow_oracle: bool = False
    seconds_left: float | None = None
    dual: float = 0.0

    def order(self, permute: bool = True) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Order in which a pass visits the examples."""
        if permute:
            return self.rng.permutation(self.n_examples).astype(np.uint32)
        return np.arange(self.n_examples, dtype=np.uint32)


class Totals(Protocol):
    """What the driver reads of a pass; the engine's own `PassResult` has more."""

    @property
    def gap(self) -> float:
        """Primal minus dual, or an estimate of it."""

    @property
    def gain(self) -> float:
        """Increase of the dual."""

    @property
    def oracle_calls(self) -> int:
        """Oracle calls of this pass."""

    @property
    def interrupted(self) -> bool:
        """Whether the pass was cut short."""


@dataclass(frozen=True)
class PassTotals:
    """The totals of a pass that was not the dual engine's.

    Attributes
    ----------
    gap : float
        Primal minus dual at the end of the pass, or an estimate of it.
    gain : float
        Increase of the dual bound.
    oracle_calls : int
        Oracle calls of this pass.
    interrupted : bool
        The pass was cut short.
    """

    gap: float
    gain: float
    oracle_calls: int
    interrupted: bool = False


@dataclass(frozen=True)
class Step:
    """What a solver reports of one pass.

    Attributes
    ----------
    kind : str
        The kind of pass, as in `PassRecord`.
    result : Totals
        What was counted.
    finished : bool
        The solver's own stopping rule holds.
    reason : str
        Which one, in words.
    stuck : bool
        The pass could not move although there was something left to do.
    """

    kind: str
    result: Totals
    finished: bool = False
    reason: str = ""
    stuck: bool = False

    @property
    def exact_gap(self) -> float:
        """P - D at one w, if this pass stayed at one w; else NaN."""
        return self.result.gap if self.kind == "collect" else math.nan


class Machine(Protocol):
    """What a solver moves, as the driver sees it: weights with a primal and a dual bound."""

    @property
    def C(self) -> float:  # noqa: N802
        """Weight of the loss."""

    @property
    def weights(self) -> Any:
        """The present weights, in the native layout."""

    def objective(self, threads: int = 1) -> float:
        """Return the primal at the present weights."""

    def dual(self) -> float:
        """Return the dual bound at the present state."""

    def certify(self, threads: int = 1) -> tuple[float, float]:
        """Return primal and dual of the model, from scratch."""

    def primal_of(self, weights: Any, threads: int = 1) -> float:
        """Return the primal of any weights under the objective that is trained, from scratch.

        Slacks, rescaling, regulariser and the weights of examples are those of training.
        """

    def size(self) -> dict[str, int]:
        """Return counts, "planes" among them."""

    def state(self) -> dict[str, Any]:
        """Return arrays for a checkpoint."""

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""

    def solves(self, problem: Problem) -> bool:
        """Whether it was made for this problem."""


class Solver(ABC):
    """An algorithm: how passes follow each other."""

    #: Name used in ``solver="..."``.
    name: ClassVar[str]

    #: The regularisers that it can do; None: all that have a link.
    regularizers: ClassVar[tuple[type[Regularizer], ...] | None] = None

    #: Whether it moves multipliers, from which scores can be made through a kernel.
    kernels: ClassVar[bool] = True

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
            One of `regularizers`.
        single : bool
            Whether weights are 4-byte.
        """
        return Engine(
            problem,
            C,
            single=single,
            factored=self.factored,
            link=regularizer.link.native(),
            nu=self.nu,
            slack=self.slack,
            rescale=self.rescale,
        )

    def go_on(self, machine: Machine, C: float, regularizer: Regularizer) -> None:
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
            not isinstance(machine, Engine)
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

    @classmethod
    def does(cls, regularizer: Regularizer) -> bool:
        """Whether it can do a regulariser."""
        if cls.regularizers is None:
            return regularizer.linked
        return isinstance(regularizer, cls.regularizers)

    @classmethod
    def does_what(cls) -> str:
        """Return the regularisers that it can do, in words."""
        kinds = (L2, ElasticNet) if cls.regularizers is None else cls.regularizers
        names = ", ".join(kind.__name__ for kind in kinds if kind is not Selected)
        return names if cls.regularizers is not None else f"{names} and others with a link"

    def check_regularizer(self, regularizer: Regularizer) -> None:
        """Refuse a regulariser that this solver cannot do.

        Raises
        ------
        NotCompatibleError
            With the solvers that can.
        """
        if self.does(regularizer):
            return
        from maxmargin.solvers import SOLVERS

        able = [name for name, solver in SOLVERS.items() if solver.does(regularizer)]
        raise NotCompatibleError(
            f"solver {self.name!r} cannot do {regularizer}; it does {self.does_what()}. "
            + (f"{regularizer} goes with solver " if able else "No solver does it")
            + " or ".join(map(repr, able))
        )

    def check_kernel(self, regularizer: Regularizer) -> None:
        """Refuse to train with a kernel what needs the weights of features.

        Raises
        ------
        NotCompatibleError
            With the nearest thing that works.
        """
        from maxmargin.solvers import SOLVERS

        if not self.kernels:
            able = " or ".join(repr(name) for name, solver in SOLVERS.items() if solver.kernels)
            raise NotCompatibleError(
                f"solver {self.name!r} moves the weights of the features, and with a kernel there "
                f'are none; use solver {able}, or kernel="linear"'
            )
        if (self.slack, self.rescale) != ("linear", "margin"):
            raise NotCompatibleError(
                f"slack={self.slack!r} with rescale={self.rescale!r} is not done with kernels; use "
                'slack="linear" and rescale="margin", or kernel="linear"'
            )
        if not isinstance(regularizer, L2) or self.nu > 0:
            what = f"{regularizer} with nu = {self.nu:g}" if self.nu > 0 else str(regularizer)
            raise NotCompatibleError(
                f"{what} is about the weights of the features, and with a kernel there are none; "
                'use L2() (and nu = 0), or kernel="linear"'
            )

    @abstractmethod
    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass; plain values that JSON can hold."""

    @abstractmethod
    def step(self, engine: Any, state: dict[str, Any], context: Context) -> Step:
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


def check_stored(name: str, value: Any, like: Any) -> None:
    """Refuse a value of a solver's state that is not of the kind of its first one.

    Parameters
    ----------
    name : str
        Its name, for the message.
    value : object
        What a checkpoint has.
    like : bool, int, float or None
        The value before the first pass; None stands for a number that is not known yet.
    """
    if isinstance(like, bool):
        if isinstance(value, bool):
            return
        raise ValueError(f"{name} is {value!r}; expected true or false")
    if value is None and like is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(like, int):
        if not number or not isinstance(value, int) or not 0 <= value < 2**53:
            raise ValueError(f"{name} is {str(value)[:40]}; expected a whole number from 0 on")
    elif not number or not abs(value) < 1e300:
        raise ValueError(f"{name} is {str(value)[:40]}; expected a finite number")


@dataclass
class RunState:
    """All that a checkpoint must hold besides the engine: enough to go on bit for bit."""

    solver: dict[str, Any] = field(default_factory=dict)
    rng: dict[str, Any] = field(default_factory=dict)
    dual: float = 0.0
    seconds: float = 0.0
    oracle_calls: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
