"""Structures whose examples become more: what online learning needs of each of them."""

from __future__ import annotations

from typing import Any

from maxmargin.errors import NotCompatibleError
from maxmargin.structures.chain import Chain
from maxmargin.structures.duck import structure_name
from maxmargin.structures.growing.base import Change, Growing
from maxmargin.structures.growing.chain import GrowingChain
from maxmargin.structures.growing.latent import GrowingLatent, growing_latent
from maxmargin.structures.growing.listed import KINDS as LISTED
from maxmargin.structures.growing.listed import GrowingListed, GrowingPython
from maxmargin.structures.growing.matrix import GrowingClasses, GrowingRows, GrowingTaxonomy
from maxmargin.structures.latent import Latent
from maxmargin.structures.latent_rows import LatentRows
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.native import NativeStructure
from maxmargin.structures.rows import LinearRows
from maxmargin.structures.taxonomy import Taxonomy

__all__ = ["Change", "Growing", "GrowingLatent", "growing", "keeps_examples"]

#: The first that fits counts.
KINDS: tuple[tuple[type, type[Growing]], ...] = (
    (Chain, GrowingChain),
    (Taxonomy, GrowingTaxonomy),
    (Multiclass, GrowingClasses),
    (LinearRows, GrowingRows),
    *((kind, GrowingListed) for kind in LISTED),
)


def growing(structure: Any, dtype: str) -> Growing:
    """Return a structure whose examples may become more.

    Parameters
    ----------
    structure : Structure
        Nobody else holds it.
    dtype : "float32" or "float64"
        Type of the weights.

    Raises
    ------
    NotCompatibleError
        If examples of this structure must all be there at once.
    """
    if isinstance(structure, Latent | LatentRows):
        return growing_latent(structure, dtype, growing)
    for kind, wrapped in KINDS:
        if isinstance(structure, kind):
            return wrapped(structure, dtype)
    if isinstance(structure, NativeStructure):
        raise NotCompatibleError(
            f"{structure_name(structure)} must know all examples at once: it has no partial_fit"
        )
    return GrowingPython(structure, "float64")


def keeps_examples(structure: Any) -> bool:
    """Tell whether examples of a structure are kept as they came, and not as arrays.

    Parameters
    ----------
    structure : Structure
        Any.
    """
    return isinstance(structure, LISTED) or not isinstance(structure, NativeStructure)
