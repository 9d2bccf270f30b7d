"""Problems that carry a fixed linear term u₀: Ω(w) - w.u₀ + C Σ max F is minimised, or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
from maxmargin.solvers import (
    BCFW,
    LP,
    SAP,
    SDM,
    SOLVERS,
    DualCoordinate,
    ExtraGradient,
    InteriorPoint,
    NSlack,
    OneSlack,
    Online,
    Subgradient,
    solve,
)
from maxmargin.solvers.certificate import relative_gap
from native_problems import brute_hinge as chain_hinge
from native_problems import flat_problem, native_python_problem, random_case
from test_links import N, brute_hinge, optimum

C = 0.6
DUAL = {
    "sdm": SDM(),
    "sdm paper": SDM("paper", tau=1e-7, tau_inner=1e-8),
    "sap": SAP(),
    "sap paper": SAP("paper", theta=1e-7, theta_inner=1e-8, settled=1e-9),
    "nslack": NSlack(epsilon=1e-7),
    "dualcoordinate": DualCoordinate(),
    "bcfw": BCFW(),
    "bcfw last": BCFW(average=False, cached_passes=5),
    "interiorpoint": InteriorPoint(),
    "online": Online(),
}
PRIMAL = {
    "subgradient": (Subgradient(), L2()),
    "subgradient ball": (Subgradient(), L1Ball(2.0)),
    "lp": (LP(), L1()),
    "extragradient": (ExtraGradient(), L1(nonnegative=True)),
    "oneslack": (OneSlack(), L2()),
}


def make(seed=7, size=1.0):
    """Return a small problem by brute force, its native form, and a linear term."""
    rng = np.random.default_rng(seed)
    structure, X, Y = flat_problem(rng)
    problem = native_python_problem(structure, X, Y)
    problem.linear_term = size * rng.normal(size=N)
    return structure, X, Y, problem


def test_problems_have_none_of_their_own():
    assert random_case(np.random.default_rng(0)).problem().linear_term is None
    assert native_python_problem(*flat_problem(np.random.default_rng(0))).linear_term is None


@pytest.mark.parametrize("size", [0.2, 3.0], ids=["above zero", "below zero"])
@pytest.mark.parametrize("name", DUAL)
def test_the_optimum_is_that_of_an_independent_solver(name, size):
    structure, X, Y, problem = make(size=size)
    truth = optimum(structure, X, Y, C, Link(), problem.linear_term)
    assert (truth > 0) == (size < 1)
    gap = 1e-3 if name.startswith("bcfw") else 1e-6
    found = solve(problem, DUAL[name], C=C, gap=gap, max_passes=20_000, warn=False, random_state=0)
    certificate = found.certificate
    assert found.converged
    # The paper's schedules have stopping rules of their own, on violations.
    assert -1e-12 <= certificate.gap <= max(gap, 1e-4)
    assert certificate.primal == pytest.approx(truth, abs=2 * certificate.gap * abs(truth) + 1e-6)
    assert certificate.dual <= truth + 1e-6
    w = np.asarray(found.weights)
    by_hand = 0.5 * w @ w - w @ problem.linear_term + C * brute_hinge(structure, X, Y, w)
    assert certificate.primal == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("name", ["sdm", "sdm paper", "bcfw"])
def test_a_negative_objective_ends_by_the_gap_and_not_before(name):
    """Divided by a negative primal, every gap would be small enough."""
    *_, problem = make(size=3.0)
    found = solve(problem, DUAL[name], C=C, gap=1e-3, max_passes=20_000, warn=False, random_state=0)
    assert found.certificate.primal < 0
    assert 0 <= found.certificate.gap <= 1e-3
    gaps = found.history.column("gap")
    assert (gaps[np.isfinite(gaps)] >= 0).all()
    assert 1 < found.n_passes < 1000
    asked = solve(problem, SDM(), C=C, gap=1e-9, max_passes=1, warn=False, random_state=0)
    assert not asked.converged


def test_relative_gaps():
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(2.0, -1.0) == 1.5
    assert relative_gap(-1.0, -2.0) == 0.5
    assert relative_gap(0.0, -2.0) == 1.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(math.inf, 1.0) == 1.0
    assert math.isnan(relative_gap(math.nan, 1.0))
    assert math.isnan(relative_gap(math.nan, -1.0))


def test_with_the_elastic_net():
    structure, X, Y, problem = make()
    net = ElasticNet(0.2, 0.5)
    truth = optimum(structure, X, Y, C, net.link, problem.linear_term)
    for solver in (SDM(), SAP("paper", theta=1e-7, theta_inner=1e-8, settled=1e-9)):
        found = solve(
            problem, solver, C=C, regularizer=net, gap=1e-6, max_passes=20_000, warn=False
        )
        assert found.certificate.primal == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chains_in_both_precisions(dtype):
    case = random_case(np.random.default_rng(1), lengths=(4, 2, 5, 3))
    term = np.random.default_rng(2).normal(size=case.n_rows * case.n_labels)
    problem = case.problem()
    # In the native layout of the weights, as arrays of a link are; of any type of numbers.
    problem.linear_term = np.array(case.weights(term, dtype == "float32"), dtype=np.float64)
    found = solve(problem, SDM(), C=0.4, dtype=dtype, gap=1e-4, random_state=0)
    assert found.converged
    w = case.unpadded(found.weights)
    by_hand = 0.5 * w @ w - w @ term + 0.4 * chain_hinge(case, w)
    assert found.certificate.primal == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("solver", [SDM(), NSlack(epsilon=1e-7)], ids=["sdm", "nslack"])
def test_a_warm_start_takes_the_present_term_and_keeps_the_planes(solver):
    """As a concave-convex procedure does: another u₀, the same machine."""
    structure, X, Y, problem = make()
    options = {"C": C, "gap": 1e-6, "max_passes": 20_000, "warn": False, "random_state": 0}
    machine = solve(problem, solver, **options).engine
    for term in (np.random.default_rng(3).normal(size=N), None):
        problem.linear_term = term
        before = machine.size()["planes"]
        found = solve(problem, solver, engine=machine, **options)
        assert found.engine is machine
        assert before > 0
        assert (machine.fixed is None) == (term is None)
        truth = optimum(structure, X, Y, C, Link(), term)
        assert found.certificate.primal == pytest.approx(truth, rel=1e-4)


def test_the_same_term_again_leaves_the_weights_as_they_are():
    *_, problem = make()
    machine = solve(problem, SDM(), C=C, max_passes=3, warn=False, random_state=0).engine
    before = np.array(machine.weights)
    SDM().continue_from(machine, C, L2())
    np.testing.assert_array_equal(machine.weights, before)
    problem.linear_term = 2 * problem.linear_term
    SDM().continue_from(machine, C, L2())
    np.testing.assert_allclose(machine.weights - before, 0.5 * problem.linear_term, atol=1e-12)


def test_a_checkpoint_of_another_term_is_refused(tmp_path):
    *_, problem = make()
    path, term = tmp_path / "run.npz", problem.linear_term
    options = {"C": C, "gap": 1e-9, "warn": False, "random_state": 0, "checkpoint": path}
    solve(problem, SDM(), max_passes=3, **options)
    for other in (None, 2 * term):
        problem.linear_term = other
        with pytest.raises(ModelFormatError, match="linear_term"):
            solve(problem, SDM(), max_passes=6, resume=True, **options)
    problem.linear_term = term
    resumed = solve(problem, SDM(), max_passes=6, resume=True, **options)
    *_, fresh = make()
    whole = solve(fresh, SDM(), max_passes=6, **{**options, "checkpoint": None})
    np.testing.assert_array_equal(resumed.weights, whole.weights)


# --- what cannot have one ---


@pytest.mark.parametrize("name", PRIMAL)
def test_solvers_with_a_w_of_their_own_refuse_it(name):
    solver, regularizer = PRIMAL[name]
    *_, problem = make()
    with pytest.raises(NotCompatibleError, match=r"fixed linear term.*'sdm'") as refused:
        solve(problem, solver, C=C, regularizer=regularizer, max_passes=2)
    assert repr(solver.name) in str(refused.value)
    problem.linear_term = None
    solve(problem, solver, C=C, regularizer=regularizer, max_passes=2, warn=False)


def test_every_solver_was_tried():
    names = {solver.name for solver in DUAL.values()}
    assert names | {solver.name for solver, _ in PRIMAL.values()} == set(SOLVERS)
    assert names == {name for name, kind in SOLVERS.items() if kind.linear_terms}


def test_hard_margins_refuse_it():
    *_, problem = make()
    with pytest.raises(NotCompatibleError, match='slack="hard"'):
        solve(problem, SDM(slack="hard"), C=1.0)


def test_kernels_refuse_it():
    places = np.arange(2, dtype=np.uint32)
    chain = _native.ChainProblem(
        n_labels=2,
        n_sparse=2,
        offsets=np.array([0, 2]),
        indptr=np.arange(3),
        indices=places,
        labels=np.array([0, 1], dtype=np.int32),
    )
    problem = _native.KernelProblem(chain, _native.MatrixKernel(np.eye(2), places), 1 << 20)
    assert problem.has_kernel
    assert not chain.has_kernel
    assert solve(problem, SDM(), C=1.0).converged
    problem.linear_term = np.zeros(8)
    with pytest.raises(NotCompatibleError, match="with a kernel there are none"):
        solve(problem, SDM(), C=1.0)


def test_a_term_of_another_size_is_refused():
    *_, problem = make()
    problem.linear_term = np.zeros(N + 1)
    with pytest.raises(ValueError, match="an entry for each weight"):
        solve(problem, SDM(), C=1.0)
