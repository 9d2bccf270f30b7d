"""How many threads ``n_jobs`` stands for."""

from __future__ import annotations

from typing import Any

from maxmargin.checks import is_whole

__all__ = ["threads_of"]


def threads_of(n_jobs: Any) -> int:
    """Return the number of threads, as scikit-learn counts jobs.

    Native code starts the threads, so that joblib's backends and what they can do in a worker
    process (``joblib.effective_n_jobs`` warns and says 1 there) have no part in it.

    Parameters
    ----------
    n_jobs : int or None
        None: one. Below zero: -1 is one for each processor, -2 one less, and so on; at least one.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError, TypeError
        If it is 0, or no whole number.
    """
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs):
        raise TypeError(f"n_jobs is {n_jobs!r}; expected a whole number or None")
    count = int(n_jobs)
    if count == 0:
        raise ValueError("n_jobs is 0; expected a number of threads, or -1 for all processors")
    if count > 0:
        return count
    # Of the processors that this process may use: affinity and the limits of containers count.
    from joblib import cpu_count  # type: ignore[import-untyped]

    return max(1, int(cpu_count()) + 1 + count)
