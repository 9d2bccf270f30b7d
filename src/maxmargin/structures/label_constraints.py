"""Labels as constraints: section 4 of the transductive paper.

φ(x, y) has an entry for each token and label, 1 where the token has the label; the target is that
of the true labelling, and Γ = ½ Σ_i ‖v_i - φ(x_i, y_i)‖₁ is the Hamming loss where v_i encodes
a labelling. With these, (13) without its labelled part is Eq. (16): a structural SVM that is
trained by constraints alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from maxmargin.constraints.base import Case, Constraint
from maxmargin.constraints.gamma import IntervalGamma
from maxmargin.errors import ConstraintError

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Assembly, Piece
    from maxmargin.constraints.sample import Sample

__all__ = ["LabelConstraints"]


@dataclass(frozen=True)
class LabelConstraints(Constraint):
    """Every token has its own label.

    Parameters
    ----------
    codes : tuple of int
        The label of each token of the sample, as a place among all labels.
    n_labels : int
        Number of labels.
    name, weight
        As in `Constraint`.
    """

    kind: ClassVar[str] = "labels"
    codes: tuple[int, ...] = ()
    n_labels: int = 0

    def describe(self) -> str:
        """Return what it says."""
        return "every token has its label"

    def labels_named(self) -> tuple[Any, ...]:
        """Return nothing: it has codes."""
        return ()

    def assemble(self, assembly: Assembly) -> None:
        """Give an indicator of each label at each token."""
        n = assembly.sample.n_tokens
        if len(self.codes) != n:
            raise ConstraintError(f"found {len(self.codes)} labels; expected {n}, one a token")
        if self.n_labels != assembly.n_labels:
            raise ConstraintError(f"found {self.n_labels} labels; expected {assembly.n_labels}")
        for table in np.eye(assembly.n_labels):
            assembly.at_tokens(np.arange(n), table)

    def gamma(self, dimension: int, pieces: Sequence[Piece], sample: Sample) -> IntervalGamma:
        """Return ½ ‖v - φ(y)‖₁."""
        codes = np.array(self.codes)
        which = np.concatenate([piece.coordinates for piece in pieces])
        target = np.concatenate([(codes == k).astype(np.float64) for k in range(len(pieces))])
        return IntervalGamma.coordinates(
            dimension, which, low=target, high=target, weight=0.5 * self.finite_weight
        )

    def cases(self, sample: Sample, i: int, y: Sequence[Any]) -> Iterator[Case]:
        """Yield nothing: labels are compared by scores, not by reports."""
        yield from ()
