"""Model files (.mm): taken apart, changed, and signed anew so that deeper checks are reached."""

from __future__ import annotations

import json
import random
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.arrays import mutate_array
from fuzzing.text import mutate_text
from fuzzing.trees import mutate_tree
from fuzzing.values import count
from maxmargin import _native

__all__ = ["Model", "mutate_model"]

_FIXED = struct.Struct("<8sIIQ")
_CHECKSUM = struct.Struct("<Q")


class Model:
    """The parts of a model file.

    Parameters
    ----------
    data : bytes
        A good file.

    Attributes
    ----------
    kind : str
    meta : dict
    arrays : list of (str, ndarray)
        By name; a list, so that a name can be there twice.
    """

    def __init__(self, data: bytes) -> None:
        _, _, _, length = _FIXED.unpack_from(data)
        begin = _FIXED.size + _CHECKSUM.size
        header = json.loads(data[begin : begin + length])
        self.kind: Any = header["kind"]
        self.meta: Any = header["meta"]
        self.arrays: list[tuple[str, NDArray[Any]]] = []
        for entry in header["arrays"]:
            piece = data[entry["offset"] : entry["offset"] + entry["nbytes"]]
            array = np.frombuffer(piece, "<" + entry["dtype"]).reshape(entry["shape"])
            self.arrays.append((entry["name"], array))

    def signed(self, rng: random.Random | None = None) -> bytes:
        """Return a file of these parts whose checksums are right.

        Parameters
        ----------
        rng : random.Random or None
            If given, one place of the list of arrays is changed before the header is signed.

        Returns
        -------
        bytes
            The file.
        """
        entries = [
            {
                "name": name,
                "dtype": f"{array.dtype.kind}{array.dtype.itemsize}",
                "shape": list(array.shape),
                "offset": 0,
                "nbytes": array.nbytes,
                "checksum": _native.checksum(np.frombuffer(array.tobytes(), np.uint8)),
            }
            for name, array in self.arrays
        ]
        header = {"kind": self.kind, "meta": self.meta, "arrays": entries}
        begin = _FIXED.size + _CHECKSUM.size
        text, length = b"", -1
        while len(text) != length:  # until the offsets, and with them the header, stay as they are
            length = len(text)
            at = begin + length
            for entry in entries:
                entry["offset"] = at = -(-at // 64) * 64
                at += entry["nbytes"]
            text = _canonical(header)
        offsets = [entry["offset"] for entry in entries]
        if rng is not None:
            mutate_tree(rng, entries)
            text = _canonical(header)
        fixed = _FIXED.pack(b"maxmargn", 1, 0, len(text))
        data = fixed + _CHECKSUM.pack(_native.checksum(fixed + text)) + text
        for offset, (_, array) in zip(offsets, self.arrays, strict=True):
            data = data.ljust(offset, b"\0") + array.tobytes()
        return data


def _canonical(header: Any) -> bytes:
    # Without allow_nan=False: NaN and Infinity are among the mutations.
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")


def mutate_model(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return a changed copy of a model file.

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
        Nine times out of ten with checksums that are right.
    """
    if rng.random() < 0.06:
        return mutate_text(rng, data, [data], [b"maxmargn", b"\0" * 8])
    model = Model(data)
    entries = None
    for _ in range(count(rng)):
        what = rng.random()
        if what < 0.45:
            mutate_tree(rng, model.meta)
        elif what < 0.5:
            _template(rng, model)
        elif what < 0.53:
            entries = rng
        elif what < 0.54:
            model.kind = rng.choice(("", "tagger\n", "model", 3))
        else:
            _arrays(rng, model, others)
    return model.signed(entries)


def _template(rng: random.Random, model: Model) -> None:
    """Change the text of the template, if the model still has one."""
    try:
        described = model.meta["encoder"]["template"]
        text = described["text"].encode()
    except (AttributeError, KeyError, TypeError):
        return
    words = (b"%x[0,0]", b"%p[0,0,3]", b'%t[0,0,"a*"]', b"U:", b"B:%x[0,0]")
    described["text"] = mutate_text(rng, text, [text], words).decode(errors="replace")


def _arrays(rng: random.Random, model: Model, others: list[bytes]) -> None:
    arrays = model.arrays
    if not arrays:
        return
    k = rng.randrange(len(arrays))
    name, array = arrays[k]
    what = rng.random()
    if what < 0.6:
        arrays[k] = (name, mutate_array(rng, array))
    elif what < 0.7 and name.endswith("names"):
        arrays[k] = (name, _packed(rng, array))
    elif what < 0.78:
        del arrays[k]
    elif what < 0.86:
        other = rng.randrange(len(arrays))
        arrays[k] = (name, arrays[other][1])
    elif what < 0.94:
        foreign = Model(rng.choice(others)).arrays
        arrays[k] = (name, dict(foreign).get(name, foreign[0][1]))
    else:
        arrays.insert(k, (rng.choice((name, name + "_", "pair_" + name, "rows", "weights")), array))


def _packed(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Change the compressed names and compress them again."""
    try:
        text = zlib.decompress(array.tobytes())
    except zlib.error:
        return array
    text = mutate_text(rng, text, [text], (b"U:", b"=", b"\0"))
    return np.frombuffer(zlib.compress(text, 1), np.uint8)
