"""Training a chain on encoded data, with validation, grids and folds; without scikit-learn.

What the command line does, and what estimators do when they are given files. The loop over passes
is the driver's (`maxmargin.solvers.driver`); what is here decides what is trained on what.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.features.batch import EncodedBatch, ragged_ranges
from maxmargin.memory import require_memory
from maxmargin.metrics import TagReport, evaluate_codes
from maxmargin.solvers import SolveResult, make_solver, solve
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import copy_weights, make_certificate, require_learned
from maxmargin.solvers.ending import best_pass_reason
from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.machine import Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin._native import ChainProblem
    from maxmargin.structures.chain import Chain

__all__ = [
    "Encoded",
    "FitOptions",
    "Outcome",
    "Validation",
    "cross_validate",
    "fit_grid",
    "folds",
    "report_of",
]


class Encoded(NamedTuple):
    """Sequences in numbers, with their true labels.

    Attributes
    ----------
    batch : EncodedBatch
        The features.
    codes : int32 array of shape (n_tokens,)
        The labels: places in ``names``.
    names : list
        The labels of the chain in its own order, and behind them any that it does not know.
    """

    batch: EncodedBatch
    codes: NDArray[np.int32]
    names: list[Any]

    def take(self, sequences: NDArray[Any]) -> Encoded:
        """Return some of the sequences."""
        codes = self.codes[ragged_ranges(self.batch.offsets, sequences)]
        return Encoded(self.batch.take(sequences), codes, self.names)


@dataclass(frozen=True)
class FitOptions:
    """How to train; the parameters of `maxmargin.solvers.solve`."""

    solver: Any = "sdm"
    regularizer: Any = None
    gap: float = 0.01
    max_passes: int = 1000
    time_limit: float | None = None
    dtype: str = "float32"
    threads: int = 1
    seed: int | None = 0
    checkpoint: Any = None
    resume: bool = False


@dataclass
class Outcome:
    """A trained model.

    Attributes
    ----------
    C : float
        The C of training.
    result : SolveResult
        Weights, certificate and history of the end of training.
    weights : array
        The weights to keep: of the end, or of the pass that was best on the validation data.
    certificate : Certificate
        Of these weights.
    report : TagReport or None
        What these weights reach on the validation data.
    best_pass : int or None
        The pass after which these weights were there; None: the end.
    scores : list of dict
        Accuracy and F1 on the validation data, pass by pass.
    gap_asked : float
        The relative gap that training was to reach.
    """

    C: float
    result: SolveResult
    weights: NDArray[Any]
    certificate: Certificate
    report: TagReport | None = None
    best_pass: int | None = None
    scores: list[dict[str, Any]] = field(default_factory=list)
    gap_asked: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the certificate is within the gap asked for, or the solver's own rule holds.

        The solver's rule is about the end of training: the weights of an earlier pass have nothing
        but their certificate.
        """
        if self.best_pass is None:
            return self.result.converged
        return self.certificate.gap <= self.gap_asked

    @property
    def stop_reason(self) -> str:
        """Why training ended, and whose weights these are."""
        reason = self.result.stop_reason
        if self.best_pass is None:
            return reason
        return best_pass_reason(self.best_pass, self.result.n_passes, reason)


def report_of(chain: Chain, data: Encoded, weights: Any, threads: int = 1) -> TagReport:
    """Return how well weights tag some data.

    Parameters
    ----------
    chain : Chain
        The structure.
    data : Encoded
        What to tag.
    weights : array or SparseWeights
        Native weights.
    threads : int
        Number of threads.

    Returns
    -------
    TagReport
        Accuracies, chunk scores, confusions.
    """
    predicted = chain.predict_encoded(data.batch, weights, threads)
    return evaluate_codes(data.codes, predicted, data.batch.offsets, data.names)


def main_score(report: TagReport) -> float:
    """Return the figure by which models are chosen: F1 of chunks, or accuracy without chunks."""
    return report.f1 if report.has_chunks else report.token_accuracy


class Validation:
    """Watches training: scores the weights after passes and keeps the best ones.

    Cached passes between two passes of the oracle are not scored: they come by the dozen.

    Parameters
    ----------
    chain : Chain
        The structure.
    data : Encoded
        Validation data.
    threads : int
        Number of threads.
    report : callable
        Told of each score, as a dict.
    """

    def __init__(
        self,
        chain: Chain,
        data: Encoded,
        threads: int = 1,
        report: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self._chain = chain
        self._data = data
        self._threads = threads
        self._tell = report
        self.scores: list[dict[str, Any]] = []
        self.best: tuple[float, int, NDArray[Any], TagReport] | None = None

    def begin_pass(self, engine: Machine) -> None:
        """Do nothing."""

    def end_pass(self, record: PassRecord, engine: Machine) -> object:
        """Score the weights of the engine."""
        if record.kind == "cached":
            return False
        report = report_of(self._chain, self._data, engine.weights, self._threads)
        score = {
            "pass": record.n_pass,
            "token_accuracy": report.token_accuracy,
            "f1": report.f1 if report.has_chunks else None,
        }
        self.scores.append(score)
        if self._tell is not None:
            self._tell(score)
        better = self.best is None or main_score(report) > self.best[0]
        if better and np.any(engine.weights):  # weights of zero are no model to go back to
            self.best = (main_score(report), record.n_pass, copy_weights(engine), report)
        return False


def fit(
    chain: Chain,
    problem: ChainProblem,
    C: float,
    options: FitOptions,
    *,
    valid: Encoded | None = None,
    callbacks: Iterable[Any] = (),
    told: Callable[[dict[str, Any]], object] | None = None,
    engine: Machine | None = None,
    may_be_empty: bool = False,
) -> Outcome:
    """Train once.

    Parameters
    ----------
    chain : Chain
        The structure, prepared.
    problem : ChainProblem
        The training data.
    C : float
        Weight of the loss.
    options : FitOptions
        How to train.
    valid : Encoded or None
        Data on which the best pass is chosen; None: the end of training is kept.
    callbacks : iterable
        As for `maxmargin.solvers.solve`.
    told : callable
        Told of each score on the validation data.
    engine : Machine or None
        A warm start.
    may_be_empty : bool
        Whether weights that are all zero are a model although nothing shows that they must be: as
        one of a series, which is judged as a whole.

    Returns
    -------
    Outcome
        The model.

    Raises
    ------
    NothingLearnedError
        If training stopped (at a limit, for example) before it learned anything.
    KeyboardInterrupt
        If Ctrl-C came before it learned anything.
    """
    watch = None if valid is None else Validation(chain, valid, options.threads, told)
    require_memory(*chain.memory_needed(options.dtype))
    result = solve(
        problem,
        make_solver(options.solver),
        C=C,
        dtype=options.dtype,
        regularizer=options.regularizer,
        gap=options.gap,
        max_passes=options.max_passes,
        time_limit=options.time_limit,
        n_jobs=options.threads,
        random_state=options.seed,
        callbacks=[*callbacks, *([] if watch is None else [watch])],
        checkpoint=options.checkpoint,
        resume=options.resume,
        engine=engine,
        warn=False,
    )
    if not may_be_empty:
        require_learned(result)
    outcome = Outcome(C, result, result.weights, result.certificate, gap_asked=options.gap)
    if watch is None or valid is None:
        return outcome
    outcome.scores = watch.scores
    outcome.report = report_of(chain, valid, result.weights, options.threads)
    if watch.best is not None and watch.best[0] > main_score(outcome.report):
        _, outcome.best_pass, outcome.weights, outcome.report = watch.best
        # Any w has a primal; the dual at the end bounds them all.
        primal = result.engine.primal_of(outcome.weights, options.threads)
        dual = result.certificate.dual
        outcome.certificate = make_certificate(result.engine, primal, dual, problem.n_examples)
    return outcome


def fit_grid(
    chain: Chain,
    data: Encoded,
    Cs: Sequence[float],
    options: FitOptions,
    *,
    valid: Encoded | None = None,
    sample_weight: Any = None,
    callbacks: Callable[[float], Iterable[Any]] = lambda _: (),
    told: Callable[[dict[str, Any]], object] | None = None,
    done: Callable[[Outcome], object] | None = None,
) -> list[Outcome]:
    """Train for each C from the smallest to the largest, each from where the last one ended.

    Parameters
    ----------
    chain, options, valid, told
        As for `fit`.
    data : Encoded
        The training data.
    Cs : sequence of float
        Weights of the loss.
    sample_weight : array of shape (n_sequences,), optional
        A factor of C for each sequence.
    callbacks : callable
        Gives the callbacks for a C.
    done : callable
        Told of each model.

    Returns
    -------
    list of Outcome
        In the order of ascending C.
    """
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    outcomes: list[Outcome] = []
    engine = None
    for C in sorted(Cs):
        outcome = fit(
            chain,
            problem,
            C,
            options,
            valid=valid,
            callbacks=callbacks(C),
            told=told,
            engine=engine,
        )
        engine = outcome.result.engine
        outcomes.append(outcome)
        if done is not None:
            done(outcome)
        if outcome.result.interrupted:
            break
    return outcomes


def folds(n_sequences: int, k: int, seed: int | None) -> list[NDArray[np.intp]]:
    """Deal sequences out into k folds of about the same size, at random.

    Parameters
    ----------
    n_sequences, k : int
        How many; at least two folds, at most as many as sequences.
    seed : int or None
        Of the draw.

    Returns
    -------
    list of arrays
        The sequences of each fold, ascending.
    """
    if not 2 <= k <= n_sequences:
        raise ValueError(f"{k} folds of {n_sequences} sequences; expected 2 to {n_sequences}")
    order = np.random.default_rng(seed).permutation(n_sequences)
    return [np.sort(part) for part in np.array_split(order, k)]


def cross_validate(
    chain: Chain,
    data: Encoded,
    Cs: Sequence[float],
    k: int,
    options: FitOptions,
    *,
    sample_weight: NDArray[Any] | None = None,
    done: Callable[[int, Outcome], object] | None = None,
) -> list[dict[str, Any]]:
    """Score each C by training on all folds but one and tagging that one, for every fold.

    The features are those of all the data: one that occurs only in the fold that is left out has
    weight zero, as if it were unknown.

    Parameters
    ----------
    chain, data, Cs, options
        As for `fit_grid`.
    k : int
        Number of folds.
    sample_weight : array of shape (n_sequences,), optional
        A factor of C for each sequence, in training; scores do not have weights.
    done : callable
        Told of each fold and model.

    Returns
    -------
    list of dict
        For each C in ascending order: the mean and the standard deviation over the folds of the
        token accuracy and, with chunks, of F1.
    """
    scores: dict[float, list[TagReport]] = {C: [] for C in sorted(Cs)}
    parts = folds(data.batch.n_sequences, k, options.seed)
    for number, held in enumerate(parts):
        rest = np.sort(np.concatenate([part for i, part in enumerate(parts) if i != number]))
        outside = data.take(held)
        weight = None if sample_weight is None else sample_weight[rest]
        for outcome in fit_grid(chain, data.take(rest), Cs, options, sample_weight=weight):
            outcome.report = report_of(chain, outside, outcome.weights, options.threads)
            scores[outcome.C].append(outcome.report)
            if done is not None:
                done(number, outcome)
            if outcome.result.interrupted:
                raise KeyboardInterrupt
    return [{"C": C, **_summary(reports)} for C, reports in scores.items()]


def _summary(reports: list[TagReport]) -> dict[str, Any]:
    def mean_and_spread(values: list[float]) -> tuple[float, float]:
        return float(np.mean(values)), float(np.std(values))

    accuracy, accuracy_spread = mean_and_spread([r.token_accuracy for r in reports])
    row: dict[str, Any] = {"token_accuracy": accuracy, "token_accuracy_std": accuracy_spread}
    f1s = [r.f1 for r in reports if r.has_chunks]
    if f1s:
        row["f1"], row["f1_std"] = mean_and_spread(f1s)
    row["score"] = row.get("f1", accuracy)
    return row


def time_left(records: Sequence[PassRecord], gap: float) -> float:
    """Estimate the seconds until a gap is reached: convergence is about linear in the logarithm.

    Parameters
    ----------
    records : sequence of PassRecord
        The passes so far.
    gap : float
        The relative gap asked for.

    Returns
    -------
    float
        NaN if it cannot be told.
    """
    known = [(r.seconds, r.gap) for r in records if math.isfinite(r.gap) and r.gap > 0]
    if len(known) < 2 or gap <= 0:
        return math.nan
    (t0, g0), (t1, g1) = known[-min(len(known), 6)], known[-1]
    if g1 <= gap:
        return 0.0
    if g1 >= g0 or t1 <= t0:
        return math.nan
    return (t1 - t0) * math.log(g1 / gap) / math.log(g0 / g1)
