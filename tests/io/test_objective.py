"""The objective in a model file: its form, and headers of a hostile writer."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from maxmargin import ElasticNet, SequenceTagger, load
from maxmargin.cli.main import main
from maxmargin.errors import ModelFormatError
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger
from maxmargin.solvers import SDM

X = [[["a"], ["b"], ["c"]], [["b"], ["a"]], [["c"]]]
Y = [["x", "y", "x"], ["y", "x"], ["y"]]
LOSS = {("x", "y"): 2.0}


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("objective") / "m"
    SequenceTagger(
        C=0.5, loss=LOSS, solver=SDM(slack="quadratic"), regularizer=ElasticNet(0.1, 1.0), gap=0.1
    ).fit(X, Y).save(path)
    return read_container(path)


def test_the_form(content):
    objective = content.meta["objective"]
    options = objective["solver"].pop("options")
    assert options["slack"] == "quadratic"
    assert options["schedule"] == "auto"
    assert objective == {
        "version": 2, "C": 0.5, "C_scale": "sum", "gap": 0.1, "max_passes": None,
        "time_limit": None, "dtype": "float32",
        "solver": {"name": "sdm", "named": False},
        "slack": "quadratic", "rescale": "margin",
        "regularizer": {"name": "ElasticNet", "options": {"rho1": 0.1, "rho2": 1.0}},
        "loss": {"pairs": [[0, 1, 2.0]]}, "labels": False, "allowed": None,
    }  # fmt: skip
    objective["solver"]["options"] = options


@pytest.mark.parametrize("max_passes", [None, 77])
def test_the_limit_comes_back(tmp_path, max_passes):
    SequenceTagger(max_passes=max_passes).fit(X, Y).save(tmp_path / "m")
    objective = read_container(tmp_path / "m").meta["objective"]
    assert objective["max_passes"] == max_passes
    # Files with a number can be read by versions that know no other limit.
    assert objective["version"] == (2 if max_passes is None else 1)
    assert SequenceTagger.load(tmp_path / "m").max_passes == max_passes


def written(path, content, place, value, arrays=None):
    """Write a file with another value somewhere; the value `...` deletes it."""
    meta = copy.deepcopy(content.meta)
    inner = meta
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    write_container(path, "tagger", meta, {**content.arrays, **(arrays or {})})


def refused(path):
    """The message with which a file is refused."""
    with pytest.raises(ModelFormatError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 350
    return message


HUGE = 10**600
BAD_NUMBERS = [HUGE, -HUGE, 2**64, "1", True, [], {}]
WRONG = {
    ("certificate",): [None, 3, "x", []],
    ("certificate", "primal"): BAD_NUMBERS,
    ("certificate", "dual"): [*BAD_NUMBERS, None],
    ("certificate", "gap"): [*BAD_NUMBERS, None],
    ("certificate", "C"): [*BAD_NUMBERS, None],
    ("certificate", "n_examples"): [*BAD_NUMBERS, None, -1, 1.5],
    ("certificate", "approximate"): [None, 0, 1, "yes", HUGE],
    ("certificate", "widened"): [*BAD_NUMBERS, None, -1, 1.5],
    ("training",): [None, 3, "x", []],
    ("training", "passes"): [*BAD_NUMBERS, -1, 1.5],
    ("training", "converged"): [None, 1, "yes"],
    ("training", "stop_reason"): [None, 3, "x" * 1_000_000, []],
    ("training", "x" * 1_000_000): [HUGE],
    ("training", "more"): [[[HUGE]], {"a": {"b": HUGE}}, "x" * 20_000],
    ("params",): [None, 3, []],
    ("params", "C"): [*BAD_NUMBERS, 0, -1.0, None],
    ("params", "gap"): [HUGE, -0.1, None],
    ("params", "max_passes"): [HUGE, 0, 1.5],
    ("params", "dtype"): ["float16", 3, "x" * 1_000_000],
    ("params", "min_count"): [HUGE, 0, "x"],
    ("params", "random_state"): [HUGE, "x"],
    ("params", "n_jobs"): [HUGE, "x"],
    ("params", "warm_start"): ["x", 3],
    ("format",): [3, [], "x" * 1_000_000],
    ("objective",): [None, 3, [], {}],
    ("objective", "version"): [..., 0, 1, 3, HUGE, "2", True],  # 1 has a number of passes
    ("objective", "C"): [..., *BAD_NUMBERS, 0, None],
    ("objective", "C_scale"): [..., "both", None],
    ("objective", "gap"): [..., HUGE, -1.0, None],
    ("objective", "max_passes"): [..., HUGE, 0, 1.5, "x"],
    ("objective", "time_limit"): [..., HUGE, 0.0, "x"],
    ("objective", "dtype"): [..., "float16", None],
    ("objective", "solver"): [..., None, "sdm", 3, {}],
    ("objective", "solver", "name"): [..., "no", 3, "x" * 1_000_000],
    ("objective", "solver", "named"): [..., 1, None],
    ("objective", "solver", "options"): [..., None, [], {"no": 1}, {"x" * 1_000_000: 1}],
    ("objective", "solver", "options", "tau"): [HUGE, "x", None, -1.0, []],
    ("objective", "solver", "options", "schedule"): ["no", 3, "x" * 1_000_000],
    ("objective", "solver", "class"): [3, None, "x" * 1_000_000],
    ("objective", "slack"): [..., "linear", "no", None, 3],
    ("objective", "rescale"): [..., "slack", "no", None],
    ("objective", "regularizer"): [..., "l1", 3, [], {}],
    ("objective", "regularizer", "name"): [..., "Selected", "Regularizer", 3, "x" * 1_000_000],
    ("objective", "regularizer", "options"): [..., None, {}, {"rho1": 1.0}],
    ("objective", "regularizer", "options", "rho1"): [HUGE, -1.0, "x", None, []],
    ("objective", "regularizer", "options", "rho2"): [0.0, -1],
    ("objective", "loss"): [..., None, "no", 3, [], {}, "matrix"],
    ("objective", "loss", "pairs"): [
        ..., None, 3, [3], [[0, 1]], [[0, 2, 1.0]], [[-1, 0, 1.0]], [[0, 1, -1.0]],
        [[0, 1, HUGE]], [[0, 0, 1.0]], [[True, 0, 1.0]], [["x", "y", 1.0]],
    ],
    ("objective", "labels"): [..., None, 1, []],
    ("objective", "allowed"): [..., "no", 3, [], {}, "matrix", {"class": 3}],
}  # fmt: skip


@pytest.mark.parametrize("place", WRONG, ids=lambda place: ".".join(place)[:60])
def test_wrong_values(tmp_path, content, place, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)
    for value in WRONG[place]:
        written(tmp_path / "m", content, place, value)
        refused(tmp_path / "m")


@pytest.mark.parametrize("place", [("certificate", "gap"), ("certificate", "primal")])
@pytest.mark.parametrize("command", ["info", "tag", "eval"])
def test_huge_numbers_on_the_command_line(tmp_path, content, place, command, capsys):
    """They were a fault of maxmargin, exit code 1."""
    path = tmp_path / "m"
    written(path, content, place, HUGE)
    (tmp_path / "x").write_text("x\ta\n")
    arguments = [str(path)] if command == "info" else ["-m", str(path), str(tmp_path / "x")]
    assert main([command, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{path}: the model is inconsistent: {place[1]} of the certificate is an integer" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "costs",
    [
        np.zeros((2, 3)),
        np.ones((2, 2)),
        np.array([[0, np.nan], [1, 0]]),
        np.array([[0, -1.0], [1, 0]]),
        np.zeros((2, 2), dtype=np.float32),
        np.zeros(4),
    ],
)
def test_wrong_costs(tmp_path, content, costs):
    path = tmp_path / "m"
    right = {"loss_costs": np.array([[0, 2.5], [1, 0]])}
    written(path, content, ("objective", "loss"), "matrix", right)
    np.testing.assert_array_equal(load(path).loss, right["loss_costs"])
    written(path, content, ("objective", "loss"), "matrix", {"loss_costs": costs})
    refused(path)


def test_tagging_needs_no_solver(tmp_path, content):
    """A solver of another version is no reason not to tag."""
    path = tmp_path / "m"
    written(path, content, ("objective", "solver", "name"), "newer")
    model = load_tagger(path)
    assert model.chain.predict(X, model.weights)
    assert "the solver 'newer' is not known" in refused(path)


def test_a_default_that_is_another_one_now(tmp_path):
    path = tmp_path / "m"
    SequenceTagger(solver="sdm").fit(X, Y).save(path)
    assert load(path).solver == "sdm"
    content = read_container(path)
    written(path, content, ("objective", "solver", "options", "cached_passes"), 3)
    assert load(path).solver == SDM(cached_passes=3)


def test_info(tmp_path, content, capsys):
    path = tmp_path / "m"
    written(path, content, ("certificate", "approximate"), True)
    assert main(["info", str(path)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.endswith("with an approximate oracle") for line in lines)
    section = lines[lines.index("objective") + 1 :]
    words = dict(line.split(":", 1) for line in section[:7])
    assert {key: value.strip() for key, value in words.items() if key != "solver"} == {
        "C": "0.5 (of the sum over the sequences)",
        "regularizer": "ElasticNet(rho1=0.1, rho2=1.0)",
        "slack": "quadratic",
        "rescale": "margin",
        "loss": "costs of 1 pairs",
        "gap": "0.1",
    }
    assert words["solver"].strip().startswith("sdm(")
    assert "slack='quadratic'" in words["solver"]
    assert main(["info", str(path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["objective"] == content.meta["objective"]
    assert summary["certificate"]["approximate"] is True
