"""`BoundConstraints`: a set of constraints on given sequences, and inference with it.

φ of all sequences is one vector, sequence after sequence (`BoundConstraints.offsets`). The problems
of the paper are all of one form,

    argmax over y of  w·Φ(x, y) + Σ_k c_k φ_k(x, y) + q ‖φ(x, y)‖²,

    (14)            c = -(μ/2) v,   q = μ/4          constraint-violating inference
    (15), (12)      c = (μ/2) v,    q = -μ/4         constraint-guided inference
    soft decoding   c = penalty · weight,  q = 0
    hard decoding   c = infinity,   q = 0            φ_k must be 1

and `BoundConstraints.best` solves it in native code (``native/constrained_search.hpp``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.constraints.assembly import Assembly, Piece
from maxmargin.constraints.functions import SequenceFunction
from maxmargin.constraints.gamma import IntervalGamma, join
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maxmargin.constraints.base import Constraint
    from maxmargin.constraints.sample import Sample

__all__ = ["WIDTH", "BoundConstraints", "Inference", "has_feature"]

#: States a token that a search keeps unless told otherwise.
WIDTH = 1000


class Inference(NamedTuple):
    """What inference found.

    Attributes
    ----------
    codes : int32 array of shape (n_tokens,)
        The labels, as places in ``labels``.
    scores : float64 array of shape (n_sequences,)
        What was maximised; -inf where no labelling satisfies what is hard.
    bounds : float64 array of shape (n_sequences,)
        No labelling has a higher score.
    """

    codes: NDArray[np.int32]
    scores: NDArray[np.float64]
    bounds: NDArray[np.float64]

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Where the labelling is known to be the best."""
        return self.bounds <= self.scores

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Where a labelling was found that satisfies what is hard."""
        return self.scores > -np.inf


class BoundConstraints:
    """Constraints on given sequences; made by `ConstraintSet.bind`.

    Parameters
    ----------
    constraints : sequence of Constraint
        The constraints.
    sample : Sample
        The sequences.
    labels : list
        All labels, in the order of the weights (``Chain.labels_``).

    Attributes
    ----------
    constraints : tuple of Constraint
        The constraints.
    sample : Sample
        The sequences.
    offsets : int64 array of shape (n_sequences + 1,)
        The first coordinate of φ of each sequence.
    owner : int32 array of shape (dimension,)
        The constraint of each coordinate, by its place.
    target, weight : float64 arrays of shape (dimension,)
        The a of each coordinate (1: satisfied), and the weight of its constraint (maybe infinite).
    pieces : list of lists of Piece
        The coordinates of each constraint.
    """

    def __init__(
        self, constraints: Sequence[Constraint], sample: Sample, labels: Sequence[Any]
    ) -> None:
        self.constraints = tuple(constraints)
        self.sample = sample
        self.labels = list(labels)
        assembly = Assembly(sample, self.labels)
        for number, constraint in enumerate(self.constraints):
            assembly.begin(number, constraint.title)
            try:
                constraint.assemble(assembly)
            except ConstraintError as error:
                if quoted(constraint.title) in str(error):
                    raise
                raise ConstraintError(f"constraint {quoted(constraint.title)}: {error}") from None
        self.offsets, self.owner = assembly.number()
        self._arguments = assembly.arguments(self.offsets)
        self.pieces: list[list[Piece]] = [[] for _ in self.constraints]
        for piece in assembly.pieces:
            self.pieces[piece.owner].append(piece)
        self.target = np.ones(self.dimension)
        self.weight = np.ones(self.dimension)
        for constraint, pieces in zip(self.constraints, self.pieces, strict=True):
            for n, piece in enumerate(pieces):
                self.target[piece.coordinates] = constraint.target(n)
                self.weight[piece.coordinates] = constraint.weight
        self._own: _native.ConstrainedProblem | None = None

    # --- φ and Γ ---------------------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Number of coordinates of φ of all sequences together."""
        return int(self.offsets[-1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.sample.n_sequences

    @property
    def exact_by(self) -> str:
        """The inference that is exact for all constraints: viterbi, states, or search (none is)."""
        order = ("viterbi", "states", "search")
        return max((c.exact_by for c in self.constraints), key=order.index, default="viterbi")

    def codes_of(self, Y: Sequence[Sequence[Any]]) -> NDArray[np.int32]:
        """Return label sequences as codes, the places in ``labels``.

        Parameters
        ----------
        Y : list of label sequences
            One label a token, all of them known.

        Returns
        -------
        int32 array of shape (n_tokens,)
            The codes.
        """
        place = {label: k for k, label in enumerate(self.labels)}
        try:
            codes = [place[label] for y in Y for label in y]
        except KeyError as error:
            raise ConstraintError(f"there is no label {quoted(error.args[0])}") from None
        if [len(y) for y in Y] != self.sample.lengths.tolist():
            raise ConstraintError("the labellings are not of the lengths of the sequences")
        return np.array(codes, np.int32)

    def phi(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return φ of labellings of all sequences.

        Parameters
        ----------
        codes : int32 array of shape (n_tokens,)
            Places in ``labels``.

        Returns
        -------
        float64 array of shape (dimension,)
            Sequence after sequence.
        """
        phi: NDArray[np.float64] = self._bare().phi(np.ascontiguousarray(codes, np.int32))
        for constraint, piece in self._opaque():
            where = piece.coordinates.reshape(-1, constraint.size)
            for i in range(self.n_sequences):
                phi[where[i]] = constraint.phi(self.sample, i, self._labelling(codes, i))
        return phi

    def gamma(self, scale: str = "sum") -> IntervalGamma:
        """Return Γ over v (or φ) of all sequences.

        Parameters
        ----------
        scale : "sum" or "mean"
            Whether the terms of single sequences are summed over them (section 5.1 as printed), or
            averaged, as all other terms of Eq. (13) are. Averages over the sample stay as they are.

        Returns
        -------
        IntervalGamma
            Value, subgradient, Lipschitz constant, and blocks of the dual engine.
        """
        check_choice("scale", scale, ("sum", "mean"))
        parts = []
        for constraint, pieces in zip(self.constraints, self.pieces, strict=True):
            part = constraint.gamma(self.dimension, pieces, self.sample)
            if scale == "mean" and not constraint.of_sample:
                part = part.scaled(1.0 / self.n_sequences)
            parts.append(part)
        return join(parts, self.dimension)

    # --- native problems -------------------------------------------------------------------------

    @property
    def feature_names(self) -> list[str]:
        """The constraints that have a weight in the model as constraint features."""
        return [c.title for c in self.constraints if has_feature(c)]

    @property
    def groups(self) -> NDArray[np.int32]:
        """The constraint feature of each coordinate, by its place in `feature_names`, or -1."""
        place, number = [], 0
        for constraint in self.constraints:
            place.append(number if has_feature(constraint) else -1)
            number += has_feature(constraint)
        return np.array([*place, -1], np.int32)[self.owner]

    def problem(
        self,
        chain: _native.ChainProblem,
        *,
        features: bool = False,
        auxiliary: bool = False,
        chain_loss: bool = True,
        kappa: float = 0.0,
        tau: float = 0.0,
        width: int = WIDTH,
        free: NDArray[np.int32] | None = None,
        b: NDArray[np.float64] | None = None,
    ) -> _native.ConstrainedProblem:
        """Make a native problem of a chain with these constraints; see ``constrained_chain.hpp``.

        Parameters
        ----------
        chain : ChainProblem
            The same sequences, encoded; for training with labels: the truth, or the reference.
        features : bool
            Whether sums of φ over each constraint are features of the model, behind the chain's.
        auxiliary : bool
            Whether there are weights v, one for each coordinate of φ, behind those.
        chain_loss : bool
            Whether the loss of the chain counts.
        kappa, tau : float
            The features at v are kappa·φ, and tau‖φ‖² is added to the loss. (14) has kappa = -μ/2
            and tau = μ/4.
        width : int
            States a token that the oracle's search keeps.
        free : int32 array of shape (dimension,) or None
            Which of the weights v each coordinate has, -1 for none; None: each has its own.
        b : float64 array of shape (dimension,) or None
            b·φ is added to the loss: kappa·v where v is known.

        Returns
        -------
        ConstrainedProblem
            What a solver trains, and what inference and features are asked of.
        """
        return _native.ConstrainedProblem(
            chain=chain,
            groups=self.groups,
            n_groups=len(self.feature_names),
            group_weights=features,
            auxiliary=auxiliary,
            chain_loss=chain_loss,
            kappa=kappa,
            tau=tau,
            width=width,
            free=free,
            b=b,
            **self._arguments,
        )

    def _bare(self) -> _native.ConstrainedProblem:
        """Return a problem without features, for φ and for what is possible at all."""
        if self._own is None:
            chain = _native.ChainProblem(
                n_labels=len(self.labels),
                n_sparse=1,
                offsets=np.ascontiguousarray(self.sample.offsets),
                indptr=np.zeros(self.sample.n_tokens + 1, np.int64),
                indices=np.empty(0, np.uint32),
            )
            self._own = self.problem(chain)
        return self._own

    # --- inference -------------------------------------------------------------------------------

    def best(
        self,
        problem: _native.ConstrainedProblem,
        weights: Any,
        c: NDArray[np.float64],
        q: float = 0.0,
        *,
        width: int = WIDTH,
        n_jobs: int = 1,
        exact: bool = False,
        masks: tuple[Any, Any, Any] = (None, None, None),
        chain: _native.ChainProblem | None = None,
    ) -> Inference:
        """Return argmax over y of w·Φ(x, y) + Σ_k c_k φ_k(x, y) + q ‖φ(x, y)‖², of all sequences.

        Parameters
        ----------
        problem : ConstrainedProblem
            From `problem`.
        weights : array or SparseWeights
            The weights of the chain alone; those of constraint features go into ``c``.
        c : float64 array of shape (dimension,)
            Coefficients of φ; infinity makes a coordinate hard.
        q : float
            Coefficient of ‖φ‖², of any sign.
        width : int
            States a token that a search keeps at most.
        n_jobs : int
            Number of threads.
        exact : bool
            Refuse constraints for which no exact inference is known, and answers that are not
            known to be the best within ``width``.
        masks : tuple of arrays
            Which transitions, starts and ends are allowed, as `Chain.mask` has them.
        chain : ChainProblem or None
            The encoded sequences, if there is a `SequenceFunction`.

        Returns
        -------
        Inference
            Labels, scores and upper bounds.

        Raises
        ------
        ConstraintError
            If c has the wrong dimension, or exactness was asked for in vain.
        """
        c = np.ascontiguousarray(c, np.float64)
        if c.shape != (self.dimension,):
            raise ConstraintError(f"c has the shape {c.shape}; expected ({self.dimension},)")
        opaque = self._opaque()
        if exact and opaque:
            raise ConstraintError(
                f"constraint {quoted(opaque[0][0].title)}: exact inference was asked for, but a "
                "function of the whole labelling is not additive; write it as a TokenFunction or "
                "an EdgeFunction, or do without exact=True"
            )
        found = Inference(*problem.best(weights, c, q, width, n_jobs, *masks))
        if opaque:
            if chain is None:
                raise ConstraintError(
                    f"constraint {quoted(opaque[0][0].title)} needs the k best labellings; give "
                    "the chain's problem"
                )
            found = self._with_functions(
                chain, weights, found, c=c, q=q, masks=masks, n_jobs=n_jobs
            )
        if exact and not found.exact.all():
            i = int(np.argmin(found.exact))
            raise ConstraintError(
                f"sequence {i}: with {width} states a token the search is not exact (found "
                f"{found.scores[i]:.6g}, bound {found.bounds[i]:.6g}); give it a greater width"
            )
        return found

    def _opaque(self) -> list[tuple[SequenceFunction, Piece]]:
        return [
            (constraint, pieces[0])
            for constraint, pieces in zip(self.constraints, self.pieces, strict=True)
            if isinstance(constraint, SequenceFunction)
        ]

    def _labelling(self, codes: NDArray[np.int32], i: int) -> list[Any]:
        a, b = int(self.sample.offsets[i]), int(self.sample.offsets[i + 1])
        return [self.labels[k] for k in codes[a:b].tolist()]

    def _with_functions(
        self,
        chain: _native.ChainProblem,
        weights: Any,
        without: Inference,
        *,
        c: NDArray[np.float64],
        q: float,
        masks: tuple[Any, Any, Any],
        n_jobs: int,
    ) -> Inference:
        """Choose among the k best labellings of the chain and the best without the functions."""
        k = max(constraint.candidates for constraint, _ in self._opaque())
        lists = chain.kbest(weights, k, n_jobs, *masks)
        codes = without.codes.copy()
        plain = chain.score(weights, codes, n_jobs)
        best = np.full(self.n_sequences, -np.inf)
        # What φ can add at most: where c is infinite nothing, else the better of 0 and 1 (of
        # counts, the range of which is not known here, there is no bound).
        most = np.where(np.isinf(c), 0.0, np.maximum(c + q, 0.0))
        has_counts = bool((np.abs(self.phi(codes)) > 1).any())
        after = np.add.reduceat(np.append(most, 0.0), self.offsets[:-1]) if len(c) else most
        after = np.where(np.diff(self.offsets) > 0, after, 0.0)
        bounds = np.empty(self.n_sequences)
        rounds = max(len(paths) for paths in lists)
        candidates = [(codes, plain)]
        for r in range(rounds):
            rows = [paths[min(r, len(paths) - 1)] for paths in lists]
            candidates.append(
                (np.concatenate([y for _, y in rows]), np.array([s for s, _ in rows]))
            )
        chosen = codes
        for labels, scores in candidates:
            phi = self.phi(labels)
            with np.errstate(invalid="ignore"):
                worth = np.where(
                    np.isinf(c), np.where(phi > 0, 0.0, -np.inf), c * phi + q * phi * phi
                )
            total = scores + np.array(
                [worth[a:b].sum() for a, b in zip(self.offsets, self.offsets[1:], strict=False)]
            )
            better = total > best
            best = np.where(better, total, best)
            tokens = np.repeat(better, self.sample.lengths)
            chosen = np.where(tokens, labels, chosen)
        for i, paths in enumerate(lists):
            everything = len(paths) < k
            bounds[i] = best[i] if everything else max(best[i], paths[-1][0] + after[i])
            if has_counts and not everything:
                bounds[i] = math.inf
        return Inference(chosen.astype(np.int32), best, bounds)

    # --- decoding --------------------------------------------------------------------------------

    def coefficients(self, mode: str, penalty: float = 1.0) -> NDArray[np.float64]:
        """Return the c of decoding.

        Parameters
        ----------
        mode : "hard", "soft" or "off"
            Whether violated constraints are impossible, cost penalty · weight, or nothing.
        penalty : float
            What a violation of weight 1 costs in soft decoding.

        Returns
        -------
        float64 array of shape (dimension,)
            Coefficients of φ. Constraints on the sample have zeros.
        """
        check_choice("mode", mode, ("hard", "soft", "off"))
        local = np.array([not c.of_sample for c in self.constraints] + [False])[self.owner]
        if mode == "off":
            return np.zeros(self.dimension)
        c = np.full(self.dimension, np.inf) if mode == "hard" else penalty * self.weight
        return np.where(local, c, 0.0)

    def conflict(
        self, i: int, c: NDArray[np.float64], masks: Any = (None, None, None)
    ) -> list[int]:
        """Return constraints that contradict each other on sequence ``i``: a minimal set.

        Parameters
        ----------
        i : int
            A sequence that no labelling satisfies.
        c : array of shape (dimension,)
            With infinity where a coordinate is hard.
        masks : tuple of arrays
            Which transitions, starts and ends are allowed.

        Returns
        -------
        list of int
            Places of constraints; without any of them the others can be satisfied together. Empty
            if the masks alone leave nothing.
        """
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        involved = sorted({int(k) for k in self.owner[a:b][np.isinf(c[a:b])]})
        alone = BoundConstraints(self.constraints, self.sample.only(i), self.labels)
        bare = alone._bare()
        weights = _native.aligned_array(bare.n_weights(False), False)
        weights[:] = 0.0

        def possible(kept: list[int]) -> bool:
            hard = np.where(np.isinf(c[a:b]) & np.isin(alone.owner, kept), np.inf, 0.0)
            _, scores, _ = bare.best(weights, hard, 0.0, 100_000, 1, *masks)
            return bool(scores[0] > -np.inf)

        kept = involved
        for k in involved:  # a deletion filter: what stays cannot be left out
            fewer = [other for other in kept if other != k]
            if not possible(fewer):
                kept = fewer
        return kept


def has_feature(constraint: Constraint) -> bool:
    """Whether a constraint has a weight in the model: it may, and is about single sequences."""
    single = not constraint.of_sample and not isinstance(constraint, SequenceFunction)
    return constraint.feature and single
