"""Arrays over the weights of a structure: from the structure's layout to that of the engine.

What a user gives for each weight (means, precisions, bounds) is in the layout of ``joint_feature``.
Native weights may be padded, 4-byte ones differently from 8-byte ones. A structure whose native
weights are not in its own layout has these methods (`Chain` does):

``plain_vector(values)``
    An array with an entry for each weight, native or not, without padding.
``native_vector(values, dtype)``
    Such an array in the native layout, padded with zeros.
``weights_named(where)``
    A mask of the weights that a description by names means (optional).

For all other structures the two layouts are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.structures.duck import structure_name

__all__ = ["StructureLayout"]


class StructureLayout:
    """Where the weights of a prepared structure are; a `maxmargin.regularizers.WeightLayout`.

    Parameters
    ----------
    structure : Structure
        Prepared.
    size : int
        Number of its weights, without padding.
    dtype : "float32" or "float64"
        Of the weights that training begins with.
    """

    def __init__(self, structure: Any, size: int, dtype: Any) -> None:
        self.structure = structure
        self.size = size
        self.dtype = dtype

    @property
    def single(self) -> bool:
        """Whether training begins with 4-byte weights."""
        return str(self.dtype) == "float32"

    def plain(self, values: NDArray[Any], what: str) -> NDArray[np.float64]:
        """Return an array with an entry for each weight, without padding.

        Parameters
        ----------
        values : array
            In the layout of the structure, or the native one.
        what : str
            What it is, for messages.

        Returns
        -------
        array of shape (size,)
            In the layout of the structure.

        Raises
        ------
        ValueError
            If it has another number of entries.
        """
        own = getattr(self.structure, "plain_vector", None)
        plain = values if own is None else own(values)
        if plain is None or plain.shape != (self.size,):
            raise ValueError(
                f"{what} has {values.size} entries; expected {self.size}, one for each weight of "
                f"{structure_name(self.structure)}"
            )
        return np.asarray(plain, dtype=np.float64)

    def native(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return an array of `size` entries in the native layout, padded with zeros."""
        own = getattr(self.structure, "native_vector", None)
        return values if own is None else np.asarray(own(values, self.dtype))

    def chosen(self, where: Any) -> NDArray[np.bool_]:
        """Return which weights a description by names means.

        Parameters
        ----------
        where : str, list of str or dict
            As in `maxmargin.Bounded`.

        Returns
        -------
        bool array of shape (size,)
            In the layout of the structure.

        Raises
        ------
        NotCompatibleError
            If the weights of the structure have no names.
        """
        own = getattr(self.structure, "weights_named", None)
        if own is None:
            raise NotCompatibleError(
                f"the weights of {structure_name(self.structure)} have no names: give a mask or "
                f"indices, in the place of {where!r:.80}"
            )
        mask: NDArray[np.bool_] = own(where)
        return mask
