"""The page: one HTML file that needs nothing else.

It has no script and loads nothing (a content security policy in its head forbids it), follows the
light or dark mode of the reader, fits a telephone, and prints.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from maxmargin.printable import printable
from maxmargin.report.endings import picture_format
from maxmargin.report.files import save_picture
from maxmargin.report.html.content import Content
from maxmargin.report.html.markup import Child, Markup, count, element, foreign, number, percent
from maxmargin.report.html.sections.confidence import confidence_section
from maxmargin.report.html.sections.data import data_section
from maxmargin.report.html.sections.errors import errors_section
from maxmargin.report.html.sections.scores import confusion_section, scores_section
from maxmargin.report.html.sections.settings import search_section, settings_section
from maxmargin.report.html.sections.training import training_section
from maxmargin.report.html.sections.weights import weights_section
from maxmargin.report.html.style import STYLE
from maxmargin.report.html.tables import Section

__all__ = ["FORMATS", "page", "write_page"]

#: Endings of the file.
FORMATS = ("html", "htm")
#: Nothing is loaded and no script runs, whatever a label may say.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_page(path: str | os.PathLike[str], content: Content) -> dict[str, Any]:
    """Write the page, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists. Its name ends with ``.html`` or ``.htm``.
    content : Content
        What is on it.

    Returns
    -------
    dict
        ``report`` and ``report_bytes`` (the file and its size), and of what was judged here
        ``calibration_error``, ``calibration_error_before`` (at the temperature 1) and
        ``temperature``.

    Raises
    ------
    ValueError
        If the name has another ending.
    OSError
        If the file cannot be written; its message and ``filename`` name it.
    """
    picture_format(path, FORMATS)
    text = page(content).encode()
    save_picture(path, text, "report")
    figures: dict[str, Any] = {"report": os.fspath(path), "report_bytes": len(text)}
    found = content.evaluation
    if found is not None and found.confidence is not None:
        figures["temperature"] = found.confidence.temperature
        figures["calibration_error"] = found.confidence.after.error
        figures["calibration_error_before"] = found.confidence.before.error
    return figures


def page(content: Content) -> str:
    """Return the page.

    Parameters
    ----------
    content : Content
        What is on it.

    Returns
    -------
    str
        HTML.
    """
    found = content.evaluation
    sections = [
        training_section(content.course),
        scores_section(content),
        None if found is None else confusion_section(found),
        None if found is None else errors_section(found),
        None if found is None else confidence_section(found),
        None if content.learned is None else weights_section(content.learned),
        data_section(content.data),
        search_section(content),
        settings_section(content),
    ]
    there = [part for part in sections if part is not None]
    made = content.made or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    body = element(
        "body",
        element(
            "header",
            element("h1", foreign(content.title, 120)),
            element("p", printable(content.about, 400), class_="about"),
            _cards(content),
            _contents(there),
        ),
        element("main", [part.body for part in there]),
        element("footer", element("p", f"Made by maxmargin {_version()} on {made}.")),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"maxmargin {_version()}"),
        element("title", printable(content.title, 120)),
        element("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _version() -> str:
    from maxmargin import __version__

    return __version__


def _contents(sections: list[Section]) -> Markup:
    """Return links to the sections."""
    links = [element("li", element("a", part.title, href=f"#{part.name}")) for part in sections]
    return element("nav", element("ul", links), aria_label="Sections")


def _cards(content: Content) -> Markup:
    """Return the few figures that people look for first."""
    cards: list[Markup] = []
    found = content.evaluation
    if found is not None:
        report, on = found.report, "training data" if found.on_training else "held-out data"
        kind = "warn" if found.on_training else None
        if report.has_chunks:
            cards.append(_card(percent(report.f1), f"F1 of chunks, {on}", kind))
        cards.append(_card(percent(report.token_accuracy), f"of the tokens right, {on}", kind))
    certificate = content.course.certificate
    if certificate.missed is None:
        cards.append(_card(percent(certificate.gap), "from the optimum, at most"))
    if found is not None and found.confidence is not None:
        error = percent(found.confidence.after.error)
        cards.append(_card(error, "expected calibration error"))
    if content.data:
        first = content.data[0]
        cards.append(_card(count(first.n_tokens), f"tokens of {first.what}"))
    if content.seconds is not None:
        cards.append(_card(number(content.seconds, 3), "seconds of training"))
    return element("dl", cards, class_="cards")


def _card(value: Child, name: str, kind: str | None = None) -> Markup:
    return element("div", element("dt", name), element("dd", value), class_=kind)
