"""The certificate, and how training came to it."""

from __future__ import annotations

from maxmargin.report.html.charts import gap_chart, objective_chart, score_chart
from maxmargin.report.html.content import Course
from maxmargin.report.html.markup import Child, Markup, count, element, number, percent
from maxmargin.report.html.tables import Section, beside, note, section, table

__all__ = ["training_section"]


def training_section(course: Course) -> Section:
    """Return the certificate in words and figures, and the charts of the training."""
    certificate, history = course.certificate, course.history
    rows: list[list[Child]] = [
        ["primal objective of the model", number(certificate.primal, 8)],
        ["dual bound: no model has less", number(certificate.dual, 8)],
        ["relative gap", percent(certificate.gap, 4)],
    ]
    if course.gap is not None:
        rows.append(["gap that was asked for", percent(course.gap, 4)])
    rows.append(["passes", count(course.passes)])
    if len(history):
        rows.append(["calls of the oracle", count(history[-1].oracle_calls)])
        rows.append(["seconds until the last pass", number(history[-1].seconds)])
    when = {record.n_pass: record.seconds for record in history}
    kept = None if course.best_pass is None else when.get(course.best_pass)
    charts = [
        gap_chart(history, course.gap, certificate.gap, kept),
        objective_chart(history),
        score_chart(history, course.scores, course.best_pass),
    ]
    there = [chart for chart in charts if chart is not None]
    missing = None
    if not there:
        missing = element("p", "A model file does not keep the course of the training.")
    caption = "The certificate, computed from scratch at the end"
    figures = table(caption, ["figure", "value"], rows)
    return section("certificate", "Certificate", _in_words(course), missing, beside(there, figures))


def _in_words(course: Course) -> Markup:
    certificate = course.certificate
    if certificate.missed is not None:
        return note(f"Nothing is certified: {certificate.advice}.", kind="warning")
    sentence: list[Child] = [
        "No model with these features, data and settings has an objective that is lower by more "
        "than ",
        element("strong", percent(certificate.gap, 3)),
        ".",
    ]
    if certificate.approximate:
        sentence.append(" The oracle is approximate; the gap counts what it may have missed.")
    if course.best_pass is None and not course.converged:
        sentence.append(" The gap that was asked for was not reached.")
    sentence.append(f" How training ended: {course.reason}.")
    return element("p", sentence, class_="lead")
