"""Choose the parameters of ``benchmarks/transductive.py`` on the development files.

    python benchmarks/transductive_tune.py --data DIR --task citations --labelled 5,20 --draws 5

The labelled subsets are others than those of the benchmark (their seeds begin at 100), and the test
labels are not looked at. Supervised training has one parameter, C1. Constraint-driven learning
and transductive training are searched one parameter after the other, each from the best of those
before: penalty, mixing and C of the former (which is also the start of the latter); C2, the label
margin, mu and outer iterations of the latter. The last line is a JSON object with the choice of each
number of labelled sequences, with and without constraint features.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from transductive import CHOSEN, CODL, WEIGHTS, Task, driven, nearest, supervised, transductive

#: What is tried, parameter by parameter.
SUPERVISED = {"C1": (10, 30, 100, 300, 1000)}
DRIVEN = {"penalty": (2.0, 1.0, 4.0), "mixing": (0.1, 0.3, 0.5), "C": (1.0, 0.3)}
TRANSDUCTIVE = {
    "label_margin": (0.0, 0.1, 0.3, 1.0),
    "C2": (300, 1000, 3000),
    "mu": (2, 1, 4),
    "outer": (3, 1),
}


def search(
    grid: dict[str, Any], first: dict[str, Any], value: Callable[..., float], what: str
) -> tuple[dict[str, Any], float]:
    """Return the best parameters, searched one after the other, and their score."""
    best, known = dict(first), {}
    for name, values in grid.items():
        scores = {}
        for one in values:
            given = {**best, name: one}
            key = json.dumps(given, sort_keys=True)
            if key not in known:
                known[key] = value(**given)
                print(f"  {what} {given}: dev {known[key]:.2f}", flush=True)
            scores[one] = known[key]
        best[name] = max(scores, key=lambda k: scores[k])
    return best, known[json.dumps(best, sort_keys=True)]


def choose(
    task: Task, n: int, features: bool, draws: int, which: list[str]
) -> dict[str, Any]:
    """Search all parameters of one number of labelled sequences."""
    chosen = nearest(CHOSEN[task.name], n)
    subsets = [
        np.random.default_rng(100 + draw).permutation(len(task.X))[:n]
        for draw in range(1 if n >= len(task.X) else draws)
    ]
    data = [task.data(subset, features) for subset in subsets]
    out: dict[str, Any] = {"C1": chosen["C1"]}

    def plain(C1: float) -> float:
        return float(np.mean([task.score(d, *supervised(d, C1))[0] for d in data]))

    if "supervised" in which:
        found, score = search(SUPERVISED, {"C1": chosen["C1"]}, plain, "supervised")
        out |= found
    out["supervised"] = round(plain(out["C1"]), 2)
    starts = [supervised(d, out["C1"]) for d in data]
    codl = dict(CODL[task.name])

    def driven_score(**given: Any) -> float:
        runs = (driven(task, d, s, **given) for d, s in zip(data, starts, strict=True))
        return float(np.mean([task.score(d, *m)[0] for d, m in zip(data, runs, strict=True)]))

    if "codl" in which:
        codl, score = search(DRIVEN, codl, driven_score, "codl")
        out["codl"], out["codl_parameters"] = round(score, 2), codl
    begun = [driven(task, d, s, **codl) for d, s in zip(data, starts, strict=True)]
    out["codl"] = round(
        float(np.mean([task.score(d, *m)[0] for d, m in zip(data, begun, strict=True)])), 2
    )

    def score_of(C2: float, mu: float, outer: int, label_margin: float) -> float:
        scores = []
        for d, start in zip(data, begun, strict=True):
            options = {"outer": outer, "label_margin": label_margin}
            model = transductive(d, start, out["C1"], C2, mu, **options)
            scores.append(task.score(d, model.chain_weights, model.group_weights)[0])
        return float(np.mean(scores))

    C2, mu, outer, margin = chosen["features" if features else "plain"]
    first = {"C2": C2, "mu": mu, "outer": outer, "label_margin": margin}
    found, score = search(TRANSDUCTIVE, first, score_of, "transductive")
    out["transductive"] = round(score, 2)
    out["parameters"] = [found[name] for name in ("C2", "mu", "outer", "label_margin")]
    return out


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
        "--also", default="", help="supervised, codl: search their parameters as well"
    )
    options = parser.parse_args(argv)
    task = Task(options.data, options.task, WEIGHTS[options.task], options.unlabelled)
    found: dict[str, Any] = {}
    for n in map(int, options.labelled.split(",")):
        for features in (False, True):
            name = f"{n}{'_i' if features else ''}"
            print(f"{options.task}, {name}", flush=True)
            found[name] = choose(task, n, features, options.draws, options.also.split(","))
            print(f"  chosen: {found[name]}", flush=True)
    print(json.dumps({options.task: found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
