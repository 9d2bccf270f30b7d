"""A model file on the command line: loading it, and which files go with it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.options import FORMATS, guarded, is_function, load_function

if TYPE_CHECKING:
    from maxmargin.io.tagger_file import TaggerModel

__all__ = ["add_model", "load_model"]


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


def load_model(options: argparse.Namespace) -> TaggerModel:
    """Load the model that the options name, and give them the format of its training file.

    Parameters
    ----------
    options : argparse.Namespace
        With those of `add_model` and `maxmargin.cli.options.add_reading`.

    Returns
    -------
    TaggerModel
        Ready to tag.
    """
    from maxmargin.io.tagger_file import load_tagger
    from maxmargin.io.text import name_of

    function = None
    if options.function is not None:
        if not is_function(options.function):
            raise ValueError(
                f"--function: found {options.function!r}; expected module:function or "
                "file.py:function"
            )
        where = f"--function {options.function}, at {name_of(options.file)}"
        function = guarded(load_function(options.function), where)
    model = load_tagger(options.model, function)
    kind = model.chain.encoder.kind
    columns = hasattr(model.chain.encoder, "n_columns")
    if not columns and kind != "strings":
        raise ValueError(
            f"{options.model}: was trained on arrays ({kind}), which no text file holds; use it "
            "from Python"
        )
    trained_on: Any = model.meta.get("format")
    if trained_on not in FORMATS:
        trained_on = "conll" if columns else "crfsuite"
    if options.format is None:
        options.format = trained_on
        if trained_on == "conllu":
            options.columns = str(model.meta.get("columns_conllu", options.columns))
    if columns != (options.format in ("conll", "conllu")):
        raise ValueError(
            f"{options.model}: was trained on {trained_on} files, so it cannot read "
            f"{options.format} files"
        )
    return model
