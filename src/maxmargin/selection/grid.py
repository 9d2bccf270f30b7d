"""Trainings for several C, or in search of one, each from where the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.selection.auto_c import search_C
from maxmargin.selection.encoded import Encoded
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.validation import main_score

if TYPE_CHECKING:
    from maxmargin.structures.chain import Chain

__all__ = ["fit_grid"]


def fit_grid(
    chain: Chain,
    data: Encoded,
    Cs: Sequence[float],
    options: FitOptions,
    *,
    auto: bool = False,
    valid: Encoded | None = None,
    sample_weight: Any = None,
    callbacks: Callable[[float], Iterable[Any]] = lambda _: (),
    on_score: Callable[[dict[str, Any]], object] | None = None,
    on_outcome: Callable[[Outcome], object] | None = None,
) -> list[Outcome]:
    """Train for each C from the smallest to the largest, each from where the last one ended.

    Parameters
    ----------
    chain, options, valid, on_score
        As for `fit`.
    data : Encoded
        The training data.
    Cs : sequence of float
        Weights of the loss.
    auto : bool
        Whether to search the C that is best on ``valid``, beginning with the first of ``Cs``.
    sample_weight : array of shape (n_sequences,), optional
        A factor of C for each sequence.
    callbacks : callable
        Gives the callbacks for a C.
    on_outcome : callable or None
        Called with each model.

    Returns
    -------
    list of Outcome
        In the order of ascending C.
    """
    problem = chain.encoded_problem(data.batch, data.codes, sample_weight=sample_weight)
    outcomes: list[Outcome] = []

    def score(C: float) -> float | None:
        if outcomes and outcomes[-1].result.interrupted:
            return None
        outcome = fit(
            chain,
            problem,
            C,
            options,
            valid=valid,
            callbacks=callbacks(C),
            on_score=on_score,
            machine=outcomes[-1].result.engine if outcomes else None,
        )
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
        return float("nan") if outcome.report is None else main_score(outcome.report)

    if auto:
        search_C(score, Cs[0])
    else:
        for C in sorted(Cs):
            score(C)
    return sorted(outcomes, key=lambda outcome: outcome.C)
