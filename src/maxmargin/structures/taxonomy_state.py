"""The nodes and classes of a taxonomy in a model file: names as JSON, parents as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.structures.class_labels import classes_from_meta, classes_to_meta
from maxmargin.structures.taxonomy_classes import ClassNodes, node_weights
from maxmargin.structures.taxonomy_graph import TaxonomyGraph

__all__ = ["restored_classes", "stored_classes"]


def stored_classes(known: ClassNodes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return nodes and classes as a file has them.

    Parameters
    ----------
    known : ClassNodes
        What is to be written.

    Returns
    -------
    meta, arrays : dict
        What JSON can hold, and the rest.

    Raises
    ------
    ValueError
        If a name is neither a text nor a number nor a tuple of them, which a file cannot hold.
    """
    counts = [len(parents) for parents in known.graph.parents]
    return {"nodes": classes_to_meta(list(known.graph.names))}, {
        "parent_begins": np.cumsum([0, *counts]).astype(np.int64),
        "parents": np.array([p for up in known.graph.parents for p in up], dtype=np.int64),
        "classes": np.array(known.nodes, dtype=np.int64),
        "node_weight": known.weight,
    }


def restored_classes(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ClassNodes:
    """Return nodes and classes that a file holds, of which nothing is trusted.

    Parameters
    ----------
    meta, arrays : dict
        What `stored_classes` gave, or anything else.

    Raises
    ------
    ValueError, KeyError, TypeError
        If they do not make sense.
    """
    names = classes_from_meta(meta["nodes"])
    if None in names[1:]:
        raise ValueError("a node of the taxonomy has no name")
    n = len(names)
    begins = _whole(arrays["parent_begins"], "where the parents begin")
    parents = _whole(arrays["parents"], "the parents")
    classes = _whole(arrays["classes"], "the classes")
    if len(begins) != n + 1 or begins[0] != 0 or begins[-1] != len(parents):
        raise ValueError("the parents of the nodes do not go with their number")
    if (np.diff(begins) < 0).any() or begins[1] != 0 or (np.diff(begins)[1:] < 1).any():
        raise ValueError("the taxonomy has no root, or several")
    owner = np.repeat(np.arange(n), np.diff(begins))
    if (parents < 0).any() or (parents >= owner).any():
        raise ValueError("a node of the taxonomy comes before its parent")
    if len(classes) == 0 or (classes < 0).any() or (classes >= n).any():
        raise ValueError("a class is no node of the taxonomy")
    if len(set(classes.tolist())) != len(classes) or (names[0] is None and (classes == 0).any()):
        raise ValueError("a class comes twice, or has no name")
    up = parents.tolist()
    graph = TaxonomyGraph(
        tuple(names),
        tuple(tuple(up[a:b]) for a, b in zip(begins.tolist(), begins[1:].tolist(), strict=False)),
    )
    weight = node_weights(graph, np.array(arrays["node_weight"], dtype=float))
    return ClassNodes(graph, tuple(classes.tolist()), weight)


def _whole(array: NDArray[Any], what: str) -> NDArray[np.int64]:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{what} are no list of whole numbers")
    return array.astype(np.int64)
