"""Regularisation paths: a series of models from sparse to dense, and the choice of one of them.

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

from maxmargin.regularizers import ElasticNet
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, fit
from maxmargin.selection.validation import main_score, report_of
from maxmargin.selection.weights import aligned_zeros
from maxmargin.solvers.ending import was_interrupted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.metrics import TagReport
    from maxmargin.solvers import Certificate, SolveResult
    from maxmargin.solvers.machine import Machine
    from maxmargin.structures.chain import Chain

__all__ = [
    "RATIOS",
    "Path",
    "PathPoint",
    "check_series_options",
    "path_points",
    "regularization_path",
    "trained_path",
]

#: The l1_ratios of a path unless others are given, from sparse to dense.
RATIOS = (0.99, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0)


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
        These weights. They are of float64 from the point on at which rounding of float32 weights
        kept training from the gap asked for.
    n_weights : int
        Length of the native array; 0: that of the path.
    own_score : float or None
        The score on the validation data, where there is no report of tags.
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
    n_weights: int = 0
    own_score: float | None = None

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
        return self.own_score if self.report is None else main_score(self.report)

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
        Length of the native array of weights, of the last point.
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
        point = self.points[k]
        # Rows of 4-byte and of 8-byte weights are padded differently.
        weights = aligned_zeros(point.n_weights or self.n_weights, point.values.dtype)
        weights[point.places] = point.values
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
        least = max(known) - max_loss * abs(max(known))  # scores that are minus a loss are negative
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
    on_point: Callable[[PathPoint], object] | None = None,
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
    on_point : callable or None
        Called with each point.

    Returns
    -------
    Path
        The models. After Ctrl-C, those so far; the last one is then not at its end.

    Raises
    ------
    ValueError
        If there are no points, one of them is out of range, or an option does not go with a path.
    """
    check_series_options(options)
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)

    def train(net: ElasticNet, ratio: float, C: float, machine: Machine | None) -> SolveResult:
        own = dataclasses.replace(options, regularizer=net)
        watched = callbacks(ratio, C)
        outcome = fit(
            chain, problem, C, own, callbacks=watched, machine=machine, may_be_empty=True
        )
        return outcome.result

    def judge(weights: NDArray[Any]) -> dict[str, Any]:
        report = None if valid is None else report_of(chain, valid, weights, options.threads)
        return {"report": report}

    return trained_path(points, train, judge, on_point)


def trained_path(
    points: Sequence[tuple[float, float]],
    train: Callable[[ElasticNet, float, float, Machine | None], SolveResult],
    judge: Callable[[NDArray[Any]], dict[str, Any]],
    on_point: Callable[[PathPoint], object] | None = None,
) -> Path:
    """Train at each point of a path, each time from where the last training ended.

    Parameters
    ----------
    points : sequence of (l1_ratio, C)
        What to train with, in this order.
    train : callable
        ``train(net, l1_ratio, C, machine)`` trains once, from a machine if there is one.
    judge : callable
        Gives ``report`` or ``own_score`` of native weights.
    on_point : callable or None
        Called with each point.

    Returns
    -------
    Path
        The models. After Ctrl-C, those so far; the last one is then not at its end.
    """
    nets = [(ElasticNet(l1_ratio=ratio), ratio, C) for ratio, C in points]
    if not nets:
        raise ValueError("a path has no points; expected at least one pair (l1_ratio, C)")
    made: list[PathPoint] = []
    machine: Machine | None = None
    for net, ratio, C in nets:
        begin = time.perf_counter()
        result = train(net, ratio, C, machine)
        machine, weights = result.engine, result.weights
        judged = {"report": None, **judge(weights)}
        places = np.flatnonzero(weights)
        point = PathPoint(
            l1_ratio=float(ratio),
            C=float(C),
            n_nonzero=len(places),
            certificate=result.certificate,
            passes=result.n_passes,
            seconds=time.perf_counter() - begin,
            converged=result.converged,
            stop_reason=result.stop_reason,
            oracle_calls=result.history[-1].oracle_calls if len(result.history) else 0,
            places=places,
            values=weights[places],
            n_weights=weights.size,
            **judged,
        )
        made.append(point)
        if on_point is not None:
            on_point(point)
        if result.interrupted:
            break
    return Path(made, weights.size, weights.dtype)


def check_series_options(options: FitOptions) -> None:
    """Refuse options that do not go with several trainings of different l1_ratios."""
    if options.regularizer is not None:
        raise ValueError(
            f"options.regularizer is {options.regularizer!r}; expected None: the l1_ratio of each "
            "training makes it"
        )
    if options.checkpoint is not None or options.resume:
        raise ValueError("a checkpoint is for one training; several do not go with one")
