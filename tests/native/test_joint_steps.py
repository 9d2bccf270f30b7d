"""Passes in which several threads make the steps (``native/joint_pass.hpp``), and their schedule.

Each thread has a share of the examples, and weights of its own that agree with those of the others
after each pass (``native/consensus.hpp``). w is then z, which is not link(u); what the passes count
is compared with what the multipliers give from scratch.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from kit import pressing
from maxmargin import (
    L2,
    SDM,
    ElasticNet,
    GaussianPrior,
    Nonnegative,
    SequenceTagger,
    StructuralSVM,
    _native,
)
from maxmargin.errors import ConvergenceWarning
from maxmargin.features.encode import FeatureEncoder
from maxmargin.solvers import joint_rounds, solve
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
#: As the schedule makes passes over what is kept.
CACHED = {**JOINT, "recombine": True, "relaxation": joint_rounds.RELAXATION}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_passes_keep_the_books(problem: Any, threads: int, single: bool) -> None:
    """Rounds go on from each other, and begin anew with planes after a certificate."""
    engine = _native.Engine(problem, C, single=single)
    assert engine.joins(threads)
    order = orders(N)
    close = 1e-5 if single else 1e-10
    for n_exact, n_cached in ((3, 15), (1, 6)):
        for _ in range(n_exact):
            before = engine.dual()
            exact = engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
            assert exact.oracle_calls == exact.looked == N
            assert engine.dual() - before == pytest.approx(exact.gain, rel=close, abs=close)
        for n_pass in range(n_cached):
            options = _native.PassOptions(
                measure=n_pass == 1, steepness=3.0 if n_pass >= 1 else 0.0, **CACHED
            )
            cached = engine.cached_pass(next(order), options, threads=threads)
            assert cached.visits >= cached.solved > 0
            if n_pass % 4 == 3:  # the oracle's planes are there, z is as it was
                assert np.isfinite(engine.collect_pass(1).gap)
        collect = engine.collect_pass(threads)
        counted, z = engine.dual(), np.array(engine.weights)
        primal, dual = engine.certify(1)
        assert counted == pytest.approx(dual, rel=0, abs=close * primal)
        assert 0 <= dual <= primal
        assert primal == pytest.approx(engine.primal_of(z, 1), rel=1e-9)
        np.testing.assert_array_equal(engine.weights, z)
        assert collect.gap == pytest.approx(primal - dual, rel=1e-3, abs=close * primal)
    assert collect.gap < 0.3 * dual  # steps of several threads lead somewhere


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("reading", ["two of three", "all", "none"])
def test_own_and_shared_rows(threads: int, reading: str) -> None:
    """Rows that some shares read, that all of them read, and (but for transitions) none but one."""
    X, y = sentences()
    for i, x in enumerate(X):
        group = {"two of three": 2 * i // N, "all": 0, "none": i}[reading]
        x[:] = [[f"g{group} {name}" for name in token] for token in x]
    chain = Chain(encoder=FeatureEncoder())
    problem = chain.encoded_problem(*chain.learn(X, y))
    engine = _native.Engine(problem, C, single=False)
    order = orders(N)
    for n_pass in range(24):
        if n_pass < 3:
            engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
            continue
        options = _native.PassOptions(
            measure=n_pass == 4, steepness=3.0 if n_pass >= 4 else 0.0, **CACHED
        )
        engine.cached_pass(next(order), options, threads=threads)
        if n_pass % 4 == 3:
            engine.collect_pass(2)
    counted = engine.dual()
    primal, dual = engine.certify(1)
    assert counted == pytest.approx(dual, rel=1e-10)
    assert primal - dual < 0.3 * primal


def test_rounds_agree_on_the_optimum(problem: Any) -> None:
    """At a fixed point z is link(u), whatever the metric is."""
    result = solve(
        problem, SDM(), C=C, gap=1e-5, dtype="float64", random_state=0, n_jobs=3, max_passes=1000
    )
    assert result.converged
    gap = result.certificate.primal - result.certificate.dual
    # P(z) - D >= ½ |z - u|², where D is that of u.
    apart = np.asarray(result.weights) - np.asarray(result.engine.own_sums())
    assert 0 < 0.5 * float(apart @ apart) <= gap  # above 0: else nothing was tested here


def test_passes_of_one_thread_between_rounds(problem: Any) -> None:
    """They go on at link(u) of the multipliers that rounds left, and rounds at theirs."""
    engine = _native.Engine(problem, C, single=False)
    order = orders(N)
    for threads in (3, 1, 2, 2, 1, 3):
        engine.exact_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
        engine.cached_pass(next(order), _native.PassOptions(**JOINT), threads=threads)
        if threads == 1:
            np.testing.assert_allclose(engine.weights, engine.own_sums(), rtol=0, atol=1e-9)
            before = engine.dual()
            engine.cached_pass(next(order), _native.PassOptions(**JOINT))
            assert engine.dual() >= before
    counted = engine.dual()
    assert counted == pytest.approx(engine.certify(1)[1], rel=1e-10)


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
    size = _native.Engine(problem, C, single=False).weights.size
    regularizer = REGULARIZERS[name](size)
    engine = SDM().start(problem, C, regularizer, False)
    order = orders(N)
    for make in (engine.exact_pass, *[engine.cached_pass] * 3):
        before = engine.dual()
        result = make(next(order), _native.PassOptions(**JOINT), threads=threads)
        assert result.solved > 0
        assert engine.dual() - before == pytest.approx(result.gain, rel=1e-6, abs=1e-6)
    counted = engine.dual()
    gap = engine.collect_pass(1).gap
    primal, dual = engine.certify(1)
    assert counted == pytest.approx(dual, rel=1e-9)
    assert gap == pytest.approx(primal - dual, rel=1e-6)
    link = regularizer.link
    held = np.clip(engine.weights, link.least, link.most)
    np.testing.assert_array_equal(engine.weights, held)
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


@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_other_formulations(problem: Any, slack: str, rescale: str) -> None:
    solver = SDM(slack=slack, rescale=rescale)
    engine = solver.start(problem, C, L2(), False)
    assert engine.joins(2)
    order = orders(N)
    for make in (engine.exact_pass, *[engine.cached_pass] * 3):
        make(next(order), _native.PassOptions(**JOINT), threads=2)
    counted, gap = engine.dual(), engine.collect_pass(1).gap
    primal, dual = engine.certify(1)
    assert counted == pytest.approx(dual, rel=1e-9)
    assert gap == pytest.approx(primal - dual, rel=1e-6)
    one, many = (solve(problem, solver, C=C, random_state=0, n_jobs=n) for n in (1, 3))
    assert many.converged
    assert many.certificate.primal >= one.certificate.dual
    assert one.certificate.primal >= many.certificate.dual
    assert not np.array_equal(one.weights, many.weights)


def test_hard_margins_are_left_to_one_thread(problem: Any) -> None:
    assert not SDM(slack="hard").start(problem, C, L2(), False).joins(2)


@pytest.mark.parametrize("threads", THREADS)
def test_runs_can_be_repeated(problem: Any, threads: int) -> None:
    """With the same number of threads, to the bit."""
    runs = [solve(problem, SDM(), C=C, random_state=0, n_jobs=threads) for _ in range(3)]
    for run in runs[1:]:
        assert np.array_equal(run.weights, runs[0].weights)
        assert run.certificate == runs[0].certificate
        assert [one.dual for one in run.history] == [one.dual for one in runs[0].history]


def test_deterministic_runs_do_not_depend_on_threads(problem: Any) -> None:
    runs = [
        solve(problem, SDM(deterministic=True), C=C, random_state=0, n_jobs=n) for n in (2, 3, 1)
    ]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert np.array_equal(runs[0].weights, runs[2].weights)  # this oracle is cheap


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_run_is_resumed_with_any_number_of_threads(
    problem: Any, tmp_path: Path, n_jobs: int
) -> None:
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        half = solve(
            problem, SDM(), C=C, gap=1e-3, random_state=0, n_jobs=2, checkpoint=path, max_passes=9
        )
    assert not half.converged
    again = solve(problem, SDM(), C=C, gap=1e-3, n_jobs=n_jobs, checkpoint=path)
    assert again.converged
    assert again.n_passes > 9
    assert again.certificate.dual > half.certificate.dual
    assert again.certificate.primal >= half.certificate.dual


def test_a_warm_start(problem: Any) -> None:
    first = solve(problem, SDM(), C=C, gap=1e-2, random_state=0, n_jobs=2)
    closer = solve(problem, SDM(), C=C, gap=1e-3, random_state=0, n_jobs=2, engine=first.engine)
    assert closer.converged
    assert closer.certificate.gap <= 1e-3


def test_one_thread_goes_on_where_rounds_lead_nowhere(
    problem: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_rounds, "BETTER", 0.0)  # no look is better
    monkeypatch.setattr(joint_rounds, "PATIENCE", 2)
    result = solve(problem, SDM(), C=C, gap=1e-3, random_state=0, n_jobs=2)
    assert result.converged
    kinds = [one.kind for one in result.history]
    assert kinds.count("exact") >= joint_rounds.WARM
    # After the looks that found nothing better the dual never falls.
    seen = [k for k, kind in enumerate(kinds) if kind == "collect"]
    duals = [one.dual for one in result.history][seen[2] :]
    assert all(b >= a - 1e-9 * abs(a) for a, b in itertools.pairwise(duals))


@pytest.mark.parametrize(
    ("seen", "n_round", "near", "due"),
    [
        ([], 4, False, True),
        ([(4, 0.5)], 7, False, False),
        ([(4, 0.5)], 7, True, True),
        ([(4, 0.5)], 8, False, True),
        ([(4, 0.4), (8, 0.1)], 9, False, False),  # 0.1 * 0.25 ** (1 / 4) = 0.07
        ([(4, 0.4), (8, 0.02)], 10, False, True),  # 0.02 * 0.05 ** (2 / 4) = 0.0045
        ([(4, 0.4), (8, 0.5)], 9, True, False),
        ([(4, 0.4), (8, -1e-9)], 9, False, True),
    ],
)
def test_when_a_look_is_due(seen: Any, n_round: int, near: bool, due: bool) -> None:
    assert joint_rounds.is_due(seen, n_round, 4, 0.01, near) is due


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


@pytest.mark.parametrize("kind", ["exact", "cached"])
def test_a_deadline_where_the_first_share_is_done(problem: Any, kind: str) -> None:
    """The thread that Python called asks for the time while it waits for the others, too."""
    engine = _native.Engine(problem, C)
    engine.exact_pass(next(orders(N)), _native.PassOptions(**JOINT), threads=2)
    others = np.arange(N - 10, dtype=np.uint32)[N // 2 + 100 :]
    run = engine.exact_pass if kind == "exact" else engine.cached_pass
    time.sleep(0.1)  # native code asks for the time every 50 ms
    result = run(others, _native.PassOptions(**JOINT), 1e-6, threads=2)
    assert result.interrupted
    assert result.visits < run(others, _native.PassOptions(**JOINT), threads=2).visits


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

        with pytest.raises(KeyboardInterrupt):
            pressing(0.2, forever)
        # All members met after what they did, and it goes on.
        assert engine.dual() > 0
        result = engine.exact_pass(order, options, threads=3)
        assert not result.interrupted
        assert result.oracle_calls == 6000
    counted = engine.dual()
    assert counted == pytest.approx(engine.certify(1)[1], rel=1e-9)


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
    """Features that are not all ones."""
    rng = np.random.default_rng(3)
    X, y = sentences(1200)
    dicts = [[{name: float(rng.normal()) for name in token} for token in s] for s in X]
    fitted = [SequenceTagger(C=C, gap=1e-3, random_state=0, n_jobs=n).fit(dicts, y) for n in (1, 2)]
    low, high = (m.certificate_.dual for m in fitted), (m.certificate_.primal for m in fitted)
    assert max(low) <= min(high)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_steepness_that_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="steepness must not be negative"):
        _native.PassOptions(steepness=value)


def test_sweeps_that_are_none() -> None:
    with pytest.raises(ValueError, match="sweeps must not be negative"):
        _native.PassOptions(sweeps=-1)


def test_states_that_claim_an_agreement_without_its_weights(problem: Any) -> None:
    engine = _native.Engine(problem, C)
    engine.exact_pass(next(orders(N)), _native.PassOptions(**JOINT), threads=2)
    state = engine.state()
    assert "agreed" in state
    for damaged in (
        {k: v for k, v in state.items() if k != "own"},
        {**state, "own": state["own"][:-1]},
        {**state, "own": np.full_like(state["own"], np.nan)},
    ):
        again = _native.Engine(problem, C)
        with pytest.raises(ValueError, match="checkpoint"):
            again.restore(damaged)
        assert again.dual() == 0.0  # nothing half done
    again.restore(state)
    assert again.agrees
    assert again.certify(1) == pytest.approx(engine.certify(1), rel=1e-12)
