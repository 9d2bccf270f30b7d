"""The driver: certificates, history, limits, callbacks, interruption, warm starts."""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import sys
import threading
import warnings

import numpy as np
import pytest

import qp_reference
from kit import quietly
from maxmargin._native import Engine
from maxmargin.errors import ConvergenceWarning, NotCompatibleError
from maxmargin.solvers import SDM, SOLVERS, History, PassRecord, driver, make_solver, solve
from maxmargin.solvers.certificate import Certificate, relative_gap
from native_problems import (
    ChainPlanes,
    PythonPlanes,
    brute_hinge,
    check_state,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)

#: As far as each is asked to go here: to a gap of 1e-4, or to a tau that leaves as little.
SCHEDULES = {
    "auto": SDM(),
    "paper": SDM("paper", tau=1e-4, tau_inner=1e-4),
    "basic": SDM("basic", tau=1e-4, tau_inner=1e-4),
}
DTYPES = ("float32", "float64")


class Instance:
    """A random problem, as the native core and as the references see it."""

    def __init__(self, kind, seed):
        rng = np.random.default_rng(seed)
        self.kind = kind
        if kind == "chain":
            self.case = random_case(
                rng,
                lengths=(3, 1, 4, 2, 3, 4),
                features=("ones", "values", "dense64")[seed % 3],
                cost=seed % 2 == 1,
                weighted=seed % 4 == 3,
            )
            self.structure, self.X, self.Y = self.case.reference, self.case.X, self.case.Y
        else:
            self.structure, self.X, self.Y = flat_problem(rng, n=10)

    def problem(self):
        if self.kind == "chain":
            return self.case.problem()
        return native_python_problem(self.structure, self.X, self.Y)

    def unpadded(self, w):
        return self.case.unpadded(w) if self.kind == "chain" else np.asarray(w, dtype=float)

    def planes(self):
        if self.kind == "chain":
            return ChainPlanes(self.case)
        return PythonPlanes(self.structure.n_features)

    def primal(self, w, C):
        if self.kind == "chain":
            hinge = brute_hinge(self.case, w)
        else:
            hinge = sum(
                max(
                    self.structure.loss(y, z)
                    + w @ (self.structure.joint_feature(x, z) - self.structure.joint_feature(x, y))
                    for z in self.structure.outputs(x)
                )
                for x, y in zip(self.X, self.Y, strict=True)
            )
        return 0.5 * w @ w + C * hinge

    def optimum(self, C):
        return qp_reference.solve(self.structure, self.X, self.Y, C)


def problem():
    return Instance("chain", 0).problem()


def larger_problem():
    """Return a problem that no run here comes to the end of."""
    rng = np.random.default_rng(5)
    case = random_case(rng, n_labels=5, lengths=[12] * 40, n_sparse=30, features="ones")
    return case.problem()


# --- the answer is right ---


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "seed", "C"), [
    ("chain", 0, 1.0),
    ("chain", 1, 0.1),
    ("chain", 2, 3.0),
    ("chain", 3, 0.7),
    ("flat", 0, 1.0),
    ("flat", 1, 0.05),
])  # fmt: skip
def test_the_asked_gap_is_reached_and_the_certificate_is_true(schedule, dtype, kind, seed, C):
    instance = Instance(kind, seed)
    solver = SCHEDULES[schedule]
    result = solve(
        instance.problem(), solver, C=C, dtype=dtype, gap=1e-3, random_state=seed, max_passes=5000
    )
    certificate, best = result.certificate, instance.optimum(C)
    assert result.converged
    assert result.stop_reason
    assert certificate.gap <= 1e-3 * (1 + 1e-3)
    assert (certificate.C, certificate.n_examples) == (C, len(instance.X))
    assert result.n_passes == len(result.history)
    w = instance.unpadded(result.weights)
    eps = 1e-5 if result.weights.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(certificate.primal, instance.primal(w, C), rtol=eps)
    rebuilt = check_state(result.engine, instance.planes(), instance.unpadded, tolerance=1e-5)
    np.testing.assert_allclose(certificate.dual, rebuilt.dual, rtol=eps)
    np.testing.assert_allclose(w, rebuilt.w, rtol=0, atol=eps * (1 + np.abs(rebuilt.w).max()))
    slack = eps * best.primal
    assert certificate.dual - slack <= best.primal
    assert best.dual <= certificate.primal + slack
    assert certificate.primal <= best.primal * (1 + 2e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "seed"), [("chain", 0), ("chain", 1), ("flat", 0)])
def test_weak_duality_and_a_rising_dual_at_every_pass(schedule, dtype, kind, seed):
    instance, C = Instance(kind, seed), 0.8
    best = instance.optimum(C).primal
    met = []
    result = quietly(
        instance.problem(),
        SCHEDULES[schedule],
        C=C,
        dtype=dtype,
        gap=1e-4,
        random_state=1,
        max_passes=300,
        callbacks=[met.append],
    )
    # The certified numbers of the last record do not come from the losses that planes keep. Passes
    # count what they gain with inner products of tokens, which are 4-byte numbers in any case.
    exact, certified = (2e-5, 2e-5) if dtype == "float32" else (2e-8, 1e-7)
    for records, eps in ((met, exact), (result.history, certified)):
        slack = eps * best
        dual = np.array([r.dual for r in records])
        assert (np.diff(dual) >= -slack).all()
        assert (dual <= best + slack).all()
        for record in records:
            if math.isfinite(record.primal):
                assert record.primal >= record.dual - slack
                assert record.primal >= best - slack
                assert record.gap == relative_gap(record.primal, record.dual)
    last = result.history[-1]
    assert (last.primal, last.dual) == (result.certificate.primal, result.certificate.dual)
    assert last.nonzeros == np.count_nonzero(result.weights)
    assert (np.diff(result.history.column("seconds")) >= 0).all()
    assert (np.diff(result.history.column("oracle_calls")) >= 0).all()
    assert {r.kind for r in result.history} <= {"exact", "collect", "cached"}


@pytest.mark.parametrize("kind", ["chain", "flat"])
@pytest.mark.parametrize("seed", range(3))
def test_all_schedules_agree(kind, seed):
    primal = [
        solve(
            Instance(kind, seed).problem(),
            solver,
            C=0.5,
            dtype="float64",
            gap=5e-4,
            random_state=0,
            max_passes=10000,
        ).certificate.primal
        for solver in SCHEDULES.values()
    ]
    np.testing.assert_allclose(primal, primal[0], rtol=1e-3)


def test_a_problem_without_anything_to_learn_is_solved_at_once():
    # One label: no output but the truth, so primal and dual are 0.
    case = random_case(np.random.default_rng(0), n_labels=1)
    for solver in SCHEDULES.values():
        result = solve(case.problem(), solver, C=1.0)
        assert result.converged
        assert result.certificate.primal == result.certificate.dual == result.certificate.gap == 0.0


# --- records ---


def records(n):
    return [
        PassRecord(i + 1, "exact", 0.5 * i, 7 * i, math.nan, 1.0 * i, math.nan, 0.1, 3)
        for i in range(n)
    ]


def test_history_is_a_sequence():
    history = History(records(4))
    assert len(history) == 4
    assert history[0].n_pass == 1
    assert history[-1].n_pass == 4
    assert [r.n_pass for r in history[1:3]] == [2, 3]
    assert isinstance(history[1:3], History)
    assert [r.n_pass for r in history] == [1, 2, 3, 4]
    assert "4 passes" in repr(history)
    with pytest.raises(IndexError):
        history[4]
    with pytest.raises(TypeError):
        hash(history)


def test_history_round_trip():
    history = solve(problem(), SDM(), C=1.0, random_state=0).history
    rows = history.to_dicts()
    assert all(type(row) is dict for row in rows)
    again = History.from_dicts(rows)
    assert again == history
    assert again != History(list(history)[:-1])
    assert again != rows
    assert again.to_dicts()[0].keys() == rows[0].keys()


def test_history_columns():
    history = History(records(3))
    np.testing.assert_array_equal(history.column("n_pass"), [1, 2, 3])
    np.testing.assert_array_equal(history.column("kind"), ["exact"] * 3)
    assert np.isnan(history.column("primal")).all()
    with pytest.raises(ValueError, match=r"n_pass, kind, seconds.*'loss'"):
        history.column("loss")


def test_certificate_speaks():
    certificate = Certificate(2.0, 1.5, 0.1, 3)
    assert certificate.gap == 0.25
    assert "25 %" in str(certificate)
    assert Certificate(0.0, 0.0, 1.0, 1).gap == 0.0


# --- limits ---


@pytest.mark.parametrize("passes", [1, 2, 5])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_max_passes(schedule, passes):
    with pytest.warns(ConvergenceWarning, match=f"max_passes = {passes}"):
        result = solve(larger_problem(), SCHEDULES[schedule], C=1.0, gap=0.0, max_passes=passes)
    assert not result.converged
    assert result.n_passes == passes
    assert result.stop_reason == f"max_passes = {passes}"
    assert 0 < result.certificate.gap <= 1
    assert result.history.column("n_pass").tolist() == list(range(1, passes + 1))


@pytest.mark.parametrize("limit", [1e-9, 0.05])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_time_limit(schedule, limit):
    solver = SDM(schedule, tau=0.0, tau_inner=0.0)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        result = solve(
            larger_problem(), solver, C=10.0, gap=0.0, time_limit=limit, max_passes=10**9
        )
    assert not result.converged
    assert result.stop_reason.split("; ")[0] == f"time_limit = {limit:g} s"
    assert math.isfinite(result.certificate.primal)
    assert result.certificate.primal >= result.certificate.dual


def test_time_limit_with_a_python_structure():
    instance = Instance("flat", 0)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        result = solve(instance.problem(), SDM(), C=1.0, gap=0.0, time_limit=1e-9, max_passes=10**9)
    assert result.stop_reason == "time_limit = 1e-09 s"


def test_convergence_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve(problem(), SDM(), C=1.0, max_passes=np.int64(1000)).converged


# --- callbacks, progress, Ctrl-C ---


def test_callbacks_see_every_pass():
    met = []
    result = solve(problem(), SDM(), C=1.0, callbacks=(met.append,))
    assert [r.n_pass for r in met] == list(range(1, result.n_passes + 1))
    assert History(met[:-1]) == result.history[:-1]


@pytest.mark.parametrize("answer", [True, 1, "stop"])
def test_a_true_answer_stops_but_all_are_called(answer):
    met = []

    def stop(record):
        met.append(("stop", record.n_pass))
        return answer if record.n_pass == 3 else 0

    def watch(record):
        met.append(("watch", record.n_pass))

    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        result = solve(larger_problem(), SDM(), C=1.0, gap=0.0, callbacks=[stop, watch])
    assert result.n_passes == 3
    assert not result.converged
    assert result.stop_reason == "stopped by a callback"
    assert met == [(who, n) for n in (1, 2, 3) for who in ("stop", "watch")]


def test_a_callback_that_stops_a_converged_run_leaves_it_converged():
    result = solve(problem(), SDM(), C=1.0, callbacks=[lambda r: r.gap <= 0.01])
    assert result.converged


@pytest.mark.parametrize("callbacks", [None, (), [], iter([])])
def test_no_callbacks(callbacks):
    assert solve(problem(), SDM(), C=1.0, callbacks=callbacks).converged


def test_errors_of_a_callback_pass_through():
    def fail(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(problem(), SDM(), C=1.0, callbacks=[fail])


def test_an_interrupt_in_a_callback_keeps_the_model(capfd):
    def interrupt(record):
        if record.n_pass == 2:
            raise KeyboardInterrupt

    result = solve(problem(), SDM(), C=1.0, gap=0.0, callbacks=[interrupt], random_state=0)
    assert (result.stop_reason, result.n_passes, result.converged) == ("interrupted", 2, False)
    assert result.certificate.primal >= result.certificate.dual
    assert "interrupted" in capfd.readouterr().err


def test_ctrl_c_during_the_certificate_is_noted(monkeypatch, capfd):
    met = []
    enter = driver.HeldInterrupt.__enter__

    def held(self):
        entered = enter(self)
        signal.raise_signal(signal.SIGINT)  # as if somebody pressed Ctrl-C just now
        met.append(True)
        return entered

    monkeypatch.setattr(driver.HeldInterrupt, "__enter__", held)
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = solve(problem(), SDM(), C=1.0, random_state=0)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert met
    assert result.interrupted
    assert result.certificate.gap <= 0.01
    assert result.converged
    assert result.stop_reason == f"interrupted; gap {result.certificate.gap:.3g} <= 0.01"


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_progress_goes_to_standard_error(verbose, capfd):
    result = solve(problem(), SDM(), C=1.0, gap=1e-3, verbose=verbose, random_state=0)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    if verbose == 0:
        assert lines == []
    if verbose == 1:
        kinds = result.history.column("kind").tolist()
        assert len(lines) >= kinds.count("collect")
    if verbose == 2:
        assert len(lines) == result.n_passes
        assert all(line.startswith("pass ") for line in lines)


def interrupted_python_structure():
    """In a process of its own: SIGINT in the middle of a pass of a Python oracle."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    structure, X, Y = flat_problem(np.random.default_rng(0), n=30)
    calls, argmax = [], structure.argmax

    def argmax_with_signal(x, w, truth=None):
        calls.append(1)
        if len(calls) == 75:
            os.kill(os.getpid(), signal.SIGINT)
        return argmax(x, w, truth=truth)

    structure.argmax = argmax_with_signal
    said = io.StringIO()
    for schedule in ("auto", "paper"):
        calls.clear()
        with warnings.catch_warnings(), contextlib.redirect_stderr(said):
            warnings.simplefilter("error", ConvergenceWarning)
            result = solve(
                native_python_problem(structure, X, Y),
                SDM(schedule, tau=1e-6, warm_passes=5),
                C=1.0,
                gap=0.0,
                random_state=0,
            )
        assert result.stop_reason == "interrupted", result.stop_reason
        assert not result.converged
        assert result.n_passes == 2, result.n_passes
        assert result.certificate.dual > result.history[0].dual
        assert 0 <= result.certificate.gap < 1
    assert "interrupted" in said.getvalue()


def interrupted_chain():
    """In a process of its own: SIGINT in the middle of a native pass."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=300, lengths=[100] * 300, n_sparse=50, features="ones")
    timers = []

    def soon(record):
        if not timers:
            timers.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    result = solve(
        case.problem(), SDM(), C=1.0, gap=0.0, time_limit=60.0, callbacks=[soon], max_passes=50
    )
    timers[0].join()
    assert result.stop_reason == "interrupted", result.stop_reason
    assert math.isfinite(result.certificate.primal)
    assert np.isfinite(result.weights).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("what", ["interrupted_python_structure", "interrupted_chain"])
def test_an_interrupt_during_a_pass_returns_the_model_so_far(what):
    run_isolated(__file__, what)


class InterruptedSolver(SDM):
    """Ctrl-C once, when the second pass has already changed the multipliers."""

    def step(self, engine, state, context):
        first = engine.size()["planes"] == 0
        step = super().step(engine, state, context)
        if not first and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return step


interrupts = []


def test_a_run_resumed_after_an_interrupt_knows_its_dual(tmp_path):
    path, instance = tmp_path / "run.npz", Instance("chain", 0)
    interrupts.append("one")
    options = {"C": 1.0, "dtype": "float64", "random_state": 0, "checkpoint": path, "gap": 1e-4}
    stopped = solve(instance.problem(), InterruptedSolver(), **options)
    assert stopped.stop_reason == "interrupted"
    met = []
    resumed = solve(
        instance.problem(), InterruptedSolver(), resume=True, callbacks=[met.append], **options
    )
    assert resumed.converged
    best = instance.optimum(1.0).primal
    for record in met:
        assert record.dual <= best * (1 + 1e-9)
        assert not record.primal < best * (1 - 1e-9)
    np.testing.assert_allclose(met[-1].dual, resumed.certificate.dual, rtol=1e-6)


# --- arguments ---

BAD = [
    ({"C": 0}, ValueError, "C must be"),
    ({"C": -1.0}, ValueError, "C must be"),
    ({"C": math.nan}, ValueError, "C must be"),
    ({"C": math.inf}, ValueError, "C must be"),
    ({"C": True}, TypeError, "C must be"),
    ({"C": "1"}, TypeError, "C must be"),
    ({"C": None}, TypeError, "C must be"),
    ({"C": 1j}, TypeError, "C must be"),
    ({"gap": -0.1}, ValueError, "gap must be"),
    ({"gap": math.nan}, ValueError, "gap must be"),
    ({"gap": "small"}, TypeError, "gap must be"),
    ({"max_passes": 0}, ValueError, "max_passes must be"),
    ({"max_passes": 1.5}, TypeError, "max_passes must be"),
    ({"max_passes": True}, TypeError, "max_passes must be"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be"),
    ({"n_jobs": 2.0}, TypeError, "n_jobs must be"),
    ({"n_jobs": None}, TypeError, "n_jobs must be"),
    ({"time_limit": 0}, ValueError, "time_limit must be"),
    ({"time_limit": -1}, ValueError, "time_limit must be"),
    ({"time_limit": math.inf}, ValueError, "time_limit must be"),
    ({"time_limit": "1 h"}, TypeError, "time_limit must be"),
    ({"dtype": "float16"}, ValueError, "dtype must be"),
    ({"dtype": None}, ValueError, "dtype must be"),
    ({"resume": True}, ValueError, "resume=True needs a checkpoint"),
    ({"regularizer": "l1"}, ValueError, "regularizer must be"),
    ({"regularizer": 3}, ValueError, "regularizer must be"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        solve(problem(), SDM(), **{"C": 1.0, **arguments})


@pytest.mark.parametrize("C", [1, np.float32(1), np.int64(1)])
def test_numbers_of_all_kinds(C):
    assert solve(problem(), SDM(), C=C).certificate.C == 1.0


@pytest.mark.parametrize("written", ["svm", "", None, 3, SDM])
def test_an_unknown_solver_is_told_the_known_ones(written):
    with pytest.raises(ValueError, match="solver must be") as caught:
        make_solver(written)
    assert all(repr(name) in str(caught.value) for name in SOLVERS)


@pytest.mark.parametrize("written", ["sdm", "SDM", SDM()])
def test_known_solvers(written):
    assert make_solver(written) == SDM()


# --- the same again ---


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "seed", [lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
)
def test_runs_repeat_bit_for_bit(schedule, seed):
    first, second = (
        quietly(larger_problem(), SCHEDULES[schedule], C=0.3, random_state=seed(), max_passes=12)
        for _ in range(2)
    )
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.certificate == second.certificate


def test_the_seed_matters_and_permute_switches_it_off():
    def weights(solver, seed):
        result = quietly(larger_problem(), solver, C=0.3, random_state=seed, max_passes=3)
        return result.weights.tobytes()

    assert weights(SDM(), 1) != weights(SDM(), 2)
    assert weights(SDM(permute=False), 1) == weights(SDM(permute=False), 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_does_not_depend_on_the_threads(dtype):
    one, two = (
        quietly(larger_problem(), SDM(), C=0.3, dtype=dtype, gap=1e-3, random_state=0, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert "collect" in one.history.column("kind")
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.certificate == two.certificate


# --- warm starts ---


@pytest.mark.parametrize("kind", ["chain", "flat"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_going_on_with_the_same_c_is_over_at_once(schedule, kind):
    data, solver = Instance(kind, 0).problem(), SCHEDULES[schedule]
    cold = solve(data, solver, C=1.0, gap=1e-3, dtype="float64", max_passes=5000)
    warm = solve(data, solver, C=1.0, gap=2e-3, dtype="float64", engine=cold.engine)
    assert warm.converged
    assert warm.n_passes <= 2
    assert warm.certificate.dual >= cold.certificate.dual * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["chain", "flat"])
@pytest.mark.parametrize("other", [0.05, 4.0])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_going_on_with_another_c(schedule, other, kind):
    data, solver = Instance(kind, 1).problem(), SCHEDULES[schedule]
    options = {"gap": 5e-4, "dtype": "float64", "max_passes": 10000, "random_state": 0}
    cold = solve(data, solver, C=other, **options)
    first = solve(data, solver, C=1.0, **options)
    warm = solve(data, solver, C=other, engine=first.engine, **options)
    assert other == warm.engine.C
    assert warm.converged
    np.testing.assert_allclose(warm.certificate.primal, cold.certificate.primal, rtol=1e-3)


def test_an_engine_of_another_schedule_is_refused():
    data = problem()
    auto = solve(data, SDM(), C=1.0).engine
    paper = solve(data, SDM("paper"), C=1.0).engine
    for engine, solver in ((auto, SDM("paper")), (auto, SDM("basic")), (paper, SDM())):
        with pytest.raises(NotCompatibleError, match="schedule"):
            solve(data, solver, C=1.0, engine=engine)
    assert solve(data, SDM("basic", tau=1e-3, tau_inner=1e-3), C=1.0, engine=paper).converged


def test_an_engine_of_another_problem_is_refused():
    few, many = problem(), larger_problem()
    for made_for, given in ((few, many), (many, few)):
        with pytest.raises(ValueError):
            quietly(given, SDM(), C=1.0, engine=Engine(made_for, 1.0), max_passes=3)


def test_features_too_large_for_the_objective_are_an_error_in_words():
    case = random_case(np.random.default_rng(0), features="values", scale=1e30)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="not finite"):
        quietly(case.problem(), SDM(), C=1.0, max_passes=20)


def test_an_interrupt_while_the_gap_is_confirmed_returns_the_model_so_far(monkeypatch):
    # The oracle's pass that confirms a gap comes after the step, but Ctrl-C may meet it too.
    from maxmargin.solvers.run import Run as _Run

    def interrupted(self, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "_exact_gap", interrupted)
    result = quietly(larger_problem(), SDM(), C=0.3, dtype="float64", gap=1e-3, random_state=0)
    assert result.stop_reason == "interrupted"
    assert not result.converged
    assert result.certificate.primal >= result.certificate.dual > 0
