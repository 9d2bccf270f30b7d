"""Parse trees as nested tuples: checked, flattened, and put together again.

A tree is ``(label, [child, ...])``; a child is such a tuple or a string, which is a terminal.
Nothing here recurses, so that trees may be as deep as they like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Node", "ParseTree", "bracket_spans", "flatten", "leaves"]

#: ``(label, [child, ...])``; a child is a tree or a terminal (str).
ParseTree: TypeAlias = tuple[str, list[Any]]


class Node(NamedTuple):
    """A node of a tree.

    Attributes
    ----------
    label : str
        Its label.
    children : tuple of (str, bool)
        Label of each child, or a terminal, for which the second entry is True.
    start, end : int
        Its span.
    places : tuple of int
        Where each child is in the list of nodes; -1 for a terminal.
    """

    label: str
    children: tuple[tuple[str, bool], ...]
    start: int
    end: int
    places: tuple[int, ...]


def flatten(tree: Any, where: str = "the tree") -> list[Node]:
    """Return the nodes of a tree from the top, children from the left.

    Parameters
    ----------
    tree : ParseTree
        The tree.
    where : str
        What it is called in messages.

    Returns
    -------
    list of Node
        The root first.

    Raises
    ------
    TypeError, ValueError
        If it is no tree.
    """
    order: list[tuple[str, list[Any]]] = []
    places: list[list[int]] = []
    spans: list[list[int]] = []
    position = 0
    # (tree, number of the parent) to begin with; (None, number) behind the last child.
    stack: list[tuple[Any, int]] = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        if node is None:
            spans[parent][1] = position
            continue
        if isinstance(node, str):
            if parent < 0:
                raise TypeError(f"{where} is the string {node!r}; expected (label, [children])")
            places[parent].append(-1)
            position += 1
            continue
        label, children = _checked(node, where)
        number = len(order)
        if parent >= 0:
            places[parent].append(number)
        order.append((label, children))
        places.append([])
        spans.append([position, position])
        stack.append((None, number))
        stack.extend((child, number) for child in reversed(children))
    return [
        Node(
            label,
            tuple((c, True) if isinstance(c, str) else (c[0], False) for c in children),
            start,
            end,
            tuple(own),
        )
        for (label, children), own, (start, end) in zip(order, places, spans, strict=True)
    ]


def _checked(node: Any, where: str) -> tuple[str, list[Any]]:
    """Return label and children of a node, if it is one."""
    if not isinstance(node, tuple | list) or len(node) != 2:
        shown = repr(node)[:80]
        raise TypeError(f"{where} has the node {shown}; expected (label, [children]) or a string")
    label, children = node
    if not isinstance(label, str):
        raise TypeError(f"{where} has a node with the label {label!r}; expected a string")
    if not isinstance(children, list | tuple):
        raise TypeError(
            f"{where} has a node {label!r} with children of type {type(children).__name__}; "
            "expected a list"
        )
    if not children:
        raise ValueError(f"{where} has a node {label!r} without children")
    for child in children:
        if child is None:
            raise TypeError(f"{where} has a node {label!r} with the child None")
    return label, list(children)


def leaves(tree: Any) -> list[str]:
    """Return the terminals of a tree.

    Parameters
    ----------
    tree : ParseTree
        The tree.

    Returns
    -------
    list of str
        From the left.
    """
    found: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            found.append(node)
        else:
            stack.extend(reversed(_checked(node, "the tree")[1]))
    return found


def bracket_spans(
    nodes: Sequence[Node],
    *,
    count_root: bool,
    count_preterminals: bool,
    ignore: frozenset[str],
    annotation: str | None,
) -> list[tuple[str, int, int]]:
    """Return the brackets of a tree: the labelled spans that count in the loss.

    Parameters
    ----------
    nodes : list of Node
        The tree, flattened.
    count_root, count_preterminals, ignore, annotation
        As for `maxmargin.structures.grammar.Grammar`.

    Returns
    -------
    list of (label, start, end)
        In the order of the nodes.
    """
    found = []
    for k, node in enumerate(nodes):
        label = plain_label(node.label, annotation)
        if label in ignore or (k == 0 and not count_root):
            continue
        if not count_preterminals and len(node.children) == 1 and node.children[0][1]:
            continue
        found.append((label, node.start, node.end))
    return found


def plain_label(label: str, annotation: str | None) -> str:
    """Return a label without its annotation; a label that begins with the mark stays as it is.

    Parameters
    ----------
    label : str
        The label of a node.
    annotation : str or None
        The mark.

    Returns
    -------
    str
        What brackets are compared by.
    """
    return label if not annotation else label.split(annotation, maxsplit=1)[0] or label
