"""The oracle of a Python structure in other processes (``n_jobs`` above 1)."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from maxmargin import StructuralSVM
from maxmargin.errors import ConvergenceWarning, OracleProcessError, StructureError
from maxmargin.solvers import SDM, OneSlack, make_solver
from maxmargin.structures import oracle_pool
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.oracle_pool import OraclePool
from maxmargin.structures.oracle_worker import RemoteTracebackError
from pool_structures import (
    PARENT,
    Away,
    Classes,
    Listed,
    N,
    Sleepy,
    Unreadable,
    Unsendable,
    Worse,
    X,
    Y,
)

PARENT.append(os.getpid())


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[OraclePool]:
    """Processes are started at once, and used for everything; those of a test are listed."""
    made: list[OraclePool] = []

    class Eager(OraclePool):
        def __init__(self, problem: PythonProblem, n_jobs: int) -> None:
            super().__init__(problem, n_jobs)
            made.append(self)
            self.received = 0

        def begin(self, *args: Any) -> None:
            super().begin(*args)
            self.wait_until_ready()

        def _received(self, piece: Any) -> list[Any]:
            answers = super()._received(piece)
            self.received += len(answers)
            return answers

    monkeypatch.setattr("maxmargin.structures.adapter.OraclePool", Eager)
    monkeypatch.setattr(oracle_pool, "WORTH_SENDING", 0.0)
    return made


def fitted(structure: Any, n_jobs: int, **params: Any) -> StructuralSVM:
    params = {"C": 0.3, "gap": 1e-3, "random_state": 0} | params
    return StructuralSVM(structure, n_jobs=n_jobs, **params).fit(X, Y)


def same(a: StructuralSVM, b: StructuralSVM) -> bool:
    records = [[(r.kind, r.primal, r.dual, r.oracle_calls) for r in m.history_] for m in (a, b)]
    return np.array_equal(a.weights_, b.weights_) and repr(records[0]) == repr(records[1])


@pytest.mark.parametrize(
    "solver",
    [
        SDM(),
        SDM(slack="quadratic", rescale="slack"),
        SDM(rescale="none"),
        OneSlack(),
    ],
    ids=lambda s: f"{s.name} {getattr(s, 'slack', '')} {s.rescale}",
)
def test_the_clock_decides_where_and_not_what(
    solver: Any, pools: list[OraclePool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same result bit by bit, whether all answers come from other processes or none."""
    structure = Listed()
    away = fitted(structure, 2, solver=solver)
    assert pools[-1].received > N  # type: ignore[attr-defined]
    monkeypatch.setattr(oracle_pool, "WORTH_SENDING", 1e9)
    here = fitted(structure, 3, solver=solver)
    assert pools[-1].received == 0  # type: ignore[attr-defined]
    assert same(away, here)
    assert away.converged_


def test_solvers_that_ask_for_one_example_at_a_time_find_what_they_found(
    pools: list[OraclePool],
) -> None:
    """Exact passes that are not made in batches take no answers of an older w."""
    one = fitted(Classes(), 1, solver=make_solver("nslack"))
    two = fitted(Classes(), 2, solver=make_solver("nslack"))
    assert pools[-1].received > 0  # type: ignore[attr-defined]
    assert same(one, two)


@pytest.mark.parametrize("name", ["bcfw", "dualcoordinate"])
def test_solvers_that_ask_in_batches_find_the_optimum(name: str, pools: list[OraclePool]) -> None:
    """Their answers are of a w that is a batch older, and the certificate is as good."""
    one = fitted(Classes(), 1, solver=make_solver(name))
    two = fitted(Classes(), 2, solver=make_solver(name))
    assert pools[-1].received > N  # type: ignore[attr-defined]
    assert two.converged_
    assert two.certificate_.dual <= one.certificate_.primal
    assert one.certificate_.dual <= two.certificate_.primal


def test_certificate_holds_in_one_process(pools: list[OraclePool]) -> None:
    model = fitted(Classes(), 2)
    problem = PythonProblem(Classes(), X, Y)
    w = np.asarray(model.weights_, dtype=np.float64)
    hinges = 0.0
    for i in range(N):
        indices, values, loss, truth = problem.oracle(i, w)
        hinges += 0.0 if truth else max(0.0, loss - float(values @ w[indices]))
    primal = 0.5 * float(w @ w) + 0.3 * hinges
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.certificate_.gap <= 1e-3


def test_an_error_names_the_example_and_has_the_traceback(pools: list[OraclePool]) -> None:
    with pytest.raises(StructureError, match=r"argmax of Away failed: IndexError.*example 17") as e:
        fitted(Away("raise"), 2)
    assert (e.value.method, e.value.example) == ("argmax", 17)
    assert isinstance(e.value.__cause__, IndexError)
    remote = e.value.__cause__.__cause__
    assert isinstance(remote, RemoteTracebackError)
    assert "return [0][int(x[1] * 0) + 7]" in str(remote)


def test_answers_of_other_processes_are_checked(pools: list[OraclePool]) -> None:
    with pytest.raises(StructureError, match=r"returned None; expected an output.*example 17"):
        fitted(Away("nonsense"), 2)


def test_a_process_that_dies(pools: list[OraclePool]) -> None:
    with pytest.raises(OracleProcessError, match=r"oracle of Away died .*With n_jobs=1"):
        fitted(Away("die"), 2)


@pytest.mark.parametrize(
    ("structure", "why"),
    [(Unsendable(), "pickled.*has a lock"), (Unreadable(), "read by another process.*'secret'")],
    ids=["not sent", "not read"],
)
def test_a_structure_that_cannot_go(structure: Any, why: str, pools: list[OraclePool]) -> None:
    with pytest.warns(UserWarning, match=f"n_jobs=2 starts no other process.*{why}"):
        two = fitted(structure, 2)
    assert same(two, fitted(Classes(), 2))


def test_answers_worse_than_the_truth_are_counted_here(pools: list[OraclePool]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(Worse(), 2, max_passes=5)
    said = [w for w in caught if "worse than the truth for example" in str(w.message)]
    assert len(said) == 1
    assert pools[-1].received > N  # type: ignore[attr-defined]


def test_cheap_oracles_start_no_process() -> None:
    problem = PythonProblem(Classes(), X, Y)
    with problem.helpers(2) as pool:
        pool.begin(np.arange(N, dtype=np.uint32), np.zeros(problem.n_weights), "linear", "margin")
        for i in range(N):
            assert pool.take(i) is None
            pool.took(1e-5)
        assert not pool.started


def test_time_limit(pools: list[OraclePool]) -> None:
    with pytest.warns(ConvergenceWarning, match="time_limit = 1 s"):
        model = fitted(Sleepy(), 2, gap=0.0, time_limit=1.0, max_passes=10000)
    assert "time_limit" in model.stop_reason_
    assert model.n_iter_ < 1000


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="no signals")
def test_ctrl_c_keeps_the_model(pools: list[OraclePool]) -> None:
    model = StructuralSVM(Sleepy(), C=0.3, gap=0.0, n_jobs=2, random_state=0, max_passes=10000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def start(record: Any) -> None:
        if record.n_pass == 2:  # something is learned
            timer.start()

    model.set_params(callbacks=[start])
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert model.n_iter_ < 1000
    assert not pools[-1].started  # all processes ended
