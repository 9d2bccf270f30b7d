"""BinarySVM and SVR: scikit-learn's rules and objectives, margins and costs, files, bad input."""

from __future__ import annotations

import pickle
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import SVR, BinarySVM, ElasticNet, ModelFormatError
from maxmargin.cli.main import main
from real_data import data_file

CANCER = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(CANCER[0])[:150, :12]
y = np.array(["malignant", "benign"])[CANCER[1]][:150]
SUGAR = load_diabetes(return_X_y=True)
Z, t = StandardScaler().fit_transform(SUGAR[0])[:150], (SUGAR[1][:150] - 150) / 75
TIGHT = {"gap": 1e-11, "random_state": 0}


@parametrize_with_checks([BinarySVM(), SVR()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", maxmargin.ConvergenceWarning)
        check(estimator)


# --- the objectives ---


def hinge(model, X, y, C, *, scaling=1.0, weight=1.0, margin=1.0):
    """Return the objective of a binary model by hand."""
    w = np.asarray(model.coef_)[0]
    b = float(np.ravel(model.intercept_)[0])
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    slacks = np.maximum(0.0, margin - signs * (X @ w + b))
    return 0.5 * (w @ w + (b / scaling) ** 2) + C * float((weight * slacks).sum())


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["dualcoordinate", "sdm"])
def test_linear_svc(solver, intercept, sparse, C):
    data = scipy.sparse.csr_matrix(X) if sparse else X
    options = {"C": C, "fit_intercept": intercept, "intercept_scaling": 3.0}
    own = BinarySVM(solver=solver, **options, **TIGHT).fit(data, y)
    peer = LinearSVC(loss="hinge", dual=True, tol=1e-9, max_iter=10**6, random_state=1, **options)
    peer.fit(data, y)
    assert own.converged_
    assert own.certificate_.primal == pytest.approx(hinge(own, X, y, C, scaling=3.0), rel=1e-9)
    assert own.certificate_.primal == pytest.approx(hinge(peer, X, y, C, scaling=3.0), rel=1e-6)
    assert own.coef_ == pytest.approx(peer.coef_, abs=2e-5)
    assert own.intercept_ == pytest.approx(peer.intercept_, abs=2e-5)
    assert own.decision_function(data) == pytest.approx(peer.decision_function(data), abs=1e-4)
    assert own.predict(data).tolist() == peer.predict(data).tolist()


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", ["dualcoordinate", "sdm"])
def test_linear_svr(solver, sparse, epsilon):
    data = scipy.sparse.csr_matrix(Z) if sparse else Z
    options = {"C": 0.5, "epsilon": epsilon, "intercept_scaling": 2.0}
    own = SVR(solver=solver, **options, **TIGHT).fit(data, t)
    peer = LinearSVR(dual=True, tol=1e-9, max_iter=10**6, random_state=1, **options).fit(data, t)
    w, b = own.coef_, own.intercept_
    errors = np.maximum(0.0, np.abs(Z @ w + b - t) - epsilon)
    by_hand = 0.5 * (w @ w + (b / 2) ** 2) + 0.5 * errors.sum()
    assert own.converged_
    assert own.certificate_.primal == pytest.approx(by_hand, rel=1e-9)
    other = (
        0.5 * (peer.coef_ @ peer.coef_ + (peer.intercept_[0] / 2) ** 2)
        + 0.5 * np.maximum(0.0, np.abs(peer.predict(data) - t) - epsilon).sum()
    )
    assert own.certificate_.primal == pytest.approx(other, rel=1e-6)
    assert own.predict(data).tolist() == pytest.approx(peer.predict(data).tolist(), abs=1e-4)


def test_costs_and_margins():
    draw = np.random.default_rng(0)
    weight, margin = draw.uniform(0, 2, len(y)), draw.uniform(0.5, 3, len(y))
    model = BinarySVM(C=0.3, **TIGHT).fit(X, y, weight, margins=margin)
    by_hand = hinge(model, X, y, 0.3, weight=weight, margin=margin)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-9)
    # 1.1 of the paper: costs are factors of rows and margins.
    rows = np.hstack([X, np.ones((len(X), 1))]) * np.where(y == "malignant", 1.0, -1.0)[:, None]
    same = maxmargin.StructuralSVM(maxmargin.Constraints(), C=0.3, dtype="float64", **TIGHT).fit(
        (weight[:, None] * rows)[:, None, :], (weight * margin)[:, None]
    )
    assert same.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert same.weights_[:-1] == pytest.approx(model.coef_[0], abs=1e-5)


def test_weights_of_classes():
    plain = {"C": 0.1, **TIGHT}
    weighted = BinarySVM(class_weight={"malignant": 3.0}, **plain).fit(X, y)
    by_hand = BinarySVM(**plain).fit(X, y, np.where(y == "malignant", 3.0, 1.0))
    assert weighted.coef_ == pytest.approx(by_hand.coef_, abs=1e-7)
    balanced = BinarySVM(class_weight="balanced", **plain).fit(X, y)
    share = {label: len(y) / (2 * (y == label).sum()) for label in np.unique(y)}
    same = BinarySVM(class_weight=share, **plain).fit(X, y)
    assert balanced.coef_ == pytest.approx(same.coef_, abs=1e-7)


@pytest.mark.parametrize("model", [BinarySVM(C=0.1), SVR(C=0.1)])
def test_repeated_examples_are_weights(model):
    target = y if is_classifier(model) else t
    counts = np.random.default_rng(0).integers(0, 3, len(target))
    data = X if is_classifier(model) else Z
    weighted = clone(model).set_params(**TIGHT).fit(data, target, counts.astype(float))
    repeated = (
        clone(model)
        .set_params(**TIGHT)
        .fit(np.repeat(data, counts, axis=0), np.repeat(target, counts))
    )
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-5)


def test_a_large_bias_feature_is_hardly_regularised():
    shifted = X + 5.0
    far = BinarySVM(C=1.0, intercept_scaling=10.0, random_state=0).fit(shifted, y)
    near = BinarySVM(C=1.0, intercept_scaling=0.01, random_state=0).fit(shifted, y)
    assert abs(far.intercept_[0]) > 10 * abs(near.intercept_[0])


@pytest.mark.parametrize("solver", ["dualcoordinate", "sdm"])
def test_elastic_nets(solver):
    net = ElasticNet(0.05, 0.9)
    model = BinarySVM(C=0.1, solver=solver, regularizer=net, gap=1e-6, random_state=0).fit(X, y)
    assert model.converged_
    assert (model.weights_ == 0).any()
    reference = BinarySVM(C=0.1, solver="sap", regularizer=net, gap=1e-6).fit(X, y)
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-5)


# --- scikit-learn's ways ---


def test_tags_and_searches():
    assert is_classifier(BinarySVM())
    assert is_regressor(SVR())
    pipeline = make_pipeline(StandardScaler(), BinarySVM(random_state=0))
    search = GridSearchCV(pipeline, {"binarysvm__C": [0.01, 1.0]}, cv=3).fit(CANCER[0], CANCER[1])
    assert search.best_score_ > 0.95
    assert SVR(C=0.1).fit(Z, t).score(Z, t) > 0.3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_precisions(dtype):
    wide = BinarySVM(C=0.1, gap=1e-4, random_state=0).fit(X, y)
    model = BinarySVM(C=0.1, gap=1e-4, dtype=dtype, random_state=0).fit(X.astype(dtype), y)
    assert model.weights_.dtype == dtype
    assert model.certificate_.primal == pytest.approx(wide.certificate_.primal, rel=2e-4)


def test_the_same_seed_gives_the_same_model():
    one, two = (BinarySVM(C=1.0, random_state=3).fit(X, y) for _ in range(2))
    assert (one.weights_ == two.weights_).all()
    other = BinarySVM(C=1.0, random_state=4).fit(X, y)
    assert (one.weights_ != other.weights_).any()


def test_warm_starts_go_on():
    model = BinarySVM(C=0.1, warm_start=True, gap=1e-8, random_state=0).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first / 2
    model.set_params(C=0.2).fit(X, y)
    cold = BinarySVM(C=0.2, gap=1e-8, random_state=0).fit(X, y)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-7)


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    options = {"C": 1.0, "gap": 1e-9, "random_state": 0}
    whole = BinarySVM(**options).fit(X, y)
    file = tmp_path / "run"
    with pytest.warns(maxmargin.ConvergenceWarning):
        BinarySVM(**options, max_passes=4, checkpoint=file).fit(X, y)
    resumed = BinarySVM(**options, checkpoint=file, resume=True).fit(X, y)
    assert resumed.n_iter_ == whole.n_iter_
    assert (resumed.weights_ == whole.weights_).all()


# --- files ---


@pytest.mark.parametrize("model", [BinarySVM(C=0.1, intercept_scaling=2.0), SVR(epsilon=0.2)])
def test_files(model, tmp_path):
    data, target = (X, y) if is_classifier(model) else (Z, t)
    fitted = clone(model).fit(data, target)
    fitted.save(tmp_path / "model.mm")
    loaded = maxmargin.load(tmp_path / "model.mm")
    assert type(loaded) is type(model)
    assert loaded.get_params()["C"] == model.C
    assert loaded.predict(data).tolist() == fitted.predict(data).tolist()
    assert loaded.certificate_.primal == fitted.certificate_.primal
    assert loaded.n_features_in_ == data.shape[1]
    lines = list(loaded.text_lines())
    assert len(lines) == 2 + np.count_nonzero(fitted.coef_)
    assert len(loaded.describe(3)["largest"]) == 3
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.predict(data).tolist() == fitted.predict(data).tolist()
    other = SVR if is_classifier(model) else BinarySVM
    with pytest.raises(ModelFormatError):
        other.load(tmp_path / "model.mm")


def test_the_command_line_shows_models_and_says_what_it_cannot_do(tmp_path, capsys):
    file = tmp_path / "model.mm"
    BinarySVM().fit(X, y).save(file)
    assert main(["info", str(file)]) == 0
    assert "binary" in capsys.readouterr().out
    assert main(["eval", "-m", str(file), str(file)]) != 0
    assert "no task 'binary'" in capsys.readouterr().err


@pytest.mark.data
def test_the_example(capsys):
    data = data_file("newsgroups_taxonomy/train.txt.gz").parents[1]
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "binary.py"))
    assert example["main"](["--data", str(data), "--limit", "400"]) == 0
    said = capsys.readouterr().out
    assert "400 training and 2800 test posts" in said
    assert float(said.split("differs by ")[1]) < 1e-4
    assert example["main"](["--data", "nowhere"]) == 1


# --- bad input ---


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.repeat(["a", "b", "c"], 50), "Only binary classification is supported"),
        (np.zeros(150), "1 class"),
        (np.linspace(0, 1, 150), "Unknown label type"),
        (np.where(np.arange(150) == 3, np.nan, 1.0), "y: that of example 3 is nan"),
        (None, "requires y"),
        (y[:-1], "150 examples"),
    ],
)
def test_bad_classes(labels, message):
    with pytest.raises(ValueError, match=message):
        BinarySVM().fit(X, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margins": np.ones(3)}, "margins has 3 numbers; expected 150"),
        ({"margins": np.full(150, np.nan)}, "margins: that of example 0 is nan"),
        ({"margins": np.ones((150, 2))}, "margins has the shape"),
        ({"sample_weight": -np.ones(150)}, "sample_weight of example 0 is -1"),
        ({"sample_weight": np.zeros(150)}, "at least one non-zero"),
    ],
)
def test_bad_margins_and_weights(options, message):
    with pytest.raises(ValueError, match=message):
        BinarySVM().fit(X, y, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e13])
def test_bad_targets(bad):
    targets = np.where(np.arange(len(t)) == 7, bad, t)
    for method in (SVR().fit, SVR().partial_fit):
        with pytest.raises(ValueError, match=r"y: that of example 7 is"):
            method(Z, targets)
        with pytest.raises(ValueError, match=r"y: that of example 7 is"):
            method(Z, targets.tolist())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BinarySVM(intercept_scaling=0.0), "intercept_scaling is 0.0"),
        (BinarySVM(C=-1.0), "C must be"),
        (BinarySVM(class_weight="other"), "class_weight"),
        (BinarySVM(solver="newton"), "solver must be"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, "0.1", None])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon is"):
        SVR(epsilon=epsilon).fit(Z, t)


def test_predictions_before_fit_and_of_other_columns():
    with pytest.raises(NotFittedError):
        BinarySVM().predict(X)
    model = BinarySVM().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.decision_function(X[:, :3])
