"""A model file on the command line: loading it, and which files go with it."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.options import guarded, is_function, load_function
from maxmargin.cli.reading import settle
from maxmargin.io.recognise import FORMATS

if TYPE_CHECKING:
    from maxmargin.features.columns import LabelCodes
    from maxmargin.models.base import InputFiles, ModelKind

__all__ = ["LoadedModel", "add_model", "load_model", "naming_model", "true_labels"]


class LoadedModel(NamedTuple):
    """A model that a command uses.

    Attributes
    ----------
    kind : ModelKind
        What can be done with it.
    model : object
        What the functions of the kind take.
    inputs : InputFiles
        Which files it reads.
    """

    kind: ModelKind
    model: Any
    inputs: InputFiles


@contextlib.contextmanager
def naming_model(path: str) -> Iterator[None]:
    """Name the file in the errors about what a model cannot do.

    Parameters
    ----------
    path : str
        The file.
    """
    from maxmargin.errors import NotCompatibleError

    try:
        yield
    except NotCompatibleError as error:
        raise NotCompatibleError(f"{path}: {error}") from None


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``-m`` and what belongs to it."""
    parser.add_argument(
        "-m",
        "--model",
        required=required,
        metavar="MODEL",
        help="the model, as maxmargin train wrote it",
    )
    parser.add_argument(
        "--function",
        metavar="FUNCTION",
        help="of a model whose features a Python function made: that function, as "
        "module:function or file.py:function",
    )


def true_labels(data: Any, inputs: InputFiles, path: str) -> LabelCodes:
    """Return the labels that a file has, where the model says they are.

    Parameters
    ----------
    data : ColumnTable or Items
        The file.
    inputs : InputFiles
        What the model says of its files.
    path : str
        The file of the model, for messages.

    Returns
    -------
    LabelCodes
        One for each token.

    Raises
    ------
    ValueError
        If the model does not say where labels are, or the file has other columns.
    """
    column = inputs.label_column
    if column is None and inputs.columns:
        raise ValueError(
            f"{path}: was trained on rows without labels, so it does not say which column of a "
            "file has them; use it from Python"
        )
    if column is not None and data.n_columns != inputs.n_columns:
        raise ValueError(
            f"{data.source}: found {data.n_columns} columns; expected {inputs.n_columns}, "
            f"as in training, with the label in column {column}"
        )
    labels: LabelCodes = data.label_codes if column is None else data.labels(column)
    return labels


def load_model(options: argparse.Namespace) -> LoadedModel:
    """Load the model that the options name, and give them the format of its training file.

    Parameters
    ----------
    options : argparse.Namespace
        With those of `add_model` and `maxmargin.cli.options.add_reading`.

    Returns
    -------
    LoadedModel
        Ready to predict.
    """
    from maxmargin.io.text import name_of
    from maxmargin.models.kinds import kind_of

    function = None
    if options.function is not None:
        if not is_function(options.function):
            raise ValueError(
                f"--function: found {options.function!r}; expected module:function or "
                "file.py:function"
            )
        where = f"--function {options.function}, at {name_of(options.file)}"
        function = guarded(load_function(options.function), where)
    kind = kind_of(options.model)
    model = kind.load(options.model, function)
    with naming_model(options.model):
        inputs = kind.inputs(model)
    trained_on = inputs.file_format
    if trained_on not in FORMATS:
        trained_on = "conll" if inputs.columns else "crfsuite"
    known = dict(inputs.reading)
    if inputs.conllu_columns is not None:
        known["columns"] = inputs.conllu_columns
    if options.format is None:
        options.format = _format_of(options, trained_on)
        options.format_recognised = True
    if inputs.columns != (options.format in ("conll", "conllu")):
        raise ValueError(
            f"{options.model}: was trained on {trained_on} files, so it cannot read "
            f"{options.format} files"
        )
    if options.format == "conllu" != trained_on and options.columns is None:
        raise ValueError(
            f"{options.model}: was trained on {trained_on} files; to read CoNLL-U, say which of "
            "its columns they were, in their order and with that of the labels, such as --columns "
            "form,xpos,upos"
        )
    settle(options, known)
    return LoadedModel(kind, model, inputs)


def _format_of(options: argparse.Namespace, trained_on: str) -> str:
    """Return the format of a file: that of training, unless its name says another of columns."""
    from maxmargin.io.recognise import format_of_name

    named, columns = format_of_name(options.file), ("conll", "conllu")
    return named if named in columns and trained_on in columns else trained_on
