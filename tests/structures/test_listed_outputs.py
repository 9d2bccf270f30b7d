"""Outputs that are tried one by one: read once, kept within a budget, asked last."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin._native import Engine, PassOptions
from maxmargin.errors import StructureError
from maxmargin.structures.adapter import FEW_OUTPUTS, PythonProblem
from maxmargin.structures.base import Structure
from native_problems import everyone

N_BITS, N = 4, 5


class Bits(Structure):
    """Binary vectors with a weight for each bit and one for agreements; counts its calls."""

    n_features = N_BITS + 1

    def __init__(self, kind="tuple"):
        self.kind = kind
        self.calls = collections.Counter()

    def joint_feature(self, x, y):
        self.calls["joint_feature"] += 1
        dense = np.append(x * y, sum(a == b for a, b in itertools.pairwise(y)))
        if self.kind == "dense":
            return dense
        return np.flatnonzero(dense), dense[dense != 0]

    def loss(self, y, y_hat):
        self.calls["loss"] += 1
        return float(np.dot(np.not_equal(y, y_hat), 1 + np.arange(N_BITS)))

    def outputs(self, x):
        self.calls["outputs"] += 1
        return itertools.product((0, 1), repeat=N_BITS)


class FastBits(Bits):
    """The same with an argmax of its own."""

    def argmax(self, x, w, truth=None):
        self.calls["argmax"] += 1
        every = np.array(list(itertools.product((0, 1), repeat=N_BITS)))
        value = every @ (x * w[:-1]) + (every[:, 1:] == every[:, :-1]).sum(axis=1) * w[-1]
        if truth is not None:
            value += (every != np.array(truth)) @ (1.0 + np.arange(N_BITS))
        return tuple(every[np.argmax(value)].tolist())


def data(seed=0, n=N):
    rng = np.random.default_rng(seed)
    truths = [tuple(y) for y in rng.integers(0, 2, (n, N_BITS)).tolist()]
    return list(rng.normal(size=(n, N_BITS))), truths


def same_plane(a, b):
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])
    assert a[2:] == b[2:]


class Slow(Bits):
    """Bits whose outputs are tried by `Structure.argmax` itself."""

    def argmax(self, x, w, truth=None):
        return Structure.argmax(self, x, w, truth)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["dense", "tuple"]),
    scale=st.sampled_from([0.0, 0.3, 3.0]),
    keep=st.sampled_from([0, 700, 2**20]),
)
def test_the_oracle_is_that_of_the_inherited_argmax(seed, kind, scale, keep):
    X, Y = data(seed)
    listed = PythonProblem(Bits(kind), X, Y, keep_bytes=keep)
    slow = PythonProblem(Slow(kind), X, Y)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        w = scale * rng.normal(size=Bits.n_features)
        for i in range(N):
            same_plane(listed.oracle(i, w), slow.oracle(i, w))
    assert listed.kept_bytes <= keep


def test_the_first_of_several_best_outputs_wins(monkeypatch):
    class Ties(Bits):
        def loss(self, y, y_hat):
            return float(y != y_hat)

    monkeypatch.setattr("maxmargin.structures.adapter.CHUNK_BYTES", 1)
    X, Y = data()
    w = np.zeros(Bits.n_features)
    for keep in (0, 2**20):
        problem = PythonProblem(Ties(), X, Y, keep_bytes=keep)
        for i in range(N):
            first = next(y for y in Bits().outputs(None) if y != Y[i])
            indices, values, loss, truth = problem.oracle(i, w)
            plane = np.zeros(Bits.n_features)
            plane[indices] = values
            dense = Bits("dense")
            np.testing.assert_array_equal(
                plane, dense.joint_feature(X[i], Y[i]) - dense.joint_feature(X[i], first)
            )
            assert (loss, truth) == (1.0, False)


def test_features_are_asked_for_once():
    structure = Bits()
    problem = PythonProblem(structure, *data())
    structure.calls.clear()
    w = np.ones(Bits.n_features)
    for _ in range(4):
        for i in range(N):
            problem.oracle(i, w)
            problem.grades(i, w, False)
    assert structure.calls["outputs"] == N
    assert structure.calls["joint_feature"] == N * (2**N_BITS - 1)  # the truth's are known
    assert structure.calls["loss"] == N * 2**N_BITS


def test_no_more_is_kept_than_the_budget_allows():
    X, Y = data(n=20)
    one = PythonProblem(Bits(), X, Y)
    one.oracle(0, np.zeros(Bits.n_features))
    size = one.kept_bytes
    assert 0 < size < 10_000

    structure = Bits()
    problem = PythonProblem(structure, X, Y, keep_bytes=7 * size)
    for _ in range(3):
        for i in range(20):
            problem.oracle(i, np.zeros(Bits.n_features))
    assert 5 * size < problem.kept_bytes <= 7 * size
    asked = structure.calls["outputs"]
    assert 3 * (20 - 9) + 9 <= asked <= 3 * (20 - 5) + 5


def test_very_many_outputs_are_not_held_in_memory(monkeypatch):
    monkeypatch.setattr("maxmargin.structures.adapter.CHUNK_BYTES", 2000)
    largest = []
    alive = []

    class Many(Structure):
        n_features = 3

        def joint_feature(self, x, y):
            alive.append(y)
            del alive[:-1]
            return [0, 1], [1.0, float(y % 7)]

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def outputs(self, x):
            return iter(range(5000))

    problem = PythonProblem(Many(), [0], [0], keep_bytes=10_000)
    listings = problem._listings(0)
    for rows in listings:
        largest.append(rows.nbytes)
    assert len(largest) > 10
    assert max(largest) < 15_000
    assert problem.kept_bytes == 0
    indices, values, loss, truth = problem.oracle(0, np.array([0.0, 1.0, 0.0]))
    assert (indices.tolist(), values.tolist(), loss, truth) == ([1], [-6.0], 1.0, False)
    (plane,) = problem.grades(0, np.array([0.0, 1.0, 0.0]), False)
    same_plane(plane, (indices, values, loss, truth))


@pytest.mark.parametrize("kind", ["dense", "tuple"])
@pytest.mark.parametrize("keep", [0, 2**20])
def test_grades_are_the_best_by_loss(kind, keep):
    X, Y = data()
    problem = PythonProblem(Bits(kind), X, Y, keep_bytes=keep)
    w = np.random.default_rng(3).normal(size=Bits.n_features)
    structure = Bits("dense")
    for i in range(N):
        f = structure.joint_feature(X[i], Y[i])
        best = {}
        for y in structure.outputs(X[i]):
            if y != Y[i]:
                loss, delta = structure.loss(Y[i], y), f - structure.joint_feature(X[i], y)
                if loss not in best or w @ delta < w @ best[loss]:
                    best[loss] = delta
        planes = problem.grades(i, w, False)
        assert [plane[2] for plane in planes] == list(best)
        for indices, values, loss, truth in planes:
            plane = np.zeros(Bits.n_features)
            plane[indices] = values
            np.testing.assert_allclose(plane, best[loss], atol=1e-15)
            assert not truth
        (least,) = problem.grades(i, w, True)
        margin = least[1] @ w[least[0]]
        assert margin == pytest.approx(min(w @ delta for delta in best.values()), abs=1e-12)


# --- mistakes have their old names ---


@pytest.mark.parametrize(
    ("methods", "method", "words"),
    [
        ({"outputs": lambda self, x: 3}, "argmax", "failed: TypeError"),
        ({"outputs": lambda self, x: []}, "argmax", r"failed: ValueError: outputs\(x\) is empty"),
        ({"outputs": lambda self, x: 1 / 0}, "argmax", "failed: ZeroDivisionError"),
        ({"outputs": lambda self, x: [(0, 0)]}, "argmax", "failed: ValueError"),
    ],
)
def test_mistakes_of_the_oracle(methods, method, words):
    problem = PythonProblem(type("Broken", (Bits,), methods)(), *data())
    with pytest.raises(StructureError, match=words) as caught:
        problem.oracle(1, np.zeros(Bits.n_features))
    assert (caught.value.method, caught.value.example) == (method, 1)


@pytest.mark.parametrize(
    ("methods", "method", "words"),
    [
        ({"outputs": lambda self, x: 3}, "outputs", "returned a int; expected an iterable"),
        ({"outputs": lambda self, x: 1 / 0}, "outputs", "failed: ZeroDivisionError"),
        ({"outputs": lambda self, x: [None]}, "outputs", "None among the outputs"),
        (
            {
                "outputs": lambda self, x: [None, (9,) * N_BITS],
                "loss": lambda self, y, y_hat: float(y != y_hat),
                "joint_feature": lambda self, x, y: {9 if y == (9,) * N_BITS else 0: 1.0},
            },
            "outputs",
            "None among the outputs",
        ),
        (
            {
                "outputs": lambda self, x: [(9,) * N_BITS],
                "joint_feature": lambda self, x, y: {9 if y == (9,) * N_BITS else 0: 1.0},
            },
            "joint_feature",
            r"the index 9; expected indices from 0 to 4 \(an output of outputs\)",
        ),
    ],
)
def test_mistakes_of_grades(methods, method, words):
    problem = PythonProblem(type("Broken", (Bits,), methods)(), *data())
    with pytest.raises(StructureError, match=words) as caught:
        problem.grades(1, np.zeros(Bits.n_features), False)
    assert (caught.value.method, caught.value.example) == (method, 1)


def test_none_is_no_output():
    class Broken(Bits):
        def outputs(self, x):
            return [None]

        def loss(self, y, y_hat):
            return 0.0

        def joint_feature(self, x, y):
            return {0: 1.0}

        def equal(self, y, y_hat):
            return False

    problem = PythonProblem(Broken(), *data())
    with pytest.raises(StructureError, match="argmax of Broken returned None"):
        problem.oracle(0, np.zeros(Bits.n_features))


def test_outputs_without_the_truth_may_be_worse_than_it():
    class Without(Bits):
        def outputs(self, x):
            return [(1 - np.array(truth)).tolist()]

    X, (truth, *_) = data()
    problem = PythonProblem(Without("dense"), X[:1], [truth])
    w = 100 * np.append(X[0] * (2 * np.array(truth) - 1), 0)
    with pytest.warns(UserWarning, match="worse than the truth for example 0"):
        assert problem.oracle(0, w)[3]
    assert problem.n_worse == 1


# --- slack rescaling ---


def trained(structure, rescale, slack="linear"):
    X, Y = data(seed=7, n=12)
    problem = PythonProblem(structure, X, Y)
    structure.calls.clear()
    engine = Engine(
        _native.PythonProblem(problem),
        0.3,
        single=False,
        factored=False,
        rescale=rescale,
        slack=slack,
    )
    for _ in range(15):
        engine.exact_pass(everyone(12), PassOptions())
    return engine


@pytest.mark.parametrize(
    ("rescale", "slack"), [("slack", "linear"), ("slack", "quadratic"), ("margin", "quadratic")]
)
def test_corners_come_before_enumeration_and_lose_nothing(rescale, slack):
    fast, plain = FastBits(), Bits()
    mine, exact = trained(fast, rescale, slack), trained(plain, rescale, slack)
    # Each is asked for its number of outputs; some needed to be tried, none twice.
    assert 12 < fast.calls["outputs"] <= 2 * 12
    assert fast.calls["argmax"] > 12 * 15
    assert plain.calls["argmax"] == 0
    assert mine.dual() == pytest.approx(exact.dual(), rel=1e-6)
    # At one w, what either finds is the same.
    for w in np.random.default_rng(0).normal(size=(10, Bits.n_features)):
        for engine in (mine, exact):
            engine.weights[:] = w
        assert mine.hinge() == pytest.approx(exact.hinge(), rel=1e-9)


def test_enumeration_is_not_asked_where_corners_prove_the_optimum():
    class Zero(FastBits):
        """A loss of two values has its outputs on two corners."""

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def argmax(self, x, w, truth=None):
            self.calls["argmax"] += 1
            every = list(itertools.product((0, 1), repeat=N_BITS))
            score = [
                x * y @ w[:-1] + w[-1] * sum(a == b for a, b in itertools.pairwise(y))
                for y in every
            ]
            if truth is not None:
                score = [s + (y != truth) for s, y in zip(score, every, strict=True)]
            return every[int(np.argmax(score))]

    structure = Zero()
    engine = trained(structure, "slack")
    engine.hinge()
    assert structure.calls["argmax"] > 0
    assert structure.calls["outputs"] == 12  # asked for its length, which it has not


def test_few_outputs_are_enumerated_rather_than_asking_argmax():
    class Few(FastBits):
        def outputs(self, x):
            return list(super().outputs(x))

    structure = Few()
    assert 2**N_BITS <= FEW_OUTPUTS
    trained(structure, "slack")
    assert structure.calls["argmax"] == 0
    assert structure.calls["outputs"] == 2 * 12  # once for the number, once for the planes


def test_without_rescaling_all_outputs_are_tried():
    structure = FastBits()
    trained(structure, "none")
    assert structure.calls["argmax"] == 0
    assert structure.calls["outputs"] == 12
