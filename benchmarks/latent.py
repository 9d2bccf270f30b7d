"""Latent parts: handwritten words with styles of letters, digits anywhere on a canvas.

Claims shown:

letters   error of letters of a chain with latent styles beside that of the same chain without, on
          ``ocr_letters``. For each test fold, eight of the other nine are trained on and one is for
          development: C of the plain chain, and C and the number of styles of the latent one, are
          chosen by the error there; the chosen model is tested once. Means over the test folds with
          standard errors, and the paired difference. Beside it what training costs: the processor
          time of the whole procedure over that of one convex step to the same gap, in one run.
digits    the same for `examples/latent_digits.py` (data of scikit-learn): the digits are halved and
          put on canvases at random several times, C chosen on a fifth of the training half.

    python benchmarks/latent.py --data ../shared/data
    python benchmarks/latent.py letters --folds 0 1 --data ../shared/data > part0.txt
    python benchmarks/latent.py --merge part*.txt

The last line of standard output is one JSON object; the lines of single folds may be made by
several runs and put together with ``--merge``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from maxmargin import SDM, Chain, Latent, LatentStructuralSVM, MulticlassSVM, StructuralSVM
from maxmargin.errors import ConvergenceWarning
from maxmargin.solvers.cccp import COARSE
from maxmargin.solvers.latent import train_latent

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from latent_digits import ShiftedDigits, canvases, windows
from latent_letters import read_words, share_wrong

GAP, TOL = 0.03, 5e-3
PLAIN_C = (0.1, 0.3, 1.0, 3.0)
LATENT_C = (0.1, 0.3)
STATES = (2, 4)
DIGITS_C = (0.1, 0.3, 1.0)


def letters(path: Path, fold: int) -> dict[str, Any]:
    """Test both chains on one fold."""
    X, Y, folds = read_words(path)
    development = (fold + 1) % 10
    parts = {
        "train": np.flatnonzero((folds != fold) & (folds != development)),
        "dev": np.flatnonzero(folds == development),
        "test": np.flatnonzero(folds == fold),
    }
    words = {name: ([X[i] for i in own], [Y[i] for i in own]) for name, own in parts.items()}

    def errors(model: Any) -> tuple[float, float]:
        return tuple(share_wrong(model.predict(words[n][0]), words[n][1]) for n in ("dev", "test"))  # type: ignore[return-value]

    tried: dict[str, list[tuple[float, float, str, float]]] = {"plain": [], "latent": []}
    for C in PLAIN_C:
        begin = time.process_time()
        model = StructuralSVM(Chain(), C=C, gap=GAP, random_state=0).fit(*words["train"])
        tried["plain"].append((*errors(model), f"C={C:g}", time.process_time() - begin))
    costs = []
    for states in STATES:
        for C in LATENT_C:
            begin = time.process_time()
            latent = LatentStructuralSVM(
                Latent(Chain(), states=states), C=C, gap=GAP, tol=TOL, random_state=0
            ).fit(*words["train"])
            seconds = time.process_time() - begin
            tried["latent"].append((*errors(latent), f"C={C:g}, {states} styles", seconds))
            if fold == 0:
                costs.append(cost(words["train"], states, C))
    found: dict[str, Any] = {"task": "letters", "fold": fold, "costs": costs}
    for way, runs in tried.items():
        dev, test, setting, seconds = min(runs)
        found[way] = {"dev": dev, "test": test, "setting": setting, "seconds": seconds}
    return found


def cost(words: Any, states: int, C: float) -> float:
    """Return the time of the procedure over that of one convex step to the same gap."""
    times = []
    for most, coarse in ((100, COARSE), (1, 0.0)):
        training = Latent(Chain(), states=states).prepare_training(
            *words, start="cluster", rng=np.random.default_rng(0)
        )
        begin = time.process_time()
        train_latent(
            training, SDM(), C=C, gap=GAP, tol=TOL, max_outer=most, coarse=coarse, random_state=0
        )
        times.append(time.process_time() - begin)
    return times[0] / times[1]


def digits(draw: int) -> dict[str, Any]:
    """Test both models on one draw of canvases."""
    rng = np.random.default_rng(draw)
    data = load_digits()
    order = rng.permutation(len(data.target))
    pictures, labels = canvases(rng, data.images[order]), data.target[order]
    flat, rows = pictures.reshape(len(pictures), -1), windows(pictures)
    half = len(labels) // 2
    cut = half * 4 // 5
    parts = {"train": slice(0, cut), "dev": slice(cut, half), "test": slice(half, None)}
    found: dict[str, Any] = {"task": "digits", "fold": draw, "costs": []}
    for way in ("plain", "latent"):
        inputs: Any = flat if way == "plain" else rows
        runs = []
        for C in DIGITS_C:
            begin = time.process_time()
            model: Any = MulticlassSVM(C=C, gap=0.01, random_state=0)
            if way == "latent":
                model = LatentStructuralSVM(Latent(ShiftedDigits()), C=C, gap=0.01, random_state=0)
            model.fit(inputs[parts["train"]], labels[parts["train"]].tolist())
            dev, test = (
                float(np.mean(np.array(model.predict(inputs[parts[n]])) != labels[parts[n]]))
                for n in ("dev", "test")
            )
            runs.append((dev, test, f"C={C:g}", time.process_time() - begin))
        dev, test, setting, seconds = min(runs)
        found[way] = {"dev": dev, "test": test, "setting": setting, "seconds": seconds}
    return found


def show(found: dict[str, Any]) -> None:
    """Print one fold, as a line that ``--merge`` reads."""
    print("fold " + json.dumps(found), flush=True)


def mean(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    n = len(values)
    spread = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), spread


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Print a table of all folds and return its figures."""
    result: dict[str, Any] = {}
    for task in ("letters", "digits"):
        own = [run for run in runs if run["task"] == task]
        if not own:
            continue
        wrong = {way: [100 * run[way]["test"] for run in own] for way in ("plain", "latent")}
        difference = [a - b for a, b in zip(wrong["plain"], wrong["latent"], strict=True)]
        figures = {
            "folds": len(own),
            "plain": mean(wrong["plain"]),
            "latent": mean(wrong["latent"]),
            "difference": mean(difference),
            "better": sum(d > 0 for d in difference),
        }
        print(f"\n{task}: {len(own)} test folds, per cent wrong (standard error)")
        for way in ("plain", "latent"):
            value, error = figures[way]
            seconds = [run[way]["seconds"] for run in own]
            chosen = ", ".join(sorted({run[way]["setting"] for run in own}))
            print(
                f"  {way:8s} {value:6.2f} ± {error:.2f}   {np.mean(seconds):5.1f} s of training "
                f"and testing   chosen: {chosen}"
            )
        value, error = figures["difference"]
        print(f"  better by {value:.2f} ± {error:.2f}, on {figures['better']} of {len(own)}")
        costs = [cost for run in own for cost in run["costs"]]
        if costs:
            figures["cost"] = float(np.median(costs))
            print(f"  the whole procedure over one convex step: {figures['cost']:.1f} times")
        result[task] = figures
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=["letters", "digits"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--folds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--merge", type=Path, nargs="+", help="outputs of earlier runs")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvergenceWarning)
    runs: list[dict[str, Any]] = []
    if args.merge:
        for path in args.merge:
            lines = path.read_text().splitlines()
            runs += [json.loads(line[5:]) for line in lines if line.startswith("fold ")]
    else:
        path = args.data / "ocr_letters" / "letters.npz"
        if "letters" in args.tasks and not path.is_file():
            print(f"{path} is not there; use --data", file=sys.stderr)
            return 1
        for task in args.tasks:
            for fold in args.folds:
                runs.append(letters(path, fold) if task == "letters" else digits(fold))
                show(runs[-1])
    print(json.dumps(summary(runs)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
