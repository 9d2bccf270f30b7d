"""The one way in which maxmargin writes files: all of a file or nothing of it.

The bytes go to a temporary file in the directory of the target. At the end it is flushed to the
disk and renamed, so that a reader finds the old file or the new one, whatever fails in between.

A process that is killed leaves its temporary file behind. The name of a temporary file has a digest
of the target's name, and its writer holds a lock on it (`flock`, which ends with the process). So
whoever writes the same target next finds the temporary files of dead writers, and removes them,
without touching those of writers that are at work in other processes or threads.
"""

# No pathlib, for the sake of a quick start: nothing else that is needed here imports it.
# ruff: noqa: PTH105, PTH108, PTH112, PTH116, PTH118, PTH119, PTH120
from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["check_target", "replacing"]

_BUFFER = 1 << 16


def check_target(path: str | bytes | os.PathLike[Any]) -> int | None:
    """Make sure that a file can be replaced, as far as that can be known before writing it.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    int or None
        The mode of the file that is there; None if there is none.

    Raises
    ------
    OSError
        If its directory is missing, or it is there and not a regular file.
    """
    name = os.fsdecode(path)
    try:
        old = os.stat(name)
    except FileNotFoundError:
        if not os.path.basename(name):  # "", or "models/" without such a directory
            raise
        if not os.path.isdir(os.path.dirname(os.path.realpath(name))):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(old.st_mode):  # or root would replace /dev/null by a model
        raise OSError(errno.EINVAL, "Not a regular file", name)
    return old.st_mode & 0o777


@contextlib.contextmanager
def replacing(path: str | bytes | os.PathLike[Any]) -> Iterator[IO[bytes]]:
    """Open a file for writing, which takes the place of `path` when all of it is written.

    A new file gets the mode that the umask gives, an existing one keeps its own. A symbolic link
    stays, and its target is replaced. After an exception nothing has changed.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists.

    Yields
    ------
    binary file
        It can be written and sought. The context closes it.

    Raises
    ------
    OSError
        If the file cannot be written; ``filename`` is `path` as it was given.
    """
    name = os.fsdecode(path)
    mode = check_target(name)
    target = os.path.realpath(name)
    _remove_abandoned(target)
    with contextlib.ExitStack() as stack:
        try:
            temporary, descriptor = _create(target, mode)
        except OSError as error:
            raise _named(error, name) from error
        stack.callback(_unlink, temporary)
        raw = _NamedFile(descriptor, name)
        stack.callback(raw.close)  # and then nothing flushes the layer above once more
        file = io.BufferedWriter(raw, _BUFFER)
        yield file
        try:
            file.flush()
            os.fsync(descriptor)
            os.replace(temporary, target)
        except OSError as error:
            raise _named(error, name) from error


class _NamedFile(io.FileIO):
    """A file whose failures to write name the file that is being replaced.

    Only its own failures: what the caller reads meanwhile may fail too.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "wb")
        self._of = name

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _named(error, self._of) from error


def _named(error: OSError, name: str) -> OSError:
    """Return the error with the file as the caller knows it; the subclass comes by itself."""
    return error if error.errno is None else OSError(error.errno, error.strerror, name)


def _prefix(target: str) -> str:
    # Short, whatever the length of the target's name: that may be the longest there can be.
    name = os.fsencode(os.path.basename(target))
    return f".maxmargin-{zlib.crc32(name):08x}-"


def _create(target: str, mode: int | None) -> tuple[str, int]:
    """Create a temporary file for a target and lock it; return its name and descriptor."""
    directory = os.path.dirname(target)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        temporary = os.path.join(
            directory, f"{_prefix(target)}{os.getpid()}-{os.urandom(8).hex()}.part"
        )
        # With the old file's mode from the start, so that nobody else opens what will be private.
        descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink == 0:
                # Somebody took it for abandoned before it was locked.
                os.close(descriptor)
                continue
            if mode is not None:
                os.fchmod(descriptor, mode)  # also what the umask took away
        except BaseException:
            os.close(descriptor)
            _unlink(temporary)
            raise
        return temporary, descriptor


def _remove_abandoned(target: str) -> None:
    """Remove the temporary files of a target whose writers have died."""
    directory, prefix = os.path.dirname(target), _prefix(target)
    try:
        with os.scandir(directory) as entries:
            found = [
                entry.path
                for entry in entries
                if entry.name.startswith(prefix) and entry.name.endswith(".part")
            ]
    except OSError:
        return  # the directory is missing or may not be listed: opening the file then fails
    for file in found:
        with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(file)  # while it is locked: its writer, if just born, looks again
            finally:
                os.close(descriptor)


def _unlink(file: str) -> None:
    with contextlib.suppress(OSError):  # renamed, or there is nothing more to be done
        os.unlink(file)
