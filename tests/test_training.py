"""Training on encoded data: grids, validation, folds, cross-validation, interruption."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from maxmargin import BCFW, SAP, SDM, NSlack, OneSlack, Subgradient
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.metrics import evaluate
from maxmargin.selection import (
    Encoded,
    FitOptions,
    Validation,
    cross_validate,
    fit,
    fit_grid,
    fitting,
    folds,
    main_score,
    report_of,
    validation,
)
from maxmargin.solvers import PassRecord
from maxmargin.structures import Chain

OPTIONS = FitOptions(gap=0.005)
TIGHT = FitOptions(gap=1e-5, dtype="float64", max_passes=5000)


def sentences(n, seed):
    """Noisy noun phrases: what begins one depends on the word and on the label before."""
    rng = np.random.default_rng(seed)
    words = {"B-NP": ["the", "a", "dogs"], "I-NP": ["old", "dog", "light"], "O": ["light", "runs"]}
    X, Y = [], []
    for _ in range(n):
        labels, words_of = [], []
        for _ in range(rng.integers(1, 7)):
            after = ["I-NP", "O"] if labels and labels[-1] != "O" else ["B-NP", "O"]
            labels.append(str(rng.choice(after)))
            wrong = rng.random() < 0.2
            source = str(rng.choice(list(words))) if wrong else labels[-1]
            words_of.append([f"w:{rng.choice(words[source])}", f"r{rng.integers(12)}"])
        X.append(words_of)
        Y.append(labels)
    return X, Y


X, Y = sentences(30, 0)
X_VALID, Y_VALID = sentences(20, 1)


def prepared(labels=Y):
    chain = Chain()
    batch, codes = chain.learn(X, labels)
    return chain, Encoded(batch, codes, list(chain.labels_))


def encoded(chain, inputs, labels):
    """Encode other data; labels that the chain does not know come behind those it knows."""
    names = list(dict.fromkeys([*chain.labels_, *(label for y in labels for label in y)]))
    codes = np.array([names.index(label) for y in labels for label in y], dtype=np.int32)
    return Encoded(chain.encoder.transform(inputs), codes, names)


def flat(chain, weights):
    """Return native weights as the vector that the structure's own methods take."""
    return np.concatenate([np.asarray(part, float).ravel() for part in chain.unpack(weights)])


def primal_from_scratch(chain, weights, C, sample_weight=None):
    """Return ½‖w‖² + C Σ s_i ξ_i by the methods of the structure protocol, in Python."""
    w, total = flat(chain, weights), 0.0

    def score(x, y):
        indices, values = chain.joint_feature(x, y)
        return float(w[indices] @ values)

    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        worst = chain.argmax(x, w, truth=y)
        slack = chain.loss(y, worst) + score(x, worst) - score(x, y)
        total += (1.0 if sample_weight is None else sample_weight[i]) * max(0.0, slack)
    return 0.5 * w @ w + C * total


def check_certificate(chain, outcome, sample_weight=None):
    primal = primal_from_scratch(chain, outcome.weights, outcome.C, sample_weight)
    assert outcome.certificate.primal == pytest.approx(primal, rel=1e-5)
    assert outcome.certificate.dual <= outcome.certificate.primal * (1 + 1e-9)
    assert outcome.certificate.C == outcome.C
    assert outcome.certificate.n_examples == len(X)


@functools.cache
def listed():
    """Return for each sequence the loss and the differences of features of all other outputs."""
    chain, _ = prepared()
    found = []
    for x, y in zip(X, Y, strict=True):

        def features(labels, x=x):
            dense = np.zeros(chain.n_features)
            indices, values = chain.joint_feature(x, labels)
            np.add.at(dense, indices, values)
            return dense

        others = [list(o) for o in itertools.product(chain.labels_, repeat=len(y)) if list(o) != y]
        delta = features(y) - np.array([features(other) for other in others])
        found.append((np.array([chain.loss(y, other) for other in others]), delta))
    return found


def primal_by_listing(chain, weights, C, sample_weight, solver):
    """Return the objective of training from all outputs, as native/formulation.hpp states it."""
    w, costs = flat(chain, weights), np.zeros(len(X))
    for i, (loss, delta) in enumerate(listed()):
        g = np.sqrt(loss) if solver.slack == "quadratic" else loss
        h = np.ones_like(g) if solver.rescale == "none" else g
        value = g * (1 - delta @ w) if solver.rescale == "slack" else h - delta @ w
        slack = max(0.0, value.max())
        costs[i] = 0.5 * slack**2 if solver.slack == "quadratic" else slack
    return 0.5 * w @ w + C * sample_weight @ costs


# --- encoded data ---


def test_take():
    chain, data = prepared()
    which = np.array([7, 0, 7, 29])
    some = data.take(which)
    again = encoded(chain, [X[i] for i in which], [Y[i] for i in which])
    assert some.names == data.names
    np.testing.assert_array_equal(some.codes, again.codes)
    for name in ("offsets", "indptr", "indices"):
        np.testing.assert_array_equal(getattr(some.batch, name), getattr(again.batch, name))
    assert some.batch.n_sparse == data.batch.n_sparse
    everything = data.take(np.arange(len(X)))
    np.testing.assert_array_equal(everything.codes, data.codes)
    np.testing.assert_array_equal(everything.batch.indices, data.batch.indices)


def test_report_of_is_the_report_of_the_predictions():
    chain, data = prepared()
    weights = fit(chain, chain.encoded_problem(data.batch, data.codes), 0.3, OPTIONS).weights
    labels = [["B-PP", *y[1:]] for y in Y_VALID]  # one that training did not see
    valid = encoded(chain, X_VALID, labels)
    report = report_of(chain, valid, weights)
    expected = evaluate(labels, chain.predict(X_VALID, weights))
    assert report.to_dict() == expected.to_dict()
    assert report_of(chain, valid, weights, threads=2).to_dict() == expected.to_dict()
    assert main_score(report) == report.f1


def test_main_score_without_chunks_is_accuracy():
    chain, data = prepared([["x" if label == "O" else "z" for label in y] for y in Y])
    report = report_of(chain, data, fit_grid(chain, data, [0.3], OPTIONS)[0].weights)
    assert not report.has_chunks
    assert main_score(report) == report.token_accuracy > 0.8


# --- one training ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fit_keeps_the_end(dtype):
    chain, data = prepared()
    problem = chain.encoded_problem(data.batch, data.codes)
    options = FitOptions(gap=0.005, dtype=dtype)
    outcome = fit(chain, problem, 0.3, options)
    assert outcome.weights is outcome.result.weights
    assert outcome.weights.dtype == dtype
    assert outcome.certificate is outcome.result.certificate
    assert (outcome.report, outcome.best_pass, outcome.scores) == (None, None, [])
    assert outcome.certificate.gap <= 0.005
    check_certificate(chain, outcome)
    again = fit(chain, problem, 0.3, dataclasses.replace(options, threads=2))
    np.testing.assert_array_equal(again.weights, outcome.weights)


def test_validation_does_not_disturb_training():
    chain, data = prepared()
    problem, valid = chain.encoded_problem(data.batch, data.codes), encoded(chain, X_VALID, Y_VALID)
    alone, scores, records = fit(chain, problem, 0.3, OPTIONS), [], []
    outcome = fit(
        chain,
        problem,
        0.3,
        OPTIONS,
        valid=valid,
        on_score=scores.append,
        callbacks=[records.append],
    )
    np.testing.assert_array_equal(outcome.result.weights, alone.weights)
    assert outcome.result.certificate == alone.certificate
    assert scores == outcome.scores
    # every pass with the oracle has a score, the others have none
    assert [s["pass"] for s in scores] == [r.n_pass for r in records if r.kind != "cached"]
    assert all(0 <= s["f1"] <= 1 and 0 <= s["token_accuracy"] <= 1 for s in scores)
    assert main_score(outcome.report) >= max(s["f1"] for s in scores)
    assert outcome.report.to_dict() == report_of(chain, valid, outcome.weights).to_dict()


def test_scores_without_chunks_have_no_f1():
    chain, data = prepared([["x" if label == "O" else "z" for label in y] for y in Y])
    outcome = fit_grid(chain, data, [0.3], OPTIONS, valid=data)[0]
    assert all(score["f1"] is None for score in outcome.scores)
    assert main_score(outcome.report) == outcome.report.token_accuracy


class FakeScores:
    """Stands in for `report_of`: gives scores one after the other, and keeps the weights it saw."""

    def __init__(self, scores, last, chunks=True):
        self.scores, self.last, self.chunks, self.seen = scores, last, chunks, []

    def __call__(self, chain, data, weights, threads=1):
        self.seen.append(np.array(weights))
        k = len(self.seen) - 1
        value = self.scores[k] if k < len(self.scores) else self.last
        accuracy = 0.5 if self.chunks else value
        return SimpleNamespace(has_chunks=self.chunks, f1=value, token_accuracy=accuracy)


def use_scores(monkeypatch, fake):
    """Put fake scores in place of those after passes and at the end."""
    for module in (validation, fitting):
        monkeypatch.setattr(module, "report_of", fake)


@pytest.mark.parametrize("chunks", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_best_pass_is_kept(monkeypatch, dtype, chunks):
    chain, data = prepared()
    weights = np.arange(len(X)) % 3 / 1.5
    fake = FakeScores([0.2, 0.9, 0.3], 0.5, chunks)
    use_scores(monkeypatch, fake)
    options = FitOptions(gap=0.005, dtype=dtype)
    outcome = fit_grid(chain, data, [0.3], options, valid=data, sample_weight=weights)[0]
    assert len(fake.seen) > 3
    assert outcome.best_pass == outcome.scores[1]["pass"]
    assert outcome.report.f1 == 0.9
    np.testing.assert_array_equal(outcome.weights, fake.seen[1])
    assert not np.array_equal(outcome.weights, outcome.result.weights)
    assert outcome.weights.ctypes.data % 32 == 0  # as native code needs it
    # Its certificate: its own primal, and the dual of the end, which bounds every model.
    check_certificate(chain, outcome, weights)
    assert outcome.certificate.dual == outcome.result.certificate.dual
    assert outcome.certificate.primal > outcome.result.certificate.primal
    assert outcome.certificate.gap > outcome.result.certificate.gap


FORMULATED = [
    SDM(),
    SDM(slack="quadratic"),
    SDM(rescale="slack"),
    SDM(rescale="none"),
    SAP(slack="quadratic", rescale="slack"),
    NSlack(slack="quadratic", rescale="none"),
    OneSlack(rescale="slack"),
    OneSlack(rescale="none"),
    BCFW(),
    Subgradient(),
]


@pytest.mark.parametrize("solver", FORMULATED, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_certificate_of_the_best_pass_is_of_the_objective_that_was_trained(
    monkeypatch, solver, dtype
):
    chain, data = prepared()
    weights = np.arange(len(X)) % 3 / 1.5
    use_scores(monkeypatch, FakeScores([0.2, 0.3, 0.3, 0.9], 0.5))
    options = FitOptions(solver=solver, gap=1e-6, max_passes=12, dtype=dtype)
    outcome = fit_grid(chain, data, [0.3], options, valid=data, sample_weight=weights)[0]
    assert outcome.best_pass is not None
    primal = primal_by_listing(chain, outcome.weights, 0.3, weights, solver)
    assert outcome.certificate.primal == pytest.approx(primal, rel=1e-5)
    assert outcome.certificate.dual == outcome.result.certificate.dual
    # and the last pass, by the same function
    ended = outcome.result
    again = ended.engine.primal_of(ended.weights)
    assert ended.certificate.primal == pytest.approx(again, rel=1e-5)


def test_the_certificate_of_the_best_pass_with_a_hard_margin(monkeypatch):
    """An early w that has no margin has an infinite primal."""
    chain = Chain()
    batch, codes = chain.learn(X[:2], Y[:2])
    data = Encoded(batch, codes, list(chain.labels_))
    use_scores(monkeypatch, FakeScores([0.9], 0.5))
    options = FitOptions(solver=SDM(slack="hard"), gap=1e-6, max_passes=50)
    outcome = fit_grid(chain, data, [1.0], options, valid=data)[0]
    assert outcome.best_pass == 1
    expected = outcome.result.engine.primal_of(outcome.weights)
    assert outcome.certificate.primal == expected
    assert not outcome.converged
    assert outcome.certificate.gap > 1e-6


@pytest.mark.parametrize("scores", [[0.2, 0.5, 0.3], [0.1, 0.1, 0.1]])
def test_a_draw_goes_to_the_end(monkeypatch, scores):
    chain, data = prepared()
    use_scores(monkeypatch, FakeScores(scores, 0.5))
    outcome = fit_grid(chain, data, [0.3], OPTIONS, valid=data)[0]
    assert outcome.best_pass is None
    assert outcome.weights is outcome.result.weights
    assert outcome.certificate is outcome.result.certificate
    assert outcome.report.f1 == 0.5


def test_of_equal_passes_the_first_is_kept(monkeypatch):
    chain, data = prepared()
    use_scores(monkeypatch, FakeScores([0.2, 0.9, 0.9], 0.5))
    outcome = fit_grid(chain, data, [0.3], OPTIONS, valid=data)[0]
    assert outcome.best_pass == outcome.scores[1]["pass"]


def record(n_pass=1, kind="exact", seconds=1.0, gap=math.nan):
    return PassRecord(n_pass, kind, seconds, 0, math.nan, 0.0, gap, math.nan, 0)


def test_the_watch_never_stops_training():
    chain, data = prepared()
    engine = fit_grid(chain, data, [0.3], OPTIONS)[0].result.engine
    watch = Validation(chain, data)
    watch.begin_pass(engine)
    assert not watch.end_pass(record(1, "cached"), engine)
    assert watch.scores == []
    assert watch.best is None
    for k, kind in enumerate(("exact", "collect"), 2):
        assert not watch.end_pass(record(k, kind), engine)
    assert [score["pass"] for score in watch.scores] == [2, 3]
    assert watch.best[1] == 2
    assert watch.best[2].ctypes.data != engine.weights.ctypes.data  # a copy


# --- grids ---


@pytest.mark.parametrize("options", [OPTIONS, TIGHT], ids=["usual", "tight"])
def test_a_grid_is_as_good_as_cold_starts(options):
    chain, data = prepared()
    problem, done = chain.encoded_problem(data.batch, data.codes), []
    outcomes = fit_grid(chain, data, [1.0, 0.01, 0.1], options, on_outcome=done.append)
    assert [outcome.C for outcome in outcomes] == [0.01, 0.1, 1.0]
    assert done == outcomes
    for outcome in outcomes:
        cold = fit(chain, problem, outcome.C, options)
        assert outcome.result.converged
        assert outcome.certificate.gap <= options.gap
        check_certificate(chain, outcome)
        # both bounds hold for both
        assert outcome.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
        assert cold.certificate.dual <= outcome.certificate.primal * (1 + 1e-9)
        close = 2.1 * options.gap
        assert outcome.certificate.primal == pytest.approx(cold.certificate.primal, rel=close)


def test_models_of_a_grid_do_not_share_memory():
    chain, data = prepared()
    outcomes = fit_grid(chain, data, [0.01, 0.1, 1.0], OPTIONS)
    assert len({outcome.weights.ctypes.data for outcome in outcomes}) == 3
    norms = [np.linalg.norm(outcome.weights) for outcome in outcomes]
    assert norms == sorted(norms)
    assert norms[0] < norms[2]


def test_a_warm_start_saves_work():
    chain, data = prepared()
    problem = chain.encoded_problem(data.batch, data.codes)
    first = fit(chain, problem, 0.3, TIGHT)
    calls = first.result.history[-1].oracle_calls
    again = fit(chain, problem, 0.3, TIGHT, machine=first.result.engine)
    assert again.result.history[-1].oracle_calls < calls / 2
    assert again.certificate.gap <= TIGHT.gap


def test_callbacks_of_a_grid():
    chain, data = prepared()
    scores, records = [], {}

    def callbacks(C):
        records[C] = []
        return [records[C].append]

    outcomes = fit_grid(
        chain, data, [0.3, 0.1], OPTIONS, valid=data, callbacks=callbacks, on_score=scores.append
    )
    assert list(records) == [0.1, 0.3]
    for outcome in outcomes:
        assert len(records[outcome.C]) == outcome.result.n_passes
    assert scores == outcomes[0].scores + outcomes[1].scores


def test_limits():
    chain, data = prepared()
    options = FitOptions(gap=0.0, max_passes=4)
    (outcome,) = fit_grid(chain, data, [0.3], options)  # no warning: the outcome says it
    assert outcome.result.n_passes == 4
    assert not outcome.result.converged
    check_certificate(chain, outcome)


def test_a_checkpoint(tmp_path):
    chain, data = prepared()
    whole = fit_grid(chain, data, [0.3], OPTIONS)[0]
    options = dataclasses.replace(OPTIONS, checkpoint=tmp_path / "c.mmc")
    fit_grid(chain, data, [0.3], dataclasses.replace(options, max_passes=2))
    again = fit_grid(chain, data, [0.3], dataclasses.replace(options, resume=True))[0]
    np.testing.assert_array_equal(again.weights, whole.weights)
    assert again.certificate == whole.certificate


# --- interruption ---


@dataclasses.dataclass(frozen=True)
class Interrupted(SDM):
    """As if somebody had pressed Ctrl-C during a pass."""

    at: int = 3
    steps: ClassVar[list] = []

    def step(self, engine, state, context):
        self.steps.append(1)
        if len(self.steps) == self.at:
            raise KeyboardInterrupt
        return super().step(engine, state, context)


@pytest.fixture
def interrupted():
    Interrupted.steps.clear()
    return lambda at: FitOptions(gap=0.005, solver=Interrupted(at=at))


@pytest.mark.parametrize("valid", [False, True])
def test_an_interrupted_training_is_a_model(interrupted, valid):
    chain, data = prepared()
    problem = chain.encoded_problem(data.batch, data.codes)
    outcome = fit(chain, problem, 0.3, interrupted(3), valid=data if valid else None)
    assert outcome.result.stop_reason == "interrupted"
    assert outcome.result.n_passes == 2
    assert (outcome.report is not None) == valid
    check_certificate(chain, outcome)


def test_an_interrupted_grid_ends_there(interrupted):
    chain, data = prepared()
    first = fit_grid(chain, data, [0.1], OPTIONS)[0]
    done = []
    options = interrupted(first.result.n_passes + 2)
    outcomes = fit_grid(chain, data, [0.1, 0.3, 1.0], options, on_outcome=done.append)
    assert [outcome.C for outcome in outcomes] == [0.1, 0.3]
    assert done == outcomes
    assert outcomes[0].certificate == first.certificate
    assert outcomes[1].result.stop_reason == "interrupted"
    check_certificate(chain, outcomes[1])


def test_an_interrupted_cross_validation_has_no_result(interrupted):
    chain, data = prepared()
    done = []
    with pytest.raises(KeyboardInterrupt):
        cross_validate(
            chain,
            data,
            [0.1, 0.3],
            3,
            interrupted(5),
            on_outcome=lambda k, o: done.append((k, o.C)),
        )
    assert done in ([(0, 0.1)], [(0, 0.1), (0, 0.3)])


# --- folds and cross-validation ---


@pytest.mark.parametrize(("n", "k"), [(2, 2), (10, 3), (11, 11), (100, 7)])
def test_folds_partition_the_sequences(n, k):
    for seed in (0, 1, None):
        parts = folds(n, k, seed)
        assert len(parts) == k
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert all((np.diff(part) > 0).all() for part in parts)


def test_folds_are_drawn_by_the_seed():
    def drawn(seed):
        return [part.tolist() for part in folds(50, 5, seed)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert drawn(0) != [list(range(10 * k, 10 * k + 10)) for k in range(5)]


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 0), (5, -2), (5, 6), (1, 2)])
def test_impossible_folds(n, k):
    with pytest.raises(ValueError, match=f"{k} folds of {n} sequences; expected 2 to {n}"):
        folds(n, k, 0)


@pytest.mark.parametrize("chunks", [True, False])
def test_cross_validation_by_hand(chunks):
    labels = Y if chunks else [["x" if label == "O" else "z" for label in y] for y in Y]
    chain, data = prepared(labels)
    options, Cs, models = FitOptions(gap=0.005, seed=4), [0.5, 0.05], []
    table = cross_validate(
        chain, data, Cs, 3, options, on_outcome=lambda k, o: models.append((k, o))
    )
    assert [row["C"] for row in table] == [0.05, 0.5]
    assert [(k, o.C) for k, o in models] == [(k, C) for k in range(3) for C in (0.05, 0.5)]
    accuracy, f1 = {0.05: [], 0.5: []}, {0.05: [], 0.5: []}
    for held in folds(len(X), 3, 4):
        rest = np.setdiff1d(np.arange(len(X)), held)
        outcomes = fit_grid(chain, data.take(rest), Cs, options)
        for outcome in outcomes:
            predicted = chain.predict([X[i] for i in held], outcome.weights)
            report = evaluate([labels[i] for i in held], predicted)
            accuracy[outcome.C].append(report.token_accuracy)
            f1[outcome.C].append(report.f1)
    for row in table:
        assert row["token_accuracy"] == pytest.approx(np.mean(accuracy[row["C"]]))
        assert row["token_accuracy_std"] == pytest.approx(np.std(accuracy[row["C"]]))
        assert ("f1" in row) == chunks
        if chunks:
            assert row["f1"] == pytest.approx(np.mean(f1[row["C"]]))
            assert row["f1_std"] == pytest.approx(np.std(f1[row["C"]]))
        assert row["score"] == row["f1" if chunks else "token_accuracy"]
    assert all(outcome.report is not None for _, outcome in models)


def test_cross_validation_of_columns():
    rows = [[[token[0]] for token in x] for x in X]
    chain = Chain(encoder=TemplateEncoder(Template.parse("U:w=%x[0,0]\nU:v=%x[-1,0]\nB\n")))
    batch, codes = chain.learn(rows, Y)
    data = Encoded(batch, codes, list(chain.labels_))
    table = cross_validate(chain, data, [0.3], 5, OPTIONS)
    assert 0.5 < table[0]["token_accuracy"] <= 1.0


def test_the_chain_is_left_alone():
    chain, data = prepared()
    before = chain.encoder.feature_names(), list(chain.labels_)
    cross_validate(chain, data, [0.1], 2, OPTIONS)
    assert (chain.encoder.feature_names(), chain.labels_) == before
