"""What a comparison of solvers records: points, runs, the reference, and what is measured of them.

Sub-optimality is relative, as in Figures 2 to 4 of the SDM paper: how far a dual is below, or a
primal above, a common reference of the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MEASURES", "Point", "Reference", "Run", "check_measure", "measure_of"]

#: What can be asked of a point: relative sub-optimality of dual and primal, relative duality gap,
#: and the share of test errors.
MEASURES = ("dual", "primal", "gap", "test_error")


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


def measure_of(point: Point, measure: str, reference: Reference | None) -> float | None:
    """Return one figure of a point.

    Parameters
    ----------
    point : Point
        Where a run was after a pass.
    measure : {"dual", "primal", "gap", "test_error"}
        (D* - D)/D*, (P - P*)/P*, (P - D)/P or the share of test errors. The first two are
        negative where a run is better than the reference.
    reference : Reference or None
        D* and P*; None: not known.

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
    if reference is None or (measure == "primal" and point.primal is None):
        return None
    if measure == "dual":
        return _share(reference.dual - point.dual, reference.dual)
    assert point.primal is not None
    return _share(point.primal - reference.primal, reference.primal)


def _share(part: float, whole: float) -> float:
    """Return part/whole; where the whole is 0, so is the optimum: 0 or infinitely far."""
    if whole > 0:
        return part / whole
    return 0.0 if part <= 0 else math.inf
