"""Pictures are what the endings of their names say, whoever draws them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli_files import refused, sentences, text, write
from maxmargin.report.endings import picture_format
from maxmargin.report.path_plot import plot_path


def test_formats():
    assert picture_format("a.svg") == "svg"
    assert picture_format(Path("dir.png/A.SVG")) == "svg"
    assert picture_format("a.PDF", ("png", "pdf")) == "pdf"
    assert picture_format(os.devnull) == "svg"


@pytest.mark.parametrize("name", ["p.png", "p.pdf", "p.jpeg", "p", "svg", "p.svg.gz", ".svg", ""])
def test_other_endings(name):
    with pytest.raises(ValueError, match=r" does not end with \.svg, the one format"):
        picture_format(name)
    with pytest.raises(ValueError, match=r" does not end with one of \.gif, \.bmp$"):
        picture_format(name, ("gif", "bmp"))


def test_the_library_refuses(tmp_path):
    table = [{"l1_ratio": 0.5, "C": 1.0, "n_nonzero": 3, "score": 0.5, "f1": None}]
    with pytest.raises(ValueError, match=r"p\.png does not end with \.svg"):
        plot_path(table, tmp_path / "p.png")
    assert not any(tmp_path.iterdir())


def test_the_command_line_refuses_before_any_work(capsys, tmp_path):
    data = write(tmp_path / "d.tsv", text(sentences(3)))
    model, plot = tmp_path / "m.mm", tmp_path / "p.png"
    for arguments in (
        ["path", data, "--valid", data, "-m", model, "--plot", plot], ["demo", "--picture", plot]
    ):
        assert f"{plot} does not end with .svg" in refused(capsys, *arguments)
    assert list(tmp_path.iterdir()) == [data]
