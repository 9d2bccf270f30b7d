"""The steps of sklearn-crfsuite's tutorial (CoNLL-2002 Spanish), with `SequenceTagger`."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.model_selection import RandomizedSearchCV

from maxmargin import SequenceTagger, evaluate, scorers
from real_data import read_columns


def word2features(sent, i):
    """Return the features that the tutorial has for a token, as its description lists them."""
    features = {"bias": 1.0}
    around = ("lower", "shape", "tag")
    for offset, names in ((0, ("suffix", *around)), (-1, around), (1, around)):
        place = i + offset
        prefix = f"{offset:+d}:" if offset else ""
        if not 0 <= place < len(sent):
            features["BOS" if offset < 0 else "EOS"] = True
            continue
        word, tag = sent[place][0], sent[place][1]
        for name in names:
            if name == "lower":
                features[f"{prefix}word.lower()"] = word.lower()
            elif name == "suffix":
                features |= {"word[-3:]": word[-3:], "word[-2:]": word[-2:]}
            elif name == "shape":
                features[f"{prefix}word.istitle()"] = word.istitle()
                features[f"{prefix}word.isupper()"] = word.isupper()
            else:
                features |= {f"{prefix}postag": tag, f"{prefix}postag[:2]": tag[:2]}
    return features


def part(name, n):
    sentences = read_columns(f"conll2002_esp/{name}.tsv.gz", n)
    X = [[word2features(sent, i) for i in range(len(sent))] for sent in sentences]
    return X, [[row[-1] for row in sent] for sent in sentences]


@pytest.mark.data
@pytest.mark.slow
def test_the_tutorial():
    X_train, y_train = part("train", 600)
    X_test, y_test = part("test", 200)
    crf = SequenceTagger(C=0.1, random_state=0)
    crf.fit(X_train, y_train)
    labels = [label for label in crf.classes_ if label != "O"]
    assert len(labels) == 8
    y_pred = crf.predict(X_test)
    report = evaluate(y_test, y_pred)
    assert report.f1 > 0.5
    assert scorers.weighted_f1_score(y_test, y_pred) > 0.9
    # what the tutorial looks at
    transitions = Counter(crf.transition_features_).most_common(20)
    assert transitions[0][1] > 0
    likely = {pair for pair, _ in transitions}
    assert {("B-PER", "I-PER"), ("B-ORG", "I-ORG")} & likely
    states = Counter(crf.state_features_).most_common(30)
    assert any(label != "O" for (_, label), _ in states)
    # its search
    small = X_train[:120], y_train[:120]
    search = RandomizedSearchCV(
        SequenceTagger(gap=0.1, random_state=0),
        {"C": loguniform(0.01, 1.0)},
        n_iter=2,
        cv=3,
        scoring=scorers.chunk_f1,
        random_state=0,
    ).fit(*small)
    assert 0.01 <= search.best_params_["C"] <= 1.0
    assert search.best_score_ > 0.1
    # marginals
    crf.calibrate(*part("dev", 200))
    marginals = crf.predict_marginals(X_test)
    assert set(marginals[0][0]) == set(crf.classes_)
    confidence = np.array([max(p.values()) for row in marginals for p in row])
    assert 0.9 < confidence.mean() <= 1.0
