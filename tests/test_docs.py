"""The programs in the documents run, and print what the documents say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/compare.md",
    "docs/kernels.md",
    "docs/sparse.md",
    "docs/templates.md",
    "docs/writing_a_structure.md",
]

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXACT = re.compile(r"  # -> (.*)$")
ABOUT = re.compile(r"  # about (-?[\d.]+)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TOLERANCE = 0.06  # of a number that is said to be about something


def python_blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a document, each with the number of its first line."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


def expectations(block: str) -> list[tuple[str, str | float]]:
    """What the comments behind print calls promise, line by line."""
    found: list[tuple[str, str | float]] = []
    for line in block.splitlines():
        if exact := EXACT.search(line):
            found.append((line, exact.group(1)))
        elif about := ABOUT.search(line):
            found.append((line, float(about.group(1))))
    return found


def run_block(path: Path, first_line: int, block: str, scope: dict[str, object]) -> list[str]:
    # Line numbers in tracebacks are those of the document.
    code = compile("\n" * (first_line - 1) + block, str(path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, scope)
    return printed.getvalue().splitlines()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_programs_of_a_document(name: str) -> None:
    path = ROOT / name
    blocks = python_blocks(path.read_text(encoding="utf-8"))
    assert blocks, f"{name} has no Python in it"
    scope: dict[str, object] = {"__name__": "__document__"}
    for first_line, block in blocks:
        printed = run_block(path, first_line, block, scope)
        promised = expectations(block)
        assert len(printed) == len(promised), f"{name}, line {first_line}: printed {printed}"
        for (line, wanted), got in zip(promised, printed, strict=True):
            if isinstance(wanted, str):
                assert got == wanted, f"{name}: {line.strip()}"
            else:
                number = NUMBER.search(got)
                assert number is not None, f"{name}: {line.strip()} printed {got!r}"
                assert abs(float(number.group()) - wanted) <= TOLERANCE, f"{name}: {line.strip()}"


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=lambda p: p.name
)
def test_links_between_documents(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize(
    "path",
    [
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/errata.md")
    ],
    ids=lambda path: path.name,
)
def test_files_that_documents_name_exist(path: Path) -> None:
    for name in re.findall(
        r"`((?:native|src|tests|benchmarks|examples|docs)/[\w./*-]+)`", path.read_text("utf-8")
    ):
        assert any(ROOT.glob(name)), f"{path.name} names {name}"
