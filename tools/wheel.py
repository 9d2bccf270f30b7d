"""Build a wheel, install it into an empty environment and run the fast tests there (`make wheel`).

    python tools/wheel.py                             built and tested with this interpreter
    python3.12 tools/wheel.py --try python3.13        built with 3.12, tested with 3.13

From Python 3.12 on the wheel has the stable ABI, so one wheel serves this and all later versions;
with Python 3.11 it is for 3.11 alone. The wheel goes to dist/. What is tested is the installed
package: the tests see neither src/ nor the environment of this project.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: The first version of Python with the parts of the stable ABI that the native module needs.
STABLE = (3, 12)


def run(command: list[str | Path], **options: object) -> str:
    """Run a command and return what it printed; its errors go where ours go."""
    done = subprocess.run(
        [str(part) for part in command], check=True, text=True, stdout=subprocess.PIPE, **options
    )
    return str(done.stdout)


def version_of(python: str) -> tuple[int, int]:
    """Return the version of an interpreter, such as (3, 12)."""
    printed = run([python, "-c", "import sys; print(*sys.version_info[:2])"])
    major, minor = map(int, printed.split())
    return major, minor


def expected_tag(version: tuple[int, int]) -> str:
    """Return the interpreter and ABI in the name of a wheel that this version builds."""
    if version >= STABLE:
        return "cp{}{}-abi3".format(*STABLE)
    return "cp{0}{1}-cp{0}{1}".format(*version)


def check_wheel(wheel: Path, version: tuple[int, int]) -> None:
    """Refuse a wheel whose name, version or contents are not what they should be.

    Raises
    ------
    ValueError
        With what was found and what was expected.
    """
    tag = expected_tag(version)
    if f"-{tag}-" not in wheel.name:
        raise ValueError(f"built {wheel.name}; expected a wheel with the tag {tag}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        meta = next(name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(meta).decode("utf-8"))
    if about["Version"] != project["version"]:
        found = about["Version"]
        raise ValueError(f"{wheel.name} is of version {found}; expected {project['version']}")
    native = [name for name in names if name.endswith(".so")]
    ending = r"\.abi3\.so" if version >= STABLE else r"\.cpython-.*\.so"
    if len(native) != 1 or not re.fullmatch(rf"maxmargin/_native{ending}", native[0]):
        raise ValueError(f"{wheel.name} has the native modules {native}; expected one, {ending}")
    for name in ("maxmargin/py.typed", "maxmargin/_native.pyi"):
        if name not in names:
            raise ValueError(f"{wheel.name} lacks {name}")


def build(python: str, folder: Path, output: Path) -> Path:
    """Build a wheel with an interpreter; pip makes an environment of its own for it."""
    environment = folder / "build"
    run([python, "-m", "venv", environment])
    fresh = folder / "fresh"
    options = ["--no-deps", "--disable-pip-version-check", "--quiet", "--wheel-dir", fresh]
    run([environment / "bin" / "python", "-m", "pip", "wheel", *options, ROOT])
    (built,) = fresh.glob("*.whl")
    check_wheel(built, version_of(python))
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(built, output))


def test(wheel: Path, python: str, folder: Path, workers: int) -> None:
    """Install a wheel into an empty environment and run the fast tests with it."""
    environment = folder / "test"
    run([python, "-m", "venv", "--clear", environment])
    inside = environment / "bin" / "python"
    quiet = ["--disable-pip-version-check", "--quiet"]
    run([inside, "-m", "pip", "install", *quiet, f"{wheel}[test]"])
    # From elsewhere: a folder called src or maxmargin in the working directory must not help.
    where = run([inside, "-c", "import maxmargin; print(maxmargin.__file__)"], cwd=folder)
    if not Path(where.strip()).is_relative_to(environment):
        raise ValueError(f"the tests would see {where.strip()} and not the installed package")
    run([inside, "-m", "maxmargin", "--version"], cwd=folder)
    command = [inside, "-m", "pytest", "-q", "-n", str(workers), "-m", "not slow and not data"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*map(str, command), "-p", "no:cacheprovider"], check=True, cwd=ROOT, env=clean)


def main() -> int:
    """Build and test; the exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="builds the wheel")
    parser.add_argument("--try", dest="others", action="append", help="tests it (repeatable)")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the wheel goes")
    parser.add_argument("--workers", type=int, default=2, help="test processes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maxmargin-wheel-") as temporary:
        try:
            wheel = build(args.python, Path(temporary), args.output)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
            for python in args.others or [args.python]:
                print("testing it with Python {}.{}".format(*version_of(python)), flush=True)
                test(wheel, python, Path(temporary), args.workers)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"wheel: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
