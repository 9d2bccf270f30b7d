"""What `benchmarks/classes.py` computes, and `examples/classes.py` on a part of its data."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from real_data import data_file

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("classes")
    sys.modules.pop("classes", None)


def test_the_objective_by_hand(script):
    data = script.many_classes(5, n=40, d=30, per_row=4)
    W = np.random.default_rng(0).normal(size=(5, 30))
    total = 0.5 * (W**2).sum()
    for x, label in zip(data.X.toarray(), data.y, strict=True):
        scores = W @ x
        total += 0.7 * max(float(c != label) + scores[c] - scores[label] for c in range(5))
    assert script.objective(W, data, np.arange(5), 0.7) == pytest.approx(total)


def test_both_are_compared_by_the_same_objective(script, capsys):
    data = script.many_classes(4, n=300, d=60, per_row=6)
    found = script.compare(data, 0.5, repeat=1, default=True)
    assert 1 <= found["objective"] <= 1.011
    assert found["default"] > 0
    said = capsys.readouterr().out
    assert said.count("objective") == len(script.TOLERANCES) + 2
    peer = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-8)
    best = script.objective(peer.fit(data.X, data.y).coef_, data, peer.classes_, 0.5)
    ours = script.timed(
        lambda: script.MulticlassSVM(C=0.5, fit_intercept=False, gap=1e-6), data, 0.5
    )
    assert ours[1] == pytest.approx(best, rel=1e-4)


def test_growth_is_measured(script):
    seconds = script.growth((4, 40), n=200, repeat=1)
    assert list(seconds) == [4, 40]
    assert all(s >= 0 for pair in seconds.values() for s in pair)


@pytest.mark.data
def test_the_example(capsys):
    data_file("newsgroups_taxonomy/train.txt.gz")
    main = runpy.run_path(str(ROOT / "examples" / "classes.py"))["main"]
    assert main(["--every", "12"]) == 0
    said = capsys.readouterr().out
    right = float(said.split("test messages: ")[1].split()[0])
    assert right > 0.4
    assert "costs by family: mean cost" in said
