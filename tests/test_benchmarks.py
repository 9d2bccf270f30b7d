"""What the benchmark scripts compute beside the library: baselines, counts, ratios."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from maxmargin import Chain
from maxmargin.comparing import Comparison, Point, Reference, Run
from maxmargin.solvers import solve

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a script; they import each other by their plain names."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def test_viterbi(script: Any) -> None:
    baselines = script("baselines")
    draw = np.random.default_rng(0)
    for T in (1, 2, 4):
        unary, transition = draw.normal(size=(T, 3)), draw.normal(size=(3, 3))
        start = draw.normal(size=3)

        def total(y: Any, u: Any = unary, t: Any = transition, s: Any = start) -> float:
            steps = sum(t[a, b] for a, b in itertools.pairwise(y))
            return float(s[y[0]] + sum(u[k, label] for k, label in enumerate(y)) + steps)

        best = max(itertools.product(range(3), repeat=T), key=total)
        assert baselines.viterbi(unary, transition, start).tolist() == list(best)


def test_hmm(script: Any) -> None:
    hmm = script("baselines").HMM(n_labels=2, n_symbols=4, smoothing=1e-9)
    # Label 0 emits 0 or 1, label 1 emits 2 or 3; symbols 1 and 3 occur once, labels take turns.
    offsets = np.array([0, 4, 7])
    symbols = np.array([0, 2, 0, 2, 1, 2, 0])
    codes = np.array([0, 1, 0, 1, 0, 1, 0], dtype=np.int32)
    hmm.fit(symbols, codes, offsets)
    assert np.exp(hmm.start) == pytest.approx([1, 0], abs=1e-6)
    assert np.exp(hmm.transition) == pytest.approx(np.array([[0, 1], [1, 0]]), abs=1e-6)
    # Of label 0: three times symbol 0, once symbol 1, which stands for unknown symbols as well.
    assert np.exp(hmm.emission[0]) == pytest.approx([0.6, 0.2, 0, 0, 0.2], abs=1e-6)
    assert np.exp(hmm.emission[1]) == pytest.approx([0, 0, 1, 0, 0], abs=1e-6)
    assert hmm.predict(symbols, offsets).tolist() == codes.tolist()
    assert hmm.predict(np.array([-1, 2, -1]), np.array([0, 3])).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="above 0"):
        type(hmm)(2, 4, smoothing=0.0)


def sentences(n: int, noise: float, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    Y = [draw.choice(["A", "B", "C"], size=4).tolist() for _ in range(n)]
    X = [[[y if draw.random() >= noise else "?", "1"] for y in row] for row in Y]
    return X, Y


def test_perceptron(script: Any) -> None:
    baselines = script("baselines")
    chain = Chain()
    batch, codes = chain.learn(*sentences(20, noise=0.0))
    model = baselines.AveragedPerceptron(chain.n_labels, epochs=10).fit(batch, codes)
    assert (model.predict(batch) == codes).all()

    # The mean is that of the weights after every visit, each visit on its own.
    batch, codes = chain.learn(*sentences(6, noise=0.4))
    mean = baselines.AveragedPerceptron(chain.n_labels, epochs=2, seed=1).fit(batch, codes).weights
    L, F = chain.n_labels, batch.n_sparse
    w, kept = np.zeros((F + L + 1, L)), []
    draw = np.random.default_rng(1)
    for _ in range(2):
        for k in draw.permutation(6):
            tokens = range(batch.offsets[k], batch.offsets[k + 1])
            features = [batch.indices[batch.indptr[t] : batch.indptr[t + 1]] for t in tokens]
            unary = np.array([w[f].sum(axis=0) for f in features])
            guess = baselines.viterbi(unary, w[F : F + L], w[F + L])
            for labels, sign in ((codes[list(tokens)], 1), (guess, -1)):
                for t, label in enumerate(labels):
                    w[features[t], label] += sign
                    w[F + L if t == 0 else F + labels[t - 1], label] += sign
            kept.append(w.copy())
    assert len(np.unique(np.array(kept)[:, :F].reshape(12, -1), axis=0)) > 3  # it did learn
    assert mean == pytest.approx(np.mean(kept, axis=0))


def test_constraints(script: Any) -> None:
    ner = script("ner_formulations")
    chain = Chain()
    problem = chain.prepare_problem(*sentences(20, noise=0.3)).problem
    result = solve(problem, ner.make_sdm("linear", "margin", 0.01), C=1.0, gap=1e-6, warn=False)
    n, loss = ner.constraints_of(result.engine.state())
    size = result.engine.size()
    assert n == len(result.engine.state()["alpha"]) - size["parts"]
    assert n > 5
    assert 1 <= loss <= 4  # Hamming loss of sentences of four tokens
    assert ner.constraints_of({"code_size": [0, 3, 1, 0, 2], "n_planes": [3, 2]}) == (3, 2.0)
    assert ner.constraints_of({"code_size": [], "n_planes": []}) == (0, 0.0)


def test_formulations_are_passed_on(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ner = script("ner_formulations")
    made = ner.make_sdm("quadratic", "slack", 0.02)
    assert (made.slack, made.rescale) == ("quadratic", "slack")
    assert (made.schedule, made.tau) == ("paper", 0.02)
    plain = dataclasses.make_dataclass("SDM", [("schedule", str), ("tau", float, 0.0)], frozen=True)
    monkeypatch.setattr(ner, "SDM", plain)
    with pytest.raises(ner.NotInstalledError, match="no fields slack and rescale"):
        ner.make_sdm("quadratic", "slack", 0.02)


def run(label: str, duals: list[float], unit: float) -> Run:
    points = [Point(k, "exact", k * unit, 10 * k, dual) for k, dual in enumerate(duals, 1)]
    return Run(label, label, tuple(points))


def test_ratios_of_table_2(script: Any) -> None:
    table2 = script("table2")

    def row(sdm: list[float], rival: list[float]) -> dict[str, Any]:
        runs = (run("sdm", sdm, 1.0), run("rival", rival, 10.0))
        whole = Comparison(0.1, "L2()", 10, Reference(100.0, 100.0), runs)
        return dict(table2.digest(whole, "rival"))

    there = row([50.0, 99.95], [50.0, 60.0, 70.0, 99.9])
    assert (there["ratio_of_seconds"], there["ratio_of_oracle_calls"]) == (20.0, 2.0)
    assert not there["ratio_is_a_lower_bound"]
    late = row([50.0, 99.95], [50.0, 60.0])
    assert (late["ratio_of_seconds"], late["ratio_is_a_lower_bound"]) == (10.0, True)
    assert late["rival"]["dual_suboptimality"] == pytest.approx(0.4)
    assert row([50.0], [99.99])["ratio_of_seconds"] is None
    failed = row([99.95], [])
    assert failed["ratio_of_seconds"] is None


def test_time_of_native_passes(script: Any) -> None:
    table3 = script("table3")
    problem = Chain().prepare_problem(*sentences(20, noise=0.3)).problem
    solver = table3.TimedSubgradient()
    result = solve(problem, solver, C=1.0, gap=0.0, max_passes=5, random_state=0, warn=False)
    whole = result.history[-1].seconds
    assert 0 < solver.clocks[-1].seconds < whole
    plain = solve(
        problem, table3.Subgradient(), C=1.0, gap=0.0, max_passes=5, random_state=0, warn=False
    )
    assert np.array_equal(result.weights, plain.weights)


@pytest.mark.parametrize("kind", ["dense", "dict", "tuple"])
def test_old_ways_of_python_structures(script: Any, kind: str) -> None:
    """What is measured as before and as now gives the same answers."""
    bench = script("python_structures")
    w = 0.01 * np.random.default_rng(0).normal(size=300)
    structure = bench.Two(kind, 300)
    problem = bench.PythonProblem(structure, [0], [0])
    old = bench.old_oracle(structure, 0, 0, problem.truth_features(0)[:2], w)
    for mine, theirs in zip(problem.oracle(0, w), old, strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=1e-15)

    classes, x = bench.Classes(5), np.random.default_rng(1).normal(size=100)
    problem = bench.PythonProblem(classes, [x], [3])
    w = np.random.default_rng(2).normal(size=500)
    f = problem.truth_features(0)[:2]
    y_hat = bench.old_brute_force(classes, x, w, 3)
    assert y_hat == classes.argmax(x, w, truth=3) == bench.FastClasses(5).argmax(x, w, truth=3)
    delta = bench.old_difference(f, bench.old_vector(classes.joint_feature(x, y_hat), 500), 500)
    for mine, theirs in zip(problem.oracle(0, w), delta, strict=False):
        np.testing.assert_array_equal(mine, theirs)
    planes = problem.grades(0, w, False)
    for mine, (_, *theirs) in zip(planes, bench.old_grades(classes, x, 3, f, w), strict=True):
        for a, b in zip(mine, theirs, strict=False):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["iris", "breast-cancer"])
def test_liblinear_and_chains_have_one_objective(script: Any, name: str) -> None:
    """Of three classes and of two, of which scikit-learn keeps the difference only."""
    hard = script("hard")
    data = hard.Measurements(name)
    svc, warned, _ = hard.liblinear(data.X, data.y, 0.1, 1000)
    assert warned
    W = hard.class_weights(svc)
    assert (hard.with_ends(data.X) @ W.T).argmax(axis=1).tolist() == list(
        svc.predict(hard.with_ends(data.X))
    )
    primal = hard.crammer_singer(W, data.X, data.y, 0.1)
    planes = data.planes()
    slack = np.zeros(planes.n_examples)
    np.maximum.at(slack, planes.example, planes.loss - planes.delta @ W.ravel())
    assert primal == pytest.approx(0.5 * (W**2).sum() + 0.1 * slack.sum(), rel=1e-12)
    chain, problem = data.chains()
    hard.check_objective(chain, problem, 0.1, {"primal": primal, "W": W})
    with pytest.raises(AssertionError, match="differ"):
        hard.check_objective(chain, problem, 0.1, {"primal": 1.001 * primal, "W": W})


def test_rows_of_hard_problems(script: Any, tmp_path: Path) -> None:
    hard = script("hard")
    settings = hard.Settings(tmp_path, "sdm", (0.1,), 5.0)
    (row,) = hard.measurements("iris", settings)
    assert row["reached"]
    assert 1 <= row["primal_over_optimum"] <= 1 / (1 - row["gap"]) + 1e-12
    assert row["liblinear"]["to_goal"] is not None
    assert row["exact_passes"] > row["sweeps"] > 0
    refused = hard.nets(dataclasses.replace(settings, solver="oneslack"))
    assert "refused" in refused[0]
    assert {row["solver"] for row in refused} == {"oneslack", "sap"}


def test_binary_beside_liblinear(script: Any) -> None:
    binary = script("binary")
    data = binary.dense(60, 4)
    row = binary.compare(data, 0.1, repeats=1)
    for target in binary.TARGETS:
        figures = row[f"{target:g}"]
        assert figures["ratio"] == figures["maxmargin"] / figures["liblinear"]
    model = binary.BinarySVM(C=0.1, gap=1e-6).fit(data.X, data.y)
    assert binary.primal(data, model, 0.1) == pytest.approx(model.certificate_.primal)
    assert row["optimum"] == pytest.approx(model.certificate_.primal, rel=1e-5)


def test_serving_figures(script: Any) -> None:
    serving = script("serving")

    class Counting:
        calls = 0

        def predict(self, sentences: Any) -> None:
            Counting.calls += len(sentences)

    sentences = [[["a"], ["b"]]] * 10
    found = serving.latency(Counting(), sentences, rounds=2)
    assert Counting.calls == 10 + 2 * 10 + 10  # warm, the rounds, and one more
    assert 0 < found["p50_us"] <= found["p99_us"]
    serving.in_threads(Counting(), sentences, 3)
    assert Counting.calls == 50
    if Path("/proc/self/smaps_rollup").exists():
        memory = serving.memory_kb()
        assert 0 < memory["private"] <= memory["pss"] <= memory["rss"]


def test_features_for_crfsuite(script: Any) -> None:
    choosing = script("choosing_c")
    rows = [[["The", "D"], ["dog", "N"]], [["barks", "V"]]]
    cells, labels = choosing.split(rows, None)
    assert cells == [[["The"], ["dog"]], [["barks"]]]
    assert labels == [["D", "N"], ["V"]]
    template = choosing.Template.parse("U0:%x[0,0]\nU1:%x[-1,0]\n")
    found = choosing.strings(template, cells)
    assert [sorted(token) for token in found[0]] == [["U0:The", "U1:_B-1"], ["U0:dog", "U1:The"]]
    assert [sorted(token) for token in found[1]] == [["U0:barks", "U1:_B-1"]]
