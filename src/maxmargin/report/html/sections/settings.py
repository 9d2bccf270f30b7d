"""How the model was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maxmargin.report.html.content import Content
from maxmargin.report.html.markup import Child, Markup, element, foreign, number, percent
from maxmargin.report.html.tables import Section, section, table

__all__ = ["search_section", "settings_section"]

#: Rows of a table of models.
MOST = 60


def settings_section(content: Content) -> Section:
    """Return the parameters of the training."""
    rows = [[name, _value(value)] for name, value in content.settings]
    command = None
    if content.command:
        command = element("pre", element("code", foreign(content.command, 1000)))
    return section(
        "settings",
        "Settings",
        command,
        table("Parameters of the training", ["parameter", "value"], rows, left=2),
    )


def _value(value: object) -> Markup:
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return foreign("none" if value is None else value, 160)


def search_section(content: Content) -> Section | None:
    """Return the models that were tried and the scores of folds; None without any."""
    if not content.search and not content.folds:
        return None
    tables = []
    if content.search:
        tables.append(_models(content.search, content.course.certificate.C, content.settings))
    if content.folds:
        tables.append(_folds(content.folds))
    return section("search", "Models that were tried", tables)


def _others(rows: Sequence[Mapping[str, Any]], known: set[str]) -> list[str]:
    """Return the names of the settings that rows have beside the known ones."""
    return list(dict.fromkeys(name for row in rows for name in row if name not in known))


def _models(
    rows: Sequence[Mapping[str, Any]], C: float, settings: Sequence[tuple[str, object]]
) -> Markup:
    others = _others(rows, {"C", "gap", "score"})
    chosen = dict(settings)
    best = [
        k
        for k, row in enumerate(rows)
        if row["C"] == C and all(str(row.get(n)) == str(chosen.get(n)) for n in others)
    ]
    body: list[list[Child]] = []
    for row in rows[:MOST]:
        given = [foreign(row.get(name)) for name in others]
        body.append([number(row["C"]), *given, percent(row["score"]), percent(row["gap"])])
    heads = ["C", *others, "score", "gap"]
    return table(
        "Models by score on the validation data; the chosen one stands out",
        heads,
        body,
        left=1 + len(others),
        marked=best[0] if best else None,
    )


def _folds(rows: Sequence[Mapping[str, Any]]) -> Markup:
    known = {"C", "score", "token_accuracy", "token_accuracy_std", "f1", "f1_std", "folds"}
    others = [name for name in _others(rows, known) if _plain(rows[0].get(name))]
    best = max(range(len(rows)), key=lambda k: rows[k]["score"])
    body: list[list[Child]] = []
    for row in rows[:MOST]:
        cells: list[Child] = [number(row["C"]), *(foreign(row.get(name)) for name in others)]
        for name in ("token_accuracy", "f1"):
            if name in row:
                cells.append([percent(row[name]), " \u00b1 ", percent(row[f"{name}_std"])])
        body.append(cells)
    heads = ["C", *others, "accuracy", *(["F1"] if "f1" in rows[0] else [])]
    caption = "Cross-validation: mean and standard deviation over the folds"
    return table(caption, heads, body, left=1 + len(others), marked=best)


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
