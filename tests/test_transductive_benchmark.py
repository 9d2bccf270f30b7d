"""What `benchmarks/transductive.py` prints, on made-up references; and its picture."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PARTS = (
    ("author", ["ann", "bob", "eve", "tom"]),
    ("title", ["cats", "dogs", "trees", "fish"]),
    ("booktitle", ["proc", "of", "snow", "rain"]),
    ("pages", ["pages", "7", "9"]),
    ("date", ["1999", "2001"]),
)
REST = ["editor", "journal", "location", "note", "tech"]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.fixture
def folder(tmp_path):
    """Return a folder with files like those of the citations."""
    rng = np.random.default_rng(0)
    there = tmp_path / "citations_cora"
    there.mkdir()
    for name, n in (("train", 40), ("dev", 6), ("test", 6), ("unlabelled", 8)):
        lines = []
        for k in range(n):
            for label, words in PARTS:
                tokens = [*rng.choice(words, 2), "."]
                lines += [f"{t}\t{label}" if name != "unlabelled" else t for t in tokens]
            if name == "train" and k == 0:
                lines += [f"x\t{label}" for label in REST]  # the rules name these labels
            lines.append("")
        with gzip.open(there / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return tmp_path


def test_the_last_line_is_the_promised_object(script, folder, capsys):
    options = ["--data", str(folder), "--task", "citations", "--labelled", "2,4", "--draws", "2"]
    assert script("transductive").main([*options, "--curve"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(figures) == ["citations"]
    for n in ("2", "4"):
        row = figures["citations"][n]
        for name in ("supervised", "transductive", "transductive_i", "codl", "codl_i"):
            assert 0 <= row[name] <= 100
        assert row["standard_error"] >= 0
        assert row["draws"] == 2
    curve = figures["citations"]["curve"]
    assert curve["labelled"][:2] == [5, 10]
    assert curve["suggest"][0] == curve["random"][0]  # both begin with the same sequences


def test_parameters_are_searched_on_the_development_file(script, folder, capsys, monkeypatch):
    """Each method gets the best of what was tried, and the labels of the test file are not read."""
    tune = script("transductive_tune")
    grids = {
        "supervised": {"C1": (1, 10)},
        "codl": {"penalty": (1,)},
        "transductive": {"mu": (1, 4)},
    }
    monkeypatch.setattr(tune, "GRIDS", grids)
    options = ["--data", str(folder), "--labelled", "3", "--draws", "2"]
    runs = []
    for labels in ("kept", "shuffled"):
        if labels == "shuffled":
            with gzip.open(folder / "citations_cora" / "test.tsv.gz", "rt") as file:
                text = file.read()
            with gzip.open(folder / "citations_cora" / "test.tsv.gz", "wt") as file:
                file.write(text.replace("\ttitle", "\tnote"))
        assert tune.main(options) == 0
        runs.append(capsys.readouterr().out.splitlines())
    assert runs[0] == runs[1]
    found = json.loads(runs[0][-1])["citations"]["3"]
    tried = [
        line for line in runs[0][: runs[0].index("citations, 3_i")] if "transductive {" in line
    ]
    assert found["dev_transductive"] == max(float(line.split()[-1]) for line in tried)
    assert found["mu"] in (1, 2, 4)


def test_words_that_belong_to_a_field(script):
    words = script("transductive_rules").frequent_words
    X = [["Call", "now", "a", "pool"], ["call", "the", "pool"], ["call", "me", "a", "cat"]]
    y = [["C", "A", "F", "F"], ["C", "C", "F"], ["C", "C", "C", "F"]]
    assert words(X, y, least=2) == {"C": ["call"], "F": ["pool"]}
    assert words(X, y, ["CALL"], least=2) == {"F": ["pool"]}
    assert words(X, y, least=1, each=2)["C"] == ["call", "me"]
    assert words(X, y, least=2, share=0.5)["F"] == ["a", "pool"]


def test_the_picture_has_all_lines(script, tmp_path, capsys):
    picture = script("transductive_picture")
    row = {"supervised": 60, "supervised_i": 65, "transductive": 70, "transductive_i": 75}
    for n in (5, 20):
        figures = {"citations": {str(n): {k: v + n / 5 for k, v in row.items()}, "curve": {}}}
        (tmp_path / f"{n}.log").write_text(f"something\n{json.dumps(figures)}\n")
    logs = [str(tmp_path / "5.log"), str(tmp_path / "20.log")]
    assert picture.main([str(tmp_path / "p.svg"), *logs]) == 0
    found = ElementTree.fromstring((tmp_path / "p.svg").read_text())
    circles = [x for x in found.iter() if x.tag.endswith("circle")]
    assert len(circles) == 2 * len(row)
    heights = [float(x.get("cy")) for x in circles]
    assert heights[1] < heights[0]  # more labels, higher
    assert picture.main([str(tmp_path / "p.svg"), logs[0]]) == 1
    assert "expected at least two" in capsys.readouterr().err
    (tmp_path / "bad.log").write_text("no figures\n")
    assert picture.main([str(tmp_path / "p.svg"), str(tmp_path / "bad.log")]) == 1
    assert "no JSON object" in capsys.readouterr().err
