"""A search for C: uphill on the scores of held-out data, each training from the end of the last.

C is searched on a scale of powers: from where the search begins, up by half a decade at a time
while that helps, then down likewise, and at last a quarter of a decade to both sides of the best.
Two steps in a row that do not help end a direction: scores of held-out data are not smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.selection.cross_validation import fold_summary, folds
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.validation import main_score, report_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = ["cross_validate_auto", "fit_auto", "search_C"]

#: Steps of the search, and of its end, in quarters of a decade.
STEP, LAST_STEP = 2, 1
#: Steps in a row that do not help.
PATIENCE = 2
#: Where nobody looks for a C.
LEAST, MOST = 1e-7, 1e7


def search_C(score: Callable[[float], float | None], start: float) -> list[tuple[float, float]]:  # noqa: N802
    """Look for the C with the best score.

    Parameters
    ----------
    score : callable
        The score of a C, the greater the better; None ends the search.
    start : float
        Where the search begins.

    Returns
    -------
    list of (C, score)
        All that were tried, in the order of the trials. The best is the first of the highest
        scores when they are sorted by C: of two that are equal, the smaller C.
    """
    scores: dict[int, float] = {}  # by quarters of a decade from the start

    def C_at(k: int) -> float:  # noqa: N802
        return float(start * 10.0 ** (k / 4))

    def tried_all() -> list[tuple[float, float]]:
        return [(C_at(k), found) for k, found in scores.items()]

    def best() -> int:
        return max(sorted(scores), key=scores.__getitem__)

    def known(k: int) -> bool:
        """Score a C unless that was done; false if the search is ended."""
        if k not in scores:
            found = score(C_at(k))
            if found is None:
                return False
            scores[k] = found
        return True

    def climb(step: int) -> bool:
        """Go one way from the best so far; false if the search is ended."""
        k, idle = best(), 0
        while idle < PATIENCE and LEAST <= C_at(k + step) <= MOST:
            k, before = k + step, best()
            if not known(k):
                return False
            idle = 0 if best() != before else idle + 1
        return True

    if known(0) and climb(STEP) and climb(-STEP):
        middle = best()
        if known(middle - LAST_STEP):
            known(middle + LAST_STEP)
    return tried_all()


def fit_auto(
    chain: Chain,
    data: Encoded,
    start: float,
    options: FitOptions,
    *,
    valid: Encoded,
    sample_weight: Any = None,
    callbacks: Callable[[float], Iterable[Any]] = lambda _: (),
    on_score: Callable[[dict[str, Any]], object] | None = None,
    on_outcome: Callable[[Outcome], object] | None = None,
) -> list[Outcome]:
    """Train for one C after another until none is better on validation data.

    Parameters
    ----------
    chain, data, options, valid, sample_weight, callbacks, on_score, on_outcome
        As for `maxmargin.selection.fit_grid`.
    start : float
        The first C.

    Returns
    -------
    list of Outcome
        In the order of ascending C.
    """
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    outcomes: list[Outcome] = []

    def score(C: float) -> float | None:
        if outcomes and outcomes[-1].result.interrupted:
            return None
        outcome = fit(
            chain,
            problem,
            C,
            options,
            valid=valid,
            callbacks=callbacks(C),
            on_score=on_score,
            machine=outcomes[-1].result.engine if outcomes else None,
        )
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
        assert outcome.report is not None
        return main_score(outcome.report)

    search_C(score, start)
    return sorted(outcomes, key=lambda outcome: outcome.C)


def cross_validate_auto(
    chain: Chain,
    data: Encoded,
    start: float,
    k: int,
    options: FitOptions,
    *,
    sample_weight: NDArray[Any] | None = None,
    on_outcome: Callable[[int, Outcome], object] | None = None,
) -> list[dict[str, Any]]:
    """Score one C after another by folds until none is better.

    The engines of all folds are kept, so that each training begins where the last one of its fold
    ended.

    Parameters
    ----------
    chain, data, k, options, sample_weight, on_outcome
        As for `maxmargin.selection.cross_validate`.
    start : float
        The first C.

    Returns
    -------
    list of dict
        As of `maxmargin.selection.cross_validate`, in the order of ascending C.
    """
    parts = folds(data.batch.n_sequences, k, options.seed)
    problems, outside = [], []
    for number, held in enumerate(parts):
        rest = np.sort(np.concatenate([part for i, part in enumerate(parts) if i != number]))
        weight = None if sample_weight is None else sample_weight[rest]
        inside = data.take(rest)
        problems.append(
            chain.encoded_problem(inside.batch, inside.codes, sample_weight=weight)
        )
        outside.append(data.take(held))
    machines: list[Any] = [None] * k
    rows: dict[float, dict[str, Any]] = {}

    def score(C: float) -> float:
        reports = []
        for number in range(k):
            outcome = fit(chain, problems[number], C, options, machine=machines[number])
            machines[number] = outcome.result.engine
            outcome.report = report_of(chain, outside[number], outcome.weights, options.threads)
            reports.append(outcome.report)
            if on_outcome is not None:
                on_outcome(number, outcome)
            if outcome.result.interrupted:
                raise KeyboardInterrupt
        rows[C] = {"C": C, **fold_summary(reports)}
        return float(rows[C]["score"])

    search_C(score, start)
    return [rows[C] for C in sorted(rows)]
