"""The most costly errors, in context."""

from __future__ import annotations

from collections import Counter

from maxmargin.report.html.content import Costly, Evaluation, Shown
from maxmargin.report.html.markup import Markup, element, foreign, number
from maxmargin.report.html.tables import Section, section

__all__ = ["errors_section"]


def errors_section(found: Evaluation) -> Section | None:
    """Return the sequences whose predictions cost most; None if there are none."""
    if not found.costly:
        return None
    # The label that most tokens have is not written below each of them.
    labels = Counter({name: score.n_true for name, score in found.report.per_label.items()})
    common = labels.most_common(1)[0][0]
    if found.unsure:
        how = f"The cost is the loss: {found.unsure}."
    else:
        how = (
            "The cost is the loss of the prediction, plus by how much the model scores it above "
            "the truth: large where many labels are wrong, or where the model is sure of a wrong "
            "one."
        )
    about = element(
        "p",
        how,
        " Below wrong tokens the predicted label is struck out, with the true one behind it; the "
        "label ",
        foreign(common),
        " is not written where it is right.",
    )
    return section("errors", "Most costly errors", about, [_error(e, common) for e in found.costly])


def _error(error: Costly, common: str) -> Markup:
    above = error.cost - error.loss
    head = element(
        "h3",
        f"Sequence {error.sequence + 1} ",
        element(
            "small",
            f"{error.n_wrong} of {error.n_tokens} tokens wrong \u00b7 cost ",
            number(error.cost),
            f" = loss {error.loss:.4g} + {above:.4g}" if above > 0 else "",
        ),
    )
    tokens = [_token(token, common) for token in error.tokens]
    return element("article", head, element("p", tokens, class_="tokens"), class_="error")


def _token(token: Shown | None, common: str) -> Markup:
    if token is None:
        return element("span", "\u2026", class_="token")
    word = foreign(token.text, 40) if token.text else element("bdi", "\u25cb")
    if token.truth != token.predicted:
        labels = element(
            "span",
            element("del", foreign(token.predicted, 24)),
            " ",
            element("ins", foreign(token.truth, 24)),
            class_="labels",
        )
        return element("span", element("mark", word), " ", labels, class_="token bad")
    label = "" if token.truth == common else foreign(token.truth, 24)
    return element("span", word, " ", element("span", label, class_="labels"), class_="token")
