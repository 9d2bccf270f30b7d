"""What problems, machines and solvers tell the driver, which asks nobody for a type."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest

import maxmargin.solvers
from maxmargin import _native
from maxmargin.errors import NotCompatibleError, NotSeparableError
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
from maxmargin.solvers import SDM, SOLVERS, Solver, Subgradient, driver, make_solver, solve
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.primal import PrimalMachine
from maxmargin.solvers.refusals import check_regularizer
from native_problems import flat_problem, native_python_problem, random_case


def chain():
    return random_case(np.random.default_rng(0), lengths=(4, 2, 5, 3)).problem()


def own(seed=0):
    return native_python_problem(*flat_problem(np.random.default_rng(seed)))


def fitting(name):
    """Return a regulariser that a solver supports."""
    kinds = (L2(), L1Ball(1.0), L1(), L1(nonnegative=True))
    return next(kind for kind in kinds if SOLVERS[name].supports(kind))


# --- problems ---


def test_problems_tell_what_they_are():
    native, python = chain(), own()
    assert (native.slow_oracle, native.exact_oracle, native.offers_single) == (False, True, True)
    assert (python.slow_oracle, python.exact_oracle, python.offers_single) == (True, False, False)
    assert not native.has_kernel
    assert not python.has_kernel


def test_the_type_of_the_weights_is_one_that_the_problem_offers():
    for problem, dtype in ((chain(), np.float32), (own(), np.float64)):
        found = solve(problem, SDM(), C=1.0, dtype="float32", max_passes=2, warn=False)
        assert found.weights.dtype == dtype


class Seen(SDM):
    """Keeps the context of its passes."""

    contexts: list = []  # noqa: RUF012

    def step(self, machine, state, context):
        self.contexts.append((context.slow_oracle, context.warm))
        return super().step(machine, state, context)


def test_solvers_know_of_slow_oracles_and_warm_starts():
    Seen.contexts.clear()
    for problem in (chain(), own()):
        machine = solve(problem, Seen(), C=1.0, max_passes=1, warn=False).engine
        solve(problem, Seen(), C=2.0, max_passes=1, warn=False, engine=machine)
    assert Seen.contexts == [(False, False), (False, True), (True, False), (True, True)]


# --- machines ---


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_machine_has_the_members_that_the_driver_asks_for(name):
    machine = make_solver(name).start(chain(), 1.0, fitting(name), True)
    assert machine.oracle_error_bound == 0.0
    assert machine.missed is None
    record = PassRecord(8, "exact", 0.0, 0, 1.0, 0.5, 0.5, 0.5, 0)
    machine.after_pass(record, None)
    assert isinstance(machine, DualMachine) != isinstance(machine, PrimalMachine)


def test_hard_margins_are_checked_after_each_pass(monkeypatch):
    """By the machine, for hard margins alone; its time counts."""
    asked = []
    monkeypatch.setattr(
        "maxmargin.solvers.dual.check_separable",
        lambda engine, record, seconds: asked.append((engine, record.n_pass, seconds)),
    )
    solve(own(), SDM(), C=1.0, max_passes=3, gap=0.0, warn=False)
    assert asked == []
    found = solve(own(), SDM(slack="hard"), C=1.0, max_passes=3, gap=0.0, warn=False, time_limit=9)
    assert [n for _, n, _ in asked] == list(range(1, found.n_passes + 1))
    assert all(engine is found.engine and 0 < left < 9 for engine, _, left in asked)


def test_data_that_cannot_be_separated_end_a_training():
    structure, X, Y = flat_problem(np.random.default_rng(0))
    X, Y = [X[0], X[0]], [0, 1]
    with pytest.raises(NotSeparableError):
        solve(native_python_problem(structure, X, Y), SDM(slack="hard"), C=1.0)


# --- solvers ---


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_refusals_name_the_solvers_that_can(name):
    solver = make_solver(name)
    for regularizer in (L2(), ElasticNet(0.1, 0.9), L1(), L1Ball(1.0)):
        able = {other for other, kind in SOLVERS.items() if kind.supports(regularizer)}
        if name in able:
            check_regularizer(solver, regularizer)
            continue
        with pytest.raises(NotCompatibleError, match=f"solver '{name}' cannot do") as refused:
            check_regularizer(solver, regularizer)
        words = str(refused.value).split("goes with solver ")[1]
        assert set(words.replace("'", "").split(" or ")) == able


def test_options_that_need_another_regularizer_are_refused():
    check_regularizer(Subgradient(step_size="pegasos"), L2())
    with pytest.raises(ValueError, match="pegasos"):
        check_regularizer(Subgradient(step_size="pegasos"), L1Ball(1.0))


# --- the files ---


def imports(source):
    """Return the modules that a file imports, anywhere."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


def test_the_driver_knows_no_kind_of_problem_or_engine():
    tree = ast.parse(inspect.getsource(driver))
    native = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "maxmargin._native"
        for alias in node.names
    }
    assert native <= {"Problem", "aligned_array"}
    asked = {
        ast.unparse(node.args[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
    }
    assert asked <= {"PassObserver", "np.random.RandomState"}


def test_no_solver_imports_what_stands_above_it():
    above = {f"maxmargin.solvers.{name}" for name in ("registry", "refusals", "driver")}
    above.add("maxmargin.solvers")
    for kind in {Solver, DualMachine, PrimalMachine, *SOLVERS.values()}:
        assert not imports(inspect.getsource(inspect.getmodule(kind))) & above, kind
    assert maxmargin.solvers.SOLVERS is SOLVERS
    assert issubclass(DualMachine, _native.Engine)
