"""Baselines of semi-supervised learning: self-training, with and without constraints (CODL).

Chang, Ratinov and Roth, "Guiding semi-supervision with constraint-driven learning", ACL 2007:

    1  w₀ = supervised training
    2  label the unlabelled sequences by constrained inference: the K best of w·Φ - ρ Σ violations
    3  w = γ w₀ + (1 - γ) (training on what was labelled);  repeat from 2

Without constraints (``penalty=0``) this is plain self-training. The learner is the structural SVM
of this library in the place of their perceptron or HMM.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_number, check_whole
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import RandomState
from maxmargin.solvers import make_solver, solve
from maxmargin.structures.transduction import TransductiveData

__all__ = ["constraint_driven", "driven_weights"]


def constraint_driven(
    data: TransductiveData,
    weights: NDArray[Any],
    *,
    C: float = 1.0,
    penalty: float = 1.0,
    mixing: float = 0.9,
    rounds: int = 3,
    top: int = 1,
    gap: float = 0.05,
    beam: int = 100,
    n_jobs: int = 1,
    random_state: RandomState = None,
) -> NDArray[Any]:
    """Train by constraint-driven learning from a supervised model without constraint features.

    Parameters
    ----------
    data : TransductiveData
        Labelled and unlabelled sequences. Constraint features are not used.
    weights : array
        Native weights of the supervised model.
    C, penalty, mixing, rounds, top, gap, beam, n_jobs, random_state
        As for ``driven_weights``.

    Returns
    -------
    array
        Native weights of the chain.
    """
    return driven_weights(
        replace(data, features=False),
        weights,
        C=C,
        penalty=penalty,
        mixing=mixing,
        rounds=rounds,
        top=top,
        gap=gap,
        beam=beam,
        n_jobs=n_jobs,
        random_state=random_state,
    )[0]


def driven_weights(
    data: TransductiveData,
    weights: NDArray[Any],
    group_weights: NDArray[np.float64] | None = None,
    *,
    C: float = 1.0,
    penalty: float = 1.0,
    mixing: float = 0.9,
    rounds: int = 3,
    top: int = 1,
    gap: float = 0.05,
    beam: int = 100,
    n_jobs: int = 1,
    random_state: Any = None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Train by constraint-driven learning, with the weights of constraint features if there are.

    Parameters
    ----------
    data : TransductiveData
        Labelled and unlabelled sequences.
    weights : array
        Native weights of the chain of the supervised model.
    group_weights : array or None
        Those of its constraint features; None: it has none, or all are zero.
    C : float
        Weight of the loss of a sequence that was labelled by inference.
    penalty : float
        ρ: what a violated constraint of weight 1 costs in inference; 0 is plain self-training.
    mixing : float
        γ: the share of the supervised model.
    rounds : int
        How often steps 2 and 3 are made.
    top : int
        K. With K > 1, the K best of the chain's 20 best labellings and the constrained one, each
        with the weight 1/K.
    gap : float
        Relative gap of the trainings.
    beam : int
        States a token of inference.
    n_jobs : int
        Number of threads.
    random_state : int or None
        Seed of the trainings.

    Returns
    -------
    weights : array
        Native weights of the chain.
    group_weights : float64 array
        Of the constraint features, empty without.
    """
    if check_number("mixing", mixing, least=0.0) > 1:
        raise ValueError(f"mixing is {mixing}; expected a share from 0 to 1")
    check_whole("rounds", rounds, 1)
    check_whole("top", top, 1)
    bound, chain = data.bound, data.chain
    c = bound.coefficients("soft", penalty)
    c = np.where(np.isfinite(c), c, 1e6)
    n_groups = len(bound.feature_names) if data.features else 0
    own = np.zeros(n_groups) if group_weights is None else np.asarray(group_weights, np.float64)
    groups = own
    plain = chain.encoded_problem(data.unlabelled)
    assert isinstance(plain, _native.ChainProblem)
    guided = bound.problem(plain, width=beam)
    first = weights.copy()
    present = _aligned(first)
    for _ in range(rounds):
        worth = c + np.append(groups, 0.0)[bound.groups] if n_groups else c
        best = bound.best(guided, present, worth, width=beam, n_jobs=n_jobs).codes
        labellings = [best]
        if top > 1:
            labellings = _top(data, plain, present, worth, top, best=best, n_jobs=n_jobs)
        batch = data.unlabelled.take(np.tile(np.arange(data.n_unlabelled), len(labellings)))
        share = np.full(batch.n_sequences, 1.0 / len(labellings))
        problem: _native.Problem = chain.encoded_problem(
            batch, np.concatenate(labellings), None, share
        )
        if n_groups:
            if top > 1:
                raise NotCompatibleError("several labellings do not go with constraint features")
            assert isinstance(problem, _native.ChainProblem)
            problem = bound.problem(problem, features=True, width=beam)
        found = solve(
            problem,
            make_solver("sdm"),
            C=C,
            gap=gap,
            dtype=str(weights.dtype),
            n_jobs=n_jobs,
            random_state=random_state,
            warn=False,
        )
        trained = found.weights
        if n_groups:
            assert chain.constraints is not None
            trained = chain.constraints.split(trained, chain.layout)
            assert chain.constraints.weights is not None
            groups = mixing * own + (1 - mixing) * chain.constraints.weights
        mixed = mixing * first + (1 - mixing) * trained.astype(weights.dtype)
        present = _aligned(mixed)
    return present, groups


def _aligned(weights: NDArray[Any]) -> NDArray[Any]:
    out: NDArray[Any] = _native.aligned_array(len(weights), weights.dtype == np.float32)
    out[:] = weights
    return out


def _top(
    data: TransductiveData,
    plain: _native.ChainProblem,
    weights: NDArray[Any],
    c: NDArray[np.float64],
    top: int,
    *,
    best: NDArray[np.int32],
    n_jobs: int,
) -> list[NDArray[np.int32]]:
    """Return the K best labellings under the constraints among some candidates."""
    lists = plain.kbest(weights, 20, n_jobs)
    offsets, sequences = data.bound.offsets, data.unlabelled.offsets
    rounds = max(map(len, lists))
    candidates = [best]
    for r in range(rounds):
        candidates.append(np.concatenate([paths[min(r, len(paths) - 1)][1] for paths in lists]))
    totals = []
    for codes in candidates:
        worth = np.append(c * data.bound.phi(codes), 0.0)
        sums = np.where(np.diff(offsets) > 0, np.add.reduceat(worth, offsets[:-1]), 0.0)
        totals.append(plain.score(weights, codes, n_jobs) + sums)
    order = np.argsort(-np.array(totals), axis=0, kind="stable")
    out = [best.copy() for _ in range(top)]
    for j, (a, b) in enumerate(itertools.pairwise(sequences)):
        seen: set[bytes] = set()
        k = 0
        for r in order[:, j]:
            path = candidates[int(r)][a:b]
            if k < top and path.tobytes() not in seen:
                seen.add(path.tobytes())
                out[k][a:b] = path
                k += 1
    return out
