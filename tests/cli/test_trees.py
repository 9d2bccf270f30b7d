"""`maxmargin --task trees`: train, eval, predict, info."""

from __future__ import annotations

import pytest

from cli_files import refused, run, summary, write
from maxmargin import load, read_trees
from maxmargin.cli.main import main
from maxmargin.scores.trees import evaluate_trees

TRAIN = """\
(S (NP (DT the) (NN dog)) (VP (VBZ barks)))
( (S (NP (DT a) (NN cat))
     (VP (VBZ sees) (NP (DT the) (NN dog)))) )
(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN cat)) (PP (IN with) (NP (NN fur))))))
(S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN at) (NP (NN noon)))))
"""
SENTENCE = "The_DT cow_NN sees_VBZ a_DT cow_NN"
ANSWER = "(S (NP (DT The) (NN cow)) (VP (VBZ sees) (NP (DT a) (NN cow))))\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees")
    write(path / "train.mrg", TRAIN)
    return path


def trained(capsys, folder, *options):
    model = folder / "m.mm"
    arguments = ("train", "--task", "trees", folder / "train.mrg", "-m", model, *options)
    return model, summary(capsys, *arguments)


def test_train_eval_predict(capsys, folder):
    model, told = trained(capsys, folder, "-C", "1", "--seed", "0")
    assert told["n_sentences"] == 4
    assert told["task"] == "trees"
    assert told["converged"]
    found = summary(capsys, "eval", "-m", model, folder / "train.mrg")
    trees = read_trees(folder / "train.mrg")
    report = evaluate_trees(trees, load(model).predict(trees))
    for key in ("f1", "precision", "recall", "exact"):
        assert found[key] == getattr(report, key)
    assert found["sentences_per_second"] > 0
    assert found["n_without_parse"] == 0
    for text in (
        SENTENCE,
        SENTENCE.replace("_", "/"),
        SENTENCE.replace("_", "\t").replace(" ", "\n"),
        ANSWER,
    ):
        data = write(folder / "new.txt", text)
        for command in ("predict", "tag"):
            assert run(capsys, command, "-m", model, data) == ANSWER
    info = summary(capsys, "info", model)
    assert info["task"] == "trees"
    assert info["n_rules"] > 5
    assert "exact match 100.00 %, 0.00 crossing" in run(
        capsys, "eval", "-m", model, folder / "train.mrg"
    )


def test_options_are_those_of_the_parser(capsys, folder):
    model, _ = trained(
        capsys, folder, "--loss", "f1", "--lexicon", "words", "--vertical", "1", "--horizontal",
        "all", "--node-features", "length,first", "--min-count", "1", "--max-length", "5",
        "--slack", "quadratic", "--rescale", "slack", "-C", "2", "--prior", "pcfg",
    )  # fmt: skip
    parser = load(model)
    found = {name: getattr(parser, name) for name in ("loss", "lexicon", "vertical", "horizontal")}
    assert found == {"loss": "f1", "lexicon": "words", "vertical": 1, "horizontal": None}
    assert parser.prior == "pcfg"
    assert list(parser.node_features) == ["length", "first"]
    assert parser.n_examples_ == 2  # two have six words
    data = write(folder / "words.txt", "the cat barks\n")
    assert run(capsys, "predict", "-m", model, data).startswith("(S (NP (DT the)")
    assert summary(capsys, "eval", "-m", model, folder / "train.mrg")["n_sentences"] == 2


def test_cleaning(capsys, folder):
    marked = TRAIN.replace("(NP (PRP", "(NP-SBJ (-NONE- *) (PRP")
    write(folder / "marked.mrg", marked)
    model = folder / "clean.mm"
    run(capsys, "train", "--task", "trees", folder / "marked.mrg", "-m", model, "--clean", "-q")
    assert not any("-" in label for label in load(model).labels_)
    assert summary(capsys, "eval", "-m", model, folder / "marked.mrg")["f1"] > 0.5


def test_no_parse(capsys, folder):
    model, _ = trained(capsys, folder, "--horizontal", "all")
    data = write(folder / "odd.txt", "in_IN of_IN\n" + SENTENCE)
    assert main(["predict", "-m", str(model), str(data)]) == 0
    out, err = capsys.readouterr()
    assert out == "(S (IN in) (IN of))\n" + ANSWER
    assert "1 of 2 sentences have no parse and got flat trees: 1" in err
    data = write(folder / "odd.mrg", "(S (IN in) (IN of))")
    found = summary(capsys, "eval", "-m", model, data)
    assert found["n_without_parse"] == 1
    assert found["exact"] == 1


def test_bad_files(capsys, folder):
    model, _ = trained(capsys, folder)
    bad = write(folder / "bad.mrg", "(S (NN a))\n(S (NN b)")
    train = ["train", "--task", "trees", bad, "-m", folder / "x.mm"]
    for words in (train, ["eval", "-m", model, bad]):
        assert "bad.mrg: line 2, column 1" in refused(capsys, *words)
    bad = write(folder / "bad.txt", "the dog")
    assert "bad.txt: line 1: found 'the'" in refused(capsys, "predict", "-m", model, bad)
    bad = write(folder / "leaf.mrg", "(S (NN a))(NN a)")
    message = refused(capsys, "train", "--task", "trees", bad, "-m", folder / "x.mm")
    assert "leaf.mrg: tree 2 is (NN a)" in message
    message = refused(
        capsys, "train", "--task", "trees", folder / "train.mrg", "-m", folder / "x.mm",
        "--max-length", "1",
    )  # fmt: skip
    assert "no tree is left" in message
    assert "nbest" in refused(capsys, "tag", "-m", model, folder / "train.mrg", "--nbest", "2")


def test_grid(capsys, folder):
    _, told = trained(capsys, folder, "--grid", "C=0.001,1", "--valid", folder / "train.mrg", "-q")
    assert [point["C"] for point in told["grid"]] == [0.001, 1.0]
    assert told["valid"]["f1"] == max(point["score"] for point in told["grid"])
