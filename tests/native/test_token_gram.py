"""Inner products of tokens, made one by one or all at once: steps gain what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin._native import Engine, PassOptions
from native_problems import everyone, random_case

FEATURES = ["ones", "values", "dense32", "dense64", "ones+dense32", "values+dense64"]


def dual_of(engine):
    return engine.C * engine.expected_loss() - engine.penalty()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    features=st.sampled_from(FEATURES),
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=5),
    noise=st.sampled_from([0.1, 0.5, 1.0]),
    factored=st.booleans(),
)
def test_the_gain_of_a_pass_is_that_of_the_dual(seed, features, lengths, noise, factored):
    """The gain comes from Gram entries, the dual from w: a wrong entry makes them differ.

    Sequences of up to 14 tokens have short planes, whose inner products are made one by one, and
    long ones, for which all are made at once; whichever comes first.
    """
    case = random_case(
        np.random.default_rng(seed),
        n_labels=3,
        lengths=tuple(lengths),
        features=features,
        n_sparse=12,
        per_token=6,
        noise=noise,
    )
    engine = Engine(case.problem(), 0.3, single=False, factored=factored)
    last = 0.0
    rng = np.random.default_rng(seed)
    for at in range(8):
        order = rng.permutation(len(lengths)).astype(np.uint32)
        if at % 3 == 2:
            result = engine.cached_pass(order, PassOptions(recombine=True))
        else:
            result = engine.exact_pass(order, PassOptions())
        true = dual_of(engine)
        # Inner products are kept in 4-byte numbers.
        assert result.gain == pytest.approx(true - last, rel=1e-5, abs=1e-6 * abs(true) + 1e-9)
        last = true


def test_two_threads_fill_the_same_inner_products():
    """New planes are found and given their Gram entries by several threads at once."""
    case = random_case(
        np.random.default_rng(1), n_labels=4, lengths=[12] * 40, features="values", noise=0.3
    )
    runs = []
    for threads in (1, 2, 3):
        engine = Engine(case.problem(), 0.3, single=True)
        for _ in range(5):
            engine.collect_pass(threads)
            engine.cached_pass(everyone(40), PassOptions())
        runs.append(np.array(engine.weights))
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


@pytest.mark.parametrize("features", FEATURES)
def test_engines_that_share_a_problem_agree(features):
    """The second engine finds some inner products made by the first, in another order of visits."""
    rng = np.random.default_rng(2)
    case = random_case(rng, n_labels=3, lengths=[11] * 12, features=features, noise=0.3)
    problem = case.problem()
    other = Engine(problem, 0.5, single=False)
    for _ in range(3):
        other.exact_pass(everyone(12)[::-1].copy(), PassOptions())
    shared, alone = Engine(problem, 0.2, single=False), Engine(case.problem(), 0.2, single=False)
    for engine in (shared, alone):
        for _ in range(4):
            engine.exact_pass(everyone(12), PassOptions())
            engine.cached_pass(everyone(12), PassOptions(recombine=True))
    np.testing.assert_array_equal(np.array(shared.weights), np.array(alone.weights))
