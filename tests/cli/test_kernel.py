"""`maxmargin train --kernel`: from a file to predictions."""

from __future__ import annotations

import pytest

from cli_files import crfsuite, refused, run, sentences, summary, text, write
from maxmargin import SequenceTagger

TRAIN, TEST = sentences(), sentences(7, seed=2)


@pytest.mark.parametrize("kernel", ["poly", "rbf"])
@pytest.mark.parametrize("make", [text, crfsuite])
def test_from_a_file_to_predictions(capsys, tmp_path, kernel, make):
    data, model = write(tmp_path / "train", make(TRAIN)), tmp_path / "m.mm"
    test = write(tmp_path / "test", make(TEST))
    options = ("--kernel", kernel, "-C", "1", "--valid", test)
    found = summary(capsys, "train", data, "-m", model, *options)
    assert found["kernel"] == kernel
    assert (found["gap"] <= 0.01) == (found["best_pass"] is None)  # or of the best pass
    assert 0 < found["n_support"] <= found["n_tokens"]
    scores = summary(capsys, "eval", "-m", model, test)
    assert scores["f1"] == found["valid"]["f1"] > 0.6
    assert run(capsys, "tag", "-m", model, test)
    assert run(capsys, "tag", "-m", model, test, "--scores")
    assert run(capsys, "tag", "-m", model, test, "--nbest", "2")
    info = summary(capsys, "info", model)
    assert (info["kernel"]["kind"], info["n_support"]) == (kernel, found["n_support"])
    assert f"n_support    {found['n_support']}" in run(capsys, "info", model)
    message = refused(capsys, "info", model, "--text")
    assert "support tokens of the kernel" in message
    assert "kernel" in run(capsys, "train", data, "-m", model, *options)


def test_it_is_the_tagger_of_python(capsys, tmp_path):
    data, model = write(tmp_path / "train.tsv", text(TRAIN)), tmp_path / "m.mm"
    options = ("--degree", "3", "--gamma", "0.25", "--coef0", "0.5", "--cache-mb", "1")
    run(capsys, "train", data, "-m", model, "--kernel", "poly", *options, "-q")
    loaded = SequenceTagger.load(model)
    params = loaded.get_params()
    assert {name: params[name] for name in ("kernel", "degree", "gamma", "coef0", "cache_mb")} == {
        "kernel": "poly", "degree": 3, "gamma": 0.25, "coef0": 0.5, "cache_mb": 1.0
    }
    twin = SequenceTagger.from_columns(
        data, kernel="poly", degree=3, gamma=0.25, coef0=0.5, cache_mb=1, random_state=0
    )
    rows = [[row[:2] for row in rows] for rows in TEST]
    assert list(twin.predict(rows)) == list(loaded.predict(rows))


def test_grids_and_folds(capsys, tmp_path):
    data, model = write(tmp_path / "train.tsv", text(TRAIN)), tmp_path / "m.mm"
    options = ("--kernel", "rbf", "--grid", "C=0.1,1", "--cv", "2", "-q")
    found = summary(capsys, "train", data, "-m", model, *options)
    assert [row["C"] for row in found["cv"]] == [0.1, 1.0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--l1-ratio", "0.5"), "--l1-ratio is about the weights of features"),
        (("--nonzeros", "10"), "--nonzeros is about"),
        (("--prior", "x.mm"), "--prior is about"),
        (("--gamma", "0"), "not a number above 0"),
        (("--coef0", "nan"), "not a finite number"),
        (("--degree", "0"), "not an integer of at least 1"),
        (("--solver", "bcfw", "--slack", "hard"), "bcfw"),
        (("--solver", "subgradient"), "kernel"),
    ],
)
def test_bad_options(capsys, tmp_path, options, told):
    data = write(tmp_path / "train.tsv", text(TRAIN))
    message = refused(
        capsys, "train", data, "-m", tmp_path / "m.mm", "--kernel", "poly", *options
    )
    assert told in message
    assert not (tmp_path / "m.mm").exists()
