"""When the automatic schedule goes over to interior passes, by counted work.

Block ascent is the cheaper method for many weights and well-scaled features, an interior point
(``native/interior_point.hpp``) for few weights and anything else; which one it is shows only on the
way. The rule is that of renting or buying skis: once the work spent by block ascent without
reaching the gap exceeds what a whole interior solve is estimated to take, the interior solve is
made. So whichever would have been better, the work is at most about twice that.

After that, passes of the oracle at one w and interior passes take turns for as long as an interior
pass can do anything. Where it cannot, steps on the blocks may: up to `RETRIES` times in a row an
exact pass takes the place of the look at one w. Then block ascent goes on, and twice the work is
asked for before the next try.

4-byte weights round away most of what an interior pass finds. There are few of them, so that 8-byte
ones cost nothing: the oracle looks at one w, and the run goes on in 8 bytes (`Step.widen`) before
the first interior pass.

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

#: Interior passes that do nothing, in a row, with an exact pass between them.
RETRIES = 2

#: What the automatic schedule's state has for this: work spent since the last interior pass, tries
#: that could do nothing, whether interior passes take turns with the oracle, how many of them did
#: nothing of late, the gap before the last one, and whether 8-byte weights were asked for.
FIRST_STATE: dict[str, Any] = {
    "spent": 0.0,
    "tries": 0,
    "interior": False,
    "idle": 0,
    "before": None,
    "wide": False,
}


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
    if engine.n_weights > MOST_WEIGHTS or engine.nu > 0 or engine.windowed:
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
    if engine.weight_bytes == 4 and not state["wide"]:
        state["wide"] = True
        look = engine.collect_pass(context.threads, context.seconds_left)
        if math.isfinite(look.gap):
            state["gap"] = look.gap
        return Step("collect", look, widen=True)
    result = engine.interior_pass(max(0.0, ACCURACY * state["gap"]), seconds=context.seconds_left)
    again = state["interior"] and state["gap"] == state["before"]  # the last one changed nothing
    state["left"], state["spent"], state["before"] = 0, 0.0, state["gap"]
    if result.interrupted:
        return Step("interior", result)
    if result.solved > 0 and not again:
        state["interior"], state["idle"] = True, 0
    elif state["interior"] and state["idle"] < RETRIES:
        state["idle"] += 1
    else:
        state["interior"], state["idle"] = False, 0
        state["tries"] = min(state["tries"] + 1, 60)
    return Step("interior", result)
