"""Learning to align: Table 4 of the SVM-struct paper, protein pairs, and the speed of it.

Claims shown: with few examples the homolog is found as often as by a generative model, and with
more of them more often; how far learned scores get on pairs that TM-align has aligned, against
BLOSUM62 with tuned gaps; the loss-augmented dynamic programme is faster than a plain loop in C.

    python benchmarks/alignment.py --data ../shared/data
    python benchmarks/alignment.py --part table4 --draws 10
    python benchmarks/alignment.py --part speed

Everything that is chosen (gaps, C, loss, the weight of the prior) is chosen on the training file,
of which every third pair is held out; the test file is read once. The last line of standard output
is one JSON object. A C compiler (``cc``) and parasail (``pip install parasail``) are used if they
are there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_pairs import Pairs, fixed_aligner, read_pairs
from alignment_speed import speed
from alignment_table4 import print_table4, table4
from maxmargin import Aligner, Alignment
from maxmargin.estimators.aligner import match_counts
from maxmargin.io.substitution import PROTEIN, blosum62


def split(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Return the pairs to learn from, and every third one to choose by."""
    held = [i for i in range(len(pairs.X)) if i % 3 == 2]
    return pairs.take([i for i in range(len(pairs.X)) if i % 3 != 2]), pairs.take(held)


def tuned_blosum(pairs: Pairs) -> tuple[float, float, float]:
    """Return the share of matches that BLOSUM62 finds, with the best gaps, and these."""
    grid = itertools.product((8, 9, 10, 11, 12, 13, 15, 18), (0.5, 1, 1.5, 2, 3))
    return max((fixed_aligner(blosum62(), -o, -e).score(*pairs), -o, -e) for o, e in grid)


def similarity_classes() -> NDArray[np.int64]:
    """Return a number for each two letters: those with the same score of BLOSUM62 have the same."""
    alphabet = Alignment("protein").alphabet
    assert alphabet is not None
    _, classes = np.unique(np.clip(blosum62(alphabet)[1], -4, 6), return_inverse=True)
    return classes.reshape(len(alphabet), -1)


#: Hydrophobicity (Kyte and Doolittle), volume, charge, and how often a residue is in a helix or in
#: a strand (Chou and Fasman), for the letters of PROTEIN.
PROPERTIES = np.array(
    [
        [float(number) for number in line.split()]
        for line in (
            "1.8 -4.5 -3.5 -3.5 2.5 -3.5 -3.5 -.4 -3.2 4.5 "
            "3.8 -3.9 1.9 2.8 -1.6 -.8 -.7 -.9 -1.3 4.2",
            "88.6 173.4 114.1 111.1 108.5 143.8 138.4 60.1 153.2 166.7 "
            "166.7 168.6 162.9 189.9 112.7 89 116.1 227.8 193.6 140",
            "0 1 0 -1 0 0 -1 0 .1 0 0 1 0 0 0 0 0 0 0 0",
            "1.42 .98 .67 1.01 .7 1.11 1.51 .57 1 1.08 "
            "1.21 1.16 1.45 1.13 .57 .77 .83 1.08 .69 1.06",
            ".83 .93 .89 .54 1.19 1.1 .37 .75 .87 1.6 1.3 .74 1.05 1.38 .55 .75 1.19 1.37 1.47 1.7",
        )
    ]
)


def with_windows(X: list[tuple[str, str]], widths: Sequence[int] = (2, 4)) -> list[Any]:
    """Give every residue the mean properties of its neighbourhood."""
    scaled = (PROPERTIES - PROPERTIES.mean(axis=1)[:, None]) / PROPERTIES.std(axis=1)[:, None]
    table = dict(zip(PROTEIN, scaled.T, strict=True))

    def features(sequence: str) -> NDArray[np.float64]:
        raw = np.array([table.get(letter, np.zeros(len(scaled))) for letter in sequence])
        columns = []
        for h in widths:
            kernel = np.ones(2 * h + 1) / (2 * h + 1) ** 0.5
            columns += [np.convolve(np.pad(column, h), kernel, "valid") for column in raw.T]
        return 0.1 * np.column_stack(columns)

    return [tuple((s, features(s)) for s in x) for x in X]


class Variant(NamedTuple):
    """A way to learn, and the settings to choose among."""

    name: str
    grid: list[dict[str, Any]]
    windows: bool = False

    def inputs(self, pairs: Pairs) -> Any:
        """Return the inputs of pairs."""
        return with_windows(pairs.X) if self.windows else pairs.X

    def fit(self, pairs: Pairs, setting: dict[str, Any]) -> Aligner:
        """Train with one of the settings."""
        return Aligner("protein", gap=0.01, max_passes=60, random_state=0, **setting).fit(
            self.inputs(pairs), pairs.Y
        )


def within_reach(pairs: Pairs, gaps: tuple[float, float]) -> Pairs:
    """Return the pairs of which BLOSUM62 finds half of the matches."""
    model = fixed_aligner(blosum62(), *gaps)
    return pairs.take(
        [
            i
            for i in range(len(pairs.X))
            if model.score(pairs.X[i : i + 1], pairs.Y[i : i + 1]) > 0.5
        ]
    )


def variants(
    Cs: Sequence[float], scales: Sequence[float], gaps: tuple[float, float]
) -> list[Variant]:
    losses = ("matches", "residues")
    free = [{"loss": loss, "C": C} for loss, C in itertools.product(losses, Cs)]
    prior = (*blosum62(), *gaps)
    drawn = [
        {**setting, "prior": prior, "prior_scale": s}
        for setting, s in itertools.product(free, scales)
    ]
    tied = [{**setting, "substitution": similarity_classes()} for setting in free]
    return [
        Variant("learned", free),
        Variant("learned from BLOSUM62", drawn),
        Variant("classes of BLOSUM62", tied),
        Variant(
            "classes and windows", [{**setting, "position": "product"} for setting in tied], True
        ),
    ]


def tmalign(folder: Path, Cs: Sequence[float], scales: Sequence[float]) -> dict[str, Any]:
    """Choose on held-out training pairs, train on all of them, and look at the test file once.

    Where the true alignment is far from any that letters could tell (the median pair has 14 % of
    its letters in common), the hinge of a pair is least at w = 0. So each way to learn also has the
    choice to leave out pairs of which BLOSUM62 does not find half of the matches.
    """
    train = read_pairs(folder / "protein_tmalign" / "train_aligned.tsv.gz")
    learn, held = split(train)
    _, *own = tuned_blosum(learn)
    gaps = (own[0], own[1])
    all_gaps = tuned_blosum(train)[1:]
    test = read_pairs(folder / "protein_tmalign" / "test_aligned.tsv.gz")
    found: dict[str, Any] = {
        "BLOSUM62": {
            "held": fixed_aligner(blosum62(), *gaps).score(*held),
            "test": _share(fixed_aligner(blosum62(), *all_gaps), test),
            "gaps": list(all_gaps),
        }
    }
    subsets = {"all": learn, "within reach": within_reach(learn, gaps)}
    whole = {"all": train, "within reach": within_reach(train, all_gaps)}
    ways = variants(Cs, scales, gaps)
    for way, last in zip(ways, variants(Cs, scales, all_gaps), strict=True):
        tried = [
            (way.fit(pairs, setting).score(way.inputs(held), held.Y), name, k)
            for name, pairs in subsets.items()
            for k, setting in enumerate(way.grid)
        ]
        score, name, k = max(tried)
        begin = time.process_time()
        model = last.fit(whole[name], last.grid[k])
        found[way.name] = {
            "held": score,
            "held_from_all": max(one[0] for one in tried if one[1] == "all"),
            "test": _share(model, Pairs(last.inputs(test), test.Y)),
            "pairs": name,
            **{key: last.grid[k].get(key) for key in ("loss", "C", "prior_scale")},
            "n_weights": len(model.weights_),
            "seconds": time.process_time() - begin,
        }
    return found


def _share(model: Aligner, pairs: Pairs) -> list[float]:
    """Return the share of matches found, and its standard error over pairs."""
    true = [_matches(y) for y in pairs.Y]
    counts = np.array(match_counts(true, model.predict(pairs.X)), dtype=float)
    share = counts[:, 0].sum() / counts[:, 1].sum()
    residual = counts[:, 0] - share * counts[:, 1]
    return [float(share), float(np.sqrt((residual**2).sum()) / counts[:, 1].sum())]


def _matches(moves: str) -> NDArray[np.int64]:
    kinds = np.array(list(moves))
    i, j = np.cumsum(kinds != "2") - 1, np.cumsum(kinds != "1") - 1
    return np.column_stack([i, j])[kinds == "M"]


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--part", choices=("table4", "tmalign", "speed"), action="append")
    parser.add_argument("--sizes", default="1,2,4,10,20,40,80")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--decoys", type=int, default=10)
    parser.add_argument("--table4-C", type=float, default=0.01)
    parser.add_argument("--C", default="0.001,0.01,0.1,1")
    parser.add_argument("--scales", default="0.1,0.3")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    parts = options.part or ["table4", "tmalign", "speed"]
    found: dict[str, Any] = {}
    if "table4" in parts:
        sizes = [int(n) for n in options.sizes.split(",")]
        found["table4"] = table4(
            sizes, options.draws, options.tests, options.decoys, options.table4_C
        )
        print_table4(found["table4"])
    if "tmalign" in parts:
        Cs, scales = (
            [float(x) for x in values.split(",")] for values in (options.C, options.scales)
        )
        found["tmalign"] = tmalign(options.data, Cs, scales)
        print("share of TM-align's matches found   held out     test")
        for name, row in found["tmalign"].items():
            rest = {key: value for key, value in row.items() if key not in ("held", "test")}
            share, error = row["test"]
            print(f"{name:34s} {100 * row['held']:6.1f}", end="")
            print(f"   {100 * share:6.1f} ± {100 * error:.1f}  {rest}")
    if "speed" in parts:
        pairs = read_pairs(options.data / "protein_tmalign" / "train_aligned.tsv.gz")
        found["speed"] = speed(pairs, options.repeats)
        for name, rate in found["speed"]["cells_per_second"].items():
            print(f"{name:28s} {rate:6.0f} million cells a second")
    print(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
