"""Options that several subcommands have, and the files that they name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.encode import FeatureEncoder
    from maxmargin.features.items import Items
    from maxmargin.features.template_encoder import TemplateEncoder

__all__ = [
    "FORMATS",
    "add_reading",
    "add_threads",
    "at_least",
    "conllu_columns",
    "guarded",
    "is_function",
    "load_function",
    "make_encoder",
    "note",
    "number",
    "read_data",
    "size",
]

FORMATS = ("conll", "crfsuite", "svmhmm", "conllu")


#: What native code takes as a number of things.
MOST = 2**31 - 1


def at_least(least: int, most: int | None = MOST) -> Callable[[str], int]:
    """Make a type for argparse: an integer from `least` to `most`; None: without an upper bound."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"{quoted(text)} is not an integer of at least {least}"
            )
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{quoted(text)} is above {most}, the most there is")
        return value

    return convert


def number(
    low: float, high: float = float("inf"), *, open_low: bool = False
) -> Callable[[str], float]:
    """Make a type for argparse: a finite number within bounds."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        inside = (low < value if open_low else low <= value) and value <= high
        if not inside or value in (float("inf"), -float("inf")):
            bound = f"{'above' if open_low else 'of at least'} {low:g}"
            upper = "" if high == float("inf") else f" and at most {high:g}"
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number {bound}{upper}")
        return value

    return convert


def size(text: str) -> int:
    """Read a number of bytes such as 500M; a type for argparse."""
    from maxmargin.memory import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    parser.add_argument(
        "--threads",
        type=at_least(1),
        default=1,
        metavar="N",
        help="threads to use; the result does not depend on it (default: 1)",
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
    group = parser.add_argument_group("how to read the files (gzip is recognised, - is a pipe)")
    group.add_argument(
        flag,
        dest="format",
        choices=(*FORMATS, "parquet") if tables else FORMATS,
        default=None,
        help="conll: one token a line, columns between tabs or spaces, a blank line between "
        "sequences (the default); crfsuite: label TAB attribute[:value] ...; svmhmm: TAG qid:N "
        "feature:value ...; conllu: CoNLL-U, see --columns",
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
        "(default: form,upos)",
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
        default="auto",
        help="what stands between columns (default: tabs if the first line has one)",
    )
    group.add_argument(
        "--comments",
        metavar="PREFIX",
        default=None,
        help="skip lines that begin with this (default: every line is a token)",
    )
    group.add_argument(
        "--max-inflated",
        type=size,
        default=None,
        metavar="SIZE",
        help="what a gzip file may inflate to, such as 500M or 20G (default: 100 times its size, "
        "at least 256M)",
    )


def read_data(
    path: str, options: argparse.Namespace, vocabulary: Any = None
) -> ColumnTable | Items:
    """Read a file of sequences as the options say.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    options : argparse.Namespace
        With the options of `add_reading`.
    vocabulary : Vocabulary or None
        Of item files: the features that exist. None: all of them do.

    Returns
    -------
    ColumnTable or Items
        Columns, or features that are expanded already.
    """
    kind = options.format or "conll"
    if kind == "crfsuite":
        from maxmargin.io.crfsuite import read_crfsuite

        return read_crfsuite(path, vocabulary, max_inflated=options.max_inflated)
    if kind == "svmhmm":
        from maxmargin.io.svmhmm import read_svmhmm

        return read_svmhmm(path, vocabulary, max_inflated=options.max_inflated)
    from maxmargin.io.columns import parse_columns
    from maxmargin.io.text import name_of, read_bytes

    data, source = read_bytes(path, max_inflated=options.max_inflated), name_of(path)
    if kind == "conllu":
        from maxmargin.io.conllu import conllu_to_columns

        data = conllu_to_columns(data, conllu_columns(options), source)
        return parse_columns(data, source, separator="tab")
    try:
        return parse_columns(
            data, source, separator=options.separator, comment=options.comments
        )
    except ValueError as error:
        hint = _looks_like(data)
        if hint is None or options.format is not None:
            raise
        flag = getattr(options, "format_flag", "--format")
        raise ValueError(f"{error} (it looks like {hint}: try {flag} {hint})") from None


def conllu_columns(options: argparse.Namespace) -> list[str]:
    """Return the columns of CoNLL-U that ``--columns`` names."""
    return (options.columns or "form,upos").split(",")


def _looks_like(data: bytes) -> str | None:
    """Guess the format of a file that is no column file."""
    first = [line for line in data[:4096].split(b"\n") if line.strip()][:1]
    if not first:
        return None
    if b" qid:" in first[0]:
        return "svmhmm"
    if first[0].startswith((b"# sent_id", b"# text", b"# newdoc")):
        return "conllu"
    return None


def load_function(spec: str) -> Callable[[Any], Any]:
    """Import the function that ``module:function`` or ``file.py:function`` names.

    Parameters
    ----------
    spec : str
        What was given as template.

    Returns
    -------
    callable
        The function.
    """
    import importlib
    import importlib.util

    place, _, name = spec.rpartition(":")
    if place.endswith(".py"):
        description = importlib.util.spec_from_file_location("maxmargin_template", place)
        if description is None or description.loader is None:
            raise ValueError(f"{place}: cannot be read as Python")
        module = importlib.util.module_from_spec(description)
        try:
            description.loader.exec_module(module)
        except (OSError, MemoryError):
            raise
        except (Exception, SystemExit) as error:  # raised by the code of the user
            raise ValueError(f"{place}: {_described(error, place)}") from error
    else:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise ValueError(f"template {spec}: {error}") from error
        except (Exception, SystemExit) as error:  # raised by the code of the user
            raise ValueError(f"template {spec}: {_described(error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"template {spec}: {place} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def guarded(function: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    """Return a user's function, whose exceptions become errors that say where they came from.

    Parameters
    ----------
    function : callable
        From `load_function`.
    where : str
        What messages begin with.

    Returns
    -------
    callable
        It has the name of the function.
    """
    import contextlib
    import functools

    @contextlib.contextmanager
    def guard() -> Iterator[None]:
        try:
            yield
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            raise ValueError(f"{where}: {_described(error)}") from error

    @functools.wraps(function)
    def call(rows: Any) -> Any:
        with guard():
            answer = function(rows)
        return one_by_one(answer) if isinstance(answer, Iterator) else answer

    def one_by_one(answer: Iterator[Any]) -> Iterator[Any]:  # the body of a generator runs here
        with guard():
            yield from answer

    return call


def _described(error: BaseException, file: str | None = None) -> str:
    """Put an exception of a user's code into words, with its line in a file of the user's."""
    import os
    import traceback

    text = f"{type(error).__name__}: {error}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if file is not None and os.path.realpath(frame.filename) == os.path.realpath(file):
            return f"{text} (line {frame.lineno})"
    return text


def is_function(spec: str) -> bool:
    """Whether a template names a Python function: ``module:function`` or ``file.py:function``."""
    place, colon, name = spec.rpartition(":")
    return bool(colon) and name.isidentifier() and (
        place.endswith(".py") or all(part.isidentifier() for part in place.split("."))
    )


def make_encoder(
    spec: str | None,
    data: ColumnTable | Items,
    *,
    min_count: int = 1,
    hash_bits: int | None = None,
    threads: int = 1,
) -> FeatureEncoder | TemplateEncoder:
    """Make the encoder for a file: by a template, by a function, or for expanded features."""
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.select import encoder_of

    template: Any = spec
    if not isinstance(data, ColumnTable):
        if spec is not None:
            raise ValueError(
                "--template is for columns; the features of crfsuite and svmhmm files are expanded"
            )
    elif spec is None:
        template = "words"
    elif is_function(spec):
        template = guarded(load_function(spec), f"template {spec}, at {data.source}")
    return encoder_of(
        template,
        min_count=min_count,
        hash_bits=hash_bits,
        threads=threads,
    )
