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

C of both trainings was chosen with ``--choose``, which trains on the first 85 % of the training
file and scores the rest: no test data are seen. Scores are token accuracy, and F1 of chunks for
JNLPBA.
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


@dataclass(frozen=True)
class Task:
    """A corpus, its template and label column, and the C of each training (by ``--choose``)."""

    corpus: str
    template: str
    column: int
    online: float
    batch: float
    f1: bool = False


TASKS = {
    "chunking": Task("conll2000", "chunking@1", 2, 0.1, 0.1),
    "jnlpba": Task("jnlpba", "ner@1", -1, 0.05, 0.1, f1=True),
    "brown": Task("brown_pos", "pos@1", -1, 0.1, 0.2),
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


def choose(name: str, task: Task, data: Path, limit: int | None) -> None:
    """Print the scores on held-out training data for each C."""
    rows = read(data / task.corpus / "train.tsv.gz", limit).rows()
    cut = int(0.85 * len(rows))
    train, held_out = ColumnTable.from_rows(rows[:cut]), ColumnTable.from_rows(rows[cut:])
    for kind, training in (("online", online), ("batch", batch)):
        found = {C: score(training(train, task, C), held_out, task) for C in GRID}
        text = "  ".join(f"C={C:g}: {100 * value:.2f}" for C, value in found.items())
        best = max(found, key=lambda C: found[C])
        print(f"{name:9} {kind:6} {text}   best C={best:g}", flush=True)


def vowpal_wabbit(task: Task, data: Path, limit: int | None) -> dict[str, Any] | None:
    """Return the score and the seconds of Vowpal Wabbit's one pass, if it is installed."""
    if importlib.util.find_spec("vowpalwabbit") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        files = {part: Path(folder) / part for part in ("train", "test")}
        labels, model = Path(folder) / "labels.json", Path(folder) / "model"

        def run(*arguments: Any) -> Any:
            done = subprocess.run(
                [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
            )
            return done.stdout

        for part, file in files.items():
            table = read(data / task.corpus / f"{part}.tsv.gz", limit)
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
        train = files["train"].with_suffix(".vw")
        trained = run(HERE / "peer_vw.py", "train", train, model, labels)
        predictions = Path(folder) / "predictions"
        test = files["test"].with_suffix(".vw")
        run(HERE / "peer_vw.py", "tag", test, model, labels, predictions)
        truth = read(data / task.corpus / "test.tsv.gz", limit).labels(task.column)
        flat = [line for line in predictions.read_text(encoding="utf-8").splitlines() if line]
        ends = truth.offsets.tolist()
        bounds = list(itertools.pairwise(ends))
        gold = [[truth.names[k] for k in truth.codes[a:b].tolist()] for a, b in bounds]
        report = evaluate(gold, [flat[a:b] for a, b in bounds])
    found = json.loads(trained)
    value = report.f1 if task.f1 else report.token_accuracy
    return {"score": float(value), "seconds": found["cpu_total"]}


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
    parser.add_argument("--alone", action="store_true", help="without Vowpal Wabbit")
    parser.add_argument("--choose", action="store_true", help="scores on held-out training data")
    help_quick = f"the first {QUICK} sentences of each file, to see whether all works"
    parser.add_argument("--quick", action="store_true", help=help_quick)
    args = parser.parse_args()
    if not set(args.tasks.split(",")) <= set(TASKS):
        parser.error(f"--tasks takes some of {', '.join(TASKS)}; got {args.tasks}")
    for name in args.tasks.split(","):
        limit = QUICK if args.quick else None
        if args.choose:
            choose(name, TASKS[name], args.data, limit)
            continue
        measure(name, TASKS[name], args.data, limit)
        peer = None if args.alone else vowpal_wabbit(TASKS[name], args.data, limit)
        if peer is not None:
            print(
                f"  Vowpal Wabbit, 1 pass          {100 * peer['score']:6.2f}  "
                f"{peer['seconds']:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
