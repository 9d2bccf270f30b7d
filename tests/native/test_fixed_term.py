"""The fixed linear term u₀ of the dual engine, and u that moves elsewhere.

With u₀ the primal is Ω(w) - w.u₀ + C Σ max F. It is what one step of a concave-convex procedure
solves: planes and multipliers stay, u₀ changes.
"""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.links import Link
from native_problems import converge, everyone, flat_problem, native_python_problem, random_case
from test_links import N, brute_hinge, links, optimum

KINDS = sorted(links(np.random.default_rng(0)))


def passes(engine, n, rounds):
    for _ in range(rounds):
        engine.exact_pass(everyone(n), _native.PassOptions())
        engine.cached_pass(everyone(n), _native.PassOptions())


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_with_a_linear_term(kind):
    rng = np.random.default_rng(7)
    structure, X, Y = flat_problem(rng)
    link, fixed = links(rng)[kind], 0.5 * rng.normal(size=N)
    engine = _native.Engine(
        native_python_problem(structure, X, Y), 0.6, False, True, link=link.native()
    )
    engine.set_fixed(fixed)
    np.testing.assert_array_equal(engine.fixed, fixed)
    for _ in range(300):
        passes(engine, len(X), 5)
        result = engine.collect_pass()
        if result.gap < 1e-9:
            break
    primal, dual = engine.certify()
    truth = optimum(structure, X, Y, 0.6, link, fixed)
    assert primal == pytest.approx(truth, rel=2e-5, abs=2e-5)
    assert dual <= truth + 1e-6 * (1 + abs(truth))
    # Both from scratch, by the definitions.
    w = np.asarray(engine.weights)
    hinge = brute_hinge(structure, X, Y, w)
    assert primal == pytest.approx(link.penalty(w) - w @ fixed + 0.6 * hinge, rel=1e-9, abs=1e-9)
    assert dual == pytest.approx(
        0.6 * engine.expected_loss() - link.conjugate(engine.sums()), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kind", ["identity", "net"])
def test_the_shortcut_of_collect_passes_counts_the_linear_term(single, kind):
    case = random_case(np.random.default_rng(1), lengths=(4, 2, 5, 3))
    link = Link() if kind == "identity" else Link(lower=-0.1, upper=0.1, scale=2.0)
    engine = _native.Engine(case.problem(), 0.4, single, True, link=link.native())
    fixed = case.weights(np.random.default_rng(2).normal(size=case.n_rows * case.n_labels), single)
    engine.set_fixed(np.array(fixed))
    tolerance = 1e-4 if single else 1e-9
    for _ in range(4):
        passes(engine, 4, 1)
        gap = engine.collect_pass().gap
        by_hand = engine.objective() - engine.dual()
        assert gap == pytest.approx(by_hand, rel=tolerance, abs=tolerance)
        primal, dual = engine.certify()
        assert primal - dual == pytest.approx(gap, rel=tolerance, abs=tolerance)


def test_another_linear_term_keeps_planes_and_multipliers():
    case = random_case(np.random.default_rng(3), lengths=(4, 2, 5, 3))
    n = case.n_rows * case.n_labels
    rng = np.random.default_rng(4)
    engine = _native.Engine(case.problem(), 0.4, False)
    for fixed in [rng.normal(size=n) for _ in range(3)] + [None]:
        passes(engine, 4, 2)
        before = engine.state()
        engine.set_fixed(None if fixed is None else np.array(case.weights(fixed, False)))
        after = engine.state()
        for key in ("alpha", "codes", "gram", "loss"):
            np.testing.assert_array_equal(before[key], after[key])
        u0 = np.zeros(n) if fixed is None else fixed
        fresh = _native.Engine(case.problem(), 0.4, False)
        fresh.restore(after)
        np.testing.assert_allclose(case.unpadded(fresh.sums()), case.unpadded(engine.sums()))
        assert (engine.fixed is None) == (fixed is None)
        np.testing.assert_allclose(
            case.unpadded(engine.sums()) - u0,
            case.unpadded(engine.sums()) - (0 if fixed is None else case.unpadded(engine.fixed)),
        )
    # Without the term again, the optimum is that of a run which never had one.
    plain = _native.Engine(case.problem(), 0.4, False)
    assert converge(engine, 4)[0] == pytest.approx(converge(plain, 4)[0], rel=1e-7)


def test_another_weight_of_the_loss_keeps_the_linear_term():
    case = random_case(np.random.default_rng(5), lengths=(4, 2, 5))
    fixed = np.random.default_rng(6).normal(size=case.n_rows * case.n_labels)
    engine = _native.Engine(case.problem(), 0.4, False)
    engine.set_fixed(np.array(case.weights(fixed, False)))
    passes(engine, 3, 3)
    own = case.unpadded(engine.sums()) - fixed
    engine.rescale(0.8)
    np.testing.assert_allclose(case.unpadded(engine.sums()) - fixed, 2 * own, atol=1e-12)


def test_a_resumed_run_has_the_linear_term_bit_for_bit():
    case = random_case(np.random.default_rng(8), lengths=(4, 2, 5, 3))
    fixed = np.array(
        case.weights(np.random.default_rng(9).normal(size=case.n_rows * case.n_labels), True)
    )
    engine = _native.Engine(case.problem(), 0.4)
    engine.set_fixed(fixed)
    passes(engine, 4, 2)
    other = _native.Engine(case.problem(), 0.4)
    other.restore(engine.state())
    np.testing.assert_array_equal(other.fixed, fixed)
    passes(engine, 4, 3)
    passes(other, 4, 3)
    np.testing.assert_array_equal(engine.weights, other.weights)
    assert engine.certify() == other.certify()


def test_two_shares_that_tell_each_other_their_changes_have_one_u():
    """Examples in two engines, each with its own multipliers, as threads or machines would."""
    rng = np.random.default_rng(10)
    structure, X, Y = flat_problem(rng, n=8)
    whole = _native.Engine(native_python_problem(structure, X, Y), 0.6, False)
    halves = [
        _native.Engine(native_python_problem(structure, X[s], Y[s]), 0.6, False)
        for s in (slice(0, 4), slice(4, 8))
    ]
    for _ in range(300):
        for k, engine in enumerate(halves):
            before = engine.sums()
            passes(engine, 4, 1)
            halves[1 - k].receive(engine.sums() - before)
        np.testing.assert_allclose(halves[0].sums(), halves[1].sums(), atol=1e-9)
    primal, _ = converge(whole, 8)
    w = np.asarray(halves[0].weights)
    assert 0.5 * w @ w + 0.6 * (halves[0].hinge() + halves[1].hinge()) == pytest.approx(
        primal, rel=1e-5
    )


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (np.zeros(3), "an entry for each weight"),
        (np.zeros(N, dtype=np.float32), "type of the weights"),
        (np.full(N, np.nan), "must be finite"),
        ("text", "type of the weights"),
    ],
)
def test_what_is_no_linear_term_is_refused(fixed, message):
    structure, X, Y = flat_problem(np.random.default_rng(0))
    engine = _native.Engine(native_python_problem(structure, X, Y), 0.6, False)
    with pytest.raises(ValueError, match=message):
        engine.set_fixed(fixed)
    with pytest.raises(ValueError, match=message):
        engine.receive(fixed)


def test_hard_margins_have_none():
    structure, X, Y = flat_problem(np.random.default_rng(0))
    engine = _native.Engine(native_python_problem(structure, X, Y), 0.6, False, False, slack="hard")
    with pytest.raises(ValueError, match="hard margin"):
        engine.set_fixed(np.zeros(N))


def test_damaged_checkpoints_are_refused():
    case = random_case(np.random.default_rng(1))
    engine = _native.Engine(case.problem(), 0.4)
    engine.set_fixed(np.zeros_like(engine.weights))
    state = engine.state()
    for bad in (np.zeros(2, np.float32), np.full(engine.weights.size, np.inf, np.float32)):
        with pytest.raises(ValueError, match="fixed linear term"):
            _native.Engine(case.problem(), 0.4).restore({**state, "fixed": bad})
