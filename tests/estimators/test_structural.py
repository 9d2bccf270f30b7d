"""StructuralSVM: any structure through the same engine, and scikit-learn's rules."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import weakref

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import kit
import qp_reference
from kit import Idle
from maxmargin import L2, SDM, Chain, ElasticNet, StructuralSVM, memory
from maxmargin.errors import NotCompatibleError, NothingLearnedError, StructureError

K, D = 3, 2


class Classes(kit.Classes):
    """Three classes; errors have a cost."""

    def __init__(self, cost=1.0):
        self.cost = cost

    def loss(self, y, y_hat):
        return self.cost * float(y != y_hat)


class Prepared(Classes):
    """Learns something in prepare, which must not touch the user's object."""

    def prepare(self, X, Y):
        self.seen = len(X)
        self.n_features = K * len(X[0])


def data(n=30, seed=0, noise=0.8):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, K, n)
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    return list(centres[Y] + noise * rng.normal(size=(n, D))), Y.tolist()


X, Y = data()
# Little data of few features takes many passes to a small gap; this C makes it few.
C_EASY = 0.02
WORDS = [[["the"], ["dog"]], [["dogs"], ["bark"]], [["bark"]]] * 4
TAGS = [["D", "N"], ["N", "V"], ["V"]] * 4


def fitted(**options):
    options = {"structure": Classes(), "C": C_EASY, "random_state": 0, **options}
    return StructuralSVM(**options).fit(X, Y)


# --- training ---


@pytest.mark.parametrize("schedule", ["auto", "paper", "basic"])
@pytest.mark.parametrize("C", [0.01, 0.3])
def test_agrees_with_an_independent_solver(C, schedule):
    noisy = data(noise=2.5)
    expected = qp_reference.solve(Classes(), *noisy, C)
    solver = SDM(schedule=schedule, tau=1e-4, tau_inner=1e-5)
    model = StructuralSVM(
        Classes(), C=C, gap=1e-4, solver=solver, max_passes=5000, random_state=0
    ).fit(*noisy)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(expected.primal, rel=1e-3)
    assert model.certificate_.dual <= expected.primal * (1 + 1e-9)
    np.testing.assert_allclose(model.weights_, expected.w, atol=0.05 * np.abs(expected.w).max())


def test_chain_agrees_with_an_independent_solver():
    rng = np.random.default_rng(0)
    tags = [[0], [1, 0], [1, 1, 0], [0, 1, 1]]
    sequences = [rng.normal(size=(len(y), 2)) for y in tags]

    class Listed(Chain):
        def outputs(self, x):
            return (list(y) for y in itertools.product((0, 1), repeat=len(x)))

    chain = Listed()
    chain.prepare(sequences, tags)
    expected = qp_reference.solve(chain, sequences, tags, 1.0)
    model = StructuralSVM(Chain(), C=1.0, gap=1e-4, dtype="float64", max_passes=20_000)
    model.fit(sequences, tags)
    assert model.certificate_.primal == pytest.approx(expected.primal, rel=2e-4)
    found = np.concatenate([part.ravel() for part in model.structure_.unpack(model.weights_)])
    np.testing.assert_allclose(found, expected.w, atol=0.05)


def test_attributes():
    model = fitted()
    assert model.converged_
    assert "gap" in model.stop_reason_
    assert model.n_examples_ == len(X)
    assert model.n_iter_ == len(model.history_) >= 1
    assert 0 < model.certificate_.dual <= model.certificate_.primal
    assert model.weights_.dtype == np.float64  # Python structures train in 8 bytes
    assert model.score(X, Y) > -0.2


def test_predictions_and_scores():
    model = fitted()
    answers = model.predict(X).tolist()
    scores = np.array([model.score_outputs(X, [k] * len(X)) for k in range(K)])
    assert answers == scores.argmax(axis=0).tolist()
    losses = [float(a != b) for a, b in zip(answers, Y, strict=True)]
    assert model.score(X, Y) == pytest.approx(-np.mean(losses))
    np.testing.assert_allclose(scores, model.weights_.reshape(K, D) @ np.array(X).T)


def test_arrays_and_lists_are_the_same_data():
    a = fitted()
    b = StructuralSVM(Classes(), C=C_EASY, random_state=0).fit(np.array(X), np.array(Y))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.predict(np.array(X)).tolist() == a.predict(X).tolist()


def test_structure_is_never_changed():
    structure = Prepared()
    model = StructuralSVM(structure).fit(X, Y)
    assert vars(structure) == {"cost": 1.0}
    assert model.structure_.seen == len(X)
    assert model.structure is structure
    chain = Chain()
    StructuralSVM(chain).fit(WORDS, TAGS)
    assert chain.n_features is None


def test_duck_typed_structure():
    class Duck:
        joint_feature, loss, outputs = Classes.joint_feature, Classes.loss, Classes.outputs
        n_classes, cost = K, 1.0

    model = fitted(structure=Duck())
    assert model.predict(X).tolist() == fitted().predict(X).tolist()


def test_mean_scale():
    a, b = fitted(C=2.0, C_scale="mean"), fitted(C=2.0 / len(X))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert pytest.approx(2.0 / len(X)) == a.certificate_.C
    with pytest.raises(ValueError, match="C_scale must be"):
        fitted(C_scale="median")


def test_chain():
    model = StructuralSVM(Chain(), C=10.0, random_state=0).fit(WORDS, TAGS)
    assert model.predict(WORDS).tolist() == TAGS
    assert model.score(WORDS, TAGS) == 0.0
    assert model.score(WORDS, [["?"] * len(y) for y in TAGS]) == -np.mean([len(y) for y in TAGS])
    assert model.weights_.dtype == np.float32
    assert (model.score_outputs(WORDS, TAGS) > 0).all()


def test_stops_early_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="max_passes = 1"):
        model = fitted(max_passes=1, gap=1e-9)
    assert not model.converged_
    assert model.n_iter_ == 1
    assert model.certificate_.gap > 1e-9
    assert len(model.predict(X)) == len(X)


def test_callbacks_see_every_pass_and_can_stop():
    seen = []
    model = fitted(callbacks=[seen.append])
    assert [record.n_pass for record in seen][:2] == [1, 2]
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = fitted(callbacks=[lambda record: record.n_pass == 2], gap=1e-9)
    assert stopped.n_iter_ == 2
    assert model.converged_


def test_interrupt_keeps_the_model(capsys):
    class Impatient(Classes):
        calls = 0

        def argmax(self, x, w, truth=None):
            Impatient.calls += 1
            if Impatient.calls == 3 * len(X):
                raise KeyboardInterrupt
            return super().argmax(x, w, truth)

    model = StructuralSVM(Impatient(), C=C_EASY, random_state=0, gap=1e-6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stop_reason_ == "interrupted"
    assert not model.converged_
    assert "interrupted" in capsys.readouterr().err
    assert model.certificate_.dual <= model.certificate_.primal
    assert model.score(X, Y) > -0.4


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_model_that_learned_nothing_is_an_error(warm_start):
    model = fitted(warm_start=warm_start)
    before = model.weights_.copy()
    model.set_params(solver=Idle(), warm_start=False, max_passes=3)
    with (
        pytest.warns(ConvergenceWarning, match="max_passes = 3"),
        pytest.raises(NothingLearnedError, match="nothing was learned: all weights are zero"),
    ):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.weights_, before)
    assert model.converged_


def test_zero_is_a_model_where_it_is_the_optimum():
    model = fitted(C=1e-6, regularizer=ElasticNet(10.0, 1.0))
    assert not model.weights_.any()
    assert model.converged_
    assert model.certificate_.gap <= 0.01


def test_checkpoint_and_resume(tmp_path):
    path = tmp_path / "run"
    whole = fitted(gap=1e-6)
    with pytest.warns(ConvergenceWarning):
        fitted(gap=1e-6, max_passes=3, checkpoint=path)
    resumed = fitted(gap=1e-6, checkpoint=path, resume=True)
    assert resumed.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


# --- bad input ---


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [], "X and Y are empty"),
        (X, Y[:-1], "X has 30 examples and Y has 29"),
        (X, None, "requires Y"),
        (X, [None, *Y[1:]], r"Y\[0\] is None"),
        ("abc", Y, "X must be a sequence"),
    ],
)
def test_bad_data(inputs, outputs, message):
    with pytest.raises(ValueError, match=message):
        StructuralSVM(Classes()).fit(inputs, outputs)


@pytest.mark.parametrize(
    "bad",
    [
        {"C": 0},
        {"C": -1.0},
        {"C": np.nan},
        {"C": np.inf},
        {"C": "1"},
        {"C": "1", "C_scale": "mean"},
        {"C": 0, "C_scale": "mean"},
        {"gap": -1},
        {"gap": np.nan},
        {"max_passes": 0},
        {"max_passes": 1.5},
        {"time_limit": 0},
        {"n_jobs": 0},
        {"solver": "newton"},
        {"solver": 3},
        {"regularizer": "l7"},
        {"resume": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("native", [False, True])
def test_bad_parameters(bad, native):
    structure, inputs, outputs = (Chain(), WORDS, TAGS) if native else (Classes(), X, Y)
    name = next(iter(bad))
    with pytest.raises((ValueError, TypeError), match=name):
        StructuralSVM(structure, **bad).fit(inputs, outputs)


def test_bad_dtype():
    with pytest.raises(ValueError, match="dtype must be"):
        StructuralSVM(Chain(), dtype="float16").fit(WORDS, TAGS)


def test_bad_structures():
    with pytest.raises(NotCompatibleError, match="needs a structure"):
        StructuralSVM().fit(X, Y)
    with pytest.raises(NotCompatibleError, match=r"write Classes\(\.\.\.\)"):
        StructuralSVM(Classes).fit(X, Y)
    with pytest.raises(NotCompatibleError, match="Missing: joint_feature"):
        StructuralSVM(3).fit(X, Y)
    uncopied = Classes()
    uncopied.stream = (k for k in range(3))
    with pytest.raises(NotCompatibleError, match="Classes cannot be deep-copied"):
        StructuralSVM(uncopied).fit(X, Y)


def raising(*args, **kwargs):
    raise RuntimeError("the disk is full")


@pytest.mark.parametrize(
    ("method", "replacement", "message"),
    [
        ("argmax", raising, "argmax of .* failed: RuntimeError: the disk is full, for example"),
        ("argmax", lambda self, x, w, truth=None: None, "argmax of .* returned None"),
        ("argmax", lambda self, x, w, truth=None: "cat", "failed"),
        ("loss", raising, "loss of .* failed: RuntimeError"),
        ("loss", lambda self, y, y_hat: float("nan"), "loss of .* returned nan"),
        ("loss", lambda self, y, y_hat: -1.0, "expected at least 0"),
        ("loss", lambda self, y, y_hat: "1", "expected a float"),
        ("joint_feature", raising, "joint_feature of .* failed"),
        ("joint_feature", lambda self, x, y: np.full(6, np.inf), "finite"),
        ("joint_feature", lambda self, x, y: np.ones(6 + y), "entries; expected"),
        ("joint_feature", lambda self, x, y: "1 2", "type str"),
    ],
)
def test_nonsense_of_a_structure(method, replacement, message):
    broken = type("Broken", (Classes,), {method: replacement})()
    with pytest.raises(StructureError, match=message) as info:
        StructuralSVM(broken).fit(X, Y)
    assert "example" in str(info.value)


def test_oracle_that_fails_in_the_middle():
    class Sometimes(Classes):
        calls = 0

        def argmax(self, x, w, truth=None):
            Sometimes.calls += 1
            if Sometimes.calls == 100:
                raise OSError("the wire was cut")
            return super().argmax(x, w, truth)

    with pytest.raises(StructureError, match="OSError: the wire was cut") as info:
        StructuralSVM(Sometimes(), gap=1e-9).fit(X, Y)
    assert isinstance(info.value.__cause__, OSError)


def test_failures_at_prediction():
    model = fitted()
    for method, replacement, call, message in [
        ("argmax", raising, lambda: model.predict(X), "argmax of Classes failed.*example 0"),
        ("argmax", lambda *a: None, lambda: model.predict(X), "returned None, for example 0"),
        ("loss", lambda *a: "x", lambda: model.score(X, Y), "type str, for example 0"),
        ("score", raising, lambda: model.score_outputs(X, Y), "score of Classes failed"),
    ]:
        setattr(model.structure_, method, replacement)
        with pytest.raises(StructureError, match=message):
            call()
        delattr(model.structure_, method)
    assert model.predict([]).tolist() == []
    with pytest.raises(ValueError, match="X has 30 examples and Y has 1"):
        model.score(X, Y[:1])


def test_weights_are_read_only_for_the_structure():
    class Writing(Classes):
        def argmax(self, x, w, truth=None):
            if truth is None:
                w[0] = 7.0
            return super().argmax(x, w, truth)

    model = fitted(structure=Writing())
    with pytest.raises(StructureError, match="read-only"):
        model.predict(X)


@pytest.mark.parametrize("native", [False, True])
def test_more_memory_than_there_is(monkeypatch, native):
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 100)
    arguments = (Chain(), WORDS, TAGS) if native else (Classes(), X, Y)
    model = StructuralSVM(arguments[0])
    with pytest.raises(MemoryError, match=r"the weights \(\d+ features.* needs .* only 100 bytes"):
        model.fit(*arguments[1:])
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize("call", ["predict", "score", "score_outputs"])
def test_not_fitted(call):
    arguments = (X,) if call == "predict" else (X, Y)
    with pytest.raises(NotFittedError):
        getattr(StructuralSVM(Classes()), call)(*arguments)


def test_a_failed_fit_keeps_the_old_model():
    model = fitted()
    before = model.predict(X).tolist()
    with pytest.raises(ValueError):
        model.set_params(C=-1).fit(X, Y)
    assert model.predict(X).tolist() == before


# --- scikit-learn ---


def test_clone_and_parameters():
    model = fitted(C=3.0, regularizer=L2(), solver=SDM(schedule="paper"))
    twin = clone(model)
    assert not hasattr(twin, "weights_")
    assert twin.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert (twin.C, twin.solver, twin.regularizer) == (3.0, SDM(schedule="paper"), L2())
    assert twin.set_params(C=5.0) is twin
    assert twin.C == 5.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        twin.set_params(c=1)
    assert "C=3.0" in repr(model)


def test_model_selection():
    scores = cross_val_score(StructuralSVM(Classes(), random_state=0), X, Y, cv=3)
    assert scores.shape == (3,)
    assert (scores > -0.5).all()
    search = GridSearchCV(StructuralSVM(Classes(), random_state=0), {"C": [0.001, 1.0]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_ == {"C": 1.0}
    assert len(search.predict(X)) == len(X)
    chains = GridSearchCV(
        StructuralSVM(Chain()), {"structure": [Chain(), Chain(loss={("N", "V"): 2})]}, cv=2
    ).fit(WORDS, TAGS)
    assert chains.best_score_ == 0.0


def test_tags():
    tags = StructuralSVM(Classes()).__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.no_validation
    assert tags.estimator_type is None


@pytest.mark.parametrize("warm_start", [False, True])
def test_pickle_and_deepcopy(warm_start):
    model = fitted(warm_start=warm_start)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.predict(X).tolist() == model.predict(X).tolist()
        assert twin.certificate_ == model.certificate_
        np.testing.assert_array_equal(twin.weights_, model.weights_)
        twin.fit(X, Y)  # starts anew, as the engine is not kept
        np.testing.assert_array_equal(twin.weights_, fitted().weights_)


def test_reproducible_bit_for_bit():
    for options in ({"structure": Classes()}, {"structure": Chain()}):
        arguments = (X, Y) if isinstance(options["structure"], Classes) else (WORDS, TAGS)
        a, b = (
            StructuralSVM(**options, C=C_EASY, random_state=3, gap=1e-4).fit(*arguments)
            for _ in "ab"
        )
        np.testing.assert_array_equal(a.weights_, b.weights_)
        assert a.certificate_ == b.certificate_


def test_n_jobs_changes_nothing():
    a, b = (
        StructuralSVM(Chain(), n_jobs=n, random_state=0, gap=1e-4).fit(WORDS, TAGS) for n in (1, 2)
    )
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.predict(WORDS).tolist() == b.predict(WORDS).tolist()


# --- warm start ---


@pytest.mark.parametrize("structure", [Classes(), Chain()], ids=["python", "native"])
def test_warm_start_goes_on(structure):
    arguments = (X, Y) if isinstance(structure, Classes) else (WORDS, TAGS)
    options = {"random_state": 0, "dtype": "float64", "C": C_EASY}
    cold = StructuralSVM(structure, gap=1e-5, **options).fit(*arguments)
    warm = StructuralSVM(structure, gap=0.3, warm_start=True, **options).fit(*arguments)
    rough = warm.certificate_
    warm.set_params(gap=1e-5).fit(*arguments)
    assert warm.certificate_.gap <= 1e-5
    assert warm.certificate_.dual >= rough.dual
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)
    assert warm.predict(arguments[0]).tolist() == cold.predict(arguments[0]).tolist()
    again = warm.fit(*arguments)
    assert again.n_iter_ <= cold.n_iter_


@pytest.mark.parametrize("C", [C_EASY / 3, 3 * C_EASY])
def test_warm_start_with_another_c(C):
    warm = fitted(warm_start=True, gap=1e-5)
    warm.set_params(C=C).fit(X, Y)
    cold = fitted(C=C, gap=1e-5)
    assert warm.certificate_.C == C
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)


@pytest.mark.parametrize(
    ("structure", "arguments"),
    [
        (Classes(), (X[:-1], Y[:-1])),
        (Classes(), (X, [(Y[0] + 1) % K, *Y[1:]])),
        (Classes(), ([2 * X[0], *X[1:]], Y)),
        (Chain(), (WORDS, TAGS)),
    ],
)
def test_warm_start_with_other_data(structure, arguments):
    model = fitted(warm_start=True)
    before = model.weights_.copy()
    with pytest.raises(ValueError, match=r"warm_start=True goes on .* have changed"):
        model.set_params(structure=structure).fit(*arguments)
    np.testing.assert_array_equal(model.weights_, before)
    model.set_params(warm_start=False).fit(*arguments)
    assert model.n_examples_ == len(arguments[0])


def test_engine_is_kept_only_for_a_warm_start():
    assert not hasattr(fitted(), "_warm")
    model = fitted(warm_start=True)
    structure = weakref.ref(model.structure_)
    assert hasattr(model, "_warm")
    model.set_params(warm_start=False).fit(X, Y)
    assert not hasattr(model, "_warm")
    gc.collect()
    assert structure() is None  # nothing native keeps the old problem alive
