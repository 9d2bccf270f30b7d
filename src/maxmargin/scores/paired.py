"""Is one system better than another on the same sentences? A paired permutation test.

Scores such as F₁ are ratios of sums over sentences, Σ a_i / Σ b_i. If two systems are equally good,
then each sentence's pair of counts may as well be swapped between them. The test swaps each with
probability one half, many times, and counts how often the difference of the two scores becomes at
least as large as the one that was found (Noreen 1989; Yeh 2000 for F₁). It assumes no distribution,
and it holds for the ratio itself, not for a mean over sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.scores.trees import BracketCounts

__all__ = ["PairedTest", "f1_test", "ratio_test"]

_AT_ONCE = 512


class PairedTest(NamedTuple):
    """What a test found.

    Attributes
    ----------
    difference : float
        Score of the first system minus that of the second.
    p_value : float
        Two-sided: how likely a difference at least as large, in either direction, is between
        systems that are equally good.
    """

    difference: float
    p_value: float


def ratio_test(
    above: ArrayLike, below: ArrayLike, *, n_permutations: int = 20_000, seed: int = 0
) -> PairedTest:
    """Compare two systems whose scores are ratios of sums.

    Parameters
    ----------
    above, below : array [2][sentences]
        The counts of both systems: a score is ``above.sum() / below.sum()``; 0 where the sum below
        is 0.
    n_permutations : int
        How many times sentences are swapped.
    seed : int
        Of the random numbers.

    Returns
    -------
    PairedTest
        The difference and its p-value, at least 1 / (n_permutations + 1).
    """
    a, b = np.asarray(above, np.float64), np.asarray(below, np.float64)
    if a.ndim != 2 or a.shape[0] != 2 or a.shape != b.shape:
        raise ValueError(f"the counts have the shapes {a.shape} and {b.shape}; expected (2, n)")

    def differences(swaps: np.ndarray) -> np.ndarray:
        scores = []
        for one in (0, 1):
            up = a[one].sum() + swaps @ (a[1 - one] - a[one])
            down = b[one].sum() + swaps @ (b[1 - one] - b[one])
            scores.append(np.divide(up, down, out=np.zeros_like(up), where=down > 0))
        return np.asarray(scores[0] - scores[1])

    found = float(differences(np.zeros((1, a.shape[1])))[0])
    draw = np.random.default_rng(seed)
    as_large = 0
    for begin in range(0, n_permutations, _AT_ONCE):
        n = min(_AT_ONCE, n_permutations - begin)
        swaps = draw.integers(0, 2, size=(n, a.shape[1])).astype(np.float64)
        as_large += int(np.count_nonzero(np.abs(differences(swaps)) >= abs(found) - 1e-12))
    return PairedTest(found, (as_large + 1) / (n_permutations + 1))


def f1_test(
    first: Sequence[BracketCounts], second: Sequence[BracketCounts], *, seed: int = 0
) -> PairedTest:
    """Compare the F₁ of two parsers on the same sentences.

    Parameters
    ----------
    first, second : sequence of BracketCounts
        ``sentences`` of their `TreeReport`.
    seed : int
        Of the random numbers.

    Returns
    -------
    PairedTest
        F₁ of the first minus that of the second, and the p-value.
    """
    above = [[2 * row.n_correct for row in rows] for rows in (first, second)]
    below = [[row.n_true + row.n_predicted for row in rows] for rows in (first, second)]
    return ratio_test(above, below, seed=seed)
