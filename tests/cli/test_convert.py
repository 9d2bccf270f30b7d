"""`maxmargin convert`: every pair of formats, there and back; bad inputs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from maxmargin.cli.main import main
from maxmargin.features.template import Template
from maxmargin.io.columns import read_columns
from maxmargin.io.crfsuite import read_crfsuite
from maxmargin.io.svmhmm import read_svmhmm
from reference_template import expand

# Cells with what the formats have a meaning for: colons, backslashes, @, #, umlauts.
ROWS = [
    [("At", "IN", "B-PP"), ("9:30", "CD", "B:X"), ("\\o/", "SYM", "O\\x")],
    [("@home", "NN", "O"), ("#1", "CD", "B-NP"), ("Äther", "NN", "I-NP"), ("a:b:2", ":", "O")],
    [("At", "IN", "B-PP")],
]
LABELS = [[row[-1] for row in rows] for rows in ROWS]
WEIGHTED = "@weight:2.5\nN\ta\tb:0.1\n\nV\ta:3\tc\\:d\nN\n\n"
NUMBERED = "1 qid:1 3:0.5 7:1\n2 qid:1 7:2\n1 qid:2 12:1\n"
CONLLU = (
    "# sent_id = 1\n"
    "1-2\tvom\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tvon\tvon\tADP\tX\t_\t2\tcase\t_\t_\n"
    "2\tdem\tder\tDET\tY\tCase=Dat\t0\troot\t_\t_\n"
    "\n"
    "1\tGeh\tgehen\tVERB\tZ\tMood=Imp\t0\troot\t_\t_\n"
    "\n"
)

FUNCTIONS = '''
def lists(rows):
    return [["w=" + row[0], "p:" + row[1]] for row in rows]

def dicts(rows):
    return [{"w": row[0], "length": len(row[0]) / 2, "none": 0, "first": t == 0}
            for t, row in enumerate(rows)]

def fails(rows):
    return [rows[0][5]]

def short(rows):
    return []

def breaks(rows):
    return [["a\\tb"] for row in rows]

constant = 3
'''


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("\n".join("".join("\t".join(r) + "\n" for r in rows) for rows in ROWS))
    return path


@pytest.fixture
def functions(tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    return path


def convert(capsys, *arguments):
    """Run the command with --json; return its summary."""
    assert main(["convert", *map(str, arguments), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return json.loads(out)


def refused(capsys, *arguments):
    """Run the command, which must fail; return the one line that it writes."""
    assert main(["convert", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def features(items):
    return [items.features(i) for i in range(len(items))]


def as_sets(sequences):
    """Features by token, without their order; a name that comes twice is there once."""
    return [[set(token) for token in tokens] for tokens in sequences]


def expanded(template):
    sequences = [expand(Template.load(template), rows) for rows in ROWS]
    return [[[(name, 1.0) for name in token] for token in tokens] for tokens in sequences]


# --- from columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize("template", ["words", "chunking", "pos", "ner"])
def test_columns_to_crfsuite(source, tmp_path, capsys, template):
    out = tmp_path / "out.crfsuite"
    summary = convert(capsys, source, out, "--template", template)
    items = read_crfsuite(out)
    assert as_sets(features(items)) == as_sets(expanded(template))
    assert items.labels() == LABELS
    assert items.sequence_weight is None
    assert summary == {
        "input": str(source),
        "output": str(out),
        "from": "conll",
        "to": "crfsuite",
        "n_sequences": 3,
        "n_tokens": 8,
        "n_features": len(items.vocabulary),
        "bytes": out.stat().st_size,
    }


def test_crfsuite_keeps_the_order_of_the_template(source, tmp_path, capsys):
    convert(capsys, source, tmp_path / "out.items")
    lines = (tmp_path / "out.items").read_text().split("\n")
    written = [[field.replace("\\:", ":").replace("\\\\", "\\") for field in line.split("\t")[1:]]
               for line in lines if line]
    assert written == [[name for name, _ in token] for rows in expanded("words") for token in rows]
    assert lines[1].startswith("B\\:X\t")


def test_a_name_that_two_lines_give_is_there_once(source, tmp_path, capsys):
    (tmp_path / "t").write_text("U:%x[0,0]\nU:%X[0,0]\nU:%x[0,1]\n")
    convert(capsys, source, tmp_path / "out.items", "--template", tmp_path / "t")
    assert {v for rows in features(read_crfsuite(tmp_path / "out.items")) for t in rows
            for _, v in t} == {1.0}


@pytest.mark.parametrize("template", ["words", "chunking"])
def test_columns_to_svmhmm(source, tmp_path, capsys, template):
    out, listed = tmp_path / "out.svmhmm", tmp_path / "names"
    summary = convert(capsys, source, out, "--template", template, "--features", listed)
    names = dict(line.split("\t") for line in listed.read_text().splitlines())
    assert list(names) == [str(k + 1) for k in range(summary["n_features"])]
    items = read_svmhmm(out)
    named = [[[(names[k], v) for k, v in t] for t in rows] for rows in features(items)]
    assert as_sets(named) == as_sets(expanded(template))
    assert items.labels() == LABELS
    for line in out.read_text().splitlines():
        numbers = [int(word.split(":")[0]) for word in line.split(" ")[2:]]
        assert numbers == sorted(numbers)
    assert out.read_text().startswith("B-PP qid:1 1:1 2:1 ")


@pytest.mark.parametrize("where", ["features", "labels", "both"])
def test_numeric_labels(source, tmp_path, capsys, where):
    out, names, labels = tmp_path / "out.dat", tmp_path / "f", tmp_path / "l"
    flags = [] if where == "labels" else ["--features", names]
    flags += [] if where == "features" else ["--labels", labels]
    convert(capsys, source, out, "--numeric-labels", *flags)
    if where == "features":
        lines = [line for line in names.read_text().splitlines() if line.startswith("#")]
        table = dict(line.removeprefix("# label ").split("\t") for line in lines)
    else:
        table = dict(line.split("\t") for line in labels.read_text().splitlines())
    assert sorted(table) == [str(k + 1) for k in range(len(table))]
    assert [[table[k] for k in rows] for rows in read_svmhmm(out).labels()] == LABELS
    if where == "both":
        assert "#" not in {line[0] for line in names.read_text().splitlines()}


def test_functions(source, functions, tmp_path, capsys):
    out = tmp_path / "out.crfsuite"
    convert(capsys, source, out, "--template", f"{functions}:lists")
    expected = [[[("w=" + r[0], 1.0), ("p:" + r[1], 1.0)] for r in rows] for rows in ROWS]
    assert as_sets(features(read_crfsuite(out))) == as_sets(expected)
    convert(capsys, source, out, "--template", f"{functions}:dicts")
    expected = [
        [
            {("w:" + r[0], 1.0), ("length", len(r[0]) / 2), *([("first", 1.0)] if t == 0 else [])}
            for t, r in enumerate(rows)
        ]
        for rows in ROWS
    ]
    assert as_sets(features(read_crfsuite(out))) == expected
    out, names = tmp_path / "out.svm", tmp_path / "names"
    convert(capsys, source, out, "--template", f"{functions}:dicts", "--features", names)
    table = dict(line.split("\t") for line in names.read_text().splitlines())
    found = [[{(table[k], v) for k, v in t} for t in rows] for rows in features(read_svmhmm(out))]
    assert found == expected


def test_label_column(source, tmp_path, capsys):
    convert(capsys, source, tmp_path / "out.crfsuite", "--label-column", 1)
    items = read_crfsuite(tmp_path / "out.crfsuite")
    assert items.labels() == [[row[1] for row in rows] for rows in ROWS]


def test_columns_to_columns(tmp_path, capsys):
    source, out = tmp_path / "in", tmp_path / "out.tsv"
    source.write_text("\n# no\na  b\r\nc d\n\n\n\ne f")
    summary = convert(capsys, source, out, "--comments", "# ")
    assert out.read_bytes() == b"a\tb\nc\td\n\ne\tf\n\n"
    assert summary["n_features"] is None
    assert (summary["n_sequences"], summary["n_tokens"], summary["bytes"]) == (2, 3, 14)
    packed = tmp_path / "out.tsv.gz"
    convert(capsys, out, packed)
    assert gzip.decompress(packed.read_bytes()) == out.read_bytes()
    convert(capsys, packed, tmp_path / "again.conll")
    assert (tmp_path / "again.conll").read_bytes() == out.read_bytes()


def test_conllu(tmp_path, capsys):
    source = tmp_path / "in.conllu"
    source.write_text(CONLLU)
    out = tmp_path / "out.txt"
    convert(capsys, source, out, "--from", "conllu", "--columns", "form,feats.Case,upos")
    assert out.read_text() == "von\t_\tADP\ndem\tDat\tDET\n\nGeh\t_\tVERB\n\n"
    for name, read in (("o.crfsuite.gz", read_crfsuite), ("o.svm", read_svmhmm)):
        convert(capsys, source, tmp_path / name, "--from", "conllu")
        assert read(tmp_path / name).labels() == [["ADP", "DET"], ["VERB"]]


# --- from items -----------------------------------------------------------------------------------


def test_crfsuite_to_crfsuite_keeps_weights_and_values(tmp_path, capsys):
    source, out = tmp_path / "in", tmp_path / "out.crfsuite"
    source.write_text(WEIGHTED)
    convert(capsys, source, out, "--from", "crfsuite")
    before, after = read_crfsuite(source), read_crfsuite(out)
    assert features(after) == features(before)
    assert after.labels() == before.labels()
    np.testing.assert_array_equal(after.sequence_weight, before.sequence_weight)
    assert out.read_text() == WEIGHTED.replace("\n\nV", "\n\n@weight:1\nV")


def test_crfsuite_to_svmhmm_and_back(tmp_path, capsys):
    source, out, names = tmp_path / "in", tmp_path / "out.svm", tmp_path / "names"
    source.write_text(WEIGHTED)
    arguments = ["convert", source, out, "--from", "crfsuite", "--features", names]
    assert main([*map(str, arguments)]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{source}: svmhmm files have no weights of sequences" in err
    assert out.read_text() == "N qid:1 1:1 2:0.1\nV qid:2 1:3 3:1\nN qid:2\n"
    assert names.read_text() == "1\ta\n2\tb\n3\tc:d\n"
    back = tmp_path / "back.crfsuite"
    convert(capsys, out, back, "--from", "svmhmm")
    assert back.read_text() == "N\t1\t2:0.1\n\nV\t1:3\t3\nN\n\n"


def test_svmhmm_keeps_its_numbers(tmp_path, capsys):
    source, out = tmp_path / "in", tmp_path / "out.svm"
    source.write_text(f"9 qid:5 {2**63 + 5}:1\n" + NUMBERED.replace("qid:", "qid:1"))
    convert(capsys, source, out, "--from", "svmhmm")
    before, after = read_svmhmm(source), read_svmhmm(out)
    assert as_sets(features(after)) == as_sets(features(before))
    assert after.labels() == before.labels()
    assert out.read_text().startswith(f"9 qid:1 {2**63 + 5}:1\n1 qid:2 3:0.5 7:1\n2 qid:2 7:2\n")


# --- where it goes --------------------------------------------------------------------------------


def test_the_same_file(source, capsys):
    wanted = as_sets(expanded("words"))
    convert(capsys, source, source, "--to", "crfsuite")
    assert as_sets(features(read_crfsuite(source))) == wanted
    convert(capsys, source, source, "--from", "crfsuite", "--to", "crfsuite")
    assert as_sets(features(read_crfsuite(source))) == wanted


def test_standard_output(source, tmp_path, capfd):
    assert main(["convert", str(source), "-", "--to", "crfsuite"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    (tmp_path / "x").write_text(out)
    assert read_crfsuite(tmp_path / "x").labels() == LABELS
    assert main(["convert", str(source), "-", "--to", "crfsuite", "--json"]) == 0
    with_json = capfd.readouterr().out
    assert with_json.startswith(out)
    assert json.loads(with_json[len(out) :])["bytes"] == len(out.encode())


def test_text_for_people(source, tmp_path, capsys):
    out = tmp_path / "out.crfsuite"
    assert main(["convert", str(source), str(out)]) == 0
    told, err = capsys.readouterr()
    assert err == ""
    assert told.startswith(f"{out}: conll -> crfsuite: 3 sequences, 8 tokens, ")


def test_as_a_process(source):
    command = [sys.executable, "-m", "maxmargin", "convert", "-", "-", "--to", "conll", "--json"]
    done = subprocess.run(command, input=source.read_bytes(), capture_output=True, check=True)
    assert done.stderr == b""
    data, _, last = done.stdout.rstrip(b"\n").rpartition(b"\n")
    assert json.loads(last)["n_tokens"] == 8
    assert data.split() == source.read_bytes().split()


# --- bad inputs -----------------------------------------------------------------------------------


def test_bad_files(source, tmp_path, capsys):
    out = tmp_path / "out.crfsuite"
    missing = tmp_path / "missing.tsv"
    assert f"{missing}: no such file or directory" in refused(capsys, missing, out)
    assert f"{tmp_path}: is a directory" in refused(capsys, tmp_path, out)
    assert f"{source}: line 1: " in refused(capsys, source, out, "--from", "svmhmm")
    assert f"{source}: line 1: " in refused(capsys, source, out, "--from", "conllu")
    broken = tmp_path / "broken.tsv"
    broken.write_text("a\tN\nb\n")
    assert f"{broken}: line 2" in refused(capsys, broken, out)
    broken.write_text("1 qid:1 1:1\n2 qid:1\n")
    assert "looks like svmhmm" in refused(capsys, broken, out)
    broken.write_text("")
    assert str(broken) in refused(capsys, broken, out)
    assert not out.exists()


def test_bad_columns_and_templates(source, functions, tmp_path, capsys):
    out = tmp_path / "out.crfsuite"

    def error(*arguments):
        return refused(capsys, source, out, *arguments)

    assert f"{source}: label column 3 is out of range" in error("--label-column", 3)
    assert "no built-in called 'wrods'" in error("--template", "wrods")
    message = error("--template", "chunking", "--label-column", 1)
    assert "holds the labels" in message
    assert str(source) in message
    narrow = tmp_path / "narrow.tsv"
    narrow.write_text("a\tN\n")
    wide = tmp_path / "wide"
    wide.write_text("U:%x[0,7]\n")
    message = refused(capsys, narrow, out, "--template", wide)
    assert f"{wide}, line 1" in message
    assert f"{narrow} has columns 0 to 1" in message
    message = error("--template", f"{functions}:fails")
    assert f"template {functions}:fails, at {source}: IndexError: " in message
    assert "0 tokens for sequence 0" in error("--template", f"{functions}:short")
    assert "'a\\tb'" in error("--template", f"{functions}:breaks")
    assert "no function 'constant'" in error("--template", f"{functions}:constant")
    assert "no function 'nothing'" in error("--template", f"{functions}:nothing")
    assert "no_such_module" in error("--template", "no_such_module:f")
    assert "missing.py: no such file" in error("--template", f"{tmp_path}/missing.py:f")
    assert not out.exists()


def test_labels_that_a_format_cannot_hold(tmp_path, capsys):
    source = tmp_path / "in.tsv"
    source.write_text("a\t@N\nb\tN P\n")
    message = refused(capsys, source, tmp_path / "o.crfsuite")
    assert f"{source}: found the label '@N'" in message
    message = refused(capsys, source, tmp_path / "o.svm")
    assert f"{source}: " in message
    assert "'N P'" in message
    assert [p.name for p in tmp_path.iterdir()] == ["in.tsv"]


def test_what_cannot_be_turned_into_what(source, tmp_path, capsys):
    items = tmp_path / "in.items"
    items.write_text(WEIGHTED)
    for kind in ("crfsuite", "svmhmm"):
        message = refused(capsys, items, tmp_path / "o.tsv", "--from", kind)
        assert f"{items}: {kind} cannot be turned into conll: its features are expanded" in message
    for kind in ("conll", "crfsuite", "svmhmm", "conllu"):
        message = refused(capsys, items, tmp_path / "o.conllu", "--from", kind)
        assert f"{kind} cannot be turned into conllu" in message
    assert "add --to" in refused(capsys, source, tmp_path / "o.what")
    assert "add --to" in refused(capsys, source, "-")
    message = refused(capsys, items, tmp_path / "o.svm", "--from", "crfsuite", "--template", "pos")
    assert "--template is for columns" in message
    assert "--template" in refused(capsys, source, tmp_path / "o.tsv", "--template", "pos")
    assert "svmhmm" in refused(capsys, source, tmp_path / "o.items", "--features", tmp_path / "f")
    assert "--labels FILE" in refused(capsys, source, tmp_path / "o.svm", "--numeric-labels")
    assert "--numeric-labels" in refused(capsys, source, tmp_path / "o.svm", "--labels", "l")
    twice = tmp_path / "o.svm"
    assert f"{twice}: is to be written twice" in refused(capsys, source, twice, "--features", twice)
    assert "--to" in refused(capsys, source, twice, "--to", "xml")


def test_output_that_cannot_be_written(source, tmp_path, capsys):
    folder = tmp_path / "none" / "o.svm"
    assert f"{folder}: no such file or directory" in refused(capsys, source, folder)
    message = refused(capsys, source, tmp_path, "--to", "svmhmm")
    assert f"{tmp_path}: is a directory" in message
    out = tmp_path / "o.svm"
    listed = tmp_path / "none" / "f"
    assert f"{listed}: no such file" in refused(capsys, source, out, "--features", listed)
    assert [p.name for p in tmp_path.iterdir()] == ["in.tsv"]
    assert read_columns(source).n_tokens == 8


def test_a_model_becomes_a_text(tmp_path, capsys):
    train, model, text = tmp_path / "t.tsv", tmp_path / "m.mm", tmp_path / "m.txt"
    train.write_text("dogs\tN\nbark\tV\n\ncats\tN\nsleep\tV\n")
    assert main(["train", str(train), "-m", str(model), "-q"]) == 0
    assert main(["convert", str(model), str(text), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["from"] == "tagger"
    assert summary["weights"] > 0
    by_info = tmp_path / "i.txt"
    assert main(["info", str(model), "--text", str(by_info)]) == 0
    assert text.read_bytes() == by_info.read_bytes()
    assert main(["convert", str(model), str(model)]) == 2
    assert "is the model itself" in capsys.readouterr().err
