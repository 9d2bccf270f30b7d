"""How many features and labels a model file says it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.features.counting import MAX_HASH_BITS
from maxmargin.printable import quoted
from maxmargin.structures.chain_layout import ChainLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NAMED_KINDS", "Sizes", "bounded_integer", "read_sizes"]

#: Kinds of encoders whose features have names.
NAMED_KINDS = ("columns", "strings", "strings+dense")
#: Most features without names (hashed ones, columns of a matrix) that a file may claim to have.
MAX_UNNAMED = 1 << 28


class Sizes(NamedTuple):
    """The sizes of a model.

    Attributes
    ----------
    n_labels : int
        Labels.
    n_sparse, n_dense, n_pair : int
        Sparse features, dense ones, and features of two neighbouring labels.
    hash_bits : int or None
        Bits of the hash by which sparse features are known; None if they are listed.
    """

    n_labels: int
    n_sparse: int
    n_dense: int
    n_pair: int
    hash_bits: int | None

    @property
    def layout(self) -> ChainLayout:
        """The rows of the weights."""
        return ChainLayout(self.n_sparse, self.n_dense, self.n_labels, self.n_pair)


def bounded_integer(described: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return an integer of a header within its bounds.

    Parameters
    ----------
    described : mapping
        Where the header has it.
    name : str
        What the header calls it.
    low, high : int
        Bounds.

    Returns
    -------
    int
        The value.

    Raises
    ------
    ValueError
        If it is something else.
    """
    value = described[name]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} is {quoted(value)}; expected {low} to {high}")
    return value


def read_sizes(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> Sizes:
    """Return the sizes that a header claims, as far as they make sense.

    Parameters
    ----------
    meta : mapping
        Of the file.
    arrays : mapping
        The arrays by their names.

    Returns
    -------
    Sizes
        What the encoder and the weights must fit.

    Raises
    ------
    ValueError, KeyError
        If they do not make sense, or one is missing.
    """
    described: dict[str, Any] = meta["encoder"]
    n_labels = len(meta["classes"])
    n_sparse = bounded_integer(described, "n_sparse", 0, 2**32 - 1)
    n_dense = bounded_integer(described, "n_dense", 0, 2**32 - 1)
    # The first files of this version had no pair features and did not say so.
    n_pair = bounded_integer(described, "n_pair", 0, 2**32 - 1) if "n_pair" in described else 0
    hash_bits: int | None = None
    if described["hash_bits"] is not None:
        hash_bits = bounded_integer(described, "hash_bits", 1, MAX_HASH_BITS)
        if n_sparse != 2**hash_bits:
            raise ValueError("the number of features does not fit the bits of their hash")
    if n_pair == 0 and any(name.startswith("pair_") for name in arrays):
        raise ValueError("there are weights of pair features, but no such features")
    named = hash_bits is None and described["kind"] in NAMED_KINDS
    if not named and n_sparse > MAX_UNNAMED:
        raise ValueError(f"it claims to have {n_sparse} features without names")
    return Sizes(n_labels, n_sparse, n_dense, n_pair, hash_bits)
