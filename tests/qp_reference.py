"""An independent solver of tiny structural SVMs: all constraints at once, to high accuracy.

Nothing here is shared with the solvers under test. The outputs of every example are listed, the
primal

    min  Ω(w) + Σ_i C_i φ(ξ_i)   subject to   w.Δh + ξ_i >= h   for every output of every example

(φ(ξ) = ξ with ξ >= 0, or ½ξ², or no ξ at all; `kit.formulated` says what Δh and h are; Ω is the
penalty of a link, see `Penalty`) is written down as one quadratic program with a constraint for
every output,

    min  ½ uᵀ diag(q) u + cᵀu   subject to   M u >= b,

and a primal-dual interior point method (Mehrotra's predictor-corrector) solves it. From its
multipliers an exactly feasible dual point is made, and the primal and the dual value are recomputed
from the problem's own formulas in extended precision. Their gap is the proof; if it is not below
the tolerance, an AssertionError says so.

The methods are the same whatever the scale of features and C: variables are scaled so that no
column of M exceeds one, the objective so that no cost does, and where 8-byte iterates do not reach
the tolerance, extended ones take their place (the factors of the Newton systems stay 8-byte; their
solutions are refined against the systems themselves).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from maxmargin.structures.duck import as_structure
from maxmargin.structures.vectors import sparse_vector

SLACKS = ("linear", "quadratic", "hard")


class Solution(NamedTuple):
    """The optimum: weights, and the primal and dual values that prove it."""

    w: np.ndarray
    primal: float
    dual: float


class Planes(NamedTuple):
    """Every output of every example but those equal to the truth."""

    n_examples: int
    example: np.ndarray  # [N] example of each plane
    delta: np.ndarray  # [N][d] Δf = f(x_i, y_i) - f(x_i, y)
    loss: np.ndarray  # [N]


class Program(NamedTuple):
    """min ½ uᵀ diag(q) u + cᵀu subject to M u >= b."""

    q: np.ndarray
    c: np.ndarray
    M: np.ndarray
    b: np.ndarray


class Penalty(NamedTuple):
    """Ω of a link, its conjugate and the weights that belong to u, each entry a vector over w.

    Ω(w) = Σ_k d_k² / (2 s_k) + max(t⁻_k d_k, t⁺_k d_k) with d = w - m, least <= w <= most; a weight
    with s_k = 0 stays at m_k.
    """

    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, link, d):
        """Return that of a link (None: L2) over d weights."""
        defaults = {"lower": 0.0, "upper": 0.0, "scale": 1.0, "offset": 0.0}
        defaults |= {"least": -math.inf, "most": math.inf}
        fields = (getattr(link, name, value) for name, value in defaults.items())
        return cls(*(np.broadcast_to(np.asarray(field, float), d) for field in fields))

    def value(self, w):
        """Ω(w)."""
        d, free = w - self.offset, self.scale > 0
        if (d[~free] != 0).any() or (w < self.least).any() or (w > self.most).any():
            return math.inf
        square = (d[free] ** 2 / (2 * self.scale[free])).sum()
        return square + np.maximum(self.lower * d, self.upper * d).sum()

    def weights(self, u):
        """Return the w at which w.u - Ω(w) is largest."""
        beyond = np.maximum(u - self.upper, 0) + np.minimum(u - self.lower, 0)
        return np.clip(self.offset + self.scale * beyond, self.least, self.most)

    def conjugate(self, u):
        """Ω*(u) = max over w of w.u - Ω(w)."""
        w = self.weights(u)
        return w @ u - self.value(w)


def solve(structure, X, Y, C=1.0, *, n_features=None, **options):
    """Return the optimum (w, primal, dual) of ½‖w‖² + C·Σ_i ξ_i over all outputs.

    `structure` must offer outputs(x); the other options are those of `solve_planes`.
    """
    return solve_planes(list_planes(structure, X, Y, n_features), C, **options)


def solve_planes(planes, C=1.0, *, slack="linear", link=None, tolerance=1e-8):
    """Return the optimum over planes that are listed already.

    `kit.formulated` makes the planes of other formulations. C is a number, or one for each
    example; `link` is that of a regulariser, None for L2; `tolerance` is on the `relative_gap`.
    """
    if slack not in SLACKS:
        raise ValueError(f"slack is {slack!r}; expected one of {sorted(SLACKS)}")
    C = np.broadcast_to(np.asarray(C, float), planes.n_examples)
    penalty = Penalty.of(link, planes.delta.shape[1])
    model = Model(planes, C, slack, penalty)
    solution = None
    for precise in (False, True):
        found = best_solution(model.certify(u, z) for u, z in iterates(model.program(), precise))
        if solution is None or relative_gap(found) < relative_gap(solution):
            solution = found
        if relative_gap(solution) <= tolerance:
            break
    gap = relative_gap(solution)
    assert gap >= -1e-12, f"weak duality is violated by {-gap}"
    assert gap <= tolerance, f"the relative gap is {gap}, not {tolerance}"
    return solution


def relative_gap(solution, least=1e-6):
    """Return (primal - dual) / |primal|; optima below `least` count as that."""
    return (solution.primal - solution.dual) / max(abs(solution.primal), least)


def best_solution(solutions, tolerance=1e-13, patience=20):
    """Return the solution with the smallest gap; stop when it is tiny or shrinks no more."""
    best, waited = None, 0
    for solution in solutions:
        if best is None or relative_gap(solution) < relative_gap(best):
            best, waited = solution, 0
        else:
            waited += 1
        if relative_gap(best) < tolerance or waited == patience:
            break
    return best


def list_planes(structure, X, Y, n_features=None):
    """List all planes of all examples."""
    structure = as_structure(structure)
    truths = [sparse_vector(structure.joint_feature(x, y)) for x, y in zip(X, Y, strict=True)]
    sizes = [n_features, structure.n_features, *(f.size for f in truths)]
    d = next(size for size in sizes if size is not None)

    def dense(features):
        vector = sparse_vector(features, d)
        result = np.zeros(d)
        result[vector.indices] = vector.values
        return result

    example, delta, loss = [], [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        f = dense(structure.joint_feature(x, y))
        for y_hat in structure.outputs(x):
            if structure.equal(y, y_hat):
                continue
            example.append(i)
            delta.append(f - dense(structure.joint_feature(x, y_hat)))
            loss.append(float(structure.loss(y, y_hat)))
    return Planes(
        len(truths),
        np.array(example, dtype=np.int64),
        np.array(delta, dtype=float).reshape(len(example), d),
        np.array(loss, dtype=float),
    )


# --- formulations ---


class Model:
    """One formulation over listed planes: as a quadratic program, and with certificates."""

    def __init__(self, planes, C, slack, penalty):
        self.planes, self.C, self.slack, self.penalty = planes, C, slack, penalty
        exact = np.longdouble
        self.delta, self.loss = planes.delta.astype(exact), planes.loss.astype(exact)
        # w = offset + S v; with thresholds other than zero v has a part for each sign
        free = np.flatnonzero(penalty.scale > 0)
        self.signed = bool(penalty.lower[free].any() or penalty.upper[free].any())
        S = np.eye(len(penalty.scale))[:, free]
        self.S = np.hstack([S, -S]) if self.signed else S
        self.free = np.r_[free, free] if self.signed else free
        # v and the slacks are measured in units of their own, the objective in those of C
        size = np.abs(planes.delta @ self.S).max(axis=0, initial=0.0)
        self.unit = 1.0 / np.where(size > 0, size, 1.0)
        self.cost = 1.0 if slack == "hard" else max(1.0, float(C.max(initial=0.0)))

    def program(self):
        """Return the quadratic program over (v, ξ)."""
        penalty, planes, S = self.penalty, self.planes, self.S * self.unit
        N, k = len(planes.loss), S.shape[1]
        n = 0 if self.slack == "hard" else planes.n_examples
        C = self.C[:n]
        M = np.zeros((N, k + n))
        M[:, :k] = planes.delta @ S
        if n:
            M[np.arange(N), k + planes.example] = 1.0
        rows, right = [M], [planes.loss - planes.delta @ penalty.offset]

        def require(block, bound, where):
            """Add the rows block.v >= bound."""
            rows.append(np.hstack([block, np.zeros((len(block), n))])[where])
            right.append(bound[where])

        if self.signed:
            require(np.eye(k), np.zeros(k), np.ones(k, bool))
        low, high = penalty.least - penalty.offset, penalty.most - penalty.offset
        movable = penalty.scale > 0
        require(S, low, movable & np.isfinite(low))
        require(-S, -high, movable & np.isfinite(high))
        if self.slack == "linear":
            rows.append(np.eye(k + n)[k:])
            right.append(np.zeros(n))
        thresholds = penalty.upper[self.free]
        if self.signed:
            half = k // 2
            thresholds = np.r_[thresholds[:half], -penalty.lower[self.free[half:]]]
        curved = C if self.slack == "quadratic" else 0.0 * C
        linear = C if self.slack == "linear" else 0.0 * C
        return Program(
            q=np.r_[self.unit**2 / penalty.scale[self.free], curved] / self.cost,
            c=np.r_[self.unit * thresholds, linear] / self.cost,
            M=np.vstack(rows),
            b=np.concatenate(right),
        )

    def certify(self, u, z):
        """Make z feasible; compare its value with the primal of the better of two w.

        These are the w that belongs to the multipliers, and that of the program's own variables.
        """
        n, example, C = self.planes.n_examples, self.planes.example, self.C
        z = np.maximum(z[: len(self.loss)], 0.0).astype(np.longdouble) * self.cost
        mass = np.bincount(example, z.astype(float), n)
        if self.slack == "linear":  # each block, with the plane of the truth, sums to C
            z = z * np.minimum(1.0, (1 - 1e-16) * C / np.maximum(mass, 1e-300))[example]
        pull = z @ self.delta
        dual = z @ self.loss - self.penalty.conjugate(pull)
        if self.slack == "quadratic":
            used = np.zeros(n, np.longdouble)
            np.add.at(used, example, z)
            dual -= (used[C > 0] ** 2 / (2 * C[C > 0])).sum()
        own = self.S @ (self.unit * u[: len(self.unit)]) + self.penalty.offset
        own = np.clip(own, self.penalty.least, self.penalty.most)
        values = [(self.primal(w), w) for w in map(self.allowed, (self.penalty.weights(pull), own))]
        primal, w = min(values, key=lambda pair: pair[0])
        return Solution(w.astype(float), float(min(primal, 1e300)), float(dual))

    def allowed(self, w):
        """Return w, or for hard margins the multiple of it that has all of them."""
        if self.slack != "hard":
            return w
        margin = self.delta @ w
        return w * max(1.0, (self.loss / margin).max()) if margin.min(initial=1) > 0 else w

    def primal(self, w):
        """Return the objective at w."""
        xi = np.zeros(self.planes.n_examples, np.longdouble)
        np.maximum.at(xi, self.planes.example, self.loss - self.delta @ w)
        if self.slack == "hard":
            return self.penalty.value(w) if xi.max(initial=0) <= 1e-12 else math.inf
        return self.penalty.value(w) + self.C @ (xi if self.slack == "linear" else 0.5 * xi**2)


# --- the interior point method ---


def iterates(program, precise=False, max_iterations=200):
    """Yield better and better (u, z): variables and multipliers, until the digits are used up.

    Mehrotra's predictor-corrector: Newton steps on the conditions

        q∘u + c = Mᵀz,   M u - s = b,   s∘z = σμ,   s, z > 0.

    `precise`: all numbers but the factors of the Newton systems are extended ones, and the systems
    are not reduced to u, which costs digits where s and z differ by many orders.
    """
    kind, system = (np.longdouble, _augmented) if precise else (np.float64, _reduced)
    q, c, M, b = (array.astype(kind) for array in program)
    m = len(b)
    u = np.zeros(len(c), kind)
    s = np.full(m, max(1.0, np.abs(b).max(initial=0.0)), kind)
    z = np.full(m, max(1.0, np.abs(c).max(initial=0.0)), kind)
    least, stalled = np.inf, 0
    for _ in range(max_iterations):
        yield u, z
        residuals = q * u + c - M.T @ z, M @ u - s - b
        mu = s @ z / m
        # The corrector has no safeguard of its own and can go round in a cycle; plain steps along
        # the central path lead out of it.
        stalled = 0 if mu < 0.9 * least else stalled + 1
        least = min(least, mu)
        try:
            with np.errstate(all="ignore"):
                solver = system(program, s, z)
        except (linalg.LinAlgError, ValueError):  # singular, or no longer finite
            return
        # predictor: straight at the solution; corrector: back to the centre, to second order
        point = (q, M, s, z)
        du, ds, dz = _newton(solver, point, (*residuals, s * z))
        reach = min(_step(s, ds), _step(z, dz))
        sigma = ((s + reach * ds) @ (z + reach * dz) / m / mu) ** 3
        du, ds, dz = _newton(solver, point, (*residuals, s * z + ds * dz - sigma * mu))
        step = 0.995 * min(_step(s, ds), _step(z, dz))
        if step < 0.1 or stalled > 3:  # too near the walls: back to the centre first
            du, ds, dz = _newton(solver, point, (*residuals, s * z - 0.5 * mu))
            step = 0.995 * min(_step(s, ds), _step(z, dz))
        u, s, z = u + step * du, s + step * ds, z + step * dz
    yield u, z


def _reduced(program, s, z):
    """Return a function that solves a Newton system for (du, dz), reduced to u."""
    q, _, M, _ = program
    H = np.diag(q) + M.T @ ((z / s).astype(float)[:, None] * M)
    d = 1.0 / np.sqrt(np.diag(H))
    factor = linalg.cho_factor(d[:, None] * H * d)

    def solver(r_dual, r_primal, r_centre):
        right = -r_dual - M.T @ ((r_centre + z * r_primal) / s)
        du = d * linalg.cho_solve(factor, d * right)
        return du, -(r_centre + z * (M @ du + r_primal)) / s

    return solver


def _augmented(program, s, z):
    """Return a function that solves a Newton system for (du, dz), both at once:

    [diag(q)  Mᵀ; M  -diag(s/z)] (du, -dz) = (-r_dual, -r_primal - r_centre/z).
    """
    q, _, M, _ = program
    k, ratio = len(q), (s / z).astype(float)
    d = np.r_[np.ones(k), 1.0 / np.sqrt(np.maximum(1.0, ratio))]
    K = np.block([[np.diag(q), M.T], [M, -np.diag(ratio)]])
    factor = linalg.lu_factor(d[:, None] * K * d)

    def solver(r_dual, r_primal, r_centre):
        right = np.concatenate([-r_dual, -r_primal - r_centre / z])
        both = d * linalg.lu_solve(factor, (d * right).astype(float))
        return both[:k], -both[k:]

    return solver


def _newton(solver, point, residuals, refinements=3):
    """Solve the Newton system for (du, ds, dz), refined against the system itself.

    q∘du - Mᵀdz = -r_dual,   M du - ds = -r_primal,   z∘ds + s∘dz = -r_centre.
    """
    q, M, s, z = point
    du, dz = np.zeros_like(q), np.zeros_like(s)
    left = residuals
    for _ in range(1 + refinements):
        more = solver(*left)
        du, dz = du + more[0], dz + more[1]
        ds = M @ du + residuals[1]
        zero = np.zeros_like(s)
        left = residuals[0] + q * du - M.T @ dz, zero, residuals[2] + z * ds + s * dz
    return du, ds, dz


def _step(value, change):
    """Return the longest step, at most 1, that keeps value + step * change >= 0."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((-value[falling] / change[falling]).min()))
