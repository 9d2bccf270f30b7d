"""Attachment scores of dependency trees.

UAS is the share of words with the right head; LAS, the share of words with the right head and the
right relation. For a sentence whose words are given, precision, recall and F1 of the CoNLL 2018
shared task (Zeman et al. 2018) are this one number, and it compares the universal part of a
relation only: what follows a colon (``nsubj:pass``) is left out. A root is a word with head 0. On
the Wall Street Journal it is usual to leave out punctuation (`punctuation` and ``keep``); the
shared task counts all words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["AttachmentScores", "attachment_counts", "attachment_scores", "punctuation"]

#: The tags of the Penn Treebank that parsers' evaluations leave out.
WSJ_PUNCTUATION = frozenset(["``", "''", ",", ":", "."])


class AttachmentScores(TypedDict):
    """What `attachment_scores` returns."""

    uas: float
    las: float | None
    n: int


def attachment_scores(
    gold_heads: Sequence[ArrayLike],
    heads: Sequence[ArrayLike],
    gold_deprels: Sequence[Sequence[str]] | None = None,
    deprels: Sequence[Sequence[str]] | None = None,
    *,
    keep: Sequence[ArrayLike] | None = None,
) -> AttachmentScores:
    """Return the attachment scores of dependency trees.

    Parameters
    ----------
    gold_heads, heads : list of arrays of int
        The true and the predicted heads of each sentence; 0 stands for the root.
    gold_deprels, deprels : list of lists of str, optional
        The true and the predicted relations; both or neither.
    keep : list of arrays of bool, optional
        Which words count. Default: all.

    Returns
    -------
    dict
        ``uas`` and ``las``, shares between 0 and 1 (``las`` is None without relations), and ``n``,
        the number of words that count.

    Raises
    ------
    ValueError
        If the arguments do not belong together, or if no word counts.
    """
    counts = attachment_counts(gold_heads, heads, gold_deprels, deprels, keep=keep)
    n, right_heads, right = (int(total) for total in counts.sum(axis=0))
    if n == 0:
        raise ValueError("found no words that count; expected at least one")
    las = None if deprels is None else right / n
    return AttachmentScores(uas=right_heads / n, las=las, n=n)


def attachment_counts(
    gold_heads: Sequence[ArrayLike],
    heads: Sequence[ArrayLike],
    gold_deprels: Sequence[Sequence[str]] | None = None,
    deprels: Sequence[Sequence[str]] | None = None,
    *,
    keep: Sequence[ArrayLike] | None = None,
) -> NDArray[np.int64]:
    """Count the right words of each sentence, for example for a paired test of two parsers.

    Parameters
    ----------
    gold_heads, heads, gold_deprels, deprels, keep
        As for `attachment_scores`.

    Returns
    -------
    int64 array of shape (n_sentences, 3)
        For each sentence the number of words that count, of those with the right head, and of those
        with the right head and relation (0 without relations).
    """
    if (gold_deprels is None) != (deprels is None):
        raise ValueError("found relations on one side only; expected both or neither")
    sizes = {
        "true heads": gold_heads,
        "predicted heads": heads,
        "true relations": gold_deprels,
        "predicted relations": deprels,
        "words to keep": keep,
    }
    for what, given in sizes.items():
        if given is not None and len(given) != len(gold_heads):
            raise ValueError(
                f"found {what} of {len(given)} sentences; expected {len(gold_heads)}, as there "
                "are of true heads"
            )
    counts = np.zeros((len(gold_heads), 3), dtype=np.int64)
    for i, truth in enumerate(gold_heads):
        gold = np.asarray(truth)
        for what, given in sizes.items():
            if given is not None and np.shape(given[i]) != (len(gold),):
                raise ValueError(
                    f"sentence {i}: found {what} of shape {np.shape(given[i])}; expected a value "
                    f"for each of {len(gold)} words"
                )
        kept = np.ones(len(gold), dtype=bool) if keep is None else np.asarray(keep[i], dtype=bool)
        right = (np.asarray(heads[i]) == gold) & kept
        counts[i, :2] = kept.sum(), right.sum()
        if gold_deprels is not None and deprels is not None:
            same = [
                _universal(a) == _universal(b)
                for a, b in zip(gold_deprels[i], deprels[i], strict=True)
            ]
            counts[i, 2] = (right & np.array(same, dtype=bool)).sum()
    return counts


def _universal(relation: str) -> str:
    return relation.partition(":")[0]


def punctuation(
    sentences: Sequence[Sequence[str]], by: Literal["upos", "xpos", "form"]
) -> list[NDArray[np.bool_]]:
    """Say which words are punctuation.

    Parameters
    ----------
    sentences : list of lists of str
        The values of one column, a value for each word of each sentence.
    by : {"upos", "xpos", "form"}
        What they are. "upos": universal tags, of which PUNCT is punctuation. "xpos": tags of the
        Penn Treebank, of which quotation marks, comma, colon and full stop are
        (`WSJ_PUNCTUATION`), as usual on the Wall Street Journal; brackets and currency signs are
        words. "form": the words themselves, which are punctuation if all of their characters are
        of a Unicode category P.

    Returns
    -------
    list of bool arrays
        Negated (``~mask``), they are what `attachment_scores` takes as ``keep``.
    """
    if by not in ("upos", "xpos", "form"):
        raise ValueError(f'by is {by!r}; expected "upos", "xpos" or "form"')
    known: dict[str, bool] = {}

    def is_punctuation(value: str) -> bool:
        answer = known.get(value)
        if answer is None:
            if by == "upos":
                answer = value == "PUNCT"
            elif by == "xpos":
                answer = value in WSJ_PUNCTUATION
            else:
                answer = bool(value) and all(
                    unicodedata.category(c).startswith("P") for c in value
                )
            known[value] = answer
        return answer

    return [np.array([is_punctuation(v) for v in values], dtype=bool) for values in sentences]
