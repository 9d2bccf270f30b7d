"""What dual solvers move: the native dual engine, as the driver sees it.

The passes, w and the certificates are native (``native/engine.hpp``). What is here joins the engine
with its problem: the fixed linear term that the problem may carry, and the check of hard margins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._native import Engine, Link, Problem
from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.separable import check_separable
from maxmargin.solvers.windows import WindowedState, open_windows, restore_windowed

__all__ = ["DualMachine"]


class DualMachine(Engine):
    """The dual engine of a problem.

    Parameters
    ----------
    problem : Problem
        The training problem. Its ``linear_term`` u₀, if it has one, is part of the objective. With
        ``windows`` (a `WindowPlan`), planes that do not fit in memory are kept in a file.
    C : float
        Weight of the loss.
    single : bool
        Whether weights are 4-byte.
    factored : bool
        Whether blocks may be kept as products of independent parts.
    link : Link
        How w follows from u.
    nu : float
        Cost-to-move of β.
    slack, rescale : str
        The formulation of the margin.
    """

    def __init__(
        self,
        problem: Problem,
        C: float,
        *,
        single: bool = True,
        factored: bool = True,
        link: Link | None = None,
        nu: float = 0.0,
        slack: str = "linear",
        rescale: str = "margin",
    ) -> None:
        super().__init__(
            problem,
            C,
            single=single,
            factored=factored,
            link=Link() if link is None else link,
            nu=nu,
            slack=slack,
            rescale=rescale,
        )
        self.problem = problem
        self._file = None if problem.windows is None else open_windows(self, problem.windows)
        self.made_as = (str(self.weights.dtype), int(self.weights.size))
        self.take_linear_term()

    def take_linear_term(self) -> None:
        """Make the problem's present linear term that of the objective; multipliers stay."""
        term = self.problem.linear_term
        if term is None:
            if self.fixed is not None:
                self.set_fixed(None)
            return
        if self.widened and term.size == self.made_as[1]:  # in the layout of the 4-byte weights
            term = self.widened_array(np.array(term, dtype=np.float64))
        narrowed = np.array(term, dtype=self.weights.dtype)
        if not np.array_equal(narrowed, self.fixed):  # the same again would change u by rounding
            self.set_fixed(narrowed)

    @property
    def widens(self) -> bool:
        """Whether `widen` can put 8-byte weights in the place of 4-byte ones.

        With a cost-to-move of β, w lags behind its multipliers; that is no rounding. Where planes
        are kept in a file, there would not be room for both.
        """
        return self.weight_bytes == 4 and self.nu == 0 and not self.windowed

    def state(self) -> Any:
        """Return arrays for a checkpoint; those of planes that are in a file when asked for."""
        state = super().state()
        if not self.windowed:
            return state
        return WindowedState(self, state, self.window_size()["windows"])

    def restore(self, state: Any) -> None:
        """Undo `state`."""
        if self.windowed:
            super().restore(restore_windowed(self, state, self.window_size()["windows"]))
        else:
            super().restore(state)

    def widen(self) -> None:
        """Go on with 8-byte weights from the same multipliers."""
        super().widen()
        self.take_linear_term()  # which was narrowed

    def after_pass(self, record: PassRecord, seconds: float | None) -> None:
        """Raise a `NotSeparableError` if hard margins were asked for and no w has them."""
        slack, _ = self.formulation
        if slack == "hard":
            check_separable(self, record, seconds)
