"""Sentences and trees as users give them to a grammar, checked, and in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.printable import quoted
from maxmargin.structures.grammar_features import Columns
from maxmargin.structures.grammar_trees import Node, flatten

__all__ = ["Sentence", "checked_pairs", "checked_sentence", "joined_columns"]


class Sentence(NamedTuple):
    """A sentence with more than its terminals, for features of nodes.

    Attributes
    ----------
    terminals : sequence of str
        What the grammar reads: the leaves of the trees.
    words, tags : sequence of str or None
        As long as the terminals; templates of node features may name them.
    """

    terminals: Sequence[str]
    words: Sequence[str] | None = None
    tags: Sequence[str] | None = None


def checked_sentence(i: int, x: Any) -> Sentence:
    """Return a sentence as a `Sentence`, checked.

    Parameters
    ----------
    i : int
        Its number, for messages.
    x : list of str or Sentence
        What a user gave.
    """
    if isinstance(x, Sentence):
        found = x
    elif isinstance(x, str) or not isinstance(x, Sequence | np.ndarray):
        raise TypeError(f"sentence {i} is {quoted(x)}; expected a list of terminals or a Sentence")
    elif len(x) and isinstance(x, tuple) and not isinstance(x[0], str):
        found = Sentence(*x)
    else:
        found = Sentence(list(x))
    for name, column in zip(Sentence._fields, found, strict=True):
        if column is None:
            continue
        for t, value in enumerate(column):
            if not isinstance(value, str):
                raise TypeError(
                    f"sentence {i}: token {t} of its {name} is {quoted(value)}; expected a string"
                )
        if len(column) != len(found.terminals):
            raise ValueError(
                f"sentence {i} has {len(found.terminals)} terminals and {len(column)} {name}; "
                "expected as many"
            )
    return found


def joined_columns(sentences: Sequence[Sentence]) -> Columns:
    """Put sentences one after the other.

    Parameters
    ----------
    sentences : list of Sentence
        Checked.
    """
    offsets = np.cumsum([0, *(len(s.terminals) for s in sentences)]).astype(np.int64)
    terminals = [t for s in sentences for t in s.terminals]
    words, tags = (
        None
        if any(getattr(s, name) is None for s in sentences)
        else [v for s in sentences for v in getattr(s, name)]
        for name in ("words", "tags")
    )
    return Columns(offsets, terminals, words, tags)


def checked_pairs(X: Any, Y: Any) -> tuple[Columns, list[list[Node]]]:
    """Return sentences with the nodes of their trees, checked.

    Parameters
    ----------
    X : list
        Lists of terminals, or `Sentence`.
    Y : list of trees
        One for each; its leaves are the terminals.
    """
    if Y is None:
        raise ValueError("Y is None; expected a list of trees, one for each sentence")
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} sentences and Y has {len(Y)} trees; expected as many")
    if not len(X):
        raise ValueError("X has no sentences; expected at least one")
    sentences = [checked_sentence(i, x) for i, x in enumerate(X)]
    trees = []
    for i, (sentence, tree) in enumerate(zip(sentences, Y, strict=True)):
        if not len(sentence.terminals):
            raise ValueError(f"sentence {i} is empty; expected at least one terminal")
        if tree is None:
            raise ValueError(f"tree {i} is None; expected (label, [children])")
        nodes = flatten(tree, f"tree {i}")
        _check_leaves(i, sentence, nodes)
        trees.append(nodes)
    return joined_columns(sentences), trees


def _check_leaves(i: int, sentence: Sentence, nodes: list[Node]) -> None:
    """Refuse a tree whose leaves are not the sentence."""
    found: dict[int, str] = {}
    for node in nodes:
        position = node.start
        for (name, leaf), place in zip(node.children, node.places, strict=True):
            if leaf:
                found[position] = name
            position = position + 1 if leaf else nodes[place].end
    if len(found) != len(sentence.terminals):
        raise ValueError(
            f"tree {i} has {len(found)} leaves and its sentence {len(sentence.terminals)} "
            "terminals; expected the same"
        )
    for t, terminal in enumerate(sentence.terminals):
        if found[t] != terminal:
            raise ValueError(
                f"tree {i}: leaf {t} is {quoted(found[t])}, but terminal {t} of its sentence is "
                f"{quoted(terminal)}; expected the same"
            )
