"""`maxmargin train`: what it writes and tells, every option, Ctrl-C, bad input."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from cli_files import (
    COMMAND,
    conllu,
    crfsuite,
    quiet,
    refused,
    run,
    sentences,
    summary,
    svmhmm,
    text,
    write,
)
from kit import Idle
from maxmargin.cli.main import main
from maxmargin.cli.progress import Progress
from maxmargin.io.tagger_file import load_tagger
from maxmargin.selection import Validation
from maxmargin.solvers import SOLVERS

TRAIN, VALID = sentences(), sentences(9, seed=2)
KEYS = {
    *("n_sequences", "n_tokens", "n_labels", "n_features", "n_weights", "n_nonzero", "solver"),
    *("C", "passes", "oracle_calls", "seconds_read", "seconds_features", "seconds_train"),
    *("primal", "dual", "gap", "peak_rss_mb", "model_bytes"),
}


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


# --- what comes out -------------------------------------------------------------------------------


def test_summary(capsys, data, model):
    found = summary(capsys, "train", data, "-m", model)
    assert found.keys() >= KEYS
    assert found["n_sequences"] == len(TRAIN)
    assert found["n_tokens"] == sum(map(len, TRAIN))
    assert found["n_labels"] == len({row[2] for rows in TRAIN for row in rows})
    assert found["n_weights"] >= found["n_features"] * found["n_labels"]
    assert 0 < found["n_nonzero"] <= found["n_weights"]
    assert (found["solver"], found["C"], found["converged"]) == ("sdm", 0.1, True)
    assert found["oracle_calls"] >= len(TRAIN)
    assert 0 <= found["gap"] <= 0.01
    assert found["dual"] <= found["primal"]
    assert found["gap"] == pytest.approx((found["primal"] - found["dual"]) / found["primal"])
    assert all(found[f"seconds_{name}"] >= 0 for name in ("read", "features", "train"))
    assert found["peak_rss_mb"] > 1
    assert found["model_bytes"] == model.stat().st_size
    loaded = load_tagger(model)
    assert loaded.meta["certificate"]["gap"] == found["gap"]
    assert loaded.meta["params"]["C"] == 0.1
    assert names(model.parent) == ["m.mm", "train.tsv"]


def test_text_for_people(capsys, data, model, valid):
    out = run(capsys, "train", data, "-m", model, "--valid", valid)
    tokens = sum(map(len, TRAIN))
    assert out.startswith(f"{data} (conll): {len(TRAIN)} sequences, {tokens} tokens, ")
    assert " % of the optimum (C = 0.1, " in out
    assert f"\n{valid}: accuracy " in out
    assert f"\n{model}: " in out


def test_quiet(capsys, data, model, valid):
    assert run(capsys, "train", data, "-m", model, "-q") == ""
    assert run(capsys, "train", data, "-m", model, "-q", "--valid", valid) == ""
    grid = ["--grid", "C=0.1,1", "--cv", "2"]
    assert run(capsys, "train", data, "-m", model, "-q", *grid) == ""
    assert run(capsys, "train", data, "-q", *grid) == ""


def test_an_old_model_is_replaced(capsys, data, model):
    model.write_text("something else")
    run(capsys, "train", data, "-m", model, "-q")
    load_tagger(model)


def test_as_a_process(data, model):
    command = [*COMMAND, "train", data, "-m", model, "--json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stderr.startswith("pass 1 gap ")
    assert quiet(done.stderr) == ""
    assert json.loads(done.stdout.splitlines()[-1]).keys() >= KEYS


def on_a_terminal(command):
    """Run a command whose standard error is a terminal; return its two outputs."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody is left
            while piece := os.read(ours, 4096):
                shown += piece
        out = process.stdout.read()
        assert process.wait(30) == 0
    os.close(ours)
    return out.decode(), shown.decode()


def test_progress_on_a_terminal(data, model, valid):
    command = [*COMMAND, "train", data, "-m", model]
    out, shown = on_a_terminal([*command, "--valid", valid, "--json"])
    passes = json.loads(out)["passes"]
    lines = [line for line in shown.split("\r") if line.strip()]
    assert len(lines) == passes
    assert re.match(r"pass 1 gap .* s", lines[0])
    assert re.match(rf"pass {passes} gap [\d.e-]+ %  valid [\d.]+ % F1 [\d.]+  [\d.]+ s", lines[-1])
    assert shown.endswith(" \r")  # the line is gone in the end
    assert on_a_terminal([*command, "-q"]) == ("", "")
    _, shown = on_a_terminal([*command, "--grid", "C=0.1,1", "--valid", valid, "--json"])
    assert "\rC=1: pass 1 gap" in shown


# --- what it learns from --------------------------------------------------------------------------


def test_standard_input_and_gzip(capsys, data, model, monkeypatch):
    run(capsys, "train", data, "-m", model, "-q")
    expected = model.read_bytes()
    packed = write(data.with_name("train.gz"), gzip.compress(data.read_bytes()))
    run(capsys, "train", packed, "-m", model, "-q")
    assert model.read_bytes() == expected
    for content in (data.read_bytes(), packed.read_bytes()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        run(capsys, "train", "-", "-m", model, "-q")
        assert model.read_bytes() == expected


@pytest.mark.parametrize("kind", ["crfsuite", "svmhmm", "conllu"])
def test_formats(capsys, tmp_path, model, kind):
    made = {"crfsuite": crfsuite, "svmhmm": svmhmm, "conllu": conllu}[kind]
    data, valid = write(tmp_path / "t", made(TRAIN)), write(tmp_path / "v", made(VALID))
    options = ["--columns", "form,upos,xpos"] if kind == "conllu" else []
    found = summary(
        capsys, "train", data, "-m", model, "--format", kind, *options, "--valid", valid, "-C", "1"
    )
    assert (found["n_sequences"], found["n_tokens"]) == (len(TRAIN), sum(map(len, TRAIN)))
    assert found["n_labels"] == 6
    assert found["valid"]["f1"] > 0.8
    scores = summary(capsys, "eval", "-m", model, valid)  # the model knows its format
    assert scores["f1"] == found["valid"]["f1"]


def test_label_column(capsys, tmp_path, model):
    for column, order in ((1, (0, 2, 1)), (-2, (0, 2, 1)), (2, (0, 1, 2)), (0, (2, 0, 1))):
        data = write(tmp_path / "t", text(TRAIN, order))
        template = write(tmp_path / "template", f"U:%x[0,{1 if column == 0 else 0}]\nB\n")
        arguments = ["-m", model, "--label-column", column, "--template", template]
        found = summary(capsys, "train", data, *arguments)
        assert found["n_labels"] == 6
        assert load_tagger(model).chain.encoder.label_column == column % 3
        assert summary(capsys, "eval", "-m", model, data)["f1"] > 0.5


def test_separator_and_comments(capsys, tmp_path, model):
    data = write(tmp_path / "t", "# about\n" + text(TRAIN, separator="  "))
    found = summary(capsys, "train", data, "-m", model, "--comments", "#", "--separator", "space")
    assert found["n_tokens"] == sum(map(len, TRAIN))


# --- features -------------------------------------------------------------------------------------


def test_templates(capsys, tmp_path, data, model, monkeypatch):
    counted = {}
    file = write(tmp_path / "my_template", "U:w=%x[0,0]\nU:p=%x[0,1]\nB\n")
    code = write(
        tmp_path / "my_functions.py",
        "def f(rows):\n    return [['w=' + row[0], 'p=' + row[1]] for row in rows]\n",
    )
    monkeypatch.syspath_prepend(tmp_path)
    for template in ("chunking", "words", file, f"{code}:f", "my_functions:f"):
        found = summary(capsys, "train", data, "-m", model, "--template", template)
        assert found["gap"] <= 0.01
        counted[str(template)] = found["n_features"]
    n = sum(len({row[k] for rows in TRAIN for row in rows}) for k in (0, 1))
    assert counted[str(file)] == counted[f"{code}:f"] == counted["my_functions:f"] == n
    assert counted["chunking"] != counted["words"]
    default = summary(capsys, "train", data, "-m", model)
    assert default["n_features"] == counted["words"]


def test_min_count(capsys, data, model):
    template = write(model.with_name("t"), "U:%x[0,0]\nB\n")
    counts = {}
    for rows in TRAIN:
        for row in rows:
            counts[row[0]] = counts.get(row[0], 0) + 1
    for least in (1, 3, 8):
        arguments = ["-m", model, "--template", template, "--min-count", least]
        found = summary(capsys, "train", data, *arguments)
        assert found["n_features"] == sum(n >= least for n in counts.values())


def test_hash_bits(capsys, data, model):
    for bits in (1, 8):
        found = summary(capsys, "train", data, "-m", model, "--hash-bits", bits)
        assert found["n_features"] == 2**bits
        assert run(capsys, "tag", "-m", model, data).count("\n") == text(TRAIN).count("\n")


def test_allowed(capsys, data, model):
    arguments = ["train", data, "-m", model, "--max-passes", "1", "-C", "0.001", "-q"]
    broken = {}
    for allowed in ([], ["--allowed", "iob2"]):
        run(capsys, *arguments, *allowed)
        before, n = "O", 0
        for line in run(capsys, "tag", "-m", model, data, "--nbest", "30").split("\n"):
            label = line.rpartition("\t")[2] if "\t" in line else "O"
            n += label.startswith("I-") and before[1:] != label[1:]
            before = label
        broken[bool(allowed)] = n
    assert broken[False] > 0
    assert broken[True] == 0


# --- when it ends ---------------------------------------------------------------------------------


def test_an_early_end(capsys, data, model):
    found = summary(capsys, "train", data, "-m", model, "--max-passes", "1")
    assert (found["converged"], found["passes"]) == (False, 1)
    assert found["stop_reason"] == "max_passes = 1"
    assert found["gap"] > 0.01
    load_tagger(model)
    # BCFW does not come to the end of a gap of 0, however fast the machine is.
    endless = ["--solver", "bcfw", "--gap", 0, "--max-passes", 10**9]
    found = summary(capsys, "train", data, "-m", model, *endless, "--time-limit", "0.2")
    assert found["converged"] is False
    assert "time_limit" in found["stop_reason"]
    load_tagger(model)


def test_tolerances_and_types(capsys, data, model):
    gaps = [0.5, 0.1, 1e-4]
    found = [summary(capsys, "train", data, "-m", model, "--gap", gap) for gap in gaps]
    assert all(row["gap"] <= gap for row, gap in zip(found, gaps, strict=True))
    assert found[0]["passes"] < found[2]["passes"]
    double = summary(capsys, "train", data, "-m", model, "--dtype", "float64", "--gap", "1e-4")
    assert load_tagger(model).weights.dtype == "float64"
    assert double["primal"] == pytest.approx(found[2]["primal"], rel=2e-4)


def test_the_same_file_again(capsys, data, model):
    files = {}
    for options in ([], ["--threads", "2"], ["--seed", "0"], ["--seed", "7"]):
        run(capsys, "train", data, "-m", model, "-q", "--template", "chunking", *options)
        files[" ".join(options)] = model.read_bytes()
    assert files[""] == files["--threads 2"] == files["--seed 0"]
    assert files["--seed 7"] != files[""]


def test_a_full_disk_for_the_checkpoint(capsys, data, model, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("maxmargin.solvers.checkpoint._write_array", full)
    state = tmp_path / "state"
    assert main(["train", str(data), "-m", str(model), "--checkpoint", str(state)]) == 0
    (line,) = quiet(capsys.readouterr().err).splitlines()
    assert line.startswith(f"maxmargin train: warning: {state}: the checkpoint could not be")
    assert "No space left on device" in line
    assert names(tmp_path) == ["m.mm", "train.tsv"]


def test_resuming_from_something_else(capsys, data, model, tmp_path):
    state = write(tmp_path / "state", "hello\n")
    message = refused(capsys, "train", data, "-m", model, "--checkpoint", state, "--resume")
    assert f"{state} is not a maxmargin checkpoint: it begins with b'hello\\n'" in message
    assert "pickle" not in message


def test_checkpoint_and_resume(capsys, data, model, tmp_path):
    whole = summary(capsys, "train", data, "-m", model, "--gap", "1e-3")
    expected = model.read_bytes()
    model.unlink()
    state = tmp_path / "state"
    arguments = ["train", data, "-m", model, "--gap", "1e-3", "--checkpoint", state, "--resume"]
    first = summary(capsys, *arguments, "--max-passes", "5")  # nothing to resume from yet
    assert (first["passes"], first["converged"]) == (5, False)
    assert state.exists()
    second = summary(capsys, *arguments)
    assert second["passes"] == whole["passes"]
    assert model.read_bytes() == expected
    done = summary(capsys, *arguments)  # finished already
    assert done["gap"] <= 1e-3
    assert names(tmp_path) == ["m.mm", "state", "train.tsv"]
    message = refused(capsys, *arguments, "-C", "5")
    assert str(state) in message
    state.write_text("nothing of the kind")
    assert str(state) in refused(capsys, *arguments)


# --- choosing a model -----------------------------------------------------------------------------


def test_validation_keeps_the_best_pass(capsys, data, model, valid):
    # Not the smallest C: after one pass, labellings tie, and a model file may break ties otherwise.
    write(valid, text(sentences(9, seed=9)))
    kept = set()
    for C in ("0.1", "0.3", "1", "3"):
        found = summary(capsys, "train", data, "-m", model, "--valid", valid, "-C", C)
        told = summary(capsys, "eval", "-m", model, valid)
        assert all(told[name] == value for name, value in found["valid"].items())
        passes = found["valid_passes"]
        assert [row["pass"] for row in passes] == sorted({row["pass"] for row in passes})
        assert passes[-1]["pass"] <= found["passes"]
        best = max(row["f1"] for row in passes)
        assert found["valid"]["f1"] >= best
        if found["best_pass"] is not None:
            first = next(row for row in passes if row["f1"] == best)
            assert found["best_pass"] == first["pass"]
            assert found["valid"]["f1"] == best
            assert found["valid"]["token_accuracy"] == first["token_accuracy"]
        # The certificate is that of the weights that are kept.
        certificate = load_tagger(model).meta["certificate"]
        assert (certificate["primal"], certificate["gap"]) == (found["primal"], found["gap"])
        kept.add(found["best_pass"] is None)
    assert kept == {True, False}  # both happened


def test_the_best_pass_and_the_end_are_told_apart(capsys, data, model, valid, monkeypatch):
    """The certificate is of the pass that is kept, the reason of the last one: both are said."""
    write(valid, text(sentences(9, seed=9)))
    wanted = ["train", data, "-m", model, "--valid", valid, "-C"]
    found = {C: summary(capsys, *wanted, C) for C in ("0.1", "0.3", "1", "3")}
    C, best = next((C, f) for C, f in found.items() if f["best_pass"] is not None)
    out = run(capsys, *wanted, C)
    line = next(line for line in out.splitlines() if line.startswith("primal "))
    end = re.search(r"at the end of training: gap ([\d.e-]+) <= 0.01\)$", line)
    assert f"the model of pass {best['best_pass']} of {best['passes']}, the best on" in line
    assert float(end[1]) <= 0.01
    within = re.search(r"within ([\d.]+) % of the optimum", line)
    assert float(within[1]) == pytest.approx(100 * best["gap"], rel=1e-2)
    assert best["converged"] == (best["gap"] <= 0.01)
    training = load_tagger(model).meta["training"]
    assert training["stop_reason"] == best["stop_reason"]
    assert training["converged"] == best["converged"]


@pytest.mark.parametrize("options", [[], ["--slack", "quadratic"], ["--rescale", "none"]])
def test_the_figures_of_the_last_line_agree(capsys, data, model, options):
    out = run(capsys, "train", data, "-m", model, *options)
    share, gap = re.search(r"within ([\d.e-]+) % .*; gap ([\d.e-]+) <= 0.01\)", out).groups()
    assert float(share) / 100 == pytest.approx(float(gap), rel=1e-2)


@pytest.mark.parametrize("command", [
    ["train"],
    ["train", "--nonzeros", "100"],
    ["path", "--valid", "valid.tsv"],
])  # fmt: skip
def test_nothing_learned_is_an_error_and_nothing_is_written(
    capsys, data, valid, monkeypatch, command
):
    monkeypatch.chdir(data.parent)
    monkeypatch.setitem(SOLVERS, "sdm", Idle)
    assert main([*command, str(data), "-m", "m.mm", "--max-passes", "3", "-q"]) == 2
    err = capsys.readouterr().err
    assert names(data.parent) == [data.name, valid.name]
    assert err.count("\n") == 1
    assert "nothing was learned: all weights are zero where training stopped" in err
    assert "max_passes = 3" in err


def test_zero_is_written_where_it_is_the_optimum(capsys, data, model):
    found = summary(capsys, "train", data, "-m", model, "--l1-ratio", "0.999", "-C", "1e-4")
    assert found["n_nonzero"] == 0
    assert found["converged"]
    assert found["gap"] <= 0.01
    assert load_tagger(model).meta["certificate"]["gap"] == found["gap"]


def test_validation_by_accuracy(capsys, tmp_path, model):
    data = write(tmp_path / "t", text(TRAIN, (0, 1)))
    valid = write(tmp_path / "v", text(VALID, (0, 1)))
    found = summary(capsys, "train", data, "-m", model, "--valid", valid)
    assert found["valid"]["f1"] is None
    assert found["valid"]["token_accuracy"] >= max(
        row["token_accuracy"] for row in found["valid_passes"]
    )


def test_validation_with_labels_that_are_new(capsys, data, model, tmp_path):
    odd = [[(w, p, "B-NEW" if c == "O" else c) for w, p, c in rows] for rows in VALID]
    valid = write(tmp_path / "odd", text(odd))
    found = summary(capsys, "train", data, "-m", model, "--valid", valid)
    assert found["n_labels"] == 6
    assert found["valid"]["per_type"]["NEW"]["recall"] == 0


def with_notes(capsys, *arguments):
    """Run a command with --json that tells of its steps; return the summary and the steps."""
    assert main([*map(str, arguments), "--json"]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), quiet(err).splitlines()


def test_grid_with_validation(capsys, data, model, valid):
    options = ["--grid", "C=1,0.01,0.1", "--valid", valid]
    found, notes = with_notes(capsys, "train", data, "-m", model, *options)
    assert [row["C"] for row in found["grid"]] == [0.01, 0.1, 1.0]
    assert [note.split(":")[0] for note in notes] == ["C=0.01", "C=0.1", "C=1"]
    best = max(found["grid"], key=lambda row: row["score"])
    assert found["C"] == best["C"] == load_tagger(model).meta["params"]["C"]
    assert found["valid"]["f1"] == best["score"]
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == best["score"]
    assert summary(capsys, "train", data, "-m", model, *options, "-q")["C"] == best["C"]


def test_grid_with_folds(capsys, data, model):
    options = ["--grid", "C=0.001,0.1,1", "--cv", "3"]
    found, notes = with_notes(capsys, "train", data, "-m", model, *options)
    assert [row["C"] for row in found["cv"]] == [0.001, 0.1, 1.0]
    assert len(notes) == 9
    best = max(found["cv"], key=lambda row: row["score"])
    assert found["C"] == best["C"]
    assert found["n_sequences"] == len(TRAIN)  # trained on all of them in the end
    again = model.read_bytes()
    run(capsys, "train", data, "-m", model, "-q", "-C", best["C"])
    assert model.read_bytes() == again


def test_folds_alone(capsys, data, tmp_path):
    found, notes = with_notes(capsys, "train", data, "--cv", "4", "-C", "1")
    assert len(notes) == 4
    [row] = found["cv"]
    assert row["C"] == found["C"] == 1.0
    accuracies = [float(re.search(r"accuracy ([\d.]+) %", note)[1]) for note in notes]
    assert 100 * row["token_accuracy"] == pytest.approx(sum(accuracies) / 4, abs=0.01)
    assert row["score"] == row["f1"]
    assert names(tmp_path) == ["train.tsv"]
    assert main(["train", str(data), "--cv", "4"]) == 0
    assert "\nC=0.1: accuracy " in capsys.readouterr().out


# --- Ctrl-C ---------------------------------------------------------------------------------------

# Tells by a file that passes are made; the rest is the command itself.
WATCHED = """
import pathlib, sys
from maxmargin.cli.main import main
from maxmargin.cli.progress import Progress
shown = Progress.__call__
def call(self, record):
    shown(self, record)
    if record.n_pass == 2:
        pathlib.Path(sys.argv[1]).touch()
Progress.__call__ = call
sys.exit(main(sys.argv[2:]))
"""


def interrupted(begun, *arguments):
    """Run a command, interrupt it when passes are made; return exit code and outputs."""
    begun.unlink(missing_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", WATCHED, begun, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        try:
            end = time.monotonic() + 300
            while not begun.exists():
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
    err = quiet(err)
    assert err.count("\n") <= 1
    assert "Traceback" not in err
    return process.returncode, out, err


def test_ctrl_c_keeps_the_model(capsys, tmp_path, model):
    data = write(tmp_path / "large.tsv", text(sentences(4000, seed=5), (0, 2)))
    begun = tmp_path / "begun"
    arguments = ["train", data, "-m", model, "--gap", "0", "--max-passes", "100000000", "-C", "100"]
    code, out, _ = interrupted(begun, *arguments, "--json")
    assert code == 130
    found = json.loads(out)
    assert found["stop_reason"] == "interrupted"
    assert found["converged"] is False
    assert found["dual"] <= found["primal"]
    assert summary(capsys, "eval", "-m", model, data)["token_accuracy"] > 0.5
    assert names(tmp_path) == ["begun", "large.tsv", "m.mm"]


@pytest.mark.parametrize("where", [(Progress, "__call__"), (Validation, "end_pass")])
def test_ctrl_c_between_passes(capsys, monkeypatch, data, model, where):
    def interrupt(self, record, *rest):
        if record.n_pass == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(*where, interrupt)
    assert main(["train", str(data), "-m", str(model), "--valid", str(data)]) == 130
    capsys.readouterr()
    load_tagger(model)


def test_ctrl_c_while_reading(capsys, monkeypatch, data, model):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.cli.training_data.read_data", interrupt)
    assert main(["train", str(data), "-m", str(model)]) == 130
    assert capsys.readouterr().err == "maxmargin train: error: interrupted\n"
    assert not model.exists()


# --- bad input ------------------------------------------------------------------------------------

RAGGED = "a\tb\tN\nc\tN\n"
BAD_FILES = {
    "ragged": (RAGGED, [], "line 2: found 2 columns"),
    "empty": ("", [], "holds no tokens"),
    "blank lines": ("\n\n  \n", [], "holds no tokens"),
    "one column": ("a\nb\n\nc\n", [], "found 1 column; expected at least 2"),
    "no label": ("a\tN\nb\t\n", [], "line 2, column 1: found nothing; expected a label"),
    "label column": (text(TRAIN), ["--label-column", "3"], "label column 3 is out of range"),
    "negative column": (text(TRAIN), ["--label-column=-4"], "label column -4 is out of range"),
    "as svmhmm": (text(TRAIN), ["--format", "svmhmm"], "line 1: "),
    "as conllu": (text(TRAIN), ["--format", "conllu"], "line 1: "),
    "svmhmm": (svmhmm(TRAIN), [], "looks like svmhmm"),
    "svmhmm as conll": (svmhmm(TRAIN), ["--format", "conll"], "line "),
    "conllu": (conllu(TRAIN), [], "looks like conllu"),
    "not UTF-8": (b"a\tN\n\xc3(\tN\n", [], "line 2"),
    "binary": (bytes(range(256)), [], "line "),
    "UTF-16": ("a\tN\n".encode("utf-16"), [], "looks like UTF-16"),
    "broken gzip": (gzip.compress(text(TRAIN).encode(), mtime=0)[:99], [], "cut short"),
    "no gzip": (b"\x1f\x8b" + b"nothing of that kind", [], "damaged"),
    "missing": (None, [], "no such file"),
    "crfsuite value": (
        "A\tx\nB\tw:1e30\n",
        ["--format", "crfsuite"],
        "line 2: found the value '1e30' of attribute 'w'; expected a number between -1e12 and 1e12",
    ),
    "svmhmm value": (
        "1 qid:1 3:1e30\n",
        ["--format", "svmhmm"],
        "line 1: found the value '1e30' of feature '3'; expected a number between -1e12 and 1e12",
    ),
    "crfsuite weight": (
        "A\tx\n\n@weight:1e30\nB\tw\n",
        ["--format", "crfsuite"],
        "line 3: found '@weight:1e30'; expected a number between -1e12 and 1e12",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files(capsys, tmp_path, kind):
    content, options, told = BAD_FILES[kind]
    path = tmp_path / "bad.tsv"
    if content is not None:
        write(path, content)
    message = refused(capsys, "train", path, "-m", tmp_path / "m.mm", *options)
    assert f"{path}: " in message
    assert told in message
    assert names(tmp_path) == ([] if content is None else ["bad.tsv"])


def test_weights_that_do_not_fit_are_refused_in_advance(monkeypatch, capsys, data, model):
    from maxmargin import memory

    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2000)
    message = refused(capsys, "train", data, "-m", model)
    assert "error: the weights (" in message
    assert "only 2.0 kB of memory are available" in message
    assert not model.exists()


def test_directories_and_names(capsys, data, tmp_path, model):
    assert f"{tmp_path}: is a directory" in refused(capsys, "train", tmp_path, "-m", model)
    named = write(tmp_path / "plain.gz", text(TRAIN))
    assert f"{named}: ends with .gz" in refused(capsys, "train", named, "-m", model)
    for option in ("-m", "--checkpoint"):
        rest = [] if option == "-m" else ["-m", model]
        path = tmp_path / "none" / "x"
        message = refused(capsys, "train", data, option, path, *rest)
        assert f"{path}: there is no directory" in message
        message = refused(capsys, "train", data, option, tmp_path, *rest)
        assert f"{tmp_path}: is a directory" in message
    assert names(tmp_path) == ["plain.gz", "train.tsv"]
    (tmp_path / "link").symlink_to(data)
    before = data.read_bytes()
    for path in (data, tmp_path / "link"):
        message = refused(capsys, "train", data, "-m", path)
        assert f"{path}: is read from; expected another file for the model" in message
        message = refused(capsys, "train", data, "-m", model, "--checkpoint", path)
        assert f"{path}: is read from; expected another file for the checkpoint" in message
        refused(capsys, "train", named, "-m", path, "--valid", data)
    assert data.read_bytes() == before
    assert not model.exists()


BAD_TEMPLATES = {
    "missing column": ("U:a\nU:%x[0,7]\n", "line 2: U:%x[0,7]: names column 7, but "),
    "label column": ("U:%x[0,0]\n\nU:%x[0,2]\n", "line 3: U:%x[0,2]: names column 2, which holds"),
    "syntax": ("# first\nU:%x[0,0\n", "line 2: "),
    "letter": ("Q:%x[0,0]\n", "line 1: "),
    "nothing": ("# nothing\n", ""),
}


@pytest.mark.parametrize("kind", BAD_TEMPLATES)
def test_bad_templates(capsys, data, model, tmp_path, kind):
    content, told = BAD_TEMPLATES[kind]
    path = write(tmp_path / "template", content)
    message = refused(capsys, "train", data, "-m", model, "--template", path)
    assert str(path) in message
    assert told in message
    if "column" in kind:
        assert str(data) in message
    assert not model.exists()


def test_bad_names_of_templates(capsys, monkeypatch, data, model, tmp_path):
    def error(template):
        return refused(capsys, "train", data, "-m", model, "--template", template)

    assert "did you mean 'words'?" in error("wrods")
    assert "built-in are: words" in error(tmp_path / "missing")
    assert f"'{tmp_path}' cannot be read" in error(tmp_path)
    assert "no_such_module" in error("no_such_module:f")
    assert "missing.py: no such file" in error(f"{tmp_path}/missing.py:f")
    code = tmp_path / "f.py"
    code.write_text("def f(rows):\n    return rows[0][9]\n\ndef g(rows):\n    return 1\n")
    assert f"{code} has no function 'h'" in error(f"{code}:h")
    message = error(f"{code}:f")
    assert f"template {code}:f, at {data}: IndexError: " in message
    assert f"{code}, line 2, in the feature function at sequence 0 (the seq" in message
    assert f"(the sequence begins at {data}, line 1)" in message
    assert "returned int for sequence 0" in error(f"{code}:g")
    code.write_text("def f(rows):\n    yield ['a']\n    yield rows[0][9]\n")
    message = error(f"{code}:f")
    assert f"template {code}:f, at {data}: IndexError: " in message
    assert f"{code}, line 3, in the feature function at sequence 0, token 1 (" in message
    code.write_text("def f(\n")
    assert f"{code}: SyntaxError" in error(f"{code}:f")
    code.write_text("1 / 0\n")
    assert f"{code}: ZeroDivisionError: division by zero (line 1)" in error(f"{code}:f")
    code.write_text("import sys\nsys.exit(3)\n")
    assert f"{code}: SystemExit: 3 (line 2)" in error(f"{code}:f")
    code.write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    code.rename(tmp_path / "divides.py")
    assert "template divides:f: ZeroDivisionError" in error("divides:f")
    items = write(tmp_path / "items", crfsuite(TRAIN))
    arguments = ["train", items, "--format", "crfsuite", "-m", model, "--template", "words"]
    assert "--template is for columns" in refused(capsys, *arguments)
    assert not model.exists()


BAD_OPTIONS = {
    "--grid D=1 --valid VALID": "--grid: found 'D=1'",
    "--grid C= --valid VALID": "--grid: found 'C='",
    "--grid 1,2 --valid VALID": "--grid",
    "--grid C=1,,2 --cv 2": "--grid",
    "--grid C=1,x --cv 2": "--grid",
    "--grid C=0,1 --cv 2": "--grid",
    "--grid C=nan --cv 2": "--grid",
    "--grid C=1,2": "--grid needs --valid FILE or --cv K",
    "-C 0": "-C",
    "-C -1": "-C",
    "-C nan": "-C",
    "-C inf": "-C",
    "-C much": "-C",
    "--gap -1": "--gap",
    "--gap nan": "--gap",
    "--hash-bits 0": "--hash-bits",
    "--hash-bits 99": "expected 1 to 31",
    "--cv 1": "--cv",
    "--cv 25": "25 folds of 24 sequences",
    "--min-count 0": "--min-count",
    "--min-count 1000": "no feature occurs 1000 times",
    "--max-passes 0": "--max-passes",
    "--time-limit 0": "--time-limit",
    "--threads 0": "--threads",
    "--seed -1": "--seed",
    "--seed 1.5": "--seed",
    "--resume": "--resume needs --checkpoint FILE",
    "--checkpoint x --cv 2": "--checkpoint",
    "--checkpoint x --grid C=1 --valid VALID": "--checkpoint",
    "--solver sdn": "'sdn'",
    "--allowed bio": "--allowed",
    "--dtype float16": "--dtype",
    "--format xml": "--format",
    "--separator comma": "--separator",
    "--label-column last": "--label-column",
    "--nonsense": "--nonsense",
    "another": "another",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(capsys, data, valid, model, options):
    given = [str(valid) if word == "VALID" else word for word in options.split()]
    message = refused(capsys, "train", data, "-m", model, *given)
    assert BAD_OPTIONS[options] in message
    assert names(model.parent) == ["train.tsv", "valid.tsv"]


def test_where_to(capsys, data):
    assert "-m MODEL is missing" in refused(capsys, "train", data)


BAD_VALID = {
    "columns": (text(VALID, (0, 2)), "found 2 columns; expected 3, as in training"),
    "ragged": (RAGGED, "line 2"),
    "empty": ("", "holds no tokens"),
    "missing": (None, "no such file"),
}


@pytest.mark.parametrize("kind", BAD_VALID)
def test_bad_validation_files(capsys, data, model, kind):
    content, told = BAD_VALID[kind]
    path = model.with_name("v.tsv")
    if content is not None:
        write(path, content)
    message = refused(capsys, "train", data, "-m", model, "--valid", path)
    assert f"{path}: " in message
    assert told in message
    assert not model.exists()


@pytest.mark.parametrize(
    ("old", "call"), [(b"an old model", "fsync"), (b"an old model", "replace"), (None, "fsync")]
)
def test_a_full_disk(capsys, monkeypatch, data, *, old, call):
    model = data.with_name("m.mm")
    if old is not None:
        model.write_bytes(old)
    before = names(model.parent)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        message = refused(capsys, "train", data, "-m", model)
    assert "no space left on device" in message.lower()
    assert names(model.parent) == before
    if old is not None:
        assert model.read_bytes() == old


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_closed(capsys, data, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert f"{closed}/m.mm: " in refused(capsys, "train", data, "-m", closed / "m.mm")
    assert names(closed) == []
