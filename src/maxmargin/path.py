"""Sparse models: a series of them, one of a wanted size, and re-fits that do not shrink.

With the elastic net r‖w‖₁ + (1-r)/2‖w‖² of `maxmargin.regularizers`, one number r, the l1_ratio,
decides how many weights are not zero. Which r gives a small model that is still good is seen on a
path of several (Figure 3 of the SAP paper); each training begins where the last one ended.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _native
from maxmargin.checks import is_whole
from maxmargin.features.batch import EncodedBatch
from maxmargin.regularizers import ElasticNet, Selected
from maxmargin.solvers.driver import require_learned
from maxmargin.solvers.ending import was_interrupted
from maxmargin.training import Encoded, FitOptions, Outcome, fit, main_score, report_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.metrics import TagReport
    from maxmargin.solvers.certificate import Certificate
    from maxmargin.solvers.machine import Machine
    from maxmargin.structures.chain import Chain

__all__ = [
    "RATIOS",
    "Path",
    "PathPoint",
    "SparseOutcome",
    "debias",
    "path_points",
    "regularization_path",
    "search_nonzeros",
]

#: The l1_ratios of a path unless others are given, from sparse to dense.
RATIOS = (0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0)

#: The sparsest models that `search_nonzeros` tries.
MAX_RATIO = 0.999
#: A model with this share of the weights that were allowed is dense enough to end the search.
DENSE_ENOUGH = 0.98

_DROPPED = 2**32 - 1  # to native code, "no number"


def path_points(
    ratios: Iterable[float] = RATIOS, Cs: Iterable[float] = (0.1,)
) -> list[tuple[float, float]]:
    """Return the points of a path: all l1_ratios at each C.

    Parameters
    ----------
    ratios : iterable of float
        The l1_ratios, in the order of training.
    Cs : iterable of float
        Weights of the loss.

    Returns
    -------
    list of (l1_ratio, C)
        For each C, the smallest first, the l1_ratios in their order.
    """
    ratios = list(dict.fromkeys(ratios))
    return [(ratio, C) for C in sorted(set(Cs)) for ratio in ratios]


# --- the path ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One model of a path.

    Attributes
    ----------
    l1_ratio, C : float
        What it was trained with.
    n_nonzero : int
        Number of weights that are not zero.
    certificate : Certificate
        Primal, dual and gap under its own regulariser.
    passes : int
        Passes made at this point.
    seconds : float
        Time of this training, scoring included.
    converged : bool
        Whether the certificate is within the gap asked for, or the solver's own criterion holds.
    stop_reason : str
        Why training ended, in words.
    report : TagReport or None
        What it reaches on the validation data.
    oracle_calls : int
        Calls of the oracle at this point.
    places : int64 array of shape (n_nonzero,)
        Where in the native array the weights are that are not zero.
    values : array of shape (n_nonzero,)
        These weights.
    """

    l1_ratio: float
    C: float
    n_nonzero: int
    certificate: Certificate
    passes: int
    seconds: float
    converged: bool
    stop_reason: str
    report: TagReport | None
    oracle_calls: int
    places: NDArray[np.int64] = field(repr=False)
    values: NDArray[Any] = field(repr=False)

    @property
    def token_accuracy(self) -> float | None:
        """Share of the validation tokens that are tagged right; None without such data."""
        return None if self.report is None else self.report.token_accuracy

    @property
    def f1(self) -> float | None:
        """F1 on the validation data; None without such data or without chunks."""
        return None if self.report is None or not self.report.has_chunks else self.report.f1

    @property
    def score(self) -> float | None:
        """The figure by which models are chosen: F1, or accuracy where there are no chunks."""
        return None if self.report is None else main_score(self.report)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of this point, as JSON can hold them."""
        names = ["l1_ratio", "C", "n_nonzero", "token_accuracy", "f1", "score"]
        names += ["passes", "oracle_calls", "seconds", "converged", "stop_reason"]
        figures = {name: getattr(self, name) for name in names}
        return figures | {n: getattr(self.certificate, n) for n in ("primal", "dual", "gap")}


@dataclass(frozen=True, eq=False)
class Path:
    """Models from a series of trainings, in the order in which they were trained.

    Attributes
    ----------
    points : list of PathPoint
        The models; their weights are kept without the zeros.
    n_weights : int
        Length of the native array of weights.
    dtype : numpy.dtype
        Its type.
    """

    points: list[PathPoint]
    n_weights: int
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last training, and with it the path."""
        return bool(self.points) and was_interrupted(self.points[-1].stop_reason)

    def weights(self, k: int) -> NDArray[Any]:
        """Return the native weights of a point.

        Parameters
        ----------
        k : int
            Which point.

        Returns
        -------
        array of shape (n_weights,)
            As native code takes them: all of them, aligned.
        """
        weights = _zeros(self.n_weights, self.dtype)
        weights[self.points[k].places] = self.points[k].values
        return weights

    def choose(self, max_loss: float = 0.01) -> int:
        """Return the sparsest point that is about as good as the best one.

        Parameters
        ----------
        max_loss : float
            How much of the best score on the validation data may be given up, relative to it: with
            0.01 and a best F1 of 0.94, 0.9306 will do.

        Returns
        -------
        int
            The number of the point; of several that are as sparse, the best, then the first.

        Raises
        ------
        ValueError
            If there were no validation data, or `max_loss` is not from 0 to 1.
        """
        if not 0 <= max_loss <= 1:
            raise ValueError(f"max_loss is {max_loss}; expected 0 to 1, such as 0.01")
        scores = [point.score for point in self.points]
        known = [score for score in scores if score is not None]
        if not known or len(known) < len(scores):
            raise ValueError("the models have no scores; give the path validation data")
        least = max(known) * (1 - max_loss)
        good = [k for k, score in enumerate(known) if score >= least]
        return min(good, key=lambda k: (self.points[k].n_nonzero, -known[k]))

    def table(self) -> list[dict[str, Any]]:
        """Return the figures of all points: numbers, sizes, certificates and scores."""
        return [point.to_dict() for point in self.points]


def regularization_path(
    chain: Chain,
    data: Encoded,
    points: Sequence[tuple[float, float]],
    options: FitOptions,
    *,
    valid: Encoded | None = None,
    sample_weight: Any = None,
    callbacks: Callable[[float, float], Iterable[Any]] = lambda *_: (),
    told: Callable[[PathPoint], object] | None = None,
) -> Path:
    """Train with each of several l1_ratios and Cs, each from where the last one ended.

    Parameters
    ----------
    chain : Chain
        The structure, prepared.
    data : Encoded
        The training data.
    points : sequence of (l1_ratio, C)
        What to train with, in this order; `path_points` makes such lists.
    options : FitOptions
        How to train. The regulariser is that of the points, so ``regularizer`` must be None; a path
        has no checkpoint. Gap and limits are those of each training.
    valid : Encoded or None
        Data on which the end of each training is scored; `Path.choose` needs it.
    sample_weight : array of shape (n_sequences,), optional
        A factor of C for each sequence.
    callbacks : callable
        Gives the callbacks for an l1_ratio and a C, as `maxmargin.solvers.solve` takes them.
    told : callable
        Told of each point.

    Returns
    -------
    Path
        The models. After Ctrl-C, those so far; the last one is then not at its end.

    Raises
    ------
    ValueError
        If there are no points, one of them is out of range, or an option does not go with a path.
    """
    _check_options(options)
    nets = [(ElasticNet(l1_ratio=ratio), ratio, C) for ratio, C in points]
    if not nets:
        raise ValueError("a path has no points; expected at least one pair (l1_ratio, C)")
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    made: list[PathPoint] = []
    engine: Machine | None = None
    for net, ratio, C in nets:
        begin = time.perf_counter()
        own = dataclasses.replace(options, regularizer=net)
        outcome = fit(
            chain,
            problem,
            C,
            own,
            callbacks=callbacks(ratio, C),
            engine=engine,
            may_be_empty=True,
        )
        result, weights = outcome.result, outcome.weights
        engine = result.engine
        report = None if valid is None else report_of(chain, valid, weights, options.threads)
        places = np.flatnonzero(weights)
        point = PathPoint(
            l1_ratio=float(ratio),
            C=float(C),
            n_nonzero=len(places),
            certificate=outcome.certificate,
            passes=result.n_passes,
            seconds=time.perf_counter() - begin,
            converged=result.converged,
            stop_reason=result.stop_reason,
            report=report,
            oracle_calls=result.history[-1].oracle_calls if len(result.history) else 0,
            places=places,
            values=weights[places],
        )
        made.append(point)
        if told is not None:
            told(point)
        if result.interrupted:
            break
    return Path(made, weights.size, weights.dtype)


# --- a model of a wanted size --------------------------------------------------------------------


@dataclass
class SparseOutcome(Outcome):
    """A trained model that has at most a given number of weights.

    ``result.engine`` is where the search ended, which need not be at these weights.

    Attributes
    ----------
    l1_ratio : float
        What gave it.
    n_nonzero : int
        Number of weights that are not zero.
    tried : list of (l1_ratio, n_nonzero)
        The trainings of the search, in their order.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    l1_ratio: float = 0.0
    n_nonzero: int = 0
    tried: list[tuple[float, int]] = field(default_factory=list)
    interrupted: bool = False


def search_nonzeros(
    chain: Chain,
    data: Encoded,
    C: float,
    n: int,
    options: FitOptions,
    *,
    valid: Encoded | None = None,
    sample_weight: Any = None,
    max_trainings: int = 12,
    callbacks: Callable[[float], Iterable[Any]] = lambda _: (),
    told: Callable[[float, int], object] | None = None,
) -> SparseOutcome:
    """Find the densest model with at most n weights that are not zero, by bisection.

    The larger the l1_ratio, the fewer weights; this holds but roughly (training ends at a gap), so
    the densest model that was met and keeps the bound is returned, whatever came later. The search
    ends early at a model with 98 % of the weights that are allowed.

    Parameters
    ----------
    chain, data, sample_weight
        As for `regularization_path`.
    C : float
        Weight of the loss.
    n : int
        Most weights; at least 1.
    options : FitOptions
        As for `regularization_path`.
    valid : Encoded or None
        Data on which the model is scored in the end; the search does not look at them.
    max_trainings : int
        Most trainings, each from where the last one ended.
    callbacks : callable
        Gives the callbacks for an l1_ratio.
    told : callable
        Told of the l1_ratio and the number of weights of each training.

    Returns
    -------
    SparseOutcome
        The model.

    Raises
    ------
    ValueError
        If no model that was tried is that small.
    NothingLearnedError
        If the best one has no weights at all, and nothing shows that it must be so.
    KeyboardInterrupt
        If Ctrl-C came before a model was that small.
    """
    _check_options(options)
    n, max_trainings = _count("n", n), _count("max_trainings", max_trainings)
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    best: SparseOutcome | None = None
    tried: list[tuple[float, int]] = []
    engine: Machine | None = None
    low, high = 0.0, MAX_RATIO  # too dense, as far as is known; sparse enough
    interrupted = False
    ratio = 0.5
    while len(tried) < max_trainings:
        if best is None and tried and len(tried) == max_trainings - 1:
            ratio = MAX_RATIO  # the last hope
        net = ElasticNet(l1_ratio=ratio)
        own = dataclasses.replace(options, regularizer=net)
        outcome = fit(
            chain, problem, C, own, callbacks=callbacks(ratio), engine=engine, may_be_empty=True
        )
        engine = outcome.result.engine
        count = int(np.count_nonzero(outcome.weights))
        tried.append((ratio, count))
        if told is not None:
            told(ratio, count)
        fits = count <= n
        if fits and (best is None or count > best.n_nonzero):
            best = SparseOutcome(
                outcome.C,
                outcome.result,
                outcome.weights,
                outcome.certificate,
                gap_asked=options.gap,
                l1_ratio=ratio,
                n_nonzero=count,
            )
        if outcome.result.interrupted:
            interrupted = True
            break
        if fits and (count >= DENSE_ENOUGH * n or ratio == 0):
            break
        if fits:
            high = ratio
        else:
            low = ratio
        # If half of each is sparse enough, perhaps no L1 at all is: that is quick to see.
        ratio = 0.0 if fits and len(tried) == 1 else (low + high) / 2
    if best is None:
        if interrupted:
            raise KeyboardInterrupt
        ratio, count = min(tried, key=lambda entry: entry[1])
        raise ValueError(
            f"no model with at most {n} non-zero weights was found: l1_ratio {ratio:g} at "
            f"C = {C:g} gives {count}; expected a larger number, or a smaller C"
        )
    require_learned(best.result)
    best.tried, best.interrupted = tried, interrupted
    if valid is not None:
        best.report = report_of(chain, valid, best.weights, options.threads)
    return best


# --- without shrinking ---------------------------------------------------------------------------


def debias(
    chain: Chain,
    data: Encoded,
    outcome: Outcome,
    options: FitOptions,
    *,
    C: float | None = None,
    keep: str = "features",
    valid: Encoded | None = None,
    sample_weight: Any = None,
    callbacks: Iterable[Any] = (),
) -> Outcome:
    """Train again with plain L2, on what a sparse model selected.

    The L1 part of the elastic net selects, but it also pulls the weights that are left towards
    zero. Here it only selects, and what it selected gets weights as ½‖w‖² + C Σ ξ_i has them.

    With ``keep="features"``, features all of whose weights are zero stay out. A feature comes back
    as a whole, with a weight for each label, so the number of non-zero weights may be larger than
    before; the number of features is not. Transitions, start and end are always in. With
    ``keep="weights"``, every single weight that is zero stays zero.

    Parameters
    ----------
    chain, data, sample_weight
        As for `regularization_path`.
    outcome : Outcome
        The sparse model.
    options : FitOptions
        How to train; regulariser and checkpoint are left aside.
    C : float or None
        Weight of the loss; None: that of the sparse model.
    keep : {"features", "weights"}
        What was selected.
    valid : Encoded or None
        Data on which the new model is scored in the end.
    callbacks : iterable
        As for `maxmargin.solvers.solve`.

    Returns
    -------
    Outcome
        The new model, with weights for all features. Its certificate, its history and its engine
        are those of the smaller problem: they bound how much better a model with *these* features
        can be, not one with all of them (with ``keep="weights"``: with these weights).
    """
    if keep not in ("features", "weights"):
        raise ValueError(f'keep is {keep!r}; expected "features" or "weights"')
    if keep == "weights":
        own = dataclasses.replace(
            options, regularizer=Selected(outcome.weights), checkpoint=None, resume=False
        )
        problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
        C = outcome.C if C is None else C
        found = fit(chain, problem, C, own, callbacks=callbacks)
        if valid is not None:
            found.report = report_of(chain, valid, found.weights, options.threads)
        return found
    L = chain.n_labels
    old = chain.unpack(outcome.weights)
    n_sparse = data.batch.n_sparse
    selected = np.asarray(old.coef.any(axis=1))
    sparse = np.flatnonzero(selected[:n_sparse])
    dense = np.flatnonzero(selected[n_sparse:])
    pairs = np.flatnonzero(old.pairs.any(axis=(1, 2)))
    batch = _with_features(data.batch, sparse, dense, pairs)
    problem = chain.encoded_problem(batch, data.codes, sample_weight=sample_weight)
    own = dataclasses.replace(options, regularizer=None, checkpoint=None, resume=False)
    C = outcome.C if C is None else C
    found = fit(chain, problem, C, own, callbacks=callbacks)

    # From the rows of the small problem to those of the chain; the padding of both is the same.
    small = found.weights.reshape(-1, _native.padded_labels(L, found.weights.itemsize == 4))
    weights = _zeros(chain.n_weights(small.dtype), small.dtype)
    full = weights.reshape(-1, small.shape[1])
    full[sparse] = small[: len(sparse)]
    tail, own_tail = n_sparse + data.batch.n_dense, batch.n_sparse + batch.n_dense
    full[n_sparse + dense] = small[batch.n_sparse : batch.n_sparse + len(dense)]
    full[tail : tail + L + 2] = small[own_tail : own_tail + L + 2]
    if len(pairs):
        rows = (pairs[:, None] * L + np.arange(L)).ravel()
        full[tail + L + 2 + rows] = small[own_tail + L + 2 :]
    result = dataclasses.replace(found.result, weights=weights)
    report = None if valid is None else report_of(chain, valid, weights, options.threads)
    return Outcome(C, result, weights, found.certificate, report, gap_asked=options.gap)


def _with_features(
    batch: EncodedBatch, sparse: NDArray[Any], dense: NDArray[Any], pairs: NDArray[Any]
) -> EncodedBatch:
    """Return a batch with some of its features only, numbered in the same order."""
    indptr = indices = values = None
    n_sparse = len(sparse)
    if batch.indptr is not None and batch.indices is not None:
        number = _numbers(batch.n_sparse, sparse)
        indptr, indices, values = _native.renumber(
            batch.indptr, batch.indices, batch.values, number
        )
    if n_sparse == 0 and len(dense) == 0:
        # A batch has features, so there is one that no token has.
        n_sparse = 1
        indptr, indices, values = np.zeros(batch.n_tokens + 1, np.int64), np.empty(0, "u4"), None
    pair_indptr = pair_indices = None
    if len(pairs) and batch.pair_indptr is not None and batch.pair_indices is not None:
        number = _numbers(batch.n_pair, pairs)
        pair_indptr, pair_indices, _ = _native.renumber(
            batch.pair_indptr, batch.pair_indices, None, number
        )
    kept = None if batch.dense is None or len(dense) == 0 else batch.dense[:, dense].copy()
    return EncodedBatch(
        batch.offsets,
        n_sparse,
        indptr,
        indices,
        values,
        kept,
        len(pairs),
        pair_indptr,
        pair_indices,
    )


# --- small helpers -------------------------------------------------------------------------------



def _numbers(n: int, kept: NDArray[Any]) -> NDArray[np.uint32]:
    number = np.full(n, _DROPPED, dtype=np.uint32)
    number[kept] = np.arange(len(kept), dtype=np.uint32)
    return number


def _zeros(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    weights: NDArray[Any] = _native.aligned_array(n, dtype.itemsize == 4)
    weights[:] = 0
    return weights


def _count(name: str, value: Any) -> int:
    if not is_whole(value, 1):
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)


def _check_options(options: FitOptions) -> None:
    if options.regularizer is not None:
        raise ValueError(
            f"options.regularizer is {options.regularizer!r}; expected None: the l1_ratio of each "
            "training makes it"
        )
    if options.checkpoint is not None or options.resume:
        raise ValueError("a checkpoint is for one training; several do not go with one")
