"""The quadratic programs of InteriorPoint: our own solver against libraries, on unscaled data.

Claim shown: over the planes that training keeps, the native interior point reaches the optimum of
measurements as they come, whatever C, in less time than general QP libraries; some of these fail.

    pip install piqp clarabel daqp
    taskset -c 0 python benchmarks/interior.py --data iris,wine,breast_cancer --C 0.1,1,10,1e4

InteriorPoint trains to a gap of 1e-6, and the planes that it kept are given to every solver:
min ½‖w‖² + C Σ ξ over (w, ξ), a row for each plane. All start from nothing. What is compared is the
primal of the w that is returned, by one formula for all, against the dual bound of the training.
Times are ratios to ours in the run; the last line of standard output is one JSON object. A library
that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, eye, hstack, identity, vstack
from sklearn import datasets

from maxmargin import _native
from maxmargin.solvers import InteriorPoint, solve

Vector = NDArray[np.float64]
Solve = Callable[["Program"], Vector]


class Program(NamedTuple):
    """min ½‖w‖² + C Σ ξ  s.t.  A w + ξ_i >= l, ξ >= 0."""

    A: Any  # sparse
    loss: Vector
    example: NDArray[np.int64]
    n: int
    C: float
    engine: Any

    def primal(self, w: Vector) -> float:
        """Return the objective of w, with the best slacks."""
        xi = np.zeros(self.n)
        np.maximum.at(xi, self.example, self.loss - self.A @ w)
        return float(0.5 * w @ w + self.C * xi.sum())

    def rows(self) -> tuple[Any, Vector]:
        """Return the constraints, M (w, ξ) >= b."""
        N, d = self.A.shape
        slack = csr_matrix((np.ones(N), (np.arange(N), self.example)), shape=(N, self.n))
        bottom = hstack([csr_matrix((self.n, d)), identity(self.n)])
        return csc_matrix(vstack([hstack([self.A, slack]), bottom])), np.r_[
            self.loss, np.zeros(self.n)
        ]

    def objective(self, ridge: float = 0.0) -> tuple[Vector, Vector]:
        """Return the diagonal of the quadratic term, and the linear one."""
        d = self.A.shape[1]
        return np.r_[np.ones(d), np.full(self.n, ridge)], np.r_[
            np.zeros(d), np.full(self.n, self.C)
        ]


def train(name: str, C: float) -> tuple[Program, Any]:
    """Train, and return the program over the planes that were kept."""
    data = getattr(datasets, f"load_{name}")()
    rows = np.ascontiguousarray(np.hstack([data.data, np.ones((len(data.data), 1))]))
    labels = data.target.astype(np.int32)
    problem = _native.MulticlassProblem(
        n_classes=int(labels.max()) + 1, n_sparse=0, labels=labels, dense64=rows
    )
    found = solve(
        problem, InteriorPoint(warm_passes=0, keep_rounds=0), C=C, gap=1e-6, max_passes=100
    )
    example, loss, _, indptr, indices, values = found.engine.planes()
    columns, places = np.unique(indices, return_inverse=True)
    A = csr_matrix((values, places, indptr), shape=(len(loss), len(columns)))
    return Program(A, loss, example, len(labels), C, (found.engine, columns)), found


def ours(p: Program) -> Vector:
    engine, columns = p.engine
    state = engine.state()
    sizes = state["n_planes"].astype(np.int64)
    state["alpha"][:] = 0
    state["alpha"][np.cumsum(sizes) - sizes] = 1
    state["weights"][:] = 0
    state["running"][:] = 0
    state.pop("own", None)
    engine.restore(state)
    begin = time.perf_counter()
    engine.interior_pass(1e-7 * p.C)
    ours.seconds = time.perf_counter() - begin  # type: ignore[attr-defined]
    return np.array(engine.weights[columns])


def by_piqp(p: Program) -> Vector:
    import piqp

    q, c = p.objective()
    M, b = p.rows()
    solver = piqp.SparseSolver()
    none = csc_matrix((0, len(q))), np.zeros(0)
    solver.setup(csc_matrix(np.diag(q)), c, *none, M, b, np.full(len(b), 1e30))
    solver.solve()
    return np.asarray(solver.result.x)[: p.A.shape[1]]


def by_clarabel(p: Program) -> Vector:
    import clarabel

    q, c = p.objective()
    M, b = p.rows()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(b))]
    quadratic = csc_matrix(eye(len(q)).multiply(q))
    found = clarabel.DefaultSolver(quadratic, c, csc_matrix(-M), -b, cones, settings).solve()
    return np.asarray(found.x)[: p.A.shape[1]]


def by_daqp(p: Program) -> Vector:
    import daqp

    q, c = p.objective(1e-9)  # it needs a definite matrix
    M, b = p.rows()
    found = daqp.solve(np.diag(q), c, M.toarray(), np.full(len(b), 1e30), b)
    return np.asarray(found[0])[: p.A.shape[1]]


SOLVERS: dict[str, Solve] = {
    "ours": ours,
    "piqp": by_piqp,
    "clarabel": by_clarabel,
    "daqp": by_daqp,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="iris,wine,breast_cancer")
    parser.add_argument("--C", default="0.1,1,10,1e4")
    parser.add_argument("--most", type=int, default=1200, help="planes that daqp is given at most")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    output: list[dict[str, Any]] = []
    for name in args.data.split(","):
        for C in map(float, args.C.split(",")):
            p, found = train(name, C)
            dual = found.certificate.dual
            kinds = list(found.history.column("kind"))
            print(
                f"\n{name}, C = {C:g}: {p.A.shape[0]} planes, {p.A.shape[1]} weights; "
                f"{kinds.count('interior')} interior passes, gap {found.certificate.gap:.1e}"
            )
            unit = 0.0
            for solver, run in SOLVERS.items():
                if solver == "daqp" and p.A.shape[0] > args.most:
                    continue
                begin = time.perf_counter()
                try:
                    w = run(p)
                except ImportError:
                    continue
                except Exception as error:
                    print(f"  {solver:10s} failed: {str(error)[:60]}")
                    continue
                seconds = time.perf_counter() - begin
                seconds = ours.seconds if solver == "ours" else seconds  # type: ignore[attr-defined]
                unit = unit or seconds
                error = p.primal(w) / dual - 1 if np.isfinite(w).all() else np.inf
                print(
                    f"  {solver:10s} {seconds / unit:8.1f} x    primal above the bound {error:9.1e}"
                )
                output.append(
                    {
                        "data": name,
                        "C": C,
                        "planes": p.A.shape[0],
                        "solver": solver,
                        "time_over_ours": seconds / unit,
                        "milliseconds": 1e3 * seconds,
                        "error": float(error),
                    }
                )
    print(json.dumps(output))


if __name__ == "__main__":
    main()
