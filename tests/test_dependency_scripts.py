"""The example and the benchmark of dependency trees, on invented sentences."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from dependency_files import conllu, trees

ROOT = Path(__file__).parents[1]


def load(path):
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of data sets with few sentences, some of them short."""
    short = [[("dogs", "NOUN", 2, "nsubj"), ("bark", "VERB", 0, "root")]]
    for folder in ("wsj_sample_dep", "ud_english_ewt"):
        (tmp_path / folder).mkdir()
        for seed, part in enumerate(("train", "dev", "test")):
            text = conllu([*short, *trees(12, seed=seed)])
            (tmp_path / folder / f"{part}.conllu.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    return tmp_path


def test_benchmark(data, capsys):
    script = load(ROOT / "benchmarks" / "dependencies.py")
    assert script.main(["--data", str(data)]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["dependencies"]
    assert [row["corpus"] for row in rows] == ["wsj", "ewt"]
    for row in rows:
        assert 0.5 < row["uas"] <= 1.0
        assert row["gap"] <= 0.1
        assert row["short_sentences"] >= 1
        assert row["largest_loss"] < 1e-5
        assert row["sentences_per_second"] > 0
    assert rows[0]["las"] is None
    # Two words: two trees, with all relations on both words.
    assert rows[1]["trees"] >= 2 * 4**2


def test_the_best_of_all_trees_is_found_by_brute_force(data):
    """What the benchmark compares with is the maximum over trees and relations, none left out."""
    script = load(ROOT / "benchmarks" / "dependencies.py")
    corpus = script.CORPORA["ewt"]
    sentences = script.read(data, corpus, "train", 5)
    parser = script.train(corpus, sentences, 60.0)
    structure = parser.structure_
    outputs = list(structure.outputs(sentences[0]))
    inputs = [sentences[0]] * len(outputs)
    values = structure.score_outputs(inputs, outputs, parser.weights_, 1)
    best, count = script.best_of_all(parser, sentences[0])
    assert count == len(outputs)
    assert best == pytest.approx(values.max())


def test_choosing(data, capsys, monkeypatch):
    script = load(ROOT / "benchmarks" / "dependencies.py")
    monkeypatch.setattr(script, "CHOICES", [{"C": 0.03}, {"C": 0.03, "projective": False}])
    assert script.main(["--data", str(data), "--choose", "--corpora", "wsj"]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["dependencies"]
    assert [row.get("projective") for row in rows] == [None, False]


def test_example(data, capsys):
    script = load(ROOT / "examples" / "dependencies.py")
    assert script.main(["--sentences", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("10 sentences")
    assert "UAS without punctuation" in lines[1]
    assert sum("(root)" in line for line in lines) == 1
