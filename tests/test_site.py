"""The documentation site: everything is in its navigation, and it builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(__file__).parents[1]
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^\.\. auto(class|function|exception|data):: ([\w.]+)$", re.MULTILINE)


def entries(page: Path) -> list[Path]:
    """Return the files that the lists of a page name, as Sphinx finds them."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        lines = [line for block in TOCTREE.findall(text) for line in block.splitlines()]
    else:
        lines = [line.strip() for line in text.split(".. toctree::")[1].splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    found = []
    for name in names:
        there = [(page.parent / f"{name}{ending}").resolve() for ending in (".md", ".rst")]
        exists = [path for path in there if path.exists()]
        assert exists, f"{page.name} lists {name}, which there is not"
        found.append(exists[0])
    return found


def test_all_pages_are_in_the_navigation() -> None:
    index = ROOT / "docs" / "index.md"
    listed = entries(index)
    reference = entries(ROOT / "docs" / "api" / "index.rst")
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), ROOT / "docs" / "api" / "index.rst"]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(pages) - {index}
    assert set(reference) == set(ROOT.glob("docs/api/*.rst")) - {ROOT / "docs/api/index.rst"}


def test_all_pages_are_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((docs/\w+\.md)[)#]", text))
    pages = {f"docs/{path.name}" for path in ROOT.glob("docs/*.md")}
    assert linked == pages - {"docs/index.md"}


def test_all_public_names_are_in_the_reference() -> None:
    documented: dict[str, str] = {}
    for page in sorted(ROOT.glob("docs/api/*.rst")):
        for kind, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            short = name.removeprefix("maxmargin.")
            assert short not in documented, f"{name} is in {documented[short]} and {page.name}"
            documented[short] = page.name
            value = getattr(maxmargin, short, None)
            if isinstance(value, type):
                assert kind == ("exception" if issubclass(value, Exception) else "class"), name
    missing = set(maxmargin.__all__) - {"__version__"} - set(documented)
    assert not missing, f"not in docs/api/: {', '.join(sorted(missing))}"


@pytest.mark.slow
def test_site_builds_strictly(tmp_path: Path) -> None:
    """As `make docs` does, but the pages are not written, which saves a third of the time."""
    for module in ("sphinx", "myst_parser", "numpydoc", "furo"):
        pytest.importorskip(module)
    options = ["-q", "-W", "--keep-going", "-n", "-E", "-b", "dummy", "-c", "docs"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "-d", str(tmp_path), ".", str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_pages_need_no_network() -> None:
    """No font, script or picture from elsewhere is asked for by what we add to the theme."""
    for path in [*ROOT.glob("docs/*.py"), *ROOT.glob("docs/static/*"), *ROOT.glob("docs/extra/*")]:
        text = re.sub(r"^\s*#.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
        # The name space of SVG is a name: nothing is fetched from there.
        assert "//" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
