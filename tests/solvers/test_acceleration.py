"""What makes the automatic schedule fast must not make it wrong: smoothing passes near the end."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import qp_reference
from kit import Watcher, assert_same_run, formulated, quietly
from maxmargin import _native
from maxmargin._native import Engine, PassOptions
from maxmargin.regularizers import ElasticNet
from maxmargin.solvers import SAP, SDM, handover
from maxmargin.solvers.auto import AutoSchedule
from maxmargin.solvers.steps import Context
from native_problems import everyone, flat_problem, native_python_problem, random_case

FORMULATIONS = [
    (slack, rescale)
    for slack in ("linear", "quadratic", "hard")
    for rescale in ("margin", "slack", "none")
    if (slack, rescale) != ("hard", "slack")
]


@pytest.fixture
def block_ascent(monkeypatch):
    """Nothing is handed over to interior passes."""
    monkeypatch.setattr(handover, "MOST_WEIGHTS", 0)



class Smoothing(SDM):
    """SDM that ends every round with a smoothing pass, however far the end is."""

    NEAR = float("inf")


class SmoothingSAP(SAP):
    NEAR = float("inf")


class Plain(SDM):
    """SDM without smoothing passes."""

    NEAR = 0.0


@functools.cache
def case(separable=False):
    shape = {"n_labels": 3, "lengths": (3, 1, 2, 3, 4, 2), "features": "values"}
    if separable:
        shape |= {"n_sparse": 20, "noise": 0.0, "scale": 2.0, "per_token": 6}
    return random_case(np.random.default_rng(2), **shape)


@functools.cache
def noisy_chain():
    """Enough sequences for smoothing to show."""
    rng = np.random.default_rng(3)
    return random_case(rng, n_labels=5, lengths=[6] * 120, n_sparse=40, noise=0.3).problem()


def flat():
    return native_python_problem(*flat_problem(np.random.default_rng(0), n=12))


def recorded(solver):
    """Return the solver, and a list that gets the relaxation of every cached pass it makes."""
    seen = []

    class Recording(type(solver)):
        def _improve(self, engine, state, context):
            seen.append(self.SMOOTH if state["smooth"] else self.relaxation)
            return super()._improve(engine, state, context)

    fields = {f.name: getattr(solver, f.name) for f in dataclasses.fields(solver)}
    return Recording(**fields), seen


# --- it is correct ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("slack", "rescale"), FORMULATIONS)
def test_the_dual_never_falls_and_multipliers_stay_feasible(slack, rescale, dtype):
    problem = case(separable=slack == "hard").problem()
    solver, seen = recorded(Smoothing(slack=slack, rescale=rescale))

    def look(_record, engine):
        _, _, alpha, indptr, indices, values = engine.planes()
        assert (alpha >= 0).all()
        if slack == "linear":
            state = engine.state()
            starts = np.cumsum(state["n_planes"].astype(int)) - state["n_planes"].astype(int)
            if len(starts):
                sums = np.add.reduceat(state["alpha"], starts)
                np.testing.assert_allclose(sums, 1.0, atol=1e-9)
        # u is the sum of the planes
        u = np.zeros(len(engine.weights))
        owner = np.repeat(np.arange(len(alpha)), np.diff(indptr))
        np.add.at(u, indices, engine.C * alpha[owner] * values)
        scale = 1.0 + np.abs(u).max()
        np.testing.assert_allclose(engine.sums(), u, atol=scale * rounding)
        return engine.dual()

    rounding = 1e-5 if dtype == "float32" else 1e-11
    watcher = Watcher(look)
    quietly(problem, solver, C=2.0, dtype=dtype, gap=0.0, max_passes=40, callbacks=[watcher])
    assert AutoSchedule.SMOOTH in seen
    duals = np.array(watcher.seen)
    assert (np.diff(duals) >= -rounding * (1 + abs(duals[-1]))).all()


def optimum(planes, C, slack):
    """Return the optimum by the independent solver, which knows linear slacks only.

    A hard margin is a linear slack that costs more than any multiplier, and C/2 ξ_i² is ½ v_i² of
    one more weight v_i = √C ξ_i for each example, whose feature is 1/√C: a hard margin too.
    """
    if slack == "linear":
        return qp_reference.solve_planes(planes, C)
    if slack == "quadratic":
        own = np.eye(planes.n_examples)[planes.example] / np.sqrt(C)
        planes = planes._replace(delta=np.hstack([planes.delta, own]))
    return qp_reference.solve_planes(planes, 1e3)


@pytest.mark.parametrize("rescale", ["margin", "none"])
@pytest.mark.parametrize("slack", ["linear", "quadratic", "hard"])
def test_the_optimum_is_the_same(slack, rescale):
    c = case(separable=slack == "hard")
    planes = qp_reference.list_planes(c.reference, c.X, c.Y)
    best = optimum(formulated(planes, slack, rescale), 2.0, slack)
    solver, seen = recorded(Smoothing(slack=slack, rescale=rescale))
    options = {"C": 2.0, "dtype": "float64", "gap": 1e-8, "max_passes": 3000}
    found = quietly(c.problem(), solver, **options).certificate
    assert AutoSchedule.SMOOTH in seen
    assert found.primal == pytest.approx(best.primal, rel=1e-6)
    assert found.dual == pytest.approx(best.dual, rel=1e-6)


def test_with_a_link_that_is_not_the_identity():
    solver, seen = recorded(SmoothingSAP())
    watcher = Watcher(lambda _, engine: engine.dual())
    net, options = ElasticNet(0.1, 0.9), {"C": 1.0, "dtype": "float64", "gap": 1e-7}
    found = quietly(case().problem(), solver, regularizer=net, callbacks=[watcher], **options)
    assert AutoSchedule.SMOOTH in seen
    assert (np.diff(watcher.seen) >= -1e-12).all()
    plain = quietly(case().problem(), SAP(), regularizer=net, **options)
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)


# --- it is made when it should be, and helps ---


def test_smoothing_passes_are_made_near_the_end_only():
    """Never far from the gap asked for; before the look that ends the training."""
    solver, seen = recorded(SDM())
    found = quietly(noisy_chain(), solver, C=1.0, gap=0.01)
    assert found.converged
    assert [r.kind for r in found.history][-1] == "collect"
    assert seen[-1] == AutoSchedule.SMOOTH
    far = seen[: len(seen) // 2]
    assert far
    assert AutoSchedule.SMOOTH not in far
    never, seen = recorded(SDM())
    quietly(noisy_chain(), never, C=1.0, gap=0.0, max_passes=len(found.history))
    assert AutoSchedule.SMOOTH not in seen


def test_a_round_has_one_smoothing_pass():
    solver, seen = recorded(Smoothing())
    quietly(noisy_chain(), solver, C=1.0, gap=0.0, max_passes=40)
    smooth = np.array(seen) == AutoSchedule.SMOOTH
    assert smooth.sum() > 3
    assert not (smooth[1:] & smooth[:-1]).any()


def test_half_steps_lower_the_gap():
    """From one state, over many orders: half steps leave a lower gap, whole ones a higher dual."""
    engine = Engine(noisy_chain(), 1.0, single=False)
    n = len(everyone(120))
    for _ in range(6):
        engine.exact_pass(everyone(n), PassOptions(tau_relative=0.1))
        engine.cached_pass(everyone(n), PassOptions(tau_relative=0.1, relaxation=1.3))
    state = engine.state()
    gaps, duals = {}, {}
    for relaxation in (AutoSchedule.SMOOTH, 1.3):
        gaps[relaxation], duals[relaxation] = [], []
        for seed in range(10):
            engine.restore(state)
            order = np.random.default_rng(seed).permutation(n).astype(np.uint32)
            options = PassOptions(tau_relative=0.1, relaxation=relaxation, recombine=True)
            engine.cached_pass(order, options)
            duals[relaxation].append(engine.dual())
            gaps[relaxation].append(engine.objective() - duals[relaxation][-1])
    assert np.mean(gaps[AutoSchedule.SMOOTH]) < 0.85 * np.mean(gaps[1.3])
    assert np.mean(duals[AutoSchedule.SMOOTH]) < np.mean(duals[1.3])


def work_to(solver, gap, seed):
    """Count the work until a look finds the gap asked for."""
    problem = noisy_chain()
    engine = Engine(problem, 1.0, single=True)
    context = Context(problem.n_examples, np.random.default_rng(seed), gap=gap)
    state, work = solver.init(context), 0.0
    while True:
        step = solver.step(engine, state, context)
        work += step.result.work
        context.dual += step.result.gain
        if step.kind == "collect" and step.result.gap <= gap * (context.dual + step.result.gap):
            return work


def test_smoothing_saves_work():
    with_it = [work_to(SDM(), 0.003, seed) for seed in range(6)]
    without = [work_to(Plain(), 0.003, seed) for seed in range(6)]
    assert np.mean(with_it) < 0.97 * np.mean(without)


# --- stopping and going on ---


@pytest.mark.usefixtures("block_ascent")
@pytest.mark.parametrize("make", [lambda: case().problem(), flat], ids=["chain", "python"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_a_resumed_run_is_the_same(make, slack, tmp_path):
    path = tmp_path / "run.npz"
    solver, seen = recorded(Smoothing(slack=slack))
    options = {"C": 0.7, "gap": 0.0, "random_state": 4}
    whole = quietly(make(), solver, max_passes=14, **options)
    assert AutoSchedule.SMOOTH in seen

    def go_on(passes):
        resumed = {"checkpoint": path, "resume": True, "max_passes": passes}
        return quietly(make(), Smoothing(slack=slack), **resumed, **options)

    for passes in range(1, 14):  # among them one right before, and one right after a smoothing pass
        go_on(passes)
    again = go_on(14)
    assert_same_run(whole, again)


def test_a_state_with_a_smoothing_pass_that_is_not_the_last_is_refused():
    problem = case().problem()
    context = Context(problem.n_examples, np.random.default_rng(0))
    engine = Engine(problem, 1.0)
    state = SDM().init(context) | {"looks": 2, "gap": 1.0, "parts": 3, "left": 1, "smooth": True}
    SDM().check_state(state, engine, context)
    for left in (0, 2):
        with pytest.raises(ValueError, match="smooth"):
            SDM().check_state(state | {"left": left}, engine, context)
    with pytest.raises(ValueError, match="smooth"):
        SDM().check_state(state | {"smooth": 3}, engine, context)


def test_an_interrupted_smoothing_pass_leaves_the_engine_consistent():
    problem = noisy_chain()
    engine = Engine(problem, 1.0, single=False)
    order = everyone(problem.n_examples)
    for _ in range(3):
        engine.exact_pass(order, PassOptions())
    many = np.tile(order, 20_000)
    before = engine.dual()
    options = PassOptions(relaxation=AutoSchedule.SMOOTH, tau_relative=0.1, recombine=True)
    result = engine.cached_pass(many, options, 0.1)
    assert result.interrupted
    assert engine.dual() == pytest.approx(before + result.gain, rel=1e-9)
    primal, dual = engine.certify()
    assert dual == pytest.approx(before + result.gain, rel=1e-6)
    assert primal >= dual


# --- nothing to do ---


def test_examples_that_need_no_planes():
    """All outputs right from the start, sequences of weight zero, and none with two planes."""
    arrays = {"n_labels": 1, "n_sparse": 0, "offsets": np.array([0, 2, 3], dtype=np.int64)}
    one_label = _native.ChainProblem(**arrays, labels=np.zeros(3, dtype=np.int32))
    found = quietly(one_label, Smoothing(), C=1.0, gap=1e-3)
    assert found.converged
    assert found.certificate.primal == 0.0
    c = case()
    weightless = c.problem(example_weight=np.zeros(len(c.X)))
    found = quietly(weightless, Smoothing(), C=1.0, gap=1e-3, max_passes=20)
    assert found.certificate.primal == 0.0
