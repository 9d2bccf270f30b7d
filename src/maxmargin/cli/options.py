"""Options that several subcommands have, and the files that they name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note
from maxmargin.cli.reading import add_reading, read_data, size
from maxmargin.io.recognise import FORMATS
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.embeddings import Embeddings
    from maxmargin.features.encode import FeatureEncoder
    from maxmargin.features.items import Items
    from maxmargin.features.template_encoder import TemplateEncoder

__all__ = [
    "FORMATS",
    "add_reading",
    "add_threads",
    "at_least",
    "guarded",
    "is_function",
    "load_function",
    "make_encoder",
    "note",
    "number",
    "read_data",
    "size",
]

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


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    parser.add_argument(
        "--threads",
        type=at_least(1),
        default=1,
        metavar="N",
        help="threads to use (default: 1)",
    )


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
    embeddings: Embeddings | None = None,
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
        if embeddings is not None:
            raise ValueError(
                "--embeddings is for columns of words; the features of crfsuite and svmhmm files "
                "are expanded"
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
        embeddings=embeddings,
    )
