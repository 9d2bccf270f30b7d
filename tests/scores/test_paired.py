"""The permutation test against all permutations, and against what it must find."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxmargin.scores.paired import f1_test, ratio_test
from maxmargin.scores.trees import BracketCounts


def by_all_permutations(above, below):
    above, below = np.asarray(above, float), np.asarray(below, float)
    found = []
    for swaps in itertools.product((0, 1), repeat=above.shape[1]):
        pick = np.array(swaps)
        rows = np.arange(above.shape[1])
        scores = [above[side, rows].sum() / below[side, rows].sum() for side in (pick, 1 - pick)]
        found.append(scores[0] - scores[1])
    return found[0], np.mean(np.abs(found) >= abs(found[0]) - 1e-12)


def test_against_all_permutations():
    draw = np.random.default_rng(0)
    for _ in range(5):
        below = draw.integers(3, 9, size=(2, 7))
        above = draw.integers(0, 4, size=(2, 7))
        difference, p_value = by_all_permutations(above, below)
        found = ratio_test(above, below, n_permutations=20_000)
        assert found.difference == pytest.approx(difference)
        assert found.p_value == pytest.approx(p_value, abs=0.02)


def test_what_it_must_find():
    same = [BracketCounts(5, 5, 3)] * 30
    better = [BracketCounts(5, 5, 4)] * 30
    assert f1_test(same, same) == (0.0, 1.0)
    found = f1_test(better, same)
    assert found.difference == pytest.approx(0.2)
    assert found.p_value < 1e-3
    assert f1_test(same, better).difference == pytest.approx(-0.2)
    assert f1_test(better[:1], same[:1]).p_value == 1.0


def test_shapes():
    with pytest.raises(ValueError, match="expected \\(2, n\\)"):
        ratio_test([[1, 2]], [[1, 2]])
    with pytest.raises(ValueError, match="expected \\(2, n\\)"):
        ratio_test([[1, 2], [1, 2]], [[1], [1]])
