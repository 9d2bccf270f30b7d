"""When 4-byte weights are not good enough, and going on with 8-byte ones.

A margin F = l - w·Δf of 4-byte weights is wrong by about eps = 6e-8 times the sizes that are added
up in it, and w itself, a sum of many steps, drifts from the w of its multipliers by as much each
step. The primal counts every margin C times. So there is a part of the gap that is rounding,

    r = C Σ_i |ξ_i(w as it is, in 4 bytes) - ξ_i(w of the multipliers, in 8 bytes)|,

which no pass can lower: it is larger the larger C is, while the optimum of separable data does not
grow with C. `Machine.rounding` measures r; it takes two sweeps of the oracle and changes nothing.
If r is more than half of the gap that is asked for, 4-byte weights will hardly get there; if it is
also more than a tenth of the gap that there is, rounding is what training stalls on, and not that
it is slow. Then the machine goes on with 8-byte weights (``native/widen.hpp``): planes and
multipliers stay, Gram matrices and w are made anew.

To measure after every pass would cost more than the passes. `StallWatch` says when it is worth
while: when the looks of the oracle have for a while found no gap that is better than the best one.
A certificate that misses the gap which passes believed to have reached is another such moment, and
so is a solver that is stuck. All that the watch knows is in the state of the run, so that a resumed
run goes over at the same pass.
"""

from __future__ import annotations

import math
from typing import Any

from maxmargin.memory import available_bytes, format_bytes
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.state import check_stored
from maxmargin.solvers.steps import Step

__all__ = ["StallWatch", "no_room", "rounds_too_much"]

#: A gap counts as better if it is below this share of the best one so far.
BETTER = 0.9
#: Looks without a better gap that make a stall: so many, and this share of all looks.
IDLE_LOOKS = 8
IDLE_SHARE = 0.25
#: Rounding must be more than this share of the gap asked for, and of the gap that there is.
OF_ASKED = 0.5
OF_PRESENT = 0.1


class StallWatch:
    """Counts the looks of the oracle since the gap last became better."""

    def __init__(self) -> None:
        self.least: float | None = None  # smallest P - D that a look found
        self.looks = 0
        self.better = 0  # the look at which it was found, or the last measurement

    def note(self, step: Step) -> None:
        """Take note of a pass."""
        gap = step.result.gap
        if step.kind in ("cached", "interior") or not math.isfinite(gap):
            return
        self.looks += 1
        if self.least is None or gap < BETTER * self.least:
            self.least, self.better = gap, self.looks

    @property
    def stalled(self) -> bool:
        """Whether the gap has not become better for a while."""
        return self.looks - self.better >= max(IDLE_LOOKS, IDLE_SHARE * self.looks)

    def rest(self) -> None:
        """Begin to count anew, after the rounding was measured."""
        self.better = self.looks

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must hold."""
        return {"least": self.least, "looks": self.looks, "better": self.better}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        if state.keys() != self.state().keys():
            raise ValueError(f"the watch over the gap does not know this state: {state}")
        for name, like in StallWatch().state().items():
            check_stored(name, state[name], like)
        self.least, self.looks, self.better = state["least"], state["looks"], state["better"]


def rounds_too_much(machine: Machine, asked: float, present: float, threads: int) -> bool:
    """Whether rounding keeps the gap above the one asked for.

    Parameters
    ----------
    machine : Machine
        With 4-byte weights.
    asked : float
        The P - D that is asked for.
    present : float
        The smallest P - D that was found.
    threads : int
        For the oracle.
    """
    return machine.rounding(threads) > max(OF_ASKED * asked, OF_PRESENT * present)


def no_room(machine: Machine) -> str:
    """Return why there is no memory for 8-byte weights; empty if there is, or nobody knows.

    Both engines are there for a moment: new weights (u beside w, for some regularisers, and what a
    certificate needs) and planes whose Gram matrices are twice as large.
    """
    needed = 3 * 8 * int(machine.weights.size) + 2 * machine.size()["bytes"]
    available = available_bytes()
    if available is None or needed <= available:
        return ""
    return (
        f"8-byte weights would need {format_bytes(needed)}, and only "
        f"{format_bytes(available)} are available"
    )
