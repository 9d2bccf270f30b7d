"""The automatic schedule where several threads make the steps: rounds of consensus.

Each thread has a share of the examples and weights of its own, and they agree on one w, z, at the
end of every pass (``native/consensus.hpp`` has the mathematics, ``native/joint_pass.hpp`` the
pass). The dual after a pass is that of multipliers that exist, the primal that of z; the dual may
fall from one pass to the next, and is a lower bound all the same. What is here decides which pass
comes next:

- The first `WARM` passes call the oracle on each example under the newest w of its share, with the
  metric ρ = 1. Then the kept planes tell the metric, twice (`STEEPER`). While multipliers are far
  from the optimum a steep metric lets each share move u by much more than all of them should
  together. z hardly follows, but the dual falls far, and it takes passes until it is back; so the
  metric becomes steep when the large moves have been made.
- After that come passes over what is kept. The oracle looks at z after every `SEE_EVERY` of them,
  or before that where the gap may have been reached: what is looked at too often has few new
  planes.
- A training that begins with planes begins with a look. If several threads agreed on its w, it
  begins at the end of `STEEPER` (they go on at z); else (another C, say) with ρ = 1.
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

__all__ = ["FIRST_ROUND", "check_rounds", "is_due", "joint_step"]

#: Passes with the oracle at first.
WARM = 3
#: From which pass on the metric is how steep; it is measured before these passes.
STEEPER = ((5, 3.0), (11, 8.0))
#: Sweeps of a pass over what is kept, at most.
SWEEPS = 1
#: Over-relaxation of its steps. What a share does on its own is too much where others do the same.
RELAXATION = 0.6
#: It leaves out parts whose last violation was below this share of the mean one, which the pass
#: that follows a look meets: that one leaves none out. (The gap of a look tells no mean violation:
#: z is not link(u), and where rounds begin with large steps most of the gap is what that costs.)
BUSY = 0.1
#: So many passes may follow a look before the next one.
SEE_EVERY = 4
#: So many looks in a row that find no gap below `BETTER` times the smallest one end the rounds.
PATIENCE = 8
BETTER = 0.98

#: What the automatic schedule's state has for this: whether one thread goes on alone, passes that
#: several made, whether the last pass was a look, the mean violation that the last full pass met,
#: the number and the relative gap of the last two looks that know the gap, the smallest gap, and
#: looks since it.
FIRST_ROUND: dict[str, Any] = {
    "alone": False,
    "rounds": 0,
    "looked": False,
    "mean": 0.0,
    "seen_at": 0,
    "seen": None,
    "seen_before_at": 0,
    "seen_before": None,
    "smallest": None,
    "waiting": 0,
}


def check_rounds(state: dict[str, Any]) -> None:
    """Refuse numbers of looks that no run can have had.

    Parameters
    ----------
    state : dict
        Of the automatic schedule.
    """
    order = (state["seen_before_at"], state["seen_at"], state["rounds"] + 1)
    if list(order) != sorted(order):
        raise ValueError(
            f"seen_before_at is {order[0]}, seen_at {order[1]} and rounds {order[2] - 1}; looks "
            "follow each other"
        )


def is_due(
    seen: list[tuple[int, float]], n_round: int, every: int, goal: float, near: bool
) -> bool:
    """Whether the oracle is to look at z before a round: every so often, or at the end.

    Parameters
    ----------
    seen : list of pairs
        Of the last two looks: the number of the round that followed, and the relative gap.
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
    if schedule.deterministic or state["alone"] or state["interior"]:
        return None
    if not engine.joins(context.threads):
        return None
    if context.warm and engine.agrees and state["rounds"] == 0:
        state["rounds"] = STEEPER[-1][0]
    n_round = state["rounds"] + 1
    exact = n_round <= WARM and not context.warm
    if not exact and not state["looked"]:
        near = state["gap"] is not None
        near = near and state["gap"] <= schedule.CONFIRM * context.gap * abs(context.dual)
        if is_due(_seen(state), n_round, SEE_EVERY, context.gap, near):
            return _look(engine, state, context)
    full = n_round <= STEEPER[0][0] or state["looked"]
    options = PassOptions(
        tau_relative=schedule.SMO_DEPTH,
        relaxation=1.0 if exact else min(schedule.relaxation, RELAXATION),
        recombine=not exact,
        min_violation=0.0 if full else BUSY * state["mean"],
        prune=schedule.prune,
        mu=schedule.mu,
        joint=True,
        sweeps=0 if exact and n_round == 1 else SWEEPS,
        measure=any(n_round == at for at, _ in STEEPER),
        steepness=max([c for at, c in STEEPER if at <= n_round], default=0.0),
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
    if full:
        state["mean"] = max(0.0, result.cached_gap / engine.C / state["parts"])
    state["rounds"], state["looked"] = n_round, False
    count(state, result.work)
    return Step("exact" if exact else "cached", result)


def _seen(state: dict[str, Any]) -> list[tuple[int, float]]:
    """Return the numbers and gaps of the last two looks, or of those that there were."""
    looks = ((state["seen_before_at"], state["seen_before"]), (state["seen_at"], state["seen"]))
    return [(at, gap) for at, gap in looks if gap is not None]


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
        state["seen_before_at"], state["seen_before"] = state["seen_at"], state["seen"]
        state["seen_at"], state["seen"] = state["rounds"] + 1, gap
        if state["smallest"] is None or gap < BETTER * state["smallest"]:
            state["smallest"], state["waiting"] = gap, 0
        else:
            state["waiting"] += 1
        if state["waiting"] >= PATIENCE:
            # One thread goes on, as after its own look.
            state["alone"] = True
            state["left"], state["made"] = 0, 0
    return Step("collect", result)
