"""What `benchmarks/taxonomy.py` computes, on made-up documents; and `examples/taxonomy.py`."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from real_data import FOLDER, data_file

ROOT = Path(__file__).parents[1]
PATHS = ["a/b/1", "a/b/2", "a/3", "c/4", "c/5", "c/6"]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location(
        "taxonomy_benchmark", ROOT / "benchmarks" / "taxonomy.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "taxonomy_benchmark", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents of words that belong to a node of the path each, and some of no meaning."""
    draw = np.random.default_rng(0)
    for name in ("newsgroups_taxonomy", "trec_questions"):
        (tmp_path / name).mkdir()
        for part, n in (("train", 150), ("test", 60)):
            lines = []
            for label in draw.choice(PATHS, n):
                words = [p for p in label.split("/") if draw.random() < 0.9]
                noise = [f"w{k}" for k in draw.integers(0, 30, 6)]
                lines.append(f"{label}\t{' '.join([*words, *noise])}\n")
            with gzip.open(tmp_path / name / f"{part}.txt.gz", "wt", encoding="utf-8") as out:
                out.write("".join(lines))
    return tmp_path


def test_all_of_it(benchmark: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--data", str(folder), "--draws", "2"])
    said = capsys.readouterr().out
    found = json.loads(said.splitlines()[-1])
    for name in ("newsgroups_taxonomy", "trec_questions"):
        for size in ("2", "4", "all"):
            rows = found[f"{name} {size}"]
            assert rows.keys() == {"accuracy", "tree loss", "gain"}
            del rows["gain"]
            assert rows["accuracy"].keys() == {" ".join(c) for c in benchmark.COLUMNS}
            for mean, error in (cell for row in rows.values() for cell in row.values()):
                assert mean >= 0
                assert error >= 0
        assert found[f"{name} all"]["accuracy"]["tax tree"][0] > 80
        unseen = found[f"{name} unseen"]
        assert unseen["seen: class right"]["tax tree"][0] > 70
        assert unseen["unseen: parent right"]["tax tree"][0] > 50


def test_classes_of_a_lattice_that_were_never_seen(benchmark: Any) -> None:
    found = benchmark.lattice(2)
    assert found["flat"][0] < 5
    assert found["all"][0] > 50
    assert found["seen"][0] > 50


def test_draws_choose_nothing_on_test_data(benchmark: Any, folder: Path) -> None:
    corpus = benchmark.Corpus(folder, "trec_questions")
    texts = {id(text) for text in corpus.test.texts}
    for per_class in (2, None):
        train, held, first = benchmark.draw(corpus, per_class, np.random.default_rng(0))
        for part in (train, held, first):
            assert not texts & {id(text) for text in part.texts}
        own = {id(text) for text in first.texts}
        assert not own & {id(text) for text in held.texts}
        if per_class is not None:
            assert set(np.unique(train.labels, return_counts=True)[1]) == {2}
        else:
            assert len(train) == len(held) + len(first)


def test_flat_classes_are_those_of_the_multiclass_svm(benchmark: Any, folder: Path) -> None:
    from maxmargin import MulticlassSVM

    corpus = benchmark.Corpus(folder, "trec_questions")
    X, T = corpus.rows(corpus.train, corpus.test)
    flat = corpus.model("flt", "0/1", benchmark.Setting(0.1, "margin", "one"))
    other = MulticlassSVM(C=0.1, fit_intercept=False, gap=1e-3, random_state=0)
    flat.fit(X, corpus.train.labels)
    other.fit(X, corpus.train.labels)
    assert flat.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-3)
    right, tree = corpus.losses(["a/b/1", "a/b/1", "a/b/1"], ["a/b/1", "a/3", "c/4"])
    assert right.tolist() == [1, 0, 0]
    assert tree.tolist() == [0, 2, 3]
    assert (flat.predict(T) == corpus.test.labels).mean() > 0.7


@pytest.mark.data
def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    data_file("newsgroups_taxonomy/train.txt.gz")
    spec = importlib.util.spec_from_file_location(
        "taxonomy_example", ROOT / "examples" / "taxonomy.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--data", str(FOLDER), "--limit", "1200"]) == 0
    said = capsys.readouterr().out
    assert "20 classes, 38 nodes" in said
    assert said.count("never seen, is taken for") == 3
    assert module.main(["--data", "/nowhere"]) == 1
