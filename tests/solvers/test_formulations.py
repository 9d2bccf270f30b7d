"""The formulations of the margin: slacks and rescaling, against an independent solver."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

import kit
import qp_reference
from kit import Watcher, formulated, slacks
from maxmargin import ElasticNet, StructuralSVM, Structure
from maxmargin._native import Engine, PassOptions, Primal
from maxmargin.errors import NotCompatibleError, NotSeparableError
from maxmargin.regularizers import L2
from maxmargin.solvers import SAP, SDM, NSlack, make_solver, separable
from native_problems import native_python_problem, random_case
from qp_reference import Planes, list_planes

FORMULATIONS = [
    (slack, rescale)
    for slack in ("linear", "quadratic", "hard")
    for rescale in ("margin", "slack", "none")
    if (slack, rescale) != ("hard", "slack")
]
SOFT = [pair for pair in FORMULATIONS if pair[0] != "hard"]
EXACT = {"tau": 1e-10, "tau_inner": 1e-11}
SOLVERS = {
    "sdm-auto": SDM(),
    "sdm-paper": SDM("paper", **EXACT),
    "sdm-basic": SDM("basic", **EXACT),
    "nslack-frequent": NSlack(epsilon=1e-8),
    "nslack-paper": NSlack("paper", epsilon=1e-8),
}


def make(name, slack, rescale):
    return dataclasses.replace(SOLVERS[name], slack=slack, rescale=rescale)


def quietly(problem, solver, **options):
    options = {
        "C": 1.0,
        "dtype": "float64",
        "gap": 1e-8,
        "max_passes": 60 if isinstance(solver, NSlack) else 3000,
        "random_state": 0,
        **options,
    }
    return kit.quietly(problem, solver, **options)


# --- the independent solver ---


def primal_at(planes, w, C, slack, net=(0.0, 1.0)):
    """Return the objective; C has an entry for each example."""
    rho1, rho2 = net
    penalty = rho1 * np.abs(w).sum() + 0.5 * rho2 * w @ w
    xi = slacks(planes, w)
    if slack == "hard":
        return penalty if xi.max() <= 1e-12 else math.inf
    return float(penalty + C @ (xi if slack == "linear" else 0.5 * xi**2))


def optimum(planes, C, slack, net=(0.0, 1.0)):
    """Return the least objective, by an interior point method over all planes."""
    return qp_reference.solve_planes(planes, C, slack=slack, link=ElasticNet(*net).link)


# --- small problems, with all their outputs ---


@dataclasses.dataclass
class Small:
    problem: object
    planes: Planes
    share: np.ndarray  # the weights of the examples
    unpadded: object = np.array

    def __hash__(self):
        return id(self)

    @functools.cache  # noqa: B019
    def under(self, slack, rescale):
        return formulated(self.planes, slack, rescale)

    @functools.cache  # noqa: B019
    def optimum(self, slack, rescale, C=1.0, net=(0.0, 1.0)):
        return optimum(self.under(slack, rescale), C * self.share, slack, net)

    def primal(self, weights, pair, C=1.0, net=(0.0, 1.0)):
        w = self.unpadded(weights).astype(float)
        return primal_at(self.under(*pair), w, C * self.share, pair[0], net)


def chains(seed, weighted_examples=False, **options):
    shape = {"n_labels": 3, "lengths": (3, 1, 2, 3), "n_sparse": 6, "features": "values"}
    case = random_case(np.random.default_rng(seed), **{**shape, **options})
    share = np.ones(len(case.X))
    if weighted_examples:
        share = np.random.default_rng(seed + 100).uniform(0.3, 2.0, len(case.X))
    problem = case.problem(example_weight=share) if weighted_examples else case.problem()
    planes = list_planes(case.reference, case.X, case.Y)
    return Small(problem, planes, share, case.unpadded)


KINDS = {
    "chains": chains,
    "pairs of labels": lambda seed: chains(seed, n_labels=2, lengths=(4, 2, 3), features="ones"),
    "one token": lambda seed: chains(seed, lengths=(1,) * 7),
    "example weights": lambda seed: chains(seed, weighted_examples=True),
    "separable": lambda seed: chains(seed, n_sparse=20, noise=0.0, scale=2.0, per_token=6),
    "costs": lambda seed: chains(seed, cost=True),
    "token weights": lambda seed: chains(seed, weighted=True),
    "costs, example weights": lambda seed: chains(seed, True, cost=True),
}


@functools.cache
def small(kind, seed):
    return KINDS[kind](seed)


def dense_planes(engine):
    """Return (example, loss, alpha, Δ) of all planes kept, Δ in the native layout."""
    example, loss, alpha, indptr, indices, values = engine.planes()
    delta = np.zeros((len(loss), len(engine.weights)))
    np.add.at(delta, (np.repeat(np.arange(len(loss)), np.diff(indptr)), indices), values)
    return example, loss, alpha, delta


def dual_by_hand(engine, share, slack):
    """D of the multipliers, from nothing but them."""
    example, loss, alpha, delta = dense_planes(engine)
    assert (alpha >= 0).all()
    mass = np.bincount(example, alpha, len(share))
    C = engine.C * share
    if slack == "linear":
        assert (mass <= 1 + 1e-9).all()
    u = (C[example] * alpha) @ delta
    price = 0.5 * C @ mass**2 if slack == "quadratic" else 0.0
    return (C[example] * alpha) @ loss - price - 0.5 * u @ u


# --- the optimum ---


def check_optimum(instance, solver, *, C=1.0, rel=1e-6, **options):
    pair = solver.slack, solver.rescale
    best = instance.optimum(*pair, C)
    found = quietly(instance.problem, solver, C=C, **options)
    certificate = found.certificate
    assert not certificate.approximate
    assert certificate.dual <= best.primal + 1e-8 * (1 + best.primal)
    assert certificate.primal >= best.dual - 1e-8 * (1 + best.primal)
    assert certificate.primal == pytest.approx(best.primal, rel=rel, abs=rel)
    assert certificate.dual == pytest.approx(best.dual, rel=rel, abs=rel)
    if pair[0] != "hard":
        by_hand = instance.primal(found.weights, pair, C)
        assert certificate.primal == pytest.approx(by_hand, rel=1e-9)
    by_hand = dual_by_hand(found.engine, instance.share, pair[0])
    assert certificate.dual == pytest.approx(by_hand, rel=1e-9, abs=1e-12)
    return found


@pytest.mark.parametrize(("slack", "rescale"), SOFT)
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["chains", "pairs of labels", "one token", "example weights"])
def test_the_optimum(kind, name, slack, rescale):
    for seed, C in ((3, 1.0), (5, 0.2)):
        check_optimum(small(kind, seed), make(name, slack, rescale), C=C)


@pytest.mark.parametrize("rescale", ["margin", "none"])
@pytest.mark.parametrize("name", SOLVERS)
def test_the_optimum_of_a_hard_margin(name, rescale):
    for seed in range(3):
        instance = small("separable", seed)
        found = check_optimum(instance, make(name, "hard", rescale), gap=1e-7)
        # the multiple of w that the certificate speaks of has all margins
        w = instance.unpadded(found.weights)
        planes = instance.under("hard", rescale)
        multiple = math.sqrt(found.certificate.primal / (0.5 * w @ w))
        assert (planes.delta @ w * multiple >= planes.loss * (1 - 1e-9)).all()


@pytest.mark.parametrize(("slack", "rescale"), SOFT)
def test_the_optimum_with_4_byte_weights(slack, rescale):
    for name in ("sdm-auto", "nslack-frequent"):
        instance = small("chains", 1)
        found = quietly(instance.problem, make(name, slack, rescale), dtype="float32", gap=1e-4)
        best = instance.optimum(slack, rescale).primal
        assert found.certificate.primal == pytest.approx(best, rel=2e-4)
        by_hand = instance.primal(found.weights, (slack, rescale))
        assert found.certificate.primal == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize(("slack", "rescale"), SOFT)
@pytest.mark.parametrize("kind", ["costs", "token weights", "costs, example weights"])
def test_the_optimum_with_other_losses(kind, slack, rescale):
    plain = (slack, rescale) == ("linear", "margin") or rescale == "none"
    for name in ["sdm-auto", "sdm-paper", "sdm-basic"] if plain else SOLVERS:
        for seed in range(3):
            passes = {"max_passes": 1000} if name == "nslack-paper" else {}
            check_optimum(small(kind, seed), make(name, slack, rescale), **passes)


def three_by_three(seed):
    """Three sequences of three tokens whose errors have costs of 1 to 3."""
    cost = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]])
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_labels=3, lengths=(3, 3, 3), features="values")
    case.reference.cost = case.arrays["cost"] = cost
    return Small(
        case.problem(), list_planes(case.reference, case.X, case.Y), np.ones(3), case.unpadded
    )


@pytest.mark.parametrize(("slack", "rescale"), SOFT)
@pytest.mark.parametrize("seed", range(4))
def test_a_cost_matrix_and_a_large_c(seed, slack, rescale):
    """With corners of the hull alone, this ended at up to 36 times the optimum."""
    solver = make("nslack-frequent", slack, rescale)
    check_optimum(three_by_three(seed), solver, C=30.0, max_passes=1000)


@pytest.mark.parametrize(("slack", "rescale"), FORMULATIONS)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_pass(name, slack, rescale):
    """The primal is above the dual, which rises; the planes are outputs of their examples."""
    instance = small("separable" if slack == "hard" else "example weights", 1)
    planes, last = instance.under(slack, rescale), [0.0]

    def look(record, engine):
        dual = engine.dual()
        assert record.dual == pytest.approx(dual, rel=1e-6)  # from gains, by 4-byte products
        assert dual == pytest.approx(dual_by_hand(engine, instance.share, slack), abs=1e-9)
        assert dual >= last[0] - 1e-9
        last[0] = dual
        primal = engine.objective()
        assert primal >= dual - 1e-9
        if slack != "hard":
            by_hand = instance.primal(engine.weights, (slack, rescale))
            assert primal == pytest.approx(by_hand, rel=1e-9)
            assert record.kind != "collect" or record.primal == pytest.approx(by_hand, rel=1e-6)
        example, loss, _, delta = dense_planes(engine)
        for i, h, row in zip(example, loss, delta, strict=True):
            own = planes.example == i
            miss = np.abs(planes.delta[own] - instance.unpadded(row)).max(axis=1)
            miss += np.abs(planes.loss[own] - h)
            assert miss.min() < 1e-6

    quietly(instance.problem, make(name, slack, rescale), max_passes=25, callbacks=[Watcher(look)])
    assert last[0] > 0


@pytest.mark.parametrize("schedule", ["auto", "paper", "batch"])
@pytest.mark.parametrize(("slack", "rescale"), [p for p in SOFT if p != ("linear", "margin")])
def test_elastic_nets(schedule, slack, rescale):
    instance, net = small("chains", 3), (0.2, 0.8)
    best = instance.optimum(slack, rescale, 1.0, net)
    solver = SAP(schedule, slack=slack, rescale=rescale, theta=0.0, theta_inner=1e-10)
    found = quietly(instance.problem, solver, regularizer=ElasticNet(*net))
    assert found.certificate.primal == pytest.approx(best.primal, rel=1e-6)
    assert found.certificate.dual == pytest.approx(best.dual, rel=1e-6)
    by_hand = instance.primal(found.weights, (slack, rescale), 1.0, net)
    assert found.certificate.primal == pytest.approx(by_hand, rel=1e-9)


# --- special cases of other people's ---


def test_one_token_with_linear_slacks_is_crammer_singer():
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    case = random_case(rng, n_labels=4, lengths=(1,) * 30, features="dense64", n_dense=3)
    # start and end weights are two features that are always there
    X = np.hstack([np.vstack(case.X), np.ones((30, 2))])
    y = np.concatenate(case.Y)
    for C in (0.05, 0.3):
        svc = LinearSVC(
            multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-10, max_iter=1_000_000
        ).fit(X, y)
        scores = X @ svc.coef_.T
        margin = scores - scores[np.arange(30), y][:, None] + 1.0
        margin[np.arange(30), y] = 0.0
        theirs = 0.5 * (svc.coef_**2).sum() + C * margin.max(axis=1).sum()
        for name in ("sdm-auto", "sdm-paper", "sdm-basic"):
            mine = quietly(case.problem(), SOLVERS[name], C=C, gap=1e-7)
            assert mine.certificate.dual <= theirs * (1 + 1e-9)
            assert mine.certificate.primal == pytest.approx(theirs, rel=1e-6), name


@pytest.mark.parametrize("slack", ["linear", "quadratic", "hard"])
def test_where_all_losses_are_one_rescaling_means_nothing(slack):
    kind = {"lengths": (1,) * 6, "n_sparse": 20, "noise": 0.0} if slack == "hard" else {}
    instance = chains(3, **{"lengths": (1,) * 6, **kind})
    rescales = [rescale for s, rescale in FORMULATIONS if s == slack]
    found = [check_optimum(instance, make("sdm-auto", slack, r)) for r in rescales]
    for other in found[1:]:
        assert other.certificate.primal == pytest.approx(found[0].certificate.primal, rel=1e-7)
        np.testing.assert_allclose(other.weights, found[0].weights, rtol=0, atol=2e-3)


def test_losses_matter_elsewhere():
    instance = small("chains", 1)
    values = {pair: instance.optimum(*pair).primal for pair in SOFT}
    assert len({round(value, 4) for value in values.values()}) == len(SOFT)


# --- hard margins ---


@pytest.mark.parametrize("rescale", ["margin", "none"])
def test_a_hard_margin_is_the_limit_of_large_c(rescale):
    """Quadratic slacks ask for the root of the loss: they have this limit only without losses."""
    for seed in range(3):
        instance = small("separable", seed)
        solver = NSlack(slack="hard", rescale=rescale, epsilon=1e-8)
        hard = quietly(instance.problem, solver).certificate.primal
        for slack in ("linear", "quadratic") if rescale == "none" else ("linear",):
            values = [
                quietly(instance.problem, make("sdm-paper", slack, rescale), C=C).certificate.primal
                for C in (0.01, 0.1, 1e4)
            ]
            assert values[0] < values[1] < values[2] * (1 + 1e-6) < hard * (1 + 1e-4)
            # linear slacks have it as soon as no multiplier meets its bound
            assert values[2] == pytest.approx(hard, rel=1e-5 if slack == "linear" else 1e-2)


def test_c_means_nothing_to_a_hard_margin():
    instance = small("separable", 0)
    one, two = (quietly(instance.problem, SDM(slack="hard"), C=C) for C in (1.0, 3.0))
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-6)


def contradictory():
    """Five sequences of one token; 1 and 3 are the same but for their labels."""
    x = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 0.0]])
    return one_token(x, [0, 0, 1, 1, 1])


def one_token(x, labels):
    n = len(labels)
    from maxmargin._native import ChainProblem

    return ChainProblem(
        2,
        0,
        np.arange(n + 1, dtype=np.int64),
        dense64=np.ascontiguousarray(x, dtype=np.float64),
        labels=np.array(labels, np.int32),
    )


@pytest.mark.parametrize("rescale", ["margin", "none"])
@pytest.mark.parametrize("name", SOLVERS)
def test_contradictory_examples_are_named(name, rescale):
    with pytest.raises(NotSeparableError) as error:
        quietly(contradictory(), make(name, "hard", rescale))
    named = re.search(r"most are ([\d, ]+) \(counted", str(error.value))
    assert set(named[1].split(", ")[:2]) == {"1", "3"}
    assert 'slack="quadratic"' in str(error.value)


def crossing():
    """Exclusive or: no two examples contradict each other, all four do."""
    return one_token([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], [0, 0, 1, 1])


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", [contradictory, crossing])
def test_the_linear_program_alone_finds_out(data, name, monkeypatch):
    monkeypatch.setattr(separable, "LONGEST", math.inf)
    with pytest.raises(NotSeparableError, match="constraints found so far contradict"):
        quietly(data(), make(name, "hard", "margin"))


def test_the_linear_programs_take_time_that_is_limited(monkeypatch):
    asked = []

    def slow(engine, seconds):
        asked.append(seconds)
        time.sleep(0.3)
        return True

    monkeypatch.setattr(separable, "_feasible", slow)
    monkeypatch.setattr(separable, "LONGEST", math.inf)
    result = quietly(crossing(), SDM(slack="hard"), gap=0.0, time_limit=0.25, max_passes=10**6)
    assert result.stop_reason == "time_limit = 0.25 s"
    assert result.n_passes <= separable.ASK_AFTER[0]
    assert all(0 < seconds <= 0.25 for seconds in asked)


def test_a_linear_program_is_told_the_time_that_is_left(monkeypatch):
    told = []

    def linprog(*args, options, **_):
        told.append(options)
        return SimpleNamespace(status=1)  # out of time: nothing is known

    monkeypatch.setattr("scipy.optimize.linprog", linprog)
    engine = SDM(slack="hard").start(crossing(), 1.0, L2(), False)
    engine.exact_pass(np.arange(4, dtype=np.uint32), PassOptions())
    assert separable._feasible(engine, 2.5)
    assert separable._feasible(engine, None)
    assert told == [{"time_limit": 2.5}, {}]


@pytest.mark.parametrize("name", ["sdm-paper", "sdm-basic"])
def test_the_length_of_w_alone_finds_out(name, monkeypatch):
    monkeypatch.setattr(separable, "ASK_AFTER", ())
    monkeypatch.setattr(separable, "LONGEST", 1e3)
    with pytest.raises(NotSeparableError, match="longer than"):
        quietly(crossing(), make(name, "hard", "margin"), max_passes=100_000)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("margin", [0.1, 0.01])
def test_a_tiny_margin_is_a_margin(name, margin):
    x = [[1.0, margin], [1.0, -margin], [2.0, margin], [2.0, -margin]]
    found = quietly(one_token(x, [0, 1, 0, 1]), make(name, "hard", "margin"), max_passes=2000)
    # w = (0, 1) and (0, -1) times 1 / (4 margin) have margins of 1 each: ½|w|² = 1 / (4 margin²)
    assert found.certificate.dual <= 0.25 / margin**2 * (1 + 1e-9)
    if name.startswith("nslack") and margin == 0.1:
        assert found.certificate.primal == pytest.approx(0.25 / margin**2, rel=1e-6)


def test_inseparable_data_are_no_trouble_with_slacks():
    for slack in ("linear", "quadratic"):
        found = quietly(contradictory(), SDM(slack=slack), C=100.0, gap=1e-4)
        assert found.converged


def test_an_estimator_passes_the_error_on():
    X, Y = [np.ones(2), np.ones(2)], [0, 1]
    model = StructuralSVM(Listed(1 - np.eye(2)), solver=SDM(slack="hard"), max_passes=50)
    with pytest.raises(NotSeparableError, match=r"most are (0, 1|1, 0) \(counted"):
        model.fit(X, Y)


@pytest.mark.parametrize("rescale", ["margin", "none"])
@pytest.mark.parametrize("name", ["sdm-auto", "sdm-paper", "nslack-frequent"])
def test_an_output_that_looks_like_the_truth_cannot_be_separated(name, rescale):
    structure = Listed(1 - np.eye(3))
    X, Y = [*(2 * np.eye(3)), np.zeros(3)], [0, 1, 2, 0]
    with pytest.raises(NotSeparableError, match="most are 3"):
        quietly(native_python_problem(structure, X, Y), make(name, "hard", rescale))


# --- the automatic schedule ---


@pytest.mark.parametrize("case", ["quadratic, large losses", "hard, small margin"])
def test_the_automatic_schedule_does_not_stall(case):
    shape = {"n_labels": 3, "features": "values"}
    if case.startswith("quadratic"):
        slack, C, seed = "quadratic", 1e-3, 0
        shape |= {"lengths": (40,) * 6, "n_sparse": 30}
    else:
        slack, C, seed = "hard", 1.0, 1
        shape |= {"lengths": (3, 1, 2, 3), "n_sparse": 20, "noise": 0.0, "scale": 0.3}
    problem = random_case(np.random.default_rng(seed), **shape).problem()
    options = {"C": C, "gap": 1e-3, "max_passes": 1000}
    assert quietly(problem, SDM("paper", **EXACT, slack=slack), **options).converged
    auto = quietly(problem, SDM(slack=slack), **options)
    assert auto.converged, auto.history.column("dual")[-5:]


# --- structures in Python ---


class Points(Structure):
    """Classes of points, with a cost for each pair."""

    def __init__(self, cost):
        self.cost = cost

    def joint_feature(self, x, y):
        return np.kron(np.eye(len(self.cost))[y], x)

    def loss(self, y, y_hat):
        return float(self.cost[y, y_hat])


class Listed(Points):
    """It can list its outputs."""

    def outputs(self, x):
        return range(len(self.cost))


class Blind(Points):
    """It has an argmax and nothing else."""

    def argmax(self, x, w, truth=None):
        values = np.reshape(w, (len(self.cost), -1)) @ x
        return int(np.argmax(values if truth is None else values + self.cost[truth]))


class Graded(Blind):
    """It can tell its best outputs by their loss."""

    def best_by_loss(self, x, w, truth):
        scores = np.reshape(w, (len(self.cost), -1)) @ x
        best = {}
        for y, loss in enumerate(self.cost[truth]):
            if y != truth and (loss not in best or scores[y] > scores[best[loss]]):
                best[loss] = y
        return list(best.values())


@functools.cache
def points(kind, seed, ties=False, spread=1.0):
    """Return the structure's problem with all its outputs."""
    rng = np.random.default_rng(seed)
    cost = rng.integers(1, 3, (5, 5)).astype(float) if ties else rng.uniform(0.5, 3.0, (5, 5))
    np.fill_diagonal(cost, 0.0)
    Y = rng.integers(0, 5, 8).tolist()
    X = [spread * rng.normal(size=4) + np.eye(4)[y % 4] for y in Y]
    planes = list_planes(Listed(cost), X, Y)
    return Small(native_python_problem(kind(cost), X, Y), planes, np.ones(len(Y)))


@pytest.mark.parametrize(("slack", "rescale"), SOFT)
@pytest.mark.parametrize("kind", [Listed, Graded])
def test_structures_that_can_tell_their_outputs(kind, slack, rescale):
    for name in ("sdm-auto", "sdm-paper", "nslack-frequent"):
        for seed, ties in ((0, False), (1, True)):
            check_optimum(points(kind, seed, ties), make(name, slack, rescale), rel=1e-5, gap=1e-6)


@pytest.mark.parametrize(("slack", "rescale"), [p for p in SOFT if p[1] != "none"])
def test_structures_that_have_an_argmax_only(slack, rescale):
    for name in ("sdm-auto", "nslack-frequent"):
        for seed in range(3):
            instance = points(Blind, seed)
            best = instance.optimum(slack, rescale)
            found = quietly(instance.problem, make(name, slack, rescale), gap=1e-6, max_passes=30)
            certificate = found.certificate
            assert certificate.dual <= best.primal * (1 + 1e-9)
            assert best.dual <= certificate.primal * (1 + 1e-9)
            # the bound is one: no less than what w has
            assert certificate.primal >= instance.primal(found.weights, (slack, rescale)) - 1e-9
            far = certificate.primal > best.primal * (1 + 1e-4)
            assert certificate.approximate or not far or not found.converged
            if (slack, rescale) == ("linear", "margin"):
                assert not certificate.approximate


def test_an_estimator_with_a_formulation():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, 40).tolist()
    X = [np.eye(3)[y] * 2 + rng.normal(0, 0.3, 3) for y in Y]
    cost = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    for slack, rescale in SOFT:
        solver = SDM(slack=slack, rescale=rescale)
        model = StructuralSVM(Listed(cost), C=1.0, solver=solver, gap=1e-5, random_state=0)
        model.fit(X, Y)
        planes = formulated(list_planes(Listed(cost), X, Y), slack, rescale)
        by_hand = primal_at(planes, np.asarray(model.weights_), np.ones(40), slack)
        assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-9)
        assert model.certificate_.gap <= 1e-5
        assert model.score(X, Y) > -0.1


def separable_points():
    structure = Listed(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]))
    X = [2 * np.eye(3)[k % 3] + 0.1 * np.sin(np.arange(3.0) + k) for k in range(6)]
    Y = [k % 3 for k in range(6)]
    return Small(native_python_problem(structure, X, Y), list_planes(structure, X, Y), np.ones(6))


@pytest.mark.parametrize("name", ["sdm-auto", "sdm-paper", "nslack-frequent"])
def test_hard_margins_of_structures_in_python(name):
    check_optimum(separable_points(), make(name, "hard", "none"), gap=1e-7)


@pytest.mark.parametrize("name", ["sdm-paper", "nslack-frequent"])
def test_hard_margins_with_losses_of_structures_in_python(name):
    check_optimum(separable_points(), make(name, "hard", "margin"), gap=1e-7)


# --- going on ---


def state_of(found):
    engine = {key: np.asarray(value).tobytes() for key, value in found.engine.state().items()}
    rows = [{k: v for k, v in r.items() if k != "seconds"} for r in found.history.to_dicts()]
    return engine, repr(rows), found.weights.tobytes(), found.certificate


@pytest.mark.parametrize(("slack", "rescale"), FORMULATIONS)
@pytest.mark.parametrize("name", ["sdm-auto", "sdm-paper", "nslack-frequent", "nslack-paper"])
def test_stopped_and_resumed_equals_one_run(name, slack, rescale, tmp_path):
    kind = "separable" if slack == "hard" else "example weights"
    solver = make(name, slack, rescale)
    options = {"gap": 0.0, "random_state": 4}
    for share, dtype in ((0.0, "float64"), (0.4, "float32"), (0.7, "float64")):
        path = tmp_path / f"{share}.npz"
        whole = quietly(small(kind, 1).problem, solver, max_passes=12, dtype=dtype, **options)
        stop = 1 + int(share * (whole.n_passes - 1))
        assert stop < whole.n_passes
        for passes in (stop, 12):
            rest = quietly(
                small(kind, 1).problem,
                solver,
                max_passes=passes,
                dtype=dtype,
                checkpoint=path,
                resume=True,
                **options,
            )
        assert state_of(whole) == state_of(rest)


def test_a_checkpoint_of_another_formulation_is_refused(tmp_path):
    path, instance = tmp_path / "run.npz", small("chains", 1)
    quietly(instance.problem, SDM(slack="quadratic"), max_passes=3, checkpoint=path)
    with pytest.raises(ValueError, match="solver"):
        quietly(instance.problem, SDM(), max_passes=5, checkpoint=path, resume=True)


@pytest.mark.parametrize("first", FORMULATIONS)
def test_warm_starts_under_another_formulation_are_refused(first):
    instance = small("separable", 0)
    begun = quietly(instance.problem, make("sdm-paper", *first), max_passes=3)
    for second in FORMULATIONS:
        if second == first:
            continue
        with pytest.raises(NotCompatibleError, match="another schedule"):
            quietly(instance.problem, make("sdm-paper", *second), engine=begun.engine)


@pytest.mark.parametrize(("slack", "rescale"), FORMULATIONS)
def test_warm_starts_under_another_c(slack, rescale):
    instance, solver = small("separable", 1), make("sdm-paper", slack, rescale)
    warm = quietly(instance.problem, solver, C=0.3, gap=1e-4)
    warm = quietly(instance.problem, solver, C=2.0, gap=1e-7, engine=warm.engine)
    best = instance.optimum(slack, rescale, 2.0)
    assert warm.certificate.primal == pytest.approx(best.primal, rel=1e-6)


# --- bad input ---


@pytest.mark.parametrize("solver", [SDM, SAP, NSlack])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slack": "cubic"}, "slack must be one of 'linear', 'quadratic', 'hard'; got 'cubic'"),
        ({"slack": None}, "slack must be one of"),
        ({"rescale": "both"}, "rescale must be one of 'margin', 'slack', 'none'; got 'both'"),
        ({"slack": "hard", "rescale": "slack"}, "no slacks to rescale"),
    ],
)
def test_unknown_formulations(solver, given, message):
    with pytest.raises(ValueError, match=message):
        solver(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slack": "cubic", "factored": False}, 'slack must be .*got "cubic"'),
        ({"rescale": "both", "factored": False}, 'rescale must be .*got "both"'),
        ({"slack": "hard", "rescale": "slack", "factored": False}, "no slacks to rescale"),
        ({"slack": "quadratic"}, "kept in parts with linear slacks and margin rescaling only"),
        ({"slack": "hard"}, "kept in parts"),
        ({"rescale": "slack"}, "kept in parts"),
        ({"rescale": "none"}, "kept in parts"),
    ],
)
def test_engines_refuse_them_too(given, message):
    with pytest.raises(ValueError, match=message):
        Engine(small("chains", 1).problem, 1.0, **given)


def test_an_argmax_cannot_leave_the_truth_out():
    problem = points(Blind, 0).problem
    for solver in (SDM(rescale="none"), NSlack(rescale="none", slack="quadratic")):
        with pytest.raises(ValueError, match='rescale="none" needs the best output other than'):
            quietly(problem, solver)
    with pytest.raises(ValueError, match='rescale="none" needs'):
        Primal(problem, False, "none")
    with pytest.raises(ValueError, match="rescale must be"):
        Primal(problem, False, "all")


def test_solvers_by_name():
    assert make_solver("nslack") == NSlack()
    assert SDM().plain
    assert SDM().factored
    for slack, rescale in FORMULATIONS[1:]:
        assert not SDM(slack=slack, rescale=rescale).factored
        assert not SAP(slack=slack, rescale=rescale).factored
