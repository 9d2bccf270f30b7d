"""Tables of the page: with captions, heads of rows and columns, and bars and shades in cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maxmargin.report.html.markup import Child, Markup, element

__all__ = ["Section", "bar", "beside", "note", "section", "shade", "table"]

#: Shades of a cell.
SHADES = 8


class Section(NamedTuple):
    """A section of the page.

    Attributes
    ----------
    name, title : str
        Its anchor and its heading.
    body : Markup
        All of it, with the heading.
    """

    name: str
    title: str
    body: Markup


def section(name: str, title: str, *children: Child) -> Section:
    """Return a section of the page; `name` is its anchor."""
    head = element("h2", title, id=f"{name}-head")
    whole = element("section", head, *children, id=name, aria_labelledby=f"{name}-head")
    return Section(name, title, whole)


def beside(*parts: Child) -> Markup:
    """Return parts that stand side by side where there is room."""
    return element("div", *parts, class_="beside")


def note(*children: Child, kind: str = "note") -> Markup:
    """Return a paragraph that stands out: a "note", or a "warning"."""
    return element("p", *children, class_=kind)


def table(
    caption: Child,
    heads: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    left: int = 1,
    marked: int | None = None,
    kind: str | None = None,
) -> Markup:
    """Return a table that scrolls sideways by itself where it is too wide.

    Parameters
    ----------
    caption : str or Markup
        What it shows.
    heads : sequence
        Of the columns.
    rows : iterable of sequences
        The cells; the first of a row is its head.
    left : int
        How many columns are texts, on the left; the others are numbers.
    marked : int or None
        A row that stands out.
    kind : str or None
        A class for the style sheet.

    Returns
    -------
    Markup
        The table.
    """
    head = element(
        "tr",
        [
            element("th", cell, scope="col", class_=None if k < left else "n")
            for k, cell in enumerate(heads)
        ],
    )
    body = []
    for i, row in enumerate(rows):
        cells = [
            element("th", cell, scope="row")
            if k == 0
            else element("td", cell, class_=None if k < left else "n")
            for k, cell in enumerate(row)
        ]
        body.append(element("tr", cells, class_="marked" if i == marked else None))
    made = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", body),
        class_=kind,
    )
    return element("div", made, class_="scroll")


def bar(share: float, kind: str = "") -> Markup:
    """Return a bar as long as a share of its cell; what it shows stands beside it in digits."""
    width = min(max(share, 0.0), 1.0) * 100
    inner = element("span", class_=kind or None, style=f"width:{width:.1f}%")
    return element("span", inner, class_="bar", aria_hidden="true")


def shade(share: float, kind: str) -> str | None:
    """Return the class of a cell that is the darker the larger a share is; None for nothing."""
    if share <= 0:
        return None
    return f"{kind}{max(1, round(min(share, 1.0) * SHADES))}"
