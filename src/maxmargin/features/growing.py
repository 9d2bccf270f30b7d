"""Features of an encoder that become more, batch after batch, and fewer when some are forgotten.

A batch is encoded by a fresh copy of the encoder, which may fail and then has changed nothing. Then
the encoder takes the features over that it does not know yet, behind those that it has, so that
known features keep their numbers. That costs what the batch costs, not what the encoder holds.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Vocabulary
from maxmargin.errors import NotCompatibleError
from maxmargin.features.columns import ColumnTable
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template_encoder import LineFeatures, TemplateEncoder

__all__ = ["absorb", "begin_growing", "check_growing", "fresh_like", "keep_features", "listed"]

Encoder: TypeAlias = FeatureEncoder | TemplateEncoder
Numbers: TypeAlias = NDArray[np.uint32]


class GrowingLines(LineFeatures):
    """Features of a template that become more.

    Parameters
    ----------
    known : LineFeatures
        Those there are. No table of the data is kept: names are written out.
    """

    def __init__(self, known: LineFeatures) -> None:
        super().__init__(known.program)
        self.names: list[str] = known.all_names()
        self._set(known.fingerprints)

    def _set(self, fingerprints: NDArray[np.uint64]) -> None:
        self._room = fingerprints.copy()
        self._size = len(fingerprints)
        self._numbers = {key: k for k, key in enumerate(fingerprints.tolist())}
        self._index = None

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """What native code knows the features by."""
        return self._room[: self._size]

    @fingerprints.setter
    def fingerprints(self, values: NDArray[np.uint64]) -> None:
        self._set(values)

    def __len__(self) -> int:
        return self._size

    def absorb(self, batch: LineFeatures) -> Numbers:
        """Know the features of a batch, too; return their numbers."""
        n = self._size
        keys = batch.fingerprints
        numbers = np.array([self._numbers.get(key, n) for key in keys.tolist()], np.uint32)
        new = np.flatnonzero(numbers == n)
        if len(new) == 0:
            return numbers
        numbers[new] = n + np.arange(len(new))
        self.names += batch.names_of(new)
        for key, k in zip(keys[new].tolist(), numbers[new].tolist(), strict=True):
            self._numbers[key] = k
        if n + len(new) > len(self._room):
            room = np.empty(max(n + len(new), len(self._room) * 3 // 2), np.uint64)
            room[:n] = self._room[:n]
            self._room = room
        self._room[n : n + len(new)] = keys[new]
        self._size, self._index = n + len(new), None
        return numbers

    def keep(self, kept: NDArray[Any]) -> None:
        """Know these features only."""
        self.names = [self.names[k] for k in kept.tolist()]
        self._set(self.fingerprints[kept])


def listed(encoder: Encoder) -> bool:
    """Whether features are listed by what they are, so that there may be new ones.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted. Features by their hash and columns of matrices are not listed.
    """
    if encoder.hash_bits is not None:
        return False
    return isinstance(encoder, TemplateEncoder) or encoder.vocabulary is not None


def check_growing(encoder: Encoder) -> None:
    """Refuse an encoder whose features cannot become more.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted or not.
    """
    if encoder.min_count > 1:
        raise NotCompatibleError(
            f"min_count = {encoder.min_count} counts features over all data, which nobody has seen "
            "yet when examples come one after the other; use min_count=1, or hash_bits to bound "
            "the number of features"
        )


def begin_growing(encoder: Encoder) -> None:
    """Make a fitted encoder ready for `absorb`.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted. Its vocabulary is its own from now on.
    """
    if not listed(encoder):
        return
    if isinstance(encoder, TemplateEncoder):
        if not isinstance(encoder.unigrams, GrowingLines):
            encoder.unigrams = GrowingLines(encoder.unigrams)
            encoder.bigrams = GrowingLines(encoder.bigrams)
        return
    assert encoder.vocabulary is not None
    # A reader of files may hold the same vocabulary.
    encoder.vocabulary = Vocabulary.from_table(*encoder.vocabulary.table())


def fresh_like(encoder: Encoder, X: Any) -> Encoder:
    """Return a copy of a fitted encoder that knows nothing, to learn a batch with.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted.
    X : object
        The batch.

    Raises
    ------
    ValueError
        If it has other columns.
    """
    fresh = encoder.fresh()
    fresh.double = encoder.double
    if not (isinstance(encoder, TemplateEncoder) and isinstance(X, ColumnTable)):
        return fresh
    if (X.n_columns, X.label_column) != (encoder.n_columns, encoder.label_column):
        raise ValueError(
            f"{X.source}: found {X.n_columns} columns, the label in {X.label_column}; expected "
            f"{encoder.n_columns} and {encoder.label_column}, as before"
        )
    return fresh


def absorb(encoder: Encoder, batch: Encoder) -> tuple[Numbers, Numbers]:
    """Make an encoder know the features of a batch, too.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        What `begin_growing` made ready.
    batch : FeatureEncoder or TemplateEncoder
        A fresh copy of it, fitted to the batch.

    Returns
    -------
    sparse, pair : uint32 array
        The numbers of the features of the batch.
    """
    if isinstance(encoder, TemplateEncoder):
        assert isinstance(batch, TemplateEncoder)
        assert isinstance(encoder.unigrams, GrowingLines)
        assert isinstance(encoder.bigrams, GrowingLines)
        return encoder.unigrams.absorb(batch.unigrams), encoder.bigrams.absorb(batch.bigrams)
    assert isinstance(batch, FeatureEncoder)
    assert encoder.vocabulary is not None
    assert batch.vocabulary is not None
    add = encoder.vocabulary.add
    numbers = np.array([add(name) for name in batch.vocabulary.names()], np.uint32)
    encoder.n_sparse = len(encoder.vocabulary)
    return numbers, np.empty(0, np.uint32)


def keep_features(encoder: Encoder, sparse: NDArray[Any], pair: NDArray[Any]) -> None:
    """Make an encoder forget all features but some.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        What `begin_growing` made ready.
    sparse, pair : int array
        The features that stay, ascending; they are numbered anew in this order.
    """
    if isinstance(encoder, TemplateEncoder):
        for lines, kept in ((encoder.unigrams, sparse), (encoder.bigrams, pair)):
            assert isinstance(lines, GrowingLines)
            lines.keep(kept)
        return
    assert encoder.vocabulary is not None
    names = encoder.vocabulary.names()
    encoder.vocabulary = Vocabulary.from_names([names[k] for k in sparse.tolist()])
    encoder.n_sparse = len(encoder.vocabulary)
