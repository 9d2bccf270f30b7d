"""The programs in the documents run, and print what the documents say."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from maxmargin.cli.main import main as maxmargin_command

ROOT = Path(__file__).parents[1]
#: Pages that have no programs in Python; every other page of docs/ is executed.
PROSE = {f"docs/{name}.md" for name in ("benchmarks", "errata", "index", "scope", "wheels")}
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]

#: Pages with commands of maxmargin in blocks without a language, and how many each has.
COMMANDS = {
    "README.md": 3,
    "docs/choosing.md": 7,
    "docs/classes.md": 4,
    "docs/coming_from.md": 18,
    "docs/confidences.md": 3,
    "docs/dependencies.md": 3,
    "docs/embeddings.md": 3,
    "docs/formulations.md": 1,
    "docs/priors.md": 2,
    "docs/quickstart.md": 3,
    "docs/report.md": 2,
    "docs/shell.md": 2,
    "docs/sparse.md": 4,
    "docs/structures.md": 3,
    "docs/taxonomy.md": 3,
    "docs/trees.md": 3,
}
CORPUS = """\
The DT B-NP
old JJ I-NP
dog NN I-NP
barks VBZ B-VP
. . O

Dogs NNS B-NP
chase VBP B-VP
a DT B-NP
cat NN I-NP
in IN B-PP
Rome NNP B-NP
. . O
"""
#: The same as dependency trees: word, tag, head, relation.
TREES = """\
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tchase\tchase\tVERB\tVBP\t_\t0\troot\t_\t_
3\ta\ta\tDET\tDT\t_\t4\tdet\t_\t_
4\tcat\tcat\tNOUN\tNN\t_\t2\tobj\t_\t_

"""
#: Two sentences as CRFsuite and SVM^hmm have them.
ITEMS = "D\tw=the\tcap\nN\tw=dog\nV\tw=barks:2\n\nN\tw=dogs\tcap\nV\tw=sleep\n\n"
NUMBERS = "1 qid:1 1:1 4:0.5\n2 qid:1 2:1\n1 qid:2 1:1\n3 qid:2 3:1\n"
NEWS = "sport\tthe team won a game\npolitics\ta vote of the house\n" * 4
PATHS = "rec/sport\tthe team won a game\ntalk/politics\ta vote of the house\n" * 4
BRACKETS = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n(S (NP (NNS dogs)) (VP (VBP bark)))\n"
#: What the commands of a page read beside or instead of the files that all pages have.
OWN_FILES = {
    "docs/classes.md": dict.fromkeys(["train.tsv", "dev.tsv", "test.tsv", "new.tsv"], NEWS),
    "docs/embeddings.md": {"vectors.txt": "dog 1 0.5\ncat 1.5 0\n"},
    "docs/taxonomy.md": dict.fromkeys(["train.txt", "test.txt", "new.txt"], PATHS),
    "docs/trees.md": {
        "train.mrg": BRACKETS,
        "test.mrg": BRACKETS,
        "sentences.txt": "the_DT dog_NN barks_VBZ\n",
    },
}

CPP = re.compile(r"^ *```cpp\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXACT = re.compile(r"  # -> (.*)$")
ABOUT = re.compile(r"  # about (-?\d+(?:\.(\d+))?)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class About(NamedTuple):
    """A number as a page says it; it is off by at most one unit of the last digit written."""

    value: float
    tolerance: float


def plain_blocks(text: str) -> list[list[str]]:
    """Return the lines of each block of a document that is fenced and names no language."""
    found: list[list[str]] = []
    fence: str | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            fence = line if fence is None else None
            if fence == "```":
                found.append([])
        elif fence == "```":
            found[-1].append(line)
    return found


def commands_of(name: str) -> list[str]:
    """Return the commands of maxmargin that a document shows."""
    text = (ROOT / name).read_text(encoding="utf-8")
    lines = [line for block in plain_blocks(text) for line in block]
    return [line.removeprefix("$ ") for line in lines if re.match(r"(\$ .*)?maxmargin ", line)]


def python_blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a document, each with the number of its first line."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


def expectations(block: str) -> list[tuple[str, str | About]]:
    """What the comments behind print calls promise, line by line."""
    found: list[tuple[str, str | About]] = []
    for line in block.splitlines():
        if exact := EXACT.search(line):
            found.append((line, exact.group(1)))
        elif about := ABOUT.search(line):
            digits = len(about.group(2) or "")
            found.append((line, About(float(about.group(1)), 10.0**-digits + 1e-9)))
    return found


def run_block(path: Path, first_line: int, block: str, scope: dict[str, object]) -> list[str]:
    # Line numbers in tracebacks are those of the document.
    code = compile("\n" * (first_line - 1) + block, str(path), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, scope)
    return printed.getvalue().splitlines()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the files that the pages speak of, filled with the same corpus."""
    for name in ("train.tsv", "dev.tsv", "test.tsv", "new.tsv"):
        columns = 2 if name == "new.tsv" else 3
        lines = ["\t".join(line.split()[:columns]) for line in CORPUS.splitlines()]
        data = "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
    for name in ("train.conllu", "dev.conllu", "test.conllu", "new.conllu"):
        (tmp_path / name).write_text(TREES, encoding="utf-8")
    for name in ("train.crfsuite", "test.crfsuite"):
        (tmp_path / name).write_text(ITEMS, encoding="utf-8")
    for name in ("train.dat", "test.dat"):
        (tmp_path / name).write_text(NUMBERS, encoding="utf-8")
    for name in ("template", "pattern"):
        (tmp_path / name).write_text("U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PAGES)
def test_programs_of_a_document(name: str) -> None:
    path = ROOT / name
    blocks = python_blocks(path.read_text(encoding="utf-8"))
    assert bool(blocks) == (name not in PROSE), f"{name}: {len(blocks)} blocks of Python"
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
                off = abs(float(number.group()) - wanted.value)
                assert off <= wanted.tolerance, f"{name}: {line.strip()} printed {got!r}"


@pytest.mark.parametrize("name", PAGES)
def test_quotations_of_native_code(name: str) -> None:
    """A block of C++ names its file and has lines of it in their order; dots stand for others."""
    for block in CPP.findall((ROOT / name).read_text(encoding="utf-8")):
        first, *lines = (line.strip() for line in block.strip().splitlines())
        source = iter((ROOT / first.removeprefix("// ")).read_text(encoding="utf-8").splitlines())
        for line in lines:
            found = line == "..." or any(line == there.strip() for there in source)
            assert found, f"{name} quotes what is not in {first}, or not there: {line}"


def run_in_shell(command: str, folder: Path) -> tuple[int, str]:
    """Run a command with a shell; return its exit code and what it wrote to standard error."""
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        cwd=folder,
        env=os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_document(
    name: str, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = commands_of(name)
    assert len(commands) == COMMANDS.get(name, 0)
    for file, text in OWN_FILES.get(name, {}).items():
        (files / file).write_text(text, encoding="utf-8")
    for command in commands:
        if re.search(r"[|<>]", command):  # needs a shell; a process for each would take a minute
            code, errors = run_in_shell(command, files)
        else:
            code = maxmargin_command(shlex.split(command)[1:])
            errors = capfd.readouterr().err
        assert code == 0, f"{name}: {command}: {errors}"


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=lambda p: p.name
)
def test_links_between_documents(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in target:
            continue
        there = path.parent / target if target else path
        assert there.exists(), f"{path.name} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{path.name} links to {target}#{anchor}"


@pytest.mark.parametrize(
    "path",
    [
        ROOT / name
        for name in [*PAGES, "CONTRIBUTING.md"]
    ],
    ids=lambda path: path.name,
)
def test_files_that_documents_name_exist(path: Path) -> None:
    folders = "native|src|tests|benchmarks|examples|docs|tools"
    for name in re.findall(rf"`((?:{folders})/[\w./*-]+)`", path.read_text("utf-8")):
        assert any(ROOT.glob(name)), f"{path.name} names {name}"
