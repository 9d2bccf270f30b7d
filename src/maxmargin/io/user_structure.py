"""A structure of the user's own in a model file: the name of its class, and its state as values.

A file holds no code. The header has ``class`` ("module:name"), ``form`` and ``values``:

- form "state": ``values`` is the dict that ``state()`` of the structure returned; its class may
  have ``restore(state)``, else the entries become attributes of a new object;
- form "pair": ``state()`` returned a dict and a dict of arrays, as native structures do, and
  ``restore(meta, arrays)`` takes them;
- form "attributes": the structure has no ``state``, and ``values`` are its attributes.

Values are numbers, texts, None, and lists, tuples, dicts and arrays of them.

*Which class is used.* A file that names a class must not make anybody import or call what they do
not know. So the class is the one that the caller gives, or one of maxmargin's own structures, or a
class that is there already under that name: in a module that the program has imported by itself. It
must have the methods of a structure. Nothing is ever imported because a file says so.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.io.header_values import require_choice, require_dict, require_text, short_value
from maxmargin.io.parameters import describe_value, restore_value
from maxmargin.io.structure_file import ClassNeededError
from maxmargin.structures.chain import Chain
from maxmargin.structures.duck import as_structure, structure_name, users_object
from maxmargin.structures.native import NativeStructure

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StoredUserStructure", "UserStructure", "checked_weights", "class_of"]

#: Structures of maxmargin whose classes a file may name: module -> names.
OWN = {
    "maxmargin.structures.alignment": ("Alignment",),
    "maxmargin.structures.constraints": ("Constraints",),
    "maxmargin.structures.dependency": ("DependencyTree",),
    "maxmargin.structures.grammar": ("Grammar",),
    "maxmargin.structures.multiclass": ("Multiclass",),
    "maxmargin.structures.rows": ("Binary",),
    "maxmargin.structures.taxonomy": ("Taxonomy",),
    "maxmargin.structures.treebank": ("Treebank",),
}
FORMS = ("state", "pair", "attributes")
_NESTED = "value_"


class UserStructure:
    """A prepared structure that is to be saved.

    Parameters
    ----------
    structure : Structure
        Prepared.
    """

    def __init__(self, structure: Any) -> None:
        self._structure = users_object(structure)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the file holds of it."""
        structure, name = self._structure, structure_name(self._structure)
        if isinstance(structure, Chain):
            raise NotCompatibleError(
                "a StructuralSVM of a Chain has no model file of its own; train a SequenceTagger, "
                "which has"
            )
        described = {"class": f"{type(structure).__module__}:{type(structure).__qualname__}"}
        arrays: dict[str, NDArray[Any]] = {}
        form, values = "attributes", dict(vars(structure))
        if callable(getattr(structure, "state", None)):
            form, values = "state", structure.state()
            if isinstance(values, tuple):
                meta, arrays = values
                return {**described, "form": "pair", "values": meta}, dict(arrays)
            if not isinstance(values, dict):
                raise NotCompatibleError(
                    f"state() of {name} returned a {type(values).__name__}; expected a dict"
                )
        kept = {}
        for key, value in values.items():
            if not isinstance(key, str):
                raise NotCompatibleError(f"state() of {name} has the key {key!r}; expected texts")
            kept[key] = describe_value(value, arrays, _NESTED)
            missing = _not_held(kept[key])
            if missing is not None:
                raise NotCompatibleError(
                    f"a model file cannot hold {key!r} of {name}, a {missing}; give the class a "
                    "method state() that returns a dict of numbers, texts, lists, dicts and "
                    "arrays, and a class method restore(state)"
                )
        return {**described, "form": form, "values": kept}, arrays


def _not_held(described: Any) -> str | None:
    """Return the class of a value within a description that could not be written down."""
    if isinstance(described, list):
        return next(filter(None, map(_not_held, described)), None)
    if not isinstance(described, dict):
        return None
    if "class" in described:
        return str(described["class"])
    return next(filter(None, map(_not_held, described.values())), None)


class StoredUserStructure:
    """A structure as a file describes it, for `maxmargin.io.structure_file.load_structure`.

    Parameters
    ----------
    given : class, object, str or None
        The class as the caller gives it; "module:name" is imported, because the caller says so.
    """

    def __init__(self, given: Any = None) -> None:
        self._given = given

    def restore(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> _Restored:
        """Make the structure of what the file says; nothing of it is trusted."""
        name = require_text(meta["class"], "the class of the structure")
        form = meta["form"]
        require_choice(form, "the form of the structure", FORMS)
        values = require_dict(meta["values"], "the values of the structure")
        cls = class_of(name, self._given)
        if form == "pair":
            return _Restored(cls.restore(values, arrays))
        state = {
            key: restore_value(value, arrays, f"{key} of the structure")
            for key, value in values.items()
        }
        if form == "state" and callable(getattr(cls, "restore", None)):
            return _Restored(cls.restore(state))
        made = cls.__new__(cls)
        vars(made).update(state)
        return _Restored(made)


class _Restored:
    """A restored structure, with the check of its weights."""

    def __init__(self, structure: Any) -> None:
        self.structure = as_structure(structure)

    def native_weights(self, weights: NDArray[Any]) -> Any:
        """Return the weights as predictions take them."""
        return checked_weights(self.structure, weights)


def checked_weights(structure: Any, weights: NDArray[Any]) -> Any:
    """Return weights of a file as predictions take them.

    Parameters
    ----------
    structure : Structure
        Restored.
    weights : array
        What the file has.

    Raises
    ------
    ValueError
        If they are not those of the structure.
    """
    if isinstance(structure, NativeStructure):
        return structure.native_weights(weights)
    size = structure.n_features
    if weights.dtype != np.float64 or (size is not None and weights.shape != (size,)):
        raise ValueError(
            f"there are {weights.size} weights of {weights.dtype}; the structure has {size}"
        )
    return weights


def class_of(name: str, given: Any = None) -> Any:
    """Return the class that a file names, if the program knows it already.

    Parameters
    ----------
    name : str
        "module:name", from a file that is not trusted.
    given : class, object, str or None
        What the caller says that it is.

    Returns
    -------
    type
        With the methods of a structure.

    Raises
    ------
    ClassNeededError
        If there is no such class, or if it is not the one that was given.
    """
    module, _, path = name.partition(":")
    if given is not None:
        cls = _given_class(given)
        if cls.__qualname__.rpartition(".")[2] != path.rpartition(".")[2]:
            raise ClassNeededError(
                f"the file holds a model of the structure {short_value(name)}; the class given is "
                f"{cls.__module__}:{cls.__qualname__}"
            )
        return _checked(cls, name)
    if path in OWN.get(module, ()):
        return getattr(import_module(module), path)
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = None if found is None else vars(found).get(part)
    if not inspect.isclass(found):
        raise ClassNeededError(
            f"the file holds a model of the structure {short_value(name)}, which this program has "
            "not imported; import it, or give the class: StructuralSVM.load(path, structure=...)"
        )
    return _checked(found, name)


def _given_class(given: Any) -> Any:
    if isinstance(given, str):
        module, _, path = given.partition(":")
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found
    return given if inspect.isclass(given) else type(users_object(given))


def _checked(cls: Any, name: str) -> Any:
    missing = [m for m in ("joint_feature", "loss") if not callable(getattr(cls, m, None))]
    if not any(callable(getattr(cls, m, None)) for m in ("argmax", "outputs")):
        missing.append("argmax")
    if missing:
        raise ClassNeededError(
            f"{short_value(name)} is no structure: it has no {', '.join(missing)}"
        )
    return cls
