"""Expectations over the sample: proportions of labels, frequencies of n-grams (Eqs. (3) and (5)).

    Γ = Σ_g weight · dist( average over the sample of how often g occurs,  [low_g, high_g] )

φ may be encoded in two ways:

- ``"tokens"`` (the default): an indicator at each token. The number of occurrences is a linear
  function of it, so that Γ is the same function of the labelling; all entries of φ are binary, and
  inference is exact by Viterbi (n-grams of three labels and more: with those before as states).
- ``"count"``: φ = the number of occurrences in the sequence, as Eq. (3) is printed. ‖φ‖² is then
  quadratic in the counts, and inference needs a count as state for each g: exact for one or two of
  them, a beam search with a bound for more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, is_real
from maxmargin.constraints.base import Case, Constraint
from maxmargin.constraints.gamma import IntervalGamma
from maxmargin.constraints.sample import Sample
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly, Piece

__all__ = ["NGrams", "Proportion", "SampleConstraint"]

Interval = tuple[float, float]


def _interval(what: Any, value: Any) -> Interval:
    """Return a target as an interval: a number, or (low, high) with None for no bound."""
    if is_real(value):
        low = high = float(value)
    elif isinstance(value, list | tuple) and len(value) == 2:
        for end in value:
            if end is not None and not is_real(end):
                raise ConstraintError(f"{quoted(what)}: the bound {quoted(end)} is no number")
        low = -math.inf if value[0] is None else float(value[0])
        high = math.inf if value[1] is None else float(value[1])
    else:
        raise ConstraintError(
            f"{quoted(what)}: the target is {quoted(value)}; expected a number, or (low, high)"
        )
    if math.isnan(low) or math.isnan(high) or low > high or low == math.inf or high == -math.inf:
        raise ConstraintError(f"{quoted(what)}: the bounds {low:g} and {high:g} are no interval")
    return low, high


@dataclass(frozen=True)
class SampleConstraint(Constraint):
    """A constraint on averages over the sample; it takes no part in decoding."""

    of_sample: ClassVar[bool] = True
    encode: str = field(default="tokens", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("encode", self.encode, ("tokens", "count"))

    @property
    def exact_by(self) -> str:  # type: ignore[override]
        """Viterbi for indicators of one or two labels; counts and longer n-grams need states."""
        return "viterbi" if self.encode == "tokens" and len(self.grams[0][0]) <= 2 else "states"

    @property
    def grams(self) -> tuple[tuple[tuple[Any, ...], Interval], ...]:
        """What is counted: tuples of labels, with the interval of their average."""
        raise NotImplementedError

    def divisor(self, sample: Sample) -> float:
        """Return what the number of occurrences in the sample is divided by."""
        raise NotImplementedError

    def labels_named(self) -> tuple[Any, ...]:
        """Return the labels that it names."""
        return tuple(dict.fromkeys(label for gram, _ in self.grams for label in gram))

    def decoding(self) -> None:
        """Return None: a labelling alone has no averages."""
        return

    def assemble(self, assembly: Assembly) -> None:
        """Give an indicator at each token for each gram, or one count a sequence for each."""
        sample, n = assembly.sample, assembly.n_labels
        tokens = np.arange(sample.n_tokens)
        long = [[assembly.code(label) for label in gram] for gram, _ in self.grams]
        if self.encode == "count":
            for gram in long:
                assembly.automaton("total", 1, increments=_steps(gram, n).tolist())
            return
        if len(long[0]) > 2:
            size = sample.lengths * len(long)
            assembly.automaton(
                "ngrams", size, order=len(long[0]), grams=[*chain.from_iterable(long)]
            )
            return
        for gram in long:
            table = np.zeros((n,) * len(gram))
            table[tuple(gram)] = 1.0
            (assembly.at_tokens if len(gram) == 1 else assembly.at_edges)(tokens, table)

    def target(self, piece: int) -> float:
        """Return the average that an entry of φ shall have, or the end of the interval at hand."""
        low, high = self.grams[min(piece, len(self.grams) - 1)][1]
        return low if math.isfinite(low) else high

    def gamma(self, dimension: int, pieces: Sequence[Piece], sample: Sample) -> IntervalGamma:
        """Return the distances of the averages from their intervals."""
        which = [piece.coordinates for piece in pieces]
        if len(which) != len(self.grams):  # n-grams of one automaton, token by token
            which = [which[0][g :: len(self.grams)] for g in range(len(self.grams))]
        share = 1.0 / self.divisor(sample)
        low, high = np.array([interval for _, interval in self.grams]).T
        return IntervalGamma.average(
            dimension,
            [(k, share) for k in which],
            low=low,
            high=high,
            weight=self.finite_weight,
        )

    def averages(self, sample: Sample, Y: Sequence[Sequence[Any]]) -> list[float]:
        """Return the averages that labellings of the sample have.

        Parameters
        ----------
        sample : Sample
            The sequences.
        Y : list of label sequences
            One label a token.

        Returns
        -------
        list of float
            One for each of ``grams``.
        """
        counts = dict.fromkeys((gram for gram, _ in self.grams), 0)
        n = len(self.grams[0][0])
        for y in Y:
            for t in range(len(y) - n + 1):
                gram = tuple(y[t : t + n])
                if gram in counts:
                    counts[gram] += 1
        return [counts[gram] / self.divisor(sample) for gram, _ in self.grams]

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield nothing: it is about the sample, not about places of one sequence."""
        yield from ()

    def _shown(self) -> str:
        parts = []
        for gram, (low, high) in self.grams[:3]:
            text = " ".join(map(str, gram))
            if low == high:
                parts.append(f"{text} = {low:g}")
            else:
                parts.append(f"{low:g} <= {text} <= {high:g}".replace("-inf <= ", ""))
        more = f", ... ({len(self.grams)} in all)" if len(self.grams) > 3 else ""
        return ", ".join(parts).replace(" <= inf", "") + more


def _steps(gram: list[int], n: int) -> NDArray[np.uint8]:
    """Return which steps end an n-gram of one or two labels: [L + 1][L]."""
    if len(gram) > 2:
        raise ConstraintError(
            f"n-grams of {len(gram)} labels cannot be encoded as counts; expected two labels at "
            'most, or encode="tokens"'
        )
    table = np.zeros((n + 1, n), np.uint8)
    if len(gram) == 1:
        table[:, gram[0]] = 1
    else:
        table[gram[0], gram[1]] = 1
    return table.ravel()


@dataclass(frozen=True)
class Proportion(SampleConstraint):
    """A share of the tokens of the sample has a label: a tenth of the tokens are dates.

    Parameters
    ----------
    shares : dict
        The share of each label, from 0 to 1: a number, or (low, high), where None is no bound.
    encode : "tokens" or "count"
        What φ is: see the module.
    name, weight
        As in `Constraint`.

    Examples
    --------
    >>> Proportion({"date": 0.1, "author": (0.2, None)}).title
    'share of tokens: date = 0.1, 0.2 <= author'
    """

    kind: ClassVar[str] = "proportion"
    shares: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        items = dict(self.shares).items() if self.shares else ()
        if not items:
            raise ConstraintError("Proportion: shares is empty; expected {label: share}")
        frozen = tuple((label, _interval(label, value)) for label, value in items)
        for label, (low, high) in frozen:
            if high < 0 or low > 1:
                raise ConstraintError(
                    f"{quoted(label)}: no share of tokens is between {low:g} and {high:g}"
                )
        object.__setattr__(self, "shares", frozen)

    @property
    def grams(self) -> tuple[tuple[tuple[Any, ...], Interval], ...]:
        """The labels, as tuples of one."""
        return tuple(((label,), interval) for label, interval in self.shares)

    def divisor(self, sample: Sample) -> float:
        """Return the number of tokens."""
        return float(sample.n_tokens)

    def describe(self) -> str:
        """Return the shares."""
        return f"share of tokens: {self._shown()}"

    def _plain(self, key: str, value: Any) -> Any:
        if key != "shares":
            return super()._plain(key, value)
        return {str(label): _toml_interval(interval) for label, interval in value}


@dataclass(frozen=True)
class NGrams(SampleConstraint):
    """N-grams of labels occur so often in a sequence, on the average (Eqs. (3) and (5)).

    Parameters
    ----------
    frequencies : dict
        The average number of occurrences in a sequence of each n-gram (a tuple of labels, all of
        one length from 1 to 8): a number, or (low, high), where None is no bound.
    encode : "tokens" or "count"
        What φ is: see the module. With "tokens" a sequence has an entry of φ for each token and
        n-gram, so list those that matter.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "ngrams"
    frequencies: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.frequencies
        items = list(given.items() if isinstance(given, Mapping) else given)
        if not items:
            raise ConstraintError("NGrams: frequencies is empty; expected {(label, label): number}")
        frozen = []
        for gram, value in items:
            labels = tuple(gram.split()) if isinstance(gram, str) else tuple(gram)
            frozen.append((labels, _interval(" ".join(map(str, labels)), value)))
        lengths = {len(gram) for gram, _ in frozen}
        if len(lengths) != 1 or not 1 <= min(lengths) <= 8:
            raise ConstraintError(
                f"NGrams: the n-grams have the lengths {sorted(lengths)}; expected one length, "
                "from 1 to 8"
            )
        if len({gram for gram, _ in frozen}) != len(frozen):
            raise ConstraintError("NGrams: an n-gram is there twice")
        object.__setattr__(self, "frequencies", tuple(frozen))
        if self.encode == "count" and max(lengths) > 2:
            _steps([0] * max(lengths), 1)

    @property
    def grams(self) -> tuple[tuple[tuple[Any, ...], Interval], ...]:
        """The n-grams."""
        found: tuple[tuple[tuple[Any, ...], Interval], ...] = self.frequencies
        return found

    def divisor(self, sample: Sample) -> float:
        """Return the number of sequences."""
        return float(sample.n_sequences)

    def describe(self) -> str:
        """Return the frequencies."""
        return f"occurrences in a sequence: {self._shown()}"

    def _plain(self, key: str, value: Any) -> Any:
        if key != "frequencies":
            return super()._plain(key, value)
        return {" ".join(map(str, gram)): _toml_interval(interval) for gram, interval in value}


def _toml_interval(interval: Interval) -> Any:
    low, high = interval
    return low if low == high else [low, high]
