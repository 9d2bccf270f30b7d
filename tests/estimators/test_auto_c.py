"""``C="auto"``: the rule, what is trained with it, and what files keep of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from maxmargin import (
    Chain,
    MulticlassSVM,
    NotCompatibleError,
    SequenceTagger,
    StructuralSVM,
    TransductiveTagger,
    compare,
    load,
    path,
)
from maxmargin.constraints import ConstraintSet, First

WORDS = ["a", "b", "c", "d"]


def data(n_features, n=30, seed=0):
    """Sequences whose tokens have that many features, each 1."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        codes = rng.integers(0, 4, rng.integers(1, 6))
        X.append([[f"{k}={WORDS[c]}" for k in range(n_features)] for c in codes])
        y.append([WORDS[c] if rng.random() < 0.9 else "a" for c in codes])
    return X, y


@pytest.mark.parametrize(
    ("n_features", "C"), [(1, 1.0), (3, 1.0), (6, 0.5), (12, 0.25), (30, 0.1), (60, 0.1)]
)
def test_the_rule(n_features, C):
    tagger = SequenceTagger(C="auto", random_state=0).fit(*data(n_features))
    assert tagger.C == "auto"
    assert pytest.approx(C) == tagger.C_
    assert pytest.approx(C) == tagger.certificate_.C


def test_values_and_dense_features_count_by_their_squares():
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(4, 5)) for _ in range(20)]
    y = [["p" if row[0] > 0 else "q" for row in x] for x in X]
    norm = np.mean([row @ row for x in X for row in x])
    tagger = SequenceTagger(C="auto", random_state=0).fit(X, y)
    assert pytest.approx(np.clip(3 / norm, 0.1, 1.0)) == tagger.C_
    dicts = [[{"a": 2.0, "b": 1.0}] * 2 for _ in range(6)]
    labels = [["p", "q"]] * 6
    assert pytest.approx(0.6) == SequenceTagger(C="auto").fit(dicts, labels).C_


def test_it_is_the_training_with_that_number():
    X, y = data(12)
    auto = SequenceTagger(C="auto", random_state=0).fit(X, y)
    number = SequenceTagger(C=auto.C_, random_state=0).fit(X, y)
    assert np.array_equal(auto.coef_, number.coef_)
    assert number.C_ == auto.C_


def test_a_mean_over_the_sequences_divides_it():
    X, y = data(12)
    tagger = SequenceTagger(C="auto", C_scale="mean", random_state=0).fit(X, y)
    assert pytest.approx(0.25) == tagger.C_
    assert pytest.approx(0.25 / len(X)) == tagger.certificate_.C


def test_a_kernel_has_the_default():
    tagger = SequenceTagger(C="auto", kernel="rbf", random_state=0).fit(*data(2, n=8))
    assert tagger.C_ == 0.1


def test_files_have_the_number(tmp_path):
    X, y = data(6)
    tagger = SequenceTagger(C="auto", random_state=0).fit(X, y)
    tagger.save(tmp_path / "m.mm")
    loaded = load(tmp_path / "m.mm")
    assert loaded.C == loaded.C_ == tagger.C_
    assert clone(tagger).C == "auto"
    assert np.array_equal(clone(loaded).set_params(random_state=0).fit(X, y).coef_, tagger.coef_)


def test_paths_and_more_data_go_on_with_it():
    X, y = data(6)
    tagger = SequenceTagger(C="auto", random_state=0)
    assert pytest.approx(0.5) == path(tagger, X, y, l1_ratios=[0.5]).points[0].C
    with pytest.raises(NotCompatibleError, match=r'C="auto" .* partial_fit .* needs a number'):
        SequenceTagger(C="auto").partial_fit(X, y)
    with pytest.raises(NotCompatibleError, match='C="auto"'):  # the fit did not look for one
        SequenceTagger(C=0.3).fit(X, y).set_params(C="auto").partial_fit(X, y)
    tagger.fit(X, y).partial_fit(*data(6, n=3, seed=5))
    assert pytest.approx(0.5) == tagger.certificate_.C


@pytest.mark.parametrize("C", ["Auto", "0.1", None])
def test_other_words_are_refused(C):
    with pytest.raises(TypeError, match='C must be a number or "auto"'):
        SequenceTagger(C=C).fit(*data(2))


def test_transductive_training_needs_a_number():
    X, y = data(6)
    rules = ConstraintSet([First("a")])
    with pytest.raises(NotCompatibleError, match=r'C="auto" .* transductive training'):
        TransductiveTagger(C="auto", constraints=rules).fit(X, y, X[:3])
    fitted = TransductiveTagger(C=0.5, constraints=rules, random_state=0).fit(X, y, X[:3])
    assert fitted.C_ == 0.5


def test_clusters_need_a_number():
    distributed = pytest.importorskip("maxmargin.distributed")
    with pytest.raises(NotCompatibleError, match=r'C="auto" .* a cluster needs a number'):
        distributed.DaskSequenceTagger(C="auto").fit(["none.tsv"])


def test_other_estimators_have_no_such_rule():
    with pytest.raises(TypeError, match="C must be a number, got 'auto'"):
        MulticlassSVM(C="auto").fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(TypeError, match="C must be a number, got 'auto'"):
        StructuralSVM(Chain(), C="auto").fit(*data(2))


def test_streams_searches_and_comparisons(tmp_path):
    X, y = data(6)
    number = SequenceTagger(C=0.5, random_state=0).fit(X, y)
    streamed = SequenceTagger(C="auto", random_state=0).fit_stream(list(zip(X, y, strict=True)))
    assert pytest.approx(0.5) == streamed.C_
    assert np.array_equal(streamed.coef_, number.coef_)
    assert pytest.approx(0.5) == compare(SequenceTagger(C="auto"), X, y, solvers=["sdm"]).C
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": ["auto", 0.001]}, cv=2).fit(X, y)
    assert search.best_params_ == {"C": "auto"}
    assert pytest.approx(0.5) == search.best_estimator_.C_
    best = SequenceTagger(C="auto", random_state=0).fit(X, y, eval_set=(X, y))
    assert pytest.approx(0.5) == best.C_
    state = {"C": "auto", "checkpoint": tmp_path / "c.npz", "resume": True, "random_state": 0}
    SequenceTagger(**state).fit(X, y)
    assert pytest.approx(0.5) == SequenceTagger(**state).fit(X, y).certificate_.C
    assert pytest.approx(0.5) == pickle.loads(pickle.dumps(best)).C_
