"""Constraints: rows as people give them, the protocol of structures, scores, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from maxmargin import Constraints, NotCompatibleError, StructuralSVM

X = [[[1.0, 0.0], [0.5, -1.0]], [[0.0, 2.0]], [[1.0, 1.0], [2.0, 0.0], [-1.0, 3.0]]]
L = [[1.0, -0.5], [1.0], [0.5, 1.0, 1.0]]


def fitted(rows=X, numbers=L, **options):
    options = {"C": 2.0, "gap": 1e-8, "dtype": "float64", "random_state": 0, **options}
    return StructuralSVM(Constraints(), **options).fit(rows, numbers)


def test_all_forms_of_rows_mean_the_same():
    one = fitted()
    arrays = fitted([np.array(x) for x in X], [np.array(own) for own in L])
    mixed = fitted([scipy.sparse.csr_array(X[0]), [0.0, 2.0], np.array(X[2])], [L[0], 1.0, L[2]])
    assert (arrays.weights_ == one.weights_).all()
    assert mixed.weights_ == pytest.approx(one.weights_, abs=1e-9)


def test_an_example_without_rows_has_no_slack():
    with_empty = fitted([*X, np.zeros((0, 2))], [*L, []])
    assert with_empty.weights_ == pytest.approx(fitted().weights_, abs=1e-5)
    assert with_empty.structure_.slacks([np.zeros((0, 2))], [[]], with_empty.weights_) == [0.0]
    assert with_empty.predict([np.zeros((0, 2))]).tolist() == [-1]


def test_scores():
    model = fitted()
    w, structure = model.weights_, model.structure_
    scores = structure.scores(X, w)
    assert [own.tolist() for own in scores] == [
        pytest.approx((np.array(x) @ w).tolist()) for x in X
    ]
    assert model.predict(X).tolist() == [int(np.argmin(own)) for own in scores]
    assert model.score_outputs(X, [0, -1, 2]) == pytest.approx([-scores[0][0], 0, -scores[2][2]])
    expected = [max(0.0, *(np.array(own) - score)) for own, score in zip(L, scores, strict=True)]
    assert structure.slacks(X, L, w) == pytest.approx(expected)


def test_the_same_by_the_methods_of_one_example():
    structure = Constraints()
    structure.prepare(X, L)
    w = np.array([0.3, -0.2])
    for x, own in zip(X, L, strict=True):
        short = np.array(own) - np.array(x) @ w
        j = structure.argmax(x, w, own)
        found = structure.loss(own, j) + w @ structure.joint_feature(x, j)
        assert found == pytest.approx(max(0.0, short.max()))
        assert not structure.joint_feature(x, own).any()


def test_weights_of_examples_are_factors_of_rows():
    c = np.array([0.5, 2.0, 1.0])
    weighted = Constraints().prepare_problem(X, L, sample_weight=c)
    from maxmargin.solvers import DualCoordinate, solve

    one = solve(weighted.problem, DualCoordinate(), C=1.0, gap=1e-8, dtype="float64")
    rows = [k * np.array(x) for k, x in zip(c, X, strict=True)]
    numbers = [k * np.array(own) for k, own in zip(c, L, strict=True)]
    two = fitted(rows, numbers, C=1.0)
    assert one.certificate.primal == pytest.approx(two.certificate_.primal, rel=1e-6)


def test_state():
    model = fitted()
    again = Constraints.restore(*model.structure_.state())
    assert again.predict(X, model.weights_) == model.predict(X).tolist()
    for nonsense in ({"n_features": 0}, {"n_features": "2"}, {"n_features": 2**40}):
        with pytest.raises(ValueError, match="number of features"):
            Constraints.restore(nonsense, {})
    with pytest.raises(NotCompatibleError, match="knows no features"):
        Constraints().state()


@pytest.mark.parametrize(
    ("rows", "numbers", "message"),
    [
        ([], [], "empty"),
        (X, L[:2], "3 examples and Y has 2"),
        (X, [[1.0], [1.0], [1.0]], "example 0 has 2 rows in X and 1 numbers in Y"),
        ([X[0], [[1.0]]], L[:2], "example 1: .*1 features"),
        ([[[1.0, np.nan]]], [[1.0]], "example 0: .*NaN"),
        ([[[1.0, 2.0]]], [[np.nan]], "example 0, row 0 has nan"),
        ([[[1.0, 2.0]]], [[np.inf]], "example 0, row 0 has inf"),
        ([np.zeros((0, 2))], [[]], "no example of X has a row"),
        ([[[1.0, 2.0]]], [[[1.0]]], "expected a flat list"),
    ],
)
def test_bad_constraints(rows, numbers, message):
    with pytest.raises(ValueError, match=message):
        fitted(rows, numbers)


@pytest.mark.parametrize(
    ("rows", "numbers", "message"),
    [
        (3, [1.0], "X is a int"),
        ([[["a", "b"]]], [[1.0]], "example 0: "),
        (X, ["a", "b", "c"], "Y: example 0 has no numbers"),
    ],
)
def test_bad_types(rows, numbers, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(rows, numbers)
