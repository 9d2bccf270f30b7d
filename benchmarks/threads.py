"""Training with one thread and with two: time to a 1 % gap, and from a file to a model.

What ``--threads`` (``n_jobs`` in Python) speeds up is the reading of features, passes of the oracle
at a fixed w, and certificates. Passes that move w use one thread; what was tried there is in
``docs/architecture.md``, "Tried and dropped".

    python benchmarks/threads.py --data ../shared/data [--tasks chunking,brown] [--C 0.1,1]

Every training is a process of its own, with one thread and with two by turns; figures are medians
of ``--repeats`` runs. "To the gap" is the solver with its certificate, "file to model" is all of
``maxmargin train`` from the start of the process to its end. The model files of all runs are
compared byte by byte. A second table says where the time from file to model goes: "rest" is the
start of Python and its imports, and the end. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from peers import TASKS as PEER_TASKS
from peers import Task, run

TASKS = {
    **{name: PEER_TASKS[name] for name in ("chunking", "pos", "jnlpba")},
    "brown": Task("Parts of speech, Brown", "brown_pos", "pos@1", chunks=False),
}
THREADS = (1, 2)
KINDS = ("to the gap", "file to model")
PARTS = ("read", "features", "train", "write", "rest")
TIMEOUT = 1800.0


def train(data: Path, task: Task, C: float, threads: int, model: Path) -> dict[str, float]:
    """Train in a process of its own; return the seconds of each kind."""
    program = [sys.executable, "-m", "maxmargin", "train", data / task.corpus / "train.tsv.gz"]
    options = ["-m", model, "-C", str(C), "--gap", "0.01", "--threads", str(threads)]
    begin = time.perf_counter()
    out, _ = run([*program, *task.reading(), *options, "--json", "-q"], max(THREADS), TIMEOUT)
    seconds = time.perf_counter() - begin
    about = json.loads(out.splitlines()[-1])
    if not about["converged"]:
        raise SystemExit(f"{task.title}, C = {C}: {about['stop_reason']}")
    parts = {part: about[f"seconds_{part}"] for part in PARTS[:-1]}
    return {
        KINDS[0]: about["seconds_train"],
        KINDS[1]: seconds,
        **parts,
        PARTS[-1]: seconds - sum(parts.values()),
    }


def measure(data: Path, task: Task, C: float, repeats: int) -> dict[str, Any]:
    """Train with each number of threads by turns; medians, ratios, and whether models agree."""
    measured = (*KINDS, *PARTS)
    times: dict[str, dict[int, list[float]]] = {kind: {n: [] for n in THREADS} for kind in measured}
    models = set()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.mm"
        for _ in range(repeats):
            for threads in THREADS:
                for kind, seconds in train(data, task, C, threads, model).items():
                    times[kind][threads].append(seconds)
                models.add(model.read_bytes())
    medians = {kind: [statistics.median(times[kind][n]) for n in THREADS] for kind in measured}
    ratios = {kind: medians[kind][0] / medians[kind][1] for kind in KINDS}
    return {"seconds": medians, "ratios": ratios, "same_model": len(models) == 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of %(default)s")
    parser.add_argument("--C", default="0.1,1", help="values of C (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print("| | C | to a 1 % gap, s: 1 and 2 threads | ratio | file to model, s | ratio | model |")
    print("|---|---|---|---|---|---|---|")
    result: dict[str, Any] = {}
    for name in args.tasks.split(","):
        for C in map(float, args.C.split(",")):
            about = measure(args.data, TASKS[name], C, args.repeats)
            cells = [TASKS[name].title, f"{C:g}"]
            for kind in KINDS:
                one, two = about["seconds"][kind]
                cells += [f"{one:.2f} and {two:.2f}", f"{about['ratios'][kind]:.2f}"]
            cells.append("same" if about["same_model"] else "differs")
            print(f"| {' | '.join(cells)} |", flush=True)
            result[f"{name}, C = {C:g}"] = about
    print("\n| where it goes, s: 1 and 2 threads | C | " + " | ".join(PARTS) + " |")
    print("|---|---|" + "---|" * len(PARTS))
    for name, about in result.items():
        task, _, C = name.partition(", C = ")
        both = (about["seconds"][part] for part in PARTS)
        cells = [TASKS[task].title, C, *(f"{one:.2f} and {two:.2f}" for one, two in both)]
        print(f"| {' | '.join(cells)} |")
    for kind in KINDS:
        ratios = [about["ratios"][kind] for about in result.values()]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{kind}: geometric mean {mean:.2f}, least {min(ratios):.2f}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
