"""Numbers and tables as lines of text."""

from __future__ import annotations

__all__ = ["align", "percent", "seconds"]


def seconds(value: float) -> str:
    """Write a time with three digits, and whole seconds above 100."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def percent(value: float | None) -> str:
    """Write a share in percent; a figure that is not known is a dash."""
    return "-" if value is None else f"{100 * value:.3g} %"


def align(cells: list[list[str]]) -> list[str]:
    """Lay out a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            [line[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        ).rstrip()
        for line in cells
    ]
