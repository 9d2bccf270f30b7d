"""Random problems for the native core, and what must be true of its answers.

A `ChainCase` is one batch of sequences twice: as the arrays that `ChainProblem` takes, and as the
inputs and truths of `ReferenceChain`. The weights of the two differ only in the padding of rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from maxmargin import _native
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.base import Structure
from maxmargin.structures.equality import equal_outputs
from reference_chain import ReferenceChain, Weighted, labels_of

FEATURES = ("none", "ones", "values", "dense32", "dense64", "ones+dense32", "values+dense64")


# --- chains ---


@dataclasses.dataclass
class ChainCase:
    """The same sequences for the native core and for the reference."""

    reference: ReferenceChain
    X: list  # [(T, d)] 8-byte
    Y: list  # labels, or Weighted
    arrays: dict  # arguments of ChainProblem, labels included

    @property
    def n_labels(self):
        return self.reference.n_labels

    @property
    def n_rows(self):
        return self.reference.n_token_features + self.n_labels + 2

    def problem(self, **changes):
        arguments = {**self.arrays, **changes}
        return _native.ChainProblem(**{k: v for k, v in arguments.items() if v is not None})

    def weights(self, w, single):
        """Return weights in the reference's layout as the native ones."""
        Lp = _native.padded_labels(self.n_labels, single)
        native = _native.aligned_array(self.n_rows * Lp, single)
        native.reshape(self.n_rows, Lp)[:, : self.n_labels] = w.reshape(self.n_rows, self.n_labels)
        return native

    def unpadded(self, native):
        """Return native weights in the reference's layout, as 8-byte numbers."""
        rows = np.asarray(native, dtype=float).reshape(self.n_rows, -1)
        assert not rows[:, self.n_labels :].any(), "the padding of a row is not zero"
        return rows[:, : self.n_labels].ravel()

    def per_sequence(self, tokens):
        """Split an array over all tokens into one per sequence."""
        return np.split(tokens, self.arrays["offsets"][1:-1])


def random_case(
    rng,
    *,
    n_labels=3,
    lengths=(3, 1, 4),
    features="ones",
    n_sparse=6,
    n_dense=2,
    per_token=3,
    scale=1.0,
    cost=False,
    weighted=False,
    noise=1.0,
):
    """Return a random batch; few features and many tokens make features repeat across tokens.

    With `noise` below 1 only that share of the labels is random; the others follow from the
    features, so that outputs soon differ from the truth in a few places only.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens, kinds = int(offsets[-1]), features.split("+")
    arrays = {"n_labels": n_labels, "n_sparse": 0, "offsets": offsets}
    blocks = [np.zeros((tokens, 0))]
    if {"ones", "values"} & set(kinds):
        counts = rng.integers(0, min(per_token, n_sparse) + 1, tokens)
        shuffled = rng.random((tokens, n_sparse)).argsort(axis=1)
        owners, indices = np.nonzero(shuffled < counts[:, None])  # ascending within a token
        arrays["n_sparse"] = n_sparse
        arrays["indptr"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        arrays["indices"] = indices.astype(np.uint32)
        values = np.ones(len(arrays["indices"]))
        if "values" in kinds:
            arrays["values"] = (scale * rng.normal(size=len(values))).astype(np.float32)
            values = arrays["values"]
        block = np.zeros((tokens, n_sparse))
        block[owners, indices] = values
        blocks.append(block)
    for name, dtype in (("dense32", np.float32), ("dense64", np.float64)):
        if name in kinds:
            arrays[name] = (scale * rng.normal(size=(tokens, n_dense))).astype(dtype)
            blocks.append(arrays[name].astype(float))
    x = np.hstack(blocks)
    arrays["labels"] = rng.integers(0, n_labels, tokens).astype(np.int32)
    clear = rng.random(tokens) >= noise
    teacher = rng.normal(size=(x.shape[1], n_labels))
    arrays["labels"][clear] = (x[clear] @ teacher).argmax(axis=1)
    if cost:
        arrays["cost"] = rng.random((n_labels, n_labels)) * 2.0
        np.fill_diagonal(arrays["cost"], 0.0)
    X = np.split(x, offsets[1:-1])
    Y = np.split(arrays["labels"], offsets[1:-1])
    if weighted:
        arrays["token_weight"] = (2.0 * rng.random(tokens)).astype(np.float32)
        Y = list(map(Weighted, Y, np.split(arrays["token_weight"], offsets[1:-1])))
    reference = ReferenceChain(n_labels, X[0].shape[1], arrays.get("cost"))
    return ChainCase(reference, X, Y, arrays)


def viterbi(unary, transition):
    """Return (score, labels) of the best path, as any textbook; the lowest label wins a tie."""
    best, back = unary[0], []
    for row in unary[1:]:
        values = best[:, None] + transition
        back.append(values.argmax(axis=0))
        best = values.max(axis=0) + row
    labels = [int(best.argmax())]
    for pointers in reversed(back):
        labels.append(int(pointers[labels[-1]]))
    return float(best.max()), np.array(labels[::-1])


def brute_hinge(case, w):
    """Return the sum over the examples of max over y of loss - w.Δf, without the native core."""
    chain, total = case.reference, 0.0
    for x, y in zip(case.X, case.Y, strict=True):
        truth = w @ chain.joint_feature(x, labels_of(y))
        if chain.n_labels ** len(x) <= 300:
            best = chain.all_values(x, w, y).max()
        else:
            best = viterbi(chain.unary(x, w, y), chain.split(w)[1])[0]
        total += max(0.0, best - truth)
    return total


# --- the state of an engine, read back ---


@dataclasses.dataclass
class StatePart:
    """One part: its planes, the truth first, as dense vectors."""

    example: int
    lo: int
    hi: int
    alpha: np.ndarray  # [m]
    loss: np.ndarray  # [m]
    gram: np.ndarray  # [m][m]
    codes: list  # [m] arrays of code words


def read_parts(state):
    """Cut the flat arrays of a state into parts; all of them must be used up."""
    parts, plane, entry, word = [], 0, 0, 0
    for p, m in enumerate(state["n_planes"].tolist()):
        sizes = state["code_size"][plane : plane + m].tolist()
        ends = word + np.cumsum([0, *sizes])
        parts.append(
            StatePart(
                int(state["example"][p]),
                int(state["lo"][p]),
                int(state["hi"][p]),
                state["alpha"][plane : plane + m],
                state["loss"][plane : plane + m],
                state["gram"][entry : entry + m * m].reshape(m, m).astype(float),
                [state["codes"][a:b] for a, b in itertools.pairwise(ends)],
            )
        )
        plane, entry, word = plane + m, entry + m * m, int(ends[-1])
    assert plane == len(state["alpha"]) == len(state["loss"]) == len(state["code_size"])
    assert entry == len(state["gram"])
    assert word == len(state["codes"])
    return parts


class ChainPlanes:
    """Δf and loss of a chain's planes by their definition, from the codes."""

    def __init__(self, case):
        self.case, self.known = case, {}
        self.bits = max(case.n_labels - 1, 0).bit_length()

    def tokens(self, code):
        return code >> self.bits

    def output(self, i, code):
        y = labels_of(self.case.Y[i]).copy()
        tokens, labels = code >> self.bits, code & ((1 << self.bits) - 1)
        assert (np.diff(tokens.astype(np.int64)) > 0).all()
        assert (labels < self.case.n_labels).all()
        assert (y[tokens] != labels).all()
        y[tokens] = labels
        return y

    def plane(self, i, code):
        key = (i, code.tobytes())
        if key not in self.known:
            chain, x, truth = self.case.reference, self.case.X[i], self.case.Y[i]
            y = self.output(i, code)
            delta = chain.joint_feature(x, labels_of(truth)) - chain.joint_feature(x, y)
            self.known[key] = delta, chain.loss(truth, y)
        return self.known[key]


class PythonPlanes:
    """The planes of a user's structure: [loss: 2 words][index: n words][value: 2 n words]."""

    def __init__(self, n_weights):
        self.n_weights = n_weights

    def plane(self, i, code):
        delta = np.zeros(self.n_weights)
        if len(code) == 0:
            return delta, 0.0
        n, rest = divmod(len(code) - 2, 3)
        assert rest == 0
        delta[code[2 : 2 + n]] = np.ascontiguousarray(code[2 + n :]).view(np.float64)
        return delta, float(np.ascontiguousarray(code[:2]).view(np.float64)[0])


@dataclasses.dataclass
class Rebuilt:
    """What the multipliers of a state say."""

    parts: list
    w: np.ndarray
    expected_loss: float
    dual: float


def check_state(engine, planes, unpadded, *, tolerance):
    """Check everything that must hold of a state at any time; return it rebuilt from scratch.

    `tolerance` is relative: to the norms of the vectors that an entry was made of.
    """
    state = engine.state()
    np.testing.assert_array_equal(state["weights"], engine.weights)
    parts = read_parts(state)
    w, norm, expected, last = np.zeros(len(unpadded(state["weights"]))), 0.0, 0.0, {}
    for part in parts:
        i = part.example
        assert (part.alpha >= 0.0).all()
        assert abs(part.alpha.sum() - 1.0) < 1e-9
        assert last.get(i, -1) < part.lo <= part.hi, "parts overlap or are not ascending"
        last[i] = part.hi
        assert len(part.codes[0]) == 0
        assert all(len(code) for code in part.codes[1:])
        assert len({code.tobytes() for code in part.codes}) == len(part.codes), "a plane twice"
        if isinstance(planes, ChainPlanes):
            for code in part.codes[1:]:
                assert part.lo <= planes.tokens(code)[0]
                assert planes.tokens(code)[-1] < part.hi, "a plane leaves its part"
        deltas, losses = zip(*(planes.plane(i, code) for code in part.codes), strict=True)
        deltas = np.array(deltas)
        np.testing.assert_allclose(part.loss, losses, rtol=1e-6, atol=1e-12)
        size = np.sqrt((deltas**2).sum(axis=1))
        error = np.abs(part.gram - deltas @ deltas.T)
        # Inner products of tokens are 4-byte numbers; where planes nearly cancel, that shows.
        assert (error <= tolerance * np.outer(size, size) + 1e-6).all(), error.max()
        w += engine.C * part.alpha @ deltas
        norm += engine.C * part.alpha @ size
        expected += float(part.alpha @ losses)
    np.testing.assert_allclose(unpadded(state["weights"]), w, rtol=0, atol=tolerance * (1 + norm))
    np.testing.assert_allclose(engine.expected_loss(), expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(engine.penalty(), 0.5 * w @ w, rtol=1e-4, atol=tolerance)
    size = engine.size()
    assert size["parts"] == len(parts)
    assert size["planes"] == sum(len(part.alpha) - 1 for part in parts)
    assert size["bytes"] > 0
    return Rebuilt(parts, w, expected, engine.C * expected - 0.5 * w @ w)


def dual(engine):
    return engine.C * engine.expected_loss() - engine.penalty()


def everyone(n):
    return np.arange(n, dtype=np.uint32)


def true_gap(engine):
    """Return P - D at the present w, from scratch."""
    return engine.penalty() + engine.C * engine.hinge() - dual(engine)


def converge(engine, n, *, gap=1e-9, passes=3000, recombine=True):
    """Run passes of all kinds until the true gap is small; return the certificate."""
    order = everyone(n)
    cached = _native.PassOptions(recombine=recombine)
    for _ in range(passes):
        engine.exact_pass(order, _native.PassOptions())
        for _ in range(10):
            engine.cached_pass(order, cached)
        engine.collect_pass(1)
        if true_gap(engine) <= gap * max(1.0, abs(dual(engine))):
            break
    return engine.certify()


# --- a user's structure ---


class Flat(Structure):
    """Multiclass with a cost for each pair of classes, by brute force."""

    def __init__(self, cost, n_inputs):
        self.cost = cost
        self.n_classes = len(cost)
        self.n_features = self.n_classes * n_inputs

    def joint_feature(self, x, y):
        f = np.zeros((self.n_classes, len(x)))
        f[y] = x
        return f.ravel()

    def loss(self, y, y_hat):
        return float(self.cost[y, y_hat])

    def outputs(self, x):
        return range(self.n_classes)


class OuterProduct(Flat):
    """f(x, y) = x ⊗ λ(y), with the attributes λ of each class written down."""

    def __init__(self, attributes, cost, n_inputs):
        super().__init__(cost, n_inputs)
        self.attributes = attributes
        self.n_features = n_inputs * attributes.shape[1]

    def joint_feature(self, x, y):
        return np.outer(x, self.attributes[y]).ravel()


def flat_problem(rng, *, n=8, n_classes=4, n_inputs=3):
    """Return (structure, X, Y) of a random multiclass problem."""
    cost = rng.random((n_classes, n_classes)) + 0.5
    np.fill_diagonal(cost, 0.0)
    structure = Flat(cost, n_inputs)
    return structure, list(rng.normal(size=(n, n_inputs))), rng.integers(0, n_classes, n).tolist()


def native_python_problem(structure, X, Y):
    return _native.PythonProblem(PythonProblem(structure, X, Y))


def listed_problem(structure, X, Y):
    """Return the problem in which every output of every example is written down."""
    features, loss, counts = [], [], []
    for x, y in zip(X, Y, strict=True):
        outputs = [y, *(z for z in structure.outputs(x) if not equal_outputs(y, z))]
        features += [structure.joint_feature(x, z) for z in outputs]
        loss += [structure.loss(y, z) for z in outputs]
        counts.append(len(outputs))
    rows = np.array(features)
    return _native.ListedProblem(
        n_features=rows.shape[1],
        offsets=np.cumsum([0, *counts]).astype(np.int64),
        indptr=np.cumsum([0, *np.count_nonzero(rows, axis=1)]).astype(np.int64),
        indices=np.nonzero(rows)[1].astype(np.uint32),
        values=rows[rows != 0],
        loss=np.array(loss),
    )


# --- tests that might bring the process down ---


def run_isolated(file, function, *arguments, timeout=600):
    """Call a function of a test file in a process of its own: a crash there is a failure here."""
    here = str(Path(__file__).parent)
    code = (
        "import runpy, sys\n"
        "runpy.run_path(sys.argv[1])[sys.argv[2]](*sys.argv[3:])\n"
        "print('finished')\n"
    )
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, file, function, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    said = f"{function}{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert done.stdout.endswith("finished\n"), said


# --- weights, masks and pair features of a case; the vector code ---


def with_pairs(case, rng, n_pair=3):
    """Give the tokens of a case random pair features; return the native problem."""
    tokens = int(case.arrays["offsets"][-1])
    has = rng.random((tokens, n_pair)) < 0.4
    indptr = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64)
    indices = np.nonzero(has)[1].astype(np.uint32)
    return case.problem(n_pair=n_pair, pair_indptr=indptr, pair_indices=indices)


def random_weights(problem_rows, n_labels, rng, *, single):
    padded = _native.padded_labels(n_labels, single)
    weights = _native.aligned_array(problem_rows * padded, single)
    weights[:] = 0
    weights.reshape(problem_rows, padded)[:, :n_labels] = rng.normal(size=(problem_rows, n_labels))
    return weights


def masks(n_labels, rng):
    transition = (rng.random((n_labels, n_labels)) < 0.7) | np.eye(n_labels, dtype=bool)
    ones = np.ones(n_labels, dtype=np.uint8)
    return {"transition": transition.astype(np.uint8).ravel(), "start": ones, "end": ones}


@contextlib.contextmanager
def using(kernels):
    _native.select_vector_code(kernels)
    try:
        yield
    finally:
        _native.select_vector_code("auto")


def offered_kernels():
    offered = ["baseline"]
    with contextlib.suppress(ValueError), using("avx2"):
        offered.append("avx2")
    return offered


KERNELS = offered_kernels()
