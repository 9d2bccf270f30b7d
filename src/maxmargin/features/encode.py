"""Tokens as people write them, turned into encoded batches.

What may be given as ``X`` is a list of sequences, all of one kind:

strings
    A sequence is a list of tokens; a token is a dict or a collection of strings. Dicts are read as
    python-crfsuite reads them: ``{"w": "dog"}`` is the feature ``w:dog``; ``{"cap": True}`` the
    feature ``cap`` and ``{"cap": False}`` none; ``{"len": 3.5}`` the feature ``len`` with the
    value 3.5; ``{"next": {"w": "barks"}}`` is ``next:w:barks``; ``{"suffix": ["og", "g"]}`` is
    ``suffix:og`` and ``suffix:g``. In a collection each string is a feature.
sparse
    A sequence is a SciPy sparse matrix or array of shape (tokens, features).
dense
    A sequence is a numpy array of shape (tokens, features).
strings+dense, sparse+dense
    A sequence is a tuple of exactly two parts, the second a 2-d numpy array with one row for each
    token of the first.

Every value is a number between -1e12 and 1e12, so that products of values stay finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.counting import (
    DROPPED,
    check_counting,
    drop_rare,
    encode_hashed,
    hashed_numbers,
)
from maxmargin.features.items import Items
from maxmargin.features.matrices import Values, encode_dense, encode_sparse
from maxmargin.features.sequences import SHAPE, as_list, described, kind_of_all

__all__ = ["FeatureEncoder"]


class FeatureEncoder:
    """Turns what people write as ``X`` into an ``EncodedBatch``.

    The first call, :meth:`fit_transform`, fixes the kind of ``X`` and the features; later calls of
    :meth:`transform` expect the same kind. Strings that were not seen by ``fit_transform`` are
    ignored by ``transform``; a different number of columns is an error.

    Parameters
    ----------
    min_count : int
        Features of kind "strings" that occur less often in ``fit_transform`` are left out.
    hash_bits : int or None
        With a number, strings are not listed: a feature is one of 2^hash_bits by its hash.
    threads : int
        Above 1: while strings are read, another thread looks them up. The result is the same.

    Attributes
    ----------
    kind : str or None
        "strings", "sparse", "dense", "strings+dense" or "sparse+dense"; None before fitting.
    vocabulary : Vocabulary or None
        The features of kind "strings", by number.
    n_sparse, n_dense : int
        Number of sparse and of dense features.
    double : bool
        Whether values of sparse features are kept as 8-byte numbers; 4-byte ones else. (Item files
        have 4-byte values, as they were read.)

    Examples
    --------
    >>> encoder = FeatureEncoder()
    >>> batch = encoder.fit_transform([[{"w": "dogs"}, {"w": "bark", "last": True}]])
    >>> encoder.feature_names()
    ['w:dogs', 'w:bark', 'last']
    >>> batch.indices
    array([0, 1, 2], dtype=uint32)
    """

    kind: str | None
    vocabulary: Vocabulary | None
    n_sparse: int
    n_dense: int
    n_pair = 0  # features of two labels come from templates only
    double = False
    threads = 1

    def __init__(
        self, *, min_count: int = 1, hash_bits: int | None = None, threads: int = 1
    ) -> None:
        check_counting(min_count, hash_bits)
        self.threads = threads
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.kind = None
        self.vocabulary = None
        self.n_sparse = 0
        self.n_dense = 0

    def fresh(self) -> FeatureEncoder:
        """Return an encoder with the same parameters that knows nothing."""
        return FeatureEncoder(
            min_count=self.min_count, hash_bits=self.hash_bits, threads=self.threads
        )

    def fit_transform(self, X: Any) -> EncodedBatch:
        """Learn the features of ``X`` and encode it; what was learned before is forgotten.

        After an error the encoder is as it was before.

        Parameters
        ----------
        X : list of sequences
            See the description of this module.

        Returns
        -------
        EncodedBatch
        """
        if isinstance(X, Items):
            return self._fit_items(X)
        sequences = as_list("X", X, SHAPE, 3)
        kind = kind_of_all(sequences)
        strings = kind.startswith("strings")
        if not strings and (self.min_count > 1 or self.hash_bits is not None):
            raise ValueError(f"min_count and hash_bits are for strings, but X is of kind {kind}")
        vocabulary = Vocabulary() if strings and self.hash_bits is None else None
        batch = self.encode_piece(sequences, kind, vocabulary, grow=True)
        if vocabulary is not None and self.min_count > 1:
            batch, vocabulary = drop_rare(batch, vocabulary, self.min_count)
        self.kind = kind
        self.vocabulary = vocabulary
        self.n_sparse = batch.n_sparse
        self.n_dense = batch.n_dense
        return batch

    def transform(self, X: Any) -> EncodedBatch:
        """Encode ``X`` with the features that are known; unknown ones are ignored.

        Parameters
        ----------
        X : list of sequences
            Of the same kind as what the encoder was fitted to. For arrays and sparse matrices the
            number of columns must be the same too.

        Returns
        -------
        EncodedBatch
        """
        if self.kind is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this FeatureEncoder is not fitted; call fit_transform first")
        if isinstance(X, Items):
            return self._known_items(X)
        sequences = as_list("X", X, SHAPE, 3)
        kind = kind_of_all(sequences)
        if kind != self.kind:
            raise ValueError(
                f"X is of kind {kind} (sequence 0 is {described(sequences[0])}); expected kind "
                f"{self.kind}, to which the encoder was fitted"
            )
        return self.encode_piece(sequences, kind, self.vocabulary, grow=False)

    def _fit_items(self, items: Items) -> EncodedBatch:
        batch, vocabulary = items.batch, items.vocabulary
        if self.hash_bits is not None:
            batch = self.hash_items(items)
            self.vocabulary = None
        else:
            if self.min_count > 1:
                batch, vocabulary = drop_rare(batch, vocabulary, self.min_count)
            self.vocabulary = vocabulary
        self.kind, self.n_sparse, self.n_dense = "strings", batch.n_sparse, 0
        return batch

    def _known_items(self, items: Items) -> EncodedBatch:
        if self.kind != "strings":
            raise ValueError(f"X is of kind strings; expected kind {self.kind}, as in training")
        if self.hash_bits is not None:
            return self.hash_items(items)
        if items.vocabulary is self.vocabulary:
            return items.batch  # the reader knew which features exist
        assert self.vocabulary is not None
        numbers = [self.vocabulary.get(name) for name in items.vocabulary.names()]
        return self._renumbered(
            items.batch, np.array([DROPPED if k is None else k for k in numbers], dtype=np.uint32)
        )

    def hash_items(self, items: Items) -> EncodedBatch:
        """Return items with their features by hash."""
        assert self.hash_bits is not None
        return self._renumbered(items.batch, hashed_numbers(items.vocabulary, self.hash_bits))

    def _renumbered(self, batch: EncodedBatch, number: NDArray[np.uint32]) -> EncodedBatch:
        assert batch.indptr is not None
        assert batch.indices is not None
        n_sparse = self.n_sparse if self.hash_bits is None else 2**self.hash_bits
        rows = _native.renumber(batch.indptr, batch.indices, batch.values, number)
        return EncodedBatch(batch.offsets, n_sparse, *rows)

    def identity(self) -> Any:
        """Return what differs between encoders with different features."""
        return () if self.vocabulary is None else self.vocabulary.__getstate__()

    def feature_names(self) -> list[str]:
        """Names of the features, the sparse ones first.

        Columns of arrays have no names of their own; they are called "sparse:0", "sparse:1", ...
        and "dense:0", "dense:1", ...
        """
        if self.vocabulary is not None:
            names = self.vocabulary.names()
        elif self.hash_bits is not None:
            names = [f"hash:{j}" for j in range(self.n_sparse)]
        else:
            names = [f"sparse:{j}" for j in range(self.n_sparse)]
        return names + [f"dense:{j}" for j in range(self.n_dense)]

    def encode_piece(
        self, sequences: list[Any], kind: str, vocabulary: Vocabulary | None, *, grow: bool
    ) -> EncodedBatch:
        """Encode sequences of one kind.

        Parameters
        ----------
        sequences : list
            Of the kind.
        kind : str
            As ``kind_of_all`` finds it.
        vocabulary : Vocabulary or None
            Of strings that are listed.
        grow : bool
            Whether features that are not known yet are learned.

        Returns
        -------
        EncodedBatch
            The sequences.
        """
        first = kind.removesuffix("+dense")
        sparse_part = dense_part = sequences
        if first != kind:
            sparse_part = [sequence[0] for sequence in sequences]
            dense_part = [sequence[1] for sequence in sequences]
        dense: Values | None = None
        offsets: NDArray[np.int64] | None = None
        if kind.endswith("dense"):
            offsets, dense = encode_dense(dense_part, None if grow else self.n_dense)
        if first == "dense":
            assert offsets is not None
            return EncodedBatch(offsets, 0, dense=dense)
        if vocabulary is not None:
            sparse_offsets, indptr, indices, values = _native.encode_tokens(
                sparse_part, vocabulary, grow, self.double, self.threads
            )
            n_sparse = len(vocabulary)
        elif first == "strings":
            assert self.hash_bits is not None
            sparse_offsets, indptr, indices, values = encode_hashed(
                sparse_part, self.hash_bits, self.double, self.threads
            )
            n_sparse = 2**self.hash_bits
        else:
            sparse_offsets, indptr, indices, values, n_sparse = encode_sparse(
                sparse_part, None if grow else self.n_sparse, self.double
            )
        if offsets is not None and not np.array_equal(offsets, sparse_offsets):
            found, wanted = np.diff(offsets), np.diff(sparse_offsets)
            i = int(np.argmax(found != wanted))
            raise ValueError(
                f"sequence {i} has {wanted[i]} tokens in its first part and {found[i]} rows in its "
                "dense array; expected as many"
            )
        return EncodedBatch(sparse_offsets, n_sparse, indptr, indices, values, dense)
