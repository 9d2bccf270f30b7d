"""The plane store against NumPy, and the program over its planes against an independent solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array

from maxmargin import _native
from native_problems import flat_problem, native_python_problem, random_case
from qp_reference import list_planes

DTYPES = {True: np.float32, False: np.float64}


def rows_of(matrix, single):
    """Return a sparse matrix as the store takes it, its columns in a random order."""
    matrix = csr_matrix(matrix.astype(DTYPES[single]))
    order = np.concatenate(
        [
            np.random.default_rng(7).permutation(np.arange(a, b))
            for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
        ]
    ).astype(int)
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices[order].astype(np.uint32),
        matrix.data[order],
    )


def check(store, planes, rng, single):
    """Compare all that a store says with dense planes."""
    wide = planes.astype(float)
    assert len(store) == len(planes)
    scale = np.abs(wide) @ np.abs(wide).T
    assert (np.abs(store.gram() - wide @ wide.T) <= 1e-13 * scale).all()
    alpha, w = rng.random(len(planes)), rng.normal(size=planes.shape[1]).astype(DTYPES[single])
    out = np.full_like(w, 7)
    store.combine(alpha, out)
    np.testing.assert_allclose(out, alpha @ wide, atol=1e-5 if single else 1e-12)
    np.testing.assert_allclose(store.multiply(w), wide @ w.astype(float), atol=1e-12)
    assert store.square(alpha) == pytest.approx(np.sum((alpha @ wide) ** 2), rel=1e-10, abs=1e-12)
    indptr, indices, values = store.planes()
    again = csr_matrix((values, indices, indptr), shape=planes.shape)
    np.testing.assert_array_equal(again.toarray(), planes)
    assert all((np.diff(again.indices[a:b]) > 0).all() for a, b in itertools.pairwise(indptr))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 200))
def test_against_numpy(seed, single, n_weights):
    rng = np.random.default_rng(seed)
    store, planes = _native.PlaneStore(n_weights, single), np.zeros((0, n_weights), DTYPES[single])
    for _ in range(12):
        k = int(rng.integers(1, 5))
        density = rng.choice([0.0, 0.05, 0.3, 1.0])
        fresh = random_array((k, n_weights), density=density, rng=rng).toarray()
        fresh = (fresh * rng.normal(size=fresh.shape)).astype(DTYPES[single])
        store.add(*rows_of(fresh, single))
        planes = np.vstack([planes, fresh])
        if rng.random() < 0.4:
            kept = rng.random(len(planes)) < rng.choice([0.0, 0.5, 0.9])
            store.keep(kept)
            planes = planes[kept]
        check(store, planes, rng, single)
    assert store.nbytes > 0


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("n_weights", [50, 20_000])  # one range of weights, and several
def test_bundling_changes_nothing(single, n_weights):
    """One add, or many with planes dropped between: bit for bit the same."""
    rng = np.random.default_rng(3)
    planes = random_array((20, n_weights), density=0.4, rng=rng).toarray().astype(DTYPES[single])
    one, many = (_native.PlaneStore(n_weights, single) for _ in range(2))
    one.add(*rows_of(planes, single))
    for plane in planes:
        many.add(*rows_of(np.vstack([plane, plane]), single))
        many.keep(np.r_[np.ones(len(many) - 1, bool), False])
    np.testing.assert_array_equal(one.gram(), many.gram())
    alpha, outs = rng.random(20), [np.zeros(n_weights, DTYPES[single]) for _ in range(2)]
    one.combine(alpha, outs[0])
    many.combine(alpha, outs[1])
    assert outs[0].tobytes() == outs[1].tobytes()
    np.testing.assert_array_equal(one.multiply(outs[0]), many.multiply(outs[0]))


def test_bad_input():
    store = _native.PlaneStore(5, False)
    good = rows_of(np.eye(2, 5), False)
    store.add(*good)
    indptr, indices, values = good
    for bad in (
        (indptr, indices + np.uint32(4), values),
        (indptr, indices, values.astype(np.float32)),
        (indptr, indices, values * np.nan),
        (indptr[:-1], indices, values),
        (indptr + 1, indices, values),
        (np.array([0, 3, 2]), indices, values),
        (indptr, indices, values[:-1]),
        (np.zeros(0, np.int64), indices, values),
    ):
        with pytest.raises(ValueError):
            store.add(*bad)
    for call in (
        lambda: store.combine(np.ones(3), np.zeros(5)),
        lambda: store.combine(np.ones(2), np.zeros(4)),
        lambda: store.combine(np.ones(2), np.zeros(5, np.float32)),
        lambda: store.multiply(np.zeros(4)),
        lambda: store.square(np.ones(1)),
        lambda: store.keep(np.ones(3, bool)),
        lambda: store.solve(np.zeros(1, np.uint32), np.ones(1), 1.0, np.zeros(1), 0.1),
    ):
        with pytest.raises(ValueError):
            call()
    np.testing.assert_array_equal(store.gram(), np.eye(2))


@pytest.mark.parametrize("dtype", DTYPES.values())
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [0, 1, 8, 21])
def test_blend(dtype, share, n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n)).astype(dtype)
    out = np.empty(n, dtype)
    square = _native.blend(a, b, share, out)
    np.testing.assert_allclose(out, (1 - share) * a + share * b, rtol=1e-5, atol=1e-6)
    assert square == pytest.approx(float(np.sum(out.astype(float) ** 2)), rel=1e-12)
    if share == 1:
        np.testing.assert_array_equal(out, b)
    _native.blend(a, b, share, a)  # in place
    np.testing.assert_array_equal(a, out)
    with pytest.raises(ValueError, match="one length"):
        _native.blend(a, np.zeros(n + 1, dtype), share, out)


# --- the program ---


def program(seed, n=12, groups=3, d=6):
    rng = np.random.default_rng(seed)
    planes = rng.normal(size=(n, d))
    planes[1] = planes[0]  # twice the same
    group = rng.integers(0, groups, n).astype(np.uint32)
    return planes @ planes.T, group, 2 * rng.random(n) - 0.3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kappa", [1.0, 0.2])
def test_the_program_against_slsqp(seed, groups, kappa):
    gram, group, b = program(seed, groups=groups)
    C, alpha = 0.7, np.zeros(len(b))
    result = _native.solve_simplex_qp(gram, group, b, C, alpha, 1e-10, kappa)

    def value(x):
        return x @ b - 0.5 * kappa * x @ gram @ x

    sums = np.array([group == g for g in range(groups)], float)
    assert (alpha >= 0).all()
    assert (sums @ alpha <= C * (1 + 1e-12)).all()
    gradient = b - kappa * gram @ alpha
    top = [max(0.0, gradient[group == g].max(initial=0)) for g in range(groups)]
    gap = C * np.sum(top) - alpha @ gradient
    assert result.gap == pytest.approx(gap, abs=1e-12)
    assert gap <= 1e-10
    other = minimize(
        lambda x: -value(x),
        np.full(len(b), C / len(b)),
        jac=lambda x: kappa * gram @ x - b,
        bounds=[(0, None)] * len(b),
        constraints={"type": "ineq", "fun": lambda x: C - sums @ x, "jac": lambda x: -sums},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert value(alpha) == pytest.approx(-other.fun, abs=1e-7)


def test_a_full_group_with_rounding_left_over_is_solved():
    """Mass that rounding left on the truth once hid the violation of a group."""
    gram, b = np.diag([1.0, 1.0]), np.array([10.0, 10.0])
    alpha = np.array([1.0 - 1e-16, 0.0]) * 0.3
    _native.solve_simplex_qp(gram, np.zeros(2, np.uint32), b, 0.3, alpha, 1e-12)
    np.testing.assert_allclose(alpha, 0.15, atol=1e-9)


def test_bad_programs():
    gram, group, b = program(0)
    zero = np.zeros(len(b))
    solve = _native.solve_simplex_qp
    for bad in (
        (gram[:-1], group, b, 1.0, zero, 0.1),
        (gram, group[:-1], b, 1.0, zero, 0.1),
        (gram, group, b, 0.0, zero, 0.1),
        (gram, group, b * np.nan, 1.0, zero, 0.1),
        (gram, group, b, 1.0, zero - 1, 0.1),
        (gram, group, b, 1.0, zero, -1.0),
        (gram, group, b, 1.0, zero, 0.1, 0.0),
        (gram, group + np.uint32(2**21), b, 1.0, zero, 0.1),
    ):
        with pytest.raises(ValueError):
            solve(*bad)


# --- planes of groups, and the cache ---


def problems(seed):
    """Yield (problem, planes of all outputs, example weights, native weights -> reference's)."""
    rng = np.random.default_rng(seed)
    share = np.array([1.0, 0.0, 2.0, 0.5, 1.0, 3.0])
    case = random_case(rng, lengths=(3, 1, 4, 2, 1, 3), features="values")
    planes = list_planes(case.reference, case.X, case.Y)
    yield case.problem(example_weight=share), planes, share, case.unpadded
    structure, X, Y = flat_problem(rng, n=6)
    planes = list_planes(structure, X, Y)
    yield native_python_problem(structure, X, Y), planes, np.ones(6), np.array


def most_violated(planes, w):
    """Return the index of each example's best plane, -1 for the truth."""
    F = planes.loss - planes.delta @ w
    best = np.full(planes.n_examples, -1)
    for i in range(planes.n_examples):
        mine = np.flatnonzero(planes.example == i)
        if F[mine].max() > 0:
            best[i] = mine[F[mine].argmax()]
    return best


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_shares(seed, groups):
    for problem, planes, share, unpadded in problems(seed):
        primal = _native.Primal(problem, False)
        primal.weights[:] = 0.1 * np.random.default_rng(seed).normal(size=primal.weights.size)
        w = primal.weights.copy()
        if len(w) != planes.delta.shape[1]:  # the padding stays zero
            rows = w.reshape(-1, _native.padded_labels(3, False))
            rows[:, 3:] = 0
            primal.weights[:] = w
        best = most_violated(planes, unpadded(primal.weights))
        result = primal.find()
        n = planes.n_examples
        assert result.oracle_calls == n
        loss, indptr, indices, values = primal.shares(groups)
        dense = csr_matrix((values, indices, indptr), shape=(groups, w.size)).toarray()
        for g in range(groups):
            mine = [i for i in range(n * g // groups, n * (g + 1) // groups) if best[i] >= 0]
            delta = sum((share[i] * planes.delta[best[i]] for i in mine), np.zeros(1))
            np.testing.assert_allclose(unpadded(dense[g]), delta + 0 * unpadded(w * 0), atol=1e-9)
            assert loss[g] == pytest.approx(sum(share[i] * planes.loss[best[i]] for i in mine))
        with pytest.raises(ValueError, match="group"):
            primal.shares(0)


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_cache_knows_the_last_outputs(limit, threads):
    for problem, planes, share, unpadded in problems(0):
        primal, rng = _native.Primal(problem, False), np.random.default_rng(1)
        assert primal.recall(threads).hinge == 0
        seen = [[] for _ in range(planes.n_examples)]
        for _ in range(6):
            w = rng.normal(size=unpadded(primal.weights).size)
            native = primal.weights.reshape(-1, primal.weights.size)
            if native.size == w.size:
                primal.weights[:] = w
            else:
                width = _native.padded_labels(3, False)
                primal.weights.reshape(-1, width)[:, :3] = w.reshape(-1, 3)
            primal.written()
            found = most_violated(planes, w)
            F = planes.loss - planes.delta @ w
            expected = sum(
                share[i] * max(0.0, max((F[p] for p in kept), default=0.0))
                for i, kept in enumerate(seen)
            )
            result = primal.recall(threads)
            assert result.hinge == pytest.approx(expected)
            assert result.oracle_calls == 0
            primal.find(threads)
            primal.remember(limit)
            for i, p in enumerate(found):
                if p >= 0:
                    seen[i] = [*(q for q in seen[i] if q != p), p][-limit:]
        example, size, codes = primal.cache()
        other = _native.Primal(problem, False)
        other.weights[:] = primal.weights
        other.restore_cache(example, size, codes)
        assert other.recall().hinge == primal.recall().hinge
        for k, (a, b) in enumerate(zip(other.cache(), (example, size, codes), strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=str(k))
        for bad in (
            (example + np.uint32(100), size, codes),
            (example, size[:-1], codes),
            (example, size, codes[:-1]),
            (example, size * np.uint32(0), codes),
        ):
            with pytest.raises(ValueError, match="cache is damaged"):
                other.restore_cache(*bad)
