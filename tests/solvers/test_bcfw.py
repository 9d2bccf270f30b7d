"""BCFW: Algorithm 4 step by step, averages, sampling, and the optimum."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

import kit
from kit import Instance, Watcher
from maxmargin import L1, ElasticNet
from maxmargin._native import Engine, PassOptions
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L1Ball
from maxmargin.solvers import BCFW, SDM, make_solver
from maxmargin.solvers.steps import Context
from native_problems import (
    Flat,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
)

SAMPLINGS = ("permute", "uniform", "gap")


@functools.cache
def chains(seed=0):
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=3, lengths=(3, 1, 2, 4, 2, 3), n_sparse=6, cost=True)
    return Instance.of_case(case)


@functools.cache
def points(seed=0):
    structure, X, Y = flat_problem(np.random.default_rng(seed))
    return Instance.of_structure(structure, X, Y)


MAKERS = {"chains": chains, "python": points}


quietly = functools.partial(kit.quietly, C=1.0, dtype="float64", random_state=0)


# --- Algorithm 4 ---


class Slow:
    """Algorithm 4 as printed, with λ = 1/(nC)."""

    def __init__(self, instance, C):
        self.instance, self.C = instance, C
        self.lam = 1 / (instance.n * C)
        self.w, self.loss = np.zeros(instance.d), 0.0
        self.w_of = np.zeros((instance.n, instance.d))
        self.loss_of = np.zeros(instance.n)

    def step(self, i):
        n, lam = self.instance.n, self.lam
        _, delta, loss = self.instance.oracle(i, self.w)
        w_s, loss_s = delta / (lam * n), loss / n
        away = self.w_of[i] - w_s
        if not away.any():
            return
        gamma = (lam * away @ self.w - self.loss_of[i] + loss_s) / (lam * away @ away)
        gamma = min(max(gamma, 0.0), 1.0)
        w_new = (1 - gamma) * self.w_of[i] + gamma * w_s
        loss_new = (1 - gamma) * self.loss_of[i] + gamma * loss_s
        self.w = self.w + w_new - self.w_of[i]
        self.loss += loss_new - self.loss_of[i]
        self.w_of[i], self.loss_of[i] = w_new, loss_new

    @property
    def dual(self):
        """In the units of C: their -f(α) times nC."""
        return self.instance.n * self.C * (self.loss - 0.5 * self.lam * self.w @ self.w)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_those_of_algorithm_4(kind, C, seed):
    instance = MAKERS[kind](seed)
    engine = Engine(instance.problem, C, single=False, factored=False)
    slow, options = Slow(instance, C), PassOptions(frank_wolfe=True)
    rng = np.random.default_rng(seed)
    close = {"rtol": 1e-10, "atol": 1e-10 * (1 + C)}
    for i in rng.integers(0, instance.n, 30):  # one by one
        before = engine.dual()
        result = engine.exact_pass(np.array([i], np.uint32), options)
        slow.step(i)
        np.testing.assert_allclose(instance.unpadded(engine.weights), slow.w, **close)
        np.testing.assert_allclose(engine.dual(), slow.dual, **close)
        np.testing.assert_allclose(result.gain, slow.dual - before, **close)
    for _ in range(5):  # and in passes
        order = rng.integers(0, instance.n, instance.n).astype(np.uint32)
        engine.exact_pass(order, options)
        for i in order:
            slow.step(i)
        np.testing.assert_allclose(instance.unpadded(engine.weights), slow.w, **close)
        np.testing.assert_allclose(engine.dual(), slow.dual, **close)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_average(kind):
    """Against the sum of t w_t over single visits, cached ones among them."""
    instance = MAKERS[kind](1)
    engine = Engine(instance.problem, 1.0, single=False, factored=False)
    np.testing.assert_array_equal(engine.average(), engine.weights)
    options = PassOptions(frank_wolfe=True, average=True)
    rng, total, mass = np.random.default_rng(0), 0.0, 0.0
    for t in range(1, 61):
        one = rng.integers(0, instance.n, 1).astype(np.uint32)
        cached = t > instance.n and t % 3 == 0
        result = (engine.cached_pass if cached else engine.exact_pass)(one, options)
        visits = result.visits if cached else 1  # a block without planes is not visited
        if visits:
            mass += 1
            total = total + mass * np.array(engine.weights)
        if mass:
            mean = total / (mass * (mass + 1) / 2)
            np.testing.assert_allclose(engine.average(), mean, rtol=0, atol=1e-11)
    assert np.abs(mean - engine.weights).max() > 1e-3
    engine.forget_average()
    np.testing.assert_array_equal(engine.average(), engine.weights)


def test_the_average_over_a_pass():
    instance = chains(2)
    one, many = (Engine(instance.problem, 1.0, single=False, factored=False) for _ in range(2))
    options = PassOptions(frank_wolfe=True, average=True)
    order = np.array([0, 3, 3, 1, 5, 2, 4], np.uint32)
    one.exact_pass(order, options)
    total = 0.0
    for t, i in enumerate(order, 1):
        many.exact_pass(np.array([i], np.uint32), PassOptions(frank_wolfe=True))
        total = total + t * np.array(many.weights)
    np.testing.assert_allclose(one.average(), total / 28, rtol=0, atol=1e-12)


# --- the optimum ---


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("cached", [0, 4])
def test_the_optimum(kind, sampling, average, cached):
    instance = MAKERS[kind](0)
    best = quietly(instance.problem, SDM(), gap=1e-6, max_passes=3000).certificate
    solver = BCFW(sampling, average, cached_passes=cached)
    found = quietly(instance.problem, solver, gap=0.01, max_passes=1000)
    certificate = found.certificate
    assert found.converged, str(certificate)
    assert certificate.gap <= 0.01
    assert certificate.dual <= best.primal * (1 + 1e-9)
    assert best.dual <= certificate.primal * (1 + 1e-9)
    assert certificate.primal <= best.primal / (1 - 0.0101)
    # from scratch
    w = instance.unpadded(found.weights)
    assert certificate.primal == pytest.approx(instance.primal(w, 1.0), rel=1e-9)
    kinds = {record.kind for record in found.history}
    assert kinds <= {"exact", "cached"}
    assert ("cached" in kinds) == (cached > 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_pass(sampling, dtype):
    """The dual rises; the weights are the average, and the primal is theirs."""
    instance, close = chains(3), 1e-5 if dtype == "float32" else 1e-9

    def look(record, engine):
        np.testing.assert_array_equal(engine.weights, np.array(engine.average()))
        w = instance.unpadded(engine.weights).astype(float)
        assert engine.objective() == pytest.approx(instance.primal(w, 1.0), rel=close)
        assert engine.objective() >= engine.dual() * (1 - close)
        return record.dual

    watcher = Watcher(look)
    solver = BCFW(sampling, cached_passes=2)
    found = quietly(
        instance.problem, solver, dtype=dtype, gap=0.0, max_passes=30, callbacks=[watcher]
    )
    assert (np.diff(watcher.seen) >= -close).all()
    assert found.certificate.dual == pytest.approx(watcher.seen[-1], rel=10 * close)
    w = instance.unpadded(found.weights).astype(float)
    assert found.certificate.primal == pytest.approx(instance.primal(w, 1.0), rel=close)


def test_the_average_is_not_the_last_w():
    last, mean = (
        quietly(chains(1).problem, BCFW(average=average), gap=0.0, max_passes=10)
        for average in (False, True)
    )
    assert last.certificate.dual == mean.certificate.dual
    assert np.abs(last.weights - mean.weights).max() > 1e-3


def test_warm_starts_average_anew():
    instance = chains(1)
    warm = quietly(instance.problem, BCFW(), C=0.3, gap=0.02)
    warm = quietly(instance.problem, BCFW(), C=1.0, gap=0.02, engine=warm.engine)
    cold = quietly(instance.problem, BCFW(), C=1.0, gap=0.02)
    assert warm.converged
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=0.03)


# --- sampling ---


class Fake:
    """An engine whose blocks have the same gaps for ever; it counts visits."""

    def __init__(self, gaps):
        self.gaps, self.orders = np.array(gaps, float), []

    def block_gaps(self):
        return self.gaps

    def exact_pass(self, order, options, seconds=None, batch=0, threads=1):
        assert options is not None
        self.orders.append(order)
        return types.SimpleNamespace(work=1.0, gain=1.0)


def orders(sampling, gaps, passes=100):
    engine, solver = Fake(gaps), BCFW(sampling, average=False)
    context = Context(len(gaps), np.random.default_rng(0))
    state = solver.init(context)
    for _ in range(passes):
        assert solver.step(engine, state, context).kind == "exact"
    assert all(len(order) == len(gaps) and order.dtype == np.uint32 for order in engine.orders)
    return engine.orders


def test_gap_sampling_visits_large_gaps_more_often():
    gaps = [0.0, 1.0, 2.0, 4.0, 8.0, 0.0, 5.0, -1e-15]
    drawn = orders("gap", gaps)
    assert sorted(drawn[0]) == list(range(8))  # all of them first, as nothing is known
    whole = [order for order in drawn if sorted(order) == list(range(8))]
    assert len(whole) >= 10  # and now and then
    counts = np.bincount(np.concatenate([o for k, o in enumerate(drawn) if k % 10]), minlength=8)
    assert counts[[0, 5, 7]].sum() == 0
    np.testing.assert_allclose(counts / counts.sum(), np.maximum(gaps, 0) / 20, atol=0.05)


def test_gap_sampling_without_gaps_draws_evenly():
    counts = np.bincount(np.concatenate(orders("gap", [0.0] * 4)), minlength=4)
    assert counts.min() > 60


def test_other_samplings_look_at_no_gaps():
    assert all(sorted(o) == [0, 1, 2, 3] for o in orders("permute", [0.0, 1.0, 9.0, 0.0]))
    drawn = orders("uniform", [0.0, 1.0, 9.0, 0.0])
    assert not all(sorted(o) == [0, 1, 2, 3] for o in drawn)
    assert np.bincount(np.concatenate(drawn), minlength=4).min() > 60


def test_gap_sampling_of_real_blocks():
    """Examples that are told with ease are hardly visited."""
    structure = Counting(1.0 - np.eye(3), 4)
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, 40).tolist()
    X = []
    for i, y in enumerate(Y):  # the first eight tell nothing of their class
        x = rng.normal(size=4) if i < 8 else np.r_[5 * np.eye(3)[y], 0.0]
        X.append(np.r_[x, i])
    for sampling, least in (("permute", 1.0), ("gap", 1.5)):
        structure.calls = np.zeros(40, int)
        problem = native_python_problem(structure, X, Y)
        quietly(problem, BCFW(sampling), C=0.3, gap=0.0, max_passes=30)
        calls = structure.calls
        assert calls[:8].mean() >= least * calls[8:].mean()
        assert sampling == "gap" or len(set(calls.tolist())) == 1


class Counting(Flat):
    """Count the oracle's calls, by example."""

    def argmax(self, x, w, truth=None):
        self.calls[int(x[-1])] += 1
        return super().argmax(x, w, truth)

    def joint_feature(self, x, y):
        return super().joint_feature(x[:-1], y)


def test_block_gaps():
    """At one w they are C (max F - Σ α F), and their sum is the gap."""
    instance = chains(0)
    engine = Engine(instance.problem, 0.7, single=False, factored=False)
    order, options = everyone(instance.n), PassOptions(frank_wolfe=True)
    engine.exact_pass(order, options)
    for i in range(instance.n):
        w = instance.unpadded(engine.weights)
        example, loss, alpha, indptr, indices, values = engine.planes()
        rows = np.repeat(np.arange(len(loss)), np.diff(indptr))
        F = loss - np.bincount(rows, values * np.asarray(engine.weights)[indices], len(loss))
        mean = (alpha * F)[example == i].sum()
        result = engine.exact_pass(np.array([i], np.uint32), options)
        expected = 0.7 * (instance.slacks(w)[i] - mean)
        assert engine.block_gaps()[i] == pytest.approx(expected, abs=1e-10)
        assert result.gap == pytest.approx(expected, abs=1e-10)


# --- going on ---


def same(first, second, names=None):
    one, two = first.engine.state(), second.engine.state()
    for name in names or one:
        assert np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes(), name


def resumed(solver, path, stop=7, passes=15, problem=None):
    problem = chains(0).problem if problem is None else problem
    options = {"gap": 0.0, "random_state": 5}
    whole = quietly(problem, solver, max_passes=passes, **options)
    quietly(problem, solver, max_passes=stop, checkpoint=path, **options)
    rest = quietly(problem, solver, max_passes=passes, checkpoint=path, resume=True, **options)
    return whole, rest


@pytest.mark.parametrize("sampling", ["permute", "uniform"])
@pytest.mark.parametrize("cached", [0, 3])
@pytest.mark.parametrize("kind", MAKERS)
def test_stopped_and_resumed_equals_one_run(sampling, cached, kind, tmp_path):
    solver = BCFW(sampling, average=False, cached_passes=cached)
    whole, rest = resumed(solver, tmp_path / "run.npz", problem=MAKERS[kind](0).problem)
    same(whole, rest)
    assert whole.weights.tobytes() == rest.weights.tobytes()
    assert whole.certificate == rest.certificate


def test_the_average_goes_on_when_resumed(tmp_path):
    whole, rest = resumed(BCFW(), tmp_path / "run.npz")
    same(whole, rest)
    assert whole.weights.tobytes() == rest.weights.tobytes()
    assert whole.certificate == rest.certificate
    instance = chains(0)
    w = instance.unpadded(rest.weights)
    assert rest.certificate.primal == pytest.approx(instance.primal(w, 1.0), rel=1e-9)
    again = quietly(
        instance.problem,
        BCFW(),
        gap=0.0,
        max_passes=15,
        random_state=5,
        checkpoint=tmp_path / "run.npz",
        resume=True,
    )  # has its passes already: the same weights
    np.testing.assert_array_equal(again.weights, rest.weights)


def test_gap_sampling_goes_on_bit_for_bit(tmp_path):
    whole, rest = resumed(BCFW("gap", average=False), tmp_path / "run.npz")
    same(whole, rest)


# --- what it refuses ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampling": "random"}, "sampling must be one of 'permute', 'uniform', 'gap'"),
        ({"sampling": None}, "sampling must be one of"),
        ({"cached_passes": -1}, "cached_passes must be a whole number of at least 0"),
        ({"cached_passes": 1.5}, "cached_passes must be a whole number"),
        ({"cached_passes": True}, "cached_passes must be a whole number"),
    ],
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        BCFW(**given)


@pytest.mark.parametrize(
    ("regularizer", "able"),
    [(ElasticNet(0.2, 0.8), "sdm"), (L1(), "lp"), (L1Ball(1.0), "subgradient")],
)
def test_regularisers_that_it_cannot_do(regularizer, able):
    with pytest.raises(NotCompatibleError, match=f"solver 'bcfw' cannot do .*'{able}'"):
        quietly(chains(0).problem, BCFW(), regularizer=regularizer)


def test_engines_of_other_solvers_are_refused():
    begun = quietly(chains(0).problem, SDM(), max_passes=2)
    with pytest.raises(NotCompatibleError):
        quietly(chains(0).problem, BCFW(), engine=begun.engine)


def test_names():
    assert make_solver("bcfw") == BCFW()
    assert (BCFW().slack, BCFW().rescale, BCFW().factored) == ("linear", "margin", False)
