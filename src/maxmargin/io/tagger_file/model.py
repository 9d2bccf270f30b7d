"""A tagger as a file has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.memory import require_memory
from maxmargin.structures.chain import Chain
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KIND", "LABEL_TYPES", "MASKS", "TaggerModel", "dense_weights"]

#: What the header of the file calls it.
KIND = "tagger"
#: Labels that a file can hold and give back as they were.
LABEL_TYPES = (str, int, float, bool)
#: The arrays that say which labels may follow each other, begin and end.
MASKS = ("mask_transition", "mask_start", "mask_end")


class TaggerModel(NamedTuple):
    """A tagger as a file has it; all that tagging needs, without scikit-learn.

    Attributes
    ----------
    chain : Chain
        The structure, prepared.
    weights : array, SparseWeights or KernelWeights
        Its weights.
    meta : dict
        ``certificate``, ``training`` (settings and figures), ``params`` (of the estimator) and
        ``objective`` (see `maxmargin.io.objective`).
    objective : callable or None
        Makes the parameters of an estimator that say what was minimised; solvers are imported then.
        It raises a ModelFormatError if the file does not make sense there. None: the file was
        written before files had an objective.
    """

    chain: Chain
    weights: Any
    meta: dict[str, Any]
    objective: Callable[[], dict[str, Any]] | None = None


def dense_weights(model: TaggerModel) -> Any:
    """Return the weights of a loaded model as the full matrix that estimators keep.

    Parameters
    ----------
    model : TaggerModel
        What `load_tagger` gave.

    Returns
    -------
    array or KernelWeights
        Native weights, aligned; of a model with a kernel its support tokens and coefficients.
    """
    if isinstance(model.weights, KernelWeights):
        return model.weights
    if isinstance(model.weights, _native.SparseWeights):
        require_memory("the full matrix of the weights", model.chain.layout.n_bytes("float32"))
        return model.weights.dense()
    weights: Any = model.chain.native_weights(model.weights)
    return np.asarray(weights)
