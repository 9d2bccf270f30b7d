"""Pieces of SVG pictures."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

__all__ = ["INK", "svg_text"]

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
