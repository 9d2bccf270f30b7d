"""What a tagger with a kernel has in the place of weights: its support tokens and coefficients.

With s support tokens, d sparse features, e dense ones and L labels:

===================  ==================================================================
``support_counts``   [s] how many sparse features a support token has
``support_indices``  [entries] their numbers, ascending within a token
``support_values``   [entries] their values; without it, all of them are 1
``support_dense``    [s][e] dense features, if there are any
``dual_coef``        [s][L] coefficients
``edges``            [L + 2][L] weights of the transitions, of start and of end
===================  ==================================================================

The header has the kernel with its parameters as numbers. All features of training are in the file,
those too that no support token has: ‖x - x'‖ of "rbf" depends on all features of x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.features.batch import EncodedBatch
from maxmargin.io.header_values import (
    require_choice,
    require_dict,
    require_integer,
    require_number,
)
from maxmargin.io.tagger_file.weights import require_finite
from maxmargin.structures.kernels import Kernel, KernelWeights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.io.tagger_file.sizes import Sizes

__all__ = ["check_stored_kernel", "kernel_arrays", "read_kernel_weights"]

#: Kernels that are described by numbers.
STORED = ("linear", "poly", "rbf")


def check_stored_kernel(weights: KernelWeights) -> None:
    """Refuse a kernel that a file cannot hold.

    Parameters
    ----------
    weights : KernelWeights
        What was learned.

    Raises
    ------
    NotCompatibleError
        If the kernel is a function, or a matrix over tokens that are known by their numbers.
    """
    if weights.kernel.kind not in STORED:
        raise NotCompatibleError(
            f"a model file holds the kernels {', '.join(STORED)}, and this model has "
            f"{weights.n_support} support tokens of the kernel {weights.kernel.name}. Pickle it, "
            "or train with another kernel"
        )


def kernel_arrays(
    weights: KernelWeights, kept: NDArray[np.intp]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what the file holds of a kernel and its support tokens.

    Parameters
    ----------
    weights : KernelWeights
        What was learned.
    kept : int array of shape (n_sparse,)
        The sparse features in the order in which the file has them.

    Returns
    -------
    described : dict
        For the header.
    arrays : dict
        For the file.
    """
    kernel, support = weights.kernel, weights.support
    described = {
        "kind": kernel.kind,
        "degree": int(kernel.degree),
        "gamma": float(kernel.gamma),
        "coef0": float(kernel.coef0),
    }
    arrays: dict[str, NDArray[Any]] = {
        "dual_coef": np.ascontiguousarray(weights.dual_coef, dtype=np.float64),
        "edges": np.ascontiguousarray(weights.edges, dtype=np.float64),
    }
    require_finite(arrays["dual_coef"])
    require_finite(arrays["edges"])
    if support.indptr is not None and support.indices is not None:
        place = np.empty(len(kept), dtype=np.uint32)
        place[kept] = np.arange(len(kept), dtype=np.uint32)
        counts = np.diff(support.indptr)
        token = np.repeat(np.arange(len(counts)), counts)
        numbers = place[support.indices]
        order = np.lexsort((numbers, token))  # ascending within a token again
        arrays["support_counts"] = counts.astype(np.uint32)
        arrays["support_indices"] = numbers[order]
        if support.values is not None:
            arrays["support_values"] = support.values[order]
    if support.dense is not None:
        arrays["support_dense"] = np.ascontiguousarray(support.dense)
    return described, arrays


def read_kernel_weights(
    meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], sizes: Sizes
) -> KernelWeights:
    """Return the support tokens and coefficients of a file, of which nothing is trusted.

    Parameters
    ----------
    meta : mapping
        Of the file; it has a kernel.
    arrays : mapping
        Of the file.
    sizes : Sizes
        What they must fit.

    Returns
    -------
    KernelWeights
        What a chain predicts with.

    Raises
    ------
    ValueError, KeyError
        If something does not fit, or is not there.
    """
    if sizes.n_pair:
        raise ValueError("a model with a kernel has no features of two labels")
    kernel = _read_kernel(require_dict(meta["kernel"], "the kernel"))
    L = sizes.n_labels
    coef, edges = arrays["dual_coef"], arrays["edges"]
    if coef.ndim != 2 or coef.shape[1] != L or len(coef) == 0 or coef.dtype != np.float64:
        raise ValueError("the coefficients do not fit the labels")
    if edges.shape != (L + 2, L) or edges.dtype != np.float64:
        raise ValueError("the weights of the transitions do not fit the labels")
    require_finite(coef)
    require_finite(edges)
    n = len(coef)
    indptr, indices, values = _read_rows(arrays, n, sizes.n_sparse)
    dense = _read_dense(arrays, n, sizes.n_dense)
    alone = np.arange(n + 1, dtype=np.int64)  # each token is a sequence
    support = EncodedBatch(alone, sizes.n_sparse, indptr, indices, values, dense)
    return KernelWeights(kernel, support, coef, edges)


def _read_kernel(described: dict[str, Any]) -> Kernel:
    require_choice(described["kind"], "kind of the kernel", STORED)
    require_integer(described["degree"], "degree of the kernel", 1)
    for name in ("gamma", "coef0"):
        require_number(described[name], f"{name} of the kernel")
    names = ("kind", "degree", "gamma", "coef0")
    return Kernel(*(described[name] for name in names))  # which checks their ranges


def _read_rows(
    arrays: Mapping[str, NDArray[Any]], n: int, n_sparse: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any] | None] | tuple[None, None, None]:
    if "support_counts" not in arrays:
        if n_sparse:
            raise ValueError("the support tokens have no features")
        return None, None, None
    counts, indices = arrays["support_counts"], arrays["support_indices"]
    if counts.shape != (n,) or counts.dtype != np.uint32:
        raise ValueError("the support tokens do not fit their coefficients")
    if indices.ndim != 1 or indices.dtype != np.uint32:
        raise ValueError("the features of the support tokens are no numbers")
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:], dtype=np.int64)
    if indptr[-1] != len(indices):
        raise ValueError("the features of the support tokens do not fit their counts")
    if len(indices) and int(indices.max()) >= n_sparse:
        raise ValueError("a support token has a feature that does not exist")
    token = np.repeat(np.arange(n, dtype=np.int64), counts)
    if (np.diff(token * max(n_sparse, 1) + indices) <= 0).any():
        raise ValueError("the features of a support token do not ascend")
    values = arrays.get("support_values")
    if values is not None:
        if values.shape != indices.shape or values.dtype not in (np.float32, np.float64):
            raise ValueError("the values of the support tokens do not fit their features")
        require_finite(values)
    return indptr, np.ascontiguousarray(indices), values


def _read_dense(
    arrays: Mapping[str, NDArray[Any]], n: int, n_dense: int
) -> NDArray[Any] | None:
    if "support_dense" not in arrays:
        if n_dense:
            raise ValueError("the support tokens have no dense features")
        return None
    dense = arrays["support_dense"]
    if dense.shape != (n, n_dense) or dense.dtype not in (np.float32, np.float64):
        raise ValueError("the dense features of the support tokens do not fit")
    require_finite(dense)
    return dense
