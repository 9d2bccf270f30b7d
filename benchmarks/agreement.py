"""Do all solvers of one problem agree? CoNLL-2000 chunking, 2,000 sentences, every formulation.

Claim shown: solvers that solve the same problem end within 0.1 % of each other. Each runs until its
own certificate says 0.1 % (or for --limit seconds); printed are primal, dual, and how far the
primals lie apart.

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
        BCFW("gap", average=False, cached_passes=20),
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
            begin = time.perf_counter()
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
            rows.append({"solver": str(solver), "primal": primal, "dual": dual})
            print(
                f"  {solver.name:12s} {getattr(solver, 'schedule', ''):9s} primal {primal:10.4f}  "
                f"dual {dual:10.4f}  gap {100 * found.certificate.gap:6.3f} %  "
                f"{found.n_passes:6d} passes {time.perf_counter() - begin:7.1f} s",
                flush=True,
            )
        primals = [row["primal"] for row in rows]
        apart = max(primals) / min(primals) - 1
        print(f"  primals at most {100 * apart:.3f} % apart", flush=True)
        output[name] = {"rows": rows, "apart": apart}
    print(json.dumps(output))


if __name__ == "__main__":
    main()
