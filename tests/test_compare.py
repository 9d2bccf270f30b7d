"""Comparing solvers: true figures, a stopped clock, references, failures, tables, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import maxmargin
from maxmargin import SAP, SDM, Chain, ElasticNet, L1Ball, Subgradient
from maxmargin.comparing import Comparison, Point, Reference, Run, compare
from maxmargin.errors import FileFormatError
from maxmargin.solvers import SOLVERS, Solver, driver, solve
from maxmargin.solvers import run as one_run
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.subgradient import SubgradientMachine


def make_problem(n=30, seed=0):
    """Return a chain and a problem that is not separable."""
    draw = np.random.default_rng(seed)
    Y = [draw.choice(["A", "B", "C"], size=5).tolist() for _ in range(n)]
    X = [
        [[y if draw.random() < 0.7 else "?", f"noise {draw.integers(9)}"] for y in labels]
        for labels in Y
    ]
    chain = Chain()
    return chain, chain.prepare_problem(X, Y).problem


CHAIN, PROBLEM = make_problem()
OPTIMUM = solve(PROBLEM, SDM(), C=0.5, dtype="float64", gap=1e-7, random_state=0).certificate


def made(**columns):
    """Return a comparison with one run of these columns; the optimum is 100."""
    n = len(next(iter(columns.values())))
    plain = {"n_pass": range(1, n + 1), "kind": ["exact"] * n, "seconds": range(1, n + 1)}
    plain |= {"oracle_calls": range(10, 10 * n + 10, 10), "dual": [0.0] * n} | columns
    points = [Point(**dict(zip(plain, row, strict=True))) for row in zip(*plain.values())]  # noqa: B905
    run = Run("it", "sdm", tuple(points), 101.0, 99.0, True, "gap")
    return Comparison(1.0, "L2()", 10, Reference(100.0, 100.0), (run,))


# --- runs ---


def test_figures_are_true() -> None:
    found = compare(
        PROBLEM,
        ["sdm", "sap", "subgradient", SDM("paper", tau=1e-3, tau_inner=1e-3)],
        C=0.5,
        reference=OPTIMUM,
        gap=1e-4,
        max_passes=400,
        dtype="float64",
    )
    assert found.labels[:3] == ["sdm", "sap", "subgradient"]
    assert found.labels[3] == "sdm(schedule='paper', tau=0.001, tau_inner=0.001)"
    for run in found.runs:
        assert run.error is None
        assert len(run.points) > 1
        seconds = [point.seconds for point in run.points]
        assert seconds == sorted(seconds)
        calls = [point.oracle_calls for point in run.points]
        assert calls == sorted(calls)
        assert calls[0] >= PROBLEM.n_examples
        for row in found.rows(run.label):
            # Nothing lies on the wrong side of the optimum, which is known to 1e-7.
            assert row["dual_suboptimality"] >= -1.1e-7
            assert row["primal_suboptimality"] >= -1.1e-7
            assert row["gap"] == (row["primal"] - row["dual"]) / row["primal"]
            assert row["test_error"] is None
    for label in ("sdm", "sap"):
        last = found.rows(label)[-1]
        assert last["dual_suboptimality"] < 1e-4
        assert last["primal_suboptimality"] < 1e-4
        assert found[label].converged
    assert not found["subgradient"].converged
    assert found["subgradient"].stop_reason == "max_passes = 400"


@pytest.mark.parametrize("name", ["sdm", "subgradient"])
def test_primal_is_that_of_the_weights_that_score_sees(name) -> None:
    seen = []

    def score(weights):
        seen.append(0.5 * float(weights @ weights) + 0.5 * PROBLEM.hinge(weights, 1))
        return 0.25

    found = compare(
        PROBLEM, [name], C=0.5, score=score, dtype="float64", max_passes=12, gap=1e-6
    )
    primals = [point.primal for point in found[name].points]
    assert primals == pytest.approx(seen, rel=1e-9)
    assert len(set(primals)) > 3
    assert {point.test_error for point in found[name].points} == {0.75}


@pytest.mark.parametrize("solver", [SDM(), SAP(), Subgradient(), Subgradient(average=False)])
def test_looking_does_not_change_the_training(solver) -> None:
    alone = solve(PROBLEM, solver, C=0.5, gap=1e-4, max_passes=15, random_state=3, warn=False)
    found = compare(
        PROBLEM, {"it": solver}, C=0.5, gap=1e-4, max_passes=15, seed=3, score=lambda w: 0.0
    )
    run = found["it"]
    assert (run.primal, run.dual) == (alone.certificate.primal, alone.certificate.dual)
    assert [p.oracle_calls for p in run.points] == list(alone.history.column("oracle_calls"))
    assert [p.kind for p in run.points] == list(alone.history.column("kind"))
    assert run.stop_reason == alone.stop_reason


def test_the_clock_is_stopped_while_a_run_is_looked_at(monkeypatch) -> None:
    now = [0.0]
    clock = types.SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(driver, "time", clock)
    monkeypatch.setattr(one_run, "time", clock)

    def slow_score(weights):
        now[0] += 100.0
        return 1.0

    step = SDM.step

    def step_of_one_second(self, engine, state, context):
        now[0] += 1.0
        return step(self, engine, state, context)

    monkeypatch.setattr(SDM, "step", step_of_one_second)
    found = compare(PROBLEM, ["sdm"], C=0.5, score=slow_score, time_limit=5.0, gap=1e-12)
    assert [point.seconds for point in found["sdm"].points] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_references() -> None:
    best = compare(PROBLEM, ["sdm", "subgradient"], C=0.5, gap=1e-2, max_passes=20)
    assert best.reference is not None
    assert best.reference.dual == max(run.dual for run in best.runs)
    assert best.reference.primal == min(run.primal for run in best.runs)
    assert best.reference.source == "best of all runs"
    tight = compare(PROBLEM, ["subgradient"], C=0.5, reference="sdm", gap=1e-3, max_passes=3)
    assert tight.labels == ["subgradient"]
    assert tight.reference is not None
    assert tight.reference.dual <= OPTIMUM.primal * (1 + 1e-6)
    assert tight.reference.primal - tight.reference.dual <= 1.001e-4 * tight.reference.primal
    given = compare(PROBLEM, ["sdm"], C=0.5, reference=OPTIMUM.dual / 2, max_passes=20)
    assert given.reference == Reference(OPTIMUM.dual / 2, OPTIMUM.dual / 2, "given")
    # The run is better than this reference: that is said, not hidden.
    assert given.rows()[-1]["dual_suboptimality"] == pytest.approx(-1, rel=0.01)


def test_until() -> None:
    full = compare(PROBLEM, ["sdm"], C=0.5, reference=OPTIMUM, gap=1e-6)
    found = compare(PROBLEM, ["sdm"], C=0.5, reference=OPTIMUM, gap=1e-6, until={"dual": 0.05})
    figures = [row["dual_suboptimality"] for row in found.rows()]
    assert figures[-1] <= 0.05
    assert min(figures[:-1], default=1.0) > 0.05
    assert found["sdm"].stop_reason == "stopped by a callback"
    assert len(figures) < len(full.rows())
    both = compare(
        PROBLEM, ["sdm"], C=0.5, reference=OPTIMUM, gap=1e-6, until={"dual": 0.05, "gap": 1e-3}
    )
    assert both.reached("sdm", 1e-3, "gap") == both["sdm"].points[-1]
    assert len(figures) < len(both.rows())


def test_without_primals() -> None:
    found = compare(PROBLEM, ["sdm"], C=0.5, primal=False, max_passes=5)
    for row in found.rows():
        assert row["primal"] is row["gap"] is row["primal_suboptimality"] is None
    assert found["sdm"].primal is not None  # the certificate has it all the same


# --- failures ---


@dataclass(frozen=True)
class Diverging(SDM):
    """Fails in its third pass."""

    name: ClassVar[str] = "diverging"
    error: type[Exception] = FloatingPointError

    def step(self, engine, state, context):
        if state["looks"] >= 2:
            raise self.error("no number")
        return super().step(engine, state, context)


def test_failures_are_reported() -> None:
    found = compare(
        PROBLEM,
        ["lp", "sdm", Diverging(), Diverging(error=MemoryError)],
        C=0.5,
        max_passes=8,
    )
    assert found["lp"].error is not None
    assert found["lp"].error.startswith("solver 'lp' cannot do L2()")
    assert found["lp"].points == ()
    assert found["sdm"].error is None
    for label in ("diverging", "diverging(error=<class 'MemoryError'>)"):
        assert found[label].error == "no number"
        assert len(found[label].points) == 2
    assert found.reference is not None
    assert found.reference.dual == found["sdm"].dual
    assert "lp failed: solver 'lp' cannot do L2()" in found.summary()
    # A wrong option for this regulariser is a failure of the run as well.
    solvers = [Subgradient("pegasos"), "subgradient"]
    ball = compare(PROBLEM, solvers, C=0.5, regularizer=L1Ball(3.0), max_passes=2)
    assert "needs the decay of L2" in (ball.runs[0].error or "")
    assert ball.runs[1].error is None


def test_all_failed() -> None:
    found = compare(PROBLEM, ["sdm"], C=0.5, regularizer=L1Ball(3.0))
    assert found.reference is None
    assert found.rows() == []
    assert found.table()[0]["error"] == found.runs[0].error
    assert "sdm failed" in found.summary()
    assert found.time_to(0.1) == {"sdm": None}
    assert Comparison.from_json(found.to_json()) == found


def test_a_bug_of_the_score_is_not_a_failed_run() -> None:
    def broken(weights):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        compare(PROBLEM, ["sdm"], C=0.5, score=broken)
    for wrong in (1.5, float("nan"), "good", None):
        with pytest.raises(ValueError, match="at most 1"):
            compare(PROBLEM, ["sdm"], C=0.5, score=lambda weights, wrong=wrong: wrong)


def test_interruption_keeps_what_is_there(capsys) -> None:
    calls = []

    def score(weights):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 0.5

    found = compare(PROBLEM, ["sdm", "subgradient"], C=0.5, score=score, gap=1e-9)
    assert found.labels == ["sdm"]
    assert len(found["sdm"].points) == 2
    assert found["sdm"].stop_reason == "interrupted"
    assert "interrupted" in capsys.readouterr().err


def test_bad_arguments() -> None:
    def refused(match, solvers=("sdm",), error=ValueError, **options):
        with pytest.raises(error, match=match):
            compare(PROBLEM, solvers, **{"C": 0.5, **options})

    known = ", ".join(repr(name) for name in SOLVERS)
    refused(f"solver must be one of {known}", ["simplex"])
    refused("no solvers", [])
    refused("sdm is there twice", ["sdm", SDM()])
    refused("C must be", C=-1)
    refused("reference is 'best'", reference="best")
    refused("reference is 0", reference=0)
    refused("reference is nan", reference=float("nan"))
    refused("reference is", reference=[1.0], error=TypeError)
    refused(r"until\['dual'\] needs a reference", until={"dual": 0.1})
    refused(r"until\['gap'\] needs primal=True", until={"gap": 0.1}, primal=False)
    refused(r"until\['test_error'\] needs a score", until={"test_error": 0.1})
    refused("measure is one of dual, primal", until={"loss": 0.1})
    refused("until is empty", until={})
    refused(r"until\['gap'\] is 'small'", until={"gap": "small"}, error=TypeError)


@dataclass(frozen=True)
class Quadratic(SDM):
    """As if SDM had other slacks."""

    slack: str = "linear"


def test_only_solvers_of_one_problem() -> None:
    with pytest.raises(ValueError, match="do not solve the same problem") as caught:
        compare(PROBLEM, {"a": SDM(), "b": Quadratic(slack="quadratic")}, C=0.5)
    assert "'slack': 'quadratic'" in str(caught.value)
    found = compare(PROBLEM, {"a": SDM(), "b": Quadratic()}, C=0.5, max_passes=2)
    assert found.labels == ["a", "b"]


class Handmade(Solver):
    """Neither a dataclass nor without arguments; solves as SDM does."""

    name = "handmade"

    def __init__(self, inner):
        self.inner = inner

    def init(self, context):
        return self.inner.init(context)

    def step(self, engine, state, context):
        return self.inner.step(engine, state, context)


def test_solvers_of_others() -> None:
    found = compare(PROBLEM, [Handmade(SDM("paper"))], C=0.5, max_passes=3)
    assert found.labels == ["handmade"]
    assert len(found.rows()) == 3


def test_regularizers_and_labels() -> None:
    net = ElasticNet(l1_ratio=0.5)
    found = compare(PROBLEM, {"x": "SDM", "y": SAP()}, C=0.5, regularizer=net, gap=1e-4)
    assert found.labels == ["x", "y"]
    assert found.regularizer == str(net)
    assert found["x"].dual == pytest.approx(found["y"].dual, rel=1e-3)
    assert compare(PROBLEM, "sdm", C=0.5, max_passes=1).labels == ["sdm"]


# --- what is asked of a comparison ---


def test_first_and_kept() -> None:
    found = made(dual=[50.0, 95.0, 80.0, 96.0, 99.0], test_error=[0.5, 0.2, 0.3, 0.2, 0.1])
    assert found.time_to(0.05) == {"it": 2}
    assert found.time_to(0.05, keep=True) == {"it": 4}
    assert found.oracle_calls_to(0.05) == {"it": 20}
    assert found.oracle_calls_to(0.05, keep=True) == {"it": 40}
    assert found.time_to(0.001) == {"it": None}
    assert found.time_to(0.2, "test_error") == {"it": 2}
    assert found.time_to(0.2, "test_error", keep=True) == {"it": 4}
    assert found.time_to(0.3, "test_error", keep=True) == {"it": 2}
    assert found.time_to(0.1, "gap") == {"it": None}  # no primals
    last = made(dual=[99.0, 50.0])
    assert last.time_to(0.05, keep=True) == {"it": None}
    with pytest.raises(ValueError, match="a measure is one of"):
        found.time_to(0.1, "loss")
    with pytest.raises(KeyError, match="there are it"):
        found.reached("other", 0.1)


def test_figures_of_a_point() -> None:
    found = made(dual=[80.0], primal=[125.0])
    row = found.rows("it")[0]
    assert row["dual_suboptimality"] == pytest.approx(0.2)
    assert row["primal_suboptimality"] == pytest.approx(0.25)
    assert row["gap"] == pytest.approx(0.36)
    assert found.table()[0] == {
        "label": "it",
        "solver": "sdm",
        "passes": 1,
        "seconds": 1,
        "oracle_calls": 10,
        "dual": 80.0,
        "primal": 125.0,
        "gap": row["gap"],
        "dual_suboptimality": row["dual_suboptimality"],
        "primal_suboptimality": row["primal_suboptimality"],
        "test_error": None,
        "best_test_error": None,
        "converged": True,
        "stop_reason": "gap",
        "error": None,
    }


def test_an_optimum_of_zero() -> None:
    nothing = Comparison(1.0, "L2()", 1, Reference(0.0, 0.0), ())
    assert nothing.value(Point(1, "exact", 0.0, 1, 0.0, 0.0)) == 0.0
    assert nothing.value(Point(1, "exact", 0.0, 1, 0.0, 1.0), "primal") == float("inf")


def test_summary() -> None:
    one = made(dual=[50.0, 95.0, 99.95], primal=[200.0, 150.0, 101.0], test_error=[0.5, 0.1, 0.2])
    two = made(dual=[10.0, 20.0, 30.0, 40.0, 95.0, 98.0])
    slow = Run("slow", "x", two.runs[0].points)
    failed = Run("bad", "y", error="does not fit")
    both = Comparison(1.0, "L2()", 10, one.reference, (one.runs[0], slow, failed))
    lines = both.summary(values=[0.05, 0.001]).splitlines()
    assert lines[0] == "C = 1, L2(), 10 examples; optimum 100 (given)"
    assert lines[2].startswith("solver  passes  oracle calls  seconds  dual below  primal above")
    assert " ".join(lines[3].split()) == "it 3 30 3 0.05 % 1 % 20 % 10 %"
    assert " ".join(lines[4].split()) == "slow 6 60 6 2 % - - -"
    assert len({len(line) for line in lines[2:5]}) == 1  # columns are aligned
    race = next(k for k, line in enumerate(lines) if line.startswith("seconds until the dual"))
    assert lines[race].split()[-4:] == ["5", "%", "0.1", "%"]
    assert lines[race + 1].split() == ["it", "2", "(1.0x)", "3", "(1.0x)"]
    assert lines[race + 2].split() == ["slow", "5", "(2.5x)", ">", "6", "(2.0x)"]
    assert any(line.split() == ["it", "20", "(1.0x)", "30", "(1.0x)"] for line in lines)
    assert lines[-1] == "bad failed: does not fit"


def test_json() -> None:
    found = compare(PROBLEM, ["sdm", "lp"], C=0.5, score=lambda w: 0.5, max_passes=5)
    text = found.to_json()
    assert Comparison.from_json(text) == found
    assert Comparison.from_json(text.encode()).summary() == found.summary()
    whole = json.loads(text)
    for damage, match in (
        ({"format": "x"}, "no comparison"),
        ({"version": 2}, "version 2"),
        ({"runs": [{}]}, "damaged"),
        ({"reference": {"dual": 1.0}}, "damaged"),
    ):
        with pytest.raises(FileFormatError, match=match):
            Comparison.from_dict({**whole, **damage})
    ragged = json.loads(text)
    ragged["runs"][0]["points"]["dual"].pop()
    with pytest.raises(FileFormatError, match="damaged"):
        Comparison.from_dict(ragged)
    for wrong in ("", "[]", "nan", "{", "[" * 200_000):
        with pytest.raises(FileFormatError, match="no comparison"):
            Comparison.from_json(wrong)


def test_infinite_primals_are_not_known(monkeypatch) -> None:
    # Outside of an L1 ball the primal is infinite, which JSON cannot hold.
    monkeypatch.setattr(SubgradientMachine, "objective", lambda self, threads: float("inf"))
    reference = Certificate(primal=2.0, dual=1.0, C=0.5, n_examples=30)
    found = compare(PROBLEM, ["subgradient"], C=0.5, max_passes=2, reference=reference)
    assert found.reference == Reference(dual=1.0, primal=2.0)
    assert [point.primal for point in found["subgradient"].points] == [None, None]
    assert Comparison.from_json(found.to_json()) == found


def test_the_function_is_public_whoever_imports_what_first() -> None:
    assert callable(maxmargin.compare)
    program = (
        "import maxmargin, sys\n"
        "assert 'maxmargin.comparing' not in sys.modules\n"  # lazily
        "import maxmargin.comparing.run\n"
        "try:\n"
        "    maxmargin.compare(None, ['nothing'], C=1.0)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("solver must be one of"), done.stderr
