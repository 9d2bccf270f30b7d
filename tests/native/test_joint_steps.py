"""Passes in which several threads make steps at the same time (``native/joint_steps.hpp``).

Which thread comes first is a matter of timing, so that what is compared here are sums that must
hold for every order of the steps, certificates, and optima.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from kit import pressing
from maxmargin import (
    SDM,
    ElasticNet,
    GaussianPrior,
    Nonnegative,
    SequenceTagger,
    StructuralSVM,
    _native,
)
from maxmargin.features.encode import FeatureEncoder
from maxmargin.solvers import solve
from maxmargin.structures import Chain
from native_problems import run_isolated

N, C = 1500, 0.3
THREADS = [2, 3]


def sentences(n: int = N, seed: int = 0) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Tokens with a bias, a word of Zipf's law and a rare word; labels that mostly follow these."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 7))
        common = np.minimum(rng.zipf(1.5, length), 300)
        rare = rng.integers(0, 9000, length)
        pairs = zip(common, rare, strict=True)
        X.append([["bias", f"w{c}", f"r{r}", f"r{r % 97}"] for c, r in pairs])
        labels = np.where(rng.random(length) < 0.2, rng.integers(0, 4, length), (common + rare) % 4)
        y.append([f"L{label}" for label in labels])
    return X, y


@pytest.fixture(scope="module")
def problem() -> Any:
    chain = Chain(encoder=FeatureEncoder())
    batch, codes = chain.learn(*sentences())
    assert batch.n_sparse > 4000  # rows that many examples have, and rare ones
    return chain.encoded_problem(batch, codes)


def orders(n: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(n).astype(np.uint32)


JOINT = {"joint": True, "tau_relative": 0.1}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_passes_keep_the_books(problem: Any, threads: int, single: bool) -> None:
    engine = _native.Engine(problem, C, single=single)
    order = orders(N)
    close = 1e-4
    for _ in range(4):
        before = engine.dual()
        exact = engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
        assert exact.oracle_calls == exact.looked == N
        assert engine.dual() - before == pytest.approx(exact.gain, rel=close, abs=close)
        for _ in range(3):
            before = engine.dual()
            options = _native.PassOptions(recombine=True, **JOINT)
            cached = engine.cached_pass(next(order), options, threads=threads)
            assert cached.visits >= cached.solved > 0
            assert engine.dual() - before == pytest.approx(cached.gain, rel=close, abs=close)
        collect = engine.collect_pass(threads)
        primal, dual = engine.certify(1)
        assert 0 <= dual <= primal
        assert collect.gap == pytest.approx(primal - dual, rel=0.02, abs=close * dual)
    assert collect.gap < 0.2 * dual  # steps of several threads lead somewhere


@pytest.mark.parametrize("threads", THREADS)
def test_no_addition_is_lost(threads: int) -> None:
    # Rows that nearly every step moves, far apart in memory: all threads add to them at the same
    # time, and u must still be that of the multipliers.
    X, y = sentences()
    X = [[[f"n{i} {t}", *token] for t, token in enumerate(x)] for i, x in enumerate(X)]
    first = [[f"a{k}" for k in range(8000)]]
    chain = Chain(encoder=FeatureEncoder())
    batch, codes = chain.learn([first, *X], [["L0"], *y])
    engine = _native.Engine(chain.encoded_problem(batch, codes), C, single=False)
    order = orders(N + 1)
    for _ in range(2):
        engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
        for _ in range(4):
            engine.cached_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
    np.testing.assert_allclose(engine.sums(), engine.own_sums(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("threads", THREADS)
def test_multipliers_stay_feasible(problem: Any, threads: int) -> None:
    engine = _native.Engine(problem, C)
    order = orders(N)
    for _ in range(3):
        engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
        engine.cached_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
    state = engine.state()
    # A checkpoint is refused if multipliers do not sum to one or sums do not follow from them.
    again = _native.Engine(problem, C)
    again.restore(state)
    assert again.dual() == pytest.approx(engine.dual(), rel=1e-6)


@pytest.mark.parametrize("n_jobs", THREADS)
def test_training_reaches_the_gap_and_its_certificate_holds(problem: Any, n_jobs: int) -> None:
    one = solve(problem, SDM(), C=C, gap=1e-3, random_state=0, n_jobs=1)
    many = solve(problem, SDM(), C=C, gap=1e-3, random_state=0, n_jobs=n_jobs)
    assert many.converged
    # The optimum lies between both duals and both primals.
    assert many.certificate.primal >= one.certificate.dual
    assert one.certificate.primal >= many.certificate.dual
    primal = many.engine.primal_of(np.asarray(many.weights), 1)
    assert primal == pytest.approx(many.certificate.primal, rel=1e-9)
    assert not np.array_equal(one.weights, many.weights)  # else nothing was tested here


#: Thresholds; a scale for each weight and an offset; bounds.
REGULARIZERS = {
    "elastic net": lambda n: ElasticNet(l1_ratio=0.2),
    "prior": lambda n: GaussianPrior(np.full(n, 0.01), np.linspace(0.5, 2.0, n)),
    "scales": lambda n: GaussianPrior(0.0, np.linspace(0.5, 2.0, n)),
    "nonnegative": lambda n: Nonnegative(),
}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", REGULARIZERS)
def test_other_links(problem: Any, name: str, threads: int) -> None:
    """w is a function of u in every copy, and Ω* is counted in that of the first thread."""
    size = _native.Engine(problem, C, single=False).weights.size
    regularizer = REGULARIZERS[name](size)
    engine = SDM().start(problem, C, regularizer, False)
    order = orders(N)
    for make in (engine.exact_pass, *[engine.cached_pass] * 3):
        before = engine.dual()
        result = make(next(order), _native.PassOptions(**JOINT), threads=threads)
        assert result.solved > 0
        assert engine.dual() - before == pytest.approx(result.gain, rel=1e-4, abs=1e-4)
        np.testing.assert_allclose(engine.sums(), engine.own_sums(), rtol=0, atol=1e-9)
        weights = regularizer.link.weights(np.asarray(engine.sums()))
        np.testing.assert_allclose(engine.weights, weights, rtol=0, atol=1e-9)
    one, many = (
        solve(
            problem,
            SDM(),
            C=C,
            gap=1e-2,
            regularizer=regularizer,
            dtype="float64",
            random_state=0,
            n_jobs=n,
        )
        for n in (1, threads)
    )
    assert many.converged
    assert many.certificate.primal >= one.certificate.dual
    assert one.certificate.primal >= many.certificate.dual
    assert not np.array_equal(one.weights, many.weights)


def test_deterministic_runs_can_be_repeated(problem: Any) -> None:
    runs = [
        solve(problem, SDM(deterministic=True), C=C, random_state=0, n_jobs=n) for n in (2, 2, 1)
    ]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert np.array_equal(runs[0].weights, runs[2].weights)  # this oracle is cheap


def test_estimators_can_be_asked_for_it() -> None:
    X, y = sentences()
    fitted = [
        SequenceTagger(C=C, random_state=0, n_jobs=2, deterministic=True).fit(X, y)
        for _ in range(2)
    ]
    one = SequenceTagger(C=C, random_state=0).fit(X, y)
    assert np.array_equal(fitted[0].weights_, fitted[1].weights_)
    assert np.array_equal(fitted[0].weights_, one.weights_)
    svm = StructuralSVM(Chain(), C=C, random_state=0, n_jobs=2, deterministic=True).fit(X, y)
    assert np.array_equal(fitted[0].weights_, svm.weights_)
    assert clone(svm).deterministic is True
    # Solvers that are always repeatable take it, too.
    small = SequenceTagger(solver="subgradient", max_passes=1, deterministic=True, gap=1.0)
    small.fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="deterministic must be True or False, got 'yes'"):
        SequenceTagger(deterministic="yes").fit(X, y)  # type: ignore[arg-type]


def test_one_thread_is_as_ever(problem: Any) -> None:
    engines = []
    for options in (JOINT, {"tau_relative": 0.1}):
        engine, order = _native.Engine(problem, C), orders(N)
        for _ in range(2):
            engine.exact_pass(next(order), _native.PassOptions(**options))
            engine.cached_pass(next(order), _native.PassOptions(**options))
        engines.append(engine)
    assert np.array_equal(engines[0].weights, engines[1].weights)


def test_small_problems_are_left_to_one_thread() -> None:
    X, y = sentences(200)
    fitted = [SequenceTagger(C=C, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)]
    assert np.array_equal(fitted[0].weights_, fitted[1].weights_)


@pytest.mark.parametrize("kind", ["exact", "cached"])
def test_a_deadline_ends_a_pass(problem: Any, kind: str) -> None:
    engine = _native.Engine(problem, C)
    options = _native.PassOptions(**JOINT)
    before = engine.exact_pass(next(orders(N)), options, threads=2)
    run = engine.exact_pass if kind == "exact" else engine.cached_pass
    time.sleep(0.1)  # native code asks for the time every 50 ms
    result = run(next(orders(N, 2)), options, 1e-6, threads=2)
    assert result.interrupted
    assert result.visits < 0.5 * before.visits
    assert engine.dual() == pytest.approx(before.gain + result.gain, rel=1e-4)
    primal, dual = engine.certify(1)
    assert dual <= primal


def interrupted() -> None:
    """Send Ctrl-C to this process while passes of three threads are made."""
    chain = Chain(encoder=FeatureEncoder())
    engine = _native.Engine(chain.encoded_problem(*chain.learn(*sentences(6000))), C, single=False)
    order, options = next(orders(6000)), _native.PassOptions(**JOINT)
    engine.exact_pass(order, options, threads=3)
    for make in (engine.exact_pass, engine.cached_pass):

        def forever(make: Any = make) -> None:
            while True:
                make(order, options, threads=3)

        before = engine.dual()
        with pytest.raises(KeyboardInterrupt):
            pressing(0.2, forever)
        assert engine.dual() >= (1 - 1e-6) * before
        # Copies were followed to their end: u is that of the multipliers, and it goes on.
        np.testing.assert_allclose(engine.sums(), engine.own_sums(), rtol=0, atol=1e-9)
        result = engine.exact_pass(order, options, threads=3)
        assert not result.interrupted
        assert result.oracle_calls == 6000


def test_ctrl_c_ends_a_pass() -> None:
    run_isolated(__file__, "interrupted")


def test_an_order_that_visits_an_example_twice(problem: Any) -> None:
    """Two threads must not step on one block: such a pass is made by one."""
    order = np.concatenate([np.arange(N), np.arange(N)]).astype(np.uint32)
    engines = [_native.Engine(problem, C) for _ in range(2)]
    for engine, threads in zip(engines, (1, 3), strict=True):
        engine.exact_pass(order, _native.PassOptions(**JOINT), threads=threads)
        engine.cached_pass(order, _native.PassOptions(**JOINT), threads=threads)
    assert np.array_equal(engines[0].weights, engines[1].weights)


def test_values_and_dense_features(problem: Any) -> None:
    """Features that are not all ones take another way through the logs."""
    rng = np.random.default_rng(3)
    X, y = sentences(1200)
    dicts = [[{name: float(rng.normal()) for name in token} for token in s] for s in X]
    fitted = [SequenceTagger(C=C, gap=1e-3, random_state=0, n_jobs=n).fit(dicts, y) for n in (1, 2)]
    low, high = (m.certificate_.dual for m in fitted), (m.certificate_.primal for m in fitted)
    assert max(low) <= min(high)
