"""Run many commands, each in a process of its own whose streams may be closed, full or broken.

Starting an interpreter and importing the library takes longer than most commands. So one process
imports it and forks for each command; the child sets its streams up as an interpreter does when it
starts, and ends as one does, with its complaints about what it could not flush.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import NamedTuple

DRIVER = r"""
import json, os, sys
import numpy
import maxmargin._native, maxmargin.io.tagger_file, maxmargin.cli.train
from maxmargin.cli.main import main

NAMES = ("stdin", "stdout", "stderr")


def child(arguments, targets, encoding):
    for number, name in enumerate(NAMES):
        target = targets[number]
        if target is None:
            os.close(number)
        elif target == "broken":
            reading, writing = os.pipe()
            os.close(reading)
            os.dup2(writing, number)
            os.close(writing)
        else:
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            file = os.open(target, flags)
            os.dup2(file, number)
            os.close(file)
    for number, name in enumerate(NAMES):
        stream = None
        if targets[number] is not None:
            errors = "backslashreplace" if name == "stderr" else "strict"
            mode = "r" if number == 0 else "w"
            stream = open(number, mode, encoding=encoding, errors=errors, closefd=False,
                          buffering=1 if name == "stderr" else -1)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.exit(main(arguments))


cases = json.load(sys.stdin)
sys.stdin.close()
codes = []
for arguments, targets, encoding in cases:
    process = os.fork()
    if process == 0:
        child(arguments, targets, encoding)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
print(json.dumps(codes))
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: bytes


def end_of_each(folder, commands, *, closed=(), encoding="utf-8", **targets):
    """Run commands in a folder, one after the other; return how each ended.

    ``closed`` names streams that are closed; ``stdin``, ``stdout`` and ``stderr`` are files to use
    instead of an empty one, or "broken" for a pipe that nobody reads.
    """
    cases = []
    for k, command in enumerate(commands):
        files = {"stdin": os.devnull, "stdout": f"{k}.out", "stderr": f"{k}.err"} | targets
        streams = [None if name in closed else files[name] for name in files]
        cases.append([command.split() if isinstance(command, str) else command, streams, encoding])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(cases), cwd=folder, text=True,
        capture_output=True, check=True,
    )
    codes = json.loads(done.stdout)
    ended = []
    for k, code in enumerate(codes):
        files = [folder / f"{k}.out", folder / f"{k}.err"]
        found = [file.read_bytes() if file.exists() else b"" for file in files]
        for file in files:
            file.unlink(missing_ok=True)
        ended.append(Ended(code, *found))
        assert b"Traceback" not in ended[-1].err, (commands[k], ended[-1])
    return ended
