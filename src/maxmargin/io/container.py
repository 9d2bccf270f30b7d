"""One file for a model: versioned, checksummed, without pickle; read, or mapped into memory.

The file, all numbers little-endian::

    0    8 bytes   b"maxmargn"
    8    uint32    version of the format: 1
    12   uint32    zero
    16   uint64    length of the header
    24   uint64    checksum of the 24 bytes before it and of the header
    32   header    {"arrays":[...],"kind":...,"meta":{...}} as UTF-8 JSON in its one canonical form
         arrays    each at the next multiple of 64, zeros between, nothing after the last

Every array is listed in the header with name, dtype, shape, offset, nbytes and checksum. Offset
and nbytes follow from the rest; they must agree with it, so that no file can be read in two ways.
Every byte is either covered by a checksum or known to be zero, so that all damage is found.
Checksums find accidents only. Files that were made to do harm have good checksums, so every value
is checked as well.
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import stat
import struct
import sys
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.errors import ModelFormatError
from maxmargin.io.atomic import replacing
from maxmargin.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Container", "Header", "read_container", "read_header", "write_container"]

MAGIC = b"maxmargn"
VERSION = 1
ALIGNMENT = 64
MAX_HEADER = 64 << 20  # parsed JSON takes some twenty times its length
MAX_NDIM = 4
MAX_DEPTH = 64  # of lists and dicts in meta: far below Python's limit for recursion
MAX_BITS = 2048  # of an integer in meta: Python can be set to read no more than 640 digits

_SLAB = 1 << 24  # bytes of a mapped array that are written at a time
_MOST = 1 << 30  # bytes read at a time: Linux does no more than 2 GB
_MUCH = 1 << 26  # bytes that are compared with the memory there is
_FIXED = struct.Struct("<8sIIQ")
_CHECKSUM = struct.Struct("<Q")
_HEADER_AT = _FIXED.size + _CHECKSUM.size
_DTYPES = {
    code: np.dtype("<" + code)
    for code in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
}
_ENTRY_KEYS = {"name", "dtype", "shape", "offset", "nbytes", "checksum"}


class Container:
    """The content of a model file.

    Attributes
    ----------
    path : str
        The file it was read from.
    kind : str
        What the file holds, for example ``"tagger"``.
    version : int
        Version of the format.
    meta : dict
        Everything that is not an array.
    arrays : dict of str to ndarray
        Read-only, in the order of the file. Each has memory of its own, at a multiple of 64 bytes;
        those of a file that was mapped are views of the map, and each keeps it alive.
    n_bytes : int
        Size of the file.
    checksums : dict of str to int
        Of the arrays.
    """

    __slots__ = ("arrays", "checksums", "kind", "meta", "n_bytes", "path", "version")

    def __init__(
        self,
        path: str,
        kind: str,
        meta: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        *,
        version: int,
        n_bytes: int,
        checksums: dict[str, int] | None = None,
    ) -> None:
        self.checksums = checksums or {}
        self.path = path
        self.kind = kind
        self.version = version
        self.meta = meta
        self.arrays = arrays
        self.n_bytes = n_bytes

    def __repr__(self) -> str:
        return (
            f"<Container {self.path!r}: a {self.kind!r} with {len(self.arrays)} arrays, "
            f"{self.n_bytes} bytes>"
        )


# Writing


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    meta: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> int:
    """Write a model file, all of it or nothing.

    The same arguments give the same bytes. An existing file keeps its mode; a symbolic link stays
    and its target is replaced.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists.
    kind : str
        What the file holds, for example ``"tagger"``.
    meta : dict
        What JSON can hold: None, bool, int, finite float, str, lists and dicts with str keys.
        NumPy's bool, int and float scalars become Python's; tuples come back as lists.
    arrays : mapping of str to ndarray
        Integers and floats of 1 to 8 bytes with at most 4 dimensions, written in this order. Those
        that are mapped from files (``np.memmap``) may be larger than the memory.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    TypeError, ValueError
        If the file could not hold an argument; the message names the place. Nothing was written.
    OSError
        If the file cannot be written. What was there before is untouched.
    """
    name = os.fsdecode(path)
    if not isinstance(kind, str):
        raise TypeError(f"kind is a {type(kind).__name__}; expected a str")
    if not isinstance(meta, dict):
        raise TypeError(f"meta is a {type(meta).__name__}; expected a dict")
    header = {"kind": _text(kind, "kind"), "meta": _plain(meta, "meta", 0), "arrays": []}
    pieces = []
    for key, array in arrays.items():
        entry, piece = _described(key, array)
        header["arrays"].append(entry)
        pieces.append(piece)
    head = _placed(header)
    offsets = [entry["offset"] for entry in header["arrays"]]
    return _replace(name, [(0, head), *zip(offsets, pieces, strict=True)])


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} is {_short(value)}; expected text that UTF-8 can hold") from None
    return str.__str__(value)  # of np.str_ and of enums that are strings


def _plain(value: Any, where: str, depth: int) -> Any:
    """Return the value as JSON will give it back, or raise an error that names the place."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{where} is nested too deep; expected at most {MAX_DEPTH} levels")
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int):
        number = int(value)
        if number.bit_length() > MAX_BITS:
            raise ValueError(
                f"{where} is an integer of {number.bit_length()} bits; expected at most {MAX_BITS}"
            )
        return number
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)}; expected a finite number")
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        plain = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; expected keys that are str")
            inner = f"{where}[{_short(key)}]"
            plain[_text(key, inner)] = _plain(item, inner, depth + 1)
        return plain
    raise TypeError(f"{where} is a {type(value).__name__}; expected what JSON can hold")


def _described(key: str, array: NDArray[Any]) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    """Return the entry of an array (not placed yet) and its bytes."""
    if not isinstance(key, str):
        raise TypeError(f"arrays has the key {key!r}; expected keys that are str")
    where = f"arrays[{_short(key)}]"
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{where} is a {type(array).__name__}; expected an ndarray")
    code = f"{array.dtype.kind}{array.dtype.itemsize}"
    if code not in _DTYPES:
        raise TypeError(f"{where} has dtype {array.dtype}; expected one of {', '.join(_DTYPES)}")
    if array.ndim > MAX_NDIM:
        raise ValueError(f"{where} has {array.ndim} dimensions; expected at most {MAX_NDIM}")
    mapped = isinstance(array, np.memmap)
    piece = np.ascontiguousarray(array, dtype=_DTYPES[code]).reshape(-1).view(np.uint8)
    return {
        "name": _text(key, where),
        "dtype": code,
        "shape": list(array.shape),
        "offset": 0,
        "nbytes": piece.size,
        "checksum": _native.checksum(piece, mapped),
    }, array.reshape(-1).view(np.uint8) if mapped else piece


def _placed(header: dict[str, Any]) -> bytes:
    """Fill in the offsets of the arrays; return the file's bytes up to the end of the header."""
    # The header's length depends on the offsets, which depend on its length. Both only ever grow
    # from one round to the next, and the number of digits has an end.
    text = b""
    length = -1
    while len(text) != length:
        length = len(text)
        at = _HEADER_AT + length
        for entry in header["arrays"]:
            entry["offset"] = _aligned(at)
            at = entry["offset"] + entry["nbytes"]
        text = _canonical(header)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"meta and the list of arrays take {len(text)} bytes; expected at most {MAX_HEADER}"
        )
    fixed = _FIXED.pack(MAGIC, VERSION, 0, len(text))
    return fixed + _CHECKSUM.pack(_native.checksum(fixed + text)) + text


def _replace(name: str, pieces: list[tuple[int, Any]]) -> int:
    """Write pieces at their offsets to a new file, then put it in the place of `name`."""
    at = 0
    with replacing(name) as file:
        for offset, piece in pieces:
            file.write(bytes(offset - at))
            if isinstance(piece, np.memmap):
                _write_mapped(file, piece)
            else:
                file.write(piece)
            at = offset + len(piece)
    return at


def _write_mapped(file: IO[bytes], piece: np.memmap[Any, Any]) -> None:
    """Write bytes that are mapped from a file, and give back their pages."""
    pages: mmap.mmap = piece._mmap  # type: ignore[attr-defined]
    for at in range(0, len(piece), _SLAB):
        file.write(piece[at : at + _SLAB].data)
        pages.madvise(mmap.MADV_DONTNEED)


# Reading


class Header(NamedTuple):
    """The header of a model file, without the list of its arrays.

    Attributes
    ----------
    path : str
        The file it was read from.
    kind : str
        What the file holds.
    meta : dict
        Everything that is not an array.
    version : int
        Version of the format.
    n_bytes : int
        Size of the file.
    """

    path: str
    kind: str
    meta: dict[str, Any]
    version: int
    n_bytes: int


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read the header of a model file and verify it; the arrays are not looked at.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    Header
        The header.

    Raises
    ------
    ModelFormatError, OSError
        As `read_container`.
    """
    name = os.fsdecode(path)
    with _Source(name, mmap=False) as source:
        header, _ = _read_header(name, source)
        return Header(name, header["kind"], header["meta"], VERSION, source.size)


def read_container(
    path: str | os.PathLike[str], kind: str | None = None, *, mmap: bool = False
) -> Container:
    """Read and verify a model file.

    Parameters
    ----------
    path : path-like
        The file.
    kind : str or None
        What the file must hold; None takes any kind.
    mmap : bool, default=False
        Whether the arrays are left in the file, mapped into memory. Processes that map one file
        share its memory. But nobody may then write into the file or cut it short (``cp new.mm
        model.mm`` does both) for as long as an array is in use: the arrays would change after they
        were checked, or the process be killed (SIGBUS). What maxmargin itself writes is a new file
        in the place of the old one, which does no harm.

    Returns
    -------
    Container
        The content.

    Raises
    ------
    ModelFormatError
        If the file is not a model, damaged, of a newer format or of another kind.
    MemoryError
        If it needs more memory than there is.
    OSError
        If there is no such file, it is a directory, or it may not be read.
    """
    name = os.fsdecode(path)
    with _Source(name, mmap=mmap) as source:
        header, end = _read_header(name, source)
        if kind is not None and header["kind"] != kind:
            raise _bad(name, f"holds a {_short(header['kind'])}, expected a {kind!r}")
        entries = header["arrays"]
        header_end = end
        seen: set[str] = set()
        for i, entry in enumerate(entries):
            end = _check_entry(name, entry, i, end)
            if entry["name"] in seen:
                raise _bad(name, f"two arrays are called {_short(entry['name'])}; expected one")
            seen.add(entry["name"])
        if source.size < end:
            raise _cut_short(name, source.size, f"{end}")
        if source.size > end:
            raise _bad(
                name, f"the file has {source.size} bytes; expected {end}: something was appended"
            )
        if not mmap and end > _MUCH:
            require_memory(
                f"the model in {name}", end, advice="map it (mmap=True), or use a smaller model"
            )
        arrays: dict[str, NDArray[Any]] = {}
        at = header_end
        for entry in entries:
            key, offset = entry["name"], entry["offset"]
            if source.read(at, offset).strip(b"\0"):
                raise _bad(
                    name, f"bytes {at} to {offset} are not all zero; expected padding: damaged"
                )
            at = offset + entry["nbytes"]
            piece = source.array(offset, at)
            if _native.checksum(piece, mmap) != entry["checksum"]:
                raise _bad(name, f"array {_short(key)} does not match its checksum: it is damaged")
            array = piece.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
            array = array.astype(entry["dtype"], copy=False)  # copies on big-endian machines alone
            array.flags.writeable = False
            arrays[key] = array
    checksums = {entry["name"]: entry["checksum"] for entry in entries}
    return Container(
        name,
        header["kind"],
        header["meta"],
        arrays,
        version=VERSION,
        n_bytes=source.size,
        checksums=checksums,
    )


class _Source:
    """The bytes of a file: read when asked for, or mapped."""

    def __init__(self, name: str, *, mmap: bool) -> None:
        self._name = name
        self._whole: NDArray[np.uint8] | None = None
        # Without O_NONBLOCK, opening a FIFO waits for somebody to write into it.
        self._descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            about = os.fstat(self._descriptor)
            if stat.S_ISDIR(about.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
            if not stat.S_ISREG(about.st_mode):
                raise _bad(name, "not a regular file; expected a maxmargin model")
            if about.st_size == 0:
                raise _bad(name, "the file is empty; expected a maxmargin model")
            self.size = about.st_size
            if mmap:
                self._whole = np.frombuffer(self._mapped(), dtype=np.uint8)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _mapped(self) -> mmap.mmap:
        try:
            return mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._name) from error
        except ValueError:  # shorter than a moment ago
            raise self._changed() from None

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)  # a map has its own

    def read(self, begin: int, end: int) -> bytes:
        """Return a few bytes; fewer only at the end of the file."""
        return self.array(begin, min(end, self.size)).tobytes()

    def array(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Return bytes as an array at a multiple of 64, if they are in the file."""
        if self._whole is not None:
            return self._whole[begin:end]
        size = end - begin
        room = np.empty(size + ALIGNMENT, dtype=np.uint8)
        first = -room.ctypes.data % ALIGNMENT
        piece: NDArray[np.uint8] = room[first : first + size]
        view, at = piece.data, 0
        while at < size:
            try:
                n = os.preadv(self._descriptor, [view[at : at + _MOST]], begin + at)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._name) from error
            if n == 0:
                raise self._changed()
            at += n
        room.flags.writeable = piece.flags.writeable = False
        return piece

    def _changed(self) -> ModelFormatError:
        return _bad(self._name, "the file is being changed by somebody; expected it whole")


def _read_header(name: str, source: _Source) -> tuple[dict[str, Any], int]:
    """Return the header, with the types of its three values checked, and where it ends."""
    start = source.read(0, len(MAGIC))
    if start[:2] == b"\x1f\x8b":
        raise _bad(name, "compressed with gzip; expected a maxmargin model: unpack it first")
    if not MAGIC.startswith(start):
        dots = "..." if source.size > 4 else ""
        raise _bad(name, f"not a maxmargin model (begins with {start[:4]!r}{dots})")
    if source.size < _HEADER_AT:
        raise _cut_short(name, source.size, f"at least {_HEADER_AT}")
    fixed = source.read(0, _FIXED.size)
    _, version, reserved, length = _FIXED.unpack(fixed)
    if version > VERSION:
        raise _bad(
            name,
            f"written by a newer version of maxmargin (format {version}; this one reads up to "
            f"{VERSION})",
        )
    if version != VERSION or reserved != 0:
        raise _bad(
            name,
            f"the format is {version} and the reserved field {reserved}; expected {VERSION} and 0: "
            "damaged",
        )
    if length > MAX_HEADER:
        raise _bad(name, f"the header has {length} bytes; expected at most {MAX_HEADER}")
    end = _HEADER_AT + length
    if source.size < end:
        raise _cut_short(name, source.size, f"at least {end}")
    text = source.read(_HEADER_AT, end)
    (checksum,) = _CHECKSUM.unpack(source.read(_FIXED.size, _HEADER_AT))
    if _native.checksum(fixed + text) != checksum:
        raise _bad(name, "the header does not match its checksum: it is damaged")
    header = _parsed(name, text)
    _check_keys(name, "the header", header, {"kind", "meta", "arrays"})
    for key, wanted in (("kind", str), ("meta", dict), ("arrays", list)):
        _check_type(name, f"{key!r} in the header", header[key], wanted)
    return header, end


def _parsed(name: str, text: bytes) -> Any:
    try:
        header = json.loads(text.decode())
        # One comparison finds all that JSON leaves open or Python adds to it: keys that occur
        # twice, NaN and Infinity, numbers that overflow, halves of surrogate pairs.
        canonical = _canonical(header) == text
    except RecursionError:
        raise _bad(name, "the header is nested too deep; expected a few levels") from None
    except ValueError:
        canonical = False
    if not canonical:
        raise _bad(name, "the header is not JSON in the form that maxmargin writes")
    return header


def _check_entry(name: str, entry: Any, index: int, end: int) -> int:
    """Check the entry of an array that follows what ends at `end`; return where it ends."""
    _check_keys(name, f"entry {index} of the arrays", entry, _ENTRY_KEYS)
    _check_type(name, f"the name of array {index}", entry["name"], str)
    what = f"array {_short(entry['name'])}"
    code, shape = entry["dtype"], entry["shape"]
    _check_type(name, f"the dtype of {what}", code, str)
    if code not in _DTYPES:
        raise _bad(name, f"{what} has dtype {_short(code)}; expected one of {', '.join(_DTYPES)}")
    _check_type(name, f"the shape of {what}", shape, list)
    if len(shape) > MAX_NDIM:
        raise _bad(name, f"{what} has {len(shape)} dimensions; expected at most {MAX_NDIM}")
    itemsize = _DTYPES[code].itemsize
    spread = itemsize
    for size in shape:
        _check_type(name, f"a size in the shape of {what}", size, int)
        if size < 0:
            raise _bad(name, f"{what} has a size of {_short(size)}; expected 0 or more")
        # NumPy multiplies the sizes with zeros left out, and so an empty array can be too large.
        spread *= size or 1
    if spread > sys.maxsize:
        raise _bad(name, f"the shape of {what} is larger than any memory")
    expected: dict[str, int] = {"nbytes": math.prod(shape) * itemsize, "offset": _aligned(end)}
    for key, value in expected.items():
        _check_type(name, f"{key!r} of {what}", entry[key], int)
        if entry[key] != value:
            raise _bad(name, f"{key!r} of {what} is {_short(entry[key])}; expected {value}")
    _check_type(name, f"the checksum of {what}", entry["checksum"], int)
    return expected["offset"] + expected["nbytes"]


def _check_keys(name: str, what: str, value: Any, wanted: set[str]) -> None:
    _check_type(name, what, value, dict)
    if value.keys() != wanted:
        odd = min(value.keys() ^ wanted)
        problem = "is missing" if odd in wanted else "is unknown"
        raise _bad(name, f"{_short(odd)} in {what} {problem}; expected {', '.join(sorted(wanted))}")


def _check_type(name: str, what: str, value: Any, wanted: type) -> None:
    if type(value) is not wanted:  # not isinstance: True would pass for an integer
        raise _bad(name, f"{what} is {_short(value)}; expected a {wanted.__name__}")


# Both


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _canonical(header: Any) -> bytes:
    return json.dumps(
        header, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def _short(value: Any) -> str:
    """Return a few characters on one line: a hostile file may hold megabytes of anything."""
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = repr(value[:61] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _bad(name: str, what: str) -> ModelFormatError:
    return ModelFormatError(f"{name}: {what}")


def _cut_short(name: str, size: int, expected: str) -> ModelFormatError:
    return _bad(name, f"the file ends after {size} bytes; expected {expected}: it was cut short")
