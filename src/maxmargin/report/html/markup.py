"""HTML as nested calls: what is not markup already is escaped, so nothing can be forgotten."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import TypeAlias

from maxmargin.printable import printable

__all__ = ["LONG", "Child", "Markup", "count", "element", "foreign", "join", "number", "percent"]

#: Characters of a foreign text on the page.
LONG = 60
#: Elements that have no end tag.
VOID = frozenset({"br", "meta"})
#: Elements of SVG that are mostly empty.
SHAPES = frozenset({"circle", "path", "rect"})
#: Between the thousands of a number: a narrow blank where no line breaks.
THIN = "\u202f"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def join(children: Child) -> Markup:
    """Return children as one piece of HTML; texts are escaped, None is nothing."""
    if children is None:
        return Markup()
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(html.escape(children))
    return Markup("".join(join(child) for child in children))


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element.

    Parameters
    ----------
    name : str
        Of the element.
    *children : str, Markup, iterable or None
        What is in it.
    **attributes
        Its attributes; an underscore at the end of a name is left out, others become hyphens. True
        is an attribute without a value; None and False are none.

    Returns
    -------
    Markup
        The HTML.

    Examples
    --------
    >>> element("p", "a < b", element("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    parts = [name]
    for given, value in attributes.items():
        if value is None or value is False:
            continue
        key = given.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{html.escape(str(value))}"')
    head = " ".join(parts)
    if name in VOID:
        return Markup(f"<{head}>")
    if name in SHAPES and not children:
        return Markup(f"<{head}/>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def foreign(value: object, limit: int = LONG) -> Markup:
    """Return a text from outside: made safe and short, and apart from the direction around it.

    Parameters
    ----------
    value : object
        A label, a word, the name of a feature or of a file.
    limit : int
        The most characters.

    Returns
    -------
    Markup
        An element ``bdi``; the whole text is its title where it was cut.
    """
    shown = printable(value, limit)
    whole = printable(value, 20 * limit)
    return element("bdi", shown or "\u00a0", title=whole if whole != shown else None)


def count(value: int) -> Markup:
    """Return a number of things, which programs can read as well."""
    return element("data", f"{int(value):,}".replace(",", THIN), value=repr(int(value)))


def number(value: float | None, digits: int = 4) -> Markup:
    """Return a number with so many significant digits; a dash for what is none."""
    if value is None or not math.isfinite(value):
        return Markup("\u2013" if value is None or math.isnan(value) else "\u221e")
    return element("data", f"{value:.{digits}g}", value=repr(float(value)))


def percent(share: float | None, decimals: int = 2, *, unit: bool = True) -> Markup:
    """Return a share as a percentage, with or without its sign; a dash for what is none."""
    if share is None or not math.isfinite(share):
        return Markup("\u2013")
    sign = f"{THIN}%" if unit else ""
    shown = f"{100 * share:.{decimals}f}"
    if share != 0 and float(shown) == 0:  # a gap of nearly nothing is not nothing
        shown = f"{100 * share:.1g}"
    return element("data", f"{shown}{sign}", value=repr(float(share)))
