"""What the command line says of badly scaled columns and of weights that became 8-byte ones."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from maxmargin.cli.main import main


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "train.txt"
    tokens = ["A\tw=a\tlen:{0}\n", "B\tw=b\tlen:{0}\tend\n"]
    path.write_text("".join("".join(t.format(1900 + k) for t in tokens) + "\n" for k in range(5)))
    return str(path)


def train(items, tmp_path, *more):
    return main(["train", items, "--format", "crfsuite", "-m", str(tmp_path / "m"), *more])


def test_one_line_names_the_columns(items, tmp_path):
    command = [sys.executable, "-m", "maxmargin", "train", items, "--format", "crfsuite"]
    command += ["-m", str(tmp_path / "m"), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("maxmargin train: warning: ")
    assert "1 of 4 columns has values of quite another size" in lines[0]
    assert "'len' (1.9e+03)" in lines[0]


def test_nothing_is_said_of_words(tmp_path, capsys):
    path = tmp_path / "words.txt"
    path.write_text("A\tw=a\nB\tw=b\n\nA\tw=a\n")
    assert train(str(path), tmp_path, "--quiet") == 0
    assert "warning" not in capsys.readouterr().err


def test_the_change_to_8_bytes_is_in_the_summary_and_in_info(tmp_path, capsys):
    path = tmp_path / "words.txt"
    path.write_text("A\tw=a\nB\tw=b\tx\nA\tx\n\nA\tw=a\tx\nC\tw=c\n\nC\tw=c\tx\nA\tw=a\n")
    options = ["-C", "1e6", "--gap", "1e-6", "--json"]
    assert train(str(path), tmp_path, *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["converged"]
    assert "went on in 8-byte arithmetic after pass" in summary["stop_reason"]
    assert main(["info", str(tmp_path / "m"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "8-byte arithmetic" in json.dumps(found)


@pytest.mark.filterwarnings("ignore::maxmargin.errors.ScalingWarning")
def test_the_limit_on_passes(items, tmp_path, capsys):
    assert train(items, tmp_path, "--json", "--max-passes", "2", "--gap", "0") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["stop_reason"].split(";")[0] == "max_passes = 2"
    assert train(items, tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["converged"]
