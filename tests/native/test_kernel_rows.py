"""Kernels between tokens in the native core: rows, the cache, and what an engine makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise

from maxmargin import _native
from native_problems import ChainPlanes, brute_hinge, converge, everyone, random_case, read_parts
from qp_reference import solve as qp_solve

FEATURES = ("ones", "values", "dense64", "ones+dense64", "values+dense64")
FUNCTIONS = {
    "linear": (("linear", 1.0, 0.0, 1), pairwise.linear_kernel, {}),
    "poly-2": (("poly", 0.7, 1.0, 2), pairwise.polynomial_kernel, {"gamma": 0.7, "degree": 2}),
    "poly-5": (("poly", 0.2, 0.5, 5), pairwise.polynomial_kernel, {"gamma": 0.2, "degree": 5}),
    "rbf": (("rbf", 0.3, 0.0, 1), pairwise.rbf_kernel, {"gamma": 0.3}),
}
PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
EVERYTHING = 10**9  # bytes: a cache that holds all rows


def features_of(case):
    """Return the features of a case's tokens, as arguments of a FeatureKernel."""
    names = {"indptr": "indptr", "indices": "indices", "values": "values", "dense64": "dense"}
    return {new: case.arrays[old] for old, new in names.items() if old in case.arrays}


def feature_kernel(case, function="rbf"):
    arguments = FUNCTIONS[function][0]
    return _native.FeatureKernel(*arguments, case.arrays["n_sparse"], **features_of(case))


def expected(X1, X2, function):
    _, reference, options = FUNCTIONS[function]
    if function.startswith("poly"):
        options = {**options, "coef0": FUNCTIONS[function][0][2]}
    return reference(X1, X2, **options)


def own_chain(case, n=None):
    """Return the chain of a case with the tokens themselves as features."""
    tokens = int(case.arrays["offsets"][-1])
    kept = {k: v for k, v in case.arrays.items() if k in ("labels", "cost", "token_weight")}
    return _native.ChainProblem(
        n_labels=case.n_labels,
        n_sparse=tokens if n is None else n,
        offsets=case.arrays["offsets"],
        indptr=np.arange(tokens + 1, dtype=np.int64),
        indices=np.arange(tokens, dtype=np.uint32),
        **kept,
    )


def kernel_problem(case, function="rbf", cache=EVERYTHING):
    return _native.KernelProblem(own_chain(case), feature_kernel(case, function), cache)


def explicit(case, function):
    """Return the case with features whose inner products are the kernel: rows of a root of K."""
    X = np.vstack(case.X)
    values, vectors = np.linalg.eigh(expected(X, X, function))
    assert values.min() > -1e-8
    root = np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    changed = random_case(np.random.default_rng(0), lengths=np.diff(case.arrays["offsets"]))
    changed.arrays = {k: v for k, v in case.arrays.items() if k not in ("indptr", "indices")}
    changed.arrays |= {"n_sparse": 0, "dense64": root, "values": None, "dense32": None}
    changed.X = case.per_sequence(root)
    changed.Y = case.Y
    changed.reference = type(case.reference)(case.n_labels, root.shape[1], case.arrays.get("cost"))
    return changed


def noisy_case(seed=0, **changes):
    options = {"lengths": (5, 3, 1, 6, 4, 2, 5, 3), "n_labels": 3, "features": "values+dense64"}
    return random_case(np.random.default_rng(seed), **{**options, "noise": 0.5, **changes})


def work(engine, n, passes, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        order = rng.permutation(n).astype(np.uint32)
        engine.exact_pass(order, _native.PassOptions(tau_relative=0.1))
        engine.cached_pass(order, _native.PassOptions(recombine=True, relaxation=1.3))
        engine.collect_pass(1)


# --- rows ---


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("features", FEATURES)
def test_rows_are_those_of_the_formula(features, function):
    case = random_case(np.random.default_rng(3), lengths=(7, 1, 9, 4), features=features)
    kernel, X = feature_kernel(case, function), np.vstack(case.X)
    every = everyone(kernel.size)
    K = kernel.rows(every).reshape(len(X), len(X))
    np.testing.assert_allclose(K, expected(X, X, function), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel.block(every, every).reshape(K.shape), K)
    some = np.array([3, 0, 3], dtype=np.uint32)
    np.testing.assert_array_equal(kernel.rows(some).reshape(3, -1), K[some])
    np.testing.assert_array_equal(kernel.block(some, every[2:5]).reshape(3, 3), K[some, 2:5])


@pytest.mark.parametrize("features", FEATURES)
def test_a_token_is_at_no_distance_of_itself(features):
    case = random_case(np.random.default_rng(4), lengths=(30,), features=features, scale=100.0)
    kernel = feature_kernel(case)
    every = everyone(kernel.size)
    np.testing.assert_array_equal(np.diag(kernel.rows(every).reshape(30, 30)), 1.0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_of_other_tokens(function):
    rng = np.random.default_rng(5)
    case, other = (
        random_case(rng, lengths=lengths, features="values+dense64") for lengths in ((9,), (4, 2))
    )
    found = feature_kernel(case, function).rows_of(**features_of(other))
    X1, X2 = np.vstack(other.X), np.vstack(case.X)
    np.testing.assert_allclose(
        found.reshape(6, 9), expected(X1, X2, function), rtol=1e-9, atol=1e-12
    )


def test_a_matrix_is_looked_up():
    K = np.arange(25.0).reshape(5, 5)
    kernel = _native.MatrixKernel(K, np.array([4, 1], dtype=np.uint32))
    assert kernel.size == 2
    np.testing.assert_array_equal(kernel.rows(everyone(2)), [K[4, 4], K[4, 1], K[1, 4], K[1, 1]])


def test_bad_arrays_are_refused():
    ids, good = np.array([0, 2, 1], dtype=np.uint32), np.array([0, 2, 3])
    make = lambda **changes: _native.FeatureKernel("rbf", 1.0, 0.0, 1, 3, **changes)  # noqa: E731
    make(indptr=good, indices=ids)
    with pytest.raises(ValueError, match="ascending and below"):
        make(indptr=np.array([0, 3]), indices=ids)
    with pytest.raises(ValueError, match="ascending and below"):
        make(indptr=good, indices=np.array([0, 3, 1], dtype=np.uint32))
    with pytest.raises(ValueError, match="run from 0"):
        make(indptr=np.array([0, 2]), indices=ids)
    with pytest.raises(ValueError, match="decrease"):
        make(indptr=np.array([0, 4, 3]), indices=ids)
    with pytest.raises(ValueError, match="differ in length"):
        make(indptr=good, indices=ids, values=np.ones(2, np.float32))
    with pytest.raises(ValueError, match="one row per token"):
        make(indptr=good, indices=ids, dense=np.ones((3, 1)))
    with pytest.raises(ValueError, match="sparse features, dense"):
        make()
    with pytest.raises(ValueError, match="other kinds"):
        make(indptr=good, indices=ids).rows_of(dense=np.ones((1, 2)))
    with pytest.raises(ValueError, match="no such token"):
        make(indptr=good, indices=ids).rows(np.array([2], dtype=np.uint32))
    for bad in ({"gamma": 0.0}, {"gamma": np.nan}, {"degree": 0}, {"coef0": np.inf}):
        options = {"gamma": 1.0, "coef0": 0.0, "degree": 1, **bad}
        with pytest.raises(ValueError, match=next(iter(bad))):
            _native.FeatureKernel("poly", n_sparse=3, indptr=good, indices=ids, **options)


def test_a_chain_and_a_kernel_must_fit():
    case = noisy_case()
    kernel = feature_kernel(case)
    with pytest.raises(ValueError, match="31 tokens and the kernel 29"):
        _native.KernelProblem(own_chain(case, n=31), kernel, 1000)
    with pytest.raises(ValueError, match="one feature"):
        _native.KernelProblem(case.problem(n_sparse=kernel.size), kernel, 1000)


# --- the engine ---


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("lengths", [(5, 3, 1, 6, 4, 2), (1,) * 20], ids=["chain", "classes"])
def test_the_cache_makes_no_difference(single, lengths):
    case = noisy_case(lengths=lengths)
    rows = int(case.arrays["offsets"][-1]) * (4 if single else 8)
    states = []
    for cache in (EVERYTHING, 3 * rows, rows, 1):
        engine = _native.Engine(kernel_problem(case, cache=cache), 0.7, single)
        work(engine, len(case.X), 4)
        states.append({**engine.state(), "certificate": np.array(engine.certify())})
    assert len(states[0]["alpha"]) > 5
    for state in states[1:]:
        for name, array in state.items():
            np.testing.assert_array_equal(array, states[0][name], err_msg=name)


def test_the_cache_stays_within_its_bounds():
    case = noisy_case(lengths=(1,) * 200)
    sizes = []
    for cache in (EVERYTHING, 10 * 200 * 8, 1):
        engine = _native.Engine(kernel_problem(case, cache=cache), 0.7, False)
        work(engine, len(case.X), 2)
        sizes.append(engine.size()["bytes"])
    assert sizes[0] - sizes[2] > 100 * 200 * 8
    assert sizes[1] - sizes[2] == 9 * 200 * 8


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("factored", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("lengths", [(5, 3, 1, 6, 4), (1,) * 12], ids=["chain", "classes"])
def test_the_state_is_that_of_explicit_features(lengths, function, factored, single):
    """Gram entries, w, penalty and dual, from a root of the kernel's matrix and the multipliers."""
    case = noisy_case(lengths=lengths, weighted=True, cost=True)
    engine = _native.Engine(kernel_problem(case, function), 0.6, single, factored)
    work(engine, len(case.X), 3)
    twin = explicit(case, function)
    planes, chain = ChainPlanes(twin), twin.reference
    u, loss = np.zeros(chain.n_features), 0.0
    parts = read_parts(engine.state())
    assert len(parts) >= 3
    for part in parts:
        deltas, losses = zip(*(planes.plane(part.example, c) for c in part.codes), strict=True)
        gram = np.array(deltas) @ np.array(deltas).T
        np.testing.assert_allclose(part.gram, gram, rtol=1e-5, atol=1e-5 * np.abs(gram).max())
        u += engine.C * part.alpha @ np.array(deltas)
        loss += float(part.alpha @ losses)
    emission, *edges = chain.split(u)
    rows = np.vstack(twin.X).shape[0]
    scores = np.vstack(twin.X) @ emission
    found = engine.weights.reshape(rows + case.n_labels + 2, -1)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if single else {"rtol": 1e-9, "atol": 1e-7}
    np.testing.assert_allclose(found[:rows, : case.n_labels], scores, **tolerance)
    np.testing.assert_allclose(found[rows:, : case.n_labels], np.vstack(edges), **tolerance)
    assert not found[:, case.n_labels :].any()
    np.testing.assert_allclose(engine.penalty(), 0.5 * u @ u, **tolerance)
    np.testing.assert_allclose(engine.dual(), engine.C * loss - 0.5 * u @ u, **tolerance)
    np.testing.assert_allclose(engine.hinge(), brute_hinge(twin, u), **tolerance)
    primal, dual = engine.certify()
    np.testing.assert_allclose(primal, 0.5 * u @ u + engine.C * brute_hinge(twin, u), rtol=1e-7)
    np.testing.assert_allclose(dual, engine.C * loss - 0.5 * u @ u, rtol=1e-7)


@pytest.mark.parametrize("function", ["poly-2", "rbf"])
@pytest.mark.parametrize("lengths", [(3, 2, 1, 3, 2, 3), (1,) * 15], ids=["chain", "classes"])
def test_the_optimum_is_that_of_a_quadratic_program(lengths, function):
    case = noisy_case(7, lengths=lengths)
    engine = _native.Engine(kernel_problem(case, function), 0.8, False)
    primal, dual = converge(engine, len(case.X))
    twin = explicit(case, function)
    best = qp_solve(twin.reference, twin.X, twin.Y, 0.8)
    np.testing.assert_allclose([primal, dual], best.primal, rtol=1e-6)


@pytest.mark.parametrize("relaxation", [1.0, 1.3, 1.9])
def test_each_pass_raises_the_dual_and_stays_below_the_primal(relaxation):
    case = noisy_case(8, lengths=(6, 5, 4, 7, 1, 2))
    engine = _native.Engine(kernel_problem(case), 2.0, False)
    twin = explicit(case, "rbf")
    least = qp_solve(twin.reference, twin.X[2:3], twin.Y[2:3], 2.0).primal  # part of the whole
    order, dual = everyone(len(case.X)), 0.0
    for n in range(30):
        options = _native.PassOptions(tau_relative=0.1, relaxation=relaxation, recombine=True)
        result = (engine.cached_pass if n % 3 else engine.exact_pass)(order, options)
        assert result.gain >= -1e-12
        assert engine.dual() == pytest.approx(dual + result.gain, rel=1e-7, abs=1e-9)
        dual = engine.dual()
        assert dual <= engine.objective() * (1 + 1e-12)
    assert dual > least > 0


def test_an_engine_goes_on_bit_for_bit():
    case = noisy_case(9)
    problem, n = kernel_problem(case), len(case.X)
    engine, other = _native.Engine(problem, 0.5), _native.Engine(problem, 0.5)
    work(engine, n, 2)
    work(other, n, 1, seed=5)
    saved = {name: array.copy() for name, array in engine.state().items()}
    other.restore(saved)
    for one in (engine, other):
        work(one, n, 2, seed=7)
    for name, array in engine.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)
    for damaged in ({}, {"mapped": saved["mapped"][1:]}, {"mapped": saved["mapped"] * np.nan}):
        state = {k: v for k, v in saved.items() if k != "mapped"} | damaged
        with pytest.raises(ValueError, match=r"mapped|scores|score"):
            other.restore(state)


def test_another_c_goes_on_from_the_same_multipliers():
    case = noisy_case(10)
    problem = kernel_problem(case)
    engine = _native.Engine(problem, 0.5, False)
    work(engine, len(case.X), 2)
    loss, penalty, w = engine.expected_loss(), engine.penalty(), engine.weights.copy()
    engine.rescale(1.5)
    np.testing.assert_allclose(engine.weights, 3.0 * w, rtol=1e-9, atol=1e-12)
    assert engine.dual() == pytest.approx(1.5 * loss - 9.0 * penalty)


def test_sequences_too_long_for_kept_inner_products():
    """Above 256 tokens, pairs of planes ask the kernel itself."""
    case = noisy_case(11, lengths=(300, 270), noise=0.3)
    engine = _native.Engine(kernel_problem(case, "linear"), 0.05, False)
    work(engine, 2, 3)
    planes, seen = ChainPlanes(case), 0
    for part in read_parts(engine.state()):
        deltas = np.array([planes.plane(part.example, code)[0] for code in part.codes])
        gram = deltas @ deltas.T
        np.testing.assert_allclose(part.gram, gram, rtol=1e-5, atol=1e-5 * np.abs(gram).max())
        seen += len(deltas) - 1
    assert seen >= 10


def test_negative_curvature_is_told():
    rng = np.random.default_rng(12)
    case = noisy_case(12, lengths=(4, 4, 3, 5))
    K = rng.normal(size=(16, 16))
    K = 20.0 * (K + K.T)
    np.fill_diagonal(K, 0.0)
    problem = _native.KernelProblem(own_chain(case), _native.MatrixKernel(K, everyone(16)), 1000)
    engine = _native.Engine(problem, 1.0)
    with pytest.raises(ValueError, match=r"not positive semidefinite.*negative curvature"):
        work(engine, 4, 50)
    alpha = engine.state()["alpha"]
    assert (alpha >= 0).all()
    assert np.isfinite(alpha).all()


def test_only_l2_has_a_kernel():
    problem = kernel_problem(noisy_case())
    with pytest.raises(ValueError, match="with a kernel"):
        _native.Engine(problem, 1.0, link=_native.Link(lower=-0.1, upper=0.1))
    with pytest.raises(ValueError, match="with a kernel"):
        _native.Engine(problem, 1.0, nu=0.1)
    engine = _native.Engine(problem, 1.0)
    with pytest.raises(ValueError, match="with a kernel"):
        engine.relink(_native.Link(scale=0.5))
    with pytest.raises(ValueError, match="with a kernel"):
        engine.set_fixed(np.ones_like(engine.weights))
    with pytest.raises(ValueError, match="with a kernel"):
        _native.Primal(problem)


def test_a_python_kernel_is_asked_in_blocks_and_may_fail():
    case = noisy_case(13)
    twin, calls = feature_kernel(case), []

    def block(first, second):
        calls.append((len(first), len(second)))
        if len(calls) == 12:
            raise RuntimeError("no more")
        return twin.block(first, second).reshape(len(first), len(second))

    own = own_chain(case)
    problem = _native.KernelProblem(own, _native.PythonKernel(block, twin.size), EVERYTHING)
    engine = _native.Engine(problem, 0.5)
    with pytest.raises(RuntimeError, match="no more"):
        work(engine, len(case.X), 10)
    assert max(n for n, m in calls if m == twin.size) > 1
    del calls[:]
    calls.extend([(0, 0)] * 30)
    engine = _native.Engine(problem, 0.5)
    other = _native.Engine(_native.KernelProblem(own, twin, EVERYTHING), 0.5)
    for one in (engine, other):
        work(one, len(case.X), 3)
    np.testing.assert_array_equal(engine.weights, other.weights)
    wrong = _native.PythonKernel(lambda a, b: np.zeros((1, 1)), twin.size)
    with pytest.raises(ValueError, match="wrong shape"):
        work(_native.Engine(_native.KernelProblem(own, wrong, EVERYTHING), 0.5), len(case.X), 1)
