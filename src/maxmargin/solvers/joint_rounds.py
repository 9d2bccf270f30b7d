"""The automatic schedule where several threads make the steps: rounds of consensus.

Each thread has a share of the examples and weights of its own, and they agree on one w, z, at the
end of every pass (``native/consensus.hpp`` has the mathematics, ``native/joint_pass.hpp`` the
pass). The dual after a pass is that of multipliers that exist, the primal that of z; the dual may
fall from one pass to the next, and is a lower bound all the same. What is here decides which pass
comes next:

- The first `WARM` passes call the oracle on each example under the newest w of its share, with the
  metric ρ = 1; in the pass `MEASURED` the planes that these found tell the metric. (Measured before
  that or more often it is worse: multipliers found with ρ = 1 tell it best.)
- After that come passes over what is kept. The oracle looks at z after every `SEE_EVERY` of them,
  or before that where the gap may have been reached: what is looked at too often has few new
  planes.
- If looks do not find the gap smaller any more, one thread goes on alone
  (`maxmargin.solvers.auto`): its steps raise the dual whatever the problem is like.

The rounds of many machines (`maxmargin.distributed`) follow each other in the same way.
"""

from __future__ import annotations

import math
from typing import Any

from maxmargin._native import Engine, PassOptions
from maxmargin.solvers.certificate import relative_gap
from maxmargin.solvers.handover import count
from maxmargin.solvers.steps import Context, Step

__all__ = ["FIRST_ROUND", "is_due", "joint_step"]

#: Passes with the oracle at first. The pass `MEASURED` is the first with the metric of the planes.
WARM = 3
MEASURED = 5
#: Sweeps of a pass over what is kept, at most.
SWEEPS = 1
#: Over-relaxation of its steps. What a share does on its own is too much where others do the same.
RELAXATION = 0.8
#: It leaves out parts whose last violation was below this share of the mean, unless a look came
#: before it.
BUSY = 0.1
#: So many passes may follow a look before the next one.
SEE_EVERY = 4
#: So many looks in a row that find no gap below `BETTER` times the smallest one end the rounds.
PATIENCE = 8
BETTER = 0.98

#: What the automatic schedule's state has for this: whether several threads make the steps (None:
#: not asked yet), passes they made, whether the last pass was a look, the last two looks that know
#: the gap, the smallest gap, and looks since it.
FIRST_ROUND: dict[str, Any] = {
    "joint": None,
    "rounds": 0,
    "looked": False,
    "seen": [],
    "smallest": None,
    "waiting": 0,
}


def is_due(seen: list[Any], n_round: int, every: int, goal: float, near: bool) -> bool:
    """Whether the oracle is to look at z before a round: every so often, or at the end.

    Parameters
    ----------
    seen : list of pairs
        Of the last two looks: the number of the round, and the relative gap.
    n_round : int
        Number of the round that comes next.
    every : int
        Rounds between two looks, at most.
    goal : float
        The relative gap that ends the training.
    near : bool
        Whether the last gap was near it.
    """
    if not seen or n_round - seen[-1][0] >= every:
        return True
    if len(seen) < 2:
        return near
    (before, old), (last, new) = seen
    if not 0 < new < old:
        return bool(new <= goal)
    # As if it went on to fall as fast as it did between the last two looks.
    fallen = (new / old) ** ((n_round - last) / max(last - before, 1))
    return bool(new * fallen <= goal)


def joint_step(
    schedule: Any, engine: Engine, state: dict[str, Any], context: Context
) -> Step | None:
    """Make a pass of several threads, or a look at what they agree on; None: they do not pay.

    Parameters
    ----------
    schedule : AutoSchedule
        Whose parameters the passes have.
    engine : Engine
        The dual engine.
    state : dict
        Of the schedule.
    context : Context
        Of the run.
    """
    if state["joint"] is None:
        state["joint"] = engine.joins(context.threads)
    if not state["joint"]:
        return None
    n_round = state["rounds"] + 1
    if n_round > WARM and not state["looked"]:
        near = state["gap"] is not None
        near = near and state["gap"] <= schedule.CONFIRM * context.gap * abs(context.dual)
        if is_due(state["seen"], n_round, SEE_EVERY, context.gap, near):
            return _look(engine, state, context)
    exact = n_round <= WARM
    average = 0.0
    if n_round > MEASURED and not state["looked"]:
        average = max(0.0, float(state["gap"] / engine.C / state["parts"]))
    options = PassOptions(
        tau_relative=schedule.SMO_DEPTH,
        relaxation=1.0 if exact else min(schedule.relaxation, RELAXATION),
        recombine=not exact,
        min_violation=BUSY * average,
        prune=schedule.prune,
        mu=schedule.mu,
        joint=True,
        sweeps=0 if n_round == 1 and not context.warm else SWEEPS,
        measure=n_round == MEASURED,
    )
    if exact:
        several = state["parts"] >= schedule.PARTS * context.n_examples
        order = context.order(schedule.permute, schedule.TOGETHER if several else 1)
        result = engine.exact_pass(
            order, options, context.seconds_left, context.batch, context.threads
        )
        state["gap"] = result.gap
        state["looks"] += 1
    else:
        order = context.order(schedule.permute)
        result = engine.cached_pass(order, options, context.seconds_left, context.threads)
    state["parts"] = max(engine.size()["parts"], 1)
    state["rounds"], state["looked"] = n_round, False
    count(state, result.work)
    return Step("exact" if exact else "cached", result)


def _look(engine: Engine, state: dict[str, Any], context: Context) -> Step:
    """Call the oracle at z: the true gap."""
    result = engine.collect_pass(context.threads, context.seconds_left)
    state["looked"] = True
    state["looks"] += 1
    count(state, result.work)
    if math.isfinite(result.gap):
        state["gap"] = result.gap
        dual = context.dual + result.gain
        gap = relative_gap(dual + result.gap, dual)
        state["seen"] = [*state["seen"][-1:], [state["rounds"] + 1, gap]]
        if state["smallest"] is None or gap < BETTER * state["smallest"]:
            state["smallest"], state["waiting"] = gap, 0
        else:
            state["waiting"] += 1
        if state["waiting"] >= PATIENCE:
            # One thread goes on, as after its own look.
            state["joint"] = False
            state["left"], state["made"] = 0, 0
    return Step("collect", result)
