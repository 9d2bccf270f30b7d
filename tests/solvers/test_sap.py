"""SAP: the optimum by all schedules, the steps of its paper, when it stops, and what it refuses."""

from __future__ import annotations

import dataclasses
import functools
import json
import math

import numpy as np
import pytest

import kit
import qp_reference
from kit import Watcher, assert_same_run, soft
from maxmargin import ElasticNet, SequenceTagger, StructuralSVM
from maxmargin._native import Engine, PassOptions
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.regularizers import L1, L2, L1Ball
from maxmargin.solvers import SAP, SDM, make_solver
from native_problems import (
    Flat,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    read_parts,
)

SCHEDULES = ("auto", "paper", "batch")
COSTS = [(0.0, 0.0), (1e-3, 1e-3), (0.1, 0.0), (0.0, 1.0), (1.0, 1.0)]  # μ, ν
NETS = [(1.0, 0.0, 1.0), (1.0, 0.2, 0.8), (0.5, 0.5, 0.5), (2.0, 0.3, 2.0)]  # C, ρ₁, ρ₂


def chain(seed=0, **changes):
    options = {"lengths": (5, 3, 1, 6, 4, 2, 5, 3), "n_labels": 4, "n_sparse": 10, **changes}
    return random_case(np.random.default_rng(seed), **options).problem()


def flat(seed=0, n=12):
    return native_python_problem(*flat_problem(np.random.default_rng(seed), n=n))


quietly = functools.partial(
    kit.quietly, C=1.0, dtype="float64", regularizer=ElasticNet(0.2, 0.8), random_state=0
)


def exact(schedule, **changes):
    """A SAP that stops on nothing but the gap."""
    return SAP(schedule, **{"theta": 0.0, "theta_inner": 1e-10, **changes})


# --- an independent solver ---


class Tiny:
    """A problem with its outputs written down."""

    def __init__(self, problem, planes, unpadded):
        self.problem, self.planes, self.unpadded = problem, planes, unpadded

    def values(self, w, C, rho1, rho2):
        """Return the primal at w."""
        slack = np.zeros(self.planes.n_examples)
        np.maximum.at(slack, self.planes.example, self.planes.loss - self.planes.delta @ w)
        return rho1 * np.abs(w).sum() + 0.5 * rho2 * w @ w + C * slack.sum()

    @functools.cache  # noqa: B019
    def optimum(self, C, rho1, rho2):
        """Return the least primal, by an interior point method over all planes."""
        link = ElasticNet(rho1, rho2).link
        return qp_reference.solve_planes(self.planes, C, link=link, tolerance=1e-9)


@functools.cache
def tiny(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "chain":
        case = random_case(rng, n_labels=2, lengths=(3, 1, 2, 3), n_sparse=6)
        planes = qp_reference.list_planes(case.reference, case.X, case.Y)
        return Tiny(case.problem(), planes, case.unpadded)
    structure, X, Y = flat_problem(rng, n=6, n_classes=3, n_inputs=3)
    planes = qp_reference.list_planes(structure, X, Y)
    return Tiny(native_python_problem(structure, X, Y), planes, np.asarray)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("mu", "nu"), COSTS)
@pytest.mark.parametrize("kind", ["chain", "python"])
def test_every_schedule_reaches_the_optimum(schedule, mu, nu, kind):
    for seed in range(2):
        for C, rho1, rho2 in NETS:
            case = tiny(kind, seed)
            best = case.optimum(C, rho1, rho2)
            found = quietly(
                case.problem,
                exact(schedule, mu=mu, nu=nu),
                C=C,
                regularizer=ElasticNet(rho1, rho2),
                gap=2e-7,
                max_passes=3000,
                random_state=seed,
            )
            certificate = found.certificate
            assert certificate.gap <= 1e-6
            assert certificate.primal == pytest.approx(best.primal, rel=1e-6)
            assert certificate.dual == pytest.approx(best.primal, rel=1e-6)
            w = case.unpadded(found.weights)
            assert case.values(w, C, rho1, rho2) == pytest.approx(certificate.primal, rel=1e-9)
            # w is strongly determined: (ρ₂/2)|w - w*|² <= P(w) - P*
            assert np.linalg.norm(w - best.w) <= math.sqrt(2.5e-6 * best.primal / rho2)


@pytest.mark.parametrize("kind", ["chain", "python"])
@pytest.mark.parametrize("alpha_passes", [1, 3, 10])
def test_batch_and_sequential_meet(kind, alpha_passes):
    case = tiny(kind, 1)
    found = [
        quietly(case.problem, exact(schedule, **options), gap=1e-9, max_passes=5000)
        for schedule, options in (
            ("paper", {"mu": 1e-3, "nu": 0.1}),
            ("batch", {"mu": 1e-3, "nu": 0.1, "alpha_passes": alpha_passes}),
        )
    ]
    assert found[0].certificate.primal == pytest.approx(found[1].certificate.primal, rel=1e-8)
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=2e-4)
    assert found[0].weights.any()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("nu", [0.0, 1.0])
def test_4_byte_weights(schedule, nu):
    case = tiny("chain", 0)
    best = case.optimum(1.0, 0.2, 0.8)
    found = quietly(case.problem, exact(schedule, nu=nu), dtype="float32", gap=1e-4)
    assert found.weights.dtype == np.float32
    assert found.certificate.primal == pytest.approx(best.primal, rel=2e-4)


# --- the steps of the paper ---


class Binary:
    """Algorithms 1 and 2 in NumPy, for two classes: one multiplier for each example."""

    def __init__(self, deltas, losses, net, mu, nu):
        self.deltas, self.losses = deltas, losses
        (self.C, self.rho1, self.rho2), self.mu, self.nu = net, mu, nu
        self.alpha = np.zeros(len(losses))
        self.beta = np.zeros(deltas.shape[1])

    @property
    def u(self):
        return self.C * self.alpha @ self.deltas

    @property
    def w(self):
        return (self.u - self.beta) / self.rho2  # (III.6)

    def alpha_step(self, i):
        """(IV.13) with δ = (-d, d): ½ d² (C K / ρ₂ + 2 μ) - g d."""
        g = self.losses[i] - self.w @ self.deltas[i]
        curvature = self.C * self.deltas[i] @ self.deltas[i] / self.rho2 + 2 * self.mu
        self.alpha[i] = np.clip(self.alpha[i] + g / curvature, 0, 1)

    def beta_step(self):
        """(IV.14) for any ν."""
        cost = self.nu * self.C * self.rho2
        self.beta = np.clip((self.u + cost * self.beta) / (1 + cost), -self.rho1, self.rho1)

    def run(self, schedule, alpha_passes):
        """One pass in the order of the examples; `alpha_passes` of them before β moves (batch)."""
        for _ in range(alpha_passes):
            for i in range(len(self.alpha)):
                self.alpha_step(i)
                if schedule == "paper":
                    self.beta_step()
        if schedule == "batch":
            self.beta_step()


@pytest.mark.parametrize(("mu", "nu"), [(1e-3, 1e-3), (0.0, 1.0), (1.0, 0.3), (0.1, 10.0)])
@pytest.mark.parametrize(("schedule", "alpha_passes"), [("paper", 1), ("batch", 1), ("batch", 4)])
def test_the_passes_are_those_of_the_algorithms(schedule, mu, nu, alpha_passes):
    for seed, (C, rho1, rho2) in enumerate(NETS):
        rng = np.random.default_rng(seed)
        structure, X, Y = flat_problem(rng, n=10, n_classes=2, n_inputs=5)
        planes = qp_reference.list_planes(structure, X, Y)
        reference = Binary(planes.delta, planes.loss, (C, rho1, rho2), mu, nu)
        seen = Watcher(lambda _, e: (e.sums(), e.beta(), e.weights.copy(), e.unsettled()))
        quietly(
            native_python_problem(structure, X, Y),
            exact(
                schedule, mu=mu, nu=nu, permute=False, theta_inner=0.0, alpha_passes=alpha_passes
            ),
            C=C,
            regularizer=ElasticNet(rho1, rho2),
            gap=0.0,
            max_passes=6 * alpha_passes,
            callbacks=[seen],
        )
        for u, beta, w, unsettled in seen.seen[alpha_passes - 1 :: alpha_passes]:
            reference.run(schedule, alpha_passes)
            np.testing.assert_allclose(u, reference.u, atol=1e-10)
            np.testing.assert_allclose(beta, reference.beta, atol=1e-10)
            np.testing.assert_allclose(w, reference.w, atol=1e-9)
            distance = np.abs(reference.w - soft(reference.u, rho1, rho2)).max()
            assert unsettled == pytest.approx(distance, abs=1e-9)
        assert u.any()


def test_beta_rests_while_batch_solves_the_alpha_problem():
    seen = Watcher(lambda _, e: (e.beta(), e.sums()))
    options = {"gap": 0.0, "max_passes": 9, "callbacks": [seen]}
    quietly(chain(), exact("batch", nu=1.0, alpha_passes=3), **options)
    betas = [beta for beta, _ in seen.seen]
    sums = [u for _, u in seen.seen]
    assert not betas[0].any()
    assert not betas[1].any()
    for before in range(8):
        moved = not np.array_equal(betas[before], betas[before + 1])
        assert moved == ((before + 1) % 3 == 2), before
        assert (sums[before] != sums[before + 1]).any()


def test_a_solved_alpha_problem_is_not_solved_again():
    seen = Watcher(lambda _, e: e.beta())
    solver = exact("batch", nu=1.0, alpha_passes=100, theta=1e9, settled=0.0)
    quietly(chain(), solver, gap=0.0, max_passes=4, callbacks=[seen])
    assert all((a != b).any() for a, b in zip(seen.seen, seen.seen[1:], strict=False))
    assert seen.seen[0].any()


# --- special cases ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("regularizer", [L2(), None, ElasticNet(0.0, 1.0)])
@pytest.mark.parametrize("make", [chain, flat])
def test_without_l1_auto_is_sdm_bit_for_bit(dtype, regularizer, make):
    options = {"regularizer": regularizer, "dtype": dtype, "gap": 1e-5, "random_state": 3}
    sap, sdm = (quietly(make(), solver, **options) for solver in (SAP(), SDM()))
    assert sap.weights.tobytes() == sdm.weights.tobytes()
    assert sap.certificate == sdm.certificate
    assert sap.n_passes == sdm.n_passes
    assert sap.weights.any()


@pytest.mark.parametrize(("rho1", "rho2"), [(0.2, 0.8), (0.7, 0.3)])
def test_auto_without_costs_is_sdm_with_a_net_too(rho1, rho2):
    options = {"regularizer": ElasticNet(rho1, rho2), "gap": 1e-5}
    sap, sdm = (quietly(chain(), solver, **options) for solver in (SAP(), SDM()))
    assert sap.weights.tobytes() == sdm.weights.tobytes()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("mu", "nu"), COSTS)
def test_without_l1_all_have_the_optimum_of_sdm(schedule, mu, nu):
    options = {"regularizer": L2(), "gap": 1e-7, "max_passes": 5000}
    sdm = quietly(chain(), SDM(), **options)
    sap = quietly(chain(), exact(schedule, mu=mu, nu=nu), **options)
    assert sap.converged
    assert sap.certificate.primal == pytest.approx(sdm.certificate.primal, rel=3e-7)
    np.testing.assert_allclose(sap.weights, sdm.weights, atol=5e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("nu", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_much_l1_leaves_nothing(schedule, nu, dtype):
    problem = chain()
    found = quietly(
        problem, SAP(schedule, nu=nu), C=0.1, regularizer=ElasticNet(100.0, 1.0), dtype=dtype
    )
    assert found.converged
    assert not found.weights.any()
    assert found.certificate.gap == 0
    # w = 0 pays the whole loss of the worst labelling: one for each of the 29 tokens
    assert found.certificate.primal == pytest.approx(0.1 * 29, rel=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("nu", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_are_exactly_zero(schedule, nu, dtype):
    """Even when it was stopped long before β had settled; and the others are not."""
    rho1, rho2 = 0.4, 0.6
    solver = SAP(schedule, nu=nu)
    for passes in (2, 30):
        found = quietly(
            chain(n_sparse=30),
            solver,
            regularizer=ElasticNet(rho1, rho2),
            dtype=dtype,
            gap=0.0,
            max_passes=passes,
        )
        u, w = found.engine.sums(), found.weights
        inside = np.abs(u) < rho1 * (1 - 1e-6)
        assert (inside & (u != 0)).any()
        assert not w[inside].any()
        beyond = np.abs(u) > rho1 * (1 + 1e-6)
        assert beyond.any()
        assert w[beyond].all()
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(w, soft(u, rho1, rho2), atol=tolerance)
        assert found.history[-1].nonzeros == np.count_nonzero(w)


# --- primal and dual, pass by pass ---


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("mu", "nu"), [*COSTS, (0.0, 20.0), (1e3, 0.0)])
def test_the_dual_stays_below_the_primal(schedule, mu, nu):
    rho1, rho2, C = 0.3, 0.7, 0.8

    def look(record, engine):
        w = engine.weights
        joint = C * engine.expected_loss() - 0.5 * rho2 * w @ w  # of α and β: -C times OP7
        return record, engine.objective(), engine.dual(), joint

    for seed in range(2):
        seen = Watcher(look)
        result = quietly(
            chain(seed),
            exact(schedule, mu=mu, nu=nu, theta_inner=1e-6),
            C=C,
            regularizer=ElasticNet(rho1, rho2),
            gap=1e-4,
            max_passes=60,
            callbacks=[seen],
        )
        assert len(seen.seen) == result.n_passes
        best = min(primal for _, primal, _, _ in seen.seen)
        duals, joints = [0.0], [0.0]
        for record, primal, dual, joint in seen.seen:
            assert record.dual == pytest.approx(dual, abs=1e-9)
            assert dual <= best + 1e-10
            assert joint <= dual + 1e-10  # β at its best is best
            if not math.isnan(record.primal):
                assert record.primal == pytest.approx(primal, rel=1e-9)
                assert record.primal >= record.dual
                assert record.gap == pytest.approx((primal - dual) / primal, abs=1e-9)
            duals.append(dual)
            joints.append(joint)
        assert duals[-1] > 0
        if nu == 0:
            assert (np.diff(duals) >= -1e-10).all()
        if schedule != "auto":  # over-relaxed steps aside, each step raises the joint dual
            assert (np.diff(joints) >= -1e-10).all()


# --- when it stops ---


@pytest.mark.parametrize("schedule", ["paper", "batch"])
@pytest.mark.parametrize("make", [chain, flat])
def test_it_stops_when_no_zeta_is_above_theta_and_beta_has_settled(schedule, make):
    problem = make()
    seen = Watcher(lambda _, e: e.unsettled())
    solver = SAP(schedule, theta=0.05, theta_inner=1e-3, nu=0.1, settled=1e-3)
    result = quietly(problem, solver, gap=0.0, max_passes=3000, callbacks=[seen])
    assert result.converged
    assert result.stop_reason == "no zeta above theta = 0.05, and beta has settled"
    assert seen.seen[-1] <= 1e-3
    assert seen.seen[0] > 1e-3
    # the same seen from outside: no example has a violation to speak of
    final = result.engine.exact_pass(everyone(problem.n_examples), PassOptions(tau=1e9))
    assert final.psi_max <= 0.05 + 0.03
    assert result.n_passes > 1


@pytest.mark.parametrize("schedule", ["paper", "batch"])
@pytest.mark.parametrize("theta", [0.1, 0.01])
def test_no_zeta_is_above_theta_at_the_weights_where_it_stops(schedule, theta):
    """Not only at those that the pass met while they moved; and whatever theta_inner is."""
    case = random_case(np.random.default_rng(5), n_labels=4, lengths=[6] * 20, noise=0.5)
    problem = case.problem(example_weight=np.full(20, 5.0))
    solver = SAP(schedule, theta=theta, nu=0.0)
    result = quietly(problem, solver, C=0.3, gap=0.0, max_passes=3000, regularizer=L2())
    assert result.stop_reason.startswith("no zeta above theta")
    final = result.engine.exact_pass(everyone(20), PassOptions(tau=1e9))
    assert final.psi_max < theta * (1 + 1e-9)
    assert result.certificate.primal - result.certificate.dual <= 20 * 0.3 * theta


def test_the_tolerance_of_smo_is_below_theta():
    assert SAP().smo_tolerance == 0.01
    assert SAP(theta=0.01).smo_tolerance == pytest.approx(1e-3)


@pytest.mark.parametrize("schedule", ["paper", "batch"])
def test_it_goes_on_until_beta_has_settled(schedule):
    """ζ is below any bound from the first pass on: only β can keep it."""

    def run(settled):
        seen = Watcher(lambda _, e: e.unsettled())
        solver = SAP(schedule, theta=1e9, theta_inner=1e-6, nu=5.0, settled=settled)
        return quietly(chain(), solver, gap=0.0, max_passes=60, callbacks=[seen]), seen.seen

    loose, _ = run(1e9)
    assert loose.converged
    assert loose.n_passes == 1
    assert loose.stop_reason == "no zeta above theta = 1e+09, and beta has settled"
    some, distances = run(3e-2)
    assert some.converged
    assert 1 < some.n_passes < 60
    assert distances[-1] <= 3e-2 < min(distances[:-1])
    never, distances = run(0.0)
    assert not never.converged
    assert never.stop_reason == "max_passes = 60"
    assert min(distances) > 0


@pytest.mark.parametrize("schedule", ["paper", "batch"])
def test_without_a_cost_to_move_beta_is_always_settled(schedule):
    solver = SAP(schedule, theta=1e9, nu=0.0, settled=0.0)
    assert quietly(chain(), solver, gap=0.0).n_passes == 1


@pytest.mark.parametrize("schedule", ["paper", "batch"])
def test_a_theta_of_zero_is_never_met(schedule):
    result = quietly(chain(), SAP(schedule, theta=0.0, settled=1e9), gap=0.0, max_passes=20)
    assert result.n_passes == 20
    assert not result.converged
    assert result.stop_reason == "max_passes = 20"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("nu", [None, 0.0, 0.1])
@pytest.mark.parametrize("gap", [0.05, 1e-3])
def test_it_stops_on_the_gap(schedule, nu, gap):
    result = quietly(chain(), exact(schedule, nu=nu), gap=gap)
    assert result.converged
    assert result.stop_reason.startswith("gap ")
    assert result.stop_reason.endswith(f"<= {gap:g}")
    assert result.certificate.gap <= gap * 1.001
    assert result.history[-1].gap == result.certificate.gap


def test_with_a_large_nu_it_goes_on_until_the_certificate_is_good():
    for seed in range(6):
        case = random_case(np.random.default_rng(seed), lengths=[3] * 20, n_sparse=20)
        result = quietly(
            case.problem(),
            exact("batch", nu=10.0),
            regularizer=ElasticNet(0.5, 0.5),
            gap=1e-3,
            max_passes=5000,
        )
        assert result.n_passes < 5000
        assert result.converged, f"{result.stop_reason}, but {result.certificate}"


# --- cost-to-move of α ---


@pytest.mark.parametrize("mu", [0.0, 0.5, 1e3, 1e9])
def test_the_first_step_with_a_cost_to_move(mu):
    """One example, one plane: δ = g / (C|Δf|²/ρ₂ + 2 μ), at most 1."""
    rng = np.random.default_rng(0)
    for rho2, C in ((1.0, 1.0), (0.3, 0.1), (2.0, 5.0)):
        structure = Flat(np.array([[0.0, 1.3], [0.7, 0.0]]), 3)
        x = rng.normal(size=3)
        engine = Engine(
            native_python_problem(structure, [x], [0]),
            C,
            False,
            False,
            link=ElasticNet(0.1, rho2).link.native(),
            nu=1.0,
        )
        engine.exact_pass(np.zeros(1, dtype=np.uint32), PassOptions(mu=mu))
        [part] = read_parts(engine.state())
        delta = min(1.0, 1.3 / (C * 2 * x @ x / rho2 + 2 * mu))
        np.testing.assert_allclose(part.alpha, [1 - delta, delta], rtol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_huge_mu_hardly_moves_the_multipliers(schedule):
    def moved(mu):
        found = quietly(chain(), exact(schedule, mu=mu, nu=0.1), gap=0.0, max_passes=1)
        return max(
            (float(part.alpha[1:].sum()) for part in read_parts(found.engine.state())), default=0.0
        )

    assert moved(0.0) > 0.1
    assert 0 < moved(1e6) < 1e-4
    assert moved(1e6) == pytest.approx(10 * moved(1e7), rel=0.01)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("nu", [0.0, 0.1])
def test_a_large_mu_converges_all_the_same(schedule, nu):
    slow, fast = (
        quietly(
            tiny("chain", 0).problem,
            exact(schedule, mu=mu, nu=nu),
            gap=1e-4,
            max_passes=20000,
        )
        for mu in (50.0, 0.0)
    )
    assert slow.converged
    assert slow.certificate.primal == pytest.approx(fast.certificate.primal, rel=2e-4)
    assert slow.n_passes > 2 * fast.n_passes


# --- checkpoints ---

SAVED = {
    "auto": SAP(mu=0.01, nu=0.5, cached_passes=4),
    "paper": SAP("paper", mu=0.01, nu=0.5, theta_inner=1e-6, theta=0.0),
    "batch": SAP("batch", mu=0.01, nu=0.5, theta_inner=1e-6, theta=0.0, alpha_passes=3),
}


def assert_same(first, second):
    assert "beta" in first.engine.state()
    assert_same_run(first, second)


@pytest.mark.parametrize("schedule", SAVED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [chain, flat])
@pytest.mark.parametrize("stops", [(1,), (5,), (2, 4, 7)])
def test_stopped_and_resumed_equals_one_run(schedule, dtype, make, stops, tmp_path):
    path, solver = tmp_path / "run.npz", SAVED[schedule]
    options = {"dtype": dtype, "gap": 0.0}
    whole = quietly(make(), solver, max_passes=10, **options)
    for stop in stops:
        quietly(make(), solver, max_passes=stop, checkpoint=path, resume=True, **options)
    with np.load(path) as stored:
        assert "engine_beta" in stored.files
        about = json.loads(bytes(stored["about"]).decode())
    if schedule == "batch":
        assert about["run"]["solver"] == {"alpha_passes": stops[-1] % 3}
    # the order of the visits is the file's business: another seed changes nothing
    options["random_state"] = 9
    rest = quietly(make(), solver, max_passes=10, checkpoint=path, resume=True, **options)
    assert_same(whole, rest)


def rewrite(path, **arrays):
    with np.load(path) as stored:
        kept = {**stored, **arrays}
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in kept.items() if array is not None})


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: None,
        lambda b: b[:-1],
        lambda b: np.append(b, b[:1]),
        lambda b: b.astype(np.float64),
        lambda b: b.astype(complex),
        lambda b: np.array(["text"]),
        lambda b: np.where(np.arange(len(b)) == 3, np.float32(np.nan), b),
        lambda b: np.full_like(b, np.inf),
        lambda b: b.reshape(-1, 1),
    ],
)
@pytest.mark.parametrize("schedule", SAVED)
def test_a_damaged_beta(schedule, damage, tmp_path):
    path = tmp_path / "run.npz"
    options = {"dtype": "float32", "checkpoint": path, "gap": 0.0}
    quietly(chain(), SAVED[schedule], max_passes=3, **options)
    with np.load(path) as stored:
        beta = stored["engine_beta"]
    assert beta.dtype == np.float32
    rewrite(path, engine_beta=damage(beta))
    with pytest.raises(ModelFormatError, match="beta") as caught:
        quietly(chain(), SAVED[schedule], max_passes=5, resume=True, **options)
    assert str(path) in str(caught.value)


def test_a_checkpoint_of_other_costs_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    quietly(chain(), SAP("paper", nu=0.5), max_passes=3, checkpoint=path, gap=0.0)
    for other in (SAP("paper", nu=0.6), SAP("paper", nu=0.5, mu=0.5), SAP("batch", nu=0.5), SDM()):
        with pytest.raises(ModelFormatError, match="solver"):
            quietly(chain(), other, max_passes=5, checkpoint=path, resume=True, gap=0.0)


# --- parameters ---


def test_defaults():
    solver = SAP()
    assert (solver.name, solver.schedule, solver.mu, solver.nu) == ("sap", "auto", 0.0, 0.0)
    for schedule in ("paper", "batch"):
        solver = SAP(schedule)
        assert (solver.mu, solver.nu) == (1e-3, 1e-3)
        assert SAP(schedule, mu=0.0, nu=2.0) == SAP(schedule, mu=0.0, nu=2.0) != solver
    assert [SAP(s).factored for s in SCHEDULES] == [True, False, False]
    assert SAP().alpha_passes == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        SAP().nu = 1.0


def test_defaults_follow_the_schedule_that_replaces_another():
    paper, auto = SAP("paper"), SAP()
    assert dataclasses.replace(auto, schedule="paper") == paper
    assert dataclasses.replace(paper, schedule="auto") == auto
    assert SAP(**{**dataclasses.asdict(auto), "schedule": "batch"}) == SAP("batch")
    assert make_solver("sap", schedule="paper") == paper
    # what somebody asked for stays
    asked = dataclasses.replace(SAP("paper", mu=0.0), schedule="batch")
    assert (asked.mu, asked.nu) == (0.0, 1e-3)
    assert repr(dataclasses.replace(auto, schedule="paper")) == repr(paper)


def test_by_name():
    assert make_solver("sap") == SAP()
    assert make_solver("SAP") == SAP()
    solver = SAP("paper", nu=0.1)
    assert make_solver(solver) is solver


@pytest.mark.parametrize("schedule", ["basic", "", "AUTO", None, 3, ["auto"]])
def test_an_unknown_schedule_is_told_the_known_ones(schedule):
    with pytest.raises(ValueError, match="'auto', 'paper', 'batch'") as caught:
        SAP(schedule)
    assert repr(schedule) in str(caught.value)


BAD = [
    (name, value)
    for names, values in (
        (
            ("mu", "nu", "theta", "theta_inner", "settled"),
            (-1e-9, -1.0, math.nan, math.inf, -math.inf),
        ),
        (("alpha_passes",), (0, -1, 1.5, True, math.nan, math.inf, "many", None)),
        (("warm_passes", "cached_passes", "full_every"), (0, 2.5)),
        (("relaxation",), (0.0, 2.0, math.nan)),
    )
    for name in names
    for value in values
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "value"), BAD)
def test_parameters_out_of_range(schedule, name, value):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        SAP(schedule, **{name: value})


@pytest.mark.parametrize("name", ["mu", "nu", "theta", "theta_inner", "settled"])
@pytest.mark.parametrize("value", ["a lot", [1]])
def test_parameters_of_a_wrong_type(name, value):
    with pytest.raises((TypeError, ValueError)):
        SAP(**{name: value})


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("regularizer", "able"),
    [(L1(), "lp"), (L1(nonnegative=True), "lp"), (L1Ball(2.0), "subgradient")],
)
def test_regularisers_of_other_solvers(schedule, regularizer, able):
    with pytest.raises(NotCompatibleError, match=rf"'sap' cannot do.*'{able}'"):
        quietly(chain(), SAP(schedule), regularizer=regularizer)


# --- warm starts ---


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SAP(nu=0.1), SAP()),
        (SAP(), SAP(nu=0.1)),
        (SAP(nu=0.1), SAP(nu=0.2)),
        (SAP("paper", nu=0.1), SAP("paper", nu=0.0)),
        (SAP("paper"), SAP()),
        (SAP(nu=1e-3), SAP("paper")),
        (SDM(), SAP("paper", nu=0.0)),
        (SAP(nu=0.1), SDM()),
    ],
)
def test_warm_starts_from_another_schedule(first, second):
    problem = chain()
    engine = quietly(problem, first, max_passes=2).engine
    with pytest.raises(NotCompatibleError, match="another schedule"):
        quietly(problem, second, engine=engine)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SDM(), SAP()),
        (SAP(nu=0.1), SAP(nu=0.1, mu=0.1)),
        (exact("paper", nu=0.1), exact("batch", nu=0.1)),
        (SDM("paper"), exact("paper", nu=0.0)),
    ],
)
def test_warm_starts(first, second):
    """Under another C and another net; the optimum is that of a cold start."""
    problem = chain()
    engine = quietly(problem, first, gap=1e-3).engine
    options = {"C": 0.6, "regularizer": ElasticNet(0.35, 0.5), "gap": 1e-6, "max_passes": 5000}
    warm = quietly(problem, second, engine=engine, **options)
    cold = quietly(chain(), second, **options)
    assert warm.certificate.gap <= 2e-6
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=3e-6)
    assert warm.engine.nu == second.nu


def test_warm_starts_from_another_problem():
    engine = quietly(chain(), SAP(nu=0.1), max_passes=2).engine
    with pytest.raises(NotCompatibleError, match="another problem"):
        quietly(chain(), SAP(nu=0.1), engine=engine)


# --- estimators ---


@pytest.mark.parametrize("solver", ["sap", SAP("paper"), SAP("batch", nu=0.1)])
def test_a_sparse_tagger(solver):
    rng = np.random.default_rng(1)
    y = [[("A", "B")[k] for k in rng.integers(0, 2, 8)] for _ in range(40)]
    X = [[[f"is={label}", f"noise={rng.integers(50)}"] for label in labels] for labels in y]
    net = ElasticNet(l1_ratio=0.9)
    tagger = SequenceTagger(C=0.1, solver=solver, regularizer=net, random_state=0).fit(X, y)
    plain = SequenceTagger(C=0.1, random_state=0).fit(X, y)
    assert tagger.score(X, y) == 1.0
    assert 0 < np.count_nonzero(tagger.weights_) < 0.2 * np.count_nonzero(plain.weights_)
    if solver == "sap":
        assert tagger.certificate_.gap <= 0.01


@pytest.mark.parametrize("solver", ["sap", SAP("paper"), SAP("batch")])
def test_a_structure_in_python(solver):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 40).tolist()
    # three numbers that tell the class, and eight that tell nothing
    X = [np.concatenate([np.eye(3)[k] * 2, rng.normal(0, 0.3, 8)]) for k in y]
    structure = Flat(1.0 - np.eye(3), 11)
    model = StructuralSVM(
        structure, C=0.1, solver=solver, regularizer=ElasticNet(l1_ratio=0.8), random_state=0
    ).fit(X, y)
    weights = model.weights_.reshape(3, 11)
    assert np.count_nonzero(weights[:, 3:]) < np.count_nonzero(weights[:, :3])
    assert model.predict(X).tolist() == y


def test_estimators_refuse_what_the_solver_cannot_do():
    tagger = SequenceTagger(solver="sap", regularizer=L1())
    with pytest.raises(NotCompatibleError, match="'lp'"):
        tagger.fit([[["a"], ["b"]]], [["x", "y"]])
