"""`maxmargin train --start`: from a model, and from a checkpoint."""

from __future__ import annotations

import pytest

from cli_files import crfsuite, refused, run, sentences, summary, text, write

TRAIN, MORE = sentences(), sentences(60, seed=3)


@pytest.mark.parametrize("make", [text, crfsuite])
def test_from_a_model(capsys, tmp_path, make):
    old, new = tmp_path / "old.mm", tmp_path / "new.mm"
    first, second = write(tmp_path / "a", make(TRAIN)), write(tmp_path / "b", make(MORE))
    run(capsys, "train", first, "-m", old, "-q")
    cold = summary(capsys, "train", second, "-m", new, "--gap", "1e-3", "-q")
    warm = summary(capsys, "train", second, "-m", new, "--gap", "1e-3", "-q", "--start", old)
    assert warm["gap"] <= 1e-3
    assert warm["n_features"] == cold["n_features"]  # those of the data, and no others
    assert warm["dual"] <= cold["primal"]
    assert cold["dual"] <= warm["primal"]
    grid = ("--grid", "C=0.1,1", "--valid", first)
    assert summary(capsys, "train", second, "-m", new, "-q", "--start", old, *grid)["gap"] <= 0.01


def test_the_template_is_that_of_the_model(capsys, tmp_path):
    old, new = tmp_path / "old.mm", tmp_path / "new.mm"
    data = write(tmp_path / "a.tsv", text(TRAIN))
    run(capsys, "train", data, "-m", old, "-q", "--template", "pos")
    run(capsys, "train", data, "-m", new, "-q", "--start", old)
    assert summary(capsys, "info", new)["template"] == summary(capsys, "info", old)["template"]
    message = refused(capsys, "train", data, "-m", new, "--start", old, "--template", "words", "-q")
    assert f"{old}: the model to start from was trained with another template" in message


def test_from_a_checkpoint(capsys, tmp_path):
    state, model = tmp_path / "state", tmp_path / "m.mm"
    data = write(tmp_path / "a.tsv", text(MORE))
    run(capsys, "train", data, "-m", model, "-q", "--checkpoint", state)
    cold = summary(capsys, "train", data, "-m", model, "-q", "-C", "0.12")
    warm = summary(capsys, "train", data, "-m", model, "-q", "-C", "0.12", "--start", state)
    assert warm["gap"] <= 0.01
    assert warm["passes"] < cold["passes"]
    other = write(tmp_path / "b.tsv", text(TRAIN))
    message = refused(capsys, "train", other, "-m", model, "-q", "--start", state)
    assert "is a checkpoint of another run" in message


def test_bad_starts(capsys, tmp_path):
    data, model = write(tmp_path / "a.tsv", text(TRAIN)), tmp_path / "m.mm"
    base = ("train", data, "-m", model, "-q", "--start")
    assert "nothing.mm" in refused(capsys, *base, tmp_path / "nothing.mm")
    assert "a.tsv: " in refused(capsys, *base, data)
    kernel = tmp_path / "k.mm"
    run(capsys, "train", data, "-m", kernel, "-q", "--kernel", "rbf")
    assert "has a kernel" in refused(capsys, *base, kernel)
    other = tmp_path / "o.mm"
    items = write(tmp_path / "o.crfsuite", crfsuite([[("q", "r", "Z"), ("s", "t", "Y")]] * 4))
    run(capsys, "train", items, "-m", other, "-q")
    both = write(tmp_path / "x.crfsuite", crfsuite(TRAIN))
    message = refused(capsys, "train", both, "-m", model, "-q", "--start", other)
    assert "shares no features, or no labels" in message
    for option in (("--cv", "2"), ("--slack", "hard"), ("--kernel", "rbf")):
        assert "--start" in refused(capsys, *base, other, *option)
    assert "is read from" in refused(capsys, "train", data, "-m", other, "--start", other)
