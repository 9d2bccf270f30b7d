"""Tagging CoNLL-2000 with one thread and with two, from columns of words to labels.

Claims shown: tokens per second from strings (features and decoding) and from encoded features, and
what a second thread brings. The two are measured by turns, and the best of each counts; nothing
else may run on the machine.

    python benchmarks/tagging.py --data ../shared/data

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path

from maxmargin.cli.main import main as maxmargin
from maxmargin.io.columns import read_columns
from maxmargin.io.tagger_file import load_tagger

TIMES = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/")
    folder = parser.parse_args().data / "conll2000"
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "chunk.mm"
        command = ["train", str(folder / "train.tsv.gz"), "-m", str(model), "-q"]
        assert maxmargin([*command, "--template", "chunking@1"]) == 0
        tagger = load_tagger(model)
    table = read_columns(folder / "test.tsv.gz")
    chain, best = tagger.chain, {}
    for _ in range(TIMES):
        for threads in (1, 2):
            chain.encoder.threads = threads
            begin = time.perf_counter()
            batch = chain.encoder.transform(table)
            middle = time.perf_counter()
            chain.predict_encoded(batch, tagger.weights, threads)
            end = time.perf_counter()
            for name, seconds in (("strings", end - begin), ("encoded", end - middle)):
                best[name, threads] = min(best.get((name, threads), math.inf), seconds)
    result = {}
    for name in ("strings", "encoded"):
        speeds = [table.n_tokens / best[name, threads] for threads in (1, 2)]
        result[name] = {"tokens_per_second": speeds, "two_threads": speeds[1] / speeds[0]}
        print(
            f"from {name}: {speeds[0]:,.0f} tokens/s with one thread, {speeds[1]:,.0f} with two, "
            f"{speeds[1] / speeds[0]:.2f} times as many"
        )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
