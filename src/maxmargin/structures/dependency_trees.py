"""Heads of words: whether they are a tree, whether it is projective; all trees of few words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checked_heads", "heads_and_names", "is_projective", "list_trees"]

_SHOWN = 8  # words of a cycle that a message names


def checked_heads(heads: Any, n: int, where: str, *, one_root: bool) -> NDArray[np.int32]:
    """Return the heads of a sentence, if they are a tree.

    Parameters
    ----------
    heads : sequence of int
        The head of each word, counted from 1; 0 is the root.
    n : int
        Number of words.
    where : str
        What the sentence is called in messages.
    one_root : bool
        Whether only one word may have the root as its head.

    Returns
    -------
    int32 array of shape (n,)
        The heads.

    Raises
    ------
    ValueError
        If they are not one number for each word, or no tree.
    """
    found = np.asarray(heads)
    if found.shape != (n,) or (n and found.dtype.kind not in "iu"):
        raise ValueError(
            f"{where}: found heads of shape {found.shape} and type {found.dtype}; expected {n} "
            "integers, one for each word"
        )
    for word, head in enumerate(found.tolist(), start=1):
        if not 0 <= head <= n or head == word:
            raise ValueError(
                f"{where}: found the head {head} of word {word}; expected a number from 0 (the "
                f"root) to {n} other than {word}"
            )
    heads_of = [0, *found.tolist()]
    reached = {0}
    for word in range(1, n + 1):
        path: dict[int, None] = {}
        at = word
        while at not in reached and at not in path:
            path[at] = None
            at = heads_of[at]
        if at in path:
            cycle = list(path)[list(path).index(at) :]
            names = " -> ".join(map(str, [*cycle[:_SHOWN], cycle[0]]))
            raise ValueError(f"{where}: found a cycle in the heads: {names}; expected a tree")
        reached.update(path)
    roots = heads_of[1:].count(0)
    if one_root and roots > 1:
        raise ValueError(
            f"{where}: found {roots} words with the head 0; expected one (one_root=False allows "
            "more)"
        )
    return found.astype(np.int32)


def heads_and_names(y: Any) -> tuple[Any, list[Any] | None]:
    """Return heads and relations of an output as people write it.

    Parameters
    ----------
    y : object
        Heads, or a pair of heads and relations.

    Returns
    -------
    heads : object
        As they were given.
    names : list or None
        The relations, if there are any.
    """
    if isinstance(y, tuple | list) and len(y) == 2 and isinstance(y[0], np.ndarray | list | tuple):
        if y[1] is None:
            return y[0], None
        if isinstance(y[1], np.ndarray | list | tuple):
            return y[0], list(y[1])
    return y, None


def is_projective(heads: Sequence[int] | NDArray[np.int32]) -> bool:
    """Tell whether no two arcs of a tree cross.

    Parameters
    ----------
    heads : sequence of int
        The head of each word, counted from 1; 0 is the root, which stands before the first word.

    Returns
    -------
    bool
        True if the tree is projective.
    """
    arcs = sorted((min(h, d), max(h, d)) for d, h in enumerate(map(int, heads), start=1))
    # Arcs by their left ends: one that begins inside an open arc must end inside it.
    ends: list[int] = []
    for left, right in sorted(arcs, key=lambda arc: (arc[0], -arc[1])):
        while ends and ends[-1] <= left:
            ends.pop()
        if ends and right > ends[-1]:
            return False
        ends.append(right)
    return True


def list_trees(n: int, *, projective: bool, one_root: bool) -> Iterator[tuple[int, ...]]:
    """Give the heads of all trees over n words.

    Parameters
    ----------
    n : int
        Number of words; there are (n + 1)^(n - 1) trees with any number of roots.
    projective : bool
        Whether to leave out trees with crossing arcs.
    one_root : bool
        Whether to leave out trees in which the root has several children.

    Returns
    -------
    iterator of tuples of int
        The head of each word.
    """
    choices = [[h for h in range(n + 1) if h != d] for d in range(1, n + 1)]
    for heads in itertools.product(*choices):
        if one_root and heads.count(0) != 1:
            continue
        if _acyclic(heads) and (not projective or is_projective(heads)):
            yield heads


def _acyclic(heads: Sequence[int]) -> bool:
    for word in range(1, len(heads) + 1):
        at, steps = word, 0
        while at != 0:
            at, steps = heads[at - 1], steps + 1
            if steps > len(heads):
                return False
    return True
