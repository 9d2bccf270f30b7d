"""What people expect of an estimator on the first day: Ctrl-C, empty inputs, arrays, eval_set."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict

from maxmargin import (
    SVR,
    Aligner,
    BinarySVM,
    Chain,
    DependencyParser,
    MulticlassSVM,
    Parser,
    SequenceTagger,
    StructuralSVM,
    Structure,
    TaxonomySVM,
    evaluate,
)
from maxmargin.solvers import SDM, DualCoordinate
from maxmargin.solvers.ending import was_interrupted

RNG = np.random.default_rng(0)


def sequences(n, seed=0, noise=0.3):
    """Of two features of a token, one mostly tells its label."""
    draw = np.random.default_rng(seed)
    Y = [draw.choice(["B-x", "I-x", "O"], size=draw.integers(1, 7)).tolist() for _ in range(n)]
    X = [
        [{"w": y if draw.random() > noise else "?", "k": f"{draw.integers(5)}"} for y in row]
        for row in Y
    ]
    return X, Y


class Classes(Structure):
    """Three classes."""

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return range(3)


POINTS = RNG.normal(size=(60, 3))
NUMBERS = (POINTS @ RNG.normal(size=(3, 3)) + RNG.normal(size=(60, 3))).argmax(axis=1)
TREES = [
    "(S (NP (NN cows)) (VP (VBZ see) (NP (NP (NN men)) (PP (IN of) (NP (NN towns))))))",
    "(S (NP (NN cows)) (VP (VBZ see) (NP (NN men)) (PP (IN in) (NP (NN towns)))))",
    "(S (NP (NP (NN cows)) (PP (IN of) (NP (NN towns)))) (VP (VBZ see) (NP (NN men))))",
] * 2
SENTENCES = [[("the", "DT"), ("cow", "NN"), ("sleeps", "VBZ")], [("milk", "NN"), ("flows", "VBZ")]]
PAIRS = [("ACGT", "AGT"), ("GGAC", "GAC"), ("TTCA", "TCA")] * 2
ALIGNED = [("ACGT", "A-GT"), ("GGAC", "-GAC"), ("TTCA", "T-CA")] * 2
X, Y = sequences(30)

ESTIMATORS = {
    "tagger": (SequenceTagger(C=1.0), X, Y, SDM),
    "structure": (StructuralSVM(Classes(), C=1.0), list(POINTS), NUMBERS.tolist(), SDM),
    "chain": (StructuralSVM(Chain(), C=1.0), X, Y, SDM),
    "classes": (MulticlassSVM(C=1.0), POINTS, NUMBERS, SDM),
    "taxonomy": (TaxonomySVM(C=1.0), POINTS, [f"a/{k}" for k in NUMBERS], SDM),
    "binary": (BinarySVM(C=1.0), POINTS, NUMBERS > 0, DualCoordinate),
    "regression": (SVR(C=1.0), POINTS, NUMBERS.astype(float), DualCoordinate),
    "parser": (Parser(C=1.0), None, TREES, SDM),
    "dependencies": (DependencyParser(C=1.0), SENTENCES * 3, [[2, 3, 0], [2, 0]] * 3, SDM),
    "alignment": (Aligner(C=1.0), PAIRS, ALIGNED, SDM),
}


def interrupt_at(monkeypatch, solver, n):
    """Make Ctrl-C come at the n-th step."""
    original, steps = solver.step, []

    def step(self, engine, state, context):
        steps.append(1)
        if len(steps) == n:
            raise KeyboardInterrupt
        return original(self, engine, state, context)

    monkeypatch.setattr(solver, "step", step)
    return steps


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ctrl_c_keeps_the_model_and_is_raised(monkeypatch, name):
    template, inputs, truths, solver = ESTIMATORS[name]
    model = clone(template).set_params(gap=1e-12)
    interrupt_at(monkeypatch, solver, 3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(inputs, truths)
    assert was_interrupted(model.stop_reason_)
    assert model.n_iter_ == 2
    assert np.isfinite(model.certificate_.primal)
    monkeypatch.undo()
    # everything that a fitted model has is there
    assert np.isfinite(model.score(inputs, truths))
    if name != "chain":
        if inputs is not None:
            assert len(model.predict(inputs)) == len(truths)
        twin = pickle.loads(pickle.dumps(model))
        assert twin.score(inputs, truths) == model.score(inputs, truths)


def test_ctrl_c_before_anything_was_learned_leaves_no_model(monkeypatch):
    interrupt_at(monkeypatch, SDM, 1)
    model = SequenceTagger()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "weights_")


def test_ctrl_c_ends_a_search(monkeypatch):
    steps = interrupt_at(monkeypatch, SDM, 4)
    search = GridSearchCV(SequenceTagger(gap=1e-9), {"C": [0.1, 1.0, 10.0]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert len(steps) == 4
    assert not hasattr(search, "best_estimator_")


def test_ctrl_c_and_warm_start(monkeypatch):
    interrupt_at(monkeypatch, SDM, 3)
    model = SequenceTagger(C=1.0, gap=1e-4, warm_start=True, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    before = model.certificate_.dual
    monkeypatch.undo()
    assert model.fit(X, Y).certificate_.dual >= before
    assert model.converged_


# --- empty inputs, arrays of objects ---


@pytest.mark.parametrize("name", ["tagger", "chain", "structure", "parser", "alignment"])
def test_no_inputs_no_outputs(name):
    template, inputs, truths, _ = ESTIMATORS[name]
    model = clone(template).fit(inputs, truths)
    for nothing in ([], ()):
        found = model.predict(nothing)
        assert found.shape == (0,)
        assert found.dtype == object


@pytest.mark.parametrize("name", ["tagger", "chain"])
def test_empty_sequences_have_empty_answers(name):
    model = clone(ESTIMATORS[name][0]).fit(X, Y)
    mixed = [[], X[0], [], [], X[1], []]
    expected = model.predict(X[:2])
    assert model.predict(mixed).tolist() == [[], expected[0], [], [], expected[1], []]
    assert model.predict([[], []]).tolist() == [[], []]


def test_empty_sequences_of_a_tagger():
    model = SequenceTagger().fit(X, Y)
    mixed = [[], X[0]]
    assert model.predict_kbest(mixed, 2)[0] == [([], 0.0)]
    assert [scores.shape for scores in model.decision_function(mixed)] == [(0, 3), (len(X[0]), 3)]
    assert model.score([*X, []], [*Y, []]) == model.score(X, Y)
    weights = np.arange(len(X) + 1) + 1.0
    assert model.score([*X, []], [*Y, []], weights) == model.score(X, Y, weights[:-1])
    with pytest.raises(ValueError, match="no sequence has tokens"):
        model.score([[]], [[]])
    with pytest.raises(ValueError, match=r"sequence 0 has 0 tokens|is empty"):
        model.score([[]], [["O"]])


def test_empty_sequences_of_arrays():
    draw = np.random.default_rng(1)
    inputs = [draw.normal(size=(4, 2)) for _ in range(8)]
    model = SequenceTagger().fit(inputs, [["a", "b", "a", "b"]] * 8)
    assert [len(found) for found in model.predict([np.empty((0, 2)), inputs[0]])] == [0, 4]


@pytest.mark.parametrize("name", ["tagger", "structure", "classes", "dependencies"])
def test_predictions_of_folds_can_be_joined(name):
    template, inputs, truths, _ = ESTIMATORS[name]
    found = cross_val_predict(clone(template), inputs, truths, cv=3)
    assert found.shape == (len(truths),)
    if name == "tagger":
        assert [len(labels) for labels in found] == [len(x) for x in X]


def test_sequences_of_one_length_stay_lists():
    inputs = [[{"w": "a"}, {"w": "b"}]] * 4
    model = SequenceTagger().fit(inputs, [["A", "B"]] * 4)
    assert model.predict(inputs).shape == (4,)
    assert model.predict(inputs)[0] == ["A", "B"]


def test_scores_with_weights():
    model = SequenceTagger(C=0.01, max_passes=1, gap=0.5).fit(X[:5], Y[:5])
    weights = np.zeros(len(X))
    weights[7] = 2.0
    assert model.score(X, Y, sample_weight=weights) == model.score(X[7:8], Y[7:8])
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(X, Y, sample_weight=weights[:3])
    svm = StructuralSVM(Classes()).fit(list(POINTS), NUMBERS.tolist())
    chosen = np.arange(60) % 2
    assert svm.score(list(POINTS), NUMBERS.tolist(), sample_weight=chosen) == pytest.approx(
        svm.score(list(POINTS[1::2]), NUMBERS[1::2].tolist())
    )


# --- eval_set ---


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "parser"])
def test_eval_set_keeps_the_best_pass(name):
    template, inputs, truths, _ = ESTIMATORS[name]
    model = clone(template).set_params(random_state=0)
    alone = clone(model).fit(inputs, truths)
    model.fit(inputs, truths, eval_set=(inputs, truths))
    assert 1 <= model.best_pass_ <= model.n_iter_ == alone.n_iter_
    assert model.certificate_.dual == alone.certificate_.dual
    assert model.score(inputs, truths) >= alone.score(inputs, truths)
    again = model.fit(inputs, truths)
    assert not hasattr(again, "best_pass_")


def test_the_best_pass_of_a_tagger():
    train, test = sequences(60, 1, 0.6), sequences(200, 2, 0.6)
    model = SequenceTagger(C=5.0, gap=1e-4, random_state=0).fit(*train, eval_set=test)
    best = max(model.eval_scores_, key=lambda score: score["f1"])
    found = evaluate(test[1], model.predict(test[0])).f1
    assert found >= best["f1"]
    end = SequenceTagger(C=5.0, gap=1e-4, random_state=0).fit(*train)
    assert found >= evaluate(test[1], end.predict(test[0])).f1
    if model.best_pass_ < model.n_iter_:
        assert "best on the validation data" in model.stop_reason_
        assert found == best["f1"]


def test_eval_sets_that_are_none():
    for bad in (X, (X,), "ab", 3):
        with pytest.raises((ValueError, TypeError)):
            SequenceTagger().fit(X, Y, eval_set=bad)
    with pytest.raises(ValueError, match="sequences"):
        SequenceTagger().fit(X, Y, eval_set=(X, Y[:2]))


def test_eval_set_with_labels_that_are_not_known():
    test = ([*X, [{"w": "new"}]], [*Y, ["?"]])
    assert SequenceTagger().fit(X, Y, eval_set=test).best_pass_ >= 1


# --- class_weight ---


def test_class_weights_are_token_weights():
    factors = {"O": 0.2, "B-x": 3.0}
    by_class = SequenceTagger(class_weight=factors, gap=1e-4, random_state=0).fit(X, Y)
    weights = [[factors.get(label, 1.0) for label in labels] for labels in Y]
    by_token = SequenceTagger(gap=1e-4, random_state=0).fit(X, Y, token_weight=weights)
    np.testing.assert_array_equal(by_class.weights_, by_token.weights_)
    more = SequenceTagger(class_weight=factors, gap=1e-4, random_state=0)
    twice = [[2.0 * w for w in row] for row in weights]
    more.fit(X, Y, token_weight=[[2.0] * len(labels) for labels in Y])
    doubled = SequenceTagger(gap=1e-4, random_state=0).fit(X, Y, token_weight=twice)
    np.testing.assert_array_equal(more.weights_, doubled.weights_)


def test_balanced_class_weights():
    labels = np.concatenate(Y)
    names, counts = np.unique(labels, return_counts=True)
    factors = {str(n): len(labels) / (len(names) * c) for n, c in zip(names, counts, strict=True)}
    balanced = SequenceTagger(class_weight="balanced", gap=1e-4, random_state=0).fit(X, Y)
    given = SequenceTagger(class_weight=factors, gap=1e-4, random_state=0).fit(X, Y)
    np.testing.assert_allclose(balanced.weights_, given.weights_, atol=1e-6)


def test_class_weights_in_files(tmp_path):
    for given in ("balanced", {"O": 0.5, "B-x": 2.0}):
        model = SequenceTagger(class_weight=given, random_state=0).fit(X, Y)
        model.set_params(class_weight=None).save(tmp_path / "m.mm")  # what was trained counts
        loaded = SequenceTagger.load(tmp_path / "m.mm")
        assert loaded.class_weight == given
        loaded.set_params(random_state=0).fit(X, Y)
        np.testing.assert_array_equal(loaded.weights_, model.weights_)


@pytest.mark.parametrize("given", [{"?": 1.0}, {"O": -1.0}, {"O": "much"}, "equal", 3])
def test_bad_class_weights(given):
    with pytest.raises(ValueError, match="class_weight"):
        SequenceTagger(class_weight=given).fit(X, Y)


def test_class_weights_of_labels_that_were_given():
    model = SequenceTagger(labels=["O", "B-x", "I-x", "Z"], class_weight={"Z": 2.0}).fit(X, Y)
    assert model.classes_.tolist() == ["O", "B-x", "I-x", "Z"]
