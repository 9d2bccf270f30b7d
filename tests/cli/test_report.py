"""``--report``: what is on the page is what ``--json`` says, whatever was trained."""

from __future__ import annotations

import math

import numpy as np
import pytest

import maxmargin
from cli_files import crfsuite, refused, run, sentences, summary, text, write
from html_checks import Page

#: A label that would end a script and begin an element, and one that would end an attribute.
HOSTILE = ["</script><b>x", '"><img src=x onerror=alert(1)>', "&lt;é\u202e", "L" * 300]


def noisy(seed, n=60):
    """Return sentences of which some labels are wrong, so that there are errors to show."""
    draw = np.random.default_rng(seed)
    return [
        [
            (word, tag, "B-NP" if draw.random() < 0.12 else label)
            for word, tag, label in rows
        ]
        for rows in sentences(n, seed)
    ]


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "train.tsv", text(noisy(1)))
    write(tmp_path / "dev.tsv", text(noisy(2)))
    return tmp_path


def page_of(file):
    return Page(file.read_text(encoding="utf-8"))


def train(capsys, files, *more):
    """Train with a report; return the page and the figures of ``--json``."""
    out = files / "out.html"
    given = ["train", files / "train.tsv", "-m", files / "m.mm", "-q", "--report", out, *more]
    figures = summary(capsys, *given)
    assert figures["report"] == str(out)
    assert figures["report_bytes"] == out.stat().st_size
    return page_of(out), figures


def test_the_page_has_the_figures_of_json(capsys, files):
    page, figures = train(capsys, files, "--valid", files / "dev.tsv", "--template", "chunking")
    valid = figures["valid"]
    certificate = page.rows("The certificate")
    assert certificate["primal objective of the model"] == [figures["primal"]]
    assert certificate["dual bound: no model has less"] == [figures["dual"]]
    assert certificate["relative gap"] == [figures["gap"]]
    assert certificate["passes"] == [figures["passes"]]
    assert certificate["calls of the oracle"] == [figures["oracle_calls"]]
    overall = page.rows("Overall")
    assert overall["tokens right"] == [valid["token_accuracy"], valid["n_tokens"]]
    assert overall["sequences right"] == [valid["sequence_accuracy"], valid["n_sequences"]]
    assert overall["chunks: precision"] == [valid["precision"], valid["n_predicted_chunks"]]
    assert overall["chunks: recall"] == [valid["recall"], valid["n_true_chunks"]]
    assert overall["chunks: F1"][0] == valid["f1"]
    for name, row in page.rows("Chunks by type").items():
        score = valid["per_type"][name]
        wanted = ("f1", "precision", "recall", "n_true", "n_predicted")
        assert row[1:] == [score[key] for key in wanted]
    sizes = page.rows("Sequences and tokens")
    assert sizes["training data"][1:3] == [figures["n_sequences"], figures["n_tokens"]]
    assert sizes["validation data"][1:3] == [valid["n_sequences"], valid["n_tokens"]]
    calibration = page.rows("Calibration")
    assert calibration["temperature"] == [figures["temperature"]]
    assert calibration["expected calibration error"] == [figures["calibration_error"]]
    assert calibration["the same at the temperature 1"] == [figures["calibration_error_before"]]
    assert page.rows("Sizes")["weights that are not zero"] == [figures["n_nonzero"]]
    assert page.cards["F1 of chunks, held-out data"] == valid["f1"]
    assert page.cards["from the optimum, at most"] == figures["gap"]
    # and those of eval
    by_eval = summary(capsys, "eval", "-m", files / "m.mm", files / "dev.tsv", "--confusion")
    for name, row in page.rows("Tokens by label").items():
        score = by_eval["per_label"][name]
        assert row[1:] == [score[k] for k in ("f1", "precision", "recall", "n_true", "n_predicted")]
    confused = [[row[0], row[1], row[2]] for row in page.tables["Most frequent confusions"]]
    errors = [[e["truth"], e["predicted"], e["count"]] for e in by_eval["errors"]]
    assert confused[: len(errors)] == errors
    names, counts = by_eval["confusion"]["labels"], np.array(by_eval["confusion"]["counts"])
    for row in page.tables["Tokens by true and predicted label"]:
        true = counts[names.index(row[0])]
        assert sum(cell for cell in row[1:] if cell != "\u00b7") == true.sum()
    words = [[row[0], row[3]] for row in page.tables["Words that are wrong most often"]]
    assert words[:10] == [[e["token"], e["count"]] for e in by_eval["error_tokens"]]
    # and those of info
    about = summary(capsys, "info", files / "m.mm", "--top", 12, "--transitions")
    strongest = [e for e in about["top"] if e["weight"] > 0]
    rows = page.tables["Strongest features for"]
    assert [row[:2] for row in rows] == [[e["feature"], e["label"]] for e in strongest]
    assert [row[3] for row in rows] == [e["weight"] for e in strongest]
    against = [e["weight"] for e in about["transitions"] if e["weight"] < 0][:10]
    assert [row[3] for row in page.tables["Strongest transitions against"]] == against


def test_the_errors_are_those_that_cost_most(capsys, files):
    page, _ = train(capsys, files, "--valid", files / "dev.tsv")
    tagger = maxmargin.load(files / "m.mm")
    table = maxmargin.read_columns(files / "dev.tsv")
    X, labels = table.labelled()
    truth, best = labels.sequences(), tagger.predict(table).tolist()
    losses = np.array(
        [sum(a != b for a, b in zip(*pair, strict=True)) for pair in zip(truth, best, strict=True)]
    )
    above = tagger.score_labellings(X, best) - tagger.score_labellings(X, truth)
    costs = np.where(losses > 0, losses + above, 0)
    order = np.argsort(-costs, kind="stable")[:12]
    shown = [title for level, title in page.headings if title.startswith("Sequence ")]
    assert [int(title.split()[1]) - 1 for title in shown] == order.tolist()
    assert f"{losses[order[0]]} of {len(truth[order[0]])} tokens wrong" in shown[0]
    assert f"cost {costs[order[0]]:.4g}" in shown[0]


def test_without_validation_data_the_scores_are_called_those_of_training(capsys, files):
    page, figures = train(capsys, files)
    assert "training data (" in page.text
    assert "which the model has seen" in page.text
    assert "calibration_error" not in figures
    assert "temperature" not in figures
    assert "Probabilities are not judged on the data of training" in page.text
    by_eval = summary(capsys, "eval", "-m", files / "m.mm", files / "train.tsv")
    assert page.rows("Overall")["tokens right"][0] == by_eval["token_accuracy"]
    assert "F1 of chunks, training data" in page.cards


def test_hostile_labels_and_words_are_text(capsys, tmp_path):
    draw = np.random.default_rng(0)
    for name in ("train", "dev"):
        rows = [
            [(f"<i>w{draw.integers(4)}&", str(draw.integers(3)), HOSTILE[draw.integers(4)])
             for _ in range(4)]
            for _ in range(30)
        ]
        write(tmp_path / f"{name}.tsv", text(rows))
    page, _ = train(capsys, tmp_path, "--valid", tmp_path / "dev.tsv")  # Page refuses script, img
    assert "</script><b>x" in page.text
    assert '"><img src=x onerror=alert(1)>' in page.text
    assert "\u202e" not in page.text
    assert "&lt;é\\u202e" in page.text
    assert "L" * 300 not in page.text
    assert "<i>w1&" in page.text


@pytest.mark.parametrize(
    "more",
    [
        ["--l1-ratio", "0.5"],
        ["--nonzeros", "40", "--debias"],
        ["--hash-bits", "8"],
        ["--solver", "subgradient", "--max-passes", "20"],
        ["--solver", "bcfw", "--max-passes", "10"],
        ["--cv", "2"],
        ["--allowed", "iob2"],
        ["--slack", "quadratic"],
        ["--max-passes", "1"],
    ],
    ids=lambda more: more[0] + more[1],
)
def test_any_training_has_a_page(capsys, files, more):
    for valid in ([], ["--valid", files / "dev.tsv"]):
        page, figures = train(capsys, files, *more, *valid)
        assert page.rows("Sizes")["weights that are not zero"] == [figures["n_nonzero"]]
        assert page.rows("The certificate")["relative gap"] == [figures["gap"]]
        if "cv" in figures:
            folds = page.rows("Cross-validation")
            assert set(folds) == {row["C"] for row in figures["cv"]}


def test_a_kernel_says_what_is_missing(capsys, files):
    write(files / "train.tsv", text(noisy(1, 12)))
    write(files / "dev.tsv", text(noisy(2, 12)))
    page, figures = train(capsys, files, "--kernel", "rbf", "--valid", files / "dev.tsv")
    assert "features have no weights of their own" in page.text
    assert page.rows("Sizes")["support tokens"] == [figures["n_support"]]
    assert not any(name.startswith("Strongest features") for name in page.tables)
    assert any(name.startswith("Strongest transitions") for name in page.tables)
    assert page.rows("Calibration")["temperature"] == [figures["temperature"]]


def test_the_models_of_a_grid_are_listed(capsys, files):
    page, figures = train(
        capsys,
        *(files, "--valid", files / "dev.tsv"),
        *("--grid", "C=0.01,0.1", "--grid", "min-count=1,3"),
    )
    rows = page.tables["Models by score on the validation data; the chosen one stands out"]
    assert len(rows) == len(figures["grid"]) == 4
    for row, entry in zip(rows, figures["grid"], strict=True):
        assert row == [entry["C"], str(entry["min_count"]), entry["score"], entry["gap"]]
    marked = (files / "out.html").read_text(encoding="utf-8").split('<tr class="marked">')[1:]
    assert len(marked) == 1
    assert f'value="{figures["C"]!r}"' in marked[0].split("</tr>")[0]
    assert f"<bdi>{figures['min_count']}</bdi>" in marked[0].split("</tr>")[0]
    assert page.rows("Parameters")["C"] == [figures["C"]]


def test_streamed_data_have_no_scores_without_a_file_for_them(capsys, files):
    page, _ = train(capsys, files, "--stream")
    assert "There are no scores" in page.text
    assert page.rows("Sequences and tokens")["training data"][1] == 60
    page, figures = train(capsys, files, "--stream", "--valid", files / "dev.tsv")
    assert page.rows("Overall")["tokens right"][0] == figures["valid"]["token_accuracy"]


def test_items_have_their_words(capsys, tmp_path):
    write(tmp_path / "train.tsv", crfsuite(noisy(1)))
    write(tmp_path / "dev.tsv", crfsuite(noisy(2)))
    page, _ = train(capsys, tmp_path, "--valid", tmp_path / "dev.tsv", "--format", "crfsuite")
    found = {row[0] for row in page.tables["Words that are wrong most often"]}
    assert found <= {row[0] for rows in sentences(200) for row in rows}


def test_eval_writes_a_page_too(capsys, files):
    figures = summary(capsys, "train", files / "train.tsv", "-m", files / "m.mm", "-q")
    out = files / "eval.html"
    given = ["eval", "-m", files / "m.mm", files / "dev.tsv"]
    scores = summary(capsys, *given, "--report", out)
    page = page_of(out)
    assert page.rows("Overall")["tokens right"] == [scores["token_accuracy"], scores["n_tokens"]]
    labels = page.rows("Tokens by label")
    assert page.rows("The certificate")["primal objective of the model"] == [figures["primal"]]
    assert "does not keep the course of the training" in page.text
    assert "chosen on the same data" in page.text  # the file has no temperature
    assert labels
    assert summary(capsys, *given).keys() <= scores.keys()
    run(capsys, "calibrate", "-m", files / "m.mm", files / "train.tsv", "--json")
    again = summary(capsys, *given, "--report", out)
    assert "is part of the model" in page_of(out).text
    assert again["temperature"] == maxmargin.load(files / "m.mm").temperature_
    assert again["calibration_error_before"] == scores["calibration_error_before"]


def test_other_tasks_have_certificate_and_scores(capsys, tmp_path):
    news = "sport\tthe team won a game\npolitics\ta vote of the house\n" * 8
    write(tmp_path / "train.tsv", news)
    write(tmp_path / "dev.tsv", news)
    more = ["--task", "classes", "--valid", tmp_path / "dev.tsv", "--grid", "C=0.1,1"]
    page, figures = train(capsys, tmp_path, *more)
    scores = page.rows("Scores on the validation data")
    assert scores["accuracy"] == [figures["valid"]["accuracy"]]
    assert page.rows("The certificate")["relative gap"] == [figures["gap"]]
    tried = page.tables["Models by score on the validation data; the chosen one stands out"]
    assert len(tried) == 2
    given = ["eval", "-m", tmp_path / "m.mm", tmp_path / "dev.tsv"]
    message = refused(capsys, *given, "--report", tmp_path / "e.html")
    assert "is of the task classes" in message
    assert not (tmp_path / "e.html").exists()


def test_constraints_have_a_page_without_probabilities(capsys, files):
    write(files / "rules.toml", '[[constraint]]\nkind = "at_least"\nlabels = "O"\nk = 1\n')
    given = ["--constraints", files / "rules.toml", "--decode", "hard"]
    page, figures = train(capsys, files, *given, "--valid", files / "dev.tsv")
    assert page.rows("Overall")["tokens right"][0] == figures["valid_token_accuracy"]
    assert "A model that decodes with constraints has no probabilities" in page.text


def test_bad_names_are_refused_before_training(capsys, files):
    given = ["train", files / "train.tsv", "-m", files / "m.mm", "--report"]
    assert "does not end with one of .html, .htm" in refused(capsys, *given, files / "out.txt")
    assert "there is no directory" in refused(capsys, *given, files / "no" / "out.html")
    same = refused(capsys, *given[:3], files / "m.html", "--report", files / "m.html")
    assert "expected two files" in same
    alone = ["train", files / "train.tsv", "--cv", "2", "--report", files / "o.html"]
    assert "-m MODEL is missing" in refused(capsys, *alone)
    write(files / "t.html", text(noisy(1)))
    reads = ["train", files / "t.html", "-m", files / "m.mm", "--report", files / "t.html"]
    assert "is read from" in refused(capsys, *reads)
    assert "-m MODEL is missing" in refused(
        capsys, "eval", files / "train.tsv", "--report", files / "o.html"
    )
    assert sorted(path.name for path in files.iterdir()) == ["dev.tsv", "t.html", "train.tsv"]


def test_an_old_page_is_there_until_the_new_one_is_whole(capsys, files, monkeypatch):
    out = write(files / "out.html", "old")
    import maxmargin.report.html.page as module

    def fail(_):
        raise OSError("no space")

    monkeypatch.setattr(module, "page", fail)
    given = ["train", files / "train.tsv", "-m", files / "m.mm", "-q", "--report", out]
    assert "no space" in refused(capsys, *given)
    assert out.read_text() == "old"
    assert maxmargin.load(files / "m.mm").certificate_.gap <= 0.01  # the model is there
    assert not list(files.glob(".maxmargin*"))


def test_many_labels_make_no_large_page(capsys, tmp_path):
    draw = np.random.default_rng(0)
    for name in ("train", "dev"):
        rows = [[(f"w{draw.integers(400)}", "x", f"L{draw.integers(300)}") for _ in range(9)]
                for _ in range(120)]
        write(tmp_path / f"{name}.tsv", text(rows))
    given = ["--valid", tmp_path / "dev.tsv", "--max-passes", "3"]
    page, figures = train(capsys, tmp_path, *given)
    assert figures["report_bytes"] < 300_000
    assert len(page.rows("Labels of the tokens")) <= 30
    matrix = next(rows for name, rows in page.tables.items() if name.startswith("Tokens by true"))
    assert len(matrix) <= 15
    total = sum(cell for row in matrix for cell in row[1:] if not isinstance(cell, str))
    assert total == figures["valid"]["n_tokens"]
    assert math.isclose(page.rows("Overall")["tokens right"][0], figures["valid"]["token_accuracy"])
