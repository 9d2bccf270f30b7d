"""What is said before and while a model is trained: sizes, rounds, and likely mistakes."""

from __future__ import annotations

import re
import subprocess

import pytest

from cli_files import COMMAND, ROUND, crfsuite, quiet, sentences, text, write
from maxmargin.cli import data_notes
from maxmargin.cli.main import main

TRAIN = sentences()


def train(capsys, path, *options):
    """Train for a pass; return what was written to the two streams, without lines of rounds."""
    model = path.parent / "m.mm"
    assert main(["train", str(path), "-m", str(model), "--max-passes", "1", *options]) == 0
    out, err = capsys.readouterr()
    return out, quiet(err)


def test_the_data_come_first(tmp_path):
    path = write(tmp_path / "x.crfsuite", crfsuite(TRAIN))
    command = [*COMMAND, "train", path, "-m", tmp_path / "m.mm"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True
    )
    lines = done.stdout.splitlines()
    assert re.fullmatch(
        r".*x\.crfsuite \(crfsuite\): 24 sequences, 151 tokens, \d labels, \d+ features", lines[0]
    )
    assert ROUND.match(lines[1])


@pytest.mark.parametrize("task", [[], ["--task", "classes"]])
def test_how_much_is_told(capsys, tmp_path, task):
    content = "A\tred dog\nB\tblue cat\nA\told dog\nB\told cat\n" if task else text(TRAIN)
    path = write(tmp_path / "x.tsv", content)
    arguments = ["train", *task, str(path), "-m", str(tmp_path / "m.mm"), "--gap", "1e-6"]
    told = {}
    for option in ("-q", "", "-v"):
        assert main([*arguments, *([option] if option else [])]) == 0
        told[option] = capsys.readouterr().err.splitlines()
    assert told["-q"] == []
    assert all(ROUND.match(line) for line in told[""] + told["-v"])
    assert 0 < len(told[""]) < len(told["-v"])
    assert all("[" in line and "dual" in line and "planes" in line for line in told["-v"])
    assert not any("[" in line for line in told[""])
    assert {line.partition("[")[0].strip().rpartition("  ")[0] for line in told["-v"]}
    assert main([*arguments, "-q", "-v"]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_rounds_are_not_told_too_often(capsys, tmp_path, monkeypatch):
    from maxmargin.cli import progress

    monkeypatch.setattr(progress, "ALL_ROUNDS", 3)
    monkeypatch.setattr(progress, "SECONDS", 1000.0)
    path = write(tmp_path / "x.tsv", text(TRAIN))
    assert main(["train", str(path), "-m", str(tmp_path / "m.mm"), "--gap", "1e-6"]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_scores_are_those_of_the_same_pass(capsys, tmp_path):
    path = write(tmp_path / "x.tsv", text(TRAIN))
    model = str(tmp_path / "m.mm")
    assert main(["train", str(path), "-m", model, "--valid", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    import json

    scores = {s["pass"]: s["f1"] for s in json.loads(out)["valid_passes"]}
    shown = [re.match(r"pass (\d+) .* F1 ([\d.]+)  ", line) for line in err.splitlines()]
    assert len(shown) > 2
    for line in shown:
        assert float(line[2]) == pytest.approx(100 * scores[int(line[1])], abs=0.006)


def test_no_warnings(capsys, tmp_path):
    _, err = train(capsys, write(tmp_path / "x.tsv", text(sentences(200))))
    assert err == ""


def test_many_labels(capsys, tmp_path):
    rows = [[(f"w{i}", f"L{i % 250}") for i in range(1000)][k : k + 10] for k in range(0, 1000, 10)]
    path = write(tmp_path / "x.tsv", text(rows, (0, 1)))
    _, err = train(capsys, path)
    [warning] = [line for line in err.splitlines() if "different labels" in line]
    assert f"{path}: there are 250 different labels in 1000 tokens, such as 'L" in warning
    assert "the labels are in the last column" in warning
    assert "--label-column" in warning
    assert train(capsys, path, "-q")[1] == ""
    named = [[(b, "a=" + a, "b=x") for a, b in r] for r in rows]
    items = write(tmp_path / "x.crfsuite", text(named))
    _, err = train(capsys, items)
    assert "a line of crfsuite begins with the label" in err


def test_one_giant_sequence(capsys, tmp_path):
    rows = [row for rows in sentences(200) for row in rows]
    _, err = train(capsys, write(tmp_path / "x.tsv", text([rows])))
    [warning] = err.splitlines()
    assert f"the only sequence has {len(rows)} tokens; are the blank lines missing" in warning


def test_one_long_sequence(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(data_notes, "LONG", 100)
    rows = [row for rows in sentences(40) for row in rows]
    _, err = train(capsys, write(tmp_path / "x.tsv", text([TRAIN[0], rows])))
    assert f"sequence 1 has {len(rows)} tokens" in err


def test_labels_that_occur_once(capsys, tmp_path):
    data = [*sentences(200), [("dog", "NN", "B-NPP")]]
    path = write(tmp_path / "x.tsv", text(data))
    [warning] = train(capsys, path)[1].splitlines()
    assert "1 label occurs once: 'B-NPP'; from one token little can be learned" in warning
    # A small file is not judged by that.
    small = write(tmp_path / "y.tsv", text([*TRAIN, [("dog", "NN", "B-NPP")]]))
    assert train(capsys, small)[1] == ""


def test_features_that_are_all_unique(capsys, tmp_path):
    numbered = [[(f"{i}-{t}", *row[1:]) for t, row in enumerate(rows)]
                for i, rows in enumerate(sentences(200))]
    template = write(tmp_path / "t.txt", "U:%x[0,0]\n")
    path = write(tmp_path / "x.tsv", text(numbered))
    [warning] = train(capsys, path, "--template", str(template))[1].splitlines()
    assert "features occurs in one token only" in warning
    assert "a number of the line" in warning
    template = write(tmp_path / "t.txt", "U1:%x[0,0]\nU2:%x[0,1]\n")
    [warning] = train(capsys, path, "--template", str(template))[1].splitlines()
    assert "no feature of the template's line 'U1:%x[0,0]' occurs in two tokens" in warning
    items = write(tmp_path / "x.crfsuite", crfsuite(numbered).replace("\tp=", "\tp=x"))
    assert train(capsys, items)[1] == ""  # the tags are not unique
