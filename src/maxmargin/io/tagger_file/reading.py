"""`load_tagger`: a tagger is read from a file, of which nothing is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.io.container import read_container
from maxmargin.io.inconsistent import naming_file
from maxmargin.io.meta_checks import check_meta
from maxmargin.io.objective import LOSS_COSTS, restore_objective
from maxmargin.io.tagger_file.confidence import check_confidence
from maxmargin.io.tagger_file.constraints import restore_constraints
from maxmargin.io.tagger_file.embeddings import EmbeddingsNeededError
from maxmargin.io.tagger_file.encoders import FunctionNeededError, read_encoder
from maxmargin.io.tagger_file.kernels import read_kernel_weights
from maxmargin.io.tagger_file.model import KIND, LABEL_TYPES, MASKS, TaggerModel
from maxmargin.io.tagger_file.sizes import read_sizes
from maxmargin.io.tagger_file.weights import read_weights
from maxmargin.structures.chain import Chain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from maxmargin.io.container import Container

__all__ = ["load_tagger", "read_mask"]


def load_tagger(
    path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
) -> TaggerModel:
    """Read a tagger from a file.

    Parameters
    ----------
    path : str or path
        The file.
    function : callable, optional
        The function that gave the features in training, for a model that was trained with one.
        (A file holds no code.)
    mmap : bool, default=False
        Whether to map the file into memory and not to read it; nobody may then change it in place.
        See `maxmargin.io.container.read_container`.

    Returns
    -------
    TaggerModel
        Ready to tag.

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, or no model file.
    MemoryError
        If the weights need more memory than there is.
    OSError
        If it cannot be read.
    """
    container = read_container(path, KIND, mmap=mmap)
    with naming_file(container.path, (FunctionNeededError, EmbeddingsNeededError)):
        return _restored(container, function)


def _restored(container: Container, function: Callable[[Any], Any] | None) -> TaggerModel:
    """Make a model of what a file holds; see `naming_file` for what this may raise."""
    meta, arrays = container.meta, container.arrays
    check_meta(meta)
    check_confidence(meta)
    sizes = read_sizes(meta, arrays)
    classes, columns, L = meta["classes"], meta["columns"], sizes.n_labels
    if any(type(c) not in LABEL_TYPES for c in classes) or len(set(classes)) != L or L == 0:
        raise ValueError("the labels are not labels, or some are the same")
    if any(type(c) is not int for c in columns) or sorted(columns) != [*range(L)]:
        raise ValueError("the labels are not numbered from 0")
    encoder = read_encoder(container, sizes, function)
    weights: Any
    options: dict[str, Any] = {}
    if "kernel" in meta:
        weights = read_kernel_weights(meta, arrays, sizes)
        encoder.double = meta["dtype"] == "float64"
        options["kernel"] = weights.kernel
    else:
        weights = read_weights(arrays, sizes)
        encoder.double = getattr(weights, "dtype", None) == np.float64
    mask = read_mask(arrays, L)
    chain = Chain.restore(encoder, classes, np.array(columns, dtype=np.intp), mask, **options)
    chain.constraints = restore_constraints(meta, arrays)
    if "objective" not in meta:
        return TaggerModel(chain, weights, meta)
    path = container.path
    costs = {name: array for name, array in arrays.items() if name == LOSS_COSTS}

    def objective() -> dict[str, Any]:
        with naming_file(path):
            return restore_objective(meta, chain, costs)

    return TaggerModel(chain, weights, meta, objective)


def read_mask(arrays: Mapping[str, NDArray[Any]], n_labels: int) -> Any:
    """Return which labels may follow each other, begin and end; None if all may.

    Parameters
    ----------
    arrays : mapping
        Of the file.
    n_labels : int
        How many labels there are.

    Raises
    ------
    ValueError
        If the arrays do not fit.
    """
    if not any(name in arrays for name in MASKS):
        return None
    mask = tuple(arrays[name] for name in MASKS)
    right = [m.shape for m in mask] == [(n_labels * n_labels,), (n_labels,), (n_labels,)]
    if not right or any(m.dtype != np.uint8 for m in mask):
        raise ValueError("the masks do not fit the labels")
    return mask
