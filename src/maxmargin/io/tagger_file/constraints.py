"""The constraints that a tagger decodes with, in its file: as TOML, with the learned weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.constraints import ConstraintSet
from maxmargin.structures.chain_constraints import ChainConstraints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["describe_constraints", "restore_constraints"]

#: The array of the learned weights of constraints.
WEIGHTS = "constraint_weights"
#: What the header has beside the text of the rules.
SETTINGS = ("decode", "penalty", "features", "infeasible", "width")


def describe_constraints(
    constraints: ChainConstraints,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a file holds of constraints.

    Parameters
    ----------
    constraints : ChainConstraints
        Of a prepared chain.

    Returns
    -------
    meta : dict
        For the header of the file.
    arrays : dict
        What the header refers to.

    Raises
    ------
    ConstraintError
        If a constraint has a function, which a file cannot hold.
    """
    meta: dict[str, Any] = {"toml": constraints.rules.to_toml()}
    meta |= {name: getattr(constraints, name) for name in SETTINGS}
    if constraints.weights is None:
        return meta, {}
    return meta, {WEIGHTS: np.asarray(constraints.weights, dtype=np.float64)}


def restore_constraints(
    meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> ChainConstraints | None:
    """Return the constraints that a file holds; None: it has none.

    Parameters
    ----------
    meta : mapping
        The header.
    arrays : mapping
        The arrays of the file.

    Returns
    -------
    ChainConstraints or None
        What decoding uses.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the file does not make sense there.
    """
    described = meta.get("constraints")
    if described is None:
        return None
    if not isinstance(described, dict) or not isinstance(described.get("toml"), str):
        raise ValueError("the constraints are no constraints")
    settings = {name: described[name] for name in SETTINGS}
    if not isinstance(settings["features"], bool):
        raise ValueError("the constraints do not say whether they are features")
    rules = ConstraintSet.from_toml_text(described["toml"], "the constraints of the model")
    weights = None
    if settings["features"]:
        weights = np.asarray(arrays[WEIGHTS], dtype=np.float64)
    found = ChainConstraints(rules, **settings, weights=weights)
    if weights is not None and (
        weights.shape != (found.n_features,) or not np.isfinite(weights).all()
    ):
        raise ValueError("the weights of the constraints do not fit them")
    return found
