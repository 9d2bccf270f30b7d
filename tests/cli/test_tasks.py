"""All tasks but chains on the command line: train, eval, predict, info and convert, in a table."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from cli_files import refused, run, summary, write
from maxmargin.cli.tasks.registry import TASKS
from maxmargin.io.container import read_container, write_container


class Case(NamedTuple):
    """A task, a tiny file of it, and what its commands must tell."""

    data: str
    items: str  # what an example is; eval --json has <items>_per_second
    n_items: int
    shares: tuple[str, ...]  # the keys of eval --json that are promised
    options: tuple[str, ...] = ()


CASES = {
    "classes": Case("red\tfire blood\nblue\tsky sea\nred\tblood\n", "documents", 3, ("accuracy",)),
    "taxonomy": Case(
        "warm/red\tfire blood\ncold/blue\tsky sea\nwarm/gold\tsun fire\n",
        "documents",
        3,
        ("accuracy", "tree_loss"),
    ),
    "trees": Case(
        "(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN cat)) (PP (IN with) (NP (NN fur))))))\n"
        "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN at) (NP (CD noon)))))\n",
        "sentences",
        2,
        ("f1", "precision", "recall", "exact"),
    ),
    "dependencies": Case(
        "1\tthe\t_\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
        "3\tbarks\t_\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
        "1\tcats\t_\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tVERB\tVBP\t_\t0\troot\t_\t_\n\n",
        "sentences",
        2,
        ("uas", "las"),
        ("--bits", "10"),
    ),
    "alignment": Case("ACDEF\tACEF\tMM1MM\nWYV\tWYV\tMMM\n", "pairs", 2, ("match_accuracy",)),
}
assert CASES.keys() == TASKS.keys()


@pytest.fixture(scope="module", params=CASES)
def trained(request, tmp_path_factory):
    """Return a task's name, its case, its file and a model of it."""
    from maxmargin.cli.main import main

    folder = tmp_path_factory.mktemp(request.param)
    case = CASES[request.param]
    data, model = write(folder / "data.txt", case.data), folder / "model.mm"
    arguments = ["train", "--task", request.param, str(data), "-m", str(model), "-q", "-C", "1"]
    assert main([*arguments, *case.options]) == 0
    return request.param, case, data, model


def test_train_tells_sizes_certificate_and_scores(trained, tmp_path, capsys):
    name, case, data, _ = trained
    told = summary(
        capsys, "train", "--task", name, data, "-m", tmp_path / "m.mm", "--valid", data,
        "--grid", "C=0.1,1", "-q", *case.options,
    )  # fmt: skip
    assert told["task"] == name
    assert told[f"n_{case.items}"] == case.n_items
    assert 0 <= told["gap"] <= 0.01
    assert told["converged"] is True
    assert [one["C"] for one in told["grid"]] == [0.1, 1]
    assert set(case.shares) <= told["valid"].keys()


@pytest.mark.parametrize("option", ["--task", "--tas"])
def test_a_shortened_option_is_no_other_task(trained, option, tmp_path, capsys):
    name, case, data, _ = trained
    model = tmp_path / "m.mm"
    told = summary(capsys, "train", f"{option}={name}", data, "-m", model, *case.options)
    assert told["task"] == name
    told = summary(capsys, "train", option, name, data, "-m", model, *case.options)
    assert told["task"] == name


@pytest.mark.parametrize("option", [("--label", "N"), ("--selected",), ("--template",)])
def test_info_refuses_what_is_for_taggers(trained, option, capsys):
    _, _, _, model = trained
    assert "model.mm" in refused(capsys, "info", model, *option)


def test_eval_has_the_promised_keys(trained, capsys):
    _, case, data, model = trained
    found = summary(capsys, "eval", "-m", model, data)
    for key in case.shares:
        assert isinstance(found[key], float)
        assert 0 <= found[key] <= 1
    assert found["seconds"] > 0
    rate = found[f"{case.items}_per_second"]
    assert math.isclose(rate, case.n_items / found["seconds"])
    assert found[case.shares[0]] == 1  # nothing of this is hard to learn


def test_predict_on_the_screen_and_into_a_file(trained, tmp_path, capsys):
    _, case, data, model = trained
    shown = run(capsys, "predict", "-m", model, data)
    assert shown
    assert run(capsys, "tag", "-m", model, data) == shown
    out = tmp_path / "out.txt"
    told = summary(capsys, "predict", "-m", model, data, "-o", out)
    assert out.read_text() == shown
    assert told[f"n_{case.items}"] == case.n_items
    assert told[f"{case.items}_per_second"] > 0


def test_info_and_convert_give_the_same_text(trained, tmp_path, capsys):
    name, _, _, model = trained
    told = summary(capsys, "info", model)
    assert told["task"] == name
    assert 0 < told["n_nonzero"] <= told["n_weights"]
    assert told["training"]["converged"] is True
    assert f"task         {name}" in run(capsys, "info", model, "--top", "2")
    told = summary(capsys, "info", model, "--text", tmp_path / "one.txt")
    run(capsys, "convert", model, tmp_path / "two.txt")
    text = (tmp_path / "one.txt").read_text()
    assert text == (tmp_path / "two.txt").read_text()
    if name in ("trees", "dependencies"):  # a line for each weight that is not zero
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert len(lines) == told["n_nonzero"]
        assert all(float(line.rpartition("\t")[2]) != 0 for line in lines)


@pytest.mark.parametrize("other", CASES)
def test_a_model_of_another_task_reads_its_own_files(trained, other, tmp_path, capsys):
    name, _, _, model = trained
    texts = ("classes", "taxonomy")
    if other == name or name in texts:  # to which any line is a text
        return
    data = write(tmp_path / "other.txt", CASES[other].data)
    assert "other.txt: " in refused(capsys, "eval", "-m", model, data)


def test_damage_is_told_in_a_line(trained, tmp_path, capsys):
    _, _, data, model = trained
    whole = model.read_bytes()
    damaged = tmp_path / "damaged.mm"
    step = len(whole) // 12
    for k in range(12):
        for content in (whole[: k * step], _flipped(whole, k * step + step // 2)):
            damaged.write_bytes(content)
            assert "damaged.mm" in refused(capsys, "predict", "-m", damaged, data)
            assert "damaged.mm" in refused(capsys, "info", damaged)


def _flipped(content, at):
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("name", "nonsense"),
    [
        ("classes", ("reading", "format", "xml")),
        ("classes", ("reading", "n_features", -1)),
        ("classes", ("reading", "encoding", "no-such")),
        ("trees", ("reading", "encoding", 8)),
        ("taxonomy", ("reading", "format", ["text"])),
        ("taxonomy", ("reading", "separator", 3)),
        ("alignment", ("training", "passes", None)),
    ],
)
def test_nonsense_in_a_header_is_told_with_the_name_of_the_model(name, nonsense, tmp_path, capsys):
    where, key, value = nonsense
    case = CASES[name]
    data, model = write(tmp_path / "data.txt", case.data), tmp_path / "model.mm"
    run(capsys, "train", "--task", name, data, "-m", model, "-q", *case.options)
    found = read_container(model)
    meta = {**found.meta, where: {**found.meta[where], key: value}}
    if key == "n_features":
        meta["reading"]["format"] = "svmlight"
    write_container(model, name, meta, found.arrays)
    assert "model.mm: " in refused(capsys, "eval", "-m", model, data)


def test_a_newer_kind_is_refused(trained, tmp_path, capsys):
    _, _, data, model = trained
    found = read_container(model)
    newer = tmp_path / "newer.mm"
    write_container(newer, "hypergraphs", found.meta, found.arrays)
    for arguments in (("predict", "-m", newer, data), ("eval", "-m", newer, data), ("info", newer)):
        assert "hypergraphs" in refused(capsys, *arguments)


@pytest.mark.parametrize("task", ["classes", "taxonomy"])
def test_numbered_features_keep_their_numbers(task, tmp_path, capsys):
    train = write(tmp_path / "train.svm", "a/b 1:1 3:2\na/c 2:1\nd/e 4:1\n")
    test = write(tmp_path / "test.svm", "a/c 2:1 9:3\na/b 1:1\n")  # 9 is not known
    model = tmp_path / "m.mm"
    run(capsys, "train", "--task", task, train, "-m", model, "-q")
    assert run(capsys, "predict", "-m", model, test) == "a/c\na/b\n"
    assert summary(capsys, "eval", "-m", model, test)["accuracy"] == 1
    lines = run(capsys, "info", model, "--text").splitlines()[1:]
    assert {line.split("\t")[1] for line in lines} == {"(bias)", "1", "2", "3", "4"}


def test_the_text_of_a_sparse_model_has_no_zeros(tmp_path, capsys):
    data, model = write(tmp_path / "train.txt", CASES["classes"].data), tmp_path / "m.mm"
    run(
        capsys, "train", "--task", "classes", data, "-m", model, "-q", "--l1-ratio", "0.9", "-C",
        "5",
    )  # fmt: skip
    told = summary(capsys, "info", model, "--text", tmp_path / "m.txt")
    assert told["text"]["weights"] == told["n_nonzero"] > 0


def test_eval_of_classes_has_every_class(capsys, tmp_path):
    lines = [f"{'AB'[k % 2]}\t{'red' if k % 2 else 'blue'} {k % 3}\n" for k in range(20)]
    data = write(tmp_path / "x.tsv", "".join(lines))
    run(capsys, "train", "--task", "classes", data, "-m", tmp_path / "m.mm", "-q")
    test = write(tmp_path / "t.tsv", "A\tblue\nB\tred\nA\tred\n")
    found = summary(capsys, "eval", "-m", tmp_path / "m.mm", test)
    assert found["per_label"]["A"]["recall"] == 0.5
    assert found["errors"] == [
        {"truth": "A", "predicted": "B", "count": 1, "of_errors": 1.0, "of_truth": 0.5}
    ]
    assert found["confusion"] == {"labels": ["A", "B"], "counts": [[1, 1], [0, 1]]}
    out = run(capsys, "eval", "-m", tmp_path / "m.mm", test, "--confusion")
    assert "\nlabel " in out
    assert "truth \\ predicted" in out
