"""The interior point: its optimum, its passes, and inputs that are degenerate."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import datasets

import maxmargin.solvers.interior_point as module
from kit import Watcher, assert_same_run, formulated, quietly, slacks
from maxmargin import _native
from maxmargin.errors import NotCompatibleError, NotSeparableError
from maxmargin.links import Link
from maxmargin.regularizers import L2, ElasticNet, Regularizer
from maxmargin.solvers import SDM, InteriorPoint, solve
from maxmargin.solvers.dual import DualMachine
from native_problems import Flat, flat_problem, native_python_problem, random_case
from qp_reference import list_planes, solve_planes

# --- an independent solver of every formulation and regulariser ---


@dataclasses.dataclass(frozen=True)
class NonNegative(Regularizer):
    """½‖w‖² over weights that are not negative."""

    @property
    def link(self):
        return Link(least=0.0)


@dataclasses.dataclass(frozen=True)
class Prior(Regularizer):
    """A Gaussian prior with a mean and a precision for each weight, some of which are held."""

    n: int

    @property
    def link(self):
        rng = np.random.default_rng(5)
        scale = rng.uniform(0.2, 3.0, self.n) * (rng.random(self.n) < 0.8)
        return Link(scale=scale, offset=rng.normal(size=self.n))


def bounds(planes, C, slack, link):
    """Return the dual and the primal of the reference."""
    found = solve_planes(planes, C, slack=slack, link=link)
    return found.dual, found.primal


COST = np.array([[0, 3, 1], [1, 0, 2], [2, 1, 0]], float)
#: What a small problem is like: sizes, and whether hard margins have a solution.
CASES = {
    "sentences": {"lengths": (3, 2, 3, 1), "n_sparse": 8, "noise": 0.0},
    "cost matrix": {"lengths": (2, 1, 2, 2), "n_sparse": 6, "noise": 0.0, "cost": True},
    "noisy": {"lengths": (2, 1, 2, 2, 1), "n_sparse": 4, "noise": 0.7},
    "large features": {"lengths": (1, 2, 2, 1), "features": "dense64", "scale": 1e3, "n_dense": 3},
}


@functools.cache
def case(name):
    return random_case(np.random.default_rng(17), **CASES[name])


@functools.cache
def planes_of(name):
    made = case(name)
    return list_planes(made.reference, made.X, made.Y)


FORMULATIONS = [
    ("linear", "margin"),
    ("linear", "slack"),
    ("linear", "none"),
    ("quadratic", "margin"),
    ("quadratic", "slack"),
    ("quadratic", "none"),
    ("hard", "margin"),
    ("hard", "none"),
]
REGULARIZERS = {
    "l2": lambda n: L2(),
    "elastic net": lambda n: ElasticNet(0.05, 0.9),
    "not negative": lambda n: NonNegative(),
    "prior": Prior,
}


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize(("slack", "rescale"), FORMULATIONS)
@pytest.mark.parametrize("name", CASES)
def test_it_meets_an_independent_solver(name, slack, rescale, regularizer):
    separable = CASES[name].get("noise", 1.0) == 0.0
    if slack == "hard" and not (separable and regularizer in ("l2", "elastic net")):
        pytest.skip("no solution, or a link that does not go with it")
    made = case(name)
    # As a structure in Python: weights without padding, and an oracle that tries all outputs.
    problem = native_python_problem(made.reference, made.X, made.Y)
    planes = formulated(planes_of(name), slack, rescale)
    own = REGULARIZERS[regularizer](planes.delta.shape[1])
    for C in (0.2, 50.0):
        found = solve(
            problem,
            InteriorPoint(slack=slack, rescale=rescale),
            C=C,
            regularizer=own,
            gap=1e-6,
            random_state=0,
        )
        assert found.converged
        dual, primal = bounds(planes, C, slack, own.link)
        assert primal - dual <= 1e-5 * primal, "the reference did not converge"
        assert found.certificate.primal == pytest.approx(dual, rel=2e-6)
        assert found.certificate.dual <= primal * (1 + 1e-9)
        # The certificate is that of the weights by brute force.
        w = np.asarray(found.weights)
        assert own.link.penalty(w) < math.inf


@pytest.mark.parametrize("scale", [1e3, 1e5])
@pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
def test_scale_and_c_do_not_matter(C, scale):
    """Inseparable measurements of large size, where block ascent does not come to an end."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 60).astype(np.int32)
    rows = scale * (rng.normal(size=(60, 4)) + 0.5 * labels[:, None] + 3.0)
    problem = _native.MulticlassProblem(n_classes=3, n_sparse=0, labels=labels, dense64=rows)
    found = solve(problem, InteriorPoint(), C=C, gap=1e-6)
    assert found.converged
    assert found.certificate.gap <= 1e-6
    iterations = len(found.history)
    assert iterations <= 40


REAL = {
    (name, C): None for name in ("iris", "wine", "breast_cancer") for C in (0.1, 1.0, 10.0, 1e4)
}


@pytest.mark.parametrize(("name", "C"), REAL, ids=str)
def test_real_measurements_as_they_come(name, C):
    data = getattr(datasets, f"load_{name}")()
    rows = np.ascontiguousarray(np.hstack([data.data, np.ones((len(data.data), 1))]))
    labels = data.target.astype(np.int32)
    problem = _native.MulticlassProblem(
        n_classes=int(labels.max()) + 1, n_sparse=0, labels=labels, dense64=rows
    )
    found = solve(problem, InteriorPoint(), C=C, gap=1e-6, random_state=0)
    assert found.converged
    assert len(found.history) <= 30
    # By hand: Crammer and Singer's objective of the returned weights.
    w = np.asarray(found.weights).reshape(rows.shape[1], -1)[:, : labels.max() + 1]
    scores = rows @ w + 1.0
    truth = scores[np.arange(len(labels)), labels] - 1.0
    scores[np.arange(len(labels)), labels] = truth
    by_hand = 0.5 * (w**2).sum() + C * (scores.max(axis=1) - truth).sum()
    assert found.certificate.primal == pytest.approx(by_hand, rel=1e-8)


# --- passes ---


def flat(**options):
    return native_python_problem(*flat_problem(np.random.default_rng(0), **options))


def engine_of(problem, C=2.0, **options):
    return DualMachine(problem, C, single=False, factored=False, **options)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_an_interior_pass_raises_the_dual_or_does_nothing(slack, single):
    engine = DualMachine(case("noisy").problem(), 3.0, single=single, factored=False, slack=slack)
    rose = 0
    for _ in range(12):
        engine.collect_pass()
        before, state = engine.dual(), engine.state()
        result = engine.interior_pass()
        assert engine.dual() == pytest.approx(before + result.gain, rel=1e-6, abs=1e-9)
        assert result.gain >= 0
        if result.solved:
            rose += result.gain > 0
            assert result.work > 0
            assert result.smo_steps > 0
            assert result.solved == result.visits > 0
        else:
            assert result.gain == 0
            after = engine.state()
            for name in ("alpha", "weights", "running"):
                assert_array_equal(state[name], after[name])
    assert 2 <= rose < 12
    primal, dual = engine.certify()
    assert primal - dual <= (1e-4 if single else 1e-7) * primal


def test_multipliers_are_those_of_a_simplex_and_most_are_zero():
    engine = engine_of(flat(n=30))
    for _ in range(6):
        engine.collect_pass()
        engine.interior_pass()
    state = engine.state()
    sizes = state["n_planes"].astype(np.int64)
    sums = np.add.reduceat(state["alpha"], np.cumsum(sizes) - sizes)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
    assert (state["alpha"] >= 0).all()
    assert (state["alpha"] == 0).sum() > 10
    other = engine_of(flat(n=30))
    for _ in range(12):  # planes that are dropped may have to be found again
        other.collect_pass()
        other.interior_pass(prune=True)
    assert other.size()["planes"] < engine.size()["planes"]
    assert other.dual() == pytest.approx(engine.dual(), rel=1e-6)


def test_what_it_costs_is_told_in_advance():
    engine = engine_of(flat(n=30))
    assert engine.interior_size()["work"] == math.inf  # no planes yet
    engine.collect_pass()
    small = engine.interior_size()
    for _ in range(3):
        engine.interior_pass()
        engine.collect_pass()
    large = engine.interior_size()
    assert 0 < small["work"] < large["work"] < math.inf
    assert large["planes"] == engine.size()["planes"]
    assert large["bytes"] > 0


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_the_dual_of_a_run_never_falls(slack):
    result = quietly(
        case("noisy").problem(), InteriorPoint(slack=slack), C=10.0, gap=0.0, max_passes=25
    )
    dual = result.history.column("dual")  # the last one is the certificate's, summed anew
    assert (np.diff(dual[:-1]) >= 0).all()
    assert dual[-1] >= dual[-2] * (1 - 1e-13)


def test_fewer_planes_than_weights_and_the_other_way_round():
    """The systems are those of the smaller space; both lead to the same optimum."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 40).astype(np.int32)
    for width in (3, 200):
        rows = rng.normal(size=(40, width))
        rows[:, 0] += labels
        problem = _native.MulticlassProblem(n_classes=2, n_sparse=0, labels=labels, dense64=rows)
        found = solve(problem, InteriorPoint(), C=1.0, gap=1e-8)
        other = solve(problem, SDM(), C=1.0, gap=1e-5, dtype="float64", max_passes=20_000)
        assert found.converged
        assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-5)


# --- runs ---


@pytest.mark.parametrize("slack", ["linear", "quadratic", "hard"])
@pytest.mark.parametrize("regularizer", [L2(), ElasticNet(0.05, 0.9)], ids=["l2", "net"])
def test_stopped_and_resumed_equals_one_run(slack, regularizer, tmp_path):
    def go(passes, **options):
        return quietly(
            case("sentences").problem(),
            InteriorPoint(warm_passes=2, slack=slack, keep_rounds=2),
            C=5.0,
            regularizer=regularizer,
            gap=0.0,
            max_passes=passes,
            random_state=4,
            **options,
        )

    path = tmp_path / "run.npz"
    whole = go(11)
    for passes in (1, 2, 5, 8):
        go(passes, checkpoint=path, resume=True)
    assert_same_run(whole, go(11, checkpoint=path, resume=True))


def test_threads_do_not_matter():
    first, second = (
        quietly(case("noisy").problem(), InteriorPoint(), C=3.0, gap=1e-8, n_jobs=n, random_state=0)
        for n in (1, 3)
    )
    assert_same_run(first, second)


def test_time_is_limited():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 700).astype(np.int32)
    rows = rng.normal(size=(700, 150))
    problem = _native.MulticlassProblem(n_classes=4, n_sparse=0, labels=labels, dense64=rows)
    result = quietly(problem, InteriorPoint(), C=10.0, gap=0.0, time_limit=0.3)
    assert "time_limit" in result.stop_reason
    assert result.certificate.dual <= result.certificate.primal


def test_weights_are_8_byte_numbers():
    problem = case("noisy").problem()
    found = quietly(problem, InteriorPoint(), C=1.0, dtype="float32")
    assert found.weights.dtype == np.float64
    single = quietly(problem, SDM(), C=1.0, dtype="float32", max_passes=2)
    assert single.weights.dtype == np.float32
    found = quietly(problem, InteriorPoint(), C=1.0, gap=1e-8, engine=single.engine)
    assert found.converged
    assert found.weights.dtype == np.float64
    assert found.engine.weights.dtype == np.float64


def test_it_goes_on_from_block_ascent_and_under_another_c():
    problem = case("noisy").problem()
    first = quietly(problem, SDM(), C=1.0, dtype="float64", max_passes=3)
    seen = Watcher(lambda record, machine: machine.dual())
    found = quietly(
        problem, InteriorPoint(), C=1.0, gap=1e-8, engine=first.engine, callbacks=[seen]
    )
    assert found.converged
    assert seen.seen[0] >= first.certificate.dual * (1 - 1e-12)
    again = quietly(problem, InteriorPoint(), C=40.0, gap=1e-8, engine=found.engine)
    fresh = quietly(problem, InteriorPoint(), C=40.0, gap=1e-8)
    assert again.certificate.primal == pytest.approx(fresh.certificate.primal, rel=1e-7)


# --- degenerate input ---


def classes(rows, labels, cost=None):
    structure = Flat(1.0 - np.eye(3) if cost is None else cost, rows.shape[1])
    return native_python_problem(structure, list(rows), list(labels))


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize(
    "kind", ["one example", "zero features", "the same twice", "contradictions", "a constant"]
)
def test_degenerate_problems(kind, slack):
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(12, 3)), np.arange(12) % 3
    if kind == "one example":
        rows, labels = rows[:1], labels[:1]
    elif kind == "zero features":
        rows[:] = 0
    elif kind == "the same twice":
        rows, labels = np.repeat(rows, 3, axis=0), np.repeat(labels, 3)
    elif kind == "contradictions":
        rows = np.repeat(rows[:4], 3, axis=0)
    else:
        rows[:] = 1.0
    problem = classes(rows, labels)
    for C in (0.1, 1e4):
        found = solve(problem, InteriorPoint(slack=slack), C=C, gap=1e-6)
        assert found.converged, found.stop_reason
        assert np.isfinite(found.weights).all()


def test_examples_without_weight_and_without_violation():
    arrays = {**case("noisy").arrays}
    weights = np.ones(len(arrays["labels"]), np.float32)
    weights[:4] = 0.0
    problem = _native.ChainProblem(**arrays, token_weight=weights)
    found = solve(problem, InteriorPoint(), C=5.0, gap=1e-7)
    assert found.converged
    # Losses of zero: nothing is ever violated, and zero is the optimum.
    rng = np.random.default_rng(2)
    nothing = classes(rng.normal(size=(5, 2)), [0, 1, 2, 0, 1], cost=np.zeros((3, 3)))
    found = solve(nothing, InteriorPoint(), C=5.0, gap=1e-7)
    assert not np.any(found.weights)
    assert found.certificate.primal == 0


def test_a_fixed_linear_term():
    structure, X, Y = flat_problem(np.random.default_rng(4))
    planes = list_planes(structure, X, Y)
    term = np.random.default_rng(5).normal(size=planes.delta.shape[1])
    problem = native_python_problem(structure, X, Y)
    problem.linear_term = term
    found = solve(problem, InteriorPoint(), C=2.0, gap=1e-8)
    # ½‖w‖² - w.u₀ + C Σ ξ by another solver of the same engine.
    other = quietly(problem, SDM(), C=2.0, gap=1e-7, dtype="float64", max_passes=20_000)
    w = np.asarray(found.weights)
    by_hand = 0.5 * w @ w - w @ term + 2.0 * slacks(planes, w).sum()
    assert found.converged
    assert found.certificate.primal == pytest.approx(by_hand, rel=1e-9)
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-6)


def test_hard_margins_that_no_weights_have():
    rows = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), 2, axis=0)
    with pytest.raises(NotSeparableError):
        solve(classes(rows, [0, 1, 1, 2]), InteriorPoint(slack="hard"), C=1.0)


def test_too_many_weights_and_planes_are_refused(monkeypatch):
    class Large(DualMachine):
        def interior_size(self):
            return {"planes": 1e5, "columns": 1e5, "work": math.inf, "bytes": 1e12}

    problem = case("noisy").problem()
    large = Large(problem, 1.0, single=False, factored=True)
    with pytest.raises(NotCompatibleError, match=r"too large.*use solver 'sdm'"):
        solve(problem, InteriorPoint(), C=1.0, gap=1e-9, engine=large)

    def refuse(name, n_bytes, **options):
        raise MemoryError(name)

    monkeypatch.setattr(module, "require_memory", refuse)
    with pytest.raises(MemoryError, match="the matrix of the interior point"):
        solve(problem, InteriorPoint(), C=1.0, gap=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"warm_passes": -1}, "warm_passes"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"accuracy": 1.0}, "accuracy must be below 1"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"keep_rounds": -1}, "keep_rounds"),
        ({"slack": "cubic"}, "slack"),
        ({"slack": "hard", "rescale": "slack"}, "no slacks to rescale"),
    ],
    ids=str,
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        InteriorPoint(**given)


def test_bad_arguments_of_a_pass():
    engine = engine_of(flat())
    engine.collect_pass()
    with pytest.raises(ValueError, match="accuracy"):
        engine.interior_pass(-1.0)
    with pytest.raises(ValueError, match="max_iterations"):
        engine.interior_pass(max_iterations=0)
    lagging = DualMachine(case("noisy").problem(), 1.0, single=False, factored=False, nu=0.1)
    lagging.collect_pass()
    with pytest.raises(ValueError, match="cost-to-move"):
        lagging.interior_pass()
