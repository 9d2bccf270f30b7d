"""The modules of the package import each other in one direction, and never in a circle.

The graph of imports is read from the source text (`ast`), so nothing is imported to find it. There
are three kinds of imports: at the top of a module, inside a function (which keeps SciPy,
scikit-learn and the library itself out of the start of the command), and for type checkers only
(``if TYPE_CHECKING``). The order of the layers holds for all three: an import inside a function
does not hide a dependency from it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "maxmargin"

#: From the bottom to the top. A module may import modules of lower layers, and those of its own
#: entry (a module, or a package with all that is in it). Entries of one layer do not import each
#: other. A module belongs to the longest entry that its name begins with.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("printable", "lazy", "memory", "checks"),  # text in messages, what is there, number checks
    ("errors",),
    ("trees",),  # parse trees
    ("links", "metrics", "scores"),  # w = link(u); scores of tags, and of other outputs
    ("scorers",),  # the same for scikit-learn
    ("label_report",),  # tables of such scores
    ("regularizers",),
    ("features",),  # text and Python objects -> numbers
    ("io",),  # files of sequences, containers of arrays, the atomic writer
    ("constraints",),  # what a person knows about labellings
    ("types",),  # of what users hand over
    ("structures",),  # output spaces
    ("solvers",),  # they write checkpoints with io.atomic
    ("online",),  # a solver on examples that become more
    ("io.objective",),  # what a model file says of regulariser and solver ...
    ("io.meta_checks", "io.training_meta"),
    ("io.parameters",),
    ("io.structure_file",),  # ... of any structure that can write down its state,
    ("io.user_structure",),
    ("io.tagger_file",),  # ... and of a chain
    ("io.latent_structure",),
    ("models.weight_rows",),  # the weights of a tagger, without a copy
    ("models.strongest",),
    ("report.svg", "report.endings", "report.files"),  # pieces of pictures
    ("streams",),  # data that do not fit in memory: encoded files, and the windows of a training
    ("models.base",),
    ("models.kinds",),  # the registry, which imports a kind when it is asked for
    ("selection",),  # trainings of a chain and choices among models, without scikit-learn
    ("report.html",),  # the page about a tagger, which estimators write too
    ("estimators",),  # with scikit-learn
    ("distributed",),  # trainings on many machines
    ("models",),  # kinds of model files: loaded as estimators, described for `info`
    ("demo",),  # an experiment with an estimator
    ("report",),  # pictures
    ("comparing",),  # solvers beside each other, with a picture
    ("cli",),
    ("__main__",),
)

#: Imports that go upwards although they should not: (importer, imported). None at present.
UPWARD: dict[tuple[str, str], str] = {}

#: Imports that are left out when circles are looked for, with the reason. Each is needed: the test
#: fails if there is no circle with it any more.
IN_CIRCLES: dict[tuple[str, str], str] = {}


class Import(NamedTuple):
    """One module needs another; names are without the package."""

    importer: str
    imported: str
    kind: str  # "module", "function" or "types"


def modules_of(source: Path) -> dict[str, Path]:
    """Return the files of a package by the names of their modules; that of the package is ""."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_of(source: Path) -> list[Import]:
    """Return the imports within a package.

    Imports of the package itself for its version, and of native modules, are left out; so are
    those of ``__init__.py`` at the top, which lists the public names of all layers.
    """
    modules = modules_of(source)
    native = {file.stem for file in source.rglob("*.pyi")}
    found = []
    for name, file in modules.items():
        if name:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for imported, kind in _imports(tree, source.name, modules, native):
                if imported != name:
                    found.append(Import(name, imported, kind))
    return found


def _imports(
    node: ast.AST, package: str, modules: Iterable[str], native: set[str], kind: str = "module"
) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                if alias.name.startswith(f"{package}."):
                    yield _module(alias.name.removeprefix(f"{package}."), modules), kind
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports within the package are absolute"
            within = f"{child.module}." if child.module else ""
            for alias in child.names:
                full = f"{within}{alias.name}".removeprefix(f"{package}.")
                own = within.startswith(f"{package}.")
                if own and full.split(".")[0] not in native and full != "__version__":
                    yield _module(full, modules), kind
        inner = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = "function"
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inner = "types"
        yield from _imports(child, package, modules, native, inner)


def _module(name: str, modules: Iterable[str]) -> str:
    """Return the module that a dotted name is, or is in."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def place_of(module: str, layers: tuple[tuple[str, ...], ...]) -> tuple[int, str]:
    """Return the number of the layer and the entry of a module."""
    entries = [
        (entry, level)
        for level, layer in enumerate(layers)
        for entry in layer
        if module == entry or module.startswith(f"{entry}.")
    ]
    assert entries, f"{module or 'the package itself'} is in no layer; enter it in LAYERS"
    entry, level = max(entries, key=lambda found: len(found[0]))
    return level, entry


def upward(imports: Iterable[Import], layers: tuple[tuple[str, ...], ...]) -> list[Import]:
    """Return the imports that go to the same layer or a higher one, outside of their entry."""
    found = []
    for one in imports:
        (level, entry), (target, other) = (
            place_of(one.importer, layers),
            place_of(one.imported, layers),
        )
        if entry != other and target >= level:
            found.append(one)
    return found


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the sets of modules that need each other (Tarjan's strongly connected components)."""
    needs: dict[str, list[str]] = {}
    for a, b in edges:
        needs.setdefault(a, []).append(b)
        needs.setdefault(b, [])
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in needs[module]:
            if other not in order:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            start = stack.index(module)
            component = sorted(stack[start:])
            del stack[start:]
            if len(component) > 1:
                found.append(component)

    for module in sorted(needs):
        if module not in order:
            visit(module)
    return found


IMPORTS = imports_of(SOURCE)


def test_the_graph_is_that_of_the_package():
    """Some imports of each kind that there must be, or the graph is not what it should be."""
    kinds = {kind: {one[:2] for one in IMPORTS if one.kind == kind} for _, _, kind in IMPORTS}
    assert set(kinds) == {"module", "function", "types"}
    assert ("selection.grid", "selection.fitting") in kinds["module"]
    assert ("comparing.run", "solvers") in kinds["module"]
    assert ("cli.train_steps", "selection") in kinds["function"]
    assert ("cli.train_steps", "cli.training_data") in kinds["types"]
    assert {one.importer for one in IMPORTS} <= modules_of(SOURCE).keys()
    assert "" not in {one.imported for one in IMPORTS}  # names come from where they are defined


def test_no_import_circles_at_the_top_of_modules():
    assert circles(one[:2] for one in IMPORTS if one.kind == "module") == []


def test_no_import_circles_at_all():
    """Not even with the imports inside functions and for type checkers."""
    edges = {one[:2] for one in IMPORTS}
    assert circles(edges - IN_CIRCLES.keys()) == []
    for exception in IN_CIRCLES:
        rest = edges - (IN_CIRCLES.keys() - {exception})
        assert circles(rest) != [], f"{exception} makes no circle; remove it from IN_CIRCLES"


def test_nothing_below_imports_what_is_above():
    wrong = {one[:2] for one in upward(IMPORTS, LAYERS)}
    assert wrong == UPWARD.keys()


def test_every_module_has_a_layer():
    for module in modules_of(SOURCE):
        if module:
            place_of(module, LAYERS)


# --- the checks find what they are for ------------------------------------------------------------


@pytest.fixture
def package(tmp_path):
    """Return a function that writes a small package."""

    def write(**files):
        root = tmp_path / "small"
        root.mkdir()
        for name, text in {"__init__": "from small.high import thing\n", **files}.items():
            (root / f"{name}.py").write_text(text)
        return root

    return write


def test_a_circle_is_found_whatever_kind_its_imports_are(package):
    root = package(
        a="from small import b\nimport os\n",
        b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small.c import name\n",
        c="def f():\n    import small.a\n",
        d="import small.a\n",
    )
    found = imports_of(root)
    assert found == [
        Import("a", "b", "module"),
        Import("b", "c", "types"),
        Import("c", "a", "function"),
        Import("d", "a", "module"),
    ]
    assert circles(one[:2] for one in found) == [["a", "b", "c"]]
    assert circles(one[:2] for one in found if one.kind != "function") == []


def test_an_import_upwards_is_found(package):
    root = package(
        low="def f():\n    from small.high import thing\n",
        beside="from small import low\n",
        high="from small import _native, __version__\nfrom small.low import f\nthing = 1\n",
        facade="from small import thing\n",
        _native="",
    )
    (root / "_native.py").rename(root / "_native.pyi")
    found = imports_of(root)
    layers = (("low", "beside"), ("high",), ("facade",))
    assert [one for one in found if one.imported] == [
        Import("beside", "low", "module"),
        Import("high", "low", "module"),
        Import("low", "high", "function"),
    ]
    assert upward((one for one in found if one.imported), layers) == [
        Import("beside", "low", "module"),
        Import("low", "high", "function"),
    ]
    assert Import("facade", "", "module") in found  # not from where it is defined


def test_a_module_without_a_layer_is_found():
    with pytest.raises(AssertionError, match=r"new\.file is in no layer"):
        place_of("new.file", LAYERS)
    layers = (("io",), ("solvers",), ("io.late",))
    assert place_of("io.early", layers) == (0, "io")
    assert place_of("io.late.part", layers) == (2, "io.late")
    assert upward([Import("io.early", "io.late", "module")], layers) != []
