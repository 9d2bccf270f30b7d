"""Tokens and labels as people write them, turned into encoded batches.

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

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import MAX_VALUE, Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.columns import ColumnTable, LabelCodes
from maxmargin.features.frames import frame_kind, is_arrow_array
from maxmargin.features.items import Items
from maxmargin.lazy import is_sparse
from maxmargin.printable import quoted

__all__ = [
    "FeatureEncoder",
    "check_counting",
    "check_lengths",
    "drop_rare",
    "encode_labels",
    "hashed_numbers",
    "label_list",
    "sequence_lengths",
]

_DenseArray: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
_Values: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

_SHAPE = (
    "expected a list of sequences, where a sequence is a list of tokens (dicts of features or "
    "lists of feature strings), a (tokens, features) numpy array or SciPy sparse matrix, or a "
    "tuple of such a list or sparse matrix and such an array"
)
_LABEL_SHAPE = (
    "expected a list of sequences, where a sequence is a list of labels, one for each token"
)
_MAX_SPARSE = 2**32 - 1
_WITHIN = "expected a number between -1e12 and 1e12"  # MAX_VALUE in words
_TEXT_KINDS = "OUST"  # of numpy dtypes: objects and the three sorts of strings
# Rows are checked for NaN in pieces of about this many numbers, to keep the mask small.
_CHECK_NUMBERS = 1 << 20
MAX_HASH_BITS = 31
_HASHED_TOGETHER = 1000  # sequences whose features are listed at a time
_DROPPED = 2**32 - 1  # to native code, "no number"


def _a(thing: object) -> str:
    if thing is None:
        return "None"
    name = type(thing).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _is_pair(sequence: object) -> bool:
    """Whether a sequence is given in two parts: a tuple of two, the second a 2-d array."""
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
    if isinstance(sequence, tuple) and _is_pair(sequence):
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
            f"sequence {index} is {frame}, whose columns are only read with a template; {_SHAPE}: "
            "give its rows as dicts, or its numbers as an array"
        )
    return "strings"


def _as_list(name: str, data: object, shape: str, min_ndim: int) -> list[Any]:
    """Whatever holds the sequences, as a list; the sequences themselves are left alone.

    An array of numbers must have ``min_ndim`` dimensions.
    """
    if isinstance(data, list):
        sequences = data
    elif (frame := frame_kind(data)) is not None:
        raise TypeError(f"{name} is {frame}; {shape}")
    elif isinstance(data, str | bytes | dict | set | frozenset) or is_sparse(data):
        raise TypeError(f"{name} is {_a(data)}; {shape}")
    elif isinstance(data, np.ndarray) and data.ndim < (
        1 if data.dtype.kind in _TEXT_KINDS else min_ndim
    ):
        raise ValueError(f"{name} is a {data.ndim}-d array of {data.dtype}; {shape}")
    elif hasattr(data, "__len__") and (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        sequences = list(data)  # type: ignore[call-overload]
    else:
        raise TypeError(f"{name} is {_a(data)}; {shape}")
    if not sequences:
        raise ValueError(f"{name} is empty; expected at least one sequence")
    return sequences


def _kind_of_all(sequences: list[Any]) -> str:
    kind = _kind(sequences[0], 0)
    for i, sequence in enumerate(sequences):
        if type(sequence) is list and kind == "strings":
            continue
        other = _kind(sequence, i)
        if other != kind:
            raise ValueError(
                f"sequence {i} ({_a(sequence)}) is of kind {other}, sequence 0 "
                f"({_a(sequences[0])}) of kind {kind}; expected all sequences to be of one kind"
            )
    return kind


def _offsets(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _place(offsets: NDArray[np.int64], token: int) -> str:
    """Where a token is, in words."""
    sequence = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sequence {sequence}, token {token - int(offsets[sequence])}"


def _n_columns(sequence: Any, index: int, what: str) -> int:
    if sequence.ndim != 2:
        raise ValueError(
            f"sequence {index} is a {sequence.ndim}-d {what}; "
            "expected a 2-d one, (tokens, features)"
        )
    return int(sequence.shape[1])


def _check_numbers(sequence: Any, index: int, what: str, expected: int) -> None:
    """Check the shape and type of one array or sparse matrix."""
    found = _n_columns(sequence, index, what)
    if sequence.shape[0] == 0:
        raise ValueError(f"sequence {index} is empty; expected at least one token")
    if found == 0 or found != expected:
        wanted = expected if expected > 0 else "at least one"
        raise ValueError(f"sequence {index} has {found} columns in its {what}; expected {wanted}")
    masked = "masked " if isinstance(sequence, np.ma.MaskedArray) else ""
    if masked or sequence.dtype.kind not in "biuf":
        raise TypeError(
            f"sequence {index} is a {masked}{what} of {sequence.dtype}; expected real numbers"
        )


def _encode_dense(
    sequences: list[NDArray[Any]], n_columns: int | None
) -> tuple[NDArray[np.int64], _DenseArray]:
    what = "dense array"
    if n_columns is None:
        n_columns = _n_columns(sequences[0], 0, what)
    dtypes: set[np.dtype[Any]] = set()
    for i, sequence in enumerate(sequences):
        _check_numbers(sequence, i, what, n_columns)
        dtypes.add(sequence.dtype)
    double = any(d.kind == "f" and d.itemsize > 4 for d in dtypes)
    offsets = _offsets([len(sequence) for sequence in sequences])
    shape = (int(offsets[-1]), n_columns)
    dense: _DenseArray = np.empty(shape, np.float64) if double else np.empty(shape, np.float32)
    with np.errstate(over="ignore"):  # What is too large is found and named below.
        np.concatenate(sequences, axis=0, out=dense, casting="same_kind")
    step = max(1, _CHECK_NUMBERS // n_columns)
    for begin in range(0, len(dense), step):
        within = np.abs(dense[begin : begin + step]) <= MAX_VALUE  # not so of nan
        if not within.all():
            row, column = (int(k) for k in np.argwhere(~within)[0])
            raise ValueError(
                f"{_place(offsets, begin + row)}, column {column}: "
                f"found {dense[begin + row, column]}; {_WITHIN}"
            )
    return offsets, dense


def _encode_sparse(
    matrices: list[Any], n_columns: int | None, double: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], _Values | None, int]:
    import scipy.sparse

    what = "sparse matrix"
    if n_columns is None:
        n_columns = _n_columns(matrices[0], 0, what)
    if n_columns > _MAX_SPARSE:
        raise ValueError(f"sequence 0 has {n_columns} columns; expected at most {_MAX_SPARSE}")
    rows = []
    for i, matrix in enumerate(matrices):
        _check_numbers(matrix, i, what, n_columns)
        # To floats first: duplicates of bools or small ints would be added within their type.
        rows.append(matrix.astype(np.float64, copy=False).tocsr())
    offsets = _offsets([matrix.shape[0] for matrix in rows])
    # SciPy's own vstack is wrong for matrices whose arrays are longer than they need to be.
    indptr = np.zeros(int(offsets[-1]) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.diff(m.indptr) for m in rows]), out=indptr[1:])
    together = scipy.sparse.csr_array(
        (
            np.concatenate([m.data[: m.indptr[-1]] for m in rows]),
            np.concatenate([m.indices[: m.indptr[-1]] for m in rows]),
            indptr,
        ),
        shape=(int(offsets[-1]), n_columns),
    )
    together.check_format(full_check=True)
    together.sum_duplicates()
    within = np.abs(together.data) <= MAX_VALUE  # not so of nan
    if not within.all():
        k = int(np.argmin(within))
        token = int(np.searchsorted(together.indptr, k, side="right")) - 1
        raise ValueError(
            f"{_place(offsets, token)}, column {int(together.indices[k])}: found "
            f"{together.data[k]}; {_WITHIN}"
        )
    if not double:
        together.data = together.data.astype(np.float32)
    together.eliminate_zeros()
    values = together.data
    return (
        offsets,
        together.indptr.astype(np.int64),
        together.indices.astype(np.uint32),
        None if (values == 1).all() else values,
        n_columns,
    )


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
    number = np.full(batch.n_sparse, _DROPPED, dtype=np.uint32)
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


def _encode_hashed(
    sequences: list[Any], hash_bits: int, double: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], _Values | None]:
    """Encode tokens of strings without a list of all features, some sequences at a time."""
    lengths, counts, ids, numbers = [], [], [], []
    for begin in range(0, len(sequences), _HASHED_TOGETHER):
        vocabulary = Vocabulary()
        part = sequences[begin : begin + _HASHED_TOGETHER]
        offsets, indptr, indices, values = _native.encode_tokens(part, vocabulary, True, double)
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
        _offsets(np.concatenate(lengths)),
        _offsets(np.concatenate(counts)),
        np.concatenate(ids),
        np.concatenate(every) if weighted else None,
    )


class FeatureEncoder:
    """Turns what people write as ``X`` into an :class:`~maxmargin.features.EncodedBatch`.

    The first call, :meth:`fit_transform`, fixes the kind of ``X`` and the features; later calls of
    :meth:`transform` expect the same kind. Strings that were not seen by ``fit_transform`` are
    ignored by ``transform``; a different number of columns is an error.

    Parameters
    ----------
    min_count : int
        Features of kind "strings" that occur less often in ``fit_transform`` are left out.
    hash_bits : int or None
        With a number, strings are not listed: a feature is one of 2^hash_bits by its hash.

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

    def __init__(self, *, min_count: int = 1, hash_bits: int | None = None) -> None:
        check_counting(min_count, hash_bits)
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.kind = None
        self.vocabulary = None
        self.n_sparse = 0
        self.n_dense = 0

    def fresh(self) -> FeatureEncoder:
        """Return an encoder with the same parameters that knows nothing."""
        return FeatureEncoder(min_count=self.min_count, hash_bits=self.hash_bits)

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
        sequences = _as_list("X", X, _SHAPE, 3)
        kind = _kind_of_all(sequences)
        strings = kind.startswith("strings")
        if not strings and (self.min_count > 1 or self.hash_bits is not None):
            raise ValueError(f"min_count and hash_bits are for strings, but X is of kind {kind}")
        vocabulary = Vocabulary() if strings and self.hash_bits is None else None
        batch = self._encode(sequences, kind, vocabulary, grow=True)
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
        sequences = _as_list("X", X, _SHAPE, 3)
        kind = _kind_of_all(sequences)
        if kind != self.kind:
            raise ValueError(
                f"X is of kind {kind} (sequence 0 is {_a(sequences[0])}); expected kind "
                f"{self.kind}, to which the encoder was fitted"
            )
        return self._encode(sequences, kind, self.vocabulary, grow=False)

    def _fit_items(self, items: Items) -> EncodedBatch:
        batch, vocabulary = items.batch, items.vocabulary
        if self.hash_bits is not None:
            batch = self._hash_items(items)
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
            return self._hash_items(items)
        if items.vocabulary is self.vocabulary:
            return items.batch  # the reader knew which features exist
        assert self.vocabulary is not None
        numbers = [self.vocabulary.get(name) for name in items.vocabulary.names()]
        return self._renumbered(
            items.batch, np.array([_DROPPED if k is None else k for k in numbers], dtype=np.uint32)
        )

    def _hash_items(self, items: Items) -> EncodedBatch:
        assert self.hash_bits is not None
        return self._renumbered(items.batch, hashed_numbers(items.vocabulary, self.hash_bits))

    def _renumbered(self, batch: EncodedBatch, number: NDArray[np.uint32]) -> EncodedBatch:
        assert batch.indptr is not None
        assert batch.indices is not None
        n_sparse = self.n_sparse if self.hash_bits is None else 2**self.hash_bits
        rows = _native.renumber(batch.indptr, batch.indices, batch.values, number)
        return EncodedBatch(batch.offsets, n_sparse, *rows)

    def identity(self) -> Any:
        """Return what tells the features of one encoder from those of another."""
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

    def _encode(
        self, sequences: list[Any], kind: str, vocabulary: Vocabulary | None, *, grow: bool
    ) -> EncodedBatch:
        first = kind.removesuffix("+dense")
        sparse_part = dense_part = sequences
        if first != kind:
            sparse_part = [sequence[0] for sequence in sequences]
            dense_part = [sequence[1] for sequence in sequences]
        dense: _DenseArray | None = None
        offsets: NDArray[np.int64] | None = None
        if kind.endswith("dense"):
            offsets, dense = _encode_dense(dense_part, None if grow else self.n_dense)
        if first == "dense":
            assert offsets is not None
            return EncodedBatch(offsets, 0, dense=dense)
        if vocabulary is not None:
            sparse_offsets, indptr, indices, values = _native.encode_tokens(
                sparse_part, vocabulary, grow, self.double
            )
            n_sparse = len(vocabulary)
        elif first == "strings":
            assert self.hash_bits is not None
            sparse_offsets, indptr, indices, values = _encode_hashed(
                sparse_part, self.hash_bits, self.double
            )
            n_sparse = 2**self.hash_bits
        else:
            sparse_offsets, indptr, indices, values, n_sparse = _encode_sparse(
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


def sequence_lengths(X: Any) -> NDArray[np.int64]:
    """Give the number of tokens of each sequence, of whatever kind ``X`` is.

    Parameters
    ----------
    X : list of sequences, EncodedBatch or ColumnTable

    Returns
    -------
    int64 array of shape (n_sequences,)
    """
    if isinstance(X, EncodedBatch):
        return X.lengths
    if isinstance(X, ColumnTable):
        return np.diff(X.offsets)
    if isinstance(X, Items):
        return X.batch.lengths
    return _lengths("X", _as_list("X", X, _SHAPE, 3), _SHAPE)


def _lengths(name: str, sequences: list[Any], shape: str) -> NDArray[np.int64]:
    lengths = []
    for i, sequence in enumerate(sequences):
        if type(sequence) is list:
            lengths.append(len(sequence))
            continue
        part = sequence[0] if _is_pair(sequence) else sequence
        if is_sparse(part):  # Before dicts: a dok_array is one.
            lengths.append(part.shape[0])
            continue
        if isinstance(part, str | bytes | dict):
            raise TypeError(f"{name}: sequence {i} is {_a(sequence)}; {shape}")
        try:
            lengths.append(len(part))
        except TypeError:
            raise TypeError(f"{name}: sequence {i} is {_a(sequence)}; {shape}") from None
    return np.array(lengths, dtype=np.int64)


def check_lengths(X: Any, y: Any) -> None:
    """Make sure that there is a label for every token.

    Parameters
    ----------
    X : list of sequences, EncodedBatch or ColumnTable
    y : list of sequences of labels, or LabelCodes

    Raises
    ------
    ValueError
        If there are not as many sequences, or if a sequence has not as many labels as tokens; the
        message names the first one.
    """
    of_x = sequence_lengths(X)
    if isinstance(y, LabelCodes):
        of_y = np.diff(y.offsets)
    else:
        of_y = _lengths("y", _label_sequences(y), _LABEL_SHAPE)
    if len(of_x) != len(of_y):
        raise ValueError(f"X has {len(of_x)} sequences and y has {len(of_y)}; expected as many")
    if not np.array_equal(of_x, of_y):
        i = int(np.argmax(of_x != of_y))
        raise ValueError(
            f"sequence {i} has {of_x[i]} tokens in X and {of_y[i]} labels in y; "
            "expected one label for each token"
        )


def _label_sequences(y: Any) -> list[Any]:
    """Return the sequences of labels as a list; none of them is a data frame."""
    sequences = _as_list("y", y, _LABEL_SHAPE, 2)
    for i, sequence in enumerate(sequences):
        frame = None if type(sequence) is list else frame_kind(sequence)
        if frame is not None:
            raise TypeError(f"y: sequence {i} is {frame}; {_LABEL_SHAPE}: give one column of it")
    return sequences


def label_list(sequence: Any) -> Any:
    """Return a sequence of labels with Python objects for those of arrays.

    Parameters
    ----------
    sequence : sequence of labels
        Of any kind.

    Returns
    -------
    sequence of labels
        A list, if it was an array of NumPy or pyarrow; else as it was.
    """
    if isinstance(sequence, np.ndarray):
        return sequence.tolist()
    return sequence.to_pylist() if is_arrow_array(sequence) else sequence


def encode_labels(
    y: Any, labels: dict[Any, int] | None = None
) -> tuple[NDArray[np.int32], list[Any]]:
    """Turn labels into codes.

    Parameters
    ----------
    y : list of sequences of labels, or LabelCodes
        Labels are anything hashable: str, int, bool, numpy scalars.
    labels : dict from label to code, optional
        The labels that exist. Without it, all labels of ``y`` do, and their codes are given in
        sorted order, or in the order of appearance if they cannot be sorted.

    Returns
    -------
    codes : int32 array of shape (n_tokens,)
        The codes of the labels of all sequences, one after the other.
    classes : list
        The label of each code.

    Raises
    ------
    ValueError
        If a label is not in ``labels``; the message names sequence, token and label.
    """
    if isinstance(y, LabelCodes):
        return _encode_codes(y, labels)
    # Arrays go over to Python objects at once; lists are left to native code.
    sequences = [s if type(s) is list else label_list(s) for s in _label_sequences(y)]
    if labels is not None:
        _, codes = _native.encode_labels(sequences, labels, False)
        return codes, sorted(labels, key=labels.__getitem__)
    found: dict[Any, int] = {}
    _, codes = _native.encode_labels(sequences, found, True)
    classes = [label.item() if isinstance(label, np.generic) else label for label in found]
    return _sorted_codes(codes, classes)


def _sorted_codes(
    codes: NDArray[np.int32], classes: list[Any]
) -> tuple[NDArray[np.int32], list[Any]]:
    """Give the classes numbers in sorted order, where they can be sorted."""
    try:
        order = sorted(range(len(classes)), key=lambda k: classes[k])
    except TypeError:
        return codes, classes
    new_codes = np.empty(len(order), dtype=np.int32)
    new_codes[order] = np.arange(len(order), dtype=np.int32)
    return new_codes[codes], [classes[k] for k in order]


def _encode_codes(
    y: LabelCodes, labels: dict[Any, int] | None
) -> tuple[NDArray[np.int32], list[Any]]:
    """Encode labels that are codes already, by other codes."""
    if labels is None:
        return _sorted_codes(y.codes, list(y.names))
    new = np.array([labels.get(name, -1) for name in y.names], dtype=np.int32)
    codes = new[y.codes]
    if (codes < 0).any():
        token = int(np.argmax(codes < 0))
        known = ", ".join(quoted(name, 40) for name in list(labels)[:10])
        raise ValueError(
            f"y: {_place(y.offsets, token)}: unknown label {quoted(y.names[y.codes[token]])}; "
            f"expected one of the {len(labels)} known labels "
            f"({known}{', ...' if len(labels) > 10 else ''})"
        )
    return codes, sorted(labels, key=labels.__getitem__)
