"""One number of whatever a user gives as ``random_state``, for runs that have several seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["seed_of"]


def seed_of(random_state: Any) -> int:
    """Return a number from which other seeds are made.

    Parameters
    ----------
    random_state : int, list of int, RandomState, Generator or None
        As scikit-learn and NumPy take it; the two generators are moved on.

    Returns
    -------
    int
        From 0 to 2³¹ - 1; another one at each call for None.
    """
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(np.random.default_rng(random_state).integers(2**31))
