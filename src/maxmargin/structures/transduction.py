"""`Transduction`: objective (13) of the transductive structural SVM, as blocks of the dual engine.

Paper: Yu, "Transductive Learning of Structural SVMs via Prior Knowledge Constraints", AISTATS 2012.

    ½‖w‖² + C₁/n Σ_i max_y [Δ(y_i, y) + w·δΦ_i(y)] + C₂ Γ(v) + C₂μ/(2m) Σ_j ‖v_j‖²
      + C₂/m Σ_j { max_y [w·Φ_j(y) - (μ/2) v_j·φ_j(y) + (μ/4)‖φ_j(y)‖²]
                 - max_y [w·Φ_j(y) + (μ/2) v_j·φ_j(y) - (μ/4)‖φ_j(y)‖²] }                     (13)

The last line is the concave part of `maxmargin.solvers.cccp`; what comes before it is convex, and
the weights of the engine are (w, v). Blocks are the labelled sequences (weight C₁/n), the
unlabelled ones (C₂/m, oracle (14)), and those terms of Γ that are not part of the regulariser.

**v through the link.** Ω of the engine is ½‖w‖² plus, for each coordinate of v,
C₂μ/(2m) v_k² + C₂ ω_k dist(v_k, a_k) where Γ has such a term (section 5.1, Eq. (4), section 4).
With s = m/(C₂μ) and v_k = a_k + z_k this is z²/(2s) + C₂ ω_k |z| + (a_k/s) z + a_k²/(2s): a link
with the thresholds ∓C₂ ω_k and the scale s, a linear term, and a constant. So these terms need no
multipliers at all. Terms of several coordinates (averages over the sample) and those with two ends
are blocks. The weights are z/√s: the scale is then 1 for all weights, and the engine's model of a
step is exact where the link is not flat. What (14) and (15) have of a_k·φ_k is a loss.

**v that is known.** With ψ_k the mean of φ_k over what the two maxima choose, v_k minimises
(μ/2m)(v_k - ψ_k)² + ω_k dist(v_k, a_k) (take (13) at the optimum of its maxima): v_k = a_k if
(μ/m) |ψ_k - a_k| ≤ ω_k. As ψ_k is between the least and the greatest value of φ_k, this can be
known beforehand; of a binary φ with the target 1 it says μ ≤ m ω (Γ as a sum over sequences) or
μ ≤ ω (as a mean). Such coordinates have no weight v_k: their term is a loss, (μ/4)(φ_k - a_k)²
but for a constant.

**Weights of constraints.** Where v_k is known, its weight in Γ makes no difference any more. So the
weight ω of a constraint with a binary φ multiplies its quadratic terms too: (μ/2) ω_k (φ_k - v_k)²
in the place of (7), which is (7) with φ_k, v_k and a_k in units of 1/√ω_k. What is known stays
known: (μ/m) ω |ψ_k - a_k| ≤ ω.

**Constraints that only guide.** (14) is asked for thousands of times, (15) once an outer iteration.
A constraint that needs states beside the labels ("each label is one segment") makes (14) a search
that is far slower than Viterbi. With ``margins="labels"`` such constraints, where v is
known and φ binary, stand in (15) only: instead of (9) their part is

    max_y w·Φ(y) - max_y [w·Φ(y) - (μ/4) ω (φ_k(y) - a_k)²]  ≥  (μ/4) ω (φ_k(ȳ) - a_k)²,

a difference of convex functions still, zero where the best labelling satisfies the constraint. It
bounds the violations of ȳ, as Lemma 1's companion does, not those of the prediction, and asks for
no margin. There is no bound of Γ by Lemma 2 then.

**Margins of labels.** (9) asks for margins of violations only: two labellings that satisfy the same
constraints may have the same score, and what the unlabelled sequences say about words without rules
is lost. With ``label_margin`` = λ > 0 the labelling r_j that the procedure begins with (the
reference) counts as in section 4, where labels are constraints, but in the convex part alone:

    max_y [w·Φ(y) + λ Δ(r_j, y) + (μ/4)‖φ(y) - v‖²] - max_y [w·Φ(y) - (μ/4)‖φ(y) - v‖²].

It is a difference of convex functions that is no less than (9), so that both lemmas hold still.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.constraints.bound import WIDTH, BoundConstraints
from maxmargin.constraints.functions import SequenceFunction
from maxmargin.constraints.gamma import IntervalGamma
from maxmargin.errors import ConstraintError, NotCompatibleError
from maxmargin.links import Link
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.constraints.assembly import Piece
    from maxmargin.features import EncodedBatch
    from maxmargin.structures.chain import Chain

__all__ = ["Imputed", "Transduction", "TransductiveData", "phi_range", "repadded"]

Vector = NDArray[np.float64]


def phi_range(bound: BoundConstraints) -> tuple[Vector, Vector]:
    """Return the least and the greatest value that each coordinate of φ can have.

    Parameters
    ----------
    bound : BoundConstraints
        Constraints on sequences.

    Returns
    -------
    low, high : float64 arrays of shape (dimension,)
        Bounds, maybe infinite.
    """
    low, high = np.zeros(bound.dimension), np.ones(bound.dimension)

    def note(piece: Piece, least: Any, most: Any) -> None:
        low[piece.coordinates], high[piece.coordinates] = least, most

    for pieces in bound.pieces:
        for piece in pieces:
            if piece.table is not None:
                note(piece, piece.table.min(), piece.table.max())
            elif piece.sort == "function":
                note(piece, -np.inf, np.inf)
            elif piece.automaton["kind"] == "total":
                note(piece, 0.0, bound.sample.lengths[piece.sequences])
    return low, high


def repadded(chain: Chain, weights: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return native weights of a chain in the type and padding of another precision.

    Parameters
    ----------
    chain : Chain
        Prepared.
    weights : array
        Its weights, of either type.
    dtype : "float32" or "float64"
        The type wanted.

    Returns
    -------
    array
        Aligned.
    """
    layout = chain.layout
    out: NDArray[Any] = layout.zeros(dtype)
    rows = weights.reshape(-1, layout.width(weights.dtype))[:, : layout.n_labels]
    out.reshape(-1, layout.width(dtype))[:, : layout.n_labels] = rows
    return out


@dataclass(eq=False)
class TransductiveData:
    """The sequences of a transductive problem, encoded.

    Parameters
    ----------
    chain : Chain
        It knows the features and the labels.
    labelled : EncodedBatch or None
        The labelled sequences; None: there are none (section 4).
    truth : int32 array or None
        Their labels, as places in ``chain.labels_``.
    labelled_bound : BoundConstraints or None
        The constraints on them; needed if the model has constraint features.
    unlabelled : EncodedBatch
        The unlabelled sequences.
    reference : int32 array of shape (n_tokens,)
        Any fixed labelling of them, which planes are relative to.
    bound : BoundConstraints
        The constraints on the unlabelled sequences.
    features : bool
        Whether the model has constraint features ("I" in the paper).
    sample_weight, token_weight
        Of the labelled sequences, as for `Chain.make_problem`.
    """

    chain: Chain
    labelled: EncodedBatch | None
    truth: NDArray[np.int32] | None
    labelled_bound: BoundConstraints | None
    unlabelled: EncodedBatch
    reference: NDArray[np.int32]
    bound: BoundConstraints
    features: bool = False
    sample_weight: Any = None
    token_weight: Any = None

    def __post_init__(self) -> None:
        for constraint in self.bound.constraints:
            if isinstance(constraint, SequenceFunction):
                raise ConstraintError(
                    f"constraint {quoted(constraint.title)}: a function of the whole labelling has "
                    "no exact inference, which training needs; use a TokenFunction or an "
                    "EdgeFunction, or decode with it only"
                )

    @property
    def n_unlabelled(self) -> int:
        """The m of the paper."""
        return self.unlabelled.n_sequences

    @property
    def n_labelled(self) -> int:
        """The n of the paper."""
        return 0 if self.labelled is None else self.labelled.n_sequences

    def labelled_problem(self, share: float, width: int) -> _native.Problem | None:
        """Return the labelled sequences as a problem whose examples weigh so much each."""
        if self.labelled is None:
            return None
        given = 1.0 if self.sample_weight is None else np.asarray(self.sample_weight, np.float64)
        weight = np.broadcast_to(share * given, (self.n_labelled,)).copy()
        chain = self.chain.encoded_problem(self.labelled, self.truth, self.token_weight, weight)
        assert isinstance(chain, _native.ChainProblem)
        if not self.features:
            return chain
        assert self.labelled_bound is not None
        return self.labelled_bound.problem(chain, features=True, width=width)


class Imputed(NamedTuple):
    """What constraint-guided inference found at some weights.

    Attributes
    ----------
    codes : int32 array of shape (n_tokens,)
        ȳ_j of (12), one after the other.
    linear_term : float64 array
        u₀ of the convex step, in the layout of the weights.
    constant : float
        What stands beside it.
    """

    codes: NDArray[np.int32]
    linear_term: Vector
    constant: float


class Transduction:
    """Objective (13) with given parameters: the convex part, its link, and the concave part.

    Parameters
    ----------
    data : TransductiveData
        The sequences.
    C1, C2, mu : float
        As in (13); C1 multiplies the mean over the labelled sequences.
    gamma : IntervalGamma
        The Γ over all v.
    width : int
        States a token that the inference keeps where constraints need states.
    pin : bool
        Whether entries of v that are known beforehand have no weights.
    margins : {"all", "labels"}
        Whether all constraints are in (14), as in (13), or those alone whose inference needs no
        states beside the labels.
    label_margin : float
        λ of the module's text: what the loss of a label other than that of the reference counts.

    Attributes
    ----------
    problem : JointProblem
        The convex part, with all weights of blocks inside: it is trained with C = 1.
    n_free : int
        Entries of v that have weights.
    """

    def __init__(
        self,
        data: TransductiveData,
        *,
        C1: float,
        C2: float,
        mu: float,
        gamma: IntervalGamma,
        width: int = WIDTH,
        pin: bool = True,
        margins: str = "all",
        label_margin: float = 0.0,
    ) -> None:
        self.data, self.C1, self.C2, self.mu, self.gamma = data, C1, C2, mu, gamma
        self.width, self.label_margin = width, label_margin
        bound = data.bound
        m, D = data.n_unlabelled, bound.dimension
        self.scale = m / (C2 * mu)  # s of the module's text
        self.unit = float(np.sqrt(self.scale))
        kinks = _Kinks(gamma)
        self.target = kinks.target  # a, zero where there is none
        low, high = phi_range(bound)
        with np.errstate(invalid="ignore"):
            pull = np.stack([low - kinks.target, high - kinks.target]) * (mu / m)
        known = (
            kinks.own & ~kinks.shared & (pull >= -kinks.below).all(0) & (pull <= kinks.above).all(0)
        )
        self.known: NDArray[np.bool_] = known if pin else np.zeros(D, bool)
        self.free: NDArray[np.int32] = np.where(self.known, -1, np.cumsum(~self.known) - 1).astype(
            np.int32
        )
        self.n_free = int(np.count_nonzero(~self.known))
        self._kinks = kinks
        binary = self.known & (low == 0) & (high == 1)
        self.omega: Vector = np.where(binary & np.isfinite(bound.weight), bound.weight, 1.0)
        # Of coordinates whose v is known, (μ/4) ω φ² - (μ/2) ω a φ of (14) is a loss, of which the
        # native problem adds (μ/4) φ² by itself; φ² = φ where ω is not 1.
        b = (mu / 4) * (self.omega - 1) - (mu / 2) * self.omega * self.target
        self._b = b  # ω is 1 where v is free
        self.guiding: NDArray[np.bool_] = binary & _needs_states(bound) & (margins == "labels")
        self._b14: Vector = np.where(self.guiding, -mu / 4, b)  # with (μ/4) φ² nothing is left
        auxiliary = self.n_free > 0
        lengths = data.unlabelled.lengths.tolist()
        margin = [np.full(n, label_margin) for n in lengths] if label_margin else None
        encoded = data.chain.encoded_problem(
            data.unlabelled, data.reference, margin, np.full(m, C2 / m)
        )
        assert isinstance(encoded, _native.ChainProblem)
        self.unlabelled = bound.problem(
            encoded,
            features=data.features,
            width=width,
            auxiliary=auxiliary,
            chain_loss=label_margin > 0,
            kappa=-(mu / 2) * self.unit,
            tau=mu / 4,
            free=self.free if auxiliary and self.n_free < D else None,
            b=self._b14,
        )
        labelled = data.labelled_problem(C1 / max(data.n_labelled, 1), width)
        members: list[Any] = [] if labelled is None else [labelled]
        members.append(self.unlabelled)
        terms = kinks.rest(self.free, self.unit, C2, self.target)
        if terms is not None:
            members.append(_native.IntervalProblem(self.unlabelled, *terms))
        self.problem = _native.JointProblem(members)
        self.guided = bound.problem(encoded, width=width)
        self._encoded = encoded
        # The constant of (13) that the engine does not see; see `objective`.
        self._reference_loss = self._losses(data.reference, self._b14)

    # --- weights ---------------------------------------------------------------------------------

    def n_weights(self, single: bool) -> int:
        """Return the number of weights, padding included."""
        return int(self.unlabelled.n_weights(single))

    def link(self, single: bool) -> Link:
        """Return the link of (w, v): L2 for w, and for v what the module's text says."""
        if self.n_free == 0:
            return Link()
        places = self.unlabelled.auxiliary_places(single)
        size, kinks = self.n_weights(single), self._kinks
        free = ~self.known
        arrays = {name: np.zeros(size) for name in ("lower", "upper")}
        # z = unit times the weight: thresholds are per unit of the weight.
        arrays["lower"][places] = -(self.C2 * self.unit) * kinks.below[free]
        arrays["upper"][places] = (self.C2 * self.unit) * kinks.above[free]
        return Link(**arrays)

    def start(
        self,
        chain_weights: NDArray[Any],
        group_weights: Vector | None = None,
        v: Vector | None = None,
    ) -> NDArray[Any]:
        """Return weights to begin with: those of a supervised model, and v at its target.

        Parameters
        ----------
        chain_weights : array
            Native weights of the chain.
        group_weights : array or None
            Those of the constraint features.
        v : array of shape (dimension,) or None
            Other values of v.

        Returns
        -------
        array
            All weights in the native layout of the same precision.
        """
        single = chain_weights.dtype == np.float32
        weights: NDArray[Any] = _native.aligned_array(self.n_weights(single), single)
        weights[:] = 0
        weights[: len(chain_weights)] = chain_weights
        if self.data.features and group_weights is not None:
            weights[self.unlabelled.group_places(single)] = group_weights
        if self.n_free:
            if v is None:
                v = np.where(self._kinks.own, self.target, self.data.bound.target)
            places = self.unlabelled.auxiliary_places(single)
            weights[places] = (v - self.target)[~self.known] / self.unit
        return weights

    def split(self, weights: NDArray[Any]) -> tuple[NDArray[Any], Vector, Vector]:
        """Return the weights of the chain, of the constraint features, and v of all coordinates.

        Parameters
        ----------
        weights : array
            All weights, native.

        Returns
        -------
        chain : array
            Aligned, as native code takes them.
        groups : float64 array
            Empty without constraint features.
        v : float64 array of shape (dimension,)
            With the known entries.
        """
        single = weights.dtype == np.float32
        n = self.data.chain.n_weights(weights.dtype)
        chain: NDArray[Any] = _native.aligned_array(n, single)
        chain[:] = weights[:n]
        groups = weights[self.unlabelled.group_places(single)].astype(np.float64)
        v = self.target.copy()
        if self.n_free:
            places = self.unlabelled.auxiliary_places(single)
            v[~self.known] += self.unit * weights[places].astype(np.float64)
        return chain, groups, v

    # --- inference -------------------------------------------------------------------------------

    def infer(self, weights: NDArray[Any], sign: float, threads: int = 1) -> Any:
        """Return argmax over y of w·Φ + sign · ((μ/2) v·φ - (μ/4)‖φ‖²), of all sequences.

        Parameters
        ----------
        weights : array
            All weights, native.
        sign : float
            1: constraint-guided inference (15); -1: (14); 0: prediction.
        threads : int
            Threads to use.

        Returns
        -------
        Inference
            Labels, scores and bounds.
        """
        chain, c = self._coefficients(weights, sign)
        return self.data.bound.best(
            self.guided, chain, c, -sign * self.mu / 4, width=self.width, n_jobs=threads
        )

    def _coefficients(self, weights: NDArray[Any], sign: float) -> tuple[NDArray[Any], Vector]:
        """Return the weights of the chain, and what each entry of φ adds to the scores."""
        chain, groups, v = self.split(weights)
        b = self._b14 if sign < 0 else self._b
        c = sign * ((self.mu / 2) * (v - self.target) - b)
        if self.data.features:
            c = c + np.append(groups, 0.0)[self.data.bound.groups]
        return chain, c

    def _kept(
        self, weights: NDArray[Any], found: Any, before: NDArray[np.int32], threads: int
    ) -> NDArray[np.int32]:
        """Return what was found, or what was imputed before where a beam search missed that.

        Without this the objective could rise: the old labelling is better than one that a search
        of given width finds.
        """
        codes: NDArray[np.int32] = found.codes
        if (found.bounds <= found.scores + 1e-9 * (1 + np.abs(found.scores))).all():
            return codes
        bound = self.data.bound
        chain, c = self._coefficients(weights, 1.0)
        phi = bound.phi(before)
        terms = np.append(c * phi - (self.mu / 4) * phi**2, 0.0)
        sums = np.where(
            np.diff(bound.offsets) > 0, np.add.reduceat(terms, bound.offsets[:-1]), 0.0
        )
        worth = self._encoded.score(chain, before, threads) + sums
        return np.where(
            np.repeat(worth > found.scores, self.data.unlabelled.lengths), before, codes
        ).astype(np.int32)

    def impute(
        self,
        weights: NDArray[Any],
        threads: int,
        single: bool,
        before: NDArray[np.int32] | None = None,
    ) -> Imputed:
        """Return the linear function that touches the concave part at these weights.

        G(w, v) = C₂/m Σ_j max_y [w·Φ_j + (μ/2) v_j·φ_j - (μ/4)‖φ_j‖²] is touched by the features
        of the labellings ȳ_j that attain the maxima, (21) of the paper. The engine's blocks are
        relative to the reference r_j, so that C₂/m Σ_j f(r_j) is taken off here; and the linear
        term of the module's text, -(a/s) of each v_k, is put in. ``before``: what was imputed the
        last time, which stays where a beam search finds nothing better.
        """
        found = self.infer(weights, 1.0, threads)
        codes = found.codes if before is None else self._kept(weights, found, before, threads)
        m = self.data.n_unlabelled
        share = np.full(m, self.C2 / m)
        kappa = (self.mu / 2) * self.unit
        term = self.unlabelled.sum_features(codes, share, kappa, single)
        term = term - self.unlabelled.sum_features(self.data.reference, share, -kappa, single)
        if self.n_free:
            places = self.unlabelled.auxiliary_places(single)
            term[places] -= self.target[~self.known] / self.unit
        # -(μ/4)‖φ‖² + (μ/2) a·φ: minus the losses of (14).
        here = self._losses(codes, self._b)
        constant = self.C2 / m * (-here - self._reference_loss) - self.offset
        return Imputed(codes, term, constant)

    def _losses(self, codes: NDArray[np.int32], b: Vector) -> float:
        """Return Σ_j (μ/4) ‖φ_j‖² + b·φ_j: with ω and a, what (14) or (15) has of φ."""
        phi = self.data.bound.phi(codes)
        return float(self.mu / 4 * (phi @ phi) + b @ phi)

    # --- values ----------------------------------------------------------------------------------

    @property
    def offset(self) -> float:
        """What (13) has beyond the parts that depend on w and v.

        Σ_k ω_k a_k²/(2s), the constant of the module's text; half of it comes from (14).
        """
        share = np.where(self.guiding, 0.5, 1.0) * self.omega
        return float(share @ self.target**2 / (2 * self.scale))

    def bound_of_gamma(self, weights: NDArray[Any], threads: int = 1) -> tuple[float, float, float]:
        """Return Γ(v), the actual Γ of the predictions, and the bound of it by Lemma 2.

        Parameters
        ----------
        weights : array
            All weights, native.
        threads : int
            Threads to use.

        Returns
        -------
        gamma_v, gamma_predicted, bound : float
            B; Γ(φ(y(x; w))); 2 L √(m A / μ) + B, where A is the mean of the differences (9). The
            bound is infinite where constraints only guide.
        """
        m = self.data.n_unlabelled
        _, _, v = self.split(weights)
        outer = self.infer(weights, -1.0, threads)
        inner = self.infer(weights, 1.0, threads)
        square = float(v @ (self.omega * v))
        # (9) has ‖φ - v‖²: (14) and (15) leave (μ/4)‖v‖² out, once with each sign.
        A = max(float(outer.bounds.sum() - inner.scores.sum()) + self.mu / 2 * square, 0.0) / m
        B = self.gamma.value(v)
        phi = self.data.bound.phi(self.infer(weights, 0.0, threads).codes)
        bound = 2 * self._lipschitz() * float(np.sqrt(m * A / self.mu)) + B
        if self.guiding.any():
            bound = float("inf")
        return B, self.gamma.value(phi), bound

    def _lipschitz(self) -> float:
        """Return the Lipschitz constant of Γ in the units of v in which (7) is plain."""
        gamma = self.gamma
        if not isinstance(gamma, IntervalGamma) or (self.omega == 1).all():
            return gamma.lipschitz
        values = gamma.values / np.sqrt(self.omega[gamma.indices])
        return replace(gamma, values=values).lipschitz


def _needs_states(bound: BoundConstraints) -> NDArray[np.bool_]:
    """Return which coordinates need states beside the labels in inference."""
    out = np.zeros(bound.dimension, bool)
    for pieces in bound.pieces:
        for piece in pieces:
            if piece.sort == "automaton":
                out[piece.coordinates] = True
    return out


class _Kinks:
    """The terms of Γ that the link takes, ω dist(v_k, a) of single coordinates, and the others."""

    def __init__(self, gamma: IntervalGamma) -> None:
        if not isinstance(gamma, IntervalGamma):
            raise NotCompatibleError(
                f"Γ is a {type(gamma).__name__}, of which the engine knows no planes; use "
                'schedule="paper", which asks for its value and subgradient only'
            )
        self.gamma = gamma
        D = gamma.dimension
        sizes = np.diff(gamma.indptr)
        first = np.minimum(gamma.indptr[:-1], max(len(gamma.indices) - 1, 0))
        x = gamma.values[first] if len(gamma.values) else np.ones(len(sizes))
        k = gamma.indices[first] if len(gamma.indices) else np.zeros(len(sizes), np.int64)
        two_ended = np.isfinite(gamma.low) & np.isfinite(gamma.high) & (gamma.low < gamma.high)
        fits = (sizes == 1) & (x > 0) & ~two_ended & (gamma.weight > 0)
        _, once = np.unique(np.where(fits, k, -1), return_index=True)
        chosen = np.zeros(len(sizes), bool)
        chosen[once] = True
        chosen &= fits
        self.others = np.flatnonzero(~chosen & (gamma.weight > 0))
        at, w = k[chosen], (gamma.weight * x)[chosen]
        low, high = gamma.low[chosen] / x[chosen], gamma.high[chosen] / x[chosen]
        self.own: NDArray[np.bool_] = np.zeros(D, bool)
        self.target, self.below, self.above = np.zeros(D), np.zeros(D), np.zeros(D)
        self.own[at] = True
        self.target[at] = np.where(np.isfinite(low), low, high)
        self.below[at] = np.where(np.isfinite(low), w, 0.0)
        self.above[at] = np.where(np.isfinite(high), w, 0.0)
        self.shared: NDArray[np.bool_] = np.zeros(D, bool)
        for i in self.others.tolist():
            self.shared[gamma.indices[gamma.indptr[i] : gamma.indptr[i + 1]]] = True

    def rest(
        self, free: NDArray[np.int32], unit: float, C2: float, target: Vector
    ) -> tuple[Any, ...] | None:
        """Return the other terms as arguments of an IntervalProblem over the weights of z."""
        if not len(self.others):
            return None
        gamma = self.gamma
        entries = np.concatenate(
            [np.arange(gamma.indptr[i], gamma.indptr[i + 1]) for i in self.others.tolist()]
        )
        indptr = np.zeros(len(self.others) + 1, np.int64)
        np.cumsum(np.diff(gamma.indptr)[self.others], out=indptr[1:])
        at_target = gamma.functions(target)[self.others]  # A·v = A·a + A·z
        return (
            indptr,
            free[gamma.indices[entries]].astype(np.int64),
            unit * gamma.values[entries],
            gamma.low[self.others] - at_target,
            gamma.high[self.others] - at_target,
            C2 * gamma.weight[self.others],
        )
