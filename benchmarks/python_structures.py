"""What training adds to a user's own Python methods, and what it added before.

Claims shown: the time of an oracle call beyond the user's own argmax, features and loss, for
vectors of several kinds and sizes; the oracle of a structure that lists its outputs; slack
rescaling of one that has both an argmax and a list.

    taskset -c 0 python benchmarks/python_structures.py

"Before" is a frozen copy of the old adapter, in this file: w is copied for each call, vectors are
checked, sorted and subtracted with NumPy, and listed outputs are asked for their features at every
call. What native code does with the answer is part of neither; only with slack rescaling "now" is
the whole call from the engine. Both run in turn in this process; the time of a call is the least of
several rounds. "Now" w is not copied: the engine brings one array up to date where steps change it.

    python benchmarks/python_structures.py --processes

trains a structure whose argmax is a Viterbi pass in plain Python, with ``n_jobs`` 1 and 2 by turns:
seconds of the whole training, of the time before the two processes were ready (part of it), and of
a pass of the oracle at one w with the processes there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import StructuralSVM, _native
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.base import Structure

Vector = tuple[NDArray[Any], NDArray[np.float64]]

SIZES = (10**3, 10**5, 10**6, 10**7)
KINDS = ("dense", "dict", "tuple")
N_ENTRIES = 50
N_OUTPUTS = 64


# --- the old way, frozen ---


def old_vector(features: Any, n_features: int) -> Vector:
    """Return indices and values, checked and sorted."""
    if isinstance(features, np.ndarray):
        assert features.shape == (n_features,)
        indices = np.flatnonzero(features)
        values = features[indices]
    else:
        pairs = features
        if isinstance(features, dict):
            pairs = list(features.keys()), list(features.values())
        indices, values = np.asarray(pairs[0]), np.asarray(pairs[1])
        assert indices.shape == values.shape
        assert indices.dtype.kind in "iu"
        assert values.dtype.kind in "biuf"
        indices, values = indices.astype(np.int64), values.astype(np.float64)
        if len(indices) > 1 and not (indices[1:] > indices[:-1]).all():
            indices, values = old_sums(indices, values)
        keep = values != 0.0
        if not keep.all():
            indices, values = indices[keep], values[keep]
    assert np.isfinite(values).all()
    assert len(indices) == 0 or (indices[0] >= 0 and indices[-1] < n_features)
    return indices.astype(np.uint32), values


def old_sums(indices: NDArray[Any], values: NDArray[np.float64]) -> Vector:
    order = np.argsort(indices, kind="stable")
    indices, values = indices[order], values[order]
    first = np.flatnonzero(np.append(True, indices[1:] != indices[:-1]))
    return indices[first], np.add.reduceat(values, first)


def old_dot(vector: Vector, w: NDArray[np.float64]) -> float:
    return float(vector[1] @ w[vector[0]])


def old_scale(vector: Vector, w: NDArray[np.float64]) -> float:
    return float(np.abs(vector[1]) @ np.abs(w[vector[0]]))


def old_difference(a: Vector, b: Vector, size: int) -> Vector:
    if 4 * (len(a[0]) + len(b[0])) >= size:
        dense = np.zeros(size)
        dense[a[0]] = a[1]
        dense[b[0]] -= b[1]
        indices = np.flatnonzero(dense).astype(np.uint32)
        return indices, dense[indices]
    indices, values = old_sums(np.concatenate([a[0], b[0]]), np.concatenate([a[1], -b[1]]))
    keep = values != 0.0
    return indices[keep], values[keep]


def old_equal(a: Any, b: Any) -> bool:
    for kind in (np.ndarray, list | tuple, dict):
        if isinstance(a, kind) or isinstance(b, kind):
            raise TypeError("the outputs of this benchmark are numbers")
    return bool(a == b)


def old_oracle(structure: Any, x: Any, y: Any, f: Vector, w: NDArray[np.float64]) -> Any:
    w = w.copy()
    w.flags.writeable = False
    y_hat = structure.argmax(x, w, truth=y)
    loss = float(structure.loss(y, y_hat))
    if old_equal(y, y_hat):
        return None
    found = old_vector(structure.joint_feature(x, y_hat), len(w))
    value = loss + old_dot(found, w) - old_dot(f, w)
    if value < -1e-6 * (loss + old_scale(f, w) + old_scale(found, w)) - 1e-12:
        return None
    return *old_difference(f, found, len(w)), loss


def old_brute_force(structure: Any, x: Any, w: NDArray[np.float64], truth: Any) -> Any:
    best, best_value = None, -np.inf
    for y in structure.outputs(x):
        features = structure.joint_feature(x, y)
        dense = isinstance(features, np.ndarray)
        value = float(features @ w) if dense else old_dot(old_vector(features, len(w)), w)
        value += float(structure.loss(truth, y))
        if value > best_value:
            best, best_value = y, value
    return best


def old_grades(structure: Any, x: Any, y: Any, f: Vector, w: NDArray[np.float64]) -> Any:
    w = w.copy()
    best: dict[float, Any] = {}
    for y_hat in list(structure.outputs(x)):
        if old_equal(y, y_hat):
            continue
        loss = float(structure.loss(y, y_hat))
        features = old_vector(structure.joint_feature(x, y_hat), len(w))
        margin = old_dot(f, w) - old_dot(features, w)
        if loss not in best or margin < best[loss][0]:
            best[loss] = margin, *old_difference(f, features, len(w)), loss
    return list(best.values())


# --- structures ---


class Two(Structure):
    """Two outputs whose features are ready; argmax takes no time."""

    def __init__(self, kind: str, n_features: int) -> None:
        draw = np.random.default_rng(0)
        self.n_features = n_features
        self.ready: list[Any] = []
        for _ in range(2):
            indices = draw.integers(0, n_features, N_ENTRIES)
            values = draw.normal(size=N_ENTRIES)
            dense = np.full(n_features, 0.0) if kind == "dense" else None
            if dense is not None:
                dense[indices] = values
            pairs = dict(zip(indices.tolist(), values.tolist(), strict=True))
            self.ready.append({"dense": dense, "dict": pairs, "tuple": (indices, values)}[kind])

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return the features."""
        return self.ready[y]

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss."""
        return float(y != y_hat)

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the oracle's answer."""
        return 1


class Classes(Structure):
    """Classes over 100 inputs; outputs are listed."""

    n_inputs = 100

    def __init__(self, n_outputs: int = N_OUTPUTS) -> None:
        self.n_outputs = n_outputs
        self.n_features = n_outputs * self.n_inputs

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return the features."""
        return np.arange(y * self.n_inputs, (y + 1) * self.n_inputs), x

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss."""
        return float(abs(y - y_hat))

    def outputs(self, x: Any) -> Any:
        """Return all outputs."""
        return range(self.n_outputs)


class FastClasses(Classes):
    """The same with an argmax."""

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the oracle's answer."""
        values = w.reshape(self.n_outputs, self.n_inputs) @ x
        if truth is not None:
            values += np.abs(np.arange(self.n_outputs) - truth)
        return int(np.argmax(values))


# --- measuring ---


def microseconds(*calls: Callable[[], Any], seconds: float) -> list[float]:
    """Return the time of each call, the least of rounds in which all take turns."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        rounds += 1
        for k, call in enumerate(calls):
            n, start = 0, time.perf_counter()
            while n < 1 or time.perf_counter() - start < 1e-3:
                call()
                n += 1
            best[k] = min(best[k], (time.perf_counter() - start) / n)
    return [1e6 * t for t in best]


def read_only(w: NDArray[np.float64]) -> NDArray[np.float64]:
    w.flags.writeable = False
    return w


def row(what: str, before: float, now: float) -> None:
    print(f"| {what} | {before:.0f} µs | {now:.0f} µs | {before / now:.1f} |", flush=True)


def one_call(kind: str, n_features: int, seconds: float) -> None:
    """Measure a call whose argmax takes no time."""
    structure = Two(kind, n_features)
    problem = PythonProblem(structure, [0], [0])
    f = problem.truth_features(0)[:2]
    w = read_only(np.random.default_rng(1).normal(size=n_features) * 0.01)

    def own() -> None:
        y_hat = structure.argmax(0, w, truth=0)
        structure.loss(0, y_hat)
        structure.joint_feature(0, y_hat)

    own_time, before, now = microseconds(
        own,
        lambda: old_oracle(structure, 0, 0, f, w),
        lambda: problem.oracle(0, w),
        seconds=seconds,
    )
    row(f"{kind}, {n_features:,} features", before - own_time, now - own_time)


def listed_outputs(seconds: float) -> None:
    """Measure the oracle of a structure that lists its outputs."""
    x = np.random.default_rng(0).normal(size=Classes.n_inputs)
    structure = Classes()
    problem = PythonProblem(structure, [x], [3])
    f = problem.truth_features(0)[:2]
    w = read_only(np.random.default_rng(1).normal(size=structure.n_features))

    class Old(Classes):
        def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
            return old_brute_force(self, x, w, truth)

    before, now = microseconds(
        lambda: old_oracle(Old(), x, 3, f, w), lambda: problem.oracle(0, w), seconds=seconds
    )
    row(f"`outputs(x)`, {N_OUTPUTS} outputs", before, now)


def slack_rescaling(seconds: float, structure: Classes, what: str) -> None:
    """Measure an oracle call of slack rescaling at a w from training."""
    draw = np.random.default_rng(0)
    n = 32
    X = list(draw.normal(size=(n, Classes.n_inputs)))
    Y = draw.integers(0, structure.n_outputs, n).tolist()
    problem = PythonProblem(structure, X, Y)
    engine = _native.Engine(
        _native.PythonProblem(problem), 0.01, single=False, factored=False, rescale="slack"
    )
    for _ in range(3):
        engine.exact_pass(np.arange(n, dtype=np.uint32), _native.PassOptions())
    w = np.array(engine.weights)

    def old() -> None:
        for i in range(n):
            old_grades(structure, X[i], Y[i], problem.truth_features(i)[:2], w)

    before, now = microseconds(old, engine.hinge, seconds=seconds)
    row(what, before / n, now / n)


class PlainChain(Structure):
    """Labels of the tokens of a sequence, by a Viterbi pass in plain Python."""

    n_labels, n_inputs = 12, 8
    n_features = n_labels * (n_inputs + n_labels)

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return sums of inputs for each label, and counts of pairs of labels."""
        f = np.zeros((self.n_labels, self.n_inputs + self.n_labels))
        np.add.at(f, y, np.hstack([x, np.zeros((len(y), self.n_labels))]))
        np.add.at(f, (y[:-1], self.n_inputs + y[1:]), 1.0)
        return f.ravel()

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the number of wrong labels."""
        return float((y != y_hat).sum())

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best labels."""
        table = w.reshape(self.n_labels, -1)
        scores = x @ table[:, : self.n_inputs].T
        if truth is not None:
            scores += 1.0
            scores[np.arange(len(truth)), truth] -= 1.0
        steps = table[:, self.n_inputs :].T.tolist()
        best, back = scores[0].tolist(), []
        for row in scores[1:].tolist():
            came = [max(range(self.n_labels), key=lambda a, s=s: best[a] + s[a]) for s in steps]
            best = [best[a] + s[a] + r for a, s, r in zip(came, steps, row, strict=True)]
            back.append(came)
        y = [best.index(max(best))]
        for came in reversed(back):
            y.append(came[y[-1]])
        return np.array(y[::-1])


def chains(n: int, length: int) -> tuple[list[Any], list[Any]]:
    """Return sequences whose labels hang together, with noise."""
    draw = np.random.default_rng(0)
    structure = PlainChain()
    w = draw.normal(size=structure.n_features)
    X = [draw.normal(size=(length, structure.n_inputs)) for _ in range(n)]
    noisy = [x + draw.normal(size=x.shape) for x in X]
    return X, [structure.argmax(x, w) for x in noisy]


def processes(n: int, length: int, repeats: int) -> None:
    """Train with one process and with two."""
    X, Y = chains(n, length)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    calls = {}
    for _ in range(repeats):
        for n_jobs, times in seconds.items():
            model = StructuralSVM(PlainChain(), C=0.01, gap=0.01, n_jobs=n_jobs, random_state=0)
            begin = time.perf_counter()
            model.fit(X, Y)
            times.append(time.perf_counter() - begin)
            calls[n_jobs] = model.history_[-1].oracle_calls
    problem = PythonProblem(PlainChain(), X, Y)
    native = _native.PythonProblem(problem)
    engine = _native.Engine(native, 0.01, single=False, factored=False)
    engine.exact_pass(np.arange(n, dtype=np.uint32), _native.PassOptions())
    looks: dict[int, list[float]] = {1: [], 2: []}
    with problem.helpers(2) as pool:
        begin = time.perf_counter()
        if not pool.wait_until_ready():
            raise SystemExit("the processes do not start")
        start = time.perf_counter() - begin
        for _ in range(repeats + 1):
            for n_jobs, times in looks.items():
                native.set_pool(pool if n_jobs == 2 else None)
                begin = time.perf_counter()
                engine.collect_pass(n_jobs)
                times.append(time.perf_counter() - begin)
        native.set_pool(None)
    one_call = min(looks[1]) / n
    print(f"| {n} sequences of {length} tokens, {1e3 * one_call:.1f} ms a call | 1 | 2 | ratio |")
    print("|---|---|---|---|")
    for what, found in (("training to a 1 % gap, s", seconds), ("a pass at one w, s", looks)):
        one, two = (statistics.median(found[k][-repeats:]) for k in (1, 2))
        print(f"| {what} | {one:.2f} | {two:.2f} | {one / two:.2f} |")
    print(f"| oracle calls of a training | {calls[1]} | {calls[2]} | {calls[1] / calls[2]:.2f} |")
    print(f"| start of the processes, s | | {start:.2f} | |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each line")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of features")
    parser.add_argument("--processes", action="store_true", help="train with two processes")
    parser.add_argument("--sequences", type=int, default=400, help="for --processes")
    parser.add_argument("--length", type=int, default=40, help="of each sequence")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.processes:
        processes(arguments.sequences, arguments.length, arguments.repeats)
        return
    print("| an oracle call beyond the user's own methods | before | now | ratio |")
    print("|---|---|---|---|")
    for n_features in arguments.sizes:
        for kind in KINDS:
            one_call(kind, n_features, arguments.seconds)
    print("\n| an oracle call with the user's own methods | before | now | ratio |")
    print("|---|---|---|---|")
    listed_outputs(arguments.seconds)
    few, many = N_OUTPUTS, 16 * N_OUTPUTS
    slack_rescaling(arguments.seconds, Classes(), f"slack rescaling, `outputs(x)`, {few} outputs")
    slack_rescaling(
        arguments.seconds,
        FastClasses(many),
        f"slack rescaling, `outputs(x)` and `argmax`, {many:,} outputs",
    )


if __name__ == "__main__":
    main()
