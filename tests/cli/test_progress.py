"""The estimate of the time that training still takes, which the line of progress shows."""

from __future__ import annotations

import math

import pytest

from maxmargin.cli.progress import time_left
from maxmargin.solvers import PassRecord


def passes(*pairs):
    """Return records of passes with these times and gaps."""
    return [
        PassRecord(k, "exact", seconds, 0, math.nan, 0.0, gap, math.nan, 0)
        for k, (seconds, gap) in enumerate(pairs, 1)
    ]


def test_time_left_is_linear_in_the_logarithm():
    # a tenth every two seconds
    records = passes((1, 1.0), (3, 0.1), (5, 0.01))
    assert time_left(records, 1e-4) == pytest.approx(4.0)
    assert time_left(records, 0.01) == 0.0
    assert time_left(records, 0.5) == 0.0


def test_time_left_looks_at_the_last_passes():
    # slow in the beginning; only the last six count
    slow = [(10.0 * k, 1.0 - 0.01 * k) for k in range(10)]
    fast = [(100.0 + k, 0.5 * 0.1**k) for k in range(6)]
    records = passes(*slow, *fast)
    assert time_left(records, 0.5e-6) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(1, 0.5)],
        [(1, math.nan), (2, 0.5), (3, math.nan)],
        [(1, 0.5), (2, 0.5)],
        [(1, 0.4), (2, 0.5)],
        [(1, 0.5), (1, 0.4)],
        [(1, 0.0), (2, 0.5)],
        [(1, math.inf), (2, 0.5)],
    ],
)
def test_time_left_is_not_known(pairs):
    assert math.isnan(time_left(passes(*pairs), 1e-3))


def test_time_left_passes_over_what_is_not_known():
    records = passes((1, math.nan), (2, 1.0), (3, math.nan), (4, 0.1), (9, math.nan))
    assert time_left(records, 0.01) == pytest.approx(2.0)


def test_time_left_for_a_gap_of_zero():
    # as in `maxmargin train --gap 0` in a terminal
    left = time_left(passes((1, 1.0), (3, 0.1)), 0.0)
    assert math.isnan(left) or left == math.inf
