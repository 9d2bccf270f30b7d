"""Adapting a model to data that are streamed or encoded: the same model as with all in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import SequenceTagger
from maxmargin.cli.main import main
from maxmargin.errors import NotCompatibleError
from maxmargin.streams import EncodedCorpus, encode

EXACT = {"gap": 1e-7, "dtype": "float64", "random_state": 0}


def columns(n, seed, words, labels):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        numbers = rng.integers(len(words), size=rng.integers(1, 6)).tolist()
        X.append([[words[k], words[k][0]] for k in numbers])
        y.append([labels[k % len(labels)] for k in numbers])
    return X, y


OLD = columns(30, 0, ["apple", "bear", "cat", "dog", "eel", "fox"], ["A", "B", "C"])
NEW = columns(20, 1, ["cat", "dog", "gnu", "hen", "ibis"], ["B", "D"])


def write(path, X, y):
    with path.open("w") as file:
        for words, labels in zip(X, y, strict=True):
            for cells, label in zip(words, labels, strict=True):
                file.write("\t".join([*cells, label]) + "\n")
            file.write("\n")
    return path


def by_name(model):
    """Return the weights of a tagger by the names of features and labels."""
    names = list(model.get_feature_names_out())
    rows = model.structure_.layout.rows(model.weights_)
    labels = model.structure_.labels_
    found = {
        (name, label): float(rows[k, c])
        for k, name in enumerate(names)
        for c, label in enumerate(labels)
    }
    split = model.structure_.layout.split(rows)
    for a, first in enumerate(labels):
        for b, second in enumerate(labels):
            found["->", first, second] = float(split.transitions[a, b])
    return found


def assert_same(one, other):
    ours, theirs = by_name(one), by_name(other)
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        assert value == pytest.approx(theirs[key], abs=2e-3), key
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)
    assert one.prior_match_ == other.prior_match_


@pytest.mark.parametrize("options", [{}, {"hash_bits": 8}, {"template": None}])
@pytest.mark.parametrize("precision", [1.0, 5.0])
def test_a_stream_gives_the_model_of_memory(tmp_path, options, precision):
    features = {"template": "words", **options}
    old = SequenceTagger(**features, **EXACT).fit(*shaped(OLD, features))
    adapted = {"prior": old, "prior_precision": precision, "C": 0.5, **features, **EXACT}
    X, y = shaped(NEW, features)
    once = SequenceTagger(**adapted).fit(X, y)
    streamed = SequenceTagger(**adapted).fit_stream(list(zip(X, y, strict=True)), memory="4G")
    assert_same_model(once, streamed, X)
    encode(list(zip(X, y, strict=True)), tmp_path / "d.mme", dtype="float64", **features)
    corpus = EncodedCorpus.open(tmp_path / "d.mme")
    assert_same_model(once, SequenceTagger(**adapted).fit(corpus), X)


def shaped(data, features):
    """Return columns, or dicts of features where there is no template."""
    X, y = data
    if features["template"] is None:
        X = [[{f"w={cells[0]}": True, f"f={cells[1]}": True} for cells in x] for x in X]
    return X, y


def assert_same_model(one, other, X):
    assert sorted(one.classes_) == sorted(other.classes_) == ["A", "B", "C", "D"]
    if one.hash_bits is None:
        assert_same(one, other)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)
    assert one.prior_match_ == other.prior_match_
    assert list(one.predict(X)) == list(other.predict(X))


def test_a_huge_precision_returns_its_mean():
    old = SequenceTagger(template="words", **EXACT).fit(*OLD)
    pairs = list(zip(*NEW, strict=True))
    held = SequenceTagger(template="words", prior=old, prior_precision=1e12, **EXACT)
    held.fit_stream(pairs)
    before, after = by_name(old), by_name(held)
    for key, value in before.items():
        assert after[key] == pytest.approx(value, abs=1e-6)


def test_labels_that_are_listed(tmp_path):
    old = SequenceTagger(template="words", **EXACT).fit(*OLD)
    pairs = list(zip(*NEW, strict=True))
    all_labels = ["D", "C", "B", "A", "E"]
    model = SequenceTagger(template="words", labels=all_labels, prior=old, **EXACT)
    model.fit_stream(pairs)
    assert list(model.classes_) == all_labels
    with pytest.raises(ValueError, match="does not have 'A', which the prior has"):
        SequenceTagger(template="words", labels=["B", "C", "D"], prior=old, **EXACT).fit_stream(
            pairs
        )


def test_priors_that_do_not_fit():
    old = SequenceTagger(template="words", **EXACT).fit(*OLD)
    pairs = list(zip(*NEW, strict=True))
    with pytest.raises(NotCompatibleError, match="hash_bits=6"):
        SequenceTagger(template="words", hash_bits=6, prior=old, **EXACT).fit_stream(pairs)
    with pytest.raises(NotCompatibleError, match="another template"):
        SequenceTagger(template="chunking", prior=old, **EXACT).fit_stream(
            [([[*cells, cells[1]] for cells in x], y) for x, y in pairs]
        )
    odd = [([["zzz", "z"]], ["Z"])] * 3
    with pytest.raises(ValueError, match=r"another vocabulary: .* labels among its 3"):
        SequenceTagger(template="words", prior=old, **EXACT).fit_stream(odd)


@pytest.mark.parametrize("more", [["--stream", "--memory", "4G"], ["--memory", "4G"]])
def test_the_command(tmp_path, capsys, more):
    source = write(tmp_path / "old.tsv", *OLD)
    target = write(tmp_path / "new.tsv", *NEW)
    common = ["--gap", "1e-5", "--dtype", "float64", "-q"]
    old, one, other = (str(tmp_path / name) for name in ("o.mm", "a.mm", "b.mm"))
    assert main(["train", str(source), "-m", old, "--template", "words", *common]) == 0
    adapt = ["train", str(target), "--prior", old, "--prior-precision", "2", *common, "--json"]
    capsys.readouterr()
    assert main([*adapt, "-m", one]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert main([*adapt, "-m", other, *more]) == 0
    streamed = json.loads(capsys.readouterr().out)
    assert streamed["prior"] == plain["prior"]
    assert streamed["primal"] == pytest.approx(plain["primal"], rel=1e-4)
    assert streamed["peak_rss_mb"] > 0
    a, b = (SequenceTagger.load(path) for path in (one, other))
    assert sorted(a.classes_) == sorted(b.classes_) == ["A", "B", "C", "D"]
    assert list(a.predict(NEW[0])) == list(b.predict(NEW[0]))
    encoded = str(tmp_path / "new.mme")
    assert main(["encode", str(target), "-o", encoded, "--template", "words", "-q"]) == 0
    adapt[1] = encoded
    assert main([*adapt, "-m", other]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["prior"] == plain["prior"]
    assert again["primal"] == pytest.approx(plain["primal"], rel=1e-4)
