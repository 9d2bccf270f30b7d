"""The rules of ``benchmarks/transductive.py``: what is known of references and advertisements.

The lists are those of Chang, Ratinov and Roth (2007) as the README of the data has them. For
advertisements the paper adds 33 words that belong to fields (Table 1 of Mann and McCallum 2008, for
eleven fields three each, which is not at hand). In their place `frequent_words` takes for each
field the three most frequent words of the *training* file of which nine tenths are in that field:
the criterion by which such lists of prototypes were made. Development and test labels are not used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from maxmargin.constraints import (
    Changes,
    ConstraintSet,
    First,
    MinimumLength,
    OneSegment,
    Words,
)

__all__ = ["ad_rules", "citation_rules", "frequent_words"]

CITATION_WORDS: tuple[tuple[list[str], Any], ...] = (
    (["pp", "pages"], "pages"),
    (['"', "``", "''"], "title"),
    (["note", "submitted", "appear"], "note"),
    (["CA", "Australia", "NY"], "location"),
    (["tech", "technical"], "tech"),
    (["proc", "journal", "proceedings", "ACM"], ["journal", "booktitle"]),
    (["ed", "editors"], "editor"),
)
AD_WORDS = {
    "FEATURES": "laundry kitchen parking",
    "SIZE": "sq ft bdrm",
    "RENT": "$ *MONEY*",
    "NEIGHBORHOOD": "close near shopping",
    "CONTACT": "phone email *PHONE* *EMAIL*",
    "AVAILABLE": "immediately begin cheaper",
    "ROOMATES": "roommates respectful drama",
    "RESTRICTIONS": "smoking dogs cats",
    "PHOTOS": "http image link",
    "ADDRESS": "address carlmont st cross",
    "UTILITIES": "utilities pays electricity",
}


def citation_rules(w: dict[str, float]) -> ConstraintSet:
    """Return the rules for references, with weights of each kind."""
    rules: list[Any] = [Words(a, b, weight=w["words"], feature=False) for a, b in CITATION_WORDS]
    years = Words(pattern="(19|20)[0-9][0-9]", labels="date", weight=w["words"], feature=False)
    rules += [years, First(["author", "editor"], weight=w["first"], feature=False)]
    rules.append(Changes(after="punctuation", weight=w["changes"]))
    rules.append(OneSegment(per="token", weight=w["segment"], feature=False))
    return ConstraintSet(rules)


def frequent_words(
    X: Iterable[Sequence[str]],
    y: Iterable[Sequence[str]],
    known: Iterable[str] = (),
    *,
    each: int = 3,
    share: float = 0.9,
    least: int = 3,
) -> dict[str, list[str]]:
    """Return words that belong to a label, of those in most sequences first.

    Parameters
    ----------
    X, y : lists of words, lists of labels
        A labelled sample.
    known : words
        Those that have a rule already.
    each : int
        Words of a label.
    share : float
        The least share of a word's occurrences that has the label.
    least : int
        In so many sequences at least.

    Returns
    -------
    dict
        Words by label; labels may have fewer, or none.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sequences: Counter[str] = Counter()
    for x, labels in zip(X, y, strict=True):
        sequences.update({word.lower() for word in x})
        for word, label in zip(x, labels, strict=True):
            counts[word.lower()][label] += 1
    out: dict[str, list[str]] = {}
    left = set(counts) - {word.lower() for word in known}
    for word in sorted(left, key=lambda word: (-sequences[word], word)):
        label, n = counts[word].most_common(1)[0]
        if n >= share * counts[word].total() and sequences[word] >= least:
            out.setdefault(label, [])
            if len(out[label]) < each:
                out[label].append(word)
    return out


def ad_rules(w: dict[str, float], more: dict[str, list[str]]) -> ConstraintSet:
    """Return the rules for advertisements; line breaks are missing from this copy."""
    words = {label: [*text.split(), *more.get(label, [])] for label, text in AD_WORDS.items()}
    rules: list[Any] = [
        Words(found, label, weight=w["words"], feature=False) for label, found in words.items()
    ]
    rules.append(Changes(after="punctuation", weight=w["changes"]))
    rules.append(MinimumLength(3, weight=w["length"], feature=False))
    return ConstraintSet(rules)
