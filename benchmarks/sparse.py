"""Sparse taggers: SAP against SDM and against the L1-ball projected subgradient.

Claims shown: Tables II, III and IV of the SAP paper on data of the same kind (non-zero weights,
their share, test accuracy, time); SAP to a 5 % gap in units of SDM to a 1 % gap; time and memory
on the Brown corpus; size and speed of the sparse tagger.

    python benchmarks/sparse.py --data ../shared/data [--parts speed,files,II,III,IV,ocr,brown]

The clock runs during passes only; accuracies are computed with the clock stopped. Tables III and IV
run Algorithm 2 with small positive μ and ν, as the paper does (1e-3 each, which is what
``SAP("paper")`` has), on nine tenths of the training sentences; the pass that is shown is the best
one on the tenth that was held out, and test data are looked at for that pass only. The subgradient
method is given the radius ‖w‖₁ of SAP's model, which it would have to find by cross-validation, and
the best of three step sizes. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import L2, SAP, SDM, ElasticNet, L1Ball, Subgradient, load
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import read_columns
from maxmargin.io.tagger_file import save_tagger
from maxmargin.regularizers import Regularizer
from maxmargin.selection import Encoded, FitOptions, debias, search_nonzeros
from maxmargin.solvers import Solver
from maxmargin.solvers.driver import copy_weights
from maxmargin.solvers.steps import Context
from maxmargin.structures import Chain

#: Task -> (folder, template, label column).
TASKS = {
    "POS": ("conll2000", "pos@1", 1),
    "WSJPOS": ("wsj_sample_pos", "pos@1", 1),
    "CoNLL": ("conll2000", "chunking@1", 2),
    "Brown": ("brown_pos", "pos@1", 1),
}
#: Steps that the subgradient method may choose from, and the time of a trial in SAP's times.
STEPS, TRIAL = (0.1, 0.03, 0.01), 5
#: Algorithm 2, with the costs-to-move μ and ν of the paper ("small positive values").
SEQUENTIAL = SAP("paper")
#: The same in the limit ν → 0, with β at its fixed point: its time a pass is measured on Brown.
FIXED_POINT = SAP("paper", mu=0.0, nu=0.0)
#: Share of the training sentences on which the best pass is chosen.
HELD_OUT = 0.1


class Data:
    """A task in numbers: training problem and test data."""

    def __init__(self, folder: Path, task: str) -> None:
        name, template, column = TASKS[task]
        train, labels = read_columns(folder / name / "train.tsv.gz").labelled(column)
        self.test_table = read_columns(folder / name / "test.tsv.gz")
        self.chain = Chain(encoder=TemplateEncoder(Template.load(template)))
        self.batch, self.codes = self.chain.learn(train, labels)
        self.test = self.chain.encoder.transform(self.test_table)
        self.truth = self.chain.known_codes(self.test_table.labels(column))
        self.n_weights = self.chain.layout.without_pairs.size

    @functools.cached_property
    def problem(self) -> Any:
        """All training sentences."""
        return self.chain.encoded_problem(self.batch, self.codes)

    def split(self) -> tuple[Any, Encoded]:
        """Return the problem of most training sentences, and those that are held out.

        The features are those of all of them; one that only sentences held out have stays zero.
        """
        data = Encoded(self.batch, self.codes, list(self.chain.labels_))
        n = self.batch.n_sequences
        order = np.random.default_rng(0).permutation(n)
        held, rest = np.split(order, [round(HELD_OUT * n)])
        most = data.take(np.sort(rest))
        return self.chain.encoded_problem(most.batch, most.codes), data.take(np.sort(held))

    def accuracy(self, weights: Any) -> float:
        """Share of test tokens that are labelled right."""
        return float((self.chain.predict_encoded(self.test, weights) == self.truth).mean())


def passes(
    problem: Any, solver: Solver, C: float, regularizer: Regularizer, gap: float = 0.0
) -> Iterator[tuple[float, Any, Any]]:
    """Train pass by pass, without end: seconds of passes so far, the machine, the step.

    The schedule is told the gap that is asked for, as `solve` tells it.
    """
    machine = solver.start(problem, C, regularizer, True)
    context = Context(problem.n_examples, np.random.default_rng(0), gap=gap)
    state = solver.init(context)
    seconds = 0.0
    while True:
        begin = time.perf_counter()
        step = solver.step(machine, state, context)
        seconds += time.perf_counter() - begin
        context.dual += step.result.gain
        yield seconds, machine, step


def to_gap(problem: Any, solver: Solver, C: float, regularizer: Regularizer, gap: float) -> Any:
    """Train to a gap, looked at with the clock stopped; seconds and the machine."""
    for seconds, machine, step in passes(problem, solver, C, regularizer, gap):
        if step.kind == "cached":
            continue
        primal, dual = machine.objective(1), machine.dual()
        if primal - dual <= gap * primal:
            return seconds, machine
    raise AssertionError


def best_of(
    data: Data,
    solver: Solver,
    C: float,
    regularizer: Regularizer,
    n: int,
) -> dict[str, Any]:
    """Find the pass among the first n that is best on held-out training sentences; test it."""
    problem, held = data.split()
    best, kept = {"held_out": 0.0}, None
    for k, (seconds, machine, _) in enumerate(passes(problem, solver, C, regularizer), 1):
        predicted = data.chain.predict_encoded(held.batch, machine.weights)
        value = float((predicted == held.codes).mean())
        if value > best["held_out"]:
            best, kept = {"held_out": value, "pass": k, "seconds": seconds}, copy_weights(machine)
        if k == n:
            nonzeros = int(np.count_nonzero(kept))
            best |= {"accuracy": data.accuracy(kept), "nonzeros": nonzeros, "seconds_all": seconds}
            return best
    raise AssertionError


def row(name: str, found: dict[str, Any], n_weights: int) -> None:
    share = 100 * found["nonzeros"] / n_weights
    print(
        f"  {name:34s} {found['nonzeros']:8d} {share:8.4f} {100 * found['accuracy']:8.2f} "
        f"{found['seconds']:9.2f}",
        flush=True,
    )


def header(title: str) -> None:
    print(
        f"\n{title}\n  {'':34s} {'#NZ':>8s} {'%NZ':>8s} {'acc. %':>8s} {'seconds':>9s}", flush=True
    )


def speed(folder: Path) -> dict[str, Any]:
    """SAP to a 5 % gap over SDM to a 1 % gap."""
    output = {}
    print("\nTime to a 5 % gap of SAP (rho1 0.9, rho2 0.1) over SDM's to a 1 % gap, C = 0.1")
    for task in ("CoNLL", "POS"):
        data = Data(folder, task)
        ratios = []
        for _ in range(3):
            plain, _ = to_gap(data.problem, SDM(), 0.1, L2(), 0.01)
            sparse, machine = to_gap(data.problem, SAP(), 0.1, ElasticNet(0.9, 0.1), 0.05)
            ratios.append(sparse / plain)
        found = {
            "ratio": float(np.median(ratios)),
            "ratios": ratios,
            "seconds": sparse,
            "nonzeros": int(np.count_nonzero(machine.weights)),
            "accuracy": data.accuracy(machine.weights),
        }
        print(
            f"  {task}: {found['ratio']:.2f} (median of 3), {found['nonzeros']} non-zeros, "
            f"accuracy {100 * found['accuracy']:.2f} %",
            flush=True,
        )
        output[task] = found
    return output


def files(folder: Path) -> dict[str, Any]:
    """Size and tagging speed of the sparse chunker, and what a re-fit brings."""
    data = Data(folder, "CoNLL")
    train = Encoded(data.batch, data.codes, list(data.chain.labels_))
    options = FitOptions(gap=0.02)
    begin = time.perf_counter()
    found = search_nonzeros(data.chain, train, 0.1, 2400, options)
    again = debias(data.chain, train, found, options, keep="weights")
    seconds = time.perf_counter() - begin
    _, net = to_gap(data.problem, SAP(), 0.1, ElasticNet(0.9, 0.1), 0.05)
    _, plain = to_gap(data.problem, SDM(), 0.1, L2(), 0.01)
    models = {
        "dense (SDM, 1 % gap)": plain.weights,
        "elastic net, 5 % gap": net.weights,
        "2,400 non-zeros": found.weights,
        "2,400 non-zeros, re-fitted": again.weights,
    }
    print("\nModel files of the chunker (search and re-fit took " + f"{seconds:.1f} s)")
    print(f"  {'':28s} {'#NZ':>8s} {'acc. %':>8s} {'bytes':>9s} {'tokens/s over dense':>20s}")
    output: dict[str, Any] = {}
    taggers = {}
    with tempfile.TemporaryDirectory() as place:
        for name, weights in models.items():
            path = Path(place) / "model.mm"
            save_tagger(path, data.chain, np.asarray(weights), {})
            output[name] = {
                "nonzeros": int(np.count_nonzero(weights)),
                "accuracy": data.accuracy(weights),
                "bytes": path.stat().st_size,
                "seconds": np.inf,
            }
            taggers[name] = load(path)
        for _ in range(9):  # interleaved: the machine's speed changes
            for name, tagger in taggers.items():
                begin = time.perf_counter()
                tagger.predict(data.test_table)
                output[name]["seconds"] = min(output[name]["seconds"], time.perf_counter() - begin)
    dense = output["dense (SDM, 1 % gap)"]["seconds"]
    for name, found_model in output.items():
        found_model["speed_over_dense"] = dense / found_model["seconds"]
        print(
            f"  {name:28s} {found_model['nonzeros']:8d} {100 * found_model['accuracy']:8.2f} "
            f"{found_model['bytes']:9d} {found_model['speed_over_dense']:20.2f}"
        )
    return output


def table2(folder: Path, limit: float) -> dict[str, Any]:
    """ENSSVM against L1-SSVM: until the rival is as accurate with as few weights, or the limit."""
    output: dict[str, Any] = {}
    header("Table II: elastic net (SAP, C 0.1, rho1 0.9) and L1 ball (projected subgradient)")
    for task in ("POS", "CoNLL"):
        data = Data(folder, task)
        seconds, machine = to_gap(data.problem, SAP(), 0.1, ElasticNet(0.9, 0.1), 0.05)
        goal = {
            "nonzeros": int(np.count_nonzero(machine.weights)),
            "accuracy": data.accuracy(machine.weights),
            "seconds": seconds,
        }
        radius = float(np.abs(machine.weights).sum())
        row(f"{task} SAP, 5 % gap", goal, data.n_weights)
        output[task] = {"SAP": goal, "radius": radius}
        for project in ("pass", "example"):
            ball = L1Ball(radius)
            # The step that is furthest after a few times SAP's time goes on to the limit.
            runs = [
                race(data, Subgradient(size, project), ball, goal, TRIAL * seconds)
                for size in STEPS
            ]
            best = min(runs, key=lambda r: (not r["reached"], shortfall(r, goal)))
            if not best["reached"]:
                solver = Subgradient(best["step_size"], project)
                best = race(data, solver, ball, goal, limit * seconds)
            ratio = best["seconds"] / seconds
            note = f"{ratio:.1f}x SAP's time" if best["reached"] else f"not in {ratio:.0f}x"
            row(f"{task} projected each {project} ({note})", best, data.n_weights)
            output[task][project] = best | {"ratio": ratio}
    return output


def shortfall(found: dict[str, Any], goal: dict[str, Any]) -> float:
    """How far a model is from the goal: errors too many and weights too many, as shares."""
    errors = (1 - found["accuracy"]) / (1 - goal["accuracy"])
    return max(errors - 1, 0) + max(found["nonzeros"] / goal["nonzeros"] - 1, 0)


def race(
    data: Data, solver: Solver, ball: L1Ball, goal: dict[str, Any], limit: float
) -> dict[str, Any]:
    """Run until as accurate as the goal with as few weights, or the limit."""
    for seconds, machine, _ in passes(data.problem, solver, 0.1, ball):
        nonzeros = int(np.count_nonzero(machine.weights))
        accuracy = data.accuracy(machine.weights)
        reached = accuracy >= goal["accuracy"] and nonzeros <= goal["nonzeros"]
        if reached or seconds > limit:
            return {
                "nonzeros": nonzeros,
                "accuracy": accuracy,
                "seconds": seconds,
                "reached": reached,
                "step_size": getattr(solver, "step_size", None),
            }
    raise AssertionError


def table3(folder: Path, n: int) -> dict[str, Any]:
    """Test accuracy of the best of the first passes on held-out training sentences, C = 1."""
    output = {}
    header(f"Table III: Algorithm 2, C 1, rho1 0.9, of {n} passes the best on held-out sentences")
    for task in TASKS:
        data = Data(folder, task)
        found = best_of(data, SEQUENTIAL, 1.0, ElasticNet(0.9, 0.1), n)
        row(f"{task} (pass {found['pass']})", found, data.n_weights)
        output[task] = found
        del data
    return output


def table4(folder: Path, n: int) -> dict[str, Any]:
    """Show the effect of C."""
    output: dict[str, Any] = {}
    header(f"Table IV: Algorithm 2, rho1 0.9, of {n} passes the best on held-out sentences")
    for task in ("POS", "CoNLL"):
        data = Data(folder, task)
        output[task] = {}
        for C in (0.1, 1.0, 10.0):
            found = best_of(data, SEQUENTIAL, C, ElasticNet(0.9, 0.1), n)
            row(f"{task}, C = {C:g} (pass {found['pass']})", found, data.n_weights)
            output[task][f"{C:g}"] = found
    return output


class Letters:
    """The OCR words: one fold to train on, nine to test on."""

    def __init__(self, folder: Path, fold: int) -> None:
        with np.load(folder / "ocr_letters" / "letters.npz") as stored:
            pixels = np.unpackbits(stored["pixels"], axis=1).astype(np.float32)
            letter, word, which = stored["letter"], stored["word_id"], stored["fold"]
        starts = np.flatnonzero(np.r_[True, word[1:] != word[:-1]])
        ends = np.r_[starts[1:], len(word)]
        words = [(pixels[a:b], letter[a:b]) for a, b in zip(starts, ends, strict=True)]
        train = which[starts] == fold
        self.chain = Chain()
        X, y = zip(*[w for w, inside in zip(words, train, strict=True) if inside], strict=True)
        self.batch, self.codes = self.chain.learn(list(X), [list(map(int, v)) for v in y])
        self.problem = self.chain.encoded_problem(self.batch, self.codes)
        X, y = zip(*[w for w, inside in zip(words, train, strict=True) if not inside], strict=True)
        self.test = self.chain.encoder.transform(list(X))
        self.truth = self.chain.known_codes([list(map(int, v)) for v in y])
        self.n_weights = self.chain.layout.size

    accuracy = Data.accuracy


def ocr(folder: Path) -> dict[str, Any]:
    """Means over the ten folds, C = 1, rho1 = 0.7."""
    output: dict[str, Any] = {}
    header("OCR, ten folds (one to train on, nine to test on), C 1, rho1 0.7, the same time: means")
    rows: dict[str, list[dict[str, Any]]] = {"SAP, 5 % gap": [], "projected each pass": []}
    last = None
    for fold in range(10):
        data = Letters(folder, fold)
        seconds, machine = to_gap(data.problem, SAP(), 1.0, ElasticNet(0.7, 0.3), 0.05)
        goal = {
            "nonzeros": int(np.count_nonzero(machine.weights)),
            "accuracy": data.accuracy(machine.weights),
            "seconds": seconds,
        }
        rows["SAP, 5 % gap"].append(goal)
        radius = float(np.abs(machine.weights).sum())
        runs = [
            race(data, Subgradient(size, "pass"), L1Ball(radius), goal, seconds) for size in STEPS
        ]
        rows["projected each pass"].append(min(runs, key=lambda r: shortfall(r, goal)))
        last = data
    assert last is not None
    for name, found in rows.items():
        mean = {key: float(np.mean([f[key] for f in found])) for key in ("accuracy", "seconds")}
        mean["nonzeros"] = round(np.mean([f["nonzeros"] for f in found]))
        row(name, mean, last.n_weights)
        output[name] = mean
    return output


def brown(folder: Path) -> dict[str, Any]:
    """Time per pass over SDM's, with β at its fixed point, and memory."""
    print("\nBrown corpus, C = 1, SAP without costs-to-move")
    data = Data(folder, "Brown")
    times: dict[str, list[float]] = {}
    for name, solver, regularizer in (
        ("SDM", SDM("paper", tau=0.0, tau_inner=0.01, kappa1=10**6), L2()),
        ("SAP", FIXED_POINT, ElasticNet(0.9, 0.1)),
    ):
        before, times[name] = 0.0, []
        for seconds, _, _ in passes(data.problem, solver, 1.0, regularizer):
            times[name].append(seconds - before)
            before = seconds
            if len(times[name]) == 10:
                break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 if sys.platform != "darwin" else 1024**2
    )
    ratio = sum(times["SAP"]) / sum(times["SDM"])
    print(
        f"  {data.problem.n_examples} sentences, {data.chain.n_labels} labels, "
        f"{data.batch.n_sparse} features, {data.n_weights} weights\n"
        f"  time of ten passes of SAP over ten of SDM: {ratio:.2f}   "
        f"(a pass of SAP: {np.mean(times['SAP']):.2f} s)\n  peak memory {peak:.0f} MB",
        flush=True,
    )
    return {"ratio": ratio, "times": times, "peak_rss_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", default="speed,files,II,III,IV,ocr,brown")
    parser.add_argument("--limit", type=float, default=100, help="of the rival, in SAP's times")
    args = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "speed": lambda: speed(args.data),
        "files": lambda: files(args.data),
        "II": lambda: table2(args.data, args.limit),
        "III": lambda: table3(args.data, 50),
        "IV": lambda: table4(args.data, 100),
        "ocr": lambda: ocr(args.data),
        "brown": lambda: brown(args.data),
    }
    wanted = args.parts.split(",")
    if not set(wanted) <= set(parts):
        parser.error(f"--parts takes some of {', '.join(parts)}; got {args.parts}")
    print(json.dumps({name: parts[name]() for name in wanted}))


if __name__ == "__main__":
    main()
