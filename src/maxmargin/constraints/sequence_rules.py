"""Constraints on whole labellings: counts, segments, order, length.

Inference is exact with states beside the labels: native automata
(``native/constraint_automata.hpp``) read the labelling from the left. A count needs its number as
state (the paper's "double" dynamic programme), fields that occur once the set of labels seen, an
order the highest rank seen, a length the tokens of the present segment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, check_whole
from maxmargin.constraints.base import Case, Constraint, check_per, label_tuple, segments
from maxmargin.constraints.gamma import IntervalGamma
from maxmargin.constraints.sample import Sample
from maxmargin.errors import ConstraintError

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly, Piece

__all__ = ["AtLeast", "AtMost", "Exactly", "MinimumLength", "OneSegment", "Order", "increments"]


def increments(assembly: Assembly, labels: Sequence[Any], of: str) -> NDArray[np.uint8]:
    """Return which steps count: [L + 1][L], by the label before (last row: none) and the label.

    Parameters
    ----------
    assembly : Assembly
        It knows the labels.
    labels : sequence of labels
        What is counted.
    of : "tokens" or "segments"
        Tokens with these labels, or the segments that they begin.

    Returns
    -------
    uint8 array
        Ravelled.
    """
    own = assembly.indicator(labels).astype(np.uint8)
    table = np.tile(own, (assembly.n_labels + 1, 1))
    if of == "segments":
        np.fill_diagonal(table[:-1], 0)
    return table.ravel()


@dataclass(frozen=True)
class _Count(Constraint):
    """A sequence has between low and high tokens, or segments, of some labels."""

    exact_by: ClassVar[str] = "states"
    labels: tuple[Any, ...] = ()
    k: int = 1
    of: str = "tokens"
    form: str = "satisfied"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", label_tuple(self.labels))
        check_whole("k", self.k, 0)
        check_choice("of", self.of, ("tokens", "segments"))
        check_choice("form", self.form, ("satisfied", "count"))

    @property
    def bounds(self) -> tuple[int, float]:
        """The least and the greatest count."""
        raise NotImplementedError

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels

    def describe(self) -> str:
        """Return how many of what."""
        words = self.kind.replace("_", " ")
        return f"{words} {self.k} {self.of} of {' or '.join(map(str, self.labels))}"

    def assemble(self, assembly: Assembly) -> None:
        """Give one coordinate a sequence: whether the count is right, or the count."""
        table = increments(assembly, self.labels, self.of).tolist()
        if self.form == "count":
            assembly.automaton("total", 1, increments=table)
            return
        low, high = self.bounds
        top = -1 if math.isinf(high) else int(high)
        assembly.automaton("count", 1, increments=table, low=low, high=top)

    def target(self, piece: int) -> float:
        """Return 1, or of counts the number."""
        return 1.0 if self.form == "satisfied" else float(self.k)

    def gamma(self, dimension: int, pieces: Sequence[Piece], sample: Sample) -> IntervalGamma:
        """Return the distance of a count from its bounds: the hinge of Eq. (4)."""
        if self.form == "satisfied":
            return super().gamma(dimension, pieces, sample)
        low, high = self.bounds
        which = pieces[0].coordinates
        return IntervalGamma.coordinates(
            dimension, which, low=float(low), high=high, weight=self.finite_weight
        )

    def decoding(self) -> Constraint:
        """Return the binary form."""
        return replace(self, form="satisfied")

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the sequence."""
        if self.of == "tokens":
            n = sum(label in self.labels for label in y)
        else:
            n = sum(label in self.labels for _, _, label in segments(y))
        low, high = self.bounds
        yield Case(0, len(y), low <= n <= high)


@dataclass(frozen=True)
class AtLeast(_Count):
    """A sequence has at least k of a label: every sentence has a verb.

    Parameters
    ----------
    labels : label or list of labels
        What is counted; several labels are counted together.
    k : int
        The number.
    of : "tokens" or "segments"
        Whether tokens or contiguous segments are counted.
    form : "satisfied" or "count"
        What φ is: 1 where the constraint holds, with the target 1; or the count itself, with the
        hinge of Eq. (4) as Γ. Decoding uses the first in any case.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "at_least"

    @property
    def bounds(self) -> tuple[int, float]:
        """The least and the greatest count."""
        return self.k, math.inf


@dataclass(frozen=True)
class AtMost(_Count):
    """A sequence has at most k of a label.

    Parameters
    ----------
    labels : label or list of labels
        What is counted; several labels are counted together.
    k : int
        The number.
    of : "tokens" or "segments"
        Whether tokens or contiguous segments are counted.
    form : "satisfied" or "count"
        What φ is: 1 where the constraint holds, with the target 1; or the count itself, with the
        hinge of Eq. (4) as Γ. Decoding uses the first in any case.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "at_most"

    @property
    def bounds(self) -> tuple[int, float]:
        """The least and the greatest count."""
        return 0, float(self.k)


@dataclass(frozen=True)
class Exactly(_Count):
    """A sequence has exactly k of a label.

    Parameters
    ----------
    labels : label or list of labels
        What is counted; several labels are counted together.
    k : int
        The number.
    of : "tokens" or "segments"
        Whether tokens or contiguous segments are counted.
    form : "satisfied" or "count"
        What φ is: 1 where the constraint holds, with the target 1; or the count itself, with the
        hinge of Eq. (4) as Γ. Decoding uses the first in any case.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "exactly"

    @property
    def bounds(self) -> tuple[int, float]:
        """The least and the greatest count."""
        return self.k, float(self.k)


@dataclass(frozen=True)
class OneSegment(Constraint):
    """A label is one contiguous segment and occurs at most once in a sequence.

    Parameters
    ----------
    labels : label, list of labels or None
        The labels that this is about; None: all.
    per : "sequence" or "token"
        Whether φ has one entry a sequence (as in the paper), or one for each token after the first,
        0 where a label comes back.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "one_segment"
    exact_by: ClassVar[str] = "states"
    labels: tuple[Any, ...] | None = None
    per: str = "sequence"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None:
            object.__setattr__(self, "labels", label_tuple(self.labels))
        check_per(self.per)

    def describe(self) -> str:
        """Return which labels occur once."""
        which = "each label" if self.labels is None else " and ".join(map(str, self.labels))
        return f"{which} is one segment, at most once"

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels or ()

    def assemble(self, assembly: Assembly) -> None:
        """Give an automaton with the set of labels seen."""
        labels = assembly.labels if self.labels is None else self.labels
        assembly.automaton(
            "segments",
            *_per(self.per, assembly.sample.lengths - 1),
            labels=assembly.indicator(labels).astype(np.int32).tolist(),
            per_token=self.per == "token",
        )

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the sequence; a violated one is shown where a label comes back."""
        seen = set()
        for begin, end, label in segments(y):
            if label in seen and (self.labels is None or label in self.labels):
                yield Case(begin, end, False)
                return
            seen.add(label)
        yield Case(0, len(y), True)


@dataclass(frozen=True)
class Order(Constraint):
    """Fields come in this order: no label comes after a later one.

    Parameters
    ----------
    labels : list of labels
        The order. Labels that are not in it may stand anywhere.
    per : "sequence" or "token"
        As in `OneSegment`.
    name, weight
        As in `Constraint`.

    Examples
    --------
    >>> Order(["author", "title", "date"]).title
    'author before title before date'
    """

    kind: ClassVar[str] = "order"
    exact_by: ClassVar[str] = "states"
    labels: tuple[Any, ...] = ()
    per: str = "sequence"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", label_tuple(self.labels))
        if len(self.labels) < 2:
            raise ConstraintError("Order: one label is no order; expected at least two")
        check_per(self.per)

    def describe(self) -> str:
        """Return the order."""
        return " before ".join(map(str, self.labels))

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels

    def assemble(self, assembly: Assembly) -> None:
        """Give an automaton with the highest rank seen."""
        ranks = np.full(assembly.n_labels, -1, np.int32)
        for rank, label in enumerate(self.labels):
            ranks[assembly.code(label)] = rank
        assembly.automaton(
            "order",
            *_per(self.per, assembly.sample.lengths - 1),
            labels=ranks.tolist(),
            per_token=self.per == "token",
        )

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the sequence; a violated one is shown where a label comes too late."""
        rank = {label: k for k, label in enumerate(self.labels)}
        top = -1
        for begin, end, label in segments(y):
            if label in rank:
                if rank[label] < top:
                    yield Case(begin, end, False)
                    return
                top = rank[label]
        yield Case(0, len(y), True)


@dataclass(frozen=True)
class MinimumLength(Constraint):
    """A segment has at least so many tokens: a field is at least 3 words long.

    Parameters
    ----------
    k : int
        The least number of tokens.
    labels : label, list of labels or None
        The labels whose segments are meant; None: all.
    per : "token" or "sequence"
        Whether φ has an entry for each place where a segment may end, 0 where a short one ends, or
        one entry a sequence.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "minimum_length"
    exact_by: ClassVar[str] = "states"
    k: int = 1
    labels: tuple[Any, ...] | None = None
    per: str = "token"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("k", self.k, 1)
        if self.labels is not None:
            object.__setattr__(self, "labels", label_tuple(self.labels))
        check_per(self.per)

    def describe(self) -> str:
        """Return which segments have how many tokens."""
        which = "a segment" if self.labels is None else f"a {' or '.join(map(str, self.labels))}"
        return f"{which} has at least {self.k} tokens"

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return self.labels or ()

    def assemble(self, assembly: Assembly) -> None:
        """Give an automaton with the tokens of the present segment."""
        labels = assembly.labels if self.labels is None else self.labels
        least = (assembly.indicator(labels) * self.k).astype(np.int32)
        assembly.automaton(
            "length",
            *_per(self.per, assembly.sample.lengths),
            labels=least.tolist(),
            per_token=self.per == "token",
        )

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each segment of these labels."""
        for begin, end, label in segments(y):
            if self.labels is None or label in self.labels:
                yield Case(begin, end, end - begin >= self.k)


def _per(per: str, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64] | int]:
    """Return how many coordinates a sequence has."""
    return (tokens if per == "token" else 1,)
