"""Links as data: the functions against brute force, training with them against a QP solver."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from maxmargin import _native
from maxmargin.links import Link
from maxmargin.regularizers import L2, ElasticNet, Regularizer, Selected
from maxmargin.solvers import SAP, SDM, NSlack, solve
from native_problems import flat_problem, native_python_problem, random_case


@dataclasses.dataclass(frozen=True, eq=False)
class Own(Regularizer):
    """A regulariser of one's own: nothing but its link."""

    given: Link

    @property
    def link(self) -> Link:
        return self.given


N = 12


def links(rng):
    """Return one link of each kind, for N weights."""
    kept = (rng.random(N) < 0.6).astype(float)
    return {
        "identity": Link(),
        "scaled": Link(scale=0.4),
        "elastic net": ElasticNet(0.3, 0.5).link,
        "two thresholds": Link(lower=-0.5, upper=0.1),
        "selected": Link(scale=kept),
        "non-negative": Link(least=0.0),
        "bounded": Link(least=-0.2, most=0.3),
        "prior": Link(offset=rng.normal(size=N), scale=rng.uniform(0.2, 3.0, N)),
        "prior with bounds": Link(
            offset=np.full(N, 0.2), scale=rng.uniform(0.2, 3.0, N), least=np.full(N, 0.1)
        ),
        "everything": Link(
            lower=-rng.random(N),
            upper=rng.random(N),
            scale=rng.uniform(0.1, 2.0, N) * kept,
            offset=0.3 * rng.normal(size=N),
            least=-2.0,
            most=2.0,
        ),
    }


KINDS = sorted(links(np.random.default_rng(0)))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_the_link_maximises_what_the_conjugate_is_the_maximum_of(seed, kind):
    rng = np.random.default_rng(seed)
    link = links(rng)[kind]
    u = 2 * rng.normal(size=N)
    w = link.weights(u)
    assert math.isfinite(link.penalty(w))
    best = link.conjugate(u)
    # Whatever w the penalty allows, w.u - Ω(w) is no more.
    for size in (1e-3, 0.1, 2.0):
        other = np.clip(w + size * rng.normal(size=N), link.least, link.most)
        other = np.where(np.asarray(link.scale) == 0, link.offset, other)
        assert other @ u - link.penalty(other) <= best + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_that_is_not_allowed_costs_infinitely_much(kind):
    link = links(np.random.default_rng(1))[kind]
    w = link.weights(np.zeros(N))
    if kind in ("selected", "everything"):
        w[np.asarray(link.scale) == 0] += 0.5
    elif np.all(np.isinf(link.least)):
        return
    else:
        w[0] = np.broadcast_to(link.least, N)[0] - 0.5
    assert link.penalty(w) == math.inf


def brute_hinge(structure, X, Y, w):
    """Return the sum of max over y of loss - w.Δf."""

    def value(x, y, z):
        delta = structure.joint_feature(x, y) - structure.joint_feature(x, z)
        return structure.loss(y, z) - w @ delta

    return sum(max(value(x, y, z) for z in structure.outputs(x)) for x, y in zip(X, Y, strict=True))


def optimum(structure, X, Y, C, link, fixed=None):  # noqa: PLR0917
    """Minimise the primal by SciPy: w = m + p - n with p, n >= 0, and a slack per example."""
    n, d = len(X), structure.n_features
    scale = np.broadcast_to(np.asarray(link.scale, float), d)
    offset = np.broadcast_to(np.asarray(link.offset, float), d)
    free = scale > 0
    fixed = np.zeros(d) if fixed is None else fixed
    curve = np.divide(1.0, scale, out=np.zeros(d), where=free)
    rows, losses, owner = [], [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for z in structure.outputs(x):
            if z != y:
                rows.append(structure.joint_feature(x, y) - structure.joint_feature(x, z))
                losses.append(structure.loss(y, z))
                owner.append(i)
    rows, losses, owner = np.array(rows), np.array(losses), np.array(owner)
    upper, lower = np.broadcast_to(link.upper, d), np.broadcast_to(link.lower, d)

    def split(v):
        return offset + v[:d] - v[d : 2 * d], v[2 * d :]

    def value(v):
        p, q = v[:d], v[d : 2 * d]
        w, xi = split(v)
        return 0.5 * curve @ ((p - q) ** 2) + upper @ p - lower @ q - w @ fixed + C * xi.sum()

    def slope(v):
        d_w = curve * (v[:d] - v[d : 2 * d]) - fixed
        return np.concatenate([d_w + upper, -d_w - lower, np.full(n, C)])

    slack = (owner[:, None] == np.arange(n)).astype(float)
    A = np.hstack([rows, -rows, slack])
    bounds = [(0, None if f else 0) for f in free] * 2 + [(0, None)] * n
    constraints: list[dict[str, Any]] = [
        {"type": "ineq", "fun": lambda v: A @ v + rows @ offset - losses, "jac": lambda v: A}
    ]
    for sign, bound in ((1, link.least), (-1, link.most)):
        if np.all(np.isfinite(bound)):
            B = sign * np.hstack([np.eye(d), -np.eye(d), np.zeros((d, n))])
            shift = sign * (offset - np.broadcast_to(bound, d))
            constraints.append(
                {"type": "ineq", "fun": lambda v, B=B, s=shift: B @ v + s, "jac": lambda v, B=B: B}
            )
    start = np.concatenate([np.maximum(link.weights(np.zeros(d)) - offset, 0),
                            np.maximum(offset - link.weights(np.zeros(d)), 0),
                            np.full(n, 10.0)])  # fmt: skip
    found = minimize(
        value,
        start,
        jac=slope,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    # 8: the line search found nothing better, which at this tolerance is the end too.
    assert found.success or found.status == 8, found.message
    assert all(np.all(c["fun"](found.x) >= -1e-8) for c in constraints)
    return float(found.fun)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "solver",
    [SDM(), SDM(schedule="paper", tau=1e-7, tau_inner=1e-8), NSlack(epsilon=1e-6)],
    ids=["auto", "paper", "nslack"],
)
def test_training_meets_an_independent_solver(kind, solver):
    rng = np.random.default_rng(3)
    structure, X, Y = flat_problem(rng)
    link = links(rng)[kind]
    problem = native_python_problem(structure, X, Y)
    found = solve(
        problem, solver, C=0.6, gap=1e-7, max_passes=20_000, regularizer=Own(link), warn=False
    )
    certificate = found.certificate
    truth = optimum(structure, X, Y, 0.6, link)
    assert certificate.primal == pytest.approx(truth, rel=2e-5, abs=2e-5)
    assert certificate.dual <= truth + 1e-6 * (1 + abs(truth))
    # The certificate is what the link says of the returned weights.
    w = np.asarray(found.weights)
    assert math.isfinite(link.penalty(w))
    hinge = brute_hinge(structure, X, Y, w)
    assert certificate.primal == pytest.approx(link.penalty(w) + 0.6 * hinge, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_never_falls(kind):
    rng = np.random.default_rng(5)
    structure, X, Y = flat_problem(rng, n=10)
    problem = native_python_problem(structure, X, Y)
    engine = _native.Engine(problem, 0.7, False, True, link=links(rng)[kind].native())
    order, last = np.arange(10, dtype=np.uint32), engine.dual()
    for _ in range(30):
        result = engine.exact_pass(order, _native.PassOptions())
        assert result.gain >= -1e-12
        assert engine.dual() == pytest.approx(last + result.gain, rel=1e-9, abs=1e-12)
        last = engine.dual()
        assert last <= engine.objective() + 1e-12


@pytest.mark.parametrize("single", [False, True])
def test_chains_take_a_number_for_each_weight(single):
    case = random_case(np.random.default_rng(2), lengths=(3, 2, 4, 1))
    rng = np.random.default_rng(8)
    n = case.n_rows * case.n_labels
    mean, precision = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    native = {
        name: np.asarray(case.weights(x, single), dtype=np.float64)
        for name, x in (("offset", mean), ("scale", 1 / precision))
    }
    found = solve(
        case.problem(),
        SDM(),
        C=0.5,
        gap=1e-4,
        dtype="float32" if single else "float64",
        regularizer=Own(Link(**native)),
    )
    # Against the same problem with the reference's structure in Python.
    from native_problems import PythonProblem

    plain = _native.PythonProblem(PythonProblem(case.reference, case.X, case.Y))
    other = solve(
        plain, SDM(), C=0.5, gap=1e-5, regularizer=Own(Link(offset=mean, scale=1 / precision))
    )
    assert found.certificate.gap <= 1.1e-4
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-3)
    case.unpadded(found.weights)  # the padding stays zero


def test_a_prior_of_huge_precision_returns_its_mean():
    rng = np.random.default_rng(4)
    structure, X, Y = flat_problem(rng)
    mean = rng.normal(size=N)
    link = Link(offset=mean, scale=np.full(N, 1e-12))
    found = solve(native_python_problem(structure, X, Y), SDM(), C=1.0, regularizer=Own(link))
    np.testing.assert_allclose(found.weights, mean, atol=1e-9)


def test_selected_weights_and_l2_are_values_of_the_link():
    rng = np.random.default_rng(6)
    kept = rng.random(N) < 0.5
    link = Selected(np.where(kept, 3.0, 0.0)).link
    u = rng.normal(size=N)
    np.testing.assert_array_equal(link.weights(u), np.where(kept, u, 0.0))
    assert L2().link.conjugate(u) == pytest.approx(0.5 * u @ u)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (Link(lower=0.1), "lower thresholds"),
        (Link(upper=-0.1), "upper thresholds"),
        (Link(upper=math.nan), "upper thresholds"),
        (Link(scale=-1.0), "scales"),
        (Link(scale=np.full(N, math.inf)), "scales"),
        (Link(scale=np.ones(N + 1)), "one for each weight"),
        (Link(offset=1.0), "offset other than 0 for each"),
        (Link(offset=np.full(N, math.nan)), "finite offsets"),
        (Link(least=1.0), "leave out 0"),
        (Link(least=np.ones(N), most=np.zeros(N)), "above the largest"),
        (Link(most=math.nan), "largest weight"),
    ],
)
def test_what_is_no_link_is_refused(link, message):
    structure, X, Y = flat_problem(np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        solve(native_python_problem(structure, X, Y), SDM(), C=1.0, regularizer=Own(link))


@pytest.mark.parametrize("value", ["a", [1.0, "b"], [[1.0], [1.0, 2.0]], {}, object()])
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match="offset of a link must be a number or an array"):
        Link(offset=value).native()


def test_lists_are_arrays_and_matrices_are_refused():
    assert Link(scale=[1.0, 2.0]).native() == Link(scale=np.array([1.0, 2.0])).native()
    with pytest.raises(ValueError, match="scale of a link has 2 dimensions"):
        Link(scale=np.ones((2, 2))).native()


def test_a_cost_to_move_goes_with_one_number_for_all():
    structure, X, Y = flat_problem(np.random.default_rng(0))
    problem = native_python_problem(structure, X, Y)
    with pytest.raises(ValueError, match="cost-to-move"):
        _native.Engine(problem, 1.0, False, False, link=Link(scale=np.ones(N)).native(), nu=1.0)
    with pytest.raises(ValueError, match="one-dimensional"):
        _native.Link(scale=np.ones((2, 3)))
    assert SAP().supports(ElasticNet(0.1, 0.9))


def test_a_warm_start_under_another_link():
    rng = np.random.default_rng(9)
    structure, X, Y = flat_problem(rng)
    problem = native_python_problem(structure, X, Y)
    first = solve(problem, SDM(), C=1.0, gap=1e-6)
    for link in links(rng).values():
        asked = {"C": 1.0, "gap": 1e-5, "max_passes": 20_000, "regularizer": Own(link)}
        went_on = solve(problem, SDM(), engine=first.engine, **asked)
        fresh = solve(problem, SDM(), **asked)
        assert went_on.certificate.primal == pytest.approx(fresh.certificate.primal, rel=3e-5)
