"""Scorers by name: as evaluate counts, with weights, and in a search."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

from maxmargin import SequenceTagger, evaluate, scorers

RNG = np.random.default_rng(0)
TAGS = ["B-NP", "I-NP", "B-VP", "O"]
TRUE = [RNG.choice(TAGS, size=RNG.integers(1, 9)).tolist() for _ in range(40)]
FOUND = [[t if RNG.random() < 0.7 else str(RNG.choice(TAGS)) for t in row] for row in TRUE]


def test_scores_are_those_of_evaluate():
    report = evaluate(TRUE, FOUND)
    for name, expected in [
        ("token_accuracy", report.token_accuracy),
        ("sequence_accuracy", report.sequence_accuracy),
        ("chunk_precision", report.precision),
        ("chunk_recall", report.recall),
        ("chunk_f1", report.f1),
        ("macro_f1", np.mean([score.f1 for score in report.per_label.values()])),
    ]:
        assert getattr(scorers, f"{name}_score")(TRUE, FOUND) == pytest.approx(expected)


def test_token_scores_are_those_of_scikit_learn():
    from sklearn.metrics import f1_score

    flat = np.concatenate(TRUE), np.concatenate(FOUND)
    for average in ("macro", "weighted"):
        own = getattr(scorers, f"{average}_f1_score")(TRUE, FOUND)
        assert own == pytest.approx(f1_score(*flat, average=average))


@pytest.mark.parametrize("name", scorers.names())
def test_weights_are_repetitions(name):
    score = getattr(scorers, f"{name}_score")
    weight = RNG.integers(0, 4, size=len(TRUE))
    repeated = [
        [row for row, times in zip(rows, weight, strict=True) for _ in range(times)]
        for rows in (TRUE, FOUND)
    ]
    assert score(TRUE, FOUND, sample_weight=weight) == pytest.approx(score(*repeated))
    assert score(TRUE, TRUE) == 1.0
    for bad in (weight[:3], -weight, np.zeros(len(TRUE))):
        with pytest.raises(ValueError, match="sample_weight"):
            score(TRUE, FOUND, sample_weight=bad)


def test_in_a_search():
    X = [[{"w": tag if k % 3 else "?"} for k, tag in enumerate(row)] for row in TRUE]
    search = GridSearchCV(SequenceTagger(), {"C": [0.01, 1.0]}, scoring=scorers.chunk_f1, cv=3)
    search.fit(X, TRUE)
    found = evaluate(TRUE, search.predict(X)).f1
    assert scorers.chunk_f1(search, X, TRUE) == pytest.approx(found)
    several = {name: scorers.get_scorer(name) for name in scorers.names()}
    scores = cross_validate(SequenceTagger(), X, TRUE, scoring=several, cv=3)
    assert all(np.isfinite(scores[f"test_{name}"]).all() for name in several)


def test_scorers_can_be_copied():
    for name in scorers.names():
        scorer = scorers.get_scorer(name)
        assert repr(pickle.loads(pickle.dumps(scorer))) == repr(scorer)
        assert clone(scorer, safe=False) is not None
    with pytest.raises(ValueError, match="there is no scorer 'f2'"):
        scorers.get_scorer("f2")
