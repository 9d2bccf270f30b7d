"""The first day of somebody who comes from sklearn-crfsuite: its own tutorial with both libraries.

CoNLL-2002 Spanish with the tutorial's features, in processes of their own, one after the other:
lines of the program that change, processor seconds, F1 on the test file at each one's default (and
with C="auto" of maxmargin), at the tutorial's setting (c1 = c2 = 0.1, at most 100 iterations) and
with each one's own search (three folds of the training file; CRFsuite: random c1 and c2,
``--tried`` of them where the tutorial has 50; maxmargin: four values of C), the expected
calibration error of the marginals on the test file (maxmargin's are calibrated on the development
file), and the time of ``maxmargin tag --marginals`` over that of ``maxmargin tag``.

    pip install sklearn-crfsuite
    python benchmarks/first_day.py --data ../shared/data --parts default,tag
    python benchmarks/first_day.py --data ../shared/data --parts search

Nothing is chosen on test data. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURS, THEIRS = HERE / "first_day_ours.py", HERE / "first_day_theirs.py"
TUTORIAL = HERE / "first_day_tutorial.py"


def code_lines(path: Path) -> list[str]:
    """Return the lines of a program without blank lines, comments and docstrings of a line."""
    lines = (line.rstrip() for line in path.read_text(encoding="utf-8").splitlines())
    skipped = ('"""', "#", "from __future__")
    return [line for line in lines if line and not line.lstrip().startswith(skipped)]


def changed_lines() -> dict[str, int]:
    """Count the lines of the program that those who come have to change, take out and add."""
    theirs, ours = code_lines(THEIRS), code_lines(OURS)
    diff = [line[0] for line in difflib.ndiff(theirs, ours)]
    removed, added = diff.count("-"), diff.count("+")
    return {"lines": len(theirs) + len(code_lines(TUTORIAL)), "removed": removed, "added": added}


def run(program: Path, choice: str, args: argparse.Namespace) -> dict[str, Any]:
    """Run a program of the tutorial; return what it measured."""
    command = [sys.executable, str(program), choice, "--data", str(args.data)]
    if args.limit is not None:
        command += ["--limit", str(args.limit)]
    environment = {**os.environ, "FIRST_DAY_TRIED": str(args.tried)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def processor_seconds(command: list[str]) -> float:
    """Run a command; return its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def time_of_tag(args: argparse.Namespace) -> dict[str, float]:
    """Measure ``tag`` and ``tag --marginals`` of a model with the template ner, by turns."""
    folder = args.data / "conll2002_esp"
    maxmargin = [sys.executable, "-m", "maxmargin"]
    with tempfile.TemporaryDirectory() as temporary:
        model = str(Path(temporary) / "ner.mm")
        train = [*maxmargin, "train", str(folder / "train.tsv.gz"), "-m", model, "-q"]
        processor_seconds([*train, "--template", "ner", "--valid", str(folder / "dev.tsv.gz")])
        tag = [*maxmargin, "tag", "-m", model, str(folder / "test.tsv.gz")]
        best = {"tag": math.inf, "tag --marginals": math.inf}
        for _ in range(args.repeats):
            for name, more in (("tag", []), ("tag --marginals", ["--marginals"])):
                best[name] = min(best[name], processor_seconds([*tag, *more]))
    return best


def show(title: str, about: dict[str, Any]) -> None:
    """Print a line on a run."""
    seconds = about["seconds"]
    chosen = ", ".join(f"{name} = {value:.3g}" for name, value in about.get("chosen", {}).items())
    more = f" ({about['n_trainings']} trainings; chosen {chosen})" if chosen else ""
    print(
        f"{title}: train {seconds['train']:.1f} s{more}, predict {seconds['predict']:.2f} s, "
        f"marginals {seconds['marginals']:.2f} s; tutorial's F1 {about['flat_f1']:.2f} %, F1 of "
        f"names {about['f1']:.2f} %; calibration error {about['calibration_error']:.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2002_esp/")
    parser.add_argument("--parts", default="default,search,tag", help="of %(default)s")
    parser.add_argument("--tried", type=int, default=50, help="settings of CRFsuite's search")
    parser.add_argument("--repeats", type=int, default=10, help="runs of tag; the best counts")
    parser.add_argument("--limit", type=int, default=None, help="sentences of each file, at most")
    args = parser.parse_args()
    parts = args.parts.split(",")
    print(f"sklearn-crfsuite {version('sklearn-crfsuite')} on {version('python-crfsuite')}")
    result: dict[str, Any] = {"lines": changed_lines()}
    print("{lines} lines of code, of which {removed} go and {added} come".format(**result["lines"]))
    runs = []
    if "default" in parts:
        runs += [(OURS, "default"), (OURS, "auto"), (THEIRS, "default"), (THEIRS, "tutorial")]
    if "search" in parts:
        runs += [(OURS, "search"), (THEIRS, "search")]
    for program, choice in runs:
        name = f"{'maxmargin' if program is OURS else 'sklearn-crfsuite'}, {choice}"
        result[name] = run(program, choice, args)
        show(name, result[name])
    for choice in ("default", "tutorial", "search"):
        ours = result.get(f"maxmargin, {'search' if choice == 'search' else 'default'}")
        theirs = result.get(f"sklearn-crfsuite, {choice}")
        if ours is not None and theirs is not None:
            for step in ("train", "predict", "marginals"):
                ratio = theirs["seconds"][step] / ours["seconds"][step]
                print(f"{step}, {choice}: sklearn-crfsuite takes {ratio:.1f} times as long")
    if "tag" in parts:
        best = result["tag"] = time_of_tag(args)
        ratio = best["tag --marginals"] / best["tag"]
        print(f"tag --marginals takes {ratio:.2f} times as long as tag ({best['tag']:.2f} s)")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
