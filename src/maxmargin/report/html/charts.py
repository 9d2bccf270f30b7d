"""The charts of the page, as SVG that takes its colours from the page's style sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.report.html.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    frame,
    linear,
    log,
)
from maxmargin.report.html.markup import Markup, element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.report.html.content import Confidence
    from maxmargin.scores.calibration import Reliability
    from maxmargin.solvers import PassRecord

__all__ = [
    "gap_chart",
    "length_chart",
    "objective_chart",
    "reliability_chart",
    "score_chart",
]

#: Points of a line; of more, some are left out.
POINTS = 300


class Series(NamedTuple):
    """Points that are joined by a line.

    Attributes
    ----------
    name : str
        For the legend.
    kind : str
        The class of the style sheet.
    points : list of (float, float)
        Finite numbers.
    dots : bool
        Whether each point is drawn too.
    """

    name: str
    kind: str
    points: list[tuple[float, float]]
    dots: bool = False


def picture(title: str, about: str, body: Iterable[Markup], caption: str = "") -> Markup:
    """Return a chart with its title, a description for those who do not see it, and a caption.

    Parameters
    ----------
    title, about : str
        What it shows, and what is to be seen.
    body : iterable of Markup
        What is drawn.
    caption : str
        A sentence below it.
    """
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")  # titles of a page differ
    drawn = element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", about, id=f"{name}-desc"),
        body,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    head = element("figcaption", element("strong", title), " ", caption)
    return element("figure", head, drawn)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most `POINTS` of the points, the first and the last among them."""
    if len(points) <= POINTS:
        return list(points)
    which = np.unique(np.linspace(0, len(points) - 1, POINTS).round().astype(int))
    return [points[k] for k in which.tolist()]


def _lines(series: Iterable[Series], x: Axis, y: Axis) -> Iterable[Markup]:
    for one in series:
        points = _thinned(one.points)
        places = [f"{x.x(a):.1f} {y.y(b):.1f}" for a, b in points]
        if len(places) > 1:
            yield element("path", class_=f"line {one.kind}", d="M" + "L".join(places))
        if (one.dots and len(places) <= 60) or len(places) == 1:
            for place in places:
                cx, cy = place.split()
                yield element("circle", class_=f"dot {one.kind}", cx=cx, cy=cy, r=2.6)


def _legend(series: Sequence[Series]) -> Iterable[Markup]:
    """Name the lines, at the upper right, in their colours."""
    at: float = WIDTH - RIGHT
    for one in reversed(series):
        yield element("text", one.name, class_=f"name end ink-{one.kind}", x=at, y=TOP - 11)
        at -= 6.2 * len(one.name) + 14


def _finite(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in points if math.isfinite(a) and math.isfinite(b)]


def gap_chart(
    history: Sequence[PassRecord], gap: float | None, end: float, seconds: float | None
) -> Markup | None:
    """Draw the relative gap over time, on a logarithmic axis.

    Parameters
    ----------
    history : sequence of PassRecord
        The passes.
    gap : float or None
        The gap that was asked for.
    end : float
        That of the certificate.
    seconds : float or None
        When the model of the certificate was there; None: at the end.

    Returns
    -------
    Markup or None
        None if no pass knew its gap.
    """
    true = _finite((r.seconds, r.gap) for r in history if r.gap > 0)
    about = _finite((r.seconds, r.gap_estimate) for r in history if r.gap_estimate > 0)
    if not true and not about:
        return None
    series = [Series("estimate", "faint", about)] if about else []
    series += [Series("exact", "first", true, dots=True)] if true else []
    last = history[-1].seconds if seconds is None else seconds
    marks = [gap] if gap is not None and gap > 0 else []
    marks += [end] if end > 0 else []
    values = [b for one in series for _, b in one.points] + marks
    high = min(max(values), 10.0)
    y = log([max(min(values), high * 1e-12), high], percent=True)
    x = linear([a for one in series for a, _ in one.points] + [last], from_zero=True)
    body = [*frame(x, y, "seconds of training", "relative gap"), *_lines(series, x, y)]
    if gap is not None and gap > 0:
        at = y.y(gap)
        body.append(element("path", class_="asked", d=f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}"))
        body.append(
            element("text", "asked for", class_="tick", x=LEFT + 4, y=f"{at - 4:.1f}")
        )
    if end > 0:
        body.append(
            element("circle", class_="mark", cx=f"{x.x(last):.1f}", cy=f"{y.y(end):.1f}", r=4.5)
        )
    body += _legend(series)
    return picture(
        "Gap over time.",
        f"The relative duality gap falls over {len(history)} passes to {100 * end:.3g} percent.",
        body,
        "How far the model can be from the optimum, pass by pass; the ring is the certificate.",
    )


def objective_chart(history: Sequence[PassRecord]) -> Markup | None:
    """Draw primal and dual objective over time; None if a pass knows neither."""
    dual = _finite((r.seconds, r.dual) for r in history)
    primal = _finite((r.seconds, r.primal) for r in history)
    if len(dual) < 2 or not primal:
        return None
    # The first primals may be a hundred times the optimum: the picture is about the end.
    top = max(dual)[1]
    bound = max(b for _, b in dual)
    cap = max(2.5 * bound, min(b for _, b in primal))
    kept = [(a, b) for a, b in primal if b <= cap]
    series = [Series("dual", "second", dual), Series("primal", "first", kept, dots=True)]
    floor = [b for _, b in dual if b >= 0 or top < 0] or [top]
    y = linear([b for _, b in kept] + floor, from_zero=bound > 0)
    x = linear([r.seconds for r in history], from_zero=True)
    body = [*frame(x, y, "seconds of training", "objective"), *_lines(series, x, y)]
    body += _legend(series)
    return picture(
        "Objective over time.",
        f"The primal objective falls and the dual rises, to {kept[-1][1]:.6g} and {dual[-1][1]:.6g}"
        if kept
        else f"The dual objective rises to {dual[-1][1]:.6g}",
        body,
        "The optimum lies between the two curves.",
    )


def score_chart(
    history: Sequence[PassRecord], scores: Sequence[Mapping[str, Any]], best: int | None
) -> Markup | None:
    """Draw the score on the validation data over time.

    Parameters
    ----------
    history : sequence of PassRecord
        The passes.
    scores : sequence of dict
        ``pass`` with ``f1``, ``token_accuracy`` or ``score``.
    best : int or None
        The pass whose model was kept.

    Returns
    -------
    Markup or None
        None if fewer than two passes were scored.
    """
    when = {record.n_pass: record.seconds for record in history}
    name = next(
        (n for n in ("f1", "token_accuracy", "score") if scores and scores[0].get(n) is not None),
        None,
    )
    rows = [row for row in scores if row["pass"] in when]
    if name is None or len(rows) < 2:
        return None
    points = _finite((when[row["pass"]], 100 * row[name]) for row in rows)
    if len(points) < 2:
        return None
    called = {"f1": "F1", "token_accuracy": "accuracy", "score": "score"}[name]
    x = linear([a for a, _ in points], from_zero=True)
    y = linear([b for _, b in points])
    lines = _lines([Series(called, "first", points, dots=True)], x, y)
    body = [*frame(x, y, "seconds of training", f"{called} in %"), *lines]
    chosen = next((row for row in rows if row["pass"] == best), rows[-1])
    at = x.x(when[chosen["pass"]]), y.y(100 * chosen[name])
    body.append(element("circle", class_="mark", cx=f"{at[0]:.1f}", cy=f"{at[1]:.1f}", r=4.5))
    return picture(
        f"{called[0].upper()}{called[1:]} on the validation data over time.",
        f"From {points[0][1]:.2f} after the first pass to {100 * chosen[name]:.2f} percent.",
        body,
        "The ring is the pass whose model was kept.",
    )


def length_chart(lengths: NDArray[Any], what: str) -> Markup | None:
    """Draw how many sequences have how many tokens.

    Parameters
    ----------
    lengths : int array of shape (n_sequences,)
        Tokens of each.
    what : str
        Which data.

    Returns
    -------
    Markup or None
        None if all are of one length.
    """
    if len(lengths) == 0 or lengths.min() == lengths.max():
        return None
    high = int(np.quantile(lengths, 0.995, method="lower"))
    high = max(high, int(lengths.min()) + 1)
    width = max(1, math.ceil((high - int(lengths.min()) + 1) / 24))
    first = int(lengths.min())
    bins = np.minimum((lengths - first) // width, (high - first) // width)
    counts = np.bincount(bins)
    n_beyond = int((lengths > high).sum())
    x = linear([first, first + width * len(counts)])
    y = linear([0, float(counts.max())], n_ticks=4, from_zero=True)
    body = frame(x, y, "tokens of a sequence", "sequences")
    for k, n in enumerate(counts.tolist()):
        left, right = x.x(first + k * width), x.x(first + (k + 1) * width)
        top = y.y(n)
        body.append(
            element(
                "rect",
                class_="column",
                x=f"{left + 0.5:.1f}",
                y=f"{top:.1f}",
                width=f"{max(right - left - 1, 0.5):.1f}",
                height=f"{HEIGHT - BOTTOM - top:.1f}",
            )
        )
    beyond = f" The last column has {n_beyond} longer ones too." if n_beyond else ""
    return picture(
        f"Lengths of the {what}.",
        f"From {first} to {int(lengths.max())} tokens; half of the sequences have at most "
        f"{int(np.median(lengths))}.",
        body,
        f"Half of the sequences have at most {int(np.median(lengths))} tokens, the longest has "
        f"{int(lengths.max())}.{beyond}",
    )


def reliability_chart(found: Confidence) -> Markup:
    """Draw how often predictions are right, over how sure the model is of them.

    Parameters
    ----------
    found : Confidence
        Bins before and after calibration.

    Returns
    -------
    Markup
        The chart.
    """
    axis = Axis(0.0, 1.0, False, [(k / 5, f"{20 * k}") for k in range(6)])
    body = frame(axis, axis, "confidence in %", "right in %")
    corner = f"M{axis.x(0):.1f} {axis.y(0):.1f}L{axis.x(1):.1f} {axis.y(1):.1f}"
    body.append(element("path", class_="asked", d=corner))
    calibrated = found.temperature != 1
    if calibrated:
        body += _bins(found.before, axis, "faint")
    body += _bins(found.after, axis, "first")
    series = [Series("at temperature 1", "faint", [])] if calibrated else []
    series.append(Series("calibrated" if calibrated else "model", "first", []))
    body += _legend(series)
    return picture(
        "Reliability.",
        f"Share of right predictions in bins of confidence; the expected calibration error is "
        f"{found.after.error:.4f}.",
        body,
        "On the dashed line the model is right as often as it says; the larger a dot, the more "
        "predictions.",
    )


def _bins(found: Reliability, axis: Axis, kind: str) -> Iterable[Markup]:
    total = float(found.weight.sum())
    rows = zip(
        found.confidence.tolist(), found.accuracy.tolist(), found.weight.tolist(), strict=True
    )
    kept = [(p, right, weight) for p, right, weight in rows if weight > 0]
    places = [f"{axis.x(p):.1f} {axis.y(right):.1f}" for p, right, _ in kept]
    if len(places) > 1:
        yield element("path", class_=f"line thin {kind}", d="M" + "L".join(places))
    for p, right, weight in kept:
        yield element(
            "circle",
            class_=f"dot {kind}",
            cx=f"{axis.x(p):.1f}",
            cy=f"{axis.y(right):.1f}",
            r=f"{2 + 7 * math.sqrt(weight / total):.1f}",
        )
