"""Feeds one input to the public entry points, and judges what they did."""

from __future__ import annotations

import contextlib
import io
import resource
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fuzzing.kinds import Input

__all__ = ["MAX_MESSAGE", "MAX_RSS", "Finding", "Outcome", "attempt", "judge"]

MAX_MESSAGE = 500  # characters of a line on standard error
MAX_RSS = 1 << 30


class Finding(NamedTuple):
    """What must not happen."""

    what: str
    detail: str


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str
    warned: tuple[str, ...] = ()


def attempt(given: Input) -> tuple[list[int], list[Finding]]:
    """Run the commands of an input in the current directory, which must be empty.

    Parameters
    ----------
    given : Input
        The file and the commands.

    Returns
    -------
    codes : list of int
        The exit codes of the commands that were run; a failure ends the list.
    findings : list of Finding
        What was wrong.
    """
    Path(given.name).write_bytes(given.data)
    codes: list[int] = []
    findings: list[Finding] = []
    before = peak_rss()
    try:
        for command in given.commands:
            there = _files()
            outcome = _run(command)
            codes.append(outcome.code)
            findings += judge(command, outcome, _files() - there)
            if outcome.code != 0:
                break
        if peak_rss() > max(MAX_RSS, before):
            findings.append(Finding("memory", f"peak of {peak_rss() >> 20} MB"))
    finally:
        for name in _files():
            Path(name).unlink()
    return codes, findings


def _files() -> set[str]:
    return {path.name for path in Path().iterdir()}


def judge(command: list[str], outcome: Outcome, left: set[str]) -> list[Finding]:
    """Return what is wrong with an outcome.

    Parameters
    ----------
    command : list of str
        The arguments.
    outcome : Outcome
        What came of them.
    left : set of str
        Names of the files that were not there before.
    """
    code, out, err, warned = outcome
    lines = err.splitlines()
    last = lines[-1] if lines else ""
    findings = [Finding("warning", text) for text in warned]
    if code == 1 or code not in (0, 2):
        findings.append(Finding(f"exit {code}", last))
    said = err.count(": error: ") == 1 and ": error: " in last
    if code == 2 and not said and command[0] != "@predict":
        findings.append(Finding("exit 2 without one line that says why", err[-300:]))
    if code != 0 and left:
        findings.append(Finding("files left behind", ", ".join(sorted(left))))
    if any(len(line) > MAX_MESSAGE for line in lines):
        findings.append(Finding("long message", max(lines, key=len)[:120]))
    if "Traceback" in err:
        findings.append(Finding("traceback", err[-300:]))
    if last.endswith("error: out of memory"):
        findings.append(Finding("memory", last))
    # What `tag` writes, and `info --text`, is data as it is in the files.
    shown = err + (out if command[0] in ("train", "eval") or command[2:] == [] else "")
    odd = next((c for c in shown if c not in "\n\t" and _controls(c)), None)
    if odd is not None:
        findings.append(Finding("control character", f"{odd!r} in {command[0]}: {last[:200]!r}"))
    return findings


def _controls(character: str) -> bool:
    """Whether a character could change what a terminal shows: control or direction."""
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS


_DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def peak_rss() -> int:
    """Return the most memory that this process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def _run(command: list[str]) -> Outcome:
    with _captured() as (out, err), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if command[0] == "@predict":
            code = _predict(command[1])
        else:
            from maxmargin.cli.main import main

            try:
                code = main(command)
            except Exception as error:  # main is to catch all of them
                code = 1
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    # Values that were mutated may well be of quite another size than the rest, and that is said.
    unexpected = [w for w in warned if w.category.__name__ != "ScalingWarning"]
    texts = tuple(f"{w.category.__name__}: {w.message}" for w in unexpected)
    return Outcome(code, _text(out), _text(err), texts)


def _predict(path: str) -> int:
    """Load a model as an estimator and predict; return 0, or 2 after an error of the right kind."""
    from maxmargin import SequenceTagger
    from maxmargin.errors import MaxMarginError

    try:
        tagger = SequenceTagger.load(path)
    except (MaxMarginError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    for X in ([[["a", "b", "c"], ["猫", "", "c"]]], [[{"w": "a"}, {"w": "b"}]], [[{}]]):
        with contextlib.suppress(ValueError, TypeError):  # most models take one of them
            tagger.predict(X)
    return 0


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Put files in memory in the place of the standard streams."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(3)]
    old = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield streams[1], streams[2]
    finally:
        sys.stdin, sys.stdout, sys.stderr = old


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
