"""Checkpoints of distributed trainings: the multipliers of all examples, whoever had them.

One ``.npz`` file without pickle, written as all files are (`maxmargin.io.atomic`). Examples are
numbered over all shares, so that a training may go on with another number of them.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import ModelFormatError
from maxmargin.io.atomic import replacing

__all__ = ["Saved", "load_run", "save_run", "split_state"]

FORMAT = "maxmargin distributed checkpoint"
VERSION = 2

#: Arrays of a state with an entry for each part, each plane, and each pair of planes or word.
PART = ("example", "lo", "hi", "violation", "stiffness", "n_planes")
PLANE = ("alpha", "loss", "code_size")


class Saved(NamedTuple):
    """A run between two rounds.

    Attributes
    ----------
    states : list of dict
        Of each share, as `Share.state` gives them.
    seconds : float
        Time so far.
    oracle_calls, bytes_sent : int
        So far.
    history : list of dict
        The records of the rounds.
    """

    states: list[Any]
    seconds: float
    oracle_calls: int
    bytes_sent: int
    history: list[dict[str, Any]]


def save_run(path: Any, identity: Mapping[str, Any], n_each: Sequence[int], saved: Saved) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    path : path-like
        The file.
    identity : mapping
        What the run solves.
    n_each : sequence of int
        Examples of each share.
    saved : Saved
        The run.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name in saved.states[0]:
        parts = [np.asarray(state[name]) for state in saved.states]
        if name == "example":
            firsts = np.cumsum([0, *n_each[:-1]])
            parts = [
                part.astype(np.int64) + first for part, first in zip(parts, firsts, strict=True)
            ]
        arrays[name] = np.concatenate(parts)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "identity": dict(identity),
        "seconds": saved.seconds,
        "oracle_calls": saved.oracle_calls,
        "bytes_sent": saved.bytes_sent,
        "history": saved.history,
    }
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        save: Any = np.savez  # its stubs take every keyword for an option
        save(file, **arrays)


def load_run(path: Any, identity: Mapping[str, Any], n_each: Sequence[int]) -> Saved | None:
    """Read a checkpoint.

    Parameters
    ----------
    path : path-like
        The file; there may be none.
    identity : mapping
        What the run solves now.
    n_each : sequence of int
        Examples of each share now.

    Returns
    -------
    Saved or None
        With a state for each of the present shares; None if there is no file.

    Raises
    ------
    ModelFormatError
        If the file is damaged or of another training.
    """
    name = os.fspath(path)
    if not Path(path).exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        about = json.loads(arrays.pop("about").tobytes().decode())
        if about.get("format") != FORMAT or about.get("version") != VERSION:
            raise ValueError(f"expected a {FORMAT} of version {VERSION}")
        saved = about["identity"]
        for key, value in identity.items():
            if saved.get(key) != value:
                raise ModelFormatError(
                    f"{name}: the checkpoint is of another training: {key} is "
                    f"{saved.get(key)!r:.80} there, and {value!r:.80} here"
                )
        states = split_state(arrays, n_each)
        return Saved(
            states,
            float(about["seconds"]),
            int(about["oracle_calls"]),
            int(about["bytes_sent"]),
            list(about["history"]),
        )
    except ModelFormatError:
        raise
    except (OSError, KeyError, TypeError, ValueError, IndexError, zipfile.BadZipFile) as error:
        raise ModelFormatError(f"{name}: is no checkpoint of a cluster: {error}") from error


def split_state(
    arrays: Mapping[str, NDArray[Any]], n_each: Sequence[int]
) -> list[dict[str, NDArray[Any]]]:
    """Return the state of each share out of that of all examples.

    Parameters
    ----------
    arrays : mapping
        As `Share.state` gives them, with examples numbered over all shares.
    n_each : sequence of int
        Examples of each share.
    """
    n_planes = arrays["n_planes"].astype(np.int64)
    sizes = arrays["code_size"].astype(np.int64)
    plane_ends = np.concatenate([[0], np.cumsum(n_planes)])
    gram_ends = np.concatenate([[0], np.cumsum(n_planes**2)])
    word_ends = np.concatenate([[0], np.cumsum(sizes)])
    if len(arrays["gaps"]) != sum(n_each):
        raise ValueError(f"it has {len(arrays['gaps'])} examples; expected {sum(n_each)}")
    if len(sizes) != plane_ends[-1]:
        raise ValueError("planes are missing")
    states = []
    first = 0
    for n in n_each:
        a, b = np.searchsorted(arrays["example"], [first, first + n])
        p, q = plane_ends[a], plane_ends[b]
        state = {key: arrays[key][a:b] for key in PART}
        state["example"] = (state["example"].astype(np.int64) - first).astype(np.uint32)
        state |= {key: arrays[key][p:q] for key in PLANE}
        state["gram"] = arrays["gram"][gram_ends[a] : gram_ends[b]]
        state["codes"] = arrays["codes"][word_ends[p] : word_ends[q]]
        state["gaps"] = arrays["gaps"][first : first + n]
        states.append({key: np.ascontiguousarray(value) for key, value in state.items()})
        first += n
    return states
