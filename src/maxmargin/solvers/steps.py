"""What a solver knows when it makes a pass, and what it reports of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Context", "PassTotals", "Step", "Totals"]


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
        Threads of passes at a fixed w, and of those that move w where they may share the steps.
    gap : float
        The relative gap asked for, or the rounding of the weights if that is more.
    slow_oracle : bool
        The oracle is a user's Python code: cached passes are nearly free in comparison.
    batch : int
        Where other processes answer for the oracle, so many examples of an exact pass are asked for
        under one w; else 0.
    warm : bool
        The machine comes from an earlier run, for another objective perhaps.
    seconds_left : float or None
        Time budget of the pass that is about to begin.
    dual : float
        Dual objective, from the gains of all passes.
    windows : sequence of int or None
        Where windows of the examples end, if not all of them are in memory: orders go from window
        to window.
    """

    n_examples: int
    rng: np.random.Generator
    threads: int = 1
    gap: float = 0.01
    slow_oracle: bool = False
    batch: int = 0
    warm: bool = False
    seconds_left: float | None = None
    dual: float = 0.0
    windows: Sequence[int] | None = None

    def order(self, permute: bool = True, together: int = 1) -> NDArray[np.uint32]:
        """Return the order in which a pass visits the examples.

        Parameters
        ----------
        permute : bool
            A new random order, or that of the data.
        together : int
            In a random order, so many neighbours of the data are visited one after the other.
        """
        if self.windows is None or not permute:
            return self._order(self.n_examples, permute, together)
        # Windows in random order, and random order within each; a window has neighbours anyway.
        n_each = np.diff(self.windows, prepend=0)
        key = np.repeat(self.rng.permutation(len(n_each)).astype(np.float64), n_each)
        key += self.rng.random(len(key))
        return np.argsort(key).astype(np.uint32)

    def _order(self, n: int, permute: bool, together: int) -> NDArray[np.uint32]:
        if not permute:
            return np.arange(n, dtype=np.uint32)
        if together == 1:
            return self.rng.permutation(n).astype(np.uint32)
        firsts = together * self.rng.permutation(-(-n // together))
        order = (firsts[:, None] + np.arange(together)).ravel()
        return order[order < n].astype(np.uint32)


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
    widen : bool
        The next passes need 8-byte weights.
    """

    kind: str
    result: Totals
    finished: bool = False
    reason: str = ""
    stuck: bool = False
    widen: bool = False

    @property
    def exact_gap(self) -> float:
        """P - D at one w, if this pass stayed at one w; else NaN."""
        return self.result.gap if self.kind == "collect" else math.nan
