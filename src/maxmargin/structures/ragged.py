"""Examples as flat arrays: putting some behind each other, and taking some out.

The arguments of a native problem are arrays with an entry for each example, each token, each
feature of a token, ...: the *levels*. A pointer array leads from one level to the next: its entry k
is the first place at the lower level that belongs to place k of the upper one. A `Schema` says of
which level each array is; joining and taking need to know no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.batch import ragged_ranges

__all__ = ["EXAMPLE", "Schema"]

EXAMPLE = "example"


@dataclass(frozen=True)
class Schema:
    """Of which level the arrays are.

    Parameters
    ----------
    pointers : dict
        Name of a pointer array: the level that it is of, and the one that it points to. An array
        of a level stands behind one that points to it.
    arrays : dict
        Name of another array: its level. Dimensions behind the first one are kept.
    ones : tuple of str
        Arrays that may be None, which means ones.
    counted_by : str
        An array of the level of examples that is always there.

    Examples
    --------
    >>> schema = Schema({"indptr": ("example", "entry")}, {"indices": "entry"})
    >>> parts = {"indptr": np.array([0, 2, 3]), "indices": np.array([5, 6, 7])}
    >>> both = schema.join([parts, parts])
    >>> both["indptr"].tolist(), both["indices"].tolist()
    ([0, 2, 3, 5, 6], [5, 6, 7, 5, 6, 7])
    >>> schema.take(both, np.array([1, 2]))["indices"].tolist()
    [7, 5, 6]
    """

    pointers: Mapping[str, tuple[str, str]]
    arrays: Mapping[str, str]
    ones: tuple[str, ...] = field(default=())
    counted_by: str = "indptr"

    def count(self, parts: Mapping[str, Any]) -> int:
        """Return the number of examples.

        Parameters
        ----------
        parts : dict
            Arguments of a problem.
        """
        return len(parts[self.counted_by]) - (self.counted_by in self.pointers)

    def join(self, several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the examples of several problems as arguments of one.

        Parameters
        ----------
        several : sequence of dicts
            Arguments of problems with the same layout. What is no array of the schema is that of
            the last one.

        Returns
        -------
        dict
            Arguments of a problem with all examples, in the order given.
        """
        joined = dict(several[-1])
        for name in self.pointers:
            given: list[Any] = [parts.get(name) for parts in several]
            if given[0] is None:
                continue
            ends = np.cumsum([0, *(int(p[-1]) for p in given)])
            shifted = [p[1:] + end for p, end in zip(given, ends[:-1], strict=True)]
            joined[name] = np.concatenate([[0], *shifted]).astype(np.int64)
        for name, level in self.arrays.items():
            entries: list[Any] = [parts.get(name) for parts in several]
            there = [array for array in entries if array is not None]
            if not there:
                continue
            if len(there) < len(entries):
                sizes = [self._size(parts, level) for parts in several]
                entries = [
                    np.ones(size, there[0].dtype) if array is None else array
                    for array, size in zip(entries, sizes, strict=True)
                ]
            joined[name] = np.ascontiguousarray(np.concatenate(entries))
        return joined

    def take(self, parts: Mapping[str, Any], examples: NDArray[Any]) -> dict[str, Any]:
        """Return some of the examples.

        Parameters
        ----------
        parts : dict
            Arguments of a problem.
        examples : int array
            Which ones.

        Returns
        -------
        dict
            Arguments of a problem with these, in the order given. Nothing of the others is left in
            its arrays.
        """
        taken = dict(parts)
        places: dict[str, NDArray[Any]] = {EXAMPLE: np.asarray(examples)}
        for name, (level, below) in self.pointers.items():
            pointers = parts.get(name)
            if pointers is None:
                continue
            places[below] = ragged_ranges(pointers, places[level])
            lengths = np.diff(pointers)[places[level]]
            taken[name] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        for name, level in self.arrays.items():
            if parts.get(name) is not None:
                taken[name] = np.ascontiguousarray(parts[name][places[level]])
        return taken

    def _size(self, parts: Mapping[str, Any], level: str) -> int:
        if level == EXAMPLE:
            return self.count(parts)
        for name, (_, below) in self.pointers.items():
            if below == level and parts.get(name) is not None:
                return int(parts[name][-1])
        raise AssertionError(f"no array points to the level {level}")
