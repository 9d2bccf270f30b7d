"""A digest of training data, by which a warm start knows its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["data_hash_of"]


def data_hash_of(parts: Mapping[str, Any]) -> bytes:
    """Return a digest of everything a training problem was made of.

    Parameters
    ----------
    parts : mapping
        Arrays, numbers, texts and containers of them, by their names.

    Returns
    -------
    bytes
        The same for the same parts.
    """
    digest = hashlib.blake2b(digest_size=16)
    for piece in _pieces(parts):
        digest.update(piece)
    return digest.digest()


def _pieces(value: Any) -> Iterator[Any]:
    """Yield the content of nested containers as buffers."""
    if isinstance(value, np.ndarray):
        yield repr((value.dtype.str, value.shape)).encode()
        yield np.ascontiguousarray(value)
    elif isinstance(value, bytes):
        yield repr(len(value)).encode()
        yield value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield repr(key).encode()
            yield from _pieces(entry)
    elif isinstance(value, list | tuple):
        yield f"{len(value)} entries".encode()
        for entry in value:
            yield from _pieces(entry)
    else:
        yield f"{type(value).__name__} {value!r}".encode()
