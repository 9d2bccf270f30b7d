"""What a comparison of solvers found: its figures pass by pass, its tables, and its file format.

`maxmargin.compare` makes a `Comparison`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from maxmargin.comparing.plot import plot_runs
from maxmargin.comparing.records import Point, Reference, Run, check_measure, measure_of
from maxmargin.comparing.text import align, percent, seconds
from maxmargin.errors import FileFormatError

__all__ = ["Comparison"]

FORMAT, VERSION = "maxmargin comparison", 1


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

    @property
    def _about(self) -> str:
        """What was solved, in words: C, regulariser and size."""
        return f"C = {self.C:g}, {self.regularizer}, {self.n_examples} examples"

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
        return measure_of(point, measure, self.reference)

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
        lines = [self._about]
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
                line += [seconds(row["seconds"]), percent(below), percent(above)]
                if scored:
                    line += [percent(row["test_error"]), percent(row["best_test_error"])]
                cells.append(line)
        lines += ["", *align(cells)]
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
                text = seconds(spent) if column == "seconds" else str(spent)
                ratio = f" ({spent / best:.1f}x)" if best else ""
                line.append(("> " if point is None else "") + text + ratio)
        return ["", *align(cells)]

    # --- pictures and files ----------------------------------------------------------------------

    def plot(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Draw sub-optimality and test error against time and oracle calls; needs matplotlib.

        Parameters
        ----------
        path : path-like
            The file; its ending says what it is: ``.png``, ``.svg`` or ``.pdf``.
        title : str or None
            A line above the picture; None: C, regulariser and size of the problem.
        """
        plot_runs(self.runs, self.reference, path, self._about if title is None else title)

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
