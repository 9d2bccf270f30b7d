"""Examples in chunks that are merged as they become more.

New examples are a chunk of their own. When `MERGED` chunks at the end are of about the same size
they become one. So n examples that came one by one are in O(log n) chunks, and each was copied
O(log n) times: the cost of an example does not grow with the number of those before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.structures.growing import Change, Growing

__all__ = ["Chunks"]

#: So many chunks of about the same size are merged.
MERGED = 8


class Chunks:
    """Encoded examples, and the native problem of all of them.

    Parameters
    ----------
    growing : Growing
        What makes problems of examples.
    data : list
        Encoded examples, one entry a chunk; at least one.

    Attributes
    ----------
    problem : ChunkedProblem
        All examples.
    problems : list of Problem
        Those of each chunk.
    copied : int
        How many examples were copied by merging, all copies counted.
    """

    def __init__(self, growing: Growing, data: list[Any]) -> None:
        self.growing = growing
        self.data = data
        self.copied = 0
        self.problems = [growing.problem(entry) for entry in data]
        self.problem = _native.ChunkedProblem(self.problems[0])
        for problem in self.problems[1:]:
            self.problem.append(problem)

    def append(self, entry: Any, problem: _native.Problem) -> None:
        """Add examples behind those that there are.

        Parameters
        ----------
        entry : object
            Encoded examples.
        problem : Problem
            The same as a problem.
        """
        self.problem.append(problem)
        self.data.append(entry)
        self.problems.append(problem)
        while self._merge():
            pass

    def _merge(self) -> bool:
        sizes = self.problem.sizes
        if len(sizes) < MERGED or _level(max(sizes[-MERGED:])) != _level(sizes[-1]):
            return False
        joined = self.growing.join(self.data[-MERGED:])
        problem = self.growing.problem(joined)
        self.problem.merge(MERGED, problem)
        self.data[-MERGED:], self.problems[-MERGED:] = [joined], [problem]
        self.copied += self.growing.count(joined)
        return True

    def changed(self, change: Change) -> Chunks:
        """Return the same examples in another layout of the weights.

        Parameters
        ----------
        change : Change
            What is different.
        """
        return Chunks(self.growing, [change.data(entry) for entry in self.data])

    def without(self, gone: NDArray[np.bool_]) -> list[Any]:
        """Return the encoded examples, chunk by chunk, without some.

        Parameters
        ----------
        gone : bool array
            Which examples to leave out.
        """
        left, begin = [], 0
        for entry, size in zip(self.data, self.problem.sizes, strict=True):
            stays = np.flatnonzero(~gone[begin : begin + size])
            begin += size
            if len(stays) == size:
                left.append(entry)
            elif len(stays) > 0:
                left.append(self.growing.take(entry, stays))
        return left


def _level(size: int) -> int:
    level = 0
    while size >= MERGED:
        size //= MERGED
        level += 1
    return level
