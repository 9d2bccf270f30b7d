"""Estimators with latent parts, of every kind, with small data."""

from __future__ import annotations

import numpy as np

import reference_latent as reference
from maxmargin import Chain, Latent, LatentStructuralSVM, LatentSVM, Multiclass

FINE = {"C": 0.8, "gap": 1e-7, "tol": 1e-8, "dtype": "float64", "random_state": 0}


def words(n=24, seed=0):
    """Return sequences of two-way letters as dicts of features, and the letters."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        letters = rng.integers(3, size=rng.integers(1, 4))
        styles = rng.integers(2, size=len(letters))
        X.append(
            [
                {f"p{a}{s}": 1.0, f"q{rng.integers(3)}": 0.5 + s}
                for a, s in zip(letters.tolist(), styles.tolist(), strict=True)
            ]
        )
        Y.append(["abc"[a] for a in letters])
    return X, Y


def sets(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(n)]
    return X, [int(x[:, 0].max() > 0.4) for x in X]


def kinds():
    """Return estimators with examples."""
    tables = reference.random_tables(np.random.default_rng(0), n=24)
    rows = np.random.default_rng(1).normal(size=(30, 3))
    classes = np.where(np.abs(rows[:, 0]) > 0.8, "out", "in").tolist()
    pairs = [(a, h) for a in "abc" for h in range(2)]
    cost = np.array([[float(a[0] != b[0]) for b in pairs] for a in pairs])
    X, Y = words()
    completed = [[(label, (i + t) % 2) for t, label in enumerate(y)] for i, y in enumerate(Y)]
    return {
        "asked": (LatentStructuralSVM(Latent(reference.Asked()), **FINE), *tables),
        "tables": (LatentStructuralSVM(reference.Tables(), **FINE), *tables),
        "chain": (LatentStructuralSVM(Latent(Chain(), states=2), **FINE), X, Y),
        "classes": (
            LatentStructuralSVM(Latent(Multiclass(), states={"out": 2}), **FINE),
            rows,
            classes,
        ),
        "native": (
            LatentStructuralSVM(Latent(Chain(loss=cost, labels=pairs)), **FINE),
            X,
            completed,
        ),
        "bags": (LatentSVM(**FINE), *sets()),
    }
