"""MulticlassSVM: scikit-learn's rules, LinearSVC's objective, files, bad input, the task."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import ModelFormatError, MulticlassSVM, NotCompatibleError
from maxmargin.cli.main import main

IRIS = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(IRIS[0])
y = np.array(["setosa", "versicolor", "virginica"])[IRIS[1]]
TIGHT = {"gap": 1e-9, "dtype": "float64", "random_state": 0}


@parametrize_with_checks([MulticlassSVM()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", maxmargin.ConvergenceWarning)
        warnings.simplefilter("ignore", maxmargin.ScalingWarning)
        check(estimator)


# --- the objective ---


def crammer_singer(W, X, codes, C, *, cost=None, weight=1.0):
    """Return ½‖W‖² + C Σ hinge, W being (K, d)."""
    scores = X @ W.T
    K = len(W)
    table = 1.0 - np.eye(K) if cost is None else cost
    own = scores[np.arange(len(codes)), codes]
    hinges = (scores + table[codes] - own[:, None]).max(axis=1)
    return 0.5 * (W**2).sum() + C * float((weight * hinges).sum())


@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_optimum_of_linear_svc(intercept, sparse, C):
    """The same objective, so that the better of the two is ours, to the gap asked for."""
    data = scipy.sparse.csr_matrix(X) if sparse else X
    options = {"C": C, "fit_intercept": intercept, "intercept_scaling": 2.0}
    ours = MulticlassSVM(**options, **TIGHT).fit(data, y)
    assert ours.converged_
    peer = LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=100_000, **options)
    peer.fit(data, y)
    codes = np.searchsorted(ours.classes_, y)

    def objective(model):
        if not intercept:
            return crammer_singer(model.coef_, X, codes, C)
        W = np.hstack([model.coef_, model.intercept_[:, None] / 2.0])
        return crammer_singer(W, np.hstack([X, np.full((len(X), 1), 2.0)]), codes, C)

    assert objective(ours) == pytest.approx(ours.certificate_.primal, rel=1e-9)
    assert objective(ours) == pytest.approx(objective(peer), rel=1e-4)
    assert objective(ours) <= objective(peer) * (1 + 1e-8)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=5e-3)
    scores = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(ours.decision_function(data), scores, atol=1e-10)


def test_two_classes_as_scikit_learn_has_them():
    two = y != "virginica"
    ours = MulticlassSVM(**TIGHT).fit(X[two], y[two])
    peer = LinearSVC(multi_class="crammer_singer", tol=1e-9, max_iter=100_000).fit(X[two], y[two])
    assert ours.coef_.shape == peer.coef_.shape == (1, 4)
    assert ours.intercept_.shape == (1,)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)
    scores = ours.decision_function(X[two])
    assert scores.shape == (100,)
    np.testing.assert_array_equal(ours.predict(X[two]), ours.classes_[(scores > 0).astype(int)])
    np.testing.assert_allclose(scores, (X[two] @ ours.coef_.T + ours.intercept_).ravel())


def test_costs_and_weights_are_in_the_objective():
    cost = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [5.0, 3.0, 0.0]])
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    factors = {"setosa": 2.0, "virginica": 0.5}
    model = MulticlassSVM(
        C=0.3, loss=cost, class_weight=factors, fit_intercept=False, **TIGHT
    ).fit(X, y, sample_weight=weight)
    codes = np.searchsorted(model.classes_, y)
    all_weights = weight * np.array([2.0, 1.0, 0.5])[codes]
    by_hand = crammer_singer(
        model.coef_, X, codes, 0.3, cost=cost, weight=all_weights
    )
    assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-9)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    other = MulticlassSVM(
        C=0.3, loss=cost, class_weight=factors, fit_intercept=False, **TIGHT
    ).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    as_dict = {(a, b): cost[i, j] for i, a in enumerate(model.classes_)
               for j, b in enumerate(model.classes_)}
    third = MulticlassSVM(
        C=0.3, loss=as_dict, class_weight=factors, fit_intercept=False, **TIGHT
    ).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, third.coef_, atol=1e-6)


def test_balanced_classes():
    few = np.r_[0:50, 50:60, 100:150]
    counts = np.array([50, 10, 50])
    balanced = MulticlassSVM(class_weight="balanced", **TIGHT).fit(X[few], y[few])
    by_hand = MulticlassSVM(
        class_weight=dict(zip(balanced.classes_, 110 / (3 * counts), strict=True)), **TIGHT
    ).fit(X[few], y[few])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-6)
    plain = MulticlassSVM(**TIGHT).fit(X[few], y[few])
    recall = [(m.predict(X[50:100]) == "versicolor").mean() for m in (balanced, plain)]
    assert recall[0] > recall[1]


@pytest.mark.parametrize("solver", ["sdm", "bcfw", "oneslack", "interiorpoint"])
def test_other_solvers_reach_the_same_objective(solver):
    model = MulticlassSVM(solver=solver, gap=5e-3, random_state=0).fit(X, y)
    best = MulticlassSVM(**TIGHT).fit(X, y).certificate_.primal
    assert best * (1 - 1e-9) <= model.certificate_.primal <= best * 1.006


def test_slack_rescaling_and_sparse_models():
    cost = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [5.0, 3.0, 0.0]])
    solver = maxmargin.SDM(rescale="slack")
    model = MulticlassSVM(loss=cost, solver=solver, fit_intercept=False, **TIGHT).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    scores = X @ model.coef_.T
    own = scores[np.arange(len(y)), codes]
    hinges = (cost[codes] * (1 + scores - own[:, None])).max(axis=1).clip(0)
    by_hand = 0.5 * (model.coef_**2).sum() + hinges.sum()
    assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-9)
    net = maxmargin.ElasticNet(l1_ratio=0.7)
    net = MulticlassSVM(regularizer=net, C=0.1, random_state=0).fit(X, y)
    assert (net.coef_ == 0).any()


# --- labels and inputs ---


@pytest.mark.parametrize(
    "labels",
    [
        [("iris", k) for k in range(3)],
        [None, "a", 2],
        [True, "yes", 3.5],
        [10, 20, 5],
    ],
    ids=["tuples", "mixed", "several types", "ints"],
)
def test_any_hashable_labels(labels, tmp_path):
    given = [labels[k] for k in IRIS[1]]
    model = MulticlassSVM(random_state=0).fit(X, given)
    found = model.predict(X).tolist()
    assert {type(label) for label in found} == {type(label) for label in labels}
    assert sum(a == b for a, b in zip(found, given, strict=True)) > 135
    assert model.score(X, given) > 0.9
    model.save(tmp_path / "m.mm")
    assert MulticlassSVM.load(tmp_path / "m.mm").predict(X).tolist() == found


def test_labels_that_a_file_cannot_hold(tmp_path):
    model = MulticlassSVM().fit(X, [frozenset([int(k)]) for k in IRIS[1]])
    with pytest.raises(ValueError, match="a model file holds labels"):
        model.save(tmp_path / "m.mm")
    assert not (tmp_path / "m.mm").exists()


def test_all_formats_of_sparse_matrices_and_frames():
    pandas = pytest.importorskip("pandas")
    dense = MulticlassSVM(**TIGHT).fit(X, y)
    for form in ("csr", "csc", "coo", "lil", "dok"):
        other = MulticlassSVM(**TIGHT).fit(scipy.sparse.csr_matrix(X).asformat(form), y)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5)
    frame = pandas.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    model = MulticlassSVM(**TIGHT).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]
    np.testing.assert_array_equal(model.coef_, dense.coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["pw", "sl", "sw", "pl"]])
    categories = MulticlassSVM(**TIGHT).fit(frame, pandas.Series(y).astype("category"))
    np.testing.assert_array_equal(categories.predict(frame), model.predict(frame))


def test_texts():
    texts = ["good film", "bad film", "very good", "very bad", "so so"]
    labels = ["+", "-", "+", "-", "0"]
    model = MulticlassSVM(features={"ngrams": 2, "weighting": "binary"}, C=10.0).fit(texts, labels)
    assert model.predict(texts).tolist() == labels
    assert model.coef_.shape == (3, model.structure_.words.n_words)
    assert not hasattr(model, "n_features_in_")
    shown = model.describe(2)
    assert shown["strongest"]["+"][0][0] == "good"
    assert (shown["n_classes"], shown["classes"]) == (3, ["+", "-", "0"])
    lines = list(model.text_lines())
    assert sum(line.startswith("+\tgood\t") for line in lines) == 1
    with pytest.raises(TypeError, match="example 0 is a int"):
        model.predict([1])


# --- scikit-learn ---


def test_pipelines_grids_clones_pickles():
    assert is_classifier(MulticlassSVM())
    search = GridSearchCV(
        make_pipeline(StandardScaler(), MulticlassSVM(random_state=0)),
        {"multiclasssvm__C": [0.01, 1.0]},
        cv=3,
    ).fit(IRIS[0], y)
    assert search.best_score_ > 0.9
    model = search.best_estimator_[-1]
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_threads_and_seeds_change_nothing():
    one = MulticlassSVM(random_state=3).fit(X, y)
    two = MulticlassSVM(random_state=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_warm_start():
    model = MulticlassSVM(C=0.1, warm_start=True, **TIGHT).fit(X, y)
    model.set_params(C=0.2).fit(X, y)
    cold = MulticlassSVM(C=0.2, **TIGHT).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="have changed"):
        model.fit(X[:100], y[:100])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "hamming"}, ValueError, 'expected "0/1"'),
        ({"loss": np.zeros((2, 2))}, ValueError, r"expected \(3, 3\)"),
        ({"loss": {("setosa", "rose"): 1}}, ValueError, "rose"),
        ({"class_weight": "even"}, ValueError, "class_weight is"),
        ({"class_weight": {"rose": 2}}, ValueError, "no class of y"),
        ({"class_weight": {"setosa": -1}}, ValueError, "class_weight of 'setosa' is -1"),
        ({"intercept_scaling": 0}, ValueError, "intercept_scaling is 0"),
        ({"intercept_scaling": "1"}, ValueError, "intercept_scaling is '1'"),
        ({"labels": ["setosa", "versicolor"]}, ValueError, "'virginica', which is not among"),
        ({"features": "letters"}, ValueError, "features is 'letters'"),
        ({"features": {"n": 2}}, ValueError, "the option 'n'"),
        ({"C": -1}, ValueError, "C"),
        ({"solver": "newton"}, ValueError, "newton"),
    ],
)
def test_parameters_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        MulticlassSVM(**options).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "weight", "error", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], None, ValueError, "NaN"),
        ([[1.0], [np.inf]], [0, 1], None, ValueError, "infinity"),
        ([[1.0], [1e13]], [0, 1], None, ValueError, "example 1, column 0"),
        ([[1.0], [2.0]], [0, 0], None, ValueError, "one class only"),
        ([[1.0], [2.0]], [0], None, ValueError, "2 examples and y has 1"),
        ([[1.0], [2.0]], [[0], {}], None, TypeError, "cannot be hashed"),
        ([[1.0], [2.0]], [0.5, 1.5], None, ValueError, "Unknown label type"),
        ([[1.0], [2.0]], None, None, ValueError, "requires y"),
        ([[1.0], [2.0]], [0, 1], [1.0], ValueError, "sample_weight has the shape"),
        ([[1.0], [2.0]], [0, 1], [-1.0, 1.0], ValueError, "example 0 is -1"),
    ],
)
def test_inputs_that_are_refused(X, y, weight, error, message):
    with pytest.raises(error, match=message):
        MulticlassSVM().fit(X, y, sample_weight=weight)


def test_another_number_of_columns():
    model = MulticlassSVM().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but MulticlassSVM is expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"3 features .* but 4"):
        model.structure_.predict(X[:, :3], model.weights_, 1)


def test_more_weights_than_memory(monkeypatch):
    monkeypatch.setattr(maxmargin.memory, "SMALL", 0)
    monkeypatch.setattr(maxmargin.memory, "available_bytes", lambda *_: 100)
    with pytest.raises(MemoryError, match="5 features x 3 classes"):
        MulticlassSVM().fit(X, y)


# --- files ---


def test_save_and_load(tmp_path):
    cost = 2 - 2 * np.eye(3)
    model = MulticlassSVM(C=0.5, loss=cost, class_weight={"setosa": 2.0}, random_state=1).fit(X, y)
    path = tmp_path / "model.mm"
    assert model.save(path) == path.stat().st_size
    for loaded in (MulticlassSVM.load(path), maxmargin.load(path)):
        assert isinstance(loaded, MulticlassSVM)
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.certificate_.primal == model.certificate_.primal
        assert loaded.n_features_in_ == 4
        np.testing.assert_array_equal(loaded.loss, cost)
        again = loaded.fit(X, y)
        np.testing.assert_array_equal(again.weights_, model.weights_)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ModelFormatError):
        maxmargin.load(path)


def test_texts_in_a_file(tmp_path):
    texts, labels = ["good film", "bad film", "very good"], ["+", "-", "+"]
    model = MulticlassSVM(features={"ngrams": 2}).fit(texts, labels)
    model.save(tmp_path / "m.mm")
    loaded = maxmargin.load(tmp_path / "m.mm")
    np.testing.assert_array_equal(
        loaded.decision_function(texts), model.decision_function(texts)
    )
    assert loaded.features == {"ngrams": 2}


def test_a_file_of_another_kind(tmp_path):
    maxmargin.SequenceTagger().fit([[["a"], ["b"]]], [["A", "B"]]).save(tmp_path / "t.mm")
    with pytest.raises((ModelFormatError, NotCompatibleError), match=r"tagger"):
        MulticlassSVM.load(tmp_path / "t.mm")


# --- the task ---


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    words = {"sport": ["ball", "goal", "team"], "food": ["bread", "soup", "salt"]}
    lines = [
        f"{label}\t{' '.join(rng.choice([*words[label], 'the', 'a', 'new'], 6))}\n"
        for label in rng.choice(list(words), 60)
    ]
    (tmp_path / "train.tsv").write_text("".join(lines[:40]))
    (tmp_path / "test.tsv").write_text("".join(lines[40:]))
    return tmp_path


def test_the_command_line(files, capsys):
    model, out = files / "m.mm", files / "out.tsv"
    code, said, _ = run(
        capsys, "train", "--task", "classes", files / "train.tsv", "-m", model,
        "--ngrams", 2, "--min-count", 2, "--binary", "--class-weight", "balanced", "--json",
    )  # fmt: skip
    assert code == 0
    summary = json.loads(said)
    assert (summary["task"], summary["n_documents"], summary["n_classes"]) == ("classes", 40, 2)
    code, said, _ = run(capsys, "eval", "-m", model, files / "test.tsv", "--json")
    figures = json.loads(said)
    assert code == 0
    assert 0.9 <= figures["accuracy"] <= 1
    assert 0 < figures["macro_f1"] <= 1
    assert figures["documents_per_second"] > 0
    assert run(capsys, "predict", "-m", model, files / "test.tsv", "-o", out)[0] == 0
    lines = out.read_text().splitlines()
    truth = (files / "test.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines] == [line.split("\t")[1] for line in truth]
    right = np.mean([a == b for a, b in zip(lines, truth, strict=True)])
    assert right == pytest.approx(figures["accuracy"])
    loaded = maxmargin.load(model)
    assert loaded.class_weight == "balanced"
    texts = [line.split("\t")[1] for line in lines]
    assert loaded.predict(texts).tolist() == [line.split("\t")[0] for line in lines]
    code, said, _ = run(capsys, "info", model)
    assert code == 0
    assert "sport" in said
    code, said, _ = run(capsys, "eval", "-m", model, files / "test.tsv")
    assert code == 0
    assert said.startswith("accuracy ")


def test_files_of_numbered_features(files, capsys):
    lines = [
        f"{label} {' '.join(f'{j + 1}:{value:.6f}' for j, value in enumerate(row) if value)}\n"
        for label, row in zip(y, X, strict=True)
    ]
    train, test = files / "iris.svm", files / "new.dat"
    train.write_text("".join(lines[::2]))
    test.write_text("".join(lines[1::2]) + "setosa 9:1\n")  # a feature that is not known
    model = files / "m.mm"
    code, _, said = run(capsys, "train", "--task", "classes", train, "-m", model, "--no-bias")
    assert code == 0, said
    code, said, _ = run(capsys, "eval", "-m", model, test, "--json")
    figures = json.loads(said)
    assert figures["accuracy"] > 0.75
    assert figures["n_documents"] == 76
    code, said, _ = run(capsys, "predict", "-m", model, test)
    assert set(said.split()) <= set(y)
    assert len(said.split()) == 76
    loaded = maxmargin.load(model)
    assert loaded.n_features_in_ == 4
    assert not loaded.intercept_.any()
    code, _, said = run(
        capsys, "train", "--task", "classes", train, "-m", model, "--ngrams", "2"
    )
    assert code != 0
    assert "--ngrams is for texts" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tone\nno tab here\n", "line 2"),
        ("a\tone\na\ttwo\n", "one class only"),
        ("\tone\nb\ttwo\n", "line 1"),
        ("", "no documents"),
        ("a\t...\nb\t!\n", "no word"),
    ],
)
def test_training_files_that_are_refused(files, capsys, content, message):
    path = files / "bad.tsv"
    path.write_text(content)
    code, _, said = run(capsys, "train", "--task", "classes", path, "-m", files / "m.mm")
    assert code != 0
    assert message in said
    assert not (files / "m.mm").exists()


def test_small_problems_are_solved_to_rounding_and_large_ones_are_not():
    small = MulticlassSVM(random_state=0).fit(X, y)
    assert small.certificate_.gap <= 1e-12
    assert small.converged_
    assert small.weights_.dtype == np.float64
    many = np.tile(X, (80, 1))
    large = MulticlassSVM(random_state=0).fit(many, np.tile(y, 80))
    assert 1e-9 < large.certificate_.gap <= 0.01


def test_a_bonus_that_is_not_reached_is_no_failure():
    with warnings.catch_warnings():
        warnings.simplefilter("error", maxmargin.ConvergenceWarning)
        model = MulticlassSVM(max_passes=150, random_state=0).fit(X, y)
    assert 1e-14 < model.certificate_.gap <= 0.01
    assert model.converged_
    with pytest.warns(maxmargin.ConvergenceWarning, match=r"expected at most 0\.01"):
        assert not MulticlassSVM(max_passes=1, random_state=0).fit(X, y).converged_


def test_automatic_accuracy_is_kept_in_the_file(tmp_path):
    MulticlassSVM(random_state=0).fit(X, y).save(tmp_path / "m.mm")
    loaded = MulticlassSVM.load(tmp_path / "m.mm")
    assert loaded.gap == loaded.dtype == "auto"
