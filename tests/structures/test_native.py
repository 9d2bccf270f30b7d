"""`NativeStructure`: what has its methods is trained and asked in native code, chain or not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from maxmargin import StructuralSVM
from maxmargin.structures import Chain, Structure
from maxmargin.structures.native import NativeStructure


class Classes(Structure):
    """One of several classes: a native structure that is no chain on the outside."""

    def __init__(self):
        self.chain = Chain()

    def prepare_problem(self, X, Y, *, dtype):
        return self.chain.prepare_problem([[x] for x in X], [[y] for y in Y], dtype=dtype)

    def memory_needed(self, dtype):
        return self.chain.memory_needed(dtype)

    def native_weights(self, weights):
        return self.chain.native_weights(weights)

    def predict(self, X, weights, n_jobs):
        return [y for (y,) in self.chain.predict([[x] for x in X], weights, n_jobs)]

    def score_outputs(self, X, Y, weights, n_jobs):
        return self.chain.score_outputs([[x] for x in X], [[y] for y in Y], weights, n_jobs)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def joint_feature(self, x, y):
        raise AssertionError("native code does without")

    def argmax(self, x, w, truth=None):
        raise AssertionError("native code does without")


class PythonClasses(Structure):
    """A structure in Python only."""

    def joint_feature(self, x, y):
        return np.kron([y == 0, y == 1], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return [0, 1]


X = [["round", "red"], ["round", "green"], ["long", "yellow"], ["long", "green"], ["red"]]
Y = ["apple", "apple", "banana", "cucumber", "apple"]


def test_what_is_a_native_structure():
    assert isinstance(Chain(), NativeStructure)
    assert isinstance(Classes(), NativeStructure)
    assert not isinstance(PythonClasses(), NativeStructure)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_estimator_trains_and_asks_it(dtype):
    svm = StructuralSVM(Classes(), C=10.0, dtype=dtype, gap=1e-4).fit(X, Y)
    assert svm.weights_.dtype == dtype
    assert svm.predict(X).tolist() == Y
    assert svm.score(X, Y) == 0
    twin = StructuralSVM(Chain(), C=10.0, dtype=dtype, gap=1e-4)
    twin.fit([[x] for x in X], [[y] for y in Y])
    assert svm.certificate_.primal == pytest.approx(twin.certificate_.primal, rel=1e-3)
    best = svm.score_outputs(X, Y)
    assert (best > svm.score_outputs(X, ["banana", "banana", "apple", "apple", "banana"])).all()


def test_unpickled_weights_are_aligned():
    svm = StructuralSVM(Classes(), C=10.0).fit(X, Y)
    for other in (pickle.loads(pickle.dumps(svm)), copy.deepcopy(svm)):
        assert other.weights_.ctypes.data % 32 == 0
        assert other.predict(X).tolist() == Y


def test_a_warm_start_asks_for_the_same_problem():
    svm = StructuralSVM(Classes(), C=10.0, warm_start=True).fit(X, Y)
    svm.set_params(C=20.0).fit(X, Y)
    with pytest.raises(ValueError, match="warm_start"):
        svm.fit(X, Y[::-1])
