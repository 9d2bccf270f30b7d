"""How trainings end: what ``converged`` and the reason say, of all solvers and stop conditions."""

from __future__ import annotations

import functools
import math
import re
import warnings

import numpy as np
import pytest

from maxmargin import (
    BCFW,
    LP,
    SAP,
    SDM,
    DualCoordinate,
    ExtraGradient,
    InteriorPoint,
    NSlack,
    OneSlack,
    Online,
    Subgradient,
)
from maxmargin.errors import ConvergenceWarning, NothingLearnedError
from maxmargin.regularizers import L1, L2, ElasticNet
from maxmargin.solvers import SOLVERS, Certificate, run, solve
from maxmargin.solvers.driver import require_learned
from maxmargin.solvers.ending import (
    best_pass_reason,
    certificate_line,
    ending,
    not_reached,
    was_interrupted,
)
from native_problems import random_case

RUNS = {
    "sdm": (SDM(), L2()),
    "sdm paper": (SDM("paper"), L2()),
    "sdm basic": (SDM("basic"), L2()),
    "sap": (SAP(), ElasticNet(l1_ratio=0.3)),
    "sap paper": (SAP("paper"), ElasticNet(l1_ratio=0.3)),
    "sap batch": (SAP("batch"), ElasticNet(l1_ratio=0.3)),
    "nslack": (NSlack(), L2()),
    "nslack paper": (NSlack("paper"), L2()),
    "dualcoordinate": (DualCoordinate(), L2()),
    "dualcoordinate tol": (DualCoordinate(tol=0.1), L2()),
    "oneslack": (OneSlack(epsilon=0.05), L2()),
    "bcfw": (BCFW(), L2()),
    "interiorpoint": (InteriorPoint(), L2()),
    "online": (Online(), L2()),
    "subgradient": (Subgradient(), L2()),
    "lp": (LP(), L1()),
    "extragradient": (ExtraGradient(), L1(nonnegative=True)),
}
#: What the solvers' own criteria are called, where they have one.
OWN = {
    "dualcoordinate tol": "UB - LB is at most tol",
    "sdm paper": "no violation above tau",
    "sdm basic": "no violation above tau",
    "sap paper": "no zeta above theta",
    "sap batch": "no zeta above theta",
    "nslack": "no constraint is violated by",
    "nslack paper": "no constraint is violated by",
    "oneslack": "gap below n C",
    "lp": "no plane is violated by",
}


@functools.cache
def case():
    shape = {"n_labels": 3, "lengths": [4] * 12, "n_sparse": 12, "features": "ones"}
    return random_case(np.random.default_rng(3), noise=0.4, **shape)


def stop_at(n):
    return lambda record: record.n_pass >= n


def press_at(n):
    def press(record):
        if record.n_pass >= n:
            raise KeyboardInterrupt

    return press


CONDITIONS = {
    "gap": ({}, ""),
    "own": ({"gap": 0.0}, ""),
    "max_passes": ({"max_passes": 3}, "max_passes = 3"),
    "time_limit": ({"time_limit": 1e-9}, "time_limit = 1e-09 s"),
    "callback": ({"callbacks": [stop_at(3)]}, "stopped by a callback"),
    "ctrl_c": ({"callbacks": [press_at(3)]}, "interrupted"),
}


def test_all_solvers_are_here():
    assert {name.split()[0] for name in RUNS} == set(SOLVERS)


@functools.cache
def gap_after(name, n_passes):
    """Return the certificate's gap of a run that nothing but the number of passes ends."""
    solver, regularizer = RUNS[name]
    options = {"C": 0.5, "dtype": "float64", "gap": 0.0, "random_state": 0, "warn": False}
    options |= {"regularizer": regularizer, "max_passes": n_passes}
    return solve(case().problem(), solver, **options).certificate.gap


@pytest.mark.parametrize("asked", [1e-3, "just reached", 0.99])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", RUNS)
def test_converged_is_the_certificate_or_the_solvers_own_criterion(name, condition, asked):
    solver, regularizer = RUNS[name]
    changes, cause = CONDITIONS[condition]
    if asked == "just reached":  # a pass that moves w need not notice
        asked = 1.0001 * gap_after(name, 3)
    most = 10 if name == "extragradient" else 300  # whose passes are long
    options = {"C": 0.5, "dtype": "float64", "gap": asked, "max_passes": most, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = solve(case().problem(), solver, regularizer=regularizer, **(options | changes))
    asked = changes.get("gap", asked)
    within = found.certificate.gap <= asked
    own = name in OWN and OWN[name] in found.stop_reason
    assert found.converged == (within or own)
    # The reason says which of them it was, and what else ended the passes; nothing else.
    parts = found.stop_reason.split("; ")
    reached = f"gap {found.certificate.gap:.3g} <= {asked:g}"
    assert (reached in parts) == within
    if parts[0] not in {cause, reached, f"max_passes = {options['max_passes']}"}:
        assert own
    assert len(parts) == len(set(parts)) <= 3
    if condition == "own" and name in OWN:
        assert own
    assert found.interrupted == (cause == "interrupted" and parts[0] == "interrupted")
    warned = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(warned) == (not found.converged and not found.interrupted)
    for warning in warned:
        assert found.stop_reason in str(warning.message)


@pytest.mark.parametrize("name", [name for name in RUNS if name in OWN])
def test_an_own_criterion_that_did_not_come_to_its_end_does_not_hold(name):
    """Time is up at once: whatever the pass under way found is no criterion."""
    solver, regularizer = RUNS[name]
    options = {"C": 0.5, "regularizer": regularizer, "gap": 0.0, "time_limit": 1e-9}
    found = solve(case().problem(), solver, warn=False, **options)
    assert not found.converged
    assert found.stop_reason == "time_limit = 1e-09 s"


def test_a_linear_program_without_time_proves_nothing(monkeypatch):
    """HiGHS gives up: the planes at the old weights are all known, which is no convergence."""
    import scipy.optimize

    solve_it, asked = scipy.optimize.linprog, []

    def linprog(*args, **kwargs):
        asked.append(True)
        found = solve_it(*args, **kwargs)
        if len(asked) > 1:
            found.status = 1
        return found

    monkeypatch.setattr(scipy.optimize, "linprog", linprog)
    options = {"C": 0.5, "regularizer": L1(), "gap": 1e-6, "max_passes": 6}
    found = solve(case().problem(), LP(), warn=False, **options)
    assert len(asked) > 2
    assert found.certificate.gap > 0.01
    assert not found.converged
    assert found.stop_reason == "max_passes = 6"


# --- rounding ---


def test_a_gap_that_rounding_forbids_is_not_claimed(monkeypatch):
    """Without memory for 8-byte weights; with it: test_precision.py."""
    problem = case().problem()
    options = {"C": 0.5, "gap": 1e-13, "max_passes": 5000, "random_state": 0}
    with monkeypatch.context() as small:
        small.setattr("maxmargin.solvers.precision.available_bytes", lambda: 1000)
        found = solve(problem, SDM(), **options, warn=False)
    assert 1e-13 < found.certificate.gap < 1e-6
    assert not found.converged
    assert found.weights.dtype == np.float32
    reason = r"rounding of float32 weights keeps the gap above 1e-13 \(8-byte weights would need "
    reason += r"\S+ \w+, and only 1.0 kB are available\): use dtype=\"float64\""
    assert re.match(reason, found.stop_reason), found.stop_reason
    exact = solve(problem, SDM(), **options, dtype="float64")
    assert exact.converged
    assert exact.certificate.gap <= 1e-13


@pytest.mark.parametrize("solver", [SDM(), SDM("paper", tau=1e-4), NSlack(), BCFW(average=False)])
def test_the_certificate_is_of_the_weights_that_are_returned(solver):
    """Not of 8-byte weights that nobody gets."""
    problem = case().problem()
    found = solve(problem, solver, C=0.5, gap=1e-6, random_state=0, warn=False, max_passes=300)
    assert found.weights.dtype == np.float32
    again = found.engine.primal_of(found.weights)
    assert found.certificate.primal == pytest.approx(again, rel=1e-13)


def test_training_goes_on_while_certificates_become_better(monkeypatch):
    """The passes believe a gap of 1e-3 at once; the certificate makes them go on until it is so."""
    loops = []
    exact = run.Run._exact_gap
    loop = run.Run.loop

    def believes(self, step):
        return min(exact(self, step), 1e-4 * self.context.dual)

    def count(self, *args):
        loops.append(len(self.history))
        loop(self, *args)

    monkeypatch.setattr(run.Run, "_exact_gap", believes)
    monkeypatch.setattr(run.Run, "loop", count)
    # (Short rounds, for many certificates.)
    solver = SDM(cached_passes=8)
    found = solve(case().problem(), solver, C=0.5, gap=1e-3, random_state=0)
    assert len(loops) > run.MAX_CONFIRMATIONS
    assert found.converged
    assert found.certificate.gap <= 1e-3
    assert found.stop_reason == f"gap {found.certificate.gap:.3g} <= 0.001"


# --- models that learned nothing ---


def test_a_model_that_learned_nothing_is_refused():
    found = solve(case().problem(), SDM(), C=0.5, time_limit=1e-9, warn=False)
    assert not found.weights.any()
    with pytest.raises(NothingLearnedError, match=r"all weights are zero.*time_limit = 1e-09 s"):
        require_learned(found)


def test_ctrl_c_before_anything_was_learned_is_ctrl_c():
    class Pressed(SDM):
        def step(self, engine, state, context):
            raise KeyboardInterrupt

    found = solve(case().problem(), Pressed(), C=0.5)
    with pytest.raises(KeyboardInterrupt):
        require_learned(found)


def test_zero_is_a_model_where_it_is_the_optimum():
    for solver, regularizer in ((SAP(), ElasticNet(1e3, 1.0)), (LP(), L1(1e3))):
        found = solve(case().problem(), solver, C=1e-3, regularizer=regularizer)
        assert not found.weights.any()
        assert found.converged
        assert found.certificate.gap <= 0.01
        require_learned(found)


# --- the sentences ---


def test_reasons():
    close, far = Certificate(1.0, 0.995, 0.1, 3), Certificate(1.0, 0.5, 0.1, 3)
    assert ending(close, 0.01) == (True, "gap 0.005 <= 0.01")
    assert ending(close, 0.01, cause="max_passes = 3") == (
        True,
        "max_passes = 3; gap 0.005 <= 0.01",
    )
    assert ending(far, 0.01, own="no violation") == (True, "no violation")
    assert ending(far, 0.01, cause="max_passes = 3") == (False, "max_passes = 3")
    assert was_interrupted("interrupted; gap 0.005 <= 0.01")
    assert not was_interrupted("max_passes = 3; interrupted")


def test_a_gap_that_was_just_missed_does_not_look_as_if_it_was_reached():
    missed = Certificate(1.0, 1.0 - 0.01000049, 0.1, 3)
    assert "within 1.00005 %" in not_reached(missed, "max_passes = 3", 0.01)
    assert "asked for was 1 %" in not_reached(missed, "max_passes = 3", 0.01)
    assert "within 1.00005 %" in certificate_line(missed, 3, "max_passes = 3", 0.01)


def test_the_line_about_a_model():
    line = certificate_line(Certificate(2.0, 1.9, 0.1, 3), 17, "gap 0.05 <= 0.1", 0.1)
    assert line == (
        "primal 2, dual 1.9: within 5 % of the optimum (C = 0.1, 17 passes; gap 0.05 <= 0.1)"
    )
    assert "approximate" in certificate_line(Certificate(2.0, 1.9, 0.1, 3, True), 1, "x", 0.1)
    text = best_pass_reason(3, 17, "gap 0.00989 <= 0.01")
    assert text == (
        "the model of pass 3 of 17, the best on the validation data; at the end of training: "
        "gap 0.00989 <= 0.01"
    )
    assert math.isclose(Certificate(2.0, 1.9, 0.1, 3).gap, 0.05)
