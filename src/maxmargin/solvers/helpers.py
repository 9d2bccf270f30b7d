"""Other processes that answer for a user's Python oracle while a training lasts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from maxmargin._native import Problem, PythonProblem
from maxmargin.checks import is_whole

__all__ = ["batch_size", "with_helpers"]

P = ParamSpec("P")
R = TypeVar("R")

#: Exact passes ask so many times for answers, each time under the newest w, but for no fewer than
#: `LEAST` examples: planes of an older w are worth less, and more calls of the oracle are needed.
BATCHES, LEAST = 50, 8


def batch_size(problem: Problem, n_jobs: int) -> int:
    """Return for how many examples of an exact pass the oracle is asked under one w.

    Parameters
    ----------
    problem : Problem
        What is trained.
    n_jobs : int
        How many processes may answer. The size does not depend on it as long as it is above 1, so
        that neither does the result.

    Returns
    -------
    int
        0: each is asked for when it is visited, as it is where answers come from this process.
    """
    if n_jobs == 1 or not isinstance(problem, PythonProblem):
        return 0
    return max(-(-problem.n_examples // BATCHES), LEAST)


def with_helpers(train: Callable[P, R]) -> Callable[P, R]:
    """Give the problem of a training other processes to ask, if it has a use for them.

    Parameters
    ----------
    train : callable
        The function, whose first argument is the problem. Its warnings need a ``stacklevel`` of one
        more.

    Returns
    -------
    callable
        The same; the processes end with it.
    """

    @wraps(train)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        problem: Any = args[0] if args else kwargs.get("problem")
        n_jobs: Any = kwargs.get("n_jobs", 1)
        make = getattr(getattr(problem, "asked", None), "helpers", None)
        if make is None or not is_whole(n_jobs) or n_jobs < 2:
            return train(*args, **kwargs)
        with make(int(n_jobs)) as pool:
            problem.set_pool(pool)
            try:
                return train(*args, **kwargs)
            finally:
                problem.set_pool(None)

    return run
