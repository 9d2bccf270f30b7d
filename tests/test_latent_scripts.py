"""The scripts about latent parts: the examples run, and the benchmark puts folds together."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from real_data import data_file

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def test_digits_anywhere(script, capsys):
    assert script("latent_digits").main(["--limit", "160"]) == 0
    lines = capsys.readouterr().out.splitlines()
    wrong = [float(line.split(":")[1].split("%")[0]) for line in lines[:2]]
    assert wrong[1] < wrong[0]


def test_windows_hold_the_digit(script):
    digits = script("latent_digits")
    rng = np.random.default_rng(0)
    image = 16.0 * rng.random((1, 8, 8))
    rows = digits.windows(digits.canvases(rng, image))
    assert rows.shape == (1, 25, 65)
    apart = np.abs(rows[0, :, :-1] - image.reshape(1, -1) / 16.0).max(axis=1)
    assert apart.min() <= digits.NOISE


def test_letters_without_the_data(script, tmp_path, capsys):
    assert script("latent_letters").main(["--data", str(tmp_path)]) == 1
    assert "is not there" in capsys.readouterr().err


def test_folds_are_put_together(script, tmp_path, capsys):
    benchmark = script("latent")
    for fold, (plain, latent) in enumerate([(0.2, 0.1), (0.3, 0.1), (0.1, 0.2)]):
        run = {"task": "letters", "fold": fold, "costs": [2.0 + fold]}
        for way, value in (("plain", plain), ("latent", latent)):
            run[way] = {"dev": 0.0, "test": value, "setting": "C=1", "seconds": 1.0}
        (tmp_path / f"part{fold}.txt").write_text(f"fold {json.dumps(run)}\nother\n")
    parts = sorted(str(p) for p in tmp_path.glob("part*.txt"))
    assert benchmark.main(["--merge", *parts]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["letters"]
    assert found["plain"][0] == pytest.approx(20.0)
    assert found["difference"] == pytest.approx([20 / 3, np.std([10, 20, -10], ddof=1) / 3**0.5])
    assert (found["folds"], found["better"], found["cost"]) == (3, 2, 3.0)


@pytest.mark.data
@pytest.mark.slow
def test_styles_of_letters_are_better_than_none(script, capsys):
    folder = data_file("ocr_letters/letters.npz").parents[1]
    assert script("latent_letters").main(["--data", str(folder), "--states", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    wrong = [float(line.split(":")[1].split("%")[0]) for line in lines[:2]]
    assert wrong[1] < wrong[0]
