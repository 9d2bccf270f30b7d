"""Trees, their text in brackets, and nested tuples."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import FileFormatError
from maxmargin.trees import MAX_DEPTH, Tree, parse_trees

NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="()"), min_size=1, max_size=6
).filter(lambda text: not any(c.isspace() for c in text) and text == text.strip())
LEAVES = st.builds(Tree, NAMES, NAMES)
TREES = st.recursive(
    LEAVES, lambda below: st.builds(Tree, NAMES, st.lists(below, min_size=1, max_size=4))
)
DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))"


@given(st.lists(TREES, min_size=1, max_size=4), st.sampled_from(["\n", " ", "\n\n", "\r\n"]))
def test_text_and_back(trees, between):
    text = between.join(map(str, trees))
    assert list(parse_trees(text, "text")) == trees


@given(TREES)
def test_tuples_and_back(tree):
    assert Tree.from_tuple(tree.to_tuple()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(copy.deepcopy(tree)) == hash(tree)
    if tree.word is None:
        assert Tree.from_tuple(tree.to_tuple(words=False), tree.words()) == tree


@given(TREES)
def test_spans_cover_the_words_of_their_nodes(tree):
    nodes = [node for node in tree.nodes() if node.word is None]
    spans = tree.spans()
    assert [span.label for span in spans] == [node.label for node in nodes]
    for node, span in zip(nodes, spans, strict=True):
        assert node.words() == tree.words()[span.begin : span.end]
    assert tree.bottom_up()[-1] is tree
    assert [(leaf.word, leaf.label) for leaf in tree.leaves()] == tree.pairs()


def test_a_tree():
    tree = Tree.parse(DOG)
    assert tree == Tree(
        "S",
        [
            Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]),
            Tree("VP", [Tree("VBZ", "barks")]),
            Tree(".", "."),
        ],
    )
    assert str(tree) == DOG
    assert repr(tree) == f"Tree.parse({DOG!r})"
    assert tree.to_tuple(words=False) == ("S", [("NP", ["DT", "NN"]), ("VP", ["VBZ"]), "."])
    assert tree != DOG
    assert tree != Tree.parse(DOG.replace("dog", "cat"))
    assert Tree.parse(f"( {DOG} )") == tree
    assert Tree.parse(DOG.replace(" ", "\n\t")) == tree


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("(S (NP (NN dog))", "1, column 1", "not closed (1 open)"),
        ("(S (NP\n  (NN dog)", "1, column 4", "not closed (2 open)"),
        ("(S (NN dog)))", "1, column 13", "none is open"),
        ("\n\n  )", "3, column 3", "none is open"),
        ("(S (NN dog))\nand (S (NN cat))", "2, column 1", "outside of the brackets"),
        ("(S ((NN dog)))", "1, column 4", "without a label"),
        ("()", "1, column 1", "without a label"),
        ("(S ())", "1, column 4", "without a label"),
        ("((S (NN a)) (S (NN b)))", "1, column 1", "around 2 trees"),
        ("(S)", "1, column 1", "nothing in the bracket 'S'"),
        ("(S (NP the dog))", "1, column 12", "'dog' without a part of speech"),
        ("(S (DT the) dog)", "1, column 13", "'dog' without a part of speech"),
        ("(S the (NN dog))", "1, column 8", "behind the word 'the'"),
        ("((NN dog) NP)", "1, column 11", "'NP' without a part of speech"),
    ],
)
def test_text_that_is_no_tree(text, where, what):
    with pytest.raises(FileFormatError) as error:
        list(parse_trees(text, "some.mrg"))
    assert str(error.value).startswith(f"some.mrg: line {where}: ")
    assert what in str(error.value)


def test_one_tree_is_one_tree():
    with pytest.raises(FileFormatError, match="found 2 trees"):
        Tree.parse("(NN a) (NN b)")
    with pytest.raises(FileFormatError, match="found 0 trees"):
        Tree.parse(" ")


def test_hostile_nesting():
    deep = "(A " * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1)
    with pytest.raises(FileFormatError, match=f"more than {MAX_DEPTH} brackets within each other"):
        list(parse_trees(deep, "deep"))
    with pytest.raises(FileFormatError, match="column 2: found a bracket without a label"):
        list(parse_trees("(" * 1_000_000, "deep", max_depth=1000))
    list(parse_trees("(A " * MAX_DEPTH + "a" + ")" * MAX_DEPTH, "deep"))


def test_deep_trees_do_not_recurse():
    tree = Tree("A", "a")
    for _ in range(100_000):
        tree = Tree("A", [tree])
    assert len(tree.spans()) == 100_000
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert Tree.from_tuple(tree.to_tuple()) == tree
    assert repr(tree)
    del tree, again


@pytest.mark.parametrize("bad", ["", "a b", "a(b", "a)b", "\t", None, 3])
def test_labels_and_words_that_cannot_be_written(bad):
    with pytest.raises(ValueError, match="found the label"):
        Tree(bad, "dog")
    if isinstance(bad, str):
        with pytest.raises(ValueError, match="found the word"):
            Tree("NN", bad)


def test_nodes_that_are_none():
    with pytest.raises(ValueError, match="'NP' has no children"):
        Tree("NP", [])
    with pytest.raises(ValueError, match="found 'dog' below the node 'NP'"):
        Tree("NP", [Tree("DT", "the"), "dog"])
    with pytest.raises(ValueError, match="no node above"):
        Tree("NN", "dog").to_tuple(words=False)


@pytest.mark.parametrize(
    ("nested", "words", "message"),
    [
        ("NN", None, "found the leaf 'NN'"),
        (("S", "dog"), None, "the children of 'S' are 'dog'"),
        (["S", ["dog"]], None, "found list"),
        (("S", [("NP", [])]), None, "'NP' has no children"),
        (("S", ["a", "b"]), None, "below the node 'S'"),
        (("S", ["DT", "NN"]), ["the"], "2 leaves, but there are 1 words"),
        (("S", [3]), None, "found int"),
    ],
)
def test_tuples_that_are_no_tree(nested, words, message):
    with pytest.raises(ValueError, match=message):
        Tree.from_tuple(nested, words)
