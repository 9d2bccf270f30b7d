"""Latent problems small enough to be listed, and the concave-convex procedure on them in NumPy.

Nothing here is shared with what is tested but the reference solver of quadratic programs
(`qp_reference`): outputs are listed, the latent parts of truths are imputed by trying all, and a
convex step has the imputed outputs in the place of the truths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.structures.base import Structure
from qp_reference import Planes, solve_planes

D = 5  # features


class Tables(Structure):
    """Outputs (y, h), each with a random feature vector; an input is the table of them."""

    n_features = D

    def joint_feature(self, x, z):
        return x[z]

    def loss(self, y, z):
        return 1.0 if y != z[0] else 0.0

    def outputs(self, x):
        return [(int(y), int(h)) for y in range(x.shape[0]) for h in range(x.shape[1])]


class Asked(Tables):
    """The same with an argmax that takes what is given."""

    def argmax(self, x, w, truth=None, given=None):
        values = x @ w
        if truth is not None:
            values = values + (np.arange(x.shape[0]) != truth)[:, None]
        if given is not None:
            return given, int(values[given].argmax())
        y, h = np.unravel_index(int(values.argmax()), values.shape)
        return int(y), int(h)


def random_tables(rng, n=8, n_visible=3, n_hidden=3):
    """Return inputs and truths of `Tables`; the right output (y, h) of each has a common trait."""
    trait = rng.normal(size=D)
    X = [rng.normal(size=(n_visible, n_hidden, D)) for _ in range(n)]
    Y = [int(y) for y in rng.integers(n_visible, size=n)]
    for x, y in zip(X, Y, strict=True):
        x[y, rng.integers(n_hidden)] += trait
        x[y] += 0.5 * trait
    return X, Y


class Listed(NamedTuple):
    """All outputs of one example."""

    features: np.ndarray  # [n][d]
    loss: np.ndarray  # [n]


def listed(structure, X, Y):
    """List all outputs of all examples, and where the references are."""
    found = []
    for x, y in zip(X, Y, strict=True):
        outputs = list(structure.outputs(x))
        features = np.array([structure.joint_feature(x, z) for z in outputs])
        found.append(Listed(features, np.array([structure.loss(y, z) for z in outputs])))
    return found


class Step(NamedTuple):
    """A convex step, and the true objective at its weights."""

    w: np.ndarray
    primal: float
    objective: float
    imputed: list  # before it


def objective(examples, w, C):
    """Return the true objective of a latent structural SVM by trying all outputs."""
    total = 0.5 * w @ w
    for e in examples:
        scores = e.features @ w
        total += C * ((e.loss + scores).max() - scores[e.loss == 0].max())
    return float(total)


def convex_step(examples, imputed, C):
    """Solve the convex problem whose truths are the imputed outputs."""
    example, delta, loss = [], [], []
    for i, (e, k) in enumerate(zip(examples, imputed, strict=True)):
        for z in range(len(e.loss)):
            if z != k:
                example.append(i)
                delta.append(e.features[k] - e.features[z])
                loss.append(e.loss[z])
    planes = Planes(len(examples), np.array(example), np.array(delta), np.array(loss))
    return solve_planes(planes, C)


def impute(examples, w, before):
    """Return the best output without a loss of each example; of equals the old one stays."""
    found = []
    for e, k in zip(examples, before, strict=True):
        scores = np.where(e.loss == 0, e.features @ w, -np.inf)
        best = int(scores.argmax())
        # Equal up to the rounding of these sums: products in another order differ by that.
        rounding = 1e-14 * (1 + float(np.abs(e.features[best] * w).sum()))
        found.append(best if scores[best] > scores[k] + rounding else k)
    return found


def procedure(examples, start, C, most=100):
    """Make steps until nothing is imputed anew."""
    imputed, steps = list(start), []
    for _ in range(most):
        solution = convex_step(examples, imputed, C)
        steps.append(
            Step(solution.w, solution.primal, objective(examples, solution.w, C), imputed)
        )
        new = impute(examples, solution.w, imputed)
        if new == imputed:
            return steps
        imputed = new
    raise AssertionError("the procedure does not end")


def clear(examples, w, least=1e-3):
    """Tell whether the best completion of each example is the best by far."""
    if np.abs(w).max() < 1e-6:
        return False
    for e in examples:
        scores = np.sort((e.features @ w)[e.loss == 0])
        if len(scores) > 1 and scores[-1] - scores[-2] < least:
            return False
    return True
