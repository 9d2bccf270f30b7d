"""compare and path on estimators of every kind: they train what fit would train."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import (
    SDM,
    SVR,
    BinarySVM,
    Chain,
    ElasticNet,
    EstimatorPath,
    MulticlassSVM,
    NotCompatibleError,
    SequenceTagger,
    StructuralSVM,
    Structure,
    compare,
    path,
)
from maxmargin.estimators.training import training_of

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 4))
NUMBERS = (POINTS[:, :3] + RNG.normal(size=(60, 3))).argmax(axis=1)
Y = [RNG.choice(["A", "B"], size=RNG.integers(1, 6)).tolist() for _ in range(40)]
X = [[[f"w={y if RNG.random() < 0.7 else '?'}", f"n={RNG.integers(9)}"] for y in row] for row in Y]


class Classes(Structure):
    """Three classes."""

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return range(3)


ESTIMATORS = {
    "tagger": (SequenceTagger(C=0.5), X, Y),
    "chain": (StructuralSVM(Chain(), C=0.5), X, Y),
    "structure": (StructuralSVM(Classes(), C=0.5), list(POINTS), NUMBERS.tolist()),
    "classes": (MulticlassSVM(C=0.5, class_weight="balanced"), POINTS, NUMBERS),
    "mean": (MulticlassSVM(C=30.0, C_scale="mean"), POINTS, NUMBERS),
    "binary": (BinarySVM(C=0.5), POINTS, NUMBERS > 0),
    "regression": (SVR(C=0.5), POINTS, POINTS @ [1.0, 0.0, 2.0, 0.0]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_comparison_trains_what_fit_trains(name):
    template, inputs, truths = ESTIMATORS[name]
    model = clone(template).set_params(gap=1e-6).fit(inputs, truths)
    found = compare(template, inputs, truths, gap=1e-6, reference=model.certificate_)
    assert found.runs[0].dual == pytest.approx(model.certificate_.dual, rel=1e-5)
    assert not hasattr(template, "weights_")
    assert pytest.approx(model.certificate_.C) == found.C


@pytest.mark.parametrize("name", ["tagger", "structure", "classes"])
def test_several_solvers_and_test_errors(name):
    template, inputs, truths = ESTIMATORS[name]
    found = compare(
        template,
        inputs,
        truths,
        solvers={"one": SDM(), "two": "bcfw", "three": "nslack"},
        eval_set=(inputs, truths),
        gap=0.05,
        max_passes=300,
    )
    assert found.labels == ["one", "two", "three"]
    ended = [run.primal for run in found.runs]
    assert max(ended) <= min(ended) * 1.06
    model = clone(template).fit(inputs, truths)
    errors = [run.points[-1].test_error for run in found.runs]
    assert errors == pytest.approx([1 - model.score(inputs, truths)] * 3, abs=0.15)


def test_weights_of_examples_reach_the_problem():
    weights = np.arange(60) % 3 / 1.0
    model = MulticlassSVM(C=0.5, gap=1e-6).fit(POINTS, NUMBERS, sample_weight=weights)
    found = compare(
        MulticlassSVM(C=0.5), POINTS, NUMBERS, gap=1e-6, fit_params={"sample_weight": weights}
    )
    assert found.runs[0].primal == pytest.approx(model.certificate_.primal, rel=1e-5)


def test_bad_calls_of_compare():
    tagger, problem = SequenceTagger(), training_of(SequenceTagger(), X, Y).problem
    for call in (
        lambda: compare(tagger, X),
        lambda: compare(tagger, X, Y, ["sdm"]),
        lambda: compare(problem, ["sdm"]),
        lambda: compare(problem, C=1.0),
        lambda: compare(problem, ["sdm"], C=1.0, eval_set=(X, Y)),
        lambda: compare(tagger, X, Y, regularizer="l2"),
        lambda: compare(tagger, X, Y, score=len, eval_set=(X, Y)),
    ):
        with pytest.raises(TypeError):
            call()
    assert compare(problem, solvers=["sdm"], C=1.0).labels == ["sdm"]
    with pytest.raises(ValueError, match="C"):
        compare(SequenceTagger(C=-1.0), X, Y)


@pytest.mark.parametrize("name", ["tagger", "chain", "structure", "classes", "mean"])
def test_a_path_has_the_models_that_fit_gives(name):
    template, inputs, truths = ESTIMATORS[name]
    tight = clone(template).set_params(gap=1e-6, dtype="float64")
    ratios = [0.8, 0.3, 0.0]
    found = path(tight, inputs, truths, l1_ratios=ratios, eval_set=(inputs, truths))
    assert isinstance(found, EstimatorPath)
    assert [point.l1_ratio for point in found.points] == ratios
    for k, ratio in enumerate(ratios):
        alone = clone(tight).set_params(regularizer=ElasticNet(l1_ratio=ratio))
        alone.fit(inputs, truths)
        model = found.estimator(k)
        assert found.points[k].certificate.primal == pytest.approx(
            alone.certificate_.primal, rel=1e-5
        )
        assert found.points[k].score == model.score(inputs, truths)
        assert model.get_params()["C"] == pytest.approx(template.C)
        assert model.certificate_ == found.points[k].certificate
    assert found.points[0].n_nonzero < found.points[-1].n_nonzero
    assert 0 <= found.choose(0.5) < 3
    assert len(found.table()) == 3


def test_several_cs():
    found = path(SequenceTagger(), X, Y, l1_ratios=[0.5], Cs=[1.0, 0.1])
    assert [point.C for point in found.points] == [0.1, 1.0]
    with pytest.raises(ValueError, match="no scores"):
        found.choose()


def test_bad_calls_of_path(tmp_path):
    with pytest.raises(TypeError, match="expected an estimator"):
        path(3, X, Y)
    with pytest.raises(NotCompatibleError, match="regulariser"):
        path(SequenceTagger(regularizer=ElasticNet(l1_ratio=0.5)), X, Y)
    with pytest.raises(ValueError, match="checkpoint"):
        path(SequenceTagger(checkpoint=tmp_path / "c.npz"), X, Y)
    with pytest.raises(ValueError):
        path(SequenceTagger(), X, Y, l1_ratios=[2.0])
    with pytest.raises(ValueError, match="no points"):
        path(SequenceTagger(), X, Y, l1_ratios=[])
    with pytest.raises(NotCompatibleError):
        path(BinarySVM(solver="lp"), POINTS, NUMBERS > 0, l1_ratios=[0.5])


def test_training_of_needs_an_estimator_of_this_package():
    from sklearn.svm import LinearSVC

    with pytest.raises(TypeError, match="did not come to its training"):
        training_of(LinearSVC(), POINTS, NUMBERS)
