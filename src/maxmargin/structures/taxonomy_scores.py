"""How good predicted classes of a taxonomy are: accuracy, tree loss, accuracy of the parents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.printable import quoted
from maxmargin.structures.taxonomy_graph import TaxonomyGraph, path_prefixes

__all__ = ["TaxonomyFigures", "taxonomy_figures"]


class TaxonomyFigures(NamedTuple):
    """Means over the examples.

    Attributes
    ----------
    accuracy : float
        Share of predictions that are right.
    tree_loss : float
        Mean height of the first common ancestor of truth and prediction, divided by the height of
        the root: between 0 and 1.
    parent_accuracy : float
        Share of predictions that are right or have a parent in common with the truth.
    height : int
        Height of the root; by it the tree loss was divided.
    """

    accuracy: float
    tree_loss: float
    parent_accuracy: float
    height: int


class _Truth(NamedTuple):
    """A true label: its node, or the lowest node above it if the taxonomy does not have it."""

    node: int
    known: bool
    parents: tuple[int, ...]


def taxonomy_figures(
    graph: TaxonomyGraph,
    truths: Any,
    predicted: Any,
    weights: Any = None,
    *,
    separator: str | None = None,
) -> TaxonomyFigures:
    """Compare predictions with the truth.

    Parameters
    ----------
    graph : TaxonomyGraph
        The taxonomy.
    truths, predicted : sequence
        Names of nodes, one of each for an example.
    weights : array or None
        Weights of the examples; None: ones.
    separator : str or None
        With it a truth may be a label path that the taxonomy does not have: it is taken for a
        child, or a child's child, of the lowest node that its path goes through, so that every
        prediction for it is wrong and costs at least 1.

    Returns
    -------
    TaxonomyFigures
        The means.

    Raises
    ------
    ValueError
        If there are not as many, or one is no node of the taxonomy.
    """
    true = [_truth(graph, name, i, separator) for i, name in enumerate(_listed(truths))]
    found = [_truth(graph, name, i, None).node for i, name in enumerate(_listed(predicted))]
    if len(true) != len(found) or not true:
        raise ValueError(
            f"there are {len(true)} truths and {len(found)} predictions; expected as many, and at "
            "least one"
        )
    pairs = list(zip(true, found, strict=True))
    losses = {(t, z): _loss(graph, t, z) for t, z in set(pairs)}
    height = max(1, int(graph.heights[0]))

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=weights))

    return TaxonomyFigures(
        mean([float(t.known and t.node == z) for t, z in pairs]),
        mean([losses[pair] / height for pair in pairs]),
        mean(
            [
                float((t.known and t.node == z) or not set(t.parents).isdisjoint(graph.parents[z]))
                for t, z in pairs
            ]
        ),
        height,
    )


def _loss(graph: TaxonomyGraph, truth: _Truth, found: int) -> float:
    if truth.known:
        return graph.tree_loss(truth.node, found)
    height = graph.tree_loss(truth.node, found) if truth.node != found else graph.heights[found]
    return max(1, int(height))


def _truth(graph: TaxonomyGraph, name: Any, i: int, separator: str | None) -> _Truth:
    z = graph.index.get(name) if isinstance(name, Hashable) and name is not None else None
    if z is not None:
        return _Truth(z, True, graph.parents[z])
    if separator is None or not isinstance(name, str):
        raise ValueError(
            f"example {i} has the label {quoted(name)}, which is no node of the taxonomy"
        )
    *above, _ = path_prefixes(name, separator, f"example {i}: ")
    for k, prefix in enumerate(reversed(above)):
        if prefix in graph.index:
            node = graph.index[prefix]
            return _Truth(node, False, (node,) if k == 0 else ())
    return _Truth(0, False, () if above else (0,))


def _listed(names: Any) -> list[Any]:
    names = names.tolist() if hasattr(names, "tolist") else names
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"found {quoted(names)}; expected a list of labels")
    return list(names)
