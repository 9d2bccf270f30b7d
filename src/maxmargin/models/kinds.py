"""The registry of the kinds of model files.

The header of a model file says of which kind the model is. `kind_of` finds what the library can do
with it; `maxmargin.load` and the command line know no more of a model than `ModelKind` has.

A new kind is a module with a subclass of `ModelKind` and a line in `_KINDS`; a kind of another
package is given to `register`. Modules are imported when a file of their kind is met, so looking a
kind up imports nothing that is large.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from maxmargin._native import Vocabulary
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items
    from maxmargin.features.template import Template

__all__ = [
    "DescriptionRequest",
    "InputFiles",
    "ModelKind",
    "kind_named",
    "kind_of",
    "known_kinds",
    "register",
]


class InputFiles(NamedTuple):
    """Which text files hold inputs of a model.

    Attributes
    ----------
    columns : bool
        Whether they are files of columns; if not, of items.
    file_format : str or None
        The format of the training file; None if it is not known.
    conllu_columns : str or None
        The columns that were taken of a CoNLL-U file, with commas between them.
    n_columns : int or None
        How many columns the training file had, the labels included.
    label_column : int or None
        Which of them had the labels.
    vocabulary : Vocabulary or None
        Of item files: the features that exist.
    """

    columns: bool
    file_format: str | None = None
    conllu_columns: str | None = None
    n_columns: int | None = None
    label_column: int | None = None
    vocabulary: Vocabulary | None = None


class DescriptionRequest(NamedTuple):
    """What somebody wants to know of a model.

    Attributes
    ----------
    top : int
        How many of the largest and of the smallest weights of features.
    transitions : int
        As many weights of neighbouring labels.
    label : str or None
        Weights of this label only.
    selected : bool
        Whether to count what is not zero.
    """

    top: int = 20
    transitions: int = 5
    label: str | None = None
    selected: bool = False


class ModelKind(ABC):
    """What the library does with models of one kind.

    A *model* is whatever `load` returns; nobody but the kind looks into it. It may not need SciPy
    or scikit-learn, for which the command line does not wait.

    Attributes
    ----------
    name : str
        What the header of a file calls the kind.
    """

    name: ClassVar[str]

    @abstractmethod
    def save(self, path: Any, model: Any) -> int:
        """Write a model to a file, as a whole or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        model : object
            As `load` returns it.

        Returns
        -------
        int
            The size of the file in bytes.
        """

    @abstractmethod
    def load(
        self, path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
    ) -> Any:
        """Read a model from a file.

        Parameters
        ----------
        path : str or path
            The file.
        function : callable or None
            The function that makes features, for a model that was trained with one.
        mmap : bool
            Whether to map the file into memory; see `maxmargin.io.container.read_container`.

        Returns
        -------
        object
            The model.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file of this kind.
        """

    def load_to_describe(self, path: Any) -> Any:
        """Read a model that will not see any inputs, and so needs no function.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        object
            The model.
        """
        return self.load(path)

    @abstractmethod
    def load_estimator(self, path: Any, template: Any = None, *, mmap: bool = False) -> Any:
        """Read what `maxmargin.load` returns; scikit-learn may be imported for it.

        Parameters
        ----------
        path : str or path
            The file.
        template : callable or None
            As ``function`` for `load`.
        mmap : bool
            As for `load`.

        Returns
        -------
        estimator
            Fitted.
        """

    @abstractmethod
    def inputs(self, model: Any) -> InputFiles:
        """Say which text files hold inputs of a model.

        Parameters
        ----------
        model : object
            As `load` returns it.

        Returns
        -------
        InputFiles
            What to read.

        Raises
        ------
        NotCompatibleError
            If no text file does.
        """

    @abstractmethod
    def labels(self, model: Any) -> list[Any]:
        """Return all labels that a model knows, by their codes.

        Parameters
        ----------
        model : object
            As `load` returns it.

        Returns
        -------
        list
            The labels.
        """

    @abstractmethod
    def predict(
        self, model: Any, data: ColumnTable | Items, threads: int = 1
    ) -> NDArray[np.int32]:
        """Predict the label of each token.

        Parameters
        ----------
        model : object
            As `load` returns it.
        data : ColumnTable or Items
            The inputs.
        threads : int
            How many threads to use.

        Returns
        -------
        int32 array of shape (n_tokens,)
            Codes of labels.
        """

    def margins(
        self, model: Any, data: ColumnTable | Items, threads: int = 1
    ) -> tuple[NDArray[np.int32], list[float]]:
        """Predict the label of each token, and say how much better it is than the next best one.

        Parameters
        ----------
        model, data, threads
            As for `predict`.

        Returns
        -------
        codes : int32 array of shape (n_tokens,)
            Codes of labels.
        margins : list of float
            Differences of scores, not negative.

        Raises
        ------
        NotCompatibleError
            If models of this kind have no such scores.
        """
        raise self._refused("scores of tokens")

    def kbest(
        self, model: Any, data: ColumnTable | Items, k: int, threads: int = 1
    ) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Predict the k best outputs of each sequence.

        Parameters
        ----------
        model, data, threads
            As for `predict`.
        k : int
            How many at most.

        Returns
        -------
        list of lists of (score, codes)
            For each sequence its outputs, the best first.

        Raises
        ------
        NotCompatibleError
            If models of this kind have no such outputs.
        """
        raise self._refused("k best outputs")

    @abstractmethod
    def describe(self, model: Any, request: DescriptionRequest) -> dict[str, Any]:
        """Say what a model holds.

        Parameters
        ----------
        model : object
            From `load` or `load_to_describe`.
        request : DescriptionRequest
            What somebody wants to know; what a kind does not have it leaves out.

        Returns
        -------
        dict
            Values that JSON can hold. Keys that `maxmargin.cli.info_words` knows are shown in words
            of their own, others as they are.

        Raises
        ------
        NotCompatibleError
            If the model does not have what was asked for.
        """

    def template(self, model: Any) -> Template:
        """Return the template that makes the features.

        Parameters
        ----------
        model : object
            From `load` or `load_to_describe`.

        Returns
        -------
        Template
            The template.

        Raises
        ------
        NotCompatibleError
            If there is none.
        """
        raise self._refused("template")

    def write_text(self, path: Any, model: Any) -> int:
        """Write all weights of a model that are not zero as a text.

        Parameters
        ----------
        path : path or binary file
            "-" is standard output.
        model : object
            From `load` or `load_to_describe`.

        Returns
        -------
        int
            How many weights were written.

        Raises
        ------
        NotCompatibleError
            If models of this kind have no such form.
        """
        raise self._refused("form as a text")

    def _refused(self, what: str) -> Exception:
        from maxmargin.errors import NotCompatibleError

        return NotCompatibleError(f"has no {what}, as it is of the kind {self.name!r}")


#: What a header calls a kind -> module and class, or the kind itself once it is needed.
_KINDS: dict[str, str | ModelKind] = {
    "tagger": "maxmargin.models.tagger:TaggerKind",
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
    from maxmargin.errors import ModelFormatError
    from maxmargin.io.container import read_header
    from maxmargin.printable import quoted

    header = read_header(path)
    if header.kind not in _KINDS:
        known = ", ".join(map(repr, known_kinds()))
        raise ModelFormatError(
            f"{header.path}: holds a model of the kind {quoted(header.kind)}, which this version "
            f"of maxmargin does not know; expected one of {known}"
        )
    return kind_named(header.kind)
