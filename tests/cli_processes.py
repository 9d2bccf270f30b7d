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


for line in iter(sys.stdin.readline, ""):
    folder, arguments, targets, encoding = json.loads(line)
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        child(arguments, targets, encoding)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: bytes


class Commands:
    """The process that imports the library once; a context manager that ends it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()

    def run(self, folder, command, *, closed=(), encoding="utf-8", **targets):
        """Run a command in a folder; return how it ended.

        ``closed`` names streams that are closed; ``stdin``, ``stdout`` and ``stderr`` are files to
        use instead of an empty one, or "broken" for a pipe that nobody reads.
        """
        outputs = [folder / "stdout", folder / "stderr"]
        files = {"stdin": os.devnull, "stdout": str(outputs[0]), "stderr": str(outputs[1])}
        files |= targets
        streams = [None if name in closed else file for name, file in files.items()]
        words = command.split() if isinstance(command, str) else command
        self._process.stdin.write(json.dumps([str(folder), words, streams, encoding]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        found = [file.read_bytes() if file.exists() else b"" for file in outputs]
        for file in outputs:
            file.unlink(missing_ok=True)
        ended = Ended(code, *found)
        assert b"Traceback" not in ended.err, (command, ended)
        return ended
