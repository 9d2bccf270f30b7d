"""The picture of the demo is well-formed, whole, and shows what was read."""

from __future__ import annotations

import base64
import errno
import os
import struct
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from maxmargin.demo import Comparison, Reading
from maxmargin.report import dates_picture
from maxmargin.report.dates_picture import choose_dates, draw_dates, png_bytes, write_picture
from maxmargin.solvers import Certificate

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
PREFIX = "data:image/png;base64,"

TRUTH = ["01021903", "15061987", "31121999", "07101933", "22051944"]
#         both right  only chain  only single both wrong  only chain, one digit
SINGLE = ["01021903", "75061981", "31121999", "97101933", "22051444"]
CHAIN = ["01021903", "15061987", "11121999", "07101938", "22051944"]


def digits(rows: list[str]) -> NDArray[np.int64]:
    return np.array([[int(c) for c in row] for row in rows], dtype=np.int64)


def make(
    scans: str = "Scans",
    truth: list[str] = TRUTH,
    single: list[str] = SINGLE,
    chain: list[str] = CHAIN,
) -> Comparison:
    rng = np.random.default_rng(0)
    return Comparison(
        scans=scans,
        n_train=7,
        images=[rng.random((8, 64), dtype=np.float32) for _ in truth],
        truth=digits(truth),
        single=Reading(digits(single), 0.5, Certificate(2.0, 1.5, 0.1, 56)),
        chain=Reading(digits(chain), 0.25, Certificate(4.0, 3.9, 0.1, 7)),
    )


def decode_png(data: bytes) -> NDArray[np.uint8]:
    """Decode what `png_bytes` may write, checking every chunk."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + size]
        assert data[at + 8 + size : at + 12 + size] == struct.pack(">I", zlib.crc32(body))
        chunks.append((body[:4], body[4:]))
        at += 12 + size
    assert [name for name, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert rest == [8, 0, 0, 0, 0]  # eight bits, grey, nothing special
    rows = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()  # no filters
    return rows[:, 1:]


def texts(element: ElementTree.Element, kind: str) -> list[str]:
    return [t.text or "" for t in element.iter(f"{SVG}text") if t.get("class") == kind]


# --- PNG ---


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (3, 17)])
def test_png_round_trip(shape: tuple[int, int]) -> None:
    grey = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(decode_png(png_bytes(grey)), grey)
    np.testing.assert_array_equal(decode_png(png_bytes(grey.T)), grey.T)  # any memory order


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 2)), np.zeros(4, np.uint8), np.zeros((0, 3), np.uint8)]
)
def test_png_of_something_else(wrong: NDArray[np.uint8]) -> None:
    with pytest.raises(ValueError, match="a grey image is a uint8 array with two axes; got"):
        png_bytes(wrong)


# --- what is drawn ---


def test_choice() -> None:
    comparison = make()
    assert choose_dates(comparison, 0) == []
    assert choose_dates(comparison, 1) == [4]  # one wrong digit before two
    assert choose_dates(comparison, 2) == [4, 0]
    assert choose_dates(comparison, 3) == [4, 1, 0]
    assert choose_dates(comparison, 9) == [4, 1, 0, 2, 3]
    nothing_gained = make(single=CHAIN)
    assert choose_dates(nothing_gained, 3) == [0, 1, 2]


def test_images() -> None:
    comparison = make()
    root = ElementTree.fromstring(draw_dates([comparison, comparison]).encode())
    images = list(root.iter(f"{SVG}image"))
    assert len(images) == 2 * 3 * 8
    expected = np.concatenate([comparison.images[i] for i in (4, 1, 0)] * 2)
    for image, pixels in zip(images, expected, strict=True):
        address = image.get(HREF, "")
        assert address.startswith(PREFIX)
        dots = decode_png(base64.b64decode(address.removeprefix(PREFIX), validate=True))
        size = dots.shape[0] // 8
        grey = dots[size // 2 :: size, size // 2 :: size]
        np.testing.assert_array_equal(np.kron(grey, np.ones((size, size), np.uint8)), dots)
        np.testing.assert_allclose(grey, 255 * (1 - pixels.reshape(8, 8)), atol=0.51)


def test_pixels_out_of_range_are_black_or_white() -> None:
    comparison = make()
    comparison.images[4][:] = np.where(comparison.images[4] > 0.5, 3.0, -2.0)
    root = ElementTree.fromstring(draw_dates([comparison], 1).encode())
    for image in root.iter(f"{SVG}image"):
        dots = decode_png(base64.b64decode(image.get(HREF, "").removeprefix(PREFIX)))
        assert set(np.unique(dots)) == {0, 255}


def test_readings() -> None:
    comparison = make()
    root = ElementTree.fromstring(draw_dates([comparison], 5).encode())
    dates = [g for g in root.iter(f"{SVG}g") if g.get("class") == "date"]
    assert len(dates) == 5
    for date, i in zip(dates, (4, 1, 0, 2, 3), strict=True):
        marks = [t for t in date.iter(f"{SVG}text") if t.get("class")]
        read = "".join(t.text or "" for t in marks)
        assert read == TRUTH[i] + SINGLE[i] + CHAIN[i]
        assert [t.get("class") for t in marks[:8]] == ["truth"] * 8
        for mark, digit, true in zip(marks[8:], SINGLE[i] + CHAIN[i], 2 * TRUTH[i], strict=True):
            wrong = digit != true
            assert mark.get("class") == ("wrong" if wrong else "right")
            assert mark.get("font-weight") == ("bold" if wrong else "normal")
            assert (mark.get("fill") == dates_picture.WRONG) == wrong
    # Below each image stand its readings.
    centers = [
        float(image.get("x", "")) + float(image.get("width", "")) / 2
        for image in dates[0].iter(f"{SVG}image")
    ]
    marks = [t for t in dates[0].iter(f"{SVG}text") if t.get("class")]
    assert [float(t.get("x", "")) for t in marks] == 3 * centers


def test_words_and_numbers() -> None:
    text = draw_dates([make("Clean <scans> & more"), make("Bad")])
    root = ElementTree.fromstring(text.encode())
    assert texts(root, "rate") == ["90.0 %", "40.0 %", "95.0 %", "60.0 %"] * 2
    certificates = texts(root, "certificate")
    assert certificates == [
        "Clean <scans> & more: primal 4, dual 3.9: within 2.5 % of the optimum (C = 0.1)",
        "Bad: primal 4, dual 3.9: within 2.5 % of the optimum (C = 0.1)",
    ]
    said = [t.text for t in root.iter(f"{SVG}text")]
    assert "7 dates to learn from, 5 to read;" in said
    assert "22 May 1944" in said
    assert "2 wrong, no such day" in said  # 75.06.1981
    assert root.find(f"{SVG}title") is not None


def test_everything_lies_within_the_picture() -> None:
    root = ElementTree.fromstring(draw_dates([make(), make()], 5).encode())
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"
    for element in root.iter():
        if element.get("y") is not None:
            right = float(element.get("x", "")) + float(element.get("width", "0"))
            bottom = float(element.get("y", "")) + float(element.get("height", "0"))
            assert 0 <= right <= width
            assert 0 <= bottom <= height


def test_nothing_is_loaded_from_elsewhere() -> None:
    root = ElementTree.fromstring(draw_dates([make()]).encode())
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in {
            "svg",
            "title",
            "rect",
            "path",
            "g",
            "text",
            "image",
        }
        for name, value in element.attrib.items():
            assert "href" not in name or value.startswith(PREFIX)


# --- the file ---


def test_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "dates.svg"
    target.write_text("old")
    write_picture(target, [make()])
    assert target.read_text(encoding="utf-8") == draw_dates([make()])
    assert list(tmp_path.iterdir()) == [target]
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode  # others may read it, if the umask says so


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.svg", tmp_path / "there" / "dates.svg"
    link.symlink_to(target)
    write_picture(link, [make()])
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").endswith("</svg>\n")


def test_a_device_stays_a_device() -> None:
    write_picture(os.devnull, [make()])
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("missing/dates.svg", FileNotFoundError),
        ("file/dates.svg", NotADirectoryError),
        ("directory", IsADirectoryError),
    ],
)
def test_no_such_place(tmp_path: Path, place: str, error: type[OSError]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with pytest.raises(error, match="cannot write the picture") as caught:
        write_picture(str(tmp_path / place), [make()])
    assert caught.value.filename == str(tmp_path / place)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["directory", "file"]


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere"
)
def test_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="cannot write the picture"):
            write_picture(tmp_path / "dates.svg", [make()])
    finally:
        tmp_path.chmod(0o700)


def test_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "dates.svg"
    target.write_text("old")

    def full(path: str, other: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="cannot write the picture") as caught:
        write_picture(target, [make()])
    assert caught.value.errno == errno.ENOSPC
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
