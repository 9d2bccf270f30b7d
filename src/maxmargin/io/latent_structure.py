"""A `Latent` structure in a model file.

The header has ``way``: "states" (a chain or classes over pairs of a label and a state), "native" or
"own" (a structure of maxmargin's or of the user's own, as `maxmargin.io.user_structure` writes it).
With states there are the labels, how many states each has, the costs of errors, and the structure
over the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.io.header_values import require_choice, require_dict
from maxmargin.io.tagger_file.chain_state import chain_state, restore_chain
from maxmargin.io.user_structure import StoredUserStructure, UserStructure, checked_weights
from maxmargin.structures.chain import Chain
from maxmargin.structures.class_labels import classes_from_meta, classes_to_meta
from maxmargin.structures.duck import as_structure, users_object
from maxmargin.structures.latent import Latent, NativeSide, PythonSide, StatesSide
from maxmargin.structures.latent_labels import LabelStates
from maxmargin.structures.latent_python import Completions
from maxmargin.structures.multiclass import Multiclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LatentState", "StoredLatent"]

WAYS = ("states", "native", "own")
#: Structures that are written by their own state, and not as one of a user's.
INNER = ("chain", "classes", "other")


class LatentState:
    """A prepared `Latent` that is to be saved.

    Parameters
    ----------
    latent : Latent
        Prepared.
    """

    def __init__(self, latent: Latent) -> None:
        self._latent = latent

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the file holds of it."""
        side = self._latent.prepared
        if isinstance(side, StatesSide):
            labels = side.labels
            try:
                named = classes_to_meta(labels.classes_)
            except ValueError as error:
                raise NotCompatibleError(str(error)) from None
            inner, arrays = _inner_state(labels.inner)
            ends = np.append(labels.first_[1:], len(labels.pairs_))
            meta = {
                "way": "states",
                "labels": named,
                "states": (ends - labels.first_).tolist(),
                "inner": inner,
            }
            return meta, {**arrays, "label_costs": np.ascontiguousarray(labels.cost_)}
        way = "native" if isinstance(side, NativeSide) else "own"
        inner, arrays = _inner_state(side.inner)
        return {"way": way, "inner": inner}, arrays


def _inner_state(structure: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    own = users_object(structure)
    if isinstance(own, Chain):
        meta, arrays = chain_state(own)
        return {"kind": "chain", **meta}, arrays
    if isinstance(own, Multiclass):
        meta, arrays = own.state()
        return {"kind": "classes", **meta}, arrays
    meta, arrays = UserStructure(structure).state()
    return {"kind": "other", **meta}, arrays


class StoredLatent:
    """A `Latent` as a file describes it, for `maxmargin.io.structure_file.load_structure`.

    Parameters
    ----------
    given : class, object, str or None
        The class of the structure, as for `StoredUserStructure`; a `Latent` around it will do.
    """

    def __init__(self, given: Any = None) -> None:
        self._given = given.structure if isinstance(given, Latent) else given

    def restore(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> _RestoredLatent:
        """Make the structure of what the file says; nothing of it is trusted."""
        require_choice(meta["way"], "the way of the latent parts", WAYS)
        described = require_dict(meta["inner"], "the structure")
        require_choice(described["kind"], "the kind of the structure", INNER)
        costs = None
        if meta["way"] == "states":
            arrays = dict(arrays)
            costs = arrays.pop("label_costs")
        inner = self._inner({k: v for k, v in described.items() if k != "kind"}, arrays, described)
        if costs is not None:
            return _RestoredLatent(_with_states(meta, costs, inner), inner)
        latent = Latent(users_object(inner))
        if meta["way"] == "native":
            side: Any = NativeSide(inner)
        else:
            side = PythonSide(inner)
            side.completions = Completions(as_structure(inner))
        latent.take_side(side)
        return _RestoredLatent(latent, inner)

    def _inner(
        self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]], described: dict[str, Any]
    ) -> Any:
        kind = described["kind"]
        if kind == "chain":
            return restore_chain(meta, arrays)
        if kind == "classes":
            return Multiclass.restore(meta, arrays)
        return StoredUserStructure(self._given).restore(meta, arrays).structure


def _with_states(meta: dict[str, Any], costs: NDArray[Any], inner: Any) -> Latent:
    if not isinstance(inner, Chain | Multiclass):
        raise ValueError("labels with states are those of a chain or of classes")
    classes, counts = classes_from_meta(meta["labels"]), meta["states"]
    whole = isinstance(counts, list) and all(type(n) is int and 1 <= n < 2**31 for n in counts)
    if not classes or len(set(classes)) != len(classes) or not whole or len(counts) != len(classes):
        raise ValueError("the labels and the numbers of their states do not go together")
    if list(inner.classes_) != list(range(sum(counts))):
        raise ValueError("the pairs of labels and states are not those of the structure")
    square = (len(classes), len(classes))
    if costs.dtype != np.float64 or costs.shape != square or not np.isfinite(costs).all():
        raise ValueError("the costs of errors do not fit the labels")
    labels = LabelStates(Chain() if isinstance(inner, Chain) else Multiclass(), 1)
    labels.states = dict(zip(classes, counts, strict=True))
    labels.classes_, labels.cost_, labels.inner = classes, np.array(costs), inner
    labels.first_ = (np.cumsum(counts) - counts).astype(np.intp)
    labels.pairs_ = [(c, k) for c, n in zip(classes, counts, strict=True) for k in range(n)]
    latent = Latent(labels.base, labels.states)
    side = StatesSide(labels)
    side.inner = inner
    latent.take_side(side)
    return latent


class _RestoredLatent:
    """A restored `Latent`, with the check of its weights."""

    def __init__(self, latent: Latent, inner: Any) -> None:
        self.latent, self._inner = latent, inner

    def native_weights(self, weights: NDArray[Any]) -> Any:
        """Return the weights as predictions take them."""
        return checked_weights(self._inner, weights)
