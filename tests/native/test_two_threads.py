"""Everything native that uses several threads, with two: the same as with one.

``make sanitize-threads`` runs this file under the thread sanitizer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin import SequenceTagger, _native
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template import Template
from maxmargin.regularizers import L2, ElasticNet, Regularizer
from maxmargin.solvers import SDM, OneSlack, Solver, Subgradient, solve
from native_problems import random_case

LENGTHS = (4, 7, 1, 12, 3, 9, 2, 5) * 5

#: Features without a token, so that loops over the weights are long enough for several threads.
MANY = 200_000


@pytest.fixture(scope="module")
def case() -> Any:
    return random_case(np.random.default_rng(0), n_labels=4, lengths=LENGTHS, noise=0.3)


def engines(case: Any, single: bool) -> tuple[_native.Engine, _native.Engine]:
    one, two = (_native.Engine(case.problem(), 0.5, single=single) for _ in range(2))
    order = np.arange(len(LENGTHS), dtype=np.uint32)
    for engine in (one, two):
        engine.exact_pass(order, _native.PassOptions())
    return one, two


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_engine(case: Any, single: bool) -> None:
    one, two = engines(case, single)
    order = np.arange(len(LENGTHS), dtype=np.uint32)
    for _ in range(3):
        found = [one.collect_pass(1), two.collect_pass(2)]
        assert found[0].gap == pytest.approx(found[1].gap, rel=1e-12)
        assert found[0].added == found[1].added
        for engine in (one, two):
            engine.cached_pass(order, _native.PassOptions())
        assert np.array_equal(one.weights, two.weights)
    assert one.hinge(1) == two.hinge(2)
    assert np.array_equal(one.slacks(1), two.slacks(2))
    assert one.certify(1) == two.certify(2)


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_primal(case: Any, single: bool) -> None:
    one, two = (_native.Primal(case.problem(), single) for _ in range(2))
    rng = np.random.default_rng(1)
    for primal in (one, two):
        primal.weights[:] = 0.0
    step = 0.1 * rng.normal(size=one.weights.size).astype(one.weights.dtype)
    for _ in range(3):
        assert one.sweep(1).hinge == two.sweep(2).hinge
        assert np.array_equal(one.plane, two.plane)
        for primal in (one, two):
            primal.weights[:] = primal.weights + step
    assert one.exact_hinge(1) == two.exact_hinge(2)


@pytest.mark.parametrize("groups", [1, 3, 8])
def test_planes_of_groups(case: Any, groups: int) -> None:
    """Each group is summed by one thread, whichever it is."""
    one, two = (_native.Primal(case.problem()) for _ in range(2))
    for _ in range(2):
        for primal, threads in ((one, 1), (two, 2)):
            primal.find(threads)
        a, b = one.shares(groups, 1), two.shares(groups, 2)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
        for primal in (one, two):
            primal.weights[:] += 0.01
            primal.written()


def test_hinge_of_some_examples(case: Any) -> None:
    primal = _native.Primal(case.problem())
    some = np.arange(0, len(LENGTHS), 3, dtype=np.uint32)
    one, three = primal.hinge_of(some, 1), primal.hinge_of(some, 3)
    assert one.hinge == three.hinge > 0
    assert one.oracle_calls == three.oracle_calls == len(some)


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_plane_store(single: bool) -> None:
    n, rng = 700_000, np.random.default_rng(2)
    dtype = np.float32 if single else np.float64
    stores = [_native.PlaneStore(n, single) for _ in range(3)]
    for _ in range(6):
        # As features that come first are met most.
        rows = [np.unique((n * rng.random(60_000) ** 2).astype(np.uint32)) for _ in range(3)]
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.concatenate(rows)
        values = rng.normal(size=len(indices)).astype(dtype)
        for threads, store in enumerate(stores, 1):
            store.add(indptr, indices, values, threads)
        alpha, w = rng.random(len(stores[0])), rng.normal(size=n).astype(dtype)
        outs = [np.full(n, 7, dtype) for _ in stores]
        for threads, (store, out) in enumerate(zip(stores, outs, strict=True), 1):
            store.combine(alpha, out, threads)
            np.testing.assert_array_equal(out, outs[0])
            np.testing.assert_array_equal(store.gram(), stores[0].gram())
            np.testing.assert_array_equal(store.multiply(w, threads), stores[0].multiply(w))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 5, 1_000_003])
def test_sums_over_weights(dtype: Any, n: int) -> None:
    a, b = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
    outs = [np.empty(n, dtype) for _ in range(3)]
    sums = [_native.blend(a, b, 0.3, out, k) for k, out in enumerate(outs, 1)]
    assert sums[0] == sums[1] == sums[2] == _native.square(outs[0], 2)
    assert sums[0] == pytest.approx(float(np.sum(outs[0].astype(float) ** 2)), rel=1e-12)
    for out in outs:
        np.testing.assert_array_equal(out, outs[0])


@pytest.mark.filterwarnings("ignore::maxmargin.ConvergenceWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("solver", "regularizer"),
    [
        (OneSlack(), L2()),
        (OneSlack(cuts=1, stabilize="proximal", cache=3), L2()),
        (Subgradient(sample=20), L2()),
        (SDM(), L2()),
        (SDM(), ElasticNet(l1_ratio=0.3)),
    ],
    ids=["search", "proximal", "subgradient", "dual", "elastic"],
)
def test_training_with_many_weights(
    case: Any, solver: Solver, regularizer: Regularizer, dtype: str
) -> None:
    """Bit for bit the same weights and certificate."""
    problem = case.problem(n_sparse=MANY)
    one, two = (
        solve(
            problem,
            solver,
            C=0.2,
            regularizer=regularizer,
            gap=0.0,
            max_passes=6,
            n_jobs=n,
            random_state=0,
            dtype=dtype,
        )
        for n in (1, 2)
    )
    assert len(one.weights) > MANY
    assert np.array_equal(one.weights, two.weights)
    assert one.certificate.primal == two.certificate.primal
    assert one.certificate.dual == two.certificate.dual


def sentences(n: int = 300, seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [f"w{k}" for k in rng.integers(0, 80, rng.integers(1, 12))]
        X.append([{"word": w, "number": float(len(w)), "same": [w, w]} for w in words])
        y.append(["even" if int(w[1:]) % 2 == 0 else "odd" for w in words])
    return X, y


@pytest.mark.parametrize("hash_bits", [None, 8])
def test_names_are_looked_up_in_another_thread(hash_bits: int | None) -> None:
    X, _ = sentences(2000)
    one, two = (FeatureEncoder(hash_bits=hash_bits, threads=n) for n in (1, 2))
    for call in ("fit_transform", "transform"):
        a, b = (getattr(encoder, call)(X) for encoder in (one, two))
        for name in ("offsets", "indptr", "indices", "values"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
    if hash_bits is None:
        assert one.feature_names() == two.feature_names()


def test_an_error_of_either_thread_is_that_of_one() -> None:
    """The first error in the data is raised, whichever thread finds it."""
    for place in (0, 500, 1999):
        for bad, what in (({"x": [1]}, TypeError), (None, TypeError)):
            X, _ = sentences(2000)
            X[place] = [bad]
            said = []
            for threads in (1, 2):
                with pytest.raises(what, match=f"sequence {place}, token 0") as caught:
                    FeatureEncoder(threads=threads).fit_transform(X)
                said.append(str(caught.value))
            assert said[0] == said[1]


def test_a_sum_that_is_too_large_is_named() -> None:
    X, _ = sentences(200)
    large = {"a": {"b": 9e11}, "a:b": 9e11}
    for later in (None, [None]):  # an error of the reader behind it does not come first
        X[120].append(large)
        if later is not None:
            X[121] = later
        said = []
        for threads in (1, 2):
            said_where = r"sequence 120, token .*'a:b': its values"
            with pytest.raises(ValueError, match=said_where) as caught:
                FeatureEncoder(threads=threads).fit_transform(X)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_tagger_trains_and_predicts() -> None:
    X, y = sentences()
    one, two = (SequenceTagger(C=0.3, gap=1e-3, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.weights_, two.weights_)
    assert [list(p) for p in one.predict(X)] == [list(p) for p in two.predict(X)]


def test_templates_expand() -> None:
    X = [[[f"w{k % 17}", "AB"[k % 2]] for k in range(n % 9 + 1)] for n in range(200)]
    y = [[row[1] for row in sequence] for sequence in X]
    template = Template.parse("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB")
    one, two = (
        SequenceTagger(C=0.3, template=template, n_jobs=n, random_state=0) for n in (1, 2)
    )
    assert np.array_equal(one.fit(X, y).weights_, two.fit(X, y).weights_)
