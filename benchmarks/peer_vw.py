"""Vowpal Wabbit's learning to search as one of the systems of `peers.py`: one step per process.

    python benchmarks/peer_vw.py version
    python benchmarks/peer_vw.py convert ITEMS DATA LABELS
    python benchmarks/peer_vw.py train DATA MODEL LABELS --passes 1
    python benchmarks/peer_vw.py tag DATA MODEL LABELS PREDICTIONS

Each prints one JSON object. `convert` turns a CRFsuite item file into Vowpal Wabbit's text format
with the same features; LABELS is a JSON list, written if it is not there, of which Vowpal Wabbit
sees the numbers 1, 2, ... Reading DATA, learning and writing all run in Vowpal Wabbit's own code,
as they do in its executable, which the Python package does not bring.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

from peer_crfsuite import TIMES, read_items, write_labels

#: One decision per token, conditioned on the one before. Without roll-outs: under Hamming loss they
#: cost three times the time and change nothing (chunking, 1 pass: F1 93.3 with and without). 2^24
#: weights hold features times labels with few collisions and take 256 MB.
OPTIONS = "--search_task sequence --search_rollout none -b 24"

_SAFE = str.maketrans({"%": "%25", ":": "%3A", "|": "%7C", " ": "%20"})


def convert(items: Path, data: Path, label_file: Path) -> dict[str, Any]:
    """Write the features of `items` under the names they have, but for characters VW reserves."""
    training = not label_file.exists()
    labels: dict[str, int] = {}
    if not training:
        names = json.loads(label_file.read_text(encoding="utf-8"))
        labels = {name: k for k, name in enumerate(names, 1)}
    with data.open("w", encoding="utf-8", newline="\n") as file:
        for sequence, tokens in read_items(items):
            for label, attributes in zip(sequence, tokens, strict=True):
                features = " ".join([text.translate(_SAFE) for text in attributes])
                number = labels.setdefault(label, len(labels) + 1) if training else ""
                file.write(f"{number} |f {features}\n")
            file.write("\n")
    if training:
        label_file.write_text(json.dumps(list(labels)), encoding="utf-8")
    return {"n_labels": len(labels)}


def _drive(options: str) -> float:
    """Run Vowpal Wabbit as its executable would run; the seconds it took."""
    from vowpalwabbit import Workspace

    begin = time.perf_counter()
    Workspace(f"{options} --quiet").finish()
    return time.perf_counter() - begin


def train(
    data: Path, model: Path, label_file: Path, passes: int, rate: float | None = None
) -> dict[str, Any]:
    n_labels = len(json.loads(label_file.read_text(encoding="utf-8")))
    options = f"--search {n_labels} {OPTIONS}"
    if rate is not None:
        options += f" --learning_rate {rate:g}"
    cache = ""
    if passes > 1:
        options += f" --passes {passes} --holdout_off"
        cache = f"--cache_file {model}.cache -k"
    begin_cpu = time.process_time()
    seconds = _drive(f"-d {data} -f {model} {cache} {options}")
    return {
        "seconds_total": seconds,
        "cpu_total": time.process_time() - begin_cpu,
        "model_bytes": model.stat().st_size,
        "parameters": {"options": options},
    }


def tag(data: Path, model: Path, label_file: Path, predictions: Path) -> dict[str, Any]:
    labels = json.loads(label_file.read_text(encoding="utf-8"))
    raw = predictions.with_name(predictions.name + ".raw")
    load = whole = math.inf
    for _ in range(TIMES):
        load = min(load, _drive(f"-t -i {model}"))
        whole = min(whole, _drive(f"-t -i {model} -d {data} -p {raw}"))
    with raw.open(encoding="utf-8") as file:
        numbers = [line.split() for line in file]
    # Blank lines of the data come out as blank lines.
    predicted = [[labels[int(float(k)) - 1] for k in line] for line in numbers if line]
    write_labels(predictions, predicted)
    n_tokens = sum(map(len, predicted))
    return {
        "n_tokens": n_tokens,
        "seconds_load": load,
        # On a handful of sentences the difference drowns in the noise of loading.
        "tokens_per_second": n_tokens / (whole - load if whole > load else whole),
    }


def version() -> dict[str, Any]:
    import vowpalwabbit

    return {"name": "Vowpal Wabbit", "version": vowpalwabbit.__version__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    for name, paths in {
        "convert": ("items", "data", "labels"),
        "train": ("data", "model", "labels"),
        "tag": ("data", "model", "labels", "predictions"),
    }.items():
        command = commands.add_parser(name)
        for path in paths:
            command.add_argument(path, type=Path)
        if name == "train":
            command.add_argument("--passes", type=int, default=1)
            command.add_argument("--rate", type=float, help="learning rate (its own: 0.5)")
    args = parser.parse_args()
    if args.command == "convert":
        result = convert(args.items, args.data, args.labels)
    elif args.command == "train":
        result = train(args.data, args.model, args.labels, args.passes, args.rate)
    elif args.command == "tag":
        result = tag(args.data, args.model, args.labels, args.predictions)
    else:
        result = version()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
