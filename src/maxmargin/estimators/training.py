"""A training of an estimator as one value: its problem, solver and regulariser.

``fit`` of each estimator checks and weighs its data in its own way and then comes to one point,
`StructuralEstimator._train`. `training_of` goes there with a copy of the estimator and takes the
training away, so that comparisons and paths train exactly what ``fit`` would.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from sklearn.base import clone

from maxmargin._native import Problem
from maxmargin.estimators.accuracy import Accuracy
from maxmargin.estimators.argument_types import EvalSet
from maxmargin.estimators.binding import BoundProblem
from maxmargin.solvers import Solver
from maxmargin.structures.base import Structure

__all__ = ["Trainable", "Training", "fitted_copy", "training_of"]


class Training(NamedTuple):
    """What an estimator hands to a solver.

    Attributes
    ----------
    examples : tuple
        X and Y as they came from ``fit``.
    fit_params : mapping
        What else ``fit`` was given.
    structure : Structure
        Prepared.
    bound : BoundProblem
        The problem with its regulariser, type of weights, and the way back to the weights of the
        structure.
    solver : Solver
        The algorithm.
    C : float
        The C of the sum over the examples.
    wanted : Accuracy
        The gap and the limits.
    threads : int
        Number of threads.
    """

    examples: tuple[Any, Any]
    fit_params: Mapping[str, Any]
    structure: Structure
    bound: BoundProblem
    solver: Solver
    C: float
    wanted: Accuracy
    threads: int

    @property
    def problem(self) -> Problem:
        """The native problem."""
        return self.bound.prepared.problem


class Trainable(Protocol):
    """An estimator of this package, as far as it is needed here."""

    structure_: Any
    weights_: Any

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        """Train."""

    def score(self, X: Any, y: Any) -> float:
        """Return how good it is, the higher the better."""

    def _after_fit(self) -> None:
        """Set what else a fitted model has."""


class _Taken(Exception):  # noqa: N818 (it is no error)
    """Carries a training away from the point where it would begin."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self.training = training


def training_of(estimator: Any, X: Any, y: Any, **fit_params: Any) -> Training:
    """Return what ``estimator.fit(X, y, **fit_params)`` would train, without training it.

    Parameters
    ----------
    estimator : estimator
        One of this package; it is not changed.
    X, y : object
        Inputs and true outputs, as its ``fit`` takes them.
    **fit_params
        What else ``fit`` takes.

    Returns
    -------
    Training
        The problem, and how to solve it.
    """
    own: Any = clone(estimator)

    def take(training: Training, eval_set: EvalSet[Any, Any] = None) -> None:
        raise _Taken(training)

    own._train = take
    try:
        own.fit(X, y, **fit_params)
    except _Taken as taken:
        return taken.training
    raise TypeError(f"fit of {type(estimator).__name__} did not come to its training")


def fitted_copy(estimator: Any, structure: Structure, weights: Any) -> Any:
    """Return an estimator that predicts with given weights.

    Parameters
    ----------
    estimator : estimator
        One of this package; it is not changed.
    structure : Structure
        Prepared.
    weights : object
        Weights of the structure.

    Returns
    -------
    estimator
        A shallow copy that is fitted, as far as predictions and scores need it.
    """
    fitted = copy.copy(estimator)
    fitted.structure_, fitted.weights_ = structure, weights
    fitted._after_fit()
    return fitted
