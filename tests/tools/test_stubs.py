"""The types of the native module are made from the module, and a difference is noticed."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

pytest.importorskip("nanobind", reason="a tool of the build, not of the tests of a wheel")
pytest.importorskip("ruff", reason="a tool of developers, not of the tests of a wheel")
import stubs


def rewritten(source: str, **types: dict[str, str]) -> str:
    tree = ast.parse(source)
    stubs.Rewriter({"attributes": {}, "parameters": {}, "returns": {}} | types).module(tree)
    return ast.unparse(tree)


def test_arrays_without_layout_and_generic_types_with_parameters():
    source = "def f(a: Annotated[NDArray[numpy.int8], dict(order=1)] | None, b: list) -> tuple: ..."
    wanted = "def f(a: NDArray[numpy.int8] | None, b: list[Any]) -> tuple[Any, ...]: ..."
    assert ast.dump(ast.parse(rewritten(source))) == ast.dump(ast.parse(wanted))


def test_types_that_the_bindings_do_not_tell():
    source = "class A:\n    def f(self, state: dict) -> object: ...\n    def g(self) -> object: ..."
    told = rewritten(source, parameters={"A.f.state": "dict[str, int]"}, returns={"A.f": "int"})
    assert "def f(self, state: dict[str, int]) -> int" in told
    assert "def g(self) -> Any" in told


def test_types_of_attributes():
    told = rewritten("n: int = 3\nclass A:\n    b: None = None", attributes={"A.b": "int | None"})
    assert told.splitlines() == ["n: int = 3", "", "class A:", "    b: int | None = None"]


def test_an_entry_that_matches_nothing():
    with pytest.raises(SystemExit, match=r"match nothing .*\[returns\] 'A.gone'"):
        rewritten("class A: ...", returns={"A.gone": "int"})


def test_a_difference_is_noticed(tmp_path, monkeypatch, capsys):
    # In a process of its own: other tests may have left attributes on classes of the module.
    checked = [sys.executable, stubs.__file__, "--check"]
    assert subprocess.run(checked, check=False).returncode == 0
    text = stubs.STUB.read_text(encoding="utf-8")
    old = "def checksum(data: Bytes, mapped: bool = False) -> int"
    assert old in text
    root, stub = tmp_path, tmp_path / "_native.pyi"
    new = text
    monkeypatch.setattr(stubs, "generate", lambda: new)
    monkeypatch.setattr(stubs, "ROOT", root)
    monkeypatch.setattr(stubs, "STUB", stub)
    stub.write_text(text.replace(old, old.replace("int", "float")), encoding="utf-8")
    assert stubs.main(["--check"]) == 1
    assert "make stubs" in capsys.readouterr().err
    # Types of another generator may differ, parameters may not.
    stub.write_text(stub.read_text("utf-8").replace("nanobind ", "nanobind 0."), encoding="utf-8")
    assert stubs.main(["--check"]) == 0
    stub.write_text(stub.read_text("utf-8").replace("checksum(data", "checksum(date"), "utf-8")
    assert stubs.main(["--check"]) == 1
