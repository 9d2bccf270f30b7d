"""Models of structures of the user's own: `StructuralSVM`.

A file names the class of the structure, which may not be there; so a model is described by its
header alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.io.container import read_container
from maxmargin.io.header_values import require_dict, require_integer, require_text
from maxmargin.io.inconsistent import naming_file
from maxmargin.io.meta_checks import check_training
from maxmargin.models.base import DescriptionRequest, ModelKind
from maxmargin.models.header import shown_certificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from maxmargin.estimators import StructuralSVM
    from maxmargin.estimators.latent import LatentStructuralSVM

__all__ = ["LatentStructuralKind", "StructuralKind"]


class StructuralKind(ModelKind):
    """Structures of the user's own; a model is a `StructuralSVM`, or the header of its file."""

    name = task = "structural"

    def save(self, path: Any, model: StructuralSVM) -> int:
        """Write a model to a file."""
        return model.save(path)

    def load(
        self, path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
    ) -> StructuralSVM:
        """Read a model from a file; ``function`` is the class of the structure, if it is given."""
        from maxmargin.estimators import StructuralSVM

        return StructuralSVM.load(path, function, mmap=mmap)

    def load_estimator(
        self, path: Any, template: Any = None, *, mmap: bool = False
    ) -> StructuralSVM:
        """Read the estimator."""
        return self.load(path, template, mmap=mmap)

    def load_to_describe(self, path: Any) -> dict[str, Any]:
        """Read the header."""
        container = read_container(path, self.name)
        meta, arrays = container.meta, container.arrays
        with naming_file(container.path):
            check_training(meta)
            require_text(self._class_of(require_dict(meta["structure"], "the structure")), "class")
            require_integer(meta["n_weights"], "n_weights", 0)
            weights = arrays["weight_values" if "weight_values" in arrays else "weights"]
        return {**meta, "n_nonzero": int(np.count_nonzero(weights))}

    def _class_of(self, structure: dict[str, Any]) -> Any:
        """Return what the header calls the class of the structure."""
        return structure["class"]

    def describe(self, model: dict[str, Any], request: DescriptionRequest) -> dict[str, Any]:
        """Say what a model holds."""
        if request.label is not None or request.selected:
            option = "--selected" if request.label is None else "--label"
            raise NotCompatibleError(
                f"{option} is for models of label sequences; this one is of a structure of its own"
            )
        return {
            "task": self.task,
            "structure": self._class_of(model["structure"])[:200],
            "n_weights": model["n_weights"],
            "n_nonzero": model["n_nonzero"],
            "certificate": shown_certificate(model.get("certificate")),
            "training": model.get("training", {}),
        }


class LatentStructuralKind(StructuralKind):
    """Structures with latent parts; a model is a `LatentStructuralSVM`, or the header of a file."""

    name = task = "latent_structural"

    def load(
        self, path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
    ) -> LatentStructuralSVM:
        """Read a model from a file; ``function`` is the class of the structure, if it is given."""
        from maxmargin.estimators.latent import LatentStructuralSVM

        return LatentStructuralSVM.load(path, function, mmap=mmap)

    def _class_of(self, structure: dict[str, Any]) -> Any:
        inner = require_dict(structure["inner"], "the structure")
        named = inner["class"] if inner["kind"] == "other" else str(inner["kind"])
        return f"Latent of {named}" if isinstance(named, str) else named
