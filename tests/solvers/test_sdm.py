"""SDM: its parameters, its stopping rules, and how its passes follow each other."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from kit import quietly
from maxmargin._native import Engine, PassOptions
from maxmargin.solvers import SDM, sdm, solve
from maxmargin.solvers.steps import Context
from native_problems import everyone, flat_problem, native_python_problem, random_case


def chain(seed=0, **changes):
    options = {"lengths": (5, 3, 1, 6, 4, 2, 5, 3), "n_labels": 4, **changes}
    return random_case(np.random.default_rng(seed), **options).problem()


def flat(seed=0, n=12):
    return native_python_problem(*flat_problem(np.random.default_rng(seed), n=n))


# --- parameters ---


def test_defaults_are_the_papers():
    solver = SDM()
    assert (solver.schedule, solver.name) == ("auto", "sdm")
    assert (solver.tau, solver.tau_inner, solver.kappa1, solver.kappa2) == (0.25, 0.15, 10, 5)


@pytest.mark.parametrize("schedule", ["fast", "", "AUTO", None, 3, ["auto"]])
def test_an_unknown_schedule_is_told_the_known_ones(schedule):
    with pytest.raises(ValueError, match="'auto', 'paper', 'basic'") as caught:
        SDM(schedule)
    assert repr(schedule) in str(caught.value)


BAD = [
    (name, value)
    for names, values in (
        (("tau", "tau_inner", "min_change"), (-1e-9, math.nan, math.inf, -math.inf)),
        (("kappa1",), (-1, 1.5, True, math.nan, math.inf, "many")),
        (("kappa2", "warm_passes", "cached_passes", "full_every"), (0, -1, 2.5, True, math.inf)),
        (("relaxation",), (0.0, 2.0, -1.0, math.nan, math.inf)),
    )
    for name in names
    for value in values
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=rf"{name} must"):
        SDM(**{name: value})


@pytest.mark.parametrize("name", ["tau", "tau_inner", "min_change", "kappa1", "relaxation"])
@pytest.mark.parametrize("value", ["a lot", None, [1]])
def test_parameters_of_a_wrong_type(name, value):
    with pytest.raises((TypeError, ValueError)):
        SDM(**{name: value})


@pytest.mark.parametrize(
    "parameters",
    [
        {"tau": 0, "tau_inner": 0, "min_change": 0},
        {"kappa1": 0, "kappa2": np.int64(1)},
        {"warm_passes": 1, "cached_passes": 1, "full_every": 1},
        {"relaxation": 1.99},
        {"relaxation": 0.01},
    ],
)
def test_parameters_at_the_edge(parameters):
    for schedule in ("auto", "paper", "basic"):
        result = quietly(chain(), SDM(schedule, **parameters), C=0.3, max_passes=40, random_state=0)
        assert 0 < result.certificate.dual <= result.certificate.primal


def test_a_solver_is_an_immutable_value():
    assert SDM("paper", tau=0.1) == SDM("paper", tau=0.1) != SDM("paper", tau=0.2)
    assert len({SDM(), SDM(), SDM("basic")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        SDM().tau = 1.0


def test_only_auto_keeps_parts():
    assert [SDM(s).factored for s in ("auto", "paper", "basic")] == [True, False, False]


# --- what the paper's schedules promise ---


@pytest.mark.parametrize("schedule", ["paper", "basic"])
@pytest.mark.parametrize("tau", [0.25, 0.02])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [chain, flat])
def test_it_stops_with_no_violation_above_tau(schedule, tau, dtype, make):
    problem = make()
    solver = SDM(schedule, tau=tau, tau_inner=0.6 * tau)
    result = solve(problem, solver, C=1.0, dtype=dtype, gap=0.0, max_passes=5000, random_state=0)
    assert result.converged
    assert result.stop_reason == f"no violation above tau = {tau:g}"
    assert result.history[-1].kind == "exact"
    before = result.engine.weights.copy()
    final = result.engine.exact_pass(everyone(problem.n_examples), PassOptions(tau=1e9))
    assert final.solved == 0
    np.testing.assert_array_equal(result.engine.weights, before)
    assert final.psi_max <= tau + 1e-4
    # every block is within tau of its optimum, so the whole is within n C tau
    certificate = result.certificate
    assert certificate.primal - certificate.dual <= problem.n_examples * (tau + 1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("schedule", ["paper", "basic"])
def test_a_small_tau_is_met_whatever_the_tolerance_of_smo(schedule, weighted):
    """τ̃ of 0.15, the default, is far above this τ: SMO that makes no step is not the end."""
    tau, case = 1e-3, random_case(np.random.default_rng(0), n_labels=4, lengths=[6] * 15)
    weight = np.full(15, 5.0) if weighted else np.ones(15)
    problem = case.problem(example_weight=weight)
    options = {"C": 0.3, "gap": 0.0, "max_passes": 5000, "dtype": "float64", "random_state": 0}
    result = solve(problem, SDM(schedule, tau=tau), **options)
    assert result.stop_reason == f"no violation above tau = {tau:g}"
    final = result.engine.exact_pass(everyone(15), PassOptions(tau=1e9))
    assert final.psi_max <= tau * (1 + 1e-6)
    gap = result.certificate.primal - result.certificate.dual
    assert gap <= 15 * 0.3 * tau


def test_the_tolerance_of_smo_is_below_tau():
    assert SDM().smo_tolerance == 0.15
    assert SDM(tau=0.5, tau_inner=0.4).smo_tolerance == 0.4
    assert SDM(tau=0.1).smo_tolerance == pytest.approx(0.06)
    assert SDM(tau=0.0).smo_tolerance == 0.0


@pytest.mark.parametrize("schedule", ["paper", "basic"])
def test_passes_that_cannot_move_are_not_convergence(schedule, monkeypatch):
    """As rounding would have it: violations are left, and no step is made any more."""
    stuck = SimpleNamespace(
        solved=0, psi_max=1.0, psi_cached_max=0.0, gain=0.0, gap=1.0, oracle_calls=1,
        interrupted=False,
    )  # fmt: skip
    monkeypatch.setattr(sdm, "PassOptions", lambda **_: None)

    class Stuck(SDM):
        def step(self, engine, state, context):
            return super().step(SimpleNamespace(exact_pass=lambda *_: stuck), state, context)

    options = {"C": 1.0, "gap": 0.0, "max_passes": 100}
    result = quietly(chain(), Stuck(schedule, kappa1=1000), **options, dtype="float64")
    assert not result.converged
    assert result.stop_reason == "no step raises the dual any more: rounding of float64 weights"
    assert result.n_passes == 5
    # With 4-byte weights, 8-byte ones are tried before it gives up.
    result = quietly(chain(), Stuck(schedule, kappa1=1000), **options)
    assert result.certificate.widened == 5
    assert result.n_passes == 10
    assert result.stop_reason.startswith("no step raises the dual any more: rounding of float64")


@pytest.mark.parametrize("schedule", ["paper", "basic"])
def test_the_extra_stop_on_small_change(schedule):
    solver = SDM(schedule, tau=0.0, tau_inner=1e-3, min_change=0.05)
    result = solve(chain(), solver, C=1.0, gap=0.0, random_state=0, dtype="float64")
    assert result.stop_reason == "relative change of the dual below 0.05"
    dual = result.history.column("dual")
    assert dual[-1] - dual[-2] <= 0.0501 * dual[-2]
    assert solve(chain(), solver, C=1.0, gap=0.0, random_state=0).converged


def test_type_two_passes_come_after_kappa1_and_at_most_kappa2_in_a_row():
    solver = SDM("paper", tau=1e-5, tau_inner=1e-5, kappa1=4, kappa2=3)
    kinds = quietly(
        chain(), solver, C=1.0, gap=0.0, max_passes=60, dtype="float64", random_state=0
    ).history.column("kind").tolist()  # fmt: skip
    assert set(kinds) == {"exact", "cached"}
    assert kinds[:5] == ["exact"] * 5
    runs = "".join(kind[0] for kind in kinds).replace("e", " ").split()
    assert max(map(len, runs)) <= 3


def test_basic_makes_exact_passes_only():
    kinds = quietly(
        chain(), SDM("basic", tau=1e-3, tau_inner=1e-3), C=1.0, gap=0.0, max_passes=30
    ).history.column("kind")
    assert set(kinds) == {"exact"}


# --- auto ---


@pytest.mark.parametrize("make", [chain, flat])
@pytest.mark.parametrize(("warm", "cached"), [(1, 1), (2, 20), (4, 3)])
def test_the_order_of_auto_passes(make, warm, cached):
    solver = SDM(warm_passes=warm, cached_passes=cached)
    result = quietly(make(), solver, C=1.0, gap=1e-4, random_state=0, max_passes=500)
    kinds = result.history.column("kind").tolist()
    assert kinds[:warm] == ["exact"] * warm
    assert "cached" in kinds
    assert result.converged
    in_a_row = longest = 0
    for kind in kinds:
        in_a_row = in_a_row + 1 if kind == "cached" else 0
        longest = max(longest, in_a_row)
    assert longest <= cached


def test_every_pass_of_auto_keeps_the_dual_rising():
    problem, C = chain(3, lengths=[8] * 20, n_labels=5), 2.0
    for relaxation in (0.5, 1.0, 1.3, 1.9):
        solver, engine = SDM(relaxation=relaxation), Engine(problem, C, single=False)
        context = Context(problem.n_examples, np.random.default_rng(0), gap=1e-6)
        state, last = solver.init(context), 0.0
        for _ in range(60):
            step = solver.step(engine, state, context)
            context.dual += step.result.gain
            true = C * engine.expected_loss() - engine.penalty()
            assert true >= last - 1e-9 * abs(last)
            np.testing.assert_allclose(context.dual, true, rtol=1e-6)
            last = true


def test_oracle_calls_are_counted():
    calls = []
    structure, X, Y = flat_problem(np.random.default_rng(0), n=9)
    argmax = structure.argmax
    structure.argmax = lambda x, w, truth=None: (calls.append(1), argmax(x, w, truth=truth))[1]
    for schedule in ("auto", "paper", "basic"):
        calls.clear()
        counted = []
        solver = SDM(schedule, tau=1e-3, tau_inner=1e-3)

        def count(record, counted=counted):
            counted.append((record.oracle_calls, len(calls)))

        data = native_python_problem(structure, X, Y)
        options = {"gap": 1e-3, "max_passes": 50, "random_state": 0}
        quietly(data, solver, C=1.0, callbacks=[count], **options)
        assert all(said == made for said, made in counted), (schedule, counted)
