"""Learning online: growth, forgetting, certificates and persistence, for every estimator."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_estimators_partial_fit_n_features,
    check_n_features_in_after_fitting,
)

from dependency_files import examples, trees
from kit import Classes
from maxmargin import (
    SVR,
    Aligner,
    BinarySVM,
    Chain,
    Constraints,
    DependencyParser,
    ElasticNet,
    MulticlassSVM,
    Online,
    Parser,
    SequenceTagger,
    StructuralSVM,
    TaxonomySVM,
    Tree,
)
from maxmargin._native import Engine, PassOptions
from maxmargin.errors import NotCompatibleError
from maxmargin.online import OnlineLearner
from maxmargin.streams import EncodedCorpus, encode
from qp_reference import solve
from reference_chain import ReferenceChain

EXACT = {"C": 0.7, "gap": 1e-8, "dtype": "float64", "random_state": 0}


def sentences(n, seed=0, labels="ABC", words=12):
    """Return sentences of feature dicts and their labels, with some noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        numbers = rng.integers(words, size=rng.integers(1, 5))
        X.append([{f"w{k}": True, f"m{k % 5}": 0.5 + k % 3} for k in numbers.tolist()])
        noise = rng.random(len(numbers)) < 0.1
        y.append([labels[int(k) % len(labels)] for k in numbers + noise])
    return X, y


def points(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.argmax(X + 0.3 * rng.normal(size=X.shape), axis=1)


def refined(model, cycles=200):
    return model.refine(cycles)


def assert_bounded(model, optimum):
    """Assert LB <= OPT of all examples, and the certificate's own order."""
    bounds = model._online.bounds()
    slack = 1e-9 * (1 + abs(optimum))
    assert bounds.lower <= optimum + slack
    assert bounds.lower <= bounds.upper + slack
    certificate = model.certificate_
    assert certificate.dual <= optimum + slack
    assert certificate.primal >= optimum - slack


# --- the optimum --------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["step", "paper"]), st.integers(1, 5))
def test_cycles_meet_the_optimum_of_an_independent_program(seed, explore, batch):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, size=6)
    X = [rng.normal(size=(n, 3)).round(2) for n in lengths]
    Y = [rng.integers(3, size=n).tolist() for n in lengths]
    Y[0][0], Y[-1][-1] = 0, 2
    expected = solve(ReferenceChain(3, 3), X, Y, 0.7)
    model = SequenceTagger(solver=Online(explore=explore), labels=[0, 1, 2], **EXACT)
    for k in range(0, len(X), batch):
        model.partial_fit(X[k : k + batch], Y[k : k + batch])
        part = solve(ReferenceChain(3, 3), X[: k + batch], Y[: k + batch], 0.7)
        assert_bounded(model, part.primal)
        assert model._online.bounds().lower <= expected.primal + 1e-7  # for all that is to come
    refined(model)
    assert model.certificate_.primal == pytest.approx(expected.primal, rel=1e-6, abs=1e-9)
    assert model.certificate_.n_examples == len(X)


@pytest.mark.parametrize("explore", ["step", "paper"])
def test_the_upper_bound_of_the_cache_is_exact_where_w_rests(explore):
    X, y = sentences(30)
    model = SequenceTagger(solver=Online(explore=explore, tol=0.3), **EXACT)
    exact = []
    for one, labels in zip(X, y, strict=True):
        model.learn_one(one, labels)
        state, bounds = model._online.state, model._online.bounds()
        assert state["lower"] == pytest.approx(bounds.lower, rel=1e-9, abs=1e-9)
        exact.append(abs(state["open"] - (bounds.upper - bounds.lower)) <= 1e-9 * bounds.upper)
    assert all(exact) == (explore == "paper")


def test_a_stream_in_another_order_has_a_certificate_as_good():
    X, y = sentences(60)
    order = np.random.default_rng(1).permutation(60)
    first = SequenceTagger(C=0.1).partial_fit(X, y)
    second = SequenceTagger(C=0.1).partial_fit([X[k] for k in order], [y[k] for k in order])
    assert second.certificate_.primal == pytest.approx(first.certificate_.primal, rel=0.2)
    one = refined(first.set_params(gap=1e-4)).certificate_
    assert refined(second.set_params(gap=1e-4)).certificate_.primal == pytest.approx(
        one.primal, rel=2e-4
    )


def test_learning_one_by_one_and_at_once_have_one_optimum():
    X, y = sentences(40)
    once, each = SequenceTagger(**EXACT), SequenceTagger(**EXACT)
    once.partial_fit(X, y)
    for one, labels in zip(X, y, strict=True):
        each.learn_one(one, labels)
    batch = SequenceTagger(**EXACT).fit(X, y)
    for model in (once, each):
        assert refined(model).certificate_.primal == pytest.approx(
            batch.certificate_.primal, rel=1e-6
        )
        assert list(model.predict(X)) == list(batch.predict(X))


# --- every estimator ----------------------------------------------------------------------------

TREES = [
    "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN cat)) (PP (IN with) (NP (NN fur))))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN at) (NP (NN noon)))))",
    "(S (NP (PRP it)) (VP (VBZ sees) (NP (DT the) (NN dog))))",
    "(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))))",
    "(S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN at) (NP (NN noon)))))",
]


def estimators():
    """Return estimators with examples, of which the first half shows all that there is."""
    X, k = points()
    order = np.r_[0:40]
    dependency = examples(trees(12))
    relations = DependencyParser(bits=10, label_bits=7, labelled=False, **EXACT)
    pairs = [("ACGT", "ACT"), ("GATTACA", "GTACA"), ("CCGA", "CGA"), ("ACCA", "AA")]
    matches = ["MM1M", "M11MMMM", "1MMM", "M11M"]
    rows = [np.random.default_rng(i).normal(size=(2, 3)) for i in range(8)]
    numbers = [np.array([0.5, 1.0])] * 8
    paths = np.array(["a/x", "a/y", "b/z"])[k]
    sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    heads = [h for h, _ in dependency[1]]
    return {
        "tagger": (SequenceTagger(**EXACT), *sentences(16)),
        "hashed": (SequenceTagger(hash_bits=6, **EXACT), *sentences(16)),
        "chain": (StructuralSVM(Chain(), **EXACT), *sentences(16)),
        "python": (StructuralSVM(Classes(), **EXACT), list(X[:16]), k[:16].tolist()),
        "constraints": (StructuralSVM(Constraints(), **EXACT), rows, numbers),
        "multiclass": (MulticlassSVM(**EXACT), X[order], k),
        "sparse": (MulticlassSVM(**EXACT), sparse, k),
        "taxonomy": (TaxonomySVM(**EXACT), X, paths),
        "binary": (BinarySVM(**EXACT), X, k > 0),
        "svr": (SVR(**EXACT), X, X[:, 0] - X[:, 1]),
        "parser": (Parser(node_features=None, **EXACT), None, TREES),
        "dependency": (relations, dependency[0], heads),
        "aligner": (Aligner("dna", **EXACT), pairs, matches),
    }


KINDS = list(estimators())


def split(X, y, half):
    """Return the first and the second part of examples."""
    first = None if X is None else X[:half]
    second = None if X is None else X[half:]
    return (first, y[:half]), (second, y[half:])


def size(y):
    return len(y)


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_meets_its_batch_optimum(kind):
    model, X, y = estimators()[kind]
    half = 3 if kind == "parser" else size(y) // 2
    first, second = split(X, y, half)
    model.partial_fit(*first).partial_fit(*second)
    assert model.n_examples_ == size(y)
    assert model.example_ids_ == list(range(size(y)))
    refined(model, 400)
    fitted = clone(model).set_params(gap=1e-7).fit(X, y)
    assert model.certificate_.primal == pytest.approx(
        fitted.certificate_.primal, rel=1e-5, abs=1e-9
    )
    inputs = [Tree.parse(tree) for tree in TREES] if X is None else X
    assert len(model.predict(inputs)) == size(y)


@pytest.mark.parametrize("kind", KINDS)
def test_after_fit_it_goes_on_with_the_multipliers(kind):
    model, X, y = estimators()[kind]
    half = 3 if kind == "parser" else size(y) // 2
    first, second = split(X, y, half)
    model.fit(*first)
    dual = model.certificate_.dual
    model.partial_fit(*second)
    bounds = model._online.bounds()
    assert bounds.lower >= dual - 1e-6 * abs(dual)  # more examples raise the dual only
    assert model.n_examples_ == size(y)
    once = clone(model).set_params(gap=1e-7).fit(X, y)
    assert refined(model, 400).certificate_.primal == pytest.approx(
        once.certificate_.primal, rel=1e-5, abs=1e-9
    )
    model.fit(*first)  # starts anew
    assert model.n_examples_ == half
    assert model.certificate_.dual == pytest.approx(dual, rel=1e-6)
    with pytest.raises(NotCompatibleError, match="partial_fit or learn_one"):
        model.forget([0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_learner_goes_on_bit_for_bit(kind):
    model, X, y = estimators()[kind]
    half = 3 if kind == "parser" else size(y) // 2
    first, second = split(X, y, half)
    model.partial_fit(*first)
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(*second)
    assert np.array_equal(model.weights_, again.weights_)
    assert model.certificate_ == again.certificate_
    assert again.example_ids_ == model.example_ids_


@pytest.mark.parametrize("kind", KINDS)
def test_forgetting_leaves_the_model_of_the_remaining_multipliers(kind):
    model, X, y = estimators()[kind]
    model.partial_fit(X, y)
    n = size(y)
    gone = [1, n - 1]
    stays = [k for k in range(n) if k not in gone]
    example, _loss, alpha, indptr, indices, values = model._online.machine.planes()
    weight = model._online.machine.C * alpha
    u = np.zeros(len(model._online.machine.sums()))
    for k in np.flatnonzero(~np.isin(example, gone)):
        at = slice(indptr[k], indptr[k + 1])
        u[indices[at]] += weight[k] * values[at]
    model.forget(gone)
    assert model.example_ids_ == stays
    learner: OnlineLearner = model._online
    found = learner.machine.sums()
    if len(found) == len(u):  # no feature went with them
        np.testing.assert_allclose(found, u, atol=1e-9)
    assert np.sum(found**2) == pytest.approx(np.sum(u**2), rel=1e-9, abs=1e-12)
    assert learner.machine.dual() == pytest.approx(
        learner.C * float(learner.machine.expected_loss()) - 0.5 * float(u @ u), rel=1e-9, abs=1e-9
    )
    certificate = model.certificate_
    assert certificate.n_examples == n - 2
    inputs = None if X is None else X[stays] if hasattr(X, "shape") else [X[k] for k in stays]
    truths = y[stays] if hasattr(y, "shape") else [y[k] for k in stays]
    if kind != "parser":  # the rules of all trees stay
        once = clone(model).set_params(gap=1e-7).fit(inputs, truths)
        assert certificate.dual <= once.certificate_.primal * (1 + 1e-7) + 1e-9
        assert certificate.primal >= once.certificate_.dual * (1 - 1e-7) - 1e-9
    refined(model, 400)
    assert model.certificate_.gap <= 1e-6


@pytest.mark.parametrize("kind", ["python", "chain", "constraints", "multiclass"])
def test_weights_of_examples_count(kind):
    model, X, y = estimators()[kind]
    weights = np.linspace(0.2, 3.0, size(y))
    half = size(y) // 2
    first, second = split(X, y, half)
    model.partial_fit(*first, sample_weight=weights[:half])
    model.partial_fit(*second, sample_weight=weights[half:])
    fitted = clone(model).set_params(gap=1e-7).fit(X, y, sample_weight=weights)
    assert refined(model, 400).certificate_.primal == pytest.approx(
        fitted.certificate_.primal, rel=1e-5, abs=1e-9
    )
    assert fitted.certificate_.primal != pytest.approx(
        clone(model).set_params(gap=1e-7).fit(X, y).certificate_.primal, rel=1e-3
    )


# --- growth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_new_features_and_labels_leave_all_else_as_it_is(dtype):
    X, y = sentences(30)
    model = SequenceTagger(C=0.5, dtype=dtype, random_state=0).partial_fit(X, y)
    learner = model._online
    before = {name: array.copy() for name, array in learner.machine.state().items()}
    bounds, coef, classes = learner.bounds(), model.coef_, model.classes_.tolist()
    predicted = model.predict(X)
    transitions = model.transitions_
    # Nothing of these is learned: the schedule rests.
    learner._explore = lambda order: None
    new = [[{f"new{k}": True for k in range(60)}] for _ in range(8)]
    labels = [[label] for label in "DEFGHIJK"]  # one bit more for a label, and a wider row
    model.partial_fit(new, labels)
    after = learner.machine.state()
    for name in ("alpha", "loss", "gram", "example", "lo", "hi", "n_planes", "running"):
        assert np.array_equal(before[name], after[name]), name
    u, moved = before["weights"], after["weights"]
    assert np.array_equal(np.sort(u[u != 0]), np.sort(moved[moved != 0]))
    assert learner.bounds() == pytest.approx(bounds, rel=1e-12)
    assert model.classes_.tolist() == classes + list("DEFGHIJK")
    assert np.array_equal(model.coef_[: len(coef), : len(classes)], coef)
    assert not model.coef_[len(coef) :].any()
    assert np.array_equal(model.transitions_[: len(classes), : len(classes)], transitions)
    model.allowed = lambda a, b: True
    scores = [s[:, : len(classes)] for s in model.decision_function(X)]
    assert [[classes[int(np.argmax(row))] for row in s] for s in scores] == list(predicted)


def test_new_classes_grow_between_the_old_ones():
    X, k = points(60)
    names = np.array(["m", "z", "a"])[k]
    late = names == "a"
    model = MulticlassSVM(**EXACT).partial_fit(X[~late], names[~late])
    assert model.classes_.tolist() == ["m", "z"]
    model.partial_fit(X[late], names[late])
    assert model.classes_.tolist() == ["a", "m", "z"]
    batch = MulticlassSVM(**EXACT).fit(X, names)
    refined(model, 400)
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.coef_, batch.coef_, atol=1e-3)


@pytest.mark.parametrize("template", ["words", None])
def test_columns_grow_like_features(template):
    rows = [[[f"w{k % 7}", f"t{k % 3}"] for k in range(i, i + 3)] for i in range(20)]
    X = rows if template else [[[f"{a}", f"{b}"] for a, b in s] for s in rows]
    y = [["AB"[int(a[1:]) % 2] for a, _ in s] for s in rows]
    one, all_ = (SequenceTagger(template=template, **EXACT) for _ in range(2))
    for k in range(20):
        one.learn_one(X[k], y[k])
    all_.fit(X, y)
    assert sorted(one.get_feature_names_out()) == sorted(all_.get_feature_names_out())
    assert refined(one).certificate_.primal == pytest.approx(all_.certificate_.primal, rel=1e-6)
    assert list(one.predict(X)) == list(all_.predict(X))
    again = pickle.loads(pickle.dumps(one))
    again.learn_one([["w1", "t9"]], ["A"])
    assert list(again.predict(X)) == list(all_.predict(X))


def test_the_cost_of_an_example_does_not_grow():
    X, y = sentences(1600, words=200)
    model = SequenceTagger(C=0.1, random_state=0)
    marks = {}
    for k, (one, labels) in enumerate(zip(X, y, strict=True), start=1):
        model.learn_one(one, labels)
        if k in (400, 800, 1600):
            learner = model._online
            marks[k] = np.array([learner.work, learner.oracle_calls])
            assert learner.chunks.copied <= k * (1 + math.log(k, 8))
    # Twice the examples cost about twice as much: linear, and not quadratic (four times).
    assert (marks[800] <= 2.6 * marks[400]).all()
    assert (marks[1600] <= 2.6 * marks[800]).all()
    assert marks[1600][1] <= 10 * 1600  # oracle calls, of which a visit makes ten at most
    assert len(model._online.chunks.problem.sizes) <= 40


# --- forgetting ---------------------------------------------------------------------------------


def test_nothing_of_a_forgotten_example_remains(tmp_path):
    X, y = sentences(20)
    secret = [{"name=Ada": True, "w1": True}, {"shared": True}]
    model = SequenceTagger(**EXACT).partial_fit(X, y)
    model.learn_one(secret, ["A", "B"], id="Ada's message")
    model.learn_one([{"shared": True}], ["A"], id="another")
    model.save(tmp_path / "before.mm")
    assert "name=Ada" in model.get_feature_names_out()
    model.forget(["Ada's message"])
    assert "name=Ada" not in model.get_feature_names_out()
    assert "shared" in model.get_feature_names_out()  # another example has it
    model.save(tmp_path / "after.mm")
    assert b"name=Ada" not in pickle.dumps(model)
    assert b"Ada" not in (tmp_path / "after.mm").read_bytes()
    assert "Ada's message" not in model.example_ids_
    assert sum(len(d["offsets"]) - 1 for d in model._online.chunks.data) == 21
    assert refined(model).certificate_.gap <= 1e-8
    with pytest.raises(KeyError, match="there is no example"):
        model.forget(["another", "Ada's message"])
    assert "another" in model.example_ids_  # none of them has gone


def test_a_correction_is_forgetting_and_learning():
    X, y = sentences(20)
    wrong = [["C" if label == "A" else "A" for label in y[3]]]
    model = SequenceTagger(**EXACT).partial_fit(X, [*y[:3], *wrong, *y[4:]])
    with pytest.raises(ValueError, match="forget it first"):
        model.learn_one(X[3], y[3], id=3)
    model.forget([3]).learn_one(X[3], y[3], id=3)
    right = SequenceTagger(**EXACT).fit(X, y)
    assert refined(model).certificate_.primal == pytest.approx(
        right.certificate_.primal, rel=1e-6
    )


def test_forgetting_all_is_starting_anew():
    X, y = sentences(5)
    model = SequenceTagger(**EXACT).partial_fit(X, y).forget(range(5))
    with pytest.raises(NotCompatibleError):
        model.refine()
    assert not hasattr(model, "weights_")
    assert model.partial_fit(X, y).n_examples_ == 5


# --- a budget for planes ------------------------------------------------------------------------


def after_one_pass(X, y, **options):
    return SequenceTagger(solver=Online(**options), **EXACT).partial_fit(X, y)


def test_a_pass_with_replay_ends_nearer_to_the_optimum():
    gaps = {0: 0.0, 10: 0.0}
    for seed in range(5):
        X, y = sentences(60, seed=seed)
        for replay in gaps:
            certificate = after_one_pass(X, y, replay=replay, cached_passes=1).certificate_
            assert certificate.dual <= certificate.primal + 1e-9
            gaps[replay] += certificate.gap
    assert gaps[10] < 0.9 * gaps[0]


def test_a_replay_raises_the_dual_and_draws_from_what_was_seen():
    X, y = sentences(30, seed=3)
    problem = Chain().prepare_problem(X, y).problem
    order = np.arange(30, dtype=np.uint32)
    half = order[:15]
    engine = Engine(problem, 0.7, single=False)
    engine.exact_pass(half, PassOptions(prune=False))
    before = engine.dual()
    again = engine.exact_pass(half[:1], PassOptions(replay=200, seen=15, seed=1, prune=False))
    assert engine.dual() == pytest.approx(before + again.gain, abs=1e-9)
    assert again.gain > 0
    assert set(np.unique(engine.planes()[0])) <= set(range(15))
    # Ranges that are too large are cut to the examples that there are.
    engine.exact_pass(half[:1], PassOptions(replay=200, seen=10**9, seed=1))
    with pytest.raises(ValueError, match="replay must not be negative"):
        PassOptions(replay=-1)


def test_planes_without_a_multiplier_stay_until_memory_is_short():
    X, y = sentences(80, seed=4)
    learner = after_one_pass(X, y)._online
    n_idle = int((learner.machine.planes()[2] == 0).sum())
    assert n_idle > 0
    size = learner.machine.size()["plane_bytes"]
    dual = learner.machine.dual()
    tight = Online(max_plane_bytes=size - 1)
    assert tight.LEFT < 1
    tight.trim(learner.machine, learner.state, always=True)
    assert learner.machine.size()["plane_bytes"] < size
    assert int((learner.machine.planes()[2] == 0).sum()) < n_idle
    assert learner.machine.dual() <= dual + 1e-9


def test_planes_stay_within_their_budget_and_the_dual_a_bound():
    X, y = sentences(300, words=40)
    free = SequenceTagger(C=0.5, random_state=0).partial_fit(X, y)
    most = free._online.machine.size()["plane_bytes"]
    budget = most // 4
    model = SequenceTagger(C=0.5, random_state=0, solver=Online(max_plane_bytes=budget))
    for k in range(0, 300, 20):
        model.partial_fit(X[k : k + 20], y[k : k + 20])
        assert model._online.machine.size()["plane_bytes"] <= 1.1 * budget
    optimum = SequenceTagger(C=0.5, gap=1e-4, random_state=0).fit(X, y).certificate_
    certificate = model.certificate_
    assert certificate.n_examples == 300  # it speaks of all of them
    assert 0 < certificate.dual <= optimum.primal
    assert certificate.primal >= optimum.dual
    assert model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="does not hold the planes of one example"):
        SequenceTagger(C=0.5, solver=Online(max_plane_bytes=10)).partial_fit(X, y)


# --- persistence --------------------------------------------------------------------------------

KILLED = """
import os, pickle, sys
from maxmargin import SequenceTagger
X, y = pickle.load(open(sys.argv[2], "rb"))
model = SequenceTagger(C=0.3, random_state=0)
for k in range(0, 40, 10):
    model.partial_fit(X[k : k + 10], y[k : k + 10])
    if k == 20:
        with open(sys.argv[1], "wb") as file:
            pickle.dump(model, file)
        os._exit(1)
"""


def test_another_process_goes_on_after_a_kill(tmp_path):
    X, y = sentences(40)
    file, data = tmp_path / "learner.pickle", tmp_path / "data.pickle"
    data.write_bytes(pickle.dumps((X, y)))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, file, data],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 1
    resumed = pickle.loads(file.read_bytes())
    resumed.partial_fit(X[30:], y[30:])
    whole = SequenceTagger(C=0.3, random_state=0)
    for k in range(0, 40, 10):
        whole.partial_fit(X[k : k + 10], y[k : k + 10])
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert resumed.certificate_ == whole.certificate_


def test_pickles_of_earlier_versions_go_on():
    X, y = sentences(40)
    model = SequenceTagger(C=0.3, random_state=0).partial_fit(X[:30], y[:30])
    earlier = pickle.loads(pickle.dumps(model))
    state = earlier._online.__getstate__()
    del state["state"]["seen"]
    # An `Online` of that time had no attribute of this name.
    solver = Online.__new__(Online)
    solver.__dict__.update({k: v for k, v in vars(model._online.solver).items() if k != "replay"})
    earlier._online.__setstate__(state | {"solver": solver})
    whole = model.partial_fit(X[30:], y[30:])
    assert np.array_equal(earlier.partial_fit(X[30:], y[30:]).weights_, whole.weights_)


def test_a_model_file_has_the_model_only(tmp_path):
    X, y = sentences(20)
    model = SequenceTagger(**EXACT).partial_fit(X, y)
    model.save(tmp_path / "model.mm")
    loaded = SequenceTagger.load(tmp_path / "model.mm")
    assert list(loaded.predict(X)) == list(model.predict(X))
    with pytest.raises(NotCompatibleError, match="no multipliers"):
        loaded.partial_fit(X, y)


# --- bad input ----------------------------------------------------------------------------------


def untouched(model, call, *args, error=ValueError, match, **kwargs):
    """Assert that a call is refused and has changed nothing."""
    learner = model._online
    before = (learner.n_examples, learner.machine.sums().copy(), list(model.classes_))
    features = getattr(model, "get_feature_names_out", list)()
    with pytest.raises(error, match=match):
        call(*args, **kwargs)
    after = (learner.n_examples, learner.machine.sums(), list(model.classes_))
    assert before[0] == after[0]
    assert before[2] == after[2]
    assert np.array_equal(before[1], after[1])
    assert np.array_equal(getattr(model, "get_feature_names_out", list)(), features)


def test_a_bad_example_in_the_middle_is_named_and_nothing_is_taken():
    X, y = sentences(6)
    model = SequenceTagger(**EXACT).partial_fit(X, y)
    nan = [{"fresh": float("nan")}]
    untouched(model, model.partial_fit, [X[0], nan, X[1]], [y[0], ["Z"], y[1]], match="sequence 1")
    untouched(model, model.partial_fit, [X[0], 3], [y[0], ["A"]], error=TypeError, match="1")
    untouched(model, model.partial_fit, X[:2], y[:1], match="2")
    untouched(model, model.partial_fit, [X[0], X[1]], [y[0], [*y[1][:-1], "A", "A"]], match="1")
    untouched(model, model.partial_fit, X[:2], y[:2], sample_weight=[1, -1], match="1")
    untouched(model, model.partial_fit, X[:2], y[:2], ids=["a"], match="ids has 1 names")
    untouched(model, model.partial_fit, X[:2], y[:2], ids=["a", "a"], match="example 1 has the id")
    untouched(model, model.partial_fit, X[:1], y[:1], ids=[[]], error=TypeError, match="hashed")
    dense = [np.ones((2, 3))]
    untouched(model, model.partial_fit, dense, [["A", "B"]], match="kind")


def test_parameters_that_change_the_layout_may_not_change():
    X, y = sentences(6)
    model = SequenceTagger(hash_bits=6, **EXACT).partial_fit(X, y)
    model.set_params(hash_bits=7)
    untouched(model, model.partial_fit, X, y, error=NotCompatibleError, match="hash_bits was 6")
    model.set_params(hash_bits=6, loss={("A", "B"): 2.0})
    untouched(model, model.partial_fit, X, y, error=NotCompatibleError, match="loss was 'hamming'")
    model.set_params(loss="hamming", C=2.0)
    model.partial_fit(X, y)
    assert model.certificate_.C == 2.0


def test_parameters_may_not_change_after_fit():
    X, y = sentences(6)
    model = SequenceTagger(hash_bits=6, **EXACT).fit(X, y)
    model.set_params(hash_bits=7)
    with pytest.raises(NotCompatibleError, match=r"hash_bits was 6 .* is 7 now"):
        model.partial_fit(X, y)
    assert model.set_params(hash_bits=6).partial_fit(X, y).n_examples_ == 12


@pytest.mark.parametrize("C", [0.05, 5.0])
def test_another_weight_after_fit(C):
    X, y = sentences(12)
    model = SequenceTagger(**EXACT | {"C": 0.5}).fit(X[:6], y[:6]).set_params(C=C)
    model.partial_fit(X[6:], y[6:])
    assert model.certificate_.C == model.C_ == C
    once = SequenceTagger(**EXACT | {"C": C}).fit(X, y)
    assert refined(model, 400).certificate_.primal == pytest.approx(
        once.certificate_.primal, rel=1e-5
    )


def test_encoded_files_are_not_gone_on_from(tmp_path):
    X, y = sentences(6)
    pairs = list(zip(X, y, strict=True))
    encode(pairs, tmp_path / "d.mme")
    corpus = EncodedCorpus.open(tmp_path / "d.mme")
    for model in (SequenceTagger().fit(corpus), SequenceTagger().fit_stream(pairs)):
        weights = model.weights_
        with pytest.raises(NotCompatibleError, match="trained from an encoded file or a stream"):
            model.partial_fit(X, y)
        assert np.array_equal(model.weights_, weights)
    with pytest.raises(NotCompatibleError, match="these data are an encoded file"):
        SequenceTagger().partial_fit(corpus, None)


def test_labels_that_are_fixed_stay_fixed():
    X, y = sentences(6)
    model = SequenceTagger(labels=["A", "B", "C"], **EXACT).partial_fit(X, y)
    untouched(model, model.partial_fit, X[:1], [["Q"] * len(X[0])], match="unknown label")
    Z, k = points()
    classes = MulticlassSVM(**EXACT).partial_fit(Z, k, classes=[0, 1, 2])
    untouched(classes, classes.partial_fit, Z[:2], [0, 7], match="example 1 has the label 7")
    with pytest.raises(ValueError, match="not the same"):
        classes.partial_fit(Z, k, classes=[0, 1, 2, 3])
    binary = BinarySVM(**EXACT).partial_fit(Z[:1], [1], classes=[0, 1])
    untouched(binary, binary.partial_fit, Z[:2], [0, 2], match="example 1 has the label 2")
    with pytest.raises(ValueError, match="expected labels of two classes"):
        BinarySVM(**EXACT).partial_fit(Z[:1], [1])
    tree = Parser(**EXACT).partial_fit(None, TREES[:3])
    with pytest.raises(ValueError, match="tree 1"):
        tree.partial_fit(None, [TREES[0], "(S (QP (DT the) (DT the)) (VP (VBZ sees)))"])
    assert tree.n_examples_ == 3


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"min_count": 2}, "min_count = 2"),
        ({"kernel": "rbf"}, "kernel"),
        ({"C_scale": "mean"}, "C_scale"),
        ({"solver": Online(slack="hard")}, "hard margins"),
        ({"C": -1.0}, "C must"),
    ],
)
def test_what_cannot_grow_is_refused(params, match):
    X, y = sentences(6)
    with pytest.raises((NotCompatibleError, ValueError), match=match):
        SequenceTagger(**params).partial_fit(X, y)


def test_regularisers_alike_for_all_weights_grow():
    X, y = sentences(40)
    model = SequenceTagger(C=0.5, regularizer=ElasticNet(l1_ratio=0.5), gap=1e-3, random_state=0)
    for k in range(0, 40, 10):
        model.partial_fit(X[k : k + 10], y[k : k + 10])
    once = clone(model).fit(X, y)
    assert refined(model).certificate_.primal == pytest.approx(once.certificate_.primal, rel=3e-3)
    assert (model.coef_ == 0).any()


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"tol": 0.0}, "tol"),
        ({"tol": 1.5}, "below 1"),
        ({"explore": "all"}, "explore"),
        ({"cached_passes": 0}, "cached_passes"),
        ({"max_plane_bytes": 0}, "max_plane_bytes"),
        ({"replay": -1}, "replay"),
    ],
)
def test_options_out_of_range(values, match):
    with pytest.raises(ValueError, match=match):
        Online(**values)


@pytest.mark.parametrize("make", [BinarySVM, MulticlassSVM, SVR])
def test_checks_of_scikit_learn(make):
    for check in (check_estimators_partial_fit_n_features, check_n_features_in_after_fitting):
        check(make.__name__, make())
