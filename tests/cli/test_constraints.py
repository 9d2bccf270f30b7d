"""``maxmargin constraints``."""

from __future__ import annotations

import json

import pytest

import cli_files
from maxmargin.cli.main import main

RULES = """\
columns = ["word", "pos", "chunk"]

[[constraint]]
name = "determiners"
kind = "words"
words = ["the", "a"]
labels = ["B-NP"]

[[constraint]]
name = "the end"
kind = "words"
is = "punctuation"
labels = "O"

[[constraint]]
name = "tags"
kind = "words"
column = "pos"
words = "VB"
labels = "I-VP"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "data.tsv").write_text(cli_files.text(cli_files.sentences()))
    return tmp_path


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("first", [[], ["check"], ["CHECK"]])
def test_a_table_with_examples(folder, capsys, first):
    code, out, _ = run(capsys, "constraints", *first, "rules.toml", "data.tsv")
    assert code == 0
    assert "determiners" in out
    assert "(100.0 %)" in out
    assert "tags: violated in the labels" in out
    assert "/B-VP]" in out


def test_json_with_the_predictions_of_a_model(folder, capsys):
    assert main(["train", "data.tsv", "-m", "m.mm", "--template", "words"]) == 0
    capsys.readouterr()
    code, out, _ = run(
        capsys, "constraints", "rules.toml", "data.tsv", "-m", "m.mm", "--json", "--examples", "1"
    )
    assert code == 0
    rows = json.loads(out.splitlines()[-1])["constraints"]
    assert [row["title"] for row in rows] == ["determiners", "the end", "tags"]
    assert rows[1]["labels"]["held"] == rows[1]["labels"]["cases"] == 24
    assert rows[2]["predictions"]["cases"] == rows[2]["labels"]["cases"]
    assert len(rows[2]["labels"]["violations"]) == 1
    code, out, _ = run(
        capsys, "constraints", "rules.toml", "data.tsv", "-m", "m.mm", "--unlabelled"
    )
    assert code == 0
    assert "labels" not in out.splitlines()[0]


def test_only_the_rules(folder, capsys):
    code, out, _ = run(capsys, "constraints", "check", "rules.toml")
    assert code == 0
    assert "rules.toml: 3 constraints" in out
    code, out, _ = run(capsys, "constraints", "rules.toml", "--json")
    assert json.loads(out)["constraints"][0]["kind"] == "words"


def test_a_model_with_rules_of_its_own(folder, capsys):
    from maxmargin import SequenceTagger, read_columns

    X, y = read_columns("data.tsv").labelled()
    SequenceTagger(template="words", constraints="rules.toml", decode="soft").fit(X, y).save("m.mm")
    code, out, _ = run(capsys, "constraints", "data.tsv", "-m", "m.mm")
    assert code == 0
    assert "determiners" in out
    # tag and eval decode with what the model keeps
    assert main(["tag", "-m", "m.mm", "data.tsv", "-o", "out.tsv"]) == 0
    assert main(["eval", "-m", "m.mm", "data.tsv"]) == 0
    assert main(["tag", "-m", "m.mm", "data.tsv", "-o", "out.tsv", "--nbest", "2"]) == 2
    assert "decodes with constraints" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"B-NP"',
            '"B-N"',
            "line 7, constraint 'determiners': there is no label 'B-N'; did you mean 'B-NP'?",
        ),
        (
            '"pos"\n',
            '"pso"\n',
            "rules.toml, line 18, constraint 'tags': there is no column 'pso'; did you mean 'pos'?",
        ),
        (
            "words = [",
            "wrods = [",
            "rules.toml, line 6: unknown key 'wrods' of kind words; did you mean 'words'?",
        ),
    ],
)
def test_errors_name_file_and_line(folder, capsys, old, new, message):
    (folder / "rules.toml").write_text(RULES.replace(old, new))
    code, _, err = run(capsys, "constraints", "rules.toml", "data.tsv")
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rules.toml", "data.tsv", "more.tsv"], "found 3 files"),
        (["none.toml", "data.tsv"], "none.toml: no such file"),
        (["rules.toml", "data.tsv", "--unlabelled"], "needs -m MODEL"),
        (["rules.toml", "data.tsv", "--label-column", "9"], "label column 9 is out of range"),
    ],
)
def test_wrong_arguments(folder, capsys, arguments, message):
    code, _, err = run(capsys, "constraints", *arguments)
    assert code == 2
    assert message in err


def test_item_files(folder, capsys):
    (folder / "items.txt").write_text(cli_files.crfsuite(cli_files.sentences()))
    (folder / "rules.toml").write_text(
        RULES.replace('column = "pos"', 'column = "p"').replace("columns", "#")
    )
    code, out, _ = run(capsys, "constraints", "rules.toml", "items.txt", "--format", "crfsuite")
    assert code == 0
    assert "24 of 24" in out
