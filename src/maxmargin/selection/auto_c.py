"""A search for C: uphill on the scores of held-out data, each training from the end of the last.

C is searched on a scale of powers: from where the search begins, up by half a decade at a time
while that helps, then down likewise, and at last a quarter of a decade to both sides of the best.
Two steps in a row that do not help end a direction: scores of held-out data are not smooth.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["search_C"]

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
