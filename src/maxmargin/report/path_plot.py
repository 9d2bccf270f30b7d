"""The plot of a path: how good models are, over how many weights they have.

One SVG file, as Figure 3 of the SAP paper has it: non-zero weights on a logarithmic axis, the score
on the validation data above them, a line for each C, and the l1_ratio at each point.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from maxmargin.report.endings import picture_format
from maxmargin.report.files import save_picture
from maxmargin.report.svg import INK, round_step, svg_text

if TYPE_CHECKING:
    from maxmargin.selection.path import Path

__all__ = ["draw_path", "plot_path"]

# All lengths are in pixels of a picture that is WIDTH wide.
WIDTH, HEIGHT = 760, 480
LEFT, RIGHT, TOP, BOTTOM = 84, 40, 64, 72  # margins around the axes
TICKS = 6  # steps of the score, about
LABEL = 16  # height of a line of labels

FONT = "'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
SOFT = "#63666b"
RULE = "#e3e5e8"
CHOSEN = "#c2160c"
COLOURS = ("#1f5fa8", "#2f855a", "#8a5a00", "#6b4fa0", "#0f7c86")


def plot_path(
    path: Path | Sequence[dict[str, Any]],
    file: str | os.PathLike[str],
    chosen: int | None = None,
) -> None:
    """Write the picture that `draw_path` draws, as a whole or not at all.

    Parameters
    ----------
    path : Path or list of dict
        The path, or its table.
    file : path-like
        The file; replaced if it exists. Its name ends with ``.svg``.
    chosen : int or None
        The point to mark.

    Raises
    ------
    ValueError
        If the name has another ending.
    OSError
        If the file cannot be written; its message and ``filename`` name it.
    """
    picture_format(file)
    save_picture(file, draw_path(path, chosen).encode(), "plot")


def draw_path(path: Path | Sequence[dict[str, Any]], chosen: int | None = None) -> str:
    """Draw the scores of a path over its numbers of non-zero weights.

    Parameters
    ----------
    path : Path or list of dict
        The path, or its table (``l1_ratio``, ``C``, ``n_nonzero``, ``score``, ``f1``).
    chosen : int or None
        The point to mark.

    Returns
    -------
    str
        The text of an SVG file.

    Raises
    ------
    ValueError
        If there are no points, one has no score, or `chosen` is none of them.
    """
    table = list(path) if isinstance(path, Sequence) else path.table()
    if not table:
        raise ValueError("the path has no points; expected at least one")
    if any(row["score"] is None or not math.isfinite(row["score"]) for row in table):
        raise ValueError("a point of the path has no score; give the path validation data")
    if chosen is not None and not 0 <= chosen < len(table):
        raise ValueError(f"chosen is {chosen}; expected 0 to {len(table) - 1}, a point of the path")
    score = "F1" if table[0].get("f1") is not None else "accuracy"
    title = f"{score} on the validation data over non-zero weights"
    axes = _Axes(table)
    body = [
        svg_text(LEFT, 34, title, size=18, weight="bold"),
        *axes.draw(f"{score} in %"),
        *_lines(table, axes),
        *_points(table, axes, chosen),
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family={quoteattr(FONT)}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


class _Axes:
    """Places of numbers in the picture; both axes end at the round number beyond the data."""

    def __init__(self, table: Sequence[dict[str, Any]]) -> None:
        counts = [math.log10(max(row["n_nonzero"], 1)) for row in table]
        self.first, self.last = math.floor(min(counts)), math.ceil(max(counts))
        if self.first == self.last:
            self.last += 1
        scores = [100 * row["score"] for row in table]
        self.step = round_step((max(scores) - min(scores)) / TICKS)
        self.low = math.floor(min(scores) / self.step) * self.step
        self.high = math.ceil(max(scores) / self.step) * self.step
        if self.high - self.low < self.step / 2:
            self.low, self.high = self.low - self.step, self.high + self.step

    def x(self, count: int) -> float:
        share = (math.log10(max(count, 1)) - self.first) / (self.last - self.first)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, score: float) -> float:
        share = (100 * score - self.low) / (self.high - self.low)
        return float(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))

    def draw(self, name: str) -> Iterable[str]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        decimals = max(0, -math.floor(math.log10(self.step)))
        for k in range(round((self.high - self.low) / self.step) + 1):
            tick = self.low + k * self.step
            y = self.y(tick / 100)
            yield _path(f"M{LEFT} {y:.1f}H{right}", RULE)
            label = f"{tick:.{decimals}f}"
            yield svg_text(LEFT - 8, y + 4, label, size=12, fill=SOFT, anchor="end", kind="y")
        for power in range(self.first, self.last + 1):
            x = self.x(10**power)
            yield _path(f"M{x:.1f} {TOP}V{bottom}", RULE)
            label = f"{10**power:,}".replace(",", "\u202f")
            yield svg_text(x, bottom + 18, label, size=12, fill=SOFT, anchor="middle", kind="x")
        yield _path(f"M{LEFT} {TOP}V{bottom}H{right}", INK)
        middle = (LEFT + right) / 2
        about = "non-zero weights; the l1_ratio beside each point"
        yield svg_text(middle, bottom + 44, about, size=13, anchor="middle")
        yield svg_text(LEFT, TOP - 12, name, size=13)


def _lines(table: Sequence[dict[str, Any]], axes: _Axes) -> Iterable[str]:
    """Join the points of each C, from the sparsest to the densest; say which is which."""
    Cs = sorted({row["C"] for row in table})
    for k, C in enumerate(Cs):
        colour = COLOURS[k % len(COLOURS)]
        rows = sorted((r for r in table if r["C"] == C), key=lambda r: int(r["n_nonzero"]))
        places = [f"{axes.x(r['n_nonzero']):.1f} {axes.y(r['score']):.1f}" for r in rows]
        if len(places) > 1:
            yield _path("M" + "L".join(places), colour, width=1.5)
        x = WIDTH - RIGHT - 90 * (len(Cs) - k - 1)
        yield svg_text(x, TOP - 12, f"C = {C:g}", size=13, fill=colour, anchor="end", kind="C")


def _points(
    table: Sequence[dict[str, Any]], axes: _Axes, chosen: int | None
) -> Iterable[str]:
    """Draw the points; labels that would lie upon each other go one above the other."""
    Cs = sorted({row["C"] for row in table})
    taken: list[tuple[float, float]] = []
    for k in sorted(range(len(table)), key=lambda k: int(table[k]["n_nonzero"])):
        row = table[k]
        x, y = axes.x(row["n_nonzero"]), axes.y(row["score"])
        colour = COLOURS[Cs.index(row["C"]) % len(COLOURS)]
        if k == chosen:
            yield (
                f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" '
                f'stroke="{CHOSEN}" stroke-width="2"/>'
            )
        yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        at = y - 13
        while any(abs(x - other) < 34 and abs(at - line) < LABEL - 2 for other, line in taken):
            at -= LABEL
        if at < TOP - 2:  # no room above
            at = y + 24
            while any(abs(x - other) < 34 and abs(at - line) < LABEL - 2 for other, line in taken):
                at += LABEL
        taken.append((x, at))
        yield svg_text(
            x,
            at,
            f"{row['l1_ratio']:g}",
            size=12,
            fill=CHOSEN if k == chosen else INK,
            weight="bold" if k == chosen else "normal",
            anchor="middle",
            kind="ratio",
        )


def _path(shape: str, colour: str, width: float = 1) -> str:
    return f'<path d="{shape}" stroke="{colour}" stroke-width="{width:g}" fill="none"/>'
