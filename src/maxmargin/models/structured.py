"""Models of native structures other than chains: one kind for each estimator.

A model is the estimator itself. The command line has a task for each (`maxmargin.cli.tasks`), which
knows the files that its inputs are in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from maxmargin.errors import NotCompatibleError
from maxmargin.io.container import read_header
from maxmargin.models.base import DescriptionRequest, ModelKind
from maxmargin.models.header import shown_certificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from maxmargin.estimators.native import NativeEstimator

__all__ = [
    "AlignmentKind",
    "BinaryKind",
    "ClassesKind",
    "DependenciesKind",
    "LatentKind",
    "RegressionKind",
    "TaxonomyKind",
    "TreesKind",
]


class StructuredKind(ModelKind):
    """Models of one estimator.

    Attributes
    ----------
    estimator : str
        Module and class of the estimator, which is imported when a model is loaded.
    """

    estimator: ClassVar[str]

    def save(self, path: Any, model: NativeEstimator[Any, Any]) -> int:
        """Write a model to a file."""
        return model.save(path)

    def load(
        self, path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
    ) -> NativeEstimator[Any, Any]:
        """Read a model from a file."""
        if function is not None:
            raise NotCompatibleError(
                f"{path}: found a function for its features; expected none, as it is of the kind "
                f"{self.name!r}"
            )
        module, _, name = self.estimator.partition(":")
        estimator: NativeEstimator[Any, Any] = getattr(import_module(module), name).load(
            path, mmap=mmap
        )
        return estimator

    def load_estimator(
        self, path: Any, template: Any = None, *, mmap: bool = False
    ) -> NativeEstimator[Any, Any]:
        """Read the estimator."""
        return self.load(path, template, mmap=mmap)

    def describe(
        self, model: NativeEstimator[Any, Any], request: DescriptionRequest
    ) -> dict[str, Any]:
        """Say what a model holds."""
        if request.label is not None or request.selected:
            option = "--selected" if request.label is None else "--label"
            raise NotCompatibleError(
                f"{option} is for models of label sequences; this one is of the task {self.task}"
            )
        certificate = model.certificate_
        figures = {name: getattr(certificate, name) for name in ("primal", "dual", "gap", "C")}
        if certificate.approximate:
            figures["approximate"] = True
        return {
            "task": self.task,
            **model.describe(request.top),
            "certificate": shown_certificate(figures),
            "training": {
                "n_examples": model.n_examples_,
                "passes": model.n_iter_,
                "converged": model.converged_,
                "stop_reason": model.stop_reason_,
            },
        }

    def write_text(self, path: Any, model: NativeEstimator[Any, Any]) -> int:
        """Write all weights that are not zero as a text."""
        from maxmargin.io.text import open_for_writing

        n_lines = 0
        with open_for_writing(path) as out:
            for line in model.text_lines():
                out.write(f"{line}\n".encode())
                n_lines += not line.startswith("#")
        return n_lines

    def reading(self, path: Any) -> dict[str, Any]:
        """Return what the task must know to read files for a model.

        Parameters
        ----------
        path : str or path
            The file of the model.

        Returns
        -------
        dict
            As `maxmargin.cli.tasks.base.Task.reading` made it.
        """
        reading = read_header(path).meta.get("reading", {})
        return reading if isinstance(reading, dict) else {}


class ClassesKind(StructuredKind):
    """`MulticlassSVM`."""

    name = task = "classes"
    estimator = "maxmargin.estimators.classes:MulticlassSVM"


class BinaryKind(StructuredKind):
    """`BinarySVM`."""

    name = task = "binary"
    estimator = "maxmargin.estimators.linear:BinarySVM"


class RegressionKind(StructuredKind):
    """`SVR`."""

    name = task = "regression"
    estimator = "maxmargin.estimators.linear:SVR"


class TaxonomyKind(StructuredKind):
    """`TaxonomySVM`."""

    name = task = "taxonomy"
    estimator = "maxmargin.estimators.taxonomy:TaxonomySVM"


class AlignmentKind(StructuredKind):
    """`Aligner`."""

    name = task = "alignment"
    estimator = "maxmargin.estimators.aligner:Aligner"


class TreesKind(StructuredKind):
    """`Parser`."""

    name = task = "trees"
    estimator = "maxmargin.estimators.parser:Parser"


class LatentKind(StructuredKind):
    """`LatentSVM`."""

    name = task = "latent"
    estimator = "maxmargin.estimators.latent_svm:LatentSVM"


class DependenciesKind(StructuredKind):
    """`DependencyParser`."""

    name = task = "dependencies"
    estimator = "maxmargin.estimators.dependency:DependencyParser"
