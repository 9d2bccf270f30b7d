"""``maxmargin train --embeddings FILE``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maxmargin import SequenceTagger
from maxmargin.cli.main import main

TRAIN = "the\tD\ndog\tN\nbarks\tV\n\na\tD\ncat\tN\nsleeps\tV\n\n"
VECTORS = "4 2\ndog 1 0.5\ncat 1.5 0\nbarks -1 2\nsleeps -1 1.5\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text(TRAIN)
    (tmp_path / "v.txt").write_text(VECTORS)
    return tmp_path


def train(folder: Path, *options: str) -> int:
    return main(["train", str(folder / "train.tsv"), "-m", str(folder / "m.mm"), "-q", *options])


def test_tagging_needs_the_model_only(files: Path, capsys, monkeypatch) -> None:
    vectors = str(files / "v.txt")
    options = ["--embedding-window", "1", "--embedding-scale", "0.5", "--embedding-words", "3"]
    assert train(files, "--template", "pos", "--embeddings", vectors, *options) == 0
    (files / "v.txt").unlink()
    (files / "new.tsv").write_text("the\nCAT\nsleeps\n\n")
    assert main(["tag", "-m", str(files / "m.mm"), str(files / "new.tsv")]) == 0
    assert capsys.readouterr().out.split() == ["the", "D", "CAT", "N", "sleeps", "V"]
    embeddings = SequenceTagger.load(files / "m.mm").embeddings
    assert embeddings.words == ["dog", "cat", "barks"]
    assert (embeddings.window, embeddings.scale, embeddings.n_features) == (1, 0.5, 6)


def test_info_tells_them(files: Path, capsys) -> None:
    assert train(files, "--embeddings", str(files / "v.txt")) == 0
    assert main(["info", str(files / "m.mm"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["embeddings"]
    assert said["source"] == "v.txt"
    assert (said["n_words"], said["size"]) == (4, 2)
    assert main(["info", str(files / "m.mm")]) == 0
    assert "v.txt" in capsys.readouterr().out


def test_it_is_the_model_of_python(files: Path) -> None:
    assert train(files, "--template", "pos", "--embeddings", str(files / "v.txt")) == 0
    tagger = SequenceTagger.from_columns(
        files / "train.tsv", template="pos", embeddings=files / "v.txt", random_state=0
    )
    tagger.save(files / "python.mm")
    again = SequenceTagger.load(files / "m.mm")
    assert again.certificate_.primal == tagger.certificate_.primal
    assert (again.coef_ == SequenceTagger.load(files / "python.mm").coef_).all()


def test_going_on_takes_the_vectors_over(files: Path) -> None:
    assert train(files, "--embeddings", str(files / "v.txt")) == 0
    old = str(files / "m.mm")
    for option in ("--start", "--prior"):
        new = str(files / "new.mm")
        assert main(["train", str(files / "train.tsv"), "-m", new, "-q", option, old]) == 0
        assert len(SequenceTagger.load(new).embeddings) == 4


def test_a_search_reads_the_file_once(files: Path, monkeypatch) -> None:
    from maxmargin.cli import embeddings
    from maxmargin.io import embeddings as reading

    reads = []
    read = reading.read_embeddings


    def counted(*args, **choices):
        reads.append(args)
        return read(*args, **choices)

    monkeypatch.setattr(reading, "read_embeddings", counted)
    monkeypatch.setattr(embeddings, "_READ", {})
    grid = ["--grid", "C=0.1,1", "--grid", "template=words,pos", "--valid"]
    assert train(files, "--embeddings", str(files / "v.txt"), *grid, str(files / "train.tsv")) == 0
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--embedding-window", "1"], "--embedding-window needs --embeddings FILE"),
        (["--embedding-reference"], "--embedding-reference needs --embeddings FILE"),
        (["--embeddings", "V", "--stream"], "--embeddings needs all data in memory"),
        (["--embeddings", "V", "--template", "os:getcwd"], "embeddings are looked up by the words"),
        (["--embeddings", "V", "--embedding-column", "1"], "column 1, which holds the labels"),
        (["--embeddings", "V", "--embedding-scale", "0"], "above 0"),
        (["--embeddings", "missing.txt"], "missing.txt"),
        (["--embeddings", "T"], "line 1: found 'D'; expected a word and the numbers"),
    ],
)
def test_what_does_not_go_together(files: Path, capsys, options, message) -> None:
    names = {"V": str(files / "v.txt"), "T": str(files / "train.tsv")}
    given = [names.get(option, option) for option in options]
    try:
        status = train(files, *given)
    except SystemExit as ended:
        status = ended.code
    assert status != 0
    assert message in capsys.readouterr().err
    assert not (files / "m.mm").exists()


def test_expanded_features_have_no_words(files: Path, capsys) -> None:
    items = files / "a.crfsuite"
    items.write_text("N\tw=dog\nV\tw=barks\n\n")
    vectors = str(files / "v.txt")
    assert main(["train", str(items), "-m", str(files / "m.mm"), "--embeddings", vectors]) != 0
    assert "--embeddings is for columns of words" in capsys.readouterr().err
