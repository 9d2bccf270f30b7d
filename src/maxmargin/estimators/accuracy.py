"""How near to the optimum an estimator trains: as it was asked, or by itself (``gap="auto"``).

A gap of 1 % is enough for predictions, but two trainings that end within 1 % of one optimum are not
equal: examples that count twice and examples that are there twice have the same optimum and other
weights. Where a problem is small the optimum itself costs a few milliseconds, so estimators that
stand in the place of scikit-learn's go there by default: as far as 8-byte numbers allow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["AUTO", "Accuracy", "automatic"]

AUTO = "auto"
#: Numbers that a pass multiplies, at most, for a problem to be small.
SMALL = 1 << 17
#: What rounding allows of the gap of a small problem, and how many passes are made for it at most.
TIGHT, TIGHT_PASSES = 1e-14, 5000


class Accuracy(NamedTuple):
    """What a training is asked for.

    Attributes
    ----------
    gap : float
        The relative gap that ends training.
    enough : float
        The relative gap with which the model has converged.
    dtype : str
        Type of the weights.
    max_passes : int or None
        Most passes.
    """

    gap: Any
    enough: Any
    dtype: Any
    max_passes: Any


def automatic(estimator: Any, X: Any, n_outputs: int, gap: float, dtype: str) -> Accuracy:
    """Return what to ask for where the parameters ``gap`` and ``dtype`` may be "auto".

    Parameters
    ----------
    estimator : StructuralEstimator
        With the parameters.
    X : matrix or list
        The inputs; a list, of texts, is not small.
    n_outputs : int
        Classes, or 1.
    gap, dtype : float, str
        What "auto" means for a problem that is not small.

    Returns
    -------
    Accuracy
        What to ask for.
    """
    shape = getattr(X, "shape", ())
    # A problem with bad values is refused elsewhere.
    small = len(shape) == 2 and float(np.prod(shape, dtype=float)) * n_outputs <= SMALL
    by_itself = isinstance(estimator.gap, str) and estimator.gap == AUTO
    asked = estimator.gap if not by_itself else TIGHT if small else gap
    enough = gap if by_itself else estimator.gap
    kept = estimator.dtype
    if isinstance(kept, str) and kept == AUTO:
        kept = "float64" if small else dtype
    passes = estimator.max_passes
    if by_itself and small and passes is None:
        passes = TIGHT_PASSES
    return Accuracy(asked, enough, kept, passes)
