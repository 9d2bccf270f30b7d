"""Structures: what is predicted."""

from typing import TYPE_CHECKING, Any

from maxmargin.structures.base import Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.constraints import Constraints
from maxmargin.structures.kernels import Kernel
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.taxonomy import Taxonomy

if TYPE_CHECKING:
    from maxmargin.structures.check import check_structure
    from maxmargin.structures.check_report import StructureReport

__all__ = [
    "Chain",
    "Constraints",
    "Kernel",
    "Multiclass",
    "Structure",
    "StructureReport",
    "Taxonomy",
    "check_structure",
]


def __getattr__(name: str) -> Any:
    if name == "check_structure":  # for the authors of structures only
        from maxmargin.structures.check import check_structure

        return check_structure
    if name == "StructureReport":
        from maxmargin.structures.check_report import StructureReport

        return StructureReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
