"""Training with one thread and with two: time to a 1 % gap, and from a file to a model.

With ``--threads 2`` (``n_jobs`` in Python) both threads make the steps of training, each on a share
of the sentences (``native/joint_pass.hpp``), and share the reading of features, passes of the
oracle at a fixed w, and certificates. With ``--deterministic`` one of them makes all steps: what
that costs is the last ratio.

    python benchmarks/threads.py --data ../shared/data [--tasks chunking,brown] [--C 0.1,1]

Every training is a process of its own, the ways by turns; figures are medians of ``--repeats``
runs. "To the gap" is the solver with its certificate, "file to model" is all of ``maxmargin train``
from the start of the process to its end. Runs in the same way must give one model. How
long a cache line takes from one core to the other is printed first and last: on virtual machines it
changes, and with it what a second thread brings. A second table says where the time from file to
model goes: "rest" is the start of Python and its imports, and the end. The last line of standard
output is one JSON object.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from maxmargin import _native
from peers import TASKS as PEER_TASKS
from peers import Task, run

TASKS = {
    **{name: PEER_TASKS[name] for name in ("chunking", "pos", "jnlpba")},
    "brown": Task("Parts of speech, Brown", "brown_pos", "pos@1", chunks=False),
}
#: Ways to train, with their options.
WAYS = {
    "1": ("--threads", "1"),
    "2": ("--threads", "2"),
    "2, deterministic": ("--threads", "2", "--deterministic"),
}
KINDS = ("to the gap", "file to model")
PARTS = ("read", "features", "train", "write", "rest")
TIMEOUT = 1800.0


def train(data: Path, task: Task, C: float, way: str, model: Path) -> dict[str, float]:
    """Train in a process of its own; return the seconds of each kind."""
    program = [sys.executable, "-m", "maxmargin", "train", data / task.corpus / "train.tsv.gz"]
    options = ["-m", model, "-C", str(C), "--gap", "0.01", *WAYS[way]]
    begin = time.perf_counter()
    out, _ = run([*program, *task.reading(), *options, "--json", "-q"], 2, TIMEOUT)
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
        "passes": about["passes"],
    }


def measure(data: Path, task: Task, C: float, repeats: int) -> dict[str, Any]:
    """Train in each way by turns; medians, ratios, and whether models of one way agree."""
    measured = (*KINDS, *PARTS, "passes")
    times: dict[str, dict[str, list[float]]]
    times = {kind: {way: [] for way in WAYS} for kind in measured}
    models: dict[str, set[bytes]] = {way: set() for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.mm"
        for _ in range(repeats):
            for way in WAYS:
                for kind, seconds in train(data, task, C, way, model).items():
                    times[kind][way].append(seconds)
                models[way].add(hashlib.sha256(model.read_bytes()).digest())
    medians = {kind: [statistics.median(times[kind][way]) for way in WAYS] for kind in measured}
    _, two, repeated = medians[KINDS[0]]
    ratios = {kind: medians[kind][0] / medians[kind][1] for kind in KINDS}
    return {
        "seconds": medians,
        "ratios": ratios | {"price": repeated / two},
        "same_model": all(len(each) == 1 for each in models.values()),
    }


def latency() -> float:
    """Nanoseconds that a message takes from one core to the other."""
    return 1e9 * min(_native.core_latency(20_000) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of %(default)s")
    parser.add_argument("--C", default="0.1,1", help="values of C (%(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print(f"from core to core: {latency():.0f} ns")
    print(
        "| | C | to a 1 % gap, s: 1 and 2 threads | ratio | passes | file to model, s | ratio | "
        "deterministic over not |"
    )
    print("|---|---|---|---|---|---|---|---|")
    result: dict[str, Any] = {}
    for name in args.tasks.split(","):
        for C in map(float, args.C.split(",")):
            about = measure(args.data, TASKS[name], C, args.repeats)
            assert about["same_model"], "runs in the same way differ"
            cells = [TASKS[name].title, f"{C:g}"]
            for kind in KINDS:
                one, two, _ = about["seconds"][kind]
                cells += [f"{one:.2f} and {two:.2f}", f"{about['ratios'][kind]:.2f}"]
                if kind == KINDS[0]:
                    one, two, _ = about["seconds"]["passes"]
                    cells.append(f"{one:.0f} and {two:.0f}")
            cells.append(f"{about['ratios']['price']:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)
            result[f"{name}, C = {C:g}"] = about
    print("\n| where it goes, s: 1 and 2 threads | C | " + " | ".join(PARTS) + " |")
    print("|---|---|" + "---|" * len(PARTS))
    for name, about in result.items():
        task, _, C = name.partition(", C = ")
        both = (about["seconds"][part] for part in PARTS)
        cells = [TASKS[task].title, C, *(f"{one:.2f} and {two:.2f}" for one, two, _ in both)]
        print(f"| {' | '.join(cells)} |")
    for kind in (*KINDS, "price"):
        ratios = [about["ratios"][kind] for about in result.values()]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{kind}: geometric mean {mean:.2f}, least {min(ratios):.2f}")
    print(f"from core to core: {latency():.0f} ns")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
