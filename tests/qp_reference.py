"""An independent solver of tiny structural SVMs: all constraints at once, to high accuracy.

Nothing here is shared with the solvers under test. The outputs of every example are listed, the
primal is written down as one quadratic program with a constraint for every output,

    min  ½ uᵀ diag(q) u + cᵀu   subject to   M u >= b,        u = (w, ξ),

and a primal-dual interior point method (Mehrotra's predictor-corrector) solves it. From its
multipliers an exactly feasible dual point is made, w is rebuilt from that, and the primal and the
dual value of that pair are recomputed from the problem's own formulas. Their gap is the proof; if
it is not below the tolerance, an AssertionError says so.

Each slack is one entry of `FORMULATIONS`: how the program is built, and how a pair is certified.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from maxmargin.structures.duck import as_structure
from maxmargin.structures.vectors import sparse_vector


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


def solve(structure, X, Y, C=1.0, *, slack="linear", n_features=None, tolerance=1e-8):
    """Return the optimum (w, primal, dual) of ½‖w‖² + C·Σ_i ξ_i over all outputs.

    `structure` must offer outputs(x); `tolerance` is on (primal - dual) / max(1, |primal|).
    """
    planes = list_planes(structure, X, Y, n_features)
    return solve_planes(planes, C, slack=slack, tolerance=tolerance)


def solve_planes(planes, C=1.0, *, slack="linear", tolerance=1e-8):
    """Return the optimum over planes that are listed already."""
    if slack not in FORMULATIONS:
        raise ValueError(f"slack is {slack!r}; expected one of {sorted(FORMULATIONS)}")
    formulate, certify = FORMULATIONS[slack]
    iterates = interior_point(formulate(planes, C))
    solution = best_solution(certify(planes, C, z) for z in iterates)
    gap = relative_gap(solution)
    assert gap >= -1e-12, f"weak duality is violated by {-gap}"
    assert gap <= tolerance, f"the relative gap is {gap}, not {tolerance}"
    return solution


def relative_gap(solution):
    """Return (primal - dual) / max(1, |primal|)."""
    return (solution.primal - solution.dual) / max(1.0, abs(solution.primal))


def best_solution(solutions, tolerance=1e-13, patience=10):
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


def linear_program(planes, C):
    """Margin rescaling, linear slack: w.Δf + ξ_i >= loss for every plane, and ξ_i >= 0."""
    n, (N, d) = planes.n_examples, planes.delta.shape
    M = np.zeros((N + n, d + n))
    M[:N, :d] = planes.delta
    M[np.arange(N), d + planes.example] = 1.0
    M[N:, d:] = np.eye(n)
    return Program(
        q=np.r_[np.ones(d), np.zeros(n)],
        c=np.r_[np.zeros(d), np.full(n, C)],
        M=M,
        b=np.r_[planes.loss, np.zeros(n)],
    )


def certify_linear(planes, C, z):
    """Make z feasible (each block, with the plane of the truth, sums to C); compare the values."""
    n, N = planes.n_examples, len(planes.loss)
    block = np.r_[planes.example, np.arange(n)]
    z = np.maximum(z, 0.0)
    z = z * (C / np.bincount(block, weights=z, minlength=n))[block]
    w = z[:N] @ planes.delta
    dual = z[:N] @ planes.loss - 0.5 * w @ w
    xi = np.zeros(n)
    np.maximum.at(xi, planes.example, planes.loss - planes.delta @ w)
    primal = 0.5 * w @ w + C * xi.sum()
    return Solution(w, float(primal), float(dual))


#: slack -> (formulate(planes, C) -> Program, certify(planes, C, z) -> Solution)
FORMULATIONS = {"linear": (linear_program, certify_linear)}


# --- the interior point method ---


def interior_point(program, max_iterations=200):
    """Yield better and better multipliers z of the constraints, until the digits are used up.

    Mehrotra's predictor-corrector: Newton steps on the conditions

        q∘u + c = Mᵀz,   M u - s = b,   s∘z = σμ,   s, z > 0.
    """
    q, c, M, b = program
    m = len(b)
    start = max(1.0, np.abs(b).max(initial=0.0), np.abs(c).max(initial=0.0))
    u, s, z = np.zeros(len(c)), np.full(m, start), np.full(m, start)
    for _ in range(max_iterations):
        yield z
        r_dual = q * u + c - M.T @ z
        r_primal = M @ u - s - b
        mu = s @ z / m
        with np.errstate(all="ignore"):
            H = np.diag(q) + M.T @ ((z / s)[:, None] * M)
            d = 1.0 / np.sqrt(np.diag(H))
            scaled = d[:, None] * H * d
        if not np.isfinite(scaled).all() or mu == 0.0:
            return
        try:
            factor = (linalg.cho_factor(scaled), d)
        except linalg.LinAlgError:
            return
        # predictor: straight at the solution; corrector: back to the centre, to second order
        du, ds, dz = _newton(factor, (q, M, s, z), (r_dual, r_primal, s * z))
        reach = min(_step(s, ds), _step(z, dz))
        sigma = ((s + reach * ds) @ (z + reach * dz) / m / mu) ** 3
        du, ds, dz = _newton(factor, (q, M, s, z), (r_dual, r_primal, s * z + ds * dz - sigma * mu))
        step = 0.995 * min(_step(s, ds), _step(z, dz))
        u, s, z = u + step * du, s + step * ds, z + step * dz
    yield z


def _newton(factor, point, residuals, refinements=2):
    """Solve the Newton system for (du, ds, dz), refined against the system itself.

    q∘du - Mᵀdz = -r_dual,   M du - ds = -r_primal,   z∘ds + s∘dz = -r_centre.
    """
    cholesky, d = factor  # of d∘H∘d
    q, M, s, z = point
    total = (np.zeros(len(q)), np.zeros(len(s)), np.zeros(len(s)))
    r_dual, r_primal, r_centre = residuals
    for _ in range(1 + refinements):
        right = -r_dual - M.T @ ((r_centre + z * r_primal) / s)
        du = d * linalg.cho_solve(cholesky, d * right)
        ds = M @ du + r_primal
        dz = -(r_centre + z * ds) / s
        total = (total[0] + du, total[1] + ds, total[2] + dz)
        du, ds, dz = total
        r_dual = residuals[0] + q * du - M.T @ dz
        r_primal = residuals[1] + M @ du - ds
        r_centre = residuals[2] + z * ds + s * dz
    return total


def _step(value, change):
    """Return the longest step, at most 1, that keeps value + step * change >= 0."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((-value[falling] / change[falling]).min()))
