"""The registry of kinds of models: taggers are its first entry, and a second one is one class."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from maxmargin.cli.main import main
from maxmargin.errors import ModelFormatError
from maxmargin.io.columns import read_columns
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import TaggerModel
from maxmargin.models import kinds
from maxmargin.models.base import DescriptionRequest, InputFiles, ModelKind
from maxmargin.models.kinds import kind_named, kind_of, known_kinds, register

TRAIN = "the\tD\ndogs\tN\nbark\tV\n\ncats\tN\nsleep\tV\nthe\tD\n"


class Dictionary(ModelKind):
    """A label for each word; a model is a dict from word to label."""

    name = "dictionary"

    def save(self, path, model):
        codes = np.array([self.labels(model).index(label) for label in model.values()], np.uint8)
        return write_container(path, self.name, {"words": list(model)}, {"codes": codes})

    def load(self, path, function=None, *, mmap=False):
        assert function is None
        content = read_container(path, self.name, mmap=mmap)
        words, codes = content.meta["words"], content.arrays["codes"].tolist()
        return {word: "DNV"[code] for word, code in zip(words, codes, strict=True)}

    def load_estimator(self, path, template=None, *, mmap=False):
        return "the estimator of", self.load(path, template, mmap=mmap)

    def inputs(self, model):
        return InputFiles(columns=True, n_columns=2, label_column=1)

    def labels(self, model):
        return ["D", "N", "V"]

    def predict(self, model, data, threads=1):
        words = [row[0] for i in range(data.n_sequences) for row in data.native.rows(i, [0])]
        return np.array(["DNV".index(model.get(word, "N")) for word in words], np.int32)

    def describe(self, model, request):
        return {"labels": self.labels(model), "words": len(model), "longest": max(model, key=len)}


@pytest.fixture
def dictionary(monkeypatch):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))  # the registry is put back afterwards
    kind = Dictionary()
    register(kind)
    return kind


@pytest.fixture
def model(dictionary, tmp_path):
    """Return the file of a model of the second kind."""
    path = tmp_path / "train.tsv"
    path.write_text(TRAIN)
    words = dict(line.split("\t") for line in TRAIN.splitlines() if line)
    file = tmp_path / "m.mm"
    size = dictionary.save(file, words)
    assert file.stat().st_size == size
    return str(file)


def test_a_second_kind_is_saved_and_loaded(dictionary, model):
    assert kind_of(model) is dictionary is kind_named("dictionary")
    assert {"dictionary", "tagger"} < set(known_kinds())
    words = {"the": "D", "dogs": "N", "bark": "V", "cats": "N", "sleep": "V"}
    assert maxmargin.load(model) == ("the estimator of", words)
    with pytest.raises(ModelFormatError, match="holds a 'dictionary', expected a 'tagger'"):
        maxmargin.SequenceTagger.load(model)


def test_a_second_kind_predicts_on_the_command_line(model, tmp_path, capsys):
    new = tmp_path / "new.tsv"
    new.write_text("the\tX\nmice\tV\nsleep\tV\n\ncats\tN\n")
    tagged = tmp_path / "tagged.tsv"
    assert main(["tag", "-m", model, str(new), "-o", str(tagged)]) == 0
    assert tagged.read_text() == "the\tX\tD\nmice\tV\tN\nsleep\tV\tV\n\ncats\tN\tN\n"
    assert main(["eval", "-m", model, str(new), "--json", "--confusion"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["token_accuracy"], found["n_tokens"]) == (0.5, 4)
    assert "X" in found["confusion"]["labels"]  # which the model does not know


def test_a_second_kind_is_described(model, capsys):
    assert main(["info", model]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{model}: ")
    assert lines[1:] == [
        "  labels       3: D, N, V",
        "  words        5",
        "  longest      sleep",
    ]
    assert main(["info", model, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["words"] == 5


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["tag", "-m", "MODEL", "--scores"], "scores of tokens"),
        (["tag", "-m", "MODEL", "--nbest", "2"], "k best outputs"),
        (["info", "MODEL", "--template"], "template"),
        (["info", "MODEL", "--text"], "form as a text"),
    ],
)
def test_what_a_kind_does_not_have(model, tmp_path, capsys, command, what):
    arguments = [model if word == "MODEL" else word for word in command]
    if command[0] == "tag":
        arguments.append(str(tmp_path / "train.tsv"))
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert f"{model}: has no {what}, as it is of the kind 'dictionary'" in message


def test_two_kinds_of_one_name(dictionary):
    with pytest.raises(ValueError, match="there is a kind of models called 'dictionary' already"):
        register(Dictionary())


def test_a_kind_that_is_not_known(tmp_path, capsys):
    path = tmp_path / "m.mm"
    write_container(path, "hedge", {}, {})
    message = (
        f"{path}: holds a model of the kind 'hedge', which this version of maxmargin does not know"
        f"; expected one of {', '.join(map(repr, known_kinds()))}"
    )
    for use in (kind_of, maxmargin.load):
        with pytest.raises(ModelFormatError) as caught:
            use(path)
        assert str(caught.value) == message
    for command in (["info", str(path)], ["tag", "-m", str(path), str(path)]):
        assert main(command) == 2
        assert message in capsys.readouterr().err
    write_container(path, "\x1b" * 1000, {}, {})
    with pytest.raises(ModelFormatError) as caught:
        kind_of(path)
    assert str(caught.value).removeprefix(str(path)).isprintable()
    assert len(str(caught.value)) < 400 + len(str(path))


@pytest.fixture
def tagger(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(TRAIN)
    file = str(tmp_path / "tagger.mm")
    maxmargin.SequenceTagger.from_columns(path).save(file)
    return file


def test_looking_a_tagger_up_imports_nothing_that_is_large(tagger):
    program = (
        "import sys\n"
        "from maxmargin.models.base import DescriptionRequest\n"
        "from maxmargin.models.kinds import kind_of, known_kinds\n"
        "known_kinds()\n"
        "print(*[m for m in ('numpy', 'sklearn', 'scipy') if m in sys.modules])\n"
        "kind = kind_of(sys.argv[1])\n"
        "kind.describe(kind.load(sys.argv[1]), DescriptionRequest(selected=True))\n"
        "print(*[m for m in ('sklearn', 'scipy') if m in sys.modules])\n"
    )
    command = [sys.executable, "-c", program, tagger]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.split("\n") == ["", "", ""]


def test_the_functions_of_taggers(tagger, tmp_path):
    kind, loaded = kind_of(tagger), maxmargin.load(tagger)
    model = kind.load(tagger)
    assert isinstance(model, TaggerModel)
    again = tmp_path / "again.mm"
    kind.save(again, model)
    kind.save(tmp_path / "third.mm", kind.load(again))
    assert again.read_bytes() == (tmp_path / "third.mm").read_bytes()
    assert kind.describe(model, DescriptionRequest()) == kind.describe(
        kind.load(again), DescriptionRequest()
    )
    table, _ = read_columns(tmp_path / "train.tsv").labelled(-1)
    labels = kind.labels(model)
    codes = kind.predict(model, table)
    found = [labels[code] for code in codes.tolist()]
    assert found == [label for sequence in loaded.predict(table) for label in sequence]
    chosen, margins = kind.margins(model, table)
    assert chosen.tolist() == codes.tolist()
    assert min(margins) >= 0
    best = [outputs[0] for outputs in kind.kbest(model, table, 2)]
    assert np.concatenate([codes for _, codes in best]).tolist() == codes.tolist()
    expected = loaded.predict_kbest(table, 1)
    np.testing.assert_allclose([score for score, _ in best], [p[0][1] for p in expected])
    inputs = kind.inputs(model)
    assert (inputs.columns, inputs.n_columns, inputs.label_column) == (True, 2, 1)


def test_a_model_that_was_trained_without_a_column_of_labels(tmp_path, capsys):
    table = maxmargin.ColumnTable.from_rows([[("dogs",), ("bark",)]])
    path, file = str(tmp_path / "m.mm"), tmp_path / "test.tsv"
    maxmargin.SequenceTagger(template="words").fit(table, [["N", "V"]]).save(path)
    file.write_text("dogs\nbark\n")
    assert main(["eval", "-m", path, str(file)]) == 2
    assert f"{path}: was trained on rows without labels" in capsys.readouterr().err
