"""The names of features in a model file, and the fingerprints of those of a template.

Names are for people who ask: tagging with a template does without, so they are compressed, and read
when somebody asks for them.
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.features.template_encoder import LineFeatures

__all__ = ["line_arrays", "name_arrays", "read_fingerprints", "read_name_table", "read_names"]

_LENGTH_DTYPES = (np.uint8, np.uint32)  # whose sums fit 8 bytes


def line_arrays(
    prefix: str, features: LineFeatures, kept: NDArray[np.intp]
) -> dict[str, NDArray[Any]]:
    """Return fingerprints and names of some features of a template.

    Parameters
    ----------
    prefix : str
        "" or "pair_".
    features : LineFeatures
        The features of its lines.
    kept : array
        Their numbers.

    Returns
    -------
    dict
        The arrays for the file.
    """
    arrays = {f"{prefix}fingerprints": features.fingerprints[kept]}
    text, ends = features.name_table(kept)
    return arrays | _packed(prefix, text, np.diff(ends))


def name_arrays(prefix: str, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return names as arrays.

    Parameters
    ----------
    prefix : str
        "" or "pair_".
    names : list of str
        The names.

    Returns
    -------
    dict
        The arrays for the file.
    """
    encoded = [name.encode("utf-8") for name in names]
    lengths = np.array([len(name) for name in encoded], dtype=np.int64)
    return _packed(prefix, b"".join(encoded), lengths)


def _packed(prefix: str, text: bytes, lengths: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    small = lengths.max(initial=0) < 256
    return {
        f"{prefix}names": np.frombuffer(zlib.compress(text, 1), dtype=np.uint8),
        f"{prefix}name_lengths": lengths.astype(np.uint8 if small else np.uint32),
    }


def read_fingerprints(
    arrays: Mapping[str, NDArray[Any]], prefix: str, n: int
) -> NDArray[np.uint64]:
    """Return the fingerprints of the features of a template.

    Parameters
    ----------
    arrays : mapping
        Of the file.
    prefix : str
        "" or "pair_".
    n : int
        How many features there are.

    Returns
    -------
    uint64 array of shape (n,)
        As the file has them.
    """
    fingerprints = arrays[f"{prefix}fingerprints"]
    if fingerprints.dtype != np.uint64 or fingerprints.shape != (n,):
        raise ValueError("the fingerprints do not fit the features")
    _packed_names(arrays, prefix, n)
    return fingerprints


def _packed_names(
    arrays: Mapping[str, NDArray[Any]], prefix: str, n: int
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    lengths, packed = arrays[f"{prefix}name_lengths"], arrays[f"{prefix}names"]
    if lengths.shape != (n,) or lengths.dtype not in _LENGTH_DTYPES or packed.dtype != np.uint8:
        raise ValueError("the names do not fit the features")
    return lengths, packed


def read_name_table(
    arrays: Mapping[str, NDArray[Any]], prefix: str, n: int
) -> tuple[bytes, NDArray[np.int64]]:
    """Return the names end to end, and where each ends.

    Parameters
    ----------
    arrays, prefix, n
        As for `read_fingerprints`.

    Returns
    -------
    text : bytes
        All names, in UTF-8.
    ends : int64 array of shape (n + 1,)
        The places in the text between which they are.
    """
    lengths, packed = _packed_names(arrays, prefix, n)
    ends = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    size = int(ends[-1])
    try:
        unpack = zlib.decompressobj()
        text = unpack.decompress(packed.tobytes(), max(size, 1))
    except zlib.error as error:
        raise ValueError(f"the names cannot be read ({error})") from None
    if len(text) != size or unpack.unconsumed_tail:
        raise ValueError("the names are cut short or too long")
    return text, ends


def read_names(arrays: Mapping[str, NDArray[Any]], prefix: str, n: int) -> list[str]:
    """Return the names of features.

    Parameters
    ----------
    arrays, prefix, n
        As for `read_fingerprints`.

    Returns
    -------
    list of str
        In the order of the features.
    """
    text, ends = read_name_table(arrays, prefix, n)
    return [text[a:b].decode("utf-8") for a, b in itertools.pairwise(ends.tolist())]
