"""The references that other tests lean on, tested against still simpler things."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.svm import LinearSVC

from maxmargin.links import Link
from maxmargin.structures.base import Structure
from maxmargin.structures.check import check_structure
from qp_reference import Planes, solve, solve_planes
from reference_chain import ReferenceChain, Weighted, dense_tokens

# --- the reference chain ---


def random_chain(seed, *, n_labels=3, n_token_features=2, with_cost=False):
    rng = np.random.default_rng(seed)
    cost = None
    if with_cost:
        cost = rng.random((n_labels, n_labels))
        np.fill_diagonal(cost, 0.0)
    return ReferenceChain(n_labels, n_token_features, cost), rng


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 4),
    length=st.integers(1, 4),
    with_cost=st.booleans(),
    weighted=st.booleans(),
)
def test_viterbi_against_brute_force(seed, n_labels, length, with_cost, weighted):
    chain, rng = random_chain(seed, n_labels=n_labels, with_cost=with_cost)
    x = rng.normal(size=(length, 2))
    w = rng.normal(size=chain.n_features)
    truth = rng.integers(0, n_labels, length)
    if weighted:
        truth = Weighted(truth, rng.random(length))
    np.testing.assert_array_equal(chain.argmax(x, w), chain.brute_argmax(x, w))
    np.testing.assert_array_equal(chain.argmax(x, w, truth), chain.brute_argmax(x, w, truth))
    best = chain.argmax(x, w, truth)
    value = chain.score(x, best, w) + chain.loss(truth, best)
    assert value == pytest.approx(chain.all_values(x, w, truth).max())


def test_layout_of_the_weights():
    chain = ReferenceChain(2, 3)
    assert chain.n_features == 3 * 2 + 4 + 2 + 2
    x = np.array([[1.0, 0.0, 5.0], [0.0, 2.0, 0.0]])
    f = chain.joint_feature(x, [1, 0])
    assert f[:6].reshape(3, 2).tolist() == [[0.0, 1.0], [2.0, 0.0], [0.0, 5.0]]
    assert f[6:10].reshape(2, 2).tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert f[10:12].tolist() == [0.0, 1.0]
    assert f[12:].tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="2 tokens and 3 labels"):
        chain.joint_feature(x, [1, 0, 0])


def test_loss_with_costs_and_token_weights():
    chain = ReferenceChain(2, 1, cost=[[0.0, 3.0], [5.0, 0.0]])
    assert chain.loss([0, 1, 1], [1, 0, 1]) == 8.0
    assert chain.loss(Weighted(np.array([0, 1, 1]), np.array([1.0, 0.5, 9.0])), [1, 0, 1]) == 5.5


def test_kbest():
    chain, rng = random_chain(3)
    x, w = rng.normal(size=(3, 2)), rng.normal(size=chain.n_features)
    ranked = chain.kbest(x, w, 100)
    assert len(ranked) == 27
    np.testing.assert_array_equal(ranked[0][1], chain.argmax(x, w))
    scores = [score for score, _ in ranked]
    assert scores == sorted(scores, reverse=True)
    for score, labels in ranked:
        assert score == pytest.approx(chain.score(x, labels, w))
    assert [list(y) for _, y in chain.kbest(x, 0 * w, 2)] == [[0, 0, 0], [0, 0, 1]]


def test_all_outputs():
    assert ReferenceChain(2, 1).all_outputs(2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert ReferenceChain(3, 1).all_outputs(1).tolist() == [[0], [1], [2]]


def test_kinds_of_sequences():
    blocks = sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0], [4.0]])
    expected = [[1.0, 0.0, 3.0], [0.0, 2.0, 4.0]]
    assert dense_tokens(blocks).tolist() == expected
    assert dense_tokens({"sparse": blocks[0], "dense": blocks[1]}).tolist() == expected
    assert dense_tokens(sparse.csr_array(np.array(expected))).tolist() == expected


def test_the_reference_chain_is_a_correct_structure():
    chain, rng = random_chain(5, with_cost=True)
    X = [rng.normal(size=(t, 2)) for t in (1, 2, 3, 3)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    Y[3] = Weighted(Y[3], rng.random(3))
    report = check_structure(chain, X[:3], Y[:3])
    assert report.ok, str(report)


# --- the reference solver ---


class Binary(Structure):
    """Two classes, -1 and +1, such that w is that of an ordinary SVM without a bias."""

    def joint_feature(self, x, y):
        return 0.5 * y * x

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return (-1, 1)


class Table(Structure):
    """Any features and losses: x is [K][d], losses are [K][K]."""

    def __init__(self, losses):
        self.losses = losses

    def joint_feature(self, x, y):
        return x[y]

    def loss(self, y, y_hat):
        return self.losses[y, y_hat]

    def outputs(self, x):
        return range(len(x))


def objective(structure, X, Y, w, C):
    """½‖w‖² + C·Σ hinge, straight from the definition."""
    return 0.5 * w @ w + C * sum(
        max(
            structure.loss(y, z) + structure.score(x, z, w) - structure.score(x, y, w)
            for z in structure.outputs(x)
        )
        for x, y in zip(X, Y, strict=True)
    )


def test_one_example_by_hand():
    # min ½w² + C·max(0, 1 - w): w = min(C, 1)
    for C in (0.25, 1.0, 4.0):
        w, primal, dual = solve(Binary(), [np.array([1.0])], [1], C)
        assert w[0] == pytest.approx(min(C, 1.0), abs=1e-6)
        expected = C - C**2 / 2 if C < 1 else 0.5
        assert primal == pytest.approx(expected, rel=1e-8)
        assert dual == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_against_liblinear(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=40) > 0, 1, -1)
    twin = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=2_000_000)
    w, primal, _ = solve(Binary(), list(X), list(y), C)
    reached = objective(Binary(), X, y, twin.fit(X, y).coef_[0], C)
    assert primal <= reached * (1 + 1e-8)
    assert primal == pytest.approx(reached, rel=1e-5)
    assert primal == pytest.approx(objective(Binary(), X, y, w, C), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    n=st.integers(1, 6),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
)
def test_optimality(seed, k, n, C):
    rng = np.random.default_rng(seed)
    losses = rng.random((k, k)) * (rng.random((k, k)) < 0.8)
    np.fill_diagonal(losses, 0.0)
    X, Y = list(rng.normal(size=(n, k, 4))), list(rng.integers(0, k, n))
    structure = Table(losses)
    w, primal, dual = solve(structure, X, Y, C)  # asserts the gap itself
    assert primal == pytest.approx(objective(structure, X, Y, w, C), rel=1e-9, abs=1e-12)
    assert dual <= primal + 1e-12
    for _ in range(20):  # no point near or far is better than the dual says
        other = w + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=4)
        assert objective(structure, X, Y, other, C) >= dual - 1e-12


def test_against_another_method():
    rng = np.random.default_rng(2)
    chain = ReferenceChain(2, 2)
    X = [rng.normal(size=(t, 2)) for t in (1, 2, 3)]
    Y = [rng.integers(0, 2, len(x)) for x in X]
    _, primal, _ = solve(chain, X, Y, C=0.7)
    d, n = chain.n_features, len(X)
    rows, bounds = [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for z in chain.outputs(x):
            rows.append(np.r_[chain.joint_feature(x, y) - chain.joint_feature(x, z), np.eye(n)[i]])
            bounds.append(chain.loss(y, z))
    A, b = np.array(rows), np.array(bounds)
    found = optimize.minimize(
        lambda u: 0.5 * u[:d] @ u[:d] + 0.7 * u[d:].sum(),
        np.r_[np.zeros(d), np.full(n, 3.0)],
        jac=lambda u: np.r_[u[:d], np.full(n, 0.7)],
        constraints={"type": "ineq", "fun": lambda u: A @ u - b, "jac": lambda u: A},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert primal == pytest.approx(found.fun, rel=1e-7)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    slack=st.sampled_from(["linear", "quadratic"]),
    size=st.sampled_from([1.0, 1e3, 1e5]),
    C=st.sampled_from([1e-2, 1.0, 1e4, 1e6]),
)
def test_links_and_scales(seed, slack, size, C):
    """The optimum of any link: the library's Ω agrees, and no point is below the dual."""
    rng = np.random.default_rng(seed)
    n, d = 4, 5
    example = np.repeat(np.arange(n), 3)
    columns = size ** rng.random(d)
    planes = Planes(n, example, columns * rng.normal(size=(len(example), d)), rng.random(12) + 0.1)
    offset = rng.choice([0.0, 0.3, -0.2], d)
    link = Link(
        lower=-rng.choice([0.0, 0.3], d),
        upper=rng.choice([0.0, 0.5], d),
        scale=rng.choice([0.0, 0.5, 2.0], d),
        offset=offset,
        least=offset - rng.choice([0.0, 0.1, np.inf], d),
        most=offset + rng.choice([0.2, np.inf], d),
    )
    shares = C * rng.uniform(0.5, 2.0, n)

    def value(w):
        xi = np.array([(planes.loss - planes.delta @ w)[example == i].max() for i in range(n)])
        xi = np.maximum(xi, 0.0)
        return link.penalty(w) + shares @ (xi if slack == "linear" else 0.5 * xi**2)

    w, primal, dual = solve_planes(planes, shares, slack=slack, link=link)
    assert primal == pytest.approx(value(w), rel=1e-9)
    for _ in range(20):
        other = w + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=d) * (link.scale > 0)
        assert value(np.clip(other, link.least, link.most)) >= dual - 1e-9 * primal


def test_chain_with_many_outputs():
    chain, rng = random_chain(9, with_cost=True)
    X = [rng.normal(size=(t, 2)) for t in (4, 4, 3, 1)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    for C in (0.01, 1.0, 100.0):
        w, primal, dual = solve(chain, X, Y, C)
        assert 0 <= primal - dual <= 1e-8 * max(1.0, primal)
        assert primal == pytest.approx(objective(chain, X, Y, w, C), rel=1e-9)


def test_unknown_slack():
    with pytest.raises(ValueError, match="slack is 'cubic'"):
        solve(Binary(), [np.ones(1)], [1], slack="cubic")
