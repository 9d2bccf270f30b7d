"""One online pass beside batch training and Vowpal Wabbit's one pass.

    python benchmarks/online.py --data ../shared/data
    python benchmarks/online.py --data ../shared/data --choose

For each task the tagger reads the training file and learns from it in one call of ``partial_fit``:
Algorithm 2 of the dual-coordinate paper, each sentence looked at once. Then `refine` looks at all
of them a second and a third time. After each pass the certificate is computed, with a verification
pass over all sentences, and the test score. Beside it: batch training (SDM to a gap of 1 %), and
one pass of Vowpal Wabbit's learning to search over the same features (`peer_vw.py`; left out where
the package is not installed). Times are processor seconds from file to model; Vowpal Wabbit reads
a text of its own with the features in it, which it did not have to make.

``--choose`` trains on the first 85 % of the training file and scores the rest, for four values of C
of both trainings and three learning rates of Vowpal Wabbit: no test data are seen. Scores are token
accuracy, and F1 of chunks for JNLPBA.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxmargin import SequenceTagger
from maxmargin.features.columns import ColumnTable
from maxmargin.io.columns import read_columns
from maxmargin.metrics import evaluate

HERE = Path(__file__).resolve().parent
QUICK = 300
GRID = (0.02, 0.05, 0.1, 0.2)
#: Learning rates of Vowpal Wabbit, whose own is 0.5.
RATES = (0.1, 0.5, 2.0)


@dataclass(frozen=True)
class Task:
    """A corpus, its template and label column, and what ``--choose`` chose."""

    corpus: str
    template: str
    column: int
    online: float
    batch: float
    rate: float
    f1: bool = False


TASKS = {
    "chunking": Task("conll2000", "chunking@1", 2, 0.1, 0.1, 0.5),
    "jnlpba": Task("jnlpba", "ner@1", -1, 0.05, 0.1, 0.5, f1=True),
    "brown": Task("brown_pos", "pos@1", -1, 0.1, 0.2, 0.5),
}


def read(path: Path, limit: int | None) -> ColumnTable:
    table = read_columns(path)
    return table if limit is None else ColumnTable.from_rows(table.rows()[:limit])


def score(tagger: SequenceTagger, table: ColumnTable, task: Task) -> float:
    truth = table.labels(task.column)
    names, offsets = truth.names, truth.offsets
    labels = [
        [names[k] for k in truth.codes[a:b].tolist()]
        for a, b in itertools.pairwise(offsets)
    ]
    report = evaluate(labels, tagger.predict(table))
    return float(report.f1 if task.f1 else report.token_accuracy)


def online(table: ColumnTable, task: Task, C: float) -> SequenceTagger:
    X, y = table.labelled(task.column)
    tagger = SequenceTagger(template=task.template, C=C, gap=1e-4, random_state=0)
    return tagger.partial_fit(X, y)


def batch(table: ColumnTable, task: Task, C: float) -> SequenceTagger:
    X, y = table.labelled(task.column)
    return SequenceTagger(template=task.template, C=C, gap=0.01, random_state=0).fit(X, y)


def choose(name: str, task: Task, data: Path, limit: int | None, *, ours: bool, vw: bool) -> None:
    """Print the scores on held-out training data for each C, and for each rate."""
    rows = read(data / task.corpus / "train.tsv.gz", limit).rows()
    cut = int(0.85 * len(rows))
    train, held_out = ColumnTable.from_rows(rows[:cut]), ColumnTable.from_rows(rows[cut:])
    for kind, training in (("online", online), ("batch", batch)) if ours else ():
        found = {C: score(training(train, task, C), held_out, task) for C in GRID}
        print_best(name, kind, "C", found)
    if vw:
        runs = vowpal_wabbit(task, train, held_out, RATES)
        print_best(name, "VW", "rate", {rate: run["score"] for rate, run in runs.items()})


def print_best(name: str, kind: str, what: str, found: dict[float, float]) -> None:
    text = "  ".join(f"{what}={x:g}: {100 * value:.2f}" for x, value in found.items())
    best = max(found, key=lambda x: found[x])
    print(f"{name:9} {kind:6} {text}   best {what}={best:g}", flush=True)


def vowpal_wabbit(
    task: Task, train_table: ColumnTable, test_table: ColumnTable, rates: Sequence[float]
) -> dict[float, dict[str, Any]]:
    """Return the score and the seconds of one pass of Vowpal Wabbit for each learning rate."""
    tables = {"train": train_table, "test": test_table}
    with tempfile.TemporaryDirectory() as folder:
        files = {part: Path(folder) / part for part in ("train", "test")}
        labels, model = Path(folder) / "labels.json", Path(folder) / "model"

        def run(*arguments: Any) -> Any:
            done = subprocess.run(
                [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
            )
            return done.stdout

        for part, file in files.items():
            table = tables[part]
            columns = file.with_suffix(".tsv")
            text = "".join(
                "".join(" ".join(row) + "\n" for row in sentence) + "\n"
                for sentence in table.rows()
            )
            columns.write_text(text, encoding="utf-8")
            items = file.with_suffix(".items")
            convert = ["-m", "maxmargin", "convert", columns, items, "--from", "conll"]
            column = ["--label-column", task.column] if task.column >= 0 else []
            run(*convert, "--to", "crfsuite", "--template", task.template, *column)
            run(HERE / "peer_vw.py", "convert", items, file.with_suffix(".vw"), labels)
        truth = test_table.labels(task.column)
        bounds = list(itertools.pairwise(truth.offsets.tolist()))
        gold = [[truth.names[k] for k in truth.codes[a:b].tolist()] for a, b in bounds]
        results = {}
        for rate in rates:
            train = files["train"].with_suffix(".vw")
            trained = run(HERE / "peer_vw.py", "train", train, model, labels, "--rate", rate)
            predictions = Path(folder) / "predictions"
            test = files["test"].with_suffix(".vw")
            run(HERE / "peer_vw.py", "tag", test, model, labels, predictions)
            lines = predictions.read_text(encoding="utf-8").splitlines()
            flat = [line for line in lines if line]
            report = evaluate(gold, [flat[a:b] for a, b in bounds])
            value = report.f1 if task.f1 else report.token_accuracy
            results[rate] = {"score": float(value), "seconds": json.loads(trained)["cpu_total"]}
    return results


def measure(name: str, task: Task, data: Path, limit: int | None) -> None:
    train, test = (data / task.corpus / f"{part}.tsv.gz" for part in ("train", "test"))
    held = read(test, limit)
    begin = time.process_time()
    fitted = batch(read(train, limit), task, task.batch)
    seconds = time.process_time() - begin
    best = score(fitted, held, task)
    print(
        f"{name}: {'F1' if task.f1 else 'accuracy'}, {fitted.n_examples_} sentences\n"
        f"  batch, SDM to 1 %      C={task.batch:<5g} {100 * best:6.2f}  {seconds:6.1f} s  "
        f"gap {100 * fitted.certificate_.gap:5.1f} %",
        flush=True,
    )
    del fitted
    begin = time.process_time()
    tagger = online(read(train, limit), task, task.online)
    seconds = time.process_time() - begin
    for passes in (1, 2, 3):
        if passes > 1:
            begin = time.process_time()
            tagger.refine()
            seconds += time.process_time() - begin
        found = score(tagger, held, task)
        certificate = tagger.certificate_
        print(
            f"  online, {passes} pass{'es' if passes > 1 else '  '}       C={task.online:<5g} "
            f"{100 * found:6.2f}  {seconds:6.1f} s  gap {100 * certificate.gap:5.1f} %  "
            f"primal {certificate.primal:.1f}, dual {certificate.dual:.1f}; "
            f"{100 * found / best:.2f} % of batch",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of %(default)s")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--alone", action="store_true", help="without Vowpal Wabbit")
    who.add_argument("--peer", action="store_true", help="Vowpal Wabbit only")
    parser.add_argument("--choose", action="store_true", help="scores on held-out training data")
    help_quick = f"the first {QUICK} sentences of each file, to see whether all works"
    parser.add_argument("--quick", action="store_true", help=help_quick)
    args = parser.parse_args()
    if not set(args.tasks.split(",")) <= set(TASKS):
        parser.error(f"--tasks takes some of {', '.join(TASKS)}; got {args.tasks}")
    vw = not args.alone and importlib.util.find_spec("vowpalwabbit") is not None
    if args.peer and not vw:
        parser.error("--peer: the package vowpalwabbit is not installed")
    for name in args.tasks.split(","):
        limit, task = QUICK if args.quick else None, TASKS[name]
        if args.choose:
            choose(name, task, args.data, limit, ours=not args.peer, vw=vw)
            continue
        if not args.peer:
            measure(name, task, args.data, limit)
        if vw:
            folder = args.data / task.corpus
            train, test = (read(folder / f"{part}.tsv.gz", limit) for part in ("train", "test"))
            peer = vowpal_wabbit(task, train, test, [task.rate])[task.rate]
            print(
                f"  Vowpal Wabbit, 1 pass  rate={task.rate:<4g} {100 * peer['score']:6.2f}  "
                f"{peer['seconds']:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
