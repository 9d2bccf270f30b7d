"""What the model has learned: its strongest features and transitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxmargin.report.html.content import Learned
from maxmargin.report.html.markup import Child, Markup, count, element, foreign, number
from maxmargin.report.html.tables import Section, bar, beside, note, section, table

__all__ = ["weights_section"]


def weights_section(found: Learned) -> Section:
    """Return sizes of the model, its strongest weights, and those of single labels."""
    sizes = table("Sizes", ["", "number"], [[name, count(n)] for name, n in found.sizes])
    missing = note(found.missing) if found.missing else None
    features = _signs("Strongest features", found.features, _features)
    labels = [
        element(
            "details",
            element("summary", foreign(label)),
            _features(["Features for and against ", foreign(label)], rows, label=False),
        )
        for label, rows in found.by_label
        if rows
    ]
    groups = None
    if labels:
        groups = element(
            "div", element("h3", "Features of single labels"), labels, class_="by-label"
        )
    transitions = _signs("Strongest transitions", found.transitions, _transitions)
    return section(
        "weights", "What it has learned", sizes, missing, features, groups, transitions
    )


def _signs(
    caption: str,
    rows: list[dict[str, Any]],
    made: Callable[[Child, list[dict[str, Any]]], Markup],
) -> Markup | None:
    """Return a table of the weights above zero beside one of those below; None without any."""
    above = [row for row in rows if row["weight"] > 0]
    below = [row for row in rows if row["weight"] < 0]
    both = (("for", above), ("against", below))
    tables = [made(f"{caption} {sign}", some) for sign, some in both if some]
    return beside(tables) if tables else None


def _weight(weight: float, most: float) -> list[Child]:
    return [bar(abs(weight) / most, "plus" if weight > 0 else "minus"), number(weight)]


def _features(caption: Child, rows: list[dict[str, Any]], *, label: bool = True) -> Markup:
    most = max(abs(row["weight"]) for row in rows)
    body: list[list[Child]] = []
    for row in rows:
        cells: list[Child] = [foreign(row["feature"], 48)]
        if label:
            cells.append(foreign(row["label"]))
        body.append([*cells, *_weight(row["weight"], most)])
    heads = ["feature", *(["label"] if label else []), "", "weight"]
    return table(caption, heads, body, left=len(heads) - 1, kind="bars")


def _transitions(caption: Child, rows: list[dict[str, Any]]) -> Markup:
    most = max(abs(row["weight"]) for row in rows)
    body: list[list[Child]] = []
    for row in rows:
        before = element("em", "start") if row["from"] is None else foreign(row["from"])
        behind = element("em", "end") if row["to"] is None else foreign(row["to"])
        body.append([before, behind, *_weight(row["weight"], most)])
    heads = ["label", "next label", "", "weight"]
    return table(caption, heads, body, left=3, kind="bars")
