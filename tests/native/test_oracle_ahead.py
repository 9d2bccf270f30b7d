"""Exact passes in which several threads ask the oracle, for many examples at a time.

They are made where the oracle is dear; with so many labels it is.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxmargin import BCFW, SDM, DualCoordinate, _native
from maxmargin.solvers import solve
from native_problems import random_case

N_LABELS, N = 120, 99


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    lengths = tuple(rng.integers(50, 80, N))
    return random_case(rng, n_labels=N_LABELS, lengths=lengths, noise=0.3)


def passes(case, threads, count=4, single=True):
    engine = _native.Engine(case.problem(), 0.5, single=single)
    rng = np.random.default_rng(1)
    results = []
    for _ in range(count):
        order = rng.permutation(N).astype(np.uint32)
        result = engine.exact_pass(order, _native.PassOptions(), threads=threads)
        results.append((result, engine.dual()))
        engine.cached_pass(order, _native.PassOptions())
    return engine, results


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_the_number_of_threads_does_not_matter(case, single):
    two, three = (passes(case, threads, single=single)[0] for threads in (2, 3))
    one = passes(case, 1, single=single)[0]
    assert np.array_equal(two.weights, three.weights)
    assert not np.array_equal(one.weights, two.weights)  # else nothing was tested here


def test_the_dual_rises_and_is_what_the_gains_add_up_to(case):
    engine, results = passes(case, 2, single=False)
    for result, _ in results:
        assert result.gain > 0
        assert result.oracle_calls == N
    # Cached passes stand between.
    duals = [dual for _, dual in results]
    assert all(b > a for a, b in itertools.pairwise(duals))
    before = engine.dual()
    result = engine.exact_pass(np.arange(N, dtype=np.uint32), _native.PassOptions(), threads=2)
    assert engine.dual() - before == pytest.approx(result.gain, rel=1e-9)
    primal, dual = engine.certify(1)
    assert dual <= primal
    assert dual == pytest.approx(engine.dual(), rel=1e-9)


def test_the_optimum_is_that_of_one_thread(case):
    found = [
        solve(case.problem(), SDM(), C=0.5, random_state=0, n_jobs=n_jobs, dtype="float64")
        for n_jobs in (1, 2)
    ]
    assert all(result.converged for result in found)
    primal = [result.certificate.primal for result in found]
    assert primal[1] == pytest.approx(primal[0], rel=2e-2)


@pytest.mark.parametrize("solver", [BCFW(), BCFW(sampling="uniform"), DualCoordinate()], ids=str)
def test_other_solvers_ask_ahead_too(case, solver):
    one, two, three = (
        solve(case.problem(), solver, C=0.5, gap=0.3, random_state=0, n_jobs=n) for n in (1, 2, 3)
    )
    assert one.converged
    assert two.converged
    assert np.array_equal(two.weights, three.weights)
    assert not np.array_equal(one.weights, two.weights)  # else nothing was tested here
    assert two.certificate.dual <= one.certificate.primal
    assert one.certificate.dual <= two.certificate.primal


def test_a_deadline_ends_the_pass(case):
    engine = _native.Engine(case.problem(), 0.5)
    order = np.tile(np.arange(N, dtype=np.uint32), 2000)
    result = engine.exact_pass(order, _native.PassOptions(), 0.1, threads=2)
    assert result.interrupted
    assert 0 < result.looked < len(order)
    assert engine.dual() == pytest.approx(result.gain, rel=1e-4)


def test_examples_without_weight_are_left_alone(case):
    weight = np.ones(N)
    weight[::3] = 0.0
    engines = [
        _native.Engine(case.problem(example_weight=weight), 0.5, single=False) for _ in range(2)
    ]
    order = np.arange(N, dtype=np.uint32)
    for engine, threads in zip(engines, (2, 3), strict=True):
        engine.exact_pass(order, _native.PassOptions(), threads=threads)
    assert np.array_equal(engines[0].weights, engines[1].weights)
    assert engines[0].exact_pass(order, _native.PassOptions(), threads=2).oracle_calls == 66
