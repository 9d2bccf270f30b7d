"""Chains with kernels: what is learned, what is kept of it, and what is refused."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import Chain, ElasticNet, Kernel, SequenceTagger, StructuralSVM
from maxmargin.errors import ConvergenceWarning, NotCompatibleError, StructureError
from maxmargin.features import FeatureEncoder
from maxmargin.solvers import SDM, solve
from maxmargin.structures.kernels import KernelWeights
from maxmargin.structures.tokens import distinct_tokens, token_matrix, token_variance
from native_problems import viterbi

WORDS = ("a", "b", "c", "d", "e", "f", "g")


def rings(n, seed=0, longest=6):
    """Tokens in the plane, labelled by their distance from the origin: nothing linear helps."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, longest + 1), 2)) for _ in range(n)]
    y = [np.digitize((x**2).sum(axis=1), [0.7, 2.0]).tolist() for x in X]
    return X, y


def halves(n, seed=0):
    """Tokens in the plane, labelled by the side of a line that they are on, with some errors."""
    X, _ = rings(n, seed)
    wrong = np.random.default_rng(seed + 100)
    return X, [[int(a > b) if wrong.random() < 0.9 else 2 for a, b in x] for x in X]


def texts(n, seed=0):
    """Tokens of two or three strings, few enough that many tokens are alike."""
    rng = np.random.default_rng(seed)
    X = [
        [sorted({*rng.choice(WORDS, 2), "bias"}) for _ in range(rng.integers(1, 6))]
        for _ in range(n)
    ]
    y = [["AB"["a" in t or "b" in t] + "x"[: "c" in t and "d" in t] for t in x] for x in X]
    return X, y


def tagger(**options):
    defaults = {"C": 0.7, "gap": 1e-6, "max_passes": 20000, "dtype": "float64", "random_state": 0}
    return SequenceTagger(**{**defaults, **options})


def certified(model):
    return np.array([model.certificate_.primal, model.certificate_.dual])


# --- the same model in two ways ---


@pytest.mark.parametrize("data", [halves, texts])
@pytest.mark.parametrize(("dtype", "gap"), [("float32", 1e-5), ("float64", 5e-7)])
def test_a_linear_kernel_is_the_plain_chain(data, dtype, gap):
    X, y = data(40)
    options = {"C": 0.1, "dtype": dtype, "gap": gap}
    plain = tagger(**options).fit(X, y)
    through = tagger(**options, kernel=Kernel("linear")).fit(X, y)
    np.testing.assert_allclose(certified(through), certified(plain), rtol=2 * gap)
    for name in ("transitions_", "start_", "end_"):
        np.testing.assert_allclose(getattr(through, name), getattr(plain, name), atol=1e-2)
    more, _ = data(30, seed=1)
    assert through.predict(more).tolist() == plain.predict(more).tolist()


def quadratic(x):
    """(x·x' + 1)² as an inner product."""
    i, j = np.triu_indices(x.shape[1])
    products = x[:, i] * x[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    return np.hstack([products, np.sqrt(2.0) * x, np.ones((len(x), 1))])


@pytest.mark.parametrize("longest", [6, 1], ids=["chain", "classes"])
def test_a_polynomial_kernel_is_its_features(longest):
    X, y = rings(40, longest=longest)
    options = {"C": 0.1, "gap": 5e-7}
    explicit = tagger(**options).fit([quadratic(x) for x in X], y)
    through = tagger(**options, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y)
    np.testing.assert_allclose(certified(through), certified(explicit), rtol=1e-6)
    more, truth = rings(30, seed=1)
    assert through.predict(more).tolist() == explicit.predict([quadratic(x) for x in more]).tolist()
    assert through.score(more, truth) > tagger().fit(X, y).score(more, truth) + 0.2


def gaussian(X1, X2):
    return rbf_kernel(X1, X2, gamma=0.5)


@pytest.mark.parametrize("longest", [5, 1], ids=["chain", "classes"])
def test_a_function_and_a_matrix_are_the_built_in_kernel(longest):
    X, y = rings(30, longest=longest)
    more, _ = rings(20, seed=1)
    built_in = tagger(kernel="rbf", gamma=0.5).fit(X, y)
    by_function = tagger(kernel=gaussian).fit(X, y)
    np.testing.assert_allclose(certified(by_function), certified(built_in), rtol=2e-6)
    assert by_function.predict(more).tolist() == built_in.predict(more).tolist()
    everything = np.vstack([*X, *more])
    ends = np.cumsum([0, *map(len, [*X, *more])])
    numbers = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    matrix = Kernel("precomputed", matrix=gaussian(everything, everything))
    by_matrix = tagger(kernel=matrix).fit(numbers[: len(X)], y)
    np.testing.assert_allclose(certified(by_matrix), certified(built_in), rtol=2e-6)
    rest = [x.tolist() for x in numbers[len(X) :]]
    assert by_matrix.predict(rest).tolist() == built_in.predict(more).tolist()
    again = pickle.loads(pickle.dumps(by_matrix))
    columns = [x[:, None] for x in numbers]
    assert again.predict(columns).tolist() == by_matrix.predict(numbers).tolist()


@pytest.mark.parametrize("kind", ["strings", "dicts", "sparse", "mixed"])
def test_all_kinds_of_features(kind):
    strings, y = texts(25)
    x_of = {
        "strings": lambda x: x,
        "dicts": lambda x: [dict.fromkeys(t, 1.5) for t in x],
        "sparse": lambda x: sparse.csr_matrix([[w in t for w in WORDS] for t in x], dtype=float),
        "mixed": lambda x: (x, np.array([[len(t) / 3, "a" in t] for t in x], dtype=float)),
    }[kind]
    X = [x_of(x) for x in strings]
    built_in = tagger(kernel="poly", gamma=0.3).fit(X, y)
    chain = Chain()
    batch, _ = chain.learn(X, y)
    seen = []

    def same(X1, X2):
        seen.append(type(X1))
        return polynomial_kernel(X1, X2, degree=2, gamma=0.3, coef0=1.0)

    by_function = tagger(kernel=same).fit(X, y)
    np.testing.assert_allclose(certified(by_function), certified(built_in), rtol=2e-6)
    assert by_function.predict(X).tolist() == built_in.predict(X).tolist()
    assert set(seen) == {sparse.csr_array}
    assert token_matrix(batch).shape == (batch.n_tokens, batch.n_sparse + batch.n_dense)


# --- the certificate, the dual ---


def test_the_certificate_is_true():
    """Primal and dual again, from the support tokens and NumPy alone."""
    X, y = rings(25)
    model = tagger(C=1.3, kernel="rbf", gamma=0.8, gap=1e-6).fit(X, y)
    weights, L = model.weights_, 3
    support = token_matrix(weights.support)
    K = rbf_kernel(support, gamma=0.8)
    edges = weights.edges
    omega = 0.5 * (np.sum(weights.dual_coef * (K @ weights.dual_coef)) + np.sum(edges**2))
    hinge = 0.0
    codes = {label: k for k, label in enumerate(model.structure_.labels_)}
    for x, labels in zip(X, y, strict=True):
        truth = np.array([codes[label] for label in labels])
        unary = rbf_kernel(x, support, gamma=0.8) @ weights.dual_coef
        unary[0] += edges[L]
        unary[-1] += edges[L + 1]
        steps = edges[:L]
        own = unary[np.arange(len(x)), truth].sum() + steps[truth[:-1], truth[1:]].sum()
        augmented = unary + 1.0 - np.eye(L)[truth]
        hinge += max(0.0, viterbi(augmented, steps)[0] - own)
    assert model.certificate_.primal == pytest.approx(omega + 1.3 * hinge, rel=1e-9)
    assert 0 <= model.certificate_.gap <= 1e-6


def test_the_dual_rises_below_the_primal():
    X, y = rings(40)
    for dtype, rounding in (("float32", 1e-6), ("float64", 1e-9)):
        model = tagger(kernel="rbf", C=3.0, gap=1e-4, dtype=dtype).fit(X, y)
        # The last pass has the certified numbers: what rounding did in all passes shows there.
        dual, primal = model.history_.column("dual")[:-1], model.history_.column("primal")
        assert (np.diff(dual) >= -rounding * dual[-1]).all()
        known = np.isfinite(primal)
        assert known.any()
        assert (primal[known] >= dual[-1] * (1 - 1e-6)).all()


# --- tokens that are alike; support tokens ---


def test_tokens_that_are_alike_are_one():
    X, y = texts(60)
    batch = FeatureEncoder().fit_transform(X)
    kinds, tokens = distinct_tokens(batch)
    assert tokens.n_tokens < batch.n_tokens / 2
    rows = token_matrix(batch).toarray()
    np.testing.assert_array_equal(token_matrix(tokens).toarray()[kinds], rows)
    assert len(np.unique(rows, axis=0)) == tokens.n_tokens
    model = tagger(kernel="rbf", gap=1e-6).fit(X, y)
    assert model.weights_.n_support <= tokens.n_tokens
    jittered = [
        [{**dict.fromkeys(t, 1.0), "jitter": 1e-6 * (i + 1e-3 * k)} for k, t in enumerate(x)]
        for i, x in enumerate(X)
    ]
    apart = tagger(kernel="rbf", gamma=1 / 8, gap=1e-6).fit(jittered, y)
    together = tagger(kernel="rbf", gamma=1 / 8, gap=1e-6).fit(X, y)
    assert apart.weights_.n_support > tokens.n_tokens
    np.testing.assert_allclose(certified(apart), certified(together), rtol=3e-6)


def test_values_and_dense_columns_tell_tokens_apart():
    encoder = FeatureEncoder()
    batch = encoder.fit_transform([[{"a": 1.0}, {"a": 2.0}, {"a": 1.0}, {"b": 1.0}, {}]])
    assert distinct_tokens(batch)[0].tolist() == [0, 1, 0, 2, 3]
    batch = FeatureEncoder().fit_transform([([["a"], ["a"], ["a"]], np.array([[1.0], [2], [1]]))])
    assert distinct_tokens(batch)[0].tolist() == [0, 1, 0]


def test_support_tokens_are_enough():
    X, y = rings(60)
    chain = Chain(kernel="rbf", gamma=0.7)
    chain.prepare(X, y)
    problem = chain.make_problem(X, y)
    result = solve(problem, SDM(), C=0.7, dtype="float64", gap=1e-6, random_state=0)
    weights = result.weights
    assert isinstance(weights, KernelWeights)
    m = problem.tokens.n_tokens
    assert 0 < weights.n_support < m
    assert weights.dual_coef.any(axis=1).all()
    B = result.engine.sums().reshape(m + 5, -1)[:m, :3]
    assert np.count_nonzero(B.any(axis=1)) == weights.n_support
    more, _ = rings(30, seed=1)
    full = rbf_kernel(np.vstack(more), token_matrix(problem.tokens), gamma=0.7) @ B
    batch = chain.encoder.transform(more)
    kinds, tokens = distinct_tokens(batch)
    np.testing.assert_allclose(weights.emissions(tokens)[kinds], full, rtol=1e-9, atol=1e-9)
    # What training itself reads: the scores of its own tokens.
    scores = result.engine.weights.reshape(m + 5, -1)[:m, :3]
    np.testing.assert_allclose(weights.emissions(problem.tokens), scores, rtol=1e-9, atol=1e-9)


def test_prediction_in_small_blocks(monkeypatch):
    X, y = rings(30)
    model = tagger(kernel="rbf", gap=1e-3).fit(X, y)
    scores = model.decision_function(X)
    monkeypatch.setattr("maxmargin.structures.kernels.BLOCK_BYTES", 1)
    for a, b in zip(model.decision_function(X), scores, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_all_that_a_tagger_is_asked():
    X, y = rings(30)
    model = tagger(kernel="rbf", gap=1e-4).fit(X, y)
    predicted = model.predict(X).tolist()
    best = [paths[0] for paths in model.predict_kbest(X, 3)]
    assert [labels for labels, _ in best] == predicted
    scores = model.score_labellings(X, predicted)
    np.testing.assert_allclose(scores, [score for _, score in best], rtol=1e-9)
    for found, labels, score in zip(model.decision_function(X), predicted, scores, strict=True):
        np.testing.assert_allclose(found.max(axis=1), score, rtol=1e-9)
        assert model.classes_[found.argmax(axis=1)].tolist() == labels
    assert model.transitions_.shape == (3, 3)
    with pytest.raises(AttributeError, match="dual_coef"):
        _ = model.coef_
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == predicted
    other = StructuralSVM(Chain(kernel="rbf"), C=0.7, gap=1e-4, random_state=0, dtype="float64")
    assert other.fit(X, y).predict(X).tolist() == predicted


def test_masks_and_costs_go_with_kernels():
    X, y = rings(30)
    never = np.ones((3, 3), dtype=bool)
    never[0, 0] = False
    model = tagger(kernel="rbf", allowed=never, gap=1e-3).fit(X, y)
    assert not any((a, b) == (0, 0) for p in model.predict(X) for a, b in itertools.pairwise(p))
    heavy = tagger(kernel="rbf", gap=1e-6, loss=3.0 * (1 - np.eye(3))).fit(X, y)
    weighted = tagger(kernel="rbf", gap=1e-6).fit(X, y, [np.full(len(x), 3.0) for x in X])
    np.testing.assert_allclose(certified(heavy), certified(weighted), rtol=2e-6)
    doubled = tagger(kernel="rbf", C=0.35).fit(X, y, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(
        certified(doubled), certified(tagger(kernel="rbf").fit(X, y)), rtol=2e-6
    )


def test_warm_starts_and_callbacks():
    X, y = rings(30)
    seen = []
    model = tagger(kernel="rbf", warm_start=True, gap=1e-5, callbacks=[seen.append]).fit(X, y)
    passes = len(seen)
    model.set_params(C=0.8).fit(X, y)
    cold = tagger(kernel="rbf", C=0.8, gap=1e-5).fit(X, y)
    np.testing.assert_allclose(certified(model), certified(cold), rtol=2e-5)
    assert len(seen) > passes
    with pytest.raises(ValueError, match="warm_start=True"):
        model.set_params(gamma=0.9).fit(X, y)


def test_a_checkpoint_goes_on(tmp_path):
    X, y = rings(30)
    whole = tagger(kernel="rbf", gap=1e-5).fit(X, y)
    path = tmp_path / "run.npz"
    half = {"kernel": "rbf", "gap": 1e-5, "checkpoint": path}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger(**half, max_passes=5).fit(X, y)
    resumed = tagger(**half, resume=True).fit(X, y)
    np.testing.assert_array_equal(certified(resumed), certified(whole))
    with pytest.raises(ValueError):
        tagger(**half, resume=True, gamma=0.123).fit(X, y)


# --- parameters, scikit-learn ---


def test_gamma_is_scikit_learns():
    X, y = rings(20)
    flat = np.vstack(X)
    for data in (X, [sparse.csr_matrix(x) for x in X]):
        model = tagger(kernel="rbf", gap=0.1).fit(data, y)
        assert model.weights_.kernel.gamma == pytest.approx(1 / (2 * flat.var()), rel=1e-6)
        model = tagger(kernel="rbf", gamma="auto", gap=0.1).fit(data, y)
        assert model.weights_.kernel.gamma == 0.5
    words, tags = texts(20)
    batch = FeatureEncoder().fit_transform(words)
    assert token_variance(batch) == pytest.approx(token_matrix(batch).toarray().var())
    constant = [np.ones_like(x) for x in X]
    assert tagger(kernel="rbf", gap=0.5).fit(constant, y).weights_.kernel.gamma == 1.0
    assert tags


def test_an_estimator_like_any_other():
    model = tagger(kernel="poly", degree=3, gamma=0.2, coef0=0.5, cache_mb=7)
    copy = clone(model)
    names = ("kernel", "degree", "gamma", "coef0", "cache_mb")
    assert [copy.get_params()[name] for name in names] == ["poly", 3, 0.2, 0.5, 7]
    X, y = rings(24)
    grid = {"kernel": ["linear", "rbf"], "C": [0.5]}
    search = GridSearchCV(tagger(gap=0.01), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel"] == "rbf"
    assert clone(tagger(kernel=Kernel("rbf", gamma=0.3))).kernel.gamma == 0.3
    assert "kernel='poly', degree=3" in repr(Chain(kernel="poly", degree=3))
    assert maxmargin.Kernel is Kernel


def test_the_cache_makes_no_difference():
    X, y = rings(40)
    models = [tagger(kernel="rbf", gap=1e-4, cache_mb=size).fit(X, y) for size in (200, 1e-3)]
    np.testing.assert_array_equal(models[0].weights_.dual_coef, models[1].weights_.dual_coef)
    assert models[0].history_.column("dual").tolist() == models[1].history_.column("dual").tolist()


def test_threads_make_no_difference():
    X, y = rings(40)
    one, two = (tagger(kernel="rbf", gap=1e-4, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.weights_.dual_coef, two.weights_.dual_coef)
    by_function = tagger(kernel=gaussian, gap=1e-2, n_jobs=2).fit(X, y)
    assert by_function.converged_


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "cubic"}, "'linear', 'poly', 'rbf', 'precomputed'.*'cubic'"),
        ({"kernel": 3}, "got 3"),
        ({"kernel": "precomputed"}, r'Kernel\("precomputed", matrix=K\)'),
        ({"kernel": "poly", "degree": 0}, "degree.*got 0"),
        ({"kernel": "poly", "degree": 1.5}, "degree.*got 1.5"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma.*got 0.0"),
        ({"kernel": "rbf", "gamma": "wide"}, "gamma.*'wide'"),
        ({"kernel": "rbf", "gamma": float("nan")}, "gamma.*nan"),
        ({"kernel": "poly", "coef0": float("inf")}, "coef0.*inf"),
        ({"kernel": "rbf", "cache_mb": -1}, "cache_mb.*-1"),
    ],
)
def test_bad_parameters(options, said):
    X, y = rings(5)
    with pytest.raises(ValueError, match=said):
        tagger(**options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"regularizer": ElasticNet(l1_ratio=0.5)}, "ElasticNet.*use L2"),
        ({"solver": "subgradient"}, "'subgradient'.*'sdm' or 'sap'"),
        ({"solver": "lp"}, "'lp'.*'sdm' or 'sap'"),
        ({"solver": "extragradient"}, "'extragradient'.*'sdm' or 'sap'"),
        ({"solver": maxmargin.SAP(nu=0.1)}, "nu = 0.1"),
    ],
)
def test_what_needs_weights_of_features(options, said):
    X, y = rings(5)
    with pytest.raises(NotCompatibleError, match=said + '.*kernel="linear"'):
        tagger(kernel="rbf", **options).fit(X, y)


@pytest.mark.parametrize("solver", ["sap", SDM(schedule="paper"), SDM(schedule="basic")])
def test_the_other_dual_schedules(solver):
    X, y = rings(20)
    best = tagger(kernel="rbf").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tagger(kernel="rbf", solver=solver, gap=1e-3, max_passes=3000).fit(X, y)
    assert model.certificate_.primal >= best.certificate_.dual * (1 - 1e-9)
    assert model.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)
    if solver == "sap":
        np.testing.assert_allclose(certified(model), certified(best), rtol=1e-3)


def test_pair_features_have_weights():
    rows = [[["a", "x"], ["b", "y"]], [["b", "y"], ["a", "x"]]]
    template = maxmargin.Template.parse("U00:%x[0,0]\nB01:%x[0,1]\n")
    with pytest.raises(NotCompatibleError, match=r'pair features.*kernel="linear"'):
        tagger(kernel="rbf", template=template).fit(rows, [["A", "B"], ["B", "A"]])


def test_methods_about_weights():
    X, y = rings(5)
    chain = Chain(kernel="rbf")
    chain.prepare(X, y)
    for call in (
        lambda: chain.joint_feature(X[0], y[0]),
        lambda: chain.argmax(X[0], np.zeros(5)),
    ):
        with pytest.raises(NotCompatibleError, match='kernel="linear"'):
            call()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a, b: np.zeros((1, 1, 1)), r"shape \(1, 1, 1\); expected \(\d+, \d+\)"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "nan; expected finite"),
        (lambda a, b: "no", "type str; expected an array"),
        (lambda a, b: a[:, :1] - b[:, :1].T, "for tokens 0 and 1.*symmetric"),
        (lambda a, b: -a @ b.T, "itself.*diagonal"),
        (lambda a, b: 1 / 0, "failed on matrices.*ZeroDivisionError"),
    ],
)
def test_bad_functions(function, said):
    X, y = rings(5)
    with pytest.raises((StructureError, ValueError), match=said):
        tagger(kernel=function).fit(X, y)


def test_a_function_that_fails_later():
    X, y = rings(30)

    def sometimes(a, b):
        if len(a) < 4 and len(b) > 32:
            raise RuntimeError("too few")
        return gaussian(a, b)

    with pytest.raises(StructureError, match=r"sometimes failed.*too few"):
        tagger(kernel=sometimes).fit(X, y)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.ones((3, 4)), r"shape \(3, 4\); expected \(n, n\)"),
        (np.ones(3), r"shape \(3,\); expected \(n, n\)"),
        (np.full((4, 4), np.inf), r"inf at \[0, 0\]; expected finite"),
        (np.arange(16.0).reshape(4, 4), "tokens 0 and 1.*symmetric"),
        (-np.eye(4), "diagonal"),
        ("K", "type str; expected an array"),
    ],
)
def test_bad_matrices(matrix, said):
    with pytest.raises((ValueError, TypeError), match=said):
        tagger(kernel=Kernel("precomputed", matrix=matrix)).fit([[0, 1], [2]], [["A", "B"], ["A"]])


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([[0, 1], [4]], "sequence 1, token 0 is number 4; expected 0 to 3"),
        ([[0, -1], [2]], "sequence 0, token 1 is number -1"),
        ([[0.5, 1.0], [2.0]], "sequence 0 is a 1-d array of float64.*token numbers"),
        ([[["a"], ["b"]], [["c"]]], "token numbers"),
    ],
)
def test_bad_token_numbers(X, said):
    kernel, y = Kernel("precomputed", matrix=np.eye(4)), [["A", "B"], ["A"]]
    with pytest.raises(ValueError, match=said):
        tagger(kernel=kernel).fit(X, y)
    model = tagger(kernel=kernel).fit([[0, 1], [2]], y)
    with pytest.raises(ValueError, match=said):
        model.predict(X)


def test_an_indefinite_kernel_is_told():
    X, y = rings(30)

    starts = np.cumsum([0, *map(len, X[:-1])])
    numbers = [np.arange(a, a + len(x)) for a, x in zip(starts, X, strict=True)]
    rng = np.random.default_rng(0)
    K = rng.normal(size=(sum(map(len, X)),) * 2) * 20
    K = K + K.T
    np.fill_diagonal(K, 0.0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        tagger(kernel=Kernel("precomputed", matrix=K)).fit(numbers, y)
