"""Probabilities on the command line: calibrate, tag --marginals, train --valid."""

from __future__ import annotations

import json

import numpy as np
import pytest

import maxmargin
from maxmargin.cli.main import main
from maxmargin.cli.marginals import probability_cells

RNG = np.random.default_rng(0)


def corpus(n, seed):
    draw = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for _ in range(draw.integers(1, 6)):
            label = draw.choice(["B-x", "I-x", "O"])
            word = label.lower() if draw.random() < 0.65 else "what"
            lines.append(f"{word}\t{draw.integers(5)}\t{label}")
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path):
    for seed, name in enumerate(("train", "dev", "test")):
        (tmp_path / f"{name}.tsv").write_text(corpus(60, seed))
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def trained(files, *more):
    model = files / "m.mm"
    assert run("train", files / "train.tsv", "-m", model, "-q", *more) == 0
    return model


def test_a_model_is_calibrated_in_place_and_used(files, capsys):
    model = trained(files)
    plain = files / "plain.tsv"
    assert run("tag", "-m", model, files / "test.tsv", "-o", plain) == 0
    assert run("calibrate", "-m", model, files / "dev.tsv", "--json") == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    tagger = maxmargin.load(model)
    assert figures["temperature"] == tagger.temperature_
    assert figures["log_loss"] <= figures["log_loss_before"]
    out = files / "out.tsv"
    assert run("tag", "-m", model, files / "test.tsv", "-o", out, "--marginals") == 0
    assert "warning" not in capsys.readouterr().err
    table = maxmargin.read_columns(files / "test.tsv")
    tables, labels = tagger.predict_proba(table), tagger.predict(table)
    expected = [
        f"{max(row[tagger.classes_.tolist().index(label)], 0):.4f}"
        for rows, found in zip(tables, labels, strict=True)
        for row, label in zip(rows, found, strict=True)
    ]
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    written = [line for line in lines if len(line) > 1]
    for line, p in zip(written, expected, strict=True):
        assert float(line[-1]) == pytest.approx(float(p), abs=2e-4)
    # the labels are as before
    before = [line.split("\t") for line in plain.read_text().splitlines()]
    assert [line[:-1] if len(line) > 1 else line for line in lines] == before


def test_sequences_have_probabilities_with_nbest(files, capsys):
    model = trained(files, "--valid", files / "dev.tsv")
    assert run("tag", "-m", model, files / "test.tsv", "--marginals", "--nbest", 3) == 0
    heads = [x.split() for x in capsys.readouterr().out.splitlines() if x.startswith("# ")]
    tagger = maxmargin.load(model)
    table = maxmargin.read_columns(files / "test.tsv")
    best = tagger.sequence_proba(table, tagger.predict(table).tolist())
    first = [float(head[3]) for head in heads if head[1] == "0"]
    np.testing.assert_allclose(first, best, atol=1e-4)
    assert all(len(head) == 4 for head in heads)


def test_train_with_valid_calibrates(files, capsys):
    model = files / "m.mm"
    assert run(
        "train", files / "train.tsv", "-m", model, "--valid", files / "dev.tsv", "--json"
    ) == 0
    temperature = json.loads(capsys.readouterr().out.splitlines()[-1])["temperature"]
    assert maxmargin.load(model).temperature_ == temperature
    again = maxmargin.load(model)
    X, labels = maxmargin.read_columns(files / "dev.tsv").labelled(2)
    assert again.calibrate(X, labels).temperature_ == pytest.approx(temperature, rel=1e-3)
    assert run("info", model, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["temperature"] == temperature


def test_without_calibration_there_is_a_warning(files, capsys):
    model = trained(files)
    assert run("tag", "-m", model, files / "test.tsv", "--marginals") == 0
    assert "not calibrated" in capsys.readouterr().err


def test_other_outputs(files):
    model = trained(files)
    before = model.read_bytes()
    assert run("calibrate", "-m", model, files / "dev.tsv", "-o", files / "new.mm") == 0
    assert model.read_bytes() == before
    assert hasattr(maxmargin.load(files / "new.mm"), "temperature_")


def test_bad_input(files, capsys):
    model = trained(files)
    assert run("tag", "-m", model, files / "test.tsv", "--marginals", "--scores") == 2
    assert "do not go together" in capsys.readouterr().err
    (files / "strange.tsv").write_text("a\t1\tB-z\n")
    assert run("calibrate", "-m", model, files / "strange.tsv") == 2
    assert "no sequence can be used" in capsys.readouterr().err
    (files / "short.tsv").write_text("a\tO\n")
    assert run("calibrate", "-m", model, files / "short.tsv") == 2
    assert "expected 3" in capsys.readouterr().err
    texts = files / "texts.txt"
    texts.write_text("a\tgood one\nb\tbad one\n")
    classes = files / "c.mm"
    assert run("train", texts, "-m", classes, "--task", "classes", "-q") == 0
    assert run("calibrate", "-m", classes, texts) == 2
    assert "only models of label sequences" in capsys.readouterr().err
    assert run("tag", "-m", classes, texts, "--marginals") == 2
    assert "--marginals is for models of label sequences" in capsys.readouterr().err


def test_cells_are_written_once():
    places, texts = probability_cells(
        np.array([0, 1, 0, 0], np.int32), np.array([0.5, 1.0, 0.50001, 0.1]), ["a", "b"], " "
    )
    assert [texts[k] for k in places] == ["a 0.5000", "b 1.0000", "a 0.5000", "a 0.1000"]
    assert len(texts) == 3
