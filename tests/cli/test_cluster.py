"""`maxmargin train --workers` and `--cluster`, on real worker processes."""

from __future__ import annotations

import importlib.util

import pytest

import maxmargin.cli.cluster as command
from cli_files import crfsuite, refused, sentences, summary, text, write
from maxmargin import SequenceTagger
from maxmargin.cli.main import main

TRAIN = sentences(60, seed=3)


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "train.tsv", text(TRAIN))


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("distributed", exc_type=ImportError)
    from maxmargin.distributed.cluster import local_client

    with local_client(2) as client:
        yield client


@pytest.mark.slow
def test_workers_leave_an_ordinary_model(capsys, tmp_path, data):
    pytest.importorskip("distributed", exc_type=ImportError)
    model, plain = tmp_path / "m.mm", tmp_path / "p.mm"
    rest = ("--template", "pos", "--gap", "1e-3", "-C", "0.5")
    one = summary(capsys, "train", data, "-m", plain, *rest, "-q")
    two = summary(capsys, "train", data, "-m", model, *rest, "-q", "--workers", "2")
    assert set(one) <= set(two)
    assert (two["shares"], two["faults"]) == (2, 0)
    assert two["bytes_sent"] > 0
    assert two["gap"] <= 1e-3
    for name in ("n_sequences", "n_tokens", "n_labels", "n_features", "n_weights", "solver", "C"):
        assert two[name] == one[name], name
    assert two["dual"] <= one["primal"]
    assert one["dual"] <= two["primal"]
    info, other = (summary(capsys, "info", file) for file in (model, plain))
    assert info["template"] == other["template"]
    assert set(other) == set(info)
    tagger, local = SequenceTagger.load(model), SequenceTagger.load(plain)
    # A file has the features whose weights are not all zero: both have those that matter.
    found, known = (
        {f: abs(w).max() for f, w in zip(t.get_feature_names_out(), t.coef_, strict=True)}
        for t in (tagger, local)
    )
    assert all(found[f] < 0.05 for f in found.keys() - known.keys())
    assert all(known[f] < 0.05 for f in known.keys() - found.keys())
    assert tagger.certificate_.gap == two["gap"]


@pytest.mark.slow
def test_an_address_and_parts(capsys, tmp_path, cluster):
    address, model = cluster.scheduler.address, tmp_path / "m.mm"
    for k in range(3):
        write(tmp_path / f"part{k}.tsv", text(TRAIN[20 * k : 20 * k + 20]))
    base = ("train", tmp_path / "part*.tsv", "-m", model, "--cluster", address)
    told = summary(capsys, *base, "--l1-ratio", "0.3", "-q")
    whole = write(tmp_path / "whole.tsv", text(TRAIN))
    one = summary(capsys, "train", whole, "-m", tmp_path / "p.mm", "--l1-ratio", "0.3", "-q")
    assert told["n_features"] == one["n_features"]
    assert told["n_sequences"] == one["n_sequences"] == 60
    assert told["l1_ratio"] == 0.3
    assert told["gap"] <= 0.01
    items = write(tmp_path / "a.crfsuite", crfsuite(TRAIN))
    two = summary(capsys, "train", items, "-m", model, "-q", "--cluster", address)
    assert two["shares"] == 2
    assert two["gap"] <= 0.01
    assert two["n_features"] == summary(capsys, "train", items, "-m", model, "-q")["n_features"]


@pytest.mark.slow
def test_lines_on_standard_error_and_checkpoints(capsys, tmp_path, data, cluster):
    address, model, state = cluster.scheduler.address, tmp_path / "m.mm", tmp_path / "s.npz"
    base = ("train", data, "-m", model, "--cluster", address, "--checkpoint", state)
    assert main([*map(str, base), "-v", "--max-passes", "3", "--gap", "0"]) == 0
    told = capsys.readouterr().err
    assert told.count("round ") >= 3
    assert "MB in all)" in told
    assert "warning: training stopped (max_rounds = 3" in told
    again = summary(capsys, *base, "-q", "--resume")
    assert again["gap"] <= 0.01
    assert again["rounds"] > 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--valid", "x.tsv"), "--valid needs all data in one place; it does not go with --w"),
        (("--grid", "C=1,2", "--cv", "3"), "--grid needs all data"),
        (("--kernel", "rbf"), "--kernel needs all data"),
        (("--prior", "old.mm"), "--prior needs all data"),
        (("--memory", "10M"), "--memory needs all data"),
        (("--on-error", "skip"), "--on-error needs all data"),
        (("--report", "r.html"), "--report needs all data"),
        (("--solver", "bcfw"), "--workers trains with --solver sdm; got bcfw"),
        (("--slack", "hard"), "hard margins are no sum of shares"),
        (("--template", "mine.py:features"), "is a function of this machine"),
        (("--cluster", "tcp://a:1"), "not allowed with argument"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_what_needs_all_data_is_refused(capsys, tmp_path, data, given, message):
    model = tmp_path / "m.mm"
    assert message in refused(capsys, "train", data, "-m", model, "--workers", "2", *given)
    assert not model.exists()


def test_pipes_and_names_without_a_file(capsys, tmp_path):
    model = tmp_path / "m.mm"
    told = refused(capsys, "train", "-", "-m", model, "--workers", "2")
    assert "cannot be a pipe" in told
    told = refused(capsys, "train", tmp_path / "no*.tsv", "-m", model, "--workers", "2")
    assert "no file has such a name" in told


def test_an_address_that_does_not_answer(capsys, tmp_path, data, monkeypatch):
    pytest.importorskip("distributed", exc_type=ImportError)
    monkeypatch.setattr(command, "PATIENCE", 0.5)
    model = tmp_path / "m.mm"
    told = refused(capsys, "train", data, "-m", model, "--cluster", "tcp://127.0.0.1:9")
    assert "tcp://127.0.0.1:9: no Dask scheduler answers there (waited 0.5 s)" in told
    told = refused(capsys, "train", data, "-m", model, "--cluster", "nonsense://x")
    assert "nonsense://x: no Dask scheduler answers there" in told


def test_without_dask_the_extra_is_named(capsys, tmp_path, data, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None)
    told = refused(capsys, "train", data, "-m", tmp_path / "m.mm", "--workers", "2")
    assert 'pip install "maxmargin[dask]"' in told
