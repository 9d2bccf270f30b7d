"""Taxonomies against brute force: λ, overlaps, losses, oracle, formulations; and bad input."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maxmargin import _native, check_structure
from maxmargin.solvers import SDM, solve
from maxmargin.structures.base import Structure
from maxmargin.structures.taxonomy import Taxonomy
from maxmargin.structures.taxonomy_graph import graph_of_labels, read_taxonomy
from native_problems import everyone, listed_problem, native_python_problem

PATHS = ["rec/autos", "rec/sport/hockey", "rec/sport/golf", "sci/med", "misc"]


@st.composite
def parent_maps(draw, lattice=True):
    """Return a parent map of up to 9 nodes; node 0 is the root."""
    n = draw(st.integers(2, 9))
    parents = {}
    for z in range(1, n):
        most = min(z, 3) if lattice else 1
        parents[z] = draw(st.lists(st.integers(0, z - 1), min_size=1, max_size=most, unique=True))
    return parents


def ups(parents, z):
    """Return z and everything above it, by the definition."""
    return {z}.union(*(ups(parents, p) for p in parents.get(z, [])))


def height(parents, z):
    children = [c for c in parents if z in parents[c]]
    return 1 + max(height(parents, c) for c in children) if children else 0


def by_hand(parents, a, b):
    if a == b:
        return 0
    return min(height(parents, z) for z in ups(parents, a) & ups(parents, b))


class Reference(Structure):
    """f(x, y) = x ⊗ λ(y) with a column for every node, the root included."""

    def __init__(self, parents, classes, weight, cost, n_inputs):
        self.nodes = sorted({0, *parents})
        self.table = {
            y: np.array([np.sqrt(weight[z]) * (z in ups(parents, y)) for z in self.nodes])
            for y in classes
        }
        self.classes, self.cost = list(classes), cost
        self.n_features = n_inputs * len(self.nodes)

    def joint_feature(self, x, y):
        return np.outer(x, self.table[y]).ravel()

    def loss(self, y, y_hat):
        return float(self.cost(y, y_hat))

    def outputs(self, x):
        return self.classes


@settings(deadline=None, max_examples=60)
@given(parent_maps(), st.sampled_from(["leaves", "all"]))
def test_attributes_overlaps_and_losses(parents, which):
    taxonomy = Taxonomy(parents, classes=which, loss="tree")
    leaves = [z for z in {0, *parents} if not any(z in up for up in parents.values())]
    classes = leaves if which == "leaves" else sorted(parents)
    assume(len(classes) > 1)
    taxonomy.prepare(np.eye(2), [classes[0]] * 2)
    assert taxonomy.classes_ == sorted(classes)
    table = taxonomy.known.matrix()
    above_all = set.intersection(*(ups(parents, y) for y in classes))
    own = [ups(parents, y) for y in sorted(classes)]
    if all(up - above_all for up in own):
        assert not above_all & set(taxonomy.nodes_)
        own = [up - above_all for up in own]
    np.testing.assert_array_equal(table != 0, [[z in up for z in taxonomy.nodes_] for up in own])
    np.testing.assert_allclose(table @ table.T, [[len(a & b) for b in own] for a in own])
    assert set().union(*own) == set(taxonomy.nodes_)
    for a, b in itertools.product(classes, repeat=2):
        assert taxonomy.loss(a, b) == by_hand(parents, a, b)
        assert taxonomy.graph_.tree_loss(taxonomy.graph_.index[a], taxonomy.graph_.index[b]) == (
            by_hand(parents, a, b)
        )


@settings(deadline=None, max_examples=60)
@given(parent_maps(lattice=False))
def test_in_a_tree_the_loss_is_the_height_of_the_first_common_ancestor(parents):
    parent = {z: up[0] for z, up in parents.items()}
    graph = read_taxonomy(parent)
    assert graph.is_tree

    def way(z):
        return [z, *way(parent[z])] if z in parent else [z]

    for a, b in itertools.product({0, *parent}, repeat=2):
        first = next(z for z in way(a) if z in way(b))
        expected = 0 if a == b else height(parents, first)
        assert graph.tree_loss(graph.index[a], graph.index[b]) == expected
        assert graph.path(graph.index[a]) == tuple(reversed(way(a)))[1:]


KINDS = ("dense32", "dense64", "sparse32", "sparse64", "ones")


def examples(rng, n, d, kind):
    """Return X as a user has it, and as an array of 8-byte numbers."""
    X = rng.normal(size=(n, d))
    if kind.startswith("dense"):
        X = X.astype(np.float32 if kind == "dense32" else float)
        return X, X.astype(float)
    X = X * (rng.random((n, d)) < 0.6)
    if kind == "ones":
        X = (X != 0).astype(float)
    X = X.astype(np.float32 if kind == "sparse32" else float)
    return scipy.sparse.csr_array(X), X.astype(float)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    parent_maps(),
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(["tree", "tree_share", "0/1"]),
        st.sampled_from([0.0, 1.5]),
        st.booleans(),
    ),
)
def test_the_oracle_and_the_certificate_from_scratch(seed, parents, setting):
    kind, loss, intercept, single = setting
    rng = np.random.default_rng(seed)
    classes = sorted(parents)
    assume(len(classes) > 1)
    weight = dict(zip([0, *classes], rng.uniform(0.2, 2, len(classes) + 1), strict=True))
    X, dense = examples(rng, 7, 3, kind)
    if single and kind == "sparse64":
        dense = dense.astype(np.float32).astype(float)  # as sparse values are kept
    Y = rng.choice(classes, 7).tolist()
    taxonomy = Taxonomy(parents, classes="all", loss=loss, node_weight=weight, bias=intercept)
    problem, _ = taxonomy.prepare_problem(X, Y, dtype="float32" if single else "float64")
    engine = _native.Engine(problem, 0.5, single)
    last, tolerance = 0.0, 1e-4 if single else 1e-9
    for _ in range(10):
        for step in (engine.exact_pass, engine.cached_pass):
            step(everyone(7), _native.PassOptions())
            assert engine.dual() >= last - tolerance
            last = engine.dual()
    primal, dual = engine.certify()
    weights = engine.weights
    W = np.asarray(taxonomy.unpack(weights), dtype=float)
    rows = np.hstack([dense, np.full((7, 1), intercept)]) if intercept else dense
    scores = rows @ W @ taxonomy.known.matrix().T
    np.testing.assert_allclose(taxonomy.scores(X, weights, 2), scores, atol=10 * tolerance)
    top = height(parents, 0)
    cost = {
        "tree": lambda a, b: by_hand(parents, a, b),
        "tree_share": lambda a, b: by_hand(parents, a, b) / top,
        "0/1": lambda a, b: a != b,
    }[loss]
    hinge = 0.0
    for row, y in zip(scores, Y, strict=True):
        hinge += max(cost(y, c) + s for c, s in zip(classes, row, strict=True))
        hinge -= row[classes.index(y)]
    assert primal == pytest.approx(0.5 * (W**2).sum() + 0.5 * hinge, rel=1e-9, abs=1e-9)
    assert dual <= primal + 1e-9
    # One by one, as the structure's Python methods have it.
    for i, y in enumerate(taxonomy.predict(X, weights)):
        x = X[[i]] if hasattr(X, "tocsr") else X[i]
        assert taxonomy.argmax(x, W.ravel()) in classes
        values = [taxonomy.score(x, c, W.ravel()) for c in classes]
        np.testing.assert_allclose(values, scores[i], atol=10 * tolerance)
        assert values[classes.index(y)] >= max(values) - 20 * tolerance


def random_problem(seed, n=9, d=3):
    rng = np.random.default_rng(seed)
    parents = {1: [0], 2: [0], 3: [1], 4: [1, 2], 5: [2], 6: [4], 7: [4, 5]}
    classes = [3, 5, 6, 7]  # node 5 lies above class 7, which has two parents
    weight = dict(enumerate(rng.uniform(0.3, 2, 8)))
    X, Y = rng.normal(size=(n, d)), rng.choice(classes, n).tolist()
    taxonomy = Taxonomy(parents, classes=classes, node_weight=weight)
    cost = lambda a, b: by_hand(parents, a, b)  # noqa: E731
    return taxonomy, Reference(parents, classes, weight, cost, d), X, Y


@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_formulations_are_exact(slack, rescale):
    taxonomy, reference, X, Y = random_problem(1)
    solver, asked = SDM(slack=slack, rescale=rescale), {"C": 0.5, "gap": 1e-5, "max_passes": 5000}
    problem, _ = taxonomy.prepare_problem(X, Y, dtype="float64")
    native = solve(problem, solver, dtype="float64", **asked)
    for other in (listed_problem, native_python_problem):
        python = solve(other(reference, list(X), Y), solver, dtype="float64", **asked)
        assert not native.certificate.approximate
        assert native.certificate.primal == pytest.approx(python.certificate.primal, rel=3e-5)


def test_the_structure_passes_the_check():
    taxonomy, _, X, Y = random_problem(2)
    report = check_structure(taxonomy, X, Y)
    assert report.ok, str(report)


def test_costs_of_a_user():
    X, Y = np.eye(5), PATHS
    taxonomy = Taxonomy(loss={("misc", "sci/med"): 7.0})
    taxonomy.prepare(X, Y)
    assert taxonomy.loss("misc", "sci/med") == 7.0
    assert taxonomy.loss("sci/med", "misc") == 1.0
    assert taxonomy.loss("misc", "misc") == 0.0
    costs = np.arange(25.0).reshape(5, 5)
    np.fill_diagonal(costs, 0)
    other = Taxonomy(loss=costs)
    other.prepare(X, Y)
    assert other.classes_ == sorted(PATHS)
    assert other.loss("rec/autos", "misc") == 5.0
    problem, parts = other.prepare_problem(X, Y)
    np.testing.assert_array_equal(parts["cost"], costs)
    assert problem.n_examples == 5


def test_weights_of_nodes():
    X, Y = np.eye(5), PATHS
    for given_weight, expected in [
        (None, {"rec": 1, "rec/sport": 1, "rec/sport/golf": 1}),
        ("depth", {"rec": 1, "rec/sport": 2, "rec/sport/golf": 3}),
        ("inverse_depth", {"rec": 1, "rec/sport": 1 / 2, "rec/sport/golf": 1 / 3}),
        ("branch", {"rec": 1, "rec/sport": 1, "rec/sport/golf": 1}),
        ({"rec/sport": 4.0}, {"rec": 1, "rec/sport": 4, "rec/sport/golf": 1}),
        ({"rec": 0, "rec/sport": 0}, {"rec/sport/golf": 1}),
    ]:
        taxonomy = Taxonomy(node_weight=given_weight)
        taxonomy.prepare(X, Y)
        row = taxonomy.known.matrix()[taxonomy.classes_.index("rec/sport/golf")]
        found = {z: v**2 for z, v in zip(taxonomy.nodes_, row, strict=True) if v}
        assert found == pytest.approx(expected)


def test_ways_without_branches_share_a_weight():
    paths = ["a/b/c/1", "a/b/c/2", "d/e", "f"]
    taxonomy, other = Taxonomy(node_weight="branch"), Taxonomy(["a/1", "a/2", "d", "f"])
    taxonomy.prepare(np.eye(4), paths)
    other.prepare(np.eye(4), ["a/1", "a/2", "d", "f"])
    for one in (taxonomy, other):
        table = one.known.matrix()
        np.testing.assert_allclose(
            table @ table.T, [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-12
        )


def test_classes_without_examples_are_predicted_by_their_ancestors():
    """Four colours and four shapes; every class has both as parents, and four have no example."""
    rng = np.random.default_rng(0)
    names = list(itertools.product("rgby", "1234"))
    parents = {f"{c}{s}": [c, s] for c, s in names} | dict.fromkeys("rgby1234", "top")
    unseen = {"r1", "g2", "b3", "y4"}
    columns = {z: k for k, z in enumerate("rgby1234")}

    def looks(y):
        x = rng.normal(scale=0.2, size=8)
        x[[columns[y[0]], columns[y[1]]]] += 1.0
        return x

    Y = [f"{c}{s}" for c, s in names if f"{c}{s}" not in unseen] * 6
    X = np.array([looks(y) for y in Y])
    truths = sorted(unseen) * 20
    test = np.array([looks(y) for y in truths])
    right = {}
    for rivals, weight in itertools.product(("all", "seen"), (1.0, 0.0)):
        taxonomy = Taxonomy(parents, rivals=rivals, node_weight=dict.fromkeys("rgby1234", weight))
        problem, _ = taxonomy.prepare_problem(X, Y)
        weights = solve(problem, SDM(), C=1.0, gap=1e-4, max_passes=2000).weights
        assert np.mean([a == b for a, b in zip(taxonomy.predict(X, weights), Y, strict=True)]) > 0.9
        found = taxonomy.predict(test, weights)
        right[rivals, weight] = np.mean([a == b for a, b in zip(found, truths, strict=True)])
        own = taxonomy.unpack(weights)[:, [taxonomy.nodes_.index(y) for y in sorted(unseen)]]
        assert own.any() == (rivals == "all")
    assert right["seen", 1.0] > 0.7, right
    assert right["all", 1.0] > 0.5, right
    assert right["all", 0.0] < 0.2  # flat classes: what was never seen is not answered
    assert right["seen", 0.0] < 0.2


# --- forms of a taxonomy ---


class Graph:
    """As much of a networkx graph as is read."""

    def __init__(self, edges, directed=True):
        self.edges, self.directed = edges, directed
        self.nodes = list(dict.fromkeys(itertools.chain.from_iterable(edges)))

    def is_directed(self):
        return self.directed


def test_three_forms_of_the_same_taxonomy():
    paths = graph_of_labels(["a/x", "a/y", "b"], "/")
    mapped = read_taxonomy({"a/x": "a", "a/y": ["a"], "a": "top", "b": ("top",), "top": None})
    graph = read_taxonomy(Graph([("top", "a"), ("top", "b"), ("a", "a/x"), ("a", "a/y")]))
    for one in (paths, mapped, graph):
        assert one.is_tree
        assert {n: one.path(z) for n, z in one.index.items() if z} == {
            "a": ("a",),
            "b": ("b",),
            "a/x": ("a", "a/x"),
            "a/y": ("a", "a/y"),
        }
        assert one.heights[0] == 2
        assert one.tree_loss(one.index["a/x"], one.index["a/y"]) == 1
        assert one.tree_loss(one.index["a/x"], one.index["b"]) == 2


def test_a_networkx_graph():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([("top", "a"), ("top", "b"), ("a", "x"), ("b", "x"), ("b", "y")])
    read = read_taxonomy(graph)
    assert not read.is_tree
    assert read.path(read.index["x"]) == ("a", "x")
    assert read.tree_loss(read.index["x"], read.index["y"]) == 1
    with pytest.raises(ValueError, match="not directed"):
        read_taxonomy(graph.to_undirected())


def test_a_tuple_may_be_a_name():
    read = read_taxonomy({("a", 1): ("top", 0), ("top", 0): None})
    assert read.path(read.index["a", 1]) == (("a", 1),)


def test_labels_without_paths_are_a_star():
    taxonomy = Taxonomy()
    taxonomy.prepare(np.eye(3), [3, 1, 2])
    assert taxonomy.classes_ == taxonomy.nodes_ or set(taxonomy.nodes_) == {1, 2, 3}
    assert taxonomy.loss(1, 3) == 1.0
    flat = Taxonomy(separator=None)
    flat.prepare(np.eye(2), ["a/b", "a/c"])
    assert sorted(flat.nodes_) == ["a/b", "a/c"]


@pytest.mark.parametrize(
    ("given_taxonomy", "options", "message"),
    [
        ({"a": "b", "b": "c", "c": "a"}, {}, "cycle: 'a' below 'b' below 'c' below 'a'"),
        ({"a": "a"}, {}, "cycle: 'a' below 'a'"),
        ({"a": "top", "b": ["a", "c"], "c": "b"}, {}, "cycle: 'b' below 'c' below 'b'"),
        (Graph([("a", "b"), ("b", "a")]), {}, "cycle"),
        (Graph([("a", "b")], directed=False), {}, "not directed"),
        ({"a": "x", "b": "y"}, {}, "2 roots: 'x', 'y'; expected one"),
        ({}, {}, "no node"),
        ({"a": ["b", None]}, {}, "a parent of 'a' is None"),
        ({"a": [["b"]]}, {}, "a parent of 'a' is a list"),
        (["a/x", "a//y"], {}, "'a//y' has an empty name"),
        (["a/x", "b/"], {}, "'b/' has an empty name"),
        (["/a"], {}, "'/a' has an empty name"),
        (["a/x", "b/x"], {"unique_names": True}, "contradict each other: 'x' is 'a/x' in one and"),
        (["a/b/a"], {"unique_names": True}, "contradict each other: 'a'"),
        ("a/x", {}, "is a str; expected"),
        (3, {}, "is a int; expected"),
        ([None], {}, "label 0 is None"),
    ],
)
def test_taxonomies_that_make_no_sense(given_taxonomy, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_taxonomy(given_taxonomy, **options)


def test_several_roots_can_have_a_common_one():
    read = read_taxonomy({"a": "x", "b": "y"}, add_root=True)
    assert read.names[0] is None
    assert read.tree_loss(read.index["a"], read.index["b"]) == 2


def test_the_same_name_twice_is_two_nodes_by_default():
    assert len(graph_of_labels(["a/x", "b/x"], "/").names) == 5


@pytest.mark.parametrize(
    ("options", "Y", "message"),
    [
        ({}, ["a", "a/b"], "contradict each other: example 0 has the label 'a'.*'a/b' lies below"),
        ({"taxonomy": ["a/b"]}, ["a/c", "a/b"], "example 0 has the label 'a/c', which is no node"),
        ({"taxonomy": ["a/b"], "classes": ["a/b"]}, ["a/b", "a"], "example 1.*none of the classes"),
        ({"taxonomy": ["a/b"], "classes": ["a/z"]}, ["a/b", "a/b"], "class 'a/z' is no node"),
        ({"classes": "inner"}, ["a", "b"], "classes is 'inner'"),
        ({"classes": [], "taxonomy": ["a"]}, ["a", "a"], "no class"),
        ({"loss": "hamming"}, ["a", "b"], "loss is 'hamming'"),
        ({"loss": np.ones((2, 2))}, ["a", "b"], "expected 0 for the truth itself"),
        ({"loss": np.zeros((3, 3))}, ["a", "b"], "shape \\(3, 3\\); expected \\(2, 2\\)"),
        ({"loss": [[0, -1], [1, 0]]}, ["a", "b"], "is -1.0; expected a number from 0"),
        ({"loss": {("a", "c"): 1}}, ["a", "b"], "there is no label 'c'"),
        ({"node_weight": "height"}, ["a", "b"], "node_weight is 'height'"),
        ({"node_weight": {"c": 1}}, ["a", "b"], "'c', which is no node"),
        ({"node_weight": {"a": -1}}, ["a", "b"], "weight of node 'a' is -1.0"),
        ({"node_weight": {"a": "1"}}, ["a", "b"], "weight of node 'a' is nan"),
        ({"node_weight": [1, 2]}, ["a", "b"], "shape \\(2,\\); expected \\(3,\\)"),
        (
            {"taxonomy": {"a": "top", "b": "top"}, "node_weight": {"a": 0, "top": 0}},
            ["a", "b"],
            "class 'a' and all nodes above it have the weight",
        ),
        ({"rivals": "none"}, ["a", "b"], "rivals"),
        ({"separator": ""}, ["a", "b"], "separator is ''"),
        ({"bias": -1.0}, ["a", "b"], "bias is -1.0"),
        ({}, ["a", None], "label 1 is None"),
        ({"taxonomy": ["a", "b"]}, ["a", None], "example 1 has the label None, which is no node"),
        ({}, ["a", ["b"]], "example 1 has the label .* cannot be hashed"),
        ({}, ["a"], "X has 2 examples and y has 1 labels"),
        ({}, [], "y has 0 labels"),
        ({}, ["a", "a"], "one class only"),
    ],
)
def test_labels_and_options_that_make_no_sense(options, Y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Taxonomy(**options).prepare_problem(np.eye(2), Y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [0, 1]]), "example 0, column 1 is NaN"),
        (scipy.sparse.csr_array([[0.0, 1.0], [np.inf, 0]]), "example 1, column 0 is inf"),
        ([[1.0], [1.0, 2.0]], "no matrix of numbers"),
        (np.zeros(2), "1 dimension"),
        (np.zeros((0, 2)), "at least one example"),
    ],
)
def test_inputs_that_make_no_sense(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Taxonomy().prepare_problem(X, ["a", "b"])


def test_weights_and_labels_of_another_model_are_refused():
    taxonomy, _, X, Y = random_problem(3)
    problem, _ = taxonomy.prepare_problem(X, Y)
    weights = solve(problem, SDM(), C=1.0).weights
    with pytest.raises(ValueError, match=r"4 features .*, but 3 were"):
        taxonomy.predict(np.zeros((1, 4)), weights)
    with pytest.raises(ValueError, match="expected 24"):
        taxonomy.predict(X, weights[:-1])
    with pytest.raises(ValueError, match="label 99, which is not known"):
        taxonomy.score_outputs(X, [99] * len(X), weights)
    scores = taxonomy.scores(X, weights)
    own = [scores[i, taxonomy.classes_.index(y)] for i, y in enumerate(Y)]
    np.testing.assert_array_equal(taxonomy.score_outputs(X, Y, weights), own)


# --- files ---


def test_a_state_is_restored():
    taxonomy, _, X, Y = random_problem(4)
    problem, _ = taxonomy.prepare_problem(X, Y)
    weights = solve(problem, SDM(), C=1.0).weights
    meta, arrays = taxonomy.state()
    other = Taxonomy.restore(json.loads(json.dumps(meta)), arrays)
    np.testing.assert_array_equal(other.scores(X, weights), taxonomy.scores(X, weights))
    assert other.classes_ == taxonomy.classes_
    assert other.nodes_ == taxonomy.nodes_
    assert all(other.loss(a, b) == taxonomy.loss(a, b) for a in [3, 5, 6, 7] for b in [3, 5, 6, 7])


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": []},
        {"nodes": [0, 1, 2, 3, 4, 5, 6, 6]},
        {"nodes": [0, 1, 2, 3, 4, 5, 6, None]},
        {"nodes": [0, 1, 2, 3, 4, 5, 6, [7]]},
        {"nodes": "abcdefgh"},
        {"n_columns": 0},
        {"n_columns": True},
        {"n_columns": 2**40},
        {"bias": "1"},
        {"parents": np.zeros(9, dtype=np.int64)},
        {"parents": np.full(9, 7, dtype=np.int64)},
        {"parents": np.full(9, -1, dtype=np.int64)},
        {"parents": np.zeros(9)},
        {"parent_begins": np.zeros(9, dtype=np.int64)},
        {"parent_begins": np.array([0, 0, 9, 3, 4, 6, 7, 8, 9])},
        {"parent_begins": np.array([0, 9])},
        {"classes": np.array([8])},
        {"classes": np.array([], dtype=np.int64)},
        {"classes": np.array([3, 3])},
        {"node_weight": np.full(8, -1.0)},
        {"node_weight": np.ones(3)},
        {"node_weight": np.zeros(8)},
        {"cost": np.ones((4, 4))},
        {"cost": np.zeros((3, 3))},
        {"cost": np.full((4, 4), np.nan)},
    ],
    ids=str,
)
def test_a_damaged_state_is_refused(change):
    taxonomy, _, X, Y = random_problem(4)
    taxonomy.prepare(X, Y)
    meta, arrays = taxonomy.state()
    changed = [{k: change.get(k, v) for k, v in part.items()} for part in (meta, arrays)]
    if (
        change.keys() == {"parents"}
        and change["parents"].dtype.kind == "i"
        and (not change["parents"].any())
    ):
        return_to = Taxonomy.restore(*changed)  # all below the root: another taxonomy, but one
        assert return_to.graph_.heights[0] == 1
        return
    with pytest.raises((ValueError, KeyError, TypeError)):
        Taxonomy.restore(*changed)


def test_names_in_files():
    taxonomy = Taxonomy({(1, 2): "top", (3, 4): "top"})
    taxonomy.prepare(np.eye(2), [(1, 2), (3, 4)])
    meta, arrays = taxonomy.state()
    assert Taxonomy.restore(json.loads(json.dumps(meta)), arrays).classes_ == [(1, 2), (3, 4)]
    taxonomy = Taxonomy({frozenset({1}): "top", 2: "top"})
    taxonomy.prepare(np.eye(2), [frozenset({1}), 2])
    with pytest.raises(ValueError, match="a model file holds"):
        taxonomy.state()


# --- the binding ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_columns": 0}, "columns"),
        ({"n_columns": 2}, "out of range"),
        ({"begins": np.array([0], np.int64)}, "classes"),
        ({"begins": np.array([0, 2, 2], np.int64)}, "0 to the number of columns"),
        ({"begins": np.array([0, 3, 3], np.int64)}, "no column"),
        ({"begins": np.array([0, 9, 3], np.int64)}, "no column"),
        ({"columns": np.array([1, 0, 2], np.uint32)}, "ascending"),
        ({"lambdas": np.array([1.0, 0.0, 1.0])}, "not positive"),
        ({"lambdas": np.array([1.0, np.nan, 1.0])}, "not positive"),
        ({"lambdas": np.ones(2)}, "differ in length"),
        ({"labels": np.array([2], np.int32)}, "label code"),
    ],
)
def test_bad_arrays_are_refused(changes, message):
    arguments = {
        "n_columns": 3,
        "begins": np.array([0, 2, 3], np.int64),
        "columns": np.array([0, 1, 2], np.uint32),
        "lambdas": np.ones(3),
        "n_sparse": 0,
        "labels": np.zeros(1, np.int32),
        "dense64": np.ones((1, 2)),
    }
    assert _native.TaxonomyProblem(**arguments).n_examples == 1
    with pytest.raises(ValueError, match=message):
        _native.TaxonomyProblem(**{**arguments, **changes})


def test_checkpoints_know_their_taxonomy(tmp_path):
    taxonomy, _, X, Y = random_problem(5)
    problem, _ = taxonomy.prepare_problem(X, Y)
    file = tmp_path / "state"
    solve(problem, SDM(), C=1.0, checkpoint=file)
    other = Taxonomy(taxonomy.taxonomy, classes=taxonomy.classes)
    with pytest.raises(ValueError, match="data"):
        solve(other.prepare_problem(X, Y)[0], SDM(), C=1.0, checkpoint=file, resume=True)
