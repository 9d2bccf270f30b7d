"""`save_tagger`: a tagger is written to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.container import write_container
from maxmargin.io.objective import describe_objective
from maxmargin.io.tagger_file.constraints import describe_constraints
from maxmargin.io.tagger_file.embeddings import embedding_arrays
from maxmargin.io.tagger_file.encoders import describe_encoder
from maxmargin.io.tagger_file.kernels import check_stored_kernel, kernel_arrays
from maxmargin.io.tagger_file.model import KIND, LABEL_TYPES, MASKS
from maxmargin.io.tagger_file.names import line_arrays, name_arrays
from maxmargin.io.tagger_file.sizes import NAMED_KINDS
from maxmargin.io.tagger_file.weights import entry_arrays, require_finite, weight_arrays
from maxmargin.printable import quoted
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = ["save_tagger"]


def save_tagger(
    path: Any,
    chain: Chain,
    weights: NDArray[Any] | KernelWeights,
    meta: dict[str, Any],
    objective: Mapping[str, Any] | None = None,
) -> int:
    """Write a tagger to a file, as a whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    chain : Chain
        Prepared by training.
    weights : array or KernelWeights
        The native weights.
    meta : dict
        What else to keep: ``certificate``, ``training``, ``params``; values that JSON can hold.
    objective : mapping or None
        The parameters of an estimator that say what was minimised, by the names in
        `maxmargin.io.objective.OBJECTIVE`. None: the file has no objective.

    Returns
    -------
    int
        The size of the file in bytes.
    """
    if isinstance(weights, KernelWeights):
        check_stored_kernel(weights)
    for label in chain.classes_:
        if type(label) not in LABEL_TYPES:
            raise TypeError(
                f"the label {quoted(label)} is a {type(label).__name__}; a model file holds labels "
                "that are str, int, float or bool"
            )
    if isinstance(weights, KernelWeights):
        stored = _kernel_parts(chain, weights)
    else:
        stored = _weight_parts(chain, weights)
    arrays = stored.arrays | embedding_arrays(getattr(chain.encoder, "embeddings", None))
    if chain.mask is not None:
        arrays |= zip(MASKS, chain.mask, strict=True)
    minimised: dict[str, Any] = {}
    if objective is not None:
        minimised["objective"], more = describe_objective(objective, chain)
        arrays |= more
    numbers = {"n_sparse": stored.n_sparse, "n_pair": stored.n_pair}
    description = {
        **meta,
        **minimised,
        **stored.described,
        "classes": chain.classes_,
        "columns": chain.class_columns_.tolist(),
        "encoder": {**describe_encoder(chain.encoder), **numbers},
    }
    if chain.constraints is not None:
        description["constraints"], more = describe_constraints(chain.constraints)
        arrays |= more
    return write_container(path, KIND, description, arrays)


class _Stored(NamedTuple):
    """What a file has of the features and of what was learned of them."""

    arrays: dict[str, NDArray[Any]]
    described: dict[str, Any]
    n_sparse: int
    n_pair: int = 0


def _weight_parts(chain: Chain, weights: NDArray[Any]) -> _Stored:
    """Return the weights, and the names of the features that have some."""
    chain.native_weights(weights)  # checks its size and type
    require_finite(weights)
    layout, encoder, L = chain.layout, chain.encoder, chain.n_labels
    matrix = layout.matrix(weights)
    d = layout.n_sparse
    named = encoder.hash_bits is None and encoder.kind in NAMED_KINDS
    kept = np.arange(d)
    if named and d > 0:
        kept = np.flatnonzero(_native.row_counts(matrix[:d], L))
        if len(kept) == 0:
            kept = np.arange(1)  # where all weights are zero, one feature stays
    kept, arrays = _named_features(chain, kept)
    pairs = np.empty(0, np.intp)
    if isinstance(encoder, TemplateEncoder) and encoder.n_pair:
        blocks = layout.split(layout.rows(weights)).pairs
        pairs = np.flatnonzero(blocks.any(axis=(1, 2)))
        if len(pairs):
            arrays |= line_arrays("pair_", encoder.bigrams, pairs)
            rows = blocks[pairs].reshape(-1, L)
            arrays |= entry_arrays("pair_", rows, np.arange(len(rows)), L)
    arrays |= weight_arrays(matrix[: layout.pairs.start], d, L, kept, named=named)
    return _Stored(arrays, {"dtype": matrix.dtype.name}, len(kept), len(pairs))


def _kernel_parts(chain: Chain, weights: KernelWeights) -> _Stored:
    """Return support tokens and coefficients, and the names of all features."""
    kept, arrays = _named_features(chain, np.arange(chain.layout.n_sparse))
    kernel, more = kernel_arrays(weights, kept)
    double = "float64" if chain.encoder.double else "float32"
    return _Stored(arrays | more, {"kernel": kernel, "dtype": double}, len(kept))


def _named_features(
    chain: Chain, kept: NDArray[np.intp]
) -> tuple[NDArray[np.intp], dict[str, NDArray[Any]]]:
    """Return sparse features in the order of the file, and what it has of their names."""
    encoder = chain.encoder
    named = encoder.hash_bits is None and encoder.kind in NAMED_KINDS
    if isinstance(encoder, TemplateEncoder):
        # By line of the template: a token's features, found line by line, then come in order.
        kept = kept[np.argsort(encoder.unigrams.lines_of(kept), kind="stable")]
        return kept, line_arrays("", encoder.unigrams, kept) if named else {}
    if not named or chain.layout.n_sparse == 0:
        return kept, {}
    assert encoder.vocabulary is not None
    every = encoder.vocabulary.names()
    return kept, name_arrays("", [every[k] for k in kept.tolist()])
