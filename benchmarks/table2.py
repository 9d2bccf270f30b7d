"""Table 2 of the SDM paper: SDM against the cutting-plane method, time to the same dual value.

Claim shown: how many times as long as SDM the 1-slack method takes until its dual is within 0.1 %
of the optimum. The optimum is that of SDM trained far closer, in 8-byte arithmetic.

    python benchmarks/table2.py --data ../shared/data [--limit 600] [--plots FOLDER]

The clock runs during passes only (`maxmargin.compare`). A run that does not get there within
--limit seconds counts as "more than". As plain information, beside no claim: when the 1-slack
method has duality gaps of 7 % and 0.7 % on chunking with C = 0.1, for which SVM^hmm 3.10 took 140 s
and 467 s of one core on a machine of this kind. The last line of standard output is one JSON
object.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from corpora import IN_THE_PAPER, QUICK, Corpus, chosen, corpus_arguments
from maxmargin import SDM, Comparison, compare
from maxmargin.solvers import make_solver, solve

#: Relative distance of the dual from the optimum that counts as having reached it.
CLOSE = 1e-3

#: Seconds of SDM and of the cutting-plane method in the paper, by task and C.
PAPER = {
    ("chunking", 0.1): (55, 1015),
    ("chunking", 1.0): (110, 1372),
    ("pos", 0.1): (77, 844),
    ("pos", 1.0): (160, 1367),
    ("jnlpba", 0.1): (77, 696),
    ("jnlpba", 1.0): (188, 999),
    ("bc2gm", 0.1): (15, 51),
    ("bc2gm", 1.0): (43, 91),
}

#: SVM^hmm on chunking with C = 0.1: relative gap -> seconds.
SVMHMM = {0.07: 140, 0.007: 467}


def measure(corpus: Corpus, task: str, C: float, args: Any) -> dict[str, Any]:
    """Make one row of the table."""
    problem = corpus.problem
    tight = solve(
        problem,
        SDM(),
        C=C,
        dtype="float64",
        gap=args.reference_gap,
        max_passes=10**6,
        random_state=1,
        warn=False,
    ).certificate
    beside_svmhmm = (task, C) == ("chunking", 0.1)
    found = compare(
        problem,
        {"sdm": SDM(), args.rival: make_solver(args.rival)},
        C=C,
        reference=tight,
        score=corpus.accuracy if args.plots else None,
        gap=CLOSE,  # whoever has such a gap has such a dual
        time_limit=args.limit,
        max_passes=10**6,
        primal=beside_svmhmm,  # else a pass of the oracle for nothing
        until={"dual": CLOSE, **({"gap": min(SVMHMM)} if beside_svmhmm else {})},
    )
    if args.plots:
        args.plots.mkdir(parents=True, exist_ok=True)
        found.plot(args.plots / f"{task}_C{C:g}.svg", f"{corpus.title}, C = {C:g}")
    row = digest(found, args.rival)
    row["optimum"] = {"dual": tight.dual, "primal": tight.primal}
    if (task, C) in PAPER:
        sdm, rival = PAPER[task, C]
        row["paper_ratio"] = round(rival / sdm, 1)
    if beside_svmhmm:
        row["gap_seconds"] = {
            f"{gap:g}": found.time_to(gap, "gap")[args.rival] for gap in SVMHMM
        }
        row["svmhmm_seconds"] = {f"{gap:g}": seconds for gap, seconds in SVMHMM.items()}
    return row


def digest(found: Comparison, rival: str) -> dict[str, Any]:
    """Return when SDM and the rival were there, and the ratio; a lower bound if it was not."""
    row: dict[str, Any] = {"error": found[rival].error}
    spent: dict[str, dict[str, Any]] = {}
    for label in ("sdm", rival):
        point = found.reached(label, CLOSE)
        last = found[label].points[-1] if found[label].points else None
        where = point or last
        spent[label] = row[label] = {
            "reached": point is not None,
            "seconds": None if where is None else where.seconds,
            "oracle_calls": None if where is None else where.oracle_calls,
            "dual_suboptimality": None if where is None else found.value(where),
        }
    known = spent["sdm"]["reached"] and spent[rival]["seconds"] is not None
    for column in ("seconds", "oracle_calls"):
        ratio = spent[rival][column] / spent["sdm"][column] if known else None
        row[f"ratio_of_{column}"] = ratio
    row["ratio_is_a_lower_bound"] = known and not spent[rival]["reached"]
    return row


def show(C: float, row: dict[str, Any], rival: str) -> None:
    if row["error"] is not None:
        print(f"  C = {C:g}: {rival} failed: {row['error']}", flush=True)
        return
    more = "more than " if row["ratio_is_a_lower_bound"] else ""
    ratio = row["ratio_of_seconds"]
    print(
        f"  C = {C:<4g} sdm {row['sdm']['seconds']:8.2f} s   {rival} {more}"
        f"{row[rival]['seconds']:.2f} s   ratio "
        + (f"{more}{ratio:.1f}" if ratio is not None else "not known: sdm was not there in time")
        + (f"   (oracle calls: {more}{row['ratio_of_oracle_calls']:.1f})" if ratio else "")
        + (f"   the paper's: {row['paper_ratio']:.1f}" if "paper_ratio" in row else ""),
        flush=True,
    )
    if more:
        left = row[rival]["dual_suboptimality"]
        print(f"           {rival} was then {100 * left:.2g} % below the optimum")
    for gap, seconds in row.get("gap_seconds", {}).items():
        here = "not reached" if seconds is None else f"{seconds:.1f} s"
        print(
            f"           {rival} to a gap of {100 * float(gap):g} %: {here}   (SVM^hmm 3.10, "
            f"another machine: {row['svmhmm_seconds'][gap]} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus_arguments(parser)
    parser.add_argument("--rival", default="oneslack", help="the solver beside SDM")
    parser.add_argument("--limit", type=float, default=600, help="seconds of each run")
    parser.add_argument("--reference-gap", type=float, default=1e-4, help="of the optimum")
    parser.add_argument("--plots", type=Path, help="folder for a figure of each row")
    args = parser.parse_args()
    tasks, Cs = chosen(parser, args)
    try:
        args.rival = make_solver(args.rival).name
    except ValueError as error:
        parser.error(f"--rival: {error}")
    output: dict[str, Any] = {}
    print(f"Time until the dual is within {100 * CLOSE:g} % of the optimum")
    for task in tasks:
        corpus = Corpus(args.data, task, QUICK if args.quick else None)
        print(f"\n{corpus} (in the paper: {IN_THE_PAPER[task]})", flush=True)
        output[task] = {}
        for C in Cs:
            row = measure(corpus, task, C, args)
            output[task][f"{C:g}"] = row
            show(C, row, args.rival)
        del corpus
    print(json.dumps(output))


if __name__ == "__main__":
    main()
