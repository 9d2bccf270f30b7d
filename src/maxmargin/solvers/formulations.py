"""The formulations of the margin that there are, by the words for slack and rescaling."""

from __future__ import annotations

from maxmargin.checks import check_choice

__all__ = ["check_formulation"]

SLACKS = ("linear", "quadratic", "hard")
RESCALES = ("margin", "slack", "none")


def check_formulation(slack: str, rescale: str) -> None:
    """Refuse a formulation that there is not."""
    check_choice("slack", slack, SLACKS)
    check_choice("rescale", rescale, RESCALES)
    if slack == "hard" and rescale == "slack":
        raise ValueError(
            'slack="hard" has no slacks to rescale; take rescale="margin" or "none", or '
            'slack="linear" or "quadratic"'
        )
