"""LP: cutting planes against the linear program over all outputs at once."""

from __future__ import annotations

import contextlib
import functools
import io
import signal
import sys
import time
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

import kit
from kit import Pressed
from maxmargin import SequenceTagger, StructuralSVM
from maxmargin.errors import ConvergenceWarning, ModelFormatError, NotCompatibleError
from maxmargin.regularizers import L1, L2
from maxmargin.solvers import LP, SDM, ExtraGradient, Subgradient, solve
from native_problems import Flat, flat_problem, native_python_problem, random_case, run_isolated

METHODS = ("highs", "highs-ds", "highs-ipm")


class Instance(kit.Instance):
    """With the optimum of the linear program over all outputs at once."""

    def optimum(self, C, regularizer):
        """Solve min ρ₁‖w‖₁ + C Σ s_i ξ_i with a constraint for every output."""
        (N, d), n = self.planes.delta.shape, self.planes.n_examples
        slack = np.zeros((N, n))
        slack[np.arange(N), self.planes.example] = 1.0
        # w and its sizes t >= |w|
        A = np.block(
            [
                [-self.planes.delta, np.zeros((N, d)), -slack],
                [np.eye(d), -np.eye(d), np.zeros((d, n))],
                [-np.eye(d), -np.eye(d), np.zeros((d, n))],
            ]
        )
        least = 0 if regularizer.nonnegative else None
        found = linprog(
            np.concatenate([np.zeros(d), np.full(d, regularizer.rho1), C * self.share]),
            A_ub=A,
            b_ub=np.concatenate([-self.planes.loss, np.zeros(2 * d)]),
            bounds=[(least, None)] * d + [(0, None)] * (d + n),
        )
        assert found.status == 0
        return float(found.fun)


@functools.cache
def chain(seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    shape = {"n_labels": 3, "lengths": (3, 1, 3, 2, 3, 2), "n_sparse": 6}
    case = random_case(rng, features=("ones", "values")[seed % 2], cost=seed % 3 == 2, **shape)
    share = np.array([0.5, 3.0, 1.0, 0.0, 2.25, 0.1]) if weighted else None
    return Instance.of_case(case, share)


@functools.cache
def flat(seed=0):
    structure, X, Y = flat_problem(np.random.default_rng(seed), n=10)
    return Instance.of_structure(structure, X, Y)


def run(instance, solver=None, **options):
    """Solve to the end; no warning may come."""
    options = {"C": 1.0, "regularizer": L1(0.5), "gap": 1e-9, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return solve(instance.problem, solver or LP(epsilon=1e-9), **options)


def check(instance, result, C, regularizer, tolerance=1e-7):
    """Compare with the optimum; the weights must be worth what the certificate says."""
    optimum = instance.optimum(C, regularizer)
    certificate, w = result.certificate, instance.unpadded(result.weights)
    assert result.converged
    assert certificate.dual <= optimum * (1 + 1e-9) + 1e-12
    assert certificate.primal == pytest.approx(optimum, rel=tolerance)
    assert certificate.dual == pytest.approx(optimum, rel=tolerance)
    by_hand = regularizer.rho1 * np.abs(w).sum() + C * instance.hinge(w)
    assert certificate.primal == pytest.approx(by_hand, rel=1e-12)
    if regularizer.nonnegative:
        assert (w >= 0).all()
    return w


# --- the optimum ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_against_the_whole_linear_program(seed, nonnegative, method):
    instance, regularizer = chain(seed), L1(0.5, nonnegative)
    result = run(instance, LP(epsilon=1e-9, method=method), regularizer=regularizer)
    w = check(instance, result, 1.0, regularizer)
    assert w.any()
    zeros = np.count_nonzero(w == 0)
    assert zeros > len(w) / 2, "a vertex has many zeros"
    assert np.abs(w[w != 0]).min() > 1e-6, "and what is not zero is not nearly zero"


def test_the_two_problems_differ():
    instance = chain(1)
    assert instance.optimum(1.0, L1(0.5, True)) > 1.01 * instance.optimum(1.0, L1(0.5))


@pytest.mark.parametrize("C", [0.01, 0.3, 7.0, 1000.0])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_many_c(C, nonnegative):
    for seed in (0, 1):
        instance, regularizer = chain(seed), L1(0.2, nonnegative)
        check(instance, run(instance, C=C, regularizer=regularizer), C, regularizer)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nonnegative", [False, True])
def test_example_weights(seed, nonnegative):
    instance, regularizer = chain(seed, weighted=True), L1(0.4, nonnegative)
    result = run(instance, C=0.8, regularizer=regularizer)
    check(instance, result, 0.8, regularizer)
    assert not (result.engine.example == 3).any()  # its weight is zero: no plane of it is kept
    plain = chain(seed).optimum(0.8, regularizer)
    assert abs(plain - result.certificate.primal) > 0.01 * plain


def test_sample_weights_of_a_tagger():
    words = [[["a"], ["b"]], [["b"]], [["a"], ["a"], ["c"]], [["c"], ["b"]]]
    tags = [["X", "Y"], ["Y"], ["X", "Y", "X"], ["Y", "X"]]
    times = np.array([2, 0, 1, 3])
    which = np.repeat(np.arange(4), times)
    options = {"solver": "lp", "regularizer": L1(0.3), "gap": 1e-9, "C": 0.7}
    weighted = SequenceTagger(**options).fit(words, tags, sample_weight=times)
    again = SequenceTagger(**options).fit([words[i] for i in which], [tags[i] for i in which])
    assert weighted.certificate_.primal == pytest.approx(again.certificate_.primal, rel=1e-8)
    plain = SequenceTagger(**options).fit(words, tags)
    assert abs(plain.certificate_.primal - weighted.certificate_.primal) > 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_structure_in_python(seed, nonnegative):
    instance, regularizer = flat(seed), L1(0.3, nonnegative)
    check(instance, run(instance, regularizer=regularizer), 1.0, regularizer)


def test_through_the_estimator():
    structure, X, Y = flat_problem(np.random.default_rng(1), n=10)
    model = StructuralSVM(structure, C=1.0, solver="lp", regularizer=L1(0.3), gap=1e-6)
    model.fit(X, Y)
    optimum = flat(1).optimum(1.0, L1(0.3))
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-6)


def test_much_l1_leaves_nothing():
    instance = chain(1)
    for regularizer in (L1(1e4), L1(1e4, nonnegative=True)):
        result = run(instance, regularizer=regularizer)
        assert not result.weights.any()
        at_zero = instance.hinge(np.zeros(instance.planes.delta.shape[1]))
        assert result.certificate.primal == pytest.approx(at_zero, rel=1e-12)
        assert result.certificate.gap == pytest.approx(0, abs=1e-12)


def test_threads_change_nothing():
    one, two = run(chain(1), n_jobs=1), run(chain(1), n_jobs=2)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.certificate == two.certificate


def test_weights_are_8_byte():
    assert run(chain(1), dtype="float32").weights.dtype == np.float64


# --- the passes ---


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_history(seed, nonnegative, method):
    instance, regularizer = chain(seed), L1(0.3, nonnegative)
    optimum = instance.optimum(1.0, regularizer)
    seen = []

    class Watch:
        def begin_pass(self, engine):
            pass

        def end_pass(self, record, engine):
            w = instance.unpadded(engine.weights)
            seen.append(regularizer.penalty(w) + instance.hinge(w))

    result = run(instance, LP(1e-9, method), regularizer=regularizer, callbacks=[Watch()])
    primal, dual = (result.history.column(name) for name in ("primal", "dual"))
    assert len(primal) > 2
    np.testing.assert_allclose(primal, seen, rtol=1e-9)
    assert (primal >= dual - 1e-9 * primal).all()
    assert (primal >= optimum * (1 - 1e-9)).all()
    assert (dual <= optimum * (1 + 1e-9)).all()
    assert (np.diff(dual) >= 0).all()
    assert dual[0] == 0
    assert (result.history.column("kind") == "collect").all()
    assert (np.diff(result.history.column("oracle_calls")) == 6).all()
    planes = result.history.column("planes")
    assert (np.diff(planes) >= 0).all()
    assert planes[-1] <= len(instance.planes.loss)
    assert planes[0] == 6


def test_planes_are_true_ones_and_none_comes_twice():
    instance = chain(1)
    engine = run(instance).engine
    rows = np.zeros((engine.n_planes, len(engine.weights)))
    rows[:, engine.columns] = engine.rows.toarray()
    keys = set()
    for i, row, loss in zip(engine.example, rows, engine.loss, strict=True):
        delta = instance.unpadded(row)
        own = instance.planes.example == i
        distance = np.abs(instance.planes.delta[own] - delta).max(axis=1)
        match = distance.argmin()
        assert distance[match] < 1e-6
        assert loss == pytest.approx(instance.planes.loss[own][match], rel=1e-6)
        keys.add((int(i), int(match)))
    assert len(keys) == engine.n_planes
    mass = np.bincount(engine.example, engine.alpha, 6)
    assert (engine.alpha >= 0).all()
    assert (mass <= 1.0 + 1e-12).all()


def test_a_large_epsilon_stops_early():
    instance, regularizer = chain(1), L1(0.3)
    optimum = instance.optimum(1.0, regularizer)
    result = run(instance, LP(epsilon=0.5), regularizer=regularizer, gap=0.0)
    assert result.stop_reason == "no plane is violated by 0.5"
    # each of six slacks may be too small by so much
    assert optimum <= result.certificate.primal <= optimum + 6 * 0.5 + 1e-9
    exact = run(instance, LP(epsilon=0.0), regularizer=regularizer, gap=1e-6)
    assert exact.engine.n_planes > result.engine.n_planes
    assert exact.certificate.primal < result.certificate.primal


def test_too_few_passes_are_told():
    with pytest.warns(ConvergenceWarning, match="max_passes = 2"):
        result = solve(chain(1).problem, LP(), C=1.0, regularizer=L1(0.1), gap=1e-9, max_passes=2)
    assert (result.n_passes, result.converged) == (2, False)
    assert result.certificate.primal > result.certificate.dual


def test_a_time_limit_cuts_the_pass_short():
    class Lazy(Flat):
        def argmax(self, x, w, truth=None):
            time.sleep(0.01)
            return super().argmax(x, w, truth=truth)

    structure, X, Y = flat_problem(np.random.default_rng(0), n=30)
    problem = native_python_problem(Lazy(structure.cost, 3), X, Y)
    result = solve(problem, LP(), C=1.0, regularizer=L1(), time_limit=0.1, warn=False)
    assert result.n_passes == 1
    assert result.history[0].oracle_calls < 30


# --- going on ---


def test_stopped_and_resumed_equals_one_run(tmp_path):
    instance, path = chain(1), tmp_path / "run.npz"
    options = {"C": 1.0, "regularizer": L1(0.1), "gap": 1e-9, "warn": False}
    whole = solve(instance.problem, LP(), **options)
    assert whole.n_passes > 4
    for passes in (1, 3, 1000):
        rest = solve(
            chain(1).problem, LP(), max_passes=passes, checkpoint=path, resume=True, **options
        )
    np.testing.assert_array_equal(whole.weights, rest.weights)
    assert whole.certificate == rest.certificate
    assert whole.n_passes == rest.n_passes
    one, two = whole.engine.state(), rest.engine.state()
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    np.testing.assert_array_equal(whole.history.column("dual"), rest.history.column("dual"))
    with pytest.raises(ModelFormatError, match="regularizer"):
        solve(
            instance.problem,
            LP(),
            checkpoint=path,
            resume=True,
            **{**options, "regularizer": L1(0.2)},
        )


@pytest.mark.parametrize(
    "name", ["weights", "bound", "example", "loss", "alpha", "indptr", "indices", "values"]
)
def test_damaged_states(name):
    engine = run(chain(1)).engine
    other = LP().start(chain(1).problem, 1.0, L1(0.5), False)
    state = engine.state()
    array = np.asarray(state[name])
    damaged = [
        None,
        array[:-1],
        np.append(array, array[-1:]),
        array.reshape(1, -1),
        np.array(["text"]),
        np.where(np.arange(len(array)) == len(array) - 1, np.nan, array),
    ]
    if name in ("example", "indices", "indptr"):
        damaged += [array - 1, array + 1000, array[::-1].copy() - 1]
        damaged += [array.astype(float), array * 1e300]  # RuntimeWarnings are errors here
    for wrong in damaged:
        with pytest.raises(ValueError, match="checkpoint"):
            other.restore({**state, name: wrong})
    assert not other.weights.any()
    assert other.n_planes == 0
    other.restore(state)
    np.testing.assert_array_equal(other.weights, engine.weights)


@pytest.mark.parametrize("start", ["lp", "extragradient"])
def test_warm_starts_keep_the_planes_but_not_the_bound(start):
    instance = chain(1)
    first = {
        "lp": lambda: run(instance, regularizer=L1(2.0, True)),
        "extragradient": lambda: run(
            instance, ExtraGradient(), regularizer=L1(2.0, True), gap=0.01
        ),
    }[start]()
    n_planes = first.engine.n_planes
    assert n_planes > 0
    for C, regularizer in ((1.0, L1(0.5)), (0.2, L1(0.5)), (3.0, L1(0.1, True))):
        warm = run(instance, C=C, regularizer=regularizer, engine=first.engine)
        check(instance, warm, C, regularizer)
        assert warm.engine.n_planes >= n_planes


def test_engines_of_other_kinds_are_refused():
    problem = chain(1).problem
    other = solve(problem, SDM(), C=1.0)
    with pytest.raises(NotCompatibleError, match="another kind of solver"):
        solve(problem, LP(), C=1.0, regularizer=L1(), engine=other.engine)
    mine = run(chain(1))
    with pytest.raises(NotCompatibleError):
        solve(problem, SDM(), C=1.0, engine=mine.engine)
    with pytest.raises(NotCompatibleError, match="another problem"):
        run(chain(2), engine=mine.engine)


def test_engines_without_planes_are_refused():
    problem = chain(1).problem
    other = solve(problem, Subgradient(), C=1.0, regularizer=L2(), max_passes=2, warn=False)
    with pytest.raises(NotCompatibleError):
        solve(problem, LP(), C=1.0, regularizer=L1(), engine=other.engine)


# --- Ctrl-C ---


def interrupted():
    """In a process of its own: SIGINT in the oracle of the fourth pass."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    structure, X, Y = flat_problem(np.random.default_rng(0), n=10)
    problem = native_python_problem(Pressed(structure.cost, 3, at=35), X, Y)
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(said):
        warnings.simplefilter("error", ConvergenceWarning)
        result = solve(problem, LP(), C=1.0, regularizer=L1(0.05), gap=0.0)
    assert "interrupted" in said.getvalue()
    assert (result.stop_reason, result.converged, result.n_passes) == ("interrupted", False, 3)
    # the linear program of the fourth pass was solved: its w and its bound are kept
    w, optimum = result.weights, flat(0).optimum(1.0, L1(0.05))
    assert w.any()
    assert result.certificate.dual > result.history[1].dual
    assert result.certificate.dual <= optimum * (1 + 1e-9)
    primal = 0.05 * np.abs(w).sum() + flat(0).hinge(w)
    assert abs(result.certificate.primal - primal) <= 1e-9 * primal
    # and it goes on to the end
    warm = solve(
        problem, LP(epsilon=1e-9), C=1.0, regularizer=L1(0.05), gap=1e-7, engine=result.engine
    )
    assert abs(warm.certificate.primal - optimum) <= 1e-6 * optimum


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_keeps_the_model():
    run_isolated(__file__, "interrupted")


# --- parameters ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1e-9}, "epsilon must be non-negative and finite"),
        ({"epsilon": np.nan}, "epsilon must be non-negative and finite"),
        ({"epsilon": np.inf}, "epsilon must be non-negative and finite"),
        ({"method": "simplex"}, "method must be one of 'highs', 'highs-ds', 'highs-ipm'"),
        ({"method": None}, "method must be one of"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        LP(**options)


def test_a_program_that_highs_does_not_solve(monkeypatch):
    from scipy import optimize

    def fail(*args, **options):
        found = linprog([1.0], A_ub=[[1.0]], b_ub=[-1.0])  # infeasible
        assert found.status == 2
        return found

    monkeypatch.setattr(optimize, "linprog", fail)
    # As the driver for an objective that is not finite: numbers of the input are too large.
    with pytest.raises(FloatingPointError, match="HiGHS did not solve"):
        run(chain(1))
