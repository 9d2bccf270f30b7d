"""Online: look at a new example, or optimise over what is kept, by the running duality gap.

The problem is that of `DualCoordinate`, over the examples seen so far::

    min_w  Ω(w) + C Σ_i max(0, max_j l_ij - w·x_ij)
    max_α  C Σ α_ij l_ij - Ω*(u),  u = C Σ α_ij x_ij      s.t.  Σ_j α_ij <= 1,  α >= 0

Paper: Ramanan, "Dual coordinate solvers for large-scale structural SVMs", 2013, section 4 and
Algorithm 2. The cache A are the planes that the engine keeps, which is all that is remembered of
how an example may be wrong; an example that is right with a margin has none.

Bounds
------
LB is the dual of the present multipliers. Examples without planes have multipliers of zero, so LB
is a lower bound for all examples seen, and for all that are to come. UB is an upper bound for the
problem of the cache alone (the *cached QP*): how wrong an example is that was not looked at lately,
nobody knows. The gap UB - LB of the cached QP is a sum over blocks, to which a new example adds the
gap of its own block; so lines 7 and 11 need no sum over the cache.

With ``explore="paper"`` w rests between two optimisations, and UB is exact. With
``explore="step"``, the default, the block of the new example is solved when the oracle has answered
(the one-pass coordinate ascent that section 4 begins with), so that w is up to date after each
example. Then LB rises with each step and stays exact, and UB counts the gap that each block had
when it was visited: the UB' of (36).

Two changes make the cost of a pass proportional to its length:

- ``tol`` is a share of UB, not a number. UB grows with the number of examples. So the examples
  between two optimisations become more as their cost grows, and the optimisations of a pass over n
  examples cost O(n / tol) visits of blocks altogether.
- Line 12 optimises to half of ``tol``. To all of it, the next example would exceed it again.

Two more make the model of one pass better. After each example some others are drawn, and steps are
made on their kept planes (``replay``; the "reprocess" of LASVM, Bordes et al., JMLR 2005): w does
not run after the newest example, and what the oracle finds at such a w matters later. And planes
without a multiplier stay (line 13 drops them), unless memory is short: nobody will ask the oracle
for them again.

Behind the last example of a batch the cache is optimised over once more (`Online.at_the_end`).

A model is known to be good once all examples have been looked at under one w: the verification pass
of section 4 ("Convergence"). `maxmargin.solvers.solve` makes one after each cycle over the data,
and ends training if the gap is small enough; else the next cycle has a ``tol`` of half the gap that
was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Engine, PassOptions, PassResult
from maxmargin.checks import check_choice, check_number, check_whole_attributes
from maxmargin.solvers.base import Solver
from maxmargin.solvers.formulations import check_formulation
from maxmargin.solvers.steps import Context, PassTotals, Step

__all__ = ["Online"]

EXPLORE = ("step", "paper")


@dataclass(frozen=True)
class Online(Solver):
    """Algorithm 2 of the dual-coordinate paper.

    Parameters
    ----------
    tol : float
        The kept planes are optimised over when UB - LB exceeds this share of UB. Smaller: better
        models after one pass, which takes longer.
    absolute : bool
        ``tol`` is a number that UB - LB must not exceed, as in the paper.
    explore : {"step", "paper"}
        Whether a new example is stepped on at once, or only put into the cache.
    cached_passes : int
        Passes over the kept planes in one optimisation, at most.
    replay : int
        After each example, steps on the kept planes of so many others, drawn at random.
    max_plane_bytes : int or None
        Memory for planes. Where they take more, planes without a multiplier are dropped, and if
        that is not enough parts of examples are let go of, those with the least of C Σ α l first,
        until nine tenths are left; their multipliers go back to the truth and u is made anew. The
        dual stays a lower bound for all examples.
    slack : {"linear", "quadratic", "hard"}
        As in `SDM`.
    rescale : {"margin", "slack", "none"}
        As in `SDM`.
    """

    name: ClassVar[str] = "online"

    tol: float = 0.5
    absolute: bool = False
    explore: str = "step"
    cached_passes: int = 10
    replay: int = 10
    max_plane_bytes: int | None = None
    slack: str = "linear"
    rescale: str = "margin"

    #: Oracle calls on a new example, at most, while they find something.
    ROUNDS: ClassVar[int] = 10
    #: SMO stops at this share of the violation it met.
    SMO_DEPTH: ClassVar[float] = 0.1
    #: Over-relaxation of cached steps.
    RELAXATION: ClassVar[float] = 1.3
    #: Cached passes after the first leave out parts with less than this share of the mean gap.
    BUSY: ClassVar[float] = 0.1
    #: An optimisation ends at this share of the tolerance.
    DEPTH: ClassVar[float] = 0.5
    #: The optimisation behind the last example of a batch goes down to this share of UB, ...
    FINE: ClassVar[float] = 0.02
    #: ... with so many passes at most, for each time that as many examples came as there are.
    FINAL: ClassVar[int] = 40
    #: Of the bytes allowed, so many are left after planes were let go of.
    LEFT: ClassVar[float] = 0.9
    #: Planes are counted again after so many new ones, as a share of those there were.
    RECOUNT: ClassVar[float] = 0.05

    def __post_init__(self) -> None:
        check_number("tol", self.tol, above=0.0)
        if not self.absolute and not self.tol < 1:
            raise ValueError(f"tol is a share of the upper bound, below 1; got {self.tol!r}")
        check_choice("explore", self.explore, EXPLORE)
        check_whole_attributes(self, cached_passes=1, replay=0)
        if self.max_plane_bytes is not None:
            check_whole_attributes(self, max_plane_bytes=1)
        check_formulation(self.slack, self.rescale)

    @property
    def factored(self) -> bool:
        """Whether blocks fall into parts: with linear slacks and margin rescaling."""
        return self.slack == "linear" and self.rescale == "margin"

    def begin(self, machine: Engine) -> dict[str, Any]:
        """Return the state of a machine that was not moved by this solver yet.

        Parameters
        ----------
        machine : Engine
            It may have planes and multipliers, whose gap is then not known: 0 is assumed.
        """
        # Lines 1 and 2: A = {}, UB = LB = 0. Here `open` is UB - LB.
        state: dict[str, Any] = {"lower": machine.dual(), "open": 0.0, "left": 0, "goal": 0.0}
        state |= {"planes": 0, "added": 0, "since": 0, "first": False, "tol": self.tol}
        return state | {"seen": 0}

    # ---- lines 3 to 10 --------------------------------------------------------------------------

    def look(
        self,
        machine: Engine,
        order: NDArray[np.uint32],
        state: dict[str, Any],
        seconds: float | None = None,
        *,
        seed: int = 0,
    ) -> PassResult:
        """Look at new examples until the gap is exceeded.

        Parameters
        ----------
        machine : Engine
            What is trained.
        order : uint32 array
            The examples.
        state : dict
            What `begin` gave.
        seconds : float or None
            Time that is left.
        seed : int
            For the examples that are drawn (``replay``).

        Returns
        -------
        PassResult
            ``looked`` of the examples are done; if these are not all, or ``state["left"]`` is not
            zero, it is time to `optimise`.
        """
        rests = self.explore == "paper"
        # What an optimisation could not bring below its goal must not trigger the next at once.
        open_ = min(state["open"], state["goal"]) if state["goal"] > 0 else state["open"]
        tol = state["tol"]
        options = PassOptions(
            tau=math.inf if rests else 0.0,  # line 8: α = 0
            tau_relative=self.SMO_DEPTH,
            rounds=1 if rests else self.ROUNDS,
            prune=False,
            replay=0 if rests else self.replay,
            seen=state["seen"],
            seed=seed,
            open=open_,
            share=0.0 if self.absolute else tol,
            tolerance=tol if self.absolute else 0.0,
        )
        result = machine.exact_pass(order, options, seconds)  # lines 4 to 9
        state["lower"] += result.gain
        state["open"] = max(state["open"] + result.gap, 0.0)  # line 7, as UB - LB
        state["added"] += result.added
        state["since"] += int(result.looked)
        if result.looked > 0:
            state["seen"] = max(state["seen"], int(order[: result.looked].max()) + 1)
        if open_ + result.gap > self._allowed(state, tol):  # line 11
            self._due(state)
        return result

    def _due(self, state: dict[str, Any]) -> None:
        state["left"], state["goal"], state["first"] = self.cached_passes, 0.0, True

    def at_the_end(self, state: dict[str, Any], n_examples: int) -> bool:
        """Optimise more deeply behind the last example of a batch.

        The last examples have pulled w their way, and nobody has answered yet: a model that is used
        now is better after some passes over the cache. A pass visits up to ``n_examples`` blocks.
        So their number is proportional to the share of the examples that are new, and a stream
        that comes example by example has as many of them as one that comes at once.

        Parameters
        ----------
        state : dict
            What `begin` gave.
        n_examples : int
            Number of all examples.

        Returns
        -------
        bool
            Whether there is something to `optimise`.
        """
        if state["left"] > 0:
            return True
        passes = int(self.FINAL * state["since"] / max(n_examples, 1))
        if passes > 0 and state["open"] > self.FINE * (state["lower"] + state["open"]):
            state["since"], state["first"] = 0, True
            state["left"], state["goal"] = passes, -1.0
        return bool(state["left"] > 0)

    def _allowed(self, state: dict[str, Any], tol: float) -> float:
        """Return the UB - LB that is allowed."""
        return tol if self.absolute else tol * (state["lower"] + state["open"])

    # ---- lines 11 to 14 -------------------------------------------------------------------------

    def optimise(
        self,
        machine: Engine,
        order: NDArray[np.uint32],
        state: dict[str, Any],
        seconds: float | None = None,
    ) -> PassResult:
        """Make one pass of Optimize over the kept planes.

        Parameters
        ----------
        machine, state, seconds
            As in `look`.
        order : uint32 array
            All examples, in the order in which those with planes are visited.

        Returns
        -------
        PassResult
            The optimisation is done when ``state["left"]`` is zero.
        """
        first, final = state["first"], state["goal"] < 0
        share = 0.0
        if not first and state["planes"] > 0:
            share = self.BUSY * state["open"] / (machine.C * state["planes"])
        options = PassOptions(
            tau_relative=self.SMO_DEPTH,
            relaxation=self.RELAXATION,
            recombine=True,
            min_violation=max(share, 0.0),
            prune=False,
        )
        result = machine.cached_pass(order, options, seconds)  # line 12
        state["lower"] += result.gain
        state["open"] = max(result.cached_gap, 0.0)
        if first:
            state["planes"] = max(int(result.visits), 1)
        state["left"], state["first"] = state["left"] - 1, False
        goal = self.DEPTH * self._allowed(state, state["tol"])
        if final:
            goal = min(goal, self.FINE * (state["lower"] + state["open"]))
        if self.explore == "paper" and (state["open"] <= goal or state["left"] == 0):
            state["open"] = self.cached_gap(machine, order)  # the true upper bound
        if state["open"] <= goal:
            state["left"] = 0
        state["goal"] = -1.0 if final and state["left"] > 0 else goal
        return result

    def cached_gap(self, machine: Engine, order: NDArray[np.uint32]) -> float:
        """Return UB - LB of the cached QP at the present w, exactly.

        Parameters
        ----------
        machine : Engine
            What is trained; it stays as it is.
        order : uint32 array
            All examples.

        Returns
        -------
        float
            The sum over the blocks of C (max F - Σ α F) over their kept planes.
        """
        options = PassOptions(tau=math.inf, prune=False)
        return float(machine.cached_pass(order, options).cached_gap)

    # ---- a bound for the cache ------------------------------------------------------------------

    def trim(self, machine: Engine, state: dict[str, Any], *, always: bool = False) -> float:
        """Let go of planes where they take more memory than allowed.

        Parameters
        ----------
        machine : Engine
            What is trained.
        state : dict
            What `begin` gave.
        always : bool
            Count the bytes even if few planes came since the last time.

        Returns
        -------
        float
            What the dual lost.

        Raises
        ------
        ValueError
            If the planes of one example alone need more.
        """
        budget = self.max_plane_bytes
        if budget is None:
            return 0.0
        if not always and state["added"] <= self.RECOUNT * max(state["planes"], 100):
            return 0.0
        state["added"] = 0
        if machine.size()["plane_bytes"] <= budget:
            return 0.0
        # Planes without a multiplier first: a pass without steps that drops them.
        order = np.arange(state["seen"], dtype=np.uint32)
        machine.cached_pass(order, PassOptions(tau=math.inf, prune=True))
        if machine.size()["plane_bytes"] <= self.LEFT * budget:
            return 0.0
        before = state["lower"]
        machine.shed(int(self.LEFT * budget))
        size = machine.size()
        if size["planes"] == 0:
            raise ValueError(
                f"max_plane_bytes = {budget} does not hold the planes of one example; expected at "
                "least a hundred times what the largest needs"
            )
        state["lower"] = machine.dual()
        lost = max(float(before - state["lower"]), 0.0)
        state["open"] += lost
        return lost

    # ---- as a solver of a whole problem ---------------------------------------------------------

    def init(self, context: Context) -> dict[str, Any]:
        """Return the state before the first pass."""
        state: dict[str, Any] = {"lower": float(context.dual), "open": 0.0, "left": 0, "goal": 0.0}
        state |= {"planes": 0, "added": 0, "since": 0, "first": False, "tol": self.tol}
        return state | {"seen": 0, "at": 0, "cycle": 0, "seed": 0}

    def step(self, machine: Engine, state: dict[str, Any], context: Context) -> Step:
        """Make one pass: new examples, the kept planes, or the verification of a cycle."""
        state["lower"] = context.dual
        n = context.n_examples
        if state["at"] >= n and state["cycle"] == 0:
            self.at_the_end(state, n)
        if state["left"] > 0:
            order = context.order()
            result = self.optimise(machine, order, state, context.seconds_left)
            return Step("cached", self._trimmed(machine, state, result))
        if state["at"] >= n:
            verified = machine.collect_pass(context.threads, context.seconds_left)
            if not verified.interrupted:
                state["at"], state["cycle"] = 0, state["cycle"] + 1
                state["seed"] = int(context.rng.integers(2**31))
                upper = abs(context.dual + verified.gain) + max(verified.gap, 0.0)
                gap = max(verified.gap, 0.0)
                state["open"], state["goal"] = gap, 0.0
                state["tol"] = max(
                    min(state["tol"], 0.5 * (gap if self.absolute else gap / max(upper, 1e-300))),
                    1e-15,
                )
                self._due(state)
            return Step("collect", verified)
        order = self._order(state, n)[state["at"] :]
        seed = int(context.rng.integers(2**63))
        result = self.look(machine, order, state, context.seconds_left, seed=seed)
        state["at"] += int(result.looked)
        return Step("exact", self._trimmed(machine, state, result))

    def _order(self, state: dict[str, Any], n: int) -> NDArray[np.uint32]:
        """Return the order of a cycle: that of the data, and then random ones."""
        if state["cycle"] == 0:
            return np.arange(n, dtype=np.uint32)
        rng = np.random.default_rng(state["seed"])
        return rng.permutation(n).astype(np.uint32)

    def _trimmed(self, machine: Engine, state: dict[str, Any], result: PassResult) -> Any:
        lost = self.trim(machine, state)
        if lost == 0.0:
            return result
        return PassTotals(result.gap, result.gain - lost, result.oracle_calls, result.interrupted)

    def check_state(self, state: dict[str, Any], machine: Any, context: Context) -> None:
        """Refuse a state that no run can have had."""
        super().check_state(state, machine, context)
        if not 0 <= state["at"] <= context.n_examples or not state["tol"] > 0:
            raise ValueError(f"at is {state['at']} of {context.n_examples} examples")
        if state["seen"] > context.n_examples:
            raise ValueError(f"seen is {state['seen']} of {context.n_examples} examples")
