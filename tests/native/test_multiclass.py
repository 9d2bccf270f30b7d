"""Classes on the family of outer products x ⊗ λ(y), against the same problem in Python."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin.regularizers import ElasticNet
from maxmargin.solvers import BCFW, SAP, SDM, NSlack, OneSlack, Subgradient, solve
from native_problems import Flat, everyone, native_python_problem

KINDS = ("dense32", "dense64", "ones", "values", "values64", "values+dense64")


class Classes:
    """A random problem: as arrays for native code, and as inputs of a structure in Python."""

    def __init__(self, seed, kind="dense64", *, n=8, K=4, d=5, cost=True):
        rng = np.random.default_rng(seed)
        self.K, self.n = K, n
        self.labels = rng.integers(0, K, n).astype(np.int32)
        self.arrays = {"n_classes": K, "n_sparse": 0, "labels": self.labels}
        X = []
        if "ones" in kind or "values" in kind:
            values = np.ones((n, d)) if kind == "ones" else rng.normal(size=(n, d))
            matrix = scipy.sparse.csr_array(values * (rng.random((n, d)) < 0.5))
            matrix.sort_indices()
            self.arrays |= {
                "n_sparse": d,
                "indptr": matrix.indptr.astype(np.int64),
                "indices": matrix.indices.astype(np.uint32),
            }
            if kind == "values64":
                self.arrays["values64"] = matrix.data
            elif kind != "ones":
                self.arrays["values"] = matrix.data.astype(np.float32)
                matrix.data = matrix.data.astype(np.float32).astype(float)
            X.append(matrix.toarray())
        if "dense" in kind:
            name = kind.split("+")[-1]
            dense = rng.normal(size=(n, d)).astype(np.float32 if name == "dense32" else float)
            self.arrays[name] = dense
            X.append(dense.astype(float))
        self.X = np.hstack(X)
        self.cost = 1.0 - np.eye(K)
        if cost:
            self.cost = rng.random((K, K)) + 0.5
            np.fill_diagonal(self.cost, 0.0)
            self.arrays["cost"] = self.cost

    def problem(self, **changes):
        return _native.MulticlassProblem(**{**self.arrays, **changes})

    def python(self):
        structure = Flat(self.cost, self.X.shape[1])
        return native_python_problem(structure, list(self.X), self.labels.tolist())

    def matrix(self, weights):
        """Return the weights as (features, classes)."""
        rows = np.asarray(weights, dtype=float).reshape(self.X.shape[1], -1)
        assert not rows[:, self.K :].any(), "the padding of a row is not zero"
        return rows[:, : self.K]

    def hinge(self, W, weight=1.0):
        scores = self.X @ W
        own = scores[np.arange(self.n), self.labels]
        return float((weight * (scores + self.cost[self.labels] - own[:, None]).max(axis=1)).sum())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.booleans(), st.booleans())
def test_the_certificate_from_scratch(seed, kind, single, cost):
    case = Classes(seed, kind, cost=cost)
    engine = _native.Engine(case.problem(), 0.7, single)
    last, tolerance = 0.0, 1e-4 if single else 1e-9
    for _ in range(20):
        for step in (engine.exact_pass, engine.cached_pass):
            step(everyone(case.n), _native.PassOptions())
            assert engine.dual() >= last - tolerance
            last = engine.dual()
    gap = engine.collect_pass().gap
    primal, dual = engine.certify()
    W = case.matrix(engine.weights)
    by_hand = 0.5 * (W**2).sum() + 0.7 * case.hinge(W)
    assert primal == pytest.approx(by_hand, rel=1e-9, abs=1e-9)
    assert primal - dual == pytest.approx(gap, abs=20 * tolerance)
    assert dual <= primal + 1e-9
    scores = case.problem().scores(engine.weights).reshape(case.n, case.K)
    np.testing.assert_allclose(scores, case.X @ W, atol=1e-4 if single else 1e-10)
    # The multipliers are those of w.
    _, loss, alpha, indptr, indices, values = engine.planes()
    u = np.zeros(engine.weights.size)
    for k in range(len(loss)):
        u[indices[indptr[k] : indptr[k + 1]]] += 0.7 * alpha[k] * values[indptr[k] : indptr[k + 1]]
    np.testing.assert_allclose(u, engine.weights, atol=10 * tolerance)


SOLVERS = {
    "sdm": (SDM(), 1e-4),
    "paper": (SDM(schedule="paper", tau=1e-7, tau_inner=1e-8), 1e-4),
    "sap": (SAP(), 1e-4),
    "nslack": (NSlack(epsilon=1e-6), 1e-4),
    "oneslack": (OneSlack(), 1e-4),
    "bcfw": (BCFW(), 2e-3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_model_as_the_structure_in_python(name, kind):
    case = Classes(3, kind, n=12)
    solver, gap = SOLVERS[name]
    asked = {"C": 0.5, "gap": gap, "max_passes": 5000}
    native = solve(case.problem(), solver, dtype="float64", **asked)
    python = solve(case.python(), solver, **asked)
    assert native.certificate.gap <= gap
    assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=2 * gap)


@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_formulations_are_exact_for_any_cost(slack, rescale):
    case = Classes(4, "dense64", n=10)
    solver = SDM(slack=slack, rescale=rescale)
    asked = {"C": 0.5, "gap": 1e-5, "max_passes": 5000}
    native = solve(case.problem(), solver, dtype="float64", **asked)
    python = solve(case.python(), solver, **asked)
    assert not native.certificate.approximate
    assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=3e-5)


@pytest.mark.parametrize("solver", [SDM(), SAP()], ids=["sdm", "sap"])
def test_sparse_models(solver):
    case = Classes(5, "values", n=14, d=9)
    asked = {"C": 0.5, "gap": 1e-3, "max_passes": 5000, "regularizer": ElasticNet(l1_ratio=0.6)}
    native = solve(case.problem(), solver, **asked)
    python = solve(case.python(), SDM(), **asked)
    assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=2e-3)
    assert (case.matrix(native.weights) == 0).any()


def test_a_beta_with_a_cost_to_move_takes_the_same_steps():
    case = Classes(5, "values64", n=14, d=9)
    link = ElasticNet(l1_ratio=0.6).link.native()
    engines = [
        _native.Engine(problem, 0.5, False, False, link=link, nu=0.5)
        for problem in (case.problem(), case.python())
    ]
    for _ in range(5):
        for engine in engines:
            engine.exact_pass(everyone(14), _native.PassOptions(mu=0.1))
        W = case.matrix(engines[0].weights)
        other = np.asarray(engines[1].weights).reshape(case.K, -1).T
        np.testing.assert_allclose(W, other, atol=1e-10)


def test_subgradients_and_weights_of_examples():
    case = Classes(6, "values64", n=6)
    weight = np.array([2.0, 0.0, 1.0, 1.0, 0.0, 3.0])
    found = solve(
        case.problem(example_weight=weight),
        SDM(),
        C=0.4,
        gap=1e-6,
        dtype="float64",
        max_passes=5000,
    )
    W = case.matrix(found.weights)
    by_hand = 0.5 * (W**2).sum() + 0.4 * case.hinge(W, weight)
    assert found.certificate.primal == pytest.approx(by_hand, rel=1e-9)
    other = solve(
        case.problem(example_weight=weight), Subgradient(), C=0.4, max_passes=300, warn=False
    )
    assert other.certificate.primal == pytest.approx(by_hand, rel=0.05)


@pytest.mark.parametrize("single", [False, True])
def test_checkpoints_bit_for_bit(single):
    case = Classes(7, "values+dense64", n=10)
    engine = _native.Engine(case.problem(), 0.7, single)
    engine.exact_pass(everyone(10), _native.PassOptions())
    other = _native.Engine(case.problem(), 0.7, single)
    other.restore(engine.state())
    for e in (engine, other):
        e.cached_pass(everyone(10), _native.PassOptions())
        e.exact_pass(everyone(10), _native.PassOptions())
        e.collect_pass(2)
    np.testing.assert_array_equal(engine.weights, other.weights)
    assert engine.certify(2) == other.certify(1)
    for bad in (case.K, int(case.labels[engine.state()["example"][0]])):
        state = engine.state()
        codes = state["codes"].copy()
        codes[0] = bad
        with pytest.raises(ValueError, match="a code is damaged"):
            _native.Engine(case.problem(), 0.7, single).restore({**state, "codes": codes})


def test_many_classes_and_threads():
    case = Classes(8, "values", n=60, K=300, d=20, cost=False)
    engine = _native.Engine(case.problem(), 1.0)
    for _ in range(10):
        engine.exact_pass(everyone(60), _native.PassOptions())
        engine.collect_pass(2)
    primal, dual = engine.certify(2)
    W = case.matrix(engine.weights)
    assert primal == pytest.approx(0.5 * (W**2).sum() + case.hinge(W), rel=1e-9)
    assert dual <= primal


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_classes": 0}, "classes"),
        ({"n_classes": 2}, "label code"),
        ({"labels": np.zeros(0, np.int32)}, "at least one example"),
        ({"labels": np.full(8, -1, np.int32)}, "label code"),
        ({"dense64": np.zeros((3, 5))}, "one row per token"),
        ({"dense64": None}, "at least one feature"),
        ({"cost": np.ones((4, 4))}, "zero diagonal"),
        ({"cost": np.zeros((3, 4))}, "labels x labels"),
        ({"example_weight": np.full(8, np.nan)}, "negative or above"),
        ({"example_weight": np.zeros(2)}, "one entry per example"),
        ({"n_sparse": 3}, "without indices"),
    ],
)
def test_bad_arrays_are_refused(changes, message):
    case = Classes(9)
    case.labels[0] = 3
    with pytest.raises(ValueError, match=message):
        case.problem(**changes)


def test_weights_of_another_size_are_refused():
    case = Classes(9)
    with pytest.raises(ValueError, match="expected 20 weights"):
        case.problem().scores(_native.aligned_array(8, False))
