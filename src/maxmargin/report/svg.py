"""Pieces of SVG pictures."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape, quoteattr

__all__ = ["INK", "round_step", "svg_text"]

INK = "#1d1d1f"  # of texts


def svg_text(
    x: float,
    y: float,
    content: str,
    *,
    size: int,
    fill: str = INK,
    weight: str = "normal",
    anchor: str = "start",
    kind: str = "",
) -> str:
    """Write a line of text; y is its base line."""
    named = f" class={quoteattr(kind)}" if kind else ""
    return (
        f'<text{named} x="{x:.6g}" y="{y:.6g}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{fill}">{escape(content)}</text>'
    )


def round_step(step: float, least: float = 0.01) -> float:
    """Return the next larger of 1, 2 and 5 times a power of ten; at least `least`."""
    step = max(step, least)
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * (1 - 1e-9))
