"""Weights of examples: a factor of C for each sequence, in every number that training gives."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import qp_reference
from maxmargin import SDM, Chain, SequenceTagger, _native
from maxmargin.errors import ConvergenceWarning, NotCompatibleError
from maxmargin.selection import Encoded, FitOptions, fit_grid
from maxmargin.solvers import make_solver, solve
from native_problems import (
    ChainCase,
    ChainPlanes,
    brute_hinge,
    converge,
    dual,
    everyone,
    random_case,
    read_parts,
    true_gap,
)

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
BLOCKS = [pytest.param(True, id="factored"), pytest.param(False, id="whole")]
LENGTHS = (3, 1, 4, 2, 3)
WEIGHTS = np.array([0.5, 3.0, 1.0, 0.01, 2.25])


def small_case(seed=0, **options):
    rng = np.random.default_rng(seed)
    shape = {"n_labels": 3, "lengths": LENGTHS, "features": "values", "n_sparse": 4}
    return random_case(rng, **{**shape, **options})


def weighted_engine(case, weights, C=1.0, **options):
    return _native.Engine(case.problem(example_weight=weights), C, **options)


def take(case, which):
    """Return a case of some sequences of another; one may come several times."""
    offsets, arrays = case.arrays["offsets"], dict(case.arrays)
    tokens = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in which])
    arrays["offsets"] = np.cumsum([0, *(len(case.X[i]) for i in which)]).astype(np.int64)
    if "indptr" in arrays:
        indptr = arrays["indptr"]
        entries = [np.arange(indptr[t], indptr[t + 1]) for t in tokens]
        arrays["indptr"] = np.cumsum([0, *map(len, entries)]).astype(np.int64)
        for name in {"indices", "values"} & arrays.keys():
            arrays[name] = arrays[name][np.concatenate(entries)]
    for name in {"labels", "dense32", "dense64", "token_weight"} & arrays.keys():
        arrays[name] = arrays[name][tokens]
    return ChainCase(case.reference, [case.X[i] for i in which], [case.Y[i] for i in which], arrays)


# --- references that know of weights ---


def weighted_hinge(case, w, weights):
    """Return Σ s_i ξ_i by the definition, without the native core."""
    slacks = [
        brute_hinge(dataclasses.replace(case, X=[x], Y=[y]), w)
        for x, y in zip(case.X, case.Y, strict=True)
    ]
    return float(np.dot(weights, slacks))


def rebuilt(engine, case, weights, planes):
    """Return (w, dual) that the multipliers of an engine stand for, from scratch."""
    w, expected = np.zeros(case.reference.n_features), 0.0
    for part in read_parts(engine.state()):
        assert (part.alpha >= 0).all()
        assert part.alpha.sum() == pytest.approx(1.0, abs=1e-9)
        for alpha, code in zip(part.alpha, part.codes, strict=True):
            delta, loss = planes.plane(part.example, code)
            w += engine.C * weights[part.example] * alpha * delta
            expected += weights[part.example] * alpha * loss
    return w, engine.C * expected - 0.5 * w @ w


def solve_weighted(case, C, weights):
    """Return the optimum of ½‖w‖² + C Σ s_i ξ_i by the interior point method."""
    planes = qp_reference.list_planes(case.reference, case.X, case.Y)
    return qp_reference.solve_planes(planes, C * weights)


def assert_same_optimum(found, expected):
    close = 1e-6 * max(1.0, abs(expected[0]))
    assert found[0] == pytest.approx(expected[0], abs=close)
    assert found[1] == pytest.approx(expected[1], abs=close)


# --- the objective ---


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("features", ["ones", "values", "values+dense64"])
def test_the_optimum_is_that_of_the_weighted_objective(features, factored):
    for seed, C in ((1, 0.1), (2, 1.0), (3, 8.0)):
        case = small_case(seed, features=features, cost=seed == 2, weighted=seed == 3)
        best = solve_weighted(case, C, WEIGHTS)
        engine = weighted_engine(case, WEIGHTS, C, single=False, factored=factored)
        found = converge(engine, len(LENGTHS), gap=2e-7)
        assert_same_optimum(found, (best.primal, best.dual))
        # the objective is strongly convex: P - D >= |w - w*|^2 / 2
        distance = np.linalg.norm(case.unpadded(engine.weights) - best.w)
        assert distance**2 / 2 <= 2e-6 * max(1.0, best.primal)
        plain = qp_reference.solve(case.reference, case.X, case.Y, C)
        assert abs(plain.primal - best.primal) > 1e-3, "the weights do not matter here"


@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("features", ["ones", "values+dense32"])
def test_whole_weights_are_repetitions(features, factored):
    case, times = small_case(4, features=features, cost=True, weighted=True), (2, 1, 3, 1, 0)
    again = take(case, [i for i, k in enumerate(times) for _ in range(k)])
    ends = []
    for some, weights, n in ((case, np.array(times, float), 5), (again, None, 7)):
        engine = weighted_engine(some, weights, 0.6, single=False, factored=factored)
        ends.append(converge(engine, n, gap=1e-7))
        assert ends[-1][0] - ends[-1][1] <= 1e-6
    assert_same_optimum(*ends)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("factored", BLOCKS)
def test_weight_zero_is_absence(single, factored):
    # Visits of an example without weight do nothing, so that everything is equal bit for bit.
    case, left = small_case(5), np.array([0, 2, 3])
    weights = np.array([1.5, 0.0, 0.25, 4.0, 0.0])
    fewer = take(case, left)
    whole = weighted_engine(case, weights, 0.9, single=single, factored=factored)
    part = weighted_engine(fewer, weights[left], 0.9, single=single, factored=factored)
    for _ in range(6):
        for engine, n in ((whole, 5), (part, 3)):
            engine.exact_pass(everyone(n), _native.PassOptions(rounds=3))
            engine.cached_pass(everyone(n), _native.PassOptions(recombine=True))
        a, b = whole.collect_pass(2), part.collect_pass(2)
        assert (a.gap, a.added) == (b.gap, b.added)
        assert whole.hinge(2) == part.hinge(2)
        assert whole.expected_loss() == part.expected_loss()
    assert whole.certify() == part.certify()
    np.testing.assert_array_equal(whole.weights, part.weights)
    assert set(whole.state()["example"].tolist()) <= set(left.tolist())
    for name in ("alpha", "gram", "codes", "running"):
        np.testing.assert_array_equal(whole.state()[name], part.state()[name], err_msg=name)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("factored", BLOCKS)
def test_ones_change_nothing(single, factored):
    case, states, seen = small_case(6, cost=True, weighted=True), [], []
    for weights in (None, np.ones(len(LENGTHS))):
        rng = np.random.default_rng(0)
        engine = weighted_engine(case, weights, 0.7, single=single, factored=factored)
        numbers = []
        for _ in range(5):
            order = rng.permutation(len(LENGTHS)).astype(np.uint32)
            for result in (
                engine.exact_pass(order, _native.PassOptions(relaxation=1.3)),
                engine.cached_pass(order, _native.PassOptions(recombine=True)),
                engine.collect_pass(2),
            ):
                numbers.append((result.gap, result.gain, result.psi_max, result.work))
        engine.rescale(1.9)
        numbers.append((engine.hinge(), engine.certify()))
        seen.append(numbers)
        states.append(engine.state())
    assert seen[0] == seen[1]
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)


def test_a_common_factor_is_a_factor_of_c():
    case = small_case(7)
    ends = []
    for weights, C in ((np.full(len(LENGTHS), 4.0), 0.5), (None, 2.0)):
        engine = weighted_engine(case, weights, C, single=False)
        ends.append(converge(engine, len(LENGTHS), gap=1e-7))
    assert_same_optimum(*ends)


# --- the books ---


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("factored", BLOCKS)
@pytest.mark.parametrize("seed", range(4))
def test_every_pass_keeps_the_books(seed, single, factored):
    features = ("ones", "values", "dense64", "ones+dense32")[seed]
    lengths = (5, 1, 8, 3, 6, 9)
    case = small_case(10 + seed, lengths=lengths, features=features, cost=seed % 2 == 1, noise=0.3)
    rng, n = np.random.default_rng(seed), len(lengths)
    weights = rng.choice([0.0, 0.1, 1.0, 7.5], n)
    weights[0] = 2.0
    engine = weighted_engine(case, weights, 0.8, single=single, factored=factored)
    planes, before, slack = ChainPlanes(case), 0.0, 2e-4 if single else 2e-6
    for k in range(12):
        order = rng.permutation(n).astype(np.uint32)
        relaxed = _native.PassOptions(recombine=True, relaxation=1.5, max_smo=3 + k)
        result = (
            engine.exact_pass(order, _native.PassOptions(rounds=2))
            if k % 3 == 0
            else engine.cached_pass(order, relaxed)
            if k % 3 == 1
            else engine.collect_pass(2)
        )
        w, lower = rebuilt(engine, case, weights, planes)
        hinge = weighted_hinge(case, w, weights)
        primal = 0.5 * w @ w + engine.C * hinge
        close = slack * (1.0 + abs(primal) + w @ w)
        assert primal >= lower - 1e-12, "weak duality"
        assert lower >= before - close, "the dual fell"
        assert result.gain == pytest.approx(lower - before, abs=close)
        assert dual(engine) == pytest.approx(lower, abs=close)
        assert engine.hinge(2) == pytest.approx(hinge, abs=close)
        np.testing.assert_allclose(case.unpadded(engine.weights), w, atol=close)
        if k % 3 == 2:
            assert result.gap == pytest.approx(primal - lower, abs=close)
            assert result.gap == pytest.approx(true_gap(engine), abs=close)
        before = lower
    certified = engine.certify(2)
    # The primal is that of the weights as they are returned, which 4 bytes round.
    rounded = case.unpadded(engine.weights)
    primal = 0.5 * rounded @ rounded + engine.C * weighted_hinge(case, rounded, weights)
    assert certified == pytest.approx((primal, lower), rel=1e-9, abs=1e-9)
    assert engine.certify(1) == certified
    np.testing.assert_allclose(case.unpadded(engine.weights), w, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("single", PRECISIONS)
def test_the_hinge_of_a_problem_has_the_weights(single):
    case, rng = small_case(8, cost=True, weighted=True), np.random.default_rng(8)
    problem = case.problem(example_weight=WEIGHTS)
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.normal(size=case.reference.n_features)
        if single:
            w = w.astype(np.float32).astype(float)
        native, expected = case.weights(w, single), weighted_hinge(case, w, WEIGHTS)
        assert problem.hinge(native) == pytest.approx(expected, rel=1e-5 if single else 1e-12)
        assert problem.hinge(native, 3) == problem.hinge(native)
        assert case.problem().hinge(native) == pytest.approx(brute_hinge(case, w), rel=1e-5)
    engine = weighted_engine(case, WEIGHTS, single=single)
    engine.exact_pass(everyone(len(LENGTHS)), _native.PassOptions())
    assert problem.hinge(engine.weights) == pytest.approx(engine.hinge(), rel=1e-6)
    # prediction is no matter of weights
    answers = [p.predict(engine.weights)[0] for p in (problem, case.problem())]
    np.testing.assert_array_equal(*answers)


def test_threads_change_nothing():
    lengths = np.random.default_rng(9).integers(1, 12, 17)
    case, weights = small_case(9, lengths=lengths), np.arange(17) % 4 / 3
    states = []
    for threads in (1, 3):
        engine = weighted_engine(case, weights, 0.7)
        for _ in range(4):
            engine.collect_pass(threads)
            engine.cached_pass(everyone(17), _native.PassOptions(recombine=True))
        states.append((engine.certify(threads), engine.state()))
    assert states[0][0] == states[1][0]
    for name, array in states[0][1].items():
        np.testing.assert_array_equal(array, states[1][1][name], err_msg=name)


# --- another C, checkpoints ---


@pytest.mark.parametrize("single", PRECISIONS)
def test_rescaling(single):
    case, n = small_case(11), len(LENGTHS)
    engine, planes = weighted_engine(case, WEIGHTS, 0.1, single=single), ChainPlanes(case)
    converge(engine, n, gap=1e-6, passes=100)
    for C in (1.0, 0.05, 4.0):
        alpha, expected = engine.state()["alpha"], engine.expected_loss()
        engine.rescale(C)
        np.testing.assert_array_equal(engine.state()["alpha"], alpha)
        assert engine.expected_loss() == expected
        w, lower = rebuilt(engine, case, WEIGHTS, planes)
        np.testing.assert_allclose(case.unpadded(engine.weights), w, rtol=1e-5, atol=1e-5)
        assert dual(engine) == pytest.approx(lower, rel=1e-5, abs=1e-5)
        found = converge(engine, n, gap=1e-5 if single else 1e-7, passes=500)
        best = solve_weighted(case, C, WEIGHTS)
        close = (1e-4 if single else 1e-6) * max(1.0, abs(best.primal))
        assert found == pytest.approx((best.primal, best.dual), abs=close)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_resumed_run_is_the_same_bit_for_bit(dtype, tmp_path):
    case = small_case(12, lengths=(4, 2, 6, 3, 5, 1))
    weights = np.array([0.5, 0.0, 2.0, 1.0, 9.0, 3.0])
    options = {"C": 0.5, "dtype": dtype, "gap": 1e-4, "random_state": 3, "warn": False}

    def run(**more):
        problem = case.problem(example_weight=weights)
        return solve(problem, make_solver("sdm"), **options, **more)

    whole = run()
    path = tmp_path / "state.mmc"
    run(max_passes=3, checkpoint=path)
    resumed = run(checkpoint=path, resume=True)
    assert whole.n_passes == resumed.n_passes > 3
    assert whole.certificate == resumed.certificate
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    np.testing.assert_array_equal(whole.history.column("dual"), resumed.history.column("dual"))


def test_a_checkpoint_of_other_weights_is_refused(tmp_path):
    case, path = small_case(13), tmp_path / "state.mmc"
    solver, options = make_solver("sdm"), {"C": 0.5, "checkpoint": path, "warn": False}
    solve(case.problem(example_weight=WEIGHTS), solver, **options, max_passes=3)
    with pytest.raises((ValueError, NotCompatibleError)):
        solve(case.problem(example_weight=WEIGHTS[::-1].copy()), solver, **options, resume=True)


@pytest.mark.parametrize("schedule", ["auto", "paper", "basic"])
def test_every_schedule_reaches_the_optimum(schedule):
    case = small_case(14)
    best = solve_weighted(case, 1.0, WEIGHTS)
    solver = SDM(schedule, tau=1e-4, tau_inner=1e-4)
    options = {"C": 1.0, "dtype": "float64", "gap": 1e-4, "max_passes": 5000, "random_state": 0}
    result = solve(case.problem(example_weight=WEIGHTS), solver, **options)
    assert result.converged
    assert result.certificate.primal == pytest.approx(best.primal, rel=2e-3)
    assert result.certificate.dual <= best.primal <= result.certificate.primal + 1e-9
    duals = result.history.column("dual")
    assert (np.diff(duals) >= -1e-6).all()
    primals = result.history.column("primal")
    known = np.isfinite(primals)
    assert (primals[known] >= duals[known] - 1e-9).all()


# --- from Python objects ---


def corpus(n=24, seed=0):
    rng = np.random.default_rng(seed)
    words = {"D": ["the", "a"], "A": ["big", "light"], "N": ["dog", "light"], "V": ["barks"]}
    y = [["D", *["A"] * rng.integers(0, 3), "N", "V"][: rng.integers(1, 6)] for _ in range(n)]
    return [[[str(rng.choice(words[tag]))] for tag in tags] for tags in y], y


X, Y = corpus()
OPTIONS = {"C": 0.5, "gap": 1e-6, "dtype": "float64", "random_state": 0}


def test_problems_of_a_chain():
    chain = Chain()
    chain.prepare(X, Y)
    weights = np.arange(len(X)) / 10
    w = chain.pad(np.random.default_rng(0).normal(size=chain.n_features))
    each = [chain.make_problem([x], [y]).hinge(w) for x, y in zip(X, Y, strict=True)]
    problem = chain.make_problem(X, Y, sample_weight=weights)
    assert problem.hinge(w) == pytest.approx(np.dot(weights, each))
    prepared = Chain().prepare_problem(X, Y, sample_weight=weights.tolist())
    assert prepared.problem.hinge(w) == problem.hinge(w)
    np.testing.assert_array_equal(prepared.parts["example_weight"], weights)
    # neither its layout nor its type is the caller's concern
    twice = np.repeat(weights, 2)[::2]
    assert not twice.flags.c_contiguous
    assert chain.make_problem(X, Y, sample_weight=twice).hinge(w) == problem.hinge(w)
    ints = chain.make_problem(X, Y, sample_weight=np.arange(len(X)))
    assert ints.hinge(w) == pytest.approx(10 * problem.hinge(w))


def test_the_problem_keeps_its_weights_alive():
    case = small_case(15)
    problem = case.problem(example_weight=WEIGHTS.copy())
    np.full(100, -1.0)  # where the copy might have been
    w = case.weights(np.ones(case.reference.n_features), False)
    assert problem.hinge(w) == case.problem(example_weight=WEIGHTS).hinge(w)


def test_a_tagger_equals_one_of_repeated_sequences():
    times = np.arange(len(X)) % 3
    which = np.repeat(np.arange(len(X)), times)
    weighted = SequenceTagger(**OPTIONS).fit(X, Y, sample_weight=times)
    again = SequenceTagger(**OPTIONS).fit([X[i] for i in which], [Y[i] for i in which])
    a, b = weighted.certificate_, again.certificate_
    assert a.primal == pytest.approx(b.primal, rel=2e-6)
    assert a.dual == pytest.approx(b.dual, rel=2e-6)
    assert weighted.predict(X).tolist() == again.predict(X).tolist()
    plain = SequenceTagger(**OPTIONS).fit(X, Y)
    assert abs(plain.certificate_.primal - a.primal) > 0.01
    ones = SequenceTagger(**OPTIONS).fit(X, Y, sample_weight=[1] * len(X))
    np.testing.assert_array_equal(ones.weights_, plain.weights_)
    assert ones.certificate_ == plain.certificate_


# The auto schedule compares violations with the gap, and both have the weights in them.
@pytest.mark.parametrize("solver", [SDM("auto"), SDM("paper"), SDM("basic")], ids=str)
@pytest.mark.parametrize("heavy", [0, 1])
def test_heavy_sequences_are_learned(solver, heavy):
    words, labels, weights = [[["x"]], [["x"]]], [["a"], ["b"]], np.ones(2)
    weights[heavy] = 5.0
    tagger = SequenceTagger(C=1.0, random_state=0, max_passes=200, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(words, labels, sample_weight=weights)
    # with the margin m: min m² / 12 + 5 max(0, 1 - m) + max(0, 1 + m), at m = 1
    assert tagger.certificate_.primal == pytest.approx(25 / 12, rel=0.01)
    assert tagger.predict(words).tolist() == [labels[heavy]] * 2


@pytest.mark.parametrize("factor", [10.0, 100.0])
def test_a_common_factor_converges_like_a_larger_c(factor):
    options = {"random_state": 0, "max_passes": 300}
    larger = SequenceTagger(C=0.05 * factor, **options).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        heavier = SequenceTagger(C=0.05, **options).fit(X, Y, sample_weight=[factor] * len(X))
    assert heavier.converged_
    assert heavier.certificate_.primal == pytest.approx(larger.certificate_.primal, rel=0.02)


@pytest.mark.parametrize("wrong", [1.1e12, 1e300, np.inf, np.nan, -1.0])
def test_absurd_weights_are_refused(wrong):
    weights = np.ones(len(X))
    weights[2] = wrong
    with pytest.raises(ValueError, match=r"^sample_weight of sequence 2 is .* from 0 to 1e12"):
        SequenceTagger(**OPTIONS).fit(X, Y, sample_weight=weights)


def test_one_of_two_sequences_is_left_out():
    words, labels = [[["x"]], [["x"]]], [["a"], ["b"]]
    tagger = SequenceTagger(C=1.0, random_state=0).fit(words, labels, sample_weight=[0.0, 0.1])
    assert tagger.predict(words).tolist() == [["b"], ["b"]]


def test_features_of_sequences_without_weight_exist_but_weigh_nothing():
    weights = np.ones(len(X))
    weights[0] = 0.0
    inputs, labels = [[["rare"]], *X[1:]], [["V"], *Y[1:]]
    tagger = SequenceTagger(**OPTIONS).fit(inputs, labels, sample_weight=weights)
    names = tagger.get_feature_names_out().tolist()
    assert not tagger.coef_[names.index("rare")].any()


def test_warm_start_knows_the_weights():
    weights = np.arange(len(X)) / 10 + 0.1
    warm = SequenceTagger(**{**OPTIONS, "gap": 0.3}, warm_start=True)
    warm.fit(X, Y, sample_weight=weights)
    for changed in (None, weights + 1.0):
        with pytest.raises(ValueError, match="warm_start=True goes on"):
            warm.fit(X, Y, sample_weight=changed)
    warm.set_params(C=1.5, gap=1e-6).fit(X, Y, sample_weight=weights.tolist())
    cold = SequenceTagger(**{**OPTIONS, "C": 1.5}).fit(X, Y, sample_weight=weights)
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


def test_checkpoints_of_a_tagger(tmp_path):
    weights, path = np.arange(len(X)) / 10, tmp_path / "c.mmc"
    options = {**OPTIONS, "checkpoint": path}
    with pytest.warns(ConvergenceWarning):
        SequenceTagger(**options, max_passes=2).fit(X, Y, sample_weight=weights)
    resumed = SequenceTagger(**options, resume=True).fit(X, Y, sample_weight=weights)
    whole = SequenceTagger(**OPTIONS).fit(X, Y, sample_weight=weights)
    assert whole.n_iter_ == resumed.n_iter_ > 2
    np.testing.assert_array_equal(whole.weights_, resumed.weights_)


def test_with_token_weights():
    # The weights of the tokens are within the slack, that of the sequence is a factor of it.
    tokens = [[0.5] * len(y) for y in Y]
    both = SequenceTagger(**OPTIONS).fit(X, Y, tokens, np.full(len(X), 2.0))
    problem = Chain().prepare_problem(X, Y, tokens).problem
    primal = 0.5 * np.dot(both.weights_, both.weights_) + 2 * 0.5 * problem.hinge(both.weights_)
    assert both.certificate_.primal == pytest.approx(primal, rel=1e-9)


def test_model_selection():
    weights = np.arange(len(X)) / 10 + 0.1
    tagger = SequenceTagger(C=1.0, random_state=0)
    search = GridSearchCV(tagger, {"C": [0.1, 1.0]}, cv=3)
    # scikit-learn remarks that `score`, a mean over tokens, has no weights of sequences
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The scoring SequenceTagger.score", UserWarning)
        search.fit(X, Y, sample_weight=weights)
    best = clone(tagger).set_params(**search.best_params_).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.weights_, best.weights_)
    twin = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(twin.weights_, best.weights_)


def test_a_grid_with_weights():
    chain, weights = Chain(), np.arange(len(X)) / 10
    batch, codes = chain.learn(X, Y)
    data = Encoded(batch, codes, list(chain.labels_))
    options = FitOptions(gap=1e-6, dtype="float64", max_passes=5000)
    outcomes = fit_grid(chain, data, [2.0, 0.2], options, sample_weight=weights)
    for outcome in outcomes:
        cold = SequenceTagger(**{**OPTIONS, "C": outcome.C}).fit(X, Y, sample_weight=weights)
        assert outcome.certificate.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


# --- bad input ---


@pytest.mark.parametrize("bad", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
def test_bad_weights_are_refused_natively(bad):
    weights = WEIGHTS.copy()
    weights[3] = bad
    with pytest.raises(ValueError, match="weight of a sequence is negative or above 1e12"):
        small_case().problem(example_weight=weights)


@pytest.mark.parametrize(
    "weights", [np.ones(4), np.ones(6), np.ones(0), np.ones((5, 1)), np.float64(1.0), "11111"]
)
def test_bad_shapes_are_refused_natively(weights):
    with pytest.raises((ValueError, TypeError)):
        small_case().problem(example_weight=weights)


def weights_with(value, at=2):
    weights = np.ones(len(X))
    weights[at] = value
    return weights


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (weights_with(-1.0), ValueError, r"sample_weight of sequence 2 is -1\.0"),
        (weights_with(np.nan), ValueError, "sample_weight of sequence 2 is nan"),
        (weights_with(np.inf), ValueError, "sample_weight of sequence 2 is inf"),
        (np.ones(len(X) - 1), ValueError, r"shape \(23,\); expected \(24,\)"),
        (np.ones((len(X), 1)), ValueError, r"shape \(24, 1\)"),
        (1.0, ValueError, r"shape \(\)"),
        ([], ValueError, r"shape \(0,\)"),
        (np.zeros(len(X)), ValueError, "zero for all sequences"),
        (["a"] * len(X), TypeError, "sample_weight must be numbers"),
        ([[1.0, 2.0], [1.0]], TypeError, "sample_weight must be numbers"),
        ({"a": 1}, TypeError, "sample_weight must be numbers"),
    ],
)
def test_bad_weights_of_a_tagger(weights, error, message):
    with pytest.raises(error, match=message):
        SequenceTagger().fit(X, Y, sample_weight=weights)
    chain = Chain()
    chain.prepare(X, Y)
    with pytest.raises(error, match=message):
        chain.make_problem(X, Y, sample_weight=weights)


def test_bad_weights_leave_the_model_alone():
    tagger = SequenceTagger(**OPTIONS).fit(X, Y)
    before = tagger.weights_.copy()
    with pytest.raises(ValueError, match="sample_weight"):
        tagger.fit(X, Y, sample_weight=weights_with(-1.0))
    np.testing.assert_array_equal(tagger.weights_, before)


def test_weights_of_all_sizes():
    # Finite whatever the sizes: the certificate says how good the model is.
    case = small_case(16)
    for small, large in itertools.product((1e-300, 1e-6), (1.0, 1e6)):
        weights = np.array([small, large, 1.0, small, large])
        engine = weighted_engine(case, weights, 0.5, single=False)
        for _ in range(20):
            engine.exact_pass(everyone(5), _native.PassOptions())
            engine.cached_pass(everyone(5), _native.PassOptions())
        primal, lower = engine.certify()
        assert np.isfinite([primal, lower]).all()
        w, again = rebuilt(engine, case, weights, ChainPlanes(case))
        assert lower == pytest.approx(again, rel=1e-6, abs=1e-6 * (1 + w @ w))
        hinge = weighted_hinge(case, w, weights)
        assert primal == pytest.approx(0.5 * w @ w + 0.5 * hinge, rel=1e-6)
        assert primal >= lower - 1e-9 * (1 + w @ w)
