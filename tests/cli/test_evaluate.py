"""`maxmargin eval`: the numbers of `maxmargin.metrics`, with a model and without one."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections import Counter

import pytest

from cli_files import COMMAND, conllu, refused, run, sentences, summary, svmhmm, text, write
from maxmargin.cli.main import main
from maxmargin.metrics import confusion_text, evaluate
from real_data import data_file

TRAIN, TEST = sentences(), sentences(9, seed=2)
TRUTH = [[row[2] for row in rows] for rows in TEST]
SCORES = ("token_accuracy", "sequence_accuracy", "f1", "precision", "recall")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that errs, a file with labels, and that file tagged."""
    path = tmp_path_factory.mktemp("eval")
    data = write(path / "train.tsv", text(TRAIN))
    test = write(path / "test.tsv", text(TEST))
    model, tagged = str(path / "m.mm"), str(path / "tagged.tsv")
    assert main(["train", str(data), "-m", model, "-C", "0.01", "-q"]) == 0
    assert main(["tag", "-m", model, str(test), "-o", tagged]) == 0
    return path


def report(tagged):
    """What the library says of a tagged file: the last two columns."""
    blocks = [block.split("\n") for block in tagged.read_text().rstrip("\n").split("\n\n")]
    rows = [[line.split("\t") for line in block] for block in blocks]
    return evaluate(*([[row[k] for row in block] for block in rows] for k in (-2, -1)))


def test_numbers_are_those_of_metrics(capsys, folder):
    expected = report(folder / "tagged.tsv")
    assert 0 < expected.f1 < expected.token_accuracy < 1
    found = summary(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv")
    assert {name: found[name] for name in expected.to_dict()} == expected.to_dict()
    assert found["tokens_per_second"] > 0
    assert set(SCORES) <= found.keys()
    told = run(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--brief")
    assert told == f"{expected}\n"


def test_labels_and_errors(capsys, folder):
    """Counted again from the tagged file, line by line."""
    lines = (folder / "tagged.tsv").read_text().split("\n")
    rows = [line.split("\t") for line in lines if line]
    found = summary(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv")
    assert found["per_label"].keys() == {row[k] for row in rows for k in (-2, -1)}
    for label, scores in found["per_label"].items():
        true = sum(row[-2] == label for row in rows)
        given = sum(row[-1] == label for row in rows)
        right = sum(row[-1] == row[-2] == label for row in rows)
        counts = [scores[name] for name in ("n_true", "n_predicted", "n_correct")]
        assert counts == [true, given, right]
        assert scores["recall"] == (right / true if true else 0)
        assert scores["precision"] == (right / given if given else 0)
    wrong = Counter((row[-2], row[-1]) for row in rows if row[-1] != row[-2])
    errors = {(e["truth"], e["predicted"]): e["count"] for e in found["errors"]}
    assert errors == dict(wrong.most_common(10))
    assert sum(e["of_errors"] for e in found["errors"]) == pytest.approx(1)
    words = Counter((row[0], row[-2], row[-1]) for row in rows if row[-1] != row[-2])
    told = {(e["token"], e["truth"], e["predicted"]): e["count"] for e in found["error_tokens"]}
    assert sorted(told.values()) == sorted(n for _, n in words.most_common(10))
    assert all(words[key] == n for key, n in told.items())
    trues = [s["f1"] for s in found["per_label"].values() if s["n_true"]]
    assert found["macro_f1"] == pytest.approx(sum(trues) / len(trues))
    out = run(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--errors", "2")
    assert len(re.findall(r"^\S+ +\S+ +\d+ +[\d.]+% +[\d.]+%$", out, re.M)) == 2
    assert "\nlabel " in out
    assert "\ntoken " in out
    out = run(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--errors", "0")
    assert "of errors" not in out


def test_without_a_model_the_last_two_columns_are_compared(capsys, folder):
    expected = report(folder / "tagged.tsv")
    found = summary(capsys, "eval", folder / "tagged.tsv")
    assert {name: found[name] for name in expected.to_dict()} == expected.to_dict()
    assert run(capsys, "eval", folder / "tagged.tsv", "--brief") == f"{expected}\n"


@pytest.mark.parametrize("separator", ["\t", " "])
def test_forms_of_a_file(capsys, folder, tmp_path, separator):
    expected = report(folder / "tagged.tsv").to_dict()
    tagged = (folder / "tagged.tsv").read_text().replace("\t", separator)
    commented = "# about\r\n" + tagged.replace("\n", "\r\n")
    path = write(tmp_path / "t.gz", gzip.compress(commented.encode()))
    found = summary(capsys, "eval", path, "--comments", "#")
    assert {name: found[name] for name in expected} == expected


def test_confusion(capsys, folder):
    expected = report(folder / "tagged.tsv")
    arguments = ["eval", folder / "tagged.tsv", "--confusion"]
    found = summary(capsys, *arguments)["confusion"]
    counts = {
        (row, column): n
        for row, line in zip(found["labels"], found["counts"], strict=True)
        for column, n in zip(found["labels"], line, strict=True)
        if n
    }
    wanted = {
        (row, column): int(expected.confusion[i, j])
        for i, row in enumerate(expected.labels)
        for j, column in enumerate(expected.labels)
        if expected.confusion[i, j]
    }
    assert counts == wanted
    out = run(capsys, *arguments)
    assert out.startswith(f"{expected}\n\n")
    first = confusion_text(expected).split("\n")[0]
    assert first in out
    assert "truth \\ predicted" in out
    told = run(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--confusion")
    assert first in told
    found = summary(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--confusion")
    assert sum(map(sum, found["confusion"]["counts"])) == expected.n_tokens


def test_labels_without_chunks(capsys, tmp_path):
    data = write(tmp_path / "train.tsv", text(TRAIN, (0, 1)))
    run(capsys, "train", data, "-m", tmp_path / "m.mm", "-q")
    found = summary(capsys, "eval", "-m", tmp_path / "m.mm", data)
    assert found["token_accuracy"] > 0.9
    assert found["f1"] is found["precision"] is found["recall"] is None
    assert "precision" not in run(capsys, "eval", "-m", tmp_path / "m.mm", data, "--brief")
    told = run(capsys, "eval", "-m", tmp_path / "m.mm", data)
    assert "\nlabel  " in told
    assert "\nNN  " in told


def test_unknown_labels_are_errors(capsys, folder, tmp_path):
    known = summary(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv")
    odd = [[(w, p, "B-NEW" if c == "O" else c) for w, p, c in rows] for rows in TEST]
    path = write(tmp_path / "odd.tsv", text(odd))
    found = summary(capsys, "eval", "-m", folder / "m.mm", path, "--confusion")
    n_odd = sum(label == "O" for labels in TRUTH for label in labels)
    before = round(known["token_accuracy"] * known["n_tokens"])
    tagged = [line.split("\t") for line in (folder / "tagged.tsv").read_text().split("\n") if line]
    right_odd = sum(row[-1] == row[-2] == "O" for row in tagged)
    assert round(found["token_accuracy"] * found["n_tokens"]) == before - right_odd
    assert found["per_type"]["NEW"]["n_true"] == n_odd
    assert found["per_type"]["NEW"]["recall"] == 0
    assert "B-NEW" in found["confusion"]["labels"]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(capsys, folder, threads):
    expected = report(folder / "tagged.tsv").to_dict()
    found = summary(
        capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--threads", threads
    )
    assert {name: found[name] for name in expected} == expected


def test_conllu_without_a_model(capsys, tmp_path):
    path = write(tmp_path / "t.conllu", conllu(TEST))
    found = summary(capsys, "eval", path, "--format", "conllu", "--columns", "form,xpos,xpos")
    assert found["token_accuracy"] == found["f1"] == 1


def test_the_label_column_is_that_of_training(capsys, tmp_path):
    data = write(tmp_path / "train.tsv", text(TRAIN, (2, 0, 1)))
    template = write(tmp_path / "t", "U:%x[0,1]\nU:%x[-1,1]|%x[0,1]\nB\n")
    run(capsys, "train", data, "-m", tmp_path / "m.mm", "--label-column", "0",
        "--template", template, "-C", "10", "-q")
    found = summary(capsys, "eval", "-m", tmp_path / "m.mm", data)
    assert found["f1"] > 0.9


def test_tag_into_eval_as_processes(capsys, folder):
    tag = [*COMMAND, "tag", "-m", folder / "m.mm", folder / "test.tsv"]
    with subprocess.Popen(tag, stdout=subprocess.PIPE) as tagging:
        done = subprocess.run(
            [*COMMAND, "eval", "-", "--json"], stdin=tagging.stdout, capture_output=True, check=True
        )
    assert done.stderr == b""
    expected = report(folder / "tagged.tsv").to_dict()
    found = json.loads(done.stdout)
    assert {name: found[name] for name in expected} == expected


# --- bad input ------------------------------------------------------------------------------------

BAD = {
    "ragged": ("a\tb\tN\nc\tN\n", "line 2: found 2 columns"),
    "empty": ("", "holds no tokens"),
    "one column": ("a\nb\n", "column"),
    "other columns": (text(TEST, (0, 2)), "found 2 columns; expected 3, as in training"),
    "no label": ("a\tb\t\n", "line 1, column 2: found nothing; expected a label"),
    "not UTF-8": (b"a\tb\tN\n\xc3(\tb\tN\n", "line 2"),
    "svmhmm": (svmhmm(TEST), "looks like svmhmm; expected conll"),
    "broken gzip": (gzip.compress(text(TEST).encode(), mtime=0)[:40], "cut short"),
    "missing": (None, "no such file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(capsys, folder, tmp_path, kind):
    content, told = BAD[kind]
    path = tmp_path / "test.tsv"
    if content is not None:
        write(path, content)
    message = refused(capsys, "eval", "-m", folder / "m.mm", path, "--json")
    assert f"{path}: " in message
    assert told in message
    if kind != "other columns":
        assert f"{path}: " in refused(capsys, "eval", path, "--json")


def test_bad_usage(capsys, folder, tmp_path):
    assert f"{tmp_path}: is a directory" in refused(capsys, "eval", tmp_path)
    message = refused(capsys, "eval", "-m", folder / "m.mm", folder / "test.tsv", "--format",
                      "svmhmm")
    assert f"{folder / 'm.mm'}: was trained on conll files" in message
    path = write(tmp_path / "t.svm", svmhmm(TEST))
    message = refused(capsys, "eval", path, "--format", "svmhmm")
    assert f"{path}: without -m MODEL" in message
    assert f"{path}: without -m MODEL" in refused(capsys, "eval", path)  # recognised
    assert "TEST" in refused(capsys, "eval")


# --- real data ------------------------------------------------------------------------------------


@pytest.mark.data
def test_chunking_of_conll_2000(capsys, tmp_path):
    train, test = data_file("conll2000/train.tsv.gz"), data_file("conll2000/test.tsv.gz")
    model, tagged = tmp_path / "chunk.mm", tmp_path / "tagged.tsv"
    found = summary(capsys, "train", train, "-m", model, "--template", "chunking", "-C", "0.1",
                    "--gap", "0.01")
    assert found["gap"] <= 0.01
    assert found["converged"] is True
    scores = summary(capsys, "eval", "-m", model, test)
    assert scores["f1"] >= 0.935
    with tagged.open("wb") as out:
        subprocess.run([*COMMAND, "tag", "-m", model, test], stdout=out, check=True)
    again = summary(capsys, "eval", tagged)
    assert {name: again[name] for name in SCORES} == {name: scores[name] for name in SCORES}
