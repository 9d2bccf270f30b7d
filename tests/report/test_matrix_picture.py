"""The picture of a substitution matrix."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from maxmargin.report.matrix_picture import matrix_picture, save_matrix_picture


def test_every_score_has_its_colour():
    picture = matrix_picture("AC<", [[2.0, 0.0, 1.0], [0.0, -2.0, 0.0], [1.0, 0.0, 0.0]], "a & b")
    root = ElementTree.fromstring(picture)
    cells = [e.get("fill") for e in root.iter() if e.tag.endswith("rect") and e.get("x")]
    assert len(cells) == 9
    assert (cells[0], cells[1], cells[4]) == ("#b2182b", "#ffffff", "#2166ac")
    red, green, blue = (int(cells[2][k : k + 2], 16) for k in (1, 3, 5))
    assert red > green
    assert red > blue
    assert "a &amp; b" in picture
    assert len(re.findall(">&lt;<", picture)) == 2


def test_zeros_and_files(tmp_path):
    path = tmp_path / "m.svg"
    save_matrix_picture(path, "AB", np.zeros((2, 2)))
    assert path.read_text().count("#ffffff") == 5
    with pytest.raises(ValueError, match="expected finite numbers for 3 letters"):
        matrix_picture("ABC", np.zeros((2, 2)))
    with pytest.raises(OSError, match="cannot write the picture"):
        save_matrix_picture(tmp_path / "no" / "m.svg", "A", [[1.0]])
