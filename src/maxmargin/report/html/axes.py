"""Axes of the charts: places of numbers in a small picture, and its ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from maxmargin.report.html.markup import THIN, Markup, element
from maxmargin.report.svg import round_step

__all__ = ["BOTTOM", "HEIGHT", "LEFT", "RIGHT", "TOP", "WIDTH", "Axis", "frame", "linear", "log"]

# Lengths are in units of a picture that is as wide as a telephone, where texts of 11 units can be
# read; on wide screens two pictures stand side by side.
WIDTH, HEIGHT = 360, 232
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 26, 40


class Axis(NamedTuple):
    """A range of numbers, with ticks.

    Attributes
    ----------
    low, high : float
        Both ends; of a logarithmic axis their logarithms.
    is_log : bool
        Whether it is logarithmic.
    ticks : list of (float, str)
        Numbers and their texts.
    """

    low: float
    high: float
    is_log: bool
    ticks: list[tuple[float, str]]

    def share(self, value: float) -> float:
        """Return the place of a number, from 0 to 1; what is beyond an end is at that end."""
        if self.is_log:
            value = math.log10(value) if value > 0 else self.low
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def x(self, value: float) -> float:
        """Return the place of a number on the axis below a picture."""
        return LEFT + self.share(value) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return the place of a number on the axis beside a picture."""
        return HEIGHT - BOTTOM - self.share(value) * (HEIGHT - TOP - BOTTOM)


def _text(value: float, step: float) -> str:
    if value != 0 and (abs(value) >= 1e6 or step < 1e-4):
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}".replace(",", THIN)


def linear(values: Sequence[float], *, n_ticks: int = 5, from_zero: bool = False) -> Axis:
    """Return an axis whose ends are round numbers beyond all values.

    Parameters
    ----------
    values : sequence of float
        Finite numbers, at least one.
    n_ticks : int
        About how many ticks.
    from_zero : bool
        Whether it begins with zero.
    """
    low, high = min(values), max(values)
    low = min(low, 0.0) if from_zero else low
    least = max(abs(low), abs(high), 1e-12) * 1e-9
    step = round_step((high - low) / n_ticks, least)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        last += 1
    ticks = [(k * step, _text(k * step, step)) for k in range(first, last + 1)]
    return Axis(first * step, last * step, False, ticks)


def log(values: Sequence[float], *, percent: bool = False) -> Axis:
    """Return a logarithmic axis from power of ten to power of ten.

    Parameters
    ----------
    values : sequence of float
        Positive numbers, at least one.
    percent : bool
        Whether ticks are percentages of 1.
    """
    first = math.floor(math.log10(min(values)) + 1e-9)
    last = math.ceil(math.log10(max(values)) - 1e-9)
    if first == last:
        first -= 1
    every = max(1, math.ceil((last - first) / 6))
    powers = range(first, last + 1, every)
    unit, end = (100, f"{THIN}%") if percent else (1, "")
    ticks = [(10.0**k, f"{unit * 10.0**k:g}{end}") for k in powers]
    return Axis(first, last, True, ticks)


def frame(x: Axis, y: Axis, below: str, beside: str) -> list[Markup]:
    """Draw the lines and texts of two axes.

    Parameters
    ----------
    x, y : Axis
        Below and beside the picture.
    below, beside : str
        What they show.
    """
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts: list[Markup] = []
    for value, label in y.ticks:
        at = y.y(value)
        parts.append(element("path", class_="grid", d=f"M{LEFT} {at:.1f}H{right}"))
        parts.append(element("text", label, class_="tick end", x=LEFT - 6, y=f"{at + 4:.1f}"))
    for value, label in x.ticks:
        at = x.x(value)
        parts.append(element("path", class_="grid", d=f"M{at:.1f} {bottom}v4"))
        parts.append(element("text", label, class_="tick mid", x=f"{at:.1f}", y=bottom + 16))
    parts.append(element("path", class_="axis", d=f"M{LEFT} {bottom}H{right}"))
    middle = (LEFT + right) / 2
    parts.append(element("text", below, class_="name mid", x=f"{middle:.1f}", y=HEIGHT - 6))
    parts.append(element("text", beside, class_="name", x=LEFT, y=TOP - 11))
    return parts
