"""What is shipped is whole, and nothing of one machine is in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(__file__).parents[1]

# Put together here, so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:" + "|".join(["work", "root", "home", "Users"]) + r")/")
INDEX_ADDRESS = re.compile(
    "|".join(
        [
            r"--(?:extra-)?index" + "-url",
            r"https?://[^\s\"')]*/sim" + "ple",
            r"^\s*(?:extra-)?index" + r"-url\s*=",
            "PIP_" + "INDEX",
        ]
    ),
    re.MULTILINE,
)
LARGEST = 2_000_000  # bytes of a file that is looked into


def repository_files() -> list[Path]:
    """All files of the repository that are or could be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not in a git repository")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def test_no_machine_paths_or_package_indexes() -> None:
    found = []
    for file in repository_files():
        if file.stat().st_size > LARGEST:
            continue
        text = file.read_bytes().decode("utf-8", errors="replace")
        for pattern in (MACHINE_PATH, INDEX_ADDRESS):
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{file.relative_to(ROOT)}:{line}: {match.group()}")
    assert not found, "\n".join(found)


def test_typing_marker_and_stub_are_shipped() -> None:
    package = resources.files("maxmargin")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("_native.pyi").is_file()


def test_version() -> None:
    assert maxmargin.__version__ == metadata.version("maxmargin")


def test_metadata() -> None:
    about = metadata.metadata("maxmargin")
    assert about["License-Expression"] == "BSD-3-Clause"
    assert about["Requires-Python"] == ">=3.11"


def test_public_names_exist() -> None:
    for name in maxmargin.__all__:
        assert getattr(maxmargin, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = maxmargin.no_such_name


def test_native_extension() -> None:
    from maxmargin import _native

    assert _native.vector_code_name() in ("avx2", "baseline")


def run_python(program: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_import_is_light() -> None:
    heavy = run_python(
        "import sys, maxmargin; "
        "print(*[m for m in ('sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    assert heavy == ""


def test_package_imports_from_anywhere(tmp_path: Path) -> None:
    program = "import maxmargin; print(maxmargin.SequenceTagger.__name__)"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "SequenceTagger"


@pytest.mark.parametrize("name", [".ci/run"])
def test_scripts_are_executable(name: str) -> None:
    assert (ROOT / name).stat().st_mode & 0o111


def test_what_tests_may_lack_is_installed_for_them():
    """Nothing is skipped where the package was installed with its development tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    told = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in ("dev", "report", "test"):  # the first names the others
        told += project["project"]["optional-dependencies"][extra]
    installed = {re.match(r"[\w-]+", requirement).group() for requirement in told}
    modules = {"sklearn": "scikit-learn"}
    for path in (ROOT / "tests").rglob("*.py"):
        for name in re.findall(r"importorskip\(\"(\w+)", path.read_text(encoding="utf-8")):
            assert modules.get(name, name) in installed, f"{path.name} needs {name}"
