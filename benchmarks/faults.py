"""Faults: trainings of which a worker is killed (SIGKILL) at a random moment.

Claims shown, all from one run: of so many trainings on two local workers of a Dask cluster, of each
of which one worker process is killed at a random moment, all end with a certificate as good as
asked, which one process that recomputes it agrees with; and how much time that costs over trainings
in which nobody is killed.

    python benchmarks/faults.py --data ../shared/data [--runs 20] [--sentences 1500] [--seed 0]

The moment is drawn uniformly from the seconds that a training without a fault takes, from the call
of ``fit`` on: data are read and features put together first, then rounds are made. The last line of
standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cluster import TASKS, read, write_parts
from maxmargin.distributed import DaskSequenceTagger
from maxmargin.distributed.cluster import local_client
from maxmargin.features.columns import ColumnTable
from maxmargin.regularizers import L2
from maxmargin.solvers import SDM

#: Seconds after which a training counts as one that does not end.
HANGS = 300.0


class Killer:
    """Kills a worker process after some seconds."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.when = 0.0
        self._pid = pid
        self._timer = threading.Timer(seconds, self._kill)

    def _kill(self) -> None:
        self.when = time.perf_counter()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def __enter__(self) -> Killer:
        self._timer.start()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._timer.cancel()


def trained(client: Any, files: list[str], options: dict[str, Any]) -> tuple[Any, float]:
    """Train; return the tagger and the seconds that ``fit`` took."""
    begin = time.perf_counter()
    tagger = DaskSequenceTagger(client=client, **options)
    tagger.fit(files)
    return tagger, time.perf_counter() - begin


def main() -> None:
    """Print a line for each training, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sentences", type=int, default=1500, help="of the chunking corpus")
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--report-every", type=float, default=1.0, help="checkpoint_seconds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    task = TASKS["chunking"]
    table = read(given.data, task, given.sentences)
    options = {
        "C": task.C, "template": task.template, "gap": given.gap, "random_state": 0,
        "checkpoint_seconds": given.report_every, "time_limit": HANGS,
    }
    rng = np.random.default_rng(given.seed)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [str(file) for file in write_parts(table, 2, Path(folder))]
        with local_client(2) as client:
            trained(client, files, options)  # workers load their modules
            usual = float(np.median([trained(client, files, options)[1] for _ in range(3)]))
        print(f"without faults: {usual:.2f} s (median of 3)", flush=True)
        for number in range(given.runs):
            with local_client(2) as client:  # all workers are there again
                trained(client, files, options)
                pids = sorted(client.run(os.getpid).values())
                moment = float(rng.uniform(0.0, usual))
                with Killer(pids[int(rng.integers(2))], moment) as killer:
                    tagger, seconds = trained(client, files, options)
            gap = tagger.certificate_.gap
            again = primal_here(tagger, table, task.C)
            rows.append(
                {
                    "moment": moment,
                    "killed": killer.when > 0,
                    "faults": tagger.n_faults_,
                    "seconds": seconds,
                    "gap": gap,
                    "certified": bool(
                        gap <= given.gap
                        and abs(again / tagger.certificate_.primal - 1) < 1e-9
                    ),
                }
            )
            row = rows[-1]
            print(
                f"run {number + 1}: killed at {moment:.2f} s, {row['faults']} shares made anew, "
                f"{seconds:.2f} s, gap {gap:.4f}, certificate "
                f"{'good' if row['certified'] else 'BAD'}",
                flush=True,
            )
    lost = [row["seconds"] - usual for row in rows if row["killed"]]
    found = {
        "runs": len(rows),
        "killed": sum(row["killed"] for row in rows),
        "certified": sum(row["certified"] for row in rows),
        "usual_seconds": usual,
        "lost_seconds_median": float(np.median(lost)) if lost else 0.0,
        "lost_seconds_most": max(lost, default=0.0),
        "each": rows,
    }
    print(
        f"{found['certified']} of {found['runs']} ended with their certificate "
        f"({found['killed']} with a worker killed); time lost: median "
        f"{found['lost_seconds_median']:.1f} s, most {found['lost_seconds_most']:.1f} s, of "
        f"{usual:.1f} s without a fault"
    )
    print(json.dumps(found))


def primal_here(tagger: Any, table: ColumnTable, C: float) -> float:
    """Return the primal of a model, computed in this process with all data."""
    X, labels = table.labelled(-1)
    problem = tagger.model_.structure_.make_problem(X, labels)
    engine: Any = SDM().start(problem, C, L2(), True)
    return float(engine.primal_of(np.array(tagger.weights_)))


if __name__ == "__main__":
    main()
