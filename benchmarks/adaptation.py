"""Adaptation: a model of one domain as the prior of another one, with few examples of the latter.

Claims shown: what a tagger of the target reaches with 10, 50 and 200 target examples when it is
trained from nothing, on source and target together (the union), and on the target with the source
model as its prior (`SequenceTagger(prior=...)`); beside them the source model as it is.

    python benchmarks/adaptation.py --data ../shared/data

Tasks:

citations   fields of references, CORA -> FLUX-CiM (token accuracy). The 300 references of the
            target are dealt out anew in every draw: 200 to draw training examples from, 40 for
            development, 60 for the test.
mentions    names in newswire -> genes in biomedical abstracts (F1 of mentions). No two of the sets
            have the same types in both domains, so types are left out: B, I and O remain. The
            newswire is Spanish (conll2002_esp), the target is bc2gm.
chunks      base noun phrases in newswire (conll2000) -> genes in biomedical abstracts (bc2gm), as
            B, I and O (F1 of mentions): another task and another domain.

Every way of training has its settings chosen on the same development examples of the target: from
nothing C; on the union C and the weight of target examples (1 or 10); with the prior C and
``prior_precision``. The source model's own C is chosen on development data of the source. Test data
are looked at once for each chosen model. Figures are means over draws with their standard errors.
The last line of standard output is one JSON object. Draws may be spread over processes
(``--first 3 --draws 1 > part3.txt``), whose outputs ``--merge part*.txt`` puts together.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import SequenceTagger, evaluate
from maxmargin.errors import ConvergenceWarning
from maxmargin.io.columns import read_columns

SIZES = (10, 50, 200)
WAYS = ("source", "nothing", "union", "prior")
TEMPLATE = "ner@1"
GAP = 0.02

Sequences = tuple[list[Any], list[Any]]


class Grid(NamedTuple):
    """The settings that are tried."""

    Cs: tuple[float, ...]
    union: tuple[float, ...]
    precisions: tuple[float, ...]
    weights: tuple[float, ...] = (1.0, 10.0)


NARROW = Grid((0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3), (1.0, 10.0))
WIDE = Grid((0.03, 0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0), (1.0, 10.0, 100.0))


class Task(NamedTuple):
    """Source and target of an adaptation."""

    source: Sequences
    source_dev: Sequences
    target: Sequences  # to be dealt out by `draws`
    fixed: tuple[Sequences, Sequences] | None  # development and test data of the target
    measure: str
    grid: Grid


def read(path: Path, limit: int | None = None, chunk: str | None = None) -> Sequences:
    """Read words and labels; with `chunk`, labels are B-X, I-X and O, whatever their type was."""
    rows = read_columns(path).rows()[:limit]
    X = [[[token[0]] for token in sequence] for sequence in rows]
    labels = [[token[-1] for token in sequence] for sequence in rows]
    if chunk is not None:
        labels = [[_untyped(label, chunk) for label in sequence] for sequence in labels]
    return X, labels


def _untyped(label: str, chunk: str) -> str:
    """Leave the type out of a label; types that do not begin with `chunk` are outside."""
    kind, _, name = label.partition("-")
    return f"{kind}-X" if name.startswith(chunk) and name else "O"


def take(data: Sequences, which: Any) -> Sequences:
    """Return some of the sequences."""
    X, y = data
    return [X[i] for i in which], [y[i] for i in which]


def load_task(name: str, folder: Path, n_source: int) -> Task:
    """Read the data of a task."""
    if name == "citations":
        return Task(
            read(folder / "citations_cora" / "train.tsv.gz", n_source),
            read(folder / "citations_cora" / "dev.tsv.gz"),
            read(folder / "citations_fluxcim_cs" / "test.tsv.gz"),
            None,
            "accuracy",
            NARROW,
        )
    corpus, chunk = {"mentions": ("conll2002_esp", ""), "chunks": ("conll2000", "NP")}[name]
    everything = read(folder / corpus / "train.tsv.gz", n_source + 300, chunk)
    n = len(everything[0])
    target = folder / "bc2gm"
    return Task(
        take(everything, range(n - 300)),
        take(everything, range(n - 300, n)),
        read(target / "train.tsv.gz", 4000, ""),
        (read(target / "dev.tsv.gz", 200, ""), read(target / "test.tsv.gz", 1000, "")),
        "F1",
        WIDE,
    )


def draws(task: Task, numbers: range) -> Iterator[tuple[Sequences, Sequences, Sequences]]:
    """Yield examples to train on (in the order in which they are added), development and test."""
    for number in numbers:
        order = np.random.default_rng(number).permutation(len(task.target[0]))
        if task.fixed is not None:
            yield take(task.target, order[: max(SIZES)]), *task.fixed
            continue
        pool, dev, test = np.split(order, [len(order) * 2 // 3, len(order) * 4 // 5])
        yield take(task.target, pool), take(task.target, dev), take(task.target, test)


def fitted(data: Sequences, C: float, weight: Any = None, **params: Any) -> SequenceTagger:
    """Train; a training that stops before its gap is good enough to be chosen or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = SequenceTagger(
            C=C, template=TEMPLATE, gap=GAP, max_passes=300, random_state=0, **params
        )
        return tagger.fit(*data, sample_weight=weight)


def score(tagger: SequenceTagger, data: Sequences, measure: str) -> float:
    """Return the figure by which models are chosen and compared."""
    X, y = data
    report = evaluate(y, tagger.predict(X))
    return report.f1 if measure == "F1" else report.token_accuracy


def settings_of(way: str, grid: Grid) -> list[dict[str, float]]:
    """Return the settings that are tried for a way of training."""
    if way == "nothing":
        return [{"C": C} for C in grid.Cs]
    if way == "union":
        return [{"C": C, "weight": weight} for C in grid.union for weight in grid.weights]
    return [{"C": C, "prior_precision": p} for C in grid.Cs for p in grid.precisions]


def train(
    way: str, setting: dict[str, float], target: Sequences, task: Task, source: SequenceTagger
) -> SequenceTagger:
    """Train in one of the ways."""
    if way == "nothing":
        return fitted(target, setting["C"])
    if way == "prior":
        strength = setting["prior_precision"]
        return fitted(target, setting["C"], prior=source, prior_precision=strength)
    X, y = task.source
    weight = np.r_[np.ones(len(X)), np.full(len(target[0]), setting["weight"])]
    return fitted((X + target[0], y + target[1]), setting["C"], weight)


def run(task: Task, sizes: tuple[int, ...], numbers: range) -> dict[str, Any]:
    """Return the scores of all ways and sizes, draw by draw, and the settings that were chosen."""
    models = [fitted(task.source, C) for C in task.grid.Cs]
    source = max(models, key=lambda model: score(model, task.source_dev, task.measure))
    found: dict[str, Any] = {"measure": task.measure, "source_C": source.C}
    found |= {"scores": {}, "chosen": {}, "seconds": {}}
    for target, dev, test in draws(task, numbers):
        for n in sizes:
            few = take(target, range(n))
            for way in WAYS:
                begin = time.process_time()
                best, tried = source, 1
                if way != "source":
                    settings = settings_of(way, task.grid)
                    tried = len(settings)
                    models = [train(way, setting, few, task, source) for setting in settings]
                    values = [score(model, dev, task.measure) for model in models]
                    best = models[int(np.argmax(values))]
                    chosen = settings[int(np.argmax(values))]
                    found["chosen"].setdefault(f"{way} {n}", []).append(chosen)
                found["scores"].setdefault(f"{way} {n}", []).append(score(best, test, task.measure))
                spent = (time.process_time() - begin) / tried
                found["seconds"].setdefault(f"{way} {n}", []).append(spent)
    return found


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean, and its standard error."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return float(np.mean(values)), spread / math.sqrt(len(values))


def table(found: dict[str, Any], sizes: tuple[int, ...]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| target examples | {' | '.join(WAYS)} | prior - nothing | prior - union |"]
    lines.append("|---" * (len(WAYS) + 3) + "|")
    for n in sizes:
        scores = {way: found["scores"][f"{way} {n}"] for way in WAYS}
        cells = [_cell(scores[way]) for way in WAYS]
        for other in ("nothing", "union"):
            pairs = zip(scores["prior"], scores[other], strict=True)
            cells.append(_cell([a - b for a, b in pairs]))
        lines.append(f"| {n} | {' | '.join(cells)} |")
    return lines


def _cell(values: list[float]) -> str:
    mean, error = mean_and_error(values)
    return f"{100 * mean:.1f} ± {100 * error:.1f}"


def show(name: str, found: dict[str, Any]) -> None:
    """Print what was found."""
    sizes = tuple(int(key.split()[1]) for key in found["scores"] if key.startswith("prior"))
    n_draws = len(found["scores"][f"prior {sizes[0]}"])
    print(f"\n{name}: {found['measure']} in %, {n_draws} draws, source C {found['source_C']:g}")
    print("\n".join(table(found, sizes)))
    for n in sizes:
        times = (f"{way} {np.mean(found['seconds'][f'{way} {n}']):.2f}" for way in WAYS[1:])
        print(f"  seconds of CPU for one training with {n}: {', '.join(times)}", flush=True)


def merged(files: list[Path]) -> dict[str, Any]:
    """Put the outputs of several runs together, the draws of a task one after the other."""
    results: dict[str, Any] = {}
    for file in files:
        for name, found in json.loads(file.read_text("utf-8").splitlines()[-1]).items():
            into = results.setdefault(name, found)
            if into is found:
                continue
            for figure in ("scores", "chosen", "seconds"):
                for key, values in found[figure].items():
                    into[figure].setdefault(key, []).extend(values)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--merge", type=Path, nargs="+", help="outputs to be put together")
    parser.add_argument("--tasks", default="citations,mentions,chunks", help="of %(default)s")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="target examples")
    parser.add_argument("--draws", type=int, default=5, help="how often examples are drawn")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--source", type=int, default=1000, help="most source sequences")
    args = parser.parse_args()
    if args.merge:
        results = merged(args.merge)
        for name, found in results.items():
            show(name, found)
        print(json.dumps(results))
        return
    if args.data is None:
        parser.error("--data FOLDER is missing")
    sizes = tuple(int(n) for n in args.sizes.split(","))
    results = {}
    numbers = range(args.first, args.first + args.draws)
    for name in args.tasks.split(","):
        results[name] = run(load_task(name, args.data, args.source), sizes, numbers)
        show(name, results[name])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
