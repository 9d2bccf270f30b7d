"""Without max_passes the limit is on counted work, and on no fewer than a thousand passes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from maxmargin import SequenceTagger, StructuralSVM, compare
from maxmargin.selection import FitOptions
from maxmargin.solvers import SDM, Subgradient, limits, solve
from maxmargin.solvers.limits import LEAST_PASSES, MOST_WORK, PASS_WORK, PassLimit, work_of
from maxmargin.solvers.steps import PassTotals
from native_problems import flat_problem, native_python_problem, random_case


def problem(**options):
    return random_case(np.random.default_rng(0), lengths=(4, 2, 5, 3), **options).problem()


def endless(**options):
    """Train for ever, unless something stops it."""
    options = {"C": 1e6, "gap": 0.0, "dtype": "float64", "random_state": 0} | options
    return solve(options.pop("problem", None) or problem(), SDM(), warn=False, **options)


class Stop:
    """Ends a training after so many passes."""

    def __init__(self, passes):
        self.passes = passes

    def __call__(self, record):
        return record.n_pass >= self.passes


def test_a_number_means_passes():
    assert PassLimit(7).reached(6, 1e99) == ""
    assert PassLimit(7).reached(7, 0.0) == "max_passes = 7"


def test_none_means_work_and_a_least_number_of_passes():
    limit = PassLimit(None)
    assert limit.reached(LEAST_PASSES - 1, 10 * MOST_WORK) == ""
    assert limit.reached(LEAST_PASSES, 0.5 * MOST_WORK) == ""
    assert limit.reached(10 * LEAST_PASSES, 0.5 * MOST_WORK) == ""
    reached = limit.reached(4321, MOST_WORK)
    assert reached == "work limit of 1e+11 processor cycles, 4321 passes"
    assert ";" not in reached


def test_what_a_pass_counts():
    class Counted:
        work = 3e9

    assert work_of(Counted(), slow_oracle=False) == 3e9
    assert LEAST_PASSES * work_of(Counted(), slow_oracle=True) == pytest.approx(MOST_WORK)
    assert LEAST_PASSES * work_of(PassTotals(0.0, 0.0, 1), False) == pytest.approx(MOST_WORK)
    Counted.work = 0.0
    assert work_of(Counted(), slow_oracle=False) == PASS_WORK
    assert MOST_WORK / PASS_WORK <= 1e5  # what a history may have


def test_many_short_passes_go_on_beyond_a_thousand(monkeypatch):
    assert endless(callbacks=[Stop(1500)]).n_passes == 1500
    monkeypatch.setattr(limits, "MOST_WORK", 1200 * PASS_WORK)
    found = endless()
    assert 1000 < found.n_passes <= 1201
    assert found.stop_reason.startswith("work limit of ")
    assert found.stop_reason.endswith(f" {found.n_passes} passes")


def test_the_limit_is_the_same_for_a_resumed_run(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "MOST_WORK", 1100 * PASS_WORK)
    whole = endless()
    checkpoint = tmp_path / "run.npz"
    endless(checkpoint=checkpoint, max_passes=700)
    again = endless(checkpoint=checkpoint, resume=True)
    assert (again.n_passes, again.stop_reason) == (whole.n_passes, whole.stop_reason)
    assert np.array_equal(again.weights, whole.weights)


def test_other_solvers_and_slow_oracles_stop_at_a_thousand(monkeypatch):
    monkeypatch.setattr(limits, "LEAST_PASSES", 20)
    monkeypatch.setattr(limits, "UNCOUNTED", MOST_WORK / 20)
    found = solve(problem(), Subgradient(0.1), C=1.0, gap=0.0, warn=False)
    assert found.n_passes == 20
    own = native_python_problem(*flat_problem(np.random.default_rng(0)))
    found = solve(own, SDM("basic", tau=0, tau_inner=0), C=1e3, gap=0.0, warn=False)
    assert found.n_passes <= 20


@pytest.mark.parametrize("what", [solve, compare, SequenceTagger, StructuralSVM, FitOptions])
def test_none_is_the_default_everywhere(what):
    assert inspect.signature(what).parameters["max_passes"].default is None


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "many"])
def test_other_values_are_refused(bad):
    with pytest.raises((ValueError, TypeError), match="max_passes"):
        endless(max_passes=bad)
