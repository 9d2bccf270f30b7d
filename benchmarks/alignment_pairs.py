"""Pairs of proteins that TM-align has aligned, and aligners with given scores."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin import Aligner, Alignment
from maxmargin.estimators.aligner import prior_weights


class Pairs(NamedTuple):
    """Sequences and alignments of a file."""

    X: list[tuple[str, str]]
    Y: list[str]

    def take(self, places: Any) -> Pairs:
        """Return some of the pairs."""
        return Pairs([self.X[i] for i in places], [self.Y[i] for i in places])

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(len(a) * len(b) for a, b in self.X)


def read_pairs(path: Path) -> Pairs:
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return Pairs([(row[4], row[5]) for row in rows], [row[6] for row in rows])


def fixed_aligner(matrix: tuple[str, Any], gap_open: float, gap_extend: float) -> Aligner:
    """Return an aligner with given scores."""
    model = Aligner("protein")
    model.structure_ = Alignment("protein")
    model.weights_ = prior_weights(model.structure_, (*matrix, gap_open, gap_extend), 1.0)
    return model
