"""What `check_structure` found, in words."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Finding", "StructureReport"]


@dataclass
class Finding:
    """One kind of mistake in a structure.

    Attributes
    ----------
    method : str
        The method that is wrong.
    example : int or None
        The first example where it showed; None if it concerns no single example.
    message : str
        What was found, and what was expected.
    advice : str
        What to do about it.
    count : int
        How often it was found.
    kind : str
        A short name of the kind of mistake, for programs.
    """

    method: str
    example: int | None
    message: str
    advice: str
    count: int = 1
    kind: str = ""

    def __str__(self) -> str:
        where = self.method if self.example is None else f"{self.method}, example {self.example}"
        times = "" if self.count == 1 else f" (found {self.count} times)"
        return f"{where}: {self.message}{times}\n    What to do: {self.advice}"


@dataclass
class StructureReport:
    """What `check_structure` found. True in a condition if there are no problems.

    Attributes
    ----------
    name : str
        The class of the structure.
    problems : list of Finding
        What must be corrected, each kind once.
    warnings : list of Finding
        What can be lived with.
    checks : int
        How many single comparisons were made.
    ok : bool
        True if there are no problems.
    """

    name: str
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    checks: int = 0

    @property
    def ok(self) -> bool:
        """True if there are no problems (there may be warnings)."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        counts = f"{_count(self.problems, 'problem')}, {_count(self.warnings, 'warning')}"
        lines = [f"{self.name}: {counts} ({self.checks} checks)"]
        for title, found in (("Problems", self.problems), ("Warnings", self.warnings)):
            if found:
                lines += ["", f"{title}:"]
                lines += [f"{k:2}. {finding}" for k, finding in enumerate(found, 1)]
        return "\n".join(lines)


def _count(found: list[Finding], word: str) -> str:
    return f"{len(found) or 'no'} {word}{'' if len(found) == 1 else 's'}"
