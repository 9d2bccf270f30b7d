"""Alignments by brute force: every one of them is listed."""

from __future__ import annotations

import itertools

import numpy as np

from maxmargin.structures.alignment import Alignment
from maxmargin.structures.alignment_sequences import Ranked


def all_alignments(n, m):
    """Return every set of matches of sequences of n and m characters."""
    found = []
    for k in range(min(n, m) + 1):
        for rows in itertools.combinations(range(n), k):
            for columns in itertools.combinations(range(m), k):
                pairs = np.array(list(zip(rows, columns, strict=True)), dtype=np.int32)
                found.append(pairs.reshape(-1, 2))
    return found


def text_of(sequence):
    """Return a sequence without its features."""
    return sequence if isinstance(sequence, str) else sequence[0]


class ListedAlignment(Alignment):
    """The same structure, with outputs that are listed."""

    def outputs(self, x):
        """Return all outputs: of a pair, or of all second sequences."""
        n = len(text_of(x[0]))
        if len(x) == 2:
            return all_alignments(n, len(text_of(x[1])))
        return [
            Ranked(which, matches)
            for which, second in enumerate([x[1], *x[2]])
            for matches in all_alignments(n, len(text_of(second)))
        ]

    def wrong_outputs(self, x, truth):
        """Return the outputs of training but the truth."""
        fixed = self.homolog == "fixed" and len(x) == 3
        for y in self.outputs(x):
            matches = y.matches if isinstance(y, Ranked) else y
            same = not (isinstance(y, Ranked) and y.which > 0)
            if same and (fixed or np.array_equal(matches, truth)):
                continue
            yield y
