"""Features of two encoders in one: what new data have, and behind it what an earlier model knows.

Features are matched by what they are: strings by their text, those of a template by their
fingerprints (the template must be the same), hashed ones and columns of matrices by their number.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Vocabulary
from maxmargin.errors import NotCompatibleError
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.template_encoder import TemplateEncoder

__all__ = ["Joined", "Matched", "join_features", "matched_features"]


class Joined(NamedTuple):
    """What came of joining an encoder with an earlier one.

    Attributes
    ----------
    batch : EncodedBatch
        The data in numbers, by the joined features.
    sparse, pair : int array
        For each sparse feature and each pair feature of the earlier encoder its new number.
    n_new : int
        Number of sparse and pair features that were there before joining.
    n_shared : int
        How many of those the earlier encoder knows.
    """

    batch: EncodedBatch
    sparse: NDArray[np.int64]
    pair: NDArray[np.int64]
    n_new: int
    n_shared: int


def join_features(
    encoder: FeatureEncoder | TemplateEncoder,
    earlier: FeatureEncoder | TemplateEncoder,
    X: Any,
    batch: EncodedBatch,
) -> Joined:
    """Make an encoder know the features of an earlier one, too.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted; it gets the features of the other one behind its own.
    earlier : FeatureEncoder or TemplateEncoder
        Fitted, of the same kind.
    X : object or None
        What the encoder was fitted to. None: it is not there any more, and features that were too
        rare (``min_count``) are not found again.
    batch : EncodedBatch
        What that gave.

    Returns
    -------
    Joined
        Which feature is which.

    Raises
    ------
    NotCompatibleError
        If features of the two cannot be the same: another template, hashing or kind of X.
    """
    _check_alike(encoder, earlier)
    n_new = encoder.n_sparse + encoder.n_pair
    numbered = np.arange(earlier.n_sparse)
    if encoder.hash_bits is not None or not _listed(encoder):
        # Hashed features and columns are numbers; there is nothing to join.
        return Joined(batch, numbered, np.empty(0, np.int64), n_new, encoder.n_sparse)
    if isinstance(encoder, TemplateEncoder):
        assert isinstance(earlier, TemplateEncoder)
        n_shared = 0
        numbers = []
        for own, other in (
            (encoder.unigrams, earlier.unigrams),
            (encoder.bigrams, earlier.bigrams),
        ):
            before = len(own)
            numbers.append(own.join(other))
            n_shared += int(np.count_nonzero(numbers[-1] < before))
        sparse, pair = numbers
    else:
        assert isinstance(earlier, FeatureEncoder)
        before = encoder.n_sparse
        sparse, pair = _join_names(encoder, earlier), np.empty(0, np.int64)
        n_shared = int(np.count_nonzero(sparse < before))
    # Rare features that the earlier encoder knows count now.
    if encoder.min_count > 1 and X is not None:
        batch = encoder.transform(X)
    else:
        batch = dataclasses.replace(batch, n_sparse=encoder.n_sparse, n_pair=encoder.n_pair)
    return Joined(batch, sparse, pair, n_new, n_shared)


class Matched(NamedTuple):
    """Which features two encoders have in common.

    Attributes
    ----------
    sparse, pair : tuple of two int arrays
        Numbers of the earlier encoder, and of the other one for the same features.
    """

    sparse: tuple[NDArray[np.int64], NDArray[np.int64]]
    pair: tuple[NDArray[np.int64], NDArray[np.int64]]


def matched_features(
    encoder: FeatureEncoder | TemplateEncoder,
    earlier: FeatureEncoder | TemplateEncoder,
    what: str = "the prior",
) -> Matched:
    """Find the features that two encoders have in common; both stay as they are.

    Parameters
    ----------
    encoder, earlier : FeatureEncoder or TemplateEncoder
        Fitted.
    what : str
        What messages call the earlier one.

    Returns
    -------
    Matched
        Their numbers in both.

    Raises
    ------
    NotCompatibleError
        If features of the two cannot be the same: another template, hashing or kind of X.
    """
    _check_alike(encoder, earlier, what)
    none = np.empty(0, np.int64)
    if encoder.hash_bits is not None or not _listed(encoder):
        numbers = np.arange(encoder.n_sparse, dtype=np.int64)
        return Matched((numbers, numbers), (none, none))
    if isinstance(encoder, TemplateEncoder):
        assert isinstance(earlier, TemplateEncoder)
        parts = []
        for kind in ("unigrams", "bigrams"):
            ours, theirs = (getattr(e, kind).fingerprints for e in (encoder, earlier))
            _, new, old = np.intersect1d(ours, theirs, return_indices=True)
            parts.append((old.astype(np.int64), new.astype(np.int64)))
        return Matched(*parts)
    assert isinstance(earlier, FeatureEncoder)
    assert encoder.vocabulary is not None
    assert earlier.vocabulary is not None
    number = {name: k for k, name in enumerate(encoder.vocabulary.names())}
    both = [
        (k, number[name])
        for k, name in enumerate(earlier.vocabulary.names())
        if name in number
    ]
    pairs = np.array(both, dtype=np.int64).reshape(-1, 2)
    return Matched((pairs[:, 0], pairs[:, 1]), (none, none))


def _listed(encoder: FeatureEncoder | TemplateEncoder) -> bool:
    """Whether the features are listed by name, and not columns of a matrix."""
    return isinstance(encoder, TemplateEncoder) or encoder.vocabulary is not None


def _join_names(encoder: FeatureEncoder, earlier: FeatureEncoder) -> NDArray[np.int64]:
    assert encoder.vocabulary is not None
    assert earlier.vocabulary is not None
    joined = Vocabulary.from_table(*encoder.vocabulary.table())  # a reader may hold the other one
    numbers = [joined.add(name) for name in earlier.vocabulary.names()]
    encoder.vocabulary, encoder.n_sparse = joined, len(joined)
    return np.array(numbers, dtype=np.int64)


def _check_alike(
    encoder: FeatureEncoder | TemplateEncoder,
    earlier: FeatureEncoder | TemplateEncoder,
    what: str = "the prior",
) -> None:
    ours, theirs = _described(encoder), _described(earlier)
    if ours != theirs:
        raise NotCompatibleError(f"{what} was trained with {theirs}, and this is {ours}")
    if isinstance(encoder, TemplateEncoder) and isinstance(earlier, TemplateEncoder):
        lines = [line.text for line in encoder.template.lines]
        others = [line.text for line in earlier.template.lines]
        if lines != others:
            odd = sorted(set(lines) ^ set(others)) or ["the order of the lines"]
            known = earlier.template.builtin
            hint = "" if known is None else f" (its template is {known})"
            raise NotCompatibleError(
                f"{what} was trained with another template: {len(others)} lines, and this one "
                f"has {len(lines)}; they differ in {odd[0]!r:.80}{hint}"
            )


def _described(encoder: FeatureEncoder | TemplateEncoder) -> str:
    """Say what kind of features an encoder has; two that can be joined say the same."""
    if isinstance(encoder, TemplateEncoder):
        text, vectors = "a template", encoder.embeddings
        if vectors is not None:
            window = f", window={vectors.window}" if vectors.window else ""
            text += f" and embeddings {vectors.hash[:8]} (scale={vectors.scale:g}{window})"
    else:
        text = f"features of kind {encoder.kind}"
        if encoder.kind is not None and encoder.kind.startswith("sparse"):
            text += f" with {encoder.n_sparse} sparse columns"
        if encoder.n_dense:
            text += f" with {encoder.n_dense} dense columns"
    return text + (f" and hash_bits={encoder.hash_bits}" if encoder.hash_bits is not None else "")
