"""DualCoordinate: corrected steps, bounds at every report, the general problem (1), regression."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit import quietly
from maxmargin import Constraints, DualCoordinate, MulticlassSVM, StructuralSVM
from maxmargin._native import CoordinateOptions, Engine, PassOptions, RowProblem
from maxmargin.solvers import SDM
from qp_reference import Planes, solve_planes


def general(seed, n=6, d=4, most=4, sparse=False):
    """Return sets of rows and numbers, some of them negative."""
    draw = np.random.default_rng(seed)
    X = [draw.normal(size=(draw.integers(1, most + 1), d)).round(2) for _ in range(n)]
    L = [draw.normal(0.7, 1.0, size=len(x)) for x in X]
    planes = Planes(
        n,
        np.repeat(np.arange(n), [len(x) for x in X]),
        np.vstack(X),
        np.concatenate(L),
    )
    return ([scipy.sparse.csr_array(x) for x in X] if sparse else X), L, planes


def regression(seed, n=8, d=3, epsilon=0.1, scale=1.0):
    """Return a regression problem with weights of examples, and the same as planes."""
    draw = np.random.default_rng(seed)
    X, t, c = scale * draw.normal(size=(n, d)), draw.normal(size=n), draw.uniform(0, 2, n)
    problem = RowProblem(
        above=t - epsilon, below=-t - epsilon, n_sparse=0, dense64=X, example_weight=c
    )
    twice = np.repeat(np.arange(n), 2)
    signs = np.tile([1.0, -1.0], n)
    planes = Planes(n, twice, signs[:, None] * X[twice], signs * t[twice] - epsilon)
    return problem, planes, c


# --- the optimum ---


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_general_problem_has_the_optimum_of_an_independent_program(seed, C, sparse):
    X, L, planes = general(seed, sparse=sparse)
    expected = solve_planes(planes, C)
    model = StructuralSVM(
        Constraints(), solver=DualCoordinate(), C=C, gap=1e-8, dtype="float64", random_state=0
    ).fit(X, L)
    assert model.certificate_.primal == pytest.approx(expected.primal, rel=1e-6)
    assert model.weights_ == pytest.approx(expected.w, abs=1e-3)
    slacks = model.structure_.slacks(X, L, model.weights_)
    by_hand = 0.5 * model.weights_ @ model.weights_ + C * slacks.sum()
    assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 30.0]), st.sampled_from([0.0, 0.2]))
@example(362880, 0.01, 0.2)  # the reference program went round in a cycle here
def test_regression_has_the_optimum_of_an_independent_program(seed, C, epsilon):
    problem, planes, c = regression(seed, epsilon=epsilon)
    expected = solve_planes(planes, C * c)
    found = quietly(problem, DualCoordinate(), C=C, gap=1e-8, dtype="float64", random_state=0)
    assert found.certificate.primal == pytest.approx(expected.primal, rel=1e-6, abs=1e-9)


def test_crammer_and_singer():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(60, 4)), draw.integers(0, 3, 60)
    options = {"C": 0.5, "gap": 1e-6, "dtype": "float64", "random_state": 0}
    own = MulticlassSVM(solver="dualcoordinate", **options).fit(X, y)
    other = MulticlassSVM(solver=SDM(), **options).fit(X, y)
    assert own.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-6)
    # 1.2 of the paper: x_ij = φ(x_i, y_i) - φ(x_i, j)
    rows = np.hstack([X, np.ones((60, 1))])
    sets = [
        [np.kron(np.eye(3)[c] - np.eye(3)[j], x) for j in range(3) if j != c]
        for x, c in zip(rows, y, strict=True)
    ]
    written = StructuralSVM(Constraints(), solver="dualcoordinate", **options).fit(
        sets, np.ones((60, 2))
    )
    assert written.certificate_.primal == pytest.approx(own.certificate_.primal, rel=2e-6)


# --- the steps ---


def test_steps_raise_the_dual_and_stay_feasible():
    X, L, planes = general(1, n=8, most=6)
    problem = Constraints().prepare_problem(X, L).problem
    engine = Engine(problem, 3.0, single=False, factored=False)
    best, last = solve_planes(planes, 3.0).primal, engine.dual()
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(8).astype(np.uint32)
        result = engine.exact_pass(order, PassOptions(coordinate=True, seed=seed))
        dual = engine.dual()
        assert dual == pytest.approx(last + result.gain, abs=1e-9)
        assert dual >= last - 1e-9
        assert dual <= best + 1e-9
        example, _, alpha, *_ = engine.planes()
        assert (alpha >= 0).all()
        assert (np.bincount(example, alpha, 8) <= 1 + 1e-9).all()
        # (36): what the hinges were when they were met
        assert result.gap == pytest.approx(engine.penalty() + 3.0 * result.hinge - dual, abs=1e-9)
        last = dual
    assert last == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("single", [False, True])
def test_rounds_over_rows_raise_the_dual(single):
    problem, planes, c = regression(5, n=30)
    engine = Engine(problem, 2.0, single=single, factored=False)
    best, last = solve_planes(planes, 2.0 * c).primal, 0.0
    tolerance = 1e-4 if single else 1e-9
    order = np.arange(30, dtype=np.uint32)
    shrink = np.inf
    for seed in range(40):
        options = CoordinateOptions(rounds=4, seed=seed, shrink=shrink)
        result = engine.coordinate_pass(order, options)
        shrink = result.psi_max
        primal, dual = engine.objective(), engine.dual()
        assert last - tolerance <= dual <= best + tolerance <= primal + 2 * tolerance
        example, _, alpha, *_ = engine.planes()
        assert len(np.unique(example)) == len(example)  # never both signs
        assert (alpha > 0).all()
        assert (alpha <= 1).all()
        last = dual
    assert last == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_of_rounds_is_that_of_the_last_one(seed):
    problem, _, _ = regression(seed, n=30)
    engine = Engine(problem, 2.0, single=False, factored=False)
    order = np.arange(30, dtype=np.uint32)
    gaps = []
    for rounds in (1, 3, 200):
        engine.coordinate_pass(order, CoordinateOptions(rounds=rounds, enough=0.0, seed=seed))
        # A round in which hardly anything moves meets the gaps that there are at one w.
        still = engine.coordinate_pass(order, CoordinateOptions(rounds=1, seed=seed))
        gaps.append((still.gap, engine.objective() - engine.dual()))
    met, true = gaps[-1]
    assert met == pytest.approx(true, rel=0.05, abs=1e-9)
    assert gaps[0][0] > gaps[-1][0]


def test_rounds_end_within_the_goal():
    problem, _, _ = regression(3, n=30)
    order = np.arange(30, dtype=np.uint32)
    visits = {}
    for goal in (0.0, 0.1, 1e9):
        engine = Engine(problem, 2.0, single=False, factored=False)
        options = CoordinateOptions(rounds=100, enough=0.0, goal=goal, seed=1)
        result = engine.coordinate_pass(order, options)
        visits[goal] = result.visits
        assert result.gap <= goal * engine.dual() + 1e-9 or goal == 0.0
    assert visits[1e9] == 30
    assert 30 < visits[0.1] < visits[0.0] <= 100 * 30 + 30


def test_an_interrupted_pass_does_not_tell_its_gap():
    problem, _, _ = regression(3, n=30)
    engine = Engine(problem, 2.0, single=False, factored=False)
    order = np.arange(30, dtype=np.uint32)
    result = engine.coordinate_pass(order, CoordinateOptions(), 0.0)
    assert result.interrupted
    assert np.isnan(result.gap)


def test_multipliers_of_other_solvers_are_gone_on_from():
    problem, planes, c = regression(6, n=20)
    best = solve_planes(planes, c).primal
    rough = quietly(problem, SDM(schedule="paper", tau=0.3), C=1.0, gap=0.1, dtype="float64")
    engine = Engine(problem, 1.0, single=False, factored=False)
    engine.restore(rough.engine.state())
    before = engine.dual()
    engine.coordinate_pass(np.arange(20, dtype=np.uint32), CoordinateOptions(rounds=50))
    assert engine.dual() >= before - 1e-9
    assert engine.dual() == pytest.approx(best, rel=1e-2)


def test_a_row_of_zeros_and_an_example_without_weight():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    problem = RowProblem(
        above=np.array([1.0, 1.0, 7.0]),
        below=np.full(3, -np.inf),
        n_sparse=0,
        dense64=X,
        example_weight=np.array([1.0, 1.0, 0.0]),
    )
    found = quietly(problem, DualCoordinate(), C=2.0, gap=1e-9, dtype="float64")
    assert found.weights.tolist() == pytest.approx([1.0, 0.0])
    assert found.certificate.primal == pytest.approx(0.5 + 2.0)  # the first is always short of 1


# --- reports and stopping ---


@pytest.mark.parametrize("kind", ["rows", "sets"])
def test_bounds_hold_at_every_report(kind):
    if kind == "rows":
        problem, planes, c = regression(7, n=25)
    else:
        X, L, planes = general(7, n=20)
        problem, c = Constraints().prepare_problem(X, L).problem, 1.0
    best = solve_planes(planes, 1.5 * np.ones(planes.n_examples) * c).primal
    found = quietly(problem, DualCoordinate(), C=1.5, gap=1e-6, dtype="float64", random_state=0)
    assert found.converged
    known = 0
    for record in found.history:
        assert record.dual <= best * (1 + 1e-9)
        if np.isfinite(record.primal):
            known += 1
            assert record.primal >= best * (1 - 1e-9)
    assert known > 0


@pytest.mark.parametrize("seed", range(5))
def test_tol_is_an_absolute_gap(seed):
    problem, planes, c = regression(8, n=40)

    def trained(tol):
        return quietly(
            problem, DualCoordinate(tol=tol), C=1.0, gap=0.0, dtype="float64", random_state=seed
        )

    found, tighter = trained(0.01), trained(1e-8)
    assert found.converged
    assert "tol = 0.01" in found.stop_reason
    assert found.certificate.primal - found.certificate.dual <= 0.01 + 1e-9
    assert tighter.converged
    assert tighter.certificate.primal - tighter.certificate.dual <= 1e-8 + 1e-9
    assert tighter.certificate.primal == pytest.approx(solve_planes(planes, c).primal, abs=1e-6)
    # The same seed has the same passes: the tighter run is the other one, gone on with. (How many
    # passes a gap takes depends on the seed, so runs of two seeds say nothing.)
    duals = [record.dual for record in tighter.history]
    assert duals[: found.n_passes] == pytest.approx([r.dual for r in found.history], rel=1e-12)
    assert tighter.n_passes > found.n_passes


@pytest.mark.parametrize("options", [{"tol": -1.0}, {"cached_passes": -1}, {"tol": np.nan}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        DualCoordinate(**options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"above": np.array([np.nan, 1.0])}, "neither a number"),
        ({"above": np.array([np.inf, 1.0])}, "neither a number"),
        ({"above": np.array([2.0, 1.0])}, "more than 0"),
        ({"above": np.full(2, -np.inf), "below": np.full(2, -np.inf)}, "neither of the two"),
        ({"below": np.zeros(3)}, "differ in length"),
        ({"dense64": np.ones((3, 2))}, "one row per token"),
        ({"example_weight": np.array([1.0, -1.0])}, "negative"),
    ],
)
def test_bad_rows(changes, message):
    arrays = {"above": np.ones(2), "below": -np.ones(2), "n_sparse": 0, "dense64": np.ones((2, 2))}
    with pytest.raises(ValueError, match=message):
        RowProblem(**{**arrays, **changes})


def test_coordinate_passes_need_rows():
    X, L, _ = general(0)
    engine = Engine(Constraints().prepare_problem(X, L).problem, 1.0, factored=False)
    assert not engine.offers_coordinates
    with pytest.raises(ValueError, match="rows with a sign"):
        engine.coordinate_pass(np.arange(6, dtype=np.uint32), CoordinateOptions())
