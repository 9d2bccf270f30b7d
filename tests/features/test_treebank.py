"""Trees as a grammar reads them, and back."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.features.treebank import FlatTree, TreeReading, cleaned, without_loops
from maxmargin.features.word_shapes import UNKNOWN, is_class, shape_classes
from maxmargin.io.brackets import read_trees
from maxmargin.trees import Tree
from real_data import data_file

LABELS, TAGS, WORDS = ["S", "NP", "VP"], ["NN", "VB"], ["dog", "bark", "Rare", "odd-1"]
LEAVES = st.builds(Tree, st.sampled_from(TAGS), st.sampled_from(WORDS))
TREES = st.builds(
    Tree,
    st.sampled_from(LABELS),
    st.lists(
        st.recursive(
            LEAVES,
            lambda below: st.builds(
                Tree, st.sampled_from(LABELS), st.lists(below, min_size=1, max_size=3)
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)


@given(
    st.lists(TREES, min_size=1, max_size=5),
    st.sampled_from(["tags", "words"]),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_decoding_undoes_encoding(trees, lexicon, vertical, min_count):
    reading = TreeReading(lexicon, vertical, min_count)
    reading.learn(trees)
    again = TreeReading.restore(reading.state())
    assert again == reading
    for tree in trees:
        pairs = tree.pairs()
        nested = reading.encode(tree)
        assert leaves(nested) == reading.terminals(pairs)
        if lexicon == "words":
            pairs = [(word, None) for word, _ in pairs]
        assert again.decode(nested, pairs) == without_loops(tree)
    assert reading.decode(None, pairs) is None


def leaves(nested):
    if isinstance(nested, str):
        return [nested]
    return [leaf for child in nested[1] for leaf in leaves(child)]


@given(TREES)
def test_loops_are_removed_and_nothing_else(tree):
    plain = without_loops(tree)
    assert plain.pairs() == tree.pairs()
    assert set(plain.spans()) == set(tree.spans())
    for node in plain.nodes():
        assert not (len(node.children) == 1 and node.children[0].spans()[:1] == node.spans()[:1])
    assert without_loops(plain) == plain


def test_vertical_labels():
    tree = Tree.parse("(S (NP (DT the) (NN dog)) (VP (VB sees) (NP (PRP it))))")
    reading = TreeReading(vertical=3)
    reading.learn([tree])
    assert reading.encode(tree) == (
        "S",
        [("NP^S", ["DT", "NN"]), ("VP^S", ["VB", ("NP^VP^S", ["PRP"])])],
    )
    reading = TreeReading("words", vertical=2)
    reading.learn([tree])
    assert reading.encode(tree)[1][1][1][1] == ("NP^VP", [("PRP", ["?"])])
    with pytest.raises(ValueError, match=r"tree 0 has the label 'N\^P'; with vertical above 1"):
        TreeReading(vertical=2).learn([Tree.parse("(S (N^P (NN a)))")])
    TreeReading(vertical=1).learn([Tree.parse("(S (N^P (NN a)))")])


def test_cleaning():
    tree = Tree.parse(
        "(S (NP-SBJ-1 (NP (DT the) (NN dog))) (VP=2 (VBD seen) (SBAR (-NONE- 0) (S (-NONE- *T*)))"
        " (-LRB- -LRB-)))"
    )
    assert str(cleaned(tree)) == "(S (NP (DT the) (NN dog)) (VP (VBD seen) (-LRB- -LRB-)))"
    assert cleaned(Tree.parse("(S (NP (-NONE- *)))")) is None


def test_words_and_classes():
    trees = [
        Tree.parse("(S (NN dog) (NN dog) (VB walking) (NN Xerox))"),
        Tree.parse("(S (VB Walking) (VB talking) (? ?+ing) (? ?+ing))"),
    ]
    reading = TreeReading("words", min_count=2)
    reading.learn(trees)
    words = ["dog", "walking", "singing", "Xerox", "IBM", "?+ing"]
    assert reading.read_words(words) == ["dog", "?+ing", "?+ing", "?+Xx", "?+ing", "?+ing"]
    # Nothing but a whole class of training is known, and "?" alone is none.
    assert "?" not in reading.words
    assert reading.usual_word == "?+ing"


def test_unknown_words_and_tags():
    reading = TreeReading("words", min_count=1)
    reading.learn([Tree.parse("(S (DT the) (NN the) (NN dog))")])
    assert reading.terminals([("cat", None), ("the", None)]) == ["the", "the"]
    reading = TreeReading("tags")
    reading.learn([Tree.parse("(S (DT the) (NN the) (NN dog))")])
    assert reading.terminals([("cat", "FW"), ("the", "DT")]) == ["NN", "DT"]
    assert str(reading.decode(("S", ["NN"]), [("cat", "FW")])) == "(S (FW cat))"


def test_flat_trees():
    reading = TreeReading("words")
    reading.learn([Tree.parse("(NP (DT the) (NN dog))"), Tree.parse("(NP (NN dog))")])
    flat = reading.flat([("a", None), ("b", "VB")])
    assert isinstance(flat, FlatTree)
    assert flat == Tree.parse("(NP (NN a) (VB b))")
    assert str(flat) == "(NP (NN a) (VB b))"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lexicon": "letters"}, "lexicon is 'letters'"),
        ({"vertical": 0}, "vertical is 0; expected an integer from 1 on"),
        ({"vertical": True}, "vertical is True"),
        ({"min_count": 1.5}, "min_count is 1.5"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        TreeReading(**arguments)


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="found no trees"):
        TreeReading().learn([])
    with pytest.raises(ValueError, match=r"tree 0 is '\(NN dog\)'; expected a node above"):
        TreeReading().learn([Tree("NN", "dog")])


def test_damaged_states():
    reading = TreeReading()
    reading.learn([Tree.parse("(S (NN a))")])
    good = reading.state()
    for name, bad in [
        ("lexicon", 3),
        ("vertical", "2"),
        ("min_count", None),
        ("root", ""),
        ("root", 1),
        ("tags", ["a b"]),
        ("tags", "NN"),
        ("words", [1]),
        ("usual_tag", "VB"),
        ("usual_word", []),
    ]:
        state = copy.deepcopy(good)
        state[name] = bad
        with pytest.raises((ValueError, TypeError)):
            TreeReading.restore(state)
        del state[name]
        with pytest.raises(KeyError):
            TreeReading.restore(state)


@pytest.mark.parametrize(
    ("word", "first", "classes"),
    [
        ("walking", False, ["?+ing", "?"]),
        ("Walking", True, ["?+Xx1+ing", "?+Xx1", "?"]),
        ("IBM", False, ["?+X", "?"]),
        ("I", False, ["?+Xx", "?"]),
        ("eBay", False, ["?+xX+y", "?+xX", "?"]),
        ("1,000.5", False, ["?+99", "?"]),
        ("mid-1990s", False, ["?+9+-+s", "?+9+-", "?+9", "?"]),
        ("--", False, ["?"]),
        ("s", False, ["?"]),
        ("ÄRGERNISSE", False, ["?+X", "?"]),
    ],
)
def test_shapes(word, first, classes):
    assert shape_classes(word, first=first) == classes


@given(st.text(), st.booleans())
def test_every_word_has_classes(word, first):
    classes = shape_classes(word, first=first)
    assert classes[-1] == UNKNOWN
    assert all(map(is_class, classes))
    assert not any(c.isspace() or c in "()" for name in classes for c in name)


@pytest.mark.data
def test_the_sample_of_the_treebank():
    train = read_trees(data_file("wsj_sample_trees/train.mrg.gz"))
    test = read_trees(data_file("wsj_sample_trees/test.mrg.gz"))
    for lexicon, vertical in (("tags", 2), ("words", 3)):
        reading = TreeReading(lexicon, vertical, 3)
        reading.learn(train)
        for tree in test:
            assert reading.decode(reading.encode(tree), tree.pairs()) == tree
            assert cleaned(tree) == tree
