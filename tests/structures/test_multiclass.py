"""Multiclass: oracle and predictions against brute force, the protocol, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Multiclass, NotCompatibleError, StructuralSVM, _native, check_structure
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.features.example_matrix import example_matrix
from maxmargin.solvers import SDM, solve
from maxmargin.structures.class_labels import encode_classes
from maxmargin.structures.native import NativeStructure, StoredStructure
from native_problems import Flat, everyone, listed_problem


def random_costs(rng, K):
    cost = rng.integers(0, 4, (K, K)).astype(float)
    np.fill_diagonal(cost, 0.0)
    return cost


def problem_of(rng, *, n, K, d, cost, kind):
    """Return a structure whose classes are numbers, with data of some kind."""
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = np.concatenate([np.arange(K), rng.integers(0, K, max(n - K, 0))])[:n]
    structure = Multiclass(loss=cost if cost is not None else "0/1", labels=list(range(K)))
    return structure, (X if kind == "dense" else scipy.sparse.csr_array(X)), X, y


# --- against brute force ---


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 20),
    st.sampled_from(["dense", "sparse"]),
    st.booleans(),
    st.booleans(),
)
def test_oracle_is_the_best_of_all_classes(seed, K, kind, costs, single):
    """The hinges that the engine sums are those of all classes written down."""
    rng = np.random.default_rng(seed)
    cost = random_costs(rng, K) if costs else None
    structure, X, rows, y = problem_of(rng, n=12, K=K, d=6, cost=cost, kind=kind)
    dtype = "float32" if single else "float64"
    problem, _ = structure.prepare_problem(X, y, dtype=dtype)
    C = 0.8
    engine = _native.Engine(problem, C, single)
    for _ in range(3):
        engine.exact_pass(everyone(12), _native.PassOptions())
        engine.cached_pass(everyone(12), _native.PassOptions())
    W = structure.unpack(engine.weights).astype(float)
    table = 1.0 - np.eye(K) if cost is None else cost
    scores = rows @ W
    own = scores[np.arange(12), y]
    hinges = (scores + table[y] - own[:, None]).max(axis=1)
    assert engine.hinge() == pytest.approx(hinges.sum(), rel=1e-4 if single else 1e-9, abs=1e-5)
    # Predictions, scores of all classes and of given ones, with one thread and with two.
    native = structure.native_weights(engine.weights)
    for n_jobs in (1, 2):
        found = structure.scores(X, native, n_jobs)
        np.testing.assert_allclose(found, scores, atol=1e-4 if single else 1e-10)
        np.testing.assert_array_equal(structure.predict_codes(X, native, n_jobs), found.argmax(1))
        assert structure.predict(X, native, n_jobs) == found.argmax(1).tolist()
        np.testing.assert_array_equal(
            structure.score_outputs(X, y, native, n_jobs), found[np.arange(12), y]
        )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("rescale", ["margin", "slack"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_formulations_agree_with_all_outputs_written_down(slack, rescale, bias, kind):
    rng = np.random.default_rng(5)
    cost = random_costs(rng, 4) + 0.5
    np.fill_diagonal(cost, 0.0)
    structure, X, rows, y = problem_of(rng, n=10, K=4, d=4, cost=cost, kind=kind)
    structure.bias = bias
    problem, _ = structure.prepare_problem(X, y, dtype="float64")
    if bias:
        rows = np.hstack([rows, np.full((len(rows), 1), bias)])
    listed = listed_problem(Flat(cost, rows.shape[1]), list(rows), y.tolist())
    solver = SDM(slack=slack, rescale=rescale)
    asked = {"C": 0.5, "gap": 1e-6, "dtype": "float64", "max_passes": 20_000}
    native, written = solve(problem, solver, **asked), solve(listed, solver, **asked)
    assert not native.certificate.approximate
    assert native.certificate.primal == pytest.approx(written.certificate.primal, rel=3e-6)
    # The weights of classes add up to zero for every feature: only differences are learned.
    np.testing.assert_allclose(structure.unpack(native.weights).sum(axis=1), 0, atol=1e-9)


def test_visits_with_many_kept_classes():
    """So many planes that whole rows of weights are read in the place of columns."""
    rng = np.random.default_rng(2)
    structure, X, rows, y = problem_of(rng, n=30, K=12, d=3, cost=None, kind="sparse")
    problem, _ = structure.prepare_problem(X, y, dtype="float64")
    found = solve(problem, SDM(), C=5.0, gap=1e-6, dtype="float64", max_passes=20_000)
    listed = listed_problem(Flat(1 - np.eye(12), 3), list(rows), y.tolist())
    other = solve(listed, SDM(), C=5.0, gap=1e-6, dtype="float64", max_passes=20_000)
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-6)


def test_thousands_of_classes():
    """Memory is that of the weights: no array of examples by classes is made in training."""
    rng = np.random.default_rng(0)
    K, n = 3000, 6000
    X = scipy.sparse.random_array((n, 50), density=0.1, rng=rng, format="csr")
    y = np.arange(n) % K
    structure = Multiclass()
    problem, _ = structure.prepare_problem(X, y)
    name, n_bytes = structure.memory_needed("float32")
    assert "3000 classes" in name
    assert n_bytes == 2 * 50 * 3000 * 4 + 50 * 3000 * 8
    found = solve(problem, SDM(), C=1.0, gap=0.5, max_passes=6, warn=False)
    W = structure.unpack(found.weights).astype(float)
    scores = X @ W
    own = scores[np.arange(n), y].copy()
    scores += 1.0
    scores[np.arange(n), y] -= 1.0
    primal = 0.5 * (W**2).sum() + (scores.max(axis=1) - own).sum()
    assert found.certificate.primal == pytest.approx(primal, rel=1e-6)
    assert found.engine.size()["bytes"] < 40e6


# --- the protocol ---


def test_the_protocol_and_structural_svm():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    y = [("low", "mid", "high")[int(k)] for k in np.clip(X[:, 0] + 1, 0, 2)]
    cost = {("low", "high"): 3.0, ("high", "low"): 3.0}
    structure = Multiclass(loss=cost, bias=1.0)
    assert isinstance(structure, NativeStructure)
    assert isinstance(structure, StoredStructure)
    report = check_structure(structure, list(X), y)
    assert report.ok, str(report)
    assert structure.classes_ == [], "a copy is checked"
    model = StructuralSVM(structure, C=1.0, gap=1e-4, dtype="float64").fit(X, y)
    fitted = model.structure_
    assert fitted.classes_ == ["high", "low", "mid"]
    assert fitted.loss("low", "high") == 3.0
    assert fitted.loss("low", "mid") == 1.0
    w = fitted.unpack(model.weights_).ravel()
    for x, label, score in zip(X, model.predict(X), fitted.scores(X, model.weights_), strict=True):
        assert label == fitted.argmax(x, w)
        assert score.max() == pytest.approx(fitted.score(x, label, w))
        values = [fitted.loss("low", c) + fitted.score(x, c, w) for c in fitted.classes_]
        assert fitted.argmax(x, w, "low") == fitted.classes_[int(np.argmax(values))]
    assert model.score(X, y) > -0.3
    sparse = [scipy.sparse.csr_array(row.reshape(1, -1)) for row in X]
    assert model.predict(sparse).tolist() == model.predict(X).tolist()


def test_not_prepared():
    with pytest.raises(NotCompatibleError, match="knows no classes"):
        Multiclass().predict(np.ones((1, 1)), np.zeros(8), 1)


# --- labels ---


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (np.array([3, 1, 3]), [1, 3]),
        (np.array(["x", "y"]), ["x", "y"]),
        ([True, False], [False, True]),
        ([("a", 1), ("a", 0)], [("a", 0), ("a", 1)]),
        ([None, "a", 2], [None, "a", 2]),  # not to be sorted: by appearance
    ],
)
def test_any_hashable_labels(y, classes):
    codes, found = encode_classes(y)
    assert found == classes
    assert [found[c] for c in codes] == [v.item() if isinstance(v, np.generic) else v for v in y]


@pytest.mark.parametrize(
    ("y", "labels", "error", "message"),
    [
        ([["a"], ["b"]], None, TypeError, "example 0 has the label .* cannot be hashed"),
        (["a", {}], None, TypeError, "example 1"),
        (["a", float("nan")], None, ValueError, "example 1 has the label NaN"),
        ("abc", None, TypeError, "y is a str"),
        (7, None, TypeError, "y is a int"),
        (None, None, ValueError, "y is None"),
        (np.zeros((2, 2)), None, ValueError, "shape"),
        (["a", "c"], ["a", "b"], ValueError, "example 1 has the label 'c'"),
        (["a"], ["a", "a"], ValueError, "twice"),
        (["a"], [], ValueError, "labels is empty"),
    ],
)
def test_labels_that_are_refused(y, labels, error, message):
    with pytest.raises(error, match=message):
        encode_classes(y, labels)


# --- inputs ---


def test_matrices_of_all_kinds_are_the_same():
    X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    twice = scipy.sparse.coo_array(([1.0, 1.0, 1.0, 3.0], ([0, 0, 1, 1], [1, 1, 0, 2])), (2, 3))
    for given_ in (X, X.tolist(), X.astype(np.float32), X.astype(int), list(X), twice):
        found = example_matrix(given_)
        dense = found if isinstance(found, np.ndarray) else found.toarray()
        np.testing.assert_array_equal(dense, X)
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        found = example_matrix(scipy.sparse.csr_array(X).asformat(form))
        assert found.format == "csr"
        assert found.has_sorted_indices
        np.testing.assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[1.0, np.nan]], ValueError, "example 0, column 1 is NaN"),
        ([[1.0], [np.inf]], ValueError, "example 1, column 0 is inf"),
        ([[2e12]], ValueError, "at most 1e12"),
        (scipy.sparse.csr_array([[0.0, 0.0], [0.0, np.nan]]), ValueError, "example 1, column 1"),
        ([1.0, 2.0], ValueError, "1 dimension"),
        ([[1.0], [1.0, 2.0]], TypeError, "same length"),
        ([["a"]], TypeError, "numbers"),
        (np.array([[1j]]), TypeError, "real numbers"),
        (np.zeros((0, 3)), ValueError, "no rows"),
        (np.zeros((3, 0)), ValueError, "0 feature"),
        (None, ValueError, "dimension"),
    ],
)
def test_matrices_that_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        example_matrix(X)


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, np.ones((2, 1)), ["a", "a"], "one class only"),
        ({}, np.ones((3, 1)), ["a", "b"], "3 examples and y has 2"),
        ({"loss": np.ones((3, 3))}, np.ones((2, 1)), ["a", "b"], r"expected \(2, 2\)"),
        ({"loss": np.ones((2, 2))}, np.ones((2, 1)), ["a", "b"], "0 for the truth"),
        ({"loss": [[0, -1], [1, 0]]}, np.ones((2, 1)), ["a", "b"], "from 0 to 1e12"),
        ({"loss": {("a", "z"): 1}}, np.ones((2, 1)), ["a", "b"], "no label 'z'"),
        ({"loss": "hamming"}, np.ones((2, 1)), ["a", "b"], 'expected "0/1"'),
        ({"bias": -1.0}, np.ones((2, 1)), ["a", "b"], "bias is -1.0"),
        ({"bias": "x"}, np.ones((2, 1)), ["a", "b"], "bias is 'x'"),
    ],
)
def test_what_prepare_refuses(options, X, y, message):
    structure = Multiclass(**options)
    with pytest.raises(ValueError, match=message):
        structure.prepare(X, y)
    assert structure.classes_ == [], "nothing is half prepared"


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0], ValueError, "shape"),
        ([1.0, -1.0], ValueError, "example 1 is -1"),
        ([1.0, np.nan], ValueError, "example 1 is nan"),
        ([0.0, 0.0], ValueError, "zero for all"),
        (["a", "b"], TypeError, "numbers"),
    ],
)
def test_weights_that_are_refused(weights, error, message):
    with pytest.raises(error, match=message):
        Multiclass().prepare_problem(np.ones((2, 1)), ["a", "b"], weights)


# --- texts ---


TEXTS = ["The cat sat.", "A dog, a dog!", "the dog sat", "Über cat"]


@pytest.mark.parametrize("weighting", ["tfidf", "log", "counts", "binary"])
@pytest.mark.parametrize("ngrams", [1, 2])
def test_bag_of_words_by_hand(weighting, ngrams):
    bag = BagOfWords(ngrams=ngrams, min_count=2, weighting=weighting)
    X = bag.fit_transform(TEXTS).toarray()
    names = ["cat", "dog", "sat", "the"]
    assert bag.names() == names
    counts = np.array([[1, 0, 1, 1], [0, 2, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]], dtype=float)
    expected = counts.copy()
    if weighting == "binary":
        expected = (counts > 0).astype(float)
    elif weighting != "counts":
        with np.errstate(divide="ignore"):
            expected = np.where(counts > 0, 1 + np.log(counts), 0)
        if weighting == "tfidf":
            expected *= 1 + np.log(5 / (1 + (counts > 0).sum(axis=0)))
        expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(X, expected, rtol=1e-6)
    np.testing.assert_array_equal(bag.transform(TEXTS).toarray(), X.astype(np.float32))
    assert bag.transform(["nothing known", ""]).nnz == 0


def test_ngrams_and_case():
    bag = BagOfWords(ngrams=3, weighting="binary", lowercase=False)
    bag.fit_transform(["a B c"])
    assert bag.names() == sorted(["a", "B", "c", "a B", "B c", "a B c"])


@pytest.mark.parametrize("weighting", ["tfidf", "counts"])
def test_words_survive_their_state(weighting):
    bag = BagOfWords(ngrams=2, weighting=weighting)
    X = bag.fit_transform(TEXTS)
    other = BagOfWords.restore(*bag.state())
    assert other.names() == bag.names()
    np.testing.assert_array_equal(other.transform(TEXTS).toarray(), X.toarray())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m, a: m.pop("ngrams"), KeyError),
        (lambda m, a: m.update(ngrams="2"), ValueError),
        (lambda m, a: m.update(weighting="x"), ValueError),
        (lambda m, a: m.update(lowercase=1), TypeError),
        (lambda m, a: m.update(n_words=3), ValueError),
        (lambda m, a: a.pop("names"), KeyError),
        (lambda m, a: a.update(names=np.array([255, 254], np.uint8)), ValueError),
        (lambda m, a: a.update(names=np.frombuffer(b"a\na", np.uint8)), ValueError),
        (lambda m, a: a.update(idf=np.ones(2)), ValueError),
        (lambda m, a: a.update(idf=a["idf"] * np.nan), ValueError),
        (lambda m, a: a.update(idf=a["idf"] * 1e-300), ValueError),  # its square is zero
        (lambda m, a: a.pop("idf"), KeyError),
    ],
)
def test_damaged_words_are_refused(change, error):
    bag = BagOfWords()
    bag.fit_transform(TEXTS)
    meta, arrays = bag.state()
    change(meta, arrays)
    with pytest.raises(error):
        BagOfWords.restore(meta, arrays)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", TypeError, "expected a list of texts"),
        (["a", 3], TypeError, "example 1 is a int"),
        ([], ValueError, "empty"),
        (["...", ""], ValueError, "no word occurs"),
    ],
)
def test_texts_that_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        BagOfWords().fit_transform(X)


@pytest.mark.parametrize(
    "options",
    [{"ngrams": 0}, {"ngrams": 1.5}, {"min_count": 0}, {"weighting": "x"}],
)
def test_options_of_words_that_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        BagOfWords(**options)


# --- state ---


def prepared(**options):
    structure = Multiclass(**options)
    structure.prepare(np.eye(3), ["a", "b", "c"])
    return structure


@pytest.mark.parametrize("loss", ["0/1", 2 - 2 * np.eye(3)], ids=["0/1", "costs"])
def test_state_and_back(loss):
    structure = prepared(loss=loss, bias=0.5)
    other = Multiclass.restore(*structure.state())
    assert other.classes_ == structure.classes_
    assert (other.n_columns_, other.bias, other.n_features) == (3, 0.5, 12)
    assert other.loss("a", "b") == structure.loss("a", "b")


@pytest.mark.parametrize(
    "change",
    [
        lambda m, a: m.pop("classes"),
        lambda m, a: m.update(classes=[]),
        lambda m, a: m.update(classes=["a"]),
        lambda m, a: m.update(classes=["a", "a", "b"]),
        lambda m, a: m.update(classes=["a", {"x": 1}, "b"]),
        lambda m, a: m.update(classes=["a", [1], "b"]),
        lambda m, a: m.update(n_columns=0),
        lambda m, a: m.update(n_columns=2**40),
        lambda m, a: m.update(n_columns=True),
        lambda m, a: m.update(bias=float("nan")),
        lambda m, a: m.update(bias=-1),
        lambda m, a: m.update(words=3),
        lambda m, a: a.update(cost=np.ones((3, 3))),
        lambda m, a: a.update(cost=np.zeros((2, 2))),
    ],
)
def test_damaged_states_are_refused(change):
    meta, arrays = prepared().state()
    change(meta, arrays)
    with pytest.raises((ValueError, TypeError, KeyError)):
        Multiclass.restore(meta, arrays)


def test_weights_of_another_size_are_refused():
    structure = prepared()
    with pytest.raises(ValueError, match="expected 24 for 3 features and 3 classes"):
        structure.native_weights(np.zeros(7, np.float32))
    moved = np.zeros(25, np.float32)[1:]
    moved[:] = np.arange(24)
    aligned = structure.native_weights(moved)
    np.testing.assert_array_equal(aligned, moved)
    assert aligned.ctypes.data % 32 == 0
