"""maxmargin beside CRFsuite and Vowpal Wabbit: the same data, the same features, one core.

Claims shown: time of training and of the way from a file to a model, accuracy and F1 of the result,
peak memory, size of the model, speed of tagging, and how long `maxmargin tag` takes to start. They
are ratios measured in one run: every step of every system is a process of its own, one after the
other, pinned to one core.

    python benchmarks/peers.py --data ../shared/data --write docs/benchmarks.md

`maxmargin convert` writes the features that its template makes as a CRFsuite item file, and the
others read these. They are spared the making of features, which maxmargin's time includes. The
package's extra [bench] brings the peers; `--peer-python` names another interpreter that has them.
What is not installed is left out, with a note.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from peer_crfsuite import TIMES, read_items
from peer_vw import OPTIONS

# This process imports no more than it must: on Linux the peak memory of a child that was just
# started is at least that of its parent.

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- benchmarks:peers -->", "<!-- /benchmarks:peers -->"
STARTS = 10  # starts of a process are timed so many times; the best counts
BUSY = 1.1  # wall time over processor time from which on a run on one core was disturbed

Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A corpus, the template for its features, and the column that is learnt (None: the last)."""

    title: str
    corpus: str
    template: str
    label_column: int | None = None
    chunks: bool = True

    def reading(self) -> list[str]:
        """Give the options of `maxmargin` for the column files of this task."""
        column = [] if self.label_column is None else ["--label-column", str(self.label_column)]
        return ["--template", self.template, *column]


TASKS = {
    "chunking": Task("Chunking, CoNLL-2000", "conll2000", "chunking@1", 2),
    "pos": Task("Parts of speech, CoNLL-2000", "conll2000", "pos@1", 1, chunks=False),
    "esp": Task("Named entities, CoNLL-2002 Spanish", "conll2002_esp", "ner@1"),
    "jnlpba": Task("Named entities, JNLPBA", "jnlpba", "ner@1"),
    "bc2gm": Task("Gene mentions, BC2GM", "bc2gm", "ner@1"),
}
OURS, ITEMS = "maxmargin", "maxmargin-items"
SYSTEMS = {
    OURS: "maxmargin",
    ITEMS: "maxmargin, features given as strings",
    "crfsuite-lbfgs": "CRFsuite, L-BFGS",
    "crfsuite-ap": "CRFsuite, averaged perceptron, 10 epochs",
    "crfsuite-pa": "CRFsuite, passive-aggressive, 10 epochs",
    "crfsuite-l2sgd": "CRFsuite, L2-SGD, 50 epochs",
    "vw-1": "Vowpal Wabbit search, 1 pass",
    "vw-3": "Vowpal Wabbit search, 3 passes",
}
LEFT_OUT_BY_DEFAULT = ("crfsuite-l2sgd",)
SCRIPTS = {"crfsuite": HERE / "peer_crfsuite.py", "vw": HERE / "peer_vw.py"}


class StepError(Exception):
    """A process of a system ended badly."""


@contextmanager
def cores(n: int) -> Iterator[None]:
    """Give n cores to processes that are started inside, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-n:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(command: list[str | Path], n_cores: int, timeout: float) -> tuple[str, Record]:
    """Run a command to its end: its standard output, and what the whole process used."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, cores(n_cores):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode != 0:
        why = "took too long" if wall >= timeout else f"ended with {process.returncode}"
        last = (texts[1].strip().splitlines() or [""])[-1]
        print(f"  {why}: {last}", file=sys.stderr)
        raise StepError(why)  # without the process's own words, which may name paths
    scale = 1024 if sys.platform != "darwin" else 1024**2
    used = {
        "process_wall": wall,
        "process_cpu": usage.ru_utime + usage.ru_stime,
        "process_peak_mb": usage.ru_maxrss / scale,
    }
    return texts[0], used


class Bench:
    """Runs the steps of the systems on one task, in a folder for their files."""

    def __init__(self, task: Task, folder: Path, args: argparse.Namespace) -> None:
        self.task, self.folder, self.args = task, folder, args
        self.maxmargin: list[str | Path] = [sys.executable, "-m", "maxmargin"]

    def path(self, name: str) -> Path:
        """Name a file in the folder."""
        return self.folder / name

    def step(self, command: list[Any], n_cores: int = 1) -> Record:
        """Run one step; its last line is a JSON object, to which the process's use is added."""
        output, used = run([str(part) for part in command], n_cores, self.args.timeout)
        lines = output.strip().splitlines()
        result = json.loads(lines[-1]) if lines else {}
        return {**result, **used}

    # The data ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Unpack the column files and let maxmargin turn them into item files."""
        for part in ("train", "test"):
            packed = self.args.data / self.task.corpus / f"{part}.tsv.gz"
            columns, items = self.path(f"{part}.tsv"), self.path(f"{part}.items")
            with (
                gzip.open(packed, "rt", encoding="utf-8", newline="\n") as source,
                columns.open("w", encoding="utf-8", newline="\n") as target,
            ):
                n = 0
                for line in source:
                    n += line == "\n"
                    if self.args.limit is not None and n >= self.args.limit:
                        break
                    target.write(line)
            with self.path(f"{part}.tsv.gz").open("wb") as file:
                file.write(gzip.compress(columns.read_bytes()))
            convert = [*self.maxmargin, "convert", columns, items, "--from", "conll"]
            run([*convert, "--to", "crfsuite", *self.task.reading()], 1, self.args.timeout)

    def describe(self) -> Record:
        """Count sequences, tokens and labels."""
        labels: set[str] = set()
        sizes: Record = {}
        for part in ("train", "test"):
            n = tokens = 0
            for sequence, _ in read_items(self.path(f"{part}.items")):
                n, tokens = n + 1, tokens + len(sequence)
                if part == "train":
                    labels.update(sequence)
            sizes |= {f"n_{part}": n, f"n_{part}_tokens": tokens}
        return {**sizes, "n_labels": len(labels)}

    # The systems ---------------------------------------------------------------------------------

    def measure(self, system: str) -> Record:
        """Train and tag once."""
        if system in (OURS, ITEMS):
            return self._maxmargin(from_items=system == ITEMS)
        peer, _, variant = system.partition("-")
        return self._crfsuite(variant) if peer == "crfsuite" else self._vw(int(variant))

    def _maxmargin(self, from_items: bool) -> Record:
        model = self.path("items.mm" if from_items else "columns.mm")
        if from_items:
            train, reading = self.path("train.items"), ["--format", "crfsuite"]
        else:
            train, reading = self.path("train.tsv.gz"), self.task.reading()
        command: list[Any] = [*self.maxmargin, "train", train, "-m", model, *reading]
        command += ["-C", self.args.C, "--gap", self.args.gap, "--threads", "1", "--json"]
        trained = self.step(command)
        record: Record = {
            "train": trained,
            "parameters": {"C": self.args.C, "gap": self.args.gap},
            "train_seconds": trained["seconds_train"],
            "to_model_seconds": trained["process_wall"],
            "peak_mb": trained["process_peak_mb"],
            "model_bytes": model.stat().st_size,
            "tagging": {},
        }
        if from_items:
            strings = [sys.executable, __file__, "tag-strings", model, self.path("test.items")]
            tagged = self.step([*strings, self.path(f"{ITEMS}.labels")])
            record["tagging"] = tagged["tokens_per_second"]
            return record | self._evaluate(ITEMS)
        evaluate = [*self.maxmargin, "eval", "-m", model, self.path("test.tsv"), "--json"]
        scores = self.step(evaluate)
        for threads in (1, 2):
            script = [sys.executable, __file__, "tag-columns", model, self.path("test.tsv")]
            tagged = self.step([*script, threads], threads)
            name = f"columns, {threads} thread{'s' * (threads > 1)}"
            record["tagging"][name] = tagged["tokens_per_second"]
        record["accuracy"] = scores["token_accuracy"]
        record["f1"] = scores["f1"] if self.task.chunks else None
        return record

    def _crfsuite(self, algorithm: str) -> Record:
        name = f"crfsuite-{algorithm}"
        model, predictions = self.path(f"{name}.model"), self.path(f"{name}.labels")
        script = [self.args.peer_python, SCRIPTS["crfsuite"]]
        train = [*script, "train", self.path("train.items"), model, "--algorithm", algorithm]
        trained = self.step(train)
        tagged = self.step([*script, "tag", self.path("test.items"), model, predictions])
        return {
            "train": trained,
            "parameters": trained["parameters"],
            "train_seconds": trained["seconds_train"],
            "to_model_seconds": trained["seconds_total"],
            "peak_mb": trained["process_peak_mb"],
            "model_bytes": trained["model_bytes"],
            "tagging": {"strings": tagged["tokens_per_second"]},
        } | self._evaluate(name)

    def _vw(self, passes: int) -> Record:
        name = f"vw-{passes}"
        model, predictions = self.path(f"{name}.model"), self.path(f"{name}.labels")
        labels = self.path("vw.json")
        script = [self.args.peer_python, SCRIPTS["vw"]]
        for part in ("train", "test"):
            data = self.path(f"{part}.vw")
            if not data.exists():
                self.step([*script, "convert", self.path(f"{part}.items"), data, labels])
        train = [*script, "train", self.path("train.vw"), model, labels, "--passes", passes]
        trained = self.step(train)
        tagged = self.step([*script, "tag", self.path("test.vw"), model, labels, predictions])
        return {
            "train": trained,
            "parameters": trained["parameters"],
            "train_seconds": None,  # reading and learning are one
            "to_model_seconds": trained["seconds_total"],
            "peak_mb": trained["process_peak_mb"],
            "model_bytes": trained["model_bytes"],
            "tagging": {"feature file": tagged["tokens_per_second"]},
        } | self._evaluate(name)

    def _evaluate(self, name: str) -> Record:
        files = [self.path("test.items"), self.path(f"{name}.labels")]
        result = self.step([sys.executable, __file__, "evaluate", *files])
        return {"accuracy": result["accuracy"], "f1": result["f1"] if self.task.chunks else None}

    def startup(self) -> Record:
        """Tag one sentence with the model, and only import numpy, by turns."""
        sentence = self.path("sentence.tsv")
        with self.path("test.tsv").open(encoding="utf-8") as file:
            sentence.write_text("".join(takewhile(str.strip, file)), encoding="utf-8")
        tag: list[Any] = [*self.maxmargin, "tag", "-m", self.path("columns.mm"), sentence]
        commands = {"maxmargin_tag": tag, "import_numpy": [sys.executable, "-c", "import numpy"]}
        best = dict.fromkeys(commands, math.inf)
        for _ in range(STARTS):
            for name, command in commands.items():
                _, used = run([str(part) for part in command], 1, self.args.timeout)
                best[name] = min(best[name], used["process_wall"])
        return {**best, "model_mb": self.path("columns.mm").stat().st_size / 1e6}


def best_of(records: list[Record]) -> Record:
    """Give the quickest run from file to model, with the best of every other time."""
    best = dict(min(records, key=lambda record: record["to_model_seconds"]))
    times = [r["train_seconds"] for r in records if r["train_seconds"] is not None]
    best["train_seconds"] = min(times, default=None)
    best["tagging"] = {
        name: max(record["tagging"][name] for record in records) for name in best["tagging"]
    }
    best["busy"] = best["train"]["process_wall"] > BUSY * best["train"]["process_cpu"]
    return best


def measure_task(task: Task, systems: list[str], args: argparse.Namespace) -> Record:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(task, Path(folder), args)
        print(f"{task.title}: preparing", file=sys.stderr)
        try:
            bench.prepare()
        except StepError as error:
            raise SystemExit(f"cannot prepare the data: {error}") from None
        result: Record = {"title": task.title, **bench.describe(), "systems": {}, "failed": {}}
        runs: dict[str, list[Record]] = {}
        # Round by round, not system by system: a slow minute then meets all of them.
        for _ in range(args.repeat):
            for system in systems:
                if system in result["failed"]:
                    continue
                print(f"{task.title}: {SYSTEMS[system]}", file=sys.stderr)
                try:
                    runs.setdefault(system, []).append(bench.measure(system))
                except StepError as error:
                    result["failed"][system] = str(error)
        for system, records in runs.items():
            if system not in result["failed"] and records:
                result["systems"][system] = best_of(records)
        if OURS in result["systems"]:
            result["n_features"] = result["systems"][OURS]["train"].get("n_features")
            try:
                result["startup"] = bench.startup()
            except StepError as error:
                result["failed"]["start-up"] = str(error)
    return result


# Steps that need maxmargin, in processes of their own ---------------------------------------------


def evaluate(items: Path, predictions: Path) -> Record:
    """Compare a file of labels with the truth in an item file, by the rules of conlleval."""
    from maxmargin.metrics import evaluate as score

    predicted: list[list[str]] = []
    for block in predictions.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        predicted.append(block.split("\n"))
    report = score([labels for labels, _ in read_items(items)], predicted)
    return {"accuracy": report.token_accuracy, "f1": report.f1}


def _speed(n_tokens: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Tokens per second, best of a few times, and what the work gave."""
    best, result = math.inf, None
    for _ in range(TIMES):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return n_tokens / best, result


def tag_columns(model: Path, columns: Path, n_threads: Path) -> Record:
    """Tag the columns of a file, which are in memory as strings: features and labels."""
    from maxmargin.io.columns import read_columns
    from maxmargin.io.tagger_file import load_tagger

    threads = int(str(n_threads))
    table, tagger = read_columns(columns), load_tagger(model)
    tagger.chain.encoder.threads = threads

    def work() -> Any:
        batch = tagger.chain.encoder.transform(table)
        return tagger.chain.predict_encoded(batch, tagger.weights, threads)

    speed, _ = _speed(table.n_tokens, work)
    return {"n_tokens": table.n_tokens, "tokens_per_second": speed}


def tag_strings(model: Path, items: Path, predictions: Path) -> Record:
    """Tag lists of lists of strings, as CRFsuite is given them, and the same encoded beforehand."""
    import maxmargin
    from peer_crfsuite import write_labels

    tagger = maxmargin.load(model)
    X = [tokens for _, tokens in read_items(items)]
    n_tokens = sum(map(len, X))
    speed, predicted = _speed(n_tokens, lambda: tagger.predict(X))
    write_labels(predictions, predicted)
    speeds = {"strings": speed}
    predict_encoded = getattr(tagger.structure_, "predict_encoded", None)
    if predict_encoded is not None:
        batch = tagger.structure_.encoder.transform(X)
        weights = tagger.weights_
        speeds["encoded features"], _ = _speed(n_tokens, lambda: predict_encoded(batch, weights, 1))
    return {"n_tokens": n_tokens, "tokens_per_second": speeds}


HIDDEN: dict[str, Callable[..., Record]] = {
    "evaluate": evaluate,
    "tag-columns": tag_columns,
    "tag-strings": tag_strings,
}


# The report ---------------------------------------------------------------------------------------


def _number(value: float | None, digits: int = 2, factor: float = 1.0) -> str:
    return "–" if value is None else f"{factor * value:,.{digits}f}"


def _ratio(value: float | None, base: float | None) -> str:
    if value is None or base is None:
        return "–"
    ratio = value / base
    return f"{ratio:.1f}" if ratio >= 9.95 else f"{ratio:.2f}"


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    """Give a Markdown table with padded cells, so that it can be read on a terminal too."""
    cells = [header, *rows]
    widths = [max(3, *(len(row[k]) for row in cells)) for k in range(len(header))]
    lines = []
    for row in cells:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append(f"| {' | '.join(padded)} |")
    rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, f"| {' | '.join(rules)} |")
    return lines


def task_report(result: Record) -> list[str]:
    systems = result["systems"]
    ours: Record = systems.get(OURS, {})
    sizes = (
        f"{result['n_train']:,} training sequences with {result['n_train_tokens']:,} tokens, "
        f"{result['n_test']:,} test sequences with {result['n_test_tokens']:,}; "
        f"{result['n_labels']} labels"
    )
    if result.get("n_features"):
        sizes += f", {result['n_features']:,} features"
    rows = [
        [
            SYSTEMS[name],
            _number(record["train_seconds"]),
            _ratio(record["train_seconds"], ours.get("train_seconds")),
            _number(record["to_model_seconds"]),
            _ratio(record["to_model_seconds"], ours.get("to_model_seconds")),
            _number(record["accuracy"], 2, 100),
            _number(record["f1"], 2, 100),
            _number(record["peak_mb"], 0),
            _number(record["model_bytes"], 1, 1e-6),
        ]
        for name, record in systems.items()
    ]
    header = ["system", "train s", "ratio", "file to model s", "ratio"]
    header += ["accuracy %", "F1 %", "peak MB", "model MB"]
    lines = [f"### {result['title']}", "", f"{sizes}.", "", *_table(header, rows), ""]

    # Like is compared with like: strings with strings, a file with a file.
    base = {
        "strings": systems.get(ITEMS, {}).get("tagging", {}).get("strings"),
        "feature file": ours.get("tagging", {}).get("columns, 1 thread"),
    }
    rows = [
        [
            SYSTEMS[name].removesuffix(", features given as strings"),
            source,
            _number(speed, 0),
            _ratio(speed, base.get(source)) if base.get(source) else "–",
        ]
        for name, record in systems.items()
        for source, speed in record["tagging"].items()
    ]
    lines += [*_table(["tagging", "from", "tokens/s", "ratio"], rows), ""]
    startup = result.get("startup")
    if startup:
        tag, bare = startup["maxmargin_tag"], startup["import_numpy"]
        lines += [
            f"`maxmargin tag` on one sentence, with this model of {startup['model_mb']:.1f} MB, "
            f"takes {tag:.2f} s, {_ratio(tag, bare)} times `python -c 'import numpy'` "
            f"(best of {STARTS}, by turns).",
            "",
        ]
    busy = [SYSTEMS[name] for name, record in systems.items() if record["busy"]]
    if busy:
        lines += [f"Other processes disturbed the training of: {'; '.join(busy)}.", ""]
    for name, why in result["failed"].items():
        lines += [f"Left out: {SYSTEMS.get(name, name)} ({why}).", ""]
    return lines


EXPLANATION = """\
Every step of every system ran as a process of its own, one after the other, pinned to one core.
What this page claims are the ratios: both sides of each were measured in one run on one machine.
The seconds beside them depend on that machine.

- Features are identical: those of maxmargin's template, handed to the others as strings.
- *train*: learning alone, with all data in memory. A ratio of 5 means five times maxmargin's time.
- *file to model*: for maxmargin the whole process, from the start of Python over making the
  features of a file of words to writing the model. For the others reading the finished features,
  learning and writing; the start of their process and the making of features are not counted.
  Vowpal Wabbit learns while it reads, so it has this number only. "Features given as strings" is
  maxmargin on the very file that CRFsuite reads.
- *peak*: largest resident memory of the training process.
- Tagging from *strings*: lists of feature strings in Python, made beforehand. From *columns*: the
  words are in memory, and maxmargin makes the features and tags. From a *feature file*: Vowpal
  Wabbit reads finished features and tags; the loading of its model is subtracted. A ratio below 1
  is slower than maxmargin: on the same strings, or from its columns with one thread.
- Two threads need both cores, and what else ran then shows; `benchmarks/tagging.py` measures what a
  second thread brings, by turns, with nothing else running.
- CRFsuite has its default parameters but for the number of epochs. F1 is that of conlleval.
"""


def report(results: Record) -> str:
    intro = (
        f"Measured on {results['date']} with {results['versions']}, by `{results['command']}`; "
        f"maxmargin with C = {results['C']} to a certified gap of {results['gap']}."
    )
    names = {name for task in results["tasks"].values() for name in task["systems"]}
    if any(name.startswith("vw-") for name in names):
        intro += f" Vowpal Wabbit with `{OPTIONS}`."
    lines = textwrap.wrap(intro, 100, break_long_words=False, break_on_hyphens=False)
    lines.append("")
    for task in results["tasks"].values():
        lines += task_report(task)
    lines += [f"Left out: {note}." for note in results["notes"]]
    return "\n".join(lines).strip() + "\n"


def write_page(page: Path, text: str) -> None:
    """Put the report between the markers of a page, which is made if it is not there."""
    if page.exists():
        before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{page}: no {BEGIN} followed by {END}")
    else:
        before, after = f"# Benchmarks\n\n## Beside other systems\n\n{EXPLANATION}\n", "\n"
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def shown_command(args: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """Give the command that repeats this run, without the paths of this machine."""
    parts = ["python benchmarks/peers.py"]
    for name in ("tasks", "systems", "repeat", "C", "gap", "limit"):
        value = getattr(args, name)
        if value != parser.get_default(name):
            parts.append(f"--{name} {value}")
    return " ".join(parts)


def find_peers(wanted: list[str], args: argparse.Namespace) -> tuple[list[str], list[str], str]:
    """Ask which peers are installed: the systems that can run, notes, all versions."""
    code = "from importlib.metadata import version; print(version('maxmargin'))"
    output, _ = run([sys.executable, "-c", code], 1, args.timeout)
    versions = [f"maxmargin {output.strip()}"]
    notes = []
    systems = list(wanted)
    for peer, script in SCRIPTS.items():
        if not any(system.startswith(f"{peer}-") for system in wanted):
            continue
        try:
            output, _ = run([args.peer_python, str(script), "version"], 1, args.timeout)
            found = json.loads(output)
            versions.append(f"{found['name']} {found['version']}")
        except StepError:
            systems = [system for system in systems if not system.startswith(f"{peer}-")]
            notes.append(f"{peer}, which is not installed")
    return systems, notes, ", ".join(versions)


def chosen(text: str, known: dict[str, Any], what: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise SystemExit(f"unknown {what} {', '.join(unknown)}: there are {', '.join(known)}")
    return names


def parse_arguments() -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("MAXMARGIN_DATA", "../shared/data")),
        help="folder of the corpora (default: MAXMARGIN_DATA, else ../shared/data)",
    )
    systems = [name for name in SYSTEMS if name not in LEFT_OUT_BY_DEFAULT]
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--systems", default=",".join(systems), help=f"of {', '.join(SYSTEMS)}")
    parser.add_argument("--limit", type=int, help="only so many sequences, to try this out")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the best of each counts")
    parser.add_argument("--C", default="0.1", help="maxmargin's C")
    parser.add_argument("--gap", default="0.01", help="maxmargin's relative gap")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one process")
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter that has the peers installed"
    )
    parser.add_argument("--write", type=Path, help="page to put the tables into")
    parser.add_argument("--json", type=Path, help="file for the raw results")
    return parser.parse_args(), parser


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in HIDDEN:
        print(json.dumps(HIDDEN[sys.argv[1]](*map(Path, sys.argv[2:]))))
        return 0
    args, parser = parse_arguments()
    tasks = chosen(args.tasks, TASKS, "task")
    wanted = chosen(args.systems, SYSTEMS, "system")
    systems, notes, versions = find_peers(wanted, args)
    results: Record = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions,
        "command": shown_command(args, parser),
        "C": args.C,
        "gap": args.gap,
        "notes": notes,
        "tasks": {},
    }
    for name in tasks:
        results["tasks"][name] = measure_task(TASKS[name], systems, args)
        print("\n".join(task_report(results["tasks"][name])), flush=True)
        if args.json is not None:  # after every task: a long run may be stopped
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        if args.write is not None:
            write_page(args.write, report(results))
    for note in notes:
        print(f"Left out: {note}.")
    return 1 if any(task["failed"] for task in results["tasks"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
