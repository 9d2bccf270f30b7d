"""The structure protocol: defaults, duck typing, feature vectors, comparing outputs."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kit import Classes
from maxmargin.errors import (
    ConvergenceWarning,
    MaxMarginError,
    ModelFormatError,
    NotCompatibleError,
    StructureError,
)
from maxmargin.structures.base import Structure
from maxmargin.structures.duck import accepts_truth, as_structure, declared_n_features, offers
from maxmargin.structures.equality import equal_outputs, output_key
from maxmargin.structures.vectors import BadFeatures, sparse_vector


class Ranking(Structure):
    """Order the rows of x; an output is a permutation, the best item first."""

    def joint_feature(self, x, y):
        n = len(y)
        return ((n - 1 - 2 * np.arange(n)) @ x[list(y)]) / n

    def loss(self, y, y_hat):
        place = {item: k for k, item in enumerate(y_hat)}
        return float(sum(place[a] > place[b] for a, b in itertools.combinations(y, 2)))

    def outputs(self, x):
        return itertools.permutations(range(len(x)))


class Duck:
    """A structure that derives from nothing."""

    def joint_feature(self, x, y):
        return {int(y): float(x)}

    def loss(self, y, y_hat):
        return abs(y - y_hat)

    def argmax(self, x, w, truth=None):
        values = [x * w[y] + (0 if truth is None else abs(truth - y)) for y in range(len(w))]
        return int(np.argmax(values))


# --- the base class ---


def test_joint_feature_and_loss_are_required():
    class Half(Structure):
        def joint_feature(self, x, y):
            return x

    with pytest.raises(TypeError, match="loss"):
        Half()


def test_argmax_or_outputs_is_required():
    class NoArgmax(Structure):
        def joint_feature(self, x, y):
            return x

        def loss(self, y, y_hat):
            return 0.0

    with pytest.raises(NotCompatibleError, match=r"NoArgmax is not a structure.*Missing: argmax"):
        as_structure(NoArgmax())
    with pytest.raises(NotImplementedError, match=r"argmax\(x, w, truth=None\), or outputs"):
        NoArgmax().argmax(1, np.ones(1))


def test_brute_force_argmax():
    structure, x = Classes(), np.array([1.0, -1.0])
    w = np.array([0.0, 0.0, 2.0, 0.5, 1.0, 0.0])
    assert structure.argmax(x, w) == 1
    assert structure.argmax(x, w, truth=1) == 2  # 1 + 1 against 0 + 1.5
    assert structure.argmax(x, np.zeros(6)) == 0  # the first of equal ones
    assert structure.argmax(x, np.zeros(6), truth=0) == 1


def test_brute_force_argmax_of_a_ranking():
    x = np.array([[1.0], [3.0], [2.0]])
    assert Ranking().argmax(x, np.array([1.0])) == (1, 2, 0)
    assert Ranking().argmax(x, np.zeros(1), truth=(0, 1, 2)) == (2, 1, 0)


def test_no_outputs():
    class Empty(Classes):
        def outputs(self, x):
            return []

    with pytest.raises(ValueError, match="at least one output"):
        Empty().argmax(np.ones(2), np.ones(6))


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        sparse.csr_matrix,
        lambda f: sparse.csr_array(f[None]),
        lambda f: dict(enumerate(f)),
        lambda f: (np.arange(len(f)), f),
    ],
)
def test_default_score(convert):
    class Converted(Classes):
        def joint_feature(self, x, y):
            return convert(super().joint_feature(x, y))

    x, w = np.array([1.0, 2.0]), np.arange(6.0)
    assert Converted().score(x, 1, w) == pytest.approx(2.0 + 6.0)


def test_defaults():
    structure = Classes()
    assert structure.n_features is None
    assert structure.prepare([1], [1]) is None
    assert structure.equal([1, 2], np.array([1, 2]))
    assert structure.encode([1, 2]) == (1, 2)
    with pytest.raises(NotImplementedError, match="decode"):
        structure.decode((1, 2))
    assert not offers(structure, "argmax")
    assert offers(structure, "outputs")


# --- duck typing ---


def test_duck_is_wrapped_and_completed():
    duck = as_structure(Duck())
    w = np.array([0.0, 2.0, 1.0])
    assert duck.argmax(1.0, w) == 1
    assert duck.argmax(1.0, w, truth=1) == 1
    assert duck.argmax(1.0, 0.1 * w, truth=1) == 2
    assert duck.score(2.0, 1, w) == 4.0
    assert duck.equal((1,), [1])
    assert duck.prepare([], []) is None
    assert duck.n_features is None
    assert duck.encode([1]) == (1,)
    with pytest.raises(NotImplementedError):
        duck.outputs(1.0)
    with pytest.raises(NotImplementedError):
        duck.decode(1)


def test_duck_optional_methods_are_used():
    calls = []

    class Full(Duck):
        n_features = 7
        score = staticmethod(lambda x, y, w: 42.0)
        equal = staticmethod(lambda y, y_hat: True)
        encode = staticmethod(lambda y: "key")
        decode = staticmethod(lambda code: "output")
        outputs = staticmethod(lambda x: [0, 1])
        prepare = staticmethod(lambda X, Y: calls.append((X, Y)))

    full = as_structure(Full())
    full.prepare(1, 2)
    assert calls == [(1, 2)]
    assert (full.n_features, full.score(0, 0, 0), full.equal(1, 2)) == (7, 42.0, True)
    assert (full.encode(1), full.decode(1), full.outputs(1)) == ("key", "output", [0, 1])


def test_duck_without_argmax_uses_outputs():
    space = SimpleNamespace(
        joint_feature=lambda x, y: np.array([x * y]),
        loss=lambda y, y_hat: abs(y - y_hat),
        outputs=lambda x: [-1, 0, 1],
    )
    assert as_structure(space).argmax(2.0, np.array([-1.0])) == -1


def test_duck_can_be_copied_and_pickled():
    duck = as_structure(Duck())
    for twin in (copy.deepcopy(duck), pickle.loads(pickle.dumps(duck))):
        assert twin.argmax(1.0, np.array([0.0, 1.0])) == 1


def test_structure_is_returned_as_it_is():
    structure = Classes()
    assert as_structure(structure) is structure


def test_missing_methods_are_named():
    with pytest.raises(NotCompatibleError, match=r"Missing: loss, argmax \(or outputs"):
        as_structure(SimpleNamespace(joint_feature=len))


def test_a_class_is_not_a_structure():
    with pytest.raises(NotCompatibleError, match=r"write Classes\(\.\.\.\)"):
        as_structure(Classes)


@pytest.mark.parametrize(
    ("argmax", "accepted"),
    [
        (lambda x, w, truth=None: 0, True),
        (lambda x, w, *, truth=None: 0, True),
        (lambda x, w, **options: 0, True),
        (lambda x, w: 0, False),
        (lambda x, w, y=None: 0, False),
        (lambda x, w, truth: 0, False),
    ],
)
def test_accepts_truth(argmax, accepted):
    duck = as_structure(SimpleNamespace(joint_feature=len, loss=len, argmax=argmax))
    assert accepts_truth(duck) is accepted


def test_accepts_truth_of_a_subclass():
    class Old(Classes):
        def argmax(self, x, w):
            return 0

    assert accepts_truth(Classes())
    assert not accepts_truth(Old())


# --- n_features ---


def test_n_features_as_attribute_and_property():
    class Stated(Classes):
        @property
        def n_features(self):
            return np.int64(2 * self.n_classes)

    assert declared_n_features(Stated()) == 6
    own = Classes()
    own.n_features = 5
    assert declared_n_features(own) == 5
    assert declared_n_features(Classes()) is None


@pytest.mark.parametrize("value", [0, -1, 2.5, "10", True, 2**32])
def test_bad_n_features(value):
    structure = Classes()
    structure.n_features = value
    with pytest.raises(StructureError, match="an integer from 1"):
        declared_n_features(structure)


def test_n_features_as_method_or_failing():
    class Method(Classes):
        def n_features(self):
            return 3

    class Failing(Classes):
        @property
        def n_features(self):
            return self.nothing

    with pytest.raises(StructureError, match="@property"):
        declared_n_features(Method())
    with pytest.raises(StructureError, match=r"n_features of Failing failed: AttributeError"):
        declared_n_features(Failing())


# --- feature vectors ---


def test_sparse_vector_of_every_kind():
    dense = np.array([0.0, 2.0, 0.0, -1.0])
    kinds = [
        dense,
        dense.astype(np.float32),
        dense.astype(int),
        sparse.csr_matrix(dense),
        sparse.coo_array(dense[None]),
        sparse.coo_array(dense),
        {3: -1.0, 1: 2.0, 0: 0.0},
        {np.int32(3): -1, np.int32(1): 2},
        ([3, 1, 2, 2], [-1.0, 2.0, 5.0, -5.0]),
        (np.array([1, 3], dtype=np.uint8), np.array([2.0, -1.0])),
    ]
    for features in kinds:
        vector = sparse_vector(features, 4)
        assert vector.indices.dtype == np.uint32
        assert vector.values.dtype == np.float64
        assert vector.indices.tolist() == [1, 3]
        assert vector.values.tolist() == [2.0, -1.0]


def test_sparse_vector_size_and_empty():
    assert sparse_vector(np.zeros(3)).size == 3
    assert sparse_vector(sparse.csr_matrix((1, 5))).size == 5
    for features in ({}, ([], []), (np.empty(0), np.empty(0))):
        vector = sparse_vector(features, 2)
        assert vector.size is None
        assert len(vector.indices) == len(vector.values) == 0


def test_sparse_vector_does_not_share_memory():
    indices, values = np.array([0, 1], dtype=np.uint32), np.array([1.0, 2.0])
    for features in ((indices, values), values):
        vector = sparse_vector(features)
        assert not np.shares_memory(vector.values, values)
        assert not np.shares_memory(vector.indices, indices)


@pytest.mark.parametrize(
    ("features", "kind", "words"),
    [
        (None, "type", "NoneType"),
        ([1.0, 2.0], "type", "list"),
        (3.0, "type", "float"),
        (np.array(["a", "b"]), "type", "real numbers"),
        (np.array([1 + 2j]), "type", "real numbers"),
        (np.zeros((1, 3)), "shape", r"\(1, 3\)"),
        (np.zeros(()), "shape", r"\(\)"),
        (sparse.csr_matrix((3, 1)), "shape", r"\(3, 1\)"),
        (np.zeros(4), "size", "4 entries; expected 3"),
        (sparse.csr_matrix((1, 2)), "size", "2 entries; expected 3"),
        (np.array([0.0, np.nan, 0.0]), "finite", "nan at index 1"),
        ({2: np.inf}, "finite", "inf at index 2"),
        ({3: 1.0}, "index", "the index 3; expected indices from 0 to 2"),
        ({-1: 1.0}, "index", "the index -1"),
        ({1.0: 1.0}, "index", "expected integers"),
        ({"word": 1.0}, "index", "'word'"),
        (([0.0, 1.0], [1.0, 1.0]), "index", "float64"),
        (([0, 2**70], [1.0, 1.0]), "index", "expected integers"),
        (([True], [1.0]), "index", "bool"),
        (([0, 1], [1.0]), "shape", "same length"),
        (([[0], [1]], [1.0, 1.0]), "shape", "flat"),
        (([[0], [1, 2]], [1.0, 1.0]), "type", "flat list"),
        (([0], [1.0], [2.0]), "type", "tuple of 3"),
        ({0: "x"}, "type", "real numbers"),
    ],
)
def test_bad_features(features, kind, words):
    with pytest.raises(BadFeatures, match=words) as caught:
        sparse_vector(features, 3)
    assert caught.value.kind == kind


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(-3, 3))))
def test_sparse_vector_sums_duplicates(pairs):
    dense = np.zeros(8)
    for k, v in pairs:
        dense[k] += v
    vector = sparse_vector(([k for k, _ in pairs], [v for _, v in pairs]), 8)
    assert (np.diff(vector.indices.astype(int)) > 0).all()
    assert (vector.values != 0).all()
    back = np.zeros(8)
    back[vector.indices] = vector.values
    np.testing.assert_array_equal(back, dense)
    w = np.arange(8.0) - 3
    assert vector.dot(w) == dense @ w
    assert vector.absolute_dot(w) == np.abs(dense) @ np.abs(w)


# --- outputs ---


@dataclasses.dataclass
class Tree:
    heads: np.ndarray
    label: str = ""


EQUAL = [
    (1, 1),
    (1, np.int64(1)),
    (1.5, np.float32(1.5)),
    ("a", np.str_("a")),
    (float("nan"), float("nan")),
    ([1, 2], (1, 2)),
    ([1, 2], np.array([1, 2])),
    (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
    (np.array(["a", "b"]), ["a", "b"]),
    ([np.array([1, 2]), 3], [[1, 2], 3]),
    (np.array([[1, 2], None], dtype=object), [[1, 2], None]),
    ({"a": np.array([1])}, {"a": np.array([1])}),
    ({1, 2}, frozenset({2, 1})),
    (sparse.csr_matrix([[0, 1]]), sparse.coo_matrix([[0, 1]])),
    (Tree(np.array([0, 1])), Tree(np.array([0, 1]))),
    ([], []),
]
DIFFERENT = [
    (1, 2),
    (1, "1"),
    ("ab", ["a", "b"]),
    (1.0, float("nan")),
    ([1, 2], [1, 2, 3]),
    ([1, 2], np.array([[1, 2]])),
    (np.array([1, 2]), np.array([1, 3])),
    (np.array([1, 2]), np.array(["1", "2"])),
    (np.array([1]), 1),
    ([np.array([1, 2])], [np.array([2, 1])]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, [("a", 1)]),
    (sparse.csr_matrix([[0, 1]]), sparse.csr_matrix([[1, 0]])),
    (sparse.csr_matrix([[0, 1]]), np.array([[0, 1]])),
    (Tree(np.array([0, 1])), Tree(np.array([0, 2]))),
    (None, 0),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a, b):
    assert equal_outputs(a, b) is True
    assert equal_outputs(b, a) is True
    assert output_key(a) == output_key(b)
    assert hash(output_key(a)) == hash(output_key(b))


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a, b):
    assert equal_outputs(a, b) is False
    assert equal_outputs(b, a) is False


def test_equality_that_cannot_decide_is_an_error():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no")

        __hash__ = None

    with pytest.raises(RuntimeError):
        equal_outputs(Odd(), Odd())
    with pytest.raises(TypeError, match="encode"):
        output_key(Odd())


outputs = st.recursive(
    st.one_of(st.integers(-2, 2), st.text("ab", max_size=2), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.integers(0, 2), inner, max_size=2),
    ),
    max_leaves=6,
)


@given(outputs, outputs)
def test_key_agrees_with_equality(a, b):
    assert equal_outputs(a, copy.deepcopy(a))
    assert equal_outputs(a, b) == equal_outputs(b, a)
    if equal_outputs(a, b):
        assert output_key(a) == output_key(b)


# --- errors ---


def test_errors():
    for kind in (StructureError, ModelFormatError, NotCompatibleError):
        assert issubclass(kind, MaxMarginError)
        assert issubclass(kind, ValueError)
    assert issubclass(ConvergenceWarning, UserWarning)
    error = pickle.loads(pickle.dumps(StructureError("bad", method="loss", example=3)))
    assert (str(error), error.method, error.example) == ("bad", "loss", 3)
