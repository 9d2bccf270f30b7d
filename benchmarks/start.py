"""What a start from an earlier model or checkpoint saves (`maxmargin train --start`).

Claims shown: passes, calls of the oracle and processor time of training on CoNLL-2000 chunking
from the weights of an earlier model or the multipliers of a checkpoint, over those of a cold start
in the same run.

    python benchmarks/start.py --data ../shared/data [--gap 0.01] [--repeats 3]

The earlier models: trained on every other sentence; on all sentences with half the C; the same
problem. The last row is no option of the command: it shows what there would be to gain if a file
kept multipliers by sequence, so that a training with 5 % more sentences could go on with those of
the others. Processor times are the least of the repeats, by turns. "Planted" passes are the collect
pass under the old weights and the cached passes that follow it, which count among the passes here.
The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from maxmargin.features.select import encoder_of
from maxmargin.io.columns import read_columns
from maxmargin.regularizers import L2
from maxmargin.selection import Encoded
from maxmargin.solvers import SDM, solve
from maxmargin.solvers.dual import DualMachine
from maxmargin.structures.chain import Chain

C = 0.1
MOST = "multipliers of 95 % of the sentences"


def carried_over(problem: Any, earlier: Any) -> DualMachine:
    """Return an engine in which the first sentences have the multipliers of an earlier one."""
    machine: Any = SDM().start(problem, C, L2(), True)
    own, state = machine.state(), dict(earlier.state())
    state["gaps"] = np.concatenate([state["gaps"], own["gaps"][len(state["gaps"]) :]])
    # Nobody has the sums of these multipliers yet; refresh makes the weights of them.
    state |= {"running": None, "weights": np.zeros_like(own["weights"])}
    machine.restore(state)
    machine.refresh()
    found: DualMachine = machine
    return found


class Counting:
    """Counts cached passes that are made outside of the driver's history."""

    def __init__(self) -> None:
        self.n = 0
        self._original = DualMachine.cached_pass

    def __enter__(self) -> Counting:
        counting = self

        def call(machine: Any, *args: Any) -> Any:
            counting.n += 1
            return counting._original(machine, *args)

        self._patch = mock.patch.object(DualMachine, "cached_pass", call)
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--corpus", default="conll2000", help="folder of --data (%(default)s)")
    parser.add_argument("--template", default="chunking@1", help="of the corpus (%(default)s)")
    options = parser.parse_args()

    table, labels = read_columns(options.data / options.corpus / "train.tsv.gz").labelled(-1)
    encoder = encoder_of(options.template, min_count=1, hash_bits=None, threads=1)
    chain = Chain(encoder=encoder)
    batch, codes = chain.learn(table, labels)
    data = Encoded(batch, codes, list(chain.labels_))
    half = data.take(np.arange(0, batch.n_sequences, 2))
    problem = chain.encoded_problem(batch, codes)
    small = chain.encoded_problem(half.batch, half.codes)
    most = data.take(np.arange(batch.n_sequences * 95 // 100))
    fewer = chain.encoded_problem(most.batch, most.codes)

    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.npz"
        given = {"gap": 0.01, "random_state": 0, "warn": False}
        starts: dict[str, Any] = {
            "cold": None,
            "model of half the sentences": solve(small, SDM(), C=C, **given).weights,
            "model of C / 2": solve(problem, SDM(), C=C / 2, checkpoint=state, **given).weights,
            "model of the same problem": solve(problem, SDM(), C=C, **given).weights,
            "checkpoint of C / 2": state,
            MOST: solve(fewer, SDM(), C=C, **given).engine,
        }
        rows: dict[str, dict[str, Any]] = {}
        for _ in range(options.repeats):
            for name, start in starts.items():
                with Counting() as counting:
                    begin = time.process_time()
                    where: dict[str, Any] = {"start": start}
                    if name == MOST:
                        where = {"engine": carried_over(problem, start)}
                    found = solve(
                        problem, SDM(), C=C, gap=options.gap, random_state=0, warn=False, **where
                    )
                    seconds = time.process_time() - begin
                made = sum(record.kind == "cached" for record in found.history)
                planted = counting.n - made + isinstance(start, np.ndarray)
                row = rows.setdefault(name, {"seconds": seconds})
                row["seconds"] = min(row["seconds"], seconds)
                row |= {
                    "passes": found.n_passes + planted,
                    "planted": planted,
                    "oracle_calls": found.history[-1].oracle_calls / batch.n_sequences,
                    "gap": found.certificate.gap,
                }
    cold = rows["cold"]
    print("| start | passes | of them to plant | oracle calls | CPU time |\n|---|---|---|---|---|")
    for name, row in rows.items():
        print(
            f"| {name} | {row['passes']} | {row['planted']} | {row['oracle_calls']:.0f} per "
            f"sentence | {row['seconds'] / cold['seconds']:.2f} |"
        )
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
