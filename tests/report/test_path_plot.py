"""The plot of a path: points at their places, labels, the mark, and files."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from maxmargin.report.path_plot import HEIGHT, WIDTH, draw_path, plot_path

SVG = "{http://www.w3.org/2000/svg}"


def row(l1_ratio: float, n_nonzero: int, score: float, C: float = 0.1) -> dict[str, Any]:
    return {"l1_ratio": l1_ratio, "C": C, "n_nonzero": n_nonzero, "score": score, "f1": score}


TABLE = [
    row(0.9, 300, 0.86),
    row(0.5, 1000, 0.88),
    row(0.1, 12000, 0.9),
    row(0.0, 100000, 0.901),
]


def of_kind(root: ElementTree.Element, name: str, kind: str) -> list[ElementTree.Element]:
    return [e for e in root.iter(f"{SVG}{name}") if e.get("class") == kind]


def places(root: ElementTree.Element, kind: str = "point") -> list[tuple[float, float]]:
    found = of_kind(root, "circle", kind)
    return [(float(e.get("cx", "nan")), float(e.get("cy", "nan"))) for e in found]


def test_points_labels_and_mark() -> None:
    root = ElementTree.fromstring(draw_path(TABLE, chosen=2).encode())
    points = places(root)
    assert len(points) == 4
    xs, ys = zip(*points, strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)  # better is higher
    # The axis is logarithmic: 300 to 1000 is to 1000 to 12000 as their logarithms are.
    wanted = math.log(1000 / 300) / math.log(12)
    assert (xs[1] - xs[0]) / (xs[2] - xs[1]) == pytest.approx(wanted, rel=0.01)
    assert [e.text for e in of_kind(root, "text", "ratio")] == ["0.9", "0.5", "0.1", "0"]
    assert places(root, "chosen") == [points[2]]
    ticks = [e.text for e in of_kind(root, "text", "x")]
    assert ticks == ["100", "1\u202f000", "10\u202f000", "100\u202f000"]
    levels = [float(e.text or "nan") for e in of_kind(root, "text", "y")]
    assert levels == sorted(levels)
    assert levels[0] <= 86
    assert levels[-1] >= 90.1
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == "F1 on the validation data over non-zero weights"
    assert places(ElementTree.fromstring(draw_path(TABLE).encode()), "chosen") == []


def test_accuracy_where_there_are_no_chunks() -> None:
    table = [{**entry, "f1": None} for entry in TABLE]
    assert "<title>accuracy on" in draw_path(table)


@pytest.mark.parametrize(
    "table",
    [
        [row(0.5, 1000, 0.9)],
        [row(0.5, 0, 0.0)],
        [row(0.5, 0, 0.0), row(0.4, 1, 1.0)],
        [row(0.5, 700, 0.9), row(0.4, 700, 0.9), row(0.3, 700, 0.9)],
        [row(0.5, 10**k, 0.99 + 1e-7 * k, C) for k in range(8) for C in (0.1, 1, 10)],
        [row(k / 20, 1000 + k, 0.9) for k in range(20)],
    ],
)
def test_everything_is_inside_and_labels_are_apart(table: list[dict[str, Any]]) -> None:
    root = ElementTree.fromstring(draw_path(table, chosen=0).encode())
    for x, y in places(root):
        assert 0 < x < WIDTH
        assert 0 < y < HEIGHT
    labels = [
        (float(e.get("x", "nan")), float(e.get("y", "nan")))
        for e in of_kind(root, "text", "ratio")
    ]
    assert len(labels) == len(table)
    for (x, y), (other, line) in itertools.combinations(labels, 2):
        assert abs(x - other) >= 33 or abs(y - line) >= 13
    for _, y in labels:
        assert y > 0
    assert len(of_kind(root, "text", "y")) <= 12
    assert len(of_kind(root, "text", "C")) == len({entry["C"] for entry in table})


def test_bad_tables() -> None:
    with pytest.raises(ValueError, match="no points"):
        draw_path([])
    with pytest.raises(ValueError, match="no score"):
        draw_path([{**TABLE[0], "score": None}])
    for chosen in (-1, 4):
        with pytest.raises(ValueError, match="expected 0 to 3"):
            draw_path(TABLE, chosen)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "path.svg"
    plot_path(TABLE, file, chosen=1)
    assert file.read_text("utf-8") == draw_path(TABLE, 1)
    with pytest.raises(OSError, match="cannot write the plot") as caught:
        plot_path(TABLE, tmp_path / "none" / "path.svg")
    assert caught.value.filename == str(tmp_path / "none" / "path.svg")
    assert [entry.name for entry in tmp_path.iterdir()] == ["path.svg"]
