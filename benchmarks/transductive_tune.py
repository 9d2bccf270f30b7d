"""Choose the parameters of ``benchmarks/transductive.py`` on the development files.

    python benchmarks/transductive_tune.py --data DIR --task citations --labelled 5,20 --draws 5

The labelled subsets are others than those of the benchmark (their seeds begin at 100), and the test
labels are not looked at. Supervised training has one parameter, C1. Constraint-driven learning
and transductive training are searched one parameter after the other, each from the best of those
before: penalty and mixing of the former (which is also the start of the latter); the label margin,
C2 and mu of the latter, with three outer iterations. The last line is a JSON object with the choice
for each number of labelled sequences, without and with constraint features.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transductive import CHOSEN, WEIGHTS, Task, driven, nearest, supervised, transductive

#: What is tried, parameter by parameter, of each method.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "supervised": {"C1": (10, 30, 100, 300)},
    "codl": {"penalty": (1, 2, 4), "mixing": (0.1, 0.3)},
    "transductive": {
        "label_margin": (0, 0.1, 0.3, 1),
        "C2": (300, 1000),
        "mu": (2, 4),
    },
}


def choose(task: Task, n: int, features: bool, draws: int, keep: list[str]) -> dict[str, Any]:
    """Search the parameters of one number of labelled sequences; ``keep``: not of these methods."""
    own = dict(nearest(CHOSEN[task.name], n)["features" if features else "plain"])
    subsets = [
        np.random.default_rng(100 + draw).permutation(len(task.X))[:n]
        for draw in range(1 if n >= len(task.X) else draws)
    ]
    data = [task.data(subset, features) for subset in subsets]
    starts: list[Any] = [None] * len(data)
    scores: dict[str, float] = {}

    def train(method: str, given: dict[str, float]) -> tuple[list[Any], float]:
        found: list[Any] = []
        for d, start in zip(data, starts, strict=True):
            if method == "supervised":
                found.append(supervised(d, given["C1"]))
            elif method == "codl":
                found.append(driven(task, d, start, given))
            else:
                model = transductive(d, start, given)
                found.append((model.chain_weights, model.group_weights))
        dev = [task.score(d, *model)[0] for d, model in zip(data, found, strict=True)]
        print(f"  {method} {given}: dev {np.mean(dev):.2f}", flush=True)
        return found, float(np.mean(dev))

    for method, grid in GRIDS.items():
        known = {json.dumps(own): train(method, own)}
        for name, values in grid.items():
            if method in keep:
                break
            tried = [{**own, name: value} for value in dict.fromkeys((own[name], *values))]
            for one in tried:
                if json.dumps(one) not in known:
                    known[json.dumps(one)] = train(method, one)
            own = max(tried, key=lambda one: known[json.dumps(one)][1])
        starts, scores[method] = known[json.dumps(own)]
    return {**own, **{f"dev_{name}": round(score, 2) for name, score in scores.items()}}


def main(argv: list[str] | None = None) -> int:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--task", choices=("citations", "ads"), default="citations")
    parser.add_argument("--labelled", default="5,20")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--unlabelled", type=int, default=1000)
    parser.add_argument(
        "--keep", default="", help="methods whose parameters stay, such as supervised,codl"
    )
    parser.add_argument("--features", choices=("both", "without", "with"), default="both")
    options = parser.parse_args(argv)
    kinds = {"both": (False, True), "without": (False,), "with": (True,)}[options.features]
    task = Task(options.data, options.task, WEIGHTS[options.task], options.unlabelled)
    found: dict[str, Any] = {}
    for n in map(int, options.labelled.split(",")):
        for features in kinds:
            name = f"{n}{'_i' if features else ''}"
            print(f"{options.task}, {name}", flush=True)
            found[name] = choose(task, n, features, options.draws, options.keep.split(","))
            print(f"  chosen: {found[name]}", flush=True)
    print(json.dumps({options.task: found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
