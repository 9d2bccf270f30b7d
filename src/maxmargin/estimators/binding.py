"""A regulariser and a prepared structure, joined: arrays in the layout that the engine needs.

`Regularizer.bound` does it for bounds, means and precisions of single weights. A prior with a full
precision matrix changes the problem: it is trained in other coordinates
(``structures/transformed.py``), and its weights are turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.regularizers import (
    L2,
    GaussianPrior,
    Nonnegative,
    Regularizer,
    make_regularizer,
)
from maxmargin.structures.adapter import PythonProblem, paired_examples
from maxmargin.structures.base import Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.duck import structure_name, users_object
from maxmargin.structures.native import NativeStructure, PreparedProblem
from maxmargin.structures.transformed import Transformed
from maxmargin.structures.weight_layout import StructureLayout

__all__ = ["BoundProblem", "bind", "with_signs"]


class BoundProblem(NamedTuple):
    """What a solver trains.

    Attributes
    ----------
    prepared : PreparedProblem
        The problem, and what it was made of.
    dtype : str
        Type of the weights.
    regularizer : Regularizer
        With arrays in the native layout.
    own_weights : callable
        Makes the weights of the structure of those that were trained.
    """

    prepared: PreparedProblem
    dtype: str
    regularizer: Regularizer
    own_weights: Callable[[Any], Any]


def with_signs(regularizer: Any, structure: Structure) -> Any:
    """Return the regulariser for a structure that says which weights must not be negative.

    Parameters
    ----------
    regularizer : Regularizer, str or None
        As the user gave it.
    structure : Structure
        Prepared.

    Returns
    -------
    Regularizer, str or None
        `Nonnegative` for these weights, in the place of `L2`.

    Raises
    ------
    NotCompatibleError
        If another regulariser was given, which does not see to that.
    """
    said: Any = getattr(users_object(structure), "nonnegative", None)
    if said is None or said is False:
        return regularizer
    given = make_regularizer(regularizer)
    if isinstance(given, Nonnegative) and given.where is None:
        return given
    if isinstance(given, L2):
        if said is True:
            return Nonnegative()
        where = np.asarray(said)
        if where.dtype.kind not in "biu" or (where.size and where.min() < 0):
            raise StructureError(
                f"nonnegative of {structure_name(structure)} is {said!r}; expected True, indices "
                "from 0 on, or a mask",
                method="nonnegative",
            )
        return Nonnegative(where)
    raise NotCompatibleError(
        f"{structure_name(structure)} says that some of its weights must not be negative, which "
        f"goes with L2 and with Nonnegative(), not with {given}"
    )


def bind(
    regularizer: Regularizer,
    structure: Structure,
    prepared: PreparedProblem,
    *,
    dtype: str,
    examples: tuple[Any, Any],
    fit_params: Mapping[str, Any],
) -> BoundProblem:
    """Join a regulariser with a prepared structure.

    Parameters
    ----------
    regularizer : Regularizer
        As the user gave it.
    structure : Structure
        Prepared.
    prepared : PreparedProblem
        Its training problem.
    dtype : str
        Type of the weights.
    examples : tuple
        X and Y.
    fit_params : mapping
        What else ``fit`` was given.

    Returns
    -------
    BoundProblem
        What to train.

    Raises
    ------
    ValueError, TypeError, NotCompatibleError
        If the regulariser does not fit the structure.
    """
    if prepared.problem.has_kernel:  # where there are no weights of features: the solver refuses
        return BoundProblem(prepared, dtype, regularizer, _as_they_are)
    size: int = prepared.parts.get("n_weights") or structure.n_features or 0
    layout = StructureLayout(structure, size, dtype)
    if not (isinstance(regularizer, GaussianPrior) and regularizer.full):
        own = structure.own_weights if isinstance(structure, Chain) else _as_they_are
        return BoundProblem(prepared, dtype, regularizer.bound(layout), own)
    if any(value is not None for value in fit_params.values()):
        raise NotCompatibleError(
            f"{' and '.join(fit_params)} are not done with a matrix as the precision of a prior; "
            "leave them out, or give the diagonal of the matrix"
        )
    if len(regularizer.precision) != size:
        found = " x ".join(map(str, regularizer.precision.shape))
        raise ValueError(
            f"precision is a matrix of {found}; expected {size} x {size}, for the weights of "
            f"{structure_name(structure)}"
        )
    root = regularizer.root()
    changed = Transformed(structure, root)
    adapter = PythonProblem(changed, *paired_examples(*examples))
    parts = {**prepared.parts, "root": root}
    problem = PreparedProblem(_native.PythonProblem(adapter), parts)

    def own_weights(weights: Any) -> Any:
        w = StructureLayout(structure, size, "float64").native(changed.original(weights))
        return structure.native_weights(w) if isinstance(structure, NativeStructure) else w

    return BoundProblem(problem, "float64", regularizer.transformed(root), own_weights)


def _as_they_are(weights: Any) -> Any:
    return weights
