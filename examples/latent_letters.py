"""Handwritten words, with latent styles of the letters.

A chain has one picture of each letter. People write an `r` or an `s` in more than one way: with
states, each letter has several pictures, and training finds out which is which; nobody labels them.

    python examples/latent_letters.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
``benchmarks/latent.py`` compares both over several folds, with C and the number of styles chosen on
development words.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import Chain, Latent, LatentStructuralSVM, StructuralSVM

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def read_words(path: Path) -> tuple[list[Any], list[list[str]], np.ndarray[Any, Any]]:
    """Return the words as matrices of pixels, their letters, and the fold of each."""
    with np.load(path) as stored:
        pixels = np.unpackbits(stored["pixels"], axis=1).astype(np.float32)
        letters = [chr(97 + int(code)) for code in stored["letter"]]
        cuts = np.flatnonzero(np.diff(stored["word_id"])) + 1
        folds = stored["fold"][np.concatenate([[0], cuts])]
    bounds = [0, *cuts.tolist(), len(letters)]
    words = [letters[a:b] for a, b in itertools.pairwise(bounds)]
    return np.split(pixels, cuts), words, folds


def share_wrong(found: list[Any], words: list[list[str]]) -> float:
    """Return the share of letters that are wrong."""
    pairs = [
        (a, b)
        for guess, word in zip(found, words, strict=True)
        for a, b in zip(guess, word, strict=True)
    ]
    return sum(a != b for a, b in pairs) / len(pairs)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--states", type=int, default=3)
    parser.add_argument("--folds", type=int, default=4, help="folds to train on, of ten")
    args = parser.parse_args(argv)
    path = args.data / "ocr_letters" / "letters.npz"
    if not path.is_file():
        print(f"{path} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 1
    X, Y, folds = read_words(path)
    train = np.flatnonzero(folds < args.folds)
    test = np.flatnonzero(folds == 9)
    own, truths = [X[i] for i in train], [Y[i] for i in train]
    held_out, words = [X[i] for i in test], [Y[i] for i in test]

    begin = time.perf_counter()
    plain = StructuralSVM(Chain(), C=0.3, gap=0.03, random_state=0).fit(own, truths)
    wrong = share_wrong(plain.predict(held_out), words)
    print(
        f"one picture for each letter: {100 * wrong:.2f} % of the letters wrong "
        f"({time.perf_counter() - begin:.1f} s)"
    )
    begin = time.perf_counter()
    latent = LatentStructuralSVM(
        Latent(Chain(), states=args.states), C=0.3, gap=0.03, tol=0.005, random_state=0
    ).fit(own, truths)
    wrong = share_wrong(latent.predict(held_out), words)
    print(
        f"{args.states} styles for each letter:    {100 * wrong:.2f} % "
        f"({time.perf_counter() - begin:.1f} s)"
    )
    for record in latent.outer_history_:
        print(
            f"  outer iteration {record.n_outer}: objective {record.objective:8.1f}, gap "
            f"{100 * record.gap:5.2f} %, {record.changed} words with other styles"
        )
    for word, pairs in zip(words[:3], latent.predict_latent(held_out[:3], words[:3]), strict=True):
        print("  " + "".join(word) + ": " + " ".join(f"{a}{k}" for a, k in pairs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
