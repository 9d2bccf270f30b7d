"""Features and labels of all shares: each learns its own, and two by two they are put together.

A share encodes its sequences with the features that it finds. What it tells of them (a `Summary`)
is merged with that of another share, and so on in a tree; then it renumbers what it encoded. So
every share reads its data once, and a feature or label that only one of them has seen is known to
all. With hashing there is nothing to merge but the labels.

Shares that agree on weights need those rows only that their examples read, and number these for
themselves (`OwnSequences`): their arrays are as long as that.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._native import Vocabulary
from maxmargin.errors import NotCompatibleError
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.joining import join_features, matched_features
from maxmargin.features.labels import encode_labels
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.structures.chain_layout import ChainLayout
from maxmargin.structures.chain_learning import order_labels
from maxmargin.structures.chain_options import explicit_labels

__all__ = [
    "OwnSequences",
    "RenumberedSequences",
    "Summary",
    "finish",
    "merge",
    "summary_of",
]

DROPPED = np.uint32(2**32 - 1)


class Summary(NamedTuple):
    """What is known of the features and labels of some shares.

    Attributes
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        It knows the features.
    sparse, pair : int64 arrays
        In how many tokens each feature occurs, of a label and of two labels; empty with hashing and
        for columns of matrices.
    labels : dict
        How many tokens have each label.
    n_sequences, n_tokens : int
        How much there is.
    """

    encoder: Any
    sparse: NDArray[np.int64]
    pair: NDArray[np.int64]
    labels: dict[Any, int]
    n_sequences: int
    n_tokens: int


def _listed(encoder: Any) -> bool:
    """Whether features are listed by name."""
    named = isinstance(encoder, TemplateEncoder) or encoder.vocabulary is not None
    return named and encoder.hash_bits is None


def _counts(indices: NDArray[np.uint32] | None, n: int) -> NDArray[np.int64]:
    if indices is None:
        return np.zeros(n, np.int64)
    return np.bincount(indices, minlength=n).astype(np.int64)


def summary_of(corpus: EncodedSequences, dtype: str) -> Summary:
    """Return what a share tells of its sequences, which were encoded without leaving any out.

    Parameters
    ----------
    corpus : EncodedSequences
        The sequences.
    dtype : "float32" or "float64"
        Type of the weights.
    """
    encoder, batch = corpus.encoder_for(None, dtype), corpus.batch
    none = np.empty(0, np.int64)
    sparse = pair = none
    if _listed(encoder):
        sparse = _counts(batch.indices, encoder.n_sparse)
        pair = _counts(batch.pair_indices, encoder.n_pair)
    labels = dict(zip(corpus.classes, corpus.label_counts.tolist(), strict=True))
    n_tokens = int(batch.offsets[-1])
    return Summary(encoder, sparse, pair, labels, batch.n_sequences, n_tokens)


def merge(one: Summary, other: Summary) -> Summary:
    """Return what is known of the features and labels of both.

    Raises
    ------
    NotCompatibleError
        If they have features of different kinds.
    """
    encoder = one.encoder
    # Features are joined apart from the data: a batch of one token without any stands for them.
    bare = EncodedBatch(np.arange(2), 0, np.zeros(2, np.int64), np.empty(0, np.uint32))
    try:
        joined = join_features(encoder, other.encoder, None, bare)
    except NotCompatibleError as error:
        raise NotCompatibleError(f"parts of the data do not go together: {error}") from error
    sparse, pair = one.sparse, one.pair
    if _listed(encoder):
        sparse = np.zeros(encoder.n_sparse, np.int64)
        sparse[: len(one.sparse)] = one.sparse
        sparse[joined.sparse] += other.sparse
        pair = np.zeros(encoder.n_pair, np.int64)
        pair[: len(one.pair)] = one.pair
        if len(joined.pair):
            pair[joined.pair] += other.pair
    labels = dict(one.labels)
    for label, count in other.labels.items():
        labels[label] = labels.get(label, 0) + count
    n_sequences, n_tokens = one.n_sequences + other.n_sequences, one.n_tokens + other.n_tokens
    return Summary(encoder, sparse, pair, labels, n_sequences, n_tokens)


def finish(summary: Summary, min_count: int, labels: Any) -> Summary:
    """Leave out features that are too rare in all shares together, and put labels in order.

    Parameters
    ----------
    summary : Summary
        Of all shares.
    min_count : int
        Features that occur in fewer tokens are left out.
    labels : sequence or None
        The labels that somebody asked for.
    """
    encoder = summary.encoder
    encoder.min_count = min_count
    known = None if labels is None else explicit_labels(labels)
    _, classes = encode_labels([list(summary.labels)], known)
    ordered = {label: summary.labels.get(label, 0) for label in classes}
    if not _listed(encoder) or min_count <= 1:
        return summary._replace(labels=ordered)
    sparse = np.flatnonzero(summary.sparse >= min_count)
    pair = np.flatnonzero(summary.pair >= min_count)
    if isinstance(encoder, TemplateEncoder):
        for features, kept in ((encoder.unigrams, sparse), (encoder.bigrams, pair)):
            names = features.names_of(kept)
            fingerprints = np.ascontiguousarray(features.fingerprints[kept])
            fresh = type(features)(features.program)
            fresh.fingerprints, fresh.names = fingerprints, names
            features.__dict__.update(fresh.__dict__)
    else:
        names = encoder.vocabulary.names()
        vocabulary = Vocabulary()
        for k in sparse.tolist():
            vocabulary.add(names[k])
        encoder.vocabulary, encoder.n_sparse = vocabulary, len(vocabulary)
    return summary._replace(
        labels=ordered, sparse=summary.sparse[sparse], pair=summary.pair[pair]
    )


class RenumberedSequences(EncodedSequences):
    """The sequences of a share, in the numbers of all shares.

    Parameters
    ----------
    corpus : EncodedSequences
        As the share encoded them.
    summary : Summary
        Of all shares, finished.
    dtype : "float32" or "float64"
        Type of the weights.
    """

    def __init__(self, corpus: EncodedSequences, summary: Summary, dtype: str) -> None:
        self._encoder = summary.encoder
        own = corpus.encoder_for(None, dtype)
        self.classes = list(summary.labels)
        self.label_counts = np.array(list(summary.labels.values()), dtype=np.int64)
        self.sequence_weight = corpus.sequence_weight
        # Codes of a corpus are places in the order of its weights.
        places = np.argsort(order_labels(corpus.classes, corpus.label_counts, "hamming", None)[0])
        columns = order_labels(self.classes, self.label_counts, "hamming", None)[0]
        number = {label: k for k, label in enumerate(self.classes)}
        table = np.array([columns[number[corpus.classes[k]]] for k in places], dtype=np.int32)
        self.codes = table[np.asarray(corpus.codes)]
        self.batch = self._renumbered(corpus.batch, own)

    def _renumbered(self, batch: Any, own: Any) -> Any:
        encoder = self._encoder
        if not _listed(encoder):
            return dataclasses.replace(batch, n_sparse=encoder.n_sparse)
        matched = matched_features(encoder, own, "another part of the data")
        changes: dict[str, Any] = {"n_sparse": encoder.n_sparse, "n_pair": encoder.n_pair}
        if batch.indices is not None:
            rows = _native.renumber(
                batch.indptr, batch.indices, batch.values, _table(matched.sparse, own.n_sparse)
            )
            changes |= dict(zip(("indptr", "indices", "values"), rows, strict=True))
        if batch.pair_indices is not None:
            pairs = _native.renumber(
                batch.pair_indptr, batch.pair_indices, None, _table(matched.pair, own.n_pair)
            )
            changes |= dict(zip(("pair_indptr", "pair_indices"), pairs, strict=False))
        return dataclasses.replace(batch, mapped=None, **changes)

    def encoder_for(self, asked: Any, dtype: Any) -> Any:
        """Return the encoder of all shares."""
        return self._encoder


class OwnSequences(RenumberedSequences):
    """The sequences of a share, with features that occur in them only, in the order of all shares.

    Attributes
    ----------
    rows : uint32 array
        Which of the rows of all shares' weights each of its own is, ascending.
    """

    rows: NDArray[np.uint32]

    def _renumbered(self, batch: Any, own: Any) -> Any:
        encoder = self._encoder
        if _listed(encoder):
            matched = matched_features(encoder, own, "another part of the data")
            sparse, pair = (np.stack(pairs) for pairs in (matched.sparse, matched.pair))
        else:
            sparse, pair = (
                np.tile(_occurring(indices, n), (2, 1))
                for indices, n in (
                    (batch.indices, encoder.n_sparse), (batch.pair_indices, encoder.n_pair)
                )
            )
        # Their numbers among those of all shares ascend.
        sparse, pair = (both[:, np.argsort(both[1])] for both in (sparse, pair))
        changes: dict[str, Any] = {"n_sparse": sparse.shape[1], "n_pair": pair.shape[1]}
        if batch.indices is not None:
            table = _table((sparse[0], np.arange(sparse.shape[1])), own.n_sparse)
            rows = _native.renumber(batch.indptr, batch.indices, batch.values, table)
            changes |= dict(zip(("indptr", "indices", "values"), rows, strict=True))
        if batch.pair_indices is not None:
            table = _table((pair[0], np.arange(pair.shape[1])), own.n_pair)
            pairs = _native.renumber(batch.pair_indptr, batch.pair_indices, None, table)
            changes |= dict(zip(("pair_indptr", "pair_indices"), pairs, strict=False))
        layout = ChainLayout.of(encoder, len(self.classes))
        others = np.arange(layout.n_sparse, layout.end + 1)
        pair_rows = np.asarray(layout.pair_rows(pair[1])).ravel()
        self.rows = np.concatenate([sparse[1], others, pair_rows]).astype(np.uint32)
        self.n_rows = layout.n_rows
        return dataclasses.replace(batch, mapped=None, **changes)


def _occurring(indices: NDArray[np.uint32] | None, n: int) -> NDArray[np.int64]:
    """Return which of n numbers occur; all of them if nobody knows."""
    if indices is None:
        return np.arange(n, dtype=np.int64)
    return np.flatnonzero(np.bincount(indices, minlength=n)).astype(np.int64)


def _table(
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]], n_own: int
) -> NDArray[np.uint32]:
    """Return for each feature of a share its number among those of all, or that it is left out."""
    table = np.full(n_own, DROPPED, dtype=np.uint32)
    table[pairs[0]] = pairs[1].astype(np.uint32)
    return table
