"""OneSlack on CoNLL-2000 chunking: what each of its parts brings, with SDM beside it.

Claims shown: how much processor time a 1-slack cutting-plane solver needs to a gap of 7 %, 1 % and
0.7 % as the paper has it, with a cache of outputs, a proximal term, a line search, and several cuts
a sweep; and how much SDM needs in the same process.

    taskset -c 0 python benchmarks/one_slack.py --data ../shared/data

Time is processor time of training (the machine may be shared); ratios are to SDM. The last line of
standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from maxmargin.solvers import SDM, OneSlack, PassRecord, Solver, solve
from sdm import Data

GAPS = (0.07, 0.01, 0.007)
SETTINGS: dict[str, Solver] = {
    "SDM": SDM(),
    "search, 1 cut": OneSlack(cuts=1),
    "search, 4 cuts": OneSlack(cuts=4),
    "search, 8 cuts": OneSlack(cuts=8),
    "search, 16 cuts": OneSlack(cuts=16),
    "search, cache": OneSlack(cache=5),
    "plain": OneSlack(cuts=1, stabilize="none"),
    "plain, cache": OneSlack(cuts=1, stabilize="none", cache=5),
    "proximal, 1 cut": OneSlack(cuts=1, stabilize="proximal"),
    "proximal, 8 cuts": OneSlack(cuts=8, stabilize="proximal"),
}


def run(problem: Any, solver: Solver, C: float, limit: float) -> dict[str, Any]:
    """Train to the smallest gap or the limit; note when gaps are met."""
    reached: dict[str, Any] = {f"{g:g}": None for g in GAPS}
    begin = time.process_time()

    def note(record: PassRecord) -> bool:
        seconds = time.process_time() - begin
        for g in GAPS:
            if record.gap <= g and reached[f"{g:g}"] is None:
                sweeps = record.oracle_calls / problem.n_examples
                reached[f"{g:g}"] = [round(seconds, 2), record.n_pass, round(sweeps)]
        return seconds > limit

    result = solve(
        problem, solver, C=C, gap=min(GAPS), max_passes=10**6, callbacks=[note], random_state=0
    )
    certificate, size = result.certificate, result.engine.size()
    return {
        "reached": reached,
        "seconds": round(time.process_time() - begin, 2),
        "passes": result.n_passes,
        "gap": certificate.gap,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "planes": size["planes"],
        "megabytes": round(size["bytes"] / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/")
    parser.add_argument("--C", default="0.1,1", help="values of C")
    parser.add_argument("--limit", type=float, default=150, help="seconds for each setting")
    parser.add_argument("--settings", default=",".join(SETTINGS).replace(", ", "; "))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [name.strip().replace("; ", ", ") for name in args.settings.split(",")]
    problem = Data(args.data, "chunk").problem()
    output: dict[str, Any] = {}
    for C in map(float, args.C.split(",")):
        print(f"C = {C:g}: processor seconds (passes, sweeps of the oracle) to a gap of")
        print(" " * 20 + "".join(f"{100 * g:16.1f} %" for g in GAPS))
        for name in chosen:
            row = run(problem, SETTINGS[name], C, args.limit)
            output.setdefault(f"{C:g}", {})[name] = row
            cells = (row["reached"][f"{g:g}"] for g in GAPS)
            texts = [f"{c[0]:.1f} ({c[1]}, {c[2]})" if c else "-" for c in cells]
            print(
                f"  {name:18s}" + "".join(f"{text:>18s}" for text in texts),
                f"   gap {100 * row['gap']:.2f} %, {row['planes']} planes, {row['megabytes']} MB",
            )
            sys.stdout.flush()
    print(json.dumps(output))


if __name__ == "__main__":
    main()
