"""NSlack: Theorem 1, ε-optimality, working sets that only grow, and how runs end."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

import kit
from kit import Watcher
from maxmargin._native import Engine, PassOptions
from maxmargin.errors import ConvergenceWarning
from maxmargin.solvers import SDM, NSlack, make_solver, solve
from maxmargin.solvers.steps import Context
from native_problems import everyone, flat_problem, native_python_problem, random_case
from qp_reference import list_planes

SCHEDULES = ("frequent", "paper")
PAIRS = [(slack, r) for slack in ("linear", "quadratic") for r in ("margin", "slack", "none")]


@functools.cache
def case(seed, **options):
    shape = {"n_labels": 3, "lengths": (3, 1, 2, 4, 2), "n_sparse": 6, "features": "values"}
    return random_case(np.random.default_rng(seed), **{**shape, **options})


@functools.cache
def outputs(seed):
    found = case(seed)
    return list_planes(found.reference, found.X, found.Y)


quietly = functools.partial(
    kit.quietly, C=1.0, dtype="float64", gap=0.0, max_passes=200, random_state=0
)


def values(planes, w, slack, rescale):
    """H of every output: Algorithm 1, line 5."""
    g = np.sqrt(planes.loss) if slack == "quadratic" else planes.loss
    margin = planes.delta @ w
    if rescale == "slack":
        return g * (1 - margin)
    return (1.0 if rescale == "none" else g) - margin


def kept_slacks(engine, n):
    """max H of the working set of each example at the present w."""
    example, loss, _, indptr, indices, entries = engine.planes()
    rows = np.repeat(np.arange(len(loss)), np.diff(indptr))
    margin = np.bincount(rows, entries * np.asarray(engine.weights)[indices], len(loss))
    xi = np.zeros(n)
    np.maximum.at(xi, example, loss - margin)
    return xi


def codes(engine):
    """Return the working sets as a set."""
    state = engine.state()
    owner = np.repeat(state["example"], state["n_planes"])
    ends = np.cumsum(np.r_[0, state["code_size"]])
    return {
        (int(i), state["codes"][a:b].tobytes())
        for i, a, b in zip(owner, ends[:-1], ends[1:], strict=True)
        if b > a
    }


# --- Theorem 1 ---


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_theorem_1(schedule, epsilon, C):
    """At most (C' Δ̄² R̄² + n Δ̄) / ε² constraints, with the paper's C' = n C."""
    for seed in range(4):
        planes, n = outputs(seed), len(case(seed).X)
        solver = NSlack(schedule, epsilon=epsilon, slack="quadratic", rescale="slack")
        found = quietly(case(seed).problem(), solver, C=C)
        assert found.stop_reason == f"no constraint is violated by {epsilon:g}"
        loss, size = planes.loss.max(), np.linalg.norm(planes.delta, axis=1).max()
        bound = (n * C * loss**2 * size**2 + n * loss) / epsilon**2
        count = found.history[-1].planes
        assert count == found.engine.size()["planes"] == len(codes(found.engine))
        assert 0 < count <= bound
        # proposition 2: what each constraint gains, at the very least
        assert found.certificate.dual >= count * 0.5 * epsilon**2 / (loss * size**2 + 1 / C)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("slack", "rescale"), PAIRS)
def test_working_sets_only_grow(schedule, slack, rescale):
    watcher = Watcher(lambda record, engine: (record.planes, codes(engine)))
    solver = NSlack(schedule, epsilon=0.01, slack=slack, rescale=rescale)
    found = quietly(case(1).problem(), solver, callbacks=[watcher])
    before = set()
    for count, present in watcher.seen:
        assert before <= present
        assert count == len(present)
        before = present
    assert before == codes(found.engine)
    _, _, alpha, *_ = found.engine.planes()
    assert len(alpha) == len(before)
    counts = [count for count, _ in watcher.seen]
    assert counts[-1] == counts[-2]  # line 13: nothing entered in the last pass


# --- ε-optimality ---


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("slack", "rescale"), PAIRS)
@pytest.mark.parametrize("epsilon", [0.3, 0.01])
def test_no_constraint_is_violated_by_more_than_epsilon(schedule, slack, rescale, epsilon):
    solver = NSlack(schedule, epsilon=epsilon, slack=slack, rescale=rescale)
    for seed in (1, 3, 6):
        problem, planes, n = case(seed).problem(), outputs(seed), len(case(seed).X)
        found = quietly(problem, solver)
        assert found.converged
        assert found.stop_reason == f"no constraint is violated by {epsilon:g}"
        w = case(seed).unpadded(found.weights)
        xi, kept = np.zeros(n), kept_slacks(found.engine, n)
        np.maximum.at(xi, planes.example, values(planes, w, slack, rescale))
        if schedule == "paper":  # for the other see below
            assert (xi <= kept + epsilon + 1e-9).all()
        if slack == "linear":  # ξ + ε is feasible: at most ε C n from the optimum
            exact = SDM("paper", tau=1e-7, tau_inner=1e-8, slack=slack, rescale=rescale)
            best = quietly(problem, exact, gap=1e-6, max_passes=2000).certificate
            slip = epsilon * (1 + solver.tau) * n
            assert best.dual - slip <= found.certificate.dual <= best.primal + 1e-9
            assert found.certificate.primal <= best.primal + slip


@pytest.mark.parametrize(("slack", "rescale"), PAIRS)
def test_the_schedules_meet(slack, rescale):
    for seed in range(2):
        one, two = (
            quietly(
                case(seed).problem(),
                NSlack(schedule, epsilon=1e-4, slack=slack, rescale=rescale),
            )
            for schedule in SCHEDULES
        )
        assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-3)
        assert one.certificate.dual == pytest.approx(two.certificate.dual, rel=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_structure_in_python(schedule):
    structure, X, Y = flat_problem(np.random.default_rng(0))
    problem = native_python_problem(structure, X, Y)
    best = quietly(problem, SDM(), gap=1e-6, max_passes=2000).certificate
    found = quietly(problem, NSlack(schedule, epsilon=1e-5), gap=1e-4)
    assert found.converged
    assert found.certificate.primal == pytest.approx(best.primal, rel=2e-4)


def test_a_larger_epsilon_takes_fewer_constraints():
    counts = [
        quietly(case(0).problem(), NSlack(epsilon=epsilon)).history[-1].planes
        for epsilon in (2.0, 0.5, 0.01)
    ]
    assert counts[0] < counts[1] < counts[2]


def test_a_cached_pass_visits_every_part():
    for seed in range(20):
        engine = Engine(case(seed).problem(), 1.0, single=False, factored=False)
        order = everyone(len(case(seed).X))
        visit = PassOptions(tau_inner=1e-9, epsilon=1e-8, prune=False, max_smo=10_000)
        optimise = PassOptions(tau=1e-9, tau_inner=5e-10, prune=False, max_smo=10_000)
        for _ in range(10):
            engine.exact_pass(order, visit)
            for _ in range(10):
                assert engine.cached_pass(order, optimise).visits == engine.size()["parts"]


def test_a_small_epsilon_has_a_small_gap():
    for seed in range(12):
        for schedule in SCHEDULES:
            solver = NSlack(schedule, epsilon=1e-8)
            found = quietly(case(seed).problem(), solver, gap=1e-6, max_passes=50)
            assert found.certificate.gap <= 1e-4, (seed, schedule, str(found.certificate))


def test_the_last_w_is_the_one_that_was_looked_at():
    for seed in (0, 1, 2, 3, 6):
        for epsilon in (0.3, 0.01):
            for slack, rescale in PAIRS:
                solver = NSlack(epsilon=epsilon, slack=slack, rescale=rescale)
                found = quietly(case(seed).problem(), solver)
                assert found.stop_reason == f"no constraint is violated by {epsilon:g}"
                xi, planes = np.zeros(len(case(seed).X)), outputs(seed)
                w = case(seed).unpadded(found.weights)
                np.maximum.at(xi, planes.example, values(planes, w, slack, rescale))
                assert (xi <= kept_slacks(found.engine, len(xi)) + epsilon + 1e-9).all()


# --- how runs end ---


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_gap_ends_a_run(schedule):
    found = quietly(case(0).problem(), NSlack(schedule, epsilon=1e-6), gap=0.05)
    assert found.converged
    assert found.stop_reason.startswith("gap ")
    assert found.certificate.gap <= 0.05


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_limits_end_a_run(schedule):
    solver = NSlack(schedule, epsilon=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_passes = 2"):
        found = solve(case(0).problem(), solver, C=1.0, gap=0.0, max_passes=2)
    assert (found.converged, found.n_passes) == (False, 2)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        found = solve(case(0).problem(), solver, C=1.0, gap=0.0, time_limit=1e-9)
    assert found.stop_reason == "time_limit = 1e-09 s"
    assert not found.converged
    assert found.certificate.primal >= found.certificate.dual


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_interrupt_keeps_the_model(schedule, capfd):
    def interrupt(record):
        if record.n_pass == 2:
            raise KeyboardInterrupt

    solver = NSlack(schedule, epsilon=1e-6, slack="quadratic", rescale="slack")
    found = quietly(case(0).problem(), solver, callbacks=[interrupt])
    assert (found.stop_reason, found.n_passes, found.converged) == ("interrupted", 2, False)
    assert found.certificate.primal > found.certificate.dual > 0
    assert "interrupted" in capfd.readouterr().err


class Cut:
    """An engine whose first pass with the oracle is cut short, after all its visits."""

    def __init__(self, engine):
        self.engine, self.cut = engine, True

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def exact_pass(self, order, options, seconds=None):
        result = self.engine.exact_pass(order, options)
        names = ("gap", "gain", "oracle_calls", "added")
        cut, self.cut = self.cut, False
        return types.SimpleNamespace(**{k: getattr(result, k) for k in names}, interrupted=cut)


def test_a_pass_cut_short_is_made_up_for():
    for seed in range(6):
        for epsilon in (0.5, 1.0, 2.0, 3.0):
            solver, n = NSlack(epsilon=epsilon), len(case(seed).X)
            engine = Cut(Engine(case(seed).problem(), 1.0, single=False, factored=False))
            context = Context(n, np.random.default_rng(0))
            state = solver.init(context)
            assert not solver.step(engine, state, context).finished
            for _ in range(50):
                if solver.step(engine, state, context).finished:
                    break
            options = PassOptions(tau=solver.tau * epsilon, prune=False)
            assert engine.cached_pass(everyone(n), options).solved == 0, (seed, epsilon)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("other", [0.02, 3.0])
def test_a_warm_start_does_not_end_before_the_old_constraints_are_optimised(schedule, other):
    """For another C the old multipliers are not optimal, even where no constraint is new."""
    problem, solver = case(0).problem(), NSlack(schedule, epsilon=1e-3)
    first = quietly(problem, solver)
    warm = quietly(problem, solver, C=other, engine=first.engine)
    cold = quietly(case(0).problem(), solver, C=other)
    assert warm.converged
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-2)


# --- bad input ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schedule": "auto"}, "schedule must be one of 'frequent', 'paper'; got 'auto'"),
        ({"epsilon": -0.1}, "epsilon must be non-negative"),
        ({"epsilon": np.nan}, "epsilon must be non-negative"),
        ({"epsilon": np.inf}, "epsilon must be non-negative"),
        ({"tau": -1.0}, "tau must be non-negative"),
        ({"most_passes": 0}, "most_passes must be a whole number of at least 1"),
        ({"most_passes": 2.5}, "most_passes must be a whole number"),
    ],
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        NSlack(**given)


def test_names():
    assert make_solver("nslack") == NSlack()
    assert NSlack.name == "nslack"
    assert not NSlack().factored


@pytest.mark.parametrize("schedule", ["frequent", "paper"])
def test_heavy_examples_do_not_keep_it_from_its_end(schedule):
    """Their share of the gap is large; the working sets are brought to their end all the same."""
    case = random_case(
        np.random.default_rng(5), n_labels=4, lengths=[6] * 40, n_sparse=30, noise=0.5
    )
    problem = case.problem(example_weight=np.full(40, 5.0))
    found = solve(
        problem, NSlack(schedule, epsilon=0.1), C=0.3, gap=0.0, max_passes=60, dtype="float64"
    )
    assert found.stop_reason == "no constraint is violated by 0.1"
    # each slack is at most epsilon too small, and S is solved to a tenth of that
    assert found.certificate.primal - found.certificate.dual <= 0.3 * 200 * 0.11
