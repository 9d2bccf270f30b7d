"""CRFsuite, through python-crfsuite, as one of the systems of `peers.py`: one step per process.

    python benchmarks/peer_crfsuite.py version
    python benchmarks/peer_crfsuite.py train ITEMS MODEL --algorithm ap
    python benchmarks/peer_crfsuite.py tag ITEMS MODEL PREDICTIONS

Each prints one JSON object. ITEMS is a CRFsuite item file, which `read_items` reads.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Sequence = tuple[list[str], list[list[str]]]

#: What differs from CRFsuite's defaults: the online learners get ten epochs, L-BFGS its own stop.
PARAMETERS: dict[str, dict[str, Any]] = {
    "lbfgs": {},
    "ap": {"max_iterations": 10},
    "pa": {"max_iterations": 10},
    "l2sgd": {"max_iterations": 50},
}
TIMES = 3  # tagging is timed so many times; the best counts

_ESCAPED = re.compile(r"\\([\\:])")
_PLAIN_COLON = re.compile(r"(?<!\\)(?:\\\\)*:")


def _attribute(text: str) -> str:
    if "\\" not in text and ":" not in text:
        return text
    if _PLAIN_COLON.search(text):
        raise ValueError(f"attributes with values are not expected here: {text!r}")
    return _ESCAPED.sub(r"\1", text)


def read_items(path: Path) -> Iterator[Sequence]:
    """Yield labels and attributes of the sequences of an item file, one after the other."""
    labels: list[str] = []
    tokens: list[list[str]] = []
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            label, *attributes = line.rstrip("\n").split("\t")
            if label:
                labels.append(_attribute(label))  # escaped, as attributes are
                tokens.append([_attribute(text) for text in attributes])
            elif labels:
                yield labels, tokens
                labels, tokens = [], []
    if labels:
        yield labels, tokens


def write_labels(path: Path, sequences: Iterable[list[str]]) -> None:
    """One label per line, a blank line after each sequence."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for labels in sequences:
            file.writelines(f"{label}\n" for label in labels)
            file.write("\n")


def train(items: Path, model: Path, algorithm: str) -> dict[str, Any]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, PARAMETERS[algorithm], verbose=False)
    append = append_cpu = 0.0
    begin, begin_cpu = time.perf_counter(), time.process_time()
    # Sequence by sequence: the Python strings of the whole corpus would count as CRFsuite's memory.
    for labels, tokens in read_items(items):
        before, before_cpu = time.perf_counter(), time.process_time()
        trainer.append(tokens, labels)
        append += time.perf_counter() - before
        append_cpu += time.process_time() - before_cpu
    middle, middle_cpu = time.perf_counter(), time.process_time()
    trainer.train(str(model))
    end, end_cpu = time.perf_counter(), time.process_time()
    return {
        "seconds_read": middle - begin - append,
        "seconds_append": append,
        "seconds_train": end - middle,
        "cpu_read": middle_cpu - begin_cpu - append_cpu,
        "cpu_append": append_cpu,
        "cpu_train": end_cpu - middle_cpu,
        "seconds_total": end - begin,
        "model_bytes": model.stat().st_size,
        "parameters": {"algorithm": algorithm, **PARAMETERS[algorithm]},
    }


def tag(items: Path, model: Path, predictions: Path) -> dict[str, Any]:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    X = [tokens for _, tokens in read_items(items)]
    n_tokens = sum(map(len, X))
    best = math.inf
    predicted: list[list[str]] = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        predicted = [tagger.tag(tokens) for tokens in X]
        best = min(best, time.perf_counter() - begin)
    write_labels(predictions, predicted)
    return {"n_tokens": n_tokens, "tokens_per_second": n_tokens / best}


def version() -> dict[str, Any]:
    from importlib.metadata import version as installed

    import pycrfsuite

    wrapper = f"python-crfsuite {installed('python-crfsuite')}"
    return {"name": "CRFsuite", "version": f"{pycrfsuite.CRFSUITE_VERSION} ({wrapper})"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    training = commands.add_parser("train")
    training.add_argument("items", type=Path)
    training.add_argument("model", type=Path)
    training.add_argument("--algorithm", choices=sorted(PARAMETERS), required=True)
    tagging = commands.add_parser("tag")
    tagging.add_argument("items", type=Path)
    tagging.add_argument("model", type=Path)
    tagging.add_argument("predictions", type=Path)
    args = parser.parse_args()
    if args.command == "train":
        result = train(args.items, args.model, args.algorithm)
    elif args.command == "tag":
        result = tag(args.items, args.model, args.predictions)
    else:
        result = version()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
