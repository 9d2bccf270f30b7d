"""An argmax that misses the maximum: certificates must not claim what nobody knows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from maxmargin import StructuralSVM
from maxmargin.errors import ConvergenceWarning
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
from maxmargin.solvers import (
    BCFW,
    LP,
    SAP,
    SDM,
    DualCoordinate,
    ExtraGradient,
    NSlack,
    OneSlack,
    Subgradient,
    solve,
)
from maxmargin.solvers.certificate import Certificate
from maxmargin.structures.base import Structure
from native_problems import native_python_problem

SIDE = 4


class Grid(Structure):
    """Two labels on a grid; neighbours that agree. ``argmax`` climbs one cell at a time."""

    n_features = 3
    exact = False

    def joint_feature(self, x, y):
        y = np.asarray(y).reshape(SIDE, SIDE)
        same = (y[1:] == y[:-1]).sum() + (y[:, 1:] == y[:, :-1]).sum()
        return np.array([(x * y).sum(), y.sum(), same], dtype=float)

    def loss(self, y, y_hat):
        return float((np.asarray(y) != np.asarray(y_hat)).sum())

    def value(self, x, w, y, truth):
        return w @ self.joint_feature(x, y) + (0.0 if truth is None else self.loss(truth, y))

    def argmax(self, x, w, truth=None):
        best = np.zeros(SIDE * SIDE, int)
        top, better = self.value(x, w, best, truth), True
        while better:
            better = False
            for cell in range(SIDE * SIDE):
                other = best.copy()
                other[cell] = 1 - other[cell]
                value = self.value(x, w, other, truth)
                if value > top + 1e-12:
                    best, top, better = other, value, True
        return tuple(best.tolist())


def data(n=6):
    rng = np.random.default_rng(3)
    X, Y = [], []
    for _ in range(n):
        y = np.zeros((SIDE, SIDE), int)
        y[:, rng.integers(1, SIDE) :] = 1
        X.append(np.where(y == 1, 1.0, -1.0) + rng.normal(scale=1.2, size=y.shape))
        Y.append(tuple(y.ravel().tolist()))
    return X, Y


@pytest.fixture(scope="module")
def outputs():
    """All outputs of a grid, as cells."""
    return (np.arange(2 ** (SIDE * SIDE))[:, None] >> np.arange(SIDE * SIDE)) & 1


def true_primal(result, regularizer, C, outputs):
    """The primal by looking at all outputs."""
    w, total = np.asarray(result.weights), 0.0
    y = outputs.reshape(-1, SIDE, SIDE)
    same = (y[:, 1:] == y[:, :-1]).sum((1, 2)) + (y[:, :, 1:] == y[:, :, :-1]).sum((1, 2))
    for x, truth in zip(*data(), strict=True):
        score = w[0] * (y * x).sum((1, 2)) + w[1] * y.sum((1, 2)) + w[2] * same
        loss = (outputs != np.array(truth)).sum(1)
        own = w @ Grid().joint_feature(x, truth)
        total += max(0.0, float((score + loss).max() - own))
    return regularizer.penalty(w) + C * total


RUNS = {
    "sdm": (SDM(), L2()),
    "sdm paper": (SDM("paper", tau=1e-6, tau_inner=1e-6), L2()),
    "sap": (SAP(), ElasticNet(0.2, 0.8)),
    "nslack": (NSlack(epsilon=1e-4), L2()),
    "dualcoordinate": (DualCoordinate(), L2()),
    "bcfw": (BCFW(), L2()),
    "bcfw last": (BCFW(average=False), L2()),
    "oneslack": (OneSlack(), L2()),
    "oneslack plain": (OneSlack(cuts=1, stabilize="none"), L2()),
    "subgradient": (Subgradient(), L2()),
    "subgradient ball": (Subgradient(), L1Ball(2.0)),
    "lp": (LP(), L1(1.0)),
    "extragradient": (ExtraGradient(), L1(1.0, nonnegative=True)),
}


def train(name, C=1.0, **options):
    solver, regularizer = RUNS[name]
    problem = native_python_problem(Grid(), *data())
    options = {"gap": 0.01, "max_passes": 60, "random_state": 0, **options}
    return solve(problem, solver, C=C, regularizer=regularizer, **options), regularizer


@pytest.mark.parametrize("name", RUNS)
def test_no_certificate_claims_what_argmax_missed(name, outputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result, regularizer = train(name)
    certificate = result.certificate
    truth = true_primal(result, regularizer, 1.0, outputs)
    assert certificate.dual <= truth * (1 + 1e-6)  # planes are outputs: the dual is a bound
    assert certificate.dual <= certificate.primal * (1 + 1e-6)
    assert certificate.primal <= truth * (1 + 1e-6)  # it may be too low, and then says so
    assert not any(record.gap < -1e-6 for record in result.history)
    if certificate.missed is None:
        return
    assert certificate.approximate
    assert not result.converged
    assert "at least" in str(certificate)
    assert "check_structure" in str(certificate)


def first_that_misses(name):
    """Return the first run whose argmax is caught; whether it is depends on the last w."""
    runs = (train(name, random_state=seed)[0] for seed in range(8))
    return next(run for run in runs if run.certificate.missed is not None)


@pytest.mark.parametrize("name", ["sdm", "sdm paper", "sap", "nslack", "bcfw", "bcfw last"])
def test_the_example_is_named(name):
    message = r"missed a better output of example \d.*check_structure"
    with pytest.warns(ConvergenceWarning, match=message):
        result = first_that_misses(name)
    assert result.certificate.missed in range(6)
    assert not result.converged
    assert f"example {result.certificate.missed}" in str(result.certificate)


class Lazy(Structure):
    """Three classes; argmax looks at all of them for some calls, and then returns the truth."""

    n_features = 6

    def __init__(self, calls):
        self.left = calls

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def argmax(self, x, w, truth=None):
        self.left -= 1
        if self.left < 0 and truth is not None:
            return truth
        scores = w.reshape(3, 2) @ x
        return int(np.argmax(scores + (np.arange(3) != truth) * (truth is not None)))


def lazy_problem(calls, separable=False):
    rng = np.random.default_rng(0)
    Y = [int(k) for k in rng.integers(0, 3, 20)]
    corner = np.array([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]])
    X = [rng.normal(size=2) * (0.1 if separable else 1.0) + corner[y] * separable for y in Y]
    return native_python_problem(Lazy(calls), X, Y)


@pytest.mark.parametrize("name", RUNS)
def test_an_argmax_that_forgets_what_it_found_is_noticed_by_all(name):
    solver, regularizer = RUNS[name]
    if isinstance(solver, Subgradient):
        solver = Subgradient(step_size=0.1)  # finding one takes hundreds of calls
    with pytest.warns(ConvergenceWarning, match="missed a better output.*check_structure"):
        result = solve(
            lazy_problem(65),
            solver,
            C=1.0,
            regularizer=regularizer,
            gap=1e-6,
            max_passes=60,
            random_state=0,
        )
    certificate = result.certificate
    assert certificate.approximate
    assert not result.converged
    assert certificate.dual <= certificate.primal * (1 + 1e-6)
    if not isinstance(solver, OneSlack | Subgradient):  # these keep sums over examples
        assert certificate.missed in range(20)


@pytest.mark.parametrize(
    ("slack", "rescale"), [("quadratic", "margin"), ("hard", "margin"), ("linear", "slack")]
)
def test_other_formulations(slack, rescale):
    solver = SDM(slack=slack, rescale=rescale, schedule="paper", tau=1e-9, tau_inner=1e-9)
    with pytest.warns(ConvergenceWarning, match="missed a better output of example"):
        result = solve(
            lazy_problem(60, separable=True), solver, C=1.0, gap=0.0, max_passes=30, random_state=0
        )
    assert result.certificate.dual <= result.certificate.primal * (1 + 1e-9)
    assert result.certificate.approximate
    assert not result.converged


def test_the_estimator_says_so_too():
    with pytest.warns(ConvergenceWarning, match="check_structure"):
        model = StructuralSVM(Grid(), max_passes=60, random_state=2).fit(*data())
    assert not model.converged_
    assert model.certificate_.approximate
    assert "missed" in model.stop_reason_ or "max_passes" in model.stop_reason_


@pytest.mark.parametrize("solver", [SDM(), BCFW(), OneSlack(), Subgradient()], ids=lambda s: s.name)
def test_an_exact_argmax_is_not_accused(solver):
    # one that computes with 4-byte numbers is exact enough
    class Small(Structure):
        n_features = 6

        def joint_feature(self, x, y):
            return np.kron(np.eye(3)[y], x)

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def argmax(self, x, w, truth=None):
            scores = w.astype(np.float32).reshape(3, 2) @ x.astype(np.float32)
            return int(np.argmax(scores + (np.arange(3) != truth) * (truth is not None)))

    rng = np.random.default_rng(0)
    X = list(1000 * rng.normal(size=(20, 2)))
    problem = native_python_problem(Small(), X, [int(k) for k in rng.integers(0, 3, 20)])
    result = solve(problem, solver, C=1e-4, gap=0.05, max_passes=2000, random_state=0)
    assert result.converged
    assert result.certificate.missed is None
    assert not result.certificate.approximate


def test_a_dual_above_the_primal_is_never_a_convergence():
    certificate = Certificate(15.6, 26.6, 1.0, 3, True, Certificate.UNKNOWN)
    assert "-70" not in str(certificate)
    assert "an example" in str(certificate)
