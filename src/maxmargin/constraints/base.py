"""What every constraint is: a φ, a target, a Γ, and where it holds in a labelling.

A constraint is a small frozen object that can be printed, compared and written to TOML. It knows

- `Constraint.assemble`: its coordinates of φ(x, y), 1 where it is satisfied (section 5.1 of the
  paper), given to an `Assembly` as tables at tokens and edges, or as automata;
- `Constraint.gamma`: what v costs, by default the L1 distance to the target 1;
- `Constraint.cases`: the places of a labelling that it is about, for people: a word, a change of
  label, a segment, a sequence, each held or violated;
- `Constraint.exact_by`: by which inference (14), (15) and decoding are exact.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, is_real
from maxmargin.constraints.gamma import IntervalGamma
from maxmargin.constraints.sample import Sample
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly, Piece

__all__ = ["Case", "Constraint", "label_tuple", "segments"]


class Case(NamedTuple):
    """A place of a labelling that a constraint is about.

    Attributes
    ----------
    start, end : int
        The tokens start ... end - 1 of the sequence.
    holds : bool
        Whether the constraint holds there.
    """

    start: int
    end: int
    holds: bool


def label_tuple(labels: Any, what: str = "labels") -> tuple[Any, ...]:
    """Return labels as a tuple: one label, or several.

    Parameters
    ----------
    labels : label or iterable of labels
        What a user wrote.
    what : str
        What messages call it.

    Returns
    -------
    tuple
        At least one label, none of them twice.
    """
    if isinstance(labels, str | bytes | int) or not isinstance(labels, Iterable):
        labels = (labels,)
    found: tuple[Any, ...] = tuple(labels)
    if not found:
        raise ConstraintError(f"{what} is empty; expected at least one label")
    if len(set(found)) != len(found):
        raise ConstraintError(f"{what} has a label twice: {quoted(found)}")
    return found


def segments(y: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield the segments of a labelling: first token, end, label.

    Parameters
    ----------
    y : sequence of labels
        One a token.

    Yields
    ------
    tuple
        Segments of equal labels, as long as can be.
    """
    begin = 0
    for t in range(1, len(y) + 1):
        if t == len(y) or y[t] != y[begin]:
            yield begin, t, y[begin]
            begin = t


@dataclass(frozen=True)
class Constraint(ABC):
    """Prior knowledge about labellings.

    Parameters
    ----------
    name : str or None
        What reports and messages call it; None: a description.
    weight : float
        What a violation counts in Γ and in soft decoding; positive. Infinity: soft decoding treats
        the constraint as hard.
    feature : bool
        Whether a model with constraint features has a weight of this one. The paper gives weights
        to transitions and to the global constraint, and none to its word rules.
    """

    #: Name of the kind in TOML.
    kind: ClassVar[str]
    #: "viterbi": labels alone; "states": labels and states of an automaton; "search": approximate.
    exact_by: ClassVar[str] = "viterbi"
    #: Whether it is about the whole sample: it takes no part in decoding.
    of_sample: ClassVar[bool] = False

    name: str | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    feature: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.feature, bool):
            raise ConstraintError(f"feature is {quoted(self.feature)}; expected true or false")
        if self.name is not None and not isinstance(self.name, str):
            raise ConstraintError(f"name is {quoted(self.name)}; expected a text")
        if not is_real(self.weight) or not self.weight > 0 or math.isnan(self.weight):
            raise ConstraintError(f"weight is {quoted(self.weight)}; expected a positive number")

    @property
    def title(self) -> str:
        """Its name, or a description."""
        return self.name if self.name is not None else self.describe()

    @abstractmethod
    def describe(self) -> str:
        """Return what it says, in a few words."""

    @abstractmethod
    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""

    @abstractmethod
    def assemble(self, assembly: Assembly) -> None:
        """Give the coordinates of φ for a sample to an assembly."""

    @abstractmethod
    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield the places of a labelling of sequence ``i`` that it is about."""

    def target(self, piece: int) -> float:
        """Return the value that φ shall have in a piece of the constraint; 1: satisfied."""
        return 1.0

    def gamma(self, dimension: int, pieces: Sequence[Piece], sample: Sample) -> IntervalGamma:
        """Return what v costs: by default Σ_k weight |v_k - target|.

        Parameters
        ----------
        dimension : int
            Length of v.
        pieces : list of Piece
            The coordinates, as `assemble` gave them.
        sample : Sample
            The sequences.

        Returns
        -------
        IntervalGamma
            Terms over all v.
        """
        which = [piece.coordinates for piece in pieces]
        targets = [np.full(len(k), self.target(n)) for n, k in enumerate(which)]
        every = np.concatenate([*which, np.empty(0, np.int64)])
        a = np.concatenate([*targets, np.empty(0)])
        return IntervalGamma.coordinates(dimension, every, low=a, high=a, weight=self.finite_weight)

    @property
    def finite_weight(self) -> float:
        """The weight in Γ, where an infinite one counts as 1."""
        return 1.0 if math.isinf(self.weight) else float(self.weight)

    def decoding(self) -> Constraint | None:
        """Return the constraint as decoding uses it: binary; None: it takes no part."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return it as a table of TOML: what differs from the defaults.

        Returns
        -------
        dict
            With its ``kind``.

        Raises
        ------
        ConstraintError
            If it has a function, which a file cannot hold.
        """
        out: dict[str, Any] = {"kind": self.kind}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.default is not dataclasses.MISSING and value == f.default:
                continue
            out[f.name.removesuffix("_")] = self._plain(f.name, value)
        return out

    def _plain(self, key: str, value: Any) -> Any:
        if callable(value):
            raise ConstraintError(
                f"the constraint {quoted(self.title)} has a function in {key}, which a file cannot "
                "hold"
            )
        if isinstance(value, tuple):
            return [self._plain(key, v) for v in value]
        return value

    def __str__(self) -> str:
        return self.title


def check_per(per: object) -> None:
    """Refuse a ``per`` that is none."""
    check_choice("per", per, ("sequence", "token"))


def whole(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the places of a mask that are true."""
    return np.flatnonzero(mask).astype(np.int64)
