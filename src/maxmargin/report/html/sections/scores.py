"""How good the model is: scores by label and by type, and which labels are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.label_report import frequent_errors, label_averages
from maxmargin.metrics import ChunkScore, TagReport
from maxmargin.report.html.content import Content, Evaluation
from maxmargin.report.html.markup import Child, Markup, count, element, foreign, number, percent
from maxmargin.report.html.tables import Section, bar, beside, note, section, shade, table

__all__ = ["confusion_section", "scores_section"]

#: Rows of scores, labels of the matrix, and pairs of labels that are listed.
MOST, MATRIX, PAIRS = 40, 14, 12


def scores_section(content: Content) -> Section | None:
    """Return accuracies and scores by label; why there are none; None if nothing is known."""
    found = content.evaluation
    if found is None:
        if content.figures:
            return section("scores", "Scores", _other_figures(content))
        if content.no_scores:
            return section("scores", "Scores", note(content.no_scores))
        return None
    report = found.report
    rows: list[list[Child]] = [
        ["tokens right", percent(report.token_accuracy), count(report.n_tokens)],
        ["sequences right", percent(report.sequence_accuracy), count(report.n_sequences)],
    ]
    if report.has_chunks:
        rows += [
            ["chunks: precision", percent(report.precision), count(report.n_predicted_chunks)],
            ["chunks: recall", percent(report.recall), count(report.n_true_chunks)],
            ["chunks: F1", percent(report.f1), ""],
        ]
    means = label_averages(report)
    rows.append(["mean F1 of the labels", percent(means["macro_f1"]), count(len(report.per_label))])
    overall = table("Overall", ["score", "value", "of"], rows)
    types = _by_name("Chunks by type", "type", report.per_type) if report.has_chunks else None
    labels = _by_name("Tokens by label", "label", report.per_label)
    return section("scores", "Scores", where(found), overall, types, labels)


def where(found: Evaluation) -> Markup:
    """Say on which data the scores are."""
    source = [" (", foreign(found.source), ")"] if found.source else ""
    if found.on_training:
        return note(
            "These scores are on the ",
            element("strong", "training data"),
            source,
            ", which the model has seen: on new text it will be worse. Train with ",
            element("code", "--valid FILE"),
            " for scores that mean something.",
            kind="warning",
        )
    return element("p", "On data that the model was not trained on", source, ".")


def _other_figures(content: Content) -> Markup:
    rows: list[list[Child]] = []
    for name, value in content.figures.items():
        if isinstance(value, int) and not isinstance(value, bool):
            rows.append([name.replace("_", " "), count(value)])
        elif isinstance(value, float):
            rows.append([name.replace("_", " "), number(value, 6)])
    return table("Scores on the validation data", ["score", "value"], rows)


def _by_name(caption: str, head: str, scores: dict[str, ChunkScore]) -> Markup:
    """List scores, the most frequent name first."""
    order = sorted(scores.items(), key=lambda item: -item[1].n_true)
    rows: list[list[Child]] = [
        [
            foreign(name) if name else "(none)",
            bar(score.f1),
            *(percent(value, unit=False) for value in (score.f1, score.precision, score.recall)),
            count(score.n_true),
            count(score.n_predicted),
        ]
        for name, score in order[:MOST]
    ]
    made = table(
        caption,
        [head, "", "F1\u00a0%", "precision\u00a0%", "recall\u00a0%", "true", "predicted"],
        rows,
        left=2,
        kind="bars",
    )
    if len(order) > MOST:
        more = element("p", f"... and {len(order) - MOST} rarer ones.")
        return element("div", made, more)
    return made


def confusion_section(found: Evaluation) -> Section:
    """Return the matrix of confusions and the most frequent errors."""
    report = found.report
    errors = frequent_errors(report, PAIRS)
    if not errors:
        done = element("p", "No label was taken for another: all tokens are right.")
        return section("confusion", "Confusion", done)
    rows: list[list[Child]] = [
        [
            foreign(error["truth"]),
            foreign(error["predicted"]),
            count(error["count"]),
            percent(error["of_errors"]),
            percent(error["of_truth"]),
        ]
        for error in errors
    ]
    heads = ["truth", "predicted", "tokens", "of all errors", "of the truth"]
    listed = table("Most frequent confusions", heads, rows, left=2)
    both = beside(listed, _words(found.words))
    return section("confusion", "Confusion", _matrix(report), both)


def _matrix(report: TagReport) -> Markup:
    """Draw the labels with the most errors against each other, the others together."""
    counts = report.confusion
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
    there = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    chosen = there[np.lexsort((there, -wrong[there]))][:MATRIX]
    chosen = np.sort(chosen)
    rest = np.setdiff1d(there, chosen)
    groups = [np.array([k]) for k in chosen] + ([rest] if len(rest) else [])
    small = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
    names: list[Markup] = [foreign(report.labels[k], 24) for k in chosen]
    if len(rest):
        names.append(element("em", f"{len(rest)} others"))
    head = element(
        "tr",
        element("td", "truth \u2193 predicted \u2192", class_="corner"),
        [element("th", element("span", name), scope="col") for name in names],
    )
    body = []
    for i, name in enumerate(names):
        total = max(int(small[i].sum()), 1)
        cells: list[Child] = []
        for j in range(len(groups)):
            n = int(small[i, j])
            # An error of a tenth of a row is a large one; its shade shall be seen.
            share = n / total if i == j else min(1.0, 4 * n / total)
            kind = shade(share, "right" if i == j else "wrong")
            if i == j and len(groups[i]) > 1:  # right ones and wrong ones
                kind = None
            cells.append(element("td", count(n) if n else "\u00b7", class_=kind))
        body.append(element("tr", element("th", name, scope="row"), cells))
    caption = "Tokens by true and predicted label"
    if len(rest):
        caption += f"; the {len(chosen)} labels with the most errors, and all others together"
    made = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", body),
        class_="matrix",
    )
    return element("div", made, class_="scroll")


def _words(words: list[dict[str, Any]]) -> Markup | None:
    shown = [entry for entry in words if entry["token"]]
    if not shown:
        return None
    rows: list[list[Child]] = [
        [
            foreign(entry["token"], 40),
            foreign(entry["truth"]),
            foreign(entry["predicted"]),
            count(entry["count"]),
        ]
        for entry in shown
    ]
    heads = ["word", "truth", "predicted", "times"]
    return table("Words that are wrong most often", heads, rows, left=3)


