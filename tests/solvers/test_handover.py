"""When the automatic schedule goes over to interior passes."""

from __future__ import annotations

import numpy as np
import pytest

from kit import assert_same_run, quietly
from maxmargin import _native
from maxmargin.regularizers import L2, ElasticNet
from maxmargin.solvers import SAP, SDM, handover
from native_problems import random_case


def measurements(scale=300.0):
    """Return dense features far from unit size, on which block ascent makes no progress."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 60).astype(np.int32)
    rows = scale * (rng.normal(size=(60, 4)) + 0.5 * labels[:, None] + 3.0)
    return _native.MulticlassProblem(n_classes=3, n_sparse=0, labels=labels, dense64=rows)


def kinds(result):
    return list(result.history.column("kind"))


@pytest.mark.parametrize(
    ("solver", "regularizer"),
    [
        (SDM(), L2()),
        (SDM(slack="quadratic"), L2()),
        (SAP(), ElasticNet(0.1, 0.9)),
    ],
    ids=["sdm", "quadratic", "sap"],
)
def test_it_goes_over_where_block_ascent_does_not_come_to_an_end(solver, regularizer, monkeypatch):
    options = {"C": 10.0, "dtype": "float64", "regularizer": regularizer, "random_state": 0}
    found = quietly(measurements(), solver, gap=1e-4, **options)
    assert found.converged
    assert "interior" in kinds(found)
    assert (np.diff(found.history.column("dual")) >= 0).all()
    # Without it the passes are used up far from the end.
    monkeypatch.setattr(handover, "MOST_WEIGHTS", 0)
    without = quietly(measurements(), solver, gap=1e-4, **options)
    assert "interior" not in kinds(without)
    assert without.certificate.gap > 100 * found.certificate.gap


def test_not_before_as_much_was_spent():
    found = quietly(measurements(), SDM(), C=10.0, gap=1e-4, dtype="float64", random_state=0)
    first = kinds(found).index("interior")
    assert first > 20
    assert "collect" in kinds(found)[first:]


def test_problems_that_end_before_are_left_alone():
    case = random_case(np.random.default_rng(0), lengths=[4] * 30, n_sparse=20, noise=0.2)
    found = quietly(case.problem(), SDM(), C=0.1, gap=1e-2, random_state=0)
    assert found.converged
    assert "interior" not in kinds(found)


def test_many_weights_are_never_asked_for(monkeypatch):
    def refuse(*arguments):
        raise AssertionError

    monkeypatch.setattr(handover, "MOST_WEIGHTS", 3)
    monkeypatch.setattr(_native.Engine, "interior_size", refuse)
    quietly(measurements(), SDM(), C=10.0, gap=0.0, max_passes=200, random_state=0)


def test_stopped_and_resumed_equals_one_run(tmp_path):
    def go(passes, **options):
        fixed = {"C": 10.0, "gap": 0.0, "dtype": "float64", "random_state": 4}
        return quietly(measurements(), SDM(), max_passes=passes, **fixed, **options)

    path = tmp_path / "run.npz"
    first = kinds(go(1000)).index("interior")
    whole = go(first + 8)
    for passes in (first, first + 1, first + 3):
        go(passes, checkpoint=path, resume=True)
    assert_same_run(whole, go(first + 8, checkpoint=path, resume=True))


def test_passes_that_do_nothing_are_not_tried_again_at_once(monkeypatch):
    """First some tries with exact passes between them, then twice the work before the next."""
    real = _native.Engine.interior_pass
    monkeypatch.setattr(
        _native.Engine, "interior_pass", lambda engine, *_, **__: real(engine, np.inf)
    )
    monkeypatch.setattr(handover, "LEAST_WORK", 1e5)
    found = quietly(measurements(), SDM(), C=10.0, gap=0.0, max_passes=1500, random_state=0)
    places = [n for n, kind in enumerate(kinds(found)) if kind == "interior"]
    assert 2 <= len(places) < 30
    assert "cached" in kinds(found)[places[0] + 1 : places[1]]


def test_steps_on_blocks_come_between_passes_that_do_nothing(monkeypatch):
    real, calls = _native.Engine.interior_pass, []

    def sometimes(engine, accuracy, **options):
        calls.append(len(calls))
        return real(engine, np.inf if len(calls) in (2, 3) else accuracy, **options)

    monkeypatch.setattr(_native.Engine, "interior_pass", sometimes)
    options = {"C": 10.0, "gap": 1e-12, "dtype": "float64", "random_state": 0, "max_passes": 500}
    found = quietly(measurements(), SDM(), **options)
    first = kinds(found).index("interior")
    assert kinds(found)[first : first + 7] == [
        "interior", "collect", "interior", "exact", "interior", "exact", "interior",
    ]  # fmt: skip
    assert found.converged


def test_steps_on_blocks_come_between_passes_that_only_claim_to_do_something(monkeypatch):
    """Else the oracle would find the same gap for ever."""
    real = _native.Engine.interior_pass

    class Claims:
        def __init__(self, result):
            self._result = result
            self.solved = 1

        def __getattr__(self, name):
            return getattr(self._result, name)

    def claim(engine, *_, **__):
        return Claims(real(engine, np.inf))

    monkeypatch.setattr(_native.Engine, "interior_pass", claim)
    found = quietly(measurements(), SDM(), C=10.0, gap=0.0, max_passes=800, random_state=0)
    first = kinds(found).index("interior")
    assert kinds(found)[first : first + 3] == ["interior", "collect", "interior"]
    assert kinds(found)[first:].count("exact") > 50


@pytest.mark.parametrize("C", [10.0, 1e5])
def test_4_byte_weights_become_8_byte_ones_before(C):
    found = quietly(measurements(3e3), SDM(), C=C, gap=1e-6, dtype="float32", random_state=0)
    assert found.converged
    first = kinds(found).index("interior")
    assert found.certificate.widened == first
    assert kinds(found)[first - 1] == "collect"
    assert list(found.history.column("weight_bytes"))[first - 1 : first + 1] == [4, 8]
    assert found.weights.dtype == np.float64


def test_4_byte_weights_stopped_and_resumed(tmp_path):
    def go(passes, **options):
        fixed = {"C": 10.0, "gap": 1e-9, "dtype": "float32", "random_state": 4}
        return quietly(measurements(), SDM(), max_passes=passes, **fixed, **options)

    path = tmp_path / "run.npz"
    first = kinds(go(1000)).index("interior")
    whole = go(first + 4)
    for passes in (first - 1, first, first + 1):
        go(passes, checkpoint=path, resume=True)
    assert_same_run(whole, go(first + 4, checkpoint=path, resume=True))
