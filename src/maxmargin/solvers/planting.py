"""A start from what an earlier training left: from its weights, or from its multipliers.

A dual method moves multipliers α, and w = link(C Σ α Δf) follows. Weights alone, as a model file
has them, are therefore no point to start from: of another training set they need not be such a sum
at all, and a w without its α has no dual bound. Two things can be had from them without giving up
anything:

1. *Planes.* The oracle's answers under the old weights w₀ are the planes that matter near w₀. The
   engine looks at w₀ through its fixed linear term: with u₀ = link⁻¹(w₀) and α = 0 its w is w₀, and
   one pass at one w collects the planes. Then u₀ is taken away again.
2. *Multipliers for them.* Cached passes raise the dual over these planes from α = 0. They are
   cheap, because they call no oracle.

Training goes on from there as from anywhere. The dual starts at 0 or above, as a cold start does,
and never falls: the model that comes out has the same certificate. What is saved is at most the
first pass or two of a cold start, which look for planes under weights that know nothing yet; with a
fast oracle the planting costs as much (``benchmarks/start.py``).

The multipliers of a checkpoint are another matter. They are a point of the dual for any C, which
only says which u belongs to them. A checkpoint of a run on the same data, with the same solver and
regulariser, is a start in the full sense.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import PassOptions
from maxmargin.checks import is_number
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.base import Solver
from maxmargin.solvers.checkpoint import load_checkpoint, read_identity
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.machine import Machine

__all__ = ["begin_from", "from_checkpoint", "plant"]

#: Cached passes over the planes that were found, at most.
PASSES = 10
#: They end when one gains less than this share of what all of them gained.
ENOUGH = 0.02
#: What may be another in the run of a checkpoint.
FREE = ("C",)


def begin_from(
    start: Any,
    machine: Machine,
    solver: Solver,
    regularizer: Regularizer,
    *,
    identity: dict[str, Any],
    rng: np.random.Generator,
    threads: int = 1,
) -> tuple[Machine, int]:
    """Begin with weights or with a checkpoint.

    Parameters
    ----------
    start : array or path-like
        Weights in the native layout, or a checkpoint.
    machine : Machine
        What the solver would begin with.
    solver, regularizer
        The run.
    identity : dict
        What it solves.
    rng, threads
        As for `plant`.

    Returns
    -------
    machine : Machine
        What to begin with.
    calls : int
        Calls of the oracle that were made.
    """
    if isinstance(start, str | os.PathLike):
        return from_checkpoint(start, machine, solver, regularizer, identity=identity), 0
    return machine, plant(machine, start, regularizer, rng, threads)


def plant(
    machine: Machine,
    weights: NDArray[Any],
    regularizer: Regularizer,
    rng: np.random.Generator,
    threads: int = 1,
) -> int:
    """Keep the planes that the oracle finds under some weights, and give them multipliers.

    Parameters
    ----------
    machine : Machine
        A dual engine that has not moved yet.
    weights : array
        Where to look, in the native layout of the engine's weights.
    regularizer : Regularizer
        Whose link the engine has.
    rng : Generator
        Of the order of visits.
    threads : int
        Number of threads.

    Returns
    -------
    int
        Calls of the oracle.

    Raises
    ------
    NotCompatibleError
        If the machine keeps no multipliers, has a kernel, or knows no slacks.
    """
    if not isinstance(machine, DualMachine) or machine.nu != 0:
        raise NotCompatibleError(
            "a start from weights is for solvers that move multipliers alone; use solver sdm, "
            "nslack, bcfw or dualcoordinate"
        )
    slack, _ = machine.formulation
    if slack == "hard" or machine.problem.has_kernel:
        what = "a hard margin" if slack == "hard" else "a kernel"
        raise NotCompatibleError(f"a start from weights does not go with {what}")
    present = machine.weights
    if weights.shape != present.shape or not np.isfinite(weights).all():
        raise ValueError(
            f"the weights to start from have the shape {weights.shape}; expected {present.shape}, "
            "and finite numbers"
        )
    machine.set_fixed(regularizer.link.sums(weights).astype(present.dtype))
    result = machine.collect_pass(threads)
    machine.set_fixed(None)
    machine.take_linear_term()
    gained = 0.0
    for _ in range(PASSES):
        order = rng.permutation(machine.problem.n_examples).astype(np.uint32)
        options = PassOptions(tau_relative=0.1, recombine=True)
        gain = machine.cached_pass(order, options).gain
        gained += gain
        if gain < ENOUGH * gained:
            break
    return int(result.oracle_calls)


def from_checkpoint(
    path: str | os.PathLike[str],
    like: Machine,
    solver: Solver,
    regularizer: Regularizer,
    *,
    identity: dict[str, Any],
) -> Machine:
    """Return a machine with the multipliers of a checkpoint, under another C.

    Parameters
    ----------
    path : path-like
        A checkpoint of the same data, solver, regulariser and type of weights.
    like : Machine
        What the solver would begin with, under the new C.
    solver, regularizer
        The new run.
    identity : dict
        What the new run solves; all but `FREE` must be the same.

    Returns
    -------
    Machine
        Its weights are those of the multipliers under the new objective.

    Raises
    ------
    ModelFormatError
        If it is no checkpoint, damaged, or of other data.
    """
    saved = read_identity(path)
    same = identity | {name: saved.get(name) for name in FREE}
    before: Any = saved.get("C")
    if not is_number(before, above=0.0):  # of a damaged file, which is then refused
        before = like.C
    if not isinstance(like, DualMachine):
        raise NotCompatibleError(
            f"the solver {solver.name} keeps no multipliers that a start could be made from"
        )
    machine: Any = solver.start(
        like.problem, before, regularizer, like.weights.dtype == np.float32
    )
    load_checkpoint(path, machine, same)
    machine.rescale(like.C)  # which makes u and w anew
    return machine  # type: ignore[no-any-return]
