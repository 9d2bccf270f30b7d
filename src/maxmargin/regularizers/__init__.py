"""Regularisers: what is paid for the weights, and how the weights follow from the dual.

Every dual method here keeps u = C Σ α Δf; a regulariser Ω owns the link w = link(u), which is the
gradient of its conjugate Ω*, and the value Ω(w) in the primal Ω(w) + C Σ ξ_i. A link is data
(`maxmargin.links.Link`): a regulariser of one's own is a subclass of `Regularizer` whose property
``link`` returns one.

`L1` and `L1Ball` have no link: the dual does not say what w is. They belong to solvers that keep
a w of their own (``maxmargin.solvers.primal``) and get a bound from `Regularizer.dual_bound`.
"""

from __future__ import annotations

from maxmargin.regularizers.base import BoundRegularizer, Regularizer, WeightLayout
from maxmargin.regularizers.bounds import Bounded, Nonnegative
from maxmargin.regularizers.gaussian import GaussianPrior
from maxmargin.regularizers.penalties import L1, L2, ElasticNet, L1Ball, Selected

__all__ = [
    "L1",
    "L2",
    "BoundRegularizer",
    "Bounded",
    "ElasticNet",
    "GaussianPrior",
    "L1Ball",
    "Nonnegative",
    "Regularizer",
    "Selected",
    "WeightLayout",
    "make_regularizer",
]


def make_regularizer(regularizer: Regularizer | str | None) -> Regularizer:
    """Turn what a user wrote into a regulariser.

    Parameters
    ----------
    regularizer : Regularizer, "l2" or None
        None means L2.

    Returns
    -------
    Regularizer
        The description.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if regularizer is None or (isinstance(regularizer, str) and regularizer.lower() == "l2"):
        return L2()
    if isinstance(regularizer, Regularizer):
        return regularizer
    raise ValueError(f'regularizer must be None, "l2" or a Regularizer, got {regularizer!r}')
