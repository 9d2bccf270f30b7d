"""The picture of the demo: a few handwritten dates, and how both models read them.

One SVG file with everything in it. The digits are tiny PNG images, each pixel enlarged beforehand:
a viewer that smooths what it scales still shows squares. Everything is styled by attributes, which
all viewers know, and not by a style sheet.
"""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from maxmargin.demo import LENGTH, SIDE, Comparison, Image, Reading, day_of
from maxmargin.report.endings import picture_format
from maxmargin.report.files import save_picture
from maxmargin.report.svg import INK, svg_text

__all__ = ["choose_dates", "draw_dates", "png_bytes", "write_picture"]

# Not those of the calendar module, which follow the locale; the picture is in English.
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)

# All lengths are in pixels of a picture that is WIDTH wide.
WIDTH = 900
MARGIN = 40
IMAGE = 60  # side of a digit
PITCH = 68  # from digit to digit
GROUP = 14  # further space between day, month and year
FIRST = 132  # left edge of the first digit
REMARKS = FIRST + LENGTH * PITCH + 2 * GROUP + 4  # left edge
LINE = 23  # from reading to reading
DATE_HEIGHT = IMAGE + 8 + 3 * LINE + 26
ENLARGED = 8  # dots of a PNG per pixel of the scan, across and down

FONT = "'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
SOFT = "#63666b"
RULE = "#d5d7da"
WRONG = "#c2160c"
WRONG_PAPER = "#fdeae8"


def png_bytes(grey: NDArray[np.uint8]) -> bytes:
    """Encode a grey image as PNG.

    Parameters
    ----------
    grey : uint8 array of shape (height, width)
        0 is black and 255 is white.

    Returns
    -------
    bytes
        The file.
    """
    if grey.ndim != 2 or grey.dtype != np.uint8 or grey.size == 0:
        raise ValueError(
            f"a grey image is a uint8 array with two axes; got {grey.dtype} of shape {grey.shape}"
        )

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    height, width = grey.shape
    rows = np.hstack([np.zeros((height, 1), np.uint8), grey])  # each begins with its filter: none
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def choose_dates(comparison: Comparison, n: int) -> list[int]:
    """Choose dates to draw: those that only the chain read right, then one that both did.

    Parameters
    ----------
    comparison : Comparison
        What both models read.
    n : int
        How many to choose, at most.

    Returns
    -------
    list of int
        Their positions. Of the first kind come those with the fewest wrong digits first: there it
        is plain to see what the neighbours changed. If they are too few, any others follow.
    """
    only_chain = np.flatnonzero(comparison.only_chain)
    wrong = (comparison.single.digits != comparison.truth).sum(axis=1)
    rescued = [int(i) for i in only_chain[np.argsort(wrong[only_chain], kind="stable")]]
    both = comparison.dates_right(comparison.chain) & comparison.dates_right(comparison.single)
    normal = [int(i) for i in np.flatnonzero(both)]
    chosen = rescued[: max(n - 1, 1)] + normal[:1]
    others = [i for i in range(len(comparison.truth)) if i not in chosen]
    return (chosen + others)[:n]


def draw_dates(comparisons: Sequence[Comparison], dates_each: int = 3) -> str:
    """Draw some dates of each comparison, with the readings of both models.

    Parameters
    ----------
    comparisons : sequence of Comparison
        The sections of the picture.
    dates_each : int
        Dates per section, at most.

    Returns
    -------
    str
        The text of an SVG file.
    """
    title = "Handwritten dates, read digit by digit and as a chain"
    body: list[str] = []
    y = MARGIN + 16
    body.append(svg_text(MARGIN, y, title, size=24, weight="bold"))
    y += 28
    about = (
        "Two models, the same pixels, the same solver. "
        "The chain also learns which digits follow each other in dates."
    )
    body.append(svg_text(MARGIN, y, about, size=14, fill=SOFT))
    y += 24
    body += _legend(y)
    y += 20
    for comparison in comparisons:
        y += 18
        body += _heading(comparison, y)
        y += 104
        for i in choose_dates(comparison, dates_each):
            body += _date(comparison, i, y)
            y += DATE_HEIGHT
    body.append(_rule(y))
    y += 26
    body.append(svg_text(MARGIN, y, "Certificates of the chains", size=14, weight="bold"))
    for comparison in comparisons:
        y += 21
        line = f"{comparison.scans}: {comparison.chain.certificate}"
        body.append(svg_text(MARGIN, y, line, size=13, kind="certificate"))
    height = y + MARGIN - 10
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
            f"font-family={quoteattr(FONT)}>",
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def write_picture(
    path: str | os.PathLike[str], comparisons: Sequence[Comparison], dates_each: int = 3
) -> None:
    """Write the picture that `draw_dates` draws.

    It is written beside the target and moved there at the end: either all of it is there, or what
    was there before.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists. Its name ends with ``.svg``.
    comparisons : sequence of Comparison
        The sections of the picture.
    dates_each : int
        Dates per section, at most.

    Raises
    ------
    ValueError
        If the name has another ending.
    OSError
        If the file cannot be written; its message and ``filename`` name it.
    """
    picture_format(path)
    save_picture(path, draw_dates(comparisons, dates_each).encode())


def _rule(y: float) -> str:
    return f'<path d="M{MARGIN} {y:g}H{WIDTH - MARGIN}" stroke="{RULE}" fill="none"/>'


def _wrong_paper(center: float, base_line: float) -> str:
    """Colour the ground of a wrong digit."""
    return (
        f'<rect x="{center - 15:g}" y="{base_line - 16:g}" width="30" height="{LINE - 2}" rx="4" '
        f'fill="{WRONG_PAPER}"/>'
    )


def _legend(y: float) -> Iterable[str]:
    """Explain the marks."""
    yield svg_text(MARGIN, y, "Readings:", size=14, fill=SOFT)
    yield svg_text(MARGIN + 84, y, "7", size=17, anchor="middle")
    yield svg_text(MARGIN + 98, y, "right", size=14, fill=SOFT)
    yield _wrong_paper(MARGIN + 160, y)
    yield svg_text(MARGIN + 160, y, "7", size=17, fill=WRONG, weight="bold", anchor="middle")
    yield svg_text(MARGIN + 182, y, "wrong", size=14, fill=SOFT)
    shown = "Shown first: dates that only the chain read right"
    yield svg_text(WIDTH - MARGIN, y, shown, size=14, fill=SOFT, anchor="end")


def _heading(comparison: Comparison, y: float) -> Iterable[str]:
    """Open a section: which scans, and how much of them was read right."""
    yield _rule(y - 6)
    yield svg_text(MARGIN, y + 24, comparison.scans, size=18, weight="bold")
    number = len(comparison.truth)
    lines = (
        f"{comparison.n_train} dates to learn from, {number} to read;",
        f"{int(comparison.only_chain.sum())} only the chain read right,",
        f"{int(comparison.only_single.sum())} only the single digits",
    )
    for k, line in enumerate(lines):
        yield svg_text(MARGIN, y + 45 + 18 * k, line, size=13, fill=SOFT)
    columns = WIDTH - MARGIN - 130, WIDTH - MARGIN
    for x, name in zip(columns, ("digits right", "dates right"), strict=True):
        yield svg_text(x, y + 24, name, size=13, fill=SOFT, anchor="end")
    models = (
        ("each digit by itself", comparison.single, "normal"),
        ("the date as a chain", comparison.chain, "bold"),
    )
    for k, (name, reading, weight) in enumerate(models):
        base_line = y + 47 + 22 * k
        yield svg_text(columns[0] - 110, base_line, name, size=14, weight=weight, anchor="end")
        for x, rate in zip(columns, comparison.rates(reading), strict=True):
            share = f"{100 * rate:.1f} %"
            yield svg_text(x, base_line, share, size=16, weight=weight, anchor="end", kind="rate")


def _date(comparison: Comparison, i: int, y: float) -> Iterable[str]:
    """Draw a date: its images, and below each the truth and what was read."""
    truth = comparison.truth[i]
    lefts = [FIRST + PITCH * k + GROUP * ((k >= 2) + (k >= 4)) for k in range(LENGTH)]
    yield '<g class="date">'
    for left, image in zip(lefts, comparison.images[i], strict=True):
        yield _digit_image(image, left, y)
    rows: tuple[tuple[str, Reading | None], ...] = (
        ("truth", None),
        ("by itself", comparison.single),
        ("as a chain", comparison.chain),
    )
    for k, (name, reading) in enumerate(rows):
        digits = truth if reading is None else reading.digits[i]
        wrong = digits != truth
        base_line = y + IMAGE + 6 + LINE * (k + 1) - 4
        fill = SOFT if reading is None else INK
        yield svg_text(FIRST - 16, base_line, name, size=13, fill=SOFT, anchor="end")
        for left, digit, is_wrong in zip(lefts, digits, wrong, strict=True):
            center = left + IMAGE / 2
            if is_wrong:
                yield _wrong_paper(center, base_line)
            yield svg_text(
                center,
                base_line,
                str(digit),
                size=17,
                fill=WRONG if is_wrong else fill,
                weight="bold" if is_wrong else "normal",
                anchor="middle",
                kind="truth" if reading is None else "wrong" if is_wrong else "right",
            )
        remark = _in_words(truth) if reading is None else _remark(digits, int(wrong.sum()))
        colour = WRONG if wrong.any() else SOFT
        yield svg_text(REMARKS, base_line, remark, size=13, fill=colour)
    yield "</g>"


def _digit_image(image: Image, left: float, top: float) -> str:
    """Draw the scan of a digit, ink on paper, in a frame."""
    grey = np.round(255 * (1 - np.clip(image.reshape(SIDE, SIDE), 0, 1))).astype(np.uint8)
    dots = np.repeat(np.repeat(grey, ENLARGED, axis=0), ENLARGED, axis=1)
    data = base64.b64encode(png_bytes(dots)).decode()
    place = f'x="{left:g}" y="{top:g}" width="{IMAGE}" height="{IMAGE}"'
    return (
        f'<image {place} image-rendering="pixelated" xlink:href="data:image/png;base64,{data}"/>'
        f'<rect {place} fill="none" stroke="{RULE}"/>'
    )


def _in_words(digits: NDArray[np.int64]) -> str:
    """Name the day that the digits stand for."""
    day = day_of(digits)
    return "" if day is None else f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _remark(digits: NDArray[np.int64], n_wrong: int) -> str:
    """Say how good a reading is."""
    if n_wrong == 0:
        return "right"
    return f"{n_wrong} wrong" + (", no such day" if day_of(digits) is None else "")
