"""`ModelKind`: what the library does with models of one kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from maxmargin.errors import NotCompatibleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from maxmargin._native import Vocabulary
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items
    from maxmargin.features.template import Template

__all__ = ["DescriptionRequest", "InputFiles", "ModelKind"]


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
    reading : dict
        How the training file was read, where that is not as by default: ``separator``,
        ``comments``, ``encoding``.
    """

    columns: bool
    file_format: str | None = None
    conllu_columns: str | None = None
    n_columns: int | None = None
    label_column: int | None = None
    vocabulary: Vocabulary | None = None
    reading: Mapping[str, str] = MappingProxyType({})


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
    task : str
        The task of ``maxmargin train --task`` that makes such models. The command line asks models
        of the task "chain" for labels of tokens; of others it loads the estimator, and
        `maxmargin.cli.tasks` knows their files.
    """

    name: ClassVar[str]
    task: ClassVar[str] = "chain"

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
        raise self._refused("inputs in column files")

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

        Raises
        ------
        NotCompatibleError
            If models of this kind have none.
        """
        raise self._refused("labels of tokens")

    def predict(
        self, model: Any, data: ColumnTable | Items, threads: int = 1, known: Any = None
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
        known : int32 array of shape (n_tokens,), optional
            Codes of labels that are known, -1 where one is not.

        Returns
        -------
        int32 array of shape (n_tokens,)
            Codes of labels.

        Raises
        ------
        NotCompatibleError
            If models of this kind have none.
        """
        raise self._refused("labels of tokens")

    def margins(
        self, model: Any, data: ColumnTable | Items, threads: int = 1, known: Any = None
    ) -> tuple[NDArray[np.int32], list[float]]:
        """Predict the label of each token, and say how much better it is than the next best one.

        Parameters
        ----------
        model, data, threads, known
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

    def marginals(
        self, model: Any, data: ColumnTable | Items, threads: int = 1, known: Any = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """Predict the label of each token, and say how probable it is.

        Parameters
        ----------
        model, data, threads
            As for `predict`.

        Returns
        -------
        codes : int32 array of shape (n_tokens,)
            Codes of labels.
        probabilities : array of shape (n_tokens,)
            Of these labels, each at its token.
        log_z : array of shape (n_sequences,)
            With `temperature`, what makes the probability of an output of its score:
            exp(score / temperature - log_z).

        Raises
        ------
        NotCompatibleError
            If models of this kind have no probabilities.
        """
        raise self._refused("probabilities of labels")

    def temperature(self, model: Any) -> float | None:
        """Return what scores are divided by to make probabilities; None: it is not calibrated.

        Parameters
        ----------
        model : object
            As `load` returns it.

        Returns
        -------
        float or None
            The temperature.
        """
        raise self._refused("probabilities of labels")

    def kbest(
        self, model: Any, data: ColumnTable | Items, k: int, threads: int = 1, known: Any = None
    ) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Predict the k best outputs of each sequence.

        Parameters
        ----------
        model, data, threads, known
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

    def _refused(self, what: str) -> NotCompatibleError:
        return NotCompatibleError(f"has no {what}, as it is of the kind {self.name!r}")
