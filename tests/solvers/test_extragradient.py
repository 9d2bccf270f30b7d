"""ExtraGradient: the saddle point, against linear programs, and its projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit import quietly
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
from maxmargin.solvers import LP, ExtraGradient, solve
from maxmargin.solvers.extragradient import _norm, project_blocks
from native_problems import flat_problem, native_python_problem, random_case


def chain(seed=0, weighted=False, n=6):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, n)
    features = ("ones", "values")[seed % 2]
    case = random_case(rng, n_labels=3, lengths=lengths, features=features, n_sparse=6)
    share = 2 * rng.random(n) * (np.arange(n) != 1)
    return case.problem(example_weight=share) if weighted else case.problem()


def flat(seed=0):
    return native_python_problem(*flat_problem(np.random.default_rng(seed), n=10))


MAKERS = {
    "chain": lambda seed: chain(seed, n=4),
    "weighted": lambda seed: chain(seed, weighted=True, n=5),
    "flat": flat,
}


def run(problem, solver=None, **options):
    options = {"C": 1.0, "regularizer": L1(0.5, nonnegative=True), "random_state": 0, **options}
    return quietly(problem, solver or ExtraGradient(), **options)


# --- the optimum ---


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(("C", "rho1"), [(1.0, 0.6), (0.3, 0.15)])
def test_agrees_with_the_linear_program(make, seed, C, rho1):
    problem = make(seed)
    options = {"C": C, "regularizer": L1(rho1, nonnegative=True)}
    optimum = run(problem, LP(epsilon=1e-9), gap=1e-9, **options).certificate
    assert optimum.gap <= 1e-8
    found = run(problem, ExtraGradient(epsilon=1e-8), gap=1e-5, **options)
    assert found.converged
    assert found.certificate.primal == pytest.approx(optimum.primal, rel=1e-5)
    assert found.certificate.dual <= optimum.primal * (1 + 1e-9)
    assert found.certificate.primal >= optimum.dual * (1 - 1e-9)
    assert (found.weights >= 0).all()
    assert found.weights.any()
    assert (found.weights == 0).any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner", [1, 20])
def test_history(seed, inner):
    problem = chain(seed)
    optimum = run(problem, LP(epsilon=1e-9), gap=1e-9).certificate.primal
    result = run(problem, ExtraGradient(inner=inner), gap=0.0, max_passes=60)
    primal, dual = (result.history.column(name) for name in ("primal", "dual"))
    assert (primal >= dual).all()
    assert (primal >= optimum * (1 - 1e-9)).all()
    assert (dual <= optimum * (1 + 1e-9)).all()
    assert (np.diff(dual) >= 0).all()
    assert dual[-1] > 0
    assert (primal[-1] - dual[-1]) < 0.5 * (primal[1] - dual[1])
    assert (np.diff(result.history.column("oracle_calls")) == problem.n_examples).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_multipliers_are_feasible_at_every_pass(weighted):
    problem, C, rho1 = chain(1, weighted), 0.7, 0.3
    sums = []

    class Watch:
        def begin_pass(self, engine):
            pass

        def end_pass(self, record, engine):
            assert (engine.alpha >= 0).all()
            mass = np.bincount(engine.example, engine.alpha, problem.n_examples)
            assert (mass <= C * engine.share * (1 + 1e-12)).all()
            sums.append(mass.sum())

    regularizer = L1(rho1, nonnegative=True)
    result = run(problem, C=C, regularizer=regularizer, gap=1e-2, callbacks=[Watch()])
    assert sums[-1] > 0
    engine = result.engine
    u = engine.rows.T @ engine.alpha
    assert (u <= rho1 * 1.1).all()
    bound = regularizer.dual_bound(u, float(engine.alpha @ engine.loss))
    assert bound <= result.certificate.dual * (1 + 1e-12)


def test_more_inner_steps_take_fewer_passes():
    few = run(chain(1), ExtraGradient(inner=10), gap=1e-2, max_passes=2000)
    many = run(chain(1), ExtraGradient(inner=100), gap=1e-2, max_passes=2000)
    assert few.converged
    assert many.converged
    assert many.n_passes < few.n_passes


def test_much_l1_leaves_nothing():
    result = run(chain(1), regularizer=L1(1e4, nonnegative=True), gap=1e-6)
    assert result.converged
    assert not result.weights.any()


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_is_a_little_too_large(seed):
    # A step above 1/‖Δf‖ need not converge.
    problem = chain(seed, n=12)
    rows = run(problem, ExtraGradient(inner=20), max_passes=20).engine.rows
    largest = np.linalg.norm(rows.toarray(), 2)
    assert largest <= _norm(rows, rows.T.tocsr()) <= 1.06 * largest


# --- what does not go together ---


@pytest.mark.parametrize("regularizer", [L1(), L1(0.3, nonnegative=False)])
def test_weights_of_both_signs_are_refused(regularizer):
    with pytest.raises(NotCompatibleError, match="nonnegative=True") as caught:
        solve(chain(), ExtraGradient(), C=1.0, regularizer=regularizer)
    assert "solver 'lp'" in str(caught.value)


@pytest.mark.parametrize(
    ("regularizer", "able"),
    [(None, "sdm"), (L2(), "sdm"), (ElasticNet(0.5, 0.5), "sap"), (L1Ball(1.0), "subgradient")],
)
def test_other_regularisers_are_refused(regularizer, able):
    with pytest.raises(NotCompatibleError, match="extragradient") as caught:
        solve(chain(), ExtraGradient(), C=1.0, regularizer=regularizer)
    assert repr(able) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inner": 0}, "inner must be a whole number of at least 1"),
        ({"inner": 2.0}, "inner must be a whole number"),
        ({"inner": True}, "inner must be a whole number"),
        ({"epsilon": -1.0}, "epsilon must be non-negative"),
        ({"epsilon": np.nan}, "epsilon must be non-negative"),
        ({"shorten": 0.0}, "shorten must lie between 0 and 1"),
        ({"shorten": 1.0}, "shorten must lie between 0 and 1"),
        ({"shorten": np.nan}, "shorten must lie between 0 and 1"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        ExtraGradient(**options)


# --- checkpoints ---


@pytest.mark.parametrize("make", [chain, flat])
def test_stopped_and_resumed_equals_one_run(make, tmp_path):
    path = tmp_path / "run.npz"
    options = {"gap": 0.0, "solver": ExtraGradient(inner=5)}
    whole = run(make(1), max_passes=12, **options)
    for passes in (1, 2, 7, 12):
        rest = run(make(1), max_passes=passes, checkpoint=path, resume=True, **options)
    assert whole.weights.tobytes() == rest.weights.tobytes()
    assert whole.certificate == rest.certificate
    one, two = whole.engine.state(), rest.engine.state()
    assert one.keys() == two.keys()
    for name in one:
        assert np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes(), name
    for name in ("primal", "dual", "planes", "oracle_calls"):
        np.testing.assert_array_equal(whole.history.column(name), rest.history.column(name))


def test_threads_change_nothing():
    one, two = (run(chain(1), max_passes=10, n_jobs=n) for n in (1, 2))
    assert one.weights.tobytes() == two.weights.tobytes()


# --- the projection ---


def nearest(values, cap):
    """Return the nearest point with entries >= 0 whose sum is at most the cap, by bisection."""
    if np.maximum(values, 0).sum() <= cap:
        return np.maximum(values, 0)
    low, high = 0.0, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > cap else (low, middle)
    return np.maximum(values - high, 0)


numbers = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1.0, 0.5]))
blocks = st.lists(
    st.tuples(
        st.integers(0, 3),  # examples without planes before this one
        st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 5)),  # its cap
        st.lists(numbers, min_size=1, max_size=6),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(blocks=blocks)
@example(blocks=[])
@example(blocks=[(0, 1.0, [3.0])])
@example(blocks=[(0, 1.0, [1.0, 1.0, 1.0])])
@example(blocks=[(0, 1.0, [-1.0, -2.0]), (2, 0.0, [1.0, 2.0])])
@example(blocks=[(0, 2.0, [0.5, 0.5]), (0, 0.5, [0.5, 0.5, -3.0])])
def test_project_blocks(blocks):
    caps, owner, values, expected = [], [], [], []
    for skipped, cap, entries in blocks:
        caps += [7.0] * skipped + [cap]
        owner += [len(caps) - 1] * len(entries)
        values += entries
        expected.append(nearest(np.array(entries), cap))
    given_values = np.array(values, dtype=float)
    kept = given_values.copy()
    owner = np.array(owner, dtype=np.int64)
    caps = np.array(caps, dtype=float)
    found = project_blocks(given_values, owner, caps)
    np.testing.assert_array_equal(given_values, kept)  # not in place
    np.testing.assert_allclose(found, np.concatenate([[], *expected]), rtol=0, atol=1e-12)
    assert (found >= 0).all()
    mass = np.bincount(owner, found, len(caps))
    assert (mass <= caps + 1e-12).all()
    np.testing.assert_allclose(project_blocks(found, owner, caps), found, rtol=0, atol=1e-12)
