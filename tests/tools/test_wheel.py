"""What `tools/wheel.py` says of a wheel; `make wheel` itself builds one."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest

import wheel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
GOOD = ("maxmargin/_native.abi3.so", "maxmargin/py.typed", "maxmargin/_native.pyi")


def made(
    folder: Path, names: tuple[str, ...] = GOOD, version: str = VERSION, tag: str = ""
) -> Path:
    path = folder / f"maxmargin-{version}-{tag or 'cp312-abi3'}-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"maxmargin-{version}.dist-info/METADATA", f"Version: {version}\n")
        for name in names:
            archive.writestr(name, "")
    return path


def test_tags() -> None:
    assert wheel.expected_tag((3, 11)) == "cp311-cp311"
    assert wheel.expected_tag((3, 12)) == wheel.expected_tag((3, 14)) == "cp312-abi3"


def test_a_good_wheel(tmp_path: Path) -> None:
    wheel.check_wheel(made(tmp_path), (3, 13))
    own = ("maxmargin/_native.cpython-311-x86_64-linux-gnu.so", *GOOD[1:])
    wheel.check_wheel(made(tmp_path, own, tag="cp311-cp311"), (3, 11))


@pytest.mark.parametrize(
    ("made_with", "message"),
    [
        ({"tag": "cp311-cp311"}, "expected a wheel with the tag cp312-abi3"),
        ({"version": "9.9"}, f"is of version 9.9; expected {VERSION}"),
        ({"names": GOOD[1:]}, r"native modules \[\]"),
        ({"names": (*GOOD, "maxmargin/_more.abi3.so")}, "expected one"),
        ({"names": GOOD[:2]}, "lacks maxmargin/_native.pyi"),
    ],
)
def test_bad_wheels(tmp_path: Path, made_with: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wheel.check_wheel(made(tmp_path, **made_with), (3, 12))


def test_version_is_in_one_place() -> None:
    for path in [ROOT / "CMakeLists.txt", *ROOT.glob("src/**/*.py"), ROOT / "docs" / "conf.py"]:
        assert VERSION not in path.read_text(encoding="utf-8"), path


def test_platforms_of_cibuildwheel() -> None:
    options = PROJECT["tool"]["cibuildwheel"]
    assert options["linux"]["archs"] == ["x86_64", "aarch64"]
    assert options["macos"]["archs"] == ["x86_64", "arm64"]
    stable = "cp{}{}-*".format(*wheel.STABLE)
    assert stable in options["build"]
    assert PROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == stable[:-2]
