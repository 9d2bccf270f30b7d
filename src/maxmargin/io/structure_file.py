"""The model file of any structure that can write down its state: classes, trees, alignments, ...

A container (`maxmargin.io.container`) whose kind says which estimator wrote it. The header has
``certificate``, ``training`` (figures), ``parameters`` (`maxmargin.io.parameters`), ``structure``
(what ``state()`` of the structure gave) and ``reading`` (what the command line must know to read
files of this kind). The arrays are those of the state (``state_*``), of the parameters
(``param_*``), and the weights: ``weights`` as a whole, or ``weight_places`` and ``weight_values``
of those that are not zero where that is smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.io.container import read_container, write_container
from maxmargin.io.header_values import require_choice, require_dict, require_integer, require_plain
from maxmargin.io.inconsistent import naming_file
from maxmargin.io.meta_checks import check_training
from maxmargin.io.parameters import describe_parameters, restore_parameters
from maxmargin.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["ClassNeededError", "StructureModel", "load_structure", "save_structure"]

#: Version of the layout of headers of this family.
VERSION = 1
_STATE = "state_"
_FLOATS = ("float32", "float64")


class ClassNeededError(NotCompatibleError):
    """The file is good, but the caller must give the class of its structure, or another one."""


class StructureModel(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    structure : Structure
        Restored.
    weights : array
        The native weights.
    params : dict
        Parameters of the estimator.
    meta : dict
        ``certificate``, ``training``, ``reading`` and what else the header has.
    """

    structure: Any
    weights: NDArray[Any]
    params: Mapping[str, Any]
    meta: dict[str, Any]


def save_structure(path: Any, kind: str, model: StructureModel) -> int:
    """Write a model to a file, as a whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    kind : str
        Its kind, as `maxmargin.models.kinds` lists them.
    model : StructureModel
        With a structure that is a `StoredStructure`, and meta data that JSON can hold.

    Returns
    -------
    int
        The size of the file in bytes.
    """
    weights = np.asarray(model.weights)
    if not np.isfinite(weights).all():
        raise ValueError("some weights are not finite; such a model is not saved")
    parameters, arrays = describe_parameters(model.params)
    state, state_arrays = model.structure.state()
    arrays |= {f"{_STATE}{name}": array for name, array in state_arrays.items()}
    arrays |= _weight_arrays(weights)
    description = {
        **model.meta,
        "structure_version": VERSION,
        "parameters": parameters,
        "structure": state,
        "dtype": weights.dtype.name,
        "n_weights": len(weights),
    }
    return write_container(path, kind, description, arrays)


def _weight_arrays(weights: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the weights in the smaller of the two forms."""
    places = np.flatnonzero(weights)
    small = places.astype(np.uint32 if len(weights) <= 2**32 else np.uint64)
    values = np.ascontiguousarray(weights[places])
    if small.nbytes + values.nbytes < weights.nbytes:
        return {"weight_places": small, "weight_values": values}
    return {"weights": np.ascontiguousarray(weights)}


def load_structure(
    path: Any, kind: str, structure_type: Any, known: set[str], *, mmap: bool = False
) -> StructureModel:
    """Read a model from a file, of which nothing is trusted.

    Parameters
    ----------
    path : str or path
        The file.
    kind : str
        The kind that it must be of.
    structure_type : type
        With ``restore``.
    known : set of str
        The names of the parameters of the estimator.
    mmap : bool
        Whether to map the file into memory.

    Returns
    -------
    StructureModel
        The content.

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, or no model file of this kind.
    MemoryError
        If the weights need more memory than there is.
    OSError
        If it cannot be read.
    """
    container = read_container(path, kind, mmap=mmap)
    with naming_file(container.path, (ClassNeededError,)):
        meta, arrays = container.meta, container.arrays
        version = require_integer(meta["structure_version"], "structure_version", 1)
        if version > VERSION:
            raise ModelFormatError(
                f"{container.path}: was written by a newer version of maxmargin (layout {version}; "
                f"this one reads up to {VERSION})"
            )
        check_training(meta)
        require_integer(meta.get("training", {}).get("passes", 0), "passes of training", 0)
        require_plain(require_dict(meta.get("reading", {}), "reading"), "reading", 0)
        params = restore_parameters(meta["parameters"], arrays, known)
        own = {k.removeprefix(_STATE): a for k, a in arrays.items() if k.startswith(_STATE)}
        structure = structure_type.restore(require_dict(meta["structure"], "the structure"), own)
        weights = structure.native_weights(_read_weights(meta, arrays))
        return StructureModel(structure, weights, params, meta)


def _read_weights(meta: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    require_choice(meta["dtype"], "dtype", _FLOATS)
    n, dtype = require_integer(meta["n_weights"], "n_weights", 0), np.dtype(meta["dtype"])
    if "weights" in arrays:
        weights = arrays["weights"]
        if weights.shape != (n,) or weights.dtype != dtype:
            raise ValueError("the weights are not as many, or not of the type, as the header says")
    else:
        places, values = arrays["weight_places"], arrays["weight_values"]
        if places.ndim != 1 or places.shape != values.shape or places.dtype.kind != "u":
            raise ValueError("places and values of the weights do not go together")
        if values.dtype != dtype or (len(places) > 0 and int(places.max()) >= n):
            raise ValueError("a weight is of another type, or at a place that does not exist")
        require_memory(f"the weights ({n})", n * dtype.itemsize)
        weights = np.zeros(n, dtype)
        weights[places] = values
    if not np.isfinite(weights).all():
        raise ValueError("some weights are not finite")
    return weights

