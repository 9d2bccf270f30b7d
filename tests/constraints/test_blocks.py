"""The convex step of Eq. (13) as blocks of one engine: labelled and unlabelled examples, and Γ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import reference_constraints as reference
from maxmargin import _native
from maxmargin.constraints import (
    Changes,
    ConstraintSet,
    Exactly,
    OneSegment,
    Proportion,
    Words,
)
from maxmargin.links import Link

LABELS = ["A", "B", "C"]
L, D = 3, 2  # labels, dense features


def chain_problem(X, dense, codes=None, weight=None):
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])]).astype(np.int64)
    return _native.ChainProblem(
        n_labels=L, n_sparse=0, offsets=offsets, dense64=dense, labels=codes, example_weight=weight
    )


def plain(weights, n_rows, single):
    """Return the rows of native weights without padding."""
    width = _native.padded_labels(L, single)
    return np.array(weights, float).reshape(-1, width)[:n_rows, :L]


def features(dense, codes):
    """Return Φ of one sequence as rows: features, transitions, start, end."""
    f = np.zeros((D + L + 2, L))
    for t, y in enumerate(codes):
        f[:D, y] += dense[t]
        if t:
            f[D + codes[t - 1], y] += 1
    f[D + L, codes[0]] += 1
    f[D + L + 1, codes[-1]] += 1
    return f


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("features_in_model", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_convex_step_against_enumeration(seed, features_in_model, single):
    rng = np.random.default_rng(seed)
    rules = [
        Words("a", "B"),
        Changes(after="punctuation", weight=0.5),
        OneSegment(per="sequence" if seed % 2 else "token"),
        Exactly("A", 1, form="count"),
        Proportion({"C": 0.3}),
    ]
    X = [["a", "b", ".", "a"], ["b", "a", "."], ["."]]
    labelled, truth = [["a", "b"], ["b", "a", "b"]], [[1, 0], [0, 1, 2]]
    dense, other = rng.normal(size=(8, D)), rng.normal(size=(5, D))
    mu, C1, C2, n, m = 0.8, 1.5, 0.9, 2, 3
    bound = ConstraintSet(rules).bind(X, LABELS)
    ref = rng.integers(0, L, 8).astype(np.int32)
    unlabelled = bound.problem(
        chain_problem(X, dense, ref, np.full(m, C2 / m)),
        features=features_in_model,
        auxiliary=True,
        chain_loss=False,
        kappa=-mu / 2,
        tau=mu / 4,
        width=10_000,
    )
    known = ConstraintSet(rules).bind(labelled, LABELS)
    chain = chain_problem(
        labelled, other, np.concatenate(truth).astype(np.int32), np.full(n, C1 / n)
    )
    first = known.problem(chain, features=True) if features_in_model else chain
    gamma = bound.gamma("mean")
    joint = _native.JointProblem([first, unlabelled, gamma.problem(unlabelled, C2)])
    assert joint.n_examples == n + m + gamma.n_terms
    assert joint.data_hash() != 0

    places = unlabelled.auxiliary_places(single)
    scale = np.ones(unlabelled.n_weights(single))
    scale[places] = m / (C2 * mu)
    engine = _native.Engine(joint, 1.0, single, True, link=Link(scale=scale).native())
    guided = rng.integers(0, L, 8).astype(np.int32)
    share = np.full(m, C2 / m)
    fixed = unlabelled.sum_features(guided, share, kappa=mu / 2, single=single)
    fixed -= unlabelled.sum_features(ref, share, single=single)
    engine.set_fixed(fixed.astype(np.float32 if single else np.float64))
    order = np.arange(joint.n_examples, dtype=np.uint32)
    for _ in range(2000):
        engine.exact_pass(order, _native.PassOptions())
        for _ in range(5):
            engine.cached_pass(order, _native.PassOptions())
        if engine.collect_pass().gap < 1e-7:
            break
    primal, dual = engine.certify()
    assert -1e-9 <= primal - dual < 1e-4 * (1 + abs(primal))

    # The objective by its definition, at the weights that were found.
    w = np.asarray(engine.weights, dtype=np.float64)
    rows = plain(w, D + L + 2, single)
    groups = w[unlabelled.group_places(single)]
    v = w[places]
    assert len(groups) == (4 if features_in_model else 0)
    regulariser = 0.5 * (rows**2).sum() + 0.5 * (groups**2).sum() + C2 * mu / (2 * m) * (v**2).sum()

    def extra(bound, i, x, y, phi):
        if not features_in_model:
            return 0.0
        a, b = bound.offsets[i : i + 2]
        own = bound.groups[a:b]
        return sum(groups[g] * p for g, p in zip(own, phi, strict=True) if g >= 0)

    def labels_of(codes):
        return [LABELS[k] for k in codes]

    hinges = 0.0
    for i, (x, y) in enumerate(zip(labelled, truth, strict=True)):
        at = sum(len(z) for z in labelled[:i])
        part = other[at : at + len(x)]

        def value(codes, x=x, part=part, i=i):
            phi = reference.phi_of_all(rules, [x], [labels_of(codes)], LABELS)
            return (rows * features(part, codes)).sum() + extra(known, i, x, codes, phi)

        scores = [
            value(codes) + np.sum(np.array(codes) != y)
            for codes in itertools.product(range(L), repeat=len(x))
        ]
        hinges += C1 / n * (max(scores) - value(y))
    linear = 0.0
    for j, x in enumerate(X):
        at = sum(len(z) for z in X[:j])
        part = dense[at : at + len(x)]
        a, b = bound.offsets[j : j + 2]

        def value(codes, sign, *, x=x, part=part, j=j, a=a, b=b):
            phi = reference.phi_of_all(rules, [x], [labels_of(codes)], LABELS)
            score = (rows * features(part, codes)).sum() + extra(bound, j, x, codes, phi)
            return score - sign * mu / 2 * (v[a:b] @ phi) + sign * mu / 4 * (phi @ phi)

        top = max(value(codes, 1.0) for codes in itertools.product(range(L), repeat=len(x)))
        hinges += C2 / m * top
        codes = guided[at : at + len(x)]
        phi = reference.phi_of_all(rules, [x], [labels_of(codes)], LABELS)
        linear += C2 / m * (value(codes, -1.0) + mu / 4 * (phi @ phi))
    by_hand = regulariser + hinges - linear + C2 * gamma.value(v)
    # The engine leaves out the loss of the reference, a constant.
    reference_loss = mu / 4 * C2 / m * (bound.phi(ref) ** 2).sum()
    assert primal + reference_loss == pytest.approx(by_hand, rel=1e-4, abs=1e-4)


def test_a_state_goes_from_single_to_double_precision():
    """Codes of planes mean the same in both, whatever the padding."""
    rng = np.random.default_rng(1)
    X = [["a", "b", ".", "a"], ["b", "a", "."]]
    bound = ConstraintSet([Words("a", "B"), OneSegment()]).bind(X, LABELS)
    ref = np.zeros(7, np.int32)
    problem = bound.problem(
        chain_problem(X, rng.normal(size=(7, D)), ref),
        auxiliary=True,
        chain_loss=False,
        kappa=-0.5,
        tau=0.25,
    )
    engine = _native.Engine(problem, 1.0, True, True, link=Link().native())
    for _ in range(5):
        engine.exact_pass(np.arange(2, dtype=np.uint32), _native.PassOptions())
    primal, dual = engine.certify()  # in 8-byte arithmetic
    assert dual <= primal + 1e-6
    assert dual == pytest.approx(engine.dual(), rel=1e-5, abs=1e-5)
