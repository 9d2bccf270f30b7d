"""Native structures on the family of sparse planes, by the simplest of them: listed outputs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin.regularizers import ElasticNet
from maxmargin.solvers import BCFW, SAP, SDM, NSlack, OneSlack, Subgradient, solve
from native_problems import everyone, flat_problem, native_python_problem


@dataclasses.dataclass
class Rows:
    """Outputs with dense features, one list per example, the reference first."""

    features: list  # [i] (outputs, d)
    losses: list  # [i] (outputs,)

    def problem(self, **changes):
        rows = np.concatenate(self.features)
        counts = [len(f) for f in self.features]
        where = [np.flatnonzero(row) for row in rows]
        arguments = {
            "n_features": rows.shape[1],
            "offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            "indptr": np.concatenate([[0], np.cumsum([len(k) for k in where])]).astype(np.int64),
            "indices": np.concatenate(where).astype(np.uint32),
            "values": rows[rows != 0],
            "loss": np.concatenate(self.losses).astype(float),
        }
        return _native.ListedProblem(**{**arguments, **changes})

    def hinge(self, w):
        return sum(
            max(losses - (f[0] - f) @ w)
            for f, losses in zip(self.features, self.losses, strict=True)
        )


def random_rows(rng, n=6, d=5, outputs=4, signed=False):
    features, losses = [], []
    for _ in range(n):
        m = int(rng.integers(1, outputs + 1))
        features.append(np.round(rng.normal(size=(m, d)), 1) * (rng.random((m, d)) < 0.7))
        own = rng.normal(size=m) if signed else rng.random(m) + 0.5
        losses.append(np.concatenate([[0.0], own[1:]]))
    features[0][0, 0] = 1.0  # not all zero
    return Rows(features, losses)


def rows_of(structure, X, Y):
    """List the outputs of a small structure of Python's, the truth first."""
    features, losses = [], []
    for x, y in zip(X, Y, strict=True):
        order = [y, *(z for z in structure.outputs(x) if z != y)]
        features.append(np.array([structure.joint_feature(x, z) for z in order]))
        losses.append(np.array([structure.loss(y, z) for z in order]))
    return Rows(features, losses)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_certificate_from_scratch(seed, single, signed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, signed=signed)
    engine = _native.Engine(rows.problem(), 0.7, single)
    order = everyone(len(rows.features))
    for _ in range(50):
        engine.exact_pass(order, _native.PassOptions())
        engine.cached_pass(order, _native.PassOptions())
    gap = engine.collect_pass().gap
    primal, dual = engine.certify()
    w = np.asarray(engine.weights, dtype=float)
    tolerance = 1e-4 if single else 1e-9
    by_hand = 0.5 * w @ w + 0.7 * rows.hinge(w)
    assert primal == pytest.approx(by_hand, rel=tolerance, abs=tolerance)
    assert dual <= primal + tolerance
    assert primal - dual == pytest.approx(gap, abs=10 * tolerance)
    # The multipliers are those of w: u is the sum of the planes.
    example, loss, alpha, indptr, indices, values = engine.planes()
    u = np.zeros(w.size)
    for k in range(len(alpha)):
        u[indices[indptr[k] : indptr[k + 1]]] += 0.7 * alpha[k] * values[indptr[k] : indptr[k + 1]]
    np.testing.assert_allclose(u, w, atol=tolerance)
    assert len(example) == len(loss)


SOLVERS = [
    SDM(),
    SDM(schedule="paper", tau=1e-7, tau_inner=1e-8),
    SAP(),
    NSlack(epsilon=1e-6),
    OneSlack(),
    BCFW(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{s.name}")
def test_the_same_model_as_the_structure_in_python(solver):
    structure, X, Y = flat_problem(np.random.default_rng(3), n=12)
    rows = rows_of(structure, X, Y)
    asked = {"C": 0.5, "gap": 1e-4, "max_passes": 5000, "warn": False}
    native = solve(rows.problem(), solver, dtype="float64", **asked)
    python = solve(native_python_problem(structure, X, Y), solver, **asked)
    assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=3e-4)
    assert native.certificate.gap <= 1.1e-4


@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_formulations(slack, rescale):
    structure, X, Y = flat_problem(np.random.default_rng(4), n=8)
    rows = rows_of(structure, X, Y)
    solver = SDM(slack=slack, rescale=rescale)
    asked = {"C": 0.5, "gap": 1e-5, "max_passes": 5000}
    native = solve(rows.problem(), solver, dtype="float64", **asked)
    python = solve(native_python_problem(structure, X, Y), solver, **asked)
    assert not native.certificate.approximate
    assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=3e-5)


@pytest.mark.parametrize("solver", [SDM(), SAP()], ids=["sdm", "sap"])
def test_sparse_models_in_both_precisions(solver):
    structure, X, Y = flat_problem(np.random.default_rng(5), n=12)
    rows = rows_of(structure, X, Y)
    asked = {"C": 0.5, "gap": 1e-3, "regularizer": ElasticNet(l1_ratio=0.6), "max_passes": 5000}
    found = {d: solve(rows.problem(), solver, dtype=d, **asked) for d in ("float32", "float64")}
    assert found["float32"].weights.dtype == np.float32
    assert found["float32"].certificate.primal == pytest.approx(
        found["float64"].certificate.primal, rel=2e-3
    )
    assert (np.asarray(found["float64"].weights) == 0).any()


def test_checkpoints_bit_for_bit():
    rows = random_rows(np.random.default_rng(6), n=10)
    order = everyone(10)
    engine = _native.Engine(rows.problem(), 0.7)
    engine.exact_pass(order, _native.PassOptions())
    other = _native.Engine(rows.problem(), 0.7)
    other.restore(engine.state())
    for e in (engine, other):
        e.cached_pass(order, _native.PassOptions())
        e.exact_pass(order, _native.PassOptions())
    np.testing.assert_array_equal(engine.weights, other.weights)
    state = engine.state()
    state["codes"] = state["codes"].copy()
    state["codes"][2] = 2**31  # a feature that is not there
    with pytest.raises(ValueError, match="a code is damaged"):
        _native.Engine(rows.problem(), 0.7).restore(state)


def test_weights_of_examples():
    rows = random_rows(np.random.default_rng(7), n=6)
    weight = np.array([2.0, 0.0, 1.0, 1.0, 0.0, 3.0])
    repeated = [0, 0, 2, 3, 5, 5, 5]
    twice = Rows([rows.features[i] for i in repeated], [rows.losses[i] for i in repeated])
    asked = {"C": 0.4, "gap": 1e-6, "dtype": "float64", "max_passes": 5000}
    one = solve(rows.problem(example_weight=weight), SDM(), **asked)
    two = solve(twice.problem(), SDM(), **asked)
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-5)


@pytest.mark.parametrize(
    "solver", [SDM(slack="quadratic"), SDM(rescale="slack"), SDM(slack="hard")]
)
def test_negative_losses_go_with_the_plain_formulation(solver):
    rows = random_rows(np.random.default_rng(8), signed=True)
    with pytest.raises(ValueError, match="losses are negative"):
        solve(rows.problem(), solver, C=1.0)
    assert Subgradient().name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_features": 2}, "out of range"),
        ({"n_features": 0}, "between 1"),
        ({"offsets": np.array([0], np.int64)}, "offsets must begin"),
        ({"offsets": np.array([1, 2], np.int64)}, "offsets must begin"),
        ({"offsets": np.array([0, 0, 3], np.int64)}, "example 0 has no output"),
        ({"loss": np.zeros(1)}, "one loss for each output"),
        ({"values": np.zeros(1)}, "differ in length"),
        ({"indptr": np.array([0, 1], np.int64)}, "indptr must run"),
        ({"example_weight": np.zeros(1)}, "one weight for each example"),
        ({"example_weight": np.full(6, -1.0)}, "negative"),
    ],
)
def test_bad_arrays_are_refused(changes, message):
    rows = random_rows(np.random.default_rng(9))
    with pytest.raises(ValueError, match=message):
        rows.problem(**changes)


@pytest.mark.parametrize(("name", "message"), [("values", "a feature is not"), ("loss", "a loss")])
def test_numbers_that_are_not_finite(name, message):
    rows = random_rows(np.random.default_rng(9))
    size = {"values": sum((f != 0).sum() for f in rows.features)}
    size["loss"] = sum(len(losses) for losses in rows.losses)
    with pytest.raises(ValueError, match=message):
        rows.problem(**{name: np.full(size[name], np.nan)})


def test_the_reference_has_no_loss():
    rows = random_rows(np.random.default_rng(9))
    rows.losses[2] = rows.losses[2] + 1.0
    with pytest.raises(ValueError, match="its reference"):
        rows.problem()
