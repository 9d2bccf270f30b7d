"""Do all solvers of one problem agree? CoNLL-2000 chunking, 2,000 sentences, every formulation.

Claim shown: solvers that solve the same problem end within 0.1 % of each other. Each runs until its
own certificate says 0.1 % (or for --limit seconds). Printed are primal, dual and gap, the ratio of
each primal to the lowest, seconds on the clock and of processor time (on a busy machine the second
is what a run takes), and for each formulation whether all dual solvers agree. (Subgradient steps
are not among these: they have no stopping rule of their own and are shown for comparison.)

    python benchmarks/agreement.py --data ../shared/data

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from maxmargin import BCFW, SDM, NSlack, OneSlack, Subgradient
from maxmargin.solvers import Solver, solve
from sdm import Data

#: Formulation -> the solvers that can do it.
PROBLEMS: dict[str, list[Solver]] = {
    "linear, margin": [
        SDM(),
        SDM("paper", tau=0.002, tau_inner=0.001),
        NSlack(epsilon=0.002),
        OneSlack(),
        BCFW("gap", cached_passes=20),
        Subgradient(),
    ],
    "linear, slack": [
        SDM(rescale="slack"),
        NSlack(epsilon=0.002, rescale="slack"),
        OneSlack(rescale="slack"),
    ],
    "linear, none": [
        SDM(rescale="none"),
        NSlack(epsilon=0.002, rescale="none"),
        OneSlack(rescale="none"),
    ],
    "quadratic, margin": [
        SDM(slack="quadratic"),
        NSlack(epsilon=0.002, slack="quadratic"),
    ],
    "quadratic, slack": [
        SDM(slack="quadratic", rescale="slack"),
        NSlack(epsilon=0.002, slack="quadratic", rescale="slack"),
    ],
}


#: Primals that differ by no more than this agree.
AGREE = 0.001


def compare(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Print how far the primals of one formulation lie apart."""
    lowest = min(row["primal"] for row in rows)
    for row in rows:
        row["ratio"] = row["primal"] / lowest
    ratios = [row["ratio"] for row in rows if row["counts"]]
    agree = max(ratios) <= 1 + AGREE
    print("  ratios to the lowest primal: " + ", ".join(f"{row['ratio']:.5f}" for row in rows))
    print(f"  all dual solvers agree to {AGREE:.1%}: {'yes' if agree else 'no'}", flush=True)
    return {"rows": rows, "apart": max(ratios) - 1, "agree": agree}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--limit", type=float, default=60, help="seconds of each run")
    parser.add_argument("--problems", default=";".join(PROBLEMS), help="between semicolons")
    args = parser.parse_args()
    problem = Data(args.data, "chunk").problem(args.sentences)
    output: dict[str, Any] = {}
    for name in args.problems.split(";"):
        print(f"{name}, C = {args.C:g}, {args.sentences} sentences", flush=True)
        rows = []
        for solver in PROBLEMS[name]:
            begin, used = time.perf_counter(), time.process_time()
            found = solve(
                problem,
                solver,
                C=args.C,
                gap=0.001,
                max_passes=100_000,
                time_limit=args.limit,
                random_state=0,
                warn=False,
            )
            primal, dual = found.certificate.primal, found.certificate.dual
            seconds, cpu = time.perf_counter() - begin, time.process_time() - used
            rows.append(
                {
                    "solver": str(solver),
                    "primal": primal,
                    "dual": dual,
                    "counts": not isinstance(solver, Subgradient),
                    "seconds": round(seconds, 1),
                    "cpu": round(cpu, 1),
                }
            )
            print(
                f"  {solver.name:12s} {getattr(solver, 'schedule', ''):9s} primal {primal:10.4f}  "
                f"dual {dual:10.4f}  gap {100 * found.certificate.gap:6.3f} %  "
                f"{found.n_passes:6d} passes {seconds:7.1f} s, {cpu:6.1f} s of processor time",
                flush=True,
            )
        output[name] = compare(rows)
    print(json.dumps(output))


if __name__ == "__main__":
    main()
