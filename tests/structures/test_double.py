"""With dtype="float64" no number of the data loses precision on its way to the certificate."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse

from maxmargin import SequenceTagger, load
from maxmargin._native import FeatureKernel
from maxmargin.features import FeatureEncoder
from maxmargin.solvers import SDM, solve
from maxmargin.structures.chain import Chain
from native_problems import random_case

LENGTHS = (3, 2, 4, 1, 3, 2)
D = 5


def data(seed=0):
    """Values and weights that no 4-byte float holds."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7) for n in LENGTHS]
    Y = [["ABC"[k] for k in rng.integers(0, 3, n)] for n in LENGTHS]
    W = [rng.random(n) + 0.1 for n in LENGTHS]
    return X, Y, W


def as_dicts(X):
    return [[{f"f{j}": float(v) for j, v in enumerate(row) if v != 0} for row in x] for x in X]


def as_matrices(X):
    return [scipy.sparse.csr_array(x) for x in X]


KINDS = {"dicts": as_dicts, "matrices": as_matrices, "arrays": list}


def exact_primal(model, X, Y, W):
    """½‖w‖² + C Σ max over all labellings, in 8-byte numbers from the data as they are."""
    parts = model.structure_.unpack(model.weights_)
    labels = model.structure_.labels_
    order = [int(name[-1]) for name in model.structure_.encoder.feature_names()]
    total = 0.0
    for x, y, weight in zip(X, Y, W, strict=True):
        unary = x[:, order] @ parts.coef
        truth = [labels.index(label) for label in y]

        def score(path, unary=unary, truth=truth, weight=weight):
            value = parts.start[path[0]] + parts.end[path[-1]]
            value += sum(unary[t, k] + weight[t] * (k != truth[t]) for t, k in enumerate(path))
            return value + sum(parts.transitions[a, b] for a, b in itertools.pairwise(path))

        best = max(score(p) for p in itertools.product(range(3), repeat=len(y)))
        total += best - score(truth)
    return 0.5 * float(np.sum(np.asarray(model.weights_) ** 2)) + model.C * total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_is_that_of_the_data_as_they_are(kind, weighted):
    X, Y, W = data()
    model = SequenceTagger(dtype="float64", C=2.0, gap=1e-10, max_passes=3000)
    model.fit(KINDS[kind](X), Y, **({"token_weight": W} if weighted else {}))
    ones = [np.ones(n) for n in LENGTHS]
    primal = exact_primal(model, X, Y, W if weighted else ones)
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-13)
    assert model.certificate_.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["dicts", "matrices"])
def test_scores_of_float64_models_are_of_the_values_as_they_are(kind, tmp_path):
    X, Y, _ = data()
    model = SequenceTagger(dtype="float64").fit(KINDS[kind](X), Y)
    encoded = model.structure_.encoder.transform(KINDS[kind](X))
    assert encoded.values.dtype == np.float64
    assert set(encoded.values.tolist()) == {v for x in X for v in x.ravel().tolist() if v != 0}
    model.save(tmp_path / "model.mm")
    for other in (load(tmp_path / "model.mm"), pickle.loads(pickle.dumps(model))):
        assert other.structure_.encoder.transform(KINDS[kind](X)).values.dtype == np.float64


def test_float32_stays_as_small_as_it_was():
    X, Y, W = data()
    for kind in ("dicts", "matrices"):
        chain = Chain()
        parts = chain.prepare_problem(KINDS[kind](X), Y, W).parts
        assert parts["values"].dtype == np.float32
        assert parts["token_weight"].dtype == np.float32
        assert parts["values64"] is None
        assert parts["token_weight64"] is None
        parts = chain.prepare_problem(KINDS[kind](X), Y, W, dtype="float64").parts
        assert parts["values64"].dtype == np.float64
        assert parts["token_weight64"].dtype == np.float64
        assert parts["values"] is None
        assert parts["token_weight"] is None


@pytest.mark.parametrize("options", [{"min_count": 2}, {"hash_bits": 4}])
def test_renumbered_values_stay_as_they_are(options):
    X, _, _ = data()
    encoder = FeatureEncoder(**options)
    encoder.double = True
    batch = encoder.fit_transform(as_dicts(X))
    assert batch.values.dtype == np.float64
    assert set(batch.values.tolist()) <= {v for x in X for v in x.ravel().tolist()}
    assert encoder.transform(as_dicts(X)).values.tolist() == batch.values.tolist()
    assert batch.take(np.array([1])).values.dtype == np.float64


@pytest.mark.parametrize("single", [True, False])
def test_native_training_with_8_byte_values_is_that_with_4_byte_ones(single):
    # values that 4 bytes hold: the two ways to store them must give the same bits
    case = random_case(
        np.random.default_rng(0), lengths=(5, 3, 6, 4), features="values", weighted=True
    )
    values, weight = case.arrays["values"], case.arrays["token_weight"]
    wide = case.problem(
        values=None,
        token_weight=None,
        values64=values.astype(float),
        token_weight64=weight.astype(float),
    )
    options = {"C": 1.0, "gap": 1e-3, "random_state": 0, "warn": False}
    options |= {"dtype": "float32" if single else "float64", "max_passes": 30}
    # the schedule of the paper does not count work, which depends on how wide values are
    solver = SDM("paper", tau=1e-6, tau_inner=1e-6, kappa1=2)
    one, two = solve(case.problem(), solver, **options), solve(wide, solver, **options)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.certificate == two.certificate
    assert case.problem().data_hash() != wide.data_hash()


@pytest.mark.parametrize("kind", ["linear", "poly", "rbf"])
def test_a_kernel_of_8_byte_values(kind):
    X, _, _ = data()
    x = np.concatenate(X)
    sparse = scipy.sparse.csr_array(x)
    rows = {"indptr": sparse.indptr.astype(np.int64), "indices": sparse.indices.astype(np.uint32)}
    by_rows = FeatureKernel(kind, 0.5, 1.0, 2, D, **rows, values64=sparse.data)
    by_columns = FeatureKernel(kind, 0.5, 1.0, 2, 0, dense=x)
    every = np.arange(len(x), dtype=np.uint32)
    np.testing.assert_allclose(by_rows.rows(every), by_columns.rows(every), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        by_rows.block(every, every), by_columns.rows(every), rtol=1e-13, atol=1e-15
    )
    others = by_rows.rows_of(**rows, values64=sparse.data)
    np.testing.assert_allclose(others, by_columns.rows(every), rtol=1e-13, atol=1e-15)


def test_a_tagger_with_a_kernel_of_8_byte_values():
    X, Y, W = data()
    options = {"dtype": "float64", "C": 0.5, "gap": 1e-6, "kernel": "poly"}
    first = SequenceTagger(**options).fit(as_dicts(X), Y, token_weight=W)
    second = SequenceTagger(**options).fit(list(X), Y, token_weight=W)
    assert first.certificate_.primal == pytest.approx(second.certificate_.primal, rel=2e-6)
    assert first.predict(as_dicts(X)).tolist() == second.predict(list(X)).tolist()
