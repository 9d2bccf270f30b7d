"""What the benchmark of alignments computes beside the library, and the example."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin.io.substitution import PROTEIN
from real_data import FOLDER as DATA
from real_data import data_file

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script; they import each other by their plain names."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def test_homologs(script):
    table4 = script("alignment_table4")
    rng = np.random.default_rng(0)
    kind = table4.family(rng)
    assert kind.mutation.sum(axis=1) == pytest.approx(np.ones(20))
    X, Y = table4.examples(rng, 300, kind, 2)
    same = matched = 0
    for (native, second, decoys), matches in zip(X, Y, strict=True):
        assert len(native) == 50
        assert [len(d) for d in decoys] == [len(second)] * 2
        assert (np.diff(matches, axis=0) > 0).all()
        assert matches.max(axis=0)[0] < 50
        assert matches.max(axis=0)[1] < len(second)
        same += sum(native[i] == second[j] for i, j in matches)
        matched += len(matches)
    assert matched / (300 * 50) == pytest.approx(1 - kind.gap, abs=0.01)
    assert same / matched == pytest.approx(np.diag(kind.mutation).mean(), abs=0.02)
    quiet = table4.Family(kind.mutation, 0.0)
    made, matches = table4.homolog(rng, np.arange(20), quiet)
    assert matches == [(i, i) for i in range(20)]
    assert len(made) == 20


def test_the_generative_model_counts(script):
    table4 = script("alignment_table4")
    matrix = table4.generative_matrix([("AR", "AA")], [np.array([(0, 0), (1, 1)])])
    joint = np.ones((20, 20))
    joint[0, 0] += 1  # A with A
    joint[1, 0] += 1  # R with A
    joint /= joint.sum()
    expected = np.log(joint / np.outer(joint.sum(axis=1), joint.sum(axis=0)))
    assert PROTEIN[:2] == "AR"
    assert matrix == pytest.approx(expected)


def test_rows_of_table4(script, capsys):
    table4 = script("alignment_table4")
    rows = table4.table4([1, 4], draws=2, n_test=20, decoys=3, C=0.01)
    assert [row["n"] for row in rows] == [1, 4]
    assert rows[1]["svm_test"][0] < rows[0]["svm_test"][0] <= 0.75
    assert rows[1]["planes"][0] > rows[0]["planes"][0]
    table4.print_table4(rows)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_speed_and_the_plain_loop(script):
    speed, pairs = script("alignment_speed"), script("alignment_pairs")
    rng = np.random.default_rng(1)
    X = [tuple("".join(rng.choice(list(PROTEIN), n)) for n in (30, 41)) for _ in range(4)]
    Y = ["M" * 30 + "2" * 11] * 4
    found = speed.speed(pairs.Pairs(X, Y), 1)  # which compares the scores of both
    assert found["cells_per_second"]["global float32"] > 0


def test_windows_and_shares(script):
    alignment, pairs = script("alignment"), script("alignment_pairs")
    ((text, features), _), *_ = alignment.with_windows([("ACD" * 4, "WWX")])
    assert text == "ACD" * 4
    assert features.shape == (12, 10)
    scaled = alignment.PROPERTIES[0] - alignment.PROPERTIES[0].mean()
    scaled /= alignment.PROPERTIES[0].std()
    own = [scaled[PROTEIN.index(c)] for c in "CDACD"]
    assert features[3, 0] == pytest.approx(0.1 * sum(own) / 5**0.5)
    classes = alignment.similarity_classes()
    assert np.array_equal(classes, classes.T)
    assert len(np.unique(classes)) == 11
    model = pairs.fixed_aligner(("ARNDCQEGHILKMFPSTWYVBZX", 5 * np.eye(23) - 1), -3, -1)
    held = pairs.Pairs([("ACDE", "ACE"), ("AAAA", "WWWW")], ["MM1M", "11112222"])
    share, error = alignment._share(model, held)
    assert share == 1.0
    assert error == 0.0


@pytest.mark.data
def test_the_example(monkeypatch, capsys, tmp_path):
    data_file("protein_tmalign/train_aligned.tsv.gz")
    monkeypatch.setenv("MAXMARGIN_DATA", str(DATA))
    main = runpy.run_path(str(ROOT / "examples" / "alignment.py"))["main"]
    assert main([str(tmp_path / "m.svg")]) == 0
    assert "matches found" in capsys.readouterr().out
    assert (tmp_path / "m.svg").read_text().startswith("<svg")
