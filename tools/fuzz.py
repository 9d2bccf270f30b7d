"""Mutates files of all kinds and feeds them to maxmargin: ``python tools/fuzz.py --count 1000``.

Each input is known by its kind, its number and the seed, and can be made again:

    python tools/fuzz.py --kind model --only 123                what it does, in a worker process
    python tools/fuzz.py --kind model --only 123 --write FILE   the file itself, and the commands

A finding is a signal, an exit code other than 0 and 2, an input that takes too long or more than
1 GB, a line of more than 500 characters or with control characters on standard error, a Python
warning, and a file that a failed command leaves behind. The exit code is 1 if there are any.

Models and checkpoints are made by the maxmargin that is tested, so a number means the same input
only as long as what it writes is the same.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

# Before NumPy is imported: workers are processes already, and threads are not forked.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from fuzzing.kinds import KINDS, Seeds, make_input
from fuzzing.pool import Batch, Result, run_batches
from fuzzing.seeds import write_seeds

BATCH = 250
SHOWN = 5  # numbers of inputs that are listed for a finding


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : list of str or None
        The arguments; None: those of the process.

    Returns
    -------
    int
        0 without findings, 1 with.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="inputs of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=tuple(KINDS), help="this kind alone")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this input alone (with --kind)")
    parser.add_argument("--write", metavar="FILE", help="write the input instead of running it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for an input")
    options = parser.parse_args(argv)
    if options.only is not None and options.kind is None:
        parser.error("--only needs --kind: inputs are numbered within their kind")
    if options.write is not None and options.only is None:
        parser.error("--write needs --only")
    first, last = options.first, options.first + options.count
    if options.only is not None:
        first, last = options.only, options.only + 1
    with tempfile.TemporaryDirectory(dir=_quick()) as name:
        folder = Path(name)
        (folder / "seeds").mkdir()
        write_seeds(folder / "seeds")
        seeds = Seeds(folder / "seeds")
        if options.write is not None:
            given = make_input(options.kind, options.only, options.seed, seeds)
            Path(options.write).write_bytes(given.data)
            for command in given.commands:
                print("maxmargin", *command)
            return 0
        _preload()
        found = 0
        for kind in [options.kind] if options.kind else KINDS:
            begin = time.monotonic()
            batches = [Batch(kind, k, min(k + BATCH, last)) for k in range(first, last, BATCH)]
            results = run_batches(
                batches,
                seed=options.seed,
                seeds=seeds,
                folder=folder,
                jobs=options.jobs,
                timeout=options.timeout,
            )
            found += _tell(kind, results[kind], time.monotonic() - begin, options.seed)
    print(f"{found} findings" if found else "no findings")
    return 1 if found else 0


def _preload() -> None:
    """Import everything once, before workers are forked."""
    import sklearn.base  # noqa: F401

    from maxmargin import SequenceTagger  # noqa: F401
    from maxmargin.cli.main import COMMANDS

    for module, _ in COMMANDS.values():
        import_module(f"maxmargin.cli.{module}")


def _quick() -> str | None:
    """Return a directory in memory, if there is one: models are synchronised to disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _tell(kind: str, result: Result, seconds: float, seed: int) -> int:
    """Print what came of a kind; return the number of different findings."""
    codes = ", ".join(f"{n} exit {code}" for code, n in sorted(result.codes.items()))
    slowest, number = result.slowest
    print(
        f"{kind}: {result.inputs} inputs in {seconds:.0f} s ({result.inputs / seconds:.0f}/s); "
        f"{codes}; slowest {slowest:.2f} s (number {number}); peak {result.peak >> 20} MB"
    )
    groups: dict[tuple[str, str], list[int]] = {}
    details: dict[tuple[str, str], str] = {}
    for n, finding in sorted(result.findings):
        key = finding.what, _pattern(finding.detail)
        groups.setdefault(key, []).append(n)
        details.setdefault(key, finding.detail)
    for key, numbers in groups.items():
        listed = ", ".join(map(str, numbers[:SHOWN])) + (" ..." if len(numbers) > SHOWN else "")
        print(f"  {key[0]} ({len(numbers)} times: {listed}): {details[key]!a}")
    if groups:
        again = f"make fuzz KIND={kind} ONLY=NUMBER" + (f" SEED={seed}" if seed else "")
        print(f"  again: {again}", flush=True)
    return len(groups)


def _pattern(text: str) -> str:
    """Return a message without what differs between inputs: numbers, names in quotes."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)
    return re.sub(r"[-+]?\d[\d.e+-]*", "0", text)[:60]


if __name__ == "__main__":
    sys.exit(main())
