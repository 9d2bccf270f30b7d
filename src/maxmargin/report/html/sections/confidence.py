"""How honest the probabilities of the model are."""

from __future__ import annotations

from maxmargin.report.html.charts import reliability_chart
from maxmargin.report.html.content import Confidence, Evaluation
from maxmargin.report.html.markup import Child, Markup, count, element, number, percent
from maxmargin.report.html.tables import Section, beside, note, section, table

__all__ = ["confidence_section"]


def confidence_section(found: Evaluation) -> Section:
    """Return the reliability diagram and the calibration error, or why there are none."""
    if found.confidence is None:
        return section("confidence", "Confidence", note(found.no_confidence))
    confidence = found.confidence
    chosen = (
        "It was chosen on the same data, as one number on many tokens, which flatters the error "
        "a little."
        if confidence.fitted_here
        else "It is part of the model, and was not chosen for this page."
    )
    sentence = element(
        "p",
        "On average the confidence differs from the share of right predictions by ",
        element("strong", percent(confidence.after.error)),
        " (the expected calibration error); at the temperature 1 it would be ",
        percent(confidence.before.error),
        ". Scores are divided by the temperature ",
        number(confidence.temperature),
        f" to make probabilities of them. {chosen}",
        class_="lead",
    )
    rows: list[list[Child]] = [
        ["temperature", number(confidence.temperature, 6)],
        ["expected calibration error", number(confidence.after.error, 4)],
        ["the same at the temperature 1", number(confidence.before.error, 4)],
    ]
    figures = table("Calibration", ["figure", "value"], rows)
    charts = beside(reliability_chart(confidence), figures)
    return section("confidence", "Confidence", sentence, charts, _bins(confidence))


def _bins(confidence: Confidence) -> Markup:
    bins = confidence.after
    rows: list[list[Child]] = [
        [
            f"{100 * k / len(bins.weight):.0f}\u2013{100 * (k + 1) / len(bins.weight):.0f}\u202f%",
            percent(float(bins.confidence[k])),
            percent(float(bins.accuracy[k])),
            count(int(bins.weight[k])),
        ]
        for k in range(len(bins.weight))
        if bins.weight[k] > 0
    ]
    heads = ["confidence", "mean", "right", "tokens"]
    made = table("Tokens by confidence of their labels", heads, rows)
    return element("details", element("summary", "The diagram as a table"), made)
