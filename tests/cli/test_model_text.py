"""`maxmargin info --text`: a model as a text that has all of it, exactly."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from maxmargin.cli.main import main
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.tagger_file import load_tagger, save_tagger
from maxmargin.io.tagger_file import weights as file_weights
from maxmargin.models import text as model_text
from maxmargin.models import weight_rows
from maxmargin.models.text import write_text
from maxmargin.structures.chain import Chain

ROWS = [
    [("the", "D"), ("dogs", "N"), ("bark", "V"), ("the", "D")],
    [("cats", "N"), ("sleep", "V"), ("#", "N"), ("a\\b", "V")],
]
TABLE = ColumnTable.from_rows(ROWS)
TAGS = [[row[1] for row in rows] for rows in ROWS]
WORDS = [[[f"w={row[0]}", "bias"] for row in rows] for rows in ROWS]
PAIRS = Template.parse("U:w0=%x[0,0]\n*both=%x[0,0]\nB01:%x[-1,0]/%x[0,0]\nB\n", "pairs.template")
META = {"certificate": {"primal": 2.0, "dual": 1.5, "C": 0.25, "n_examples": 2}}


def dense(columns):
    rng = np.random.default_rng(3)
    return [rng.normal(size=(len(tags), columns)) for tags in TAGS]


KINDS = {
    "template": (TemplateEncoder(Template.load("words"), label_column=1), TABLE),
    "pairs": (TemplateEncoder(PAIRS, label_column=1), TABLE),
    "hashed template": (
        TemplateEncoder(Template.load("words"), label_column=1, hash_bits=8),
        TABLE,
    ),
    "strings": (FeatureEncoder(), WORDS),
    "hashed strings": (FeatureEncoder(hash_bits=7), WORDS),
    "dense": (FeatureEncoder(), dense(12)),
    "sparse": (FeatureEncoder(), [scipy.sparse.csr_array(x) for x in dense(12)]),
    "strings+dense": (FeatureEncoder(), list(zip(WORDS, dense(12), strict=True))),
}


def save(path, kind="pairs", dtype="float32", density=0.4, *, X=None, tags=TAGS):
    """Save a model with random weights of all sizes."""
    encoder, given = KINDS[kind]
    chain = Chain(encoder=encoder)
    chain.prepare(given if X is None else X, tags)
    rng = np.random.default_rng(5)
    n = chain.n_features
    w = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, size=n) * (rng.random(n) < density)
    save_tagger(path, chain, np.asarray(chain.pad(w.astype(dtype), dtype)), META)


ESCAPED = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[\\tnr#\[])")
LISTS = {"[transition]": "transitions", "[start]": "start", "[end]": "end", "[pair]": "pairs"}


def unescaped(field):
    def character(match):
        code = match[1]
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return {"t": "\t", "n": "\n", "r": "\r"}.get(code, code)

    return ESCAPED.sub(character, field)


def read_text(path):
    """Read a text as the description of `maxmargin.models.text` says it is written."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    *lines, last = text.split("\n")
    assert last == ""
    comments = [line[2:].split(": ", 1) for line in lines if line.startswith("#")]
    found = {key: json.loads(value) for key, value in comments}
    assert found.pop("maxmargin model") == 1
    dtype = np.dtype(found["dtype"]).type
    label_of = {str(label): label for label in found["labels"]}
    for kind in ("weights", *LISTS.values()):
        found[kind] = []
    for line in lines[len(comments) :]:
        *fields, weight = line.split("\t")
        kind = LISTS.get(fields[0], "weights")
        names = [unescaped(field) for field in fields[0 if kind == "weights" else 1 :]]
        n_names = 1 if kind in ("weights", "pairs") else 0
        labels = [label_of[name] for name in names[n_names:]]
        found[kind].append((*names[:n_names], *labels, dtype(weight).item()))
    return found


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def by_text(entries):
    return sorted(entries, key=lambda entry: [str(part) for part in entry[:-1]])


def expected(path):
    """Return what the text of a model must have, the slow way."""
    model = load_tagger(path)
    chain, weights = model.chain, model.weights
    full = weights if isinstance(weights, np.ndarray) else weights.dense()
    coef, transition, start, end, pairs = chain.unpack(full)
    names, labels = chain.encoder.feature_names(), chain.labels_
    pair_names = chain.encoder.pair_names() if chain.encoder.n_pair else []

    def listed(array, *axes):
        return by_text(
            (*(axis[k] for axis, k in zip(axes, place, strict=True)), array[place].item())
            for place in zip(*(k.tolist() for k in np.nonzero(array)), strict=True)
        )

    return {
        "weights": listed(coef, names, labels),
        "transitions": listed(transition, labels, labels),
        "start": listed(start, labels),
        "end": listed(end, labels),
        "pairs": listed(pairs, pair_names, labels, labels),
    }


@pytest.fixture(params=["as loaded", "sparse"])
def form(request, monkeypatch):
    """Small models are loaded as full matrices; let them stay sparse, as large ones do."""
    if request.param == "sparse":
        monkeypatch.setattr(file_weights, "FULL_BYTES", 0)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_has_all_of_the_model(tmp_path, capsys, monkeypatch, kind, dtype):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    for together, density in itertools.product([1, 20, 1 << 18], [0.05, 0.4, 1.0]):
        for module in (model_text, weight_rows):
            monkeypatch.setattr(module, "_TOGETHER", together)  # many small blocks, or one
        save(path, kind, dtype, density)
        assert main(["info", str(path), "--text", str(text)]) == 0
        assert capsys.readouterr() == ("", "")
        found = read_text(text)
        right = expected(path)
        assert {key: found[key] for key in right} == right  # the order too
        if density == 1:
            assert len(right["pairs"]) == 9 * load_tagger(path).chain.encoder.n_pair
            assert (kind == "pairs") == bool(right["pairs"])
        assert found["labels"] == ["D", "N", "V"]
        assert found["certificate"] == {"primal": 2.0, "dual": 1.5, "gap": 0.25, "C": 0.25}
        assert found["dtype"] == dtype
        source = {"template": "template 'words'", "pairs": "pairs.template"}
        assert found["template"] == source.get(kind.removeprefix("hashed "))
    assert files(tmp_path) == ["m.mm", "m.txt"]


def test_how_it_looks(tmp_path, capsysbinary):
    path = tmp_path / "m.mm"
    chain = Chain(encoder=TemplateEncoder(PAIRS, label_column=1))
    chain.prepare(TABLE, TAGS)
    w = np.zeros(chain.n_features, dtype="float32")
    weights = chain.pad(w, "float32")
    coef, transition, start, end, pairs = chain.unpack(weights)
    names, pair_names = chain.encoder.feature_names(), chain.encoder.pair_names()
    at = {label: k for k, label in enumerate(chain.labels_)}
    coef[names.index("U:w0=the"), at["D"]] = 0.1
    coef[names.index("U:w0=the"), at["N"]] = -1e-7
    coef[names.index("*both=dogs"), at["N"]] = 1 / 3
    coef[names.index("U:w0=a\\b"), at["V"]] = 2
    transition[at["D"], at["N"]] = 1.5
    start[at["D"]], end[at["V"]] = 0.125, -0.5
    pairs[pair_names.index("B01:the/dogs"), at["D"], at["N"]] = 0.7
    save_tagger(path, chain, np.asarray(weights), META)
    assert main(["info", str(path), "--text"]) == 0
    out, err = capsysbinary.readouterr()
    assert err == b""
    assert out.decode().splitlines() == [
        "# maxmargin model: 1",
        '# labels: ["D", "N", "V"]',
        '# features: "template"',
        '# certificate: {"primal": 2.0, "dual": 1.5, "gap": 0.25, "C": 0.25}',
        '# template: "pairs.template"',
        '# dtype: "float32"',
        "*both=dogs\tN\t0.33333334",
        "U:w0=a\\\\b\tV\t2.0",
        "U:w0=the\tD\t0.1",
        "U:w0=the\tN\t-1e-07",
        "[transition]\tD\tN\t1.5",
        "[start]\tD\t0.125",
        "[end]\tV\t-0.5",
        "[pair]\tB01:the/dogs\tD\tN\t0.7",
    ]
    assert main(["info", str(path), "--text", "-"]) == 0
    assert capsysbinary.readouterr().out == out


STRANGE = ["#", "#a\tb", "[start]", "[end]", "[transition]", "[pair]", "[x]", "\\[start]", "a\tb"]
STRANGE += ["c\n", "\r", "\\", "\\t", "\\x41", "\x1b[2J", "\x85", "\u2028", "\xa0", "é", "😀"]
STRANGE += ["\U000e0001", "dense:0", " ", "\x00"]


def test_strange_names_and_labels(tmp_path):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    tokens = [[[name] for name in STRANGE]]
    save(path, "strings", density=1.0, X=tokens, tags=[[*STRANGE]])
    write_text(text, load_tagger(path))
    found, right = read_text(text), expected(path)
    assert {key: found[key] for key in right} == right
    assert {entry[0] for entry in found["weights"]} == {*STRANGE}
    lines = text.read_bytes().decode().split("\n")
    assert all(line.replace("\t", "").isprintable() for line in lines)
    assert len(lines) == 6 + sum(map(len, right.values())) + 1


def test_names_that_are_the_same(tmp_path):
    # Features are told apart by each value: "ab" and "c" are not "a" and "bc".
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    table = ColumnTable.from_rows([[("ab", "c", "N"), ("a", "bc", "V")]])
    chain = Chain(encoder=TemplateEncoder(Template.parse("U%x[0,0]%x[0,1]\n"), label_column=2))
    chain.prepare(table, [["N", "V"]])
    weights = chain.pad(np.arange(1, chain.n_features + 1, dtype="float32"), "float32")
    save_tagger(path, chain, np.asarray(weights), {})
    assert write_text(text, load_tagger(path)) == chain.n_features
    found = read_text(text)
    assert [entry[:2] for entry in found["weights"]] == [("Uabc", "N"), ("Uabc", "V")] * 2
    assert {entry[2] for entry in found["weights"]} == {1.0, 2.0, 3.0, 4.0}
    assert found["certificate"] is None


def test_labels_that_are_numbers(tmp_path):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    save(path, density=1.0, tags=[[3, 10, 2, 3], [10, 2, 10, 2]])
    write_text(text, load_tagger(path))
    found, right = read_text(text), expected(path)
    assert {key: found[key] for key in right} == right
    assert [label for label, _ in found["start"]] == [10, 2, 3]  # as texts
    assert found["labels"] == [2, 3, 10]


def test_labels_that_are_the_same_as_texts(tmp_path, capsys):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    save(path, tags=[[1, "1", 2, 1], [1, 2, 2, 1]])
    assert main(["info", str(path), "--text", str(text)]) == 2
    assert "found the labels 1 and '1'; expected labels that differ as texts" in (
        capsys.readouterr().err
    )
    assert not text.exists()


def test_json_and_gzip(tmp_path, capsys):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt.gz"
    save(path)
    assert main(["info", str(path), "--text", str(text), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["text"] == {"file": str(text), "weights": summary["n_nonzero"]}
    lines = gzip.decompress(text.read_bytes()).decode().splitlines()
    assert len(lines) == 6 + summary["n_nonzero"]
    assert sum(map(len, expected(path).values())) == summary["n_nonzero"]
    assert read_text(text)["labels"] == ["D", "N", "V"]


def test_a_model_of_nothing(tmp_path):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    for kind in KINDS:
        save(path, kind, density=0.0)
        assert write_text(text, load_tagger(path)) == 0
        assert read_text(text)["weights"] == []


def test_names_of_a_hashed_model_are_not_listed(tmp_path, monkeypatch):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    save(path, "hashed template")
    monkeypatch.setattr(TemplateEncoder, "feature_names", None)
    write_text(text, load_tagger(path))
    assert read_text(text)["weights"][0][0].startswith("hash:")


def test_files_that_cannot_be_written(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path)
    before = path.read_bytes()

    def refused(text):
        assert main(["info", str(path), "--text", str(text)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    missing = tmp_path / "missing" / "m.txt"
    assert f"{missing}: no such file or directory" in refused(missing)
    assert f"{tmp_path}: is a directory" in refused(tmp_path)
    assert f"{path / 'm.txt'}: not a directory" in refused(path / "m.txt")
    assert "is the model itself; expected another file" in refused(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert "is the model itself" in refused(link)
    assert path.read_bytes() == before
    assert files(tmp_path) == ["link", "m.mm"]
    if Path("/dev/full").exists():
        assert "no space left" in refused("/dev/full").lower()
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert f"{locked / 'm.txt'}: permission denied" in refused(locked / "m.txt")
    assert main(["info", str(path), "--text", "--template"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_an_error_leaves_the_old_text(tmp_path, monkeypatch):
    path, text = tmp_path / "m.mm", tmp_path / "m.txt"
    save(path)
    text.write_text("old")
    monkeypatch.setattr(model_text, "_nonzero", None)
    with pytest.raises(TypeError):
        write_text(text, load_tagger(path))
    assert text.read_text() == "old"
    assert files(tmp_path) == ["m.mm", "m.txt"]


def test_a_reader_that_has_seen_enough(tmp_path):
    path = tmp_path / "m.mm"
    save(path, "hashed template", density=1.0)
    command = f'"{sys.executable}" -m maxmargin info "{path}" --text | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, check=True, text=True)
    assert (done.stdout, done.stderr) == ("# maxmargin model: 1\n", "")
