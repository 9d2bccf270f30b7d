"""The plot of a comparison: panels, lines at their places, axes, and files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from maxmargin.comparing import Comparison, Point, Reference, Run
from maxmargin.comparing.plot import FLOOR, draw_runs


def run(label: str, duals: list[float], errors: list[float | None], unit: float = 1.0) -> Run:
    points = [
        Point(k, "exact", k * unit, 10 * k, dual, None, error)
        for k, (dual, error) in enumerate(zip(duals, errors, strict=True), 1)
    ]
    return Run(label, label, tuple(points))


SCORED = Comparison(
    0.1,
    "L2()",
    10,
    Reference(100.0, 100.0),
    (
        run("fast", [50.0, 90.0, 99.0, 100.0], [0.4, 0.2, 0.1, 0.1]),
        run("slow", [10.0, 20.0, 60.0], [0.5, 0.4, 0.3], unit=100.0),
        Run("failed", "x", error="does not fit"),
    ),
)
PLAIN = replace(SCORED, runs=(run("only", [50.0, 99.0], [None, None]),))

SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def test_four_panels() -> None:
    pytest.importorskip("matplotlib")
    figure = draw_runs(SCORED.runs, SCORED.reference, "mine")
    panels = figure.axes
    assert len(panels) == 4
    assert [axes.get_xlabel() for axes in panels] == [
        "training time in seconds",
        "oracle calls",
    ] * 2
    assert [axes.get_ylabel() for axes in panels[::2]] == [
        "dual below the optimum, relative",
        "test error",
    ]
    for axes in panels:
        assert axes.get_xscale() == axes.get_yscale() == "log"
        assert [line.get_label() for line in axes.get_lines()] == ["fast", "slow"]
    fast, slow = panels[0].get_lines()
    assert list(fast.get_xdata()) == [1.0, 2.0, 3.0, 4.0]
    # At the reference itself there is no logarithm: it lies on the floor.
    assert list(fast.get_ydata()) == pytest.approx([0.5, 0.1, 0.01, FLOOR])
    assert list(slow.get_xdata()) == [100.0, 200.0, 300.0]
    assert list(slow.get_ydata()) == pytest.approx([0.9, 0.8, 0.4])
    assert list(panels[1].get_lines()[1].get_xdata()) == [10, 20, 30]
    assert list(panels[3].get_lines()[0].get_ydata()) == [0.4, 0.2, 0.1, 0.1]
    assert fast.get_linestyle() != slow.get_linestyle()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fast", "slow"]
    assert figure.get_suptitle() == "mine"


def test_two_panels_without_test_errors() -> None:
    pytest.importorskip("matplotlib")
    assert len(draw_runs(PLAIN.runs, PLAIN.reference, "").axes) == 2


def test_only_test_errors_without_an_optimum() -> None:
    pytest.importorskip("matplotlib")
    panels = draw_runs(SCORED.runs, None, "").axes
    assert [axes.get_ylabel() for axes in panels] == ["test error"] * 2


def test_errors_of_zero_have_a_linear_axis() -> None:
    pytest.importorskip("matplotlib")
    perfect = replace(SCORED, runs=(run("it", [50.0, 99.0], [0.1, 0.0]),))
    above, _, below, _ = draw_runs(perfect.runs, perfect.reference, "").axes
    assert above.get_yscale() == "log"
    assert below.get_yscale() == "linear"


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
def test_files(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"figure.{ending}"
    SCORED.plot(file)
    assert file.read_bytes().startswith(SIGNATURES[ending.lower()])
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_titles(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "figure.svg"
    for title, shown in ((None, "C = 0.1, L2(), 10 examples"), ("mine", "mine")):
        SCORED.plot(file, title)
        # Letters are drawn as shapes, and the text of each line is in a comment.
        assert f"<!-- {shown} -->" in file.read_text(encoding="utf-8")


def test_what_cannot_be_drawn_or_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("figure.jpg", "figure"):
        with pytest.raises(ValueError, match=r"does not end with one of \.png, \.svg, \.pdf"):
            SCORED.plot(tmp_path / name)
    with pytest.raises(ValueError, match="none made a pass"):
        replace(SCORED, runs=SCORED.runs[2:]).plot(tmp_path / "figure.png")
    with pytest.raises(ValueError, match="nothing to draw"):
        replace(PLAIN, reference=None).plot(tmp_path / "figure.png")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="cannot write the plot") as caught:
        SCORED.plot(tmp_path / "none" / "figure.png")
    assert caught.value.filename == str(tmp_path / "none" / "figure.png")


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[report\]'"):
        SCORED.plot(tmp_path / "figure.png")
