"""Truths of another kind than outputs (grades, rankings); weights with a sign (graph cuts)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from maxmargin import (
    ElasticNet,
    GaussianPrior,
    Nonnegative,
    NotCompatibleError,
    StructuralSVM,
    Structure,
    StructureError,
    check_structure,
)
from maxmargin.structures.adapter import PythonProblem

RNG = np.random.default_rng(0)


# --- rankings: the truth is a grade for each document, an output is their order ---


class Ranking(Structure):
    """Orders of documents; f(x, y) adds up the documents, those in front more."""

    def joint_feature(self, x, y):
        weight = np.empty(len(y))
        weight[list(y)] = np.arange(len(y) - 1, -len(y), -2)  # of the first, second, ... place
        return weight @ x / len(y)

    def loss(self, grades, order):
        """Share of pairs of different grades that stand in the wrong order."""
        place = np.argsort(order)
        pairs = [
            (a, b)
            for a, b in itertools.permutations(range(len(grades)), 2)
            if grades[a] > grades[b]
        ]
        return sum(place[a] > place[b] for a, b in pairs) / max(len(pairs), 1)

    def outputs(self, x):
        return itertools.permutations(range(len(x)))

    def true_output(self, x, grades):
        return tuple(np.argsort(-np.asarray(grades), kind="stable").tolist())


def queries(n, seed=0):
    draw = np.random.default_rng(seed)
    X = [draw.normal(size=(draw.integers(2, 5), 3)) for _ in range(n)]
    grades = [np.digitize(x @ [1.0, -1.0, 0.0], [-0.5, 0.5]) for x in X]
    return X, grades


def test_rankings_are_learned():
    X, grades = queries(40)
    assert check_structure(Ranking(), X, grades).ok
    model = StructuralSVM(Ranking(), C=10.0, random_state=0).fit(X, grades)
    new = queries(40, 1)
    assert -model.score(*new) < 0.1
    assert sorted(model.predict(new[0][:1])[0]) == list(range(len(new[0][0])))
    w = model.weights_ / np.abs(model.weights_).max()
    assert w[0] > 0.5
    assert w[1] < -0.5
    assert abs(w[2]) < 0.5


def test_the_objective_is_that_of_all_orders():
    X, grades = queries(8)
    model = StructuralSVM(Ranking(), C=1.0, gap=1e-6).fit(X, grades)
    structure, w = Ranking(), model.weights_
    slacks = []
    for x, g in zip(X, grades, strict=True):
        best = structure.joint_feature(x, structure.true_output(x, g)) @ w
        values = [
            structure.loss(g, y) + structure.joint_feature(x, y) @ w - best
            for y in structure.outputs(x)
        ]
        slacks.append(max(values))
    assert model.certificate_.primal == pytest.approx(0.5 * w @ w + sum(slacks), rel=1e-9)


def test_true_outputs_that_are_wrong():
    X, grades = queries(3)

    class Costly(Ranking):
        def true_output(self, x, grades):
            return super().true_output(x, grades)[::-1]

    with pytest.raises(StructureError, match="for the truth itself; expected 0"):
        PythonProblem(Costly(), X, grades)
    assert not check_structure(Costly(), X, grades).ok

    class Nothing(Ranking):
        def true_output(self, x, grades):
            return None

    with pytest.raises(StructureError, match="true_output of Nothing returned None"):
        PythonProblem(Nothing(), X, grades)
    report = check_structure(Nothing(), X, grades)
    assert [problem.method for problem in report.problems] == ["true_output"]
    # without the method, grades are taken for an order
    plain = type("Plain", (Ranking,), {"true_output": Structure.true_output})
    with pytest.raises(StructureError):
        PythonProblem(plain(), X, [g * 1.0 for g in grades])


class DuckRanking:
    """The methods alone."""

    def __init__(self):
        self._own = Ranking()

    def __getattr__(self, name):
        if name.startswith("__") or name in ("_own", "n_features", "nonnegative"):
            raise AttributeError(name)
        return getattr(self._own, name)


def test_objects_with_the_methods_alone():
    X, grades = queries(10)
    duck = StructuralSVM(DuckRanking(), random_state=0).fit(X, grades)
    own = StructuralSVM(Ranking(), random_state=0).fit(X, grades)
    np.testing.assert_allclose(duck.weights_, own.weights_)


# --- graph cuts: neighbours that differ must cost something, or no cut finds the best output ---

SIDE = 3
EDGES = [(k, k + 1) for k in range(SIDE**2) if (k + 1) % SIDE]
EDGES += [(k, k + SIDE) for k in range(SIDE**2 - SIDE)]
UNIT = 2**20  # flows are whole numbers


class Grid(Structure):
    """Black and white pixels; -(number of neighbours that differ) is a feature."""

    n_features = 3
    nonnegative = (2,)

    def joint_feature(self, x, y):
        y = np.asarray(y)
        differ = sum(y[a] != y[b] for a, b in EDGES)
        return np.array([y @ x, y.sum(), -differ])

    def loss(self, y, y_hat):
        return float(np.sum(np.asarray(y) != y_hat))

    def argmax(self, x, w, truth=None):
        gain = w[0] * x + w[1]  # of a white pixel over a black one
        if truth is not None:
            gain = gain + 1.0 - 2.0 * np.asarray(truth)
        assert w[2] >= 0, "a cut cannot reward differences"
        return tuple(minimum_cut(gain, w[2]))


def minimum_cut(gain, pair):
    """Return the pixels on the side of the source: max of gain·y - pair·(differences)."""
    n = len(gain)
    source, sink = n, n + 1
    gain, pair = np.rint(gain * UNIT).astype(np.int64), round(pair * UNIT)
    entries = [(source, k, g) for k, g in enumerate(gain) if g > 0]
    entries += [(k, sink, -g) for k, g in enumerate(gain) if g < 0]
    entries += [(a, b, pair) for edge in EDGES for a, b in (edge, edge[::-1])]
    rows, columns, values = zip(*entries, strict=True)
    graph = csr_array((np.array(values, np.int32), (rows, columns)), shape=(n + 2, n + 2))
    flow = maximum_flow(graph, source, sink).flow
    left = csr_array(graph - flow)
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = set(breadth_first_order(left, source, return_predecessors=False).tolist())
    return [int(k in reached) for k in range(n)]


def pictures(n, seed=0):
    draw = np.random.default_rng(seed)
    Y = []
    for _ in range(n):
        corner = draw.integers(0, SIDE, size=2)
        grid = np.add.outer(np.arange(SIDE) >= corner[0], np.arange(SIDE) >= corner[1]) == 2
        Y.append(tuple(grid.astype(int).ravel().tolist()))
    X = [2.0 * np.array(y) - 1.0 + draw.normal(size=SIDE**2) for y in Y]
    return X, Y


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_best_output(seed):
    draw = np.random.default_rng(seed)
    x, w = draw.normal(size=SIDE**2), draw.normal(size=3)
    w[2] = abs(w[2])
    grid = Grid()
    values = {y: grid.score(x, y, w) for y in itertools.product((0, 1), repeat=SIDE**2)}
    found = grid.argmax(x, w)
    assert values[found] == pytest.approx(max(values.values()), abs=1e-4)


def test_grids_are_learned_without_negative_pairs():
    X, Y = pictures(20)
    assert check_structure(Grid(), X, Y).ok  # under weights that are allowed
    model = StructuralSVM(Grid(), C=1.0, random_state=0).fit(X, Y)
    assert model.weights_[2] > 0
    new = pictures(60, 1)
    alone = [tuple((x > 0).astype(int).tolist()) for x in new[0]]
    errors = np.mean([Grid().loss(y, z) for y, z in zip(new[1], alone, strict=True)])
    assert -model.score(*new) < 0.75 * errors


def test_pairs_that_would_be_negative_stay_at_zero():
    """Chessboards: neighbours differ always, and the weight would be negative."""
    board = tuple(np.indices((SIDE, SIDE)).sum(axis=0).ravel() % 2)
    X = [2.0 * np.array(board) - 1.0 + 0.2 * RNG.normal(size=SIDE**2) for _ in range(8)]
    model = StructuralSVM(Grid(), C=1.0).fit(X, [board] * 8)
    assert model.weights_[2] == 0.0
    assert model.converged_


def test_which_regularisers_see_to_signs():
    X, Y = pictures(6)
    one = StructuralSVM(Grid(), regularizer=Nonnegative()).fit(X, Y)
    assert (one.weights_ >= 0).all()
    for other in (ElasticNet(l1_ratio=0.5), GaussianPrior(np.zeros(3))):
        with pytest.raises(NotCompatibleError, match="must not be negative"):
            StructuralSVM(Grid(), regularizer=other).fit(X, Y)


@pytest.mark.parametrize("said", [[3], [-1], [0.5], [[1]], np.ones(2, bool)])
def test_signs_that_make_no_sense(said):
    X, Y = pictures(3)
    structure = Grid()
    structure.nonnegative = said
    with pytest.raises((ValueError, StructureError, TypeError, IndexError)):
        StructuralSVM(structure).fit(X, Y)


def test_all_weights_or_a_mask():
    X, Y = pictures(6)
    for said in (True, np.array([False, False, True])):
        structure = Grid()
        structure.nonnegative = said
        model = StructuralSVM(structure, random_state=0).fit(X, Y)
        assert model.weights_[2] >= 0
        assert said is not True or (model.weights_ >= 0).all()
