"""`maxmargin info`: sizes, certificate, strongest weights, for every kind of features."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from maxmargin.cli import info
from maxmargin.cli.main import main
from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.tagger_file import save_tagger
from maxmargin.io.tagger_file import weights as file_weights
from maxmargin.models import selected, weight_rows
from maxmargin.structures.chain import Chain

ROWS = [[("the", "D"), ("dogs", "N"), ("bark", "V")], [("cats", "N"), ("sleep", "V")]]
WORDS_TEMPLATE = Template.load("words")
TABLE = ColumnTable.from_rows(ROWS)
TAGS = [[row[1] for row in rows] for rows in ROWS]
WORDS = [[[f"w={row[0]}"] for row in rows] for rows in ROWS]
META = {
    "certificate": {"primal": 2.0, "dual": 1.5, "C": 0.25, "n_examples": 2},
    "training": {"solver": "sdm", "n_features": 99, "stop": {"gap": 0.01, "time": None}},
    "params": {"C": 0.25, "warm": False, "grid": [1.0, 2.5]},
}


def by_function(rows):
    return [[f"w={row[0]}"] for row in rows]


def dense(columns):
    rng = np.random.default_rng(3)
    return [rng.normal(size=(len(tags), columns)) for tags in TAGS]


KINDS = {
    "template": (TemplateEncoder(WORDS_TEMPLATE, label_column=1), TABLE),
    "hashed template": (TemplateEncoder(WORDS_TEMPLATE, label_column=1, hash_bits=6), TABLE),
    "function": (FunctionEncoder(by_function, label_column=1), TABLE),
    "strings": (FeatureEncoder(), WORDS),
    "hashed strings": (FeatureEncoder(hash_bits=5), WORDS),
    "dense": (FeatureEncoder(), dense(4)),
    "sparse": (FeatureEncoder(), [scipy.sparse.csr_array(x) for x in dense(4)]),
    "strings+dense": (FeatureEncoder(), list(zip(WORDS, dense(3), strict=True))),
}


def save(path, kind="template", dtype="float32", density=0.3, *, meta=META, tags=TAGS):
    """Save a model with random weights; return its chain and its full matrix of weights."""
    encoder, X = KINDS[kind]
    chain = Chain(encoder=encoder)
    chain.prepare(X, tags)
    rng = np.random.default_rng(5)
    w = rng.normal(size=chain.n_features) * (rng.random(chain.n_features) < density)
    save_tagger(path, chain, np.asarray(chain.pad(w.astype(dtype), dtype)), meta)
    return chain, w.astype(dtype).reshape(-1, chain.n_labels)


def information(capsys, *arguments):
    assert main(["info", *map(str, arguments), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def expected_top(chain, matrix, n, label=None):
    names = chain.encoder.feature_names()
    every = [
        (float(matrix[j, k]), names[j], chain.labels_[k])
        for j in range(len(names))
        for k in range(chain.n_labels)
        if matrix[j, k] != 0 and label in (None, chain.labels_[k])
    ]
    every.sort()
    positive = [entry for entry in reversed(every) if entry[0] > 0][:n]
    return positive + [entry for entry in every if entry[0] < 0][:n]


@pytest.fixture(params=["as loaded", "sparse"])
def form(request, monkeypatch):
    """Small models are loaded as full matrices; let them stay sparse, as large ones do."""
    if request.param == "sparse":
        monkeypatch.setattr(file_weights, "FULL_BYTES", 0)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    "numbers", [(dtype, density) for dtype in ("float32", "float64") for density in (0.05, 0.3, 1)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_info_agrees_with_the_full_matrix(tmp_path, capsys, monkeypatch, kind, numbers):
    monkeypatch.setattr(weight_rows, "_TOGETHER", 7)  # many small blocks
    path = tmp_path / "m.mm"
    chain, matrix = save(path, kind, *numbers)
    for label in (None, "N"):
        of_label = [] if label is None else ["--label", label]
        found = information(capsys, path, "--top", 6, *of_label)
        top = [(entry["weight"], entry["feature"], entry["label"]) for entry in found["top"]]
        assert top == expected_top(chain, matrix, 6, label)
    assert found["n_nonzero"] == np.count_nonzero(matrix)
    L = chain.n_labels
    assert (found["n_labels"], found["labels"]) == (L, ["D", "N", "V"])
    assert found["n_weights"] == (found["n_features"] + L + 2) * L
    assert found["n_bytes"] == path.stat().st_size
    assert found["format_version"] == 1
    assert found["certificate"] == {"primal": 2.0, "dual": 1.5, "gap": 0.25, "C": 0.25}
    assert found["training"] == META["training"]
    assert found["params"] == META["params"]
    assert found["n_features_trained"] == 99
    assert (found["template"] is not None) == ("template" in kind)


@pytest.mark.usefixtures("form")
def test_transitions(tmp_path, capsys):
    chain, matrix = save(tmp_path / "m.mm", density=1.0)
    labels = [*chain.labels_, None]
    L = chain.n_labels
    square = np.zeros((L + 1, L + 1))
    square[:L, :L], square[L, :L], square[:L, L] = matrix[-L - 2 : -2], matrix[-2], matrix[-1]
    every = {
        (labels[p], labels[q]): square[p, q] for p in range(L + 1) for q in range(L + 1)
    }
    del every[None, None]
    found = information(capsys, tmp_path / "m.mm", "--transitions")
    assert {(e["from"], e["to"]): e["weight"] for e in found["transitions"]} == every
    found = information(capsys, tmp_path / "m.mm", "--transitions", "--label", "N")
    mine = {pair: weight for pair, weight in every.items() if "N" in pair}
    assert {(e["from"], e["to"]): e["weight"] for e in found["transitions"]} == mine
    short = information(capsys, tmp_path / "m.mm")["transitions"]
    signs = [entry["weight"] > 0 for entry in short]
    assert signs == sorted(signs, reverse=True)
    assert max(signs.count(True), signs.count(False)) <= info.FEW_TRANSITIONS
    assert short[0]["weight"] == max(every.values())


def test_text_for_people(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path)
    assert main(["info", str(path), "--top", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{path}: ")
    assert "of 99 in training (template)" in out
    assert "3: D, N, V" in out
    assert "primal 2, dual 1.5: within 25 % of the optimum (C = 0.25)" in out
    assert "    solver:     sdm\n" in out
    assert "    stop.gap:   0.01\n" in out
    assert "    stop.time:  none\n" in out
    assert "  parameters\n    C:    0.25\n    grid: 1, 2.5\n    warm: no\n" in out
    assert "template 'words', 15 lines of features\n    U:w-2=%x[-2,0]\n" in out
    weights = out.split("strongest weights\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0][0] for line in weights] == ["+", "+", "-", "-"]


def test_the_template_can_be_redirected(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path)
    assert main(["info", str(path), "--template"]) == 0
    assert capsys.readouterr().out == BUILTIN_TEMPLATES["words"]
    found = information(capsys, path, "--template")
    assert found["template_text"] == BUILTIN_TEMPLATES["words"]


def test_nothing_but_what_is_needed(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path, meta={}, density=0.0)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "certificate  none" in out
    assert "strongest" not in out
    found = information(capsys, path, "--top", 0)
    assert found["certificate"] is None
    assert found["training"] == {}
    assert found["top"] == found["transitions"] == []


def test_names_that_move_the_cursor_are_escaped(tmp_path, capsys):
    path = tmp_path / "m.mm"
    tokens = [[["\x1b[2J"], ["b\nc"]]]
    chain = Chain()
    chain.prepare(tokens, [["N", "V"]])
    save_tagger(path, chain, np.asarray(chain.pad(np.ones(chain.n_features), "float32")), {})
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out
    assert "b\\nc" in out


def test_labels_that_are_numbers(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path, tags=[[3, 1, 2], [1, 2]], density=1.0)
    found = information(capsys, path, "--label", "2")
    assert {entry["label"] for entry in found["top"]} == {2}
    assert found["labels"] == [1, 2, 3]


LINES = """\
U:w0=%x[0,0]
U:w0,+1=%x[0,0]|%x[1,0]
U%x[0,0]%x[1,0]!
U99
*both=%x[0,0]
B01:%x[-1,0]/%x[0,0]
B
"""


@pytest.mark.usefixtures("form")
def test_what_was_selected_by_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(weight_rows, "_TOGETHER", 7)  # many small blocks
    path = tmp_path / "m.mm"
    template = Template.parse(LINES, "my.template")
    chain = Chain(encoder=TemplateEncoder(template, label_column=1))
    chain.prepare(TABLE, TAGS)
    rng = np.random.default_rng(5)
    w = rng.normal(size=chain.n_features) * (rng.random(chain.n_features) < 0.3)
    weights = np.asarray(chain.pad(w.astype("float32"), "float32"))
    save_tagger(path, chain, weights, META)
    coef, transition, start, end, pairs = chain.unpack(weights)
    parts = [*zip(chain.encoder.feature_names(), coef, strict=True)]
    parts += [*zip(chain.encoder.pair_names(), pairs, strict=True)]
    counts = {}
    for name, part in parts:
        line = {"U:w0=": 0, "U:w0,": 1, "*both": 4, "B01:": 5, "U99": 3}
        k = next((k for begin, k in line.items() if name.startswith(begin)), 2)
        n = np.count_nonzero(part)
        features, total = counts.get(k, (0, 0))
        counts[k] = (features + (n > 0), total + n)
    found = information(capsys, path, "--selected")
    assert found["selected"]["lines"] == [
        {"line": text, "features": counts[k][0], "weights": counts[k][1]}
        for k, text in enumerate(LINES.splitlines()[:6])
    ]
    of_label = np.count_nonzero(coef, axis=0) + np.count_nonzero(pairs, axis=(0, 1))
    expected = dict(zip(chain.labels_, of_label.tolist(), strict=True))
    assert found["selected"]["labels"] == [
        {"label": label, "weights": expected[label]} for label in ("D", "N", "V")
    ]
    edges = sum(np.count_nonzero(part) for part in (transition, start, end))
    assert found["selected"]["transitions"] == edges
    assert found["n_nonzero"] == of_label.sum() + edges
    assert "selected" not in information(capsys, path)
    assert main(["info", str(path), "--selected"]) == 0
    tables = capsys.readouterr().out.split("\n\nnot zero, by ")[1:]
    assert [table.splitlines()[0] for table in tables] == ["line of the template", "label"]
    rows = [line.split() for line in tables[0].splitlines()[2:]]
    assert rows == [[*map(str, counts[k]), LINES.splitlines()[k]] for k in range(6)]
    assert tables[1].splitlines()[2].split() == [str(expected["D"]), "D"]
    assert tables[1].splitlines()[-1].split()[0] == str(edges)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_selected_is_all_that_is_not_zero(tmp_path, capsys, kind):
    path = tmp_path / "m.mm"
    chain, matrix = save(path, kind)
    found = information(capsys, path, "--selected")["selected"]
    n = chain.encoder.n_sparse + chain.encoder.n_dense
    of_label = np.count_nonzero(matrix[:n], axis=0)
    columns = {label: k for k, label in enumerate(chain.labels_)}
    assert [entry["label"] for entry in found["labels"]] == chain.classes_
    for entry in found["labels"]:
        assert entry["weights"] == of_label[columns[entry["label"]]]
    assert found["transitions"] == np.count_nonzero(matrix[n:])
    groups = {"function": ["w"], "strings": ["w"], "strings+dense": ["dense", "w"]}
    if kind == "template":
        expected = [line.text for line in WORDS_TEMPLATE.lines if line.unigram]
    else:
        expected = groups.get(kind, [])
    assert [entry["line"] for entry in found["lines"]] == expected
    if expected:
        assert sum(entry["weights"] for entry in found["lines"]) == of_label.sum()
        used = np.count_nonzero(matrix[:n].any(axis=1))
        assert sum(entry["features"] for entry in found["lines"]) == used
    assert main(["info", str(path), "--selected"]) == 0
    assert ("not zero, by kind of feature" in capsys.readouterr().out) == (kind in groups)


def test_groups_of_features_that_are_texts(tmp_path, capsys):
    path = tmp_path / "m.mm"

    def groups(names):
        chain = Chain()
        chain.prepare([[[name] for name in names]], [["N", "V"] * (len(names) // 2)])
        save_tagger(path, chain, np.asarray(chain.pad(np.ones(chain.n_features), "float32")), {})
        found = information(capsys, path, "--selected")["selected"]["lines"]
        return {entry["line"]: (entry["features"], entry["weights"]) for entry in found}

    assert groups(["w=a:b", "w:a=b", "w:c", "bias", ":x", "=y"]) == {
        "": (2, 4), "bias": (1, 2), "w": (3, 6)
    }  # fmt: skip
    many = [f"{k}:x" for k in range(selected.MOST_GROUPS)]
    assert len(groups(many)) == selected.MOST_GROUPS
    assert groups([*many, "a", "b"]) == {}


def test_lines_are_found_by_their_literals():
    texts = ["U:a=%x[0,0]|%x[1,0]", "U:a=%x[0,0]", "U%x[0,0]%x[1,0].b", "U.b", "*"]
    texts.append("Ux|%x[0,0]|y|y")
    find = selected._line_finder(list(Template.parse("\n".join(texts)).lines))
    names = {"U:a=x|y": 0, "U:a=|": 0, "U:a=x": 1, "U:a=x.b": 1, "U:a=\n": 1, "U.b": 2, "Uxy.b": 2}
    names |= {"*": 4, "Ux||y|y": 5, "Ux|y|y|y": 5, "Ux|y|y": None, "Ucb": None, "*x": None}
    assert {name: find(name) for name in names} == names
    # No name is looked at again and again.
    lines = Template.parse("U:" + "%x[0,0]a" * 30).lines
    assert selected._line_finder(list(lines))("U:" + "a" * 10000 + "b") is None


def test_a_name_that_fits_no_line(tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.mm"
    save(path, density=1.0)
    monkeypatch.setattr(selected, "_line_finder", lambda _: lambda _: None)
    *lines, rest = information(capsys, path, "--selected")["selected"]["lines"]
    assert all(entry["features"] == 0 for entry in lines)
    assert rest["line"] is None
    assert rest["features"] > 0
    assert main(["info", str(path), "--selected"]) == 0
    assert "(no line fits)" in capsys.readouterr().out


def test_names_of_a_hashed_model_are_not_listed(tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.mm"
    save(path, "hashed template", density=1.0)
    monkeypatch.setattr(TemplateEncoder, "feature_names", None)
    found = information(capsys, path, "--selected")
    assert found["top"][0]["feature"].startswith("hash:")
    assert found["selected"]["lines"] == []


def refused(capsys, *arguments):
    assert main(["info", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_bad_input(tmp_path, capsys):
    path = tmp_path / "m.mm"
    save(path, "function")
    assert f"{path}: has no label 'X'; expected one of D, N, V" in refused(
        capsys, path, "--label", "X"
    )
    assert f"{path}: has no template" in refused(capsys, path, "--template")
    text = tmp_path / "t.tsv"
    text.write_text("dogs\tN\n")
    assert f"{text}: not a maxmargin model" in refused(capsys, text)
    missing = tmp_path / "missing.mm"
    assert f"{missing}: no such file or directory" in refused(capsys, missing)
    assert f"{tmp_path}: is a directory" in refused(capsys, tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    assert str(path) in refused(capsys, path)
    path.write_bytes(b"")
    assert str(path) in refused(capsys, path)
    assert "--top" in refused(capsys, path, "--top", -1)
    refused(capsys)


def test_as_a_process(tmp_path):
    path = tmp_path / "m.mm"
    save(path)
    command = [sys.executable, "-m", "maxmargin", "info", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stderr == ""
    assert json.loads(done.stdout.splitlines()[-1])["n_labels"] == 3
