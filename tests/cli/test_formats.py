"""Formats, columns, encodings and compressions: recognised, and remembered by the model."""

from __future__ import annotations

import bz2
import io
import lzma
import sys

import pytest

from cli_files import conllu, crfsuite, refused, run, sentences, summary, svmhmm, text, write
from maxmargin import SequenceTagger
from maxmargin.cli.main import main
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger

TRAIN, TEST = sentences(), sentences(7, seed=2)
FORMATS = {"conll": text, "crfsuite": crfsuite, "svmhmm": svmhmm, "conllu": conllu}


def train(capsys, path, model, *options):
    return summary(capsys, "train", path, "-m", model, "-q", *options)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["data.{}", "data", "data.txt"])
def test_the_format_is_recognised(capsys, tmp_path, kind, name):
    make, model = FORMATS[kind], tmp_path / "m.mm"
    ending = {"conll": "tsv"}.get(kind, kind)
    path = write(tmp_path / name.format(ending), make(TRAIN))
    found = train(capsys, path, model)
    assert found["n_sequences"] == len(TRAIN)
    assert found["n_labels"] < 10
    assert load_tagger(model).meta["format"] == kind
    test = write(tmp_path / "test", make(TEST))
    assert summary(capsys, "eval", "-m", model, test)["n_sequences"] == len(TEST)
    assert run(capsys, "tag", "-m", model, test)


def test_contradictions(capsys, tmp_path):
    path = write(tmp_path / "x.tsv", crfsuite(TRAIN))
    message = refused(capsys, "train", path, "-m", tmp_path / "m.mm")
    assert "x.tsv: the ending .tsv says conll, and the content looks like crfsuite" in message
    assert "--format conll or --format crfsuite" in message
    assert train(capsys, path, tmp_path / "m.mm", "--format", "crfsuite")["n_labels"] < 10
    # another file than in training
    other = write(tmp_path / "y.txt", svmhmm(TEST))
    message = refused(capsys, "eval", "-m", tmp_path / "m.mm", other)
    assert "y.txt: looks like svmhmm; expected crfsuite" in message
    valid = write(tmp_path / "z", crfsuite(TEST))
    plain = write(tmp_path / "plain.tsv", text(TRAIN))
    message = refused(capsys, "train", plain, "--valid", valid, "-m", tmp_path / "n.mm")
    assert "z: looks like crfsuite; expected conll" in message


def test_what_a_model_remembers(capsys, tmp_path):
    model = tmp_path / "m.mm"
    commented = "".join(f"%% {i}\n{text([rows], separator=' ')}\n" for i, rows in enumerate(TRAIN))
    commented = commented.replace("dog", "dög")
    path = write(tmp_path / "train.conll", commented.encode("latin-1"))
    options = ("--comments", "%%", "--separator", "space", "--encoding", "latin1")
    assert train(capsys, path, model, *options)["n_sequences"] == len(TRAIN)
    reading = load_tagger(model).meta["reading"]
    assert reading == {"comments": "%%", "separator": "space", "encoding": "iso8859-1"}
    found = summary(capsys, "eval", "-m", model, path)
    assert found["n_sequences"] == len(TRAIN)
    out = tmp_path / "out"
    assert main(["tag", "-m", str(model), str(path), "-o", str(out)]) == 0
    tagged = out.read_bytes().decode("latin-1").split("\n")
    assert len(tagged) == len(commented.split("\n"))
    assert any(line.startswith("dög NN ") for line in tagged)
    assert sum(line.startswith("%% ") for line in tagged) == len(TRAIN)
    # what is given goes before what is remembered
    utf = write(tmp_path / "utf.conll", commented)
    given = ("tag", "-m", model, utf, "--encoding", "utf-8")
    assert "dög NN" in run(capsys, *given)
    # a tagger that is loaded and saved remembers it too
    again = tmp_path / "again.mm"
    SequenceTagger.load(model).save(again)
    assert load_tagger(again).meta["reading"] == reading


def test_columns_of_conllu_are_remembered(capsys, tmp_path):
    model = tmp_path / "m.mm"
    path = write(tmp_path / "train.conllu", conllu(TRAIN))
    train(capsys, path, model, "--columns", "form,upos,xpos")
    found = summary(capsys, "eval", "-m", model, write(tmp_path / "t.conllu", conllu(TEST)))
    # the same model reads plain columns, whose names say so
    plain = write(tmp_path / "t.tsv", text(TEST))
    assert summary(capsys, "eval", "-m", model, plain)["f1"] == found["f1"]
    # and the other way round it must be told the columns
    train(capsys, write(tmp_path / "train.tsv", text(TRAIN)), model)
    message = refused(capsys, "eval", "-m", model, tmp_path / "t.conllu")
    assert "to read CoNLL-U, say which of its columns" in message
    given = ("eval", "-m", model, tmp_path / "t.conllu", "--columns", "form,upos,xpos")
    assert summary(capsys, *given)["f1"] == found["f1"]


def test_damaged_memories(tmp_path):
    path, model = tmp_path / "x.tsv", tmp_path / "m.mm"
    write(path, text(TRAIN))
    assert main(["train", str(path), "-m", str(model), "-q"]) == 0
    container = read_container(model, "tagger")
    for reading in ([], {"encoding": 3}, {"encoding": "klingon"}, {"separator": "comma"}):
        write_container(model, "tagger", {**container.meta, "reading": reading}, container.arrays)
        with pytest.raises(ValueError, match=r"m\.mm: .*inconsistent"):
            load_tagger(model)


@pytest.mark.parametrize(
    ("ending", "compress"), [("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files(capsys, tmp_path, ending, compress):
    model = tmp_path / "m.mm"
    path = tmp_path / f"train.crfsuite.{ending}"
    path.write_bytes(compress(crfsuite(TRAIN).encode()))
    train(capsys, path, model)
    test = tmp_path / "test"
    test.write_bytes(compress(crfsuite(TEST).encode()))
    assert run(capsys, "tag", "-m", model, test)
    plain = tmp_path / f"train.tsv.{ending}"
    plain.write_bytes(compress(text(TRAIN).encode()))
    train(capsys, plain, model)
    out = tmp_path / f"out.tsv.{ending}"
    assert run(capsys, "tag", "-m", model, plain, "-o", out) == ""
    assert summary(capsys, "eval", out)["n_sequences"] == len(TRAIN)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_pipe_of_another_encoding(capsys, tmp_path, monkeypatch, encoding):
    model = tmp_path / "m.mm"
    words = text(TRAIN).replace("dog", "dög")
    train(capsys, write(tmp_path / "train.tsv", words), model)
    raw = io.BufferedReader(io.BytesIO(words.encode(encoding)))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    out = tmp_path / "out.tsv"
    given = ["tag", "-m", str(model), "--encoding", encoding, "-o", str(out)]
    assert main(given) == 0
    lines = out.read_bytes().decode(encoding).split("\n")
    assert [line.rpartition("\t")[0] for line in lines] == words.split("\n")


def test_bad_encodings(capsys, tmp_path):
    path = write(tmp_path / "x.tsv", "dög\tN\n".encode("latin-1"))
    model = tmp_path / "m.mm"
    assert "not UTF-8" in refused(capsys, "train", path, "-m", model)
    assert main(["train", str(path), "-m", str(model), "--encoding", "klingon"]) == 2
    assert "klingon" in capsys.readouterr().err
    write(tmp_path / "y.tsv", "a\tЖ\nb\tN\n")
    train(capsys, tmp_path / "y.tsv", model)
    message = refused(capsys, "tag", "-m", model, path, "--encoding", "latin-1")
    assert "the label 'Ж' cannot be written in iso8859-1" in message
