"""Imputing what a truth leaves open, against trying all outputs that cost nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Chain, Multiclass, _native
from maxmargin.structures.latent import Latent
from maxmargin.structures.latent_rows import LatentRows

SEEDS = st.integers(0, 10**6)


def chain_case(seed, states, labels=3, n=4):
    """Return a chain with states over random sequences, and what it was made of."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(n)]
    Y = [[int(y) for y in rng.integers(labels, size=len(x))] for x in X]
    Y[0][0] = labels - 1
    latent = Latent(Chain(labels=list(range(labels))), states=states)
    return rng, X, Y, latent


def completions(pairs, y):
    """Return all sequences of pairs, as their numbers, with the labels y."""
    choices = [[k for k, (label, _) in enumerate(pairs) if label == a] for a in y]
    return [list(z) for z in itertools.product(*choices)]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([2, 3, {0: 2, 2: 3}]), st.sampled_from(["float32", "float64"]))
def test_a_chain_imputes_the_best_states(seed, states, dtype):
    rng, X, Y, latent = chain_case(seed, states)
    training = latent.prepare_training(X, Y, start="random", rng=rng, dtype=dtype)
    chain, pairs = latent.prepared.inner, latent.prepared.labels.pairs_
    w = rng.normal(size=chain.n_features)
    native = chain.pad(w, dtype)
    plain = chain.plain_vector(np.array(native, dtype=np.float64))  # as it was rounded
    values, _ = training.imputer.impute(native, 2)
    found = latent.complete(X, native, 1, Y)
    wanted = np.zeros(chain.n_features)

    def features(x, z):
        dense = np.zeros(chain.n_features)
        indices, numbers = chain.joint_feature(x, z)
        np.add.at(dense, indices, numbers)
        return dense

    codes = training.prepared.parts["labels"]
    at = 0
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        reference = [chain.labels_[int(code)] for code in codes[at : at + len(y)]]
        at += len(y)
        listed = completions(pairs, y)
        scores = [plain @ features(x, z) for z in listed]
        best = int(np.argmax(scores))
        assert values[i] == pytest.approx(scores[best] - plain @ features(x, reference), abs=1e-4)
        assert [label for label, _ in found[i]] == y
        own = [pairs.index(pair) for pair in found[i]]
        assert plain @ features(x, own) == pytest.approx(scores[best], abs=1e-4)
        wanted += 0.7 * (features(x, own) - features(x, reference))
    term = training.imputer.linear_term(0.7, dtype == "float32")
    assert term.dtype == np.float64
    assert len(term) == chain.n_weights(dtype)
    np.testing.assert_allclose(chain.plain_vector(term), wanted, atol=1e-5)
    # The second time nothing changes, in either precision.
    assert training.imputer.impute(native, 1)[1] == 0
    assert float(chain.plain_vector(term) @ plain) == pytest.approx(0.7 * values.sum(), abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_classes_impute_the_best_sub_class(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 3))
    y = ["a", "b", "a", "c", "b", "a"]
    latent = Latent(Multiclass(bias=1.0), states=2)
    training = latent.prepare_training(X, y, start="random", rng=rng, dtype="float64")
    inner, pairs = latent.prepared.inner, latent.prepared.labels.pairs_
    w = inner.native_weights(
        np.ascontiguousarray(inner.native_vector(rng.normal(size=inner.n_features), "float64"))
    )
    values, _ = training.imputer.impute(w, 1)
    scores = inner.scores(X, w)
    found = latent.complete(X, w, 1, y)
    references = training.prepared.parts["labels"]
    for i, label in enumerate(y):
        own = {k: scores[i][k] for k, pair in enumerate(pairs) if pair[0] == label}
        best = max(own, key=own.get)
        assert values[i] == pytest.approx(own[best] - scores[i][references[i]], abs=1e-9)
        assert found[i] == pairs[best]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_rows_impute_the_best_row_of_positive_examples(seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(6)]
    y = [0, 1, 1, 0, 1, 1]
    structure = LatentRows(bias=1.0)
    training = structure.prepare_training(X, y, start="random", rng=rng, dtype="float64")
    w = rng.normal(size=4)
    values, _ = training.imputer.impute(w, 1)
    parts = training.prepared.parts
    for i, x in enumerate(X):
        scores = np.column_stack([x, np.ones(len(x))]) @ w
        if y[i] == 0:
            assert values[i] == 0.0
            continue
        chosen = int(parts["offsets"][i] + parts["chosen"][i])
        entries = slice(int(parts["indptr"][chosen]), int(parts["indptr"][chosen + 1]))
        reference = parts["values"][entries] @ w[parts["indices"][entries]]
        assert values[i] == pytest.approx(scores.max() - reference, abs=1e-9)


def test_examples_of_weight_zero_have_no_part_in_the_linear_term():
    rng, X, Y, latent = chain_case(5, 3)
    training = latent.prepare_training(X, Y, start="random", rng=rng, dtype="float64")
    chain = latent.prepared.inner
    training.imputer.impute(chain.pad(rng.normal(size=chain.n_features)), 1)
    training.factors[:] = 0.0
    assert not training.imputer.linear_term(1.0, False).any()


def test_what_is_not_imputed_is_refused():
    X, Y = [np.ones((2, 3))], [["a", "b"]]
    kernel = Chain(kernel="rbf").prepare_problem(X, Y).problem
    with pytest.raises(ValueError, match="kernel"):
        _native.Imputer(kernel)
    chain = Chain()
    chain.prepare(X, Y)
    unlabelled = chain.encoded_problem(chain.encoder.transform(X))
    with pytest.raises(ValueError, match="labels"):
        _native.Imputer(unlabelled)
    imputer = _native.Imputer(chain.make_problem(X, Y))
    with pytest.raises(ValueError, match="not those of this problem"):
        imputer.impute(np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        imputer.impute(np.full(chain.n_weights("float64"), np.nan))


def test_the_slacks_of_an_engine():
    _, X, Y, latent = chain_case(2, 2)
    training = latent.prepare_training(X, Y, start="first", dtype="float64")
    engine = _native.Engine(training.prepared.problem, 1.0, single=False)
    np.testing.assert_allclose(engine.slacks(2), [len(y) for y in Y])  # at w = 0
