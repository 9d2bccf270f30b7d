"""The classes of a taxonomy: which nodes they are, their attributes λ(y), and what errors cost.

λ_z(y) = √v_z where node z is y or one of its ancestors, else 0, with a weight v_z of each node (1
if none is asked for), so that λ(y)·λ(y') is the weight of what y and y' have in common: the number
of common predecessors in section 5.2 of the paper. A node above all classes, such as the root, adds
the same to the score of each; it has no part in any difference of features, and no column.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import is_number
from maxmargin.features.batch import ragged_ranges
from maxmargin.memory import require_memory
from maxmargin.printable import quoted
from maxmargin.structures.taxonomy_graph import TaxonomyGraph

__all__ = [
    "NODE_WEIGHTS",
    "ClassNodes",
    "Lambdas",
    "choose_classes",
    "class_names",
    "node_weights",
    "some_rows",
]

#: Λ as compressed rows, one for each class: begins, columns and values.
Lambdas: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]

#: Weights of nodes by name.
NODE_WEIGHTS = ("depth", "inverse_depth", "branch")

#: Most pairs of a class and an ancestor.
_MOST_PAIRS = 50_000_000
#: Greatest weight of a node.
_HEAVIEST = 1e12


@dataclass(frozen=True, eq=False)
class ClassNodes:
    """Nodes of a taxonomy that are classes, and the weights of all nodes.

    Attributes
    ----------
    graph : TaxonomyGraph
        The taxonomy.
    nodes : tuple of int
        The node of each class.
    weight : array of shape (n_nodes,)
        v_z of each node.
    """

    graph: TaxonomyGraph
    nodes: tuple[int, ...]
    weight: NDArray[np.float64]

    @cached_property
    def ancestors(self) -> list[list[int]]:
        """The nodes from each class up to the root, ascending."""
        found, left = [], _MOST_PAIRS
        for z in self.nodes:
            found.append(self.graph.ancestors(z))
            left -= len(found[-1])
            if left < 0:
                raise ValueError(
                    f"the {len(self.nodes)} classes have more than {_MOST_PAIRS} ancestors in all; "
                    "expected fewer classes, or a flatter taxonomy"
                )
        return found

    @cached_property
    def column_nodes(self) -> list[int]:
        """The node of each column of the weights, ascending."""
        count = np.zeros(len(self.graph.names), dtype=np.int64)
        for nodes in self.ancestors:
            count[nodes] += 1
        used = (count > 0) & (self.weight > 0)
        apart = used & (count < len(self.nodes))
        # A class that lies above all others has nothing but what they share.
        if all(apart[nodes].any() for nodes in self.ancestors):
            used = apart
        return np.flatnonzero(used).tolist()

    @cached_property
    def lambdas(self) -> Lambdas:
        """Λ as compressed rows: begins, columns and values."""
        column = np.full(len(self.graph.names), -1, dtype=np.int64)
        column[self.column_nodes] = np.arange(len(self.column_nodes))
        rows = [column[nodes][column[nodes] >= 0] for nodes in self.ancestors]
        for z, row in zip(self.nodes, rows, strict=True):
            if len(row) == 0:
                raise ValueError(
                    f"the class {quoted(self.graph.names[z])} and all nodes above it have the "
                    "weight 0; expected a positive weight of at least one of them"
                )
        begins = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
        columns = np.concatenate(rows).astype(np.uint32)
        values = np.sqrt(self.weight)[np.asarray(self.column_nodes)][columns]
        return begins, columns, values

    def matrix(self) -> NDArray[np.float64]:
        """Return Λ as a matrix: a row for each class, a column for each of `column_nodes`."""
        begins, columns, values = self.lambdas
        full = np.zeros((len(self.nodes), len(self.column_nodes)))
        full[np.repeat(np.arange(len(self.nodes)), np.diff(begins)), columns] = values
        return full

    def tree_costs(self) -> NDArray[np.float64]:
        """Return the tree loss of each pair of classes (`TaxonomyGraph.tree_loss`)."""
        K = len(self.nodes)
        require_memory(f"the losses of {K} x {K} classes", 8 * K * K, advice="use loss='0/1'")
        below: dict[int, list[int]] = {}
        for c, nodes in enumerate(self.ancestors):
            for z in nodes:
                below.setdefault(z, []).append(c)
        # From the highest nodes down: the last to write is the lowest common ancestor.
        costs = np.zeros((K, K))
        for z in sorted(below, key=lambda z: -self.graph.heights[z]):
            costs[np.ix_(below[z], below[z])] = self.graph.heights[z]
        np.fill_diagonal(costs, 0.0)
        return costs


def some_rows(lambdas: Lambdas, classes: NDArray[Any]) -> Lambdas:
    """Return the rows of some classes.

    Parameters
    ----------
    lambdas : tuple of arrays
        The rows of all classes.
    classes : array of int
        Which ones.
    """
    begins, columns, values = lambdas
    places = ragged_ranges(begins, classes)
    ends = np.cumsum([0, *np.diff(begins)[classes]]).astype(np.int64)
    return ends, columns[places], values[places]


def class_names(classes: Any) -> list[Hashable]:
    """Return the names of the classes that are named, or raise an error that says what is not."""
    if not isinstance(classes, Iterable):
        raise TypeError(
            f"classes is {quoted(classes)}; expected 'leaves', 'all' or a list of nodes"
        )
    names = list(classes)
    for name in names:
        if not isinstance(name, Hashable):
            raise TypeError(f"classes has {quoted(name)}; expected hashable names of nodes")
    return names


def choose_classes(
    graph: TaxonomyGraph, classes: Any, labels: Mapping[Hashable, int]
) -> list[Hashable]:
    """Return the labels that can be predicted, and check those of the examples.

    Parameters
    ----------
    graph : TaxonomyGraph
        The taxonomy.
    classes : "leaves", "all" or sequence
        What may be a label: the leaves, every node but the root, or these nodes.
    labels : mapping
        The labels of the training examples, and the first example that has each.

    Returns
    -------
    list
        The classes, in the order of the nodes.

    Raises
    ------
    ValueError
        If a label is no node of the taxonomy, or no class.
    """
    if isinstance(classes, str):
        if classes not in ("leaves", "all"):
            raise ValueError(
                f"classes is {quoted(classes)}; expected 'leaves', 'all' or a list of nodes"
            )
        places = graph.leaves if classes == "leaves" else list(range(1, len(graph.names)))
    else:
        chosen = list(dict.fromkeys(class_names(classes)))
        for name in chosen:
            if name is None or name not in graph.index:
                raise ValueError(f"the class {quoted(name)} is no node of the taxonomy")
        places = sorted(graph.index[name] for name in chosen)
    if not places:
        raise ValueError("the taxonomy has no class")
    allowed = set(places)
    for label, i in labels.items():
        if label is None or label not in graph.index:
            raise ValueError(
                f"example {i} has the label {quoted(label)}, which is no node of the taxonomy"
            )
        z = graph.index[label]
        if z in allowed:
            continue
        if isinstance(classes, str):
            child = next((graph.names[c] for c, up in enumerate(graph.parents) if z in up), None)
            below = "" if child is None else f", as {quoted(child)} lies below it"
            raise ValueError(
                f"label paths contradict each other: example {i} has the label {quoted(label)}, "
                f"which is no leaf{below}; expected leaves (classes='all' allows every node)"
            )
        raise ValueError(f"example {i} has the label {quoted(label)}, which is none of the classes")
    return [graph.names[z] for z in places]


def node_weights(graph: TaxonomyGraph, given: Any) -> NDArray[np.float64]:
    """Return v_z of every node.

    Parameters
    ----------
    graph : TaxonomyGraph
        The taxonomy.
    given : None, "depth", "inverse_depth", "branch", mapping or array
        None: 1 for all. "depth": the number of edges from the root, "inverse_depth" one over it.
        "branch": nodes on a way without branches, which all have the same classes below them, share
        a weight of 1, so that it does not matter how long the way is. A mapping has weights by
        name, 1 for nodes that it does not have. An array has one for each node, in the order of
        ``graph.names``.

    Returns
    -------
    array of shape (n_nodes,)
        Finite and not negative.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or a node unknown.
    """
    n = len(graph.names)
    if given is None:
        return np.ones(n)
    if isinstance(given, str):
        if given not in NODE_WEIGHTS:
            raise ValueError(
                f"node_weight is {quoted(given)}; expected 'depth', 'inverse_depth', 'branch', a "
                "mapping, an array or None"
            )
        if given == "branch":
            return _by_branches(graph)
        depth = np.maximum(graph.depths, 1).astype(float)
        return depth if given == "depth" else 1.0 / depth
    if isinstance(given, Mapping):
        weight = np.ones(n)
        for name, value in given.items():
            if name not in graph.index:
                raise ValueError(f"node_weight has {quoted(name)}, which is no node")
            weight[graph.index[name]] = value if is_number(value) else np.nan
    else:
        weight = np.asarray(given, dtype=float)
        if weight.shape != (n,):
            raise ValueError(
                f"node_weight has the shape {weight.shape}; expected ({n},), one for each node"
            )
    bad = np.flatnonzero(~((weight >= 0) & (weight <= _HEAVIEST)))
    if len(bad):
        raise ValueError(
            f"the weight of node {quoted(graph.names[bad[0]])} is {weight[bad[0]]}; expected a "
            f"number between 0 and {_HEAVIEST:g}"
        )
    return weight


def _by_branches(graph: TaxonomyGraph) -> NDArray[np.float64]:
    """Return one over the number of nodes on the way without branches that each node is on."""
    n = len(graph.names)
    children = np.zeros(n, dtype=np.int64)
    for parents in graph.parents:
        for p in parents:
            children[p] += 1
    top = np.arange(n)  # the first node of the way
    for z, parents in enumerate(graph.parents):
        if len(parents) == 1 and children[parents[0]] == 1:
            top[z] = top[parents[0]]
    return 1.0 / np.bincount(top, minlength=n)[top]
