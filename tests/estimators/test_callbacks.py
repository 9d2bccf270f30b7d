"""scikit-learn's callbacks on the estimators, and their absence."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kit import Classes
from maxmargin import SDM, Chain, SequenceTagger, StructuralSVM
from maxmargin._native import Engine
from maxmargin.estimators import structural
from maxmargin.solvers.driver import PassObserver


def corpus(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = rng.integers(0, 4, rng.integers(3, 8))
        words = np.where(rng.random(len(tags)) < 0.2, rng.integers(0, 4, len(tags)), tags)
        X.append([{"w": f"{tag}{rng.integers(3)}", "bias": True} for tag in words])
        y.append([f"T{tag}" for tag in tags])
    return X, y


X, y = corpus()
OPTIONS = {"C": 1.0, "gap": 1e-3, "random_state": 0}


class Quiet:
    """A callback that needs nothing."""

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        pass


class Counting(Quiet):
    """Writes down what it is told, and stops if asked to."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, y):
        assert len(X) == len(y)
        self.events.append(("end", context.task_name, context.task_id))
        self.max_subtasks = context.max_subtasks
        return context.task_name == "pass" and context.task_id + 1 == self.stop_at


class Snapshots(Quiet):
    """Keeps the estimators of all passes."""

    def __init__(self):
        self.passes = []
        self.last = None

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        assert fitted_estimator is not estimator
        if context.task_name == "pass":
            self.passes.append(fitted_estimator)
        else:
            self.last = fitted_estimator


class Failing(Counting):
    def on_fit_task_end(self, estimator, context):
        raise RuntimeError("no more")


# --- the driver's side: with any scikit-learn ---


class Observer:
    def __init__(self, stop_at=None):
        self.begun, self.ended, self.stop_at = 0, [], stop_at

    def begin_pass(self, engine):
        assert self.begun == len(self.ended)
        self.begun += 1

    def end_pass(self, record, engine):
        self.ended.append((record.n_pass, engine.weights.copy()))
        return record.n_pass == self.stop_at


def test_observers_and_callables_side_by_side():
    observer, seen = Observer(), []
    assert isinstance(observer, PassObserver)
    assert not isinstance(seen.append, PassObserver)
    tagger = SequenceTagger(callbacks=[observer, seen.append], **OPTIONS).fit(X, y)
    assert observer.begun == len(observer.ended) == len(seen) == tagger.n_iter_
    assert [n for n, _ in observer.ended] == [record.n_pass for record in seen]


def test_observers_can_stop():
    with pytest.warns(ConvergenceWarning, match="callback"):
        tagger = SequenceTagger(callbacks=[Observer(stop_at=2)], **OPTIONS).fit(X, y)
    assert tagger.n_iter_ == 2


# --- without sklearn.callback ---


def test_works_without_sklearn_callback():
    script = """
        import pickle
        import sys

        import sklearn
        import sklearn.model_selection

        hidden = [name for name in sys.modules if name.startswith("sklearn.callback")]
        saved = {name: sys.modules.pop(name) for name in hidden}
        if hasattr(sklearn, "callback"):
            del sklearn.callback
        sys.modules["sklearn.callback"] = None
        import maxmargin
        from maxmargin.estimators import callbacks

        assert callbacks._sklearn_callback is None
        del sys.modules["sklearn.callback"]
        sys.modules.update(saved)  # scikit-learn itself needs it

        X = [[["the"], ["dog"]], [["dogs"], ["bark"]], [["bark"]]] * 4
        y = [["D", "N"], ["N", "V"], ["V"]] * 4
        seen = []
        tagger = maxmargin.SequenceTagger(C=1.0, callbacks=[seen.append]).fit(X, y)
        assert tagger.score(X, y) == 1.0
        assert len(seen) == tagger.n_iter_
        assert not hasattr(tagger, "set_callbacks")
        assert pickle.loads(pickle.dumps(tagger)).predict(X).tolist() == y
        search = sklearn.model_selection.GridSearchCV(
            maxmargin.SequenceTagger(), {"C": [0.1, 1.0]}, cv=2
        )
        assert search.fit(X, y).score(X, y) == 1.0
        print("fine")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "fine"


# --- with it ---


@pytest.fixture
def skl():
    return pytest.importorskip("sklearn.callback")


def test_each_pass_is_a_task_of_fit(skl):
    counting = Counting()
    tagger = SequenceTagger(max_passes=500, **OPTIONS).set_callbacks(counting).fit(X, y)
    tasks = [(kind, "pass", k) for k in range(tagger.n_iter_) for kind in ("begin", "end")]
    assert counting.events == [
        "setup",
        ("begin", "fit", 0),
        *tasks,
        ("end", "fit", 0),
        "teardown",
    ]
    assert counting.max_subtasks == 500  # of the last one told of: fit
    assert not [name for name in vars(tagger) if "ctx" in name or "teardown" in name]


def test_all_of_max_passes(skl):
    counting = Counting()
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        SequenceTagger(max_passes=3, **OPTIONS).set_callbacks(counting).fit(X, y)
    assert counting.events.count(("end", "pass", 2)) == 1
    assert len(counting.events) == 2 + 2 + 2 * 3


def test_callbacks_do_not_change_the_model(skl):
    plain = SequenceTagger(**OPTIONS).fit(X, y)
    watched = SequenceTagger(**OPTIONS).set_callbacks(Counting(), Snapshots()).fit(X, y)
    np.testing.assert_array_equal(plain.weights_, watched.weights_)
    assert plain.n_iter_ == watched.n_iter_


def test_stops_after_the_pass(skl):
    stopping, other = Counting(stop_at=3), Counting()
    with pytest.warns(ConvergenceWarning, match="callback"):
        tagger = SequenceTagger(**OPTIONS).set_callbacks(stopping, other).fit(X, y)
    assert tagger.n_iter_ == 3
    assert tagger.stop_reason_ == "stopped by a callback"
    assert stopping.events == other.events
    assert stopping.events[-2:] == [("end", "fit", 0), "teardown"]


def test_snapshots_of_passes(skl):
    snapshots = Snapshots()
    tagger = SequenceTagger(**OPTIONS).set_callbacks(snapshots).fit(X, y)
    models = snapshots.passes
    assert [model.n_iter_ for model in models] == list(range(1, tagger.n_iter_ + 1))
    assert [len(model.history_) for model in models] == list(range(1, tagger.n_iter_ + 1))
    duals = [model.certificate_.dual for model in models]
    assert np.all(np.diff(duals) >= 0)
    # Each has weights of its own, unless its pass moves none; the last ones are those of the model,
    # up to rounding.
    moved = [m for m in models if m.history_.column("kind")[-1] != "collect"]
    assert len(moved) > 3
    assert len({model.weights_.tobytes() for model in moved}) == len(moved)
    np.testing.assert_allclose(models[-1].weights_, tagger.weights_, atol=1e-4)
    np.testing.assert_allclose(models[-1].coef_, tagger.coef_, atol=1e-4)
    assert models[-1].converged_
    assert not models[0].converged_
    np.testing.assert_array_equal(snapshots.last.weights_, tagger.weights_)
    # They are estimators like any other.
    again = pickle.loads(pickle.dumps(models[-1].set_callbacks()))
    assert again.predict(X).tolist() == models[-1].predict(X).tolist()
    assert clone(models[0]).fit(X, y).converged_


def objective(model):
    """Primal of a tagger's weights, by an engine that took no part in its training."""
    engine = Engine(Chain().prepare_problem(X, y).problem, model.C, single=True, factored=True)
    engine.weights[:] = model.weights_
    return 0.5 * float(model.weights_.astype(float) @ model.weights_) + model.C * engine.hinge(1)


def test_snapshot_weights_have_the_primal_of_the_record(skl):
    snapshots = Snapshots()
    SequenceTagger(**OPTIONS).set_callbacks(snapshots).fit(X, y)
    known = [model for model in snapshots.passes if np.isfinite(model.certificate_.primal)]
    assert known
    for model in known:
        assert objective(model) == pytest.approx(model.certificate_.primal, rel=1e-4)


def test_a_refit_replaces_the_old_model_in_snapshots(skl):
    snapshots = Snapshots()
    tagger = SequenceTagger(warm_start=True, **OPTIONS).fit(X, y)
    tagger.set_callbacks(snapshots)
    tagger.set_params(C=2.0).fit(X, y)
    assert {model.certificate_.C for model in snapshots.passes} == {2.0}
    assert not any(hasattr(model, "_warm") for model in snapshots.passes)


def test_weights_are_copied_only_if_asked_for(skl, monkeypatch):
    copies = []
    original = structural.model_weights

    def model_weights(problem, engine):
        copies.append(engine)
        return original(problem, engine)

    monkeypatch.setattr(structural, "model_weights", model_weights)
    tagger = SequenceTagger(**OPTIONS)
    tagger.set_callbacks(Counting(), Quiet()).fit(X, y)
    assert not copies
    tagger.set_callbacks(Snapshots(), Snapshots()).fit(X, y)
    assert len(copies) == tagger.n_iter_  # one copy serves both


def test_scoring_monitor(skl):
    # scoring=None fails in scikit-learn 1.9 with any estimator: it expects a dict of scores.
    monitor = skl.ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X, y)})
    tagger = SequenceTagger(**OPTIONS).set_callbacks(monitor)
    tagger.fit(X, y, token_weight=[np.ones(len(x)) for x in X])
    rows = monitor.get_logs().data
    scores = [row["score"] for row in rows if row["task_name"] == "pass"]
    assert len(scores) == tagger.n_iter_
    assert all(0 <= score <= 1 for score in scores)
    # The dual rises with every pass, the score only on the whole.
    assert np.mean(scores[-5:]) > np.mean(scores[:5])
    assert scores[-1] > scores[0]
    assert scores[-1] == pytest.approx(tagger.score(X, y), abs=0.02)
    assert [row["score"] for row in rows if row["task_name"] == "fit"] == [tagger.score(X, y)]


def test_structure_in_python(skl):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 30)
    inputs = list(np.array([[0, 2], [2, -1], [-2, -1]])[truth] + rng.normal(size=(30, 2)))
    snapshots = Snapshots()
    model = StructuralSVM(Classes(), C=0.02, random_state=0).set_callbacks(snapshots)
    model.fit(inputs, truth.tolist())
    assert len(snapshots.passes) == model.n_iter_
    assert snapshots.passes[-1].predict(inputs).tolist() == model.predict(inputs).tolist()
    np.testing.assert_allclose(snapshots.passes[-1].weights_, model.weights_, atol=1e-9)


def test_progress_bar(skl, capfd):
    pytest.importorskip("rich")
    tagger = SequenceTagger(**OPTIONS).set_callbacks(skl.ProgressBar()).fit(X, y)
    assert tagger.converged_
    out = capfd.readouterr().out
    assert "SequenceTagger - fit" in out
    assert "100%" in out
    pickle.dumps(tagger)


@pytest.mark.parametrize("max_passes", ["many", 0, -1, 2.5])
def test_bad_max_passes_is_told_as_before(skl, max_passes):
    counting = Counting()
    tagger = SequenceTagger(max_passes=max_passes).set_callbacks(counting)
    with pytest.raises((TypeError, ValueError), match="max_passes must be"):
        tagger.fit(X, y)
    assert counting.events[-1] == "teardown"


def test_a_failing_callback_ends_fit_and_keeps_the_model(skl):
    tagger = SequenceTagger(**OPTIONS).fit(X, y)
    weights = tagger.weights_
    failing = Failing()
    with pytest.raises(RuntimeError, match="no more"):
        tagger.set_callbacks(failing).fit(X, y)
    assert failing.events[-1] == "teardown"
    assert tagger.weights_ is weights
    assert tagger.set_callbacks().fit(X, y).converged_


def test_ctrl_c_ends_the_open_pass(skl, monkeypatch):
    original, steps = SDM.step, []

    def step(self, engine, state, context):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return original(self, engine, state, context)

    monkeypatch.setattr(SDM, "step", step)
    counting = Counting()
    # The pass cut short has no data to hand over.
    counting.on_fit_task_end = lambda estimator, context: counting.events.append(
        ("end", context.task_name, context.task_id)
    )
    tagger = SequenceTagger(**OPTIONS).set_callbacks(counting)
    with pytest.raises(KeyboardInterrupt):
        tagger.fit(X, y)
    assert tagger.stop_reason_ == "interrupted"
    assert tagger.n_iter_ == 2
    assert counting.events[-3:] == [("end", "pass", 2), ("end", "fit", 0), "teardown"]


def test_only_callbacks_are_taken(skl):
    with pytest.raises(TypeError, match="FitCallback"):
        SequenceTagger().set_callbacks(print)


def test_clone_and_pickle(skl):
    counting = Counting()
    tagger = SequenceTagger(**OPTIONS).set_callbacks(counting)
    copied = clone(tagger)
    assert copied.get_params() == tagger.get_params()
    assert pickle.loads(pickle.dumps(tagger)).fit(X, y).converged_
    assert not counting.events
    copied.fit(X, y)
    assert counting.events
    assert pickle.loads(pickle.dumps(copied)).predict(X).tolist() == copied.predict(X).tolist()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search(skl, n_jobs):
    counting = Counting()
    tagger = SequenceTagger(**OPTIONS)
    search = GridSearchCV(
        tagger.set_callbacks(counting), {"C": [0.1, 1.0]}, cv=2, n_jobs=n_jobs
    ).fit(X, y)
    assert search.best_estimator_.converged_
    fits = 1 if n_jobs else 5  # other processes count their own
    assert counting.events.count("setup") == counting.events.count("teardown") == fits
    assert search.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:The estimator FunctionTransformer does not support")
def test_progress_bar_of_a_grid_search_and_a_pipeline(skl, capfd):
    pytest.importorskip("rich")
    bar = skl.ProgressBar(max_propagation_depth=None)
    search = GridSearchCV(SequenceTagger(**OPTIONS), {"C": [0.1, 1.0]}, cv=2)
    search.set_callbacks(bar).fit(X, y)
    assert "SequenceTagger - fit" in capfd.readouterr().out
    pipe = make_pipeline(FunctionTransformer(), SequenceTagger(**OPTIONS))
    pipe.set_callbacks(skl.ProgressBar()).fit(X, y)
    assert "SequenceTagger - fit" in capfd.readouterr().out
