"""`ChainConstraints`: a chain that decodes, or is trained, with prior-knowledge constraints.

Decoding adds Σ_k c_k φ_k(x, y) to the scores of the chain: c is infinite for ``decode="hard"``,
penalty · weight for ``"soft"``. With constraint features ("I" in the paper) the model has a weight
for each constraint, of the number of its coordinates that are satisfied; it is learned with the
others and used in every prediction, whatever ``decode`` says.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice, check_number, check_whole
from maxmargin.constraints.bound import WIDTH, BoundConstraints, Inference, has_feature
from maxmargin.constraints.sample import Sample
from maxmargin.constraints.sets import ConstraintSet
from maxmargin.errors import ConstraintError
from maxmargin.features.items import Items
from maxmargin.printable import quoted
from maxmargin.structures.chain_layout import ChainLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ChainConstraints"]

#: In the place of an infinite cost where no labelling satisfies what is hard. Far above any score,
#: and small enough for sums of thousands to keep six digits behind the point.
RELAXED = 1e7


@dataclass
class ChainConstraints:
    """Constraints of a chain, and how they are used.

    Parameters
    ----------
    rules : ConstraintSet
        The constraints.
    decode : {"off", "soft", "hard"}
        Whether predictions ignore violations, pay for them, or have none.
    penalty : float
        What a violation of weight 1 costs in soft decoding, in units of the scores.
    features : bool
        Whether the model has weights of the constraints.
    infeasible : {"error", "relax"}
        What happens to a sequence of which no labelling satisfies what is hard: an error that names
        the constraints that contradict each other, or the best of the labellings with the fewest
        violations.
    width : int
        States a token that the search keeps where constraints need states.
    weights : float64 array or None
        The weights of the constraints, once trained.
    source : path or None
        The file that the rules were read from.
    """

    rules: ConstraintSet
    decode: str = "off"
    penalty: float = 1.0
    features: bool = False
    infeasible: str = "error"
    width: int = WIDTH
    weights: NDArray[np.float64] | None = None
    source: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.rules, ConstraintSet):
            raise TypeError(
                f"constraints is a {type(self.rules).__name__}; expected a ConstraintSet"
            )
        check_choice("decode", self.decode, ("off", "soft", "hard"))
        check_choice("infeasible", self.infeasible, ("error", "relax"))
        check_number("penalty", self.penalty, least=0)
        check_whole("beam", self.width, 1)

    @property
    def active(self) -> bool:
        """Whether predictions depend on them."""
        return self.features or self.decode != "off"

    def bind(self, X: Any, labels: Sequence[Any]) -> BoundConstraints:
        """Return the constraints on sequences, as decoding and features use them.

        Parameters
        ----------
        X : list of sequences, ColumnTable or Items
            The inputs.
        labels : sequence
            ``Chain.labels_``.

        Returns
        -------
        BoundConstraints
            Without constraints on the sample.
        """
        if isinstance(X, Items):
            X = [[[name for name, _ in token] for token in X.features(i)] for i in range(len(X))]
        rules = self.rules.decoding()
        return rules.bind(Sample(X, rules.columns), labels)

    def problem(
        self, chain: _native.ChainProblem, X: Any, labels: Sequence[Any]
    ) -> _native.ConstrainedProblem:
        """Return the training problem of a chain with constraint features."""
        return self.bind(X, labels).problem(chain, features=True, width=self.width)

    def split(self, weights: Any, layout: ChainLayout) -> NDArray[Any]:
        """Keep the weights of the constraints, and return those of the chain.

        Parameters
        ----------
        weights : array
            All weights: those of the constraints stand behind those of the chain, in rows like
            theirs (``native/constrained_chain.hpp``).
        layout : ChainLayout
            The rows of the chain.

        Returns
        -------
        array
            Aligned, as native code takes them.
        """
        own = layout.zeros(weights.dtype)
        own[:] = weights[: len(own)]
        extra = weights[len(own) :].reshape(-1, layout.width(weights.dtype))[:, : layout.n_labels]
        self.weights = extra.ravel()[: self.n_features].astype(np.float64)
        return own

    @property
    def n_features(self) -> int:
        """Number of constraints that have a weight as constraint features."""
        return sum(has_feature(constraint) for constraint in self.rules.decoding())

    def infer(
        self,
        chain: _native.ChainProblem,
        bound: BoundConstraints,
        weights: Any,
        masks: tuple[Any, Any, Any],
        n_jobs: int = 1,
    ) -> Inference:
        """Return the best labelling of every sequence.

        Parameters
        ----------
        chain : ChainProblem
            The encoded sequences.
        bound : BoundConstraints
            From `bind`.
        weights : array or SparseWeights
            The weights of the chain.
        masks : tuple of arrays
            What may follow, begin and end.
        n_jobs : int
            Number of threads.

        Returns
        -------
        Inference
            Labels, scores and bounds.

        Raises
        ------
        ConstraintError
            If no labelling satisfies what is hard, and that is to be an error.
        """
        problem = bound.problem(chain, width=self.width)
        c = bound.coefficients(self.decode, self.penalty) + self._learned(bound)

        def search(c: NDArray[np.float64]) -> Inference:
            return bound.best(
                problem, weights, c, width=self.width, n_jobs=n_jobs, masks=masks, chain=chain
            )

        found = search(c)
        if not found.feasible.all():
            if self.infeasible == "error":
                self._refuse(bound, c, masks, found)
            eased = search(np.where(np.isinf(c), RELAXED + self._learned(bound), c))
            where = np.repeat(found.feasible, bound.sample.lengths)
            found = Inference(
                np.where(where, found.codes, eased.codes).astype(np.int32),
                np.where(found.feasible, found.scores, eased.scores),
                np.where(found.feasible, found.bounds, eased.bounds),
            )
        self._warn(found)
        return found

    def worth(self, bound: BoundConstraints, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what the weights of the constraints add to the scores of labellings."""
        terms = np.append(self._learned(bound) * bound.phi(codes), 0.0)
        sums = np.add.reduceat(terms, bound.offsets[:-1])
        found: NDArray[np.float64] = np.where(np.diff(bound.offsets) > 0, sums, 0.0)
        return found

    def _learned(self, bound: BoundConstraints) -> NDArray[np.float64]:
        """Return the learned weight of each coordinate."""
        if not self.features or self.weights is None:
            return np.zeros(bound.dimension)
        if len(self.weights) != len(bound.feature_names):
            raise ConstraintError(
                f"the model has {len(self.weights)} weights of constraints, and there are "
                f"{len(bound.feature_names)}; the constraints must be those of the training"
            )
        return np.append(self.weights, 0.0)[bound.groups]

    def _refuse(
        self,
        bound: BoundConstraints,
        c: NDArray[np.float64],
        masks: tuple[Any, Any, Any],
        found: Inference,
    ) -> None:
        bad = np.flatnonzero(~found.feasible)
        i = int(bad[0])
        more = f" (and {len(bad) - 1} more sequences)" if len(bad) > 1 else ""
        words = " ".join(bound.sample.words_of(i)[:8])
        if found.bounds[i] > -np.inf:
            raise ConstraintError(
                f"sequence {i} ({quoted(words)}){more}: no labelling that satisfies the "
                f"constraints was found with {self.width} states a token; give the search a "
                'greater beam, or use infeasible="relax"'
            )
        conflict = [bound.constraints[k] for k in bound.conflict(i, c, masks)]
        if not conflict:
            raise ConstraintError(
                f"sequence {i} ({quoted(words)}){more}: no labelling uses only allowed "
                "transitions, starts and ends"
            )
        names = " and ".join(self.rules.where(one) for one in conflict)
        verb = "contradict each other" if len(conflict) > 1 else "cannot be satisfied"
        raise ConstraintError(
            f"sequence {i} ({quoted(words)}){more}: {names} {verb}, so that no labelling is left; "
            'leave one out, decode="soft", or use infeasible="relax"'
        )

    def _warn(self, found: Inference) -> None:
        slack = 1e-9 * (1 + np.abs(found.scores))
        loose = int((found.bounds > found.scores + slack).sum())
        if loose:
            warnings.warn(
                f"{loose} of {len(found.scores)} sequences were decoded by a beam search of "
                f"{self.width} states a token that may have missed the best labelling; a greater "
                "beam makes it exact",
                UserWarning,
                stacklevel=5,
            )
