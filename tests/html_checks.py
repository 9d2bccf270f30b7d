"""What a page of maxmargin must be: well-formed, without scripts, self-contained, accessible."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"br", "meta"}
#: Attributes by which a page could load something.
LOADING = {"src", "srcset", "action", "data", "poster", "background", "xlink:href", "formaction"}


class Page(HTMLParser):
    """A page, read element by element; anything that is wrong is an AssertionError.

    Attributes
    ----------
    tables : dict
        Rows of cells by the caption of their table; a cell is its text, or the value of its
        element ``data``.
    headings : list of (int, str)
        Levels and texts.
    text : str
        All text.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[Any]]] = {}
        self.headings: list[tuple[int, str]] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.referred: list[str] = []
        self.svgs: list[set[str]] = []
        self.text = ""
        self.cards: dict[str, Any] = {}
        self._open: list[str] = []
        self._texts: list[str] = []
        self._row: list[Any] = []
        self._rows: list[list[Any]] = []
        self._value: Any = None
        self._caption = ""
        self._name = ""
        self._captions = 0
        self._tables = 0
        assert text.startswith("<!DOCTYPE html>\n<html lang=")
        self.feed(text)
        self.close()
        assert self._open == []
        assert self._captions == self._tables
        assert {name.removeprefix("#") for name in self.links} <= self.ids
        assert set(self.referred) <= self.ids
        levels = [level for level, _ in self.headings]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
        assert all({"title", "desc"} <= inside for inside in self.svgs)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, dict(attrs))
        if tag not in VOID:
            self._open.append(tag)
            self._texts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self._open, f"{tag} ends itself outside of a picture"
        self._begin(tag, dict(attrs))

    def _begin(self, tag: str, attributes: dict[str, str | None]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
        assert len(set(attributes)) == len(attributes)
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in LOADING or (tag == "data" and name == "value")
            if name == "href":
                assert tag == "a"
                assert (value or "").startswith("#")
                self.links.append(value or "")
            if name == "id":
                assert value not in self.ids, f"two elements are called {value}"
                self.ids.add(value or "")
            if name == "aria-labelledby":
                self.referred += (value or "").split()
            if name == "style":
                assert re.fullmatch(r"width:[0-9.]+%", value or "")
        if self._open and "svg" in self._open and tag in {"title", "desc"}:
            self.svgs[-1].add(tag)
        if tag == "svg":
            assert attributes.get("role") == "img"
            self.svgs.append(set())
        elif tag == "table":
            self._tables += 1
            self._rows = []
        elif tag == "tr":
            self._row = []
        elif tag in {"td", "th"} and "thead" not in self._open:
            self._value = None
        elif tag == "data":
            given = attributes.get("value") or ""
            self._value = int(given) if re.fullmatch(r"-?\d+", given) else float(given)

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data
        else:
            assert "url(" not in data
            assert "@import" not in data
            assert "://" not in data
        self._texts = [text + data for text in self._texts]

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> ends nothing"
        assert self._open[-1] == tag, f"</{tag}> ends {self._open[-1]}"
        self._open.pop()
        text = " ".join(self._texts.pop().split())
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append((int(tag[1]), text))
        elif tag == "caption":
            self._caption, self._captions = text, self._captions + 1
        elif tag in {"td", "th"}:
            self._row.append(text if self._value is None else self._value)
            self._value = None
        elif tag == "tr" and "tbody" in self._open:
            self._rows.append(self._row)
        elif tag == "table":
            assert self._caption not in self.tables
            self.tables[self._caption] = self._rows
        elif tag == "dt":
            self._name = text
        elif tag == "dd":
            self.cards[self._name] = self._value if self._value is not None else text
            self._value = None

    def rows(self, caption: str) -> dict[str, list[Any]]:
        """Return the rows of the table whose caption begins with a text, by their heads."""
        found = [rows for name, rows in self.tables.items() if name.startswith(caption)]
        assert len(found) == 1, f"{caption}: {list(self.tables)}"
        return {row[0]: row[1:] for row in found[0]}
