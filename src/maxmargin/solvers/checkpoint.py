"""Checkpoints: a run on disk, so that it can go on later, bit for bit.

One ``.npz`` file without pickle: the machine's arrays and one JSON text with everything else. It is
written as all files are (`maxmargin.io.atomic`), so that a crash leaves the old one.

The arrays are stored, not compressed. The reader takes nothing else, so that no file can make it
use more memory than the file itself has bytes, and it reads no members but those that it knows.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import ModelFormatError
from maxmargin.io.atomic import replacing
from maxmargin.memory import require_memory
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.state import RunState

__all__ = ["Beside", "load_beside", "load_checkpoint", "read_identity", "save_checkpoint"]

FORMAT = "maxmargin checkpoint"
VERSION = 1
#: Bytes of the JSON text, at most: some hundred for each pass.
MAX_ABOUT = 256 << 20
_ENGINE, _BESIDE = "engine_", "beside_"
_ZIP = b"PK\x03\x04"


class Beside(NamedTuple):
    """What a loop around the driver keeps in the checkpoints of its present run.

    Attributes
    ----------
    values : dict
        Plain values that JSON can hold.
    arrays : dict of str to ndarray
        Arrays of numbers.
    """

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_checkpoint(
    path: str | os.PathLike[str],
    machine: Machine,
    run: RunState,
    identity: dict[str, Any],
    beside: Beside | None = None,
) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists.
    machine : Machine
        The machine between two passes.
    run : RunState
        The driver's and solver's state.
    identity : dict
        What the run solves (sizes, C, solver); a resumed run must have the same.
    beside : Beside or None
        What a loop around the driver keeps there.
    """
    about = {"format": FORMAT, "version": VERSION, "identity": identity, "run": asdict(run)}
    if beside is not None:
        about["beside"] = beside.values
    # (Arrays and numbers of random generators are written as lists.)
    text = json.dumps(about, default=lambda value: value.tolist())
    state = machine.state()
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_array(archive, "about", np.frombuffer(text.encode(), dtype=np.uint8))
        for name in state:  # one after the other: all of them may be more than the memory
            _write_array(archive, f"{_ENGINE}{name}", state[name])
        for name, array in (beside.arrays if beside is not None else {}).items():
            _write_array(archive, f"{_BESIDE}{name}", array)


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def load_checkpoint(
    path: str | os.PathLike[str], machine: Machine, identity: dict[str, Any]
) -> RunState:
    """Read a checkpoint into a machine of the same problem.

    Parameters
    ----------
    path : path-like
        The file.
    machine : Machine
        A new machine; it gets the saved multipliers and weights.
    identity : dict
        What the present run solves.

    Returns
    -------
    RunState
        The driver's and solver's state.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFormatError
        If it is not a checkpoint, damaged, or of another problem.
    """
    name = os.fspath(path)
    with _opened(path, name) as (about, stored):
        run = RunState(**about["run"])
        saved = dict(about["identity"])
        _check_identity(name, saved, identity)
        _check_widened(run, name)
        if run.widened is not None and machine.widens:
            n_bytes = 3 * 8 * int(machine.weights.size)
            require_memory("a run that went on with 8-byte weights", n_bytes)
            machine.widen()
        arrays: Any = _Prefixed(stored, _ENGINE)
        try:
            # (Those of a machine that keeps planes in a file may be too many: it reads one by one.)
            machine.restore(arrays if getattr(machine, "windowed", False) else dict(arrays))
        except ValueError as error:
            if isinstance(error, ModelFormatError):
                raise
            raise ModelFormatError(f"{name}: {error}") from error
    return run


def load_beside(path: str | os.PathLike[str]) -> Beside | None:
    """Read what a loop around the driver kept in a checkpoint.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    Beside or None
        None: the checkpoint is of a run without such a loop.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFormatError
        If it is not a checkpoint, or damaged.
    """
    name = os.fspath(path)
    with _opened(path, name) as (about, stored):
        values = about.get("beside")
        if values is None:
            return None
        if not isinstance(values, dict):
            raise ModelFormatError(f"{name}: the state of the outer loop is damaged")
        return Beside(values, dict(_Prefixed(stored, _BESIDE)))


@contextlib.contextmanager
def _opened(
    path: str | os.PathLike[str], name: str
) -> Iterator[tuple[dict[str, Any], _Members]]:
    """Open a checkpoint, with its text; whatever fails on the way says that it is not readable."""
    try:
        with _members(path, name) as stored:
            about = json.loads(bytes(stored["about"]).decode())
            if about["format"] != FORMAT:
                raise ModelFormatError(f"{name} is not a maxmargin checkpoint")
            if about["version"] != VERSION:
                raise ModelFormatError(
                    f"{name} is a checkpoint of version {about['version']}; "
                    f"this maxmargin reads version {VERSION}"
                )
            yield about, stored
    except (FileNotFoundError, PermissionError, ModelFormatError, MemoryError):
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # of the temporary file of planes
            raise
        raise _not_readable(name, error) from error
    except Exception as error:  # zipfile and numpy raise many kinds for a damaged file
        raise _not_readable(name, error) from error


def _not_readable(name: str, error: Exception) -> ModelFormatError:
    return ModelFormatError(f"{name} is not a readable checkpoint: {_cut(str(error), 200)}")


def _check_identity(name: str, saved: dict[str, Any], identity: dict[str, Any]) -> None:
    """Refuse the checkpoint of another run."""
    for key, wanted in identity.items():
        found = saved.get(key)
        if found != wanted:
            there, here = _apart(repr(found), repr(wanted))
            raise ModelFormatError(
                f"{name} is a checkpoint of another run: {key} is {there} there and {here} here"
            )


def read_identity(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what the run of a checkpoint solves.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    dict
        Sizes, C, solver, regulariser and a hash of the data, as the file says.

    Raises
    ------
    ModelFormatError
        If it is not a checkpoint, or damaged.
    """
    name = os.fspath(path)
    with _opened(path, name) as (about, _):
        return dict(about["identity"])


def _check_widened(run: RunState, name: str) -> None:
    """Refuse what cannot be the pass after which the weights became 8-byte ones."""
    widened = run.widened
    if widened is None:
        return
    passes = len(run.history) if isinstance(run.history, list) else 0
    whole = isinstance(widened, int) and not isinstance(widened, bool)
    if not whole or not 0 <= widened <= passes:
        raise ModelFormatError(
            f"{name}: the state of the run is damaged: it went on with 8-byte weights after pass "
            f"{_cut(str(widened))}, and has {passes} passes"
        )


class _Members(Mapping[str, NDArray[Any]]):
    """The text and the machine's arrays, by their names without ``.npy``; read on demand."""

    def __init__(
        self, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str
    ) -> None:
        self._archive, self._members, self._name = archive, members, name

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, key: str) -> NDArray[Any]:
        return _read_array(self._archive, self._members[key], self._name)


class _Prefixed(Mapping[str, NDArray[Any]]):
    """The arrays whose names begin with a prefix, by their names without it."""

    def __init__(self, members: _Members, prefix: str) -> None:
        self._members, self._prefix = members, prefix

    def __iter__(self) -> Iterator[str]:
        names = (key for key in self._members if key.startswith(self._prefix))
        return (key.removeprefix(self._prefix) for key in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, key: str) -> NDArray[Any]:
        return self._members[self._prefix + key]


@contextlib.contextmanager
def _members(path: str | os.PathLike[str], name: str) -> Iterator[_Members]:
    """Open the archive and look at what it lists."""
    with open(path, "rb", opener=_open) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ModelFormatError(f"{name} is not a maxmargin checkpoint: not a regular file")
        start = file.read(8)
        if not start.startswith(_ZIP):
            raise ModelFormatError(f"{name} is not a maxmargin checkpoint: {_begins(start)}")
        with zipfile.ZipFile(file) as archive:
            members = [
                member
                for member in archive.infolist()
                if member.filename == "about.npy"
                or (
                    member.filename.startswith((_ENGINE, _BESIDE))
                    and member.filename.endswith(".npy")
                )
            ]
            names = [member.filename.removesuffix(".npy") for member in members]
            if "about" not in names:
                raise ModelFormatError(
                    f"{name} is not a maxmargin checkpoint: it is a zip archive without the text "
                    "that describes the run"
                )
            if len(set(names)) != len(names):
                raise ModelFormatError(f"{name}: two members of the archive have the same name")
            for member in members:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise ModelFormatError(
                        f"{name}: the member {_cut(member.filename)} is compressed, which "
                        "maxmargin never does; expected a checkpoint as maxmargin wrote it"
                    )
            # Several members may name the same bytes of a file, each of them a large array.
            total = sum(member.file_size for member in members)
            if total > about.st_size:
                raise ModelFormatError(
                    f"{name}: its arrays would have {total} bytes and the file has "
                    f"{about.st_size}; expected no more"
                )
            of_planes = sum(
                member.file_size
                for member in members
                if member.filename.startswith(f"{_ENGINE}window_")  # read one by one
            )
            require_memory("the arrays of the checkpoint", total - of_planes)
            yield _Members(archive, dict(zip(names, members, strict=True)), name)


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for somebody to write into it.
    return os.open(path, flags | os.O_NONBLOCK)


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    """Read one member, after a look at what it says of itself."""
    what = f"{name}: the array {_cut(member.filename)}"
    with archive.open(member) as file:
        try:
            shape, fortran, dtype = _array_header(file)
        except (Exception, MemoryError):  # numpy evaluates a text, which fails in many ways
            raise ModelFormatError(f"{what} has no header that can be read") from None
        if dtype.kind not in "biuf":
            raise ModelFormatError(f"{what} is not of numbers ({_cut(str(dtype))})")
        left = member.file_size - file.tell()
        if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != left:
            raise ModelFormatError(
                f"{what} says that it has the shape {_cut(str(shape))} of {dtype}, but there are "
                f"{left} bytes"
            )
        if member.filename == "about.npy" and left > MAX_ABOUT:
            raise ModelFormatError(f"{what} has {left} bytes; expected at most {MAX_ABOUT}")
        content = np.empty(left, dtype=np.uint8)
        view, at = content.data, 0
        reader: Any = file
        while n := reader.readinto(view[at:]):  # its checksum is compared with the last bytes
            at += n
    if at != left:
        raise ModelFormatError(f"{what} is cut short")
    return content.view(dtype).reshape(shape, order="F" if fortran else "C")


def _array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _begins(start: bytes) -> str:
    """Say what a file that is no archive may be, from its first bytes."""
    if not start:
        return "the file is empty"
    if start == b"maxmargn":
        return "it is a model file"
    if start.startswith(b"\x1f\x8b"):
        return "it is compressed with gzip"
    return f"it begins with {start!r}"


def _cut(text: str, most: int = 60) -> str:
    """Return a text for a message, on one line and not long."""
    shown = repr(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _apart(found: str, wanted: str) -> tuple[str, str]:
    """Cut two long texts down to the items, parted by commas, in which they differ."""
    if max(len(found), len(wanted)) <= 80:
        return found, wanted
    first, second = found.split(", "), wanted.split(", ")
    own = [
        ", ".join(item for item in a if item not in b)
        for a, b in ((first, second), (second, first))
    ]
    return f"… {_cut(own[0], 120)} …", f"… {_cut(own[1], 120)} …"
