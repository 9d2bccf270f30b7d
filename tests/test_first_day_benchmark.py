"""The tutorial of ``benchmarks/first_day.py``, and the table of ``benchmarks/templates.py``."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SENTENCES = [
    "El DA O\nPapa NC B-PER\nllegó VMI O\na SP O\nRoma NC B-LOC\n",
    "IBM NC B-ORG\nEspaña NC I-ORG\ncrece VMI O\n",
    "Juan NC B-PER\nPérez NC I-PER\nvive VMI O\nen SP O\nMadrid NC B-LOC\n",
]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in ("conll2002_esp", "conll2000"):
        (tmp_path / folder).mkdir()
        for part in ("train", "dev", "test"):
            if (folder, part) != ("conll2000", "dev"):
                text = "\n".join(SENTENCES * 4).replace(" ", "\t")
                path = tmp_path / folder / f"{part}.tsv.gz"
                path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return tmp_path


def test_features_of_the_tutorial(script: Any) -> None:
    tokens = script("first_day_tutorial").features([["IBM", "NC", "B-ORG"], ["crece", "VMI", "O"]])
    assert len(tokens[0]) == 4 + 5 + 1 + 5
    assert tokens[0]["lower"] == "ibm"
    assert tokens[0]["isupper"] is tokens[0]["BOS"] is True
    assert tokens[0]["+1:postag2"] == "VM"
    assert tokens[1]["end3"] == "ece"
    assert tokens[1]["-1:isupper"] is tokens[1]["EOS"] is True


def test_scores_of_the_tutorial(script: Any) -> None:
    tutorial = script("first_day_tutorial")
    truth, found = [["A", "O", "B", "B"]], [["A", "A", "B", "O"]]
    # A: precision 1/2, recall 1; B: precision 1, recall 1/2; two thirds each, whatever the weights.
    assert tutorial.flat_f1(truth, found) == pytest.approx(2 / 3)
    marginals = [[{"A": 0.75, "O": 0.25}, {"A": 0.75, "O": 0.25}]]
    assert tutorial.honesty(marginals, [["A", "A"]], [["A", "O"]]) == pytest.approx(0.25)


@pytest.mark.parametrize("choice", ["default", "search"])
def test_our_program_runs(script: Any, data: Path, capsys, monkeypatch, choice: str) -> None:
    ours = script("first_day_ours")
    monkeypatch.setattr(sys, "argv", ["ours", choice, "--data", str(data)])
    ours.tutorial(
        {"default": ours.model(), "search": ours.model()},
        ours.search,
        ours.SequenceTagger.calibrate,
    )
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["f1"] == result["flat_f1"] == 100.0
    assert len(result["transitions"]) == 3
    assert result.get("n_trainings") == (13 if choice == "search" else None)


def test_lines_that_change(script: Any) -> None:
    first_day = script("first_day")
    counted = first_day.changed_lines()
    ours, theirs = first_day.code_lines(first_day.OURS), first_day.code_lines(first_day.THEIRS)
    assert counted["removed"] - counted["added"] == len(theirs) - len(ours)
    assert 0 < counted["removed"] < len(theirs)


def test_the_table_of_templates(script: Any, data: Path) -> None:
    templates = script("templates")
    corpus = templates.CORPORA["chunking"]
    part, held, whole = templates.development(data, corpus)
    assert [table.n_sequences for table, _ in (part, held, whole)] == [10, 2, 12]
    dev = templates.development(data, templates.CORPORA["esp"])
    assert [table.n_sequences for table, _ in dev] == [12, 12, 12]
    about = templates.measure(data, corpus, 1, 1)
    assert about["new"]["n_features"] > about["old"]["n_features"]
    assert np.isfinite([*about["new"].values(), *about["old"].values()]).all()
    assert templates.row("x", about).count("|") == 8


def test_what_templates_are_chosen_on(script: Any, data: Path) -> None:
    choice = script("template_choice")
    (data / "conll2000").rename(data / "brown_pos")
    part, held = choice.choice_data(data, "brown")
    assert [table.n_sequences for table, _ in (part, held)] == [10, 2]
    part, held = choice.choice_data(data, "esp")
    assert [table.n_sequences for table, _ in (part, held)] == [12, 12]


def test_blocks_of_lines_are_templates_of_their_own(script: Any) -> None:
    choice = script("template_choice")
    for name, blocks in choice.BLOCKS.items():
        text = choice.BUILTIN_TEMPLATES[f"{name}@1"]
        n = len(choice.Template.parse(text).program())
        for title, block in blocks.items():
            more = choice.Template.parse(text + choice.lines(block, title))
            assert len(more.program()) == n + len(block)
