"""A prepared chain in a model file, without its weights: labels, rules and the encoder.

For chains within other structures (`Latent`). The encoder is written as that of a tagger, but all
of its features are kept, in their order: the weights are those of the whole layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._native import MAX_VALUE
from maxmargin.errors import NotCompatibleError
from maxmargin.features.encode import FeatureEncoder
from maxmargin.io.container import Container
from maxmargin.io.tagger_file.encoders import describe_encoder, read_encoder
from maxmargin.io.tagger_file.model import MASKS
from maxmargin.io.tagger_file.names import name_arrays
from maxmargin.io.tagger_file.reading import read_mask
from maxmargin.io.tagger_file.sizes import NAMED_KINDS, read_sizes
from maxmargin.structures.chain import Chain
from maxmargin.structures.class_labels import classes_from_meta, classes_to_meta

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chain_state", "restore_chain"]

#: The costs of errors, in the order of the weights.
COSTS = "error_costs"


def chain_state(chain: Chain) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a file holds of a prepared chain.

    Parameters
    ----------
    chain : Chain
        Prepared, with a linear kernel.

    Returns
    -------
    meta : dict
        Values that JSON can hold.
    arrays : dict
        Arrays by name.

    Raises
    ------
    NotCompatibleError
        If its features come from a template or a function.
    """
    encoder = chain.encoder
    if type(encoder) is not FeatureEncoder:
        raise NotCompatibleError(
            f"a model file of a chain within another structure holds features that X has; this one "
            f"has a {type(encoder).__name__}. Pickle the estimator"
        )
    arrays: dict[str, NDArray[Any]] = {}
    if encoder.hash_bits is None and encoder.kind in NAMED_KINDS and encoder.n_sparse > 0:
        assert encoder.vocabulary is not None
        arrays |= name_arrays("", encoder.vocabulary.names())
    if chain.mask is not None:
        arrays |= zip(MASKS, chain.mask, strict=True)
    if chain.cost is not None:
        arrays[COSTS] = np.ascontiguousarray(chain.cost, dtype=np.float64)
    numbers = {"n_sparse": encoder.n_sparse, "n_pair": 0}
    meta = {
        "classes": classes_to_meta(chain.classes_),
        "columns": chain.class_columns_.tolist(),
        "encoder": {**describe_encoder(encoder), **numbers},
        "double": bool(encoder.double),
    }
    return meta, arrays


def restore_chain(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Chain:
    """Undo `chain_state`; nothing of what is given is trusted.

    Parameters
    ----------
    meta, arrays : dict
        What a file has.

    Returns
    -------
    Chain
        Ready for prediction.

    Raises
    ------
    ValueError, KeyError, TypeError
        If they do not make sense.
    """
    sizes = read_sizes(meta, arrays)
    classes, columns, n = classes_from_meta(meta["classes"]), meta["columns"], sizes.n_labels
    if len(set(classes)) != n or n == 0:
        raise ValueError("there are no labels, or some are the same")
    if any(type(c) is not int for c in columns) or sorted(columns) != [*range(n)]:
        raise ValueError("the labels are not numbered from 0")
    encoder = read_encoder(Container("", "", meta, arrays, version=0, n_bytes=0), sizes, None)
    encoder.double = meta["double"] is True
    places, options = np.array(columns, np.intp), {}
    cost = arrays.get(COSTS)
    if cost is not None:
        right = cost.dtype == np.float64 and cost.shape == (n, n)
        if not right or not ((cost >= 0) & (cost <= MAX_VALUE)).all() or np.diag(cost).any():
            raise ValueError("the costs of errors do not fit the labels")
        options = {"loss": cost[np.ix_(places, places)], "labels": classes}
    chain = Chain.restore(encoder, classes, places, read_mask(arrays, n), **options)
    chain.cost = None if cost is None else np.array(cost)
    return chain
