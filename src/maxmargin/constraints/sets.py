"""`ConstraintSet`: several constraints, as a user holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.constraints.base import Constraint, label_tuple
from maxmargin.constraints.bound import BoundConstraints
from maxmargin.constraints.report import ConstraintReport, make_report
from maxmargin.constraints.sample import Sample, suggestion
from maxmargin.constraints.toml_file import format_constraints, parse_constraints, read_text
from maxmargin.errors import ConstraintError, FileFormatError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.constraints.toml_lines import Lines

__all__ = ["ConstraintSet"]


class ConstraintSet:
    """Prior knowledge about labellings: several constraints.

    Parameters
    ----------
    constraints : iterable of Constraint
        The constraints. Names must differ; constraints without a name are called by what they say.
    columns : sequence of str
        Names of the columns of X, for constraints that name one; only if X has rows.
    labels : sequence
        All labels that there are, also those that a few labelled sequences may lack; constraints
        then name no others, and a tagger that is given no labels takes these. Empty: not said.

    Examples
    --------
    >>> from maxmargin.constraints import Changes, First, Words
    >>> rules = ConstraintSet([First("A"), Changes(after="punctuation"), Words("in", "B")])
    >>> report = rules.report([["Doe", ".", "in", "x"]], [["A", "A", "B", "A"]])
    >>> [(row.title, row.held, row.cases) for row in report.rows]
    [('first label is A', 1, 1), ('labels change only after punctuation', 1, 2), ('in -> B', 1, 1)]
    """

    def __init__(
        self,
        constraints: Iterable[Constraint],
        columns: Sequence[str] = (),
        labels: Sequence[Any] = (),
    ) -> None:
        if isinstance(constraints, Constraint):
            constraints = [constraints]
        self.constraints = tuple(constraints)
        self._lines: Lines | None = None  # of the file that they came from
        if isinstance(columns, str):
            raise ConstraintError(f"columns is {quoted(columns)}; expected a list of names")
        self.columns = tuple(columns)
        self.labels = label_tuple(labels) if len(labels) else ()
        titles = set()
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise TypeError(
                    f"found a {type(constraint).__name__}; expected constraints such as Words, "
                    "Changes or AtLeast"
                )
            if constraint.title in titles:
                raise ConstraintError(
                    f"two constraints are called {quoted(constraint.title)}; give them names"
                )
            titles.add(constraint.title)
        if self.labels:
            self.check_labels(self.labels)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstraintSet):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.constraints, self.columns, self.labels

    def __repr__(self) -> str:
        return f"ConstraintSet([{', '.join(map(repr, self.constraints))}])"

    def __getitem__(self, title: str) -> Constraint:
        for constraint in self.constraints:
            if constraint.title == title:
                return constraint
        known = [c.title for c in self.constraints]
        raise KeyError(f"there is no constraint {quoted(title)}{suggestion(title, known)}")

    # --- files -----------------------------------------------------------------------------------

    @classmethod
    def from_toml(cls, path: Any) -> ConstraintSet:
        """Read a set from a TOML file.

        Parameters
        ----------
        path : str, path or binary file
            The file; see ``docs/constraints.md`` for what it holds.

        Returns
        -------
        ConstraintSet
            The set.

        Raises
        ------
        FileFormatError
            If it is no TOML, a key is misspelt, or a value is not as it must be; the message names
            line and key.
        """
        return cls.from_toml_text(*read_text(path))

    @classmethod
    def from_toml_text(cls, text: str, source: str = "the constraints") -> ConstraintSet:
        """Read a set from the text of a TOML file.

        Parameters
        ----------
        text : str
            The text.
        source : str
            What messages call it.

        Returns
        -------
        ConstraintSet
            The set.
        """
        file = parse_constraints(text, source)
        constraints = cls(file.constraints, file.columns)
        constraints._lines = file.lines
        if file.labels:
            constraints.labels = tuple(file.labels)
            try:
                constraints.check_labels(file.labels)
            except ConstraintError as error:  # it names the line
                raise FileFormatError(str(error)) from None
        return constraints

    def to_toml(self) -> str:
        """Return the set as the text of a TOML file, which `from_toml` reads.

        Returns
        -------
        str
            The text.

        Raises
        ------
        ConstraintError
            If a constraint has a function, which a file cannot hold.
        """
        return format_constraints(self.constraints, self.columns, self.labels)

    # --- use -------------------------------------------------------------------------------------

    def check_labels(self, labels: Sequence[Any]) -> None:
        """Refuse constraints that name a label that is not there.

        Parameters
        ----------
        labels : sequence
            All labels.

        Raises
        ------
        ConstraintError
            It names the constraint (in a file, its line) and the label.
        """
        known = set(labels)
        for constraint in self.constraints:
            for label in constraint.labels_named():
                if label not in known:
                    raise ConstraintError(
                        f"{self.where(constraint, label)}: there is no label {quoted(label)}"
                        f"{suggestion(label, labels)}"
                    )

    def where(self, constraint: Constraint, value: Any = None) -> str:
        """Return where a constraint was written, in words: file and line, or its title.

        Parameters
        ----------
        constraint : Constraint
            One of the set.
        value : object
            A value of it, whose line is meant.

        Returns
        -------
        str
            For example ``rules.toml, line 7, constraint 'pages'``.
        """
        title = f"constraint {quoted(constraint.title)}"
        if self._lines is None:
            return title
        return f"{self._lines.place(constraint.title, value)}, {title}"

    def bind(self, X: Any, labels: Sequence[Any]) -> BoundConstraints:
        """Return the constraints on given sequences: φ, Γ and inference.

        Parameters
        ----------
        X : list of sequences or ColumnTable
            The inputs; see `Sample`.
        labels : sequence
            All labels, in the order of the weights: ``Chain.labels_``.

        Returns
        -------
        BoundConstraints
            Ready to be asked.
        """
        self.check_labels(labels)
        sample = X if isinstance(X, Sample) else Sample(X, self.columns)
        for constraint in self.constraints:
            column = getattr(constraint, "column", None)
            if column is not None:
                try:
                    sample.texts(column)
                except ConstraintError as error:
                    raise ConstraintError(f"{self.where(constraint, column)}: {error}") from None
        return BoundConstraints(self.constraints, sample, labels)

    def decoding(self) -> ConstraintSet:
        """Return the set as decoding uses it: binary constraints on single sequences.

        Returns
        -------
        ConstraintSet
            Without those on the sample; counts are in their binary form.
        """
        kept = [d for c in self.constraints if (d := c.decoding()) is not None]
        out = ConstraintSet(kept, self.columns, self.labels)
        out._lines = self._lines
        return out

    def report(
        self, X: Any, y: Any, predicted: Any = None, *, examples: int = 3
    ) -> ConstraintReport:
        """Return how often each constraint holds in labelled data, and in predictions.

        Parameters
        ----------
        X : list of sequences or ColumnTable
            The inputs.
        y : list of label sequences, LabelCodes or None
            The true labels. None: there are none.
        predicted : list of label sequences, LabelCodes or None
            The labels that a model predicts.
        examples : int
            How many violations to show of each constraint.

        Returns
        -------
        ConstraintReport
            Figures, examples, and a text for people.
        """
        return make_report(self, Sample(X, self.columns), y, predicted, examples)
