"""`TaxonomySVM`: scikit-learn's checks, predictions and scores, files, the command line."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from maxmargin import MulticlassSVM, TaxonomySVM
from maxmargin.cli.main import main
from maxmargin.errors import ModelFormatError
from maxmargin.solvers import SDM
from maxmargin.structures.taxonomy_graph import graph_of_labels
from maxmargin.structures.taxonomy_scores import taxonomy_figures

LABELS = ["rec/autos", "rec/sport/hockey", "rec/sport/golf", "sci/med", "misc"]
TEXTS = [
    "the engine of my car",
    "the goalie stopped the puck of his team",
    "a club and a small white ball for the team",
    "doctors and patients",
    "for sale: one old chair",
]


@parametrize_with_checks([TaxonomySVM()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", maxmargin.ConvergenceWarning)
        warnings.simplefilter("ignore", maxmargin.ScalingWarning)
        check(estimator)


def blobs(n=90, seed=0):
    """Return points around a centre for each class; siblings are near each other."""
    rng = np.random.default_rng(seed)
    graph = graph_of_labels(LABELS, "/")
    centres = {None: np.zeros(6)}
    for z in range(1, len(graph.names)):
        up = graph.names[graph.parents[z][0]]
        centres[graph.names[z]] = centres[up] + rng.normal(size=6) * 2
    Y = rng.choice(LABELS, n)
    X = np.array([centres[y] for y in Y]) + rng.normal(size=(n, 6))
    return X, Y


def test_dense_and_sparse_inputs_give_the_same_model():
    X, Y = blobs()
    for dtype in ("float32", "float64"):
        dense = TaxonomySVM(C=0.1, gap=1e-6, dtype=dtype, random_state=0).fit(X, Y)
        sparse = TaxonomySVM(C=0.1, gap=1e-6, dtype=dtype, random_state=0).fit(
            scipy.sparse.csr_array(X), Y
        )
        assert dense.score(X, Y) > 0.9
        assert dense.classes_.tolist() == sorted(LABELS)
        np.testing.assert_allclose(
            dense.decision_function(X), sparse.decision_function(X), atol=2e-2
        )
        by_hand = X @ dense.coef_.T + dense.intercept_
        np.testing.assert_allclose(dense.decision_function(X), by_hand, atol=1e-4)
        assert dense.node_coef_.shape == (len(dense.nodes_), 6)


def test_the_tree_loss_and_paths():
    X, Y = blobs()
    model = TaxonomySVM(C=0.001, gap=1e-3).fit(X, Y)
    found = model.predict(X)
    assert 0 < np.mean(found == Y) < 1
    graph = model.graph_
    losses = [
        graph.tree_loss(graph.index[a], graph.index[b]) for a, b in zip(Y, found, strict=True)
    ]
    assert model.tree_loss(X, Y) == pytest.approx(np.mean(losses))
    assert model.tree_loss(X, Y, normalize=True) == pytest.approx(np.mean(losses) / 3)
    weight = np.arange(len(Y), dtype=float)
    assert model.tree_loss(X, Y, weight) == pytest.approx(np.average(losses, weights=weight))
    for path, label in zip(model.predict_path(X), found, strict=True):
        parts = label.split("/")
        assert path == tuple("/".join(parts[: k + 1]) for k in range(len(parts)))
    with pytest.raises(ValueError, match="example 1 has the label 'no', which is no node"):
        model.tree_loss(X[:2], ["misc", "no"])


def test_a_star_with_0_1_loss_is_the_flat_model():
    X, Y = blobs()
    star = TaxonomySVM(separator=None, loss="0/1", C=0.1, gap=1e-6, dtype="float64").fit(X, Y)
    flat = MulticlassSVM(C=0.1, gap=1e-6, dtype="float64").fit(X, Y)
    assert star.certificate_.primal == pytest.approx(flat.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(star.decision_function(X), flat.decision_function(X), atol=0.05)


def test_weights_of_examples_and_classes():
    X, Y = blobs(40)
    keep = np.arange(40) % 3 > 0
    weighted = TaxonomySVM(C=0.1, gap=1e-7, dtype="float64").fit(X, Y, 2.0 * keep)
    repeated = TaxonomySVM(C=0.2, gap=1e-7, dtype="float64", taxonomy=LABELS).fit(X[keep], Y[keep])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    balanced = TaxonomySVM(C=0.1, gap=1e-7, dtype="float64", class_weight="balanced").fit(X, Y)
    names, counts = np.unique(Y, return_counts=True)
    factor = dict(zip(names, 40 / (len(names) * counts), strict=True))
    same = TaxonomySVM(C=0.1, gap=1e-7, dtype="float64").fit(X, Y, [factor[y] for y in Y])
    assert balanced.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-6)
    with pytest.raises(ValueError, match="'nothing', which is no class"):
        TaxonomySVM(class_weight={"nothing": 1.0}).fit(X, Y)


def test_slack_rescaling_and_search():
    X, Y = blobs()
    model = TaxonomySVM(C=0.1, solver=SDM(rescale="slack"), gap=1e-4).fit(X, Y)
    assert not model.certificate_.approximate
    assert model.certificate_.gap <= 1e-4
    search = GridSearchCV(TaxonomySVM(), {"C": [0.01, 0.1], "loss": ["tree", "0/1"]}, cv=2)
    assert search.fit(X, Y).best_score_ > 0.8
    assert clone(model).get_params()["solver"] == SDM(rescale="slack")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"taxonomy": [*LABELS, "rec/sport/tennis"]},
        {"loss": "0/1", "node_weight": "depth", "fit_intercept": False},
        {"loss": {("misc", "sci/med"): 3.0}, "node_weight": {"rec": 2.0}, "rivals": "seen"},
        {"taxonomy": {"rec/autos": ["rec", "sci"], "rec": "top", "sci": "top", "misc": "top",
                      "rec/sport/hockey": "rec", "rec/sport/golf": "rec", "sci/med": "sci"}},
    ],
)  # fmt: skip
def test_files(tmp_path, options):
    X, Y = blobs(40)
    model = TaxonomySVM(C=0.1, random_state=0, **options).fit(X, Y)
    model.save(tmp_path / "model.mm")
    other = maxmargin.load(tmp_path / "model.mm")
    assert isinstance(other, TaxonomySVM)
    copy = pickle.loads(pickle.dumps(model))
    for again in (other, copy):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.predict_path(X) == model.predict_path(X)
        assert again.tree_loss(X, Y) == model.tree_loss(X, Y)
        assert again.get_params() == model.get_params()
        assert again.describe(3) == model.describe(3)
    refitted = other.fit(X, Y)
    np.testing.assert_allclose(refitted.decision_function(X), model.decision_function(X))


def test_texts_in_files(tmp_path):
    model = TaxonomySVM(features={"ngrams": 2}, C=10.0).fit(TEXTS, LABELS)
    assert model.predict(TEXTS).tolist() == LABELS
    model.save(tmp_path / "model.mm")
    other = TaxonomySVM.load(tmp_path / "model.mm")
    np.testing.assert_array_equal(other.decision_function(TEXTS), model.decision_function(TEXTS))
    strongest = other.describe(2)["strongest"]
    assert strongest.keys() == set(model.nodes_)
    with pytest.raises(ModelFormatError):
        MulticlassSVM.load(tmp_path / "model.mm")


def test_bad_input():
    X, Y = blobs(20)
    for options, message in [
        ({"taxonomy": ["rec/autos"]}, "which is no node"),
        ({"taxonomy": {"a": "b", "b": "a"}}, "cycle"),
        ({"loss": "height"}, "loss is 'height'"),
        ({"intercept_scaling": 0}, "intercept_scaling"),
        ({"features": "letters"}, "features is 'letters'"),
    ]:
        with pytest.raises(ValueError, match=message):
            TaxonomySVM(**options).fit(X, Y)
    with pytest.raises(ValueError, match="contradict each other"):
        TaxonomySVM().fit(X[:3], ["rec", "rec/autos", "misc"])
    inner = TaxonomySVM(classes="all").fit(X[:3], ["rec", "rec/autos", "misc"])
    assert inner.classes_.tolist() == ["misc", "rec", "rec/autos"]


# --- scores ---


def test_figures_of_labels_that_the_taxonomy_does_not_have():
    graph = graph_of_labels(LABELS, "/")

    def figures(truth, answer):
        return taxonomy_figures(graph, [truth], [answer], separator="/")[:3]

    assert figures("misc", "misc") == (1.0, 0.0, 1.0)
    assert figures("rec/sport/hockey", "rec/sport/golf") == (0.0, 1 / 3, 1.0)
    assert figures("rec/sport/tennis", "rec/sport/golf") == (0.0, 1 / 3, 1.0)
    assert figures("rec/sport/tennis", "rec/autos") == (0.0, 2 / 3, 0.0)
    assert figures("rec/sport/tennis/indoor", "rec/sport/golf") == (0.0, 1 / 3, 0.0)
    assert figures("misc/sale", "misc") == (0.0, 1 / 3, 0.0)
    assert figures("soc/chess", "misc") == (0.0, 1.0, 0.0)
    assert figures("soc", "misc") == (0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="no node"):
        taxonomy_figures(graph, ["soc"], ["misc"])
    with pytest.raises(ValueError, match="2 truths and 1 predictions"):
        taxonomy_figures(graph, ["misc", "misc"], ["misc"])
    mean = taxonomy_figures(graph, ["misc", "misc"], ["misc", "sci/med"], [3.0, 1.0])
    assert mean[:2] == (0.75, 0.25)


# --- the command line ---


@pytest.fixture
def files(tmp_path):
    lines = [f"{y}\t{x}\n" for x, y in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "train.txt").write_text("".join(lines * 3), encoding="utf-8")
    (tmp_path / "test.txt").write_text(
        "".join(lines) + "rec/chess\ta chess club\n", encoding="utf-8"
    )
    return tmp_path


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_train_eval_predict_info(files, capsys):
    train = ("train", "--task", "taxonomy", files / "train.txt", "-m", files / "m.mm", "-C", 10)
    code, _, err = run(capsys, *train)
    assert code == 0, err
    code, out, err = run(capsys, "eval", "-m", files / "m.mm", files / "test.txt", "--json")
    assert code == 0, err
    figures = json.loads(out)
    model = maxmargin.load(files / "m.mm")
    assert figures["accuracy"] == pytest.approx(5 / 6)
    assert 0 < figures["tree_loss"] <= 1 / 6
    assert 5 / 6 <= figures["parent_accuracy"] <= 1
    assert figures["documents_per_second"] > 0
    assert figures["seconds"] > 0
    code, out, err = run(capsys, "predict", "-m", files / "m.mm", files / "test.txt")
    assert code == 0, err
    assert out.splitlines()[1] == f"{LABELS[1]}\t{TEXTS[1]}"
    assert [line.split("\t")[0] for line in out.splitlines()] == model.predict(
        [*TEXTS, "a chess club"]
    ).tolist()
    code, out, err = run(capsys, "info", files / "m.mm", "--json")
    assert code == 0, err
    assert json.loads(out)["n_nodes"] == 9


def test_options_of_the_task(files, capsys):
    (files / "all.txt").write_text("\n".join([*LABELS, "rec/sport/tennis"]), encoding="utf-8")
    code, _, err = run(
        capsys, "train", "--task", "taxonomy", files / "train.txt", "-m", files / "m.mm",
        "--taxonomy", files / "all.txt", "--loss", "0/1", "--node-weight", "depth",
        "--rivals", "seen", "--ngrams", 2, "--no-bias", "-q",
    )  # fmt: skip
    assert code == 0, err
    model = maxmargin.load(files / "m.mm")
    assert "rec/sport/tennis" in model.classes_
    assert (model.loss, model.node_weight, model.rivals) == ("0/1", "depth", "seen")
    code, _, err = run(
        capsys, "train", "--task", "taxonomy", files / "train.txt", "-m", files / "m.mm",
        "--separator", "::", "--inner-labels", "-q",
    )  # fmt: skip
    assert code == 0, err
    assert maxmargin.load(files / "m.mm").graph_.heights[0] == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a/b\tx\n\na//c\ty\n", (), "bad.txt: line 3: the label path 'a//c' has an empty name"),
        ("a\tx\n\na/b\ty\n", (), "bad.txt: line 1: label paths contradict each other: 'a' is a"),
        ("a/b\tx\nc/b\ty\n", ("--unique-names",), "label paths contradict each other: 'b' is"),
        ("a/b x\n", (), "bad.txt: line 1: found no separator"),
        ("a/b\tx\nb\ty\n", ("--taxonomy", "TAXONOMY"), "line 2: the label path 'a/' has an empty"),
        ("a/b\tx\nb\ty\n", ("--separator", ""), "--separator is ''"),
        ("a/b\tx\na/b\ty\n", (), "one class only"),
    ],
)
def test_bad_files(files, capsys, text, options, message):
    (files / "bad.txt").write_text(text, encoding="utf-8")
    (files / "taxonomy.txt").write_text("a/b\na/\n", encoding="utf-8")
    options = [files / "taxonomy.txt" if o == "TAXONOMY" else o for o in options]
    code, _, err = run(
        capsys, "train", "--task", "taxonomy", files / "bad.txt", "-m", files / "m.mm", *options
    )
    assert code != 0
    assert message in err, err
    assert "Traceback" not in err
    assert not (files / "m.mm").exists()


def test_classes_and_truths_of_a_wrong_type():
    X, y = np.eye(3), ["a/b", "a/c", "d/e"]
    for bad in (5, None, [["a/b"]]):
        with pytest.raises(TypeError, match=r"expected .*nodes"):
            TaxonomySVM(classes=bad).fit(X, y)
    model = TaxonomySVM().fit(X, y)
    for truths in (None, 5, "a/b"):
        with pytest.raises(TypeError, match="expected a list of labels"):
            model.tree_loss(X, truths)
