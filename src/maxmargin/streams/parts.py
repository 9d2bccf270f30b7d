"""Arrays that grow on disk, in temporary files without a name: nothing of them stays behind."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GrowingArray", "check_directory"]

#: Entries that are read, changed and written at a time.
STEP = 1 << 20


def check_directory(directory: str | os.PathLike[str] | None) -> str:
    """Return the directory for temporary files.

    Parameters
    ----------
    directory : path or None
        None: the system's own.

    Returns
    -------
    str
        Its name.

    Raises
    ------
    OSError
        If it is not there, or no file can be made in it.
    """
    name = tempfile.gettempdir() if directory is None else os.fsdecode(directory)
    try:
        tempfile.TemporaryFile(dir=name).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error
    return name


class GrowingArray:
    """An array that grows at its end, in a temporary file.

    Parameters
    ----------
    dtype : dtype
        Type of its entries.
    directory : str
        Where the file is made.
    width : int or None
        Number of columns; None: it has one dimension.
    """

    def __init__(self, dtype: Any, directory: str, width: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.directory = directory
        self.width = width
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115
        self._size = 0  # entries

    def __len__(self) -> int:
        return int(self._size // (self.width or 1))

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return int(self._size * self.dtype.itemsize)

    def append(self, array: NDArray[Any]) -> None:
        """Put an array behind the end; a full disk is an `OSError` that names the directory."""
        data = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1)
        view, at = data.view(np.uint8).data, 0
        try:
            while at < len(view):
                at += self._file.write(view[at : at + (1 << 30)])
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.directory) from error
        self._size += data.size

    def array(self) -> NDArray[Any]:
        """Return all of it, mapped from the file."""
        shape: tuple[int, ...] = (len(self),) if self.width is None else (len(self), self.width)
        if self._size == 0:
            return np.empty(shape, self.dtype)
        return np.memmap(self._file, dtype=self.dtype, mode="r", shape=shape)

    def changed(self, change: Any, dtype: Any = None) -> GrowingArray:
        """Return a copy of which each step of entries went through a function; this one is closed.

        Parameters
        ----------
        change : callable
            Of an array and its first place; it may return fewer entries.
        dtype : dtype or None
            Type of the copy.
        """
        copy = GrowingArray(dtype or self.dtype, self.directory, self.width)
        flat = self.array().reshape(-1)
        step = STEP * (self.width or 1)
        for at in range(0, len(flat), step):
            copy.append(change(np.array(flat[at : at + step]), at))
            flat._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        self.close()
        return copy

    def close(self) -> None:
        """Give the file up."""
        self._file.close()
