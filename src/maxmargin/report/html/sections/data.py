"""What the model was trained and scored on."""

from __future__ import annotations

from maxmargin.report.html.charts import length_chart
from maxmargin.report.html.content import DataFacts
from maxmargin.report.html.markup import Markup, count, element, foreign, number, percent
from maxmargin.report.html.tables import Section, bar, beside, section, table

__all__ = ["data_section"]

#: Labels that are listed.
MOST = 30


def data_section(data: list[DataFacts]) -> Section | None:
    """Return sizes, lengths and labels of the data; None if nothing is known of them."""
    if not data:
        return None
    sizes = table(
        "Sequences and tokens",
        ["data", "file", "sequences", "tokens", "shortest", "mean", "longest"],
        [
            [
                part.what,
                foreign(part.source) if part.source else "\u2013",
                count(part.n_sequences),
                count(part.n_tokens),
                count(int(part.lengths.min())),
                number(float(part.lengths.mean()), 3),
                count(int(part.lengths.max())),
            ]
            for part in data
        ],
        left=2,
    )
    charts = [length_chart(part.lengths, part.what) for part in data]
    return section(
        "data",
        "Data",
        sizes,
        _labels(data),
        beside(charts) if any(charts) else None,
    )


def _labels(data: list[DataFacts]) -> Markup:
    """List the labels of the first data, with their numbers in all."""
    first = data[0]
    counts = [dict(part.labels) for part in data]
    names = [name for name, _ in first.labels]
    new = [name for part in data[1:] for name, _ in part.labels if name not in counts[0]]
    names += list(dict.fromkeys(new))
    most = max(n for _, n in first.labels)
    rows = []
    for name in names[:MOST]:
        n = counts[0].get(name, 0)
        cells = [foreign(name), bar(n / most), count(n), percent(n / first.n_tokens)]
        rows.append([*cells, *(count(other.get(name, 0)) for other in counts[1:])])
    heads = ["label", "", first.what, "share", *(part.what for part in data[1:])]
    rest = names[MOST:]
    made = table(f"Labels of the tokens ({len(names)})", heads, rows, left=2, kind="bars")
    more: list[Markup] = []
    if new:
        more.append(
            element(
                "p",
                f"{len(set(new))} of the labels do not occur in the training data, and cannot be "
                "predicted.",
            )
        )
    if rest:
        tokens = sum(counts[0].get(name, 0) for name in rest)
        more.append(element("p", f"{len(rest)} rarer labels have ", count(tokens), " tokens."))
    return element("div", made, more)
