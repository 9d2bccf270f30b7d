"""Serving a tagger: latency of single sentences, throughput by threads and processes, memory.

Claims shown, for docs/serving.md, as ratios of one run:

- what a sentence costs that is tagged by itself, over the same sentence in a call with all others
  (median, 99th percentile, and per token);
- what threads within a call, threads of Python that share a tagger, and processes bring;
- what K processes with the same model need of memory together, above what the library itself needs:
  each reads the file, each maps it, or all are forked from one that has loaded it. Counted is the
  proportional set size of Linux, in which a page that K processes share counts 1/K for each, so
  that the sum is what the machine really spends.

    python benchmarks/serving.py --data ../shared/data

The models: CoNLL-2000 chunking (22 labels), and part-of-speech tags of the Brown corpus (181
labels, a full matrix of some 280 MB). The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WARM = 100  # sentences before anything is measured
WAYS = ("read", "mapped", "forked")


class Task(NamedTuple):
    """A corpus, and how a model of it is trained."""

    corpus: str
    options: tuple[str, ...]
    columns: int  # that the template reads


TASKS = {
    "chunking": Task("conll2000", ("--template", "chunking@1"), 2),
    "brown": Task("brown_pos", ("--template", "pos@1", "--gap", "0.1"), 1),
}


def sentences_of(folder: Path, task: Task, limit: int | None) -> list[list[list[str]]]:
    """Return test sentences without their labels, as lists of rows of strings."""
    from maxmargin import read_columns

    rows = read_columns(folder / task.corpus / "test.tsv.gz").rows()[:limit]
    return [[list(row[: task.columns]) for row in sentence] for sentence in rows]


def train(folder: Path, task: Task, model: Path, limit: int | None) -> None:
    """Write a model of a task."""
    from maxmargin.cli.main import main as maxmargin

    source = folder / task.corpus / "train.tsv.gz"
    if limit is not None:
        from maxmargin import read_columns

        rows = read_columns(source).rows()[:limit]
        source = model.with_suffix(".tsv")
        text = "\n\n".join("\n".join("\t".join(row) for row in sentence) for sentence in rows)
        source.write_text(f"{text}\n", encoding="utf-8")
    command = ["train", str(source), "-m", str(model), "-q", *task.options]
    if maxmargin(command) != 0:
        raise SystemExit(f"training failed: maxmargin {' '.join(command)}")


def one_by_one(tagger: Any, sentences: list[Any]) -> list[int]:
    """Tag each sentence by a call of its own; return the nanoseconds of each."""
    clock = time.perf_counter_ns
    taken = []
    for sentence in sentences:
        begin = clock()
        tagger.predict([sentence])
        taken.append(clock() - begin)
    return taken


def latency(tagger: Any, sentences: list[Any], rounds: int) -> dict[str, float]:
    """Return percentiles of the microseconds of single sentences: the best of some rounds each."""
    one_by_one(tagger, sentences[:WARM])
    best = np.min([one_by_one(tagger, sentences) for _ in range(rounds)], axis=0) / 1e3
    every = np.array(one_by_one(tagger, sentences)) / 1e3  # with what disturbs a server, too
    n_tokens = sum(map(len, sentences))
    return {
        "p50_us": float(np.percentile(best, 50)),
        "p99_us": float(np.percentile(best, 99)),
        "p99_one_round_us": float(np.percentile(every, 99)),
        "tokens_per_second": n_tokens / (best.sum() / 1e6),
    }


def seconds_of(work: Callable[[], Any], rounds: int) -> float:
    """Return the least wall time of some rounds."""
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def in_threads(tagger: Any, sentences: list[Any], n_threads: int) -> None:
    """Tag all sentences, one a call, by some threads of Python that share a tagger."""
    shares = [sentences[k::n_threads] for k in range(n_threads)]
    threads = [threading.Thread(target=one_by_one, args=(tagger, share)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def memory_kb() -> dict[str, int]:
    """Return resident, proportional and private memory of this process (Linux), in kB."""
    gc.collect()
    values = {}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, number, *_ = line.split()
        values[name.rstrip(":")] = int(number)
    private = values["Private_Clean"] + values["Private_Dirty"]
    return {"rss": values["Rss"], "pss": values["Pss"], "private": private}


def worker(
    model: str,
    how: str,
    sentences: list[Any],
    *,
    rounds: int,
    together: Any,
    answers: Any,
    loaded: Any,
) -> None:
    """Serve in a process of its own: load, tag one by one, and say what it took."""
    from maxmargin import SequenceTagger, load  # a process without a model has the library, too

    assert SequenceTagger
    begin = time.perf_counter()
    tagger = loaded if how == "forked" else None
    if tagger is None and model:
        tagger = load(model, mmap=how == "mapped")
    taken = {"load": time.perf_counter() - begin}
    if tagger is not None:
        one_by_one(tagger, sentences[:WARM])
    together.wait()
    if tagger is not None:
        taken["serve"] = seconds_of(lambda: one_by_one(tagger, sentences), rounds)
    together.wait()  # nobody ends before all have looked at their memory
    taken |= memory_kb() if Path("/proc/self/smaps_rollup").exists() else {}
    together.wait()
    answers.put(taken)


def in_processes(
    model: Path | None, how: str, sentences: list[Any], count: int, rounds: int
) -> list[dict[str, float]]:
    """Return what each of some processes measured that serve the same model at the same time."""
    context: Any = multiprocessing.get_context("fork" if how == "forked" else "spawn")
    loaded = None
    if how == "forked" and model is not None:
        from maxmargin import load

        loaded = load(model)
        loaded.predict(sentences[:1])
    together, answers = context.Barrier(count), context.Queue()
    shared = (str(model or ""), how)
    settings = {"rounds": rounds, "together": together, "answers": answers, "loaded": loaded}
    processes = [
        context.Process(target=worker, args=(*shared, sentences[k::count]), kwargs=settings)
        for k in range(count)
    ]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return found


def throughput(path: Path, sentences: list[Any], rounds: int) -> dict[str, float]:
    """Return tokens per second of the ways to use more than one core."""
    from maxmargin import load

    tagger = load(path)
    n_tokens = sum(map(len, sentences))
    result = {}
    for n_threads in (1, 2):
        tagger.set_params(n_jobs=n_threads)
        seconds = seconds_of(lambda: tagger.predict(sentences), rounds)
        result[f"one call, {n_threads} threads"] = n_tokens / seconds
    tagger.set_params(n_jobs=1)
    for count in (1, 2, 4):
        seconds = seconds_of(lambda n=count: in_threads(tagger, sentences, n), rounds)  # type: ignore[misc]
        result[f"single sentences, {count} Python threads"] = n_tokens / seconds
    for count in (1, 2):
        found = in_processes(path, "read", sentences, count, rounds)
        slowest = max(answer["serve"] for answer in found)
        result[f"single sentences, {count} processes"] = n_tokens / slowest
    return result


def memory(path: Path, sentences: list[Any], count: int) -> dict[str, Any]:
    """Return what a model costs some processes together, in MB above processes without one."""
    result: dict[str, Any] = {"file_mb": path.stat().st_size / 1e6}
    for how in WAYS:
        # The bare ones too are forked from a process without the model, or started afresh.
        bare = in_processes(None, how, sentences[:WARM], count, 1)
        found = in_processes(path, how, sentences[:WARM], count, 1)
        total = sum(answer["pss"] for answer in found)
        result[how] = {
            "together_mb": (total - sum(answer["pss"] for answer in bare)) * 1024 / 1e6,
            "rss_mb": float(np.mean([answer["rss"] for answer in found])) * 1024 / 1e6,
            "private_mb": float(np.mean([answer["private"] for answer in found])) * 1024 / 1e6,
            "load_ms": min(answer["load"] for answer in found) * 1e3,
        }
    return result


def report(name: str, about: dict[str, Any], count: int) -> None:
    """Print what was measured of a model."""
    single, rates = about["latency"], about["throughput"]
    whole = rates["one call, 1 threads"]
    print(f"\n{name}: a model file of {about['memory']['file_mb']:.1f} MB")
    print(
        f"  a sentence by itself: median {single['p50_us']:.0f} µs, 99 % within "
        f"{single['p99_us']:.0f} µs (in one round, with what disturbed it, "
        f"{single['p99_one_round_us']:.0f} µs)"
    )
    print(f"  per token {whole / single['tokens_per_second']:.2f} times as long as in one call")
    for way, rate in rates.items():
        print(f"  {way}: {rate:,.0f} tokens/s, {rate / whole:.2f} times one call with one thread")
    for how in WAYS:
        if how in about["memory"]:
            cost = about["memory"][how]
            print(
                f"  {count} processes, {how}: {cost['together_mb']:.0f} MB together above bare "
                f"ones; resident {cost['rss_mb']:.0f} MB each, of which private "
                f"{cost['private_mb']:.0f}; loaded in {cost['load_ms']:.0f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts")
    parser.add_argument("--processes", type=int, default=4, help="whose memory is compared")
    parser.add_argument("--train-limit", type=int, help="training sentences (default: all)")
    parser.add_argument("--limit", type=int, default=2000, help="sentences that are tagged")
    args = parser.parse_args()
    tasks = args.tasks.split(",")
    if not set(tasks) <= set(TASKS):
        parser.error(f"--tasks takes some of {', '.join(TASKS)}; got {args.tasks}")
    from maxmargin import load

    result = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in tasks:
            path = Path(temporary) / f"{name}.mm"
            # In a process of its own, so that what training leaves behind is not inherited.
            context = multiprocessing.get_context("spawn")
            training = context.Process(
                target=train, args=(args.data, TASKS[name], path, args.train_limit)
            )
            training.start()
            training.join()
            if training.exitcode != 0:
                raise SystemExit(f"the training of {name} failed")
            sentences = sentences_of(args.data, TASKS[name], args.limit)
            about: dict[str, Any] = {}
            about["memory"] = {"file_mb": path.stat().st_size / 1e6}
            if Path("/proc/self/smaps_rollup").exists():
                about["memory"] = memory(path, sentences, args.processes)
            about["latency"] = latency(load(path), sentences, args.rounds)
            about["throughput"] = throughput(path, sentences, args.rounds)
            report(name, about, args.processes)
            result[name] = about
    print(json.dumps(result))


if __name__ == "__main__":
    main()
