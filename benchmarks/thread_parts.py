"""What a second thread brings to single parts: encoding, and three solvers.

    python benchmarks/thread_parts.py --data ../shared/data

CoNLL-2000 chunking. "Encoding" turns Python lists into numbers and learns the features: dicts of
features, lists of feature strings, and rows of columns with a template. "Solvers" make the same
passes with one thread and with two, and their certificate. Both by turns in one process; figures
are the least of ``--repeats``. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from corpora import Corpus
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import read_columns
from maxmargin.solvers import BCFW, OneSlack, Solver, Subgradient, solve

THREADS = (1, 2)
SOLVERS: dict[str, tuple[Solver, int]] = {
    "OneSlack": (OneSlack(), 30),
    "Subgradient": (Subgradient(), 8),
    "BCFW": (BCFW(), 8),
}


def features_of(sentence: list[list[str]], i: int) -> dict[str, Any]:
    """Return the features of a token as people write them."""
    found: dict[str, Any] = {"suffix": sentence[i][0][-3:], "capital": sentence[i][0][0].isupper()}
    for d in range(-2, 3):
        if 0 <= i + d < len(sentence):
            found[f"w[{d}]"], found[f"pos[{d}]"] = sentence[i + d][:2]
    for d in (-1, 0):
        if i + d >= 0 and i + d + 1 < len(sentence):
            pair = sentence[i + d], sentence[i + d + 1]
            found[f"w[{d}]|w[{d + 1}]"] = "|".join(row[0] for row in pair)
            found[f"pos[{d}]|pos[{d + 1}]"] = "|".join(row[1] for row in pair)
    return found


def as_strings(token: dict[str, Any]) -> list[str]:
    """Return the same features as strings."""
    return [k if v is True else f"{k}:{v}" for k, v in token.items() if v is not False]


def by_turns(calls: dict[int, Callable[[], Any]], repeats: int) -> list[float]:
    """Return the least time of each call."""
    times: dict[int, list[float]] = {n: [] for n in calls}
    for _ in range(repeats):
        for n, call in calls.items():
            begin = time.perf_counter()
            call()
            times[n].append(time.perf_counter() - begin)
    return [min(times[n]) for n in calls]


def encoding(data: Path, repeats: int) -> dict[str, list[float]]:
    """Measure the encoders."""
    rows = read_columns(data / "conll2000" / "train.tsv.gz").rows()
    dicts = [[features_of(rows_, i) for i in range(len(rows_))] for rows_ in rows]
    strings = [[as_strings(token) for token in sentence] for sentence in dicts]
    found = {}
    for name, X in (("dicts", dicts), ("lists of strings", strings)):
        encoders = {n: FeatureEncoder(threads=n) for n in THREADS}
        calls = {n: (lambda e=e, X=X: e.fresh().fit_transform(X)) for n, e in encoders.items()}
        found[name] = by_turns(calls, repeats)
        one, two = (encoders[n].fit_transform(X) for n in THREADS)
        assert np.array_equal(one.indices, two.indices)
    template = Template.load("chunking@1")
    tables = [[row[:2] for row in sentence] for sentence in rows]

    def expanded(n: int) -> Any:
        encoder = TemplateEncoder(template, threads=n)
        return encoder.fit_transform(ColumnTable.from_rows(tables))

    found["rows with a template"] = by_turns(
        {n: (lambda n=n: expanded(n)) for n in THREADS}, repeats
    )
    return found


def solvers(data: Path, repeats: int) -> dict[str, list[float]]:
    """Measure the solvers; their results must not depend on the threads."""
    problem = Corpus(data, "chunking").problem
    found = {}
    for name, (solver, passes) in SOLVERS.items():
        weights: dict[int, Any] = {}

        def train(
            n: int, solver: Solver = solver, passes: int = passes, kept: Any = weights
        ) -> None:
            result = solve(
                problem, solver, C=0.1, gap=0.0, max_passes=passes, n_jobs=n, random_state=0
            )
            kept[n] = result.weights

        found[name] = by_turns({n: (lambda n=n, t=train: t(n)) for n in THREADS}, repeats)
        assert np.array_equal(weights[1], weights[2]), name
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    result = {
        "encoding": encoding(args.data, args.repeats),
        "solvers": solvers(args.data, args.repeats),
    }
    print("| | 1 thread, s | 2 threads, s | ratio |")
    print("|---|---|---|---|")
    for part in result.values():
        for name, (one, two) in part.items():
            print(f"| {name} | {one:.3f} | {two:.3f} | {one / two:.2f} |")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
