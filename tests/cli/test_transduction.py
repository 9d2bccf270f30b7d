"""``maxmargin train --unlabelled --constraints`` and ``maxmargin suggest``."""

from __future__ import annotations

import json

import pytest

from maxmargin.cli.main import main

RULES = """\
labels = ["author", "title", "date"]
[[constraint]]
kind = "first"
labels = "author"
[[constraint]]
kind = "words"
pattern = "[0-9]{4}"
labels = "date"
"""


@pytest.fixture
def files(tmp_path):
    few = "ann\tauthor\n.\tauthor\ncats\ttitle\n.\ttitle\n1999\tdate\n"
    much = [
        "\n".join([name, ".", thing, ".", year])
        for name, thing, year in (
            ("bob", "dogs", "2001"),
            ("eve", "trees", "1987"),
            ("tom", "rain", "1990"),
        )
    ]
    (tmp_path / "few.tsv").write_text(few)
    (tmp_path / "much.tsv").write_text("\n\n".join(much) + "\n")
    (tmp_path / "rules.toml").write_text(RULES)
    return {name: str(tmp_path / name) for name in ("few.tsv", "much.tsv", "rules.toml", "m.mm")}


def run(capsys, *arguments):
    code = main([*arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_train_tag_and_suggest(files, capsys):
    train = ["train", files["few.tsv"], "-m", files["m.mm"], "--constraints", files["rules.toml"]]
    more = ["--unlabelled", files["much.tsv"], "--decode", "hard", "--valid", files["few.tsv"]]
    code, out, _ = run(capsys, *train, *more, "--json", "-q")
    assert code == 0
    summary = json.loads(out.splitlines()[-1])
    assert summary["n_unlabelled"] == 3
    assert summary["gamma"] <= summary["gamma_bound"] + 1e-6
    assert summary["gamma_scale"] == "sum"
    assert summary["valid_token_accuracy"] == 1.0
    code, out, _ = run(capsys, "tag", "-m", files["m.mm"], files["much.tsv"])
    assert code == 0
    assert out.splitlines()[4].split() == ["2001", "date"]  # the model decodes with its rules
    code, out, _ = run(
        capsys, "suggest", "-m", files["m.mm"], files["much.tsv"], "-n", "2", "--json"
    )
    found = json.loads(out.splitlines()[-1])["suggestions"]
    assert code == 0
    assert len({one["index"] for one in found}) == 2
    assert all(1 <= one["index"] <= 3 for one in found)
    code, out, _ = run(capsys, "suggest", "-m", files["m.mm"], files["much.tsv"], "-n", "1")
    columns = out.splitlines()[0].split("\t")  # tabs, not their names
    assert columns[0] == str(found[0]["index"])
    assert columns[3] == found[0]["words"]
    code, out, _ = run(capsys, *train, "--decode", "soft", "-q")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--unlabelled", "much.tsv"], "--unlabelled needs --constraints"),
        (["--mu", "2"], "--mu needs --constraints"),
        (["--constraints", "rules.toml", "--mu", "2"], "--mu needs --unlabelled"),
        (["--constraints", "rules.toml", "--cv", "3"], "does not go with --cv"),
    ],
)
def test_options_that_do_not_go_together(files, capsys, arguments, message):
    given = [files.get(a, a) for a in arguments]
    code, _, err = run(capsys, "train", files["few.tsv"], "-m", files["m.mm"], *given)
    assert code == 2
    assert message in err


def test_an_unknown_label_in_the_rules(files, capsys, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text('[[constraint]]\nkind = "first"\nlabels = "autor"\n')
    code, _, err = run(
        capsys,
        "train",
        files["few.tsv"],
        "-m",
        files["m.mm"],
        "-q",
        "--constraints",
        str(bad),
        "--unlabelled",
        files["much.tsv"],
    )
    assert code == 2
    assert "autor" in err
    assert "line 3" in err
