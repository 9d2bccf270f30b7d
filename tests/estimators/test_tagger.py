"""SequenceTagger: training, prediction, scikit-learn's rules, bad input."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import maxmargin
from maxmargin import SDM, SequenceTagger, StructuralSVM, memory
from maxmargin.structures import chain_learning


def corpus(n=40, seed=0):
    """Sentences whose tags depend on the word and on the tag before: D (A) N V ..."""
    rng = np.random.default_rng(seed)
    words = {
        "D": ["the", "a"],
        "A": ["big", "red", "light"],
        "N": ["dog", "light", "run"],
        "V": ["barks", "run"],
    }
    X, y = [], []
    for _ in range(n):
        tags = ["D", *(["A"] * rng.integers(0, 3)), "N", "V"][: rng.integers(1, 6)]
        X.append([{"w": rng.choice(words[tag]), "bias": True} for tag in tags])
        y.append(tags)
    return X, y


X, y = corpus()
X_NEW, Y_NEW = corpus(30, seed=1)


def fitted(**options):
    return SequenceTagger(**{"C": 1.0, "random_state": 0, **options}).fit(X, y)


# --- training and prediction ---


def test_learns():
    tagger = fitted()
    assert tagger.converged_
    assert tagger.certificate_.gap <= 0.01
    assert 0 < tagger.certificate_.dual <= tagger.certificate_.primal
    assert tagger.score(X, y) > 0.95
    assert tagger.score(X_NEW, Y_NEW) > 0.9
    assert tagger.n_iter_ == len(tagger.history_)
    assert tagger.n_examples_ == len(X)


def test_predictions_have_the_shape_and_type_of_y():
    answers = fitted().predict(X_NEW)
    assert [len(labels) for labels in answers] == [len(x) for x in X_NEW]
    assert all(type(label) is str for labels in answers for label in labels)
    codes = {"D": 7, "A": -1, "N": 0, "V": 3}
    numbers = [np.array([codes[label] for label in labels]) for labels in y]
    tagger = SequenceTagger(C=1.0, random_state=0).fit(X, numbers)
    assert tagger.classes_.tolist() == [-1, 0, 3, 7]
    assert all(type(label) is int for label in tagger.predict(X_NEW)[0])
    assert tagger.score(X, numbers) > 0.95


def test_score_is_token_accuracy():
    tagger = fitted()
    answers = tagger.predict(X_NEW)
    pairs = [
        (a, b)
        for left, right in zip(answers, Y_NEW, strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    assert tagger.score(X_NEW, Y_NEW) == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert tagger.score(X_NEW, answers) == 1.0


def test_unknown_labels_count_as_errors():
    tagger = fitted()
    assert tagger.score(X_NEW, [["?"] * len(labels) for labels in Y_NEW]) == 0.0
    some = [["?", *labels[1:]] for labels in tagger.predict(X_NEW)]
    n_tokens = sum(map(len, some))
    assert tagger.score(X_NEW, some) == pytest.approx(1 - len(some) / n_tokens)
    with pytest.raises(ValueError, match="'\\?'"):
        tagger.score_labellings(X_NEW, some)


def test_unknown_features_are_ignored():
    tagger = fitted()
    more = [[{**token, "new": "thing", "x": 3.5} for token in x] for x in X_NEW]
    assert tagger.predict(more).tolist() == tagger.predict(X_NEW).tolist()
    assert len(tagger.predict([[{"never": "seen"}] * 4])[0]) == 4
    assert len(tagger.predict([[{}] * 4])[0]) == 4


def test_kbest():
    tagger = fitted()
    found = tagger.predict_kbest(X_NEW, 5)
    assert [paths[0][0] for paths in found] == tagger.predict(X_NEW).tolist()
    for x, paths in zip(X_NEW, found, strict=True):
        assert len(paths) == min(5, 4 ** len(x))
        scores = [score for _, score in paths]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(path) for path, _ in paths}) == len(paths)
        given = tagger.score_labellings([x] * len(paths), [path for path, _ in paths])
        np.testing.assert_allclose(given, scores, rtol=1e-5, atol=1e-5)


def test_decision_function():
    tagger = fitted()
    for x, scores, labels in zip(
        X_NEW, tagger.decision_function(X_NEW), tagger.predict(X_NEW), strict=True
    ):
        assert scores.shape == (len(x), 4)
        assert tagger.classes_[scores.argmax(axis=1)].tolist() == labels
        best = tagger.score_labellings([x], [labels])[0]
        np.testing.assert_allclose(scores.max(axis=1), best, rtol=1e-5)


def test_weights_by_name():
    tagger = fitted()
    names = tagger.get_feature_names_out().tolist()
    L = len(tagger.classes_)
    assert tagger.classes_.tolist() == ["A", "D", "N", "V"]
    assert tagger.coef_.shape == (len(names), L)
    assert tagger.transitions_.shape == (L, L)
    assert tagger.start_.shape == tagger.end_.shape == (L,)
    place = {label: k for k, label in enumerate(tagger.classes_)}
    tokens, labels = X_NEW[0], Y_NEW[0]
    score = tagger.start_[place[labels[0]]] + tagger.end_[place[labels[-1]]]
    for token, label in zip(tokens, labels, strict=True):
        for name in (f"w:{token['w']}", "bias"):
            score += tagger.coef_[names.index(name), place[label]]
    for a, b in itertools.pairwise(labels):
        score += tagger.transitions_[place[a], place[b]]
    assert tagger.score_labellings([tokens], [labels])[0] == pytest.approx(score, rel=1e-5)
    assert tagger.transitions_[place["D"], place["N"]] > tagger.transitions_[place["D"], place["D"]]


def test_all_kinds_of_input_give_the_same_model():
    rng = np.random.default_rng(0)
    dense = [(rng.random((T, 5)) < 0.5).astype(np.float32) for T in rng.integers(1, 6, 25)]
    dense[0][0] = 1  # features occur in their order, so that strings get the same numbers
    labels = [[int(row[0] + 2 * row[1]) for row in x] for x in dense]
    kinds = {
        "dense": dense,
        "sparse": [sparse.csr_matrix(x) for x in dense],
        "strings": [[[f"f{j}" for j in np.flatnonzero(row)] for row in x] for x in dense],
        "dicts": [[{f"f{j}": float(row[j]) for j in range(5)} for row in x] for x in dense],
        "bools": [[{f"f{j}": bool(row[j]) for j in range(5)} for row in x] for x in dense],
        "both": [(sparse.csr_array(x[:, :2]), x[:, 2:]) for x in dense],
    }
    expected = None
    for kind, given in kinds.items():
        tagger = SequenceTagger(C=1.0, dtype="float64", gap=1e-6, random_state=0).fit(given, labels)
        assert hasattr(tagger, "n_features_in_") == (kind in ("dense", "sparse"))
        if expected is None:
            expected = tagger
            assert tagger.n_features_in_ == 5
            continue
        np.testing.assert_allclose(tagger.coef_, expected.coef_, atol=2e-3)
        assert tagger.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-5)
        assert tagger.predict(given).tolist() == expected.predict(dense).tolist()
    stacked = np.stack([x[:1] for x in dense])  # one 3-d array is a list of sequences too
    assert expected.predict(stacked).tolist() == expected.predict(list(stacked)).tolist()


def test_number_of_columns_must_stay():
    rows = [np.eye(3)]
    tagger = SequenceTagger().fit(rows, [[0, 1, 2]])
    with pytest.raises(ValueError, match="sequence 0 has 4 columns"):
        tagger.predict([np.eye(4)])
    with pytest.raises(ValueError, match="kind"):
        tagger.predict([[["a"]]])
    assert tagger.get_feature_names_out().tolist() == ["dense:0", "dense:1", "dense:2"]


def test_one_label():
    tagger = SequenceTagger().fit(X, [["N"] * len(labels) for labels in y])
    assert tagger.predict(X[:1]).tolist() == [["N"] * len(X[0])]
    assert tagger.certificate_.gap == 0
    assert tagger.converged_


def test_single_tokens_and_a_long_sequence():
    long = [{"w": "the", "bias": True}, {"w": "dog", "bias": True}] * 1500
    labels = ["D", "N"] * 1500
    tagger = SequenceTagger(C=0.1, random_state=0)
    tagger.fit([*X, long[:400], X[0][:1]], [*y, labels[:400], y[0][:1]])
    assert tagger.predict([long, long[:1]]).tolist() == [labels, labels[:1]]


def test_many_labels():
    rng = np.random.default_rng(0)
    labels = [[int(k) for k in rng.integers(0, 300, 12)] for _ in range(60)]
    words = [[[f"w{k}"] for k in row] for row in labels]
    tagger = SequenceTagger(C=0.3, gap=0.1, random_state=0).fit(words, labels)
    assert len(tagger.classes_) > 250
    assert tagger.score(words, labels) > 0.99


def margins(tagger, words):
    """Scores of the right labels minus scores of the wrong ones, for one token of a and of b."""
    right, wrong = (tagger.score_labellings(words, [[p], [q]]) for p, q in ("ab", "ba"))
    return (right - wrong).tolist()


def test_loss_and_token_weights_are_used():
    # Separable data and a large C: the margin of every example is its cost, or larger.
    words, labels = [[["x"]], [["z"]]], [["a"], ["b"]]
    tagger = SequenceTagger(C=1000.0, gap=1e-3, random_state=0)
    assert margins(tagger.fit(words, labels), words) == pytest.approx([1, 1], abs=0.05)
    tagger.fit(words, labels, token_weight=[[1.0], [4.0]])
    assert margins(tagger, words)[1] == pytest.approx(4, abs=0.1)
    for loss in ({("b", "a"): 5.0}, [[0, 1], [5, 0]]):
        tagger.set_params(loss=loss).fit(words, labels)
        assert margins(tagger, words)[1] == pytest.approx(5, abs=0.1)
    tagger.fit(words, labels, token_weight=[[0.0], [0.0]])
    assert not tagger.coef_.any()  # errors that cost nothing teach nothing


def test_iob2_predictions_are_valid():
    rng = np.random.default_rng(0)
    labels = ["O", "B-x", "I-x", "B-y", "I-y"]
    inputs = [rng.normal(size=(T, 3)) for T in rng.integers(1, 12, 40)]
    outputs = [rng.choice(labels, len(x)).tolist() for x in inputs]
    tagger = SequenceTagger(C=1.0, allowed="iob2", random_state=0).fit(inputs, outputs)
    free = clone(tagger).set_params(allowed=None).fit(inputs, outputs)
    assert tagger.predict(inputs).tolist() != free.predict(inputs).tolist()
    np.testing.assert_array_equal(tagger.coef_, free.coef_)  # decoding, not training
    everything = [path for paths in tagger.predict_kbest(inputs, 4) for path, _ in paths]
    for path in [*tagger.predict(inputs), *everything]:
        for a, b in itertools.pairwise(["O", *path]):
            assert b[0] != "I" or a[1:] == b[1:]


def test_explicit_labels():
    order = ["V", "N", "X", "D", "A"]
    tagger = fitted(labels=order)
    assert tagger.classes_.tolist() == order
    assert tagger.coef_.shape[1] == 5
    assert tagger.score(X_NEW, Y_NEW) > 0.9
    assert "X" not in {label for labels in tagger.predict(X_NEW) for label in labels}


def test_classes_of_any_kind():
    tagger = SequenceTagger().fit([[["a"], ["b"], ["c"]]], [[("x", 1), ("y", 2), ("x", 2)]])
    assert tagger.classes_.tolist() == [("x", 1), ("x", 2), ("y", 2)]
    mixed = SequenceTagger().fit([[["a"], ["b"]]], [["x", 1]])
    assert mixed.classes_.tolist() == ["x", 1]  # cannot be sorted: order of appearance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("schedule", ["auto", "paper"])
def test_precisions_and_schedules_agree(dtype, schedule):
    solver = SDM(schedule=schedule, tau=1e-4, tau_inner=1e-5)
    tagger = fitted(dtype=dtype, solver=solver, gap=1e-3, max_passes=5000)
    assert tagger.weights_.dtype == dtype
    reference = fitted(dtype="float64", gap=1e-5)
    assert tagger.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-3)


# --- bad input ---


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([], [], "X is empty"),
        (X, None, "requires y"),
        (X, y[:-1], "X has 40 sequences and y has 39"),
        (X, [*y[:5], [*y[5], "N"], *y[6:]], r"sequence 5 has \d tokens in X and \d labels in y"),
        ([*X, []], [*y, []], "sequence 40 is empty"),
        ([[{"a": np.nan}]], [["N"]], "sequence 0, token 0.*nan"),
        ([[{"a": 1.0}], [{"a": 1.0}, {"a": -np.inf}]], [["N"], ["N", "N"]], "sequence 1, token 1"),
        (
            [np.eye(2), np.array([[0, np.nan]])],
            [["N", "V"], ["N"]],
            "sequence 1, token 0, column 1",
        ),
        ([sparse.csr_array([[np.inf]])], [["N"]], "sequence 0, token 0, column 0"),
        ([np.eye(2), np.eye(3)], [["N", "V"], ["N", "V", "N"]], "sequence 1 has 3 columns"),
        ([np.eye(2), [["a"]]], [["N", "V"], ["N"]], "sequence 1 .* of kind strings"),
        ("some text", y, "X is a str"),
        ([[["a"]]], [[["N"]]], "list"),
        (np.eye(3), y, "2-d array"),
    ],
)
def test_bad_data(inputs, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceTagger().fit(inputs, labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.predict([[{"w": np.inf}]]), "sequence 0, token 0"),
        (lambda t: t.score(X, y[:3]), "X has 40 sequences and y has 3"),
        (lambda t: t.score(X[:1], [y[0][:-1] or ["N", "N"]]), "sequence 0 has"),
        (lambda t: t.score_labellings(X[:1], [["?"] * len(X[0])]), r"'\?'"),
        (lambda t: t.predict_kbest(X, 0), "k is 0"),
    ],
)
def test_bad_data_at_prediction(call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted())


@pytest.mark.parametrize("C", [0, -0.5, np.nan, np.inf, None, "1", True])
def test_bad_c(C):
    with pytest.raises((ValueError, TypeError), match="C must be"):
        SequenceTagger(C=C).fit(X, y)


def test_bad_token_weight_is_named():
    weight = [[1.0] * len(labels) for labels in y]
    weight[3][0] = -1.0
    with pytest.raises(ValueError, match=r"token_weight of sequence 3, token 0 is -1\.0"):
        SequenceTagger().fit(X, y, token_weight=weight)


def test_too_many_labels(monkeypatch):
    monkeypatch.setattr(chain_learning, "MAX_LABELS", 3)
    with pytest.raises(ValueError, match="there are 4 labels; at most 3"):
        SequenceTagger().fit(X, y)


def test_more_memory_than_there_is(monkeypatch):
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"the weights .*4 labels, float32.* needs 1\.\d kB"):
        SequenceTagger().fit(X, y)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.predict(X),
        lambda t: t.predict_kbest(X, 2),
        lambda t: t.score(X, y),
        lambda t: t.decision_function(X),
        lambda t: t.score_labellings(X, y),
        lambda t: t.get_feature_names_out(),
    ],
)
def test_not_fitted(call):
    with pytest.raises(NotFittedError):
        call(SequenceTagger())


@pytest.mark.parametrize(
    "name", ["classes_", "coef_", "transitions_", "start_", "end_", "n_features_in_"]
)
def test_attributes_only_once_fitted(name):
    assert not hasattr(SequenceTagger(), name)


# --- scikit-learn ---


def test_is_an_estimator_but_no_classifier():
    tagger = SequenceTagger()
    assert isinstance(tagger, BaseEstimator)
    assert not isinstance(tagger, ClassifierMixin)
    assert not is_classifier(tagger)
    tags = tagger.__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.no_validation
    assert tags.input_tags.dict
    assert not tags.input_tags.two_d_array


#: Checks of scikit-learn that need no X; `check_estimator` runs next to nothing where X is no 2-d
#: array. Not every version has all of them.
CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", [name for name in CHECKS if hasattr(estimator_checks, name)])
@pytest.mark.parametrize("kind", [SequenceTagger, StructuralSVM])
def test_checks_of_scikit_learn(check, kind):
    getattr(estimator_checks, check)(kind.__name__, kind())


def test_clone_and_parameters():
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    tagger = SequenceTagger(C=3.0, loss=cost, allowed="iob2", solver=SDM(schedule="paper"))
    twin = clone(tagger)
    assert twin.get_params().keys() == tagger.get_params().keys()
    assert (twin.C, twin.allowed, twin.solver) == (3.0, "iob2", SDM(schedule="paper"))
    np.testing.assert_array_equal(twin.loss, cost)
    assert twin.set_params(C=1.0, loss="hamming").C == 1.0
    assert not hasattr(clone(fitted()), "weights_")
    assert repr(SequenceTagger(C=0.5)) == "SequenceTagger(C=0.5)"


def test_parameters_are_only_stored():
    tagger = SequenceTagger(C="bad", allowed=7, labels=3, solver=None)  # said at fit, not before
    assert tagger.get_params()["C"] == "bad"
    with pytest.raises(ValueError, match="solver"):
        tagger.fit(X, y)


def test_model_selection():
    scores = cross_val_score(SequenceTagger(C=1.0, random_state=0), X, y, cv=4)
    assert scores.shape == (4,)
    assert (scores > 0.8).all()
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": [1e-6, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_estimator_.score(X, y) > 0.95
    assert search.predict(X_NEW).tolist() == search.best_estimator_.predict(X_NEW).tolist()


def test_fit_parameters_are_split_with_the_data():
    weight = [[1.0] * len(labels) for labels in y]
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": [1.0]}, cv=3)
    assert search.fit(X, y, token_weight=weight).best_score_ > 0.8


class Lower(TransformerMixin, BaseEstimator):
    """A transformer of sequences."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [[{"w": token["w"].lower()} for token in x] for x in X]


def test_pipeline():
    loud = [[{"w": token["w"].upper()} for token in x] for x in X]
    pipeline = make_pipeline(Lower(), SequenceTagger(C=1.0, random_state=0)).fit(loud, y)
    assert pipeline.score(loud, y) > 0.9
    quiet = [[{"w": token["w"]} for token in x] for x in X]
    assert pipeline.predict(loud).tolist() == pipeline.predict(quiet).tolist()
    search = GridSearchCV(pipeline, {"sequencetagger__C": [0.1, 1.0]}, cv=2).fit(loud, y)
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("warm_start", [False, True])
def test_pickle(warm_start):
    tagger = fitted(warm_start=warm_start)
    if warm_start:
        tagger.fit(X, y)
    for twin in (pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)):
        assert twin.weights_.ctypes.data % 32 == 0  # as native code needs it
        assert twin.predict(X_NEW).tolist() == tagger.predict(X_NEW).tolist()
        np.testing.assert_array_equal(twin.coef_, tagger.coef_)
        assert twin.certificate_ == tagger.certificate_
        assert twin.history_ == tagger.history_
        assert twin.get_feature_names_out().tolist() == tagger.get_feature_names_out().tolist()
        twin.fit(X, y)
        np.testing.assert_array_equal(twin.weights_, fitted().weights_)
    assert len(pickle.dumps(SequenceTagger())) < 2000


def test_reproducible_bit_for_bit():
    a, b = fitted(gap=1e-4), fitted(gap=1e-4)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.certificate_ == b.certificate_
    np.testing.assert_array_equal(a.history_.column("dual"), b.history_.column("dual"))
    other = fitted(gap=1e-4, random_state=1)
    assert not np.array_equal(a.weights_, other.weights_)
    state = np.random.RandomState(5)
    np.testing.assert_array_equal(
        fitted(random_state=state).weights_, fitted(random_state=np.random.RandomState(5)).weights_
    )


def test_n_jobs_changes_nothing():
    one, two = fitted(gap=1e-4), fitted(gap=1e-4, n_jobs=2)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    assert one.predict(X_NEW).tolist() == two.predict(X_NEW).tolist()
    assert one.predict_kbest(X_NEW, 3) == two.predict_kbest(X_NEW, 3)
    assert fitted(n_jobs=-1).predict(X_NEW).tolist() == fitted().predict(X_NEW).tolist()


def test_fit_leaves_its_data_alone():
    inputs, labels = copy.deepcopy(X), copy.deepcopy(y)
    fitted()
    assert (inputs, labels) == (X, y)


def test_read_only_arrays():
    inputs = [np.eye(3), np.ones((2, 3))]
    for array in inputs:
        array.flags.writeable = False
    tagger = SequenceTagger().fit(inputs, [[0, 1, 2], [0, 0]])
    assert len(tagger.predict(inputs)) == 2


# --- warm start ---


def test_warm_start_equals_cold():
    cold = fitted(gap=1e-5, dtype="float64")
    warm = fitted(gap=0.5, dtype="float64", warm_start=True)
    rough = warm.certificate_.dual
    warm.set_params(gap=1e-5).fit(X, y)
    assert warm.certificate_.dual >= rough
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)
    assert warm.predict(X_NEW).tolist() == cold.predict(X_NEW).tolist()
    warm.set_params(C=0.2).fit(X, y)
    cold = fitted(C=0.2, gap=1e-5, dtype="float64")
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)


@pytest.mark.parametrize(
    ("change", "inputs", "labels", "weight"),
    [
        ({}, X[:-1], y[:-1], None),
        ({}, [[{"w": "new"}] * len(X[0]), *X[1:]], y, None),
        ({}, X, [["N"] * len(y[0]), *y[1:]], None),
        ({}, X, [["A" if k == "D" else "D" if k == "A" else k for k in s] for s in y], None),
        ({}, X, y, [[2.0] * len(s) for s in y]),
        ({"loss": {("N", "V"): 3.0}}, X, y, None),
        ({"labels": ["A", "D", "N", "V", "X"]}, X, y, None),
        ({"dtype": "float64"}, X, y, None),
        ({}, [[{"W": token["w"], "bias": True} for token in x] for x in X], y, None),
    ],
)
def test_warm_start_with_other_data(change, inputs, labels, weight):
    tagger = fitted(warm_start=True).set_params(**change)
    with pytest.raises(ValueError, match="warm_start=True goes on"):
        tagger.fit(inputs, labels, token_weight=weight)
    assert tagger.score(X, y) > 0.95  # the old model is still there
    tagger.set_params(warm_start=False).fit(inputs, labels, token_weight=weight)


# --- the package ---


def test_public_names():
    for name in maxmargin.__all__:
        assert getattr(maxmargin, name) is not None
        assert name in dir(maxmargin)
    assert maxmargin.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        maxmargin.nothing  # noqa: B018


def test_import_is_light():
    import subprocess
    import sys

    code = "import sys, maxmargin; sys.exit('sklearn' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
