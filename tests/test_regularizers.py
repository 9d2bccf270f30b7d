"""Regularisers: what a user may write, and what comes of it."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin import SequenceTagger
from maxmargin._native import Link
from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball, Regularizer, make_regularizer
from maxmargin.solvers import SDM, SOLVERS, make_solver, solve
from maxmargin.solvers.refusals import check_regularizer
from native_problems import flat_problem, random_case
from qp_reference import list_planes


class Unlinked(Regularizer):
    pass


@pytest.mark.parametrize("written", [None, "l2", "L2", L2()])
def test_l2_in_all_its_spellings(written):
    assert make_regularizer(written) == L2()


def test_l2_links_by_identity():
    assert L2().link.native() == Link()


def test_a_description_is_kept_as_it_is():
    regularizer = Unlinked()
    assert make_regularizer(regularizer) is regularizer


@pytest.mark.parametrize("written", ["l1", "", 2, 1.0, True, L2, [], {}, object()])
def test_anything_else_is_refused_by_name(written):
    with pytest.raises(ValueError, match="regularizer must be") as caught:
        make_regularizer(written)
    assert repr(written) in str(caught.value)


@pytest.mark.parametrize("kind", [Regularizer, Unlinked])
def test_a_regularizer_without_link_is_not_compatible(kind):
    with pytest.raises(NotCompatibleError, match=kind.__name__):
        _ = kind().link


@pytest.mark.parametrize("kind", [Unlinked])
def test_training_refuses_what_it_cannot_link(kind):
    problem = random_case(np.random.default_rng(0)).problem()
    with pytest.raises(NotCompatibleError, match=kind.__name__):
        solve(problem, SDM(), C=1.0, regularizer=kind())


def test_l2_is_immutable():
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        L2().link = "other"


# --- what may be written ---


@pytest.mark.parametrize("wrong", [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf])
def test_sizes_are_finite_and_above_zero(wrong):
    with pytest.raises(ValueError, match=f"rho1 must be finite and above 0, got {wrong}"):
        L1(wrong)
    with pytest.raises(ValueError, match=f"rho1 must be finite and above 0, got {wrong}"):
        L1(wrong, nonnegative=True)
    with pytest.raises(ValueError, match=f"radius must be finite and above 0, got {wrong}"):
        L1Ball(wrong)


@pytest.mark.parametrize("wrong", ["1", None, [1.0]])
def test_sizes_are_numbers(wrong):
    for kind in (L1, L1Ball):
        with pytest.raises(TypeError):
            kind(wrong)


def test_descriptions():
    assert L1() == L1(1.0) == L1(rho1=1.0, nonnegative=False)
    assert L1(2.0) != L1(2.0, nonnegative=True)
    assert repr(L1(0.5, nonnegative=True)) == "L1(rho1=0.5, nonnegative=True)"
    assert L1Ball(3.0) == L1Ball(radius=3.0) != L1Ball(4.0)
    assert repr(L1Ball(3.0)) == "L1Ball(radius=3.0)"
    with pytest.raises(TypeError):
        L1Ball()
    for regularizer in (L1(), L1Ball(1.0)):
        assert make_regularizer(regularizer) is regularizer
        with pytest.raises(dataclasses.FrozenInstanceError):
            regularizer.radius = 2.0


@pytest.mark.parametrize("regularizer", [L1(), L1Ball(1.0)], ids=str)
def test_l1_has_no_link(regularizer):
    with pytest.raises(NotCompatibleError, match=type(regularizer).__name__):
        _ = regularizer.link


@pytest.mark.parametrize("written", [{"rho1": 0.3, "rho2": 0.0}, {"l1_ratio": 1.0}])
def test_a_net_without_l2_tells_what_solves_it(written):
    with pytest.raises(ValueError, match="linear program") as caught:
        ElasticNet(**written)
    message = str(caught.value)
    assert "L1()" in message
    name = re.search(r'solver="(\w+)"', message)[1]
    assert name == "lp"
    check_regularizer(make_solver(name), L1())  # and it does


# --- penalties ---


W = np.array([0.5, -2.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [
        (L2(), 0.5 * 5.25),
        (ElasticNet(0.3, 2.0), 0.3 * 3.5 + 5.25),
        (L1(2.0), 7.0),
        (L1(2.0, nonnegative=True), math.inf),
        (L1Ball(3.5), 0.0),
        (L1Ball(3.0), math.inf),
    ],
    ids=str,
)
def test_penalties(regularizer, expected, dtype):
    assert regularizer.penalty(W.astype(dtype)) == pytest.approx(expected, rel=1e-12)
    assert regularizer.penalty(np.zeros(4, dtype)) == 0
    assert regularizer.penalty(np.zeros(0, dtype)) == 0


def test_weights_that_are_not_negative():
    regularizer = L1(0.5, nonnegative=True)
    assert regularizer.penalty(np.abs(W)) == 0.5 * 3.5
    assert regularizer.penalty(np.array([-0.0, 1.0])) == 0.5
    assert regularizer.penalty(np.array([1.0, -1e-300])) == math.inf


def test_a_ball_forgives_rounding_only():
    regularizer = L1Ball(2.0)
    assert regularizer.penalty(np.array([1.0, -1.0 - 1e-6])) == 0
    assert regularizer.penalty(np.array([1.0, -1.0 - 1e-4])) == math.inf


def test_penalties_are_added_up_in_8_bytes():
    w = np.array([2.0**24, 1.0, 1.0], np.float32)  # whose sum has no place in 4 bytes
    assert L1().penalty(w) == 2.0**24 + 2
    assert ElasticNet(1.0, 1e-30).penalty(w) == pytest.approx(2.0**24 + 2, rel=1e-12)
    ones = np.full(4097, 1 + 2.0**-23, np.float32)
    assert L1Ball(4097.0).penalty(ones) == 0
    assert L2().penalty(np.full(3, 1e25, np.float32)) == pytest.approx(1.5e50, rel=1e-6)


# --- lower bounds ---


REGULARIZERS = [
    L2(),
    ElasticNet(0.0, 1.0),
    ElasticNet(0.4, 0.6),
    ElasticNet(2.0, 0.1),
    L1(0.7),
    L1(0.7, nonnegative=True),
    L1Ball(0.8),
    L1Ball(1.5),
]


def conjugate(regularizer, u):
    """Return Ω*(u) = max over w of u.w - Ω(w), for many u at once."""
    size = np.abs(u)
    if isinstance(regularizer, L2):
        return 0.5 * (u**2).sum(axis=-1)
    if isinstance(regularizer, ElasticNet):
        excess = np.maximum(size - regularizer.rho1, 0)
        return (excess**2).sum(axis=-1) / (2 * regularizer.rho2)
    if isinstance(regularizer, L1Ball):
        return regularizer.radius * size.max(axis=-1, initial=0)
    most = u.max(axis=-1, initial=0) if regularizer.nonnegative else size.max(axis=-1, initial=0)
    return np.where(most <= regularizer.rho1, 0.0, math.inf)


vectors = hnp.arrays(np.float64, st.integers(0, 6), elements=st.floats(-8, 8).map(float))
losses = st.one_of(st.just(0.0), st.floats(0, 20))


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@settings(max_examples=60, deadline=None)
@given(u=vectors, loss=losses)
def test_the_bound_is_the_best_over_all_shares(regularizer, u, loss):
    s = np.linspace(0, 1, 4001)
    values = s * loss - conjugate(regularizer, s[:, None] * u)
    bound = regularizer.dual_bound(u, loss)
    # a concave function whose slope is `loss` at most: the grid misses little
    assert values.max() - 1e-9 <= bound <= values.max() + loss * (s[1] - s[0]) + 1e-9
    assert bound >= 0
    narrow = regularizer.dual_bound(u.astype(np.float32), loss)
    assert narrow == pytest.approx(bound, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@settings(max_examples=60, deadline=None)
@given(u=vectors, loss=losses, seed=st.integers(0, 2**16))
def test_no_primal_is_below_the_bound(regularizer, u, loss, seed):
    """One example with one output but the truth: C Δf = u, C l = loss."""
    bound = regularizer.dual_bound(u, loss)
    rng = np.random.default_rng(seed)
    directions = [u, np.sign(u), *rng.normal(size=(20, len(u)))]
    if len(u):
        directions.append(np.where(np.arange(len(u)) == np.abs(u).argmax(), np.sign(u), 0))
        directions.append(np.where(np.arange(len(u)) == u.argmax(), 1.0, 0))
    for direction in directions:
        for size in (0.0, 0.01, 0.1, 0.3, 1.0, 3.0):
            w = size * direction
            if isinstance(regularizer, L1Ball):
                w = w / max(1.0, np.abs(w).sum() / regularizer.radius)
            primal = regularizer.penalty(w) + max(0.0, loss - float(u @ w))
            assert primal >= bound - 1e-9 * (1 + bound)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_bounds_of_a_problem(regularizer):
    """Random multipliers and random weights of a small problem with all outputs enumerated."""
    rng = np.random.default_rng(0)
    structure, X, Y = flat_problem(rng, n=6)
    planes, C = list_planes(structure, X, Y), 0.4
    best = 0.0
    for _ in range(50):
        alpha = rng.exponential(size=len(planes.loss)) ** 3
        mass = np.bincount(planes.example, alpha, 6)
        alpha *= rng.random(6)[planes.example] / mass[planes.example]  # the rest is the truth's
        u, loss = C * alpha @ planes.delta, C * alpha @ planes.loss
        bound = regularizer.dual_bound(u, float(loss))
        plain = loss - conjugate(regularizer, u)
        assert bound >= plain - 1e-12
        best = max(best, bound)
    assert best > 0
    for _ in range(300):
        w = rng.exponential() * rng.normal(size=planes.delta.shape[1])
        if isinstance(regularizer, L1Ball):
            w *= regularizer.radius * rng.random() / np.abs(w).sum()
        elif isinstance(regularizer, L1) and regularizer.nonnegative:
            w = np.abs(w)
        slacks = np.zeros(6)
        np.maximum.at(slacks, planes.example, planes.loss - planes.delta @ w)
        assert regularizer.penalty(w) + C * slacks.sum() >= best


def test_bounds_by_hand():
    u = np.array([3.0, -4.0])
    assert L2().dual_bound(u, 30.0) == pytest.approx(30 - 12.5)
    assert L2().dual_bound(u, 5.0) == pytest.approx(0.5)  # s = 5 / 25
    assert L1(2.0).dual_bound(u, 10.0) == pytest.approx(5.0)
    assert L1(2.0, nonnegative=True).dual_bound(u, 9.0) == pytest.approx(6.0)
    assert L1(2.0, nonnegative=True).dual_bound(-np.abs(u), 9.0) == 9.0
    assert L1(8.0).dual_bound(u, 10.0) == 10.0
    assert L1Ball(2.0).dual_bound(u, 10.0) == pytest.approx(2.0)
    assert L1Ball(2.0).dual_bound(u, 7.0) == 0
    for regularizer in REGULARIZERS:
        assert regularizer.dual_bound(np.zeros(3), 4.0) == 4.0
        assert regularizer.dual_bound(np.zeros(0), 4.0) == 4.0
        assert regularizer.dual_bound(u, 0.0) == pytest.approx(0, abs=1e-12)


# --- solvers and regularisers ---


TOGETHER = {
    "sdm": {"L2", "ElasticNet"},
    "sap": {"L2", "ElasticNet"},
    "subgradient": {"L2", "L1Ball"},
    "lp": {"L1", "nonnegative L1"},
    "extragradient": {"nonnegative L1"},
    "oneslack": {"L2"},
    "nslack": {"L2", "ElasticNet"},
    "interiorpoint": {"L2", "ElasticNet"},
    "bcfw": {"L2"},
}
KINDS = {
    "L2": L2(),
    "ElasticNet": ElasticNet(0.5, 0.5),
    "L1": L1(),
    "nonnegative L1": L1(nonnegative=True),
    "L1Ball": L1Ball(2.0),
}


def test_every_solver_is_in_the_table():
    assert TOGETHER.keys() == SOLVERS.keys()


@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_together(name, kind):
    problem = random_case(np.random.default_rng(0)).problem()
    options = {"C": 1.0, "regularizer": KINDS[kind], "max_passes": 2, "warn": False}
    if kind in TOGETHER[name]:
        result = solve(problem, make_solver(name), **options)
        assert result.certificate.primal >= result.certificate.dual * (1 - 1e-5)
        return
    with pytest.raises(NotCompatibleError) as caught:
        solve(problem, make_solver(name), **options)
    message = str(caught.value)
    assert name in message
    assert str(KINDS[kind]) in message
    # one that can do it is named behind the semicolon or the full stop
    advice = re.split(r"[;.] ", message, maxsplit=1)[1]
    named = [other for other in SOLVERS if re.search(rf"['\"]{other}['\"]", advice)]
    assert any(kind in TOGETHER[other] for other in named), message


def test_a_tagger_tells_what_goes_together():
    tagger = SequenceTagger(solver="sdm", regularizer=L1())
    with pytest.raises(NotCompatibleError, match="goes with solver 'lp'"):
        tagger.fit([[["a"]], [["b"]]], [["x"], ["y"]])


def test_a_regularizer_that_no_solver_does():
    for name in SOLVERS:
        with pytest.raises(NotCompatibleError, match="No solver does it"):
            check_regularizer(make_solver(name), Unlinked())


@pytest.mark.parametrize("regularizer", [L2(), ElasticNet(0.5, 0.5)])
def test_penalties_that_overflow_are_infinite(regularizer):
    """The driver refuses them; a RuntimeWarning of NumPy, which is an error here, helps nobody."""
    assert regularizer.penalty(np.full(3, 1e200)) == np.inf
