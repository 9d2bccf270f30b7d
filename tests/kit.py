"""What tests of solvers, structures and estimators share.

`Instance` is a small problem of which every output is written down, so that hinges, primals and
optima can be computed without the library. `native_problems` makes the problems themselves.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
import os
import signal
import threading
import time
import warnings

import numpy as np

import qp_reference
from maxmargin import _native
from maxmargin.errors import ConvergenceWarning
from maxmargin.solvers import SDM, solve
from maxmargin.solvers.steps import PassTotals, Step
from maxmargin.structures.base import Structure
from native_problems import Flat, native_python_problem
from qp_reference import Planes, list_planes

# --- problems ---


@dataclasses.dataclass(eq=False)
class Instance:
    """A problem, and every output of every example written down.

    Weights are in the layout of the reference; `unpadded` makes them of native ones, and `padded`
    native ones of them.
    """

    problem: _native.Problem
    planes: Planes
    share: np.ndarray = None  # the weights of the examples; None: ones
    unpadded: object = np.array
    padded: object = staticmethod(lambda w, single: w)

    def __post_init__(self):
        if self.share is None:
            self.share = np.ones(self.n)

    @classmethod
    def of_case(cls, case, share=None):
        """Make one of a `ChainCase`, with these weights of the examples."""
        problem = case.problem() if share is None else case.problem(example_weight=share)
        planes = list_planes(case.reference, case.X, case.Y)
        return cls(problem, planes, share, case.unpadded, case.weights)

    @classmethod
    def of_structure(cls, structure, X, Y):
        """Make one of a structure in Python."""
        return cls(native_python_problem(structure, X, Y), list_planes(structure, X, Y))

    @property
    def n(self):
        """Number of examples."""
        return self.planes.n_examples

    @property
    def d(self):
        """Number of features."""
        return self.planes.delta.shape[1]

    def oracle(self, i, w):
        """Return (F, Δf, loss) of the most violated output, or zeros for the truth."""
        own = np.flatnonzero(self.planes.example == i)
        F = self.planes.loss[own] - self.planes.delta[own] @ w
        if F.max(initial=0.0) <= 0:
            return 0.0, np.zeros(self.d), 0.0
        best = own[F.argmax()]
        return float(F.max()), self.planes.delta[best], float(self.planes.loss[best])

    def slacks(self, w):
        """Return the largest violation of each example."""
        return slacks(self.planes, w)

    def hinge(self, w, which=slice(None)):
        """Return the sum of the slacks, with the weights of the examples."""
        return float(self.share[which] @ self.slacks(w)[which])

    def primal(self, w, C):
        """Return ½‖w‖² + C Σ_i s_i ξ_i."""
        return 0.5 * w @ w + C * self.hinge(w)

    @functools.cache  # noqa: B019
    def optimum(self, C=1.0):
        """Return the least primal, by an independent solver; weights of examples must be ones."""
        assert (self.share == 1).all()
        return qp_reference.solve_planes(self.planes, C).primal


def slacks(planes, w):
    """Return the largest violation of each example."""
    xi = np.zeros(planes.n_examples)
    np.maximum.at(xi, planes.example, planes.loss - planes.delta @ w)
    return xi


def soft(u, rho1, rho2):
    """Return u moved towards zero by rho1 and divided by rho2: the link of the elastic net."""
    return np.sign(u) * np.maximum(np.abs(u) - rho1, 0) / rho2


def formulated(planes, slack, rescale):
    """The table at the top of native/formulation.hpp: ξ_i >= h - w.Δh for every output."""
    g = np.sqrt(planes.loss) if slack == "quadratic" else planes.loss
    h = np.ones_like(g) if rescale == "none" else g
    scale = g if rescale == "slack" else np.ones_like(g)
    return planes._replace(delta=planes.delta * scale[:, None], loss=h)


# --- structures in Python ---


class Classes(Structure):
    """Three classes, or as many as are asked for, by brute force."""

    n_classes = 3

    def __init__(self, n_classes=3):
        self.n_classes = n_classes

    def joint_feature(self, x, y):
        return np.kron(np.eye(self.n_classes)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return range(self.n_classes)


class Lazy(Flat):
    """A `Flat` whose argmax takes some time."""

    def __init__(self, cost, n_inputs, seconds):
        super().__init__(cost, n_inputs)
        self.seconds = seconds

    def argmax(self, x, w, truth=None):
        time.sleep(self.seconds)
        return super().argmax(x, w, truth=truth)


class Pressed(Flat):
    """A `Flat` whose argmax sends Ctrl-C to the process, at the call with this number."""

    def __init__(self, cost, n_inputs, at):
        super().__init__(cost, n_inputs)
        self.at, self.calls = at, itertools.count(1)

    def argmax(self, x, w, truth=None):
        if next(self.calls) == self.at:
            os.kill(os.getpid(), signal.SIGINT)
        return super().argmax(x, w, truth=truth)


def pressing(seconds, call):
    """Call something, and press Ctrl-C after some seconds: within the call, however slow it is."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    return call()


# --- runs ---


class Idle(SDM):
    """A solver whose time is always up before it does anything."""

    def step(self, engine, state, context):
        return Step("exact", PassTotals(float("nan"), 0.0, 0, interrupted=True))


def quietly(problem, solver, **options):
    """Train; it is no warning if the run ends before the gap is reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, solver, **options)


class Watcher:
    """Look at the engine after every pass; `seen` is what `look` returned."""

    def __init__(self, look):
        self.look, self.seen = look, []

    def begin_pass(self, engine):
        pass

    def end_pass(self, record, engine):
        self.seen.append(self.look(record, engine))


def without_seconds(history):
    """Return the records as text (in which NaN is NaN), without the times."""
    return [repr({**row, "seconds": 0.0}) for row in history.to_dicts()]


def assert_same_run(first, second):
    """Two runs are the same, bit for bit, but for the times."""
    assert first.weights.tobytes() == second.weights.tobytes()
    one, two = first.engine.state(), second.engine.state()
    assert one.keys() == two.keys()
    for name in one:
        assert np.asarray(one[name]).tobytes() == np.asarray(two[name]).tobytes(), name
    assert without_seconds(first.history) == without_seconds(second.history)
    assert first.certificate == second.certificate
    assert (first.converged, first.stop_reason) == (second.converged, second.stop_reason)


# --- objects that users might hand over ---


class BoomError(Exception):
    """What a user's object raises."""


class NoRepr:
    """An object that cannot be shown."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        raise self.error


class Standard:
    """Standard input or output, as far as bytes are read from it or written to it."""

    def __init__(self, data=b""):
        self.buffer = io.BytesIO(data)
