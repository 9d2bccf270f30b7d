"""How often constraints hold in labelled data and in predictions, with examples of violations.

A person sees at once which of their beliefs is wrong: a rule that the labelled data violate often
should go, or get a small weight; one that holds in the data and not in the predictions is what
training with constraints can teach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maxmargin.constraints.base import Constraint
from maxmargin.constraints.expectations import SampleConstraint
from maxmargin.constraints.sample import Sample
from maxmargin.errors import ConstraintError
from maxmargin.features.columns import LabelCodes
from maxmargin.printable import printable

__all__ = ["ConstraintReport", "ReportRow", "Violation", "make_report"]

#: Words of context on either side of a violation.
CONTEXT = 5


@dataclass(frozen=True)
class Violation:
    """A place where a constraint does not hold.

    Attributes
    ----------
    sequence, start, end : int
        The tokens start ... end - 1 of a sequence, all counted from 0.
    words : list of str
        The words there and around.
    labels : list
        Their labels.
    first : int
        The place of the first of ``words`` in the sequence.
    """

    sequence: int
    start: int
    end: int
    words: list[str]
    labels: list[Any]
    first: int

    def text(self) -> str:
        """Return one line: words with labels, the place of the violation in brackets."""
        parts = []
        for k, (word, label) in enumerate(zip(self.words, self.labels, strict=True), self.first):
            token = f"{printable(word, 30)}/{printable(label, 30)}"
            if k == self.start:
                token = f"[{token}"
            if k == min(self.end, self.first + len(self.words)) - 1:
                token = f"{token}]"
            parts.append(token)
        before = "... " if self.first else ""
        return f"sequence {self.sequence}, token {self.start}: {before}{' '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "sequence": self.sequence,
            "start": self.start,
            "end": self.end,
            "first": self.first,
            "words": self.words,
            "labels": [str(label) for label in self.labels],
        }


@dataclass(frozen=True)
class ReportRow:
    """One constraint in one set of labellings.

    Attributes
    ----------
    title : str
        The constraint.
    kind : str
        Its kind.
    held, cases : int
        At how many of the places that it is about it holds; of constraints on the sample, how many
        of the averages are within their bounds.
    sequences_violated : int
        Number of sequences with a violation.
    violations : list of Violation
        Some of them.
    averages : list of (str, float, float, float)
        Of constraints on the sample: what, the average, the bounds.
    """

    title: str
    kind: str
    held: int
    cases: int
    sequences_violated: int
    violations: list[Violation] = field(default_factory=list)
    averages: list[tuple[str, float, float, float]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of cases that hold; not a number without cases."""
        return self.held / self.cases if self.cases else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        out: dict[str, Any] = {
            "held": self.held,
            "cases": self.cases,
            "share": self.share,
            "sequences_violated": self.sequences_violated,
            "violations": [v.to_dict() for v in self.violations],
        }
        if self.averages:
            out["averages"] = [
                {"what": w, "average": a, "low": low, "high": high}
                for w, a, low, high in self.averages
            ]
        return out


@dataclass(frozen=True)
class ConstraintReport:
    """How often constraints hold.

    Attributes
    ----------
    rows : list of ReportRow
        In the labelled data, or in the predictions if there are no labels.
    predicted : list of ReportRow or None
        In the predictions, if there are both.
    source : str
        What ``rows`` are about: "labels" or "predictions".
    """

    rows: list[ReportRow]
    predicted: list[ReportRow] | None = None
    source: str = "labels"

    def __getitem__(self, title: str) -> ReportRow:
        return next(row for row in self.rows if row.title == title)

    def text(self) -> str:
        """Return a table, then the examples."""
        width = min(max((len(row.title) for row in self.rows), default=10), 60)
        both = self.predicted is not None
        lines = [f"{'constraint':{width}}  {self.source:>22}" + ("  predictions".rjust(24) * both)]
        other: Sequence[ReportRow | None] = self.predicted or [None] * len(self.rows)
        for row, guess in zip(self.rows, other, strict=True):
            line = f"{printable(row.title, 60):{width}}  {_figures(row):>22}"
            lines.append(line + (f"  {_figures(guess):>22}" if guess is not None else ""))
        for row, guess in zip(self.rows, other, strict=True):
            shown = [(self.source, row)] + ([("predictions", guess)] if guess is not None else [])
            for source, figures in shown:
                lines += _details(source, figures)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON.

        Returns
        -------
        dict
            ``constraints``: a list with title, kind, and figures by source.
        """
        other: Sequence[ReportRow | None] = self.predicted or [None] * len(self.rows)
        return {
            "constraints": [
                {"title": row.title, "kind": row.kind, self.source: row.to_dict()}
                | ({"predictions": guess.to_dict()} if guess is not None else {})
                for row, guess in zip(self.rows, other, strict=True)
            ]
        }

    def __str__(self) -> str:
        return self.text()


def _figures(row: ReportRow) -> str:
    if row.cases == 0:
        return "no case"
    return f"{row.held} of {row.cases} ({100 * row.share:.1f} %)"


def _details(source: str, row: ReportRow) -> list[str]:
    lines = []
    for what, average, low, high in row.averages:
        bounds = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        lines.append(f"  {printable(what, 60)}: {average:.4g}, expected {bounds}")
    for violation in row.violations:
        lines.append(f"  {violation.text()}")
    if lines:
        lines.insert(0, f"\n{printable(row.title, 60)}: violated in the {source}")
    return lines


def _sequences(name: str, y: Any, sample: Sample) -> list[list[Any]]:
    Y = y.sequences() if isinstance(y, LabelCodes) else [list(labels) for labels in y]
    lengths = sample.lengths.tolist()
    if len(Y) != len(lengths):
        raise ConstraintError(f"X has {len(lengths)} sequences and {name} {len(Y)}")
    for i, (labels, n) in enumerate(zip(Y, lengths, strict=True)):
        if len(labels) != n:
            raise ConstraintError(
                f"sequence {i} has {n} tokens, and {len(labels)} labels in {name}"
            )
    return Y


def make_report(
    constraints: Iterable[Constraint], sample: Sample, y: Any, predicted: Any, examples: int
) -> ConstraintReport:
    """Return how often constraints hold.

    Parameters
    ----------
    constraints : ConstraintSet
        The constraints.
    sample : Sample
        The inputs.
    y, predicted : list of label sequences, LabelCodes or None
        Labels; at least one of the two.
    examples : int
        Violations to keep of each constraint.

    Returns
    -------
    ConstraintReport
        The figures.
    """
    if y is None and predicted is None:
        raise ConstraintError("neither labels nor predictions were given; expected one of them")
    chosen = list(constraints)

    def rows(name: str, labels: Any) -> list[ReportRow]:
        Y = _sequences(name, labels, sample)
        return [_row(constraint, sample, Y, examples) for constraint in chosen]

    if y is None:
        return ConstraintReport(rows("predicted", predicted), source="predictions")
    truth = rows("y", y)
    return ConstraintReport(truth, None if predicted is None else rows("predicted", predicted))


def _row(constraint: Constraint, sample: Sample, Y: list[list[Any]], examples: int) -> ReportRow:
    if isinstance(constraint, SampleConstraint):
        found = []
        for (gram, (low, high)), average in zip(
            constraint.grams, constraint.averages(sample, Y), strict=True
        ):
            found.append((" ".join(map(str, gram)), average, low, high))
        # Within a tenth of the target, or of the bounds: an average is never met to the digit.
        held = sum(_near(a, low, high) for _, a, low, high in found)
        return ReportRow(constraint.title, constraint.kind, held, len(found), 0, [], found)
    held = cases = bad = 0
    violations: list[Violation] = []
    for i, labels in enumerate(Y):
        violated = False
        for case in constraint.cases(sample, i, labels):
            cases += 1
            held += case.holds
            if not case.holds:
                violated = True
                if len(violations) < examples:
                    violations.append(_violation(sample, i, case.start, case.end, labels))
        bad += violated
    return ReportRow(constraint.title, constraint.kind, held, cases, bad, violations)


def _near(average: float, low: float, high: float) -> bool:
    slack = 0.1 * max(abs(low) if low > -1e300 else 0.0, abs(high) if high < 1e300 else 0.0)
    return low - slack <= average <= high + slack


def _violation(sample: Sample, i: int, start: int, end: int, labels: list[Any]) -> Violation:
    words = sample.words_of(i)
    first, last = max(start - CONTEXT, 0), min(end + CONTEXT, len(words), start + 3 * CONTEXT)
    return Violation(i, start, end, words[first:last], labels[first:last], first)
