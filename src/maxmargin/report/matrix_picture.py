"""A substitution matrix as a picture (SVG): a cell for each two letters, red above zero."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from maxmargin.report.files import save_picture
from maxmargin.report.svg import svg_text

__all__ = ["matrix_picture", "save_matrix_picture"]

CELL = 24
MARGIN = 40
#: Of the highest and of the lowest score; zero is white.
HIGH, LOW = (178, 24, 43), (33, 102, 172)


def _color(share: float) -> str:
    """Return the colour of a score, as a share of the largest one."""
    end = HIGH if share > 0 else LOW
    strength = min(abs(share), 1.0)
    return "#" + "".join(f"{round(255 + strength * (part - 255)):02x}" for part in end)


def matrix_picture(alphabet: str, scores: Any, title: str = "") -> str:
    """Draw a substitution matrix.

    Parameters
    ----------
    alphabet : str
        The letters of rows and columns.
    scores : array of shape (letters, letters)
        What a match of two letters scores.
    title : str
        Above the matrix.

    Returns
    -------
    str
        An SVG file.

    Examples
    --------
    >>> picture = matrix_picture("AB", [[2.0, -1.0], [-1.0, 3.0]])
    >>> picture.count("<rect"), picture.startswith("<svg")
    (5, True)
    """
    values = np.asarray(scores, dtype=np.float64)
    n = len(alphabet)
    if values.shape != (n, n) or not np.isfinite(values).all():
        raise ValueError(
            f"scores have the shape {values.shape}; expected finite numbers for {n} letters"
        )
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    width, height = 2 * MARGIN + n * CELL, 2 * MARGIN + n * CELL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    if title:
        parts.append(svg_text(width / 2, 16, title, size=13, weight="bold", anchor="middle"))
    for i, a in enumerate(alphabet):
        middle = MARGIN + (i + 0.5) * CELL
        parts.append(svg_text(middle, MARGIN - 6, a, size=12, anchor="middle"))
        parts.append(svg_text(MARGIN - 8, middle + 4, a, size=12, anchor="end"))
        for j in range(n):
            share = float(values[i, j]) / most
            ink = "#ffffff" if abs(share) > 0.6 else "#1d1d1f"
            x, y = MARGIN + j * CELL, MARGIN + i * CELL
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{_color(share)}"/>'
            )
            label = f"{100 * share:.0f}"
            parts.append(
                svg_text(x + CELL / 2, y + CELL / 2 + 3, label, size=8, fill=ink, anchor="middle")
            )
    note = f"in hundredths of the largest score, {most:.4g}"
    parts.append(svg_text(width / 2, height - 14, note, size=11, anchor="middle"))
    parts.append("</svg>\n")
    return "\n".join(parts)


def save_matrix_picture(
    path: str | os.PathLike[str], alphabet: str, scores: Any, title: str = ""
) -> None:
    """Draw a substitution matrix into a file, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        The SVG file; replaced if it exists.
    alphabet, scores, title
        As for `matrix_picture`.
    """
    save_picture(path, matrix_picture(alphabet, scores, title).encode())
