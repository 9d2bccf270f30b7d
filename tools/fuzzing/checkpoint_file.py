"""Checkpoints (.npz): taken apart, changed, and written as a zip file that is sound."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.arrays import mutate_array
from fuzzing.text import mutate_text
from fuzzing.trees import mutate_tree
from fuzzing.values import count

__all__ = ["Checkpoint", "mutate_checkpoint"]


class Checkpoint:
    """The parts of a checkpoint.

    Parameters
    ----------
    data : bytes
        A good file.

    Attributes
    ----------
    about : dict
        What the JSON text says.
    arrays : dict of str to ndarray
        All other members.
    """

    def __init__(self, data: bytes) -> None:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            self.arrays: dict[str, NDArray[Any]] = {key: stored[key] for key in stored.files}
        self.about: Any = json.loads(self.arrays.pop("about").tobytes())

    def signed(self, rng: random.Random | None = None) -> bytes:
        """Return a file of these parts; a zip file's checksums are always right.

        Parameters
        ----------
        rng : random.Random or None
            If given, the bytes of one member are changed before they are packed.

        Returns
        -------
        bytes
            The file.
        """
        text = json.dumps(self.about).encode(errors="replace")
        members = {"about": np.frombuffer(text, np.uint8), **self.arrays}
        changed = rng.choice(list(members)) if rng is not None else None
        method = zipfile.ZIP_STORED
        if rng is not None and rng.random() < 0.3:
            method = zipfile.ZIP_DEFLATED
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            for key, array in members.items():
                piece = io.BytesIO()
                np.lib.format.write_array(piece, array, allow_pickle=False)
                content = piece.getvalue()
                if rng is not None and key == changed:
                    content = mutate_text(rng, content, [content], _HEADER_WORDS)
                # With a fixed date, so that the same parts give the same bytes.
                archive.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), content)
        return out.getvalue()


_HEADER_WORDS = (
    *(b"'<f8'", b"'|O'", b"'<U5'", b"'|b1'", b"'>f4'", b"'<c16'", b"'|V8'", b"'<M8[s]'"),
    *(b"(0,)", b"(10, 1000000)", b"(-1,)", b"(1000000000000,)", b"True", b"False", b"\x93NUMPY"),
)


def mutate_checkpoint(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return a changed copy of a checkpoint.

    Parameters
    ----------
    rng : random.Random
        Decides everything.
    data : bytes
        A good file.
    others : list of bytes
        Good files whose arrays may be taken over.

    Returns
    -------
    bytes
        Mostly a sound zip file.
    """
    if rng.random() < 0.06:
        return mutate_text(rng, data, [data], [b"PK\x03\x04", b"PK\x05\x06", b".npy"])
    checkpoint = Checkpoint(data)
    arrays = checkpoint.arrays
    members = None
    for _ in range(count(rng)):
        what = rng.random()
        name = rng.choice(list(arrays)) if arrays else ""
        if what < 0.35:
            # Mostly below "run", which is read; what identifies the run is compared as it is.
            about = checkpoint.about
            inner = about.get("run") if rng.random() < 0.85 else about
            mutate_tree(rng, inner if isinstance(inner, dict) else about)
        elif what < 0.4:
            members = rng
        elif not name:
            continue
        elif what < 0.8:
            arrays[name] = mutate_array(rng, arrays[name])
        elif what < 0.85:
            del arrays[name]
        elif what < 0.9:
            alike = [array for array in arrays.values() if array.dtype == arrays[name].dtype]
            arrays[name] = rng.choice(alike)
        elif what < 0.95:
            foreign = Checkpoint(rng.choice(others)).arrays
            arrays[name] = foreign.get(name, next(iter(foreign.values())))
        else:
            arrays[rng.choice((f"{name}_", "engine_", "other", "engine_alpha"))] = arrays[name]
    return checkpoint.signed(members)
