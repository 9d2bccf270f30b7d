"""Estimators with latent parts."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin
import reference_latent as reference
from maxmargin import (
    BinarySVM,
    Chain,
    Latent,
    LatentStructuralSVM,
    LatentSVM,
    Multiclass,
    StructuralSVM,
)
from maxmargin.errors import (
    ConvergenceWarning,
    ModelFormatError,
    NotCompatibleError,
    StructureError,
)
from maxmargin.regularizers import GaussianPrior

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sequences(seed=0, n=30, styles=2):
    """Return sequences whose tokens come in several styles of each label."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(3, styles, 4))
    X, Y = [], []
    for _ in range(n):
        y = rng.integers(3, size=int(rng.integers(2, 6)))
        h = rng.integers(styles, size=len(y))
        X.append(centres[y, h] + 0.7 * rng.normal(size=(len(y), 4)))
        Y.append([f"l{k}" for k in y])
    return X, Y


def bags(seed=0, n=40, rows=4):
    """Return bags of rows, one of which tells the class of the bag."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rows, 3))
    y = rng.integers(2, size=n)
    for i in np.flatnonzero(y):
        X[i, rng.integers(rows)] += [5.0, -4.0, 2.0]
    return X, y


# --- the general one ---


def test_one_state_is_the_ordinary_chain():
    X, Y = sequences()
    options = {"C": 0.5, "gap": 1e-6, "dtype": "float64", "random_state": 0}
    plain = StructuralSVM(Chain(), **options).fit(X, Y)
    latent = LatentStructuralSVM(Latent(Chain(), states=1), **options).fit(X, Y)
    assert latent.objective_ == pytest.approx(plain.certificate_.primal, rel=2e-6)
    assert latent.certificate_.primal == pytest.approx(latent.objective_, rel=1e-12)
    assert list(latent.predict(X)) == list(plain.predict(X))
    names = {label: k for k, (label, _) in enumerate(latent.structure_.prepared.labels.pairs_)}
    own = [names[label] for label in plain.structure_.labels_]
    assert latent.structure_.prepared.inner.labels_ == own  # the same layout
    np.testing.assert_allclose(latent.weights_, plain.weights_, atol=1e-3)


def test_one_hidden_value_is_the_ordinary_structure():
    X, Y = reference.random_tables(np.random.default_rng(1), n=12, n_hidden=1)
    options = {"C": 0.5, "gap": 1e-8, "random_state": 0}

    class Plain(reference.Tables):
        def loss(self, z, z_hat):
            return super().loss(z[0], z_hat)

    plain = StructuralSVM(Plain(), **options).fit(X, [(y, 0) for y in Y])
    latent = LatentStructuralSVM(reference.Asked(), **options).fit(X, Y)
    assert latent.objective_ == pytest.approx(plain.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(latent.weights_, plain.weights_, atol=1e-4)


def test_states_tell_what_one_picture_cannot():
    X, Y = sequences(n=60)
    plain = StructuralSVM(Chain(), C=1.0, random_state=0).fit(X, Y)
    latent = LatentStructuralSVM(Latent(Chain(), states=2), C=1.0, random_state=0).fit(X, Y)

    def wrong(model):
        pairs = zip(model.predict(X), Y, strict=True)
        return sum(a != b for y, t in pairs for a, b in zip(y, t, strict=True))

    assert wrong(latent) < wrong(plain)
    assert latent.score(X, Y) == pytest.approx(-wrong(latent) / len(Y))
    objectives = latent.outer_history_.column("objective")
    assert (np.diff(objectives) <= 0).all()
    assert latent.objective_ == objectives[-1] <= latent.certificate_.primal * (1 + 1e-6)
    assert len(latent.history_) == latent.n_iter_


def test_completions_of_given_labels():
    X, Y = sequences()
    model = LatentStructuralSVM(Latent(Chain(), states={"l1": 3}), random_state=0).fit(X, Y)
    given = model.predict_latent(X, Y)
    assert [[label for label, _ in z] for z in given] == Y
    assert {k for z in given for label, k in z if label != "l1"} == {0}
    free = model.predict_latent(X)
    assert [[label for label, _ in z] for z in free] == list(model.predict(X))
    with pytest.raises(ValueError, match="token 0 has the label 'nothing'"):
        model.predict_latent(X[:1], [["nothing"] * len(X[0])])


def test_rules_and_costs_of_labels_hold_for_states():
    X, Y = sequences()
    cost = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    chain = Chain(loss=cost, allowed=lambda a, b: not (a == "l0" and b == "l1"))
    model = LatentStructuralSVM(Latent(chain, states=2), random_state=0).fit(X, Y)
    for y in model.predict(X):
        assert ("l0", "l1") not in list(itertools.pairwise(y))
    z = [("l2", 1), ("l1", 0)]
    assert model.structure_.loss(["l0", "l1"], z) == 5.0


def test_a_native_loss_that_ignores_a_part():
    """The completions of a truth are the outputs that cost nothing beside it."""
    X, Y = sequences()
    pairs = [(f"l{k}", h) for k in range(3) for h in range(2)]
    cost = np.array([[float(a[0] != b[0]) for b in pairs] for a in pairs])
    Z = [[(label, 0) for label in y] for y in Y]
    general = LatentStructuralSVM(
        Latent(Chain(loss=cost, labels=pairs)), gap=1e-6, dtype="float64", random_state=0
    ).fit(X, Z)
    states = LatentStructuralSVM(
        Latent(Chain(), states=2), start="first", gap=1e-6, dtype="float64", random_state=0
    ).fit(X, Y)
    assert general.objective_ == pytest.approx(states.objective_, rel=1e-5)
    with pytest.raises(NotCompatibleError, match="completions of given"):
        general.predict_latent(X, Z)


@quiet
def test_the_best_of_several_starts_is_kept():
    X, Y = sequences()
    model = LatentStructuralSVM(
        Latent(Chain(), states=3), start="random", n_starts=3, C=2.0, random_state=0
    ).fit(X, Y)
    assert len(model.start_objectives_) == 3
    assert len(set(model.start_objectives_)) > 1
    assert model.objective_ == min(model.start_objectives_)
    again = clone(model).fit(X, Y)
    assert again.start_objectives_ == model.start_objectives_


@pytest.mark.parametrize("options", [{"anneal": 0.5}, {"self_paced": True}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stages(options, dtype):
    X, Y = sequences()
    model = LatentStructuralSVM(
        Latent(Chain(), states=2), random_state=0, dtype=dtype, **options
    ).fit(X, Y)
    stages = model.outer_history_.column("stage")
    assert len(set(stages)) >= 4
    last = model.outer_history_.column("objective")[stages == ""]
    assert (np.diff(last) <= 0).all()
    assert model.converged_


def test_checkpoints_of_several_starts(tmp_path):
    X, Y = sequences()
    model = LatentStructuralSVM(
        Latent(Chain(), states=2), n_starts=2, random_state=0, checkpoint=tmp_path / "run.npz"
    ).fit(X, Y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz.0", "run.npz.1"]
    resumed = clone(model).set_params(resume=True).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, model.weights_)


def test_pickling_and_parameters():
    X, Y = sequences()
    structure = Latent(Chain(), states=2)
    model = LatentStructuralSVM(structure, random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert list(again.predict(X)) == list(model.predict(X))
    assert structure._side is None  # the user's object is left alone
    assert "Latent(Chain(), states=2)" in repr(structure)
    assert clone(model).get_params()["structure"].states == 2


def test_weights_of_examples():
    X, Y = sequences()
    weight = np.ones(len(X))
    weight[::2] = 0.0
    structure = Latent(Chain(labels=["l0", "l1", "l2"]), states=2)
    options = {"start": "first", "gap": 1e-6, "dtype": "float64", "random_state": 0}
    some = LatentStructuralSVM(structure, **options).fit(X, Y, sample_weight=weight)
    few = LatentStructuralSVM(structure, **options).fit(X[1::2], Y[1::2])
    assert some.outer_history_[0].bound == pytest.approx(few.outer_history_[0].bound, rel=0.1)
    assert (weight[::2] == 0).all()


# --- bad input of structures ---


class NoCompletion(reference.Asked):
    def argmax(self, x, w, truth=None, given=None):
        return None if given == 2 else super().argmax(x, w, truth, given)


class OtherTruth(reference.Asked):
    def argmax(self, x, w, truth=None, given=None):
        return (0, 0) if given is not None else super().argmax(x, w, truth, given)


class Costly(reference.Asked):
    def loss(self, y, z):
        return 1.0


class BadStart(reference.Asked):
    def initial(self, x, y, rng):
        return (y + 1) % 3, 0


class Nan(reference.Asked):
    def joint_feature(self, x, z):
        return np.full(reference.D, np.nan)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (NoCompletion(), r"latent space is empty.*example \d"),
        (OtherTruth(), r"visible part is 0; expected the truth, \d.*example \d"),
        (Costly(), r"loss of Costly is 1.0 for a complete output of the truth.*example 0"),
        (BadStart(), r"initial of BadStart did not return a complete output"),
        (Nan(), r"joint_feature of Nan returned.*example 0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_structures_are_named(structure, message):
    X, Y = reference.random_tables(np.random.default_rng(0))
    Y[3] = 2
    with pytest.raises(StructureError, match=message):
        LatentStructuralSVM(structure).fit(X, Y)


def test_a_truth_outside_of_the_output_space():
    X, Y = reference.random_tables(np.random.default_rng(0))
    Y[4] = 7
    with pytest.raises(StructureError, match=r"latent space is empty, for example 4"):
        LatentStructuralSVM(reference.Tables()).fit(X, Y)


@pytest.mark.parametrize(
    ("structure", "error", "message"),
    [
        (None, NotCompatibleError, "needs a structure"),
        (Latent(None), NotCompatibleError, "needs a structure"),
        (Latent(Chain(), states=0), ValueError, "states is 0"),
        (Latent(Chain(), states={"no": 2}), ValueError, "'no', which no truth has"),
        (Latent(Chain(), states=10**6), ValueError, "pairs"),
        (Latent(Chain(kernel="rbf"), states=2), NotCompatibleError, "kernel"),
        (Latent(reference.Asked(), states=2), NotCompatibleError, "states are for Chain"),
    ],
    ids=["none", "of none", "no state", "unknown label", "too many", "kernel", "another structure"],
)
def test_bad_latent_structures(structure, error, message):
    X, Y = sequences(n=3)
    with pytest.raises(error, match=message):
        LatentStructuralSVM(structure).fit(X, Y)


def test_a_structure_without_given():
    class NotAsked(reference.Tables):
        def argmax(self, x, w, truth=None):
            raise AssertionError

        outputs = maxmargin.Structure.outputs

    X, Y = reference.random_tables(np.random.default_rng(0))
    with pytest.raises(NotCompatibleError, match=r"write argmax\(x, w, truth=None, given=None\)"):
        LatentStructuralSVM(NotAsked()).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "oneslack"}, "convex steps"),
        ({"solver": maxmargin.SDM(slack="quadratic")}, "linear"),
        ({"regularizer": GaussianPrior(precision=np.eye(5))}, "diagonal"),
        ({"start": "middle"}, "start"),
        ({"n_starts": 0}, "n_starts"),
        ({"anneal": -1.0}, "anneal"),
        ({"C": -1.0}, "C must"),
        ({"C_scale": "max"}, "C_scale"),
    ],
    ids=str,
)
def test_bad_parameters(options, message):
    X, Y = reference.random_tables(np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        LatentStructuralSVM(reference.Asked(), **options).fit(X, Y)


def test_no_truths_and_one_class():
    X, Y = reference.random_tables(np.random.default_rng(0))
    with pytest.raises(ValueError, match="requires Y"):
        LatentStructuralSVM(reference.Asked()).fit(X, None)
    with pytest.raises(ValueError, match="X has"):
        LatentStructuralSVM(reference.Asked()).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        LatentStructuralSVM(Latent(Multiclass(), states=2)).fit(np.eye(3), ["a", "a", "a"])


# --- rows ---


def test_one_row_is_the_binary_svm():
    X, y = bags(rows=1)
    options = {"C": 0.7, "gap": 1e-8, "random_state": 0}
    latent = LatentSVM(**options).fit(X, y)
    plain = BinarySVM(**options).fit(X[:, 0], y)
    assert latent.objective_ == pytest.approx(plain.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(latent.coef_, plain.coef_, atol=1e-4)
    np.testing.assert_allclose(latent.intercept_, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("start", ["first", "random"])
def test_rows_by_the_definition_of_the_objective(start):
    X, y = bags()
    model = LatentSVM(C=0.5, gap=1e-7, start=start, random_state=0).fit(X, y)
    best = (X @ model.coef_[0] + model.intercept_).max(axis=1)
    w = model.weights_
    hinges = np.where(y == 1, np.maximum(0, 1 - best), np.maximum(0, 1 + best))
    assert model.objective_ == pytest.approx(0.5 * w @ w + 0.5 * hinges.sum(), rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), best)
    assert (model.predict(X) == (best > 0)).all()
    assert (model.predict_latent(X) == (X @ model.coef_[0]).argmax(axis=1)).all()
    assert model.score(X, y) > 0.9
    assert (np.diff(model.outer_history_.column("objective")) <= 0).all()


def test_sparse_rows_and_bags_of_different_sizes():
    import scipy.sparse

    X, y = bags()
    ragged = [x[: 2 + i % 3] for i, x in enumerate(X)]
    dense = LatentSVM(random_state=0).fit(ragged, y)
    sparse = LatentSVM(random_state=0).fit([scipy.sparse.csr_array(x) for x in ragged], y)
    np.testing.assert_array_equal(dense.weights_, sparse.weights_)
    assert dense.objective_ < dense.outer_history_[0].bound


@pytest.mark.parametrize("options", [{"n_starts": 3}, {"anneal": 0.5}, {"self_paced": True}])
def test_options_of_rows(options):
    X, y = bags()
    model = LatentSVM(random_state=0, **options).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.8


def test_a_model_file_of_rows(tmp_path):
    X, y = bags()
    model = LatentSVM(C=0.5, n_starts=2, random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    path = tmp_path / "model.mm"
    model.save(path)
    for loaded in (LatentSVM.load(path), maxmargin.load(path)):
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
        assert loaded.get_params() == model.get_params()
        assert loaded.classes_.tolist() == ["no", "yes"]
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(ModelFormatError):
        LatentSVM.load(path)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[[1.0]], []], [0, 1], "example 1 has no rows: its latent space is empty"),
        ([[[1.0]], [[np.nan]]], [0, 1], "example 1"),
        ([[[1.0]], [[2.0]]], [1, 1], r"1 classes \(1\); expected two"),
        ([[[1.0]], [[2.0]], [[3.0]]], [0, 1, 2], "3 classes"),
        ([[[1.0]], [[2.0]]], [0, 1, 1], "X has 2 examples and y has 3"),
        ([[[1.0]], [[2.0, 3.0]]], [0, 1], "example 1"),
        ([[[1.0]], [[2.0]]], [0.0, np.nan], "nan|NaN"),
        ([], [], "empty"),
    ],
    ids=str,
)
def test_bad_rows(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LatentSVM().fit(X, y)


def test_a_limit_warns():
    X, Y = sequences()
    with pytest.warns(ConvergenceWarning, match="max_outer = 1"):
        LatentStructuralSVM(
            Latent(Chain(), states=3), start="random", max_outer=1, random_state=0
        ).fit(X, Y)
