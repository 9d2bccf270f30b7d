"""A user's structure as the native engine sees it."""

from __future__ import annotations

import itertools
import traceback
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import kit
from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.base import Structure

X = [np.array([1.0, 2.0]), np.array([0.0, -1.0]), np.array([3.0, 0.0])]
Y = [0, 2, 1]


class Classes(kit.Classes):
    """Three classes in a row; each method can be replaced by a broken one."""

    def loss(self, y, y_hat):
        return 1.0 * abs(y - y_hat)


class Bits(Structure):
    """Binary vectors with a weight for each bit and each pair of neighbours; sparse features."""

    def __init__(self, kind, n_bits):
        self.kind = kind
        self.n_bits = n_bits
        self.n_features = 2 * n_bits

    def joint_feature(self, x, y):
        dense = self.dense(x, y)
        if self.kind == "dense":
            return dense
        if self.kind == "sparse":
            return sparse.csr_matrix(dense)
        indices = np.flatnonzero(dense)
        if self.kind == "dict":
            return {int(k): float(dense[k]) for k in indices}
        return np.r_[indices, indices][::-1], np.r_[dense[indices], dense[indices]][::-1] / 2

    def dense(self, x, y):
        return np.r_[x * y, np.append(y[1:] == y[:-1], 0)].astype(float)

    def loss(self, y, y_hat):
        return np.count_nonzero(y != y_hat)

    def outputs(self, x):
        return (np.array(bits) for bits in itertools.product((0, 1), repeat=self.n_bits))


def broken(**methods):
    return type("Broken", (Classes,), methods)()


# --- planes ---


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["dense", "sparse", "dict", "tuple"]),
    n_bits=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 0.1, 1.0, 100.0]),
)
def test_planes_against_dense_arithmetic(kind, n_bits, seed, scale):
    rng = np.random.default_rng(seed)
    structure = Bits(kind, n_bits)
    inputs = rng.integers(-2, 3, size=(4, n_bits)).astype(float)
    truths = rng.integers(0, 2, size=(4, n_bits))
    problem = PythonProblem(structure, inputs, truths)
    assert (problem.n_examples, problem.n_weights) == (4, 2 * n_bits)
    w = scale * rng.normal(size=2 * n_bits)
    for i in range(4):
        x, y = inputs[i], truths[i]
        indices, values, loss, is_truth = problem.oracle(i, w)
        assert indices.dtype == np.uint32
        assert values.dtype == np.float64
        assert (np.diff(indices.astype(int)) > 0).all()
        assert (values != 0).all()
        plane = np.zeros(2 * n_bits)
        plane[indices] = values
        every = list(structure.outputs(x))
        best = max(
            structure.loss(y, z) - w @ (structure.dense(x, y) - structure.dense(x, z))
            for z in every
        )
        assert loss - w @ plane == pytest.approx(best, rel=1e-9, abs=1e-9)
        if is_truth:
            assert (len(indices), loss) == (0, 0.0)
        else:
            y_hat = structure.argmax(x, w, truth=y)
            np.testing.assert_array_equal(plane, structure.dense(x, y) - structure.dense(x, y_hat))
            assert loss == structure.loss(y, y_hat)
    assert problem.n_worse == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_difference_of_very_sparse_vectors(seed):
    rng = np.random.default_rng(seed)
    d = 200
    vectors = np.where(rng.random((2, d)) < 0.05, rng.integers(-2, 3, (2, d)), 0).astype(float)

    class Two(Structure):
        n_features = d

        def joint_feature(self, x, y):
            k = np.flatnonzero(vectors[y])
            return k, vectors[y][k]

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def argmax(self, x, w, truth=None):
            return 0 if truth is None else 1 - truth

    indices, values, loss, is_truth = PythonProblem(Two(), [0], [0]).oracle(0, np.zeros(d))
    plane = np.zeros(d)
    plane[indices] = values
    np.testing.assert_array_equal(plane, vectors[0] - vectors[1])
    assert (values != 0).all()
    assert (np.diff(indices.astype(int)) > 0).all()
    assert (loss, is_truth) == (1.0, False)


def test_truth_found():
    problem = PythonProblem(Classes(), X, Y)
    w = np.zeros(6)
    w[:2] = 100 * X[0]
    indices, values, loss, is_truth = problem.oracle(0, w)
    assert is_truth
    assert loss == 0.0
    assert indices.dtype == np.uint32
    assert len(indices) == len(values) == 0


def test_same_plane_as_the_truth_is_the_truth():
    # outputs compared by identity: never equal to the truth, but no different either
    structure = broken(equal=lambda self, y, y_hat: False)
    w = np.zeros(6)
    w[:2] = 100 * X[0]
    assert PythonProblem(structure, X, Y).oracle(0, w)[3]


def test_rounding_in_the_loss_of_the_truth_is_forgiven():
    structure = broken(loss=lambda self, y, y_hat: abs(y - y_hat) - 1e-17 + (y == y_hat) * 1e-12)
    w = np.zeros(6)
    w[:2] = 100 * X[0]
    assert PythonProblem(structure, X, Y).oracle(0, w)[2:] == (0.0, True)


def test_kinds_of_x_and_y():
    w = np.zeros(6)
    expected = PythonProblem(Classes(), X, Y).oracle(0, w)
    for inputs in (np.array(X), tuple(X), iter(X)):
        found = PythonProblem(Classes(), inputs, np.array(Y)).oracle(0, w)
        np.testing.assert_array_equal(found[1], expected[1])

    class Rows(Classes):
        def joint_feature(self, x, y):
            assert x.shape == (1, 2)
            return sparse.kron(sparse.csr_matrix(np.eye(3)[[y]]), x)

    for kind in (sparse.csr_matrix, sparse.coo_array):
        found = PythonProblem(Rows(), kind(np.array(X)), Y).oracle(0, w)
        np.testing.assert_array_equal(found[1], expected[1])


def test_pandas_like_x():
    class Frame:
        def __init__(self, rows):
            self.iloc = rows

        def __len__(self):
            return len(self.iloc)

    assert PythonProblem(Classes(), Frame(X), Frame(Y)).n_weights == 6


def test_duck_typed_structure():
    class Duck:
        def joint_feature(self, x, y):
            return np.kron(np.eye(3)[y], x)

        def loss(self, y, y_hat):
            return np.float32(y != y_hat)

        def argmax(self, x, w, truth=None):
            values = w.reshape(3, 2) @ x
            if truth is not None:
                values += np.arange(3) != truth
            return np.argmax(values)

    indices, values, loss, is_truth = PythonProblem(Duck(), X, Y).oracle(2, np.zeros(6))
    assert indices.tolist() == [0, 2]
    assert values.tolist() == [-3.0, 3.0]
    assert (loss, is_truth) == (1.0, False)


# --- size of the features ---


def test_n_features_from_the_argument_the_structure_or_the_vectors():
    assert PythonProblem(Classes(), X, Y).n_weights == 6
    assert PythonProblem(Bits("dict", 2), np.ones((1, 2)), np.ones((1, 2))).n_weights == 4
    as_dict = broken(joint_feature=lambda self, x, y: {y: 1.0})
    assert PythonProblem(as_dict, X, Y, n_features=9).n_weights == 9
    with pytest.raises(StructureError, match="number of features of Broken is not known"):
        PythonProblem(as_dict, X, Y)
    with pytest.raises(StructureError, match="n_features is 0"):
        PythonProblem(Classes(), X, Y, n_features=0)


def test_size_is_taken_from_the_first_vector_that_tells():
    mixed = broken(
        joint_feature=lambda self, x, y: {y: 1.0} if y == 0 else np.ones(3),
        n_features=None,
    )
    assert PythonProblem(mixed, X, Y).n_weights == 3
    too_far = broken(joint_feature=lambda self, x, y: {7: 1.0} if y == 0 else np.ones(3))
    with pytest.raises(StructureError, match=r"the index 7.*example 1, for example 0"):
        PythonProblem(too_far, X, Y)


def test_varying_size():
    structure = broken(joint_feature=lambda self, x, y: np.ones(3 + y))
    with pytest.raises(StructureError, match=r"5 entries; expected 3.*example 0, for example 1"):
        PythonProblem(structure, X, Y)
    with pytest.raises(StructureError, match="3 entries; expected 6"):
        PythonProblem(structure, X, Y, n_features=6)
    with pytest.raises(StructureError, match="0 entries"):
        PythonProblem(broken(joint_feature=lambda self, x, y: np.ones(0)), X, Y)


def test_size_of_the_found_output():
    structure = broken(
        joint_feature=lambda self, x, y: np.ones(3 + (y == 9)), argmax=lambda *a, truth=None: 9
    )
    problem = PythonProblem(structure, X, Y)
    with pytest.raises(StructureError, match=r"4 entries; expected 3 \(the output of argmax\)"):
        problem.oracle(1, np.zeros(3))


# --- nonsense ---


@pytest.mark.parametrize(
    ("methods", "method", "words"),
    [
        ({"joint_feature": lambda self, x, y: 1 / 0}, "joint_feature", "ZeroDivisionError"),
        ({"joint_feature": lambda self, x, y: [1.0]}, "joint_feature", "type list"),
        ({"joint_feature": lambda self, x, y: None}, "joint_feature", "NoneType"),
        ({"joint_feature": lambda self, x, y: np.full(6, np.nan)}, "joint_feature", "nan"),
        ({"joint_feature": lambda self, x, y: np.full(6, np.inf)}, "joint_feature", "inf"),
        ({"joint_feature": lambda self, x, y: {0.5: 1}}, "joint_feature", "expected integers"),
        ({"loss": lambda self, y, y_hat: 1.0}, "loss", "for the truth itself; expected 0"),
        ({"loss": lambda self, y, y_hat: y / 0}, "loss", "failed: ZeroDivisionError"),
        ({"loss": lambda self, y, y_hat: -1.0}, "loss", "at least 0"),
        ({"loss": lambda self, y, y_hat: float("nan")}, "loss", "finite"),
        ({"loss": lambda self, y, y_hat: np.inf}, "loss", "finite"),
        ({"loss": lambda self, y, y_hat: None}, "loss", "NoneType; expected a float"),
        ({"loss": lambda self, y, y_hat: "0"}, "loss", "str; expected a float"),
        ({"loss": lambda self, y, y_hat: 0j}, "loss", "complex; expected a float"),
        ({"loss": lambda self, y, y_hat: np.zeros(1)}, "loss", "ndarray; expected a float"),
    ],
)
def test_nonsense_for_a_truth(methods, method, words):
    with pytest.raises(StructureError, match=words) as caught:
        PythonProblem(broken(**methods), X, Y)
    assert (caught.value.method, caught.value.example) == (method, 0)
    assert f"{method} of Broken" in str(caught.value)
    assert "example 0" in str(caught.value)


@pytest.mark.parametrize(
    ("methods", "method", "words"),
    [
        ({"argmax": lambda *a, truth=None: {}["key"]}, "argmax", "failed: KeyError: 'key'"),
        ({"argmax": lambda *a, truth=None: None}, "argmax", "returned None"),
        ({"argmax": lambda *a, truth=None: 7}, "joint_feature", "failed: IndexError"),
        ({"argmax": lambda *a, truth=None: "b"}, "loss", "failed: TypeError"),
        (
            {
                "argmax": lambda *a, truth=None: 0,
                "loss": lambda self, y, y_hat: -1.0 * (y != y_hat),
            },
            "loss",
            "at least 0",
        ),
        ({"loss": lambda self, y, y_hat: 0.0 if y == y_hat else np.inf}, "loss", "finite"),
        ({"equal": lambda self, y, y_hat: True}, "loss", "an output that equals the truth"),
        ({"equal": lambda self, y, y_hat: 1 / 0}, "equal", "ZeroDivisionError"),
        ({"score": lambda self, x, y, w: 1 / 0}, "argmax", "failed: ZeroDivisionError"),
    ],
)
def test_nonsense_in_the_oracle(methods, method, words):
    problem = PythonProblem(broken(**methods), X, Y)
    with pytest.raises(StructureError, match=words) as caught:
        problem.oracle(2, np.zeros(6))
    assert (caught.value.method, caught.value.example) == (method, 2)
    assert "example 2" in str(caught.value)


def test_the_original_traceback_stays_visible():
    def argmax(self, x, w, truth=None):
        return self.no_such_thing

    with pytest.raises(StructureError) as caught:
        PythonProblem(broken(argmax=argmax), X, Y).oracle(0, np.zeros(6))
    assert isinstance(caught.value.__cause__, AttributeError)
    assert "return self.no_such_thing" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, SystemExit])
def test_what_passes_through(kind):
    def argmax(self, x, w, truth=None):
        raise kind

    with pytest.raises(kind):
        PythonProblem(broken(argmax=argmax), X, Y).oracle(0, np.zeros(6))


def test_weights_are_read_only_for_the_user_only():
    def argmax(self, x, w, truth=None):
        w[0] = 1.0
        return 0

    problem, w = PythonProblem(broken(argmax=argmax), X, Y), np.zeros(6)
    with pytest.raises(StructureError, match="read-only"):
        problem.oracle(0, w)
    w[0] = 2.0
    with pytest.raises(ValueError, match=r"w has shape \(5,\); expected \(6,\)"):
        problem.oracle(0, np.zeros(5))


def test_argmax_must_take_the_truth():
    with pytest.raises(NotCompatibleError, match="give it a parameter truth=None"):
        PythonProblem(broken(argmax=lambda self, x, w: 0), X, Y)


def test_bad_x_and_y():
    with pytest.raises(ValueError, match="X has 3 examples and Y has 2"):
        PythonProblem(Classes(), X, Y[:2])
    with pytest.raises(ValueError, match="empty"):
        PythonProblem(Classes(), [], [])
    with pytest.raises(ValueError, match=r"Y\[1\] is None"):
        PythonProblem(Classes(), X, [0, None, 1])
    with pytest.raises(ValueError, match="X must be a sequence of examples, not a int"):
        PythonProblem(Classes(), 3, Y)
    with pytest.raises(ValueError, match="Y must be a sequence of examples, not a str"):
        PythonProblem(Classes(), X, "abc")


# --- an oracle worse than the truth ---


def test_worse_than_the_truth_is_survived_counted_and_warned_of_once():
    structure = broken(argmax=lambda self, x, w, truth=None: (truth + 1) % 3)
    problem = PythonProblem(structure, X, Y)
    w = np.kron(np.eye(3)[Y[0]], 100 * X[0])
    with pytest.warns(UserWarning, match=r"worse than the truth for example 0.*check_structure"):
        indices, values, loss, is_truth = problem.oracle(0, w)
    assert (len(indices), len(values), loss, is_truth) == (0, 0, 0.0, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem.oracle(0, w)[3]
    assert problem.n_worse == 2
    assert not problem.oracle(0, np.zeros(6))[3]  # not worse here: a plane like any other


def test_rounding_is_not_worse_than_the_truth():
    class Single(Classes):
        def argmax(self, x, w, truth=None):
            values = w.reshape(3, 2).astype(np.float32) @ x.astype(np.float32)
            if truth is not None:
                values += np.abs(np.arange(3) - truth).astype(np.float32)
            return int(np.argmax(values))

    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(20, 2))
    problem = PythonProblem(Single(), inputs, rng.integers(0, 3, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(20):
            row = 1e5 * rng.normal(size=2)
            problem.oracle(i, np.r_[row, row * (1 + 1e-9), row * (1 - 1e-9)])
    assert problem.n_worse == 0


def test_reused_feature_buffers_do_no_harm():
    buffer = np.zeros(6)

    class Reusing(Classes):
        def joint_feature(self, x, y):
            buffer[:] = np.kron(np.eye(3)[y], x)
            return np.arange(6), buffer

        n_features = 6

    problem, clean = PythonProblem(Reusing(), X, Y), PythonProblem(Classes(), X, Y)
    for i in range(3):
        np.testing.assert_array_equal(problem.truth_features(i).values, clean.truth_features(i)[1])
