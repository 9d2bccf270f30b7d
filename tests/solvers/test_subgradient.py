"""Subgradient: in an L1 ball and with decay, against optima that others found."""

from __future__ import annotations

import contextlib
import functools
import io
import signal
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

import kit
import qp_reference
from kit import Lazy, Pressed, quietly
from maxmargin import SequenceTagger, _native
from maxmargin.errors import ConvergenceWarning, ModelFormatError, NotCompatibleError
from maxmargin.regularizers import L1, L2, L1Ball
from maxmargin.solvers import LP, SDM, Subgradient, solve, subgradient
from maxmargin.solvers.steps import Context
from native_problems import (
    Flat,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)
from qp_reference import list_planes

DTYPES = ("float32", "float64")
BALL = L1Ball(3.0)


class Instance(kit.Instance):
    """With optima that others found."""

    @functools.cache  # noqa: B019
    def optimum_in_ball(self, C, radius):
        """Solve min C Σ s_i ξ_i, ‖w‖₁ <= radius, with a constraint for every output."""
        (N, d), n = self.planes.delta.shape, self.planes.n_examples
        slack = np.zeros((N, n))
        slack[np.arange(N), self.planes.example] = 1.0
        # w = p - q with p, q >= 0
        norm = np.concatenate([np.ones(2 * d), np.zeros(n)])
        found = linprog(
            np.concatenate([np.zeros(2 * d), C * self.share]),
            A_ub=np.vstack([np.hstack([-self.planes.delta, self.planes.delta, -slack]), norm]),
            b_ub=np.append(-self.planes.loss, radius),
        )
        assert found.status == 0
        return float(found.fun)

    @functools.cache  # noqa: B019
    def optimum_l2(self, C):
        """Return the optimum with L2 from the dual engine, to eight digits."""
        found = solve(self.problem, SDM(), C=C, dtype="float64", gap=1e-8, max_passes=20000)
        assert found.converged
        return found.certificate.primal


@functools.cache
def chain(seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    n = 8
    case = random_case(
        rng,
        n_labels=3,
        lengths=rng.integers(1, 5, n),
        features=("values", "ones")[seed % 2],
        n_sparse=6,
        noise=0.3,
    )
    share = 0.1 + 2 * rng.random(n) if weighted else None
    return Instance.of_case(case, share)


@functools.cache
def flat(seed=0):
    structure, X, Y = flat_problem(np.random.default_rng(seed), n=10)
    return Instance.of_structure(structure, X, Y)


def weighted(seed=0):
    return chain(seed, weighted=True)


MAKERS = {"chain": chain, "weighted": weighted, "flat": flat}
#: Structures in Python are 8-byte whatever one asks for.
KINDS = [(n, d) for n in MAKERS for d in DTYPES if (n, d) != ("flat", "float32")]


def run(instance, solver=None, **options):
    options = {"C": 1.0, "regularizer": BALL, "gap": 0.0, "random_state": 0, **options}
    return quietly(instance.problem, solver or Subgradient(), **options)


def check(instance, result, C, regularizer, optimum, *, within):
    """Compare with the optimum; the weights must be worth what the certificate says."""
    certificate, w = result.certificate, instance.unpadded(result.weights)
    penalty = 0.5 * w @ w if isinstance(regularizer, L2) else 0.0
    assert certificate.primal == pytest.approx(penalty + C * instance.hinge(w), rel=1e-9)
    rounding = 1e-5 if result.weights.dtype == np.float32 else 1e-9
    assert optimum * (1 - rounding) <= certificate.primal <= optimum * (1 + within)
    assert 0 < certificate.dual <= optimum * (1 + rounding)
    if isinstance(regularizer, L1Ball):
        assert np.abs(w).sum() <= regularizer.radius * (1 + rounding)
    primal, dual = (result.history.column(name) for name in ("primal", "dual"))
    assert (np.diff(dual[:-1]) >= 0).all()
    known = np.isfinite(primal)
    assert known[-1]
    assert (primal[known] >= dual[known] * (1 - rounding)).all()
    assert (dual <= optimum * (1 + rounding)).all()


# --- the L1 ball ---


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "dtype"), KINDS)
@pytest.mark.parametrize("project", ["pass", "example"])
def test_the_ball_against_a_linear_program(name, seed, project, dtype):
    instance = MAKERS[name](seed)
    for C, regularizer, step in ((1.0, BALL, 0.1), (0.1, L1Ball(0.5), 0.03)):
        optimum = instance.optimum_in_ball(C, regularizer.radius)
        result = run(
            instance,
            Subgradient(step, project=project),
            C=C,
            regularizer=regularizer,
            max_passes=300,
            dtype=dtype,
        )
        check(instance, result, C, regularizer, optimum, within=0.02)
        assert result.certificate.dual >= 0.95 * optimum


@pytest.mark.parametrize("name", ["chain", "flat"])
@pytest.mark.parametrize("project", ["pass", "example"])
@pytest.mark.parametrize(("C", "radius"), [(1.0, 3.0), (0.1, 0.5)])
def test_the_ball_with_a_calibrated_step(name, project, C, radius):
    instance, regularizer = MAKERS[name](0), L1Ball(radius)
    optimum = instance.optimum_in_ball(C, radius)
    solver = Subgradient(project=project)
    result = run(instance, solver, C=C, regularizer=regularizer, max_passes=300)
    check(instance, result, C, regularizer, optimum, within=0.02)


@pytest.mark.parametrize("project", ["pass", "example"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pass_ends_in_the_ball(project, dtype):
    instance, norms = chain(0), []

    class Watch:
        def begin_pass(self, engine):
            pass

        def end_pass(self, record, engine):
            norms.append(np.abs(engine.weights.astype(float)).sum())
            assert engine.shown is None

    solver = Subgradient(project=project, step_size=1.0)
    run(instance, solver, max_passes=20, dtype=dtype, callbacks=[Watch()])
    assert len(norms) == 20
    assert max(norms) <= 3.0 * (1 + 1e-5)
    assert max(norms) >= 3.0 * (1 - 1e-5)


def test_the_two_ways_to_project_differ():
    first, second = (
        run(chain(0), Subgradient(step_size=1.0, project=project), max_passes=3)
        for project in ("pass", "example")
    )
    assert np.abs(first.weights - second.weights).max() > 1e-3


def test_a_large_ball_is_no_constraint():
    instance = flat(0)
    optimum = instance.optimum_in_ball(1.0, 1e6)
    result = run(instance, regularizer=L1Ball(1e6), max_passes=300)
    assert result.certificate.primal <= optimum * 1.05 + 0.05


def test_small_balls_have_few_weights():
    found = [
        np.count_nonzero(run(chain(0), regularizer=L1Ball(r), max_passes=50).weights)
        for r in (0.05, 10.0)
    ]
    assert 0 < found[0] < found[1]


def test_long_steps_in_a_small_ball():
    found = run(chain(0), Subgradient(step_size=1000.0), regularizer=L1Ball(0.1), max_passes=5)
    assert 0 < np.abs(found.weights).sum() <= 0.1 * (1 + 1e-5)


# --- L2 ---


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "dtype"), KINDS)
@pytest.mark.parametrize("step_size", ["calibrate", "pegasos", 0.5])
def test_l2_against_the_dual_engine(name, seed, step_size, dtype):
    instance = MAKERS[name](seed)
    optimum = instance.optimum_l2(0.5)
    result = run(
        instance,
        Subgradient(step_size),
        C=0.5,
        regularizer=L2(),
        max_passes=300,
        dtype=dtype,
    )
    check(instance, result, 0.5, L2(), optimum, within=0.01)
    assert result.certificate.dual >= 0.98 * optimum


@pytest.mark.parametrize("step_size", ["calibrate", "pegasos", 0.5])
def test_the_last_iterate(step_size):
    instance = chain(0)
    optimum = instance.optimum_l2(0.5)
    options = {"C": 0.5, "regularizer": L2(), "max_passes": 400, "dtype": "float64"}
    last = run(instance, Subgradient(step_size, average=False), **options)
    check(instance, last, 0.5, L2(), optimum, within=0.02)
    np.testing.assert_array_equal(last.weights, last.engine.primal.weights)
    mean = run(instance, Subgradient(step_size), **options)
    # the same path, but another point of it
    np.testing.assert_array_equal(mean.engine.primal.weights, last.weights)
    assert (mean.weights != last.weights).any()
    np.testing.assert_array_equal(mean.weights, mean.engine.primal.average())


@pytest.mark.parametrize("C", [0.01, 10.0])
def test_l2_at_other_c(C):
    instance = chain(1)
    result = run(instance, C=C, regularizer=L2(), max_passes=1000)
    check(instance, result, C, L2(), instance.optimum_l2(C), within=0.02)


def test_the_dual_engine_agrees_with_an_independent_solver():
    """What the tests here compare with, itself compared."""
    structure, X, Y = flat_problem(np.random.default_rng(0), n=10)
    expected = qp_reference.solve(structure, X, Y, 0.5)
    assert flat(0).optimum_l2(0.5) == pytest.approx(expected.primal, rel=1e-6)


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_stops_at_the_gap_asked_for(regularizer):
    instance = chain(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = run(instance, C=0.2, regularizer=regularizer, gap=0.05, max_passes=2000)
    assert result.converged
    assert result.certificate.gap <= 0.05
    assert result.history[-1].gap <= 0.05
    assert result.n_passes < 2000
    assert all(kind == "exact" for kind in result.history.column("kind"))


# --- one pass, by hand ---


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_passes_are_the_native_ones(regularizer):
    """η₀ in each, λ = 1/(nC), and steps counted over all passes; no random order."""
    instance, C, n = weighted(0), 0.7, 8
    solver = Subgradient(0.4, permute=False)
    result = run(instance, solver, C=C, regularizer=regularizer, max_passes=3, dtype="float64")
    primal = _native.Primal(instance.problem, False)
    if isinstance(regularizer, L2):
        options = _native.SubgradientOptions(lambda_=1 / (n * C), eta=0.4, average=True)
    else:
        options = _native.SubgradientOptions(eta=0.4, radius=3.0)
    mean, loss, bound = 0.0, 0.0, 0.0
    for k in range(3):
        found = primal.subgradient_pass(everyone(n), options, float(k * n))
        share = 2 / (k + 2)  # the k-th pass with weight k
        mean = mean + share * (primal.plane - mean)
        loss += share * (found.loss - loss)
        bound = max(bound, regularizer.dual_bound(C * mean, C * loss))
        assert result.history[k].dual == pytest.approx(bound, rel=1e-12)
    expected = primal.average() if isinstance(regularizer, L2) else primal.weights
    np.testing.assert_array_equal(result.weights, expected)
    assert result.certificate.dual == pytest.approx(bound, rel=1e-12)
    assert result.history.column("oracle_calls").tolist() == [n, 2 * n, 3 * n]


def test_steps_longer_than_1_over_lambda_are_shortened():
    options = {"C": 0.5, "regularizer": L2(), "max_passes": 5}
    long, pegasos = (run(chain(0), Subgradient(step), **options) for step in (1e9, "pegasos"))
    np.testing.assert_array_equal(long.weights, pegasos.weights)


class Watched(Subgradient):
    """Shows the step that was found."""

    found: list

    def _first_step(self, engine, context):
        before = engine.primal.weights.copy()
        found = super()._first_step(engine, context)
        np.testing.assert_array_equal(engine.primal.weights, before)
        type(self).found = [*found]
        return found


def objectives(instance, C, regularizer, each=False):
    """Return {η: the objective after one pass with it over all examples}, for a geometric grid."""
    n = instance.planes.n_examples
    # the sample is the first draw of the run's generator
    sample = np.random.default_rng(0).permutation(n).astype(np.uint32)
    tried = {}
    for k in range(-12, 13):
        eta = (n * C if isinstance(regularizer, L2) else 1.0) * 2.0**k
        if isinstance(regularizer, L2):
            if eta > n * C:
                continue
            options = _native.SubgradientOptions(lambda_=1 / (n * C), eta=eta)
        else:
            options = _native.SubgradientOptions(eta=eta, radius=regularizer.radius, each=each)
        primal = _native.Primal(instance.problem, False)
        primal.subgradient_pass(sample, options)
        w = instance.unpadded(primal.weights)
        tried[eta] = regularizer.penalty(w) + C * instance.hinge(w)
    return tried


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_calibration_finds_the_best_step_around(name, regularizer):
    instance, C = MAKERS[name](0), 0.5
    n = instance.planes.n_examples
    options = {"C": C, "regularizer": regularizer, "max_passes": 2, "dtype": "float64"}
    result = run(instance, Watched(), **options)
    eta, calls = Watched.found
    tried = objectives(instance, C, regularizer)
    assert tried[eta] <= min(tried.get(eta * 2, np.inf), tried[eta / 2])
    assert calls % (2 * n) == 0
    assert calls >= 2 * 2 * n
    # its calls are counted
    assert result.history[0].oracle_calls == calls + n


def test_calibration_finds_the_best_step_of_all():
    instance = weighted(1)
    solver = Watched(project="example")
    result = run(instance, solver, max_passes=300, dtype="float64")
    tried = objectives(instance, 1.0, BALL, each=True)
    assert tried[Watched.found[0]] <= 1.05 * min(tried.values())
    assert result.certificate.primal <= 1.1 * instance.optimum_in_ball(1.0, 3.0)


def test_calibration_on_a_small_sample_costs_little():
    small = run(chain(0), Subgradient(sample=2), regularizer=L2(), max_passes=1)
    large = run(chain(0), Subgradient(sample=8), regularizer=L2(), max_passes=1)
    assert small.history[0].oracle_calls < large.history[0].oracle_calls


# --- the same again ---


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_deterministic_for_a_seed(regularizer):
    options = {"regularizer": regularizer, "max_passes": 7}
    one, two = (run(chain(0), random_state=5, **options) for _ in range(2))
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.certificate == two.certificate
    other = run(chain(0), random_state=6, **options)
    assert one.weights.tobytes() != other.weights.tobytes()
    threads = run(chain(0), random_state=5, n_jobs=2, **options)
    assert one.weights.tobytes() == threads.weights.tobytes()


def test_without_permutation_the_seed_does_not_matter():
    options = {"solver": Subgradient(0.3, permute=False), "max_passes": 5}
    one, two = (run(chain(0), random_state=seed, **options) for seed in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)


RUNS = {
    "average": (Subgradient(), L2()),
    "last": (Subgradient("pegasos", average=False), L2()),
    "number": (Subgradient(0.5), L2()),
    "ball": (Subgradient(), BALL),
    "ball-each": (Subgradient(0.3, project="example"), BALL),
}


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_stopped_and_resumed_equals_one_run(how, dtype, tmp_path):
    solver, regularizer = RUNS[how]
    path, options = tmp_path / "run.npz", {"regularizer": regularizer, "dtype": dtype}
    whole = run(chain(0), solver, max_passes=40, **options)
    for passes in (1, 2, 11, 40):
        # the order of the visits is the file's business: another seed changes nothing
        seed = 0 if passes == 1 else 99
        rest = run(
            chain(0),
            solver,
            max_passes=passes,
            checkpoint=path,
            resume=True,
            **options,
            random_state=seed,
        )
    assert whole.weights.tobytes() == rest.weights.tobytes()
    assert whole.certificate == rest.certificate
    one, two = whole.engine.state(), rest.engine.state()
    assert one.keys() == two.keys()
    for name in one:
        assert np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes(), name
    for name in ("dual", "gap_estimate", "oracle_calls"):
        np.testing.assert_array_equal(whole.history.column(name), rest.history.column(name))


@pytest.mark.parametrize("name", ["weights", "sums", "masses", "bound", "mean", "mean_loss"])
def test_damaged_states(name):
    engine = run(chain(0), regularizer=L2(), max_passes=3).engine
    other = Subgradient().start(chain(0).problem, 1.0, L2(), True)
    state = engine.state()
    array = np.asarray(state[name])
    for wrong in (
        None,
        array[:-1],
        np.append(array, array[-1:]),
        array.reshape(1, -1),
        np.array(["text"]),
        np.full_like(array, np.nan),
    ):
        with pytest.raises(ValueError, match="checkpoint"):
            other.restore({**state, name: wrong})
    with pytest.raises(ValueError, match="averaged"):
        other.restore({**state, "averaged": state["averaged"][:-1]})
    assert not other.weights.any()
    other.restore(state)
    np.testing.assert_array_equal(other.weights, engine.weights)
    assert other.certify() == engine.certify()


def test_checkpoints_of_another_run_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    run(chain(0), max_passes=3, checkpoint=path)
    for solver, regularizer in (
        (Subgradient(project="example"), BALL),
        (Subgradient(), L1Ball(2.0)),
        (Subgradient(), L2()),
    ):
        with pytest.raises(ModelFormatError, match="another run"):
            run(chain(0), solver, regularizer=regularizer, checkpoint=path, resume=True)


# --- warm starts ---


def test_a_warm_start_in_the_ball_keeps_the_weights():
    instance = chain(0)
    optimum = instance.optimum_in_ball(1.0, 3.0)
    first = run(instance, regularizer=L1Ball(2.0), max_passes=100)
    warm = run(instance, regularizer=BALL, max_passes=200, engine=first.engine)
    check(instance, warm, 1.0, BALL, optimum, within=0.02)
    # a bound of the larger problem would be wrong for the smaller ball's, and the other way round
    again = run(instance, regularizer=L1Ball(4.0), max_passes=100, engine=warm.engine)
    assert again.certificate.dual <= instance.optimum_in_ball(1.0, 4.0) * (1 + 1e-5)


def test_one_more_pass_after_a_warm_start_does_no_harm():
    instance = chain(0)
    first = run(instance, regularizer=L2(), max_passes=30)
    warm = run(instance, regularizer=L2(), max_passes=1, engine=first.engine)
    assert warm.certificate.primal <= 2 * first.certificate.primal


def test_a_warm_start_at_another_c():
    instance = chain(0)
    optimum = instance.optimum_l2(0.5)
    first = run(instance, C=0.01, regularizer=L2(), max_passes=300)
    warm = run(instance, C=0.5, regularizer=L2(), max_passes=300, engine=first.engine)
    check(instance, warm, 0.5, L2(), optimum, within=0.02)


@pytest.mark.parametrize(
    ("solver", "regularizer"),
    [(Subgradient(average=False), L2()), (Subgradient(), BALL)],
    ids=["last", "ball"],
)
def test_a_warm_start_without_averages(solver, regularizer):
    instance = chain(0)
    first = run(instance, C=2.0, regularizer=L2(), max_passes=30)
    warm = run(
        instance, solver, C=0.5, regularizer=regularizer, max_passes=300, engine=first.engine
    )
    np.testing.assert_array_equal(warm.weights, warm.engine.primal.weights)


def test_engines_of_the_dual_are_refused():
    other = solve(chain(0).problem, SDM(), C=1.0)
    with pytest.raises(NotCompatibleError, match="another kind of solver"):
        run(chain(0), engine=other.engine)


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_engines_of_linear_programs_are_refused(regularizer):
    other = solve(chain(0).problem, LP(), C=1.0, regularizer=L1())
    with pytest.raises(NotCompatibleError):
        run(chain(0), regularizer=regularizer, engine=other.engine, max_passes=2)


# --- stopping ---


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_max_passes_are_told(regularizer):
    options = {"C": 1.0, "regularizer": regularizer, "gap": 1e-9}
    with pytest.warns(ConvergenceWarning, match="max_passes = 3"):
        result = solve(chain(0).problem, Subgradient(), max_passes=3, **options)
    assert (result.n_passes, result.converged) == (3, False)
    assert result.stop_reason == "max_passes = 3"


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_a_time_limit_is_told(regularizer):
    instance = chain(0)
    options = {"C": 1.0, "regularizer": regularizer, "gap": 0.0, "max_passes": 10**9}
    with pytest.warns(ConvergenceWarning, match="time_limit = 0.1 s"):
        result = solve(instance.problem, Subgradient(), time_limit=0.1, **options)
    assert not result.converged
    assert result.n_passes > 0
    w = instance.unpadded(result.weights)
    expected = regularizer.penalty(w) + instance.hinge(w)
    assert result.certificate.primal == pytest.approx(expected, rel=1e-9)
    assert 0 <= result.certificate.dual <= result.certificate.primal * (1 + 1e-6)
    # Only a whole pass says something of all examples.
    assert (result.certificate.dual > 0) or result.n_passes == 1


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
def test_a_pass_cut_short_is_a_model_all_the_same(regularizer):
    structure, X, Y = flat_problem(np.random.default_rng(0), n=30)
    problem = native_python_problem(Lazy(structure.cost, 3, seconds=0.03), X, Y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        result = solve(problem, Subgradient(0.5), C=1.0, regularizer=regularizer, time_limit=0.4)
    assert (result.n_passes, result.converged) == (1, False)
    assert 0 < result.history[0].oracle_calls < 30
    assert result.weights.any()
    planes = list_planes(structure, X, Y)
    instance = Instance(problem, planes, np.ones(30), np.array)
    expected = regularizer.penalty(result.weights) + instance.hinge(result.weights)
    assert result.certificate.primal == pytest.approx(expected, rel=1e-9)
    assert result.certificate.dual == 0  # not all examples were seen


def test_a_time_limit_holds_for_the_calibration():
    structure, X, Y = flat_problem(np.random.default_rng(0), n=10)
    instance = Instance.of_structure(Lazy(structure.cost, 3, seconds=0.01), X, Y)
    result = run(instance, time_limit=0.05)
    assert result.n_passes <= 1
    assert all(record.oracle_calls < 40 for record in result.history)


class Counted(Flat):
    """Each call of the oracle takes one tick of a clock that nothing else moves."""

    ticks = 0

    def argmax(self, x, w, truth=None):
        type(self).ticks += 1
        return super().argmax(x, w, truth=truth)


@pytest.mark.parametrize("regularizer", [BALL, L2()], ids=str)
@pytest.mark.parametrize("limit", [30, 200, 1000])
def test_the_search_for_a_step_leaves_time_for_training(regularizer, limit, monkeypatch):
    """The clock counts oracle calls, so that this does not depend on the machine."""
    structure, X, Y = flat_problem(np.random.default_rng(0), n=40)
    problem = native_python_problem(Counted(structure.cost, 3), X, Y)
    Counted.ticks = 0
    clock = SimpleNamespace(perf_counter=lambda: float(Counted.ticks))
    monkeypatch.setattr(subgradient, "time", clock)
    solver = Subgradient()
    context = Context(40, np.random.default_rng(0), seconds_left=float(limit))
    engine = solver.start(problem, 1.0, regularizer, single=False)
    eta, calls = solver._first_step(engine, context)
    assert eta > 0
    assert calls == Counted.ticks
    # a quarter of the limit, and one pass that native code times by the true clock
    assert calls <= 0.25 * limit + 40
    assert not engine.primal.weights.any()


def test_the_search_is_the_same_where_time_does_not_matter():
    def eta(seconds):
        solver = Subgradient()
        problem = chain(0).problem
        context = Context(problem.n_examples, np.random.default_rng(0), seconds_left=seconds)
        engine = solver.start(problem, 1.0, L2(), single=False)
        return solver._first_step(engine, context)

    assert eta(None) == eta(1e6)


def test_a_time_limit_that_ends_in_the_search_leaves_a_model():
    structure, X, Y = flat_problem(np.random.default_rng(0), n=30)
    instance = Instance.of_structure(Lazy(structure.cost, 3, seconds=0.01), X, Y)
    result = run(instance, time_limit=0.5)
    assert result.weights.any()
    assert not result.converged


def interrupted(which):
    """In a process of its own: SIGINT in the oracle, at the fifth example of the third pass."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    structure, X, Y = flat_problem(np.random.default_rng(0), n=10)
    problem = native_python_problem(Pressed(structure.cost, 3, at=25), X, Y)
    regularizer = BALL if which == "ball" else L2()
    solver = Subgradient(0.5, average=which == "average", permute=False)
    options = {"C": 1.0, "regularizer": regularizer, "gap": 0.0, "random_state": 0}
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(said):
        warnings.simplefilter("error", ConvergenceWarning)
        result = solve(problem, solver, **options)
    assert "interrupted" in said.getvalue()
    assert (result.stop_reason, result.converged, result.n_passes) == ("interrupted", False, 2)
    # the average of two passes, or what came of two passes and four steps
    instance = flat(0)
    two = run(instance, solver, max_passes=2, **options)
    if which == "average":
        expected = two.weights
    else:
        primal = two.engine.primal
        ball = {"radius": 3.0} if which == "ball" else {"lambda_": 0.1}
        steps = _native.SubgradientOptions(eta=0.5, **ball)
        primal.subgradient_pass(everyone(4), steps, 20.0)
        expected = primal.weights
    assert np.abs(result.weights - expected).max() <= 1e-12, (result.weights, expected)
    certificate = result.certificate
    primal = regularizer.penalty(expected) + instance.hinge(expected)
    assert abs(certificate.primal - primal) <= 1e-9 * primal, (certificate, primal)
    assert certificate.dual == two.certificate.dual


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("which", ["average", "last", "ball"])
def test_an_interrupt_keeps_the_model(which):
    run_isolated(__file__, "interrupted", which)


# --- parameters ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_size": 0.0}, "step_size must be positive"),
        ({"step_size": -1.0}, "step_size must be positive"),
        ({"step_size": np.nan}, "step_size must be positive"),
        ({"step_size": np.inf}, "step_size must be positive"),
        ({"step_size": "adam"}, "step_size must be one of 'calibrate', 'pegasos'"),
        ({"project": "never"}, "project must be one of 'pass', 'example'"),
        ({"sample": 0}, "sample must be a whole number of at least 1"),
        ({"sample": 10.5}, "sample must be a whole number"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Subgradient(**options)


def test_pegasos_needs_decay():
    with pytest.raises(ValueError, match="pegasos"):
        run(chain(0), Subgradient("pegasos"))


def test_taggers():
    words = [[["a"], ["b"]], [["b"]], [["a"], ["a"]], [["b"], ["b"]]] * 5
    tags = [["X", "Y"], ["Y"], ["X", "X"], ["Y", "Y"]] * 5
    for regularizer in (None, L1Ball(5.0)):
        tagger = SequenceTagger(
            C=1.0, solver="subgradient", regularizer=regularizer, random_state=0, max_passes=100
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tagger.fit(words, tags)
        assert tagger.predict(words).tolist() == tags
        assert tagger.certificate_.gap < 0.5
