"""Objective (13) against enumeration: values, optimum of the convex step, Lemmas 1 and 2."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxmargin.constraints import (
    AtLeast,
    Changes,
    ConstraintSet,
    First,
    OneSegment,
    OwnGamma,
    Proportion,
    Words,
)
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.transductive import prepare_transductive
from maxmargin.regularizers import L2
from maxmargin.regularizers.base import BoundRegularizer
from maxmargin.solvers import make_solver, solve
from maxmargin.solvers.three_slack import ThreeSlack
from maxmargin.solvers.transductive import TransductiveSVM
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.transduction import Transduction, repadded

LABELS = ["A", "B", "C"]
X = [["a", ".", "b"], ["c", "b"]]
Y = [["A", "A", "B"], ["C", "B"]]
NEW = [["a", ".", "c"], ["b", "d"], ["d", ".", "a", "e"]]
CUTS = np.cumsum([len(x) for x in NEW])[:-1]
LOCAL = [First("A", weight=2.0), Words("b", ["B", "C"], weight=0.5), Changes(after="punctuation")]
SETS = {
    "known": LOCAL,
    "segments": [*LOCAL, OneSegment(weight=3.0)],
    "sample": [*LOCAL, Proportion({"A": 0.5, "B": (0.1, 0.3)}, weight=2.0)],
    "counts": [*LOCAL, AtLeast("B", 2, form="count")],
}


def tokens(x):
    return [[word] for word in x]


def make(rules, features=False):
    chain = Chain(
        labels=LABELS, constraints=ChainConstraints(ConstraintSet(rules), features=features)
    )
    data = prepare_transductive(
        chain, [tokens(x) for x in X], Y, [tokens(x) for x in NEW], dtype="float64"
    )
    return data


class Listed:
    """All labellings of all sequences with Φ, φ and losses, by Python alone."""

    def __init__(self, data):
        self.data, chain = data, data.chain
        self.layout = chain.layout
        names = chain.encoder.feature_names()
        self.row = {name: k for k, name in enumerate(names)}
        self.n_rows = chain.n_weights("float64") // self.layout.width("float64")
        self.labelled = [self.outputs(x) for x in X]
        self.new = [self.outputs(x) for x in NEW]
        # φ of one labelling at a time, through the bound constraints.
        self.phis = []
        flat = [np.zeros(len(x), np.int32) for x in NEW]
        for j, outputs in enumerate(self.new):
            a, b = data.bound.offsets[j], data.bound.offsets[j + 1]
            rows = []
            for codes, _ in outputs:
                given = [*flat[:j], np.array(codes, np.int32), *flat[j + 1 :]]
                rows.append(data.bound.phi(np.concatenate(given))[a:b])
            self.phis.append(np.array(rows))

    def outputs(self, x):
        n, out = len(LABELS), []
        for codes in itertools.product(range(n), repeat=len(x)):
            f = np.zeros((self.n_rows, n))
            base = len(self.row)
            for t, y in enumerate(codes):
                f[self.row[x[t]], y] += 1
                if t:
                    f[base + codes[t - 1], y] += 1
            f[base + n, codes[0]] += 1
            f[base + n + 1, codes[-1]] += 1
            out.append((codes, f))
        return out

    def weights(self, chain_weights):
        return chain_weights.reshape(-1, self.layout.width("float64"))[:, : len(LABELS)]

    def parts(self, w, v, groups, o):
        """Return the hinge, and the maxima of (14) and (15), of each sequence; and predictions."""
        hinge, outer, inner, best = [], [], [], []
        bound, chain = self.data.bound, self.data.chain
        omega = o.omega
        for x, y, outputs in zip(X, Y, self.labelled, strict=True):
            truth = tuple(chain.labels_.index(label) for label in y)
            score = {codes: float((w * f).sum()) for codes, f in outputs}
            if len(groups):
                own = self.data.labelled_bound
                lengths = [len(z) for z in X]
                where = [tuple(z) for z in X].index(tuple(x))
                for codes in score:
                    full = [np.zeros(k, np.int32) for k in lengths]
                    full[where] = np.array(codes, np.int32)
                    phi = own.phi(np.concatenate(full))
                    a, b = own.offsets[where], own.offsets[where + 1]
                    score[codes] += float(np.append(groups, 0.0)[own.groups[a:b]] @ phi[a:b])
            hinge.append(
                max(
                    sum(p != q for p, q in zip(codes, truth, strict=True)) + s
                    for codes, s in score.items()
                )
                - score[truth]
            )
        for j, outputs in enumerate(self.new):
            a, b = bound.offsets[j], bound.offsets[j + 1]
            phi, vj, om = self.phis[j], v[a:b], omega[a:b]
            score = np.array([float((w * f).sum()) for _, f in outputs])
            if len(groups):
                score = score + phi @ np.append(groups, 0.0)[bound.groups[a:b]]
            square = (om * (phi - vj) ** 2).sum(1)
            margin = (om * ~o.guiding[a:b] * (phi - vj) ** 2).sum(1)
            start = np.split(o.data.reference, CUTS)[j]
            wrong = np.array([np.count_nonzero(np.array(y) != start) for y, _ in outputs])
            outer.append(np.max(score + o.mu / 4 * margin + o.label_margin * wrong))
            inner.append(np.max(score - o.mu / 4 * square))
            best.append(phi[np.argmax(score)])
        return np.array(hinge), np.array(outer), np.array(inner), np.concatenate(best)

    def objective(self, w, v, groups, o):
        """Return (13), with (9) as it is before ‖v‖² is taken out."""
        hinge, outer, inner, _ = self.parts(w, v, groups, o)
        m = len(NEW)
        value = 0.5 * float((w**2).sum()) + 0.5 * float(groups @ groups)
        value += o.C1 / len(X) * hinge.sum() + o.C2 * o.gamma.value(v)
        return value + o.C2 / m * float((outer - inner).sum())


def trained(data, **options):
    svm = TransductiveSVM(
        C1=2.0,
        dtype="float64",
        gap=1e-7,
        tol=1e-9,
        random_state=0,
        **{"C2": 3.0, "mu": 1.5, **options},
    )
    start = data.chain.layout.zeros("float64")
    groups = np.zeros(len(data.bound.feature_names)) if data.features else None
    return svm.train(data, start, groups)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("scale", ["sum", "mean"])
@pytest.mark.parametrize("name", SETS)
def test_the_objective_is_that_of_the_paper(name, scale, features):
    if features and name == "counts":
        pytest.skip("constraint features are binary")
    data = make(SETS[name], features)
    result = trained(data, scale=scale, mu=2.5)
    listed = Listed(data)
    w = listed.weights(result.chain_weights)
    expected = listed.objective(w, result.v, result.group_weights, result.transduction)
    assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)
    values = [g.objective for g in result.gammas]
    assert all(b <= a + 1e-6 * (1 + abs(a)) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("per", ["sequence", "token"])
@pytest.mark.parametrize("schedule", ["engine", "paper"])
def test_constraints_that_only_guide(per, schedule, features):
    """They are in (15) alone, and so in the objective; the others keep their margins."""
    data = make([*LOCAL, OneSegment(weight=3.0, per=per, feature=False)], features)
    result = trained(data, margins="labels", mu=2.5, schedule=schedule)
    o = result.transduction
    assert 0 < np.count_nonzero(o.guiding) < data.bound.dimension
    listed = Listed(data)
    w = listed.weights(result.chain_weights)
    expected = listed.objective(w, result.v, result.group_weights, o)
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert all(g.bound == np.inf for g in result.gammas)
    same = trained(make(LOCAL, features), margins="labels", mu=2.5, schedule=schedule)
    assert not same.transduction.guiding.any()
    assert np.isfinite(same.gammas[-1].bound)


@pytest.mark.parametrize("margins", ["all", "labels"])
@pytest.mark.parametrize("schedule", ["engine", "paper"])
@pytest.mark.parametrize("name", SETS)
def test_margins_of_labels_are_in_the_objective(name, schedule, margins):
    """λ Δ to the labelling of the start is in (14), and both schedules minimise that."""
    data = make(SETS[name])
    given = {"mu": 2.5, "margins": margins, "schedule": schedule}
    result = trained(data, label_margin=0.7, **given)
    o = result.transduction
    listed = Listed(data)
    w = listed.weights(result.chain_weights)
    expected = listed.objective(w, result.v, result.group_weights, o)
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert (np.diff(result.result.outer.column("objective")) <= 1e-9).all()
    assert trained(data, **given).objective < result.objective  # without them it is less
    assert all(g.gamma <= g.bound + 1e-6 for g in result.gammas)


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), "half"])
def test_a_wrong_label_margin_is_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="label_margin"):
        TransductiveSVM(label_margin=wrong)


def test_a_beam_never_forgets_a_better_labelling():
    """Where the search misses what was imputed before, that stays: else the objective rises."""
    data = make([*LOCAL, OneSegment(weight=8.0, per="token")])
    wide, narrow = (
        Transduction(data, C1=1.0, C2=2.0, mu=3.0, gamma=data.bound.gamma("sum"), width=width)
        for width in (1000, 1)
    )
    missed = 0
    for seed in range(40):
        weights = wide.start(data.chain.layout.zeros("float64"))
        weights += 2 * np.random.default_rng(seed).normal(size=len(weights))

        def value(imputed, weights=weights):
            return float(imputed.linear_term @ weights) + imputed.constant

        best = wide.impute(weights, 1, False)
        missed += value(narrow.impute(weights, 1, False)) < value(best) - 1e-6
        kept = narrow.impute(weights, 1, False, best.codes)
        assert value(kept) == pytest.approx(value(best))
    assert missed > 0


def convex_step(o, seed):
    """Return an imputation at some weights, and the engine's solution of the convex step."""
    rng = np.random.default_rng(seed)
    weights = o.start(o.data.chain.layout.zeros("float64"))
    n = o.data.chain.n_weights("float64")
    weights[:n] += rng.normal(size=n)  # v stays at its target, so that every o sees the same
    imputed = o.impute(weights, 1, False)
    o.problem.linear_term = imputed.linear_term
    regularizer = BoundRegularizer(L2(), o.link(False)) if o.n_free else None
    result = solve(
        o.problem, make_solver("sdm"), C=1.0, dtype="float64", gap=1e-8, regularizer=regularizer
    )
    return imputed, result


@pytest.mark.parametrize("scale", ["sum", "mean"])
@pytest.mark.parametrize("name", SETS)
def test_the_three_slacks_have_the_same_optimum(name, scale):
    data = make(SETS[name])
    gamma = data.bound.gamma(scale)
    o = Transduction(data, C1=2.0, C2=3.0, mu=2.5, gamma=gamma)
    imputed, result = convex_step(o, 0)
    step = ThreeSlack(o, gamma)
    primal, dual, done = step.solve(imputed.linear_term, 1e-6, 5000)
    assert done
    assert dual <= result.certificate.primal + 1e-9
    assert result.certificate.dual <= primal + 1e-9
    assert primal == pytest.approx(result.certificate.primal, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", SETS)
def test_the_convex_step_is_solved(name):
    """Its value by enumeration is the certificate's, and no other point is lower."""
    data = make(SETS[name])
    o = Transduction(data, C1=2.0, C2=3.0, mu=2.5, gamma=data.bound.gamma("mean"))
    imputed, result = convex_step(o, 1)
    listed = Listed(data)

    def value(weights):
        chain, groups, v = o.split(weights)
        w = listed.weights(chain)
        hinge, outer, _, _ = listed.parts(w, v, groups, o)
        total = 0.5 * float((w**2).sum()) + o.C1 / len(X) * hinge.sum() + o.C2 * o.gamma.value(v)
        total += o.C2 / len(NEW) * float(outer.sum())
        # The concave part at the imputed labellings, in the terms of (9).
        phi = data.bound.phi(imputed.codes)
        score = sum(
            float((w * f).sum())
            for outputs, codes in zip(listed.new, np.split(imputed.codes, CUTS), strict=True)
            for y, f in outputs
            if y == tuple(codes)
        )
        inner = score - o.mu / 4 * float(o.omega @ (phi - v) ** 2)
        return total - o.C2 / len(NEW) * inner

    best = value(result.weights)
    assert result.certificate.primal - imputed.constant == pytest.approx(best, rel=1e-6, abs=1e-6)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-2, 0.1):
        other = result.weights + size * rng.normal(size=len(result.weights))
        assert value(other) >= best - 1e-6


@pytest.mark.parametrize("name", ["known", "sample", "counts"])
@pytest.mark.parametrize("scale", ["sum", "mean"])
def test_entries_of_v_that_are_known_make_no_difference(name, scale):
    """With weights of one, a convex step with and without weights for known v ends alike."""
    data = make([First("A"), Words("b", ["B", "C"]), *SETS[name][3:]])
    gamma = data.bound.gamma(scale)
    values, free = [], []
    for pin in (True, False):
        o = Transduction(data, C1=2.0, C2=3.0, mu=0.9, gamma=gamma, pin=pin)
        imputed, result = convex_step(o, 3)
        values.append(result.certificate.primal - imputed.constant)
        free.append((o.n_free, o.split(result.weights)[2]))
    assert free[0][0] < free[1][0]
    assert values[0] == pytest.approx(values[1], rel=1e-6, abs=1e-6)
    assert np.allclose(free[0][1], free[1][1], atol=1e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", SETS)
def test_lemmas_1_and_2_hold_at_any_weights(name, seed):
    data = make(SETS[name])
    rng = np.random.default_rng(seed)
    o = Transduction(data, C1=1.0, C2=2.0, mu=3.0, gamma=data.bound.gamma("sum"), pin=seed % 2 == 0)
    weights = o.start(data.chain.layout.zeros("float64"))
    weights += rng.normal(size=len(weights))
    chain, groups, v = o.split(weights)
    listed = Listed(data)
    _, outer, inner, phi = listed.parts(listed.weights(chain), v, groups, o)
    offsets = data.bound.offsets
    distance = np.append(o.omega * (phi - v) ** 2, 0.0)
    squares = [distance[a:b].sum() for a, b in itertools.pairwise(offsets)]
    assert (o.mu / 4 * np.array(squares) <= outer - inner + 1e-9).all()  # Lemma 1
    B, actual, bound = o.bound_of_gamma(weights)
    assert actual == pytest.approx(o.gamma.value(phi))
    assert pytest.approx(o.gamma.value(v)) == B
    assert actual <= bound + 1e-9  # Lemma 2


def test_any_convex_gamma_goes_with_the_paper_s_schedule():
    data = make(LOCAL)
    D = data.bound.dimension

    def norm(v):
        d = v - 1.0
        size = float(np.linalg.norm(d))
        return size, d / size if size > 0 else np.zeros(D)

    own = OwnGamma(norm, D, 1.0)
    svm = TransductiveSVM(C1=2.0, C2=3.0, mu=2.0, dtype="float64", gap=1e-4, schedule="paper")
    start = data.chain.layout.zeros("float64")
    result = svm.train(data, start, gamma=own)
    assert result.result.certificate.gap <= 1e-4
    assert (np.diff(result.result.outer.column("objective")) <= 1e-9).all()
    with pytest.raises(NotCompatibleError, match="paper"):
        TransductiveSVM(dtype="float64").train(data, start, gamma=own)


def test_repadding_keeps_the_numbers():
    chain = make(LOCAL).chain
    weights = chain.layout.zeros("float64")
    rows = weights.reshape(-1, chain.layout.width("float64"))
    rows[:, :3] = np.arange(rows[:, :3].size).reshape(-1, 3)
    there = repadded(chain, weights, "float32")
    assert np.array_equal(repadded(chain, there, "float64"), weights)
