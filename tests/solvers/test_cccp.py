"""The concave-convex procedure: its steps, its guarantee, its end, and what interrupts it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_latent as reference
from maxmargin import _native
from maxmargin.errors import (
    ConvergenceWarning,
    ModelFormatError,
    NotCompatibleError,
    ObjectiveRoseError,
)
from maxmargin.regularizers import ElasticNet
from maxmargin.solvers import BCFW, SDM, DualCoordinate, InteriorPoint, NSlack, OneSlack
from maxmargin.solvers.cccp import cccp
from maxmargin.solvers.latent import LatentPart, Smoothed, train_latent
from maxmargin.solvers.outer import Imputation, OuterHistory
from maxmargin.structures.latent import Latent

C = 0.8


class Example:
    """A latent problem of listed outputs, in native form and by brute force."""

    def __init__(self, seed, structure=None, **sizes):
        self.structure = reference.Asked() if structure is None else structure
        self.X, self.Y = reference.random_tables(np.random.default_rng(seed), **sizes)
        self.examples = reference.listed(self.structure, self.X, self.Y)
        self.fresh()

    def fresh(self):
        self.training = Latent(self.structure).prepare_training(self.X, self.Y, start="first")
        self.part = LatentPart(self.training.imputer, C, False)
        self.problem = self.training.prepared.problem
        return self

    @property
    def start(self):
        """The references, as places in the list of outputs."""
        hidden = self.X[0].shape[1]
        return [y * hidden + h for y, h in self.training.imputer.outputs]

    def run(self, **options):
        options = {"gap": 1e-9, "tol": 0.0, "random_state": 0, "dtype": "float64", **options}
        solver = options.pop("solver", SDM())
        return cccp(self.problem, solver, options.pop("part", self.part), C=C, **options)

    def objective(self, w):
        return reference.objective(self.examples, np.asarray(w, float), C)


def quietly(run, **options):
    """Run; it is no warning if it ends before it is done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run(**options)


def clear_seeds(n):
    """Return seeds of problems whose imputations are clear, by the reference alone.

    At the optimum of a convex step completions often tie: several are support vectors. Which of
    them is imputed then hangs on rounding, and with it the rest of the way.
    """
    found = []
    for seed in itertools.count():
        case = Example(seed)
        steps = reference.procedure(case.examples, case.start, C)
        if len(steps) > 1 and all(reference.clear(case.examples, step.w) for step in steps):
            found.append((seed, steps))
        if len(found) == n:
            return found


# --- what it computes ---


@pytest.mark.parametrize("which", range(4))
def test_the_same_local_optimum_as_by_hand(which):
    seed, steps = clear_seeds(which + 1)[which]
    case = Example(seed)
    result = case.run(coarse=0.0)
    assert result.converged
    assert len(result.outer) == len(steps)
    for record, step in zip(result.outer, steps, strict=True):
        assert record.objective == pytest.approx(step.objective, rel=1e-6)
        assert record.bound == pytest.approx(step.primal, rel=1e-6)
    np.testing.assert_allclose(result.weights, steps[-1].w, atol=1e-4)
    assert result.objective == pytest.approx(case.objective(result.weights), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_every_step_is_that_of_the_reference(seed):
    """Where completions tie, the reference follows what was imputed, and checks that it ties."""
    case, imputed = Example(seed), []
    imputed.append(case.start)
    result = case.run(coarse=0.0, on_outer=lambda record: imputed.append(case.start))
    assert len(result.outer) >= 2
    for record, before in zip(result.outer, imputed, strict=False):
        exact = reference.convex_step(case.examples, before, C)
        assert record.bound == pytest.approx(exact.primal, rel=1e-6, abs=1e-8)
    w = result.weights
    for e, k in zip(case.examples, imputed[len(result.outer)], strict=True):
        assert (e.features[k] @ w) >= (e.features @ w)[e.loss == 0].max() - 1e-9


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["asked", "listed"]))
def test_the_objective_never_rises_and_its_end_is_a_fixed_point(seed, kind):
    case = Example(seed, reference.Asked() if kind == "asked" else reference.Tables(), n=5)
    result = quietly(case.run, gap=1e-8)
    objectives = result.outer.column("objective")
    assert (np.diff(objectives) <= 0).all()
    assert result.objective == objectives[-1]
    assert result.objective == pytest.approx(case.objective(result.weights), rel=1e-6, abs=1e-9)
    assert (result.outer.column("bound") >= objectives).all()
    if result.stop_reason == "nothing is imputed anew":
        # A convex step from what was imputed leads nowhere lower.
        again = reference.convex_step(case.examples, case.start, C)
        assert result.objective == pytest.approx(again.primal, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "solver",
    [
        NSlack(epsilon=1e-9),
        BCFW(average=False, cached_passes=20),
        DualCoordinate(),
        InteriorPoint(),
    ],
    ids=lambda solver: solver.name,
)
def test_any_dual_solver_makes_the_steps(solver):
    seed, steps = clear_seeds(1)[0]
    result = quietly(Example(seed).run, solver=solver, coarse=0.0, gap=1e-4)
    assert result.objective == pytest.approx(steps[-1].objective, rel=1e-2)


def test_a_convex_step_has_the_optimum_of_the_reference():
    case = Example(5)
    exact = reference.convex_step(case.examples, case.start, C)
    result = quietly(case.run, max_outer=1, coarse=0.0)
    assert result.certificate.primal == pytest.approx(exact.primal, rel=1e-6)
    assert result.certificate.dual == pytest.approx(exact.primal, rel=1e-6)


def test_elastic_nets_go_too():
    case = Example(2)
    net = ElasticNet(rho1=0.05, rho2=1.0)
    result = case.run(regularizer=net, gap=1e-7)
    w = result.weights
    others = case.objective(w) - 0.5 * w @ w
    assert result.objective == pytest.approx(others + net.penalty(w), rel=1e-6)
    assert (np.diff(result.outer.column("objective")) <= 0).all()


class Wedge:
    """G(w) = max_k (a_k·w + b_k), a concave part with a constant."""

    def __init__(self, a, b):
        self.a, self.b, self.last = a, b, None

    def impute(self, weights, threads):
        k = int((self.a @ weights + self.b).argmax())
        changed, self.last = int(k != self.last), k
        return Imputation(self.a[k].copy(), float(self.b[k]), changed)

    def value(self, w):
        return float((self.a @ w + self.b).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_constant_beside_the_linear_term(seed):
    rng = np.random.default_rng(seed)
    case = Example(seed)
    wedge = Wedge(rng.normal(size=(4, reference.D)), rng.normal(size=4))
    start = wedge.impute(rng.normal(size=reference.D), 1)
    result = case.run(part=wedge, start=start, gap=1e-8)
    w = result.weights
    hinges = 0.0
    for e, k in zip(case.examples, case.start, strict=True):
        scores = e.features @ w
        hinges += (e.loss + scores).max() - scores[k]
    assert result.objective == pytest.approx(0.5 * w @ w + C * hinges - wedge.value(w), rel=1e-6)
    assert (np.diff(result.outer.column("objective")) <= 0).all()


def test_coarse_steps_come_first_and_make_less_work():
    fine, coarse = Example(1, n=40), Example(1, n=40)
    exact = fine.run(coarse=0.0, gap=1e-6)
    quick = coarse.run(gap=1e-6)
    asked = quick.outer.column("asked")
    assert asked[0] == 0.1
    assert (np.diff(asked) <= 0).all()
    assert quick.outer[-1].gap <= 1e-6
    first = [run.outer[0].passes for run in (quick, exact)]
    assert first[0] < first[1]


def test_smoothing_is_a_convex_function_that_is_touched():
    case = Example(4)
    rng = np.random.default_rng(0)
    w, other = rng.normal(size=(2, reference.D))
    smoothed = Smoothed(case.part, 0.7, 3, lambda array: array)
    found = smoothed.impute(w, 1)

    def value(v):
        return C * np.mean(
            [
                sum(
                    (e.features @ (v + noise))[e.loss == 0].max() - e.features[k] @ (v + noise)
                    for e, k in zip(case.examples, start, strict=True)
                )
                for noise in smoothed.noise
            ]
        )

    start = Example(4).start
    assert found.linear_term @ w + found.constant == pytest.approx(value(w))
    assert found.linear_term @ other + found.constant <= value(other) + 1e-9


# --- its guarantee ---


class Wrong(reference.Asked):
    """Its completions are not the best ones, after some time."""

    def argmax(self, x, w, truth=None, given=None):
        if given is not None and np.abs(w).max() > 0:
            return given, int((x[given] @ w).argmin())
        return super().argmax(x, w, truth, given)


def test_completions_that_are_not_the_best_are_named():
    case = Example(0, Wrong())
    with pytest.raises(ObjectiveRoseError, match=r"given=y returned an output of example \d+"):
        case.run()


class Worse:
    """Imputes something that does not touch G."""

    def __init__(self, part):
        self.part, self.calls = part, 0

    def impute(self, weights, threads):
        found = self.part.impute(weights, threads)
        self.calls += 1
        return found._replace(constant=-float(self.calls), changed=1)


def test_an_imputation_below_the_one_before_it_ends_the_procedure():
    case = Example(0)
    with pytest.raises(ObjectiveRoseError, match="worse by"):
        case.run(part=Worse(case.part))
    assert case.problem.linear_term is None


class Jumping:
    """Says after the first step that the objective was lower than it is."""

    def __init__(self, part):
        self.part, self.calls = part, 0

    def impute(self, weights, threads):
        found = self.part.impute(weights, threads)
        self.calls += 1
        if self.calls > 1:
            return found
        far = np.full_like(found.linear_term, 3.0)
        return Imputation(far, 50.0 - float(far @ weights), 1)


def test_a_step_above_the_last_objective_is_no_silent_matter():
    case = Example(0)
    with pytest.raises(ObjectiveRoseError):
        case.run(part=Jumping(case.part))


def test_solvers_without_multipliers_are_refused():
    with pytest.raises(NotCompatibleError, match="oneslack"):
        Example(0).run(solver=OneSlack())


@pytest.mark.parametrize("name", ["gap", "tol", "coarse", "max_outer", "time_limit"])
def test_options_out_of_range(name):
    with pytest.raises(ValueError, match=name):
        Example(0).run(**{name: -1})


# --- how it ends ---


def test_a_time_limit_keeps_what_there_is():
    case = Example(1, n=30)
    result = quietly(case.run, time_limit=1e-6)
    assert not result.converged
    assert "time_limit" in result.stop_reason
    assert result.n_passes >= 1


def test_max_outer_warns():
    with pytest.warns(UserWarning, match="max_outer = 1"):
        result = Example(1).run(max_outer=1)
    assert len(result.outer) == 1


def test_a_callback_of_passes_ends_it_and_counts_go_on():
    case, seen = Example(1), []
    case.run(callbacks=[seen.append])
    assert [record.n_pass for record in seen] == list(range(1, len(seen) + 1))
    assert (np.diff([record.seconds for record in seen]) >= 0).all()
    few = []

    def stop(record):
        few.append(record)
        return len(few) == 3

    result = quietly(Example(1).run, callbacks=[stop])
    assert result.stop_reason == "stopped by a callback"
    assert len(few) == 3


def test_a_callback_of_outer_iterations_ends_it():
    records = []
    result = quietly(Example(1).run, on_outer=lambda r: records.append(r) or len(records) == 2)
    assert [r.n_outer for r in records] == [1, 2]
    assert result.stop_reason == "stopped by a callback"


def test_history_has_the_passes_of_all_steps():
    result = Example(1).run()
    assert result.n_passes == len(result.history) == sum(result.outer.column("passes"))
    assert OuterHistory.from_dicts(result.outer.to_dicts()).to_dicts() == result.outer.to_dicts()


def interrupting(at):
    calls = itertools.count(1)

    def callback(record):
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.mark.parametrize("at", [1, 12])
def test_ctrl_c_ends_it_with_a_model(at, capfd):
    case = Example(1, n=30)
    result = case.run(callbacks=[interrupting(at)], coarse=0.0)
    assert result.interrupted
    assert np.isfinite(result.weights).all()


# --- checkpoints ---


@pytest.mark.parametrize("passes", [1, 30, 70])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, passes):
    path = tmp_path / "run.npz"
    whole = Example(7, n=25).run(checkpoint=tmp_path / "whole.npz")
    assert len(whole.outer) >= 2
    cut = quietly(
        Example(7, n=25).run,
        checkpoint=path,
        callbacks=[lambda record: record.n_pass >= passes],
    )
    assert cut.n_passes < whole.n_passes
    resumed = Example(7, n=25).run(checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.objective == whole.objective
    assert resumed.n_passes == whole.n_passes
    np.testing.assert_array_equal(
        resumed.outer.column("objective"), whole.outer.column("objective")
    )
    # And once more, from a run that is done.
    done = Example(7, n=25).run(checkpoint=path, resume=True)
    np.testing.assert_array_equal(done.weights, whole.weights)


def test_a_damaged_outer_state_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    Example(7).run(checkpoint=path)
    stored = dict(np.load(path))
    about = json.loads(bytes(stored["about"]))
    for change in (
        {"loop": {}},
        {"outer": [{"n_outer": -1}]},
        {"certificate": None},
        {"history": 3},
    ):
        damaged = {**about, "beside": {**about["beside"], **change}}
        text = np.frombuffer(json.dumps(damaged).encode(), dtype=np.uint8)
        np.savez(path, **{**stored, "about": text})
        with pytest.raises(ModelFormatError, match="outer loop is damaged"):
            Example(7).run(checkpoint=path, resume=True)


def test_a_checkpoint_of_an_ordinary_training_is_refused(tmp_path):
    from maxmargin.solvers import solve

    case, path = Example(7), tmp_path / "run.npz"
    solve(case.problem, SDM(), C=C, dtype="float64", checkpoint=path)
    with pytest.raises(ModelFormatError, match="without a concave part"):
        case.run(checkpoint=path, resume=True)


# --- stages ---


@pytest.mark.parametrize("options", [{"anneal": 1.0}, {"self_paced": True}], ids=str)
def test_stages_end_in_the_plain_procedure(options, tmp_path):
    case = Example(3, n=20)
    path = tmp_path / "run.npz"
    result = train_latent(
        case.training,
        SDM(),
        C=C,
        gap=1e-7,
        tol=0.0,
        random_state=1,
        checkpoint=path,
        **options,
    )
    stages = list(result.outer.column("stage"))
    assert stages[0] == "first"
    assert stages[-1] == ""
    assert len(set(stages)) >= 4
    last = [r.objective for r in result.outer if r.stage == ""]
    assert (np.diff(last) <= 0).all()
    assert result.converged
    assert result.objective == pytest.approx(case.objective(result.weights), rel=1e-6)
    assert (case.training.factors == 1.0).all()
    assert [r.n_pass for r in result.history] == list(range(1, result.n_passes + 1))
    assert result.certificate.gap <= 1e-7
    # Resumed, the stages are not made again.
    again = train_latent(
        case.fresh().training, SDM(), C=C, gap=1e-7, tol=0.0, checkpoint=path, resume=True
    )
    assert set(again.outer.column("stage")) == {""}
    np.testing.assert_array_equal(again.weights, result.weights)


def test_a_self_paced_stage_has_the_easy_examples_only():
    case = Example(3, n=20)
    seen = {}

    def note(record):
        seen.setdefault(record.stage, int(np.count_nonzero(case.training.factors)))

    train_latent(case.training, SDM(), C=C, gap=0.01, self_paced=True, on_outer=note)
    assert seen == {"first": 20, "easiest 40 %": 8, "easiest 60 %": 12, "easiest 80 %": 16, "": 20}


def test_imputers_are_for_problems_with_truths_and_exact_oracles():
    case = Example(0)
    with pytest.raises(ValueError, match="argmax"):
        _native.Imputer(case.problem)
