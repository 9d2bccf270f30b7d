"""Checkpoints: a run on disk, so that it can go on later, bit for bit.

One ``.npz`` file without pickle: the engine's arrays and one JSON text with everything else. It is
written beside the target and moved there at the end, so that a crash leaves the old one.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.errors import ModelFormatError
from maxmargin.solvers.base import Machine, RunState

__all__ = ["load_checkpoint", "save_checkpoint"]

FORMAT = "maxmargin checkpoint"
VERSION = 1


def save_checkpoint(
    path: str | os.PathLike[str], engine: Machine, run: RunState, identity: dict[str, Any]
) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists.
    engine : Machine
        The engine between two passes.
    run : RunState
        The driver's and solver's state.
    identity : dict
        What the run solves (sizes, C, solver); a resumed run must have the same.
    """
    target = Path(path)
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, "identity": identity, "run": asdict(run)},
        default=lambda value: value.tolist(),  # arrays and numbers of random generators
    )
    arrays = {f"engine_{name}": array for name, array in engine.state().items()}
    descriptor, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".part"
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, about=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: str | os.PathLike[str], engine: Machine, identity: dict[str, Any]
) -> RunState:
    """Read a checkpoint into an engine of the same problem.

    Parameters
    ----------
    path : path-like
        The file.
    engine : Machine
        A new engine; it gets the saved multipliers and weights.
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
    try:
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(bytes(stored["about"]).decode())
            arrays = {
                key.removeprefix("engine_"): stored[key]
                for key in stored.files
                if key.startswith("engine_")
            }
        if about["format"] != FORMAT:
            raise ModelFormatError(f"{name} is not a maxmargin checkpoint")
        if about["version"] != VERSION:
            raise ModelFormatError(
                f"{name} is a checkpoint of version {about['version']}; "
                f"this maxmargin reads version {VERSION}"
            )
        run = RunState(**about["run"])
        saved = dict(about["identity"])
    except FileNotFoundError:
        raise
    except ModelFormatError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # zipfile and numpy raise many kinds for a damaged file
        raise ModelFormatError(f"{name} is not a readable checkpoint: {error}") from error
    for key, wanted in identity.items():
        found = saved.get(key)
        if found != wanted:
            raise ModelFormatError(
                f"{name} is a checkpoint of another run: {key} is {found!r} there and "
                f"{wanted!r} here"
            )
    try:
        engine.restore(arrays)
    except ValueError as error:
        raise ModelFormatError(f"{name}: {error}") from error
    return run
