"""What errors of a taxonomy cost: the tree loss, 0/1, or what a user says."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.printable import quoted
from maxmargin.structures.class_labels import class_costs
from maxmargin.structures.taxonomy_classes import ClassNodes

__all__ = ["LOSSES", "costs_of"]

#: Losses by name.
LOSSES = ("tree", "tree_share", "0/1")


def costs_of(given: Any, known: ClassNodes, classes: list[Hashable]) -> NDArray[np.float64] | None:
    """Return what each answer costs for each truth.

    Parameters
    ----------
    given : "tree", "tree_share", "0/1", array or dict
        As `maxmargin.structures.taxonomy.Taxonomy` takes it.
    known : ClassNodes
        The nodes of the classes.
    classes : list
        Their labels.

    Returns
    -------
    array of shape (n_classes, n_classes) or None
        None for 0/1.

    Raises
    ------
    ValueError
        If it is none of these, or a cost is not as it must be.
    """
    if not isinstance(given, str) or given == "0/1":
        return class_costs(given, classes)
    if given not in LOSSES:
        raise ValueError(
            f'loss is {quoted(given)}; expected "tree", "tree_share", "0/1", a (K, K) array of '
            "costs, or a dict {(truth, class): cost}"
        )
    costs = known.tree_costs()
    if given == "tree_share":
        costs /= max(1, int(known.graph.heights[0]))
    return costs
