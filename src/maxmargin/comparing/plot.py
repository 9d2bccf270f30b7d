"""The plot of a comparison of solvers, as Figures 1 to 4 of the SDM paper have it.

Above, how far each dual is below the optimum; below, where test errors were recorded, the test
error; on the left against training time, on the right against oracle calls. All axes are
logarithmic, except that of test errors if one of them is zero.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.comparing.records import measure_of
from maxmargin.report.endings import picture_format
from maxmargin.report.files import save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from maxmargin.comparing.records import Reference, Run

__all__ = ["FORMATS", "draw_runs", "plot_runs"]

#: The endings of files that can be written.
FORMATS = ("png", "svg", "pdf")

#: A dual at or above the reference, which a logarithmic axis cannot show, is drawn at this height.
FLOOR = 1e-6

ACROSS = {"seconds": "training time in seconds", "oracle_calls": "oracle calls"}
UP = {"dual": "dual below the optimum, relative", "test_error": "test error"}
PANEL = (5.2, 3.6)  # inches
FEW_DECADES = 100.0  # from one end of the axis to the other
MARKED = 40  # a run with at most so many points has a mark at each
STYLES = ("-", "--", "-.", ":")  # lines differ in grey print, too


def plot_runs(
    runs: Sequence[Run], reference: Reference | None, path: str | os.PathLike[str], title: str
) -> None:
    """Write the picture that `draw_runs` draws, as a whole or not at all.

    Parameters
    ----------
    runs, reference, title
        As for `draw_runs`.
    path : path-like
        The file, replaced if it exists; its ending says which of `FORMATS` it is.

    Raises
    ------
    ValueError
        If the ending is another one, or there is nothing to draw.
    ImportError
        Without matplotlib.
    OSError
        If the file cannot be written; its message and ``filename`` name it.
    """
    ending = picture_format(path, FORMATS)
    figure = draw_runs(runs, reference, title)
    content = io.BytesIO()
    # Without the date: the same comparison gives the same file.
    no_date = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(content, format=ending, dpi=150, metadata=no_date[ending])
    save_picture(path, content.getvalue(), "plot")


def draw_runs(runs: Sequence[Run], reference: Reference | None, title: str) -> Figure:
    """Draw the runs of a comparison.

    Parameters
    ----------
    runs : sequence of Run
        What each solver did; those without a point are left out.
    reference : Reference or None
        The optimum; None: only test errors are drawn.
    title : str
        A line above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, or four with test errors.

    Raises
    ------
    ValueError
        If no run got as far as its first pass.
    ImportError
        Without matplotlib.
    """
    figure_type = _matplotlib_figure()
    runs = [run for run in runs if run.points]
    if not runs:
        raise ValueError("the comparison has no run that could be drawn: none made a pass")
    scored = any(point.test_error is not None for run in runs for point in run.points)
    measures = [*(["dual"] if reference else []), *(["test_error"] if scored else [])]
    if not measures:
        raise ValueError("the comparison has no optimum and no test errors; nothing to draw")
    width, height = PANEL
    size = (2 * width, len(measures) * height + 0.4)
    figure: Figure = figure_type(figsize=size, layout="constrained")
    grid = figure.subplots(len(measures), 2, squeeze=False)
    for line, measure in zip(grid, measures, strict=True):
        for axes, across in zip(line, ACROSS, strict=True):
            _panel(axes, runs, reference, across, measure)
    lines, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=min(len(labels), 3))
    figure.suptitle(title)
    return figure


def _ticks(axes: Axes, across: str) -> None:
    """Label the axis below with short numbers: by decades, or more closely where there are few."""
    from matplotlib import ticker

    low, high = axes.get_xlim()
    steps = (1.0,) if high > FEW_DECADES * low else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=steps))
    thousands = ticker.EngFormatter(sep="\u202f")
    plain = ticker.StrMethodFormatter("{x:g}")
    axes.xaxis.set_major_formatter(thousands if across == "oracle_calls" else plain)
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def _panel(
    axes: Axes, runs: Sequence[Run], reference: Reference | None, across: str, measure: str
) -> None:
    """Draw the lines of all runs in one panel."""
    from matplotlib import ticker

    heights: list[float] = []
    for k, run in enumerate(runs):
        places = [(getattr(p, across), measure_of(p, measure, reference)) for p in run.points]
        # A logarithmic axis has no place for a time or a number of calls of 0.
        known = [(x, y) for x, y in places if y is not None and x > 0]
        if measure == "dual":
            known = [(x, max(y, FLOOR)) for x, y in known]
        heights += [y for _, y in known]
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            STYLES[k % len(STYLES)],
            marker="." if len(known) <= MARKED else None,
            label=run.label,
        )
    axes.set_xscale("log")
    _ticks(axes, across)
    if heights and min(heights) > 0:
        axes.set_yscale("log")
    if measure == "test_error":
        axes.yaxis.set_major_locator(ticker.MaxNLocator(6))
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(xmax=1))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel(ACROSS[across])
    axes.set_ylabel(UP[measure])
    axes.grid(visible=True, which="major", color="#e3e5e8")


def _matplotlib_figure() -> Any:
    """Return matplotlib's figure, which needs no display and leaves no state behind."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plots of comparisons need matplotlib: pip install 'maxmargin[report]'"
        ) from error
    return Figure
