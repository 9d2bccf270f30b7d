"""`Task`: what the command line must know of a structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    import argparse

    from maxmargin.estimators.native import NativeEstimator
    from maxmargin.metrics import TagReport

__all__ = ["Examples", "Task"]


class Examples(NamedTuple):
    """The examples of a file.

    Attributes
    ----------
    X : list or matrix
        The inputs, as the estimator takes them.
    y : list or None
        Their true outputs; None if they were not asked for.
    raw : object
        What `Task.write` needs besides: the lines of the file, names, ...
    """

    X: Any
    y: Any
    raw: Any = None

    def __len__(self) -> int:
        """Return the number of examples."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


class Task(ABC):
    """A kind of structures on the command line.

    Attributes
    ----------
    name : str
        Of ``--task``, and of the kind of its model files.
    items : str
        What an example is, in the plural: "documents", "sentences", "pairs".
    default_C : float
        Of ``-C``.
    epilog : str
        What ``maxmargin train --task NAME --help`` ends with: examples, file formats.
    """

    name: ClassVar[str]
    items: ClassVar[str]
    default_C: ClassVar[float] = 1.0
    epilog: ClassVar[str] = ""

    def add_options(self, group: Any) -> None:  # noqa: B027
        """Add the options of ``maxmargin train`` that this task has alone.

        Parameters
        ----------
        group : argparse group
            Where to add them.
        """

    def check(self, options: argparse.Namespace) -> None:  # noqa: B027
        """Refuse options that do not go together, before any file is read.

        Parameters
        ----------
        options : argparse.Namespace
            The arguments of ``maxmargin train``.

        Raises
        ------
        ValueError
            If they do not.
        """

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return what must be remembered to read further files: format, separator, ...

        Parameters
        ----------
        options : argparse.Namespace
            The arguments of ``maxmargin train``.

        Returns
        -------
        dict
            Values that JSON can hold; the model file keeps them.
        """
        return {}

    @abstractmethod
    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a file.

        Parameters
        ----------
        path : str
            The file; "-" is standard input.
        reading : dict
            As `reading` gave it. It comes out of a model file, so that nothing of it is trusted.
        truths : bool
            Whether the true outputs must be there.

        Returns
        -------
        found : Examples
            At least one.

        Raises
        ------
        FileFormatError
            If the file is not as it must be; the message names the line.
        """

    @abstractmethod
    def make(self, options: argparse.Namespace, **common: Any) -> NativeEstimator[Any, Any]:
        """Return an estimator that is to be fitted.

        Parameters
        ----------
        options : argparse.Namespace
            With the options of `add_options`.
        **common
            Parameters that all estimators have: C, solver, regularizer, gap, ...

        Returns
        -------
        NativeEstimator
            Not fitted.
        """

    @abstractmethod
    def write(self, out: IO[bytes], examples: Examples, predicted: Any) -> None:
        """Write predictions as a text.

        Parameters
        ----------
        out : binary file
            Where to.
        examples : Examples
            As `read` gave them.
        predicted : sequence
            One output for each.
        """

    @abstractmethod
    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return how good predictions are.

        Parameters
        ----------
        examples : Examples
            With the true outputs.
        predicted : sequence
            One output for each.

        Returns
        -------
        dict
            Shares between 0 and 1 and counts. The first is the one by which models are chosen: the
            greater the better.
        """

    def score_model(self, examples: Examples, predicted: Any, model: Any) -> dict[str, Any]:
        """Return how good the predictions of a model are.

        Parameters
        ----------
        examples : Examples
            With the true outputs.
        predicted : sequence
            One output for each.
        model : NativeEstimator
            The model that made them, for scores that depend on what it knows (a taxonomy).

        Returns
        -------
        dict
            As `score`.
        """
        return self.score(examples, predicted)

    def report(self, examples: Examples, predicted: Any) -> TagReport | None:
        """Return the scores of each label, where an output is one.

        Parameters
        ----------
        examples : Examples
            With the true outputs.
        predicted : sequence
            One output for each.

        Returns
        -------
        TagReport or None
            Each example is a sequence of one token; None where outputs are no labels.
        """
        return None

    def words(self, figures: dict[str, Any]) -> str:
        """Return scores in a line for people.

        Parameters
        ----------
        figures : dict
            From `score`.

        Returns
        -------
        str
            The line.
        """
        shown = []
        for name, value in figures.items():
            if isinstance(value, float) and 0.0 <= value <= 1.0:
                shown.append(f"{name.replace('_', ' ')} {100 * value:.2f} %")
            elif isinstance(value, int | float):
                shown.append(f"{name.replace('_', ' ')} {value:g}")
        return ", ".join(shown)
