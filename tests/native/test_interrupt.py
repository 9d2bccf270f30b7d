"""Stopping in the middle: Ctrl-C, a deadline, a user's method that raises."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from kit import pressing
from maxmargin import _native
from maxmargin.errors import StructureError
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.grammar import Grammar
from native_problems import (
    ChainPlanes,
    Flat,
    PythonPlanes,
    check_state,
    converge,
    dual,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)
from qp_reference import solve
from reference_dependency import TEXT, ReferenceTrees, random_sentences

N = 120


def large_problem(single=False):
    """A problem, its engine, and an order over it that would take minutes."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, N)
    case = random_case(rng, n_labels=12, lengths=lengths, features="values", n_sparse=100)
    engine = _native.Engine(case.problem(), 0.3, single=single)
    return case, engine, np.tile(everyone(N), 50_000)


def check_consistent(case, engine, single=False):
    rebuilt = check_state(
        engine, ChainPlanes(case), case.unpadded, tolerance=1e-4 if single else 1e-6
    )
    assert np.isfinite(rebuilt.dual)
    assert dual(engine) == pytest.approx(rebuilt.dual, rel=1e-3)
    primal, lower = engine.certify()
    assert primal >= lower >= 0.0
    return rebuilt


# --- Ctrl-C ---


def interrupted():
    """Send Ctrl-C to this process while native calls run that would take minutes."""
    case, engine, order = large_problem()
    options = _native.PassOptions()
    engine.exact_pass(everyone(N), options)
    for call in (
        lambda: engine.exact_pass(order, options),
        lambda: engine.cached_pass(order, _native.PassOptions(recombine=True)),
        lambda: engine.collect_pass(2),
        lambda: engine.hinge(2),
    ):
        before = dual(engine)
        with pytest.raises(KeyboardInterrupt):
            pressing(0.2, partial(forever, call))
        assert dual(engine) >= before - 1e-9
        check_consistent(case, engine)
        # and it goes on as if nothing had been
        result = engine.exact_pass(everyone(N), options)
        assert not result.interrupted
        assert result.oracle_calls == N


def forever(call):
    while True:
        call()


def test_ctrl_c_ends_a_pass():
    run_isolated(__file__, "interrupted")


def interrupted_predictions():
    """Send Ctrl-C during predictions that would together take longer than the process may run."""
    grammar = Grammar()
    y = ("S", [("S", ["a", "a"]), ("N", ["a", ("S", ["a", "a"])])])
    grammar.prepare([["a"] * 5], [y])
    trees = ReferenceTrees(TEXT)
    sentence = random_sentences(np.random.default_rng(0), [60])
    heads = trees.problem(sentence * 60_000, None)
    long = trees.problem([sentence[0] * 60], None)  # one sentence of 3,600 words
    pairs = Alignment("AB")
    w = np.zeros(trees.n_features)
    for call in (
        lambda: grammar.predict([["a"] * 1500], np.zeros(grammar.n_features), 1),
        lambda: heads.predict(w, 2),
        lambda: long.predict(w, 1),
        lambda: pairs.predict([("AB" * 500, "AAB" * 300)] * 40_000, np.zeros(pairs.n_features), 2),
    ):
        with pytest.raises(KeyboardInterrupt):
            pressing(0.5, call)


def test_ctrl_c_ends_predictions():
    run_isolated(__file__, "interrupted_predictions")


def interrupted_python():
    class Slow(Flat):
        def argmax(self, x, w, truth=None):
            time.sleep(0.01)
            return super().argmax(x, w, truth)

    structure, X, Y = flat_problem(np.random.default_rng(1))
    slow = Slow(structure.cost, 3)
    engine = _native.Engine(native_python_problem(slow, X, Y), 1.0, single=False)
    order = np.tile(everyone(len(Y)), 10_000)
    with pytest.raises(KeyboardInterrupt):
        pressing(0.3, lambda: engine.exact_pass(order, _native.PassOptions()))
    check_state(engine, PythonPlanes(slow.n_features), np.asarray, tolerance=1e-9)
    assert not engine.exact_pass(everyone(len(Y)), _native.PassOptions()).interrupted


def test_ctrl_c_in_a_users_method():
    run_isolated(__file__, "interrupted_python")


def handled():
    """A signal handler that does not raise must run and not end the pass."""
    case, engine, order = large_problem()
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    result = engine.exact_pass(order, _native.PassOptions(), 2.0)
    assert result.interrupted
    assert seen == [1]
    check_consistent(case, engine)


def test_a_handler_that_does_not_raise():
    run_isolated(__file__, "handled")


# --- a deadline ---


@pytest.mark.parametrize("single", [True, False], ids=["float32", "float64"])
def test_a_deadline_ends_a_pass(single):
    case, engine, order = large_problem(single)
    result = engine.exact_pass(order, _native.PassOptions(), 0.15)
    assert result.interrupted
    assert 0 < result.oracle_calls < len(order)
    check_consistent(case, engine, single)
    result = engine.cached_pass(order, _native.PassOptions(recombine=True), 0.1)
    assert result.interrupted
    check_consistent(case, engine, single)
    result = engine.exact_pass(everyone(N), _native.PassOptions())
    assert not result.interrupted
    assert result.oracle_calls == N


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [40, 130])
def test_a_deadline_ends_a_collect_pass(n, threads):
    # Few sequences or many, with so many labels that the pass takes more than a moment.
    rng = np.random.default_rng(3)
    lengths = (10_000 // n,) * n
    case = random_case(rng, n_labels=500, lengths=lengths, features="ones", n_sparse=8)
    engine = _native.Engine(case.problem(), 1.0)
    result = engine.collect_pass(threads, 0.0)
    assert result.interrupted
    assert result.oracle_calls < n
    assert engine.size()["parts"] <= result.oracle_calls
    assert not engine.weights.any()


def test_a_deadline_is_seen_while_another_thread_works():
    # The caller's share of the examples is sentences of one word, and all long ones are in the
    # other share: whoever asks only between the caller's own examples sees no deadline.
    rng = np.random.default_rng(6)
    short, long = (1,) * 400, (500,) * 400  # a pass of about a second
    case = random_case(rng, n_labels=400, lengths=short + long, features="ones", n_sparse=8)
    engine = _native.Engine(case.problem(), 1.0)
    result = engine.collect_pass(2, 0.1)
    assert result.interrupted
    assert result.oracle_calls < len(short + long)
    assert not engine.weights.any()


def test_a_deadline_that_is_far_away():
    case, engine, _ = large_problem()
    for seconds in (None, 1e6, 1e300, np.inf):
        assert not engine.exact_pass(everyone(N), _native.PassOptions(), seconds).interrupted
    check_consistent(case, engine)


@pytest.mark.parametrize("kind", ["exact", "collect"])
def test_a_deadline_holds_for_a_slow_oracle(kind):
    # A few slow examples: whoever looks at the clock after every 64 of them looks too late.
    class Slow(Flat):
        calls = 0

        def argmax(self, x, w, truth=None):
            self.calls += 1
            time.sleep(0.05)
            return super().argmax(x, w, truth)

    structure, X, Y = flat_problem(np.random.default_rng(2), n=30)
    slow = Slow(structure.cost, 3)
    engine = _native.Engine(native_python_problem(slow, X, Y), 1.0, single=False)
    options = _native.PassOptions()
    if kind == "exact":
        result = engine.exact_pass(everyone(30), options, 0.2)
    else:
        result = engine.collect_pass(1, 0.2)
    assert result.interrupted
    assert result.oracle_calls == slow.calls < 30
    check_state(engine, PythonPlanes(slow.n_features), np.asarray, tolerance=1e-9)


# --- a user's method that raises ---


class Moody(Flat):
    """Raises at a chosen call of argmax."""

    def __init__(self, cost, n_inputs):
        super().__init__(cost, n_inputs)
        self.calls, self.fails_at, self.error = 0, None, lambda: None

    def argmax(self, x, w, truth=None):
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.error()
        return super().argmax(x, w, truth)


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (RuntimeError, StructureError),
        (MemoryError, MemoryError),
        (KeyboardInterrupt, KeyboardInterrupt),
        (SystemExit, SystemExit),
    ],
)
@pytest.mark.parametrize("kind", ["exact", "collect", "hinge", "certify"])
def test_an_oracle_that_raises(kind, error, seen):
    structure, X, Y = flat_problem(np.random.default_rng(4), n=6)
    moody = Moody(structure.cost, 3)
    engine = _native.Engine(native_python_problem(moody, X, Y), 1.0, single=False)
    planes, options = PythonPlanes(moody.n_features), _native.PassOptions()
    calls = {
        "exact": lambda: engine.exact_pass(everyone(6), options),
        "collect": lambda: engine.collect_pass(2),
        "hinge": lambda: engine.hinge(2),
        "certify": lambda: engine.certify(2),
    }
    engine.exact_pass(everyone(6), options)
    before = dual(engine)
    moody.error = error
    for later in (1, 4):
        moody.fails_at = moody.calls + later
        with pytest.raises(seen):
            calls[kind]()
        check_state(engine, planes, np.asarray, tolerance=1e-9)
        assert dual(engine) >= before - 1e-12
    primal, lower = converge(engine, 6, gap=1e-8, passes=300)
    best = solve(structure, X, Y, 1.0)
    assert primal == pytest.approx(best.primal, rel=1e-6)
    assert lower == pytest.approx(best.dual, rel=1e-6)


class Liar:
    """What the native side sees of a problem, answering whatever it is told to."""

    n_examples, n_weights = 2, 4

    def __init__(self, answer):
        self.answer = answer

    def oracle(self, i, w):
        return self.answer


def plane(indices, values, loss=1.0, truth=False):
    return np.array(indices, np.uint32), np.array(values, np.float64), loss, truth


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (),
        list(plane([0], [1.0])),
        plane([0], [1.0])[:3],
        (*plane([0], [1.0]), 1.0),
        plane([0], [1.0])[::-1],
        (np.array([0.5]), np.ones(1), 1.0, False),
        plane([0, 1], [1.0]),
        plane([4], [1.0]),
        plane([2**32 - 1], [1.0]),
        plane([1, 0], [1.0, 1.0]),
        plane([1, 1], [1.0, 1.0]),
        plane([0], [np.nan]),
        plane([0], [np.inf]),
        plane([0], [1.0], np.nan),
        plane([0], [1.0], np.inf),
        plane([0], [1.0], -1.0),
        plane([0], [1.0], "loss"),
        plane([0], [1.0], 1.0, "no"),
        (None, None, 1.0, False),
        (np.zeros((1, 1), np.uint32), np.zeros(1), 1.0, False),
        ("indices", "values", 1.0, False),
    ],
    ids=str,
)
def test_nonsense_from_python_is_an_exception(answer):
    problem = _native.PythonProblem(Liar(answer))
    engine = _native.Engine(problem, 1.0, single=False)
    for call in (
        lambda: engine.exact_pass(everyone(2), _native.PassOptions()),
        lambda: engine.collect_pass(1),
        engine.hinge,
        engine.certify,
    ):
        with pytest.raises(ValueError, match=r"for example 0$"):
            call()
    assert not engine.weights.any()
    assert engine.size()["planes"] == 0


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (plane([0], [1.0]),),
        [None],
        [()],
        [plane([0], [1.0])[:3]],
        [plane([0], [1.0]), 7],
        [plane([], [], 0.0, True)],
    ],
    ids=str,
)
def test_nonsense_grades_from_python_are_an_exception(answer):
    liar = Liar(plane([0], [1.0]))
    liar.offers_grades, liar.grades = True, lambda i, w, any_loss: answer
    problem = _native.PythonProblem(liar)
    engine = _native.Engine(problem, 1.0, single=False, factored=False, rescale="slack")
    with pytest.raises(ValueError, match=r"for example 0$"):
        engine.exact_pass(everyone(2), _native.PassOptions())


def test_nonsense_about_sizes_is_an_exception():
    class Sizes:
        def __init__(self, n_examples, n_weights):
            self.n_examples, self.n_weights = n_examples, n_weights

        def oracle(self, i, w):
            return plane([], [], 0.0, True)

    for n_examples, n_weights in ((1, 0), (1, 2**32), (1, -1), (-1, 1), (1, "x"), (None, 1)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _native.PythonProblem(Sizes(n_examples, n_weights))
    with pytest.raises(AttributeError):
        _native.PythonProblem(object())


def test_a_plane_of_loss_without_features():
    # The features of an output may be those of the truth: a plane with nothing to learn from.
    engine = _native.Engine(_native.PythonProblem(Liar(plane([], [], 2.0))), 3.0, single=False)
    for _ in range(3):
        engine.exact_pass(everyone(2), _native.PassOptions())
    assert engine.certify() == (12.0, 12.0)


def test_weights_kept_by_a_users_method_stay_valid():
    class Keeper(Flat):
        kept: list

        def argmax(self, x, w, truth=None):
            self.kept.append(w)
            return super().argmax(x, w, truth)

    structure, X, Y = flat_problem(np.random.default_rng(5))
    keeper = Keeper(structure.cost, 3)
    keeper.kept = []
    engine = _native.Engine(native_python_problem(keeper, X, Y), 1.0, single=False)
    engine.exact_pass(everyone(len(Y)), _native.PassOptions())
    del engine
    assert all(np.isfinite(w).all() for w in keeper.kept)
    assert not any(w.flags.writeable for w in keeper.kept)
