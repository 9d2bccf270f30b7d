"""OneSlack against SDM and an independent quadratic program, whatever its settings."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import signal
import sys
import warnings

import numpy as np
import pytest

import maxmargin
import qp_reference
from kit import Instance, Lazy, Pressed, quietly
from maxmargin import OneSlack, SequenceTagger, StructuralSVM
from maxmargin.errors import ConvergenceWarning, ModelFormatError, NotCompatibleError
from maxmargin.regularizers import L1, ElasticNet
from maxmargin.solvers import SDM, SOLVERS, solve
from native_problems import (
    Flat,
    brute_hinge,
    flat_problem,
    native_python_problem,
    random_case,
    run_isolated,
)
from qp_reference import list_planes

SETTINGS = [
    OneSlack(cuts=cuts, stabilize=stabilize, cache=cache, prune_after=prune_after)
    for cuts, stabilize, cache, prune_after in itertools.product(
        (1, 3), ("search", "proximal", "none"), (0, 3), (1, 20)
    )
]


def name_of(solver):
    return f"{solver.cuts}-{solver.stabilize}-{solver.cache}-{solver.prune_after}"


@functools.cache
def chain(seed=0, *, longest=4, weighted=False):
    rng = np.random.default_rng(seed)
    kind = ("values", "ones", "dense64")[seed % 3]
    lengths = rng.integers(1, longest + 1, 8)
    case = random_case(rng, lengths=lengths, features=kind, noise=0.4)
    if not weighted:
        return Instance.of_case(case)
    # Whole weights are repetitions, which the reference understands.
    share = rng.integers(0, 4, 8)
    X, Y = (
        [z for z, times in zip(Z, share, strict=True) for _ in range(times)]
        for Z in (case.X, case.Y)
    )
    problem = case.problem(example_weight=share.astype(float))
    return Instance(problem, list_planes(case.reference, X, Y), unpadded=case.unpadded)


@functools.cache
def flat(seed=0):
    structure, X, Y = flat_problem(np.random.default_rng(seed), n=10)
    return Instance.of_structure(structure, X, Y)


MAKERS = {
    "chain": chain,
    "short": functools.partial(chain, longest=1),
    "weighted": functools.partial(chain, weighted=True),
    "flat": flat,
}


def run(instance, solver=None, **options):
    options = {"C": 1.0, "dtype": "float64", "gap": 1e-7, "max_passes": 500, **options}
    return quietly(instance.problem, solver or OneSlack(cuts=3), **options)


def check(instance, result, C=1.0, tolerance=1e-6):
    """Compare with the optimum, and the weights and history with the certificate."""
    optimum, certificate = instance.optimum(C), result.certificate
    assert result.converged, result.stop_reason
    w = instance.unpadded(result.weights)
    assert certificate.primal == pytest.approx(instance.primal(w, C), rel=1e-9)
    assert optimum * (1 - 1e-8) <= certificate.primal <= optimum * (1 + tolerance)
    assert optimum * (1 - tolerance) <= certificate.dual <= optimum * (1 + 1e-8)
    check_history(result, optimum)


def check_history(result, optimum, rounding=1e-9):
    dual, primal = (result.history.column(name) for name in ("dual", "primal"))
    assert (np.diff(dual) >= 0).all()
    assert (dual <= optimum * (1 + rounding)).all()
    known = np.isfinite(primal)
    np.testing.assert_array_equal(known, result.history.column("kind") == "collect")
    best = primal[known][:-1]
    assert (np.diff(best) <= 1e-12 * best[1:]).all()  # the lowest so far
    assert (primal[known] >= optimum * (1 - rounding)).all()


# --- the optimum ---


@pytest.mark.parametrize("solver", SETTINGS, ids=name_of)
@pytest.mark.parametrize("name", MAKERS)
def test_every_setting_reaches_the_optimum(name, solver):
    instance = MAKERS[name](0)
    check(instance, run(instance, solver))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_many_problems(name, seed, C):
    instance = MAKERS[name](seed)
    check(instance, run(instance, OneSlack(), C=C), C)


@pytest.mark.parametrize("name", MAKERS)
def test_agrees_with_sdm(name):
    instance = MAKERS[name](1)
    ours, other = (run(instance, s, max_passes=5000) for s in (OneSlack(cuts=2), SDM()))
    assert ours.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(ours.weights, other.weights, atol=2e-3)


def test_four_byte_weights():
    instance = chain(1)
    result = run(instance, dtype="float32", gap=1e-4)
    assert result.weights.dtype == np.float32
    assert result.converged
    optimum = instance.optimum(1.0)
    assert optimum * (1 - 1e-5) <= result.certificate.primal <= optimum * (1 + 1e-4)
    check_history(result, optimum, 1e-5)


def test_one_label_has_nothing_to_learn():
    case = random_case(np.random.default_rng(0), n_labels=1)
    result = solve(case.problem(), OneSlack(), C=1.0)
    assert (result.certificate.primal, result.certificate.dual) == (0.0, 0.0)
    assert not result.weights.any()


def test_long_chains_from_scratch():
    case = random_case(np.random.default_rng(5), n_labels=4, lengths=[9] * 30, noise=0.3)
    result = solve(case.problem(), OneSlack(), C=0.1, gap=1e-3, dtype="float64")
    w = case.unpadded(result.weights)
    expected = 0.5 * w @ w + 0.1 * brute_hinge(case, w)
    assert result.certificate.primal == pytest.approx(expected, rel=1e-9)
    other = solve(case.problem(), SDM(), C=0.1, gap=1e-6, dtype="float64")
    assert result.certificate.dual <= other.certificate.primal
    assert result.certificate.primal >= other.certificate.dual


# --- the parts of the method do what they are for ---


def sweeps(solver, gap=1e-4, **options):
    case = random_case(
        np.random.default_rng(0), n_labels=5, lengths=[6] * 60, n_sparse=40, noise=0.2
    )
    result = solve(
        case.problem(), solver, C=1.0, gap=gap, dtype="float64", max_passes=3000, **options
    )
    assert result.converged
    return result


def test_several_cuts_need_fewer_passes():
    one, many = (sweeps(OneSlack(cuts=k)) for k in (1, 12))
    assert 2 * many.n_passes < one.n_passes


def test_a_stable_centre_needs_fewer_passes():
    passes = {s: sweeps(OneSlack(cuts=1, stabilize=s)).n_passes for s in ("search", "none")}
    assert passes["search"] < 0.7 * passes["none"]


def test_the_cache_saves_oracle_calls():
    plain, cached = (sweeps(OneSlack(stabilize="none", cuts=1, cache=c)) for c in (0, 5))
    assert "cached" in cached.history.column("kind")
    assert cached.history[-1].oracle_calls < 0.8 * plain.history[-1].oracle_calls
    assert cached.history[-1].kind == "collect"  # the oracle has the last word


def test_pruning_keeps_fewer_planes():
    few, all_ = (sweeps(OneSlack(cuts=1, prune_after=n)) for n in (2, 10**6))
    assert few.history[-1].planes < all_.history[-1].planes
    assert all_.history[-1].planes == len(all_.history)


def test_epsilon_stops_early():
    instance = chain(0)
    result = run(instance, OneSlack(epsilon=0.5), gap=0.0)
    assert result.converged
    assert "n C 0.5" in result.stop_reason
    assert 0 < result.certificate.primal - result.certificate.dual <= 8 * 0.5 * (1 + 1e-9)


def test_more_groups_than_examples():
    instance = chain(0)
    check(instance, run(instance, OneSlack(cuts=1000)))


def test_an_oracle_worse_than_the_truth():
    class Bad(Flat):
        def argmax(self, x, w, truth=None):
            return (truth + 1) % self.n_classes if truth is not None else 0

    structure, X, Y = flat_problem(np.random.default_rng(0))
    problem = native_python_problem(Bad(structure.cost, 3), X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(problem, OneSlack(cuts=2), C=1.0, max_passes=30)
    assert np.isfinite(result.weights).all()


# --- the same again ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_and_seeds_change_nothing(dtype):
    results = [
        run(chain(0), OneSlack(cuts=2, cache=2), dtype=dtype, n_jobs=jobs, random_state=seed)
        for jobs, seed in ((1, 0), (2, 0), (1, 5))
    ]
    for other in results[1:]:
        assert results[0].weights.tobytes() == other.weights.tobytes()
        assert results[0].certificate == other.certificate


@pytest.mark.parametrize("solver", SETTINGS[::2], ids=name_of)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stopped_and_resumed_equals_one_run(solver, dtype, tmp_path):
    path, options = tmp_path / "run.npz", {"dtype": dtype, "gap": 0.0}
    whole = run(chain(1), solver, max_passes=20, **options)
    for passes in (1, 2, 9, 20):
        rest = run(chain(1), solver, max_passes=passes, checkpoint=path, resume=True, **options)
    assert whole.weights.tobytes() == rest.weights.tobytes()
    assert whole.certificate == rest.certificate
    one, two = whole.engine.state(), rest.engine.state()
    assert one.keys() == two.keys()
    for name in one:
        assert np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes(), name
    for name in ("dual", "gap", "oracle_calls", "planes"):
        np.testing.assert_array_equal(whole.history.column(name), rest.history.column(name))


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    run(chain(0), OneSlack(cuts=3), max_passes=3, checkpoint=path)
    with pytest.raises(ModelFormatError, match="another run"):
        run(chain(0), OneSlack(cuts=2), checkpoint=path, resume=True)


STATE = (
    *("weights", "bound", "shown", "best", "target", "groups", "alpha", "loss", "group", "idle"),
    *("indptr", "indices", "values", "cache_example", "cache_size", "cache_codes"),
)


@pytest.mark.parametrize("name", STATE)
def test_damaged_states(name):
    solver = OneSlack(cuts=2, cache=2)
    engine = run(chain(0), solver, max_passes=4, gap=0.0).engine
    other = solver.start(chain(0).problem, 1.0, engine.regularizer, False)
    state = engine.state()
    assert set(STATE) <= state.keys()
    array = np.asarray(state[name])
    damaged = [array[:-1], array.reshape(1, -1), np.array(["text"]), np.full(array.shape, np.nan)]
    if name in ("group", "indices", "cache_example"):
        damaged += [array + 10**6]
    if name in ("group", "indices", "alpha", "groups"):
        damaged += [-1 - array.astype(float)]
    if array.dtype.kind in "iu":  # RuntimeWarnings are errors here
        damaged += [array.astype(float), array + 1e300]
    for wrong in damaged:
        with pytest.raises(ValueError, match="checkpoint"):
            other.restore({**state, name: wrong})
    assert not other.weights.any()
    other.restore(state)
    np.testing.assert_array_equal(other.weights, engine.weights)
    assert other.certify() == engine.certify()


# --- warm starts ---


@pytest.mark.parametrize("C", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("stabilize", ["search", "proximal", "none"])
def test_warm_starts(C, stabilize):
    instance, solver = chain(0), OneSlack(cuts=2, stabilize=stabilize)
    first = run(instance, solver, C=1.0)
    warm = run(instance, solver, C=C, engine=first.engine)
    cold = run(instance, solver, C=C)
    check(instance, warm, C)
    assert warm.n_passes <= cold.n_passes


def test_a_warm_start_with_other_groups():
    instance = chain(0)
    first = run(instance, OneSlack(cuts=2))
    check(instance, run(instance, OneSlack(cuts=4), engine=first.engine))


def test_engines_of_other_solvers_are_refused():
    other = run(chain(0), SDM())
    with pytest.raises(NotCompatibleError, match="another kind of solver"):
        run(chain(0), engine=other.engine)


# --- stopping ---


@pytest.mark.parametrize("stabilize", ["search", "none"])
def test_max_passes_are_told_and_the_best_weights_are_returned(stabilize):
    instance = chain(0)
    with pytest.warns(ConvergenceWarning, match="max_passes = 5"):
        result = solve(
            instance.problem,
            OneSlack(cuts=1, stabilize=stabilize),
            C=1.0,
            dtype="float64",
            gap=0.0,
            max_passes=5,
        )
    certificate = result.certificate
    w = instance.unpadded(result.weights)
    assert certificate.primal == pytest.approx(instance.primal(w, 1.0), rel=1e-9)
    assert certificate.primal == pytest.approx(result.engine.best, rel=1e-9)
    assert 0 < certificate.dual <= certificate.primal


@pytest.mark.parametrize("limit", [0.05, 0.4])
def test_a_time_limit(limit):
    structure, X, Y = flat_problem(np.random.default_rng(0), n=30)
    problem = native_python_problem(Lazy(structure.cost, 3, seconds=0.005), X, Y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        result = solve(problem, OneSlack(), C=1.0, gap=0.0, time_limit=limit)
    instance = Instance(problem, list_planes(structure, X, Y))
    expected = instance.primal(instance.unpadded(result.weights), 1.0)
    assert result.certificate.primal == pytest.approx(expected, rel=1e-9)
    assert 0 <= result.certificate.dual <= result.certificate.primal


def interrupted(stabilize):
    """In a process of its own: SIGINT in the oracle, in the middle of the third pass."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    structure, X, Y = flat_problem(np.random.default_rng(0), n=10)
    solver, options = OneSlack(cuts=2, stabilize=stabilize), {"C": 1.0, "gap": 0.0}
    two = quietly(native_python_problem(structure, X, Y), solver, max_passes=2, **options)
    pressed = two.history[-1].oracle_calls + 5
    problem = native_python_problem(Pressed(structure.cost, 3, at=pressed), X, Y)
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(said):
        warnings.simplefilter("error", ConvergenceWarning)
        result = solve(problem, solver, **options)
    assert "interrupted" in said.getvalue()
    assert (result.stop_reason, result.converged, result.n_passes) == ("interrupted", False, 2)
    assert result.certificate == two.certificate
    assert result.weights.tobytes() == two.weights.tobytes()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("stabilize", ["search", "proximal", "none"])
def test_an_interrupt_keeps_the_model(stabilize):
    run_isolated(__file__, "interrupted", stabilize)


# --- parameters, and how it is reached ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cuts": 0}, "cuts must be a whole number of at least 1"),
        ({"cuts": 1.5}, "cuts must be a whole number"),
        ({"cache": -1}, "cache must be a whole number of at least 0"),
        ({"prune_after": 0}, "prune_after must be a whole number of at least 1"),
        ({"stabilize": "level"}, "stabilize must be one of 'search', 'proximal', 'none'"),
        ({"rescale": "both"}, "rescale must be one of 'margin'"),
        ({"epsilon": -1.0}, "epsilon must be non-negative"),
        ({"mu": np.nan}, "mu must be non-negative"),
        ({"beyond": 0.0}, "beyond must lie above 0"),
        ({"beyond": 1.5}, "beyond must lie above 0"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        OneSlack(**options)


@pytest.mark.parametrize("regularizer", [L1(), ElasticNet(0.5, 0.5)], ids=str)
def test_l2_only(regularizer):
    with pytest.raises(NotCompatibleError, match="it does L2"):
        run(chain(0), regularizer=regularizer)


def test_estimators():
    assert SOLVERS["oneslack"] is OneSlack is maxmargin.OneSlack
    words = [[["a"], ["b"]], [["b"]], [["a"], ["a"]], [["b"], ["b"]]] * 5
    tags = [["X", "Y"], ["Y"], ["X", "X"], ["Y", "Y"]] * 5
    tagger = SequenceTagger(C=1.0, solver="oneslack").fit(words, tags)
    assert tagger.predict(words).tolist() == tags
    assert tagger.certificate_.gap <= 0.01
    structure, X, Y = flat_problem(np.random.default_rng(0))
    model = StructuralSVM(structure, solver="oneslack", C=1.0, gap=1e-6).fit(X, Y)
    expected = qp_reference.solve(structure, X, Y, 1.0).primal
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-5)
