"""`PriorMean`: weights that stay near given ones, not near zero.

Ω(w - m) in the place of Ω(w): a Gaussian prior with the mean m, where Ω is ½‖w‖². The link of a
regulariser has an offset for it (`maxmargin.links`), so that certificates are those of Ω(w - m).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.links import Link
from maxmargin.regularizers import Regularizer, WeightLayout

__all__ = ["PriorMean"]


@dataclass(frozen=True, eq=False, repr=False)
class PriorMean(Regularizer):
    """Ω(w - m) for a regulariser Ω with a link.

    Parameters
    ----------
    base : Regularizer
        Ω: `L2`, `ElasticNet` or another one whose link has no bounds.
    mean : array
        m, in the native layout of the weights.
    """

    base: Regularizer
    mean: NDArray[Any]

    def __post_init__(self) -> None:
        if not self.base.linked:
            raise NotCompatibleError(
                f"a prior mean does not go with {type(self.base).__name__}, which has no link; "
                "take L2 or ElasticNet"
            )

    def bound(self, layout: WeightLayout) -> Regularizer:
        """Return it with the arrays of the base in the native layout."""
        return dataclasses.replace(self, base=self.base.bound(layout))

    @property
    def link(self) -> Link:
        """That of the base, with the mean as its offset."""
        mean = np.ascontiguousarray(self.mean, dtype=np.float64)
        return dataclasses.replace(self.base.link, offset=mean)

    def __repr__(self) -> str:
        return f"PriorMean({self.base!r}, {self.mean.size} weights)"
