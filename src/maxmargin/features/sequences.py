"""Sequences as users give them: a check that they are sequences, their kind and their lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.frames import frame_kind
from maxmargin.lazy import is_sparse

__all__ = [
    "SHAPE",
    "as_list",
    "described",
    "is_pair",
    "kind_of_all",
    "lengths_of",
    "offsets_of",
    "place_of",
]

SHAPE = (
    "expected a list of sequences, where a sequence is a list of tokens (dicts of features or "
    "lists of feature strings), a (tokens, features) numpy array or SciPy sparse matrix, or a "
    "tuple of such a list or sparse matrix and such an array"
)
_TEXT_KINDS = "OUST"  # of numpy dtypes: objects and the three sorts of strings


def described(thing: object) -> str:
    """Return the type of a thing with its article.

    Parameters
    ----------
    thing : object
        Anything.

    Returns
    -------
    str
        For example ``"an ndarray"``.
    """
    if thing is None:
        return "None"
    name = type(thing).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def is_pair(sequence: object) -> bool:
    """Whether a sequence is given in two parts: a tuple of two, the second a 2-d array.

    Parameters
    ----------
    sequence : object
        A sequence.

    Returns
    -------
    bool
        Whether it is.
    """
    return (
        isinstance(sequence, tuple)
        and len(sequence) == 2
        and isinstance(sequence[1], np.ndarray)
        and sequence[1].ndim == 2
    )


def _kind(sequence: object, index: int) -> str:
    """Kind of one sequence; "strings" is also whatever native code will refuse."""
    if type(sequence) is list:
        return "strings"
    if isinstance(sequence, np.ndarray):
        # Arrays of objects or strings are collections of tokens.
        return "strings" if sequence.dtype.kind in _TEXT_KINDS else "dense"
    if is_sparse(sequence):
        return "sparse"
    if isinstance(sequence, tuple) and is_pair(sequence):
        first = _kind(sequence[0], index)
        if first not in ("strings", "sparse"):
            raise ValueError(
                f"sequence {index} is a tuple whose first part is of kind {first}; "
                "expected (list of tokens or sparse matrix, dense array)"
            )
        return f"{first}+dense"
    frame = frame_kind(sequence)
    if frame is not None:
        raise TypeError(
            f"sequence {index} is {frame}, whose columns are only read with a template; {SHAPE}: "
            "give its rows as dicts, or its numbers as an array"
        )
    return "strings"


def as_list(name: str, data: object, shape: str, min_ndim: int) -> list[Any]:
    """Whatever holds the sequences, as a list; the sequences themselves are left alone.

    Parameters
    ----------
    name : str
        What messages call it.
    data : object
        What somebody gave.
    shape : str
        What was expected, for messages.
    min_ndim : int
        How many dimensions an array of numbers must have.

    Returns
    -------
    list
        At least one sequence.

    Raises
    ------
    TypeError, ValueError
        If it is something else, or empty.
    """
    if isinstance(data, list):
        sequences = data
    elif (frame := frame_kind(data)) is not None:
        raise TypeError(f"{name} is {frame}; {shape}")
    elif isinstance(data, str | bytes | dict | set | frozenset) or is_sparse(data):
        raise TypeError(f"{name} is {described(data)}; {shape}")
    elif isinstance(data, np.ndarray) and data.ndim < (
        1 if data.dtype.kind in _TEXT_KINDS else min_ndim
    ):
        raise ValueError(f"{name} is a {data.ndim}-d array of {data.dtype}; {shape}")
    elif hasattr(data, "__len__") and (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        sequences = list(data)  # type: ignore[call-overload]
    else:
        raise TypeError(f"{name} is {described(data)}; {shape}")
    if not sequences:
        raise ValueError(f"{name} is empty; expected at least one sequence")
    return sequences


def kind_of_all(sequences: list[Any]) -> str:
    """Return the kind of the sequences.

    Parameters
    ----------
    sequences : list
        From `as_list`.

    Returns
    -------
    str
        "strings", "sparse", "dense", "strings+dense" or "sparse+dense".

    Raises
    ------
    ValueError
        If two are of different kinds.
    """
    kind = _kind(sequences[0], 0)
    for i, sequence in enumerate(sequences):
        if type(sequence) is list and kind == "strings":
            continue
        other = _kind(sequence, i)
        if other != kind:
            raise ValueError(
                f"sequence {i} ({described(sequence)}) is of kind {other}, sequence 0 "
                f"({described(sequences[0])}) of kind {kind}; expected all sequences to be of one "
                "kind"
            )
    return kind


def offsets_of(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where sequences of some lengths begin, one after the other, and where the last ends.

    Parameters
    ----------
    lengths : sequence of int
        The lengths.

    Returns
    -------
    int64 array
        One more than lengths.
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def place_of(offsets: NDArray[np.int64], token: int) -> str:
    """Return where a token is, in words.

    Parameters
    ----------
    offsets : int64 array
        The first token of each sequence.
    token : int
        Counted over all sequences.

    Returns
    -------
    str
        Sequence and token.
    """
    sequence = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sequence {sequence}, token {token - int(offsets[sequence])}"


def lengths_of(name: str, sequences: list[Any], shape: str) -> NDArray[np.int64]:
    """Return the number of tokens of each sequence.

    Parameters
    ----------
    name : str
        What messages call the sequences.
    sequences : list
        From `as_list`.
    shape : str
        What was expected, for messages.

    Returns
    -------
    int64 array
        The lengths.
    """
    lengths = []
    for i, sequence in enumerate(sequences):
        if type(sequence) is list:
            lengths.append(len(sequence))
            continue
        part = sequence[0] if is_pair(sequence) else sequence
        if is_sparse(part):  # Before dicts: a dok_array is one.
            lengths.append(part.shape[0])
            continue
        if isinstance(part, str | bytes | dict):
            raise TypeError(f"{name}: sequence {i} is {described(sequence)}; {shape}")
        try:
            lengths.append(len(part))
        except TypeError:
            raise TypeError(f"{name}: sequence {i} is {described(sequence)}; {shape}") from None
    return np.array(lengths, dtype=np.int64)
