"""A user's own φ: of a token, of an edge, or of a whole labelling.

Functions of a token or of two neighbouring labels are additive, and inference with them is exact by
Viterbi whatever their values. A function of the whole labelling is a black box: inference looks at
the best labellings without it and says how far it may be from the best (`SequenceFunction`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_whole, is_real
from maxmargin.constraints.base import Case, Constraint
from maxmargin.constraints.sample import Sample
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly

__all__ = ["EdgeFunction", "SequenceFunction", "TokenFunction"]


@dataclass(frozen=True)
class _Function(Constraint):
    """A constraint by a function."""

    function: Callable[..., Any] | None = None
    goal: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise ConstraintError(
                f"{type(self).__name__}: function is {quoted(self.function)}; expected a function"
            )
        if not is_real(self.goal):
            raise ConstraintError(f"goal is {quoted(self.goal)}; expected a number")

    def describe(self) -> str:
        """Return the name of the function."""
        return getattr(self.function, "__name__", "a function")

    def labels_named(self) -> tuple[Any, ...]:
        """Return none: the function knows."""
        return ()

    def target(self, piece: int) -> float:
        """Return the goal."""
        return float(self.goal)

    def call(self, where: str, *arguments: Any) -> Any:
        """Call the function; an error of it says where."""
        assert self.function is not None
        try:
            return self.function(*arguments)
        except Exception as error:
            error.add_note(f"in the constraint {self.title}, {where}")
            raise

    def number(self, where: str, *arguments: Any) -> float:
        """Call the function and return a finite number."""
        value = self.call(where, *arguments)
        if not (is_real(value) or isinstance(value, bool | np.bool_)) or not np.isfinite(value):
            raise ConstraintError(
                f"constraint {quoted(self.title)}, {where}: the function returned {quoted(value)}; "
                "expected a finite number"
            )
        return float(value)


@dataclass(frozen=True)
class TokenFunction(_Function):
    """A φ of a token and its label, given by a function; additive, exact by Viterbi.

    Parameters
    ----------
    function : callable
        ``function(x, t, label)`` returns φ at token t of the sequence x for a label: 1 where the
        constraint is satisfied and 0 where not, or any number. It is called once for each token
        and label.
    goal : float
        The target of φ.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "token_function"

    def assemble(self, assembly: Assembly) -> None:
        """Give tables of the function's values."""
        rows = _values(
            assembly,
            lambda x, t, i: [
                self.number(f"sequence {i}, token {t}, label {label}", x, t, label)
                for label in assembly.labels
            ],
        )
        tables, which = np.unique(rows, axis=0, return_inverse=True)
        for k, table in enumerate(tables):
            if (table == self.goal).all():
                continue  # never violated
            assembly.at_tokens(np.flatnonzero(which.ravel() == k).astype(np.int64), table)

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each token."""
        x = sample.sequence(i)
        for t, label in enumerate(y):
            yield Case(t, t + 1, self.number(f"sequence {i}, token {t}", x, t, label) == self.goal)


@dataclass(frozen=True)
class EdgeFunction(_Function):
    """A φ of two neighbouring labels, given by a function; additive, exact by Viterbi.

    Parameters
    ----------
    function : callable
        ``function(x, t, before, label)`` returns φ at token t >= 1 of the sequence x for the label
        of token t - 1 and its own. It is called for each token and pair of labels.
    goal : float
        The target of φ.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "edge_function"

    def assemble(self, assembly: Assembly) -> None:
        """Give tables of the function's values."""
        L = assembly.n_labels
        rows = _values(
            assembly,
            lambda x, t, i: (
                [
                    self.number(f"sequence {i}, token {t}, labels {p} {label}", x, t, p, label)
                    for p in assembly.labels
                    for label in assembly.labels
                ]
                if t
                else [self.goal] * L**2
            ),
        )
        tables, which = np.unique(rows, axis=0, return_inverse=True)
        for k, table in enumerate(tables):
            if (table == self.goal).all():
                continue
            tokens = np.flatnonzero(which.ravel() == k).astype(np.int64)
            assembly.at_edges(tokens, table.reshape(L, L))

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each pair of neighbours."""
        x = sample.sequence(i)
        for t in range(1, len(y)):
            value = self.number(f"sequence {i}, token {t}", x, t, y[t - 1], y[t])
            yield Case(t - 1, t + 1, value == self.goal)


def _values(assembly: Assembly, row: Callable[[Any, int, int], list[float]]) -> NDArray[np.float64]:
    sample = assembly.sample
    return np.array(
        [
            row(sample.sequence(i), t, i)
            for i in range(sample.n_sequences)
            for t in range(int(sample.lengths[i]))
        ]
    )


@dataclass(frozen=True)
class SequenceFunction(_Function):
    """A φ of a whole labelling, given by a function that nobody can look into.

    Inference takes the best of the ``candidates`` best labellings without it and reports an upper
    bound of all; asked for exactness it refuses. Where φ is a sum over tokens or over neighbouring
    labels, `TokenFunction` and `EdgeFunction` are exact.

    Parameters
    ----------
    function : callable
        ``function(x, y)`` returns φ, ``size`` numbers from 0 to 1.
    size : int
        The number of entries of φ.
    goal : float
        The target of φ.
    candidates : int
        How many labellings are looked at.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "sequence_function"
    exact_by: ClassVar[str] = "search"
    size: int = 1
    candidates: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("size", self.size, 1)
        check_whole("candidates", self.candidates, 1)

    def assemble(self, assembly: Assembly) -> None:
        """Give coordinates that native code leaves alone."""
        assembly.function(self.size)

    def phi(self, sample: Sample, i: int, y: Sequence[Any]) -> NDArray[np.float64]:
        """Return φ of a labelling of sequence ``i``, checked."""
        where = f"sequence {i}"
        value = np.asarray(self.call(where, sample.sequence(i), list(y)), dtype=np.float64)
        if value.ndim == 0:
            value = value[None]
        if value.shape != (self.size,):
            raise ConstraintError(
                f"constraint {quoted(self.title)}, {where}: φ has the shape {value.shape}; "
                f"expected ({self.size},)"
            )
        if not ((value >= 0) & (value <= 1)).all():
            raise ConstraintError(
                f"constraint {quoted(self.title)}, {where}: φ is {quoted(value.tolist())}; "
                "expected numbers from 0 to 1"
            )
        return value

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield each entry of φ."""
        for value in self.phi(sample, i, y):
            yield Case(0, len(y), bool(value == self.goal))
