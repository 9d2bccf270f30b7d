"""CKY and the oracles of every loss and formulation, against all trees written down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import formulated, quietly, slacks
from maxmargin import _native
from maxmargin.solvers import SDM
from maxmargin.structures.grammar import Grammar
from maxmargin.structures.grammar_trees import leaves
from qp_reference import list_planes
from reference_grammar import ReferenceGrammar, random_treebank, same_tree

SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([0.0, 0.1, 0.5, 2.0])
LOSSES = ("f1", "zero_one", "brackets")
TEMPLATES = ("first", "last+after", "length", "first+last", "before", "length+first")
PAIRS = [
    (slack, rescale)
    for slack in ("linear", "quadratic", "hard")
    for rescale in ("margin", "slack", "none")
    if (slack, rescale) != ("hard", "slack")
]
MOST = 400  # trees of one sentence


@st.composite
def cases(draw):
    """A grammar with few trees, its problem, weights, and every tree of every sentence."""
    rng = np.random.default_rng(draw(SEEDS))
    options = {
        "loss": draw(st.sampled_from(LOSSES)),
        "count_root": draw(st.booleans()),
        "count_preterminals": draw(st.booleans()),
        "ignore": draw(st.sampled_from([(), ("V",)])),
        "binarise": draw(st.sampled_from(["left", "right"])),
        "node_features": draw(st.sampled_from([(), TEMPLATES])),
    }
    Y = random_treebank(rng, 4)
    X = [leaves(y) for y in Y]
    grammar = Grammar(**options)
    problem = grammar.prepare_problem(X, Y, dtype="float64").problem
    reference = ReferenceGrammar(grammar)
    few = [i for i, x in enumerate(X) if reference.n_outputs(x) <= MOST]
    if len(few) < len(X):  # a training problem of those that can be listed
        X, Y = [X[i] for i in few] or X[:1], [Y[i] for i in few] or Y[:1]
        problem = grammar.make_problem(X, Y)
    w = rng.normal(size=grammar.n_features) * draw(SCALES)
    if draw(st.booleans()):  # ties
        w = np.round(2 * w) / 2
    return grammar, problem, reference, X, Y, w


@given(cases())
@settings(max_examples=40, deadline=None)
def test_the_best_tree_and_the_oracle_are_those_of_brute_force(case):
    grammar, problem, reference, X, Y, w = case
    predicted = grammar.predict(X, w, 2)
    scores = grammar.score_outputs(X, predicted, w)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        trees = reference.outputs(x)
        assert sum(same_tree(y, tree) for tree in trees) == 1
        s = np.array([reference.joint_feature(x, tree) @ w for tree in trees])
        loss = np.array([reference.loss(y, tree) for tree in trees])
        assert scores[i] == pytest.approx(s.max(), abs=1e-9)
        assert problem.bare(w, i) == pytest.approx(s.max(), abs=1e-9)
        for scale in (0.0, 0.3, 1.0, 4.0):
            code, bound, _, _ = problem.oracle(w, i, scale)
            tree = grammar._rules.decode(code.tolist())
            assert bound == 0.0
            found = reference.joint_feature(x, tree) @ w + scale * reference.loss(y, tree)
            assert found == pytest.approx((s + scale * loss).max(), abs=1e-9)
            narrow, _, _, _ = problem.oracle(w.astype(np.float32), i, scale)
            tree = grammar._rules.decode(narrow.tolist())
            found = reference.joint_feature(x, tree) @ w + scale * reference.loss(y, tree)
            assert found == pytest.approx((s + scale * loss).max(), abs=1e-4)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_every_formulation_is_exact(case):
    _, problem, reference, X, Y, w = case
    planes = list_planes(reference, X, Y)
    for slack, rescale in PAIRS:
        engine = _native.Engine(
            problem, 1.0, single=False, factored=False, slack=slack, rescale=rescale
        )
        engine.weights[:] = w
        xi = slacks(formulated(planes, slack, rescale), w)
        risk = 0.5 * xi @ xi if slack == "quadratic" else xi.sum()
        np.testing.assert_allclose(
            engine.hinge(), risk, rtol=1e-9, atol=1e-9, err_msg=str((slack, rescale))
        )


def test_a_rich_grammar_needs_the_search():
    """A sentence whose brackets are right in many ways: linear bounds alone do not decide."""
    rng = np.random.default_rng(0)
    rules = [("S", ["a", "a"]), ("N", ["a", "a"])]
    Y = [
        ("S", [("N", ["a", ("S", ["a", "a"])]), ("S", [("N", ["a", "a"]), "a"])]),
        ("S", [("S", ["a", "a"]), ("N", ["a", "a"])]),
        ("N", ["a", ("N", ["a", "a"])]),
        *rules,
    ]
    X = [leaves(y) for y in Y]
    grammar = Grammar("f1")
    problem = grammar.prepare_problem(X, Y, dtype="float64").problem
    reference = ReferenceGrammar(grammar)
    trees = reference.outputs(X[0])
    features = np.array([reference.joint_feature(X[0], tree) for tree in trees])
    loss = np.array([reference.loss(Y[0], tree) for tree in trees])
    kept = 0
    for _ in range(50):
        w = rng.normal(size=grammar.n_features) * 0.2
        code, bound, _, triples = problem.oracle(w, 0, 1.0)
        tree = grammar._rules.decode(code.tolist())
        found = reference.joint_feature(X[0], tree) @ w + reference.loss(Y[0], tree)
        assert found == pytest.approx((features @ w + loss).max(), abs=1e-9)
        assert bound == 0.0
        kept += triples > 0
    assert kept > 10


def rich_case(limit, loss="f1"):
    """Ambiguous sentences, whose search by counts ends after so many triples."""
    Y = [
        ("S", [("N", ["a", ("S", ["a", "a"])]), ("S", [("N", ["a", "a"]), "a"])]),
        ("S", [("S", ["a", "a"]), ("N", ["a", "a"])]),
        ("N", ["a", ("N", ["a", "a"])]),
        ("S", ["a", "a"]),
        ("N", ["a", "a"]),
    ]
    X = [leaves(y) for y in Y]
    grammar = Grammar(loss)
    parts = grammar.prepare_problem(X, Y, dtype="float64").parts
    parts.pop("grammar")
    problem = _native.GrammarProblem(rules=grammar._rules.native, **parts, search_limit=limit)
    return grammar, problem, X, Y


def test_a_search_that_gives_up_is_bounded():
    grammar, problem, X, Y = rich_case(0)
    reference = ReferenceGrammar(grammar)
    trees = reference.outputs(X[0])
    features = np.array([reference.joint_feature(X[0], tree) for tree in trees])
    loss = np.array([reference.loss(Y[0], tree) for tree in trees])
    own = reference.joint_feature(X[0], Y[0])
    rng = np.random.default_rng(0)
    gave_up = 0
    for _ in range(100):
        w = rng.normal(size=grammar.n_features) * 0.2
        for scale in (0.5, 1.0, 3.0):
            code, bound, _, _ = problem.oracle(w, 0, scale)
            tree = grammar._rules.decode(code.tolist())
            found = (reference.joint_feature(X[0], tree) - own) @ w
            found += scale * reference.loss(Y[0], tree)
            best = ((features - own) @ w + scale * loss).max()
            assert found <= best + 1e-9
            if bound == 0.0:
                assert found == pytest.approx(best, abs=1e-9)
            else:
                assert bound >= best - 1e-9
                assert bound <= best + 0.5 * scale  # which is still of some use
                gave_up += 1
    assert gave_up > 20


@pytest.mark.parametrize("rescale", ["margin", "slack"])
def test_the_certificate_of_a_search_that_gives_up_says_so(rescale):
    grammar, problem, X, Y = rich_case(0)
    planes = list_planes(ReferenceGrammar(grammar), X, Y)
    result = quietly(
        problem,
        SDM(rescale=rescale),
        C=0.1,
        dtype="float64",
        gap=1e-3,
        max_passes=30,
        random_state=0,
    )
    w = np.asarray(result.weights)
    true = 0.5 * w @ w + 0.1 * slacks(formulated(planes, "linear", rescale), w).sum()
    certificate = result.certificate
    assert certificate.primal >= true - 1e-9
    assert certificate.dual <= true + 1e-9
    if rescale == "margin":
        assert certificate.approximate
        assert certificate.primal > true + 1e-6
    _, exact, _, _ = rich_case(20_000_000)
    engine = _native.Engine(exact, 0.1, single=False, factored=False, rescale=rescale)
    engine.weights[:] = w
    assert 0.5 * w @ w + 0.1 * engine.hinge() == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_whose_sums_overflow_do_no_harm(loss, dtype):
    """Trees of an infinite score are as if they were not there."""
    rng = np.random.default_rng(1)
    Y = random_treebank(rng, 20)
    X = [leaves(y) for y in Y]
    largest = np.finfo(dtype).max
    for node_features in ((), ("first", "last", "length")):
        grammar = Grammar(loss, node_features=node_features)
        problem = grammar.prepare_problem(X, Y).problem
        for _ in range(10):
            w = (rng.choice([-1, -1, 0, 1], size=grammar.n_features) * largest).astype(dtype)
            ptr, codes = problem.parse(w, 2)
            for i in range(len(X)):
                if ptr[i] < ptr[i + 1]:
                    tree = grammar._rules.decode(codes[ptr[i] : ptr[i + 1]].tolist())
                    assert leaves(tree) == X[i]
                grammar._rules.decode(problem.oracle(w, i, 1.0)[0].tolist())


def test_long_sentences_have_no_table_of_counts():
    """Where the search by counts would not fit, the answer is bounded at once."""
    rng = np.random.default_rng(0)
    x = ["a"] * 300
    y = ("S", ["a", "a"])
    for _ in range(298):
        y = ("S", [y, "a"])
    chain = ("S", ["a", "a"])
    for k in range(120):  # a chain of unary rules makes the counts many
        chain = (f"L{k}", [chain])
    grammar = Grammar("f1")
    problem = grammar.prepare_problem([x, ["a", "a"]], [y, chain]).problem
    w = rng.normal(size=grammar.n_features) * 0.01
    code, bound, rounds, triples = problem.oracle(w, 0, 1.0)
    assert (rounds, triples) == (1, 0)
    assert bound > 0.0
    assert grammar._rules.decode(code.tolist())


def test_threads_find_the_same():
    rng = np.random.default_rng(1)
    Y = random_treebank(rng, 20)
    X = [leaves(y) for y in Y]
    grammar = Grammar()
    grammar.prepare(X, Y)
    w = rng.normal(size=grammar.n_features)
    assert grammar.predict(X, w, 1) == grammar.predict(X, w, 5)


def test_arrays_that_do_not_fit_are_refused():
    grammar = Grammar(node_features=["first"])
    x, y = ["a", "b"], ("S", ["a", ("S", ["b"])])
    parts = grammar.prepare_problem([x], [y]).parts
    parts.pop("grammar")
    rules = grammar._rules.native

    def refused(match, **changes):
        with pytest.raises(ValueError, match=match):
            _native.GrammarProblem(rules=rules, **{**parts, **changes})

    _native.GrammarProblem(rules=rules, **parts)
    refused("offsets", offsets=np.array([0, 3]))
    refused("empty", offsets=np.array([0, 0, 2]))
    refused("terminal is out of range", terminals=np.array([0, 9], np.int32))
    refused("label of an attribute", entry_label=parts["entry_label"] + np.uint32(7))
    refused("attribute is out of range", first_ids=parts["first_ids"] + np.uint32(7))
    refused("wrong size", first_ptr=parts["first_ptr"][:-1])
    refused("loss must be", loss="hamming")
    for k in range(len(parts["codes"])):
        for change in (1, 77, 2**31, 1 << 16):
            codes = parts["codes"].copy()
            codes[k] = (int(codes[k]) + change) % 2**32
            refused("no tree of the grammar", codes=codes)
    refused(
        "no tree of the grammar",
        codes=parts["codes"][:-2],
        code_ptr=np.array([0, len(parts["codes"]) - 2]),
    )
    problem = _native.GrammarProblem(rules=rules, **parts)
    with pytest.raises(ValueError, match="weights"):
        problem.parse(np.zeros(1))
    with pytest.raises(ValueError, match="no such sentence"):
        problem.oracle(np.zeros(grammar.n_features), 1)
    bare = _native.GrammarProblem(rules=rules, **{**parts, "codes": None, "code_ptr": None})
    with pytest.raises(ValueError, match="no trees to learn from"):
        bare.oracle(np.zeros(grammar.n_features), 0)


def rule_arrays():
    def numbers(*values):
        return np.array(values, np.uint32)

    return {
        "n_labels": 1,
        "n_inner": 1,
        "n_terminals": 1,
        "left": numbers(2),
        "right": numbers(1),
        "lhs": numbers(0),
        "inner_left": numbers(2),
        "inner_right": numbers(2),
        "inner_lhs": numbers(1),
        "unary_lhs": numbers(),
        "unary_child": numbers(),
        "lexical_lhs": numbers(0),
        "lexical_terminal": numbers(0),
        "label_class": np.array([0], np.int32),
        "root": np.array([0], np.int32),
        "chain_label": numbers(0),
        "chain_parent": numbers(0),
        "chain_rule": numbers(0),
    }


@pytest.mark.parametrize(
    ("match", "changes"),
    [
        ("at least one label", {"n_labels": 0}),
        ("out of range", {"left": [3]}),
        ("out of range", {"lhs": [2]}),
        ("lhs and two children", {"right": []}),
        ("inner symbol", {"inner_lhs": [0]}),
        ("sorted", {"left": [2, 2], "right": [1, 1], "lhs": [0, 0]}),
        ("unary rule", {"unary_lhs": [1], "unary_child": [0]}),
        ("lexical rule", {"lexical_terminal": [1]}),
        ("class and a root", {"root": []}),
        ("no root", {"root": [-1]}),
        ("order of the labels", {"root": [3]}),
        ("class is out of range", {"label_class": [-2]}),
        ("differ in length", {"chain_label": [0, 0]}),
        ("not unary", {"chain_label": [0, 0], "chain_parent": [0, 0], "chain_rule": [0, 0]}),
        ("comes before", {"chain_label": [0, 0], "chain_parent": [0, 1], "chain_rule": [0, 0]}),
    ],
)
def test_rules_that_do_not_fit_are_refused(match, changes):
    arrays = rule_arrays()
    _native.GrammarRules(**arrays)
    for name, value in changes.items():
        old = arrays[name]
        arrays[name] = value if isinstance(old, int) else np.array(value, old.dtype)
    with pytest.raises(ValueError, match=match):
        _native.GrammarRules(**arrays)
