"""How the commands read files of sequences: options, formats, and what a model remembers of them.

An option that is not given is None until it is known what it stands for: what the model remembers
of its training file, or the default. The format is recognised (`maxmargin.io.recognise`).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.io.recognise import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items

__all__ = [
    "CONLLU_COLUMNS",
    "add_encoding",
    "add_reading",
    "encoding_name",
    "parse_data",
    "read_data",
    "remembered",
    "settle",
    "size",
]

#: The columns of CoNLL-U that are taken if nobody says which.
CONLLU_COLUMNS = "form,upos"
#: What a model remembers of how its training file was read, besides the format -> the default.
REMEMBERED = {"separator": "auto", "comments": None, "encoding": None}


def size(text: str) -> int:
    """Read a number of bytes such as 500M; a type for argparse."""
    from maxmargin.memory import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def encoding_name(text: str) -> str:
    """Check the name of an encoding; a type for argparse."""
    from maxmargin.io.text import check_encoding

    try:
        return check_encoding(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_encoding(group: Any) -> None:
    """Add ``--encoding`` to a group of options."""
    group.add_argument(
        "--encoding",
        type=encoding_name,
        default=None,
        metavar="NAME",
        help="of the text, such as latin-1, cp1252 or utf-16 (default: utf-8)",
    )


def add_reading(
    parser: argparse.ArgumentParser,
    *,
    labels: bool = True,
    flag: str = "--format",
    tables: bool = False,
) -> None:
    """Add the options for reading a file of sequences.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    labels : bool
        Whether there is a column of labels.
    flag : str
        The option for the format.
    tables : bool
        Whether Parquet and Arrow files can be read.
    """
    parser.set_defaults(format_flag=flag)
    group = parser.add_argument_group(
        "how to read the files (.gz, .bz2, .xz and .zst are inflated, - is a pipe)"
    )
    group.add_argument(
        flag,
        dest="format",
        choices=(*FORMATS, "parquet") if tables else FORMATS,
        default=None,
        help="conll: one token a line, columns between tabs or spaces, a blank line between "
        "sequences; crfsuite: label TAB attribute[:value] ...; svmhmm: TAG qid:N feature:value "
        "...; conllu: CoNLL-U, see --columns (default: "
        + ("as in training" if not labels else "by the ending of the name and by the content")
        + ")",
    )
    if labels:
        group.add_argument(
            "--label-column",
            type=int,
            default=-1,
            metavar="K",
            help="column of the labels, counted from 0; -1 is the last (default: the last)",
        )
    group.add_argument(
        "--columns",
        default=None,
        metavar="NAMES",
        help="of CoNLL-U: which columns to take, in this order, such as form,lemma,feats.Case,upos "
        f"(default: {CONLLU_COLUMNS if labels else 'those of training'})",
    )
    if tables:
        group.add_argument(
            "--sequence",
            metavar="NAMES",
            default=None,
            help="of Parquet and Arrow, where a row is a token: the columns whose change begins "
            "another sequence (default: a row is a sequence, its cells are lists; --columns names "
            "the columns to take, the label's last)",
        )
    group.add_argument(
        "--separator",
        choices=("auto", "tab", "space"),
        default=None,
        help="what stands between columns (default: tabs if the first line has one)",
    )
    group.add_argument(
        "--comments",
        metavar="PREFIX",
        default=None,
        help="skip lines that begin with this (default: every line is a token)",
    )
    add_encoding(group)
    group.add_argument(
        "--max-inflated",
        type=size,
        default=None,
        metavar="SIZE",
        help="what a compressed file may inflate to, such as 500M or 20G (default: 100 times its "
        "size, at least 256M)",
    )


def settle(options: argparse.Namespace, known: Mapping[str, Any] | None = None) -> None:
    """Give the options that were not given the values of a model, or their defaults.

    Parameters
    ----------
    options : argparse.Namespace
        With the options of `add_reading`.
    known : mapping or None
        What a model remembers: some of `REMEMBERED`, and ``columns``.
    """
    known = known or {}
    for name, default in {**REMEMBERED, "columns": CONLLU_COLUMNS}.items():
        if getattr(options, name, None) is None:
            setattr(options, name, known.get(name, default))


def remembered(options: argparse.Namespace) -> dict[str, Any]:
    """Return what a model file keeps of how its training file was read.

    Parameters
    ----------
    options : argparse.Namespace
        With the options of `add_reading`, settled.

    Returns
    -------
    dict
        What is not as by default; ``format`` and the columns of CoNLL-U are kept beside it.
    """
    found = {name: getattr(options, name, None) for name in REMEMBERED}
    return {name: found[name] for name, default in REMEMBERED.items() if found[name] != default}


def read_data(
    path: str, options: argparse.Namespace, vocabulary: Any = None
) -> ColumnTable | Items:
    """Read a file of sequences as the options say.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    options : argparse.Namespace
        With the options of `add_reading`. A format that is not given is recognised, and is that of
        all further files.
    vocabulary : Vocabulary or None
        Of item files: the features that exist. None: all of them do.

    Returns
    -------
    ColumnTable or Items
        Columns, or features that are expanded already.
    """
    from maxmargin.io.text import name_of, read_bytes

    settle(options)
    data = read_bytes(path, max_inflated=options.max_inflated, encoding=options.encoding)
    return parse_data(data, name_of(path), options, vocabulary)


def parse_data(
    data: bytes, source: str, options: argparse.Namespace, vocabulary: Any = None
) -> ColumnTable | Items:
    """Read sequences from memory; the parameters are those of `read_data`."""
    from maxmargin.io.recognise import format_of_content, recognise

    flag = getattr(options, "format_flag", "--format")
    if options.format is None:
        options.format = recognise(source, data, flag)
        options.format_recognised = True
    elif getattr(options, "format_recognised", False):  # by another file, or by a model
        found = format_of_content(data)
        if found is not None and found != options.format:
            raise ValueError(
                f"{source}: looks like {found}; expected {options.format}, as the file of training "
                f"is (if it is that, say {flag} {options.format})"
            )
    if options.format in ("crfsuite", "svmhmm"):
        from maxmargin.io.items import parse_items

        return parse_items(data, source, options.format, vocabulary)
    from maxmargin.io.columns import parse_columns

    if options.format == "conllu":
        from maxmargin.io.conllu import conllu_to_columns

        data = conllu_to_columns(data, options.columns.split(","), source)
        return parse_columns(data, source, separator="tab")
    return parse_columns(
        data, source, separator=options.separator, comment=options.comments or None
    )
