"""A search for the l1_ratio whose model has a wanted number of non-zero weights."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.regularizers import ElasticNet
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.path import check_series_options
from maxmargin.selection.validation import report_of
from maxmargin.solvers.driver import require_learned

if TYPE_CHECKING:
    from maxmargin.solvers.machine import Machine
    from maxmargin.structures.chain import Chain

__all__ = ["SparseOutcome", "search_nonzeros"]

#: The sparsest models that `search_nonzeros` tries.
MAX_RATIO = 0.999
#: A model with this share of the weights that were allowed is dense enough to end the search.
DENSE_ENOUGH = 0.98


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
    on_training: Callable[[float, int], object] | None = None,
) -> SparseOutcome:
    """Find the densest model with at most n weights that are not zero, by bisection.

    The larger the l1_ratio, the fewer weights. This holds only roughly, since training ends at a
    gap, so the densest of all trained models that keep the bound is returned. The search
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
    on_training : callable or None
        Called with the l1_ratio and the number of non-zero weights of each training.

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
    check_series_options(options)
    n, max_trainings = _count("n", n), _count("max_trainings", max_trainings)
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    best: SparseOutcome | None = None
    tried: list[tuple[float, int]] = []
    machine: Machine | None = None
    low, high = 0.0, MAX_RATIO  # of models that are too dense, and sparse enough
    interrupted = False
    ratio = 0.5
    while len(tried) < max_trainings:
        if best is None and tried and len(tried) == max_trainings - 1:
            ratio = MAX_RATIO  # the last training: the one most likely to be sparse enough
        net = ElasticNet(l1_ratio=ratio)
        own = dataclasses.replace(options, regularizer=net)
        outcome = fit(
            chain, problem, C, own, callbacks=callbacks(ratio), machine=machine, may_be_empty=True
        )
        machine = outcome.result.engine
        count = int(np.count_nonzero(outcome.weights))
        tried.append((ratio, count))
        if on_training is not None:
            on_training(ratio, count)
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
        # If l1_ratio 0.5 is sparse enough, perhaps 0 is, too, which would end the search.
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


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)
