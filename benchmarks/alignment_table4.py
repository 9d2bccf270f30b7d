"""Table 4 of the SVM-struct paper: find the homolog among decoys, with a generator after its text.

A native sequence is drawn at random; its homolog by mutation, where each letter has three related
ones, and by gaps; decoys at random, as long as the homolog. The rival counts (log odds with Laplace
estimates), and has the gap cost that is best on the test sets. `benchmarks/alignment.py` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import SDM, Aligner, Alignment
from maxmargin.io.substitution import PROTEIN

LENGTH = 50
RELATED = 3


class Family(NamedTuple):
    """How homologs come about.

    ``mutation[a]`` are the chances of the letters that a becomes; gaps are inserted or letters left
    out with the chance ``gap`` at each position.
    """

    mutation: NDArray[np.float64]
    gap: float


def family(
    rng: np.random.Generator, keep: float = 0.2, related: float = 0.4, gap: float = 0.08
) -> Family:
    """Draw which letters are related: a letter stays, becomes one of three, or any."""
    n = len(PROTEIN)
    mutation = np.full((n, n), (1 - keep - related) / n)
    mutation[np.arange(n), np.arange(n)] += keep
    for a in range(n):
        others = rng.choice(np.delete(np.arange(n), a), RELATED, replace=False)
        mutation[a, others] += related / RELATED
    return Family(mutation, gap)


def random_sequence(rng: np.random.Generator, length: int = LENGTH) -> NDArray[np.int64]:
    return rng.integers(len(PROTEIN), size=length)


def text(sequence: Any) -> str:
    return "".join(PROTEIN[a] for a in sequence)


def homolog(
    rng: np.random.Generator, native: NDArray[np.int64], kind: Family
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return a mutated sequence, and which positions it has in common with the native one."""
    made: list[int] = []
    matches: list[tuple[int, int]] = []
    for i, a in enumerate(native):
        chance = rng.random()
        if chance < kind.gap:
            continue
        if chance < 2 * kind.gap:
            made.append(int(rng.integers(len(PROTEIN))))
        matches.append((i, len(made)))
        made.append(int(rng.choice(len(PROTEIN), p=kind.mutation[a])))
    return made, matches


def examples(
    rng: np.random.Generator, n: int, kind: Family, decoys: int
) -> tuple[list[Any], list[NDArray[np.int64]]]:
    X, Y = [], []
    for _ in range(n):
        native = random_sequence(rng)
        made, matches = homolog(rng, native, kind)
        others = [text(random_sequence(rng, len(made))) for _ in range(decoys)]
        X.append((text(native), text(made), others))
        Y.append(np.array(matches, dtype=np.int64).reshape(-1, 2))
    return X, Y


def generative_matrix(X: Any, Y: Any) -> NDArray[np.float64]:
    """Return log P(a, b) / (P(a) P(b)) with Laplace estimates, as the paper's generative model."""
    n = len(PROTEIN)
    place = {letter: k for k, letter in enumerate(PROTEIN)}
    pairs = np.ones((n, n))
    for (first, second, *_), matches in zip(X, Y, strict=True):
        for i, j in matches:
            pairs[place[first[i]], place[second[j]]] += 1
    joint = pairs / pairs.sum()
    return np.log(joint / np.outer(joint.sum(axis=1), joint.sum(axis=0)))


def ranking_error(structure: Alignment, weights: Any, X: Any) -> float:
    """Return the share of examples whose homolog does not score highest."""
    return float(np.mean([s.argmax() != 0 for s in structure.candidate_scores(X, weights)]))


def table4(
    sizes: Sequence[int], draws: int, n_test: int, decoys: int, C: float
) -> list[dict[str, Any]]:
    deltas = (-0.05, -0.1, -0.2, -0.5, -1.0, -2.0)
    collected: dict[int, list[list[float]]] = {n: [] for n in sizes}
    generative: dict[int, list[list[list[float]]]] = {n: [] for n in sizes}
    structure = Alignment(PROTEIN, mode="local", gaps="linear", substitution="free")
    for draw in range(draws):
        rng = np.random.default_rng(1000 + draw)
        kind = family(rng)
        X, Y = examples(rng, max(sizes), kind, decoys)
        tests, _ = examples(rng, n_test, kind, decoys)
        for n in sizes:
            own, truths = X[:n], Y[:n]
            model = Aligner(
                PROTEIN, mode="local", gaps="linear", substitution="free",
                solver=SDM(slack="quadratic"), C=C, C_scale="mean", gap=0.01, random_state=draw,
            ).fit(own, truths)  # fmt: skip
            collected[n].append(
                [
                    ranking_error(model.structure_, model.weights_, own),
                    ranking_error(model.structure_, model.weights_, tests),
                    float(model.history_[-1].planes),
                ]
            )
            matrix = generative_matrix(own, truths).ravel()
            generative[n].append(
                [
                    [ranking_error(structure, np.r_[matrix, delta], data) for data in (own, tests)]
                    for delta in deltas
                ]
            )
    # As in the paper, the rival's gap cost is the one that is best on the test sets.
    by_gap = np.array([np.array(generative[n])[:, :, 1].mean(axis=0) for n in sizes])
    best = int(by_gap.mean(axis=0).argmin())
    rows = []
    for n in sizes:
        ours, theirs = np.array(collected[n]), np.array(generative[n])

        def shown(values: NDArray[np.float64]) -> list[float]:
            return [
                float(values.mean()),
                float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0,
            ]

        rows.append(
            {
                "n": n,
                "generative_train": shown(theirs[:, best, 0]),
                "svm_train": shown(ours[:, 0]),
                "generative_test": shown(theirs[:, best, 1]),
                "svm_test": shown(ours[:, 1]),
                "planes": shown(ours[:, 2]),
                "delta": deltas[best],
            }
        )
    return rows


def print_table4(rows: list[dict[str, Any]]) -> None:
    print("  n   generative train      SVM train   generative test       SVM test    planes   gap")
    for row in rows:
        cells = [
            f"{100 * row[key][0]:8.1f} ± {100 * row[key][1]:4.1f}"
            for key in ("generative_train", "svm_train", "generative_test", "svm_test")
        ]
        print(f"{row['n']:3d}  {'  '.join(cells)}  {row['planes'][0]:8.1f}  {row['delta']}")
