"""Sparse models: paths, models of a wanted size, re-fits on the features that were selected."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from maxmargin import L2, ElasticNet
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import parse_columns
from maxmargin.selection import (
    RATIOS,
    Encoded,
    FitOptions,
    Path,
    PathPoint,
    debias,
    fit,
    main_score,
    nonzeros,
    path_points,
    refit,
    regularization_path,
    report_of,
    search_nonzeros,
)
from maxmargin.solvers import Certificate
from maxmargin.structures import Chain

OPTIONS = FitOptions(gap=0.005, dtype="float64", max_passes=3000)
C = 0.5


def sentences(n, seed):
    """Noun phrases whose words tell most of the labels; the other features are noise."""
    rng = np.random.default_rng(seed)
    words = {"B-NP": ["the", "a", "dogs"], "I-NP": ["old", "dog", "light"], "O": ["light", "runs"]}
    X, Y = [], []
    for _ in range(n):
        labels, tokens = [], []
        for _ in range(rng.integers(2, 8)):
            after = ["I-NP", "O"] if labels and labels[-1] != "O" else ["B-NP", "O"]
            labels.append(str(rng.choice(after)))
            source = str(rng.choice(list(words))) if rng.random() < 0.1 else labels[-1]
            noise = [f"r{k}" for k in rng.choice(60, size=3, replace=False)]
            tokens.append([f"w:{rng.choice(words[source])}", *noise])
        X.append(tokens)
        Y.append(labels)
    return X, Y


def prepared(n=60):
    chain = Chain()
    X, Y = sentences(n, 0)
    data = Encoded(*chain.learn(X, Y), list(chain.labels_))
    X, Y = sentences(40, 1)
    codes = np.array([chain.labels_.index(label) for y in Y for label in y], dtype=np.int32)
    return chain, data, Encoded(chain.encoder.transform(X), codes, list(chain.labels_))


def problem_of(chain, data):
    return chain.encoded_problem(data.batch, data.codes)


def primal(chain, data, weights, regularizer, C=C):
    return regularizer.penalty(weights) + C * problem_of(chain, data).hinge(weights, 1)


# --- the path ---


def test_points():
    assert path_points() == [(ratio, 0.1) for ratio in RATIOS]
    assert list(RATIOS) == sorted(RATIOS, reverse=True)
    assert path_points([0.5, 0.9, 0.5], [1, 0.1]) == [(0.5, 0.1), (0.9, 0.1), (0.5, 1), (0.9, 1)]


@pytest.mark.parametrize("order", [1, -1])
def test_warm_equals_cold(order):
    chain, data, valid = prepared()
    points = path_points((0.9, 0.7, 0.4, 0.1, 0.0)[::order], [C])
    seen = []
    made = regularization_path(chain, data, points, OPTIONS, valid=valid, on_point=seen.append)
    assert seen == made.points
    assert [(p.l1_ratio, p.C) for p in made.points] == points
    for k, point in enumerate(made.points):
        net = ElasticNet(l1_ratio=point.l1_ratio)
        own = dataclasses.replace(OPTIONS, regularizer=net)
        cold = fit(chain, problem_of(chain, data), C, own)
        assert point.converged
        assert point.certificate.gap <= OPTIONS.gap
        assert point.certificate.primal == pytest.approx(cold.certificate.primal, rel=0.0051)
        # Each lies above the bound of the other, and the certificate is that of these weights.
        assert point.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
        assert cold.certificate.dual <= point.certificate.primal * (1 + 1e-9)
        weights = made.weights(k)
        assert point.certificate.primal == pytest.approx(primal(chain, data, weights, net))
        report = report_of(chain, valid, weights)
        assert (point.token_accuracy, point.f1) == (report.token_accuracy, report.f1)
        assert point.score == main_score(report)
        assert (point.passes, point.seconds) > (0, 0)


def test_non_zeros_fall_as_the_ratio_rises():
    chain, data, valid = prepared()
    made = regularization_path(
        chain, data, path_points((0.0, 0.3, 0.6, 0.9), [C]), OPTIONS, valid=valid
    )
    counts = [point.n_nonzero for point in made.points]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5 * counts[-1] > 0
    for k, point in enumerate(made.points):
        assert np.count_nonzero(made.weights(k)) == point.n_nonzero


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_those_of_the_training(dtype):
    chain, data, _ = prepared()
    options = dataclasses.replace(OPTIONS, dtype=dtype, gap=0.02)
    made = regularization_path(chain, data, [(0.5, C)], options)
    alone = fit(
        chain,
        problem_of(chain, data),
        C,
        dataclasses.replace(options, regularizer=ElasticNet(l1_ratio=0.5)),
    )
    weights = made.weights(0)
    assert weights.dtype == dtype
    np.testing.assert_array_equal(weights, alone.weights)
    assert chain.native_weights(weights) is weights  # aligned
    point = made.points[0]
    assert (point.score, point.f1, point.token_accuracy) == (None, None, None)
    with pytest.raises(ValueError, match="validation data"):
        made.choose()


def test_sequence_weights():
    chain, data, _ = prepared(20)
    factor = np.linspace(0, 2, 20)
    made = regularization_path(chain, data, [(0.3, C)], OPTIONS, sample_weight=factor)
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=factor)
    own = dataclasses.replace(OPTIONS, regularizer=ElasticNet(l1_ratio=0.3))
    np.testing.assert_array_equal(made.weights(0), fit(chain, problem, C, own).weights)


def test_plain_l2_behind_a_net_is_plain_l2():
    chain, data, _ = prepared()
    made = regularization_path(chain, data, [(0.9, C), (0.05, C), (0.0, C)], OPTIONS)
    alone = fit(chain, problem_of(chain, data), C, OPTIONS)
    ours, theirs = made.points[2].certificate, alone.certificate
    assert ours.dual <= theirs.primal
    assert theirs.dual <= ours.primal
    assert ours.gap <= OPTIONS.gap


def test_interruption_ends_the_path():
    chain, data, _ = prepared()

    def callbacks(ratio, _):
        def press(record):
            if ratio == 0.5 and record.n_pass == 2:
                raise KeyboardInterrupt

        return [press]

    points = path_points((0.9, 0.5, 0.1), [C])
    made = regularization_path(chain, data, points, OPTIONS, callbacks=callbacks)
    assert [point.l1_ratio for point in made.points] == [0.9, 0.5]
    assert made.interrupted
    assert not made.points[1].converged


def test_bad_paths():
    chain, data, _ = prepared(5)
    with pytest.raises(ValueError, match="no points"):
        regularization_path(chain, data, [], OPTIONS)
    with pytest.raises(ValueError, match=r"l1_ratio is 1\.5"):
        regularization_path(chain, data, [(0.5, C), (1.5, C)], OPTIONS)
    with pytest.raises(ValueError, match="C must be"):
        regularization_path(chain, data, [(0.5, -1.0)], OPTIONS)
    for changes in ({"regularizer": L2()}, {"checkpoint": "x"}, {"resume": True}):
        options = dataclasses.replace(OPTIONS, **changes)
        for run in (
            lambda options: regularization_path(chain, data, [(0.5, C)], options),
            lambda options: search_nonzeros(chain, data, C, 9, options),
        ):
            with pytest.raises(ValueError, match=r"expected None|for one training"):
                run(options)


# --- choosing ---


def made_up(rows):
    """A path of (n_nonzero, score)."""

    class Report:
        def __init__(self, score):
            self.f1, self.token_accuracy, self.has_chunks = score, 0.5, True

    points = [
        PathPoint(
            l1_ratio=0.5, C=1.0, n_nonzero=n, certificate=Certificate(1.0, 1.0, 1.0, 1), passes=1,
            seconds=1.0, converged=True, stop_reason="", report=Report(score), oracle_calls=1,
            places=np.empty(0, np.int64), values=np.empty(0),
        )
        for n, score in rows
    ]
    return Path(points, 8, np.dtype(np.float64))


def test_choose():
    made = made_up([(10, 0.80), (20, 0.925), (30, 0.94), (40, 0.93), (20, 0.932)])
    assert made.choose(0.0) == 2
    assert made.choose(0.01) == 4  # 0.9306 will do
    assert made.choose(0.02) == 4  # the better of two that are as sparse
    assert made.choose(0.2) == 0
    assert made.choose(1.0) == 0
    assert made_up([(3, 0.0), (2, 0.0)]).choose(0.0) == 1
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="expected 0 to 1"):
            made.choose(bad)
    assert not made.interrupted


def test_table():
    made = made_up([(10, 0.8), (20, 0.9)])
    rows = made.table()
    assert len(rows) == len(made) == 2
    assert [(row["n_nonzero"], row["score"], row["gap"]) for row in rows] == [
        (10, 0.8, 0.0),
        (20, 0.9, 0.0),
    ]


# --- a model of a wanted size ---


@pytest.mark.parametrize("n", [22, 40, 80])
def test_search_keeps_the_bound(n):
    chain, data, valid = prepared()
    trainings = []
    found = search_nonzeros(
        chain, data, C, n, OPTIONS, valid=valid, on_training=lambda *entry: trainings.append(entry)
    )
    assert n / 2 <= found.n_nonzero <= n
    assert np.count_nonzero(found.weights) == found.n_nonzero
    assert found.tried == trainings
    assert len(trainings) <= 12
    assert found.n_nonzero == max(count for _, count in trainings if count <= n)
    assert (found.l1_ratio, found.n_nonzero) in trainings
    assert found.certificate.gap <= OPTIONS.gap
    net = ElasticNet(l1_ratio=found.l1_ratio)
    assert found.certificate.primal == pytest.approx(primal(chain, data, found.weights, net))
    assert found.report.f1 == report_of(chain, valid, found.weights).f1
    assert not found.interrupted


def test_search_ends():
    chain, data, _ = prepared()
    everything = search_nonzeros(chain, data, C, 10**6, OPTIONS)
    assert [ratio for ratio, _ in everything.tried] == [0.5, 0.0]
    assert everything.l1_ratio == 0.0
    few = search_nonzeros(chain, data, C, 30, OPTIONS, max_trainings=3)
    assert len(few.tried) <= 3
    # A bound that the last hope only can keep, or not even that.
    counts = dict(search_nonzeros(chain, data, C, 22, OPTIONS, max_trainings=2).tried)
    assert list(counts) == [0.5, nonzeros.MAX_RATIO]
    with pytest.raises(ValueError, match="no model with at most 1 non-zero weights was found"):
        search_nonzeros(chain, data, 5.0, 1, OPTIONS, max_trainings=2)
    for bad in (0, -3, 2.5, True, "9"):
        with pytest.raises(ValueError, match="expected a whole number of at least 1"):
            search_nonzeros(chain, data, C, bad, OPTIONS)


def test_interruption_of_a_search():
    chain, data, _ = prepared()

    def pressed_at(training):
        number = itertools.count(1)

        def callbacks(_):
            mine = next(number)

            def press(record):
                if mine == training and record.n_pass == 2:
                    raise KeyboardInterrupt

            return [press]

        return callbacks

    whole = search_nonzeros(chain, data, C, 30, OPTIONS)
    first = next(k for k, (_, count) in enumerate(whole.tried, 1) if count <= 30)
    found = search_nonzeros(chain, data, C, 30, OPTIONS, callbacks=pressed_at(first + 1))
    assert found.interrupted
    assert len(found.tried) == first + 1
    assert 0 < found.n_nonzero <= 30
    with pytest.raises(KeyboardInterrupt):
        search_nonzeros(chain, data, C, 1, OPTIONS, callbacks=pressed_at(1))


# --- without shrinking ---


def check_debiased(chain, data, before, **options):
    after = debias(chain, data, before, OPTIONS, **options)
    old, new = chain.unpack(before.weights), chain.unpack(after.weights)
    out = ~old.coef.any(axis=1)
    assert out.any()
    assert not new.coef[out].any()
    assert not new.pairs[~old.pairs.any(axis=(1, 2))].any()
    sample_weight = options.get("sample_weight")
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    C = options.get("C", before.C)

    def primal(weights):
        return L2().penalty(weights) + C * problem.hinge(weights, 1)

    # The features that are left out cost nothing: the primal is that of the whole problem.
    assert after.certificate.primal == pytest.approx(primal(after.weights), rel=1e-6)
    assert after.certificate.gap <= OPTIONS.gap
    assert after.certificate.primal < primal(before.weights)
    assert after.result.weights is after.weights
    assert (after.C, after.certificate.C) == (C, C)
    return after


def sparse_model(chain, data, ratio=0.7, C=C):
    own = dataclasses.replace(OPTIONS, regularizer=ElasticNet(l1_ratio=ratio))
    return fit(chain, problem_of(chain, data), C, own)


def test_debias():
    chain, data, valid = prepared()
    before = sparse_model(chain, data)
    after = check_debiased(chain, data, before, valid=valid)
    assert after.report.f1 == report_of(chain, valid, after.weights).f1
    assert np.count_nonzero(after.weights) > 0
    check_debiased(chain, data, before, C=2.0)
    check_debiased(chain, data, before, sample_weight=np.linspace(0.5, 1.5, 60))
    # The regulariser and the checkpoint of the options are those of the selection.
    options = dataclasses.replace(OPTIONS, regularizer=ElasticNet(l1_ratio=0.7), checkpoint="/x/y")
    again = debias(chain, data, before, options)
    np.testing.assert_array_equal(again.weights, debias(chain, data, before, OPTIONS).weights)
    # With all features selected, it is plain L2.
    full = fit(chain, problem_of(chain, data), C, OPTIONS)
    every = dataclasses.replace(full, weights=np.ones_like(full.weights))
    np.testing.assert_allclose(debias(chain, data, every, OPTIONS).weights, full.weights)


@pytest.mark.parametrize("with_sparse", [True, False])
def test_debias_of_dense_features_and_values(with_sparse):
    chain, data, _ = prepared()
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(data.batch.n_tokens, 6))
    noise[:, 2] = data.codes  # one that tells something
    chain = Chain()
    X, Y = sentences(60, 0)
    offsets = data.batch.offsets
    dense = [noise[a:b] for a, b in itertools.pairwise(offsets)]
    if with_sparse:
        tokens = [
            [{name: 0.5 + k for k, name in enumerate(token)} for token in x] for x in X
        ]
        inputs = list(zip(tokens, dense, strict=True))
    else:
        inputs = dense
    batch, codes = chain.learn(inputs, Y)
    assert batch.n_dense == 6
    assert (batch.values is not None) == with_sparse
    mixed = Encoded(batch, codes, list(chain.labels_))
    check_debiased(chain, mixed, sparse_model(chain, mixed, 0.95))


def test_debias_of_pair_features():
    X, Y = sentences(40, 0)
    rows = [
        "".join(f"{token[0]}\t{token[1]}\t{label}\n" for token, label in zip(x, y, strict=True))
        for x, y in zip(X, Y, strict=True)
    ]
    table = parse_columns("\n".join(rows).encode(), "toy")
    template = Template.parse("U:%x[0,0]\nU:%x[0,1]\nB:%x[0,0]\n", "toy")
    chain = Chain(encoder=TemplateEncoder(template))
    data = Encoded(*chain.learn(*table.labelled(-1)), list(chain.labels_))
    assert data.batch.n_pair > 0
    before = sparse_model(chain, data, 0.8)
    some = chain.unpack(before.weights).pairs.any(axis=(1, 2))
    assert 0 < some.sum() < len(some)
    check_debiased(chain, data, before)


def test_debias_of_nothing():
    chain, data, _ = prepared(20)
    before = sparse_model(chain, data)
    nothing = dataclasses.replace(before, weights=np.zeros_like(before.weights))
    after = debias(chain, data, nothing, OPTIONS)
    parts = chain.unpack(after.weights)
    assert not parts.coef.any()
    assert parts.transitions.any()  # which are always in
    assert after.certificate.gap <= OPTIONS.gap


def test_a_batch_with_fewer_features():
    batch = EncodedBatch(
        np.array([0, 2], np.int64),
        4,
        np.array([0, 3, 4], np.int64),
        np.array([0, 2, 3, 2], np.uint32),
        np.array([1, 2, 3, 4], np.float32),
    )
    nothing = np.empty(0, np.intp)
    some = refit._with_features(batch, np.array([2, 3]), nothing, nothing)
    assert some.n_sparse == 2
    assert some.indices.tolist() == [0, 1, 0]
    assert some.indptr.tolist() == [0, 2, 3]
    assert some.values.tolist() == [2, 3, 4]
