"""SequenceTagger on column files: templates, saving, loading, and its twin, the command line."""

from __future__ import annotations

import copy
import dataclasses
import fractions
import gzip
import io
import json
import math
import pickle
import signal
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import (
    BCFW,
    L1,
    L2,
    SAP,
    SDM,
    ColumnTable,
    ElasticNet,
    L1Ball,
    NSlack,
    OneSlack,
    SequenceTagger,
    Subgradient,
    Template,
    read_columns,
)
from maxmargin.cli.main import main
from maxmargin.errors import (
    ConvergenceWarning,
    FileFormatError,
    ModelFormatError,
    NotCompatibleError,
)
from maxmargin.estimators.trained_meta import set_training
from maxmargin.features import LabelCodes
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger

TEXT = "U:w=%x[0,0]\nU:w-1=%x[-1,0]\nU:s=%s[0,0,2]\nU:p=%x[0,1]\nB\n"


def rows(n, seed):
    """Rows of (word, part of speech, chunk)."""
    rng = np.random.default_rng(seed)
    words = {"DT": ["the", "a", "Élan"], "NN": ["dog", "cat", "run"], "VB": ["runs", "run", "42"]}
    sequences = []
    for _ in range(n):
        tags = ["DT", "NN", "VB", "DT", "NN"][: rng.integers(1, 6)]
        chunks = {"DT": "B-NP", "NN": "I-NP", "VB": "O"}
        sequences.append([[str(rng.choice(words[tag])), tag, chunks[tag]] for tag in tags])
    return sequences


ROWS, NEW = rows(30, 0), rows(15, 1)
LABELS, NEW_LABELS = ([[row[2] for row in x] for x in some] for some in (ROWS, NEW))
INPUTS, NEW_INPUTS = ([[row[:2] for row in x] for x in some] for some in (ROWS, NEW))


def text_of(sequences):
    return "\n".join("".join("\t".join(row) + "\n" for row in x) for x in sequences)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(text_of(ROWS))
    return path


@pytest.fixture
def new_file(tmp_path):
    path = tmp_path / "new.tsv"
    path.write_text(text_of(NEW))
    return path


def table(sequences=ROWS):
    return ColumnTable.from_rows(sequences).labelled(-1)


def fitted(**options):
    options = {"template": "chunking", "C": 0.5, "random_state": 0, **options}
    return SequenceTagger(**options).fit(*table())


def words_and_tags(sequence):
    """Features by a function, at the top of a module, so that they can be pickled."""
    return [{"w": row[0], "p": row[1], "first": t == 0} for t, row in enumerate(sequence)]


def by_name(tagger):
    """Return {(feature, label): weight}, without zeros."""
    names, classes = tagger.get_feature_names_out().tolist(), tagger.classes_.tolist()
    assert len(set(names)) == len(names)
    coef = tagger.coef_
    places = np.argwhere(coef != 0).tolist()
    return {(names[j], classes[k]): coef[j, k] for j, k in places}


def assert_same_model(a, b):
    assert a.classes_.tolist() == b.classes_.tolist()
    assert by_name(a) == by_name(b)
    for name in ("transitions_", "start_", "end_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.certificate_ == b.certificate_
    for new in (ColumnTable.from_rows(NEW), ColumnTable.from_rows(NEW_INPUTS)):
        assert a.predict(new).tolist() == b.predict(new).tolist()


# --- columns as X ---


def test_a_table_as_x():
    tagger = fitted()
    assert tagger.converged_
    assert tagger.score(*table()) > 0.95
    new, labels = table(NEW)
    answers = tagger.predict(new)
    assert [len(answer) for answer in answers] == [len(x) for x in NEW]
    assert tagger.score(new, labels) == tagger.score(new, NEW_LABELS) > 0.8
    right = np.concatenate(answers) == np.concatenate(NEW_LABELS)
    assert tagger.score(new, labels) == pytest.approx(right.mean())
    found = tagger.predict_kbest(new, 3)
    assert [paths[0][0] for paths in found] == answers.tolist()
    scores = tagger.score_labellings(new, [paths[0][0] for paths in found])
    np.testing.assert_allclose(scores, [paths[0][1] for paths in found], rtol=1e-5)
    np.testing.assert_array_equal(
        tagger.score_labellings(new, labels), tagger.score_labellings(new, NEW_LABELS)
    )
    for marginals, answer, best in zip(tagger.decision_function(new), answers, scores, strict=True):
        assert tagger.classes_[marginals.argmax(axis=1)].tolist() == answer
        np.testing.assert_allclose(marginals.max(axis=1), best, rtol=1e-5)
    assert not hasattr(tagger, "n_features_in_")
    assert len(tagger.get_feature_names_out()) == len(tagger.coef_)


def test_rows_of_str_are_a_table():
    tagger = fitted()
    options = {"template": "chunking", "C": 0.5, "random_state": 0}
    lists = SequenceTagger(**options).fit(INPUTS, LABELS)
    assert_same_model_of_rows(tagger, lists)
    tuples = [[tuple(row) for row in x] for x in INPUTS]
    assert_same_model_of_rows(tagger, SequenceTagger(**options).fit(tuples, table()[1]))
    expected = tagger.predict(NEW).tolist()
    assert lists.predict(NEW_INPUTS).tolist() == expected
    assert tagger.predict(NEW_INPUTS).tolist() == expected
    # one column may be plain strings
    words = [[row[0] for row in x] for x in ROWS]
    plain = SequenceTagger(template="words", random_state=0).fit(words, LABELS)
    nested = SequenceTagger(template="words", random_state=0)
    nested.fit([[[word] for word in x] for x in words], LABELS)
    np.testing.assert_array_equal(plain.weights_, nested.weights_)
    assert plain.predict(words).tolist() == nested.predict(words).tolist()


def assert_same_model_of_rows(a, b):
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.get_feature_names_out().tolist() == b.get_feature_names_out().tolist()
    assert a.predict(NEW_INPUTS).tolist() == b.predict(NEW_INPUTS).tolist()


def test_label_codes_as_y():
    X, codes = table()
    assert isinstance(codes, LabelCodes)
    lists = SequenceTagger(template="chunking", C=0.5, random_state=0).fit(X, codes.sequences())
    assert_same_model(fitted(), lists)
    features = [[["w:" + row[0]] for row in x] for x in ROWS]  # codes need no table
    a = SequenceTagger(random_state=0).fit(features, codes)
    b = SequenceTagger(random_state=0).fit(features, LABELS)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.score(features, codes) == b.score(features, LABELS)
    order = ["O", "I-NP", "X", "B-NP"]
    explicit = fitted(labels=order)
    assert explicit.classes_.tolist() == order
    with pytest.raises(ValueError, match="'I-NP'"):
        fitted(labels=["O", "B-NP"])


def test_kinds_of_templates(tmp_path):
    path = tmp_path / "template.txt"
    path.write_text(TEXT)
    taggers = [fitted(template=spec) for spec in (str(path), path, Template.parse(TEXT))]
    for tagger in taggers[1:]:
        assert_same_model(taggers[0], tagger)
    names = taggers[0].get_feature_names_out().tolist()
    assert "U:w=dog" in names
    assert "U:w-1=_B-1" in names
    assert "U:p=NN" in names
    assert not any("NP" in name for name in names)  # the labels are no feature


def test_min_count():
    counts = {}
    for x in ROWS:
        for row in x:
            counts[f"U:w={row[0]}"] = counts.get(f"U:w={row[0]}", 0) + 1
    least = sorted(counts.values())[2]
    tagger = fitted(template=Template.parse("U:w=%x[0,0]\nB\n"), min_count=least)
    expected = {name for name, count in counts.items() if count >= least}
    assert 0 < len(expected) < len(counts)
    assert set(tagger.get_feature_names_out()) == expected
    strings = SequenceTagger(min_count=least, random_state=0)
    strings.fit([[[f"U:w={row[0]}"] for row in x] for x in ROWS], LABELS)
    assert set(strings.get_feature_names_out()) == expected


def test_hash_bits():
    tagger = fitted(hash_bits=10)
    assert tagger.coef_.shape == (1024, 3)
    assert tagger.get_feature_names_out()[5] == "hash:5"
    assert tagger.score(*table()) > 0.9
    assert tagger.predict(NEW).tolist() == tagger.predict(NEW_INPUTS).tolist()
    strings = SequenceTagger(hash_bits=6, random_state=0).fit(
        [[[f"w={row[0]}"] for row in x] for x in ROWS], LABELS
    )
    assert strings.coef_.shape == (64, 3)


def test_a_function_as_template():
    tagger = fitted(template=words_and_tags)
    dicts = SequenceTagger(C=0.5, random_state=0)
    dicts.fit([words_and_tags(x) for x in INPUTS], LABELS)
    np.testing.assert_array_equal(tagger.weights_, dicts.weights_)
    assert tagger.get_feature_names_out().tolist() == dicts.get_feature_names_out().tolist()
    expected = dicts.predict([words_and_tags(x) for x in NEW_INPUTS]).tolist()
    for new in (ColumnTable.from_rows(NEW), ColumnTable.from_rows(NEW_INPUTS), NEW_INPUTS):
        assert tagger.predict(new).tolist() == expected
    # a function makes features of anything
    texts = [" ".join(row[0] for row in x).split(" ") for x in ROWS]
    other = SequenceTagger(template=lambda x: [{"w": word} for word in x]).fit(texts, LABELS)
    assert len(other.predict(texts)) == len(texts)


# --- files ---


def test_from_columns(file, tmp_path):
    options = {"template": "chunking", "C": 0.5, "random_state": 0}
    tagger = SequenceTagger.from_columns(file, **options)
    assert_same_model(tagger, fitted())
    assert tagger.get_params()["template"] == "chunking"
    packed = tmp_path / "train.tsv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    spaces = text_of(ROWS).replace("\t", " ").encode()
    for source in (packed, str(file), io.BytesIO(spaces)):
        assert_same_model(SequenceTagger.from_columns(source, **options), tagger)
    read = read_columns(file)
    assert (read.n_sequences, read.n_columns) == (len(ROWS), 3)
    assert read.rows() == ROWS
    assert tagger.predict(read).tolist() == tagger.predict(INPUTS).tolist()


def test_from_columns_with_another_label_column(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("# about the file\n" + text_of([[row[::-1] for row in x] for x in ROWS]))
    template = Template.parse("U:w=%x[0,2]\nU:p=%x[0,1]\nB\n")
    options = {"template": template, "label_column": 0, "comment": "#", "separator": "tab"}
    tagger = SequenceTagger.from_columns(path, **options, C=0.5, random_state=0)
    assert tagger.classes_.tolist() == ["B-NP", "I-NP", "O"]
    back = [[row[1::-1] for row in x] for x in NEW]  # without the label
    turned = [[row[::-1] for row in x] for x in NEW]
    assert tagger.predict(back).tolist() == tagger.predict(turned).tolist()
    with pytest.raises(ValueError, match="label column 3 is out of range"):
        SequenceTagger.from_columns(path, **{**options, "label_column": 3})
    with pytest.raises(ValueError, match="names column 0, which holds the labels"):
        SequenceTagger.from_columns(path, comment="#", label_column=0)


def test_bad_files(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("a\tB\nb\n")
    with pytest.raises(FileFormatError, match=r"train\.tsv: line 2: found 1 column"):
        SequenceTagger.from_columns(path)
    path.write_text("\n\n")
    with pytest.raises(FileFormatError, match="holds no tokens"):
        SequenceTagger.from_columns(path)
    with pytest.raises(FileNotFoundError):
        SequenceTagger.from_columns(tmp_path / "none.tsv")


# --- saving and loading ---

KINDS = {
    "template": {},
    "words": {"template": Template.parse(TEXT), "min_count": 2},
    "hashed": {"hash_bits": 9},
    "double": {"dtype": "float64", "gap": 1e-4},
    "allowed": {"allowed": "iob2", "labels": ["O", "I-NP", "B-NP"], "C": 0.01},
    "function": {"template": words_and_tags},
    "hashed function": {"template": words_and_tags, "hash_bits": 8},
}


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(kind, tmp_path):
    tagger, path = fitted(**KINDS[kind]), tmp_path / "model.mm"
    function = words_and_tags if "function" in kind else None
    assert tagger.save(path) == path.stat().st_size
    for load in (SequenceTagger.load, maxmargin.load):
        twin = load(path, function)
        assert type(twin) is SequenceTagger
        assert twin.weights_.ctypes.data % 32 == 0
        assert twin.weights_.dtype == tagger.weights_.dtype
        assert_same_model(tagger, twin)
        # A file has the features in another order, so that sums are rounded differently.
        np.testing.assert_allclose(
            twin.score_labellings(NEW_INPUTS, NEW_LABELS),
            tagger.score_labellings(NEW_INPUTS, NEW_LABELS),
            rtol=1e-5,
        )
        for a, b in zip(twin.decision_function(NEW), tagger.decision_function(NEW), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    # parameters
    mine, loaded = tagger.get_params(), twin.get_params()
    assert mine.keys() == loaded.keys()
    template = mine.pop("template")
    if function is None:
        assert loaded.pop("template") == Template.load(template)
    else:
        assert loaded.pop("template") is function
    assert mine == loaded
    # how it was trained
    assert len(twin.history_) == 0
    for name in ("certificate_", "converged_", "stop_reason_", "n_iter_", "n_examples_"):
        assert getattr(twin, name) == getattr(tagger, name)
    # again
    again = tmp_path / "again.mm"
    twin.save(again)
    assert_same_model(SequenceTagger.load(again, function), tagger)
    first, second = load_tagger(path, function), load_tagger(again, function)
    assert first.meta["certificate"] == second.meta["certificate"]
    assert first.meta["encoder"]["n_sparse"] == second.meta["encoder"]["n_sparse"]
    # and training again is training for the first time
    twin.fit(*table())
    np.testing.assert_array_equal(twin.weights_, tagger.weights_)
    assert len(twin.history_) == len(tagger.history_) > 0


def test_save_and_load_without_template(tmp_path):
    rng = np.random.default_rng(0)
    kinds = {
        "strings": [[["w:" + row[0]] for row in x] for x in ROWS],
        "dicts": [[{"w": row[0], "n": 0.5} for row in x] for x in ROWS],
        "dense": [rng.normal(size=(len(x), 3)) for x in ROWS],
    }
    for X in kinds.values():
        tagger = SequenceTagger(random_state=0).fit(X, LABELS)
        tagger.save(tmp_path / "model.mm")
        twin = maxmargin.load(tmp_path / "model.mm")
        assert twin.template is None
        assert twin.predict(X).tolist() == tagger.predict(X).tolist()
        assert by_name(twin) == by_name(tagger)
        twin.fit(X, LABELS)
        np.testing.assert_array_equal(twin.weights_, tagger.weights_)


def test_what_a_file_cannot_hold_is_left_out(tmp_path):
    def allowed(previous, following):
        return following != "I-NP" or previous in ("B-NP", "I-NP")

    state = np.random.RandomState(0)
    tagger = fitted(allowed=allowed, random_state=state, callbacks=[lambda record: False], C=0.01)
    tagger.save(tmp_path / "model.mm")
    twin = maxmargin.load(tmp_path / "model.mm")
    assert (twin.random_state, twin.callbacks, twin.C) == (None, None, 0.01)
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()  # the mask itself is there
    # but nobody can make it again for other labels
    with pytest.raises(NotCompatibleError, match=r"allowed is not known.*set_params\(allowed="):
        twin.fit(*table())
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()
    twin.set_params(allowed=allowed).fit(*table())
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()


def test_saving_replaces_a_file_or_leaves_it(tmp_path):
    path = tmp_path / "model.mm"
    path.write_text("something else")
    with pytest.raises(NotFittedError):
        SequenceTagger(template="words").save(path)
    assert path.read_text() == "something else"
    odd = SequenceTagger().fit([[["a"], ["b"]]], [[("x", 1), ("y", 2)]])
    with pytest.raises(TypeError, match="a model file holds labels that are str, int"):
        odd.save(path)
    assert path.read_text() == "something else"
    fitted().save(path)
    assert_same_model(maxmargin.load(path), fitted())
    assert [p.name for p in tmp_path.iterdir()] == ["model.mm"]
    with pytest.raises(OSError):
        fitted().save(tmp_path / "nowhere" / "model.mm")


def test_loading_what_is_no_model(tmp_path):
    path = tmp_path / "model.mm"
    with pytest.raises(FileNotFoundError):
        maxmargin.load(path)
    path.write_text("no model at all")
    with pytest.raises(ModelFormatError, match=r"model\.mm"):
        maxmargin.load(path)
    fitted().save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFormatError, match=r"model\.mm"):
        maxmargin.load(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((("params",), 1.5), (("params",), None), (("training",), []), (("certificate",), "x")),
        *((("training", "passes"), "many"), (("training", "passes"), 1.5)),
        *((("certificate", "n_examples"), [3]), (("certificate", "primal"), "small")),
        (("certificate", "C"), {}),
    ],
)
def test_loading_what_is_told_of_the_training(place, value, tmp_path):
    path = tmp_path / "model.mm"
    fitted().save(path)
    container = read_container(path)
    inner = container.meta
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    write_container(path, container.kind, container.meta, container.arrays)
    with pytest.raises(ModelFormatError, match=rf"model\.mm: .*{place[-1]}.* is .*; expected a"):
        maxmargin.load(path)


def test_a_model_of_a_function_needs_it(tmp_path):
    path = tmp_path / "model.mm"
    fitted(template=words_and_tags).save(path)
    with pytest.raises(ValueError, match=r"by the function .*:words_and_tags.* pass it when load"):
        maxmargin.load(path)
    assert maxmargin.load(path, template=words_and_tags).template is words_and_tags


@pytest.mark.parametrize("template", ["words", 3])
def test_a_model_of_a_function_takes_nothing_else(template, tmp_path):
    path = tmp_path / "model.mm"
    fitted(template=words_and_tags).save(path)
    with pytest.raises((TypeError, ValueError), match=r"template|function"):
        maxmargin.load(path, template=template)


# --- the twin ---


def train(*arguments):
    assert main(["train", *map(str, arguments), "-q"]) == 0


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {}),
        (["-C", "1.5", "--gap", "1e-4"], {"C": 1.5, "gap": 1e-4}),
        (["--dtype", "float64", "--allowed", "iob2"], {"dtype": "float64", "allowed": "iob2"}),
        (["--min-count", "3"], {"min_count": 3}),
        (["--max-passes", "3"], {"max_passes": 3}),
    ],
)
def test_the_command_line_gives_the_same_model(file, tmp_path, capsys, flags, options):
    path = tmp_path / "cli.mm"
    train(file, "-m", path, "--template", "chunking", *flags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after 3 passes; the file says it
        tagger = SequenceTagger.from_columns(file, template="chunking", random_state=0, **options)
    loaded = maxmargin.load(path)
    assert_same_model(tagger, loaded)
    for name in ("converged_", "stop_reason_", "n_iter_", "n_examples_"):
        assert getattr(tagger, name) == getattr(loaded, name)
    for name in ("C", "gap", "dtype", "allowed", "min_count", "max_passes", "hash_bits", "solver"):
        assert getattr(tagger, name) == getattr(loaded, name)
    # and says the same
    own, new_file = tmp_path / "python.mm", tmp_path / "new.tsv"
    new_file.write_text(text_of(NEW))
    tagger.save(own)
    answers = []
    for model in (path, own):
        capsys.readouterr()
        assert main(["tag", "-m", str(model), str(new_file)]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    last = [[line.split("\t")[-1] for line in x.splitlines()] for x in answers[0].split("\n\n")]
    assert [x for x in last if x] == tagger.predict(read_columns(new_file)).tolist()


def test_the_command_line_with_hashing(file, tmp_path):
    path = tmp_path / "cli.mm"
    train(file, "-m", path, "--hash-bits", "9", "--template", "words")
    tagger = SequenceTagger.from_columns(file, hash_bits=9, random_state=0)
    np.testing.assert_array_equal(maxmargin.load(path).weights_, tagger.weights_)
    assert_same_model(maxmargin.load(path), tagger)


def test_the_command_line_with_a_function(file, tmp_path):
    code = tmp_path / "feats.py"
    code.write_text(
        "def words_and_tags(sequence):\n"
        "    return [{'w': row[0], 'p': row[1], 'first': t == 0}\n"
        "            for t, row in enumerate(sequence)]\n"
    )
    path = tmp_path / "cli.mm"
    train(file, "-m", path, "--template", f"{code}:words_and_tags")
    tagger = SequenceTagger.from_columns(file, template=words_and_tags, random_state=0)
    assert_same_model(maxmargin.load(path, words_and_tags), tagger)


def test_the_summary_of_the_command_line(file, tmp_path, capsys):
    path = tmp_path / "cli.mm"
    assert main(["train", str(file), "-m", str(path), "--template", "chunking", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    tagger = SequenceTagger.from_columns(file, template="chunking", random_state=0)
    assert summary["primal"] == tagger.certificate_.primal
    assert summary["dual"] == tagger.certificate_.dual
    assert summary["n_features"] == len(tagger.coef_)
    assert summary["n_sequences"] == tagger.n_examples_
    assert summary["passes"] == tagger.n_iter_
    assert summary["oracle_calls"] == tagger.history_[-1].oracle_calls


def test_the_command_line_scores_a_model_of_python(file, new_file, tmp_path, capsys):
    path = tmp_path / "python.mm"
    tagger = SequenceTagger.from_columns(file, template="chunking", random_state=0)
    tagger.save(path)
    assert main(["eval", "-m", str(path), str(new_file), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["token_accuracy"] == pytest.approx(tagger.score(*table(NEW)))


SVMHMM = "1 qid:1 1:1 2:0.5\n2 qid:1 3:1\n1 qid:2 1:1\n2 qid:2 3:2\n"


def test_a_model_saved_again_is_read_by_the_command_line(tmp_path, capsys):
    data, models = tmp_path / "data.svm", [tmp_path / "a.mm", tmp_path / "b.mm"]
    data.write_text(SVMHMM)
    train(data, "--format", "svmhmm", "-m", models[0])
    maxmargin.load(models[0]).save(models[1])
    answers = []
    for model in models:
        capsys.readouterr()
        code = main(["tag", "-m", str(model), str(data)])
        answers.append((code, capsys.readouterr().out))
    assert answers[0][0] == 0
    assert answers[0] == answers[1]
    metas = [read_container(model).meta for model in models]
    for key in ("format", "training", "certificate"):
        assert metas[0][key] == metas[1][key]


# --- scikit-learn ---


@pytest.mark.parametrize("kind", KINDS)
def test_pickle_and_copy(kind):
    tagger = fitted(**KINDS[kind])
    for twin in (pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)):
        assert_same_model(tagger, twin)
        assert twin.history_ == tagger.history_
        assert twin.get_params() == tagger.get_params()
        again = pickle.loads(pickle.dumps(twin))
        assert_same_model(tagger, again)
        twin.fit(*table())
        np.testing.assert_array_equal(twin.weights_, tagger.weights_)


def test_a_copy_is_saved_like_the_original(tmp_path):
    tagger = fitted()
    pickle.loads(pickle.dumps(tagger)).save(tmp_path / "model.mm")
    assert_same_model(maxmargin.load(tmp_path / "model.mm"), tagger)


def test_a_loaded_tagger_is_pickled(tmp_path):
    tagger = fitted()
    tagger.save(tmp_path / "model.mm")
    twin = pickle.loads(pickle.dumps(maxmargin.load(tmp_path / "model.mm")))
    (tmp_path / "model.mm").unlink()
    assert_same_model(twin, tagger)


def test_clone_and_parameters(tmp_path):
    tagger = fitted(template=Template.parse(TEXT), min_count=2)
    twin = clone(tagger)
    assert not hasattr(twin, "weights_")
    assert twin.get_params() == tagger.get_params()
    np.testing.assert_array_equal(twin.fit(*table()).weights_, tagger.weights_)
    twin.set_params(template="words", min_count=1, hash_bits=8).fit(*table())
    assert twin.coef_.shape == (256, 3)
    tagger.save(tmp_path / "model.mm")
    loaded = clone(maxmargin.load(tmp_path / "model.mm")).fit(*table())
    np.testing.assert_array_equal(loaded.weights_, tagger.weights_)
    assert "template='words'" in repr(SequenceTagger(template="words"))
    # parameters are only stored; what is wrong with them is said at fit
    for bad in ({"template": "nothing"}, {"template": 3}, {"min_count": 0}, {"hash_bits": 99}):
        unfit = SequenceTagger(**bad)
        with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
            unfit.fit(*table())


def test_model_selection_with_a_template():
    only_words, both = Template.parse("U:%x[0,0]\n"), Template.parse("U:%x[0,0]\nU:p%x[0,1]\n")
    tagger = SequenceTagger(C=0.5, random_state=0)
    search = GridSearchCV(tagger, {"template": [only_words, both, words_and_tags]}, cv=2)
    search.fit(INPUTS, LABELS)
    assert search.best_score_ > 0.8
    best = clone(tagger).set_params(**search.best_params_).fit(INPUTS, LABELS)
    np.testing.assert_array_equal(search.best_estimator_.weights_, best.weights_)


@pytest.mark.parametrize("change", [{"template": "words"}, {"min_count": 2}, {"hash_bits": 9}])
def test_warm_start_knows_the_template(change):
    tagger = fitted(warm_start=True).set_params(C=1.0).fit(*table())
    cold = fitted(C=1.0).certificate_
    assert tagger.certificate_.primal == pytest.approx(cold.primal, rel=0.02)
    with pytest.raises(ValueError, match="warm_start=True goes on"):
        tagger.set_params(**change).fit(*table())


# --- bad input ---


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (ColumnTable.from_rows([[["a"]]]), "X: found 1 column; expected 3, as in training"),
        (ColumnTable.from_rows([[["a"] * 4]]), "X: found 4 columns; expected 3, as in training"),
        ([[["a"]]], r"found 1 column; expected 3.*label in column 2.*or 2 without the label"),
        ([[{"w": "a"}]], "sequence 0, token 0: found a dict; expected .* list of str"),
        ([[["a", 1]]], "sequence 0, token 0: column 1 is an int"),
        ([[["a", "b"], ["a"]]], "sequence 0, token 1.*1 column"),
        ([np.eye(2)], "expected a str"),
        ("text", "found a str|is a str"),
        (None, "None"),
    ],
)
def test_bad_columns_at_prediction(X, message):
    tagger = fitted()
    for call in (tagger.predict, tagger.decision_function):
        with pytest.raises((ValueError, TypeError), match=message):
            call(X)


@pytest.mark.parametrize("template", ["words", "chunking", Template.parse(TEXT)])
def test_features_where_columns_are_expected(template):
    dicts = [[{"w": row[0]} for row in x] for x in ROWS]
    tagger = SequenceTagger(template=template)
    with pytest.raises(TypeError, match=r"sequence 0, token 0: found a dict; expected .* of str"):
        tagger.fit(dicts, LABELS)
    assert not hasattr(tagger, "weights_")
    with pytest.raises(TypeError, match="expected a str"):
        tagger.fit([np.ones((len(x), 2)) for x in ROWS], LABELS)


def test_columns_where_features_are_expected():
    with pytest.raises(TypeError, match="X is a ColumnTable"):
        SequenceTagger().fit(*table())


def test_a_template_that_names_a_missing_column():
    with pytest.raises(ValueError, match="names column 1, but X has column 0 only"):
        SequenceTagger(template="chunking").fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(ValueError, match="names column 1, which holds the labels of X"):
        SequenceTagger(template="chunking").fit(*table([[row[1:] for row in x] for x in ROWS]))


def test_lengths_must_fit():
    X, codes = table()
    with pytest.raises(ValueError, match="X has 30 sequences and y has 29"):
        SequenceTagger(template="words").fit(X, LABELS[:-1])
    with pytest.raises(ValueError, match="X has 15 sequences and y has 30"):
        fitted().score(ColumnTable.from_rows(NEW), codes)
    with pytest.raises(ValueError, match="sequence 3 has"):
        SequenceTagger(template="words").fit(X, [*LABELS[:3], ["O"] * 9, *LABELS[4:]])


def test_a_function_that_does_not_fit():
    with pytest.raises(ValueError, match="returned features of 0 tokens for sequence 0"):
        fitted(template=lambda x: [])


# --- the objective ---

TAGS = ["B-NP", "I-NP", "O"]
COSTS = [[0, 1, 2.5], [0.5, 0, 1], [3, 1, 0]]
OBJECTIVES = {
    "quadratic": {"solver": SDM(slack="quadratic")},
    "slack rescaling": {"solver": SDM(rescale="slack"), "C_scale": "mean", "C": 7},
    "no rescaling": {"solver": NSlack(rescale="none", epsilon=np.float64(0.005)), "gap": 1e-3},
    "elastic net": {"regularizer": ElasticNet(l1_ratio=0.25), "solver": "sap"},
    "paper": {"solver": SAP("paper", mu=0.01), "regularizer": ElasticNet(0.25, 1)},
    "ball": {"solver": Subgradient(step_size=0.5), "regularizer": L1Ball(3.0), "max_passes": 8},
    "lp": {"solver": "lp", "regularizer": L1(0.5), "dtype": "float64"},
    "others": {"solver": OneSlack(cuts=2), "regularizer": "l2", "time_limit": 100},
    "bcfw": {"solver": BCFW(sampling="gap"), "regularizer": L2(), "max_passes": np.int64(9)},
    "matrix": {"loss": np.array(COSTS), "labels": np.array(TAGS)},
    "lists": {"loss": COSTS, "labels": tuple(TAGS[::-1])},
    "pairs": {"loss": {("O", "B-NP"): 4, ("I-NP", "O"): np.float32(0.25)}, "labels": TAGS},
    "mask": {"allowed": np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], dtype=bool), "labels": TAGS},
    "fraction": {"C": fractions.Fraction(1, 8)},
}


def objective_of(tagger):
    params = tagger.get_params()
    return {name: params[name] for name in ("solver", "regularizer", "gap", "max_passes", "dtype")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_loaded_tagger_trains_the_same_objective(name, tmp_path):
    tagger, path = fitted(**OBJECTIVES[name]), tmp_path / "model.mm"
    tagger.save(path)
    twin = maxmargin.load(path)
    assert objective_of(twin) == objective_of(tagger)
    assert (twin.C, twin.C_scale) == (tagger.C, tagger.C_scale)
    assert twin.certificate_ == tagger.certificate_
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()
    # what is saved again says the same
    twin.save(tmp_path / "again.mm")
    first, second = (read_container(p).meta for p in (path, tmp_path / "again.mm"))
    assert first["objective"] == second["objective"]
    twin.fit(*table())
    np.testing.assert_array_equal(twin.weights_, tagger.weights_)
    assert twin.certificate_ == tagger.certificate_
    assert twin.classes_.tolist() == tagger.classes_.tolist()
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()
    assert clone(twin).get_params().keys() == twin.get_params().keys()


def test_the_objective_is_that_of_the_fit(tmp_path):
    tagger = fitted(solver=SDM(slack="quadratic"), C=0.5)
    tagger.set_params(solver="sdm", C=2.0, regularizer=ElasticNet(1, 1)).save(tmp_path / "m")
    twin = maxmargin.load(tmp_path / "m")
    assert (twin.solver, twin.C, twin.regularizer) == (SDM(slack="quadratic"), 0.5, None)


def test_an_approximate_certificate_stays_one(tmp_path):
    tagger = fitted()
    exact = tagger.certificate_
    tagger.certificate_ = dataclasses.replace(exact, approximate=True)
    tagger.save(tmp_path / "m")
    assert maxmargin.load(tmp_path / "m").certificate_ == tagger.certificate_ != exact


def test_an_infinite_primal(tmp_path):
    tagger = fitted()
    tagger.certificate_ = dataclasses.replace(tagger.certificate_, primal=math.inf)
    tagger.save(tmp_path / "m")
    assert maxmargin.load(tmp_path / "m").certificate_ == tagger.certificate_


@dataclasses.dataclass(frozen=True)
class MySolver(SDM):
    """A solver of a user's own."""


class MyRegularizer(L2):
    """A regulariser of a user's own."""


@pytest.mark.parametrize(
    ("name", "value"),
    [("solver", MySolver()), ("regularizer", MyRegularizer())],
)
def test_what_the_file_cannot_make_again_is_asked_for(name, value, tmp_path):
    tagger = fitted(**{name: value})
    tagger.save(tmp_path / "m")
    twin = maxmargin.load(tmp_path / "m")
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()
    assert f"{type(value).__module__}:{type(value).__name__}" in repr(getattr(twin, name))
    told = rf"{name} is not known.*{type(value).__name__}"
    for loaded in (twin, clone(twin), pickle.loads(pickle.dumps(twin))):
        with pytest.raises(NotCompatibleError, match=told):
            loaded.fit(*table())
    assert twin.predict(NEW).tolist() == tagger.predict(NEW).tolist()
    twin.save(tmp_path / "again")
    again = maxmargin.load(tmp_path / "again")
    assert getattr(again, name) == getattr(twin, name)
    again.set_params(**{name: value}).fit(*table())
    np.testing.assert_array_equal(again.weights_, tagger.weights_)


def test_a_file_without_an_objective(tmp_path):
    golden = Path(__file__).parents[1] / "golden" / "tagger-strings-v1.mm"
    twin = maxmargin.load(golden)
    twin.save(tmp_path / "m")  # which still does not tell
    for tagger in (twin, maxmargin.load(tmp_path / "m")):
        X, y = [[["a"], ["b"]]], [["O", "O"]]
        with pytest.warns(UserWarning, match="does not say with which regulariser"):
            tagger.fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tagger.fit(X, y)  # now it is known


def test_where_fit_writes_is_not_the_business_of_a_file(tmp_path):
    tagger = fitted(checkpoint=str(tmp_path / "state"), resume=True)
    tagger.save(tmp_path / "m")
    assert "checkpoint" not in read_container(tmp_path / "m").meta["params"]
    twin = maxmargin.load(tmp_path / "m")
    assert (twin.checkpoint, twin.resume) == (None, False)
    content = read_container(tmp_path / "m")
    params = {**content.meta["params"], "checkpoint": str(tmp_path / "state"), "resume": True}
    write_container(tmp_path / "m", "tagger", {**content.meta, "params": params}, content.arrays)
    twin = maxmargin.load(tmp_path / "m")
    assert (twin.checkpoint, twin.resume) == (None, False)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", {"solver": "sdm", "regularizer": None}),
        ("--slack quadratic -C 3", {"solver": SDM(slack="quadratic"), "C": 3.0}),
        ("--solver nslack --rescale slack", {"solver": NSlack(rescale="slack")}),
        ("--l1-ratio 0.5", {"regularizer": ElasticNet(0.5, 0.5)}),
        ("--solver subgradient --l1-ball 2 --max-passes 5", {"regularizer": L1Ball(2.0)}),
        ("--solver lp --l1-ratio 1", {"solver": "lp", "regularizer": L1()}),
        ("--nonzeros 20 --gap 0.1", {"solver": "sdm", "gap": 0.1}),
    ],
)
def test_the_objective_of_the_command_line(file, tmp_path, capsys, flags, expected):
    path = tmp_path / "m"
    assert main(["train", str(file), "-m", str(path), "--template", "words", *flags.split()]) == 0
    tagger = maxmargin.load(path)
    params = tagger.get_params()
    assert {name: params[name] for name in expected} == expected
    if "--nonzeros" in flags:
        assert tagger.regularizer.rho1 == load_tagger(path).meta["training"]["l1_ratio"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        twin = clone(tagger).fit(*read_columns(file).labelled(-1))
    if "--nonzeros" not in flags:  # which is found from a warm start
        assert twin.certificate_ == tagger.certificate_


def test_a_model_that_was_fitted_again_is_not_that_of_fit(file, tmp_path, capsys):
    path = tmp_path / "m"
    flags = "--template words --l1-ratio 0.5 --debias"
    assert main(["train", str(file), "-m", str(path), *flags.split()]) == 0
    with pytest.raises(NotCompatibleError, match=r"regularizer is not known.*Selected"):
        maxmargin.load(path).fit(*read_columns(file).labelled(-1))


# --- the file changes while a tagger is in use ---

OVERWRITE = """
import sys
import types
from pathlib import Path
import numpy as np
import maxmargin

path, mmap = Path(sys.argv[1]), len(sys.argv) > 3
X = [np.load(sys.argv[2])]
tagger = maxmargin.load(path, mmap=mmap)

def tell():
    print(tagger.predict(X), tagger.coef_.sum(), flush=True)

tell()
with path.open("r+b") as file:
    if not mmap:
        file.write(b"\\x41" * path.stat().st_size)
        file.flush()
        tell()
    file.truncate(100)
tell()
"""


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_that_changes_under_a_tagger(tmp_path, mmap):
    path, given = tmp_path / "model.mm", tmp_path / "x.npy"
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 400)) for _ in range(6)]
    tagger = SequenceTagger(C=1.0, random_state=0).fit(X, [[*range(8)]] * 6)
    tagger.save(path)
    assert "weights" in read_container(path).arrays  # the full matrix, of several pages
    np.save(given, X[0])
    arguments = [path, given, *(["mmap"] if mmap else [])]
    done = subprocess.run(
        [sys.executable, "-c", OVERWRITE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    line = f"{tagger.predict(X[:1])} {tagger.coef_.sum()!s}\n"
    # A map has the hazard that the documentation speaks of.
    expected = (-signal.SIGBUS, line) if mmap else (0, 3 * line)
    assert (done.returncode, done.stdout) == expected, done.stderr


def test_what_a_file_does_not_know_of_its_training():
    """Figures may be null there (found by the fuzzer)."""
    found = types.SimpleNamespace()
    set_training(found, {"training": {"passes": None, "oracle_calls": None}, "certificate": {}})
    assert (found.n_iter_, found.n_examples_) == (0, 0)
    assert (found.converged_, found.stop_reason_) == (False, "unknown")
