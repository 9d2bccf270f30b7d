"""Structures: what is predicted."""

from typing import TYPE_CHECKING, Any

from maxmargin.structures.base import Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.kernels import Kernel

if TYPE_CHECKING:
    from maxmargin.structures.check import check_structure
    from maxmargin.structures.check_report import StructureReport

__all__ = ["Chain", "Kernel", "Structure", "StructureReport", "check_structure"]


def __getattr__(name: str) -> Any:
    if name == "check_structure":  # for the authors of structures only
        from maxmargin.structures.check import check_structure

        return check_structure
    if name == "StructureReport":
        from maxmargin.structures.check_report import StructureReport

        return StructureReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
