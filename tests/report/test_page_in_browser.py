"""The page in a browser: on a telephone, in the dark, and printed; nothing is loaded."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from browser import browser, executable
from maxmargin import SequenceTagger

pytestmark = pytest.mark.skipif(
    executable() is None, reason="there is no Chromium (Debian's package chromium)"
)

LABELS = ["</script><b>x", "B-" + "long" * 40, "O", "\u05d0\u05d1", "I-x&y", '">'] + [
    f"label-{k}" for k in range(24)
]
#: The contrast of a text to the ground below it, as the accessibility guidelines compute it.
CONTRASTS = """
(() => {
  const rgb = c => c.match(/[0-9.]+/g).map(Number);
  const light = c => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92 :
    ((v + .055) / 1.055) ** 2.4 }; const [r, g, b] = rgb(c).map(f);
    return .2126 * r + .7152 * g + .0722 * b };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e)
    .backgroundColor); if (c.length < 4 || c[3] === 1) return `rgb(${c.slice(0, 3)})` }
    return getComputedStyle(document.documentElement).colorScheme };
  const chosen = ['h1', 'h2', '.about', 'p.lead', 'caption', 'thead th', 'tbody th', 'tbody td',
    '.cards dt', '.cards dd', 'figcaption', 'a', 'summary', '.labels ins', '.labels del',
    'footer p', '.note', 'code'];
  return chosen.map(s => { const e = document.querySelector(s); if (!e) return [s, 99];
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    return [s, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)] });
})()
"""
#: Elements that reach beyond the page and are in nothing that scrolls by itself.
TOO_WIDE = """
[...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll table') &&
  !e.closest('svg') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.outerHTML.slice(0, 100))
"""
#: Pairs of tables that lie over each other.
OVER_EACH_OTHER = """
(() => {
  const all = [...document.querySelectorAll('table')].map(e => [e, e.getBoundingClientRect()])
    .filter(([_, r]) => r.width);
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 &&
    b.top < a.bottom - 1;
  return all.flatMap(([e, r], i) => all.slice(i + 1).filter(([_, s]) => over(r, s))
    .map(([f, _]) => [e, f].map(t => t.innerText.slice(0, 40))));
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a page with everything on it, and labels that do their worst."""
    draw = np.random.default_rng(0)

    def data(n):
        X, y = [], []
        for _ in range(n):
            codes = draw.integers(len(LABELS), size=draw.integers(1, 15))
            noise = draw.random(len(codes)) < 0.25
            seen = np.where(noise, draw.integers(len(LABELS), size=len(codes)), codes)
            X.append([{"word": f"w{k}" if k else "W" * 120} for k in seen.tolist()])
            y.append([LABELS[k] for k in codes])
        return X, y

    train, dev = data(150), data(60)
    tagger = SequenceTagger(C=0.1, random_state=0).fit(*train, eval_set=dev)
    path = tmp_path_factory.mktemp("page") / "page.html"
    tagger.report(path, *dev, train=train, title="A report of <everything> " + "x" * 90)
    return path


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return a browser."""
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def requests(events):
    sent = [e for e in events if e.get("method") == "Network.requestWillBeSent"]
    return [e["params"]["request"]["url"] for e in sent]


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_loads_nothing_and_can_be_read(shown, page, width, dark):
    events = shown.open(page, width=width, dark=dark)
    assert requests(events) == [page.as_uri()]
    logged = [e for e in events if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")]
    assert logged == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate(TOO_WIDE) == []
    assert shown.evaluate("document.querySelectorAll('script, b, img').length") == 0
    poor = [(name, ratio) for name, ratio in shown.evaluate(CONTRASTS) if ratio < 4.5]
    assert poor == []


def test_open_details_fit_too(shown, page):
    shown.open(page, width=360)
    assert shown.evaluate("document.querySelectorAll('details').length") > 3
    shown.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    assert shown.evaluate(TOO_WIDE) == []


def test_dark_is_dark_and_charts_change_with_it(shown, page):
    def colours():
        return shown.evaluate(
            "[getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.querySelector('svg text')).fill, "
            "getComputedStyle(document.querySelector('path.line')).stroke]"
        )

    shown.open(page, dark=False)
    light = colours()
    shown.open(page, dark=True)
    dark = colours()
    assert all(a != b for a, b in zip(light, dark, strict=True))
    brightness = [sum(map(int, re.findall(r"\d+", rgb)[:3])) for rgb in (light[0], dark[0])]
    assert brightness[0] > 700
    assert brightness[1] < 120


def test_a_screenshot_has_the_width_of_the_telephone(shown, page):
    shown.open(page, width=360)
    picture = shown.screenshot()
    width, height = struct.unpack(">II", picture[16:24])
    assert width == 720  # two dots a pixel
    assert height > 5000


def test_tables_stand_apart_on_paper(shown, page):
    shown.open(page, width=717)  # A4 without its margins
    shown.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert shown.evaluate("document.querySelectorAll('.beside table').length") >= 2
    shown.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert shown.evaluate(OVER_EACH_OTHER) == []
    finally:
        shown.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is of poppler-utils")
def test_it_prints_on_white_with_all_that_is_folded(shown, page, tmp_path):
    shown.open(page, width=1000, dark=True)
    file = tmp_path / "page.pdf"
    file.write_bytes(shown.pdf())
    text = subprocess.run(
        ["pdftotext", "-layout", file, "-"], capture_output=True, text=True, check=True
    ).stdout
    for title in ("Certificate", "Scores", "Confusion", "Most costly errors", "Confidence", "Data"):
        assert re.search(rf"^[ \f]*{title}$", text, re.MULTILINE)
    version = int(re.findall(r"Chrome/(\d+)", shown.evaluate("navigator.userAgent"))[0])
    if version >= 131:  # the first that can show what is folded
        assert "Tokens by confidence of their labels" in text
    # Paper stays white although the reader's screen is dark: the corner of the page has no ink.
    command = ["pdftoppm", "-r", "20", "-f", "1", "-l", "1", file, tmp_path / "paper"]
    subprocess.run(command, check=True)
    picture = next(tmp_path.glob("paper*.ppm")).read_bytes()
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", picture)
    assert header is not None
    dots = np.frombuffer(picture[header.end() :], dtype=np.uint8)
    assert dots.reshape(-1, 3)[0].tolist() == [255, 255, 255]
    assert (dots > 240).mean() > 0.7
