"""Training that stalls on the rounding of 4-byte weights goes on with 8-byte ones by itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from maxmargin import Chain, SequenceTagger
from maxmargin._native import padded_labels
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.regularizers import L2, ElasticNet, Selected
from maxmargin.selection import Encoded, FitOptions, debias, fit, regularization_path
from maxmargin.selection.validation import report_of
from maxmargin.solvers import BCFW, SAP, SDM, SOLVERS, History, NSlack, Subgradient, solve
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.precision import StallWatch
from maxmargin.solvers.steps import PassTotals, Step
from native_problems import random_case


def tiny(seed, labels="ABC"):
    """Return five separable sequences, whose labels follow from their words."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(5):
        words = rng.integers(0, 8, rng.integers(2, 6))
        before = ["x", *words[:-1]]
        X.append([[f"w{w}", f"p{b}"] for w, b in zip(words, before, strict=True)])
        Y.append([labels[w % len(labels)] for w in words])
    return X, Y


def problem(seed=0, labels="ABC"):
    return Chain().prepare_problem(*tiny(seed, labels)).problem


def hard(seed=0, **options):
    """Train something that 4-byte weights cannot do."""
    options = {"C": 1e6, "gap": 1e-4, "random_state": seed} | options
    return solve(problem(seed, options.pop("labels", "ABC")), SDM(), **options)


# --- the gap is reached ---


@pytest.mark.parametrize("gap", [0.01, 1e-4])
@pytest.mark.parametrize("C", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("seed", range(6))
def test_tiny_separable_sequences_reach_the_gap(seed, C, gap):
    found = solve(problem(seed), SDM(), C=C, gap=gap, random_state=seed)
    assert found.converged
    assert found.certificate.gap <= gap
    exact = solve(problem(seed), SDM(), C=C, gap=gap, random_state=seed, dtype="float64")
    assert found.certificate.primal == pytest.approx(exact.certificate.primal, rel=1.1 * gap)


@pytest.mark.parametrize(
    "solver",
    [SDM("paper", tau=0, tau_inner=0), SAP(), SDM(slack="quadratic")],
    ids=["paper", "sap", "quadratic"],
)
def test_other_schedules_reach_it_too(solver):
    C = 1e12 if solver.slack == "quadratic" else 1e6
    found = solve(problem(), solver, C=C, gap=1e-4, random_state=0)
    assert found.certificate.gap <= 1e-4
    assert found.certificate.widened is not None


def test_bcfw_goes_on_with_an_average_of_8_byte_weights():
    solver = BCFW(average=True)
    options = {"C": 1e4, "gap": 1e-9, "random_state": 0, "warn": False}
    machine = solve(problem(), solver, **options, max_passes=5).engine
    before = np.array(machine.weights)
    L = 3
    machine.widen()
    after = machine.weights
    assert (before.dtype, after.dtype) == (np.float32, np.float64)
    narrow = before.reshape(-1, padded_labels(L, True))[:, :L]
    wide = after.reshape(-1, padded_labels(L, False))[:, :L]
    np.testing.assert_allclose(wide, narrow, rtol=1e-4, atol=1e-5)
    again = solve(machine.problem, solver, **options, max_passes=30, engine=machine)
    assert again.weights.dtype == np.float64
    assert again.certificate.widened == 0


# --- it is said ---


def test_history_certificate_and_reason_say_so(capsys):
    found = hard(verbose=1)
    after = found.certificate.widened
    assert 0 < after < found.n_passes
    said = f"went on in 8-byte arithmetic after pass {after}"
    assert found.stop_reason == f"gap {found.certificate.gap:.3g} <= 0.0001; {said}"
    assert str(found.certificate).endswith(said)
    assert found.history.widened == after
    assert found.history.column("weight_bytes").tolist() == (
        [4] * after + [8] * (found.n_passes - after)
    )
    assert f"in 8-byte arithmetic after pass {after}" in repr(found.history)
    assert f"pass {after:4d} rounding of float32 weights keeps" in capsys.readouterr().err


def test_nothing_is_said_where_4_bytes_are_enough():
    found = solve(problem(), SDM(), C=0.1, random_state=0)
    assert found.certificate.widened is None
    assert found.history.widened is None
    assert set(found.history.column("weight_bytes")) == {4}
    assert "8-byte" not in found.stop_reason + str(found.certificate) + repr(found.history)
    assert History.from_dicts(found.history.to_dicts()) == found.history


def test_the_weights_returned_are_those_of_the_certificate():
    found = hard()
    assert found.weights.dtype == np.float64
    assert found.engine.weights.dtype == np.float64
    assert found.certificate.primal == found.engine.primal_of(found.weights)
    # Narrowed to the type asked for they would not be as good.
    narrow = found.weights.astype(np.float32).astype(np.float64)
    assert found.engine.primal_of(narrow) > found.certificate.primal * 1.001


# --- what decides ---


def look(gap, kind="exact"):
    return Step(kind, PassTotals(gap, 0.0, 1))


def test_a_stall_is_some_looks_without_a_better_gap():
    watch = StallWatch()
    gap = 1.0
    for _ in range(100):  # falls, slowly
        gap *= 0.97
        watch.note(look(gap))
        assert not watch.stalled
    for _ in range(20):
        watch.note(look(gap))
        watch.note(look(0.0, "cached"))  # does not know the gap
    assert not watch.stalled
    for _ in range(20):
        watch.note(look(gap))
    assert watch.stalled
    again = StallWatch()
    again.restore(watch.state())
    assert again.state() == watch.state()
    watch.rest()
    assert not watch.stalled
    with pytest.raises(ValueError, match="does not know"):
        again.restore({"least": 1.0})


def test_a_slow_gap_that_is_not_rounding_stays_at_4_bytes():
    """One example at a time, with the smallest of steps: the gap hardly moves."""

    class Slow(SDM):
        def step(self, machine, state, context):
            step = super().step(machine, state, context)
            return Step("exact", PassTotals(1.0, 0.0, 1)) if step.kind == "cached" else step

    found = solve(problem(), Slow(), C=0.1, gap=0.01, max_passes=60, random_state=0, warn=False)
    assert found.certificate.widened is None


def test_rounding_is_measured_and_leaves_the_state_alone():
    machine = solve(problem(), SDM(), C=1e6, gap=1e-4, max_passes=60, warn=False).engine
    before = {name: np.array(value) for name, value in machine.state().items()}
    rounding = machine.rounding()
    assert rounding > 0.5 * 1e-4 * machine.dual()
    after = machine.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    machine.widen()
    assert machine.rounding() == 0.0


# --- the engine ---


@pytest.mark.parametrize("features", ["ones", "values+dense64", "dense32"])
@pytest.mark.parametrize("regularizer", [L2(), ElasticNet(l1_ratio=0.2)], ids=["l2", "net"])
@pytest.mark.parametrize("solver", [SDM(), NSlack(), SDM(slack="quadratic")], ids=str)
def test_a_wider_engine_has_the_same_multipliers(features, regularizer, solver):
    case = random_case(
        np.random.default_rng(1), n_labels=5, lengths=(4, 2, 6, 1), features=features
    )
    options = {"C": 0.7, "regularizer": regularizer, "gap": 1e-7, "warn": False}
    machine = solve(case.problem(), solver, **options, max_passes=5, random_state=0).engine
    dual, size, state = machine.dual(), machine.size(), machine.state()
    weights = case.unpadded(machine.weights)
    machine.widen()
    assert machine.widened
    assert machine.made_as[0] == "float32"
    wide = machine.state()
    for name in ("example", "lo", "hi", "n_planes", "alpha", "loss", "codes", "gaps", "violation"):
        assert np.array_equal(state[name], wide[name]), name
    assert wide["gram"].dtype == np.float64
    np.testing.assert_allclose(wide["gram"], state["gram"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(case.unpadded(machine.weights), weights, rtol=1e-4, atol=1e-5)
    assert machine.dual() == pytest.approx(dual, rel=1e-5)
    assert machine.size()["planes"] == size["planes"]
    with pytest.raises(ValueError, match="8-byte already"):
        machine.widen()
    found = solve(machine.problem, solver, **options, engine=machine, max_passes=3000)
    primal, bound = found.engine.certify()
    assert primal == pytest.approx(found.certificate.primal, rel=1e-12)
    assert bound <= primal


def test_views_of_the_narrow_weights_live_on():
    machine = solve(problem(), SDM(), C=1.0, max_passes=3, warn=False).engine
    view, copy = machine.weights, np.array(machine.weights)
    machine.widen()
    solve(machine.problem, SDM(), C=1.0, engine=machine, max_passes=3, warn=False)
    assert np.array_equal(view, copy)
    # They can still be judged.
    assert machine.primal_of(copy) > 0
    with pytest.raises(ValueError, match="expected"):
        machine.primal_of(copy[:-1].copy())


def test_solvers_with_a_w_of_their_own_keep_it():
    solver = Subgradient()
    machine = solver.start(problem(), 1.0, L2(), True)
    assert not machine.widens
    assert not machine.widened
    assert machine.rounding() == 0.0
    with pytest.raises(NotCompatibleError, match="without multipliers"):
        machine.widen()
    assert set(SOLVERS) >= {"sdm", "subgradient"}


def test_a_fixed_linear_term_moves_to_the_wider_layout():
    case = random_case(np.random.default_rng(0), n_labels=3, lengths=(3, 4, 2), features="ones")
    wanted = np.random.default_rng(1).normal(size=case.n_rows * 3)
    narrow = case.problem()
    narrow.linear_term = case.weights(wanted, True).astype(np.float64)
    wide = case.problem()
    wide.linear_term = case.weights(wanted, False)
    machine = DualMachine(narrow, 0.5, single=True)
    machine.widen()
    other = DualMachine(wide, 0.5, single=False)
    np.testing.assert_allclose(machine.fixed, other.fixed, rtol=1e-6)
    machine.take_linear_term()
    np.testing.assert_allclose(machine.fixed, other.fixed, rtol=1e-7)
    found = solve(narrow, SDM(), C=0.5, engine=machine, gap=1e-9, random_state=0)
    exact = solve(wide, SDM(), C=0.5, dtype="float64", gap=1e-9, random_state=0)
    assert found.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-6)


# --- later trainings ---


def test_a_warm_start_goes_on_with_8_bytes():
    first = hard()
    again = solve(
        first.engine.problem, SDM(), C=1e5, gap=1e-4, random_state=0, engine=first.engine
    )
    assert again.converged
    assert again.certificate.widened == 0
    assert "in 8-byte arithmetic from the start" in again.stop_reason
    assert again.weights.dtype == np.float64


def test_a_warm_start_may_change_a_regulariser_with_a_number_for_each_weight():
    first = hard()
    n = first.engine.made_as[1]
    assert n != first.weights.size  # rows of three labels are padded differently
    narrow = np.zeros(n, dtype=np.float32)
    narrow[:] = 1.0
    regularizer = Selected(narrow)
    again = solve(
        first.engine.problem, SDM(), C=1.0, gap=1e-4, engine=first.engine, regularizer=regularizer
    )
    cold = solve(first.engine.problem, SDM(), C=1.0, gap=1e-4, regularizer=regularizer)
    assert again.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-4)


# --- checkpoints ---


def same(a, b):
    assert np.array_equal(a.weights, b.weights)
    assert a.weights.dtype == b.weights.dtype
    assert (a.certificate, a.stop_reason, a.n_passes) == (b.certificate, b.stop_reason, b.n_passes)
    for name in ("dual", "gap", "kind", "weight_bytes", "oracle_calls"):
        np.testing.assert_array_equal(a.history.column(name), b.history.column(name))


@pytest.mark.parametrize("where", ["long before", "just before", "at", "just after", "after"])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_run_resumed_around_the_change_is_the_same_bit_for_bit(tmp_path, where, seed):
    whole = hard(seed)
    after = whole.certificate.widened
    at = {"long before": 0.5, "just before": 1, "at": 1, "just after": 1, "after": 1}[where]
    stop = max(1, int(at * after))
    stop += {"just before": -1, "just after": 1, "after": 5}.get(where, 0)
    checkpoint = tmp_path / "run.npz"
    hard(seed, max_passes=stop, warn=False, checkpoint=checkpoint)
    same(hard(seed, checkpoint=checkpoint, resume=True), whole)


def test_a_run_resumed_at_any_pass_is_the_same(tmp_path):
    whole = hard(1, C=1e5, gap=0.01)
    assert whole.certificate.widened is not None
    checkpoint = tmp_path / "run.npz"
    for stop in range(1, whole.n_passes, 17):
        checkpoint.unlink(missing_ok=True)
        options = {"C": 1e5, "gap": 0.01, "checkpoint": checkpoint}
        hard(1, **options, max_passes=stop, warn=False)
        same(hard(1, **options, resume=True), whole)


def test_a_finished_run_is_resumed_with_its_certificate(tmp_path):
    checkpoint = tmp_path / "run.npz"
    whole = hard(checkpoint=checkpoint)
    same(hard(checkpoint=checkpoint, resume=True), whole)


def test_a_checkpoint_of_another_dtype_is_refused(tmp_path):
    checkpoint = tmp_path / "run.npz"
    options = {"labels": "ABCDEFGH", "checkpoint": checkpoint}  # rows without padding
    hard(**options)
    with pytest.raises(ModelFormatError, match="dtype is 'float32' there and 'float64' here"):
        hard(**options, resume=True, dtype="float64")


# --- memory ---


def test_without_memory_it_goes_on_as_it_is(monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.precision.available_bytes", lambda: 2000)
    found = hard(max_passes=400, warn=False)
    assert found.weights.dtype == np.float32
    assert found.certificate.widened is None
    assert not found.converged
    monkeypatch.setattr("maxmargin.solvers.precision.available_bytes", lambda: None)
    assert hard(max_passes=400).converged  # where nobody knows, it is tried


# --- where models go ---


def sequences(seed=0):
    return tiny(seed)


def test_an_estimator_keeps_predicts_and_saves_8_byte_weights(tmp_path):
    X, Y = sequences()
    tagger = SequenceTagger(C=1e6, gap=1e-4, random_state=0).fit(X, Y)
    assert tagger.weights_.dtype == np.float64
    assert tagger.certificate_.widened is not None
    assert tagger.history_.widened == tagger.certificate_.widened
    assert tagger.dtype == "float32"  # a parameter is what it was set to
    assert tagger.predict(X).tolist() == Y
    assert tagger.transitions_.shape == (3, 3)
    tagger.save(tmp_path / "m")
    for loaded in (SequenceTagger.load(tmp_path / "m"), pickle.loads(pickle.dumps(tagger))):
        assert loaded.certificate_ == tagger.certificate_
        assert loaded.weights_.dtype == np.float64
        assert loaded.predict(X).tolist() == Y
        scores = loaded.score_outputs(X, Y) if hasattr(loaded, "score_outputs") else None
        assert scores is None or np.allclose(scores, tagger.score_outputs(X, Y))


def test_an_estimator_goes_on_warm():
    X, Y = sequences()
    tagger = SequenceTagger(C=1e6, gap=1e-3, random_state=0, warm_start=True).fit(X, Y)
    before = tagger.certificate_.widened
    assert before
    tagger.set_params(gap=1e-5).fit(X, Y)
    assert tagger.certificate_.widened == 0
    assert tagger.certificate_.gap <= 1e-5


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_kernel_widens_too(kernel):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (4, 3, 5, 2)]
    Y = [["A" if row[0] > 0 else "B" for row in x] for x in X]
    chain = Chain(kernel=kernel)
    found = solve(
        chain.prepare_problem(X, Y).problem, SDM(), C=1e7, gap=1e-5, random_state=0, warn=False
    )
    exact = solve(
        Chain(kernel=kernel).prepare_problem(X, Y, dtype="float64").problem,
        SDM(), C=1e7, gap=1e-5, random_state=0, dtype="float64", warn=False,
    )  # fmt: skip
    assert found.certificate.gap <= max(1e-5, 2 * exact.certificate.gap)
    assert found.certificate.widened is not None
    predicted = chain.predict(X, found.weights, 1)
    assert predicted == Y


def encoded(chain, seed=0):
    X, Y = sequences(seed)
    batch, codes = chain.learn(X, Y)
    return Encoded(batch, codes, list(chain.labels_))


def test_a_path_has_points_of_both_types():
    chain = Chain()
    data = encoded(chain)
    points = [(0.9, 0.1), (0.0, 0.1), (0.0, 1e6), (0.5, 1e5)]
    options = FitOptions(gap=1e-4)
    path = regularization_path(chain, data, points, options, valid=data)
    types = [point.values.dtype for point in path.points]
    assert types == [np.float32, np.float32, np.float64, np.float64]
    assert [point.certificate.widened for point in path.points][:2] == [None, None]
    assert path.points[3].certificate.widened == 0
    for k, point in enumerate(path.points):
        weights = path.weights(k)
        assert weights.dtype == types[k]
        assert weights.shape == (chain.n_weights(weights.dtype),)
        assert np.count_nonzero(weights) == point.n_nonzero
        report = report_of(chain, data, weights, 1)
        assert report.token_accuracy == point.token_accuracy


def test_the_best_pass_may_be_of_before_the_change():
    chain = Chain()
    data = encoded(chain, seed=2)
    problem = chain.encoded_problem(data.batch, data.codes)
    # What the first pass would answer is the truth here, so that no later one is better.
    early = fit(chain, problem, 1e6, FitOptions(max_passes=1)).weights
    answers = chain.predict_encoded(data.batch, early)
    assert (answers != data.codes).any()
    wanted = Encoded(data.batch, answers, data.names)
    outcome = fit(chain, problem, 1e6, FitOptions(gap=1e-4), valid=wanted)
    assert outcome.result.weights.dtype == np.float64
    assert outcome.best_pass == 1 < outcome.result.certificate.widened
    assert outcome.weights.dtype == np.float32
    assert outcome.certificate.widened is None
    assert outcome.certificate.primal > 10 * outcome.result.certificate.dual


@pytest.mark.parametrize("keep", ["features", "weights"])
def test_a_refit_of_8_byte_weights(keep):
    chain = Chain()
    data = encoded(chain)
    problem = chain.encoded_problem(data.batch, data.codes)
    net = ElasticNet(l1_ratio=0.3)
    sparse = fit(chain, problem, 1.0, FitOptions(regularizer=net, dtype="float64"))
    again = debias(chain, data, sparse, FitOptions(), keep=keep, C=1.0)
    assert again.converged
    if keep == "weights":
        assert not again.weights[sparse.weights == 0].any()
