"""The command ``maxmargin``: finds the subcommand, runs it, and turns failures into one line.

A subcommand is a module of this folder with two functions: ``configure(parser)`` adds its options,
and ``run(options)`` does the work and returns an exit code and a summary, which ``--json`` prints.
A module imports what is large (NumPy, the library) in ``run`` only, so that ``--help`` and errors
come at once.

Exit codes: 0 done, 1 a fault of maxmargin itself, 2 bad input or usage, 130 interrupted. A reader
that has seen enough (``| head``) is no error.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from maxmargin.cli.console import (
    NO_OUTPUT,
    abandon,
    complain,
    flush,
    say,
    show_traceback,
    streams,
)

__all__ = ["main"]

#: Subcommand -> (module, what it does in one line).
COMMANDS = {
    "train": ("train", "learn a model from a file: a tagger, or what --task says"),
    "encode": ("encode", "training data of any size -> a file to train from, many times"),
    "path": ("path", "ever denser models, and the sparsest that is good enough"),
    "tag": ("tag", "tag a file, or standard input, with a model"),
    "predict": ("tag", "the same, for models of classes, trees, alignments, ..."),
    "eval": ("evaluate", "score a model on a file whose answers are known"),
    "suggest": ("suggest", "which unlabelled sequences to label next"),
    "constraints": ("constraints", "how often rules hold in labels and in predictions"),
    "calibrate": ("calibrate", "make probabilities of scores, by a held-out file"),
    "info": ("info", "what a model holds: sizes, certificate, strongest weights"),
    "convert": ("convert", "turn files of one format into another"),
    "template": ("template", "print a built-in feature template, to read or to edit"),
    "demo": ("demo", "read handwritten dates: real data, end to end, with a picture"),
}

EPILOG = """\
first steps:
  maxmargin demo
  maxmargin train train.tsv -m model.mm --template words
  maxmargin eval  -m model.mm test.tsv
  maxmargin tag   -m model.mm < new.tsv > tagged.tsv

"maxmargin COMMAND --help" explains the options of a command. Every command understands --json: one
JSON object as the last line of standard output. Exit codes: 0 done, 2 bad input, 130 interrupted.
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Leaves room for the longest name of a command, whose indentation argparse does not count."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 4 + max(map(len, COMMANDS))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: error: {message}", f" (see {self.prog} --help)")
        self.exit(2)

    def print_help(self, file: Any = None) -> None:
        if file is None and sys.stdout is None:  # argparse would take standard error
            raise OSError(NO_OUTPUT)
        super().print_help(file)


def _command(command: str, arguments: Sequence[str]) -> Any:
    """Return what has ``configure`` and ``run`` of a subcommand."""
    if command == "train":
        from maxmargin.cli.tasks.registry import CHAIN, asked_task

        task = asked_task(arguments)
        if task != CHAIN:
            from maxmargin.cli.tasks.train import TaskTraining

            return TaskTraining(task)
    return import_module(f"maxmargin.cli.{COMMANDS[command][0]}")


def _parser(command: str | None, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser; only the named subcommand gets its options, which saves its imports."""
    parser = _Parser(
        prog="maxmargin",
        description="Large-margin learning of structured outputs: taggers with a certificate.",
        epilog=EPILOG,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, (_, summary) in COMMANDS.items():
        sub = subparsers.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == command:
            _command(name, arguments).configure(sub)
            sub.add_argument(
                "--json",
                action="store_true",
                help="print a JSON object as the last line of standard output",
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None: those of the process.

    Returns
    -------
    int
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((a for a in arguments if not a.startswith("-")), None)
    name = f"maxmargin {command}" if command in COMMANDS else "maxmargin"
    with streams(name):
        try:
            code = _run(arguments, command)
            flush()
        except KeyboardInterrupt:
            code = _fail(name, "interrupted", 130)
        except BrokenPipeError:  # The reader of a pipe has seen enough.
            code = 0
        except MemoryError as error:
            text = str(error)  # of C++ it says std::bad_alloc
            code = _fail(name, "out of memory" if text in ("", "std::bad_alloc") else text, 2)
        except OSError as error:
            code = _fail(name, _describe(error), 2)
        except (ValueError, TypeError, FloatingPointError) as error:
            # Notes say where in the user's code or data it was.
            notes = getattr(error, "__notes__", ())
            code = _fail(name, "; ".join([str(error), *notes]), 2)
        except Exception as error:
            if os.environ.get("MAXMARGIN_DEBUG"):
                raise
            what = f"{type(error).__name__}: {error}"
            code = _fail(name, f"a fault of maxmargin, please report it: {what}", 1)
        try:
            flush()  # of what was printed before an error, perhaps
        except (OSError, ValueError):
            abandon(sys.stdout)
    return code


def _run(arguments: list[str], command: str | None) -> int:
    """Run the command line; failures are exceptions."""
    parser = _parser(command, arguments)
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:  # argparse would leave out which command it was
            if options.command is not None:
                parser.prog += f" {options.command}"
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as end:  # after --help or a usage error, which argparse has printed
        return int(end.code or 0)
    if options.version:
        import maxmargin

        say(f"maxmargin {maxmargin.__version__}", needed=True)
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    if options.json and sys.stdout is None:
        raise OSError(NO_OUTPUT)
    options.arguments = arguments  # for those who show them
    code, summary = _command(options.command, arguments).run(options)
    if options.json:
        import json

        text = json.dumps(_plain(summary), allow_nan=False)
        print(text.replace("\x7f", "\\u007f"))  # the one control character that JSON leaves
    return int(code)


def _fail(name: str, message: str, code: int) -> int:
    if os.environ.get("MAXMARGIN_DEBUG") and code != 130:
        show_traceback()
    complain(f"{name}: error: {message}")
    return code


def _describe(error: OSError) -> str:
    """Put a failure of the system into words: the file first."""
    if error.strerror is None:
        return str(error)
    if error.filename is None:
        return error.strerror
    name = error.filename
    text = os.fsdecode(name) if isinstance(name, str | bytes) else str(name)
    return f"{text}: {error.strerror[0].lower()}{error.strerror[1:]}"


def _plain(value: Any) -> Any:
    """Turn NumPy numbers into Python's, and what is no number into null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
