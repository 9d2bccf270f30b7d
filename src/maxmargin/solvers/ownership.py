"""One training at a time for each machine.

Native calls refuse a second caller while they last (``native/ownership.hpp``). A training is many
of them: two that took turns on one machine would each count the other's steps as their own, and
return weights that are not those of their certificate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from maxmargin.errors import InUseError

__all__ = ["one_at_a_time", "owned"]

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_held: set[int] = set()  # ids of machines that are being trained, and therefore alive


@contextmanager
def owned(machine: object) -> Iterator[None]:
    """Own a machine for as long as the block lasts.

    Parameters
    ----------
    machine : Machine
        What a solver moves.

    Raises
    ------
    InUseError
        If another training owns it.
    """
    key = id(machine)
    with _lock:
        if key in _held:
            raise InUseError(
                "the engine is in use: another training goes on with it, in another thread or in "
                "the one that runs this oracle or callback. Fit one estimator at a time; a clone "
                "of it, or warm_start=False, starts with an engine of its own"
            )
        _held.add(key)
    try:
        yield
    finally:
        with _lock:
            _held.discard(key)


def one_at_a_time(train: Callable[P, R]) -> Callable[P, R]:
    """Make a function own the machine that it is given as ``engine``, if it is given one.

    Parameters
    ----------
    train : callable
        The function. Its warnings need a ``stacklevel`` of one more.

    Returns
    -------
    callable
        The same, which raises an `InUseError` where the machine has another owner.
    """

    @wraps(train)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        machine = kwargs.get("engine")
        if machine is None:
            return train(*args, **kwargs)
        with owned(machine):
            return train(*args, **kwargs)

    return run
