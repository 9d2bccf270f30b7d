"""`DependencyParser`: learns, scores, is saved and loaded, takes what `read_dependencies` reads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin
from dependency_files import conllu, examples, trees
from maxmargin import DependencyParser
from maxmargin.errors import ModelFormatError
from maxmargin.io.conllu_trees import parse_dependencies, read_dependencies
from maxmargin.scores.dependencies import attachment_scores, punctuation
from maxmargin.solvers import SDM
from maxmargin.structures.dependency_trees import checked_heads, is_projective
from real_data import data_file

X, Y = examples(trees())
X_TEST, Y_TEST = examples(trees(20, seed=2))
SMALL = {"bits": 14, "label_bits": 9, "C": 1.0, "random_state": 0}


@pytest.fixture(scope="module")
def parser():
    return DependencyParser(**SMALL).fit(X, Y)


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_equal(a, b)


def test_it_learns_the_grammar(parser):
    assert parser.certificate_.gap <= 0.05
    assert parser.score(X, Y) > 0.97
    assert parser.score(X_TEST, Y_TEST) > 0.85
    for (heads, names), x in zip(parser.predict(X_TEST), X_TEST, strict=True):
        checked_heads(heads, len(x), "prediction", one_root=True)
        assert is_projective(heads)
        assert set(names) <= {name for _, row in Y for name in row}


def test_scores_are_those_of_the_shared_task(parser):
    predicted = parser.predict(X_TEST)
    found = attachment_scores(
        [h for h, _ in Y_TEST],
        [h for h, _ in predicted],
        [n for _, n in Y_TEST],
        [n for _, n in predicted],
    )
    assert parser.score(X_TEST, Y_TEST) == found["las"]
    heads = DependencyParser(**SMALL, labelled=False).fit(X, Y)
    assert all(isinstance(h, np.ndarray) for h in heads.predict(X_TEST))
    uas = attachment_scores([h for h, _ in Y_TEST], heads.predict(X_TEST))["uas"]
    assert heads.score(X_TEST, Y_TEST) == heads.score(X_TEST, [h for h, _ in Y_TEST]) == uas > 0.85


@pytest.mark.parametrize("Z", [Y, [h for h, _ in Y]])
@pytest.mark.parametrize("options", [{}, {"projective": False, "one_root": False}])
def test_round_trip_of_files(tmp_path, Z, options):
    parser = DependencyParser(**SMALL, solver=SDM(), **options).fit(X, Z)
    path = tmp_path / "m.mm"
    assert parser.save(path) == path.stat().st_size
    for loaded in (
        DependencyParser.load(path),
        maxmargin.load(path),
        DependencyParser.load(path, mmap=True),
    ):
        assert isinstance(loaded, DependencyParser)
        same(loaded.predict(X_TEST), parser.predict(X_TEST))
        assert loaded.certificate_.primal == parser.certificate_.primal
        assert loaded.get_params()["C"] == 1.0
        assert loaded.describe() == parser.describe()
    # A loaded model trains as the first one was trained.
    np.testing.assert_array_equal(loaded.fit(X, Z).weights_, parser.weights_)


def test_relations_are_described_by_their_weights(parser):
    found = parser.describe(top=2)["relation_weights"]
    assert len(found) == 2
    structure = parser.structure_
    for name, figures in found.items():
        column = structure.relation_rows(parser.weights_)[:, structure.labels_.index(name)]
        assert figures["norm"] == pytest.approx(np.linalg.norm(column.astype(float)))
        assert figures["largest"] == column.max() > 0 > column.min() == figures["smallest"]
    norms = [f["norm"] for f in parser.describe(top=100)["relation_weights"].values()]
    assert norms == sorted(norms, reverse=True)
    assert len(norms) == len(structure.labels_)
    assert "relation_weights" not in parser.describe(top=0)


def test_damaged_files_are_refused(tmp_path, parser):
    path = tmp_path / "m.mm"
    parser.save(path)
    data = path.read_bytes()
    for cut in (10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(ModelFormatError, match=r"m\.mm"):
            DependencyParser.load(path)
    path.write_bytes(data.replace(b'"bits": 14', b'"bits": 13').replace(b'"bits":14', b'"bits":13'))
    with pytest.raises(ModelFormatError):
        DependencyParser.load(path)


def test_pickles_clones_threads_and_precision(parser):
    copied = pickle.loads(pickle.dumps(parser))
    same(copied.predict(X_TEST), parser.predict(X_TEST))
    same(clone(parser).set_params(n_jobs=3).fit(X, Y).predict(X_TEST), parser.predict(X_TEST))
    copied.n_jobs = 4
    same(copied.predict(X_TEST), parser.predict(X_TEST))
    wide = clone(parser).set_params(dtype="float64").fit(X, Y)
    assert wide.certificate_.primal == pytest.approx(parser.certificate_.primal, rel=0.1)


def test_it_takes_what_the_reader_gives(parser):
    sentences = parse_dependencies(conllu(trees(20, seed=2), extras=True).encode(), "toy")
    same(parser.predict(sentences), parser.predict(X_TEST))


def test_sample_weights_of_zero_leave_sentences_out():
    weights = np.array([1.0] * 15 + [0.0] * 15)
    some = DependencyParser(**SMALL, gap=1e-3).fit(X, Y, sample_weight=weights)
    # All relations and tags are in the first half, so that the problems are the same.
    half = DependencyParser(**SMALL, gap=1e-3).fit(X[:15], Y[:15])
    assert some.certificate_.primal == pytest.approx(half.certificate_.primal, rel=3e-3)


@pytest.mark.parametrize("rescale", ["slack", "none"])
def test_other_formulations(rescale):
    parser = DependencyParser(**SMALL, solver=SDM(rescale=rescale), gap=0.1).fit(X[:12], Y[:12])
    assert parser.score(X[:12], Y[:12]) > 0.9


def test_errors():
    with pytest.raises(NotFittedError):
        DependencyParser().predict(X)
    with pytest.raises(ValueError, match="y to be passed"):
        DependencyParser().fit(X, None)
    with pytest.raises(ValueError, match="sentence 1: found a cycle"):
        DependencyParser().fit(X[:2], [Y[0][0], [2, 1] + [1] * (len(X[1]) - 2)])


@pytest.mark.data
def test_wall_street_journal():
    """The figure of the issue, on a part of the data for the sake of time."""
    train = read_dependencies(data_file("wsj_sample_dep/train.conllu.gz"), one_root=True)[:1000]
    test = read_dependencies(data_file("wsj_sample_dep/test.conllu.gz"))
    parser = DependencyParser(labelled=False, gap=0.1, random_state=0)
    parser.fit(train, [sentence.heads for sentence in train])
    keep = [~mask for mask in punctuation([s.xpos for s in test], "xpos")]
    found = attachment_scores([s.heads for s in test], parser.predict(test), keep=keep)
    assert found["uas"] > 0.84


def test_bad_weights_of_sentences():
    x, y = X[:3], Y[:3]
    cases = [
        ([1.0, 2.0], ValueError, r"shape \(2,\)"),
        ([1.0, -1.0, 1.0], ValueError, "sentence 1 is -1.0"),
        ([1.0, 1.0, np.nan], ValueError, "sentence 2 is nan"),
        ([0.0, 0.0, 0.0], ValueError, "zero for all sentences"),
        ("abc", TypeError, "must be numbers"),
        ({}, TypeError, "must be numbers"),
    ]
    for weights, kind, message in cases:
        with pytest.raises(kind, match=message):
            DependencyParser(**SMALL).fit(x, y, sample_weight=weights)


def test_what_cannot_be_scored(parser):
    x, y = X[:3], Y[:3]
    for truths, message in [
        (None, "y is an object of type NoneType"),
        (5, "y is an object of type int"),
        ("abc", "y is an object of type str"),
        ([None, *y[1:]], "sentence 0: found heads"),
        ([5, *y[1:]], "sentence 0: found heads"),
        ([y[0], y[1][0], y[2]], "sentence 1 has no relations"),
        (y[:2], "3 sentences and y has 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            parser.score(x, truths)
    assert parser.score(iter(x), iter(y)) == parser.score(x, y)
    with pytest.raises(NotFittedError):
        DependencyParser().describe()


def test_relations_of_some_sentences_only():
    x, y = X[:3], Y[:3]
    for k in range(3):
        some = [tree[0] if i == k else tree for i, tree in enumerate(y)]
        with pytest.raises(ValueError, match=f"sentence {k}: found none of"):
            DependencyParser(**SMALL).fit(x, some)
        heads = DependencyParser(**SMALL, labelled=False).fit(x, some)
        assert heads.structure_.labels_ == ()


def test_one_root_is_a_bool():
    for bad in ("no", None, 0):
        with pytest.raises(ValueError, match="one_root must be True or False"):
            DependencyParser(**SMALL, one_root=bad).fit(X[:3], Y[:3])
