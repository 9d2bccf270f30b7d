"""Latent parts online: imputing again and again, forgetting, going on; against the definition."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reference_latent as reference
from latent_models import FINE, kinds, sets, words
from maxmargin import (
    Chain,
    ElasticNet,
    Latent,
    LatentStructuralSVM,
    LatentSVM,
    Online,
)
from maxmargin.errors import NotCompatibleError, ObjectiveRoseError, StructureError

KINDS = list(kinds())


def falls(values):
    """Assert that a sequence of objectives never rises."""
    values = np.asarray(values)
    assert np.all(np.diff(values) <= 1e-9 * (1 + np.abs(values[:-1])))


def stationary(model):
    """Assert that no imputation at the weights of a model leads to a lower objective."""
    learner = model._online
    certificate = model.certificate_
    assert certificate.gap <= 1e-7
    found = learner._find(certificate)
    assert found.gained <= 1e-6 * (1 + abs(certificate.primal))
    assert model.objective_ == pytest.approx(certificate.primal, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_cycles_end_at_a_stationary_point(kind):
    model, X, y = kinds()[kind]
    half = len(y) // 2
    model.partial_fit(X[:half], y[:half]).partial_fit(X[half:], y[half:])
    assert model.n_examples_ == len(y)
    assert model.certificate_.dual <= model.certificate_.primal
    before = model.objective_
    model.refine(400)
    assert model.converged_
    assert model.objective_ <= before + 1e-9
    falls(model.outer_history_.column("objective"))
    stationary(model)
    assert len(model.predict(X)) == len(y)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 8), listed=st.booleans())
@example(seed=240423, batch=1, listed=True)  # two outputs whose scores are equal but for rounding
def test_by_the_definition_of_the_objective(seed, batch, listed):
    """Objective, certificate of the convex step and stationarity, all outputs tried."""
    X, Y = reference.random_tables(np.random.default_rng(seed), n=9)
    structure = reference.Tables() if listed else reference.Asked()
    model = LatentStructuralSVM(Latent(structure), **FINE)
    for k in range(0, 9, batch):
        model.partial_fit(X[k : k + batch], Y[k : k + batch])
    examples = reference.listed(reference.Tables(), X, Y)
    places = [reference.Tables().outputs(x).index for x in X]

    def in_force():
        outputs = [z for data in model._online.chunks.data for z in data.latent.outputs]
        return [place(z) for place, z in zip(places, outputs, strict=True)]

    def check():
        exact = reference.objective(examples, model.weights_, model.C)
        assert model.objective_ == pytest.approx(exact, rel=1e-9, abs=1e-9)
        optimum = reference.convex_step(examples, in_force(), model.C).primal
        certificate = model.certificate_
        slack = 1e-6 * (1 + abs(optimum))
        assert certificate.dual <= optimum + slack
        assert optimum <= certificate.primal + slack
        assert exact <= certificate.primal + slack
        return exact

    found = [check()]
    for _ in range(3):
        model.refine(1)
        found.append(check())
    model.refine(400)
    last = check()
    falls(model.outer_history_.column("objective"))
    step = reference.convex_step(examples, in_force(), model.C)
    assert model.certificate_.primal == pytest.approx(step.primal, rel=1e-6, abs=1e-6)
    # What it ends with is where the procedure in NumPy would stay.
    follows = reference.procedure(
        examples, reference.impute(examples, model.weights_, in_force()), model.C
    )
    assert follows[0].objective == pytest.approx(last, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_an_imputation_step_never_raises_the_objective(kind, monkeypatch):
    """Also not where the convex step is stopped far from its optimum: it is undone then."""
    from maxmargin.online import latent as module

    model, X, y = kinds()[kind]
    model.partial_fit(X, y)
    learner = model._online
    assert model.objective_ <= learner._bound + 1e-9
    monkeypatch.setattr(module, "MOST", 0)
    monkeypatch.setattr(type(learner), "cycle", lambda self: None)  # no step comes back
    steps = 0
    for _ in range(6):
        learner._restart()
        learner._asked = 1.0  # impute at once, whatever the gap is
        before, weights = model.objective_, model.weights_.copy()
        model.refine(1)
        if learner.outer and learner.outer[-1].changed:
            steps += 1
            assert learner.outer[-1].objective == pytest.approx(before, rel=1e-9)
            assert model.objective_ <= before + 1e-9 * (1 + abs(before))
            if model.objective_ == pytest.approx(before, rel=1e-12):
                np.testing.assert_allclose(model.weights_, weights, atol=1e-9)  # it was undone
    assert steps > 0 or kind == "chain"  # whose clusters are right from the beginning


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_learner_goes_on_bit_for_bit(kind):
    model, X, y = kinds()[kind]
    model.partial_fit(X[:10], y[:10])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[10:], y[10:]).refine(2)
    assert np.array_equal(model.weights_, again.weights_)
    assert model.certificate_ == again.certificate_
    assert model.objective_ == again.objective_


@pytest.mark.parametrize("kind", KINDS)
def test_forgetting_leaves_the_model_of_the_remaining_multipliers(kind):
    model, X, y = kinds()[kind]
    model.partial_fit(X, y).refine(2)
    learner, n = model._online, len(y)
    gone = [1, n - 1]
    stays = [k for k in range(n) if k not in gone]
    example, _loss, alpha, indptr, indices, values = learner.machine.planes()
    u = np.zeros(len(learner.machine.sums()))
    for k in np.flatnonzero(~np.isin(example, gone)):
        at = slice(indptr[k], indptr[k + 1])
        u[indices[at]] += learner.C * alpha[k] * values[at]
    # The share of each example in the linear term, by taking it alone.
    growing, shares = learner.growing, []
    for problem, data in zip(learner.chunks.problems, learner.chunks.data, strict=True):
        for k in range(growing.count(data)):
            one = growing.take(data, np.array([k]))
            shares.append(growing.linear_term(growing.problem(one), one, learner.C, False))
        assert problem.n_examples == growing.count(data)
    np.testing.assert_allclose(sum(shares), learner.machine.fixed, atol=1e-9)
    u += sum(shares[k] for k in stays)
    model.forget(gone)
    assert model.example_ids_ == stays
    found = learner.machine.sums()
    if len(found) == len(u):
        np.testing.assert_allclose(found, u, atol=1e-9)
    assert np.sum(found**2) == pytest.approx(np.sum(u**2), rel=1e-9, abs=1e-12)
    assert model.certificate_.n_examples == n - 2
    assert model.certificate_.dual <= model.certificate_.primal
    model.refine(400)
    stationary(model)
    model.forget(stays)
    model.partial_fit(X[:12], y[:12])
    assert model.n_examples_ == 12


@pytest.mark.parametrize("kind", KINDS)
def test_after_fit_it_goes_on(kind):
    model, X, y = kinds()[kind]
    half = len(y) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:half], y[:half])
    model.partial_fit(X[half:], y[half:])
    assert model.n_examples_ == len(y)
    model.refine(400)
    stationary(model)
    model.fit(X[:half], y[:half])
    assert model.n_examples_ == half
    with pytest.raises(NotCompatibleError, match="partial_fit or learn_one"):
        model.forget([0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_new_features_leave_all_else_as_it_is(dtype):
    X, Y = words(12)
    model = (
        LatentStructuralSVM(Latent(Chain(), states=2), **(FINE | {"dtype": dtype, "gap": 1e-4}))
        .partial_fit(X, Y)
        .refine(3)
    )
    before, objective = model.weights_, model.objective_
    learner = model._online
    names = model.structure_.prepared.inner.encoder.n_sparse
    data, change = learner.growing.more([[{f"n{k}": 1.0 for k in range(50)}]], [["a"]], {})
    learner._move(learner.chunks.changed(change), change)
    model._stale()
    assert model.structure_.prepared.inner.encoder.n_sparse > names
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    assert np.sum(model.weights_.astype(float) ** 2) == pytest.approx(
        np.sum(before.astype(float) ** 2), rel=1e-12 if dtype == "float64" else 1e-6
    )
    assert learner.growing.count(data) == 1


def test_new_examples_are_completed_under_the_present_weights():
    model, X, y = kinds()["chain"]
    model.partial_fit(X[:16], y[:16]).refine(100)
    wanted = model.predict_latent(X[16:17], y[16:17])[0]
    fixed = np.array(model._online.machine.fixed)
    data, _ = model._online.growing.more(X[16:17], y[16:17], {})
    found = model._online._arrived(data)
    inner = model.structure_.prepared.inner
    pairs = [inner.labels_[int(code)] for code in found.data["labels"]]
    assert [model.structure_.prepared.labels.pairs_[k] for k in pairs] == wanted
    term = model._online.growing.linear_term(
        model._online.growing.problem(found), found, 1.0, False
    )
    assert not term.any()
    assert np.array_equal(fixed, model._online.machine.fixed)


def test_one_by_one_costs_the_same_for_each(monkeypatch):
    """Oracle calls and imputations for each example do not grow with their number."""
    X, y = sets(160)
    model = LatentSVM(C=1.0, random_state=0)
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    counts, calls = [], 0
    learner = model._online
    find = type(learner)._find

    def counting(self, certificate):
        nonlocal calls
        calls += self.n_examples
        return find(self, certificate)

    monkeypatch.setattr(type(learner), "_find", counting)
    for k in range(1, 160):
        model.learn_one(X[k], y[k])
        counts.append((learner.oracle_calls + calls) / (k + 1))
    assert max(counts[80:]) <= 1.5 * max(counts[20:80])


def test_beginning_with_one_class():
    X, y = sets()
    model = LatentSVM(random_state=0)
    with pytest.raises(ValueError, match="y has 1 classes"):
        model.partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="expected two"):
        model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    model.partial_fit(X[:1], y[:1], classes=[0, 1]).partial_fit(X[1:], y[1:])
    with pytest.raises(ValueError, match="those of the first call"):
        model.partial_fit(X[:1], y[:1], classes=[0, 2])
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) > 0.8
    assert model.n_examples_ == 30


def test_another_loss_weight_and_weights_of_examples():
    X, y = sets()
    weights = np.linspace(0.5, 2.0, len(y))
    model = LatentSVM(**FINE).partial_fit(X, y, sample_weight=weights)
    model.set_params(C=2.0).refine(1)
    model.partial_fit(X[:2], y[:2], sample_weight=[1.0, 3.0])
    model.refine(300)
    stationary(model)
    w, total = model.coef_[0], 0.5 * float(model.weights_ @ model.weights_)
    for x, label, weight in zip([*X, *X[:2]], [*y, *y[:2]], [*weights, 1.0, 3.0], strict=True):
        score = float((x @ w).max() + model.intercept_[0])
        total += 2.0 * weight * max(0.0, 1.0 - (score if label else -score))
    assert model.objective_ == pytest.approx(total, rel=1e-8)


def test_a_model_of_files_and_what_it_remembers(tmp_path):
    X, y = sets()
    model = LatentSVM(random_state=0).partial_fit(X, y)
    model.save(tmp_path / "m.mm")
    again = LatentSVM.load(tmp_path / "m.mm")
    assert np.array_equal(again.predict(X), model.predict(X))
    with pytest.raises(NotCompatibleError, match="no multipliers"):
        again.partial_fit(X, y)


def test_a_regulariser_and_a_budget():
    X, Y = words(24)
    options = FINE | {"gap": 1e-4, "solver": Online(max_plane_bytes=200_000)}
    model = LatentStructuralSVM(
        Latent(Chain(), states=2), regularizer=ElasticNet(0.05, 1.0), **options
    ).partial_fit(X, Y)
    model.refine(100)
    assert model.certificate_.gap <= 1e-4
    assert (model.weights_ == 0).any()


class Wrong(reference.Asked):
    """Does not find the best completion."""

    lies = False

    def argmax(self, x, w, truth=None, given=None):
        if given is not None and type(self).lies:
            return given, int((x @ w)[given].argmin())
        return super().argmax(x, w, truth, given)


def test_a_maximum_that_is_missed(monkeypatch):
    X, Y = reference.random_tables(np.random.default_rng(0), n=12)
    model = LatentStructuralSVM(Latent(Wrong()), **FINE).partial_fit(X, Y)
    monkeypatch.setattr(Wrong, "lies", True)
    with pytest.raises(ObjectiveRoseError, match="below"):
        model.refine(50)


class Empty(reference.Asked):
    """Has no completion of some truths."""

    def argmax(self, x, w, truth=None, given=None):
        return None if given == 2 else super().argmax(x, w, truth, given)


@pytest.mark.parametrize(
    ("kind", "X", "y", "error", "message"),
    [
        ("chain", [[{"a": 1.0}]], [["z"]], ValueError, "sequence 0, token 0 has the label 'z'"),
        ("classes", [[0.0, 1.0, 2.0]], ["other"], ValueError, "'other'"),
        ("bags", [np.empty((0, 3))], [1], ValueError, "latent space is empty"),
        ("bags", [np.full((1, 3), np.nan)], [1], ValueError, "example 0"),
        ("bags", [np.ones((1, 2))], [1], ValueError, "2"),
        ("bags", [np.ones((1, 3))], [7], ValueError, "7"),
        ("asked", [np.zeros((3, 3, 5))], [9], StructureError, "example 0"),
        ("asked", [np.zeros((3, 3, 5))] * 2, [0], ValueError, "2"),
    ],
)
def test_bad_examples_are_named_and_nothing_is_taken(kind, X, y, error, message):
    model, inputs, truths = kinds()[kind]
    model.partial_fit(inputs[:20], truths[:20])
    before = model.weights_.copy()
    with pytest.raises(error, match=message):
        model.partial_fit(X, y)
    assert model.n_examples_ == 20
    model._stale()
    assert np.array_equal(model.weights_, before)
    model.partial_fit(inputs[20:], truths[20:])


def test_an_empty_latent_space_of_a_users_structure():
    X, Y = reference.random_tables(np.random.default_rng(0), n=12)
    model = LatentStructuralSVM(Latent(Empty()), **FINE)
    with pytest.raises(StructureError, match="the latent space is empty"):
        model.partial_fit(X, [2] * 12)
    model.partial_fit(X, [y % 2 for y in Y])
    with pytest.raises(StructureError, match=r"the latent space is empty.*example 1"):
        model.partial_fit(X[:2], [0, 2])
    assert model.n_examples_ == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_starts": 3}, "n_starts=3 goes over all examples"),
        ({"anneal": 0.5}, "anneal"),
        ({"self_paced": True}, "self_paced"),
        ({"C_scale": "mean"}, "C_scale"),
        ({"solver": Online(slack="quadratic")}, "slack"),
    ],
)
def test_what_needs_all_examples_is_refused(options, message):
    X, y = sets()
    with pytest.raises(NotCompatibleError, match=message):
        LatentSVM(**options).partial_fit(X, y)
