"""Dependency trees in native code against brute force, from decoders to formulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import formulated, quietly, slacks
from maxmargin import _native
from maxmargin.solvers import SDM
from maxmargin.structures.dependency_trees import checked_heads, is_projective, list_trees
from native_problems import check_state, everyone, listed_problem
from qp_reference import list_planes
from reference_dependency import TEXT, ReferenceTrees, random_sentences, random_tree

SPACES = [(True, True), (True, False), (False, True), (False, False)]  # projective, one root


def score_of(scores, heads):
    return sum(scores[h, d] for d, h in enumerate(heads, start=1))


# --- decoders ---


@given(
    n=st.integers(1, 5),
    space=st.sampled_from(SPACES),
    seed=st.integers(0, 2**32 - 1),
    whole=st.booleans(),
    root=st.sampled_from([-5.0, 0.0, 5.0]),
)
def test_decoders_find_the_best_tree(n, space, seed, whole, root):
    projective, one_root = space
    rng = np.random.default_rng(seed)
    scores = (
        rng.integers(-3, 4, (n + 1, n + 1)).astype(float)
        if whole
        else rng.normal(size=(n + 1,) * 2)
    )
    scores[0] += root  # many children of the root, or none, are tempting
    heads = _native.decode_tree(scores, projective, one_root).tolist()
    checked_heads(heads, n, "answer", one_root=one_root)
    assert is_projective(heads) or not projective
    trees = list_trees(n, projective=projective, one_root=one_root)
    best = max(score_of(scores, tree) for tree in trees)
    assert score_of(scores, heads) == pytest.approx(best, abs=1e-9)


def edmonds(scores, nodes, root):
    """Return the score of the best arborescence, by the recursion of the textbook."""
    best = {d: max((scores[h, d], h) for h in nodes if h != d) for d in nodes if d != root}
    for start in best:
        path, at = [], start
        while at != root and at not in path:
            path.append(at)
            at = best[at][1]
        if at == root:
            continue
        cycle = path[path.index(at) :]
        inside = sum(best[d][0] for d in cycle)
        fresh = max(nodes) + 1
        rest = [v for v in nodes if v not in cycle]
        smaller = {(h, d): scores[h, d] for h in rest for d in rest if h != d}
        for v in rest:
            smaller[v, fresh] = max(scores[v, d] - best[d][0] for d in cycle)
            smaller[fresh, v] = max(scores[h, v] for h in cycle)
        return inside + edmonds(smaller, [*rest, fresh], root)
    return sum(value for value, _ in best.values())


@pytest.mark.parametrize("n", [8, 13, 30])
def test_large_arborescences_are_those_of_the_textbook(n):
    rng = np.random.default_rng(n)
    for _ in range(40):
        scores = rng.normal(size=(n + 1, n + 1))
        for d in range(1, n + 1):  # rings, within rings
            scores[d % n + 1, d] += 4.0 * (d % 3 > 0)
            scores[max(d - 3, 1), d] += 3.0 * (d % 4 == 0)
        arcs = {(h, d): scores[h, d] for h in range(n + 1) for d in range(n + 1) if h != d}
        heads = _native.decode_tree(scores, False, False).tolist()
        checked_heads(heads, n, "answer", one_root=False)
        assert score_of(scores, heads) == pytest.approx(edmonds(arcs, list(range(n + 1)), 0))
        # With one root: the best over all words that may be it.
        best = -np.inf
        for root in range(1, n + 1):
            words = {a: s for a, s in arcs.items() if 0 not in a}
            best = max(best, scores[0, root] + edmonds(words, list(range(1, n + 1)), root))
        heads = _native.decode_tree(scores, False, True).tolist()
        checked_heads(heads, n, "answer", one_root=True)
        assert score_of(scores, heads) == pytest.approx(best)


def test_long_sentences_are_decoded():
    scores = np.random.default_rng(0).normal(size=(151, 151))
    totals = {}
    for projective, one_root in SPACES:
        heads = _native.decode_tree(scores, projective, one_root).tolist()
        checked_heads(heads, 150, "answer", one_root=one_root)
        assert is_projective(heads) or not projective
        totals[projective, one_root] = score_of(scores, heads)
    assert totals[True, True] <= totals[True, False] <= totals[False, False]
    assert totals[True, True] <= totals[False, True] <= totals[False, False]


@pytest.mark.parametrize("size", [1.0, 1e17, 3e38, 1.7e308])
@pytest.mark.parametrize("space", SPACES)
def test_large_scores_that_are_equal_make_trees(size, space):
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        for choices in ([1.0], [-1.0], [-1.0, 0.0, 1.0]):
            scores = rng.choice(choices, size=(n + 1, n + 1)) * size
            heads = _native.decode_tree(scores, *space).tolist()
            checked_heads(heads, n, "answer", one_root=space[1])


def test_decoders_refuse_what_is_no_matrix_of_scores():
    with pytest.raises(ValueError, match="square matrix"):
        _native.decode_tree(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="not finite"):
        _native.decode_tree(np.full((3, 3), np.nan))
    assert _native.decode_tree(np.zeros((1, 1))).tolist() == []


# --- features, oracle, prediction ---


def reference_of(space, n_labels, zero_one=False):
    projective, one_root = space
    return ReferenceTrees(
        TEXT, n_labels=n_labels, projective=projective, one_root=one_root, zero_one=zero_one
    )


@given(
    space=st.sampled_from(SPACES),
    n_labels=st.sampled_from([0, 1, 2]),
    zero_one=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_oracle_and_prediction_against_all_trees(space, n_labels, zero_one, seed):
    rng = np.random.default_rng(seed)
    reference = reference_of(space, n_labels, zero_one)
    X = random_sentences(rng, rng.integers(1, 4 if n_labels else 5, 3))
    Y = [random_tree(rng, reference, x) for x in X]
    problem = reference.problem(X, Y)
    w = rng.normal(size=reference.n_features) * rng.choice([0.05, 0.3, 2.0])
    plain, augmented = problem.predict(w), problem.oracle(w)
    given_heads = np.concatenate([y[: len(x)] for x, y in zip(X, Y, strict=True)]).astype(np.int32)
    given_labels = np.zeros_like(given_heads)
    if n_labels:
        given_labels = np.concatenate([y[len(x) :] for x, y in zip(X, Y, strict=True)]).astype(
            np.int32
        )
    scores = problem.score(w, given_heads, given_labels)
    indices, ends = problem.features(given_heads, given_labels)
    at = 0
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        f = reference.joint_feature(x, y)
        counted = np.bincount(indices[ends[i] : ends[i + 1]], minlength=reference.n_features)
        np.testing.assert_array_equal(counted, f)
        assert scores[i] == pytest.approx(w @ f)

        words = slice(at, at + len(x))

        def found(answer, words=words):
            parts = [part[words] for part in answer]
            return np.concatenate(parts) if n_labels else parts[0]

        every = [(z, w @ reference.joint_feature(x, z)) for z in reference.outputs(x)]
        assert w @ reference.joint_feature(x, found(plain)) == pytest.approx(
            max(s for _, s in every)
        )
        z = found(augmented)
        value = w @ reference.joint_feature(x, z) + reference.loss(y, z)
        assert value == pytest.approx(max(s + reference.loss(y, z) for z, s in every))
        at += len(x)


def test_both_precisions_agree():
    rng = np.random.default_rng(3)
    reference = reference_of((True, True), 3)
    X = random_sentences(rng, [3, 7, 12, 30])
    problem = reference.problem(X, None)
    w = rng.normal(size=reference.n_features)
    wide, narrow = problem.predict(w), problem.predict(w.astype(np.float32))
    np.testing.assert_array_equal(wide[0], narrow[0])
    np.testing.assert_array_equal(wide[1], narrow[1])
    np.testing.assert_array_equal(wide[0], problem.predict(w, 3)[0])


# --- planes ---


class DependencyPlanes:
    """Δf and loss of a plane by their definition, from its code."""

    def __init__(self, reference, X, Y):
        self.reference, self.X, self.Y = reference, X, Y

    def plane(self, i, code):
        x, y = self.X[i], self.Y[i]
        z = y.copy()
        for d, word in zip(code[::2].tolist(), code[1::2].tolist(), strict=True):
            z[d - 1] = word & 0xFFFF
            if self.reference.n_labels:
                z[len(x) + d - 1] = word >> 16
        f = self.reference.joint_feature
        return f(x, y) - f(x, z), self.reference.loss(y, z)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("n_labels", [0, 3])
def test_the_state_of_training_is_what_its_planes_say(space, n_labels):
    rng = np.random.default_rng(5)
    reference = reference_of(space, n_labels)
    X = random_sentences(rng, [4, 3, 1, 3] if n_labels == 0 else [3, 3, 1, 2])
    Y = [random_tree(rng, reference, x) for x in X]
    for dtype in ("float64", "float32"):
        engine = _native.Engine(reference.problem(X, Y), 0.5, single=dtype == "float32")
        options, order = _native.PassOptions(), everyone(len(X))
        for _ in range(4):
            engine.exact_pass(order, options)
            engine.cached_pass(order, options)
        engine.collect_pass(1)
        planes = DependencyPlanes(reference, X, Y)
        tolerance = 1e-5 if dtype == "float32" else 1e-9
        rebuilt = check_state(engine, planes, np.array, tolerance=tolerance)
        assert sum(len(part.alpha) for part in rebuilt.parts) > 6


# --- formulations ---


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("rescale", ["margin", "slack", "none"])
@pytest.mark.parametrize("space", [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("zero_one", [False, True])
def test_certificates_are_those_of_all_trees_listed(slack, rescale, space, zero_one):
    rng = np.random.default_rng(11)
    reference = reference_of(space, 0, zero_one)
    X = random_sentences(rng, [4, 3, 2, 4, 1])
    Y = [random_tree(rng, reference, x) for x in X]
    solver = SDM(slack=slack, rescale=rescale)
    options = {"C": 0.3, "gap": 1e-3, "dtype": "float64", "random_state": 0, "max_passes": 2000}
    result = quietly(reference.problem(X, Y), solver, **options)
    listed = quietly(listed_problem(reference, X, Y), solver, **options)
    planes = formulated(list_planes(reference, X, Y), slack, rescale)
    xi = slacks(planes, result.weights)
    by_hand = 0.5 * result.weights @ result.weights
    by_hand += 0.3 * (xi if slack == "linear" else 0.5 * xi**2).sum()
    if space[0] or zero_one or (slack, rescale) == ("linear", "margin") or rescale == "none":
        assert result.certificate.gap <= 1e-3 + 1e-9
        assert result.certificate.primal == pytest.approx(by_hand, rel=1e-7)
    else:  # bounded: the certificate is never too good
        assert result.certificate.primal >= by_hand * (1 - 1e-9)
    assert result.certificate.dual <= listed.certificate.primal * (1 + 1e-7)
    assert listed.certificate.dual <= result.certificate.primal * (1 + 1e-7)


def test_a_truth_with_crossing_arcs_is_learned_from_by_projective_trees():
    crossing = np.array([3, 4, 0, 3], dtype=np.int32)  # 1 <- 3 and 2 <- 4
    assert not is_projective(crossing)
    reference = reference_of((True, True), 0)
    X = [[("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]]
    result = quietly(reference.problem(X, [crossing]), SDM(), C=1.0, gap=1e-4, dtype="float64")
    assert result.certificate.gap <= 1e-4
    # The hinge is that of the best projective tree against the truth.
    f = reference.joint_feature
    own = result.weights @ f(X[0], crossing)
    every = [
        result.weights @ f(X[0], z) + reference.loss(crossing, z) for z in reference.outputs(X[0])
    ]
    hinge = max(0.0, max(every) - own)
    by_hand = 0.5 * result.weights @ result.weights + hinge
    assert result.certificate.primal == pytest.approx(by_hand)
    assert hinge < 1.0


def test_weights_of_examples_count():
    rng = np.random.default_rng(2)
    reference = reference_of((True, True), 0)
    X = random_sentences(rng, [3, 3])
    Y = [random_tree(rng, reference, x) for x in X]
    options = {"C": 0.3, "gap": 1e-5, "dtype": "float64", "random_state": 0}
    twice = quietly(reference.problem([*X, X[0]], [*Y, Y[0]]), SDM(), **options)
    share = np.array([2.0, 1.0])
    weighed = quietly(reference.problem(X, Y, example_weight=share), SDM(), **options)
    assert weighed.certificate.primal == pytest.approx(twice.certificate.primal, rel=1e-4)


# --- bad input ---


def test_the_binding_refuses_arrays_that_do_not_go_together():
    reference = reference_of((True, True), 2)
    X = [[("a", "A"), ("b", "B")]]
    Y = [np.array([2, 0, 0, 1])]
    for changes, message in (
        ({"heads": np.array([3, 0], dtype=np.int32)}, "out of range"),
        ({"heads": np.array([1, 0], dtype=np.int32)}, "the word itself"),
        ({"heads": np.array([2], dtype=np.int32)}, "one head for each token"),
        ({"labels": np.array([2, 0], dtype=np.int32)}, "relation is out of range"),
        ({"offsets": np.array([0, 3])}, "one row of atoms"),
        ({"offsets": np.array([1, 2])}, "begin with 0"),
        ({"offsets": np.array([0, 2, 1])}, "must not decrease"),
        ({"arc_bits": 2}, "3 to 30"),
        ({"program": np.array([0, 0, 2, 0, 0, 0], dtype=np.int32)}, "ends too early"),
        ({"program": np.array([0, 0, 1, 0, 99, 0], dtype=np.int32)}, "atom of a template"),
        ({"seeds": np.zeros(1, dtype=np.uint64)}, "one seed"),
        ({"example_weight": np.array([-1.0])}, "negative"),
        (
            {"n_labels": 0, "labels": None, "heads": None, "specials": np.zeros((1, 2), np.uint64)},
            "special",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            reference.problem(X, Y, **changes)
    problem = reference.problem(X, None)
    with pytest.raises(ValueError, match="weights, got 3"):
        problem.predict(np.zeros(3))
    with pytest.raises(ValueError, match="needs the heads"):
        problem.oracle(np.zeros(reference.n_features))


# --- what could go wrong ---


MANY = "\n".join(f"h.tag{a:+d} between.word{b:+d} d.tag" for a in range(9) for b in range(9))


def test_gram_entries_of_many_templates_of_what_lies_between():
    """A plane has more features than the usual templates would give it."""
    reference = ReferenceTrees(MANY, bits=16)
    n = 40
    x = [(f"w{k}", f"T{k}") for k in range(n)]
    y = np.array([2, 0] + [1] * (n - 2), dtype=np.int32)
    problem = reference.problem([x], [y], projective=False)
    engine = _native.Engine(problem, 1.0, single=False)
    for _ in range(3):
        engine.exact_pass(everyone(1), _native.PassOptions())
    check_state(engine, TreePlanes(reference, [x], [y]), np.asarray, tolerance=1e-9)


class TreePlanes:
    """Planes of unlabelled trees, by the definition of their features."""

    def __init__(self, reference, X, Y):
        self.reference, self.X, self.Y = reference, X, Y

    def plane(self, i, code):
        x, y = self.X[i], self.Y[i]
        other = np.array(y)
        for d, word in np.asarray(code).reshape(-1, 2).tolist():
            other[d - 1] = word & 0xFFFF
        delta = self.reference.joint_feature(x, y) - self.reference.joint_feature(x, other)
        return delta, self.reference.loss(y, other)


def test_more_weights_than_indices_are_refused():
    reference = ReferenceTrees(TEXT, n_labels=2)
    x, y = [("a", "A")], np.array([0, 0], dtype=np.int32)
    with pytest.raises(ValueError, match="more weights than the index type"):
        reference.problem([x], [y], row_bits=24, n_labels=60_000)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_whose_sums_overflow_still_give_trees(space, dtype):
    rng = np.random.default_rng(3)
    reference = reference_of(space, 2)
    X = random_sentences(rng, [1, 2, 5, 9])
    problem = reference.problem(X, None)
    for _ in range(20):
        w = rng.choice([-1, 0, 1], size=reference.n_features) * np.finfo(dtype).max
        heads, labels = problem.predict(w.astype(dtype), 9)
        ends = np.cumsum([len(x) for x in X])
        for part, x in zip(np.split(heads, ends[:-1]), X, strict=True):
            checked_heads(part.tolist(), len(x), "answer", one_root=space[1])
        assert ((labels >= 0) & (labels < 2)).all()
