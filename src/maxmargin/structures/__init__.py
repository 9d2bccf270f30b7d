"""Structures: what is predicted."""

from maxmargin.structures.base import Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.check import StructureReport, check_structure

__all__ = ["Chain", "Structure", "StructureReport", "check_structure"]
