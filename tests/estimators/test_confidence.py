"""Calibrated probabilities of a tagger: sums over all labellings, the temperature, files."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin import CalibrationWarning, ModelFormatError, SequenceTagger
from maxmargin.io.container import read_container, write_container
from maxmargin.scores.calibration import calibration_error
from maxmargin.selection.calibration import find_temperature


def sequences(n, seed, noise=0.35):
    draw = np.random.default_rng(seed)
    Y = [draw.choice(["B", "I", "O"], size=draw.integers(1, 6)).tolist() for _ in range(n)]
    X = [
        [[f"w={y if draw.random() > noise else '?'}", f"k={draw.integers(4)}"] for y in row]
        for row in Y
    ]
    return X, Y


TRAIN, DEV, TEST = sequences(80, 0), sequences(150, 1), sequences(300, 2)


def fitted(**params):
    return SequenceTagger(**({"C": 1.0, "random_state": 0} | params)).fit(*TRAIN)


@pytest.fixture(scope="module")
def tagger():
    return fitted().calibrate(*DEV)


def all_probabilities(tagger, x):
    """Return all labellings of a sequence with their probabilities, by their scores."""
    labels = tagger.classes_.tolist()
    paths = [list(y) for y in itertools.product(labels, repeat=len(x))]
    scores = tagger.score_labellings([x] * len(paths), paths) / tagger.temperature_
    p = np.exp(scores - scores.max())
    return paths, p / p.sum()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_marginals_are_sums_over_labellings(tagger, seed):
    x = sequences(1, seed)[0][0]
    paths, p = all_probabilities(tagger, x)
    table = tagger.predict_proba([x])[0]
    for t, k in itertools.product(range(len(x)), range(3)):
        label = tagger.classes_[k]
        expected = sum(q for y, q in zip(paths, p, strict=True) if y[t] == label)
        assert table[t, k] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(tagger.sequence_proba([x] * len(paths), paths), p, atol=1e-5)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)


def test_the_forms_of_marginals(tagger):
    X = [TEST[0][0], [], TEST[0][1]]
    tables, dicts = tagger.predict_proba(X), tagger.predict_marginals(X)
    assert tables.shape == dicts.shape == (3,)
    assert tables[1].shape == (0, 3)
    assert dicts[1] == []
    for table, row in zip(tables, dicts, strict=True):
        assert [[token[label] for label in tagger.classes_] for token in row] == table.tolist()
    assert tagger.predict_marginals_single(X[0]) == dicts[0]
    assert tagger.predict_single(X[0]) == tagger.predict(X)[0]
    assert tagger.predict_proba([]).shape == (0,)
    assert tagger.sequence_log_proba(X, [TEST[1][0], [], TEST[1][1]])[1] == 0.0


def test_the_temperature_is_that_of_the_greatest_likelihood(tagger):
    def log_loss(temperature):
        other = fitted()
        other.temperature_ = temperature
        return -other.sequence_log_proba(*DEV).sum()

    def token_loss(temperature):
        other = fitted()
        other.temperature_ = temperature
        found = other.predict_marginals(DEV[0])
        pairs = zip(found, DEV[1], strict=True)
        return -sum(np.log(p[label]) for row, y in pairs for p, label in zip(row, y, strict=True))

    n = sum(map(len, DEV[1]))
    whole = fitted().calibrate(*DEV, criterion="sequences")
    for model, loss in ((whole, log_loss), (tagger, token_loss)):
        best = loss(model.temperature_)
        assert model.calibration_.log_loss * n == pytest.approx(best, rel=1e-6)
        for factor in (0.5, 0.9, 0.97, 1.03, 1.1, 2.0):
            assert loss(factor * model.temperature_) > best
        assert model.calibration_.log_loss < model.calibration_.log_loss_before
    with pytest.raises(ValueError, match="criterion is 'words'"):
        fitted().calibrate(*DEV, criterion="words")


def test_calibration_makes_it_honest():
    model = fitted(C=0.01)  # small weights: unsure at the temperature 1
    with pytest.warns(CalibrationWarning, match="not calibrated"):
        before = _error(model)
    predictions = model.predict(TEST[0]).tolist()
    model.calibrate(*DEV)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = _error(model)
    assert after < 0.25 * before
    assert model.predict(TEST[0]).tolist() == predictions


def _error(model):
    table = np.concatenate(model.predict_proba(TEST[0]).tolist())
    truth = np.concatenate(TEST[1])
    return calibration_error(table.max(axis=1), model.classes_[table.argmax(axis=1)] == truth)


def test_scores_of_any_scale_get_the_same_probabilities():
    models = [fitted() for _ in range(3)]
    for model, scale in zip(models, (1.0, 64.0, 1 / 1024), strict=True):
        model.weights_ *= scale
        model.calibrate(*DEV)
        assert model.temperature_ / scale == pytest.approx(models[0].temperature_, rel=0.01)


def test_a_model_that_is_always_right_is_sure():
    X, y = [[["a"], ["b"]]] * 10, [["A", "B"]] * 10
    model = SequenceTagger().fit(X, y).calibrate(X, y)
    assert 0 < model.temperature_ < 1
    assert model.sequence_proba(X, y).min() > 0.999


def test_only_what_is_allowed_is_probable():
    model = fitted(allowed=lambda a, b: not (a == "O" and b == "I"))
    kept = model.calibrate(*DEV).calibration_
    wrong = [any(a == "O" and b == "I" for a, b in itertools.pairwise(y)) for y in DEV[1]]
    assert kept.n_left_out == sum(wrong) > 0
    x = TEST[0][0]
    forbidden = [["O", "I", *["B"] * (len(x) - 2)]] if len(x) > 1 else []
    for y in forbidden:
        assert model.sequence_proba([x], [y])[0] == 0.0
    paths = [list(y) for y in itertools.product("BIO", repeat=len(x))]
    assert model.sequence_proba([x] * len(paths), paths).sum() == pytest.approx(1.0)


def test_labels_that_are_not_known_are_left_out(tagger):
    X, y = [*DEV[0], DEV[0][0]], [*DEV[1], ["?"] * len(DEV[0][0])]
    found = fitted().calibrate(X, y)
    assert found.calibration_.n_left_out == 1
    assert found.temperature_ == tagger.temperature_
    with pytest.raises(ValueError, match="no sequence can be used"):
        fitted().calibrate(DEV[0][:1], [["?"] * len(DEV[0][0])])


def test_kernels_and_arrays_have_probabilities():
    model = SequenceTagger(kernel="rbf", C=1.0, random_state=0).fit(*TRAIN).calibrate(*DEV)
    np.testing.assert_allclose(model.predict_proba(TEST[0])[0].sum(axis=1), 1.0)


def test_a_new_fit_forgets_the_temperature(tagger):
    model = fitted().calibrate(*DEV)
    model.fit(*TRAIN)
    assert not hasattr(model, "temperature_")
    assert not hasattr(model, "calibration_")


def test_threads_change_nothing(tagger):
    model = fitted(n_jobs=3).calibrate(*DEV)
    assert model.temperature_ == tagger.temperature_
    for a, b in zip(model.predict_proba(TEST[0]), tagger.predict_proba(TEST[0]), strict=True):
        assert a.tolist() == b.tolist()


# --- files ---


def test_the_temperature_is_in_the_file(tagger, tmp_path):
    path = tmp_path / "m.mm"
    tagger.save(path)
    loaded = maxmargin.load(path)
    assert loaded.temperature_ == tagger.temperature_
    for a, b in zip(loaded.predict_proba(TEST[0]), tagger.predict_proba(TEST[0]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    fitted().save(path)
    assert not hasattr(SequenceTagger.load(path), "temperature_")


@pytest.mark.parametrize("bad", [0, -1.0, "1", None, [1.0]])
def test_damaged_temperatures(tagger, tmp_path, bad):
    path = tmp_path / "m.mm"
    tagger.save(path)
    whole = read_container(path, "tagger")
    write_container(path, "tagger", {**whole.meta, "temperature": bad}, dict(whole.arrays))
    with pytest.raises(ModelFormatError, match="temperature"):
        SequenceTagger.load(path)


@pytest.mark.parametrize(
    "bad", ["equal", {"pairs": 3}, {"pairs": [["O", -1.0]]}, {"pairs": [[["O"], 1.0]]}, 7]
)
def test_damaged_class_weights(tagger, tmp_path, bad):
    path = tmp_path / "m.mm"
    tagger.save(path)
    whole = read_container(path, "tagger")
    write_container(path, "tagger", {**whole.meta, "class_weight": bad}, dict(whole.arrays))
    with pytest.raises(ModelFormatError, match="class_weight"):
        SequenceTagger.load(path)


# --- bad input ---


def test_not_fitted():
    for call in (
        lambda t: t.calibrate(*DEV),
        lambda t: t.predict_marginals(TEST[0]),
        lambda t: t.sequence_proba(*TEST),
    ):
        with pytest.raises(NotFittedError):
            call(SequenceTagger())


def test_bad_labels(tagger):
    with pytest.raises(ValueError, match="sequences"):
        fitted().calibrate(DEV[0], DEV[1][:3])
    with pytest.raises(ValueError, match="unknown label"):
        tagger.sequence_proba(TEST[0][:1], [["?"] * len(TEST[0][0])])


def test_the_search_is_exact_for_two_labels():
    """One token, two labels: the temperature has a closed form."""
    X, y = [[["a"]]] * 10, [["A"]] * 8 + [["B"]] * 2
    model = SequenceTagger(C=0.05).fit([[["a"]], [["b"]]], [["A"], ["B"]])
    scores = model.score_labellings(X[:2], [["A"], ["B"]])
    model.calibrate(X, y)
    assert model.temperature_ == pytest.approx((scores[0] - scores[1]) / np.log(4), rel=2e-3)
    assert model.predict_marginals_single(X[0])[0]["A"] == pytest.approx(0.8, abs=1e-3)
    chain = model.structure_
    batch = chain.encoder.transform(X)
    codes = chain.known_codes(y)
    found = find_temperature(chain, batch, codes, model.weights_)
    assert found.temperature == model.temperature_


# --- names of sklearn-crfsuite ---


def test_state_and_transition_features(tagger):
    names, labels = tagger.get_feature_names_out(), tagger.classes_
    assert tagger.attributes_ == names.tolist()
    state = tagger.state_features_
    assert len(state) == np.count_nonzero(tagger.coef_)
    for (name, label), weight in state.items():
        j, k = names.tolist().index(name), labels.tolist().index(label)
        assert weight == tagger.coef_[j, k] != 0
    for (a, b), weight in tagger.transition_features_.items():
        place = labels.tolist()
        assert weight == tagger.transitions_[place.index(a), place.index(b)] != 0
    with pytest.raises(NotFittedError):
        _ = SequenceTagger().state_features_


def test_known_labels_are_certain_and_tell_of_others(tagger):
    """p(y_t | known) is the share of the labellings with the known labels, added up one by one."""
    X, Y = TEST[0][:8], TEST[1][:8]
    known = [[y if t == 0 else None for t, y in enumerate(row)] for row in Y]
    found = tagger.predict_marginals(X, known=known)
    for x, y, tokens in zip(X, Y, found, strict=True):
        ways = [[y[0], *rest] for rest in itertools.product(tagger.classes_, repeat=len(x) - 1)]
        p = tagger.sequence_proba([x] * len(ways), ways)
        for t, token in enumerate(tokens):
            for label, share in token.items():
                of = sum(q for way, q in zip(ways, p, strict=True) if way[t] == label)
                assert share == pytest.approx(of / p.sum(), abs=1e-6)
    tables = tagger.predict_proba([*X, []], known=[*known, []])
    assert len(tables[-1]) == 0
    with pytest.raises(ValueError, match="sequence 0, token 0: the known label 'new' is not one"):
        tagger.predict_proba(X, known=[["new", *row[1:]] for row in known])
    held = fitted(allowed=lambda a, b: (a, b) != ("B", "B")).calibrate(*DEV)
    with pytest.raises(ValueError, match="sequence 0, token 1: the known label 'B'"):
        held.predict_proba([[["k=1"]] * 2], known=[["B", "B"]])
