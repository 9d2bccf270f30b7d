"""The quadratic programs of OneSlack: our own solver against libraries, on programs of a real run.

Claim shown: block SMO with a warm start solves the small programs to the accuracy that the cutting
planes need in less time than general QP libraries, which start anew; and it reaches the accuracy of
the libraries too.

    pip install quadprog osqp piqp clarabel daqp
    taskset -c 0 python benchmarks/qp.py --data ../shared/data

OneSlack trains on CoNLL-2000 chunking, and at some passes its program is recorded: Gram matrix,
linear term, groups, the multipliers it starts from and the gap it asks for. Every solver then gets
the same program. What it returns is made feasible (clipped, and scaled where a group has too much),
and its gap is computed by the formula of `native/simplex_qp.hpp`, for all alike. Times are ratios
to ours in the run; the last line of standard output is one JSON object. A library that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import solve_simplex_qp
from maxmargin.solvers import OneSlack, solve
from maxmargin.solvers.bundle import BundleMachine
from sdm import Data

Vector = NDArray[np.float64]


@dataclass
class Program:
    """max α·b - ½α'Gα with α >= 0 and at most C in each group."""

    gram: Vector
    group: NDArray[np.uint32]
    b: Vector
    C: float
    start: Vector
    tolerance: float

    @property
    def caps(self) -> Vector:
        """One row of ones for each group."""
        return (self.group == np.unique(self.group)[:, None]).astype(float)

    def relative_gap(self, alpha: Vector) -> float:
        """Gap of multipliers after they were made feasible, over the dual value."""
        alpha = np.maximum(alpha, 0)
        mass = np.bincount(self.group, alpha)
        alpha = alpha * np.minimum(1, self.C / np.maximum(mass, 1e-300))[self.group]
        gradient = self.b - self.gram @ alpha
        top = np.zeros(len(mass))
        np.maximum.at(top, self.group, gradient)
        gap = self.C * top.sum() - alpha @ gradient
        return float(gap / (alpha @ self.b - 0.5 * alpha @ self.gram @ alpha))


def record(problem: Any, cuts: int, C: float, passes: list[int]) -> list[Program]:
    """Train, and copy the programs of these passes."""
    programs = []

    class Recorder(BundleMachine):
        count = 0

        def maximize(self, tolerance: float) -> float:
            self.count += 1
            if self.count in passes:
                args = (self.store.gram(), self.group.copy(), self.loss.copy(), self.C)
                programs.append(Program(*args, self.alpha.copy(), tolerance))
            return super().maximize(tolerance)

    class Recorded(OneSlack):
        machine = Recorder

    solve(problem, Recorded(cuts=cuts), C=C, gap=1e-4, max_passes=max(passes))
    return programs


def ours(tolerance: float | None, warm: bool) -> Callable[[Program], Vector]:
    def run(p: Program) -> Vector:
        alpha = p.start.copy() if warm else np.zeros_like(p.b)
        asked = p.tolerance if tolerance is None else tolerance * float(p.start @ p.b)
        solve_simplex_qp(p.gram, p.group, p.b, p.C, alpha, asked)
        return alpha

    return run


def by_quadprog(p: Program) -> Vector:
    import quadprog

    n = len(p.b)
    ridge = 1e-10 * np.trace(p.gram) / n * np.eye(n)  # it needs a definite matrix
    rows = np.vstack([np.eye(n), -p.caps])
    limit = np.r_[np.zeros(n), np.full(len(p.caps), -p.C)]
    return np.asarray(quadprog.solve_qp(p.gram + ridge, p.b, rows.T, limit)[0])


def by_osqp(p: Program) -> Vector:
    import osqp
    from scipy.sparse import csc_matrix, eye, vstack

    n, k = len(p.b), len(p.caps)
    rows = csc_matrix(vstack([eye(n), csc_matrix(p.caps)]))
    low, high = np.zeros(n + k), np.r_[np.full(n, p.C), np.full(k, p.C)]
    solver = osqp.OSQP()
    upper = csc_matrix(np.triu(p.gram))
    accuracy = {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iter": 20000}
    solver.setup(upper, -p.b, rows, low, high, verbose=False, **accuracy)
    solver.warm_start(x=p.start)
    return np.asarray(solver.solve().x)


def by_piqp(p: Program) -> Vector:
    import piqp

    n = len(p.b)
    solver = piqp.DenseSolver()
    least = np.full(len(p.caps), -1e30)
    caps = np.full(len(p.caps), p.C)
    none = np.zeros((0, n)), np.zeros(0)
    solver.setup(p.gram, -p.b, *none, p.caps, least, caps, np.zeros(n), np.full(n, 1e30))
    solver.solve()
    return np.asarray(solver.result.x)


def by_clarabel(p: Program) -> Vector:
    import clarabel
    from scipy.sparse import csc_matrix, eye, vstack

    n, k = len(p.b), len(p.caps)
    rows = csc_matrix(vstack([-eye(n), csc_matrix(p.caps)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    right = np.r_[np.zeros(n), np.full(k, p.C)]
    cones = [clarabel.NonnegativeConeT(n + k)]
    upper = csc_matrix(np.triu(p.gram))
    return np.asarray(clarabel.DefaultSolver(upper, -p.b, rows, right, cones, settings).solve().x)


def by_daqp(p: Program) -> Vector:
    import daqp

    n, k = len(p.b), len(p.caps)
    high, low = np.full(n + k, p.C), np.r_[np.zeros(n), np.full(k, -1e30)]
    return np.asarray(daqp.solve(p.gram.copy(), -p.b, p.caps.copy(), high, low)[0])


SOLVERS: dict[str, Callable[[Program], Vector]] = {
    "ours, as used": ours(None, warm=True),
    "ours, from zero": ours(None, warm=False),
    "ours, to 1e-8": ours(1e-8, warm=True),
    "quadprog": by_quadprog,
    "osqp": by_osqp,
    "piqp": by_piqp,
    "clarabel": by_clarabel,
    "daqp": by_daqp,
}


def timed(run: Callable[[Program], Vector], p: Program) -> tuple[float, float]:
    """Return the best of three times, and the relative gap."""
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        alpha = run(p)
        best = min(best, time.perf_counter() - begin)
        if best > 2:
            break
    return best, p.relative_gap(alpha)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--cuts", default="1,8")
    parser.add_argument("--passes", default="10,40,80")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    problem = Data(args.data, "chunk").problem(args.sentences)
    output: list[dict[str, Any]] = []
    for cuts in map(int, args.cuts.split(",")):
        for p in record(problem, cuts, args.C, [int(x) for x in args.passes.split(",")]):
            print(f"\ncuts {cuts}: {len(p.b)} planes, {np.count_nonzero(p.start)} in use")
            unit = 0.0
            for name, run in SOLVERS.items():
                try:
                    seconds, gap = timed(run, p)
                except ImportError:
                    continue
                except Exception as error:
                    print(f"  {name:16s} failed: {str(error)[:60]}")
                    continue
                unit = unit or seconds
                print(f"  {name:16s} {seconds / unit:10.1f} x    relative gap {gap:9.1e}")
                output.append(
                    {
                        "cuts": cuts,
                        "planes": len(p.b),
                        "solver": name,
                        "time_over_ours": seconds / unit,
                        "milliseconds": 1e3 * seconds,
                        "gap": gap,
                    }
                )
    print(json.dumps(output))


if __name__ == "__main__":
    main()
