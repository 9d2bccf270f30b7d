"""check_structure: correct structures pass, and each kind of mistake is told in words."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin.errors import StructureError
from maxmargin.structures.base import Structure
from maxmargin.structures.check import check_structure
from maxmargin.structures.check_report import Finding, StructureReport

K = 4
X = list(np.random.default_rng(0).normal(size=(12, 3)))
Y = [int(k) for k in np.random.default_rng(1).integers(0, K, 12)]


class Classes(Structure):
    """Multiclass, correct; the broken variants below replace one method each."""

    def joint_feature(self, x, y):
        if y not in range(K):
            raise ValueError("no such class")
        return np.kron(np.eye(K)[y], x)

    def loss(self, y, y_hat):
        return float(abs(y - y_hat))

    def argmax(self, x, w, truth=None):
        values = w.reshape(K, -1) @ x
        if truth is not None:
            values = values + np.abs(np.arange(K) - truth)
        return int(np.argmax(values))


class Bits(Structure):
    """Binary vectors whose neighbours like to agree."""

    def __init__(self, n_bits=4):
        self.n_bits = n_bits

    def joint_feature(self, x, y):
        return sparse.csr_matrix(np.append(x * y, np.sum(y[1:] == y[:-1])))

    def loss(self, y, y_hat):
        return np.mean(y != y_hat)

    def outputs(self, x):
        return (np.array(bits) for bits in itertools.product((0, 1), repeat=self.n_bits))


class Ranking(Structure):
    """Order the rows of x by a linear score: argmax by sorting, the oracle by brute force."""

    def joint_feature(self, x, y):
        n = len(y)
        if sorted(y) != list(range(len(x))):
            raise ValueError("no permutation of the rows")
        return (n - 1 - 2 * np.arange(n)) @ x[list(y)]

    def loss(self, y, y_hat):
        place = {item: k for k, item in enumerate(y_hat)}
        return float(sum(place[a] > place[b] for a, b in itertools.combinations(y, 2)))

    def argmax(self, x, w, truth=None):
        if truth is None:
            return tuple(int(k) for k in np.argsort(-(x @ w), kind="stable"))
        every = itertools.permutations(range(len(x)))
        return max(every, key=lambda y: self.score(x, y, w) + self.loss(truth, y))


def variant(**methods):
    return type("Variant", (Classes,), methods)()


def problem_of(report, kind):
    """Return the one problem of this kind, and see that it is told well."""
    found = [p for p in report.problems if p.kind == kind]
    assert found, f"no {kind!r} in\n{report}"
    assert len(found) == 1
    assert not report.ok
    assert not report
    problem = found[0]
    assert problem.count >= 1
    assert problem.advice
    assert problem.message in str(report)
    assert problem.advice in str(report)
    return problem


# --- correct structures ---


@pytest.mark.parametrize("seed", range(5))
def test_correct_structures_pass(seed):
    report = check_structure(Classes(), X, Y, random_state=seed)
    assert report.ok, str(report)
    assert not report.warnings, str(report)
    assert report.checks > 500
    rng = np.random.default_rng(seed)
    bits = check_structure(Bits(), rng.normal(size=(6, 4)), rng.integers(0, 2, (6, 4)))
    assert bits.ok, str(bits)
    items = [rng.normal(size=(n, 2)) for n in (1, 2, 3, 4, 4)]
    orders = [tuple(int(k) for k in rng.permutation(len(x))) for x in items]
    ranking = check_structure(Ranking(), items, orders)
    assert ranking.ok, str(ranking)


def test_duck_typed_structure_passes():
    good = Classes()
    duck = SimpleNamespace(
        joint_feature=good.joint_feature, loss=good.loss, argmax=good.argmax, n_features=3 * K
    )
    report = check_structure(duck, X, Y)
    assert report.ok, str(report)
    assert report.name == "SimpleNamespace"


def test_full_structure_passes():
    class Full(Classes):
        def prepare(self, X, Y):
            self.n_features = K * len(X[0])

        def joint_feature(self, x, y):
            return np.arange(len(x)) + y * len(x), x

        def score(self, x, y, w):
            return x @ w.reshape(K, -1)[y]

        def outputs(self, x):
            return range(K)

        def equal(self, y, y_hat):
            return y == y_hat

        def encode(self, y):
            return f"class {y}"

        def decode(self, code):
            return int(code.split()[1])

    structure = Full()
    report = check_structure(structure, np.array(X), np.array(Y))
    assert report.ok, str(report)
    assert structure.n_features is None  # a copy was prepared


@st.composite
def random_structures(draw):
    """A finite output space with arbitrary features and losses, and its exact argmax."""
    k = draw(st.integers(1, 5))
    d = draw(st.integers(1, 6))
    n = draw(st.integers(1, 5))
    seed = draw(st.integers(0, 10**6))
    form = draw(st.sampled_from(["array", "sparse", "dict", "tuple"]))
    outputs_kind = draw(st.sampled_from(["int", "str", "list", "array"]))
    enumerated = draw(st.booleans())
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4)
    table = scale * rng.normal(size=(n, k, d)) * (rng.random((n, k, d)) < 0.7)
    losses = rng.random((k, k)) * 10.0 ** rng.integers(-2, 3)
    np.fill_diagonal(losses, 0.0)
    make = {
        "int": int,
        "str": str,
        "list": lambda y: [y, 0],
        "array": lambda y: np.array([y, 1]),
    }[outputs_kind]

    def read(y):
        return int(y if outputs_kind in ("int", "str") else y[0])

    class Random(Structure):
        n_features = d if form in ("dict", "tuple") else None

        def joint_feature(self, x, y):
            f = table[x, read(y)]
            if form == "array":
                return f.copy()
            if form == "sparse":
                return sparse.csr_matrix(f)
            if form == "dict":
                return {j: f[j] for j in np.flatnonzero(f)}
            return np.arange(d), f

        def loss(self, y, y_hat):
            return losses[read(y), read(y_hat)]

    if enumerated:
        Random.outputs = lambda self, x: [make(y) for y in range(k)]
    else:

        def argmax(self, x, w, truth=None):
            values = table[x] @ w
            if truth is not None:
                values = values + losses[read(truth)]
            return make(int(np.argmax(values)))

        Random.argmax = argmax
    return Random(), list(range(n)), [make(int(y)) for y in rng.integers(0, k, n)]


@settings(max_examples=60, deadline=None)
@given(random_structures(), st.integers(0, 100))
def test_correct_random_structures_pass(case, seed):
    structure, inputs, truths = case
    report = check_structure(structure, inputs, truths, random_state=seed)
    assert report.ok, str(report)
    assert {w.kind for w in report.warnings} <= {"pickle"}


# --- argmax ---


def test_argmax_below_the_truth():
    report = check_structure(variant(argmax=lambda self, x, w, truth=None: (Y[0] + 1) % K), X, Y)
    problem = problem_of(report, "argmax below the truth")
    assert problem.method == "argmax"
    assert "below that of the truth" in problem.message
    assert problem.count > 1
    assert f"found {problem.count} times" in str(report)


def test_oracle_below_the_truth():
    def argmax(self, x, w, truth=None):
        if truth is None:
            return Classes.argmax(self, x, w)
        values = w.reshape(K, -1) @ x - np.abs(np.arange(K) - truth)
        return int(np.argmin(values))

    report = check_structure(variant(argmax=argmax), X, Y)
    problem = problem_of(report, "oracle below the truth")
    assert "loss + score" in problem.message
    assert "argmax below the truth" not in {p.kind for p in report.problems}


def test_argmax_not_maximal():
    def argmax(self, x, w, truth=None):  # class 3 is forgotten unless it is the truth
        if truth is not None:
            return Classes.argmax(self, x, w, truth)
        return int(np.argmax(w.reshape(K, -1)[:3] @ x))

    inputs = [x for x, y in zip(X, Y, strict=True) if y != 3]
    truths = [y for y in Y if y != 3]
    report = check_structure(variant(argmax=argmax), inputs, truths)
    problem = problem_of(report, "argmax not maximal")
    assert "the output of argmax" in problem.message
    assert {p.kind for p in report.problems} == {"argmax not maximal"}


def test_argmax_not_maximal_against_borrowed_truths():
    inputs, truths = X[:4], [0, 1, 2, 2]

    def argmax(self, x, w, truth=None):  # knows of two outputs only, so the third is never seen
        own = truths[next(i for i, z in enumerate(inputs) if np.array_equal(x, z))]
        values = w.reshape(K, -1) @ x
        if truth is not None:
            values = values + np.abs(np.arange(K) - truth)
        return max((own, 3), key=lambda y: values[y])

    report = check_structure(variant(argmax=argmax), inputs, truths)
    problem = problem_of(report, "argmax not maximal")
    assert "the truth of another example" in problem.message
    assert "raise a ValueError" in problem.advice


def test_argmax_not_maximal_against_outputs():
    structure = variant(
        outputs=lambda self, x: range(K), argmax=lambda self, x, w, truth=None: truth or 0
    )
    report = check_structure(structure, X[:1], [0])
    assert "of outputs(X[0])" in problem_of(report, "argmax not maximal").message


def test_oracle_not_maximal():
    def argmax(self, x, w, truth=None):
        return Classes.argmax(self, x, w) if truth is None else truth

    report = check_structure(variant(argmax=argmax), X, Y)
    assert "loss + score" in problem_of(report, "oracle not maximal").message
    assert {p.kind for p in report.problems} == {"oracle not maximal"}


def test_truth_ignored():
    report = check_structure(
        variant(argmax=lambda self, x, w, truth=None: Classes.argmax(self, x, w)), X, Y
    )
    problem = problem_of(report, "truth ignored")
    assert "seems to ignore truth" in problem.message
    assert "loss(truth, y) + w.f(x, y)" in problem.advice
    assert len(report.problems) == 1


def test_sign_of_the_loss_in_the_oracle():
    def argmax(self, x, w, truth=None):
        values = w.reshape(K, -1) @ x
        if truth is not None:
            values = values - np.abs(np.arange(K) - truth)
        return int(np.argmax(values))

    problem_of(check_structure(variant(argmax=argmax), X, Y), "oracle not maximal")


@pytest.mark.parametrize("parameters", ["self, x, w", "self, x, w, y=None", "self, x, w, truth"])
def test_argmax_without_truth_parameter(parameters):
    argmax = eval(f"lambda {parameters}: Classes.argmax(self, x, w)", globals())
    problem = problem_of(check_structure(variant(argmax=argmax), X, Y), "signature")
    assert problem.example is None
    assert "def argmax(self, x, w, truth=None)" in problem.advice


def test_argmax_returns_none():
    report = check_structure(variant(argmax=lambda self, x, w, truth=None: None), X, Y)
    assert "returned None" in problem_of(report, "output is None").message


@pytest.mark.parametrize("method", ["joint_feature", "loss", "argmax", "prepare", "score"])
def test_exception(method):
    def failing(self, *args, **kwargs):
        raise ZeroDivisionError("no luck")

    report = check_structure(variant(**{method: failing}), X, Y)
    if method == "argmax":
        assert "signature" not in {p.kind for p in report.problems}
    problem = problem_of(report, "exception")
    assert problem.method == method
    assert "raised ZeroDivisionError: no luck" in problem.message
    assert problem.example == (None if method == "prepare" else 0)


def test_exception_for_one_example_is_named():
    def loss(self, y, y_hat):
        if y == 2:
            raise KeyError(y)
        return float(abs(y - y_hat))

    problem = problem_of(check_structure(variant(loss=loss), X, Y), "exception")
    assert problem.example == Y.index(2)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_what_passes_through(kind):
    def loss(self, y, y_hat):
        raise kind

    with pytest.raises(kind):
        check_structure(variant(loss=loss), X, Y)


# --- loss ---


def test_negative_loss():
    report = check_structure(variant(loss=lambda self, y, y_hat: -abs(y - y_hat)), X, Y)
    problem = problem_of(report, "negative loss")
    assert "expected at least 0" in problem.message


def test_loss_of_the_truth():
    report = check_structure(variant(loss=lambda self, y, y_hat: 1.0), X, Y)
    problem = problem_of(report, "loss of the truth")
    assert "loss(Y[0], Y[0]) is 1.0; expected 0" in problem.message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_loss_not_finite(value):
    report = check_structure(
        variant(loss=lambda self, y, y_hat: 0.0 if y == y_hat else value), X, Y
    )
    problem_of(report, "loss not finite")


def test_loss_of_the_wrong_type():
    report = check_structure(variant(loss=lambda self, y, y_hat: [abs(y - y_hat)]), X, Y)
    assert "type list" in problem_of(report, "loss type").message


def test_loss_always_zero_is_a_warning():
    report = check_structure(
        variant(
            loss=lambda self, y, y_hat: 0.0,
            argmax=lambda self, x, w, truth=None: Classes.argmax(self, x, w),
        ),
        X,
        Y,
    )
    assert report.ok, str(report)
    assert "no loss" in {w.kind for w in report.warnings}


# --- features ---


def test_features_of_varying_size():
    report = check_structure(
        variant(joint_feature=lambda self, x, y: np.ones(5 + (y == Y[3]))), X, Y
    )
    assert "entries; expected" in problem_of(report, "features: size").message
    assert {p.kind for p in report.problems} == {"features: size"}  # nothing misleading after it


def test_features_that_do_not_agree_with_n_features():
    report = check_structure(variant(n_features=3 * K + 1), X, Y)
    problem = problem_of(report, "features: size")
    assert f"{3 * K} entries; expected {3 * K + 1}" in problem.message


def test_features_of_another_size_for_another_output():
    def joint_feature(self, x, y):
        f = Classes.joint_feature(self, x, y)
        return f if y != 3 else f[:-1]

    inputs = [x for x, y in zip(X, Y, strict=True) if y != 3]
    report = check_structure(variant(joint_feature=joint_feature), inputs, [y for y in Y if y != 3])
    assert "the output of argmax" in problem_of(report, "features: size").message


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        (np.full(3, np.nan), "finite"),
        (np.array([np.inf]), "finite"),
        (np.zeros((2, 2)), "shape"),
        ([1.0], "type"),
        (None, "type"),
        (([0.5], [1.0]), "index"),
        ({-1: 1.0}, "index"),
    ],
)
def test_bad_features(features, kind):
    report = check_structure(variant(joint_feature=lambda self, x, y: features), X, Y)
    assert problem_of(report, f"features: {kind}").count == len(X)


def test_index_out_of_range():
    report = check_structure(
        variant(joint_feature=lambda self, x, y: {y * 5: 1.0}, n_features=4), X, Y
    )
    assert "expected indices from 0 to 3" in problem_of(report, "features: index").message


def test_number_of_features_not_known():
    report = check_structure(variant(joint_feature=lambda self, x, y: {y: 1.0}), X, Y)
    assert "is not known" in problem_of(report, "n_features").message
    bad = check_structure(variant(n_features="many"), X, Y)
    assert "'many'" in problem_of(bad, "n_features").message


def test_score_inconsistent():
    report = check_structure(variant(score=lambda self, x, y, w: 0.0), X, Y)
    problem = problem_of(report, "score")
    assert "but w . joint_feature is" in problem.message
    text = check_structure(variant(score=lambda self, x, y, w: "high"), X, Y)
    assert "'high'" in problem_of(text, "score").message


# --- side effects ---


def test_argmax_changes_w():
    def argmax(self, x, w, truth=None):
        result = Classes.argmax(self, x, w, truth)
        w += 1.0
        return result

    report = check_structure(variant(argmax=argmax), X, Y)
    assert problem_of(report, "changes w").method == "argmax"
    assert [p.kind for p in report.problems] == ["changes w"]


def test_argmax_insists_on_writable_weights():
    def argmax(self, x, w, truth=None):
        w[0] = w[0]
        return Classes.argmax(self, x, w, truth)

    report = check_structure(variant(argmax=argmax), X, Y)
    assert "read-only" in problem_of(report, "writes w").message


def test_joint_feature_changes_x():
    inputs = [x.copy() for x in X]

    def joint_feature(self, x, y):
        x /= np.linalg.norm(x) + 1.0
        return np.kron(np.eye(K)[y], x)

    report = check_structure(variant(joint_feature=joint_feature), inputs, Y)
    assert problem_of(report, "changes x").method == "joint_feature"
    np.testing.assert_array_equal(inputs, X)  # it worked on copies


def test_loss_changes_y():
    class Sorting(Bits):
        def loss(self, y, y_hat):
            result = np.mean(y != y_hat)
            y.sort()
            return result

    rng = np.random.default_rng(0)
    report = check_structure(Sorting(), rng.normal(size=(5, 4)), rng.integers(0, 2, (5, 4)))
    assert problem_of(report, "changes y").method == "loss"


def test_argmax_changes_the_truth():
    class Filling(Bits):
        def argmax(self, x, w, truth=None):
            result = super().argmax(x, w, truth)
            if truth is not None:
                truth[:] = 0
            return result

    rng = np.random.default_rng(0)
    report = check_structure(Filling(), rng.normal(size=(5, 4)), rng.integers(0, 2, (5, 4)))
    assert problem_of(report, "changes truth").method == "argmax"


def test_prepare_changes_the_data():
    def prepare(self, X, Y):
        Y[0] = 3 - Y[0]

    truths = list(Y)
    report = check_structure(variant(prepare=prepare), X, truths)
    assert problem_of(report, "changes Y").method == "prepare"
    assert truths == Y


class Point:
    """An input without a comparison of its own."""

    def __init__(self, values):
        self.values = values


class Points(Classes):
    def joint_feature(self, x, y):
        x._cache = "private attributes may change"
        return super().joint_feature(x.values, y)

    def argmax(self, x, w, truth=None):
        return super().argmax(x.values, w, truth)


def test_inputs_of_a_users_own_class():
    points = [Point(x) for x in X]
    report = check_structure(Points(), points, Y)
    assert report.ok, str(report)

    class Changing(Points):
        def joint_feature(self, x, y):
            f = super().joint_feature(x, y)
            x.values = x.values + 1.0
            return f

    assert problem_of(check_structure(Changing(), points, Y), "changes x")


def test_argmax_not_deterministic():
    rng = np.random.default_rng(0)

    def argmax(self, x, w, truth=None):
        return int(rng.integers(K))

    problem_of(check_structure(variant(argmax=argmax), X, Y), "not deterministic")


def test_random_ties_are_a_warning():
    rng = np.random.default_rng(0)

    def argmax(self, x, w, truth=None):
        values = w.reshape(K, -1) @ x
        if truth is not None:
            values = values + np.abs(np.arange(K) - truth)
        return int(rng.choice(np.flatnonzero(values == values.max())))

    report = check_structure(variant(argmax=argmax), X, Y)
    assert report.ok, str(report)
    assert "ties" in {w.kind for w in report.warnings}


@pytest.mark.parametrize("method", ["joint_feature", "loss"])
def test_other_methods_not_deterministic(method):
    calls = itertools.count()

    def drifting(self, *args):
        return getattr(Classes, method)(self, *args) + next(calls)

    report = check_structure(variant(**{method: drifting}), X, Y)
    assert problem_of(report, "not deterministic").method == method


def test_output_reused():
    class Reusing(Bits):
        def __init__(self):
            super().__init__()
            self.buffer = np.zeros(4, dtype=int)

        def argmax(self, x, w, truth=None):
            self.buffer[:] = super().argmax(x, w, truth)
            return self.buffer

    rng = np.random.default_rng(0)
    report = check_structure(Reusing(), rng.normal(size=(5, 4)), rng.integers(0, 2, (5, 4)))
    assert "changed by a later call" in problem_of(report, "output reused").message


# --- kinds of outputs, copies, keys ---


def test_truth_of_the_wrong_kind():
    def argmax(self, x, w, truth=None):
        return Classes.argmax(self, x, w, None if truth is None else int(truth))

    structure = variant(
        joint_feature=lambda self, x, y: Classes.joint_feature(self, x, int(y)),
        loss=lambda self, y, y_hat: float(int(y) != int(y_hat)),
        argmax=argmax,
    )
    report = check_structure(structure, X, [str(y) for y in Y])
    problem = problem_of(report, "kind of output")
    assert "returned a number, but the truth Y[0] is a string" in problem.message


def test_kind_of_the_entries():
    class Tags(Bits):
        def joint_feature(self, x, y):
            return super().joint_feature(x, np.array([int(k) for k in y]))

        def loss(self, y, y_hat):
            return np.mean([int(a) != int(b) for a, b in zip(y, y_hat, strict=True)])

    report = check_structure(Tags(), np.ones((1, 4)), [["0", "1", "1", "0"]])
    assert "sequence of numbers" in problem_of(report, "kind of output").message


def test_truth_not_listed():
    structure = variant(outputs=lambda self, x: range(K - 1))
    problem = problem_of(check_structure(structure, X, [3] * len(X)), "truth not listed")
    assert problem.method == "outputs"


def test_unpicklable_structure_is_a_warning():
    class Local(Classes):
        pass

    report = check_structure(Local(), X, Y)
    assert report.ok
    assert report
    assert [w.kind for w in report.warnings] == ["pickle"]
    assert "cannot be pickled" in str(report)


def test_structure_that_cannot_be_copied():
    structure = Classes()
    structure.lock = threading.Lock()
    problem_of(check_structure(structure, X, Y), "copy")


def test_not_a_structure():
    report = check_structure(SimpleNamespace(loss=abs), X, Y)
    problem = problem_of(report, "not a structure")
    assert "Missing: joint_feature, argmax" in problem.message
    assert "write Classes(...)" in str(check_structure(Classes, X, Y))


def test_outputs_without_equality_are_a_warning():
    class Box:
        def __init__(self, y):
            self.y = y

    class Boxes(Classes):
        def joint_feature(self, x, y):
            return super().joint_feature(x, y.y)

        def loss(self, y, y_hat):
            return super().loss(y.y, y_hat.y)

        def argmax(self, x, w, truth=None):
            return Box(super().argmax(x, w, None if truth is None else truth.y))

    report = check_structure(Boxes(), X, [Box(y) for y in Y])
    assert report.ok, str(report)
    assert "equal" in {w.kind for w in report.warnings}


def test_encoders():
    wrong = variant(encode=lambda self, y: y, decode=lambda self, code: code + 1)
    assert "decode(encode(Y[0]))" in problem_of(check_structure(wrong, X, Y), "decode").message
    unhashable = variant(encode=lambda self, y: [y])
    problem_of(check_structure(unhashable, X, Y), "key")


# --- the report ---


def test_raise_on_error():
    with pytest.raises(StructureError, match=r"expected at least 0(.|\n)*What to do") as caught:
        check_structure(
            variant(loss=lambda self, y, y_hat: -abs(y - y_hat)), X, Y, raise_on_error=True
        )
    assert caught.value.method == "loss"
    check_structure(Classes(), X, Y, raise_on_error=True)


def test_report_text():
    report = StructureReport("Mine", checks=7)
    assert str(report) == "Mine: no problems, no warnings (7 checks)"
    report.problems.append(Finding("loss", 3, "is odd", "make it even", count=2))
    report.warnings.append(Finding("structure", None, "is big", "make it small"))
    assert str(report).splitlines() == [
        "Mine: 1 problem, 1 warning (7 checks)",
        "",
        "Problems:",
        " 1. loss, example 3: is odd (found 2 times)",
        "    What to do: make it even",
        "",
        "Warnings:",
        " 1. structure: is big",
        "    What to do: make it small",
    ]


def test_number_of_samples_and_seed():
    seen = set()

    def joint_feature(self, x, y):
        seen.add(float(x[0]))
        return Classes.joint_feature(self, x, y)

    structure = variant(joint_feature=joint_feature)
    check_structure(structure, X, Y, n_samples=3, n_weights=1)
    assert len(seen) == 3
    first = check_structure(Classes(), X, Y, n_samples=3, random_state=5)
    second = check_structure(Classes(), X, Y, n_samples=3, random_state=5)
    assert first == second


def test_bad_arguments():
    with pytest.raises(ValueError, match="X has 12 examples and Y has 1"):
        check_structure(Classes(), X, Y[:1])
    with pytest.raises(ValueError, match="n_weights is 0"):
        check_structure(Classes(), X, Y, n_weights=0)
    with pytest.raises(ValueError, match="n_samples is 0"):
        check_structure(Classes(), X, Y, n_samples=0)
