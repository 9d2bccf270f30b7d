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
from maxmargin.regularizers import (
    L1,
    L2,
    Bounded,
    ElasticNet,
    GaussianPrior,
    L1Ball,
    Nonnegative,
    Regularizer,
    make_regularizer,
)
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


def test_bounds_may_be_written_in_many_ways():
    assert Bounded() == Bounded(-math.inf, math.inf) == Bounded(None, None)
    assert Bounded(0, 1) == Bounded(0.0, 1.0) != Bounded(0, 2)
    assert Bounded([0, 1]) == Bounded(np.array([0.0, 1.0])) != Bounded([0, 2])
    assert Bounded(where=[1, 2]) == Bounded(where=(1, 2)) != Bounded(where="w")
    assert Nonnegative() != Bounded(0.0)
    assert hash(Bounded([0, 1])) == hash(Bounded([0.0, 1.0]))
    assert repr(Bounded(0.0)) == "Bounded(least=0.0, most=None, where=None)"
    assert repr(Nonnegative(where="w:*")) == "Nonnegative(where='w:*')"


def test_arrays_are_shown_by_what_tells_them_apart():
    shown = {repr(GaussianPrior(np.full(3, x))) for x in (0.0, 1.0, 1.0 + 1e-15)}
    assert len(shown) == 3
    assert all(len(text) < 80 for text in shown)
    assert repr(GaussianPrior()) == "GaussianPrior(mean=0.0, precision=1.0)"


def test_arrays_are_copied():
    mean, mask = np.zeros(3), np.ones(3, bool)
    prior, signs = GaussianPrior(mean), Nonnegative(where=mask)
    mean[0], mask[0] = 1.0, False
    assert prior.mean[0] == 0
    assert signs.where[0]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Bounded(1.0, 0.0), ValueError, "least is above most"),
        (lambda: Bounded(math.nan), ValueError, "least has a bound that is not a number"),
        (lambda: Bounded(math.inf), ValueError, "least is inf"),
        (lambda: Bounded(most=-math.inf), ValueError, "most is -inf"),
        (lambda: Bounded("0"), TypeError, "least must be a number, None or an array"),
        (lambda: Bounded(most=[[1.0]]), TypeError, "most must be a number"),
        (lambda: Bounded([0, 0], [1, 1, 1]), ValueError, "least has 2 entries and most has 3"),
        (lambda: Nonnegative(where=[0.5]), TypeError, "where must be None, a mask, indices"),
        (lambda: Nonnegative(where=3.0), TypeError, "where must be None"),
        (lambda: Nonnegative(where=np.ones((2, 2), bool)), TypeError, "where must be None"),
        (lambda: GaussianPrior([0, math.nan]), ValueError, r"not finite: nan \(entry 1\)"),
        (lambda: GaussianPrior([0, math.inf]), ValueError, "mean has an entry that is not"),
        (lambda: GaussianPrior("m"), TypeError, "mean must be a number or an array"),
        (lambda: GaussianPrior(np.eye(2)), TypeError, "mean must be a number or an array"),
        (lambda: GaussianPrior(precision=0.0), ValueError, "precision must be above 0"),
        (lambda: GaussianPrior(precision=[1, -1]), ValueError, r"above 0, got -1.0 \(entry 1\)"),
        (lambda: GaussianPrior(precision=math.nan), ValueError, "precision must be above 0"),
        (lambda: GaussianPrior(precision=None), TypeError, "precision must be a number"),
        (lambda: GaussianPrior([1, 2], [1, 2, 3]), ValueError, "mean has 2 entries and prec"),
        (lambda: GaussianPrior(precision=np.ones((2, 3))), ValueError, "2 x 3; expected a square"),
        (lambda: GaussianPrior(precision=[[1, 2], [3, 4]]), ValueError, "not symmetric"),
        (lambda: GaussianPrior(precision=[[1, math.nan], [0, 1]]), ValueError, "not finite"),
        (lambda: GaussianPrior(precision=np.eye(2001)), NotCompatibleError, "at most 2000"),
    ],
)
def test_what_makes_no_sense_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_what_only_an_estimator_can_do_is_refused_by_the_driver():
    problem = random_case(np.random.default_rng(0)).problem()
    for regularizer, message in (
        (Nonnegative(where="w"), "only an estimator can find"),
        (Bounded(0.0, where=[1]), "only an estimator can find"),
        (GaussianPrior(precision=np.eye(3)), "only StructuralSVM and the other estimators"),
        (GaussianPrior(np.zeros(3)), "one number, or one for each weight"),
        (GaussianPrior(0.5), "must give an offset other than 0 for each weight"),
    ):
        with pytest.raises(ValueError, match=message):
            solve(problem, SDM(), C=1.0, regularizer=regularizer)


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
        (Nonnegative(), math.inf),
        (Bounded(-2.0, 1.0), 0.5 * 5.25),
        (Bounded(-1.0, 1.0), math.inf),
        (GaussianPrior(precision=2.0), 5.25),
        (GaussianPrior(precision=2.0 * np.eye(5)), 5.25),
    ],
    ids=str,
)
def test_penalties(regularizer, expected, dtype):
    assert regularizer.penalty(W.astype(dtype)) == pytest.approx(expected, rel=1e-12)
    assert regularizer.penalty(np.zeros(5, dtype)) == 0
    if regularizer != GaussianPrior(precision=2.0 * np.eye(5)):
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
    Nonnegative(),
    Bounded(-0.5, 0.25),
    GaussianPrior(precision=2.5),
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
    if isinstance(regularizer, GaussianPrior):
        return 0.5 * (u**2).sum(axis=-1) / regularizer.precision
    if isinstance(regularizer, Nonnegative | Bounded):
        least, most = (0.0, None) if isinstance(regularizer, Nonnegative) else (-0.5, 0.25)
        w = np.clip(u, least, most)
        return (w * u - 0.5 * w**2).sum(axis=-1)
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
        elif regularizer == Nonnegative() or regularizer == L1(0.7, nonnegative=True):
            w = np.abs(w)
        elif isinstance(regularizer, Bounded):
            w = np.clip(w, -0.5, 0.25)
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


LINKED = {"Nonnegative", "Bounded", "GaussianPrior"}
TOGETHER = {
    "sdm": {"L2", "ElasticNet", *LINKED},
    "sap": {"L2", "ElasticNet"},
    "subgradient": {"L2", "L1Ball"},
    "lp": {"L1", "nonnegative L1"},
    "extragradient": {"nonnegative L1"},
    "oneslack": {"L2"},
    "nslack": {"L2", "ElasticNet", *LINKED},
    "dualcoordinate": {"L2", "ElasticNet", *LINKED},
    "interiorpoint": {"L2", "ElasticNet", *LINKED},
    "bcfw": {"L2"},
    "online": {"L2", "ElasticNet", *LINKED},
}
KINDS = {
    "L2": L2(),
    "ElasticNet": ElasticNet(0.5, 0.5),
    "L1": L1(),
    "nonnegative L1": L1(nonnegative=True),
    "L1Ball": L1Ball(2.0),
    "Nonnegative": Nonnegative(),
    "Bounded": Bounded(-0.5, 0.5),
    "GaussianPrior": GaussianPrior(precision=2.0),
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
