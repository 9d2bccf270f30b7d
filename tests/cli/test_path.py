"""`maxmargin path`, and the sparse models of `maxmargin train`: end to end, and bad input."""

from __future__ import annotations

import json
import re
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

from cli_files import COMMAND, crfsuite, refused, run, sentences, summary, text, write
from maxmargin.cli.main import main
from maxmargin.cli.progress import Progress
from maxmargin.io.tagger_file import dense_weights, load_tagger

TRAIN, VALID = sentences(40), sentences(15, seed=2)


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "train.tsv", text(TRAIN))


@pytest.fixture
def valid(tmp_path):
    return write(tmp_path / "valid.tsv", text(VALID))


@pytest.fixture
def model(tmp_path):
    return tmp_path / "m.mm"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def non_zeros(model):
    return int(np.count_nonzero(dense_weights(load_tagger(model))))


# --- maxmargin path -------------------------------------------------------------------------------


def test_table_model_and_plot(capsys, data, valid, model, tmp_path):
    plot = tmp_path / "path.svg"
    arguments = ["path", data, "--valid", valid, "-m", model, "--plot", plot]
    arguments += ["--ratios", "0.9,0.5,0", "-C", "0.5", "--max-loss", "0.05"]
    found = summary(capsys, *arguments)
    rows = found["path"]
    assert [(row["l1_ratio"], row["C"]) for row in rows] == [(0.9, 0.5), (0.5, 0.5), (0.0, 0.5)]
    assert rows[0]["n_nonzero"] < rows[1]["n_nonzero"] < rows[2]["n_nonzero"]
    assert all(0 <= row["gap"] <= 0.02 for row in rows)
    assert all(row["score"] == row["f1"] and row["seconds"] > 0 for row in rows)
    good = [row for row in rows if row["score"] >= 0.95 * max(row["score"] for row in rows)]
    chosen = rows[found["chosen"]]
    assert chosen == min(good, key=lambda row: row["n_nonzero"])
    assert (found["l1_ratio"], found["n_nonzero"]) == (chosen["l1_ratio"], chosen["n_nonzero"])
    assert non_zeros(model) == chosen["n_nonzero"]
    assert found["model_bytes"] == model.stat().st_size
    meta = load_tagger(model).meta
    assert meta["certificate"]["gap"] == chosen["gap"]
    assert meta["training"]["l1_ratio"] == chosen["l1_ratio"]
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == chosen["f1"]
    assert ElementTree.fromstring(plot.read_bytes()).tag.endswith("svg")
    assert names(tmp_path) == ["m.mm", "path.svg", "train.tsv", "valid.tsv"]

    lines = run(capsys, *arguments).splitlines()
    assert " ".join(lines[0].split()) == "l1_ratio C non-zeros gap % accuracy F1 seconds"
    for line, row in zip(lines[1:4], rows, strict=True):
        cells = line.split()
        assert cells[:3] == [f"{row['l1_ratio']:g}", "0.5", str(row["n_nonzero"])]
        assert cells[5] == f"{100 * row['f1']:.2f}"
    assert lines[4].startswith(f"chosen: l1_ratio {chosen['l1_ratio']:g}, C = 0.5: ")
    assert lines[5:] == [f"{model}: written", f"{plot}: written"]
    assert run(capsys, *arguments, "-q") == ""


def test_nothing_is_written_that_was_not_asked_for(capsys, data, valid, tmp_path):
    found = summary(capsys, "path", data, "--valid", valid)
    assert [row["l1_ratio"] for row in found["path"]] == [
        *(0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0)
    ]
    assert {row["C"] for row in found["path"]} == {0.1}
    assert names(tmp_path) == ["train.tsv", "valid.tsv"]


def test_several_weights_of_the_loss(capsys, data, valid):
    found = summary(capsys, "path", data, "--valid", valid, "--ratios", "0.5,0.8", "--Cs", "1,0.1")
    points = [(row["l1_ratio"], row["C"]) for row in found["path"]]
    assert points == [(0.5, 0.1), (0.8, 0.1), (0.5, 1.0), (0.8, 1.0)]


def test_by_accuracy_and_of_items(capsys, tmp_path, model):
    train = write(tmp_path / "t", text(TRAIN, (0, 1)))
    valid = write(tmp_path / "v", text(VALID, (0, 1)))
    [row] = summary(capsys, "path", train, "--valid", valid, "--ratios", "0.5")["path"]
    assert row["f1"] is None
    assert row["score"] == row["token_accuracy"] > 0.5
    table = run(capsys, "path", train, "--valid", valid, "--ratios", "0.5").splitlines()
    assert table[1].split()[5] == "-"
    train, valid = write(train, crfsuite(TRAIN)), write(valid, crfsuite(VALID))
    options = ["--format", "crfsuite", "--ratios", "0.3", "-m", model, "-C", "1"]
    found = summary(capsys, "path", train, "--valid", valid, *options)
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == found["f1"] > 0.5


def test_ctrl_c_chooses_from_what_is_there(capsys, monkeypatch, data, valid, model):
    seen = []

    def interrupt(self, record):
        seen.append(record.n_pass)
        if seen.count(1) == 2 and record.n_pass == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", interrupt)
    arguments = ["path", data, "--valid", valid, "-m", model, "--ratios", "0.5,0.3,0.1", "--json"]
    assert main([*map(str, arguments)]) == 130
    found = json.loads(capsys.readouterr().out)
    assert [row["l1_ratio"] for row in found["path"]] == [0.5, 0.3]
    assert found["path"][1]["stop_reason"] == "interrupted"
    load_tagger(model)


def test_as_a_process(data, valid):
    command = [*COMMAND, "path", data, "--valid", valid, "--ratios", "0.5", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["path"]) == 1


BAD_OPTIONS = {
    "ratios": (["--ratios", "0.5,x"], "found '0.5,x'; expected l1_ratios from 0 to 0.9999 between"),
    "ratio 1": (["--ratios", "1"], "found '1'; expected l1_ratios from 0 to 0.9999"),
    "negative": (["--ratios=-0.1"], "expected l1_ratios"),
    "none": (["--ratios", ""], "expected l1_ratios"),
    "Cs": (["--Cs", "1,0"], "found '1,0'; expected values of C above 0 between commas"),
    "both": (["--Cs", "1", "-C", "2"], "not allowed with argument"),
    "loss": (["--max-loss", "2"], "'2' is not a number of at least 0 and at most 1"),
    "solver": (["--solver", "none"], "solver must be one of"),
}


@pytest.mark.parametrize("kind", BAD_OPTIONS)
def test_bad_options(capsys, data, valid, kind):
    options, told = BAD_OPTIONS[kind]
    assert told in refused(capsys, "path", data, "--valid", valid, *options)


def test_bad_files(capsys, data, valid, model, tmp_path):
    assert "required: --valid" in refused(capsys, "path", data)
    message = refused(capsys, "path", data, "--valid", tmp_path / "none")
    assert f"{tmp_path / 'none'}: no such file" in message
    arguments = ["path", data, "--valid", valid]
    for option, what in (("-m", "model"), ("--plot", "plot")):
        path = tmp_path / "none" / "x"
        assert f"{path}: there is no directory" in refused(capsys, *arguments, option, path)
        message = refused(capsys, *arguments, option, tmp_path)
        assert f"{tmp_path}: is a directory; expected a file for the {what}" in message
        message = refused(capsys, *arguments, option, valid)
        assert f"{valid}: is read from; expected another file for the {what}" in message
    message = refused(capsys, *arguments, "-m", model, "--plot", model)
    assert f"{model}: is to be the model and the plot; expected two files" in message
    assert names(tmp_path) == ["train.tsv", "valid.tsv"]


def test_a_plot_that_cannot_be_written(capsys, monkeypatch, data, valid, model):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maxmargin.io.text.open_for_writing", full)
    plot = model.with_name("p.svg")
    arguments = ["--valid", valid, "-m", model, "--plot", plot, "--ratios", "0.5", "-q"]
    message = refused(capsys, "path", data, *arguments)
    assert f"{plot}: cannot write the plot (No space left on device)" in message
    load_tagger(model)  # which came first


# --- maxmargin train ------------------------------------------------------------------------------


def test_nonzeros(capsys, data, valid, model):
    arguments = ["train", data, "-m", model, "--nonzeros", "150", "-C", "0.5", "--valid", valid]
    assert main([*map(str, arguments), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert 100 <= found["n_nonzero"] <= 150
    assert found["n_nonzero"] == non_zeros(model)
    assert {"l1_ratio": found["l1_ratio"], "n_nonzero": found["n_nonzero"]} in found["search"]
    assert len(found["search"]) <= 12
    assert err.count(" non-zero weights\n") == len(found["search"])
    assert re.search(r"^l1_ratio=0.5: \d+ non-zero weights$", err, re.MULTILINE)
    assert load_tagger(model).meta["training"]["l1_ratio"] == found["l1_ratio"] > 0
    assert found["debiased"] is False
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == found["valid"]["f1"]
    assert main([*map(str, arguments)]) == 0
    told = f"{found['n_nonzero']} of {found['n_weights']} weights are not zero (l1_ratio = "
    assert told in capsys.readouterr().out
    assert run(capsys, *arguments, "-q") == ""


@pytest.mark.parametrize("sparse", [["--nonzeros", "120"], ["--l1-ratio", "0.6"]])
def test_debias(capsys, data, valid, model, sparse):
    arguments = ["train", data, "-m", model, "-C", "0.5", "--valid", valid, "-q", *sparse]
    before = summary(capsys, *arguments)
    features = load_tagger(model).chain.encoder.n_sparse
    after = summary(capsys, *arguments, "--debias")
    assert (before["debiased"], after["debiased"]) == (False, True)
    assert after["selected"]["n_nonzero"] == before["n_nonzero"] > 0
    assert after["l1_ratio"] == before["l1_ratio"]
    assert after["gap"] <= 0.01
    assert after["n_nonzero"] == non_zeros(model)
    assert load_tagger(model).chain.encoder.n_sparse <= features
    assert load_tagger(model).meta["training"]["debiased"] is True
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == after["valid"]["f1"]
    assert main([*map(str, arguments[:-3]), *sparse, "--debias"]) == 0
    assert "before the features were fitted again)" in capsys.readouterr().out


def test_ctrl_c_in_a_search(capsys, monkeypatch, data, model):
    seen = []

    def interrupt(self, record):
        seen.append(record.n_pass)
        if seen.count(1) == 2 and record.n_pass == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", interrupt)
    arguments = ["train", data, "-m", model, "--nonzeros", "200", "--debias", "--json"]
    assert main([*map(str, arguments)]) == 130
    found = json.loads(capsys.readouterr().out)
    # The search was interrupted; the model that it had by then is at its own optimum.
    assert found["stop_reason"] == f"interrupted; gap {found['gap']:.3g} <= 0.01"
    assert found["converged"]
    assert found["debiased"] is False
    assert found["n_nonzero"] <= 200
    load_tagger(model)


BAD_SPARSE = {
    "both": (["--nonzeros", "9", "--l1-ratio", "0.5"], "not allowed with argument"),
    "none": (["--nonzeros", "0"], "'0' is not an integer of at least 1"),
    "grid": (["--nonzeros", "9", "--grid", "C=1,2", "--valid", "v"], "does not go with --grid"),
    "folds": (["--nonzeros", "9", "--cv", "2"], "does not go with --cv"),
    "state": (["--nonzeros", "9", "--checkpoint", "x"], "does not go with --checkpoint"),
    "dense": (["--debias"], "--debias needs --l1-ratio R or --nonzeros N"),
    "too few": (["--nonzeros", "1", "-C", "10", "-q"], "no model with at most 1 non-zero"),
}


@pytest.mark.parametrize("kind", BAD_SPARSE)
def test_bad_sparse_models(capsys, data, model, kind):
    options, told = BAD_SPARSE[kind]
    assert told in refused(capsys, "train", data, "-m", model, *options)
    assert not model.exists()
