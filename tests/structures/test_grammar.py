"""`Grammar`: what it learns, what it says about bad input, files, and real trees."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.solvers import SDM, solve
from maxmargin.structures.check import check_structure
from maxmargin.structures.grammar import Grammar, Sentence
from maxmargin.structures.grammar_features import NodeTemplates, all_spans, parse_template
from maxmargin.structures.grammar_trees import flatten, leaves
from real_data import data_file
from reference_grammar import ReferenceGrammar, random_treebank, same_tree

TREES = [
    ("S", [("NP", ["DT", "JJ", "NN"]), ("VP", ["VB", ("NP", ["NN"])]), "."]),
    ("S", [("NP", ["NN"]), ("VP", ["VB"])]),
    ("FRAG", [("NP", ["DT", "NN"]), "."]),
]
SENTENCES = [leaves(tree) for tree in TREES]
RICH = ("first", "last", "before", "after", "length", "first+last", "first:words+length")


def prepared(**options):
    grammar = Grammar(**options)
    grammar.prepare(SENTENCES, TREES)
    return grammar


# --- trees ---


def test_nodes_of_a_tree():
    nodes = flatten(TREES[0])
    assert [(n.label, n.start, n.end) for n in nodes] == [
        ("S", 0, 6),
        ("NP", 0, 3),
        ("VP", 3, 5),
        ("NP", 4, 5),
    ]
    assert nodes[0].children == (("NP", False), ("VP", False), (".", True))
    assert nodes[0].places == (1, 2, -1)


def test_deep_trees_do_not_recurse():
    tree = ("S", ["a", "a"])
    for _ in range(5000):
        tree = ("S", ["a", tree])
    assert len(flatten(tree)) == 5001
    grammar = Grammar()
    shallow = ("S", ["a", ("S", ["a", "a"])])
    grammar.prepare([["a"] * 3], [shallow])
    code = grammar._rules.encode(flatten(tree), "the tree")
    assert len(flatten(grammar._rules.decode(code))) == 5001


@pytest.mark.parametrize("binarise", ["left", "right"])
@pytest.mark.parametrize("horizontal", [None, 0, 1, 2])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_tree_is_its_code(binarise, horizontal, seed):
    Y = random_treebank(np.random.default_rng(seed), 4, longest=9)
    X = [leaves(y) for y in Y]
    grammar = Grammar(horizontal=horizontal, binarise=binarise)
    grammar.prepare(X, Y)
    rules = grammar._rules
    for y in Y:
        assert same_tree(rules.decode(rules.encode(flatten(y), "tree")), y)
    w = np.random.default_rng(seed).normal(size=grammar.n_features)
    for x, tree in zip(X, grammar.predict(X, w, 1), strict=True):
        assert leaves(tree) == x
        assert grammar.score_outputs([x], [tree], w)[0] == pytest.approx(
            w[grammar.joint_feature(x, tree)[0]].sum()
        )
        # No tree of the training data is better.
        for y in Y:
            if leaves(y) == x:
                better = grammar.score_outputs([x], [y], w)[0]
                assert better <= grammar.score_outputs([x], [tree], w)[0] + 1e-9


def test_markovisation_puts_new_rules_together():
    """NP with two adjectives, where training has one and three."""
    Y = [("NP", ["DT", "JJ", "NN"]), ("NP", ["DT", "JJ", "JJ", "JJ", "NN"])]
    X = [leaves(y) for y in Y]
    new = ["DT", "JJ", "JJ", "NN"]
    for horizontal, tree in ((None, None), (1, ("NP", new)), (0, ("NP", new))):
        grammar = Grammar(horizontal=horizontal)
        grammar.prepare(X, Y)
        assert grammar.predict([new], np.zeros(grammar.n_features), 1) == [tree]
    names = [lhs for lhs, _ in grammar.rules_]
    assert "@NP[]" in names


def test_weights_of_rules():
    grammar = prepared()
    names = grammar.feature_names()
    assert len(names) == len(set(names)) == grammar.n_features
    assert "S -> NP VP ." in names  # at one place, whatever its arity
    assert grammar.roots_ == ["FRAG", "S"]
    indices, values = grammar.joint_feature(SENTENCES[0], TREES[0])
    assert sorted(names[k] for k in indices) == sorted(
        ["S -> NP VP .", "NP -> DT JJ NN", "VP -> VB NP", "NP -> NN", "root S"]
    )
    assert (values == 1).all()


# --- attributes ---


def test_attributes_of_nodes():
    grammar = Grammar(node_features=["before+first", "length", "first:words+last:words"])
    X = [Sentence(x, [f"w{t}" for t in range(len(x))]) for x in SENTENCES]
    grammar.prepare(X, TREES)
    names = grammar.feature_names()
    found = {names[k] for k in grammar.joint_feature(X[0], TREES[0])[0]}
    assert {"VP before+first=NN VB", "S before+first=- DT", "VP length=2+"} <= found
    assert {"VP first:words+last:words=w3 w4", "S length=6+"} <= found
    assert "NP length=6+" not in names  # seen with S only


def test_features_that_are_rare_are_left_out():
    assert prepared(node_features=RICH[:5], min_count=2).n_features < (
        prepared(node_features=RICH[:5]).n_features
    )


def test_spans_are_in_the_order_of_native_code():
    first, last = all_spans(np.array([0, 3, 5]))
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == [
        *[(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)],
        *[(3, 3), (3, 4), (4, 4)],
    ]


@pytest.mark.parametrize("text", ["middle", "first:lemma", "first+", "length:words", ""])
def test_templates_that_are_none(text):
    with pytest.raises(ValueError, match="expected length or one of before"):
        parse_template(text)
    with pytest.raises(ValueError, match="node features"):
        prepared(node_features=[text])


# --- loss ---


def test_losses():
    y, z = TREES[0], ("S", [("NP", ["DT", "JJ", "NN"]), ("VP", ["VB", "NN"]), "."])
    assert Grammar("f1").loss(y, z) == pytest.approx(1 - 2 * 3 / (4 + 3))
    assert Grammar("brackets").loss(y, z) == 1
    assert Grammar("zero_one").loss(y, z) == 1
    assert Grammar("f1", count_root=False).loss(y, z) == pytest.approx(1 - 2 * 2 / (3 + 2))
    assert Grammar("f1", count_preterminals=False).loss(y, z) == 0
    assert Grammar("f1", ignore=["NP"]).loss(y, z) == 0
    annotated = ("S", [("NP^S", ["DT", "JJ", "NN"]), ("VP^S", ["VB", ("NP^VP", ["NN"])]), "."])
    assert Grammar("f1").loss(y, annotated) == 0
    assert Grammar("f1", annotation=None).loss(y, annotated) > 0
    for loss in ("f1", "brackets", "zero_one"):
        assert Grammar(loss).loss(y, y) == 0


@pytest.mark.parametrize("loss", ["f1", "brackets", "zero_one"])
def test_it_is_a_structure(loss):
    report = check_structure(Grammar(loss, node_features=RICH[:6]), SENTENCES, TREES)
    assert report.ok, str(report)


# --- unary chains ---


def test_chains_have_no_label_twice():
    """A cycle of rules with positive weights does not run away."""
    Y = [("A", [("B", ["a", "a"])]), ("B", [("A", ["a", "a"])]), ("A", ["a", "a"])]
    X = [["a", "a"]] * 3
    grammar = Grammar("f1")
    problem = grammar.prepare_problem(X, Y, dtype="float64").problem
    w = np.ones(grammar.n_features) * 5
    best = grammar.predict(X[:1], w, 1)[0]
    assert len(flatten(best)) == 2
    assert list(ReferenceGrammar(grammar).outputs(X[0])).count(best) == 1
    # The same brackets in another order: a tree other than the truth without a loss.
    assert grammar.loss(Y[0], Y[1]) == 0
    assert problem.n_examples == 3


def test_max_chain():
    Y = [("A", [("B", [("C", ["a", "a"])])]), ("A", ["a", "a"])]
    X = [leaves(y) for y in Y]
    Grammar(max_chain=3).prepare_problem(X, Y)
    with pytest.raises(ValueError, match=r"tree 0 has the unary chain 'A -> B -> C' .*max_chain"):
        Grammar(max_chain=2).prepare_problem(X, Y)


def test_too_many_chains_are_refused():
    labels = [f"L{k}" for k in range(12)]
    Y = [(a, [(b, ["a", "a"])]) for a in labels for b in labels if a != b]
    with pytest.raises(ValueError, match=r"more than 100000 chains .* max_chain"):
        Grammar().prepare([leaves(y) for y in Y], Y)
    Grammar(max_chain=3).prepare([leaves(y) for y in Y], Y)


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"loss": "hamming"}, ValueError, "loss"),
        ({"horizontal": 3}, ValueError, "horizontal is 3; expected None, 0, 1 or 2"),
        ({"binarise": "middle"}, ValueError, "binarise"),
        ({"max_chain": 0}, ValueError, "max_chain"),
        ({"min_count": 0}, ValueError, "min_count"),
        ({"node_features": "first"}, TypeError, "node_features is a string"),
        ({"ignore": "NP"}, TypeError, "ignore is a string"),
        ({"ignore": [1]}, TypeError, "ignore"),
        ({"count_root": 1}, TypeError, "count_root"),
        ({"annotation": ""}, ValueError, "annotation"),
        ({"node_features": ["first:tags"]}, ValueError, "column 'tags', which a sentence lacks"),
    ],
)
def test_bad_options(options, error, match):
    with pytest.raises(error, match=match):
        prepared(**options)


@pytest.mark.parametrize(
    ("x", "y", "error", "match"),
    [
        (["a"], ("S", ["a", "a"]), ValueError, "tree 1 has 2 leaves and its sentence 1 terminals"),
        (["a", "b"], ("S", ["a", "c"]), ValueError, "tree 1: leaf 1 is 'c', but terminal 1"),
        ([], ("S", ["a"]), ValueError, "sentence 1 is empty"),
        (["a"], ("S", []), ValueError, "tree 1 has a node 'S' without children"),
        (["a"], "a", TypeError, "tree 1 is the string 'a'"),
        (["a"], None, ValueError, "tree 1 is None"),
        (["a"], ("S", "a"), TypeError, "children of type str"),
        (["a"], ("S", [("N", ["a"], 1)]), TypeError, "tree 1 has the node"),
        (["a"], (1, ["a"]), TypeError, "label 1"),
        (["a"], ("S", [None]), TypeError, "child None"),
        ("a", ("S", ["a"]), TypeError, "sentence 1 is 'a'; expected a list of terminals"),
        ([1], ("S", ["a"]), TypeError, "token 0 of its terminals is"),
        (Sentence(["a"], ["x", "y"]), ("S", ["a"]), ValueError, "1 terminals and 2 words"),
        (["a"], ("S", [("S", ["a"])]), ValueError, "tree 1 has the unary chain 'S -> S'"),
    ],
)
def test_bad_examples(x, y, error, match):
    with pytest.raises(error, match=match):
        Grammar().prepare_problem([["a"], x], [("S", ["a"]), y])


def test_numbers_of_examples():
    with pytest.raises(ValueError, match="X has 1 sentences and Y has 2 trees"):
        Grammar().prepare([["a"]], [("S", ["a"])] * 2)
    with pytest.raises(ValueError, match="no sentences"):
        Grammar().prepare([], [])
    with pytest.raises(ValueError, match="Y is None"):
        Grammar().prepare([["a"]], None)
    with pytest.raises(ValueError, match="sample_weight"):
        Grammar().prepare_problem([["a"]], [("S", ["a"])], sample_weight=[1, 2])


def test_trees_that_the_grammar_lacks():
    grammar = prepared()
    w = np.zeros(grammar.n_features)
    for tree, match in [
        (("S", [("NP", ["NN"]), ("VP", ["NN"])]), r"tree 0 has the rule 'VP -> NN'"),
        (("NP", ["NN"]), "tree 0 has the root 'NP'"),
        (("S", [("S", ["NN"])]), "rule 'S -> S'"),
    ]:
        with pytest.raises(ValueError, match=match):
            grammar.score_outputs([leaves(tree)], [tree], w)
        with pytest.raises(ValueError, match=match):
            grammar.make_problem([leaves(tree)], [tree])


def test_sentences_without_a_parse():
    grammar = prepared()
    w = np.zeros(grammar.n_features)
    sentences = [["NN", "VB"], ["VB", "VB"], ["NN", "XX"], [], ["DT", "NN", "."]]
    found = grammar.predict(sentences, w, 2)
    assert found == [TREES[1], None, None, None, TREES[2]]
    assert grammar.predict([["XX"]], w, 1) == [None]
    assert grammar.predict([], w, 1) == []
    with pytest.raises(ValueError, match="no parse"):
        grammar.argmax(["VB", "VB"], w)


def test_weights_that_do_not_fit():
    grammar = prepared()
    with pytest.raises(ValueError, match="shape"):
        grammar.predict(SENTENCES, np.zeros(3), 1)
    with pytest.raises(TypeError, match="numpy array"):
        grammar.predict(SENTENCES, [0.0], 1)
    with pytest.raises(ValueError, match="knows no rules yet"):
        Grammar().predict(SENTENCES, np.zeros(3), 1)


# --- files ---


@pytest.mark.parametrize("horizontal", [None, 1])
def test_state_and_back(horizontal):
    X = [Sentence(x, [t.lower() for t in x]) for x in SENTENCES]
    grammar = Grammar("brackets", RICH, horizontal=horizontal, ignore=["X"])
    grammar.prepare(X, TREES)
    meta, arrays = grammar.state()
    again = Grammar.restore(meta, {name: a.copy() for name, a in arrays.items()})
    assert again.options() == grammar.options()
    assert again.feature_names() == grammar.feature_names()
    w = np.random.default_rng(0).normal(size=grammar.n_features)
    for other in (again, pickle.loads(pickle.dumps(grammar)), copy.deepcopy(grammar)):
        assert other.predict(X, w, 1) == grammar.predict(X, w, 1)
        np.testing.assert_array_equal(
            other.score_outputs(X, TREES, w), grammar.score_outputs(X, TREES, w)
        )


def test_hostile_states():
    grammar = prepared(node_features=RICH[:6])
    meta, arrays = grammar.state()
    rng = np.random.default_rng(0)
    refused = 0
    trials = [({**meta, name: value}, arrays) for name in meta for value in (None, 3, [3], {}, [])]
    trials += [({k: v for k, v in meta.items() if k != name}, arrays) for name in meta]
    for name, array in arrays.items():
        trials += [
            (meta, {**arrays, name: a}) for a in (array[:-1], array.astype(float), array[None])
        ]
        trials.append((meta, {k: v for k, v in arrays.items() if k != name}))
        for _ in range(10):
            changed = array.copy()
            if len(changed):
                changed[rng.integers(len(changed))] = rng.choice([-1, 0, 1, 200, 99])
            trials.append((meta, {**arrays, name: changed}))
        if name.startswith("keys"):
            far = array.copy()
            far[-1] = np.iinfo(array.dtype).max
            trials.append((meta, {**arrays, name: far}))
    for some_meta, some_arrays in trials:
        try:
            made = Grammar.restore(some_meta, some_arrays)
        except (ValueError, KeyError, TypeError):
            refused += 1
            continue
        found = made.predict(SENTENCES, np.zeros(made.n_features), 1)
        assert len(found) == len(SENTENCES)
        assert len(made.feature_names()) == made.n_features
    assert refused > len(trials) // 3


def test_an_unlearned_template_knows_nothing():
    assert NodeTemplates(["first"]).n_entries == 0


# --- training ---


def test_weights_of_examples_are_weights():
    grammar = Grammar("f1")
    twice = grammar.prepare_problem([*SENTENCES, SENTENCES[0]], [*TREES, TREES[0]]).problem
    weighted = Grammar("f1").prepare_problem(SENTENCES, TREES, [2.0, 1.0, 1.0]).problem
    found = [solve(p, SDM(), C=1.0, gap=1e-4, dtype="float64") for p in (twice, weighted)]
    assert found[0].certificate.primal == pytest.approx(found[1].certificate.primal, rel=1e-3)


def read_trees(name, longest):
    """Trees of a bracketed file with tags as terminals."""
    import gzip
    import re

    found = []
    with gzip.open(data_file(name), "rt", encoding="utf-8") as lines:
        for line in lines:
            stack = [[]]
            for token in re.findall(r"[()]|[^\s()]+", line):
                if token == "(":
                    stack.append([])
                elif token == ")":
                    label, *rest = stack.pop()
                    tag = len(rest) == 1 and isinstance(rest[0], str) and rest[0].startswith("=")
                    stack[-1].append(label if tag else (label, rest))
                else:
                    stack[-1].append("=" + token if stack[-1] else token)
            found += [tree for tree in stack[0] if not isinstance(tree, str)]
    return [tree for tree in found if len(leaves(tree)) <= longest]


@pytest.mark.data
@pytest.mark.parametrize(
    ("loss", "slack", "rescale"),
    [
        ("f1", "linear", "margin"),
        ("f1", "quadratic", "slack"),
        ("zero_one", "quadratic", "margin"),
        ("brackets", "linear", "margin"),
    ],
)
def test_short_sentences_of_the_treebank(loss, slack, rescale):
    Y = read_trees("wsj_sample_trees/train.mrg.gz", 10)
    X = [leaves(y) for y in Y]
    assert len(Y) > 340
    grammar = Grammar(loss)
    problem = grammar.prepare_problem(X, Y).problem
    found = solve(problem, SDM(slack=slack, rescale=rescale), C=1.0, gap=0.01, random_state=0)
    assert found.certificate.gap <= 0.01
    predicted = grammar.predict(X, np.array(found.weights), 1)
    f1 = Grammar("f1")
    assert np.mean([f1.loss(y, z) for y, z in zip(Y, predicted, strict=True)]) < 0.1
