"""The registry of the kinds of model files.

The header of a model file says of which kind the model is. `kind_of` finds what the library can do
with it; `maxmargin.load` and the command line know no more of a model than `ModelKind` has.

A new kind is a module with a subclass of `ModelKind` and a line in `_KINDS`; a kind of another
package is given to `register`. Modules are imported when a file of their kind is met, so looking a
kind up imports nothing that is large.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from maxmargin.errors import ModelFormatError
from maxmargin.models.base import ModelKind
from maxmargin.printable import quoted

__all__ = ["kind_named", "kind_of", "known_kinds", "register"]

#: What a header calls a kind -> module and class, or the kind itself once it is needed.
_KINDS: dict[str, str | ModelKind] = {
    "tagger": "maxmargin.models.tagger:TaggerKind",
    "classes": "maxmargin.models.structured:ClassesKind",
    "binary": "maxmargin.models.structured:BinaryKind",
    "regression": "maxmargin.models.structured:RegressionKind",
    "taxonomy": "maxmargin.models.structured:TaxonomyKind",
    "alignment": "maxmargin.models.structured:AlignmentKind",
    "trees": "maxmargin.models.structured:TreesKind",
    "latent": "maxmargin.models.structured:LatentKind",
    "dependencies": "maxmargin.models.structured:DependenciesKind",
    "latent_structural": "maxmargin.models.structural:LatentStructuralKind",
    "structural": "maxmargin.models.structural:StructuralKind",
}


def register(kind: ModelKind) -> None:
    """Make a kind of models known.

    Parameters
    ----------
    kind : ModelKind
        The kind.

    Raises
    ------
    ValueError
        If there is another kind of that name.
    """
    if kind.name in _KINDS:
        raise ValueError(f"there is a kind of models called {kind.name!r} already")
    _KINDS[kind.name] = kind


def known_kinds() -> list[str]:
    """Return the names of all kinds of models, sorted.

    Returns
    -------
    list of str
        The names.
    """
    return sorted(_KINDS)


def kind_named(name: str) -> ModelKind:
    """Return a kind of models by its name.

    Parameters
    ----------
    name : str
        What headers call it; one of `known_kinds`.

    Returns
    -------
    ModelKind
        The kind.
    """
    kind = _KINDS[name]
    if isinstance(kind, str):
        module, _, class_name = kind.partition(":")
        kind = _KINDS[name] = getattr(import_module(module), class_name)()
    assert isinstance(kind, ModelKind)
    return kind


def kind_of(path: Any) -> ModelKind:
    """Return the kind of the model in a file, of which the header alone is read.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ModelKind
        The kind.

    Raises
    ------
    ModelFormatError
        If the file is no model, or one of a kind that is not known.
    OSError
        If it cannot be read.
    """
    from maxmargin.io.container import read_header

    header = read_header(path)
    if header.kind == "encoded":
        raise ModelFormatError(
            f"{header.path}: holds encoded training data and no model; expected a model, such as "
            "maxmargin train makes of them"
        )
    if header.kind not in _KINDS:
        known = ", ".join(map(repr, known_kinds()))
        raise ModelFormatError(
            f"{header.path}: holds a model of the kind {quoted(header.kind)}, which this version "
            f"of maxmargin does not know; expected one of {known}"
        )
    return kind_named(header.kind)
