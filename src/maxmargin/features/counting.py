"""Features that are strings, kept few: rare ones are left out, or all of them are hashed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.matrices import Values
from maxmargin.features.sequences import offsets_of

__all__ = [
    "DROPPED",
    "MAX_HASH_BITS",
    "check_counting",
    "drop_rare",
    "encode_hashed",
    "hashed_numbers",
]

MAX_HASH_BITS = 31
_HASHED_TOGETHER = 1000  # sequences whose features are listed at a time
DROPPED = 2**32 - 1  # to native code, "no number"


def check_counting(min_count: int, hash_bits: int | None) -> None:
    """Check the two parameters that keep the list of features short.

    Parameters
    ----------
    min_count : int
        How often a feature must occur.
    hash_bits : int or None
        Number of bits of a hashed feature.
    """
    if min_count < 1:
        raise ValueError(f"min_count is {min_count}; expected at least 1")
    if hash_bits is None:
        return
    if not 1 <= hash_bits <= MAX_HASH_BITS:
        raise ValueError(f"hash_bits is {hash_bits}; expected 1 to {MAX_HASH_BITS}")
    if min_count > 1:
        raise ValueError("min_count needs a list of the features, which hash_bits does without")


def drop_rare(
    batch: EncodedBatch, vocabulary: Vocabulary, min_count: int
) -> tuple[EncodedBatch, Vocabulary]:
    """Leave out the features that occur in few tokens.

    Parameters
    ----------
    batch : EncodedBatch
        Encoded with the vocabulary.
    vocabulary : Vocabulary
        The features.
    min_count : int
        In how many tokens a feature must occur.

    Returns
    -------
    batch : EncodedBatch
        Without the rare features.
    vocabulary : Vocabulary
        The features that are left, in the same order.
    """
    assert batch.indptr is not None
    assert batch.indices is not None
    counts = np.bincount(batch.indices, minlength=batch.n_sparse)
    kept = np.flatnonzero(counts >= min_count)
    if len(kept) == 0:
        raise ValueError(f"no feature occurs {min_count} times; lower the minimum count")
    number = np.full(batch.n_sparse, DROPPED, dtype=np.uint32)
    number[kept] = np.arange(len(kept), dtype=np.uint32)
    indptr, indices, values = _native.renumber(batch.indptr, batch.indices, batch.values, number)
    if values is not None and (values == 1).all():
        values = None  # the features that had values were rare
    names = vocabulary.names()
    left = Vocabulary.from_names([names[j] for j in kept.tolist()])
    return EncodedBatch(batch.offsets, len(kept), indptr, indices, values, batch.dense), left


def hashed_numbers(vocabulary: Vocabulary, hash_bits: int) -> NDArray[np.uint32]:
    """Numbers of strings by their hash: the top bits of it.

    Parameters
    ----------
    vocabulary : Vocabulary
        The strings.
    hash_bits : int
        How many bits.

    Returns
    -------
    uint32 array
        The number of each string.
    """
    return (vocabulary.hashes() >> np.uint64(64 - hash_bits)).astype(np.uint32)


def encode_hashed(
    sequences: list[Any], hash_bits: int, double: bool, threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], Values | None]:
    """Encode tokens of strings without a list of all features, some sequences at a time.

    Parameters
    ----------
    sequences : list
        Of kind "strings".
    hash_bits : int
        Bits of the hash.
    double : bool
        Whether values are 8-byte numbers.
    threads : int
        Above 1: while strings are read, another thread looks them up.

    Returns
    -------
    offsets : int64 array
        The first token of each sequence.
    indptr, indices, values : arrays
        A CSR matrix; values are None if all are one.
    """
    lengths, counts, ids, numbers = [], [], [], []
    for begin in range(0, len(sequences), _HASHED_TOGETHER):
        vocabulary = Vocabulary()
        part = sequences[begin : begin + _HASHED_TOGETHER]
        offsets, indptr, indices, values = _native.encode_tokens(
            part, vocabulary, True, double, threads
        )
        indptr, indices, values = _native.renumber(
            indptr, indices, values, hashed_numbers(vocabulary, hash_bits)
        )
        lengths.append(np.diff(offsets))
        counts.append(np.diff(indptr))
        ids.append(indices)
        numbers.append(values)
    weighted = any(values is not None for values in numbers)
    every = [
        np.ones(len(part), np.float64 if double else np.float32) if values is None else values
        for part, values in zip(ids, numbers, strict=True)
    ]
    return (
        offsets_of(np.concatenate(lengths)),
        offsets_of(np.concatenate(counts)),
        np.concatenate(ids),
        np.concatenate(every) if weighted else None,
    )
