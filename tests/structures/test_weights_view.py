"""The w that a user's methods see: one read-only array, made anew only if the old one was kept."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

from maxmargin import _native
from maxmargin._native import Engine, PassOptions, Primal
from maxmargin.links import Link
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.base import Structure
from native_problems import everyone, run_isolated

N_CLASSES, N_INPUTS, N = 4, 6, 12


class Watched(Structure):
    """Classes whose argmax calls `watch(w)` first."""

    n_features = N_CLASSES * N_INPUTS

    def __init__(self, watch):
        self.watch = watch

    def joint_feature(self, x, y):
        return np.arange(y * N_INPUTS, (y + 1) * N_INPUTS), x

    def loss(self, y, y_hat):
        return float(abs(y - y_hat))

    def argmax(self, x, w, truth=None):
        self.watch(w)
        values = w.reshape(N_CLASSES, N_INPUTS) @ x
        if truth is not None:
            values = values + np.abs(np.arange(N_CLASSES) - truth)
        return int(np.argmax(values))


class WatchedByLoss(Watched):
    """The same with grades."""

    def best_by_loss(self, x, w, truth):
        self.watch(w)
        return range(N_CLASSES)


def data():
    rng = np.random.default_rng(0)
    return list(rng.normal(size=(N, N_INPUTS))), rng.integers(0, N_CLASSES, N).tolist()


def engine_of(structure, C=0.5, **options):
    problem = _native.PythonProblem(PythonProblem(structure, *data()))
    return Engine(problem, C, single=False, factored=False, **options)


class Expecting:
    """Compares w with the weights of an engine at every call."""

    def __init__(self):
        self.calls = 0
        self.weights = None

    def __call__(self, w):
        self.calls += 1
        np.testing.assert_array_equal(w, self.weights)
        assert w.dtype == np.float64
        assert not w.flags.writeable


LINKS = {
    "identity": Link(),
    "elastic net": Link(-0.2, 0.3, 0.5),
    "elastic net, slow": Link(-0.2, 0.2, 0.5),
    "each its own": Link(
        np.linspace(-0.3, 0.0, Watched.n_features),
        np.linspace(0.0, 0.4, Watched.n_features),
        np.linspace(0.5, 2.0, Watched.n_features),
        np.linspace(-0.1, 0.1, Watched.n_features),
    ),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", [Watched, WatchedByLoss])
@pytest.mark.parametrize("keep", [False, True])
def test_values_are_those_of_the_engine_at_every_call(link, kind, keep):
    expect, kept = Expecting(), []

    def watch(w):
        expect(w)
        if keep:
            kept.append((w, w.copy()))

    slow = "slow" in link
    engine = engine_of(
        kind(watch),
        link=LINKS[link].native(),
        nu=3.0 if slow else 0.0,
        rescale="slack" if kind is WatchedByLoss else "margin",
    )
    expect.weights = engine.weights
    options = PassOptions(beta_steps=slow)
    for _ in range(3):
        engine.exact_pass(everyone(N), options)
        engine.cached_pass(everyone(N), options)
        engine.collect_pass(1)
        engine.cached_pass(everyone(N), options)
    engine.hinge()
    assert expect.calls >= 7 * N
    for w, copy in kept:
        np.testing.assert_array_equal(w, copy)
    if keep:
        assert len({copy.tobytes() for _, copy in kept}) > N  # else w hardly moved


@pytest.mark.parametrize("rescale", ["margin", "slack"])
def test_slack_rescaling_by_corners_sees_multiples_of_w(rescale):
    seen = []
    engine = engine_of(Watched(lambda w: seen.append((engine_w.copy(), w.copy()))), rescale=rescale)
    engine_w = engine.weights
    for _ in range(2):
        engine.exact_pass(everyone(N), PassOptions())
    multiples = set()
    for own, w in seen:
        if own.any():
            factor = (w @ own) / (own @ own)
            np.testing.assert_allclose(w, factor * own, rtol=1e-12)
            multiples.add(round(factor, 6))
    assert 1.0 in multiples
    assert (len(multiples) > 1) == (rescale == "slack")


def test_subgradient_steps_keep_w_as_a_multiple():
    X, Y = data()
    seen = []
    structure = Watched(lambda w: seen.append(w.copy()))
    primal = Primal(_native.PythonProblem(PythonProblem(structure, X, Y)), False, "margin")
    lambda_, eta = 0.1, 2.0
    w = np.zeros(structure.n_features)
    primal.subgradient_pass(
        everyone(N), _native.SubgradientOptions(lambda_=lambda_, eta=eta), done=0.0
    )
    assert len(seen) == N
    for i, shown in enumerate(seen):
        np.testing.assert_allclose(shown, w, rtol=1e-9, atol=1e-12)
        y_hat = Watched(lambda w: None).argmax(X[i], w, truth=Y[i])
        step = eta / (1 + eta * lambda_ * i)
        w *= 1 - step * lambda_
        w.reshape(N_CLASSES, N_INPUTS)[Y[i]] += step * X[i]
        w.reshape(N_CLASSES, N_INPUTS)[y_hat] -= step * X[i]
    np.testing.assert_allclose(primal.weights, w, rtol=1e-9, atol=1e-12)


# --- one array ---


def trained(watch):
    """Return an engine that has some multipliers, and whose oracle calls `watch`."""
    structure = Watched(lambda w: None)
    engine = engine_of(structure)
    engine.exact_pass(everyone(N), PassOptions())
    structure.watch = watch
    return engine


def test_the_same_array_while_w_does_not_change():
    kept = []
    trained(kept.append).collect_pass(1)
    assert len(kept) == N
    assert all(w is kept[0] for w in kept)


def test_no_new_array_where_nobody_keeps_the_old_one():
    addresses, versions = set(), set()

    def watch(w):
        addresses.add(w.ctypes.data)
        versions.add(w.tobytes())

    trained(watch).exact_pass(everyone(N), PassOptions())
    assert len(addresses) == 1
    assert len(versions) > 3


KEEPERS = {
    "the array": lambda w: w,
    "a slice": lambda w: w[3:9],
    "a slice of a slice": lambda w: w[3:9][::2],
    "a reshaped view": lambda w: w.reshape(N_CLASSES, N_INPUTS)[1:],
    "a view of another type": lambda w: w.view(type("Mine", (np.ndarray,), {})),
    "a memoryview": memoryview,
    "an array of its memory": np.frombuffer,
    "its base": lambda w: w.base,
}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_is_kept_never_changes(keeper):
    kept = []

    def watch(w):
        part = KEEPERS[keeper](w)
        kept.append((part, np.array(part)))

    trained(watch).exact_pass(everyone(N), PassOptions())
    for part, copy in kept:
        np.testing.assert_array_equal(np.asarray(part), copy)
    assert len({copy.tobytes() for _, copy in kept}) > 3


def test_it_cannot_be_made_writable():
    def watch(w):
        assert not w.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            w[0] = 1.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            w.flags.writeable = True
        with pytest.raises(ValueError, match="WRITEABLE"):
            w[:3].flags.writeable = True

    trained(watch).exact_pass(everyone(N), PassOptions())


def test_an_argmax_that_raises_keeps_its_w():
    seen = []

    def watch(w):
        if len(seen) == 3:
            seen.append(w.copy())
            raise RuntimeError("enough")
        seen.append(None)

    engine = trained(watch)
    with pytest.raises(ValueError, match="enough") as caught:
        engine.exact_pass(everyone(N), PassOptions())
    engine.exact_pass(everyone(N), PassOptions())
    frame = caught.value.__cause__.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    np.testing.assert_array_equal(frame.tb_frame.f_locals["w"], seen[3])


# --- memory ---


def test_arrays_are_freed():
    kept = []

    def watch(w):
        kept.append(weakref.ref(w))
        assert sys.getrefcount(w) < 12

    engine = trained(watch)
    engine.exact_pass(everyone(N), PassOptions())
    engine.collect_pass(1)
    assert len({id(r()) for r in kept}) == 1
    del engine
    gc.collect()
    assert all(r() is None for r in kept)


def test_arrays_that_were_kept_are_freed_with_what_kept_them():
    kept = []
    engine = trained(kept.append)
    engine.exact_pass(everyone(N), PassOptions())
    references = [weakref.ref(w) for w in kept]
    assert len({id(w) for w in kept}) > 3
    kept.clear()
    engine.collect_pass(1)
    kept.clear()
    del engine
    gc.collect()
    assert all(r() is None for r in references)


def outlives():
    """Read arrays after their engine is gone, and hold some at the end of the process."""
    kept = []
    engine = trained(lambda w: kept.append((w[2:], w.copy()[2:])))
    engine.exact_pass(everyone(N), PassOptions())
    engine.collect_pass(1)
    del engine
    gc.collect()
    other = [np.full(Watched.n_features, 7.0) for _ in range(1000)]  # take freed memory
    assert len(other) == 1000
    for w, copy in kept:
        np.testing.assert_array_equal(w, copy)
    Watched.at_exit = kept


def test_arrays_outlive_the_engine():
    run_isolated(__file__, "outlives")
