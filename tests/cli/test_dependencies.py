"""``maxmargin train --task dependencies`` and what follows: predict, eval, info."""

from __future__ import annotations

import io

import pytest

from cli_files import refused, run, summary, write
from dependency_files import conllu, trees
from maxmargin.io.conllu_trees import read_dependencies
from maxmargin.scores.dependencies import attachment_scores, punctuation

OPTIONS = ("--task", "dependencies", "--bits", "14", "-C", "1", "--seed", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dependencies")
    write(path / "train.conllu", conllu(trees()))
    write(path / "dev.conllu", conllu(trees(20, seed=2), extras=True))
    return path


@pytest.fixture(scope="module")
def model(folder):
    from maxmargin.cli.main import main

    path = folder / "m.mm"
    assert main(["train", *OPTIONS, str(folder / "train.conllu"), "-m", str(path), "-q"]) == 0
    return path


def scores_of(gold, predicted, keep=None):
    return attachment_scores(
        [s.heads for s in gold],
        [s.heads for s in predicted],
        [s.deprels for s in gold],
        [s.deprels for s in predicted],
        keep=keep,
    )


def test_train_with_a_validation_file(capsys, folder, tmp_path):
    found = summary(
        capsys,
        "train",
        *OPTIONS,
        folder / "train.conllu",
        "-m",
        tmp_path / "m.mm",
        "--valid",
        folder / "dev.conllu",
        "--grid",
        "C=0.001,1",
        "-q",
    )
    assert found["C"] == 1.0
    assert found["valid"]["las"] > 0.85
    assert found["n_sentences"] == 30
    assert found["n_relations"] > 5


def test_predictions_keep_everything_else(capsysbinary, folder, model):
    from maxmargin.cli.main import main

    assert main(["predict", "-m", str(model), str(folder / "dev.conllu")]) == 0
    out = capsysbinary.readouterr().out
    gold = (folder / "dev.conllu").read_text().splitlines()
    predicted = out.decode().splitlines()
    assert len(gold) == len(predicted)
    for a, b in zip(gold, predicted, strict=True):
        cells, others = a.split("\t"), b.split("\t")
        assert cells[:6] == others[:6]
        assert cells[8:] == others[8:]
        if not (cells[0].isdigit()):
            assert a == b
    read_dependencies(io.BytesIO(out), one_root=True)  # trees


def test_eval_is_the_score_of_the_predictions(capsys, folder, model):
    run(capsys, "predict", "-m", model, folder / "dev.conllu", "-o", folder / "out.conllu")
    gold = read_dependencies(folder / "dev.conllu")
    expected = scores_of(gold, read_dependencies(folder / "out.conllu"))
    found = summary(capsys, "eval", "-m", model, folder / "dev.conllu")
    assert found["uas"] == expected["uas"]
    assert found["las"] == expected["las"]
    assert 0.8 < found["las"] <= found["uas"] <= 1.0
    assert found["sentences_per_second"] > 0
    assert found["words"] == expected["n"]
    assert "uas" in run(capsys, "eval", "-m", model, folder / "dev.conllu")


def test_punctuation_can_be_left_out(capsys, folder, tmp_path):
    path = tmp_path / "m.mm"
    options = (*OPTIONS, "--punctuation", "upos", "--unlabelled", "-q")
    run(capsys, "train", *options, folder / "train.conllu", "-m", path)
    found = summary(capsys, "eval", "-m", path, folder / "dev.conllu")
    gold = read_dependencies(folder / "dev.conllu")
    assert found["words"] == sum(len(s) for s in gold) - len(gold)
    assert found["las"] is None
    run(capsys, "predict", "-m", path, folder / "dev.conllu", "-o", tmp_path / "out.conllu")
    lines = (tmp_path / "out.conllu").read_text().splitlines()
    assert {line.split("\t")[7] for line in lines if line[:1].isdigit()} == {"_"}
    predicted = read_dependencies(tmp_path / "out.conllu")
    keep = [~mask for mask in punctuation([s.upos for s in gold], "upos")]
    expected = attachment_scores([s.heads for s in gold], [s.heads for s in predicted], keep=keep)
    assert found["uas"] == expected["uas"]


def test_templates_from_a_file(capsys, folder, tmp_path):
    text = write(tmp_path / "t.txt", "h.tag d.tag dist\nlabel: h.tag d.tag\n")
    arguments = (folder / "train.conllu", "-m", tmp_path / "m.mm", "--templates", text)
    found = summary(capsys, "train", *OPTIONS, *arguments, "--projective", "no", "-q")
    assert found["n_templates"] == 2
    assert "projective   no" in run(capsys, "info", tmp_path / "m.mm")
    write(text, "h.tag\nnonsense\n")
    message = refused(capsys, "train", *OPTIONS, *arguments, "-q")
    assert "line 2: 'nonsense' is no atom" in message


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ((2, 1, 0), "cycle"),
        ((7, 0, 2), "found the head 7"),
        ((0, 0, 2), "root"),
        (("x", 0, 2), "'x'"),
    ],
)
def test_files_that_are_no_trees(capsys, tmp_path, heads, message):
    lines = [f"{k}\tw\t_\tX\t_\t_\t{h}\tdep\t_\t_\n" for k, h in enumerate(heads, start=1)]
    path = write(tmp_path / "bad.conllu", "".join(lines) + "\n")
    found = refused(capsys, "train", *OPTIONS, path, "-m", tmp_path / "m.mm")
    assert "bad.conllu: line " in found
    assert message in found


def test_several_roots_if_asked(capsys, tmp_path):
    rows = "".join(f"{k}\tw{k}\t_\tX{k}\t_\t_\t0\troot\t_\t_\n" for k in (1, 2, 3))
    path = write(tmp_path / "t.conllu", (rows + "\n") * 3)
    run(capsys, "train", *OPTIONS, path, "-m", tmp_path / "m.mm", "--many-roots", "-q")
    assert summary(capsys, "eval", "-m", tmp_path / "m.mm", path)["uas"] == 1.0


def test_an_empty_file(capsys, tmp_path):
    path = write(tmp_path / "empty.conllu", "# nothing\n\n")
    assert "empty.conllu" in refused(capsys, "train", *OPTIONS, path, "-m", tmp_path / "m.mm")
