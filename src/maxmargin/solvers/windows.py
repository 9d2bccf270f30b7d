"""Engines that keep the planes of most examples in a file: windows, temporary files, checkpoints.

The windows themselves are native (``native/plane_windows.hpp``): passes of the engine go from
window to window whoever calls them. What is here makes the temporary file, and hands the planes of
windows to a checkpoint and back one by one, so that never all of them are in memory.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Engine
from maxmargin.features.batch import WindowPlan

__all__ = ["WindowedState", "open_windows", "restore_windowed", "windows_identity"]

_WINDOW = "window_"


def open_windows(engine: Engine, plan: WindowPlan) -> IO[bytes]:
    """Make an engine keep its planes in windows.

    Parameters
    ----------
    engine : Engine
        Before its first pass.
    plan : WindowPlan
        The windows.

    Returns
    -------
    file
        The temporary file, which has no name.
    """
    try:
        file = tempfile.TemporaryFile(dir=plan.directory, buffering=0)  # noqa: SIM115
    except OSError as error:
        raise OSError(error.errno, error.strerror, plan.directory) from error
    engine.set_windows(list(plan.ends), plan.limit, file.fileno())
    return file


def windows_identity(plan: WindowPlan | None) -> str | None:
    """Return what tells the windows of one run from those of another, for checkpoints.

    Parameters
    ----------
    plan : WindowPlan or None
        The windows.
    """
    if plan is None:
        return None
    ends = np.array(plan.ends, dtype=np.int64)
    return f"{len(ends)} ({zlib.crc32(ends.tobytes()):08x}; they follow from the memory budget)"


class WindowedState(Mapping[str, NDArray[Any]]):
    """The state of an engine for a checkpoint: planes are asked for window by window.

    Parameters
    ----------
    engine : Engine
        The engine.
    rest : dict
        Its state without planes.
    n_windows : int
        Number of windows.
    """

    def __init__(self, engine: Engine, rest: dict[str, NDArray[Any]], n_windows: int) -> None:
        self._engine, self._rest, self._n = engine, rest, n_windows

    def __iter__(self) -> Iterator[str]:
        yield from self._rest
        yield from (f"{_WINDOW}{k}" for k in range(self._n))

    def __len__(self) -> int:
        return len(self._rest) + self._n

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name.startswith(_WINDOW):
            window: NDArray[Any] = self._engine.window_state(int(name.removeprefix(_WINDOW)))
            return window
        return self._rest[name]


def restore_windowed(
    engine: Engine, state: Mapping[str, NDArray[Any]], n_windows: int
) -> dict[str, NDArray[Any]]:
    """Put the planes of all windows in place.

    Parameters
    ----------
    engine : Engine
        A new engine with the same windows.
    state : mapping
        As `WindowedState` gave it.
    n_windows : int
        Number of windows.

    Returns
    -------
    dict
        The state without planes.

    Raises
    ------
    ValueError
        If a window is missing or damaged.
    """
    names = {f"{_WINDOW}{k}" for k in range(n_windows)}
    found = {name for name in state if name.startswith(_WINDOW)}
    if found != names:
        raise ValueError(
            f"the checkpoint has the planes of {len(found)} windows; expected those of {n_windows}"
        )
    for k in range(n_windows):
        piece = state[f"{_WINDOW}{k}"]
        if piece.dtype != np.uint8 or piece.ndim != 1:
            raise ValueError("the planes of a window are damaged")
        engine.restore_window(k, piece)
    return {name: state[name] for name in state if name not in names}
