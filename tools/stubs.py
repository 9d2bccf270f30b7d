"""Write src/maxmargin/_native.pyi, the types of the native module, or check that it is up to date.

    python tools/stubs.py            writes the file (`make stubs`)
    python tools/stubs.py --check    exit code 1 if it would change (`make lint`)

nanobind's stub generator reads the installed module. Its output is made fit for people and for
`mypy --strict`: arrays without their layout, no docstrings (``help`` has them), generic types with
parameters, and the return types that native/stubs.toml adds. Only the meaning is compared, so that
the formatter's version does not matter. Another version of nanobind may write types in another way:
then only names and parameters are compared.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nanobind
from nanobind.stubgen import StubGen

ROOT = Path(__file__).parents[1]
MODULE = "maxmargin._native"
STUB = ROOT / "src" / "maxmargin" / "_native.pyi"
TYPES = ROOT / "native" / "stubs.toml"
TITLE = "Types of the native module. Made by `make stubs` with nanobind {}; do not edit."

#: Generic types that nanobind writes without parameters.
BARE = {"tuple": "tuple[Any, ...]", "list": "list[Any]", "dict": "dict[Any, Any]"}


def expression(text: str) -> ast.expr:
    """Return the expression that a text is."""
    return ast.parse(text, mode="eval").body


class Plain(ast.NodeTransformer):
    """Make a type plain: arrays without layout, bare generic types with parameters."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Reduce ``Annotated[type, ...]`` to the type; other subscripts stay as they are."""
        name = ast.unparse(node.value)
        if name == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return self.visit(node.slice.elts[0])
        node.slice = self.visit(node.slice)  # node.value stays: a generic type with parameters
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Give a bare generic type parameters."""
        return expression(BARE[node.id]) if node.id in BARE else node


class Rewriter:
    """Rewrites the generator's functions, with the types of native/stubs.toml."""

    def __init__(self, types: dict[str, dict[str, str]]) -> None:
        self.parameters, self.returns = types["parameters"], types["returns"]
        self.attributes = types["attributes"]
        self.used: set[tuple[str, str]] = set()

    def attribute(self, node: ast.AnnAssign, place: str) -> None:
        """Rewrite the type of a constant or of a class attribute."""
        name = f"{place}{ast.unparse(node.target)}"
        if name in self.attributes:
            node.annotation = expression(self.attributes[name])
            self.used.add(("attributes", name))
        else:
            node.annotation = Plain().visit(node.annotation)

    def function(self, node: ast.FunctionDef, place: str) -> None:
        """Rewrite the annotations of a function; ``place`` is "Class." or nothing."""
        name = f"{place}{node.name}"
        for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            key = f"{name}.{parameter.arg}"
            if key in self.parameters:
                parameter.annotation = expression(self.parameters[key])
                self.used.add(("parameters", key))
            elif parameter.annotation is not None:
                parameter.annotation = Plain().visit(parameter.annotation)
        if name in self.returns:
            node.returns = expression(self.returns[name])
            self.used.add(("returns", name))
        elif node.returns is not None:
            told = ast.unparse(node.returns)
            node.returns = expression("Any") if told == "object" else Plain().visit(node.returns)
        if node.name in {"__contains__", "__eq__"}:  # as the base class has them
            node.args.args[1].annotation = expression("object")

    def module(self, tree: ast.Module) -> None:
        """Rewrite everything in place."""
        places: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
        places += [(f"{c.name}.", c.body) for c in tree.body if isinstance(c, ast.ClassDef)]
        for place, body in places:
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    self.function(node, place)
                elif isinstance(node, ast.AnnAssign):
                    self.attribute(node, place)
        tables = {
            "attributes": self.attributes,
            "parameters": self.parameters,
            "returns": self.returns,
        }
        wanted = {(table, key) for table, keys in tables.items() for key in keys}
        if idle := sorted(wanted - self.used):
            names = ", ".join(f"[{table}] {key!r}" for table, key in idle)
            raise SystemExit(f"{TYPES.name}: entries that match nothing in {MODULE}: {names}")


def generate() -> str:
    """Return the text of the stub, formatted."""
    types: dict[str, dict[str, str]] = tomllib.loads(TYPES.read_text(encoding="utf-8"))
    generator = StubGen(importlib.import_module(MODULE), include_docstrings=False, quiet=True)
    generator.put(generator.module)
    tree = ast.parse(generator.get())
    Rewriter(types).module(tree)
    body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    written = ast.unparse(ast.Module(body=body, type_ignores=[]))
    imports = ["import numpy", "from numpy.typing import NDArray"]
    if "Sequence" in written:
        imports.append("from collections.abc import Sequence")
    imports.append("from typing import Any, TypeAlias, overload")
    names = [f"{name}: TypeAlias = {type_}" for name, type_ in types["names"].items()]
    title = f'"""{TITLE.format(nanobind.__version__)}"""'
    text = "\n".join([title, *imports, *names, written, ""])
    return ruff(ruff(text, "check", "--select", "I", "--fix", "--quiet"), "format")


def ruff(text: str, *command: str) -> str:
    """Return what ruff makes of a stub."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"],
        input=text, capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip


def meaning(text: str, types: bool) -> list[Any]:
    """Return what a stub says, without its layout; ``types`` tells whether annotations count."""
    tree = ast.parse(text)
    if not types:
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = None
            elif isinstance(node, ast.FunctionDef):
                node.returns = None
    return [ast.dump(node) for node in tree.body[1:]]  # all but the title


def main(arguments: list[str] | None = None) -> int:
    """Write or check the stub; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="do not write; tell whether it is new")
    options = parser.parse_args(arguments)
    new = generate()
    if not options.check:
        STUB.write_text(new, encoding="utf-8")
        return 0
    old = STUB.read_text(encoding="utf-8")
    same_generator = old.splitlines()[0] == new.splitlines()[0]
    if meaning(old, same_generator) == meaning(new, same_generator):
        return 0
    name = STUB.relative_to(ROOT)
    print(f"{name} is not what the native module is: run `make stubs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
