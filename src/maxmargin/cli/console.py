"""The standard streams of the command line: lines that are safe to print, closed and full streams.

Nothing that a file, a model or a name holds reaches the terminal as it is: `say`, `note` and
`complain` escape what moves the cursor or turns the direction of writing
(`maxmargin.printable`). Data that a command writes for other programs does not pass through here.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from maxmargin.printable import LINE, one_line, printable, shortened

__all__ = [
    "NO_INPUT",
    "NO_OUTPUT",
    "abandon",
    "complain",
    "flush",
    "naming",
    "note",
    "say",
    "show_traceback",
    "streams",
]

NO_INPUT = "standard input is closed; expected a file, or something to read from"
NO_OUTPUT = "standard output is closed; expected somewhere to write to"

WIDTH = 2000  # characters of a line of a report


@contextlib.contextmanager
def streams(name: str) -> Iterator[None]:
    """Prepare the standard streams for a command, and restore them at the end.

    Parameters
    ----------
    name : str
        The command; what warnings begin with.
    """
    import warnings

    before_format, before_error = warnings.formatwarning, sys.stderr
    with contextlib.ExitStack() as stack:
        if None in (sys.stdin, sys.stdout, sys.stderr):
            _occupy_closed()
        if sys.stderr is None:
            # print(file=None) would write to standard output.
            sys.stderr = stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123
        for stream in (sys.stdout, sys.stderr):
            # A stream that is not UTF-8 gets escapes where it would raise.
            if hasattr(stream, "reconfigure"):
                stack.callback(_set_errors, stream, stream.errors)
                _set_errors(stream, "backslashreplace")

        def as_line(message: Any, *_: Any, **__: Any) -> str:
            return f"{one_line(_encodable(f'{name}: warning: {message}', sys.stderr))}\n"

        warnings.formatwarning = as_line
        try:
            yield
        finally:
            warnings.formatwarning, sys.stderr = before_format, before_error


def _set_errors(stream: Any, errors: str | None) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed or full by now
        stream.reconfigure(errors=errors)


def _occupy_closed() -> None:
    """Put the null device where a standard stream was closed.

    The next file to be opened would get its number, and what is written to the stream by others
    would end up in that file.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)


def _encodable(text: str, stream: Any) -> str:
    """Return a text with escapes for what a stream has no characters for."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # Halves of surrogate pairs are escaped by `printable`, too.
    return text.encode(encoding, "backslashreplace").decode(encoding)


def say(text: str = "", *, needed: bool = False, tabs: bool = False) -> None:
    """Print lines to standard output.

    Parameters
    ----------
    text : str
        One line or several; very long ones are shortened.
    needed : bool
        Whether the lines are what the command was called for: a closed stream is an error then.
    tabs : bool
        Whether tabs stand between columns; else they are shown by their name.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    if sys.stdout is None:
        if needed:
            raise OSError(NO_OUTPUT)
        return
    lines = (
        "\t".join(printable(part, WIDTH) for part in (line.split("\t") if tabs else [line]))
        for line in text.split("\n")
    )
    try:
        print("\n".join(lines))
    except OSError as error:
        raise _of_output(error) from None


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Add the name of a file to errors of writing, which have none if the file is open already.

    Parameters
    ----------
    path : str
        The file; "-" is standard output.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.strerror is not None:
            error.filename = "standard output" if path == "-" else path
        raise


def flush() -> None:
    """Write what is left in the buffer of standard output.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _of_output(error) from None


def _of_output(error: OSError) -> OSError:
    if error.filename is None:
        error.filename = "standard output"
    return error


def note(text: str) -> None:
    """Print one line to standard error; a stream that is closed or full is no error."""
    _to_stderr(printable(_encodable(text, sys.stderr), LINE))


def complain(text: str, end: str = "") -> None:
    """Print the message of an error to standard error, as one line.

    Parameters
    ----------
    text : str
        The message.
    end : str
        What follows the message, and is not shortened with it.
    """
    line = one_line(_encodable(text, sys.stderr), LINE - len(end))
    _to_stderr(shortened(line + end, LINE))


def show_traceback() -> None:
    """Print the traceback of the exception that is being handled."""
    import traceback

    lines = traceback.format_exc().rstrip("\n").split("\n")
    _to_stderr("\n".join(printable(line, WIDTH) for line in lines))


def _to_stderr(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # full, or closed meanwhile
        abandon(sys.stderr)


def abandon(stream: Any) -> None:
    """Discard what is left in the buffer of a stream, for which Python would fail at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)
