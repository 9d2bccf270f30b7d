"""`Parser` from sentences to trees: toy grammars, files, bad input, real data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin import SDM, NSlack, Parser, Tree, read_trees
from maxmargin.errors import ModelFormatError
from maxmargin.features.treebank import FlatTree
from maxmargin.scores.trees import PLAIN
from maxmargin.structures.treebank import Treebank
from real_data import data_file

TREES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN cat)) (PP (IN with) (NP (NN fur))))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN at) (NP (NN noon)))))",
    "(S (NP (PRP she)) (VP (VBZ knows) (SBAR (IN that) (S (NP (PRP it)) (VP (VBZ barks))))))",
]
PARSED = [Tree.parse(text) for text in TREES]


def fitted(**options):
    options = {"C": 10.0, "gap": 1e-3, "random_state": 0, "dtype": "float64"} | options
    return Parser(**options).fit(None, TREES)


@pytest.fixture(scope="module")
def parser():
    return fitted()


@pytest.mark.parametrize("loss", ["brackets", "f1", "zero_one"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vertical": 1, "horizontal": None, "node_features": None},
        {"lexicon": "words", "vertical": 3, "horizontal": 0, "min_count": 1},
        {"node_features": ["first:words", "length"], "horizontal": 2},
    ],
)
def test_training_trees_are_learned(loss, options):
    parser = fitted(loss=loss, **options)
    assert parser.certificate_.gap <= 1e-3
    found = parser.predict(PARSED).tolist()
    if options.get("node_features", "edges") is not None:
        assert found == PARSED
        assert parser.score(None, TREES) == 1
        assert parser.evaluate(PARSED, TREES, PLAIN).exact == 1
    else:  # rules alone do not know which preposition belongs where
        assert [tree.pairs() for tree in found] == [tree.pairs() for tree in PARSED]
    if parser.lexicon == "words":
        assert parser.predict([tree.words() for tree in PARSED]).tolist() == PARSED


def test_forms_of_sentences_and_trees(parser):
    pairs = [tree.pairs() for tree in PARSED]
    for X, y in [(pairs, PARSED), (PARSED, TREES), (None, [t.to_tuple() for t in PARSED])]:
        other = fitted().fit(X, y)
        assert np.array_equal(other.weights_, parser.weights_)
    listed = [[list(p) for p in x] for x in pairs]
    assert parser.predict(pairs).tolist() == parser.predict(listed).tolist()


def test_new_sentences(parser):
    pairs = [("The", "DT"), ("cow", "NN"), ("sleeps", "VBZ")]
    (found,) = parser.predict([pairs])
    assert str(found) == "(S (NP (DT The) (NN cow)) (VP (VBZ sleeps)))"
    assert not isinstance(found, FlatTree)
    # A tag that no training tree has is read as the most frequent one, and given back as it was.
    (found,) = parser.predict([[("The", "DT"), ("zzz", "FW"), ("sleeps", "VBZ")]])
    assert found.tags() == ["DT", "FW", "VBZ"]


def test_sentences_without_a_parse(parser):
    odd = [("of", "IN"), ("in", "IN")]
    flat, good = parser.predict([odd, PARSED[0]])
    assert isinstance(flat, FlatTree)
    assert str(flat) == "(S (IN of) (IN in))"
    assert good == PARSED[0]
    assert parser.predict([odd, PARSED[0]], fallback="none").tolist() == [None, PARSED[0]]
    with pytest.raises(ValueError, match="fallback is 'crash'"):
        parser.predict([odd], fallback="crash")


def test_loops_of_the_treebank_are_merged():
    text = "(S (NP (NP (DT the) (NN dog))) (VP (VBZ barks)))"
    parser = Parser(random_state=0).fit(None, [text])
    assert parser.predict([Tree.parse(text)]).tolist() == [PARSED[0]]


def test_sample_weight():
    weights = [1, 1, 1, 0, 1]
    with_weights = fitted(node_features=None).fit(None, TREES, sample_weight=weights)
    assert with_weights.n_examples_ in (4, 5)
    with pytest.raises(ValueError, match="sample_weight"):
        fitted().fit(None, TREES, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        fitted().fit(None, TREES, sample_weight=[1, 2, -1, 1, 1])


@pytest.mark.parametrize(
    "solver",
    [SDM(slack="quadratic", rescale="slack"), NSlack(epsilon=1e-5), "bcfw", "interiorpoint"],
)
def test_solvers(solver):
    parser = fitted(solver=solver, C=1.0, loss="f1", gap=0.01, max_passes=2000)
    assert parser.certificate_.gap <= 0.011


def test_weights_near_the_pcfg(tmp_path):
    """With a tiny C the weights are the log-probabilities; with a larger one they move."""
    options = {"prior": "pcfg", "vertical": 1, "horizontal": None, "node_features": ["length"]}
    parser = fitted(C=1e-9, **options)
    treebank = Treebank(vertical=1, horizontal=None, node_features=["length"], count=True)
    treebank.prepare(PARSED, PARSED)
    logs = treebank.log_probabilities()
    assert np.allclose(parser.weights_, logs, atol=1e-6)
    n = len(treebank.grammar_.rules_) + len(treebank.grammar_.roots_)
    assert not logs[n:].any()
    lefts = np.array([left for left, _ in treebank.grammar_.rules_])
    for left in set(lefts):
        assert np.exp(logs[: len(lefts)][lefts == left]).sum() == pytest.approx(1)
    half = fitted(C=1e-9, prior_scale=0.5, **options)
    assert np.allclose(half.weights_, 0.5 * logs, atol=1e-6)
    moved = fitted(C=10.0, **options)
    assert moved.certificate_.gap <= 1e-3
    assert not np.allclose(moved.weights_, logs, atol=1e-2)
    path = tmp_path / "m.mm"
    moved.save(path)
    loaded = Parser.load(path).fit(None, TREES)
    assert loaded.predict(PARSED).tolist() == moved.predict(PARSED).tolist()


@pytest.mark.parametrize("lexicon", ["tags", "words"])
def test_files(tmp_path, lexicon):
    parser = fitted(lexicon=lexicon)
    path = tmp_path / "m.mm"
    parser.save(path)
    for loaded in (maxmargin.load(path), Parser.load(path, mmap=True)):
        assert isinstance(loaded, Parser)
        assert loaded.predict(PARSED).tolist() == parser.predict(PARSED).tolist()
        assert loaded.get_params() == parser.get_params()
        assert loaded.labels_ == parser.labels_
        assert loaded.describe(5) == parser.describe(5)
        odd = [[("of", "IN")] * 2]
        assert loaded.predict(odd).tolist() == parser.predict(odd).tolist()
        again = loaded.fit(None, TREES)
        assert np.array_equal(again.weights_, parser.weights_)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ModelFormatError):
        Parser.load(path)


def test_pickling_and_cloning(parser):
    again = pickle.loads(pickle.dumps(parser))
    assert again.predict(PARSED).tolist() == parser.predict(PARSED).tolist()
    assert clone(parser).get_params() == parser.get_params()


def test_description(parser):
    found = parser.describe(3)
    assert found["n_terminals"] == 5
    assert len(found["largest"]) == len(found["smallest"]) == 3
    values = list(found["largest"].values())
    assert values == sorted(values, reverse=True)
    assert values[-1] > max(found["smallest"].values())


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (None, None, "requires y"),
        (None, "(S (NN a))", "y is .*; expected a list of trees"),
        (None, [], "no trees"),
        (None, ["(S (NN a)"], "tree 0: .*line 1, column 1: .*not closed"),
        (None, [("S", [])], "tree 0: the node 'S' has no children"),
        (None, [3], "tree 0: found int"),
        (None, ["(NN a)"], "tree 0 is '\\(NN a\\)'; expected a node above"),
        ([["a"]], ["(S (NN a))"], "sentence 0: token 0 is the word 'a' without a tag"),
        ([[("a", "NN", 1)]], ["(S (NN a))"], "sentence 0: token 0 is .* expected \\(word, tag\\)"),
        ([[("a b", "NN")]], ["(S (NN a))"], "sentence 0: token 0: found the word 'a b'"),
        ([[]], ["(S (NN a))"], "sentence 0 has no words"),
        (["a"], ["(S (NN a))"], "sentence 0 is 'a'; expected a list"),
        ("a", ["(S (NN a))"], "X is 'a'; expected a list of sentences"),
        ([[("a", "NN")] * 2], ["(S (NN a))"], "sentence 0 has 2 words, but its tree has 1 leaves"),
        ([[("b", "NN")]], ["(S (NN a))"], "sentence 0: leaf 0 of the tree is 'a'; expected 'b'"),
        ([[("a", "VB")]], ["(S (NN a))"], "the tag of 'a' \\(word 0\\) is 'NN' in the tree"),
        ([], ["(S (NN a))"], "X has 0 sentences, y has 1 trees"),
        (None, ["(S (N^P (NN a)))"], "tree 0 has the label 'N\\^P'"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        Parser(random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hamming"}, "loss"),
        ({"lexicon": "letters"}, "lexicon is 'letters'"),
        ({"vertical": 0}, "vertical is 0"),
        ({"horizontal": -1}, "horizontal"),
        ({"node_features": "many"}, "node_features is 'many'"),
        ({"node_features": ["middle"]}, "middle"),
        ({"min_count": 0}, "min_count is 0"),
        ({"prior": "hmm"}, "prior is 'hmm'"),
        ({"prior": "pcfg", "prior_scale": 0.0}, "prior_scale must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Parser(**options).fit(None, TREES)


def test_bad_sentences_to_predict(parser):
    with pytest.raises(ValueError, match="sentence 1: token 0 is the word 'a' without a tag"):
        parser.predict([PARSED[0], ["a"]])
    for token in [(5, "DT"), ("a", 5), (None, "DT")]:
        with pytest.raises(ValueError, match=r"sentence 1: token 0 is .* expected texts"):
            parser.predict([PARSED[0], [token]])
    with pytest.raises(TypeError, match="node_features is 5; expected"):
        Parser(node_features=5).fit(None, PARSED)


def test_a_treebank_as_a_structure():
    treebank = Treebank("f1", vertical=2, horizontal=1, node_features=["first:words"])
    treebank.prepare(PARSED, PARSED)
    w = np.random.default_rng(0).normal(size=treebank.n_features)
    for tree in PARSED:
        best = treebank.argmax(tree, w)
        worst = treebank.argmax(tree, w, tree)
        assert best.pairs() == tree.pairs()
        assert treebank.loss(tree, tree) == 0
        assert treebank.loss(tree, worst) >= 0
    scores = treebank.score_outputs(PARSED, PARSED, treebank.native_weights(w), 1)
    assert len(scores) == len(PARSED)


@pytest.mark.data
def test_real_sentences():
    """Rules alone, sentences of at most 10 words: the paper's setting, on our sample."""
    files = (read_trees(data_file(f"wsj_sample_trees/{name}.mrg.gz")) for name in ("train", "test"))
    train, test = ([tree for tree in trees if len(tree.words()) <= 10] for trees in files)
    parser = Parser(
        loss="f1", vertical=1, horizontal=None, node_features=None, C=0.1, random_state=0
    ).fit(None, train)
    assert parser.converged_
    assert parser.score(None, train) > 0.85
    assert parser.score(None, test) > 0.75


def test_the_weights_as_text(parser):
    comment, *lines = parser.text_lines()
    assert comment == "# rule, root or attribute\tweight"
    found = {name: float(weight) for name, weight in (line.split("\t") for line in lines)}
    names = parser.structure_.grammar_.feature_names()
    assert found == {n: w for n, w in zip(names, parser.weights_.tolist(), strict=True) if w != 0}
    assert len(found) > 5
    with pytest.raises(NotFittedError):
        list(Parser().text_lines())
