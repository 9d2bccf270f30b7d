"""What a comparison of solvers found: its figures pass by pass, its tables, and its file format.

`maxmargin.compare` makes a `Comparison`. Sub-optimality is relative, as in Figures 2 to 4 of the
SDM paper: how far a dual is below, or a primal above, a common reference of the optimum.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from maxmargin.errors import FileFormatError

__all__ = ["MEASURES", "Comparison", "Point", "Reference", "Run", "check_measure"]

#: What can be asked of a point: relative sub-optimality of dual and primal, relative duality gap,
#: and the share of test errors.
MEASURES = ("dual", "primal", "gap", "test_error")

FORMAT, VERSION = "maxmargin comparison", 1


def check_measure(name: object, measures: Sequence[str] = MEASURES) -> None:
    """Refuse a name that is no measure."""
    if name not in measures:
        raise ValueError(f"a measure is one of {', '.join(measures)}; got {name!r}")


@dataclass(frozen=True)
class Point:
    """Where a run was after a pass.

    Attributes
    ----------
    n_pass : int
        Number of the pass, from 1.
    kind : str
        The kind of pass, as in `PassRecord`.
    seconds : float
        Training time so far; what is recorded here is not in it.
    oracle_calls : int
        Oracle calls of the training so far.
    dual : float
        Dual bound.
    primal : float or None
        Primal at the present weights; None where it was not asked for or is not finite.
    test_error : float or None
        One minus the score of the present weights; None without a score.
    """

    n_pass: int
    kind: str
    seconds: float
    oracle_calls: int
    dual: float
    primal: float | None = None
    test_error: float | None = None


@dataclass(frozen=True)
class Reference:
    """What is taken for the optimum: D* and P*, which are one number when it is known exactly.

    Attributes
    ----------
    dual, primal : float
        D* and P*.
    source : str
        Where they come from, in words.
    """

    dual: float
    primal: float
    source: str = "given"


@dataclass(frozen=True)
class Run:
    """What one solver did.

    Attributes
    ----------
    label : str
        Its name in the comparison.
    solver : str
        Its description.
    points : tuple of Point
        One for each pass.
    primal, dual : float or None
        The certificate of the model at the end; None for a run that failed.
    converged : bool
        Whether it reached the gap asked for, or its own criterion.
    stop_reason : str
        Why it ended, in words.
    error : str or None
        Why it failed; None if it did not.
    """

    label: str
    solver: str
    points: tuple[Point, ...] = ()
    primal: float | None = None
    dual: float | None = None
    converged: bool = False
    stop_reason: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Several solvers on one problem.

    Attributes
    ----------
    C : float
        Weight of the loss.
    regularizer : str
        Ω, in words.
    n_examples : int
        Size of the problem: an oracle pass has so many oracle calls.
    reference : Reference or None
        The common optimum; None if every run failed.
    runs : tuple of Run
        What each solver did, in the order given.
    """

    C: float
    regularizer: str
    n_examples: int
    reference: Reference | None
    runs: tuple[Run, ...]

    @property
    def labels(self) -> list[str]:
        """The names of the runs."""
        return [run.label for run in self.runs]

    def __getitem__(self, label: str) -> Run:
        for run in self.runs:
            if run.label == label:
                return run
        raise KeyError(f"there is no run {label!r}; there are {', '.join(self.labels)}")

    # --- figures ---------------------------------------------------------------------------------

    def value(self, point: Point, measure: str = "dual") -> float | None:
        """Return one figure of a point.

        Parameters
        ----------
        point : Point
            A point of one of the runs.
        measure : {"dual", "primal", "gap", "test_error"}
            (D* - D)/D*, (P - P*)/P*, (P - D)/P or the share of test errors. The first two are
            negative where a run is better than the reference.

        Returns
        -------
        float or None
            None where it is not known.
        """
        check_measure(measure)
        if measure == "test_error":
            return point.test_error
        if measure == "gap":
            return None if point.primal is None else _share(point.primal - point.dual, point.primal)
        if self.reference is None or (measure == "primal" and point.primal is None):
            return None
        if measure == "dual":
            return _share(self.reference.dual - point.dual, self.reference.dual)
        assert point.primal is not None
        return _share(point.primal - self.reference.primal, self.reference.primal)

    def reached(
        self, label: str, value: float, measure: str = "dual", *, keep: bool = False
    ) -> Point | None:
        """Return the first point of a run at which a figure is at most so much.

        Parameters
        ----------
        label : str
            The run.
        value : float
            The figure to reach.
        measure : str
            As for `value`.
        keep : bool
            The figure must stay there to the end of the run.

        Returns
        -------
        Point or None
            None if it was not reached.
        """
        check_measure(measure)
        first: Point | None = None
        for point in self[label].points:
            found = self.value(point, measure)
            if found is None or found > value:
                first = None if keep else first
            elif first is None:
                first = point
        return first

    def time_to(
        self, value: float, measure: str = "dual", *, keep: bool = False
    ) -> dict[str, float | None]:
        """Return the training seconds after which each run had a figure of at most so much.

        Parameters
        ----------
        value, measure, keep
            As for `reached`.

        Returns
        -------
        dict
            Label -> seconds, or None where it was not reached.
        """
        points = {label: self.reached(label, value, measure, keep=keep) for label in self.labels}
        return {label: None if p is None else p.seconds for label, p in points.items()}

    def oracle_calls_to(
        self, value: float, measure: str = "dual", *, keep: bool = False
    ) -> dict[str, int | None]:
        """Return the oracle calls after which each run had a figure of at most so much.

        Parameters
        ----------
        value, measure, keep
            As for `reached`.

        Returns
        -------
        dict
            Label -> oracle calls, or None where it was not reached.
        """
        points = {label: self.reached(label, value, measure, keep=keep) for label in self.labels}
        return {label: None if p is None else p.oracle_calls for label, p in points.items()}

    # --- tables ----------------------------------------------------------------------------------

    def rows(self, label: str | None = None) -> list[dict[str, Any]]:
        """Return all figures pass by pass.

        Parameters
        ----------
        label : str or None
            The run; None: all of them.

        Returns
        -------
        list of dict
            The attributes of `Point`, with the ``label``, the ``gap``, and the relative
            ``dual_suboptimality`` and ``primal_suboptimality``.
        """
        runs = self.runs if label is None else (self[label],)
        return [
            {
                "label": run.label,
                **asdict(point),
                "gap": self.value(point, "gap"),
                "dual_suboptimality": self.value(point, "dual"),
                "primal_suboptimality": self.value(point, "primal"),
            }
            for run in runs
            for point in run.points
        ]

    def table(self) -> list[dict[str, Any]]:
        """Return one row for each solver: what it had at the end.

        Returns
        -------
        list of dict
            ``label``, ``solver``, ``passes``, ``seconds``, ``oracle_calls``, the figures at the
            end, the smallest test error of all passes, why the run ended, and its error.
        """
        table = []
        for run in self.runs:
            rows = self.rows(run.label)
            last = rows[-1] if rows else {}
            errors = [row["test_error"] for row in rows if row["test_error"] is not None]
            table.append(
                {
                    "label": run.label,
                    "solver": run.solver,
                    "passes": len(rows),
                    **{name: last.get(name) for name in _AT_THE_END},
                    "best_test_error": min(errors, default=None),
                    "converged": run.converged,
                    "stop_reason": run.stop_reason,
                    "error": run.error,
                }
            )
        return table

    def summary(self, values: Iterable[float] = (0.1, 0.01, 0.001)) -> str:
        """Describe the comparison in a text of a few lines.

        Parameters
        ----------
        values : iterable of float
            Relative sub-optimalities of the dual. For each: seconds and oracle calls until it was
            reached, and their ratios to the run with the fewest; ">" where it was not reached.

        Returns
        -------
        str
            Lines without a newline at the end.
        """
        values = list(values)
        lines = [f"C = {self.C:g}, {self.regularizer}, {self.n_examples} examples"]
        if self.reference is not None:
            low, high = self.reference.dual, self.reference.primal
            known = f"{low:.6g}" if low == high else f"between {low:.6g} and {high:.6g}"
            lines[0] += f"; optimum {known} ({self.reference.source})"
        scored = any(row["best_test_error"] is not None for row in self.table())
        head = ["solver", "passes", "oracle calls", "seconds", "dual below", "primal above"]
        cells = [[*head, "test error", "best"] if scored else head]
        for row in self.table():
            if row["passes"]:
                below, above = row["dual_suboptimality"], row["primal_suboptimality"]
                line = [row["label"], str(row["passes"]), str(row["oracle_calls"])]
                line += [_seconds(row["seconds"]), _percent(below), _percent(above)]
                if scored:
                    line += [_percent(row["test_error"]), _percent(row["best_test_error"])]
                cells.append(line)
        lines += ["", *_aligned(cells)]
        lines += self._race("seconds until the dual is within", "seconds", values)
        lines += self._race("oracle calls until the dual is within", "oracle_calls", values)
        failed = [f"{run.label} failed: {run.error}" for run in self.runs if run.error is not None]
        return "\n".join([*lines, *([""] if failed else []), *failed])

    def _race(self, title: str, column: str, values: Sequence[float]) -> list[str]:
        """Say how soon each run was there, and how many times the best one's that is."""
        runs = [run for run in self.runs if run.points]
        if not runs or not values or self.reference is None:
            return []
        cells = [[title, *(f"{100 * value:g} %" for value in values)]]
        cells += [[run.label] for run in runs]
        for value in values:
            found = [self.reached(run.label, value) for run in runs]
            best = min((getattr(p, column) for p in found if p is not None), default=None)
            for line, run, point in zip(cells[1:], runs, found, strict=True):
                spent = getattr(run.points[-1] if point is None else point, column)
                text = _seconds(spent) if column == "seconds" else str(spent)
                ratio = f" ({spent / best:.1f}x)" if best else ""
                line.append(("> " if point is None else "") + text + ratio)
        return ["", *_aligned(cells)]

    # --- pictures and files ----------------------------------------------------------------------

    def plot(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Draw sub-optimality and test error against time and oracle calls; needs matplotlib.

        Parameters
        ----------
        path : path-like
            The file; its ending says what it is: ``.png``, ``.svg`` or ``.pdf``.
        title : str or None
            A line above the picture.
        """
        from maxmargin.report.compare_plot import plot_comparison

        plot_comparison(self, path, title)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; the points of a run are columns."""
        whole = {**asdict(self), "runs": []}
        for run in self.runs:
            columns = {f.name: [getattr(p, f.name) for p in run.points] for f in fields(Point)}
            whole["runs"].append({**asdict(run), "points": columns})
        return {"format": FORMAT, "version": VERSION, **whole}

    @classmethod
    def from_dict(cls, whole: Any) -> Comparison:
        """Undo `to_dict`.

        Raises
        ------
        FileFormatError
            If it is no comparison, or one of another version.
        """
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise FileFormatError(f'this is no comparison: its "format" is not {FORMAT!r}')
        if whole.get("version") != VERSION:
            raise FileFormatError(
                f"a comparison of version {whole.get('version')!r}; expected {VERSION}"
            )
        try:
            runs = tuple(
                Run(**{**run, "points": tuple(_points(run["points"]))}) for run in whole["runs"]
            )
            reference = whole["reference"]
            return cls(
                C=whole["C"],
                regularizer=whole["regularizer"],
                n_examples=whole["n_examples"],
                reference=None if reference is None else Reference(**reference),
                runs=runs,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"the comparison is damaged: {error}") from error

    def to_json(self) -> str:
        """Return the comparison as a JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Comparison:
        """Undo `to_json`.

        Raises
        ------
        FileFormatError
            If it is not the JSON text of a comparison.
        """
        try:
            whole = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"this is no comparison: not JSON ({error})") from error
        return cls.from_dict(whole)


_AT_THE_END = (
    "seconds",
    "oracle_calls",
    "dual",
    "primal",
    "gap",
    "dual_suboptimality",
    "primal_suboptimality",
    "test_error",
)


def _points(columns: dict[str, list[Any]]) -> Iterable[Point]:
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield Point(**dict(zip(names, values, strict=True)))


def _share(part: float, whole: float) -> float:
    """Return part/whole; where the whole is 0, so is the optimum: 0 or infinitely far."""
    if whole > 0:
        return part / whole
    return 0.0 if part <= 0 else math.inf


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _aligned(cells: list[list[str]]) -> list[str]:
    """Lay out a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            [line[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        ).rstrip()
        for line in cells
    ]
