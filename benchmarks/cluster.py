"""Training on many machines: two worker processes against one process, and shares by simulation.

Claims shown, all from one run:

- two local workers of a Dask cluster against one process, on JNLPBA and Brown to a gap of 1 %:
  seconds of training (start-up left out, and printed), rounds and megabytes;
- ``--simulate``: K = 2, 4, ..., 64 shares in one process with the same algorithm: rounds, oracle
  passes and bytes to gaps of 1 % and 0.1 %. The speed-up to be expected over one process follows
  from the time of the share that needed longest in each call (rounds, and what they need to begin;
  the certificate is left out, as it is for one process), from that of the coordinator and from the
  bytes at 10 Gbit/s.

    python benchmarks/cluster.py --data ../shared/data [--tasks jnlpba,brown] [--gap 0.01]
    python benchmarks/cluster.py --data ../shared/data --simulate [--shares 2,4,8,16,32,64]

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.distributed import Coordinator, DaskSequenceTagger, InProcess, Share
from maxmargin.distributed.cluster import local_client
from maxmargin.features.columns import ColumnTable
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import read_columns
from maxmargin.regularizers import L2
from maxmargin.selection import Encoded
from maxmargin.solvers import SDM, solve
from maxmargin.structures import Chain

#: Bytes in a second at 10 Gbit/s.
BANDWIDTH = 10e9 / 8


class Task(NamedTuple):
    """A corpus, its template and its C."""

    corpus: str
    template: str
    C: float


TASKS = {
    "jnlpba": Task("jnlpba", "ner", 0.1),
    "brown": Task("brown_pos", "pos", 0.1),
    "chunking": Task("conll2000", "chunking", 0.1),
}


def read(folder: Path, task: Task, limit: int | None) -> ColumnTable:
    """Return the training data."""
    table = read_columns(folder / task.corpus / "train.tsv.gz")
    return table if limit is None else ColumnTable.from_rows(table.rows()[:limit])


def encoded(table: ColumnTable, task: Task) -> tuple[Chain, Encoded]:
    """Return a chain that knows the features, and the data in numbers."""
    X, labels = table.labelled(-1)
    chain = Chain(encoder=TemplateEncoder(Template.load(task.template)))
    batch, codes = chain.learn(X, labels)
    return chain, Encoded(batch, codes, list(chain.labels_))


def write_parts(table: ColumnTable, n: int, folder: Path) -> list[Path]:
    """Write a table as column files of about the same size."""
    rows, files = table.rows(), []
    for k in range(n):
        files.append(folder / f"part{k}.tsv")
        with files[-1].open("w", encoding="utf-8") as file:
            for sentence in rows[len(rows) * k // n : len(rows) * (k + 1) // n]:
                file.writelines("\t".join(token) + "\n" for token in sentence)
                file.write("\n")
    return files


def train_alone(folder: Path, task: Task, limit: int | None, gap: float) -> tuple[float, int]:
    """Train in this process; return the seconds and the passes."""
    chain, data = encoded(read(folder, task, limit), task)
    problem = chain.encoded_problem(data.batch, data.codes)
    one = solve(problem, SDM(), C=task.C, gap=gap, random_state=0)
    return one.history[-1].seconds, one.n_passes


def against_one(
    source: Path, task: Task, limit: int | None, gap: float, repeats: int
) -> dict[str, Any]:
    """Train with one process and with two workers, by turns.

    The one is a process of its own, so that the memory of all its weights is there again when the
    workers begin.
    """
    ones, twos = [], []
    with tempfile.TemporaryDirectory() as folder:
        files = write_parts(read(source, task, limit), 2, Path(folder))
        begin = time.perf_counter()
        with local_client(2) as client:
            cluster_seconds = time.perf_counter() - begin
            for _ in range(repeats):
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                    seconds, passes = alone.submit(train_alone, source, task, limit, gap).result()
                ones.append(seconds)
                tagger = DaskSequenceTagger(
                    client=client, C=task.C, template=task.template, gap=gap, random_state=0,
                    checkpoint_seconds=3600.0,
                )
                begin = time.perf_counter()
                tagger.fit([str(file) for file in files])
                twos.append(tagger.history_[-1].seconds)
                data_seconds = time.perf_counter() - begin - twos[-1]
    assert tagger.certificate_.gap <= gap
    return {
        "one_seconds": min(ones),
        "two_seconds": min(twos),
        "speedup": min(ones) / min(twos),
        "cluster_seconds": cluster_seconds,
        "data_seconds": data_seconds,
        "one_passes": passes,
        "rounds": len(tagger.history_),
        "megabytes": tagger.bytes_sent_ / 1e6,
        "share_seconds": sum(record.share_seconds for record in tagger.history_),
        "gap": tagger.certificate_.gap,
    }


class Timed(InProcess):
    """Shares one after the other, with the time that they would need side by side.

    Parameters
    ----------
    make : callable
        Makes share k.
    size : int
        How many there are.
    """

    #: What is training; other calls belong to certificates.
    TRAINING = ("reads", "know", "meet", "round")

    def __init__(self, make: Callable[[int], Share], size: int) -> None:
        super().__init__(make, size)
        self.training = self.certifying = self.all_seconds = 0.0
        self._longest = 0.0

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of every share, and count the time of the one that takes longest."""
        self._longest = 0.0
        answers = super().call(method, *common, each=each)
        if method in self.TRAINING:
            self.training += self._longest
        else:
            self.certifying += self._longest
        return answers

    def call_one(self, k: int, method: str, *args: Any) -> Any:
        """Call a method of one share."""
        begin = time.perf_counter()
        answer = super().call_one(k, method, *args)
        seconds = time.perf_counter() - begin
        self._longest = max(self._longest, seconds)
        self.all_seconds += seconds
        return answer


def simulated(
    chain: Chain, data: Encoded, task: Task, K: int, *, gap: float, seconds: float | None
) -> dict[str, Any]:
    """Train K shares one after the other, and count."""
    n = data.batch.n_sequences

    def make(k: int) -> Share:
        part = data.take(np.arange(n * k // K, n * (k + 1) // K))
        problem = chain.encoded_problem(part.batch, part.codes)
        return Share(problem, SDM(), task.C, L2(), seed=k)

    group = Timed(make, K)
    coordinator = Coordinator(
        group, SDM(), C=task.C, regularizer=L2(), gap=gap, time_limit=seconds,
        checkpoint_seconds=1e9, warn=False,
    )
    begin, group.all_seconds = time.perf_counter(), 0.0
    outcome = coordinator.run()
    coordinator_seconds = time.perf_counter() - begin - group.all_seconds
    rounds = outcome.history
    return {
        "K": K,
        "gap_asked": gap,
        "reached": outcome.converged,
        "gap": outcome.certificate.gap,
        "rounds": len(rounds),
        "oracle_passes": rounds[-1].oracle_calls / n,
        "megabytes": outcome.bytes_sent / 1e6,
        "share_seconds": group.training,
        "certificate_seconds": group.certifying,
        "coordinator_seconds": coordinator_seconds,
        "wire_seconds": outcome.bytes_sent / BANDWIDTH,
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with jnlpba/ ...")
    parser.add_argument("--tasks", default="jnlpba,brown", help=f"of {','.join(TASKS)}")
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=int, default=None, help="sentences of each task, at most")
    parser.add_argument("--simulate", action="store_true", help="shares in one process")
    parser.add_argument("--shares", default="2,4,8,16,32,64", help="K of the simulation")
    parser.add_argument("--gaps", default="0.01,0.001", help="of the simulation")
    parser.add_argument("--seconds", type=float, default=None, help="of one simulated training")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name in options.tasks.split(","):
        task = TASKS[name]
        if not options.simulate:
            row = against_one(options.data, task, options.limit, options.gap, options.repeats)
            found[name] = row
            print(
                f"{name}, C = {task.C:g}, gap {options.gap:g}: one process "
                f"{row['one_seconds']:.2f} s ({row['one_passes']} passes), two workers "
                f"{row['two_seconds']:.2f} s ({row['rounds']} rounds, {row['megabytes']:.0f} MB): "
                f"{row['speedup']:.2f} times as fast. Start-up: cluster "
                f"{row['cluster_seconds']:.1f} s, reading and encoding {row['data_seconds']:.1f} s"
            )
            continue
        chain, data = encoded(read(options.data, task, options.limit), task)
        problem = chain.encoded_problem(data.batch, data.codes)
        for gap in map(float, options.gaps.split(",")):
            one = solve(problem, SDM(), C=task.C, gap=gap, random_state=0)
            seconds, calls = one.history[-1].seconds, one.history[-1].oracle_calls
            print(
                f"\n{name}, gap {gap:g}: one process {seconds:.2f} s, "
                f"{calls / data.batch.n_sequences:.0f} oracle passes\n\n"
                "| K | reached | rounds | oracle passes | MB | speed-up of shares alone | "
                "with coordinator | and 10 Gbit/s |\n|---|---|---|---|---|---|---|---|"
            )
            rows = found.setdefault(name, {}).setdefault(f"{gap:g}", [])
            for K in map(int, options.shares.split(",")):
                row = simulated(chain, data, task, K, gap=gap, seconds=options.seconds)
                row["one_seconds"] = seconds
                rows.append(row)
                bare = led = wired = "-"  # a training that was cut short has no speed-up
                reached = f"no ({row['gap']:.2g})"
                if row["reached"]:
                    reached = "yes"
                    needed = row["share_seconds"]
                    bare = f"{seconds / needed:.2f}"
                    needed += row["coordinator_seconds"]
                    led = f"{seconds / needed:.2f}"
                    wired = f"{seconds / (needed + row['wire_seconds']):.2f}"
                print(
                    f"| {K} | {reached} | {row['rounds']} | {row['oracle_passes']:.1f} | "
                    f"{row['megabytes']:.0f} | {bare} | {led} | {wired} |",
                    flush=True,
                )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
