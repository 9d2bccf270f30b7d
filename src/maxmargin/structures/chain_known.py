"""Labels that are known before decoding: as users give them, and what to say if they cannot be.

Decoding with known labels is exact: the native recursions look at the labellings that have them,
and at no others (``native/chain_decode.hpp``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import KnownLabelError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain_learning import EdgeMask

__all__ = ["conflict", "known_codes"]


def known_codes(
    known: Any, codes: Mapping[Any, int], offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return known labels as codes.

    Parameters
    ----------
    known : list of sequences, whose items are labels or None
        One item for each token, None where the label is not known; in the place of a sequence of
        which nothing is known, None.
    codes : mapping
        The code of each label.
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence.

    Returns
    -------
    int32 array of shape (n_tokens,)
        Codes, and -1 where nothing is known.

    Raises
    ------
    ValueError, TypeError
        If lengths differ, or a label is not one of the model's; the message names the token.
    """
    if isinstance(known, str) or not isinstance(known, Iterable):
        raise TypeError(
            f"known is {quoted(known)}; expected a list of sequences of labels, with None where a "
            "label is not known"
        )
    rows = list(known)
    if len(rows) != len(offsets) - 1:
        raise ValueError(f"X has {len(offsets) - 1} sequences and known {len(rows)}")
    result = np.full(int(offsets[-1]), -1, dtype=np.int32)
    for i, (row, (begin, end)) in enumerate(
        zip(rows, itertools.pairwise(offsets.tolist()), strict=True)
    ):
        if row is None:
            continue
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise TypeError(
                f"sequence {i} of known is {quoted(row)}; expected a sequence of labels, or None"
            )
        labels = list(row)
        if len(labels) != end - begin:
            raise ValueError(
                f"sequence {i} has {end - begin} tokens and {len(labels)} known labels (None where "
                "a label is not known)"
            )
        for t, label in enumerate(labels):
            if label is None:
                continue
            try:
                result[begin + t] = codes[label]
            except (KeyError, TypeError):
                raise ValueError(
                    f"sequence {i}, token {t}: the known label {quoted(label)} is not one of the "
                    f"{len(codes)} labels of the model"
                ) from None
    return result


def conflict(
    known: NDArray[np.int32],
    offsets: NDArray[np.int64],
    mask: EdgeMask | None,
    labels: Sequence[Any],
) -> KnownLabelError | None:
    """Say which known label is the first that cannot be, by what may follow, begin and end.

    Parameters
    ----------
    known : int32 array of shape (n_tokens,)
        Codes, and -1 where nothing is known.
    offsets : int64 array of shape (n_sequences + 1,)
        The first token of each sequence.
    mask : EdgeMask or None
        Which labels may follow each other, begin and end.
    labels : sequence
        The labels by their codes.

    Returns
    -------
    KnownLabelError or None
        None if every sequence has a labelling.
    """
    if mask is None:
        return None
    L = len(labels)
    transition, start, end = (np.asarray(part, dtype=bool) for part in mask)
    transition = transition.reshape(L, L)
    for i, (begin, stop) in enumerate(itertools.pairwise(offsets.tolist())):
        reached = start.copy()  # the labels with which a labelling can have come to a token
        for token in range(begin, stop):
            if token > begin:
                reached = transition[reached].any(axis=0)
            if known[token] >= 0:
                only = np.zeros(L, dtype=bool)
                only[known[token]] = True
                reached &= only
            last = token == stop - 1 and bool(reached.any())  # what is not allowed is to end here
            if last:
                reached &= end
            if not reached.any():
                return _error(known, labels, i, token, begin, last=last)
    return None


def _error(
    known: NDArray[np.int32], labels: Sequence[Any], i: int, token: int, begin: int, *, last: bool
) -> KnownLabelError:
    given = [t for t in range(begin, token + 1) if known[t] >= 0]
    if not given:
        return KnownLabelError(
            f"sequence {i}, token {token - begin}: no labelling is allowed", token, token - begin
        )
    at = given[-1]
    here = f"the known label {quoted(labels[known[at]])}"
    behind = f" behind {quoted(labels[known[given[-2]]])}" if len(given) > 1 else ""
    place = ", at the end of its sequence," if last and at == token else ""
    what = f"{here}{place} does not go with the sequences of labels that are allowed{behind}"
    return KnownLabelError(f"sequence {i}, token {at - begin}: {what}", at, at - begin, what)
