"""Training on more data than the budget of memory: peak, throughput, a table of budgets.

    python benchmarks/out_of_core.py --data ../shared/data

Brown is repeated, each time with some words changed, until the encoded data are ten times the
smallest budget. Tags are cut to two letters: with all 181 of them the oracle takes so long that
reading and writing would not be seen beside it. Each training runs in a process of its own, so that
its peak resident size is its own. Throughput is tokens of training data times passes (and one more
for the certificate) by processor seconds of the whole process; "none" is the same command on the
same file without a budget: everything stays mapped and all planes are kept.

Before that, on so many copies as fit in memory (``--fits``): the same training from the text with
all in memory, and from the encoded file. Of both the time of training alone (passes and
certificate), and the processor time of the whole process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Of the template: its weights are what the budget does not count.
FEATURES = ("--template", "pos@1", "--hash-bits", "16")


#: Runs of each kind of what fits in memory.
REPEATS = 3


def write_copies(source: Path, target: Path, copies: int) -> None:
    """Write the corpus several times, with every tenth word of a copy changed."""
    lines = gzip.decompress(source.read_bytes()).decode().split("\n")
    cells = [line.rpartition("\t") for line in lines]
    text = "\n".join(f"{word}\t{tag[:2]}" if word else "" for word, _, tag in cells)
    rng = random.Random(0)
    with target.open("w", encoding="utf-8") as file:
        for copy in range(copies):
            for line in text.split("\n"):
                if copy and line and rng.random() < 0.1:
                    word, tab, rest = line.partition("\t")
                    file.write(f"{word[::-1] if copy % 2 else word + str(copy)}{tab}{rest}\n")
                else:
                    file.write(line + "\n")
            file.write("\n")


def run(*arguments: str) -> dict[str, float]:
    """Run the command in a process of its own; return its summary with processor seconds."""
    program = (
        "import sys, time, json, resource\nfrom maxmargin.cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "u = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(json.dumps({'cpu': u.ru_utime + u.ru_stime, 'code': code}))"
    )
    command = [sys.executable, "-c", program, *arguments, "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or json.loads(lines[-1])["code"]:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(lines[-2]) | json.loads(lines[-1])


def compare_in_memory(text: Path, encoded: Path, model: Path, passes: int) -> None:
    """Print what training from an encoded file costs beside training with all in memory."""
    limits = ("--gap", "1e-6", "--max-passes", str(passes), "-m", str(model))
    made = run("encode", str(text), "-o", str(encoded), *FEATURES)
    runs: dict[str, list[dict[str, float]]] = {"text": [], "encoded": []}
    for _ in range(REPEATS):  # alternating; of each the least time counts
        runs["text"].append(run("train", str(text), *FEATURES, *limits))
        runs["encoded"].append(run("train", str(encoded), *limits))
    least = {
        name: {key: min(r[key] for r in found) for key in ("seconds_train", "cpu", "peak_rss_mb")}
        for name, found in runs.items()
    }
    same = runs["text"][0]["primal"] == runs["encoded"][0]["primal"]
    print(
        f"fits in memory: {made['n_tokens']} tokens, {made['n_bytes'] / 1e6:.0f} MB encoded in "
        f"{made['cpu']:.1f} s; the same model: {same}"
    )
    for name, found in least.items():
        print(
            f"  from {name:8s} training {found['seconds_train']:6.2f} s, whole process "
            f"{found['cpu']:6.2f} s of processor time, peak {found['peak_rss_mb']:.0f} MB"
        )
    trained, whole = (least["encoded"][k] / least["text"][k] for k in ("seconds_train", "cpu"))
    print(f"  encoded / text: training {trained:.2f}, whole process {whole:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with brown_pos/")
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--budgets", default="125M,250M,500M")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--fits", type=int, default=2, help="copies for what fits in memory")
    parser.add_argument("--only-fits", action="store_true", help="without budgets")
    parser.add_argument("--quick", action="store_true", help="one copy, one budget")
    options = parser.parse_args()
    copies = 1 if options.quick else options.copies
    budgets = options.budgets.split(",")[: 1 if options.quick else None]
    with tempfile.TemporaryDirectory() as folder:
        text, encoded, model = (Path(folder) / name for name in ("t.tsv", "t.mme", "m.mm"))
        write_copies(options.data / "brown_pos" / "train.tsv.gz", text, options.fits)
        compare_in_memory(text, encoded, model, options.passes)
        if options.only_fits:
            return
        write_copies(options.data / "brown_pos" / "train.tsv.gz", text, copies)
        began = time.perf_counter()
        made = run("encode", str(text), "-o", str(encoded), *FEATURES)
        print(
            f"{made['n_tokens']} tokens, {made['n_sequences']} sequences, {made['n_labels']} "
            f"labels: {text.stat().st_size / 1e6:.0f} MB of text, {made['n_bytes'] / 1e6:.0f} MB "
            "encoded in "
            f"{made['cpu']:.1f} s of processor time ({time.perf_counter() - began:.1f} s), peak "
            f"{made['peak_rss_mb']:.0f} MB"
        )
        train = ("train", str(encoded), "-m", str(model), "--gap", "1e-6")
        train += ("--max-passes", str(options.passes))
        memory = run(*train)
        n = made["n_tokens"] * (options.passes + 1)  # and the certificate
        width = -(-made["n_labels"] // 8) * 8
        weights = 16 * width * (2**16 + made["n_labels"] + 2) / 1e6
        print(f"weights, with a copy and the 8-byte certificate: {weights:.0f} MB")
        print(
            "budget     encoded/budget  peak MB  peak/(budget+weights)  cpu s   tokens/s  of memory"
        )

        def row(name: str, found: dict[str, float], budget: float | None) -> None:
            rate, base = n / found["cpu"], n / memory["cpu"]
            share = "" if budget is None else f"{made['n_bytes'] / 1e6 / budget:.1f}"
            over = "" if budget is None else f"{found['peak_rss_mb'] / (budget + weights):.2f}"
            print(
                f"{name:10s} {share:>14s} {found['peak_rss_mb']:8.0f} {over:>22s} "
                f"{found['cpu']:6.1f} {rate:10.0f} {rate / base:10.2f}   gap {found['gap']:.3f}"
            )

        row("none", memory, None)
        for budget in budgets:
            row(budget, run(*train, "--memory", budget), float(budget.removesuffix("M")))


if __name__ == "__main__":
    main()
