"""`DependencyTree`: what it learns from data, its state, bad input; and the shapes of trees."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import memory
from maxmargin.structures.check import check_structure
from maxmargin.structures.dependency import DependencyTree
from maxmargin.structures.dependency_trees import checked_heads, is_projective, list_trees

X = [
    [("the", "DT"), ("dog", "NN"), ("barks", "VB")],
    [("cats", "NN"), ("sleep", "VB")],
    [("go", "VB")],
    [("dogs", "NN"), ("see", "VB"), ("the", "DT"), ("cats", "NN")],
]
HEADS = [[2, 3, 0], [2, 0], [0], [2, 0, 4, 2]]
NAMES = [["det", "nsubj", "root"], ["nsubj", "root"], ["root"], ["nsubj", "root", "det", "obj"]]
PAIRS = list(zip(HEADS, NAMES, strict=True))
SMALL = {"bits": 8, "label_bits": 5}


def prepared(Y, **options):
    tree = DependencyTree(**{**SMALL, **options})
    tree.prepare(X, Y)
    return tree


# --- shapes ---


@given(st.integers(1, 5), st.data())
def test_projective_means_that_no_arcs_cross(n, data):
    trees = list(list_trees(n, projective=False, one_root=False))
    heads = data.draw(st.sampled_from(trees))
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads, start=1)]
    crossing = any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2))
    assert is_projective(heads) != crossing


def test_numbers_of_trees():
    """(n + 1)^(n - 1) trees (Cayley), n^(n - 1) with one root; 1, 3, 12, 55 projective ones."""
    for n in range(1, 6):
        assert len(list(list_trees(n, projective=False, one_root=False))) == (n + 1) ** (n - 1)
        assert len(list(list_trees(n, projective=False, one_root=True))) == n ** (n - 1)
    found = [len(list(list_trees(n, projective=True, one_root=False))) for n in range(1, 5)]
    assert found == [1, 3, 12, 55]


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 3, 1], r"sentence 7: found a cycle in the heads: 1 -> 2 -> 3 -> 1; expected a tree"),
        ([0, 3, 2], r"a cycle in the heads: 2 -> 3 -> 2"),
        ([4, 0, 2], r"the head 4 of word 1; expected a number from 0 \(the root\) to 3"),
        ([-1, 0, 2], "the head -1 of word 1"),
        ([1, 0, 2], "the head 1 of word 1; .* other than 1"),
        ([0, 0, 2], "2 words with the head 0; expected one"),
        ([0, 1], r"heads of shape \(2,\)"),
        ([0.0, 1.0, 1.0], "type float64"),
        ("abc", "expected 3 integers"),
        (None, "expected 3 integers"),
    ],
)
def test_heads_that_are_no_tree(heads, message):
    with pytest.raises(ValueError, match=message):
        checked_heads(heads, 3, "sentence 7", one_root=True)
    if heads == [0, 0, 2]:
        checked_heads(heads, 3, "sentence 7", one_root=False)


# --- the structure ---


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_it_is_a_correct_structure(labelled, projective, loss):
    Y = [(np.array(h), n) for h, n in PAIRS] if labelled else [np.array(h) for h in HEADS]
    tree = prepared(Y, projective=projective, loss=loss)
    report = check_structure(tree, X[:3], Y[:3])
    assert report.ok, str(report)


def test_what_it_learns_from_the_data():
    tree = prepared(PAIRS)
    assert tree.labels_ == ("det", "nsubj", "obj", "root")
    assert tree.projective_
    assert "xpos" in tree.templates_.columns
    assert "upos" not in tree.templates_.columns
    assert tree.n_features == 2**8 + 2**5 * 8
    assert prepared(HEADS).labels_ == ()
    assert prepared(PAIRS, labelled=False).labels_ == ()
    # Words alone; and few crossing trees are no reason to give up projectivity.
    bare = DependencyTree(**SMALL)
    bare.prepare([["a", "b", "c", "d"]] * 20, [[3, 4, 0, 3]] + [[2, 3, 4, 0]] * 19)
    assert bare.projective_
    assert not {"upos", "xpos"} & set(bare.templates_.columns)
    bare.prepare([["a", "b", "c", "d"]] * 10, [[3, 4, 0, 3]] + [[2, 3, 4, 0]] * 9)
    assert not bare.projective_


def test_its_state_can_be_stored():
    for Y in (HEADS, PAIRS):
        tree = prepared(Y, loss="zero_one", one_root=False, projective=False)
        meta, arrays = tree.state()
        again = DependencyTree.restore(json.loads(json.dumps(meta)), arrays)
        w = np.random.default_rng(0).normal(size=tree.n_features)
        for a, b in zip(tree.predict(X, w, 1), again.predict(X, w, 2), strict=True):
            np.testing.assert_equal(a, b)
        assert again.state()[0] == meta


@pytest.mark.parametrize(
    "change",
    [
        {"labels": "abc"},
        {"labels": ["a", "a"]},
        {"labels": [1]},
        {"labels": ["x"] * 3},
        {"projective": 1},
        {"one_root": None},
        {"templates": "nonsense"},
        {"templates": None},
        {"templates": "h.tag dist?\n" + "x" * 10**6},
        {"bits": 40},
        {"bits": "8"},
        {"bits": True},
        {"label_bits": 2},
        {"loss": "other"},
    ],
)
def test_states_that_make_no_sense(change):
    meta, arrays = prepared(PAIRS).state()
    with pytest.raises((ValueError, TypeError, KeyError)):
        DependencyTree.restore({**meta, **change}, arrays)
    for name in meta:
        with pytest.raises(KeyError):
            DependencyTree.restore({k: v for k, v in meta.items() if k != name}, arrays)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, HEADS[:3], "X has 4 sentences and y has 3 trees"),
        ([], [], "X is empty"),
        ([[]], [[]], "sentence 0 has no words"),
        ([X[0], X[1]], [[2, 3, 0], [2, 1]], "sentence 1: found a cycle"),
        ([X[1]], [[3, 0]], "sentence 0: found the head 3 of word 1"),
        ([X[1]], [[0, 0]], "2 words with the head 0"),
        ([X[1]], [[0]], r"heads of shape \(1,\)"),
        ([X[0], X[1]], [PAIRS[0], HEADS[1]], "sentence 1: found none of 2 relations"),
        ([X[0]], [(HEADS[0], ["a", "b"])], "sentence 0: found 2 of 3 relations"),
        ([X[0]], [(HEADS[0], ["a", "b", 3])], "is no string"),
        (["text"], [[0]], "sentence 0 is an object of type str"),
        ([["a\udc80"]], [[0]], "found the form '.*'; expected text that UTF-8 can hold"),
        (7, HEADS, "expected a sequence of sentences"),
    ],
)
def test_data_that_cannot_be_learned_from(x, y, message):
    with pytest.raises(ValueError, match=message):
        DependencyTree(**SMALL).prepare_problem(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "f1"}, "loss must be"),
        ({"projective": "yes"}, 'projective must be True, False or "auto"'),
        ({"labelled": 3}, "labelled must be"),
        ({"bits": 2}, "bits must be a number from 3 to 30"),
        ({"label_bits": 25}, "label_bits must be a number from 3 to 24"),
        ({"templates": "h."}, "is no atom"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        DependencyTree(**options)


def test_relations_need_templates_and_sample_weights_their_number():
    with pytest.raises(ValueError, match="none of relations"):
        DependencyTree("h.tag d.tag", **SMALL).prepare(X, PAIRS)
    with pytest.raises(ValueError, match="one number for each sentence"):
        DependencyTree(**SMALL).prepare_problem(X, HEADS, sample_weight=[1.0])


def test_given_trees_and_weights_are_checked():
    tree = prepared(PAIRS)
    w = np.zeros(tree.n_features)
    with pytest.raises(ValueError, match="the relation 'xyz' is none of the training data's"):
        tree.score_outputs([X[2]], [([0], ["xyz"])], w, 1)
    with pytest.raises(ValueError, match="expected 512 of type"):
        tree.native_weights(np.zeros(3))
    with pytest.raises(NotImplementedError, match="too many to be listed"):
        prepared(HEADS).outputs([("a", "b")] * 7)
    assert tree.predict([], w, 1) == []
    heads, names = tree.predict([[], X[2]], w, 1)[0]
    assert heads.shape == (0,)
    assert names == []


def test_a_sentence_whose_arcs_do_not_fit_is_refused(monkeypatch):
    structure = DependencyTree(bits=8)
    x = [("a", "A"), ("b", "B")]
    structure.prepare([x], [[2, 0]])
    w = np.zeros(structure.n_features)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000_000)
    with pytest.raises(MemoryError, match="arcs of a sentence of 1000 words needs 80"):
        structure.predict([x * 500], w, 1)
    assert len(structure.predict([x], w, 1)) == 1
