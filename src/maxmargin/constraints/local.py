"""Constraints on single tokens and on neighbouring labels: exact by Viterbi.

Their coordinates stand at one token or one edge each, so that c φ + q φ² is a term of the emissions
or transitions there. A coordinate that no labelling can violate (a token that is no restricted
word, a transition after punctuation) is constant and left out: it adds nothing to any difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.constraints.base import Case, Constraint, label_tuple, whole
from maxmargin.constraints.matching import TokenMatch
from maxmargin.constraints.sample import Column, Sample
from maxmargin.errors import ConstraintError

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly

__all__ = ["Changes", "First", "Last", "Words"]


@dataclass(frozen=True)
class Words(Constraint):
    """Certain tokens take certain labels only: "pp" and "pages" are in the field pages.

    Parameters
    ----------
    words : str or list of str
        These words.
    labels : label or list of labels
        The labels that they may have.
    pattern, is_, predicate, column, match_case
        Further tokens, and how words are compared: see `TokenMatch`.
    name, weight
        As in `Constraint`.

    Examples
    --------
    >>> Words(["pp", "pages"], "pages").title
    'pp, pages -> pages'
    >>> Words(pattern="(19|20)[0-9][0-9]", labels="date").title
    '/(19|20)[0-9][0-9]/ -> date'
    """

    kind: ClassVar[str] = "words"
    words: Any = ()
    labels: tuple[Any, ...] = ()
    pattern: str | None = None
    is_: str | None = None
    predicate: Callable[[str], bool] | None = None
    column: Column = None
    match_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        words = (self.words,) if isinstance(self.words, str) else tuple(self.words)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "labels", label_tuple(self.labels))
        self.match  # noqa: B018  (checks the words)

    @property
    def match(self) -> TokenMatch:
        """The tokens that it is about."""
        return TokenMatch(
            self.words, self.pattern, self.is_, self.predicate, self.column, self.match_case
        )

    def describe(self) -> str:
        """Return words -> labels."""
        return f"{self.match} -> {' or '.join(map(str, self.labels))}"

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels

    def assemble(self, assembly: Assembly) -> None:
        """Give a coordinate for each matching token: 1 if its label is one of those."""
        allowed = assembly.indicator(self.labels)
        assembly.at_tokens(whole(assembly.sample.matched(self.match)), allowed)

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each matching token."""
        a, b = int(sample.offsets[i]), int(sample.offsets[i + 1])
        for t in np.flatnonzero(sample.matched(self.match)[a:b]).tolist():
            yield Case(t, t + 1, y[t] in self.labels)


@dataclass(frozen=True)
class Changes(Constraint):
    """The label changes at certain tokens only: after punctuation, for example.

    Parameters
    ----------
    after, at : TokenMatch, str, list of str, re.Pattern, callable or None
        The label of a token may differ from that of the token before if the token before (after) or
        the token itself (at) is one of these; see `TokenMatch.of`. At least one of the two.
    column, match_case
        As in `TokenMatch`.
    name, weight
        As in `Constraint`.

    Examples
    --------
    >>> Changes(after="punctuation").title
    'labels change only after punctuation'
    """

    kind: ClassVar[str] = "changes"
    after: Any = None
    at: Any = None
    column: Column = None
    match_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("after", "at"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        if self.after is None and self.at is None:
            raise ConstraintError("Changes: neither after nor at is given; expected tokens")
        self._matches()

    def _matches(self) -> dict[str, TokenMatch]:
        options = {"column": self.column, "match_case": self.match_case}
        given = {"after": self.after, "at": self.at}
        return {k: TokenMatch.of(v, **options) for k, v in given.items() if v is not None}

    def describe(self) -> str:
        """Return where labels change."""
        places = " or ".join(f"{k} {m}" for k, m in self._matches().items())
        return f"labels change only {places}"

    def labels_named(self) -> tuple[Any, ...]:
        """Return none."""
        return ()

    def mask(self, sample: Sample) -> NDArray[np.bool_]:
        """Return at which tokens a label may differ from the one before."""
        may = np.zeros(sample.n_tokens, dtype=np.bool_)
        matches = self._matches()
        if "after" in matches:
            may[1:] |= sample.matched(matches["after"])[:-1]
        if "at" in matches:
            may |= sample.matched(matches["at"])
        may[sample.offsets[:-1]] = True  # the first token of a sequence has none before it
        return may

    def assemble(self, assembly: Assembly) -> None:
        """Give a coordinate for each edge that may not change: 1 if the labels are the same."""
        assembly.at_edges(whole(~assembly.sample.matched(self)), np.eye(assembly.n_labels))

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each change of label."""
        may = sample.matched(self)[int(sample.offsets[i]) : int(sample.offsets[i + 1])]
        for t in range(1, len(y)):
            if y[t] != y[t - 1]:
                yield Case(t - 1, t + 1, bool(may[t]))


@dataclass(frozen=True)
class _Ends(Constraint):
    """The first or the last label is one of some."""

    labels: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", label_tuple(self.labels))

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels

    def describe(self) -> str:
        """Return which labels begin or end a sequence."""
        return f"{self.kind} label is {' or '.join(map(str, self.labels))}"


@dataclass(frozen=True)
class First(_Ends):
    """A sequence begins with one of these labels: a citation starts with an author.

    Parameters
    ----------
    labels : label or list of labels
        The labels.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "first"

    def assemble(self, assembly: Assembly) -> None:
        """Give a coordinate at the first token of each sequence."""
        assembly.at_tokens(assembly.sample.offsets[:-1], assembly.indicator(self.labels))

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the first token."""
        yield Case(0, 1, y[0] in self.labels)


@dataclass(frozen=True)
class Last(_Ends):
    """A sequence ends with one of these labels.

    Parameters
    ----------
    labels : label or list of labels
        The labels.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "last"

    def assemble(self, assembly: Assembly) -> None:
        """Give a coordinate at the last token of each sequence."""
        assembly.at_tokens(assembly.sample.offsets[1:] - 1, assembly.indicator(self.labels))

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the last token."""
        yield Case(len(y) - 1, len(y), y[-1] in self.labels)
