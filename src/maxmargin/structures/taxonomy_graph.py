"""The nodes of a taxonomy: read from label paths, a parent map or a graph, and checked.

A taxonomy has one root; every other node has a parent, or several (a lattice). It may come as

- label paths, ``"rec/sport/hockey"``: every prefix of a path is a node, ``"rec/sport"`` and
  ``"rec"``, below a root without a name;
- a parent map, ``{"hockey": "sport", "sport": "rec"}``, or with lists of parents;
- a directed graph as networkx has them, with edges from parents to children.

`read_taxonomy` makes a `TaxonomyGraph` of any of them, or says what contradicts what.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.printable import quoted

__all__ = ["ROOT", "TaxonomyGraph", "graph_of_labels", "path_prefixes", "read_taxonomy"]

#: The root of label paths. No label is None.
ROOT = None


@dataclass(frozen=True, eq=False)
class TaxonomyGraph:
    """A taxonomy with one root.

    Attributes
    ----------
    names : tuple
        The names of the nodes, each after those of all its parents; the root is the first. The
        root of label paths is None.
    parents : tuple of tuples of int
        The parents of each node, as places in ``names``; none of the root.
    """

    names: tuple[Hashable, ...]
    parents: tuple[tuple[int, ...], ...]

    @cached_property
    def index(self) -> dict[Hashable, int]:
        """Place of each node by its name."""
        return {name: z for z, name in enumerate(self.names)}

    @cached_property
    def heights(self) -> NDArray[np.int64]:
        """Edges on the longest way from each node down to a leaf."""
        heights = np.zeros(len(self.names), dtype=np.int64)
        for z in range(len(self.names) - 1, 0, -1):
            for p in self.parents[z]:
                heights[p] = max(heights[p], heights[z] + 1)
        return heights

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """Edges on the shortest way from the root to each node."""
        depths = np.zeros(len(self.names), dtype=np.int64)
        for z in range(1, len(self.names)):
            depths[z] = 1 + min(depths[p] for p in self.parents[z])
        return depths

    @property
    def leaves(self) -> list[int]:
        """The nodes without children."""
        return np.flatnonzero(self.heights == 0).tolist()

    @property
    def is_tree(self) -> bool:
        """Whether no node has several parents."""
        return all(len(parents) <= 1 for parents in self.parents)

    def ancestors(self, node: int) -> list[int]:
        """Return a node and all that lie above it, the root included, ascending.

        Parameters
        ----------
        node : int
            Place of the node.
        """
        found, ahead = {node}, [node]
        while ahead:
            for p in self.parents[ahead.pop()]:
                if p not in found:
                    found.add(p)
                    ahead.append(p)
        return sorted(found)

    def path(self, node: int) -> tuple[Hashable, ...]:
        """Return the names from below the root down to a node; of several parents the first.

        Parameters
        ----------
        node : int
            Place of the node.
        """
        names = []
        while self.parents[node]:
            names.append(self.names[node])
            node = self.parents[node][0]
        return tuple(reversed(names))

    def tree_loss(self, a: int, b: int) -> int:
        """Return the height of the first common ancestor of two nodes; 0 for a node and itself.

        A node is an ancestor of itself. In a lattice, where several common ancestors may be first,
        the lowest height counts. In a tree the common ancestors lie on one way to the root, the
        first is the lowest of them, and both definitions agree.

        Parameters
        ----------
        a, b : int
            Places of the nodes.
        """
        if a == b:
            return 0
        common = set(self.ancestors(a)).intersection(self.ancestors(b))
        return int(min(self.heights[z] for z in common))


def path_prefixes(path: str, separator: str, where: str = "") -> list[str]:
    """Return the nodes of a label path, from the top: its prefixes.

    Parameters
    ----------
    path : str
        For example ``"rec/sport/hockey"``.
    separator : str
        What stands between the names.
    where : str
        Begins the message of an error, for example ``"example 3: "``.

    Raises
    ------
    ValueError
        If a name on the path is empty.
    """
    parts = path.split(separator)
    if not all(parts):
        raise ValueError(
            f"{where}the label path {quoted(path)} has an empty name; expected names with one "
            f"{quoted(separator)} between them"
        )
    return [separator.join(parts[: k + 1]) for k in range(len(parts))]


def graph_of_labels(
    labels: Iterable[Hashable], separator: str | None, *, unique_names: bool = False
) -> TaxonomyGraph:
    """Return the taxonomy that label paths write down.

    Parameters
    ----------
    labels : iterable
        The labels. A text is a path; any other label is a child of the root.
    separator : str or None
        What stands between the names of a path. None: texts are no paths either.
    unique_names : bool
        Whether a name may stand under one parent only.

    Raises
    ------
    ValueError
        If a name on a path is empty, or stands under two parents where it must not.
    """
    parents: dict[Hashable, list[Hashable]] = {ROOT: []}
    known: dict[str, str] = {}
    for i, label in enumerate(dict.fromkeys(labels)):
        if separator is None or not isinstance(label, str):
            parents.setdefault(_named(label, f"label {i}"), [ROOT])
            continue
        above: Hashable = ROOT
        for prefix in path_prefixes(label, separator):
            name = prefix if above is ROOT else prefix[len(str(above)) + len(separator) :]
            other = known.setdefault(name, prefix)
            if unique_names and other != prefix:
                raise ValueError(
                    f"label paths contradict each other: {quoted(name)} is {quoted(other)} in one "
                    f"and {quoted(prefix)} in {quoted(label)}; expected it in one place "
                    "(or names that need not be unique)"
                )
            parents.setdefault(prefix, [above])
            above = prefix
    return _ordered(parents)


def read_taxonomy(
    taxonomy: Any,
    *,
    separator: str | None = "/",
    unique_names: bool = False,
    add_root: bool = False,
) -> TaxonomyGraph:
    """Return a taxonomy that was given in any of the forms above.

    Parameters
    ----------
    taxonomy : TaxonomyGraph, sequence of label paths, mapping or directed graph
        A mapping has the parent, or a list of parents, of each node; None or an empty list for the
        root, which need not be a key. A graph has ``nodes``, ``edges`` and ``is_directed()``; its
        edges go from parents to children.
    separator : str or None
        What stands between the names of a label path.
    unique_names : bool
        Whether a name of label paths may stand under one parent only.
    add_root : bool
        Whether several roots of a map or graph get a common parent, None.

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If there is a cycle, no node, or several roots.
    """
    if isinstance(taxonomy, TaxonomyGraph):
        return taxonomy
    if isinstance(taxonomy, Mapping):
        return _ordered(_of_mapping(taxonomy), add_root=add_root)
    if hasattr(taxonomy, "edges") and hasattr(taxonomy, "nodes"):
        return _ordered(_of_graph(taxonomy), add_root=add_root)
    if isinstance(taxonomy, str) or not isinstance(taxonomy, Iterable):
        raise TypeError(
            f"the taxonomy is a {type(taxonomy).__name__}; expected a sequence of label paths, a "
            "mapping from nodes to their parents, or a directed graph of networkx"
        )
    return graph_of_labels(taxonomy, separator, unique_names=unique_names)


def _named(name: Any, what: str) -> Hashable:
    if name is None or not isinstance(name, Hashable):
        raise TypeError(
            f"{what} is {'None' if name is None else 'a ' + type(name).__name__}; expected a "
            "hashable name"
        )
    return name


def _of_mapping(taxonomy: Mapping[Any, Any]) -> dict[Hashable, list[Hashable]]:
    parents: dict[Hashable, list[Hashable]] = {}
    for child, given in taxonomy.items():
        # A tuple may be a name; a map that has it as a node says so.
        several = isinstance(given, list | tuple) and not (
            isinstance(given, tuple) and given in taxonomy
        )
        above = list(given) if several else [given]
        what = f"a parent of {quoted(child)}"
        above = [_named(p, what) for p in above if not (p is None and len(above) == 1)]
        parents.setdefault(_named(child, "a node of the taxonomy"), []).extend(dict.fromkeys(above))
    return parents


def _of_graph(graph: Any) -> dict[Hashable, list[Hashable]]:
    if not graph.is_directed():
        raise ValueError(
            "the graph of the taxonomy is not directed; expected a DiGraph with edges from parents "
            "to children"
        )
    parents: dict[Hashable, list[Hashable]] = {
        _named(node, "a node of the taxonomy"): [] for node in graph.nodes
    }
    for edge in graph.edges:
        above, below = edge[0], edge[1]  # a MultiDiGraph has keys besides
        if above not in parents[below]:
            parents[below].append(above)
    return parents


def _ordered(given: dict[Hashable, list[Hashable]], *, add_root: bool = False) -> TaxonomyGraph:
    """Put every node after its parents; refuse cycles and several roots."""
    parents: dict[Hashable, list[Hashable]] = {}
    for child, above in given.items():
        for p in above:
            parents.setdefault(p, given.get(p, []))
        parents.setdefault(child, above)
    if not parents:
        raise ValueError("the taxonomy has no node")
    roots = [name for name, above in parents.items() if not above]
    if len(roots) > 1 and add_root:
        for name in roots:
            parents[name] = [ROOT]
        parents[ROOT] = []
        roots = [ROOT]
    children: dict[Hashable, list[Hashable]] = {name: [] for name in parents}
    for child, above in parents.items():
        for p in above:
            children[p].append(child)
    missing = {name: len(above) for name, above in parents.items()}
    order = list(roots)
    for name in order:  # grows
        for child in children[name]:
            missing[child] -= 1
            if missing[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        raise ValueError(f"the taxonomy has a cycle: {_a_cycle(parents, given, set(order))}")
    if len(roots) > 1:
        some = ", ".join(quoted(name) for name in roots[:5])
        raise ValueError(
            f"the taxonomy has {len(roots)} roots: {some}{', ...' if len(roots) > 5 else ''}; "
            "expected one (add_root=True puts one above them)"
        )
    place = {name: z for z, name in enumerate(order)}
    return TaxonomyGraph(
        tuple(order), tuple(tuple(place[p] for p in parents[name]) for name in order)
    )


def _a_cycle(
    parents: Mapping[Hashable, list[Hashable]], given: Iterable[Hashable], done: set[Hashable]
) -> str:
    """Return a cycle in words: go up from a node that was never reached until one comes again."""
    name = next(name for name in given if name not in done)
    way: dict[Hashable, int] = {}
    while name not in way:
        way[name] = len(way)
        name = next(p for p in parents[name] if p not in done)
    cycle = [*list(way)[way[name] :], name]
    if len(cycle) > 8:
        return " below ".join(quoted(n) for n in cycle[:7]) + " below ..."
    return " below ".join(quoted(n) for n in cycle)
