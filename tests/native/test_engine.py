"""The dual engine: what must hold after every pass, and where all passes lead."""

from __future__ import annotations

import functools
import gc
import itertools

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from maxmargin import _native
from native_problems import (
    FEATURES,
    ChainPlanes,
    PythonPlanes,
    brute_hinge,
    check_state,
    converge,
    dual,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    true_gap,
)
from qp_reference import solve

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
BLOCKS = [pytest.param(True, id="factored"), pytest.param(False, id="whole")]


def random_options(rng, **fixed):
    """Return PassOptions, mostly ordinary, sometimes extreme."""
    options = {
        "tau": rng.choice([0.0, 0.0, 1e-3, 0.3]),
        "tau_inner": rng.choice([0.0, 0.0, 1e-6, 0.1]),
        "tau_relative": rng.choice([0.0, 0.0, 0.1, 0.7]),
        "max_smo": int(rng.choice([1, 2, 3, 10, 1000, 1000])),
        "rounds": int(rng.choice([1, 1, 2, 20])),
        "relaxation": rng.choice([1.0, 1.0, 0.01, 0.5, 1.5, 1.9, 1.999]),
        "recombine": bool(rng.random() < 0.6),
        "min_violation": rng.choice([0.0, 0.0, 1e-3, 0.5]),
        "prune": bool(rng.random() < 0.7),
    }
    return _native.PassOptions(**{**options, **fixed})


def random_order(rng, n):
    """Return a permutation, a part of one, or examples drawn with repetition."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return rng.integers(0, n, 2 * n).astype(np.uint32)
    order = rng.permutation(n).astype(np.uint32)
    return order[: rng.integers(0, n + 1)] if kind == 1 else order


def slack_of(single, engine, rebuilt):
    """Return how far two computations of a dual may be apart.

    It is the difference of two numbers. Inner products of tokens are kept as 4-byte numbers, so
    gains are no more precise than that, whatever the weights are.
    """
    size = engine.C * rebuilt.expected_loss + 0.5 * rebuilt.w @ rebuilt.w
    return (1e-4 if single else 1e-6) * (1.0 + size)


def check_schedule(rng, engine, rebuild, primal_hinge, *, n, passes, single):
    """Run random passes; check the state, the gain and the gap after each. Returns the merges."""
    merges, before = 0, rebuild()
    for _ in range(passes):
        kind = rng.choice(["exact", "exact", "cached", "cached", "collect"])
        w_before = np.array(engine.weights)
        if kind == "collect":
            hinge = primal_hinge(before.w)
            result = engine.collect_pass(int(rng.integers(1, 4)))
            gap = 0.5 * before.w @ before.w + engine.C * hinge - before.dual
            assert result.gap == pytest.approx(gap, abs=slack_of(single, engine, before))
            assert result.gain == 0.0
            assert result.oracle_calls == n
            np.testing.assert_array_equal(engine.weights, w_before)
        elif kind == "exact":
            order = random_order(rng, n)
            result = engine.exact_pass(order, random_options(rng))
            assert len(order) <= result.oracle_calls <= 20 * len(order)
        else:
            result = engine.cached_pass(random_order(rng, n), random_options(rng))
            assert result.oracle_calls == 0
            assert result.merges == 0
        assert not result.interrupted
        assert result.gap >= -slack_of(single, engine, before)
        assert result.cached_gap >= -slack_of(single, engine, before)
        assert result.solved <= result.visits
        after = rebuild()
        close = max(slack_of(single, engine, before), slack_of(single, engine, after))
        assert after.dual >= before.dual - close, f"the dual fell in a {kind} pass"
        assert result.gain == pytest.approx(after.dual - before.dual, abs=close)
        assert result.gain >= -1e-3 * close, f"a {kind} pass lost"
        assert dual(engine) == pytest.approx(after.dual, abs=close)
        hinge = primal_hinge(after.w)
        assert engine.hinge(2) == pytest.approx(hinge, abs=close / engine.C + close)
        assert 0.5 * after.w @ after.w + engine.C * hinge >= after.dual - 1e-12, "weak duality"
        merges += result.merges
        before = after
    return merges


def check_certificate(engine, rebuilt, hinge, unpadded, single):
    """certify() must equal the primal and dual from scratch, and leave the rebuilt weights.

    The primal is that of the weights as they are returned, the dual that of the multipliers.
    """
    primal, found_dual = engine.certify(2)
    w = unpadded(engine.weights)
    close = (1e-6 if single else 1e-12) * (1 + np.abs(rebuilt.w).max())
    np.testing.assert_allclose(w, rebuilt.w, atol=close)
    assert primal == pytest.approx(0.5 * w @ w + engine.C * hinge(w), rel=1e-9, abs=1e-9)
    assert found_dual == pytest.approx(rebuilt.dual, rel=1e-9, abs=1e-9)
    assert primal >= found_dual - 1e-9
    # The dual is a difference; rounding w to 4 bytes moves its second term by 1e-7 of itself.
    rounding = 1e-9 + (2e-7 * engine.penalty() if single else 0.0)
    assert dual(engine) == pytest.approx(found_dual, rel=1e-5 if single else 1e-9, abs=rounding)


# --- invariants ---

# Shrinking a failure of these takes minutes and helps little: the seed says it all.
quick = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@settings(quick, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    features=st.sampled_from(FEATURES),
    shape=st.tuples(st.booleans(), st.booleans(), st.sampled_from([0.1, 1.0])),
    C=st.sampled_from([0.01, 0.3, 1.0, 30.0]),
    single=st.booleans(),
    factored=st.booleans(),
)
def test_every_pass_keeps_the_books(
    seed, *, n_labels, lengths, features, shape, C, single, factored
):
    rng = np.random.default_rng(seed)
    case = random_case(
        rng,
        n_labels=n_labels,
        lengths=lengths,
        features=features,
        n_sparse=4,
        cost=shape[0],
        weighted=shape[1],
        noise=shape[2],
    )
    engine = _native.Engine(case.problem(), C, single=single, factored=factored)
    planes, tolerance = ChainPlanes(case), 1e-5 if single else 1e-6

    def rebuild():
        return check_state(engine, planes, case.unpadded, tolerance=tolerance)

    def hinge(w):
        return brute_hinge(case, w)

    check_schedule(rng, engine, rebuild, hinge, n=len(lengths), passes=6, single=single)
    rebuilt = rebuild()
    check_certificate(engine, rebuilt, hinge, case.unpadded, single)
    rebuild()


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("features", ["ones", "values+dense64", "dense32"])
def test_the_books_of_long_sequences(features, single, factored):
    # Up to 256 tokens the inner products of tokens are kept; beyond, they are computed anew.
    rng = np.random.default_rng(11)
    lengths = (255, 256, 257, 300, 2)
    case = random_case(rng, n_labels=5, lengths=lengths, features=features, cost=True)
    engine = _native.Engine(case.problem(), 0.2, single=single, factored=factored)
    planes, tolerance = ChainPlanes(case), 1e-5 if single else 1e-6

    def rebuild():
        return check_state(engine, planes, case.unpadded, tolerance=tolerance)

    def hinge(w):
        return brute_hinge(case, w)

    engine.exact_pass(everyone(5), _native.PassOptions())
    check_schedule(rng, engine, rebuild, hinge, n=5, passes=5, single=single)
    rebuilt = rebuild()
    check_certificate(engine, rebuilt, hinge, case.unpadded, single)


def test_many_labels_at_one_token():
    # More labels at a token than are handled together, with and without values.
    rng = np.random.default_rng(12)
    for features, single in itertools.product(("ones", "values+dense64"), (True, False)):
        case = random_case(rng, n_labels=40, lengths=(1, 2, 3), features=features, cost=True)
        engine = _native.Engine(case.problem(), 3.0, single=single)
        planes, keep = ChainPlanes(case), _native.PassOptions(prune=False)
        for _ in range(40):
            engine.exact_pass(everyone(3), keep)
            engine.cached_pass(everyone(3), _native.PassOptions(recombine=True, prune=False))
        rebuilt = check_state(engine, planes, case.unpadded, tolerance=1e-5 if single else 1e-6)
        assert max(len(part.alpha) for part in rebuilt.parts) > 12
        hinge = functools.partial(brute_hinge, case)
        check_certificate(engine, rebuilt, hinge, case.unpadded, single)


@settings(quick, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), C=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_python_structure_keeps_the_books(seed, C):
    rng = np.random.default_rng(seed)
    structure, X, Y = flat_problem(rng)
    engine = _native.Engine(native_python_problem(structure, X, Y), C, single=False)
    planes = PythonPlanes(structure.n_features)

    def rebuild():
        return check_state(engine, planes, np.asarray, tolerance=1e-12)

    def hinge(w):
        scores = np.array(X) @ w.reshape(structure.n_classes, -1).T
        margins = scores + structure.cost[Y] - scores[np.arange(len(Y)), Y][:, None]
        return float(margins.max(axis=1).sum())

    check_schedule(rng, engine, rebuild, hinge, n=len(Y), passes=6, single=False)
    rebuilt = rebuild()
    check_certificate(engine, rebuilt, hinge, np.asarray, False)


@pytest.mark.parametrize("max_smo", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("relaxation", [1.3, 1.7, 1.99])
def test_an_over_relaxed_step_does_not_lose(relaxation, max_smo):
    for seed, tau_relative in itertools.product(range(12), (0.0, 0.5)):
        rng = np.random.default_rng(seed)
        case = random_case(rng, n_labels=3, lengths=(2, 6), features="values", n_sparse=4)
        engine = _native.Engine(case.problem(), 1.0, single=False, factored=False)
        options = {"relaxation": relaxation, "max_smo": max_smo, "tau_relative": tau_relative}
        for _ in range(4):
            engine.collect_pass(1)
            for i in (0, 1):
                before = dual(engine)
                order = np.array([i], np.uint32)
                result = engine.cached_pass(order, _native.PassOptions(**options, prune=False))
                assert result.gain >= -1e-9
                assert dual(engine) >= before - 1e-9


# --- factored blocks ---


def product_distribution(planes, parts, i):
    """Yield (probability, output) of the outputs of example i: any choice in each part."""
    own = [part for part in parts if part.example == i]
    choices = [[k for k in range(len(part.alpha)) if part.alpha[k] > 0] for part in own]
    for chosen in itertools.product(*choices):
        codes = [part.codes[k] for part, k in zip(own, chosen, strict=True)]
        code = np.concatenate([np.zeros(0, np.uint32), *codes])
        alpha = [part.alpha[k] for part, k in zip(own, chosen, strict=True)]
        yield float(np.prod(alpha)), code


@settings(quick, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), cost=st.booleans(), passes=st.integers(1, 3))
def test_a_factored_state_is_a_point_of_the_whole_dual(seed, cost, passes):
    rng = np.random.default_rng(seed)
    case = random_case(
        rng,
        n_labels=3,
        lengths=(6, 4, 7),
        n_sparse=20,
        cost=cost,
        weighted=cost,
        noise=0.1,
    )
    engine = _native.Engine(case.problem(), 1.0, single=False, factored=True)
    planes = ChainPlanes(case)
    for _ in range(passes):
        engine.exact_pass(rng.permutation(3).astype(np.uint32), _native.PassOptions())
        engine.cached_pass(everyone(3), _native.PassOptions(recombine=True))
    rebuilt = check_state(engine, planes, case.unpadded, tolerance=1e-9)
    w, expected = np.zeros_like(rebuilt.w), 0.0
    for i in range(3):
        outputs = list(product_distribution(planes, rebuilt.parts, i))
        assert sum(p for p, _ in outputs) == pytest.approx(1.0)
        for p, code in outputs:
            delta, loss = planes.plane(i, code)
            w += engine.C * p * delta
            expected += p * loss
    np.testing.assert_allclose(w, rebuilt.w, atol=1e-9)
    assert expected == pytest.approx(rebuilt.expected_loss)


@pytest.mark.parametrize("single", PRECISIONS)
def test_merging_parts_moves_nothing(single):
    merges = several = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        case = random_case(
            rng, n_labels=4, lengths=(25,) * 10, n_sparse=30, features="values", noise=0.1
        )
        engine = _native.Engine(case.problem(), 1.0, single=single, factored=True)
        planes = ChainPlanes(case)
        for _ in range(4):
            engine.exact_pass(everyone(10), _native.PassOptions())
            before = check_state(engine, planes, case.unpadded, tolerance=1e-5)
            weights = np.array(engine.weights)
            found = engine.collect_pass(1)
            after = check_state(engine, planes, case.unpadded, tolerance=1e-5)
            merges += found.merges
            several += len(before.parts) > 10
            np.testing.assert_array_equal(engine.weights, weights)
            np.testing.assert_allclose(after.w, before.w, atol=1e-12)
            assert after.expected_loss == pytest.approx(before.expected_loss, rel=1e-12)
            assert after.dual == pytest.approx(before.dual, rel=1e-12)
    assert merges > 10, "nothing was merged: the test shows nothing"
    assert several > 4, "examples have one part: the test shows nothing"


def test_parts_need_fewer_planes():
    # 12 places that do not interact: a whole block needs many outputs, parts need one plane each.
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=2, lengths=(48,), n_sparse=60)
    sizes = {}
    for factored in (True, False):
        engine = _native.Engine(case.problem(), 0.05, single=False, factored=factored)
        primal, lower = converge(engine, 1, gap=1e-6, passes=300)
        assert primal - lower <= 1e-5 * max(1.0, primal)
        sizes[factored] = engine.size()["planes"]
    assert sizes[True] <= sizes[False]


# --- what passes report and what options mean ---


def test_new_planes_of_a_collect_pass_are_visited():
    # A part that collect_pass has just given a violated plane is not one to leave out.
    rng = np.random.default_rng(1)
    case = random_case(rng, n_labels=3, lengths=(4, 5, 6))
    engine = _native.Engine(case.problem(), 1.0, single=False)
    assert engine.collect_pass(1).added > 0
    result = engine.cached_pass(everyone(3), _native.PassOptions(min_violation=1e-6))
    assert result.solved > 0
    assert result.gain > 0.0


def test_tau_leaves_small_violations_alone():
    rng = np.random.default_rng(2)
    case = random_case(rng, n_labels=3, lengths=(4, 5, 6))
    engine = _native.Engine(case.problem(), 1.0, single=False)
    result = engine.exact_pass(everyone(3), _native.PassOptions(tau=1e9))
    assert result.solved == 0
    assert result.gap > 0.0
    assert not engine.weights.any()
    engine.exact_pass(everyone(3), _native.PassOptions())
    before = np.array(engine.weights)
    engine.cached_pass(everyone(3), _native.PassOptions(tau=1e9))
    np.testing.assert_array_equal(engine.weights, before)


def test_rounds_solve_a_block_completely():
    rng = np.random.default_rng(25)
    case = random_case(rng, n_labels=4, lengths=(5, 6), features="values", noise=0.3)
    calls = {}
    for rounds in (1, 1000):
        engine = _native.Engine(case.problem(), 1.0, single=False)
        options = _native.PassOptions(rounds=rounds, tau=1e-7)
        calls[rounds] = engine.exact_pass(everyone(2)[:1], options).oracle_calls
        again = engine.exact_pass(everyone(2)[:1], options)
        assert (again.psi_max <= 1e-6) == (rounds == 1000)
        check_state(engine, ChainPlanes(case), case.unpadded, tolerance=1e-6)
    assert calls[1] == 1 < calls[1000] < 1000


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("features", ["values", "dense32"])
def test_the_reported_gap_does_not_drift_away(features, single):
    rng = np.random.default_rng(26)
    case = random_case(rng, n_labels=6, lengths=(12,) * 20, features=features, noise=0.1)
    engine = _native.Engine(case.problem(), 1.0, single=single)
    for _ in range(100):
        engine.exact_pass(everyone(20), _native.PassOptions())
        for _ in range(5):
            engine.cached_pass(everyone(20), _native.PassOptions(recombine=True, relaxation=1.3))
    reported, true = engine.collect_pass(2).gap, true_gap(engine)
    primal, lower = engine.certify()
    close = (1e-4 if single else 1e-7) * primal
    assert reported == pytest.approx(true, abs=close)
    assert reported == pytest.approx(primal - lower, abs=close)


def test_unpruned_planes_stay():
    rng = np.random.default_rng(3)
    case = random_case(rng, n_labels=4, lengths=(6, 6, 6), features="values")
    engine = _native.Engine(case.problem(), 1.0, single=False, factored=False)
    kept, added = 0, 0
    for _ in range(15):
        added += engine.exact_pass(everyone(3), _native.PassOptions(prune=False)).added
        kept = engine.size()["planes"]
    assert kept == added
    engine.cached_pass(everyone(3), _native.PassOptions())
    planes = ChainPlanes(case)
    rebuilt = check_state(engine, planes, case.unpadded, tolerance=1e-6)
    assert engine.size()["planes"] < kept
    assert all((part.alpha[1:] > 0).all() for part in rebuilt.parts)


def test_recombining_finds_planes_without_the_oracle():
    rng = np.random.default_rng(4)
    gains = {}
    for recombine in (False, True):
        case = random_case(np.random.default_rng(4), n_labels=5, lengths=(12,) * 6, n_sparse=8)
        engine = _native.Engine(case.problem(), 1.0, single=False, factored=False)
        engine.exact_pass(everyone(6), _native.PassOptions(prune=False))
        added = gain = 0
        for _ in range(10):
            order = rng.permutation(6).astype(np.uint32)
            result = engine.cached_pass(order, _native.PassOptions(recombine=recombine))
            added, gain = added + result.added, gain + result.gain
        assert (added > 0) == recombine
        check_state(engine, ChainPlanes(case), case.unpadded, tolerance=1e-9)
        gains[recombine] = gain
    assert gains[True] > gains[False]


def test_an_empty_order_does_nothing():
    case = random_case(np.random.default_rng(5))
    engine = _native.Engine(case.problem(), 1.0)
    for run in (engine.exact_pass, engine.cached_pass):
        result = run(np.zeros(0, np.uint32), _native.PassOptions())
        assert result.visits == result.oracle_calls == 0
    assert not engine.weights.any()


def test_one_label_has_nothing_to_learn():
    case = random_case(np.random.default_rng(6), n_labels=1)
    for factored in (True, False):
        engine = _native.Engine(case.problem(), 1.0, factored=factored)
        assert engine.exact_pass(everyone(3), _native.PassOptions()).gap == 0.0
        assert engine.certify() == (0.0, 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"tau": -1.0},
        {"tau": np.nan},
        {"tau_inner": -1e-9},
        {"tau_relative": np.nan},
        {"relaxation": 0.0},
        {"relaxation": 2.0},
        {"relaxation": np.nan},
        {"max_smo": 0},
        {"max_smo": -1},
        {"rounds": 0},
        {"rounds": -1},
        {"min_violation": np.nan},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError):
        _native.PassOptions(**options)


def test_bad_calls_are_refused():
    case = random_case(np.random.default_rng(7))
    for C in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="C must be"):
            _native.Engine(case.problem(), C)
    engine = _native.Engine(case.problem(), 1.0)
    for C in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="C must be"):
            engine.rescale(C)
    for run in (engine.exact_pass, engine.cached_pass):
        for order in ([3], [0, 2**32 - 1]):
            with pytest.raises(ValueError, match="out of range"):
                run(np.array(order, np.uint32), _native.PassOptions())
    structure, X, Y = flat_problem(np.random.default_rng(7))
    with pytest.raises(ValueError, match="8-byte"):
        _native.Engine(native_python_problem(structure, X, Y), 1.0, single=True)


def test_the_weights_outlive_the_engine():
    case = random_case(np.random.default_rng(8))
    engine = _native.Engine(case.problem(), 1.0)
    engine.exact_pass(everyone(3), _native.PassOptions())
    weights = engine.weights
    kept = np.array(weights)
    del engine
    gc.collect()
    np.testing.assert_array_equal(weights, kept)


# --- threads ---


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("single", PRECISIONS)
def test_threads_change_nothing(single, factored):
    rng = np.random.default_rng(9)
    lengths = rng.integers(1, 20, 17)
    case = random_case(rng, n_labels=6, lengths=lengths, features="values+dense64", cost=True)
    states = []
    for threads in (1, 2, 3, 50):
        engine = _native.Engine(case.problem(), 0.7, single=single, factored=factored)
        seen = []
        for _ in range(4):
            result = engine.collect_pass(threads)
            seen.append((result.added, result.merges, result.psi_max, engine.hinge(threads)))
            engine.cached_pass(everyone(17), _native.PassOptions(recombine=True))
            engine.exact_pass(everyone(17), _native.PassOptions())
        seen.append(engine.certify(threads))
        states.append((seen, engine.state()))
    for seen, state in states[1:]:
        assert seen == states[0][0]
        for name, array in states[0][1].items():
            np.testing.assert_array_equal(array, state[name], err_msg=name)


# --- convergence ---


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("features", ["ones", "values", "dense64", "values+dense64"])
def test_a_chain_reaches_the_optimum(features, factored):
    for seed, C in ((1, 0.1), (2, 1.0), (3, 20.0)):
        rng = np.random.default_rng(seed)
        case = random_case(
            rng,
            n_labels=3,
            lengths=(3, 4, 1, 2),
            features=features,
            n_sparse=4,
            cost=seed == 2,
            weighted=seed == 3,
        )
        best = solve(case.reference, case.X, case.Y, C)
        engine = _native.Engine(case.problem(), C, single=False, factored=factored)
        primal, lower = converge(engine, 4, gap=3e-7)
        close = 1e-6 * max(1.0, abs(best.primal))
        assert primal == pytest.approx(best.primal, abs=close)
        assert lower == pytest.approx(best.dual, abs=close)
        # the objective is strongly convex: P - D >= |w - w*|^2 / 2
        distance = np.linalg.norm(case.unpadded(engine.weights) - best.w)
        assert distance**2 / 2 <= 2 * close


@pytest.mark.parametrize("relaxation", [0.3, 1.0, 1.4])
@pytest.mark.parametrize("schedule", ["exact", "collect", "cached"])
def test_every_schedule_reaches_the_optimum(schedule, relaxation):
    rng = np.random.default_rng(20)
    case = random_case(rng, n_labels=3, lengths=(3, 4, 2), features="values", n_sparse=4)
    best = solve(case.reference, case.X, case.Y, 1.0)
    engine = _native.Engine(case.problem(), 1.0, single=False)
    options = _native.PassOptions(relaxation=relaxation, recombine=True, prune=relaxation != 1.0)
    for _ in range(1500):
        if schedule == "exact":
            engine.exact_pass(everyone(3), options)
        elif schedule == "collect":
            engine.collect_pass(1)
            engine.cached_pass(everyone(3), options)
        else:
            engine.exact_pass(everyone(3), options)
            engine.cached_pass(rng.permutation(3).astype(np.uint32), options)
        if true_gap(engine) < 1e-8:
            break
    primal, lower = engine.certify()
    assert primal == pytest.approx(best.primal, rel=1e-6)
    assert lower == pytest.approx(best.dual, rel=1e-6)


def test_a_python_structure_reaches_the_optimum():
    for seed, C in ((0, 0.1), (1, 1.0), (2, 10.0)):
        rng = np.random.default_rng(seed)
        structure, X, Y = flat_problem(rng, n=6)
        best = solve(structure, X, Y, C)
        engine = _native.Engine(native_python_problem(structure, X, Y), C, single=False)
        primal, lower = converge(engine, 6, gap=1e-8, passes=500)
        close = 1e-6 * max(1.0, abs(best.primal))
        assert primal == pytest.approx(best.primal, abs=close)
        assert lower == pytest.approx(best.dual, abs=close)


def test_a_chain_in_python_equals_the_native_chain():
    rng = np.random.default_rng(21)
    case = random_case(
        rng, n_labels=3, lengths=(3, 4, 2), features="values", cost=True, weighted=True
    )
    slow = native_python_problem(case.reference, case.X, case.Y)
    engines = [
        _native.Engine(case.problem(), 0.5, single=False, factored=False),
        _native.Engine(slow, 0.5, single=False),
    ]
    for _ in range(30):
        for engine in engines:
            engine.exact_pass(everyone(3), _native.PassOptions())
        fast, python = engines
        assert dual(fast) == pytest.approx(dual(python), rel=1e-5)
    ends = [converge(engine, 3, gap=1e-8, recombine=False, passes=200) for engine in engines]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


@pytest.mark.parametrize("factored", BLOCKS)
def test_both_precisions_agree(factored):
    rng = np.random.default_rng(22)
    lengths = rng.integers(1, 12, 15)
    case = random_case(
        rng, n_labels=7, lengths=lengths, features="values+dense64", n_sparse=40, cost=True
    )
    ends = {}
    for single in (True, False):
        engine = _native.Engine(case.problem(), 0.3, single=single, factored=factored)
        ends[single] = converge(engine, 15, gap=1e-6, passes=60)
    assert ends[True] == pytest.approx(ends[False], rel=1e-4)
    primal, lower = ends[True]
    assert 0 <= primal - lower <= 1e-4 * primal


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1000.0])
@pytest.mark.parametrize("single", PRECISIONS)
def test_the_dual_never_falls_whatever_the_scale_of_the_features(scale, single):
    rng = np.random.default_rng(23)
    case = random_case(rng, n_labels=4, lengths=(8, 5, 9, 3), features="dense32", scale=scale)
    engine = _native.Engine(case.problem(), 1.0, single=single)
    before = 0.0
    for _ in range(40):
        engine.exact_pass(everyone(4), _native.PassOptions())
        engine.cached_pass(everyone(4), _native.PassOptions(recombine=True))
        after = engine.certify()[1]
        assert after >= before - (1e-3 if single else 1e-6) * (1 + abs(before))
        before = after


# --- another C ---


@pytest.mark.parametrize("single", PRECISIONS)
def test_rescaling(single):
    rng = np.random.default_rng(24)
    case = random_case(rng, n_labels=3, lengths=(3, 4, 2), features="values", n_sparse=4)
    engine = _native.Engine(case.problem(), 0.1, single=single)
    planes, tolerance = ChainPlanes(case), 1e-5 if single else 1e-6
    converge(engine, 3, gap=1e-6, passes=100)
    for C in (1.0, 0.02, 5.0):
        before, alpha = np.array(engine.weights), engine.state()["alpha"]
        ratio, expected = C / engine.C, engine.expected_loss()
        engine.rescale(C)
        assert engine.C == C
        np.testing.assert_array_equal(engine.state()["alpha"], alpha)
        np.testing.assert_allclose(engine.weights, ratio * before, rtol=1e-4, atol=1e-5 * ratio)
        assert engine.expected_loss() == expected
        check_state(engine, planes, case.unpadded, tolerance=tolerance)
        primal, lower = converge(engine, 3, gap=1e-5 if single else 1e-8)
        best = solve(case.reference, case.X, case.Y, C)
        close = (1e-4 if single else 1e-6) * max(1.0, abs(best.primal))
        assert primal == pytest.approx(best.primal, abs=close)
        assert lower == pytest.approx(best.dual, abs=close)
