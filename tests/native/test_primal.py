"""A w without multipliers: oracles, planes, projections and subgradient steps, by brute force."""

from __future__ import annotations

import dataclasses
import functools
import signal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kit
from maxmargin._native import Primal, SubgradientOptions
from maxmargin.errors import StructureError
from native_problems import (
    Flat,
    everyone,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)
from qp_reference import list_planes

PRECISIONS = [pytest.param(True, id="float32"), pytest.param(False, id="float64")]
LENGTHS = (3, 1, 4, 2, 3, 4, 2)
WEIGHTS = np.array([0.5, 3.0, 1.0, 0.0, 2.25, 0.01, 1.5])


class Instance(kit.Instance):
    """With what is moved for it.

    Features and costs are random numbers, so that no two outputs have the same F, even at w = 0.
    """

    def primal(self, single=False, w=None):
        primal = Primal(self.problem, single)
        if w is not None:
            write(primal, self.padded(w, single))
        return primal


def chain(seed=0, weighted=False, **options):
    shape = {"n_labels": 3, "lengths": LENGTHS, "features": "values", "n_sparse": 4, "cost": True}
    case = random_case(np.random.default_rng(seed), **{**shape, **options})
    return Instance.of_case(case, WEIGHTS if weighted else None)


def flat(seed=0):
    return Instance.of_structure(*flat_problem(np.random.default_rng(seed)))


MAKERS = {
    "chain": functools.cache(chain),
    "weighted": functools.cache(lambda seed=0: chain(seed, weighted=True)),
    "python": functools.cache(flat),
}
#: (instance, single) of all that there is.
KINDS = [
    pytest.param(name, single, id=f"{name}-{'float32' if single else 'float64'}")
    for name in MAKERS
    for single in (True, False)
    if not (name == "python" and single)
]


def write(primal, weights):
    primal.weights[:] = weights
    primal.written()


def slack(single):
    return {"rtol": 2e-5, "atol": 2e-5} if single else {"rtol": 1e-10, "atol": 1e-10}


def random_w(instance, seed, scale=0.3):
    return scale * np.random.default_rng(seed).normal(size=instance.d)


# --- hinges ---


@pytest.mark.parametrize(("name", "single"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_hinge(name, single, seed):
    instance = MAKERS[name](seed)
    for w in (np.zeros(instance.d), random_w(instance, seed), random_w(instance, seed, 5.0)):
        primal = instance.primal(single, w)
        expected = instance.hinge(w)
        result = primal.hinge()
        np.testing.assert_allclose(result.hinge, expected, **slack(single))
        assert result.oracle_calls == instance.n
        assert result.violated == sum(instance.oracle(i, w)[0] > 0 for i in range(instance.n))
        assert not result.interrupted
        # the w is the 4-byte one, the sums are 8-byte
        present = instance.unpadded(primal.weights)
        np.testing.assert_allclose(primal.exact_hinge(), instance.hinge(present), rtol=1e-12)
        assert primal.exact_hinge(2) == primal.exact_hinge()


@pytest.mark.parametrize(("name", "single"), KINDS)
def test_hinge_of_some_examples(name, single):
    instance = MAKERS[name](1)
    w = random_w(instance, 1)
    primal = instance.primal(single, w)
    for which in ([], [4], [2, 0], [1, 1, 5], range(instance.n)):
        result = primal.hinge_of(np.array(which, np.uint32))
        np.testing.assert_allclose(result.hinge, instance.hinge(w, which), **slack(single))
        assert result.oracle_calls == len(which)


def test_a_written_w_is_seen():
    instance = chain()
    primal = instance.primal()
    for seed in range(3):
        w = random_w(instance, seed)
        write(primal, instance.padded(w, False))
        assert primal.hinge().hinge == pytest.approx(instance.hinge(w), rel=1e-12)
        assert primal.hinge_of(everyone(instance.n)).hinge == primal.hinge().hinge


# --- one plane of all examples, and one of each ---


@pytest.mark.parametrize(("name", "single"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_sweep(name, single, seed):
    instance = MAKERS[name](seed)
    primal = instance.primal(single)
    for w in (np.zeros(instance.d), random_w(instance, seed), random_w(instance, seed, 3.0)):
        write(primal, instance.padded(w, single))
        found = [instance.oracle(i, w) for i in range(instance.n)]
        F, delta, loss = (np.array(part) for part in zip(*found, strict=True))
        result = primal.sweep()
        np.testing.assert_allclose(
            instance.unpadded(primal.plane), instance.share @ delta, **slack(single)
        )
        np.testing.assert_allclose(result.loss, instance.share @ loss, rtol=1e-6)
        np.testing.assert_allclose(result.hinge, instance.share @ F, **slack(single))
        assert (result.oracle_calls, result.violated) == (instance.n, int((F > 0).sum()))
        np.testing.assert_array_equal(primal.weights, instance.padded(w, single))


@pytest.mark.parametrize(("name", "single"), KINDS)
def test_threads_change_nothing(name, single):
    instance = MAKERS[name](2)
    primal = instance.primal(single, random_w(instance, 2))
    one, plane = primal.sweep(1), primal.plane.copy()
    least = np.zeros(instance.n)
    cuts = primal.cuts(least, 1)[:6]
    for threads in (2, 3, 50):
        many = primal.sweep(threads)
        assert (many.loss, many.hinge) == (one.loss, one.hinge)
        np.testing.assert_array_equal(primal.plane, plane)
        assert primal.hinge(threads).hinge == one.hinge
        for mine, theirs in zip(cuts, primal.cuts(least, threads)[:6], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("name", "single"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_cuts(name, single, seed):
    instance = MAKERS[name](seed)
    primal = instance.primal(single)
    for w in (np.zeros(instance.d), random_w(instance, seed), random_w(instance, seed, 3.0)):
        write(primal, instance.padded(w, single))
        expected = [instance.oracle(i, w) for i in range(instance.n)]
        example, loss, F, indptr, indices, values, result = primal.cuts(np.zeros(instance.n))
        wanted = [i for i in range(instance.n) if expected[i][0] > 0 and instance.share[i] > 0]
        assert example.tolist() == wanted
        assert (indptr[0], indptr[-1], len(indptr)) == (0, len(indices), len(wanted) + 1)
        for row, i in enumerate(wanted):
            columns = indices[indptr[row] : indptr[row + 1]]
            assert (np.diff(columns) > 0).all()
            entries = values[indptr[row] : indptr[row + 1]]
            assert entries.all()
            dense = np.zeros(len(primal.weights))
            dense[columns] = entries
            np.testing.assert_allclose(instance.unpadded(dense), expected[i][1], **slack(single))
            np.testing.assert_allclose(F[row], expected[i][0], **slack(single))
            np.testing.assert_allclose(loss[row], expected[i][2], rtol=1e-6)
        np.testing.assert_allclose(result.hinge, instance.hinge(w), **slack(single))


@pytest.mark.parametrize(("name", "single"), KINDS)
def test_cuts_above_a_bound(name, single):
    instance = MAKERS[name](3)
    primal = instance.primal(single, random_w(instance, 3))
    example, _, F, *_ = primal.cuts(np.zeros(instance.n))
    assert len(example) >= 3
    # not above its own F, but above a little less
    least = np.zeros(instance.n)
    least[example] = F
    kept, *_, indptr, indices, values, result = primal.cuts(least)
    assert len(kept) == len(indices) == len(values) == 0
    assert indptr.tolist() == [0]
    assert result.hinge == primal.hinge().hinge  # the bounds choose rows only
    chosen = example[::2]
    least[chosen] = np.nextafter(least[chosen], 0)
    kept, _, again, *_ = primal.cuts(least)
    np.testing.assert_array_equal(kept, chosen)
    np.testing.assert_array_equal(again, F[::2])
    assert len(primal.cuts(np.full(instance.n, np.inf))[0]) == 0


def test_cuts_need_a_bound_for_each_example():
    primal = chain().primal()
    for wrong in (np.zeros(len(LENGTHS) - 1), np.zeros(len(LENGTHS) + 1), np.zeros(0)):
        with pytest.raises(ValueError, match="a bound for each example"):
            primal.cuts(wrong)
    with pytest.raises(TypeError):
        primal.cuts("bounds")


@pytest.mark.parametrize("name", MAKERS)
def test_example_weights(name):
    instance = MAKERS[name]()
    np.testing.assert_array_equal(instance.primal().example_weights, instance.share)


# --- the L1 ball ---


def nearest(v, radius):
    """Return the nearest point of the L1 ball: sort, and take the last θ that leaves its entry."""
    if np.abs(v).sum() <= radius:
        return v.copy()
    size = np.sort(np.abs(v))[::-1]
    theta = (np.cumsum(size) - radius) / np.arange(1, len(size) + 1)
    theta = theta[np.flatnonzero(size > theta)[-1]]
    return np.sign(v) * np.maximum(np.abs(v) - theta, 0)


BALL = {single: Primal(chain().problem, single) for single in (True, False)}


def project(v, radius, single):
    """Project some weights, all others zero; return them, and θ."""
    primal = BALL[single]
    full = np.zeros(len(primal.weights))
    places = np.linspace(0, len(full) - 1, len(v)).astype(int)
    full[places] = v
    write(primal, full)
    theta = primal.project(radius)
    out = primal.weights.astype(float)
    assert not np.delete(out, places).any()
    return out[places], theta


vectors = hnp.arrays(
    np.float64,
    st.integers(1, min(len(primal.weights) for primal in BALL.values())),
    elements=st.one_of(
        st.floats(-100, 100, width=32),
        st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]),  # ties
    ),
)


@pytest.mark.parametrize("single", PRECISIONS)
@settings(max_examples=150, deadline=None)
@given(v=vectors, radius=st.floats(0.01, 300.0))
@example(v=np.array([3.0]), radius=1.0)
@example(v=np.array([-3.0]), radius=3.0)
@example(v=np.ones(20), radius=1.0)
@example(v=np.array([1.0, -1.0, 1.0, 0.0]), radius=3.0)
@example(v=np.array([2.0**-17, -(2.0**-16)]), radius=1.0)
@example(v=np.zeros(3), radius=0.01)
def test_projection(single, v, radius):
    w, theta = project(v, radius, single)
    size = 1 + np.abs(v).max()
    tolerance = (4e-7 if single else 1e-14) * size * len(v)
    np.testing.assert_allclose(w, nearest(v, radius), rtol=0, atol=tolerance)
    norm, before = np.abs(w).sum(), np.abs(v).sum()
    if theta == 0:
        assert before <= radius + tolerance
        np.testing.assert_array_equal(w, v)
    else:
        assert before > radius - tolerance
        assert norm == pytest.approx(radius, abs=tolerance)
        np.testing.assert_allclose(
            np.abs(w), np.maximum(np.abs(v) - theta, 0), rtol=0, atol=tolerance
        )
    assert ((w == 0) | (np.sign(w) == np.sign(v))).all()
    # once more: nothing but rounding is left to do
    again, _ = project(w, radius, single)
    np.testing.assert_allclose(again, w, rtol=0, atol=tolerance)
    inside, theta = project(w, radius + tolerance, single)
    assert theta == 0
    np.testing.assert_array_equal(inside, w)


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("radius", [0.5, 30.0, 1e4])
def test_projection_of_many_weights(single, radius):
    rng = np.random.default_rng(0)
    lengths = (10,) * 4
    case = random_case(rng, n_labels=40, lengths=lengths, features="values", n_sparse=500)
    primal = Primal(case.problem(), single)
    v = rng.standard_cauchy(len(primal.weights)).clip(-100, 100).astype(np.float32).astype(float)
    v[rng.random(len(v)) < 0.5] = 0.0
    write(primal, v)
    primal.project(radius)
    expected = nearest(v, radius)
    np.testing.assert_allclose(primal.weights, expected, rtol=0, atol=2e-5 if single else 1e-11)
    rounding = np.count_nonzero(expected) * np.finfo(primal.weights.dtype).eps * 100
    norm = np.abs(primal.weights.astype(float)).sum()
    assert norm == pytest.approx(radius, rel=1e-13, abs=rounding)
    sure = np.abs(expected) > 1e-4
    np.testing.assert_array_equal(primal.weights[sure] != 0, True)
    assert np.count_nonzero(primal.weights) <= np.count_nonzero(expected) + (5 if single else 0)


def test_projections_one_after_the_other():
    """The places that are not zero are remembered between projections, and learnt anew."""
    rng = np.random.default_rng(1)
    primal = BALL[False]
    v = rng.normal(size=len(primal.weights))
    write(primal, v)
    for radius in (20.0, 5.0, 7.0, 1.0):
        v = nearest(v, radius)
        primal.project(radius)
        np.testing.assert_allclose(primal.weights, v, rtol=0, atol=1e-12)
    v = rng.normal(size=len(v))
    write(primal, v)
    primal.project(2.0)
    np.testing.assert_allclose(primal.weights, nearest(v, 2.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [0.3, 1.7, 1e6 / 3])
def test_a_tiny_radius_leaves_finite_weights(size):
    w, theta = project(np.full(len(BALL[False].weights), size), 1e-17, False)
    assert np.isfinite(theta)
    assert np.isfinite(w).all()
    assert np.abs(w).sum() <= 1e-9


@pytest.mark.parametrize("size", [100.0, 1e4, 1e6])
def test_large_4_byte_weights_come_into_the_ball(size):
    rng = np.random.default_rng(0)
    for _ in range(20):
        w, _ = project(np.float32(size * (1 + rng.random(30) / size)), 0.1, True)
        assert np.abs(w).sum() <= 0.1 * (1 + 1e-5)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, -np.inf])
def test_bad_radius(radius):
    with pytest.raises(ValueError, match="radius must be positive"):
        chain().primal().project(radius)


# --- subgradient passes ---


@dataclasses.dataclass
class Slow:
    """The formulas of subgradient_pass, one after the other."""

    instance: Instance
    w: np.ndarray
    done: int = 0
    total: float | np.ndarray = 0.0  # Σ t w_t
    mass: float = 0.0

    def run(self, order, *, lambda_=0.0, eta=1.0, radius=0.0, each=False, average=False):
        """Make a pass; return (plane, loss, hinge, violated)."""
        instance = self.instance
        plane, loss, hinge, violated = np.zeros(instance.d), 0.0, 0.0, 0
        for i in order:
            share = instance.share[i]
            F, delta, its_loss = instance.oracle(i, self.w)
            hinge += share * F
            if lambda_ > 0:
                step = eta / (1 + eta * lambda_ * self.done)
            else:
                step = eta / np.sqrt(1 + self.done / instance.n)
            self.done += 1
            self.w = (1 - step * lambda_) * self.w
            if F > 0 and share > 0:
                self.w = self.w + step * share * delta
                plane += share * delta
                loss += share * its_loss
                violated += 1
                if radius > 0 and each:
                    self.w = nearest(self.w, radius)
            if average:
                self.total = self.total + self.done * self.w
                self.mass += self.done
        if radius > 0:
            self.w = nearest(self.w, radius)
        return plane, loss, hinge, violated


OPTIONS = {
    "plain": {"eta": 0.2},
    "plain-average": {"eta": 0.2, "average": True},
    "decay": {"lambda_": 0.1, "eta": 1.0},
    "decay-average": {"lambda_": 0.1, "eta": 1.0, "average": True},
    "pegasos": {"lambda_": 0.5, "eta": 2.0},
    "pegasos-average": {"lambda_": 0.5, "eta": 2.0, "average": True},
    # 49 / 49 is below 1 in 8-byte numbers: what is left of w is 1e-16 of it
    "nearly-pegasos": {"lambda_": 1 / 49, "eta": 49.0, "average": True},
    "folding": {"lambda_": 0.5, "eta": 2.0 * (1 - 1e-8), "average": True},
    "ball": {"eta": 0.5, "radius": 3.0},
    "ball-each": {"eta": 0.5, "radius": 3.0, "each": True},
    "small-ball-each": {"eta": 0.1, "radius": 0.4, "each": True},
    "large-ball": {"eta": 0.1, "radius": 1e4, "each": True},
}


@pytest.mark.parametrize(("name", "single"), KINDS)
@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize("start", ["zero", "somewhere"])
def test_subgradient_passes(name, single, how, start):
    instance, options = MAKERS[name](5), OPTIONS[how]
    w = np.zeros(instance.d) if start == "zero" else random_w(instance, 5, 0.05)
    w = instance.unpadded(instance.padded(w, single))
    primal, slow = instance.primal(single, w), Slow(instance, w)
    rng = np.random.default_rng(5)
    native = SubgradientOptions(**options)
    tolerance = {"rtol": 1e-4, "atol": 2e-4} if single else {"rtol": 1e-8, "atol": 1e-9}
    for _ in range(4):
        order = rng.permutation(instance.n).astype(np.uint32)
        result = primal.subgradient_pass(order, native, float(slow.done))
        plane, loss, hinge, violated = slow.run(order, **options)
        np.testing.assert_allclose(instance.unpadded(primal.weights), slow.w, **tolerance)
        np.testing.assert_allclose(instance.unpadded(primal.plane), plane, **slack(single))
        np.testing.assert_allclose(result.loss, loss, rtol=1e-6)
        np.testing.assert_allclose(result.hinge, hinge, **tolerance)
        assert (result.oracle_calls, result.violated) == (instance.n, violated)
        if options.get("average"):
            mean = slow.total / slow.mass
            np.testing.assert_allclose(instance.unpadded(primal.average()), mean, **tolerance)
        if "radius" in options:
            norm = np.abs(primal.weights.astype(float)).sum()
            assert norm <= options["radius"] * (1 + 1e-5)
        # the scale is folded into w: all others read it as it is
        np.testing.assert_allclose(
            primal.hinge().hinge, instance.hinge(slow.w), **{**tolerance, "atol": 1e-3}
        )


def test_without_a_pass_the_average_is_w():
    instance = chain()
    w = random_w(instance, 0)
    primal = instance.primal(False, w)
    np.testing.assert_array_equal(primal.average(), primal.weights)
    primal.subgradient_pass(everyone(instance.n), SubgradientOptions(eta=0.1))
    np.testing.assert_array_equal(primal.average(), primal.weights)  # none was kept


def test_pegasos_forgets_w_but_not_the_average():
    instance = chain(7)
    w = random_w(instance, 7, 2.0)
    primal, slow = instance.primal(False, w), Slow(instance, w)
    order, first = everyone(instance.n), everyone(1)
    gentle = {"lambda_": 0.01, "eta": 0.5, "average": True}
    primal.subgradient_pass(order, SubgradientOptions(**gentle))
    slow.run(order, **gentle)
    # η λ = 1 at t = 0: w becomes η Δf
    pegasos = {"lambda_": 0.5, "eta": 2.0, "average": True}
    F, delta, _ = instance.oracle(0, slow.w)
    assert F > 0
    primal.subgradient_pass(first, SubgradientOptions(**pegasos), 0.0)
    np.testing.assert_allclose(instance.unpadded(primal.weights), 2.0 * delta, rtol=0, atol=1e-12)
    slow.done = 0
    slow.run(first, **pegasos)
    for done in (1, 1 + instance.n):
        mean = slow.total / slow.mass
        np.testing.assert_allclose(instance.unpadded(primal.average()), mean, rtol=0, atol=1e-11)
        primal.subgradient_pass(order, SubgradientOptions(**pegasos), float(done))
        slow.run(order, **pegasos)
    np.testing.assert_allclose(instance.unpadded(primal.weights), slow.w, rtol=0, atol=1e-11)


def test_later_steps_are_shorter():
    # From the same w, the first step after `done` others.
    instance = chain(2)
    _, delta, _ = instance.oracle(0, np.zeros(instance.d))
    for done in (0, 3, 700):
        primal = instance.primal()
        primal.subgradient_pass(everyone(1), SubgradientOptions(eta=0.7), float(done))
        step = 0.7 / np.sqrt(1 + done / instance.n)
        np.testing.assert_allclose(instance.unpadded(primal.weights), step * delta, rtol=1e-12)
        primal = instance.primal()
        options = SubgradientOptions(eta=0.7, lambda_=0.2)
        primal.subgradient_pass(everyone(1), options, float(done))
        step = 0.7 / (1 + 0.7 * 0.2 * done)
        np.testing.assert_allclose(instance.unpadded(primal.weights), step * delta, rtol=1e-12)


def test_a_pass_over_nothing_does_nothing():
    instance = chain()
    primal = instance.primal(False, random_w(instance, 0))
    before = primal.weights.copy()
    result = primal.subgradient_pass(everyone(0), SubgradientOptions(lambda_=0.1, average=True))
    assert (result.oracle_calls, result.hinge, result.loss) == (0, 0.0, 0.0)
    np.testing.assert_array_equal(primal.weights, before)
    np.testing.assert_array_equal(primal.average(), before)
    assert not primal.plane.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lambda_": -0.1}, "lambda must not be negative"),
        ({"lambda_": np.nan}, "lambda must not be negative"),
        ({"lambda_": np.inf}, "lambda must not be negative"),
        ({"eta": 0.0}, "eta must be positive"),
        ({"eta": -1.0}, "eta must be positive"),
        ({"eta": np.inf}, "eta must be positive"),
        ({"eta": np.nan}, "eta must be positive"),
        ({"eta": 2.0, "lambda_": 0.51}, "eta \\* lambda at most 1"),
        ({"radius": -1.0}, "radius must not be negative"),
        ({"radius": np.inf}, "radius must not be negative"),
        ({"radius": np.nan}, "radius must not be negative"),
        ({"radius": 1.0, "average": True}, "average of projected iterates"),
        ({"radius": 1.0, "lambda_": 0.1}, "do not go together"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        SubgradientOptions(**options)


def test_options_have_names():
    with pytest.raises(TypeError):
        SubgradientOptions(0.1)


def test_examples_out_of_range():
    instance = chain()
    primal = instance.primal()
    for order in ([instance.n], [0, 1, 2**32 - 1]):
        wrong = np.array(order, np.uint32)
        with pytest.raises(ValueError, match="out of range"):
            primal.subgradient_pass(wrong, SubgradientOptions())
        with pytest.raises(ValueError, match="out of range"):
            primal.hinge_of(wrong)
    for done in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="done must not be negative"):
            primal.subgradient_pass(everyone(1), SubgradientOptions(), done)
    assert not primal.weights.any()


def test_problems_that_cannot_be_learnt():
    with pytest.raises(ValueError, match="8-byte weights only"):
        Primal(flat().problem, True)
    case = random_case(np.random.default_rng(0))
    with pytest.raises(ValueError):
        Primal(case.problem(labels=None), False)


def test_the_problem_stays_alive():
    instance = chain()
    expected = instance.hinge(np.zeros(instance.d))
    primal = Primal(chain().problem, False)  # nobody else holds the problem
    weights, plane = primal.weights, primal.plane
    assert primal.hinge().hinge == pytest.approx(expected)
    assert not primal.solves(instance.problem)
    del primal  # the views hold what they show
    assert not weights.any()
    assert not plane.any()
    mine = instance.primal()
    assert mine.solves(instance.problem)
    assert mine.nbytes >= 2 * mine.weights.nbytes


# --- states ---


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("average", [True, False])
def test_a_restored_state_goes_on_the_same(single, average):
    instance = chain(8)
    options = SubgradientOptions(lambda_=0.05, eta=1.0, average=average)
    order = everyone(instance.n)
    one, two = instance.primal(single), instance.primal(single)
    one.subgradient_pass(order, options)
    state = one.state()
    two.subgradient_pass(order[::-1].copy(), options)  # something to be forgotten
    two.restore(state)
    for k in range(1, 4):
        for name, array in one.state().items():
            assert np.asarray(two.state()[name]).tobytes() == np.asarray(array).tobytes(), name
        np.testing.assert_array_equal(one.average(), two.average())
        for primal in (one, two):
            primal.subgradient_pass(order, options, float(k * instance.n))


@pytest.mark.parametrize("each", [False, True])
def test_a_restored_state_goes_on_in_the_ball(each):
    """Up to rounding: the sizes may be added up in another order."""
    instance = chain(8)
    options = SubgradientOptions(eta=0.5, radius=2.0, each=each)
    one, two = instance.primal(), instance.primal()
    one.subgradient_pass(everyone(instance.n), options)
    two.restore(one.state())
    for k in range(1, 4):
        for primal in (one, two):
            primal.subgradient_pass(everyone(instance.n), options, float(k * instance.n))
        np.testing.assert_allclose(one.weights, two.weights, rtol=0, atol=1e-13)


def test_a_state_is_a_copy():
    instance = chain()
    primal = instance.primal(False, random_w(instance, 0))
    state = primal.state()
    before = state["weights"].copy()
    primal.subgradient_pass(everyone(instance.n), SubgradientOptions())
    np.testing.assert_array_equal(state["weights"], before)
    assert (primal.weights != before).any()


@pytest.mark.parametrize("single", PRECISIONS)
@pytest.mark.parametrize("name", ["weights", "sums", "masses"])
def test_damaged_states(single, name):
    instance = chain(9)
    primal = instance.primal(single)
    primal.subgradient_pass(everyone(instance.n), SubgradientOptions(lambda_=0.1, average=True))
    state, average = primal.state(), primal.average()
    array = state[name]
    not_finite = [array.copy(), array.copy()]
    not_finite[0][-1], not_finite[1][0] = np.nan, -np.inf
    damaged = [
        array[:-1],
        np.append(array, array[:1]),
        array.astype(complex),
        array.astype(np.int64),
        array.astype(np.float32 if array.dtype == np.float64 else np.float64),
        array.reshape(1, -1),
        np.array(["text"] * len(array)),
        None,
        *not_finite,
    ]
    for wrong in damaged:
        with pytest.raises(ValueError, match="checkpoint"):
            primal.restore({**state, name: wrong})
    with pytest.raises(ValueError, match=f'no array "{name}"'):
        primal.restore({key: value for key, value in state.items() if key != name})
    # nothing was taken from any of them
    np.testing.assert_array_equal(primal.state()["weights"], state["weights"])
    np.testing.assert_array_equal(primal.average(), average)


def masses_without_sums():
    primal = chain().primal()
    state = {**primal.state(), "sums": np.zeros(0), "masses": np.ones(2)}
    try:
        primal.restore(state)
    except ValueError:
        return
    assert np.isfinite(primal.average()).all()


def test_masses_without_sums_are_refused():
    run_isolated(__file__, "masses_without_sums")


# --- stopping ---


def long_order():
    """A problem, and an order over it that would take minutes."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, 120)
    case = random_case(rng, n_labels=12, lengths=lengths, features="values", n_sparse=100)
    return Primal(case.problem(), False), np.tile(everyone(120), 50_000)


@pytest.mark.parametrize("how", ["decay-average", "ball"])
def test_a_deadline_ends_a_pass(how):
    primal, order = long_order()
    options = SubgradientOptions(**OPTIONS[how])
    result = primal.subgradient_pass(order, options, 0.0, 0.1)
    assert result.interrupted
    assert 0 < result.oracle_calls < len(order)
    assert np.isfinite(primal.weights).all()
    if how == "ball":  # projected all the same
        assert np.abs(primal.weights).sum() <= OPTIONS[how]["radius"] * (1 + 1e-9)
    result = primal.subgradient_pass(everyone(120), options, float(result.oracle_calls))
    assert not result.interrupted
    assert result.oracle_calls == 120


@pytest.mark.parametrize("call", ["sweep", "cuts"])
def test_a_deadline_that_has_passed(call):
    primal, _ = long_order()
    arguments = (np.zeros(120),) if call == "cuts" else ()
    found = getattr(primal, call)(*arguments, 1, 0.0)
    result = found[-1] if call == "cuts" else found
    assert result.interrupted
    assert result.oracle_calls < 120
    if call == "cuts":
        assert all(len(array) == 0 for array in (found[0], found[4], found[5]))
    assert not primal.plane.any()


def interrupted():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    primal, order = long_order()
    options = SubgradientOptions(lambda_=0.001, average=True)
    for call in (
        lambda: primal.subgradient_pass(order, options),
        lambda: primal.hinge_of(order),
        primal.hinge,
        lambda: primal.sweep(2),
        lambda: primal.cuts(np.zeros(120)),
        lambda: primal.exact_hinge(2),
    ):
        with pytest.raises(KeyboardInterrupt):
            kit.pressing(0.1, functools.partial(forever, call))
        assert np.isfinite(primal.weights).all()
        assert not primal.hinge().interrupted


def forever(call):
    while True:
        call()


def test_ctrl_c():
    run_isolated(__file__, "interrupted")


def test_an_oracle_that_raises():
    class Moody(Flat):
        fails = False

        def argmax(self, x, w, truth=None):
            if self.fails:
                raise RuntimeError("moody")
            return super().argmax(x, w, truth)

    structure, X, Y = flat_problem(np.random.default_rng(4))
    moody = Moody(structure.cost, 3)
    primal = Primal(native_python_problem(moody, X, Y), False)
    before = primal.sweep().hinge
    moody.fails = True
    for call in (
        primal.hinge,
        primal.exact_hinge,
        primal.sweep,
        lambda: primal.cuts(np.zeros(len(Y))),
        lambda: primal.hinge_of(everyone(2)),
        lambda: primal.subgradient_pass(everyone(2), SubgradientOptions()),
    ):
        with pytest.raises(StructureError, match="moody"):
            call()
    moody.fails = False
    assert primal.sweep().hinge == before


def test_an_oracle_that_raises_in_a_scaled_pass():
    """The w is that of the steps made, and the loss is not scaled any more."""

    class Moody(Flat):
        calls = 0

        def argmax(self, x, w, truth=None):
            self.calls += 1
            if self.calls == 4:
                raise RuntimeError("moody")
            return super().argmax(x, w, truth)

    structure, X, Y = flat_problem(np.random.default_rng(5))
    moody = Moody(structure.cost, 3)
    primal = Primal(native_python_problem(moody, X, Y), False)
    planes = list_planes(structure, X, Y)
    with pytest.raises(StructureError, match="moody"):
        primal.subgradient_pass(everyone(len(Y)), SubgradientOptions(lambda_=0.5, eta=1.0))
    slow = Slow(Instance(None, planes, np.ones(len(Y)), None, None), np.zeros(moody.n_features))
    slow.run(everyone(3), lambda_=0.5, eta=1.0)
    np.testing.assert_allclose(primal.weights, slow.w, rtol=0, atol=1e-12)
    w = primal.weights.copy()
    slacks = np.zeros(len(Y))
    np.maximum.at(slacks, planes.example, planes.loss - planes.delta @ w)
    assert primal.hinge().hinge == pytest.approx(slacks.sum(), rel=1e-9)
