"""Structures: what is predicted."""

from typing import TYPE_CHECKING, Any

from maxmargin.structures.base import Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.kernels import Kernel

if TYPE_CHECKING:
    from maxmargin.structures.check import StructureReport, check_structure

__all__ = ["Chain", "Kernel", "Structure", "StructureReport", "check_structure"]


def __getattr__(name: str) -> Any:
    if name in ("StructureReport", "check_structure"):  # for the authors of structures only
        from maxmargin.structures import check

        return getattr(check, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
