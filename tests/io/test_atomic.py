"""The one writer of files: temporary files of writers that died, and of writers at work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin.io.atomic import check_target, replacing
from maxmargin.io.container import write_container
from maxmargin.io.text import open_for_writing
from maxmargin.report.files import save_picture
from maxmargin.solvers import SDM, solve
from native_problems import random_case


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def start_writer(path):
    """Start a process that writes a file, and waits before the end."""
    program = f"""
        import sys, time
        from maxmargin.io.atomic import replacing
        with replacing({str(path)!r}) as file:
            file.write(b"x" * 100_000)
            file.flush()
            print("ready", flush=True)
            sys.stdin.readline()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    return process


def test_what_a_killed_writer_leaves_is_removed(tmp_path):
    path, other = tmp_path / "model", tmp_path / "other"
    process = start_writer(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = names(tmp_path)
    assert re.fullmatch(r"\.maxmargin-[0-9a-f]{8}-\d+-[0-9a-f]{16}\.part", left)
    write(other)  # another target
    assert names(tmp_path) == [left, "other"]
    write(path)
    assert names(tmp_path) == ["model", "other"]
    assert path.read_bytes() == b"new"


def test_a_writer_at_work_is_left_alone(tmp_path):
    path = tmp_path / "model"
    process = start_writer(path)
    for _ in range(3):
        write(path)
    assert len(names(tmp_path)) == 2
    process.communicate(b"go on\n")
    assert process.returncode == 0
    assert names(tmp_path) == ["model"]
    assert path.read_bytes() == b"x" * 100_000


def test_many_writers_of_one_file(tmp_path):
    path = tmp_path / "model"
    errors = []

    def writes(k):
        try:
            for _ in range(40):
                write(path, bytes([k]) * 5000)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=writes, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert names(tmp_path) == ["model"]
    assert len(set(path.read_bytes())) == 1
    assert path.stat().st_size == 5000


def test_a_file_taken_for_abandoned_before_it_was_locked(tmp_path, monkeypatch):
    from maxmargin.io import atomic

    real, removed = atomic.fcntl.flock, []

    def late(descriptor, how):
        if not removed:  # somebody else was quicker
            removed.extend(names(tmp_path))
            (tmp_path / removed[0]).unlink()
        real(descriptor, how)

    monkeypatch.setattr(atomic.fcntl, "flock", late)
    write(tmp_path / "model")
    assert len(removed) == 1
    assert names(tmp_path) == ["model"]


def test_without_locks(tmp_path, monkeypatch):
    from maxmargin.io import atomic

    def none(descriptor, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(atomic.fcntl, "flock", none)
    write(tmp_path / "model")
    write(tmp_path / "model")
    assert names(tmp_path) == ["model"]


def test_all_files_are_written_here(tmp_path, monkeypatch):
    """Models, checkpoints, texts and pictures: each is on the disk before it has its name."""
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(names(tmp_path)))
    problem = random_case(np.random.default_rng(0), n_labels=3, lengths=[4], n_sparse=5).problem()

    def text(path):
        with open_for_writing(path, text=True) as file:
            file.write("text")

    writers = {
        "model": lambda path: write_container(path, "k", {}, {}),
        "checkpoint": lambda path: solve(
            problem, SDM(), C=1.0, max_passes=1, checkpoint=path, warn=False
        ),
        "text": text,
        "text.gz": text,
        "picture": lambda path: save_picture(path, b"picture"),
    }
    for name, call in writers.items():
        seen.clear()
        call(tmp_path / name)
        assert len(seen) == 1, name
        assert re.fullmatch(r"\.maxmargin-.*\.part", seen[0]), name
        (tmp_path / name).unlink()


def test_nobody_else_renames_files():
    source = Path(maxmargin.__file__).parent
    found = [
        path.relative_to(source).as_posix()
        for path in sorted(source.rglob("*.py"))
        if re.search(r"os\.replace\(|os\.rename\(|mkstemp|NamedTemporaryFile", path.read_text())
    ]
    assert found == ["io/atomic.py"]


def test_errors_of_others_keep_their_names(tmp_path):
    """What fails while the file is open need not be its fault."""

    def read_and_write():
        with replacing(tmp_path / "model"):
            (tmp_path / "input").read_bytes()

    with pytest.raises(FileNotFoundError) as caught:
        read_and_write()
    assert caught.value.filename == str(tmp_path / "input")
    with pytest.raises(OSError, match="of the input") as caught, replacing(tmp_path / "model"):
        raise OSError(5, "of the input")
    assert caught.value.filename is None
    assert names(tmp_path) == []


def test_check_target(tmp_path):
    assert check_target(tmp_path / "new") is None
    (tmp_path / "old").write_bytes(b"")
    (tmp_path / "old").chmod(0o640)
    assert check_target(tmp_path / "old") == 0o640
    for bad, error in (
        (tmp_path, IsADirectoryError),
        (tmp_path / "no" / "x", FileNotFoundError),
        (tmp_path / "old" / "x", NotADirectoryError),
        ("", FileNotFoundError),
    ):
        with pytest.raises(error) as caught:
            check_target(bad)
        assert caught.value.filename == str(bad)
