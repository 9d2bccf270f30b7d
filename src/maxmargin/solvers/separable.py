"""Hard margins on data that cannot be separated: found out, and explained.

Without slacks the dual has no upper bound if no w has all margins (SVM₀ of Tsochantaridis et al.,
ICML 2004): training would go on for ever. Two things tell. Multipliers a with u = Σ a Δf show that
every w that has the margins is at least Σ a l / ‖u‖ long: beyond `LONGEST` nobody would call that
separable. And now and then a linear program asks whether *some* w satisfies the constraints found
so far; if none does, none satisfies all.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin._native import Engine
from maxmargin.errors import NotSeparableError
from maxmargin.solvers.history import PassRecord

__all__ = ["check_separable"]

#: A separating w longer than this counts as none.
LONGEST = 1e6
#: Ask the linear program after these passes, and only with so many planes.
ASK_AFTER = tuple(2**k for k in range(3, 20))
MAX_PLANES = 20_000


def check_separable(engine: Engine, record: PassRecord, seconds: float | None = None) -> None:
    """Raise if the data cannot be separated.

    Parameters
    ----------
    engine : Engine
        The engine of a hard-margin training.
    record : PassRecord
        The pass just made.
    seconds : float or None
        Time that is left; a linear program that takes longer is given up.

    Raises
    ------
    NotSeparableError
        With the examples whose constraints contradict each other the most.
    """
    if engine.unbounded:
        raise NotSeparableError(_text(engine, "a wrong output has all the features of the truth"))
    norm = math.sqrt(2 * engine.conjugate())
    mass = engine.C * engine.expected_loss()
    if mass > LONGEST * norm > 0:
        reason = f"every w that does is longer than {mass / norm:.3g}"
        raise NotSeparableError(_text(engine, reason))
    if seconds is not None and seconds <= 0:
        return
    asked = record.n_pass in ASK_AFTER and record.planes <= MAX_PLANES
    if asked and not _feasible(engine, seconds):
        reason = "the constraints found so far contradict each other"
        raise NotSeparableError(_text(engine, reason))


def _feasible(engine: Engine, seconds: float | None = None) -> bool:
    """Whether some w has all the margins found so far, or time was up before that was known."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    _, loss, _, indptr, indices, values = engine.planes()
    columns, places = np.unique(indices, return_inverse=True)
    rows = csr_matrix((values, places, indptr), shape=(len(loss), len(columns)))
    if len(columns) == 0:
        return not (loss > 0).any()
    options = {} if seconds is None else {"time_limit": seconds}
    found = linprog(
        np.zeros(len(columns)), A_ub=-rows, b_ub=-loss, bounds=(None, None), options=options
    )
    return bool(found.status != 2)  # 2: infeasible


def _text(engine: Engine, reason: str) -> str:
    example, loss, alpha, indptr, *_ = engine.planes()
    if engine.unbounded:  # planes without features and with a loss
        alpha = ((np.diff(indptr) == 0) & (loss > 0)).astype(float)
    mass = np.bincount(example, alpha)
    worst = np.argsort(-mass, kind="stable")[:5]
    names = ", ".join(str(i) for i in worst if mass[i] > 0)
    return (
        f'no weights separate the data with a margin (slack="hard"): {reason}. The examples whose '
        f'constraints clash the most are {names} (counted from 0). Take slack="quadratic" or '
        '"linear" with a large C, or look for wrong or ambiguous labels there'
    )
