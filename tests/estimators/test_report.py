"""``tagger.report``: the page about a tagger in Python."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from html_checks import Page
from maxmargin import SequenceTagger
from maxmargin.scores.calibration import calibration_error


def data(n, seed):
    draw = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = draw.choice(["A", "B", "C"], size=draw.integers(1, 8))
        words = [label if draw.random() < 0.7 else "?" for label in labels]
        X.append([{"bias": 1.0, "word": word} for word in words])
        y.append(labels.tolist())
    return X, y


def page_of(path):
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def tagger():
    return SequenceTagger(C=0.5, random_state=0).fit(*data(60, 0))


def test_the_page_has_what_the_tagger_says(tagger, tmp_path):
    X, y = data(40, 1)
    figures = tagger.report(tmp_path / "p.html", X, y, train=data(60, 0), title="mine")
    page = page_of(tmp_path / "p.html")
    assert page.headings[0] == (1, "mine")
    assert page.rows("Overall")["tokens right"][0] == tagger.score(X, y)
    assert page.rows("The certificate")["relative gap"] == [tagger.certificate_.gap]
    assert page.rows("Sequences and tokens").keys() == {"training data", "test data"}
    assert page.rows("Parameters")["C"] == [0.5]
    assert not hasattr(tagger, "temperature_")  # the model is as it was
    assert figures["report_bytes"] == (tmp_path / "p.html").stat().st_size
    weights = {(row[0], row[1]): row[3] for row in page.tables["Strongest features for"]}
    for name, weight in weights.items():
        assert tagger.state_features_[name] == weight
    moves = {(row[0], row[1]): row[3] for row in page.tables["Strongest transitions for"]}
    for name in moves.keys() & tagger.transition_features_.keys():
        assert tagger.transition_features_[name] == moves[name]
    # and how honest it is
    tagger.calibrate(X, y)
    assert figures["temperature"] == tagger.temperature_
    best, tables = tagger.predict(X), tagger.predict_proba(X)
    confidence = [p[list(tagger.classes_).index(label)]
                  for rows, labels in zip(tables, best, strict=True)
                  for p, label in zip(rows, labels, strict=True)]
    right = [a == b for u, v in zip(best, y, strict=True) for a, b in zip(u, v, strict=True)]
    error = calibration_error(np.minimum(confidence, 1), right)
    assert figures["calibration_error"] == pytest.approx(error)


def test_a_calibrated_tagger_keeps_its_temperature(tagger, tmp_path):
    tagger.calibrate(*data(30, 5))
    figures = tagger.report(tmp_path / "p.html", *data(40, 1))
    assert figures["temperature"] == tagger.temperature_
    assert "is part of the model" in page_of(tmp_path / "p.html").text


def test_training_data_alone_are_called_so(tagger, tmp_path):
    figures = tagger.report(tmp_path / "p.html", train=data(60, 0))
    assert "which the model has seen" in page_of(tmp_path / "p.html").text
    assert "calibration_error" not in figures


def test_no_data_no_scores(tagger, tmp_path):
    tagger.save(tmp_path / "m.mm")
    loaded = SequenceTagger.load(tmp_path / "m.mm")
    for one in (tagger, loaded):
        one.report(tmp_path / "p.html")
        page = page_of(tmp_path / "p.html")
        assert "There are no scores" in page.text
        assert page.rows("Sizes")["labels"] == [3]
    assert "does not keep the course of the training" in page.text


def test_the_passes_of_an_eval_set_are_drawn(tmp_path):
    tagger = SequenceTagger(C=0.5, random_state=0, gap=1e-4).fit(*data(60, 0), eval_set=data(30, 1))
    tagger.report(tmp_path / "p.html", *data(30, 1))
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "on the validation data over time" in text
    Page(text)


@pytest.mark.parametrize("kind", ["dense", "sparse", "strings", "rows"])
def test_inputs_of_any_kind(kind, tmp_path):
    from scipy.sparse import csr_matrix

    draw = np.random.default_rng(0)
    y = [draw.integers(3, size=5).tolist() for _ in range(20)]
    arrays = [np.eye(3)[labels] + 0.6 * draw.random((5, 3)) for labels in y]
    X = {
        "dense": arrays,
        "sparse": [csr_matrix(a) for a in arrays],
        "strings": [[[f"w={k}", "x"] for k in a.argmax(axis=1)] for a in arrays],
        "rows": [[[f"word{k}", "x"] for k in a.argmax(axis=1)] for a in arrays],
    }[kind]
    template = "words" if kind == "rows" else None
    tagger = SequenceTagger(C=0.05, random_state=0, template=template).fit(X[:12], y[:12])
    tagger.report(tmp_path / "p.html", X[12:], y[12:])
    assert page_of(tmp_path / "p.html").rows("Overall")["tokens right"][1] == 40


def test_words_of_ones_own(tagger, tmp_path):
    X, y = data(40, 1)
    words = [[f"own{i}" for _ in row] for i, row in enumerate(X)]
    tagger.report(tmp_path / "p.html", [*X, []], [*y, []], words=[*words, []])
    page = page_of(tmp_path / "p.html")
    assert all(row[0].startswith("own") for row in page.tables["Words that are wrong most often"])
    with pytest.raises(ValueError, match=r"sequence 0 has \d tokens and \d words"):
        tagger.report(tmp_path / "p.html", X, y, words=[[*words[0], "more"], *words[1:]])
    with pytest.raises(ValueError, match="words has 2 sequences"):
        tagger.report(tmp_path / "p.html", X, y, words=words[:2])


def test_mistakes_are_named(tagger, tmp_path):
    X, y = data(5, 1)
    with pytest.raises(NotFittedError):
        SequenceTagger().report(tmp_path / "p.html")
    with pytest.raises(ValueError, match="X without y"):
        tagger.report(tmp_path / "p.html", X)
    with pytest.raises(ValueError, match="y without X"):
        tagger.report(tmp_path / "p.html", y=y)
    with pytest.raises(ValueError, match=r"train is a list; expected a pair"):
        tagger.report(tmp_path / "p.html", train=X)
    with pytest.raises(ValueError, match=r"does not end with one of \.html, \.htm"):
        tagger.report(tmp_path / "p.txt", X, y)
    assert list(tmp_path.iterdir()) == []


def test_a_label_that_is_new_is_an_error_and_is_told(tagger, tmp_path):
    X, y = data(20, 1)
    y[0][0] = "new"
    tagger.report(tmp_path / "p.html", X, y, train=data(60, 0))
    page = page_of(tmp_path / "p.html")
    assert "do not occur in the training data, and cannot be predicted" in page.text
    assert page.rows("Tokens by label")["new"][-2:] == [1, 0]
    tagger.report(tmp_path / "q.html", [X[0]], [["new"] * len(X[0])])
    assert "There is no temperature" in page_of(tmp_path / "q.html").text
