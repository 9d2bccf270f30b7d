"""When the automatic schedule goes over to interior passes, by counted work.

Block ascent is the cheaper method for many weights and well-scaled features, an interior point
(``native/interior_point.hpp``) for few weights and anything else; which one it is shows only on the
way. The rule is that of renting or buying skis: once the work spent by block ascent without
reaching the gap exceeds what a whole interior solve is estimated to take, the interior solve is
made. So whichever would have been better, the work is at most about twice that.

After that, passes of the oracle at one w and interior passes take turns for as long as an interior
pass can do anything. Where it cannot (the rounding of 4-byte weights), block ascent goes on, and
twice the work is asked for before the next try.

Work is counted in cycles by native code and never timed, so that runs can be repeated. Problems
with many weights are left alone at the cost of one comparison.
"""

from __future__ import annotations

import math
from typing import Any

from maxmargin._native import Engine
from maxmargin.solvers.steps import Context, Step

__all__ = ["FIRST_STATE", "affordable", "count", "interior_step"]

#: Nothing is handed over where there are more weights than this, padding included.
MOST_WEIGHTS = 8192
#: Block ascent may spend so many cycles in any case (some thousandths of a second).
LEAST_WORK = 1e7
#: Solve over the kept planes to this share of the gap that the oracle last saw.
ACCURACY = 0.1
#: The matrices may take so many bytes. (What is free at the moment must not decide: runs differ.)
MOST_BYTES = 5e8

#: What the automatic schedule's state has for this: work spent since the last interior pass, tries
#: that could do nothing, and whether interior passes take turns with the oracle.
FIRST_STATE: dict[str, Any] = {"spent": 0.0, "tries": 0, "interior": False}


def count(state: dict[str, Any], work: float) -> None:
    """Count the work of a pass of block ascent.

    Parameters
    ----------
    state : dict
        Of the automatic schedule.
    work : float
        Cycles, as the engine counted them.
    """
    state["spent"] += work


def affordable(engine: Engine, spent: float) -> bool:
    """Whether an interior solve over the kept planes would take no more work than was spent.

    Parameters
    ----------
    engine : Engine
        The dual engine.
    spent : float
        Cycles, as the engine counted them.
    """
    if engine.weights.size > MOST_WEIGHTS or engine.nu > 0:
        return False
    size = engine.interior_size()
    if size["work"] == math.inf or spent < size["work"]:
        return False
    return size["bytes"] <= MOST_BYTES


def interior_step(engine: Engine, state: dict[str, Any], context: Context) -> Step | None:
    """Make an interior pass in the place of the next look or cached pass, if it is time for one.

    Parameters
    ----------
    engine : Engine
        The dual engine.
    state : dict
        Of the automatic schedule; it must have looked at least once.
    context : Context
        The run.

    Returns
    -------
    Step or None
        The pass, or None where block ascent goes on.
    """
    if state["gap"] is None:
        return None
    if state["interior"]:
        if state["left"] == 0:
            return None  # the oracle's turn
        if not affordable(engine, math.inf):
            state["interior"] = False
            return None
    else:
        share = 2.0 ** -state["tries"]
        if state["spent"] * share < LEAST_WORK or not affordable(engine, state["spent"] * share):
            return None
    result = engine.interior_pass(max(0.0, ACCURACY * state["gap"]), seconds=context.seconds_left)
    state["left"], state["spent"] = 0, 0.0
    state["interior"] = result.solved > 0
    if result.solved == 0 and not result.interrupted:
        state["tries"] = min(state["tries"] + 1, 60)
    return Step("interior", result)
