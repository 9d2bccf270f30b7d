"""How honest probabilities are: the expected calibration error, and the log loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Reliability", "calibration_error", "reliability"]


class Reliability(NamedTuple):
    """Predictions in bins of their confidence.

    Attributes
    ----------
    confidence : array of shape (n_bins,)
        Mean confidence of the predictions of a bin; NaN where there are none.
    accuracy : array of shape (n_bins,)
        Share of them that is right; NaN where there are none.
    weight : array of shape (n_bins,)
        Number of predictions, or the sum of their weights.
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    weight: NDArray[np.float64]

    @property
    def error(self) -> float:
        """The mean over all predictions of what accuracy and confidence of their bin differ by."""
        if not self.weight.sum() > 0:
            return float("nan")
        difference = np.abs(np.nan_to_num(self.accuracy - self.confidence))
        return float(np.average(difference, weights=self.weight))


def reliability(
    confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 15, weight: ArrayLike | None = None
) -> Reliability:
    """Put predictions into bins of the same width by their confidence.

    Parameters
    ----------
    confidence : array of shape (n,)
        The probability that a model gave its prediction; from 0 to 1.
    correct : bool array of shape (n,)
        Whether it was right.
    n_bins : int
        Number of bins.
    weight : array of shape (n,), optional
        How much each prediction counts.

    Returns
    -------
    Reliability
        Means by bin.
    """
    p = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    if p.ndim != 1 or right.shape != p.shape:
        raise ValueError(f"confidence has the shape {p.shape} and correct {right.shape}")
    if n_bins < 1:
        raise ValueError(f"n_bins is {n_bins}; expected at least 1")
    if p.size and not (p.min() >= 0 and p.max() <= 1 + 1e-9):
        raise ValueError(f"confidence goes from {p.min()} to {p.max()}; expected 0 to 1")
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(bins, w, n_bins).astype(np.float64)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(bins, w * x, n_bins) / count for x in (p, right)]
    return Reliability(means[0], means[1], count)


def calibration_error(confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 15) -> float:
    """Return the expected calibration error: 0 for a model that is right as often as it says.

    Parameters
    ----------
    confidence, correct, n_bins
        As for `reliability`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(calibration_error([0.9, 0.9, 0.6], [True, False, True]), 3)
    0.4
    """
    return reliability(confidence, correct, n_bins=n_bins).error
