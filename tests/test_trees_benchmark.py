"""The PCFG by counting, the rows of `benchmarks/trees.py`, and `examples/trees.py`."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import Tree, write_trees
from maxmargin.features.treebank import FlatTree
from real_data import data_file

ROOT = Path(__file__).parents[1]
TEXTS = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (PRP it))))",
    "(NP (DT a) (NN cat))",
]
TREES = [Tree.parse(text) for text in TEXTS]


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of the benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]


def test_pcfg(script):
    pcfg = script("pcfg").PCFG().fit(TREES)
    logs = {
        (left, " ".join(symbol for symbol, _ in right)): float(weight)
        for (left, right), weight in zip(
            pcfg.structure.grammar_.rules_, pcfg.weights, strict=False
        )
    }
    shares = {rule: math.exp(weight) for rule, weight in logs.items()}
    assert shares == pytest.approx(
        {
            ("S", "NP VP"): 1,
            ("NP", "DT NN"): 3 / 6,
            ("NP", "PRP"): 3 / 6,
            ("VP", "VBZ"): 1 / 3,
            ("VP", "VBZ NP"): 2 / 3,
        }
    )
    assert pcfg.predict(TREES) == TREES
    # The score of a tree is its probability, with that of its root.
    scores = pcfg.structure.score_outputs(TREES[1:2], TREES[1:2], pcfg.weights, 1)
    assert float(np.exp(scores[0])) == pytest.approx(3 / 4 * 3 / 6 * 2 / 3 * 3 / 6)
    (flat,) = pcfg.predict([Tree.parse("(S (VBZ a) (VBZ b))")])
    assert isinstance(flat, FlatTree)


def test_rows(script, capsys):
    trees = script("trees")
    args = SimpleNamespace(
        gap=0.05, grid=[1.0, 10.0], folds=2, rich_gap=0.1, rich_grid=[0.1], rich_passes=5,
        richest=False,
    )  # fmt: skip
    many = TREES * 3
    output = trees.table(many, TREES, args)
    assert output.keys() == trees.ROWS.keys()
    for name, row in output.items():
        assert row["test"]["f1"] == 1
        assert row["test_against_pcfg"] == {"difference": 0.0, "p_value": 1.0}
        assert (row["C"] is None) == name.startswith("PCFG")
    output = trees.all_lengths(many, TREES, args)
    assert all(row["f1"] == 1 for row in output.values())
    assert len(output) == 2 * len(trees.RICHER) - 1
    found = trees.bare_loop(many, TREES, words=5, repeat=1)
    assert all(row["ratio"] > 0 for row in found.values())
    assert "SVM2-margin-F1" in capsys.readouterr().out


def example():
    spec = importlib.util.spec_from_file_location("trees_example", ROOT / "examples" / "trees.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_on_toy_trees(tmp_path, capsys):
    folder = tmp_path / "wsj_sample_trees"
    folder.mkdir()
    for name in ("train", "test"):
        write_trees(folder / f"{name}.mrg.gz", TREES)
    assert example().main(["--data", str(tmp_path)]) == 0
    assert "F1 100.00 %" in capsys.readouterr().out
    assert example().main(["--data", str(tmp_path / "nowhere")]) == 1
    assert "set MAXMARGIN_DATA" in capsys.readouterr().err


@pytest.mark.data
def test_example(capsys):
    data_file("wsj_sample_trees/train.mrg.gz")
    assert example().main(["--max-length", "8", "--limit", "100"]) == 0
    assert "rules alone" in capsys.readouterr().out
